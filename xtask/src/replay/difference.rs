//! What became of sources before and after, side by side.

use std::fmt::Write as _;

use rayon::prelude::*;
use tilewright_cli::assembler::assembler;

use super::costs::{self, Costs};
use super::record::{Made, Record};
use crate::Failure;

/// Differences of one kind that are shown; the others are counted.
const SHOWN: usize = 12;

/// All differences, for a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The text.
    pub text: String,
    /// Sources of which something differs.
    pub differences: usize,
}

/// What differs of one source, by kind: a title and where the texts part.
type Found = Vec<(&'static str, String)>;

const REFUSED: &str = "accepted before, not now";
const ACCEPTED: &str = "not accepted before, now";
const MESSAGES: &str = "other messages";
/// Kinds in the order of their weight.
const KINDS: [&str; 6] = [REFUSED, ACCEPTED, MESSAGES, "ptx", "launch", "explanation"];

/// Compares records by name, and prices the PTX that differs.
///
/// # Errors
/// PTX that does not assemble.
pub fn report<'a>(pairs: impl Iterator<Item = (&'a str, &'a Record, &'a Record)>) -> Result<Report, Failure> {
    let (mut sources, mut kernels, mut differences) = (0, 0, 0);
    let (mut found, mut priced): (Found, Vec<_>) = Default::default();
    for (name, before, after) in pairs {
        sources += 1;
        kernels += before.kernels.len();
        let of_source = source(name, before, after);
        differences += usize::from(!of_source.is_empty());
        found.extend(of_source);
        priced.extend(
            both(before, after)
                .filter(|(_, a, b)| a.ptx != b.ptx)
                .map(|(kernel, a, b)| (format!("{name} {kernel}"), a, b)),
        );
    }
    let mut text = format!("replay: {sources} sources, {kernels} kernels before; {differences} sources differ\n");
    for kind in KINDS {
        let places: Vec<&String> = found.iter().filter(|(k, _)| *k == kind).map(|(_, place)| place).collect();
        if places.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{kind}: {}", places.len());
        places.iter().take(SHOWN).for_each(|place| text.push_str(place));
        if places.len() > SHOWN {
            let _ = writeln!(text, "  … and {} more", places.len() - SHOWN);
        }
    }
    text.push_str(&prices(&priced)?);
    Ok(Report { text, differences })
}

/// Kernels that were finished before and are now.
fn both<'a>(before: &'a Record, after: &'a Record) -> impl Iterator<Item = (&'a str, &'a Made, &'a Made)> {
    before.kernels.iter().filter_map(|(name, made)| Some((name.as_str(), made, after.kernels.get(name)?)))
}

/// What differs of one source.
fn source(name: &str, before: &Record, after: &Record) -> Found {
    let mut found = Found::new();
    let only = |a: &Record, b: &Record| {
        a.kernels
            .keys()
            .filter(|kernel| !b.kernels.contains_key(*kernel))
            .map(|k| format!("  {name} {k}\n"))
            .collect::<Vec<_>>()
    };
    found.extend(only(before, after).into_iter().map(|place| (REFUSED, place)));
    found.extend(only(after, before).into_iter().map(|place| (ACCEPTED, place)));
    if before.messages != after.messages {
        found.push((MESSAGES, parting(name, &before.messages, &after.messages)));
    }
    for (kernel, a, b) in both(before, after) {
        let parts = a.parts().into_iter().zip(b.parts()).filter(|((_, a), (_, b))| a != b);
        found.extend(parts.map(|((part, a), (_, b))| (part, parting(&format!("{name} {kernel}"), a, b))));
    }
    found
}

/// The first lines that differ.
fn parting(name: &str, before: &str, after: &str) -> String {
    let common = before.lines().zip(after.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(common).unwrap_or("(the end)").trim().to_owned();
    format!("  {name}, line {}:\n    - {}\n    + {}\n", common + 1, line(before), line(after))
}

/// What the PTX costs that differs.
fn prices(priced: &[(String, &Made, &Made)]) -> Result<String, Failure> {
    if priced.is_empty() {
        return Ok(String::new());
    }
    let assembler = assembler();
    let one = |(name, before, after): &(String, &Made, &Made)| {
        let cost = |ptx: &str| costs::of(name, ptx, assembler.as_deref());
        Ok((name.clone(), cost(&before.ptx)?, cost(&after.ptx)?))
    };
    let prices: Vec<(String, Costs, Costs)> = priced.par_iter().map(one).collect::<Result<_, Failure>>()?;
    let (mut before, mut after) = (Costs::default(), Costs::default());
    let mut text = String::new();
    for (name, a, b) in &prices {
        before += *a;
        after += *b;
        if b.barriers > a.barriers {
            let _ = writeln!(text, "  more barriers, fences or waits in {name}: {} → {}", a.barriers, b.barriers);
        }
    }
    let mut row = |what: &str, a: u64, b: u64| {
        let percent = (b as f64 / a.max(1) as f64 - 1.0) * 100.0;
        let _ = writeln!(text, "  {what} {a} → {b} ({percent:+.2} %)");
    };
    row("barriers, fences and waits", before.barriers, after.barriers);
    if assembler.is_some() {
        row("instructions", before.instructions, after.instructions);
        row("registers", before.registers, after.registers);
    }
    let note = if assembler.is_some() {
        ""
    } else {
        "; neither PTXAS nor PATH has the assembler, so instructions and registers are not counted"
    };
    Ok(format!("costs of the {} kernels with other PTX{note}:\n{text}", prices.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(messages: &str, ptx: &[(&str, &str)]) -> Record {
        let made =
            |(name, ptx): &(&str, &str)| ((*name).to_owned(), Made { ptx: (*ptx).to_owned(), ..Made::default() });
        Record { messages: messages.to_owned(), kernels: ptx.iter().map(made).collect() }
    }

    #[test]
    fn equal_records_do_not_differ() {
        let one = record("m", &[("K", "a\nb")]);
        let report = report([("s", &one, &one.clone())].into_iter()).unwrap();
        assert_eq!(report.differences, 0);
        assert_eq!(report.text, "replay: 1 sources, 1 kernels before; 0 sources differ\n");
    }

    #[test]
    fn each_kind_is_shown() {
        let before = record("m\nold", &[("A", ""), ("K", "a\nb")]);
        let after = record("m\nnew", &[("B", ""), ("K", "a\nc")]);
        let found = source("s", &before, &after);
        let expected = [
            (REFUSED, "  s A\n"),
            (ACCEPTED, "  s B\n"),
            (MESSAGES, "  s, line 2:\n    - old\n    + new\n"),
            ("ptx", "  s K, line 2:\n    - b\n    + c\n"),
        ];
        assert_eq!(found, expected.map(|(kind, place)| (kind, place.to_owned())));
    }
}
