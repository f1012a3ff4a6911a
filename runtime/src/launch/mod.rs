//! Launching: checks, encodes and runs a kernel that is data.
//!
//! | room | holds |
//! | --- | --- |
//! | [`argument`] | what the generated code passes |
//! | [`check`] | every check, over plain values |
//! | [`fill`] | what outputs begin as that take in terms where memory says |
//! | [`generic`] | the trait of all kernels |
//! | [`graph`] | several prepared launches as one |
//! | [`machine_code`] | what the driver's assembler made of a kernel |
//! | [`workspace`] | memory of launches themselves |

mod argument;
mod check;
mod fill;
mod generic;
mod graph;
mod machine_code;
#[cfg(test)]
mod tests;
mod workspace;

use std::marker::PhantomData;
use std::sync::Arc;

pub use argument::Arg;
pub(crate) use argument::{Given, GivenTensor};
#[cfg(feature = "emulator")]
pub(crate) use check::byte_range;
pub(crate) use check::{Passed, check};
pub(crate) use fill::Fill;
pub use generic::Kernel;
pub use graph::Graph;
pub use machine_code::MachineCode;
use tilewright_kernel::info::{Parameter, ParameterKind};
use tilewright_kernel::{KernelInfo, List, Text};
pub(crate) use workspace::{Pool, Workspace};

use crate::device::{DeviceInner, Stream};
use crate::error::{Reason, Refusal, Result};
use crate::memory::Allocation;
#[cfg(feature = "emulator")]
use crate::reference::Promise;

/// A launch that was checked and encoded once, and can be run any number of times.
///
/// It keeps the memory of its owned tensors alive and does not borrow them: they may be read, written and passed to
/// other launches between two runs, and everything happens in the order of the calls. `'m` bounds the foreign memory
/// among its arguments.
#[must_use = "a prepared launch does nothing until it is run"]
pub struct Prepared<'m> {
    pub(crate) work: Work,
    stream: Stream,
    memory: PhantomData<&'m ()>,
}

/// Everything that a run needs, without borrowing anything.
pub(crate) struct Work {
    pub(crate) kernel: Text,
    #[cfg_attr(not(feature = "emulator"), expect(dead_code, reason = "what the emulator says in messages"))]
    /// For messages: source statements by line of the PTX line table.
    pub(crate) statements: List<Text>,
    #[cfg_attr(not(feature = "emulator"), expect(dead_code, reason = "what the emulator says in messages"))]
    /// For messages: each tensor with its parameter's name.
    pub(crate) tensors: Vec<(Text, GivenTensor)>,
    /// Allocations with whether the launch writes them, each once, by address.
    pub(crate) accesses: Vec<Access>,
    #[cfg_attr(not(feature = "emulator"), expect(dead_code, reason = "held until the launch is dropped"))]
    /// The memory of the launch itself.
    pub(crate) workspace: Workspace,
    #[cfg_attr(not(feature = "emulator"), expect(dead_code, reason = "what the emulator says in messages"))]
    /// For messages: each workspace with its name, address, bytes, and bytes of an element.
    pub(crate) shared: Vec<(Text, u64, u64, u32)>,
    pub(crate) ptx: Text,
    pub(crate) entry: Text,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) cluster: u32,
    pub(crate) shared_bytes: u32,
    pub(crate) dependent: bool,
    /// What each `.param` receives.
    pub(crate) parameters: Vec<Passed>,
    /// Nothing to compute.
    pub(crate) empty: bool,
    /// What is filled before, in the order of the stream, and where there is nothing to compute as well.
    pub(crate) fills: Vec<Fill>,
    #[cfg(feature = "emulator")]
    /// On an emulator: what the data is promised to be, if the kernel has such a promise.
    pub(crate) promise: Option<Promise>,
    #[cfg(feature = "cuda")]
    pub(crate) call: Option<crate::cuda::Call>,
}

/// One allocation that a launch uses.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) allocation: Arc<Allocation>,
    pub(crate) write: bool,
}

impl Access {
    /// Sorts by address and merges repetitions. Address first, so that all launches lock in one order; the second key
    /// tells apart two views of the same foreign memory.
    pub(crate) fn sort(accesses: &mut Vec<Self>) {
        accesses.sort_by_key(|a| (a.allocation.address(), Arc::as_ptr(&a.allocation).addr()));
        accesses.dedup_by(|later, first| {
            let same = Arc::ptr_eq(&later.allocation, &first.allocation);
            first.write |= same && later.write;
            same
        });
    }

    /// Whether two uses must keep their order.
    #[cfg(any(feature = "cuda", test))]
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        let range = |a: &Self| {
            (a.allocation.address(), a.allocation.address().saturating_add(a.allocation.bytes().max(1) as u64))
        };
        let (a, b) = (range(self), range(other));
        (self.write || other.write) && a.0 < b.1 && b.0 < a.1
    }
}

/// Checks and launches.
///
/// # Errors
/// [`Error::Refused`](crate::Error::Refused) and nothing ran; or the failure of the device.
pub fn launch(kernel: &KernelInfo, arguments: &[Arg<'_>], on: &Stream) -> Result<()> {
    Work::new(kernel, arguments, on)?.run(on)
}

/// Checks and encodes.
///
/// # Errors
/// As [`launch`].
pub fn prepare<'m>(kernel: &KernelInfo, arguments: &[Arg<'m>], on: &Stream) -> Result<Prepared<'m>> {
    Ok(Prepared { work: Work::new(kernel, arguments, on)?, stream: on.clone(), memory: PhantomData })
}

/// Blocks that a launch starts; 0 if there is nothing to compute.
pub fn blocks(prepared: &Prepared<'_>) -> u32 {
    prepared.work.blocks
}

impl Prepared<'_> {
    /// Runs the launch on the stream that it was prepared for. On a GPU this returns when the launch is enqueued.
    ///
    /// # Errors
    /// The failure of the device, or what the emulator found.
    pub fn run(&self) -> Result<()> {
        self.work.run(&self.stream)
    }

    pub(crate) fn device(&self) -> &Arc<DeviceInner> {
        &self.stream.inner().device
    }
}

impl std::fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Work { kernel, blocks, threads, .. } = &self.work;
        write!(f, "Prepared({kernel}, {blocks} blocks of {threads} threads, {:?})", self.stream)
    }
}

impl Work {
    fn new(kernel: &KernelInfo, arguments: &[Arg<'_>], on: &Stream) -> Result<Self> {
        let given: Vec<Given> = arguments.iter().map(|a| a.given.clone()).collect();
        let refuse = |reason| Refusal { kernel: kernel.name.to_string(), reason };
        let device = &on.inner().device;
        check_place(kernel, &given, device).map_err(refuse)?;
        let plan = check(kernel, &given).map_err(refuse)?;
        let fills = fill::fills(kernel, &given);
        #[cfg(feature = "emulator")]
        let promise = match &**device {
            DeviceInner::Emulator(_) => Promise::of(kernel, &given, &plan.dims),
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(_) => None,
        };
        // Without elements there may be none.
        let entry = kernel.entries.get(plan.entry);
        let (entry, shared_bytes) = entry.map_or_else(Default::default, |e| (e.name.clone(), e.shared_bytes));
        #[cfg(feature = "cuda")]
        if let DeviceInner::Cuda(context) = &**device
            && !plan.empty
        {
            check_resources(kernel.launch.threads, shared_bytes, context.shared_limit).map_err(refuse)?;
        }
        let mut accesses = Vec::new();
        let mut tensors = Vec::new();
        for (parameter, given) in kernel.parameters.iter().zip(given) {
            if let (Parameter { name, kind: ParameterKind::Tensor(declared), .. }, Given::Tensor(mut tensor)) =
                (parameter, given)
            {
                let allocation = Arc::clone(&tensor.allocation);
                accesses.push(Access { allocation, write: declared.role.is_written() });
                tensor.writable = declared.role.is_written();
                tensors.push((name.clone(), tensor));
            }
        }
        let workspace = Workspace::new(plan.workspace, on.inner())?;
        accesses.extend(workspace.accesses());
        Access::sort(&mut accesses);
        let place = |w: usize| u16::try_from(w).ok().and_then(|w| workspace.at(w)).unwrap_or_default();
        let shared = kernel.workspace.iter().enumerate().map(|(n, w)| {
            let (address, bytes) = place(n);
            (w.name.clone(), address, bytes, w.element.bytes())
        });
        let shared = shared.collect();
        let resolve = |passed| match passed {
            Passed::Workspace(w) => Passed::Word(place(usize::from(w)).0, 8),
            other => other,
        };
        let parameters = plan.parameters.into_iter().map(resolve).collect();
        let blocks = resident(kernel, device, (&entry, shared_bytes), plan.blocks)?;
        #[cfg_attr(not(feature = "cuda"), expect(unused_mut, reason = "set below on a GPU"))]
        let mut work = Self {
            kernel: kernel.name.clone(),
            statements: kernel.statements.clone(),
            tensors,
            accesses,
            workspace,
            shared,
            ptx: kernel.ptx.text.clone(),
            entry,
            blocks,
            threads: kernel.launch.threads,
            cluster: kernel.launch.cluster.max(1),
            shared_bytes,
            dependent: kernel.launch.dependent,
            parameters,
            empty: plan.empty,
            fills,
            #[cfg(feature = "emulator")]
            promise,
            #[cfg(feature = "cuda")]
            call: None,
        };
        #[cfg(feature = "cuda")]
        if let DeviceInner::Cuda(context) = &**device
            && !work.empty
        {
            let function = context.function(&work.kernel, &work.ptx, &work.entry, (work.shared_bytes, work.cluster))?;
            work.call = Some(crate::cuda::Call {
                function,
                blocks: work.blocks,
                threads: work.threads,
                cluster: work.cluster,
                shared_bytes: work.shared_bytes,
                dependent: work.dependent,
                parameters: crate::cuda::parameters(&work.parameters)?,
            });
        }
        Ok(work)
    }

    /// Whether a run does nothing at all.
    pub(crate) fn is_nothing(&self) -> bool {
        self.empty && self.fills.is_empty()
    }

    /// Runs on a stream of the device that it was made for.
    pub(crate) fn run(&self, on: &Stream) -> Result<()> {
        if self.is_nothing() {
            return Ok(());
        }
        match &*on.inner().device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(_) => crate::cuda::run(self, on.inner()),
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(emulator) => emulator.run(self),
        }
    }
}

/// Blocks of a launch: of a persistent one as many whole clusters as the device runs at one time, and no more than
/// there are tiles for. A cluster of which the device runs none is refused.
#[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "what a block takes, a GPU asks"))]
fn resident(kernel: &KernelInfo, device: &DeviceInner, (entry, shared_bytes): (&str, u32), blocks: u32) -> Result<u32> {
    let (cluster, threads) = (kernel.launch.cluster.max(1), kernel.launch.threads);
    if blocks == 0 || !kernel.launch.persistent && cluster == 1 {
        return Ok(blocks);
    }
    let clusters = match device {
        #[cfg(feature = "cuda")]
        DeviceInner::Cuda(context) => {
            let shape = (shared_bytes, cluster);
            context.function(&kernel.name, &kernel.ptx.text, entry, shape)?.resident(threads, shape)?
        }
        #[cfg(feature = "emulator")]
        DeviceInner::Emulator(emulator) => emulator.resident(),
    };
    if clusters == 0 {
        let reason = Reason::NeverResident { cluster, threads, shared_bytes };
        return Err(Refusal { kernel: kernel.name.to_string(), reason }.into());
    }
    Ok(if kernel.launch.persistent { clusters.saturating_mul(cluster).min(blocks) } else { blocks })
}

/// The device can run the kernel, and every tensor lives there.
fn check_place(kernel: &KernelInfo, given: &[Given], device: &Arc<DeviceInner>) -> Result<(), Reason> {
    for (parameter, given) in kernel.parameters.iter().zip(given) {
        let Given::Tensor(tensor) = given else { continue };
        let place = tensor.allocation.device();
        let name = || parameter.name.to_string();
        if !place.is(device) {
            return Err(Reason::OtherDevice { parameter: name(), tensor: place.name(), stream: device.name() });
        }
        if !tensor.allocation.is_reachable() {
            return Err(Reason::ForeignMemory { parameter: name() });
        }
    }
    match &**device {
        #[cfg(feature = "cuda")]
        DeviceInner::Cuda(context) => check_target(&kernel.ptx, context.capability, context.driver_version()),
        #[cfg(feature = "emulator")]
        DeviceInner::Emulator(_) => Ok(()),
    }
}

/// Device and driver are new enough.
#[cfg(any(feature = "cuda", test))]
fn check_target(ptx: &tilewright_kernel::info::Ptx, capability: (u8, u8), driver: (u8, u8)) -> Result<(), Reason> {
    if !ptx.runs_on(capability) {
        return Err(Reason::Capability {
            target: ptx.target.to_string(),
            exact: ptx.exact_capability,
            needed: ptx.capability,
            found: capability,
        });
    }
    if driver < ptx.driver {
        return Err(Reason::Driver { ptx: ptx.version, needed: ptx.driver, found: driver });
    }
    Ok(())
}

/// A block fits on the device.
#[cfg(feature = "cuda")]
fn check_resources(threads: u32, shared_bytes: u32, shared_limit: u32) -> Result<(), Reason> {
    let limits = [
        ("threads in a block", threads, tilewright_kernel::info::BLOCK_LIMIT),
        ("bytes of dynamic shared memory in a block", shared_bytes, shared_limit),
    ];
    match limits.into_iter().find(|(_, needed, limit)| needed > limit) {
        Some((what, needed, limit)) => Err(Reason::Resources { what, needed: needed.into(), limit: limit.into() }),
        None => Ok(()),
    }
}
