//! The table of nests (the one of the compiler, `collectives/tests/conformance.rs`) in the language: each nest is a
//! kernel, and the threads of an iteration are those that write its elements when the kernel runs. Rows that no kernel
//! says stand at the end, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{finished, runs};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;

/// A loop: what its iterations are given to, how many they are, and whether the row counts it. Others only tell threads
/// of one iteration of the row apart: the language gives each element to one thread.
type Loop = (&'static str, u64, bool);

const COLUMN: &str = "unit column { domain: [block / 32, 32], box: [block / 32, 1] }";
const MOD8: &str = "unit mod8 { domain: [8], box: [1] }";
const OCT: &str = "unit mod8 { domain: [8], box: [1] } unit oct { domain: [block / 8, 8], box: [1, 8] }";

struct Row {
    id: &'static str,
    /// Blocks of a cluster and threads of a block.
    shape: (u64, u64),
    units: &'static str,
    loops: &'static [Loop],
    /// Of the loops that the row counts: threads from one iteration to the next.
    pitches: &'static [u64],
    /// Of the first iteration: the first thread of each run, and its length.
    runs: &'static [(u64, u64)],
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { id: "A01", shape: (1, 256), units: "", loops: &[("thread", 256, false)], pitches: &[], runs: &[(0, 256)] },
    Row { id: "A02", shape: (1, 256), units: "", loops: &[("warpgroup", 2, true), ("thread", 128, false)], pitches: &[128], runs: &[(0, 128)] },
    Row { id: "A04", shape: (1, 256), units: "", loops: &[("warpgroup", 2, true), ("warp", 4, true), ("thread", 32, false)], pitches: &[128, 32], runs: &[(0, 32)] },
    Row { id: "A05", shape: (1, 256), units: "", loops: &[("warpgroup", 2, true), ("warp", 4, true), ("8 thread", 4, true), ("thread", 8, false)],
        pitches: &[128, 32, 8], runs: &[(0, 8)] },
    Row { id: "A07", shape: (1, 256), units: "", loops: &[("thread", 256, true)], pitches: &[1], runs: &[(0, 1)] },
    Row { id: "A08", shape: (1, 256), units: "", loops: &[("thread", 200, true)], pitches: &[1], runs: &[(0, 1)] },
    Row { id: "A10", shape: (1, 256), units: "", loops: &[("warpgroup", 1, true), ("thread", 128, false)], pitches: &[0], runs: &[(0, 128)] },
    // Ranges are given to their units one by one.
    Row { id: "A11", shape: (1, 256), units: "", loops: &[("warp 2..5", 3, false), ("thread", 32, false)], pitches: &[], runs: &[(64, 96)] },
    Row { id: "A13", shape: (1, 256), units: "", loops: &[("warp 1..5", 4, true), ("thread", 32, false)], pitches: &[32], runs: &[(32, 32)] },
    Row { id: "A16", shape: (1, 256), units: COLUMN, loops: &[("column", 32, true), ("warp", 8, true)], pitches: &[1, 32], runs: &[(0, 1)] },
    Row { id: "A17", shape: (1, 256), units: COLUMN, loops: &[("warp 0..4", 4, false), ("column", 32, true)], pitches: &[1],
        runs: &[(0, 1), (32, 1), (64, 1), (96, 1)] },
    Row { id: "A19", shape: (1, 256), units: "", loops: &[("23 thread", 10, true), ("thread", 23, false)], pitches: &[23], runs: &[(0, 23)] },
    Row { id: "A20", shape: (2, 384), units: "", loops: &[("cta", 2, false), ("thread", 384, false)], pitches: &[], runs: &[(0, 768)] },
    Row { id: "A22", shape: (2, 384), units: "", loops: &[("cta", 2, true), ("warpgroup", 3, true), ("thread", 128, false)], pitches: &[384, 128], runs: &[(0, 128)] },
    Row { id: "A23", shape: (2, 384), units: "", loops: &[("cta", 2, true), ("warp 0..1", 1, true), ("thread", 32, false)], pitches: &[384, 0], runs: &[(0, 32)] },
    // Warps 4 to 12 are warpgroups 1 and 2.
    Row { id: "A25", shape: (2, 384), units: "", loops: &[("cta", 2, false), ("warpgroup 1..3", 2, true), ("thread", 128, false)], pitches: &[128],
        runs: &[(128, 128), (512, 128)] },
    Row { id: "A26", shape: (2, 384), units: "", loops: &[("warpgroup 1..3", 2, true), ("cta", 2, true), ("thread", 128, false)], pitches: &[128, 384], runs: &[(128, 128)] },
    Row { id: "A28", shape: (2, 384), units: "", loops: &[("cta", 2, true), ("3 warp", 4, true), ("thread", 96, false)], pitches: &[384, 96], runs: &[(0, 96)] },
    Row { id: "A29", shape: (2, 384), units: "",
        loops: &[("cta", 2, true), ("warpgroup", 3, true), ("warp", 4, true), ("8 thread", 4, true), ("thread", 8, false)],
        pitches: &[384, 128, 32, 8], runs: &[(0, 8)] },
    Row { id: "A31", shape: (2, 384), units: COLUMN, loops: &[("cta", 2, true), ("column", 32, true), ("warp", 12, false)], pitches: &[384, 1],
        runs: &[(0, 1), (32, 1), (64, 1), (96, 1), (128, 1), (160, 1), (192, 1), (224, 1), (256, 1), (288, 1), (320, 1), (352, 1)] },
    Row { id: "A32", shape: (2, 384), units: "", loops: &[("cta", 2, true), ("5 thread", 76, true), ("thread", 5, false)], pitches: &[384, 5], runs: &[(0, 5)] },
    Row { id: "A34", shape: (4, 128), units: "", loops: &[("cta", 4, true), ("thread", 128, false)], pitches: &[128], runs: &[(0, 128)] },
    // Several axes of blocks count together: neighbours, and every second one.
    Row { id: "A37", shape: (4, 128), units: "", loops: &[("cta", 2, true), ("cta", 2, true), ("thread", 128, false)], pitches: &[256, 128], runs: &[(0, 128)] },
    Row { id: "A38", shape: (4, 128), units: "", loops: &[("cta", 2, false), ("cta", 2, true), ("thread", 128, false)], pitches: &[128], runs: &[(0, 128), (256, 128)] },
    Row { id: "A40", shape: (4, 128), units: "", loops: &[("cta", 2, true), ("cta", 2, true), ("thread", 128, false)], pitches: &[256, 128], runs: &[(0, 128)] },
    Row { id: "A41", shape: (4, 128), units: "", loops: &[("cta", 2, false), ("cta", 2, true), ("warp", 4, true), ("thread", 32, false)], pitches: &[128, 32],
        runs: &[(0, 32), (256, 32)] },
    Row { id: "A43", shape: (4, 128), units: "", loops: &[("cta", 4, false), ("warp", 4, true), ("thread", 32, false)], pitches: &[32],
        runs: &[(0, 32), (128, 32), (256, 32), (384, 32)] },
    Row { id: "A44", shape: (4, 128), units: "", loops: &[("cta", 4, false), ("thread", 128, true)], pitches: &[1], runs: &[(0, 1), (128, 1), (256, 1), (384, 1)] },
    Row { id: "A46", shape: (4, 128), units: "", loops: &[("cta", 4, true), ("warp", 4, true), ("8 thread", 4, true), ("thread", 8, true)],
        pitches: &[128, 32, 8, 1], runs: &[(0, 1)] },
    Row { id: "A47", shape: (4, 128), units: MOD8, loops: &[("cta", 4, false), ("mod8", 8, true), ("warp", 4, true), ("thread", 4, false)], pitches: &[1, 32],
        runs: &[(0, 1), (8, 1), (16, 1), (24, 1), (128, 1), (136, 1), (144, 1), (152, 1), (256, 1), (264, 1), (272, 1), (280, 1), (384, 1), (392, 1), (400, 1), (408, 1)] },
    Row { id: "A49", shape: (1, 384), units: OCT, loops: &[("mod8", 8, true), ("128 thread", 3, true), ("oct", 16, true)], pitches: &[1, 128, 8], runs: &[(0, 1)] },
    // Warp 1 of warps 2 and 3.
    Row { id: "A50", shape: (1, 512), units: "", loops: &[("warpgroup", 4, true), ("warp 3..4", 1, true), ("thread", 32, false)], pitches: &[128, 0], runs: &[(96, 32)] },
    Row { id: "N25", shape: (1, 256), units: "", loops: &[("warpgroup", 2, true), ("warp 1..2", 1, true), ("thread", 32, false)], pitches: &[128, 0], runs: &[(32, 32)] },
    // Neighbours of the rows: pairs of blocks among eight, and units that are made of `cluster`.
    Row { id: "blocks 2 apart", shape: (8, 64), units: "", loops: &[("cta", 2, true), ("cta", 2, false), ("cta", 2, true), ("warp", 2, true), ("thread", 32, false)],
        pitches: &[256, 64, 32], runs: &[(0, 32), (128, 32)] },
    Row { id: "mod 32 of a cluster", shape: (2, 256), units: "unit every { domain: [cluster * 16], box: [1] }",
        loops: &[("cta", 2, true), ("every", 32, true), ("thread", 8, false)], pitches: &[256, 1],
        runs: &[(0, 1), (32, 1), (64, 1), (96, 1), (128, 1), (160, 1), (192, 1), (224, 1)] },
    Row { id: "by the blocks of a cluster", shape: (2, 128), units: "unit half { domain: [cluster, block], box: [2 / cluster, block / 2] }",
        loops: &[("cta", 2, true), ("half", 2, true), ("thread", 64, false)], pitches: &[128, 64], runs: &[(0, 64)] },
    Row { id: "half of a block", shape: (2, 128), units: "unit half { domain: [cluster, block], box: [1, block / 2] }",
        loops: &[("cta", 2, true), ("half", 2, true), ("thread", 64, false)], pitches: &[128, 64], runs: &[(0, 64)] },
];

/// A kernel that runs a nest for each element of `x`; the first axis has an extent that facts bound, if that is said.
fn kernel(shape: (u64, u64), units: &str, loops: &[(&str, u64)], bounded: Option<u64>) -> String {
    let names: Vec<String> = (0..loops.len()).map(|n| format!("a{n}")).collect();
    let extent = |(n, l): (usize, &(&str, u64))| match bounded {
        Some(_) if n == 0 => "C".to_owned(),
        _ => l.1.to_string(),
    };
    let extents: Vec<String> = loops.iter().enumerate().map(extent).collect();
    let binds: Vec<String> = names.iter().zip(loops).map(|(name, l)| format!("bind {name}: {};", l.0)).collect();
    let (all, of) = ([&["M".to_owned()], &extents[..]].concat(), [&["b".to_owned()], &names[..]].concat());
    let facts = bounded.map_or_else(String::new, |most| format!("where C <= {most}"));
    let cluster = if shape.0 == 1 { String::new() } else { format!("cluster({}), ", shape.0) };
    format!(
        "kernel Nest(x: u32[M]) -> (y: u32[{}]) {facts} {{
            y[{}] = x[b];
            {units}
            launch {cluster}threads({});
            schedule y {{ bind b: grid; {} }}
        }}",
        all.join(", "),
        of.join(", "),
        shape.1,
        binds.join(" ")
    )
}

/// The number in the cluster of the thread that writes each element of an output: the kernel stores that instead.
fn writers(kernel: &Compiled, output: &str, dims: &[i64], block: u64) -> Vec<u64> {
    let mut info = kernel.info.clone().expect("no error");
    let mut text = String::new();
    for line in info.ptx.text.lines() {
        if line.trim() == "{" {
            text.push_str("{\n    .reg .b32 %who<2>;\n");
            continue;
        }
        if let Some((head, _)) = line.split_once("], %r").filter(|(head, _)| head.contains("st.global.b32 [")) {
            text.push_str("    mov.u32 %who0, %cluster_ctarank;\n");
            text.push_str(&format!("    mul.lo.s32 %who0, %who0, {block};\n"));
            text.push_str("    mov.u32 %who1, %tid.x;\n    add.s32 %who0, %who0, %who1;\n");
            text.push_str(&format!("{head}], %who0;\n"));
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    if info.launch.cluster == 1 {
        text = text.replace("mov.u32 %who0, %cluster_ctarank;", "mov.u32 %who0, 0;");
    }
    info.ptx.text = text.into();
    let device = Device::emulator(EmulatorOptions::default());
    let trial = Trial::new(&info, dims, 1, &device).unwrap();
    trial.launch(&device).unwrap_or_else(|e| panic!("{e}\n{}", info.ptx.text));
    let bytes = trial.read(output).unwrap();
    bytes.chunks(4).map(|four| u32::from_ne_bytes(four.try_into().unwrap()).into()).collect()
}

/// The threads of each combination of the loops that count.
fn sets(loops: &[(u64, bool)], writers: &[u64]) -> BTreeMap<Vec<u64>, BTreeSet<u64>> {
    let mut found: BTreeMap<Vec<u64>, BTreeSet<u64>> = BTreeMap::new();
    for (at, thread) in (0..).zip(writers) {
        let mut rest: u64 = at;
        let mut values = Vec::new();
        for (extent, counts) in loops.iter().rev() {
            if *counts {
                values.insert(0, rest % extent);
            }
            rest /= extent;
        }
        assert!(found.entry(values).or_default().insert(*thread), "one thread, two elements of an iteration");
    }
    found
}

fn is_of(row: &str, found: &BTreeMap<Vec<u64>, BTreeSet<u64>>, pitches: &[u64], runs: &[(u64, u64)]) {
    for (values, threads) in found {
        assert_eq!(values.len(), pitches.len(), "{row}");
        let moved: u64 = values.iter().zip(pitches).map(|(v, p)| v * p).sum();
        let expected: BTreeSet<u64> = runs.iter().flat_map(|(first, n)| first + moved..first + moved + n).collect();
        assert_eq!(*threads, expected, "{row} at {values:?}");
    }
}

#[test]
fn iterations_are_run_by_the_threads_of_the_table() {
    for row in ROWS {
        let loops: Vec<(&str, u64)> = row.loops.iter().map(|l| (l.0, l.1)).collect();
        let source = kernel(row.shape, row.units, &loops, None);
        let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{}: {source}\n{report}", row.id));
        let counted: Vec<(u64, bool)> = row.loops.iter().map(|l| (l.1, l.2)).collect();
        let found = sets(&counted, &writers(&kernel, "y", &[1], row.shape.1));
        let iterations: u64 = row.loops.iter().filter(|l| l.2).map(|l| l.1).product();
        assert_eq!(found.len() as u64, iterations, "{}", row.id);
        is_of(row.id, &found, row.pitches, row.runs);
        runs(&source, &kernel, &[&[1], &[3]], 1);
    }
}

/// The table of units in `docs/language.md`.
#[test]
fn the_units_of_the_page_are_run_by_the_threads_that_it_says() {
    let page = include_str!("../../docs/language.md");
    let (_, rows) = page.split_once("| bind | iterations | threads of iteration 1 |\n| --- | --- | --- |\n").unwrap();
    let rows: Vec<&str> = rows.lines().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 9, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (_, unit) = cells[1].trim_matches('`').split_once(": ").unwrap();
        let iterations: u64 = cells[2].parse().unwrap();
        let number = |text: &str| text.trim().parse::<u64>().unwrap();
        let expected: BTreeSet<u64> = match cells[3].split_once(" to ") {
            Some((first, last)) => (number(first)..=number(last)).collect(),
            None => cells[3].split(',').map(number).collect(),
        };
        // Threads of one iteration are told apart by their warps, or are neighbours.
        let inner = if unit == "column" { ("warp", 8) } else { ("thread", expected.len() as u64) };
        let shape = if unit == "cta" { (2, 256) } else { (1, 256) };
        let mut loops = vec![(unit, iterations)];
        if unit != "thread" {
            loops.push(inner);
        }
        let source = kernel(shape, COLUMN, &loops, None);
        let compiled = finished(&source).unwrap_or_else(|(_, report)| panic!("{source}\n{report}"));
        let counted: Vec<(u64, bool)> = (0..).zip(&loops).map(|(n, l)| (l.1, n == 0)).collect();
        let found = sets(&counted, &writers(&compiled, "y", &[1], shape.1));
        assert_eq!(found[&vec![1]], expected, "{row}");
    }
}

/// A35: three of the four blocks of a cluster.
#[test]
fn blocks_past_the_last_iteration_are_idle() {
    let source = kernel((4, 128), "", &[("cta", 3), ("thread", 128)], Some(4));
    let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
    let found = sets(&[(3, true), (128, false)], &writers(&kernel, "y", &[1, 3], 128));
    assert_eq!(found.len(), 3);
    is_of("A35", &found, &[128], &[(0, 128)]);
    runs(&source, &kernel, &[&[1, 3], &[2, 4], &[1, 1]], 1);
}

/// N01, N02, N04 and N08: roles count from their first warp.
#[test]
fn roles_run_what_is_their_own() {
    let source = |consumer: &str| {
        format!(
            "kernel Three(x: u32[M]) -> (p: u32[M, 32], s: u32[M, 3, 32], c: u32[M, 2, 4, 32]) {{
                p[b, t] = x[b];
                s[b, w, t] = x[b] + 1;
                c[b, g, w, t] = x[b] + 2;
                launch roles {{ producer: warp, spare: 3 warp, consumer: 2 warpgroup }};
                schedule p by producer {{ bind b: grid; bind t: thread; }}
                schedule s by spare {{ bind b: grid; bind w: warp; bind t: thread; }}
                schedule c by consumer {{ bind b: grid; {consumer} bind t: thread; }}
            }}"
        )
    };
    let groups = source("bind g: warpgroup; bind w: warp;");
    let kernel = finished(&groups).unwrap_or_else(|(_, report)| panic!("{report}"));
    let of = |kernel: &Compiled, output: &str, loops: &[(u64, bool)]| sets(loops, &writers(kernel, output, &[1], 384));
    is_of("N02", &of(&kernel, "p", &[(32, false)]), &[], &[(0, 32)]);
    is_of("the spare ones", &of(&kernel, "s", &[(3, true), (32, false)]), &[32], &[(32, 32)]);
    is_of("N01", &of(&kernel, "c", &[(2, true), (4, false), (32, false)]), &[128], &[(128, 128)]);
    runs(&groups, &kernel, &[&[1], &[3]], 1);
    // Warps 2 to 6 of the role are threads 192 to 319.
    let range = source("bind w: warp 2..6;");
    let kernel = finished(&range).unwrap_or_else(|(_, report)| panic!("{report}"));
    let writers = writers(&kernel, "c", &[1], 384);
    let found: BTreeSet<u64> = writers.into_iter().collect();
    assert_eq!(found, (192..320).collect(), "N04");
    let beyond = source("bind g, w: warp 0..9;");
    let (codes, report) = finished(&beyond).map_or_else(|refused| refused, |_| panic!("N08"));
    assert!(codes == [Code::TW0602] && report.contains("role `consumer`"), "{report}");
}

/// N13: warpgroups of a role are four of its warps each, counted from its first one, wherever that is; nothing of the
/// block's own warpgroups is said of them, and what needs one of those is refused.
#[test]
fn a_role_may_begin_inside_a_warpgroup() {
    let of = |roles: &str| {
        format!(
            "kernel Two(x: u32[M, N]) -> (p: u32[M, 7, 32], c: u32[M, 2, 4, 32], z: u32[M, 2]) where N >= 1 {{
                p[b, w, t] = x[b, 0];
                c[b, g, w, t] = x[b, 0] + 2;
                z[b, g] = sum(|j| x[b, j]);
                launch roles {{ {roles} }};
                schedule p by first {{ bind b: grid; bind w: warp; bind t: thread; }}
                schedule c by second {{ bind b: grid; bind g: warpgroup; bind w: warp; bind t: thread; }}
                schedule z by second {{ split j by 128 -> q, t; reorder b, g, t, q; bind b: grid; bind g: warpgroup; bind t: thread; reduce t; }}
            }}"
        )
    };
    let source = of("first: 7 warp, second: 8 warp");
    let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
    let found = sets(&[(2, true), (4, true), (32, false)], &writers(&kernel, "c", &[1, 1], 480));
    is_of("N13", &found, &[128, 32], &[(224, 32)]);
    runs(&source, &kernel, &[&[1, 1], &[3, 200], &[2, 1000]], 3);
    // Seven and nine.
    let source = of("first: 7 warp, second: 9 warp");
    let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
    runs(&source, &kernel, &[&[1, 1], &[3, 200]], 3);
    for (second, code) in [("2 warpgroup", Code::TW0506), ("9 warp regs(40)", Code::TW0507)] {
        let refused = finished(&of(&format!("first: 7 warp, second: {second}")));
        let (codes, report) = refused.map_or_else(|refused| refused, |_| panic!("{second}"));
        assert!(codes == [code], "{report}");
    }
}

/// A row that is refused: its name, cluster and block, units, loops, code, and words of the message.
type Refused = (&'static str, (u64, u64), &'static str, &'static [(&'static str, u64)], Code, &'static str);

#[rustfmt::skip]
const REFUSED: &[Refused] = &[
    ("R01", (1, 256), "", &[("warp", 9), ("thread", 32)], Code::TW0602, "9 warps are needed, and the block has 8"),
    ("R02", (1, 256), "", &[("warpgroup", 3), ("thread", 128)], Code::TW0602, "3 warpgroups are needed, and the block has 2"),
    // A second axis of warps counts with the first one; a range of them is a loop of its own.
    ("R04", (1, 256), "", &[("warp", 8), ("warp 0..2", 2), ("thread", 32)], Code::TW0602, "a warp has 1"),
    ("R05", (1, 256), "", &[("thread", 256), ("thread 0..2", 2)], Code::TW0602, "a thread has 1"),
    ("R07", (1, 256), "", &[("warp", 8), ("2 warp", 1), ("thread", 32)], Code::TW0602, "a warp has 0"),
    ("R08", (1, 256), "unit quadpair { domain: [block / 16, 16], box: [2, 4] }", &[("warpgroup", 2), ("quadpair", 4)], Code::TW0606, "2 directions"),
    ("R10", (1, 256), "", &[("warp", 8), ("warp 2..4", 2), ("thread", 32)], Code::TW0602, "a warp has 1"),
    ("R11", (1, 256), "", &[("warp 3..3", 1), ("thread", 32)], Code::TW0202, "the end of a range of units"),
    ("R26", (2, 384), "", &[("warp 0..1", 1), ("thread", 32)], Code::TW0610, "would each write the same elements"),
    ("R31", (2, 384), "", &[("cta", 3), ("thread", 384)], Code::TW0610, "a cluster has 2 blocks, and `y` gives iterations to 3"),
    ("R32", (2, 384), "unit pair { domain: [cluster / 2, 2, block], box: [2, 1, block] }", &[("cta", 2), ("pair", 1), ("thread", 384)], Code::TW0606, "its box is 2 of 1"),
    ("R34", (2, 384), "", &[("cta", 2), ("warpgroup 1..4", 3), ("thread", 128)], Code::TW0602, "the block has 3"),
    ("R38", (4, 128), "", &[("cta", 5), ("thread", 128)], Code::TW0610, "gives iterations to 5"),
    ("R40", (4, 128), "", &[("thread", 128)], Code::TW0610, "would each write the same elements"),
    ("R41", (1, 384), "unit mod3 { domain: [3], box: [1] } unit mod2 { domain: [2], box: [1] }", &[("mod3", 3), ("mod2", 2), ("thread", 64)], Code::TW0606, "do not nest"),
    ("R43", (1, 256), "", &[("7 thread", 36), ("thread", 8)], Code::TW0602, "a 7 thread has 7"),
    ("R44", (4, 128), "", &[("warp", 4), ("thread", 32)], Code::TW0610, "would each write the same elements"),
    ("R46", (4, 128), "", &[("cta", 4), ("thread", 129)], Code::TW0602, "129 threads are needed, and the block has 128"),
    ("R47", (1, 256), MOD8, &[("3 thread", 4), ("mod8", 3)], Code::TW0606, "no box"),
    ("N14", (1, 100), "", &[("warp", 3), ("thread", 32)], Code::TW0603, "100 threads is not made of whole warps"),
    ("N15", (3, 128), "", &[("cta", 3), ("thread", 128)], Code::TW0610, "a cluster has 1, 2, 4 or 8 blocks"),
    ("N34", (32, 128), "", &[("cta", 32), ("thread", 128)], Code::TW0202, "32"),
    ("N35", (1, 2048), "", &[("thread", 2048)], Code::TW0202, "2048"),
];

#[test]
fn nests_are_refused_for_the_reason_of_the_table() {
    for (id, shape, units, loops, code, words) in REFUSED {
        let source = kernel(*shape, units, loops, None);
        let (codes, report) = finished(&source).map_or_else(|refused| refused, |_| panic!("{id} is accepted"));
        assert!(codes == [*code] && report.contains(words), "{id}: {source}\n{report}");
    }
}

/// Rows that no kernel says, with the reason.
const NOT_SAID: &[(&str, &[&str])] = &[
    ("units of a range run its iterations one by one, so that no unit is taken across them", &["A14", "R14"]),
    (
        "a kernel names no instruction and no unit that one needs: the compiler chooses those that fit; the model has these rows",
        &["R13", "R16", "R17", "R19", "R20", "R22", "R23", "R25", "R28", "R29", "R35", "R37", "F01", "F02", "F04"],
    ),
    ("a stage has one role, for all of its loops", &["N07", "N10", "N11"]),
];

/// Each row of the table is somewhere.
#[test]
fn every_row_is_said_or_has_a_reason() {
    let said = ROWS.iter().map(|row| row.id).chain(REFUSED.iter().map(|row| row.0)).chain(["A35"]);
    let not = NOT_SAID.iter().flat_map(|(_, rows)| rows.iter().copied());
    let mut all: Vec<&str> = said.chain(not).filter(|id| id.starts_with(['A', 'R', 'F'])).collect();
    let before = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), before, "a row twice");
    assert_eq!(all.len(), 34 + 32 + 3, "{all:?}");
}
