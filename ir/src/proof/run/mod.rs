//! The run: agents in turn, and every statement for all threads that come to it.

mod statements;

use std::ops::Range;

use tilewright_sorted::SortedMap;

use super::Stop;
use super::agent::{Active, Agent, Frame, Turn, Waiting};
use super::barriers::{Groups, Phase};
use super::blocks::Workspaces;
use super::global::{self, Elements};
use super::launch::Launch;
use super::order::{AgentId, Clock, Order, Time};
use super::products::Products;
use super::row::{self, Pool, Row};
use super::shared::{Fault, Shared};
use super::values::{Algebra, Data};
use super::violation::{Kind, Violation};
use crate::kernel_ir::{Kernel, Memory, Op, RegionId, Role, StatementKind, VariableId};

pub(super) type Outcome<T = ()> = Result<T, Stop>;

/// The state of a run.
pub(super) struct Run<'a> {
    pub kernel: &'a Kernel,
    pub launch: &'a Launch,
    pub threads: usize,
    /// What rows are made from.
    rows: Pool,
    pub budget: u64,
    /// The agent that runs, and those of its cluster that do not, or are over.
    pub me: Agent<'a>,
    others: SortedMap<AgentId, Agent<'a>>,
    now: Time,
    /// Whether roles were begun.
    spawned: bool,
    pub shared: Shared,
    /// The products of an agent at its start.
    products: Products,
    /// Barriers of each block of the cluster.
    pub phases: Vec<Vec<Vec<Phase>>>,
    /// When agents last reached for another block of the cluster.
    pub visits: SortedMap<(u8, AgentId), Time>,
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
        let updated = global::updated(kernel);
        for (parameter, tensor) in launch.tensors.iter().enumerate() {
            let is_updated = updated.contains(&Memory::Parameter(parameter as u16));
            let elements = match tensor {
                Some(tensor) => Some(Elements::new(tensor, is_updated, left).ok_or(Stop::Exhausted)?),
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
            rows: Pool::new(kernel.signature.threads as usize),
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
                products: Products::default(),
                frames: Vec::new(),
                line: 0,
                waiting: Waiting::Nothing,
            },
            others: SortedMap::new(),
            now: 0,
            spawned: false,
            shared,
            products: Products::of(kernel),
            phases: Vec::new(),
            visits: SortedMap::new(),
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
        let everybody = Active::of(self.threads, |_| true, false, false);
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
            fetches: Vec::new(),
            products: self.products.clone(),
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
        self.workspaces.begin();
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
                self.workspaces.select(id);
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
                let active =
                    Active::of(self.threads, |thread| start as usize <= thread && thread < end as usize, false, false);
                let mut clock = self.me.clock.clone();
                clock.join(&self.me.released(false));
                let agent = Agent {
                    id,
                    name: format!("role {} of block {}", role.name, self.me.block),
                    fetches: Vec::new(),
                    products: self.products.clone(),
                    threads,
                    clock,
                    groups: Groups::default(),
                    frames: vec![Frame { region: role.body, at: 0, active, turn: None }],
                    waiting: Waiting::Nothing,
                    ..self.me.clone()
                };
                self.workspaces.spawn(id, start);
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
            self.workspaces.gather(id);
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
        let parties: Vec<_> = those.iter().map(|agent| (agent.id, agent.block, agent.order)).collect();
        self.workspaces.tell_cluster(&parties);
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
        if self.me.products.groups.is_open() {
            return self.violation(Kind::Left, "a product may be under way at the end".to_owned());
        }
        if self.me.groups.is_open() {
            return self.violation(Kind::Left, "a copy may read shared memory at the end".to_owned());
        }
        let visits = self.visits.iter().filter(|((owner, _), _)| *owner == rank && role == 0);
        let mut late = visits.filter(|((_, by), time)| !self.me.clock.covers((*by, *time)));
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
}

/// Whether a statement accesses memory that other launches may access, too.
fn is_of_launches(kernel: &Kernel, kind: &StatementKind) -> bool {
    let is_shared = |memory: Memory| !matches!(kernel.home(memory), Memory::Buffer(_));
    match kind {
        StatementKind::Load(load) => is_shared(load.memory),
        StatementKind::LoadMatrix(_) => true,
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
            StatementKind::Wgmma(product) => found.extend(product.all()),
            StatementKind::MmaSync(product) => found.extend(product.all()),
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
