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

/// The same of lanes that access so many bytes each, from these addresses on, which are multiples of that number. Lanes
/// that access the same bytes share them. The addresses are sorted.
pub fn scattered(starts: &mut [u64], bytes: u64) -> (u64, u64) {
    if !starts.is_sorted() {
        starts.sort_unstable();
    }
    let distinct = |shift: u32| {
        let pairs = starts.windows(2).filter(|pair| pair[0] >> shift != pair[1] >> shift);
        u64::from(!starts.is_empty()) + pairs.count() as u64
    };
    (distinct(BYTES.trailing_zeros()), (distinct(0) * bytes).div_ceil(BYTES))
}

/// Sectors that an access of a warp touches, and the least number that could hold its bytes: `lanes` are the byte
/// addresses of those that take part, each of which accesses `bytes` bytes.
pub fn request(lanes: &[Option<u64>], bytes: u32) -> (u64, u64) {
    let mut starts: Vec<u64> = lanes.iter().flatten().copied().collect();
    scattered(&mut starts, bytes.into())
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
