//! Branches, barriers, fences and operations of a warp.

use tilewright_ptx::isa::{Control, Synchronization, Warp};
use tilewright_ptx::{
    AtomicOp, Flag, Inst as Source, Operand, ScalarType, Semantics, ShuffleMode, StateSpace, VoteMode,
};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{Barrier, BarrierKind, ClusterBarrierOp, Collective, Op, Redux, Shuffle, Slot, Vote};

impl Lowering<'_> {
    pub(super) fn control(&mut self, control: Control, inst: &Source) -> Lowered<()> {
        match control {
            Control::Bra => {
                let Operand::Label(label) = self.operand(inst, 0)? else { return refuse("a label is expected") };
                self.fixes.push((self.kernel.code.len(), *label));
                self.emit(Op::Branch { target: 0, uniform: inst.has(Flag::Uni) });
                Ok(())
            }
            Control::BrxIdx => {
                let index = self.narrow(self.operand(inst, 0)?, ScalarType::U32)?;
                let Operand::Label(label) = self.operand(inst, 1)? else { return refuse("a table is expected") };
                self.table_fixes.push((self.kernel.code.len(), *label));
                self.emit(Op::BranchTable { index, first: 0, count: 0 });
                Ok(())
            }
            Control::Call => self.call(inst),
            Control::Ret if self.frame.is_some() => {
                self.emit(Op::Return);
                Ok(())
            }
            Control::Ret | Control::Exit => {
                self.emit(Op::Exit);
                Ok(())
            }
            Control::Trap => {
                self.emit(Op::Trap);
                Ok(())
            }
            Control::Brkpt | Control::Pmevent => {
                self.emit(Op::Nop);
                Ok(())
            }
            Control::Nanosleep => {
                self.emit(Op::Yield);
                Ok(())
            }
            Control::Setmaxnreg => {
                let Operand::Imm(count) = self.operand(inst, 0)? else { return refuse("a constant is expected") };
                let count = count.int_bits().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
                self.kernel.reallocates = true;
                self.emit(Op::SetRegisters { count, inc: inst.has(Flag::Inc) });
                Ok(())
            }
        }
    }

    pub(super) fn synchronization(&mut self, op: Synchronization, inst: &Source) -> Lowered<()> {
        match op {
            Synchronization::Bar | Synchronization::Barrier => {
                let aligned = op == Synchronization::Bar || inst.has(Flag::Aligned);
                self.barrier(inst, aligned)
            }
            Synchronization::BarWarp => {
                let members = self.narrow(self.operand(inst, 0)?, ScalarType::B32)?;
                self.emit(Op::Collective { op: Collective::Barrier, members });
                Ok(())
            }
            Synchronization::Membar | Synchronization::Fence => {
                self.own_fence(inst, op == Synchronization::Membar);
                Ok(())
            }
            // Tensor maps are not edited by kernels, so that only bulk copies tell proxies apart.
            Synchronization::FenceProxy if inst.has(Flag::Async) => {
                let space = inst.space().map(StateSpace::base);
                let (shared, global) = (space != Some(StateSpace::Global), space != Some(StateSpace::Shared));
                self.emit(Op::ProxyFence { shared, global });
                Ok(())
            }
            Synchronization::FenceProxy => {
                self.emit(Op::Nop);
                Ok(())
            }
            // A launch here starts after the one before it has ended, so that others need no permission.
            Synchronization::Griddepcontrol => {
                self.emit(if inst.has(Flag::Wait) { Op::AwaitGrids } else { Op::Nop });
                Ok(())
            }
            Synchronization::BarrierCluster => {
                self.kernel.clusters = true;
                let orders = inst.find::<Semantics>() != Some(Semantics::Relaxed);
                let (arrive, aligned) = (inst.has(Flag::Arrive), inst.has(Flag::Aligned));
                self.emit(Op::ClusterBarrier(ClusterBarrierOp { arrive, aligned, orders }));
                Ok(())
            }
            Synchronization::MbarrierInit
            | Synchronization::MbarrierInval
            | Synchronization::MbarrierExpectTx
            | Synchronization::MbarrierCompleteTx
            | Synchronization::MbarrierArrive
            | Synchronization::MbarrierArriveDrop
            | Synchronization::MbarrierTestWait
            | Synchronization::MbarrierTryWait
            | Synchronization::MbarrierPendingCount => self.mbarriers(op, inst),
        }
    }

    fn barrier(&mut self, inst: &Source, aligned: bool) -> Lowered<()> {
        let reduces = inst.has(Flag::Red);
        let first = usize::from(reduces);
        let id = self.narrow(self.operand(inst, first)?, ScalarType::U32)?;
        // The thread count is optional before the predicate.
        let last = inst.operands.len() - usize::from(reduces);
        let threads =
            if last > first + 1 { Some(self.narrow(self.operand(inst, first + 1)?, ScalarType::U32)?) } else { None };
        let kind = if inst.has(Flag::Arrive) {
            BarrierKind::Arrive
        } else if !reduces {
            BarrierKind::Sync
        } else {
            let source = self.pred(self.operand(inst, last)?)?;
            let d = self.operand(inst, 0)?;
            if inst.has(Flag::Popc) {
                BarrierKind::Popc(self.narrow(d, ScalarType::U32)?, source)
            } else {
                let Some(d) = self.pred_result(d)? else { return refuse("a predicate register is expected") };
                if inst.has(Flag::And) { BarrierKind::All(d, source) } else { BarrierKind::Any(d, source) }
            }
        };
        self.emit(Op::Barrier(Barrier { id, known: None, threads, aligned, kind }));
        Ok(())
    }

    pub(super) fn warp(&mut self, op: Warp, inst: &Source) -> Lowered<()> {
        if op == Warp::Activemask {
            let d = self.narrow(self.operand(inst, 0)?, ScalarType::B32)?;
            self.emit(Op::Activemask { d });
            return Ok(());
        }
        let members = self.narrow(self.operand(inst, inst.operands.len().saturating_sub(1))?, ScalarType::B32)?;
        let b32 = ScalarType::B32;
        let (first, second) = match self.operand(inst, 0)? {
            Operand::Pair(d, p) => ((**d).clone(), Some((**p).clone())),
            other => (other.clone(), None),
        };
        let collective = match op {
            Warp::Shfl => {
                let mode = match inst.find::<ShuffleMode>() {
                    Some(ShuffleMode::Up) => Shuffle::Up,
                    Some(ShuffleMode::Down) => Shuffle::Down,
                    Some(ShuffleMode::Bfly) => Shuffle::Bfly,
                    Some(ShuffleMode::Idx) => Shuffle::Idx,
                    None => return refuse("the mode is missing"),
                };
                let d = match first {
                    Operand::Sink => self.drop_narrow()?,
                    other => self.narrow(&other, b32)?,
                };
                let p = second.map_or(Ok(None), |p| self.pred_result(&p))?;
                let a = self.narrow(self.operand(inst, 1)?, b32)?;
                let b = self.narrow(self.operand(inst, 2)?, b32)?;
                let c = self.narrow(self.operand(inst, 3)?, b32)?;
                Collective::Shfl { mode, d, p, a, b, c }
            }
            Warp::Vote => {
                let source = self.pred(self.operand(inst, 1)?)?;
                let vote = match inst.find::<VoteMode>() {
                    Some(VoteMode::Ballot) => Vote::Ballot(self.narrow(&first, b32)?),
                    mode => {
                        let Some(d) = self.pred_result(&first)? else {
                            return refuse("a predicate register is expected");
                        };
                        match mode {
                            Some(VoteMode::All) => Vote::All(d),
                            Some(VoteMode::Any) => Vote::Any(d),
                            Some(VoteMode::Uni) => Vote::Uni(d),
                            _ => return refuse("the mode is missing"),
                        }
                    }
                };
                Collective::Vote(vote, source)
            }
            Warp::Match => {
                let a = self.value(self.operand(inst, 1)?, self.ty(inst, 0)?)?;
                if inst.has(Flag::Any) {
                    Collective::MatchAny { d: self.narrow(&first, b32)?, a }
                } else {
                    let d = if first == Operand::Sink { None } else { Some(self.narrow(&first, b32)?) };
                    let p = second.map_or(Ok(None), |p| self.pred_result(&p))?;
                    Collective::MatchAll { d, p, a }
                }
            }
            Warp::Redux => {
                let signed = self.ty(inst, 0)?.is_signed();
                let op = match (inst.find::<AtomicOp>(), signed) {
                    (Some(AtomicOp::Add), _) => Redux::Add,
                    (Some(AtomicOp::Min), true) => Redux::MinS,
                    (Some(AtomicOp::Min), false) => Redux::MinU,
                    (Some(AtomicOp::Max), true) => Redux::MaxS,
                    (Some(AtomicOp::Max), false) => Redux::MaxU,
                    (Some(AtomicOp::And), _) => Redux::And,
                    (Some(AtomicOp::Or), _) => Redux::Or,
                    (Some(AtomicOp::Xor), _) => Redux::Xor,
                    _ => return refuse("the operation is missing"),
                };
                Collective::Redux { op, d: self.narrow(&first, b32)?, a: self.narrow(self.operand(inst, 1)?, b32)? }
            }
            Warp::Elect => {
                let d = if first == Operand::Sink { None } else { Some(self.narrow(&first, b32)?) };
                let p = second.map_or(Ok(None), |p| self.pred_result(&p))?;
                let Some(p) = p else { return refuse("a predicate register is expected") };
                Collective::Elect { d, p }
            }
            Warp::Activemask => return refuse("not a meeting of lanes"),
        };
        self.emit(Op::Collective { op: collective, members });
        Ok(())
    }

    /// A row for a result that the program drops.
    fn drop_narrow(&mut self) -> Lowered<u32> {
        match self.slots.temporary(32) {
            Some(Slot::Narrow(slot)) => Ok(slot),
            _ => refuse("no room for a register"),
        }
    }
}
