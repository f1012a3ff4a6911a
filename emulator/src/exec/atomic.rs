//! Atomic operations: what they do to a word, in shared memory here and in global memory in `global`.

use super::Warp;
use super::access::small_location;
use super::cluster::cluster_places;
use super::elements::{get, put};
use super::env::{Env, Facts, Halt};
use super::request::{Request, Shape, Touch};
use crate::decode::op::{Atomic, AtomicFn, Space, Strength};
use crate::lanes::{Mask, lanes};
use crate::num::float::{self, Float2, FloatMode, FloatType};
use crate::report::Kind;

impl Warp {
    pub(super) fn atomic(&mut self, env: &mut Env<'_>, pc: u32, atomic: &Atomic, run: Mask) -> Result<(), Halt> {
        let addresses = self.addresses(&atomic.address);
        // An exchange may be the first write.
        let touch = if atomic.op == AtomicFn::Exch { Touch::Exchange } else { Touch::Atomic };
        let shape = Shape {
            pc,
            bytes: atomic.bytes,
            count: atomic.count,
            touch,
            strength: Strength::Strong { wide: atomic.wide },
        };
        env.order(&shape, atomic.space, &addresses, run, atomic.returns);
        env.counters.atomics += u64::from(run.count_ones());
        self.by_space(env, atomic.space, addresses, run, |warp, env, space, addresses, run| match space {
            Space::Global | Space::Generic => {
                warp.atomic_global(env, &Request::new(shape, None, addresses, run), atomic)
            }
            Space::Shared | Space::Cluster => {
                let request = Request::new(shape, None, addresses, run);
                let places;
                let addresses = if env.cx.ctas() == 1 && space == Space::Shared {
                    addresses
                } else {
                    places = cluster_places(env, &request, space == Space::Shared)?;
                    &places
                };
                warp.check_shared(env, &Request::new(shape, None, addresses, run))?;
                for lane in lanes(run) {
                    for n in 0..usize::from(shape.count) {
                        let at = addresses[lane] as usize + n * usize::from(shape.bytes);
                        let old = get(&env.shared[..], lane, at, shape.bytes);
                        let new = warp.atomic_value(env, atomic.op, atomic, n, lane, old);
                        put(&mut env.shared[..], lane, at, shape.bytes, new);
                    }
                }
                Ok(())
            }
            Space::Local | Space::Const | Space::Param => {
                let lane = run.trailing_zeros();
                let location = small_location(env, space, addresses[lane as usize], shape.total());
                let detail = "atomic operations exist in global and shared memory only".to_owned();
                env.report(
                    Kind::OutOfBounds,
                    pc,
                    Facts { lane, location: Some(location), detail, fatal: true, ..Facts::default() },
                );
                Err(Halt)
            }
        })
    }

    /// The new value of element `n`; the old one goes to the result register.
    pub(super) fn atomic_value(
        &mut self,
        env: &Env<'_>,
        op: AtomicFn,
        atomic: &Atomic,
        n: usize,
        lane: usize,
        old: u64,
    ) -> u64 {
        let count = usize::from(atomic.count);
        let data = atomic.data as usize;
        let slot = |group: usize| env.cx.kernel.data[data + group * count + n];
        let value = |warp: &Self, group: usize| {
            slot(group).map_or(0, |s| warp.get(s, lane)) & (u64::MAX >> (64 - 8 * u32::from(atomic.bytes)))
        };
        let operands = usize::from(atomic.returns);
        let new = apply(op, atomic.bytes, old, value(self, operands), || value(self, operands + 1));
        if atomic.returns
            && let Some(d) = slot(0)
        {
            self.put(d, lane, old);
        }
        new
    }
}

impl AtomicFn {
    /// The new value of an element of some bytes.
    pub(super) fn apply(self, bytes: u8, old: u64, b: u64) -> u64 {
        apply(self, bytes, old, b, || 0)
    }

    /// As it is in global memory, where sums of f32 flush subnormal operands and results; in shared memory they do not
    /// (PTX manual 9.7.13.5).
    pub(super) fn in_global_memory(self) -> AtomicFn {
        match self {
            AtomicFn::AddFloat(mode) if mode.ty == FloatType::F32 => {
                AtomicFn::AddFloat(FloatMode { ftz: true, ..mode })
            }
            other => other,
        }
    }
}

/// The result of an atomic operation on a word.
fn apply(op: AtomicFn, bytes: u8, old: u64, b: u64, c: impl FnOnce() -> u64) -> u64 {
    let mask = u64::MAX >> (64 - 8 * u32::from(bytes));
    let signed = |v: u64| {
        let shift = 64 - 8 * u32::from(bytes);
        (v << shift) as i64 >> shift
    };
    let halves =
        |f: &dyn Fn(u64, u64) -> u64| f(old & 0xffff, b & 0xffff) | f(old >> 16 & 0xffff, b >> 16 & 0xffff) << 16;
    match op {
        AtomicFn::And => old & b,
        AtomicFn::Or => old | b,
        AtomicFn::Xor => old ^ b,
        AtomicFn::Add => old.wrapping_add(b) & mask,
        AtomicFn::AddFloat(mode) => float::float2(Float2::Add, mode, old, b),
        AtomicFn::AddPacked(mode) => halves(&|x, y| float::float2(Float2::Add, mode, x, y)),
        AtomicFn::Min { signed: true } => {
            if signed(old) <= signed(b) {
                old
            } else {
                b
            }
        }
        AtomicFn::Max { signed: true } => {
            if signed(old) >= signed(b) {
                old
            } else {
                b
            }
        }
        AtomicFn::Min { signed: false } => old.min(b),
        AtomicFn::Max { signed: false } => old.max(b),
        AtomicFn::ExtremumPacked(mode, max) => {
            let op = if max {
                Float2::Max { nan: false, xorsign: false }
            } else {
                Float2::Min { nan: false, xorsign: false }
            };
            halves(&|x, y| float::float2(op, mode, x, y))
        }
        AtomicFn::Inc => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomicFn::Dec => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        AtomicFn::Exch => b,
        AtomicFn::Cas => {
            if old == b {
                c()
            } else {
                old
            }
        }
    }
}
