//! Lowering of a parsed module: memory layout, then every instruction by family. An instruction without a meaning here
//! is refused with its line and the manual's section; the matches on families have no wildcard, so a new table entry
//! must be decided on.

mod arith;
mod bulk;
mod call;
mod compare;
mod control;
mod convert;
mod copy;
mod logic;
mod matrix;
mod memory;

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ptx::isa::Op as Family;
use tilewright_ptx::{
    Directive, Flag, FuncId, Function, FunctionKind, Inst as Source, Item as ModuleItem, LabelId, Module, Operand,
    RegId, Rounding, ScalarType, SpecialReg, StateSpace, Statement, Symbol, VarId,
};

use super::layout::{Layout, MOST_LOCAL, MOST_PARAMS, MOST_SHARED, is_dynamic, unsupported};
use super::module::{Global, Reachable, Variables, function_address, is_launch_sized};
use super::op::{self, Inst, Op, PredRef, Slot};
use super::slots::{Slots, immediate};
use super::written::{Item, Own, completes, joins, passes_on, unproved};
use super::{Kernel, Named, Origin, Tracked};
use crate::counters::Class;
use crate::error::Error;
use crate::memory::region::GRID_WORKSPACE;
use crate::num::format::Round;

/// Most decoded instructions of a kernel: the race detector packs their numbers.
const MOST_CODE: usize = 1 << crate::shadow::cell::PC_BITS;
/// Bytes of shared memory that the system keeps on sm_80 and later (CUDA programming guide, compute capabilities).
const RESERVED_SHARED: u32 = 1024;
/// Where the part of it for libraries begins: the manual names the offset and not its value.
const RESERVED_LIBRARY: u32 = 256;

/// A decoded module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoded {
    pub kernels: Vec<Kernel>,
    /// Kernels that cannot be decoded, with the reason.
    pub refused: Vec<(String, Error)>,
    /// Initial bytes of constant memory.
    pub constants: Vec<u8>,
    pub constant_variables: Vec<Named>,
    pub globals: Vec<Global>,
}

/// What is wrong with one instruction; the line is added by the caller.
pub(super) struct Refusal(String);

pub(super) type Lowered<T> = Result<T, Refusal>;

pub(super) fn refuse<T>(why: impl Into<String>) -> Lowered<T> {
    Err(Refusal(why.into()))
}

/// Decodes all kernels of a module. One that cannot be decoded does not stop the others.
pub(crate) fn decode(module: &Module) -> Result<Decoded, Error> {
    if module.address_size != 64 {
        return Err(unsupported(
            0,
            format!(".address_size {}", module.address_size),
            "",
            "only 64-bit addresses are supported",
        ));
    }
    let variables = Variables::new(module)?;
    let kept = super::guess::kept(module);
    let mut decoded = Decoded { constants: variables.constants.clone(), ..Decoded::default() };
    for function in &module.functions {
        if function.kind != FunctionKind::Entry || function.body.is_empty() {
            continue;
        }
        match Lowering::new(module, function, &variables, &kept).and_then(Lowering::run) {
            Ok(kernel) => decoded.kernels.push(kernel),
            Err(error) => decoded.refused.push((function.name.clone(), error)),
        }
    }
    decoded.constant_variables = variables.constant_names;
    decoded.globals = variables.globals;
    match decoded.refused.first() {
        Some((_, error)) if decoded.kernels.is_empty() => Err(error.clone()),
        _ => Ok(decoded),
    }
}

/// One kernel while it is lowered, with the device functions that it reaches: the names below are those of one function
/// at a time.
pub(super) struct Lowering<'a> {
    module: &'a Module,
    function: &'a Function,
    pub(super) kernel: Kernel,
    pub(super) slots: Slots<'a>,
    /// Offsets of variables in their state spaces.
    places: BTreeMap<Symbol, u64>,
    /// What the kernel reaches.
    reachable: Reachable,
    /// Whether threads have memory of their own that a generic address may be in.
    local_memory: bool,
    /// Number in the kernel's list of every device function.
    numbers: BTreeMap<FuncId, u32>,
    /// The frame base of a device function; none in the kernel.
    frame: Option<u32>,
    shared: Layout,
    /// Places of the shared variables of bodies, by function and number.
    shared_places: BTreeMap<(String, usize), u64>,
    local: Layout,
    labels: BTreeMap<LabelId, u32>,
    tables: BTreeMap<LabelId, Vec<LabelId>>,
    /// Branches whose targets are not known yet.
    fixes: Vec<(usize, LabelId)>,
    table_fixes: Vec<(usize, LabelId)>,
    guard: Option<PredRef>,
    tracked: BTreeMap<RegId, u32>,
    /// Whether the present instruction is a load that guesses what a compare-and-swap will find.
    pub(super) guess: bool,
    /// See [`super::guess::kept`].
    kept: &'a BTreeSet<(usize, RegId)>,
    origin: Origin,
    mnemonics: BTreeMap<String, u32>,
    sources: BTreeMap<(String, u32, u32), u32>,
}

impl<'a> Lowering<'a> {
    fn new(
        module: &'a Module,
        function: &'a Function,
        variables: &Variables,
        kept: &'a BTreeSet<(usize, RegId)>,
    ) -> Result<Self, Error> {
        let mut kernel = Kernel { name: function.name.clone(), ..Kernel::default() };
        let mut places = variables.places.clone();
        let reachable = Reachable::new(module, function);
        let mut params = Layout::new(MOST_PARAMS);
        for (index, param) in function.params.iter().enumerate() {
            places.insert(Symbol::Param(VarId(index as u32)), params.add(param)?);
        }
        kernel.param_bytes = params.next as u32;
        kernel.param_variables = params.named;
        kernel.constant_variables = variables.constant_names.clone();
        // Shared variables outside functions take room where they are used.
        let mut shared = Layout::new(MOST_SHARED);
        if reachable.reserved_shared {
            shared.reserve("reserved for the system", u64::from(RESERVED_SHARED));
        }
        for id in &reachable.variables {
            let Some(variable) = module.variables.get(id.index()) else { continue };
            if variable.space.base() == StateSpace::Shared && !is_dynamic(variable) {
                places.insert(Symbol::Global(*id), shared.add(variable)?);
            }
        }
        for directive in &function.directives {
            let shape = |list: &[u32]| [0, 1, 2].map(|i| list.get(i).copied().unwrap_or(1));
            match directive {
                Directive::Reqntid(list) => kernel.required_block = Some(shape(list)),
                Directive::Maxntid(list) => {
                    kernel.most_threads = Some(shape(list).iter().map(|n| u64::from(*n)).product())
                }
                Directive::Reqnctapercluster(list) => kernel.required_cluster = Some(shape(list)),
                Directive::Explicitcluster => kernel.explicit_cluster = true,
                Directive::Maxclusterrank(most) => kernel.most_cluster = Some(*most),
                Directive::Maxnreg(count) => kernel.maxnreg = Some(*count),
                Directive::Minnctapersm(count) => kernel.minnctapersm = Some(*count),
                _ => {}
            }
        }
        Ok(Lowering {
            module,
            function,
            kernel,
            slots: Slots::new(function),
            places,
            local_memory: has_local_memory(module, function, &reachable),
            reachable,
            numbers: BTreeMap::new(),
            frame: None,
            shared,
            shared_places: BTreeMap::new(),
            local: Layout::new(MOST_LOCAL),
            labels: BTreeMap::new(),
            tables: BTreeMap::new(),
            fixes: Vec::new(),
            table_fixes: Vec::new(),
            guard: None,
            tracked: BTreeMap::new(),
            guess: false,
            kept,
            origin: Origin { line: function.line, mnemonic: 0, source: 0, class: Class::Control },
            mnemonics: BTreeMap::new(),
            sources: BTreeMap::new(),
        })
    }

    /// Device functions first, callees before callers: the instruction with the lowest number runs first, so that lanes
    /// that enter a function come back before the others go on.
    fn run(mut self) -> Result<Kernel, Error> {
        let kernel = self.function;
        self.shared_variables()?;
        self.frames()?;
        for id in self.reachable.order.clone() {
            self.device_function(id)?;
        }
        self.enter(kernel);
        self.places_of_body(true)?;
        self.kernel.start = self.kernel.code.len() as u32;
        self.body()?;
        let mut kernel = self.kernel;
        kernel.reserved_shared = if self.reachable.reserved_shared { RESERVED_SHARED } else { 0 };
        kernel.static_shared = self.shared.next as u32;
        kernel.shared_variables = self.shared.named;
        kernel.local_bytes = self.local.next as u32;
        kernel.local_variables = self.local.named;
        self.slots.finish(&mut kernel);
        super::uniform::mark(&mut kernel);
        super::pack::pack(&mut kernel);
        super::pack::finish(&mut kernel);
        Ok(kernel)
    }

    /// Places the shared variables of all function bodies, and after them the block whose size the launch gives.
    fn shared_variables(&mut self) -> Result<(), Error> {
        let module = self.module;
        let reached = self.reachable.order.iter().filter_map(|id| module.functions.get(id.index()));
        let bodies: Vec<&Function> = reached.chain([self.function]).collect();
        for function in bodies {
            for (index, variable) in function.variables.iter().enumerate() {
                if variable.space.base() == StateSpace::Shared && !is_dynamic(variable) {
                    let place = self.shared.add(variable)?;
                    self.shared_places.insert((function.name.clone(), index), place);
                }
            }
        }
        // One block has every name that is declared without a size.
        let mut blocks = Vec::new();
        for id in &self.reachable.variables {
            if let Some(variable) = module.variables.get(id.index()).filter(|v| is_launch_sized(v)) {
                blocks.push((*id, variable));
            }
        }
        let align = blocks.iter().map(|(_, variable)| u64::from(variable.align)).max().unwrap_or(1);
        let start = self.shared.next.next_multiple_of(align);
        for (id, variable) in blocks {
            self.shared.next = start;
            let place = self.shared.add(variable)?;
            self.places.insert(Symbol::Global(id), place);
        }
        Ok(())
    }

    /// Forgets the names of the last function.
    fn enter(&mut self, function: &'a Function) {
        self.function = function;
        self.slots.enter(function);
        self.places.retain(|symbol, _| !matches!(symbol, Symbol::Local(_)));
        self.labels.clear();
        self.tables.clear();
        self.tracked.clear();
        self.frame = None;
        self.origin = Origin { line: function.line, mnemonic: 0, source: 0, class: Class::Control };
    }

    /// Places the variables of a kernel's body, or the shared ones of a device function's.
    fn places_of_body(&mut self, kernel: bool) -> Result<(), Error> {
        let function = self.function;
        for (index, variable) in function.variables.iter().enumerate() {
            let symbol = Symbol::Local(VarId(index as u32));
            match variable.space.base() {
                StateSpace::Shared => {
                    if let Some(place) = self.shared_places.get(&(function.name.clone(), index)) {
                        self.places.insert(symbol, *place);
                    }
                }
                StateSpace::Local | StateSpace::Param if kernel => {
                    let place = self.local.add_aligned(variable, 4)?;
                    self.places.insert(symbol, place);
                }
                StateSpace::Local | StateSpace::Param => {}
                _ => {
                    let what = format!("variable `{}` in .{}", variable.name, variable.space.text());
                    return Err(unsupported(
                        variable.line,
                        what,
                        "",
                        "only shared and local variables and parameters of calls may be declared in a function",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Lowers the statements of the current function.
    fn body(&mut self) -> Result<(), Error> {
        let function = self.function;
        let mut flat = Vec::new();
        flatten(&function.body, &mut flat);
        for statement in &flat {
            if let Statement::BranchTargets { label, targets } = statement {
                self.tables.insert(*label, targets.clone());
            }
        }
        let items: Vec<Item<'_>> = flat
            .iter()
            .filter_map(|statement| match statement {
                Statement::Inst(inst) => Some(Item::Inst(inst)),
                Statement::Label(label) => Some(Item::Label(*label)),
                _ => None,
            })
            .collect();
        let tables = &self.tables;
        let targets = |inst: &Source| {
            let mut labels = Vec::new();
            for operand in &inst.operands {
                if let Operand::Label(label) = operand {
                    match tables.get(label) {
                        Some(list) => labels.extend(list),
                        None => labels.push(*label),
                    }
                }
            }
            labels
        };
        let unproved = unproved(&items, function.regs.len(), self.own(), &targets);
        let first = self.kernel.tracked.len() as u32;
        for reg in unproved.reads.iter().flatten().chain(&unproved.offered) {
            let next = first + self.tracked.len() as u32;
            self.tracked.entry(*reg).or_insert(next);
        }
        let mut tracked: Vec<_> = self.tracked.iter().map(|(reg, index)| (*index, *reg)).collect();
        tracked.sort_unstable();
        for (_, reg) in tracked {
            let name = function.regs.name(reg);
            // What follows a register of 128 bits is the state of its lower half.
            let Some(slot) = self.slots.register(reg).or_else(|| self.slots.pair(reg).map(|pair| pair[0])) else {
                return Err(unsupported(function.line, format!("register {name}"), "", "it has no size of a register"));
            };
            let ones = if self.slots.bits(reg) <= 16 { 0xffff } else { u32::MAX };
            self.kernel.tracked.push(Tracked { name, slot, ones });
        }
        let insts: Vec<&Source> =
            items.iter().filter_map(|item| if let Item::Inst(inst) = item { Some(*inst) } else { None }).collect();
        let number = self.module.functions.iter().position(|other| std::ptr::eq(other, function)).unwrap_or(0);
        let guesses = super::guess::guesses(&insts, |reg| self.kept.contains(&(number, reg)));
        let (mut index, mut number) = (0, 0);
        for statement in &flat {
            match statement {
                Statement::Label(label) => {
                    self.labels.insert(*label, self.kernel.code.len() as u32);
                    index += 1;
                }
                Statement::Inst(inst) => {
                    self.guess = guesses.contains(&number);
                    self.instruction(inst, &unproved.reads[index])?;
                    (index, number) = (index + 1, number + 1);
                }
                Statement::Loc(loc) => self.source(loc.file, loc.line, loc.column),
                _ => {}
            }
        }
        // Falling off the end returns.
        self.guard = None;
        self.origin.class = Class::Control;
        self.origin.mnemonic = self.mnemonic("end of the function".to_owned());
        self.emit(if self.frame.is_some() { Op::Return } else { Op::Exit });
        if self.kernel.code.len() > MOST_CODE {
            return Err(unsupported(
                function.line,
                format!("kernel `{}`", self.kernel.name),
                "",
                format!("it has more than {MOST_CODE} instructions"),
            ));
        }
        self.fix_branches()
    }

    /// Fills in the targets of branches.
    fn fix_branches(&mut self) -> Result<(), Error> {
        let function = self.function;
        let missing = |why: &str| unsupported(function.line, format!("function `{}`", function.name), "", why);
        for (at, label) in std::mem::take(&mut self.fixes) {
            let target = self.labels.get(&label).ok_or_else(|| missing("a branch has no target"))?;
            if let Op::Branch { target: field, .. } = &mut self.kernel.code[at].op {
                *field = *target;
            }
        }
        for (at, label) in std::mem::take(&mut self.table_fixes) {
            let list = self.tables.get(&label).cloned().unwrap_or_default();
            let resolved = (self.kernel.targets.len() as u32, list.len() as u32);
            for label in list {
                let target =
                    self.labels.get(&label).ok_or_else(|| missing("a branch table names a label without a place"))?;
                self.kernel.targets.push(*target);
            }
            if let Op::BranchTable { first, count, .. } = &mut self.kernel.code[at].op {
                (*first, *count) = resolved;
            }
        }
        Ok(())
    }

    fn mnemonic(&mut self, text: String) -> u32 {
        if let Some(index) = self.mnemonics.get(&text) {
            return *index;
        }
        let index = self.kernel.mnemonics.len() as u32;
        self.kernel.mnemonics.push(text.clone());
        self.mnemonics.insert(text, index);
        index
    }

    fn source(&mut self, file: u32, line: u32, column: u32) {
        let name = self.module.items.iter().find_map(|item| match item {
            ModuleItem::File(f) if f.index == file => Some(f.name.clone()),
            _ => None,
        });
        let key = (name.unwrap_or_else(|| format!("file {file}")), line, column);
        let next = self.kernel.sources.len() as u32 + 1;
        let index = *self.sources.entry(key.clone()).or_insert(next);
        if index == next {
            self.kernel.sources.push(key);
        }
        self.origin.source = index;
    }

    fn instruction(&mut self, inst: &Source, unproved: &[RegId]) -> Result<(), Error> {
        self.origin.line = inst.line;
        self.origin.mnemonic = self.mnemonic(inst.mnemonic());
        self.origin.class = class(inst);
        self.guard = None;
        let explain = |Refusal(why): Refusal| unsupported(inst.line, inst.mnemonic(), inst.op.desc().section, why);
        let guard = match inst.guard {
            None => None,
            Some(guard) => Some(PredRef { slot: self.pred_reg(guard.reg).map_err(explain)?, negated: guard.negated }),
        };
        // The guard itself is read by every lane, the operands where it holds.
        let mut sources = Vec::new();
        let local = self.own().accesses(inst);
        let (reads, writes) = super::written::uses(inst);
        let stores_local = local && writes.is_empty();
        let all_lack = reads.iter().all(|reg| unproved.contains(reg));
        for reg in unproved {
            let is_guard = inst.guard.is_some_and(|g| g.reg == *reg);
            let register = self.tracked[reg];
            let is_address = inst.operands.first().is_some_and(
                |operand| matches!(operand, Operand::Address(a) if a.base == tilewright_ptx::AddressBase::Reg(*reg)),
            );
            if !is_guard && !is_address && stores_local {
                continue;
            }
            if !is_guard && passes_on(inst) {
                sources.push((*reg, register));
                continue;
            }
            self.guard = if is_guard { None } else { guard };
            self.emit(Op::CheckInit { register });
        }
        self.guard = guard;
        if stores_local {
            self.stored_undefined(inst, unproved);
        }
        self.lower(inst).map_err(explain)?;
        for (element, reg) in writes.into_iter().enumerate() {
            let Some(register) = self.tracked.get(&reg).copied() else { continue };
            let flow = match local {
                true => Op::LoadedInit { register, element: element as u32 },
                false if joins(inst) && (!all_lack || completes(inst)) => Op::MarkInit { register },
                false => self.flow(inst, register, &sources).map_err(explain)?,
            };
            self.emit(flow);
        }
        Ok(())
    }

    fn own(&self) -> Own {
        Own { local: self.local_memory, function: self.frame.is_some() }
    }

    /// Says which elements of the store that follows are undefined in which lanes.
    fn stored_undefined(&mut self, inst: &Source, unproved: &[RegId]) {
        let Some(data) = inst.operands.get(1) else { return };
        let mut elements = Vec::new();
        let one = std::slice::from_ref(data);
        for element in if let Operand::Vector(elements) = data { elements.as_slice() } else { one } {
            elements.push(match element {
                Operand::Reg(reg) if unproved.contains(reg) => self.tracked.get(reg).copied().unwrap_or(u32::MAX),
                _ => u32::MAX,
            });
        }
        if elements.iter().any(|register| *register != u32::MAX) {
            let (first, count) = (self.kernel.flows.len() as u32, elements.len() as u32);
            self.kernel.flows.extend(elements);
            self.emit(Op::StoredInit { first, count });
        }
    }

    /// How a result is defined, given the operands that may not be.
    fn flow(&mut self, inst: &Source, register: u32, sources: &[(RegId, u32)]) -> Lowered<Op> {
        if sources.is_empty() {
            return Ok(Op::MarkInit { register });
        }
        if let (Family::Compare(tilewright_ptx::isa::Compare::Selp), [_, a, b, c]) = (inst.op, &inst.operands[..]) {
            let number = |operand: &Operand| match operand {
                Operand::Reg(reg) => sources.iter().find(|source| source.0 == *reg).map(|source| source.1),
                _ => None,
            };
            let condition = match c {
                Operand::Reg(reg) | Operand::NotReg(reg) => sources.iter().any(|source| source.0 == *reg),
                _ => false,
            };
            if !condition {
                let p = self.pred(c)?;
                let (a, b) = (number(a).unwrap_or(u32::MAX), number(b).unwrap_or(u32::MAX));
                return Ok(Op::FlowSelect { register, p, a, b });
            }
        }
        let first = self.kernel.flows.len() as u32;
        self.kernel.flows.extend(sources.iter().map(|source| source.1));
        Ok(Op::FlowInit { register, first, count: sources.len() as u32, any: joins(inst) })
    }

    fn lower(&mut self, inst: &Source) -> Lowered<()> {
        match inst.op {
            Family::Arith(op) => self.arith(op, inst),
            Family::Logic(op) => self.logic(op, inst),
            Family::Compare(op) => self.compare(op, inst),
            Family::Convert(op) => self.convert(op, inst),
            Family::Math(op) => self.math(op, inst),
            Family::Memory(op) => self.memory(op, inst),
            Family::Atomic(op) => self.atomic(op, inst),
            Family::Synchronization(op) => self.synchronization(op, inst),
            Family::Warp(op) => self.warp(op, inst),
            Family::Control(op) => self.control(op, inst),
            Family::AsyncCopy(op) => self.async_copy(op, inst),
            Family::Matrix(op) => self.matrix(op, inst),
            Family::Video(op) => self.video(op, inst),
            Family::Stack(op) => self.stack(op, inst),
        }
    }

    // What the families share.

    pub(super) fn emit(&mut self, op: Op) {
        self.kernel.code.push(Inst {
            guard: self.guard,
            once: false,
            row: None,
            step: 1,
            stretch: 0,
            part: None,
            number: 0,
            registers: [0; 4],
            op,
        });
        self.kernel.origins.push(self.origin.clone());
    }

    pub(super) fn operand<'i>(&self, inst: &'i Source, index: usize) -> Lowered<&'i Operand> {
        inst.operands.get(index).ok_or_else(|| Refusal(format!("operand {index} is missing")))
    }

    pub(super) fn reg(&mut self, reg: RegId) -> Lowered<Slot> {
        self.slots.register(reg).ok_or_else(|| Refusal("a register of 128 bits is not supported here".to_owned()))
    }

    fn pred_reg(&mut self, reg: RegId) -> Lowered<u32> {
        match self.reg(reg)? {
            Slot::Pred(slot) => Ok(slot),
            _ => refuse("a predicate is expected"),
        }
    }

    /// A register, immediate, special register or address as a value of this type.
    pub(super) fn value(&mut self, operand: &Operand, ty: ScalarType) -> Lowered<Slot> {
        let bits = ty.bits();
        let constant = |slots: &mut Slots<'_>, value| {
            slots.constant(bits, value).ok_or_else(|| Refusal(format!("constants of {bits} bits are not supported")))
        };
        match operand {
            Operand::Reg(reg) => self.reg(*reg),
            Operand::Imm(value) => match immediate(*value, ty) {
                Some(value) => constant(&mut self.slots, value),
                None => refuse(format!("an immediate is not a value of type {ty}")),
            },
            Operand::Special(special) => self.special(*special, bits),
            Operand::Symbol(symbol, offset) => match self.frame_base(*symbol) {
                Some(base) => {
                    let address = self.place(*symbol)?.wrapping_add(*offset as u64);
                    let (Some(Slot::Wide(d)), Some(Slot::Wide(b))) =
                        (self.slots.temporary(64), self.slots.constant(64, address))
                    else {
                        return refuse("no room for a register");
                    };
                    self.emit(Op::Int2Wide { op: crate::lanes::int::Int2::Add, d, a: base, b });
                    match bits {
                        64 => Ok(Slot::Wide(d)),
                        _ => {
                            let Some(Slot::Narrow(low)) = self.slots.temporary(32) else {
                                return refuse("no room for a register");
                            };
                            self.emit(Op::CvtFast { cvt: op::FastCvt::Truncate, d: low, a: d, b: d });
                            Ok(Slot::Narrow(low))
                        }
                    }
                }
                None => {
                    let address = self.place(*symbol)?.wrapping_add(*offset as u64);
                    constant(&mut self.slots, address)
                }
            },
            _ => refuse("this kind of operand is not supported here"),
        }
    }

    pub(super) fn special(&mut self, special: SpecialReg, bits: u32) -> Lowered<Slot> {
        use SpecialReg::*;
        let which = match special {
            Clock | GlobaltimerLo => Some(op::Clock::Low),
            ClockHi | GlobaltimerHi => Some(op::Clock::High),
            Clock64 | Globaltimer => Some(op::Clock::Full),
            _ => None,
        };
        let slot = match (which, special) {
            (Some(which), _) => {
                let bits = special.ty().bits();
                let Some(d) = self.slots.temporary(bits) else {
                    return refuse("this special register is not supported");
                };
                self.emit(Op::Clock { d, which });
                d
            }
            // No graph launches this kernel.
            (None, Gridid | CurrentGraphExec) => self.slots.constant(64, 0).unwrap_or(Slot::Wide(0)),
            (None, ReservedSmemOffsetBegin | ReservedSmemOffset0) => self.constant_32(0)?,
            (None, ReservedSmemOffsetEnd | ReservedSmemOffsetCap) => self.constant_32(RESERVED_SHARED)?,
            (None, ReservedSmemOffset1) => self.constant_32(RESERVED_LIBRARY)?,
            // Counters of nothing, and of what the driver tells only where the workspace of a cooperative launch is.
            (None, Envreg1 | Envreg2) => {
                self.kernel.grid_workspace = true;
                let half = if special == Envreg1 { GRID_WORKSPACE >> 32 } else { GRID_WORKSPACE & 0xffff_ffff };
                self.slots.constant(32, half).unwrap_or(Slot::Narrow(0))
            }
            (None, other) if other.text().starts_with("%envreg") || other.text().starts_with("%pm") => {
                self.slots.constant(other.ty().bits(), 0).unwrap_or(Slot::Narrow(0))
            }
            // Kept as a number, and tested where it is asked for.
            (None, IsExplicitCluster) => {
                let (Slot::Narrow(a), Some(Slot::Narrow(b)), Some(Slot::Pred(d))) =
                    (self.slots.special(special), self.slots.constant(32, 0), self.slots.temporary(1))
                else {
                    return refuse("no room for a predicate");
                };
                let test = op::Comparison::Int(crate::lanes::int::IntCompare::Ne, crate::lanes::int::Width::W32);
                self.emit(Op::Setp { test, d: Some(d), p: None, a, b, combine: None });
                Slot::Pred(d)
            }
            (None, _) => self.slots.special(special),
        };
        // A 64-bit read of a 32-bit special register extends it.
        match (slot, bits) {
            (Slot::Narrow(a), 64) => {
                let Some(Slot::Wide(d)) = self.slots.temporary(64) else { return refuse("no room for a register") };
                self.emit(Op::CvtFast { cvt: op::FastCvt::ZeroExtend, d, a, b: a });
                Ok(Slot::Wide(d))
            }
            (Slot::Wide(a), 2..=32) => {
                let Some(Slot::Narrow(d)) = self.slots.temporary(32) else { return refuse("no room for a register") };
                self.emit(Op::CvtFast { cvt: op::FastCvt::Truncate, d, a, b: a });
                Ok(Slot::Narrow(d))
            }
            _ => Ok(slot),
        }
    }

    fn constant_32(&mut self, value: u32) -> Lowered<Slot> {
        self.slots.constant(32, u64::from(value)).ok_or_else(|| Refusal("no room for a constant".to_owned()))
    }

    /// The offset of a variable in its state space.
    pub(super) fn place(&self, symbol: Symbol) -> Lowered<u64> {
        match (self.places.get(&symbol), symbol) {
            (Some(place), _) => Ok(*place),
            (None, Symbol::Function(id)) => Ok(function_address(id)),
            (None, Symbol::Global(id)) => {
                let variable = self.module.variables.get(id.index());
                let name = variable.map_or("?", |v| v.name.as_str());
                match variable.map(|v| v.linkage) {
                    Some(tilewright_ptx::Linkage::Extern) => {
                        refuse(format!("variable `{name}` is only declared in this module"))
                    }
                    _ => refuse(format!("variable `{name}` has no place in this kernel")),
                }
            }
            _ => refuse("the address of this symbol is not supported"),
        }
    }

    /// State space of a variable.
    pub(super) fn space_of(&self, symbol: Symbol) -> Option<StateSpace> {
        match symbol {
            Symbol::Global(id) => self.module.variables.get(id.index()).map(|v| v.space.base()),
            Symbol::Local(id) => self.function.variables.get(id.index()).map(|v| v.space.base()),
            Symbol::Param(_) | Symbol::Return(_) => Some(StateSpace::Param),
            Symbol::Function(_) => None,
        }
    }

    pub(super) fn narrow(&mut self, operand: &Operand, ty: ScalarType) -> Lowered<u32> {
        match self.value(operand, ty)? {
            Slot::Narrow(slot) => Ok(slot),
            _ => refuse("an operand of at most 32 bits is expected"),
        }
    }

    pub(super) fn wide(&mut self, operand: &Operand, ty: ScalarType) -> Lowered<u32> {
        match self.value(operand, ty)? {
            Slot::Wide(slot) => Ok(slot),
            _ => refuse("an operand of 64 bits is expected"),
        }
    }

    /// A source predicate.
    pub(super) fn pred(&mut self, operand: &Operand) -> Lowered<PredRef> {
        match operand {
            Operand::NotReg(reg) => Ok(PredRef { slot: self.pred_reg(*reg)?, negated: true }),
            other => match self.value(other, ScalarType::Pred)? {
                Slot::Pred(slot) => Ok(PredRef { slot, negated: false }),
                _ => refuse("a predicate is expected"),
            },
        }
    }

    /// A result predicate; a sink drops it.
    pub(super) fn pred_result(&mut self, operand: &Operand) -> Lowered<Option<u32>> {
        match operand {
            Operand::Sink => Ok(None),
            Operand::Reg(reg) => self.pred_reg(*reg).map(Some),
            _ => refuse("a predicate register is expected"),
        }
    }

    pub(super) fn rounding(&self, inst: &Source) -> Round {
        match inst.find::<Rounding>() {
            None | Some(Rounding::Rn | Rounding::Rni | Rounding::Rs) => Round::Nearest,
            Some(Rounding::Rna) => Round::NearestAway,
            Some(Rounding::Rz | Rounding::Rzi) => Round::Zero,
            Some(Rounding::Rm | Rounding::Rmi) => Round::Down,
            Some(Rounding::Rp | Rounding::Rpi) => Round::Up,
        }
    }

    pub(super) fn ty(&self, inst: &Source, index: usize) -> Lowered<ScalarType> {
        inst.ty(index).ok_or_else(|| Refusal("the type is missing".to_owned()))
    }
}

/// Whether the kernel or a function that it reaches has variables in local memory, or parameters there whose address
/// may be taken.
fn has_local_memory(module: &Module, kernel: &Function, reachable: &Reachable) -> bool {
    let functions = reachable.order.iter().filter_map(|id| module.functions.get(id.index()));
    functions.chain([kernel]).any(|function| {
        let mut allocates = false;
        function.for_each_inst(&mut |inst| allocates |= matches!(inst.op, Family::Stack(_)));
        allocates || function.variables.iter().any(|variable| variable.space.base() == StateSpace::Local)
    })
}

/// All statements, those of nested scopes included.
fn flatten<'a>(statements: &'a [Statement], out: &mut Vec<&'a Statement>) {
    for statement in statements {
        match statement {
            Statement::Scope(inner) => flatten(inner, out),
            other => out.push(other),
        }
    }
}

fn class(inst: &Source) -> Class {
    let types: Vec<ScalarType> = inst.types().collect();
    match inst.op {
        Family::Memory(_) | Family::Atomic(_) | Family::AsyncCopy(_) => Class::Memory,
        Family::Synchronization(_) | Family::Warp(_) => Class::Sync,
        Family::Matrix(op) if op == tilewright_ptx::isa::Matrix::Mma || op == tilewright_ptx::isa::Matrix::WmmaMma => {
            Class::Tensor
        }
        Family::Matrix(_) => Class::Memory,
        Family::Control(_) => Class::Control,
        Family::Convert(tilewright_ptx::isa::Convert::Mov) => Class::Integer,
        Family::Convert(_) => Class::Convert,
        Family::Math(_) if inst.has(Flag::Approx) => Class::Special,
        _ if types.contains(&ScalarType::F64) => Class::Double,
        _ if types.iter().any(|ty| ty.is_float()) => Class::Float,
        _ => Class::Integer,
    }
}
