//! Tensor cores: where the elements of a matrix are in the registers of a warp (`fragment`, as tables in `places`), and
//! what a product and sum is (`model`).
//!
//! The manual leaves order and intermediate rounding of a floating-point product open, so there are several models: a
//! fast one for structure tests, and bit models of two architectures. Integer and f64 products have one meaning.

pub mod fragment;
pub mod model;
pub mod places;

#[cfg(test)]
mod tests;

/// The element type of a factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// f16.
    F16,
    /// bf16.
    Bf16,
    /// tf32: the upper 19 bits of a 32-bit register.
    Tf32,
    /// e4m3.
    E4m3,
    /// e5m2.
    E5m2,
    /// f64.
    F64,
    /// An integer of 8 or 4 bits.
    Int {
        /// Its size.
        bits: u32,
        /// Two's complement.
        signed: bool,
    },
    /// Single bits, 32 of them to an element here.
    Bits,
}

impl Element {
    /// Bits that an element takes in a register.
    pub const fn bits(self) -> u32 {
        match self {
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 | Element::Bits => 32,
            Element::E4m3 | Element::E5m2 => 8,
            Element::F64 => 64,
            Element::Int { bits, .. } => bits,
        }
    }
}

/// The element type of an accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sum {
    /// f16.
    F16,
    /// f32.
    F32,
    /// f64.
    F64,
    /// s32.
    S32,
}

impl Sum {
    /// Bits that an element takes in a register.
    pub const fn bits(self) -> u32 {
        match self {
            Sum::F16 => 16,
            Sum::F32 | Sum::S32 => 32,
            Sum::F64 => 64,
        }
    }
}

/// A product and sum `D = A·B + C` of small matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    /// Rows of A and D.
    pub m: usize,
    /// Columns of B and D.
    pub n: usize,
    /// Columns of A and rows of B, in elements; for [`Element::Bits`] in groups of 32.
    pub k: usize,
    /// Elements of A.
    pub a: Element,
    /// Elements of B.
    pub b: Element,
    /// Elements of C.
    pub c: Sum,
    /// Elements of D.
    pub d: Sum,
    /// Integer sums are clamped instead of wrapped.
    pub saturate: bool,
    /// Bits are combined by and instead of exclusive or.
    pub and: bool,
    /// Rounding of f64 products.
    pub round: crate::num::format::Round,
}
