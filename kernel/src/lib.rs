//! A GPU kernel as plain data, and the pure rules over that data.
//!
//! This leaf crate is what the compiler (which writes a [`KernelInfo`]), the launcher and the emulator (which read it),
//! and the command line share. It has no dependencies and analyses nothing: a rule is a formula over sizes, a
//! [`Constraint`], that the compiler proves, refutes, or writes into the kernel's table for the launcher to evaluate.
//!
//! | room | holds |
//! | --- | --- |
//! | [`element`] | element types |
//! | [`mod@format`] | float formats: bits, values, rounding |
//! | [`storage`] | `e4m3`, `e5m2`, `tf32` as Rust types |
//! | [`size`] | symbolic sizes, constraints, their evaluation |
//! | [`algorithm`] | what a kernel computes: typed equations without a schedule |
//! | [`math`] | error bounds of the math functions |
//! | [`online`] | when sums that depend on an extreme are taken in one pass with it |
//! | [`info`] | the kernel: parameters, facts, launch shape, PTX, explanation |
//! | [`mod@print`] | an algorithm as text |
//! | [`descriptor`] | matrices in shared memory, as tensor cores read them |
//! | [`banks`], [`sectors`] | what an access of a warp takes in shared and in global memory |
//! | [`target`] | what the machine can hold |
//! | [`assembler`] | what the log of NVIDIA's assembler tells |
//! | [`tensor_map`] | tensor maps: their rules, bits and swizzles |
//! | [`workers`] | independent work on the host's threads |
//! | [`rules`] | rules over concrete values: strides, overlap, extents in bytes, binding of dimensions |
//!
//! Every list is a `Cow<'static, [_]>`: the macro emits statics, the command line passes owned values to the same
//! launcher.
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod assembler;
pub mod banks;
pub mod cluster;
pub mod descriptor;
pub mod dot;
pub mod element;
pub mod format;
pub mod info;
pub mod math;
pub mod online;
pub mod print;
pub mod rules;
pub mod sectors;
pub mod size;
pub mod storage;
pub mod target;
pub mod tensor_map;
pub mod workers;

pub use algorithm::Algorithm;
pub use element::ElementType;
pub use info::KernelInfo;
pub use size::{Constraint, Relation, Size, SizeError, SizeOp};

/// A list that is either a static of an expanded macro or an owned value.
pub type List<T> = std::borrow::Cow<'static, [T]>;
/// A text that is either a static of an expanded macro or an owned value.
pub type Text = std::borrow::Cow<'static, str>;
