//! Where buffers and barriers lie in the shared memory of a block.

use tilewright_kernel::target::STATIC_SHARED_BYTES;

/// Bytes of an mbarrier.
pub const BARRIER_BYTES: u64 = 8;

/// Buffers in order, each at its alignment, then the barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMap {
    /// First byte of each buffer.
    pub buffers: Vec<u64>,
    /// First byte of the barriers.
    pub barriers: u64,
    /// Bytes of everything.
    pub bytes: u64,
    /// The largest alignment.
    pub alignment: u64,
}

impl SharedMap {
    /// The map of buffers of so many bytes at such an alignment, a power of two, and of so many barriers.
    pub fn new(buffers: impl Iterator<Item = (u64, u64)>, barriers: u64) -> Self {
        let (mut bytes, mut most) = (0u64, BARRIER_BYTES);
        let mut place = |size: u64, alignment: u64| {
            let at = bytes.next_multiple_of(alignment);
            bytes = at + size;
            most = most.max(alignment);
            at
        };
        let buffers = buffers.map(|(size, alignment)| place(size, alignment)).collect();
        let barriers = place(barriers * BARRIER_BYTES, BARRIER_BYTES);
        Self { buffers, barriers, bytes, alignment: most }
    }

    /// Bytes that the launch must provide; none where variables of fixed size do.
    pub fn dynamic_bytes(&self) -> Option<u64> {
        (self.bytes > STATIC_SHARED_BYTES).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_lie_at_their_alignment_and_apart() {
        let map = SharedMap::new([(100, 16), (256, 1024), (8, 128)].into_iter(), 3);
        assert_eq!(map, SharedMap { buffers: vec![0, 1024, 1280], barriers: 1288, bytes: 1312, alignment: 1024 });
        assert_eq!(map.dynamic_bytes(), None);
        assert_eq!(SharedMap::new([(48 * 1024, 128)].into_iter(), 1).dynamic_bytes(), Some(48 * 1024 + 8));
        assert_eq!(SharedMap::new([].into_iter(), 0).bytes, 0);
    }
}
