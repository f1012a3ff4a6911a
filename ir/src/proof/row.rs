//! Values of all threads: known integers, or unknown. Elements are known where they are integers or predicates that
//! indices make; if the run has data, floats are terms of its algebra, and everything is known.

use std::borrow::Cow;
use std::cell::RefCell;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};

use super::agent::Active;
use super::line::{Line, Sums};
use super::values::Algebra;
use crate::kernel_ir::{IndexOp, Kernel, Op, Range, Shift, Type, UnaryOp, Value, ValueId};

/// One thread's value. Predicates are 0 and 1; a `u64` has the bits of an `i64`.
pub(super) type Known = Option<i64>;

/// The value of every thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// One for all.
    Same(Known),
    /// One each.
    Each(Vec<Known>),
    /// Integers that have a pattern.
    Line(Line),
}

impl Row {
    pub const UNKNOWN: Self = Self::Same(None);

    pub fn of(&self, thread: usize) -> Known {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values[thread],
            Self::Line(line) => line.get(thread),
        }
    }

    /// Integers of all threads that come to something.
    pub fn of_integers(values: Vec<Known>, active: &Active) -> Self {
        let (all, lanes) = (&values[..], &active.lanes[..]);
        let mut thread = active.range.start;
        while thread < active.range.end {
            if lanes[thread] && all[thread].is_none() {
                return Self::Each(values);
            }
            thread += 1;
        }
        match active.count {
            0 => Self::Each(values),
            _ => Line::new(values).map_or(Self::UNKNOWN, Self::Line),
        }
    }

    /// The values of threads that come to something, and maybe of others, and how far from one thread's to the next
    /// one's.
    fn by_threads(&self, lanes: &[bool]) -> (Cow<'_, [Known]>, usize) {
        match self {
            Self::Same(value) => (Cow::Borrowed(std::slice::from_ref(value)), 0),
            Self::Each(values) => (Cow::Borrowed(values), 1),
            Self::Line(line) => (Cow::Owned(line.each(lanes)), 1),
        }
    }

    /// Other values for some threads.
    pub fn replace(&mut self, threads: usize, with: impl Fn(usize, Known) -> Known) {
        let values = (0..threads).map(|thread| with(thread, self.of(thread))).collect();
        *self = Self::Each(values);
    }
}

/// What the rows of a run are made from.
#[derive(Debug)]
pub(super) struct Pool {
    /// The values of a row of which nothing is known.
    nothing: Vec<Known>,
    /// What patterns were added so far.
    sums: RefCell<Sums>,
}

impl Pool {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        Self { nothing: vec![None; threads], sums: RefCell::default() }
    }
}

/// The value of a literal.
pub(super) fn literal(ty: Type, bits: u64, algebra: Option<&Algebra>) -> Known {
    match ty {
        Type::I32 | Type::I64 => Some(bits as i64),
        Type::Element(element) if is_known(element) => Some(wrapped(element, bits as i64)),
        Type::Element(element) => algebra?.of_bits(element, bits),
    }
}

/// Whether elements of a type can be known.
fn is_known(element: ElementType) -> bool {
    element == ElementType::Bool || element.is_integer()
}

/// An integer's low bits as an element.
pub(super) fn wrapped(element: ElementType, value: i64) -> i64 {
    match element {
        ElementType::Bool => value & 1,
        ElementType::I8 => i64::from(value as i8),
        ElementType::U8 => i64::from(value as u8),
        ElementType::I16 => i64::from(value as i16),
        ElementType::U16 => i64::from(value as u16),
        ElementType::I32 => i64::from(value as i32),
        ElementType::U32 => i64::from(value as u32),
        _ => value,
    }
}

/// Indices outside of what is said of them, or of their width, are unknown, and the first one of them: emission chooses
/// instructions by what is said, so the machine has some other number there. Lowering says it only of values that
/// matter; of others nothing may depend. `lanes` are the threads that come to it.
pub(super) fn as_said(value: &Value, mut row: Row, lanes: &[bool]) -> (Row, Known) {
    let width = if value.ty == Type::I32 { Range::new(i64::from(i32::MIN), i64::from(i32::MAX)) } else { Range::ALL };
    let said = width.intersect(value.facts.range);
    if !value.ty.is_index() || said == Range::ALL {
        return (row, None);
    }
    if let Row::Line(line) = &row {
        if line.is_within(said.low, said.high) {
            return (row, None);
        }
        row = Row::Each(line.each(lanes));
    }
    let all = match &mut row {
        Row::Same(known) => std::slice::from_mut(known),
        Row::Each(all) => &mut all[..],
        Row::Line(_) => return (row, None),
    };
    let mut beyond = None;
    // As in `pure`.
    let (mut thread, Range { low, high }) = (0, said);
    while thread < all.len() {
        if let Some(index) = all[thread]
            && (index < low || high < index)
        {
            beyond = if beyond.is_none() { Some(index) } else { beyond };
            all[thread] = None;
        }
        thread += 1;
    }
    (row, beyond)
}

/// What an operation on indices makes of rows of which one has a pattern, without a look at each thread; none if it has
/// to be looked.
fn of_lines(op: Op, [a, b]: [&Row; 2], active: &Active, sums: &RefCell<Sums>) -> Option<Row> {
    let line = match op {
        Op::ConvertIndex(_) | Op::OfWarp(_) | Op::ToIndex(_) => return matches!(a, Row::Line(_)).then(|| a.clone()),
        Op::Index(op, ..) => match (op, a, b) {
            (IndexOp::Add, Row::Line(line), Row::Same(Some(by))) => line.shifted(*by),
            (IndexOp::Add, Row::Same(Some(by)), Row::Line(line)) => line.shifted(*by),
            (IndexOp::Sub, Row::Line(line), Row::Same(Some(by))) => line.shifted(by.checked_neg()?),
            (IndexOp::Sub, Row::Same(Some(of)), Row::Line(line)) => line.scaled(-1)?.shifted(*of),
            (IndexOp::Mul, Row::Line(line), Row::Same(Some(by))) => line.scaled(*by),
            (IndexOp::Mul, Row::Same(Some(by)), Row::Line(line)) => line.scaled(*by),
            (IndexOp::Add, Row::Line(a), Row::Line(b)) => a.plus(b, &mut sums.borrow_mut()),
            (IndexOp::Sub, Row::Line(a), Row::Line(b)) => a.plus(&b.scaled(-1)?, &mut sums.borrow_mut()),
            _ => None,
        },
        Op::CompareIndex(op, ..) => {
            let said = match (a, b) {
                (Row::Line(line), Row::Same(Some(with))) => line.compare(op, *with, active),
                (Row::Same(Some(with)), Row::Line(line)) => line.compare(op.mirrored(), *with, active),
                _ => None,
            };
            return said.map(|said| Row::Same(Some(i64::from(said))));
        }
        Op::InRange(..) => {
            let (Row::Line(line), Row::Same(Some(end))) = (a, b) else { return None };
            let is_below = line.compare(Compare::Lt, *end, active)?;
            let is_above = line.compare(Compare::Ge, 0, active)?;
            return Some(Row::Same(Some(i64::from(is_above && is_below))));
        }
        _ => None,
    };
    line.map(Row::Line)
}

/// The row of a pure operation, given those of its operands, for the threads that come to it: nobody else uses it,
/// and it may have nothing for them.
pub(super) fn pure(
    kernel: &Kernel,
    value: &Value,
    active: &Active,
    rows: &[Row],
    (algebra, pool): (Option<&Algebra>, &Pool),
) -> Row {
    let mut operands = [&Row::UNKNOWN; 3];
    let mut is_same = true;
    for (n, operand) in value.op.operands().enumerate() {
        operands[n] = &rows[operand.index()];
        is_same &= matches!(operands[n], Row::Same(_));
    }
    let [a, b, c] = operands;
    if is_same {
        return Row::Same(one(kernel, value, [a.of(0), b.of(0), c.of(0)], algebra));
    }
    if let Some(row) = of_lines(value.op, [a, b], active, &pool.sums) {
        return row;
    }
    let [(a, of_a), (b, of_b), (c, of_c)] = operands.map(|row| row.by_threads(&active.lanes));
    let (a, b, c) = (&a[..], &b[..], &c[..]);
    let mut all = pool.nothing.clone();
    let results = &mut all[..];
    // Innermost of what macros run, without optimisation in users' builds: no iterators, and no calls for what most
    // operations are.
    let (mut thread, end, lanes) = (active.range.start, active.range.end, &active.lanes[..]);
    if let Op::Index(op, ..) = value.op {
        let is_sum = matches!(op, IndexOp::Add);
        while thread < end {
            if lanes[thread] {
                results[thread] = match (a[thread * of_a], b[thread * of_b]) {
                    (Some(x), Some(y)) if is_sum => x.checked_add(y),
                    (x, y) => index(op, x, y),
                };
            }
            thread += 1;
        }
        return Row::of_integers(all, active);
    }
    // Threads that have nothing of their own yet have the same terms.
    let repeats = value.ty.element().is_some_and(ElementType::is_float);
    let mut last: Option<([Known; 3], Known)> = None;
    while thread < end {
        if lanes[thread] {
            let known = [a[thread * of_a], b[thread * of_b], c[thread * of_c]];
            results[thread] = match last {
                Some((before, result)) if before == known => result,
                _ => one(kernel, value, known, algebra),
            };
            if repeats {
                last = Some((known, results[thread]));
            }
        }
        thread += 1;
    }
    Row::Each(all)
}

pub(super) fn one(kernel: &Kernel, value: &Value, known: [Known; 3], algebra: Option<&Algebra>) -> Known {
    let [a, b, c] = known;
    let type_of = |id: ValueId| kernel.value(id).ty;
    match value.op {
        Op::Index(op, ..) => index(op, a, b),
        Op::CompareIndex(op, ..) => Some(i64::from(compare(op, a?, b?))),
        Op::InRange(..) => match (a, b) {
            (_, Some(end)) if end <= 0 => Some(0),
            _ => Some(i64::from((0..b?).contains(&a?))),
        },
        Op::ConvertIndex(_) | Op::OfWarp(_) | Op::ToIndex(_) => a,
        Op::FromIndex(_) => match (value.ty.element()?, algebra) {
            (to, _) if is_known(to) => Some(wrapped(to, a?)),
            (to, algebra) => algebra?.cast(ElementType::I64, to, a?),
        },
        Op::Select(..) => match a {
            Some(0) => c,
            Some(_) => b,
            None if b == c => b,
            None => None,
        },
        Op::Binary(op, ..) => match (value.ty.element()?, algebra) {
            (ty, _) if is_known(ty) => integers(op, ty, a, b),
            (ty, algebra) => algebra?.binary(op, ty, a?, b?),
        },
        Op::Shift(op, ..) => {
            let (a, by, ty) = (a?, b?, element(value.ty)?);
            let bits = i64::from(8 * ty.bytes());
            match op {
                Shift::Left if by >= bits => Some(0),
                Shift::Left => Some(wrapped(ty, a << by)),
                Shift::Right if ty == ElementType::U64 => Some(if by >= bits { 0 } else { (a as u64 >> by) as i64 }),
                Shift::Right => Some(a >> by.min(63)),
            }
        }
        Op::Unary(op, _) => match (value.ty.element()?, op) {
            (ty, UnaryOp::Not) if is_known(ty) => Some(wrapped(ty, !a?)),
            (ty, UnaryOp::Neg) if is_known(ty) => Some(wrapped(ty, a?.wrapping_neg())),
            (ty, _) => algebra?.unary(op, ty, a?),
        },
        Op::Compare(op, left, _) => match (type_of(left).element()?, algebra) {
            (ElementType::U64, _) => Some(i64::from(compare(op, a? as u64, b? as u64))),
            (ty, _) if is_known(ty) => Some(i64::from(compare(op, a?, b?))),
            (ty, algebra) => Some(i64::from(algebra?.compare(op, ty, a?, b?))),
        },
        Op::Cast(from) => match (type_of(from).element()?, value.ty.element()?) {
            (from, to) if is_known(from) && is_known(to) => Some(wrapped(to, a?)),
            (from, to) => algebra?.cast(from, to, a?),
        },
        Op::Fma(..) => algebra?.fma(value.ty.element()?, a?, b?, c?),
        Op::Bits(from) => algebra?.same_bits(type_of(from).element()?, value.ty.element()?, a?),
        Op::MulHigh(..) => algebra?.mul_high(value.ty.element()?, a?, b?),
        _ => None,
    }
}

/// The element type, if elements of it can be known.
fn element(ty: Type) -> Option<ElementType> {
    ty.element().filter(|e| is_known(*e))
}

fn index(op: IndexOp, a: Known, b: Known) -> Known {
    let (Some(x), Some(y)) = (a, b) else {
        return match op {
            IndexOp::Mul if a == Some(0) || b == Some(0) => Some(0),
            IndexOp::Mod if b == Some(1) => Some(0),
            _ => None,
        };
    };
    match op {
        IndexOp::Add => x.checked_add(y),
        IndexOp::Sub => x.checked_sub(y),
        IndexOp::Mul => x.checked_mul(y),
        IndexOp::Div if y > 0 => Some(x.div_euclid(y)),
        IndexOp::Mod if y > 0 => Some(x.rem_euclid(y)),
        IndexOp::Div | IndexOp::Mod => None,
        IndexOp::Min => Some(if x < y { x } else { y }),
        IndexOp::Max => Some(if x > y { x } else { y }),
        IndexOp::And => Some(x & y),
        IndexOp::Xor => Some(x ^ y),
    }
}

pub(super) fn compare<T: Ord>(op: Compare, a: T, b: T) -> bool {
    match op {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
    }
}

/// An operation on integers or predicates.
pub(super) fn integers(op: Binary, ty: ElementType, a: Known, b: Known) -> Known {
    if ty == ElementType::Bool {
        return match (op, a, b) {
            (Binary::And, Some(0), _) | (Binary::And, _, Some(0)) => Some(0),
            (Binary::Or, Some(1), _) | (Binary::Or, _, Some(1)) => Some(1),
            (Binary::And, ..) => Some(a? & b?),
            (Binary::Or, ..) => Some(a? | b?),
            (Binary::Xor, ..) => Some(a? ^ b?),
            _ => None,
        };
    }
    let (a, b) = (a?, b?);
    let less = if ty == ElementType::U64 { (a as u64) < (b as u64) } else { a < b };
    let result = match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Min | Binary::MinNum => {
            if less {
                a
            } else {
                b
            }
        }
        Binary::Max | Binary::MaxNum => {
            if less {
                b
            } else {
                a
            }
        }
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl | Binary::Shr => {
            // What is negative is too large as well.
            let by = (b as u64).min(64) as u32;
            let is_left = op == Binary::Shl;
            match ty {
                _ if is_left && by >= 8 * ty.bytes() => 0,
                _ if is_left => a << by,
                ElementType::U64 => (a as u64).checked_shr(by).unwrap_or(0) as i64,
                _ => a >> by.min(63),
            }
        }
        Binary::Div if ty == ElementType::U64 => (a as u64).checked_div(b as u64)? as i64,
        Binary::Rem if ty == ElementType::U64 => (a as u64).checked_rem(b as u64)? as i64,
        Binary::Div if b != 0 => a.wrapping_div(b),
        Binary::Rem if b != 0 => a.wrapping_rem(b),
        _ => return None,
    };
    Some(wrapped(ty, result))
}
