//! A scheduled equation: its iteration domain, who runs it, and what an instance holds.

use tilewright_kernel::algorithm::{AxisId as AlgorithmAxis, Source, ValueId};

use super::roots::whole_root;
use super::{Attach, Beside, BufferLayout, Distribution, Mma, Raster};
use crate::domain::{AxisId, AxisKind, Binding, Domain, Unit};
use crate::extent::{Expr, Facts, Family, Var};
use crate::kernel_ir::Sharing;
use crate::program::Program;
use crate::region::Fit;
use crate::source::Span;
use crate::source::ast::{self, Place};

/// A coordinate of what an instance of a stage holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Along {
    /// The dimensions of the tensor that it runs along.
    pub dims: Vec<usize>,
    /// Where coordinate 0 lies: an index, or a row-major number if there are several dimensions.
    pub start: Expr,
    /// From one coordinate to the next.
    pub step: i128,
    /// How far an element lies after coordinate 0: over dimensions and [`Family::PLACEHOLDER`], the indices of the
    /// element.
    pub distance: Expr,
    /// Most elements that an instance has along it: a number, but in global memory, where it may depend on sizes.
    pub most: Expr,
}

/// A scheduled equation.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Position in [`Algorithm::equations`](tilewright_kernel::Algorithm::equations).
    pub equation: usize,
    /// Name of its first component.
    pub name: String,
    /// What it sees: to a stage inside loops of others, these are dimensions.
    pub program: Program,
    /// What is known of its dimensions.
    pub facts: Facts,
    /// Where it stands; none for an output, which has blocks of its own.
    pub attach: Option<Attach>,
    /// The output in whose loops it runs, if it is one that has a place there.
    pub beside: Option<Beside>,
    /// The staged copy that it is: a position in [`Definition::stages`](crate::program::Definition::stages).
    pub copy: Option<usize>,
    /// What reads take from it, beside a tensor in device memory.
    pub serves: Vec<Source>,
    /// The stages whose results it reads: positions in [`Plan::stages`](super::Plan::stages).
    pub sees: Vec<usize>,
    /// The iteration domain, ops applied.
    pub domain: Domain,
    /// Each axis of the algorithm, over dimensions and the roots of the domain: see [`Family::ROOT`].
    pub indices: Vec<(AlgorithmAxis, Expr)>,
    /// What must hold beside that axes are in bounds, where a region ends before its box does, or the range of a
    /// reduction before its hull does (`is_of_terms`): expressions as in `indices` that are at least 0.
    pub limits: Vec<Expr>,
    /// The elements that are asked for, where these are not all: at one of these lists all expressions, as in `limits`,
    /// are at least 0. Others may be computed, too.
    pub members: Vec<Vec<Expr>>,
    /// The reads that take it, if other stages hold what else is read; none if all do.
    pub reads: Option<Vec<ValueId>>,
    /// The coordinates of an instance, outermost first, which are its first roots; none of an output.
    pub coordinates: Vec<Along>,
    /// What is claimed of them: what they hold beside the elements that are asked for.
    pub fit: Fit,
    /// A bound of the elements of an instance that are asked for, if one is known.
    pub needed: Option<Expr>,
    /// The reduction whose axes are roots: a `Value::Reduce` or `Value::Fold`.
    pub reduction: Option<ValueId>,
    /// The axes that are combined across units.
    pub reduced: Vec<Reduced>,
    /// In which order blocks take the iterations of the grid, if not row after row.
    pub raster: Raster,
    /// The loop over blocks of terms in which its sums follow its extreme.
    pub online: Option<AxisId>,
    /// What tensor cores compute of it: its reduction.
    pub product: Option<Mma>,
    /// Whether an instance is a tile of tensor cores: it has the same number of elements everywhere.
    pub is_tile: bool,
    /// Where the results live.
    pub place: Place,
    /// Buffers that its instances take in turn; 1 for stages without buffers.
    pub ring: u32,
    /// Of a stage with buffers: where elements of an instance lie in one.
    pub layout: BufferLayout,
    /// Whether it is a copy that threads make by `cp.async`.
    pub fetches: bool,
    /// Who owns an instance.
    pub owner: Unit,
    /// The role that runs it: a position in [`Plan::roles`](super::Plan::roles); none in a launch without roles.
    pub role: Option<usize>,
    /// Of a stage with buffers: who accesses an element beside the thread that does.
    pub sharing: Sharing,
    /// Leaves bound to units.
    pub distribution: Distribution,
    /// The head of the schedule, or the equation if it has none.
    pub span: Span,
    /// Position of the equation in [`Definition::statements`](crate::program::Definition::statements).
    pub statement: usize,
}

/// An axis of a reduction whose units combine what they have.
#[derive(Clone, Copy, Debug)]
pub struct Reduced {
    /// The leaf.
    pub axis: AxisId,
    /// How far it reaches: lanes of one warp, threads of a block, blocks of the grid.
    pub by: ast::ReduceBy,
    /// The op.
    pub span: Span,
    /// The word that says how far, if it does.
    pub word: Option<Span>,
}

impl Stage {
    /// The name of a dimension or loop.
    pub fn name_of(&self, v: Var) -> Option<String> {
        match (v as usize).checked_sub(self.facts.dims()) {
            None => Some(self.program.dim_name(v as u16).to_owned()),
            Some(n) => self.domain.leaves.get(n).map(|leaf| self.domain.axes[*leaf].name.clone()),
        }
    }

    /// The first loop inside of a place of its own that ops have made and that has no bound: `y.ko`.
    pub fn loop_without_bound(&self, place: AxisId) -> Option<String> {
        let Self { domain, facts, .. } = self;
        let after = domain.leaves.iter().skip_while(|leaf| **leaf != place).skip(1);
        let is_it = |leaf: &&AxisId| {
            let axis = &domain.axes[**leaf];
            let is_made = !domain.roots.contains(leaf);
            is_made && axis.binding.is_sequential() && facts.upper_bound(&axis.extent).is_none()
        };
        let leaf = after.into_iter().find(is_it)?;
        Some(format!("{}.{}", self.name, domain.axes[*leaf].name))
    }

    /// The axes of the algorithm that are roots.
    pub fn root_axes(&self) -> Vec<(AlgorithmAxis, AxisId)> {
        self.indices.iter().filter_map(|(a, e)| Some((*a, whole_root(e, &self.domain)?))).collect()
    }

    /// Whether it is an output with blocks of its own: it stands in no loop of another stage.
    pub fn has_blocks(&self) -> bool {
        self.attach.is_none() && self.beside.is_none()
    }

    /// Whether it holds what a read of a tensor asks for.
    pub fn is_for(&self, source: Source, read: ValueId) -> bool {
        self.serves.contains(&source) && self.reads.as_ref().is_none_or(|reads| reads.contains(&read))
    }

    /// Of stages that hold what a read asks for, at these positions, the least one is taken:
    /// see [`taken`](super::taken).
    pub fn nearness(&self, at: usize) -> (bool, usize) {
        (self.copy.is_none(), at)
    }

    /// Elements between neighbours along each coordinate, in row-major order.
    pub fn strides(&self) -> Vec<Expr> {
        let mut strides = vec![Expr::constant(1); self.coordinates.len()];
        for n in (1..strides.len()).rev() {
            strides[n - 1] = strides[n].mul(&self.coordinates[n].most);
        }
        strides
    }

    /// Elements of an instance.
    pub fn elements(&self) -> Expr {
        self.coordinates.iter().fold(Expr::constant(1), |product, c| product.mul(&c.most))
    }

    /// Whether its instances lie in buffers of the block, in shared memory or in a part of global memory.
    pub fn has_buffers(&self) -> bool {
        self.place == Place::Shared || self.is_in_workspace()
    }

    /// Whether its instances lie in memory that the launch provides for each block.
    pub fn is_in_workspace(&self) -> bool {
        self.place == Place::Global && self.attach.is_some()
    }

    /// Instances in one slot of its buffers: one of each unit of the block, or of its role.
    pub fn instances(&self) -> i128 {
        self.owner.threads().map_or(1, |size| i128::from(self.distribution.block) / size)
    }

    /// The leaves that every thread runs as loops, or as the lanes of a vector: outermost first.
    pub fn sequence(&self) -> Vec<AxisId> {
        let Domain { leaves, axes, .. } = &self.domain;
        leaves.iter().copied().filter(|leaf| axes[*leaf].binding.is_sequential()).collect()
    }

    /// The axes of its reduction that blocks divide among each other, outermost first.
    pub fn across_blocks(&self) -> impl Iterator<Item = AxisId> {
        self.distribution.grid.iter().copied().filter(|a| self.domain.axes[*a].kind == AxisKind::Reduction)
    }

    /// Whether the blocks of a cluster divide its reduction among each other. One block alone has all of it, and
    /// nothing to exchange.
    pub fn across_ctas(&self) -> bool {
        let is_term = |cta: &(AxisId, i128)| self.domain.axes[cta.0].kind == AxisKind::Reduction;
        self.distribution.cluster > 1 && self.distribution.ctas.iter().any(is_term)
    }

    /// Whether it stands in the loops of another one, and blocks share its reduction: what is after it there is for
    /// the last of them alone.
    pub fn arrives(&self) -> bool {
        let axes = &self.domain.axes;
        let given = |l: &AxisId| axes[*l].kind == AxisKind::Reduction && axes[*l].binding == Binding::Grid;
        self.attach.is_some() && self.domain.leaves.iter().any(given)
    }

    /// Whether blocks combine results by atomic operations on memory.
    pub fn is_atomic(&self) -> bool {
        self.reduced.iter().any(|r| r.by == ast::ReduceBy::Atomic)
    }

    /// Whether an axis is combined across units.
    pub fn is_reduced(&self, axis: AxisId) -> bool {
        self.reduced.iter().any(|r| r.axis == axis)
    }
}

impl Along {
    /// The coordinate of the element with these indices.
    pub fn at(&self, indices: &[Expr]) -> Expr {
        self.position().substitute(&|v| indices.get(Family::PLACEHOLDER.number(v)?).cloned())
    }

    /// The same over [`Family::PLACEHOLDER`].
    pub fn position(&self) -> Expr {
        self.distance.floor_div(&Expr::constant(self.step))
    }
}
