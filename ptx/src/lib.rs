//! PTX as data: types, an instruction table, a builder, a printer, a parser and a verifier. No analysis, no machine.
//!
//! - [`Module`], [`Function`], [`Statement`], [`Inst`], [`Operand`]: what a program is. Registers, labels and variables
//!   are ids.
//! - [`isa`]: which instructions there are, one table line a form. [`isa::Op`] is an enum of families; match on it
//!   without a wildcard. [`Inst::ty`], [`Inst::space`], [`Inst::has`] and [`Inst::find`] read the modifiers with types.
//! - [`ModuleBuilder`], [`FunctionBuilder`], [`Block`], [`inst`]: making a program. Blocks are detached from the
//!   function.
//! - `Module` implements `Display`: printing.
//! - [`parse`]: text to a module, with names resolved. [`load`]: the same, verified; [`load_functions`]: without the
//!   functions that have mistakes.
//! - [`verify`]: whether a module is well formed; [`requirement`]: the lowest version and target it needs.
//!
//! # y = a·x + y, by hand
//!
//! ```
//! use tilewright_ptx::{Address, Block, Directive, FunctionBuilder, ModuleBuilder, PtxVersion, Requirement, ScalarType::*,
//!     SpecialReg, Target};
//!
//! let floor = Requirement { version: PtxVersion::new(7, 0), target: Target::sm(80) };
//! let mut module = ModuleBuilder::new(floor);
//! let file = module.file("saxpy.rs");
//!
//! let mut f = FunctionBuilder::entry("saxpy");
//! let (x, y) = (f.param("x", U64), f.param("y", U64));
//! let (a, n) = (f.param("a", F32), f.param("n", U32));
//! f.directive(Directive::Reqntid(vec![256, 1, 1]));
//! let done = f.label("done");
//!
//! // Two blocks, made in any order: the loop-invariant part and the body.
//! let (px, py, scale, count) = (f.reg(U64), f.reg(U64), f.reg(F32), f.reg(U32));
//! let (i, block, tid, p) = (f.reg(U32), f.reg(U32), f.reg(U32), f.reg(Pred));
//! let mut body = Block::new();
//! let (vx, vy) = (f.reg(F32), f.reg(F32));
//! body.loc(file, 3, 5);
//! body.emit("mad.wide.u32", [px.into(), i.into(), 4.into(), px.into()]);
//! body.emit("mad.wide.u32", [py.into(), i.into(), 4.into(), py.into()]);
//! body.emit("ld.global.f32", [vx.into(), Address::reg(px).into()]);
//! body.emit("ld.global.f32", [vy.into(), Address::reg(py).into()]);
//! body.emit("fma.rn.f32", [vy.into(), scale.into(), vx.into(), vy.into()]);
//! body.emit("st.global.f32", [Address::reg(py).into(), vy.into()]);
//! body.label(done);
//! body.emit("ret", []);
//!
//! let mut head = Block::new();
//! head.emit("ld.param.u64", [px.into(), Address::symbol(x).into()]);
//! head.emit("ld.param.u64", [py.into(), Address::symbol(y).into()]);
//! head.emit("ld.param.f32", [scale.into(), Address::symbol(a).into()]);
//! head.emit("ld.param.u32", [count.into(), Address::symbol(n).into()]);
//! head.emit("cvta.to.global.u64", [px.into(), px.into()]);
//! head.emit("cvta.to.global.u64", [py.into(), py.into()]);
//! head.emit("mov.u32", [block.into(), SpecialReg::CtaidX.into()]);
//! head.emit("mov.u32", [tid.into(), SpecialReg::TidX.into()]);
//! head.emit("mad.lo.u32", [i.into(), block.into(), 256.into(), tid.into()]);
//! head.emit("setp.ge.u32", [p.into(), i.into(), count.into()]);
//! head.emit_if(p, false, "bra", [done.into()]);
//!
//! head.append(body);
//! module.function(f.finish(head).unwrap());
//! let module = module.finish().unwrap();
//! let text = module.to_string();
//! assert!(text.starts_with(".version 7.0\n.target sm_80\n.address_size 64\n"));
//! assert!(text.contains("    fma.rn.f32 %f2, %f0, %f1, %f2;\n"));
//! assert_eq!(module.version.minimum_driver(), Some(11000));
//! ```
#![forbid(unsafe_code)]

mod builder;
mod check;
mod forms;
mod inst;
pub mod isa;
mod lex;
mod line;
mod modifier;
mod module;
mod operand;
mod parse;
mod print;
mod special;
mod types;
mod verify;
mod version;

pub use builder::{Block, BuildError, BuildErrorKind, FunctionBuilder, ModuleBuilder, inst};
pub use check::{OperandFault, SelectFault};
pub use inst::{Guard, Inst};
pub use modifier::*;
pub use module::*;
pub use operand::*;
pub use parse::{MAX_DEPTH, MAX_REGISTERS, MAX_TEXT, ParseError, ParseErrorKind, parse, parse_functions};
pub use print::{Part, inst_text};
pub use special::SpecialReg;
pub use types::{ScalarType, Shape, StateSpace, TypeClass};
pub use verify::{DeclarationFault, DirectiveFault, VerifyError, VerifyErrorKind, requirement, verify};
pub use version::{PtxVersion, Requirement, Target};

/// Why text is no module to run: it cannot be read, or it is not well formed.
#[derive(Clone, PartialEq, Debug)]
pub enum LoadError {
    /// It cannot be read.
    Parse(ParseError),
    /// It is not well formed; at least one violation.
    Verify(Vec<VerifyError>),
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::Parse(error) => error.fmt(f),
            LoadError::Verify(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    if index > 0 {
                        f.write_str("\n")?;
                    }
                    error.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Parses and verifies a module.
pub fn load(text: &str) -> Result<Module, LoadError> {
    let module = parse(text).map_err(LoadError::Parse)?;
    verify(&module).map_err(LoadError::Verify)?;
    Ok(module)
}

/// Parses and verifies a module, and leaves the body of a function empty that has a mistake: those functions come with
/// their mistakes, in the order of their numbers. A mistake outside functions is one of the whole text.
///
/// ```
/// let text = ".version 7.0\n.target sm_80\n.address_size 64\n.entry a() { hum; }\n.entry b() { ret; }";
/// let (module, refused) = tilewright_ptx::load_functions(text).unwrap();
/// let [(id, error)] = &refused[..] else { panic!("{refused:?}") };
/// assert_eq!(module.functions[id.index()].name, "a");
/// assert_eq!(error.to_string(), "line 4, column 14: `hum`: no such instruction");
/// ```
pub fn load_functions(text: &str) -> Result<(Module, Vec<(FuncId, LoadError)>), LoadError> {
    let (mut module, refused) = parse_functions(text).map_err(LoadError::Parse)?;
    let mut refused: Vec<_> = refused.into_iter().map(|(id, error)| (id, LoadError::Parse(error))).collect();
    // Without the functions refused there may be more mistakes than are reported at once.
    while let Err(errors) = verify(&module) {
        let of = |error: &VerifyError| module.functions.iter().position(|function| function.name == error.function);
        let Some(at) = errors.first().and_then(of).filter(|at| !module.functions[*at].body.is_empty()) else {
            return Err(LoadError::Verify(errors));
        };
        if errors.iter().any(|error| error.function.is_empty()) {
            return Err(LoadError::Verify(errors));
        }
        let function = &mut module.functions[at];
        let own = errors.into_iter().filter(|error| error.function == function.name).collect();
        function.body.clear();
        refused.push((FuncId(at as u32), LoadError::Verify(own)));
    }
    refused.sort_by_key(|(id, _)| *id);
    Ok((module, refused))
}

#[cfg(test)]
mod tests {
    /// Every line of the table can be read.
    #[test]
    fn table_parses() {
        assert!(crate::isa::all_forms().count() > 250);
    }
}
