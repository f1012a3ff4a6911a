//! The public entry points: a decoded program and its launch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::decode::{Decoded, Kernel, decode};
use crate::error::Error;
use crate::exec::env::Cx;
use crate::exec::host::Host;
use crate::launch::{Launch, Options};
use crate::memory::device::{Allocation, Memory};
use crate::memory::region::{Region, Regions};
use crate::memory::undo::Undo;
use crate::report::Report;
use crate::schedule;
use crate::shadow::cross::Cross;

/// Most blocks of a grid in x, y and z (CUDA programming guide, compute capabilities).
const MOST_BLOCKS: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];
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
}

impl Program {
    /// Parses and decodes PTX text.
    ///
    /// # Errors
    /// [`Error::Parse`] for text that is not well-formed PTX, [`Error::Unsupported`] for instructions the emulator does not execute.
    pub fn parse(text: &str) -> Result<Program, Error> {
        let module = tilewright_ptx::load(text).map_err(|error| Error::Parse { message: error.to_string() })?;
        Ok(Program { decoded: Arc::new(decode(&module)?) })
    }

    /// Names of the kernels, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.decoded.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    fn kernel(&self, entry: &str) -> Result<&Kernel, Error> {
        self.decoded.kernels.iter().find(|kernel| kernel.name == entry).ok_or_else(|| Error::NoEntry {
            entry: entry.to_owned(),
            known: self.entries().map(str::to_owned).collect(),
        })
    }

    /// Runs a kernel to its end, or until something stops it: see [`Report::trap`]. The same seed gives the same memory, findings and
    /// counters, for any number of host threads. Memory that the host or another launch changes at the same time is the caller's race.
    ///
    /// # Errors
    /// What cannot be started: unknown kernel, bad shape, wrong arguments, extents outside allocations.
    pub fn launch(&self, launch: &Launch, memory: &Memory, options: &Options) -> Result<Report, Error> {
        let kernel = self.kernel(&launch.entry)?;
        check_shape(kernel, launch)?;
        let shared_bytes = shared_bytes(kernel, launch)?;
        let params = params(kernel, launch)?;
        let allocations = memory.allocations();
        allocations.iter().for_each(|allocation| allocation.settle());
        let regions = regions(launch, &allocations)?;
        let blocks: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
        let cross = || (options.sanitizers.races && blocks > 1).then(Cross::default);
        let mut cx = Cx {
            kernel,
            memory,
            options,
            host: if options.baseline { Host::baseline() } else { Host::detect() },
            params,
            constants: &self.decoded.constants,
            regions,
            allocations,
            grid: launch.grid,
            block: launch.block,
            shared_bytes,
            dynamic_shared: launch.dynamic_shared,
            undo: None,
            cross: cross(),
            budget: AtomicU64::new(options.budget),
            stop: AtomicBool::new(false),
        };
        let report = schedule::run(
            &mut cx,
            |cx| cx.undo = Some(Undo::new(cx.allocations.clone())),
            |cx| {
                cx.undo = None;
                cx.cross = cross();
                cx.budget = AtomicU64::new(options.budget);
                cx.stop = AtomicBool::new(false);
            },
        )?;
        cx.allocations.iter().for_each(|allocation| allocation.settle());
        Ok(report)
    }
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

fn shared_bytes(kernel: &Kernel, launch: &Launch) -> Result<u32, Error> {
    let bytes = u64::from(kernel.static_shared) + u64::from(launch.dynamic_shared);
    if bytes > crate::decode::MOST_SHARED {
        return Err(Error::SharedMemory { bytes, limit: crate::decode::MOST_SHARED });
    }
    Ok(bytes as u32)
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

/// The regions that the kernel may access.
fn regions(launch: &Launch, allocations: &[Arc<Allocation>]) -> Result<Regions, Error> {
    if launch.extents.is_empty() {
        let whole = |(index, allocation): (usize, &Arc<Allocation>)| Region {
            base: allocation.base,
            end: allocation.base + allocation.bytes,
            label: allocation.label.clone(),
            element: 0,
            read_only: false,
            constant: false,
            allocation: allocation.clone(),
            index,
        };
        return Ok(Regions::of_allocations(allocations.iter().enumerate().map(whole).collect()));
    }
    let mut list = Vec::new();
    for extent in &launch.extents {
        let bad = || Error::BadAddress { address: extent.base, bytes: extent.bytes };
        let end = extent.base.checked_add(extent.bytes).ok_or_else(bad)?;
        let at =
            allocations.partition_point(|allocation| allocation.base <= extent.base).checked_sub(1).ok_or_else(bad)?;
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
            allocation: allocation.clone(),
            index: at,
        });
    }
    Ok(Regions::new(list))
}
