//! What a launch tells: findings with their place, and counters.

use crate::trace::Trace;
use std::fmt;

use crate::counters::Counters;

/// Where in the program something happened.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Line of the PTX text.
    pub line: u32,
    /// The instruction as written, without operands.
    pub instruction: String,
    /// The source position that `.loc` gave it: file, line, column.
    pub source: Option<(String, u32, u32)>,
    /// If that is in functions that were inlined: these and where they were called, the innermost first.
    pub inlined: Vec<Inlined>,
}

/// A function that was inlined.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Inlined {
    /// Its name as the compiler has it, which may be mangled; empty if it is not known.
    pub function: String,
    /// Where it was called: file, line, column.
    pub at: (String, u32, u32),
}

impl Place {
    /// Positions in the source from the innermost one outwards: the last is in the kernel itself, or in a function that
    /// was not inlined.
    pub fn stack(&self) -> impl Iterator<Item = &(String, u32, u32)> {
        self.source.iter().chain(self.inlined.iter().map(|inlined| &inlined.at))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (`{}`", self.line, self.instruction)?;
        if let Some((file, line, column)) = &self.source {
            write!(f, ", {file}:{line}:{column}")?;
        }
        for Inlined { at: (file, line, column), .. } in &self.inlined {
            write!(f, ", inlined at {file}:{line}:{column}")?;
        }
        f.write_str(")")
    }
}

/// Which thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Thread {
    /// Block index.
    pub cta: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(f, "block ({x}, {y}, {z}), warp {}, lane {}", self.warp, self.lane)
    }
}

/// What memory an address is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// State space: `global`, `shared`, …
    pub space: &'static str,
    /// The address, within its space.
    pub address: u64,
    /// Bytes accessed.
    pub bytes: u64,
    /// The block whose shared memory it is, in launches with clusters.
    pub cta: Option<[u32; 3]>,
    /// The allocation, extent or variable it is in or nearest to, with the byte offset from its start.
    pub near: Option<Near>,
}

/// An address relative to something with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Near {
    /// Label of the allocation or extent, or name of the variable.
    pub label: String,
    /// Bytes from its start; negative before it.
    pub offset: i128,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes of an element, 0 when unknown.
    pub element: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {} memory at {:#x}", self.bytes, self.space, self.address)?;
        if let Some([x, y, z]) = self.cta {
            write!(f, " of block ({x}, {y}, {z})")?;
        }
        let Some(near) = &self.near else { return Ok(()) };
        let end = near.offset + i128::from(self.bytes);
        let size = i128::from(near.bytes);
        if near.offset < 0 {
            write!(f, ", {} bytes before `{}` of {} bytes", -near.offset, near.label, near.bytes)
        } else if end > size {
            write!(f, ", {} bytes past the end of `{}` of {} bytes", end - size, near.label, near.bytes)
        } else if near.element > 1 {
            let element = i128::from(near.element);
            write!(f, ", `{}` at byte {} (element {})", near.label, near.offset, near.offset / element)
        } else {
            write!(f, ", `{}` at byte {}", near.label, near.offset)
        }
    }
}

/// The other side of a race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Other {
    /// `read`, `write` or `atomic`.
    pub access: &'static str,
    /// Who.
    pub thread: Thread,
    /// Where in the program.
    pub place: Place,
}

/// The kind of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// An access outside every allocation or extent.
    OutOfBounds,
    /// An access to memory that was freed: an allocation, or a block of the device's heap.
    UseAfterFree,
    /// A store to memory that the launch may only read.
    ReadOnlyWrite,
    /// An address that the access width does not divide.
    Misaligned,
    /// A read of a register that the thread never wrote.
    UninitialisedRegister,
    /// A read of memory that nobody wrote.
    UninitialisedRead,
    /// Two threads access the same bytes without an order between them, and one of them writes.
    Race,
    /// Two threads write the same value to the same bytes without an order: wrong by the memory model, harmless in its
    /// result.
    SameValueRace,
    /// A read through the read-only cache of data that this kernel writes.
    StaleRead,
    /// A barrier that some lanes of a warp, or some warps, do not reach.
    BarrierDivergence,
    /// Threads exited while others wait for them at a barrier of the whole block. The PTX manual lets the barrier wait
    /// for all threads of the block (9.7.13.1), the CUDA programming guide for those that have not exited, and so does
    /// hardware.
    ExitBeforeBarrier,
    /// A barrier used against its rules: number, thread count.
    BarrierMisuse,
    /// A warp-level operation against its rules: a lane outside its own member mask, a source lane that does not take
    /// part.
    CollectiveMisuse,
    /// Every thread waits.
    Deadlock,
    /// The instruction budget is used up.
    Livelock,
    /// `trap`, a failed assertion, a call that cannot be made.
    Trap,
    /// The stack of a thread has no room for another call.
    StackOverflow,
    /// A read of the destination of an asynchronous copy before its end was waited for.
    InFlight,
    /// A bulk copy or a product of a warpgroup touches what threads have written without a proxy fence.
    MissingProxyFence,
    /// A bulk copy or product touches what other threads have written, and only its issuer executes a proxy fence,
    /// after the barrier: right by the letter of the memory model, and what Triton emits; the manual's examples have
    /// the writers execute it in front.
    LateProxyFence,
    /// A product of a warpgroup reads what `cp.async` has written without a proxy fence: wrong by the letter of the
    /// manual (9.7.15.6), and what Triton emits and CUTLASS does.
    UnfencedCopy,
    /// A bulk copy against its rules: tensor map, coordinates, size.
    CopyMisuse,
    /// A copy whose end no thread has waited for when its block ended: a bulk copy, or one by the thread itself.
    UnfinishedCopy,
    /// An operation of a cluster against its rules: a rank beyond the cluster.
    ClusterMisuse,
    /// An access to the shared memory of a block of the cluster that may not have started.
    PeerNotStarted,
    /// An access to the shared memory of a block of the cluster that may have exited.
    PeerExited,
    /// A branch with `.uni` that only some of the lanes take that come to it together (PTX manual, `bra`).
    DivergentUniform,
    /// A change of a warpgroup's number of registers against its rules.
    RegisterMisuse,
    /// A product of a warpgroup against its rules: a descriptor, warps that do different things.
    ProductMisuse,
    /// A product of a warpgroup uses a register that was accessed without `wgmma.fence` since.
    MissingProductFence,
    /// An access to a register of a product of a warpgroup that was not waited for.
    RegisterInFlight,
    /// A product of a warpgroup that its warp has not waited for when the block ended.
    UnfinishedProduct,
    /// An access to global memory by a thread of a dependent launch that has not waited for earlier ones.
    BeforeWait,
    /// A block of the device's heap that no kernel has freed. Blocks may live from launch to launch, so that no launch
    /// reports it: see [`crate::Memory::heap_blocks`].
    Leak,
}

impl Kind {
    /// All of them.
    pub const ALL: &[Kind] = &[
        Kind::OutOfBounds,
        Kind::UseAfterFree,
        Kind::ReadOnlyWrite,
        Kind::Misaligned,
        Kind::UninitialisedRegister,
        Kind::UninitialisedRead,
        Kind::Race,
        Kind::SameValueRace,
        Kind::StaleRead,
        Kind::BarrierDivergence,
        Kind::ExitBeforeBarrier,
        Kind::BarrierMisuse,
        Kind::CollectiveMisuse,
        Kind::Deadlock,
        Kind::Livelock,
        Kind::Trap,
        Kind::StackOverflow,
        Kind::InFlight,
        Kind::MissingProxyFence,
        Kind::LateProxyFence,
        Kind::UnfencedCopy,
        Kind::CopyMisuse,
        Kind::UnfinishedCopy,
        Kind::ClusterMisuse,
        Kind::PeerNotStarted,
        Kind::PeerExited,
        Kind::DivergentUniform,
        Kind::RegisterMisuse,
        Kind::ProductMisuse,
        Kind::MissingProductFence,
        Kind::RegisterInFlight,
        Kind::UnfinishedProduct,
        Kind::BeforeWait,
        Kind::Leak,
    ];

    /// Whether a launch with such a finding is wrong. Only [`Kind::SameValueRace`], [`Kind::ExitBeforeBarrier`],
    /// [`Kind::LateProxyFence`] and [`Kind::UnfencedCopy`] are not: hardware does what is meant; and [`Kind::Leak`].
    pub const fn is_failure(self) -> bool {
        use Kind::{ExitBeforeBarrier, LateProxyFence, Leak, SameValueRace, UnfencedCopy};
        !matches!(self, SameValueRace | ExitBeforeBarrier | LateProxyFence | UnfencedCopy | Leak)
    }

    /// What it is, in words.
    pub const fn title(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "access out of bounds",
            Kind::UseAfterFree => "use after free",
            Kind::ReadOnlyWrite => "write to read-only memory",
            Kind::Misaligned => "misaligned access",
            Kind::UninitialisedRegister => "read of a register that was never written",
            Kind::UninitialisedRead => "read of uninitialised memory",
            Kind::Race => "data race",
            Kind::SameValueRace => "data race of equal values",
            Kind::StaleRead => "read-only load of data written by this kernel",
            Kind::BarrierDivergence => "barrier in divergent code",
            Kind::ExitBeforeBarrier => "threads exited before a barrier that waits for them",
            Kind::BarrierMisuse => "barrier misused",
            Kind::CollectiveMisuse => "warp operation misused",
            Kind::Deadlock => "deadlock",
            Kind::Livelock => "no progress within the instruction budget",
            Kind::Trap => "trap",
            Kind::StackOverflow => "stack overflow",
            Kind::InFlight => "read of data that an asynchronous copy has not delivered",
            Kind::MissingProxyFence => "asynchronous access to data written without a proxy fence",
            Kind::LateProxyFence => "proxy fence by the thread of the asynchronous access, not by those that wrote",
            Kind::UnfencedCopy => "product of data copied by `cp.async` without a proxy fence",
            Kind::CopyMisuse => "bulk copy misused",
            Kind::UnfinishedCopy => "copy that nobody waited for",
            Kind::ClusterMisuse => "cluster operation misused",
            Kind::PeerNotStarted => "access to a block of the cluster that may not have started",
            Kind::PeerExited => "access to a block of the cluster that may have exited",
            Kind::DivergentUniform => "lanes part at a branch that is said to be uniform",
            Kind::RegisterMisuse => "register reallocation misused",
            Kind::ProductMisuse => "product of a warpgroup misused",
            Kind::MissingProductFence => "product of a warpgroup without a fence for its registers",
            Kind::RegisterInFlight => "access to a register of a product that is under way",
            Kind::UnfinishedProduct => "product of a warpgroup that was not waited for",
            Kind::Leak => "block of the heap that was never freed",
            Kind::BeforeWait => "access to global memory before earlier launches were waited for",
        }
    }
}

/// Something wrong that a kernel did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// Name of the kernel.
    pub kernel: String,
    /// Which instruction.
    pub place: Place,
    /// Which thread; the first one of several.
    pub thread: Thread,
    /// Which memory, if it is about memory.
    pub location: Option<Location>,
    /// The other side of a race.
    pub other: Option<Other>,
    /// More facts, with numbers; may be empty.
    pub detail: String,
    /// Whether the kernel was stopped by it.
    pub fatal: bool,
    /// How often it happened at this instruction.
    pub count: u64,
}

impl Finding {
    /// Whether another one says the same of other threads: kind and instructions are equal.
    pub fn is_like(&self, other: &Finding) -> bool {
        let side = |finding: &Finding| finding.other.as_ref().map(|other| (other.access, other.place.clone()));
        self.kind == other.kind && self.kernel == other.kernel && self.place == other.place && side(self) == side(other)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in kernel `{}`, {}\n  {}", self.kind.title(), self.kernel, self.place, self.thread)?;
        if let Some(location) = &self.location {
            write!(f, ": {location}")?;
        }
        if let Some(other) = &self.other {
            let article = if other.access.starts_with('a') { "an" } else { "a" };
            let Other { access, place, thread } = other;
            write!(f, "\n  the other access is {article} {access} at {place}\n  by {thread}")?;
        }
        if !self.detail.is_empty() {
            write!(f, "\n  {}", self.detail)?;
        }
        if self.count > 1 {
            write!(f, "\n  {} times at this instruction", self.count)?;
        }
        if self.fatal { f.write_str("\n  the kernel was stopped") } else { Ok(()) }
    }
}

/// What a launch did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// What went wrong, one entry an instruction and kind, in the order of happening on one thread.
    pub findings: Vec<Finding>,
    /// Findings beyond the first 64 distinct ones, which are not kept.
    pub dropped: u64,
    /// What was executed.
    pub counters: Counters,
    /// What the kernel printed with `printf`: at most 1 MiB, the same for the same seed. Texts of different threads
    /// have no order.
    pub printed: String,
    /// What happened in the first cluster, if that was asked for: see [`crate::Options::trace`].
    pub trace: Option<Trace>,
}

impl Report {
    /// Whether nothing failed; races of equal values are allowed.
    pub fn is_clean(&self) -> bool {
        self.dropped == 0 && !self.findings.iter().any(|finding| finding.kind.is_failure())
    }

    /// The finding that stopped the kernel.
    pub fn trap(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.fatal)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        if self.dropped > 0 {
            writeln!(f, "and {} more findings", self.dropped)?;
        }
        self.counters.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn every_kind_is_in_the_list() {
        for (at, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at, "{kind:?}");
        }
        assert_eq!(Kind::ALL.last(), Some(&Kind::Leak), "the last one");
    }
}
