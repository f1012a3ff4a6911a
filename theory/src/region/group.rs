//! Parts as groups: coordinates in one of the realisations, and members as predicates.

use super::known::Known;
use super::part::{Member, Part, Shape};
use super::run::{Fit, Run, exact_quotient};
use super::{Coordinate, Group, Realisation};
use crate::extent::{Expr, Family};

fn one() -> Expr {
    Expr::constant(1)
}

impl Part {
    /// The group in a realisation; none if it has no such.
    pub fn realise(&self, way: Realisation, shape: Shape<'_>, known: &Known<'_>) -> Option<Group> {
        let layout = |flat: Option<&((usize, usize), Run)>| {
            let mut axes: Vec<(Vec<usize>, Run)> = Vec::new();
            for (d, run) in self.boxes.iter().enumerate() {
                match flat {
                    Some(((first, last), flat)) if d == *first => axes.push(((*first..=*last).collect(), flat.clone())),
                    Some(((first, last), _)) if d > *first && d <= *last => {}
                    _ => axes.push((vec![d], run.clone())),
                }
            }
            for (_, run) in &mut axes {
                let most = known.largest(&run.count(known), &run.most);
                // Nothing is ever asked for: still a buffer.
                run.most = most.as_constant().map_or(most.clone(), |most| Expr::constant(most.max(1)));
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
        let is_row = self.boxes.iter().filter(|run| !run.is_point()).count() <= 1;
        let mut best = (way != Realisation::Flat || is_row).then(|| layout(None));
        if way != Realisation::Cover {
            for flat in &self.flats {
                let candidate = layout(Some(flat));
                if best.as_ref().is_none_or(|best| smaller(&size(&candidate), &size(best))) {
                    best = Some(candidate);
                }
            }
        }
        let axes = best?;
        let exact = self.is_filled(&axes, known);
        let minimal = axes.iter().all(|(_, run)| run.fit >= Fit::Minimal);
        let fit = match (exact, minimal) {
            (true, _) => Fit::Exact,
            (false, true) => Fit::Minimal,
            (false, false) => Fit::Sound,
        };
        // Where something is asked for is what is to be said: it is not taken as known.
        let (live, anywhere) = (known.independent(&self.live), known.fork());
        let mut coordinates: Vec<Coordinate> = Vec::with_capacity(axes.len());
        let mut limits = live.clone();
        for (at, (dims, run)) in axes.iter().enumerate() {
            let is_guard = at == 0 && !live.is_empty();
            let extent = if is_guard { run.clone().only_where(&live).count(&anywhere) } else { run.count(known) };
            let step = run.step.as_constant().unwrap_or(1);
            let (start, bound) = (run.low(), run.most.clone());
            let last = start.add(&bound.sub(&one()).scale(step));
            let beyond = run.highs().iter().filter(|high| !known.proves(&high.sub(&last)));
            let own = start.add(&Family::COORDINATE.expr(at).scale(step));
            limits.extend(beyond.map(|high| high.sub(&own)));
            coordinates.push(Coordinate { dims: dims.clone(), start, step, extent, bound });
        }
        let members = if exact { Vec::new() } else { self.predicates(&coordinates, shape, known) };
        let is_known = exact || self.members.iter().all(|m| m.exact);
        let bounds = coordinates.iter().fold(one(), |n, a| n.mul(&a.bound));
        // The largest count of one request; of several that do not ask for the same, only a bound is known.
        let needed = match &self.members[..] {
            _ if exact => Some(bounds),
            [member] if member.exact => Some(known.largest(&member.count(known), &member.most())),
            _ => None,
        };
        Some(Group { requests: self.requests.clone(), axes: coordinates, limits, fit, members, is_known, needed })
    }

    /// Whether the coordinates hold nothing but what is asked for: they hold all of it, and are not more.
    fn is_filled(&self, axes: &[(Vec<usize>, Run)], known: &Known<'_>) -> bool {
        let area = axes.iter().fold(one(), |n, (_, run)| n.mul(&run.count(known)));
        let asks = |m: &Member| m.live.iter().all(|row| self.live.contains(row));
        let fills = |m: &Member| m.exact && asks(m) && known.proves(&m.count(known).sub(&area));
        (self.exact && axes.len() == self.boxes.len()) || self.members.iter().any(fills)
    }

    /// For each request the conditions under which an element is its own, over [`Family::COORDINATE`].
    fn predicates(&self, axes: &[Coordinate], shape: Shape<'_>, known: &Known<'_>) -> Vec<Vec<Expr>> {
        let index = |d: usize| -> Expr {
            let (at, axis) = axes.iter().enumerate().find(|(_, a)| a.dims.contains(&d)).unwrap_or((0, &axes[0]));
            let place = axis.start.add(&Family::COORDINATE.expr(at).scale(axis.step));
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
            let mut all: Vec<Expr> = member.live.iter().filter(|row| !self.live.contains(row)).cloned().collect();
            let forms = member.boxes.iter().enumerate().map(|(d, run)| (Family::INDEX.expr(d), run));
            for (form, run) in forms.chain(member.number.iter().map(|(_, number, run)| (number.clone(), run))) {
                let value = form.substitute(&|v| {
                    let d = Family::INDEX.number(v).filter(|d| *d < shape.domain.len())?;
                    Some(index(d))
                });
                let value = known.facts.normal(&value);
                let own = axes
                    .iter()
                    .enumerate()
                    .find(|(at, a)| value == a.start.add(&Family::COORDINATE.expr(*at).scale(a.step)));
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
