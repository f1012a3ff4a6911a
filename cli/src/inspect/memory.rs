//! The shared memory of an entry point: where buffers and barriers lie, and from when to when each buffer is used.
//!
//! Time is the order of the program: the statements that access shared memory, one after the other, each once. What a
//! role runs stands after what the role before it runs, though they run at one time. A buffer that roles hand to each
//! other, a ring, and what the accelerator or `cp.async` fills is used from the start to the end of the loop around
//! its accesses, since it is filled ahead; any other one from its first access to its last.

use std::ops::Range;

use tilewright_compiler::kernel_ir::{
    BARRIER_BYTES, BufferId, Effects, Engine, InRoles, Inside, Kernel, MbarrierId, RegionId, Role, StatementKind,
};
use tilewright_kernel::{ElementType, KernelInfo};

/// The shared memory of a block.
pub struct MemoryView {
    /// Bytes of everything.
    pub bytes: u64,
    /// By first byte, those in the place of others after them.
    pub buffers: Vec<BufferView>,
    pub barriers: Vec<BarrierView>,
    /// What `first` and `last` of buffers count.
    pub phases: Vec<PhaseView>,
}

/// A buffer, or a ring of them.
pub struct BufferView {
    pub name: String,
    pub element: ElementType,
    /// First byte.
    pub offset: u64,
    /// Of all slots.
    pub bytes: u64,
    pub slots: u32,
    /// The buffer in whose memory it lies, at other times.
    pub in_place_of: Option<String>,
    /// The phases in which it is used: from the start of one to the end of the other.
    pub first: usize,
    pub last: usize,
}

/// Barriers with phases, one for each slot.
pub struct BarrierView {
    /// What its phases tell: that copies have filled buffers, that threads have written them, or that they are free.
    pub name: String,
    /// First byte.
    pub offset: u64,
    pub slots: u32,
    /// Arrivals that end a phase.
    pub arrivals: u32,
}

/// Accesses one after the other that serve one statement in one role, with no barrier of all threads between them.
#[derive(PartialEq, Eq)]
pub struct PhaseView {
    /// The statement, as it is written; none for what serves none.
    pub statement: Option<String>,
    pub role: Option<String>,
}

/// That of an entry point.
pub fn view(info: &KernelInfo, entry: &Kernel) -> MemoryView {
    let roles = InRoles::of(entry);
    let count = entry.buffers.len();
    let mut walk = Walk {
        info,
        entry,
        roles: &roles,
        phases: Vec::new(),
        used: vec![None; count],
        accesses: vec![0; count],
        ahead: ahead(entry, &roles),
        met: false,
        waited: Vec::new(),
        accessed: false,
        told: vec![Vec::new(); entry.barriers.len()],
        ends: vec![(None, None); entry.barriers.len()],
    };
    walk.region(Kernel::BODY);
    let map = entry.shared_map();
    let buffer = |(n, span): (usize, &Option<Range<usize>>)| {
        let (buffer, span) = (&entry.buffers[n], span.clone().filter(|_| entry.parts[n].is_none())?);
        let other = entry.alias_of[n].index();
        Some(BufferView {
            name: buffer.name.clone(),
            element: buffer.element,
            offset: map.buffers[n],
            bytes: buffer.bytes(),
            slots: buffer.slots,
            in_place_of: (other != n).then(|| entry.buffers[other].name.clone()),
            first: span.start,
            last: span.end - 1,
        })
    };
    let barriers = barriers(&walk, map.barriers);
    let mut buffers: Vec<BufferView> = walk.used.iter().enumerate().filter_map(buffer).collect();
    buffers.sort_by_key(|b| (b.offset, b.in_place_of.is_some(), b.first));
    MemoryView { bytes: map.bytes, buffers, barriers, phases: walk.phases }
}

/// Which buffers are filled ahead, or handed to others.
fn ahead(entry: &Kernel, roles: &InRoles) -> Vec<bool> {
    let mut found: Vec<bool> =
        (0..entry.buffers.len()).map(|n| entry.buffers[n].slots > 1 || roles.is_handed(BufferId(n as u32))).collect();
    for effects in all_effects(entry) {
        for access in effects.accesses().filter(|access| access.by != Engine::Thread) {
            if let Some(buffer) = access.buffer() {
                found[buffer.index()] = true;
            }
        }
    }
    found
}

fn all_effects(entry: &Kernel) -> impl Iterator<Item = Effects<'_>> {
    let statements = entry.regions.iter().flat_map(|region| &region.statements);
    statements.filter(|s| !s.kind.only_computes()).map(|s| s.kind.effects())
}

/// The barriers, in their order in memory.
///
/// Of one at which no copies end, a role tells another one that it has written buffers, or read them: those that are
/// accessed after the wait, as far as both use them so.
fn barriers(walk: &Walk<'_>, start: u64) -> Vec<BarrierView> {
    let Walk { entry, roles, told, ends, .. } = walk;
    let mut filled: Vec<Vec<BufferId>> = vec![Vec::new(); entry.barriers.len()];
    for effects in all_effects(entry) {
        let Some(barrier) = effects.barrier else { continue };
        filled[barrier.index()].extend(effects.accesses().filter_map(|access| access.buffer()));
    }
    let names = |buffers: &mut dyn Iterator<Item = &BufferId>| {
        let mut names: Vec<&str> = Vec::new();
        for buffer in buffers {
            let name = entry.buffers[buffer.index()].name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    };
    let name = |n: usize| {
        let meets = |role: &&Role| role.cluster_mbarrier.is_some_and(|barrier| barrier.index() == n);
        let (arrives, waits) = ends[n];
        // What who arrives does, and who waits: writers are 0, readers 1.
        let handed = |from: usize| {
            let is = |b: &&BufferId| {
                let users = roles.users(**b);
                users[from].contains(arrives) && users[1 - from].contains(waits)
            };
            names(&mut told[n].iter().filter(is))
        };
        match (entry.roles().iter().find(meets), &filled[n][..], handed(0), handed(1)) {
            (Some(role), ..) => format!("role {} of all blocks", role.name),
            (None, [_, ..], ..) => format!("{} filled", names(&mut filled[n].iter())),
            (None, [], written, _) if !written.is_empty() => format!("{written} written"),
            (None, [], _, free) if !free.is_empty() => format!("{free} free"),
            (None, [], ..) => "turns".to_owned(),
        }
    };
    let mut offset = start;
    let mut all = Vec::new();
    for (n, barrier) in entry.barriers.iter().enumerate() {
        all.push(BarrierView { name: name(n), offset, slots: barrier.slots, arrivals: barrier.arrivals });
        offset += u64::from(barrier.slots) * BARRIER_BYTES;
    }
    all
}

/// A walk through the program in its order.
struct Walk<'a> {
    info: &'a KernelInfo,
    entry: &'a Kernel,
    roles: &'a InRoles,
    phases: Vec<PhaseView>,
    /// The phases in which each buffer is used, and its accesses so far.
    used: Vec<Option<Range<usize>>>,
    accesses: Vec<usize>,
    ahead: Vec<bool>,
    /// Whether all threads have waited for each other since the last access.
    met: bool,
    /// The last barriers that were waited for, one after the other.
    waited: Vec<MbarrierId>,
    /// Whether there was an access after these.
    accessed: bool,
    /// For each barrier the buffers that are accessed after a wait for it, until the next wait.
    told: Vec<Vec<BufferId>>,
    /// For each barrier the role that arrives, and the one that waits.
    ends: Vec<(Option<usize>, Option<usize>)>,
}

impl Walk<'_> {
    fn region(&mut self, region: RegionId) {
        let own = self.roles.role(region);
        let role = own.and_then(|role| self.entry.roles().get(role));
        for statement in &self.entry.region(region).statements {
            if statement.kind.only_computes() {
                continue;
            }
            let effects = statement.kind.effects();
            match effects.inside {
                Inside::Loop(inside) => {
                    let before = (self.phases.len(), self.accesses.clone());
                    self.region(inside.body);
                    self.widen(before);
                    continue;
                }
                Inside::Roles(roles) => {
                    for role in roles {
                        self.waited.clear();
                        self.region(role.body);
                    }
                    continue;
                }
                Inside::Nothing => {}
                inside => {
                    inside.regions().for_each(|part| self.region(part));
                    continue;
                }
            }
            match &statement.kind {
                StatementKind::MbarrierWait { barrier, .. } => {
                    if std::mem::take(&mut self.accessed) {
                        self.waited.clear();
                    }
                    self.waited.push(*barrier);
                    self.ends[barrier.index()].1 = own;
                }
                StatementKind::MbarrierArrive { barrier, .. }
                | StatementKind::CpAsyncMbarrierArrive { barrier, .. } => self.ends[barrier.index()].0 = own,
                StatementKind::BarSync | StatementKind::BarRedOr { .. } => self.met = true,
                _ => {}
            }
            for access in effects.accesses() {
                let Some(buffer) = access.buffer() else { continue };
                self.accessed = true;
                self.waited.iter().for_each(|barrier| self.told[barrier.index()].push(buffer));
            }
            let buffers: Vec<usize> = effects.accesses().filter_map(|a| a.buffer()).map(|b| b.index()).collect();
            let is_shared = |buffer: &usize| self.entry.parts[*buffer].is_none();
            if !buffers.iter().any(is_shared) {
                continue;
            }
            let text = (statement.line as usize).checked_sub(1).and_then(|n| self.info.statements.get(n));
            let phase =
                PhaseView { statement: text.map(ToString::to_string), role: role.map(|role| role.name.clone()) };
            if std::mem::take(&mut self.met) || self.phases.last() != Some(&phase) {
                self.phases.push(phase);
            }
            let at = self.phases.len() - 1;
            for buffer in buffers {
                self.accesses[buffer] += 1;
                self.use_in(buffer, at..at + 1);
            }
        }
    }

    fn use_in(&mut self, buffer: usize, phases: Range<usize>) {
        let used = self.used[buffer].get_or_insert(phases.clone());
        *used = used.start.min(phases.start)..used.end.max(phases.end);
    }

    /// A loop has ended: what is filled ahead is used in all of it.
    fn widen(&mut self, (start, before): (usize, Vec<usize>)) {
        let all = start..self.phases.len();
        for (buffer, before) in before.into_iter().enumerate() {
            if self.ahead[buffer] && self.accesses[buffer] > before && !all.is_empty() {
                self.use_in(buffer, all.clone());
            }
        }
    }
}
