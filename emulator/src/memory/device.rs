//! The device's address space: allocations, their words and their initialised bytes. Everything is behind `&self`, so
//! that host threads share it; words are relaxed atomics, which compile to plain loads and stores.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// First address handed out: high enough that small integers are never valid addresses.
const FIRST: u64 = 0x0100_0000;
/// Alignment of every allocation, as the driver promises.
pub(crate) const ALIGN: u64 = 256;
/// Unmapped bytes after an allocation, so that running past its end is seen even without extents.
pub(crate) const GAP: u64 = 1024;
/// Addresses end where the windows of the other state spaces begin.
const LAST: u64 = 0x7000_0000_0000;
/// Freed allocations remembered for messages.
const REMEMBERED: usize = 256;
/// What uninitialised words hold: NaN in every float type, −1 as an integer.
pub(crate) const POISON: u32 = u32::MAX;

/// One allocation.
#[derive(Debug)]
pub struct Allocation {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// Name for reports.
    pub label: String,
    words: Vec<AtomicU32>,
    /// One bit a byte.
    initialised: Vec<AtomicU32>,
    /// Whether all bits above are set: the usual case, decided once.
    complete: AtomicBool,
}

impl Allocation {
    /// An allocation of uninitialised bytes; `None` when the host has no memory for it.
    pub(crate) fn new(base: u64, bytes: u64, label: &str) -> Option<Allocation> {
        let words = filled(bytes.div_ceil(4), POISON)?;
        let initialised = filled(bytes.div_ceil(32), 0)?;
        let complete = AtomicBool::new(bytes == 0);
        Some(Allocation { base, bytes, label: label.to_owned(), words, initialised, complete })
    }

    /// Copies bytes from an offset.
    pub(crate) fn copy_to(&self, offset: u64, to: &mut [u8]) {
        let mut at = offset as usize;
        let mut rest = to;
        while !rest.is_empty() {
            let word = self.load(at / 4).to_le_bytes();
            let from = at % 4;
            let count = (4 - from).min(rest.len());
            let (head, tail) = rest.split_at_mut(count);
            head.copy_from_slice(&word[from..from + count]);
            rest = tail;
            at += count;
        }
    }

    /// Replaces bytes and marks them initialised.
    pub(crate) fn fill_with(&self, offset: u64, bytes: u64, value: impl Fn(usize) -> u8) {
        put(self, offset, bytes as usize, value);
    }

    /// The word at this index.
    #[inline(always)]
    pub(crate) fn load(&self, word: usize) -> u32 {
        self.words[word].load(Ordering::Relaxed)
    }

    /// Replaces the word.
    #[inline(always)]
    pub(crate) fn store(&self, word: usize, value: u32) {
        self.words[word].store(value, Ordering::Relaxed);
    }

    /// Replaces the bits of `mask` in a word that other host threads may write other bits of.
    #[inline]
    pub(crate) fn store_bits(&self, word: usize, value: u32, mask: u32) {
        if mask == u32::MAX {
            return self.store(word, value);
        }
        let update = |old| Some((old & !mask) | (value & mask));
        let _always_updates = self.words[word].fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
    }

    /// Words of the allocation.
    pub(crate) fn words(&self) -> &[AtomicU32] {
        &self.words
    }

    /// Whether every byte is initialised.
    #[inline(always)]
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed)
    }

    /// The first byte of the range that was never written, if any.
    pub(crate) fn first_uninitialised(&self, offset: u64, bytes: u64) -> Option<u64> {
        if self.is_complete() {
            return None;
        }
        let mut at = offset;
        while at < offset + bytes {
            let group = self.initialised[(at / 32) as usize].load(Ordering::Relaxed);
            let from = at % 32;
            let here = (32 - from).min(offset + bytes - at);
            let want = ones(here) << from;
            let missing = want & !group;
            if missing != 0 {
                return Some(at / 32 * 32 + u64::from(missing.trailing_zeros()));
            }
            at += here;
        }
        None
    }

    /// Marks bytes as written.
    #[inline]
    pub(crate) fn mark(&self, offset: u64, bytes: u64) {
        if self.is_complete() {
            return;
        }
        let mut at = offset;
        while at < offset + bytes {
            let from = at % 32;
            let here = (32 - from).min(offset + bytes - at);
            let want = ones(here) << from;
            let group = &self.initialised[(at / 32) as usize];
            if group.load(Ordering::Relaxed) & want != want {
                group.fetch_or(want, Ordering::Relaxed);
            }
            at += here;
        }
    }

    /// The groups of initialised bits, 32 bytes each.
    pub(crate) fn initialised(&self) -> &[AtomicU32] {
        &self.initialised
    }

    /// Looks again whether every byte is initialised; called between launches.
    pub(crate) fn settle(&self) {
        if !self.is_complete() && self.first_uninitialised(0, self.bytes).is_none() {
            self.complete.store(true, Ordering::Relaxed);
        }
    }
}

/// `count` ones, at most 32.
fn ones(count: u64) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    live: BTreeMap<u64, Arc<Allocation>>,
    freed: Vec<(u64, u64, String)>,
    next: u64,
    pub(super) used: u64,
    /// Variables of programs, by the program's number.
    pub(super) modules: BTreeMap<u64, super::module::Module>,
    pub(super) heap: Option<Arc<super::heap::Heap>>,
}

/// The address space of an emulated device.
///
/// ```
/// use tilewright_emulator::Memory;
/// let memory = Memory::new(1 << 20);
/// let x = memory.alloc(16, "x")?;
/// memory.write(x, &[1, 2, 3, 4])?;
/// let mut back = [0; 4];
/// memory.read(x, &mut back)?;
/// assert_eq!(back, [1, 2, 3, 4]);
/// memory.free(x)?;
/// # Ok::<(), tilewright_emulator::Error>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    table: Mutex<Table>,
    capacity: u64,
}

impl Memory {
    /// An empty address space that holds at most `capacity` bytes of allocations.
    pub fn new(capacity: u64) -> Self {
        Memory { table: Mutex::new(Table { next: FIRST, ..Table::default() }), capacity }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds the lock in a half-changed state.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates uninitialised bytes at an address divisible by 256. The label appears in reports. Zero bytes are
    /// allowed: the address is unique and nothing can be accessed through it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] beyond the capacity, or when the host has no memory left.
    pub fn alloc(&self, bytes: u64, label: &str) -> Result<u64, Error> {
        let mut table = self.table();
        let refusal = |used| Error::OutOfMemory { bytes, used, capacity: self.capacity };
        let used =
            table.used.checked_add(bytes).filter(|used| *used <= self.capacity).ok_or_else(|| refusal(table.used))?;
        let base = table.next;
        let span = bytes.max(1).checked_next_multiple_of(ALIGN).and_then(|b| b.checked_add(GAP));
        let next = span
            .and_then(|span| base.checked_add(span))
            .filter(|next| *next <= LAST)
            .ok_or_else(|| refusal(table.used))?;
        let allocation = Allocation::new(base, bytes, label).ok_or_else(|| refusal(table.used))?;
        table.live.insert(base, Arc::new(allocation));
        table.next = next;
        table.used = used;
        Ok(base)
    }

    /// Frees an allocation by its base address.
    ///
    /// # Errors
    /// [`Error::BadAddress`] when no allocation starts there.
    pub fn free(&self, base: u64) -> Result<(), Error> {
        let mut table = self.table();
        let allocation = table.live.remove(&base).ok_or(Error::BadAddress { address: base, bytes: 0 })?;
        table.used -= allocation.bytes;
        if table.freed.len() == REMEMBERED {
            table.freed.remove(0);
        }
        table.freed.push((base, allocation.bytes, allocation.label.clone()));
        Ok(())
    }

    /// The allocation that contains the whole range.
    fn find(&self, address: u64, bytes: u64) -> Result<(Arc<Allocation>, u64), Error> {
        let refusal = Error::BadAddress { address, bytes };
        let table = self.table();
        let Some((base, allocation)) = table.live.range(..=address).next_back() else { return Err(refusal) };
        let offset = address - base;
        match offset.checked_add(bytes) {
            Some(end) if end <= allocation.bytes => Ok((allocation.clone(), offset)),
            _ => Err(refusal),
        }
    }

    /// Copies bytes from the device. Uninitialised ones read as 255.
    ///
    /// # Errors
    /// [`Error::BadAddress`] when the range is not inside one allocation.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        let (allocation, offset) = self.find(address, to.len() as u64)?;
        allocation.copy_to(offset, to);
        Ok(())
    }

    /// Copies bytes to the device and marks them initialised.
    ///
    /// # Errors
    /// [`Error::BadAddress`] when the range is not inside one allocation.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), Error> {
        let (allocation, offset) = self.find(address, from.len() as u64)?;
        put(&allocation, offset, from.len(), |at| from[at]);
        Ok(())
    }

    /// Sets bytes and marks them initialised.
    ///
    /// # Errors
    /// [`Error::BadAddress`] when the range is not inside one allocation.
    pub fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), Error> {
        let (allocation, offset) = self.find(address, bytes)?;
        put(&allocation, offset, bytes as usize, |_| value);
        Ok(())
    }

    /// Whether every byte of the range has been written by the host or a kernel.
    ///
    /// # Errors
    /// [`Error::BadAddress`] when the range is not inside one allocation.
    pub fn is_initialised(&self, address: u64, bytes: u64) -> Result<bool, Error> {
        let (allocation, offset) = self.find(address, bytes)?;
        Ok(allocation.first_uninitialised(offset, bytes).is_none())
    }

    /// Most bytes that may be allocated.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes allocated now.
    pub fn used(&self) -> u64 {
        self.table().used
    }

    /// All live allocations by address.
    pub(crate) fn allocations(&self) -> Vec<Arc<Allocation>> {
        self.table().live.values().cloned().collect()
    }

    /// The freed allocation an address lay in, if it is remembered.
    pub(crate) fn freed_at(&self, address: u64) -> Option<String> {
        let table = self.table();
        table
            .freed
            .iter()
            .rev()
            .find(|(base, bytes, _)| address >= *base && address - base < *bytes)
            .map(|entry| entry.2.clone())
    }
}

fn put(allocation: &Allocation, offset: u64, bytes: usize, value: impl Fn(usize) -> u8) {
    let start = offset as usize;
    let mut at = 0;
    while at < bytes {
        let from = (start + at) % 4;
        let count = (4 - from).min(bytes - at);
        let (mut word, mut mask) = ([0; 4], [0; 4]);
        for i in 0..count {
            word[from + i] = value(at + i);
            mask[from + i] = u8::MAX;
        }
        allocation.store_bits((start + at) / 4, u32::from_le_bytes(word), u32::from_le_bytes(mask));
        at += count;
    }
    allocation.mark(offset, bytes as u64);
    if offset == 0 && bytes as u64 == allocation.bytes {
        allocation.complete.store(true, Ordering::Relaxed);
    }
}

/// `count` equal words, or `None` when the host has no memory for them.
fn filled(count: u64, value: u32) -> Option<Vec<AtomicU32>> {
    let count = usize::try_from(count).ok()?;
    let mut words = Vec::new();
    words.try_reserve_exact(count).ok()?;
    words.resize_with(count, || AtomicU32::new(value));
    Some(words)
}
