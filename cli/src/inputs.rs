//! Random tensors and scalars of types that are known at run time only.

use std::fmt;

use tilewright::kernel::ElementType;
use tilewright::kernel::format::Format;

/// A generator of random numbers (SplitMix64, <https://prng.di.unimi.it/splitmix64.c>): the same on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        // The bias is at most n / 2^64.
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// An integer from 1 to `most`, or its negative.
    fn integer(&mut self, most: u64) -> f64 {
        let drawn = self.below(2 * most.max(1));
        let magnitude = (drawn / 2 + 1) as f64;
        if drawn.is_multiple_of(2) { magnitude } else { -magnitude }
    }

    /// A multiple of 2^-53 in [0, 1).
    pub fn part(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A multiple of 2^-52 in [−2, 2).
    fn float(&mut self) -> f64 {
        (self.bits() >> 10) as f64 / (1_u64 << 52) as f64 - 2.0
    }
}

/// Which numbers a tensor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floats {
    /// Numbers in [−2, 2], of as many digits as the type has.
    Real,
    /// Integers of either sign from 1 to this magnitude: their sums and products need no rounding while they are small,
    /// so that every order gives the same bits. None is zero: a term that is left out would not be seen.
    Integers(u64),
    /// Any bits, of integers as well: infinities, NaN, numbers that are very large or very small, and what wraps;
    /// between these, others as above.
    Any,
}

impl Floats {
    /// One word for the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Integers(_) => "integers",
            Self::Any => "any",
        }
    }

    /// The largest magnitude, of integers.
    pub fn magnitude(self) -> Option<u64> {
        if let Self::Integers(most) = self { Some(most) } else { None }
    }
}

impl fmt::Display for Floats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.write_str("floats are real numbers"),
            Self::Integers(1) => f.write_str("floats are 1 and -1"),
            Self::Integers(most) => write!(f, "floats are integers from 1 to {most} of either sign"),
            Self::Any => f.write_str("numbers are any bits"),
        }
    }
}

/// `count` elements, little-endian: floats in [−2, 2], integers in −8..=8 or 0..=8, `bool` false or true.
pub fn elements(element: ElementType, count: usize, random: &mut Random) -> Vec<u8> {
    elements_with(Floats::Real, element, count, random)
}

/// The same with such floats.
pub fn elements_with(floats: Floats, element: ElementType, count: usize, random: &mut Random) -> Vec<u8> {
    use ElementType as E;
    let format = Format::of(element);
    let size = element.bytes() as usize;
    let mut bytes = Vec::with_capacity(count.saturating_mul(size));
    // NaN has one form, and `tf32` no more digits than it has.
    let plain = |format: Format, bits: u64| format.from_f64(format.value(bits));
    for _ in 0..count {
        let is_any = floats == Floats::Any && element != E::Bool && random.below(2) == 0;
        let bits = match (format, element) {
            (None, _) if is_any => match random.below(4) {
                0 => [0, 1, u64::MAX, 1 << (8 * size - 1), (1 << (8 * size - 1)) - 1][random.below(5) as usize],
                _ => random.bits(),
            },
            (Some(format), _) if is_any => match random.below(8) {
                0 => format.from_f64([f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0][random.below(5) as usize]),
                // The smallest numbers, and the largest ones.
                1 => plain(format, random.below(3)),
                2 => plain(format, (1 << (8 * size - 2)) + random.below(3)),
                _ => plain(format, random.bits() >> (64 - 8 * size)),
            },
            (Some(format), _) => format.from_f64(match floats {
                Floats::Real | Floats::Any => random.float(),
                Floats::Integers(most) => random.integer(most),
            }),
            (None, E::Bool) => random.below(2),
            (None, _) if element.is_signed_integer() => random.below(17).wrapping_sub(8),
            (None, _) => random.below(9),
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_gets_many_different_values_in_its_range() {
        for element in ElementType::ALL {
            let bytes = elements(element, 200, &mut Random::new(3));
            let size = element.bytes() as usize;
            assert_eq!(bytes.len(), 200 * size);
            let mut values: Vec<&[u8]> = bytes.chunks(size).collect();
            values.sort_unstable();
            values.dedup();
            let least = if element == ElementType::Bool { 2 } else { 9 };
            assert!(values.len() >= least, "{element}: {} values", values.len());
        }
        let bytes = elements(ElementType::I16, 500, &mut Random::new(1));
        let all: Vec<i16> = bytes.chunks(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&-8), Some(&8)));
    }

    #[test]
    fn integers_are_exact_in_every_float_type() {
        for element in ElementType::ALL {
            let Some(format) = Format::of(element) else { continue };
            for most in [1, 8] {
                let bytes = elements_with(Floats::Integers(most), element, 500, &mut Random::new(3));
                let size = element.bytes() as usize;
                let value = |b: &[u8]| {
                    let mut bits = [0; 8];
                    bits[..size].copy_from_slice(b);
                    format.value(u64::from_le_bytes(bits)) as i64
                };
                let mut all: Vec<i64> = bytes.chunks(size).map(value).collect();
                all.sort_unstable();
                all.dedup();
                let most = most as i64;
                let expected: Vec<i64> = (-most..=most).filter(|n| *n != 0).collect();
                assert_eq!(all, expected, "{element}");
            }
        }
    }

    /// Of each type the ends, and what is no number; none of it in place of another number that the type has.
    #[test]
    fn any_bits_are_the_ends_too() {
        for element in ElementType::ALL {
            let size = element.bytes() as usize;
            let bytes = elements_with(Floats::Any, element, 4000, &mut Random::new(3));
            let all: Vec<u64> = (bytes.chunks(size))
                .map(|chunk| {
                    let mut bits = [0; 8];
                    bits[..size].copy_from_slice(chunk);
                    u64::from_le_bytes(bits)
                })
                .collect();
            let sign = 1_u64 << (8 * size - 1);
            match Format::of(element) {
                None if element == ElementType::Bool => assert!(all.iter().all(|bits| *bits < 2)),
                None => assert!([0, 1, sign, sign - 1, sign | (sign - 1)].iter().all(|n| all.contains(n)), "{element}"),
                Some(format) => {
                    let values: Vec<f64> = all.iter().map(|bits| format.value(*bits)).collect();
                    assert!(values.iter().any(|v| v.is_nan()), "{element}");
                    let ends = [f64::NEG_INFINITY, f64::INFINITY, 0.0, -0.0].map(|n| format.from_f64(n));
                    assert!(ends.iter().all(|n| all.contains(n)), "{element}");
                    // The smallest number of `tf32` is larger than that of the `f32` in whose bits it stands.
                    assert!(all.contains(&1) || element == ElementType::Tf32, "{element}");
                    assert!(all.iter().zip(&values).all(|(bits, v)| format.from_f64(*v) == *bits), "{element}");
                }
            }
        }
    }

    #[test]
    fn a_seed_gives_one_sequence() {
        let take = |seed| elements(ElementType::F32, 50, &mut Random::new(seed));
        assert_eq!(take(5), take(5));
        assert_ne!(take(5), take(6));
    }
}
