//! What a product has.

use std::collections::BTreeSet;

use super::{Between, Grid, Product, Split, Step, Store};
use crate::compose::ast::{Reduction, Type};

/// Every feature; the matrix has a row and a column for each.
pub const FEATURES: &[&str] = &[
    "bf16",
    "f16",
    "tf32",
    "e4m3",
    "e5m2",
    "i8",
    "u8",
    "a-across",
    "b-across",
    "swizzle-none",
    "swizzle-32",
    "swizzle-64",
    "swizzle-128",
    "two-swizzles",
    "box-rows",
    "box-rows-outside",
    "no-ring",
    "ring-1",
    "ring",
    "two-rings",
    "hint",
    "pitched",
    "shifted",
    "whole-copy",
    "exchanged",
    "held",
    "held-copied",
    "held-converted",
    "batch",
    "warpgroups",
    "warpgroups-beside",
    "several-tiles",
    "columns-8",
    "columns-odd",
    "columns-256",
    "columns-more",
    "one-step",
    "steps",
    "literal-rows",
    "literal-columns",
    "literal-terms",
    "even",
    "cluster",
    "cluster-beside",
    "cluster-4",
    "multicast",
    "multicast-by",
    "roles",
    "load-warp",
    "load-warpgroup",
    "registers",
    "math-first",
    "save",
    "persistent",
    "dependent",
    "inflight",
    "split-by",
    "split-into",
    "split-atomic",
    "grid-swapped",
    "raster",
    "grid-merged",
    "columns-serial",
    "bias",
    "scale",
    "row-scale",
    "relu",
    "residual",
    "negative",
    "triangle",
    "row-sum",
    "row-extreme",
    "equation-between",
    "stage-between",
    "other-output",
    "narrow-output",
    "transposed",
    "store-vector",
    "store-single",
    "store-shared",
    "store-swizzled",
    "parts",
    "store-ring",
    "beside",
    "narrow-entry",
    "wide-entry",
    "only-entry",
    "three-entries",
];

/// Features that are another's opposite.
const APART: &[&[&str]] = &[
    &["bf16", "f16", "tf32", "e4m3", "e5m2", "i8", "u8"],
    &["columns-8", "columns-odd", "columns-256", "columns-more"],
    &["one-step", "steps"],
    &["load-warp", "load-warpgroup"],
    &["load-warp", "registers"],
    &["grid-swapped", "raster", "grid-merged", "columns-serial"],
    &["equation-between", "stage-between"],
    &["store-vector", "store-single", "store-shared"],
    &["store-vector", "store-single", "store-swizzled"],
    &["store-vector", "store-single", "store-ring"],
    &["only-entry", "narrow-entry"],
    &["only-entry", "three-entries"],
    &["i8", "columns-8"],
    &["u8", "columns-8"],
    &["only-entry", "wide-entry"],
    &["no-ring", "inflight"],
    &["split-by", "split-into"],
    // Sums of floats have one order.
    &["split-atomic", "bf16"],
    &["split-atomic", "f16"],
    &["split-atomic", "tf32"],
    &["split-atomic", "e4m3"],
    &["split-atomic", "e5m2"],
    // Another role does not know which block goes on.
    &["split-by", "save"],
    &["split-into", "save"],
    &["split-atomic", "save"],
    &["ring-1", "inflight"],
    // Registers are awaited before they are given other values.
    &["held", "inflight"],
    &["held-copied", "inflight"],
    &["held-converted", "inflight"],
    // Rows or columns are neighbours for types of 16 bits.
    &["a-across", "tf32"],
    &["a-across", "e4m3"],
    &["a-across", "e5m2"],
    &["a-across", "i8"],
    &["a-across", "u8"],
    &["b-across", "tf32"],
    &["b-across", "e4m3"],
    &["b-across", "e5m2"],
    &["b-across", "i8"],
    &["b-across", "u8"],
    &["row-sum", "warpgroups-beside"],
    &["row-extreme", "warpgroups-beside"],
];

/// Why two features never meet, if they do not.
pub fn apart(a: &str, b: &str) -> Option<&'static str> {
    let both = |row: &&&[&str]| a != b && row.contains(&a) && row.contains(&b);
    APART.iter().find(both).map(|_| "one is there without the other, or the language has no such product")
}

/// What a product has, its entry points left out.
pub fn of(product: &Product) -> BTreeSet<&'static str> {
    let mut found: BTreeSet<&'static str> = BTreeSet::new();
    let mut add = |is: bool, feature: &'static str| {
        if is {
            found.insert(feature);
        }
    };
    of_factors(product, &mut add);
    of_tiles(product, &mut add);
    of_launch(product, &mut add);
    for step in &product.steps {
        let name = match step {
            Step::Bias => "bias",
            Step::Scale => "scale",
            Step::RowScale => "row-scale",
            Step::Relu => "relu",
            Step::Residual(_) => "residual",
            Step::Negative => "negative",
            Step::Triangle => "triangle",
            Step::Row(Reduction::Sum) => "row-sum",
            Step::Row(_) => "row-extreme",
        };
        add(true, name);
    }
    add(product.between == Between::Equation, "equation-between");
    add(product.between == Between::Stage, "stage-between");
    add(product.output != product.sum(), "other-output");
    add(product.output.bytes() < product.sum().bytes(), "narrow-output");
    add(product.transposed, "transposed");
    add(product.also, "beside");
    add(product.part.is_some(), "parts");
    add(product.slots.is_some(), "store-ring");
    match product.store {
        Store::Vector => add(true, "store-vector"),
        Store::Shared(swizzle) => {
            add(true, "store-shared");
            add(swizzle > 0, "store-swizzled");
        }
        _ => add(true, "store-single"),
    }
    found
}

fn of_factors(product: &Product, add: &mut dyn FnMut(bool, &'static str)) {
    let [a, b] = &product.factors;
    for ty in [Type::Bf16, Type::F16, Type::Tf32, Type::E4m3, Type::E5m2, Type::I8, Type::U8] {
        add([a.ty, b.ty].contains(&ty), ty.name());
    }
    add(a.across, "a-across");
    add(b.across, "b-across");
    add(a.swizzle != b.swizzle, "two-swizzles");
    add(a.ring != b.ring, "two-rings");
    for factor in [a, b] {
        for (bytes, name) in [(0, "swizzle-none"), (32, "swizzle-32"), (64, "swizzle-64"), (128, "swizzle-128")] {
            add(factor.swizzle == bytes, name);
        }
        add(factor.rows.is_some(), "box-rows");
        add(factor.rows.is_some() && factor.rows_outside, "box-rows-outside");
        let ring = match factor.ring {
            None => "no-ring",
            Some(1) => "ring-1",
            Some(_) => "ring",
        };
        add(true, ring);
        add(factor.hint.is_some(), "hint");
        add(factor.pitched, "pitched");
        add(factor.plus != [0, 0], "shifted");
        add(factor.whole, "whole-copy");
    }
    add(product.exchanged, "exchanged");
    if let Some(held) = product.held {
        add(true, "held");
        add(held.copied, "held-copied");
        add(held.from != a.ty, "held-converted");
    }
    add(product.batch.is_some(), "batch");
}

fn of_tiles(product: &Product, add: &mut dyn FnMut(bool, &'static str)) {
    let tiles = product.tiles;
    add(tiles.groups > 1, "warpgroups");
    add(tiles.groups > 1 && tiles.beside, "warpgroups-beside");
    add(tiles.rows > 1, "several-tiles");
    let columns = match tiles.columns {
        8 => "columns-8",
        256 => "columns-256",
        257.. => "columns-more",
        n if n.count_ones() > 1 => "columns-odd",
        _ => "",
    };
    add(!columns.is_empty(), columns);
    add(true, if tiles.steps == 1 { "one-step" } else { "steps" });
    for (n, name) in ["literal-rows", "literal-columns", "literal-terms"].into_iter().enumerate() {
        add(product.literal[n].is_some(), name);
        add(product.even[n], "even");
    }
}

fn of_launch(product: &Product, add: &mut dyn FnMut(bool, &'static str)) {
    if let Some(cluster) = product.cluster {
        add(true, "cluster");
        add(cluster.beside, "cluster-beside");
        add(cluster.blocks == 4, "cluster-4");
        add(cluster.multicast, "multicast");
        let factor = &product.factors[usize::from(!cluster.beside)];
        add(cluster.multicast && cluster.parts && (factor.rows.is_some() || factor.across), "multicast-by");
    }
    if let Some(roles) = product.roles {
        add(true, "roles");
        add(true, if roles.load == "warpgroup" { "load-warpgroup" } else { "load-warp" });
        add(roles.registers.is_some(), "registers");
        add(roles.math_first, "math-first");
        add(roles.save, "save");
    }
    product.launch.iter().for_each(|item| add(true, item));
    add(product.inflight > 0, "inflight");
    add(matches!(product.split, Some(Split::By(_))), "split-by");
    add(matches!(product.split, Some(Split::Into(_))), "split-into");
    add(product.split.is_some() && product.atomic, "split-atomic");
    let grid = match product.grid {
        Grid::Both => return,
        Grid::Swapped => "grid-swapped",
        Grid::Raster(_) => "raster",
        Grid::Merged => "grid-merged",
        Grid::Serial => "columns-serial",
    };
    add(true, grid);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::products;
    use crate::rng::Rng;

    /// What is found is in the list, each thing in the list is drawn, and what is apart does not meet.
    #[test]
    fn features_are_drawn() {
        let mut met: BTreeSet<&'static str> = BTreeSet::new();
        for index in 0..2000 {
            met.extend(of(&products::product(&mut Rng::of_case(1, index))));
        }
        assert!(met.iter().all(|f| FEATURES.contains(f)), "{met:?}");
        let never: Vec<&&str> = FEATURES.iter().filter(|f| !met.contains(**f) && !f.ends_with("entry")).collect();
        assert_eq!(never, [&"three-entries"]);
        let names = APART.iter().flat_map(|row| row.iter());
        assert_eq!(names.filter(|n| !FEATURES.contains(n)).count(), 0);
        assert!(apart("bf16", "i8").is_some() && apart("bf16", "bf16").is_none() && apart("bf16", "ring").is_none());
    }
}
