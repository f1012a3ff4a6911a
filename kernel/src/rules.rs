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
/// Sufficient and, for tensors that arise by slicing and transposing, necessary: with dimensions sorted by |stride|, each
/// stride steps over everything that the smaller ones reach.
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

/// The first pair of values that a dimension would have to take at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The dimension.
    pub dim: u16,
    /// Value found first, and the parameter position and axis that it came from.
    pub first: (i64, usize, usize),
    /// Other value, and the parameter position and axis that it came from.
    pub second: (i64, usize, usize),
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
/// A dimension takes the value of the first parameter axis or stride that is nothing more than its name; `None` where no
/// argument tells it, or where a rank differs from the declaration (the caller checks ranks first).
///
/// # Errors
/// The first dimension for which two arguments disagree.
pub fn bind_dims(kernel: &KernelInfo, views: &[Option<View<'_>>]) -> Result<Vec<Option<i64>>, Conflict> {
    let mut dims: Vec<Option<(i64, usize, usize)>> = vec![None; kernel.dims.len()];
    for (p, (parameter, view)) in kernel.parameters.iter().zip(views).enumerate() {
        let (ParameterKind::Tensor(tensor), Some(view)) = (&parameter.kind, view) else { continue };
        let strides = tensor.strides.iter().flat_map(|s| s.iter()).zip(view.strides).enumerate();
        let sizes = tensor.shape.iter().zip(view.shape).enumerate();
        for (axis, (size, &value)) in sizes.chain(strides) {
            let Some(slot) = size.as_dim().and_then(|d| dims.get_mut(usize::from(d))) else { continue };
            match slot {
                None => *slot = Some((value, p, axis)),
                // The stride of a dimension of extent 1 is never used: any value agrees.
                Some(first) if first.0 != value => {
                    let dim = size.as_dim().expect("the slot came from a dimension");
                    return Err(Conflict { dim, first: *first, second: (value, p, axis) });
                }
                Some(_) => {}
            }
        }
    }
    Ok(dims.into_iter().map(|d| d.map(|(value, _, _)| value)).collect())
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
