//! Which instructions can be executed once for a warp: those whose operands derive from nothing that differs between
//! lanes.
//!
//! Values differ between lanes if they come from a lane's own number, from an instruction that treats lanes
//! differently, or from memory at addresses that differ. This follows data and not control: lanes that left a loop in
//! different turns hold different values of a counter that is the same in each turn. So the executor compares the
//! operands of a marked instruction over the lanes that run before it takes one lane's result for all; the proof is
//! what makes that comparison worth its time, and soundness does not rest on it.

use tilewright_ptx::SpecialReg;
use tilewright_sorted::SortedSet;

use super::Kernel;
use super::op::{Access, Collective, Inst, LaneFn, Op, Slot, Space};
use super::operands::{Role, visit};
use crate::lanes::int::Int2;

/// Marks the instructions of a kernel.
pub(super) fn mark(kernel: &mut Kernel) {
    // Calls move values between registers in ways of their own.
    if !kernel.calls.is_empty() || !kernel.functions.is_empty() {
        return;
    }
    let varying = varying(kernel);
    let Kernel { code, data, .. } = kernel;
    for inst in code {
        let mut uniform = is_slow(&inst.op);
        visit(inst, data, &mut |slot, role| {
            uniform &= role == Role::Write || !varying.contains(&slot);
            slot
        });
        inst.once = uniform;
    }
}

/// The slots whose values may differ between lanes that run together.
fn varying(kernel: &mut Kernel) -> SortedSet<Slot> {
    let mut varying: SortedSet<Slot> =
        kernel.specials.iter().filter(|(s, _)| is_of_lane(*s)).map(|(_, slot)| Slot::Narrow(*slot)).collect();
    let Kernel { code, data, .. } = kernel;
    loop {
        let before = varying.len();
        for inst in code.iter_mut() {
            let mut differs = treats_lanes_differently(inst);
            visit(inst, data, &mut |slot, role| {
                differs |= role != Role::Write && varying.contains(&slot);
                slot
            });
            if differs {
                visit(inst, data, &mut |slot, role| {
                    if role != Role::Read {
                        varying.insert(slot);
                    }
                    slot
                });
            }
        }
        if varying.len() == before {
            return varying;
        }
    }
}

/// Whether a special register differs between the lanes of a warp.
fn is_of_lane(special: SpecialReg) -> bool {
    use SpecialReg::*;
    matches!(special, TidX | TidY | TidZ | Laneid | LanemaskEq | LanemaskLe | LanemaskLt | LanemaskGe | LanemaskGt)
}

/// Whether results differ between lanes though the operands do not.
fn treats_lanes_differently(inst: &Inst) -> bool {
    match inst.op {
        Op::Load(Access { space: Space::Local | Space::Generic, .. })
        | Op::Atomic(_)
        | Op::ThreadCopy(_)
        | Op::Mbarrier(_)
        | Op::Mma(_)
        | Op::Wgmma { .. }
        | Op::MatrixAccess(_)
        | Op::MatrixTranspose { .. }
        | Op::FragmentAccess(_)
        | Op::Alloca { .. }
        | Op::StackTop { .. }
        | Op::Cvta { space: Space::Local, .. }
        // The carry is no slot.
        | Op::Carry { .. }
        | Op::MadCarry { .. } => true,
        Op::Collective { op, .. } => !matches!(op, Collective::Vote(..) | Collective::Redux { .. }),
        _ => false,
    }
}

/// Whether comparing the operands costs much less than computing the result in every lane.
fn is_slow(op: &Op) -> bool {
    match op {
        Op::Int2 { op, .. } | Op::Int2Wide { op, .. } => {
            matches!(op, Int2::DivU | Int2::DivS | Int2::RemU | Int2::RemS)
        }
        Op::Lane { f, .. } => !f.has_row() && !matches!(f, LaneFn::DivApprox { .. }),
        Op::Cvt { .. } | Op::ApproxWide { .. } => true,
        Op::Approx { packed, .. } => !packed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::decode::decode;

    /// Which instructions of a body are marked, by the line of the body.
    fn marked(body: &str) -> Vec<usize> {
        let text = format!(
            ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) {{\n.reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %a<9>;\n{body}\nret;\n}}\n"
        );
        let module = tilewright_ptx::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let kernel = decode(&module, &tilewright_sorted::SortedMap::new())
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
            .kernels
            .remove(0);
        let lines = kernel.code.iter().zip(&kernel.origins).filter(|(inst, _)| inst.once);
        lines.map(|(_, origin)| origin.line as usize - 6).collect()
    }

    #[test]
    fn what_derives_from_the_block_is_marked() {
        let body = "ld.param.u32 %r0, [n];\nmov.u32 %r1, %ctaid.x;\ndiv.u32 %r2, %r1, %r0;\nrem.u32 %r3, %r2, 7;\nmov.u32 %r4, %tid.x;\ndiv.u32 %r5, %r4, %r0;\nadd.u32 %r6, %r3, %r5;\ndiv.u32 %r7, %r6, 3;";
        assert_eq!(marked(body), [2, 3], "not what derives from the thread's number");
    }

    #[test]
    fn one_write_that_differs_is_enough() {
        let body = "mov.u32 %r0, 5;\nmov.u32 %r1, %laneid;\nsetp.eq.u32 %p0, %r1, 3;\n@%p0 mov.u32 %r0, 6;\ndiv.u32 %r2, %r0, 2;\nmov.u32 %r3, 9;\nL: div.u32 %r3, %r3, 2;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra L;";
        assert_eq!(marked(body), [6], "a loop on uniform values stays uniform");
    }
}
