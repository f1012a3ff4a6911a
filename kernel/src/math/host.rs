//! The operations on host numbers: what the PTX instructions compute, bit by bit, but for which NaN a NaN is. The
//! approximate instructions are the only ones whose results differ between machines; here they are nearly exact.

use super::ops::{Ops, Single};

/// Evaluates math functions on `f32` or `f64` numbers, and counts operations.
///
/// ```
/// use tilewright_kernel::math::{self, Host};
/// assert_eq!(math::exp(&mut Host::<f32>::default(), 0.0), 1.0);
/// assert_eq!(math::double::cos(&mut Host::<f64>::default(), 0.0), 1.0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Host<T> {
    /// Operations so far that cost an instruction.
    pub operations: u32,
    width: std::marker::PhantomData<T>,
}

impl<T> Host<T> {
    fn count<R>(&mut self, value: R) -> R {
        self.operations += 1;
        value
    }
}

macro_rules! host {
    ($float:ident, $word:ident, $signed:ident, $product:ident) => {
        impl Ops for Host<$float> {
            type Number = $float;
            type Word = $word;
            type F = $float;
            type I = $word;
            type P = bool;

            fn float(&mut self, value: $float) -> $float {
                value
            }
            fn int(&mut self, value: $word) -> $word {
                value
            }
            fn add(&mut self, a: $float, b: $float) -> $float {
                self.count(a + b)
            }
            fn sub(&mut self, a: $float, b: $float) -> $float {
                self.count(a - b)
            }
            fn mul(&mut self, a: $float, b: $float) -> $float {
                self.count(a * b)
            }
            fn div(&mut self, a: $float, b: $float) -> $float {
                self.count(a / b)
            }
            fn fma(&mut self, a: $float, b: $float, c: $float) -> $float {
                self.count(a.mul_add(b, c))
            }
            fn sqrt(&mut self, a: $float) -> $float {
                self.count(a.sqrt())
            }
            fn recip(&mut self, a: $float) -> $float {
                self.count(1.0 / a)
            }
            fn abs(&mut self, a: $float) -> $float {
                self.count(a.abs())
            }
            fn copysign(&mut self, a: $float, sign: $float) -> $float {
                self.count(a.copysign(sign))
            }
            fn min(&mut self, a: $float, b: $float) -> $float {
                let least = if a.is_nan() || b.is_nan() { $float::NAN } else { a.min(b) };
                self.count(least)
            }
            fn max(&mut self, a: $float, b: $float) -> $float {
                let most = if a.is_nan() || b.is_nan() { $float::NAN } else { a.max(b) };
                self.count(most)
            }
            fn lt(&mut self, a: $float, b: $float) -> bool {
                self.count(a < b)
            }
            fn eq(&mut self, a: $float, b: $float) -> bool {
                self.count(a == b)
            }
            fn select(&mut self, p: bool, yes: $float, no: $float) -> $float {
                self.count(if p { yes } else { no })
            }
            fn bits(&mut self, a: $float) -> $word {
                a.to_bits()
            }
            fn float_of(&mut self, a: $word) -> $float {
                $float::from_bits(a)
            }
            fn int_add(&mut self, a: $word, b: $word) -> $word {
                self.count(a.wrapping_add(b))
            }
            fn int_sub(&mut self, a: $word, b: $word) -> $word {
                self.count(a.wrapping_sub(b))
            }
            fn int_mul(&mut self, a: $word, b: $word) -> $word {
                self.count(a.wrapping_mul(b))
            }
            fn mul_high(&mut self, a: $word, b: $word) -> $word {
                self.count(($product::from(a) * $product::from(b) >> $word::BITS) as $word)
            }
            fn and(&mut self, a: $word, b: $word) -> $word {
                self.count(a & b)
            }
            fn or(&mut self, a: $word, b: $word) -> $word {
                self.count(a | b)
            }
            fn xor(&mut self, a: $word, b: $word) -> $word {
                self.count(a ^ b)
            }
            fn shl(&mut self, a: $word, by: u32) -> $word {
                self.count(a << by)
            }
            fn shr(&mut self, a: $word, by: u32) -> $word {
                self.count((a as $signed >> by) as $word)
            }
            fn shr_logical(&mut self, a: $word, by: u32) -> $word {
                self.count(a >> by)
            }
            fn shl_by(&mut self, a: $word, by: $word) -> $word {
                // Machines give 0 where the width is reached.
                self.count(a.checked_shl(by as u32).unwrap_or(0))
            }
            fn shr_by(&mut self, a: $word, by: $word) -> $word {
                self.count(a.checked_shr(by as u32).unwrap_or(0))
            }
            fn is_nonzero(&mut self, a: $word) -> bool {
                self.count(a != 0)
            }
            fn int_below(&mut self, a: $word, b: $word) -> bool {
                self.count(a < b)
            }
            fn int_select(&mut self, p: bool, yes: $word, no: $word) -> $word {
                self.count(if p { yes } else { no })
            }
            fn to_float(&mut self, a: $word) -> $float {
                self.count(a as $signed as $float)
            }
            fn rarely<const N: usize>(
                &mut self,
                p: bool,
                usual: ([$float; N], $word),
                rare: impl FnOnce(&mut Self) -> ([$float; N], $word),
            ) -> ([$float; N], $word) {
                self.operations += 1;
                if p { rare(self) } else { usual }
            }
        }
    };
}

host!(f32, u32, i32, u64);
host!(f64, u64, i64, u128);

impl Single for Host<f32> {
    type WideF = f64;
    type WideI = u64;
    type Wide<'a> = Host<f64>;

    fn widen(&mut self, a: f32) -> f64 {
        self.count(f64::from(a))
    }
    fn narrow(&mut self, a: f64) -> f32 {
        self.count(a as f32)
    }
    fn low(&mut self, a: u64) -> u32 {
        self.count(a as u32)
    }
    fn wide<R>(&mut self, f: impl FnOnce(&mut Host<f64>) -> R) -> R {
        let mut wide = Host { operations: self.operations, width: std::marker::PhantomData };
        let result = f(&mut wide);
        self.operations = wide.operations;
        result
    }
    fn ex2_approx(&mut self, a: f32) -> f32 {
        let power = f64::from(a).exp2() as f32;
        self.count(if power.is_subnormal() { 0.0 } else { power })
    }
    fn lg2_approx(&mut self, a: f32) -> f32 {
        self.count(f64::from(a).log2() as f32)
    }
    fn sqrt_approx(&mut self, a: f32) -> f32 {
        self.count(a.sqrt())
    }
    fn rsqrt_approx(&mut self, a: f32) -> f32 {
        self.count((1.0 / f64::from(a).sqrt()) as f32)
    }
    fn tanh_approx(&mut self, a: f32) -> f32 {
        self.count(f64::from(a).tanh() as f32)
    }
    fn sin_approx(&mut self, a: f32) -> f32 {
        self.count(f64::from(a).sin() as f32)
    }
    fn cos_approx(&mut self, a: f32) -> f32 {
        self.count(f64::from(a).cos() as f32)
    }
}
