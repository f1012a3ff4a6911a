//! Mutated PTX of real compilers: whatever becomes of it, the emulator answers with an error or a report, in bounded
//! time and memory.
//!
//! `TILEWRIGHT_FUZZ=FIRST,COUNT cargo test --release --test machine fuzz::` runs a campaign of
//! that many mutants from that seed on.

use std::path::Path;

use tilewright_emulator::{Arg, Launch, Memory, Options, Program};

/// Mutants of the ordinary test.
const COUNT: u64 = 250;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["nvcc", "triton"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "ptx") {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Words that stand where registers, numbers or labels do.
const WORDS: &[&str] = &[
    "%r1",
    "%rd1",
    "%f1",
    "%p1",
    "0",
    "-1",
    "4294967295",
    "0f7FC00000",
    "%tid.x",
    "_",
    "{%r1, %r2}",
    "[%rd1+4]",
    "bra",
    "ret",
    "@%p1",
    "bar.sync 0;",
    "trap;",
    "exit;",
    "call",
    ".shared",
    ".local",
    "mbarrier.inval.shared.b64 [%r1];",
    "cp.async.wait_all;",
    "%laneid",
];

/// A few changes of lines and words.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(lines.len());
        match random.below(8) {
            0 => {
                lines.remove(at);
                if lines.is_empty() {
                    lines.push(String::new());
                }
            }
            1 => {
                let line = lines[at].clone();
                lines.insert(random.below(lines.len()), line);
            }
            2 => {
                let other = random.below(lines.len());
                lines.swap(at, other);
            }
            3 => {
                // A branch somewhere else.
                let labels: Vec<String> =
                    lines.iter().filter_map(|l| l.strip_suffix(':')).map(|l| l.trim().to_owned()).collect();
                if !labels.is_empty() {
                    let label = &labels[random.below(labels.len())];
                    lines.insert(at, format!("bra {label};"));
                }
            }
            4 => {
                // A number becomes another.
                let digits: Vec<usize> =
                    lines[at].bytes().enumerate().filter(|(_, b)| b.is_ascii_digit()).map(|(i, _)| i).collect();
                if !digits.is_empty() {
                    let digit = digits[random.below(digits.len())];
                    lines[at].replace_range(digit..=digit, &random.below(10).to_string());
                }
            }
            5 | 6 => {
                let words: Vec<&str> = lines[at].split(' ').collect();
                let which = random.below(words.len());
                let word = WORDS[random.below(WORDS.len())];
                let changed: Vec<&str> =
                    words.iter().enumerate().map(|(i, w)| if i == which { word } else { *w }).collect();
                lines[at] = changed.join(" ");
            }
            _ => {
                let line = &mut lines[at];
                let spot = (0..=line.len())
                    .filter(|i| line.is_char_boundary(*i))
                    .nth(random.below(line.len() + 1))
                    .unwrap_or(0);
                line.insert(spot, char::from(b' ' + random.below(95) as u8));
            }
        }
    }
    lines.join("\n")
}

fn run(text: &str, random: &mut Random) {
    let Ok(program) = Program::parse(text) else { return };
    let entries: Vec<String> = program.entries().map(str::to_owned).collect();
    for entry in entries {
        let Ok(parameters) = program.parameters(&entry) else { continue };
        let memory = Memory::new(1 << 24);
        let args = parameters
            .iter()
            .map(|(_, bytes)| match bytes {
                8 => memory.alloc(4096, "buffer").map_or(Arg(vec![0; 8]), |base| {
                    memory.fill(base, 4096, (random.below(4) * 7) as u8).unwrap();
                    base.into()
                }),
                bytes => Arg((0..*bytes).map(|i| if i == 0 { random.below(64) as u8 } else { 0 }).collect()),
            })
            .collect();
        let block = program.required_block(&entry).ok().flatten().unwrap_or([64, 1, 1]);
        let launch = Launch { entry, grid: [2, 1, 1], block, dynamic_shared: 16384, args, ..Launch::default() };
        let options = Options { seed: random.next(), budget: 1 << 14, threads: Some(1), ..Options::default() };
        let _report = program.launch(&launch, &memory, &options);
    }
}

#[test]
fn mutants_of_real_programs() {
    let (first, count) = match std::env::var("TILEWRIGHT_FUZZ") {
        Ok(text) => {
            let (first, count) = text.split_once(',').expect("FIRST,COUNT");
            (first.parse().unwrap(), count.parse().unwrap())
        }
        Err(_) => (0, COUNT),
    };
    let corpus = corpus();
    assert!(corpus.len() > 25, "the corpus is there");
    for seed in first..first + count {
        let mut random = Random(seed);
        let (name, text) = &corpus[random.below(corpus.len())];
        let mutant = mutate(text, &mut random);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&mutant, &mut random)));
        if done.is_err() {
            let path = std::env::temp_dir().join(format!("tilewright-mutant-{seed}.ptx"));
            std::fs::write(&path, &mutant).unwrap();
            panic!("mutant {seed} of {name} panics; it is in {}", path.display());
        }
    }
}
