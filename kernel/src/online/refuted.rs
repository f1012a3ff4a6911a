//! Terms that no factor corrects, in numbers: the counterexample of a refusal.
//!
//! **Property.** A [`Refuted`] has an extreme m of two terms, and m' that a further term makes it, such that no c has
//! t(x, m') = c·t(x, m) for both of them. **Formula.** t(a, m')·t(b, m) ≠ t(b, m')·t(a, m), or one of the terms is 0
//! with m alone. **Approximation.** Small numbers are tried, in `f64`; of some terms nothing is found.

use std::collections::BTreeMap;

use super::chain::{Earlier, component_value, earlier_of, reads, reduction_of};
use super::key::{has_reduction, key, literal, varies};
use crate::algorithm::{
    Algorithm, AxisId, Binary, Compare, Index, IndexId, Reduction, Run, Source, Unary, Value, ValueId,
};

/// Two terms of a sum, and their values with an extreme and with a later one.
#[derive(Clone, Debug, PartialEq)]
pub struct Refuted {
    /// What each term reads, with its number.
    pub given: [Vec<(ValueId, f64)>; 2],
    /// The extreme of both, and one that a further term makes it.
    pub extremes: [f64; 2],
    /// The terms with the one and with the other.
    pub terms: [[f64; 2]; 2],
}

/// Numbers that are tried.
pub(super) const TRIED: [f64; 5] = [0.0, 1.0, 2.0, -1.0, 0.5];
/// By how much a further term is more extreme.
const STEPS: [f64; 2] = [1.0, 0.5];
/// Most that a term may read.
pub(super) const MOST_READ: usize = 2;
/// By how much numbers may differ for rounding's sake: so much of themselves, or so much at all.
pub(super) const NOISE: [f64; 2] = [1e-6, 1e-9];

pub(super) type Names = Vec<(AxisId, String)>;

/// What a term and the extreme's read: by key, a value that reads it, and whether it differs from term to term.
pub(super) type Leaves = BTreeMap<String, (ValueId, bool)>;

pub(super) struct Search<'a> {
    pub algorithm: &'a Algorithm,
    pub earlier: u16,
    /// The axes of terms: of what is followed, and of the sum.
    pub along: [AxisId; 2],
}

/// Numbers with which no factor corrects the terms of a sum where an extreme changes; none if none are found.
pub fn refuted(algorithm: &Algorithm, earlier: u16, later: u16) -> Option<Refuted> {
    let Earlier { op, axes: of_extreme, u, .. } = earlier_of(algorithm, earlier)?;
    let (_, _, of_sum, body) = reduction_of(algorithm, later).filter(|found| found.0 == Reduction::Sum)?;
    if op == Reduction::Sum {
        return None;
    }
    let (search, names, leaves) = Search::new(algorithm, (earlier, of_extreme, u), (of_sum, body))?;
    let numbers = |mut at: usize| -> Vec<f64> {
        let number = |_| {
            let number = TRIED[at % TRIED.len()];
            at /= TRIED.len();
            number
        };
        leaves.iter().map(number).collect()
    };
    let all = TRIED.len().pow(leaves.len() as u32);
    let mut found: Option<Refuted> = None;
    for (a, b) in (0..all).flat_map(|a| (a + 1..all).map(move |b| (a, b))) {
        let given = [numbers(a), numbers(b)];
        let mut alike = leaves.values().zip(given[0].iter().zip(&given[1]));
        if alike.any(|((_, differs), (a, b))| !differs && a != b) {
            continue;
        }
        let of: [BTreeMap<&str, f64>; 2] =
            given.each_ref().map(|numbers| leaves.keys().map(String::as_str).zip(numbers.iter().copied()).collect());
        let [x, y] = [search.value(u, &names, &of[0], 0.0)?, search.value(u, &names, &of[1], 0.0)?];
        for step in STEPS {
            let (first, later) = match op {
                Reduction::Min => (x.min(y), x.min(y) - step),
                _ => (x.max(y), x.max(y) + step),
            };
            let term = |n: usize, m: f64| search.value(body, &Names::new(), &of[n], m);
            let terms = [[term(0, first)?, term(0, later)?], [term(1, first)?, term(1, later)?]];
            // Terms that are 0 are told apart, but say less.
            let is_better = found.as_ref().is_none_or(|known| zeros(&terms) < zeros(&known.terms));
            if is_better && are_apart(terms) {
                let with =
                    |numbers: &Vec<f64>| leaves.values().map(|leaf| leaf.0).zip(numbers.iter().copied()).collect();
                found = Some(Refuted { given: given.each_ref().map(with), extremes: [first, later], terms });
            }
        }
    }
    found
}

fn zeros(terms: &[[f64; 2]; 2]) -> usize {
    terms.iter().flatten().filter(|term| **term == 0.0).count()
}

/// Whether no factor takes each term to what it is later.
fn are_apart(terms: [[f64; 2]; 2]) -> bool {
    let [[a, a_later], [b, b_later]] = terms;
    let [left, right] = [a_later * b, b_later * a];
    let differ = (left - right).abs() > NOISE[1].max(NOISE[0] * left.abs().max(right.abs()));
    let is_risen = |before: f64, after: f64| before == 0.0 && after.abs() > NOISE[1];
    let is_finite = terms.iter().flatten().all(|term| term.is_finite());
    is_finite && (differ || is_risen(a, a_later) || is_risen(b, b_later))
}

impl<'a> Search<'a> {
    /// What the terms of a sum and those of what it follows read, where these are called as in the terms of the sum.
    pub(super) fn new(
        algorithm: &'a Algorithm,
        (earlier, of_first, u): (u16, Run, ValueId),
        (of_sum, body): (Run, ValueId),
    ) -> Option<(Self, Names, Leaves)> {
        let (&[j], &[k]) = (&algorithm.axis_lists[of_first.range()], &algorithm.axis_lists[of_sum.range()]) else {
            return None;
        };
        // The axes of what is followed, as the term reads it.
        let mine = &algorithm.axis_lists[algorithm.equations[usize::from(earlier)].axes.range()];
        let read = reads(algorithm, body, earlier)?;
        let name = |index: &IndexId| match algorithm.indices[*index as usize] {
            Index::Axis(axis) => Some(format!("a{axis}")),
            _ => None,
        };
        let mut names: Names = vec![(j, format!("a{k}"))];
        for (own, index) in mine.iter().zip(&read) {
            names.push((*own, name(index)?));
        }
        let search = Search { algorithm, earlier, along: [j, k] };
        let mut leaves = Leaves::new();
        search.leaves(u, &names, &mut leaves)?;
        search.leaves(body, &Names::new(), &mut leaves)?;
        (leaves.len() <= MOST_READ).then_some((search, names, leaves))
    }

    /// What is read in place of an equation without reductions, and the names of its axes.
    fn inside(&self, value: ValueId, names: &Names) -> Option<(ValueId, Names)> {
        let algorithm = self.algorithm;
        let Value::Read { source: Source::Equation { equation, component }, indices, or: None } =
            algorithm.values[value as usize]
        else {
            return None;
        };
        if equation == self.earlier || has_reduction(algorithm, equation) {
            return None;
        }
        let axes = &algorithm.axis_lists[algorithm.equations[usize::from(equation)].axes.range()];
        let places = &algorithm.index_lists[indices.range()];
        let inner =
            axes.iter().zip(places).map(|(axis, place)| (*axis, super::key::index_key(algorithm, *place, names)));
        Some((component_value(algorithm, equation, component), inner.collect()))
    }

    fn is_extreme(&self, value: ValueId) -> bool {
        let earlier = self.earlier;
        matches!(self.algorithm.values[value as usize],
            Value::Read { source: Source::Equation { equation, .. }, .. } if equation == earlier)
    }

    /// What a value reads; none if it is of a kind that has no number here.
    pub(super) fn leaves(&self, value: ValueId, names: &Names, found: &mut Leaves) -> Option<()> {
        if literal(self.algorithm, value).is_some() || self.is_extreme(value) {
            return Some(());
        }
        if let Some((inner, names)) = self.inside(value, names) {
            return self.leaves(inner, &names, found);
        }
        match self.algorithm.values[value as usize] {
            Value::Read { .. } | Value::Scalar(_) | Value::FromIndex(_) => {
                let text = key(self.algorithm, value, names);
                let along = self.along.map(|axis| format!("a{axis}"));
                let is_named = |n: &(AxisId, String)| along.contains(&n.1) && varies(self.algorithm, value, &[n.0]);
                let differs = varies(self.algorithm, value, &self.along) || names.iter().any(is_named);
                found.entry(text).or_insert((value, differs));
                Some(())
            }
            Value::Unary(..) | Value::Binary(..) | Value::Fma(..) | Value::Select(..) | Value::Compare(..) => {
                self.algorithm.operands(value).into_iter().try_for_each(|v| self.leaves(v, names, found))
            }
            Value::Cast(a) if self.algorithm.types[value as usize].is_float() => self.leaves(a, names, found),
            _ => None,
        }
    }

    /// Its number, with these ones of what it reads, and m for the extreme; 1 and 0 for what is true or not.
    pub(super) fn value(&self, value: ValueId, names: &Names, of: &BTreeMap<&str, f64>, m: f64) -> Option<f64> {
        if let Some(number) = literal(self.algorithm, value) {
            return Some(number);
        }
        if self.is_extreme(value) {
            return Some(m);
        }
        if let Some((inner, names)) = self.inside(value, names) {
            return self.value(inner, &names, of, m);
        }
        let number = |v: ValueId| self.value(v, names, of, m);
        Some(match self.algorithm.values[value as usize] {
            Value::Unary(op, a) => unary(op, number(a)?)?,
            Value::Binary(op, a, b) => binary(op, number(a)?, number(b)?)?,
            Value::Fma(a, b, c) => number(a)?.mul_add(number(b)?, number(c)?),
            Value::Select(condition, a, b) => {
                if number(condition)? != 0.0 {
                    number(a)?
                } else {
                    number(b)?
                }
            }
            Value::Compare(op, a, b) => {
                let (a, b) = (number(a)?, number(b)?);
                f64::from(u8::from(match op {
                    Compare::Eq => a == b,
                    Compare::Ne => a != b,
                    Compare::Lt => a < b,
                    Compare::Le => a <= b,
                    Compare::Gt => a > b,
                    Compare::Ge => a >= b,
                }))
            }
            Value::Cast(a) => number(a)?,
            _ => *of.get(&*key(self.algorithm, value, names))?,
        })
    }
}

fn unary(op: Unary, x: f64) -> Option<f64> {
    Some(match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Trunc => x.trunc(),
        Unary::Round => x.round_ties_even(),
        Unary::Sqrt | Unary::ApproxSqrt => x.sqrt(),
        Unary::Rsqrt | Unary::ApproxRsqrt => x.sqrt().recip(),
        Unary::Exp | Unary::ApproxExp => x.exp(),
        Unary::ApproxExp2 => x.exp2(),
        Unary::Log | Unary::ApproxLog => x.ln(),
        Unary::Tanh | Unary::ApproxTanh => x.tanh(),
        Unary::Sin | Unary::ApproxSin => x.sin(),
        Unary::Cos | Unary::ApproxCos => x.cos(),
        Unary::Not => f64::from(u8::from(x == 0.0)),
        Unary::Erf => return None,
    })
}

fn binary(op: Binary, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Max | Binary::MaxNum => a.max(b),
        Binary::Min | Binary::MinNum => a.min(b),
        Binary::And => a * b,
        Binary::Or => a.max(b),
        _ => return None,
    })
}
