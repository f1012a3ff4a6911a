//! One number for a launch, by which launches are compared: what `tilewright tune` ranks by.
//!
//! **Formula**: the larger of two times. Memory: the sectors asked for, by the bandwidth of device memory. Units: the
//! largest bound of a unit of multiprocessors, times how much more than its share the busiest multiprocessor has:
//! ⌈blocks / busy⌉ · ⌈tiles / blocks⌉ · busy / tiles, where `busy` have a block, and tiles are the blocks unless the
//! launch is persistent. **Approximated**: blocks are alike; no request is answered by L2; latencies, instructions that
//! are no arithmetic, and what does not overlap are left out, as in the bounds.

use std::cmp::{Ordering, Reverse};

use tilewright_kernel::KernelInfo;

use super::{Cost, Refusal, Request};

/// What a launch is compared by.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The time, in microseconds.
    pub microseconds: f64,
    /// What takes it.
    pub limit: String,
    /// Whether the assembler keeps registers in memory; none where there is no assembler.
    pub spills: Option<bool>,
    /// Warps that a multiprocessor holds at one time, and the most that it can.
    pub warps: (u32, u32),
    /// Bytes of shared memory that the blocks of a multiprocessor have: room for copies under way.
    pub shared: u64,
    /// Instructions executed, once a warp.
    pub instructions: u64,
    /// Why counts are estimates themselves; empty if they are exact.
    pub doubts: Vec<String>,
}

impl Estimate {
    /// The estimate of a launch.
    ///
    /// # Errors
    /// What to tell the user: the kernel cannot run on the GPU or at these sizes, or counting is too much work.
    pub fn of(kernel: &KernelInfo, dims: &[i64], request: &Request<'_>) -> Result<Self, String> {
        let cost = Cost::of(("", 0), kernel, dims, request);
        let cost = cost.map_err(|refusal| match refusal {
            Refusal::Usage(why) | Refusal::Launch(why) => why,
        })?;
        let Cost { bounds, counts, occupancy, registers, grid, .. } = &cost;
        let factor = unevenness(counts.blocks, *grid, bounds.busy);
        let memory = (bounds.asked.microseconds.unwrap_or_default(), &bounds.asked.name);
        let units = bounds.units.iter().map(|unit| (unit.microseconds.unwrap_or_default() * factor, &unit.name));
        let (microseconds, limit) = units.fold(memory, |most, unit| if unit.0 > most.0 { unit } else { most });
        let spills = |usage: &crate::assembler::Usage| usage.spill_loads > 0 || usage.spill_stores > 0;
        Ok(Self {
            microseconds,
            limit: limit.clone(),
            spills: registers.as_ref().ok().map(spills),
            warps: (occupancy.warps, occupancy.most_warps),
            shared: u64::from(occupancy.blocks) * u64::from(cost.shared.iter().sum::<u32>()),
            instructions: counts.all.warp_instructions,
            doubts: cost.doubts(),
        })
    }

    /// Which of two launches comes first: the one that does not spill, the shorter one; of equal ones the one that
    /// hides latencies better, with more warps or else more shared memory, and then the one with fewer instructions.
    pub fn compare(&self, other: &Self) -> Ordering {
        let spills = |of: &Self| of.spills == Some(true);
        let ties = |of: &Self| (Reverse(of.warps.0), Reverse(of.shared), of.instructions);
        (spills(self).cmp(&spills(other)))
            .then(self.microseconds.total_cmp(&other.microseconds))
            .then(ties(self).cmp(&ties(other)))
    }
}

/// How much more than its share the busiest multiprocessor has to do.
fn unevenness(blocks: u32, tiles: u32, busy: u32) -> f64 {
    if blocks == 0 || busy == 0 {
        return 1.0;
    }
    let tiles = tiles.max(blocks);
    f64::from(blocks.div_ceil(busy)) * f64::from(tiles.div_ceil(blocks)) * f64::from(busy) / f64::from(tiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_multiprocessor_decides() {
        assert_eq!(unevenness(132, 132, 132), 1.0);
        // One of them has two blocks.
        assert_eq!(unevenness(133, 133, 132), 2.0 * 132.0 / 133.0);
        // Fewer blocks than multiprocessors: only those that have one count.
        assert_eq!(unevenness(7, 7, 7), 1.0);
        // Persistent: 132 blocks take 200 tiles, two each at most.
        assert_eq!(unevenness(132, 200, 132), 2.0 * 132.0 / 200.0);
        assert_eq!(unevenness(264, 264, 132), 1.0);
    }

    #[test]
    fn ties_are_broken() {
        let one = |microseconds, spills, warps, shared, instructions| Estimate {
            microseconds,
            limit: "f32".to_owned(),
            spills,
            warps: (warps, 64),
            shared,
            instructions,
            doubts: Vec::new(),
        };
        let best = one(2.0, Some(false), 32, 4096, 100);
        for worse in [
            one(1.0, Some(true), 64, 8192, 1),
            one(2.5, Some(false), 64, 8192, 1),
            one(2.0, Some(false), 16, 8192, 1),
            one(2.0, Some(false), 32, 2048, 1),
            one(2.0, Some(false), 32, 4096, 101),
        ] {
            assert_eq!(best.compare(&worse), Ordering::Less, "{worse:?}");
            assert_eq!(worse.compare(&best), Ordering::Greater, "{worse:?}");
        }
        assert_eq!(best.compare(&best), Ordering::Equal);
    }
}
