//! The stream of numbers that turns are drawn from, and the choice of one warp among those that can run.

/// A deterministic stream of numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn new(seed: u64, cta: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ cta.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        random.next();
        random
    }

    /// SplitMix64.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    #[inline]
    pub(super) fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }
}

/// The place of a number's `n`-th one, from 0; there must be more ones than `n`.
#[inline]
pub(super) fn nth_one(bits: u32, n: u32) -> usize {
    // By bytes and a table: what is drawn is not foreseeable, and neither would be the branches of a loop.
    let (mut n, mut rest, mut at) = (n, bits, 0);
    loop {
        let byte = rest & 0xff;
        let ones = u32::from(ONES[byte as usize]);
        if n < ones {
            return at + usize::from(NTH_ONE[byte as usize][n as usize]);
        }
        n -= ones;
        rest >>= 8;
        at += 8;
    }
}

/// How many ones a number has. Not every host counts them in one step, and mostly they are all in the lowest byte.
#[inline]
pub(super) fn ones(bits: u32) -> u32 {
    let mut sum = u32::from(ONES[(bits & 0xff) as usize]);
    let mut rest = bits >> 8;
    while rest != 0 {
        sum += u32::from(ONES[(rest & 0xff) as usize]);
        rest >>= 8;
    }
    sum
}

/// How many ones each byte has.
const ONES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).count_ones() as u8;
        byte += 1;
    }
    table
};

/// The places of each byte's ones.
const NTH_ONE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut place, mut n) = (0, 0);
        while place < 8 {
            if byte >> place & 1 == 1 {
                table[byte][n] = place;
                n += 1;
            }
            place += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::nth_one;

    #[test]
    fn places_of_ones() {
        for bits in [1, 0xff, 0x8000_0001, 0xdead_beef, u32::MAX, 0x0001_0000] {
            let places: Vec<usize> = (0..32).filter(|place| bits >> place & 1 == 1).collect();
            let found: Vec<usize> = (0..bits.count_ones()).map(|n| nth_one(bits, n)).collect();
            assert_eq!(found, places, "{bits:#x}");
        }
    }
}
