//! Statements: what each does to the agent whose threads come to it.
//!
//! This file is longer than 500 lines: one arm a statement.

use std::cell::Cell;

use tilewright_kernel::target::WARP;
use tilewright_sorted::SortedSet;

use super::{Outcome, Run, assigned, is_of_launches};
use crate::kernel_ir::{
    BufferId, If, Loop, Memory, Op, Receivers, RegionId, Sharing, Statement, StatementKind, ValueId, VariableId,
};
use crate::proof::agent::{Active, Frame, Turn, Waiting};
use crate::proof::barriers::Groups;
use crate::proof::blocks::{Arrival, Touch};
use crate::proof::row::Row;
use crate::proof::shared::CopyId;
use crate::proof::violation::Kind;
use crate::proof::{Stop, row};

impl<'a> Run<'a> {
    /// A region, next.
    pub(super) fn enter(&mut self, region: RegionId, active: Active) {
        self.me.frames.push(Frame { region, at: 0, active, turn: None });
    }

    /// An iteration of a loop, if there is another one.
    pub(super) fn turn(&mut self, turn: Turn<'a>) -> Outcome {
        if turn.n >= turn.most {
            return Ok(());
        }
        self.spend(1)?;
        self.hold(turn.of.index, Row::Same(Some(turn.n)), &turn.active);
        let active = match &turn.count {
            Row::Same(_) => turn.active.clone(),
            Row::Each(_) | Row::Line(_) => {
                let of = |thread: usize| turn.count.of(thread).is_some_and(|count| turn.n < count);
                let comes = |thread: usize| turn.active.lanes[thread] && of(thread);
                Active::of(self.threads, comes, turn.active.maybe, turn.active.elected)
            }
        };
        self.me.frames.push(Frame { region: turn.of.body, at: 0, active, turn: Some(turn) });
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm a statement")]
    pub(super) fn statement(&mut self, statement: &'a Statement, active: &Active) -> Outcome<bool> {
        self.spend(1)?;
        if !self.me.behind && is_of_launches(self.kernel, &statement.kind) {
            let what = "memory of other launches is accessed before they are waited for".to_owned();
            return self.violation(Kind::BeforeWait, what);
        }
        match &statement.kind {
            StatementKind::Let(value) => self.bind(*value, active)?,
            StatementKind::Declare(variable, value) | StatementKind::Set(variable, value) => {
                let declared = matches!(statement.kind, StatementKind::Declare(..));
                self.is_at_rest(*variable)?;
                self.me.products.touch(*variable, self.me.order.now);
                self.assign(*variable, *value, active, declared);
            }
            StatementKind::Load(load) => self.load(load, None, active)?,
            StatementKind::LoadMatrix(load) => {
                self.everybody(active)?;
                self.load_matrix(load, active)?;
            }
            StatementKind::StoreMatrix(store) => {
                self.everybody(active)?;
                self.store_matrix(store, active)?;
            }
            StatementKind::LoadDsmem { rank, load } => self.load(load, Some(*rank), active)?,
            StatementKind::Store(store) => self.store(store, self.me.id.rank..=self.me.id.rank, active)?,
            StatementKind::StoreDsmemAll(store) => {
                self.store(store, 0..=self.kernel.signature.cluster as u8 - 1, active)?
            }
            StatementKind::Loop(l) => self.repeat(l, active)?,
            StatementKind::If(branch) => self.branch(branch, active)?,
            StatementKind::BarSync => {
                self.everybody(active)?;
                self.meet();
            }
            StatementKind::BarrierCluster => {
                self.everybody(active)?;
                if self.me.id.role != 0 {
                    self.meets_in_role()?;
                }
                self.me.waiting = Waiting::Cluster;
                return Ok(false);
            }
            StatementKind::BarSyncWarpgroup => {
                self.everybody(active)?;
                self.me.order.synced_warpgroup = self.me.order.now;
            }
            StatementKind::BarWarpSync => {
                self.everybody(active)?;
                self.meet_in_warps();
            }
            StatementKind::LifetimeStart { buffer, slot }
                if self.kernel.buffers[buffer.index()].sharing == Sharing::Thread =>
            {
                let row = self.me.values[slot.index()].clone();
                let slots: SortedSet<Option<i64>> = active.threads().map(|thread| row.of(thread)).collect();
                if slots.contains(&None) {
                    self.depends("which slot is renewed depends on data".to_owned());
                }
                for slot in slots.into_iter().flatten() {
                    let comes = |thread: u32| {
                        let thread = thread as usize;
                        active.lanes.get(thread) == Some(&true) && row.of(thread) == Some(slot)
                    };
                    self.renew(*buffer, slot, Some(&comes))?;
                }
            }
            StatementKind::LifetimeStart { buffer, slot } => {
                self.everybody(active)?;
                let slot = self.agreed(*slot, active)?;
                self.renew(*buffer, slot, None)?;
            }
            StatementKind::CpAsync(fetch) => self.fetch(fetch, active)?,
            StatementKind::GridDependencyWait => {
                self.everybody(active)?;
                self.me.behind = true;
            }
            StatementKind::GridDependencyLaunch => self.everybody(active)?,
            StatementKind::CpAsyncCommitGroup => {
                self.everybody(active)?;
                self.me.fetches.iter_mut().for_each(Groups::commit);
            }
            StatementKind::CpAsyncWaitGroup { pending } => {
                self.everybody(active)?;
                let now = self.me.order.now;
                for groups in &mut self.me.fetches {
                    groups.wait(*pending).into_iter().for_each(|copy| self.shared.end(copy, self.me.id, now));
                }
            }
            StatementKind::Shuffle { value, mask, result } => {
                self.everybody(active)?;
                let given = &self.me.values[value.index()];
                let partner = |thread: usize| {
                    let other = thread ^ *mask as usize;
                    if other < self.threads { other } else { thread }
                };
                let row = match given {
                    Row::Same(value) => Row::Same(*value),
                    _ => Row::Each((0..self.threads).map(|thread| given.of(partner(thread))).collect()),
                };
                self.me.values[result.index()] = row;
            }
            StatementKind::AtomicUpdate(update) => {
                if active.maybe {
                    let name = self.name(update.memory);
                    self.depends(format!("whether `{name}` is updated depends on data"));
                }
                let memory = update.memory;
                for thread in active.threads() {
                    if let Some(at) = self.offset(memory, update.offset, thread, active)? {
                        self.access(memory, at, 1, thread, active, Touch::Update)?;
                        let with = self.me.values[update.value.index()].of(thread);
                        if let Some(data) = &mut self.data {
                            data.update(self.kernel, (memory, at), update.op, with);
                        }
                    }
                }
            }
            StatementKind::LastBlockTicket { counters, at, blocks, last, releases, acquires } => {
                self.everybody(active)?;
                let (at, blocks) = (self.agreed(*at, active)?, self.agreed(*blocks, active)?);
                let (workspace, block, releases, acquires) = (*counters, self.me.block, *releases, *acquires);
                let arrival = Arrival { workspace, at, blocks, block, releases, acquires };
                match self.workspaces.arrive(arrival, self.me.order) {
                    Ok(is_last) => {
                        let first = self.me.threads.start;
                        let said = |thread| Some(i64::from(is_last && thread == first));
                        self.me.values[last.index()] = Row::Each((0..self.threads).map(said).collect());
                    }
                    Err((kind, what)) => {
                        let name = self.name(Memory::Workspace(*counters));
                        return self.violation(kind, format!("counter {at} of `{name}`: {what}"));
                    }
                }
            }
            StatementKind::BarRedOr { predicate, result } => {
                self.everybody(active)?;
                self.meet();
                let said = &self.me.values[predicate.index()];
                let mut all = self.me.threads.clone().map(|thread| said.of(thread));
                let any = all.clone().any(|one| one.is_some_and(|one| one != 0));
                let value = if any || all.all(|one| one.is_some()) { Some(i64::from(any)) } else { None };
                self.me.values[result.index()] = Row::Same(value);
            }
            StatementKind::Elect(part) => {
                self.everybody(active)?;
                // A role of one warp waits for its lanes first.
                if self.me.id.role != 0 && self.me.count() <= WARP as usize {
                    self.meet();
                }
                // Any lane of the first warp may be it.
                let first = self.me.threads.start;
                let comes = |thread: usize| first <= thread && thread < first + WARP as usize;
                self.enter(*part, Active::of(self.threads, comes, false, true));
            }
            StatementKind::MbarrierExpectTx { barrier, slot, bytes } => {
                self.elected(active)?;
                // A thread alone waits for nobody.
                let clock = self.me.released(self.threads == 1);
                let rank = self.me.id.rank;
                let phase = self.phase(rank, *barrier, *slot, active)?;
                phase.expect(u64::from(*bytes));
                let fault = phase.arrive(1, &clock).err();
                fault.map_or(Ok(()), |fault| self.wrong(active, fault))?;
            }
            StatementKind::MbarrierArrive { barrier, slot, to } => {
                self.everybody(active)?;
                // One lane arrives for its warp: the others have come there.
                self.meet_in_warps();
                let ranks = match to {
                    Receivers::Own => self.me.id.rank..=self.me.id.rank,
                    Receivers::All => 0..=self.kernel.signature.cluster as u8 - 1,
                    Receivers::One(rank) => match self.agreed(*rank, active)? {
                        rank if (0..i64::from(self.kernel.signature.cluster)).contains(&rank) => {
                            rank as u8..=rank as u8
                        }
                        rank => {
                            let what = format!("block {rank} of the cluster is told, which has none");
                            return self.violation(Kind::Outside, what);
                        }
                    },
                };
                let own = self.me.released(true);
                let (warps, abroad) = (self.me.count().div_ceil(WARP as usize) as u32, own.reads());
                for rank in ranks {
                    self.visit(rank)?;
                    let clock = if rank == self.me.id.rank { &own } else { &abroad };
                    if let Err((kind, what)) = self.phase(rank, *barrier, *slot, active)?.arrive(warps, clock) {
                        return self.violation(kind, what);
                    }
                }
            }
            StatementKind::CpAsyncMbarrierArrive { barrier, slot } => {
                self.everybody(active)?;
                let copies: Vec<CopyId> = self.me.fetches.iter_mut().flat_map(Groups::release).collect();
                copies.iter().for_each(|copy| self.shared.disown(*copy));
                // As the end of any copy, it says how far the threads had come.
                let (threads, clock, rank) = (self.me.count() as u32, self.me.released(true), self.me.id.rank);
                let phase = self.phase(rank, *barrier, *slot, active)?;
                if let Err((kind, what)) = phase.arrive_behind(copies, threads, &clock) {
                    return self.violation(kind, what);
                }
            }
            StatementKind::Roles(roles) => {
                self.everybody(active)?;
                return self.roles(roles);
            }
            StatementKind::BulkCopy(transfer) => {
                self.elected(active)?;
                self.transfer(transfer, active)?;
            }
            StatementKind::MbarrierWait { barrier, slot, parity } => {
                self.everybody(active)?;
                let (at, parity) = (self.agreed(*slot, active)?, self.agreed(*parity, active)?);
                self.me.waiting = Waiting::Phase(barrier.0, at, parity);
                let (id, now, clock) = (self.me.id, self.me.order.now, self.me.clock.clone());
                let ended = match self.phase(id.rank, *barrier, *slot, active)?.wait(parity, (id, now), &clock) {
                    Ok(Some(ended)) => ended.clone(),
                    Ok(None) => return Ok(false),
                    Err((kind, what)) => return self.violation(kind, what),
                };
                self.me.clock.join(&ended.clock);
                self.me.order.learn(ended.clock.of(id));
                ended.copies.into_iter().for_each(|copy| self.shared.end(copy, id, now));
            }
            StatementKind::Wgmma(product) => {
                self.everybody(active)?;
                self.multiply(product, active)?;
            }
            StatementKind::MmaSync(product) => {
                self.everybody(active)?;
                self.multiply_in_registers(product, active)?;
            }
            StatementKind::WgmmaFence => {
                self.everybody(active)?;
                self.me.products.fenced = self.me.order.now;
            }
            StatementKind::WgmmaCommitGroup => {
                self.everybody(active)?;
                self.me.products.groups.commit();
            }
            StatementKind::WgmmaWaitGroup { pending } => {
                self.everybody(active)?;
                self.products_are_over(*pending);
            }
            StatementKind::FenceProxyAsync => {
                self.everybody(active)?;
                self.me.order.published = self.me.order.now;
            }
            StatementKind::BulkCommitGroup => {
                self.elected(active)?;
                self.me.groups.commit();
            }
            StatementKind::BulkWaitGroupRead { pending } => {
                self.elected(active)?;
                let over = self.me.groups.wait(*pending);
                over.into_iter().for_each(|copy| self.shared.end(copy, self.me.id, self.me.order.now));
            }
        }
        Ok(true)
    }

    /// A slot of a buffer is renewed: all of it, or the elements of some threads.
    pub(super) fn renew(&mut self, buffer: BufferId, slot: i64, whose: Option<&dyn Fn(u32) -> bool>) -> Outcome {
        let of = &self.kernel.buffers[buffer.index()];
        if slot < 0 || slot >= i64::from(of.slots) {
            let what = format!("`{}` has {} slots, and slot {slot} is renewed", of.name, of.slots);
            return self.violation(Kind::Outside, what);
        }
        let elements = self.shared.elements(buffer).unsigned_abs() / u64::from(of.slots.max(1));
        let bytes = elements * u64::from(of.element.bytes());
        self.spend(whose.map_or(0, |_| elements))?;
        self.shared.renew((self.me.id.rank, buffer), slot.unsigned_abs() * bytes, bytes, whose);
        Ok(())
    }

    /// All threads of the block wait for each other.
    pub(super) fn meet(&mut self) {
        self.me.order.meet();
        self.workspaces.tell_all();
        // A role does not know what a thread of another one did.
        self.me.ready |= self.me.id.role == 0;
    }

    /// The lanes of each warp meet.
    pub(super) fn meet_in_warps(&mut self) {
        // They are all there are.
        if self.me.count() <= WARP as usize {
            return self.meet();
        }
        self.me.order.synced_warp = self.me.order.now;
        self.workspaces.tell_warp();
    }

    // Control.

    /// A statement for all threads.
    pub(super) fn everybody(&mut self, active: &Active) -> Outcome {
        if active.count < self.me.count() || active.elected {
            let what = format!("{} of {} threads come to a statement for all", active.count, self.me.count());
            return self.violation(Kind::NotEveryThread, what);
        }
        self.decided(active)
    }

    /// A statement of the elected thread, which any of its lanes may be.
    pub(in crate::proof) fn elected(&mut self, active: &Active) -> Outcome {
        if !active.elected || active.count < self.me.count().min(WARP as usize) {
            let what = "it depends on which thread is elected whether a copy is made".to_owned();
            return self.violation(Kind::NotEveryThread, what);
        }
        self.decided(active)
    }

    pub(super) fn decided(&mut self, active: &Active) -> Outcome {
        if active.maybe {
            let what = "whether threads come to a statement for all depends on data".to_owned();
            return Err(Stop::Undecided(self.found(Kind::Data, what)));
        }
        Ok(())
    }

    /// The value of an operand that all who come must agree on.
    pub(in crate::proof) fn agreed(&mut self, value: ValueId, active: &Active) -> Outcome<i64> {
        match self.agreed_if_known(value, active)? {
            Some(known) => Ok(known),
            None => {
                Err(Stop::Undecided(self.found(Kind::Data, "what a copy or barrier is depends on data".to_owned())))
            }
        }
    }

    /// The same; none if it depends on data.
    pub(in crate::proof) fn agreed_if_known(&mut self, value: ValueId, active: &Active) -> Outcome<Option<i64>> {
        let row = &self.me.values[value.index()];
        let mut all = active.threads().map(|thread| row.of(thread));
        let first = all.next().flatten();
        if !all.all(|one| one == first) {
            return self.violation(Kind::Disagree, "threads disagree on what a copy or barrier is".to_owned());
        }
        Ok(first)
    }

    pub(super) fn repeat(&mut self, l: &'a Loop, active: &Active) -> Outcome {
        let count = self.me.values[l.count.index()].clone();
        let known: Vec<Option<i64>> = match count {
            Row::Same(count) => vec![count],
            _ => active.threads().map(|thread| count.of(thread)).collect(),
        };
        if known.contains(&None) {
            // Any number of times: what the body changes is unknown, and what it does may happen.
            let mut set = Vec::new();
            assigned(self.kernel, l.body, &mut set);
            for variable in set {
                self.me.variables[variable.index()] = Row::UNKNOWN;
            }
            self.me.values[l.index.index()] = Row::UNKNOWN;
            self.enter(l.body, Active { maybe: true, ..active.clone() });
            return Ok(());
        }
        let most = known.iter().copied().flatten().max().unwrap_or(0);
        self.turn(Turn { of: l, count, most, n: 0, active: active.clone() })
    }

    pub(super) fn branch(&mut self, branch: &If, active: &Active) -> Outcome {
        let condition = match &self.me.values[branch.condition.index()] {
            Row::Line(line) => Row::Each(line.each(&active.lanes)),
            known => known.clone(),
        };
        // What is entered last runs first.
        for (side, wanted) in [(branch.otherwise, 0), (Some(branch.then), 1)] {
            let Some(side) = side else { continue };
            match condition {
                Row::Same(Some(known)) if known == wanted => self.enter(side, active.clone()),
                Row::Same(Some(_)) => {}
                Row::Same(None) | Row::Line(_) => self.enter(side, Active { maybe: true, ..active.clone() }),
                Row::Each(ref all) => {
                    let (all, lanes) = (&all[..], &active.lanes[..]);
                    let maybe = Cell::new(active.maybe);
                    let comes = |thread: usize| match all[thread] {
                        _ if !lanes[thread] => false,
                        Some(known) => known == wanted,
                        None => {
                            maybe.set(true);
                            true
                        }
                    };
                    let some = Active::of(self.threads, comes, false, active.elected);
                    let some = Active { maybe: maybe.get(), ..some };
                    if some.count > 0 {
                        self.enter(side, some);
                    }
                }
            }
        }
        Ok(())
    }

    // Values.

    /// Whether no product adds to a variable, or reads it.
    pub(in crate::proof) fn is_at_rest(&self, variable: VariableId) -> Outcome {
        match self.me.products.uses(variable) {
            true => self.violation(Kind::UnderWay, format!("v{} is used while a product may use it", variable.0)),
            false => Ok(()),
        }
    }

    pub(super) fn bind(&mut self, id: ValueId, active: &Active) -> Outcome {
        let value = self.kernel.value(id);
        let row = match value.op {
            Op::BlockIndex => Row::Same(Some(self.me.block)),
            Op::BlockCount => Row::Same(Some(self.launch.blocks)),
            Op::ClusterRank => Row::Same(Some(self.me.block % i64::from(self.kernel.signature.cluster))),
            Op::ThreadIndex => Row::of_integers((0..self.threads as i64).map(Some).collect(), active),
            Op::Dim(dim) => Row::Same(self.launch.dims.get(usize::from(dim)).copied()),
            Op::Get(variable) => {
                self.is_at_rest(variable)?;
                self.me.products.touch(variable, self.me.order.now);
                self.me.variables[variable.index()].clone()
            }
            Op::Scalar(parameter) => match (self.algebra(), value.ty.element()) {
                (Some(algebra), Some(ty)) => Row::Same(Some(algebra.scalar(parameter, ty))),
                _ => Row::UNKNOWN,
            },
            _ => {
                let of = (self.algebra(), &self.rows);
                row::pure(self.kernel, value, active, &self.me.values, of)
            }
        };
        // Whether threads may differ in it, though they may all say the same.
        let is_each = |row: &Row| !matches!(row, Row::Same(_));
        let of_each = is_each(&row) || value.op.operands().any(|v| is_each(&self.me.values[v.index()]));
        if matches!(value.op, Op::OfWarp(_)) && of_each {
            let all: Vec<Option<i64>> = self.me.threads.clone().map(|thread| row.of(thread)).collect();
            let mut warps = all.chunks(WARP as usize);
            if active.count < self.me.count() || warps.any(|lanes| lanes.iter().any(|lane| *lane != lanes[0])) {
                let what = format!("v{} is said to be the same for the lanes of each warp", id.index());
                return self.violation(Kind::Disagree, what);
            }
        }
        if of_each {
            self.spend(active.count as u64)?;
            let mut seen = active.threads().filter_map(|thread| row.of(thread));
            if value.facts.uniform
                && let Some(one) = seen.next()
                && let Some(other) = seen.find(|other| *other != one)
            {
                let what = format!("v{} is {one} and {other}, and is said to be the same for all threads", id.index());
                return self.violation(Kind::Disagree, what);
            }
        }
        self.hold(id, row, active);
        Ok(())
    }

    /// Gives a value to the threads that come to it, with data as far as it is as said; on indices alone, offsets are
    /// looked at where they are used.
    pub(super) fn hold(&mut self, id: ValueId, row: Row, active: &Active) {
        let value = self.kernel.value(id);
        let (row, beyond) = if self.data.is_some() { row::as_said(value, row, &active.lanes) } else { (row, None) };
        if let Some(index) = beyond
            && self.beyond.is_none()
        {
            let (low, high) = (value.facts.range.low, value.facts.range.high);
            let what =
                format!("v{} is {index}, and is said to lie from {low} to {high} wherever it matters", id.index());
            self.beyond = Some(self.found(Kind::Beyond, what));
        }
        self.me.values[id.index()] = row;
    }

    pub(super) fn assign(&mut self, variable: VariableId, value: ValueId, active: &Active, declared: bool) {
        let count = self.me.count();
        let nothing = Row::UNKNOWN;
        let is_unset = declared && self.kernel.is_unset(variable);
        let new = if is_unset { &nothing } else { &self.me.values[value.index()] };
        let old = &mut self.me.variables[variable.index()];
        if declared || !active.maybe && (active.count == count || active.elected) {
            *old = new.clone();
        } else if *old != *new {
            let maybe = active.maybe;
            old.replace(self.threads, |thread, old| {
                let new = new.of(thread);
                if !active.lanes[thread] || old == new {
                    old
                } else if maybe {
                    None
                } else {
                    new
                }
            });
        }
    }
}
