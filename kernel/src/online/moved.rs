//! Lists of terms that nothing corrects where their mean changes, in numbers: the counterexample of a refusal.
//!
//! **Property.** A [`Moved`] has two lists of as many terms with one mean and one sum, and a further term after which
//! their sums, with the mean that they have then, are two. So no function of the sum, the means and the number of terms
//! gives both. Where the mean has weights, these add up to the same in both. **Approximation.** Lists of two and of
//! three terms of small numbers are tried, in `f64`.

use std::collections::BTreeMap;

use super::chain::{Earlier, earlier_of, reduction_of};
use super::key::index_key;
use super::refuted::{NOISE, Names, Search, TRIED};
use crate::algorithm::{Algorithm, AxisId, Reduction, Source, Value, ValueId};

/// Two lists of terms of a sum, and their sums with a mean and with a later one.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// What each term of each list reads, with its number.
    pub given: [Vec<Vec<(ValueId, f64)>>; 2],
    /// The mean of both, or their sum if that is followed, and the same after a further term.
    pub means: [f64; 2],
    /// The sums of the terms with the one and with the other.
    pub sums: [[f64; 2]; 2],
}

/// Most lists that are compared.
const MOST_LISTS: usize = 4000;

/// Lists that no correction can tell apart; none if none are found.
pub fn moved(algorithm: &Algorithm, earlier: u16, later: u16) -> Option<Moved> {
    let Earlier { op, axes, u, divisor, .. } = earlier_of(algorithm, earlier)?;
    let (_, _, of_sum, body) = reduction_of(algorithm, later).filter(|found| found.0 == Reduction::Sum)?;
    if op != Reduction::Sum {
        return None;
    }
    let (search, names, leaves) = Search::new(algorithm, (earlier, axes, u), (of_sum, body))?;
    // What is the same for all terms is the number of them, or nothing that is looked at.
    let mut counts = leaves.values().filter(|leaf| !leaf.1);
    if !counts.all(|leaf| matches!(algorithm.values[leaf.0 as usize], Value::FromIndex(_))) {
        return None;
    }
    let weight = divisor.and_then(|by| weight(algorithm, by, &names, search.along[1]));
    let varying = leaves.values().filter(|leaf| leaf.1).count();
    let each = TRIED.len().pow(varying as u32);
    for length in [2, 3] {
        let lists = lists(each, length);
        if lists.len() > MOST_LISTS {
            break;
        }
        // The numbers of a term, in a list of so many.
        let numbers = |term: usize, count: usize| -> Vec<f64> {
            let mut rest = term;
            let number = |leaf: &(ValueId, bool)| {
                if !leaf.1 {
                    return count as f64;
                }
                let number = TRIED[rest % TRIED.len()];
                rest /= TRIED.len();
                number
            };
            leaves.values().map(number).collect()
        };
        let of = |term: usize, count: usize| -> BTreeMap<&str, f64> {
            leaves.keys().map(String::as_str).zip(numbers(term, count)).collect()
        };
        // How often terms count, together.
        let weights = |list: &[usize], count: usize| -> Option<f64> {
            let Some((value, names)) = &weight else { return Some(count as f64) };
            list.iter().map(|term| search.value(*value, names, &of(*term, count), 0.0)).sum()
        };
        let first = |list: &[usize], count: usize| -> Option<f64> {
            let terms = list.iter().map(|term| search.value(u, &names, &of(*term, count), 0.0));
            let all = terms.sum::<Option<f64>>()?;
            Some(if divisor.is_some() { all / weights(list, count)? } else { all })
        };
        let sum = |list: &[usize], mean: f64, count: usize| -> Option<f64> {
            list.iter().map(|term| search.value(body, &Names::new(), &of(*term, count), mean)).sum()
        };
        let rounded = |x: f64| (x * 1e6).round() as i64;
        let mut known: BTreeMap<[i64; 3], Vec<&Vec<usize>>> = BTreeMap::new();
        for list in &lists {
            let mean = first(list, length)?;
            let own = sum(list, mean, length)?;
            if own.is_finite() {
                known.entry([mean, own, weights(list, length)?].map(rounded)).or_default().push(list);
            }
        }
        for alike in known.values().filter(|alike| alike.len() > 1) {
            for further in 0..each {
                let later = first(&[&alike[0][..], &[further]].concat(), length + 1)?;
                let sums: Option<Vec<f64>> = alike.iter().map(|list| sum(list, later, length + 1)).collect();
                let sums = sums?;
                let differ = |s: &f64| (s - sums[0]).abs() > NOISE[0] * s.abs().max(1.0) && s.is_finite();
                let Some(other) = sums.iter().position(differ).filter(|_| sums[0].is_finite()) else { continue };
                let mean = first(alike[0], length)?;
                let given = |list: &[usize]| -> Vec<Vec<(ValueId, f64)>> {
                    let term = |term: &usize| {
                        let all = leaves.values().zip(numbers(*term, length));
                        all.filter(|(leaf, _)| leaf.1).map(|(leaf, x)| (leaf.0, x)).collect()
                    };
                    list.iter().map(term).collect()
                };
                let before = |list: &[usize]| sum(list, mean, length);
                let sums = [[before(alike[0])?, sums[0]], [before(alike[other])?, sums[other]]];
                return Some(Moved { given: [given(alike[0]), given(alike[other])], means: [mean, later], sums });
            }
        }
    }
    None
}

/// The weight of a term, and what its axes are called, of a mean with weights that is divided by this; `along` is the
/// axis of terms.
fn weight(algorithm: &Algorithm, by: ValueId, names: &Names, along: AxisId) -> Option<(ValueId, Names)> {
    let (mut inner, (axes, body)) = match algorithm.values[by as usize] {
        Value::Read { source: Source::Equation { equation, .. }, indices, .. } => {
            let own = &algorithm.axis_lists[algorithm.equations[usize::from(equation)].axes.range()];
            let places = algorithm.index_lists[indices.range()].iter().map(|i| index_key(algorithm, *i, names));
            let (_, _, axes, body) = reduction_of(algorithm, equation)?;
            (own.iter().copied().zip(places).collect(), (axes, body))
        }
        Value::Reduce { axes, body, .. } => (names.clone(), (axes, body)),
        _ => return None,
    };
    inner.extend(algorithm.axis_lists[axes.range()].iter().map(|axis| (*axis, format!("a{along}"))));
    Some((body, inner))
}

/// All lists of so many numbers below a number, the smallest first.
fn lists(below: usize, length: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        all = all
            .into_iter()
            .flat_map(|list: Vec<usize>| {
                let from = list.last().copied().unwrap_or(0);
                (from..below).map(move |n| [&list[..], &[n]].concat())
            })
            .take(MOST_LISTS + 1)
            .collect();
    }
    all
}
