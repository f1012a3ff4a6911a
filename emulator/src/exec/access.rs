//! Loads and stores: addresses, alignment, the state space of generic addresses; local memory, constants and parameters. Global memory is in
//! `global`, shared memory in `shared`, atomic operations in `atomic`.

use super::Warp;
use super::env::{Env, Facts, Halt};
use super::small::{get, nibble, put};
use crate::decode::op::{Access, Address, Slot, Space, Strength};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::memory::region::{CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};
use crate::report::{Kind, Location, Near};
use crate::shadow::cell::AccessKind;

/// Where a state space appears in the generic address space.
pub(super) fn window(space: Space) -> u64 {
    match space {
        Space::Global | Space::Generic => 0,
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Const => CONST_WINDOW,
        Space::Param => PARAM_WINDOW,
    }
}

/// The state space of a generic address.
pub(super) fn space_of(address: u64) -> Space {
    let inside = |window: u64| address >= window && address - window < WINDOW;
    [Space::Shared, Space::Local, Space::Const, Space::Param]
        .into_iter()
        .find(|s| inside(window(*s)))
        .unwrap_or(Space::Global)
}

/// What happens at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Touch {
    Load,
    Store,
    Atomic,
}

/// What is accessed, apart from the addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub pc: u32,
    /// Bytes of an element.
    pub bytes: u8,
    /// Elements a lane.
    pub count: u8,
    pub touch: Touch,
    pub strength: Strength,
}

impl Shape {
    /// Bytes a lane accesses.
    pub fn total(&self) -> u64 {
        u64::from(self.bytes) * u64::from(self.count)
    }
    pub fn kind(&self) -> AccessKind {
        match (self.touch, self.strength) {
            (Touch::Atomic, _) | (Touch::Store, Strength::Strong) => AccessKind::Atomic,
            (Touch::Load, Strength::Strong) => AccessKind::StrongRead,
            (Touch::Load, _) => AccessKind::Read,
            (Touch::Store, _) => AccessKind::Write,
        }
    }
}

impl Warp {
    pub(super) fn addresses(&self, address: &Address) -> Wide {
        let offset = address.offset as u64;
        match address.base {
            None | Some(Slot::Pred(_)) => [offset; LANES],
            Some(Slot::Narrow(s)) => {
                let row = &self.narrow[s as usize];
                std::array::from_fn(|i| u64::from(row[i]).wrapping_add(offset))
            }
            Some(Slot::Wide(s)) => {
                let row = &self.wide[s as usize];
                std::array::from_fn(|i| row[i].wrapping_add(offset))
            }
        }
    }

    /// Calls `each` for every state space that the lanes address, with addresses inside it.
    pub(super) fn by_space(
        &mut self,
        env: &mut Env<'_>,
        space: Space,
        mut addresses: Wide,
        run: Mask,
        mut each: impl FnMut(&mut Self, &mut Env<'_>, Space, &Wide, Mask) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        if space != Space::Generic {
            return each(self, env, space, &addresses, run);
        }
        let mut rest = run;
        while rest != 0 {
            let space = space_of(addresses[rest.trailing_zeros() as usize]);
            let group =
                lanes(rest).filter(|lane| space_of(addresses[*lane]) == space).fold(0, |mask, lane| mask | 1 << lane);
            for lane in lanes(group) {
                addresses[lane] -= window(space);
            }
            each(self, env, space, &addresses, group)?;
            rest &= !group;
        }
        Ok(())
    }

    pub(super) fn load(&mut self, env: &mut Env<'_>, pc: u32, access: &Access, run: Mask) -> Result<(), Halt> {
        let addresses = self.addresses(&access.address);
        self.load_at(env, pc, access, addresses, run)
    }

    /// A load whose addresses are computed.
    pub(super) fn load_at(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        addresses: Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let shape =
            Shape { pc, bytes: access.bytes, count: access.count, touch: Touch::Load, strength: access.strength };
        if access.space == Space::Global {
            return self.load_global(env, shape, access, &addresses, run);
        }
        self.by_space(env, access.space, addresses, run, |warp, env, space, addresses, run| match space {
            Space::Global | Space::Generic => warp.load_global(env, shape, access, addresses, run),
            Space::Shared => warp.load_shared(env, shape, access, addresses, run),
            Space::Local => warp.load_local(env, shape, access, addresses, run),
            Space::Const | Space::Param => warp.load_constant(env, shape, access, space, addresses, run),
        })
    }

    pub(super) fn store(&mut self, env: &mut Env<'_>, pc: u32, access: &Access, run: Mask) -> Result<(), Halt> {
        let addresses = self.addresses(&access.address);
        self.store_at(env, pc, access, addresses, run)
    }

    /// A store whose addresses are computed.
    pub(super) fn store_at(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        addresses: Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let shape =
            Shape { pc, bytes: access.bytes, count: access.count, touch: Touch::Store, strength: access.strength };
        if access.space == Space::Global {
            return self.store_global(env, shape, access, &addresses, run);
        }
        self.by_space(env, access.space, addresses, run, |warp, env, space, addresses, run| match space {
            Space::Global | Space::Generic => warp.store_global(env, shape, access, addresses, run),
            Space::Shared => warp.store_shared(env, shape, access, addresses, run),
            Space::Local => warp.store_local(env, shape, access, addresses, run),
            Space::Const | Space::Param => {
                let lane = run.trailing_zeros();
                let location = small_location(env, space, addresses[lane as usize], shape.total());
                env.report(
                    Kind::ReadOnlyWrite,
                    pc,
                    Facts { lane, location: Some(location), fatal: true, ..Facts::default() },
                );
                Err(Halt)
            }
        })
    }

    /// Sets the register of element `n` of a load.
    #[inline(always)]
    pub(super) fn put_loaded(&mut self, env: &Env<'_>, access: &Access, n: usize, lane: usize, value: u64) {
        let Some(slot) = env.cx.kernel.data[access.data as usize + n] else { return };
        self.put(slot, lane, extend(value, access, slot));
    }

    /// The value of element `n` of a store.
    #[inline(always)]
    pub(super) fn stored(&self, env: &Env<'_>, access: &Access, n: usize, lane: usize) -> u64 {
        let Some(slot) = env.cx.kernel.data[access.data as usize + n] else { return 0 };
        self.get(slot, lane) & (u64::MAX >> (64 - 8 * u32::from(access.bytes)))
    }

    /// Checks bounds and alignment of the lanes in a small memory of `size` bytes.
    pub(super) fn check_small(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        space: Space,
        size: u64,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let total = shape.total();
        // Sizes are powers of two.
        let (mut bits, mut greatest) = (0, 0);
        for lane in lanes(run) {
            bits |= addresses[lane];
            greatest = greatest.max(addresses[lane]);
        }
        if bits & (total - 1) == 0 && greatest <= size && size - greatest >= total {
            return Ok(());
        }
        for lane in lanes(run) {
            let address = addresses[lane];
            let outside = address > size || size - address < total;
            if !outside && address & (total - 1) == 0 {
                continue;
            }
            let kind = if outside { Kind::OutOfBounds } else { Kind::Misaligned };
            let location = small_location(env, space, address, total);
            let detail = if outside { String::new() } else { format!("the address must be a multiple of {total}") };
            env.report(
                kind,
                shape.pc,
                Facts { lane: lane as u32, location: Some(location), detail, fatal: true, ..Facts::default() },
            );
            return Err(Halt);
        }
        Ok(())
    }

    /// Bytes of local memory: those of the kernel, and the frames of functions.
    fn local_size(&self, env: &Env<'_>) -> u64 {
        u64::from(env.cx.kernel.local_bytes).max(4 * self.local.len() as u64 * u64::from(self.has_frames()))
    }

    fn load_local(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.check_small(env, shape, Space::Local, self.local_size(env), addresses, run)?;
        count_local(env, shape, run);
        for lane in lanes(run) {
            for n in 0..usize::from(shape.count) {
                let at = addresses[lane] as usize + n * usize::from(shape.bytes);
                let words = [self.local[at / 4][lane], self.local.get(at / 4 + 1).map_or(0, |row| row[lane])];
                let need = nibble(at, shape.bytes);
                let parts = if shape.bytes == 8 { 2 } else { 1 };
                let missing = (at / 4..at / 4 + parts).any(|word| self.local_initialised[word][lane] & need != need);
                if missing && env.cx.options.sanitizers.initialisation {
                    let location = small_location(env, Space::Local, at as u64, u64::from(shape.bytes));
                    env.report(
                        Kind::UninitialisedRead,
                        shape.pc,
                        Facts { lane: lane as u32, location: Some(location), ..Facts::default() },
                    );
                }
                let value = get(&words, at % 4, shape.bytes);
                self.put_loaded(env, access, n, lane, value);
            }
        }
        Ok(())
    }

    fn store_local(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.check_small(env, shape, Space::Local, self.local_size(env), addresses, run)?;
        count_local(env, shape, run);
        for lane in lanes(run) {
            for n in 0..usize::from(shape.count) {
                let at = addresses[lane] as usize + n * usize::from(shape.bytes);
                let value = self.stored(env, access, n, lane);
                let mut words = [self.local[at / 4][lane], 0];
                put(&mut words, at % 4, shape.bytes, value);
                let parts = if shape.bytes == 8 { 2 } else { 1 };
                for (part, word) in words.into_iter().enumerate().take(parts) {
                    self.local[at / 4 + part][lane] = word;
                    self.local_initialised[at / 4 + part][lane] |= nibble(at, shape.bytes);
                }
            }
        }
        Ok(())
    }

    fn load_constant(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        space: Space,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let cx = env.cx;
        let (words, size) = match space {
            Space::Param => (&cx.params[..], u64::from(cx.kernel.param_bytes)),
            _ => (&cx.constants[..], cx.kernel.constant_bytes()),
        };
        self.check_small(env, shape, space, size, addresses, run)?;
        for n in 0..usize::from(shape.count) {
            let Some(slot) = cx.kernel.data[access.data as usize + n] else { continue };
            let first = addresses[run.trailing_zeros() as usize];
            if access.address.base.is_none() {
                // The same bytes for every lane.
                let value =
                    extend(get(words, first as usize + n * usize::from(shape.bytes), shape.bytes), access, slot);
                match slot {
                    Slot::Narrow(s) => crate::lanes::blend(&mut self.narrow[s as usize], &[value as u32; LANES], run),
                    Slot::Wide(s) => crate::lanes::blend(&mut self.wide[s as usize], &[value; LANES], run),
                    Slot::Pred(_) => {}
                }
                continue;
            }
            for lane in lanes(run) {
                let value = get(words, addresses[lane] as usize + n * usize::from(shape.bytes), shape.bytes);
                self.put(slot, lane, extend(value, access, slot));
            }
        }
        Ok(())
    }
}

/// A parameter's value as a register holds it.
pub(super) fn param(words: &[u32], at: usize, bytes: u8, signed: bool, slot: Slot) -> u64 {
    sign_extend(get(words, at, bytes), bytes, signed, slot)
}

/// A loaded value as its register holds it.
#[inline(always)]
fn extend(value: u64, access: &Access, slot: Slot) -> u64 {
    sign_extend(value, access.bytes, access.signed, slot)
}

#[inline(always)]
fn sign_extend(value: u64, bytes: u8, signed: bool, slot: Slot) -> u64 {
    if !signed {
        return value;
    }
    let shift = 64 - 8 * u32::from(bytes);
    let extended = ((value << shift) as i64 >> shift) as u64;
    match slot {
        Slot::Wide(_) => extended,
        _ => extended & 0xffff_ffff,
    }
}

/// The finding that something must be in shared memory and is not.
#[cold]
pub(super) fn not_shared(env: &mut Env<'_>, pc: u32, lane: u32, space: Space, addresses: &Wide) -> Result<(), Halt> {
    let location = match space {
        Space::Global | Space::Generic => super::global::global_location(env, addresses[lane as usize], 1),
        _ => small_location(env, space, addresses[lane as usize], 1),
    };
    let detail = "the instruction takes an address in shared memory".to_owned();
    let facts = Facts { lane, location: Some(location), detail, fatal: true, ..Facts::default() };
    env.report(Kind::OutOfBounds, pc, facts);
    Err(Halt)
}

/// A location in a state space other than global.
pub(super) fn small_location(env: &Env<'_>, space: Space, address: u64, bytes: u64) -> Location {
    let kernel = env.cx.kernel;
    let (name, variables) = match space {
        Space::Shared => ("shared", &kernel.shared_variables),
        Space::Local => ("local", &kernel.local_variables),
        Space::Param => ("param", &kernel.param_variables),
        _ => ("const", &kernel.constant_variables),
    };
    let near = variables.iter().map(|variable| {
        // The block of dynamic shared memory has the size that the launch gives it.
        let size = if variable.bytes == 0 && space == Space::Shared {
            u64::from(env.cx.dynamic_shared)
        } else {
            variable.bytes
        };
        let offset = i128::from(address) - i128::from(variable.offset);
        let distance = if offset < 0 { -offset } else { (offset + i128::from(bytes) - i128::from(size)).max(0) };
        (distance, Near { label: variable.name.clone(), offset, bytes: size, element: variable.element })
    });
    Location { space: name, address, bytes, near: near.min_by_key(|(distance, _)| *distance).map(|(_, near)| near) }
}

fn count_local(env: &mut Env<'_>, shape: Shape, run: Mask) {
    let bytes = shape.total() * u64::from(run.count_ones());
    let local = &mut env.counters.local;
    if shape.touch == Touch::Load {
        local.load_requests += 1;
        local.bytes_loaded += bytes;
    } else {
        local.store_requests += 1;
        local.bytes_stored += bytes;
    }
    // Hardware interleaves local memory by lane, so a warp's access at one address fills whole sectors.
    local.transactions += bytes.div_ceil(32);
    local.ideal_transactions += bytes.div_ceil(32);
}
