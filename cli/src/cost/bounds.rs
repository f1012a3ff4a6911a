//! What a launch takes at least, by each thing that it uses: the roofline.
//!
//! **Formula**: what is to be done, divided by what the multiprocessors that have a block can do in a second. The
//! largest time is the bound; another unit is used at most for its own time of it. **Approximated**: nothing takes its
//! peak; latencies, instructions that are no arithmetic, L2 and the last wave are left out.

use tilewright_emulator::{Counters, Factor};

use super::gpu::Gpu;

/// Bytes of a sector of global memory.
const SECTOR: f64 = tilewright_kernel::sectors::BYTES as f64;

/// One bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// What takes the time, such as `f32`, `tensor cores, half`.
    pub name: String,
    /// Microseconds; none if the rate is not known.
    pub microseconds: Option<f64>,
}

/// The bounds of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Device memory, if each tensor goes there once.
    pub least: Bound,
    /// Device memory, if no request is answered by a cache.
    pub asked: Bound,
    /// The units that have something to do.
    pub units: Vec<Bound>,
    /// Multiprocessors that have a block.
    pub busy: u32,
}

impl Bounds {
    /// The bounds of a launch of so many blocks that counts this and whose tensors take `least` bytes.
    pub fn of(gpu: &Gpu, blocks: u32, least: u64, counters: &Counters) -> Self {
        let busy = gpu.multiprocessors.min(blocks);
        let bound = |name: &str, amount: u64, rate: Option<f64>| {
            let microseconds = rate.map(|rate| amount as f64 / rate * 1e6);
            (amount > 0).then(|| Bound { name: name.to_owned(), microseconds })
        };
        let all = |each_clock: f64| Some(gpu.rate(each_clock) * f64::from(busy));
        let memory = |name: &str, bytes: f64| Bound {
            name: name.to_owned(),
            microseconds: Some(bytes / gpu.memory_rate() * 1e6),
        };
        let work = &counters.work;
        let tensor = Factor::ALL.into_iter().filter_map(|factor| {
            let rate = gpu.tensor_rate(factor).map(|rate| rate * f64::from(busy));
            bound(&format!("tensor cores, {}", factor.name()), work.of(factor), rate)
        });
        let units = tensor
            .chain(bound("f32", work.f32.instructions, all(gpu.lanes.f32)))
            .chain(bound("f16 and bf16", work.half.instructions, all(gpu.lanes.half)))
            .chain(bound("f64", work.f64.instructions, all(gpu.lanes.f64)))
            .chain(bound("special functions", work.special, all(gpu.lanes.special)))
            // A wavefront is what all banks deliver in a clock.
            .chain(bound("shared memory", counters.shared.transactions, all(1.0)))
            .collect();
        Self {
            least: memory("device memory, least", least as f64),
            asked: memory("device memory, asked", counters.global.transactions as f64 * SECTOR),
            units,
            busy,
        }
    }

    /// The largest bound with one of device memory.
    pub fn limit<'a>(&'a self, memory: &'a Bound) -> &'a Bound {
        let larger = |a: &'a Bound, b: &'a Bound| if b.microseconds > a.microseconds { b } else { a };
        self.units.iter().fold(memory, larger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9)
    }

    #[test]
    fn bounds_are_amounts_by_rates() {
        let gpu = Gpu::named("h200").unwrap();
        let mut counters = Counters::default();
        counters.global.transactions = 3_000_000;
        counters.shared.transactions = 132 * 1980;
        counters.work.f32.instructions = 132 * 128 * 1980 * 2;
        counters.work.special = 132 * 16 * 1980 * 3;
        counters.work.tensor[Factor::Half as usize] = 989_400_000 * 4;
        let bounds = Bounds::of(gpu, 1000, 48_000_000, &counters);
        let found: Vec<_> = bounds.units.iter().map(|b| &*b.name).collect();
        assert_eq!(found, ["tensor cores, half", "f32", "special functions", "shared memory"]);
        for (bound, expected) in bounds.units.iter().zip([4.0, 2.0, 3.0, 1.0]) {
            assert!(near(bound.microseconds, expected), "{bound:?}");
        }
        assert!(near(bounds.least.microseconds, 10.0) && near(bounds.asked.microseconds, 20.0), "{bounds:?}");
        assert_eq!((bounds.busy, &*bounds.limit(&bounds.least).name), (132, "device memory, least"));
        assert_eq!(bounds.limit(&bounds.asked).name, "device memory, asked");
        // Half of the multiprocessors take twice as long; device memory does not.
        let half = Bounds::of(gpu, 66, 24_000_000, &counters);
        assert!(
            half.units.iter().zip([8.0, 4.0, 6.0, 2.0]).all(|(unit, time)| near(unit.microseconds, time)),
            "{half:?}"
        );
        assert!(near(half.least.microseconds, 5.0), "{half:?}");
        assert_eq!(half.limit(&half.least).name, "tensor cores, half");
    }

    #[test]
    fn rates_that_nobody_knows_bound_nothing() {
        let mut counters = Counters::default();
        counters.work.tensor[Factor::Float8 as usize] = 1 << 40;
        let bounds = Bounds::of(Gpu::named("a100").unwrap(), 1, 8, &counters);
        assert_eq!((bounds.units.len(), bounds.units[0].microseconds), (1, None));
        assert_eq!(bounds.limit(&bounds.least).name, "device memory, least");
    }
}
