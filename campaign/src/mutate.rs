//! Broken source text into the compiler, broken PTX into the emulator: errors, never a panic, never a hang.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tilewright_emulator::{Launch, Memory, Options, Program};

use crate::campaign::Summary;
use crate::cases::timed;
use crate::compile::{Outcome, compile, message};
use crate::rng::Rng;
use crate::{compose, generate};

/// Longest time for one text.
const LIMIT: Duration = Duration::from_secs(10);

/// Words that are put in the place of others.
pub(crate) const WORDS: &[&str] = &[
    "kernel",
    "where",
    "schedule",
    "split",
    "merge",
    "by",
    "into",
    "->",
    "-",
    ",",
    ";",
    "0",
    "1",
    "18446744073709551615",
    "9223372036854775807",
    "2147483648",
    "N",
    "i",
    "sum",
    "fold",
    "init",
    "or",
    "if",
    "bind",
    "grid",
    "thread",
    "vectorize",
    "stage",
    "at",
    "resize",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "%",
    "== 0",
    "|",
    "<<",
    "pow",
    "1e400f32",
    "launch",
];

/// What else stands in products by tensor cores.
pub(crate) const WORDS_OF_PRODUCTS: &[&str] = &[
    "mma",
    "wgmma",
    "fragment",
    "inflight",
    "dot",
    "swizzle",
    "layout",
    "box",
    "multicast",
    "ring",
    "via",
    "tma",
    "shared",
    "registers",
    "roles",
    "warpgroup",
    "cluster",
    "persistent",
    "reorder",
    "m",
    "n",
    "k",
    "ko",
    "ki",
    "acc",
    "8",
    "64",
    "128",
    "256",
];

/// Splits text into words, numbers and single signs.
fn words(text: &str) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut last_is_word = false;
    for c in text.chars() {
        let is_word = c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '$');
        match list.last_mut() {
            Some(last) if is_word && last_is_word => last.push(c),
            _ if c == ' ' => {}
            _ => list.push(c.to_string()),
        }
        last_is_word = is_word;
    }
    list
}

/// A text with some words removed, repeated, exchanged or replaced.
fn broken(text: &str, other: &[&str], rng: &mut Rng) -> String {
    let mut list = words(text);
    for _ in 0..1 + rng.below(4) {
        if list.is_empty() {
            break;
        }
        let (a, b) = (rng.below(list.len()), rng.below(list.len()));
        match rng.below(6) {
            0 => drop(list.remove(a)),
            1 => {
                let word = list[a].clone();
                list.insert(b, word);
            }
            2 => list.swap(a, b),
            3 => list[a] = (*rng.pick(other)).to_owned(),
            4 => list.insert(a, (*rng.pick(other)).to_owned()),
            _ => {
                let word = list[b].clone();
                list[a] = word;
            }
        }
    }
    list.join(" ").replace("- >", "->").replace("= =", "==").replace(". .", "..")
}

/// Runs `count` broken kernels, and broken PTX of those that are accepted.
pub fn run(seed: u64, first: u64, count: u64) -> Summary {
    of((seed, first, count), WORDS, &|rng| generate::kernel(rng).to_string())
}

/// The same with products by tensor cores.
pub fn products(seed: u64, first: u64, count: u64) -> Summary {
    let words = [WORDS, WORDS_OF_PRODUCTS].concat();
    of((seed, first, count), &words, &|rng| compose::products::product(rng).kernel().to_string())
}

fn of((seed, first, count): (u64, u64, u64), words: &[&str], drawn: &dyn Fn(&mut Rng) -> String) -> Summary {
    let mut summary = Summary::default();
    for index in first..first + count {
        let mut rng = Rng::of_case(seed ^ 0x6d75_7461, index);
        let kernel = drawn(&mut rng);
        let text = if index % 3 == 2 { kernel.clone() } else { broken(&kernel, words, &mut rng) };
        let (outcome, used) = timed(|| compile(&text));
        summary.cases += 1;
        let mut fail = |class: &str, detail: String, text: &str| {
            *summary.failures.entry(class.to_owned()).or_default() += 1;
            summary.examples.push(format!("=== {class} (seed {seed}, case {index})\n{text}\n{detail}"));
        };
        if used > LIMIT {
            fail("slow", format!("{used:?}"), &text);
        }
        match outcome {
            Outcome::Panicked(message) => fail("panic", message, &text),
            Outcome::Accepted(info, _) => {
                summary.accepted += 1;
                let ptx = broken(
                    &info.ptx.text,
                    &["ld", "st", "b32", "b64", "%rd1", "0", "@p", ";", ":", "{", "}", "bra", "ret"],
                    &mut rng,
                );
                let emulated = || catch_unwind(AssertUnwindSafe(|| emulate(&ptx, info.launch.threads)));
                let (result, used) = timed(emulated);
                if let Err(payload) = result {
                    fail("emulator-panic", message(&*payload), &ptx);
                }
                if used > LIMIT {
                    fail("emulator-slow", format!("{used:?}"), &ptx);
                }
            }
            Outcome::Refused(errors, _) => {
                if errors.iter().any(|e| e.found.code == tilewright_compiler::diag::Code::TW9001) {
                    fail("internal", errors[0].found.title.clone(), &text);
                }
            }
            Outcome::NotTokens => *summary.counts.entry("not-tokens".to_owned()).or_default() += 1,
        }
    }
    summary
}

/// Loads PTX; what still loads is launched with arguments that point nowhere.
fn emulate(ptx: &str, threads: u32) {
    let Ok(program) = Program::parse(ptx) else { return };
    let memory = Memory::new(1 << 16);
    let Some(entry) = program.entries().next().map(str::to_owned) else { return };
    let budget = Options { budget: 1 << 16, threads: Some(1), ..Options::default() };
    for count in 0..12_usize {
        let args = (0..count).map(|k| (k as u64 * 3).into()).collect();
        let launch =
            Launch { entry: entry.clone(), grid: [2, 1, 1], block: [threads.max(1), 1, 1], args, ..Launch::default() };
        if program.launch(&launch, &memory, &budget).is_ok() {
            return;
        }
    }
}
