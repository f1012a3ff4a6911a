//! The order of a buffer: what counts its tiles, and the axes of a tile.

use super::plan::{Axis, Part, Refused, Staged};
use super::view::Boxed;
use crate::diag::tw04xx::LayoutProblem;
use crate::syntax::{Span, ast};

impl Axis {
    /// The names of its parts, outermost first.
    pub(super) fn names(&self) -> Vec<(String, Part)> {
        let Boxed { coordinates, phase, tile, .. } = &self.boxed;
        let of = |names: &[String], part: Part| names.iter().map(|n| (n.clone(), part)).collect::<Vec<_>>();
        [of(coordinates, Part::Box), of(phase.as_slice(), Part::Phase), of(tile, Part::Slot)].concat()
    }
}

impl Staged {
    /// Boxes, then phases, each in the order of the axes: how tiles follow each other without a layout.
    pub fn natural(axes: usize) -> Vec<(usize, Part)> {
        [Part::Box, Part::Phase].into_iter().flat_map(|part| (0..axes).map(move |axis| (axis, part))).collect()
    }

    /// The names of what can be laid out, in the natural order.
    fn parts(&self) -> Vec<(String, usize, Part)> {
        let of = |part: Part| {
            let axes = self.axes.iter().enumerate();
            axes.flat_map(move |(n, axis)| {
                axis.names().into_iter().filter_map(move |(name, p)| (p == part).then_some((name, n, p)))
            })
        };
        of(Part::Box).chain(of(Part::Phase)).chain(of(Part::Slot)).collect()
    }

    /// Takes the order of the buffer from a layout: what counts tiles, then the axes of the tile, which become the order of the map.
    /// `known` are the names that there are; some have gone with axes of one element.
    pub(super) fn lay_out(&mut self, list: &[ast::LayoutAxis], known: &[String], op: Span) -> Result<(), Refused> {
        let parts = self.parts();
        let natural: Vec<String> = parts.iter().map(|p| p.0.clone()).collect();
        let refuse = |problem, span| Err(Refused::Layout(problem, natural.clone(), span));
        let mut order: Vec<(usize, Part)> = Vec::new();
        let mut tile: Vec<usize> = Vec::new();
        let mut last_slot: Option<&str> = None;
        let mut seen: Vec<&str> = Vec::new();
        for written in list {
            let (name, span) = (written.name.text.as_str(), written.name.span);
            if written.pad.is_some() {
                return refuse(LayoutProblem::Padded(name.to_owned()), span);
            }
            if seen.contains(&name) {
                return refuse(LayoutProblem::Twice(name.to_owned()), span);
            }
            let Some(at) = parts.iter().position(|p| p.0 == name) else {
                if known.iter().any(|k| k == name) {
                    continue;
                }
                return refuse(LayoutProblem::Unknown(name.to_owned()), span);
            };
            let (_, axis, part) = parts[at];
            // The parts of a composite stay together: each after the one in front of it.
            let composite = at > 0 && (parts[at - 1].1, parts[at - 1].2) == (axis, part);
            if composite && seen.last() != Some(&parts[at - 1].0.as_str()) {
                return refuse(LayoutProblem::Composite(name.to_owned()), span);
            }
            seen.push(name);
            match part {
                Part::Slot if composite => last_slot = Some(name),
                Part::Slot => {
                    tile.push(axis);
                    last_slot = Some(name);
                }
                _ if composite => {}
                _ => {
                    if let Some(tile) = last_slot.filter(|_| self.axes[axis].count(part) > 1) {
                        let (outer, tile) = (name.to_owned(), tile.to_owned());
                        return refuse(LayoutProblem::Inside { outer, tile }, span);
                    }
                    order.push((axis, part));
                }
            }
        }
        for (name, axis, part) in &parts {
            if self.axes[*axis].count(*part) > 1 && !seen.contains(&name.as_str()) {
                return refuse(LayoutProblem::Missing(name.clone()), op);
            }
        }
        let Some(innermost) = self.axes.len().checked_sub(1) else { return Ok(()) };
        // What is not written has one slot: its place changes nothing.
        let unwritten: Vec<usize> = (0..self.axes.len()).filter(|a| !tile.contains(a)).collect();
        let mut sequence: Vec<usize> = unwritten.into_iter().filter(|a| *a != innermost || tile.is_empty()).collect();
        sequence.extend(&tile);
        if sequence.last() != Some(&innermost) {
            let wanted = self.axes[innermost].boxed.tile.last().cloned().unwrap_or_default();
            return refuse(LayoutProblem::Innermost { last: last_slot.unwrap_or_default().to_owned(), wanted }, op);
        }
        for missing in Self::natural(self.axes.len()) {
            if !order.contains(&missing) {
                order.push(missing);
            }
        }
        let place = |axis: usize| sequence.iter().position(|a| *a == axis).unwrap_or(axis);
        self.outer = order.into_iter().map(|(axis, part)| (place(axis), part)).collect();
        let axes = std::mem::take(&mut self.axes);
        self.axes = sequence.iter().map(|a| axes[*a].clone()).collect();
        Ok(())
    }
}
