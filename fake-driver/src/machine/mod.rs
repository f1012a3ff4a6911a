//! The machine after the functions: what it holds, and the statuses that its calls give. Calls that concern streams,
//! events and memory are in `streams`, modules, launches and graphs in `modules`, the execution of work in `running`.

mod modules;
mod running;
mod streams;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tilewright_emulator::{Launch, Memory, Program};

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

/// Rows of units in device memory that become a number.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    pub(crate) address: u64,
    /// The bytes of a unit.
    pub(crate) unit: Vec<u8>,
    /// Units of a row.
    pub(crate) width: u64,
    pub(crate) height: u64,
    /// Distance of rows in bytes.
    pub(crate) pitch: u64,
}

/// A node of a graph.
#[derive(Clone, Debug)]
enum Node {
    Launch(Work),
    Fill(Fill),
}

/// Nodes with the positions of those before them.
type Nodes = Vec<(Node, Vec<usize>)>;

/// What a stream holds.
#[derive(Clone, Debug)]
enum Op {
    Launch(Work),
    Graph(Nodes),
    /// Device address, host address, bytes.
    FromHost(u64, usize, usize),
    /// Host address, device address, bytes.
    ToHost(usize, u64, usize),
    /// Device addresses, of the target first, and bytes.
    Between(u64, u64, usize),
    Fill(Fill),
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
    /// While the stream is captured, what was captured.
    capture: Option<Nodes>,
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
    pub(crate) clusters: i32,
    pub(crate) local: i32,
    pub(crate) log: String,
    order: Order,
    random: u64,
    memory: Memory,
    /// Allocated in stream order, and not yet there.
    future: BTreeMap<u64, u64>,
    /// Bytes of page-locked memory of the host by their address.
    host: BTreeMap<usize, usize>,
    /// Copies that were executed, and those of them with page-locked memory.
    copies: [u64; 2],
    streams: BTreeMap<u64, Stream>,
    /// The recording that each event stands for, if it was recorded, with its context.
    events: BTreeMap<u64, (u64, Option<u64>)>,
    recorded: BTreeSet<u64>,
    modules: Vec<Module>,
    functions: Vec<Function>,
    graphs: BTreeMap<u64, Nodes>,
    executables: BTreeMap<u64, Nodes>,
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
            clusters: number("FAKE_CUDA_CLUSTERS", 2) as i32,
            local: number("FAKE_CUDA_LOCAL", 0) as i32,
            log: variable("FAKE_CUDA_LOG").unwrap_or_default(),
            order: match &*order {
                "early" => Order::Early,
                "" | "late" => Order::Late,
                _ => Order::Seed,
            },
            random: order.parse().unwrap_or(0_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            memory: Memory::new(bytes),
            future: BTreeMap::new(),
            host: BTreeMap::new(),
            copies: [0; 2],
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

    /// Bytes allocated, events, streams, bytes of page-locked memory.
    pub(crate) fn live(&self) -> [u64; 4] {
        let streams = self.streams.values().filter(|s| !s.destroyed).count();
        let host: usize = self.host.values().sum();
        [self.memory.used(), self.events.len() as u64, streams as u64, host as u64]
    }

    /// Copies that were executed, and those of them with page-locked memory.
    pub(crate) fn copies(&self) -> [u64; 2] {
        self.copies
    }
}
