//! Float products in free order.
//!
//! A `prod` of n factors has relative error at most (n − 1)u / (1 − (n − 1)u) unless a partial product leaves the
//! normal range.

use super::arith;
use super::interval::{Format, Interval, lowest_bit};

/// The factors of a float product so far.
#[derive(Clone, Debug)]
pub(super) struct Prod {
    count: u64,
    /// Encloses the exact product.
    value: Interval,
    /// Bounds of the binary logarithm of any partial product.
    most: f64,
    least: f64,
    /// Bound of the significant bits of the exact product, while every factor was one value.
    bits: Option<i64>,
    /// The product of the first two factors, if each was one value.
    pair: Option<f64>,
    /// Whether some factor was certainly NaN.
    nan: bool,
}

impl Default for Prod {
    fn default() -> Self {
        Self { count: 0, value: Interval::exact(1.0), most: 0.0, least: 0.0, bits: Some(0), pair: None, nan: false }
    }
}

impl Prod {
    pub(super) fn take(&mut self, x: Interval, format: Format) {
        self.count += 1;
        self.nan |= x.is_empty();
        self.bits = match (self.bits, x.single()) {
            (Some(bits), Some(x)) if x.is_finite() && x != 0.0 => {
                // A power of two adds no bits.
                let odd = x.abs() / lowest_bit(x);
                Some(if odd == 1.0 { bits } else { bits + odd.log2().floor() as i64 + 1 })
            }
            (Some(bits), Some(0.0)) => Some(bits),
            _ => None,
        };
        if self.count == 2 {
            self.pair = self.value.single().zip(x.single()).map(|(a, b)| a * b);
        }
        if self.count == 1 {
            self.value = x;
        } else {
            let product = arith::product(self.value, x);
            let outwards = |x: f64, down: bool| match (x.is_finite(), down) {
                (false, _) => x,
                (true, true) => x - Format::F64.ulp(x),
                (true, false) => x + Format::F64.ulp(x),
            };
            let exact =
                self.bits.is_some_and(|b| b <= 53) && product.single().is_some_and(|p| p == 0.0 || p.abs() > 1e-290);
            self.value = if product.is_empty() || exact {
                product
            } else {
                Interval { lo: outwards(product.lo, true), hi: outwards(product.hi, false), nan: product.nan }
            };
        }
        if !x.is_empty() {
            let largest = x.lo.abs().max(x.hi.abs());
            let smallest = if x.has_zero() { 0.0 } else { x.lo.abs().min(x.hi.abs()) };
            self.most += largest.log2().max(0.0);
            // An exact zero makes the product zero; it underflows nothing.
            if x.single() != Some(0.0) {
                self.least += smallest.max(format.min_positive()).log2().min(0.0);
            }
        }
    }

    pub(super) fn finish(&self, format: Format) -> Interval {
        if self.count <= 1 || self.nan {
            return self.value;
        }
        if self.value.is_empty() {
            // In this order a partial product overflowed and then met a zero; in another the zero comes first.
            return Interval::ALL.or_nan(true);
        }
        if let (2, Some(product)) = (self.count, self.pair) {
            return Interval::exact(format.operate(|| product, || product as f32));
        }
        let n = self.count as f64;
        let slack = 1e-6 * (n + self.most - self.least);
        let (overflow, underflow) =
            (self.most + slack >= format.max().log2(), self.least - slack <= format.min_normal().log2());
        let representable = self.bits.is_some_and(|b| b <= i64::from(format.precision()));
        if representable && !overflow && !underflow {
            return self.value;
        }
        let k = (n - 1.0) * format.unit_roundoff();
        if overflow || k >= 0.5 {
            // An infinite partial product times a later zero, or an underflow to zero, is NaN.
            let zero_possible = underflow || self.value.has_zero();
            let signed = |set: Interval| match (self.value.lo >= 0.0, self.value.hi <= 0.0, set) {
                (true, false, s) => s.clamp(0.0, f64::INFINITY),
                (false, true, s) => s.clamp(f64::NEG_INFINITY, 0.0),
                (_, _, s) => s,
            };
            return signed(Interval::ALL).or_nan(self.value.nan || zero_possible && overflow);
        }
        let relative = k / (1.0 - k);
        // Each product that underflows is off by half the smallest number, and the later factors enlarge that.
        let absolute = if underflow { n * format.min_positive() * self.most.exp2() } else { 0.0 };
        let low = |x: f64| x - x.abs() * relative - absolute;
        let high = |x: f64| x + x.abs() * relative + absolute;
        Interval { lo: low(self.value.lo), hi: high(self.value.hi), nan: self.value.nan }
    }
}
