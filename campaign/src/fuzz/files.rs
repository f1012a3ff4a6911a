//! What `tilewright` is given beside kernels and PTX, broken: the words of its command line, the texts of its options,
//! its TOML files, NumPy's files, mangled names. It is read as the command reads it; nothing runs and nothing is
//! written.

use std::sync::OnceLock;

use clap::{CommandFactory, FromArgMatches};
use tilewright_cli::args::Args;
use tilewright_cli::emulate::argument::{self, Argument, Source};
use tilewright_cli::emulate::npy::{self, Npy};
use tilewright_cli::emulate::rules::Rules;
use tilewright_cli::emulate::script::Plan;
use tilewright_cli::emulate::{map, names, range, triple};
use tilewright_cli::{data, sizes};
use tilewright_kernel::KernelInfo;

use super::{Answer, Original, Wrong, text};
use crate::compile::{Outcome, compile};
use crate::rng::Rng;

/// Who reads a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// The command line, one word a line.
    Command,
    /// `--arg` of `emulate`.
    Argument,
    /// The file of `--script`.
    Script,
    /// The file of `--suppressions`.
    Suppressions,
    /// A `.npy` file: a sign is a byte.
    Npy,
    /// `--data` and `--dims` of `run`.
    Numbers,
    /// `--grid` and `--seeds`.
    Shapes,
    /// The name of a kernel as C++ has it.
    Name,
}

/// A text and who reads it.
pub struct File {
    reader: Reader,
    text: String,
}

/// A file that is there, of raw bytes.
const THERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

const SCRIPT: &str = "ptx = \"k.ptx\"\n\n[buffers]\nx = \"in:x.npy\"\nsums = \"zero:f32[4]=sums.npy\"\n\n[[launch]]\n\
    entry = \"reduce\"\ngrid = [4]\nblock = [256]\nargs = [\"s32:1024\", \"buffer:x\", \"buffer:sums\"]\n\n[[launch]]\n\
    ptx = \"other.ptx\"\nblock = [32, 2, 1]\nshared = 1024\nsymbols = { table = \"table.bin\" }\n\
    args = [\"buffer:sums\", \"expect:want.npy,1e-5\"]\n";

const SUPPRESSIONS: &str = "[severity]\nSameValueRace = \"error\"\nLeak = \"ignore\"\n\n[[suppress]]\nkind = \"Race\"\n\
    kernel = \"app::reduce*\"\nfile = \"*/detail/scan.cuh\"\nline = 120\nfunction = \"*warp_scan*\"\n\
    instruction = \"ld.global*\"\nreason = \"the scan reads one element ahead and drops it\"\n";

const ARGUMENTS: &[&str] = &[
    "f32:2.5",
    "u64:0x10",
    "s32:-1",
    "bf16:1e-3",
    "bytes:00ff_0102",
    "null",
    "out:f32[100,16]=z.npy",
    "zero:bf16[3]",
    "buffer:sums",
    "map:8x32,swizzle128,nan:out:f32[64,64]",
    "map:16:zero:u8[4096]",
    "struct:u64:5,ptr(out:f32[10]),f32:1,struct(u8:1,struct(f64:2))",
];

const COMMANDS: &[&str] = &[
    "check\n--diff\nsrc/lib.rs",
    "inspect\nsrc/lib.rs\n--kernel\nSaxpy\n--cost\n--dims\nN=1000000\n--gpu\na100",
    "draw\nsrc/lib.rs\n--only\nboxes,banks\n-o\nk.svg",
    "run\nsrc/lib.rs\n--dims\nM=16,N=1024\n--arg\neps=1e-5\n--seed\n3\n--perturb\n--data\nids=0..1000",
    "tune\nsrc/lib.rs\n--dims\nM=4096,N=4096\n--device\n--launches\n20\n--write",
    "emulate\nk.ptx\n--grid\n4,2\n--block\n256\n--arg\nin:x.npy\n--seeds\n0..8\n--threads\n2\n--matrix\nhopper",
    "explain\nTW0201",
    "new\nmy-kernels\n--tilewright\n../t",
    "completions\nbash",
];

const NAMES: &[&str] = &[
    "_ZN3app6reduceIfLi4EEEvPT_i",
    "_Z6kernelIJfdiEEvDpT_",
    "_ZNK2at6native13BinaryFunctorIfffNS0_15CUDAFunctor_addIfEEEclEff",
    "_ZSt4moveIRNSt6vectorIiSaIiEEEEONSt16remove_referenceIT_E4typeEOS5_",
    "_ZZN3app4mainEvENKUlT_E_clIiEEDaS0_",
];

const WORDS: &[&str] = &[
    "-",
    "--",
    "=",
    ":",
    ",",
    "..",
    "[",
    "]",
    "[[",
    "]]",
    "(",
    ")",
    "{",
    "}",
    "\"",
    "\"\"\"",
    "0",
    "-1",
    "18446744073709551616",
    "170141183460469231731687303715884105728",
    "1e400",
    "nan",
    "inf",
    "0x",
    "true",
    "1979-05-27T07:32:00Z",
    "struct(",
    "ptr(",
    "struct:",
    "map:8x32:",
    "expect:",
    ":in:",
    ":out:",
    "f32[4]",
    "normal:",
    "swizzle32",
    "'descr'",
    "'shape'",
    "'<f4'",
    "True",
    "--help",
    "--json",
    "-o",
    "N=",
    "I",
    "E",
    "S_",
    "T_",
    "Dp",
    "launch",
    "block",
    "args",
    "reason",
];

/// A text of any reader.
pub fn draw(rng: &mut Rng) -> File {
    let pick = |rng: &mut Rng, list: &[&str]| (*rng.pick(list)).to_owned();
    let (reader, text) = match rng.below(16) {
        0 => (Reader::Command, pick(rng, COMMANDS)),
        1..4 => (Reader::Argument, pick(rng, ARGUMENTS)),
        4 => (Reader::Argument, format!("inout:{THERE}={THERE}")),
        5 => (Reader::Argument, format!("expect:{THERE},0,0:zero:u8[16]")),
        6..8 => (Reader::Script, SCRIPT.to_owned()),
        8..10 => (Reader::Suppressions, SUPPRESSIONS.to_owned()),
        10..12 => {
            let of = |(dtype, shape, bytes): (&str, &[u64], usize)| {
                let file = Npy { dtype: dtype.to_owned(), shape: shape.to_vec(), data: vec![0x41; bytes] };
                npy::write(&file).into_iter().map(char::from).collect()
            };
            let files: [(&str, &[u64], usize); 4] =
                [("f4", &[2, 3], 24), ("u1", &[5], 5), ("c16", &[], 16), ("V3", &[0, 7], 0)];
            (Reader::Npy, of(*rng.pick(&files)))
        }
        12 => (Reader::Numbers, pick(rng, &["x=-1..1", "x=normal:0.02", "i=0..100", "N=1000", "M=7", "K=0x10"])),
        13 => (Reader::Shapes, pick(rng, &["4,2,1", "0..8", "256", " 3 , 4"])),
        _ => (Reader::Name, pick(rng, NAMES)),
    };
    File { reader, text }
}

impl Original for File {
    fn input(&self, rng: &mut Rng) -> String {
        text::broken(&self.text, WORDS, rng)
    }

    fn judge(&self, input: &str) -> Result<Answer, Wrong> {
        match self.reader {
            Reader::Command => command(input),
            Reader::Argument => argument_of(input),
            Reader::Script => answer(Plan::parse(input), ["a script", "no script"]),
            Reader::Suppressions => answer(Rules::parse(input), ["suppressions", "no suppressions"]),
            Reader::Npy => array(input),
            Reader::Numbers => {
                let all = [input.to_owned()];
                let (given, sizes) = (data::parse(kernel(), &all), sizes::parse(&all));
                let given = given.map(|_| ()).or_else(|why| match sizes {
                    Ok(sizes) => sizes::complete(kernel(), &sizes).map(|_| ()).map_err(|error| error.to_string()),
                    Err(error) => Err(format!("{why}{error}")),
                });
                answer(given, ["data or sizes", "no data, no sizes"])
            }
            Reader::Shapes => {
                let shape = triple(input).map(|_| ()).or_else(|_| range(input).map(|_| ()));
                answer(shape, ["a shape", "no shape"])
            }
            Reader::Name => {
                let name = names::demangled(input);
                Ok(if name == input { "a name as it is" } else { "a name of C++" })
            }
        }
    }
}

/// Who refuses says why.
fn answer<T>(found: Result<T, String>, [good, bad]: [Answer; 2]) -> Result<Answer, Wrong> {
    match found {
        Ok(_) => Ok(good),
        Err(why) if why.trim().is_empty() => Err(("silent", bad.to_owned())),
        Err(_) => Ok(bad),
    }
}

fn command(input: &str) -> Result<Answer, Wrong> {
    thread_local! {
        static COMMAND: std::cell::RefCell<clap::Command> = std::cell::RefCell::new(Args::command());
    }
    let words = std::iter::once("tilewright").chain(input.split('\n'));
    let found = COMMAND.with_borrow_mut(|command| command.try_get_matches_from_mut(words));
    let found = found.and_then(|matches| Args::from_arg_matches(&matches));
    answer(found.map_err(|error| error.to_string()), ["a command", "no command"])
}

fn argument_of(input: &str) -> Result<Answer, Wrong> {
    let parsed = match argument::parse(input) {
        Ok(parsed) => parsed,
        Err(why) => return answer::<()>(Err(why), ["", "no argument"]),
    };
    let sources = argument::sources(&parsed).len();
    let mut addresses = (0..sources as u64).map(|n| n << 20);
    let (bytes, align) = argument::layout(&parsed, &mut addresses);
    if !align.is_power_of_two() || addresses.next().is_some() {
        return Err(("layout", format!("{align}, {} bytes, {sources} buffers", bytes.len())));
    }
    if let Argument::Map(tile, Source::Own(buffer)) = &parsed {
        return answer(map::encode(tile, buffer, 1 << 20), ["a tensor map", "no tensor map"]);
    }
    Ok("an argument")
}

fn array(input: &str) -> Result<Answer, Wrong> {
    // What is no byte stands for many.
    let bytes: Vec<u8> = input.chars().map(|c| u8::try_from(c).unwrap_or(0xff)).collect();
    let found = npy::read(&bytes);
    if let Ok(file) = &found {
        let again = npy::read(&npy::write(file));
        if again.as_ref() != Ok(file) {
            return Err(("other-array", format!("{file:?}\n{again:?}")));
        }
    }
    answer(found, ["an array", "no array"])
}

/// A kernel with inputs of both kinds of numbers.
fn kernel() -> &'static KernelInfo {
    static KERNEL: OnceLock<KernelInfo> = OnceLock::new();
    KERNEL.get_or_init(|| {
        let text = "kernel K(x: f32[M, N], i: u16[N]) -> (z: f32[M, N]) { z[m, n] = x[m, n] + (i[n] as f32); }";
        match compile(text) {
            Outcome::Accepted(info, _) => *info,
            other => unreachable!("{other:?}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is broken is right before.
    #[test]
    fn originals_are_read() {
        for number in 0..400 {
            let File { reader, text } = draw(&mut Rng::new(number));
            let read = File { reader, text: text.clone() }.judge(&text).expect("an answer");
            let refused = read.starts_with("no ");
            let may_be = text.starts_with("expect:") || text == "K=0x10" || text.starts_with("N=") || text == "M=7";
            assert!(!refused || may_be, "{reader:?} {text}: {read}");
        }
    }
}
