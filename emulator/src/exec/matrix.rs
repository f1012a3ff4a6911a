//! Tensor cores: fragments out of registers and into them, and the loads that feed them. What is computed is in
//! `matrix::model`.

use super::Warp;
use super::access::check_small;
use super::cluster::cluster_places;
use super::env::{Env, Halt};
use super::request::{Request, Shape, Touch};
use crate::decode::op::{Access, FragmentAccess, Inst, MatrixAccess, Mma, Op, Slot, Space, Strength};
use crate::lanes::{LANES, Mask, lanes, row};
use crate::launch::MatrixModel;
use crate::matrix::{fragment, model};

impl Warp {
    /// The register `n` of a list of data slots.
    fn data(&self, env: &Env<'_>, first: u32, n: usize, lane: usize) -> u64 {
        env.cx.kernel.data[first as usize + n].map_or(0, |slot| self.get(slot, lane))
    }

    fn put_data(&mut self, env: &Env<'_>, first: u32, n: usize, lane: usize, value: u64) {
        if let Some(slot) = env.cx.kernel.data[first as usize + n] {
            self.put(slot, lane, value);
        }
    }

    /// A matrix instruction by all lanes of a warp.
    #[inline(never)]
    pub(super) fn matrix(&mut self, env: &mut Env<'_>, inst: &Inst, pc: u32) -> Result<(), Halt> {
        match inst.op {
            Op::Mma(ref mma) => (env.cx.host.product)(self, env, mma),
            Op::MatrixAccess(ref access) => self.matrix_access(env, pc, access)?,
            Op::FragmentAccess(ref access) => self.fragment_access(env, pc, access)?,
            Op::MatrixTranspose { d, a } => self.transpose_matrix(d, a),
            _ => self.warpgroup(env, inst, pc)?,
        }
        Ok(())
    }

    /// `mma`, `wmma.mma` by all lanes.
    #[inline(always)]
    pub(super) fn mma(&mut self, env: &Env<'_>, mma: &Mma) {
        let kernel = &env.cx.kernel;
        let (product, places) = (&mma.product, &kernel.places[mma.places as usize]);
        let mut rest = &kernel.data[mma.data as usize..];
        let [d, a, b, c] = mma.counts.map(|count| {
            let (here, after) = rest.split_at(usize::from(count));
            rest = after;
            here
        });
        let mut scratch = std::mem::take(&mut self.products);
        if product.a == crate::matrix::Element::F64 {
            let all = scratch.wide.fit(product);
            self.gather_wide(a, &places.a, &mut all.a);
            self.gather_wide(b, &places.b, &mut all.b);
            self.gather_wide(c, &places.c, &mut all.c);
            model::multiply_f64(product, all);
            self.scatter_wide(d, &places.d, &all.d);
        } else {
            let all = scratch.narrow.fit(product);
            if env.cx.options.matrix != MatrixModel::Nothing {
                self.gather(a, &places.a, product.a.bits(), &mut all.a);
                self.gather(b, &places.b, product.b.bits(), &mut all.b);
            }
            self.gather(c, &places.c, product.c.bits(), &mut all.c);
            model::multiply(product, env.cx.options.matrix, all, &mut scratch.floats);
            self.scatter(d, &places.d, product.d.bits(), &all.d);
        }
        self.products = scratch;
    }

    /// Puts the elements of `bits` bits in registers to their places in a matrix.
    #[inline(always)]
    pub(super) fn gather(&self, slots: &[Option<Slot>], places: &[[u16; LANES]], bits: u32, all: &mut [u32]) {
        let mask = u32::MAX >> (32 - bits);
        let each = (32 / bits) as usize;
        for (slot, places) in slots.iter().zip(places.chunks_exact(each)) {
            let words = match slot {
                Some(Slot::Narrow(slot)) => self.narrow[*slot],
                Some(slot) => row!(lane => self.get(*slot, lane) as u32),
                None => [0; LANES],
            };
            for (places, i) in places.iter().zip(0..) {
                for (at, word) in places.iter().zip(&words) {
                    all[usize::from(*at)] = word >> (i * bits) & mask;
                }
            }
        }
    }

    /// Puts the elements of a matrix into registers, those of `bits` bits together.
    #[inline(always)]
    pub(super) fn scatter(&mut self, slots: &[Option<Slot>], places: &[[u16; LANES]], bits: u32, all: &[u32]) {
        let mask = u32::MAX >> (32 - bits);
        let each = (32 / bits) as usize;
        for (slot, places) in slots.iter().zip(places.chunks_exact(each)) {
            let mut words = [0; LANES];
            for (places, i) in places.iter().zip(0..) {
                for (at, word) in places.iter().zip(&mut words) {
                    *word |= (all[usize::from(*at)] & mask) << (i * bits);
                }
            }
            match slot {
                Some(Slot::Narrow(slot)) => self.narrow[*slot] = words,
                Some(slot) => self.set_row(*slot, &row!(lane => u64::from(words[lane])), Mask::MAX),
                None => {}
            }
        }
    }

    /// [`Self::gather`] for elements of 64 bits.
    fn gather_wide(&self, slots: &[Option<Slot>], places: &[[u16; LANES]], all: &mut [u64]) {
        for (slot, places) in slots.iter().zip(places) {
            let values = slot.map_or([0; LANES], |slot| self.row(slot));
            for (at, value) in places.iter().zip(values) {
                all[usize::from(*at)] = value;
            }
        }
    }

    /// [`Self::scatter`] for elements of 64 bits.
    fn scatter_wide(&mut self, slots: &[Option<Slot>], places: &[[u16; LANES]], all: &[u64]) {
        for (slot, places) in slots.iter().zip(places) {
            if let Some(slot) = slot {
                self.set_row(*slot, &row!(lane => all[usize::from(places[lane])]), Mask::MAX);
            }
        }
    }

    /// `movmatrix.trans`: lane 4g + q holds elements (g, 2q) and (g, 2q + 1).
    fn transpose_matrix(&mut self, d: u32, a: u32) {
        let source: [u32; LANES] = std::array::from_fn(|lane| self.get(Slot::Narrow(a), lane) as u32);
        let element = |row: usize, col: usize| source[4 * row + col / 2] >> (16 * (col % 2)) & 0xffff;
        for lane in 0..LANES {
            let (row, col) = (lane / 4, lane % 4 * 2);
            let word = element(col, row) | element(col + 1, row) << 16;
            self.put(Slot::Narrow(d), lane, u64::from(word));
        }
    }

    /// `ldmatrix`, `stmatrix`. Every lane accesses the words that it receives or gives; rows are found by the addresses
    /// of other lanes.
    fn matrix_access(&mut self, env: &mut Env<'_>, pc: u32, op: &MatrixAccess) -> Result<(), Halt> {
        let rows = self.addresses(&op.address);
        let space = if op.generic { Space::Generic } else { Space::Shared };
        // The row addresses must be aligned, whichever word a lane takes.
        let total = 8 * u32::from(op.count);
        let used = if total == 32 { Mask::MAX } else { (1 << total) - 1 };
        let touch = if op.store { Touch::Store } else { Touch::Load };
        let shape = Shape { pc, bytes: 8, count: 2, touch, strength: Strength::Weak };
        self.by_space(env, space, rows, used, |_, env, space, addresses, run| match space {
            Space::Shared => {
                let size = u64::from(env.cx.shared_bytes);
                let request = Request::new(shape, None, addresses, run);
                match env.cx.ctas() {
                    1 => check_small(env, &request, Space::Shared, size),
                    _ => cluster_places(env, &request, true).map(|_| ()),
                }
            }
            _ => super::access::not_shared(env, pc, run.trailing_zeros(), space, addresses),
        })?;
        self.undefined.begin_load();
        for q in 0..usize::from(op.count) {
            self.undefined.part(Some((q, 0)));
            if !op.trans {
                let addresses = std::array::from_fn(|lane| rows[8 * q + lane / 4].wrapping_add(4 * (lane as u64 % 4)));
                let access = word(space, 4, op.data + q as u32);
                self.access_at(env, pc, &access, touch, addresses, Mask::MAX)?;
                continue;
            }
            let Some(slot) = env.cx.kernel.data[op.data as usize + q] else { continue };
            // Element (2c + h, r) for lane 4r + c, half h. The halves go through the register one after the other.
            let whole: [u64; LANES] = std::array::from_fn(|lane| self.get(slot, lane));
            let mut out = [0u64; LANES];
            for h in 0..2 {
                let addresses =
                    std::array::from_fn(|lane| rows[8 * q + 2 * (lane % 4) + h].wrapping_add(2 * (lane as u64 / 4)));
                if op.store {
                    for (lane, value) in whole.iter().enumerate() {
                        self.put(slot, lane, value >> (16 * h) & 0xffff);
                    }
                }
                let access = word(space, 2, op.data + q as u32);
                self.undefined.part(Some((q, 2 * h as u32)));
                self.access_at(env, pc, &access, touch, addresses, Mask::MAX)?;
                for (lane, value) in out.iter_mut().enumerate() {
                    *value |= (self.get(slot, lane) & 0xffff) << (16 * h);
                }
            }
            for (lane, value) in (if op.store { whole } else { out }).into_iter().enumerate() {
                self.put(slot, lane, value);
            }
        }
        self.undefined.part(None);
        Ok(())
    }

    /// `wmma.load`, `wmma.store`, register by register.
    fn fragment_access(&mut self, env: &mut Env<'_>, pc: u32, op: &FragmentAccess) -> Result<(), Halt> {
        let touch = if op.store { Touch::Store } else { Touch::Load };
        let base = self.addresses(&op.address);
        let [length, count] = op.extents.map(usize::from);
        let bits = usize::from(op.bits);
        // Elements of one access: those of a register, unless they are apart in memory.
        let together = if op.across || bits >= 32 { 1 } else { 32 / bits };
        let parts = if bits >= 32 { 1 } else { 32 / bits / together };
        let per_lane = usize::from(op.count) * parts * together;
        let bytes = (bits * together / 8).max(1);
        self.undefined.begin_load();
        for r in 0..usize::from(op.count) {
            let mut whole = [0u64; LANES];
            for part in 0..parts {
                let addresses = std::array::from_fn(|lane| {
                    let at = fragment::wmma(length * count, per_lane, lane, (r * parts + part) * together);
                    let (line, place) = if op.across { (at % count, at / count) } else { (at / length, at % length) };
                    let stride = op.stride.map_or(length as u64, |slot| self.get(Slot::Narrow(slot), lane));
                    let element = (line as u64).wrapping_mul(stride).wrapping_add(place as u64);
                    base[lane].wrapping_add(element.wrapping_mul(bits as u64) / 8)
                });
                let access = word(op.space, bytes as u8, op.data + r as u32);
                self.undefined.part(Some((r, (part * bits * together / 8) as u32)));
                if parts == 1 {
                    self.access_at(env, pc, &access, touch, addresses, Mask::MAX)?;
                    continue;
                }
                // Parts of a register go through a row of their own.
                let access = Access { data: op.data + u32::from(op.count), ..access };
                let shift = part * bits;
                if op.store {
                    for lane in lanes(Mask::MAX) {
                        let value = self.data(env, op.data, r, lane) >> shift;
                        self.put(Slot::Narrow(op.scratch), lane, value);
                    }
                }
                self.access_at(env, pc, &access, touch, addresses, Mask::MAX)?;
                for (lane, value) in whole.iter_mut().enumerate() {
                    *value |= self.get(Slot::Narrow(op.scratch), lane) << shift;
                }
            }
            if parts > 1 && !op.store {
                for (lane, value) in whole.into_iter().enumerate() {
                    self.put_data(env, op.data, r, lane, value);
                }
            }
        }
        self.undefined.part(None);
        Ok(())
    }
}

/// An access of one element a lane.
fn word(space: Space, bytes: u8, data: u32) -> Access {
    Access {
        space,
        address: crate::decode::op::Address { base: None, offset: 0 },
        bytes,
        count: 1,
        signed: false,
        strength: Strength::Weak,
        data,
    }
}
