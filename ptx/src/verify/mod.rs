//! The verifier: what a module must be before anybody executes or assembles it. It reports what it finds, up to a
//! thousand violations.
//!
//! Verified:
//! - names are PTX identifiers and unique in their scope; ids belong to their tables; what an instruction mentions is
//!   declared in an enclosing scope before it (registers, variables) or anywhere in one (labels); every label is placed
//!   once;
//! - every instruction has a form of the table; number, kind, type and length of its operands fit the form, constants
//!   fit their type and range; the guard is a predicate;
//! - a named address lies in the state space of the access; parameters of a kernel are not written; a constant address
//!   is used with `.local` only; branches go to labels, `brx.idx` to a table, calls to functions with as many
//!   arguments;
//! - variables: sizes and alignments, initial values fit, unsized arrays are external or initialised; launch directives
//!   are on kernels, positive, within the limits of the machine, and not contradictory;
//! - addresses have 64 bits; version and target provide every instruction, modifier, operand, special register and
//!   directive that is used, and the version knows the target.
//!
//! Not verified: types of call arguments beyond their number; initial values of nested arrays element by element;
//! whether control falls off the end of a function; anything about values at run time.

mod body;
mod decl;

use std::fmt;

use crate::builder::write_select_fault;
use crate::check::SelectFault;
use crate::module::{Directive, Function, Module};
use crate::types::StateSpace;
use crate::version::{PtxVersion, Requirement, Target};

/// Most violations that are reported.
const MAX_ERRORS: usize = 1000;

/// A violation.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifyError {
    /// Function it is in; empty at module level.
    pub function: String,
    /// Line of the parsed text; 0 when built.
    pub line: u32,
    /// The instruction or declaration as text; may be empty.
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
        /// What is needed.
        need: Requirement,
        /// What the module says.
        have: Requirement,
    },
    /// `.address_size` is not 64: assemblers have dropped 32-bit addresses.
    AddressSize(u8),
    /// A name is used twice in a scope.
    DuplicateName(String),
    /// A name is no PTX identifier.
    Identifier(String),
    /// Something is not declared where it is used, or an id belongs to no table.
    Undeclared(String),
    /// A label is not placed, or placed twice, or is not of the kind that the instruction takes.
    Label(String),
    /// A named address is in another state space than the access.
    Space {
        /// The name.
        name: String,
        /// Its space.
        found: StateSpace,
        /// The space of the access.
        expected: StateSpace,
    },
    /// A write to a parameter of a kernel.
    WritesParameter(String),
    /// A constant address in a space other than `.local`.
    ConstantAddress,
    /// A call with another number of arguments or results than the function has.
    CallArity {
        /// Arguments and results of the function.
        expected: (usize, usize),
        /// Arguments and results of the call.
        found: (usize, usize),
    },
    /// A declaration is wrong.
    Declaration {
        /// What is declared.
        name: String,
        /// Why it is wrong.
        why: DeclarationFault,
    },
    /// A launch directive is wrong.
    Directive {
        /// The directive.
        directive: Directive,
        /// Why it is wrong.
        why: DirectiveFault,
    },
}

/// Why a declaration is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeclarationFault {
    /// The type is none a variable can have.
    Type,
    /// The alignment in bytes is no power of two, or less than that of the element.
    Alignment(u32),
    /// Vectors have 1, 2 or 4 elements, of at most 16 bytes together.
    Vector,
    /// The size in bytes is over the limit.
    Size {
        /// The size, or `u64::MAX` when it does not fit.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The first dimension is missing, and neither `.extern` nor an initial value gives the size.
    Unsized,
    /// Such a variable has no initial value, or not one of this shape.
    Initializer,
    /// The state space is not allowed here.
    Space,
}

/// Why a directive is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectiveFault {
    /// It is for kernels only.
    NotAnEntry,
    /// A value is zero or over this limit.
    Range(u32),
    /// It contradicts another directive.
    Conflict,
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
            VerifyErrorKind::Requirement { need, have } => write!(f, "needs {need}; the module has {have}"),
            VerifyErrorKind::AddressSize(bits) => write!(f, "`.address_size` is {bits}; only 64 is supported"),
            VerifyErrorKind::DuplicateName(name) => write!(f, "`{name}` is declared twice"),
            VerifyErrorKind::Identifier(name) => write!(f, "`{name}` is no PTX identifier"),
            VerifyErrorKind::Undeclared(name) => write!(f, "`{name}` is not declared here"),
            VerifyErrorKind::Label(name) => write!(f, "label `{name}` is not placed once, or is of another kind"),
            VerifyErrorKind::Space { name, found, expected } => {
                write!(f, "`{name}` is in .{found}, the access is to .{expected}")
            }
            VerifyErrorKind::WritesParameter(name) => write!(f, "kernel parameter `{name}` is read-only"),
            VerifyErrorKind::ConstantAddress => f.write_str("a constant address is allowed in .local only"),
            VerifyErrorKind::CallArity { expected, found } => write!(
                f,
                "the call has {} arguments and {} results, the function {} and {}",
                found.0, found.1, expected.0, expected.1
            ),
            VerifyErrorKind::Declaration { name, why } => {
                write!(f, "`{name}`: ")?;
                match why {
                    DeclarationFault::Type => f.write_str("variables cannot have this type"),
                    DeclarationFault::Alignment(align) => {
                        write!(f, "alignment {align} is no power of two, or less than that of an element")
                    }
                    DeclarationFault::Vector => f.write_str("vectors have 2 or 4 elements, at most 16 bytes together"),
                    DeclarationFault::Size { bytes, limit } => write!(f, "{bytes} bytes are more than {limit}"),
                    DeclarationFault::Unsized => f.write_str("the array has no size"),
                    DeclarationFault::Initializer => f.write_str("the initial value does not fit"),
                    DeclarationFault::Space => f.write_str("this state space is not allowed here"),
                }
            }
            VerifyErrorKind::Directive { directive, why } => {
                write!(f, "{directive:?}: ")?;
                match why {
                    DirectiveFault::NotAnEntry => f.write_str("for kernels only"),
                    DirectiveFault::Range(limit) => write!(f, "values must be in 1..{limit}"),
                    DirectiveFault::Conflict => f.write_str("contradicts another directive"),
                }
            }
        }
    }
}

impl std::error::Error for VerifyError {}

/// The lowest version and target that everything in the module needs.
pub fn requirement(module: &Module) -> Requirement {
    let mut need = signature_requirements(module);
    for function in &module.functions {
        function.for_each_inst(&mut |inst| need = need.and(inst.requirement()));
    }
    need
}

/// The same of everything but instructions.
pub(crate) fn signature_requirements(module: &Module) -> Requirement {
    let all = module.functions.iter().map(decl::signature_requirement);
    all.fold(Requirement::ANCIENT, Requirement::and)
}

/// Checks a module; returns its violations, at most a thousand.
pub fn verify(module: &Module) -> Result<(), Vec<VerifyError>> {
    let mut verifier = Verifier { module, function: None, errors: Vec::new() };
    let introduced = Requirement { version: module.target.introduced(), target: Target { sm: 0, specific: false } };
    verifier.require(introduced, 0, &|| format!(".target {}", module.target));
    if module.address_size != 64 {
        verifier.report(0, String::new(), VerifyErrorKind::AddressSize(module.address_size));
    }
    verifier.declarations();
    for function in &module.functions {
        verifier.function = Some(function);
        verifier.signature(function);
        verifier.body(function);
    }
    if verifier.errors.is_empty() { Ok(()) } else { Err(verifier.errors) }
}

/// The state of a verification.
struct Verifier<'m> {
    module: &'m Module,
    function: Option<&'m Function>,
    errors: Vec<VerifyError>,
}

impl Verifier<'_> {
    fn report(&mut self, line: u32, inst: String, kind: VerifyErrorKind) {
        if self.errors.len() == MAX_ERRORS {
            return;
        }
        let function = self.function.map(|function| function.name.clone()).unwrap_or_default();
        self.errors.push(VerifyError { function, line, inst, kind });
    }

    /// Reports a need that the module's header does not meet.
    fn require(&mut self, need: Requirement, line: u32, text: &dyn Fn() -> String) {
        let (version, target): (PtxVersion, Target) = (self.module.version, self.module.target);
        if !need.met_by(version, target) {
            self.report(line, text(), VerifyErrorKind::Requirement { need, have: Requirement { version, target } });
        }
    }
}
