//! Runs kernels on the emulator.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;

use super::launched::{from_bytes, launch, tensor, text, to_bytes};
use super::{THREADS, build, global_index};
use crate::kernel_ir::Memory::Parameter;
use crate::kernel_ir::{Builder, Kernel, Type, ValueId};

/// Runs a kernel over these bytes of each tensor (and of each scalar), and returns the bytes of all of them afterwards.
/// The bytes of tensors that it writes count as uninitialised where `fresh`. The launch must have no findings.
pub(super) fn execute(kernel: &Kernel, n: i64, blocks: u32, buffers: &[Vec<u8>], fresh: bool) -> Vec<Vec<u8>> {
    let text = text(kernel);
    let (report, found) = launch(kernel, &text, n, blocks, buffers, fresh, 0);
    assert!(report.is_clean(), "{report:?}\n{kernel}\n{text}");
    found
}

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
        let values: Vec<_> = (0..inputs.len() as u16).map(|p| b.load(Parameter(p), i, 1, None)[0]).collect();
        let found = body(b, &values);
        assert_eq!(found.len(), results.len());
        for (p, value) in (inputs.len() as u16..).zip(found) {
            b.store(Parameter(p), i, &[value]);
        }
        b.end_if();
    });
    let rows = inputs.first().map_or(0, |(_, column)| column.len());
    let buffers: Vec<_> = (inputs.iter().map(|(element, column)| to_bytes(*element, column)))
        .chain(results.iter().map(|element| vec![0; rows * element.bytes() as usize]))
        .collect();
    let blocks = (rows as u32).div_ceil(THREADS);
    let bytes = execute(&kernel, rows as i64, blocks, &buffers, true);
    results.iter().zip(&bytes[inputs.len()..]).map(|(element, bytes)| from_bytes(*element, bytes)).collect()
}
