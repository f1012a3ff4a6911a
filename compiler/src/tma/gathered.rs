//! Copies whose place memory tells: a page of a table, the matrix of an expert.
//!
//! **Property.** Along an axis an instance is one interval, or boxes of one element whose places memory lists: pages
//! that are smaller than a block. **Formula.** Each index of what is read there takes one value over the loops inside
//! ([`interval`], of length 1), or one of them a few that follow each other, in which boxes are counted. Reads of the
//! same element, wherever they are written, are one variable m, and what memory lists is indexed by m + u, with the
//! number u of the box: along one axis of the view, where nothing else follows u ([`one_box_each`]). Then starts are
//! sums in which such a variable is multiplied by a literal, and nothing is known of it: a coordinate outside of the
//! tensor gives zeros, as other coordinates do. That listed places would follow each other is not true, and nobody
//! relies on it: each box has one element along their axis, and is judged alone. **Approximation.** Products with
//! sizes, quotients and remainders of such numbers are refused.

use tilewright_kernel::algorithm::Algorithm;

use super::plan::{Resolved, Served};
use super::rules::{NotOne, Refused};
use super::view::ViewAxis;
use crate::extent::{Atom, Expr, Family, Term, Var};
use crate::plan::staged::Axis;
use crate::region::interval::interval;
use crate::schedule::accesses::{FromMemory, Listed};
use crate::source::{Span, ast};

/// The largest factor of what is read from memory: with it, no start passes 64 bits.
const MOST_STEP: i128 = 1 << 15;

/// Most places that memory lists for an instance: each is a copy of its own.
const MOST_PLACES: i128 = 16;

/// What memory lists for a read.
pub(super) struct Counted {
    /// The variable that stands for it.
    of: Var,
    /// The input.
    parameter: u16,
    /// The number of the box that the read takes, over the loops inside.
    number: Expr,
    /// The dimension whose index it is.
    dim: usize,
}

/// Gives the reads whose indices depend on memory their indices over the variables of the kernel; the same once more,
/// by the places of the reads.
///
/// # Errors
/// See [`indices`].
pub(super) fn resolve(
    served: &mut [Served<'_>],
    memory: &mut Vec<FromMemory>,
    of: (&Algorithm, &[ast::Name]),
) -> Result<Resolved, Refused> {
    let mut resolved = Resolved::new();
    for one in served {
        if let Some((found, counted)) = indices(one, memory, of)? {
            one.indices.clone_from(&found);
            one.counted = counted;
            resolved.push((one.at, found));
        }
    }
    Ok(resolved)
}

/// Indices of a read, and its variables whose values memory lists.
type Found = (Vec<Expr>, Vec<Counted>);

/// The indices of a read that depend on memory: in each, for what is read, a variable of `memory`, the list of a
/// kernel, which is longer afterwards if it is new; and the number of the box, if there is one for each. None for other
/// reads. `axes` are the names of the dimensions.
///
/// # Errors
/// It is not one for all of an instance, or more than so many.
fn indices(
    served: &mut Served<'_>,
    memory: &mut Vec<FromMemory>,
    (algorithm, axes): (&Algorithm, &[ast::Name]),
) -> Result<Option<Found>, Refused> {
    let Some(gathered) = served.access.gathered.as_deref() else { return Ok(None) };
    let mut found: Vec<Expr> = Vec::with_capacity(gathered.reads.len());
    let mut counted = Vec::new();
    for (n, read) in gathered.reads.iter().enumerate() {
        let own = Family::MEMORY.var(n);
        let Some(dim) = gathered.indices.iter().position(|e| e.vars().contains(&own)) else {
            // It was taken away from itself.
            found.push(Expr::constant(0));
            continue;
        };
        let refuse =
            |why: NotOne| Err(Refused::FromMemory { axis: axes[dim].text.clone(), why, read: served.access.span });
        let mut one = FromMemory { indices: Vec::with_capacity(read.indices.len()), ..read.clone() };
        let mut number = Expr::constant(0);
        for (along, index) in read.indices.iter().enumerate() {
            let unrolled = served.loops.unrolled(index, served.access, served.facts, algorithm)?;
            let found = match interval(&unrolled, served.loops.inside(), served.facts) {
                Ok(found) if found.extent == 1 || one.listed.is_none() => found,
                _ => return refuse(NotOne::Several { parameter: read.parameter }),
            };
            if found.extent > MOST_PLACES {
                return refuse(NotOne::Many { parameter: read.parameter, count: found.extent, most: MOST_PLACES });
            }
            if found.extent > 1 {
                let count = i64::try_from(found.extent).unwrap_or(i64::MAX);
                (one.listed, number) = (Some(Listed { along, count }), index.sub(&found.start));
            }
            one.indices.push(found.start);
        }
        let known = memory.iter().position(|other| *other == one).unwrap_or_else(|| {
            memory.push(one);
            memory.len() - 1
        });
        if memory[known].listed.is_some() {
            let number = served.loops.unrolled(&number, served.access, served.facts, algorithm)?;
            counted.push(Counted {
                of: Family::MEMORY.var(known),
                parameter: read.parameter,
                number: number.clone(),
                dim,
            });
        }
        found.push(Family::MEMORY.expr(known).add(&number));
    }
    let value = |v: Var| found.get(Family::MEMORY.number(v)?).cloned();
    Ok(Some((gathered.indices.iter().map(|e| e.substitute(&value)).collect(), counted)))
}

/// Whether a box has what each read takes from it: along one axis of the view an index is the place that memory lists
/// for the number of a box, and of the rest nothing follows the number. Numbers cancel, of `p[i] - p[j]` or where axes
/// are merged; what memory holds does not.
///
/// # Errors
/// It is not so.
pub(super) fn one_box_each(axes: &[ViewAxis], served: &[Served<'_>]) -> Result<(), Refused> {
    for (n, one) in served.iter().enumerate() {
        // The first index is the axis itself.
        let index = |axis: &ViewAxis| axis.indices[n + 1].clone();
        for Counted { of, parameter, number, dim } in &one.counted {
            let own = axes.iter().filter(|axis| index(axis).vars().contains(of));
            let rests: Vec<(&ViewAxis, Expr)> =
                own.map(|axis| (axis, index(axis).sub(&Expr::var(*of)).sub(number))).collect();
            let refuse = |axis: Option<&ViewAxis>, why| {
                let axis = axis.or_else(|| axes.iter().find(|axis| axis.dims.contains(dim)));
                let axis = axis.map_or_else(String::new, |axis| axis.name.clone());
                Err(Refused::FromMemory { axis, why, read: one.access.span })
            };
            if let Some((axis, _)) = rests.iter().find(|(_, rest)| rest.vars().contains(of)) {
                return refuse(Some(axis), NotOne::Computed);
            }
            let is_one = |rest: &Expr| interval(rest, one.loops.inside(), one.facts).is_ok_and(|i| i.extent == 1);
            match &rests[..] {
                [(_, rest)] if is_one(rest) => {}
                rests => return refuse(rests.first().map(|r| r.0), NotOne::Several { parameter: *parameter }),
            }
        }
    }
    Ok(())
}

/// Whether the starts of regions are what can be computed of numbers that memory holds, and boxes have the places that
/// it lists.
///
/// # Errors
/// They are not.
pub(super) fn check(axes: &[Axis], memory: &[(Var, FromMemory)], read: Span) -> Result<(), Refused> {
    let is_read = |e: &Expr| e.mentions(&is_of_memory);
    let is_sum = |t: &Term| match t.atoms[..] {
        [Atom::Var(v)] if is_of_memory(v) => t.coefficient.abs() <= MOST_STEP,
        _ => !is_read(&Expr::from_atoms(&t.atoms)),
    };
    let refuse = |axis: &Axis, why: NotOne| Err(Refused::FromMemory { axis: axis.name.clone(), why, read });
    if let Some(axis) = axes.iter().find(|axis| !axis.region.start.terms().iter().all(is_sum)) {
        return refuse(axis, NotOne::Computed);
    }
    let mut listed = memory.iter().filter(|(_, read)| read.listed.is_some());
    let Some((v, FromMemory { parameter, listed: Some(Listed { count, .. }), .. })) = listed.next() else {
        return Ok(());
    };
    let Some(axis) = axes.iter().find(|axis| axis.region.start.vars().contains(v)) else { return Ok(()) };
    // Readers number boxes wherever an index is an element of the input that lists them (`number_in_instance`).
    let is_other = |(other, read): &(Var, FromMemory)| other == v || read.parameter != *parameter;
    let is_alone = listed.next().is_none() && memory.iter().all(is_other);
    match is_alone && axis.region.extent == i128::from(*count) && axis.boxed.box_size == 1 {
        true => Ok(()),
        false => refuse(axis, NotOne::Several { parameter: *parameter }),
    }
}

/// Whether a variable stands for what memory holds.
fn is_of_memory(v: Var) -> bool {
    Family::MEMORY.number(v).is_some()
}

/// Those that the start of a region mentions.
pub(super) fn mentioned(start: &Expr, memory: &[FromMemory]) -> Vec<(Var, FromMemory)> {
    let vars = start.vars().into_iter();
    vars.filter_map(|v| Some((v, memory.get(Family::MEMORY.number(v)?)?.clone()))).collect()
}

/// Those that starts of regions mention.
pub(super) fn all(axes: &[Axis], memory: &[FromMemory]) -> Vec<(Var, FromMemory)> {
    let mut all: Vec<(Var, FromMemory)> = axes.iter().flat_map(|a| mentioned(&a.region.start, memory)).collect();
    all.sort_by_key(|(v, _)| *v);
    all.dedup_by_key(|(v, _)| *v);
    all
}
