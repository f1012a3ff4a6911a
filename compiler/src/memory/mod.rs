//! Memory: what each access looks like to the machine: vectors, asynchronous copies by threads, bank conflicts.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `access` | every access of a tensor by a stage, as expressions over dimensions and leaves |
//! | `vector` | which lanes of a vectorised axis are one access |
//! | `check`, `finding` | the verdict on it: proved, refuted with a witness, or open; the causes |
//! | `multiples` | facts that would make an expression a multiple: what a message proposes |
//! | `buffer` | how many lanes of a vector stay together in a buffer |
//! | `fetch` | what one `cp.async` of a stage moves |
//! | `banks` | the one count of bank conflicts |
//! | `conflicts` | who accesses each buffer, how long that takes, what would take less |

pub mod access;
pub mod banks;
pub mod buffer;
pub mod check;
pub mod conflicts;
pub mod fetch;
mod finding;
pub mod multiples;
pub mod vector;
