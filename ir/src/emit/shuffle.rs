//! Values from other lanes: `shfl.sync.bfly.b32` (PTX manual 9.7.9.6).
//!
//! The instruction moves 32 bits: wider values are two of them, narrower ones and predicates are widened. Its member
//! mask may only name lanes that exist, and a lane that asks for one beyond the clamp gets its own value; so both are
//! those of the warp, and the last one may have fewer lanes than the others.

use tilewright_kernel::target::WARP;
use tilewright_ptx::{Operand, RegId, ScalarType, SpecialReg};

use super::entry::{Entry, register_type};
use crate::kernel_ir::{StatementKind, ValueId};

/// The lanes of the warp that a thread is in.
#[derive(Clone, Debug)]
pub(super) struct Warp {
    /// Number of the last one.
    last: Operand,
    /// One bit for each.
    members: Operand,
}

impl Entry<'_> {
    /// Finds out which lanes the warp has, if anything is shuffled.
    pub(super) fn prepare_shuffles(&mut self) {
        let mut statements = self.kernel.regions.iter().flat_map(|region| &region.statements);
        if !statements.any(|statement| matches!(statement.kind, StatementKind::Shuffle { .. })) {
            return;
        }
        let (whole, rest) = (self.kernel.signature.threads / WARP, self.kernel.signature.threads % WARP);
        let of = |lanes: u32| [i64::from(lanes) - 1, i64::from(u32::MAX >> (WARP - lanes))];
        let [last, members] = match (whole, rest) {
            (_, 0) => of(WARP).map(Operand::from),
            (0, _) => of(rest).map(Operand::from),
            _ => {
                let thread = self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]);
                let first = i64::from(whole * WARP);
                let complete = self.result("setp.lt.u32", ScalarType::Pred, [thread.into(), first.into()]);
                let [(all, some), (every, few)] = [0, 1].map(|n| (of(WARP)[n], of(rest)[n]));
                [(all, some), (every, few)].map(|(whole, part)| {
                    self.result("selp.b32", ScalarType::B32, [whole.into(), part.into(), complete.into()]).into()
                })
            }
        };
        self.warp = Some(Warp { last, members });
    }

    /// Exchanges a value between lanes.
    pub(super) fn shuffle(&mut self, value: ValueId, mask: u32, result: ValueId) {
        let x = self.register(value);
        let register = match register_type(self.ty(value)) {
            ty @ (ScalarType::B64 | ScalarType::F64) => {
                let [low, high] = [self.f.reg(ScalarType::B32), self.f.reg(ScalarType::B32)];
                self.emit("mov.b64", [Operand::vector([low, high]), x.into()]);
                let halves = [low, high].map(|half| self.exchange(half, ScalarType::B32, mask));
                self.result("mov.b64", ty, [Operand::vector(halves)])
            }
            ScalarType::Pred => {
                let word = self.result("selp.b32", ScalarType::B32, [1.into(), 0.into(), x.into()]);
                let word = self.exchange(word, ScalarType::B32, mask);
                self.result("setp.ne.u32", ScalarType::Pred, [word.into(), 0.into()])
            }
            ScalarType::B16 => {
                let word = self.result("cvt.u32.u16", ScalarType::B32, [x.into()]);
                let word = self.exchange(word, ScalarType::B32, mask);
                self.result("cvt.u16.u32", ScalarType::B16, [word.into()])
            }
            ty => self.exchange(x, ty, mask),
        };
        self.bind(result, register);
    }

    /// Exchanges a register of 32 bits.
    fn exchange(&mut self, x: RegId, ty: ScalarType, mask: u32) -> RegId {
        // There is a warp where there is a shuffle.
        let Some(Warp { last, members }) = self.warp.clone() else { return self.f.reg(ty) };
        self.result("shfl.sync.bfly.b32", ty, [x.into(), mask.into(), last, members])
    }
}
