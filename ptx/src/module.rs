//! A PTX module as data: variables, functions, declarations and statements.

use crate::inst::Inst;
use crate::operand::{FuncId, Immediate, LabelId, RegId, Symbol, VarId};
use crate::types::{ScalarType, StateSpace};
use crate::version::{PtxVersion, Target};

/// A PTX module.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    /// `.version`.
    pub version: PtxVersion,
    /// `.target`.
    pub target: Target,
    /// `.address_size`: 32 or 64.
    pub address_size: u8,
    /// Comment lines printed after the header, without `//`; not kept by the parser.
    pub comments: Vec<String>,
    /// Variables outside functions.
    pub variables: Vec<Variable>,
    /// Functions; a prototype and its later definition are one entry.
    pub functions: Vec<Function>,
    /// Order of everything at module level.
    pub items: Vec<Item>,
    /// Names of functions that were inlined: the strings of the section `.debug_str`, which is read and not printed.
    pub strings: DebugStrings,
}

/// The section `.debug_str`: strings that end in a zero, and labels in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DebugStrings {
    pub(crate) bytes: Vec<u8>,
    pub(crate) labels: Vec<(String, usize)>,
}

impl DebugStrings {
    /// The string at an offset behind a label.
    pub fn get(&self, label: &str, offset: i64) -> Option<&str> {
        let (_, start) = self.labels.iter().find(|(name, _)| name == label)?;
        let bytes = self.bytes.get(start.checked_add_signed(isize::try_from(offset).ok()?)?..)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok()
    }
}

impl Module {
    /// An empty module.
    pub fn new(version: PtxVersion, target: Target) -> Self {
        Module {
            version,
            target,
            address_size: 64,
            comments: Vec::new(),
            variables: Vec::new(),
            functions: Vec::new(),
            items: Vec::new(),
            strings: DebugStrings::default(),
        }
    }

    /// The function with this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

/// A module-level item.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A variable.
    Variable(VarId),
    /// A declaration without a body of a function.
    Prototype(FuncId),
    /// A function with its body.
    Function(FuncId),
    /// A source file of `.loc`.
    File(File),
    /// A module-wide `.pragma`.
    Pragma(String),
}

/// `.file index "name"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Number used by `.loc`.
    pub index: u32,
    /// File name.
    pub name: String,
    /// Time stamp and size, if given.
    pub stamp: Option<(u64, u64)>,
}

/// Linking directive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// None: visible in this module.
    Internal,
    /// `.visible`.
    Visible,
    /// `.extern`.
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

/// A variable in a state space other than registers, or a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where it lives.
    pub space: StateSpace,
    /// Type of an element.
    pub ty: ScalarType,
    /// Alignment in bytes: a power of two, at least that of the element.
    pub align: u32,
    /// Dimensions of an array, outermost first; empty for a scalar. 0 stands for an unsized first dimension (`x[]`).
    pub dims: Vec<u64>,
    /// Elements of a vector type: 1, 2 or 4.
    pub vector: u8,
    /// Linking directive.
    pub linkage: Linkage,
    /// Initial value.
    pub init: Option<Initializer>,
    /// `.ptr` attributes of a kernel parameter.
    pub ptr: Option<PtrAttribute>,
    /// `.attribute(.managed)`: also addressable by the host.
    pub managed: bool,
    /// Line of declaration, 0 when built.
    pub line: u32,
}

impl Variable {
    /// A scalar with natural alignment.
    pub fn scalar(name: impl Into<String>, space: StateSpace, ty: ScalarType) -> Self {
        Variable {
            name: name.into(),
            space,
            ty,
            align: ty.bytes(),
            dims: Vec::new(),
            vector: 1,
            linkage: Linkage::Internal,
            init: None,
            ptr: None,
            managed: false,
            line: 0,
        }
    }

    /// An array of `count` elements with this alignment in bytes.
    pub fn array(name: impl Into<String>, space: StateSpace, ty: ScalarType, count: u64, align: u32) -> Self {
        Variable { align, dims: vec![count], ..Variable::scalar(name, space, ty) }
    }

    /// Size in bytes; `None` when it does not fit 64 bits. An unsized array has 0.
    pub fn bytes(&self) -> Option<u64> {
        let element = u64::from(self.ty.bytes()) * u64::from(self.vector);
        self.dims.iter().try_fold(element, |size, dim| size.checked_mul(*dim))
    }
}

/// `.ptr .global .align 16` on a parameter: what the pointer points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PtrAttribute {
    /// State space of the target.
    pub space: Option<StateSpace>,
    /// Alignment of the target in bytes.
    pub align: Option<u32>,
}

/// Initial value of a variable.
#[derive(Clone, PartialEq, Debug)]
pub enum Initializer {
    /// A constant.
    Imm(Immediate),
    /// An address, as a generic address when asked.
    Symbol {
        /// A module-level variable or function.
        symbol: Symbol,
        /// Bytes to add.
        offset: i64,
        /// `generic(x)`.
        generic: bool,
    },
    /// Values of an array, outermost dimension first; missing ones are zero.
    List(Vec<Initializer>),
}

/// Entry or device function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`.
    Func,
}

/// A performance or launch directive between parameters and body (PTX manual 11.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Directive {
    /// `.maxntid x, y, z`: most threads per CTA.
    Maxntid(Vec<u32>),
    /// `.reqntid x, y, z`: exact threads per CTA.
    Reqntid(Vec<u32>),
    /// `.minnctapersm n`.
    Minnctapersm(u32),
    /// `.maxnctapersm n`.
    Maxnctapersm(u32),
    /// `.maxnreg n`.
    Maxnreg(u32),
    /// `.reqnctapercluster x, y, z`: exact CTAs per cluster.
    Reqnctapercluster(Vec<u32>),
    /// `.explicitcluster`.
    Explicitcluster,
    /// `.maxclusterrank n`.
    Maxclusterrank(u32),
    /// `.noreturn`.
    Noreturn,
    /// `.pragma "text";`.
    Pragma(String),
}

/// A function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Entry or device function.
    pub kind: FunctionKind,
    /// Its name.
    pub name: String,
    /// Linking directive.
    pub linkage: Linkage,
    /// Parameters in order. Those of a device function may be registers ([`StateSpace::Reg`]).
    pub params: Vec<Variable>,
    /// Return parameters of a device function.
    pub returns: Vec<Variable>,
    /// Directives in order.
    pub directives: Vec<Directive>,
    /// Registers of the body, those of nested scopes included.
    pub regs: RegTable,
    /// Names of labels of the body, those of nested scopes included.
    pub labels: Vec<String>,
    /// Variables declared in the body, those of nested scopes included.
    pub variables: Vec<Variable>,
    /// The body; empty for a prototype.
    pub body: Vec<Statement>,
    /// Line of declaration, 0 when built.
    pub line: u32,
}

impl Function {
    /// A function with an empty body.
    pub fn new(kind: FunctionKind, name: impl Into<String>) -> Self {
        Function {
            kind,
            name: name.into(),
            linkage: Linkage::Visible,
            params: Vec::new(),
            returns: Vec::new(),
            directives: Vec::new(),
            regs: RegTable::default(),
            labels: Vec::new(),
            variables: Vec::new(),
            body: Vec::new(),
            line: 0,
        }
    }

    /// Calls `visit` with every instruction, those of nested scopes included, in order of the text.
    pub fn for_each_inst<'a>(&'a self, visit: &mut impl FnMut(&'a Inst)) {
        fn walk<'a>(statements: &'a [Statement], visit: &mut impl FnMut(&'a Inst)) {
            for statement in statements {
                match statement {
                    Statement::Inst(inst) => visit(inst),
                    Statement::Scope(inner) => walk(inner, visit),
                    _ => {}
                }
            }
        }
        walk(&self.body, visit);
    }
}

/// A statement of a function body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// An instruction.
    Inst(Inst),
    /// A label before what follows.
    Label(LabelId),
    /// Registers declared here.
    Regs(RegDecl),
    /// A variable declared here: an index into [`Function::variables`].
    Variable(VarId),
    /// A nested scope.
    Scope(Vec<Statement>),
    /// Source position of what follows.
    Loc(Loc),
    /// `.pragma "text";`
    Pragma(String),
    /// A comment line; not kept by the parser.
    Comment(String),
    /// `table: .branchtargets a, b;` for `brx.idx`.
    BranchTargets {
        /// Name of the table.
        label: LabelId,
        /// Its labels.
        targets: Vec<LabelId>,
    },
    /// `proto: .callprototype (…) _ (…);` for an indirect call.
    CallPrototype {
        /// Name of the prototype.
        label: LabelId,
        /// Return parameters.
        returns: Vec<Variable>,
        /// Parameters.
        params: Vec<Variable>,
    },
}

/// `.loc file line column`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loc {
    /// Index of a [`File`].
    pub file: u32,
    /// Line from 1.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// Where this code was inlined. Not printed, as the section with the names is not.
    pub inlined: Option<Box<Inlining>>,
}

/// A call that was inlined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inlining {
    /// File, line and column of the call.
    pub at: (u32, u32, u32),
    /// The name of the function: a label in [`Module::strings`], and an offset.
    pub function: Option<(String, i64)>,
}

/// Registers declared together: `.reg .b32 %r<10>, x;`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegDecl {
    /// Their type.
    pub ty: ScalarType,
    /// The declarators.
    pub entries: Vec<RegEntry>,
}

/// One declarator of a register declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegEntry {
    /// A single register.
    Single(RegId),
    /// `%r<count>`: the registers `%r0` … `%r(count-1)`, which have these ids in order.
    Range {
        /// `%r`.
        prefix: String,
        /// Ids of number 0 onwards.
        regs: Vec<RegId>,
    },
}

/// A register's type and name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register {
    /// Its type.
    pub ty: ScalarType,
    /// Index of its name, or of its prefix, in the table.
    pub(crate) name: u32,
    /// Its number in a range.
    pub(crate) number: Option<u32>,
}

/// The registers of a function. Names of a range share their prefix, so that `%r<100000>` stays small.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RegTable {
    pub(crate) names: Vec<String>,
    pub(crate) regs: Vec<Register>,
}

impl RegTable {
    /// Number of registers.
    pub fn len(&self) -> usize {
        self.regs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.regs.is_empty()
    }

    /// The register, if the id belongs to this table.
    pub fn get(&self, reg: RegId) -> Option<&Register> {
        self.regs.get(reg.index())
    }

    /// Type of a register; `None` when the id does not belong to this table.
    pub fn ty(&self, reg: RegId) -> Option<ScalarType> {
        self.get(reg).map(|register| register.ty)
    }

    /// Name of a register as printed: `%r5`.
    pub fn name(&self, reg: RegId) -> String {
        let mut name = String::new();
        self.print(reg, &mut name);
        name
    }

    /// The name or prefix, and the number behind it; none when the id does not belong to this table.
    pub(crate) fn parts(&self, reg: RegId) -> Option<(&str, Option<u32>)> {
        let register = self.get(reg)?;
        Some((&self.names[register.name as usize], register.number))
    }

    /// Writes that name.
    pub(crate) fn print(&self, reg: RegId, out: &mut String) {
        let (name, number) = match self.get(reg) {
            None => ("%invalid", Some(reg.0)),
            Some(register) => (self.names[register.name as usize].as_str(), register.number),
        };
        out.push_str(name);
        if let Some(number) = number {
            push_number(number, out);
        }
    }

    /// Whether this is register `number` of the range with this prefix.
    pub(crate) fn is_numbered(&self, reg: RegId, prefix: &str, number: usize) -> bool {
        self.get(reg).is_some_and(|register| {
            register.number.is_some_and(|own| own as usize == number) && self.names[register.name as usize] == prefix
        })
    }

    /// Adds a name or prefix; registers refer to it by the index returned.
    pub(crate) fn add_name(&mut self, name: &str) -> u32 {
        self.names.push(name.to_owned());
        (self.names.len() - 1) as u32
    }

    /// Adds a register.
    pub(crate) fn add(&mut self, register: Register) -> RegId {
        self.regs.push(register);
        RegId((self.regs.len() - 1) as u32)
    }
}

/// Writes a number. Most of what is printed are names of registers, and formatting is slow without optimisation.
fn push_number(number: u32, out: &mut String) {
    if number >= 10 {
        push_number(number / 10, out);
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}
