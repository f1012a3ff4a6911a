//! The reference against brute force: every bracketing of small sums, random members of random sets, plain Rust.

mod kernels;
mod sets;
