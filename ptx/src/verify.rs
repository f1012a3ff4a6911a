//! The verifier. Not yet complete; see the list.
//!
//! Verified: every instruction has a form of the table; number, kind, type and constants of its operands fit the form; the guard
//! is a predicate; version and target provide what is used.

use std::fmt;

use crate::builder::write_select_fault;
use crate::check::{OperandFault, SelectFault, check_operands};
use crate::inst::Inst;
use crate::module::{Function, Module};
use crate::types::ScalarType;
use crate::version::Requirement;

/// A violation.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifyError {
    /// Function it is in; empty at module level.
    pub function: String,
    /// Line of the parsed text; 0 when built.
    pub line: u32,
    /// The instruction as text, if it is one.
    pub inst: String,
    /// What is wrong.
    pub kind: VerifyErrorKind,
}

/// What is wrong.
#[derive(Clone, PartialEq, Debug)]
pub enum VerifyErrorKind {
    /// Modifiers or operands fit no form.
    Form(SelectFault),
    /// The guard is no predicate of this function.
    Guard,
    /// The module's version or target does not provide something.
    Requirement {
        /// What the instruction needs.
        need: Requirement,
        /// What the module says.
        have: Requirement,
    },
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.function.is_empty() {
            write!(f, "in `{}`: ", self.function)?;
        }
        if !self.inst.is_empty() {
            write!(f, "`{}`: ", self.inst)?;
        }
        match &self.kind {
            VerifyErrorKind::Form(fault) => write_select_fault(fault, f),
            VerifyErrorKind::Guard => f.write_str("the guard is no predicate register of this function"),
            VerifyErrorKind::Requirement { need, have } => {
                write!(f, "needs {need}; the module has {have}")
            }
        }
    }
}

impl std::error::Error for VerifyError {}

/// The lowest version and target that everything in the module needs.
pub fn requirement(module: &Module) -> Requirement {
    let mut need = Requirement::ANCIENT;
    for function in &module.functions {
        function.for_each_inst(&mut |inst| need = need.and(inst.requirement()));
    }
    need
}

/// Checks a module; returns every violation.
pub fn verify(module: &Module) -> Result<(), Vec<VerifyError>> {
    let mut errors = Vec::new();
    for function in &module.functions {
        function.for_each_inst(&mut |inst| verify_inst(module, function, inst, &mut errors));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn verify_inst(module: &Module, function: &Function, inst: &Inst, errors: &mut Vec<VerifyError>) {
    let mut report = |kind| {
        errors.push(VerifyError {
            function: function.name.clone(),
            line: inst.line,
            inst: crate::print::inst_text(module, function, inst),
            kind,
        });
    };
    if let Some(guard) = inst.guard
        && function.regs.ty(guard.reg) != Some(ScalarType::Pred)
    {
        report(VerifyErrorKind::Guard);
    }
    let form = inst.form();
    if form.arrange(&inst.modifiers, false).is_none() {
        report(VerifyErrorKind::Form(SelectFault::Modifiers));
        return;
    }
    match check_operands(form, &inst.modifiers, &inst.operands, Some(&function.regs)) {
        Ok(()) => {}
        Err(None) => {
            report(VerifyErrorKind::Form(SelectFault::OperandCount { found: inst.operands.len(), syntax: form.syntax }))
        }
        Err(Some((index, fault))) => {
            let fault: OperandFault = fault;
            report(VerifyErrorKind::Form(SelectFault::Operand { index, fault, form }));
        }
    }
    let need = inst.requirement();
    if !need.met_by(module.version, module.target) {
        report(VerifyErrorKind::Requirement {
            need,
            have: Requirement { version: module.version, target: module.target },
        });
    }
}
