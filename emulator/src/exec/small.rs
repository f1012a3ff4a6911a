//! Small memories as words: shared memory, parameters, constants.

/// `bytes` (1, 2, 4 or 8) bytes at a byte address that they divide.
#[inline(always)]
pub(super) fn get(words: &[u32], at: usize, bytes: u8) -> u64 {
    let word = u64::from(words[at / 4]);
    match bytes {
        8 => word | u64::from(words[at / 4 + 1]) << 32,
        4 => word,
        2 => word >> (8 * (at & 2)) & 0xffff,
        _ => word >> (8 * (at & 3)) & 0xff,
    }
}

/// Replaces them.
#[inline(always)]
pub(super) fn put(words: &mut [u32], at: usize, bytes: u8, value: u64) {
    let (word, mask) = (at / 4, part(at, bytes));
    if bytes == 8 {
        words[word] = value as u32;
        words[word + 1] = (value >> 32) as u32;
        return;
    }
    let mask = mask as u32;
    let shifted = (value as u32) << (8 * (at & 3));
    words[word] = (words[word] & !mask) | (shifted & mask);
}

/// The bits of a word that `bytes` bytes at `at` fill.
#[inline(always)]
pub(super) fn part(at: usize, bytes: u8) -> u64 {
    match bytes {
        8 => u64::MAX,
        4 => 0xffff_ffff,
        2 => 0xffff << (8 * (at & 2)),
        _ => 0xff << (8 * (at & 3)),
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
