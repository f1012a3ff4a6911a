//! The hot parts of the warps' loop, compiled for the host's baseline and, on x86-64, once more for AVX2 with fused
//! multiply-add, and the choice between the two. Rows are plain loops that the compiler turns into vector code;
//! everything between here and them is inlined, so that it is compiled with the features of the function it ends up in.
//! Results do not depend on the choice.
#![allow(unsafe_code, reason = "calling a function compiled for features that this host was found to have")]

use super::Warp;
use super::env::{Env, Halt};
use super::quick::{self, QUICK, quick};
use super::request::Touch;
use crate::decode::op::{Access, FastCvt, Inst, Mma, Op, Part, PredRef, Space};
use crate::lanes::int::{self, Int2, IntCompare, Width};
use crate::lanes::{Mask, float};
use crate::warpgroup::Pending;

/// Operations by number: those of `quick`, and then what executes all operations of a [`Part`].
const NUMBERS: usize = QUICK + Part::COUNT;

/// Executes an operation in all lanes, or one of a [`Part`] in some.
type Compute = fn(&mut Warp, &Inst, Mask);
/// Executes the load or store at an instruction, in some lanes.
type Move = fn(&mut Warp, &mut Env<'_>, u32, &Access, Touch, Mask) -> Result<(), Halt>;
/// The same in all lanes; which of the two it is, is known where it is compiled.
type MoveWords = fn(&mut Warp, &mut Env<'_>, u32, &Access) -> Result<(), Halt>;

/// The hot parts of the warps' loop, compiled for some host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    ops: [Compute; NUMBERS],
    pub(super) partly: fn(&mut Warp, &Host, &Inst, Part, Mask),
    pub(super) access: Move,
    pub(super) product: fn(&mut Warp, &Env<'_>, &Mma),
    pub(super) warpgroup_product: fn(&mut Warp, &Env<'_>, &Pending),
    /// [`Warp::access_global_words`] and [`Warp::access_shared_words`], each to load and to store.
    pub(super) words: [[MoveWords; 2]; 2],
}

/// The number by which the loop executes an operation that only computes registers, and the registers that it then
/// looks at.
pub(crate) fn number(op: &Op, part: Part) -> (u8, [u32; 4]) {
    let (number, registers) = quick::number(op).unwrap_or((QUICK + part as usize, [0; 4]));
    (number as u8, registers)
}

/// The number by which the loop executes a load or store.
pub(crate) fn access_number(access: &Access) -> u8 {
    match access.space {
        Space::Global if access.is_word() => 0,
        Space::Shared if access.is_word() => 1,
        _ => 2,
    }
}

/// A [`Host`], compiled with the features of the function that this stands in: closures have those of what is around
/// them.
macro_rules! host {
    ($($pattern:pat, [$($register:ident)*] => |$warp:ident| $do:expr;)*) => {
        Host {
            ops: [
                $(|$warp, inst, _run| {
                    let [$($register,)* ..] = inst.registers;
                    $do;
                },)*
                |warp, inst, run| warp.narrow_integers(&inst.op, run),
                |warp, inst, run| warp.wide_integers(&inst.op, run),
                |warp, inst, run| warp.floats::<FMA>(&inst.op, run),
                |warp, inst, run| warp.wide_floats::<FMA>(&inst.op, run),
                |warp, inst, run| warp.tests(&inst.op, run),
                |warp, inst, run| warp.others(&inst.op, run),
            ],
            partly: |warp, host, inst, part, run| warp.partly(host, inst, part, run),
            access: |warp, env, pc, access, touch, run| warp.access(env, pc, access, touch, run),
            product: |warp, env, mma| warp.mma(env, mma),
            warpgroup_product: |warp, env, pending| warp.multiply(env, pending),
            words: [
                [
                    |warp, env, pc, access| warp.access_global_words(env, pc, access, Touch::Load),
                    |warp, env, pc, access| warp.access_global_words(env, pc, access, Touch::Store),
                ],
                [
                    |warp, env, pc, access| warp.access_shared_words(env, pc, access, Touch::Load),
                    |warp, env, pc, access| warp.access_shared_words(env, pc, access, Touch::Store),
                ],
            ],
        }
    };
}

impl Host {
    /// What executes the operations of a part.
    #[inline(always)]
    pub(super) fn part(&self, part: Part) -> Compute {
        self.ops[QUICK + part as usize]
    }

    /// Loads or stores; `number` is that of the instruction.
    #[inline(always)]
    pub(super) fn memory(
        &self,
        warp: &mut Warp,
        env: &mut Env<'_>,
        (pc, number): (u32, u8),
        access: &Access,
        (touch, run): (Touch, Mask),
    ) -> Result<(), Halt> {
        match self.words.get(usize::from(number)) {
            Some(words) if run == Mask::MAX => words[usize::from(touch == Touch::Store)](warp, env, pc, access),
            _ => (self.access)(warp, env, pc, access, touch, run),
        }
    }

    /// What executes the operation of this number.
    #[inline(always)]
    pub(super) fn op(&self, number: u8) -> Compute {
        self.ops[usize::from(number)]
    }

    /// For every host of this architecture.
    pub fn baseline() -> Host {
        const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
        quick!(host)
    }

    /// The best for this host.
    pub fn detect() -> Host {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            // SAFETY: this host has all the features that `avx2`, and with it what it returns, is compiled for.
            return unsafe { avx2() };
        }
        Host::baseline()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn avx2() -> Host {
    const FMA: bool = true;
    quick!(host)
}
