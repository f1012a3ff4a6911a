//! The unit that each operation of the machine needs.

use super::nest::Nest;
use super::unit::Unit;

/// An operation that is run by a number of threads together, or by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A store of one element: one thread writes it.
    Store,
    /// An asynchronous copy of up to 16 bytes.
    CopyAsync,
    /// A loaded box of a tensor, or a run of memory: one elected thread asks for it.
    LoadTile,
    /// A loaded box that several blocks get.
    LoadTileMulticast {
        /// Blocks that get it.
        blocks: u64,
        /// From one of them to the next.
        stride: u64,
    },
    /// A stored box of a tensor, or a run of memory.
    StoreTile,
    /// Loads of matrix fragments.
    LoadMatrix,
    /// A product of fragments of a warp.
    Mma,
    /// A product of tiles in shared memory, by four warps.
    Wgmma,
    /// A change of the registers of each thread.
    SetRegisters,
    /// An exchange between lanes.
    Shuffle,
    /// An exchange between the two lanes whose numbers differ in one digit, whose mask names just these.
    ShuffleXor {
        /// The distance between them.
        distance: u64,
    },
    /// The election of a lane.
    Elect,
    /// A barrier of a warp.
    SyncWarp,
    /// A barrier of a warpgroup.
    SyncWarpgroup,
    /// A barrier of warps of a block, any of them.
    SyncWarps,
    /// A barrier of a block.
    SyncBlock,
    /// A barrier of a cluster.
    SyncCluster,
    /// The initialisation of a barrier in shared memory.
    InitBarrier,
    /// The wait for a barrier in shared memory.
    WaitBarrier,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What the instruction is called, with the section of the PTX manual.
    pub instruction: &'static str,
    /// The unit; none for numbers that no launch has.
    pub unit: Option<Unit>,
}

impl Operation {
    /// Its row.
    pub fn demand(self) -> Demand {
        let multicast = |blocks, stride| Unit::warp_strided(stride)?.scaled(blocks).ok();
        let pair = |distance| Unit::threads_strided(1, distance)?.scaled(2).ok();
        let (instruction, unit) = match self {
            Self::Store => ("st (9.7.9.11)", Some(Unit::thread())),
            Self::CopyAsync => ("cp.async (9.7.9.25.3.1)", Some(Unit::thread())),
            Self::LoadTile => ("cp.async.bulk (9.7.9.25.4.1, 9.7.9.25.5.2)", Some(Unit::warp())),
            Self::LoadTileMulticast { blocks, stride } => {
                ("cp.async.bulk.tensor.multicast::cluster (9.7.9.25.5.2)", multicast(blocks, stride))
            }
            Self::StoreTile => ("cp.async.bulk.global (9.7.9.25.4.1, 9.7.9.25.5.2)", Some(Unit::warp())),
            Self::LoadMatrix => ("ldmatrix, stmatrix (9.7.14.5.15, 9.7.14.5.16)", Some(Unit::warp())),
            Self::Mma => ("mma.sync (9.7.14.5.14)", Some(Unit::warp())),
            Self::Wgmma => ("wgmma.mma_async (9.7.15.5.2)", Some(Unit::warpgroup())),
            Self::SetRegisters => ("setmaxnreg (9.7.19.5)", Some(Unit::warpgroup())),
            Self::Shuffle => ("shfl.sync (9.7.9.6)", Some(Unit::warp())),
            Self::ShuffleXor { distance } => ("shfl.sync.bfly (9.7.9.6)", pair(distance)),
            Self::Elect => ("elect.sync (9.7.13.15)", Some(Unit::warp())),
            Self::SyncWarp => ("bar.warp.sync (9.7.13.2)", Some(Unit::warp())),
            Self::SyncWarpgroup => ("bar.sync a, 128 (9.7.13.1)", Some(Unit::warpgroup())),
            Self::SyncWarps => ("bar.sync a, n (9.7.13.1)", Some(Unit::agnostic_warps())),
            Self::SyncBlock => ("bar.sync 0 (9.7.13.1)", Some(Unit::cta())),
            Self::SyncCluster => ("barrier.cluster (9.7.13.3)", Some(Unit::cluster())),
            Self::InitBarrier => ("mbarrier.init (9.7.13.16.9)", Some(Unit::thread())),
            Self::WaitBarrier => ("mbarrier.try_wait (9.7.13.16.16)", Some(Unit::agnostic_sub_cta())),
        };
        Demand { instruction, unit }
    }
}

/// The barrier that all threads of a place can meet at, in every iteration; none if the machine has none for them.
pub fn barrier(nest: &Nest) -> Option<Operation> {
    use Operation::{SyncBlock, SyncCluster, SyncWarp, SyncWarpgroup, SyncWarps};
    let fits = |operation: &Operation| operation.demand().unit.is_some_and(|unit| nest.matches(&unit) == Ok(true));
    [SyncWarp, SyncWarpgroup, SyncBlock, SyncWarps, SyncCluster].into_iter().find(fits)
}
