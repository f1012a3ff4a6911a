//! Tensors as text: all elements of small ones, the ends of each axis of large ones.

use std::fmt;

use super::argument::Sealed;
use super::{DynTensor, DynTensorMut, DynTensorRef, Tensor, TensorMut, TensorRef, gather};
use crate::element::Element;

/// Most elements that are shown, all of them.
const ALL: usize = 256;
/// Positions that are shown at each end of an axis of a larger tensor.
const ENDS: usize = 3;

/// Writes the elements from `start` on under axes with these extents.
fn axes<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    elements: &[T],
    (shape, depth): (&[usize], usize),
    is_whole: bool,
) -> fmt::Result {
    let Some((&extent, inner)) = shape.split_first() else {
        return match elements.first() {
            Some(element) => fmt::Display::fmt(element, f),
            None => Ok(()),
        };
    };
    let size: usize = inner.iter().product();
    f.write_str("[")?;
    for i in 0..extent {
        if !is_whole && extent > 2 * ENDS && (ENDS..extent - ENDS).contains(&i) {
            if i == ENDS {
                f.write_str(", …")?;
            }
            continue;
        }
        if i > 0 {
            f.write_str(",")?;
            if inner.is_empty() {
                f.write_str(" ")?;
            } else {
                write!(f, "\n{:depth$}", "", depth = depth + 1)?;
            }
        }
        axes(f, &elements[i * size..(i + 1) * size], (inner, depth + 1), is_whole)?;
    }
    f.write_str("]")
}

macro_rules! displayed {
    ($tensor:ty $(, $rank:ident)?) => {
        /// The elements, row by row, after every launch that writes them; of a tensor of more than 256 the first and
        /// the last three along each axis. `{:.2}` formats each element so. An error of the device is shown in their
        /// place.
        impl<T: Element + fmt::Display $(, const $rank: usize)?> fmt::Display for $tensor {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let parts = self.parts();
                match gather(&parts) {
                    Ok(bytes) => {
                        let elements = T::decode(&bytes);
                        axes(f, &elements, (parts.shape, 0), elements.len() <= ALL)
                    }
                    Err(error) => write!(f, "({error})"),
                }
            }
        }
    };
}

displayed!(Tensor<T, R>, R);
displayed!(TensorRef<'_, T, R>, R);
displayed!(TensorMut<'_, T, R>, R);
displayed!(DynTensor<T>);
displayed!(DynTensorRef<'_, T>);
displayed!(DynTensorMut<'_, T>);

#[cfg(test)]
mod tests {
    use crate::{Device, EmulatorOptions, Tensor};

    #[test]
    fn small_tensors_are_shown_whole() {
        let device = Device::emulator(EmulatorOptions::default());
        let x = Tensor::from_vec(&device, vec![1, 2, 3, 4, 5, 6], [2, 3]).unwrap();
        assert_eq!(x.to_string(), "[[1, 2, 3],\n [4, 5, 6]]");
        assert_eq!(x.view().permute([1, 0]).unwrap().to_string(), "[[1, 4],\n [2, 5],\n [3, 6]]");
        let y = Tensor::full(&device, 0.5_f32, [1, 2, 2]).unwrap();
        assert_eq!(format!("{y:.2}"), "[[[0.50, 0.50],\n  [0.50, 0.50]]]");
        assert_eq!(Tensor::from_vec(&device, vec![7_u8], []).unwrap().to_string(), "7");
        assert_eq!(Tensor::<i32, 2>::zeros(&device, [2, 0]).unwrap().to_string(), "[[],\n []]");
    }

    #[test]
    fn of_large_tensors_the_ends_are_shown() {
        let device = Device::emulator(EmulatorOptions::default());
        let x = Tensor::from_vec(&device, (0..1000).collect(), [1000]).unwrap();
        assert_eq!(x.to_string(), "[0, 1, 2, …, 997, 998, 999]");
        let x = x.reshape([4, 250]).unwrap();
        assert!(x.to_string().starts_with("[[0, 1, 2, …, 247, 248, 249],\n [250,"), "{x}");
    }
}
