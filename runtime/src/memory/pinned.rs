//! Page-locked host memory, and copies between it and tensors that go on while the host does something else.
//!
//! A copy takes its host memory by value and gives it back when it is done. So nothing can read, write or free what it
//! uses, and nothing depends on a destructor: a transfer that is forgotten keeps its memory for ever.
#![allow(unsafe_code, reason = "page-locked memory as a slice, and the copies that use it")]

use std::fmt;
use std::ops::{Deref, DerefMut};
#[cfg(feature = "cuda")]
use std::sync::Arc;

#[cfg(feature = "emulator")]
use super::zeroed;
#[cfg(feature = "cuda")]
use crate::cuda::{self, HostBlock};
use crate::device::{Device, DeviceInner, Stream};
use crate::element::Element;
use crate::error::{Error, Result};
#[cfg(feature = "cuda")]
use crate::launch::Access;
use crate::tensor::{DynTensor, Parts, Sealed, Tensor, TensorMut, TensorRef, check_length, elements, run};

/// Elements in page-locked memory of the host: what a GPU copies from and to at full speed, and while the host goes on.
/// It is a slice, to read and to write.
///
/// Page-locked memory is scarce: the system has less of it than of other memory, and takes long to make it. Allocate it
/// once, and let copies hand it on. On the emulator it is memory as any other.
///
/// ```
/// # use tilewright::{Device, EmulatorOptions, Pinned, Tensor};
/// # fn main() -> tilewright::Result<()> {
/// let device = Device::emulator(EmulatorOptions::default());
/// let stream = device.new_stream()?;
/// let mut host = Pinned::<f32>::zeros(&device, 4)?;
/// host.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// let mut x = Tensor::<f32, 1>::uninit(&device, [4])?;
///
/// let upload = x.copy_from_pinned(host, &stream)?; // takes the memory
/// // … the host does something else, and launches on any stream that use `x` come after the copy …
/// let host = upload.wait()?; // gives it back
///
/// let host = x.copy_to_pinned(host, &stream)?.wait()?;
/// assert_eq!(*host, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(()) }
/// ```
///
/// While a copy is under way nothing reaches its memory:
///
/// ```compile_fail,E0382
/// # use tilewright::{Device, EmulatorOptions, Pinned, Tensor};
/// # let device = Device::emulator(EmulatorOptions::default());
/// let host = Pinned::<f32>::zeros(&device, 4).unwrap();
/// let mut x = Tensor::<f32, 1>::uninit(&device, [4]).unwrap();
/// let upload = x.copy_from_pinned(host, &device).unwrap();
/// host[0];
/// ```
pub struct Pinned<T: Element> {
    place: Place<T>,
}

enum Place<T> {
    #[cfg(feature = "emulator")]
    Host(Box<[T]>),
    /// The memory with the number of its elements.
    #[cfg(feature = "cuda")]
    Locked(HostBlock, usize, std::marker::PhantomData<T>),
}

impl<T: Element> Pinned<T> {
    /// Elements all of whose bits are 0.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; too little page-locked memory; a driver failure.
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        let bytes = elements(&[len], size_of::<T>())? * size_of::<T>();
        let place = match &**device.inner() {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(context) => {
                Place::Locked(HostBlock::zeros(context, bytes)?, len, std::marker::PhantomData)
            }
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(_) => Place::Host(T::decode(&zeroed(bytes)?).into_boxed_slice()),
        };
        Ok(Self { place })
    }

    /// A copy of these elements.
    ///
    /// # Errors
    /// As [`Self::zeros`].
    pub fn from_slice(device: &Device, elements: &[T]) -> Result<Self> {
        let mut pinned = Self::zeros(device, elements.len())?;
        pinned.copy_from_slice(elements);
        Ok(pinned)
    }

    /// Whose memory it is, for messages.
    fn kind(&self) -> &'static str {
        match &self.place {
            #[cfg(feature = "emulator")]
            Place::Host(_) => "the emulator",
            #[cfg(feature = "cuda")]
            Place::Locked(..) => "a GPU",
        }
    }
}

impl<T: Element> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.place {
            #[cfg(feature = "emulator")]
            Place::Host(elements) => elements,
            // SAFETY: the block has room for as many elements and is aligned for them. Its bytes are elements: zeros at
            // first, then what `deref_mut` allowed to be written, or what a copy wrote and `settle` went over. (Hosts
            // with a GPU are little-endian, as devices are.) A copy under way owns its block, so that none writes here.
            #[cfg(feature = "cuda")]
            Place::Locked(block, len, _) => unsafe {
                std::slice::from_raw_parts(block.pointer().as_ptr().cast_const().cast(), *len)
            },
        }
    }
}

impl<T: Element> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.place {
            #[cfg(feature = "emulator")]
            Place::Host(elements) => elements,
            // SAFETY: as in `deref`; and the block is borrowed alone.
            #[cfg(feature = "cuda")]
            Place::Locked(block, len, _) => unsafe {
                std::slice::from_raw_parts_mut(block.pointer().as_ptr().cast(), *len)
            },
        }
    }
}

impl<T: Element> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned<{}>({} elements, {})", T::TYPE, self.len(), self.kind())
    }
}

/// A copy between page-locked memory and a tensor that may be under way. It has the memory, and gives it back when it
/// is done: [`wait`](Self::wait).
///
/// A transfer that is dropped is waited for, and its memory freed. One that is forgotten keeps its memory; the copy
/// goes on, and launches come after it all the same.
#[must_use = "a transfer that is dropped is waited for; `wait` gives the memory back"]
pub struct Transfer<T: Element> {
    /// None once it was given back.
    host: Option<Pinned<T>>,
    /// What happens when the copy is done; none: it is.
    #[cfg(feature = "cuda")]
    done: Option<Arc<cuda::Event>>,
}

impl<T: Element> Transfer<T> {
    /// Waits until the copy is done, and gives the memory back: with the tensor's elements, if the copy went to the
    /// host.
    ///
    /// # Errors
    /// A failure of the driver, among them the error of an earlier launch. The memory is then never freed: the device
    /// may still use it.
    pub fn wait(mut self) -> Result<Pinned<T>> {
        self.finish()?;
        self.host.take().ok_or_else(|| Error::Layout { operation: "wait", reason: "the memory is gone".to_owned() })
    }

    /// Whether the copy is done, so that [`wait`](Self::wait) would not wait.
    ///
    /// # Errors
    /// A failure of the driver, among them the error of an earlier launch.
    pub fn is_done(&self) -> Result<bool> {
        #[cfg(feature = "cuda")]
        if let Some(done) = &self.done {
            return done.is_done();
        }
        Ok(true)
    }

    /// Waits, after which the memory is nobody's but ours. After a failure it is given up.
    fn finish(&mut self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let (Some(done), Some(Pinned { place: Place::Locked(block, ..) })) = (self.done.take(), &mut self.host) {
            if let Err(error) = done.synchronize() {
                block.lose();
                self.host = None;
                return Err(error);
            }
            T::settle(block.bytes_mut());
        }
        Ok(())
    }
}

impl<T: Element> Drop for Transfer<T> {
    fn drop(&mut self) {
        // After a failure the memory is given up; there is nobody to tell.
        let _ = self.finish();
    }
}

impl<T: Element> fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.host.as_ref().map_or(0, |host| host.len());
        write!(f, "Transfer<{}>({len} elements)", T::TYPE)
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the host to the device.
    ToDevice,
    /// From the device to the host.
    ToHost,
}

/// Enqueues a copy between a tensor without gaps and host memory with as many elements.
fn transfer<T: Element>(tensor: &Parts<'_>, mut host: Pinned<T>, way: Way, on: &Stream) -> Result<Transfer<T>> {
    let Parts { allocation, offset, shape, strides, .. } = *tensor;
    let operation = if way == Way::ToDevice { "copy_from_pinned" } else { "copy_to_pinned" };
    let refuse = |reason: String| Err(Error::Layout { operation, reason });
    check_length(shape, host.len(), size_of::<T>())?;
    if run(shape, strides).0 > 0 && !host.is_empty() {
        return refuse("the elements of the view lie apart; copy a part without gaps, or use `to_tensor`".to_owned());
    }
    let (place, stream) = (allocation.device(), &on.inner().device);
    if !place.is(stream) {
        return refuse(format!("the tensor is on {}, the stream on another device, {}", place.name(), stream.name()));
    }
    let offset = offset.saturating_mul(size_of::<T>());
    #[cfg(all(feature = "cuda", feature = "emulator"))]
    let kind = host.kind();
    match (&mut host.place, &**stream) {
        #[cfg(feature = "emulator")]
        (Place::Host(elements), DeviceInner::Emulator(_)) => {
            match way {
                Way::ToDevice => allocation.write(offset, &T::encode(elements))?,
                Way::ToHost => {
                    elements.copy_from_slice(&T::decode(&allocation.read(offset, size_of_val(&**elements))?));
                }
            }
            Ok(Transfer {
                host: Some(host),
                #[cfg(feature = "cuda")]
                done: None,
            })
        }
        #[cfg(feature = "cuda")]
        (Place::Locked(block, len, _), DeviceInner::Cuda(_)) => {
            allocation.check(offset, *len * size_of::<T>())?;
            let access = Access { allocation: Arc::clone(allocation), write: way == Way::ToDevice };
            // SAFETY: the transfer owns the block from now on and neither reads, writes nor frees it before its event
            // has happened; if it is forgotten, it never does. The range was checked.
            let done = unsafe { block.copy(way, &access, offset, on.inner()) }?;
            Ok(Transfer { host: Some(host), done: Some(done) })
        }
        #[cfg(all(feature = "cuda", feature = "emulator"))]
        _ => refuse(format!("the host memory was allocated for {kind}, the tensor is on {}", place.name())),
    }
}

macro_rules! to_device {
    () => {
        /// Replaces all elements by those of page-locked memory, in row-major order, while the host goes on. The copy
        /// is enqueued on a stream: it comes after all that uses the tensor so far, and what uses the tensor later, on
        /// any stream, comes after the copy.
        ///
        /// # Errors
        /// [`Error::Length`]; [`Error::Layout`] if the elements lie apart, or for a stream or host memory of another
        /// device; a driver failure. The host memory is then freed.
        pub fn copy_from_pinned(&mut self, host: Pinned<T>, on: impl AsRef<Stream>) -> Result<Transfer<T>> {
            transfer(&self.parts(), host, Way::ToDevice, on.as_ref())
        }
    };
}

macro_rules! to_host {
    () => {
        /// Copies all elements to page-locked memory, in row-major order, while the host goes on. The copy is enqueued
        /// on a stream: it comes after all that writes the tensor so far, and what writes the tensor later, on any
        /// stream, comes after the copy.
        ///
        /// # Errors
        /// As [`Tensor::copy_from_pinned`].
        pub fn copy_to_pinned(&self, host: Pinned<T>, on: impl AsRef<Stream>) -> Result<Transfer<T>> {
            transfer(&self.parts(), host, Way::ToHost, on.as_ref())
        }
    };
}

impl<T: Element, const R: usize> Tensor<T, R> {
    to_device!();
    to_host!();
}

impl<T: Element, const R: usize> TensorRef<'_, T, R> {
    to_host!();
}

impl<T: Element> DynTensor<T> {
    to_device!();
    to_host!();
}

impl<T: Element, const R: usize> TensorMut<'_, T, R> {
    to_device!();
    to_host!();
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::EmulatorOptions;

    #[test]
    fn elements_go_both_ways() {
        fn check<T: Element + PartialEq>(device: &Device, elements: [T; 6]) {
            let stream = device.new_stream().unwrap();
            let mut x = Tensor::<T, 2>::zeros(device, [2, 3]).unwrap();
            let host = Pinned::from_slice(device, &elements).unwrap();
            let sent = x.copy_from_pinned(host, &stream).unwrap();
            assert!(sent.is_done().unwrap());
            assert_eq!(*sent.wait().unwrap(), elements);
            assert_eq!(x.to_vec().unwrap(), elements);
            let row = Pinned::zeros(device, 3).unwrap();
            let row = x.slice(0, 1..).unwrap().copy_to_pinned(row, &stream).unwrap().wait().unwrap();
            assert_eq!(*row, elements[3..]);
            let (mut upper, _) = x.split_at_mut(0, 1).unwrap();
            let _ = upper.copy_from_pinned(row, device).unwrap().wait().unwrap();
            assert_eq!(x.to_vec().unwrap(), [&elements[3..], &elements[3..]].concat());
        }
        let device = Device::emulator(EmulatorOptions::default());
        check(&device, [1.5_f32, -0.0, f32::MAX, 4.0, 5.0, 6.0]);
        check(&device, [1_u64, u64::MAX, 3, 4, 5, 6]);
        check(&device, [true, false, true, true, true, false]);
        check(&device, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(half::bf16::from_f32));
    }

    #[test]
    fn pinned_memory_is_a_slice() {
        let device = Device::emulator(EmulatorOptions::default());
        let mut host = Pinned::<i16>::zeros(&device, 3).unwrap();
        host[1] = -7;
        assert_eq!((&*host, host.iter().max()), (&[0, -7, 0][..], Some(&0)));
        assert_eq!(format!("{host:?}"), "Pinned<i16>(3 elements, the emulator)");
        assert!(matches!(Pinned::<f64>::zeros(&device, usize::MAX), Err(Error::TooLarge { .. })));
        fn crosses_threads<T: Send + Sync>() {}
        crosses_threads::<(Pinned<f32>, Transfer<f32>)>();
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let device = Device::emulator(EmulatorOptions::default());
        let other = Device::emulator(EmulatorOptions::default());
        let mut x = Tensor::<f32, 2>::zeros(&device, [2, 3]).unwrap();
        let host = |n| Pinned::<f32>::zeros(&device, n).unwrap();
        let wrong = x.copy_from_pinned(host(5), &device).unwrap_err();
        assert_eq!(wrong, Error::Length { shape: vec![2, 3], expected: 6, found: 5 });
        let columns = x.view().permute([1, 0]).unwrap();
        let apart = columns.copy_to_pinned(host(6), &device).unwrap_err();
        assert!(matches!(apart, Error::Layout { operation: "copy_to_pinned", .. }), "{apart}");
        let elsewhere = x.copy_from_pinned(host(6), &other).unwrap_err();
        assert!(matches!(elsewhere, Error::Layout { operation: "copy_from_pinned", .. }), "{elsewhere}");
        let none = x.slice(1, 2..2).unwrap().permute([1, 0]).unwrap().copy_to_pinned(host(0), &device);
        assert!(none.unwrap().wait().unwrap().is_empty());
    }
}
