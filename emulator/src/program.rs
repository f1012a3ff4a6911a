//! The public entry points: a decoded program and its launch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_kernel::cluster::check_cluster;
use tilewright_sorted::SortedMap;

use crate::decode::{Decoded, Kernel, decode, decode_following};
use crate::error::Error;
use crate::exec::env::Cx;
use crate::exec::host::Host;
use crate::launch::{Launch, Options};
use crate::memory::device::{Allocation, Memory};
use crate::memory::module::Module;
use crate::memory::region::{GRID_WORKSPACE, Region, Regions};
use crate::memory::undo::Undo;
use crate::report::Report;
use crate::schedule;
use crate::shadow::cross::Cross;

/// Most blocks of a grid in x, y and z (CUDA programming guide, compute capabilities).
const MOST_BLOCKS: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];
/// Bytes of the workspace of a cooperative launch.
const GRID_WORKSPACE_BYTES: u64 = 64;
/// Most threads of a block in x, y and z.
const MOST_THREADS: [u32; 3] = [1024, 1024, 64];
/// Most threads of a block.
const MOST_BLOCK: u64 = 1024;

/// A decoded PTX module: parse it once, launch it often, from any thread.
///
/// ```
/// use tilewright_emulator::{Launch, Memory, Options, Program};
/// let program = Program::parse(
///     ".version 7.0\n.target sm_80\n.address_size 64\n\
///      .visible .entry twice(.param .u64 p) {\n\
///        .reg .b64 %a; .reg .b32 %i, %v;\n\
///        ld.param.u64 %a, [p];\n\
///        mov.u32 %i, %tid.x;\n\
///        mad.wide.u32 %a, %i, 4, %a;\n\
///        ld.global.u32 %v, [%a];\n\
///        add.u32 %v, %v, %v;\n\
///        st.global.u32 [%a], %v;\n\
///        ret;\n\
///      }",
/// )?;
/// let memory = Memory::new(1 << 20);
/// let p = memory.alloc(8, "p")?;
/// memory.write(p, &[1, 0, 0, 0, 2, 0, 0, 0])?;
/// let launch = Launch { entry: "twice".into(), grid: [1, 1, 1], block: [2, 1, 1], args: vec![p.into()], ..Launch::default() };
/// let report = program.launch(&launch, &memory, &Options::default())?;
/// assert!(report.is_clean(), "{report}");
/// let mut out = [0; 8];
/// memory.read(p, &mut out)?;
/// assert_eq!(out, [2, 0, 0, 0, 4, 0, 0, 0]);
/// # Ok::<(), tilewright_emulator::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    decoded: Arc<Decoded>,
    /// Tells programs apart where a device keeps their variables.
    number: u64,
    /// For the kernels that are decoded once more: see [`Kernel::follows`].
    text: Arc<str>,
    following: Arc<Mutex<SortedMap<String, Arc<Kernel>>>>,
}

/// Programs made so far.
static PROGRAMS: AtomicU64 = AtomicU64::new(0);

impl Program {
    /// Parses and decodes PTX text.
    ///
    /// # Errors
    /// [`Error::Parse`] for text that is not well-formed PTX, [`Error::Unsupported`] for instructions the emulator does
    /// not execute. In a program of several kernels a mistake in a function, or such an instruction, stops only the
    /// kernels that reach it: the error comes when one of them is launched.
    pub fn parse(text: &str) -> Result<Program, Error> {
        let parse = |error: tilewright_ptx::LoadError| Error::Parse { message: error.to_string() };
        let (module, refused) = tilewright_ptx::load_functions(text).map_err(parse)?;
        let refused = refused.into_iter().map(|(id, error)| (id, parse(error))).collect();
        let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
        Ok(Program {
            decoded: Arc::new(decode(&module, &refused)?),
            number,
            text: text.into(),
            following: Arc::default(),
        })
    }

    /// Names of the kernels, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.decoded.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    /// Names of the kernels that cannot be run, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &Error)> {
        self.decoded.refused.iter().map(|(name, error)| (name.as_str(), error))
    }

    fn kernel(&self, entry: &str) -> Result<&Kernel, Error> {
        if let Some(kernel) = self.decoded.kernels.iter().find(|kernel| kernel.name == entry) {
            return Ok(kernel);
        }
        if let Some((_, error)) = self.decoded.refused.iter().find(|(name, _)| name == entry) {
            return Err(error.clone());
        }
        let known = self.entries().map(str::to_owned).collect();
        Err(Error::NoEntry { entry: entry.to_owned(), known })
    }

    /// Bytes of the parameters of a kernel, with their names, in order.
    ///
    /// # Errors
    /// [`Error::NoEntry`] when there is no such kernel, or the reason why it cannot be run.
    pub fn parameters(&self, entry: &str) -> Result<Vec<(String, u64)>, Error> {
        let kernel = self.kernel(entry)?;
        Ok(kernel.param_variables.iter().map(|param| (param.name.clone(), param.bytes)).collect())
    }

    /// Bytes of shared memory of fixed size that a block of a kernel has.
    ///
    /// # Errors
    /// As [`Program::parameters`].
    pub fn static_shared(&self, entry: &str) -> Result<u32, Error> {
        Ok(self.kernel(entry)?.static_shared)
    }

    /// The block shape that a kernel requires (`.reqntid`), if it requires one.
    ///
    /// # Errors
    /// As [`Program::parameters`].
    pub fn required_block(&self, entry: &str) -> Result<Option<[u32; 3]>, Error> {
        Ok(self.kernel(entry)?.required_block)
    }

    /// Copies bytes to the start of a variable in global or constant memory, as `cudaMemcpyToSymbol` does. Variables
    /// belong to the device: they keep their values from launch to launch.
    ///
    /// # Errors
    /// [`Error::NoSymbol`] when the program has no such variable, [`Error::BadAddress`] when it is shorter.
    pub fn write_symbol(&self, memory: &Memory, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.symbol(memory, name, bytes.len() as u64, |place, module| match place {
            Place::Global(at) => module.globals[at].fill_with(0, bytes.len() as u64, |at| bytes[at]),
            Place::Constant(at) => module.constants[at..][..bytes.len()].copy_from_slice(bytes),
        })
    }

    /// Copies bytes from the start of a variable in global or constant memory.
    ///
    /// # Errors
    /// As [`Program::write_symbol`].
    pub fn read_symbol(&self, memory: &Memory, name: &str, to: &mut [u8]) -> Result<(), Error> {
        self.symbol(memory, name, to.len() as u64, |place, module| match place {
            Place::Global(at) => module.globals[at].copy_to(0, to),
            Place::Constant(at) => to.copy_from_slice(&module.constants[at..][..to.len()]),
        })
    }

    fn symbol<T>(
        &self,
        memory: &Memory,
        name: &str,
        bytes: u64,
        use_it: impl FnOnce(Place, &mut Module) -> T,
    ) -> Result<T, Error> {
        let decoded = &self.decoded;
        let global = decoded.globals.iter().position(|global| global.name == name);
        let constant = decoded.constant_variables.iter().find(|variable| variable.name == name);
        let (place, address, size) = match (global, constant) {
            (Some(at), _) => (Place::Global(at), decoded.globals[at].address, decoded.globals[at].bytes),
            (None, Some(variable)) => (Place::Constant(variable.offset as usize), variable.offset, variable.bytes),
            (None, None) => {
                let globals = decoded.globals.iter().map(|global| global.name.clone());
                let constants = decoded.constant_variables.iter().map(|variable| variable.name.clone());
                return Err(Error::NoSymbol { name: name.to_owned(), known: globals.chain(constants).collect() });
            }
        };
        if bytes > size {
            return Err(Error::BadAddress { address, bytes });
        }
        memory.with_module(self.number, &decoded.globals, &decoded.constants, |module| Ok(use_it(place, module)))
    }

    /// Runs a kernel to its end, or until something stops it: see [`Report::trap`]. The same seed gives the same
    /// memory, findings and counters, for any number of host threads. Memory that the host or another launch changes at
    /// the same time is the caller's race.
    ///
    /// # Errors
    /// What cannot be started: unknown kernel, bad shape, wrong arguments, extents outside allocations.
    pub fn launch(&self, launch: &Launch, memory: &Memory, options: &Options) -> Result<Report, Error> {
        let kernel = self.kernel(&launch.entry)?;
        if let Some(report) = self.try_launch(kernel, launch, memory, options)? {
            return Ok(report);
        }
        let kernel = self.following(&launch.entry)?;
        let report = self.try_launch(&kernel, launch, memory, options)?;
        Ok(report.unwrap_or_default())
    }

    /// A kernel that follows what it loads.
    fn following(&self, entry: &str) -> Result<Arc<Kernel>, Error> {
        let mut following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = following.get(entry) {
            return Ok(kernel.clone());
        }
        let parse = |error: tilewright_ptx::LoadError| Error::Parse { message: error.to_string() };
        let (module, _) = tilewright_ptx::load_functions(&self.text).map_err(parse)?;
        let kernel = Arc::new(decode_following(&module, entry)?);
        following.insert(entry.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// A launch; none if it met a value that has to be followed, after which nothing has changed.
    fn try_launch(
        &self,
        kernel: &Kernel,
        launch: &Launch,
        memory: &Memory,
        options: &Options,
    ) -> Result<Option<Report>, Error> {
        check_shape(kernel, launch)?;
        let cluster = cluster(kernel, launch)?;
        let shared_bytes = shared_bytes(kernel, launch)?;
        let params = params(kernel, launch)?;
        let mut allocations = memory.allocations();
        let own = allocations.len();
        let decoded = &self.decoded;
        // The program's variables are above all allocations.
        let constants = memory.with_module(self.number, &decoded.globals, &decoded.constants, |module| {
            allocations.extend(module.globals.iter().cloned());
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
            Ok(module.constants.chunks(4).map(word).collect())
        })?;
        if kernel.grid_workspace {
            let bytes = GRID_WORKSPACE_BYTES;
            let refusal = Error::OutOfMemory { bytes, used: memory.used(), capacity: memory.used() };
            let workspace = Allocation::new(GRID_WORKSPACE, bytes, "grid workspace").ok_or(refusal)?;
            workspace.fill_with(0, bytes, |_| 0);
            allocations.push(Arc::new(workspace));
        }
        allocations.iter().for_each(|allocation| allocation.settle());
        let mut list = regions(launch, &allocations, own)?;
        let heap = if kernel.heap { Some(memory.heap()?) } else { memory.heap_in_use() };
        if let Some(heap) = &heap {
            list.push(heap.region(allocations.len()));
            allocations.push(heap.allocation.clone());
        }
        let regions = if launch.extents.is_empty() { Regions::of_allocations(list) } else { Regions::new(list) };
        let blocks: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
        let ctas: u32 = cluster.iter().product();
        let races = options.sanitizers.races && blocks > u64::from(ctas);
        let orders = kernel.communicates && (kernel.fences || kernel.confined);
        let cross = || (races && !orders).then(Cross::default);
        let grid_order = || (races && orders).then(Mutex::default);
        let mut cx = Cx {
            kernel,
            memory,
            options,
            host: if options.baseline { Host::baseline() } else { Host::detect() },
            params,
            constants,
            regions,
            heap,
            allocations,
            grid: launch.grid,
            block: launch.block,
            shared_bytes,
            dynamic_shared: launch.dynamic_shared,
            cluster,
            ctas: ctas as usize,
            explicit_cluster: launch.cluster.is_some() || kernel.required_cluster.is_some(),
            dependent: launch.dependent,
            undo: None,
            // What the device's heap does cannot be taken back.
            may_follow: shared_bytes > 0
                && options.sanitizers.initialisation
                && options.trace.is_none()
                && !kernel.follows
                && !kernel.heap,
            follow: AtomicBool::new(false),
            cross: cross(),
            grid_order: grid_order(),
            stacks: AtomicU64::new(0),
            budget: AtomicU64::new(options.budget),
            stop: AtomicBool::new(false),
        };
        let report = schedule::run(
            &mut cx,
            |cx| cx.undo = Some(Undo::new(cx.allocations.clone())),
            |cx| {
                cx.undo = None;
                cx.follow = AtomicBool::new(false);
                cx.cross = cross();
                cx.grid_order = grid_order();
                cx.stacks = AtomicU64::new(0);
                cx.budget = AtomicU64::new(options.budget);
                cx.stop = AtomicBool::new(false);
            },
        )?;
        cx.allocations.iter().for_each(|allocation| allocation.settle());
        Ok(report)
    }
}

/// Where a variable is.
enum Place {
    /// Number among those in global memory.
    Global(usize),
    /// First byte of constant memory.
    Constant(usize),
}

fn check_shape(kernel: &Kernel, launch: &Launch) -> Result<(), Error> {
    let bad = |message: String| Err(Error::BadShape { message });
    let axes = ["x", "y", "z"];
    for axis in 0..3 {
        let (blocks, threads) = (launch.grid[axis], launch.block[axis]);
        if blocks == 0 || blocks > MOST_BLOCKS[axis] {
            return bad(format!(
                "the grid has {blocks} blocks in {}; it must have 1 to {}",
                axes[axis], MOST_BLOCKS[axis]
            ));
        }
        if threads == 0 || threads > MOST_THREADS[axis] {
            return bad(format!(
                "the block has {threads} threads in {}; it must have 1 to {}",
                axes[axis], MOST_THREADS[axis]
            ));
        }
    }
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    let most = kernel.most_threads.unwrap_or(MOST_BLOCK).min(MOST_BLOCK);
    if threads > most {
        return bad(format!("the block has {threads} threads; kernel `{}` allows {most}", kernel.name));
    }
    match kernel.required_block {
        Some(required) if required != launch.block => {
            bad(format!("the block is {:?}; kernel `{}` requires {required:?}", launch.block, kernel.name))
        }
        _ => Ok(()),
    }
}

/// The shape of a cluster.
fn cluster(kernel: &Kernel, launch: &Launch) -> Result<[u32; 3], Error> {
    let bad = |message: String| Err(Error::BadShape { message });
    let name = &kernel.name;
    let shape = match (launch.cluster, kernel.required_cluster) {
        (Some(given), Some(required)) if given != required => {
            return bad(format!("the cluster is {given:?}; kernel `{name}` requires {required:?}"));
        }
        (Some(shape), _) | (None, Some(shape)) => shape,
        (None, None) if kernel.explicit_cluster => {
            return bad(format!("kernel `{name}` requires a launch that names a cluster (`.explicitcluster`)"));
        }
        (None, None) => return Ok([1, 1, 1]),
    };
    if let Err(fault) = check_cluster(launch.grid, shape) {
        return bad(fault.to_string());
    }
    let blocks: u32 = shape.iter().product();
    match kernel.most_cluster {
        Some(most) if blocks > most => {
            bad(format!("the cluster has {blocks} blocks; kernel `{name}` allows {most} (`.maxclusterrank`)"))
        }
        _ => Ok(shape),
    }
}

/// Bytes of shared memory of a CTA, with the room between variables.
fn shared_bytes(kernel: &Kernel, launch: &Launch) -> Result<u32, Error> {
    let bytes = u64::from(kernel.static_shared) + u64::from(launch.dynamic_shared);
    if bytes > crate::decode::MOST_SHARED {
        return Err(Error::SharedMemory { bytes, limit: crate::decode::MOST_SHARED });
    }
    Ok(bytes as u32 + kernel.shared_spread)
}

/// The parameter space as words.
fn params(kernel: &Kernel, launch: &Launch) -> Result<Vec<u32>, Error> {
    if kernel.param_variables.len() != launch.args.len() {
        return Err(Error::ArgumentCount { expected: kernel.param_variables.len(), given: launch.args.len() });
    }
    let mut words = vec![0u32; (kernel.param_bytes as usize).div_ceil(4)];
    for (param, arg) in kernel.param_variables.iter().zip(&launch.args) {
        if param.bytes != arg.0.len() as u64 {
            let (expected, given) = (param.bytes, arg.0.len() as u64);
            return Err(Error::ArgumentSize { parameter: param.name.clone(), expected, given });
        }
        for (index, byte) in arg.0.iter().enumerate() {
            let at = param.offset as usize + index;
            words[at / 4] |= u32::from(*byte) << (8 * (at % 4));
        }
    }
    Ok(words)
}

/// The regions that the kernel may access: those listed, or all of the device's first `own` allocations, and the
/// program's variables after them.
fn regions(launch: &Launch, allocations: &[Arc<Allocation>], own: usize) -> Result<Vec<Region>, Error> {
    let whole = |(index, allocation): (usize, &Arc<Allocation>)| Region {
        base: allocation.base,
        end: allocation.base + allocation.bytes,
        label: allocation.label.clone(),
        element: 0,
        read_only: false,
        constant: false,
        heap: false,
        allocation: allocation.clone(),
        index,
    };
    if launch.extents.is_empty() {
        return Ok(allocations.iter().enumerate().map(whole).collect());
    }
    let mut list: Vec<Region> = allocations.iter().enumerate().skip(own).map(whole).collect();
    for extent in &launch.extents {
        let bad = || Error::BadAddress { address: extent.base, bytes: extent.bytes };
        let end = extent.base.checked_add(extent.bytes).ok_or_else(bad)?;
        let at = allocations[..own].partition_point(|a| a.base <= extent.base).checked_sub(1).ok_or_else(bad)?;
        let allocation = &allocations[at];
        if end > allocation.base + allocation.bytes {
            return Err(bad());
        }
        list.push(Region {
            base: extent.base,
            end,
            label: extent.label.clone(),
            element: extent.element,
            read_only: extent.read_only,
            constant: false,
            heap: false,
            allocation: allocation.clone(),
            index: at,
        });
    }
    Ok(list)
}
