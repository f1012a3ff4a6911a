//! What the warps of a cluster share while they run, and what all CTAs of a launch share: program, memory, shadow,
//! barriers, counters, findings. Without clusters every CTA is one of its own. Warps are numbered through the cluster,
//! CTA by CTA, and so are the words of shared memory: see `exec::cluster`. Fences and what they order are in `order`,
//! reports in `finding`.

mod finding;
mod order;

pub(crate) use finding::{FINDINGS, Facts};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tilewright_kernel::tensor_map::Swizzle;
use tilewright_ptx::SpecialReg;

use super::copy::Copies;
use super::host::Host;
use crate::bulk::flight::Flights;
use crate::cluster::{ClusterBarrier, Peers};
use crate::counters::Counters;
use crate::decode::Kernel;
use crate::launch::Options;
use crate::mbarrier::Mbarriers;
use crate::memory::device::{Allocation, Memory};
use crate::memory::heap::Heap;
use crate::memory::region::Regions;
use crate::memory::undo::Undo;
use crate::registers::Registers;
use crate::report::{Finding, Kind};
use crate::shadow::cell::Cells;
use crate::shadow::clock::Clocks;
use crate::shadow::cross::Cross;
use crate::shadow::grid::{Grid, View};
use crate::shadow::line::Lines;
use crate::shadow::order::Order;
use crate::sync::Barriers;
use crate::trace::Recorder;
use crate::warpgroup::Warpgroups;

/// Bytes that a launch may print: the default of `cudaLimitPrintfFifoSize`. What comes after is dropped.
pub(crate) const MOST_PRINTED: usize = 1 << 20;

/// The launch.
pub(crate) struct Cx<'a> {
    pub kernel: &'a Kernel,
    pub memory: &'a Memory,
    pub options: &'a Options,
    /// The host's instructions that may be used.
    pub host: Host,
    /// Parameter bytes as words.
    pub params: Vec<u32>,
    /// The module's constants as words.
    pub constants: Vec<u32>,
    pub regions: Regions,
    /// The device's heap, if a kernel has used it.
    pub heap: Option<Arc<Heap>>,
    pub allocations: Vec<Arc<Allocation>>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub dynamic_shared: u32,
    /// CTAs of a cluster in x, y, z.
    pub cluster: [u32; 3],
    /// Their product.
    pub ctas: usize,
    /// Whether the launch or the kernel names it.
    pub explicit_cluster: bool,
    /// See [`crate::Launch::dependent`].
    pub dependent: bool,
    /// What to take back if the launch has to run again.
    pub undo: Option<Undo>,
    /// Whether a value that nobody made may be one to follow: see [`Kernel::follows`].
    pub may_follow: bool,
    /// Set when there was one: the launch has to run again.
    pub follow: AtomicBool,
    /// Between-CTA races, if tracked and if nothing orders CTAs.
    pub cross: Option<Cross>,
    /// The same, if something may order them; such kernels run on one host thread.
    pub grid_order: Option<Mutex<Grid>>,
    /// Bytes that the stacks of calls take.
    pub stacks: AtomicU64,
    /// Warp instructions left for the whole launch.
    pub budget: AtomicU64,
    /// Set when a CTA found something: the others may stop, as the launch is run again.
    pub stop: AtomicBool,
}

impl Cx<'_> {
    /// Asks, where a value that nobody made is met, whether the launch will run again to follow it.
    pub fn wants_to_follow(&self) -> bool {
        if self.may_follow {
            self.follow.store(true, Ordering::Relaxed);
        }
        self.may_follow
    }
    pub fn threads(&self) -> u32 {
        self.block[0] * self.block[1] * self.block[2]
    }
    pub fn warps(&self) -> usize {
        self.threads().div_ceil(32) as usize
    }
    /// CTAs of a cluster.
    #[inline(always)]
    pub fn ctas(&self) -> usize {
        self.ctas
    }
    /// Clusters of the grid in x, y, z.
    pub fn clusters(&self) -> [u32; 3] {
        [0, 1, 2].map(|axis| self.grid[axis] / self.cluster[axis])
    }
    /// Bytes from the shared memory of a CTA to that of the next one of its cluster: patterns of swizzles begin anew.
    pub fn stride(&self) -> u64 {
        u64::from(self.shared_bytes).next_multiple_of(1024)
    }
    /// Bytes of the shared memory of a cluster.
    pub fn all_shared(&self) -> u64 {
        if self.ctas() == 1 { u64::from(self.shared_bytes) } else { self.stride() * self.ctas() as u64 }
    }
}

/// Why a warp stops for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Halt;

/// Executions of instructions. A warp runs straight through most of them, so that only the ends of such stretches are
/// counted: an entry says by how much the count of its instruction differs from that of the one before. Lanes that a
/// guard holds back are counted apart.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Count {
    warps: i64,
    lanes: i64,
    held: i64,
}

impl Count {
    /// Adds what another worker has counted.
    pub fn add(&mut self, other: &Count) {
        self.warps += other.warps;
        self.lanes += other.lanes;
        self.held += other.held;
    }

    /// Executions of each instruction: by warps, by lanes.
    pub fn totals(counts: &[Count]) -> impl Iterator<Item = (u64, u64)> {
        counts.iter().scan((0, 0), |(warps, lanes), count| {
            *warps += count.warps;
            *lanes += count.lanes;
            Some((*warps as u64, (*lanes - count.held) as u64))
        })
    }
}

/// The cluster.
pub(crate) struct Env<'a> {
    pub cx: &'a Cx<'a>,
    /// Number of the cluster.
    pub number: u64,
    /// The CTA that runs: its index in the grid, and its rank in the cluster.
    pub cta: [u32; 3],
    pub rank: usize,
    /// The shared memory of all CTAs, one after the other.
    pub shared: Vec<u32>,
    /// Four bits a word: initialised bytes. Above them those that are in no variable: see [`Self::in_gap`].
    pub shared_initialised: Vec<u8>,
    pub cells: Cells,
    pub clocks: Clocks,
    pub lines: Lines,
    pub order: Order,
    /// Of each CTA.
    pub barriers: Vec<Barriers>,
    pub registers: Vec<Registers>,
    pub warpgroups: Vec<Warpgroups>,
    /// The agent that counts the groups of products of each warp that has any.
    pub product_agents: Vec<Option<usize>>,
    /// How the last bulk copy permuted each 16-byte chunk of shared memory, if it did, in kernels that ask.
    pub swizzles: Vec<Option<Swizzle>>,
    pub cluster: ClusterBarrier,
    pub peers: Peers,
    pub mbarriers: Mbarriers,
    /// Copies on their way.
    pub copies: Copies,
    /// Bulk copies that not everybody knows to be over.
    pub bulk: Flights,
    /// Draws made, for the next one.
    draws: u64,
    /// Warp instructions executed by the cluster, which is also its clock.
    pub time: u64,
    /// What the cluster has released to others and learnt from them.
    pub view: View,
    /// The warp that runs.
    pub warp: u32,
    pub counts: Vec<Count>,
    pub counters: Counters,
    /// What the kernel has printed.
    pub printed: Vec<u8>,
    pub findings: Vec<Finding>,
    /// Instruction of each finding and of its other side.
    keys: Vec<(Kind, u32, u32)>,
    pub dropped: u64,
    /// The trace of the cluster, if one is made.
    pub trace: Option<Recorder>,
    /// Region hit last by each instruction.
    pub hints: Vec<u32>,
}

impl<'a> Env<'a> {
    pub fn new(cx: &'a Cx<'a>) -> Self {
        let length = cx.kernel.code.len();
        Env {
            cx,
            number: 0,
            cta: [0; 3],
            rank: 0,
            shared: Vec::new(),
            shared_initialised: Vec::new(),
            cells: Cells::default(),
            clocks: Clocks::default(),
            lines: Lines::default(),
            order: Order::default(),
            barriers: Vec::new(),
            registers: Vec::new(),
            warpgroups: Vec::new(),
            product_agents: Vec::new(),
            swizzles: Vec::new(),
            cluster: ClusterBarrier::default(),
            peers: Peers::default(),
            mbarriers: Mbarriers::default(),
            copies: Copies::default(),
            bulk: Flights::default(),
            draws: 0,
            time: 0,
            view: View::default(),
            warp: 0,
            counts: vec![Count::default(); length + 1],
            counters: Counters::default(),
            printed: Vec::new(),
            findings: Vec::new(),
            keys: Vec::new(),
            dropped: 0,
            trace: None,
            hints: vec![0; length],
        }
    }

    /// Prepares for a cluster.
    pub fn start(&mut self, number: u64) {
        let (ctas, warps) = (self.cx.ctas(), self.cx.warps());
        let all = ctas * warps;
        self.number = number;
        (self.rank, self.cta) = (0, self.cta_at(number, 0));
        let words = self.cx.all_shared().div_ceil(4) as usize;
        self.shared.clear();
        self.shared.resize(words, crate::memory::device::POISON);
        self.shared_initialised.clear();
        self.shared_initialised.resize(words, 0);
        let reserved = self.cx.kernel.reserved_shared as usize / 4;
        // To fill nothing at the dangling address of an empty vector takes processors long: a masked store to memory
        // that is not there.
        if reserved > 0 {
            for start in (0..ctas).map(|rank| rank * self.cx.stride() as usize / 4) {
                self.shared[start..][..reserved].fill(0);
                self.shared_initialised[start..][..reserved].fill(0xf);
            }
        }
        for gap in &self.cx.kernel.shared_gaps {
            for start in (0..ctas as u64).map(|rank| rank * self.cx.stride()) {
                for at in start + gap.start..start + gap.end {
                    self.shared_initialised[at as usize / 4] |= 0x10 << (at % 4);
                }
            }
        }
        self.cells.reset(if self.cx.options.sanitizers.races { words } else { 0 });
        let (kernel, tracked) = (self.cx.kernel, self.cx.options.sanitizers.races);
        self.clocks.reset(all, tracked, !kernel.bulks.is_empty() || kernel.warpgroups);
        self.lines.reset();
        self.order.reset(all);
        self.barriers.resize_with(ctas, Barriers::default);
        self.barriers.iter_mut().enumerate().for_each(|(rank, barriers)| barriers.reset(warps, rank * warps));
        self.mbarriers.reset(all);
        self.copies.reset(all);
        self.bulk.reset();
        self.draws = 0;
        self.time = 0;
        if self.cx.grid_order.is_some() {
            self.view.reset(number, all);
        }
        self.start_cluster();
    }

    /// Whether one of some bytes of a word of shared memory is in no variable, but in the room between two.
    pub fn in_gap(&self, word: usize, bytes: u8) -> bool {
        self.shared_initialised[word] >> 4 & bytes != 0
    }

    /// A fragment of this many lanes has executed the instructions from `start` up to, but not including, `end`.
    #[inline(always)]
    pub fn ran(&mut self, start: u32, end: u32, lanes: u32) {
        let lanes = i64::from(lanes);
        let first = &mut self.counts[start as usize];
        first.warps += 1;
        first.lanes += lanes;
        let last = &mut self.counts[end as usize];
        last.warps -= 1;
        last.lanes -= lanes;
    }

    /// A guard has kept this many lanes of a fragment from an instruction.
    #[inline(always)]
    pub fn held(&mut self, pc: u32, lanes: u32) {
        self.counts[pc as usize].held += i64::from(lanes);
    }

    /// Whether a special register differs between CTAs; such a one is equal in all lanes.
    pub fn depends_on_cta(special: SpecialReg) -> bool {
        use SpecialReg::*;
        matches!(special, CtaidX | CtaidY | CtaidZ | ClusteridX | ClusteridY | ClusteridZ | Smid)
    }

    /// A special register that does not change while the warp runs.
    pub fn special(&self, special: SpecialReg, warp: u32, lane: u32) -> u32 {
        use SpecialReg::*;
        let [x, y, _] = self.cx.block;
        let (rank, warp) = self.split(warp);
        let cta = if self.cx.ctas() == 1 { self.cta } else { self.cta_at(self.number, rank) };
        let thread = warp * 32 + lane;
        match special {
            TidX => thread % x,
            TidY => thread / x % y,
            TidZ => thread / x / y,
            NtidX => self.cx.block[0],
            NtidY => self.cx.block[1],
            NtidZ => self.cx.block[2],
            CtaidX => cta[0],
            CtaidY => cta[1],
            CtaidZ => cta[2],
            NctaidX => self.cx.grid[0],
            NctaidY => self.cx.grid[1],
            NctaidZ => self.cx.grid[2],
            ClusteridX => cta[0] / self.cx.cluster[0],
            ClusteridY => cta[1] / self.cx.cluster[1],
            ClusteridZ => cta[2] / self.cx.cluster[2],
            NclusteridX => self.cx.clusters()[0],
            NclusteridY => self.cx.clusters()[1],
            NclusteridZ => self.cx.clusters()[2],
            ClusterCtaidX => cta[0] % self.cx.cluster[0],
            ClusterCtaidY => cta[1] % self.cx.cluster[1],
            ClusterCtaidZ => cta[2] % self.cx.cluster[2],
            ClusterCtarank => rank as u32,
            ClusterNctaidX => self.cx.cluster[0],
            ClusterNctaidY => self.cx.cluster[1],
            ClusterNctaidZ => self.cx.cluster[2],
            ClusterNctarank => self.cx.ctas() as u32,
            IsExplicitCluster => u32::from(self.cx.explicit_cluster),
            Laneid => lane,
            Warpid => warp,
            Nwarpid => self.cx.warps() as u32,
            Smid => ((self.number * self.cx.ctas() as u64 + rank as u64) % 132) as u32,
            Nsmid => 132,
            LanemaskEq => 1 << lane,
            LanemaskLe => u32::MAX >> (31 - lane),
            LanemaskLt => !(u32::MAX << lane),
            LanemaskGe => u32::MAX << lane,
            LanemaskGt => !(u32::MAX >> (31 - lane)),
            TotalSmemSize | AggrSmemSize => self.cx.shared_bytes - self.cx.kernel.shared_spread,
            DynamicSmemSize => self.cx.dynamic_shared,
            // Given slots of another kind when they were decoded, refused there, or zero.
            _ => 0,
        }
    }

    /// A number that depends on the seed, the CTA and how many were drawn: what asynchronous work does when.
    pub fn draw(&mut self) -> u64 {
        self.draws += 1;
        let mut z = self.cx.options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ self.number.wrapping_mul(0xbf58_476d_1ce4_e5b9)
            ^ self.draws.wrapping_mul(0x94d0_49bb_1331_11eb);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Adds to what the kernel prints; whether there was room for it.
    pub fn print(&mut self, text: &[u8]) -> bool {
        let room = MOST_PRINTED.saturating_sub(self.printed.len());
        self.printed.extend_from_slice(&text[..text.len().min(room)]);
        text.len() <= room
    }

    /// A byte of global memory or of constants at a generic address, without any check: for messages.
    pub fn byte(&self, address: u64) -> Option<u8> {
        use crate::memory::region::{CONST_WINDOW, WINDOW};
        let word = match address.checked_sub(CONST_WINDOW) {
            Some(at) if at < WINDOW => *self.cx.constants.get(at as usize / 4)?,
            _ => {
                let at = self.cx.allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
                let allocation = &self.cx.allocations[at];
                let offset = address - allocation.base;
                if offset >= allocation.bytes {
                    return None;
                }
                allocation.load(offset as usize / 4)
            }
        };
        Some((word >> (8 * (address % 4))) as u8)
    }

    /// The index of a CTA of a cluster.
    pub fn cta_at(&self, number: u64, rank: usize) -> [u32; 3] {
        let [x, y, _] = self.cx.clusters().map(u64::from);
        let at = [number % x, number / x % y, number / x / y];
        let [width, height, _] = self.cx.cluster;
        let rank = rank as u32;
        let inside = [rank % width, rank / width % height, rank / width / height];
        [0, 1, 2].map(|axis| at[axis] as u32 * self.cx.cluster[axis] + inside[axis])
    }

    /// Rank of the CTA of a warp of the cluster, and its number in that CTA.
    #[inline(always)]
    pub fn split(&self, warp: u32) -> (usize, u32) {
        if self.cx.ctas() == 1 {
            return (0, warp);
        }
        let warps = self.cx.warps() as u32;
        ((warp / warps) as usize, warp % warps)
    }

    /// A warp is the one that runs from now on.
    #[inline(always)]
    pub fn select(&mut self, warp: u32) {
        self.warp = warp;
        if self.cx.ctas() > 1 {
            self.rank = self.split(warp).0;
            self.cta = self.cta_at(self.number, self.rank);
        }
    }
}
