//! Some random attention; `campaign --attention` runs much more.

use tilewright_campaign::compose::attention::{attention, campaign, features};

/// Cases of the test: one takes a second.
const CASES: u64 = 16;

#[test]
fn attention_is_right() {
    let summary = campaign(1, 0, CASES, None);
    assert!(summary.failures.is_empty(), "{summary}");
    assert!(summary.accepted * 3 >= summary.cases, "too few kernels are accepted to test much\n{summary}");
    assert!(summary.run * 100 >= summary.accepted * 80, "too few of the accepted kernels are run\n{summary}");
    let number = |name: &str| features::FEATURES.iter().position(|f| *f == name).expect("a feature");
    for feature in ["narrow-entry", "ragged", "ring", "wgmma", "mma-sync"] {
        assert!(summary.matrix.at(number(feature), number(feature)) > 0, "{feature}\n{summary}");
    }
}

/// The same for the same seed, and for two features one that has both.
#[test]
fn attention_is_drawn_again() {
    for index in 0..40 {
        assert_eq!(attention(3, index, None), attention(3, index, None));
        let found = features::of(&attention(3, index, Some(("alternate", "late"))).0);
        assert!(found.contains("alternate") && found.contains("late"), "{found:?}");
    }
}
