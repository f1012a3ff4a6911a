//! What a product has.

use std::collections::BTreeSet;

use super::{Also, Between, Engine, Grid, Made, Product, Split, Step, Store, Via, Writer};
use crate::compose::ast::{Reduction, Type};

/// Every feature; the matrix has a row and a column for each.
pub const FEATURES: &[&str] = &[
    "wgmma",
    "mma-sync",
    "bf16",
    "f16",
    "tf32",
    "e4m3",
    "e5m2",
    "i8",
    "u8",
    "two-types",
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
    "held-scaled",
    "held-relu",
    "held-by-hand",
    "held-vector",
    "held-outside",
    "held-by-block",
    "chain",
    "written",
    "written-both",
    "written-copied",
    "written-converted",
    "written-turned",
    "written-singly",
    "written-unrolled",
    "written-for-all-terms",
    "written-by-load",
    "written-by-math",
    "written-by-make",
    "threads-ahead",
    "threads",
    "copy-of-warp",
    "chunks-of-8",
    "chunks-of-4",
    "padded",
    "batch",
    "placed-by-memory",
    "placed-rows",
    "placed-columns",
    "placed-terms",
    "placed-parts",
    "units-below",
    "units-beside",
    "inner-loop",
    "inner-unrolled",
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
    "alternate",
    "alternate-three",
    "persistent",
    "dependent",
    "inflight",
    "inflight-several",
    "split-by",
    "split-into",
    "split-atomic",
    "grid-swapped",
    "raster",
    "descending",
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
    "tuple",
    "narrow-entry",
    "wide-entry",
    "only-entry",
    "three-entries",
];

/// Features that are another's opposite.
const APART: &[&[&str]] = &[
    &["bf16", "f16", "tf32", "e4m3", "i8"],
    &["bf16", "f16", "tf32", "e5m2", "u8"],
    &["e4m3", "u8"],
    &["e5m2", "i8"],
    &["two-types", "bf16"],
    &["two-types", "f16"],
    &["two-types", "tf32"],
    &["columns-8", "columns-odd", "columns-256", "columns-more"],
    &["one-step", "steps"],
    &["wgmma", "mma-sync"],
    // A warp waits for what it multiplies, and needs no others.
    &["mma-sync", "inflight"],
    &["mma-sync", "inflight-several"],
    &["mma-sync", "registers"],
    &["mma-sync", "columns-256"],
    &["mma-sync", "columns-more"],
    // What threads fetch ahead is no factor of warpgroups; all of these have an instance together.
    &["wgmma", "threads-ahead"],
    &["wgmma", "copy-of-warp"],
    &["wgmma", "padded"],
    &["mma-sync", "written"],
    &["mma-sync", "written-both"],
    &["mma-sync", "written-copied"],
    &["mma-sync", "written-converted"],
    &["mma-sync", "written-turned"],
    &["mma-sync", "written-singly"],
    &["mma-sync", "written-unrolled"],
    &["mma-sync", "written-for-all-terms"],
    &["written-by-load", "written-by-math", "written-by-make", "mma-sync"],
    &["written-by-math", "inflight"],
    &["written-by-math", "inflight-several"],
    // Each one is all of the role.
    &["alternate", "units-below", "units-beside"],
    &["alternate-three", "units-below", "units-beside"],
    &["load-warp", "load-warpgroup"],
    &["load-warp", "registers"],
    &["grid-swapped", "raster", "descending", "grid-merged", "columns-serial"],
    &["equation-between", "stage-between"],
    &["store-vector", "store-single", "store-shared"],
    &["store-vector", "store-single", "store-swizzled"],
    &["store-vector", "store-single", "store-ring"],
    &["only-entry", "narrow-entry"],
    &["only-entry", "three-entries"],
    &["only-entry", "wide-entry"],
    &["no-ring", "inflight"],
    &["no-ring", "inflight-several"],
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
    &["ring-1", "inflight-several"],
    // Registers are awaited before they are given other values.
    &["held", "inflight"],
    &["held", "inflight-several"],
    &["held-copied", "inflight"],
    &["held-copied", "inflight-several"],
    &["held-converted", "inflight"],
    &["held-converted", "inflight-several"],
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
    add(product.also == Some(Also::Equation), "beside");
    add(product.also == Some(Also::Tuple), "tuple");
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
    add(a.ty != b.ty, "two-types");
    add(a.across, "a-across");
    add(b.across, "b-across");
    let both = product.is_copied(0) && product.is_copied(1);
    add(both && a.swizzle != b.swizzle, "two-swizzles");
    add(both && a.ring != b.ring, "two-rings");
    for (n, factor) in [a, b].into_iter().enumerate() {
        add(factor.pitched, "pitched");
        add(factor.plus != [0, 0], "shifted");
        if !product.is_copied(n) {
            continue;
        }
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
        add(factor.whole, "whole-copy");
        match factor.via {
            Via::Tma => add(factor.hint.is_some(), "hint"),
            Via::Threads(threads) => {
                add(true, if threads.ahead { "threads-ahead" } else { "threads" });
                add(threads.of_warp, "copy-of-warp");
                add(threads.chunk == 8, "chunks-of-8");
                add(threads.chunk == 4, "chunks-of-4");
                add(threads.padded, "padded");
            }
        }
    }
    add(product.exchanged, "exchanged");
    for (held, factor) in product.held.iter().zip(&product.factors) {
        let Some(held) = held else { continue };
        if let Some(written) = held.written {
            add(true, "written");
            add(held.copied, "written-copied");
            add(held.from != factor.ty, "written-converted");
            add(written.turned, "written-turned");
            add(written.chunk <= factor.ty.bytes() as i64, "written-singly");
            add(written.unrolled, "written-unrolled");
            add(factor.whole, "written-for-all-terms");
            add(held.made == Made::Scaled, "held-scaled");
            add(held.made == Made::Relu, "held-relu");
            continue;
        }
        add(true, "held");
        add(held.copied, "held-copied");
        add(held.from != factor.ty, "held-converted");
        add(held.by_hand, "held-by-hand");
        add(held.vector, "held-vector");
        add(held.outside && product.tiles.inner > 1, "held-outside");
        add(held.of_block, "held-by-block");
        let made = match held.made {
            Made::Nothing => continue,
            Made::Scaled => "held-scaled",
            Made::Relu => "held-relu",
            Made::Product(_) => "chain",
        };
        add(true, made);
    }
    let written = (0..2).filter(|n| product.is_written(*n)).count();
    add(written == 2, "written-both");
    if let Some(roles) = product.roles.filter(|_| written > 0) {
        let by = match roles.writes {
            Writer::Load => "written-by-load",
            Writer::Math => "written-by-math",
            Writer::Make(_) => "written-by-make",
        };
        add(true, by);
    }
    add(product.batch.is_some(), "batch");
    add(product.placed.is_some(), "placed-by-memory");
    if let Some((along, each)) = product.placed.and_then(|placed| placed.each) {
        add(true, ["placed-rows", "placed-columns", "placed-terms"][along]);
        add(each < product.block()[along], "placed-parts");
    }
}

fn of_tiles(product: &Product, add: &mut dyn FnMut(bool, &'static str)) {
    let tiles = product.tiles;
    add(true, if tiles.engine == Engine::Wgmma { "wgmma" } else { "mma-sync" });
    add(tiles.units[0] > 1, "units-below");
    add(tiles.units[1] > 1, "units-beside");
    add(tiles.inner > 1, "inner-loop");
    add(tiles.inner > 1 && tiles.unrolled, "inner-unrolled");
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
        add(true, if roles.load == 4 { "load-warpgroup" } else { "load-warp" });
        add(roles.registers.is_some(), "registers");
        add(roles.math_first, "math-first");
        add(roles.save, "save");
        add(roles.turns > 1, "alternate");
        add(roles.turns > 2, "alternate-three");
    }
    product.launch.iter().for_each(|item| add(true, item));
    add(product.inflight > 0, "inflight");
    add(product.inflight > 1, "inflight-several");
    add(matches!(product.split, Some(Split::By(_))), "split-by");
    add(matches!(product.split, Some(Split::Into(_))), "split-into");
    add(product.split.is_some() && product.atomic, "split-atomic");
    let grid = match product.grid {
        Grid::Both => return,
        Grid::Swapped => "grid-swapped",
        Grid::Raster(_) => "raster",
        Grid::Descending => "descending",
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
        for index in 0..12_000 {
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
