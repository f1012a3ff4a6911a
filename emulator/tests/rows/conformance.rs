//! The conformance files of everything that is no arithmetic: the programs of this test, as data.
//!
//! Of the programs of a family those are kept that have a form or a modifier which none before them has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tilewright_conformance::file::{Case, Family, Map, Param};
use tilewright_emulator::Arg;
use tilewright_kernel::tensor_map::{ENCODED_BYTES, TensorMap};

use super::demo::{Demo, Key, PROLOGUE, ROW, keys};
use super::{control, copies, is_ours, matrix, memory, special, sync, warp, wgmma};

/// Families: name, what is asked, the programs.
fn families() -> Vec<(&'static str, &'static str, Vec<Demo>)> {
    let part = |demos: &[Demo], word: &str, with: bool| -> Vec<Demo> {
        demos.iter().filter(|demo| demo.body.contains(word) == with).cloned().collect()
    };
    let (sync, copies, matrix) = (sync::demos(), copies::demos(), matrix::demos());
    let (by_threads, bulk) = (part(&copies, "cp.async.bulk", false), part(&copies, "cp.async.bulk", true));
    let (peers, by_threads) = (part(&by_threads, "mapa", true), part(&by_threads, "mapa", false));
    let products = part(&matrix, "mma", true);
    let [registers, crowds] = special::parts();
    vec![
        (
            "memory",
            "loads and stores of each type, vector, space and cache operation; addresses; hints",
            memory::demos(),
        ),
        (
            "barriers",
            "barriers of blocks and clusters, fences, memory of other blocks",
            part(&sync, "mbarrier.", false),
        ),
        ("mbarriers", "barriers in shared memory: arrivals, transactions, phases", part(&sync, "mbarrier.", true)),
        ("copies", "copies by threads (cp.async), complete and with zeros", by_threads),
        ("bulk_copies", "copies in bulk and prefetches", part(&bulk, ".tensor", false)),
        ("tensor_copies", "copies of tiles by tensor maps, of each rank", part(&bulk, ".tensor", true)),
        ("peers", "stores and reductions in another block's shared memory, which complete there", peers),
        ("warp", "votes, shuffles, matches, reductions and elections of a warp", warp::demos()),
        ("fragments", "ldmatrix, stmatrix, movmatrix", part(&matrix, "mma", false)),
        ("mma", "products of a warp (mma.sync) of small numbers, which are exact", part(&products, "wmma", false)),
        ("wmma", "products of a warp (wmma) of small numbers, which are exact", part(&products, "wmma", true)),
        (
            "wgmma",
            "products of a warpgroup of small numbers, which are exact; of the widths a few",
            widths(wgmma::demos()),
        ),
        ("special", "special registers: who a thread is, and that time goes on", registers),
        ("contended", "atomic operations of many threads on one place, whose results no order changes", crowds),
        ("control", "branches, calls, ends of threads, room on the stack", control::demos()),
    ]
}

/// Programs of a warpgroup's products with 8, 16 or 64 columns, and the first that has 256: their factors are in the
/// text, of all widths many megabytes.
fn widths(demos: Vec<Demo>) -> Vec<Demo> {
    let has = |demo: &Demo, columns: u32| demo.body.contains(&format!(".m64n{columns}k"));
    let widest = demos.iter().find(|demo| has(demo, 256)).cloned();
    demos.into_iter().filter(|demo| [8, 16, 64].iter().any(|columns| has(demo, *columns))).chain(widest).collect()
}

/// What is in the lines of programs that no file has, since a GPU need not do what they show.
const LEFT_OUT: [(&str, &str); 4] = [
    (".f16.satfinite", "of products of floats, PTX has it before version 6.5 only"),
    (".f32.satfinite", "as above"),
    ("brkpt", "it stops the program if no debugger is there"),
    ("activemask", "the manual does not say which lanes of a branch run together"),
];

/// Where x and y seem to be when arguments are described.
const PLACES: [(u64, &str); 2] = [(1 << 20, "x"), (1 << 30, "y")];

/// What a parameter is, from its bytes for buffers at [`PLACES`].
fn param(arg: &Arg) -> Param {
    let whole: Option<[u8; 8]> = arg.0.as_slice().try_into().ok();
    match whole.map(u64::from_le_bytes) {
        Some(address) if address == PLACES[0].0 => return Param::X,
        Some(address) if address == PLACES[1].0 => return Param::Y,
        _ => {}
    }
    let map = <&[u8; ENCODED_BYTES]>::try_from(arg.0.as_slice()).ok().and_then(|bytes| TensorMap::decode(bytes).ok());
    let of = |address: u64| PLACES.into_iter().rfind(|(place, _)| *place <= address);
    match map.and_then(|map| Some((of(map.address)?, map))) {
        Some(((place, name), map)) => Param::Map(Map::of(&map, name, map.address - place)),
        None => Param::Bytes(arg.0.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

/// What is declared before a kernel and its body, with names that no other kernel's have.
fn renamed(demo: &Demo, number: usize) -> (String, String) {
    let module = tilewright_ptx::parse(&format!(".version 8.8\n.target sm_90a\n.address_size 64\n{}", demo.before))
        .expect("declarations of a program that runs");
    let variables = module.variables.iter().map(|variable| variable.name.clone());
    let names: BTreeSet<String> = variables.chain(module.functions.iter().map(|f| f.name.clone())).collect();
    let rename = |text: &str| {
        let mut out = String::with_capacity(text.len());
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_$%.".contains(c);
        let mut rest = text;
        while let Some(start) = rest.find(is_word) {
            let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |end| start + end);
            out.push_str(&rest[..end]);
            if names.contains(&rest[start..end]) {
                let _ = write!(out, "_{number}");
            }
            rest = &rest[end..];
        }
        out + rest
    };
    (rename(&demo.before), rename(&demo.body))
}

/// The instructions of a program that are of this test's rows, and what they show.
fn shown(demo: &Demo) -> (Vec<String>, Vec<Key>) {
    let text = demo.text(None);
    let module = tilewright_ptx::parse(&text).expect("a program that runs");
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len() - demo.body.lines().count() - 2;
    let (mut told, mut all) = (Vec::new(), Vec::new());
    for function in &module.functions {
        function.for_each_inst(&mut |inst| {
            let line = inst.line as usize;
            if is_ours(inst.op) && line > first && line < lines.len() - 1 {
                all.extend(keys(inst));
                told.push(lines[line - 1].trim().trim_end_matches(';').to_owned());
            }
        });
    }
    // Where a program loads and stores besides, that is not what it shows.
    let besides = ["ld.global.b32", "st.global.b32", "ld.shared.b32", "st.shared.b32", "bra", "ld.const", "mov"];
    let own: Vec<String> =
        told.iter().filter(|line| !besides.iter().any(|word| line.contains(word))).cloned().collect();
    let mut told = if own.is_empty() { told } else { own };
    told.dedup();
    (told, all)
}

fn family(name: &str, about: &str, demos: &[Demo]) -> Family {
    let (mut ptx, mut cases, mut seen) = (String::new(), Vec::new(), BTreeSet::new());
    for demo in demos {
        let (mut instructions, keys) = shown(demo);
        let new = keys.into_iter().fold(false, |new, key| seen.insert(key) | new);
        let left_out = LEFT_OUT.iter().any(|(word, _)| demo.body.contains(word));
        // Programs of these families show no row that others do not.
        let new = new || ["special", "contended"].contains(&name);
        if !new || demo.ends.is_some() || left_out {
            continue;
        }
        instructions.truncate(6);
        let entry = format!("{name}_{}", cases.len());
        let (before, body) = renamed(demo, cases.len());
        let _ = write!(
            ptx,
            "\n{before}.visible .entry {entry}(.param .u64 x, .param .u64 y{}) {} {{\n{PROLOGUE}{body}ret;\n}}\n",
            demo.params, demo.directives
        );
        let x = demo.x();
        let row = |thread| {
            let words: Vec<String> = (demo.want)(thread, &x).iter().map(|word| format!("{word:x}")).collect();
            (String::new(), words.join(" "))
        };
        let (at_x, at_y) = (PLACES[0].0, PLACES[1].0);
        cases.push(Case {
            entry,
            instructions,
            formats: Vec::new(),
            blocks: demo.blocks as u32,
            threads: (demo.block / demo.blocks) as u32,
            params: [Param::X, Param::Y].into_iter().chain((demo.args)(at_x, at_y).iter().map(param)).collect(),
            slot: 4,
            x: ROW,
            y: ROW,
            before: 0xee,
            mixed: true,
            rows: (0..demo.block).map(row).collect(),
        });
    }
    Family {
        family: name.to_owned(),
        about: about.to_owned(),
        expected: "a formula of each program's own, by what the manual says of it (emulator/tests/rows)".to_owned(),
        cases,
        // Registers of 128 bits, which every program declares, are of 8.3.
        ptx: tilewright_conformance::with_header(&ptx, "8.3", "sm_80"),
    }
}

/// `cargo xtask conformance` writes them.
#[test]
fn conformance_files_are_current() {
    let write = std::env::var_os("TILEWRIGHT_BLESS").is_some();
    let mut stale = Vec::new();
    for (name, about, demos) in families() {
        stale.extend(family(name, about, &demos).keep(&tilewright_conformance::folder(), write).err());
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

/// A line of what is left out that no program has would hide nothing, and say so of something.
#[test]
fn what_is_left_out_is_there() {
    let all = super::demos();
    for (word, why) in LEFT_OUT {
        assert!(all.iter().any(|demo| demo.body.contains(word)), "no program has {word} ({why})");
    }
}

/// Arguments are described so that whoever has other buffers passes the same.
#[test]
fn maps_are_described() {
    let mut found = BTreeMap::new();
    for demo in super::demos() {
        for arg in (demo.args)(PLACES[0].0, PLACES[1].0) {
            let kind = match param(&arg) {
                Param::Map(map) => map.of,
                Param::Bytes(_) => "bytes".to_owned(),
                other => format!("{other:?}"),
            };
            *found.entry(kind).or_insert(0) += 1;
        }
    }
    assert!(found["x"] > 10 && found["y"] > 4 && found["bytes"] > 1, "{found:?}");
}
