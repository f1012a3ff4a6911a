//! Devices and streams: a GPU through the CUDA driver, or the emulator on the host.

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "emulator")]
use std::sync::OnceLock;

#[cfg(feature = "cuda")]
use crate::cuda;
#[cfg(feature = "emulator")]
use crate::emulator::{Emulator, EmulatorOptions, EmulatorReport};
use crate::error::{Error, Result};
use crate::launch::Pool;

/// A place where tensors live and kernels run. Cloning gives another handle to the same device.
///
/// A device has a stream of its own, which is what `launch(&device)` uses.
#[derive(Clone)]
pub struct Device {
    stream: Stream,
}

/// What a GPU has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// Its name, such as `NVIDIA H100`.
    pub name: String,
    /// Its number, from 0: see [`Device::cuda`].
    pub ordinal: usize,
    /// Compute capability, such as (9, 0).
    pub capability: (u8, u8),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block can have.
    pub shared_bytes: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of device memory that nobody had at the moment of asking.
    pub free_bytes: u64,
}

/// A queue of launches on one device: they run in order. Launches on different streams may overlap, except where one
/// writes memory that the other uses.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<StreamInner>,
}

pub(crate) struct StreamInner {
    pub(crate) device: Arc<DeviceInner>,
    #[cfg(feature = "cuda")]
    cuda: Option<cuda::Stream>,
    /// Memory that launches on the stream have left.
    pub(crate) workspaces: Pool,
}

/// What a device is.
pub(crate) enum DeviceInner {
    #[cfg(feature = "cuda")]
    Cuda(Arc<cuda::Context>),
    #[cfg(feature = "emulator")]
    Emulator(Box<Emulator>),
}

impl Device {
    /// The best device of this machine: its first GPU, or the emulator where there is none. All calls give the same
    /// device.
    ///
    /// # Errors
    /// There is no GPU and this build has no emulator; or there is a GPU and it cannot be used.
    pub fn best() -> Result<Self> {
        #[cfg(feature = "cuda")]
        match Self::cuda(0) {
            // A driver without devices, or none at all, is a machine without a GPU. Other errors are a GPU with a
            // problem, and are not to be hidden by something a thousand times slower.
            Err(Error::NoCuda { .. } | Error::NoDevice { .. }) => {}
            other => return other,
        }
        #[cfg(feature = "emulator")]
        {
            static EMULATOR: OnceLock<Device> = OnceLock::new();
            Ok(EMULATOR.get_or_init(|| Self::emulator(EmulatorOptions::default())).clone())
        }
        #[cfg(not(feature = "emulator"))]
        Err(Error::NoCuda { reason: "no GPU was found, and this build lacks the feature `emulator`".to_owned() })
    }

    /// The GPU with this ordinal.
    ///
    /// # Errors
    /// [`Error::NoCuda`] without a usable driver, [`Error::NoDevice`] if there are not that many devices, or a failure
    /// of the driver.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: usize) -> Result<Self> {
        let context = cuda::Context::get(ordinal)?;
        Self::over(DeviceInner::Cuda(context))
    }

    /// Always an error: this build lacks the feature `cuda`.
    ///
    /// # Errors
    /// [`Error::NoCuda`].
    #[cfg(not(feature = "cuda"))]
    pub fn cuda(_ordinal: usize) -> Result<Self> {
        Err(Error::NoCuda { reason: "this build lacks the feature `cuda`".to_owned() })
    }

    /// Every GPU of this machine, in the order of their ordinals; none where there is no driver.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn all() -> Result<Vec<Self>> {
        #[cfg(feature = "cuda")]
        {
            let count = match cuda::Context::count() {
                Err(Error::NoCuda { .. }) => 0,
                count => count?,
            };
            (0..count).map(Self::cuda).collect()
        }
        #[cfg(not(feature = "cuda"))]
        Ok(Vec::new())
    }

    /// A new emulator: runs the kernels' PTX on the host and reports what a GPU would not. Tensors of one emulator
    /// cannot be used on another.
    #[cfg(feature = "emulator")]
    pub fn emulator(options: EmulatorOptions) -> Self {
        let device = DeviceInner::Emulator(Box::new(Emulator::new(options)));
        let inner = StreamInner {
            device: Arc::new(device),
            #[cfg(feature = "cuda")]
            cuda: None,
            workspaces: Pool::default(),
        };
        Self { stream: Stream { inner: Arc::new(inner) } }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn over(device: DeviceInner) -> Result<Self> {
        Ok(Self { stream: Stream::on(&Arc::new(device))? })
    }

    /// A new stream on this device.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn new_stream(&self) -> Result<Stream> {
        Stream::on(&self.stream.inner.device)
    }

    /// Waits until all work on the device is done, and reports an error of an earlier launch if there was one.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn synchronize(&self) -> Result<()> {
        match &*self.stream.inner.device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(context) => context.synchronize(),
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(_) => Ok(()),
        }
    }

    /// Whether this is the emulator.
    pub fn is_emulator(&self) -> bool {
        match &*self.stream.inner.device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(_) => false,
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(_) => true,
        }
    }

    /// Name of the device, such as `NVIDIA H100` or `emulator`.
    pub fn name(&self) -> String {
        self.stream.inner.device.name()
    }

    /// Compute capability, such as (9, 0); none for the emulator, which runs every target.
    pub fn capability(&self) -> Option<(u8, u8)> {
        match &*self.stream.inner.device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(context) => Some(context.capability),
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(_) => None,
        }
    }

    /// What the GPU has; none for the emulator.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn properties(&self) -> Result<Option<Properties>> {
        match &*self.stream.inner.device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(context) => {
                let (free_bytes, memory_bytes) = context.memory()?;
                Ok(Some(Properties {
                    name: context.name.clone(),
                    ordinal: context.ordinal,
                    capability: context.capability,
                    multiprocessors: context.multiprocessors,
                    shared_bytes: context.shared_limit,
                    memory_bytes,
                    free_bytes,
                }))
            }
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(_) => Ok(None),
        }
    }

    /// Counters and warnings of the last launch, if this is an emulator that has run one.
    #[cfg(feature = "emulator")]
    pub fn emulator_report(&self) -> Option<EmulatorReport> {
        match &*self.stream.inner.device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(_) => None,
            DeviceInner::Emulator(emulator) => emulator.report(),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<DeviceInner> {
        &self.stream.inner.device
    }
}

impl Stream {
    fn on(device: &Arc<DeviceInner>) -> Result<Self> {
        #[cfg(feature = "cuda")]
        let cuda = match &**device {
            DeviceInner::Cuda(context) => Some(context.new_stream()?),
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(_) => None,
        };
        let inner = StreamInner {
            device: Arc::clone(device),
            #[cfg(feature = "cuda")]
            cuda,
            workspaces: Pool::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A stream of the driver, of a device.
    #[cfg(feature = "cuda")]
    pub(crate) fn over(device: DeviceInner, stream: cuda::Stream) -> Self {
        let inner = StreamInner { device: Arc::new(device), cuda: Some(stream), workspaces: Pool::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Waits until all work of the stream is done.
    ///
    /// # Errors
    /// A failure of the driver, or the error of an earlier launch.
    pub fn synchronize(&self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.inner.cuda {
            return stream.synchronize();
        }
        Ok(())
    }

    pub(crate) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }
}

#[cfg(feature = "cuda")]
impl StreamInner {
    /// The driver's stream; none on the emulator.
    pub(crate) fn cuda(&self) -> Option<&cuda::Stream> {
        self.cuda.as_ref()
    }
}

impl DeviceInner {
    /// Whether two handles mean one device.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            #[cfg(feature = "cuda")]
            (Self::Cuda(a), Self::Cuda(b)) => Arc::ptr_eq(a, b),
            #[cfg(feature = "emulator")]
            (Self::Emulator(a), Self::Emulator(b)) => std::ptr::eq(&raw const **a, &raw const **b),
            #[cfg(all(feature = "cuda", feature = "emulator"))]
            _ => false,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda(context) => format!("{context:?}"),
            #[cfg(feature = "emulator")]
            Self::Emulator(_) => "emulator".to_owned(),
        }
    }
}

impl AsRef<Stream> for Device {
    fn as_ref(&self) -> &Stream {
        &self.stream
    }
}

impl AsRef<Stream> for Stream {
    fn as_ref(&self) -> &Stream {
        self
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream(on {})", self.inner.device.name())
    }
}

impl fmt::Debug for StreamInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on {}", self.device.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_gpu_gets_an_error_and_the_emulator() {
        match Device::cuda(0) {
            Ok(device) => {
                assert!(!device.is_emulator() && device.capability().is_some());
                let properties = device.properties().unwrap().expect("a GPU");
                assert!(properties.multiprocessors > 0 && properties.free_bytes <= properties.memory_bytes);
                assert!(!Device::all().unwrap().is_empty());
            }
            // A GPU with a problem.
            Err(Error::Cuda { .. }) => assert!(Device::best().is_err()),
            Err(Error::NoCuda { .. } | Error::NoDevice { .. }) => {
                let best = Device::best().unwrap();
                assert!(best.is_emulator());
                assert!(best.inner().is(Device::best().unwrap().inner()), "one emulator a process");
                assert!(best.properties().unwrap().is_none() && Device::all().unwrap().is_empty());
            }
            Err(other) => panic!("{other}"),
        }
        assert!(Device::cuda(usize::MAX).is_err());
    }

    #[test]
    fn emulators_are_devices_of_their_own() {
        let a = Device::emulator(EmulatorOptions::default());
        let b = Device::emulator(EmulatorOptions::default());
        assert!(!a.inner().is(b.inner()));
        assert!(a.inner().is(a.new_stream().unwrap().inner().device.as_ref()));
        assert!(a.synchronize().is_ok() && a.capability().is_none() && a.emulator_report().is_none());
    }
}
