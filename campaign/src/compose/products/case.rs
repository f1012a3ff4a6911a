//! The product of a case, drawn for features if some are wanted.

use super::{Product, draw, features};
use crate::compose::matrix::Pair;
use crate::rng::Rng;

/// What makes the numbers of products other ones than those of compositions.
const PRODUCTS: u64 = 0x7072_6f64;

/// Products that are drawn for a pair of features.
const DRAWS: usize = 2000;

/// The product of a case, and what decides its sizes and data.
pub fn product(seed: u64, index: u64) -> (Product, u64) {
    product_for(seed, index, None)
}

/// The same, drawn for two features: the first of many that has them, or else the last one.
pub fn product_for(seed: u64, index: u64, wanted: Option<Pair>) -> (Product, u64) {
    let mut rng = Rng::of_case(seed ^ PRODUCTS, index);
    let has = |product: &Product, (a, b): Pair| {
        let found = features::of(product);
        // Of entry points nothing can be drawn.
        [a, b].iter().all(|feature| found.contains(feature) || feature.contains("entr"))
    };
    let mut product = draw::product(&mut rng);
    for _ in 0..DRAWS {
        if wanted.is_none_or(|pair| has(&product, pair)) {
            break;
        }
        product = draw::product(&mut rng);
    }
    (product, rng.bits())
}
