//! Running launches on the emulator, and telling its findings in the user's own terms.

mod options;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

pub use options::{EmulatorOptions, EmulatorReport};
use tilewright_emulator::{
    self as emulator, Counters, Extent, Finding, Launch, Location, MatrixModel, Memory, Program, Report, Sanitizers,
};
use tilewright_kernel::Text;

use crate::device::DeviceInner;
use crate::error::{Error, Fault, Result};
use crate::launch::{Fill, GivenTensor, Passed, Prepared, Work};
use crate::reference::Promise;

/// Decoded programs that are kept.
const PROGRAMS: usize = 256;
/// Words of a row that are filled at one time.
const FILLED: u64 = 1 << 16;
/// Launches that take longer may print the hint.
const SLOW: Duration = Duration::from_millis(500);

/// An emulator device.
pub(crate) struct Emulator {
    options: EmulatorOptions,
    memory: Arc<Memory>,
    /// The most recent programs, oldest first.
    programs: Mutex<Vec<(Text, Program)>>,
    report: Mutex<Option<EmulatorReport>>,
}

impl Emulator {
    pub(crate) fn new(options: EmulatorOptions) -> Self {
        let memory = Arc::new(Memory::new(options.memory));
        Self { options, memory, programs: Mutex::default(), report: Mutex::default() }
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Clusters of a persistent launch that run at one time.
    pub(crate) fn resident(&self) -> u32 {
        self.options.resident.max(1)
    }

    /// What the last launch did.
    pub(crate) fn report(&self) -> Option<EmulatorReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a launch; returns when it is done.
    pub(crate) fn run(&self, work: &Work) -> Result<()> {
        if let Some(message) = work.promise.as_ref().map(Promise::broken).transpose()?.flatten() {
            return Err(without_place(work, "BrokenPromise", message));
        }
        if work.empty {
            return self.fill(work);
        }
        let sanitizers = if self.options.sanitize { Sanitizers::ALL } else { Sanitizers::NONE };
        let options = emulator::Options { sanitizers, ..self.options() };
        let (mut report, elapsed) = self.launch(work, &options)?;
        hint(elapsed);
        let trace = report.trace.take();
        let warnings = report.findings.iter().filter(|f| !f.kind.is_failure());
        let told = EmulatorReport {
            kernel: work.kernel.to_string(),
            faults: failures(&report).map(|f| fault(work, f)).collect(),
            warnings: warnings.map(|f| fault(work, f)).collect(),
            counters: report.counters.clone(),
            trace,
            elapsed,
        };
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        failure(work, &report).map_or(Ok(()), Err)
    }

    /// What the user has chosen, but for sanitizers.
    fn options(&self) -> emulator::Options {
        emulator::Options {
            seed: self.options.seed,
            perturb: self.options.perturb.then_some(self.options.seed),
            budget: self.options.budget,
            trace: (self.options.trace > 0).then_some(self.options.trace),
            ..emulator::Options::default()
        }
    }

    /// Runs a launch: what was found and counted, and how long it took.
    fn launch(&self, work: &Work, options: &emulator::Options) -> Result<(Report, Duration)> {
        let program = self.program(&work.ptx).map_err(|e| refused(work, e.to_string()))?;
        let launch = launch(work)?;
        let guards = lock(work);
        let start = Instant::now();
        self.fill_locked(work)?;
        let report = program.launch(&launch, &self.memory, options).map_err(|e| refused(work, e.to_string()))?;
        // What it did is not over: the next launch finds the memory as it must.
        let is_whole = report.trace.is_none() && failures(&report).next().is_none();
        if let Some((address, bytes)) = work.workspace.zeros().filter(|_| !is_whole) {
            self.memory.fill(address, bytes, 0).map_err(|e| refused(work, e.to_string()))?;
        }
        drop(guards);
        Ok((report, start.elapsed()))
    }

    /// Fills what a launch is to fill, and nothing else.
    fn fill(&self, work: &Work) -> Result<()> {
        let _guards = lock(work);
        self.fill_locked(work)
    }

    fn fill_locked(&self, work: &Work) -> Result<()> {
        for Fill { address, unit, value, width, height, pitch } in work.fills.iter().cloned() {
            let bytes = width * u64::from(unit);
            // A long row of words in parts.
            let words = value.to_le_bytes().repeat(width.min(FILLED) as usize);
            for row in (0..height).map(|row| address + row * pitch) {
                let filled = match unit {
                    1 => self.memory.fill(row, bytes, value as u8),
                    _ => (0..width).step_by(FILLED as usize).try_for_each(|at| {
                        let count = (width - at).min(FILLED) as usize;
                        self.memory.write(row + 4 * at, &words[..4 * count])
                    }),
                };
                filled.map_err(|e| refused(work, e.to_string()))?;
            }
        }
        Ok(())
    }

    /// The decoded program of some PTX.
    fn program(&self, ptx: &Text) -> std::result::Result<Program, emulator::Error> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &Text| match (known, ptx) {
            // One static is one text; others are compared.
            (Text::Borrowed(a), Text::Borrowed(b)) if std::ptr::eq(*a, *b) => true,
            (a, b) => a == b,
        };
        if let Some((_, program)) = programs.iter().find(|(known, _)| same(known)) {
            return Ok(program.clone());
        }
        let program = Program::parse(ptx)?;
        if programs.len() == PROGRAMS {
            programs.remove(0);
        }
        programs.push((ptx.clone(), program.clone()));
        Ok(program)
    }
}

/// Keeps other uses of a launch's memory away. Sorted and each once: two launches never wait for each other.
fn lock(work: &Work) -> Vec<MutexGuard<'_, ()>> {
    work.accesses.iter().filter_map(|access| access.allocation.host()).map(|buffer| buffer.lock()).collect()
}

/// What makes a launch fail.
fn failures(report: &Report) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(|f| f.kind.is_failure())
}

/// The first of these, and how many more there are.
fn failure(work: &Work, report: &Report) -> Option<Error> {
    let mut fault = fault(work, failures(report).next()?);
    let more = failures(report).count() as u64 - 1 + report.dropped;
    if more > 0 {
        fault.message.push_str(&format!("\n  and {more} more findings"));
    }
    Some(Error::Emulation(Box::new(fault)))
}

/// Which part of a launch is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Numbers of the clusters that run, or of the blocks without clusters; none: all.
    pub clusters: Option<Range<u64>>,
    /// Whether tensor cores multiply: without, sums stay what they were, and it takes a fraction of the time.
    pub products: bool,
}

/// What a part of a launch does. Nothing is looked for but stray accesses. Outputs are not finished, unless it is the
/// whole launch with its products; a kernel with a workspace, whose blocks hand results to each other, must run whole.
///
/// # Errors
/// The launch was prepared for a GPU, or what the emulator found.
pub fn count(prepared: &Prepared<'_>, part: Part) -> Result<Counters> {
    let work = &prepared.work;
    match &**prepared.device() {
        DeviceInner::Emulator(_) if work.empty => Ok(Counters::default()),
        DeviceInner::Emulator(emulator) => {
            let mut options =
                emulator::Options { sanitizers: Sanitizers::NONE, clusters: part.clusters, ..emulator.options() };
            if !part.products {
                options.matrix = MatrixModel::Nothing;
            }
            let (report, _) = emulator.launch(work, &options)?;
            failure(work, &report).map_or(Ok(report.counters), Err)
        }
        #[cfg(feature = "cuda")]
        DeviceInner::Cuda(_) => Err(refused(work, "a GPU counts nothing".to_owned())),
    }
}

/// The launch in the emulator's terms. The kernel may access what the tensors span, and nothing else.
fn launch(work: &Work) -> Result<Launch> {
    let argument = |passed: &Passed| match passed {
        Passed::Word(value, width) => Ok(emulator::Arg(value.to_le_bytes()[..(*width as usize).min(8)].to_vec())),
        Passed::Workspace(_) => Ok(emulator::Arg(vec![0; 8])), // none is left
        Passed::Map(map) => {
            map.encode().map(|bytes| emulator::Arg(bytes.to_vec())).map_err(|e| refused(work, e.to_string()))
        }
    };
    let extent = |(name, tensor): &(Text, GivenTensor)| {
        let (base, end) = crate::launch::byte_range(tensor)?;
        let read_only = !tensor.writable;
        (end > base).then(|| Extent {
            base,
            bytes: end - base,
            label: name.to_string(),
            element: tensor.element.bytes(),
            read_only,
        })
    };
    // What has no elements has no memory either.
    let shared = |(name, base, bytes, element): &(Text, u64, u64, u32)| {
        (*bytes > 0).then(|| Extent {
            base: *base,
            bytes: *bytes,
            label: name.to_string(),
            element: *element,
            read_only: false,
        })
    };
    Ok(Launch {
        entry: work.entry.to_string(),
        grid: [work.blocks, 1, 1],
        block: [work.threads, 1, 1],
        cluster: (work.cluster > 1).then_some([work.cluster, 1, 1]),
        dependent: work.dependent,
        dynamic_shared: work.shared_bytes,
        args: work.parameters.iter().map(argument).collect::<Result<_>>()?,
        extents: work.tensors.iter().filter_map(extent).chain(work.shared.iter().filter_map(shared)).collect(),
    })
}

/// The emulator cannot run the launch at all.
fn refused(work: &Work, message: String) -> Error {
    without_place(work, "Refused", message)
}

/// A fault of a launch that no thread has made.
fn without_place(work: &Work, kind: &str, message: String) -> Error {
    Error::Emulation(Box::new(Fault {
        kernel: work.kernel.to_string(),
        kind: kind.to_owned(),
        message,
        statement: None,
        thread: None,
        address: None,
        element: None,
    }))
}

/// A finding in the user's own terms.
fn fault(work: &Work, finding: &Finding) -> Fault {
    let line = finding.place.source.as_ref().map(|(_, line, _)| *line as usize);
    let statement = line.and_then(|line| work.statements.get(line.checked_sub(1)?));
    let thread = finding.thread;
    Fault {
        kernel: work.kernel.to_string(),
        kind: format!("{:?}", finding.kind),
        message: finding.to_string(),
        statement: statement.map(ToString::to_string),
        thread: Some((thread.cta[0], thread.warp * 32 + thread.lane)),
        address: finding.location.as_ref().map(|l| l.address),
        element: finding.location.as_ref().and_then(|l| element(work, l)),
    }
}

/// The tensor element at a location, such as `x[3, 5]`; for a location outside, how far it is from which tensor.
fn element(work: &Work, location: &Location) -> Option<String> {
    let near = location.near.as_ref()?;
    let (name, tensor) = work.tensors.iter().find(|(name, _)| **name == *near.label)?;
    let size = i128::from(tensor.element.bytes());
    let (bytes, end) = (i128::from(near.bytes), near.offset + i128::from(location.bytes));
    if near.offset < 0 {
        return Some(format!("{} bytes before {name}", -near.offset));
    }
    if end > bytes {
        return Some(format!("{} bytes past the end of {name}, which has shape {:?}", end - bytes, tensor.shape));
    }
    // Largest stride first; what is left over lies in a gap between rows.
    let mut axes: Vec<usize> = (0..tensor.shape.len()).filter(|&d| tensor.strides[d] > 0).collect();
    axes.sort_by_key(|&d| std::cmp::Reverse((tensor.strides[d], tensor.shape[d] > 1, std::cmp::Reverse(d))));
    let mut index = vec![0; tensor.shape.len()];
    let mut rest = near.offset / size;
    for d in axes {
        let (stride, extent) = (i128::from(tensor.strides[d]), i128::from(tensor.shape[d]));
        index[d] = (rest / stride).min(extent - 1).max(0);
        rest -= index[d] * stride;
    }
    let gap = if rest == 0 { String::new() } else { format!(" + {rest} elements, which {name} does not have") };
    let index: Vec<String> = index.iter().map(i128::to_string).collect();
    Some(format!("{name}[{}]{gap}", index.join(", ")))
}

/// Tells once, in an unoptimised build, how to make a slow emulator fast.
fn hint(elapsed: Duration) {
    static ONCE: Once = Once::new();
    if elapsed < SLOW || env!("TILEWRIGHT_OPT_LEVEL") != "0" {
        return;
    }
    ONCE.call_once(|| {
        eprintln!(
            "note: the emulator is not optimised in this build; with `--release`, or with this in Cargo.toml, it is many \
             times faster:\n\n\
             [profile.dev.package]\ntilewright = {{ opt-level = 3 }}\ntilewright-emulator = {{ opt-level = 3 }}\n"
        );
    });
}
