//! The register slots of decoded instructions: which they read and which they write. One walk serves every analysis,
//! and renumbering.

use super::Kernel;
use super::op::{
    Access, Address, Atomic, AtomicFn, BarrierKind, Collective, Comparison, FastCvt, Inst, MbarrierFn, Op, PredRef,
    Slot, SourceBytes, Vote,
};

/// What an instruction does with a slot. A write may leave out lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Read,
    Write,
    /// Reads, and writes before it has read everything.
    Both,
}

use Role::{Both, Read, Write};

/// Gives `f` every slot of an instruction, guard included, and puts what it returns in its place: a slot of the same
/// class.
pub(super) fn visit(inst: &mut Inst, data: &mut [Option<Slot>], f: &mut dyn FnMut(Slot, Role) -> Slot) {
    let mut v = Visitor { f, data };
    if let Some(guard) = &mut inst.guard {
        v.pred_ref(guard);
    }
    v.op(&mut inst.op);
}

/// Puts other slots in the place of all that the instructions of a kernel name.
pub(super) fn renumber(kernel: &mut Kernel, f: &mut dyn FnMut(Slot) -> Slot) {
    for inst in &mut kernel.code {
        let mut v = Visitor { f: &mut |slot, _| f(slot), data: &mut [] };
        if let Some(guard) = &mut inst.guard {
            v.pred_ref(guard);
        }
        v.op(&mut inst.op);
    }
    // Instructions may share entries of the data list.
    kernel.data.iter_mut().flatten().for_each(|slot| *slot = f(*slot));
}

struct Visitor<'a> {
    f: &'a mut dyn FnMut(Slot, Role) -> Slot,
    data: &'a mut [Option<Slot>],
}

impl Visitor<'_> {
    fn slot(&mut self, slot: &mut Slot, role: Role) {
        *slot = (self.f)(*slot, role);
    }

    fn number(&mut self, number: &mut u32, class: fn(u32) -> Slot, role: Role) {
        let (Slot::Pred(new) | Slot::Narrow(new) | Slot::Wide(new)) = (self.f)(class(*number), role);
        *number = new;
    }

    fn narrow(&mut self, number: &mut u32, role: Role) {
        self.number(number, Slot::Narrow, role);
    }

    fn wide(&mut self, number: &mut u32, role: Role) {
        self.number(number, Slot::Wide, role);
    }

    fn pred(&mut self, number: &mut u32, role: Role) {
        self.number(number, Slot::Pred, role);
    }

    fn pred_ref(&mut self, p: &mut PredRef) {
        self.pred(&mut p.slot, Read);
    }

    fn narrows(&mut self, d: &mut u32, sources: &mut [&mut u32]) {
        for source in sources {
            self.narrow(source, Read);
        }
        self.narrow(d, Write);
    }

    fn wides(&mut self, d: &mut u32, sources: &mut [&mut u32]) {
        for source in sources {
            self.wide(source, Read);
        }
        self.wide(d, Write);
    }

    fn slots(&mut self, d: &mut Slot, sources: &mut [&mut Slot]) {
        for source in sources {
            self.slot(source, Read);
        }
        self.slot(d, Write);
    }

    fn list(&mut self, first: u32, count: usize, role: Role) {
        let list = self.data.get_mut(first as usize..first as usize + count);
        for slot in list.into_iter().flatten().flatten() {
            *slot = (self.f)(*slot, role);
        }
    }

    fn address(&mut self, address: &mut Address) {
        if let Some(base) = &mut address.base {
            self.slot(base, Read);
        }
    }

    fn access(&mut self, access: &mut Access, role: Role) {
        self.address(&mut access.address);
        self.list(access.data, usize::from(access.count), role);
    }

    fn atomic(&mut self, atomic: &mut Atomic) {
        self.address(&mut atomic.address);
        let count = usize::from(atomic.count);
        let results = if atomic.returns { count } else { 0 };
        let operands = if atomic.op == AtomicFn::Cas { 2 * count } else { count };
        self.list(atomic.data + results as u32, operands, Read);
        self.list(atomic.data, results, Write);
    }

    fn tested(&mut self, test: &Comparison, a: &mut u32, b: &mut u32) {
        for operand in [a, b] {
            match test {
                Comparison::Int(..) | Comparison::Float(..) => self.narrow(operand, Read),
                Comparison::WideInt(_) | Comparison::WideFloat(_) => self.wide(operand, Read),
            }
        }
    }

    fn collective(&mut self, op: &mut Collective) {
        match op {
            Collective::Shfl { d, p, a, b, c, .. } => {
                self.narrows(d, &mut [a, b, c]);
                p.iter_mut().for_each(|p| self.pred(p, Write));
            }
            Collective::Vote(vote, p) => {
                self.pred_ref(p);
                match vote {
                    Vote::All(d) | Vote::Any(d) | Vote::Uni(d) => self.pred(d, Write),
                    Vote::Ballot(d) => self.narrow(d, Write),
                }
            }
            Collective::MatchAny { d, a } => {
                self.slot(a, Read);
                self.narrow(d, Write);
            }
            Collective::MatchAll { d, p, a } => {
                self.slot(a, Read);
                d.iter_mut().for_each(|d| self.narrow(d, Write));
                p.iter_mut().for_each(|p| self.pred(p, Write));
            }
            Collective::Redux { d, a, .. } => self.narrows(d, &mut [a]),
            Collective::Elect { d, p } => {
                d.iter_mut().for_each(|d| self.narrow(d, Write));
                self.pred(p, Write);
            }
            Collective::Barrier => {}
        }
    }

    fn mbarrier(&mut self, f: &mut MbarrierFn) {
        match f {
            MbarrierFn::Init(count) => self.narrow(count, Read),
            MbarrierFn::Inval | MbarrierFn::ArriveAfterCopies { .. } => {}
            MbarrierFn::Transact { bytes, .. } => self.narrow(bytes, Read),
            MbarrierFn::Arrive { d, count, expect, .. } => {
                count.iter_mut().chain(expect).for_each(|slot| self.narrow(slot, Read));
                d.iter_mut().for_each(|d| self.wide(d, Write));
            }
            MbarrierFn::Wait { d, phase, .. } => {
                self.slot(phase, Read);
                self.pred(d, Write);
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm an operation")]
    fn op(&mut self, op: &mut Op) {
        match op {
            // Tracked registers keep their slots.
            Op::CheckInit { .. }
            | Op::MarkInit { .. }
            | Op::FlowInit { .. }
            | Op::LoadedInit { .. }
            | Op::StoredInit { .. }
            // And so do those of products by warpgroups.
            | Op::MatrixTouch { .. } => {}
            Op::FlowSelect { p, .. } => self.pred_ref(p),
            Op::Mov { d, a } => self.narrows(d, &mut [a]),
            Op::MovWide { d, a } => self.wides(d, &mut [a]),
            Op::MovPred { d, a } => {
                self.pred(a, Read);
                self.pred(d, Write);
            }
            Op::Clock { d, .. } => self.slot(d, Write),
            Op::Pack { d, parts, count, .. } => {
                self.list(*parts, usize::from(*count), Read);
                self.slot(d, Write);
            }
            Op::Unpack { a, parts, count, .. } => {
                self.slot(a, Read);
                self.list(*parts, usize::from(*count), Write);
            }
            Op::Int1 { d, a, .. } | Op::Float1 { d, a, .. } | Op::Approx { d, a, .. } => self.narrows(d, &mut [a]),
            Op::Int2 { d, a, b, .. } | Op::Float2 { d, a, b, .. } => self.narrows(d, &mut [a, b]),
            Op::Int1Wide { d, a, .. } | Op::Float1Wide { d, a, .. } | Op::ApproxWide { d, a, .. } => {
                self.wides(d, &mut [a]);
            }
            Op::Int2Wide { d, a, b, .. } | Op::Float2Wide { d, a, b, .. } => self.wides(d, &mut [a, b]),
            Op::CountWide { d, a, .. } => {
                self.wide(a, Read);
                self.narrow(d, Write);
            }
            Op::ShiftWide { d, a, b, .. } => {
                self.narrow(b, Read);
                self.wides(d, &mut [a]);
            }
            Op::Mad { d, a, b, c, .. } | Op::Lop3 { d, a, b, c, .. } | Op::Fma { d, a, b, c, .. } => {
                self.narrows(d, &mut [a, b, c]);
            }
            Op::MadLoWide { d, a, b, c } | Op::FmaWide { d, a, b, c, .. } => self.wides(d, &mut [a, b, c]),
            Op::MulWide { d, a, b, c, .. } => {
                self.narrow(a, Read);
                self.narrow(b, Read);
                c.iter_mut().for_each(|c| self.wide(c, Read));
                self.wide(d, Write);
            }
            Op::MulWide16 { d, a, b, c, .. } => {
                c.iter_mut().for_each(|c| self.narrow(c, Read));
                self.narrows(d, &mut [a, b]);
            }
            Op::Carry { d, a, b, .. } => self.slots(d, &mut [a, b]),
            Op::MadCarry { d, a, b, c, .. } => self.slots(d, &mut [a, b, c]),
            Op::Lane { d, a, b, c, e, .. } => self.slots(d, &mut [a, b, c, e]),
            Op::Alloca { d, size, .. } => self.slots(d, &mut [size]),
            Op::StackTop { register, restore } => self.slot(register, if *restore { Read } else { Write }),
            Op::Cvt { d, a, .. } | Op::Cvta { d, a, .. } => self.slots(d, &mut [a]),
            Op::CvtFast { cvt, d, a, b } => match cvt {
                FastCvt::ZeroExtend | FastCvt::SignExtend => {
                    self.narrow(a, Read);
                    self.narrow(b, Read);
                    self.wide(d, Write);
                }
                FastCvt::Truncate => {
                    self.wide(a, Read);
                    self.wide(b, Read);
                    self.narrow(d, Write);
                }
                _ => self.narrows(d, &mut [a, b]),
            },
            Op::Setp { test, d, p, a, b, combine } => {
                self.tested(test, a, b);
                combine.iter_mut().for_each(|(_, p)| self.pred_ref(p));
                d.iter_mut().chain(p).for_each(|d| self.pred(d, Write));
            }
            Op::SetpPacked { d, p, a, b, combine, .. } => {
                self.narrow(a, Read);
                self.narrow(b, Read);
                combine.iter_mut().for_each(|(_, p)| self.pred_ref(p));
                d.iter_mut().chain(p).for_each(|d| self.pred(d, Write));
            }
            Op::Set { test, d, a, b, combine, .. } => {
                self.tested(test, a, b);
                combine.iter_mut().for_each(|(_, p)| self.pred_ref(p));
                self.narrow(d, Write);
            }
            Op::SetPacked { d, a, b, combine, .. } => {
                combine.iter_mut().for_each(|(_, p)| self.pred_ref(p));
                self.narrows(d, &mut [a, b]);
            }
            Op::Testp { d, a, .. } => {
                self.slot(a, Read);
                self.pred(d, Write);
            }
            Op::Selp { d, a, b, c } => {
                self.pred_ref(c);
                self.narrows(d, &mut [a, b]);
            }
            Op::SelpWide { d, a, b, c } => {
                self.pred_ref(c);
                self.wides(d, &mut [a, b]);
            }
            Op::PredLogic { d, a, b, .. } => {
                self.pred_ref(a);
                self.pred_ref(b);
                self.pred(d, Write);
            }
            Op::Load(access) => self.access(access, Write),
            Op::Store(access) => self.access(access, Read),
            Op::Atomic(atomic) => self.atomic(atomic),
            Op::Isspacep { d, a, .. } => {
                self.wide(a, Read);
                self.pred(d, Write);
            }
            Op::Activemask { d } => self.narrow(d, Write),
            Op::Collective { op, members } => {
                self.narrow(members, Read);
                self.collective(op);
            }
            Op::Barrier(barrier) => {
                self.narrow(&mut barrier.id, Read);
                barrier.threads.iter_mut().for_each(|threads| self.narrow(threads, Read));
                match &mut barrier.kind {
                    BarrierKind::Sync | BarrierKind::Arrive => {}
                    BarrierKind::Popc(d, p) => {
                        self.pred_ref(p);
                        self.narrow(d, Write);
                    }
                    BarrierKind::All(d, p) | BarrierKind::Any(d, p) => {
                        self.pred_ref(p);
                        self.pred(d, Write);
                    }
                }
            }
            Op::ThreadCopy(copy) => {
                self.address(&mut copy.to);
                self.address(&mut copy.from);
                match &mut copy.source {
                    SourceBytes::All => {}
                    SourceBytes::Some(bytes) => self.narrow(bytes, Read),
                    SourceBytes::Ignore(p) => self.pred_ref(p),
                }
                // The words pass through their slots at a later time as well: nothing else may have these.
            }
            Op::Mapa(mapa) => {
                mapa.rank.iter_mut().for_each(|rank| self.narrow(rank, Read));
                self.slots(&mut mapa.d, &mut [&mut mapa.a]);
            }
            Op::Mbarrier(mbarrier) => {
                self.address(&mut mbarrier.address);
                self.mbarrier(&mut mbarrier.f);
            }
            Op::Mma(mma) => {
                let [d, a, b, c] = mma.counts.map(usize::from);
                self.list(mma.data + d as u32, a + b + c, Read);
                self.list(mma.data, d, Write);
            }
            Op::Wgmma { data, sums, others, .. } => {
                self.list(*data, usize::from(*sums), Both);
                self.list(*data + u32::from(*sums), usize::from(*others), Read);
            }
            // Parts of a register go through it one after the other.
            Op::MatrixAccess(access) => {
                self.address(&mut access.address);
                self.list(access.data, usize::from(access.count), Both);
            }
            Op::FragmentAccess(access) => {
                self.address(&mut access.address);
                access.stride.iter_mut().for_each(|stride| self.narrow(stride, Read));
                self.narrow(&mut access.scratch, Both);
                self.list(access.data, usize::from(access.count) + 1, Both);
            }
            Op::MatrixTranspose { d, a } => self.narrows(d, &mut [a]),
            Op::BranchTable { index, .. } => self.narrow(index, Read),
            Op::Bulk { data, count, .. } => self.list(*data, usize::from(*count), Read),
            Op::ClusterBarrier(_)
            | Op::SetRegisters { .. }
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait { .. }
            | Op::CommitCopies
            | Op::CommitBulk
            | Op::WaitBulk { .. }
            | Op::ProxyFence { .. }
            | Op::WaitCopies { .. }
            | Op::Fence(_)
            | Op::Branch { .. }
            | Op::Call { .. }
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Nop
            | Op::AwaitGrids
            | Op::Yield => {}
        }
    }
}
