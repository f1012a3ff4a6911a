//! Asynchronous copies by threads, and mbarriers.

use tilewright_ptx::isa::{AsyncCopy, Synchronization};
use tilewright_ptx::{Flag, Inst as Source, Operand, ScalarType, Semantics, StateSpace};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{MbarrierFn, MbarrierOp, Op, Slot, SourceBytes, Space, ThreadCopy};

impl Lowering<'_> {
    pub(super) fn async_copy(&mut self, copy: AsyncCopy, inst: &Source) -> Lowered<()> {
        match copy {
            AsyncCopy::CpAsync => self.cp_async(inst),
            AsyncCopy::CpAsyncCommitGroup => {
                self.emit(Op::CommitCopies);
                Ok(())
            }
            AsyncCopy::CpAsyncWaitGroup => {
                let Operand::Imm(count) = self.operand(inst, 0)? else { return refuse("a constant is expected") };
                let keep = count.int_bits().map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX));
                self.emit(Op::WaitCopies { keep: Some(keep) });
                Ok(())
            }
            AsyncCopy::CpAsyncWaitAll => {
                self.emit(Op::WaitCopies { keep: None });
                Ok(())
            }
            AsyncCopy::CpAsyncMbarrierArrive => {
                self.mbarrier(inst, 0, MbarrierFn::ArriveAfterCopies { noinc: inst.has(Flag::Noinc) })
            }
            AsyncCopy::CpAsyncBulk
            | AsyncCopy::CpReduceAsyncBulk
            | AsyncCopy::CpAsyncBulkPrefetch
            | AsyncCopy::CpAsyncBulkTensor
            | AsyncCopy::CpReduceAsyncBulkTensor
            | AsyncCopy::CpAsyncBulkPrefetchTensor
            | AsyncCopy::CpAsyncBulkCommitGroup
            | AsyncCopy::CpAsyncBulkWaitGroup
            | AsyncCopy::TensormapReplace
            | AsyncCopy::TensormapCpFenceproxy => self.bulk(copy, inst),
            AsyncCopy::StAsync | AsyncCopy::RedAsync => self.put(copy, inst),
        }
    }

    fn cp_async(&mut self, inst: &Source) -> Lowered<()> {
        let to = self.address(self.operand(inst, 0)?)?;
        let from = self.address(self.operand(inst, 1)?)?;
        let Operand::Imm(bytes) = self.operand(inst, 2)? else { return refuse("the size must be a constant") };
        let bytes = bytes.int_bits().unwrap_or(0) as u8;
        // The source size or the predicate may be left out; a cache policy comes last and changes nothing.
        let hinted = usize::from(inst.has(Flag::L2CacheHint));
        let source = match inst.operands.get(3) {
            Some(operand) if inst.operands.len() - hinted > 3 => {
                let is_pred = inst.form().operands.iter().any(|spec| {
                    spec.name == "s" && inst.form().operand_type(spec, &inst.modifiers) == Some(ScalarType::Pred)
                });
                if is_pred {
                    SourceBytes::Ignore(self.pred(operand)?)
                } else {
                    SourceBytes::Some(self.narrow(operand, ScalarType::U32)?)
                }
            }
            _ => SourceBytes::All,
        };
        let mut slots = Vec::new();
        for _ in 0..4 {
            let Some(slot) = self.slots.temporary(32) else { return refuse("no room for a register") };
            slots.push(Some(slot));
        }
        let data = self.push(slots);
        self.emit(Op::ThreadCopy(ThreadCopy { to, from, bytes, source, data }));
        Ok(())
    }

    /// An instruction on the mbarrier whose address is operand `at`.
    fn mbarrier(&mut self, inst: &Source, at: usize, f: MbarrierFn) -> Lowered<()> {
        let operand = self.operand(inst, at)?;
        let generic = match self.space(inst, operand)? {
            Space::Shared | Space::Cluster => false,
            Space::Generic => true,
            _ => return refuse("an mbarrier is in shared memory"),
        };
        let address = self.address(operand)?;
        let cluster = inst.space() == Some(StateSpace::SharedCluster);
        self.emit(Op::Mbarrier(MbarrierOp { address, generic, cluster, f }));
        Ok(())
    }

    pub(super) fn mbarriers(&mut self, op: Synchronization, inst: &Source) -> Lowered<()> {
        let u32 = ScalarType::U32;
        let relaxed = matches!(inst.find::<Semantics>(), Some(Semantics::Relaxed));
        match op {
            Synchronization::MbarrierInit => {
                let count = self.narrow(self.operand(inst, 1)?, u32)?;
                self.mbarrier(inst, 0, MbarrierFn::Init(count))
            }
            Synchronization::MbarrierInval => self.mbarrier(inst, 0, MbarrierFn::Inval),
            Synchronization::MbarrierExpectTx | Synchronization::MbarrierCompleteTx => {
                let bytes = self.narrow(self.operand(inst, 1)?, u32)?;
                let complete = op == Synchronization::MbarrierCompleteTx;
                self.mbarrier(inst, 0, MbarrierFn::Transact { bytes, complete })
            }
            Synchronization::MbarrierArrive | Synchronization::MbarrierArriveDrop => {
                let d = match self.operand(inst, 0)? {
                    Operand::Sink => None,
                    operand => Some(self.wide(operand, ScalarType::B64)?),
                };
                let value = match inst.operands.get(2) {
                    Some(operand) => Some(self.narrow(operand, u32)?),
                    None => None,
                };
                let expects = inst.has(Flag::ExpectTx);
                let f = MbarrierFn::Arrive {
                    d,
                    count: if expects { None } else { value },
                    expect: if expects { value } else { None },
                    drop: op == Synchronization::MbarrierArriveDrop,
                    no_complete: inst.has(Flag::NoComplete),
                    release: !relaxed,
                };
                self.mbarrier(inst, 1, f)
            }
            Synchronization::MbarrierTestWait | Synchronization::MbarrierTryWait => {
                let Some(d) = self.pred_result(self.operand(inst, 0)?)? else {
                    return refuse("a predicate register is expected");
                };
                let phase = match inst.has(Flag::Parity) {
                    true => Slot::Narrow(self.narrow(self.operand(inst, 2)?, u32)?),
                    false => Slot::Wide(self.wide(self.operand(inst, 2)?, ScalarType::B64)?),
                };
                let spurious = op == Synchronization::MbarrierTryWait;
                self.mbarrier(inst, 1, MbarrierFn::Wait { d, phase, acquire: !relaxed, spurious })
            }
            Synchronization::MbarrierPendingCount => {
                let d = self.narrow(self.operand(inst, 0)?, u32)?;
                let a = self.wide(self.operand(inst, 1)?, ScalarType::B64)?;
                // A state holds the pending count in its lower half.
                self.emit(Op::CvtFast { cvt: crate::decode::op::FastCvt::Truncate, d, a, b: a });
                Ok(())
            }
            _ => refuse("not an mbarrier instruction"),
        }
    }
}
