//! The run: every statement for all threads that come to it.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::Stop;
use super::barriers::{Groups, Phase};
use super::blocks::{Arrival, Touch, Workspaces};
use super::global::{Access, Agent, Elements, Sees};
use super::launch::{Launch, Tiles};
use super::row::{self, Row};
use super::shared::{Fault, Order, Shared};
use super::violation::{Kind, Violation};
use crate::kernel_ir::{
    BarrierId, BufferId, Fetch, If, Kernel, Load, Loop, Memory, Op, RegionId, Sharing, Statement, StatementKind, Store,
    TensorPart, Transfer, Type, ValueId, VariableId, WARP,
};

/// Alignment of tiles in shared memory, in bytes (PTX manual, tensor copies).
const TILE_ALIGNMENT: u64 = 128;
/// Alignment of runs on both sides, and the longest vector of one instruction.
const GRANULE: u64 = 16;

type Outcome<T = ()> = Result<T, Stop>;

/// Who comes to a statement.
#[derive(Clone, Debug)]
struct Active {
    lanes: Rc<[bool]>,
    count: usize,
    /// Whether it depends on data which of them do.
    maybe: bool,
    /// Whether it is the part of the elected thread; its lanes are those of which one is elected.
    elected: bool,
}

impl Active {
    fn of(lanes: impl Iterator<Item = bool>, maybe: bool, elected: bool) -> Self {
        let lanes: Rc<[bool]> = lanes.collect();
        let count = lanes.iter().filter(|lane| **lane).count();
        Self { lanes, count, maybe, elected }
    }

    fn threads(&self) -> impl Iterator<Item = usize> + use<> {
        let lanes = self.lanes.clone();
        (0..lanes.len()).filter(move |thread| lanes[*thread])
    }
}

/// The state of a run.
pub(super) struct Run<'a> {
    kernel: &'a Kernel,
    launch: &'a Launch,
    threads: usize,
    budget: u64,
    block: i64,
    line: u32,
    values: Vec<Row>,
    variables: Vec<Row>,
    order: Order,
    shared: Shared,
    phases: Vec<Vec<Phase>>,
    groups: Groups,
    /// The fetches of each thread.
    fetches: Vec<Groups>,
    tensors: Vec<Option<Elements>>,
    workspaces: Workspaces,
    /// The first thing that depends on data.
    undecided: Option<Violation>,
}

impl<'a> Run<'a> {
    pub fn new(kernel: &'a Kernel, launch: &'a Launch, budget: u64) -> Outcome<Self> {
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
        let values = kernel.values.iter().map(|value| match value.op {
            Op::Literal(bits) => Row::Same(row::literal(value.ty, bits)),
            _ => Row::UNKNOWN,
        });
        Ok(Self {
            kernel,
            launch,
            threads: kernel.signature.threads as usize,
            budget: left,
            block: 0,
            line: 0,
            values: values.collect(),
            variables: vec![Row::UNKNOWN; kernel.variables.len()],
            order: Order::default(),
            shared,
            phases: Vec::new(),
            groups: Groups::default(),
            fetches: Vec::new(),
            tensors,
            workspaces,
            undecided: None,
        })
    }

    /// Every block; what depends on data, if nothing is wrong.
    pub fn all(mut self) -> Outcome<Option<Violation>> {
        for block in 0..self.launch.blocks {
            self.block = block;
            self.order = Order { now: 1, ..Order::default() };
            self.shared.reset();
            self.workspaces.begin();
            self.phases = self.kernel.barriers.iter().map(|n| vec![Phase::default(); *n as usize]).collect();
            self.groups = Groups::default();
            self.fetches = vec![Groups::default(); self.threads];
            let everybody = Active::of((0..self.threads).map(|_| true), false, false);
            self.region(Kernel::BODY, &everybody)?;
            self.end()?;
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
        Ok(self.undecided)
    }

    /// What must be over when a block ends.
    fn end(&mut self) -> Outcome {
        if self.phases.iter().flatten().any(Phase::is_open) {
            return self.violation(Kind::Left, "a copy to shared memory may be under way at the end".to_owned());
        }
        if self.fetches.iter().any(Groups::is_open) {
            return self.violation(Kind::Left, "a fetch to shared memory may be under way at the end".to_owned());
        }
        if self.groups.is_open() {
            return self.violation(Kind::Left, "a copy may read shared memory at the end".to_owned());
        }
        Ok(())
    }

    fn found(&self, kind: Kind, what: String) -> Violation {
        Violation { kind, line: self.line, block: Some(self.block), what }
    }

    fn violation<T>(&self, kind: Kind, what: String) -> Outcome<T> {
        Err(Stop::Violated(self.found(kind, what)))
    }

    /// Something that is wrong, if the threads that do it come here.
    fn wrong(&mut self, active: &Active, (kind, what): Fault) -> Outcome {
        if active.maybe {
            self.depends(format!("{what}, if data says so"));
            return Ok(());
        }
        self.violation(kind, what)
    }

    /// Something that depends on data.
    fn depends(&mut self, what: String) {
        if self.undecided.is_none() {
            self.undecided = Some(self.found(Kind::Data, what));
        }
    }

    fn spend(&mut self, work: u64) -> Outcome {
        self.budget = self.budget.checked_sub(work).ok_or(Stop::Exhausted)?;
        Ok(())
    }

    fn region(&mut self, region: RegionId, active: &Active) -> Outcome {
        let kernel = self.kernel;
        for statement in &kernel.region(region).statements {
            self.line = statement.line;
            self.order.now += 1;
            self.statement(statement, active)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement, active: &Active) -> Outcome {
        self.spend(1)?;
        match &statement.kind {
            StatementKind::Let(value) => self.bind(*value)?,
            StatementKind::Declare(variable, value) | StatementKind::Set(variable, value) => {
                let declared = matches!(statement.kind, StatementKind::Declare(..));
                self.assign(*variable, *value, active, declared);
            }
            StatementKind::Load(load) => self.load(load, active)?,
            StatementKind::Store(store) => self.store(store, active)?,
            StatementKind::Loop(l) => self.repeat(l, active)?,
            StatementKind::If(branch) => self.branch(branch, active)?,
            StatementKind::Sync => {
                self.everybody(active)?;
                self.meet();
            }
            StatementKind::SyncWarpgroup => {
                self.everybody(active)?;
                self.order.synced_warpgroup = self.order.now;
            }
            // All there are.
            StatementKind::SyncWarp if self.threads <= WARP as usize => {
                self.everybody(active)?;
                self.meet();
            }
            StatementKind::SyncWarp => {
                self.everybody(active)?;
                self.order.synced_warp = self.order.now;
                self.workspaces.tell_warp();
            }
            StatementKind::Renew { buffer, slot } if self.kernel.buffers[buffer.index()].sharing == Sharing::Thread => {
                let row = self.values[slot.index()].clone();
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
            StatementKind::Renew { buffer, slot } => {
                self.everybody(active)?;
                let slot = self.agreed(*slot, active)?;
                self.renew(*buffer, slot, None)?;
            }
            StatementKind::Fetch(fetch) => self.fetch(fetch, active)?,
            StatementKind::CommitFetches => {
                self.everybody(active)?;
                self.fetches.iter_mut().for_each(Groups::commit);
            }
            StatementKind::AwaitFetches { pending } => {
                self.everybody(active)?;
                for groups in &mut self.fetches {
                    groups.wait(*pending).into_iter().for_each(|copy| self.shared.end(copy, self.order.now));
                }
            }
            StatementKind::Shuffle { value, mask, result } => {
                self.everybody(active)?;
                let given = &self.values[value.index()];
                let partner = |thread: usize| {
                    let other = thread ^ *mask as usize;
                    if other < self.threads { other } else { thread }
                };
                let row = match given {
                    Row::Same(value) => Row::Same(*value),
                    Row::Each(_) => Row::Each((0..self.threads).map(|thread| given.of(partner(thread))).collect()),
                };
                self.values[result.index()] = row;
            }
            StatementKind::Update(update) => {
                if active.maybe {
                    let name = self.name(Memory::Workspace(update.workspace));
                    self.depends(format!("whether `{name}` is updated depends on data"));
                }
                let memory = Memory::Workspace(update.workspace);
                for thread in active.threads() {
                    if let Some(at) = self.offset(memory, update.offset, thread, active)? {
                        self.access(memory, at, 1, thread, active, Touch::Update)?;
                    }
                }
            }
            StatementKind::Arrive { counters, at, blocks, last, releases, acquires } => {
                self.everybody(active)?;
                let (at, blocks) = (self.agreed(*at, active)?, self.agreed(*blocks, active)?);
                let (workspace, block, releases, acquires) = (*counters, self.block, *releases, *acquires);
                let arrival = Arrival { workspace, at, blocks, block, releases, acquires };
                match self.workspaces.arrive(arrival, self.order) {
                    Ok(is_last) => {
                        let said = |thread| Some(i64::from(is_last && thread == 0));
                        self.values[last.index()] = Row::Each((0..self.threads).map(said).collect());
                    }
                    Err((kind, what)) => {
                        let name = self.name(Memory::Workspace(*counters));
                        return self.violation(kind, format!("counter {at} of `{name}`: {what}"));
                    }
                }
            }
            StatementKind::Agree { predicate, result } => {
                self.everybody(active)?;
                self.meet();
                let said = &self.values[predicate.index()];
                let mut all = (0..self.threads).map(|thread| said.of(thread));
                let any = all.clone().any(|one| one.is_some_and(|one| one != 0));
                let value = if any || all.all(|one| one.is_some()) { Some(i64::from(any)) } else { None };
                self.values[result.index()] = Row::Same(value);
            }
            StatementKind::Elect(part) => {
                self.everybody(active)?;
                // Any lane of the first warp may be it.
                let lanes = (0..self.threads).map(|thread| thread < WARP as usize);
                self.region(*part, &Active::of(lanes, false, true))?;
            }
            StatementKind::Expect { barrier, slot, bytes } => {
                self.elected(active)?;
                // A thread alone waits for nobody.
                let synced = if self.threads > 1 { self.order.synced } else { self.order.now };
                let fault = self.phase(*barrier, *slot, active)?.expect(u64::from(*bytes), synced).err();
                fault.map_or(Ok(()), |fault| self.wrong(active, fault))?;
            }
            StatementKind::Transfer(transfer) => {
                self.elected(active)?;
                self.transfer(transfer, active)?;
            }
            StatementKind::Await { barrier, slot, parity } => {
                self.everybody(active)?;
                let parity = self.agreed(*parity, active)?;
                let now = self.order.now;
                match self.phase(*barrier, *slot, active)?.wait(parity, now) {
                    Ok(over) => over.into_iter().for_each(|copy| self.shared.end(copy, self.order.now)),
                    Err((kind, what)) => return self.violation(kind, what),
                }
            }
            StatementKind::Spread(_) | StatementKind::LoadPeer { .. } | StatementKind::SyncCluster => {
                let what = "blocks of clusters are not looked at together".to_owned();
                return Err(Stop::Undecided(self.found(Kind::Data, what)));
            }
            StatementKind::Publish => {
                self.everybody(active)?;
                self.order.published = self.order.now;
            }
            StatementKind::Commit => {
                self.elected(active)?;
                self.groups.commit();
            }
            StatementKind::AwaitReads { pending } => {
                self.elected(active)?;
                let over = self.groups.wait(*pending);
                over.into_iter().for_each(|copy| self.shared.end(copy, self.order.now));
            }
        }
        Ok(())
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
        self.shared.renew(buffer, slot.unsigned_abs() * bytes, bytes, whose);
        Ok(())
    }

    /// All threads of the block wait for each other.
    fn meet(&mut self) {
        self.order.synced = self.order.now;
        self.order.visible = self.order.published;
        self.workspaces.tell_all();
    }

    // Control.

    /// A statement for all threads.
    fn everybody(&mut self, active: &Active) -> Outcome {
        if active.count < self.threads || active.elected {
            let what = format!("{} of {} threads come to a statement for all", active.count, self.threads);
            return self.violation(Kind::NotEveryThread, what);
        }
        self.decided(active)
    }

    /// A statement of the elected thread, which any of its lanes may be.
    fn elected(&mut self, active: &Active) -> Outcome {
        if !active.elected || active.count < self.threads.min(WARP as usize) {
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
    fn agreed(&mut self, value: ValueId, active: &Active) -> Outcome<i64> {
        let row = &self.values[value.index()];
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

    fn repeat(&mut self, l: &Loop, active: &Active) -> Outcome {
        let count = self.values[l.count.index()].clone();
        let known: Vec<Option<i64>> = match count {
            Row::Same(count) => vec![count],
            Row::Each(_) => active.threads().map(|thread| count.of(thread)).collect(),
        };
        if known.contains(&None) {
            // Any number of times: what the body changes is unknown, and what it does may happen.
            let mut set = Vec::new();
            assigned(self.kernel, l.body, &mut set);
            for variable in set {
                self.variables[variable.index()] = Row::UNKNOWN;
            }
            self.values[l.index.index()] = Row::UNKNOWN;
            return self.region(l.body, &Active { maybe: true, ..active.clone() });
        }
        let most = known.iter().copied().flatten().max().unwrap_or(0);
        for n in 0..most {
            self.spend(1)?;
            self.values[l.index.index()] = Row::Same(Some(n));
            match count {
                Row::Same(_) => self.region(l.body, active)?,
                Row::Each(_) => {
                    let comes = |thread: usize| active.lanes[thread] && count.of(thread).is_some_and(|c| n < c);
                    let some = Active::of((0..self.threads).map(comes), active.maybe, active.elected);
                    self.region(l.body, &some)?;
                }
            }
        }
        Ok(())
    }

    fn branch(&mut self, branch: &If, active: &Active) -> Outcome {
        let condition = self.values[branch.condition.index()].clone();
        for (side, wanted) in [(Some(branch.then), 1), (branch.otherwise, 0)] {
            let Some(side) = side else { continue };
            match condition {
                Row::Same(Some(known)) if known == wanted => self.region(side, active)?,
                Row::Same(Some(_)) => {}
                Row::Same(None) => self.region(side, &Active { maybe: true, ..active.clone() })?,
                Row::Each(_) => {
                    let of = |thread: usize| condition.of(thread);
                    let comes = |thread: usize| active.lanes[thread] && of(thread).is_none_or(|known| known == wanted);
                    let maybe = active.maybe || active.threads().any(|thread| of(thread).is_none());
                    let some = Active::of((0..self.threads).map(comes), maybe, active.elected);
                    if some.count > 0 {
                        self.region(side, &some)?;
                    }
                }
            }
        }
        Ok(())
    }

    // Values.

    fn bind(&mut self, id: ValueId) -> Outcome {
        let value = self.kernel.value(id);
        let row = match value.op {
            Op::BlockIndex => Row::Same(Some(self.block)),
            Op::ClusterRank => Row::Same(Some(self.block % i64::from(self.kernel.signature.cluster))),
            Op::ThreadIndex => Row::Each((0..self.threads as i64).map(Some).collect()),
            Op::Dim(dim) => Row::Same(self.launch.dims.get(usize::from(dim)).copied()),
            Op::Get(variable) => self.variables[variable.index()].clone(),
            _ => row::pure(self.kernel, value, self.threads, &self.values),
        };
        if let Row::Each(_) = row {
            self.spend(self.threads as u64)?;
        }
        self.values[id.index()] = row;
        Ok(())
    }

    fn assign(&mut self, variable: VariableId, value: ValueId, active: &Active, declared: bool) {
        let new = &self.values[value.index()];
        let old = &mut self.variables[variable.index()];
        if declared || !active.maybe && (active.count == self.threads || active.elected) {
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

    // Accesses by threads.

    /// What the memory is called, for messages.
    fn name(&self, memory: Memory) -> &str {
        match memory {
            Memory::Parameter(p) => &self.kernel.signature.parameters[usize::from(p)].name,
            Memory::Buffer(b) => &self.kernel.buffers[b.index()].name,
            Memory::Workspace(w) => &self.kernel.workspaces[usize::from(w)].name,
        }
    }

    /// The offset of a thread's access, if it is known and fits its type.
    fn offset(&mut self, memory: Memory, offset: ValueId, thread: usize, active: &Active) -> Outcome<Option<i64>> {
        let known = self.values[offset.index()].of(thread);
        let name = self.name(memory).to_owned();
        match known {
            None => self.depends(format!("where thread {thread} accesses `{name}` depends on data")),
            Some(at) if self.kernel.value(offset).ty == Type::I32 && i32::try_from(at).is_err() => {
                let what = format!("thread {thread} accesses `{name}[{at}]`, and the offset has 32 bits");
                self.wrong(active, (Kind::Wide, what))?;
                return Ok(None);
            }
            _ => {}
        }
        Ok(known)
    }

    /// One access by a thread of neighbouring elements.
    fn access(&mut self, memory: Memory, at: i64, lanes: u32, thread: usize, active: &Active, touch: Touch) -> Outcome {
        let write = touch != Touch::Read;
        self.spend(u64::from(lanes))?;
        let bytes = self.kernel.element(memory).map_or(1, |e| u64::from(e.bytes()));
        let width = (u64::from(lanes) * bytes).min(GRANULE);
        let (agent, order) = (thread as u32, self.order);
        let mut result = Ok(());
        match memory {
            Memory::Parameter(p) => {
                let Some(elements) = &mut self.tensors[usize::from(p)] else { return Ok(()) };
                let access = Access { block: self.block, agent: Agent::Thread(agent), time: order.now };
                let (shared, workspaces) = (&self.shared, &self.workspaces);
                let sees: Sees<'_> = &|other| workspaces.sees(Agent::Thread(agent), other);
                for lane in 0..i64::from(lanes) {
                    let one = match write {
                        true => elements.write(at + lane, access, order.synced, |copy| shared.is_over(copy), sees),
                        false => elements.read(at + lane, access, order.synced, sees),
                    };
                    result = result.and(one.map_err(|fault| (fault, at + lane)));
                }
                let divides = |n: u64| n.is_multiple_of(width);
                if result.is_ok() && !(divides(elements.alignment) && divides(at.unsigned_abs() * bytes)) {
                    result = Err(((Kind::Misaligned, format!("its address is no multiple of {width}")), at));
                }
            }
            Memory::Workspace(workspace) => {
                let access = Access { block: self.block, agent: Agent::Thread(agent), time: order.now };
                for lane in 0..i64::from(lanes) {
                    let one = self.workspaces.access(workspace, at + lane, touch, access, order.synced);
                    result = result.and(one.map_err(|fault| (fault, at + lane)));
                }
                if result.is_ok() && !(at.unsigned_abs() * bytes).is_multiple_of(width) {
                    result = Err(((Kind::Misaligned, format!("its address is no multiple of {width}")), at));
                }
            }
            Memory::Buffer(buffer) => {
                // In a workspace, offsets count from the start of the first block's part.
                let all = self.shared.elements(buffer);
                let first = self.kernel.part(buffer).map_or(0, |_| self.block * all);
                if at < first || at + i64::from(lanes) > first + all {
                    result = Err(((Kind::Outside, format!("the buffer has {all} elements")), at));
                } else {
                    let address = self.shared.place(buffer) + (at - first).unsigned_abs() * bytes;
                    let whole = u64::from(lanes) * bytes;
                    let one = match write {
                        true => self.shared.write(buffer, address, whole, agent, order),
                        false => self.shared.read(buffer, address, whole, agent, order),
                    };
                    result = one.map_err(|fault| (fault, at));
                    let start = if first > 0 { at.unsigned_abs() * bytes } else { address };
                    if result.is_ok() && !start.is_multiple_of(width) {
                        result = Err(((Kind::Misaligned, format!("its address is no multiple of {width}")), at));
                    }
                }
            }
        }
        let Err(((kind, what), at)) = result else { return Ok(()) };
        let verb = if write { "writes" } else { "reads" };
        let what = format!("thread {thread} {verb} `{}[{at}]`: {what}", self.name(memory));
        self.wrong(active, (kind, what))
    }

    fn load(&mut self, load: &Load, active: &Active) -> Outcome {
        for thread in active.threads() {
            let predicate = load.predicate.map_or(Some(1), |p| self.values[p.index()].of(thread));
            if predicate == Some(0) {
                continue;
            }
            let maybe = Active { maybe: true, ..active.clone() };
            let active = if predicate.is_none() { &maybe } else { active };
            if let Some(at) = self.offset(load.memory, load.offset, thread, active)? {
                self.access(load.memory, at, load.lanes, thread, active, Touch::Read)?;
            }
        }
        load.results().for_each(|value| self.values[value.index()] = Row::UNKNOWN);
        Ok(())
    }

    fn store(&mut self, store: &Store, active: &Active) -> Outcome {
        if active.maybe && !matches!(store.memory, Memory::Buffer(_)) {
            self.depends(format!("whether `{}` is written depends on data", self.name(store.memory)));
        }
        let is_zero = |value: &ValueId| matches!(self.kernel.value(*value).op, Op::Literal(0));
        let touch = Touch::Write(store.values.iter().all(is_zero));
        for thread in active.threads() {
            if let Some(at) = self.offset(store.memory, store.offset, thread, active)? {
                self.access(store.memory, at, store.values.len() as u32, thread, active, touch)?;
            }
        }
        Ok(())
    }

    // Copies.

    /// A copy by each thread that comes. A group is one agent: it is waited for as a whole.
    fn fetch(&mut self, fetch: &Fetch, active: &Active) -> Outcome {
        let (memory, bytes) =
            (Memory::Parameter(fetch.parameter), self.kernel.buffers[fetch.buffer.index()].element.bytes());
        let width = u64::from(bytes) * u64::from(fetch.lanes);
        for thread in active.threads() {
            let reads = fetch.predicate.map_or(Some(1), |p| self.values[p.index()].of(thread));
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
            let place = self.shared.place(fetch.buffer) + at.unsigned_abs() * u64::from(bytes);
            if !place.is_multiple_of(width) {
                let what = format!("thread {thread} fetches to `{name}[{at}]`, which is no multiple of {width} bytes");
                self.wrong(active, (Kind::Misaligned, what))?;
            }
            let (order, owner) = (self.order, thread as u32);
            let copy = match self.fetches[thread].last() {
                Some(open) => open,
                None => self.shared.issue_by(owner),
            };
            self.fetches[thread].issue(copy);
            if let Err((kind, what)) = self.shared.fetch(fetch.buffer, place, width, (owner, copy), order) {
                self.wrong(active, (kind, format!("thread {thread} fetches to `{name}[{at}]`: {what}")))?;
            }
        }
        Ok(())
    }

    fn phase(&mut self, barrier: BarrierId, slot: ValueId, active: &Active) -> Outcome<&mut Phase> {
        let slot = self.agreed(slot, active)?;
        if self.order.synced == 0 {
            return self
                .violation(Kind::NotReady, "a barrier is used before all threads know that it is ready".to_owned());
        }
        let slots = self.phases[barrier.index()].len();
        if slot < 0 || slot >= slots as i64 {
            return self.violation(Kind::Outside, format!("slot {slot} has none of {slots} barriers"));
        }
        Ok(&mut self.phases[barrier.index()][slot as usize])
    }

    fn transfer(&mut self, transfer: &Transfer, active: &Active) -> Outcome {
        let Transfer { part, buffer, barrier, .. } = transfer;
        let (slot, offset) = (self.agreed(transfer.slot, active)?, self.agreed(transfer.offset, active)?);
        let of = &self.kernel.buffers[buffer.index()];
        let bytes = u64::from(of.element.bytes());
        let pieces = self.pieces(part, bytes, active)?;
        let (elements, slots) = (i64::from(of.elements), i64::from(of.slots));
        if slot < 0 || slot >= slots || offset < 0 || offset + pieces.offsets.len() as i64 > elements {
            let what =
                format!("{} elements at {offset} of slot {slot} are outside `{}`", pieces.offsets.len(), of.name);
            return self.violation(Kind::Outside, what);
        }
        self.spend(pieces.offsets.len() as u64)?;
        let place = self.shared.place(*buffer) + (slot * elements + offset).unsigned_abs() * bytes;
        if !place.is_multiple_of(pieces.alignment) {
            let what = format!("a copy of `{}` is not at a multiple of {} bytes", of.name, pieces.alignment);
            return self.violation(Kind::Misaligned, what);
        }
        let copy = self.shared.issue();
        let size = pieces.offsets.len() as u64 * bytes;
        match barrier {
            Some(barrier) => self.phase(*barrier, transfer.slot, active)?.issue(copy, size),
            None => self.groups.issue(copy),
        }
        let access = Access { block: self.block, agent: Agent::Copy(copy), time: self.order.now };
        for (n, offset) in pieces.offsets.iter().enumerate() {
            let address = (pieces.place)(place + n as u64 * bytes);
            let (order, synced) = (self.order, self.order.synced);
            let shared = &mut self.shared;
            let mut result = match (barrier, offset) {
                (Some(_), _) => shared.fill(*buffer, address, bytes, copy, order),
                (None, Some(_)) => shared.take(*buffer, address, bytes, copy, order),
                (None, None) => Ok(()),
            };
            if let (Some(at), Some(elements)) = (offset, &mut self.tensors[usize::from(pieces.parameter)]) {
                let workspaces = &self.workspaces;
                let sees: Sees<'_> = &|other| workspaces.sees(access.agent, other);
                let other = match barrier {
                    Some(_) => elements.read(*at, access, synced, sees),
                    None => elements.write(*at, access, synced, |copy| shared.is_over(copy), sees),
                };
                let tensor = &self.kernel.signature.parameters[usize::from(pieces.parameter)].name;
                result =
                    result.and(other.map_err(|(kind, what)| (kind, format!("element {at} of `{tensor}`: {what}"))));
            }
            if let Err((kind, what)) = result {
                let name = &of.name;
                return self.violation(kind, format!("a copy of slot {slot} of `{name}`, element {n}: {what}"));
            }
        }
        Ok(())
    }

    /// What a copy moves.
    fn pieces(&mut self, part: &TensorPart, bytes: u64, active: &Active) -> Outcome<Pieces> {
        match part {
            TensorPart::Run { parameter, offset, bytes: run } => {
                let first = self.agreed(*offset, active)?;
                let aligned = self.tensors[usize::from(*parameter)].as_ref().is_some_and(|t| t.alignment >= GRANULE);
                if !aligned || !(first.unsigned_abs() * bytes).is_multiple_of(GRANULE) {
                    let what =
                        format!("a run starts at element {first}, which is not at a multiple of {GRANULE} bytes");
                    return self.violation(Kind::Misaligned, what);
                }
                let offsets = (0..(u64::from(*run) / bytes) as i64).map(|n| Some(first + n)).collect();
                Ok(Pieces { parameter: *parameter, offsets, place: Box::new(|at| at), alignment: GRANULE })
            }
            TensorPart::Tile { map, start } => {
                let launch = self.launch;
                let Some(Tiles { parameter, map }) = launch.maps.get(usize::from(*map)) else {
                    return self.violation(Kind::Outside, "the launch has no such tensor map".to_owned());
                };
                let mut corner = Vec::with_capacity(start.len());
                for value in start {
                    let at = self.agreed(*value, active)?;
                    // Coordinates have 32 bits, and wrap.
                    corner.push(i64::from(at as i32));
                }
                let counts: Vec<u64> = map.dimensions.iter().map(|d| u64::from(d.tile())).collect();
                self.spend(counts.iter().product())?;
                let offset = |mut n: u64| {
                    let mut offset = 0i64;
                    for ((d, count), corner) in map.dimensions.iter().zip(&counts).zip(&corner) {
                        let at = corner + (n % count) as i64 * i64::from(d.element_stride);
                        n /= count;
                        if at < 0 || at as u64 >= d.size {
                            return None;
                        }
                        offset += at * (d.stride / bytes) as i64;
                    }
                    Some(offset)
                };
                let offsets = (0..counts.iter().product()).map(offset).collect();
                let swizzle = map.swizzle;
                let place = Box::new(move |at: u64| u64::from(swizzle.apply(at as u32)));
                Ok(Pieces { parameter: *parameter, offsets, place, alignment: TILE_ALIGNMENT })
            }
        }
    }
}

/// What a copy moves, in the order of shared memory.
struct Pieces {
    parameter: u16,
    /// Where each element is in the tensor; none outside.
    offsets: Vec<Option<i64>>,
    /// Where the byte is that lies at an address without swizzle.
    place: Box<dyn Fn(u64) -> u64>,
    alignment: u64,
}

/// The variables that a region may set.
fn assigned(kernel: &Kernel, region: RegionId, found: &mut Vec<VariableId>) {
    for statement in &kernel.region(region).statements {
        match &statement.kind {
            StatementKind::Set(variable, _) => found.push(*variable),
            StatementKind::Loop(l) => assigned(kernel, l.body, found),
            StatementKind::If(branch) => {
                assigned(kernel, branch.then, found);
                branch.otherwise.iter().for_each(|other| assigned(kernel, *other, found));
            }
            StatementKind::Elect(part) => assigned(kernel, *part, found),
            _ => {}
        }
    }
}
