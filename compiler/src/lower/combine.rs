//! Placeholder until merged.
use crate::kernel_ir::{Builder, ValueId};
pub(super) struct Digit {
    pub stride: u32,
    pub extent: u32,
    pub reduced: bool,
}
#[allow(clippy::type_complexity)]
pub(super) fn across_threads(
    _b: &mut Builder,
    _name: &str,
    _threads: u32,
    _digits: &[Digit],
    states: &[ValueId],
    _merge: &mut dyn FnMut(&mut Builder, &[ValueId], &[ValueId]) -> Vec<ValueId>,
) -> Vec<ValueId> {
    states.to_vec()
}
