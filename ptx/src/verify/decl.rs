//! Declarations: names and variables of the module, signatures and directives of functions.

use tilewright_sorted::SortedSet;

use super::{DeclarationFault, DirectiveFault, Verifier, VerifyErrorKind};
use crate::builder::is_identifier;
use crate::module::{Directive, Function, FunctionKind, Initializer, Item, Linkage, Variable};
use crate::operand::{Immediate, Symbol};
use crate::types::{ScalarType, StateSpace};
use crate::version::{PtxVersion, Requirement, Target};

/// Most threads of a CTA (CUDA programming guide, technical specifications).
const MAX_THREADS: u32 = 1024;
/// Most CTAs of a cluster with non-portable sizes.
const MAX_CLUSTER: u32 = 16;
/// Bytes of kernel parameters: 4096, from PTX 8.1 and sm_70 on 32764 (5.1.6).
const MAX_PARAMS: u64 = 4096;
const MAX_PARAMS_LARGE: u64 = 32764;
/// Bytes of shared memory that a variable can have on any machine: what `.shared` declarations are limited to
/// statically is less, and the driver's business.
const MAX_SHARED: u64 = 1 << 20;
/// Bytes of any other variable: the address space of a device, generously.
const MAX_BYTES: u64 = 1 << 40;

/// What the signature and directives of a function need.
pub(super) fn signature_requirement(function: &Function) -> Requirement {
    let mut need = Requirement::ANCIENT;
    for directive in &function.directives {
        need = need.and(directive_requirement(directive));
    }
    if function.kind == FunctionKind::Entry && param_bytes(function) > MAX_PARAMS {
        need = need.and(Requirement { version: PtxVersion::new(8, 1), target: Target::sm(70) });
    }
    need
}

fn directive_requirement(directive: &Directive) -> Requirement {
    match directive {
        Directive::Reqnctapercluster(_) | Directive::Explicitcluster | Directive::Maxclusterrank(_) => {
            Requirement { version: PtxVersion::new(7, 8), target: Target::sm(90) }
        }
        Directive::Noreturn => Requirement { version: PtxVersion::new(6, 4), ..Requirement::ANCIENT },
        Directive::Maxntid(_)
        | Directive::Reqntid(_)
        | Directive::Minnctapersm(_)
        | Directive::Maxnctapersm(_)
        | Directive::Maxnreg(_)
        | Directive::Pragma(_) => Requirement::ANCIENT,
    }
}

/// Size of the parameters with their alignment, saturating.
fn param_bytes(function: &Function) -> u64 {
    function.params.iter().fold(0u64, |end, param| {
        let start = end.checked_next_multiple_of(u64::from(param.align.max(1))).unwrap_or(u64::MAX);
        start.saturating_add(param.bytes().unwrap_or(u64::MAX))
    })
}

impl Verifier<'_> {
    /// Module level.
    pub(super) fn declarations(&mut self) {
        let module = self.module;
        let mut names = SortedSet::new();
        let variables = module.variables.iter().map(|variable| (&variable.name, variable.line));
        let functions = module.functions.iter().map(|function| (&function.name, function.line));
        for (name, line) in variables.chain(functions) {
            self.name(name, line, &mut names);
        }
        for variable in &module.variables {
            let ok = matches!(
                variable.space,
                StateSpace::Global | StateSpace::Const | StateSpace::Shared | StateSpace::Local
            );
            self.variable(variable, ok);
        }
        for item in &module.items {
            let (known, name) = match item {
                Item::Variable(id) => (id.index() < module.variables.len(), "variable"),
                Item::Function(id) | Item::Prototype(id) => (id.index() < module.functions.len(), "function"),
                Item::File(_) | Item::Pragma(_) => (true, ""),
            };
            if !known {
                self.report(0, String::new(), VerifyErrorKind::Undeclared(name.to_owned()));
            }
        }
    }

    /// A name that must be an identifier and new in `names`.
    pub(super) fn name(&mut self, name: &str, line: u32, names: &mut SortedSet<String>) {
        if !is_identifier(name) {
            self.report(line, String::new(), VerifyErrorKind::Identifier(name.to_owned()));
        }
        if !names.insert(name.to_owned()) {
            self.report(line, String::new(), VerifyErrorKind::DuplicateName(name.to_owned()));
        }
    }

    /// A variable in a space that is allowed where it is, or not.
    pub(super) fn variable(&mut self, variable: &Variable, space_ok: bool) {
        let mut faults = Vec::new();
        if !space_ok {
            faults.push(DeclarationFault::Space);
        }
        let register = variable.space == StateSpace::Reg;
        if !variable.ty.is_fundamental() || (variable.ty == ScalarType::Pred && !register) {
            faults.push(DeclarationFault::Type);
        }
        if !variable.align.is_power_of_two() || (variable.align < variable.ty.bytes() && !register) {
            faults.push(DeclarationFault::Alignment(variable.align));
        }
        let vector_bytes = u32::from(variable.vector) * variable.ty.bytes();
        if !matches!(variable.vector, 1 | 2 | 4) || (variable.vector > 1 && vector_bytes > 16) {
            faults.push(DeclarationFault::Vector);
        }
        let limit = if variable.space == StateSpace::Shared { MAX_SHARED } else { MAX_BYTES };
        match variable.bytes() {
            Some(bytes) if bytes <= limit => {}
            bytes => faults.push(DeclarationFault::Size { bytes: bytes.unwrap_or(u64::MAX), limit }),
        }
        let missing = variable.dims.first() == Some(&0);
        let parameter = variable.space.base() == StateSpace::Param;
        if (missing && variable.linkage != Linkage::Extern && variable.init.is_none() && !parameter)
            || variable.dims.iter().skip(1).any(|dim| *dim == 0)
        {
            faults.push(DeclarationFault::Unsized);
        }
        if let Some(init) = &variable.init {
            let initialised_space = matches!(variable.space, StateSpace::Global | StateSpace::Const);
            if !initialised_space || !self.initializer(init, variable) {
                faults.push(DeclarationFault::Initializer);
            }
        }
        for why in faults {
            let kind = VerifyErrorKind::Declaration { name: variable.name.clone(), why };
            self.report(variable.line, String::new(), kind);
        }
    }

    /// Whether the value has no more elements than the variable and every element is of its type.
    fn initializer(&self, init: &Initializer, variable: &Variable) -> bool {
        let (count, fits) = self.leaves(init, variable.ty);
        let capacity = variable.dims.iter().try_fold(u64::from(variable.vector), |size, dim| size.checked_mul(*dim));
        let unsized_array = variable.dims.first() == Some(&0);
        let shape = match init {
            Initializer::List(_) => !variable.dims.is_empty() || variable.vector > 1,
            _ => variable.dims.is_empty() && variable.vector == 1,
        };
        fits && shape && (unsized_array || capacity.is_some_and(|capacity| count <= capacity))
    }

    /// Number of constants, and whether each fits the type. The parser bounds the nesting.
    fn leaves(&self, init: &Initializer, ty: ScalarType) -> (u64, bool) {
        match init {
            Initializer::Imm(Immediate::F32(_) | Immediate::F64(_)) => {
                (1, matches!(ty, ScalarType::F32 | ScalarType::F64))
            }
            Initializer::Imm(value) => {
                let number = value.int_value().unwrap_or(i128::MAX);
                let bits = ty.bits().min(64);
                let range = -(1i128 << (bits - 1))..(1i128 << bits);
                (1, range.contains(&number) && !ty.is_float())
            }
            Initializer::Symbol { symbol, .. } => {
                let known = match symbol {
                    Symbol::Global(id) => id.index() < self.module.variables.len(),
                    Symbol::Function(id) => id.index() < self.module.functions.len(),
                    Symbol::Param(_) | Symbol::Return(_) | Symbol::Local(_) => false,
                };
                (1, known && matches!(ty.bits(), 8 | 32 | 64) && !ty.is_float())
            }
            Initializer::List(values) => values
                .iter()
                .map(|value| self.leaves(value, ty))
                .fold((0, true), |(count, all), (more, fits)| (count + more, all && fits)),
        }
    }

    /// Parameters and directives of a function.
    pub(super) fn signature(&mut self, function: &Function) {
        let entry = function.kind == FunctionKind::Entry;
        for param in function.params.iter().chain(&function.returns) {
            let ok = param.space == StateSpace::Param || (param.space == StateSpace::Reg && !entry);
            self.variable(param, ok);
        }
        if entry && param_bytes(function) > MAX_PARAMS_LARGE {
            let why = DeclarationFault::Size { bytes: param_bytes(function), limit: MAX_PARAMS_LARGE };
            let kind = VerifyErrorKind::Declaration { name: function.name.clone(), why };
            self.report(function.line, String::new(), kind);
        }
        self.require(signature_requirement(function), function.line, &|| format!("directives of {}", function.name));
        for (index, directive) in function.directives.iter().enumerate() {
            if let Some(why) = directive_fault(directive, &function.directives[..index], entry) {
                let kind = VerifyErrorKind::Directive { directive: directive.clone(), why };
                self.report(function.line, String::new(), kind);
            }
        }
    }
}

fn directive_fault(directive: &Directive, earlier: &[Directive], entry: bool) -> Option<DirectiveFault> {
    let product = |values: &[u32]| values.iter().try_fold(1u32, |product, value| product.checked_mul(*value));
    let in_range = |values: &[u32], limit: u32| {
        !values.is_empty() && values.len() <= 3 && product(values).is_some_and(|product| (1..=limit).contains(&product))
    };
    let threads = |directive: &Directive| matches!(directive, Directive::Maxntid(_) | Directive::Reqntid(_));
    let cluster =
        |directive: &Directive| matches!(directive, Directive::Reqnctapercluster(_) | Directive::Maxclusterrank(_));
    let ok = match directive {
        Directive::Pragma(_) => return None,
        Directive::Noreturn => return entry.then_some(DirectiveFault::Conflict),
        _ if !entry => return Some(DirectiveFault::NotAnEntry),
        Directive::Explicitcluster => return None,
        Directive::Maxntid(values) | Directive::Reqntid(values) => {
            if earlier.iter().any(threads) {
                return Some(DirectiveFault::Conflict);
            }
            (in_range(values, MAX_THREADS), MAX_THREADS)
        }
        Directive::Reqnctapercluster(values) => {
            if earlier.iter().any(cluster) {
                return Some(DirectiveFault::Conflict);
            }
            (in_range(values, MAX_CLUSTER), MAX_CLUSTER)
        }
        Directive::Maxclusterrank(value) => {
            if earlier.iter().any(cluster) {
                return Some(DirectiveFault::Conflict);
            }
            (in_range(&[*value], MAX_CLUSTER), MAX_CLUSTER)
        }
        Directive::Minnctapersm(value) | Directive::Maxnctapersm(value) => (in_range(&[*value], 32), 32),
        Directive::Maxnreg(value) => (in_range(&[*value], 255), 255),
    };
    (!ok.0).then_some(DirectiveFault::Range(ok.1))
}
