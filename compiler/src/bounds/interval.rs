//! The nodes of an algorithm evaluated over intervals: exact on single numbers, an enclosure otherwise.
//!
//! This is the evaluator that replays a witness, so it reads the nodes as they are and shares nothing with the normal
//! form that proofs use. Integer values wrap to their type; what comes from memory, a scalar or floating point may be
//! anything that its type admits.

use kernel::algorithm::{AxisId, Binary, Compare, Index, IndexId, Source, Unary, Value, ValueId};
use kernel::format::Format;
use kernel::{Algorithm, ElementType};
use tilewright_kernel as kernel;

/// All integers from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub low: i128,
    pub high: i128,
}

/// Far beyond every size, and far from overflow.
const FAR: i128 = 1 << 100;

impl Interval {
    pub const ANYTHING: Interval = Interval { low: -FAR, high: FAR };
    const BOTH: Interval = Interval { low: 0, high: 1 };

    pub fn point(value: i128) -> Interval {
        Interval { low: value, high: value }
    }

    pub fn as_point(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    pub fn is_empty(self) -> bool {
        self.low > self.high
    }

    pub fn intersect(self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    pub fn contains(self, value: i128) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn hull(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The hull of `op` over the corners; anything if one is lost.
    fn corners(self, other: Interval, op: impl Fn(i128, i128) -> Option<i128>) -> Interval {
        let mut hull: Option<Interval> = None;
        for a in [self.low, self.high] {
            for b in [other.low, other.high] {
                match op(a, b) {
                    Some(value) if (-FAR..=FAR).contains(&value) => {
                        let value = Interval::point(value);
                        hull = Some(hull.map_or(value, |h| h.hull(value)));
                    }
                    _ => return Interval::ANYTHING,
                }
            }
        }
        hull.unwrap_or(Interval::ANYTHING)
    }

    pub fn add(self, other: Interval) -> Interval {
        self.corners(other, i128::checked_add)
    }

    /// Of the smaller of two values.
    pub fn min(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.min(other.high) }
    }

    /// Of the larger of two values.
    pub fn max(self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.max(other.high) }
    }

    pub fn sub(self, other: Interval) -> Interval {
        self.corners(other, i128::checked_sub)
    }

    pub fn mul(self, other: Interval) -> Interval {
        self.corners(other, i128::checked_mul)
    }

    /// ⌊self / by⌋
    pub fn floor_div(self, by: Interval) -> Interval {
        if by.low <= 0 { Interval::ANYTHING } else { self.corners(by, i128::checked_div_euclid) }
    }

    /// self − by·⌊self / by⌋
    pub fn modulo(self, by: Interval) -> Interval {
        if by.low <= 0 {
            return Interval::ANYTHING;
        }
        match (by.as_point(), self.floor_div(by).as_point()) {
            // One period: the remainder is a shift.
            (Some(d), Some(_)) => Interval { low: self.low.rem_euclid(d), high: self.high.rem_euclid(d) },
            _ => Interval { low: 0, high: by.high - 1 },
        }
    }
}

/// The integers of an element type, `bool` included.
pub(super) fn range_of(element: ElementType) -> Option<Interval> {
    if element == ElementType::Bool {
        return Some(Interval::BOTH);
    }
    if !element.is_integer() {
        return None;
    }
    let bits = element.bytes() * 8;
    Some(if element.is_signed_integer() {
        Interval { low: -(1_i128 << (bits - 1)), high: (1_i128 << (bits - 1)) - 1 }
    } else {
        Interval { low: 0, high: (1_i128 << bits) - 1 }
    })
}

/// The values that an exact result takes once it is wrapped to `element`.
fn wrap(value: Interval, element: ElementType) -> Interval {
    let Some(range) = range_of(element) else { return Interval::ANYTHING };
    if range.contains(value.low) && range.contains(value.high) {
        return value;
    }
    match value.as_point() {
        Some(v) if v.abs() < FAR => {
            let period = range.high - range.low + 1;
            Interval::point((v - range.low).rem_euclid(period) + range.low)
        }
        _ => range,
    }
}

fn compare(op: Compare, a: Interval, b: Interval) -> Interval {
    let (always, never) = match op {
        Compare::Eq => (a.as_point().is_some() && a == b, a.intersect(b).is_empty()),
        Compare::Ne => (a.intersect(b).is_empty(), a.as_point().is_some() && a == b),
        Compare::Lt => (a.high < b.low, a.low >= b.high),
        Compare::Le => (a.high <= b.low, a.low > b.high),
        Compare::Gt => (a.low > b.high, a.high <= b.low),
        Compare::Ge => (a.low >= b.high, a.high < b.low),
    };
    match (always, never) {
        (true, _) => Interval::point(1),
        (_, true) => Interval::point(0),
        _ => Interval::BOTH,
    }
}

fn compare_floats(op: Compare, a: f64, b: f64) -> bool {
    match op {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
    }
}

/// An operation on integers of a type, before the result wraps to it; none where nothing is known.
fn binary(op: Binary, element: ElementType, a: Interval, b: Interval) -> Option<Interval> {
    let points = a.as_point().zip(b.as_point());
    Some(match op {
        Binary::Add => a.add(b),
        Binary::Sub => a.sub(b),
        Binary::Mul => a.mul(b),
        Binary::Max | Binary::MaxNum => Interval { low: a.low.max(b.low), high: a.high.max(b.high) },
        Binary::Min | Binary::MinNum => Interval { low: a.low.min(b.low), high: a.high.min(b.high) },
        // Truncated division; of non-negative numbers it is the floored one.
        Binary::Div => match points {
            Some((a, b)) => Interval::point(a.checked_div(b)?),
            None if a.low >= 0 && b.low > 0 => a.floor_div(b),
            None => return None,
        },
        Binary::Rem => match points {
            Some((a, b)) => Interval::point(a.checked_rem(b)?),
            None if a.low >= 0 && b.low > 0 => a.modulo(b),
            None => return None,
        },
        // Two's complement on single numbers; of `bool`s, either operand may decide.
        Binary::And if a == Interval::point(0) || b == Interval::point(0) => Interval::point(0),
        Binary::And => match points {
            Some((a, b)) => Interval::point(a & b),
            // What is not negative has the last word.
            None => match [a, b].iter().filter(|side| side.low >= 0).map(|side| side.high).min() {
                Some(high) => Interval { low: 0, high },
                None => return None,
            },
        },
        Binary::Or if is_bool(a) && is_bool(b) && (a == Interval::point(1) || b == Interval::point(1)) => {
            Interval::point(1)
        }
        Binary::Or | Binary::Xor => match points {
            Some((a, b)) => Interval::point(if op == Binary::Or { a | b } else { a ^ b }),
            None if a.low >= 0 && b.low >= 0 => {
                // No bit above the highest one of either.
                let high = (1_i128 << (128 - a.high.max(b.high).leading_zeros())) - 1;
                Interval { low: if op == Binary::Or { a.low.max(b.low) } else { 0 }, high }
            }
            None => return None,
        },
        Binary::Shl | Binary::Shr => {
            let by = b.as_point()?;
            a.corners(b, |a, _| op.shifted(element, a, by))
        }
    })
}

/// An element of memory, or a scalar, that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub parameter: u16,
    /// None for a scalar.
    pub indices: Vec<i128>,
    pub value: i128,
}

/// What dimensions and axes are.
pub(super) struct Scene<'a> {
    pub algorithm: &'a Algorithm,
    /// One entry a dimension.
    pub dims: Vec<Interval>,
    /// One entry an axis; only those in scope mean something.
    pub axes: Vec<Interval>,
    /// What inputs hold, where that is known.
    pub memory: Vec<Cell>,
}

impl<'a> Scene<'a> {
    pub fn new(algorithm: &'a Algorithm, dims: Vec<Interval>) -> Scene<'a> {
        Scene { algorithm, dims, axes: vec![Interval::ANYTHING; algorithm.axes.len()], memory: Vec::new() }
    }

    pub fn index(&self, id: IndexId) -> Interval {
        let Some(&node) = self.algorithm.indices.get(id as usize) else { return Interval::ANYTHING };
        match node {
            Index::Literal(c) => Interval::point(i128::from(c)),
            Index::Dim(d) => self.dims.get(usize::from(d)).copied().unwrap_or(Interval::ANYTHING),
            Index::Axis(a) => self.axes.get(a as usize).copied().unwrap_or(Interval::ANYTHING),
            Index::Add(a, b) => self.index(a).add(self.index(b)),
            Index::Sub(a, b) => self.index(a).sub(self.index(b)),
            Index::Mul(a, b) => self.index(a).mul(self.index(b)),
            Index::Div(a, b) => self.index(a).floor_div(self.index(b)),
            Index::Mod(a, b) => self.index(a).modulo(self.index(b)),
            Index::Min(a, b) => self.index(a).min(self.index(b)),
            Index::Max(a, b) => self.index(a).max(self.index(b)),
            Index::Value(v) => self.value(v),
        }
    }

    /// First and last value of an axis's range; empty if it has none.
    pub fn range(&self, axis: AxisId) -> Interval {
        let Some(axis) = self.algorithm.axes.get(axis as usize) else { return Interval::ANYTHING };
        Interval { low: self.index(axis.lower).low, high: self.index(axis.upper).high.saturating_sub(1) }
    }

    /// An integer or `bool` value; anything for a float, though a comparison of floats may be decided.
    pub fn value(&self, id: ValueId) -> Interval {
        let (Some(&node), Some(&element)) =
            (self.algorithm.values.get(id as usize), self.algorithm.types.get(id as usize))
        else {
            return Interval::ANYTHING;
        };
        let Some(full) = range_of(element) else { return Interval::ANYTHING };
        let exact = match node {
            Value::Literal(bits) => {
                // Sign-extended from the width of the type.
                wrap(Interval::point(i128::from(bits)), element)
            }
            Value::FromIndex(i) => self.index(i),
            Value::CompareIndex(op, a, b) => compare(op, self.index(a), self.index(b)),
            Value::Compare(op, a, b) => {
                let operand = self.algorithm.types.get(a as usize).copied().unwrap_or(ElementType::F32);
                if range_of(operand).is_none() {
                    return match self.float(a).zip(self.float(b)) {
                        Some((a, b)) => Interval::point(i128::from(compare_floats(op, a, b))),
                        None => full,
                    };
                }
                compare(op, self.value(a), self.value(b))
            }
            Value::Unary(op, a) => {
                let a = self.value(a);
                match op {
                    Unary::Neg => Interval::point(0).sub(a),
                    Unary::Not if element == ElementType::Bool => Interval::point(1).sub(a),
                    Unary::Not => Interval::point(if full.low < 0 { -1 } else { full.high }).sub(a),
                    Unary::Abs if a.low >= 0 => a,
                    Unary::Abs => Interval { low: if a.high < 0 { -a.high } else { 0 }, high: (-a.low).max(a.high) },
                    _ => return full,
                }
            }
            Value::Binary(op, a, b) => match binary(op, element, self.value(a), self.value(b)) {
                Some(result) => result,
                None => return full,
            },
            Value::Select(c, a, b) => match self.value(c).as_point() {
                Some(0) => self.value(b),
                Some(_) => self.value(a),
                None => self.value(a).hull(self.value(b)),
            },
            Value::Cast(a) => {
                let from = self.algorithm.types.get(a as usize).copied().unwrap_or(ElementType::F32);
                // A number as `bool` is whether it is not 0.
                if range_of(from).is_none() || (element == ElementType::Bool && from != ElementType::Bool) {
                    return full;
                }
                self.value(a)
            }
            _ => match self.address(id).and_then(|(parameter, indices)| self.cell(parameter, &indices)) {
                Some(value) => Interval::point(value),
                None => return full,
            },
        };
        wrap(exact, element)
    }

    /// What a value reads of the inputs, if it is nothing else: the parameter and the element, none of a scalar.
    pub fn address(&self, id: ValueId) -> Option<(u16, Vec<i128>)> {
        match *self.algorithm.values.get(id as usize)? {
            Value::Scalar(parameter) => Some((parameter, Vec::new())),
            Value::Read { source: Source::Parameter(parameter), indices, or: None } => {
                let list = self.algorithm.index_lists.get(indices.range())?;
                Some((parameter, list.iter().map(|i| self.index(*i).as_point()).collect::<Option<_>>()?))
            }
            _ => None,
        }
    }

    /// What is known of an element of memory.
    pub fn cell(&self, parameter: u16, indices: &[i128]) -> Option<i128> {
        let is_it = |cell: &&Cell| cell.parameter == parameter && cell.indices == indices;
        self.memory.iter().find(is_it).map(|cell| cell.value)
    }

    /// The number that a float is, if it comes from literals, sizes and axes without arithmetic.
    fn float(&self, id: ValueId) -> Option<f64> {
        let (node, element) = (self.algorithm.values.get(id as usize)?, *self.algorithm.types.get(id as usize)?);
        let format = Format::of(element)?;
        let round = |v: i128| format.value(format.from_integer(v));
        match *node {
            Value::Literal(bits) => Some(format.value(bits)),
            Value::FromIndex(i) => self.index(i).as_point().map(round),
            Value::Unary(Unary::Neg, a) => self.float(a).map(|v| -v),
            Value::Cast(a) => match self.float(a) {
                Some(v) => Some(format.value(format.from_f64(v))),
                None if range_of(*self.algorithm.types.get(a as usize)?).is_some() => {
                    self.value(a).as_point().map(round)
                }
                None => None,
            },
            Value::Select(c, a, b) => self.float(if self.value(c).as_point()? == 0 { b } else { a }),
            _ => None,
        }
    }

    /// Whether the value may differ between two launches with equal sizes at one place: it reads memory or a scalar.
    pub fn depends_on_data(&self, id: ValueId) -> bool {
        match self.algorithm.values.get(id as usize) {
            None | Some(Value::Literal(_)) => false,
            Some(Value::Scalar(_) | Value::Variable(_) | Value::Read { .. } | Value::Reduce { .. }) => true,
            Some(Value::Fold { .. } | Value::Component { .. } | Value::Scatter { .. }) => true,
            Some(Value::FromIndex(i)) => self.index_depends_on_data(*i),
            Some(Value::CompareIndex(_, a, b)) => self.index_depends_on_data(*a) || self.index_depends_on_data(*b),
            Some(Value::Unary(_, a) | Value::Cast(a)) => self.depends_on_data(*a),
            Some(Value::Binary(_, a, b) | Value::Compare(_, a, b)) => {
                self.depends_on_data(*a) || self.depends_on_data(*b)
            }
            Some(Value::Fma(a, b, c) | Value::Select(a, b, c)) => {
                [a, b, c].into_iter().any(|v| self.depends_on_data(*v))
            }
        }
    }

    fn index_depends_on_data(&self, id: IndexId) -> bool {
        match self.algorithm.indices.get(id as usize) {
            None => false,
            Some(Index::Value(v)) => self.depends_on_data(*v),
            Some(index) => index.operands().any(|operand| self.index_depends_on_data(operand)),
        }
    }
}

fn is_bool(a: Interval) -> bool {
    a.low >= 0 && a.high <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pairs of intervals of small numbers, signed and unsigned: what the operation gives is inside, and of single
    /// numbers alone.
    #[test]
    fn results_on_bits_are_enclosed() {
        for (element, low, high) in [(ElementType::I8, -9, 9), (ElementType::U8, 0, 17)] {
            let range = range_of(element).expect("an integer");
            let intervals: Vec<Interval> =
                (low..=high).flat_map(|low| (low..=high).map(move |high| Interval { low, high })).collect();
            let ops = [Binary::And, Binary::Or, Binary::Xor, Binary::Shl, Binary::Shr];
            for (a, b) in intervals.iter().flat_map(|a| intervals.iter().map(move |b| (*a, *b))) {
                for op in ops {
                    let found = binary(op, element, a, b).map_or(range, |found| wrap(found, element));
                    for (x, y) in (a.low..=a.high).flat_map(|x| (b.low..=b.high).map(move |y| (x, y))) {
                        // By the host's own operations on 8 bits.
                        let signed = element == ElementType::I8;
                        let left = if (0..8).contains(&y) { (x as u8) << y } else { 0 };
                        let out = if signed && x < 0 { -1 } else { 0 };
                        let value = match op {
                            Binary::And => x & y,
                            Binary::Or => x | y,
                            Binary::Xor => x ^ y,
                            Binary::Shl if signed => i128::from(left as i8),
                            Binary::Shl => i128::from(left),
                            _ if !(0..8).contains(&y) => out,
                            _ if signed => i128::from(x as i8 >> y),
                            _ => i128::from(x as u8 >> y),
                        };
                        assert!(found.contains(value), "{op:?} of {x} in {a:?} and {y} in {b:?}: {found:?}");
                        let single = a.as_point().is_some() && b.as_point().is_some();
                        assert!(!single || found == Interval::point(value), "{op:?} of {x} and {y}: {found:?}");
                    }
                }
            }
        }
    }
}
