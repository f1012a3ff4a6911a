//! Buffers of a block, in shared memory and in its parts of workspaces: who accessed each element last, and whether
//! what comes next is ordered after it.

use std::collections::BTreeMap;

use super::launch::Launch;
use super::order::{AgentId, COPIES, NONE, SEVERAL, Time, View, both, name};
use super::violation::Kind;
use crate::kernel_ir::{BufferId, Kernel};

/// A copy, by the order of their issue in the block.
pub(super) type CopyId = u32;

/// A piece of shared memory: the smallest element of the kernel.
#[derive(Clone, Copy, Debug)]
struct Cell {
    writer: u32,
    written: Time,
    writer_by: AgentId,
    reader_by: AgentId,
    /// The buffer whose current instance it holds an element of.
    holds: u32,
    /// Who read it last, or several since the last barrier.
    reader: u32,
    read: Time,
    /// The last copy that reads it.
    leaving: u32,
    /// How often products that may be under way read it.
    multiplied: u32,
    /// Whether a copy took it to a tensor since it was written.
    taken: bool,
}

/// What places of the accelerator's patterns repeat after, in bytes (PTX manual, swizzling modes).
const LARGEST_PATTERN: u64 = 1024;
const NOBODY: AgentId = AgentId { rank: 0, role: 0 };
const EMPTY: Cell = Cell {
    writer: NONE,
    written: 0,
    writer_by: NOBODY,
    reader_by: NOBODY,
    holds: NONE,
    reader: NONE,
    read: 0,
    leaving: NONE,
    multiplied: 0,
    taken: false,
};

/// Shared memory of the blocks of a cluster, one after the other.
#[derive(Debug)]
pub(super) struct Shared {
    /// None before the first cluster runs.
    cells: Vec<Cell>,
    /// How many there are.
    count: usize,
    /// Bytes of a block.
    pitch: u64,
    /// Reads of cells by agents before the last one, which no write has come after yet.
    earlier: BTreeMap<(usize, AgentId), (u32, Time)>,
    /// Bytes of a cell.
    granule: u64,
    /// First byte of each buffer: those in workspaces lie after shared memory.
    places: Vec<u64>,
    /// Elements of each buffer, all slots.
    elements: Vec<i64>,
    copies: Vec<Copy>,
    /// Products that may be under way.
    products: Vec<Product>,
}

/// A product of matrices that may read shared memory still.
#[derive(Debug)]
struct Product {
    id: CopyId,
    /// The threads that it reads for.
    reader: u32,
    /// The cells that it reads, each as often as it does.
    cells: Vec<usize>,
}

/// A copy, or the fetches of a thread that it waits for together.
#[derive(Clone, Debug)]
struct Copy {
    /// Who knows since when that it is over: of one to shared memory all threads, of one from it the elected one, of a
    /// fetch its thread.
    over: Vec<(AgentId, Time)>,
    /// The thread that knows, of a fetch.
    owner: Option<u32>,
}

/// What is wrong with an access.
pub(super) type Fault = (Kind, String);

/// Elements of a buffer of one block, all slots.
pub(super) fn elements(kernel: &Kernel, launch: &Launch, buffer: BufferId) -> i64 {
    match kernel.part(buffer) {
        Some(workspace) => launch.workspaces.get(usize::from(workspace)).copied().unwrap_or(0) / launch.parts.max(1),
        None => {
            let of = &kernel.buffers[buffer.index()];
            i64::from(of.elements) * i64::from(of.slots)
        }
    }
}

impl Shared {
    /// The buffers of a kernel; none if those in workspaces have more than `most` bytes.
    pub fn new(kernel: &Kernel, launch: &Launch, most: u64) -> Option<Self> {
        let map = kernel.shared_map();
        let granule = kernel.buffers.iter().map(|b| u64::from(b.element.bytes())).min().unwrap_or(1);
        let (mut bytes, mut places, mut elements) = (map.bytes, map.buffers, Vec::new());
        for (n, buffer) in kernel.buffers.iter().enumerate() {
            let own = self::elements(kernel, launch, BufferId(n as u32));
            elements.push(own);
            if kernel.parts[n].is_none() {
                continue;
            }
            places[n] = bytes.next_multiple_of(u64::from(buffer.alignment));
            bytes = own.unsigned_abs().checked_mul(u64::from(buffer.element.bytes()))?.checked_add(places[n])?;
        }
        if bytes - map.bytes > most {
            return None;
        }
        let pitch = bytes.next_multiple_of(LARGEST_PATTERN);
        let blocks = u64::from(kernel.signature.cluster);
        Some(Self {
            cells: Vec::new(),
            count: (pitch * blocks / granule) as usize + 1,
            pitch,
            earlier: BTreeMap::new(),
            granule,
            places,
            elements,
            copies: Vec::new(),
            products: Vec::new(),
        })
    }

    /// Elements of a buffer, all slots.
    pub fn elements(&self, buffer: BufferId) -> i64 {
        self.elements[buffer.index()]
    }

    /// Forgets everything: another cluster.
    pub fn reset(&mut self) {
        self.cells.clear();
        self.cells.reserve_exact(self.count);
        self.cells.push(EMPTY);
        // Copied by ever larger parts: a debug build fills a vector cell by cell.
        while self.cells.len() < self.count {
            let part = self.cells.len().min(self.count - self.cells.len());
            self.cells.extend_from_within(..part);
        }
        self.earlier.clear();
        self.copies.clear();
        self.products.clear();
    }

    /// The address of a buffer of a block of the cluster.
    pub fn place(&self, rank: u8, buffer: BufferId) -> u64 {
        u64::from(rank) * self.pitch + self.places[buffer.index()]
    }

    /// A new copy.
    pub fn issue(&mut self) -> CopyId {
        self.copies.push(Copy { over: Vec::new(), owner: None });
        self.copies.len() as CopyId - 1
    }

    /// The fetches of a group of a thread.
    pub fn issue_by(&mut self, owner: u32) -> CopyId {
        self.copies.push(Copy { over: Vec::new(), owner: Some(owner) });
        self.copies.len() as CopyId - 1
    }

    /// The end of the fetches of a group is told by a barrier, to all who wait there alike.
    pub fn disown(&mut self, copy: CopyId) {
        self.copies[copy as usize].owner = None;
    }

    /// An agent knows that a copy is over.
    pub fn end(&mut self, copy: CopyId, by: AgentId, now: Time) {
        let over = &mut self.copies[copy as usize].over;
        if over.iter().all(|known| known.0 != by) {
            over.push((by, now));
        }
    }

    /// Whether a copy is known to be over.
    pub fn is_over(&self, copy: CopyId, view: View<'_>) -> bool {
        self.copies[copy as usize].over.iter().any(|known| known.0 == view.by || view.clock.covers(*known))
    }

    fn cells(&self, address: u64, bytes: u64) -> std::ops::Range<usize> {
        (address / self.granule) as usize..(address + bytes).div_ceil(self.granule) as usize
    }

    /// A new instance of a buffer, of so many bytes after its first `before`; of some threads, what they wrote.
    pub fn renew(
        &mut self,
        (rank, buffer): (u8, BufferId),
        before: u64,
        bytes: u64,
        whose: Option<&dyn Fn(u32) -> bool>,
    ) {
        let cells = self.cells(self.place(rank, buffer) + before, bytes);
        for at in cells {
            let cell = &self.cells[at];
            let owner = self.writing(cell).map_or(Some(cell.writer), |copy| copy.owner);
            if whose.is_none_or(|comes| owner.is_some_and(comes)) {
                self.cells[at].holds = NONE;
            }
        }
    }

    /// The copy that wrote a cell.
    fn writing(&self, cell: &Cell) -> Option<&Copy> {
        let copy = cell.writer.checked_sub(COPIES).filter(|_| cell.writer < SEVERAL);
        copy.map(|copy| &self.copies[copy as usize])
    }

    /// Whether the copy that wrote a cell may be under way.
    fn coming(&self, cell: &Cell, view: View<'_>) -> bool {
        cell.writer >= COPIES && cell.writer < SEVERAL && !self.is_over(cell.writer - COPIES, view)
    }

    /// The thread whose fetch wrote a cell, if `agent` does not know that it is done.
    fn unknown_to(&self, cell: &Cell, agent: u32, view: View<'_>) -> Option<u32> {
        let Copy { over, owner } = self.writing(cell)?;
        owner.filter(|owner| over.first().is_some_and(|(by, over)| !view.sees(*by, *owner, *over, agent)))
    }

    /// What a write by an agent must come after; `elected` is told of the end of copies from shared memory at once.
    fn before_write(&self, at: usize, agent: u32, elected: bool, view: View<'_>) -> Result<(), Fault> {
        let cell = &self.cells[at];
        if self.coming(cell, view) {
            return Err((Kind::UnderWay, format!("{} writes it while a copy may write it still", name(agent))));
        }
        if cell.writer < COPIES && !view.sees(cell.writer_by, cell.writer, cell.written, agent) {
            let what = format!("{} and {} write it with no barrier in between", name(cell.writer), name(agent));
            return Err((Kind::Race, what));
        }
        if let Some(owner) = self.unknown_to(cell, agent, view) {
            let what = format!("thread {owner} fetched it and {} writes it with no barrier in between", name(agent));
            return Err((Kind::Race, what));
        }
        let last = (cell.reader != NONE).then_some((cell.reader_by, (cell.reader, cell.read)));
        let earlier = self.earlier_readers(at);
        for (by, (reader, read)) in last.into_iter().chain(earlier) {
            if !view.is_behind(by, reader, read, agent) {
                let what =
                    format!("{} reads it and {} writes it with no barrier in between", name(reader), name(agent));
                return Err((Kind::Race, what));
            }
        }
        if cell.multiplied > 0 {
            return Err((Kind::StillRead, format!("{} writes it while a product may read it still", name(agent))));
        }
        if cell.leaving != NONE {
            let knows = |(by, end): &(AgentId, Time)| match *by == view.by {
                true => elected || *end < view.order.synced,
                false => view.clock.covers((*by, *end)),
            };
            if !self.copies[cell.leaving as usize].over.iter().any(knows) {
                return Err((Kind::StillRead, format!("{} writes it while a copy may read it still", name(agent))));
            }
        }
        Ok(())
    }

    /// Reads of a cell before the last one.
    fn earlier_readers(&self, at: usize) -> impl Iterator<Item = (AgentId, (u32, Time))> {
        let all = (at, AgentId { rank: 0, role: 0 })..=(at, AgentId { rank: u8::MAX, role: u8::MAX });
        self.earlier.range(all).map(|((_, by), read)| (*by, *read))
    }

    /// A cell is written, by who is allowed to.
    fn set(&mut self, at: usize, buffer: BufferId, writer: u32, view: View<'_>) {
        if !self.earlier.is_empty() {
            let readers: Vec<AgentId> = self.earlier_readers(at).map(|reader| reader.0).collect();
            for by in readers {
                self.earlier.remove(&(at, by));
            }
        }
        let cell = &mut self.cells[at];
        (cell.writer, cell.written, cell.writer_by) = (writer, view.order.now, view.by);
        (cell.holds, cell.taken) = (buffer.0, false);
    }

    /// A thread writes.
    pub fn write(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        thread: u32,
        view: View<'_>,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            self.before_write(at, thread, false, view)?;
            self.set(at, buffer, thread, view);
        }
        Ok(())
    }

    /// A thread reads.
    pub fn read(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        thread: u32,
        view: View<'_>,
    ) -> Result<(), Fault> {
        let std::ops::Range { start: mut at, end } = self.cells(address, bytes);
        // No iterators, as in `row::pure`, and no calls for what a thread wrote or read before the last barrier.
        while at < end {
            let cell = &self.cells[at];
            let is_of_thread = cell.writer < COPIES;
            if !is_of_thread && self.coming(cell, view) {
                return Err((Kind::UnderWay, format!("thread {thread} reads it while a copy may write it still")));
            }
            if cell.holds != buffer.0 {
                return Err((Kind::Uninitialised, format!("thread {thread} reads it, and nobody wrote it")));
            }
            if is_of_thread {
                let synced = cell.writer_by == view.by && cell.written < view.order.synced;
                if !synced && !view.sees(cell.writer_by, cell.writer, cell.written, thread) {
                    let writer = name(cell.writer);
                    let what = format!("{writer} writes it and thread {thread} reads it with no barrier in between");
                    return Err((Kind::Race, what));
                }
            } else if let Some(owner) = self.unknown_to(cell, thread, view) {
                let what = format!("thread {owner} fetched it and thread {thread} reads it with no barrier in between");
                return Err((Kind::Race, what));
            }
            let (reader, by, read) = (cell.reader, cell.reader_by, cell.read);
            let alone = reader == NONE || view.is_behind(by, reader, read, thread);
            if !alone && by != view.by {
                let before = self.earlier.entry((at, by)).or_insert((reader, read));
                *before = (if before.0 == reader { reader } else { SEVERAL }, before.1.max(read));
            }
            let cell = &mut self.cells[at];
            cell.reader = if alone || by != view.by { thread } else { both(reader, thread) };
            (cell.read, cell.reader_by) = (view.order.now, view.by);
            at += 1;
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
        view: View<'_>,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            self.before_write(at, thread, false, view)?;
            self.set(at, buffer, COPIES + copy, view);
        }
        Ok(())
    }

    /// Whether copies that are issued now see what a thread wrote to a cell.
    fn is_visible(&self, cell: &Cell, view: View<'_>) -> bool {
        cell.writer >= COPIES
            || cell.written
                < if cell.writer_by == view.by { view.order.visible } else { view.clock.of(cell.writer_by).visible }
    }

    /// A copy to shared memory is issued.
    pub fn fill(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        copy: CopyId,
        view: View<'_>,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            self.before_write(at, COPIES + copy, true, view)?;
            if !self.is_visible(&self.cells[at], view) {
                return Err((Kind::NotPublished, "a copy writes it after a thread without a fence".to_owned()));
            }
            self.set(at, buffer, COPIES + copy, view);
        }
        Ok(())
    }

    /// A product reads, for all of which [`Self::begin_product`] comes next.
    pub fn multiply(
        &self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        cells: &mut Vec<usize>,
        view: View<'_>,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            let cell = &self.cells[at];
            if self.coming(cell, view) {
                return Err((Kind::UnderWay, "a copy may write it still".to_owned()));
            }
            if cell.holds != buffer.0 {
                return Err((Kind::Uninitialised, "nobody wrote it".to_owned()));
            }
            if cell.writer < COPIES && !view.sees(cell.writer_by, cell.writer, cell.written, SEVERAL) {
                return Err((Kind::Race, format!("{} writes it with no barrier in between", name(cell.writer))));
            }
            if let Some(owner) = self.unknown_to(cell, SEVERAL, view) {
                return Err((Kind::Race, format!("thread {owner} fetched it with no barrier in between")));
            }
            if !self.is_visible(cell, view) {
                return Err((Kind::NotPublished, format!("{} writes it without a fence", name(cell.writer))));
            }
            cells.push(at);
        }
        Ok(())
    }

    /// A product of some threads is started, which reads these cells.
    pub fn begin_product(&mut self, id: CopyId, reader: u32, cells: Vec<usize>) {
        for at in &cells {
            self.cells[*at].multiplied += 1;
        }
        self.products.push(Product { id, reader, cells });
    }

    /// A product is over for those who started it: they have read there now.
    pub fn end_product(&mut self, id: CopyId, by: AgentId, now: Time) {
        let Some(at) = self.products.iter().position(|product| product.id == id) else { return };
        let Product { reader, cells, .. } = self.products.remove(at);
        for at in cells {
            let (last, last_by, read) = (self.cells[at].reader, self.cells[at].reader_by, self.cells[at].read);
            if last != NONE && last_by != by {
                let before = self.earlier.entry((at, last_by)).or_insert((last, read));
                *before = (if before.0 == last { last } else { SEVERAL }, before.1.max(read));
            }
            let cell = &mut self.cells[at];
            cell.reader = if last == NONE || last_by != by || last == reader { reader } else { SEVERAL };
            (cell.read, cell.reader_by) = (now, by);
            cell.multiplied -= 1;
        }
    }

    /// A copy from shared memory is issued.
    pub fn take(
        &mut self,
        buffer: BufferId,
        address: u64,
        bytes: u64,
        copy: CopyId,
        view: View<'_>,
    ) -> Result<(), Fault> {
        for at in self.cells(address, bytes) {
            let cell = &self.cells[at];
            if self.coming(cell, view) {
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
            if cell.writer < COPIES && !view.sees(cell.writer_by, cell.writer, cell.written, COPIES + copy) {
                let what = format!("{} writes it and a copy reads it with no barrier in between", name(cell.writer));
                return Err((Kind::Race, what));
            }
            if !self.is_visible(cell, view) {
                let what = format!("{} writes it and a copy reads it without a fence", name(cell.writer));
                return Err((Kind::NotPublished, what));
            }
            let cell = &mut self.cells[at];
            (cell.leaving, cell.taken) = (copy, true);
        }
        Ok(())
    }
}
