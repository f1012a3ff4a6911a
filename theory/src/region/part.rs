//! What requests ask for: boxes, flat runs and members, and which requests share them.
//!
//! Two requests whose distance is constant share a hull if they overlap, or if the hull is no larger than both
//! together; otherwise they are parts of their own, as are requests that move apart by loops outside, unless a bound of
//! their hull is known and small. The hull of boxes that do not fill it says by its members which of its elements are
//! asked for.
//!
//! A request under conditions may ask for nothing where others ask for something; its ends then mean nothing. Such a
//! request shares a hull only as what it would ask for without its conditions.

use super::Request;
use super::form::{Limits, Values};
use super::known::Known;
use super::run::{Fit, Run};
use crate::extent::{Expr, Family};

/// Which elements one request asks for.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// For each dimension what its index is among.
    pub boxes: Vec<Run>,
    /// Of elements in the box, those whose number over some dimensions, an expression of [`Family::INDEX`], is one of a
    /// run.
    pub number: Option<((usize, usize), Expr, Run)>,
    /// Whether these are all.
    pub exact: bool,
    /// At least 0 where something is asked for.
    pub live: Vec<Expr>,
}

/// Requests with one set of coordinates.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub requests: Vec<usize>,
    /// For each dimension.
    pub boxes: Vec<Run>,
    /// Row-major numbers over dimensions `first..=last`.
    pub flats: Vec<((usize, usize), Run)>,
    /// Whether the box holds nothing else.
    pub exact: bool,
    /// At least 0 where something is asked for.
    pub live: Vec<Expr>,
    pub members: Vec<Member>,
    /// The same without the conditions around reads, if there are any.
    pub plain: Option<Box<Part>>,
}

fn one() -> Expr {
    Expr::constant(1)
}

/// Elements of a shape, without overflow: none if one is not a literal.
fn volume(counts: impl Iterator<Item = Option<i128>>) -> Option<i128> {
    counts.into_iter().try_fold(1_i128, |product, n| product.checked_mul(n?))
}

/// The tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    /// The first index and the one after the last, for each dimension.
    pub domain: &'a [(Expr, Expr)],
    /// Whether runs in row-major order are looked for where the boxes need none.
    pub has_runs: bool,
}

impl Shape<'_> {
    pub fn size(&self, d: usize) -> Expr {
        self.domain[d].1.sub(&self.domain[d].0)
    }

    /// The row-major number of an element over dimensions `first..=last`.
    fn number(&self, (first, last): (usize, usize), index: &dyn Fn(usize) -> Expr) -> Expr {
        (first..=last).fold(Expr::constant(0), |sum, d| sum.mul(&self.size(d)).add(&index(d).sub(&self.domain[d].0)))
    }

    fn elements(&self, (first, last): (usize, usize)) -> Expr {
        (first..=last).fold(one(), |product, d| product.mul(&self.size(d)))
    }
}

impl Member {
    /// What it consists of: boxes of one dimension, and a number.
    fn runs(&self) -> impl Iterator<Item = &Run> {
        let is_free = |d: usize| self.number.as_ref().is_none_or(|((first, last), ..)| d < *first || d > *last);
        let boxes = self.boxes.iter().enumerate().filter(move |(d, _)| is_free(*d)).map(|(_, run)| run);
        boxes.chain(self.number.iter().map(|(.., run)| run))
    }

    /// How many elements it has, if it is exact.
    pub fn count(&self, known: &Known<'_>) -> Expr {
        self.runs().fold(one(), |n, run| n.mul(&run.count(known)))
    }

    /// A bound of that, over dimensions.
    pub fn most(&self) -> Expr {
        self.runs().fold(one(), |n, run| n.mul(&run.most))
    }
}

impl Part {
    /// What one request asks for, and others of these numbers do.
    pub fn new(requests: Vec<usize>, request: &Request, limits: &Limits, shape: Shape<'_>, known: &Known<'_>) -> Self {
        let indices: Vec<Expr> = request.indices.iter().map(|e| known.facts.normal(e)).collect();
        let mut values: Vec<Values> = Vec::with_capacity(indices.len());
        for (index, (low, end)) in indices.iter().zip(shape.domain) {
            let last = end.sub(&one());
            let whole = || Run::whole(low, end);
            let mut found = match limits.values(index, known) {
                Ok(found) => found,
                // Read from memory, or beyond this analysis: any index of the tensor.
                Err(_) => Values { run: whole(), sources: Vec::new() },
            };
            if found.run.is_unknown() {
                found.run = whole();
            }
            found.run = found.run.clip(Some(low), Some(&last), known);
            found.run = found.run.literal_step(known);
            values.push(found);
        }
        let rank = indices.len();
        let mut live = limits.live.clone();
        live.extend(values.iter().flat_map(|v| v.run.rows(known)));
        live.sort();
        live.dedup();
        let tied = |a: usize, b: usize| limits.ties(&values[a].sources, &values[b].sources, known);
        let independent = (0..rank).all(|a| (0..a).all(|b| !tied(a, b)));
        let mut exact = independent && values.iter().all(|v| v.run.fit == Fit::Exact);
        let mut flats = match shape.has_runs || !exact {
            true => flats(&indices, (&values, independent), limits, shape, known),
            false => Vec::new(),
        };
        let boxes: Vec<Run> = values.iter().map(|v| v.run.clone()).collect();
        let mut member = Member { boxes: boxes.clone(), number: None, exact, live: live.clone() };
        if !exact {
            // A run of the fused value says which elements of the box are meant: in the tensor's own row-major order,
            // or in that of the axes that the reader has fused, whose extents are the radices of its digits.
            let mut runs: Vec<((usize, usize), Expr, Run)> = Vec::new();
            for (span, run) in &flats {
                runs.push((*span, shape.number(*span, &|d| Family::INDEX.expr(d)), run.clone()));
            }
            for (span, weights) in radices(&indices, shape, known) {
                let number = |index: &dyn Fn(usize) -> Expr| {
                    let terms = weights.iter().enumerate().map(|(at, weight)| weight.mul(&index(span.0 + at)));
                    terms.fold(Expr::constant(0), |sum, term| sum.add(&term))
                };
                if let Ok(found) = limits.values(&number(&|d| indices[d].clone()), known)
                    && found.run.fit == Fit::Exact
                    && !found.run.is_unknown()
                {
                    runs.push((span, number(&|d| Family::INDEX.expr(d)), found.run));
                }
            }
            let alone = |d: usize, (first, last): (usize, usize)| {
                let is_other = |e: &usize| *e != d && (d < first || d > last);
                boxes[d].fit == Fit::Exact && !(0..rank).filter(is_other).any(|e| tied(d, e))
            };
            let covers = |span: (usize, usize)| (0..rank).all(|d| (span.0..=span.1).contains(&d) || alone(d, span));
            if let Some(found) = runs.into_iter().find(|(span, ..)| covers(*span)) {
                member = Member { number: Some(found), exact: true, ..member };
                let area = boxes.iter().fold(one(), |area, run| area.mul(&run.count(known)));
                exact = known.proves(&member.count(known).sub(&area));
            }
        }
        // Of equal ones the longest is taken.
        flats.sort_by_key(|((first, last), _)| first.abs_diff(*last));
        flats.reverse();
        Self { requests, boxes, flats, exact, live, members: vec![member], plain: None }
    }

    /// The smallest number of static elements, if it is known at compile time.
    fn size(&self) -> Option<i128> {
        let boxed = volume(self.boxes.iter().map(|r| r.most.as_constant()));
        let flats = self.flats.iter().map(|((first, last), run)| {
            let others = self.boxes.iter().enumerate().filter(|(d, _)| d < first || d > last);
            volume(others.map(|(_, r)| r.most.as_constant()).chain([run.most.as_constant()]))
        });
        flats.chain([boxed]).flatten().min()
    }

    /// Whether no element is in both.
    fn is_disjoint(&self, other: &Self, known: &Known<'_>) -> bool {
        let boxes = self.boxes.iter().zip(&other.boxes);
        let flats = self.flats.iter().filter_map(|(span, a)| {
            let (_, b) = other.flats.iter().find(|(other, _)| other == span)?;
            Some((a, b))
        });
        boxes.chain(flats).any(|(a, b)| a.is_disjoint(b, known))
    }

    /// Both as one, if that is better than two.
    fn merged(&self, other: &Self, known: &Known<'_>) -> Option<Self> {
        if self.live == other.live {
            let (joined, share) = self.joined(other, known)?;
            return share.then_some(joined);
        }
        let (a, b) = (self.plain.as_deref().unwrap_or(self), other.plain.as_deref().unwrap_or(other));
        let plain = a.joined(b, known).filter(|_| a.live == b.live);
        // Or where one of them asks for nothing its ends are still inside the domain, and the hull only holds more.
        let (mut joined, share) = plain.or_else(|| {
            let (joined, share) = self.joined(other, known)?;
            Some((Self { live: self.live_in_either(other, known), ..joined }, share))
        })?;
        // Hulls of what would be asked for without conditions.
        joined.exact = false;
        joined.boxes.iter_mut().chain(joined.flats.iter_mut().map(|f| &mut f.1)).for_each(|run| run.fit = Fit::Sound);
        joined.members = self.members.iter().chain(&other.members).cloned().collect();
        share.then_some(joined)
    }

    /// What holds wherever one of both asks for something: the rows of each that follow from a row of the other one.
    fn live_in_either(&self, other: &Self, known: &Known<'_>) -> Vec<Expr> {
        let follows = |row: &&Expr, from: &Self| from.live.iter().any(|own| known.proves(&row.sub(own)));
        let own = self.live.iter().filter(|row| follows(row, other));
        let mut live: Vec<Expr> = own.chain(other.live.iter().filter(|row| follows(row, self))).cloned().collect();
        live.sort();
        live.dedup();
        live
    }

    /// The hulls of both, and whether they are better than two parts.
    fn joined(&self, other: &Self, known: &Known<'_>) -> Option<(Self, bool)> {
        let mut constant = true;
        let mut boxes = Vec::with_capacity(self.boxes.len());
        let mut differs: Vec<(&Run, &Run)> = Vec::new();
        for (a, b) in self.boxes.iter().zip(&other.boxes) {
            constant &= a.distance(b, known).is_some();
            if !a.is_same(b) {
                differs.push((a, b));
            }
            boxes.push(a.hull(b, known)?);
        }
        let flat = |(span, a): &((usize, usize), Run)| {
            let (_, b) = other.flats.iter().find(|(other, _)| other == span)?;
            let hull = a.hull(b, known)?;
            hull.most.as_constant().is_some().then_some((*span, hull))
        };
        let flats = self.flats.iter().filter_map(flat).collect();
        let exact = match &differs[..] {
            [] => self.exact || other.exact,
            [(a, b)] => self.exact && other.exact && a.meets(b, known),
            _ => false,
        };
        let plain = || {
            let (a, b) = (self.plain.as_deref().unwrap_or(self), other.plain.as_deref().unwrap_or(other));
            a.joined(b, known).filter(|_| a.live == b.live).map(|(plain, _)| Box::new(plain))
        };
        let plain = (self.plain.is_some() || other.plain.is_some()).then(plain).flatten();
        let requests = self.requests.iter().chain(&other.requests).copied().collect();
        let members = self.members.iter().chain(&other.members).cloned().collect();
        let joined = Self { requests, boxes, flats, exact, live: self.live.clone(), members, plain };
        let saves = joined.size().zip(self.size()).zip(other.size()).map(|((both, a), b)| both <= a.saturating_add(b));
        let share = match saves {
            // Sizes known at launch only: hulls of what overlaps.
            None if constant => differs.is_empty() || !self.is_disjoint(other, known),
            None => differs.is_empty(),
            Some(true) => true,
            Some(false) => constant && !self.is_disjoint(other, known),
        };
        Some((joined, share))
    }
}

/// The runs in row-major order, over neighbouring dimensions, that are all of what is asked for, and no more.
fn flats(
    indices: &[Expr],
    (values, independent): (&[Values], bool),
    limits: &Limits,
    shape: Shape<'_>,
    known: &Known<'_>,
) -> Vec<((usize, usize), Run)> {
    let rank = indices.len();
    // Of dimensions that have nothing to do with each other, several rows that are shorter than those of the tensor are
    // no run.
    let is_short = |d: usize| {
        let run = &values[d].run;
        let most = run.most.as_constant().filter(|most| *most > 1 && run.step == one());
        most.is_some_and(|most| known.facts.upper_bound(&shape.size(d)).is_none_or(|size| size > most))
    };
    let is_broken = |(first, last): (usize, usize)| (first..last).any(|d| !values[d].run.is_point() && is_short(d + 1));
    let mut flats = Vec::new();
    for span in (0..rank).flat_map(|first| (first + 1..rank).map(move |last| (first, last))) {
        // Flat over dimensions that stand still is no different.
        if values[span.0].run.is_point() && values[span.0].sources.is_empty() || independent && is_broken(span) {
            continue;
        }
        let Ok(found) = limits.values(&shape.number(span, &|d| indices[d].clone()), known) else { continue };
        let last = shape.elements(span).sub(&one());
        let run = found.run.clip(Some(&Expr::constant(0)), Some(&last), known).literal_step(known);
        if run.fit == Fit::Exact && !run.is_unknown() {
            flats.push((span, run));
        }
    }
    flats
}

/// Neighbouring dimensions that are digits of something, and what each digit counts.
fn radices(indices: &[Expr], shape: Shape<'_>, known: &Known<'_>) -> Vec<((usize, usize), Vec<Expr>)> {
    let mut found = Vec::new();
    for last in 1..indices.len() {
        let mut weights = vec![one()];
        for first in (0..last).rev() {
            let radix = match super::digit::radix(&indices[first + 1], known) {
                Some(radix) => radix,
                None if !known.varies(&indices[first + 1]) => shape.size(first + 1),
                None => break,
            };
            weights.insert(0, weights[0].mul(&radix));
            found.push(((first, last), weights.clone()));
        }
    }
    found.sort_by_key(|((first, last), _)| first.abs_diff(*last));
    found.reverse();
    found
}

/// Requests put together.
pub(super) fn gather(parts: Vec<Part>, known: &Known<'_>) -> Vec<Part> {
    let mut groups: Vec<Part> = Vec::new();
    for part in parts {
        let mut part = part;
        // What has grown may meet others.
        while let Some((at, both)) = groups.iter().enumerate().find_map(|(at, g)| Some((at, g.merged(&part, known)?))) {
            groups.remove(at);
            part = both;
        }
        groups.push(part);
    }
    for group in &mut groups {
        group.requests.sort_unstable();
    }
    groups.sort_by_key(|g| g.requests.first().copied());
    groups
}
