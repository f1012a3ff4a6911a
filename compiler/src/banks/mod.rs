//! What is right and slow: how long each access of memory takes, who has work, and what would make it faster.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `count` | the one count of bank conflicts |
//! | `conflicts` | who accesses each buffer, how long that takes, what would take less |
//! | `alone` | launches of one block or of one thread for work of any size |
//! | `sectors` | the sectors of global memory that each access touches, and what would touch fewer |

pub mod alone;
pub mod conflicts;
pub mod count;
pub mod sectors;
#[cfg(test)]
mod tests;
