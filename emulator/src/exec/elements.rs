//! Elements of 1, 2, 4 or 8 bytes in memories of words, and their way between a memory and the registers: the one walk
//! over the lanes and elements of a load or store, whatever the state space.

use std::sync::atomic::Ordering;

use super::Warp;
use super::env::Env;
use super::request::{Request, Touch};
use crate::decode::Kernel;
use crate::decode::op::{Access, Slot};
use crate::lanes::{LANES, Mask, Row, Wide, lanes, row};
use crate::memory::device::Allocation;

/// A memory that is read by words. Only local memory depends on the lane.
pub(super) trait Words {
    fn word(&self, lane: usize, index: usize) -> u32;
    /// Consecutive words from `first` on, for lanes from `lane` on.
    fn some(&self, lane: usize, first: usize, out: &mut [u32]) {
        for (n, value) in out.iter_mut().enumerate() {
            *value = self.word(lane + n, first + n);
        }
    }
    /// Every `step`-th word from `first` on.
    fn row(&self, first: usize, step: usize, out: &mut Row) {
        for (lane, value) in out.iter_mut().enumerate() {
            *value = self.word(lane, first + lane * step);
        }
    }
}

/// A memory that is written by words, or by the bits of a word.
pub(super) trait WordsMut: Words {
    fn set(&mut self, lane: usize, index: usize, value: u32, bits: u32);
    /// Consecutive words from `first` on, of lanes from `lane` on.
    fn set_some(&mut self, lane: usize, first: usize, values: &[u32]) {
        for (n, value) in values.iter().enumerate() {
            self.set(lane + n, first + n, *value, u32::MAX);
        }
    }
    /// Every `step`-th word from `first` on.
    fn set_row(&mut self, first: usize, step: usize, row: &Row) {
        for (lane, value) in row.iter().enumerate() {
            self.set(lane, first + lane * step, *value, u32::MAX);
        }
    }
}

impl Words for [u32] {
    #[inline(always)]
    fn word(&self, _lane: usize, index: usize) -> u32 {
        self[index]
    }
    #[inline(always)]
    fn row(&self, first: usize, step: usize, out: &mut Row) {
        let words = &self[first..first + (LANES - 1) * step + 1];
        for (lane, value) in out.iter_mut().enumerate() {
            *value = words[lane * step];
        }
    }
}

impl WordsMut for [u32] {
    #[inline(always)]
    fn set(&mut self, _lane: usize, index: usize, value: u32, bits: u32) {
        let word = &mut self[index];
        *word = (*word & !bits) | (value & bits);
    }
    #[inline(always)]
    fn set_row(&mut self, first: usize, step: usize, row: &Row) {
        let words = &mut self[first..first + (LANES - 1) * step + 1];
        for (lane, value) in row.iter().enumerate() {
            words[lane * step] = *value;
        }
    }
}

impl Words for [Row] {
    #[inline(always)]
    fn word(&self, lane: usize, index: usize) -> u32 {
        self[index][lane]
    }
}

impl WordsMut for [Row] {
    #[inline(always)]
    fn set(&mut self, lane: usize, index: usize, value: u32, bits: u32) {
        let word = &mut self[index][lane];
        *word = (*word & !bits) | (value & bits);
    }
}

impl Words for &Allocation {
    #[inline(always)]
    fn word(&self, _lane: usize, index: usize) -> u32 {
        self.load(index)
    }
    #[inline(always)]
    fn row(&self, first: usize, step: usize, out: &mut Row) {
        let words = &self.words()[first..first + (LANES - 1) * step + 1];
        for (lane, value) in out.iter_mut().enumerate() {
            *value = words[lane * step].load(Ordering::Relaxed);
        }
    }
}

impl WordsMut for &Allocation {
    #[inline(always)]
    fn set(&mut self, _lane: usize, index: usize, value: u32, bits: u32) {
        self.store_bits(index, value, bits);
    }
    #[inline(always)]
    fn set_row(&mut self, first: usize, step: usize, row: &Row) {
        let words = &self.words()[first..first + (LANES - 1) * step + 1];
        for (lane, value) in row.iter().enumerate() {
            words[lane * step].store(*value, Ordering::Relaxed);
        }
    }
}

/// `bytes` (1, 2, 4 or 8) bytes at a byte address that they divide.
#[inline(always)]
pub(super) fn get<M: Words + ?Sized>(memory: &M, lane: usize, at: usize, bytes: u8) -> u64 {
    let word = u64::from(memory.word(lane, at / 4));
    match bytes {
        8 => word | u64::from(memory.word(lane, at / 4 + 1)) << 32,
        4 => word,
        2 => word >> (8 * (at & 2)) & 0xffff,
        _ => word >> (8 * (at & 3)) & 0xff,
    }
}

/// Replaces them.
#[inline(always)]
pub(super) fn put<M: WordsMut + ?Sized>(memory: &mut M, lane: usize, at: usize, bytes: u8, value: u64) {
    let word = value as u32;
    match bytes {
        8 => {
            memory.set(lane, at / 4, word, u32::MAX);
            memory.set(lane, at / 4 + 1, (value >> 32) as u32, u32::MAX);
        }
        4 => memory.set(lane, at / 4, word, u32::MAX),
        2 => memory.set(lane, at / 4, word << (8 * (at & 2)), 0xffff << (8 * (at & 2))),
        _ => memory.set(lane, at / 4, word << (8 * (at & 3)), 0xff << (8 * (at & 3))),
    }
}

/// The bytes of a word, as four bits, that `bytes` bytes at `at` fill; all of both words for eight.
#[inline(always)]
pub(super) fn nibble(at: usize, bytes: u8) -> u8 {
    match bytes {
        4 | 8 => 0xf,
        2 => 3 << (at & 2),
        _ => 1 << (at & 3),
    }
}

/// A value of this many bytes as its register holds it.
#[inline(always)]
pub(super) fn extend(value: u64, bytes: u8, signed: bool, slot: Slot) -> u64 {
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

impl Warp {
    /// Moves the data of a load or store between its registers and the lanes' addresses, less `base`, in `memory`. Of
    /// several lanes that store at one address the last one stays.
    #[inline(always)]
    pub(super) fn move_data<M: WordsMut + ?Sized>(
        &mut self,
        kernel: &Kernel,
        request: &Request<'_>,
        memory: &mut M,
        base: u64,
    ) {
        let Some(access) = request.access else { return };
        let (load, pattern) = (request.shape.touch == Touch::Load, &request.pattern);
        let first = (pattern.least - base) as usize / 4;
        if request.shape.bytes != 4 || request.run != Mask::MAX || !(pattern.contiguous || load && pattern.is_uniform())
        {
            return self.move_some(kernel, request, memory, base);
        }
        // Whole rows of words.
        let count = usize::from(request.shape.count);
        let step = if pattern.contiguous { count } else { 0 };
        for n in 0..count {
            match (kernel.data[access.data as usize + n], load, step) {
                (Some(Slot::Narrow(d)), true, 1) => memory.row(first, 1, &mut self.narrow[d]),
                (Some(Slot::Narrow(d)), true, 0) => memory.row(first + n, 0, &mut self.narrow[d]),
                (Some(Slot::Narrow(s)), false, 1) => memory.set_row(first, 1, &self.narrow[s]),
                (slot, ..) => self.move_row(slot, load, memory, first + n, step),
            }
        }
    }

    /// Data that is not whole rows of words.
    #[inline(never)]
    fn move_some<M: WordsMut + ?Sized>(&mut self, kernel: &Kernel, request: &Request<'_>, memory: &mut M, base: u64) {
        let Some(access) = request.access else { return };
        let (load, pattern) = (request.shape.touch == Touch::Load, &request.pattern);
        // One word each of consecutive lanes.
        if access.bytes == 4
            && access.count == 1
            && pattern.contiguous
            && let Some(Slot::Narrow(slot)) = kernel.data[access.data as usize]
        {
            let (lane, first) = (pattern.first as usize & 31, (pattern.least - base) as usize / 4);
            let row = &mut self.narrow[slot][lane..=pattern.last as usize];
            return if load { memory.some(lane, first, row) } else { memory.set_some(lane, first, row) };
        }
        if load { self.read(kernel, request, memory, base) } else { self.write(kernel, request, memory, base) }
    }

    /// One row of a request for vectors, to or from every `step`-th word.
    #[inline(never)]
    fn move_row<M: WordsMut + ?Sized>(
        &mut self,
        slot: Option<Slot>,
        load: bool,
        memory: &mut M,
        first: usize,
        step: usize,
    ) {
        match slot {
            Some(Slot::Narrow(d)) if load => memory.row(first, step, &mut self.narrow[d]),
            Some(slot) if load => {
                let mut row = [0; LANES];
                memory.row(first, step, &mut row);
                self.set_row(slot, &row!(lane => u64::from(row[lane])), Mask::MAX);
            }
            None if load => {}
            _ => {
                let row = slot.map_or([0; LANES], |slot| self.row(slot));
                memory.set_row(first, step, &row!(lane => row[lane] as u32));
            }
        }
    }

    /// The registers of a load get what is at the lanes' addresses, less `base`, in `memory`.
    #[inline]
    pub(super) fn read<M: Words + ?Sized>(&mut self, kernel: &Kernel, request: &Request<'_>, memory: &M, base: u64) {
        // Compiled once for each size of an element.
        match request.shape.bytes {
            4 => self.read_sized::<4, M>(kernel, request, memory, base),
            8 => self.read_sized::<8, M>(kernel, request, memory, base),
            2 => self.read_sized::<2, M>(kernel, request, memory, base),
            _ => self.read_sized::<1, M>(kernel, request, memory, base),
        }
    }

    #[inline(always)]
    fn read_sized<const BYTES: u8, M: Words + ?Sized>(
        &mut self,
        kernel: &Kernel,
        request: &Request<'_>,
        memory: &M,
        base: u64,
    ) {
        let Some(access) = request.access else { return };
        for n in 0..usize::from(access.count) {
            let Some(slot) = kernel.data[access.data as usize + n] else { continue };
            let offset = (n * usize::from(BYTES)) as u64;
            for lane in lanes(request.run) {
                let at = (request.address(lane) - base + offset) as usize;
                let value = extend(get(memory, lane, at, BYTES), BYTES, access.signed, slot);
                self.put(slot, lane, value);
            }
        }
    }

    /// What the registers of a store hold goes to the lanes' addresses, less `base`, in `memory`.
    #[inline]
    fn write<M: WordsMut + ?Sized>(&self, kernel: &Kernel, request: &Request<'_>, memory: &mut M, base: u64) {
        match request.shape.bytes {
            4 => self.write_sized::<4, M>(kernel, request, memory, base),
            8 => self.write_sized::<8, M>(kernel, request, memory, base),
            2 => self.write_sized::<2, M>(kernel, request, memory, base),
            _ => self.write_sized::<1, M>(kernel, request, memory, base),
        }
    }

    #[inline(always)]
    fn write_sized<const BYTES: u8, M: WordsMut + ?Sized>(
        &self,
        kernel: &Kernel,
        request: &Request<'_>,
        memory: &mut M,
        base: u64,
    ) {
        let Some(access) = request.access else { return };
        for n in 0..usize::from(access.count) {
            let slot = kernel.data[access.data as usize + n];
            let offset = (n * usize::from(BYTES)) as u64;
            for lane in lanes(request.run) {
                let value = slot.map_or(0, |slot| self.get(slot, lane));
                put(memory, lane, (request.address(lane) - base + offset) as usize, BYTES, value);
            }
        }
    }

    /// The value of element `n` of a store.
    pub(super) fn stored(&self, env: &Env<'_>, access: &Access, n: usize, lane: usize) -> u64 {
        let Some(slot) = env.cx.kernel.data[access.data as usize + n] else { return 0 };
        self.get(slot, lane) & (u64::MAX >> (64 - 8 * u32::from(access.bytes)))
    }

    /// Whether a lane stores what the other side of a race has stored: to be asked before the store. Lanes of one store
    /// have stored nothing yet.
    pub(super) fn same_value<M: Words + ?Sized>(
        &self,
        env: &Env<'_>,
        request: &Request<'_>,
        memory: &M,
        base: u64,
        lane: usize,
        same_store: Option<usize>,
    ) -> bool {
        let Some(access) = request.access.filter(|_| request.shape.touch == Touch::Store) else { return false };
        (0..usize::from(access.count)).all(|n| {
            let old = match same_store {
                Some(other) if request.address(other) == request.address(lane) => self.stored(env, access, n, other),
                _ => {
                    let at = (request.address(lane) - base) as usize + n * usize::from(access.bytes);
                    get(memory, lane, at, access.bytes)
                }
            };
            old == self.stored(env, access, n, lane)
        })
    }
}

/// How the addresses of a request lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    /// Least address.
    pub least: u64,
    /// Greatest address.
    pub greatest: u64,
    /// All bits that are set in any address.
    pub bits: u64,
    /// Lanes from `first` to `last` are all there and their accesses follow each other.
    pub contiguous: bool,
    pub first: u32,
    pub last: u32,
}

impl Pattern {
    #[inline(always)]
    pub fn new(addresses: &Wide, run: Mask, total: u64) -> Pattern {
        let (first, last) = (run.trailing_zeros() & 31, 31 - (run | 1).leading_zeros());
        let start = addresses[first as usize];
        let (mut least, mut greatest, mut bits, mut off) = (start, start, 0, 0);
        for (lane, address) in addresses.iter().enumerate() {
            // Lanes that take no part look like the first one.
            let there = run >> lane & 1 == 1;
            let address = if there { *address } else { start };
            least = least.min(address);
            greatest = greatest.max(address);
            bits |= address;
            let expected = start.wrapping_add((lane as u64).wrapping_sub(u64::from(first)).wrapping_mul(total));
            off |= if there { address ^ expected } else { 0 };
        }
        let whole = run.count_ones() == last - first + 1;
        Pattern { least, greatest, bits, contiguous: off == 0 && whole && least == start, first, last }
    }

    /// Whether every lane has the same address.
    #[inline(always)]
    pub fn is_uniform(&self) -> bool {
        self.least == self.greatest
    }
}
