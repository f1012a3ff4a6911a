//! Tensors: which elements they have, who wrote and who read them.

use std::collections::BTreeMap;

use super::launch::Tensor;
use super::order::{AgentId, COPIES, Time, View, both};
use super::shared::{CopyId, Fault};
use super::violation::Kind;
use crate::kernel_ir::{Kernel, Memory, StatementKind};

/// Who accesses a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    /// A thread, or what stands for several of them: see [`both`].
    Thread(u32),
    Copy(CopyId),
}

impl Actor {
    /// Several threads: no one thread, and none of the first warp.
    pub const SEVERAL: Self = Self::Thread(u32::MAX);

    /// By the numbers of agents in shared memory.
    fn number(self) -> u32 {
        match self {
            Self::Thread(thread) => thread,
            Self::Copy(copy) => COPIES + copy,
        }
    }
}

/// The memory whose elements threads combine with values.
pub(super) fn updated(kernel: &Kernel) -> Vec<Memory> {
    let statements = kernel.regions.iter().flat_map(|region| &region.statements);
    let memory = |kind: &StatementKind| match kind {
        StatementKind::AtomicUpdate(update) => Some(update.memory),
        _ => None,
    };
    statements.filter_map(|statement| memory(&statement.kind)).collect()
}

/// Somebody's access, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub block: i64,
    /// The agent whose thread it is, or that issued it.
    pub by: AgentId,
    pub actor: Actor,
    pub time: Time,
}

/// An element.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    exists: bool,
    writer: Option<Access>,
    /// The last threads that read it, of a tensor that is written.
    reader: Option<Access>,
}

/// Whether an access of another block comes before the present one.
pub(super) type Sees<'a> = &'a dyn Fn(&Access) -> bool;

/// A tensor's elements.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    /// The offset of the first cell.
    first: i64,
    cells: Vec<Cell>,
    /// The last reads of elements of a tensor that is written by blocks before the last one, by element and block.
    earlier: BTreeMap<(i64, (i64, AgentId)), Access>,
    /// The copies that read elements of a tensor that is written, by element: each may be under way for itself.
    leaving: BTreeMap<i64, Vec<Access>>,
    pub written: bool,
    /// Whether threads combine its elements with values, in any order, as often as they like: then nobody reads or
    /// writes them otherwise.
    pub updated: bool,
    pub alignment: u64,
}

impl Elements {
    /// The elements of a tensor; none if it spans more than `most` offsets.
    pub fn new(tensor: &Tensor, updated: bool, most: u64) -> Option<Self> {
        let Tensor { shape, strides, alignment, written } = tensor;
        let (written, alignment) = (*written, u64::from(*alignment));
        let (earlier, leaving) = (BTreeMap::new(), BTreeMap::new());
        let empty = Self { first: 0, cells: Vec::new(), earlier, leaving, written, updated, alignment };
        if shape.contains(&0) {
            return Some(empty);
        }
        let (first, last) = tensor.reach()?;
        let span = u64::try_from(last.checked_sub(first)?.checked_add(1)?).ok()?;
        if span > most || shape.iter().try_fold(1i64, |n, size| n.checked_mul(*size))? as u64 > most {
            return None;
        }
        let mut cells = vec![Cell::default(); span as usize];
        let mut at = vec![0; shape.len()];
        loop {
            let offset: i64 = at.iter().zip(strides).map(|(i, stride)| i * stride).sum();
            cells[(offset - first) as usize].exists = true;
            let Some(axis) = (0..shape.len()).rev().find(|axis| at[*axis] + 1 < shape[*axis]) else { break };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
        Some(Self { first, cells, ..empty })
    }

    /// Offsets from the first to the last element.
    pub fn span(&self) -> u64 {
        self.cells.len() as u64
    }

    fn cell(&mut self, offset: i64) -> Result<&mut Cell, Fault> {
        let at = offset.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        let cell = at.and_then(|at| self.cells.get_mut(at)).filter(|cell| cell.exists);
        cell.ok_or_else(|| (Kind::Outside, "the tensor has no such element".to_owned()))
    }

    /// An element is read. `view` is what the agent knows, `sees` what it knows of others.
    pub fn read(&mut self, offset: i64, access: Access, view: View<'_>, sees: Sees<'_>) -> Result<(), Fault> {
        let (written, updated) = (self.written, self.updated);
        let cell = self.cell(offset)?;
        if updated {
            return Err((Kind::Race, "terms are taken into it, and nothing orders that".to_owned()));
        }
        if !written {
            return Ok(());
        }
        if let Some(writer) = cell.writer {
            // When a copy to a tensor has ended is never known.
            let ordered = match writer.actor {
                Actor::Thread(thread) => view.is_behind(writer.by, thread, writer.time, access.actor.number()),
                Actor::Copy(_) => false,
            };
            let ordered = match (writer.block, writer.by) == (access.block, access.by) {
                true => ordered,
                false => sees(&writer) && matches!(writer.actor, Actor::Thread(_)),
            };
            if !ordered {
                return Err((Kind::Race, format!("block {} writes it, and nothing orders that", writer.block)));
            }
        }
        let Actor::Thread(thread) = access.actor else {
            self.leaving.entry(offset).or_default().push(access);
            return Ok(());
        };
        let before = cell.reader.replace(access);
        let Some(Access { actor: Actor::Thread(reader), by, time, block }) = before else { return Ok(()) };
        if (block, by) != (access.block, access.by) {
            let last = Access { actor: Actor::Thread(reader), by, time, block };
            let earlier = self.earlier.entry((offset, (block, by))).or_insert(last);
            *earlier = if earlier.actor == last.actor { last } else { Access { actor: Actor::SEVERAL, ..last } };
        } else if !view.is_behind(by, reader, time, thread) {
            cell.reader = Some(Access { actor: Actor::Thread(both(reader, thread)), ..access });
        }
        Ok(())
    }

    /// An element is written; `over` says which copies of the block are known to have ended, `sees` what it knows of
    /// others.
    pub fn write(
        &mut self,
        offset: i64,
        access: Access,
        view: View<'_>,
        over: impl Fn(CopyId) -> bool,
        sees: Sees<'_>,
    ) -> Result<(), Fault> {
        let own = (access.block, access.by);
        let unseen =
            |((_, of), reader): (&(i64, (i64, AgentId)), &Access)| (*of != own && !sees(reader)).then_some(of.0);
        let (least, most) = (AgentId { rank: 0, role: 0 }, AgentId { rank: u8::MAX, role: u8::MAX });
        let all = (offset, (i64::MIN, least))..=(offset, (i64::MAX, most));
        let abroad = self.earlier.range(all).find_map(unseen);
        let leaving = self.leaving.get(&offset).cloned().unwrap_or_default();
        let updated = self.updated;
        let cell = self.cell(offset)?;
        if updated {
            return Err((Kind::Race, "terms are taken into it, and nothing orders that".to_owned()));
        }
        if let Some(writer) = cell.writer {
            return Err((Kind::WrittenTwice, format!("block {} wrote it before", writer.block)));
        }
        let ordered = |reader: &Access| match ((reader.block, reader.by) == own, reader.actor) {
            (true, Actor::Thread(thread)) => view.is_behind(reader.by, thread, reader.time, access.actor.number()),
            (true, Actor::Copy(copy)) => over(copy),
            (false, _) => sees(reader),
        };
        let mut last = cell.reader.iter().chain(&leaving);
        if let Some(block) = abroad.or_else(|| last.find(|reader| !ordered(reader)).map(|reader| reader.block)) {
            return Err((Kind::Race, format!("block {block} reads it, and nothing orders that")));
        }
        cell.writer = Some(access);
        Ok(())
    }

    /// An element is combined with a value: updates exclude each other.
    pub fn update(&mut self, offset: i64) -> Result<(), Fault> {
        self.cell(offset).map(|_| ())
    }

    /// The first element that nobody wrote; of what is updated, which ones are is asked of data.
    pub fn missing(&self) -> Option<i64> {
        if self.updated {
            return None;
        }
        let at = self.cells.iter().position(|cell| cell.exists && cell.writer.is_none())?;
        self.written.then_some(self.first + at as i64)
    }
}
