//! Bodies: scopes, labels, instructions.

use tilewright_sorted::{SortedMap, SortedSet};

use super::{Verifier, VerifyErrorKind};
use crate::check::{SelectFault, check_operands};
use crate::inst::Inst;
use crate::isa::{Control, Op, OperandKind, OperandSpec};
use crate::module::{Function, FunctionKind, RegEntry, Statement, Variable};
use crate::operand::{AddressBase, LabelId, Operand, RegId, Symbol, VarId};
use crate::print::{inst_text, symbol_name};
use crate::types::{ScalarType, StateSpace};

/// What a label names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LabelKind {
    Place,
    Table,
    Prototype { params: usize, returns: usize },
}

/// What is declared in a function so far.
struct Scopes {
    /// Registers and variables that may be used here.
    regs: SortedSet<RegId>,
    variables: SortedSet<VarId>,
    /// Labels that may be used here: those of the enclosing scopes.
    labels: SortedMap<LabelId, LabelKind>,
    /// Every label placed so far, in any scope.
    placed: SortedSet<LabelId>,
}

impl<'m> Verifier<'m> {
    pub(super) fn body(&mut self, function: &'m Function) {
        let mut names = SortedSet::new();
        let mut regs = SortedSet::new();
        for param in function.returns.iter().chain(&function.params) {
            self.name(&param.name, param.line, &mut names);
            if param.space == StateSpace::Reg {
                // Register parameters are the first registers of the table.
                regs.insert(RegId(regs.len() as u32));
            }
        }
        let mut scopes =
            Scopes { regs, variables: SortedSet::new(), labels: SortedMap::new(), placed: SortedSet::new() };
        self.scope(function, &function.body, &mut scopes, names);
    }

    /// One scope; what it declares is forgotten at its end.
    fn scope(
        &mut self,
        function: &'m Function,
        statements: &'m [Statement],
        scopes: &mut Scopes,
        mut names: SortedSet<String>,
    ) {
        let mut labels = Vec::new();
        for statement in statements {
            let (label, kind) = match statement {
                Statement::Label(label) => (*label, LabelKind::Place),
                Statement::BranchTargets { label, .. } => (*label, LabelKind::Table),
                Statement::CallPrototype { label, returns, params } => {
                    (*label, LabelKind::Prototype { params: params.len(), returns: returns.len() })
                }
                _ => continue,
            };
            let Some(name) = function.labels.get(label.index()) else {
                self.report(0, String::new(), VerifyErrorKind::Undeclared(format!("label {}", label.0)));
                continue;
            };
            self.name(name, 0, &mut names);
            if !scopes.placed.insert(label) {
                self.report(0, String::new(), VerifyErrorKind::Label(name.clone()));
            }
            scopes.labels.insert(label, kind);
            labels.push(label);
        }
        let mut ranges = SortedSet::new();
        let mut declared_regs = Vec::new();
        let mut declared_variables = Vec::new();
        for statement in statements {
            match statement {
                Statement::Inst(inst) => self.inst(function, inst, scopes),
                Statement::Regs(decl) => {
                    for entry in &decl.entries {
                        let declared = match entry {
                            RegEntry::Single(reg) => {
                                self.name(&function.regs.name(*reg), 0, &mut names);
                                std::slice::from_ref(reg)
                            }
                            RegEntry::Range { prefix, regs } => {
                                // `%r<4>` does not take the name `%r` itself.
                                self.name(prefix, 0, &mut ranges);
                                regs.as_slice()
                            }
                        };
                        for (number, reg) in declared.iter().enumerate() {
                            let right = match entry {
                                RegEntry::Single(_) => true,
                                RegEntry::Range { prefix, .. } => function.regs.is_numbered(*reg, prefix, number),
                            };
                            if function.regs.ty(*reg) != Some(decl.ty) || !right || !scopes.regs.insert(*reg) {
                                let name = function.regs.name(*reg);
                                self.report(0, String::new(), VerifyErrorKind::DuplicateName(name));
                            }
                            declared_regs.push(*reg);
                        }
                    }
                }
                Statement::Variable(id) => match function.variables.get(id.index()) {
                    None => self.report(0, String::new(), VerifyErrorKind::Undeclared(format!("variable {}", id.0))),
                    Some(variable) => {
                        self.name(&variable.name, variable.line, &mut names);
                        let ok = matches!(
                            variable.space,
                            StateSpace::Shared
                                | StateSpace::Local
                                | StateSpace::Param
                                | StateSpace::Global
                                | StateSpace::Const
                        );
                        self.variable(variable, ok);
                        scopes.variables.insert(*id);
                        declared_variables.push(*id);
                    }
                },
                Statement::Scope(inner) => self.scope(function, inner, scopes, SortedSet::new()),
                Statement::BranchTargets { targets, .. } => {
                    for target in targets {
                        self.label(function, *target, &scopes.labels, |kind| kind == LabelKind::Place, 0, &String::new);
                    }
                }
                Statement::CallPrototype { .. }
                | Statement::Label(_)
                | Statement::Loc(_)
                | Statement::Pragma(_)
                | Statement::Comment(_) => {}
            }
        }
        // The last ones first: to take a million registers from the front would move all that follow, each time.
        for label in labels.into_iter().rev() {
            scopes.labels.remove(&label);
        }
        for reg in declared_regs.into_iter().rev() {
            scopes.regs.remove(&reg);
        }
        for variable in declared_variables.into_iter().rev() {
            scopes.variables.remove(&variable);
        }
    }

    fn label(
        &mut self,
        function: &Function,
        label: LabelId,
        labels: &SortedMap<LabelId, LabelKind>,
        fits: impl Fn(LabelKind) -> bool,
        line: u32,
        text: &dyn Fn() -> String,
    ) {
        if !labels.get(&label).is_some_and(|kind| fits(*kind)) {
            let name = function.labels.get(label.index()).cloned().unwrap_or_else(|| format!("label {}", label.0));
            self.report(line, text(), VerifyErrorKind::Label(name));
        }
    }

    fn inst(&mut self, function: &'m Function, inst: &Inst, scopes: &Scopes) {
        let module = self.module;
        let text = || inst_text(module, function, inst);
        if let Some(guard) = inst.guard {
            if function.regs.ty(guard.reg) != Some(ScalarType::Pred) {
                self.report(inst.line, text(), VerifyErrorKind::Guard);
            } else if !scopes.regs.contains(&guard.reg) {
                let name = function.regs.name(guard.reg);
                self.report(inst.line, text(), VerifyErrorKind::Undeclared(name));
            }
        }
        let Some(form) = inst.op.forms().get(usize::from(inst.form)) else {
            self.report(inst.line, String::new(), VerifyErrorKind::Form(SelectFault::Modifiers));
            return;
        };
        if form.arrange(&inst.modifiers, false).is_none() {
            self.report(inst.line, text(), VerifyErrorKind::Form(SelectFault::Modifiers));
            return;
        }
        let fault = match check_operands(form, &inst.modifiers, &inst.operands, Some(&function.regs)) {
            Ok(()) => None,
            Err(None) => Some(SelectFault::OperandCount { found: inst.operands.len(), syntax: form.syntax }),
            Err(Some((index, fault))) => Some(SelectFault::Operand { index, fault, form }),
        };
        if let Some(fault) = fault {
            self.report(inst.line, text(), VerifyErrorKind::Form(fault));
            return;
        }
        self.require(inst.requirement(), inst.line, &text);
        let mut undeclared = Vec::new();
        for operand in &inst.operands {
            operand.for_each_reg(&mut |reg| {
                if !scopes.regs.contains(&reg) {
                    undeclared.push(function.regs.name(reg));
                }
            });
            for symbol in symbols(operand) {
                let known = match symbol {
                    Symbol::Global(id) => id.index() < module.variables.len(),
                    Symbol::Param(id) => id.index() < function.params.len(),
                    Symbol::Return(id) => id.index() < function.returns.len(),
                    Symbol::Local(id) => scopes.variables.contains(&id),
                    Symbol::Function(id) => id.index() < module.functions.len(),
                };
                if !known {
                    undeclared.push(symbol_name(module, Some(function), symbol).to_owned());
                }
            }
        }
        for name in undeclared {
            self.report(inst.line, text(), VerifyErrorKind::Undeclared(name));
        }
        let Some(specs) = form.bind(&inst.modifiers, inst.operands.len()) else { return };
        for (spec, operand) in specs.zip(&inst.operands) {
            self.place(function, inst, spec, operand, scopes);
        }
        if let Op::Control(Control::Call) = inst.op {
            self.call(function, inst, scopes);
        }
    }

    /// Addresses and labels.
    fn place(&mut self, function: &'m Function, inst: &Inst, spec: &OperandSpec, operand: &Operand, scopes: &Scopes) {
        let module = self.module;
        let text = || inst_text(module, function, inst);
        match (&spec.kind, operand) {
            (OperandKind::Address(space), Operand::Address(address)) => {
                let access = space.or_else(|| inst.space()).map(StateSpace::base);
                match address.base {
                    AddressBase::Reg(_) => {}
                    AddressBase::Absolute => {
                        if access != Some(StateSpace::Local) {
                            self.report(inst.line, text(), VerifyErrorKind::ConstantAddress);
                        }
                    }
                    AddressBase::Symbol(symbol) => {
                        self.symbol_space(function, inst, symbol, access);
                        let writes = spec.written || inst.effect() == crate::isa::Effect::Write;
                        if let Symbol::Param(_) = symbol
                            && writes
                            && function.kind == FunctionKind::Entry
                        {
                            let name = symbol_name(module, Some(function), symbol).to_owned();
                            self.report(inst.line, text(), VerifyErrorKind::WritesParameter(name));
                        }
                    }
                }
            }
            (OperandKind::Any, Operand::Symbol(symbol, _)) if inst.space().is_some() => {
                // `cvta.shared`, `mapa.shared::cluster`: the address of a variable of that space.
                self.symbol_space(function, inst, *symbol, inst.space().map(StateSpace::base));
            }
            (OperandKind::Label, Operand::Label(label)) => {
                self.label(function, *label, &scopes.labels, |kind| kind == LabelKind::Place, inst.line, &text);
            }
            (OperandKind::Table, Operand::Label(label)) => {
                let branch = inst.op == Op::Control(Control::BrxIdx);
                let fits = |kind| match kind {
                    LabelKind::Table => branch,
                    LabelKind::Prototype { .. } => !branch,
                    LabelKind::Place => false,
                };
                self.label(function, *label, &scopes.labels, fits, inst.line, &text);
            }
            _ => {}
        }
    }

    /// A named address must lie in the space of the access; a generic access may name anything.
    fn symbol_space(&mut self, function: &'m Function, inst: &Inst, symbol: Symbol, access: Option<StateSpace>) {
        let module = self.module;
        let of = |variables: &[Variable], id: VarId| variables.get(id.index()).map(|variable| variable.space.base());
        let found = match symbol {
            Symbol::Global(id) => of(&module.variables, id),
            Symbol::Param(id) => of(&function.params, id),
            Symbol::Return(id) => of(&function.returns, id),
            Symbol::Local(id) => of(&function.variables, id),
            Symbol::Function(_) => None,
        };
        let (Some(found), Some(expected)) = (found, access) else { return };
        if found != expected {
            let name = symbol_name(module, Some(function), symbol).to_owned();
            let kind = VerifyErrorKind::Space { name, found, expected };
            self.report(inst.line, inst_text(module, function, inst), kind);
        }
    }

    /// A call passes as many arguments and takes as many results as the function has.
    fn call(&mut self, function: &'m Function, inst: &Inst, scopes: &Scopes) {
        let module = self.module;
        let mut lists = (0, 0);
        let mut after_callee = false;
        let mut expected = None;
        for operand in &inst.operands {
            match operand {
                Operand::List(elements) if after_callee => lists.0 = elements.len(),
                Operand::List(elements) => lists.1 = elements.len(),
                Operand::Symbol(Symbol::Function(id), _) => {
                    after_callee = true;
                    let callee = module.functions.get(id.index());
                    expected = callee.map(|callee| (callee.params.len(), callee.returns.len()));
                }
                Operand::Label(label) => {
                    if let Some(LabelKind::Prototype { params, returns }) = scopes.labels.get(label) {
                        expected = Some((*params, *returns));
                    }
                }
                _ => after_callee = true,
            }
        }
        match expected {
            Some(expected) if expected == lists => {}
            Some(expected) => {
                let kind = VerifyErrorKind::CallArity { expected, found: lists };
                self.report(inst.line, inst_text(module, function, inst), kind);
            }
            // A call through a register needs a prototype.
            None => {
                let kind = VerifyErrorKind::Undeclared("prototype of the call".to_owned());
                self.report(inst.line, inst_text(module, function, inst), kind);
            }
        }
    }
}

/// Every symbol of an operand.
fn symbols(operand: &Operand) -> Vec<Symbol> {
    let of_address = |base: AddressBase| match base {
        AddressBase::Symbol(symbol) => vec![symbol],
        AddressBase::Reg(_) | AddressBase::Absolute => Vec::new(),
    };
    match operand {
        Operand::Symbol(symbol, _) => vec![*symbol],
        Operand::Address(address) | Operand::Tensor(address, _) => of_address(address.base),
        Operand::List(elements) | Operand::Vector(elements) => elements.iter().flat_map(symbols).collect(),
        Operand::Reg(_)
        | Operand::NotReg(_)
        | Operand::Sink
        | Operand::Imm(_)
        | Operand::Special(_)
        | Operand::Pair(..)
        | Operand::Label(_) => Vec::new(),
    }
}
