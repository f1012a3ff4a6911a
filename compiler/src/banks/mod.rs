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

/// How stages use banks, and what is worth saying of speed, found in parts of which none needs another one.
pub struct Parts<'a> {
    /// The kernel.
    pub program: &'a Program,
    /// What is known of its dimensions.
    pub facts: &'a Facts,
    /// Its stages.
    pub analysed: &'a [Analysed],
    /// Whether its launch has roles.
    pub has_roles: bool,
}

/// What one part found: how stages, by position, use banks.
pub type Found = (Vec<(usize, Use)>, Diagnostics);

impl Parts<'_> {
    /// How many there are: the buffers in the loops of each stage, and the rest.
    pub const fn count(&self) -> usize {
        self.analysed.len() + 1
    }

    /// What the nth part finds.
    pub fn find(&self, n: usize) -> Found {
        let Self { program, facts, analysed, has_roles } = *self;
        let mut diags = Diagnostics::new();
        if n < analysed.len() {
            return (conflicts::find(program, facts, (analysed, n), &mut diags), diags);
        }
        sectors::find(program, facts, analysed, &mut diags);
        alone::find(program, analysed, has_roles, &mut diags);
        (Vec::new(), diags)
    }

    /// What all of them found, for each stage.
    pub fn all(&self, found: impl IntoIterator<Item = Found>) -> (Vec<Vec<Use>>, Diagnostics) {
        let mut of_stages: Vec<Vec<Use>> = self.analysed.iter().map(|_| Vec::new()).collect();
        let mut diags = Diagnostics::new();
        for (uses, own) in found {
            uses.into_iter().for_each(|(by, used)| of_stages[by].push(used));
            diags.append(own);
        }
        (of_stages, diags)
    }
}
