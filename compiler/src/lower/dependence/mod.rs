//! Which threads access an element that a thread accessed before.
//!
//! **Property.** Of two accesses of a buffer, the first one in an iteration of which [`Access`] says what is known, no
//! thread outside a unit of which [`Dependences::is_within`] is asked accesses an element that a thread of it accessed.
//! **Formula.** Both offsets, with the thread and what each has for itself twice, are equal; the conditions and loops
//! around both hold; of a loop the iteration is the same, an earlier one, the last or the first one; and the threads
//! are of different units: no integers solve that ([`Integers`]). Every quotient and remainder is a variable of its
//! own, tied to the other one. Values on which threads agree, bound in an iteration that is the same one for both, are
//! one variable. **Approximation.** What is read from memory may be anything, and nothing is known of dimensions but
//! their ranges; what the schedule knew of a buffer as a whole ([`Sharing`] of the buffer) holds in any case. Work is
//! counted, and beyond [`MOST_WORK`] only that is left.

mod pair;

use std::cell::RefCell;

use tilewright_sorted::SortedMap;

use self::pair::Pair;
use super::pending_accesses::Access;
use crate::extent::{Budget, Expr};
use crate::kernel_ir::{
    AccessKind, BufferId, Elements, Engine, Inside, Kernel, Op, Product, RegionId, Role, Sharing, StatementKind,
    ValueId,
};

/// Accesses of one kind that follow each other.
pub(super) type Group = u32;

/// Expressions that are looked at for all pairs of a kernel.
const MOST_WORK: u64 = 100_000;
/// The same for one pair.
const MOST_WORK_OF_PAIR: u64 = 4_000;
/// Combinations of ways in which the conditions of a pair hold.
const MOST_WAYS: usize = 4;
/// Groups of one kind and buffer that are told apart.
const MOST_GROUPS: usize = 48;

/// What an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Load,
    Store,
    Fetch,
    /// By threads of another block, or in one: no number of a thread tells whose it is.
    Peer,
}

/// A loop or branch around an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Loop {
        body: RegionId,
        index: ValueId,
        count: ValueId,
    },
    Branch {
        side: RegionId,
        condition: ValueId,
        holds: bool,
    },
    Elect {
        part: RegionId,
    },
    /// A role, with its threads.
    Role {
        body: RegionId,
        first: u32,
        threads: u32,
    },
}

impl Step {
    const fn region(self) -> RegionId {
        match self {
            Self::Loop { body, .. } => body,
            Self::Branch { side, .. } => side,
            Self::Elect { part } => part,
            Self::Role { body, .. } => body,
        }
    }
}

/// A group: where it is, and what it accesses.
struct Site {
    buffer: BufferId,
    steps: Vec<Step>,
    /// The bodies of the loops among them.
    loops: Vec<RegionId>,
    /// None if there are too many groups to look at, or other blocks take part.
    members: Option<Vec<Elements>>,
    /// Whether a lane of a warp says where elements are that others of it have.
    is_of_warps: bool,
}

/// The accesses of a kernel.
pub(super) struct Dependences<'a> {
    kernel: &'a Kernel,
    sites: Vec<Site>,
    groups: SortedMap<(RegionId, usize), Group>,
    /// Whether all threads of a block have the same value, where they evaluate it together.
    uniform: Vec<bool>,
    /// How many blocks there are.
    blocks: Option<&'a Expr>,
    known: RefCell<SortedMap<(Access, Group), Known>>,
    /// Of two groups, the pair of accesses that was last found to be of different units.
    likely: RefCell<SortedMap<(Group, Group), usize>>,
    work: RefCell<Budget>,
}

impl<'a> Dependences<'a> {
    /// All accesses of buffers; of so many blocks, if that is known.
    pub fn new(kernel: &'a Kernel, blocks: Option<&'a Expr>) -> Self {
        let mut found = Self {
            kernel,
            sites: Vec::new(),
            groups: SortedMap::new(),
            uniform: uniform(kernel),
            blocks,
            known: RefCell::new(SortedMap::new()),
            likely: RefCell::new(SortedMap::new()),
            work: RefCell::new(Budget::new(MOST_WORK)),
        };
        found.region(Kernel::BODY, &mut Vec::new(), &mut SortedMap::new());
        found
    }

    /// The group of a statement; none if it accesses no buffer.
    pub fn group(&self, region: RegionId, at: usize) -> Option<Group> {
        self.groups.get(&(region, at)).copied()
    }

    /// Whether the loop with a body, inside so many loops, is around a group.
    pub fn is_around(&self, body: RegionId, depth: usize, group: Group) -> bool {
        self.sites[group as usize].loops.get(depth) == Some(&body)
    }

    fn region(&mut self, region: RegionId, steps: &mut Vec<Step>, count: &mut SortedMap<(BufferId, Kind), Vec<Group>>) {
        // For each buffer, the group that is open.
        let mut open: SortedMap<BufferId, (Kind, Group)> = SortedMap::new();
        for (at, statement) in self.kernel.region(region).statements.iter().enumerate() {
            let inner: Vec<Step> = match &statement.kind {
                StatementKind::Loop(l) => vec![Step::Loop { body: l.body, index: l.index, count: l.count }],
                StatementKind::If(branch) => {
                    let step = |side, holds| Step::Branch { side, condition: branch.condition, holds };
                    std::iter::once(step(branch.then, true))
                        .chain(branch.otherwise.map(|side| step(side, false)))
                        .collect()
                }
                StatementKind::Elect(part) => vec![Step::Elect { part: *part }],
                StatementKind::Roles(roles) => {
                    let step = |role: &Role| {
                        let threads = role.threads();
                        Step::Role { body: role.body, first: threads.start, threads: threads.len() as u32 }
                    };
                    roles.iter().map(step).collect()
                }
                kind if kind.only_computes() => continue,
                kind => {
                    let is_of_warps = matches!(kind, StatementKind::LoadMatrix(_) | StatementKind::StoreMatrix(_));
                    match Self::access(kind) {
                        Some((buffer, kind, member)) => {
                            let same = open.get(&buffer).filter(|known| known.0 == kind).map(|known| known.1);
                            let group = same.unwrap_or_else(|| self.begin(buffer, kind, steps, count));
                            open.insert(buffer, (kind, group));
                            let site = &mut self.sites[group as usize];
                            site.members.iter_mut().for_each(|members| members.push(member));
                            site.is_of_warps |= is_of_warps;
                            self.groups.insert((region, at), group);
                        }
                        None => open.clear(),
                    }
                    continue;
                }
            };
            open.clear();
            for step in inner {
                steps.push(step);
                self.region(step.region(), steps, count);
                steps.pop();
            }
        }
    }

    /// A new group; beyond the limit the last one is for all.
    fn begin(
        &mut self,
        buffer: BufferId,
        kind: Kind,
        steps: &[Step],
        count: &mut SortedMap<(BufferId, Kind), Vec<Group>>,
    ) -> Group {
        let own = count.entry((buffer, kind)).or_default();
        if let Some(last) = own.last().filter(|_| own.len() > MOST_GROUPS) {
            return *last;
        }
        let group = self.sites.len() as Group;
        let is_last = own.len() == MOST_GROUPS;
        let is_opaque = is_last || kind == Kind::Peer;
        own.push(group);
        let steps = if is_last { Vec::new() } else { steps.to_vec() };
        let loops = loops(&steps).map(|(_, body, ..)| body).collect();
        self.sites.push(Site { buffer, steps, loops, members: (!is_opaque).then(Vec::new), is_of_warps: false });
        group
    }

    fn access(kind: &StatementKind) -> Option<(BufferId, Kind, Elements)> {
        kind.effects().accesses().find_map(|access| {
            let kind = match (access.by, access.kind) {
                _ if access.of_cluster => Kind::Peer,
                (Engine::CpAsync, _) => Kind::Fetch,
                (_, AccessKind::Read) => Kind::Load,
                (_, AccessKind::Write) => Kind::Store,
            };
            Some((access.buffer()?, kind, access.elements?))
        })
    }

    /// Whether who accesses an element in `later` is of the same thread, warp or warpgroup as who accessed it before:
    /// as far as the schedule says of the buffer, or a search said before, or one says now.
    pub fn is_within(&self, unit: Sharing, before: Access, later: Group, searches: bool) -> bool {
        let [first, second] = [before.group, later].map(|group| &self.sites[group as usize]);
        if self.kernel.buffers[second.buffer.index()].sharing <= unit {
            return true;
        }
        if unit < Sharing::Warp && (first.is_of_warps || second.is_of_warps) {
            return false;
        }
        let (Some(members), Some(others)) = (&first.members, &second.members) else { return false };
        let mut known = self.known.borrow_mut();
        let known = known.entry((before, later)).or_default();
        if known.within.is_some_and(|proved| proved <= unit) {
            return true;
        }
        if !searches || known.beyond.is_some_and(|asked| asked >= unit) {
            return false;
        }
        let pair = |n: usize| [&members[n / others.len()], &others[n % others.len()]];
        let is_apart = |n: &usize| !Pair::new(self, before, [first, second], pair(*n)).is_within(unit);
        // What was beyond a unit once is likely to be it again.
        let likely = self.likely.borrow().get(&(before.group, later)).copied();
        let pairs = (0..members.len() * others.len()).filter(|n| Some(*n) != likely);
        let found = likely.into_iter().chain(pairs).find(is_apart);
        match found {
            Some(n) => {
                self.likely.borrow_mut().insert((before.group, later), n);
                known.beyond = Some(unit);
            }
            None => known.within = Some(unit),
        }
        found.is_none()
    }
}

/// What searches said of two accesses.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The smallest unit that both are of.
    within: Option<Sharing>,
    /// The largest one of which that is not known.
    beyond: Option<Sharing>,
}

/// The numbers of the threads that come to an access: those of a role, or of the block.
fn threads_of(kernel: &Kernel, steps: &[Step]) -> std::ops::Range<u32> {
    let role = steps.iter().find_map(|step| match step {
        Step::Role { first, threads, .. } => Some(*first..first + threads),
        _ => None,
    });
    role.unwrap_or(0..kernel.signature.threads)
}

/// Depth, body, index and count of the loops among steps, with the position of each.
fn loops(steps: &[Step]) -> impl Iterator<Item = (usize, RegionId, ValueId, ValueId)> {
    steps.iter().enumerate().filter_map(|(at, step)| match *step {
        Step::Loop { body, index, count } => Some((at, body, index, count)),
        _ => None,
    })
}

/// What all threads of a block agree on: what is said to be so, what is computed from such values, and variables that
/// are only set to such values where all threads come.
fn uniform(kernel: &Kernel) -> Vec<bool> {
    let mut sets: Vec<(usize, ValueId, bool)> = Vec::new();
    assignments(kernel, Kernel::BODY, true, &mut sets);
    let mut variables = vec![true; kernel.variables.len()];
    loop {
        let mut values: Vec<bool> = Vec::with_capacity(kernel.values.len());
        for value in &kernel.values {
            let operands = |values: &[bool]| value.op.operands().all(|v| values.get(v.index()).is_some_and(|v| *v));
            let agreed = match value.op {
                Op::Literal(_) | Op::Dim(_) | Op::Scalar(_) | Op::BlockIndex | Op::BlockCount => true,
                Op::Get(variable) => variables[variable.index()],
                Op::ThreadIndex | Op::Loaded | Op::Shuffled | Op::LoopIndex | Op::Arrived | Op::Agreed => false,
                _ => operands(&values),
            };
            values.push(agreed || value.facts.uniform);
        }
        let before = variables.clone();
        for (variable, value, everywhere) in &sets {
            variables[*variable] &= *everywhere && values[value.index()];
        }
        if variables == before {
            return values;
        }
    }
}

/// Every variable that is set, to what, and whether all threads come there.
fn assignments(kernel: &Kernel, region: RegionId, all: bool, found: &mut Vec<(usize, ValueId, bool)>) {
    let agreed = |value: ValueId| kernel.value(value).facts.uniform;
    for statement in &kernel.region(region).statements {
        if let StatementKind::Declare(variable, value) | StatementKind::Set(variable, value) = &statement.kind {
            found.push((variable.index(), *value, all));
        }
        if statement.kind.only_computes() {
            continue;
        }
        let effects = statement.kind.effects();
        // Each thread has elements of its own.
        found.extend(effects.adds.into_iter().flat_map(Product::all).map(|v| (v.index(), ValueId(0), false)));
        let inside = effects.inside;
        let all = match inside {
            Inside::Nothing | Inside::Roles(_) => all,
            Inside::Loop(l) => all && agreed(l.count),
            Inside::If(branch) => all && agreed(branch.condition),
            Inside::Elect(_) => false,
        };
        inside.regions().for_each(|part| assignments(kernel, part, all, found));
    }
}

#[cfg(test)]
mod tests;
