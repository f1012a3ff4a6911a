//! Some random products by tensor cores; `campaign --products` runs many more.

use tilewright_campaign::compile::{Outcome, compile};
use tilewright_campaign::compose::products::{Between, Product, Store, features, shrink};
use tilewright_campaign::compose::{self, Family};
use tilewright_campaign::mutate;

/// Cases of the test: one takes a second.
const CASES: u64 = 14;
/// Products that are only compiled.
const COMPILED: u64 = 30;

#[test]
fn products_are_right() {
    let summary = compose::campaign_of_products(1, 0, CASES, None);
    assert!(summary.failures.is_empty(), "{summary}");
    assert!(summary.accepted * 2 >= summary.cases, "too few products are accepted to test much\n{summary}");
    assert!(summary.run * 100 >= summary.accepted * 90, "too few of the accepted products are run\n{summary}");
    let number = |name: &str| features::FEATURES.iter().position(|f| *f == name).expect("a feature");
    for feature in ["narrow-entry", "wide-entry", "ring", "roles", "wgmma", "mma-sync", "units-below", "store-shared"] {
        assert!(summary.matrix.at(number(feature), number(feature)) > 0, "{feature}\n{summary}");
    }
}

/// What is drawn is a product of tensor cores, whatever is refused in it; and the same for the same seed.
#[test]
fn products_are_drawn_again() {
    let mut accepted = 0;
    for index in 0..COMPILED {
        let (kernel, data) = Family::Product(None).case(3, index);
        assert_eq!((kernel.clone(), data), Family::Product(None).case(3, index));
        let text = kernel.to_string();
        let is_async = text.contains(" by wgmma");
        assert!((is_async || text.contains(" by mma_sync")) && text.contains("mma ("), "{text}");
        if let Outcome::Accepted(info, _) = compile(&text) {
            accepted += 1;
            let word = if is_async { "wgmma.mma_async" } else { "mma.sync" };
            assert!(info.ptx.text.contains(word), "{text}");
        }
    }
    assert!(accepted * 2 > COMPILED, "{accepted}");
}

/// All that does not matter for what fails is taken back.
#[test]
fn findings_become_small() {
    let is_rich = |p: &Product| p.roles.is_some() && p.cluster.is_some() && p.steps.len() > 1 && p.batch.is_some();
    let all = (0..3000).map(|index| compose::product(1, index).0);
    let rich = all.into_iter().find(is_rich).expect("a product with much around it");
    let fails = |p: &Product| p.cluster.is_some_and(|cluster| cluster.multicast);
    let mut multicast = rich;
    multicast.cluster.iter_mut().for_each(|cluster| cluster.multicast = true);
    let small = shrink(&multicast, &mut 1000, &fails);
    assert!(fails(&small));
    let rest = (small.roles, small.batch, small.steps.len(), small.between, small.store, small.tiles.units);
    assert_eq!(rest, (None, None, 0, Between::Output, Store::Single, [1, 1]));
    assert!(small.kernel().to_string().len() < multicast.kernel().to_string().len());
    // No more tries than that.
    assert_eq!(shrink(&multicast, &mut 0, &fails), multicast);
}

#[test]
fn broken_text_of_products_gives_errors() {
    let summary = mutate::products(1, 0, 60);
    assert!(summary.failures.is_empty(), "{summary}");
}
