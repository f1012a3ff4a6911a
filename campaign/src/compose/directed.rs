//! Cases that are drawn for two features, so that those meet which seldom do.

use std::collections::BTreeSet;

use super::ast::Kernel;
use super::matrix::Pair;
use super::{draw, features, plan};
use crate::rng::Rng;

/// Equations that are drawn for a pair, and schedules for each of these.
const EQUATIONS: usize = 24;
const SCHEDULES: usize = 12;

/// What a feature does not come without: then both are wanted.
const NEEDS: &[(&str, &[&str])] = &[
    ("box", &["tma"]),
    ("tile", &["tma", "box"]),
    ("tile-ops", &["tma", "box"]),
    ("view-split", &["tma"]),
    ("view-merge", &["tma"]),
    ("box-composite", &["tma"]),
    ("resize-copy", &["tma"]),
    ("l2", &["tma"]),
    ("l2-promote", &["tma"]),
    ("fill-zero", &["tma"]),
    ("fill-any", &["tma"]),
    ("swizzle-128", &["tma", "box"]),
    ("swizzled-tile", &["tma", "box"]),
    ("multicast", &["tma", "cluster"]),
    ("multicast-by", &["tma", "cluster", "box"]),
    ("layout-swizzle", &["shared"]),
    ("layout-pad", &["layout", "shared"]),
    ("ring-grid", &["roles", "persistent", "other-role"]),
    ("other-role", &["roles"]),
    ("roles-three", &["roles"]),
    ("role-chain", &["roles", "roles-three", "copy-in-stage"]),
    ("role-regs", &["roles"]),
    ("alternate", &["roles", "persistent"]),
    ("role-stores", &["roles", "store"]),
    ("online", &["online-sum"]),
    ("online-several", &["online", "online-sum"]),
    ("online-min", &["online", "online-sum"]),
    ("online-squares", &["online", "online-sum"]),
    ("online-weights", &["online", "online-sum", "online-squares"]),
    ("online-choice", &["online", "online-sum"]),
    ("online-place", &["online", "online-sum"]),
    ("both-ways", &["store", "tma"]),
    ("reduce-cluster", &["cluster"]),
    ("registers-cluster", &["cluster", "like", "reduce-cluster"]),
    ("cta", &["cluster"]),
    ("reduce-by-warp", &["reduce-threads"]),
    ("registers-warp", &["warp", "like"]),
    ("registers-warpgroup", &["warpgroup", "like"]),
    ("shared-warp", &["warp"]),
    ("shared-warpgroup", &["warpgroup"]),
    ("global-warp", &["warp"]),
    ("global-warpgroup", &["warpgroup"]),
    ("vectorized-registers", &["registers-thread"]),
    ("vectorized-global", &["global"]),
    ("vectorized-shared", &["shared"]),
    ("like-chain", &["like"]),
    ("stage-of-beside", &["beside"]),
    ("beside-role", &["beside", "roles"]),
    ("nested-twice", &["nested-stage"]),
];

/// A kernel that has both features, or as many of them as any that were drawn.
pub fn kernel(rng: &mut Rng, wanted: Pair) -> Kernel {
    let mut all: Vec<&'static str> = vec![wanted.0, wanted.1];
    for (feature, needs) in NEEDS {
        if all.contains(feature) {
            all.extend(*needs);
        }
    }
    // Of entry points nothing can be drawn: they count as there.
    let drawn = |f: &&str| !f.contains("entr");
    let pair: BTreeSet<&str> = [wanted.0, wanted.1].into_iter().filter(drawn).collect();
    let (few, mut matches) = (*rng.pick(&[1, 2, 4, 8]), Vec::new());
    let mut best: Option<(usize, Kernel)> = None;
    let follows = [wanted.0, wanted.1].iter().any(|f| f.starts_with("online"));
    let scattered = [wanted.0, wanted.1].iter().any(|f| f.starts_with("scatter"));
    for _ in 0..EQUATIONS {
        let mut kernel = draw::kernel_with(rng, if follows { 90 } else { 10 }, if scattered { 95 } else { 6 });
        for _ in 0..SCHEDULES {
            kernel.launch.clear();
            kernel.units.clear();
            kernel.schedules.clear();
            kernel.inlined.clear();
            plan::directed(&mut kernel, rng, &all);
            let found = features::of(&kernel).iter().filter(|f| pair.contains(**f)).count();
            if found == pair.len() {
                // The shortest of a few: what else a kernel has may be a reason to refuse it.
                matches.push(kernel.clone());
                if matches.len() == few {
                    return shortest(matches);
                }
            }
            if best.as_ref().is_none_or(|b| b.0 < found) {
                best = Some((found, kernel.clone()));
            }
        }
    }
    match best {
        _ if !matches.is_empty() => shortest(matches),
        Some((_, kernel)) => kernel,
        None => draw::kernel(rng),
    }
}

fn shortest(mut kernels: Vec<Kernel>) -> Kernel {
    kernels.sort_by_cached_key(|k| k.to_string().len());
    kernels.swap_remove(0)
}
