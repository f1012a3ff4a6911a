//! Matrices in shared memory as `wgmma` reads them: the descriptor's bits (PTX manual 9.7.15.5.1.2.2) and where it says
//! that an element is (9.7.15.5.1.2.1). The compiler finds a descriptor for a layout, and the emulator reads by it.
//!
//! With e the bytes of an element, T = 16 / e, S the bytes of the swizzle's span, element (x, k), where x counts along
//! m or n, is before the permutation at
//!
//! | layout | k contiguous | x contiguous (16-bit elements) |
//! | --- | --- | --- |
//! | no swizzle | 16 (x mod 8) + SBO ⌊x/8⌋ + LBO ⌊k/T⌋ + e (k mod T) | 2 (x mod 8) + SBO ⌊x/8⌋ + 16 (k mod 8) + LBO ⌊k/8⌋ |
//! | S | S (x mod 8) + SBO ⌊x/8⌋ + e k | 2 (x mod S/2) + LBO ⌊x/(S/2)⌋ + S (k mod 8) + SBO ⌊k/8⌋ |
//!
//! from the start, which may be inside a pattern. The permutation acts on the address itself; a base offset moves the
//! pattern's first row.

use std::ops::Range;

use crate::tensor_map::{GRANULE, Swizzle};

/// Bytes that no swizzle takes apart.
const CHUNK: u32 = GRANULE as u32;
/// Bits of the descriptor that must be zero.
const RESERVED: u64 = 0x3ff1_c000_c000_c000;
/// Bits of an address in units of 16 bytes.
const UNITS: u64 = 0x3fff;
/// Addresses wrap after this.
const WINDOW: u32 = 1 << 18;

/// A decoded descriptor. Offsets are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Where the matrix begins in shared memory.
    pub start: u32,
    /// Leading dimension byte offset.
    pub leading: u32,
    /// Stride dimension byte offset.
    pub stride: u32,
    /// The row of the pattern, in units of 128 bytes, that is its first.
    pub base: u32,
    /// How 16-byte chunks are permuted.
    pub swizzle: Swizzle,
}

impl Descriptor {
    /// Whether its offsets have places in the bits: multiples of 16 bytes below 256 KiB.
    pub fn is_encodable(&self) -> bool {
        [self.leading, self.stride].iter().all(|offset| offset.is_multiple_of(CHUNK) && *offset < WINDOW)
    }

    /// The 16-byte chunk that holds element (x, k) of `bytes` bytes: the chunk's first element, and how many bytes of
    /// it come before the element. `across` if x is contiguous.
    pub fn chunk_of(across: bool, bytes: u32, (x, k): (u32, u32)) -> ((u32, u32), u32) {
        let each = CHUNK / bytes;
        match across {
            true => ((x / each * each, k), x % each * bytes),
            false => ((x, k / each * each), k % each * bytes),
        }
    }

    /// The bits of a descriptor whose start is to be added: the start in units of 16 bytes.
    pub fn encode(&self) -> u64 {
        let units = |bytes: u32| (bytes >> 4) as u64 & UNITS;
        let mode = match self.swizzle {
            Swizzle::None => 0,
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
        };
        units(self.start) | units(self.leading) << 16 | units(self.stride) << 32 | (self.base as u64) << 49 | mode << 62
    }

    /// The fields of a descriptor; none if bits are set that must be zero.
    pub fn decode(bits: u64) -> Option<Self> {
        if bits & RESERVED != 0 {
            return None;
        }
        let bytes = |shift: u32| ((bits >> shift & UNITS) << 4) as u32;
        Some(Descriptor {
            start: bytes(0),
            leading: bytes(16),
            stride: bytes(32),
            base: (bits >> 49 & 7) as u32,
            swizzle: [Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32][(bits >> 62) as usize],
        })
    }

    /// How far after the start the 16-byte chunk lies, before the permutation, that begins with element (x, k) of
    /// `bytes` bytes; `across` if x is contiguous.
    pub fn offset(&self, across: bool, bytes: u32, (x, k): (u32, u32)) -> u32 {
        let span = self.swizzle.span();
        match (self.swizzle, across) {
            (Swizzle::None, false) => x % 8 * 16 + x / 8 * self.stride + k * bytes / 16 * self.leading,
            (Swizzle::None, true) => x / 8 * self.stride + k % 8 * 16 + k / 8 * self.leading,
            (_, false) => x % 8 * span + x / 8 * self.stride + k * bytes,
            (_, true) => {
                // Powers of two.
                let wide = span.trailing_zeros() - bytes.trailing_zeros();
                let within = x & ((1 << wide) - 1);
                within * bytes + (x >> wide) * self.leading + k % 8 * span + k / 8 * self.stride
            }
        }
    }

    /// The address of the 16-byte chunk that begins with element (x, k) of `bytes` bytes; `across` if x is contiguous.
    pub fn chunk(&self, across: bool, bytes: u32, (x, k): (u32, u32)) -> u32 {
        let at = self.start.wrapping_add(self.offset(across, bytes, (x, k))) % WINDOW;
        // Rows of the pattern are counted from its own first one.
        let row = at.wrapping_sub(self.base * 128) % WINDOW;
        at ^ row ^ self.swizzle.apply(row)
    }

    /// The chunks of rows `x` (columns of B) of a matrix that is `depth` elements deep: those along k one after the
    /// other, or, if x is contiguous, those of eight rows (`16 / bytes`) for each k.
    pub fn chunks(&self, across: bool, bytes: u32, x: Range<u32>, depth: u32, out: &mut Vec<u32>) {
        let each = CHUNK / bytes;
        let [step_x, step_k] = if across { [each, 1] } else { [1, each] };
        for x in x.step_by(step_x as usize) {
            out.extend((0..depth).step_by(step_k as usize).map(|k| self.chunk(across, bytes, (x, k))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(swizzle: Swizzle) -> Descriptor {
        Descriptor { start: 1024, leading: 128, stride: 256, base: 0, swizzle }
    }

    #[test]
    fn bits_are_those_of_the_manual() {
        let code = |swizzle: Swizzle| match swizzle {
            Swizzle::None => 0u64,
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
        };
        for swizzle in Swizzle::ALL {
            let bits = 1024 >> 4 | (128 >> 4) << 16 | (256 >> 4) << 32 | 5 << 49 | code(swizzle) << 62;
            let all = Descriptor { base: 5, ..descriptor(swizzle) };
            assert_eq!((Descriptor::decode(bits), all.encode()), (Some(all), bits));
        }
        for bit in (14..16).chain(30..32).chain(46..49).chain(52..62) {
            assert_eq!(Descriptor::decode(1 << bit), None, "bit {bit}");
        }
    }

    /// The chunks of every layout are apart, and all of the tile that the offsets say.
    #[test]
    fn chunks_fill_their_tile() {
        for swizzle in Swizzle::ALL {
            let span = swizzle.span();
            // 64 rows of two chunks: cores of 8 rows, or a slice of rows of a span.
            for (across, stride, leading) in [(false, 8 * span, 16 * 64), (true, 8 * span, 0)] {
                let (stride, leading) = match (swizzle, across) {
                    (Swizzle::None, false) => (128, 1024),
                    (Swizzle::None, true) => (256, 128),
                    (_, false) => (stride, leading),
                    // Two groups of 8 k in blocks that lie one after the other.
                    (_, true) => (stride, 16 * span),
                };
                let one = Descriptor { leading, stride, ..descriptor(swizzle) };
                let mut seen = Vec::new();
                one.chunks(across, 2, 0..64, 16, &mut seen);
                seen.sort_unstable();
                let chunks = seen.len();
                seen.dedup();
                assert_eq!((chunks, seen.len()), (128, 128), "{swizzle:?} {across}");
                let pitch = if across { 2048 } else { (8 * span).max(256) * 8 };
                assert!(seen.iter().all(|at| (1024..1024 + pitch).contains(at)), "{swizzle:?} {across}: {seen:?}");
            }
        }
    }

    /// Elements of a chunk are neighbours along the contiguous axis, and the chunk is theirs alone.
    #[test]
    fn elements_are_in_chunks() {
        for bytes in [1, 2, 4] {
            for (across, one, other) in [(false, (3, 0), (3, 16 / bytes)), (true, (0, 3), (16 / bytes, 3))] {
                for n in 0..16 / bytes {
                    let of = |(x, k): (u32, u32)| if across { (x + n, k) } else { (x, k + n) };
                    assert_eq!(Descriptor::chunk_of(across, bytes, of(one)), (one, n * bytes));
                    assert_eq!(Descriptor::chunk_of(across, bytes, of(other)), (other, n * bytes));
                }
            }
        }
    }

    #[test]
    fn offsets_that_have_bits() {
        let with = |leading, stride| Descriptor { leading, stride, ..descriptor(Swizzle::None) }.is_encodable();
        assert!(with(16, (1 << 18) - 16) && with(0, 0));
        assert!(!with(8, 16) && !with(16, 24) && !with(1 << 18, 16) && !with(16, 1 << 18));
    }

    /// What a tensor copy puts into shared memory is what the descriptor reads: 64 rows of a span, any slice of them.
    #[test]
    fn slices_of_a_copied_tile() {
        for swizzle in [Swizzle::B32, Swizzle::B64, Swizzle::B128] {
            let span = swizzle.span();
            for slice in 0..span / 32 {
                let at = Descriptor { start: 2048 + 32 * slice, stride: 8 * span, ..descriptor(swizzle) };
                for (x, k) in (0..64).flat_map(|x| [(x, 0), (x, 8)]) {
                    let written = swizzle.apply(2048 + x * span + 32 * slice + 2 * k);
                    assert_eq!(at.chunk(false, 2, (x, k)), written, "{swizzle:?} {slice} ({x}, {k})");
                }
            }
        }
    }

    /// A pattern that begins in the middle of the address's own: its first row is not permuted.
    #[test]
    fn a_base_offset_moves_the_pattern() {
        let at = Descriptor { start: 1024 + 3 * 128, base: 3, stride: 1024, ..descriptor(Swizzle::B128) };
        assert_eq!(at.chunk(false, 2, (0, 0)), 1024 + 3 * 128);
        assert_eq!(at.chunk(false, 2, (1, 0)), 1024 + 4 * 128 + 16);
        assert_eq!(Descriptor { base: 0, ..at }.chunk(false, 2, (0, 0)), 1024 + 3 * 128 + 48);
    }
}
