//! `argmax` and `argmin`: the set of indices that may win.
//!
//! Smallest index among equals; the first NaN wins over all numbers.

use std::sync::Arc;

use tilewright_kernel::ElementType;

use super::arith::wrap;
use super::column::{Column, Range};
use super::interval::Interval;

/// The candidates of an `argmax` or `argmin` so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Arg {
    /// Index and term; only those that may still win, as far as that is cheap to see.
    candidates: Vec<(i64, Term)>,
    /// A NaN is certain here: nothing later wins.
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Term {
    Float(Interval),
    Int(i128, i128),
}

impl Arg {
    pub(super) fn take(&mut self, index: i64, terms: &Column, at: usize, largest: bool) {
        if self.closed {
            return;
        }
        // Negated for `argmin`, so that the largest wins.
        let term = match terms {
            Column::Float(_) | Column::FloatSets(_) => {
                let x = terms.interval(at);
                Term::Float(if largest || x.is_empty() { x } else { Interval { lo: -x.hi, hi: -x.lo, nan: x.nan } })
            }
            _ => {
                let r = terms.range(at);
                if largest { Term::Int(r.lo, r.hi) } else { Term::Int(-r.hi, -r.lo) }
            }
        };
        if let Term::Float(x) = term
            && x.is_empty()
        {
            self.closed = true;
        } else if let [(_, best)] = self.candidates[..]
            && !may_be_nan(best)
            && !may_be_nan(term)
        {
            // The usual case, one certain leader: decide now where that is possible.
            if !exceeds(upper(term), lower(best)) {
                return;
            }
            if exceeds(lower(term), upper(best)) {
                self.candidates.clear();
            }
        }
        self.candidates.push((index, term));
    }

    /// The admissible indices; none if there was no term.
    pub(super) fn finish(&self) -> Option<Range> {
        // A certain NaN wins over all numbers; an earlier term only if it may be NaN itself.
        let numbers_lose = self.closed;
        // `after[i]`: the largest of the least values of the candidates from i on.
        let larger = |a: Option<Term>, b: Option<Term>| match (a, b) {
            (Some(a), Some(b)) => Some(if exceeds(b, a) { b } else { a }),
            (a, b) => a.or(b),
        };
        let mut after = vec![None; self.candidates.len() + 1];
        for (i, &(_, term)) in self.candidates.iter().enumerate().rev() {
            after[i] = larger(after[i + 1], lowest_possible(term));
        }
        let mut before = None;
        let mut admissible = Vec::new();
        for (i, &(index, term)) in self.candidates.iter().enumerate() {
            // Earlier terms must be smaller, later ones may be equal.
            let beats_earlier = before.is_none_or(|b| exceeds(upper(term), b));
            let beats_later = after[i + 1].is_none_or(|a| !exceeds(a, upper(term)));
            if !numbers_lose && beats_earlier && beats_later || may_be_nan(term) {
                admissible.push(i128::from(index));
            }
            before = larger(before, lowest_possible(term));
        }
        let (first, last) = (*admissible.first()?, *admissible.last()?);
        let contiguous = (last - first) as usize + 1 == admissible.len();
        let only = (!contiguous).then(|| Arc::from(admissible));
        Some(Range { lo: wrap(ElementType::U32, first), hi: wrap(ElementType::U32, last), only })
    }
}

fn may_be_nan(term: Term) -> bool {
    matches!(term, Term::Float(x) if x.nan)
}

fn lower(term: Term) -> Term {
    match term {
        Term::Float(x) => Term::Float(Interval::between(x.lo, x.lo)),
        Term::Int(lo, _) => Term::Int(lo, lo),
    }
}

fn upper(term: Term) -> Term {
    match term {
        Term::Float(x) => Term::Float(Interval::between(x.hi, x.hi)),
        Term::Int(_, hi) => Term::Int(hi, hi),
    }
}

/// The least number that a term can be; none if it is NaN only.
fn lowest_possible(term: Term) -> Option<Term> {
    match term {
        Term::Float(x) if x.is_empty() => None,
        _ => Some(lower(term)),
    }
}

/// a > b, of single values.
fn exceeds(a: Term, b: Term) -> bool {
    match (a, b) {
        (Term::Float(a), Term::Float(b)) => a.lo > b.lo,
        (Term::Int(a, _), Term::Int(b, _)) => a > b,
        _ => false,
    }
}
