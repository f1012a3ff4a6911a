//! Operations on integers and `bool`, and on ranges of them: each wraps to its type.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Binary;

use super::Undefined;
use crate::reference::column::Range;

/// Least and greatest value of an integer type or `bool`.
pub(in crate::reference) fn limits(element: ElementType) -> (i128, i128) {
    if element == ElementType::Bool {
        return (0, 1);
    }
    let bits = element.bytes() * 8;
    if element.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// The integer reduced to the width of its type.
pub(in crate::reference) fn wrap(element: ElementType, value: i128) -> i128 {
    let (least, greatest) = limits(element);
    if (least..=greatest).contains(&value) {
        return value;
    }
    if element == ElementType::Bool { value & 1 } else { (value - least).rem_euclid(greatest - least + 1) + least }
}

pub(super) fn int_binary(op: Binary, element: ElementType, x: i128, y: i128) -> Result<i128, Undefined> {
    // Operands have at most 64 bits: no operation overflows 128 before it is reduced.
    let value = match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x.wrapping_mul(y),
        Binary::Div => x.checked_div(y).ok_or(Undefined::DivisionByZero)?,
        Binary::Rem => x.checked_rem(y).ok_or(Undefined::DivisionByZero)?,
        Binary::Max | Binary::MaxNum => x.max(y),
        Binary::Min | Binary::MinNum => x.min(y),
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        Binary::Shl | Binary::Shr => op.shifted(element, x, y).unwrap_or(0),
    };
    Ok(wrap(element, value))
}

pub(super) fn range_binary(op: Binary, element: ElementType, a: &Range, b: &Range) -> Result<Range, Undefined> {
    if let (Some(x), Some(y)) = (a.single(), b.single()) {
        return int_binary(op, element, x, y).map(Range::exact);
    }
    let (least, greatest) = limits(element);
    let all = Range::between(least, greatest);
    let within = |lo: i128, hi: i128| if lo >= least && hi <= greatest { Range::between(lo, hi) } else { all.clone() };
    Ok(match op {
        Binary::Add => within(a.lo + b.lo, a.hi + b.hi),
        Binary::Sub => within(a.lo - b.hi, a.hi - b.lo),
        Binary::Mul => {
            let corners = [a.lo, a.hi].map(|x| [b.lo, b.hi].map(|y| x.saturating_mul(y)));
            let flat = corners.as_flattened();
            within(flat.iter().copied().min().unwrap_or(least), flat.iter().copied().max().unwrap_or(greatest))
        }
        Binary::Div | Binary::Rem if b.lo <= 0 && b.hi >= 0 => return Err(Undefined::DivisionByZero),
        Binary::Max | Binary::MaxNum => Range::between(a.lo.max(b.lo), a.hi.max(b.hi)),
        Binary::Min | Binary::MinNum => Range::between(a.lo.min(b.lo), a.hi.min(b.hi)),
        Binary::And if element == ElementType::Bool => Range::between(a.lo & b.lo, a.hi & b.hi),
        Binary::Or if element == ElementType::Bool => Range::between(a.lo | b.lo, a.hi | b.hi),
        // A shift right by a known amount keeps the order.
        Binary::Shr if b.single().is_some() => {
            let shifted = |x| op.shifted(element, x, b.lo).unwrap_or(0);
            Range::between(shifted(a.lo), shifted(a.hi))
        }
        Binary::Div | Binary::Rem | Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => all,
    })
}
