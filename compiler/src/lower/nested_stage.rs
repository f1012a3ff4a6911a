//! Stages inside the loops of others: where a nest computes an instance, and how what it holds is read.
//!
//! An instance stands before what the loops around it do, as a copy does, with a nest of its own. In shared
//! memory, and in the block's part of a workspace, it is written by all threads of the block for all of them:
//!
//! ```text
//! the lifetime of an instance starts, in the next slot
//! each thread writes its elements
//! ```
//!
//! Between these and the readers, of the instance that had the slot and of this one, threads wait for each other where
//! they must (`barrier_placement`). What threads fetch is in `cp_async_pipeline`.
//!
//! In registers each thread keeps its elements in variables, one for each iteration of the stage's loops, which are
//! written out.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Source, ValueId as AlgorithmValue};

use super::arithmetic::Emit;
use super::behind::Group;
use super::pipeline::{FullEmptyBarriers, Pipeline};
use super::product;
use super::stage::{Around, Frame, Iteration, Nest, Point};
use super::value::{Values, expression};
use crate::domain::{AxisId, Unit};
use crate::extent::{Expr, Family, Var};
use crate::kernel_ir::{Buffer, BufferId, Builder, Type, ValueId, VariableId};
use crate::layout::XorSwizzle;
use crate::plan::Analysed;
use crate::plan::roles::ProducerConsumers;
use crate::schedule::{Along, Role, SLOT_ALIGNMENT, Spot, Stage, registers, taken};

/// An instance of a stage that can be read at this point.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// The position of the stage.
    pub at: usize,
    /// The stage.
    pub stage: &'a Stage,
    /// What holds each of its components.
    pub memory: Vec<Kept>,
    /// The loops around it, by the numbers after those of the dimensions.
    pub around: Vec<Option<ValueId>>,
}

/// What holds a component of an instance.
#[derive(Clone, Debug)]
pub enum Kept {
    /// A buffer, in the order of the stage's layout.
    Buffer {
        /// It.
        buffer: BufferId,
        /// Its slot.
        slot: ValueId,
        /// Elements before its slot; none if there is one slot.
        base: Option<ValueId>,
    },
    /// Registers of each thread: see [`register`](crate::schedule::register).
    Registers(Vec<VariableId>),
}

/// The buffers of a stage.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    /// One for each of its components; none if it is in registers.
    buffers: Vec<BufferId>,
    /// Their slots: that of the instance at hand is the one of the next instance that is read.
    pub pipeline: Pipeline,
}

impl Storage {
    /// The same with other buffers.
    pub fn again(&self, b: &mut Builder) -> Self {
        let buffers = self.buffers.iter().map(|own| {
            let buffer = b.kernel().buffers[own.index()].clone();
            b.buffer(buffer)
        });
        Self { buffers: buffers.collect(), pipeline: self.pipeline.clone() }
    }

    /// Declares what one role, or all threads, know of its instances: the first slot and phase come next.
    pub fn begin(&mut self, b: &mut Builder) {
        self.pipeline.begin(b, self.pipeline.between.is_some());
    }
}

impl Instance<'_> {
    /// The value of a dimension, or of a loop around the instance.
    pub fn dim(&self, b: &mut Builder, v: Var, ty: Type) -> ValueId {
        let around = (v as usize).checked_sub(b.kernel().signature.dims.len());
        match around.map(|n| self.around.get(n).copied().flatten()) {
            Some(Some(value)) => b.index_convert(value, ty),
            // A loop around that has no value is no dimension, either: the verifier refuses what depends on it.
            None | Some(None) => b.dim(v as u16, ty),
        }
    }

    /// Where the element at `indices` lies in a buffer with elements of so many bytes; `base` elements are before
    /// the slot.
    pub fn place(
        &self,
        b: &mut Builder,
        indices: &[ValueId],
        (base, bytes): (Option<ValueId>, u32),
        ty: Type,
    ) -> ValueId {
        let offset = self.place_before_swizzle(b, indices, ty);
        let swizzle = XorSwizzle::new(self.stage.layout.swizzle, bytes);
        let offset = swizzle.of(&mut Emit { b, index: ty }, &offset);
        base.map_or(offset, |base| b.index_add(base, offset))
    }

    /// The same in its slot, before chunks are exchanged.
    pub fn place_before_swizzle(&self, b: &mut Builder, indices: &[ValueId], ty: Type) -> ValueId {
        // What placeholders stand for: indices of the element, then coordinates.
        let mut at = indices.to_vec();
        let value = |b: &mut Builder, e: &Expr, at: &[ValueId], known: &[(Var, ValueId)]| {
            expression(b, e, ty, &|b, v| match Family::PLACEHOLDER.number(v).and_then(|n| at.get(n)) {
                Some(index) => b.index_convert(*index, ty),
                None => match known.iter().find(|k| k.0 == v) {
                    Some((_, value)) => *value,
                    None => self.dim(b, v, ty),
                },
            })
        };
        let Stage { coordinates, layout, .. } = self.stage;
        let all: Vec<Expr> = (0..indices.len()).map(|n| Family::PLACEHOLDER.expr(n)).collect();
        let coordinate = |c: &Along| {
            if c.step == 1 && self.stage.is_of_coordinates(layout) {
                let [dim] = c.dims[..] else { return c.at(&all) };
                // What the index has in common with the start is taken off before anything is multiplied.
                let (index, start) = (b.index_convert(indices[dim], ty), value(b, &c.start, indices, &[]));
                at.push(b.index_sub(index, start));
                return Family::PLACEHOLDER.expr(at.len() - 1);
            }
            // In normal form the dividend would be far beyond the coordinate: ⌊(i − s) / 8⌋ is ⌊(i + 7·s) / 8⌋ − s
            // there.
            let (distance, step) = (value(b, &c.distance, indices, &[]), b.index_literal(ty, c.step as i64));
            at.push(b.index_div(distance, step));
            Family::PLACEHOLDER.expr(at.len() - 1)
        };
        let roots = coordinates.iter().map(coordinate).collect();
        let Spot { offset, opaque } = self.stage.spot_of(layout, roots);
        let mut known: Vec<(Var, ValueId)> = Vec::with_capacity(opaque.len());
        let value = |b: &mut Builder, e: &Expr, known: &[(Var, ValueId)]| value(b, e, &at, known);
        for (variable, left, right) in &opaque {
            let (left, right) = (value(b, left, &known), value(b, right, &known));
            known.push((*variable, b.index_xor(left, right)));
        }
        let offset = self.stage.layout.columns.map_or_else(|| offset.clone(), |columns| columns.spread(&offset));
        value(b, &offset, &known)
    }

    /// What holds what a read takes from it; none if it is not for the read.
    pub fn holds(&self, source: Source, read: AlgorithmValue) -> Option<&Kept> {
        self.stage.is_for(source, read).then_some(())?;
        let at = self.stage.serves.iter().position(|s| *s == source)?;
        self.memory.get(at)
    }
}

/// The buffers of every stage, by stage, of an entry point whose copies are `staged` or not; `part` is the first
/// workspace in which some lie.
pub(super) fn storage(
    b: &mut Builder,
    (stages, roles): (&[Analysed], &[Role]),
    staged: bool,
    mut part: u16,
) -> Vec<Storage> {
    let mut of = |at: usize, b: &mut Builder| {
        let Analysed { stage, multiplied, .. } = &stages[at];
        // What an entry point does not come to, nobody hands over.
        if !stage.has_buffers() || !product::is_reached(stages, at, staged) {
            return Storage { buffers: Vec::new(), pipeline: Pipeline::new(1, None) };
        }
        let instances = stage.instances();
        let mut buffer = |(name, element): (&str, ElementType), b: &mut Builder| {
            let slot = if stage.is_in_workspace() {
                Some(0)
            } else {
                stage.layout.slot(element.bytes(), instances).as_constant()
            };
            let buffer = Buffer {
                name: name.to_owned(),
                element,
                elements: slot.and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX),
                // Tensor cores exchange chunks by addresses.
                alignment: if *multiplied { stage.layout.swizzle.alignment() } else { SLOT_ALIGNMENT as u32 },
                slots: stage.ring,
                sharing: stage.sharing,
            };
            if !stage.is_in_workspace() {
                return b.buffer(buffer);
            }
            part += 1;
            b.buffer_in(part - 1, buffer)
        };
        let buffers = components(stage).into_iter().map(|c| buffer(c, b)).collect();
        let between = ProducerConsumers::of_stage(stages, at);
        let between = between.map(|between| FullEmptyBarriers::of_stage(b, between, roles, stage));
        Storage { buffers, pipeline: Pipeline::new(stage.ring, between) }
    };
    (0..stages.len()).map(|at| of(at, b)).collect()
}

/// Name and type of each component of a stage.
pub(super) fn components(stage: &Stage) -> Vec<(&str, ElementType)> {
    let algorithm = &stage.program.algorithm;
    let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
    components.iter().map(|c| (&*c.name, algorithm.types[c.value as usize])).collect()
}

impl<'a> Nest<'a, '_> {
    /// Computes the instances that stand inside `k` loops, in an order in which each comes after what it reads. Whether
    /// one of them is shared by blocks, and this role arrives: then the branch is open in which this block is the last
    /// of them, for all that is after.
    pub(super) fn begin_stages(&mut self, point: &Point, k: usize) -> bool {
        let here: Vec<usize> = self.children.iter().filter(|child| child.1 == k).map(|child| child.0).collect();
        // What is fetched depends on no other stage. Roles hand it over like others.
        let (mut fetched, computed): (Vec<usize>, Vec<usize>) = here.into_iter().partition(|at| self.runs_ahead(*at));
        fetched.retain(|at| self.around.stages[*at].stage.role == self.around.role && !self.around.passes);
        self.begin_fetched(point, k, &fetched);
        // What blocks share comes as early as it can: the rest is for the last of them.
        let shared = computed.iter().copied().find(|at| self.around.stages[*at].stage.arrives());
        // Another role has nothing to do after it, nor has who passes the tile by.
        let Around { stages, role, passes, .. } = self.around;
        let is_own = |at: usize| !passes && (role.is_none() || stages[at].stage.role == role);
        let (first, rest): (Vec<usize>, Vec<usize>) =
            computed.iter().partition(|at| shared.is_some_and(|shared| self.needs(shared, **at, &computed)));
        for at in first.into_iter().chain(rest) {
            if self.is_behind(at) {
                self.hold_behind(point, at);
                continue;
            }
            self.end_behind_before(point, k, at);
            self.correct_before(point, k, at);
            self.around.turns.inspect(|turns| turns.take(self.b, at));
            match self.around.role {
                Some(role) => self.instance_of_role(point, at, role),
                None => self.instance(point, at),
            }
            // What blocks share hands it on before the arrival: see `Nest::reduce`.
            if !(shared == Some(at) && is_own(at)) {
                self.around.turns.inspect(|turns| turns.hand_on(self.b, at));
            }
            self.end_read(k, at);
            self.follow_extreme(point, k, at);
        }
        shared.is_some_and(is_own)
    }

    /// Whether a stage is another one of `among` or reads what that holds, itself or through others of them.
    fn needs(&self, stage: usize, other: usize, among: &[usize]) -> bool {
        let stages = self.around.stages;
        let at = |n: usize| stages.get(n).map(|s: &Analysed| &s.stage);
        let reads = |of: usize| {
            // What stands in its loops reads for it.
            let inside = (0..stages.len()).filter(move |n| {
                std::iter::successors(Some(*n), |n| Some(at(*n)?.attach.as_ref()?.stage)).any(|n| n == of)
            });
            inside.flat_map(move |n| {
                stages[n].reads.iter().filter_map(move |r| taken(&at, n, (r.source, r.value), r.in_terms))
            })
        };
        let mut open = vec![stage];
        let mut seen = open.clone();
        while let Some(next) = open.pop() {
            let new: Vec<usize> = reads(next).filter(|n| among.contains(n) && !seen.contains(n)).collect();
            seen.extend(&new);
            open.extend(new);
        }
        seen.contains(&other)
    }

    pub(super) fn instance(&mut self, point: &Point, at: usize) {
        let stage: &'a Stage = &self.around.stages[at].stage;
        let shared = stage.has_buffers();
        let memory: Vec<Kept> = match shared {
            // It is renewed after the arrival.
            true if stage.arrives() && stage.ring == 1 => {
                let slot = self.pipeline(at).slot(self.b);
                self.in_slot(at, slot)
            }
            true => {
                let slot = self.pipeline(at).slot(self.b);
                self.pipeline(at).advance(self.b, slot, None);
                self.begin_lifetime(at, slot)
            }
            false => match self.continued(at) {
                Some(variables) => vec![Kept::Registers(variables)],
                None => self.outlives(at).unwrap_or_else(|| self.registers_of(at)),
            },
        };
        let instance = Instance { at, stage, memory, around: self.around(point, None) };
        // A thread computes its own only where it comes at all.
        let alone = stage.owner == Unit::Thread;
        let opened = alone && self.open_if(point.pending.clone());
        let group = self.group_behind(point, at);
        self.compute_with(at, &instance, group.as_ref());
        self.publish(at);
        self.close(opened);
        self.values.instances.push(instance);
    }

    /// New variables for the elements of a stage in registers.
    pub(super) fn registers_of(&mut self, at: usize) -> Vec<Kept> {
        let stage = &self.around.stages[at].stage;
        let (count, fills) = (registers(stage), self.is_filled(at));
        let mut variables = |ty| {
            let zero = self.b.literal(ty, 0);
            let mut one = || if fills { self.b.variable(zero) } else { self.b.unset(ty) };
            let variables: Vec<VariableId> = (0..count).map(|_| one()).collect();
            self.b.debug_name(&stage.name, &variables);
            variables
        };
        components(stage).into_iter().map(|(_, ty)| Kept::Registers(variables(ty))).collect()
    }

    /// Whether elements that a stage in registers leaves out are 0: those of a factor, of which tensor cores read all
    /// that a tile has.
    fn is_filled(&self, at: usize) -> bool {
        let Analysed { stage, holes, fragment, zero_along, .. } = &self.around.stages[at];
        let tests =
            fragment.is_none() && !(stage.limits.is_empty() && stage.members.is_empty() && holes.kept.is_empty());
        tests && !zero_along.is_empty()
    }

    /// Runs the outputs that stand beside this one inside `k` loops: they read what stands there, too.
    pub(super) fn beside(&mut self, point: &Point, k: usize) {
        for (at, boundary) in self.besides.clone() {
            let beside = self.around.stages[at].stage.beside.as_ref().filter(|_| boundary == k);
            let Some(beside) = beside else { continue };
            let first = self.stage.domain.leaves[..beside.around].iter();
            // To another role, what units of this one are given has no value, and is no reason to leave out what it
            // makes there.
            let set: Vec<Option<ValueId>> = first.map(|leaf| point.values[*leaf]).collect();
            if set.contains(&None) && !self.is_slice() {
                continue;
            }
            let frame = Frame {
                around: self.around,
                more_blocks: false,
                instances: &self.values.instances,
                staged: &[],
                target: None,
                set: &set,
            };
            if let Err(missing) = super::stage::lower(self.b, at, &frame) {
                self.values.defect.get_or_insert(missing);
            }
            self.b.line(self.stage.statement as u32 + 1);
        }
    }

    /// The slots of a stage.
    pub(super) fn pipeline(&self, at: usize) -> &'a Pipeline {
        &self.around.storage[at].pipeline
    }

    /// What holds the components of an instance in `slot`: of a part of the block, in the part of that one.
    pub(super) fn in_slot(&mut self, at: usize, slot: ValueId) -> Vec<Kept> {
        let stage = &self.around.stages[at].stage;
        let (index, storage) = (self.index, &self.around.storage[at]);
        let instances = stage.instances();
        // Blocks, slots and units follow each other.
        let block = stage.is_in_workspace().then(|| self.block());
        let number = storage.pipeline.is_ring().then(|| self.b.index_convert(slot, index));
        let unit = stage.owner.threads().map(|size| self.unit(size));
        let types = components(stage).into_iter().map(|(_, ty)| ty).zip(&storage.buffers);
        let held = |(ty, buffer): (ElementType, &BufferId)| {
            let elements = stage.layout.slot(ty.bytes(), instances);
            let of_block = elements.scale(i128::from(stage.ring));
            let own = [(block, of_block), (number, elements), (unit, stage.layout.apart(ty.bytes()))];
            let mut base: Option<ValueId> = None;
            for (number, elements) in own {
                let Some(number) = number else { continue };
                let elements = self.size(&elements);
                let first = self.b.index_mul(number, elements);
                base = Some(base.map_or(first, |base| self.b.index_add(base, first)));
            }
            Kept::Buffer { buffer: *buffer, slot, base }
        };
        types.map(held).collect()
    }

    /// The number of the thread's unit, of those that have so many threads.
    fn unit(&mut self, size: i128) -> ValueId {
        let thread = self.b.thread_in_role();
        let thread = self.b.index_convert(thread, self.index);
        let threads = self.b.index_literal(self.index, size as i64);
        self.b.index_div(thread, threads)
    }

    /// Where an element of the stage lies in a buffer: see [`Instance::place`].
    pub(super) fn place(&mut self, point: &Point, buffer: BufferId, base: Option<ValueId>) -> Option<ValueId> {
        let (layout, bytes) = (&self.stage.layout, self.b.kernel().buffers[buffer.index()].element.bytes());
        let offset = self.stage.place_of_axes();
        let offset = layout.columns.map_or_else(|| offset.clone(), |columns| columns.spread(&offset));
        let offset = self.of_roots(&offset, &point.values)?;
        let swizzle = XorSwizzle::new(layout.swizzle, bytes);
        let offset = swizzle.of(&mut Emit { b: self.b, index: self.index }, &offset);
        Some(base.map_or(offset, |base| self.b.index_add(base, offset)))
    }

    /// The same, for an instance that is to be written.
    pub(super) fn begin_lifetime(&mut self, at: usize, slot: ValueId) -> Vec<Kept> {
        for buffer in &self.around.storage[at].buffers {
            self.b.lifetime_start(*buffer, slot);
        }
        self.in_slot(at, slot)
    }

    /// Begins the instance that the last of several blocks writes, in a buffer of its own: nobody has written to it
    /// before the arrival.
    pub(super) fn start_lifetime_after_arrival(&mut self) {
        let Some(target) = self.target.clone().filter(|target| target.stage.ring == 1) else { return };
        let buffers = target.memory.iter().filter_map(|kept| match kept {
            Kept::Buffer { buffer, .. } => Some(*buffer),
            Kept::Registers(_) => None,
        });
        let buffers: Vec<BufferId> = buffers.collect();
        if buffers.is_empty() {
            return;
        }
        let slot = self.b.index_literal(Type::I32, 0);
        buffers.into_iter().for_each(|buffer| self.b.lifetime_start(buffer, slot));
    }

    /// Lets tensor cores see what the threads of a stage wrote, after the next barrier, if they read it.
    pub(super) fn publish(&mut self, at: usize) {
        if self.around.stages[at].multiplied {
            self.b.fence_proxy_async();
        }
    }

    /// Computes an instance of the stage with a position among all.
    pub(super) fn compute(&mut self, at: usize, instance: &Instance<'a>) {
        self.compute_with(at, instance, None);
    }

    /// The same, and starts a group of another product after that of the stage.
    fn compute_with(&mut self, at: usize, instance: &Instance<'a>, behind: Option<&Group<'a>>) {
        // To the stage the loops around are dimensions.
        let outer = self.b.loops_around(instance.around.clone());
        let frame = Frame {
            around: Around { behind, ..self.around },
            more_blocks: false,
            instances: &self.values.instances,
            staged: &self.values.staged,
            target: Some(instance),
            set: &[],
        };
        let found = super::stage::lower(self.b, at, &frame);
        if let Err(missing) = found {
            self.values.defect.get_or_insert(missing);
        }
        self.b.loops_around(outer);
        self.b.line(self.stage.statement as u32 + 1);
    }

    /// What the numbers after those of the dimensions stand for, inside the loops at `point`; `other` gives one of
    /// them another value.
    pub(super) fn around(&mut self, point: &Point, other: Option<Iteration>) -> Vec<Option<ValueId>> {
        let known = self.b.kernel().signature.dims.len();
        let mut values = self.b.loops_around(Vec::new());
        self.b.loops_around(values.clone());
        values.resize(self.facts.dims() - known, None);
        let other = |leaf: AxisId| other.filter(|other| other.axis == leaf).map(|other| other.value);
        let leaves = self.stage.domain.leaves.iter().map(|leaf| other(*leaf).or(point.values[*leaf]));
        values.extend(leaves);
        values.resize(self.facts.dims() - known + self.values.symbolic.variables.len(), None);
        values
    }
}

impl Values<'_> {
    /// The least and the largest value of a variable at this point.
    pub(super) fn range(&self, v: Var) -> Option<(i128, i128)> {
        self.symbolic.range(self.facts, v)
    }

    /// The number that an expression is at the present iteration of the loops that are written out, where other
    /// variables have these numbers.
    pub(super) fn number_at_present(&self, e: &Expr, others: &dyn Fn(Var) -> Option<i128>) -> Option<i128> {
        let written_out = |v: Var| self.literals.iter().rfind(|(w, _)| *w == v).map(|(_, n)| *n);
        let number = |v: Var| others(v).or_else(|| written_out(v));
        // A variable without a number may go away where others have theirs.
        e.value(&number).or_else(|| e.substitute(&|v| number(v).map(Expr::constant)).as_constant())
    }
}
