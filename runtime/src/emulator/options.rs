//! What an emulator is asked to do, and what it tells.

/// How an emulator runs kernels.
///
/// ```
/// # use tilewright::{Device, EmulatorOptions};
/// let mut options = EmulatorOptions::default();
/// options.seed = 7;
/// let device = Device::emulator(options);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmulatorOptions {
    /// Decides the order in which warps and copies run; the same seed gives the same run.
    pub seed: u64,
    /// Whether to look for races, stray and uninitialised accesses and broken barrier protocols; on by default.
    pub sanitize: bool,
    /// Whether approximate instructions are off by random amounts within their stated bounds.
    pub perturb: bool,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self { seed: 0, sanitize: true, perturb: false }
    }
}

/// What an emulator counted in one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmulatorReport {
    /// The kernel.
    pub kernel: String,
}
