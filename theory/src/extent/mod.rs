//! Sizes: symbolic extents, facts about them, divisibility and inequality proofs, and the search for a smallest
//! witness.
//!
//! Property: a proof holds for every assignment of dimensions that satisfies the facts (sizes at least 1, strides at
//! least 0); a witness satisfies the facts and fails the obligation, evaluated on concrete numbers. What is
//! approximated: some true obligations are neither proved nor refuted. Source: docs/theory.md, Sizes and facts.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `expr` | integer expressions in normal form |
//! | `family` | what variables stand for |
//! | `facts` | what is known of dimensions |
//! | `linear`, `integers` | tests that inequalities, or equations of ranges, have no solution; a solution of a few steps |
//! | `magnitude`, `range` | how large an expression gets; what ranges decide |
//! | `search` | the smallest dimensions with some property |

mod expr;
mod facts;
mod family;
mod integers;
mod linear;
mod magnitude;
mod range;
mod search;

pub use expr::{Atom, Atoms, Expr, TERM_LIMIT, Term, Var, gcd, lcm};
pub use facts::{Contradiction, Facts};
pub use family::Family;
pub use integers::Integers;
pub use linear::System;
pub use magnitude::{absolute, grows};
pub use range::{bound, collapse, collapsed, interval};
pub use search::{Budget, Search};

/// The answer to "does this hold for every admissible size?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<W> {
    /// It does.
    Proved,
    /// It does not: a witness, the smallest one within reach.
    Refuted(W),
    /// Neither could be shown.
    Undecided,
}

impl<W> Verdict<W> {
    /// Whether it was proved.
    pub fn is_proved(&self) -> bool {
        matches!(self, Self::Proved)
    }
}
