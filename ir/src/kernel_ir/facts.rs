//! What is known of a value: ranges of index integers and agreement between threads.

/// An interval of mathematical integers, both ends included. The ends of `i64` also stand for "unbounded".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Smallest.
    pub low: i64,
    /// Largest.
    pub high: i64,
}

impl Range {
    /// No knowledge.
    pub const ALL: Self = Self { low: i64::MIN, high: i64::MAX };
    /// Not negative.
    pub const NON_NEGATIVE: Self = Self { low: 0, high: i64::MAX };

    /// An interval.
    pub const fn new(low: i64, high: i64) -> Self {
        Self { low, high }
    }

    /// One integer.
    pub const fn point(value: i64) -> Self {
        Self { low: value, high: value }
    }

    /// Whether nothing in it is negative.
    pub const fn is_non_negative(self) -> bool {
        self.low >= 0
    }

    /// Integers in both.
    pub fn intersect(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// The smallest interval around both.
    pub fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    fn clamped(low: i128, high: i128) -> Self {
        let clamp = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        Self { low: clamp(low), high: clamp(high) }
    }

    /// a + b
    pub fn sum(self, other: Self) -> Self {
        let end = |a: i64, b: i64, open: i64| {
            if a == open || b == open { i128::from(open) } else { i128::from(a) + i128::from(b) }
        };
        Self::clamped(end(self.low, other.low, i64::MIN), end(self.high, other.high, i64::MAX))
    }

    /// −a
    pub fn negated(self) -> Self {
        let flip = |v: i64| {
            if v == i64::MIN {
                i64::MAX
            } else if v == i64::MAX {
                i64::MIN
            } else {
                -v
            }
        };
        Self { low: flip(self.high), high: flip(self.low) }
    }

    /// a · b
    pub fn product(self, other: Self) -> Self {
        // An unbounded end times anything but 0 is beyond the ends again, so plain products clamp to the right answer,
        // with one exception: unbounded times a small number. Ends of i64 are read as ±2^100 to cover it.
        let wide = |v: i64| {
            if v == i64::MIN {
                -(1_i128 << 100)
            } else if v == i64::MAX {
                1_i128 << 100
            } else {
                i128::from(v)
            }
        };
        let (a, b, c, d) = (wide(self.low), wide(self.high), wide(other.low), wide(other.high));
        let ends = [a, b].map(|x| [c, d].map(|y| x.saturating_mul(y)));
        let all = ends.iter().flatten();
        Self::clamped(all.clone().copied().min().unwrap_or(0), all.copied().max().unwrap_or(0))
    }

    /// ⌊a / b⌋ for b > 0
    pub fn quotient(self, other: Self) -> Self {
        let (small, large) = (other.low.max(1), other.high.max(1));
        let low =
            if self.low == i64::MIN { i64::MIN } else { self.low.div_euclid(if self.low < 0 { small } else { large }) };
        let high = if self.high == i64::MAX {
            i64::MAX
        } else {
            self.high.div_euclid(if self.high < 0 { large } else { small })
        };
        Self { low, high }
    }

    /// a − b·⌊a / b⌋ for b > 0
    pub fn remainder(self, other: Self) -> Self {
        let most = other.high.max(1) - 1;
        Self { low: 0, high: if self.is_non_negative() { most.min(self.high) } else { most } }
    }

    /// Bits of non-negative numbers combined by and, or (for exclusive or) by xor.
    pub fn bits(self, other: Self, and: bool) -> Self {
        if and && (self.is_non_negative() || other.is_non_negative()) {
            let ends = [self, other].into_iter().filter(|r| r.is_non_negative()).map(|r| r.high);
            return Self { low: 0, high: ends.min().unwrap_or(i64::MAX) };
        }
        if self.is_non_negative() && other.is_non_negative() {
            let top = self.high.max(other.high);
            let mask = if top == 0 { 0 } else { i64::MAX >> (top.leading_zeros().max(1) - 1) };
            return Self { low: 0, high: mask };
        }
        Self::ALL
    }
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Of an index integer: what it can be, wherever its value matters.
    pub range: Range,
    /// Whether all threads of a block that evaluate it together see the same.
    pub uniform: bool,
    /// Whether those of all blocks of a cluster do.
    pub cluster: bool,
}

impl Facts {
    /// Nothing known.
    pub const NONE: Self = Self { range: Range::ALL, uniform: false, cluster: false };
}

#[cfg(test)]
mod tests {
    use super::Range;

    /// Every result of small operands lies in the range of the ranges.
    #[test]
    fn ranges_cover_every_result() {
        for (al, ah, bl, bh) in (0..10_000).map(|n| (n % 10 - 5, n / 10 % 10 - 5, n / 100 % 10 - 5, n / 1000 - 5)) {
            let (a, b) = (Range::new(al, ah), Range::new(bl, bh));
            for x in al..=ah {
                for y in bl..=bh {
                    let check = |r: Range, v: i64, what: &str| {
                        assert!(r.low <= v && v <= r.high, "{x} {what} {y}: {v} outside {r:?}, from {a:?} and {b:?}");
                    };
                    check(a.sum(b), x + y, "+");
                    check(a.sum(b.negated()), x - y, "-");
                    check(a.product(b), x * y, "*");
                    check(a.bits(b, true), x & y, "&");
                    check(a.bits(b, false), x ^ y, "^");
                    if bl > 0 {
                        check(a.quotient(b), x.div_euclid(y), "/");
                        check(a.remainder(b), x.rem_euclid(y), "%");
                    }
                }
            }
        }
    }

    #[test]
    fn unbounded_ends_stay_unbounded() {
        assert_eq!(Range::NON_NEGATIVE.sum(Range::point(-3)), Range::new(-3, i64::MAX));
        assert_eq!(Range::ALL.product(Range::new(1, 1)), Range::ALL);
        assert_eq!(Range::ALL.quotient(Range::point(1000)), Range::ALL);
        assert_eq!(Range::NON_NEGATIVE.negated(), Range::new(i64::MIN, 0));
        assert_eq!(Range::NON_NEGATIVE.product(Range::new(-1, 0)), Range::new(i64::MIN, 0));
    }
}
