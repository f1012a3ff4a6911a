//! What the examples share: deterministic data, and the table that each prints.
#![allow(dead_code, reason = "each example uses a part")]

use std::time::Instant;

use tilewright::kernel::KernelInfo;
use tilewright::{Agreement, Device, Result};

/// Numbers in [−1, 1) that look random and are the same on every machine.
pub fn data(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 40) as f32) / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// The head of the table: what runs where.
pub fn title(device: &Device, kernel: &KernelInfo) {
    let (major, minor) = kernel.ptx.version;
    println!("{} on {}: PTX {major}.{minor} for {}", kernel.name, device.name(), kernel.ptx.target);
    println!("{:<28} {:>10}   against the reference", "sizes", "time");
}

/// Runs a launch and waits for it; milliseconds.
pub fn time(device: &Device, launch: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    launch()?;
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// A row of the table: sizes, time, and how the result compares with what the algorithm admits.
pub fn row(sizes: &str, time: f64, agreement: &Agreement) {
    println!("{sizes:<28} {time:>8.2}ms   {agreement}");
}
