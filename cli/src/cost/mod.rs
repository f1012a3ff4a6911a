//! `tilewright inspect --cost`: what a launch of a kernel asks of a GPU, which need not be there.
//!
//! | room | holds |
//! | --- | --- |
//! | [`gpu`] | the GPUs, one row each |
//! | [`occupancy`] | blocks of a multiprocessor, waves |
//! | [`counts`] | bytes, operations, conflicts: what the emulator counts |
//! | [`bounds`] | the roofline |
//! | [`estimate`] | one number of it, by which launches are compared |
//! | `text`, `json` | what is printed; `docs/inspect-json.md` documents the latter |
//!
//! `docs/cost.md` explains what is counted, what is estimated, and what is left out.

pub mod bounds;
pub mod counts;
pub mod estimate;
pub mod gpu;
mod json;
pub mod occupancy;
mod text;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tilewright_emulator::Program;
use tilewright_kernel::KernelInfo;

use crate::assembler::{self, Usage};
use crate::source::SourceFile;
use crate::trial::{TrialError, least, scalars};
use crate::{Output, Status, inspect, sizes};
use bounds::Bounds;
use counts::{CountError, Counts};
use gpu::Gpu;
use occupancy::{Block, Occupancy, Waves};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kernel; none: the only one of the file.
    pub kernel: Option<&'a str>,
    /// Sizes and strides, such as `N=1000`.
    pub dims: &'a [String],
    /// Scalars, such as `eps=1e-5`.
    pub scalars: &'a [String],
    /// The name of a GPU.
    pub gpu: &'a str,
    /// Work of counting, in warp instructions.
    pub budget: u64,
}

/// The cost of a launch.
struct Cost<'a> {
    path: &'a str,
    line: usize,
    kernel: &'a KernelInfo,
    dims: &'a [i64],
    gpu: &'static Gpu,
    entry: &'a str,
    /// Of a thread; or why nobody knows.
    registers: Result<Usage, String>,
    /// Bytes of shared memory of a block: of fixed size, and asked for at launch.
    shared: [u32; 2],
    occupancy: Occupancy,
    waves: Waves,
    /// Tiles of a persistent launch, or blocks: times the blocks of a cluster.
    grid: u32,
    counts: Counts,
    /// Bytes read and written at least.
    least: [u64; 2],
    /// Bytes of outputs that a launch fills before the kernel, which nothing here counts.
    filled: u64,
    bounds: Bounds,
}

/// Why nothing is told.
enum Refusal {
    /// The command was used wrongly.
    Usage(String),
    /// The launch is refused, or fails.
    Launch(String),
}

/// Tells what a launch costs.
pub fn cost(path: &str, request: &Request<'_>, as_json: bool) -> Output {
    let file = match SourceFile::read(path) {
        Ok(file) => file,
        Err(error) => return Output::usage(error),
    };
    let (line, kernel) = match inspect::only(&file, request.kernel) {
        Ok(found) => found,
        Err(output) => return output,
    };
    let dims = match sizes::parse(request.dims).and_then(|given| sizes::complete(kernel, &given)) {
        Ok(dims) => dims,
        Err(error) => return Output::usage(error),
    };
    match Cost::of((path, line), kernel, &dims, request) {
        Ok(cost) => {
            let text = if as_json { json::document(&cost) } else { text::page(&cost) };
            Output { text, errors: String::new(), status: Status::Good }
        }
        Err(Refusal::Usage(error)) => Output::usage(error),
        Err(Refusal::Launch(error)) => {
            Output { text: String::new(), errors: format!("error: {error}\n"), status: Status::Bad }
        }
    }
}

impl<'a> Cost<'a> {
    fn of(
        (path, line): (&'a str, usize),
        kernel: &'a KernelInfo,
        dims: &'a [i64],
        request: &Request<'_>,
    ) -> Result<Self, Refusal> {
        let gpu = Gpu::named(request.gpu).map_err(Refusal::Usage)?;
        let scalars = scalars(request.scalars).map_err(Refusal::Usage)?;
        if !kernel.ptx.runs_on(gpu.capability) {
            return Err(Refusal::Usage(target_refused(kernel, gpu)));
        }
        let layouts = sizes::layouts(kernel, dims).map_err(|error| Refusal::Usage(error.to_string()))?;
        if kernel.computes_nothing(dims) {
            let what = format!("kernel {} computes nothing at these sizes: its outputs are empty", kernel.name);
            return Err(Refusal::Usage(what));
        }
        let entry = kernel.entry_for(dims).and_then(|at| kernel.entries.get(at)).ok_or_else(|| {
            Refusal::Launch(format!("no entry point of kernel {} is right for these sizes", kernel.name))
        })?;
        let program = Program::parse(&kernel.ptx.text);
        let fixed = program.and_then(|program| program.static_shared(&entry.name));
        let shared = [fixed.map_err(|error| Refusal::Launch(error.to_string()))?, entry.shared_bytes];
        let registers = registers(kernel, &entry.name, gpu);
        let block = Block {
            threads: kernel.launch.threads,
            shared: shared.iter().sum(),
            registers: registers.as_ref().ok().map(|usage| usage.registers),
        };
        let occupancy = Occupancy::of(gpu, block);
        let blocks = kernel.launch.blocks.eval(dims).ok().and_then(|blocks| u32::try_from(blocks).ok());
        // More than a grid can have is refused below.
        let grid = blocks.unwrap_or(u32::MAX);
        let cluster = kernel.launch.cluster.max(1);
        let Some(waves) = Waves::of(gpu, &occupancy, (grid, cluster)) else {
            return Err(Refusal::Launch(block_refused(kernel, gpu, block)));
        };
        let counted = counts::Request {
            kernel,
            dims,
            scalars: &scalars,
            resident: waves.at_once / cluster,
            budget: request.budget,
        };
        let counts = Counts::of(&counted).map_err(|error| match error {
            CountError::Trial(TrialError::Runtime(error)) => Refusal::Launch(error.to_string()),
            CountError::Trial(error) => Refusal::Usage(error.to_string()),
            error => Refusal::Launch(error.to_string()),
        })?;
        let least = least(kernel, &layouts);
        let filled = (0..).zip(kernel.parameters.iter().zip(&layouts));
        let filled = filled.filter_map(|(number, (parameter, layout))| {
            kernel.fill(number)?;
            Some(layout.as_ref()?.elements.saturating_mul(parameter.element.bytes().into()))
        });
        let filled = filled.sum::<u64>();
        let bounds = Bounds::of(gpu, counts.blocks, least.iter().sum(), &counts.all);
        let entry = &entry.name;
        Ok(Self {
            path,
            line,
            kernel,
            dims,
            gpu,
            entry,
            registers,
            shared,
            occupancy,
            waves,
            grid,
            counts,
            least,
            filled,
            bounds,
        })
    }

    /// Operations for each byte.
    fn intensity(&self, bytes: u64) -> Option<f64> {
        (bytes > 0).then(|| self.counts.all.work.operations() as f64 / bytes as f64)
    }

    /// Bytes of the sectors that are asked for.
    fn sector_bytes(&self) -> u64 {
        self.counts.all.global.transactions.saturating_mul(tilewright_kernel::sectors::BYTES)
    }

    /// Why counts may be others than those of a launch; empty if they are exact.
    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if let Some(sample) = &self.counts.sampled {
            let counts::Sample { ran, of, sectors, operations } = sample;
            let what = if self.kernel.launch.cluster > 1 { "clusters" } else { "blocks" };
            let alike = |(least, most): &(u64, u64)| match least == most {
                true => format!("{least}"),
                false => format!("{least} to {most}"),
            };
            let (sectors, operations) = (alike(sectors), alike(operations));
            doubts.push(format!(
                "{ran} of {of} {what} were counted, with {sectors} sectors and {operations} operations each"
            ));
        }
        match self.counts.depends_on_data {
            Some(false) => {}
            Some(true) => doubts.push("they depend on data, which is random here".to_owned()),
            None => doubts.push(
                "whether they depend on data was tried without the products of tensor cores, which are too much work"
                    .to_owned(),
            ),
        }
        doubts
    }

    /// What occupancy and bounds take for granted.
    fn assumptions(&self) -> Vec<&'static str> {
        let multiplies = self.counts.all.work.tensor.iter().any(|operations| *operations > 0);
        let all = [
            (self.registers.is_err(), "registers limit nothing"),
            (self.kernel.launch.cluster > 1, "clusters always find multiprocessors that are free together"),
            (
                multiplies && self.kernel.ptx.text.contains("wgmma.mma_async"),
                "a warpgroup's product reads rows in shared memory once, and columns once for all its warps",
            ),
        ];
        all.into_iter().filter(|(holds, _)| *holds).map(|(_, what)| what).collect()
    }
}

fn target_refused(kernel: &KernelInfo, gpu: &Gpu) -> String {
    let (name, ptx) = (&kernel.name, &kernel.ptx);
    let (major, minor) = ptx.capability;
    let only = if ptx.exact_capability { "only" } else { "or newer" };
    let fitting: Vec<&str> = gpu::GPUS.iter().filter(|gpu| ptx.runs_on(gpu.capability)).map(|gpu| gpu.name).collect();
    format!(
        "kernel {name} is for {}, compute capability {major}.{minor} {only}, and {} has {}: try {}",
        ptx.target,
        gpu.title,
        gpu.capability_text(),
        crate::listed(&fitting, "none that is known here")
    )
}

fn block_refused(kernel: &KernelInfo, gpu: &Gpu, block: Block) -> String {
    let (name, Block { threads, shared, registers }) = (&kernel.name, block);
    let registers = registers.map_or(String::new(), |registers| format!(" of {registers} registers"));
    format!(
        "a block of kernel {name} does not fit on {}: it has {threads} threads{registers} and {shared} bytes of shared \
         memory, and a block can have {} bytes there",
        gpu.title, gpu.shared[1]
    )
}

/// What the assembler says of an entry point, for a GPU; or why it says nothing.
fn registers(kernel: &KernelInfo, entry: &str, gpu: &Gpu) -> Result<Usage, String> {
    static FOLDERS: AtomicU64 = AtomicU64::new(0);
    let Some(ptxas) = assembler::assembler() else {
        return Err("neither PTXAS nor PATH has NVIDIA's assembler ptxas".to_owned());
    };
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tilewright-{}-{number}", std::process::id()));
    let usage = assemble(kernel, &ptxas, gpu, &folder);
    // What cannot be removed is in the system's folder for that.
    let _ = std::fs::remove_dir_all(&folder);
    let all = usage?;
    all.into_iter().find(|usage| usage.entry == entry).ok_or_else(|| format!("its log does not tell of {entry}"))
}

fn assemble(kernel: &KernelInfo, ptxas: &Path, gpu: &Gpu, folder: &Path) -> Result<Vec<Usage>, String> {
    let (file, code) = (folder.join("kernel.ptx"), folder.join("kernel.cubin"));
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&file, kernel.ptx.text.as_bytes()).map_err(failed)?;
    let log = assembler::assembled(ptxas, &architecture(kernel, gpu), &file, &code);
    let log = log.map_err(|log| format!("ptxas: {}", log.lines().next().unwrap_or("it failed")))?;
    assembler::usage(&log).ok_or_else(|| "the log of ptxas tells no registers".to_owned())
}

/// What the driver would assemble for.
fn architecture(kernel: &KernelInfo, gpu: &Gpu) -> String {
    let (major, minor) = gpu.capability;
    if kernel.ptx.exact_capability { kernel.ptx.target.to_string() } else { format!("sm_{major}{minor}") }
}
