//! Whether an instance of a staged output writes every element that its copy will.
//!
//! **Property.** An accepted instance writes every position of its region that lies in the tensor: what the copy then
//! moves was computed. **Formula.** The definition. Along each axis of the view a position is the region's start plus
//! an offset that only the loops inside decide; axes that share such a loop are enumerated together, and every offset
//! of their box must occur. A predicate that only these loops decide is part of the enumeration. Any other may only
//! keep away points outside the tensor, which the accelerator keeps away, too: it must follow from bounds of the
//! tensor's own dimensions, without those past whose end the view goes on in the next row. A loop whose length only
//! facts bound is enumerated up to that bound, if what lies after its end lies outside the tensor. Offsets along an
//! axis of which loops are the digits, and that no predicate is about, need no enumeration. **Approximation.** Offsets
//! that loops outside decide as well, and more points than are enumerated (65,536), are refused as not proved.

use super::plan::Around;
use crate::domain::AxisKind;
use crate::extent::{Atom, Expr, Facts, Var};
use crate::holes::{self, Predicate, Side};
use crate::region::{Inner, Inside, Interval};

/// Most points that are enumerated.
const POINTS: i128 = 1 << 16;

/// What is written along an axis of the view.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its name.
    pub name: String,
    /// The position, over dimensions and loops.
    pub index: Expr,
    /// The region of an instance.
    pub region: Interval,
}

/// What an instance leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// A loop inside has a number of iterations that is known at launch only.
    Varying {
        /// The loop.
        axis: String,
        /// Its extent.
        extent: Expr,
    },
    /// A predicate keeps away points that the accelerator does not know to be outside.
    Guarded {
        /// The axis that it is about.
        axis: String,
        /// Whether the view counts on from there in the next row.
        next_row: bool,
    },
    /// Nothing inside reaches these offsets from the start of the region.
    Missing(Vec<(String, i128)>),
    /// Offsets along this axis are not decided by the loops inside alone, or are too many.
    Unknown(String),
}

/// Checks the property. `aliased` are dimensions whose ends the map does not see.
///
/// # Errors
/// See [`Gap`].
pub fn check(
    facts: &Facts,
    around: Around<'_>,
    axes: &[Written],
    inside: Inside<'_>,
    aliased: &[usize],
) -> Result<(), Gap> {
    let domain = &around.stage.domain;
    let data: Vec<_> = domain.roots.iter().filter(|r| domain.axes[**r].kind == AxisKind::Data).collect();
    // What the accelerator sees: every dimension in bounds, but for those whose ends the view hides.
    let seen: Vec<Predicate> = (data.iter().enumerate())
        .filter(|(d, _)| !aliased.contains(d))
        .flat_map(|(_, axis)| [Side::Lower, Side::Upper].map(|side| Predicate { axis: **axis, side, op: 0 }))
        .collect();
    let leaf = |var: Var| {
        let leaf = (var as usize).checked_sub(facts.dims()).and_then(|n| domain.leaves.get(n));
        leaf.map(|leaf| (&domain.axes[*leaf], facts.normal(&domain.axes[*leaf].extent)))
    };
    let known = |var: &Var| {
        inside.loops.iter().any(|i| i.var == *var) && leaf(*var).is_some_and(|(_, e)| e.as_constant().is_some())
    };
    // What the loops inside decide alone: at least 0 where a point is written.
    let mut guards: Vec<Expr> = Vec::new();
    for predicate in &around.holes.kept {
        let axis = &domain.axes[predicate.axis];
        if axis.kind == AxisKind::Reduction || holes::follows(domain, facts, *predicate, &seen) {
            continue;
        }
        let guard = facts.normal(&match predicate.side {
            Side::Lower => around.symbolic.values[predicate.axis].clone(),
            Side::Upper => axis.extent.sub(&around.symbolic.values[predicate.axis]).sub(&Expr::constant(1)),
        });
        if !guard.is_unknown() && guard.vars().iter().all(known) {
            guards.push(guard);
            continue;
        }
        let next_row = data.iter().any(|r| **r == predicate.axis);
        return Err(Gap::Guarded { axis: axis.name.clone(), next_row });
    }
    let mut offsets = Vec::with_capacity(axes.len());
    for written in axes {
        let offset = facts.normal(&written.index.sub(&written.region.start));
        let vars = offset.vars();
        let opaque = around.symbolic.opaque.iter().any(|(var, ..)| vars.contains(var));
        if offset.is_unknown() || opaque || vars.iter().any(|v| !inside.loops.iter().any(|i| i.var == *v)) {
            return Err(Gap::Unknown(written.name.clone()));
        }
        for var in &vars {
            let Some((axis, extent)) = leaf(*var) else { return Err(Gap::Unknown(written.name.clone())) };
            if extent.as_constant().is_none() && !outside_behind(facts, around, *var, &extent, &seen) {
                return Err(Gap::Varying { axis: axis.name.clone(), extent });
            }
        }
        offsets.push(offset);
    }
    let mut done = vec![false; axes.len()];
    for first in 0..axes.len() {
        if std::mem::replace(&mut done[first], true) {
            continue;
        }
        // Axes that share loops, directly, through others or through a guard.
        let mut group = vec![first];
        let mut vars = offsets[first].vars();
        loop {
            let before = vars.len();
            for guard in &guards {
                let own = guard.vars();
                if own.iter().any(|v| vars.contains(v)) {
                    vars.extend(own);
                }
            }
            for next in 0..axes.len() {
                if !done[next] && offsets[next].vars().iter().any(|v| vars.contains(v)) {
                    done[next] = true;
                    group.push(next);
                    vars.extend(offsets[next].vars());
                }
            }
            vars.sort_unstable();
            vars.dedup();
            if vars.len() == before {
                break;
            }
        }
        group.sort_unstable();
        let loops: Vec<Inner> = inside.loops.iter().copied().filter(|i| vars.contains(&i.var)).collect();
        let own: Vec<&Expr> = guards.iter().filter(|g| g.vars().iter().any(|v| vars.contains(v))).collect();
        covers(axes, &offsets, &group, &loops, &own)?;
    }
    Ok(())
}

/// Whether what a loop inside would write after its last iteration, up to the bound that the facts give, lies outside
/// the tensor: then it is as good as written.
fn outside_behind(facts: &Facts, around: Around<'_>, var: Var, extent: &Expr, seen: &[Predicate]) -> bool {
    let mut system = facts.residue_system();
    for leaf in &around.symbolic.variables {
        system.at_least(leaf.var, 0);
        if leaf.var != var && !leaf.is_term {
            let last = leaf.extent.sub(&Expr::constant(1)).sub(&Expr::var(leaf.var));
            // A loop with a bound of its own stands for all iterations up to that, too.
            let most = facts.upper_bound(&leaf.extent).map(|most| Expr::constant(most - 1).sub(&Expr::var(leaf.var)));
            system.require(&facts.with_residues(&most.unwrap_or(last)));
        }
    }
    for predicate in seen {
        system.require(&holes::slack(&around.stage.domain, facts, around.symbolic, predicate));
    }
    system.require(&facts.with_residues(&Expr::var(var).sub(extent)));
    system.is_infeasible()
}

/// Whether loops are the digits of an offset, in some order: it takes every value below their product once.
fn counts(offset: &Expr, loops: &[Inner]) -> bool {
    let digit = |inner: &Inner| {
        let term = offset.terms().iter().find(|term| term.atoms[..] == [Atom::Var(inner.var)])?;
        Some((term.coefficient, inner.extent))
    };
    let Some(mut digits) = loops.iter().map(digit).collect::<Option<Vec<_>>>() else { return false };
    digits.sort_unstable();
    let mut next = 1;
    let are_digits = digits.into_iter().all(|(step, count)| step == std::mem::replace(&mut next, step * count));
    are_digits && offset.terms().len() == loops.len()
}

/// Whether the offsets of these axes take all values together.
fn covers(axes: &[Written], offsets: &[Expr], group: &[usize], loops: &[Inner], guards: &[&Expr]) -> Result<(), Gap> {
    let unknown = || Gap::Unknown(axes[group[0]].name.clone());
    let product = |product: i128, n: i128| product.checked_mul(n).filter(|p| *p <= POINTS);
    let points = loops.iter().map(|l| l.extent).try_fold(1, product).ok_or_else(unknown)?;
    let cells = group.iter().map(|a| axes[*a].region.extent).try_fold(1, product).ok_or_else(unknown)?;
    if let ([axis], []) = (group, guards)
        && points == cells
        && counts(&offsets[*axis], loops)
    {
        return Ok(());
    }
    let mut reached = vec![false; cells as usize];
    let mut values = vec![0i128; loops.iter().map(|l| l.var as usize + 1).max().unwrap_or(0)];
    for point in 0..points {
        let mut rest = point;
        for inner in loops {
            values[inner.var as usize] = rest % inner.extent;
            rest /= inner.extent;
        }
        if guards.iter().any(|guard| guard.eval(&values).is_none_or(|slack| slack < 0)) {
            continue;
        }
        let mut cell = Some(0);
        for at in group {
            let extent = axes[*at].region.extent;
            let offset = offsets[*at].eval(&values).ok_or_else(unknown)?;
            // What is not in the region is not written: an axis ends before.
            cell = cell.filter(|_| (0..extent).contains(&offset)).map(|cell: i128| cell * extent + offset);
        }
        if let Some(cell) = cell {
            reached[cell as usize] = true;
        }
    }
    let Some(missing) = reached.iter().position(|r| !r) else { return Ok(()) };
    let mut rest = missing as i128;
    let mut offsets = Vec::with_capacity(group.len());
    for at in group.iter().rev() {
        let extent = axes[*at].region.extent;
        offsets.push((axes[*at].name.clone(), rest % extent));
        rest /= extent;
    }
    offsets.reverse();
    Err(Gap::Missing(offsets))
}
