//! What a thread must hold in registers at one time: a lower bound of what the assembler gives it.
//!
//! **Property.** A kernel in which [`held`] finds n words does not run with fewer than n registers of 32 bits without
//! spilling. **Formula.** Liveness of variables, at points that no instruction passes: where lanes or threads exchange
//! values, and where a loop comes around. After the former a variable is held if it is read after it, and was read in
//! front of it: its value was there before, and cannot come later. Around the latter it is held if the loop reads or
//! changes it. **Approximation.** Everything else is left out: addresses, indices, what is read only once, what is the
//! same as another variable or a constant, loops that the assembler may write out. What is narrower than a word counts
//! with its bits, and a conversion with what it converts, for the assembler may pack it and convert late.

use tilewright_kernel::target::register_limit;
use tilewright_sorted::SortedMap;

use super::effects::Inside;
use super::{Kernel, Op, Product, RegionId, Role, StatementKind, Type, ValueId, VariableId};

/// Loops with at most so many iterations may be written out by the assembler.
const WRITTEN_OUT: i64 = 4;

/// What is held where most is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Words of 32 bits.
    pub words: u32,
    /// The words of each stage, in the order of the kernel's variables: elements, or accumulators.
    pub parts: Vec<(String, u32)>,
}

/// A set of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(kernel: &Kernel) -> Self {
        Self(vec![0; kernel.variables.len().div_ceil(64)])
    }

    fn insert(&mut self, v: VariableId) {
        self.0[v.index() / 64] |= 1 << (v.index() % 64);
    }

    fn remove(&mut self, v: VariableId) {
        self.0[v.index() / 64] &= !(1 << (v.index() % 64));
    }

    fn contains(&self, v: usize) -> bool {
        self.0[v / 64] >> (v % 64) & 1 == 1
    }

    /// Adds the members of another set; whether there were new ones.
    fn join(&mut self, other: &Self) -> bool {
        // Loops over numbers: a debug build calls what iterators do.
        let (own, others) = (&mut self.0[..], &other.0[..]);
        let (mut grown, mut at) = (false, 0);
        while at < own.len() {
            grown |= others[at] & !own[at] != 0;
            own[at] |= others[at];
            at += 1;
        }
        grown
    }

    fn meet(&self, other: &Self) -> Self {
        let mut both = self.clone();
        let (own, others) = (&mut both.0[..], &other.0[..]);
        let mut at = 0;
        while at < own.len() {
            own[at] &= others[at];
            at += 1;
        }
        both
    }
}

/// A statement: its region, and its position there.
type Place = (usize, usize);

struct Analysis<'a> {
    kernel: &'a Kernel,
    /// Bits that a variable takes: 0 if it may take none.
    bits: &'a [u32],
    /// What is read after each exchange before it changes, and where each loop comes around.
    live: SortedMap<Place, Set>,
    most: (u32, Set),
}

/// What has happened to variables, on some path.
#[derive(Clone)]
struct Past {
    set: Set,
    /// Read since it was set.
    read: Set,
}

/// What a thread of a role, or of a kernel without roles, must hold at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldIn<'a> {
    /// What it is.
    pub held: Held,
    /// The words that a thread has.
    pub limit: u32,
    /// The role.
    pub role: Option<&'a Role>,
}

/// What a thread must hold at one time: in a kernel with roles for each of them.
pub fn held(kernel: &Kernel) -> Vec<HeldIn<'_>> {
    let usual = register_limit(kernel.signature.threads);
    let bits = sizes(kernel);
    match kernel.roles() {
        [] => vec![HeldIn { held: held_in(kernel, Kernel::BODY, &bits), limit: usual, role: None }],
        roles => {
            let of = |role: &Role| held_in(kernel, role.body, &bits);
            let limit = |role: &Role| role.registers.unwrap_or(usual);
            roles.iter().map(|role| HeldIn { held: of(role), limit: limit(role), role: Some(role) }).collect()
        }
    }
}

/// Bits of each variable: the most of all values that it is given.
fn sizes(kernel: &Kernel) -> Vec<u32> {
    let mut bits = vec![0; kernel.variables.len()];
    for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
        match &statement.kind {
            StatementKind::Declare(v, value) | StatementKind::Set(v, value) => {
                bits[v.index()] = bits[v.index()].max(width(kernel, *value));
            }
            StatementKind::Wgmma(product) => product.all().for_each(|v| bits[v.index()] = 32),
            StatementKind::MmaSync(product) => product.all().for_each(|v| bits[v.index()] = 32),
            _ => {}
        }
    }
    bits
}

/// Bits that must be kept to have a value.
fn width(kernel: &Kernel, value: ValueId) -> u32 {
    let found = kernel.value(value);
    let own = match found.ty {
        Type::Element(tilewright_kernel::ElementType::Bool) | Type::I32 | Type::I64 => 0,
        Type::Element(element) => 8 * element.bytes(),
    };
    match found.op {
        Op::Cast(of) | Op::Bits(of) => own.min(width(kernel, of)),
        Op::Literal(_) | Op::Get(_) | Op::Scalar(_) | Op::FromIndex(_) => 0,
        _ => own,
    }
}

/// What a thread that runs a region must hold at one time there.
fn held_in(kernel: &Kernel, region: RegionId, bits: &[u32]) -> Held {
    let none = Set::new(kernel);
    let mut analysis = Analysis { kernel, bits, live: SortedMap::new(), most: (0, none.clone()) };
    analysis.backward(region, none.clone());
    analysis.forward(region, &mut Past { set: none.clone(), read: none });
    let Analysis { bits, most: (words, members), .. } = analysis;
    let mut parts: Vec<(String, u32)> = Vec::new();
    for (name, variables) in &kernel.debug_names {
        let own: u32 = variables.iter().filter(|v| members.contains(v.index())).map(|v| bits[v.index()]).sum();
        match parts.iter_mut().find(|part| part.0 == *name) {
            Some(part) => part.1 += own,
            None => parts.push((name.clone(), own)),
        }
    }
    parts.iter_mut().for_each(|part| part.1 = part.1.div_ceil(32));
    parts.retain(|part| part.1 > 0);
    Held { words, parts }
}

impl Analysis<'_> {
    /// What is live before a region, given what is after it.
    fn backward(&mut self, region: RegionId, mut live: Set) -> Set {
        let kernel = self.kernel;
        for (at, statement) in kernel.region(region).statements.iter().enumerate().rev() {
            match &statement.kind {
                StatementKind::Let(value) => {
                    if let Op::Get(v) = kernel.value(*value).op {
                        live.insert(v);
                    }
                    continue;
                }
                StatementKind::Declare(v, _) | StatementKind::Set(v, _) => {
                    live.remove(*v);
                    continue;
                }
                _ => {}
            }
            let effects = statement.kind.effects();
            match effects.inside {
                Inside::Nothing => {
                    effects.adds.into_iter().flat_map(Product::uses).for_each(|v| live.insert(v));
                    if is_exchange(&statement.kind) {
                        self.live.insert((region.index(), at), live.clone());
                    }
                }
                Inside::If(branch) => {
                    let then = self.backward(branch.then, live.clone());
                    if let Some(otherwise) = branch.otherwise {
                        live = self.backward(otherwise, live);
                    }
                    live.join(&then);
                }
                inside @ (Inside::Elect(_) | Inside::Roles(_)) => {
                    for part in inside.regions() {
                        let own = self.backward(part, live.clone());
                        live.join(&own);
                    }
                }
                Inside::Loop(inner) => {
                    loop {
                        let head = self.backward(inner.body, live.clone());
                        if !live.join(&head) {
                            break;
                        }
                    }
                    self.live.insert((region.index(), at), live.clone());
                }
            }
        }
        live
    }

    fn forward(&mut self, region: RegionId, past: &mut Past) {
        let kernel = self.kernel;
        for (at, statement) in kernel.region(region).statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Let(value) => {
                    if let Op::Get(v) = kernel.value(*value).op {
                        past.read.insert(v);
                    }
                    continue;
                }
                StatementKind::Declare(v, value) | StatementKind::Set(v, value) => {
                    past.read.remove(*v);
                    match width(kernel, *value) {
                        0 if matches!(statement.kind, StatementKind::Declare(..)) => past.set.remove(*v),
                        _ => past.set.insert(*v),
                    }
                    continue;
                }
                _ => {}
            }
            let effects = statement.kind.effects();
            match effects.inside {
                Inside::Nothing => {
                    effects.adds.into_iter().flat_map(Product::all).for_each(|v| past.set.insert(v));
                    effects.adds.into_iter().flat_map(Product::uses).for_each(|v| past.read.insert(v));
                    if is_exchange(&statement.kind)
                        && let Some(live) = self.live.get(&(region.index(), at))
                    {
                        let held = live.meet(&past.set).meet(&past.read);
                        self.found(held);
                    }
                }
                Inside::If(branch) => {
                    let mut other = past.clone();
                    self.forward(branch.then, past);
                    if let Some(otherwise) = branch.otherwise {
                        self.forward(otherwise, &mut other);
                    }
                    past.set.join(&other.set);
                    past.read.join(&other.read);
                }
                inside @ (Inside::Elect(_) | Inside::Roles(_)) => {
                    let before = past.clone();
                    for part in inside.regions() {
                        let mut own = before.clone();
                        self.forward(part, &mut own);
                        past.set.join(&own.set);
                        past.read.join(&own.read);
                    }
                }
                Inside::Loop(inner) => {
                    let before = past.clone();
                    loop {
                        let mut around = past.clone();
                        self.forward(inner.body, &mut around);
                        let grown = past.set.join(&around.set);
                        if !(past.read.join(&around.read) || grown) {
                            break;
                        }
                    }
                    let few = kernel.index_literal(inner.count).is_some_and(|n| n <= WRITTEN_OUT) && !inner.rolled;
                    let (mut used, mut changed) = (Set::new(kernel), Set::new(kernel));
                    self.inside(inner.body, &mut used, &mut changed);
                    let mut moved = used.meet(&before.set);
                    moved.join(&changed);
                    if let Some(live) = self.live.get(&(region.index(), at)).filter(|_| !few) {
                        let held = live.meet(&moved);
                        self.found(held);
                    }
                }
            }
        }
    }

    /// The variables that a region reads, and those that it changes.
    fn inside(&self, region: RegionId, used: &mut Set, changed: &mut Set) {
        for statement in &self.kernel.region(region).statements {
            match statement.kind {
                StatementKind::Let(value) => {
                    if let Op::Get(v) = self.kernel.value(value).op {
                        used.insert(v);
                    }
                    continue;
                }
                StatementKind::Declare(..) => continue,
                StatementKind::Set(v, value) => {
                    if width(self.kernel, value) > 0 {
                        changed.insert(v);
                    }
                    continue;
                }
                _ => {}
            }
            let effects = statement.kind.effects();
            effects.adds.into_iter().flat_map(Product::all).for_each(|v| changed.insert(v));
            effects.adds.into_iter().flat_map(Product::factors).for_each(|v| used.insert(v));
            effects.inside.regions().for_each(|part| self.inside(part, used, changed));
        }
    }

    fn found(&mut self, held: Set) {
        let mut bits = 0;
        for (at, word) in held.0.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                bits += self.bits[64 * at + left.trailing_zeros() as usize];
                left &= left - 1;
            }
        }
        let words = bits.div_ceil(32);
        if words > self.most.0 {
            self.most = (words, held);
        }
    }
}

/// Whether threads or lanes exchange values here, which no access of a thread passes.
fn is_exchange(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::BarSync
            | StatementKind::BarWarpSync
            | StatementKind::Shuffle { .. }
            | StatementKind::LastBlockTicket { .. }
            | StatementKind::Wgmma(_)
            | StatementKind::MmaSync(_)
    )
}
