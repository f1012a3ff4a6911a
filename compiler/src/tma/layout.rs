//! The order of a buffer: what counts its tiles, and the axes of a tile.

use tilewright_kernel::tensor_map::Swizzle;

use super::allocation::{Allocation, Elsewhere, TileOp, TileOpKind, Unrecognised};
use super::proposal;
use super::rules::Refused;
use crate::diag::codes::LayoutProblem;
use crate::extent::Facts;
use crate::plan::staged::{Axis, Boxed, Part, Staged};
use crate::source::{Span, ast};

impl Axis {
    /// The names of its parts, outermost first.
    pub(super) fn names(&self) -> Vec<(String, Part)> {
        let Boxed { coordinates, phase, tile, .. } = &self.boxed;
        let of = |names: &[String], part: Part| names.iter().map(|n| (n.clone(), part)).collect::<Vec<_>>();
        let tile: Vec<String> = tile.iter().map(|t| t.name.clone()).collect();
        [of(coordinates, Part::Box), of(phase.as_slice(), Part::Phase), of(&tile, Part::Slot)].concat()
    }
}

impl Staged {
    /// Boxes, then phases, each in the order of the axes: how tiles follow each other without a layout.
    pub fn natural(axes: usize) -> Vec<(usize, Part)> {
        [Part::Box, Part::Phase].into_iter().flat_map(|part| (0..axes).map(move |axis| (axis, part))).collect()
    }

    /// What counts tiles, in the natural order.
    fn counts(&self) -> Vec<Named> {
        let of = |part: Part| {
            let axes = self.axes.iter().enumerate();
            axes.flat_map(move |(n, axis)| {
                let names = axis.names().into_iter().filter(move |(_, p)| *p == part);
                names.map(move |(name, _)| Named { name, axis: Some(n), part, count: axis.count(part) })
            })
        };
        of(Part::Box).chain(of(Part::Phase)).collect()
    }

    /// Takes the order of the buffer from what was written: what counts tiles, then the axes of the tile, from which
    /// the order of the map follows, and what the accelerator does to the tile.
    pub(super) fn lay_out(&mut self, written: &Written<'_>, facts: &Facts) -> Result<(), Refused> {
        let allocation = match written.ops {
            [] => None,
            // What breaks a limit of maps is refused for that.
            _ if self.boxes().check_box().is_err() => return Ok(()),
            ops => {
                let bytes = self.element.bytes();
                let allocation = Allocation::new(&self.axes, written.gone, ops, bytes, facts);
                Some(allocation.map_err(|why| self.unrecognised(why, written))?)
            }
        };
        let mut parts = self.counts();
        match &allocation {
            Some(allocation) => parts.extend(allocation.leaves().map(|(name, count)| Named {
                name: name.to_owned(),
                axis: None,
                part: Part::Slot,
                count,
            })),
            None => parts.extend(self.axes.iter().enumerate().flat_map(|(n, axis)| {
                let slots = axis.names().into_iter().filter(|(_, part)| *part == Part::Slot);
                slots.map(move |(name, part)| Named { name, axis: Some(n), part, count: axis.tile() })
            })),
        }
        let read = match written.list {
            Some((list, op)) => read(list, op, &parts, written.known)?,
            None => Read { order: Vec::new(), slots: parts.iter().filter(|p| p.part == Part::Slot).collect() },
        };
        let sequence = match &allocation {
            Some(allocation) => {
                let layout: Vec<&str> = read.slots.iter().map(|p| p.name.as_str()).collect();
                let recognised = allocation.recognise(&self.axes, &layout, self.swizzle, self.copies());
                let recognised = recognised.map_err(|why| self.unrecognised(why, written))?;
                self.swizzle = recognised.swizzle;
                recognised.order
            }
            None => self.sequence(&read, &parts, written)?,
        };
        let mut order = read.order;
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

    /// The order of the map, from axes of the tile as the boxes made them.
    fn sequence(&self, read: &Read<'_>, parts: &[Named], written: &Written<'_>) -> Result<Vec<usize>, Refused> {
        let Some(innermost) = self.axes.len().checked_sub(1) else { return Ok(Vec::new()) };
        let mut tile: Vec<usize> = read.slots.iter().filter_map(|p| p.axis).collect();
        tile.dedup();
        // What is not written has one slot: its place changes nothing.
        let unwritten: Vec<usize> = (0..self.axes.len()).filter(|a| !tile.contains(a)).collect();
        let mut sequence: Vec<usize> = unwritten.into_iter().filter(|a| *a != innermost || tile.is_empty()).collect();
        sequence.extend(&tile);
        if sequence.last() != Some(&innermost) {
            let last = read.slots.last().map(|p| p.name.clone()).unwrap_or_default();
            let wanted = self.axes[innermost].boxed.tile.last().map(|t| t.name.clone()).unwrap_or_default();
            let problem = LayoutProblem::Innermost { last, wanted };
            return Err(Refused::Layout(problem, natural(parts), written.span()));
        }
        Ok(sequence)
    }

    fn unrecognised(&self, why: Unrecognised, written: &Written<'_>) -> Refused {
        let span = written.span();
        match why {
            Unrecognised::NotASwizzle(axes, span) => Refused::NotASwizzle(Box::new(axes), span),
            Unrecognised::TooLong => Refused::TooLong(span),
            Unrecognised::Gaps(splits) => {
                let at = splits.first().map_or(span, |split| split.span);
                Refused::Layout(LayoutProblem::Gaps(splits), Vec::new(), at)
            }
            Unrecognised::Elsewhere(elsewhere, order) => {
                let nearest = elsewhere.modes.first().map_or(Swizzle::None, |mode| mode.0);
                let exchanges = written.ops.iter().any(|op| op.kind == TileOpKind::Swizzle);
                let row = self.axes.last().map(|a| (a.name.clone(), a.tile() * i128::from(self.element.bytes())));
                let other = row.filter(|(_, bytes)| exchanges && ![32, 64, 128].contains(bytes));
                Refused::Elsewhere(Box::new(NotWritten {
                    other,
                    elsewhere,
                    sugar: proposal::sugar(self, &order, nearest),
                    ops: proposal::ops(self, &order, nearest, written.taken),
                    replace: written.run,
                    span,
                }))
            }
        }
    }
}

/// What is not where the accelerator puts it, and what to write instead.
#[derive(Clone, Debug)]
pub struct NotWritten {
    /// The slot.
    pub elsewhere: Elsewhere,
    /// A layout with a swizzle by name.
    pub sugar: String,
    /// The same as ops, if it takes any.
    pub ops: Option<String>,
    /// The innermost axis and the bytes of a row, if a swizzle is written and rows of that length have none.
    pub other: Option<(String, i128)>,
    /// What is written of the layout, if it is one piece of the copy.
    pub replace: Option<Span>,
    /// The layout.
    pub span: Span,
}

/// What is written of a buffer's order.
pub(super) struct Written<'a> {
    /// The axes of the `layout`, and the op.
    pub list: Option<(&'a [ast::LayoutAxis], Span)>,
    /// The ops on axes of the tile.
    pub ops: &'a [TileOp],
    /// Names of all parts of axes: some have gone with axes of one element.
    pub known: &'a [String],
    /// Names that no other axis can have, if the ops are taken out.
    pub taken: &'a [String],
    /// Axes of the tile that have gone so.
    pub gone: &'a [String],
    /// The ops and the layout, if they stand together.
    pub run: Option<Span>,
}

impl Written<'_> {
    fn span(&self) -> Span {
        self.list.map(|l| l.1).or(self.ops.last().map(|op| op.span)).unwrap_or(Span::UNKNOWN)
    }
}

/// Something that can be laid out.
struct Named {
    name: String,
    /// The axis that it is part of; none for what ops have made.
    axis: Option<usize>,
    part: Part,
    count: i128,
}

fn natural(parts: &[Named]) -> Vec<String> {
    parts.iter().map(|p| p.name.clone()).collect()
}

/// A layout by position: what counts tiles, and the axes of the tile.
struct Read<'a> {
    order: Vec<(usize, Part)>,
    slots: Vec<&'a Named>,
}

/// Reads a list of axes. `known` are the names that there are; some have gone with axes of one element.
fn read<'a>(list: &[ast::LayoutAxis], op: Span, parts: &'a [Named], known: &[String]) -> Result<Read<'a>, Refused> {
    let refuse = |problem, span| Err(Refused::Layout(problem, natural(parts), span));
    let mut found = Read { order: Vec::new(), slots: Vec::new() };
    let mut seen: Vec<&str> = Vec::new();
    for written in list {
        let (name, span) = (written.name.text.as_str(), written.name.span);
        if written.pad.is_some() {
            return refuse(LayoutProblem::Padded(name.to_owned()), span);
        }
        if seen.contains(&name) {
            return refuse(LayoutProblem::Twice(name.to_owned()), span);
        }
        let Some(at) = parts.iter().position(|p| p.name == name) else {
            if known.iter().any(|k| k == name) {
                continue;
            }
            return refuse(LayoutProblem::Unknown(name.to_owned()), span);
        };
        let this = &parts[at];
        // The parts of a composite stay together: each after the one before it.
        let before = at.checked_sub(1).map(|b| &parts[b]).filter(|b| b.axis.is_some() && b.axis == this.axis);
        let before = before.filter(|b| b.part == this.part);
        if before.is_some_and(|b| seen.last() != Some(&b.name.as_str())) {
            return refuse(LayoutProblem::Composite(name.to_owned()), span);
        }
        seen.push(&this.name);
        match (this.part, this.axis) {
            (Part::Slot, _) => found.slots.push(this),
            (part, Some(axis)) if before.is_none() => {
                if let Some(tile) = found.slots.last().filter(|_| this.count > 1) {
                    let (outer, tile) = (name.to_owned(), tile.name.clone());
                    return refuse(LayoutProblem::Inside { outer, tile }, span);
                }
                found.order.push((axis, part));
            }
            _ => {}
        }
    }
    for part in parts {
        if part.count > 1 && !seen.contains(&part.name.as_str()) {
            return refuse(LayoutProblem::Missing(part.name.clone()), op);
        }
    }
    Ok(found)
}
