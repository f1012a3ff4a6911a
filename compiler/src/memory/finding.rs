//! What is said about a vector: of everything that was found, the causes.
//!
//! Property: each finding that is kept has a remedy of its own, and after the remedies of those kept none of the others
//! is left. An axis along which the result is scattered is the wrong axis, whatever its size; a fact that is missing is
//! missed once, though guards and accesses need it alike. What could not be proved is said only if nothing was refuted.

use crate::diag::Diagnostics;
use crate::diag::codes::{MisalignedVector, ScatteredVector, SplitVector, StraddlingVector, VectorWidth};

/// Something that is wrong with a vector, or could not be shown to be right.
pub(super) enum Finding {
    Width(VectorWidth),
    Guard(SplitVector),
    Misaligned(MisalignedVector),
    Straddling(StraddlingVector),
    Scattered(ScatteredVector),
}

impl Finding {
    /// The sizes of its witness, if it has one.
    pub fn sizes(&self) -> Option<&[(String, i128)]> {
        match self {
            Self::Width(_) => None,
            Self::Guard(f) => f.witness.as_ref().map(|w| &*w.0),
            Self::Misaligned(f) => f.witness.as_ref().map(|w| &*w.0),
            Self::Straddling(f) => f.witness.as_ref().map(|w| &*w.0),
            Self::Scattered(f) => f.witness.as_ref().map(|w| &*w.0),
        }
    }

    pub fn is_refuted(&self) -> bool {
        matches!(self, Self::Width(_)) || self.sizes().is_some()
    }

    pub fn report(self, diags: &mut Diagnostics) {
        match self {
            Self::Width(f) => diags.report(f),
            Self::Guard(f) => diags.report(f),
            Self::Misaligned(f) => diags.report(f),
            Self::Straddling(f) => diags.report(f),
            Self::Scattered(f) => diags.report(f),
        }
    }

    /// The facts that make it right.
    fn facts(&self) -> &[String] {
        match self {
            Self::Guard(f) => f.fact.as_slice(),
            Self::Misaligned(f) => &f.facts,
            _ => &[],
        }
    }

    /// How deep it lies, deepest first, if no fact mends it: then the vector itself is wrong.
    fn depth(&self) -> Option<u32> {
        match self {
            Self::Scattered(_) => Some(0),
            Self::Straddling(f) if f.instead.is_some() => Some(1),
            Self::Width(_) => Some(2),
            Self::Straddling(_) => Some(3),
            _ => self.facts().is_empty().then_some(4),
        }
    }
}

/// The findings to report.
pub(super) fn causes(width: Option<VectorWidth>, mut found: Vec<Finding>) -> Vec<Finding> {
    found.extend(width.map(Finding::Width));
    let any_refuted = found.iter().any(Finding::is_refuted);
    found.retain(|f| f.is_refuted() || !any_refuted);
    let alone = found.len() == 1;
    let deepest = (0..found.len()).filter(|i| found[*i].depth().is_some()).min_by_key(|i| found[*i].depth());
    if let Some(deepest) = deepest {
        let mut cause = found.swap_remove(deepest);
        if let Finding::Straddling(f) = &mut cause {
            f.is_alone = alone;
        }
        return vec![cause];
    }
    let mut stated: Vec<String> = Vec::new();
    let mut kept: Vec<Finding> = Vec::new();
    for finding in found {
        let new: Vec<String> = finding.facts().iter().filter(|f| !stated.contains(f)).cloned().collect();
        if new.is_empty() {
            continue;
        }
        stated.extend(new.iter().cloned());
        // Accesses of several tensors are one message.
        let first = kept.iter_mut().find_map(|f| if let Finding::Misaligned(f) = f { Some(f) } else { None });
        match (first, finding) {
            (Some(first), Finding::Misaligned(other)) => {
                first.facts.extend(new);
                first.others.push(other.access);
            }
            (_, finding) => kept.push(finding),
        }
    }
    kept
}
