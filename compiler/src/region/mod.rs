//! Which elements of a tensor a place in a loop nest needs: the region of a stage at its attach point.
//!
//! A reader asks for elements by indices, which are expressions over dimensions, over loops *outside* the attach point and over loops
//! *inside* it. The region holds every element that is asked for while the loops outside stand still. It is one or more [`Group`]s, each
//! with coordinates of its own: a box of the tensor, a box of every so-many-th element, or a flat run of elements in row-major order.
//!
//! **Property.** At every value of the loops outside and every admissible size, each element that a reader asks for has coordinates in
//! its group: `start + step · c` with `0 ≤ c < extent ≤ bound`.

mod form;
mod group;
pub mod interval;
mod known;
mod run;
#[cfg(test)]
mod tests;

use crate::extent::{Expr, Facts, Var};

pub use interval::{Inner, Inside, Interval, NotATile, Sum};
pub use run::Fit;

/// In the conditions of [`Group::members`], `COORDINATE + k` stands for the coordinate along axis k of the group.
pub const COORDINATE: Var = 1 << 28;

/// What one read asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// One index for each dimension of the tensor, over dimensions and loops.
    pub indices: Vec<Expr>,
    /// Each at least 0 wherever the element is read, over dimensions and loops: conditions around the read.
    pub conditions: Vec<Expr>,
}

/// The loops of all readers.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// Loops inside the attach point, and how many iterations each has, over dimensions and loops outside.
    pub inside: Vec<(Var, Expr)>,
    /// Loops outside, and how many iterations each has, over dimensions.
    pub outside: Vec<(Var, Expr)>,
    /// Values, over any of the loops, that lie in `0..extent` wherever something is asked for: axes whose ends predicates guard. Extents
    /// are over dimensions and loops outside.
    pub axes: Vec<(Expr, Expr)>,
}

/// The elements that a place needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Parts with coordinates of their own.
    pub groups: Vec<Group>,
}

/// Elements with coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Positions of the requests that are served here.
    pub requests: Vec<usize>,
    /// The coordinates, outermost first.
    pub axes: Vec<Coordinate>,
    /// What is claimed of the coordinates: that all are asked for, or that no smaller extents would do, in each iteration.
    pub fit: Fit,
    /// Elements that are asked for: those at which all conditions `e ≥ 0` of one of these lists hold, over dimensions, loops outside, and
    /// `COORDINATE + k`. Empty: all.
    pub members: Vec<Vec<Expr>>,
    /// Whether `members` excludes everything that nobody asks for.
    pub is_known: bool,
}

/// One coordinate of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinate {
    /// The dimension of the tensor that it runs along; several neighbours, outermost first, if it runs through them in row-major order.
    pub dims: Vec<usize>,
    /// The position at coordinate 0, over dimensions and loops outside: an index, or the row-major number of an element among those of
    /// its dimensions, counted from the first element of the domain.
    pub start: Expr,
    /// Positions from one coordinate to the next; at least 1.
    pub step: i128,
    /// How many there are, over dimensions and loops outside; may be less than the bound in some iterations, and 0 or less where nothing is
    /// asked for.
    pub extent: Expr,
    /// A bound of the extent that does not depend on loops, over dimensions.
    pub bound: Expr,
}

/// How a group is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Realisation {
    /// The one with the smallest static number of elements; of equal ones the box.
    #[default]
    Smallest,
    /// The smallest box.
    Cover,
    /// A run of elements in row-major order, where what is asked for is one.
    Flat,
}

/// The region of a tensor whose dimension d has the indices from `domain[d].0` to below `domain[d].1`.
///
/// # Errors
/// See [`NotATile`].
pub fn of(requests: &[Request], loops: &Loops, domain: &[(Expr, Expr)], facts: &Facts) -> Result<Region, NotATile> {
    of_as(requests, loops, domain, facts, Realisation::Smallest)
}

/// As [`of`], laid out as asked.
///
/// # Errors
/// As [`of`]; [`NotATile::NotFlat`] if [`Realisation::Flat`] is asked for, and the elements are no run in row-major order.
pub fn of_as(
    requests: &[Request],
    loops: &Loops,
    domain: &[(Expr, Expr)],
    facts: &Facts,
    way: Realisation,
) -> Result<Region, NotATile> {
    let known = known::Known::new(loops, facts);
    let ends: Vec<(Expr, Expr)> = domain.iter().map(|(low, end)| (facts.normal(low), facts.normal(end))).collect();
    let shape = group::Shape { domain: &ends };
    let mut parts = Vec::with_capacity(requests.len());
    for (number, request) in requests.iter().enumerate() {
        if let Some(var) = request.indices.iter().chain(&request.conditions).find_map(|e| known.stranger(e)) {
            return Err(NotATile::Unlisted(var));
        }
        let mut known = known.fork();
        let limits = form::Limits::new(loops, &request.conditions, &mut known);
        parts.push((group::Part::new(number, request, &limits, shape, &known)?, known));
    }
    // Of several requests only what all of them imply is known.
    let (mut all, mut rows) = (Vec::with_capacity(parts.len()), known.fork());
    for (part, own) in parts {
        rows.keep_common(own, all.is_empty());
        all.push(part);
    }
    let groups = group::gather(all, &rows).iter().map(|g| g.realise(way, shape, &rows)).collect::<Option<Vec<_>>>();
    groups.map(|groups| Region { groups }).ok_or(NotATile::NotFlat)
}
