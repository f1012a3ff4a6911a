//! Contexts, streams and events.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaStream, sys};
use sys::CUdevice_attribute as Attribute;

use super::call;
use super::kernel::Module;
use super::probe::{Driver, probe};
use crate::error::{Error, Result};

/// The primary context of one device. One value a device and process, never released.
pub(crate) struct Context {
    raw: sys::CUcontext,
    driver: Driver,
    pub(crate) ordinal: usize,
    pub(crate) name: String,
    /// Compute capability, such as (9, 0).
    pub(crate) capability: (u8, u8),
    /// Whether memory is allocated and freed in stream order.
    pub(super) pools: bool,
    /// Dynamic shared memory that a block can have, in bytes.
    pub(crate) shared_limit: u32,
    /// Multiprocessors of the device.
    pub(crate) multiprocessors: u32,
    pub(super) modules: Mutex<Vec<Arc<Module>>>,
    /// Stream for allocation, host copies and frees.
    pub(crate) service: Stream,
}

// SAFETY: a context may be used by any thread that makes it current, which `bind` does before every call.
unsafe impl Send for Context {}
// SAFETY: as above; everything mutable inside is behind a mutex.
unsafe impl Sync for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.name)
    }
}

impl Context {
    /// The context of a device; the same one in every call.
    pub(crate) fn get(ordinal: usize) -> Result<Arc<Self>> {
        static CONTEXTS: Mutex<Vec<Arc<Context>>> = Mutex::new(Vec::new());
        let driver = probe()?;
        let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = contexts.iter().find(|c| c.ordinal == ordinal) {
            return Ok(Arc::clone(context));
        }
        let context = Arc::new(Self::create(ordinal, driver)?);
        contexts.push(Arc::clone(&context));
        Ok(context)
    }

    /// Number of devices.
    pub(crate) fn count() -> Result<usize> {
        probe()?;
        let mut count = 0;
        // SAFETY: writes one integer; the driver is initialised.
        unsafe { call!(cuDeviceGetCount(&raw mut count)) }?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    fn create(ordinal: usize, driver: Driver) -> Result<Self> {
        let count = Self::count()?;
        let number = i32::try_from(ordinal).ok().filter(|_| ordinal < count);
        let Some(number) = number else { return Err(Error::NoDevice { ordinal, count }) };
        let mut device = 0;
        // SAFETY: writes one handle; the ordinal exists.
        unsafe { call!(cuDeviceGet(&raw mut device, number)) }?;
        let attribute = |attribute: Attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: writes one integer; the device handle is valid.
            unsafe { call!(cuDeviceGetAttribute(&raw mut value, attribute, device)) }?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let part = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
        let capability = (
            part(attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?),
            part(attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?),
        );
        let pools = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? > 0;
        let shared_limit = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let mut name = [0_u8; 256];
        // SAFETY: writes at most 256 bytes, NUL included.
        unsafe { call!(cuDeviceGetName(name.as_mut_ptr().cast(), 256, device)) }?;
        let name = std::ffi::CStr::from_bytes_until_nul(&name)
            .map_or_else(|_| String::new(), |n| n.to_string_lossy().into_owned());
        let mut raw = std::ptr::null_mut();
        // SAFETY: writes one handle. The context is never released, so the handle stays valid.
        unsafe { call!(cuDevicePrimaryCtxRetain(&raw mut raw, device)) }?;
        set_current(raw)?;
        let service = Stream::create(raw)?;
        let modules = Mutex::new(Vec::new());
        Ok(Self { raw, driver, ordinal, name, capability, pools, shared_limit, multiprocessors, modules, service })
    }

    /// Makes the context current on this thread; every driver call below needs it.
    pub(crate) fn bind(&self) -> Result<()> {
        set_current(self.raw)
    }

    pub(super) fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// CUDA version of the driver.
    pub(crate) fn driver_version(&self) -> (u8, u8) {
        self.driver.version
    }

    pub(super) fn has_extended_launch(&self) -> bool {
        self.driver.extended_launch
    }

    pub(super) fn has_cluster_nodes(&self) -> bool {
        self.has_extended_launch() && self.driver.cluster_nodes
    }

    pub(super) fn has_kernel_nodes(&self) -> bool {
        self.driver.kernel_nodes
    }

    /// Bytes of device memory: those that are free now, and all.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes; a context is current.
        unsafe { call!(cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all work on the device.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: a context is current.
        unsafe { call!(cuCtxSynchronize()) }
    }

    /// A new non-blocking stream.
    pub(crate) fn new_stream(&self) -> Result<Stream> {
        self.bind()?;
        Stream::create(self.raw)
    }
}

fn set_current(raw: sys::CUcontext) -> Result<()> {
    // SAFETY: the context is valid for the life of the process.
    unsafe { call!(cuCtxSetCurrent(raw)) }
}

/// A stream: of this crate, then non-blocking, because work on the legacy stream cannot be captured and serialises
/// others; or of `cudarc`.
#[derive(Debug)]
pub(crate) struct Stream {
    raw: sys::CUstream,
    context: sys::CUcontext,
    /// Distinguishes streams; unlike the handle it is never reused.
    pub(crate) id: u64,
    /// Whose stream it is, if not ours.
    lender: Option<Arc<CudaStream>>,
}

// SAFETY: stream handles may be used from any thread of the process.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver serialises calls on one stream.
unsafe impl Sync for Stream {}

impl Stream {
    /// Needs a current context.
    fn create(context: sys::CUcontext) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: writes one handle; a context is current.
        unsafe { call!(cuStreamCreate(&raw mut raw, flags)) }?;
        Ok(Self { raw, context, id: next_id(), lender: None })
    }

    /// A stream of `cudarc`, which belongs to `context` and lives as long as this.
    pub(super) fn lent(context: &Context, stream: Arc<CudaStream>) -> Self {
        Self { raw: stream.cu_stream(), context: context.raw, id: next_id(), lender: Some(stream) }
    }

    /// Whether the stream takes work that is then done: one of `cudarc` may be captured.
    ///
    /// # Errors
    /// It is captured, or a failure of the driver.
    pub(super) fn check(&self) -> Result<()> {
        if self.lender.is_some() { check_not_captured(self.context, self.raw) } else { Ok(()) }
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Waits on the host for all work of the stream.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.check()?;
        set_current(self.context)?;
        // SAFETY: the stream is alive and its context current.
        unsafe { call!(cuStreamSynchronize(self.raw)) }
    }

    /// Later work of the stream starts after what `event` recorded.
    pub(super) fn wait(&self, event: &Event) -> Result<()> {
        self.check()?;
        wait_raw(self.raw, event)
    }

    /// The same with its time.
    pub(crate) fn record_time(&self) -> Result<Arc<Event>> {
        self.check()?;
        record_with(self.context, self.raw, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// An event that completes with the work enqueued so far.
    pub(super) fn record(&self) -> Result<Arc<Event>> {
        self.check()?;
        record_raw(self.context, self.raw)
    }
}

/// A number that no stream has or had. 0 is none of them.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An error while a stream, which is alive, is captured: what is enqueued then becomes part of a graph and is not done.
pub(super) fn check_not_captured(context: sys::CUcontext, stream: sys::CUstream) -> Result<()> {
    set_current(context)?;
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: writes one number; the stream is alive and its context current.
    unsafe { call!(cuStreamIsCapturing(stream, &raw mut status)) }?;
    if status == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
        return Ok(());
    }
    let reason = "the stream is being captured; prepare launches before the capture, and add them to it with \
                  `Prepared::enqueue`"
        .to_owned();
    Err(Error::Layout { operation: "stream", reason })
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A failure leaves a stream unreleased in a broken context; there is nobody to tell.
        if self.lender.is_none() && set_current(self.context).is_ok() {
            // SAFETY: the handle is ours and not used again. The driver finishes pending work first.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// As [`Stream::wait`], for a stream of another library that is alive.
pub(super) fn wait_raw(stream: sys::CUstream, event: &Event) -> Result<()> {
    // SAFETY: both handles are alive; flag 0 is the default.
    unsafe { call!(cuStreamWaitEvent(stream, event.raw, 0)) }
}

/// As [`Stream::record`], for a stream of another library that is alive and belongs to `context`.
pub(super) fn record_raw(context: sys::CUcontext, stream: sys::CUstream) -> Result<Arc<Event>> {
    record_with(context, stream, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
}

fn record_with(context: sys::CUcontext, stream: sys::CUstream, flags: sys::CUevent_flags) -> Result<Arc<Event>> {
    let mut raw = std::ptr::null_mut();
    set_current(context)?;
    // SAFETY: writes one handle; a context is current.
    unsafe { call!(cuEventCreate(&raw mut raw, flags as u32)) }?;
    let event = Arc::new(Event { raw, context });
    // SAFETY: both handles are alive and belong to one context.
    unsafe { call!(cuEventRecord(raw, stream)) }?;
    Ok(event)
}

/// A point in a stream's work.
#[derive(Debug)]
pub(crate) struct Event {
    raw: sys::CUevent,
    context: sys::CUcontext,
}

// SAFETY: event handles may be used from any thread of the process.
unsafe impl Send for Event {}
// SAFETY: as above; an event is recorded once, before it is shared.
unsafe impl Sync for Event {}

impl Event {
    /// Milliseconds from an earlier event to this one, both of which have happened and were recorded with their times.
    pub(crate) fn milliseconds_since(&self, earlier: &Self) -> Result<f32> {
        set_current(self.context)?;
        let mut milliseconds = 0.0;
        // SAFETY: writes one number; both handles are alive.
        unsafe { call!(cuEventElapsedTime(&raw mut milliseconds, earlier.raw, self.raw)) }?;
        Ok(milliseconds)
    }

    /// Whether the recorded work is done.
    pub(crate) fn is_done(&self) -> Result<bool> {
        set_current(self.context)?;
        // SAFETY: the handle is alive and its context current.
        match unsafe { sys::cuEventQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => super::check("cuEventQuery", status).map(|()| true),
        }
    }

    /// Waits on the host for the recorded work.
    pub(crate) fn synchronize(&self) -> Result<()> {
        set_current(self.context)?;
        // SAFETY: the handle is alive and its context current.
        unsafe { call!(cuEventSynchronize(self.raw)) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if set_current(self.context).is_ok() {
            // SAFETY: the handle is ours; waits already enqueued keep what they need.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
