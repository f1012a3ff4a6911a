//! Views of device memory that belongs to somebody else.
#![allow(unsafe_code, reason = "whether an address is valid is the caller's promise")]

use std::sync::Arc;

use super::{Allocation, Storage};
use crate::device::{DeviceInner, Stream};
use crate::element::Element;
use crate::tensor::{Layout, TensorMut, TensorRef};

impl Allocation {
    /// Foreign memory that a layout reaches, used in the order of `stream`.
    fn foreign<T: Element, const R: usize>(stream: &Stream, address: u64, layout: &Layout<[usize; R]>) -> Self {
        let device = Arc::clone(&stream.inner().device);
        let bytes = layout.end().saturating_mul(size_of::<T>());
        let storage = match &*device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(context) => {
                Storage::Cuda(crate::cuda::Block::foreign(Arc::clone(context), address, Arc::clone(stream.inner())))
            }
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(_) => Storage::Unreachable(address),
        };
        Self { storage, device, bytes }
    }
}

impl<'m, T: Element, const R: usize> TensorRef<'m, T, R> {
    /// A view of foreign device memory: address, shape, and strides in elements. `owner` is whatever keeps the memory
    /// alive.
    ///
    /// Launches on other streams than `stream` wait for it first, and `stream` waits for them afterwards: to its owner
    /// the memory is used in the order of `stream`. A launch refuses foreign memory on the emulator.
    ///
    /// A prepared launch cannot outlive the owner of its foreign memory:
    ///
    /// ```compile_fail,E0597
    /// # use tilewright::{Device, EmulatorOptions, TensorRef, __private::{Arg, prepare}, kernel::KernelInfo};
    /// # fn escape<'m>(kernel: &KernelInfo, device: &Device) -> tilewright::Result<tilewright::Prepared<'m>> {
    /// let owner = [0.0_f32; 8];
    /// let view = unsafe { TensorRef::<f32, 1>::from_raw_parts(device.as_ref(), 0x1000, [8], [1], &owner) };
    /// prepare(kernel, &[Arg::input::<f32, 1>(&view)], device.as_ref())
    /// # }
    /// ```
    ///
    /// # Safety
    /// - For `'m`, every element of the view is memory of the stream's device; the memory stays allocated until the
    ///   work that was enqueued on `stream` by then is done (freeing it in stream order is enough).
    /// - Nothing else writes it while launches that read it are pending, other than in the order of `stream`.
    /// - It holds elements of type `T`.
    pub unsafe fn from_raw_parts<O: ?Sized>(
        stream: &Stream,
        address: u64,
        shape: [usize; R],
        strides: [usize; R],
        owner: &'m O,
    ) -> Self {
        let _ = owner;
        let layout = Layout { offset: 0, shape, strides };
        Self::new(Arc::new(Allocation::foreign::<T, R>(stream, address, &layout)), layout)
    }
}

impl<'m, T: Element, const R: usize> TensorMut<'m, T, R> {
    /// As [`TensorRef::from_raw_parts`], to write.
    ///
    /// # Safety
    /// As there; and nothing else reads or writes the memory during `'m`, other than in the order of `stream`.
    pub unsafe fn from_raw_parts<O: ?Sized>(
        stream: &Stream,
        address: u64,
        shape: [usize; R],
        strides: [usize; R],
        owner: &'m mut O,
    ) -> Self {
        let _ = owner;
        let layout = Layout { offset: 0, shape, strides };
        Self::new(Arc::new(Allocation::foreign::<T, R>(stream, address, &layout)), layout)
    }
}
