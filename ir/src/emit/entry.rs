//! One entry point: registers, regions, control flow, the line table.
//!
//! This file is longer than 500 lines: one arm a statement and an operation.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::info::Argument;
use tilewright_kernel::target::WARPGROUP;
use tilewright_kernel::tensor_map::ENCODED_BYTES;
use tilewright_ptx::{
    Address, Block, BuildError, Directive, Function, FunctionBuilder, Guard, Immediate, Inst, LabelId, Operand, RegId,
    Requirement, ScalarType, SpecialReg, Symbol,
};

use super::EmitError;
use super::roles::InRole;
use super::shuffle::Warp;
use super::staging::Place;
use crate::kernel_ir::{
    If, Kernel, Loop, Memory, Op, RegionId, Statement, StatementKind, Type, UnaryOp, Value, ValueId, VariableId,
};

/// A branch with at most so many bindings and so many effects is executed under a predicate instead of jumped over.
const PREDICATED_LETS: usize = 8;
const PREDICATED_EFFECTS: usize = 4;

/// An entry point under construction.
pub(super) struct Entry<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) f: FunctionBuilder,
    pub(super) block: Block,
    /// Register of each value that has one; literals are operands of their own.
    registers: Vec<Option<RegId>>,
    pub(super) variables: Vec<Option<RegId>>,
    /// The `.param` of each argument.
    pub(super) symbols: Vec<Symbol>,
    /// Addresses to compute where an offset is bound: offset, memory, register once computed; sorted.
    pub(super) addresses: Vec<(ValueId, Memory, Option<RegId>)>,
    /// Base address of each tensor parameter that is accessed.
    pub(super) bases: Vec<Option<RegId>>,
    /// Base address of each workspace that is accessed.
    pub(super) workspaces: Vec<Option<RegId>>,
    /// Where each buffer lies in shared memory, and where all barriers do.
    pub(super) buffers: Vec<Option<Place>>,
    pub(super) barriers: Option<Place>,
    /// What a shuffle needs to know of the warp, if there is one.
    pub(super) warp: Option<Warp>,
    /// The words of the matrices that products read from registers, each with the variables that hold it: of a group,
    /// or of products that follow each other.
    pub(super) factors: Vec<(Vec<VariableId>, Vec<RegId>)>,
    /// The descriptors of the products since the last fence, after those that were computed before a loop.
    pub(super) descriptors: Vec<super::products::Known>,
    /// How many of them were computed before a loop.
    pub(super) kept_descriptors: usize,
    /// The variables that products add to, in order.
    pub(super) sums: Vec<VariableId>,
    /// Where each of the first lanes of a warp arrives in a block of its own: in which one a lane does, and whether.
    pub(super) arrives: Option<(RegId, RegId)>,
    /// The address of the shared memory that the launch provides, if it is kept.
    pub(super) shared_start: Option<(Symbol, RegId)>,
    /// The first instruction that the table does not take.
    error: Option<BuildError>,
    /// What effects are subject to, in a branch that is predicated.
    pub(super) guard: Option<RegId>,
    /// The role that runs the current region.
    pub(super) role: Option<InRole>,
    /// Whether all threads of the block run the current statement together.
    pub(super) converged: bool,
    /// Of loops around that are cut: their index, where they are, and whether this part comes after it.
    cuts: Vec<(ValueId, ValueId, bool)>,
    file: u32,
    line: u32,
}

/// Emits an entry point of a verified kernel; `dynamic` is the shared memory that the launch provides, if it does.
pub(super) fn emit_entry(
    kernel: &Kernel,
    file: u32,
    dynamic: Option<Symbol>,
) -> Result<(Function, Requirement), EmitError> {
    let mut f = FunctionBuilder::entry(kernel.signature.name.as_str());
    f.directive(Directive::Reqntid(vec![kernel.signature.threads, 1, 1]));
    // Left to itself, the assembler spills to fit as many small blocks on a multiprocessor as it can; a spill costs
    // more than a block.
    f.directive(Directive::Minnctapersm(1));
    if kernel.signature.cluster > 1 {
        f.directive(Directive::Reqnctapercluster(vec![kernel.signature.cluster, 1, 1]));
        f.directive(Directive::Explicitcluster);
    }
    let symbols =
        (0..).zip(&kernel.signature.arguments).map(|(n, argument)| add_param(&mut f, kernel, n, *argument)).collect();
    let (buffers, barriers) = super::staging::declare(&mut f, kernel, dynamic);
    let mut entry = Entry {
        kernel,
        f,
        block: Block::new(),
        registers: vec![None; kernel.values.len()],
        variables: vec![None; kernel.variables.len()],
        symbols,
        addresses: Vec::new(),
        bases: vec![None; kernel.signature.parameters.len()],
        workspaces: vec![None; kernel.workspaces.len()],
        buffers,
        barriers,
        warp: None,
        factors: Vec::new(),
        descriptors: Vec::new(),
        kept_descriptors: 0,
        sums: Vec::new(),
        arrives: None,
        shared_start: None,
        error: None,
        guard: None,
        role: None,
        converged: true,
        cuts: Vec::new(),
        file,
        line: 0,
    };
    entry.prepare_products(dynamic);
    entry.prepare_arrivals();
    entry.plan_addresses();
    entry.load_bases();
    entry.prepare_barriers();
    entry.prepare_shuffles();
    entry.region(Kernel::BODY);
    entry.emit("ret", []);
    if let Some(error) = entry.error {
        return Err(EmitError::Build(error));
    }
    entry.f.finish_chosen(entry.block).map_err(EmitError::Build)
}

/// Declares the `.param` of an argument; its name says what it is, as far as PTX's identifiers allow.
fn add_param(f: &mut FunctionBuilder, kernel: &Kernel, number: usize, argument: Argument) -> Symbol {
    let signature = &kernel.signature;
    let (name, ty) = match argument {
        Argument::Address(p) => (signature.parameters.get(usize::from(p)).map(|p| &p.name), ScalarType::U64),
        Argument::Dim(d) => (signature.dims.get(usize::from(d)).map(|d| &d.name), ScalarType::S64),
        Argument::Workspace(w) => (kernel.workspaces.get(usize::from(w)).map(|w| &w.name), ScalarType::U64),
        Argument::Map(m) => (signature.maps.get(usize::from(m)).map(|m| &m.name), ScalarType::B8),
        Argument::Scalar(p) => {
            let parameter = signature.parameters.get(usize::from(p));
            (parameter.map(|p| &p.name), parameter.map_or(ScalarType::B32, |p| memory_type(p.element)))
        }
    };
    let name: String = name.map_or("", String::as_str).chars().filter(char::is_ascii_alphanumeric).collect();
    let name = format!("arg{number}_{name}");
    match argument {
        // 64 bytes: what `cuTensorMapEncodeTiled` and the accelerator demand.
        Argument::Map(_) => f.param_bytes(name, ENCODED_BYTES as u64, 64),
        _ => f.param(name, ty),
    }
}

/// The type with which a single element is loaded and stored.
pub(super) const fn memory_type(element: ElementType) -> ScalarType {
    match element {
        ElementType::F64 => ScalarType::F64,
        ElementType::F32 | ElementType::Tf32 => ScalarType::F32,
        ElementType::F16 | ElementType::Bf16 => ScalarType::B16,
        ElementType::I64 | ElementType::U64 => ScalarType::B64,
        ElementType::I32 | ElementType::U32 => ScalarType::B32,
        ElementType::I16 => ScalarType::S16,
        ElementType::U16 => ScalarType::U16,
        ElementType::I8 => ScalarType::S8,
        ElementType::U8 | ElementType::E4m3 | ElementType::E5m2 | ElementType::Bool => ScalarType::U8,
    }
}

/// The type of a value's register.
pub(super) const fn register_type(ty: Type) -> ScalarType {
    match ty {
        Type::I32 => ScalarType::B32,
        Type::I64 => ScalarType::B64,
        Type::Element(ElementType::Bool) => ScalarType::Pred,
        Type::Element(element) => match memory_type(element) {
            ScalarType::S16 | ScalarType::U16 | ScalarType::S8 | ScalarType::U8 => ScalarType::B32,
            other => other,
        },
    }
}

impl Entry<'_> {
    pub(super) fn emit(&mut self, mnemonic: &str, operands: impl IntoIterator<Item = Operand>) {
        self.add(mnemonic, operands.into_iter().collect(), None);
    }

    /// An instruction with an effect: subject to the guard of a predicated branch.
    pub(super) fn effect(&mut self, mnemonic: &str, operands: impl IntoIterator<Item = Operand>) {
        let guard = self.guard.map(|reg| Guard { reg, negated: false });
        self.add(mnemonic, operands.into_iter().collect(), guard);
    }

    /// Adds an instruction.
    pub(super) fn add(&mut self, mnemonic: &str, operands: Vec<Operand>, guard: Option<Guard>) {
        match self.f.inst(mnemonic, operands) {
            Ok(inst) => self.block.push(Inst { guard, ..inst }),
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    /// An instruction whose first operand is a fresh register of this type: the result.
    pub(super) fn result<const N: usize>(&mut self, mnemonic: &str, ty: ScalarType, sources: [Operand; N]) -> RegId {
        let register = self.f.reg(ty);
        let mut operands = Vec::with_capacity(N + 1);
        operands.push(register.into());
        for source in sources {
            operands.push(source);
        }
        self.add(mnemonic, operands, None);
        register
    }

    pub(super) fn ty(&self, value: ValueId) -> Type {
        self.kernel.value(value).ty
    }

    /// A value as a source operand: a constant where one can stand, otherwise its register.
    pub(super) fn operand(&mut self, value: ValueId) -> Operand {
        match *self.kernel.value(value) {
            Value { op: Op::Literal(bits), ty, .. } => self.constant(ty, bits),
            _ => self.register(value).into(),
        }
    }

    /// A literal as a source operand.
    fn constant(&mut self, ty: Type, bits: u64) -> Operand {
        use ElementType::{F32, F64, I8, I16, I32, Tf32};
        let integer = match ty {
            Type::Element(F64) => return Immediate::F64(bits).into(),
            Type::Element(F32 | Tf32) => return Immediate::F32(bits as u32).into(),
            Type::Element(I32) => i64::from(bits as i32),
            Type::Element(I16) => i64::from(bits as i16),
            Type::Element(I8) => i64::from(bits as i8),
            _ => bits as i64,
        };
        match register_type(ty) {
            // Halves and predicates have no constants that every instruction takes.
            ScalarType::B16 => self.result("mov.b16", ScalarType::B16, [integer.into()]).into(),
            ScalarType::Pred => self.result("mov.pred", ScalarType::Pred, [integer.into()]).into(),
            _ => integer.into(),
        }
    }

    /// A value in a register.
    pub(super) fn register(&mut self, value: ValueId) -> RegId {
        if let Some(register) = self.registers[value.index()] {
            return register;
        }
        // The verifier has seen that every other value is bound before it is used.
        let Value { op, ty, .. } = *self.kernel.value(value);
        let Op::Literal(bits) = op else { return self.f.reg(register_type(ty)) };
        match self.constant(ty, bits) {
            Operand::Reg(register) => register,
            constant => self.moved(register_type(ty), constant),
        }
    }

    /// A constant or register, copied to a fresh register.
    pub(super) fn moved(&mut self, ty: ScalarType, source: Operand) -> RegId {
        self.result(&format!("mov.{}", ty.text()), ty, [source])
    }

    /// Says which register a value is in, and computes the addresses that start from it.
    pub(super) fn bind(&mut self, value: ValueId, register: RegId) {
        self.registers[value.index()] = Some(register);
        self.addresses_from(value);
    }

    pub(super) fn region(&mut self, region: RegionId) {
        let kernel = self.kernel;
        let known = self.known_descriptors();
        let statements = &kernel.region(region).statements;
        for (at, statement) in statements.iter().enumerate() {
            // What is packed is known from the fence of a group to its end, and among products that follow each other.
            match statement.kind {
                StatementKind::WgmmaFence => {
                    self.factors.clear();
                    self.pack_factors(&statements[at + 1..]);
                }
                StatementKind::Wgmma(_) | StatementKind::MmaSync(_) => {}
                // Barriers that come before what a group reads stand behind its fence, and change no variable.
                StatementKind::BarSync
                | StatementKind::BarSyncWarpgroup
                | StatementKind::BarWarpSync
                | StatementKind::FenceProxyAsync => {}
                _ => self.factors.clear(),
            }
            self.statement(statement);
            self.converged = self.role.is_none() && self.is_together_behind(statement, self.converged);
        }
        self.forget_descriptors(known);
    }

    fn statement(&mut self, statement: &Statement) {
        if statement.line != self.line {
            self.line = statement.line;
            if self.line != 0 {
                self.block.loc(self.file, self.line, 0);
            }
        }
        match &statement.kind {
            StatementKind::Let(value) => {
                let register = self.value(*value);
                self.bind(*value, register);
            }
            // The first product replaces what is in it. Of others, a value at first is what tells the assembler where
            // their lives begin.
            StatementKind::Declare(variable, value) if self.is_unset_sum(*variable) => {
                self.variables[variable.index()] = Some(self.f.reg(register_type(self.ty(*value))));
            }
            StatementKind::Declare(variable, value) => {
                let source = self.operand(*value);
                // Not under the guard: a variable of a predicated branch is used nowhere else.
                self.variables[variable.index()] = Some(self.moved(register_type(self.ty(*value)), source));
            }
            StatementKind::Set(variable, value) => {
                let source = self.operand(*value);
                if let Some(register) = self.variables[variable.index()] {
                    let mnemonic = format!("mov.{}", register_type(self.ty(*value)).text());
                    self.effect(&mnemonic, [register.into(), source]);
                }
            }
            StatementKind::Load(load) => self.load(load),
            StatementKind::LoadMatrix(load) => self.load_matrix(load),
            StatementKind::StoreMatrix(store) => self.store_matrix(store),
            StatementKind::Store(store) => self.store(store),
            StatementKind::StoreDsmemAll(store) => self.spread(store),
            StatementKind::LoadDsmem { rank, load } => self.load_peer(*rank, load),
            StatementKind::Loop(l) => self.repeat(l),
            StatementKind::If(branch) => self.branch(branch),
            StatementKind::BarSync => self.sync(),
            StatementKind::BarSyncWarpgroup => self.sync_warpgroup(),
            StatementKind::BarWarpSync => self.emit("bar.warp.sync", [u32::MAX.into()]),
            StatementKind::BarrierCluster => self.sync_cluster(),
            StatementKind::LifetimeStart { .. } => {}
            StatementKind::CpAsync(fetch) => self.fetch(fetch),
            StatementKind::GridDependencyWait => self.emit("griddepcontrol.wait", []),
            StatementKind::GridDependencyLaunch => self.emit("griddepcontrol.launch_dependents", []),
            StatementKind::CpAsyncCommitGroup => self.emit("cp.async.commit_group", []),
            StatementKind::CpAsyncWaitGroup { pending } => self.emit("cp.async.wait_group", [(*pending).into()]),
            StatementKind::Shuffle { value, mask, result } => self.shuffle(*value, *mask, *result),
            StatementKind::AtomicUpdate(update) => self.update(update),
            StatementKind::LastBlockTicket { counters, at, blocks, last, releases, acquires } => {
                self.arrive((*counters, *at), *blocks, *last, (*releases, *acquires));
            }
            StatementKind::BarRedOr { predicate, result } => self.agree(*predicate, *result),
            StatementKind::Elect(part) => self.elect(*part),
            StatementKind::Roles(roles) => self.roles(roles),
            StatementKind::MbarrierArrive { barrier, slot, to } => self.release(*barrier, *slot, *to),
            StatementKind::CpAsyncMbarrierArrive { barrier, slot } => {
                let at = self.barrier(*barrier, *slot);
                // Each thread counts among the arrivals, and not as one more.
                self.effect("cp.async.mbarrier.arrive.noinc.shared.b64", [at.into()]);
            }
            StatementKind::MbarrierExpectTx { barrier, slot, bytes } => self.expect(*barrier, *slot, *bytes),
            StatementKind::BulkCopy(transfer) => self.transfer(transfer),
            StatementKind::MbarrierWait { barrier, slot, parity } => self.await_phase(*barrier, *slot, *parity),
            StatementKind::FenceProxyAsync => self.emit("fence.proxy.async.shared::cta", []),
            StatementKind::BulkCommitGroup => self.effect("cp.async.bulk.commit_group", []),
            StatementKind::BulkWaitGroupRead { pending } => {
                self.effect("cp.async.bulk.wait_group.read", [(*pending).into()]);
            }
            StatementKind::Wgmma(product) => self.product(product),
            StatementKind::WgmmaFence => {
                self.descriptors.truncate(self.kept_descriptors);
                self.emit("wgmma.fence.sync.aligned", []);
            }
            StatementKind::MmaSync(product) => self.product_of_warp(product),
            StatementKind::WgmmaCommitGroup => self.emit("wgmma.commit_group.sync.aligned", []),
            StatementKind::WgmmaWaitGroup { pending } => {
                self.emit("wgmma.wait_group.sync.aligned", [(*pending).into()]);
            }
        }
    }

    /// Warpgroup g meets at the barrier 1 + g, of the sixteen that a block has; 0 is the one of the block. A block has
    /// at most eight warpgroups.
    fn sync_warpgroup(&mut self) {
        let thread = self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]);
        let number = self.result("shr.u32", ScalarType::U32, [thread.into(), WARPGROUP.trailing_zeros().into()]);
        let barrier = self.result("add.u32", ScalarType::U32, [number.into(), 1.into()]);
        self.emit("bar.sync", [barrier.into(), WARPGROUP.into()]);
    }

    /// A loop: the test is at the bottom, after one in front for the case of no iteration. One that is cut is several
    /// loops with one index, each up to its cut or to the end.
    fn repeat(&mut self, l: &Loop) {
        let Value { ty, facts, .. } = *self.kernel.value(l.count);
        let (register, signed) = (register_type(ty), if ty == Type::I32 { "s32" } else { "s64" });
        let uniform = facts.uniform && l.cuts.iter().all(|cut| self.kernel.value(*cut).facts.uniform);
        // Every thread takes the same way where all are together and nothing in the body parts them.
        let together = self.converged && uniform && self.keeps_together(l.body);
        let bra = if together { "bra.uni" } else { "bra" };
        let count = self.operand(l.count);
        let index = self.moved(register, 0.into());
        let (known, cuts) = (self.known_descriptors(), self.cuts.len());
        for part in 0..=l.cuts.len() {
            let (body, end) = (self.f.label("loop"), self.f.label("end"));
            let last = match l.cuts.get(part) {
                Some(cut) => {
                    let cut = self.operand(*cut);
                    self.result(&format!("min.{signed}"), register, [cut, count.clone()]).into()
                }
                None => count.clone(),
            };
            if part > 0 {
                let over = self.result(&format!("setp.ge.{signed}"), ScalarType::Pred, [index.into(), last.clone()]);
                self.jump(over, false, bra, end);
            } else if !l.cuts.is_empty() || facts.range.low < 1 {
                let empty = self.result(&format!("setp.le.{signed}"), ScalarType::Pred, [last.clone(), 0.into()]);
                self.jump(empty, false, bra, end);
            }
            self.descriptors_before(l);
            self.block.label(body);
            if l.rolled {
                self.block.pragma("nounroll");
            }
            // Of later cuts nothing is known: a part may be empty.
            self.cuts.extend(l.cuts.iter().take(part + 1).enumerate().map(|(n, cut)| (l.index, *cut, n < part)));
            let outer = std::mem::replace(&mut self.converged, together);
            self.bind(l.index, index);
            self.region(l.body);
            self.converged = outer;
            self.cuts.truncate(cuts);
            self.forget_descriptors(known);
            self.emit(&format!("add.{signed}"), [index.into(), index.into(), 1.into()]);
            // At most one iteration comes before the second one.
            let is_first = part == 0 && l.cuts.first().is_some_and(|cut| self.kernel.index_literal(*cut) == Some(1));
            if !is_first {
                let more = self.result(&format!("setp.lt.{signed}"), ScalarType::Pred, [index.into(), last]);
                self.jump(more, false, bra, body);
            }
            self.block.label(end);
        }
    }

    /// Whether a condition holds in this part of the loops around, if it asks for that: see
    /// [`Builder::cut_loop`](crate::kernel_ir::Builder::cut_loop).
    pub(super) fn of_part(&self, condition: ValueId) -> Option<bool> {
        match self.kernel.value(condition).op {
            Op::CompareIndex(Compare::Le, at, index) => {
                self.cuts.iter().find(|cut| (cut.0, cut.1) == (index, at)).map(|cut| cut.2)
            }
            Op::Unary(UnaryOp::Not, a) => self.of_part(a).map(|holds| !holds),
            Op::Binary(Binary::Or, a, b) => match (self.of_part(a), self.of_part(b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn branch(&mut self, branch: &If) {
        if let Some(holds) = self.of_part(branch.condition) {
            let taken = if holds { Some(branch.then) } else { branch.otherwise };
            return taken.into_iter().for_each(|region| self.region(region));
        }
        let uniform = self.kernel.value(branch.condition).facts.uniform;
        let condition = self.register(branch.condition);
        if branch.otherwise.is_none() && self.is_predicable(branch.then) {
            self.guard = Some(condition);
            self.region(branch.then);
            self.guard = None;
            return;
        }
        let together = self.converged && uniform;
        let outer = std::mem::replace(&mut self.converged, together);
        let bra = if together { "bra.uni" } else { "bra" };
        let end = self.f.label("end");
        match branch.otherwise {
            None => {
                self.jump(condition, true, bra, end);
                self.region(branch.then);
            }
            Some(otherwise) => {
                let no = self.f.label("else");
                self.jump(condition, true, bra, no);
                self.region(branch.then);
                self.emit("bra.uni", [end.into()]);
                self.block.label(no);
                self.region(otherwise);
            }
        }
        self.block.label(end);
        self.converged = outer;
    }

    pub(super) fn jump(&mut self, predicate: RegId, negated: bool, bra: &str, target: LabelId) {
        self.add(bra, vec![target.into()], Some(Guard { reg: predicate, negated }));
    }

    /// Whether a region is short and has nothing but bindings, stores, assignments and arrivals of warps.
    fn is_predicable(&self, region: RegionId) -> bool {
        let (mut lets, mut effects) = (0, 0);
        if self.guard.is_some() {
            return false;
        }
        self.kernel.region(region).statements.iter().all(|statement| {
            match &statement.kind {
                StatementKind::Let(_) => lets += 1,
                StatementKind::Set(..)
                | StatementKind::Store(_)
                | StatementKind::CpAsync(_)
                | StatementKind::MbarrierArrive { .. } => effects += 1,
                _ => return false,
            }
            lets <= PREDICATED_LETS && effects <= PREDICATED_EFFECTS
        })
    }

    /// Whether threads that enter a region together are together at its end.
    fn keeps_together(&self, region: RegionId) -> bool {
        let statements = &self.kernel.region(region).statements;
        statements.iter().fold(true, |together, statement| self.is_together_behind(statement, together))
    }

    /// Whether threads are together after a statement to which they come together or not. Those that have gone apart
    /// need not meet where their ways do: a thread may be iterations ahead of another one in a loop after that, until
    /// both wait for each other (PTX manual, *Independent Thread Scheduling*; `bra`: what `.uni` promises of all
    /// threads of a warp that execute it).
    fn is_together_behind(&self, statement: &Statement, together: bool) -> bool {
        let uniform = |value: ValueId| self.kernel.value(value).facts.uniform;
        match &statement.kind {
            StatementKind::BarSync
            | StatementKind::BarSyncWarpgroup
            | StatementKind::BarWarpSync
            | StatementKind::BarrierCluster
            | StatementKind::BarRedOr { .. } => true,
            StatementKind::Loop(l) => together && uniform(l.count) && self.keeps_together(l.body),
            StatementKind::If(branch) => {
                let jumps = branch.otherwise.is_some() || !self.is_predicable(branch.then);
                let keeps = || {
                    uniform(branch.condition)
                        && self.keeps_together(branch.then)
                        && branch.otherwise.is_none_or(|otherwise| self.keeps_together(otherwise))
                };
                together && (!jumps || keeps())
            }
            _ => together,
        }
    }

    /// Computes a pure value; the register may be that of an operand.
    fn value(&mut self, id: ValueId) -> RegId {
        let Value { op, ty, .. } = *self.kernel.value(id);
        match op {
            // Bound by their own statements.
            Op::Literal(_) | Op::LoopIndex | Op::Loaded | Op::Shuffled | Op::Arrived | Op::Agreed => self.register(id),
            Op::BlockIndex => self.result("mov.u32", ScalarType::B32, [SpecialReg::CtaidX.into()]),
            Op::BlockCount => self.result("mov.u32", ScalarType::B32, [SpecialReg::NctaidX.into()]),
            Op::ClusterRank => self.result("mov.u32", ScalarType::B32, [SpecialReg::ClusterCtarank.into()]),
            Op::ThreadIndex => self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]),
            Op::Dim(dim) => {
                let wide = self.param(Argument::Dim(dim), "ld.param.s64", ScalarType::B64);
                if ty == Type::I32 { self.result("cvt.u32.u64", ScalarType::B32, [wide.into()]) } else { wide }
            }
            Op::Scalar(parameter) => {
                let memory = ty.element().map_or(ScalarType::B32, memory_type);
                let mnemonic = format!("ld.param.{}", memory.text());
                if ty == Type::PRED {
                    let byte = self.param(Argument::Scalar(parameter), &mnemonic, ScalarType::B32);
                    return self.result("setp.ne.u32", ScalarType::Pred, [byte.into(), 0.into()]);
                }
                self.param(Argument::Scalar(parameter), &mnemonic, register_type(ty))
            }
            Op::Get(variable) => {
                let ty = register_type(ty);
                match self.variables[variable.index()] {
                    Some(register) => self.moved(ty, register.into()),
                    None => self.f.reg(ty),
                }
            }
            Op::Index(op, a, b) => self.index(op, ty, a, b),
            Op::CompareIndex(op, a, b) => self.compare_index(op, a, b),
            Op::InRange(a, b) => self.in_range(a, b),
            Op::ConvertIndex(a) => self.convert_index(a, ty),
            Op::OfWarp(a) => {
                let own = self.operand(a);
                self.of_warp(own)
            }
            Op::Select(condition, a, b) => self.select(ty, condition, a, b),
            Op::Unary(op, a) => self.unary(op, ty, a),
            Op::Binary(op, a, b) => self.binary(op, ty, a, b),
            Op::MulHigh(a, b) => self.mul_high(ty, a, b),
            Op::Shift(op, a, b) => self.shift(op, ty, a, b),
            Op::Compare(op, a, b) => self.compare(op, a, b),
            Op::Fma(a, b, c) => self.fma(ty, a, b, c),
            Op::Cast(a) | Op::FromIndex(a) => self.cast(a, ty),
            Op::Bits(a) => self.bits(a, ty),
            Op::ToIndex(a) => self.index_of(a, ty),
        }
    }

    /// Reads an argument.
    pub(super) fn param(&mut self, argument: Argument, mnemonic: &str, ty: ScalarType) -> RegId {
        // The verifier has seen that the argument is passed.
        let position = self.kernel.signature.arguments.iter().position(|a| *a == argument).unwrap_or(0);
        match self.symbols.get(position) {
            Some(symbol) => self.result(mnemonic, ty, [Address::symbol(*symbol).into()]),
            None => self.f.reg(ty),
        }
    }
}
