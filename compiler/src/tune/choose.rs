//! Which combination is compiled: the one that the record names, or else the first that gives a kernel.

use tilewright_kernel::info::KernelInfo;

use super::{Tuned, read};
use crate::diag::codes::FirstRefused;
use crate::diag::{Code, Diagnostics};
use crate::source::TokenBuffer;
use crate::source::ast::{Item, Kernel};

/// What a combination is compiled to.
pub trait Variant {
    /// The finished kernel in it.
    fn info(&mut self) -> &mut KernelInfo;
}

/// The rooms behind this one: from a kernel with numbers to what it is compiled to, none after an error.
type Compile<'a, V> = dyn Fn(&Kernel, &mut Diagnostics) -> Option<V> + 'a;

/// A kernel compiled, with its constants if it has any; no constants without `tune`, or after an error in it.
pub fn chosen<V: Variant>(
    kernel: &Kernel,
    tokens: &TokenBuffer,
    compile: &Compile<'_, V>,
    diags: &mut Diagnostics,
) -> (Option<V>, Option<Tuned>) {
    if !kernel.items.iter().any(|item| matches!(item, Item::Tune(_))) {
        return (compile(kernel, diags), None);
    }
    let Some(mut tuned) = read(kernel, diags) else { return (None, None) };
    let mut refused: Vec<(Vec<u64>, Diagnostics)> = Vec::new();
    let combinations = match &tuned.record {
        Some(record) => vec![record.values.clone()],
        None => tuned.combinations(),
    };
    for values in combinations {
        let (variant, found) = settled(kernel, &tuned, &values, tokens, compile);
        let is_defect = found.found().iter().any(|finding| finding.code == Code::TW9001);
        let Some(mut variant) = variant.filter(|_| !is_defect) else {
            // A defect of the compiler is no reason to take another combination, and a record names just one.
            if is_defect || tuned.record.is_some() {
                diags.append(found);
                return (None, Some(tuned));
            }
            refused.push((values, found));
            continue;
        };
        // What is slow of a kernel that nobody chose is of no interest.
        if let Some(stale) = tuned.stale(variant.info()) {
            diags.report(stale);
            return (None, Some(tuned));
        }
        diags.append(found);
        if !refused.is_empty() {
            let (refused, taken) = (tuned.reasons(&refused), tuned.named(&values));
            diags.report(FirstRefused { refused, taken, span: tuned.span });
        }
        tuned.chosen = Some(values);
        return (Some(variant), Some(tuned));
    }
    diags.append(tuned.none(&refused));
    (None, Some(tuned))
}

/// A kernel compiled with these values of its constants, and what is said of it.
pub fn settled<V: Variant>(
    kernel: &Kernel,
    tuned: &Tuned,
    values: &[u64],
    tokens: &TokenBuffer,
    compile: &Compile<'_, V>,
) -> (Option<V>, Diagnostics) {
    let mut found = Diagnostics::new();
    let mut variant = compile(&tuned.settled(kernel, values), &mut found);
    tuned.retold(kernel, values, tokens, &mut found);
    if let Some(info) = variant.as_mut().map(V::info) {
        info.explanation = format!("{}{}\n", info.explanation, tuned.told(values)).into();
    }
    (variant, found)
}
