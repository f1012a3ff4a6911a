//! Copies whose place memory tells: a page of a table, the matrix of an expert.
//!
//! **Property.** Along an axis an instance is one interval, or boxes of one element whose places memory lists: pages
//! that are smaller than a block. **Formula.** Each index of what is read there takes one value over the loops inside
//! ([`interval`], of length 1), or one of them a few that follow each other, in which boxes are counted. Reads of the
//! same element, wherever they are written, are one variable m, and what memory lists is indexed by m + u, with the
//! number u of the box. Then starts are sums in which such a variable is multiplied by a literal, and nothing is known
//! of it: a coordinate outside of the tensor gives zeros, as other coordinates do. That listed places would follow each
//! other is not true, and nobody relies on it: each box has one element along their axis, and is judged alone.
//! **Approximation.** Products with sizes, quotients and remainders of such numbers are refused.

use tilewright_kernel::algorithm::Algorithm;

use super::plan::{Resolved, Served};
use super::rules::{NotOne, Refused};
use crate::extent::{Atom, Expr, Family, Term, Var};
use crate::plan::staged::Axis;
use crate::region::interval::interval;
use crate::schedule::accesses::{FromMemory, Listed};
use crate::source::{Span, ast};

/// The largest factor of what is read from memory: with it, no start passes 64 bits.
const MOST_STEP: i128 = 1 << 15;

/// Most places that memory lists for an instance: each is a copy of its own.
const MOST_PLACES: i128 = 16;

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
        if let Some(found) = indices(one, memory, of)? {
            one.indices.clone_from(&found);
            resolved.push((one.at, found));
        }
    }
    Ok(resolved)
}

/// The indices of a read that depend on memory: in each, for what is read, a variable of `memory`, the list of a
/// kernel, which is longer afterwards if it is new; and the number of the box, if there is one for each. None for other
/// reads. `axes` are the names of the dimensions.
///
/// # Errors
/// It is not one for all of an instance, or for each box.
fn indices(
    served: &mut Served<'_>,
    memory: &mut Vec<FromMemory>,
    (algorithm, axes): (&Algorithm, &[ast::Name]),
) -> Result<Option<Vec<Expr>>, Refused> {
    let Some(gathered) = served.access.gathered.as_deref() else { return Ok(None) };
    let mut found: Vec<Expr> = Vec::with_capacity(gathered.reads.len());
    for (n, read) in gathered.reads.iter().enumerate() {
        let own = Family::MEMORY.var(n);
        let at = gathered.indices.iter().position(|e| e.vars().contains(&own));
        let refuse = |why: NotOne| {
            let axis = at.and_then(|at| axes.get(at)).map_or_else(String::new, |axis| axis.text.clone());
            Err(Refused::FromMemory { axis, why, read: served.access.span })
        };
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
        if one.listed.is_some() {
            // What else is added is the same for all boxes, so that they are counted by what is listed.
            let others = gathered.indices.iter().filter(|e| e.vars().contains(&own)).count();
            let rest = at.map_or_else(Expr::unknown, |at| gathered.indices[at].sub(&Expr::var(own)));
            let rest = served.loops.unrolled(&rest, served.access, served.facts, algorithm)?;
            let is_one = |rest: &Expr| interval(rest, served.loops.inside(), served.facts).is_ok_and(|i| i.extent == 1);
            if others != 1 || !is_one(&rest) {
                return refuse(NotOne::Several { parameter: read.parameter });
            }
        }
        let known = memory.iter().position(|other| *other == one).unwrap_or_else(|| {
            memory.push(one);
            memory.len() - 1
        });
        found.push(Family::MEMORY.expr(known).add(&number));
    }
    let value = |v: Var| found.get(Family::MEMORY.number(v)?).cloned();
    Ok(Some(gathered.indices.iter().map(|e| e.substitute(&value)).collect()))
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
    let of_it = |axis: &&Axis| axis.region.start.vars().contains(v);
    let Some(axis) = axes.iter().find(of_it) else { return Ok(()) };
    // Readers number boxes wherever an index is an element of the input that lists them (`number_in_instance`).
    let is_other = |(other, read): &(Var, FromMemory)| other == v || read.parameter != *parameter;
    let is_alone = listed.next().is_none() && axes.iter().filter(of_it).count() == 1 && memory.iter().all(is_other);
    let is_once = axis.region.start.terms().iter().all(|t| t.atoms != [Atom::Var(*v)] || t.coefficient == 1);
    let is_each = axis.region.extent == i128::from(*count) && axis.boxed.box_size == 1;
    match (is_once, is_alone && is_each) {
        (true, true) => Ok(()),
        (false, _) => refuse(axis, NotOne::Computed),
        (true, false) => refuse(axis, NotOne::Several { parameter: *parameter }),
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
