//! Which operations only compute registers from registers, and which row they write.

use super::{FastCvt, Op, Slot};

/// The operations that only compute registers from registers, in every lane by itself, in parts that are compiled apart
/// from each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Integers of at most 32 bits, moves and selections.
    Narrow,
    /// Integers of 64 bits, moves, selections and addresses.
    Wide,
    /// Floats of at most 32 bits.
    Float,
    /// Floats of 64 bits.
    WideFloat,
    /// What makes predicates, or values of comparisons.
    Test,
    /// Conversions, approximations and what has carries or is computed lane by lane.
    Other,
}

impl Part {
    /// How many there are.
    pub const COUNT: usize = 6;
}

impl Op {
    /// The part that it belongs to; none for operations that do more than compute registers.
    pub fn part(&self) -> Option<Part> {
        Some(match self {
            Op::Mov { .. }
            | Op::Int1 { .. }
            | Op::Int2 { .. }
            | Op::Mad { .. }
            | Op::MulWide16 { .. }
            | Op::Lop3 { .. }
            | Op::Selp { .. } => Part::Narrow,
            Op::MovWide { .. }
            | Op::Int1Wide { .. }
            | Op::Int2Wide { .. }
            | Op::CountWide { .. }
            | Op::ShiftWide { .. }
            | Op::MadLoWide { .. }
            | Op::MulWide { .. }
            | Op::SelpWide { .. }
            | Op::Cvta { .. }
            | Op::Isspacep { .. } => Part::Wide,
            Op::Float1 { .. } | Op::Float2 { .. } | Op::Fma { .. } => Part::Float,
            Op::Float1Wide { .. } | Op::Float2Wide { .. } | Op::FmaWide { .. } | Op::ApproxWide { .. } => {
                Part::WideFloat
            }
            Op::MovPred { .. }
            | Op::Setp { .. }
            | Op::SetpPacked { .. }
            | Op::Set { .. }
            | Op::SetPacked { .. }
            | Op::Testp { .. }
            | Op::PredLogic { .. } => Part::Test,
            Op::Carry { .. }
            | Op::MadCarry { .. }
            | Op::Lane { .. }
            | Op::Approx { .. }
            | Op::Cvt { .. }
            | Op::CvtFast { .. } => Part::Other,
            Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::CheckInit { .. }
            | Op::MarkInit { .. }
            | Op::FlowInit { .. }
            | Op::LoadedInit { .. }
            | Op::StoredInit { .. }
            | Op::FlowSelect { .. }
            | Op::Clock { .. }
            | Op::Load(_)
            | Op::Store(_)
            | Op::Atomic(_)
            | Op::Fence(_)
            | Op::ProxyFence { .. }
            | Op::Bulk { .. }
            | Op::CommitBulk
            | Op::WaitBulk { .. }
            | Op::Activemask { .. }
            | Op::ThreadCopy(_)
            | Op::CommitCopies
            | Op::WaitCopies { .. }
            | Op::Mbarrier(_)
            | Op::Mapa(_)
            | Op::ClusterBarrier(_)
            | Op::SetRegisters { .. }
            | Op::Mma(_)
            | Op::Wgmma { .. }
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait { .. }
            | Op::MatrixTouch { .. }
            | Op::MatrixAccess(_)
            | Op::MatrixTranspose { .. }
            | Op::FragmentAccess(_)
            | Op::Collective { .. }
            | Op::Barrier(_)
            | Op::Branch { .. }
            | Op::BranchTable { .. }
            | Op::Call { .. }
            | Op::Return
            | Op::Alloca { .. }
            | Op::StackTop { .. }
            | Op::Exit
            | Op::Trap
            | Op::Nop
            | Op::AwaitGrids
            | Op::Yield => return None,
        })
    }

    /// The row that a register instruction computes for all lanes, whichever take part. The others write lane by lane,
    /// or predicates.
    pub fn row(&self) -> Option<Slot> {
        match *self {
            Op::Mov { d, .. }
            | Op::Int1 { d, .. }
            | Op::Int2 { d, .. }
            | Op::CountWide { d, .. }
            | Op::Mad { d, .. }
            | Op::MulWide16 { d, .. }
            | Op::Lop3 { d, .. }
            | Op::Float1 { d, .. }
            | Op::Float2 { d, .. }
            | Op::Fma { d, .. }
            | Op::Approx { d, .. }
            | Op::Set { d, .. }
            | Op::SetPacked { d, .. }
            | Op::Selp { d, .. } => Some(Slot::Narrow(d)),
            Op::MovWide { d, .. }
            | Op::Int1Wide { d, .. }
            | Op::Int2Wide { d, .. }
            | Op::ShiftWide { d, .. }
            | Op::MadLoWide { d, .. }
            | Op::MulWide { d, .. }
            | Op::Float1Wide { d, .. }
            | Op::Float2Wide { d, .. }
            | Op::FmaWide { d, .. }
            | Op::SelpWide { d, .. } => Some(Slot::Wide(d)),
            Op::Lane { d, .. } => Some(d),
            Op::CvtFast { cvt: FastCvt::ZeroExtend | FastCvt::SignExtend, d, .. } => Some(Slot::Wide(d)),
            Op::CvtFast { d, .. } => Some(Slot::Narrow(d)),
            _ => None,
        }
    }
}
