//! Copies that several blocks of a cluster take together.
//!
//! **Property.** The blocks along one axis of a cluster hold the same elements in the same slots of their buffers, each
//! of which is fetched once for all of them. **Formula.** A block's number in its cluster is a sum of digits with
//! weights (`schedule::ranks`); the blocks along an axis are those that differ in its digit alone. Each of them issues
//! one slice of the boxes, or the first one issues all, to the slots of all of them; the barrier of each expects all
//! slices. What an instance holds must not depend on the digit.

use crate::diag::codes::{Differing, MulticastProblem, NotMulticast};
use crate::domain::AxisId;
use crate::extent::{Budget, Expr, Search, Var};
use crate::plan::Analysed;
use crate::schedule::accesses::FromMemory;
use crate::schedule::{self, cta_rank};
use crate::source::{Span, ast};

use super::check::One;
use super::gathered;
use super::rules::Refused;
use crate::plan::staged::{Axis, Multicast};

/// Steps that a search for different copies may take.
const STEPS: u64 = 20_000;

/// What a `multicast` says, of a stage in whose loops a copy stands.
#[derive(Clone, Debug)]
pub struct Along<'a> {
    /// The variable of the cluster's axis.
    pub var: Var,
    /// Its blocks; by what is not known yet.
    pub multicast: Multicast,
    /// The axis whose boxes they divide among each other.
    pub by: Option<&'a ast::Name>,
    /// The op.
    pub span: Span,
}

/// A copy that blocks do not take together.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Why not.
    pub fault: Fault,
    /// The variable of the cluster's axis.
    pub var: Var,
    /// Its blocks.
    pub multicast: Multicast,
    /// The op.
    pub span: Span,
}

/// Why blocks do not take a copy together.
#[derive(Clone, Debug)]
pub enum Fault {
    /// They hold other elements along an axis of the copy, which start there.
    Differs {
        /// The axis.
        axis: String,
        /// Where regions start.
        start: Expr,
        /// The elements of the tensor along it.
        size: Expr,
    },
    /// Nothing that counts boxes has this name; these do.
    NoSlices(String, Vec<String>),
    /// An axis with other slices than there are blocks: its name, slices, elements, and whether it is boxed.
    Slices(String, i128, i128, bool),
}

impl Along<'_> {
    /// The box of an axis of the view that is not boxed, if the blocks divide its elements among each other, one each.
    pub fn is_one_each(&self, name: &str, extent: i128) -> bool {
        self.by.is_some_and(|by| by.text == name) && extent == i128::from(self.multicast.blocks)
    }

    /// Whether the blocks can take a copy with these axes together: its boxes are known, and the order of its buffer is
    /// not.
    ///
    /// # Errors
    /// They hold different elements, or the slices are others than the blocks.
    pub fn check(&self, axes: &[Axis], memory: &[FromMemory]) -> Result<(), Refused> {
        for axis in axes {
            let read = gathered::mentioned(&axis.region.start, memory);
            let mut all = read.iter().flat_map(|(_, read)| &read.indices).chain([&axis.region.start]);
            if all.any(|e| e.vars().contains(&self.var)) {
                let (axis, start, size) = (axis.name.clone(), axis.region.start.clone(), axis.size.clone());
                return self.refuse(Fault::Differs { axis, start, size });
            }
        }
        let Some(by) = self.by else { return Ok(()) };
        let counter = |axis: &&Axis| axis.boxed.coordinates == [by.text.as_str()];
        let Some(axis) = axes.iter().find(counter) else {
            let whole = axes.iter().find(|axis| axis.name == by.text && axis.boxed.coordinates.is_empty());
            if let Some(axis) = whole {
                return self.refuse(Fault::Slices(by.text.clone(), 1, axis.region.extent, false));
            }
            let single = axes.iter().filter(|axis| axis.boxed.coordinates.len() == 1);
            let names = single.map(|a| a.boxed.coordinates[0].clone()).collect();
            return self.refuse(Fault::NoSlices(by.text.clone(), names));
        };
        if axis.boxes() != i128::from(self.multicast.blocks) {
            return self.refuse(Fault::Slices(axis.name.clone(), axis.boxes(), axis.region.extent, true));
        }
        Ok(())
    }

    /// The blocks, once the axes have their order.
    ///
    /// # Errors
    /// The slices are counted together with another axis.
    pub fn placed(&self, axes: &[Axis]) -> Result<Multicast, Refused> {
        let Some(by) = self.by else { return Ok(self.multicast.clone()) };
        let at = axes.iter().position(|axis| axis.boxed.coordinates == [by.text.as_str()]);
        match at {
            Some(at) => Ok(Multicast { by: Some(at), ..self.multicast.clone() }),
            None => self.refuse(Fault::NoSlices(by.text.clone(), Vec::new())),
        }
    }
}

impl Along<'_> {
    fn refuse<T>(&self, fault: Fault) -> Result<T, Refused> {
        let Self { var, multicast, span, .. } = self;
        Err(Refused::Multicast(Box::new(Refusal { fault, var: *var, multicast: multicast.clone(), span: *span })))
    }
}

impl<'a> One<'a> {
    /// What the `multicast` of the copy says, which stands in a loop of the stage with position `at`; an error has been
    /// reported.
    pub(super) fn along(&mut self, analysed: &[Analysed], at: usize) -> Result<Option<Along<'a>>, ()> {
        let written = self.copy.ast.ops.iter().filter_map(|op| match &op.kind {
            ast::OpKind::Multicast { axis, by } => Some((axis, by.as_ref(), op.span)),
            _ => None,
        });
        let written: Vec<_> = written.collect();
        let Some(&(axis, by, span)) = written.first() else { return Ok(None) };
        if let Some((.., second)) = written.get(1) {
            self.not_yet("a second `multicast`", *second, Some("one axis of the cluster"));
            return Err(());
        }
        // The stages with loops around, from the inside out.
        let parent = |at: &usize| analysed[*at].stage.attach.as_ref().map(|attach| attach.stage);
        let around: Vec<usize> = std::iter::successors(Some(at), parent).collect();
        let mut possible = Vec::new();
        let mut found = None;
        for of in &around {
            let stage = &analysed[*of].stage;
            let digits = cta_rank::digits_of_rank(stage);
            for (var, blocks, stride) in &digits {
                let name = &stage.domain.axes[leaf(stage, *var)].name;
                if stage.name == axis.stage.text && *name == axis.axis.text {
                    let number = |n: i128| u32::try_from(n).unwrap_or(1).max(1);
                    let multicast = Multicast {
                        blocks: number(*blocks),
                        stride: number(*stride),
                        cluster: stage.distribution.cluster,
                        by: None,
                        along: format!("{}.{name}", stage.name),
                    };
                    found = Some(Along { var: *var, multicast, by, span });
                }
                possible.push(format!("{}.{name}", stage.name));
            }
        }
        let Some(found) = found else {
            let axis = format!("{}.{}", axis.stage.text, axis.axis.text);
            self.no_multicast(MulticastProblem::NoAxis { axis, possible }, span);
            return Err(());
        };
        // All blocks come to each instance: they wait for each other there.
        let ranks: Vec<Var> =
            around.iter().flat_map(|of| cta_rank::digits_of_rank(&analysed[*of].stage)).map(|digit| digit.0).collect();
        let mut inner =
            self.copy.ast.clauses.at.as_ref().and_then(|place| analysed[at].stage.domain.leaf(&place.axis.text));
        for of in &around {
            let stage = &analysed[*of].stage;
            let sequence = stage.sequence();
            let loops = inner.and_then(|leaf| sequence.iter().position(|l| *l == leaf)).map_or(0, |n| n + 1);
            for leaf in &sequence[..loops] {
                let axis = &stage.domain.axes[*leaf];
                let extent = stage.facts.normal(&axis.extent);
                if extent.vars().iter().any(|v| ranks.contains(v)) {
                    let (axis, extent) =
                        (format!("{}.{}", stage.name, axis.name), self.with_loops(&extent, &analysed[*of]));
                    self.no_multicast(MulticastProblem::Uneven { axis, extent }, span);
                    return Err(());
                }
            }
            inner = stage.attach.as_ref().map(|attach| attach.leaf);
        }
        Ok(Some(found))
    }

    fn no_multicast(&mut self, problem: MulticastProblem, span: Span) {
        self.diags.report(NotMulticast { copy: self.copy.ast.name.text.clone(), problem, span });
    }

    /// A copy to a tensor is no one's but its block's.
    pub(super) fn no_multicast_store(&mut self, span: Span) {
        self.no_multicast(MulticastProblem::Store, span);
    }

    /// Says why blocks do not take a copy together.
    pub(super) fn refuse_multicast(&mut self, refusal: Refusal, host: &Analysed) {
        let Refusal { fault, var, multicast, span } = refusal;
        let blocks = i128::from(multicast.blocks);
        let problem = match fault {
            Fault::Differs { axis, start, size } => MulticastProblem::Differs {
                witness: self.different((&start, &size), (var, multicast.blocks), host),
                start: self.with_loops(&start, host),
                cluster: multicast.along,
                axis,
            },
            Fault::NoSlices(by, possible) => MulticastProblem::NoSlices { by, possible },
            Fault::Slices(by, slices, elements, boxed) => {
                let each = (elements + blocks - 1).div_euclid(blocks.max(1));
                let fits = (elements + each - 1).div_euclid(each.max(1)) == blocks;
                let fix = fits.then_some(each);
                MulticastProblem::Slices { by, slices, elements, blocks, boxed, fix, cluster: multicast.along }
            }
        };
        self.no_multicast(problem, span);
    }

    /// The smallest sizes, and two blocks of which instances start at different elements of the tensor.
    fn different(
        &self,
        (start, size): (&Expr, &Expr),
        (along, blocks): (Var, u32),
        host: &Analysed,
    ) -> Option<Differing> {
        let (dims, of) = (self.facts.dims(), &host.symbolic.variables);
        let extent = |v: Var| of.iter().find(|leaf| leaf.var == v).map(|leaf| &leaf.extent);
        // The other loops that move it.
        let others: Vec<Var> = start.vars().into_iter().filter(|v| *v != along && *v as usize >= dims).collect();
        let extents: Option<Vec<&Expr>> = others.iter().map(|v| extent(*v)).collect();
        let extents = extents?;
        let mut sizes: Vec<Var> =
            [start, size].into_iter().chain(extents.iter().copied()).flat_map(Expr::vars).collect();
        sizes.retain(|v| (*v as usize) < dims);
        let most = others.iter().chain([&along]).map(|v| *v as usize + 1).max().unwrap_or(0);
        let found = self.facts.smallest(&sizes, &mut Budget::new(STEPS), |at, budget| {
            let mut values: Vec<i128> = at.iter().map(|d| i128::from(*d)).collect();
            values.resize(most.max(dims), 0);
            let size = size.eval(&values)?;
            let counts: Vec<i128> = extents.iter().map(|e| e.eval(&values)).collect::<Option<_>>()?;
            // The first and the second iteration of each is enough to tell most functions apart.
            for choice in 0..1u32 << others.len().min(8) {
                for (n, var) in others.iter().enumerate() {
                    values[*var as usize] = i128::from(choice >> n.min(31) & 1).min(counts[n] - 1).max(0);
                }
                let mut at_block = |block: u32| {
                    values[along as usize] = block.into();
                    start.eval(&values)
                };
                let first = at_block(0)?;
                for block in 1..blocks {
                    if !budget.take(1) || counts.iter().any(|count| *count < 1) {
                        return None;
                    }
                    let there = at_block(block)?;
                    if there != first && first.max(there) < size {
                        return Some((at.to_vec(), [(0, first), (block.into(), there)]));
                    }
                }
            }
            None
        });
        let Search::Found((at, two)) = found else { return None };
        let named = self.assignment(&at).into_iter().enumerate();
        let dims = named.filter(|(d, _)| sizes.contains(&(*d as Var))).map(|(_, pair)| pair).collect();
        Some(Differing { dims, blocks: two })
    }
}

/// The leaf of a variable.
fn leaf(stage: &schedule::Stage, var: Var) -> AxisId {
    stage.domain.leaves[var as usize - stage.facts.dims()]
}
