//! Which elements of a tensor a place in a loop nest needs: the region of a stage at its attach point.
//!
//! A reader asks for elements by indices, which are expressions over dimensions, over loops *outside* the attach point and over loops
//! *inside* it. The region holds every element that is asked for while the loops outside stand still. It is one or more [`Group`]s, each
//! with coordinates of its own: a box of the tensor, a box of every so-many-th element, or a flat run of elements in row-major order.
//!
//! **Property.** At every value of the loops outside and every admissible size, each element that a reader asks for has coordinates in
//! its group: `start + step · c` with `0 ≤ c < extent ≤ bound`.

pub mod interval;

use crate::extent::{Expr, Facts, Var};

pub use interval::{Inner, Inside, Interval, NotATile, Sum};

/// What one read asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// One index for each dimension of the tensor, over dimensions and loops.
    pub indices: Vec<Expr>,
}

/// The loops of all readers.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// Loops inside the attach point, and how many iterations each has, over dimensions.
    pub inside: Vec<(Var, Expr)>,
    /// Loops outside, and how many iterations each has, over dimensions.
    pub outside: Vec<(Var, Expr)>,
    /// Values, over any of the loops, that lie in `0..extent` wherever something is asked for: axes whose ends predicates guard.
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
}

/// One coordinate of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinate {
    /// The dimension of the tensor that it runs along; several neighbours, outermost first, if it runs through them in row-major order.
    pub dims: Vec<usize>,
    /// The position at coordinate 0, over dimensions and loops outside: an index, or the row-major number of an element.
    pub start: Expr,
    /// Positions from one coordinate to the next; at least 1.
    pub step: i128,
    /// How many there are, over dimensions and loops outside; may be less than the bound in some iterations.
    pub extent: Expr,
    /// A bound of the extent that does not depend on loops, over dimensions.
    pub bound: Expr,
}

/// The region of a tensor whose dimension d has the indices from `domain[d].0` to below `domain[d].1`.
///
/// # Errors
/// Requests that no box with an extent free of loops holds.
pub fn of(requests: &[Request], loops: &Loops, domain: &[(Expr, Expr)], facts: &Facts) -> Result<Region, NotATile> {
    let most = |extent: &Expr| {
        let extent = facts.normal(extent);
        extent.as_constant().or_else(|| facts.upper_bound(&extent)).map(|most| most.max(1))
    };
    let is_inside = |v: &Var| loops.inside.iter().any(|i| i.0 == *v);
    let own = |value: &Expr| !value.vars().is_empty() && value.vars().iter().all(is_inside);
    let constant = |(value, extent): &(Expr, Expr)| {
        own(value).then_some(())?;
        Some(Sum { value: value.clone(), extent: most(extent)? })
    };
    let sums: Vec<Sum> = loops.axes.iter().filter_map(constant).collect();
    let inner: Vec<Inner> =
        loops.inside.iter().filter_map(|(var, extent)| Some(Inner { var: *var, extent: most(extent)? })).collect();
    let inside = Inside { loops: &inner, sums: &sums };
    let mut axes = Vec::with_capacity(domain.len());
    for d in 0..domain.len() {
        let mut hull: Option<Coordinate> = None;
        for request in requests {
            let index = facts.normal(&request.indices[d]);
            // One whole axis.
            let whole = loops.axes.iter().find_map(|(value, extent)| {
                let start = facts.normal(&index.sub(value));
                (own(value) && !start.vars().iter().any(is_inside)).then(|| (start, facts.normal(extent)))
            });
            let (start, extent) = match whole {
                Some(found) => found,
                None => {
                    let missing = index.vars().into_iter().find(|v| is_inside(v) && !inner.iter().any(|i| i.var == *v));
                    if let Some(var) = missing {
                        return Err(NotATile::SymbolicStep(var));
                    }
                    let found = interval::interval(&index, inside, facts)?;
                    (found.start, Expr::constant(found.extent))
                }
            };
            hull = Some(match hull {
                None => Coordinate { dims: vec![d], start, step: 1, bound: extent.clone(), extent },
                Some(before) if before.start == start && before.extent == extent => before,
                Some(before) => {
                    let interval = |start: &Expr, extent: &Expr| {
                        let extent = most(extent).ok_or(NotATile::TooLong)?;
                        Ok(Interval { start: start.clone(), extent })
                    };
                    let both = (interval(&before.start, &before.extent)?, interval(&start, &extent)?);
                    let Interval { start, extent } = interval::hull(&both.0, &both.1, facts)?;
                    let extent = Expr::constant(extent);
                    Coordinate { dims: vec![d], start, step: 1, bound: extent.clone(), extent }
                }
            });
        }
        axes.extend(hull);
    }
    Ok(Region { groups: vec![Group { requests: (0..requests.len()).collect(), axes }] })
}
