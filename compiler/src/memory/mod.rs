//! Memory: what each access looks like to the machine. Today: vectors of global memory.

pub mod access;
pub mod check;
pub mod fetch;
mod finding;
pub mod multiples;
pub mod vector;
