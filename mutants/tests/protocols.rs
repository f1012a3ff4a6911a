//! Mistakes in the protocols of a few products; `mutants protocols` plants them in more, and in those of the examples.

use tilewright_mutants::chosen::{Chosen, drawn, drawn_attention};
use tilewright_mutants::protocol::{Notice, Subject, Tally};

/// Products that are drawn.
const CASES: u64 = 24;

/// The mistakes in some kernels, all of which are noticed: of so many kernels at least, and by the checker.
fn all_are_noticed(kernels: impl Iterator<Item = Chosen>, [least, by_checker]: [u64; 2]) {
    let mut tally = Tally::default();
    for (name, compiled, dims) in kernels {
        let subject = Subject::new(&compiled, &dims).expect("sizes of the first entry point");
        tally.try_all(&name, &subject).expect("right as it is");
    }
    assert!(tally.unnoticed.is_empty(), "{tally}");
    let by = |who: Notice| tally.counts.iter().filter(|c| c.0.1 == who).map(|c| *c.1).sum::<u64>();
    assert!(tally.kernels >= least && by(Notice::Checker) >= by_checker, "{tally}");
}

#[test]
fn every_mistake_is_noticed() {
    all_are_noticed((0..CASES).filter_map(|index| drawn(3, index)), [2, 40]);
}

#[test]
fn every_mistake_in_attention_is_noticed() {
    all_are_noticed((0..CASES).filter_map(|index| drawn_attention(3, index)).take(3), [3, 100]);
}
