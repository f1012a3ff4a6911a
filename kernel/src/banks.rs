//! Banks of shared memory: how many cycles the accesses of a warp take.
//!
//! Shared memory has 32 banks of 4 bytes. In a cycle each bank delivers one word; lanes that access the same word share
//! it. Accesses of 8 bytes a lane go by halves of the warp, of 16 bytes by quarters (CUDA programming guide, shared
//! memory).

/// Banks.
pub const COUNT: usize = 32;
/// Bytes that a bank has next to each other.
pub const WORD: u32 = 4;
/// Bytes of a word of every bank.
pub const ROW: u32 = COUNT as u32 * WORD;

/// Parts of a warp that access shared memory one after the other, where each lane accesses so many bytes.
pub const fn parts(bytes: u32) -> usize {
    if bytes < WORD { 1 } else { (bytes / WORD) as usize }
}

/// Cycles of one part, whose lanes access `words` words each from these byte addresses on: the most distinct words of
/// one bank.
pub fn cycles(addresses: impl Iterator<Item = u64>, words: usize) -> u64 {
    // Of each bank the first word, and how many it has; the other words are in one list.
    let (mut first, mut loads, mut others) = ([0; COUNT], [0_u64; COUNT], Vec::new());
    let mut most = 0;
    for at in addresses {
        let mut word = at / WORD as u64;
        let end = word + words as u64;
        while word < end {
            let bank = word as usize % COUNT;
            if loads[bank] == 0 || first[bank] != word && !others.contains(&word) {
                if loads[bank] == 0 {
                    first[bank] = word;
                } else {
                    others.push(word);
                }
                loads[bank] += 1;
                if loads[bank] > most {
                    most = loads[bank];
                }
            }
            word += 1;
        }
    }
    most
}

/// Cycles of an access of a warp, and how many it would take without conflicts: `lanes` are the byte addresses of those
/// that take part, each of which accesses `bytes` bytes, at most 16.
pub fn request(lanes: &[Option<u64>], bytes: u32) -> (u64, u64) {
    let (parts, words) = (parts(bytes), (bytes.max(WORD) / WORD) as usize);
    let (mut taken, mut least) = (0, 0);
    for part in lanes.chunks(lanes.len().div_ceil(parts).max(1)) {
        let cycles = cycles(part.iter().flatten().copied(), words);
        (taken, least) = (taken + cycles, least + u64::from(cycles > 0));
    }
    (taken, least)
}

/// The lanes of such an access that wait for each other the longest: one for each word of the bank that delivers most
/// words in a part.
pub fn waiting(lanes: &[Option<u64>], bytes: u32) -> Vec<u32> {
    let (parts, words) = (parts(bytes), bytes.max(WORD) / WORD);
    let size = lanes.len().div_ceil(parts).max(1);
    let mut most = Vec::new();
    for (part, lanes) in lanes.chunks(size).enumerate() {
        let mut of_banks: [Vec<(u64, u32)>; COUNT] = [const { Vec::new() }; COUNT];
        for (lane, at) in (0u32..).zip(lanes) {
            let Some(at) = at else { continue };
            for word in at / 4..at / 4 + u64::from(words) {
                let seen = &mut of_banks[word as usize % COUNT];
                if !seen.iter().any(|known| known.0 == word) {
                    seen.push((word, (part * size) as u32 + lane));
                }
            }
        }
        for seen in of_banks {
            if seen.len() > most.len() {
                most = seen;
            }
        }
    }
    most.into_iter().map(|(_, lane)| lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: the distinct words, bank by bank.
    #[test]
    fn cycles_are_the_most_distinct_words_of_a_bank() {
        let mut state = 1_u64;
        let mut drawn = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..2_000 {
            let (reach, words) = (1 + drawn(2_000), [1, 2, 4][drawn(3) as usize]);
            let addresses: Vec<u64> = (0..drawn(33)).map(|_| drawn(reach)).collect();
            let all = addresses.iter().flat_map(|at| (0..words).map(move |word| at / 4 + word));
            let distinct: std::collections::BTreeSet<u64> = all.collect();
            let of = |bank: u64| distinct.iter().filter(|word| **word % COUNT as u64 == bank).count() as u64;
            let most = (0..COUNT as u64).map(of).max().unwrap_or(0);
            assert_eq!(cycles(addresses.iter().copied(), words as usize), most, "{addresses:?}, {words} words");
        }
    }

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
        let request = |stride: u64, bytes: u32, lanes: u64| {
            let lanes: Vec<Option<u64>> = (0..32).map(|lane| (lane < lanes).then_some(lane * stride)).collect();
            (request(&lanes, bytes), waiting(&lanes, bytes).len())
        };
        assert_eq!(request(128, 4, 32), ((32, 1), 32));
        assert_eq!(request(128, 16, 32), ((32, 4), 8));
        assert_eq!(request(16, 16, 32), ((4, 4), 1));
        assert_eq!(request(16, 16, 9), ((2, 2), 1));
        assert_eq!(request(2, 2, 32), ((1, 1), 1));
        assert_eq!(request(4, 4, 0), ((0, 0), 0));
        let lanes: Vec<Option<u64>> = [0, 128, 4, 256].map(Some).to_vec();
        assert_eq!(waiting(&lanes, 4), [0, 1, 3]);
        assert_eq!([1, 2, 4, 8, 16].map(parts), [1, 1, 1, 2, 4]);
    }
}
