//! Memory: what each access looks like to the machine. Today: vectors of global memory.

pub mod access;
pub mod banks;
pub mod buffer;
pub mod check;
pub mod conflicts;
pub mod fetch;
mod finding;
pub mod multiples;
pub mod vector;
