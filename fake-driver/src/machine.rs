//! The machine after the functions: streams, events, memory, modules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tilewright_emulator::{Arg, Kind, Launch, Memory, Options, Program};
use tilewright_kernel::cluster::{PORTABLE_CLUSTER, check_cluster};

use crate::api::{copy_from_host, copy_to_host};

/// A result of the driver, by its number in `cuda.h`.
pub(crate) type Status = u32;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const INVALID_VALUE: Status = 1;
pub(crate) const OUT_OF_MEMORY: Status = 2;
pub(crate) const NO_DEVICE: Status = 100;
pub(crate) const INVALID_DEVICE: Status = 101;
pub(crate) const INVALID_CONTEXT: Status = 201;
pub(crate) const NO_BINARY_FOR_GPU: Status = 209;
pub(crate) const INVALID_PTX: Status = 218;
pub(crate) const UNSUPPORTED_PTX_VERSION: Status = 222;
pub(crate) const NOT_FOUND: Status = 500;
pub(crate) const NOT_READY: Status = 600;
pub(crate) const ILLEGAL_ADDRESS: Status = 700;
pub(crate) const LAUNCH_FAILED: Status = 719;
pub(crate) const INVALID_CLUSTER_SIZE: Status = 912;

/// Dynamic shared memory that needs no opting in.
const SHARED_DEFAULT: u32 = 48 << 10;
/// Dynamic shared memory that a block can have after opting in.
pub(crate) const SHARED_MOST: u32 = 227 << 10;

/// When work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Early,
    Late,
    Seed,
}

/// A kernel launch with its parameters copied, as the driver copies them.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    function: u64,
    program: Program,
    pub(crate) launch: Launch,
}

/// What a stream holds.
#[derive(Clone, Debug)]
enum Op {
    Launch(Work),
    /// Nodes with the positions of those before them.
    Graph(Vec<(Work, Vec<usize>)>),
    /// Device address, host address, bytes.
    FromHost(u64, usize, usize),
    /// Host address, device address, bytes.
    ToHost(usize, u64, usize),
    Fill(u64, u8, u64),
    Allocate(u64),
    Free(u64),
    /// A recording of an event; events that are recorded again get another number.
    Record(u64),
    Wait(u64),
}

#[derive(Debug, Default)]
struct Stream {
    context: u64,
    queue: VecDeque<Op>,
    destroyed: bool,
}

/// A loaded module.
#[derive(Debug)]
struct Module {
    program: Program,
    /// Bytes of each parameter of each entry point.
    entries: BTreeMap<String, Vec<usize>>,
}

#[derive(Debug)]
struct Function {
    module: usize,
    name: String,
    shared: u32,
    /// Whether clusters of more than 8 blocks are allowed.
    any_cluster: bool,
}

/// One for the process.
pub(crate) struct Machine {
    pub(crate) devices: i32,
    pub(crate) capability: i32,
    pub(crate) version: i32,
    pub(crate) pools: bool,
    pub(crate) bytes: u64,
    order: Order,
    random: u64,
    memory: Memory,
    /// Allocated in stream order, and not yet there.
    future: BTreeMap<u64, u64>,
    streams: BTreeMap<u64, Stream>,
    /// The recording that each event stands for, if it was recorded, with its context.
    events: BTreeMap<u64, (u64, Option<u64>)>,
    recorded: BTreeSet<u64>,
    modules: Vec<Module>,
    functions: Vec<Function>,
    graphs: BTreeMap<u64, Vec<(Work, Vec<usize>)>>,
    executables: BTreeMap<u64, Vec<(Work, Vec<usize>)>>,
    /// The graph that a node was added to last: nodes are numbered in their graphs.
    newest: u64,
    next: u64,
    /// The error that a fault left behind: every later call returns it.
    failed: Status,
}

/// What a real driver leaves undefined.
pub(crate) fn abort(what: &str) -> ! {
    eprintln!("fake driver: {what}");
    std::process::abort()
}

/// The machine, locked for one call.
pub(crate) fn machine() -> MutexGuard<'static, Machine> {
    static MACHINE: OnceLock<Mutex<Machine>> = OnceLock::new();
    MACHINE.get_or_init(|| Mutex::new(Machine::new())).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    fn new() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let number = |name: &str, default: u64| variable(name).and_then(|v| v.parse().ok()).unwrap_or(default);
        let order = variable("FAKE_CUDA_ORDER").unwrap_or_default();
        let bytes = number("FAKE_CUDA_MEMORY", 1 << 30);
        Self {
            devices: number("FAKE_CUDA_DEVICES", 1) as i32,
            capability: number("FAKE_CUDA_CAPABILITY", 90) as i32,
            version: number("FAKE_CUDA_VERSION", 12080) as i32,
            pools: number("FAKE_CUDA_POOLS", 1) != 0,
            bytes,
            order: match &*order {
                "early" => Order::Early,
                "" | "late" => Order::Late,
                _ => Order::Seed,
            },
            random: order.parse().unwrap_or(0_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            memory: Memory::new(bytes),
            future: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            recorded: BTreeSet::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            graphs: BTreeMap::new(),
            executables: BTreeMap::new(),
            newest: 0,
            next: 0,
            failed: SUCCESS,
        }
    }

    /// A handle that no other object has or had.
    fn handle(&mut self) -> u64 {
        self.next += 1;
        0x1000_0000 + 0x10 * self.next
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % below.max(1)
    }

    pub(crate) fn failed(&self) -> Status {
        self.failed
    }

    /// Bytes allocated, events, streams.
    pub(crate) fn live(&self) -> [u64; 3] {
        let streams = self.streams.values().filter(|s| !s.destroyed).count();
        [self.memory.used(), self.events.len() as u64, streams as u64]
    }

    // Streams and events.

    pub(crate) fn stream_create(&mut self, context: u64) -> u64 {
        let handle = self.handle();
        self.streams.insert(handle, Stream { context, ..Stream::default() });
        handle
    }

    /// The live stream with this handle; 0 is the legacy stream of the context.
    fn stream(&mut self, handle: u64, context: u64) -> &mut Stream {
        if handle == 0 {
            return self.streams.entry(context).or_insert(Stream { context, ..Stream::default() });
        }
        match self.streams.get_mut(&handle) {
            Some(stream) if stream.destroyed => abort("a stream is used after its end"),
            Some(stream) if stream.context != context => abort("a stream is used while another context is current"),
            Some(stream) => stream,
            None => abort(&format!("{handle:#x} is no stream")),
        }
    }

    /// The driver lets pending work finish.
    pub(crate) fn stream_destroy(&mut self, handle: u64, context: u64) {
        self.stream(handle, context).destroyed = true;
    }

    pub(crate) fn event_create(&mut self, context: u64) -> u64 {
        let handle = self.handle();
        self.events.insert(handle, (context, None));
        handle
    }

    fn event(&mut self, handle: u64) -> &mut (u64, Option<u64>) {
        self.events.get_mut(&handle).unwrap_or_else(|| abort(&format!("{handle:#x} is no live event")))
    }

    pub(crate) fn event_destroy(&mut self, handle: u64) {
        self.event(handle);
        self.events.remove(&handle);
    }

    pub(crate) fn event_record(&mut self, event: u64, stream: u64, context: u64) {
        let recording = self.handle();
        let known = self.event(event);
        if known.0 != context {
            abort("an event is recorded on a stream of another context");
        }
        known.1 = Some(recording);
        self.push(stream, context, Op::Record(recording));
    }

    pub(crate) fn event_query(&mut self, event: u64) -> Status {
        let recording = self.event(event).1;
        let done = recording.is_none_or(|r| self.recorded.contains(&r));
        if done { SUCCESS } else { NOT_READY }
    }

    pub(crate) fn event_synchronize(&mut self, event: u64) -> Status {
        if let Some(recording) = self.event(event).1 {
            self.until_recorded(recording);
        }
        self.failed
    }

    /// An event that was never recorded is waited for at once.
    pub(crate) fn stream_wait(&mut self, stream: u64, event: u64, context: u64) {
        if let Some(recording) = self.event(event).1 {
            self.push(stream, context, Op::Wait(recording));
        }
    }

    pub(crate) fn stream_synchronize(&mut self, stream: u64, context: u64) -> Status {
        let key = if stream == 0 { context } else { stream };
        self.stream(stream, context);
        self.until_empty(key);
        self.failed
    }

    pub(crate) fn context_synchronize(&mut self, context: u64) -> Status {
        let keys: Vec<u64> = self.streams.iter().filter(|(_, s)| s.context == context).map(|(k, _)| *k).collect();
        for key in keys {
            self.until_empty(key);
        }
        self.failed
    }

    // Memory.

    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64, Status> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        self.memory.alloc(bytes, "cuMemAlloc").map_err(|_| OUT_OF_MEMORY)
    }

    pub(crate) fn allocate_async(&mut self, bytes: u64, stream: u64, context: u64) -> Result<u64, Status> {
        let address = self.allocate(bytes)?;
        self.future.insert(address, bytes);
        self.push(stream, context, Op::Allocate(address));
        Ok(address)
    }

    /// The driver waits for all work of the context before it frees.
    pub(crate) fn free(&mut self, address: u64, context: u64) -> Status {
        self.context_synchronize(context);
        if self.memory.free(address).is_err() { INVALID_VALUE } else { self.failed }
    }

    pub(crate) fn free_async(&mut self, address: u64, stream: u64, context: u64) {
        self.push(stream, context, Op::Free(address));
    }

    pub(crate) fn copy_in(&mut self, device: u64, host: usize, bytes: usize, stream: u64, context: u64) {
        self.push(stream, context, Op::FromHost(device, host, bytes));
    }

    pub(crate) fn copy_out(&mut self, host: usize, device: u64, bytes: usize, stream: u64, context: u64) {
        self.push(stream, context, Op::ToHost(host, device, bytes));
    }

    pub(crate) fn fill(&mut self, device: u64, value: u8, bytes: u64, stream: u64, context: u64) {
        self.push(stream, context, Op::Fill(device, value, bytes));
    }

    // Modules, launches, graphs.

    /// Loads PTX text: the module, or the status with the assembler's log.
    pub(crate) fn load(&mut self, text: &str) -> Result<u64, (Status, String)> {
        let module = tilewright_ptx::load(text).map_err(|e| (INVALID_PTX, e.to_string()))?;
        let driver = module.version.minimum_driver().map_or(0, |v| v as i32);
        if driver > self.version {
            return Err((UNSUPPORTED_PTX_VERSION, format!("Unsupported .version {}", module.version)));
        }
        let needed: String = module.target.to_string().chars().filter(char::is_ascii_digit).collect();
        if needed.parse().unwrap_or(0) > self.capability {
            return Err((NO_BINARY_FOR_GPU, format!("target {} is newer than the device", module.target)));
        }
        let program = Program::parse(text).map_err(|e| (INVALID_PTX, e.to_string()))?;
        let mut entries = BTreeMap::new();
        for name in program.entries() {
            let Some(function) = module.function(name) else { continue };
            let bytes = function.params.iter().map(|p| p.bytes().unwrap_or(0) as usize).collect();
            entries.insert(name.to_owned(), bytes);
        }
        self.modules.push(Module { program, entries });
        Ok(self.modules.len() as u64)
    }

    pub(crate) fn function(&mut self, module: u64, name: &str) -> Option<u64> {
        let module = (module as usize).wrapping_sub(1);
        let known = self.modules.get(module).unwrap_or_else(|| abort("no such module"));
        known.entries.get(name)?;
        self.functions.push(Function { module, name: name.to_owned(), shared: SHARED_DEFAULT, any_cluster: false });
        Some(self.functions.len() as u64)
    }

    fn function_of(&mut self, function: u64) -> &mut Function {
        self.functions.get_mut((function as usize).wrapping_sub(1)).unwrap_or_else(|| abort("no such function"))
    }

    pub(crate) fn allow_shared(&mut self, function: u64, bytes: u32) -> Status {
        self.function_of(function).shared = bytes;
        if bytes > SHARED_MOST { INVALID_VALUE } else { SUCCESS }
    }

    pub(crate) fn allow_any_cluster(&mut self, function: u64, allow: bool) -> Status {
        self.function_of(function).any_cluster = allow;
        SUCCESS
    }

    /// A launch in clusters of this shape.
    pub(crate) fn in_clusters(&mut self, work: Work, cluster: [u32; 3]) -> Result<Work, Status> {
        let any = self.function_of(work.function).any_cluster;
        let blocks: u32 = cluster.iter().product();
        match check_cluster(work.launch.grid, cluster) {
            Ok(()) if self.capability >= 90 && (any || blocks <= PORTABLE_CLUSTER) => {
                Ok(Work { launch: Launch { cluster: Some(cluster), ..work.launch }, ..work })
            }
            _ => Err(INVALID_CLUSTER_SIZE),
        }
    }

    /// Bytes of each parameter.
    pub(crate) fn parameters(&mut self, function: u64) -> Vec<usize> {
        let Function { module, name, .. } = self.function_of(function);
        let (module, name) = (*module, name.clone());
        self.modules[module].entries.get(&name).cloned().unwrap_or_default()
    }

    /// A launch with its parameters, which the driver copies when it is called.
    pub(crate) fn work(
        &mut self,
        function: u64,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        args: Vec<Vec<u8>>,
    ) -> Result<Work, Status> {
        let Function { module, name, shared: most, .. } = self.function_of(function);
        let (module, entry, most) = (*module, name.clone(), *most);
        let threads = block.iter().product::<u32>();
        if grid.contains(&0) || threads == 0 || threads > 1024 || shared > most || grid[0] > i32::MAX as u32 {
            return Err(INVALID_VALUE);
        }
        let args = args.into_iter().map(Arg).collect();
        let launch = Launch { entry, grid, block, dynamic_shared: shared, args, ..Launch::default() };
        Ok(Work { function, program: self.modules[module].program.clone(), launch })
    }

    pub(crate) fn launch(&mut self, work: Work, stream: u64, context: u64) {
        self.push(stream, context, Op::Launch(work));
    }

    pub(crate) fn graph_create(&mut self) -> u64 {
        let handle = self.handle();
        self.graphs.insert(handle, Vec::new());
        handle
    }

    fn graph(&mut self, graph: u64) -> &mut Vec<(Work, Vec<usize>)> {
        self.graphs.get_mut(&graph).unwrap_or_else(|| abort("no such graph"))
    }

    /// A node is its position, counted from 1.
    pub(crate) fn graph_add(&mut self, graph: u64, work: Work, after: Vec<usize>) -> u64 {
        self.newest = graph;
        let nodes = self.graph(graph);
        if after.iter().any(|&n| n == 0 || n > nodes.len()) {
            abort("a node comes after one that is not in its graph");
        }
        nodes.push((work, after.iter().map(|n| n - 1).collect()));
        nodes.len() as u64
    }

    /// Gives a node of the graph that was added to last a cluster.
    pub(crate) fn node_cluster(&mut self, node: u64, cluster: [u32; 3]) -> Status {
        let graph = self.newest;
        let at = (node as usize).wrapping_sub(1);
        let Some(work) = self.graph(graph).get(at).map(|(work, _)| work.clone()) else { return INVALID_VALUE };
        match self.in_clusters(work, cluster) {
            Ok(work) => {
                self.graph(graph)[at].0 = work;
                SUCCESS
            }
            Err(status) => status,
        }
    }

    pub(crate) fn graph_instantiate(&mut self, graph: u64) -> u64 {
        let nodes = self.graph(graph).clone();
        let handle = self.handle();
        self.executables.insert(handle, nodes);
        handle
    }

    pub(crate) fn graph_destroy(&mut self, graph: u64) {
        self.graph(graph);
        self.graphs.remove(&graph);
    }

    pub(crate) fn executable_destroy(&mut self, executable: u64) {
        if self.executables.remove(&executable).is_none() {
            abort("no such executable graph");
        }
    }

    pub(crate) fn graph_launch(&mut self, executable: u64, stream: u64, context: u64) {
        let nodes = self.executables.get(&executable).unwrap_or_else(|| abort("no such executable graph")).clone();
        self.push(stream, context, Op::Graph(nodes));
    }

    // Running.

    fn push(&mut self, stream: u64, context: u64, op: Op) {
        self.stream(stream, context).queue.push_back(op);
        match self.order {
            Order::Late => {}
            Order::Early => self.drain(),
            Order::Seed => {
                for _ in 0..self.draw(3) {
                    let ready = self.ready();
                    if !ready.is_empty() {
                        let stream = ready[self.draw(ready.len())];
                        self.step(stream);
                    }
                }
            }
        }
    }

    /// Streams whose next operation can run.
    fn ready(&self) -> Vec<u64> {
        let can = |op: &Op| !matches!(op, Op::Wait(recording) if !self.recorded.contains(recording));
        self.streams.iter().filter(|(_, s)| s.queue.front().is_some_and(can)).map(|(k, _)| *k).collect()
    }

    /// Runs whatever can run.
    fn drain(&mut self) {
        while let Some(&stream) = self.ready().first() {
            self.step(stream);
        }
    }

    fn until_empty(&mut self, stream: u64) {
        while self.streams.get(&stream).is_some_and(|s| !s.queue.is_empty()) {
            self.advance(stream);
        }
    }

    fn until_recorded(&mut self, recording: u64) {
        while !self.recorded.contains(&recording) {
            self.advance(self.recorder(recording));
        }
    }

    /// The stream that will record.
    fn recorder(&self, recording: u64) -> u64 {
        let records = |op: &Op| matches!(op, Op::Record(r) if *r == recording);
        let found = self.streams.iter().find(|(_, s)| s.queue.iter().any(records));
        found.map_or_else(|| abort("work waits for an event that nothing records"), |(k, _)| *k)
    }

    /// One operation towards the end of a stream; with a seed, perhaps of another stream.
    fn advance(&mut self, mut stream: u64) {
        if self.order == Order::Seed {
            let ready = self.ready();
            if ready.is_empty() {
                abort("deadlock: every stream waits for an event");
            }
            stream = ready[self.draw(ready.len())];
        } else {
            let mut hops = 0;
            while let Some(Op::Wait(recording)) = self.streams.get(&stream).and_then(|s| s.queue.front())
                && !self.recorded.contains(recording)
            {
                stream = self.recorder(*recording);
                hops += 1;
                if hops > self.streams.len() {
                    abort("deadlock: streams wait for each other's events");
                }
            }
        }
        self.step(stream);
    }

    fn step(&mut self, stream: u64) {
        let Some(op) = self.streams.get_mut(&stream).and_then(|s| s.queue.pop_front()) else { return };
        // After a fault nothing runs, but what waits is let go.
        let runs = self.failed == SUCCESS;
        match op {
            Op::Record(recording) => {
                self.recorded.insert(recording);
            }
            Op::Wait(_) => {}
            _ if !runs => {}
            Op::Launch(work) => self.run(&work),
            Op::Graph(nodes) => self.run_graph(&nodes),
            Op::FromHost(device, host, bytes) => {
                self.present(device, "a copy");
                let copied = self.memory.write(device, &copy_from_host(host, bytes));
                self.fault(copied.is_err(), ILLEGAL_ADDRESS);
            }
            Op::ToHost(host, device, bytes) => {
                self.present(device, "a copy");
                let mut data = vec![0; bytes];
                let copied = self.memory.read(device, &mut data);
                self.fault(copied.is_err(), ILLEGAL_ADDRESS);
                copy_to_host(host, &data);
            }
            Op::Fill(device, value, bytes) => {
                self.present(device, "a fill");
                let filled = self.memory.fill(device, bytes, value);
                self.fault(filled.is_err(), ILLEGAL_ADDRESS);
            }
            Op::Allocate(address) => {
                self.future.remove(&address);
            }
            Op::Free(address) => {
                self.present(address, "a release");
                if self.memory.free(address).is_err() {
                    abort("memory is freed twice");
                }
            }
        }
    }

    fn fault(&mut self, happened: bool, status: Status) {
        if happened && self.failed == SUCCESS {
            self.failed = status;
        }
    }

    /// Stream-ordered memory is there only after its allocation was executed.
    fn present(&self, address: u64, what: &str) {
        let before = self.future.range(..=address).next_back();
        if before.is_some_and(|(base, bytes)| address < base + bytes) {
            abort(&format!("{what} of memory before its allocation in stream order"));
        }
    }

    fn run(&mut self, work: &Work) {
        for Arg(bytes) in &work.launch.args {
            if let Ok(address) = <[u8; 8]>::try_from(&**bytes) {
                self.present(u64::from_le_bytes(address), "a launch");
            }
        }
        match work.program.launch(&work.launch, &self.memory, &Options::default()) {
            Ok(report) => {
                if let Some(finding) = report.findings.iter().find(|f| f.kind.is_failure()) {
                    eprintln!("fake driver: {finding}");
                    let outside = matches!(finding.kind, Kind::OutOfBounds | Kind::ReadOnlyWrite | Kind::Misaligned);
                    self.fault(true, if outside { ILLEGAL_ADDRESS } else { LAUNCH_FAILED });
                }
            }
            Err(error) => {
                eprintln!("fake driver: {error}");
                self.fault(true, LAUNCH_FAILED);
            }
        }
    }

    /// Any order that the edges allow: the latest node first.
    fn run_graph(&mut self, nodes: &[(Work, Vec<usize>)]) {
        let mut done = vec![false; nodes.len()];
        for _ in 0..nodes.len() {
            let ready: Vec<usize> =
                (0..nodes.len()).filter(|&n| !done[n] && nodes[n].1.iter().all(|&before| done[before])).collect();
            let pick = if self.order == Order::Seed { self.draw(ready.len()) } else { ready.len() - 1 };
            let node = ready[pick];
            done[node] = true;
            self.run(&nodes[node].0);
        }
    }
}
