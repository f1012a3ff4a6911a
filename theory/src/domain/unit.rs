//! Units: the parts of a launch that iterations are given to and that own instances.
//!
//! An instance in registers that stands around axes given to blocks of a cluster belongs to the cluster, so that these
//! axes are digits of a thread's number in the cluster. A stage in memory belongs to a block, and may be read by
//! stages of the cluster: its region is what one block reads.

use tilewright_kernel::target;

use super::{Binding, Part, PartOf};

/// [`target::WARP`], as an extent.
pub const WARP: i128 = target::WARP as i128;
/// [`target::WARPGROUP`], as an extent.
pub const WARPGROUP: i128 = target::WARPGROUP as i128;

/// A part of a launch, the whole of it first: each consists of whole ones of those after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// The whole launch.
    #[default]
    Grid,
    /// Blocks that run at one time and reach each other's shared memory; one block where the launch has no clusters.
    Cluster,
    /// A block.
    Cta,
    /// 128 threads of a block, the first of which has a number that 128 divides.
    Warpgroup,
    /// 32 threads of a block, the first of which has a number that 32 divides.
    Warp,
    /// A thread.
    Thread,
}

impl Unit {
    /// The unit that runs an iteration of an axis, or the largest one of which all that runs it is a part; none of a
    /// loop, whose iterations stay with one.
    pub const fn of(binding: Binding) -> Option<Self> {
        match binding {
            Binding::Grid => Some(Self::Cluster),
            Binding::Cta => Some(Self::Cta),
            Binding::Warpgroup => Some(Self::Warpgroup),
            Binding::Warp => Some(Self::Warp),
            Binding::Thread => Some(Self::Thread),
            Binding::Part(Part { of: PartOf::Warpgroup, scale: 1, .. }) => Some(Self::Warpgroup),
            Binding::Part(Part { of: PartOf::Warp, scale: 1, .. }) => Some(Self::Warp),
            // Threads that no unit of a kind has to itself.
            Binding::Part(_) => Some(Self::Thread),
            Binding::Serial | Binding::Unroll(_) | Binding::Vector => None,
        }
    }

    /// Its threads, if they are as many in every launch.
    pub const fn threads(self) -> Option<i128> {
        match self {
            Self::Grid | Self::Cluster | Self::Cta => None,
            Self::Warpgroup => Some(WARPGROUP),
            Self::Warp => Some(WARP),
            Self::Thread => Some(1),
        }
    }

    /// What it is called in prose.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Cluster => "cluster",
            Self::Cta => "block",
            Self::Warpgroup => "warpgroup",
            Self::Warp => "warp",
            Self::Thread => "thread",
        }
    }
}
