//! Buffers of a block, in shared memory and in its parts of workspaces: who accessed each element last, and whether what comes next is ordered behind it.

use super::launch::Launch;
use super::violation::Kind;
use crate::kernel_ir::{BufferId, Kernel, WARP, WARPGROUP};

/// Nobody, or nothing.
const NONE: u32 = u32::MAX;
/// Several threads.
const SEVERAL: u32 = u32::MAX - 1;
/// From here on, several lanes of a warp: the warp's number follows.
const LANES: u32 = 1 << 15;
/// From here on, several threads of a warpgroup.
const GROUPS: u32 = LANES + (1 << 14);
/// Copies are agents from here on; threads are those below.
const COPIES: u32 = 1 << 16;

/// A copy, by the order of their issue in the block.
pub(super) type CopyId = u32;

/// Points in time: the number of statements so far.
pub(super) type Time = u32;

/// What separates accesses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    pub now: Time,
    /// What came before is ordered before what comes now.
    pub synced: Time,
    /// The same between threads of one warpgroup.
    pub synced_warpgroup: Time,
    /// The same between lanes of one warp.
    pub synced_warp: Time,
    /// What threads wrote before is seen by copies that are issued now.
    pub visible: Time,
    /// The last publication.
    pub published: Time,
}

/// A piece of shared memory: the smallest element of the kernel.
#[derive(Clone, Copy, Debug)]
struct Cell {
    writer: u32,
    written: Time,
    /// The buffer whose current instance it holds an element of.
    holds: u32,
    /// Who read it last, or several since the last barrier.
    reader: u32,
    read: Time,
    /// The last copy that reads it.
    leaving: u32,
    /// Whether a copy took it to a tensor since it was written.
    taken: bool,
}

const EMPTY: Cell = Cell { writer: NONE, written: 0, holds: NONE, reader: NONE, read: 0, leaving: NONE, taken: false };

/// Shared memory.
#[derive(Debug)]
pub(super) struct Shared {
    cells: Vec<Cell>,
    /// Bytes of a cell.
    granule: u64,
    /// First byte of each buffer: those in workspaces lie behind shared memory.
    places: Vec<u64>,
    /// Elements of each buffer, all slots.
    elements: Vec<i64>,
    copies: Vec<Copy>,
}

/// A copy, or the fetches of a thread that it waits for together.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// When it was known to be over: one to shared memory by all threads, one from it by the elected one, a fetch by its thread.
    over: Option<Time>,
    /// The thread that knows, of a fetch.
    owner: Option<u32>,
}

/// What is wrong with an access.
pub(super) type Fault = (Kind, String);

impl Shared {
    /// The buffers of a kernel; none if those in workspaces have more than `most` bytes.
    pub fn new(kernel: &Kernel, launch: &Launch, most: u64) -> Option<Self> {
        let map = kernel.shared_map();
        let granule = kernel.buffers.iter().map(|b| u64::from(b.element.bytes())).min().unwrap_or(1);
        let (mut bytes, mut places, mut elements) = (map.bytes, map.buffers, Vec::new());
        for (n, buffer) in kernel.buffers.iter().enumerate() {
            let Some(workspace) = kernel.parts[n] else {
                elements.push(i64::from(buffer.elements) * i64::from(buffer.slots));
                continue;
            };
            let all = launch.workspaces.get(usize::from(workspace)).copied().unwrap_or(0);
            let own = all / launch.blocks.max(1);
            places[n] = bytes.next_multiple_of(u64::from(buffer.alignment));
            bytes = own.unsigned_abs().checked_mul(u64::from(buffer.element.bytes()))?.checked_add(places[n])?;
            elements.push(own);
        }
        if bytes - map.bytes > most {
            return None;
        }
        let cells = vec![EMPTY; (bytes / granule) as usize + 1];
        Some(Self { cells, granule, places, elements, copies: Vec::new() })
    }

    /// Elements of a buffer, all slots.
    pub fn elements(&self, buffer: BufferId) -> i64 {
        self.elements[buffer.index()]
    }

    /// Forgets everything: another block.
    pub fn reset(&mut self) {
        self.cells.fill(EMPTY);
        self.copies.clear();
    }

    /// The address of a buffer.
    pub fn place(&self, buffer: BufferId) -> u64 {
        self.places[buffer.index()]
    }

    /// A new copy.
    pub fn issue(&mut self) -> CopyId {
        self.copies.push(Copy { over: None, owner: None });
        self.copies.len() as CopyId - 1
    }

    /// The fetches of a group of a thread.
    pub fn issue_by(&mut self, owner: u32) -> CopyId {
        self.copies.push(Copy { over: None, owner: Some(owner) });
        self.copies.len() as CopyId - 1
    }

    /// A copy is over.
    pub fn end(&mut self, copy: CopyId, now: Time) {
        self.copies[copy as usize].over = Some(now);
    }

    /// Whether a copy is known to be over.
    pub fn is_over(&self, copy: CopyId) -> bool {
        self.copies[copy as usize].over.is_some()
    }

    fn cells(&self, address: u64, bytes: u64) -> std::ops::Range<usize> {
        (address / self.granule) as usize..(address + bytes).div_ceil(self.granule) as usize
    }

    /// A new instance of a buffer, of so many bytes behind its first `before`; of some threads, what they wrote.
    pub fn renew(&mut self, buffer: BufferId, before: u64, bytes: u64, whose: Option<&dyn Fn(u32) -> bool>) {
        let cells = self.cells(self.place(buffer) + before, bytes);
        for at in cells {
            let cell = &self.cells[at];
            let owner = self.writing(cell).map_or(Some(cell.writer), |copy| copy.owner);
            if whose.is_none_or(|comes| owner.is_some_and(comes)) {
                self.cells[at].holds = NONE;
            }
        }
    }

    /// The copy that wrote a cell.
    fn writing(&self, cell: &Cell) -> Option<Copy> {
        let copy = cell.writer.checked_sub(COPIES).filter(|_| cell.writer < SEVERAL);
        copy.map(|copy| self.copies[copy as usize])
    }

    /// Whether the copy that wrote a cell may be under way.
    fn coming(&self, cell: &Cell) -> bool {
        self.writing(cell).is_some_and(|copy| copy.over.is_none())
    }

    /// The thread whose fetch wrote a cell, if `agent` does not know that it is done.
    fn unknown_to(&self, cell: &Cell, agent: u32, order: Order) -> Option<u32> {
        let Copy { over, owner } = self.writing(cell)?;
        owner.filter(|owner| over.is_some_and(|over| !order.is_behind(*owner, over, agent)))
    }

    /// What a write by an agent must come behind; `elected` is told of the end of copies from shared memory at once.
    fn before_write(&self, cell: &Cell, agent: u32, elected: bool, order: Order) -> Result<(), Fault> {
        if self.coming(cell) {
            return Err((Kind::UnderWay, format!("{} writes it while a copy may write it still", name(agent))));
        }
        if cell.writer < COPIES && !order.is_behind(cell.writer, cell.written, agent) {
            let what = format!("{} and {} write it with no barrier in between", name(cell.writer), name(agent));
            return Err((Kind::Race, what));
        }
        if let Some(owner) = self.unknown_to(cell, agent, order) {
            let what = format!("thread {owner} fetched it and {} writes it with no barrier in between", name(agent));
            return Err((Kind::Race, what));
        }
        if cell.reader != NONE && !order.is_behind(cell.reader, cell.read, agent) {
            let what =
                format!("{} reads it and {} writes it with no barrier in between", name(cell.reader), name(agent));
            return Err((Kind::Race, what));
        }
        if cell.leaving != NONE {
            let over = self.copies[cell.leaving as usize].over.is_some_and(|end| elected || end < order.synced);
            if !over {
                return Err((Kind::StillRead, format!("{} writes it while a copy may read it still", name(agent))));
            }
        }
        Ok(())
    }

    /// A thread writes.
    pub fn write(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        thread: u32,
        order: Order,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            self.before_write(&self.cells[at], thread, false, order)?;
            let cell = &mut self.cells[at];
            (cell.writer, cell.written, cell.holds, cell.taken) = (thread, order.now, buffer.0, false);
        }
        Ok(())
    }

    /// A thread reads.
    pub fn read(&mut self, buffer: BufferId, address: u64, bytes: u64, thread: u32, order: Order) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            let cell = &self.cells[at];
            if self.coming(cell) {
                return Err((Kind::UnderWay, format!("thread {thread} reads it while a copy may write it still")));
            }
            if cell.holds != buffer.0 {
                return Err((Kind::Uninitialised, format!("thread {thread} reads it, and nobody wrote it")));
            }
            if cell.writer < COPIES && !order.is_behind(cell.writer, cell.written, thread) {
                let writer = name(cell.writer);
                let what = format!("{writer} writes it and thread {thread} reads it with no barrier in between");
                return Err((Kind::Race, what));
            }
            if let Some(owner) = self.unknown_to(cell, thread, order) {
                let what = format!("thread {owner} fetched it and thread {thread} reads it with no barrier in between");
                return Err((Kind::Race, what));
            }
            let cell = &mut self.cells[at];
            let alone = cell.reader == NONE || order.is_behind(cell.reader, cell.read, thread);
            cell.reader = match (warp(cell.reader), warpgroup(cell.reader)) {
                _ if alone => thread,
                (Some(lanes), _) if lanes == thread / WARP => LANES + lanes,
                (_, Some(group)) if group == thread / WARPGROUP => GROUPS + group,
                _ => SEVERAL,
            };
            cell.read = order.now;
        }
        Ok(())
    }

    /// A fetch of a thread is started, as part of a group.
    pub fn fetch(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        (thread, copy): (u32, CopyId),
        order: Order,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            self.before_write(&self.cells[at], thread, false, order)?;
            let cell = &mut self.cells[at];
            (cell.writer, cell.written, cell.holds, cell.taken) = (COPIES + copy, order.now, buffer.0, false);
        }
        Ok(())
    }

    /// A copy to shared memory is issued.
    pub fn fill(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        copy: CopyId,
        order: Order,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            let cell = &self.cells[at];
            self.before_write(cell, COPIES + copy, true, order)?;
            if cell.writer < COPIES && cell.written >= order.visible {
                return Err((Kind::NotPublished, "a copy writes it behind a thread without a fence".to_owned()));
            }
            let cell = &mut self.cells[at];
            (cell.writer, cell.written, cell.holds, cell.taken) = (COPIES + copy, order.now, buffer.0, false);
        }
        Ok(())
    }

    /// A copy from shared memory is issued.
    pub fn take(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        copy: CopyId,
        order: Order,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            let cell = &self.cells[at];
            if self.coming(cell) {
                return Err((Kind::UnderWay, "a copy reads it while another may write it still".to_owned()));
            }
            if cell.holds != buffer.0 {
                return Err((Kind::Uninitialised, "a copy reads it, and nobody wrote it".to_owned()));
            }
            if cell.taken {
                return Err((
                    Kind::Stale,
                    "a copy takes it to a tensor, as another did since it was written".to_owned(),
                ));
            }
            if cell.writer < COPIES && cell.written >= order.synced {
                let what = format!("{} writes it and a copy reads it with no barrier in between", name(cell.writer));
                return Err((Kind::Race, what));
            }
            if cell.writer < COPIES && cell.written >= order.visible {
                let what = format!("{} writes it and a copy reads it without a fence", name(cell.writer));
                return Err((Kind::NotPublished, what));
            }
            let cell = &mut self.cells[at];
            (cell.leaving, cell.taken) = (copy, true);
        }
        Ok(())
    }
}

/// The warp of an agent, if it has one.
fn warp(agent: u32) -> Option<u32> {
    match agent {
        LANES.. => (agent < GROUPS).then_some(agent - LANES),
        thread => Some(thread / WARP),
    }
}

/// The warpgroup of an agent, if it has one.
fn warpgroup(agent: u32) -> Option<u32> {
    match agent {
        GROUPS.. => (agent < COPIES).then_some(agent - GROUPS),
        _ => warp(agent).map(|warp| warp / (WARPGROUP / WARP)),
    }
}

impl Order {
    /// Whether what one agent did at a time comes before what another one does now.
    fn is_behind(self, first: u32, time: Time, second: u32) -> bool {
        let lanes = warp(first).is_some() && warp(first) == warp(second);
        let group = warpgroup(first).is_some() && warpgroup(first) == warpgroup(second);
        first == second
            || time < self.synced
            || group && time < self.synced_warpgroup
            || lanes && time < self.synced_warp
    }
}

fn name(agent: u32) -> String {
    match agent {
        SEVERAL => "a thread".to_owned(),
        COPIES.. => "a copy".to_owned(),
        GROUPS.. => format!("a thread of warpgroup {}", agent - GROUPS),
        LANES.. => format!("a lane of warp {}", agent - LANES),
        thread => format!("thread {thread}"),
    }
}
