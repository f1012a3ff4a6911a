//! What tiled copies leave in the slots that nobody asked for.
//!
//! **Property.** A copy moves a tile: every `element stride`-th element of a box. The slots of the tile that hold
//! elements of the region that was asked for are *live*; the others are *holes*. The accelerator fills a hole with
//! zeros if its element lies outside the tensor, and with an element of the tensor otherwise. A reader that folds holes
//! in unguarded demands zeros (strong correctness); a reader that never looks at them demands nothing (weak
//! correctness, which every copy has).
//!
//! **Levels.** 1: no copy fills a hole with an element. 2: some do, but none of these has a live slot too, so each can
//! be sent out of bounds. 3: some copy has both, and no lowering can help, since a copy is issued whole.
//!
//! **Formula.** Theorem G ([`Reach::mixed`]) decides level 3 for boxes that start anywhere and end early. For boxes
//! that start at multiples of the box size and lie whole in a region it is the fundamental theorem of TMA correctness
//! (nvFuser, "TMA Modeling in Depth", Theorem 6): e < B < S and e does not divide B. Every condition is a conjunction
//! of linear inequalities in size, start and live length, so that run-time sizes are decided by infeasibility
//! ([`level`]).
//!
//! **Approximation.** None for numbers. For symbolic sizes "infeasible" is a proof and anything else is undecided until
//! a witness is found, which is replayed slot by slot ([`slots`]), not by the formula.
//!
//! A copy to a tensor writes its holes, so that for it every level but 1 is a refusal, and live means computed
//! ([`cover`]).
//!
//! | file | what it knows |
//! | --- | --- |
//! | `check`, `refuse` | the copies of a kernel: whose they are, what zeros take, the budget; what is said why not |
//! | `plan`, `rules` | one copy, from what was written to a [`Staged`](crate::plan::staged::Staged); the rules of tensor maps |
//! | `loops` | where a copy stands, and which loops inside move what its readers ask for |
//! | `multicast` | which blocks of a cluster take a copy together, and which slice each copies |
//! | `copy_selection` | which of several copies of one tensor a read takes |
//! | `view`, `cover` | the axes that are boxed; whether an instance computes all that it holds of them |
//! | `layout`, `tiles` | the order of the buffer; its tiles and their level |
//! | `allocation`, `proposal` | ops on axes of the tile: the swizzle that they are, or what to write instead |
//! | `demand` | what a reader folds in of the holes, and which predicates that saves |
//! | `gathered` | what memory adds to the place of an instance |
//! | `form` | whether an instance is copied by tiles or by runs of memory |
//! | `reach`, `slots`, `witness` | the theorems; the definition that they are about; the search for a counterexample |

pub mod allocation;
pub mod check;
mod copy_selection;
pub mod cover;
pub mod demand;
mod form;
mod gathered;
mod layout;
pub mod loops;
pub mod multicast;
pub mod plan;
mod proposal;
pub mod reach;
mod refuse;
pub mod rules;
pub mod slots;
mod tiles;
pub mod view;
pub mod witness;

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;

pub use reach::{Level, Reach, level};
