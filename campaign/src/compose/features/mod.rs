//! What a kernel has.

mod equations;
mod schedules;

use std::collections::BTreeSet;

use super::ast::{Expr, Index, Kernel, Related};
use equations::equations;

/// Every feature; the matrix has a row and a column for each.
pub const FEATURES: &[&str] = &[
    "split",
    "split-into",
    "split-by-1",
    "merge",
    "reorder",
    "resize",
    "resize-0",
    "unroll",
    "unroll-by",
    "vectorize",
    "like",
    "region",
    "layout",
    "box",
    "swizzle",
    "swizzled-tile",
    "region-flat",
    "warp-range",
    "multicast",
    "multicast-by",
    "tile",
    "tile-ops",
    "view-split",
    "view-merge",
    "box-composite",
    "resize-copy",
    "l2",
    "l2-promote",
    "fill-zero",
    "fill-any",
    "swizzle-128",
    "layout-swizzle",
    "layout-pad",
    "raster",
    "descending",
    "grid",
    "cta",
    "warpgroup",
    "warp",
    "thread",
    "many-threads",
    "parts",
    "own-unit",
    "warp-range-later",
    "parts-warp",
    "parts-range",
    "registers",
    "registers-thread",
    "registers-warp",
    "registers-warpgroup",
    "registers-cluster",
    "shared",
    "shared-thread",
    "shared-warp",
    "shared-warpgroup",
    "global",
    "global-thread",
    "global-warp",
    "global-warpgroup",
    "copy",
    "copy-of-stage",
    "tma",
    "cp_async",
    "store",
    "ring",
    "roles",
    "ring-grid",
    "tune",
    "other-role",
    "online",
    "online-several",
    "online-min",
    "online-squares",
    "online-weights",
    "online-choice",
    "online-place",
    "online-sum",
    "exp",
    "roles-three",
    "role-chain",
    "role-regs",
    "alternate",
    "role-stores",
    "both-ways",
    "copies-of-one",
    "copy-in-stage",
    "cluster",
    "persistent",
    "dependent",
    "reduce-threads",
    "reduce-by-warp",
    "reduce-cluster",
    "reduce-grid",
    "reduce-atomic",
    "sum",
    "unordered",
    "ordered",
    "max",
    "min",
    "argmax",
    "argmin",
    "fold",
    "fold-ordered",
    "any",
    "all",
    "prod",
    "dot",
    "dot-narrow",
    "fold-states",
    "fold-states-ordered",
    "fold-payload",
    "fold-mixed-types",
    "states-output",
    "range-prefix",
    "range-suffix",
    "range-window",
    "range-inferred",
    "range-literal",
    "range-scaled",
    "range-nested",
    "range-from-memory",
    "range-to-memory",
    "range-below",
    "reduce-two-axes",
    "two-reductions",
    "argument-reduced",
    "output-reduction",
    "stage-reduction",
    "inline",
    "halo",
    "halo-2d",
    "halo-of-stage",
    "strided",
    "quotient",
    "mirrored",
    "pair",
    "sum-of-indices",
    "condition-indices",
    "or-value",
    "gather",
    "gather-of-gather",
    "scatter",
    "scatter-extreme",
    "scatter-only",
    "scatter-output",
    "scatter-own-axes",
    "scatter-arithmetic",
    "scatter-table",
    "gather-innermost",
    "gather-2d",
    "gather-other-type",
    "gather-arithmetic",
    "gather-by-copy",
    "gather-quotient",
    "gather-twice",
    "gather-sum",
    "quotient-of-index",
    "quotient-by-size",
    "or",
    "transposed",
    "condition",
    "condition-and",
    "condition-or",
    "guarded-read",
    "cast",
    "cast-of-read",
    "negation",
    "abs",
    "floor",
    "fma",
    "max_num",
    "quotient-of-values",
    "bits",
    "size-as-value",
    "by-value",
    "one-element",
    "no-reads",
    "input-strides",
    "input-permuted",
    "zero-stride",
    "shared-pitch",
    "output-strides",
    "output-permuted",
    "in-place",
    "in-place-reduction",
    "tuple",
    "tuple-reduction",
    "tuple-in-place",
    "tuple-stage",
    "tuple-mixed-types",
    "lower-bound",
    "output-read",
    "chain",
    "diamond",
    "two-outputs",
    "beside",
    "several-in-loop",
    "unrolled-around-stage",
    "unroll-by-around-stage",
    "nested-stage",
    "rank-0",
    "nested-twice",
    "stage-of-beside",
    "beside-role",
    "mixed-places",
    "reductions-in-loop",
    "like-chain",
    "vectorized-registers",
    "vectorized-shared",
    "vectorized-global",
    "vectorized-columns",
    "rank-1",
    "rank-3",
    "rank-4",
    "f16",
    "bf16",
    "f32",
    "f64",
    "i8",
    "u8",
    "i16",
    "i32",
    "u32",
    "i64",
    "u64",
    "other-input-type",
    "stored-type",
    "other-stage-type",
    "other-output-type",
    "bool-input",
    "bool-stage",
    "bool-output",
    "flag",
    "bounded",
    "divisible",
    "equal-sizes",
    "ordered-sizes",
    "narrow-entry",
    "wide-entry",
    "only-entry",
    "three-entries",
];

/// The threads that an item of `launch` gives to a block, if it gives any.
fn threads(item: &str) -> Option<u32> {
    if let Some(count) = item.strip_prefix("threads(") {
        return count.trim_end_matches(')').parse().ok();
    }
    let roles = item.strip_prefix("roles {")?.trim_end_matches('}').split(',');
    let of = |role: &str| {
        let (_, units) = role.split_once(": ")?;
        let (count, unit) = match units.trim().split_once(' ') {
            Some((count, unit)) if count.parse::<u32>().is_ok() => (count.parse().ok()?, unit),
            _ => (1, units.trim()),
        };
        Some(count * if unit.starts_with("warpgroup") { 128 } else { 32 })
    };
    roles.map(of).sum()
}

/// What one op of a schedule has.
fn of_op(op: &str, add: &mut dyn FnMut(bool, &'static str)) {
    let has = |text: &str| op.contains(text);
    match op.split(' ').next().unwrap_or_default() {
        "split" => {
            add(has(" by "), "split");
            add(has(" into "), "split-into");
            add(has(" by 1 ") || has(" into 1 "), "split-by-1");
        }
        "merge" => add(true, "merge"),
        "reorder" => add(true, "reorder"),
        "resize" => {
            add(true, "resize");
            add(has("(0, 0)"), "resize-0");
        }
        "unroll" => add(true, if has(" by ") { "unroll-by" } else { "unroll" }),
        "vectorize" => add(true, "vectorize"),
        "like" => add(true, "like"),
        "online" => {
            add(true, "online");
            add(has(","), "online-several");
        }
        "region" => {
            add(true, "region");
            add(has("flat"), "region-flat");
        }
        "layout" => {
            add(true, "layout");
            add(has("swizzle"), "swizzled-tile");
        }
        "swizzle" => add(true, "swizzle"),
        "box" => add(true, "box"),
        "multicast" => add(true, "multicast"),
        "reduce" => {
            let by = ["cluster", "grid", "atomic"].into_iter().find(|by| op.ends_with(&format!(" by {by}")));
            let by = match by {
                Some("cluster") => "reduce-cluster",
                Some("grid") => "reduce-grid",
                Some(_) => "reduce-atomic",
                None => "reduce-threads",
            };
            add(true, by);
        }
        "bind" => {
            add(has(": grid"), "grid");
            add(has("raster"), "raster");
            add(has("descending"), "descending");
            add(has(": cta"), "cta");
            add(op.ends_with(": warpgroup"), "warpgroup");
            add(op.ends_with(": warp"), "warp");
            add(has(": warp ") && has(".."), "warp-range");
            add(op.ends_with(": thread"), "thread");
            add(op.split(": ").nth(1).is_some_and(|u| u.starts_with(char::is_numeric)), "parts");
        }
        _ => {}
    }
}

/// What a kernel has, its entry points left out.
pub fn of(kernel: &Kernel) -> BTreeSet<&'static str> {
    let mut found: BTreeSet<&'static str> = BTreeSet::new();
    let mut add = |is: bool, feature: &'static str| {
        if is {
            found.insert(feature);
        }
    };
    add(!kernel.tuned.is_empty(), "tune");
    for schedule in &kernel.schedules {
        for op in &schedule.ops {
            of_op(op, &mut add);
        }
        let has = |clause: &str| schedule.clauses.iter().any(|c| c.starts_with(clause));
        add(has("ring"), "ring");
        add(has("via tma"), "tma");
        add(has("via cp_async"), "cp_async");
        if let Some((_, of)) = &schedule.copy {
            let mut is_read = false;
            kernel.equations.iter().for_each(|e| {
                e.value.walk(&mut |e| {
                    is_read |= matches!(e, Expr::Read(t, indices, _) if t == of && indices.iter().any(Index::gathers));
                });
            });
            add(has("via tma") && is_read, "gather-by-copy");
            let output = kernel.equation(of).map(|e| e.output);
            add(output == Some(true), "store");
            add(output == Some(false), "copy-of-stage");
            add(output.is_none(), "copy");
        }
        let place = match schedule.place.as_str() {
            "registers" | "registers per cta" => "registers",
            "registers per thread" => "registers-thread",
            "registers per warp" => "registers-warp",
            "registers per warpgroup" => "registers-warpgroup",
            "registers per cluster" => "registers-cluster",
            "shared" | "shared per cta" => "shared",
            "shared per thread" => "shared-thread",
            "shared per warp" => "shared-warp",
            "shared per warpgroup" => "shared-warpgroup",
            "global" | "global per cta" => "global",
            "global per thread" => "global-thread",
            "global per warp" => "global-warp",
            "global per warpgroup" => "global-warpgroup",
            _ => continue,
        };
        add(true, place);
        let same = kernel.schedules.iter().filter(|s| s.at.is_some() && s.at == schedule.at && !s.place.is_empty());
        add(same.count() > 1, "several-in-loop");
        let Some((stage, axis)) = &schedule.at else { continue };
        let Some(around) = kernel.schedules.iter().find(|s| s.name == *stage) else { continue };
        add(!around.place.is_empty(), "nested-stage");
        let outside = around.loops.iter().take_while(|l| l != &axis);
        let mut written = outside.filter(|l| around.ops.contains(&format!("unroll {l}")));
        add(written.next().is_some(), "unrolled-around-stage");
    }
    schedules::of_schedules(kernel, &mut add);
    for item in &kernel.launch {
        add(item.starts_with("cluster"), "cluster");
        add(threads(item).is_some_and(|n| n > 128), "many-threads");
        add(item == "persistent", "persistent");
        add(item == "dependent", "dependent");
        add(item.starts_with("roles"), "roles");
    }
    let outputs = kernel.equations.iter().filter(|e| e.output);
    add(outputs.clone().count() > 1, "two-outputs");
    add(kernel.schedules.iter().any(|s| s.place.is_empty() && s.at.is_some()), "beside");
    add(!kernel.inlined.is_empty(), "inline");
    add(kernel.equations.iter().any(|e| e.axes.is_empty()), "rank-0");
    add(kernel.equations.iter().any(|e| e.axes.len() == 1), "rank-1");
    add(kernel.equations.iter().any(|e| e.axes.len() == 3), "rank-3");
    add(kernel.equations.iter().any(|e| e.axes.len() == 4), "rank-4");
    add(kernel.relation.is_some_and(|r| r.how == Related::Equal), "equal-sizes");
    add(kernel.relation.is_some_and(|r| r.how != Related::Equal), "ordered-sizes");
    add(kernel.most.iter().any(Option::is_some), "bounded");
    add(kernel.divides.iter().any(|d| *d > 1), "divisible");
    found.insert(kernel.ty.name());
    equations(kernel, &mut found);
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_of_a_block_are_counted() {
        let roles = "roles { load: warp regs(24), math: 2 warpgroup regs(232), save: 2 warp }";
        assert_eq!(super::threads(roles), Some(32 + 256 + 64));
        assert_eq!(super::threads("threads(192)"), Some(192));
        assert_eq!(super::threads("persistent"), None);
    }
}
