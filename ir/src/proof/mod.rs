//! A separate checker of finished kernels: runs every thread of every block of one launch on index values, and reports
//! the first thing that is wrong. It shares no rule with the rooms that derived the kernel: it knows `kernel_ir`, and
//! what the machine does.
//!
//! | property | holds if |
//! | --- | --- |
//! | coverage | every element of every tensor that the kernel writes is written exactly once, by threads or copies; or atomic updates alone access the tensor, and what they come to is a question of data |
//! | bounds | every load, store and copy stays inside its tensor, buffer and slot, at an address that its width divides |
//! | workspaces | what is zero at first is zero at the end, and every counter |
//! | initialisation | every element that is read from a workspace was written; every element that is read from shared memory was written or copied in the buffer's current instance, and no copy takes an element to a tensor twice |
//! | order | two accesses of an element by different agents, one of which writes, are ordered (below), or both are atomic updates |
//! | progress | every wait for a phase ends, with as many arrivals and bytes as are expected, whichever agent is faster; nothing is under way at the end |
//! | launches | what other launches may access is accessed after a wait for them, if the launch may begin before they have ended |
//! | presence | memory of another block of a cluster is accessed after its start, and it ends after that |
//! | control | all threads come to the statements that are for all threads |
//!
//! **Order** (docs/theory.md, Synchronisation). Agents are the threads, the elected one, and the copies. What a thread
//! did before a [`BarSync`] comes before what any does after it. A copy to shared memory begins with its issue, and has
//! ended, for every thread, after the [`MbarrierWait`] of its phase; a copy from shared memory has ended, for the
//! elected thread, after the [`BulkWaitGroupRead`] that covers its group. A copy sees what threads wrote before a
//! [`FenceProxyAsync`] before a [`BarSync`]. The fetches that a thread commits together are one agent: they begin with
//! their issue, have ended for that thread after its [`CpAsyncWaitGroup`] that covers them, and for others after a
//! [`BarSync`] after that; what a [`CpAsyncMbarrierArrive`] covers has ended for whoever waits for its phase. A
//! product reads from its issue to the [`WgmmaWaitGroup`] that covers its group, and sees what copies see. Blocks have
//! no order, but by [`LastBlockTicket`]: it releases what the first thread did, and what others did before a
//! [`BarSync`] before it, if it is said to release; the first thread of a block that arrives there later sees that, if
//! it is said to acquire, and others after a [`BarSync`] or [`BarRedOr`] after that. Shared memory is looked at by
//! addresses, so that buffers may share it.
//!
//! **Agents.** The blocks of a cluster run at one time, and so do the roles of a block: each is an agent with a program
//! of its own, which runs until it waits for another one; nobody can go on is a violation. What an agent knows of
//! others is a vector clock. [`BarrierCluster`] makes everything known to all, or in a role to it in all blocks. A
//! [`MbarrierArrive`] is a [`BarWarpSync`] and hands on what the agent knows and did; to another block, that accesses
//! are over, and nothing of what was written (its scope is the block). Who waits for a phase learns what those knew
//! that arrived in it, and of who issued its copies only how far they had come: the end of a copy orders no other
//! access. At the end of [`Roles`] all threads meet. Inside an agent order is as above; and what its threads did before
//! they arrived in a phase comes before what any of them does after it has waited for that phase, or for a later one
//! that follows from it through other agents.
//!
//! **Phases.** Parities tell two phases apart, so a protocol is right only if no wait can meet a phase two further on.
//! The checker demands that of the clocks, not of the order in which it runs agents (see `barriers`), so that one run
//! stands for all.
//!
//! **Time.** Statements for all threads are points that all pass; between them, the order in which threads are
//! simulated decides nothing, since accesses on the same side of the same barriers are compared whichever came first.
//!
//! **What is unknown.** What memory holds, scalars, and floats. A condition that depends on it is taken both ways, an
//! access whose place or existence depends on it is [`Verdict::Undecided`] unless it is right either way; sums of
//! data-independent indices are exact.
//!
//! **Data.** [`check`] does not look at whether the element that is read is the one that is meant. [`check_values`]
//! runs the same kernel on drawn data in an algebra of terms (`values`), where all of this holds and nothing is
//! unknown, and compares every output with the algorithm.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `run`, `agent` | agents in turn, statement by statement |
//! | `row`, `line` | values of all threads; those that have a pattern |
//! | `access`, `copies`, `global`, `shared`, `blocks` | accesses, by threads and by the accelerator; tensors; buffers of a block; memory that blocks share |
//! | `order` | what agents know of each other, and what separates accesses |
//! | `products` | products of matrices, by tensor cores |
//! | `barriers` | phases, groups, and which copies are over |
//! | `launch` | one launch: sizes, tensors, maps |
//! | `values` | data in an algebra of terms, against the algorithm |
//! | `paths` | single threads at large sizes |
//! | `violation` | what can be wrong |
//!
//! [`BarSync`]: crate::kernel_ir::StatementKind::BarSync
//! [`MbarrierWait`]: crate::kernel_ir::StatementKind::MbarrierWait
//! [`BulkWaitGroupRead`]: crate::kernel_ir::StatementKind::BulkWaitGroupRead
//! [`CpAsyncWaitGroup`]: crate::kernel_ir::StatementKind::CpAsyncWaitGroup
//! [`CpAsyncMbarrierArrive`]: crate::kernel_ir::StatementKind::CpAsyncMbarrierArrive
//! [`WgmmaWaitGroup`]: crate::kernel_ir::StatementKind::WgmmaWaitGroup
//! [`FenceProxyAsync`]: crate::kernel_ir::StatementKind::FenceProxyAsync
//! [`LastBlockTicket`]: crate::kernel_ir::StatementKind::LastBlockTicket
//! [`BarrierCluster`]: crate::kernel_ir::StatementKind::BarrierCluster
//! [`MbarrierArrive`]: crate::kernel_ir::StatementKind::MbarrierArrive
//! [`BarWarpSync`]: crate::kernel_ir::StatementKind::BarWarpSync
//! [`Roles`]: crate::kernel_ir::StatementKind::Roles
//! [`BarRedOr`]: crate::kernel_ir::StatementKind::BarRedOr

mod access;
mod agent;
mod barriers;
mod blocks;
mod copies;
mod global;
mod launch;
mod line;
mod order;
mod paths;
mod products;
mod row;
mod run;
mod shared;
mod values;
mod violation;

#[cfg(test)]
mod clusters_tests;
#[cfg(test)]
pub(crate) mod roles_tests;
#[cfg(test)]
mod tests;

pub use launch::{Launch, NoLaunch, Tensor, Tiles};
pub use violation::{Kind, Violation};

use tilewright_kernel::algorithm::Algorithm;

use crate::kernel_ir::{Kernel, ValueId};

/// What the checker found out about one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every property holds.
    Holds,
    /// The first thing that is wrong.
    Violated(Violation),
    /// Nothing is known to be wrong, but this depends on data.
    Undecided(Violation),
    /// The budget is used up; nothing is known to be wrong so far.
    Exhausted,
}

/// Checks a kernel that [`verify`](crate::kernel_ir::verify()) accepts, under a launch. `budget` bounds the work, in
/// operations of one thread and elements of one copy: some ten million of them are a second in a build without
/// optimisation.
pub fn check(kernel: &Kernel, launch: &Launch, budget: u64) -> Verdict {
    verdict(run::Run::new(kernel, launch, budget, None))
}

/// The same on drawn data: every property, and that what is stored is what the algorithm says, for any order and
/// bracketing that the numeric contract leaves open. Where a condition depends on data, one way is taken.
pub fn check_values(kernel: &Kernel, launch: &Launch, algorithm: &Algorithm, seed: u64, budget: u64) -> Verdict {
    let data = values::Data::new(algorithm, launch, seed);
    verdict(run::Run::new(kernel, launch, budget, Some(data)))
}

/// Looks at the indices of a sample of threads in a sample of iterations, under a launch of any size: what [`check`]
/// does for all of them under a small one.
pub fn check_paths(kernel: &Kernel, launch: &Launch, seed: u64, paths: u64) -> Verdict {
    paths::run(kernel, launch, seed, paths).map_or_else(Verdict::Violated, |()| Verdict::Holds)
}

/// The values of index integers on the paths of [`check_paths`], one after the other, for those who claim bounds of
/// them. A mistake on a path ends the paths.
pub fn watch_paths(
    kernel: &Kernel,
    launch: &Launch,
    seed: u64,
    paths: u64,
    look: &mut dyn FnMut(ValueId, i64),
) -> Verdict {
    paths::watched(kernel, launch, (seed, paths), look).map_or_else(Verdict::Violated, |()| Verdict::Holds)
}

fn verdict(run: run::Outcome<run::Run<'_>>) -> Verdict {
    match run.and_then(run::Run::all) {
        Ok(None) => Verdict::Holds,
        Ok(Some(violation)) | Err(Stop::Undecided(violation)) => Verdict::Undecided(violation),
        Err(Stop::Violated(violation)) => Verdict::Violated(violation),
        Err(Stop::Exhausted) => Verdict::Exhausted,
    }
}

/// Why the run stops early.
#[derive(Clone, Debug)]
enum Stop {
    Violated(Violation),
    Undecided(Violation),
    Exhausted,
}
