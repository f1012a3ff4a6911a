//! Which elements of a tensor a place in a loop nest needs: the region of a stage at its attach point.
//!
//! A reader asks for elements by indices, which are expressions over dimensions, over loops *outside* the attach point
//! and over loops *inside* it. The region holds every element that is asked for while the loops outside stand still. It
//! is one or more [`Group`]s, each with coordinates of its own: a box of the tensor, a box of every so-many-th element,
//! or a flat run of elements in row-major order.
//!
//! **Property.** At every value of the loops outside and every admissible size,
//!
//! - each element that a reader asks for has coordinates in its group: `start + step · c` with
//!   `0 ≤ c < extent ≤ bound`;
//! - each element with such coordinates lies in the tensor; where nothing is asked for there is none in a group of one
//!   request, unless conditions around the read say so that have no linear form: a group of several requests may hold
//!   elements while only some ask;
//! - what a group claims by its [`Fit`] and by [`Group::is_known`] holds.
//!
//! **Theory** (docs/theory.md, Regions; every formula is checked against enumeration in `tests`).
//!
//! - *Splits*: a sum of loops that is an axis, or a part of one, ends where that axis does, at any depth (`form`).
//! - *Fused axes*: an index is a digit ⌊f / S⌋ mod N of a flat value f. While f runs through [a, b] the smallest cover
//!   of that digit is [⌊a / S⌋ mod N, ⌊b / S⌋ mod N] if ⌊a / SN⌋ = ⌊b / SN⌋, else all of [0, N) (`run`). For all digits
//!   of f together this is the rule of mixed radix: common leading digits, then an interval, then full. It is evaluated
//!   on f after f was clipped to its last value.
//! - *Exactness*: the cover is no larger than the run of f just where the factor is g·S_d for an axis d of which g is a
//!   divisor, or the outermost. It is decided by comparing the two.
//! - *Flat*: where the row-major numbers of what is asked for are a run, a buffer of that length wastes nothing,
//!   whatever the factor.
//! - *Bounds* are the largest extents over the iterations of the loops outside: all of them if they are few, else one
//!   period, else ⌊(r + width) / d⌋ + 1 for the largest remainder r that a start can leave.
//! - *Equal requests* (`same`): loops inside that run as often may trade names; what is the same then is one request.
//! - *Several requests* (`part`): hulls of what overlaps or lies side by side, groups of their own for what is apart.
//! - *Digits side by side*: two digits of f are as good as two loops where f takes whole blocks of both.
//!
//! **Work** is bounded: proofs of one region are counted and then count as failed, loops outside are enumerated up to a
//! limit, and requests are put together one after the other. What is not proved makes a region larger, never wrong. An
//! index that is data, or no sum of digits and products by what is known, takes all of its dimension.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `digit`, `form`, `run` | an index as digits; the run of its values; arithmetic of runs |
//! | `limit` | ends of axes as limits on sums of loops |
//! | `same` | which requests ask for the same |
//! | `part`, `group` | what requests ask for, together; its coordinates and members |
//! | `known` | what is known of dimensions and of loops outside |
//! | `interval` | the intervals that an instance of a staged copy holds |

mod digit;
mod form;
mod group;
pub mod interval;
mod known;
mod limit;
mod part;
mod run;
mod same;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::extent::{Expr, Facts, Var, collapsed};

pub use interval::{Inner, Inside, Interval, NotATile, Sum};
pub use run::Fit;

/// What one read asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// One index for each dimension of the tensor, over dimensions and loops.
    pub indices: Vec<Expr>,
    /// Each at least 0 wherever the element is read, over dimensions and loops: conditions around the read.
    pub conditions: Vec<Expr>,
    /// Values, over any of the loops, that lie in `0..extent` wherever it is read: axes whose ends predicates guard.
    /// Extents are over dimensions and loops outside.
    pub axes: Vec<(Expr, Expr)>,
}

/// The loops of all readers.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// Loops inside the attach point, and how many iterations each has, over dimensions and loops outside.
    pub inside: Vec<(Var, Expr)>,
    /// Loops outside, and how many iterations each has, over dimensions.
    pub outside: Vec<(Var, Expr)>,
    /// Each at least 0 wherever the loops outside come to the place with something to do, over dimensions and those
    /// loops: what holds there of the stages around it. Elsewhere a region means nothing.
    pub reached: Vec<Expr>,
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
    /// What the extents say, one end at a time: of the coordinates below their bounds those exist at which each of
    /// these is at least 0, over dimensions, loops outside, and
    /// [`Family::COORDINATE`](crate::extent::Family::COORDINATE). The minimum of ends that an extent is can be much
    /// longer.
    pub limits: Vec<Expr>,
    /// What is claimed of the coordinates: that all are asked for, or that no smaller extents would do, in each
    /// iteration.
    pub fit: Fit,
    /// Elements that are asked for: those at which all conditions `e ≥ 0` of one of these lists hold, over dimensions,
    /// loops outside, and [`Family::COORDINATE`](crate::extent::Family::COORDINATE). Empty: all.
    pub members: Vec<Vec<Expr>>,
    /// Whether `members` excludes everything that nobody asks for.
    pub is_known: bool,
    /// A bound of the elements that are asked for while the loops outside stand still, over dimensions, if one is
    /// known: to be compared with the product of the bounds of the extents, which is what is computed and kept.
    pub needed: Option<Expr>,
}

/// One coordinate of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinate {
    /// The dimension of the tensor that it runs along; several neighbours, outermost first, if it runs through them in
    /// row-major order.
    pub dims: Vec<usize>,
    /// The position at coordinate 0, over dimensions and loops outside: an index, or the row-major number of an element
    /// among those of its dimensions, counted from the first element of the domain.
    pub start: Expr,
    /// Positions from one coordinate to the next; at least 1.
    pub step: i128,
    /// How many there are, over dimensions and loops outside; may be less than the bound in some iterations. Where the
    /// only request asks for nothing, that of the first coordinate is 0 or less, and the others mean nothing.
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
/// As [`of`]; [`NotATile::NotFlat`] if [`Realisation::Flat`] is asked for, and the elements are no run in row-major
/// order.
pub fn of_as(
    requests: &[Request],
    loops: &Loops,
    domain: &[(Expr, Expr)],
    facts: &Facts,
    way: Realisation,
) -> Result<Region, NotATile> {
    Parts::new(requests, loops, domain, facts, way != Realisation::Cover)?.realise(way)
}

/// What requests ask for, put together, before it is laid out.
#[derive(Debug)]
pub struct Parts<'a> {
    parts: Vec<part::Part>,
    domain: Vec<(Expr, Expr)>,
    known: known::Known<'a>,
    has_runs: bool,
}

impl<'a> Parts<'a> {
    /// The parts of the region of a tensor, as of [`of`]. Whether runs in row-major order are looked for that its boxes
    /// do not need: without them [`Realisation::Cover`] alone can be asked for.
    ///
    /// # Errors
    /// See [`NotATile`].
    pub fn new(
        requests: &[Request],
        loops: &Loops,
        domain: &[(Expr, Expr)],
        facts: &'a Facts,
        has_runs: bool,
    ) -> Result<Self, NotATile> {
        let known = known::Known::new(loops, facts);
        let domain: Vec<(Expr, Expr)> =
            domain.iter().map(|(low, end)| (facts.normal(low), facts.normal(end))).collect();
        for request in requests {
            if let Some(var) = request.indices.iter().chain(&request.conditions).find_map(|e| known.stranger(e)) {
                return Err(NotATile::Unlisted(var));
            }
        }
        let requests: Vec<Cow<'_, Request>> = requests.iter().map(|request| decided(request, &known)).collect();
        // Each with the requests that ask for the same.
        let mut asked: Vec<Vec<usize>> = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            match asked.iter_mut().find(|same| same::is_same(&requests[same[0]], request, &known)) {
                Some(same) => same.push(number),
                None => asked.push(vec![number]),
            }
        }
        let is_one = asked.len() == 1;
        let shape = part::Shape { domain: &domain, has_runs: has_runs || !is_one };
        let mut around = Around { known: &known, found: Vec::new() };
        let mut parts = Vec::with_capacity(asked.len());
        for same in asked {
            let request = &requests[same[0]];
            let mut read = |conditions: &[Expr]| {
                let (limits, known) = around.limits(&request.axes, conditions);
                (part::Part::new(same.clone(), request, &limits, shape, &known), known)
            };
            let (mut part, own) = read(&request.conditions);
            // Without its conditions it is asked for beside others alone.
            if !request.conditions.is_empty() && !is_one {
                part.plain = Some(Box::new(read(&[]).0));
            }
            parts.push((part, own));
        }
        // Of several requests only what all of them imply is known.
        let (mut all, mut rows) = (Vec::with_capacity(parts.len()), known.fork());
        for (part, own) in parts {
            rows.keep_common(own, all.is_empty());
            all.push(part);
        }
        Ok(Self { parts: part::gather(all, &rows), known: rows, domain, has_runs })
    }

    /// The region in a realisation.
    ///
    /// # Errors
    /// [`NotATile::NotFlat`] if it has no such.
    pub fn realise(&self, way: Realisation) -> Result<Region, NotATile> {
        // The proofs for one realisation are not counted for another.
        debug_assert!(self.has_runs || way == Realisation::Cover, "runs were not looked for");
        let (shape, known) = (part::Shape { domain: &self.domain, has_runs: self.has_runs }, self.known.clone());
        let groups = self.parts.iter().map(|part| part.realise(way, shape, &known)).collect::<Option<Vec<_>>>();
        groups.map(|groups| Region { groups }).ok_or(NotATile::NotFlat)
    }
}

/// A request whose quotients are decided that the loops inside decide by how many iterations they have.
fn decided<'r>(request: &'r Request, known: &known::Known<'_>) -> Cow<'r, Request> {
    let range = |v: Var| known.inside(v)?.as_constant().filter(|n| *n > 0).map(|n| (0, n - 1));
    let found: Vec<Option<Expr>> = request.indices.iter().map(|e| collapsed(e, &range)).collect();
    if found.iter().all(Option::is_none) {
        return Cow::Borrowed(request);
    }
    let indices = found.into_iter().zip(&request.indices).map(|(found, e)| found.unwrap_or_else(|| e.clone()));
    Cow::Owned(Request { indices: indices.collect(), ..request.clone() })
}

/// What ends of axes and conditions around reads say of the loops: most reads have the same.
struct Around<'k, 'a> {
    known: &'k known::Known<'a>,
    found: Vec<Found<'a>>,
}

/// What axes and conditions came to.
struct Found<'a> {
    axes: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
    limits: form::Limits,
    known: known::Known<'a>,
}

impl<'a> Around<'_, 'a> {
    /// The limits, and what is known with them.
    fn limits(&mut self, axes: &[(Expr, Expr)], conditions: &[Expr]) -> (form::Limits, known::Known<'a>) {
        if let Some(found) = self.found.iter().find(|found| found.axes == axes && found.conditions == conditions) {
            return (found.limits.clone(), found.known.clone());
        }
        let mut known = self.known.fork();
        let limits = form::Limits::new(axes, conditions, &mut known);
        let (axes, conditions) = (axes.to_vec(), conditions.to_vec());
        self.found.push(Found { axes, conditions, limits: limits.clone(), known: known.clone() });
        (limits, known)
    }
}
