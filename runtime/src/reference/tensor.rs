//! Tensors of values on the host: parameters, and the results of equations.

use half::{bf16, f16};
use tilewright_kernel::ElementType;
use tilewright_kernel::storage::{e4m3, e5m2, tf32};

use super::column::{Column, Range};
use super::eval::Places;
use super::interval::Interval;

/// Values over a box of indices, in row-major order.
#[derive(Clone, Debug)]
pub(super) struct Values {
    /// Smallest index of each axis.
    pub(super) lower: Vec<i64>,
    pub(super) shape: Vec<i64>,
    pub(super) data: Column,
    /// Elements of an intermediate's box that its equation does not define.
    pub(super) missing: Option<Missing>,
}

/// Elements without a value. The box of an intermediate holds all that is read, and may hold more; what nothing reads
/// need not exist.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    /// By offset.
    pub(super) at: Vec<bool>,
    /// Why the first of them has none.
    pub(super) why: String,
}

impl Values {
    /// The offset of an index; none outside the box.
    pub(super) fn offset(&self, index: impl Iterator<Item = i64>) -> Option<usize> {
        let mut offset = 0_usize;
        for ((i, &lower), &extent) in index.zip(&self.lower).zip(&self.shape) {
            let i = i.checked_sub(lower).filter(|i| (0..extent).contains(i))?;
            offset = offset * extent as usize + i as usize;
        }
        Some(offset)
    }

    /// First offset and step, if all points are inside and evenly spaced, and no element is missing.
    pub(super) fn evenly(&self, places: &[Places], points: usize) -> Option<(usize, isize)> {
        if self.missing.is_some() {
            return None;
        }
        let (mut start, mut step) = (0_i64, 0_i64);
        for ((place, &lower), &extent) in places.iter().zip(&self.lower).zip(&self.shape) {
            let (first, by) = match *place {
                Places::Uniform(v) => (v, 0),
                Places::Affine(first, by) => (first, by),
                Places::Each(_) => return None,
            };
            let first = first.checked_sub(lower)?;
            let last = by.checked_mul(points as i64 - 1)?.checked_add(first)?;
            if !(0..extent).contains(&first) || !(0..extent).contains(&last) {
                return None;
            }
            // All offsets are below the number of elements, which fits in memory.
            (start, step) = (start * extent + first, step * extent + by);
        }
        Some((start as usize, step as isize))
    }

    /// Entries at evenly spaced offsets that are all inside.
    pub(super) fn strided(&self, start: usize, step: isize, points: usize) -> Column {
        fn take<T: Clone>(all: &[T], start: usize, step: isize, points: usize) -> Vec<T> {
            match step {
                0 => vec![all[start].clone()],
                1 => all[start..start + points].to_vec(),
                2.. => all[start..].iter().step_by(step as usize).take(points).cloned().collect(),
                _ => (0..points).map(|i| all[start.wrapping_add_signed(step * i as isize)].clone()).collect(),
            }
        }
        match &self.data {
            Column::Float(v) => Column::Float(take(v, start, step, points)),
            Column::FloatSets(v) => Column::FloatSets(take(v, start, step, points)),
            Column::Int(v) => Column::Int(take(v, start, step, points)),
            Column::IntSets(v) => Column::IntSets(take(v, start, step, points)),
        }
    }

    /// Entries at offsets; zero where there is none.
    pub(super) fn gather(&self, offsets: &[Option<usize>]) -> Column {
        fn take<T: Clone>(all: &[T], offsets: &[Option<usize>], nothing: T) -> Vec<T> {
            offsets.iter().map(|o| o.map_or_else(|| nothing.clone(), |o| all[o].clone())).collect()
        }
        match &self.data {
            Column::Float(v) => Column::Float(take(v, offsets, 0.0)),
            Column::FloatSets(v) => Column::FloatSets(take(v, offsets, Interval::exact(0.0))),
            Column::Int(v) => Column::Int(take(v, offsets, 0)),
            Column::IntSets(v) => Column::IntSets(take(v, offsets, Range::exact(0))),
        }
    }
}

/// The value with these bits.
pub(super) fn scalar(element: ElementType, bits: u64) -> Column {
    decode(element, &bits.to_le_bytes()[..element.bytes() as usize])
}

/// The values of little-endian bytes.
pub(super) fn decode(element: ElementType, bytes: &[u8]) -> Column {
    macro_rules! each {
        ($column:ident, $rust:ty, $convert:expr) => {{
            let (whole, _) = bytes.as_chunks::<{ size_of::<$rust>() }>();
            Column::$column(whole.iter().map(|b| $convert(<$rust>::from_le_bytes(*b))).collect())
        }};
    }
    match element {
        ElementType::F64 => each!(Float, f64, |x| x),
        ElementType::F32 => each!(Float, f32, f64::from),
        ElementType::Tf32 => each!(Float, u32, |bits| tf32::from_bits(bits).to_f64()),
        ElementType::F16 => each!(Float, f16, f16::to_f64),
        ElementType::Bf16 => each!(Float, bf16, bf16::to_f64),
        ElementType::I64 => each!(Int, i64, i128::from),
        ElementType::I32 => each!(Int, i32, i128::from),
        ElementType::I16 => each!(Int, i16, i128::from),
        ElementType::I8 => each!(Int, i8, i128::from),
        ElementType::U64 => each!(Int, u64, i128::from),
        ElementType::U32 => each!(Int, u32, i128::from),
        ElementType::U16 => each!(Int, u16, i128::from),
        ElementType::U8 => each!(Int, u8, i128::from),
        ElementType::Bool => each!(Int, u8, |b| i128::from(b != 0)),
        ElementType::E4m3 => each!(Float, u8, |bits| e4m3::from_bits(bits).to_f64()),
        ElementType::E5m2 => each!(Float, u8, |bits| e5m2::from_bits(bits).to_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_values() {
        assert_eq!(scalar(ElementType::F32, u64::from(1.5_f32.to_bits())), Column::Float(vec![1.5]));
        assert_eq!(scalar(ElementType::I16, 0xfffe), Column::Int(vec![-2]));
        assert_eq!(scalar(ElementType::U64, u64::MAX), Column::Int(vec![u64::MAX.into()]));
        assert_eq!(scalar(ElementType::Bf16, 0x3fc0), Column::Float(vec![1.5]));
        assert_eq!(scalar(ElementType::Bool, 1), Column::Int(vec![1]));
        assert_eq!(scalar(ElementType::E4m3, 0x38), Column::Float(vec![1.0]));
        assert_eq!(scalar(ElementType::E5m2, 0xfc), Column::Float(vec![f64::NEG_INFINITY]));
        assert_eq!(scalar(ElementType::Tf32, 0x3f80_0001), Column::Float(vec![1.0]));
    }

    #[test]
    fn even_and_single_reads_agree() {
        let data = Column::Int((0..60).collect());
        let values = Values { lower: vec![0, -1, 2], shape: vec![3, 4, 5], data, missing: None };
        for (i, j, k, di, dj, dk) in
            [(0, -1, 2, 0, 0, 1), (2, 2, 6, -1, -1, -1), (0, 0, 2, 1, 0, 2), (1, 1, 3, 0, 0, 0)]
        {
            let places = [Places::Affine(i, di), Places::Affine(j, dj), Places::Affine(k, dk)];
            let points = if (di, dj, dk) == (0, 0, 0) { 1 } else { 3 };
            let (start, step) = values.evenly(&places, points).unwrap();
            let offsets: Vec<_> =
                (0..points as i64).map(|p| values.offset([i + p * di, j + p * dj, k + p * dk].into_iter())).collect();
            assert_eq!(values.strided(start, step, points), values.gather(&offsets));
        }
        assert_eq!(values.evenly(&[Places::Uniform(3), Places::Uniform(0), Places::Uniform(2)], 1), None);
        assert_eq!(values.evenly(&[Places::Uniform(0), Places::Uniform(0), Places::Affine(4, 1)], 4), None);
        assert_eq!(values.offset([0, 3, 2].into_iter()), None);
    }
}
