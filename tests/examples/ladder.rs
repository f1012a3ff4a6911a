//! The page `docs/ladder.md`, one product in six steps: the differences between the steps, what the compiler says of
//! wrong edits, and the table of figures are what they are today, and every step computes the product. The tables of
//! `docs/model.md` follow from that one. `cargo xtask bless` rewrites all of them; the table of figures only where
//! `PTXAS` says where the assembler is.

use crate::machine_code::{MachineCode, first_entry};
use crate::support::{loaded, runs};
use tilewright_compiler::Compiled;
use xtask::book::{self, kernel::KernelText};
use xtask::model::{self, Figures};

/// Where the steps are, in their order.
const STEPS: [(&str, &str); 6] = [
    ("docs/ladder.rs", "Naive"),
    ("docs/ladder.rs", "TensorCores"),
    ("docs/ladder.rs", "Ring"),
    ("docs/ladder.rs", "Roles"),
    ("docs/ladder.rs", "Clusters"),
    ("examples/gemm.rs", "Gemm"),
];

fn steps() -> [KernelText; 6] {
    STEPS.map(|(file, name)| KernelText::read(file, name).unwrap_or_else(|e| panic!("{e}")))
}

fn compiled(step: &KernelText) -> Compiled {
    step.compiled().unwrap_or_else(|e| panic!("{}: {e}", step.name))
}

/// What is different in the lines of a kernel, below the line that names it: a longest common subsequence, and of each
/// run of changes the statement around it.
fn difference(old: &[&str], new: &[&str]) -> String {
    let (old, new) = (&old[1..], &new[1..]);
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for (i, j) in (0..old.len()).rev().flat_map(|i| (0..new.len()).rev().map(move |j| (i, j))) {
        let fewer = common[i + 1][j].max(common[i][j + 1]);
        common[i][j] = if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { fewer };
    }
    let (mut i, mut j, mut text, mut is_change, mut shown) = (0, 0, String::new(), false, None);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j, is_change) = (i + 1, j + 1, false);
            continue;
        }
        if !is_change {
            is_change = true;
            let indentation = |line: &str| line.len() - line.trim_start().len();
            let own =
                indentation(if i < old.len() && (j == new.len() || old[i].trim() != "}") { old[i] } else { new[j] });
            let is_around = |n: &usize| indentation(new[*n]) < own && new[*n].ends_with('{');
            let around = (0..j).rfind(is_around);
            // Where a statement is new, or was shown, it is not shown again.
            if let Some(n) = around.filter(|_| around != shown && own > 4) {
                text += &format!(" {}\n", new[n]);
            }
            shown = around;
        }
        let is_old = j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1];
        let (sign, line) = if is_old { ('-', old[i]) } else { ('+', new[j]) };
        text += &format!("{sign}{line}\n");
        if is_old { i += 1 } else { j += 1 }
    }
    text
}

/// The page with everything in it that is generated; the table stays as it is if there is none.
fn page(old: &str, steps: &[KernelText], table: Option<&str>) -> String {
    let mut lines = old.lines().peekable();
    let (mut new, mut step, mut edit) = (String::new(), None, None);
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            step = title.split_once(". ").and_then(|(number, _)| number.parse::<usize>().ok()).map(|n| n - 1);
            edit = None;
        }
        if line.starts_with("| step |") {
            let rows: Vec<&str> =
                std::iter::once(line).chain(std::iter::from_fn(|| lines.next_if(|l| l.starts_with('|')))).collect();
            new += table.unwrap_or(&(rows.join("\n") + "\n"));
            continue;
        }
        new += &format!("{line}\n");
        let (Some(language), Some(step)) = (line.strip_prefix("```"), step) else { continue };
        let body: String = lines.by_ref().take_while(|l| *l != "```").map(|l| format!("{l}\n")).collect();
        new += &match language {
            "rust,ignore" => steps[step].lines().iter().map(|l| format!("{l}\n")).collect(),
            "diff" => difference(&steps[step - 1].lines(), &steps[step].lines()),
            "diff wrong" => {
                edit = Some(body.clone());
                body
            }
            "text" => {
                let edit = edit.take().expect("an edit before what is said of it");
                steps[step].refusal(&edit).unwrap_or_else(|e| panic!("{e}"))
            }
            _ => body,
        };
        new += "```\n";
    }
    new
}

#[test]
fn the_pages_show_what_is() {
    let steps = steps();
    let table = table(&steps);
    let ladder = shown("docs/ladder.md", |old| page(old, &steps, table.as_deref()));
    // The model takes its counts of instructions from the table.
    let figures = Figures::read(&ladder).expect("the row of the last step");
    shown("docs/model.md", |old| model::page(old, &figures));
}

/// A page as it should be; the file is compared with that, or written.
fn shown(name: &str, new: impl Fn(&str) -> String) -> String {
    let path = xtask::root().join(name);
    let old = std::fs::read_to_string(&path).expect("the page").replace("\r\n", "\n");
    let new = new(&old);
    if std::env::var_os("TILEWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &new).expect("the page");
        return new;
    }
    book::compare(name, &old, &new, "bless").unwrap_or_else(|e| panic!("{e}"));
    new
}

/// Every step computes the product: for one element, for sizes that no tile divides, for several tiles and iterations,
/// and without terms.
#[test]
fn every_step_is_the_product() {
    for step in steps() {
        // M, K, N.
        runs(&step.text, &compiled(&step), &[&[1, 8, 8], &[260, 72, 264], &[130, 328, 8], &[3, 0, 8]], 1);
    }
}

/// The instructions of one entry point, and the labels between them, without their encodings.
fn instructions<'a>(listing: &'a str, entry: &str) -> Vec<&'a str> {
    let label = format!(".text.{entry}:");
    let inside = listing.lines().skip_while(|line| line.trim() != label).skip(1);
    let of_entry = inside.take_while(|line| !line.starts_with("//-----"));
    of_entry.filter(|line| line.contains("/*") && !line.trim_start().starts_with("/* 0x") || is_label(line)).collect()
}

fn is_label(line: &str) -> bool {
    line.trim().starts_with(".L_") && line.trim().ends_with(':')
}

/// The shortest loop with products of tensor cores, since loops around it have them in iterations that are written out
/// as well; else the loop with the most multiplications, of these the shortest: where it begins and ends in the lines.
fn main_loop(lines: &[&str]) -> std::ops::Range<usize> {
    let products = |line: &&&str| multiplies(line) > 0;
    let back = |n: usize| {
        let target = lines[n].contains("BRA").then(|| lines[n].split_once("`(")?.1.split_once(')'))??.0;
        let start = lines[..n].iter().rposition(|line| line.trim() == format!("{target}:"))?;
        Some(start..n + 1)
    };
    let loops = (0..lines.len()).filter_map(back);
    let all: Vec<_> = loops.collect();
    let has_tensor_cores = |l: &&std::ops::Range<usize>| lines[(*l).clone()].iter().any(|line| line.contains("HGMMA"));
    let of_tensor_cores = all.iter().filter(has_tensor_cores).min_by_key(|l| l.len());
    let most =
        |l: &&std::ops::Range<usize>| (lines[(*l).clone()].iter().filter(products).count(), usize::MAX - l.len());
    of_tensor_cores.or_else(|| all.iter().max_by_key(most)).expect("a loop").clone()
}

/// Multiplications of a warp's instruction.
fn multiplies(line: &str) -> usize {
    if let Some((_, shape)) = line.split_once("HGMMA.") {
        let shape = shape.split('.').next().unwrap_or_default();
        // A warpgroup has four warps.
        return shape.split('x').map(|n| n.parse::<usize>().expect("a shape")).product::<usize>() / 4;
    }
    if line.contains(" FMUL ") || line.contains(" FFMA ") { 32 } else { 0 }
}

/// The table of figures of all steps, if there is an assembler.
fn table(steps: &[KernelText]) -> Option<String> {
    let mut table =
        "| step | threads | registers | shared memory | mbarriers | loop | HGMMA | multiply-adds | barriers \
                     | under way | epilogue | loaded |\n"
            .to_owned();
    table += &format!("|{}\n", " --- |".repeat(12));
    for (number, step) in (1..).zip(steps) {
        table += &format!("| {number} {} | {} |\n", step.name, row(step)?);
    }
    Some(table)
}

/// The figures of a step, if there is an assembler.
fn row(step: &KernelText) -> Option<String> {
    let kernel = compiled(step);
    let info = kernel.info.as_ref().expect("no error");
    let text = &info.ptx.text;
    let MachineCode { log, listing } = first_entry(info)?;
    let lines = instructions(listing, &step.name);
    let is_instruction = |line: &&&str| !is_label(line);

    // What the assembler says of the first entry point.
    let own = log.split(&format!("'{}' for", step.name)).nth(1).expect("the entry point");
    let registers = own.split("Used ").nth(1).and_then(|rest| rest.split(' ').next()).expect("registers");
    let given = text.lines().filter_map(|line| line.trim().strip_prefix("setmaxnreg."));
    let mut given: Vec<u32> = given.filter_map(|line| line.split(&[' ', ';'][..]).nth(1)?.parse().ok()).collect();
    given.sort_unstable();
    given.dedup();
    let given: Vec<String> = given.iter().map(u32::to_string).collect();
    let given = if given.is_empty() { String::new() } else { format!(", then {}", given.join(" and ")) };

    // The main loop, for 64 terms.
    let range = main_loop(&lines);
    let inside: Vec<&str> = lines[range.clone()].iter().filter(is_instruction).copied().collect();
    let count = |words: &[&str]| inside.iter().filter(|line| words.iter().any(|word| line.contains(word))).count();
    let products = count(&["HGMMA", " FMUL ", " FFMA "]);
    let (tiles, groups) = if count(&["HGMMA"]) > 0 {
        let wait = inside.iter().find_map(|line| line.split_once("DEPBAR.LE gsb0, 0x"));
        (64.0 / (16 * products) as f64, wait.map_or("none", |(_, left)| left.trim_end_matches([' ', ';'])))
    } else {
        (64.0 / products as f64, "")
    };
    let each: usize = inside.iter().map(|line| multiplies(line)).sum();
    let last = lines.iter().rposition(|line| line.contains("STG.") || line.contains("UTMASTG")).expect("a store");
    let mbarriers: u32 = kernel.entries[0].kernel.barriers.iter().map(|barrier| barrier.slots).sum();
    let shared = info.explanation.lines().find_map(|line| line.strip_prefix("shared memory: ")?.strip_suffix(" bytes"));
    let shared = shared.unwrap_or("0");
    let of = |n: usize| format!("{:.0}", n as f64 * tiles);
    let dims = [256, 64, 256];
    let flop = 2.0 * dims.iter().product::<i64>() as f64;
    let row = [
        kernel.entries[0].kernel.signature.threads.to_string(),
        format!("{registers}{given}"),
        shared.to_owned(),
        mbarriers.to_string(),
        of(inside.len()),
        of(count(&["HGMMA"])),
        format!("{:.*}", usize::from(each < 10 * inside.len()), each as f64 / inside.len() as f64),
        of(count(&["SYNCS", " BAR."])),
        groups.to_owned(),
        lines[range.end..=last.max(range.end)].iter().filter(is_instruction).count().to_string(),
        format!("{:.1}", loaded(&kernel, &dims) as f64 * 1000.0 / flop),
    ];
    Some(row.join(" | "))
}
