//! Broken PTX: what parses is verified, printed, and parses again as the same; and is loaded as for a launch.

use std::path::Path;
use std::sync::OnceLock;

use tilewright_emulator::Program;
use tilewright_ptx::{parse, requirement, verify};

use super::{Answer, Original, Wrong, text};
use crate::compile::{Outcome, compile};
use crate::generate;
use crate::rng::Rng;

/// Kernels drawn until one is accepted.
const DRAWS: u32 = 20;
/// Longest program of another compiler, in bytes: a longer one takes too long for its number of instructions.
const LONGEST: u64 = 24 << 10;

/// Folders of the repository with programs, from that of this package.
const FOLDERS: [&str; 3] = ["../conformance/files", "../emulator/tests/corpus/nvcc", "../emulator/tests/corpus/triton"];

const WORDS: &[&str] = &[
    "%r1",
    "%rd1",
    "%f1",
    "%p1",
    "%h1",
    "%tid",
    "0",
    "-1",
    "4294967295",
    "18446744073709551615",
    "18446744073709551616",
    "0x7fffffffffffffff",
    "0f7FC00000",
    "0d3FF0000000000000",
    "1e999",
    "_",
    "{%r1, %r2}",
    "[%rd1+4]",
    "[%rd1-2147483648]",
    "@%p1 ",
    "@!",
    "bra",
    "ret;",
    "exit;",
    "trap;",
    "call",
    "bar.sync 0;",
    ".entry",
    ".func",
    ".param",
    ".reg .b32 %a<1000000>;",
    ".shared",
    ".local",
    ".global",
    ".const",
    ".align",
    ".b8",
    ".u64",
    ".f32",
    ".pred",
    ".bf16x2",
    ".v4",
    ".rn",
    ".sync",
    ".aligned",
    ".shared::cluster",
    ".L2::cache_hint",
    ".multicast::cluster",
    ".version 1.0",
    ".target sm_10",
    ".pragma",
    ".section",
    ".branchtargets",
    ".callprototype",
    ".loc",
    ".file",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    ";",
    ",",
    ":",
    "|",
    "=",
    "\"s\"",
];

/// A program.
pub struct Module {
    text: String,
}

/// The PTX of a drawn kernel, or a program of the repository.
pub fn draw(rng: &mut Rng) -> Module {
    let files = files();
    if rng.chance(50) && !files.is_empty() {
        return Module { text: rng.pick(files).clone() };
    }
    let drawn = (0..DRAWS).find_map(|_| match compile(&generate::kernel(rng).to_string()) {
        Outcome::Accepted(info, _) => Some(info.ptx.text.to_string()),
        _ => None,
    });
    Module { text: drawn.unwrap_or_default() }
}

/// The programs of the repository.
fn files() -> &'static [String] {
    static FILES: OnceLock<Vec<String>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut paths = Vec::new();
        for folder in FOLDERS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let is_short = |path: &std::path::PathBuf| path.metadata().is_ok_and(|data| data.len() <= LONGEST);
            let is_ptx = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "ptx");
            paths.extend(entries.map(|entry| entry.path()).filter(|path| is_ptx(path) && is_short(path)));
        }
        paths.sort();
        paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
    })
}

impl Original for Module {
    fn input(&self, rng: &mut Rng) -> String {
        text::broken(&self.text, WORDS, rng)
    }

    fn judge(&self, input: &str) -> Result<Answer, Wrong> {
        let loaded = Program::parse(input);
        let Ok(module) = parse(input) else {
            // The emulator may know of a program of which one function does not parse.
            return Ok(if loaded.is_ok() { "loads in part" } else { "does not parse" });
        };
        let _ = requirement(&module);
        let verified = verify(&module);
        let printed = module.to_string();
        let again = match parse(&printed) {
            Ok(again) => again,
            Err(error) => return Err(("printed-does-not-parse", format!("{error}\n{printed}"))),
        };
        if again.to_string() != printed {
            return Err(("no-fixed-point", printed));
        }
        if verify(&again).is_ok() != verified.is_ok() {
            return Err(("verifier-changes-its-mind", format!("{verified:?}\n{printed}")));
        }
        Ok(match (verified.is_ok(), loaded.is_ok()) {
            (false, _) => "does not verify",
            (true, false) => "is not loaded",
            (true, true) => "loads",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_repository_are_found() {
        assert!(files().len() > 40, "{}", files().len());
        assert!(files().iter().all(|text| Module { text: text.clone() }.judge(text).is_ok()));
    }
}
