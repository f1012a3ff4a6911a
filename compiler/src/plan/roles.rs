//! Who makes what is staged, and who reads it: stages, and the roles that run them.

use super::Analysed;
use super::product::Product;
use super::staged::{Staged, Way};
use crate::domain::Unit;
use crate::program::Stage;
use crate::schedule::{self, Attach, taken};

/// The stages that take what a copy holds.
pub(crate) fn consumers(analysed: &[Analysed], staged: &Staged) -> Vec<usize> {
    let takes = |n: &usize| {
        let reads = analysed[*n].accesses.iter().filter(|access| !access.is_write);
        reads.into_iter().any(|access| staged.is_for(access.parameter, access.value))
    };
    under(analysed, &staged.attach).into_iter().map(|(n, _)| n).filter(takes).collect()
}

/// The stages that may read a copy that stands in a loop of the stage with position `at`: itself, and those that stand
/// in loops inside that place; each with the stages around it, from that one on.
pub(crate) fn readers(analysed: &[Analysed], at: usize, copy: &Stage) -> Vec<(usize, Vec<usize>)> {
    let host = &analysed[at].stage;
    // A copy without a place is refused.
    match copy.ast.clauses.at.as_ref().and_then(|at| host.domain.leaf(&at.axis.text)) {
        Some(leaf) => under(analysed, &Attach::new(at, host, leaf, Unit::Cta)),
        None => vec![(at, vec![at])],
    }
}

/// The stages inside a place, each with the stages around it, from the one whose loops the place is in.
pub(crate) fn under(analysed: &[Analysed], place: &Attach) -> Vec<(usize, Vec<usize>)> {
    let stage = |n: usize| analysed.get(n).map(|a| &a.stage);
    let chain = |n: usize| Some((n, schedule::chain_under(&stage, n, place)?));
    // What threads fetch, they fetch from the tensor.
    (0..analysed.len()).filter(|n| !analysed[*n].stage.fetches).filter_map(chain).collect()
}

/// The copies that a stage may read: those that stand in its own loops, then those around it, from the inside out.
pub(crate) fn copies_around(analysed: &[Analysed], at: usize) -> Vec<&Staged> {
    let stage = |n: usize| analysed.get(n).map(|a| &a.stage);
    let copies =
        schedule::ancestors(&stage, at).flat_map(|host| &analysed[host].staged).filter(|copy| copy.way == Way::Load);
    copies.filter(|copy| schedule::chain_under(&stage, at, &copy.attach).is_some()).collect()
}

/// Whether a copy is read by a product that is a block behind: its slots are handed back later than others of the loop.
pub(crate) fn is_read_behind(analysed: &[Analysed], staged: &Staged) -> bool {
    let behind = analysed.iter().filter(|a| a.behind.is_some()).filter_map(|a| a.product.as_ref());
    behind.flat_map(Product::operands).any(|operand| operand.is_in(staged))
}

/// Who makes something, and who reads it: positions among the roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProducerConsumers {
    pub producer: usize,
    /// Who else reads it.
    pub consumers: Vec<usize>,
    /// Whether its producer does, too: its threads wait for each other.
    pub reads_own: bool,
}

impl ProducerConsumers {
    /// Those of a stage; none if its own role alone reads it, in its own block.
    pub fn of_stage(stages: &[Analysed], at: usize) -> Option<Self> {
        let stage = |n: usize| stages.get(n).map(|s: &Analysed| &s.stage);
        let reads = |n: &usize| {
            let mut reads = stages[*n].reads.iter();
            stages[*n].stage.sees.contains(&at)
                && reads.any(|r| taken(&stage, *n, (r.source, r.value), r.in_terms) == Some(at))
        };
        let readers = (0..stages.len()).filter(reads).filter_map(|n| stages[n].stage.role);
        Self::new(stages[at].stage.role?, readers, false)
    }

    /// Those of a copy.
    pub fn of_copy(stages: &[Analysed], staged: &Staged) -> Option<Self> {
        match staged.way {
            Way::Load => {
                let readers = consumers(stages, staged).into_iter().filter_map(|n| stages[n].stage.role);
                Self::new(staged.role?, readers, staged.multicast.is_some())
            }
            Way::Store => Self::new(stages[staged.attach.stage].stage.role?, staged.role.into_iter(), false),
        }
    }

    /// `several` is whether blocks of a cluster make it together: then it is handed to those, whoever reads it there.
    fn new(producer: usize, readers: impl Iterator<Item = usize>, several: bool) -> Option<Self> {
        let mut consumers: Vec<usize> = readers.collect();
        consumers.sort_unstable();
        consumers.dedup();
        let reads_own = consumers.contains(&producer);
        consumers.retain(|role| *role != producer);
        (several || !consumers.is_empty()).then_some(Self { producer, consumers, reads_own })
    }

    /// Whether a role says that it has read a slot. A producer need not say so to itself, but to other blocks that fill
    /// the slot with it.
    pub fn is_released_by(&self, role: usize, several: bool) -> bool {
        self.consumers.contains(&role) || several && self.reads_own && self.producer == role
    }

    /// Whether a role produces or reads it.
    pub fn has(&self, role: usize) -> bool {
        self.producer == role || self.consumers.contains(&role)
    }
}
