//! Tensor cores: fragments out of registers and into them, and the loads that feed them. What is computed is in
//! `matrix::model`.

use super::Warp;
use super::access::{Request, Shape, Touch, check_small};
use super::cluster::cluster_places;
use super::env::{Env, Halt};
use crate::decode::op::{Access, FragmentAccess, MatrixAccess, Mma, Slot, Space, Strength};
use crate::lanes::{LANES, Mask, lanes};
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

    /// `mma`, `wmma.mma` by all lanes.
    pub(super) fn mma(&mut self, env: &Env<'_>, mma: &Mma) {
        if mma.product.a == crate::matrix::Element::F64 {
            self.mma_f64(env, mma);
        } else {
            self.mma_narrow(env, mma);
        }
    }

    /// First data slots of D, A, B, C.
    fn operands(mma: &Mma) -> [u32; 4] {
        let mut first = mma.data;
        mma.counts.map(|count| {
            let here = first;
            first += u32::from(count);
            here
        })
    }

    fn mma_narrow(&mut self, env: &Env<'_>, mma: &Mma) {
        let p = &mma.product;
        let [first_d, first_a, first_b, first_c] = Self::operands(mma);
        let [count_d, count_a, count_b, count_c] = mma.counts.map(usize::from);
        let (mut a, mut b) = (vec![0u32; p.m * p.k], vec![0u32; p.k * p.n]);
        let (mut c, mut d) = (vec![0u32; p.m * p.n], vec![0u32; p.m * p.n]);
        let split = |bits: u32| ((32 / bits) as usize, u32::MAX >> (32 - bits));
        let (ea, mask_a) = split(p.a.bits());
        let (eb, mask_b) = split(p.b.bits());
        let (ec, mask_c) = split(p.c.bits());
        let (ed, mask_d) = split(p.d.bits());
        for lane in 0..LANES {
            for r in 0..count_a {
                let word = self.data(env, first_a, r, lane) as u32;
                for i in 0..ea {
                    let at = match mma.wmma {
                        None => {
                            let (row, col) = fragment::mma_a(p.m, ea, lane, r, i);
                            row * p.k + col
                        }
                        Some([across, _]) => {
                            let at = fragment::wmma(p.m * p.k, count_a * ea, lane, r * ea + i);
                            if across { at % p.m * p.k + at / p.m } else { at }
                        }
                    };
                    a[at] = word >> (i as u32 * p.a.bits()) & mask_a;
                }
            }
            for r in 0..count_b {
                let word = self.data(env, first_b, r, lane) as u32;
                for i in 0..eb {
                    let at = match mma.wmma {
                        None => {
                            let (row, col) = fragment::mma_b(eb, lane, r, i);
                            row * p.n + col
                        }
                        Some([_, across]) => {
                            let at = fragment::wmma(p.k * p.n, count_b * eb, lane, r * eb + i);
                            if across { at % p.k * p.n + at / p.k } else { at }
                        }
                    };
                    b[at] = word >> (i as u32 * p.b.bits()) & mask_b;
                }
            }
            for r in 0..count_c {
                let word = self.data(env, first_c, r, lane) as u32;
                for i in 0..ec {
                    c[place_c(mma, count_c * ec, lane, r * ec + i)] = word >> (i as u32 * p.c.bits()) & mask_c;
                }
            }
        }
        model::multiply(p, env.cx.options.matrix, &a, &b, &c, &mut d);
        for lane in 0..LANES {
            for r in 0..count_d {
                let mut word = 0;
                for i in 0..ed {
                    word |= (d[place_c(mma, count_d * ed, lane, r * ed + i)] & mask_d) << (i as u32 * p.d.bits());
                }
                self.put_data(env, first_d, r, lane, u64::from(word));
            }
        }
    }

    fn mma_f64(&mut self, env: &Env<'_>, mma: &Mma) {
        let p = &mma.product;
        let [first_d, first_a, first_b, first_c] = Self::operands(mma);
        let [count_d, count_a, count_b, count_c] = mma.counts.map(usize::from);
        let (mut a, mut b) = (vec![0u64; p.m * p.k], vec![0u64; p.k * p.n]);
        let (mut c, mut d) = (vec![0u64; p.m * p.n], vec![0u64; p.m * p.n]);
        for lane in 0..LANES {
            for r in 0..count_a {
                let (row, col) = match mma.wmma {
                    None => fragment::mma_a(p.m, 1, lane, r, 0),
                    Some([false, _]) => (fragment::wmma(p.m * p.k, count_a, lane, r) / p.k, lane % p.k),
                    Some([true, _]) => (lane % p.m, lane / p.m),
                };
                a[row * p.k + col] = self.data(env, first_a, r, lane);
            }
            for r in 0..count_b {
                let (row, col) = match mma.wmma {
                    None => fragment::mma_b(1, lane, r, 0),
                    Some([_, false]) => (lane / p.n, lane % p.n),
                    Some([_, true]) => (lane % p.k, lane / p.k),
                };
                b[row * p.n + col] = self.data(env, first_b, r, lane);
            }
            for r in 0..count_c {
                c[place_c(mma, count_c, lane, r)] = self.data(env, first_c, r, lane);
            }
        }
        model::multiply_f64(p, &a, &b, &c, &mut d);
        for lane in 0..LANES {
            for r in 0..count_d {
                let value = d[place_c(mma, count_d, lane, r)];
                self.put_data(env, first_d, r, lane, value);
            }
        }
    }

    /// `movmatrix.trans`: lane 4g + q holds elements (g, 2q) and (g, 2q + 1).
    pub(super) fn transpose_matrix(&mut self, d: u32, a: u32) {
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
    pub(super) fn matrix_access(&mut self, env: &mut Env<'_>, pc: u32, op: &MatrixAccess) -> Result<(), Halt> {
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
        for q in 0..usize::from(op.count) {
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
                self.access_at(env, pc, &access, touch, addresses, Mask::MAX)?;
                for (lane, value) in out.iter_mut().enumerate() {
                    *value |= (self.get(slot, lane) & 0xffff) << (16 * h);
                }
            }
            for (lane, value) in (if op.store { whole } else { out }).into_iter().enumerate() {
                self.put(slot, lane, value);
            }
        }
        Ok(())
    }

    /// `wmma.load`, `wmma.store`, register by register.
    pub(super) fn fragment_access(&mut self, env: &mut Env<'_>, pc: u32, op: &FragmentAccess) -> Result<(), Halt> {
        let touch = if op.store { Touch::Store } else { Touch::Load };
        let base = self.addresses(&op.address);
        let [length, count] = op.extents.map(usize::from);
        let bits = usize::from(op.bits);
        // Elements of one access: those of a register, unless they are apart in memory.
        let together = if op.across || bits >= 32 { 1 } else { 32 / bits };
        let parts = if bits >= 32 { 1 } else { 32 / bits / together };
        let per_lane = usize::from(op.count) * parts * together;
        let bytes = (bits * together / 8).max(1);
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
        Ok(())
    }
}

/// Number in a row-major matrix of element `j` of a lane's part of C or D.
fn place_c(mma: &Mma, count: usize, lane: usize, j: usize) -> usize {
    let p = &mma.product;
    match mma.wmma {
        None => {
            let (row, col) = fragment::mma_c(lane, j);
            row * p.n + col
        }
        Some(_) => fragment::wmma(p.m * p.n, count, lane, j),
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
