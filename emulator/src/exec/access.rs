//! Requests to memory: addresses, alignment, the state space of generic addresses. Global memory is in `global`, shared
//! memory in `shared`, the others in `local`, atomic operations in `atomic`; `elements` moves the data.

use super::Warp;
use super::elements::Pattern;
use super::env::{Env, Facts, Halt};
use super::request::{Request, Shape, Touch};
use crate::decode::op::{Access, Address, Slot, Space, Strength};
use crate::lanes::{BITS, LANES, Mask, Wide, lanes, row};
use crate::memory::region::{CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, RANK_BITS, SHARED_WINDOW, WINDOW};
use crate::report::{Kind, Location, Near};

/// Where a state space appears in the generic address space.
pub(super) fn window(space: Space) -> u64 {
    match space {
        Space::Global | Space::Generic => 0,
        Space::Shared | Space::Cluster => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Const => CONST_WINDOW,
        Space::Param => PARAM_WINDOW,
    }
}

/// The state space of a generic address.
pub(super) fn space_of(address: u64) -> Space {
    let inside = |window: u64| address >= window && address - window < WINDOW;
    if inside(SHARED_WINDOW) && (address - SHARED_WINDOW) >> RANK_BITS != 0 {
        return Space::Cluster;
    }
    [Space::Shared, Space::Local, Space::Const, Space::Param]
        .into_iter()
        .find(|s| inside(window(*s)))
        .unwrap_or(Space::Global)
}

impl Warp {
    #[inline(always)]
    pub(super) fn addresses(&self, address: &Address) -> Wide {
        let offset = address.offset as u64;
        match address.base {
            None | Some(Slot::Pred(_)) => [offset; LANES],
            Some(Slot::Narrow(s)) => {
                let row = &self.narrow[s];
                row!(i => u64::from(row[i]).wrapping_add(offset))
            }
            Some(Slot::Wide(s)) => {
                let row = &self.wide[s];
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

    /// A load or store.
    #[inline(always)]
    pub(super) fn access(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        touch: Touch,
        run: Mask,
    ) -> Result<(), Halt> {
        let shape = Shape { pc, bytes: access.bytes, count: access.count, touch, strength: access.strength };
        if access.strength.is_strong() {
            env.order(&shape, access.space, &self.addresses(&access.address), run, touch == Touch::Load);
        }
        match (access.space, self.pattern::<false>(&access.address, shape.total(), run)) {
            (Space::Global, Some(pattern)) => self.access_global(env, &Request::regular(shape, access, run, pattern)),
            (Space::Shared, Some(pattern)) => self.access_shared(env, &Request::regular(shape, access, run, pattern)),
            _ => self.access_lanewise(env, pc, access, touch, run),
        }
    }

    /// A load or store as most are, so that all that depends on this is known where it is compiled: all lanes take
    /// part, one word each, in global memory, not strongly.
    #[inline(always)]
    pub(super) fn access_global_words(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        touch: Touch,
    ) -> Result<(), Halt> {
        let strength = if access.strength == Strength::Constant { Strength::Constant } else { Strength::Weak };
        let shape = Shape { pc, bytes: 4, count: 1, touch, strength };
        match self.pattern::<true>(&access.address, shape.total(), Mask::MAX) {
            Some(pattern) => self.access_global(env, &Request::regular(shape, access, Mask::MAX, pattern)),
            None => self.access_lanewise(env, pc, access, touch, Mask::MAX),
        }
    }

    /// As [`Warp::access_global_words`], in shared memory.
    #[inline(always)]
    pub(super) fn access_shared_words(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        touch: Touch,
    ) -> Result<(), Halt> {
        let shape = Shape { pc, bytes: 4, count: 1, touch, strength: Strength::Weak };
        match self.pattern::<true>(&access.address, shape.total(), Mask::MAX) {
            Some(pattern) => self.access_shared(env, &Request::regular(shape, access, Mask::MAX, pattern)),
            None => self.access_lanewise(env, pc, access, touch, Mask::MAX),
        }
    }

    /// The pattern of lanes whose addresses are all the same or follow each other; `WHOLE` says that they are all
    /// lanes.
    #[inline(always)]
    fn pattern<const WHOLE: bool>(&self, address: &Address, total: u64, run: Mask) -> Option<Pattern> {
        let (first, last) = (run.trailing_zeros() & 31, 31 - (run | 1).leading_zeros());
        let shift = total.trailing_zeros();
        // The base of the first lane, and whether the others follow it; the last lane's decides which of the two
        // patterns is looked for.
        macro_rules! base {
            ($row:expr, $int:ty) => {{
                let row = $row;
                let start = row[first as usize];
                let zero = start.wrapping_sub(<$int>::from(first) << shift);
                let follow = row[last as usize] != start;
                // Bits by which any lane's base is off its place.
                let mut off = 0;
                macro_rules! place {
                    ($lane:ident => $place:expr) => {
                        if WHOLE || run == Mask::MAX {
                            for $lane in 0..LANES {
                                off |= row[$lane] ^ $place;
                            }
                        } else {
                            for $lane in 0..LANES {
                                let there = if run & BITS[$lane] != 0 { <$int>::MAX } else { 0 };
                                off |= (row[$lane] ^ $place) & there;
                            }
                        }
                    };
                }
                if follow {
                    place!(lane => zero.wrapping_add((lane as $int) << shift));
                } else {
                    place!(lane => start);
                }
                // Hidden, so that the compiler does not compare lane by lane.
                if std::hint::black_box(off) != 0 {
                    return None;
                }
                (u64::from(start), follow)
            }};
        }
        let (base, follow, most) = match address.base {
            Some(Slot::Wide(s)) => {
                let (start, follow) = base!(&self.wide[s], u64);
                (start, follow, u64::MAX)
            }
            Some(Slot::Narrow(s)) => {
                let (start, follow) = base!(&self.narrow[s], u32);
                (start, follow, u64::from(u32::MAX))
            }
            None | Some(Slot::Pred(_)) => (0, false, 0),
        };
        let least = base.wrapping_add(address.offset as u64);
        if !follow {
            // One lane's access follows itself.
            return Some(Pattern { least, greatest: least, bits: least, contiguous: first == last, first, last });
        }
        // No address may wrap around, neither before the offset is added nor after.
        let span = (u64::from(last - first) + 1) << shift;
        let whole = run.count_ones() == last - first + 1;
        if !whole || base > most - span || least > u64::MAX - span {
            return None;
        }
        // Accesses are powers of two, so that the bits of one address are right below a multiple of `total`.
        Some(Pattern { least, greatest: least + span - total, bits: least, contiguous: true, first, last })
    }

    #[inline(never)]
    fn access_lanewise(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        touch: Touch,
        run: Mask,
    ) -> Result<(), Halt> {
        self.access_at(env, pc, access, touch, self.addresses(&access.address), run)
    }

    /// A load or store whose addresses are computed.
    #[inline(never)]
    pub(super) fn access_at(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        access: &Access,
        touch: Touch,
        addresses: Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let shape = Shape { pc, bytes: access.bytes, count: access.count, touch, strength: access.strength };
        self.access_elsewhere(env, shape, access, &addresses, run)
    }

    #[inline(never)]
    fn access_elsewhere(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.undefined.begin_load();
        self.by_space(env, access.space, *addresses, run, |warp, env, space, addresses, run| {
            let followed = env.cx.kernel.follows && matches!(space, Space::Shared | Space::Cluster);
            if space != Space::Local && !followed {
                warp.check_stored(env, shape.pc, run);
            }
            if space == Space::Local {
                let places = warp.local_addresses(env, shape.pc, addresses, run)?;
                return warp.access_local(env, &Request::new(shape, Some(access), &places, run));
            }
            let request = Request::new(shape, Some(access), addresses, run);
            match space {
                Space::Global | Space::Generic => warp.access_global(env, &request),
                Space::Shared => warp.access_shared(env, &request),
                Space::Cluster => warp.access_cluster(env, &request, false),
                _ => warp.load_constant(env, &request, access, space),
            }
        })
    }
}

/// Checks bounds and alignment of a request in a small memory of `size` bytes.
#[inline(always)]
pub(super) fn check_small(env: &mut Env<'_>, request: &Request<'_>, space: Space, size: u64) -> Result<(), Halt> {
    let (total, pattern) = (request.shape.total(), &request.pattern);
    // Sizes are powers of two.
    if pattern.bits & (total - 1) == 0 && pattern.greatest <= size && size - pattern.greatest >= total {
        return Ok(());
    }
    refuse_small(env, request, space, size);
    Err(Halt)
}

/// The finding about the first lane outside a small memory, or misaligned in it.
#[cold]
fn refuse_small(env: &mut Env<'_>, request: &Request<'_>, space: Space, size: u64) {
    let (total, pc) = (request.shape.total(), request.shape.pc);
    for lane in lanes(request.run) {
        let address = request.address(lane);
        let outside = address > size || size - address < total;
        if !outside && address & (total - 1) == 0 {
            continue;
        }
        let kind = if outside { Kind::OutOfBounds } else { Kind::Misaligned };
        let location = small_location(env, space, address, total);
        let detail = if outside { String::new() } else { format!("the address must be a multiple of {total}") };
        let facts = Facts { lane: lane as u32, location: Some(location), detail, fatal: true, ..Facts::default() };
        return env.report(kind, pc, facts);
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

/// A location in the shared memory of a CTA of the cluster.
pub(super) fn shared_location(env: &Env<'_>, rank: usize, offset: u64, bytes: u64) -> Location {
    let cta = (env.cx.ctas() > 1).then(|| env.cta_at(env.number, rank));
    Location { cta, ..location(env, Space::Shared, offset, bytes) }
}

/// A location in a state space other than global; of shared memory a place in that of the cluster.
pub(super) fn small_location(env: &Env<'_>, space: Space, address: u64, bytes: u64) -> Location {
    match space {
        Space::Shared => {
            let (rank, offset) = env.owner(address);
            shared_location(env, rank, offset, bytes)
        }
        _ => location(env, space, address, bytes),
    }
}

fn location(env: &Env<'_>, space: Space, address: u64, bytes: u64) -> Location {
    let kernel = env.cx.kernel;
    let (name, variables) = match space {
        Space::Shared | Space::Cluster => ("shared", &kernel.shared_variables),
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
    Location {
        space: name,
        address,
        bytes,
        cta: None,
        near: near.min_by_key(|(distance, _)| *distance).map(|(_, near)| near),
    }
}
