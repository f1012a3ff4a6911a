//! No text makes the parser, the printer or the verifier panic, hang or grow; what parses prints to a fixed point.

use crate::common::{instances, module_text};
use proptest::prelude::*;
use tilewright_ptx::{PtxVersion, Target, parse, requirement, verify};

/// Everything that a caller does with a text.
fn exercise(text: &str) {
    let Ok(module) = parse(text) else { return };
    let _ = requirement(&module);
    let verified = verify(&module);
    let printed = module.to_string();
    let again = parse(&printed).unwrap_or_else(|error| panic!("{error}\nprinted:\n{printed}\nfrom:\n{text}"));
    assert_eq!(again.to_string(), printed, "no fixed point, from:\n{text}");
    assert_eq!(verify(&again).is_ok(), verified.is_ok(), "the verifier changes its mind, from:\n{text}");
}

/// Words of PTX, good and bad.
const WORDS: &[&str] = &[
    ".version",
    "8.0",
    ".target",
    "sm_90a",
    ".address_size",
    "64",
    ".visible",
    ".extern",
    ".entry",
    ".func",
    "k",
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ":",
    "@",
    "!",
    "|",
    "+",
    "-",
    "=",
    "_",
    ".param",
    ".reg",
    ".shared",
    ".global",
    ".const",
    ".local",
    ".align",
    ".b8",
    ".b32",
    ".u64",
    ".f32",
    ".pred",
    ".v4",
    ".ptr",
    "%r",
    "%r1",
    "%p",
    "%rd2",
    "%tid",
    ".x",
    "x",
    "L",
    "add",
    "ld",
    "st",
    "mov",
    "bra",
    "call",
    "ret",
    "setp",
    "cvt",
    "mma",
    "cp",
    ".async",
    ".bulk",
    ".tensor",
    ".2d",
    ".global",
    ".u32",
    ".s32",
    ".rn",
    ".eq",
    ".and",
    ".v2",
    ".m16n8k16",
    ".row",
    ".col",
    ".bf16",
    ".sync",
    ".aligned",
    ".shared::cta",
    ".L2::cache_hint",
    "0",
    "1",
    "-1",
    "0x7fffffffffffffff",
    "0xffffffffffffffff",
    "18446744073709551616",
    "0f3F800000",
    "0d3FF0000000000000",
    "1e999",
    "4294967295",
    ".loc",
    ".file",
    "\"s\"",
    ".pragma",
    ".section",
    ".reqntid",
    ".branchtargets",
    ".callprototype",
    "generic",
    "WARP_SZ",
    "//",
    "/*",
    "*/",
    "\n",
    "\0",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn soup(words in prop::collection::vec(prop::sample::select(WORDS), 0..80)) {
        exercise(&words.join(" "));
    }

    /// Soup inside a kernel gets further.
    #[test]
    fn soup_in_a_body(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        exercise(&module_text("8.6", "sm_90a", &words.join(" ")));
    }

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    /// Real text with pieces replaced, doubled and dropped.
    #[test]
    fn mutations(seed in any::<u64>(), edits in prop::collection::vec((any::<u32>(), 0usize..4, prop::sample::select(WORDS)), 1..6)) {
        let pool = pool();
        let start = (seed as usize) % pool.len();
        let lines: Vec<&str> = pool.iter().cycle().skip(start).step_by(97).take(8).map(String::as_str).collect();
        let text = module_text("8.6", "sm_90a", &lines.join("\n"));
        let mut tokens: Vec<String> = text.split_inclusive([' ', ',', '.', ';', '[', ']', '{', '}', '\n']).map(str::to_owned).collect();
        for (place, kind, word) in edits {
            let at = place as usize % tokens.len();
            match kind {
                0 => tokens[at] = word.to_owned(),
                1 => tokens.insert(at, word.to_owned()),
                2 => { tokens.remove(at); }
                _ => { let copy = tokens[at].clone(); tokens.insert(at, copy); }
            }
        }
        exercise(&tokens.concat());
    }
}

fn pool() -> &'static [String] {
    static POOL: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    let (version, target) = (PtxVersion::new(8, 6), Target::sm_a(90));
    POOL.get_or_init(|| {
        let usable = instances().into_iter().filter(|instance| instance.alone && instance.need.met_by(version, target));
        usable.map(|instance| instance.text).collect()
    })
}

/// Sizes that would hurt if they were believed.
#[test]
fn large_numbers_cost_nothing() {
    let start = std::time::Instant::now();
    let head = ".version 8.0\n.target sm_90a\n.address_size 64\n";
    for line in [
        ".entry k() { .reg .b32 %r<4294967295>; }".to_owned(),
        format!(".entry k() {{ {} }}", ".reg .b32 %a<1000000>;".repeat(100)),
        // Each has an end of its scope.
        ".entry k() { .reg .b32 %a<1000000>; { .reg .b32 %a<1000000>; } ret; }".to_owned(),
        ".global .b8 x[18446744073709551615];".to_owned(),
        ".global .b8 x[9223372036854775807][9223372036854775807][9223372036854775807];".to_owned(),
        format!(".global .b8 x[4] = {}1{};", "{".repeat(100_000), "}".repeat(100_000)),
        format!(".entry k() {{ {} {} }}", "{".repeat(100_000), "}".repeat(100_000)),
        format!(".entry k() {{ add{}; }}", ".rn".repeat(100_000)),
        format!(".entry k() {{ add.u32 {}; }}", "{".repeat(100_000)),
        format!(".entry k() {{ @{} ret; }}", "!".repeat(100_000)),
        ".entry k() .maxntid 4294967295, 4294967295, 4294967295 { ret; }".to_owned(),
        format!(".global .align 4294967295 .b{} x;", "8".repeat(100_000)),
    ] {
        exercise(&format!("{head}{line}"));
    }
    // Minutes, where something takes the square of a million.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
