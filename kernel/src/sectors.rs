//! Sectors of global memory: how many of them an access of a warp touches.
//!
//! Device memory is moved in sectors of 32 bytes. An access of a warp fetches each sector that one of its lanes touches
//! once, and all of it, whatever of it is asked for (CUDA programming guide, device memory accesses).

/// Bytes of a sector.
pub const BYTES: u64 = 32;

/// Sectors that bytes without a gap touch, from the first one to the one after the last; and the least number of
/// sectors that could hold as many.
pub fn run(first: u64, end: u64) -> (u64, u64) {
    ((end - 1) / BYTES - first / BYTES + 1, (end - first).div_ceil(BYTES))
}

/// Most lanes of an access.
const LANES: usize = 32;

/// The same of lanes of a warp that access so many bytes each, from these addresses on, which are multiples of that
/// number. Lanes that access the same bytes share them.
pub fn scattered(starts: &[u64], bytes: u64) -> (u64, u64) {
    debug_assert!(starts.len() <= LANES, "lanes of one warp");
    let distinct = if starts.is_sorted() { in_order } else { in_any_order };
    (distinct(starts, BYTES.trailing_zeros()), (distinct(starts, 0) * bytes).div_ceil(BYTES))
}

/// How many different numbers there are without so many low bits, where they ascend.
fn in_order(numbers: &[u64], shift: u32) -> u64 {
    let pairs = numbers.windows(2).filter(|pair| pair[0] >> shift != pair[1] >> shift);
    u64::from(!numbers.is_empty()) + pairs.count() as u64
}

/// The same of numbers in any order, at most [`LANES`]: a table of twice as many places, which takes a fraction of the
/// time of sorting them.
fn in_any_order(numbers: &[u64], shift: u32) -> u64 {
    const PLACES: usize = 2 * LANES;
    let (mut table, mut taken) = ([0; PLACES], 0_u64);
    for number in numbers.iter().map(|number| number >> shift) {
        // Fibonacci hashing: the upper bits of the product with 2^64 divided by the golden ratio.
        let mut at = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACES.trailing_zeros())) as usize;
        while taken >> at & 1 == 1 && table[at] != number {
            at = (at + 1) % PLACES;
        }
        (table[at], taken) = (number, taken | 1 << at);
    }
    taken.count_ones().into()
}

/// Sectors that an access of a warp touches, and the least number that could hold its bytes: `lanes` are the byte
/// addresses of those that take part, each of which accesses `bytes` bytes.
pub fn request(lanes: &[Option<u64>], bytes: u32) -> (u64, u64) {
    let starts: Vec<u64> = lanes.iter().flatten().copied().collect();
    scattered(&starts, bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: the distinct sectors of all bytes, and the distinct bytes.
    #[test]
    fn sectors_are_the_distinct_ones_of_all_bytes() {
        let mut state = 1_u64;
        let mut drawn = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..2_000 {
            let (reach, bytes) = (1 + drawn(500), [1, 2, 4, 8, 16][drawn(5) as usize]);
            let lanes: Vec<Option<u64>> = (0..32).map(|_| Some(drawn(reach) * bytes).filter(|at| at % 3 > 0)).collect();
            let all = lanes.iter().flatten().flat_map(|at| *at..at + bytes);
            let all: std::collections::BTreeSet<u64> = all.collect();
            let sectors: std::collections::BTreeSet<u64> = all.iter().map(|at| at / BYTES).collect();
            let expected = (sectors.len() as u64, (all.len() as u64).div_ceil(BYTES));
            assert_eq!(request(&lanes, bytes as u32), expected, "{lanes:?}, {bytes} bytes");
        }
    }

    #[test]
    fn a_run_is_what_its_lanes_are() {
        for (first, lanes, bytes) in [(0, 32, 4), (4, 32, 4), (16, 32, 16), (28, 1, 4), (30, 7, 2), (96, 32, 8)] {
            let starts: Vec<Option<u64>> = (0..lanes).map(|lane| Some(first + lane * bytes)).collect();
            assert_eq!(run(first, first + lanes * bytes), request(&starts, bytes as u32), "{first} {lanes} {bytes}");
        }
        assert_eq!(request(&[None; 32], 4), (0, 0));
        let strided = |stride: u64| (0..32).map(|lane| Some(lane * stride)).collect::<Vec<_>>();
        assert_eq!(request(&strided(16), 4), (16, 4));
        assert_eq!(request(&strided(4096), 4), (32, 4));
        assert_eq!(request(&strided(0), 4), (1, 1));
    }
}
