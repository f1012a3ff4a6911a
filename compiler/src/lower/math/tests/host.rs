//! The operations on host numbers: the semantics of the PTX instructions, and a count of them.

use super::super::{Ops, Roots};

/// Evaluates operations on `f32` and `u32`, counting those that cost an instruction.
#[derive(Default)]
pub struct Host {
    /// Operations so far.
    pub operations: u32,
}

impl Host {
    fn count<T>(&mut self, value: T) -> T {
        self.operations += 1;
        value
    }
}

impl Roots for Host {
    type F = f32;
    fn sqrt(&mut self, a: f32) -> f32 {
        self.count(a.sqrt())
    }
    fn recip(&mut self, a: f32) -> f32 {
        self.count(1.0 / a)
    }
}

impl Ops for Host {
    type I = u32;
    type P = bool;
    fn float(&mut self, value: f32) -> f32 {
        value
    }
    fn int(&mut self, value: u32) -> u32 {
        value
    }
    fn add(&mut self, a: f32, b: f32) -> f32 {
        self.count(a + b)
    }
    fn sub(&mut self, a: f32, b: f32) -> f32 {
        self.count(a - b)
    }
    fn mul(&mut self, a: f32, b: f32) -> f32 {
        self.count(a * b)
    }
    fn fma(&mut self, a: f32, b: f32, c: f32) -> f32 {
        self.count(a.mul_add(b, c))
    }
    fn abs(&mut self, a: f32) -> f32 {
        self.count(a.abs())
    }
    fn copysign(&mut self, a: f32, sign: f32) -> f32 {
        self.count(a.copysign(sign))
    }
    fn min(&mut self, a: f32, b: f32) -> f32 {
        let least = if a.is_nan() || b.is_nan() { f32::NAN } else { a.min(b) };
        self.count(least)
    }
    fn max(&mut self, a: f32, b: f32) -> f32 {
        let most = if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) };
        self.count(most)
    }
    fn lt(&mut self, a: f32, b: f32) -> bool {
        self.count(a < b)
    }
    fn eq(&mut self, a: f32, b: f32) -> bool {
        self.count(a == b)
    }
    fn select(&mut self, p: bool, yes: f32, no: f32) -> f32 {
        self.count(if p { yes } else { no })
    }
    fn bits(&mut self, a: f32) -> u32 {
        a.to_bits()
    }
    fn float_of(&mut self, a: u32) -> f32 {
        f32::from_bits(a)
    }
    fn int_add(&mut self, a: u32, b: u32) -> u32 {
        self.count(a.wrapping_add(b))
    }
    fn int_sub(&mut self, a: u32, b: u32) -> u32 {
        self.count(a.wrapping_sub(b))
    }
    fn and(&mut self, a: u32, b: u32) -> u32 {
        self.count(a & b)
    }
    fn is_nonzero(&mut self, a: u32) -> bool {
        self.count(a != 0)
    }
    fn xor(&mut self, a: u32, b: u32) -> u32 {
        self.count(a ^ b)
    }
    fn shl(&mut self, a: u32, by: u32) -> u32 {
        self.count(a << by)
    }
    fn shr(&mut self, a: u32, by: u32) -> u32 {
        self.count(((a as i32) >> by) as u32)
    }
    fn to_float(&mut self, a: u32) -> f32 {
        self.count(a as i32 as f32)
    }
    fn ex2_approx(&mut self, a: f32) -> f32 {
        self.count(f64::from(a).exp2() as f32)
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
