//! The rules that a planned copy must keep, and what a refusal knows.

use tilewright_kernel::tensor_map::{self, Fault, Swizzle};

use super::cover::Gap;
use super::layout::NotWritten;
use super::multicast;
use super::reach::Level;
use super::view::Refusal;
use crate::diag::codes::LayoutProblem;
use crate::domain::Symbolic;
use crate::extent::{Expr, Facts};
use crate::plan::staged::{MOST_ELEMENTS, Staged};
use crate::region::NotATile;
use crate::source::Span;

/// Why an index that depends on memory has no place for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOne {
    /// What an instance holds depends on several elements of this input.
    Several {
        /// Its position.
        parameter: u16,
    },
    /// As many elements of this input, of so many at most.
    Many {
        /// Its position.
        parameter: u16,
        /// How many.
        count: i128,
        /// At most.
        most: i128,
    },
    /// It is divided, or multiplied by more than a literal.
    Computed,
    /// Blocks divide boxes among each other whose places memory lists.
    Sliced,
}

/// Why a staged copy is refused.
#[derive(Clone, Debug)]
pub enum Refused {
    /// An op of its view.
    View(Refusal),
    /// The reader is no loop nest of this name, or has no such loop.
    Attach(Span),
    /// The attach point is run by threads: the instance of a block lies around them.
    AttachInsideBlock(Span),
    /// The stage does not read the tensor, or does not write it.
    NotRead(Span),
    /// A ring where there is no loop whose iterations follow each other.
    RingWithoutLoop(Span),
    /// A ring of so many buffers, if that is a literal.
    Ring(Option<i128>, Span),
    /// A store in a loop over terms, or in one inside: what is stored there is not known yet.
    InsideReduction(Span),
    /// An instance does not write every element of its region.
    Gap(Gap),
    /// A copy to a tensor whose boxes hold elements of other instances.
    StoreHoles(Box<Staged>),
    /// A copy to a tensor with an element stride.
    StridedStore(String, Span),
    /// A copy to a tensor that may start before it.
    NegativeStart {
        /// The axis.
        axis: String,
        /// Where regions start.
        start: Expr,
    },
    /// The end of a row is not known to be a multiple of 16 bytes, which is what is written at once.
    Granule {
        /// The axis.
        axis: String,
        /// Its size.
        size: Expr,
        /// What it must be a multiple of, in elements.
        multiple: i128,
    },
    /// The copy names another number of axes than the tensor has: its own and the tensor's.
    Axes(usize, usize),
    /// Blocks of a cluster do not take it together.
    Multicast(Box<multicast::Refusal>),
    /// An op that a copy does not have.
    NotYet(&'static str, Span),
    /// What is read along an axis of the view is not a tile.
    NotATile {
        /// The axis of the view.
        axis: String,
        /// Why.
        why: NotATile,
        /// The read.
        read: Span,
    },
    /// What memory adds to an index along an axis of the view is not one number for all of an instance, or is not
    /// added.
    FromMemory {
        /// The axis of the view.
        axis: String,
        /// Why.
        why: NotOne,
        /// The read.
        read: Span,
    },
    /// A loop inside the attach point has no bound that is known at compile time.
    Unbounded {
        /// The loop.
        axis: String,
        /// Its extent.
        extent: Expr,
    },
    /// Elements along the innermost axis are not neighbours in memory.
    InnerStride {
        /// The axis.
        axis: String,
        /// Their distance.
        stride: Expr,
    },
    /// The distance of neighbours along an axis is not known to be a multiple of 16 bytes.
    Pitch {
        /// The axis.
        axis: String,
        /// Their distance in elements.
        stride: Expr,
        /// What it must be a multiple of, in elements.
        multiple: i128,
    },
    /// A copy along the innermost axis is not known to start at a multiple of 16 bytes.
    InnerStart {
        /// The axis.
        axis: String,
        /// Where regions start.
        start: Expr,
        /// What that must be a multiple of, in elements.
        multiple: i128,
    },
    /// A limit of tensor maps, and the axis that it is about with its box. Boxes of 1 along the axes that are named, if
    /// there are any, would make the copy one by runs, which have no such limit.
    Limit(Fault, Option<(String, Span)>, Vec<String>),
    /// No admissible size has a tensor map: this axis has, or is, more than there can be.
    Beyond {
        /// The axis.
        axis: String,
        /// Elements along it, or their distance.
        value: Expr,
        /// The most that there can be.
        most: i128,
        /// Whether it is the distance.
        is_stride: bool,
    },
    /// A swizzle span that does not exist.
    Swizzle(Span),
    /// So many bytes that the L2 cache does not fetch together.
    Promotion(Span),
    /// A swizzle in the layout, and one as an op on axes of the tile.
    TwoSwizzles(Span, Span),
    /// A swizzle of two axes, with their extents, that are no square whose side is a power of two.
    NotASwizzle(Box<[(String, i128); 2]>, Span),
    /// Ops on axes of the tile that make no layout that the accelerator writes.
    Elsewhere(Box<NotWritten>),
    /// So many ops on axes of a tile that they are not compared with what the accelerator writes.
    TooLong(Span),
    /// A layout in which a tile is not one whole, with what there is to lay out.
    Layout(LayoutProblem, Vec<String>, Span),
    /// The inner box is shorter than the span of the swizzle: how far rows are apart then is not confirmed on hardware.
    NarrowSwizzle {
        /// Bytes of the inner box.
        bytes: i128,
        /// Bytes of the span.
        span: u32,
        /// The inner axis.
        inner: String,
        /// The layout.
        at: Option<Span>,
    },
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::View(refusal)
    }
}

impl Staged {
    /// The rules of tensor maps, as far as sizes and strides are expressions.
    pub(super) fn check(&self, facts: &Facts, symbolic: &Symbolic) -> Result<(), Refused> {
        self.boxes().check_box().map_err(|fault| {
            let number = fault.dimension().and_then(|d| self.axes.len().checked_sub(d + 1));
            let rows = number.filter(|_| matches!(fault, Fault::Box { .. }));
            let rows = rows.and_then(|number| self.rows_as_runs(number, facts, symbolic)).unwrap_or_default();
            let axis = number.and_then(|number| self.axes.get(number));
            Refused::Limit(fault, axis.map(|a| (a.name.clone(), a.boxed.span)), rows)
        })?;
        let Some((inner, outer)) = self.axes.split_last() else {
            return Err(Refused::Limit(Fault::Rank(0), None, Vec::new()));
        };
        if facts.normal(&inner.stride).as_constant() != Some(1) {
            return Err(Refused::InnerStride { axis: inner.name.clone(), stride: inner.stride.clone() });
        }
        let (bytes, span) = (inner.boxed.box_size * i128::from(self.format.bytes()), self.swizzle.span());
        if self.swizzle != Swizzle::None && bytes != i128::from(span) {
            return Err(Refused::NarrowSwizzle { bytes, span, inner: inner.name.clone(), at: self.layout });
        }
        let multiple = i128::from(tensor_map::GRANULE) / i128::from(self.format.bytes());
        // Boxes follow each other in multiples of 16 bytes.
        if !facts.proves_multiple(&inner.region.start, multiple) {
            let (axis, start) = (inner.name.clone(), inner.region.start.clone());
            return Err(Refused::InnerStart { axis, start, multiple });
        }
        let least = |e: &Expr| facts.lower_bound(&facts.normal(e));
        for axis in &self.axes {
            let limits = [(&axis.size, i128::from(MOST_ELEMENTS), false), (&axis.stride, self.most_apart(), true)];
            for (value, most, is_stride) in limits {
                if least(value).is_some_and(|least| least > most) {
                    return Err(Refused::Beyond { axis: axis.name.clone(), value: value.clone(), most, is_stride });
                }
            }
        }
        for axis in outer {
            // Neighbours that are one element: see `tensor_map::Fault::ZeroStride`.
            let is_one = axis.stride.as_constant() == Some(0) && facts.upper_bound(&axis.size).is_none_or(|n| n > 1);
            if is_one || !facts.proves_multiple(&axis.stride, multiple) {
                return Err(Refused::Pitch { axis: axis.name.clone(), stride: axis.stride.clone(), multiple });
            }
        }
        Ok(())
    }

    /// What a copy to a tensor needs beside: it writes the whole part of each box that lies inside the tensor, in
    /// granules of 16 bytes.
    pub(super) fn check_store(&self, facts: &Facts, symbolic: &Symbolic) -> Result<(), Refused> {
        for axis in &self.axes {
            if let Some(tile) = axis.boxed.striding.filter(|_| axis.boxed.element_stride != 1) {
                return Err(Refused::StridedStore(axis.name.clone(), tile));
            }
            if !symbolic.proves_nonnegative(facts, &axis.region.start) {
                return Err(Refused::NegativeStart { axis: axis.name.clone(), start: axis.region.start.clone() });
            }
        }
        let Some(inner) = self.axes.last() else { return Ok(()) };
        let multiple = i128::from(tensor_map::GRANULE) / i128::from(self.format.bytes());
        if !facts.proves_multiple(&inner.size, multiple) {
            return Err(Refused::Granule { axis: inner.name.clone(), size: inner.size.clone(), multiple });
        }
        // Boxes before the tensor are the only ones without live slots that hold elements, and there are none.
        match self.level(facts, symbolic) {
            Level::Free => Ok(()),
            Level::Redirect | Level::Impossible => Err(Refused::StoreHoles(Box::new(self.clone()))),
        }
    }
}
