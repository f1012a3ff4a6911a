//! Element types of tensors on the host's side, and their bytes in device memory.

use half::{bf16, f16};
use tilewright_kernel::ElementType;
use tilewright_kernel::storage::{e4m3, e5m2, tf32};

mod sealed {
    pub trait Sealed {}
}

/// A type that a tensor can hold: `f64 f32 i64 i32 i16 i8 u64 u32 u16 u8 bool`, and `f16 bf16 tf32 e4m3 e5m2` of this
/// crate.
///
/// Device memory is little-endian; a `bool` is one byte, 0 or 1.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of tensors",
    label = "tensors hold f64, f32, bool, integers of 8 to 64 bits, or the narrow floats of this crate",
    note = "`usize` and `isize` have no fixed width: use `u64` or `i64`"
)]
pub trait Element: Copy + Send + Sync + std::fmt::Debug + 'static + sealed::Sealed {
    /// The type's name in the language.
    const TYPE: ElementType;

    /// The bits, zero-extended.
    fn bits(self) -> u64;

    #[doc(hidden)]
    fn encode(elements: &[Self]) -> Vec<u8>;

    /// Elements of a byte string; a trailing partial element is ignored.
    #[doc(hidden)]
    fn decode(bytes: &[u8]) -> Vec<Self>;

    /// Makes bytes of the device's that were copied over elements such as elements have. Of all types but `bool` every
    /// bit pattern is one.
    #[doc(hidden)]
    fn settle(_bytes: &mut [u8]) {}
}

macro_rules! elements {
    ($($rust:ty, $bits:ty => $name:ident;)*) => { $(
        impl sealed::Sealed for $rust {}

        impl Element for $rust {
            const TYPE: ElementType = ElementType::$name;

            fn bits(self) -> u64 {
                u64::from(<$bits>::from_le_bytes(self.to_le_bytes()))
            }

            // Not generic: compiled here, with this crate's optimisation, and not in the user's dev build.
            fn encode(elements: &[Self]) -> Vec<u8> {
                elements.iter().flat_map(|e| e.to_le_bytes()).collect()
            }

            fn decode(bytes: &[u8]) -> Vec<Self> {
                let (whole, _) = bytes.as_chunks::<{ size_of::<$rust>() }>();
                whole.iter().map(|b| Self::from_le_bytes(*b)).collect()
            }
        }
    )* };
}

elements! {
    f64, u64 => F64;
    f32, u32 => F32;
    f16, u16 => F16;
    bf16, u16 => Bf16;
    i64, u64 => I64;
    i32, u32 => I32;
    i16, u16 => I16;
    i8, u8 => I8;
    u64, u64 => U64;
    u32, u32 => U32;
    u16, u16 => U16;
    u8, u8 => U8;
}

macro_rules! storage {
    ($($rust:ty, $bits:ty => $name:ident;)*) => { $(
        impl sealed::Sealed for $rust {}

        impl Element for $rust {
            const TYPE: ElementType = ElementType::$name;

            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }

            fn encode(elements: &[Self]) -> Vec<u8> {
                elements.iter().flat_map(|e| e.to_bits().to_le_bytes()).collect()
            }

            fn decode(bytes: &[u8]) -> Vec<Self> {
                <$bits as Element>::decode(bytes).into_iter().map(Self::from_bits).collect()
            }
        }
    )* };
}

storage! {
    tf32, u32 => Tf32;
    e4m3, u8 => E4m3;
    e5m2, u8 => E5m2;
}

impl sealed::Sealed for bool {}

impl Element for bool {
    const TYPE: ElementType = ElementType::Bool;

    fn bits(self) -> u64 {
        u64::from(self)
    }

    fn encode(elements: &[Self]) -> Vec<u8> {
        elements.iter().map(|&e| u8::from(e)).collect()
    }

    fn decode(bytes: &[u8]) -> Vec<Self> {
        bytes.iter().map(|&b| b != 0).collect()
    }

    fn settle(bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive_the_round_trip_through_bytes() {
        fn check<T: Element + PartialEq>(xs: &[T]) {
            let bytes = T::encode(xs);
            assert_eq!(bytes.len(), size_of_val(xs));
            assert_eq!(size_of::<T>(), T::TYPE.bytes() as usize);
            assert_eq!(T::decode(&bytes), xs);
        }
        check(&[1.5_f64, -0.0, f64::INFINITY]);
        check(&[f32::MIN_POSITIVE / 4.0, -3.0]);
        check(&[f16::from_f32(1.5), f16::MAX]);
        check(&[bf16::from_f32(-1.5), bf16::EPSILON]);
        check(&[e4m3::MAX, e4m3::from_f32(-0.25)]);
        check(&[e5m2::MAX, e5m2::from_f32(1.5)]);
        check(&[tf32::from_f32(0.1), tf32::MAX]);
        check(&[i64::MIN, -1]);
        check(&[u16::MAX, 3]);
        check(&[true, false]);
        assert_eq!((-1_i16).bits(), 0xffff);
        assert_eq!(bool::decode(&[0, 1, 2]), [false, true, true]);
        let mut bytes = [0, 1, 2, 255];
        u8::settle(&mut bytes);
        assert_eq!(bytes, [0, 1, 2, 255]);
        bool::settle(&mut bytes);
        assert_eq!(bytes, [0, 1, 1, 1]);
    }
}
