//! Every arithmetic, logic, comparison and conversion instruction of the table, in every variant, through text,
//! decoding and execution, against an oracle that shares no code with the emulator: integers over `i128`, floating
//! point over exact numbers with one rounding.
//!
//! The variants come from the table (`tilewright_ptx::isa`). Each runs with fresh registers, with some lanes left out,
//! over its own operands, with constants, with operands that all threads share, on operands that are edges, relatives
//! of one another and random.
//!
//! `TILEWRIGHT_ORACLE=SEED,ROWS cargo test --release --test oracle` runs a campaign with that many rows of
//! operands.

mod approximate;
mod atomics;
mod bits;
mod compare;
mod conformance;
mod convert;
mod exhaustive;
mod float;
mod harness;
mod inputs;
mod integer;
mod meaning;
mod moves;
mod real;
mod table;
mod video;

use meaning::Source;
use tilewright_ptx::isa::{Arith, Compare, Convert, Logic, Math, Op, Video};

/// Seed and rows of operands of each variant.
fn size() -> (u64, usize) {
    match std::env::var("TILEWRIGHT_ORACLE") {
        Ok(text) => {
            let (seed, rows) = text.split_once(',').expect("SEED,ROWS");
            (seed.parse().expect("a seed"), rows.parse().expect("a number of rows"))
        }
        Err(_) => (0, 128),
    }
}

/// Whether time does not matter.
fn is_campaign() -> bool {
    std::env::var_os("TILEWRIGHT_ORACLE").is_some()
}

/// Compares all variants of some instructions with their oracles.
fn check(ops: impl IntoIterator<Item = Op>) {
    let (seed, rows) = size();
    let variants: Vec<_> = ops
        .into_iter()
        .filter(|op| meaning::room(*op).is_ok())
        .flat_map(table::variants)
        .filter_map(|variant| match meaning::source(&variant) {
            Source::Oracle(meaning) => Some((variant, meaning)),
            _ => None,
        })
        .collect();
    let mistakes = harness::check(&variants, rows, seed);
    assert!(
        mistakes.is_empty(),
        "{} mistakes in {} variants:\n{}",
        mistakes.len(),
        variants.len(),
        mistakes.join("\n")
    );
    println!("{} variants agree", variants.len());
}

#[test]
fn arithmetic() {
    check(Arith::ALL.iter().map(|op| Op::Arith(*op)));
}

#[test]
fn logic() {
    check(Logic::ALL.iter().map(|op| Op::Logic(*op)));
}

#[test]
fn comparisons() {
    check(Compare::ALL.iter().map(|op| Op::Compare(*op)));
}

#[test]
fn conversions() {
    check(Convert::ALL.iter().map(|op| Op::Convert(*op)));
}

#[test]
fn functions() {
    check(Math::ALL.iter().map(|op| Op::Math(*op)));
}

#[test]
fn video_instructions() {
    check(Video::ALL.iter().map(|op| Op::Video(*op)));
}

/// Who adds a row to the table adds what it means here, or says where it is tested.
#[test]
fn every_variant_has_an_oracle() {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut covered, mut missing) = (0, Vec::new());
    let elsewhere = |what: &str, file: &str, why: &str| {
        assert!(tests.join(file).exists(), "{what} is tested in {file} ({why}), which is not there");
    };
    for op in Op::all() {
        if let Err((file, why)) = meaning::room(op) {
            elsewhere(op.desc().name, file, why);
            continue;
        }
        for variant in table::variants(op) {
            match meaning::source(&variant) {
                Source::Oracle(_) => covered += 1,
                Source::Missing => missing.push(format!("`{}`, line `{}`", variant.name(), variant.form.syntax)),
                Source::Elsewhere(file, why) => elsewhere(&variant.head(), file, why),
            }
        }
    }
    println!("{covered} variants have oracles");
    assert!(
        missing.is_empty(),
        "{} variants of the instruction table have no oracle: say what they mean in emulator/tests/oracle/meaning.rs.\n{}",
        missing.len(),
        missing.join("\n")
    );
    assert!(covered > 5000, "{covered} variants have oracles");
}
