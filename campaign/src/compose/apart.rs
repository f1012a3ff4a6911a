//! Pairs of features that no kernel has: the language excludes them, or one is the other's opposite.

use super::features::FEATURES;

/// A feature, those that it never meets, and why.
type Row = (&'static str, &'static [&'static str], &'static str);

/// The types that a kernel may compute in.
const TYPES: &[&str] = &["f16", "bf16", "f32", "f64", "i8", "u8", "i16", "i32", "u32", "i64", "u64"];
const ONE_TYPE: &str = "a kernel that is drawn here computes in one type, whatever its tensors have";

const TABLE: &[Row] =
    &[("only-entry", &["narrow-entry", "wide-entry", "three-entries"], "a kernel has one entry point, or several")];

/// Why two features never meet, if they do not.
pub fn apart(a: &str, b: &str) -> Option<&'static str> {
    if a != b && TYPES.contains(&a) && TYPES.contains(&b) {
        return Some(ONE_TYPE);
    }
    let has = |row: &&Row| row.0 == a && row.1.contains(&b) || row.0 == b && row.1.contains(&a);
    TABLE.iter().find(has).map(|row| row.2)
}

/// Names of the table that are no feature.
pub fn unknown() -> Vec<&'static str> {
    let names = TABLE.iter().flat_map(|row| row.1.iter().chain([&row.0]));
    names.chain(TYPES).filter(|n| !FEATURES.contains(n)).copied().collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_features() {
        assert_eq!(super::unknown(), Vec::<&str>::new());
        assert!(super::apart("only-entry", "wide-entry").is_some() && super::apart("tma", "ring").is_none());
        assert!(super::apart("f16", "u8").is_some() && super::apart("f16", "f16").is_none());
    }
}
