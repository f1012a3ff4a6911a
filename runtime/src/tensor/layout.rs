//! Where the elements of a tensor lie: offset, shape and strides, and what slicing and transposing do to them.

use std::ops::{Bound, Range, RangeBounds};

use crate::error::{Error, Result};

/// One number for each axis: an array where the rank is a type, else a vector.
pub(crate) trait Axes: Clone + AsRef<[usize]> + AsMut<[usize]> {}

impl<const R: usize> Axes for [usize; R] {}
impl Axes for Vec<usize> {}

/// Offset, shape and strides in elements; strides are never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout<A> {
    pub(crate) offset: usize,
    pub(crate) shape: A,
    pub(crate) strides: A,
}

/// Number of elements of a shape whose bytes fit in memory.
pub(crate) fn elements(shape: &[usize], element_bytes: usize) -> Result<usize> {
    // A dimension of extent 0 makes the tensor empty, whatever the others are; the others still become strides.
    let span = shape.iter().try_fold(1_usize, |n, &extent| n.checked_mul(extent.max(1)));
    let fits = span.and_then(|n| n.checked_mul(element_bytes)).filter(|&bytes| bytes <= isize::MAX as usize);
    match (fits, span) {
        (Some(_), Some(span)) => Ok(if shape.contains(&0) { 0 } else { span }),
        _ => Err(Error::TooLarge { shape: shape.to_vec(), element_bytes }),
    }
}

/// A range of an axis. What ends before it starts is left to be refused.
fn bounds(range: &impl RangeBounds<usize>, extent: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => extent,
    };
    start..end
}

/// The trailing axes that are contiguous: (first of them, elements of a run).
pub(crate) fn run(shape: &[usize], strides: &[usize]) -> (usize, usize) {
    let mut length = 1_usize;
    for d in (0..shape.len()).rev() {
        if shape[d] != 1 && strides[d] != length {
            return (d + 1, length);
        }
        length = length.saturating_mul(shape[d]);
    }
    (0, length)
}

impl<A: Axes> Layout<A> {
    /// Row-major and contiguous; `elements` has accepted the shape.
    pub(crate) fn row_major(shape: A) -> Self {
        let mut strides = shape.clone();
        let mut stride = 1;
        for (s, &extent) in strides.as_mut().iter_mut().zip(shape.as_ref()).rev() {
            *s = stride;
            stride *= extent.max(1);
        }
        Self { offset: 0, shape, strides }
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.as_ref().len()
    }

    pub(crate) fn len(&self) -> usize {
        // Saturating here and below: shapes of foreign memory come as they are. Ours were checked by `elements`.
        self.shape.as_ref().iter().fold(1, |n, &extent| n.saturating_mul(extent))
    }

    /// One past the largest element offset, 0 if there are no elements.
    pub(crate) fn end(&self) -> usize {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        if shape.contains(&0) {
            return self.offset;
        }
        let reach =
            |end: usize, (&extent, &stride): (&usize, &usize)| end.saturating_add((extent - 1).saturating_mul(stride));
        shape.iter().zip(strides).fold(self.offset, reach).saturating_add(1)
    }

    /// The extent of an axis.
    pub(crate) fn extent(&self, axis: usize) -> Result<usize> {
        self.shape.as_ref().get(axis).copied().ok_or_else(|| Error::Axis { axis, rank: self.rank() })
    }

    /// The part of an axis.
    pub(crate) fn slice(mut self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self> {
        let extent = self.extent(axis)?;
        let range = bounds(&range, extent);
        if range.start > range.end || range.end > extent {
            return Err(Error::Range { axis, extent, start: range.start, end: range.end });
        }
        self.shape.as_mut()[axis] = range.end - range.start;
        // An empty part has no first element: its offset stays where it is inside the allocation.
        if range.start < range.end {
            self.offset = self.offset.saturating_add(range.start.saturating_mul(self.strides.as_ref()[axis]));
        }
        Ok(self)
    }

    /// The two parts of an axis before and from `at`.
    pub(crate) fn split_at(&self, axis: usize, at: usize) -> Result<(Self, Self)> {
        Ok((self.clone().slice(axis, 0..at)?, self.clone().slice(axis, at..self.extent(axis)?)?))
    }

    /// The same elements in row-major order under another shape; none if they lie apart.
    pub(crate) fn reshape<B: Axes>(&self, shape: B, element_bytes: usize) -> Result<Layout<B>> {
        let (expected, found) = (elements(shape.as_ref(), element_bytes)?, self.len());
        if expected != found {
            return Err(Error::Length { shape: shape.as_ref().to_vec(), expected, found });
        }
        if self.run().0 > 0 && found > 0 {
            let reason = "the elements of the view lie apart; copy them with `to_tensor`".to_owned();
            return Err(Error::Layout { operation: "reshape", reason });
        }
        Ok(Layout { offset: self.offset, ..Layout::row_major(shape) })
    }

    /// Every `step`-th position of an axis, from the first.
    pub(crate) fn step(mut self, axis: usize, step: usize) -> Result<Self> {
        let extent = self.extent(axis)?;
        if step == 0 {
            return Err(Error::Layout { operation: "step", reason: "a step is at least 1".to_owned() });
        }
        self.shape.as_mut()[axis] = extent.div_ceil(step);
        // Saturating: a stride that does not fit is never taken, for then the axis keeps one position.
        let stride = &mut self.strides.as_mut()[axis];
        *stride = stride.saturating_mul(step);
        Ok(self)
    }

    /// The axes in another order: axis `d` of the result is axis `axes[d]` of this.
    pub(crate) fn permute(self, axes: &[usize]) -> Result<Self> {
        let rank = self.rank();
        let mut seen = vec![false; rank];
        let is_new = |&axis: &usize| axis < rank && !std::mem::replace(&mut seen[axis], true);
        if axes.len() != rank || !axes.iter().all(is_new) {
            return Err(Error::Permutation { axes: axes.to_vec() });
        }
        let mut moved = self.clone();
        for (d, &axis) in axes.iter().enumerate() {
            moved.shape.as_mut()[d] = self.shape.as_ref()[axis];
            moved.strides.as_mut()[d] = self.strides.as_ref()[axis];
        }
        Ok(moved)
    }

    /// The trailing axes that are contiguous: (first of them, elements of a run).
    pub(crate) fn run(&self) -> (usize, usize) {
        run(self.shape.as_ref(), self.strides.as_ref())
    }

    /// Offsets of the runs, in row-major order of the axes before them.
    pub(crate) fn run_offsets(&self) -> Vec<usize> {
        let (axes, length) = self.run();
        let mut offsets = if length == 0 { Vec::new() } else { vec![self.offset] };
        for (&extent, &stride) in self.shape.as_ref().iter().zip(self.strides.as_ref()).take(axes) {
            offsets = offsets.iter().flat_map(|&base| (0..extent).map(move |i| base + i * stride)).collect();
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_counted_with_care() {
        assert_eq!(elements(&[], 8).unwrap(), 1);
        assert_eq!(elements(&[3, 4], 4).unwrap(), 12);
        assert_eq!(elements(&[0, 4], 4).unwrap(), 0);
        assert!(matches!(elements(&[usize::MAX, 2], 1), Err(Error::TooLarge { .. })));
        assert!(matches!(elements(&[0, usize::MAX, 2], 1), Err(Error::TooLarge { .. })));
        assert!(matches!(elements(&[isize::MAX as usize], 2), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn slices_and_permutations_name_the_right_elements() {
        let layout = Layout::row_major([4, 5, 6]);
        let part = layout.slice(1, 1..4).unwrap().slice(2, 2..6).unwrap().permute(&[2, 0, 1]).unwrap();
        assert_eq!(part.shape, [4, 4, 3]);
        let mut expected = Vec::new();
        for k in 2..6 {
            for i in 0..4 {
                for j in 1..4 {
                    expected.push((i * 5 + j) * 6 + k);
                }
            }
        }
        assert_eq!(part.run(), (3, 1));
        assert_eq!(part.run_offsets(), expected);
        assert_eq!(part.end(), expected.iter().max().unwrap() + 1);
        let rows = layout.slice(1, 2..4).unwrap();
        assert_eq!(rows.run(), (1, 12));
        assert_eq!(rows.run_offsets(), [12, 42, 72, 102]);
        assert_eq!(layout.run(), (0, 120));
        assert_eq!(layout.slice(0, 2..2).unwrap().run_offsets(), Vec::<usize>::new());
    }

    #[test]
    fn steps_name_every_nth_position() {
        let layout = Layout::row_major([3, 7]);
        let part = layout.slice(1, 1..7).unwrap().step(1, 4).unwrap().step(0, 2).unwrap();
        assert_eq!((part.shape, part.strides), ([2, 2], [14, 4]));
        assert_eq!(part.run_offsets(), [1, 5, 15, 19]);
        assert_eq!(part.end(), 20);
        let first = layout.step(1, usize::MAX).unwrap();
        assert_eq!((first.shape, first.end()), ([3, 1], 15));
        assert_eq!(layout.slice(1, 3..3).unwrap().step(1, 2).unwrap().shape, [3, 0]);
        assert_eq!(layout.step(1, 1), Ok(layout));
    }

    #[test]
    fn impossible_slices_are_errors() {
        let layout = Layout::row_major([4, 5]);
        assert_eq!(layout.step(2, 1), Err(Error::Axis { axis: 2, rank: 2 }));
        assert!(matches!(layout.step(0, 0), Err(Error::Layout { operation: "step", .. })));
        assert_eq!(layout.slice(2, 0..1), Err(Error::Axis { axis: 2, rank: 2 }));
        assert_eq!(layout.slice(1, 3..6), Err(Error::Range { axis: 1, extent: 5, start: 3, end: 6 }));
        #[expect(clippy::reversed_empty_ranges, reason = "what is tested")]
        let reversed = layout.slice(1, 3..2);
        assert_eq!(reversed, Err(Error::Range { axis: 1, extent: 5, start: 3, end: 2 }));
        assert_eq!(layout.permute(&[1, 1]), Err(Error::Permutation { axes: vec![1, 1] }));
        assert_eq!(layout.permute(&[0, 2]), Err(Error::Permutation { axes: vec![0, 2] }));
    }
}
