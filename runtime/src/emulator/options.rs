//! What an emulator is asked to do, and what it tells.

use std::fmt;
use std::time::Duration;

use tilewright_emulator::Counters;
use tilewright_emulator::trace::Trace;

use crate::error::Fault;

/// How an emulator runs kernels.
///
/// ```
/// # use tilewright::{Device, EmulatorOptions};
/// let device = Device::emulator(EmulatorOptions::default().seed(7).perturb(true));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmulatorOptions {
    /// Decides the order in which warps and copies run; the same seed gives the same run. 0 unless set.
    pub seed: u64,
    /// Whether to look for races and for reads of memory that nobody wrote; on unless set. Bounds and alignment are
    /// always checked.
    pub sanitize: bool,
    /// Whether approximate instructions are off by amounts within their stated bounds, which the seed decides; off
    /// unless set. A kernel that passes only without is wrong.
    pub perturb: bool,
    /// Most warp instructions of a launch: beyond, it is taken to run for ever. 2⁴⁰ unless set.
    pub budget: u64,
    /// Blocks of a persistent launch that run at one time, or clusters: each takes several tiles, if there are more. 3
    /// unless set; at least 1.
    pub resident: u32,
    /// Warp instructions of the first block that are traced, or of the first cluster: then nothing else runs, and
    /// results are not complete. 0 unless set: nothing is traced.
    pub trace: u64,
    /// Bytes of device memory. 64 GiB unless set; the host's own memory may end before.
    pub memory: u64,
}

impl EmulatorOptions {
    /// With another seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With sanitizers on or off.
    pub fn sanitize(self, sanitize: bool) -> Self {
        Self { sanitize, ..self }
    }

    /// With approximate results perturbed or not.
    pub fn perturb(self, perturb: bool) -> Self {
        Self { perturb, ..self }
    }

    /// With another instruction budget.
    pub fn budget(self, budget: u64) -> Self {
        Self { budget, ..self }
    }

    /// With another number of blocks, or clusters, that a persistent launch has at most.
    pub fn resident(self, resident: u32) -> Self {
        Self { resident, ..self }
    }

    /// With a trace of the first block, or cluster, of so many warp instructions at most, in the place of the launch:
    /// see [`EmulatorReport::trace`].
    pub fn trace(self, instructions: u64) -> Self {
        Self { trace: instructions, ..self }
    }

    /// With another size of device memory, in bytes.
    pub fn memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self { seed: 0, sanitize: true, perturb: false, budget: 1 << 40, resident: 3, trace: 0, memory: 1 << 36 }
    }
}

/// What an emulator found and counted in one launch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EmulatorReport {
    /// The kernel.
    pub kernel: String,
    /// What made the launch fail; the launch returned the first of them.
    pub faults: Vec<Fault>,
    /// What is wrong by the memory model and harmless in its result: several threads that write equal values.
    pub warnings: Vec<Fault>,
    /// Instructions, memory traffic, branches.
    pub counters: Counters,
    /// What happened at barriers and with copies in the first block, or cluster, if that was asked for.
    pub trace: Option<Trace>,
    /// Time that the launch took on the host.
    pub elapsed: Duration,
}

impl fmt::Display for EmulatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {}: {:.3} ms on the host", self.kernel, self.elapsed.as_secs_f64() * 1e3)?;
        for fault in self.faults.iter().chain(&self.warnings) {
            writeln!(f, "{fault}")?;
        }
        self.counters.fmt(f)
    }
}
