//! How many blocks a multiprocessor holds, and what limits that.
//!
//! **Formula**: that of NVIDIA's `cuda_occupancy.h` for compute capabilities 8.0 to 9.0. Registers are given to warps,
//! in steps of 8 a thread, and each of the four quarters of a multiprocessor has its own quarter of them; shared memory
//! comes in steps of 128 bytes, and the system takes 1 KiB of each block. **Approximated**: all shared memory that a
//! multiprocessor can have is given to blocks (the driver decides), and clusters always find blocks that are free
//! together.

use tilewright_kernel::target::{REGISTER_FILE, REGISTER_STEP, WARP};

use super::gpu::Gpu;

/// Parts of a multiprocessor with registers and a scheduler of their own.
const QUARTERS: u32 = 4;
/// Bytes in whose multiples shared memory is given to blocks.
const SHARED_STEP: u32 = 128;
/// Bytes of shared memory that the system takes of each block.
const RESERVED: u32 = 1024;

/// What a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Threads.
    pub threads: u32,
    /// Bytes of shared memory, static and dynamic.
    pub shared: u32,
    /// Registers of a thread; none if nobody knows: then they limit nothing.
    pub registers: Option<u32>,
}

/// What can limit the blocks of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Its registers.
    Registers,
    /// Its shared memory.
    Shared,
    /// Its warps.
    Threads,
    /// The number of blocks itself.
    Blocks,
}

impl Limit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Registers => "registers",
            Self::Shared => "shared memory",
            Self::Threads => "threads",
            Self::Blocks => "blocks",
        }
    }
}

/// What a multiprocessor holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks; 0: not even one fits.
    pub blocks: u32,
    /// Warps of these blocks.
    pub warps: u32,
    /// Most warps of a multiprocessor.
    pub most_warps: u32,
    /// How many blocks each resource would allow.
    pub allows: Vec<(Limit, u32)>,
}

impl Occupancy {
    /// What a multiprocessor of a GPU holds of a block.
    pub fn of(gpu: &Gpu, block: Block) -> Self {
        let warps = block.threads.div_ceil(WARP).max(1);
        let most_warps = gpu.threads / WARP;
        let mut allows = Vec::new();
        if let Some(registers) = block.registers {
            allows.push((Limit::Registers, by_registers(registers, warps)));
        }
        let shared = (block.shared + RESERVED).next_multiple_of(SHARED_STEP);
        let fits = block.shared <= gpu.shared[1];
        allows.push((Limit::Shared, if fits { gpu.shared[0] / shared } else { 0 }));
        allows.push((Limit::Threads, most_warps / warps));
        allows.push((Limit::Blocks, gpu.blocks));
        let blocks = allows.iter().map(|(_, blocks)| *blocks).min().unwrap_or_default();
        Self { blocks, warps: blocks * warps, most_warps, allows }
    }

    /// What allows no more blocks.
    pub fn limits(&self) -> impl Iterator<Item = Limit> {
        self.allows.iter().filter(|(_, blocks)| *blocks == self.blocks).map(|(limit, _)| *limit)
    }
}

fn by_registers(registers: u32, warps: u32) -> u32 {
    let (file, step) = (REGISTER_FILE as u32, REGISTER_STEP as u32);
    let of_warp = registers.max(1).next_multiple_of(step) * WARP;
    // A launch is refused by what its warps would take if they were a multiple of four.
    if of_warp * warps.next_multiple_of(QUARTERS) > file {
        return 0;
    }
    (file / QUARTERS / of_warp) * QUARTERS / warps
}

/// How the blocks of a grid come to the multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waves {
    /// Blocks that run at one time if there are enough, in whole clusters.
    pub at_once: u32,
    /// What there is to do in units of what runs at one time: blocks, or tiles of a persistent launch.
    pub waves: f64,
    /// How full the last wave is, in 0..=1.
    pub last: f64,
}

impl Waves {
    /// `blocks` is the number of blocks, or of a persistent launch the tiles times the blocks of a cluster. None if not
    /// even one cluster fits.
    pub fn of(gpu: &Gpu, occupancy: &Occupancy, (blocks, cluster): (u32, u32)) -> Option<Self> {
        let cluster = cluster.max(1);
        let at_once = gpu.multiprocessors * occupancy.blocks / cluster * cluster;
        if at_once == 0 {
            return None;
        }
        let last = match blocks % at_once {
            0 if blocks > 0 => at_once,
            rest => rest,
        };
        let part = |blocks: u32| f64::from(blocks) / f64::from(at_once);
        Some(Self { at_once, waves: part(blocks), last: part(last) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(gpu: &str, threads: u32, shared: u32, registers: u32) -> (u32, u32, Vec<Limit>) {
        let block = Block { threads, shared, registers: Some(registers) };
        let found = Occupancy::of(Gpu::named(gpu).unwrap(), block);
        (found.blocks, found.warps, found.limits().collect())
    }

    /// Examples of NVIDIA's calculator, and its rules at their edges.
    #[test]
    fn blocks_are_those_of_the_calculator() {
        use Limit::{Blocks, Registers, Shared, Threads};
        assert_eq!(of("h200", 256, 0, 32), (8, 64, vec![Registers, Threads]));
        assert_eq!(of("h200", 64, 0, 16), (32, 64, vec![Threads, Blocks]));
        assert_eq!(of("h200", 32, 0, 16), (32, 32, vec![Blocks]));
        assert_eq!(of("rtx4090", 64, 0, 16), (24, 48, vec![Threads, Blocks]));
        // 168 registers: three warps of each quarter, twelve in all.
        assert_eq!(of("h200", 384, 229_440, 168), (1, 12, vec![Registers, Shared]));
        assert_eq!(of("l40s", 64, 16_888, 168), (5, 10, vec![Shared]));
        assert_eq!(of("l40s", 64, 16_888, 200), (4, 8, vec![Registers]));
        // Whole steps of 8 registers: 33 are 40, and a quarter holds 12 warps of these, not 15.
        assert_eq!(of("a100", 32, 0, 33).0, 32);
        assert_eq!(of("a100", 128, 0, 33), (12, 48, vec![Registers]));
        // With the system's 1 KiB: 16 KiB would fit ten times into 164 KiB without it.
        assert_eq!(of("a100", 32, 16 << 10, 32), (9, 9, vec![Shared]));
        assert_eq!(of("a100", 32, (16 << 10) - 1024, 32).0, 10);
        assert_eq!(of("a100", 32, (16 << 10) - 1023, 32).0, 10, "steps of 128 bytes leave room");
    }

    #[test]
    fn what_does_not_fit_fits_no_time() {
        assert_eq!(of("a100", 384, 229_440, 168).0, 0);
        assert_eq!(of("h200", 1024, 0, 72), (0, 0, vec![Limit::Registers]));
        // Five warps count as eight where a launch is judged.
        assert_eq!(of("h200", 9 * 32, 0, 176).0, 0);
        assert_eq!(of("h200", 8 * 32, 0, 176).0, 1);
    }

    #[test]
    fn waves_are_counted_in_whole_clusters() {
        let gpu = Gpu::named("h200").unwrap();
        let one = Occupancy::of(gpu, Block { threads: 384, shared: 229_440, registers: Some(168) });
        let waves = |blocks, cluster| Waves::of(gpu, &one, (blocks, cluster)).unwrap();
        assert_eq!(waves(132, 2), Waves { at_once: 132, waves: 1.0, last: 1.0 });
        assert_eq!(waves(165, 1), Waves { at_once: 132, waves: 1.25, last: 0.25 });
        assert_eq!(waves(64, 8), Waves { at_once: 128, waves: 0.5, last: 0.5 });
        assert_eq!(waves(0, 1), Waves { at_once: 132, waves: 0.0, last: 0.0 });
        let none = Occupancy::of(gpu, Block { threads: 1024, shared: 0, registers: Some(72) });
        assert_eq!(Waves::of(gpu, &none, (1, 1)), None);
    }
}
