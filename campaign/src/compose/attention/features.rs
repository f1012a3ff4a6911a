//! What attention has.

use std::collections::BTreeSet;

use super::{Attention, Heads, Of, Range, Reader, Scores, Sum};
use crate::compose::ast::Type;
use crate::compose::products::Engine;

/// Every feature; the matrix has a row and a column for each.
pub const FEATURES: &[&str] = &[
    "wgmma",
    "mma-sync",
    "bf16",
    "f16",
    "e4m3",
    "e5m2",
    "multiple",
    "max",
    "min",
    "head-16",
    "head-64",
    "head-96",
    "head-128",
    "other-width",
    "columns-8",
    "block-16",
    "block-odd",
    "block-128",
    "divides",
    "may-lack",
    "literal",
    "split-again",
    "rows-more",
    "units",
    "causal",
    "before-row",
    "aligned",
    "late",
    "late-causal",
    "window",
    "around-row",
    "memory-of-head",
    "memory-of-tile",
    "memory-of-row",
    "from-memory",
    "to-memory",
    "square",
    "plain",
    "scaled",
    "inline",
    "biased",
    "bias-of-terms",
    "masked",
    "scores-held",
    "scores-read",
    "exponentials-held",
    "exponentials-read",
    "rounded-read",
    "exp",
    "exp2",
    "approx",
    "factor",
    "no-sum",
    "one-sum",
    "sums",
    "product-first",
    "product-between",
    "sum-rounded",
    "sum-weighted",
    "sum-scored",
    "heads",
    "grouped",
    "same-values",
    "pages",
    "pages-of-one",
    "page-of-block",
    "page-of-part",
    "table-of-head",
    "table-other-type",
    "table-plus",
    "tma",
    "cp-async",
    "both-ways",
    "no-ring",
    "ring-1",
    "ring",
    "two-rings",
    "swizzle-none",
    "swizzle-small",
    "swizzle-128",
    "two-swizzles",
    "roles",
    "fused",
    "behind",
    "load-first",
    "role-regs",
    "alternate",
    "persistent",
    "descending",
    "quotient",
    "all-read",
    "product-alone",
    "extreme-read",
    "narrow",
    "statistics",
    "ragged",
    "one-term",
    "no-terms",
    "infinite",
    "no-scores",
    "large",
    "narrow-entry",
    "wide-entry",
    "scalar-entry",
];

/// Those that a launch has, and no kernel.
pub const OF_RUNS: &[&str] =
    &["ragged", "one-term", "no-terms", "infinite", "no-scores", "large", "narrow-entry", "wide-entry", "scalar-entry"];

/// Features of which a kernel has one.
const ONE_OF: &[&[&str]] = &[
    &["wgmma", "mma-sync"],
    &["bf16", "f16", "e4m3", "e5m2"],
    &["max", "min"],
    &["head-16", "head-64", "head-96", "head-128"],
    &["block-16", "block-odd", "block-128"],
    &["causal", "before-row", "aligned", "late", "late-causal", "window", "around-row"],
    &["memory-of-head", "memory-of-tile", "memory-of-row"],
    &["plain", "scaled", "inline", "biased", "bias-of-terms", "masked"],
    &["scores-held", "scores-read"],
    &["exponentials-held", "exponentials-read"],
    &["exp", "exp2"],
    &["no-sum", "one-sum", "sums"],
    &["product-first", "product-between"],
    &["heads", "grouped"],
    &["quotient", "all-read", "product-alone", "extreme-read"],
    &["divides", "may-lack", "literal"],
    &["page-of-block", "page-of-part"],
];

/// What no kernel with factors of 8 bits has.
const NOT_OF_8_BITS: &[&str] =
    &["mma-sync", "same-values", "narrow", "cp-async", "both-ways", "head-16", "block-16", "swizzle-none", "one-term"];

/// What two features are that no kernel has together, with the reason.
const APART: &[(&str, &[&str], &str)] = &[
    ("mma-sync", &["role-regs", "alternate"], "warps have neither"),
    ("e4m3", NOT_OF_8_BITS, "tensor cores read neighbouring terms, which the accelerator copies"),
    ("e5m2", NOT_OF_8_BITS, "tensor cores read neighbouring terms, which the accelerator copies"),
    ("multiple", NOT_OF_8_BITS, "of 8-bit types"),
    ("multiple", &["bf16", "f16"], "of 8-bit types"),
    ("alternate", &["units"], "each of them is one unit"),
    ("no-sum", &["quotient", "all-read", "product-between", "sum-rounded", "sum-weighted", "sum-scored"], "no sum"),
    ("product-between", &["one-sum"], "two sums are around it"),
    ("scores-held", &["plain", "inline"], "scores are the products"),
    ("scores-read", &["plain", "inline"], "scores are the products"),
    ("may-lack", &["sum-weighted", "sum-scored", "inline"], "refused: 0 times what is past the end"),
    ("no-ring", &["two-rings"], "two have one"),
    ("divides", &["ragged", "one-term"], "there are whole blocks"),
    ("other-width", &["same-values"], "keys are values"),
    ("pages-of-one", &["same-values"], "keys are values"),
    ("columns-8", &["same-values"], "keys are values"),
    (
        "inline",
        &["causal", "before-row", "aligned", "late-causal", "window", "around-row", "from-memory", "to-memory"],
        "refused: scores have no equation",
    ),
    (
        "sum-scored",
        &["causal", "before-row", "aligned", "late-causal", "window", "around-row", "from-memory", "to-memory"],
        "refused: sums multiply by scores",
    ),
];

/// Why two features never meet, if they do not.
pub fn apart(a: &str, b: &str) -> Option<&'static str> {
    if a != b && ONE_OF.iter().any(|all| all.contains(&a) && all.contains(&b)) {
        return Some("there is one of them");
    }
    let is_it = |row: &&(&str, &[&str], &str)| row.0 == a && row.1.contains(&b) || row.0 == b && row.1.contains(&a);
    APART.iter().find(is_it).map(|row| row.2)
}

/// What a kernel has.
#[expect(clippy::too_many_lines, reason = "a list")]
pub fn of(attention: &Attention) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut add = |is_there: bool, feature: &'static str| {
        if is_there {
            found.insert(feature);
        }
    };
    let Attention { sizes: [head, width], block, sums, copies, .. } = attention;
    add(attention.engine == Engine::Wgmma, "wgmma");
    add(attention.engine == Engine::MmaSync, "mma-sync");
    add(attention.ty == Type::Bf16, "bf16");
    add(attention.ty == Type::F16, "f16");
    add(attention.ty == Type::E4m3, "e4m3");
    add(attention.ty == Type::E5m2, "e5m2");
    add(attention.multiple.is_some(), "multiple");
    add(true, if attention.min { "min" } else { "max" });
    for (size, feature) in [(16, "head-16"), (64, "head-64"), (96, "head-96"), (128, "head-128")] {
        add(*head == size, feature);
    }
    add(head != width, "other-width");
    add(*width == 8, "columns-8");
    add(*block == 16, "block-16");
    add(!(*block as u64).is_power_of_two(), "block-odd");
    add(*block == 128, "block-128");
    let (literal, divides) = (attention.literal.is_some(), attention.divides);
    add(
        true,
        if literal {
            "literal"
        } else if divides {
            "divides"
        } else {
            "may-lack"
        },
    );
    add(attention.again.is_some(), "split-again");
    add(attention.rows > 1, "rows-more");
    add(attention.units > 1, "units");
    match attention.range {
        Range::All => {}
        Range::Causal => add(true, "causal"),
        Range::Before => add(true, "before-row"),
        Range::Aligned => add(true, "aligned"),
        Range::Late(_) => add(true, "late"),
        Range::LateCausal(_) => add(true, "late-causal"),
        Range::Window(_) => add(true, "window"),
        Range::Around(_) => add(true, "around-row"),
    }
    if let Some(memory) = attention.memory {
        add(memory.of == Of::Head, "memory-of-head");
        add(memory.of == Of::Tile, "memory-of-tile");
        add(memory.of == Of::Row, "memory-of-row");
        add(memory.from, "from-memory");
        add(memory.to, "to-memory");
    }
    add(attention.square, "square");
    let scores = match attention.scores {
        Scores::Plain => "plain",
        Scores::Scaled => "scaled",
        Scores::Inline => "inline",
        Scores::Biased => "biased",
        Scores::OfTerms => "bias-of-terms",
        Scores::Masked => "masked",
    };
    add(true, scores);
    let has_equation = !matches!(attention.scores, Scores::Plain | Scores::Inline);
    add(has_equation, if attention.held[0] { "scores-held" } else { "scores-read" });
    add(true, if attention.held[1] { "exponentials-held" } else { "exponentials-read" });
    add(!attention.held[2], "rounded-read");
    add(attention.function.ends_with("exp"), "exp");
    add(attention.function.ends_with("exp2"), "exp2");
    add(attention.function.starts_with("approx"), "approx");
    add(attention.factor.is_some(), "factor");
    add(attention.factor.is_some() && attention.fused, "fused");
    add(attention.is_behind(), "behind");
    add(true, ["no-sum", "one-sum", "sums"][sums.len().min(2)]);
    add(attention.before == 0, "product-first");
    add(attention.before > 0 && attention.before < sums.len(), "product-between");
    add(sums.contains(&Sum::Rounded), "sum-rounded");
    add(sums.contains(&Sum::Weighted), "sum-weighted");
    add(sums.contains(&Sum::Scored), "sum-scored");
    add(attention.heads == Heads::Own, "heads");
    add(matches!(attention.heads, Heads::Grouped(_)), "grouped");
    add(attention.same, "same-values");
    let paged = [1, 2].map(|n| attention.pages_of(n).is_some());
    if let Some(pages) = attention.pages.filter(|_| paged != [false, false]) {
        add(true, "pages");
        add(paged[0] != paged[1], "pages-of-one");
        add(pages.terms == *block, "page-of-block");
        add(pages.terms < *block, "page-of-part");
        add(pages.own, "table-of-head");
        add(pages.ty != Type::I32, "table-other-type");
        add(pages.plus != 0, "table-plus");
    }
    let tma = copies.iter().filter(|copy| copy.tma).count();
    add(tma > 0, "tma");
    add(tma < 3, "cp-async");
    add(tma > 0 && tma < 3, "both-ways");
    let rings = [copies[1].ring, copies[2].ring];
    add(rings.contains(&None), "no-ring");
    add(rings.contains(&Some(1)), "ring-1");
    add(rings.iter().flatten().any(|ring| *ring > 1), "ring");
    add(rings[0] != rings[1] && !rings.contains(&None), "two-rings");
    let swizzles = copies.map(|copy| copy.swizzle);
    add(swizzles.contains(&0), "swizzle-none");
    add(swizzles.iter().any(|s| [32, 64].contains(s)), "swizzle-small");
    add(swizzles.contains(&128), "swizzle-128");
    add(swizzles[1] != swizzles[2], "two-swizzles");
    if let Some(roles) = attention.roles {
        add(true, "roles");
        add(roles.first, "load-first");
        add(roles.registers, "role-regs");
        add(roles.alternate, "alternate");
    }
    add(attention.persistent, "persistent");
    add(attention.descending, "descending");
    let reader = match (attention.reader, sums.is_empty()) {
        (Reader::Quotient, false) => "quotient",
        (Reader::All, false) => "all-read",
        (Reader::Extreme, _) => "extreme-read",
        _ => "product-alone",
    };
    add(true, reader);
    add(attention.narrow, "narrow");
    add(attention.statistics, "statistics");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_features() {
        let of_table = APART.iter().flat_map(|row| row.1.iter().chain([&row.0]));
        let all = of_table.chain(ONE_OF.iter().flat_map(|all| all.iter())).chain(OF_RUNS);
        assert_eq!(all.filter(|n| !FEATURES.contains(n)).collect::<Vec<_>>(), Vec::<&&str>::new());
        let drawn: BTreeSet<_> =
            (0..3000).flat_map(|n| of(&crate::compose::attention::attention(1, n, None).0)).collect();
        assert_eq!(drawn.iter().filter(|n| !FEATURES.contains(n)).collect::<Vec<_>>(), Vec::<&&str>::new());
        let never = FEATURES.iter().filter(|n| !drawn.contains(*n) && !OF_RUNS.contains(n)).collect::<Vec<_>>();
        assert_eq!(never, Vec::<&&str>::new());
    }
}
