//! The plan of a kernel: its stages with everything that was found out about them. Rooms before `lower` fill it, one
//! after the other; `lower` and `explain` read it.

pub mod cycles;
pub mod product;
pub mod roles;
pub mod staged;

use crate::domain::Symbolic;
use crate::extent::Var;
use crate::holes::Holes;
use crate::schedule::Stage;
use crate::schedule::accesses::{Access, StageRead};
use crate::schedule::vector::Vector;
use cycles::Use;
use product::{Behind, Fragment, Matrices, Product};
use staged::Staged;

/// A stage with everything that was found out about it.
#[derive(Clone, Debug)]
pub struct Analysed {
    /// The stage.
    pub stage: Stage,
    /// Its index maps.
    pub symbolic: Symbolic,
    /// Its predicates.
    pub holes: Holes,
    /// Its vectorised leaf.
    pub vector: Option<Vector>,
    /// Its accesses of tensors.
    pub accesses: Vec<Access>,
    /// Its accesses of shared memory.
    pub banks: Vec<Use>,
    /// Its reads of what other stages hold.
    pub reads: Vec<StageRead>,
    /// Copies of what it reads, staged in shared memory.
    pub staged: Vec<Staged>,
    /// Predicates that need not be tested where these copies are: by terms that read them, or for elements that they
    /// store.
    pub waived: Vec<Waiver>,
    /// What tensor cores compute of it, where the copies of its factors are.
    pub product: Option<Product>,
    /// If its product is a block behind: how.
    pub behind: Option<Behind>,
    /// Of a factor in registers that is a part of a tile as it lies in shared memory: how it is loaded. There is all of
    /// the tile, with zeros past the ends of the tensor, and nothing is tested.
    pub fragment: Option<Fragment>,
    /// Whether tensor cores read what its threads write to shared memory: all of a tile, with zeros where the stage
    /// leaves an element out.
    pub multiplied: bool,
    /// Of a factor in registers: the roots along the terms of its products. Elements that limits of these leave out are
    /// zero.
    pub zero_along: Vec<Var>,
    /// How warps write its elements to the tile that a copy stores, if they do it by matrices.
    pub stored: Option<Matrices>,
    /// Whether only products of warpgroups ask for it in registers, or it belongs to a pass over blocks whose product
    /// they compute: an entry point without these has no such stage.
    pub is_of_groups: bool,
}

/// What a reader demands of the holes that a predicate would keep away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// They may hold anything: what is made of them is not stored.
    Anything,
    /// Those of these copies must be zero, and are.
    Zero(Vec<String>),
    /// They may hold anything: the copy that stores elements leaves out those outside the tensor.
    Clipped,
}

/// A predicate that is not tested where terms are computed, or where elements are written that a copy stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// Position in [`Holes::kept`](crate::holes::Holes::kept).
    pub predicate: usize,
    /// Why not.
    pub demand: Demand,
}
