//! What several of the tests of staged copies need.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tilewright::kernel::algorithm::Algorithm;
use tilewright::kernel::info::{Additions, KernelInfo};
use tilewright::{Device, Element, EmulatorOptions, Error, Reference, Tensor};
pub use tilewright_cli::prove::by_entry;
use tilewright_cli::trial::{Outcome, Trial};
use tilewright_compiler::diag::{Code, Renderer};
use tilewright_compiler::kernel_ir::{InRoles, Kernel, Memory, Op, RegionId, StatementKind, ValueId};
use tilewright_compiler::plan::Analysed;
use tilewright_compiler::proof::{Launch, Verdict, check};
use tilewright_compiler::source::{TokenBuffer, TokenMap, locate};
use tilewright_compiler::target::{WARP, WARPGROUP};
use tilewright_compiler::trial::{self, Effort, Net};
use tilewright_compiler::{Compiled, compile};

/// Devices with different orders of warps, and copies that end at the earliest, at the latest and in between.
pub fn devices() -> Vec<Device> {
    (0..4).map(|seed| Device::emulator(EmulatorOptions::default().seed(seed))).collect()
}

/// A tensor whose elements are given by their number.
pub fn data<T: Element, const R: usize>(
    device: &Device,
    shape: [usize; R],
    value: impl Fn(usize) -> T,
) -> Tensor<T, R> {
    let values: Vec<T> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_slice(device, &values, shape).unwrap()
}

/// Work of the separate checker for one launch.
const PROOF_WORK: u64 = 300_000;
/// The same where that was not enough to find anything wrong with a mutant.
const MOST_PROOF_WORK: u64 = 20 * PROOF_WORK;

/// Runs the separate checker over every entry point that a launch with these sizes may take. What depends on data, or
/// is too much work, is left open.
pub fn prove(kernel: &Compiled, dims: &[i64]) {
    let info = kernel.info.as_ref().expect("no error");
    // On index values, where what depends on data may go either way; and on data.
    let effort = Effort { nets: &[Net::Indices, Net::Values], seed: 1, work: PROOF_WORK };
    let wrong = trial::prove(info, &kernel.entries, dims, effort).err();
    if let Some(wrong) = wrong.or_else(|| trial::prove_large(info, &kernel.entries, dims, 1).err()) {
        let program = kernel.entries.iter().find(|e| e.kernel.signature.name == wrong.entry).map(|e| &e.kernel);
        panic!("{wrong}\n{}", program.expect("an entry point"));
    }
}

/// Compiles, and runs with each list of sizes under so many seeds, and through the separate checker, which also misses
/// each barrier that is left out.
pub fn tried(source: &str, sizes: &[&[i64]], seeds: u64) -> Compiled {
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    each_barrier_is_missed(&kernel, sizes);
    runs(source, &kernel, sizes, seeds);
    kernel
}

/// Runs with each list of sizes under so many seeds, and through the separate checker.
pub fn runs(source: &str, kernel: &Compiled, sizes: &[&[i64]], seeds: u64) {
    let info = kernel.info.as_ref().expect("no error");
    for (n, dims) in (0..).zip(sizes) {
        prove(kernel, dims);
        let Some(info) = by_entry(info, dims).into_iter().next() else { continue };
        for seed in (0..seeds).map(|seed| n * seeds + seed + 1) {
            let outcome = launched(&info, dims, seed, EmulatorOptions::default().seed(seed));
            is_right(source, &info, dims, &outcome);
        }
    }
    others_run(source, info, sizes, seeds);
}

/// Most warp instructions of an entry point that a launch would not take, but at its smallest sizes: some compute anew
/// for each element what the others have once.
const MOST_OF_OTHERS: u64 = 4_000_000;

/// Entry points that a launch would not take at these sizes run at them, under one seed: at the smallest without a 0 to
/// the end, and at larger ones as long as that is not too much. Its data is that of the first launch before, the
/// reference of which is known.
fn others_run(source: &str, info: &KernelInfo, sizes: &[&[i64]], seeds: u64) {
    let mut sizes: Vec<(u64, &[i64])> = (0..).map(|n| n * seeds + 1).zip(sizes.iter().copied()).collect();
    sizes.sort_by_key(|(_, dims)| dims.iter().product::<i64>());
    let (mut met, mut left) = (BTreeSet::new(), BTreeSet::new());
    for (seed, dims) in sizes {
        for info in by_entry(info, dims).into_iter().skip(1) {
            let name = info.entries[0].name.to_string();
            if left.contains(&name) {
                continue;
            }
            let is_first = !dims.contains(&0) && met.insert(name.clone());
            let options = EmulatorOptions::default().seed(seed);
            let is_bounded = !is_first && !dims.contains(&0);
            let options = if is_bounded { options.budget(MOST_OF_OTHERS) } else { options };
            let outcome = launched(&info, dims, seed, options);
            let is_too_much = |error: &Error| matches!(error, Error::Emulation(fault) if fault.kind == "Livelock");
            if is_bounded && outcome.failure.as_ref().is_some_and(is_too_much) {
                left.insert(name);
            } else {
                is_right(source, &info, dims, &outcome);
            }
        }
    }
}

fn is_right(source: &str, info: &KernelInfo, dims: &[i64], outcome: &Outcome) {
    let (name, text) = (&info.entries[0].name, &info.ptx.text);
    assert!(outcome.is_good(), "{source}\n{name} at {dims:?}: {outcome:#?}\n{}\n{text}", info.explanation);
}

/// What a launch with random arguments gives on a new emulator.
pub fn launched(info: &KernelInfo, dims: &[i64], seed: u64, options: EmulatorOptions) -> Outcome {
    launched_on(info, dims, seed, &Device::emulator(options))
}

/// The same on an emulator. The reference of the same data is evaluated once, whatever is made of the algorithm.
pub fn launched_on(info: &KernelInfo, dims: &[i64], seed: u64, device: &Device) -> Outcome {
    struct Known {
        of: (Algorithm, Box<[Additions]>, Vec<i64>, u64),
        reference: Rc<Result<Reference, Error>>,
    }
    // Two seeds at each of eight sizes: what runs at all of them comes back to the first one.
    const MOST_KNOWN: usize = 16;
    thread_local! {
        static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
    }
    let trial = Trial::new(info, dims, seed, device).unwrap_or_else(|e| panic!("{} {dims:?}: {e}", info.name));
    let reference = KNOWN.with_borrow_mut(|all| {
        let is_it = |known: &&Known| {
            let (algorithm, additions, own, data) = &known.of;
            *algorithm == info.algorithm && **additions == *info.additions && own == dims && *data == seed
        };
        if let Some(known) = all.iter().find(is_it) {
            return known.reference.clone();
        }
        let reference = Rc::new(trial.reference());
        let of = (info.algorithm.clone(), info.additions.iter().cloned().collect(), dims.to_vec(), seed);
        if all.len() == MOST_KNOWN {
            all.remove(0);
        }
        all.push(Known { of, reference: reference.clone() });
        reference
    });
    trial.against((*reference).as_ref(), device)
}

/// An outer product whose rows are given to the blocks of a cluster, which all read one tile of `b`.
pub fn outer(items: &str, cluster: u32, ring: &str, ops: &str) -> String {
    format!(
        "kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N]) where N % 4 == 0 {{
            c[i, j] = a[i] * b[j];
            launch cluster({cluster}), threads(64){items};
            schedule c {{
                split i by {cluster} -> io, ic; bind io: grid; bind ic: cta;
                split j by 128 -> jo, ji; split ji by 64 -> r, t; bind t: thread;
            }}
            stage bs[j] = b in shared at c.jo {ring} via tma {{ {ops} }}
        }}"
    )
}

/// Bytes that a launch loads from global memory.
pub fn loaded(kernel: &Compiled, dims: &[i64]) -> u64 {
    let device = Device::emulator(EmulatorOptions::default());
    let info = kernel.info.as_ref().expect("no error");
    let outcome = Trial::new(info, dims, 1, &device).unwrap().run(&device);
    assert!(outcome.is_good(), "{outcome:#?}");
    outcome.report.expect("the emulator ran").counters.global.bytes_loaded
}

/// None of the barriers of the first entry point is redundant or stronger than it must be: without any one of them, or
/// with a weaker one in its place, the separate checker finds something wrong for some of the sizes.
pub fn each_barrier_is_missed(kernel: &Compiled, sizes: &[&[i64]]) {
    let needless = needless(kernel, sizes).1;
    assert!(needless.is_empty(), "{needless:#?}\n{}", kernel.entries[0].kernel);
}

/// The separate checker misses each part of what blocks do to share a reduction, in the first entry point, at these
/// sizes: barriers, arrivals, partials, orders; and a wrong number of blocks. How many mutants that were.
pub fn each_part_of_an_arrival_is_missed(kernel: &Compiled, dims: &[i64]) -> usize {
    const WORK: u64 = 1_000_000;
    let (info, kernel) = (kernel.info.as_ref().expect("no error"), &kernel.entries[0].kernel);
    let launch = Launch::new(info, dims).unwrap();
    assert_eq!(check(kernel, &launch, WORK), Verdict::Holds, "{kernel}");
    let mut tried = 0;
    let places = (0..kernel.regions.len()).flat_map(|r| (0..kernel.regions[r].statements.len()).map(move |at| (r, at)));
    for (region, at) in places {
        let mut mutants = Vec::new();
        match &kernel.regions[region].statements[at].kind {
            StatementKind::BarSync | StatementKind::AtomicUpdate(_) => mutants.push(None),
            StatementKind::Store(store) if matches!(store.memory, Memory::Workspace(_)) => mutants.push(None),
            StatementKind::LastBlockTicket { counters, at, blocks, last, releases, acquires } => {
                assert!(*releases && *acquires);
                let (counters, at, last) = (*counters, *at, *last);
                let arrive = |blocks, releases, acquires| {
                    Some(StatementKind::LastBlockTicket { counters, at, blocks, last, releases, acquires })
                };
                // All blocks go on, and each sees none of the others.
                let one = kernel.values.iter().position(|v| v.op == Op::BlockIndex);
                let other = ValueId(one.unwrap() as u32);
                assert_ne!(*blocks, other);
                mutants.push(arrive(other, true, true));
                // The fence before the counter, the one after it, both.
                mutants.extend([(false, true), (true, false), (false, false)].map(|(r, a)| arrive(*blocks, r, a)));
            }
            _ => {}
        }
        for mutant in mutants {
            tried += 1;
            let mut changed = kernel.clone();
            let statements = &mut changed.regions[region].statements;
            match mutant {
                Some(kind) => statements[at].kind = kind,
                None => drop(statements.remove(at)),
            }
            let verdict = check(&changed, &launch, WORK);
            assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?} without it:\n{changed}");
        }
    }
    tried
}

/// What the emulator says of a launch with some text in place of other text, run twice under several seeds.
pub fn is_noticed(info: &KernelInfo, dims: &[i64], from: &str, to: &str) -> bool {
    assert!(info.ptx.text.contains(from), "{from}");
    is_wrong(info, dims, info.ptx.text.replace(from, to))
}

/// Whether the emulator finds something wrong with another text of a kernel, in one of several orders of execution.
pub fn is_wrong(info: &KernelInfo, dims: &[i64], text: String) -> bool {
    let mut info = info.clone();
    info.ptx.text = text.into();
    (0..16).any(|seed| {
        let device = Device::emulator(EmulatorOptions::default().seed(seed));
        (0..2).any(|_| !launched_on(&info, dims, 1, &device).is_good())
    })
}

/// The emulator misses each order of an arrival, its scope, and that the counter comes back to zero.
pub fn each_order_is_noticed(info: &KernelInfo, dims: &[i64]) {
    let acquires = "atom.acq_rel.gpu.global.inc";
    assert!(!is_noticed(info, dims, acquires, acquires), "{} is right", info.name);
    for order in ["relaxed", "acquire", "release"] {
        let weaker = format!("atom.{order}.gpu.global.inc");
        assert!(is_noticed(info, dims, acquires, &weaker), "{}: {order}", info.name);
    }
    // In the scope of the block.
    assert!(is_noticed(info, dims, acquires, "atom.acq_rel.cta.global.inc"), "{}: no order", info.name);
    assert!(is_noticed(info, dims, acquires, "atom.acq_rel.gpu.global.add"), "{}: the counter stays", info.name);
}

/// What may stand in place of a barrier or wait of a block, or a role, with so many threads, each with its name:
/// nothing, or a weaker one.
fn weaker(kind: &StatementKind, threads: u32) -> Vec<(&'static str, Option<StatementKind>)> {
    let warps = (threads.is_multiple_of(WARP), StatementKind::BarWarpSync);
    let warpgroups = (threads > WARPGROUP && threads.is_multiple_of(WARPGROUP), StatementKind::BarSyncWarpgroup);
    let units = |name: [&'static str; 2], units: Vec<(bool, StatementKind)>| {
        let fewer = units.into_iter().filter(|unit| unit.0).map(|unit| (name[1], Some(unit.1)));
        std::iter::once((name[0], None)).chain(fewer).collect()
    };
    match kind {
        StatementKind::BarSync => units(["block", "fewer than a block"], vec![warps, warpgroups]),
        StatementKind::BarSyncWarpgroup => units(["warpgroup", "fewer than a warpgroup"], vec![warps]),
        StatementKind::BarWarpSync => units(["warp", ""], Vec::new()),
        StatementKind::CpAsyncWaitGroup { pending } => {
            let later = StatementKind::CpAsyncWaitGroup { pending: pending + 1 };
            vec![("fetches", None), ("one more fetch pending", Some(later))]
        }
        _ => Vec::new(),
    }
}

/// What was done to barriers and waits for fetches of the first entry point, each left out or weakened, and that with
/// which the separate checker finds nothing wrong for any of the sizes, each barrier once.
pub fn needless(kernel: &Compiled, sizes: &[&[i64]]) -> (Vec<&'static str>, Vec<String>) {
    let (info, kernel) = (kernel.info.as_ref().expect("no error"), &kernel.entries[0].kernel);
    // Most changes show at small sizes, and no larger ones are looked at then.
    let mut sizes = sizes.to_vec();
    sizes.sort_by_key(|dims| dims.iter().product::<i64>());
    let launches: Vec<Launch> = sizes.iter().filter_map(|dims| Launch::new(info, dims).ok()).collect();
    let mut regions = vec![Kernel::BODY];
    inside(kernel, Kernel::BODY, &mut regions);
    let statements = |r: RegionId| (0..kernel.region(r).statements.len()).map(move |at| (r.index(), at));
    let roles = InRoles::of(kernel);
    let (mut tried, mut found) = (Vec::new(), Vec::new());
    for (region, at) in regions.into_iter().flat_map(statements) {
        let kind = &kernel.regions[region].statements[at].kind;
        for (name, change) in weaker(kind, roles.threads(RegionId(region as u32)).len() as u32) {
            tried.push(name);
            let mut mutant = kernel.clone();
            let what = format!("{name}: {kind:?} → {change:?}, statement {at} of region {region}");
            match change {
                Some(kind) => mutant.regions[region].statements[at].kind = kind,
                None => drop(mutant.regions[region].statements.remove(at)),
            }
            let is_missed =
                |work| launches.iter().any(|launch| matches!(check(&mutant, launch, work), Verdict::Violated(_)));
            if !is_missed(PROOF_WORK) && !is_missed(MOST_PROOF_WORK) {
                found.push(what);
                // What may be left out may be weakened, too.
                break;
            }
        }
    }
    (tried, found)
}

/// The regions inside one, those that nothing runs left out.
fn inside(kernel: &Kernel, region: RegionId, found: &mut Vec<RegionId>) {
    for statement in &kernel.region(region).statements {
        let parts = match &statement.kind {
            StatementKind::Loop(l) => vec![l.body],
            StatementKind::If(branch) => [branch.then].into_iter().chain(branch.otherwise).collect(),
            StatementKind::Elect(part) => vec![*part],
            StatementKind::Roles(roles) => roles.iter().map(|role| role.body).collect(),
            _ => continue,
        };
        for part in parts {
            found.push(part);
            inside(kernel, part, found);
        }
    }
}

/// The codes of what is wrong, and the report.
pub type Refusal = (Vec<Code>, String);

/// What a kernel became: itself, or the codes of what is wrong with the report.
pub fn compiled(source: &str) -> Result<Box<KernelInfo>, Refusal> {
    analysed(source).map(|(info, _)| info)
}

/// The same, with what was found out about its stages.
pub fn analysed(source: &str) -> Result<(Box<KernelInfo>, Vec<Analysed>), Refusal> {
    finished(source).map(|kernel| (Box::new(kernel.info.expect("no error")), kernel.stages))
}

/// The same, with its entry points.
pub fn finished(source: &str) -> Result<Compiled, Refusal> {
    let stream = source.parse().unwrap_or_else(|error| panic!("no Rust tokens ({error}):\n{source}"));
    let (tokens, spans) = TokenBuffer::new(stream);
    let mut outcome = compile(&tokens);
    if outcome.kernels.first().is_some_and(|kernel| kernel.info.is_some()) {
        return Ok(outcome.kernels.swap_remove(0));
    }
    let codes = outcome.diagnostics.found().iter().map(|found| found.code).collect();
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    Err((codes, Renderer::new(&map).report(&outcome.diagnostics.finish())))
}

/// A repeatable stream of choices.
pub struct Draw(pub u64);

impl Draw {
    /// The stream of case `n`.
    pub fn new(seed: u64, n: u64) -> Self {
        let mut draw = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n.wrapping_mul(0x2545_f491_4f6c_dd1d));
        // The first draws of neighbours are alike.
        for _ in 0..4 {
            draw.below(2);
        }
        draw
    }

    /// One of `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    /// Whether something happens that has so many chances in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of a list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Seed and number of cases: what the variable says as `SEED,COUNT`, or `usual`.
pub fn campaign(variable: &str, usual: (u64, u64)) -> (u64, u64) {
    let Ok(given) = std::env::var(variable) else { return usual };
    let numbers = given.split_once(',').and_then(|(seed, count)| Some((seed.parse().ok()?, count.parse().ok()?)));
    numbers.unwrap_or_else(|| panic!("{variable} is SEED,COUNT"))
}

/// Rows read forwards and backwards, each with an instance of a unit of so many threads.
pub fn turned((unit, size): (&str, u32), ops: &str, threads: u32) -> String {
    format!(
        "kernel Turn(x: f32[M, N]) -> (y: f32[M, N]) where N <= 256 {{
            h[i, j] = x[i, j] * 2.0;
            y[i, j] = h[i, N - 1 - j] + h[i, j];
            launch threads({threads});
            schedule y {{
                split i by 2 -> b, u; bind b: grid; bind u: {unit}; split j by {size} -> q, t; bind t: thread;
            }}
            schedule h in shared per {unit} at y.u {{ {ops} }}
        }}"
    )
}

/// Element types and reductions for random kernels.
pub const REDUCTIONS: [(&str, &str); 8] = [
    ("f32", "sum"),
    ("f32", "max"),
    ("i32", "sum"),
    ("u8", "min"),
    ("f16", "min"),
    ("i64", "sum"),
    ("f64", "prod"),
    ("f32", "argmin"),
];

/// Why random kernels were refused.
#[derive(Default)]
pub struct Refusals(BTreeMap<String, (u32, String)>);

impl Refusals {
    /// Compiles a case; none if it was refused, which is no defect of the compiler.
    pub fn compiled(&mut self, case: u64, source: &str) -> Option<Compiled> {
        let (codes, report) = match finished(source) {
            Ok(kernel) => return Some(kernel),
            Err(refused) => refused,
        };
        assert!(!codes.contains(&Code::TW9001), "case {case}\n{source}\n{report}");
        for code in codes {
            let first = || (0, format!("{source}\n{report}"));
            self.0.entry(format!("{code:?}")).or_insert_with(first).0 += 1;
        }
        None
    }

    /// Prints each code with how often it was met, and the first case.
    pub fn tell(&self) {
        self.0.iter().for_each(|(code, (count, example))| println!("{code}: {count}\n{example}\n"));
    }
}
