//! What belongs to a module as a whole: variables in global and constant memory with their initial values, addresses of
//! functions, and which functions a kernel may reach.

use tilewright_ptx::isa::{Control, Op as Family};
use tilewright_ptx::{FuncId, Function, Initializer, Inst, Linkage, Module, Operand, StateSpace, Symbol, VarId};
use tilewright_sorted::{SortedMap, SortedSet};

use super::Named;
use super::layout::{Layout, MOST_CONSTANTS, is_dynamic, unsupported};
use super::slots::immediate;
use crate::error::Error;
use crate::memory::device::{ALIGN, GAP};
use crate::memory::region::{CONST_WINDOW, FUNCTIONS, MODULE, MODULE_END};

/// A variable in global memory.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    pub name: String,
    pub address: u64,
    pub bytes: u64,
    /// The first bytes; the rest are zeros.
    pub initial: Vec<u8>,
}

/// Variables outside functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    pub globals: Vec<Global>,
    pub constants: Vec<u8>,
    pub constant_names: Vec<Named>,
    /// Addresses in their spaces of everything but shared memory.
    pub places: SortedMap<Symbol, u64>,
}

/// The address of a function as a value.
pub(crate) fn function_address(id: FuncId) -> u64 {
    FUNCTIONS + 16 * id.index() as u64
}

impl Variables {
    /// Lays out the variables, then computes their initial values, which may be addresses of others.
    pub fn new(module: &Module) -> Result<Self, Error> {
        let mut variables = Variables::default();
        let mut constants = Layout::new(MOST_CONSTANTS);
        let mut next = MODULE;
        for (index, variable) in module.variables.iter().enumerate() {
            let symbol = Symbol::Global(VarId(index as u32));
            match variable.space.base() {
                StateSpace::Const => {
                    variables.places.insert(symbol, constants.add(variable)?);
                }
                // Defined in another module: refused where it is used.
                StateSpace::Global if variable.linkage == Linkage::Extern => {}
                StateSpace::Global => {
                    let too_large =
                        || unsupported(variable.line, format!("variable `{}`", variable.name), "", "it is too large");
                    let bytes = variable.bytes().ok_or_else(too_large)?;
                    let align = ALIGN.max(u64::from(variable.align));
                    let address = next.next_multiple_of(align);
                    next = address.checked_add(bytes).and_then(|end| end.checked_add(GAP)).ok_or_else(too_large)?;
                    if next > MODULE_END {
                        return Err(too_large());
                    }
                    variables.places.insert(symbol, address);
                    let name = variable.name.clone();
                    variables.globals.push(Global { name, address, bytes, initial: Vec::new() });
                }
                _ => {}
            }
        }
        variables.constants = vec![0; constants.next as usize];
        variables.constant_names = constants.named;
        let mut globals = 0;
        for (index, variable) in module.variables.iter().enumerate() {
            let Some(place) = variables.places.get(&Symbol::Global(VarId(index as u32))).copied() else { continue };
            let initial = variables.initial(module, variable)?;
            if variable.space.base() == StateSpace::Const {
                variables.constants[place as usize..][..initial.len()].copy_from_slice(&initial);
            } else {
                variables.globals[globals].initial = initial;
                globals += 1;
            }
        }
        Ok(variables)
    }

    /// The initial bytes of a variable, up to the last one that is given.
    fn initial(&self, module: &Module, variable: &tilewright_ptx::Variable) -> Result<Vec<u8>, Error> {
        let refusal = |why: &str| unsupported(variable.line, format!("variable `{}`", variable.name), "5.4.4", why);
        let Some(init) = &variable.init else { return Ok(Vec::new()) };
        let size = variable.ty.bytes() as usize;
        let total = variable.bytes().unwrap_or(0);
        let mut bytes = Vec::new();
        // Every list of an array fills one of its rows; vectors are lists too.
        let mut extents: Vec<u64> = variable.dims.clone();
        if variable.vector > 1 {
            extents.push(u64::from(variable.vector));
        }
        let mut work = vec![(init, 0u64, 0usize)];
        while let Some((item, first, depth)) = work.pop() {
            match item {
                Initializer::List(list) => {
                    let below: u64 = extents.get(depth + 1..).unwrap_or(&[]).iter().product();
                    for (n, inner) in list.iter().enumerate() {
                        work.push((inner, first + n as u64 * below, depth + 1));
                    }
                }
                Initializer::Imm(value) => {
                    let value = immediate(*value, variable.ty).ok_or_else(|| refusal("a value has another type"))?;
                    write(&mut bytes, first as usize * size, &value.to_le_bytes()[..size.min(8)], total);
                }
                Initializer::Symbol { symbol, offset, generic } => {
                    let address = self.address(module, *symbol, *generic).ok_or_else(|| {
                        refusal("it is initialised with the address of something that has none before a launch")
                    })?;
                    let address = address.wrapping_add(*offset as u64);
                    write(&mut bytes, first as usize * size, &address.to_le_bytes()[..size.min(8)], total);
                }
            }
        }
        Ok(bytes)
    }

    fn address(&self, module: &Module, symbol: Symbol, generic: bool) -> Option<u64> {
        match symbol {
            Symbol::Function(id) => Some(function_address(id)),
            Symbol::Global(id) => {
                let place = *self.places.get(&symbol)?;
                let constant = module.variables.get(id.index())?.space.base() == StateSpace::Const;
                Some(if constant && generic { place + CONST_WINDOW } else { place })
            }
            _ => None,
        }
    }
}

/// Puts bytes at an offset, within the first `total`.
fn write(bytes: &mut Vec<u8>, at: usize, value: &[u8], total: u64) {
    if (at + value.len()) as u64 > total {
        return;
    }
    if bytes.len() < at + value.len() {
        bytes.resize(at + value.len(), 0);
    }
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The functions that a kernel may call, callees before their callers where there is no recursion.
#[derive(Debug, Default)]
pub(crate) struct Reachable {
    pub order: Vec<FuncId>,
    /// Those that may be called while they run.
    pub recursive: SortedSet<FuncId>,
    /// Variables outside functions that the kernel or one of them names.
    pub variables: SortedSet<VarId>,
    /// Whether an instruction reads where the system's part of shared memory is.
    pub reserved_shared: bool,
}

impl Reachable {
    pub fn new(module: &Module, kernel: &Function) -> Self {
        let taken = taken(module);
        let mut reachable = Reachable::default();
        // Depth first, without recursion of our own: text may nest calls deeply.
        let mut met: SortedSet<FuncId> = SortedSet::new();
        let mut calls: SortedMap<FuncId, Vec<FuncId>> = SortedMap::new();
        let mut stack = vec![(None, reachable.callees(kernel, &taken), 0usize)];
        while let Some((id, callees, at)) = stack.last_mut() {
            let Some(next) = callees.get(*at).copied() else {
                if let Some(id) = *id {
                    reachable.order.push(id);
                }
                stack.pop();
                continue;
            };
            *at += 1;
            if !met.insert(next) {
                continue;
            }
            let Some(function) = module.functions.get(next.index()) else { continue };
            let inner = reachable.callees(function, &taken);
            calls.insert(next, inner.clone());
            stack.push((Some(next), inner, 0));
        }
        // Recursive: it can come back to itself.
        for id in &reachable.order {
            let mut seen = SortedSet::new();
            let mut work = calls.get(id).cloned().unwrap_or_default();
            while let Some(next) = work.pop() {
                if next == *id {
                    reachable.recursive.insert(*id);
                    break;
                }
                if seen.insert(next) {
                    work.extend(calls.get(&next).into_iter().flatten());
                }
            }
        }
        reachable
    }

    /// Functions that this one may call; notes the variables it names.
    fn callees(&mut self, function: &Function, taken: &[FuncId]) -> Vec<FuncId> {
        let mut callees = Vec::new();
        function.for_each_inst(&mut |inst| {
            if is_call(inst) {
                match callee(inst) {
                    Some(Operand::Symbol(Symbol::Function(id), _)) => callees.push(*id),
                    _ => callees.extend(taken),
                }
            }
            for operand in &inst.operands {
                self.reserved_shared |= matches!(operand, Operand::Special(special) if special.is_reserved_shared());
                for_each_symbol(operand, &mut |symbol| {
                    if let Symbol::Global(id) = symbol {
                        self.variables.insert(id);
                    }
                });
            }
        });
        callees.sort_unstable();
        callees.dedup();
        callees
    }
}

fn is_call(inst: &Inst) -> bool {
    inst.op == Family::Control(Control::Call)
}

/// The operand that says what is called: the first that is no list.
pub(crate) fn callee(inst: &Inst) -> Option<&Operand> {
    inst.operands.iter().find(|operand| !matches!(operand, Operand::List(_)))
}

/// Functions whose address is a value somewhere.
fn taken(module: &Module) -> Vec<FuncId> {
    let mut taken = SortedSet::new();
    for variable in &module.variables {
        let mut work: Vec<&Initializer> = variable.init.iter().collect();
        while let Some(init) = work.pop() {
            match init {
                Initializer::List(list) => work.extend(list),
                Initializer::Symbol { symbol: Symbol::Function(id), .. } => {
                    taken.insert(*id);
                }
                _ => {}
            }
        }
    }
    for function in &module.functions {
        function.for_each_inst(&mut |inst| {
            if !is_call(inst) {
                for operand in &inst.operands {
                    for_each_symbol(operand, &mut |symbol| {
                        if let Symbol::Function(id) = symbol {
                            taken.insert(id);
                        }
                    });
                }
            }
        });
    }
    taken.into_iter().collect()
}

fn for_each_symbol(operand: &Operand, visit: &mut impl FnMut(Symbol)) {
    match operand {
        Operand::Symbol(symbol, _) => visit(*symbol),
        Operand::Address(address) | Operand::Tensor(address, _) => {
            if let tilewright_ptx::AddressBase::Symbol(symbol) = address.base {
                visit(symbol);
            }
        }
        Operand::Vector(list) | Operand::List(list) => {
            for inner in list {
                // Lists do not nest.
                if let Operand::Symbol(symbol, _) = inner {
                    visit(*symbol);
                }
            }
        }
        _ => {}
    }
}

/// Whether the variable takes its size from the launch.
pub(crate) fn is_launch_sized(variable: &tilewright_ptx::Variable) -> bool {
    is_dynamic(variable) && variable.space.base() == StateSpace::Shared
}
