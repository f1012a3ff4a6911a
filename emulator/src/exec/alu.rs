//! Instructions that compute registers from registers.

use super::Warp;
use super::host::Host;
use crate::decode::op::{Comparison, FastCvt, Inst, LaneFn, Logic, Op, Part, PredRef, Slot, Space};
use crate::lanes::int::{self, Int2, Width};
use crate::lanes::{BITS, LANES, Mask, Row, Wide, agree, blend, choose, each, float, lanes, mask, row};
use crate::num::approx;
use crate::num::cvt::{Cvt, cvt};
use crate::num::float as scalar;
use crate::num::format::F32;

impl Warp {
    #[inline(always)]
    fn n(&self, slot: u32) -> &Row {
        &self.narrow[slot]
    }

    #[inline(always)]
    fn w(&self, slot: u32) -> &Wide {
        &self.wide[slot]
    }

    /// Executes a register instruction for some of the lanes. Rows are computed whole, and lanes that take no part get
    /// back what they had.
    #[inline(always)]
    pub(super) fn partly(&mut self, host: &Host, inst: &Inst, part: Part, mask: Mask) {
        let row = if mask == Mask::MAX { None } else { inst.row };
        match row {
            Some(Slot::Narrow(d)) => self.kept.0 = self.narrow[d],
            Some(Slot::Wide(d)) => self.kept.1 = self.wide[d],
            _ => {}
        }
        host.part(part)(self, inst, mask);
        match row {
            Some(Slot::Narrow(d)) => blend(&mut self.narrow[d], &self.kept.0, !mask),
            Some(Slot::Wide(d)) => blend(&mut self.wide[d], &self.kept.1, !mask),
            _ => {}
        }
    }

    /// Executes a slow instruction in one lane for all lanes of `mask`, if its operands are the same in all of them;
    /// otherwise it does nothing. The row functions equal the scalar ones, and lane functions are the scalar ones.
    #[inline(never)]
    pub(super) fn once(&mut self, op: &Op, mask: Mask) -> bool {
        let perturb = self.perturb;
        let first = mask.trailing_zeros() as usize & 31;
        let same = |slots: &[Slot]| slots.iter().all(|slot| self.is_uniform(*slot, mask));
        let get = |slot: Slot| self.get(slot, first);
        use Slot::{Narrow, Wide};
        let (d, value) = match *op {
            Op::Int2 { op, width, d, a, b } if same(&[Narrow(a), Narrow(b)]) => {
                let (a, b) = (get(Narrow(a)) as u32, get(Narrow(b)) as u32);
                let value = if width == Width::W16 { int::w16::int2(op, a, b) } else { int::w32::int2(op, a, b) };
                (Narrow(d), u64::from(value))
            }
            Op::Int2Wide { op, d, a, b } if same(&[Wide(a), Wide(b)]) => {
                (Wide(d), int::w64::int2(op, get(Wide(a)), get(Wide(b))))
            }
            Op::Approx { op, mode, packed: false, d, a } if same(&[Narrow(a)]) => {
                (Narrow(d), approx::approx(op, mode, get(Narrow(a)), perturb))
            }
            Op::ApproxWide { op, mode, d, a } if same(&[Wide(a)]) => {
                (Wide(d), approx::approx(op, mode, get(Wide(a)), perturb))
            }
            Op::Cvt { cvt: conversion, d, a } if same(&[a]) => (d, cvt(conversion, get(a))),
            Op::Lane { f, d, a, b, c, e } if same(&[a, b, c, e]) => {
                (d, lane_fn(f, [get(a), get(b), get(c), get(e)], perturb))
            }
            _ => return false,
        };
        self.set_row(d, &[value; LANES], mask);
        true
    }

    /// Whether lanes hold one value.
    fn is_uniform(&self, slot: Slot, mask: Mask) -> bool {
        match slot {
            Slot::Pred(s) => [0, mask].contains(&(self.preds[s as usize] & mask)),
            Slot::Narrow(s) => agree(&self.narrow[s], mask),
            Slot::Wide(s) => agree(&self.wide[s], mask),
        }
    }

    /// Integers of at most 32 bits, moves and selections.
    #[inline(always)]
    pub(super) fn narrow_integers(&mut self, op: &Op, _mask: Mask) {
        let narrow = &mut self.narrow;
        match *op {
            Op::Mov { d, a } => narrow[d] = narrow[a],
            Op::Int1 { op, width, d, a } => int::row1(op, width, narrow, [d, a]),
            Op::Int2 { op, width, d, a, b } => int::row2(op, width, narrow, [d, a, b]),
            Op::Mad { width, d, a, b, c } => int::mad(width, narrow, [d, a, b, c]),
            Op::MulWide16 { signed, d, a, b, c } => int::mul_wide16(signed, narrow, [d, a, b], c),
            Op::Lop3 { table, d, a, b, c } => int::lop3_row(table, narrow, [d, a, b, c]),
            Op::Selp { d, a, b, c } => self.select(d, a, b, c),
            _ => unreachable!("an operation of another part"),
        }
    }

    /// Integers of 64 bits, moves, selections and addresses.
    #[inline(always)]
    pub(super) fn wide_integers(&mut self, op: &Op, mask: Mask) {
        let (narrow, wide) = (&mut self.narrow, &mut self.wide);
        match *op {
            Op::MovWide { d, a } => wide[d] = wide[a],
            Op::Int1Wide { op, d, a } => int::wide1(op, wide, [d, a]),
            Op::Int2Wide { op, d, a, b } => int::wide2(op, wide, [d, a, b]),
            Op::CountWide { op, d, a } => int::count_wide(op, &wide[a], &mut narrow[d]),
            Op::ShiftWide { op, d, a, b } => int::shift_wide(op, wide, [d, a], &narrow[b]),
            Op::MadLoWide { d, a, b, c } => int::mad_wide_low(wide, [d, a, b, c]),
            Op::MulWide { signed, d, a, b, c } => int::mul_wide(signed, &narrow[a], &narrow[b], wide, d, c),
            Op::SelpWide { d, a, b, c } => {
                let chosen = self.pred(c);
                let (a, b) = (self.w(a), self.w(b));
                each!(self.wide[d], i => choose(chosen & BITS[i] != 0, a[i], b[i]));
            }
            Op::Cvta { to, space, d, a } => {
                for lane in lanes(mask) {
                    let window = super::access::window(space);
                    let address = self.get(a, lane);
                    let owner = if space == Space::Local && !to { self.owned(lane, address) } else { 0 };
                    let value = if to { address.wrapping_sub(window) } else { address.wrapping_add(window + owner) };
                    self.put(d, lane, value);
                }
            }
            Op::Isspacep { space, d, a } => {
                // The window of the cluster's shared memory contains that of the CTA's own.
                let inside = |found| found == space || space == Space::Cluster && found == Space::Shared;
                let result = mask!(lane => inside(super::access::space_of(self.w(a)[lane])));
                self.set_pred(d, result, mask);
            }
            _ => unreachable!("an operation of another part"),
        }
    }

    /// Floats of at most 32 bits.
    #[inline(always)]
    pub(super) fn floats<const FMA: bool>(&mut self, op: &Op, _mask: Mask) {
        let narrow = &mut self.narrow;
        match *op {
            Op::Float1 { op, mode, packed, d, a } => float::row1(op, mode, packed, narrow, [d, a]),
            Op::Float2 { op, mode, packed, d, a, b } => float::row2(op, mode, packed, narrow, [d, a, b]),
            Op::Fma { mode, packed, d, a, b, c } => float::row3::<FMA>(mode, packed, narrow, [d, a, b, c]),
            _ => unreachable!("an operation of another part"),
        }
    }

    /// Floats of 64 bits.
    #[inline(always)]
    pub(super) fn wide_floats<const FMA: bool>(&mut self, op: &Op, mask: Mask) {
        let perturb = self.perturb;
        let wide = &mut self.wide;
        match *op {
            Op::Float1Wide { op, mode, d, a } => float::wide1(op, mode, wide, [d, a]),
            Op::Float2Wide { op, mode, d, a, b } => float::wide2(op, mode, wide, [d, a, b]),
            Op::FmaWide { mode, d, a, b, c } => float::wide3::<FMA>(mode, wide, [d, a, b, c]),
            Op::ApproxWide { op, mode, d, a } => {
                for lane in lanes(mask) {
                    wide[d][lane] = approx::approx(op, mode, wide[a][lane], perturb);
                }
            }
            _ => unreachable!("an operation of another part"),
        }
    }

    /// What makes predicates, or values of comparisons.
    #[inline(always)]
    pub(super) fn tests(&mut self, op: &Op, mask: Mask) {
        match *op {
            Op::MovPred { d, a } => self.set_pred(d, self.preds[a as usize], mask),
            Op::Setp { test, d, p, a, b, combine } => {
                let result = self.compare(test, a, b);
                let (yes, no) = match combine {
                    None => (result, !result),
                    Some((logic, c)) => (logic.apply(result, self.pred(c)), logic.apply(!result, self.pred(c))),
                };
                if let Some(d) = d {
                    self.set_pred(d, yes, mask);
                }
                if let Some(p) = p {
                    self.set_pred(p, no, mask);
                }
            }
            Op::SetpPacked { op, ty, ftz, d, p, a, b, combine } => {
                // Both before either is written: a result may be the predicate that they are combined with.
                let results = self.compare_halves((op, ty, ftz), a, b, combine);
                for (slot, result) in [d, p].into_iter().zip(results) {
                    if let Some(slot) = slot {
                        self.set_pred(slot, result, mask);
                    }
                }
            }
            Op::Set { test, yes, d, a, b, combine } => self.set(test, yes, d, (a, b), combine),
            Op::SetPacked { op, ty, ftz, yes, d, a, b, combine } => {
                let [low, high] = self.compare_halves((op, ty, ftz), a, b, combine);
                each!(self.narrow[d], i => u32::from(yes) * ((low >> i & 1) | (high >> i & 1) << 16));
            }
            Op::Testp { class, ty, d, a } => {
                let result = lanes(mask).filter(|lane| scalar::test_class(class, ty, self.get(a, *lane)));
                let result = result.fold(0, |result, lane| result | 1 << lane);
                self.set_pred(d, result, mask);
            }
            Op::PredLogic { op, d, a, b } => self.set_pred(d, op.apply(self.pred(a), self.pred(b)), mask),
            _ => unreachable!("an operation of another part"),
        }
    }

    /// Conversions, approximations and what has carries or is computed lane by lane.
    #[inline(always)]
    pub(super) fn others(&mut self, op: &Op, mask: Mask) {
        let perturb = self.perturb;
        let narrow = &mut self.narrow;
        match *op {
            Op::Carry { subtract, carry_in, carry_out, d, a, b } => {
                self.carry_add(mask, subtract, (carry_in, carry_out), d, a, b)
            }
            Op::MadCarry { high, signed, carry_in, carry_out, d, a, b, c } => {
                self.mad_carry(mask, (high, signed), (carry_in, carry_out), [d, a, b, c])
            }
            Op::Lane {
                f: LaneFn::DivApprox { mode, full },
                d: Slot::Narrow(d),
                a: Slot::Narrow(a),
                b: Slot::Narrow(b),
                ..
            } if perturb.is_none() && mode.is_nearest() => {
                float::div_approx(mode, full, narrow, [d, a, b]);
            }
            Op::Lane {
                f,
                d: Slot::Narrow(d),
                a: Slot::Narrow(a),
                b: Slot::Narrow(b),
                c: Slot::Narrow(c),
                e: Slot::Narrow(e),
            } if f.has_row() => match f {
                LaneFn::Bfe { signed, .. } => int::bfe_row(signed, narrow, [d, a, b, c]),
                LaneFn::Bfi { .. } => int::bfi_row(narrow, [d, a, b, c, e]),
                LaneFn::Shf { left, wrap } => int::shf_row(left, wrap, narrow, [d, a, b, c]),
                _ => int::prmt_row(narrow, [d, a, b, c]),
            },
            Op::Lane { f, d, a, b, c, e } => self.each_lane(f, mask, [d, a, b, c, e], perturb),
            Op::Approx { op, mode, packed, d, a } => float::approx_row(op, mode, packed, perturb, narrow, [d, a]),
            Op::Cvt { cvt: conversion, d, a } => self.exact_cvt(conversion, d, a, mask),
            Op::CvtFast { cvt, d, a, b } => self.convert(cvt, d, a, b),
            _ => unreachable!("an operation of another part"),
        }
    }

    /// `set`: rare, and not compiled again for every host.
    #[inline(never)]
    fn set(&mut self, test: Comparison, yes: u32, d: u32, (a, b): (u32, u32), combine: Option<(Logic, PredRef)>) {
        let result = self.compare(test, a, b);
        let result = combine.map_or(result, |(logic, c)| logic.apply(result, self.pred(c)));
        each!(self.narrow[d], i => if result & BITS[i] != 0 { yes } else { 0 });
    }

    #[inline(always)]
    fn compare(&self, test: Comparison, a: u32, b: u32) -> Mask {
        match test {
            Comparison::Int(op, width) => int::compare(op, width, self.n(a), self.n(b)),
            Comparison::Float(op, ty, ftz) => float::compare_row(op, ty, ftz, self.n(a), self.n(b)),
            Comparison::WideInt(op) => int::compare_wide(op, self.w(a), self.w(b)),
            Comparison::WideFloat(op) => float::compare_wide(op, self.w(a), self.w(b)),
        }
    }

    /// A comparison of packed halves: the lanes where it holds of the lower ones, and of the upper ones.
    fn compare_halves(
        &self,
        (op, ty, ftz): (scalar::FloatCompare, scalar::FloatType, bool),
        a: u32,
        b: u32,
        combine: Option<(Logic, PredRef)>,
    ) -> [Mask; 2] {
        [0, 16].map(|shift| {
            let (a, b) = (self.n(a), self.n(b));
            let (x, y) = (row!(i => a[i] >> shift & 0xffff), row!(i => b[i] >> shift & 0xffff));
            let result = float::compare_row(op, ty, ftz, &x, &y);
            combine.map_or(result, |(logic, c)| logic.apply(result, self.pred(c)))
        })
    }

    #[inline(always)]
    pub(super) fn select(&mut self, d: u32, a: u32, b: u32, c: PredRef) {
        let chosen = self.pred(c);
        let (a, b) = (self.n(a), self.n(b));
        each!(self.narrow[d], i => choose(chosen & BITS[i] != 0, a[i], b[i]));
    }

    #[inline(always)]
    pub(super) fn convert(&mut self, cvt: FastCvt, d: u32, a: u32, b: u32) {
        // From 32 to 64 bits and back.
        match cvt {
            FastCvt::ZeroExtend => {
                let a = &self.narrow[a];
                return each!(self.wide[d], i => u64::from(a[i]));
            }
            FastCvt::SignExtend => {
                let a = &self.narrow[a];
                return each!(self.wide[d], i => i64::from(a[i] as i32) as u64);
            }
            FastCvt::Truncate => {
                let a = &self.wide[a];
                return each!(self.narrow[d], i => a[i] as u32);
            }
            _ => {}
        }
        let rows = &mut self.narrow;
        let (a, b) = (&rows[a], &rows[b]);
        let x = |bits: u32| f32::from_bits(bits);
        match cvt {
            FastCvt::ZeroExtend | FastCvt::SignExtend | FastCvt::Truncate => {}
            FastCvt::F32FromS32 => each!(rows[d], i => (a[i] as i32 as f32).to_bits()),
            FastCvt::F32FromU32 => each!(rows[d], i => (a[i] as f32).to_bits()),
            FastCvt::F32FromF16 => each!(rows[d], i => canonical(float::f16_to_f32(a[i]))),
            FastCvt::F32FromBf16 => each!(rows[d], i => canonical(float::bf16_to_f32(a[i]))),
            FastCvt::F16FromF32 => each!(rows[d], i => float::f32_to_f16(x(a[i]))),
            FastCvt::Bf16FromF32 => each!(rows[d], i => float::f32_to_bf16(x(a[i]))),
            FastCvt::F16x2FromF32 => {
                each!(rows[d], i => float::f32_to_f16(x(a[i])) << 16 | float::f32_to_f16(x(b[i])));
            }
            FastCvt::Bf16x2FromF32 => {
                each!(rows[d], i => float::f32_to_bf16(x(a[i])) << 16 | float::f32_to_bf16(x(b[i])));
            }
        }
    }

    /// A difference adds the complement: the flag it leaves and takes is the carry of that sum, the opposite of a
    /// borrow. The manual does not say so, but CUDA's 128-bit division reads it with `addc`, and that is what the
    /// assembler makes of it.
    #[inline(never)]
    fn carry_add(&mut self, mask: Mask, subtract: bool, carry: (bool, bool), d: Slot, a: Slot, b: Slot) {
        for lane in lanes(mask) {
            let (x, y) = (self.get(a, lane), self.get(b, lane));
            let value = if subtract {
                let bits = bits_of(d);
                let carried = u128::from(!carry.0 || self.carry >> lane & 1 == 1);
                let wide = u128::from(x) + u128::from(!y & ones(bits)) + carried;
                if carry.1 {
                    self.set_carry(lane, wide >> bits != 0);
                }
                wide as u64 & ones(bits)
            } else {
                self.add_with_carry(lane, d, x, y, carry.0, carry.1)
            };
            self.put(d, lane, value);
        }
    }

    #[inline(never)]
    fn mad_carry(&mut self, mask: Mask, (high, signed): (bool, bool), carry: (bool, bool), [d, a, b, c]: [Slot; 4]) {
        for lane in lanes(mask) {
            let product = wide_product(signed, a, self.get(a, lane), self.get(b, lane), high);
            let sum = self.add_with_carry(lane, a, product, self.get(c, lane), carry.0, carry.1);
            self.put(d, lane, sum);
        }
    }

    #[inline(never)]
    fn each_lane(&mut self, f: LaneFn, mask: Mask, [d, a, b, c, e]: [Slot; 5], perturb: Option<u64>) {
        for lane in lanes(mask) {
            let operands = [self.get(a, lane), self.get(b, lane), self.get(c, lane), self.get(e, lane)];
            let value = lane_fn(f, operands, perturb);
            self.put(d, lane, value);
        }
    }

    #[inline(never)]
    fn exact_cvt(&mut self, conversion: Cvt, d: Slot, a: Slot, mask: Mask) {
        for lane in lanes(mask) {
            let value = cvt(conversion, self.get(a, lane));
            self.put(d, lane, value);
        }
    }

    fn add_with_carry(&mut self, lane: usize, like: Slot, x: u64, y: u64, carry_in: bool, carry_out: bool) -> u64 {
        let bits = bits_of(like);
        let carry = u128::from(carry_in && self.carry >> lane & 1 == 1);
        let wide = u128::from(x) + u128::from(y) + carry;
        if carry_out {
            self.set_carry(lane, wide >> bits != 0);
        }
        wide as u64 & ones(bits)
    }

    fn set_carry(&mut self, lane: usize, value: bool) {
        self.carry = (self.carry & !(1 << lane)) | u32::from(value) << lane;
    }
}

fn bits_of(slot: Slot) -> u32 {
    if matches!(slot, Slot::Wide(_)) { 64 } else { 32 }
}

fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

#[inline(always)]
fn canonical(value: f32) -> u32 {
    if value.is_nan() { F32.nan as u32 } else { value.to_bits() }
}

/// The low or high half of a product of the width of `like`.
fn wide_product(signed: bool, like: Slot, x: u64, y: u64, high: bool) -> u64 {
    let bits = bits_of(like);
    let extend = |v: u64| if bits == 32 { i128::from(v as u32 as i32) } else { i128::from(v as i64) };
    let product = if signed { extend(x).wrapping_mul(extend(y)) as u128 } else { u128::from(x) * u128::from(y) };
    (if high { product >> bits } else { product }) as u64 & ones(bits)
}

/// Meaning of the instructions without rows.
fn lane_fn(f: LaneFn, [a, b, c, e]: [u64; 4], perturb: Option<u64>) -> u64 {
    let (x, y, z) = (a as u32, b as u32, c as u32);
    let int2 = |op: Int2, width: Width, a: u64, b: u64| match width {
        Width::W16 => u64::from(int::w16::int2(op, a as u32, b as u32)),
        Width::W32 => u64::from(int::w32::int2(op, a as u32, b as u32)),
        Width::W64 => int::w64::int2(op, a, b),
    };
    match f {
        LaneFn::MadHi { signed, width, sat } => {
            let product = int2(if signed { Int2::MulHiS } else { Int2::MulHiU }, width, a, b);
            int2(if sat { Int2::AddSat } else { Int2::Add }, width, product, c)
        }
        LaneFn::Mad24 { signed, high, sat } => {
            let product = int2(Int2::Mul24 { signed, high }, Width::W32, a, b);
            int2(if sat { Int2::AddSat } else { Int2::Add }, Width::W32, product, c)
        }
        LaneFn::Sad { signed, width } => {
            let (least, greatest) = if signed { (Int2::MinS, Int2::MaxS) } else { (Int2::MinU, Int2::MaxU) };
            let difference = int2(Int2::Sub, width, int2(greatest, width, a, b), int2(least, width, a, b));
            int2(Int2::Add, width, c, difference)
        }
        LaneFn::Prmt(mode) => u64::from(int::prmt(mode, x, y, z)),
        LaneFn::Bfe { signed, bits: 32 } => u64::from(int::bfe32(signed, x, y, z)),
        LaneFn::Bfe { signed, .. } => int::bfe64(signed, a, y, z),
        LaneFn::Bfi { bits: 32 } => u64::from(int::bfi32(x, y, z, e as u32)),
        LaneFn::Bfi { .. } => int::bfi64(a, b, z, e as u32),
        LaneFn::Shf { left, wrap } => u64::from(int::shf(left, wrap, x, y, z)),
        LaneFn::Dp4a { a, b } => u64::from(int::dp4a(a, b, x, y, z)),
        LaneFn::Dp2a { a, b, high } => u64::from(int::dp2a(a, b, high, x, y, z)),
        LaneFn::Bmsk { wrap } => u64::from(int::bmsk(wrap, x, y)),
        LaneFn::Szext { signed, wrap } => u64::from(int::szext(signed, wrap, x, y)),
        LaneFn::Fns => u64::from(int::fns(x, y, z as i32)),
        LaneFn::SlctInt => {
            if (z as i32) >= 0 {
                a
            } else {
                b
            }
        }
        // NaN selects the second operand, −0 the first (PTX manual 9.7.5.4: c ≥ 0).
        LaneFn::SlctFloat { ftz } => {
            let c = if ftz { F32.flush(c) } else { c };
            if f32::from_bits(c as u32) >= 0.0 { a } else { b }
        }
        LaneFn::Packed16 { op, relu } => {
            let half = |shift: u32| {
                let value = int::w16::int2(op, x >> shift & 0xffff, y >> shift & 0xffff);
                if relu && value & 0x8000 != 0 { 0 } else { value }
            };
            u64::from(half(0) | half(16) << 16)
        }
        LaneFn::Video(video) => u64::from(video.apply(x, y, z)),
        LaneFn::Relu { max } => {
            let value = int2(if max { Int2::MaxS } else { Int2::MinS }, Width::W32, a, b);
            if (value as i32) < 0 { 0 } else { value }
        }
        LaneFn::CvtPack { bits, signed } => {
            let (least, greatest) =
                if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
            let part = |v: u32| (i64::from(v as i32).clamp(least, greatest) as u64) & ones(bits);
            let packed = part(x) << bits | part(y);
            if bits == 8 { (packed | c << 16) & 0xffff_ffff } else { packed }
        }
        LaneFn::CvtTwo(conversion) => {
            let shift = match conversion.to {
                crate::num::cvt::CvtType::Float(to) => to.bits(),
                crate::num::cvt::CvtType::Int { .. } | crate::num::cvt::CvtType::Tf32 => 16,
            };
            cvt(conversion, a) << shift | cvt(conversion, b)
        }
        LaneFn::CvtEach { cvt: conversion, from_bits, to_bits } => {
            (0..2).fold(0, |sum, i| sum | cvt(conversion, a >> (i * from_bits) & ones(from_bits)) << (i * to_bits))
        }
        LaneFn::DivApprox { mode, full } => approx::div(mode, full, a, b, perturb),
        LaneFn::FmaOob(mode, packed) => {
            // An operand with the bits of the out-of-bounds NaN makes the result zero (PTX manual 9.7.4.4).
            let one = |a: u64, b: u64, c: u64| if a == 0xffff || b == 0xffff { 0 } else { scalar::fma(mode, a, b, c) };
            if !packed {
                return one(a, b, c);
            }
            let half = |v: u64, i: u32| v >> (16 * i) & 0xffff;
            one(half(a, 0), half(b, 0), half(c, 0)) | one(half(a, 1), half(b, 1), half(c, 1)) << 16
        }
    }
}
