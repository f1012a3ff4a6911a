//! Which reductions blocks can combine by atomic operations, and in what word of memory.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Reduction;

/// The type of the word in which blocks combine partial results; none if no operation on memory does that. Integers
/// wrap in wider words as in their own; numbers that are compared have codes in the order of their values, and an index
/// fits beside a code of 32 bits.
pub const fn atomic_word(op: Reduction, element: ElementType) -> Option<ElementType> {
    use ElementType::{Bf16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    match (op, element) {
        (Reduction::Sum, F32 | F64) => Some(element),
        (Reduction::Sum | Reduction::Max | Reduction::Min, U8 | U16 | U32 | I8 | I16 | I32) => Some(U32),
        (Reduction::Sum | Reduction::Max | Reduction::Min, U64 | I64) => Some(U64),
        (Reduction::Max | Reduction::Min, F16 | Bf16 | F32) => Some(U32),
        (Reduction::Max | Reduction::Min, F64) => Some(U64),
        (Reduction::All | Reduction::Any, Bool) => Some(U32),
        (Reduction::ArgMax | Reduction::ArgMin, U8 | U16 | U32 | I8 | I16 | I32 | F16 | Bf16 | F32) => Some(U64),
        _ => None,
    }
}
