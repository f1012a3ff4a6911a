//! Registers are read by the threads that hold them.
use super::Stage;
use crate::diag::Diagnostics;
use tilewright_kernel::algorithm::Source;

pub(super) fn check(_stages: &[Stage], _served: &[Source], _threads: u32, _diags: &mut Diagnostics) {}
