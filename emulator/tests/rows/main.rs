//! Every row of the instruction table that is no arithmetic (that is `oracle`) in programs whose results are known.
//!
//! A row counts as shown if a program that has an instruction of it gives the expected words, and gives others, or
//! findings, once that instruction is removed: what nobody executes, or what nothing depends on, shows nothing. Every
//! alternative of every modifier is asked for, and the table says which there are. What the emulator refuses instead
//! must be refused with its name, its line and the manual's section.

#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod control;
mod copies;
mod demo;
#[path = "../../../ptx/tests/common/mod.rs"]
#[allow(dead_code, reason = "made for the tests of the table")]
mod instances;
mod matrix;
mod memory;
mod special;
mod sync;
mod warp;
mod wgmma;

use std::collections::{BTreeMap, BTreeSet};

use demo::{Demo, Key};
use tilewright_emulator::Program;
use tilewright_ptx::isa::{Convert, Op, all_forms};

/// Rows of the table that are shown here: the others have oracles of their own.
fn is_ours(op: Op) -> bool {
    match op {
        Op::Arith(_) | Op::Logic(_) | Op::Compare(_) | Op::Math(_) | Op::Video(_) | Op::Atomic(_) => false,
        Op::Convert(convert) => !matches!(convert, Convert::Mov | Convert::Cvt | Convert::CvtPack),
        Op::Memory(_)
        | Op::Synchronization(_)
        | Op::AsyncCopy(_)
        | Op::Warp(_)
        | Op::Matrix(_)
        | Op::Control(_)
        | Op::Stack(_) => true,
    }
}

fn demos() -> Vec<Demo> {
    [
        memory::demos(),
        sync::demos(),
        copies::demos(),
        warp::demos(),
        control::demos(),
        matrix::demos(),
        wgmma::demos(),
        special::demos(),
    ]
    .concat()
}

/// What a program of one instruction is refused with; none if it decodes.
fn refusal(line: &str) -> Option<()> {
    let (text, number) = instances::module_of("8.8", "sm_90a", &[line]);
    let message = Program::parse(&text).err()?.to_string();
    let mnemonic = line.split(' ').next().unwrap_or(line).trim_end_matches(';');
    assert!(
        message.contains(&format!("line {number}")) && message.contains(mnemonic) && message.contains("PTX manual"),
        "`{line}` is refused without its name, line or section: {message}"
    );
    Some(())
}

/// The first, the last, and one between them.
fn a_few(lines: &[String]) -> impl Iterator<Item = &str> {
    [0, lines.len() / 2, lines.len() - 1].into_iter().map(|at| lines[at].as_str())
}

#[test]
fn every_row_is_executed_or_refused() {
    let mut shown = BTreeSet::new();
    let mut mistakes = Vec::new();
    for demo in demos() {
        if let Err(mistake) = demo.check(&mut shown) {
            mistakes.push(mistake);
        }
    }
    assert!(mistakes.is_empty(), "{} programs:\n{}", mistakes.len(), mistakes[..mistakes.len().min(8)].join("\n\n"));

    // What no program shows must be refused.
    let mut lines: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    let all = instances::instances();
    for chunk in all.chunks(instances::CHUNK) {
        let texts: Vec<&str> = chunk.iter().map(|instance| instance.text.as_str()).collect();
        let (text, first) = instances::module_of("8.8", "sm_90a", &texts);
        let module = tilewright_ptx::parse(&text).unwrap();
        module.functions.last().unwrap().for_each_inst(&mut |inst| {
            if let Some(line) = (inst.line as usize).checked_sub(first).and_then(|line| texts.get(line)) {
                for key in demo::keys(inst) {
                    lines.entry(key).or_default().push((*line).to_owned());
                }
            }
        });
    }
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    let mut is_refused = |line| *known.entry(line).or_insert_with(|| refusal(line).is_some());
    let (mut executed, mut refused, mut missing) = (0, 0, Vec::new());
    for key in all_forms().filter(|form| is_ours(form.op)).flat_map(demo::keys_of_form) {
        let instances = lines.get(&key).map_or(&[][..], Vec::as_slice);
        if shown.contains(&key) {
            executed += 1;
        } else if !instances.is_empty() && a_few(instances).all(&mut is_refused) {
            refused += 1;
        } else {
            missing.push(format!("{} of `{}`", key.told(), key.form().syntax));
        }
    }
    println!("{executed} forms and modifiers are executed, {refused} refused");
    assert!(missing.is_empty(), "{} are not shown:\n{}", missing.len(), missing.join("\n"));
    assert!(executed > 500, "{executed} are executed");
}
