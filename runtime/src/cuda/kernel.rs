//! Modules, functions, launches.

use std::ffi::{CString, c_void};
use std::sync::{Arc, PoisonError};

use cudarc::driver::sys;
use tilewright_kernel::Text;
use tilewright_kernel::cluster::PORTABLE_CLUSTER;

use super::call;
use super::context::{Context, Stream};
use crate::error::{Error, Result};
use crate::launch::MachineCode;

/// PTX loaded into a context.
pub(crate) struct Module {
    ptx: Text,
    raw: sys::CUmodule,
    /// What the driver's assembler had to say.
    log: Arc<str>,
}

// SAFETY: module handles may be used from any thread that has the context current.
unsafe impl Send for Module {}
// SAFETY: as above; a module is immutable.
unsafe impl Sync for Module {}

impl Module {
    fn holds(&self, ptx: &Text) -> bool {
        match (&self.ptx, ptx) {
            // Statics are compared by place first: the same static is the same text.
            (Text::Borrowed(a), Text::Borrowed(b)) if std::ptr::eq(*a, *b) => true,
            (a, b) => a.len() == b.len() && a == b,
        }
    }
}

/// Bytes of the assembler's log that are kept.
const LOG_BYTES: usize = 16 * 1024;

impl Context {
    /// The module for this PTX: assembled by the driver once a context.
    fn module(&self, kernel: &str, ptx: &Text) -> Result<Arc<Module>> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.iter().find(|m| m.holds(ptx)) {
            return Ok(Arc::clone(module));
        }
        self.bind()?;
        let image = CString::new(ptx.as_bytes()).map_err(|e| Error::Load {
            kernel: kernel.to_owned(),
            code: "the PTX contains a NUL byte".to_owned(),
            log: e.to_string(),
        })?;
        let (mut info, mut errors) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        let mut options = [
            sys::CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            sys::CUjit_option::CU_JIT_GENERATE_LINE_INFO,
        ];
        // Sizes and flags are passed in the pointers' place.
        let mut values: [*mut c_void; 5] = [
            info.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG_BYTES),
            errors.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG_BYTES),
            std::ptr::without_provenance_mut(1),
        ];
        let mut raw = std::ptr::null_mut();
        // SAFETY: the image is NUL-terminated; options and values have the stated number of entries; the buffers have
        // the stated sizes and outlive the call.
        let status = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut raw,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if status != sys::CUresult::CUDA_SUCCESS {
            let code = format!("{status:?} ({})", super::describe(status));
            return Err(Error::Load { kernel: kernel.to_owned(), code, log: text(&errors) });
        }
        let module = Arc::new(Module { ptx: ptx.clone(), raw, log: text(&info).into() });
        modules.push(Arc::clone(&module));
        Ok(module)
    }

    /// An entry point of some PTX, ready for blocks with `shared_bytes` of dynamic shared memory, in clusters of
    /// `cluster` of them.
    pub(crate) fn function(
        self: &Arc<Self>,
        kernel: &str,
        ptx: &Text,
        entry: &str,
        (shared_bytes, cluster): (u32, u32),
    ) -> Result<Function> {
        let module = self.module(kernel, ptx)?;
        self.bind()?;
        let missing = |log: String| Error::Load {
            kernel: kernel.to_owned(),
            code: format!("entry point `{entry}` not found"),
            log,
        };
        let name = CString::new(entry).map_err(|e| missing(e.to_string()))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded for the life of the process, the name is NUL-terminated.
        let status = unsafe { sys::cuModuleGetFunction(&raw mut raw, module.raw, name.as_ptr()) };
        match status {
            sys::CUresult::CUDA_SUCCESS => {}
            sys::CUresult::CUDA_ERROR_NOT_FOUND => return Err(missing(module.log.to_string())),
            other => return Err(super::failure("cuModuleGetFunction", other)),
        }
        // Above 48 KiB a function must opt in.
        if shared_bytes > 48 * 1024 {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let value = i32::try_from(shared_bytes).unwrap_or(i32::MAX);
            // SAFETY: the function handle is valid.
            unsafe { call!(cuFuncSetAttribute(raw, attribute, value)) }?;
        }
        // So must one whose clusters not every device can have.
        if cluster > PORTABLE_CLUSTER {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
            // SAFETY: as above.
            unsafe { call!(cuFuncSetAttribute(raw, attribute, 1)) }?;
        }
        Ok(Function { raw, context: Arc::clone(self), log: Arc::clone(&module.log) })
    }
}

/// The text of a log buffer.
fn text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|&b| b == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim_end().to_owned()
}

/// An entry point. Its module is never unloaded.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    raw: sys::CUfunction,
    context: Arc<Context>,
    /// What the assembler said of its module.
    log: Arc<str>,
}

// SAFETY: function handles may be used from any thread that has the context current.
unsafe impl Send for Function {}
// SAFETY: as above; a function is immutable after its creation.
unsafe impl Sync for Function {}

impl Function {
    /// What the assembler made of it.
    pub(crate) fn machine_code(&self) -> Result<MachineCode> {
        self.context.bind()?;
        let attribute = |attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: writes one integer; the function handle is valid.
            unsafe { call!(cuFuncGetAttribute(&raw mut value, attribute, self.raw)) }?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        Ok(MachineCode {
            registers: attribute(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            log: self.log.to_string(),
        })
    }

    /// How many clusters of the function run on the device at one time; without clusters, how many blocks.
    pub(crate) fn resident(&self, threads: u32, (shared_bytes, cluster): (u32, u32)) -> Result<u32> {
        let context = &self.context;
        context.bind()?;
        let mut count = 0;
        if cluster <= 1 {
            let threads = i32::try_from(threads).unwrap_or(i32::MAX);
            // SAFETY: writes one integer; the function handle is valid.
            unsafe {
                call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &raw mut count,
                    self.raw,
                    threads,
                    shared_bytes as usize
                ))
            }?;
            return Ok(u32::try_from(count).unwrap_or(0).saturating_mul(context.multiprocessors));
        }
        if !context.has_extended_launch() {
            return Err(Error::NoCuda { reason: NO_CLUSTERS.to_owned() });
        }
        let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        let mut attribute = sys::CUlaunchAttribute { id, pad: [0; 4], value: cluster_dimension(cluster) };
        let config = sys::CUlaunchConfig {
            gridDimX: cluster,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared_bytes,
            hStream: std::ptr::null_mut(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        // SAFETY: as above; the configuration and its attribute outlive the call.
        unsafe { call!(cuOccupancyMaxActiveClusters(&raw mut count, self.raw, &raw const config)) }?;
        Ok(u32::try_from(count).unwrap_or(0))
    }
}

/// Why a driver cannot launch clusters.
const NO_CLUSTERS: &str = "clusters need a driver for CUDA 11.8 or newer";

/// The shape of a cluster as the driver takes it.
fn cluster_dimension(cluster: u32) -> sys::CUlaunchAttributeValue {
    // All bytes of the union are defined before the member is set.
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: cluster, y: 1, z: 1 };
    value
}

/// One launch, encoded.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Function,
    /// Blocks of the one-dimensional grid.
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    /// Blocks of a cluster, 1 without clusters.
    pub(crate) cluster: u32,
    pub(crate) shared_bytes: u32,
    /// Whether it may begin before what is before it in its stream has ended.
    pub(crate) dependent: bool,
    /// The parameters, encoded.
    pub(crate) parameters: Vec<Parameter>,
}

/// A parameter as the driver copies it.
#[derive(Clone, Debug)]
pub(crate) enum Parameter {
    /// A value, little-endian in its low bytes.
    Word(u64),
    /// A tensor map.
    Map(Box<sys::CUtensorMap>),
    /// Any bytes.
    Bytes(Vec<u8>),
    /// As many zeros as a parameter can have bytes.
    Zeros,
}

/// Bytes that the parameters of a kernel have at most, each and together (PTX ISA, kernel function parameters).
pub(super) const MOST_BYTES: usize = 32_764;

impl Call {
    /// Enqueues the launch on a stream of ours.
    ///
    /// # Safety
    /// The parameters fit the function's signature; the memory that they point to is alive and ordered against other
    /// uses.
    pub(crate) unsafe fn enqueue(&self, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_raw(stream.raw()) }
    }

    /// As [`enqueue`](Self::enqueue), on any stream of the context.
    ///
    /// # Safety
    /// As there, and the stream is alive.
    pub(crate) unsafe fn enqueue_raw(&self, stream: sys::CUstream) -> Result<()> {
        self.function.context.bind()?;
        let mut values = self.parameters.clone();
        let mut pointers = pointers(&mut values);
        // A driver without the extended call runs dependent launches one after the other.
        let dependent = self.dependent && self.function.context.has_extended_launch();
        if self.cluster <= 1 && !dependent {
            // SAFETY: the caller's promise; `pointers` holds one pointer a parameter, to at least as many bytes as it
            // has.
            return unsafe {
                call!(cuLaunchKernel(
                    self.function.raw,
                    self.blocks,
                    1,
                    1,
                    self.threads,
                    1,
                    1,
                    self.shared_bytes,
                    stream,
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                ))
            };
        }
        if !self.function.context.has_extended_launch() {
            return Err(Error::NoCuda { reason: NO_CLUSTERS.to_owned() });
        }
        let mut attributes = Vec::with_capacity(2);
        if self.cluster > 1 {
            let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes.push(sys::CUlaunchAttribute { id, pad: [0; 4], value: self.cluster_dimension() });
        }
        if dependent {
            let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
            value.programmaticStreamSerializationAllowed = 1;
            attributes.push(sys::CUlaunchAttribute { id, pad: [0; 4], value });
        }
        let config = sys::CUlaunchConfig {
            gridDimX: self.blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: self.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.shared_bytes,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: as above; the configuration and its attributes outlive the call.
        unsafe {
            call!(cuLaunchKernelEx(&raw const config, self.function.raw, pointers.as_mut_ptr(), std::ptr::null_mut()))
        }
    }

    /// The shape of a cluster as the driver takes it.
    pub(super) fn cluster_dimension(&self) -> sys::CUlaunchAttributeValue {
        cluster_dimension(self.cluster)
    }

    pub(super) fn raw_function(&self) -> sys::CUfunction {
        self.function.raw
    }
}

static ZEROS: [u8; MOST_BYTES] = [0; MOST_BYTES];

/// One pointer to each value, as the driver wants its parameters.
pub(super) fn pointers(values: &mut [Parameter]) -> Vec<*mut c_void> {
    let pointer = |value: &mut Parameter| match value {
        Parameter::Word(word) => std::ptr::from_mut(word).cast(),
        Parameter::Map(map) => std::ptr::from_mut(&mut **map).cast(),
        Parameter::Bytes(bytes) => bytes.as_mut_ptr().cast(),
        // The driver copies from there and writes nothing.
        Parameter::Zeros => std::ptr::from_ref(&ZEROS).cast_mut().cast(),
    };
    values.iter_mut().map(pointer).collect()
}
