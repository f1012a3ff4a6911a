//! Pairs of features that no kernel has: the language excludes them, or one is the other's opposite.

use super::features::FEATURES;

/// A feature, those that it never meets, and why.
type Row = (&'static str, &'static [&'static str], &'static str);

const ACROSS: &[&str] = &["reduce-grid", "reduce-atomic"];
const CLUSTERS: &str = "TW0005: no reductions across the grid in launches of clusters yet";
const ROLES: &str = "TW0005: no reductions across the grid in launches of roles yet";
const ONE_TYPE: &str = "all tensors of a kernel that is drawn here have one type, but indices";

const TABLE: &[Row] = &[
    ("only-entry", &["narrow-entry", "wide-entry", "three-entries"], "a kernel has one entry point, or several"),
    ("cluster", ACROSS, CLUSTERS),
    ("cta", ACROSS, CLUSTERS),
    ("registers-cluster", ACROSS, CLUSTERS),
    ("reduce-cluster", ACROSS, CLUSTERS),
    ("multicast", ACROSS, CLUSTERS),
    ("multicast-by", ACROSS, CLUSTERS),
    ("roles", ACROSS, ROLES),
    ("other-role", ACROSS, ROLES),
    ("roles-three", ACROSS, ROLES),
    ("role-chain", ACROSS, ROLES),
    ("role-regs", ACROSS, ROLES),
    ("role-stores", ACROSS, ROLES),
    ("ring-grid", ACROSS, ROLES),
    ("f16", &["f32", "i32"], ONE_TYPE),
    ("f32", &["i32"], ONE_TYPE),
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

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_features() {
        assert_eq!(super::unknown(), Vec::<&str>::new());
        assert!(super::apart("reduce-atomic", "cluster").is_some() && super::apart("tma", "ring").is_none());
    }
}
