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

/// Operations of one kind of instruction, as hardware counters have them: a sum, a difference and a product are one
/// each, a fused multiply-add two; minima, comparisons and conversions are none. Of a packed instruction each part
/// counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arithmetic {
    /// Instructions, once a lane: what the unit's lanes are busy with.
    pub instructions: u64,
    /// Operations.
    pub operations: u64,
}

/// What the factors of a product by tensor cores are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Factor {
    /// f16 or bf16: tensor cores multiply both at one rate.
    Half,
    /// tf32.
    Tf32,
    /// e4m3 or e5m2.
    Float8,
    /// Integers of 8 bits.
    Int8,
    /// f64.
    F64,
    /// Integers of 4 bits, single bits.
    Narrow,
}

impl Factor {
    /// Every kind of factor.
    pub const ALL: [Factor; 6] =
        [Factor::Half, Factor::Tf32, Factor::Float8, Factor::Int8, Factor::F64, Factor::Narrow];

    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Factor::Half => "half",
            Factor::Tf32 => "tf32",
            Factor::Float8 => "float8",
            Factor::Int8 => "int8",
            Factor::F64 => "f64",
            Factor::Narrow => "narrow",
        }
    }
}

/// What units of arithmetic have to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// f32.
    pub f32: Arithmetic,
    /// f16 and bf16.
    pub half: Arithmetic,
    /// f64.
    pub f64: Arithmetic,
    /// Approximate functions, once a lane. A quotient, reciprocal or root that is rounded correctly is one as well: it
    /// starts from an approximate one, and its other instructions are not counted.
    pub special: u64,
    /// Operations of tensor cores by [`Factor::ALL`]: two for each product of two elements, since it is added.
    pub tensor: [u64; 6],
}

impl Work {
    /// Operations of tensor cores on one kind of factor.
    pub fn of(&self, factor: Factor) -> u64 {
        self.tensor[factor as usize]
    }

    /// Operations of all units.
    pub fn operations(&self) -> u64 {
        let Work { f32, half, f64, special, tensor } = self;
        f32.operations + half.operations + f64.operations + special + tensor.iter().sum::<u64>()
    }
}

/// Bulk and tensor copies between global memory and shared memory one way. They are part of [`Counters::global`] and
/// [`Counters::shared`] as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bulk {
    /// Copies; one that several blocks receive is one.
    pub copies: u64,
    /// Bytes of the boxes or runs, with what lies outside of the tensor.
    pub whole_bytes: u64,
    /// Bytes inside of the tensor: what global memory is asked for.
    pub bytes: u64,
    /// Bytes of shared memory that they fill or read: whole ones, once for each block that receives them.
    pub shared_bytes: u64,
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
    /// Bytes that `cp.async` has asked global memory for: part of [`Self::global`].
    pub fetched_bytes: u64,
    /// Bulk copies to shared memory.
    pub bulk_loads: Bulk,
    /// Bulk copies from shared memory.
    pub bulk_stores: Bulk,
    /// What units of arithmetic had to do.
    pub work: Work,
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

    /// All numbers, always in one order.
    fn numbers(&mut self) -> Vec<&mut u64> {
        let Counters {
            ctas,
            warps,
            warp_instructions,
            thread_instructions,
            divergent_branches,
            uniform_branches,
            barriers,
            global,
            shared,
            local,
            atomics,
            fetched_bytes,
            bulk_loads,
            bulk_stores,
            work,
        } = self;
        let mut all = vec![ctas, warps, warp_instructions, divergent_branches, uniform_branches, barriers];
        all.extend(thread_instructions);
        for traffic in [global, shared, local] {
            let Traffic { load_requests, store_requests, bytes_loaded, bytes_stored, transactions, ideal_transactions } =
                traffic;
            all.extend([load_requests, store_requests, bytes_loaded, bytes_stored, transactions, ideal_transactions]);
        }
        all.extend([atomics, fetched_bytes]);
        for Bulk { copies, whole_bytes, bytes, shared_bytes } in [bulk_loads, bulk_stores] {
            all.extend([copies, whole_bytes, bytes, shared_bytes]);
        }
        let Work { f32, half, f64, special, tensor } = work;
        for Arithmetic { instructions, operations } in [f32, half, f64] {
            all.extend([instructions, operations]);
        }
        all.push(special);
        all.extend(tensor);
        all
    }

    /// Adds other ones, number by number.
    pub fn add(&mut self, other: &Counters) {
        let mut other = other.clone();
        for (sum, more) in self.numbers().into_iter().zip(other.numbers()) {
            *sum += *more;
        }
    }

    /// Adds the work of an instruction that this many lanes have executed, or warps if it is a product.
    pub(crate) fn add_work(&mut self, work: &Work, times: u64) {
        self.add(&Counters { work: *work, ..Counters::default() }.scaled(times, 1));
    }

    /// `of` such launches where `counted` were counted, each number rounded to the nearest.
    pub fn scaled(&self, of: u64, counted: u64) -> Counters {
        let mut all = self.clone();
        let counted = u128::from(counted.max(1));
        for number in all.numbers() {
            let scaled = (u128::from(*number) * u128::from(of) + counted / 2) / counted;
            *number = u64::try_from(scaled).unwrap_or(u64::MAX);
        }
        all
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
