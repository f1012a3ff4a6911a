//! Accesses of memory by threads, and copies.

use std::ops::RangeInclusive;

use tilewright_kernel::target::WARP;

use super::agent::Active;
use super::barriers::Groups;
use super::blocks::{Touch, Workspaces};
use super::global::{Access, Actor, Sees};
use super::order::View;
use super::row::{Known, Row};
use super::run::{Outcome, Run};
use super::shared::Fault;
use super::violation::Kind;
use crate::kernel_ir::{
    BufferId, CpAsync, Kernel, Load, LoadMatrix, Matrices, Memory, Op, Store, StoreMatrix, Type, ValueId,
};

/// Alignment of tiles in shared memory, in bytes (PTX manual, tensor copies).
pub(super) const TILE_ALIGNMENT: u64 = 128;
/// Alignment of runs on both sides, and the longest vector of one instruction.
pub(super) const GRANULE: u64 = 16;

/// What an agent knows of accesses of other blocks, and of other agents of its own; clusters have so many blocks.
pub(super) fn sees((workspaces, blocks): (&Workspaces, i64), view: View<'_>, own: Access, other: &Access) -> bool {
    // Blocks of a cluster count time together.
    let told = other.block / blocks == own.block / blocks && other.time < view.clock.of(other.by).written;
    told || match other.block == own.block {
        true => matches!(own.actor, Actor::Thread(_)) && own.actor == other.actor,
        false => workspaces.sees(own.actor, other),
    }
}

/// What the memory is called, for messages.
pub(super) fn name(kernel: &Kernel, memory: Memory) -> &str {
    match memory {
        Memory::Parameter(p) => &kernel.signature.parameters[usize::from(p)].name,
        Memory::Buffer(b) => &kernel.buffers[b.index()].name,
        Memory::Workspace(w) => &kernel.workspaces[usize::from(w)].name,
    }
}

/// The width of an access of so many bytes divides the address of its memory, and where it begins in it; or it does
/// not.
pub(super) fn misaligned(memory: u64, begin: u64, bytes: u64) -> Option<Fault> {
    let width = bytes.min(GRANULE);
    let divides = memory.is_multiple_of(width) && begin.is_multiple_of(width);
    (!divides).then(|| (Kind::Misaligned, format!("its address is no multiple of {width}")))
}

/// Where the element is that a thread has in a value with a number, of matrices whose rows are known.
fn place(matrices: &Matrices, rows: &[Known], thread: usize, value: u32) -> Option<i64> {
    let lane = thread % WARP as usize;
    let (row, element) = matrices.source(lane as u32, value);
    Some(rows.get(thread - lane + row as usize).copied().flatten()? + i64::from(element))
}

impl Run<'_> {
    pub(super) fn name(&self, memory: Memory) -> &str {
        name(self.kernel, memory)
    }

    /// The offset of a thread's access, if it is known and fits its type.
    pub(super) fn offset(
        &mut self,
        memory: Memory,
        offset: ValueId,
        thread: usize,
        active: &Active,
    ) -> Outcome<Option<i64>> {
        let known = self.me.values[offset.index()].of(thread);
        match known {
            None => self.depends(format!("where thread {thread} accesses `{}` depends on data", self.name(memory))),
            Some(at) if self.kernel.value(offset).ty == Type::I32 && i32::try_from(at).is_err() => {
                let name = self.name(memory);
                let what = format!("thread {thread} accesses `{name}[{at}]`, and the offset has 32 bits");
                self.wrong(active, (Kind::Wide, what))?;
                return Ok(None);
            }
            _ => {}
        }
        Ok(known)
    }

    /// One access by a thread of neighbouring elements.
    pub(super) fn access(
        &mut self,
        memory: Memory,
        at: i64,
        lanes: u32,
        thread: usize,
        active: &Active,
        touch: Touch,
    ) -> Outcome {
        self.access_in(self.me.id.rank, memory, at, lanes, thread, active, touch)
    }

    /// The same in a block of the cluster.
    #[expect(clippy::too_many_arguments, reason = "what an access is")]
    fn access_in(
        &mut self,
        rank: u8,
        memory: Memory,
        at: i64,
        lanes: u32,
        thread: usize,
        active: &Active,
        touch: Touch,
    ) -> Outcome {
        let write = touch != Touch::Read;
        self.spend(u64::from(lanes))?;
        let bytes = self.kernel.element(memory).map_or(1, |e| u64::from(e.bytes()));
        let whole = u64::from(lanes) * bytes;
        let (agent, order) = (thread as u32, self.me.order);
        let mut result = Ok(());
        match memory {
            Memory::Parameter(p) => {
                let Some(elements) = &mut self.tensors[usize::from(p)] else { return Ok(()) };
                let access =
                    Access { block: self.me.block, by: self.me.id, actor: Actor::Thread(agent), time: order.now };
                let (shared, view) = (&self.shared, self.me.view());
                let others = (&self.workspaces, i64::from(self.kernel.signature.cluster));
                let sees: Sees<'_> = &|other| sees(others, view, access, other);
                for lane in 0..i64::from(lanes) {
                    let one = match touch {
                        Touch::Update => elements.update(at + lane),
                        Touch::Write(_) => {
                            elements.write(at + lane, access, view, |copy| shared.is_over(copy, view), sees)
                        }
                        Touch::Read => elements.read(at + lane, access, view, sees),
                    };
                    result = result.and(one.map_err(|fault| (fault, at + lane)));
                }
                let aligned = || misaligned(elements.alignment, at.unsigned_abs() * bytes, whole);
                result = result.and_then(|()| aligned().map_or(Ok(()), |fault| Err((fault, at))));
            }
            Memory::Workspace(workspace) => {
                let access =
                    Access { block: self.me.block, by: self.me.id, actor: Actor::Thread(agent), time: order.now };
                let view = self.me.view();
                for lane in 0..i64::from(lanes) {
                    let one = self.workspaces.access(workspace, at + lane, touch, access, view);
                    result = result.and(one.map_err(|fault| (fault, at + lane)));
                }
                let aligned = || misaligned(0, at.unsigned_abs() * bytes, whole);
                result = result.and_then(|()| aligned().map_or(Ok(()), |fault| Err((fault, at))));
            }
            Memory::Buffer(buffer) => {
                // In a workspace, offsets count from the start of the first block's part.
                let all = self.shared.elements(buffer);
                let first = self.kernel.part(buffer).map_or(0, |_| self.me.block * all);
                if at < first || at + i64::from(lanes) > first + all {
                    result = Err(((Kind::Outside, format!("the buffer has {all} elements")), at));
                } else {
                    let address = self.shared.place(rank, buffer) + (at - first).unsigned_abs() * bytes;
                    let one = match write {
                        true => self.shared.write(buffer, address, whole, agent, self.me.view()),
                        false => self.shared.read(buffer, address, whole, agent, self.me.view()),
                    };
                    result = one.map_err(|fault| (fault, at));
                    let start = if first > 0 { at.unsigned_abs() * bytes } else { address };
                    let aligned = || misaligned(0, start, whole);
                    result = result.and_then(|()| aligned().map_or(Ok(()), |fault| Err((fault, at))));
                }
            }
        }
        let Err(((kind, what), at)) = result else { return Ok(()) };
        let verb = if write { "writes" } else { "reads" };
        let what = format!("thread {thread} {verb} `{}[{at}]`: {what}", self.name(memory));
        self.wrong(active, (kind, what))
    }

    /// A load; from a block of the cluster, if it says so.
    pub(super) fn load(&mut self, load: &Load, peer: Option<ValueId>, active: &Active) -> Outcome {
        let maybe = Active { maybe: true, ..active.clone() };
        let lanes = &active.lanes.clone()[..];
        let mut next = active.range.start;
        // No iterators, as in `row::pure`.
        while next < active.range.end {
            let thread = next;
            next += 1;
            if !lanes[thread] {
                continue;
            }
            let predicate = match load.predicate {
                Some(predicate) => self.me.values[predicate.index()].of(thread),
                None => Some(1),
            };
            if predicate == Some(0) {
                for (value, otherwise) in load.results().zip(&load.otherwise) {
                    let known = self.me.values[otherwise.index()].of(thread);
                    self.bring(value, thread, known);
                }
                continue;
            }
            let active = if predicate.is_none() { &maybe } else { active };
            if let Some(at) = self.offset(load.memory, load.offset, thread, active)? {
                let rank = match peer {
                    None => self.me.id.rank,
                    Some(peer) => match self.me.values[peer.index()].of(thread) {
                        Some(rank) if (0..i64::from(self.kernel.signature.cluster)).contains(&rank) => rank as u8,
                        Some(rank) => {
                            let what =
                                format!("thread {thread} reads from block {rank} of the cluster, which has none");
                            self.wrong(active, (Kind::Outside, what))?;
                            continue;
                        }
                        None => {
                            self.depends(format!("from which block thread {thread} reads depends on data"));
                            continue;
                        }
                    },
                };
                self.visit(rank)?;
                self.access_in(rank, load.memory, at, load.lanes, thread, active, Touch::Read)?;
                let mut lane = 0;
                while lane < load.lanes && self.data.is_some() {
                    let known = self.datum(rank, load.memory, at + i64::from(lane));
                    self.bring(ValueId(load.first.0 + lane), thread, known);
                    lane += 1;
                }
            }
        }
        if self.data.is_none() {
            load.results().for_each(|value| self.me.values[value.index()] = Row::UNKNOWN);
        }
        Ok(())
    }

    /// A load of matrices by each warp. Each lane reads a row, whose elements others have.
    pub(super) fn load_matrix(&mut self, load: &LoadMatrix, active: &Active) -> Outcome {
        let (memory, rank) = (Memory::Buffer(load.from.buffer), self.me.id.rank);
        let rows = self.rows(&load.from, active, Touch::Read)?;
        if self.data.is_none() {
            load.results().for_each(|value| self.me.values[value.index()] = Row::UNKNOWN);
            return Ok(());
        }
        for thread in active.threads() {
            for (n, value) in (0..).zip(load.results()) {
                let known = place(&load.from, &rows, thread, n).and_then(|at| self.datum(rank, memory, at));
                self.bring(value, thread, known);
            }
        }
        Ok(())
    }

    /// A store of matrices by each warp. Each lane that says a row writes it, with elements that others have.
    pub(super) fn store_matrix(&mut self, store: &StoreMatrix, active: &Active) -> Outcome {
        let (memory, rank) = (Memory::Buffer(store.to.buffer), self.me.id.rank);
        let rows = self.rows(&store.to, active, Touch::Write(false))?;
        for thread in active.threads() {
            for (n, value) in (0..).zip(&store.values) {
                if let Some(at) = place(&store.to, &rows, thread, n) {
                    let known = self.me.values[value.index()].of(thread);
                    self.set_datum(rank, memory, at, known);
                }
            }
        }
        Ok(())
    }

    /// Where the rows of matrices are that threads say, which each of them accesses.
    fn rows(&mut self, matrices: &Matrices, active: &Active, touch: Touch) -> Outcome<Vec<Known>> {
        let memory = Memory::Buffer(matrices.buffer);
        let mut rows: Vec<Known> = vec![None; self.threads];
        for thread in active.threads().filter(|thread| (*thread as u32 % WARP) < matrices.lanes()) {
            if let Some(at) = self.offset(memory, matrices.offset, thread, active)? {
                self.access(memory, at, matrices.row, thread, active, touch)?;
                rows[thread] = Some(at);
            }
        }
        Ok(rows)
    }

    /// A thread has a value; in a run with data.
    fn bring(&mut self, value: ValueId, thread: usize, known: Known) {
        if self.data.is_none() {
            return;
        }
        let (row, threads) = (&mut self.me.values[value.index()], self.threads);
        match row {
            Row::Each(all) => all[thread] = known,
            _ => row.replace(threads, |at, old| if at == thread { known } else { old }),
        }
    }

    /// What an element of memory is; in a run with data.
    fn datum(&self, rank: u8, memory: Memory, at: i64) -> Known {
        let data = self.data.as_ref()?;
        match memory {
            Memory::Parameter(parameter) => data.tensor(parameter, at, self.kernel.element(memory)?),
            Memory::Workspace(w) => data.workspace(w, at, self.kernel.workspaces.get(usize::from(w))?.zeroed),
            Memory::Buffer(buffer) => data.shared(self.address(rank, buffer, at)),
        }
    }

    /// An element of memory is written.
    fn set_datum(&mut self, rank: u8, memory: Memory, at: i64, value: Known) {
        let address = match memory {
            Memory::Buffer(buffer) => self.address(rank, buffer, at),
            _ => 0,
        };
        let Some(data) = &mut self.data else { return };
        match memory {
            Memory::Parameter(parameter) => data.set_tensor(parameter, at, value),
            Memory::Workspace(workspace) => data.set_workspace(workspace, at, value),
            Memory::Buffer(_) => data.set_shared(address, value),
        }
    }

    /// The address of an element of a buffer; in a workspace, elements count from the start of the first block's part.
    fn address(&self, rank: u8, buffer: BufferId, at: i64) -> u64 {
        let first = self.kernel.part(buffer).map_or(0, |_| self.me.block * self.shared.elements(buffer));
        let bytes = u64::from(self.kernel.buffers[buffer.index()].element.bytes());
        self.shared.place(rank, buffer) + (at - first).unsigned_abs() * bytes
    }

    /// A store, in some blocks of the cluster.
    pub(super) fn store(&mut self, store: &Store, ranks: RangeInclusive<u8>, active: &Active) -> Outcome {
        if active.maybe && !matches!(store.memory, Memory::Buffer(_)) {
            self.depends(format!("whether `{}` is written depends on data", self.name(store.memory)));
        }
        let is_zero = |value: &ValueId| matches!(self.kernel.value(*value).op, Op::Literal(0));
        let touch = Touch::Write(store.values.iter().all(is_zero));
        for thread in active.threads() {
            if let Some(at) = self.offset(store.memory, store.offset, thread, active)? {
                for rank in ranks.clone() {
                    self.visit(rank)?;
                    self.access_in(rank, store.memory, at, store.values.len() as u32, thread, active, touch)?;
                    for (lane, value) in store.values.iter().enumerate() {
                        let known = self.me.values[value.index()].of(thread);
                        self.set_datum(rank, store.memory, at + lane as i64, known);
                    }
                }
            }
        }
        Ok(())
    }

    // Copies.

    /// A copy by each thread that comes. A group is one agent: it is waited for as a whole.
    pub(super) fn fetch(&mut self, fetch: &CpAsync, active: &Active) -> Outcome {
        let (memory, bytes) =
            (Memory::Parameter(fetch.parameter), self.kernel.buffers[fetch.buffer.index()].element.bytes());
        let width = u64::from(bytes) * u64::from(fetch.lanes);
        // Groups before the first one are empty, and are over first.
        if self.me.fetches.is_empty() {
            self.me.fetches = vec![Groups::default(); self.threads];
        }
        for thread in active.threads() {
            let reads = fetch.predicate.map_or(Some(1), |p| self.me.values[p.index()].of(thread));
            if reads.is_none() || active.maybe {
                self.depends(format!("whether thread {thread} fetches depends on data"));
            }
            if reads != Some(0)
                && let Some(at) = self.offset(memory, fetch.from, thread, active)?
            {
                self.access(memory, at, fetch.lanes, thread, active, Touch::Read)?;
            }
            let to = Memory::Buffer(fetch.buffer);
            let Some(at) = self.offset(to, fetch.to, thread, active)? else { continue };
            let of = &self.kernel.buffers[fetch.buffer.index()];
            let (name, all) = (of.name.clone(), i64::from(of.elements) * i64::from(of.slots));
            if at < 0 || at + i64::from(fetch.lanes) > all {
                let what = format!("thread {thread} fetches to `{name}[{at}]`: the buffer has {all} elements");
                self.wrong(active, (Kind::Outside, what))?;
                continue;
            }
            let place = self.shared.place(self.me.id.rank, fetch.buffer) + at.unsigned_abs() * u64::from(bytes);
            if !place.is_multiple_of(width) {
                let what = format!("thread {thread} fetches to `{name}[{at}]`, which is no multiple of {width} bytes");
                self.wrong(active, (Kind::Misaligned, what))?;
            }
            let owner = thread as u32;
            let copy = match self.me.fetches[thread].last() {
                Some(open) => open,
                None => self.shared.issue_by(owner),
            };
            self.me.fetches[thread].issue(copy);
            if let Err((kind, what)) = self.shared.fetch(fetch.buffer, place, width, (owner, copy), self.me.view()) {
                self.wrong(active, (kind, format!("thread {thread} fetches to `{name}[{at}]`: {what}")))?;
            }
            let from = self.me.values[fetch.from.index()].of(thread);
            for lane in 0..i64::from(fetch.lanes) {
                let known = match reads {
                    Some(0) => Some(0),
                    Some(_) => from.and_then(|from| self.datum(0, memory, from + lane)),
                    None => None,
                };
                self.set_datum(self.me.id.rank, to, at + lane, known);
            }
        }
        Ok(())
    }
}
