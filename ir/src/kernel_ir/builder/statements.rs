//! Statements: loops and branches, buffers and barriers, copies and accesses.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;

use super::{Builder, Frame, Guard, OpenRole};
use crate::kernel_ir::{
    AtomicOp, AtomicUpdate, Buffer, BufferId, BulkCopy, CpAsync, Facts, If, IndexOp, Load, LoadMatrix, Loop, Matrices,
    Mbarrier, MbarrierId, Memory, MmaSync, Op, ParameterKind, Range, Receivers, RegionId, Role, StatementKind, Store,
    StoreMatrix, Type, Value, ValueId, VariableId, Wgmma, Workspace,
};

impl Builder {
    /// Starts a loop with an index from 0 below `count`, and returns the index.
    pub fn begin_loop(&mut self, count: ValueId) -> ValueId {
        self.open_loop(count, false)
    }

    /// The same, and the assembler is told not to unroll it.
    pub fn begin_rolled_loop(&mut self, count: ValueId) -> ValueId {
        self.open_loop(count, true)
    }

    fn open_loop(&mut self, count: ValueId, rolled: bool) -> ValueId {
        let Value { ty, facts, .. } = *self.kernel.value(count);
        if self.kernel.index_literal(count) == Some(1) {
            self.frames.push(Frame::Once);
            return self.index_literal(ty, 0);
        }
        self.open_region();
        let range = Range::new(0, facts.range.high.saturating_sub(1).max(0));
        let index = self.new_value(Op::LoopIndex, ty, self.region(), Facts { range, ..facts });
        self.frames.push(Frame::Loop { index, count, rolled, line: self.line, cuts: Vec::new() });
        index
    }

    /// Ends the innermost loop.
    pub fn end_loop(&mut self) {
        match self.frames.pop() {
            Some(Frame::Loop { index, count, rolled, line, cuts }) => {
                let body = self.close_region();
                self.push(line, StatementKind::Loop(Loop { index, count, body, rolled, cuts }));
            }
            Some(Frame::Once) => {}
            _ => self.unbalanced = true,
        }
    }

    /// Whether a value is the index of a loop that is open, or the sum of one and a first iteration.
    pub fn is_loop_index(&self, value: ValueId) -> bool {
        self.loop_index(value).is_some()
    }

    /// Whether the iteration that is under way of an open loop is `at` or a later one. The loop is cut there, in the
    /// order in which that is asked: see [`Loop::cuts`].
    pub fn cut_loop(&mut self, index: ValueId, at: ValueId) -> ValueId {
        if let Some((index, Some(first))) = self.loop_index(index) {
            let at = match self.kernel.value(at).op {
                Op::Index(IndexOp::Add, own, after) | Op::Index(IndexOp::Add, after, own) if own == first => after,
                _ => self.index_sub(at, first),
            };
            return self.cut_loop(index, at);
        }
        let condition = self.index_compare(Compare::Ge, index, at);
        let depth = |value: ValueId| self.kernel.region(self.kernel.value(value).region).depth;
        let is_outside = depth(at) < depth(index);
        if self.kernel.pred_literal(condition).is_none() && is_outside {
            let own = self.frames.iter_mut().find_map(|frame| match frame {
                Frame::Loop { index: own, cuts, .. } if *own == index => Some(cuts),
                _ => None,
            });
            own.into_iter().filter(|cuts| !cuts.contains(&at)).for_each(|cuts| cuts.push(at));
        }
        condition
    }

    /// Starts the side of a branch that runs where `condition` holds.
    pub fn begin_if(&mut self, condition: ValueId) {
        let frame = match self.kernel.pred_literal(condition) {
            Some(true) => Frame::Taken,
            Some(false) => Frame::Dropped,
            None => Frame::Then { condition, line: self.line },
        };
        if !matches!(frame, Frame::Taken) {
            self.open_region();
        }
        self.frames.push(frame);
    }

    /// Ends the first side of the innermost branch and starts the other.
    pub fn begin_else(&mut self) {
        let frame = match self.frames.pop() {
            Some(Frame::Then { condition, line }) => {
                let then = self.close_region();
                self.open_region();
                Frame::Else { condition, then, line }
            }
            Some(Frame::Taken) => {
                self.open_region();
                Frame::Dropped
            }
            Some(Frame::Dropped) => {
                self.close_region();
                Frame::Taken
            }
            _ => {
                self.unbalanced = true;
                return;
            }
        };
        self.frames.push(frame);
    }

    /// Ends the innermost branch.
    pub fn end_if(&mut self) {
        let (condition, line, then, otherwise) = match self.frames.pop() {
            Some(Frame::Then { condition, line }) => (condition, line, self.close_region(), None),
            Some(Frame::Else { condition, then, line }) => (condition, line, then, Some(self.close_region())),
            Some(Frame::Dropped) => {
                self.close_region();
                return;
            }
            Some(Frame::Taken) => return,
            _ => {
                self.unbalanced = true;
                return;
            }
        };
        let is_empty = |region| self.kernel.region(region).statements.is_empty();
        if is_empty(then) && otherwise.is_none_or(is_empty) {
            return;
        }
        self.push(line, StatementKind::If(If { condition, then, otherwise }));
    }

    /// A new variable with an initial value.
    pub fn variable(&mut self, initial: ValueId) -> VariableId {
        let variable = VariableId(self.kernel.variables.len() as u32);
        self.kernel.variables.push(self.ty(initial));
        self.push(self.line, StatementKind::Declare(variable, initial));
        variable
    }

    /// Says that these variables hold elements or accumulators of a stage.
    pub fn debug_name(&mut self, stage: &str, variables: &[VariableId]) {
        self.kernel.debug_names.push((stage.to_owned(), variables.to_vec()));
    }

    /// A variable that holds nothing before it is set.
    pub fn unset(&mut self, element: ElementType) -> VariableId {
        let zero = self.literal(element, 0);
        let variable = self.variable(zero);
        self.kernel.unset.push(variable);
        variable
    }

    /// Gives a variable another value.
    pub fn set(&mut self, variable: VariableId, value: ValueId) {
        self.push(self.line, StatementKind::Set(variable, value));
    }

    /// The value of a variable at this point.
    pub fn get(&mut self, variable: VariableId) -> ValueId {
        let ty = self.kernel.variables[variable.index()];
        let value = self.new_value(Op::Get(variable), ty, self.region(), Facts::NONE);
        self.push(self.line, StatementKind::Let(value));
        value
    }

    /// A buffer in a workspace: see `Kernel::parts`.
    pub fn buffer_in(&mut self, workspace: u16, buffer: Buffer) -> BufferId {
        let id = self.buffer(buffer);
        self.kernel.parts[id.index()] = Some(workspace);
        id
    }

    /// A buffer in shared memory.
    pub fn buffer(&mut self, buffer: Buffer) -> BufferId {
        let id = BufferId(self.kernel.buffers.len() as u32);
        self.kernel.buffers.push(buffer);
        self.kernel.alias_of.push(id);
        self.kernel.parts.push(None);
        id
    }

    /// Memory that blocks share, at the next position.
    pub fn workspace(&mut self, workspace: Workspace) {
        self.kernel.workspaces.push(workspace);
    }

    /// Combines an element in device memory with a value.
    pub fn atomic_update(&mut self, memory: Memory, offset: ValueId, op: AtomicOp, value: ValueId) {
        self.push(self.line, StatementKind::AtomicUpdate(AtomicUpdate { memory, offset, op, value }));
    }

    /// The first thread of the block, or of the role, arrives at a counter, as those of `blocks` blocks do, and tells
    /// the others; whether it is the last of them.
    pub fn last_block_ticket(&mut self, counters: u16, at: ValueId, blocks: ValueId) -> ValueId {
        let predicate = self.last_block_ticket_untold(counters, at, blocks);
        let facts = Facts { range: Range::ALL, uniform: true, cluster: false };
        let result = self.new_value(Op::Agreed, Type::PRED, self.region(), facts);
        self.push(self.line, StatementKind::BarRedOr { predicate, result });
        result
    }

    /// The same without telling the others: whether this is the first thread, and its block the last.
    pub fn last_block_ticket_untold(&mut self, counters: u16, at: ValueId, blocks: ValueId) -> ValueId {
        let facts = Facts::NONE;
        let last = self.new_value(Op::Arrived, Type::PRED, self.region(), facts);
        let (releases, acquires) = (true, true);
        self.push(self.line, StatementKind::LastBlockTicket { counters, at, blocks, last, releases, acquires });
        last
    }

    /// Barriers of copies, one for each slot.
    pub fn mbarrier(&mut self, slots: u32) -> MbarrierId {
        self.mbarrier_of(slots, 1)
    }

    /// Barriers whose phases end with so many arrivals, one for each slot.
    pub fn mbarrier_of(&mut self, slots: u32, arrivals: u32) -> MbarrierId {
        self.kernel.barriers.push(Mbarrier { slots, arrivals });
        MbarrierId(self.kernel.barriers.len() as u32 - 1)
    }

    /// All threads of the block wait for each other.
    pub fn bar_sync(&mut self) {
        self.push(self.line, StatementKind::BarSync);
    }

    /// The threads of each warpgroup wait for each other.
    pub fn bar_sync_warpgroup(&mut self) {
        self.push(self.line, StatementKind::BarSyncWarpgroup);
    }

    /// The lanes of each warp wait for each other.
    pub fn bar_warp_sync(&mut self) {
        self.push(self.line, StatementKind::BarWarpSync);
    }

    /// All threads of all blocks of the cluster wait for each other; in a role, its threads do.
    pub fn barrier_cluster(&mut self) {
        self.push(self.line, StatementKind::BarrierCluster);
    }

    /// Writes neighbouring elements of a buffer in every block of the cluster.
    pub fn store_dsmem_all(&mut self, buffer: BufferId, offset: ValueId, values: &[ValueId]) {
        let store = Store { memory: Memory::Buffer(buffer), offset, values: values.to_vec() };
        self.push(self.line, StatementKind::StoreDsmemAll(store));
    }

    /// Reads `lanes` neighbouring elements of a buffer of the block with this number in the cluster. One value a lane.
    pub fn load_dsmem(&mut self, rank: ValueId, buffer: BufferId, offset: ValueId, lanes: u32) -> Vec<ValueId> {
        let memory = Memory::Buffer(buffer);
        let element = self.kernel.element(memory).unwrap_or(ElementType::F32);
        let results: Vec<ValueId> = (0..lanes)
            .map(|_| self.new_value(Op::Loaded, Type::Element(element), self.region(), Facts::NONE))
            .collect();
        if let Some(first) = results.first().copied() {
            let load = Load { memory, offset, lanes, predicate: None, otherwise: Vec::new(), first };
            self.push(self.line, StatementKind::LoadDsmem { rank, load });
        }
        results
    }

    /// From here on threads write a new instance of a buffer to `slot`.
    pub fn lifetime_start(&mut self, buffer: BufferId, slot: ValueId) {
        self.push(self.line, StatementKind::LifetimeStart { buffer, slot });
    }

    /// Starts a copy by the thread.
    pub fn cp_async(&mut self, fetch: CpAsync) {
        let predicate = fetch.predicate.filter(|p| self.kernel.pred_literal(*p) != Some(true));
        self.push(self.line, StatementKind::CpAsync(CpAsync { predicate, ..fetch }));
    }

    /// Ends a group of fetches of each thread.
    pub fn cp_async_commit_group(&mut self) {
        self.push(self.line, StatementKind::CpAsyncCommitGroup);
    }

    /// Waits until all but the last `pending` groups of the thread's own fetches are done.
    pub fn cp_async_wait_group(&mut self, pending: u32) {
        self.push(self.line, StatementKind::CpAsyncWaitGroup { pending });
    }

    /// The value of the lane whose number differs in the bits of `mask`, from 1 to 31; by all threads of the block. A
    /// lane without a partner gets its own.
    ///
    /// Threads agree on it where they agree on what they give. Of an index integer nothing else is known: what each
    /// lane gives need only be in range where that lane uses it.
    pub fn shuffle(&mut self, value: ValueId, mask: u32) -> ValueId {
        let Value { ty, facts, .. } = *self.kernel.value(value);
        let facts = Facts { range: Range::ALL, ..facts };
        let result = self.new_value(Op::Shuffled, ty, self.region(), facts);
        self.push(self.line, StatementKind::Shuffle { value, mask, result });
        result
    }

    /// Starts the part of the elected thread.
    pub fn begin_elect(&mut self) {
        self.open_region();
        self.frames.push(Frame::Elect { line: self.line });
    }

    /// Ends the part of the elected thread.
    pub fn end_elect(&mut self) {
        match self.frames.pop() {
            Some(Frame::Elect { line }) => {
                let region = self.close_region();
                self.push(line, StatementKind::Elect(region));
            }
            _ => self.unbalanced = true,
        }
    }

    /// Starts roles: then each of them follows, and [`Builder::end_roles`].
    pub fn begin_roles(&mut self) {
        self.frames.push(Frame::Roles { line: self.line, done: Vec::new(), open: None });
    }

    /// Starts a role: a name, warps of the block, and registers, if they are given.
    pub fn begin_role(&mut self, name: &str, warps: std::ops::Range<u32>, registers: Option<u32>) {
        let region = RegionId(self.kernel.regions.len() as u32);
        match self.frames.last_mut() {
            Some(Frame::Roles { open: open @ None, .. }) => {
                *open = Some(OpenRole { name: name.to_owned(), warps, registers, region, thread: None });
            }
            _ => self.unbalanced = true,
        }
        self.open_region();
    }

    /// Ends a role.
    pub fn end_role(&mut self) {
        let body = self.close_region();
        match self.frames.last_mut() {
            Some(Frame::Roles { done, open, .. }) if open.is_some() => {
                let role = |OpenRole { name, warps, registers, .. }| Role {
                    name,
                    warps,
                    registers,
                    cluster_mbarrier: None,
                    body,
                };
                done.extend(open.take().map(role));
            }
            _ => self.unbalanced = true,
        }
    }

    /// Ends the roles.
    pub fn end_roles(&mut self) {
        match self.frames.pop() {
            Some(Frame::Roles { line, done, open: None }) => self.push(line, StatementKind::Roles(done)),
            _ => self.unbalanced = true,
        }
    }

    /// Each warp that comes arrives once at a barrier.
    pub fn mbarrier_arrive(&mut self, barrier: MbarrierId, slot: ValueId, to: Receivers) {
        self.push(self.line, StatementKind::MbarrierArrive { barrier, slot, to });
    }

    /// Each thread arrives once at a barrier when the fetches are done that it has not waited for.
    pub fn cp_async_mbarrier_arrive(&mut self, barrier: MbarrierId, slot: ValueId) {
        self.push(self.line, StatementKind::CpAsyncMbarrierArrive { barrier, slot });
    }

    /// Says how many bytes end the phase of a barrier; by the elected thread, once a phase.
    pub fn mbarrier_expect_tx(&mut self, barrier: MbarrierId, slot: ValueId, bytes: u32) {
        self.push(self.line, StatementKind::MbarrierExpectTx { barrier, slot, bytes });
    }

    /// Starts a copy; by the elected thread.
    pub fn bulk_copy(&mut self, transfer: BulkCopy) {
        self.push(self.line, StatementKind::BulkCopy(transfer));
    }

    /// Waits for the end of a barrier's phase.
    pub fn mbarrier_wait(&mut self, barrier: MbarrierId, slot: ValueId, parity: ValueId) {
        self.push(self.line, StatementKind::MbarrierWait { barrier, slot, parity });
    }

    /// Waits for the launches that the own one depends on, and lets those begin that depend on it.
    pub fn grid_dependency_wait(&mut self) {
        self.push(self.line, StatementKind::GridDependencyWait);
        self.push(self.line, StatementKind::GridDependencyLaunch);
    }

    /// Lets copies that are started after the next [`Builder::bar_sync`] see what this thread wrote to shared memory.
    pub fn fence_proxy_async(&mut self) {
        self.push(self.line, StatementKind::FenceProxyAsync);
    }

    /// Ends a group of copies to tensors; by the elected thread.
    pub fn bulk_commit_group(&mut self) {
        self.push(self.line, StatementKind::BulkCommitGroup);
    }

    /// Waits until all but the last `pending` groups have read shared memory; by the elected thread.
    pub fn bulk_wait_group_read(&mut self, pending: u32) {
        self.push(self.line, StatementKind::BulkWaitGroupRead { pending });
    }

    /// Each warp loads so many matrices whose rows lanes say; the values that a lane has: see [`LoadMatrix`].
    pub fn load_matrix(&mut self, buffer: BufferId, offset: ValueId, count: u32, transposed: bool) -> Vec<ValueId> {
        let element = self.kernel.element(Memory::Buffer(buffer)).unwrap_or(ElementType::F16);
        let (row, first) = (Matrices::ROW / element.bytes(), ValueId(self.kernel.values.len() as u32));
        let from = Matrices { buffer, offset, count, row, transposed };
        let value = |_| self.new_value(Op::Loaded, Type::Element(element), self.region(), Facts::NONE);
        let results = (0..from.values()).map(value).collect();
        self.push(self.line, StatementKind::LoadMatrix(LoadMatrix { from, first }));
        results
    }

    /// Each warp stores so many matrices, of which each lane has these values, to rows that lanes say: see
    /// [`StoreMatrix`].
    pub fn store_matrix(
        &mut self,
        buffer: BufferId,
        offset: ValueId,
        (count, transposed): (u32, bool),
        values: Vec<ValueId>,
    ) {
        let element = self.kernel.element(Memory::Buffer(buffer)).unwrap_or(ElementType::F16);
        let to = Matrices { buffer, offset, count, row: Matrices::ROW / element.bytes(), transposed };
        self.push(self.line, StatementKind::StoreMatrix(StoreMatrix { to, values }));
    }

    /// Each warp adds a product of what its threads hold.
    pub fn mma_sync(&mut self, product: MmaSync) {
        self.push(self.line, StatementKind::MmaSync(product));
    }

    /// Each warpgroup starts these products as one group, after what its threads have done to the variables.
    pub fn wgmma_group(&mut self, products: Vec<Wgmma>) {
        self.push(self.line, StatementKind::WgmmaFence);
        products.into_iter().for_each(|product| self.push(self.line, StatementKind::Wgmma(product)));
        self.push(self.line, StatementKind::WgmmaCommitGroup);
    }

    /// Waits until all but the last `pending` groups of products are done.
    pub fn wgmma_wait_group(&mut self, pending: u32) {
        self.push(self.line, StatementKind::WgmmaWaitGroup { pending });
    }

    /// Reads `lanes` neighbouring elements; `offset` counts elements from the memory's base. One value a lane.
    ///
    /// A load that was made before, of a tensor that the kernel does not write, is not repeated.
    pub fn load(&mut self, memory: Memory, offset: ValueId, lanes: u32, guard: Option<Guard<'_>>) -> Vec<ValueId> {
        let guard = match guard {
            Some(g) if self.kernel.pred_literal(g.predicate) == Some(false) => return g.otherwise.to_vec(),
            Some(g) if self.kernel.pred_literal(g.predicate) == Some(true) => None,
            other => other,
        };
        let (predicate, otherwise) = match guard {
            Some(guard) => (Some(guard.predicate), guard.otherwise),
            None => (None, &[][..]),
        };
        let element = self.kernel.element(memory).unwrap_or(ElementType::F32);
        let constant = match memory {
            Memory::Parameter(p) => self.kernel.signature.parameters.get(usize::from(p)),
            Memory::Buffer(_) | Memory::Workspace(_) => None,
        };
        let constant = constant.is_some_and(|p| matches!(p.kind, ParameterKind::Tensor { written: false }));
        if constant {
            for &region in &self.open {
                let known = self.loads.get(&(region, memory, offset, lanes, predicate));
                if let Some((first, _)) = known.filter(|(_, values)| values == otherwise) {
                    return (first.0..first.0 + lanes).map(ValueId).collect();
                }
            }
        }
        let first = ValueId(self.kernel.values.len() as u32);
        let results = (0..lanes)
            .map(|_| self.new_value(Op::Loaded, Type::Element(element), self.region(), Facts::NONE))
            .collect();
        let otherwise = otherwise.to_vec();
        if constant {
            let key = (self.region(), memory, offset, lanes, predicate);
            self.loads.insert(key, (first, otherwise.clone()));
        }
        self.push(self.line, StatementKind::Load(Load { memory, offset, lanes, predicate, otherwise, first }));
        results
    }

    /// Writes neighbouring elements; `offset` counts elements from the memory's base.
    pub fn store(&mut self, memory: Memory, offset: ValueId, values: &[ValueId]) {
        self.push(self.line, StatementKind::Store(Store { memory, offset, values: values.to_vec() }));
    }
}
