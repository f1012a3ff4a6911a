//! Memory: what each access looks like to the machine: vectors, asynchronous copies by threads, bank conflicts.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `check`, `finding` | the verdict on it: proved, refuted with a witness, or open; the causes |
//! | `multiples` | facts that would make an expression a multiple: what a message proposes |
//! | `buffer` | vectors that the padding of a layout takes apart |
//! | `fetch` | what one `cp.async` of a stage moves |
//! | `banks` | the one count of bank conflicts |
//! | `conflicts` | who accesses each buffer, how long that takes, what would take less |

pub mod banks;
pub mod buffer;
pub mod check;
pub mod conflicts;
pub mod fetch;
mod finding;
pub mod multiples;
#[cfg(test)]
mod tests;
