//! Mistakes in the protocol of a finished kernel: each statement that orders something is taken out, weakened, or
//! moved; and who notices it.
//!
//! Mutants of the compiler change its rules, and give what these make of a kernel. Here the loop program is changed
//! itself, one statement at a time, so that every wait, release, expectation, fence and commit has its turn.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::emit::emit;
use tilewright_compiler::kernel_ir::{
    Kernel, Memory, Op, RegionId, Statement, StatementKind, Store, Value, ValueId, verify,
};
use tilewright_compiler::proof::{Launch, Verdict, check, check_values};
use tilewright_kernel::KernelInfo;

use crate::Failure;
use crate::reason::reason;

/// Work of the separate checker for one launch.
const WORK: u64 = 80_000_000;
/// Orders of execution that the emulator tries.
const SEEDS: u64 = 6;
/// Instructions of a launch on the emulator; what takes more does not end.
const BUDGET: u64 = 1 << 22;

/// Time of one mistake after which it is told.
const SLOW: Duration = Duration::from_secs(3);

/// What is said of a statement that comes later.
const LATE: &str = "too late";

/// A kernel with one mistake.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// What was done to what.
    pub name: String,
    /// Where.
    pub place: (usize, usize),
    /// Whether a statement only comes later.
    pub is_later: bool,
    /// The program.
    pub kernel: Kernel,
}

/// Who noticed a mistake first, in the order in which they look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// It is no program.
    Verifier,
    /// The separate checker, on indices.
    Checker,
    /// The separate checker, on values.
    Values,
    /// The emulator: a finding, no end, or a wrong result.
    Emulator,
    /// No launch comes there: nothing changes at these sizes.
    Unreached,
    /// Nobody, and there is a reason: the module `reason` has it.
    Explained,
    /// Nobody.
    Nobody,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verifier => "verifier",
            Self::Checker => "checker",
            Self::Values => "values",
            Self::Emulator => "emulator",
            Self::Unreached => "unreached",
            Self::Explained => "explained",
            Self::Nobody => "nobody",
        })
    }
}

/// The name of a statement that orders something.
fn name(kind: &StatementKind) -> Option<&'static str> {
    Some(match kind {
        StatementKind::WgmmaFence => "fence of products",
        StatementKind::WgmmaCommitGroup => "commit of products",
        StatementKind::WgmmaWaitGroup { .. } => "wait for products",
        StatementKind::MbarrierWait { .. } => "wait for a phase",
        StatementKind::MbarrierArrive { .. } => "release",
        StatementKind::MbarrierExpectTx { .. } => "expectation",
        StatementKind::FenceProxyAsync => "proxy fence",
        StatementKind::BulkCommitGroup => "commit of stores",
        StatementKind::BulkWaitGroupRead { .. } => "wait for reads of stores",
        StatementKind::CpAsyncCommitGroup => "commit of fetches",
        StatementKind::CpAsyncWaitGroup { .. } => "wait for fetches",
        StatementKind::CpAsyncMbarrierArrive { .. } => "release of fetches",
        StatementKind::BarSync => "barrier",
        StatementKind::BarSyncWarpgroup => "barrier of warpgroups",
        StatementKind::BarWarpSync => "barrier of warps",
        StatementKind::BarrierCluster => "barrier of the cluster",
        StatementKind::LastBlockTicket { .. } => "ticket",
        _ => return None,
    })
}

/// What may stand in the place of a statement, each with what was done.
fn weaker(kind: &StatementKind) -> Vec<(&'static str, StatementKind)> {
    match *kind {
        StatementKind::WgmmaWaitGroup { pending } => {
            vec![("one more pending", StatementKind::WgmmaWaitGroup { pending: pending + 1 })]
        }
        StatementKind::BulkWaitGroupRead { pending } => {
            vec![("one more pending", StatementKind::BulkWaitGroupRead { pending: pending + 1 })]
        }
        StatementKind::CpAsyncWaitGroup { pending } => {
            vec![("one more pending", StatementKind::CpAsyncWaitGroup { pending: pending + 1 })]
        }
        StatementKind::MbarrierExpectTx { barrier, slot, bytes } => {
            let with = |bytes| StatementKind::MbarrierExpectTx { barrier, slot, bytes };
            vec![("16 bytes more", with(bytes + 16)), ("16 bytes less", with(bytes.saturating_sub(16)))]
        }
        StatementKind::BarSync => vec![("of warps", StatementKind::BarWarpSync)],
        StatementKind::BarSyncWarpgroup => vec![("of warps", StatementKind::BarWarpSync)],
        StatementKind::LastBlockTicket { counters, at, blocks, last, .. } => {
            let with =
                |releases, acquires| StatementKind::LastBlockTicket { counters, at, blocks, last, releases, acquires };
            vec![("that releases nothing", with(false, true)), ("that acquires nothing", with(true, false))]
        }
        _ => Vec::new(),
    }
}

/// Whether a statement comes too early, and not too late, when it is moved.
fn is_early(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::MbarrierArrive { .. }
            | StatementKind::CpAsyncMbarrierArrive { .. }
            | StatementKind::WgmmaCommitGroup
            | StatementKind::BulkCommitGroup
            | StatementKind::CpAsyncCommitGroup
            | StatementKind::FenceProxyAsync
    )
}

/// Whether a statement does something that others order.
pub(crate) fn acts(kind: &StatementKind) -> bool {
    !matches!(kind, StatementKind::Let(_) | StatementKind::Declare(..) | StatementKind::Set(..))
}

/// The values that a statement uses, of those that its region may bind.
fn uses(kind: &StatementKind) -> Vec<ValueId> {
    match *kind {
        StatementKind::MbarrierArrive { slot, .. }
        | StatementKind::CpAsyncMbarrierArrive { slot, .. }
        | StatementKind::MbarrierExpectTx { slot, .. } => vec![slot],
        StatementKind::MbarrierWait { slot, parity, .. } => vec![slot, parity],
        _ => Vec::new(),
    }
}

/// The kernels with one mistake each.
pub fn mistakes(kernel: &Kernel) -> Vec<Mistake> {
    let mut all = Vec::new();
    for (n, region) in kernel.regions.iter().enumerate() {
        for (at, statement) in region.statements.iter().enumerate() {
            let Some(name) = name(&statement.kind) else { continue };
            let mut add = |what: &str, change: &dyn Fn(&mut Kernel)| {
                let mut mutant = kernel.clone();
                change(&mut mutant);
                let is_later = what == LATE;
                all.push(Mistake { name: format!("{name}, {what}"), place: (n, at), is_later, kernel: mutant });
            };
            // Without it nobody knows who is the last.
            if !matches!(statement.kind, StatementKind::LastBlockTicket { .. }) {
                add("left out", &|k| drop(k.regions[n].statements.remove(at)));
            }
            for (what, kind) in weaker(&statement.kind) {
                add(what, &|k| k.regions[n].statements[at].kind = kind.clone());
            }
            if let Some(to) = moved(kernel, RegionId(n as u32), at) {
                let what = if is_early(&statement.kind) { "too early" } else { LATE };
                add(what, &|k| {
                    let statements = &mut k.regions[n].statements;
                    let own = statements.remove(at);
                    statements.insert(to, own);
                });
            }
        }
    }
    all
}

/// Where a statement of a region is moved to: a commit before the last of what it commits, what else comes early to the
/// front, behind what it uses, and what comes late to the end; none if nothing that acts is between.
fn moved(kernel: &Kernel, region: RegionId, at: usize) -> Option<usize> {
    let statements = &kernel.region(region).statements;
    let kind = &statements[at].kind;
    let has = |part: &[Statement]| part.iter().any(|s| acts(&s.kind));
    match kind {
        StatementKind::LastBlockTicket { .. } | StatementKind::BarSync | StatementKind::MbarrierExpectTx { .. } => None,
        // What follows it in a body is what stands before it in the next iteration.
        _ if !is_early(kind) => (has(&statements[..at]) && has(&statements[at + 1..])).then(|| statements.len() - 1),
        StatementKind::WgmmaCommitGroup | StatementKind::BulkCommitGroup | StatementKind::CpAsyncCommitGroup => {
            statements[..at].iter().rposition(|s| starts(kernel, s))
        }
        _ => {
            let binds = |s: &Statement| matches!(s.kind, StatementKind::Let(value) if uses(kind).contains(&value));
            let to = statements[..at].iter().rposition(binds).map_or(0, |bound| bound + 1);
            // Arrivals have no order among themselves.
            let arrives = |s: &Statement| matches!(s.kind, StatementKind::MbarrierArrive { .. });
            statements[to..at].iter().any(|s| acts(&s.kind) && !arrives(s)).then_some(to)
        }
    }
}

/// Whether a statement starts what is committed, itself or in a region of its own.
fn starts(kernel: &Kernel, statement: &Statement) -> bool {
    let inside = |region: &RegionId| kernel.region(*region).statements.iter().any(|s| starts(kernel, s));
    match &statement.kind {
        StatementKind::CpAsync(_) | StatementKind::BulkCopy(_) | StatementKind::Wgmma(_) => true,
        StatementKind::Loop(l) => inside(&l.body),
        StatementKind::If(branch) => inside(&branch.then) || branch.otherwise.iter().any(inside),
        StatementKind::Elect(part) => inside(part),
        _ => false,
    }
}

/// A finished kernel, and the launches that mistakes are looked for in.
pub struct Subject<'a> {
    compiled: &'a Compiled,
    info: &'a KernelInfo,
    /// The program of the first entry point.
    pub kernel: &'a Kernel,
    dims: Vec<Vec<i64>>,
}

impl<'a> Subject<'a> {
    /// A kernel at sizes that its first entry point is for; none if it is for none of them.
    pub fn new(compiled: &'a Compiled, dims: &[Vec<i64>]) -> Option<Self> {
        let (info, first) = (compiled.info.as_ref()?, compiled.entries.first()?);
        let holds = |dims: &&Vec<i64>| first.conditions.iter().all(|c| c.holds(dims) == Ok(true));
        let dims: Vec<Vec<i64>> = dims.iter().filter(holds).cloned().collect();
        let own = Self { compiled, info, kernel: &first.kernel, dims };
        (!own.dims.is_empty()).then_some(own)
    }

    fn launches(&self) -> impl Iterator<Item = Launch> {
        self.dims.iter().filter_map(|dims| {
            let launch = Launch::new(self.info, dims).ok()?;
            Some(if self.info.launch.persistent { launch.by(self.blocks()) } else { launch })
        })
    }

    /// Blocks of a persistent launch: those of one cluster take all tiles, so that they come to all slots again. Who
    /// arrives at what blocks share is not alone.
    fn blocks(&self) -> i64 {
        let statements = self.kernel.regions.iter().flat_map(|region| &region.statements);
        let is_shared = |s: &Statement| matches!(s.kind, StatementKind::LastBlockTicket { .. });
        let clusters = if statements.into_iter().any(is_shared) { 2 } else { 1 };
        clusters * i64::from(self.info.launch.cluster.max(1))
    }

    fn is_wrong_on_emulator(&self, kernel: &Kernel, seeds: u64) -> Option<bool> {
        let mut info = self.info.clone();
        let mut kernels: Vec<&Kernel> = self.compiled.entries.iter().map(|entry| &entry.kernel).collect();
        kernels[0] = kernel;
        info.ptx.text = emit(&kernels, &info.name).ok()?.to_string().into();
        // The emulator runs as many clusters at one time.
        let resident = (self.blocks() / i64::from(self.info.launch.cluster.max(1))) as u32;
        let is_wrong = |dims: &Vec<i64>, seed: u64| {
            let options = EmulatorOptions::default().seed(seed).resident(resident).budget(BUDGET);
            let device = Device::emulator(options);
            Trial::new(&info, dims, seed, &device).is_ok_and(|trial| !trial.run(&device).is_good())
        };
        Some((0..seeds).any(|seed| self.dims.iter().any(|dims| is_wrong(dims, seed))))
    }

    /// Whether a launch comes to a place: a store far outside of a tensor is noticed there.
    fn is_reached(&self, (region, at): (usize, usize)) -> bool {
        let statements = self.kernel.regions.iter().flat_map(|region| &region.statements);
        let store = statements.into_iter().find_map(|s| match &s.kind {
            StatementKind::Store(store) if matches!(store.memory, Memory::Parameter(_)) => Some(store),
            _ => None,
        });
        let Some(store) = store else { return true };
        let mut mutant = self.kernel.clone();
        let mut literal = |like: ValueId, bits: u64| {
            let id = ValueId(mutant.values.len() as u32);
            let Value { ty, facts, .. } = mutant.values[like.index()];
            mutant.values.push(Value { op: Op::Literal(bits), ty, region: Kernel::BODY, facts });
            id
        };
        let far = literal(store.offset, 1 << 30);
        let values = store.values.iter().map(|value| literal(*value, 0)).collect();
        let kind = StatementKind::Store(Store { offset: far, values, ..store.clone() });
        let line = mutant.regions[region].statements[at].line;
        mutant.regions[region].statements.insert(at, Statement { line, kind });
        self.launches().any(|launch| matches!(check(&mutant, &launch, WORK), Verdict::Violated(_)))
    }

    /// Who notices something about a program in the place of the first entry point's.
    pub fn noticed(&self, kernel: &Kernel) -> Notice {
        let is_violated = |verdict: Verdict| matches!(verdict, Verdict::Violated(_));
        if verify(kernel).is_err() {
            return Notice::Verifier;
        }
        if self.launches().any(|launch| is_violated(check(kernel, &launch, WORK))) {
            return Notice::Checker;
        }
        if self.launches().any(|launch| is_violated(check_values(kernel, &launch, &self.info.algorithm, 1, WORK))) {
            return Notice::Values;
        }
        match self.is_wrong_on_emulator(kernel, SEEDS) {
            None => Notice::Verifier,
            Some(true) => Notice::Emulator,
            Some(false) => Notice::Nobody,
        }
    }
}

/// What was noticed of all mistakes in some kernels.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How often a mistake was noticed first by whom.
    pub counts: BTreeMap<(String, Notice), u64>,
    /// Kernels, and those that are wrong as they are.
    pub kernels: u64,
    /// Whether the program is shown in which something is not noticed.
    pub shows: bool,
    /// What nobody noticed: the kernel, the mistake, its place.
    pub unnoticed: Vec<(String, String, (usize, usize))>,
}

impl Tally {
    /// Tries all mistakes of a kernel.
    ///
    /// # Errors
    /// It is wrong as it is.
    pub fn try_all(&mut self, name: &str, subject: &Subject<'_>) -> Result<(), Failure> {
        let right = subject.noticed(subject.kernel);
        if right != Notice::Nobody {
            return Err(format!("without a mistake, {right} finds one: {name}"));
        }
        self.kernels += 1;
        let (before, start) = (self.unnoticed.len(), Instant::now());
        let all = mistakes(subject.kernel);
        let count = all.len();
        for mistake in all {
            let own = Instant::now();
            let notice = match subject.noticed(&mistake.kernel) {
                Notice::Nobody if !subject.is_reached(mistake.place) => Notice::Unreached,
                Notice::Nobody if reason(subject.kernel, mistake.place, mistake.is_later).is_some() => {
                    Notice::Explained
                }
                other => other,
            };
            if own.elapsed() > SLOW {
                let took = own.elapsed().as_secs_f64();
                eprintln!("  {took:.1} s: {}, at {:?}: {notice}", mistake.name, mistake.place);
            }
            *self.counts.entry((mistake.name.clone(), notice)).or_default() += 1;
            if notice == Notice::Nobody {
                self.unnoticed.push((name.to_owned(), mistake.name, mistake.place));
            }
        }
        let title = name.lines().next().unwrap_or_default();
        eprintln!("{title}: {count} mistakes in {:.1} s", start.elapsed().as_secs_f64());
        for (_, what, place) in &self.unnoticed[before..] {
            eprintln!("nobody noticed: {what}, at {place:?}, of {name}");
        }
        if before < self.unnoticed.len() && self.shows {
            eprintln!("{}", subject.kernel);
        }
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.counts.values().sum();
        writeln!(f, "{all} mistakes in {} kernels", self.kernels)?;
        for ((name, notice), count) in &self.counts {
            writeln!(f, "{count:>6}  {notice:<9} {name}")?;
        }
        Ok(())
    }
}
