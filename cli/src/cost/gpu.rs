//! The GPUs that costs are told for: one row each. Peaks are those of data sheets, without sparsity; no clock was
//! measured.
//!
//! **Sources**: *guide* is the CUDA C++ programming guide: technical specifications by compute capability, and the
//! throughput of arithmetic instructions. *Sheet* is what is named at the row. Which rows were compared with theirs is
//! in docs/cost.md.

use tilewright_emulator::Factor;

/// A GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// How `--gpu` names it.
    pub name: &'static str,
    /// Its product name.
    pub title: &'static str,
    /// Where its numbers are from, beside the guide.
    pub sheet: &'static str,
    /// Compute capability.
    pub capability: (u8, u8),
    /// Multiprocessors (sheet).
    pub multiprocessors: u32,
    /// Clock of the multiprocessors under boost, in MHz (sheet).
    pub clock: f64,
    /// Bytes that device memory delivers, in 10⁹ a second (sheet).
    pub memory: f64,
    /// 10¹² operations of tensor cores in a second, by [`Factor::ALL`], with sums of f32, s32 or f64; none where the
    /// sheet has no number (sheet).
    pub tensor: [Option<f64>; 6],
    /// Instructions of f32, of f16 in pairs, and of f64 that a multiprocessor executes in a clock (guide).
    pub lanes: Lanes,
    /// Shared memory of a multiprocessor, and most of a block, in bytes (guide).
    pub shared: [u32; 2],
    /// Most threads of a multiprocessor (guide).
    pub threads: u32,
    /// Most blocks of a multiprocessor (guide).
    pub blocks: u32,
}

/// Results of a multiprocessor in a clock, once an instruction and a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lanes {
    /// f32.
    pub f32: f64,
    /// f16 and bf16, two at a time.
    pub half: f64,
    /// f64.
    pub f64: f64,
    /// Approximate functions.
    pub special: f64,
}

const AMPERE: Lanes = Lanes { f32: 64.0, half: 128.0, f64: 32.0, special: 16.0 };
const ADA: Lanes = Lanes { f32: 128.0, half: 64.0, f64: 2.0, special: 16.0 };
const HOPPER: Lanes = Lanes { f32: 128.0, half: 128.0, f64: 64.0, special: 16.0 };

/// Bytes of so many KiB.
const fn kib([all, block]: [u32; 2]) -> [u32; 2] {
    [all << 10, block << 10]
}

/// H100: H200 is the same with another memory.
pub const H100: Gpu = Gpu {
    name: "h100",
    title: "H100 SXM5",
    sheet: "NVIDIA H100 Tensor Core GPU Architecture, tables of peaks and of specifications; 1.98 GHz are what its 66.9 \
            TFLOP/s of f32 ask for, and its tensor cores are rated at 1.83 GHz",
    capability: (9, 0),
    multiprocessors: 132,
    clock: 1980.0,
    memory: 3350.0,
    tensor: [Some(989.4), Some(494.7), Some(1978.9), Some(1978.9), Some(66.9), None],
    lanes: HOPPER,
    shared: kib([228, 227]),
    threads: 2048,
    blocks: 32,
};

/// All GPUs.
pub const GPUS: [Gpu; 5] = [
    Gpu {
        name: "a100",
        title: "A100 SXM4 80 GB",
        sheet: "NVIDIA A100 Tensor Core GPU Architecture, tables of peaks and of specifications; data sheet of A100 80 GB",
        capability: (8, 0),
        multiprocessors: 108,
        clock: 1410.0,
        memory: 2039.0,
        tensor: [Some(312.0), Some(156.0), None, Some(624.0), Some(19.5), None],
        lanes: AMPERE,
        shared: kib([164, 163]),
        threads: 2048,
        blocks: 32,
    },
    H100,
    Gpu {
        name: "h200",
        title: "H200 SXM",
        sheet: "data sheet of H200: the multiprocessors of H100, and 4.8 TB/s",
        memory: 4800.0,
        ..H100
    },
    Gpu {
        name: "l40s",
        title: "L40S",
        sheet: "data sheet of L40S; NVIDIA Ada GPU Architecture",
        capability: (8, 9),
        multiprocessors: 142,
        clock: 2520.0,
        memory: 864.0,
        tensor: [Some(362.05), Some(183.0), Some(733.0), Some(733.0), None, None],
        lanes: ADA,
        shared: kib([100, 99]),
        threads: 1536,
        blocks: 24,
    },
    Gpu {
        name: "rtx4090",
        title: "GeForce RTX 4090",
        sheet: "NVIDIA Ada GPU Architecture, appendix A: tensor cores with sums of f32 have half of their rate",
        capability: (8, 9),
        multiprocessors: 128,
        clock: 2520.0,
        memory: 1008.0,
        tensor: [Some(165.2), Some(82.6), Some(330.3), Some(660.6), None, None],
        lanes: ADA,
        shared: kib([100, 99]),
        threads: 1536,
        blocks: 24,
    },
];

impl Gpu {
    /// The GPU with a name, whatever its case.
    ///
    /// # Errors
    /// There is none: the names there are.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let found = GPUS.iter().find(|gpu| gpu.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let known: Vec<&str> = GPUS.iter().map(|gpu| gpu.name).collect();
            format!("no GPU is known as `{}`; there are {}", name.escape_debug(), known.join(", "))
        })
    }

    /// Its compute capability as text, such as `9.0`.
    pub fn capability_text(&self) -> String {
        format!("{}.{}", self.capability.0, self.capability.1)
    }

    /// Bytes of device memory in a second.
    pub fn memory_rate(&self) -> f64 {
        self.memory * 1e9
    }

    /// What a multiprocessor does in a second of something it does so often in a clock.
    pub fn rate(&self, each_clock: f64) -> f64 {
        each_clock * self.clock * 1e6
    }

    /// Operations of one multiprocessor's tensor cores in a second; none without a number.
    pub fn tensor_rate(&self, factor: Factor) -> Option<f64> {
        Some(self.tensor[factor as usize]? * 1e12 / f64::from(self.multiprocessors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peaks of f32 that the sheets have, which no row repeats: they follow from multiprocessors, lanes and clock.
    #[test]
    fn rows_agree_with_their_sheets() {
        let sheets = [("a100", 19.5), ("h100", 66.9), ("h200", 66.9), ("l40s", 91.6), ("rtx4090", 82.6)];
        assert_eq!(sheets.map(|(name, _)| name), GPUS.map(|gpu| gpu.name));
        for (gpu, (name, peak)) in GPUS.iter().zip(sheets) {
            let found = 2.0 * f64::from(gpu.multiprocessors) * gpu.rate(gpu.lanes.f32) / 1e12;
            assert!((found / peak - 1.0).abs() < 5e-3, "{name}: {found}");
            assert!(gpu.shared[1] + 1024 <= gpu.shared[0], "{name}: a block has 1 KiB more");
        }
    }

    /// Operations of a multiprocessor's tensor cores in a clock: a power of two, at the clock of the sheet.
    #[test]
    fn tensor_cores_do_a_power_of_two_in_a_clock() {
        for gpu in &GPUS {
            let clock = if gpu.capability == (9, 0) { 1830.0 } else { gpu.clock };
            for factor in Factor::ALL {
                let Some(rate) = gpu.tensor_rate(factor) else { continue };
                // That of f64 is rated at the clock of f32 on Hopper.
                let clock = if factor == Factor::F64 { gpu.clock } else { clock };
                let each = rate / (clock * 1e6);
                let off = each / 2_f64.powf(each.log2().round()) - 1.0;
                assert!(off.abs() < 0.015, "{} {}: {each}", gpu.name, factor.name());
            }
        }
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        assert_eq!(Gpu::named("H200").map(|gpu| gpu.title), Ok("H200 SXM"));
        let error = Gpu::named("v100").unwrap_err();
        assert_eq!(error, "no GPU is known as `v100`; there are a100, h100, h200, l40s, rtx4090");
    }
}
