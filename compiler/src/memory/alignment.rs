//! What base addresses are multiples of.

use tilewright_kernel::tensor_map::GRANULE;

use crate::plan::Analysed;
use crate::schedule::vector::Class;

/// What the base address of a parameter must be a multiple of: its element, its longest vector up to 16 bytes, or what
/// the accelerator demands.
pub fn alignment(parameter: usize, element: u32, stages: &[Analysed]) -> u32 {
    let mut bytes = element;
    let staged = |s: &Analysed| s.staged.iter().any(|copy| usize::from(copy.parameter) == parameter);
    if stages.iter().any(staged) {
        bytes = bytes.max(GRANULE as u32);
    }
    for analysed in stages {
        let Some(vector) = &analysed.vector else { continue };
        let own = analysed.accesses.iter().filter(|a| usize::from(a.parameter) == parameter);
        for access in own {
            if vector.class(access, &analysed.symbolic, &analysed.stage.facts) == Class::Vector {
                let whole = u32::try_from(vector.lanes).unwrap_or(16).saturating_mul(element);
                bytes = bytes.max(whole.min(16));
            }
        }
    }
    bytes
}
