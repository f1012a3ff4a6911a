//! The run: agents in turn, and every statement for all threads that come to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Stop;
use super::agent::{Active, Agent, Frame, Turn, Waiting};
use super::barriers::{Groups, Phase};
use super::blocks::{Arrival, Touch, Workspaces};
use super::global::Elements;
use super::launch::Launch;
use super::row::{self, Row};
use super::shared::{AgentId, Clock, CopyId, Fault, Order, Shared, Time};
use super::values::{Algebra, Data};
use super::violation::{Kind, Violation};
use crate::kernel_ir::{
    BufferId, If, Kernel, Loop, Memory, Op, Receivers, RegionId, Role, Sharing, Statement, StatementKind, ValueId,
    VariableId,
};
use crate::target::WARP;

pub(super) type Outcome<T = ()> = Result<T, Stop>;

/// The state of a run.
pub(super) struct Run<'a> {
    pub kernel: &'a Kernel,
    pub launch: &'a Launch,
    pub threads: usize,
    pub budget: u64,
    /// The agent that runs, and those of its cluster that do not, or are over.
    pub me: Agent<'a>,
    others: BTreeMap<AgentId, Agent<'a>>,
    now: Time,
    /// Whether roles were begun.
    spawned: bool,
    pub shared: Shared,
    /// Barriers of each block of the cluster.
    pub phases: Vec<Vec<Vec<Phase>>>,
    /// When agents last reached for another block of the cluster.
    pub visits: BTreeMap<(u8, AgentId), Time>,
    pub tensors: Vec<Option<Elements>>,
    pub workspaces: Workspaces,
    /// What memory holds, if the run has data.
    pub data: Option<Data<'a>>,
    /// The first thing that depends on data.
    undecided: Option<Violation>,
    /// The first index outside of what is said of it; nothing may depend on it.
    beyond: Option<Violation>,
}

impl<'a> Run<'a> {
    pub fn new(kernel: &'a Kernel, launch: &'a Launch, budget: u64, data: Option<Data<'a>>) -> Outcome<Self> {
        let mut tensors = Vec::new();
        let mut left = budget;
        for tensor in &launch.tensors {
            let elements = match tensor {
                Some(tensor) => Some(Elements::new(tensor, left).ok_or(Stop::Exhausted)?),
                None => None,
            };
            left = left.saturating_sub(elements.as_ref().map_or(0, Elements::span));
            tensors.push(elements);
        }
        let zeroed = kernel.workspaces.iter().map(|w| w.zeroed);
        let sizes = launch.workspaces.iter().copied().zip(zeroed);
        let workspaces = Workspaces::new(sizes, left).ok_or(Stop::Exhausted)?;
        let shared = Shared::new(kernel, launch, left).ok_or(Stop::Exhausted)?;
        let mut run = Self {
            kernel,
            launch,
            threads: kernel.signature.threads as usize,
            budget: left,
            me: Agent {
                id: AgentId { rank: 0, role: 0 },
                name: String::new(),
                block: 0,
                threads: 0..0,
                values: Vec::new(),
                variables: Vec::new(),
                order: Order::default(),
                clock: Clock::default(),
                ready: false,
                behind: false,
                groups: Groups::default(),
                fetches: Vec::new(),
                frames: Vec::new(),
                line: 0,
                waiting: Waiting::Nothing,
            },
            others: BTreeMap::new(),
            now: 0,
            spawned: false,
            shared,
            phases: Vec::new(),
            visits: BTreeMap::new(),
            tensors,
            workspaces,
            data,
            undecided: None,
            beyond: None,
        };
        run.me = run.block(0, 0);
        Ok(run)
    }

    /// A block at its start.
    fn block(&self, rank: u8, block: i64) -> Agent<'a> {
        let values = self.kernel.values.iter().map(|value| match value.op {
            Op::Literal(bits) => Row::Same(row::literal(value.ty, bits, self.algebra())),
            _ => Row::UNKNOWN,
        });
        let everybody = Active::of((0..self.threads).map(|_| true), false, false);
        Agent {
            id: AgentId { rank, role: 0 },
            name: format!("block {block}"),
            block,
            threads: 0..self.threads,
            values: values.collect(),
            variables: vec![Row::UNKNOWN; self.kernel.variables.len()],
            order: Order { now: self.now, ..Order::default() },
            clock: Clock::default(),
            ready: false,
            behind: !self.launch.dependent,
            groups: Groups::default(),
            fetches: vec![Groups::default(); self.threads],
            frames: vec![Frame { region: Kernel::BODY, at: 0, active: everybody, turn: None }],
            line: 0,
            waiting: Waiting::Nothing,
        }
    }

    /// Every block; what depends on data, if nothing is wrong.
    pub fn all(mut self) -> Outcome<Option<Violation>> {
        let blocks = self.every_block();
        // With data all is known but such indices.
        if let (Some(_), Some(beyond)) = (&self.data, &self.beyond)
            && (matches!(blocks, Err(Stop::Undecided(_))) || blocks.is_ok() && self.undecided.is_some())
        {
            return Err(Stop::Violated(beyond.clone()));
        }
        blocks?;
        if self.undecided.is_none()
            && let Some(data) = &self.data
        {
            return data.compare(self.kernel, self.launch, self.budget);
        }
        Ok(self.undecided)
    }

    fn every_block(&mut self) -> Outcome {
        let of_cluster = i64::from(self.kernel.signature.cluster);
        if self.launch.blocks % of_cluster != 0 {
            let what = format!("{} blocks are no whole clusters of {of_cluster}", self.launch.blocks);
            return Err(Stop::Violated(Violation { kind: Kind::Outside, line: 0, block: None, what }));
        }
        for first in (0..self.launch.blocks).step_by(self.kernel.signature.cluster as usize) {
            self.cluster(first)?;
        }
        if let Some((workspace, at)) = self.workspaces.left()
            && self.undecided.is_none()
        {
            let name = self.name(Memory::Workspace(workspace));
            let what = format!("element {at} of `{name}` may not be zero at the end");
            return Err(Stop::Violated(Violation { kind: Kind::Left, line: 0, block: None, what }));
        }
        let missing = (self.tensors.iter().enumerate()).find_map(|(n, t)| Some((n, t.as_ref()?.missing()?)));
        if let Some((n, offset)) = missing
            && self.undecided.is_none()
        {
            let name = &self.kernel.signature.parameters[n].name;
            let what = format!("element {offset} of `{name}` is never written");
            return Err(Stop::Violated(Violation { kind: Kind::NotWritten, line: 0, block: None, what }));
        }
        Ok(())
    }

    fn algebra(&self) -> Option<&Algebra> {
        self.data.as_ref().map(|data| &data.algebra)
    }

    // Agents.

    /// The blocks of a cluster: each agent in turn, as far as it comes.
    fn cluster(&mut self, first: i64) -> Outcome {
        let blocks = self.kernel.signature.cluster as u8;
        self.now = 1;
        self.shared.reset();
        self.data.iter_mut().for_each(Data::reset);
        self.visits.clear();
        self.workspaces.begin(blocks.into());
        let barriers = |_| -> Vec<Vec<Phase>> {
            self.kernel.barriers.iter().map(|b| vec![Phase::new(b.arrivals); b.slots as usize]).collect()
        };
        self.phases = (0..blocks).map(barriers).collect();
        self.others = (0..blocks).map(|rank| self.block(rank, first + i64::from(rank))).map(|a| (a.id, a)).collect();
        loop {
            let mut moved = false;
            for id in self.others.keys().copied().collect::<Vec<_>>() {
                let Some(agent) = self.others.remove(&id) else { continue };
                let before = std::mem::replace(&mut self.me, agent);
                self.workspaces.select(id.rank.into());
                while !self.me.has_ended() && self.step()? {
                    moved = true;
                    if self.me.has_ended() {
                        self.end()?;
                    }
                }
                self.others.insert(id, std::mem::replace(&mut self.me, before));
            }
            moved |= self.meet_anywhere() | std::mem::take(&mut self.spawned);
            if self.others.values().all(Agent::has_ended) {
                return Ok(());
            }
            if !moved {
                return self.deadlock();
            }
        }
    }

    /// The next statement, or the end of a region; whether the agent comes after it.
    fn step(&mut self) -> Outcome<bool> {
        let depth = self.me.frames.len() - 1;
        let frame = &mut self.me.frames[depth];
        let statements = &self.kernel.region(frame.region).statements;
        let Some(statement) = statements.get(frame.at) else {
            match frame.turn.take() {
                Some(turn) => {
                    self.me.frames.pop();
                    self.turn(Turn { n: turn.n + 1, ..turn })?;
                }
                None => drop(self.me.frames.pop()),
            }
            return Ok(true);
        };
        let active = frame.active.clone();
        self.me.line = statement.line;
        self.now += 1;
        self.me.order.now = self.now;
        let passed = self.statement(statement, &active)?;
        if passed {
            self.me.waiting = Waiting::Nothing;
            self.me.frames[depth].at += 1;
        }
        Ok(passed)
    }

    /// Roles run; whether all of them are over.
    fn roles(&mut self, roles: &'a [Role]) -> Outcome<bool> {
        let AgentId { rank, .. } = self.me.id;
        let ids = (1..=roles.len() as u8).map(|role| AgentId { rank, role });
        if self.me.waiting != Waiting::Roles(roles.len() as u8) {
            for (id, role) in ids.zip(roles) {
                let Range { start, end } = role.threads();
                let threads = start as usize..end as usize;
                let active = Active::of((0..self.threads).map(|thread| threads.contains(&thread)), false, false);
                let mut clock = self.me.clock.clone();
                clock.join(&self.me.released(false));
                let agent = Agent {
                    id,
                    name: format!("role {} of block {}", role.name, self.me.block),
                    fetches: vec![Groups::default(); self.threads],
                    threads,
                    clock,
                    groups: Groups::default(),
                    frames: vec![Frame { region: role.body, at: 0, active, turn: None }],
                    waiting: Waiting::Nothing,
                    ..self.me.clone()
                };
                self.others.insert(id, agent);
            }
            self.me.waiting = Waiting::Roles(roles.len() as u8);
            self.spawned = true;
            return Ok(false);
        }
        if ids.clone().any(|id| self.others.get(&id).is_some_and(|role| !role.has_ended())) {
            return Ok(false);
        }
        for id in ids {
            let Some(mut role) = self.others.remove(&id) else { continue };
            role.order.now = self.me.order.now;
            self.me.clock.join(&role.released(true));
        }
        self.meet();
        Ok(true)
    }

    /// If all blocks of the cluster are at its barrier, or all that have a role are where that meets, they come after
    /// it.
    fn meet_in_cluster(&mut self, role: u8) -> bool {
        let all = || self.others.values().filter(|agent| agent.id.role == role);
        let come = all().all(|agent| agent.waiting == Waiting::Cluster);
        if !come || all().count() < self.kernel.signature.cluster as usize {
            return false;
        }
        self.now += 1;
        let now = self.now;
        let mut clock = Clock::default();
        let mut those: Vec<&mut Agent<'_>> = self.others.values_mut().filter(|agent| agent.id.role == role).collect();
        for agent in &mut those {
            agent.order.now = now;
            agent.order.meet();
            clock.join(&agent.released(true));
        }
        if role == 0 {
            let ranks: Vec<_> = those.iter().map(|agent| (agent.block, agent.order)).collect();
            self.workspaces.tell_cluster(&ranks);
        }
        for agent in those {
            agent.clock.join(&clock);
            agent.ready = true;
            agent.waiting = Waiting::Nothing;
            if let Some(frame) = agent.frames.last_mut() {
                frame.at += 1;
            }
        }
        true
    }

    /// Whether the blocks of the cluster met, or those of a role.
    fn meet_anywhere(&mut self) -> bool {
        (0..=self.kernel.roles().len() as u8).any(|role| self.meet_in_cluster(role))
    }

    /// Whether a role may meet in all blocks: all of them are there, and its barrier is ready and has as many arrivals
    /// as warps come.
    fn meets_in_role(&mut self) -> Outcome {
        if !self.me.ready {
            let what = "a barrier is used before all threads know that it is ready".to_owned();
            return self.violation(Kind::NotReady, what);
        }
        let blocks = self.kernel.signature.cluster as u8;
        (0..blocks).try_for_each(|rank| self.visit(rank))?;
        let role = &self.kernel.roles()[usize::from(self.me.id.role) - 1];
        let expected = role.cluster_mbarrier.map_or(0, |barrier| self.kernel.barriers[barrier.index()].arrivals);
        let warps = role.warps.len() as u32 * u32::from(blocks);
        if expected != warps {
            let what = format!("{warps} warps of {blocks} blocks meet at a barrier of {expected}");
            return self.violation(Kind::NeverEnds, what);
        }
        Ok(())
    }

    /// Nobody can go on.
    fn deadlock(&mut self) -> Outcome {
        let stuck: Vec<AgentId> = self.others.values().filter(|a| !a.has_ended()).map(|a| a.id).collect();
        let mut all = Vec::new();
        let mut first: Option<(Kind, AgentId)> = None;
        // What waits for others is the consequence of something else, if anything waits for a phase.
        for id in stuck {
            let agent = &self.others[&id];
            let (kind, what) = match agent.waiting {
                Waiting::Phase(barrier, slot, _) => {
                    let phase = &self.phases[usize::from(id.rank)][barrier as usize][slot as usize];
                    let (kind, what) = phase.stuck();
                    (kind, format!("{what} (barrier {barrier}, slot {slot})"))
                }
                Waiting::Cluster => (Kind::NeverEnds, "waits for blocks of the cluster that do not come".to_owned()),
                Waiting::Roles(_) => continue,
                Waiting::Nothing => (Kind::NeverEnds, "does not go on".to_owned()),
            };
            if first.is_none() || kind == Kind::Bytes {
                first = Some((kind, id));
            }
            all.push(format!("{}: {what}", agent.name));
        }
        let Some((kind, id)) = first else { return Ok(()) };
        let (block, line) = (self.others[&id].block, self.others[&id].line);
        let what = match all.as_slice() {
            [one] => one.split_once(": ").map_or(one.as_str(), |(_, what)| what).to_owned(),
            _ => format!("nobody goes on: {}", all.join("; ")),
        };
        Err(Stop::Violated(Violation { kind, line, block: Some(block), what }))
    }

    /// What must be over when an agent ends.
    fn end(&mut self) -> Outcome {
        let AgentId { rank, role } = self.me.id;
        if role == 0 && self.phases[usize::from(rank)].iter().flatten().any(Phase::is_open) {
            return self.violation(Kind::Left, "a copy to shared memory may be under way at the end".to_owned());
        }
        if self.me.fetches.iter().any(Groups::is_open) {
            return self.violation(Kind::Left, "a fetch to shared memory may be under way at the end".to_owned());
        }
        if self.me.groups.is_open() {
            return self.violation(Kind::Left, "a copy may read shared memory at the end".to_owned());
        }
        let visits = self.visits.iter().filter(|((owner, _), _)| *owner == rank && role == 0);
        let mut late = visits.filter(|((_, by), time)| !self.me.clock.covers((*by, **time)));
        if let Some(((_, by), _)) = late.next() {
            let what = format!("block {rank} of the cluster ends while block {} may access its memory still", by.rank);
            return self.violation(Kind::Exited, what);
        }
        Ok(())
    }

    /// An agent accesses memory of a block of the cluster.
    pub(super) fn visit(&mut self, rank: u8) -> Outcome {
        self.reach(rank)?;
        if rank != self.me.id.rank {
            self.visits.insert((rank, self.me.id), self.me.order.now);
        }
        Ok(())
    }

    /// Whether a block of the cluster is there.
    pub(super) fn reach(&mut self, rank: u8) -> Outcome {
        if rank == self.me.id.rank {
            return Ok(());
        }
        let owner = AgentId { rank, role: 0 };
        if self.me.clock.of(owner).seen == 0 {
            let what = format!("block {rank} of the cluster is accessed before it is known to have begun");
            return self.violation(Kind::NotReady, what);
        }
        if self.others.get(&owner).is_none_or(Agent::has_ended) {
            let what = format!("block {rank} of the cluster is accessed, and may have ended");
            return self.violation(Kind::Exited, what);
        }
        Ok(())
    }

    pub(super) fn found(&self, kind: Kind, what: String) -> Violation {
        Violation { kind, line: self.me.line, block: Some(self.me.block), what }
    }

    pub(super) fn violation<T>(&self, kind: Kind, what: String) -> Outcome<T> {
        Err(Stop::Violated(self.found(kind, what)))
    }

    /// Something that is wrong, if the threads that do it come here.
    pub(super) fn wrong(&mut self, active: &Active, (kind, what): Fault) -> Outcome {
        if active.maybe {
            self.depends(format!("{what}, if data says so"));
            return Ok(());
        }
        self.violation(kind, what)
    }

    /// Something that depends on data.
    pub(super) fn depends(&mut self, what: String) {
        if self.undecided.is_none() {
            self.undecided = Some(self.found(Kind::Data, what));
        }
    }

    pub(super) fn spend(&mut self, work: u64) -> Outcome {
        self.budget = self.budget.checked_sub(work).ok_or(Stop::Exhausted)?;
        Ok(())
    }

    /// A region, next.
    fn enter(&mut self, region: RegionId, active: Active) {
        self.me.frames.push(Frame { region, at: 0, active, turn: None });
    }

    /// An iteration of a loop, if there is another one.
    fn turn(&mut self, turn: Turn<'a>) -> Outcome {
        if turn.n >= turn.most {
            return Ok(());
        }
        self.spend(1)?;
        self.hold(turn.of.index, Row::Same(Some(turn.n)));
        let active = match &turn.count {
            Row::Same(_) => turn.active.clone(),
            Row::Each(_) => {
                let of = |thread: usize| turn.count.of(thread).is_some_and(|count| turn.n < count);
                let comes = |thread: usize| turn.active.lanes[thread] && of(thread);
                Active::of((0..self.threads).map(comes), turn.active.maybe, turn.active.elected)
            }
        };
        self.me.frames.push(Frame { region: turn.of.body, at: 0, active, turn: Some(turn) });
        Ok(())
    }

    fn statement(&mut self, statement: &'a Statement, active: &Active) -> Outcome<bool> {
        self.spend(1)?;
        if !self.me.behind && is_of_launches(self.kernel, &statement.kind) {
            let what = "memory of other launches is accessed before they are waited for".to_owned();
            return self.violation(Kind::BeforeWait, what);
        }
        match &statement.kind {
            StatementKind::Let(value) => self.bind(*value, active)?,
            StatementKind::Declare(variable, value) | StatementKind::Set(variable, value) => {
                let declared = matches!(statement.kind, StatementKind::Declare(..));
                self.assign(*variable, *value, active, declared);
            }
            StatementKind::Load(load) => self.load(load, None, active)?,
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
                let slots: BTreeSet<Option<i64>> = active.threads().map(|thread| row.of(thread)).collect();
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
                    Row::Each(_) => Row::Each((0..self.threads).map(|thread| given.of(partner(thread))).collect()),
                };
                self.me.values[result.index()] = row;
            }
            StatementKind::AtomicUpdate(update) => {
                if active.maybe {
                    let name = self.name(Memory::Workspace(update.workspace));
                    self.depends(format!("whether `{name}` is updated depends on data"));
                }
                let memory = Memory::Workspace(update.workspace);
                for thread in active.threads() {
                    if let Some(at) = self.offset(memory, update.offset, thread, active)? {
                        self.access(memory, at, 1, thread, active, Touch::Update)?;
                        let with = self.me.values[update.value.index()].of(thread);
                        if let Some(data) = &mut self.data {
                            data.update(self.kernel, (update.workspace, at), update.op, with);
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
                        let said = |thread| Some(i64::from(is_last && thread == 0));
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
                let mut all = (0..self.threads).map(|thread| said.of(thread));
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
                let lanes = (0..self.threads).map(|thread| (first..first + WARP as usize).contains(&thread));
                self.enter(*part, Active::of(lanes, false, true));
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
    fn renew(&mut self, buffer: BufferId, slot: i64, whose: Option<&dyn Fn(u32) -> bool>) -> Outcome {
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
    fn meet(&mut self) {
        self.me.order.meet();
        // A role does not know what a thread of another one did.
        if self.me.id.role == 0 {
            self.me.ready = true;
            self.workspaces.tell_all();
        }
    }

    /// The lanes of each warp meet.
    fn meet_in_warps(&mut self) {
        // They are all there are.
        if self.me.count() <= WARP as usize {
            return self.meet();
        }
        self.me.order.synced_warp = self.me.order.now;
        self.workspaces.tell_warp();
    }

    // Control.

    /// A statement for all threads.
    fn everybody(&mut self, active: &Active) -> Outcome {
        if active.count < self.me.count() || active.elected {
            let what = format!("{} of {} threads come to a statement for all", active.count, self.me.count());
            return self.violation(Kind::NotEveryThread, what);
        }
        self.decided(active)
    }

    /// A statement of the elected thread, which any of its lanes may be.
    pub(super) fn elected(&mut self, active: &Active) -> Outcome {
        if !active.elected || active.count < self.me.count().min(WARP as usize) {
            let what = "it depends on which thread is elected whether a copy is made".to_owned();
            return self.violation(Kind::NotEveryThread, what);
        }
        self.decided(active)
    }

    fn decided(&mut self, active: &Active) -> Outcome {
        if active.maybe {
            let what = "whether threads come to a statement for all depends on data".to_owned();
            return Err(Stop::Undecided(self.found(Kind::Data, what)));
        }
        Ok(())
    }

    /// The value of an operand that all who come must agree on.
    pub(super) fn agreed(&mut self, value: ValueId, active: &Active) -> Outcome<i64> {
        let row = &self.me.values[value.index()];
        let mut all = active.threads().map(|thread| row.of(thread));
        let first = all.next().flatten();
        if !all.all(|one| one == first) {
            return self.violation(Kind::Disagree, "threads disagree on what a copy or barrier is".to_owned());
        }
        match first {
            Some(known) => Ok(known),
            None => {
                Err(Stop::Undecided(self.found(Kind::Data, "what a copy or barrier is depends on data".to_owned())))
            }
        }
    }

    fn repeat(&mut self, l: &'a Loop, active: &Active) -> Outcome {
        let count = self.me.values[l.count.index()].clone();
        let known: Vec<Option<i64>> = match count {
            Row::Same(count) => vec![count],
            Row::Each(_) => active.threads().map(|thread| count.of(thread)).collect(),
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

    fn branch(&mut self, branch: &If, active: &Active) -> Outcome {
        let condition = self.me.values[branch.condition.index()].clone();
        // What is entered last runs first.
        for (side, wanted) in [(branch.otherwise, 0), (Some(branch.then), 1)] {
            let Some(side) = side else { continue };
            match condition {
                Row::Same(Some(known)) if known == wanted => self.enter(side, active.clone()),
                Row::Same(Some(_)) => {}
                Row::Same(None) => self.enter(side, Active { maybe: true, ..active.clone() }),
                Row::Each(_) => {
                    let of = |thread: usize| condition.of(thread);
                    let comes = |thread: usize| active.lanes[thread] && of(thread).is_none_or(|known| known == wanted);
                    let maybe = active.maybe || active.threads().any(|thread| of(thread).is_none());
                    let some = Active::of((0..self.threads).map(comes), maybe, active.elected);
                    if some.count > 0 {
                        self.enter(side, some);
                    }
                }
            }
        }
        Ok(())
    }

    // Values.

    fn bind(&mut self, id: ValueId, active: &Active) -> Outcome {
        let value = self.kernel.value(id);
        let row = match value.op {
            Op::BlockIndex => Row::Same(Some(self.me.block)),
            Op::BlockCount => Row::Same(Some(self.launch.blocks)),
            Op::ClusterRank => Row::Same(Some(self.me.block % i64::from(self.kernel.signature.cluster))),
            Op::ThreadIndex => Row::Each((0..self.threads as i64).map(Some).collect()),
            Op::Dim(dim) => Row::Same(self.launch.dims.get(usize::from(dim)).copied()),
            Op::Get(variable) => self.me.variables[variable.index()].clone(),
            Op::Scalar(parameter) => match (self.algebra(), value.ty.element()) {
                (Some(algebra), Some(ty)) => Row::Same(Some(algebra.scalar(parameter, ty))),
                _ => Row::UNKNOWN,
            },
            _ => row::pure(self.kernel, value, self.threads, &self.me.values, self.algebra()),
        };
        if let Row::Each(all) = &row {
            self.spend(self.threads as u64)?;
            let mut seen = active.threads().filter_map(|thread| all[thread]);
            if value.facts.uniform
                && let Some(one) = seen.next()
                && let Some(other) = seen.find(|other| *other != one)
            {
                let what = format!("v{} is {one} and {other}, and is said to be the same for all threads", id.index());
                return self.violation(Kind::Disagree, what);
            }
        }
        self.hold(id, row);
        Ok(())
    }

    /// Gives a value, with data as far as it is as said; on indices alone, offsets are looked at where they are used.
    fn hold(&mut self, id: ValueId, row: Row) {
        let value = self.kernel.value(id);
        let (row, beyond) = if self.data.is_some() { row::as_said(value, row) } else { (row, None) };
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

    fn assign(&mut self, variable: VariableId, value: ValueId, active: &Active, declared: bool) {
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

/// Whether a statement accesses memory that other launches may access, too.
fn is_of_launches(kernel: &Kernel, kind: &StatementKind) -> bool {
    let is_shared = |memory: Memory| !matches!(kernel.home(memory), Memory::Buffer(_));
    match kind {
        StatementKind::Load(load) => is_shared(load.memory),
        StatementKind::Store(store) => is_shared(store.memory),
        StatementKind::CpAsync(_)
        | StatementKind::AtomicUpdate(_)
        | StatementKind::LastBlockTicket { .. }
        | StatementKind::BulkCopy(_) => true,
        _ => false,
    }
}

/// The variables that a region may set.
pub(super) fn assigned(kernel: &Kernel, region: RegionId, found: &mut Vec<VariableId>) {
    for statement in &kernel.region(region).statements {
        match &statement.kind {
            StatementKind::Set(variable, _) => found.push(*variable),
            StatementKind::Loop(l) => assigned(kernel, l.body, found),
            StatementKind::If(branch) => {
                assigned(kernel, branch.then, found);
                branch.otherwise.iter().for_each(|other| assigned(kernel, *other, found));
            }
            StatementKind::Elect(part) => assigned(kernel, *part, found),
            StatementKind::Roles(roles) => roles.iter().for_each(|role| assigned(kernel, role.body, found)),
            _ => {}
        }
    }
}
