//! Construction of modules by a compiler.
//!
//! Registers, labels and variables belong to a [`FunctionBuilder`]; instructions go into [`Block`]s, which are detached
//! lists of statements and may be spliced in any order. The first mistake in a block is kept and comes out of
//! [`FunctionBuilder::finish`], so that lowering code needs no `?` on every line.

use std::fmt;

use tilewright_sorted::SortedMap;

use crate::check::{SelectFault, Selected, check_operands, select};
use crate::forms::Forms;
use crate::inst::{Guard, Inst};
use crate::modifier::Modifier;
use crate::module::{
    Directive, File, Function, FunctionKind, Item, Linkage, Loc, Module, RegDecl, RegEntry, RegTable, Register,
    Statement, Variable,
};
use crate::operand::FuncId;
use crate::operand::{LabelId, Operand, RegId, Symbol, VarId};
use crate::types::{ScalarType, StateSpace};
use crate::verify::{VerifyError, requirement, signature_requirements, verify};
use crate::version::Requirement;

/// An instruction that cannot be built.
#[derive(Clone, PartialEq, Debug)]
pub struct BuildError {
    /// Mnemonic with modifiers as given.
    pub mnemonic: String,
    /// What is wrong.
    pub kind: BuildErrorKind,
}

/// What is wrong with an instruction.
#[derive(Clone, PartialEq, Debug)]
pub enum BuildErrorKind {
    /// A word after the mnemonic is no modifier of any instruction.
    UnknownModifier(String),
    /// No form of the table takes the modifiers and operands.
    Select(SelectFault),
    /// A name is given twice, or is no PTX identifier.
    Name,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: ", self.mnemonic)?;
        match &self.kind {
            BuildErrorKind::UnknownModifier(word) => {
                write!(f, "no instruction has the modifier `.{word}`")
            }
            BuildErrorKind::Select(fault) => write_select_fault(fault, f),
            BuildErrorKind::Name => f.write_str("the name is taken or no PTX identifier"),
        }
    }
}

impl std::error::Error for BuildError {}

/// The words for a failed choice of form.
pub(crate) fn write_select_fault(fault: &SelectFault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        SelectFault::Mnemonic => f.write_str("no such instruction"),
        SelectFault::Modifiers => f.write_str("no form of the instruction has these modifiers"),
        SelectFault::OperandCount { found, syntax } => {
            write!(f, "{found} operands do not fit `{syntax}`")
        }
        SelectFault::Operand { index, fault, form } => {
            write!(f, "operand {}: {fault} (form `{}`)", index + 1, form.syntax)
        }
    }
}

/// Builds an instruction from its mnemonic with modifiers and its operands.
///
/// ```
/// use tilewright_ptx::{inst, RegId};
/// let (d, a) = (RegId(0), RegId(1));
/// assert_eq!(inst("add.rn.f32", [d.into(), a.into(), 1.0f32.into()]).unwrap().mnemonic(), "add.rn.f32");
/// assert!(inst("add.wide.f32", [d.into(), a.into(), a.into()]).is_err());
/// ```
pub fn inst(mnemonic: &str, operands: impl IntoIterator<Item = Operand>) -> Result<Inst, BuildError> {
    chosen(mnemonic, operands.into_iter().collect(), None)
}

/// The same; types of registers are compared when `regs` is given.
pub(crate) fn chosen(mnemonic: &str, operands: Vec<Operand>, regs: Option<&RegTable>) -> Result<Inst, BuildError> {
    let error = |kind| BuildError { mnemonic: mnemonic.to_owned(), kind };
    let mut words = mnemonic.split('.');
    let head = words.next().unwrap_or_default();
    let mut modifiers = Vec::new();
    for word in words {
        let modifier =
            Modifier::from_text(word).ok_or_else(|| error(BuildErrorKind::UnknownModifier(word.to_owned())))?;
        modifiers.push(modifier);
    }
    let chosen =
        select(head, &modifiers, &operands, regs).map_err(|rejected| error(BuildErrorKind::Select(rejected.fault)))?;
    Ok(from_form(chosen, operands))
}

pub(crate) fn from_form(selected: Selected, operands: Vec<Operand>) -> Inst {
    let Selected { form, modifiers } = selected;
    Inst { guard: None, op: form.op, form: form.index, modifiers: modifiers.into(), operands, line: 0 }
}

/// A detached list of statements.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Statement>,
    /// The first mistake.
    error: Option<BuildError>,
}

impl Block {
    /// An empty block.
    pub fn new() -> Self {
        Block::default()
    }

    /// Adds an instruction: `block.emit("add.u32", [d.into(), a.into(), 4.into()])`.
    pub fn emit(&mut self, mnemonic: &str, operands: impl IntoIterator<Item = Operand>) {
        self.add(inst(mnemonic, operands));
    }

    /// Adds an instruction that runs where `reg` is true, or false when `negated`.
    pub fn emit_if(&mut self, reg: RegId, negated: bool, mnemonic: &str, operands: impl IntoIterator<Item = Operand>) {
        self.add(inst(mnemonic, operands).map(|inst| Inst { guard: Some(Guard { reg, negated }), ..inst }));
    }

    fn add(&mut self, built: Result<Inst, BuildError>) {
        match built {
            Ok(inst) => self.statements.push(Statement::Inst(inst)),
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Adds an instruction that is built already.
    pub fn push(&mut self, inst: Inst) {
        self.statements.push(Statement::Inst(inst));
    }

    /// Places a label.
    pub fn label(&mut self, label: LabelId) {
        self.statements.push(Statement::Label(label));
    }

    /// Says where the following code comes from: `file` from [`ModuleBuilder::file`].
    pub fn loc(&mut self, file: u32, line: u32, column: u32) {
        self.statements.push(Statement::Loc(Loc { file, line, column, inlined: None }));
    }

    /// Adds a `.pragma` of this place: `nounroll` after the label of a loop keeps it one (PTX manual, "Pragma
    /// Strings").
    pub fn pragma(&mut self, text: impl Into<String>) {
        self.statements.push(Statement::Pragma(text.into()));
    }

    /// Adds a comment.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.statements.push(Statement::Comment(text.into()));
    }

    /// Adds the statements of another block at the end.
    pub fn append(&mut self, mut other: Block) {
        self.statements.append(&mut other.statements);
        if let Some(error) = other.error {
            self.error.get_or_insert(error);
        }
    }

    /// The first mistake so far.
    pub fn error(&self) -> Option<&BuildError> {
        self.error.as_ref()
    }
}

/// The registers, labels, parameters and variables of a function that is being built.
#[derive(Clone, Debug)]
pub struct FunctionBuilder {
    function: Function,
    /// Registers of each class, in order of creation.
    classes: SortedMap<RegClass, Vec<RegId>>,
    names: SortedMap<String, ()>,
    forms: Forms,
    error: Option<BuildError>,
}

/// A register class of the printed text: `%p %h %r %rd %rq %f %fd`, and `%rc` for bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RegClass {
    Pred,
    Byte,
    Half,
    Word,
    Double,
    Quad,
    F32,
    F64,
}

impl RegClass {
    fn of(ty: ScalarType) -> RegClass {
        match (ty, ty.bits()) {
            (ScalarType::Pred, _) => RegClass::Pred,
            (ScalarType::F32, _) => RegClass::F32,
            (ScalarType::F64, _) => RegClass::F64,
            (_, ..=8) => RegClass::Byte,
            (_, ..=16) => RegClass::Half,
            (_, ..=32) => RegClass::Word,
            (_, ..=64) => RegClass::Double,
            _ => RegClass::Quad,
        }
    }

    fn ty(self) -> ScalarType {
        match self {
            RegClass::Pred => ScalarType::Pred,
            RegClass::Byte => ScalarType::B8,
            RegClass::Half => ScalarType::B16,
            RegClass::Word => ScalarType::B32,
            RegClass::Double => ScalarType::B64,
            RegClass::Quad => ScalarType::B128,
            RegClass::F32 => ScalarType::F32,
            RegClass::F64 => ScalarType::F64,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            RegClass::Pred => "%p",
            RegClass::Byte => "%rc",
            RegClass::Half => "%h",
            RegClass::Word => "%r",
            RegClass::Double => "%rd",
            RegClass::Quad => "%rq",
            RegClass::F32 => "%f",
            RegClass::F64 => "%fd",
        }
    }

    const ALL: [RegClass; 8] = [
        RegClass::Pred,
        RegClass::Byte,
        RegClass::Half,
        RegClass::Word,
        RegClass::Double,
        RegClass::Quad,
        RegClass::F32,
        RegClass::F64,
    ];
}

impl FunctionBuilder {
    /// A visible kernel.
    pub fn entry(name: impl Into<String>) -> Self {
        let mut function = Function::new(FunctionKind::Entry, name);
        for class in RegClass::ALL {
            function.regs.add_name(class.prefix());
        }
        let (classes, names, forms) = (SortedMap::new(), SortedMap::new(), Forms::new());
        let mut builder = FunctionBuilder { function, classes, names, forms, error: None };
        let name = builder.function.name.clone();
        builder.claim(&name);
        builder
    }

    /// Takes a name of the function's own; a clash or a bad identifier is an error of `finish`.
    fn claim(&mut self, name: &str) {
        if !is_identifier(name) || self.names.insert(name.to_owned(), ()).is_some() {
            self.error.get_or_insert(BuildError { mnemonic: name.to_owned(), kind: BuildErrorKind::Name });
        }
    }

    fn add_param(&mut self, param: Variable) -> Symbol {
        self.claim(&param.name.clone());
        self.function.params.push(param);
        Symbol::Param(VarId((self.function.params.len() - 1) as u32))
    }

    /// A scalar parameter.
    pub fn param(&mut self, name: impl Into<String>, ty: ScalarType) -> Symbol {
        self.add_param(Variable::scalar(name, StateSpace::Param, ty))
    }

    /// A parameter of `bytes` bytes with this alignment in bytes: a tensor map is 128 bytes aligned to 64.
    pub fn param_bytes(&mut self, name: impl Into<String>, bytes: u64, align: u32) -> Symbol {
        self.add_param(Variable::array(name, StateSpace::Param, ScalarType::B8, bytes, align))
    }

    /// An array of `count` elements in this CTA's shared memory, aligned to `align` bytes.
    pub fn shared(&mut self, name: impl Into<String>, ty: ScalarType, count: u64, align: u32) -> Symbol {
        self.variable(Variable::array(name, StateSpace::Shared, ty, count, align))
    }

    /// Any variable of the function's body, declared at its start.
    pub fn variable(&mut self, variable: Variable) -> Symbol {
        self.claim(&variable.name.clone());
        self.function.variables.push(variable);
        Symbol::Local(VarId((self.function.variables.len() - 1) as u32))
    }

    /// Adds a launch or performance directive.
    pub fn directive(&mut self, directive: Directive) {
        self.function.directives.push(directive);
    }

    /// A fresh register that holds values of this type. Registers come in the classes `%p` predicates, `%h` 16 bits,
    /// `%r` 32, `%rd` 64, `%rq` 128, `%f` f32, `%fd` f64; all but the last two and predicates are untyped bits.
    pub fn reg(&mut self, ty: ScalarType) -> RegId {
        let class = RegClass::of(ty);
        let of_class = self.classes.entry(class).or_default();
        let register = Register { ty: class.ty(), name: class as u32, number: Some(of_class.len() as u32) };
        let reg = self.function.regs.add(register);
        of_class.push(reg);
        reg
    }

    /// `count` fresh registers.
    pub fn regs(&mut self, ty: ScalarType, count: usize) -> Vec<RegId> {
        (0..count).map(|_| self.reg(ty)).collect()
    }

    /// Declared type of a register: the untyped bits of its class, `f32`, `f64` or `pred`.
    pub fn reg_type(&self, reg: RegId) -> Option<ScalarType> {
        self.function.regs.ty(reg)
    }

    /// A fresh label; `hint` becomes part of its name. It still has to be placed with [`Block::label`].
    pub fn label(&mut self, hint: &str) -> LabelId {
        let hint: String = hint.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        self.function.labels.push(format!("$L{}_{hint}", self.function.labels.len()));
        LabelId((self.function.labels.len() - 1) as u32)
    }

    /// An instruction of this function, whose registers are known by now: its form is the one that takes them.
    pub fn inst(&mut self, mnemonic: &str, operands: Vec<Operand>) -> Result<Inst, BuildError> {
        self.forms.inst(mnemonic, operands, &self.function.regs)
    }

    /// The function with this body; declarations of registers and variables are put before it.
    pub fn finish(self, body: Block) -> Result<Function, BuildError> {
        let mut function = self.with_body(body)?;
        let mut statements = std::mem::take(&mut function.body);
        reselect(&mut statements, &function)?;
        function.body = statements;
        Ok(function)
    }

    /// The same of a body that has instructions of [`FunctionBuilder::inst`] alone, and what they need.
    pub fn finish_chosen(self, body: Block) -> Result<(Function, Requirement), BuildError> {
        let need = self.forms.need;
        Ok((self.with_body(body)?, need))
    }

    fn with_body(mut self, body: Block) -> Result<Function, BuildError> {
        if let Some(error) = self.error.or(body.error) {
            return Err(error);
        }
        let declarations = self.classes.iter().map(|(class, regs)| {
            let entry = RegEntry::Range { prefix: class.prefix().to_owned(), regs: regs.clone() };
            Statement::Regs(RegDecl { ty: class.ty(), entries: vec![entry] })
        });
        let variables = (0..self.function.variables.len()).map(|index| Statement::Variable(VarId(index as u32)));
        let mut statements: Vec<Statement> = declarations.chain(variables).collect();
        statements.extend(body.statements);
        self.function.body = statements;
        Ok(self.function)
    }
}

/// Chooses forms again, now that the types of all registers are known.
fn reselect(statements: &mut [Statement], function: &Function) -> Result<(), BuildError> {
    for statement in statements {
        match statement {
            // The form that was chosen without types still fits: those before it did not fit even without.
            Statement::Inst(inst)
                if check_operands(inst.form(), &inst.modifiers, &inst.operands, Some(&function.regs)).is_ok() => {}
            Statement::Inst(inst) => {
                let chosen = select(inst.form().mnemonic, &inst.modifiers, &inst.operands, Some(&function.regs));
                let Selected { form, modifiers } = chosen.map_err(|rejected| BuildError {
                    mnemonic: inst.mnemonic(),
                    kind: BuildErrorKind::Select(rejected.fault),
                })?;
                inst.op = form.op;
                inst.form = form.index;
                inst.modifiers = modifiers.into();
            }
            Statement::Scope(inner) => reselect(inner, function)?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether the text is a PTX identifier (4.4).
pub(crate) fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    let follow = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    match bytes.next() {
        Some(first) if first.is_ascii_alphabetic() => bytes.all(follow),
        Some(b'_' | b'$' | b'%') => text.len() > 1 && bytes.all(follow),
        _ => false,
    }
}

/// A module that is being built.
#[derive(Clone, Debug)]
pub struct ModuleBuilder {
    module: Module,
    floor: Requirement,
    files: u32,
}

impl ModuleBuilder {
    /// An empty module that will need at least `floor`.
    pub fn new(floor: Requirement) -> Self {
        ModuleBuilder { module: Module::new(floor.version, floor.target), floor, files: 0 }
    }

    /// A comment line after the header.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.module.comments.push(text.into());
    }

    /// A source file for [`Block::loc`]. Quotes and line ends in the name become `_`.
    pub fn file(&mut self, name: &str) -> u32 {
        self.files += 1;
        let name = name.replace(['"', '\n', '\r'], "_");
        self.module.items.push(Item::File(File { index: self.files, name, stamp: None }));
        self.files
    }

    /// A variable of the module, for instance `.extern .shared` memory sized at launch.
    pub fn variable(&mut self, variable: Variable) -> Symbol {
        self.module.variables.push(variable);
        let id = VarId((self.module.variables.len() - 1) as u32);
        self.module.items.push(Item::Variable(id));
        Symbol::Global(id)
    }

    /// Shared memory whose size is given at launch: `.extern .shared .align N .b8 name[];`
    pub fn dynamic_shared(&mut self, name: impl Into<String>, align: u32) -> Symbol {
        let array = Variable::array(name, StateSpace::Shared, ScalarType::B8, 0, align);
        self.variable(Variable { linkage: Linkage::Extern, ..array })
    }

    /// A finished function.
    pub fn function(&mut self, function: Function) -> FuncId {
        self.module.functions.push(function);
        let id = FuncId((self.module.functions.len() - 1) as u32);
        self.module.items.push(Item::Function(id));
        id
    }

    /// Something needs at least this.
    pub fn need(&mut self, need: Requirement) {
        self.floor = self.floor.and(need);
    }

    /// The module, with the lowest `.version` and `.target` (not below the floor) that its instructions need, verified.
    pub fn finish(self) -> Result<Module, Vec<VerifyError>> {
        let need = requirement(&self.module);
        let module = self.finish_needing(need);
        verify(&module)?;
        Ok(module)
    }

    /// The same, taken as it is, where it was said what its instructions need.
    pub fn finish_as_said(self) -> Module {
        let need = signature_requirements(&self.module);
        self.finish_needing(need)
    }

    fn finish_needing(mut self, need: Requirement) -> Module {
        let need = need.and(self.floor);
        self.module.target = need.target;
        self.module.version = need.version.max(need.target.introduced());
        self.module
    }
}
