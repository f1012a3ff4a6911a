//! Every form for every number of trips from none to two more than twice the slots: the separate checker finds nothing
//! wrong, and the emulator gives what the reference does, under several seeds.

use tilewright_compiler::proof::{Verdict, check};

use super::forms::{Form, forms};
use super::{WORK, accepted, is_good, launch};
use crate::support::campaign;

/// Rings of one to four slots; blocks that have one loop around them, or several, one after the other.
fn every_number_of_trips_is_right(part: usize, parts: usize) {
    let (seed, count) = campaign("TILEWRIGHT_TRIPS", (1, 4));
    for Form { name, source, dims, residents } in forms().into_iter().skip(part).step_by(parts) {
        for ring in 1..=4 {
            let source = source(ring);
            let compiled = accepted(&source);
            let (info, entry) = (compiled.info.as_ref().expect("no error"), &compiled.entries[0]);
            for trips in 0..=2 * i64::from(ring) + 2 {
                let dims = dims(trips);
                let holds = entry.conditions.iter().all(|c| c.holds(&dims) == Ok(true));
                assert!(holds, "{name}, {dims:?}: another entry point is taken");
                for &resident in residents {
                    let verdict = check(&entry.kernel, &launch(info, &dims, resident), WORK);
                    assert_eq!(verdict, Verdict::Holds, "{name}, {dims:?} by {resident}\n{source}");
                    for seed in seed..seed + count {
                        let good = is_good(info, &dims, seed, resident);
                        assert!(good, "{name}, {dims:?} by {resident}, seed {seed}\n{source}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_number_of_trips_is_right_for_every_other_form() {
    every_number_of_trips_is_right(0, 2);
}

#[test]
fn every_number_of_trips_is_right_for_the_others() {
    every_number_of_trips_is_right(1, 2);
}
