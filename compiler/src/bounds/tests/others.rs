//! Divisors, ranges that are searched, and reads of two dimensions against enumeration.

use super::super::walk::{Given, walk};
use super::super::witness::Witness;
use super::super::{admitting_empty, report};
use super::brute::Random;
use crate::extent::{Facts, Verdict};
use crate::program::build;
use crate::source::TokenBuffer;
use crate::syntax::parse;

/// The verdict about the first obligation that was not proved; none if the kernel does not build.
fn verdict(source: &str) -> Option<Verdict<Witness>> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
    let (parsed, mut diags) = parse(&tokens);
    assert!(!diags.has_errors(), "{source}");
    let program = build(&parsed.kernels[0], &mut diags)?;
    let constraints: Vec<_> = program.facts.iter().map(|f| f.constraint.clone()).collect();
    let facts = Facts::new(&program.dims, &constraints).ok()?;
    let with_empty = admitting_empty(&program, &[])?;
    let given = Given { facts: &facts, with_empty: &with_empty };
    let found = walk(&program, given);
    Some(match found.failures.values().next() {
        None => Verdict::Proved,
        Some(places) => match report::decide(&program, given, places, 20_000) {
            Verdict::Refuted((_, witness)) => Verdict::Refuted(witness),
            Verdict::Proved => Verdict::Proved,
            Verdict::Undecided => Verdict::Undecided,
        },
    })
}

/// A failing case: sizes and axes.
type Failure = (Vec<i64>, Vec<i128>);

/// The first failing axes for two sizes.
type Fails = Box<dyn Fn(i128, i128) -> Option<Vec<i128>>>;

/// The smallest failing case of two sizes from `least` on, by `fails`.
fn smallest(least: i128, most: i128, fails: impl Fn(i128, i128) -> Option<Vec<i128>>) -> Option<Failure> {
    (2 * least..=2 * most).find_map(|sum| {
        (least..=sum - least).find_map(|n| {
            let m = sum - n;
            fails(n, m).map(|axes| (vec![n as i64, m as i64], axes))
        })
    })
}

/// Compares a verdict with the oracle; whether it was decided.
fn agree(source: &str, verdict: Verdict<Witness>, oracle: Option<Failure>) -> bool {
    match (verdict, oracle) {
        (Verdict::Proved, None) => true,
        (Verdict::Proved, Some(failure)) => panic!("accepted {source}, which fails at {failure:?}"),
        (Verdict::Refuted(witness), Some(failure)) => {
            let axes: Vec<i128> = witness.axes.iter().map(|a| a.1).collect();
            assert_eq!((witness.dims, axes), failure, "{source}");
            true
        }
        (Verdict::Refuted(witness), None) => {
            panic!("refused {source} with {witness:?}, which is out of range or right")
        }
        (Verdict::Undecided, Some(failure)) => panic!("undecided {source}, which fails at {failure:?}"),
        (Verdict::Undecided, None) => {
            println!("undecided {source}");
            false
        }
    }
}

#[test]
fn divisors_agree_with_enumeration() {
    let mut random = Random(5);
    let (mut decided, mut undecided, mut refuted) = (0, 0, 0);
    for _ in 0..300 {
        let (ty, period) = [("u8", 256), ("i8", 256), ("i16", 65536)][random.below(3) as usize];
        let (a, b, c) = (random.between(0, 2) * random.between(1, 64), random.between(0, 3), random.between(-3, 5));
        let guard = random.between(-1, 5);
        let least = random.between(0, 2);
        let fact = "N <= 12, M <= 12";
        let divisor = format!("({a} * i + {b} * M + {c}) as {ty}");
        let condition =
            [format!("i > {guard}"), format!("{divisor} != 0"), format!("{divisor} > 0"), "i >= 0".to_owned()];
        let condition = &condition[random.below(4) as usize];
        let source = format!(
            "kernel K(v: {ty}[N], m: f32[M]) -> (y: {ty}[N]) where {fact}, N > {least}
             {{ y[i] = if {condition} {{ v[i] / ({divisor}) }} else {{ 1 }}; }}"
        );
        let value = |i: i128, m: i128| {
            let exact: i128 = a * i + b * m + c;
            let wrapped = exact.rem_euclid(period);
            if ty != "u8" && wrapped >= period / 2 { wrapped - period } else { wrapped }
        };
        let holds = |i: i128, m: i128| match condition {
            c if c.starts_with("i >=") => true,
            c if c.starts_with("i >") => i > guard,
            c if c.ends_with("!= 0") => value(i, m) != 0,
            _ => value(i, m) > 0,
        };
        let fails = |n: i128, m: i128| {
            if n > 12 || m > 12 || n <= least {
                return None;
            }
            (0..n).find(|i| holds(*i, m) && value(*i, m) == 0).map(|i| vec![i])
        };
        let Some(verdict) = verdict(&source) else { continue };
        refuted += usize::from(matches!(verdict, Verdict::Refuted(_)));
        if agree(&source, verdict, smallest(1, 12, fails)) { decided += 1 } else { undecided += 1 }
    }
    println!("{decided} decided, {refuted} of them refuted, {undecided} undecided");
    assert!(refuted > 20 && decided - refuted > 100);
    assert_eq!(undecided, 0);
}

/// Sizes may be 0 here. A range is empty, or begins below 0.
#[test]
fn searches_agree_with_enumeration() {
    let mut random = Random(9);
    let (mut decided, mut undecided) = (0, 0);
    for _ in 0..300 {
        let (low, high) = (random.between(-1, 2), random.between(-1, 2));
        let (from_i, to_i) = (random.below(2) == 1, random.below(2) == 1);
        let fact = ["N >= 1", "N >= 2", "N > M", "M <= N", "N >= 0"][random.below(5) as usize];
        let from = if from_i { format!("i + {low}") } else { format!("{low}") };
        let to = if to_i { format!("i + {high}") } else { format!("N + {high}") };
        let source = format!(
            "kernel K(x: f32[N], m: f32[M]) -> (y: u32[M]) where {fact}
             {{ y[i] = argmax(|k in {from}..{to}| x[k] or 0.0); }}"
        );
        let fails = |n: i128, m: i128| {
            let admitted = match fact {
                "N >= 1" => n >= 1,
                "N >= 2" => n >= 2,
                "N > M" => n > m,
                "M <= N" => m <= n,
                _ => true,
            };
            let bound = |i: i128, from: bool, size: i128, add: i128| if from { i + add } else { size + add };
            let wrong = |i: &i128| {
                let (first, end) = (bound(*i, from_i, 0, low), bound(*i, to_i, n, high));
                first >= end || first < 0
            };
            (0..m).find(|i| admitted && wrong(i)).map(|i| vec![i])
        };
        let Some(verdict) = verdict(&source) else { continue };
        if agree(&source, verdict, smallest(0, 8, fails)) { decided += 1 } else { undecided += 1 }
    }
    println!("{decided} decided, {undecided} undecided");
    assert!(decided > 100);
    assert_eq!(undecided, 0);
}

/// Products of a size and an axis, quotients by a size.
#[test]
fn products_agree_with_enumeration() {
    let mut random = Random(3);
    let (mut decided, mut undecided) = (0, 0);
    for _ in 0..300 {
        let (c, d) = (random.between(-1, 1), random.between(0, 1));
        let wrap = random.below(2) == 1;
        let (source, fails): (String, Fails) = if wrap {
            let source = format!(
                "kernel K(n: f32[N], m: f32[M], x: f32[N, M]) -> (y: f32[N * M + {d}])
                 {{ y[k] = x[(k + {c}) / M, (k + {c}) % M]; }}"
            );
            let fails = move |n: i128, m: i128| {
                (0..n * m + d).find(|k| !(0..n).contains(&(k + c).div_euclid(m))).map(|k| vec![k])
            };
            (source, Box::new(fails))
        } else {
            let source = format!(
                "kernel K(n: f32[N], m: f32[M], x: f32[N * M + {d}]) -> (y: f32[N, M])
                 {{ y[i, j] = x[i * M + j + {c}]; }}"
            );
            let fails = move |n: i128, m: i128| {
                let all = (0..n).flat_map(|i| (0..m).map(move |j| (i, j)));
                let outside = |&(i, j): &(i128, i128)| !(0..n * m + d).contains(&(i * m + j + c));
                all.into_iter().find(outside).map(|(i, j)| vec![i, j])
            };
            (source, Box::new(fails))
        };
        let Some(verdict) = verdict(&source) else { continue };
        if agree(&source, verdict, smallest(1, 6, fails)) { decided += 1 } else { undecided += 1 }
    }
    assert!(decided > 100);
    assert_eq!(undecided, 0);
}
