//! Mistakes in the protocols of a few products; `mutants protocols` plants them in more, and in those of the examples.

use tilewright_mutants::protocol::{Notice, Subject, Tally, drawn};

/// Products that are drawn.
const CASES: u64 = 24;

#[test]
fn every_mistake_is_noticed() {
    let mut tally = Tally::default();
    for (name, compiled, dims) in (0..CASES).filter_map(|index| drawn(3, index)) {
        let subject = Subject::new(&compiled, &dims).expect("sizes of the first entry point");
        tally.try_all(&name, &subject).expect("right as it is");
    }
    assert!(tally.unnoticed.is_empty(), "{tally}");
    let by = |who: Notice| tally.counts.iter().filter(|c| c.0.1 == who).map(|c| *c.1).sum::<u64>();
    assert!(tally.kernels >= 2 && by(Notice::Checker) >= 40, "{tally}");
}
