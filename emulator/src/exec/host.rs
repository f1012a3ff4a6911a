//! The warps' loop, compiled for the host's baseline and, on x86-64, for AVX2 with fused multiply-add, and the choice between the two. Rows
//! are plain loops that the compiler turns into vector code; everything between here and them is inlined, so that it is compiled with the features
//! of the function it ends up in. Results do not depend on the choice.
#![allow(unsafe_code, reason = "calling a function compiled for features that this host was found to have")]

use super::env::Env;
use super::{Stop, Warp};

/// Whether every host of this architecture has fused multiply-add.
const BASELINE_FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// The instructions that the warps' loop uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    /// Set by `detect` alone: AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT exist.
    avx2: bool,
}

impl Host {
    /// What every host of this architecture has.
    pub fn baseline() -> Host {
        Host { avx2: false }
    }

    /// The best that this host has.
    pub fn detect() -> Host {
        #[cfg(target_arch = "x86_64")]
        let avx2 = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt");
        #[cfg(not(target_arch = "x86_64"))]
        let avx2 = false;
        Host { avx2 }
    }
}

impl Warp {
    /// Runs until the warp waits, exits, is stopped, or has executed `slice` instructions.
    pub fn run(&mut self, env: &mut Env<'_>, slice: u32) -> Stop {
        #[cfg(target_arch = "x86_64")]
        if env.cx.host.avx2 {
            // SAFETY: `avx2` is set by `Host::detect` only, and there only if the host has all the features that `run_avx2` is compiled for.
            return unsafe { run_avx2(self, env, slice) };
        }
        self.run_on::<BASELINE_FMA>(env, slice)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2(warp: &mut Warp, env: &mut Env<'_>, slice: u32) -> Stop {
    warp.run_on::<true>(env, slice)
}
