//! Counters of a launch: thread instructions by class, memory traffic, branches.

use std::fmt;

/// What an instruction spends its time on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Integer, logic, shift, move, select.
    Integer,
    /// Floating point of at most 32 bits.
    Float,
    /// Double precision.
    Double,
    /// Approximate functions.
    Special,
    /// Conversions.
    Convert,
    /// Loads, stores, atomics.
    Memory,
    /// Barriers, fences, warp operations.
    Sync,
    /// Branches and exits.
    Control,
    /// Products by tensor cores.
    Tensor,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 9] = [
        Class::Integer,
        Class::Float,
        Class::Double,
        Class::Special,
        Class::Convert,
        Class::Memory,
        Class::Sync,
        Class::Control,
        Class::Tensor,
    ];

    fn name(self) -> &'static str {
        match self {
            Class::Integer => "integer",
            Class::Float => "float",
            Class::Double => "double",
            Class::Special => "special",
            Class::Convert => "convert",
            Class::Memory => "memory",
            Class::Sync => "sync",
            Class::Control => "control",
            Class::Tensor => "tensor",
        }
    }
}

/// Traffic of one state space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Warp instructions that loaded.
    pub load_requests: u64,
    /// Warp instructions that stored (atomics count here).
    pub store_requests: u64,
    /// Bytes loaded by threads.
    pub bytes_loaded: u64,
    /// Bytes stored by threads.
    pub bytes_stored: u64,
    /// Global memory: 32-byte sectors touched, summed over requests. Shared memory: wavefronts, the cycles that the
    /// requests take.
    pub transactions: u64,
    /// The least number of transactions for as many bytes: sectors that the bytes fill, or wavefronts without bank
    /// conflicts.
    pub ideal_transactions: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, other: &Traffic) {
        self.load_requests += other.load_requests;
        self.store_requests += other.store_requests;
        self.bytes_loaded += other.bytes_loaded;
        self.bytes_stored += other.bytes_stored;
        self.transactions += other.transactions;
        self.ideal_transactions += other.ideal_transactions;
    }
}

/// Counters of a launch. They do not depend on the number of host threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// CTAs that ran.
    pub ctas: u64,
    /// Warps that ran.
    pub warps: u64,
    /// Instructions issued, once a warp.
    pub warp_instructions: u64,
    /// Instructions executed, once a lane that takes part, in the order of [`Class::ALL`].
    pub thread_instructions: [u64; 9],
    /// Branches that some lanes took and others did not.
    pub divergent_branches: u64,
    /// All other branches.
    pub uniform_branches: u64,
    /// CTA barriers waited at, once a warp.
    pub barriers: u64,
    /// Global memory.
    pub global: Traffic,
    /// Shared memory.
    pub shared: Traffic,
    /// Local memory.
    pub local: Traffic,
    /// Atomic operations, once a lane.
    pub atomics: u64,
}

impl Counters {
    /// Thread instructions of all classes.
    pub fn total(&self) -> u64 {
        self.thread_instructions.iter().sum()
    }

    /// Thread instructions of one class.
    pub fn of(&self, class: Class) -> u64 {
        self.thread_instructions[class as usize]
    }

    /// Wavefronts of shared memory that bank conflicts cost.
    pub fn bank_conflicts(&self) -> u64 {
        self.shared.transactions.saturating_sub(self.shared.ideal_transactions)
    }

    pub(crate) fn add(&mut self, other: &Counters) {
        self.ctas += other.ctas;
        self.warps += other.warps;
        self.warp_instructions += other.warp_instructions;
        for (sum, count) in self.thread_instructions.iter_mut().zip(other.thread_instructions) {
            *sum += count;
        }
        self.divergent_branches += other.divergent_branches;
        self.uniform_branches += other.uniform_branches;
        self.barriers += other.barriers;
        self.global.add(&other.global);
        self.shared.add(&other.shared);
        self.local.add(&other.local);
        self.atomics += other.atomics;
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        writeln!(f, "{}, {}", plural(self.ctas, "block"), plural(self.warps, "warp"))?;
        writeln!(f, "{} thread instructions, {} warp instructions", self.total(), self.warp_instructions)?;
        for class in Class::ALL {
            if self.of(class) > 0 {
                writeln!(f, "  {:<8} {}", class.name(), self.of(class))?;
            }
        }
        writeln!(
            f,
            "{} uniform and {} divergent branches, {} barrier waits",
            self.uniform_branches, self.divergent_branches, self.barriers
        )?;
        let spaces = [
            ("global", &self.global, "sectors"),
            ("shared", &self.shared, "wavefronts"),
            ("local", &self.local, "sectors"),
        ];
        for (name, traffic, unit) in spaces {
            if traffic.load_requests + traffic.store_requests == 0 {
                continue;
            }
            writeln!(
                f,
                "{name}: {} loads of {} bytes, {} stores of {} bytes, {} {unit} (at best {})",
                traffic.load_requests,
                traffic.bytes_loaded,
                traffic.store_requests,
                traffic.bytes_stored,
                traffic.transactions,
                traffic.ideal_transactions
            )?;
        }
        if self.atomics > 0 {
            writeln!(f, "{} atomic operations", self.atomics)?;
        }
        Ok(())
    }
}
