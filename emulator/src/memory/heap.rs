//! The heap of device code: `malloc` and `free` in kernels. It belongs to the device and keeps its blocks from launch
//! to launch.
//!
//! Freed addresses are not given out again, so that a use after `free` is an access outside every block for as long as
//! the device lives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilewright_sorted::SortedMap;

use super::device::{Allocation, Memory};
use super::region::{HEAP, Region};
use crate::error::Error;
use crate::report::{Place, Thread};

/// Bytes that live blocks may take: the default of `cudaLimitMallocHeapSize`.
const LIMIT: u64 = 8 << 20;
/// Bytes of addresses.
const SPAN: u64 = 32 << 20;
/// Alignment of blocks.
const ALIGN: u64 = 16;
/// Bytes between blocks, so that running past the end of one is seen.
const GAP: u64 = 16;

#[derive(Debug, Default)]
struct Blocks {
    next: u64,
    used: u64,
    /// Live blocks by address.
    live: SortedMap<u64, HeapBlock>,
    /// Those that were freed, by address: what for, and where.
    freed: SortedMap<u64, (HeapBlock, String)>,
}

/// A block of the device's heap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeapBlock {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// The kernel that allocated it.
    pub kernel: String,
    /// Where in the kernel.
    pub place: Place,
    /// Which thread.
    pub thread: Thread,
}

/// The heap of one device.
#[derive(Debug)]
pub(crate) struct Heap {
    pub allocation: Arc<Allocation>,
    blocks: Mutex<Blocks>,
}

impl Heap {
    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of a new block, or 0 when there is no room.
    pub fn allocate(&self, bytes: u64, kernel: &str, place: Place, thread: Thread) -> u64 {
        let mut blocks = self.blocks();
        let (Some(used), Some(end)) = (blocks.used.checked_add(bytes), blocks.next.checked_add(bytes)) else {
            return 0;
        };
        if bytes == 0 || used > LIMIT || end > SPAN {
            return 0;
        }
        let address = HEAP + blocks.next;
        blocks.used = used;
        blocks.next = (end + GAP).next_multiple_of(ALIGN);
        blocks.live.insert(address, HeapBlock { address, bytes, kernel: kernel.to_owned(), place, thread });
        address
    }

    /// Ends the block that starts at an address, at a place in the text; whether there is one.
    pub fn free(&self, address: u64, place: &Place) -> bool {
        let mut blocks = self.blocks();
        let Some(block) = blocks.live.remove(&address) else { return false };
        blocks.used -= block.bytes;
        blocks.freed.insert(address, (block, place.to_string()));
        true
    }

    /// The block that was freed and had this address: its size, the offset in it, and where it was freed.
    pub fn freed_at(&self, address: u64) -> Option<(u64, u64, String)> {
        let blocks = self.blocks();
        let (base, (block, place)) = blocks.freed.range(..=address).next_back()?;
        (address - base < block.bytes).then(|| (block.bytes, address - base, place.clone()))
    }

    /// Whether a range is inside one live block.
    pub fn contains(&self, address: u64, bytes: u64) -> bool {
        let blocks = self.blocks();
        let found = blocks.live.range(..=address).next_back();
        found.is_some_and(|(base, block)| address - base < block.bytes && bytes <= block.bytes - (address - base))
    }

    /// The heap as a region of a launch; `index` is that of its allocation.
    pub fn region(&self, index: usize) -> Region {
        Region {
            base: HEAP,
            end: HEAP + SPAN,
            label: "heap".to_owned(),
            element: 0,
            read_only: false,
            constant: false,
            heap: true,
            allocation: self.allocation.clone(),
            index,
        }
    }
}

impl Memory {
    /// The device's heap, which is made when it is asked for first.
    pub(crate) fn heap(&self) -> Result<Arc<Heap>, Error> {
        let mut table = self.table();
        if let Some(heap) = &table.heap {
            return Ok(heap.clone());
        }
        let refusal = Error::OutOfMemory { bytes: SPAN, used: table.used, capacity: self.capacity() };
        let allocation = Arc::new(Allocation::new(HEAP, SPAN, "heap").ok_or(refusal)?);
        let heap = Arc::new(Heap { allocation, blocks: Mutex::default() });
        table.heap = Some(heap.clone());
        Ok(heap)
    }

    /// Blocks of the device's heap that no kernel has freed, in the order of their addresses.
    pub fn heap_blocks(&self) -> Vec<HeapBlock> {
        self.heap_in_use().map(|heap| heap.blocks().live.values().cloned().collect()).unwrap_or_default()
    }

    /// The device's heap, if a kernel has used it.
    pub(crate) fn heap_in_use(&self) -> Option<Arc<Heap>> {
        self.table().heap.clone()
    }
}
