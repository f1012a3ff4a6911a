//! What a kernel has.

use std::collections::BTreeSet;

use super::ast::{Expr, Index, Kernel, Reduction, Type};

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
    "grid",
    "cta",
    "warpgroup",
    "warp",
    "thread",
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
    "other-role",
    "roles-three",
    "role-chain",
    "role-regs",
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
    "ordered",
    "max",
    "min",
    "argmax",
    "argmin",
    "fold",
    "fold-ordered",
    "any",
    "output-reduction",
    "stage-reduction",
    "inline",
    "halo",
    "halo-2d",
    "halo-of-stage",
    "strided",
    "quotient",
    "mirrored",
    "gather",
    "or",
    "transposed",
    "condition",
    "chain",
    "diamond",
    "two-outputs",
    "beside",
    "several-in-loop",
    "unrolled-around-stage",
    "unroll-by-around-stage",
    "nested-stage",
    "nested-twice",
    "stage-of-beside",
    "mixed-places",
    "two-reductions",
    "like-chain",
    "vectorized-registers",
    "vectorized-shared",
    "vectorized-global",
    "vectorized-columns",
    "rank-1",
    "rank-3",
    "f16",
    "f32",
    "i32",
    "bounded",
    "divisible",
    "narrow-entry",
    "wide-entry",
    "only-entry",
    "three-entries",
];

/// What a kernel has, its entry points left out.
pub fn of(kernel: &Kernel) -> BTreeSet<&'static str> {
    let mut found: BTreeSet<&'static str> = BTreeSet::new();
    let mut add = |is: bool, feature: &'static str| {
        if is {
            found.insert(feature);
        }
    };
    for schedule in &kernel.schedules {
        for op in &schedule.ops {
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
        let has = |clause: &str| schedule.clauses.iter().any(|c| c.starts_with(clause));
        add(has("ring"), "ring");
        add(has("via tma"), "tma");
        add(has("via cp_async"), "cp_async");
        if let Some((_, of)) = &schedule.copy {
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
    super::traits::of_schedules(kernel, &mut add);
    for item in &kernel.launch {
        add(item.starts_with("cluster"), "cluster");
        add(item == "persistent", "persistent");
        add(item == "dependent", "dependent");
        add(item.starts_with("roles"), "roles");
    }
    let outputs = kernel.equations.iter().filter(|e| e.output);
    add(outputs.clone().count() > 1, "two-outputs");
    add(kernel.schedules.iter().any(|s| s.place.is_empty() && s.at.is_some()), "beside");
    add(!kernel.inlined.is_empty(), "inline");
    add(kernel.equations.iter().any(|e| e.axes.len() == 1), "rank-1");
    add(kernel.equations.iter().any(|e| e.axes.len() == 3), "rank-3");
    add(kernel.most.iter().any(Option::is_some), "bounded");
    add(kernel.divides.iter().any(|d| *d > 1), "divisible");
    let ty = match kernel.ty {
        Type::F16 => "f16",
        Type::F32 => "f32",
        Type::I32 => "i32",
    };
    add(true, ty);
    for equation in &kernel.equations {
        let readers = kernel.equations.iter().filter(|e| e.value.tensors().contains(&&*equation.name)).count();
        add(readers > 1, "diamond");
        let reads_stage = |e: &Expr| e.tensors().iter().any(|t| kernel.equation(t).is_some());
        add(!equation.output && reads_stage(&equation.value), "chain");
        for (by, _) in equation.value.reductions() {
            add(true, if equation.output { "output-reduction" } else { "stage-reduction" });
            let by = match by {
                Reduction::Sum => "sum",
                Reduction::OrderedSum => "ordered",
                Reduction::Max => "max",
                Reduction::Min => "min",
                Reduction::Argmax => "argmax",
                Reduction::Argmin => "argmin",
                Reduction::Fold => "fold",
                Reduction::Last => "fold-ordered",
                Reduction::Any => "any",
            };
            add(true, by);
        }
        equation.value.walk(&mut |e| match e {
            Expr::If(..) | Expr::Above(..) => add(true, "condition"),
            Expr::Read(tensor, indices, or) => {
                add(or.is_some(), "or");
                let halo = |i: &&Index| matches!(i, Index::Axis(_, _, plus) if *plus != 0);
                let halos = indices.iter().filter(halo).count();
                add(halos > 0, "halo");
                add(halos > 1, "halo-2d");
                add(halos > 0 && kernel.equation(tensor).is_some(), "halo-of-stage");
                let axes: Vec<&String> = indices
                    .iter()
                    .filter_map(|i| if let Index::Axis(axis, ..) = i { Some(axis) } else { None })
                    .collect();
                add(axes.windows(2).any(|w| w[0] > w[1]), "transposed");
                for index in indices {
                    add(matches!(index, Index::Axis(_, 2.., _)), "strided");
                    add(matches!(index, Index::Quotient(..)), "quotient");
                    add(matches!(index, Index::Mirrored(..)), "mirrored");
                    add(matches!(index, Index::Gather(..)), "gather");
                }
            }
            _ => {}
        });
    }
    found
}
