//! Phrases that several diagnostics have in common.

use super::{Change, Diagnostic, assignment};

/// A token's text, cut if a message could not show it.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}

pub(super) const TYPES: &str = "a tensor is written `f32[M, N]`, a scalar `f32`";

/// `1 index`, `2 indices`
pub(super) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// `N = 5: `, or nothing for no dimensions.
pub(super) fn prefix(dims: &[(String, i128)]) -> String {
    let text = assignment(dims);
    if text.is_empty() { text } else { format!("{text}: ") }
}

/// `reorder` of these axes after all other ops.
pub(super) fn append(order: &[String]) -> Change {
    Change::AppendOp(format!("reorder {}", order.join(", ")))
}

/// A product of extents, which may be beyond all numbers that were counted in.
pub(super) fn amount(n: i128) -> String {
    if n >= i128::from(u64::MAX) { format!("more than {}", i64::MAX) } else { n.to_string() }
}

/// `the block`, or the role whose threads it is about.
pub(super) fn whole(role: Option<&String>) -> String {
    role.map_or_else(|| "the block".to_owned(), |role| format!("role `{role}`"))
}

/// Proposes facts.
pub(super) fn state(diagnostic: Diagnostic, facts: Vec<String>) -> Diagnostic {
    let text = format!("state it, and launches will check it: `where {}`", facts.join(", "));
    diagnostic.change(Change::State(facts), text)
}
