//! Reductions as operations of `kernel_ir`: identities and steps.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare, Reduction};

use super::{Builder, Type, ValueId};

/// The operation that takes in a term.
pub fn combine(op: Reduction) -> Binary {
    match op {
        Reduction::Sum => Binary::Add,
        Reduction::Prod => Binary::Mul,
        Reduction::Max | Reduction::ArgMax => Binary::Max,
        Reduction::Min | Reduction::ArgMin => Binary::Min,
        Reduction::All => Binary::And,
        Reduction::Any => Binary::Or,
    }
}

/// The bits of the value of an empty reduction, which is the identity of its operation.
pub fn identity(op: Reduction, ty: ElementType) -> u64 {
    use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, Tf32};
    let one = match ty {
        F64 => 1.0_f64.to_bits(),
        F32 | Tf32 => u64::from(1.0_f32.to_bits()),
        F16 => 0x3c00,
        Bf16 => 0x3f80,
        E4m3 => 0x38,
        E5m2 => 0x3c,
        _ => 1,
    };
    let infinity = match ty {
        F64 => f64::INFINITY.to_bits(),
        F32 | Tf32 => u64::from(f32::INFINITY.to_bits()),
        F16 => 0x7c00,
        Bf16 => 0x7f80,
        E4m3 => 0x7e, // the largest finite value: the type has no infinity
        E5m2 => 0x7c,
        _ => 0,
    };
    let bits = ty.bytes() * 8;
    let all_ones = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let sign = 1_u64 << (bits - 1);
    match op {
        Reduction::Sum | Reduction::Any => 0,
        Reduction::Prod => one,
        Reduction::All => 1,
        Reduction::Max | Reduction::ArgMax | Reduction::Min | Reduction::ArgMin => {
            let least = matches!(op, Reduction::Max | Reduction::ArgMax);
            match ty {
                _ if ty.is_float() => infinity | if least { sign } else { 0 },
                Bool => u64::from(!least),
                _ if ty.is_signed_integer() => {
                    if least {
                        sign
                    } else {
                        all_ones ^ sign
                    }
                }
                _ if least => 0,
                _ => all_ones,
            }
        }
    }
}

/// Whether a term comes before the best so far in an argmax or argmin: larger (smaller), or equal at a smaller index; a
/// NaN comes before every number, and the first NaN before later ones. Needs no order of the terms.
pub fn precedes(b: &mut Builder, op: Reduction, term: (ValueId, ValueId), best: (ValueId, ValueId)) -> ValueId {
    let compare = if op == Reduction::ArgMax { Compare::Gt } else { Compare::Lt };
    let earlier = b.compare(Compare::Lt, term.1, best.1);
    let strictly = b.compare(compare, term.0, best.0);
    let equal = b.compare(Compare::Eq, term.0, best.0);
    let tie = b.and(equal, earlier);
    let better = b.or(strictly, tie);
    let Type::Element(ty) = b.ty(term.0) else { return better };
    if !ty.is_float() {
        return better;
    }
    let term_nan = b.compare(Compare::Ne, term.0, term.0);
    let best_nan = b.compare(Compare::Ne, best.0, best.0);
    let best_number = b.not(best_nan);
    let first = b.or(best_number, earlier);
    let by_nan = b.and(term_nan, first);
    b.or(better, by_nan)
}
