//! Banks of shared memory: how many cycles the accesses of a warp take.
//!
//! Shared memory has 32 banks of 4 bytes. In a cycle each bank delivers one word; lanes that access the same word share it. Accesses of 8
//! bytes a lane go by halves of the warp, of 16 bytes by quarters (CUDA programming guide, shared memory).

/// Banks.
pub const COUNT: usize = 32;

/// Parts of a warp that access shared memory one after the other, where each lane accesses so many bytes.
pub const fn parts(bytes: u32) -> usize {
    if bytes < 4 { 1 } else { (bytes / 4) as usize }
}

/// Cycles of one part, whose lanes access `words` words each from these byte addresses on: the most distinct words of one bank.
pub fn cycles(addresses: impl Iterator<Item = u64>, words: usize) -> u64 {
    let mut distinct: Vec<u64> = addresses.flat_map(|at| (0..words as u64).map(move |word| at / 4 + word)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let mut loads = [0u64; COUNT];
    for word in distinct {
        loads[word as usize % COUNT] += 1;
    }
    loads.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_bank_take_turns() {
        let strided = |stride: u64, lanes: u64| (0..lanes).map(move |lane| lane * stride);
        assert_eq!(cycles(strided(4, 32), 1), 1);
        assert_eq!(cycles(strided(0, 32), 1), 1);
        assert_eq!(cycles(strided(8, 32), 1), 2);
        assert_eq!(cycles(strided(128, 32), 1), 32);
        assert_eq!(cycles(strided(132, 32), 1), 1);
        assert_eq!(cycles(strided(2, 32), 1), 1);
        assert_eq!(cycles(strided(16, 8), 4), 1);
        assert_eq!(cycles(strided(128, 8), 4), 8);
        assert_eq!(cycles(strided(0, 0), 1), 0);
        assert_eq!([1, 2, 4, 8, 16].map(parts), [1, 1, 1, 2, 4]);
    }
}
