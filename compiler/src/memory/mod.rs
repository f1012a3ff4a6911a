//! Memory: what each access looks like to the machine. Today: vectors of global memory.

pub mod access;
pub mod check;
mod finding;
pub mod multiples;
pub mod vector;
