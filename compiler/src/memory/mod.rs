//! Memory: what each access looks like to the machine: vectors, and asynchronous copies by threads.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `check`, `finding` | the verdict on it: proved, refuted with a witness, or open; the causes |
//! | `alignment` | what base addresses are multiples of |
//! | `multiples` | facts that would make an expression a multiple: what a message proposes |
//! | `buffer` | vectors that the padding of a layout takes apart |
//! | `fetch` | what one `cp.async` of a stage moves |

pub mod alignment;
pub mod buffer;
pub mod check;
pub mod fetch;
mod finding;
pub mod multiples;
#[cfg(test)]
mod tests;
