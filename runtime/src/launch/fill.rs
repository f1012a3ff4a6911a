//! What outputs begin as, where memory says which elements of them terms belong to.
//!
//! **Property.** The fills of a tensor write every byte of every element, and no byte beside. **Formula.** With the
//! dimensions that have more than one element sorted by stride, one that continues the one before is joined with it.
//! The first makes a run if it has no gaps; the longest of the others is the one that a fill steps along, and there is
//! a fill for each place of the rest. So a tensor without gaps takes one, and rows of a larger one take one as well. A
//! number of 8 bytes that is no repetition of 4 is filled by halves.

use tilewright_kernel::KernelInfo;
use tilewright_kernel::info::ParameterKind;

use super::argument::{Given, GivenTensor};

/// What a driver takes as the distance of rows.
const MOST_PITCH: u64 = i32::MAX as u64;

/// Rows of equal units in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// Address of the first unit, a multiple of its size.
    pub(crate) address: u64,
    /// Bytes of a unit: 1 or 4.
    pub(crate) unit: u32,
    /// What each unit becomes.
    pub(crate) value: u32,
    /// Units of a row, which has no gaps.
    pub(crate) width: u64,
    /// Rows.
    pub(crate) height: u64,
    /// Distance of rows in bytes, a multiple of the unit; of one row, its length.
    pub(crate) pitch: u64,
}

/// What has to be filled before a kernel runs. The arguments have passed the checks of the launch.
pub(crate) fn fills(kernel: &KernelInfo, given: &[Given]) -> Vec<Fill> {
    let mut all = Vec::new();
    for (number, (parameter, given)) in (0..).zip(kernel.parameters.iter().zip(given)) {
        if let (ParameterKind::Tensor(_), Given::Tensor(tensor), Some(bits)) =
            (&parameter.kind, given, kernel.fill(number))
        {
            all.extend(fills_of(tensor, bits));
        }
    }
    all
}

/// Gives each element of a tensor these bits.
fn fills_of(tensor: &GivenTensor, bits: u64) -> Vec<Fill> {
    if tensor.is_empty() {
        return Vec::new();
    }
    let size = tensor.element.bytes();
    let bytes = bits.to_le_bytes();
    let bytes = &bytes[..size as usize];
    let places = Places::of(tensor, u64::from(size));
    let word = |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes);
    let address = tensor.address;
    match (bytes.iter().all(|byte| *byte == bytes[0]), size) {
        (true, _) => places.fills(address, 1, bytes[0].into(), u64::from(size)),
        (false, 8) if word(0) != word(4) => {
            let low = places.fills(address, 4, word(0), 1);
            let high = places.fills(address + 4, 4, word(4), 1);
            low.into_iter().chain(high).collect()
        }
        (false, _) => places.fills(address, 4, word(0), u64::from(size / 4)),
    }
}

/// Where the elements of a tensor lie: dimensions of more than one element, by increasing stride in bytes. None of them
/// continues the one before.
struct Places {
    /// Stride and number of elements.
    dimensions: Vec<(u64, u64)>,
    /// Bytes of an element.
    size: u64,
}

impl Places {
    fn of(tensor: &GivenTensor, size: u64) -> Self {
        let each = tensor.shape.iter().zip(&tensor.strides).filter(|(extent, _)| **extent > 1);
        let mut dimensions: Vec<(u64, u64)> =
            each.map(|(extent, stride)| (stride.unsigned_abs() * size, extent.unsigned_abs())).collect();
        dimensions.sort_unstable();
        // What continues the one before is one with it.
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(dimensions.len());
        for (stride, extent) in dimensions {
            match joined.last_mut() {
                Some((inner, count)) if *inner * *count == stride => *count *= extent,
                _ => joined.push((stride, extent)),
            }
        }
        Self { dimensions: joined, size }
    }

    /// Fills so many units at the start of each element.
    fn fills(&self, address: u64, unit: u32, value: u32, units: u64) -> Vec<Fill> {
        let mut run = units * u64::from(unit);
        let mut rest = &self.dimensions[..];
        // Part of an element continues nothing.
        if let [(stride, extent), outer @ ..] = rest
            && run == self.size
            && *stride == run
        {
            run *= extent;
            rest = outer;
        }
        let mut rest = rest.to_vec();
        let longest = (0..rest.len()).filter(|at| rest[*at].0 <= MOST_PITCH).max_by_key(|at| rest[*at].1);
        let (pitch, height) = longest.map_or((run, 1), |at| rest.remove(at));
        let mut starts = vec![address];
        for (stride, extent) in rest {
            starts = starts.into_iter().flat_map(|start| (0..extent).map(move |at| start + at * stride)).collect();
        }
        let width = run / u64::from(unit);
        starts.into_iter().map(|address| Fill { address, unit, value, width, height, pitch }).collect()
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use tilewright_kernel::ElementType;

    use super::*;
    use crate::device::Device;
    use crate::emulator::EmulatorOptions;
    use crate::memory::Allocation;

    /// Of small tensors with gaps and in any order of dimensions, exactly the bytes of the elements are filled, each
    /// once, with what it is meant to be.
    #[test]
    fn fills_are_the_elements_and_nothing_else() {
        let device = Device::emulator(EmulatorOptions::default());
        let allocation = Arc::new(Allocation::new(device.inner(), 1).expect("one byte"));
        let values: [(ElementType, u64); 8] = [
            (ElementType::F32, 0),
            (ElementType::Bf16, 0),
            (ElementType::U8, 0),
            (ElementType::U32, u32::MAX.into()),
            (ElementType::I32, 0x7fff_ffff),
            (ElementType::I64, i64::MAX as u64),
            (ElementType::I64, 1 << 63),
            (ElementType::U64, 0x0102_0304_0102_0304),
        ];
        let layouts: [(&[i64], &[i64], [usize; 2]); 10] = [
            (&[], &[], [1, 2]),
            (&[7], &[1], [1, 2]),
            (&[7], &[3], [1, 2]),
            (&[0, 3], &[3, 1], [0, 0]),
            (&[4, 6], &[6, 1], [1, 2]),
            (&[4, 6], &[1, 4], [1, 2]),
            (&[4, 6], &[9, 1], [1, 8]),
            (&[3, 4, 5], &[40, 8, 1], [3, 24]),
            (&[3, 4, 5], &[100, 10, 2], [3, 6]),
            (&[2, 1, 3], &[1 << 32, 77, 2], [2, 4]),
        ];
        let mut counts = Vec::new();
        for (shape, strides, most) in layouts {
            for (element, bits) in values {
                let size = u64::from(element.bytes());
                let tensor = GivenTensor {
                    allocation: Arc::clone(&allocation),
                    address: 4096,
                    offset: 0,
                    element,
                    shape: shape.to_vec(),
                    strides: strides.to_vec(),
                    writable: true,
                };
                let all = fills_of(&tensor, bits);
                let mut found: BTreeMap<u64, u8> = BTreeMap::new();
                for fill in &all {
                    assert!(
                        fill.pitch <= MOST_PITCH && fill.pitch >= fill.width * u64::from(fill.unit) || fill.height == 1
                    );
                    assert!(
                        fill.address.is_multiple_of(fill.unit.into()) && fill.pitch.is_multiple_of(fill.unit.into())
                    );
                    for row in 0..fill.height {
                        for at in 0..fill.width * u64::from(fill.unit) {
                            let byte = fill.value.to_le_bytes()[(at % u64::from(fill.unit)) as usize];
                            let before = found.insert(fill.address + row * fill.pitch + at, byte);
                            assert_eq!(before, None, "{shape:?} {strides:?} {element}: a byte twice");
                        }
                    }
                }
                let mut starts = vec![4096];
                for (extent, stride) in shape.iter().zip(strides) {
                    let step = stride.unsigned_abs() * size;
                    starts =
                        starts.iter().flat_map(|s| (0..extent.unsigned_abs()).map(move |i| s + i * step)).collect();
                }
                let meant = starts.iter().flat_map(|s| (0..size).map(move |b| (s + b, bits.to_le_bytes()[b as usize])));
                assert_eq!(found, meant.collect(), "{shape:?} {strides:?} {element}");
                // By halves, twice as many.
                let by_halves = size == 8 && bits != 0 && bits >> 32 != bits & u64::from(u32::MAX);
                assert!(all.len() <= most[usize::from(by_halves)], "{shape:?} {strides:?} {element}: {}", all.len());
                counts.push(all.len());
            }
        }
        assert!(counts.contains(&1) && counts.contains(&24));
    }
}
