//! Loads and stores: addresses, alignment, the state space of generic addresses. Global memory is in `global`, shared memory in `shared`,
//! the others in `local`, atomic operations in `atomic`; `elements` moves the data.

use super::Warp;
use super::elements::{Pattern, nibble};
use super::env::{Env, Facts, Halt};
use crate::decode::op::{Access, Address, Slot, Space, Strength};
use crate::lanes::{LANES, Mask, Wide, lanes, row};
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
    /// An atomic operation that does not look at the old value.
    Exchange,
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
    /// Whether the bytes must have been written before.
    #[inline(always)]
    pub fn looks(&self) -> bool {
        matches!(self.touch, Touch::Load | Touch::Atomic)
    }
    /// Bytes a lane accesses.
    #[inline(always)]
    pub fn total(&self) -> u64 {
        u64::from(self.bytes) * u64::from(self.count)
    }
    /// The words of a lane's access with the bytes it touches of each, as four bits.
    #[inline(always)]
    pub fn words(&self, address: u64) -> impl Iterator<Item = (usize, u8)> + use<> {
        let (at, total) = (address as usize, self.total() as usize);
        let bytes = nibble(at, total.min(4) as u8);
        (at / 4..(at + total).div_ceil(4)).map(move |word| (word, bytes))
    }
    #[inline(always)]
    pub fn kind(&self) -> AccessKind {
        match (self.touch, self.strength) {
            (Touch::Atomic | Touch::Exchange, _) | (Touch::Store, Strength::Strong) => AccessKind::Atomic,
            (Touch::Load, Strength::Strong) => AccessKind::StrongRead,
            (Touch::Load, _) => AccessKind::Read,
            (Touch::Store, _) => AccessKind::Write,
        }
    }
}

impl Warp {
    #[inline(always)]
    pub(super) fn addresses(&self, address: &Address) -> Wide {
        let offset = address.offset as u64;
        match address.base {
            None | Some(Slot::Pred(_)) => [offset; LANES],
            Some(Slot::Narrow(s)) => {
                let row = &self.narrow[s as usize];
                row!(i => u64::from(row[i]).wrapping_add(offset))
            }
            Some(Slot::Wide(s)) => {
                let row = &self.wide[s as usize];
                row!(i => row[i].wrapping_add(offset))
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

    #[inline(always)]
    pub(super) fn load(&mut self, env: &mut Env<'_>, pc: u32, access: &Access, run: Mask) -> Result<(), Halt> {
        let addresses = self.addresses(&access.address);
        self.load_here(env, pc, access, &addresses, run)
    }

    /// A load whose addresses are computed.
    #[inline(never)]
    pub(super) fn load_at(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        addresses: Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.load_here(env, pc, access, &addresses, run)
    }

    #[inline(always)]
    fn load_here(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let shape =
            Shape { pc, bytes: access.bytes, count: access.count, touch: Touch::Load, strength: access.strength };
        if access.strength == Strength::Strong {
            env.order_read(access.space, addresses, run);
        }
        match access.space {
            Space::Global => self.load_global(env, shape, access, addresses, run),
            Space::Shared => self.load_shared(env, shape, access, addresses, run),
            _ => self.load_elsewhere(env, shape, access, addresses, run),
        }
    }

    #[inline(never)]
    fn load_elsewhere(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.undefined.begin_load();
        self.by_space(env, access.space, *addresses, run, |warp, env, space, addresses, run| match space {
            Space::Global | Space::Generic => warp.load_global(env, shape, access, addresses, run),
            Space::Shared => warp.load_shared(env, shape, access, addresses, run),
            Space::Local => warp.load_local(env, shape, access, addresses, run),
            Space::Const | Space::Param => warp.load_constant(env, shape, access, space, addresses, run),
        })
    }

    #[inline(always)]
    pub(super) fn store(&mut self, env: &mut Env<'_>, pc: u32, access: &Access, run: Mask) -> Result<(), Halt> {
        let addresses = self.addresses(&access.address);
        self.store_here(env, pc, access, &addresses, run)
    }

    /// A store whose addresses are computed.
    #[inline(never)]
    pub(super) fn store_at(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        addresses: Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.store_here(env, pc, access, &addresses, run)
    }

    #[inline(always)]
    fn store_here(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let shape =
            Shape { pc, bytes: access.bytes, count: access.count, touch: Touch::Store, strength: access.strength };
        if access.strength == Strength::Strong {
            env.order_write(access.space, addresses, run);
        }
        match access.space {
            Space::Global => self.store_global(env, shape, access, addresses, run),
            Space::Shared => self.store_shared(env, shape, access, addresses, run),
            _ => self.store_elsewhere(env, shape, access, addresses, run),
        }
    }

    #[inline(never)]
    fn store_elsewhere(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.by_space(env, access.space, *addresses, run, |warp, env, space, addresses, run| {
            if space != Space::Local {
                warp.check_stored(env, shape.pc, run);
            }
            match space {
                Space::Global | Space::Generic => warp.store_global(env, shape, access, addresses, run),
                Space::Shared => warp.store_shared(env, shape, access, addresses, run),
                Space::Local => warp.store_local(env, shape, access, addresses, run),
                Space::Const | Space::Param => {
                    let lane = run.trailing_zeros();
                    let location = small_location(env, space, addresses[lane as usize], shape.total());
                    env.report(
                        Kind::ReadOnlyWrite,
                        shape.pc,
                        Facts { lane, location: Some(location), fatal: true, ..Facts::default() },
                    );
                    Err(Halt)
                }
            }
        })
    }

    /// Checks bounds and alignment of the lanes in a small memory of `size` bytes, and says how their addresses lie.
    #[inline(always)]
    pub(super) fn check_small(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        space: Space,
        size: u64,
        addresses: &Wide,
        run: Mask,
    ) -> Result<Pattern, Halt> {
        let total = shape.total();
        let pattern = Pattern::new(addresses, run, total);
        // Sizes are powers of two.
        if pattern.bits & (total - 1) == 0 && pattern.greatest <= size && size - pattern.greatest >= total {
            return Ok(pattern);
        }
        refuse_small(env, shape, space, size, addresses, run);
        Err(Halt)
    }
}

/// The finding about the first lane outside a small memory, or misaligned in it.
#[cold]
fn refuse_small(env: &mut Env<'_>, shape: Shape, space: Space, size: u64, addresses: &Wide, run: Mask) {
    let total = shape.total();
    for lane in lanes(run) {
        let address = addresses[lane];
        let outside = address > size || size - address < total;
        if !outside && address & (total - 1) == 0 {
            continue;
        }
        let kind = if outside { Kind::OutOfBounds } else { Kind::Misaligned };
        let location = small_location(env, space, address, total);
        let detail = if outside { String::new() } else { format!("the address must be a multiple of {total}") };
        let facts = Facts { lane: lane as u32, location: Some(location), detail, fatal: true, ..Facts::default() };
        return env.report(kind, shape.pc, facts);
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
