//! Index integers and predicates over them: constants are folded, ranges are carried along.
//!
//! Rewrites keep the mathematical value. An intermediate result may leave the width of its type where the value that
//! the caller asked for does not (`(i − 1)·s + s`): addition, subtraction and multiplication are then right modulo 2ⁿ,
//! which is all that the other operations of the same expression need. Whoever reads an operand on its own asks for its
//! range first.

use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::target::WARP;

use super::super::{Facts, IndexOp, Op, Range, Statement, StatementKind, Type, Value, ValueId};
use super::sums::{SPLIT_DEPTH, SPLIT_TERMS};
use super::{Builder, Frame, OpenRole};

/// What an index type holds.
const fn width(ty: Type) -> Range {
    match ty {
        Type::I32 => Range::new(i32::MIN as i64, i32::MAX as i64),
        Type::I64 | Type::Element(_) => Range::ALL,
    }
}

impl Builder {
    /// An index constant of type `I32` or `I64`.
    pub fn index_literal(&mut self, ty: Type, value: i64) -> ValueId {
        self.literal_bits(ty, value as u64, Range::point(value))
    }

    /// Number of the block, `I32`, from 0.
    pub fn block_index(&mut self) -> ValueId {
        // The largest grid has 2^31 - 1 blocks.
        self.pure(Op::BlockIndex, Type::I32, Range::new(0, i64::from(i32::MAX) - 1), true)
    }

    /// Number of blocks of the launch, `I32`.
    pub fn block_count(&mut self) -> ValueId {
        self.pure(Op::BlockCount, Type::I32, Range::new(1, i64::from(i32::MAX)), true)
    }

    /// Number of the thread in its block, `I32`, from 0.
    pub fn thread_index(&mut self) -> ValueId {
        let last = i64::from(self.kernel.signature.threads.max(1)) - 1;
        self.pure(Op::ThreadIndex, Type::I32, Range::new(0, last), last == 0)
    }

    /// Number of the thread in its role, counted from the first one of that; in its block outside of roles. Where roles
    /// do not begin with the block, it is a value of the role: what is known of it does not hold for other roles, to
    /// which the same difference may be something else.
    pub fn thread_in_role(&mut self) -> ValueId {
        let thread = self.thread_index();
        let Some(role) = self.role() else { return thread };
        if let Some(own) = role.thread {
            return own;
        }
        let region = role.region;
        let (first, threads) = (i64::from(role.warps.start * WARP), i64::from(role.warps.len() as u32 * WARP));
        let own = if first == 0 {
            // The number of the thread in its block is one value for all roles.
            thread
        } else {
            let less = self.index_literal(Type::I32, -first);
            let facts = Facts { range: Range::new(0, threads - 1), ..Facts::NONE };
            let own = self.new_value(Op::Index(IndexOp::Add, thread, less), Type::I32, region, facts);
            let statement = Statement { line: self.line, kind: StatementKind::Let(own) };
            self.kernel.regions[region.index()].statements.push(statement);
            own
        };
        if let Some(role) = self.role() {
            role.thread = Some(own);
        }
        own
    }

    /// The role that is open.
    pub(super) fn role(&mut self) -> Option<&mut OpenRole> {
        self.frames.iter_mut().rev().find_map(|frame| match frame {
            Frame::Roles { open, .. } => open.as_mut(),
            _ => None,
        })
    }

    /// Number of the block in its cluster, `I32`, from 0.
    pub fn cluster_rank(&mut self) -> ValueId {
        let last = i64::from(self.kernel.signature.cluster.max(1)) - 1;
        if last == 0 {
            return self.index_literal(Type::I32, 0);
        }
        self.pure(Op::ClusterRank, Type::I32, Range::new(0, last), true)
    }

    /// A dimension or stride; as `I32` only where it is known to fit.
    pub fn dim(&mut self, dim: u16, ty: Type) -> ValueId {
        let around = usize::from(dim).checked_sub(self.kernel.signature.dims.len());
        // A loop around: see `loops_around`. One without a value stays a dimension that does not exist, which the
        // verifier refuses where anything depends on it.
        if let Some(value) = around.and_then(|n| self.around.get(n).copied().flatten()) {
            return self.index_convert(value, ty);
        }
        let range = self.kernel.signature.dims.get(usize::from(dim)).map_or(Range::ALL, |d| d.range);
        if range.low == range.high {
            return self.index_literal(ty, range.low);
        }
        self.pure(Op::Dim(dim), ty, range.intersect(width(ty)), true)
    }

    /// An index integer in another width; narrowing is the caller's proof that the value fits.
    pub fn index_convert(&mut self, a: ValueId, ty: Type) -> ValueId {
        let Value { op, ty: from, facts, .. } = *self.kernel.value(a);
        match op {
            _ if from == ty => a,
            Op::Literal(bits) => self.index_literal(ty, bits as i64),
            _ => self.pure(Op::ConvertIndex(a), ty, facts.range.intersect(width(ty)), true),
        }
    }

    /// An index integer of 32 bits that is not negative, and on which the lanes of each warp agree.
    pub fn of_warp(&mut self, a: ValueId) -> ValueId {
        let Value { facts, ty, .. } = *self.kernel.value(a);
        match facts.uniform {
            true => a,
            false => self.pure(Op::OfWarp(a), ty, facts.range, false),
        }
    }

    /// a + b
    pub fn index_add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        match (self.kernel.index_literal(a), self.kernel.index_literal(b)) {
            (Some(x), Some(y)) => {
                if let Some(sum) = self.fits(ty, x.checked_add(y)) {
                    return self.index_literal(ty, sum);
                }
            }
            (Some(_), None) => return self.index_add(b, a),
            (None, Some(0)) => return a,
            (None, Some(y)) => {
                // (x + c) + y = x + (c + y)
                if let Some((x, c)) = self.plus_literal(a)
                    && let Some(sum) = self.fits(ty, c.checked_add(y))
                {
                    let c = self.index_literal(ty, sum);
                    return self.index_add(x, c);
                }
            }
            (None, None) => {
                // Constants move outwards: (x + c) + b = (x + b) + c, where they become part of an address.
                if let Some((x, c)) = self.plus_literal(a) {
                    let (sum, c) = (self.index_add(x, b), self.index_literal(ty, c));
                    return self.index_add(sum, c);
                }
                if let Some((x, c)) = self.plus_literal(b) {
                    let (sum, c) = (self.index_add(a, x), self.index_literal(ty, c));
                    return self.index_add(sum, c);
                }
                if b < a {
                    return self.index_add(b, a);
                }
            }
        }
        self.index_op(IndexOp::Add, a, b, Range::sum)
    }

    /// a − b
    pub fn index_sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        if a == b {
            return self.index_literal(ty, 0);
        }
        if let Some(negated) = self.kernel.index_literal(b).and_then(i64::checked_neg)
            && let Some(negated) = self.fits(ty, Some(negated))
        {
            let negated = self.index_literal(ty, negated);
            return self.index_add(a, negated);
        }
        if let Some(difference) = self.without_common(a, b) {
            return difference;
        }
        if let Some(distance) = self.fits(ty, self.distance(a, b)) {
            return self.index_literal(ty, distance);
        }
        self.index_op(IndexOp::Sub, a, b, |x, y| x.sum(y.negated()))
    }

    /// a · b
    pub fn index_mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        match (self.kernel.index_literal(a), self.kernel.index_literal(b)) {
            (Some(x), Some(y)) => {
                if let Some(product) = self.fits(ty, x.checked_mul(y)) {
                    return self.index_literal(ty, product);
                }
            }
            (Some(_), None) => return self.index_mul(b, a),
            (None, Some(0)) => return b,
            (None, Some(1)) => return a,
            (None, Some(y)) => {
                // (x + c)·y = x·y + c·y
                if let Some((x, c)) = self.plus_literal(a)
                    && let Some(constant) = self.fits(ty, c.checked_mul(y))
                {
                    let (product, constant) = (self.index_mul(x, b), self.index_literal(ty, constant));
                    return self.index_add(product, constant);
                }
                // (x·c)·y = x·(c·y)
                if let Some((x, c)) = self.times_literal(a)
                    && let Some(factor) = self.fits(ty, c.checked_mul(y))
                {
                    let factor = self.index_literal(ty, factor);
                    return self.index_mul(x, factor);
                }
            }
            (None, None) if b < a => return self.index_mul(b, a),
            (None, None) => {}
        }
        self.index_op(IndexOp::Mul, a, b, Range::product)
    }

    /// ⌊a / b⌋ for b > 0
    pub fn index_div(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.divided(a, b, SPLIT_TERMS)
    }

    /// The quotient, without up to `terms` multiples of the divisor that the dividend is a sum of.
    fn divided(&mut self, a: ValueId, b: ValueId, terms: u32) -> ValueId {
        let ty = self.ty(a);
        if let Some(divisor) = self.kernel.index_literal(b).filter(|d| *d > 0) {
            if divisor == 1 {
                return a;
            }
            if let Some(value) = self.kernel.index_literal(a) {
                return self.index_literal(ty, value.div_euclid(divisor));
            }
            let range = self.facts(a).range.quotient(Range::point(divisor));
            if range.low == range.high {
                return self.index_literal(ty, range.low);
            }
            if terms > 0
                && let Some((multiple, rest)) = self.split_multiple(a, divisor, SPLIT_DEPTH)
            {
                // ⌊(x·d + r) / d⌋ = x + ⌊r / d⌋
                let rest = rest.map(|rest| self.divided(rest, b, terms - 1));
                return rest.map_or(multiple, |rest| self.index_add(multiple, rest));
            }
        }
        self.index_op(IndexOp::Div, a, b, Range::quotient)
    }

    /// a − b·⌊a / b⌋ for b > 0
    pub fn index_mod(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.remaining(a, b, SPLIT_TERMS)
    }

    /// The remainder, as [`divided`](Self::divided) finds the quotient.
    fn remaining(&mut self, a: ValueId, b: ValueId, terms: u32) -> ValueId {
        let ty = self.ty(a);
        if let Some(divisor) = self.kernel.index_literal(b).filter(|d| *d > 0) {
            if divisor == 1 {
                return self.index_literal(ty, 0);
            }
            if let Some(value) = self.kernel.index_literal(a) {
                return self.index_literal(ty, value.rem_euclid(divisor));
            }
            let range = self.facts(a).range;
            if range.low >= 0 && range.high < divisor {
                return a;
            }
            if terms > 0
                && let Some((_, rest)) = self.split_multiple(a, divisor, SPLIT_DEPTH)
            {
                return match rest {
                    Some(rest) => self.remaining(rest, b, terms - 1),
                    None => self.index_literal(ty, 0),
                };
            }
        }
        self.index_op(IndexOp::Mod, a, b, Range::remainder)
    }

    /// Smaller of two.
    pub fn index_min(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let (x, y) = (self.facts(a).range, self.facts(b).range);
        match () {
            () if a == b || x.high <= y.low => a,
            () if y.high <= x.low => b,
            () => {
                self.index_op(IndexOp::Min, a.min(b), a.max(b), |x, y| Range::new(x.low.min(y.low), x.high.min(y.high)))
            }
        }
    }

    /// Larger of two.
    pub fn index_max(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let (x, y) = (self.facts(a).range, self.facts(b).range);
        match () {
            () if a == b || x.low >= y.high => a,
            () if y.low >= x.high => b,
            () => {
                self.index_op(IndexOp::Max, a.min(b), a.max(b), |x, y| Range::new(x.low.max(y.low), x.high.max(y.high)))
            }
        }
    }

    /// Bitwise and.
    pub fn index_and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.kernel.index_literal(a), self.kernel.index_literal(b)) {
            (Some(x), Some(y)) => return self.index_literal(self.ty(a), x & y),
            (Some(_), None) => return self.index_and(b, a),
            // The lowest bits are a remainder, of negative integers, too; their number must fit the type.
            (None, Some(y)) if y >= 0 && (y as u64 + 1).is_power_of_two() && y < i64::from(i32::MAX) => {
                let count = self.index_literal(self.ty(a), y + 1);
                return self.index_mod(a, count);
            }
            _ => {}
        }
        self.index_op(IndexOp::And, a.min(b), a.max(b), |x, y| x.bits(y, true))
    }

    /// Bitwise exclusive or.
    pub fn index_xor(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        match (self.kernel.index_literal(a), self.kernel.index_literal(b)) {
            (Some(x), Some(y)) => self.index_literal(ty, x ^ y),
            (Some(0), None) => b,
            (None, Some(0)) => a,
            _ if a == b => self.index_literal(ty, 0),
            _ => match self.apart_from_bits(a, b) {
                Some(value) => value,
                None => self.index_op(IndexOp::Xor, a.min(b), a.max(b), |x, y| x.bits(y, false)),
            },
        }
    }

    /// Comparison of two index integers; a predicate.
    pub fn index_compare(&mut self, op: Compare, a: ValueId, b: ValueId) -> ValueId {
        let (op, a, b) = match op {
            Compare::Gt => (Compare::Lt, b, a),
            Compare::Ge => (Compare::Le, b, a),
            Compare::Eq | Compare::Ne => (op, a.min(b), a.max(b)),
            Compare::Lt | Compare::Le => (op, a, b),
        };
        let (x, y) = (self.facts(a).range, self.facts(b).range);
        let less = if x.high < y.low { Some(true) } else { (x.low >= y.high).then_some(false) };
        let at_most = if x.high <= y.low { Some(true) } else { (x.low > y.high).then_some(false) };
        let apart = x.high < y.low || y.high < x.low;
        let same = a == b || (x.low == x.high && x == y);
        let known = match op {
            Compare::Eq if same => Some(true),
            Compare::Eq if apart => Some(false),
            Compare::Ne if same => Some(false),
            Compare::Ne if apart => Some(true),
            Compare::Lt if same => Some(false),
            Compare::Lt => less,
            Compare::Le if same => Some(true),
            Compare::Le => at_most,
            _ => None,
        };
        match known {
            Some(known) => self.bool_literal(known),
            None => self.pure(Op::CompareIndex(op, a, b), Type::PRED, Range::ALL, true),
        }
    }

    /// 0 ≤ a < b; a predicate.
    pub fn in_range(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let (x, y) = (self.facts(a).range, self.facts(b).range);
        if x.is_non_negative() {
            return self.index_compare(Compare::Lt, a, b);
        }
        if x.high < 0 || y.high <= 0 {
            return self.bool_literal(false);
        }
        if y.is_non_negative() {
            return self.pure(Op::InRange(a, b), Type::PRED, Range::ALL, true);
        }
        // One unsigned comparison needs b >= 0.
        let zero = self.index_literal(self.ty(a), 0);
        let (above, below) = (self.index_compare(Compare::Le, zero, a), self.index_compare(Compare::Lt, a, b));
        self.binary(Binary::And, above, below)
    }

    fn index_op(&mut self, op: IndexOp, a: ValueId, b: ValueId, range: impl Fn(Range, Range) -> Range) -> ValueId {
        let (op, ty) = (Op::Index(op, a, b), self.ty(a));
        // Most are there already, and have their range.
        if let Some(known) = self.known(op, ty) {
            return known;
        }
        let range = range(self.facts(a).range, self.facts(b).range);
        self.pure(op, ty, range, true)
    }

    /// `value`, if it is one of the type's.
    fn fits(&self, ty: Type, value: Option<i64>) -> Option<i64> {
        let width = width(ty);
        value.filter(|v| width.low <= *v && *v <= width.high)
    }
}
