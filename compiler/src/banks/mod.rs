//! Banks: how long each access of shared memory takes, and which layout would make it shorter.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `count` | the one count of bank conflicts |
//! | `conflicts` | who accesses each buffer, how long that takes, what would take less |

pub mod conflicts;
pub mod count;
