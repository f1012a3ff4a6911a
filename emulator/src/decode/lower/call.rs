//! Device functions and calls: frames, arguments, results.
//!
//! A device function has registers of its own, and a frame in local memory for its results, parameters and variables;
//! the frame's base is a register too. Functions that may be called while they run keep the registers of the
//! interrupted call, see `exec::call`.

use tilewright_ptx::{FuncId, Function, Inst as Source, Operand, StateSpace, Symbol, VarId};

use super::{Lowered, Lowering, refuse};
use crate::decode::layout::{Layout, MOST_LOCAL, unsupported};
use crate::decode::module::{callee, function_address};
use crate::decode::op::{CallSite, Callee, Library, Op, Passed, Slot, Target};
use crate::error::Error;

/// Least alignment of a frame.
const FRAME_ALIGN: u32 = 16;

/// Where everything in a function's frame is: results, parameters, variables of the body, by symbol.
fn frame(function: &Function) -> Result<(Layout, Vec<(Symbol, u64)>), Error> {
    let mut layout = Layout::new(MOST_LOCAL);
    let mut places = Vec::new();
    for (index, variable) in function.returns.iter().enumerate() {
        if variable.space != StateSpace::Reg {
            places.push((Symbol::Return(VarId(index as u32)), layout.add_aligned(variable, 4)?));
        }
    }
    for (index, variable) in function.params.iter().enumerate() {
        if variable.space != StateSpace::Reg {
            places.push((Symbol::Param(VarId(index as u32)), layout.add_aligned(variable, 4)?));
        }
    }
    for (index, variable) in function.variables.iter().enumerate() {
        if matches!(variable.space.base(), StateSpace::Local | StateSpace::Param) {
            places.push((Symbol::Local(VarId(index as u32)), layout.add_aligned(variable, 4)?));
        }
    }
    Ok((layout, places))
}

impl Lowering<'_> {
    /// Gives every reachable function its number and its frame.
    pub(super) fn frames(&mut self) -> Result<(), Error> {
        let module = self.module;
        for id in self.reachable.order.clone() {
            let Some(function) = module.functions.get(id.index()) else { continue };
            if function.body.is_empty() {
                continue;
            }
            let (layout, _) = frame(function)?;
            let aligns = function.returns.iter().chain(&function.params).chain(&function.variables).map(|v| v.align);
            let Some(Slot::Wide(base)) = self.slots.temporary(64) else {
                return Err(unsupported(function.line, "the function", "", "no room for a register"));
            };
            self.numbers.insert(id, self.kernel.functions.len() as u32);
            self.kernel.functions.push(Callee {
                name: function.name.clone(),
                address: function_address(id),
                entry: 0,
                base,
                bytes: layout.next as u32,
                align: aligns.max().unwrap_or(1).max(FRAME_ALIGN),
                parameters: Vec::new(),
                results: Vec::new(),
                saved: Vec::new(),
                tracked: [0; 2],
            });
        }
        Ok(())
    }

    /// Lowers a device function.
    pub(super) fn device_function(&mut self, id: FuncId) -> Result<(), Error> {
        let module = self.module;
        let (Some(function), Some(number)) = (module.functions.get(id.index()), self.numbers.get(&id).copied()) else {
            return Ok(());
        };
        // Kernel parameters are not visible in functions.
        let outer = self.places.clone();
        self.places.retain(|symbol, _| !matches!(symbol, Symbol::Param(_) | Symbol::Return(_)));
        self.enter(function);
        let (_, places) = frame(function)?;
        self.places.extend(places);
        self.places_of_body(false)?;
        let base = self.kernel.functions[number as usize].base;
        self.frame = Some(base);
        let entry = self.kernel.code.len() as u32;
        let first = self.kernel.tracked.len() as u32;
        self.body()?;
        let parameters = self.passed(&function.params, Symbol::Param)?;
        let results = self.passed(&function.returns, Symbol::Return)?;
        let recursive = self.reachable.recursive.contains(&id);
        let tracked = [first, self.kernel.tracked.len() as u32];
        let mut saved = Vec::new();
        if recursive {
            saved = self.slots.in_use();
            saved.push(Slot::Wide(base));
        }
        let callee = &mut self.kernel.functions[number as usize];
        *callee = Callee { entry, parameters, results, saved, tracked, ..callee.clone() };
        // Shared variables of the body stay placed.
        self.places = outer;
        Ok(())
    }

    /// Parameters or results of the current function, from its own side.
    fn passed(
        &mut self,
        list: &[tilewright_ptx::Variable],
        symbol: impl Fn(VarId) -> Symbol,
    ) -> Result<Vec<Passed>, Error> {
        let function = self.function;
        let mut passed = Vec::new();
        for (index, variable) in list.iter().enumerate() {
            let id = symbol(VarId(index as u32));
            passed.push(match self.places.get(&id) {
                Some(offset) => Passed::Frame { offset: *offset as u32, bytes: variable.bytes().unwrap_or(0) as u32 },
                None => {
                    // Registers of a signature come first in the table, in the order of the text.
                    let before = match id {
                        Symbol::Param(_) => function.returns.iter().filter(|v| v.space == StateSpace::Reg).count(),
                        _ => 0,
                    };
                    let at = before + list[..index].iter().filter(|v| v.space == StateSpace::Reg).count();
                    let reg = tilewright_ptx::RegId(at as u32);
                    let Some(slot) = self.slots.register(reg) else {
                        return Err(unsupported(
                            variable.line,
                            format!("parameter `{}`", variable.name),
                            "",
                            "registers have at most 64 bits",
                        ));
                    };
                    Passed::Register { slot, tracked: self.tracked.get(&reg).copied() }
                }
            });
        }
        Ok(passed)
    }

    pub(super) fn stack(&mut self, op: tilewright_ptx::isa::Stack, inst: &Source) -> Lowered<()> {
        use tilewright_ptx::isa::Stack;
        self.kernel.stack = true;
        let ty = self.ty(inst, 0)?;
        let first = self.value(self.operand(inst, 0)?, ty)?;
        match op {
            Stack::Alloca => {
                let size = self.value(self.operand(inst, 1)?, ty)?;
                let align = match inst.operands.get(2) {
                    Some(Operand::Imm(value)) => value.int_bits().unwrap_or(0),
                    _ => 16,
                };
                if !align.is_power_of_two() || align > 4096 {
                    return refuse("the alignment must be a power of two of at most 4096");
                }
                self.emit(Op::Alloca { d: first, size, align: (align as u32).max(16) });
            }
            Stack::Stacksave => self.emit(Op::StackTop { register: first, restore: false }),
            Stack::Stackrestore => self.emit(Op::StackTop { register: first, restore: true }),
        }
        Ok(())
    }

    /// The frame base that a symbol is relative to.
    pub(super) fn frame_base(&self, symbol: Symbol) -> Option<u32> {
        let base = self.frame?;
        let in_frame = match symbol {
            Symbol::Param(_) | Symbol::Return(_) => true,
            Symbol::Local(id) => self
                .function
                .variables
                .get(id.index())
                .is_some_and(|v| matches!(v.space.base(), StateSpace::Local | StateSpace::Param)),
            _ => false,
        };
        in_frame.then_some(base)
    }

    /// Whether a variable named in `.param` lives in the frame rather than in the kernel's parameters.
    pub(super) fn is_in_frame(&self, symbol: Option<Symbol>) -> bool {
        self.frame.is_some() || matches!(symbol, Some(Symbol::Local(_)))
    }

    pub(super) fn call(&mut self, inst: &Source) -> Lowered<()> {
        let Some(called) = callee(inst) else { return refuse("the function is missing") };
        let target = match called {
            Operand::Symbol(Symbol::Function(id), 0) => match self.numbers.get(id) {
                Some(number) => Target::Function(*number),
                None => {
                    let name = self.module.functions.get(id.index()).map_or("?", |f| f.name.as_str());
                    Target::Undefined(name.to_owned())
                }
            },
            Operand::Reg(reg) => match self.reg(*reg)? {
                Slot::Wide(slot) => Target::Address(slot),
                _ => return refuse("the address of a function has 64 bits"),
            },
            _ => return refuse("the function must be a name or a register"),
        };
        // Results come before the function, arguments after it.
        let at = inst.operands.iter().position(|operand| std::ptr::eq(operand, called)).unwrap_or(0);
        let (mut results, mut arguments) = (Vec::new(), Vec::new());
        for (index, operand) in inst.operands.iter().enumerate() {
            let Operand::List(elements) = operand else { continue };
            for element in elements {
                let passed = self.argument(element)?;
                if index < at { results.push(passed) } else { arguments.push(passed) }
            }
        }
        let target = match target {
            Target::Undefined(name) => match Library::of(&name, arguments.len(), results.len()) {
                Some(library) => Target::Library(library),
                None => Target::Undefined(name),
            },
            target => target,
        };
        if let Target::Library(Library::Allocate | Library::Free) = target {
            // Addresses depend on the order of calls.
            (self.kernel.heap, self.kernel.communicates) = (true, true);
        }
        let site = self.kernel.calls.len() as u32;
        self.kernel.calls.push(CallSite { target, arguments, results, base: self.frame });
        self.emit(Op::Call { site });
        Ok(())
    }

    /// An argument or result from the caller's side.
    fn argument(&mut self, operand: &Operand) -> Lowered<Passed> {
        match operand {
            Operand::Symbol(symbol, 0) => {
                let variable = match symbol {
                    Symbol::Local(id) => self.function.variables.get(id.index()),
                    Symbol::Param(id) if self.frame.is_some() => self.function.params.get(id.index()),
                    Symbol::Return(id) => self.function.returns.get(id.index()),
                    _ => None,
                };
                match variable {
                    Some(variable) if variable.space.base() == StateSpace::Param => {
                        let offset = self.place(*symbol)? as u32;
                        Ok(Passed::Frame { offset, bytes: variable.bytes().unwrap_or(0) as u32 })
                    }
                    _ => refuse("an argument must be a register, a constant or a variable in .param"),
                }
            }
            Operand::Reg(reg) => Ok(Passed::Register { slot: self.reg(*reg)?, tracked: None }),
            Operand::Imm(value) => {
                // The parameter's type is not known here; its bits are those of the widest reading.
                let bits = match value {
                    tilewright_ptx::Immediate::F32(bits) => u64::from(*bits),
                    tilewright_ptx::Immediate::F64(bits) => *bits,
                    integer => integer.int_bits().unwrap_or(0),
                };
                match self.slots.constant(64, bits) {
                    Some(slot) => Ok(Passed::Register { slot, tracked: None }),
                    None => refuse("no room for a constant"),
                }
            }
            Operand::Sink => Ok(Passed::Nothing),
            _ => refuse("an argument must be a register, a constant or a variable in .param"),
        }
    }
}
