//! How often the steps were taken that compiling spends its time in, so that a file can show what each kernel costs
//! (`tests/work.txt`): counts do not depend on the machine, as times do.

use std::cell::Cell;

/// A step that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A sum or product of expressions is brought into its order.
    Expression,
    /// Variables of a linear system are eliminated.
    Elimination,
    /// A search that has a budget goes a step further.
    Search,
    /// A statement is taken into what barriers order, once for each kind of path.
    Ordering,
}

impl Step {
    /// All of them, with what each is called in a table.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Expression, "expressions"),
        (Self::Elimination, "eliminations"),
        (Self::Search, "searches"),
        (Self::Ordering, "orderings"),
    ];
}

thread_local! {
    static COUNTS: [Cell<u64>; Step::ALL.len()] = const { [const { Cell::new(0) }; Step::ALL.len()] };
}

/// Counts a step, so many times.
pub fn count(step: Step, times: u64) {
    COUNTS.with(|counts| {
        let own = &counts[step as usize];
        own.set(own.get().wrapping_add(times));
    });
}

/// Adds what another thread counted for this one.
pub fn add(counts: [u64; Step::ALL.len()]) {
    for ((step, _), times) in Step::ALL.into_iter().zip(counts) {
        count(step, times);
    }
}

/// How often this thread took each step since it began, in the order of [`Step::ALL`].
pub fn counts() -> [u64; Step::ALL.len()] {
    COUNTS.with(|counts| counts.each_ref().map(Cell::get))
}
