//! Who runs what: the threads of a cluster that run each iteration of a nest of parallel loops, and whether they are
//! what an operation needs.
//!
//! A loop gives its iterations to *units* of the threads around it: warps, blocks, every second block, units of one's
//! own. An operation needs one unit. Both are questions about sets of threads, and a cluster has so few of them that
//! the sets are what is computed.
//!
//! **Property.** A nest is accepted just where each of its loops narrows the threads around it along one dimension that
//! the loops and the unit know in common, by as many units as there are; then [`Nest::instances`] has the set of every
//! iteration, sets of different iterations are disjoint, and [`check`] accepts an operation just where the set of every
//! iteration matches the aligned type of its unit.
//!
//! **Formula** (docs/theory.md, Collectives).
//!
//! - *Types*: a unit has extents D and boxes B; blocks that it says nothing of are one (operations) or any (loops).
//!   Every division is exact.
//! - *Matching*: μ matches if it is the image of C₁ × … × C_M with |C_m| = 1 where B_m = 1, all of D_m where B_m = D_m,
//!   and any where B_m is not given.
//! - *Loops* (a section that the published text leaves empty): the dimension k whose box is neither free, nor what is
//!   there, nor all of it, is cut into boxes of B_k · (high − low) / tiles from low · B_k on; what is after high · B_k
//!   is idle.
//! - *Arrays*: the loops that take native units apart are the first indices of the array, with equal extents.
//! - *Registers* (PTX ISA, `setmaxnreg`): the sum over warps of what roles have is at most what the block has from its
//!   launch.
//!
//! **What is approximated**: nothing of who runs what. [`Tiling`] has the same in closed form, from which guards are
//! emitted; its rule of splits needs one premise more than the published one, and with it has no form for some nests,
//! which it says. Where it has one, it selects exactly the sets. Which cluster runs which part of a grid is not asked
//! here.
//!
//! **Source**: Exo-GPU, "Collective Analysis"; where its published rule is wrong: docs/theory.md, Collectives. Every
//! rule is tested against an oracle that shares no code with it, and against a table of nests (`tests/conformance.rs`).
//!
//! | room | holds |
//! | --- | --- |
//! | `set` | sets of threads, and how they are written |
//! | `launch` | limits, roles, registers |
//! | `unit`, `types` | units, and their types in a launch |
//! | `nest` | loops: the set of every iteration |
//! | `tiling` | the closed form, for guards |
//! | `demand` | the unit that each operation needs |
//! | `need` | what is needed against who is there; which loop made it so; a way out |
//! | `role` | ranges of warps by name |
//! | `ownership` | which thread holds which element of an array |
//! | `control` | that all threads of a collective pass a condition, or none |

mod control;
mod demand;
mod launch;
mod need;
mod nest;
mod ownership;
mod role;
mod set;
#[cfg(test)]
mod tests;
mod tiling;
mod types;
mod unit;

pub use control::{NotUniform, uniform};
pub use demand::{Demand, Operation, barrier};
pub use launch::{
    BLOCK_LIMIT, CLUSTER_LIMIT, Launch, LaunchFault, LaunchRequest, Role, RoleRequest, Shape, WARP, WARPGROUP,
    is_cluster,
};
pub use need::{Difference, Fix, LoopRefusal, Mismatch, Refusal, check, most_of, place};
pub use nest::{Bind, Instance, LoopFault, Nest, Step};
pub use ownership::{Array, Holding, HoldingFault};
pub use role::{Place, RoleFault};
pub use set::ThreadSet;
pub use tiling::{NoClosedForm, Tiling};
pub use types::{CollectiveType, TypeDim, Uneven};
pub use unit::{Size, Typing, Unit, UnitFault, UnitProblem};
