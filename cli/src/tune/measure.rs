//! Times of launches on a device.

use std::time::Duration;

use tilewright::{Device, Error};
use tilewright_kernel::KernelInfo;

use crate::inputs::Floats;
use crate::trial::Trial;

/// Launches before those that are timed: the driver loads the kernel, and clocks rise.
const WARM_UP: u32 = 3;
/// Of the data.
const SEED: u64 = 0;

/// The times of one combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Half of the launches took no longer.
    pub median: Duration,
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

/// The first CUDA device.
///
/// # Errors
/// What to tell the user: there is none, or it cannot be used.
pub fn device() -> Result<Device, String> {
    Device::cuda(0).map_err(|error| format!("--device: {error}; without it, combinations are ranked by an estimate"))
}

/// The name of a device as the driver tells it.
pub fn name(device: &Device) -> String {
    device.properties().ok().flatten().map_or_else(|| device.name(), |properties| properties.name)
}

/// Times launches on random data, which is the same for every combination.
///
/// # Errors
/// The refusal of the launch, or a failure of the device, in words.
pub fn measured(
    kernel: &KernelInfo,
    dims: &[i64],
    scalars: &[(&str, &str)],
    device: &Device,
    launches: u32,
) -> Result<Measured, String> {
    let mut trial = Trial::with(kernel, dims, (SEED, Floats::Real), device).map_err(|error| error.to_string())?;
    for (name, value) in scalars {
        trial.set_scalar(name, value).map_err(|error| error.to_string())?;
    }
    times(&trial, device, launches).map_err(|error| error.to_string())
}

fn times(trial: &Trial<'_>, device: &Device, launches: u32) -> Result<Measured, Error> {
    let stream = device.as_ref();
    let prepared = trial.prepare(stream)?;
    for _ in 0..WARM_UP {
        prepared.run()?;
    }
    device.synchronize()?;
    let mut all = Vec::new();
    for _ in 0..launches.max(1) {
        let start = stream.record()?;
        prepared.run()?;
        let end = stream.record()?;
        all.push(end.since(&start)?);
    }
    all.sort_unstable();
    let (least, most) = (all[0], all[all.len() - 1]);
    Ok(Measured { median: all[all.len() / 2], least, most })
}
