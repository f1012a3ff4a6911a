//! Single threads on single paths, at sizes too large to run whole.
//!
//! **Property.** Wherever a thread comes, nothing depends on an index outside of what is said of it or of its width
//! ([`row::as_said`]): no condition, no address, no value that is stored. Each access lies in its memory, as far as it
//! reaches, and at a multiple of its width. **Formula.** A path is one thread of one block, and one iteration of each
//! loop that it comes to. The first and the last ones are drawn most often: that is where indices are largest.
//! Integers that memory holds are drawn as well, as they may be indices: near sizes, at their ends, and elsewhere.
//! **Approximation.** A sample. Other elements are unknown, and so is what a variable holds that earlier iterations may
//! have set; where a condition depends on that, one way is drawn, and places are not looked at after it.
//!
//! This file is longer than 500 lines: one arm a statement.

use super::access::{misaligned, name};
use super::launch::{Launch, Tensor};
use super::row::{self, Known};
use super::run::assigned;
use super::shared::{self, Fault};
use super::values::mix;
use super::violation::{Kind, Violation};
use crate::kernel_ir::{
    BulkCopy, CpAsync, If, IndexOp, Kernel, Load, Loop, Matrices, Memory, Op, Product, Range, Receivers, RegionId,
    Role, StatementKind, Store, TensorPart, Type, ValueId,
};
use tilewright_kernel::algorithm::Binary;

type Outcome = Result<(), Violation>;

/// A range may have one index more than a number of 32 bits has: the comparison takes no sign.
const MOST_IN_RANGE: i64 = 1 << 31;

/// What a thread has: nothing is known of what depends on data, or on an index outside of what is said of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    known: Known,
    /// The index outside that it depends on.
    beyond: Option<(ValueId, i64)>,
    /// What it would be with enough bits, if it has the low ones of that: sums and products of such numbers do,
    /// whatever is said of them.
    wraps: Known,
}

impl Seen {
    const DATA: Self = Self { known: None, beyond: None, wraps: None };

    const fn known(value: i64) -> Self {
        Self { known: Some(value), ..Self::DATA }
    }

    fn low_bits_of(self) -> Known {
        self.known.or(self.wraps)
    }

    /// Whether it is some other number.
    const fn is_wrong(self) -> bool {
        self.beyond.is_some() && self.wraps.is_none()
    }

    const fn is_data(self) -> bool {
        self.known.is_none() && self.beyond.is_none()
    }
}

/// Draws, the same for the same seed.
struct Draws {
    seed: u64,
    drawn: u64,
}

impl Draws {
    /// A number from 0 to below `n`.
    fn below(&mut self, n: i64) -> i64 {
        self.drawn += 1;
        (mix([self.seed, self.drawn, 0, 0]) % n.max(1).unsigned_abs()).cast_signed()
    }

    /// One of `n` in a row: mostly the last or the first one, or near the end.
    fn one_of(&mut self, n: i64) -> i64 {
        match self.below(8) {
            0 => 0,
            1..=3 => n - 1,
            4 => n - 1 - self.below(n.min(64)),
            _ => self.below(n),
        }
    }
}

/// A thread on its way.
struct Path<'a> {
    kernel: &'a Kernel,
    launch: &'a Launch,
    /// Where buffers begin in shared memory.
    places: Vec<u64>,
    draws: Draws,
    /// Which path it is.
    number: u64,
    block: i64,
    thread: i64,
    values: Vec<Seen>,
    variables: Vec<Seen>,
    line: u32,
}

/// So many paths of a launch, drawn by `seed`.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn run(kernel: &Kernel, launch: &Launch, seed: u64, paths: u64) -> Outcome {
    watched(kernel, launch, (seed, paths), &mut |_, _| ())
}

/// The same; after each path, `look` is told each value that is known.
pub(super) fn watched(
    kernel: &Kernel,
    launch: &Launch,
    (seed, paths): (u64, u64),
    look: &mut dyn FnMut(ValueId, i64),
) -> Outcome {
    let literal = |value: &crate::kernel_ir::Value| match value.op {
        Op::Literal(bits) => Seen { known: row::literal(value.ty, bits, None), ..Seen::DATA },
        _ => Seen::DATA,
    };
    let mut path = Path {
        kernel,
        launch,
        places: kernel.shared_map().buffers,
        draws: Draws { seed, drawn: 0 },
        number: 0,
        block: 0,
        thread: 0,
        values: kernel.values.iter().map(literal).collect(),
        variables: vec![Seen::DATA; kernel.variables.len()],
        line: 0,
    };
    let roles = kernel.roles();
    for number in 0..paths {
        path.number = number;
        path.block = path.draws.one_of(launch.blocks);
        let threads = match roles {
            [] => 0..kernel.signature.threads,
            _ => roles[path.draws.below(roles.len() as i64) as usize].threads(),
        };
        path.thread = i64::from(threads.start) + path.draws.one_of(threads.len() as i64);
        path.region(Kernel::BODY, false)?;
        let known = (0..).zip(&path.values).filter_map(|(n, seen)| Some((ValueId(n), seen.known?)));
        known.for_each(|(value, known)| look(value, known));
    }
    Ok(())
}

impl Path<'_> {
    fn region(&mut self, region: RegionId, maybe: bool) -> Outcome {
        let kernel = self.kernel;
        for statement in &kernel.region(region).statements {
            self.line = statement.line;
            match &statement.kind {
                StatementKind::Let(value) => self.values[value.index()] = self.value(*value),
                StatementKind::Declare(variable, _) if kernel.is_unset(*variable) => {
                    self.variables[variable.index()] = Seen::DATA;
                }
                StatementKind::Declare(variable, value) | StatementKind::Set(variable, value) => {
                    self.variables[variable.index()] = self.seen(*value);
                }
                StatementKind::Load(load) => self.load(load, maybe)?,
                StatementKind::LoadMatrix(load) => {
                    self.matrices(&load.from, maybe)?;
                    load.results().for_each(|value| self.values[value.index()] = Seen::DATA);
                }
                StatementKind::StoreMatrix(store) => {
                    store.values.iter().try_for_each(|value| self.matters(*value).map(drop))?;
                    self.matrices(&store.to, maybe)?;
                }
                StatementKind::LoadDsmem { rank, load } => {
                    self.matters(*rank)?;
                    self.load(load, maybe)?;
                }
                StatementKind::Store(store) | StatementKind::StoreDsmemAll(store) => self.store(store, maybe)?,
                StatementKind::Loop(l) => self.repeat(l, maybe)?,
                StatementKind::If(branch) => self.branch(branch, maybe)?,
                StatementKind::CpAsync(fetch) => self.fetch(fetch, maybe)?,
                StatementKind::BulkCopy(transfer) => self.transfer(transfer, maybe)?,
                StatementKind::Elect(part) => self.region(*part, maybe)?,
                StatementKind::Roles(roles) => {
                    let is_own = |role: &&Role| role.threads().contains(&(self.thread as u32));
                    if let Some(role) = roles.iter().find(is_own) {
                        self.region(role.body, maybe)?;
                    }
                }
                StatementKind::AtomicUpdate(update) => {
                    self.matters(update.value)?;
                    self.access(update.memory, update.offset, 1, maybe)?;
                }
                StatementKind::LastBlockTicket { counters, at, blocks, last, .. } => {
                    self.matters(*blocks)?;
                    self.access(Memory::Workspace(*counters), *at, 1, maybe)?;
                    self.values[last.index()] = Seen::DATA;
                }
                StatementKind::Shuffle { value, result, .. } => {
                    let beyond = self.seen(*value).beyond;
                    self.values[result.index()] = Seen { beyond, ..Seen::DATA };
                }
                StatementKind::BarRedOr { predicate, result } => {
                    self.matters(*predicate)?;
                    self.values[result.index()] = Seen::DATA;
                }
                StatementKind::MbarrierArrive { slot, to, .. } => {
                    self.matters(*slot)?;
                    if let Receivers::One(rank) = to {
                        self.matters(*rank)?;
                    }
                }
                StatementKind::LifetimeStart { slot, .. }
                | StatementKind::CpAsyncMbarrierArrive { slot, .. }
                | StatementKind::MbarrierExpectTx { slot, .. } => {
                    self.matters(*slot)?;
                }
                StatementKind::MbarrierWait { slot, parity, .. } => {
                    self.matters(*slot)?;
                    self.matters(*parity)?;
                }
                StatementKind::CpAsyncCommitGroup
                | StatementKind::CpAsyncWaitGroup { .. }
                | StatementKind::BarSync
                | StatementKind::BarSyncWarpgroup
                | StatementKind::BarWarpSync
                | StatementKind::BarrierCluster
                | StatementKind::FenceProxyAsync
                | StatementKind::GridDependencyWait
                | StatementKind::GridDependencyLaunch
                | StatementKind::BulkCommitGroup
                | StatementKind::BulkWaitGroupRead { .. }
                | StatementKind::WgmmaFence
                | StatementKind::WgmmaCommitGroup
                | StatementKind::WgmmaWaitGroup { .. } => {}
                StatementKind::Wgmma(product) => {
                    for matrix in Product::Wgmma(product).matrices() {
                        self.access(Memory::Buffer(matrix.buffer), matrix.offset, 1, maybe)?;
                        self.matters(matrix.slot)?;
                    }
                    product.adds.map_or(Ok(None), |adds| self.matters(adds))?;
                    product.all().for_each(|variable| self.variables[variable.index()] = Seen::DATA);
                }
                StatementKind::MmaSync(product) => {
                    product.all().for_each(|variable| self.variables[variable.index()] = Seen::DATA);
                }
            }
        }
        Ok(())
    }

    // Values.

    fn seen(&self, value: ValueId) -> Seen {
        self.values[value.index()]
    }

    /// A value as far as it is as said.
    fn value(&self, id: ValueId) -> Seen {
        let value = self.kernel.value(id);
        let seen = match value.op {
            Op::BlockIndex => Seen::known(self.block),
            Op::BlockCount => Seen::known(self.launch.blocks),
            Op::ClusterRank => Seen::known(self.block % i64::from(self.kernel.signature.cluster)),
            Op::ThreadIndex => Seen::known(self.thread),
            Op::Dim(dim) => Seen { known: self.launch.dims.get(usize::from(dim)).copied(), ..Seen::DATA },
            Op::Get(variable) => self.variables[variable.index()],
            Op::Scalar(_) => Seen::DATA,
            _ => self.pure(id),
        };
        self.as_said(id, seen)
    }

    fn as_said(&self, id: ValueId, seen: Seen) -> Seen {
        let Some(known) = seen.known else { return seen };
        match row::as_said(self.kernel.value(id), row::Row::Same(Some(known)), &[]).1 {
            Some(outside) => {
                let wraps = Some(outside).filter(|_| keeps_low_bits(self.kernel, id));
                Seen { known: None, beyond: Some((id, outside)), wraps }
            }
            None => seen,
        }
    }

    fn pure(&self, id: ValueId) -> Seen {
        let value = self.kernel.value(id);
        let mut known = [None; 3];
        let operands: Vec<Seen> = value.op.operands().map(|operand| self.seen(operand)).collect();
        known.iter_mut().zip(&operands).for_each(|(known, seen)| *known = seen.known);
        if keeps_low_bits(self.kernel, id) {
            known.iter_mut().zip(&operands).for_each(|(known, seen)| *known = seen.low_bits_of());
            if operands.iter().any(|seen| seen.is_data()) && operands.iter().all(|seen| !seen.is_wrong()) {
                return Seen::DATA;
            }
        }
        if let (Op::InRange(_, end), Some(seen)) = (value.op, operands.get(1))
            && self.kernel.value(end).ty == Type::I32
            && seen.wraps == Some(MOST_IN_RANGE)
        {
            known[1] = seen.wraps;
        }
        if let Some(result) = row::one(self.kernel, value, known, None) {
            return Seen::known(result);
        }
        let deciding: &[Seen] = match value.op {
            Op::Select(..) => match known[0] {
                Some(0) => &operands[2..],
                Some(_) => &operands[1..2],
                // Whichever data chooses: one that does not lie outside, perhaps.
                None if operands[0].beyond.is_some() => &operands[..1],
                None => &[],
            },
            // Data may decide alone.
            Op::Binary(Binary::And | Binary::Or, ..)
                if value.ty == Type::PRED && operands.iter().any(|seen| seen.is_data()) =>
            {
                &[]
            }
            _ => &operands,
        };
        match deciding {
            [one] if matches!(value.op, Op::Select(..)) => *one,
            _ => Seen { beyond: deciding.iter().find_map(|seen| seen.beyond), ..Seen::DATA },
        }
    }

    /// What happens depends on a value.
    fn matters(&self, value: ValueId) -> Result<Known, Violation> {
        let Seen { known, beyond, .. } = self.seen(value);
        let Some((id, index)) = beyond else { return Ok(known) };
        let Range { low, high } = self.kernel.value(id).facts.range;
        let what = format!(
            "v{} is {index} for thread {}, and is said to lie from {low} to {high} wherever it matters",
            id.index(),
            self.thread
        );
        Err(self.found(Kind::Beyond, what))
    }

    fn found(&self, kind: Kind, what: String) -> Violation {
        Violation { kind, line: self.line, block: Some(self.block), what }
    }

    // Control.

    fn repeat(&mut self, l: &Loop, maybe: bool) -> Outcome {
        let count = self.matters(l.count)?;
        let n = match count {
            Some(..=0) => return Ok(()),
            Some(count) => Some(self.draws.one_of(count)),
            None => None,
        };
        let mut set = Vec::new();
        assigned(self.kernel, l.body, &mut set);
        let forget = |path: &mut Self| set.iter().for_each(|variable| path.variables[variable.index()] = Seen::DATA);
        if n != Some(0) {
            forget(self);
        }
        let index = n.map_or(Seen::DATA, Seen::known);
        self.values[l.index.index()] = self.as_said(l.index, index);
        self.region(l.body, maybe || count.is_none())?;
        if count != Some(1) {
            forget(self);
        }
        Ok(())
    }

    fn branch(&mut self, branch: &If, maybe: bool) -> Outcome {
        let condition = self.matters(branch.condition)?;
        let holds = condition.map_or_else(|| self.draws.below(2) == 0, |known| known != 0);
        let side = if holds { Some(branch.then) } else { branch.otherwise };
        side.map_or(Ok(()), |side| self.region(side, maybe || condition.is_none()))
    }

    // Memory.

    /// Whether a predicate holds, if it is known; there is none, if none.
    fn predicate(&self, predicate: Option<ValueId>) -> Result<Known, Violation> {
        predicate.map_or(Ok(Some(1)), |predicate| self.matters(predicate))
    }

    fn load(&mut self, load: &Load, maybe: bool) -> Outcome {
        let holds = self.predicate(load.predicate)?;
        if holds != Some(0) {
            self.access(load.memory, load.offset, load.lanes, maybe || holds.is_none())?;
        }
        let at = self.seen(load.offset).known.filter(|_| holds == Some(1));
        for (n, value) in load.results().enumerate() {
            let otherwise = load.otherwise.get(n).filter(|_| holds == Some(0));
            let element = at.and_then(|at| self.element(load.memory, at + n as i64));
            self.values[value.index()] = match otherwise {
                Some(value) => self.seen(*value),
                None => Seen { known: element, ..Seen::DATA },
            };
        }
        Ok(())
    }

    /// An integer that memory holds, the same wherever a path reads it: mostly one that is or just is no index of
    /// something.
    fn element(&self, memory: Memory, at: i64) -> Known {
        let ty = self.kernel.element(memory).filter(|ty| ty.is_integer())?;
        let memory = match memory {
            Memory::Parameter(p) => u64::from(p),
            Memory::Buffer(buffer) => (1 << 16) + buffer.index() as u64,
            Memory::Workspace(w) => (2 << 16) + u64::from(w),
        };
        let drawn = mix([self.draws.seed, self.number, memory, at.cast_unsigned()]);
        let [way, more] = [drawn % 16, drawn >> 4];
        let dims = &self.launch.dims;
        let size = if dims.is_empty() { 1 } else { dims[(more % dims.len() as u64) as usize].max(1) };
        let near = (more >> 8) as i64 % size;
        Some(row::wrapped(
            ty,
            match way {
                0 => -1,
                1 => size,
                2 => 0,
                3 => i64::MAX >> (more & 32),
                4 => near - (1 << (more % 40)),
                5..=9 => size - 1 - (more >> 8) as i64 % size.min(64),
                _ => near,
            },
        ))
    }

    fn store(&self, store: &Store, maybe: bool) -> Outcome {
        for value in &store.values {
            self.matters(*value)?;
        }
        self.access(store.memory, store.offset, store.values.len() as u32, maybe)
    }

    /// The row that a thread says, if nobody says another one.
    fn matrices(&self, matrices: &Matrices, maybe: bool) -> Outcome {
        self.access(Memory::Buffer(matrices.buffer), matrices.offset, matrices.row, maybe)
    }

    fn fetch(&self, fetch: &CpAsync, maybe: bool) -> Outcome {
        let holds = self.predicate(fetch.predicate)?;
        if holds != Some(0) {
            self.access(Memory::Parameter(fetch.parameter), fetch.from, fetch.lanes, maybe || holds.is_none())?;
        }
        self.access(Memory::Buffer(fetch.buffer), fetch.to, fetch.lanes, maybe)
    }

    fn transfer(&self, transfer: &BulkCopy, maybe: bool) -> Outcome {
        for value in [transfer.slot, transfer.offset].into_iter().chain(transfer.multicast) {
            self.matters(value)?;
        }
        match &transfer.part {
            TensorPart::Tile { map, start } => {
                let map = self.launch.maps.get(usize::from(*map));
                let dimensions = map.map_or(&[][..], |tiles| &tiles.map.dimensions);
                // Coordinates have 32 bits, and wrap: what is outside of the tensor must be so then, too.
                let is_outside = |n: usize, at: i64| {
                    let of = dimensions.get(n);
                    of.is_some_and(|d| at >= d.size.cast_signed() || at + i64::from(d.box_size) <= 0)
                };
                (0..).zip(start).try_for_each(|(n, start)| match self.seen(*start).wraps {
                    Some(at) if is_outside(n, at) && is_outside(n, i64::from(at as i32)) => Ok(()),
                    _ => self.matters(*start).map(drop),
                })
            }
            TensorPart::Run { parameter, offset, bytes } => {
                let element = self.kernel.buffers[transfer.buffer.index()].element;
                self.access(Memory::Parameter(*parameter), *offset, bytes / element.bytes(), maybe)
            }
        }
    }

    /// Neighbouring elements are accessed; if it is known that they are, they are there.
    fn access(&self, memory: Memory, offset: ValueId, lanes: u32, maybe: bool) -> Outcome {
        let Some(at) = self.matters(offset)? else { return Ok(()) };
        let name = name(self.kernel, memory);
        let failed =
            |(kind, what): Fault| self.found(kind, format!("thread {} accesses `{name}[{at}]`: {what}", self.thread));
        if self.kernel.value(offset).ty == Type::I32 && i32::try_from(at).is_err() {
            return Err(failed((Kind::Wide, "the offset has 32 bits".to_owned())));
        }
        match self.outside(memory, at, lanes) {
            Some(fault) if !maybe => Err(failed(fault)),
            _ => Ok(()),
        }
    }

    fn outside(&self, memory: Memory, at: i64, lanes: u32) -> Option<Fault> {
        let bytes = self.kernel.element(memory).map_or(1, |e| u64::from(e.bytes()));
        let end = at.checked_add(i64::from(lanes));
        let lies = |first: i64, behind: i64| first <= at && end.is_some_and(|end| end <= behind);
        let outside = |what: String| Some((Kind::Outside, what));
        let (alignment, place) = match memory {
            Memory::Parameter(p) => {
                let tensor = self.launch.tensors[usize::from(p)].as_ref()?;
                let reach = tensor.reach();
                if !reach.is_some_and(|(first, last)| last < i64::MAX && lies(first, last + 1)) {
                    let Tensor { shape, strides, .. } = tensor;
                    return outside(format!("the tensor has {shape:?} elements at strides {strides:?}"));
                }
                (u64::from(tensor.alignment), 0)
            }
            Memory::Workspace(w) => {
                let all = self.launch.workspaces.get(usize::from(w)).copied().unwrap_or(0);
                if !lies(0, all) {
                    return outside(format!("the workspace has {all} elements"));
                }
                (0, 0)
            }
            Memory::Buffer(buffer) => {
                let all = shared::elements(self.kernel, self.launch, buffer);
                let part = self.kernel.part(buffer);
                let first = part.map_or(Some(0), |_| self.block.checked_mul(all));
                if !first.is_some_and(|first| first.checked_add(all).is_some_and(|behind| lies(first, behind))) {
                    return outside(format!("the buffer has {all} elements"));
                }
                // In a workspace, addresses count from its start.
                (0, part.map_or(self.places[buffer.index()], |_| 0))
            }
        };
        let begin = at.unsigned_abs().wrapping_mul(bytes).wrapping_add(place);
        misaligned(alignment, begin, u64::from(lanes) * bytes)
    }
}

/// Whether a value has the low bits that it would have with enough bits, if its operands have.
fn keeps_low_bits(kernel: &Kernel, id: ValueId) -> bool {
    let value = kernel.value(id);
    matches!(value.op, Op::Index(IndexOp::Add | IndexOp::Sub | IndexOp::Mul, ..))
        || matches!(value.op, Op::ConvertIndex(_)) && value.ty == Type::I32
}
