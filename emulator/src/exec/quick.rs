//! The operations that kernels execute most, each compiled for itself: the loop calls them without a further look at
//! what they are. What they do is said in `lanes`, and a row here only picks one of its cases. They stand in every
//! lane, and so only run where all 32 take part.

use crate::decode::op::{Comparison, FastCvt, Op, PredRef};
use crate::lanes::int::{Int2, IntCompare, Width};
use crate::num::float::{Float2, FloatMode, FloatType};

/// Calls a macro with the operations: a pattern, the registers that it names, and what is done with these.
#[rustfmt::skip] // one or two lines each
macro_rules! quick {
    ($with:ident) => {
        $with! {
            Op::Mov { d, a }, [d a] => |warp| warp.narrow[d] = warp.narrow[a];
            Op::MovWide { d, a }, [d a] => |warp| warp.wide[d] = warp.wide[a];
            Op::Int2 { op: Int2::Add, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::Add, a, b));
            Op::Int2 { op: Int2::Sub, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::Sub, a, b));
            Op::Int2 { op: Int2::Mul, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::Mul, a, b));
            Op::Int2 { op: Int2::And, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::And, a, b));
            Op::Int2 { op: Int2::Or, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::Or, a, b));
            Op::Int2 { op: Int2::Xor, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::Xor, a, b));
            Op::Int2 { op: Int2::Shl, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::Shl, a, b));
            Op::Int2 { op: Int2::ShrU, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::ShrU, a, b));
            Op::Int2 { op: Int2::ShrS, width: Width::W32, d, a, b }, [d a b] =>
                |warp| int::w32::each2(&mut warp.narrow, [d, a, b], |a, b| int::w32::int2(Int2::ShrS, a, b));
            Op::Int2Wide { op: Int2::Add, d, a, b }, [d a b] =>
                |warp| int::w64::each2(&mut warp.wide, [d, a, b], |a, b| int::w64::int2(Int2::Add, a, b));
            Op::Int2Wide { op: Int2::And, d, a, b }, [d a b] =>
                |warp| int::w64::each2(&mut warp.wide, [d, a, b], |a, b| int::w64::int2(Int2::And, a, b));
            Op::ShiftWide { op: Int2::Shl, d, a, b }, [d a b] =>
                |warp| int::shift_wide(Int2::Shl, &mut warp.wide, [d, a], &warp.narrow[b]);
            Op::Mad { width: Width::W32, d, a, b, c }, [d a b c] =>
                |warp| int::mad(Width::W32, &mut warp.narrow, [d, a, b, c]);
            Op::MulWide { signed: false, d, a, b, c: None }, [d a b] =>
                |warp| int::mul_wide(false, &warp.narrow[a], &warp.narrow[b], &mut warp.wide, d, None);
            Op::MulWide { signed: false, d, a, b, c: Some(c) }, [d a b c] =>
                |warp| int::mul_wide(false, &warp.narrow[a], &warp.narrow[b], &mut warp.wide, d, Some(c));
            Op::MulWide { signed: true, d, a, b, c: None }, [d a b] =>
                |warp| int::mul_wide(true, &warp.narrow[a], &warp.narrow[b], &mut warp.wide, d, None);
            Op::MulWide { signed: true, d, a, b, c: Some(c) }, [d a b c] =>
                |warp| int::mul_wide(true, &warp.narrow[a], &warp.narrow[b], &mut warp.wide, d, Some(c));
            Op::Selp { d, a, b, c: PredRef { slot, negated: false } }, [d a b slot] =>
                |warp| warp.select(d, a, b, PredRef { slot, negated: false });
            Op::Selp { d, a, b, c: PredRef { slot, negated: true } }, [d a b slot] =>
                |warp| warp.select(d, a, b, PredRef { slot, negated: true });
            Op::CvtFast { cvt: FastCvt::ZeroExtend, d, a, .. }, [d a] =>
                |warp| warp.convert(FastCvt::ZeroExtend, d, a, a);
            Op::CvtFast { cvt: FastCvt::SignExtend, d, a, .. }, [d a] =>
                |warp| warp.convert(FastCvt::SignExtend, d, a, a);
            Op::CvtFast { cvt: FastCvt::Truncate, d, a, .. }, [d a] => |warp| warp.convert(FastCvt::Truncate, d, a, a);
            Op::Float2 { op: Float2::Add, mode: PLAIN, packed: false, d, a, b }, [d a b] =>
                |warp| float::add::<false>(&mut warp.narrow, [d, a, b]);
            Op::Float2 { op: Float2::Sub, mode: PLAIN, packed: false, d, a, b }, [d a b] =>
                |warp| float::sub::<false>(&mut warp.narrow, [d, a, b]);
            Op::Float2 { op: Float2::Mul, mode: PLAIN, packed: false, d, a, b }, [d a b] =>
                |warp| float::mul::<false>(&mut warp.narrow, [d, a, b]);
            Op::Float2 { op: Float2::Max { nan: false, xorsign: false }, mode: PLAIN, packed: false, d, a, b }, [d a b] =>
                |warp| float::maximum::<false>(&mut warp.narrow, [d, a, b]);
            Op::Fma { mode: PLAIN, packed: false, d, a, b, c }, [d a b c] =>
                |warp| float::fma_row::<false, FMA>(&mut warp.narrow, [d, a, b, c]);
            Op::Setp { test: Comparison::Int(IntCompare::Eq, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::Eq, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::Ne, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::Ne, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::LtU, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::LtU, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::LeU, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::LeU, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::GtU, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::GtU, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::GeU, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::GeU, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::LtS, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::LtS, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::LeS, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::LeS, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::GtS, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::GtS, Width::W32, &warp.narrow[a], &warp.narrow[b]);
            Op::Setp { test: Comparison::Int(IntCompare::GeS, Width::W32), d: Some(d), p: None, a, b, combine: None }, [d a b] =>
                |warp| warp.preds[d as usize] = int::compare(IntCompare::GeS, Width::W32, &warp.narrow[a], &warp.narrow[b]);
        }
    };
}
pub(super) use quick;

/// Round to nearest, nothing else.
const PLAIN: FloatMode = FloatMode::plain(FloatType::F32);

macro_rules! numbers {
    ($($pattern:pat, [$($register:ident)*] => |$warp:ident| $do:expr;)*) => {
        /// How many there are.
        pub(super) const QUICK: usize = [$(stringify!($pattern)),*].len();

        /// The number of an operation among them, and its registers.
        pub(super) fn number(op: &Op) -> Option<(usize, [u32; 4])> {
            let tests: [fn(&Op) -> Option<[u32; 4]>; QUICK] = [
                $(|op| match *op {
                    $pattern => Some(four(&[$($register),*])),
                    _ => None,
                }),*
            ];
            tests.iter().enumerate().find_map(|(number, test)| Some((number, test(op)?)))
        }
    };
}
quick!(numbers);

fn four(registers: &[u32]) -> [u32; 4] {
    std::array::from_fn(|at| registers.get(at).copied().unwrap_or(0))
}
