//! Several requests: which share a group, and how a group is laid out.
//!
//! Two requests whose distance is constant share a hull if they overlap, or if the hull is no larger than both together; otherwise
//! they are groups of their own, as are requests that move apart by loops outside, unless a bound of their hull is known and small. The
//! hull of boxes that do not fill it says by `members` which of its elements are asked for.

use super::form::{Limits, Values};
use super::known::Known;
use super::run::{Fit, Run, exact_quotient};
use super::{COORDINATE, Coordinate, Group, NotATile, Realisation, Request};
use crate::extent::{Expr, Var};

/// A predicate over the indices of an element: `ends[d]` for neighbours of dimensions in row-major order.
#[derive(Clone, Debug)]
struct Member {
    /// Elements of a form over `INDEX + d`: every value of the run, exactly.
    forms: Vec<(Expr, Run)>,
    exact: bool,
    /// At least 0 where something is asked for.
    live: Vec<Expr>,
}

/// Stands for the index along dimension d.
const INDEX: Var = COORDINATE + (1 << 16);

/// Requests with one set of coordinates.
#[derive(Clone, Debug)]
pub(super) struct Part {
    requests: Vec<usize>,
    /// For each dimension.
    boxes: Vec<Run>,
    /// Row-major numbers over dimensions `first..=last`.
    flats: Vec<((usize, usize), Run)>,
    /// Whether the box holds nothing else.
    exact: bool,
    /// At least 0 where something is asked for.
    live: Vec<Expr>,
    /// Whether that is all, and the same for all requests.
    uniform: bool,
    members: Vec<Member>,
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
    /// The first index and the one behind the last, for each dimension.
    pub domain: &'a [(Expr, Expr)],
}

impl Shape<'_> {
    fn size(&self, d: usize) -> Expr {
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

impl Part {
    /// What one request asks for.
    ///
    /// # Errors
    /// An index over variables that are no loops.
    pub fn new(
        number: usize,
        request: &Request,
        limits: &Limits,
        shape: Shape<'_>,
        known: &Known<'_>,
    ) -> Result<Self, NotATile> {
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
        let mut flats = Vec::new();
        for span in (0..rank).flat_map(|first| (first + 1..rank).map(move |last| (first, last))) {
            // Flat over dimensions that stand still is no different.
            if values[span.0].run.is_point() && values[span.0].sources.is_empty() {
                continue;
            }
            let Ok(found) = limits.values(&shape.number(span, &|d| indices[d].clone()), known) else { continue };
            let last = shape.elements(span).sub(&one());
            let run = found.run.clip(Some(&Expr::constant(0)), Some(&last), known).literal_step(known);
            if run.fit == Fit::Exact && !run.is_unknown() {
                flats.push((span, run));
            }
        }
        let mut live = limits.live.clone();
        live.extend(values.iter().flat_map(|v| v.run.rows(known)));
        live.sort();
        live.dedup();
        let independent =
            (0..rank).all(|a| (0..a).all(|b| !limits.ties(&values[a].sources, &values[b].sources, known)));
        let boxed: Vec<(Expr, Run)> =
            values.iter().enumerate().map(|(d, v)| (Expr::var(INDEX + d as Var), v.run.clone())).collect();
        let mut exact = independent && values.iter().all(|v| v.run.fit == Fit::Exact);
        let mut member = Member { forms: boxed, exact, live: live.clone() };
        if !exact {
            // A run of the fused value says which elements of the box are meant: in the tensor's own row-major order, or in that of the axes
            // that the reader has fused, whose extents are the radices of its digits.
            let mut runs: Vec<((usize, usize), Expr, Run)> = Vec::new();
            for (span, run) in &flats {
                runs.push((*span, shape.number(*span, &|d| Expr::var(INDEX + d as Var)), run.clone()));
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
                    runs.push((span, number(&|d| Expr::var(INDEX + d as Var)), found.run));
                }
            }
            let tied = |a: usize, b: usize| limits.ties(&values[a].sources, &values[b].sources, known);
            let alone = |d: usize, (first, last): (usize, usize)| {
                let is_other = |e: &usize| *e != d && (d < first || d > last);
                values[d].run.fit == Fit::Exact && !(0..rank).filter(is_other).any(|e| tied(d, e))
            };
            let covers = |span: (usize, usize)| (0..rank).all(|d| (span.0..=span.1).contains(&d) || alone(d, span));
            if let Some((span, number, run)) = runs.into_iter().find(|(span, ..)| covers(*span)) {
                member.forms.retain(|(form, _)| {
                    form.as_var().is_none_or(|v| !(span.0..=span.1).contains(&((v - INDEX) as usize)))
                });
                let area = (span.0..=span.1).fold(one(), |area, d| area.mul(&values[d].run.count(known)));
                exact = known.proves(&run.count(known).sub(&area));
                member.forms.push((number, run));
                member.exact = true;
            }
        }
        // Of equal ones the longest is taken.
        flats.sort_by_key(|((first, last), _)| first.abs_diff(*last));
        flats.reverse();
        Ok(Self {
            requests: vec![number],
            boxes: values.into_iter().map(|v| v.run).collect(),
            flats,
            exact,
            live,
            uniform: true,
            members: vec![member],
        })
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
        let mut constant = true;
        let mut hulls = Vec::with_capacity(self.boxes.len());
        let mut differs: Vec<(&Run, &Run)> = Vec::new();
        for (a, b) in self.boxes.iter().zip(&other.boxes) {
            constant &= a.distance(b, known).is_some();
            if !a.is_same(b) {
                differs.push((a, b));
            }
            hulls.push(a.hull(b, known)?);
        }
        let mut flats: Vec<((usize, usize), Run)> = self
            .flats
            .iter()
            .filter_map(|(span, a)| {
                let (_, b) = other.flats.iter().find(|(other, _)| other == span)?;
                let hull = a.hull(b, known)?;
                hull.most.as_constant().is_some().then_some((*span, hull))
            })
            .collect();
        let exact = match &differs[..] {
            [] => self.exact || other.exact,
            [(a, b)] => self.exact && other.exact && a.meets(b, known),
            _ => false,
        };
        let live: Vec<Expr> = self.live.iter().filter(|row| other.live.contains(row)).cloned().collect();
        let uniform = self.uniform && other.uniform && live == self.live && live == other.live;
        let exact = exact && uniform;
        if !uniform {
            // Where one asks for nothing its ends mean nothing.
            hulls.iter_mut().chain(flats.iter_mut().map(|f| &mut f.1)).for_each(|hull| hull.fit = Fit::Sound);
        }
        let requests = self.requests.iter().chain(&other.requests).copied().collect();
        let members = self.members.iter().chain(&other.members).cloned().collect();
        let both = Self { requests, boxes: hulls, flats, exact, live, uniform, members };
        let saves = both.size().zip(self.size()).zip(other.size()).map(|((both, a), b)| both <= a.saturating_add(b));
        let share = match saves {
            // Sizes known at launch only: hulls of what overlaps.
            None if constant => differs.is_empty() || !self.is_disjoint(other, known),
            None => differs.is_empty(),
            Some(true) => true,
            Some(false) => constant && !self.is_disjoint(other, known),
        };
        share.then_some(both)
    }
}

/// Neighbouring dimensions that are digits of something, and what each digit counts.
fn radices(indices: &[Expr], shape: Shape<'_>, known: &Known<'_>) -> Vec<((usize, usize), Vec<Expr>)> {
    let mut found = Vec::new();
    for last in 1..indices.len() {
        let mut weights = vec![one()];
        for first in (0..last).rev() {
            let radix = match super::form::radix(&indices[first + 1], known) {
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

impl Part {
    /// The group in a realisation; none if it has no such.
    pub fn realise(&self, way: Realisation, shape: Shape<'_>, known: &Known<'_>) -> Option<Group> {
        let mut part = self.clone();
        if !part.uniform {
            // Some requests may be empty where others are not: their ends mean nothing there.
            for (run, (low, end)) in part.boxes.iter_mut().zip(shape.domain) {
                *run = run.clone().clip(Some(low), Some(&end.sub(&one())), known);
            }
            for (span, run) in &mut part.flats {
                let last = shape.elements(*span).sub(&one());
                *run = run.clone().clip(Some(&Expr::constant(0)), Some(&last), known);
            }
        }
        let layout = |flat: Option<&((usize, usize), Run)>| {
            let mut axes: Vec<(Vec<usize>, Run)> = Vec::new();
            for (d, run) in part.boxes.iter().enumerate() {
                match flat {
                    Some(((first, last), flat)) if d == *first => axes.push(((*first..=*last).collect(), flat.clone())),
                    Some(((first, last), _)) if d > *first && d <= *last => {}
                    _ => axes.push((vec![d], run.clone())),
                }
            }
            for (_, run) in &mut axes {
                run.most = known.largest(&run.count(known), &run.most);
            }
            axes
        };
        let size = |axes: &[(Vec<usize>, Run)]| axes.iter().fold(one(), |n, (_, run)| n.mul(&run.most));
        let smaller = |a: &Expr, b: &Expr| match (a.as_constant(), b.as_constant()) {
            (Some(a), Some(b)) => a < b,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => known.facts.proves_nonnegative(&b.sub(a).sub(&one())),
        };
        // A box with one extent is in a row, too.
        let is_row = part.boxes.iter().filter(|run| !run.is_point()).count() <= 1;
        let mut best = (way != Realisation::Flat || is_row).then(|| layout(None));
        if way != Realisation::Cover {
            for flat in &part.flats {
                let candidate = layout(Some(flat));
                if best.as_ref().is_none_or(|best| smaller(&size(&candidate), &size(best))) {
                    best = Some(candidate);
                }
            }
        }
        let axes = best?;
        let exact = part.is_filled(&axes, known);
        let minimal = axes.iter().all(|(_, run)| run.fit >= Fit::Minimal);
        let fit = match (exact, minimal) {
            (true, _) => Fit::Exact,
            (false, true) => Fit::Minimal,
            (false, false) => Fit::Sound,
        };
        // Where something is asked for is what is to be said: it is not taken as known.
        let (live, anywhere) = (known.independent(&part.live), known.fork());
        let mut coordinates: Vec<Coordinate> = Vec::with_capacity(axes.len());
        for (at, (dims, run)) in axes.iter().enumerate() {
            let is_guard = at == 0 && !live.is_empty();
            let extent = if is_guard { run.clone().only_where(&live).count(&anywhere) } else { run.count(known) };
            let step = run.step.as_constant().unwrap_or(1);
            let (start, bound) = (run.low(), run.most.clone());
            coordinates.push(Coordinate { dims: dims.clone(), start, step, extent, bound });
        }
        let members = if exact { Vec::new() } else { part.predicates(&coordinates, shape, known) };
        let is_known = part.members.iter().all(|m| m.exact);
        Some(Group { requests: part.requests.clone(), axes: coordinates, fit, members, is_known: exact || is_known })
    }

    /// Whether the coordinates hold nothing but what is asked for: they hold all of it, and are not more.
    fn is_filled(&self, axes: &[(Vec<usize>, Run)], known: &Known<'_>) -> bool {
        let count = |runs: &mut dyn Iterator<Item = &Run>| runs.fold(one(), |n, run| n.mul(&run.count(known)));
        let area = count(&mut axes.iter().map(|a| &a.1));
        let fills = |m: &Member| known.proves(&count(&mut m.forms.iter().map(|f| &f.1)).sub(&area));
        let asks = |m: &Member| self.uniform || m.live.is_empty();
        (self.exact && axes.len() == self.boxes.len()) || self.members.iter().any(|m| m.exact && asks(m) && fills(m))
    }

    /// For each request the conditions under which an element is its own, over `COORDINATE + k`.
    fn predicates(&self, axes: &[Coordinate], shape: Shape<'_>, known: &Known<'_>) -> Vec<Vec<Expr>> {
        let index = |d: usize| -> Expr {
            let (at, axis) = axes.iter().enumerate().find(|(_, a)| a.dims.contains(&d)).unwrap_or((0, &axes[0]));
            let place = axis.start.add(&Expr::var(COORDINATE + at as Var).scale(axis.step));
            let Some(place_of) = axis.dims.iter().position(|own| *own == d).filter(|_| axis.dims.len() > 1) else {
                return place;
            };
            let behind = axis.dims[place_of + 1..].iter().fold(one(), |n, d| n.mul(&shape.size(*d)));
            let digit = place.floor_div(&behind);
            let digit = if place_of == 0 { digit } else { digit.modulo(&shape.size(d)) };
            digit.add(&shape.domain[d].0)
        };
        let mut unions: Vec<Vec<Expr>> = Vec::new();
        for member in &self.members {
            let mut all = if self.uniform { Vec::new() } else { member.live.clone() };
            for (form, run) in &member.forms {
                let value = form.substitute(&|v| {
                    let d = ((v.checked_sub(INDEX)? as usize) < shape.domain.len()).then_some(v - INDEX)?;
                    Some(index(d as usize))
                });
                let value = known.facts.normal(&value);
                let own = axes
                    .iter()
                    .enumerate()
                    .find(|(at, a)| value == a.start.add(&Expr::var(COORDINATE + *at as Var).scale(a.step)));
                let above = value.sub(&run.low());
                let below = run.high(known).sub(&value);
                let (mut implied, mut ends) = ((false, false), true);
                if let Some((_, axis)) = own {
                    implied.0 = known.proves(&axis.start.sub(&run.low()));
                    let last = axis.start.add(&axis.extent.sub(&one()).scale(axis.step));
                    implied.1 = run.high(known) == last || known.proves(&run.high(known).sub(&last));
                    ends = exact_quotient(&Expr::constant(axis.step), &run.step).is_some()
                        && exact_quotient(&axis.start.sub(&run.low()), &run.step).is_some();
                }
                if !implied.0 {
                    all.push(above.clone());
                }
                if !implied.1 {
                    all.push(below);
                }
                if run.step != one() && !ends || run.step != one() && own.is_none() {
                    all.push(above.modulo(&run.step).scale(-1));
                }
            }
            all.sort();
            all.dedup();
            if all.is_empty() {
                return Vec::new();
            }
            if !unions.contains(&all) {
                unions.push(all);
            }
        }
        unions
    }
}
