//! Rules over concrete values, evaluated by the launcher and, where extents are literal, by the compiler.

use crate::info::{KernelInfo, ParameterKind};
use crate::size::{Size, SizeError, SizeOp, apply};

/// Strides of a row-major contiguous tensor, in elements; none on overflow.
///
/// A dimension of extent 0 counts as 1, so that the strides of an empty tensor are still meaningful.
pub fn row_major_strides(shape: &[i64]) -> Option<Vec<i64>> {
    let mut strides = vec![1_i64; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1].checked_mul(shape[d + 1].max(1))?;
    }
    Some(strides)
}

/// Whether strides are those of a row-major contiguous tensor, ignoring dimensions of extent at most 1.
pub fn is_row_major(shape: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1_i64;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent > 1 && stride != expected {
            return false;
        }
        expected = expected.saturating_mul(extent.max(1));
    }
    true
}

/// Smallest and largest element offset of a strided tensor; none if it is empty. Offsets are mathematical integers.
pub fn offset_range(shape: &[i64], strides: &[i64]) -> Option<(i128, i128)> {
    let (mut low, mut high) = (0_i128, 0_i128);
    for (&extent, &stride) in shape.iter().zip(strides) {
        if extent <= 0 {
            return None;
        }
        let reach = i128::from(extent - 1) * i128::from(stride);
        low += reach.min(0);
        high += reach.max(0);
    }
    Some((low, high))
}

/// Whether no two elements of a strided tensor share an offset.
///
/// Sufficient and, for tensors that arise by slicing and transposing, necessary: with dimensions sorted by |stride|,
/// each stride steps over everything that the smaller ones reach.
pub fn is_injective(shape: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<(i128, i128)> = (shape.iter().zip(strides))
        .filter(|(extent, _)| **extent > 1)
        .map(|(extent, stride)| (i128::from(*stride).abs(), i128::from(*extent)))
        .collect();
    dims.sort_unstable();
    let mut reach = 0_i128;
    for (stride, extent) in dims {
        if stride <= reach {
            return false;
        }
        reach += stride * (extent - 1);
    }
    true
}

/// Which list of a view a value was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The shape.
    Shape,
    /// The strides.
    Strides,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Shape => "shape",
            Self::Strides => "strides",
        })
    }
}

/// The first pair of values that a dimension would have to take at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The dimension.
    pub dim: u16,
    /// Value found first, and the parameter position, axis and list that it came from.
    pub first: (i64, usize, usize, Origin),
    /// Other value, and the parameter position, axis and list that it came from.
    pub second: (i64, usize, usize, Origin),
}

/// Shape and strides of a tensor argument.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Extent of each dimension, in elements.
    pub shape: &'a [i64],
    /// Stride of each dimension, in elements.
    pub strides: &'a [i64],
}

/// The value of every dimension, read off the tensor arguments (`views[i]` belongs to parameter `i`; none for scalars).
///
/// A dimension takes the value of the first parameter axis or stride that is nothing more than its name; `None` where
/// no argument tells it, or where a rank differs from the declaration (the caller checks ranks first).
///
/// # Errors
/// The first dimension for which two arguments disagree.
pub fn bind_dims(kernel: &KernelInfo, views: &[Option<View<'_>>]) -> Result<Vec<Option<i64>>, Conflict> {
    let mut dims: Vec<Option<(i64, usize, usize, Origin)>> = vec![None; kernel.dims.len()];
    // A stride along an extent of at most 1 is never used: it tells a dimension that nothing else tells, and never
    // conflicts.
    for unused_strides in [false, true] {
        for (p, (parameter, view)) in kernel.parameters.iter().zip(views).enumerate() {
            let (ParameterKind::Tensor(tensor), Some(view)) = (&parameter.kind, view) else { continue };
            let sizes = tensor.shape.iter().zip(view.shape).enumerate().map(|entry| (entry, Origin::Shape));
            let strides = tensor.strides.iter().flat_map(|s| s.iter()).zip(view.strides).enumerate();
            let strides = strides.map(|entry| (entry, Origin::Strides));
            for ((axis, (size, &value)), origin) in sizes.chain(strides) {
                let unused = origin == Origin::Strides && view.shape.get(axis).is_none_or(|&extent| extent <= 1);
                let Some(dim) = size.as_dim().filter(|_| unused == unused_strides) else { continue };
                let Some(slot) = dims.get_mut(usize::from(dim)) else { continue };
                let found = (value, p, axis, origin);
                match slot {
                    None => *slot = Some(found),
                    Some(first) if first.0 != value && !unused => {
                        return Err(Conflict { dim, first: *first, second: found });
                    }
                    Some(_) => {}
                }
            }
        }
    }
    Ok(dims.into_iter().map(|d| d.map(|(value, ..)| value)).collect())
}

/// A tensor argument at its address.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// Address of the first element.
    pub address: u64,
    /// Shape and strides.
    pub view: View<'a>,
    /// Size of one element in bytes.
    pub element_bytes: u32,
}

/// Whether two tensors share no byte. Strides are not negative.
///
/// `false` may also mean "not known". Exact for tensors whose address ranges are apart, and for parts of one tensor
/// that slicing and transposing produce (two column ranges of a matrix interleave in memory and are disjoint all the
/// same): the distance of the first bytes is written in the digits of the common strides; where every sum of lower
/// digits stays below the next stride the digits are unique, and the tensors are disjoint if and only if some digit's
/// ranges are.
pub fn are_disjoint(a: &Placed<'_>, b: &Placed<'_>) -> bool {
    let (a, b) = if a.address <= b.address { (a, b) } else { (b, a) };
    let bytes = |t: &Placed<'_>| {
        offset_range(t.view.shape, t.view.strides).map(|(_, last)| (last + 1) * i128::from(t.element_bytes))
    };
    let (Some(reach), Some(_)) = (bytes(a), bytes(b)) else { return true };
    let distance = i128::from(b.address - a.address);
    if distance >= reach {
        return true;
    }
    // (stride in bytes, extent in a, extent in b), largest stride first; the bytes of an element are the last digit.
    let mut digits: Vec<(i128, i128, i128)> = Vec::new();
    for (tensor, first) in [(a, true), (b, false)] {
        let size = i128::from(tensor.element_bytes);
        let axes = tensor.view.shape.iter().zip(tensor.view.strides);
        let axes = axes.map(|(&extent, &stride)| (i128::from(stride) * size, i128::from(extent))).chain([(1, size)]);
        for (stride, extent) in axes.filter(|&(_, extent)| extent > 1) {
            let at = digits.iter().position(|d| d.0 == stride);
            let at = at.unwrap_or_else(|| {
                digits.push((stride, 1, 1));
                digits.len() - 1
            });
            // Two axes of one stride add up.
            let slot = if first { &mut digits[at].1 } else { &mut digits[at].2 };
            *slot += extent - 1;
        }
    }
    digits.sort_unstable_by(|x, y| y.cmp(x));
    let mut rest = distance;
    let mut ranges = Vec::with_capacity(digits.len());
    for &(stride, in_a, in_b) in &digits {
        if stride <= 0 {
            return false;
        }
        ranges.push((stride, in_a, in_b, rest / stride));
        rest %= stride;
    }
    let mut lower = 0;
    let mut apart = rest != 0;
    for &(stride, in_a, in_b, start) in ranges.iter().rev() {
        if lower >= stride {
            return false;
        }
        apart |= start >= in_a;
        lower += stride * (in_a - 1).max(start + in_b - 1);
    }
    apart
}

/// Product of sizes as one size.
pub fn product<'a>(sizes: impl IntoIterator<Item = &'a Size>) -> Size {
    sizes.into_iter().cloned().reduce(|a, b| Size::binary(SizeOp::Mul, &a, &b)).unwrap_or_else(|| Size::constant(1))
}

/// Number of elements of a shape.
///
/// # Errors
/// [`SizeError::Overflow`] beyond 128 bits.
pub fn elements(shape: &[i64]) -> Result<i128, SizeError> {
    shape.iter().try_fold(1_i128, |n, &e| apply(SizeOp::Mul, n, i128::from(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every offset of a small strided tensor.
    fn offsets(shape: &[i64], strides: &[i64]) -> Vec<i64> {
        let mut all = vec![0];
        for (&extent, &stride) in shape.iter().zip(strides) {
            all = all.iter().flat_map(|base| (0..extent).map(move |i| base + i * stride)).collect();
        }
        all
    }

    #[test]
    fn ranges_and_overlap_agree_with_enumeration() {
        for a in 0..4 {
            for b in 0..4 {
                for s in -5..6 {
                    for t in -5..6 {
                        let (shape, strides) = ([a, b], [s, t]);
                        let mut all = offsets(&shape, &strides);
                        let range = all.iter().min().map(|m| (i128::from(*m), i128::from(*all.iter().max().unwrap())));
                        assert_eq!(offset_range(&shape, &strides), range, "{shape:?} {strides:?}");
                        all.sort_unstable();
                        let distinct = all.windows(2).all(|w| w[0] != w[1]);
                        if !all.is_empty() && is_injective(&shape, &strides) {
                            assert!(distinct, "{shape:?} {strides:?} overlaps");
                        }
                    }
                }
            }
        }
    }

    /// Every byte of a small strided tensor.
    fn bytes(t: &Placed<'_>) -> Vec<u64> {
        let size = u64::from(t.element_bytes);
        let starts = offsets(t.view.shape, t.view.strides).into_iter().map(|o| t.address + o.unsigned_abs() * size);
        starts.flat_map(|start| start..start + size).collect()
    }

    #[test]
    fn disjointness_agrees_with_enumeration() {
        let mut known = 0;
        for strides in [[6, 1], [1, 6], [5, 2], [4, 1], [3, 3], [2, 1]] {
            for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
                for address in 0..40 {
                    for (element_bytes, other_strides) in [(1, [6, 1]), (2, [6, 1]), (2, [1, 6])] {
                        let shape = [i, j];
                        let a =
                            Placed { address: 10, view: View { shape: &shape, strides: &strides }, element_bytes: 2 };
                        let view = View { shape: &[2, 2], strides: &other_strides };
                        let b = Placed { address, view, element_bytes };
                        let (in_a, in_b) = (bytes(&a), bytes(&b));
                        let disjoint = in_a.iter().all(|x| !in_b.contains(x));
                        if are_disjoint(&a, &b) {
                            assert!(disjoint, "{a:?} {b:?}");
                            known += 1;
                        }
                        assert_eq!(are_disjoint(&a, &b), are_disjoint(&b, &a));
                    }
                }
            }
        }
        assert!(known > 1000);
    }

    #[test]
    fn parts_of_one_tensor_are_told_apart_exactly() {
        // All pairs of boxes of a 5 × 6 matrix of 4-byte elements, one of them transposed.
        let boxes: Vec<[i64; 4]> = (0..5)
            .flat_map(|r| {
                (r + 1..=5).flat_map(move |s| (0..6).flat_map(move |c| (c + 1..=6).map(move |d| [r, s, c, d])))
            })
            .collect();
        for x in boxes.iter().step_by(7) {
            for y in &boxes {
                let disjoint = x[1] <= y[0] || y[1] <= x[0] || x[3] <= y[2] || y[3] <= x[2];
                let address = |b: &[i64; 4]| 64 + (b[0] * 6 + b[2]).unsigned_abs() * 4;
                let (shape_x, shape_y) = ([x[1] - x[0], x[3] - x[2]], [y[3] - y[2], y[1] - y[0]]);
                let view_x = View { shape: &shape_x, strides: &[6, 1] };
                let view_y = View { shape: &shape_y, strides: &[1, 6] };
                let a = Placed { address: address(x), view: view_x, element_bytes: 4 };
                let b = Placed { address: address(y), view: view_y, element_bytes: 4 };
                assert_eq!(are_disjoint(&a, &b), disjoint, "{x:?} {y:?}");
            }
        }
    }

    #[test]
    fn contiguous_strides_are_recognised() {
        let shape = [2, 1, 5];
        let strides = row_major_strides(&shape).unwrap();
        assert_eq!(strides, [5, 5, 1]);
        assert!(is_row_major(&shape, &strides) && is_row_major(&shape, &[5, 99, 1]));
        assert!(!is_row_major(&shape, &[6, 5, 1]) && !is_row_major(&shape, &[5, 5, 2]));
        assert_eq!(row_major_strides(&[2, i64::MAX, 3]), None);
    }
}
