//! Pairs of features that no kernel has: the language excludes them, or one is the other's opposite.

use super::features::FEATURES;

/// A feature, those that it never meets, and why.
type Row = (&'static str, &'static [&'static str], &'static str);

const TABLE: &[Row] = &[
    ("only-entry", &["narrow-entry", "wide-entry", "three-entries"], "a kernel has one entry point, or several"),
    ("cluster", &["reduce-grid", "reduce-atomic"], "TW0005: no reductions across the grid in clusters yet"),
    ("cta", &["reduce-grid", "reduce-atomic"], "TW0005: no reductions across the grid in clusters yet"),
    ("reduce-cluster", &["reduce-grid", "reduce-atomic"], "TW0005: no reductions across the grid in clusters yet"),
    ("multicast", &["reduce-grid", "reduce-atomic"], "TW0005: no reductions across the grid in clusters yet"),
];

/// Why two features never meet, if they do not.
pub fn apart(a: &str, b: &str) -> Option<&'static str> {
    let has = |row: &&Row| row.0 == a && row.1.contains(&b) || row.0 == b && row.1.contains(&a);
    TABLE.iter().find(has).map(|row| row.2)
}

/// Names of the table that are no feature.
pub fn unknown() -> Vec<&'static str> {
    let names = TABLE.iter().flat_map(|row| row.1.iter().chain([&row.0]));
    names.filter(|n| !FEATURES.contains(n)).copied().collect()
}
