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

use crate::diag::Diagnostics;
use crate::extent::Facts;
use crate::plan::Analysed;
use crate::plan::cycles::Use;
use crate::program::Program;

/// How each stage uses banks, and what is worth saying of speed.
pub fn find(program: &Program, facts: &Facts, analysed: &[Analysed], has_roles: bool) -> (Vec<Vec<Use>>, Diagnostics) {
    let mut found = Diagnostics::new();
    let uses = conflicts::find(program, facts, analysed, &mut found);
    sectors::find(program, facts, analysed, &mut found);
    alone::find(program, analysed, has_roles, &mut found);
    (uses, found)
}
