//! The builder: regions, statements, and where a value is bound.
//!
//! A pure operation is numbered (asking twice gives the same value) and bound in the **outermost** region in which its
//! operands exist, so that whatever does not depend on a loop is computed before it. Nothing traps, so that conditions
//! do not hold an operation back. The binding is appended to that region while inner ones are still open, that is, in
//! front of the loop or branch that is being built.
//!
//! The builder trusts its caller with types and scopes: [`verify`](super::verify()) finds every mistake.

mod element;
mod index;
mod numbering;
mod rare;
mod statements;
mod sums;

use tilewright_sorted::SortedMap;

use self::numbering::{Numbering, key};
use super::{
    BufferId, Facts, IndexOp, Kernel, Memory, Op, Range, Region, RegionId, Role, Signature, Statement, StatementKind,
    Type, Value, ValueId,
};

/// Builds a [`Kernel`].
#[derive(Debug)]
pub struct Builder {
    kernel: Kernel,
    numbering: Numbering,
    /// The open regions, outermost first.
    open: Vec<RegionId>,
    /// The open loops and branches, outermost first.
    frames: Vec<Frame>,
    line: u32,
    /// What numbers after those of the dimensions stand for.
    around: Vec<Option<ValueId>>,
    /// Loads of tensors that the kernel does not write: the first with each shape, by region.
    loads: SortedMap<LoadKey, (ValueId, Vec<ValueId>)>,
    /// Branches that are seldom taken, outer ones before inner ones.
    rare: Vec<RegionId>,
    unbalanced: bool,
}

/// Region, memory, offset, lanes, predicate.
type LoadKey = (RegionId, Memory, ValueId, u32, Option<ValueId>);

/// A loop or branch under construction.
#[derive(Debug)]
enum Frame {
    /// A loop.
    Loop { index: ValueId, count: ValueId, rolled: bool, line: u32, cuts: Vec<ValueId> },
    /// A loop of one iteration: its body belongs to the region around it.
    Once,
    /// The first side of a branch.
    Then { condition: ValueId, line: u32 },
    /// The second side.
    Else { condition: ValueId, then: RegionId, line: u32 },
    /// The side of a branch that is always taken: it belongs to the region around it.
    Taken,
    /// The side that is never taken: a region that nothing refers to.
    Dropped,
    /// The part of the elected thread.
    Elect { line: u32 },
    /// Roles: those that are complete, and the one that is open, if one is.
    Roles { line: u32, done: Vec<Role>, open: Option<OpenRole> },
}

/// A role whose body is not complete.
#[derive(Debug)]
struct OpenRole {
    name: String,
    warps: std::ops::Range<u32>,
    registers: Option<u32>,
    region: RegionId,
    /// The number of a thread in it, once that was asked for.
    thread: Option<ValueId>,
}

/// What a load is subject to.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// Nothing is read unless it holds.
    pub predicate: ValueId,
    /// What each lane is where it does not hold.
    pub otherwise: &'a [ValueId],
}

/// A loop or branch was ended that was not open, or left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unbalanced;

impl Builder {
    /// A kernel without statements.
    pub fn new(signature: Signature) -> Self {
        let body = Region { depth: 0, statements: Vec::new() };
        Self {
            kernel: Kernel {
                signature,
                values: Vec::new(),
                regions: vec![body],
                variables: Vec::new(),
                debug_names: Vec::new(),
                unset: Vec::new(),
                buffers: Vec::new(),
                alias_of: Vec::new(),
                parts: Vec::new(),
                workspaces: Vec::new(),
                tiles: Vec::new(),
                barriers: Vec::new(),
            },
            numbering: Numbering::default(),
            open: vec![Kernel::BODY],
            frames: Vec::new(),
            line: 0,
            around: Vec::new(),
            loads: SortedMap::new(),
            rare: Vec::new(),
            unbalanced: false,
        }
    }

    /// How many loops, branches and roles are open.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// From here on [`Builder::dim`] knows the indices of loops around by the numbers after those of the dimensions;
    /// what it knew before.
    pub fn loops_around(&mut self, values: Vec<Option<ValueId>>) -> Vec<Option<ValueId>> {
        std::mem::replace(&mut self.around, values)
    }

    /// The kernel, without the values that nothing uses.
    ///
    /// # Errors
    /// When loops and branches do not pair up.
    pub fn finish(mut self) -> Result<Kernel, Unbalanced> {
        if self.unbalanced || !self.frames.is_empty() {
            return Err(Unbalanced);
        }
        self.drop_unused();
        self.move_to_rare();
        self.drop_buffers();
        self.kernel.declare_meetings();
        Ok(self.kernel)
    }

    /// Removes bindings of values that no effect depends on.
    fn drop_unused(&mut self) {
        let Kernel { values, regions, .. } = &mut self.kernel;
        let mut used = vec![false; values.len()];
        let mut shuffled = SortedMap::new();
        for statement in regions.iter().flat_map(|region| &region.statements) {
            match &statement.kind {
                StatementKind::Let(_) => {}
                StatementKind::Shuffle { value, result, .. } => {
                    shuffled.insert(*result, *value);
                }
                kind => kind.effects().operands().for_each(|value| used[value.index()] = true),
            }
        }
        // Operands are older than what they are operands of.
        for (n, value) in values.iter().enumerate().rev() {
            if used[n] {
                let shuffled = shuffled.get(&ValueId(n as u32)).copied();
                value.op.operands().chain(shuffled).for_each(|operand| used[operand.index()] = true);
            }
        }
        for region in regions {
            region.statements.retain(|s| match s.kind {
                StatementKind::Let(value) | StatementKind::Shuffle { result: value, .. } => used[value.index()],
                _ => true,
            });
        }
    }

    /// Removes buffers that nothing is stored to or copied to.
    fn drop_buffers(&mut self) {
        let Kernel { regions, buffers, alias_of, parts, .. } = &mut self.kernel;
        let mut used = vec![false; buffers.len()];
        for statement in regions.iter().flat_map(|region| &region.statements) {
            if statement.kind.only_computes() {
                continue;
            }
            let accessed = statement.kind.effects().accesses().filter_map(|access| access.buffer());
            accessed.for_each(|buffer| used.get_mut(buffer.index()).into_iter().for_each(|u| *u = true));
        }
        // Numbers of no buffer stay such.
        let number = |buffer: &mut BufferId| {
            let before = used.iter().take(buffer.index()).filter(|u| **u).count();
            buffer.0 = (before + buffer.index().saturating_sub(used.len())) as u32;
        };
        for region in regions.iter_mut() {
            let is_kept = |s: &Statement| !matches!(s.kind, StatementKind::LifetimeStart { buffer, .. } if used.get(buffer.index()) == Some(&false));
            region.statements.retain(is_kept);
            region.statements.iter_mut().flat_map(|s| s.kind.buffers_mut()).for_each(number);
        }
        let mut at = 0;
        buffers.retain(|_| {
            at += 1;
            used[at - 1]
        });
        let mut kept = used.iter();
        parts.retain(|_| kept.next() == Some(&true));
        *alias_of = (0..buffers.len() as u32).map(BufferId).collect();
    }

    /// The kernel so far.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Sets the source statement that what follows serves: a number in `KernelInfo::statements`, from 1, or 0.
    pub fn line(&mut self, line: u32) {
        self.line = line;
    }

    /// Type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.kernel.value(value).ty
    }

    /// What is known of a value.
    pub fn facts(&self, value: ValueId) -> Facts {
        self.kernel.value(value).facts
    }

    /// Adds to what is known of an index integer: it lies in `range` wherever its value matters.
    pub fn assume(&mut self, value: ValueId, range: Range) {
        let facts = &mut self.kernel.values[value.index()].facts;
        facts.range = facts.range.intersect(range);
    }

    /// A value is the number of a tile that the block takes.
    pub fn assume_tile(&mut self, value: ValueId) {
        self.kernel.tiles.push(value);
    }

    /// What lowering knows beside: all threads of the block, or of the role, have the same value.
    pub fn assume_uniform(&mut self, value: ValueId) {
        self.kernel.values[value.index()].facts.uniform = true;
    }

    /// The same of a value that follows from these alone, and from memory that nobody writes: if all blocks of a
    /// cluster have the same of them, they have the same of it.
    pub fn assume_follows(&mut self, value: ValueId, from: &[ValueId]) {
        let cluster = from.iter().all(|v| self.kernel.value(*v).facts.cluster);
        let facts = &mut self.kernel.values[value.index()].facts;
        (facts.uniform, facts.cluster) = (true, facts.cluster || cluster);
    }

    // Placement.

    /// The innermost open region.
    pub fn region(&self) -> RegionId {
        self.open.last().copied().unwrap_or(Kernel::BODY)
    }

    /// The index of an open loop, and what is added to it.
    fn loop_index(&self, value: ValueId) -> Option<(ValueId, Option<ValueId>)> {
        let is_own = |of| self.frames.iter().any(|f| matches!(f, Frame::Loop { index, .. } if *index == of));
        match self.kernel.value(value).op {
            _ if is_own(value) => Some((value, None)),
            Op::Index(IndexOp::Add, a, b) | Op::Index(IndexOp::Add, b, a) if is_own(a) => Some((a, Some(b))),
            _ => None,
        }
    }

    /// Whether what stands in a region so far comes before everything that follows here.
    pub fn is_open(&self, region: RegionId) -> bool {
        self.open.contains(&region)
    }

    fn open_region(&mut self) {
        let region = RegionId(self.kernel.regions.len() as u32);
        self.kernel.regions.push(Region { depth: self.open.len() as u32, statements: Vec::new() });
        self.open.push(region);
    }

    fn close_region(&mut self) -> RegionId {
        // Frames and regions open and close together, so the body of the kernel is never closed.
        if self.open.len() > 1 { self.open.pop().unwrap_or(Kernel::BODY) } else { Kernel::BODY }
    }

    fn push(&mut self, line: u32, kind: StatementKind) {
        let region = self.region();
        self.kernel.regions[region.index()].statements.push(Statement { line, kind });
    }

    fn new_value(&mut self, op: Op, ty: Type, region: RegionId, facts: Facts) -> ValueId {
        let value = ValueId(self.kernel.values.len() as u32);
        self.kernel.values.push(Value { op, ty, region, facts });
        value
    }

    /// A constant: no statement binds it.
    fn literal_bits(&mut self, ty: Type, bits: u64, range: Range) -> ValueId {
        let key = key(Op::Literal(bits), ty);
        if let Some(value) = self.numbering.get(&key) {
            return value;
        }
        let value = self.new_value(Op::Literal(bits), ty, Kernel::BODY, Facts { range, uniform: true, cluster: true });
        self.numbering.insert(key, value);
        value
    }

    /// Whether an operation is the block's number by a multiple of the blocks of a cluster.
    fn is_number_of_cluster(&self, op: Op) -> bool {
        let Op::Index(IndexOp::Div, mut block, by) = op else { return false };
        if let Op::ConvertIndex(narrow) = self.kernel.value(block).op {
            block = narrow;
        }
        let whole = self.kernel.index_literal(by).is_some_and(|by| by % i64::from(self.kernel.signature.cluster) == 0);
        whole && self.kernel.value(block).op == Op::BlockIndex
    }

    /// The value that a pure operation already has.
    fn known(&self, op: Op, ty: Type) -> Option<ValueId> {
        self.numbering.get(&key(op, ty))
    }

    /// A pure operation: the value it already has, or a new one in the outermost region where its operands exist.
    fn pure(&mut self, op: Op, ty: Type, range: Range, uniform: bool) -> ValueId {
        let key = key(op, ty);
        if let Some(value) = self.numbering.get(&key) {
            return value;
        }
        let (mut uniform, mut cluster) = (uniform, uniform && !matches!(op, Op::BlockIndex | Op::ClusterRank));
        let mut depth = 0;
        for operand in op.operands() {
            let Value { region, facts, .. } = *self.kernel.value(operand);
            uniform &= facts.uniform;
            cluster &= facts.cluster;
            depth = depth.max(self.kernel.region(region).depth as usize);
        }
        let region = self.open.get(depth).copied().unwrap_or_else(|| self.region());
        let facts = Facts { range, uniform, cluster: cluster || self.is_number_of_cluster(op) };
        let value = self.new_value(op, ty, region, facts);
        let statement = Statement { line: self.line, kind: StatementKind::Let(value) };
        self.kernel.regions[region.index()].statements.push(statement);
        self.numbering.insert(key, value);
        value
    }
}
