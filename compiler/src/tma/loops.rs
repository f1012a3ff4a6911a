//! The loops that move what the reads of a staged copy ask for, inside the attach point.
//!
//! A copy stands in a loop of one stage; it is read there and by the stages that stand in loops inside that place. To
//! such a stage the loops around it are dimensions with numbers of their own, so that its indices are expressions over
//! the loops of all stages of the chain from the attach point to it. What is not around an instance is inside.

use tilewright_kernel::Algorithm;

use super::rules::Refused;
use crate::domain::{Binding, Symbolic, Unit};
use crate::extent::{Atom, Expr, Facts, Term, Var};
use crate::region::{Inner, Inside, Sum};
use crate::schedule::accesses::Access;
use crate::schedule::{Attach, Stage, extreme};
use crate::source::ast;

/// Where the instances of a copy stand that the stage with a position has at `axis`. An instance belongs to a block.
pub(super) fn place(at: usize, stage: &Stage, axis: &ast::Name) -> Result<Attach, Refused> {
    let leaf = stage.domain.leaf(&axis.text).ok_or(Refused::Attach(axis.span))?;
    match stage.domain.axes[leaf].binding {
        _ if stage.owner > Unit::Cta => Err(Refused::AttachInsideBlock(axis.span)),
        // Every axis of blocks lies around every sequential one.
        Binding::Grid | Binding::Cta | Binding::Serial | Binding::Unroll(_) => {
            Ok(Attach::new(at, stage, leaf, Unit::Cta))
        }
        _ => Err(Refused::AttachInsideBlock(axis.span)),
    }
}

/// A stage that reads a staged copy, or writes it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    /// The stages from the one whose loop the copy stands in to this one, each in a loop of the one before it; with
    /// their index maps.
    pub chain: Vec<(&'a Stage, &'a Symbolic)>,
    /// Its accesses of tensors.
    pub accesses: &'a [Access],
}

impl Reader<'_> {
    /// Whether it stands in a loop of the stage that the copy stands in, rather than being it.
    pub fn is_inner(&self) -> bool {
        self.chain.len() > 1
    }
}

/// The loops inside the attach point that move what a read asks for.
#[derive(Clone, Debug)]
pub(super) struct Loops {
    loops: Vec<Inner>,
    sums: Vec<Sum>,
    /// The loops around, with their extents.
    around: Vec<(Var, Expr)>,
}

impl Loops {
    /// Those of `reader` that one of `accesses` depends on.
    pub fn new(reader: &Reader<'_>, attach: &Attach, accesses: &[&Access]) -> Result<Self, Refused> {
        let mut loops: Vec<Inner> = Vec::new();
        let mut around: Vec<(Var, Expr)> = Vec::new();
        for (n, (stage, symbolic)) in reader.chain.iter().enumerate() {
            let facts = &stage.facts;
            let moves = |var: Var| {
                let ends = accesses.iter().flat_map(|a| &a.inner).flat_map(|i| [&i.lower, &i.upper]);
                let mut indices = accesses.iter().flat_map(|a| a.all_indices()).chain(ends);
                indices.any(|e| symbolic.depends_on(e, var))
            };
            for (position, leaf) in stage.domain.leaves.iter().enumerate() {
                let var = (facts.dims() + position) as Var;
                if !moves(var) {
                    continue;
                }
                let axis = &stage.domain.axes[*leaf];
                let extent = facts.normal(&axis.extent);
                if n == 0 && attach.around.contains(leaf) {
                    around.push((var, extent));
                    continue;
                }
                let Some(most) = most(&extent, facts) else {
                    return Err(Refused::Unbounded { axis: axis.name.clone(), extent });
                };
                loops.push(Inner { var, extent: most.max(1) });
            }
        }
        for (stage, symbolic) in &reader.chain {
            tighten(&mut loops, stage, symbolic);
            // The result of a swizzle ranges over its extent, whatever its operands are.
            for (var, ..) in &symbolic.opaque {
                let extent = symbolic.variables.iter().find(|v| v.var == *var).and_then(|v| v.extent.as_constant());
                if let Some(extent) = extent {
                    loops.push(Inner { var: *var, extent });
                }
            }
        }
        let sums = reader.chain.iter().flat_map(|(stage, symbolic)| sums(&loops, stage, symbolic)).collect();
        Ok(Self { loops, sums, around })
    }

    /// An index of a read with the axes of inner reductions as further loops, which start at 0: each over the hull of
    /// its ranges inside.
    pub fn unrolled(
        &mut self,
        index: &Expr,
        read: &Access,
        facts: &Facts,
        algorithm: &Algorithm,
    ) -> Result<Expr, Refused> {
        let mut shifted: Vec<(Var, Expr)> = Vec::new();
        for axis in &read.inner {
            let (lower, upper) = (substituted(&axis.lower, &shifted), substituted(&axis.upper, &shifted));
            let inside: Vec<(Var, Expr)> = self.loops.iter().map(|i| (i.var, Expr::constant(i.extent))).collect();
            let ends = extreme(&lower, false, &extents(&inside)).zip(extreme(&upper, true, &extents(&inside)));
            // The longest one over all instances: a buffer has one size.
            let longest = ends.as_ref().and_then(|(lower, upper)| {
                let extent = facts.normal(&upper.sub(lower));
                extreme(&extent, true, &extents(&self.around)).map(|extent| facts.normal(&extent))
            });
            let extent = longest.unwrap_or_else(Expr::unknown);
            let (Some((lower, _)), Some(most)) = (ends, most(&extent, facts)) else {
                let axis = algorithm.axes[axis.axis as usize].name.to_string();
                return Err(Refused::Unbounded { axis, extent });
            };
            shifted.push((axis.var, lower.add(&Expr::var(axis.var))));
            if !self.loops.iter().any(|i| i.var == axis.var) {
                self.loops.push(Inner { var: axis.var, extent: most.max(1) });
            }
        }
        Ok(substituted(index, &shifted))
    }

    pub fn inside(&self) -> Inside<'_> {
        Inside { loops: &self.loops, sums: &self.sums }
    }
}

/// With values for some variables.
fn substituted(e: &Expr, values: &[(Var, Expr)]) -> Expr {
    e.substitute(&|v| values.iter().find(|(var, _)| *var == v).map(|(_, value)| value.clone()))
}

/// The extents in such a list.
fn extents<'a>(list: &'a [(Var, Expr)]) -> impl Fn(Var) -> Option<&'a Expr> {
    move |v| list.iter().find(|(var, _)| *var == v).map(|(_, extent)| extent)
}

/// The most that an extent is.
fn most(extent: &Expr, facts: &Facts) -> Option<i128> {
    extent.as_constant().or_else(|| facts.upper_bound(extent))
}

/// Nothing is asked for where an axis is past its end: the loops that make it up, none of which counts down, end before
/// that.
fn tighten(loops: &mut [Inner], stage: &Stage, symbolic: &Symbolic) {
    for (axis, value) in stage.domain.axes.iter().zip(&symbolic.values) {
        let Some(extent) = most(&stage.facts.normal(&axis.extent), &stage.facts) else { continue };
        let rises = |t: &Term| t.atoms.is_empty() || (matches!(t.atoms[..], [Atom::Var(_)]) && t.coefficient > 0);
        if value.is_unknown() || !value.terms().iter().all(rises) {
            continue;
        }
        let room = extent - 1 - value.constant_term();
        for inner in loops.iter_mut() {
            let step = value.terms().iter().find(|t| t.atoms == [Atom::Var(inner.var)]);
            if let Some(step) = step {
                inner.extent = inner.extent.min(room.div_euclid(step.coefficient) + 1).max(1);
            }
        }
    }
}

/// The axes that loops inside decide alone, and that end before these do.
fn sums(loops: &[Inner], stage: &Stage, symbolic: &Symbolic) -> Vec<Sum> {
    let mut sums = Vec::new();
    for (axis, value) in stage.domain.axes.iter().zip(&symbolic.values) {
        let vars = value.vars();
        let own = vars.iter().all(|v| loops.iter().any(|i| i.var == *v));
        let extent = most(&stage.facts.normal(&axis.extent), &stage.facts);
        if let (Some(extent), false, true) = (extent, value.is_unknown() || value.as_var().is_some(), own)
            && !vars.is_empty()
        {
            sums.push(Sum { value: value.clone(), extent: extent.max(1) });
        }
    }
    sums
}
