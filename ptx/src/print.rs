//! A module as PTX text. Deterministic: the same module gives the same text, and text that was parsed prints to a fixed
//! point.
//!
//! Not printed: what the parser does not keep (comments of parsed text, debug sections, where code was inlined).

use std::fmt::{self, Write as _};

use crate::inst::Inst;
use crate::line::Line;
use crate::module::{
    Directive, Function, FunctionKind, Initializer, Item, Linkage, Module, RegEntry, Statement, Variable,
};
use crate::operand::{Address, AddressBase, FuncId, Immediate, Operand, Symbol, VarId};
use crate::types::StateSpace;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        print_head(self, &mut out)?;
        self.items.iter().try_for_each(|item| print_item(self, item, &mut out))?;
        f.write_str(&out)
    }
}

/// A part of a module's text.
pub struct Part(PartOf);

enum PartOf {
    Head,
    Item(Item),
    Begin(FuncId),
    Body(FuncId, Vec<Statement>),
    End,
}

impl Module {
    /// Takes the module apart into what all parts refer to, and parts whose texts are its text, one after the other.
    /// None has more than `most` statements of a function's outermost scope.
    pub fn in_parts(mut self, most: usize) -> (Self, Vec<Part>) {
        let most = most.max(1);
        let mut parts = vec![PartOf::Head];
        for item in std::mem::take(&mut self.items) {
            let function = match item {
                Item::Function(id) => self.functions.get_mut(id.index()).map(|function| (id, function)),
                _ => None,
            };
            let Some((id, function)) = function else {
                parts.push(PartOf::Item(item));
                continue;
            };
            parts.push(PartOf::Begin(id));
            // From the end, so that no statement is moved twice.
            let (mut rest, mut later) = (std::mem::take(&mut function.body), Vec::new());
            while rest.len() > most {
                let last = (rest.len() - 1) / most * most;
                later.push(rest.split_off(last));
            }
            let bodies = std::iter::once(rest).chain(later.into_iter().rev());
            parts.extend(bodies.map(|statements| PartOf::Body(id, statements)));
            parts.push(PartOf::End);
        }
        (self, parts.into_iter().map(Part).collect())
    }

    /// The text of a part of this module.
    pub fn text_of(&self, part: Part) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = match part.0 {
            PartOf::Head => print_head(self, &mut out),
            PartOf::Item(item) => print_item(self, &item, &mut out),
            PartOf::Begin(id) => self.functions.get(id.index()).map_or(Ok(()), |f| print_begin(self, f, &mut out)),
            PartOf::Body(id, statements) => match self.functions.get(id.index()) {
                Some(function) => print_body(self, function, &statements, 1, &mut out),
                None => Ok(()),
            },
            PartOf::End => out.write_str(END),
        };
        out
    }
}

/// The end of a function.
const END: &str = "}\n";

/// A function up to its body.
fn print_begin(module: &Module, function: &Function, out: &mut String) -> fmt::Result {
    out.push('\n');
    print_signature(module, function, out)?;
    out.write_str("\n{\n")
}

impl fmt::Display for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Immediate::Int(value) => write!(f, "{value}"),
            Immediate::UInt(value) => write!(f, "{value:#x}"),
            Immediate::F32(bits) => write!(f, "0f{bits:08X}"),
            Immediate::F64(bits) => write!(f, "0d{bits:016X}"),
            Immediate::WarpSize => f.write_str("WARP_SZ"),
        }
    }
}

fn print_head(module: &Module, out: &mut String) -> fmt::Result {
    writeln!(out, ".version {}", module.version)?;
    writeln!(out, ".target {}", module.target)?;
    writeln!(out, ".address_size {}", module.address_size)?;
    module.comments.iter().try_for_each(|line| print_comment(line, out))
}

fn print_item(module: &Module, item: &Item, out: &mut String) -> fmt::Result {
    match item {
        Item::Variable(id) => {
            if let Some(variable) = module.variables.get(id.index()) {
                out.push('\n');
                print_variable(module, variable, out)?;
                out.push_str(";\n");
            }
        }
        Item::Prototype(id) => {
            if let Some(function) = module.functions.get(id.index()) {
                out.push('\n');
                print_signature(module, function, out)?;
                out.push_str(";\n");
            }
        }
        Item::Function(id) => {
            if let Some(function) = module.functions.get(id.index()) {
                print_begin(module, function, out)?;
                print_body(module, function, &function.body, 1, out)?;
                out.push_str(END);
            }
        }
        Item::File(file) => {
            write!(out, ".file {} \"{}\"", file.index, file.name)?;
            if let Some((time, size)) = file.stamp {
                write!(out, ", {time}, {size}")?;
            }
            out.push('\n');
        }
        Item::Pragma(text) => writeln!(out, ".pragma \"{text}\";")?,
    }
    Ok(())
}

/// A comment must stay on its line.
fn print_comment(text: &str, out: &mut String) -> fmt::Result {
    for line in text.split(['\n', '\r']) {
        writeln!(out, "// {line}")?;
    }
    Ok(())
}

fn linkage(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::Internal => "",
        Linkage::Visible => ".visible ",
        Linkage::Extern => ".extern ",
        Linkage::Weak => ".weak ",
        Linkage::Common => ".common ",
    }
}

fn print_signature(module: &Module, function: &Function, out: &mut String) -> fmt::Result {
    out.push_str(linkage(function.linkage));
    out.push_str(match function.kind {
        FunctionKind::Entry => ".entry ",
        FunctionKind::Func => ".func ",
    });
    if !function.returns.is_empty() {
        print_params(module, &function.returns, out)?;
        out.push(' ');
    }
    out.push_str(&function.name);
    print_params(module, &function.params, out)?;
    for directive in &function.directives {
        out.push('\n');
        let triple = |name: &str, values: &[u32], out: &mut String| {
            let values: Vec<String> = values.iter().map(u32::to_string).collect();
            write!(out, ".{name} {}", values.join(", "))
        };
        match directive {
            Directive::Maxntid(values) => triple("maxntid", values, out)?,
            Directive::Reqntid(values) => triple("reqntid", values, out)?,
            Directive::Reqnctapercluster(values) => triple("reqnctapercluster", values, out)?,
            Directive::Minnctapersm(value) => write!(out, ".minnctapersm {value}")?,
            Directive::Maxnctapersm(value) => write!(out, ".maxnctapersm {value}")?,
            Directive::Maxnreg(value) => write!(out, ".maxnreg {value}")?,
            Directive::Maxclusterrank(value) => write!(out, ".maxclusterrank {value}")?,
            Directive::Explicitcluster => out.push_str(".explicitcluster"),
            Directive::Noreturn => out.push_str(".noreturn"),
            Directive::Pragma(text) => write!(out, ".pragma \"{text}\";")?,
        }
    }
    Ok(())
}

fn print_params(module: &Module, params: &[Variable], out: &mut String) -> fmt::Result {
    if params.is_empty() {
        out.push_str("()");
        return Ok(());
    }
    out.push_str("(\n");
    for (index, param) in params.iter().enumerate() {
        out.push_str("    ");
        print_variable(module, param, out)?;
        out.push_str(if index + 1 == params.len() { "\n" } else { ",\n" });
    }
    out.push(')');
    Ok(())
}

/// A declaration without its semicolon.
fn print_variable(module: &Module, variable: &Variable, out: &mut String) -> fmt::Result {
    out.push_str(linkage(variable.linkage));
    write!(out, ".{} ", variable.space)?;
    if variable.managed {
        out.push_str(".attribute(.managed) ");
    }
    let natural = variable.ty.bytes() * u32::from(variable.vector);
    if variable.align != natural && variable.space != StateSpace::Reg {
        // A parameter's `.ptr` has an alignment of its own; that of the parameter goes first.
        write!(out, ".align {} ", variable.align)?;
    }
    if variable.vector > 1 {
        write!(out, ".v{} ", variable.vector)?;
    }
    write!(out, ".{} ", variable.ty)?;
    if let Some(ptr) = variable.ptr {
        out.push_str(".ptr ");
        if let Some(space) = ptr.space {
            write!(out, ".{space} ")?;
        }
        if let Some(align) = ptr.align {
            write!(out, ".align {align} ")?;
        }
    }
    out.push_str(&variable.name);
    for (index, dim) in variable.dims.iter().enumerate() {
        if index == 0 && *dim == 0 { out.push_str("[]") } else { write!(out, "[{dim}]")? }
    }
    if let Some(init) = &variable.init {
        out.push_str(" = ");
        print_initializer(module, init, out)?;
    }
    Ok(())
}

fn print_initializer(module: &Module, init: &Initializer, out: &mut String) -> fmt::Result {
    match init {
        Initializer::Imm(value) => write!(out, "{value}"),
        Initializer::Symbol { symbol, offset, generic } => {
            let name = symbol_name(module, None, *symbol);
            if *generic {
                write!(out, "generic({name})")?
            } else {
                out.push_str(name)
            }
            if *offset != 0 { write!(out, "+{offset}") } else { Ok(()) }
        }
        Initializer::List(values) => {
            out.push('{');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                print_initializer(module, value, out)?;
            }
            out.push('}');
            Ok(())
        }
    }
}

fn print_body(
    module: &Module,
    function: &Function,
    statements: &[Statement],
    depth: usize,
    out: &mut String,
) -> fmt::Result {
    let indent = "    ".repeat(depth);
    for statement in statements {
        match statement {
            Statement::Inst(inst) => {
                let mut line = Line::new();
                // Instructions without operands are few.
                if !inst.operands.is_empty() && line.inst(&indent, function, inst).is_some() {
                    out.push_str(line.text());
                } else {
                    out.push_str(&indent);
                    print_inst(module, function, inst, out)?;
                    out.push('\n');
                }
            }
            Statement::Label(label) => writeln!(out, "{}:", label_name(function, label.index()))?,
            Statement::Regs(decl) => {
                write!(out, "{indent}.reg .{} ", decl.ty)?;
                for (index, entry) in decl.entries.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    match entry {
                        RegEntry::Single(reg) => function.regs.print(*reg, out),
                        RegEntry::Range { prefix, regs } => write!(out, "{prefix}<{}>", regs.len())?,
                    }
                }
                out.push_str(";\n");
            }
            Statement::Variable(id) => {
                if let Some(variable) = function.variables.get(id.index()) {
                    out.push_str(&indent);
                    print_variable(module, variable, out)?;
                    out.push_str(";\n");
                }
            }
            Statement::Scope(inner) => {
                writeln!(out, "{indent}{{")?;
                print_body(module, function, inner, depth + 1, out)?;
                writeln!(out, "{indent}}}")?;
            }
            Statement::Loc(loc) => writeln!(out, "{indent}.loc {} {} {}", loc.file, loc.line, loc.column)?,
            Statement::Pragma(text) => writeln!(out, "{indent}.pragma \"{text}\";")?,
            Statement::Comment(text) => {
                out.push_str(&indent);
                print_comment(text, out)?;
            }
            Statement::BranchTargets { label, targets } => {
                let targets: Vec<&str> = targets.iter().map(|target| label_name(function, target.index())).collect();
                let name = label_name(function, label.index());
                writeln!(out, "{name}: .branchtargets {};", targets.join(", "))?;
            }
            Statement::CallPrototype { label, returns, params } => {
                write!(out, "{}: .callprototype ", label_name(function, label.index()))?;
                if !returns.is_empty() {
                    print_params(module, returns, out)?;
                    out.push(' ');
                }
                out.push('_');
                out.push(' ');
                print_params(module, params, out)?;
                out.push_str(";\n");
            }
        }
    }
    Ok(())
}

fn print_inst(module: &Module, function: &Function, inst: &Inst, out: &mut String) -> fmt::Result {
    if let Some(guard) = inst.guard {
        out.push_str(if guard.negated { "@!" } else { "@" });
        function.regs.print(guard.reg, out);
        out.push(' ');
    }
    out.push_str(inst.form().mnemonic);
    for modifier in inst.modifiers.iter() {
        out.push('.');
        match modifier.text() {
            Some(text) => out.push_str(text),
            None => write!(out, "{modifier}")?,
        }
    }
    for (index, operand) in inst.operands.iter().enumerate() {
        out.push_str(if index == 0 { " " } else { ", " });
        print_operand(module, function, operand, out)?;
    }
    out.push(';');
    Ok(())
}

/// One instruction as it stands in its function, for messages.
pub fn inst_text(module: &Module, function: &Function, inst: &Inst) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = print_inst(module, function, inst, &mut out);
    out
}

fn print_operand(module: &Module, function: &Function, operand: &Operand, out: &mut String) -> fmt::Result {
    let list = |open: char, elements: &[Operand], close: char, out: &mut String| -> fmt::Result {
        out.push(open);
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            print_operand(module, function, element, out)?;
        }
        out.push(close);
        Ok(())
    };
    match operand {
        Operand::Reg(reg) => function.regs.print(*reg, out),
        Operand::NotReg(reg) => {
            out.push('!');
            function.regs.print(*reg, out);
        }
        Operand::Sink => out.push('_'),
        Operand::Imm(value) => write!(out, "{value}")?,
        Operand::Special(special) => out.push_str(special.text()),
        Operand::Symbol(symbol, offset) => {
            out.push_str(symbol_name(module, Some(function), *symbol));
            if *offset != 0 {
                write!(out, "+{offset}")?;
            }
        }
        Operand::Address(address) => {
            out.push('[');
            print_address(module, function, *address, out)?;
            out.push(']');
        }
        Operand::Tensor(address, coords) => {
            out.push('[');
            print_address(module, function, *address, out)?;
            out.push_str(", ");
            list('{', coords, '}', out)?;
            out.push(']');
        }
        Operand::Pair(first, second) => {
            print_operand(module, function, first, out)?;
            out.push('|');
            print_operand(module, function, second, out)?;
        }
        Operand::Vector(elements) => list('{', elements, '}', out)?,
        Operand::Label(label) => out.push_str(label_name(function, label.index())),
        Operand::List(elements) => list('(', elements, ')', out)?,
    }
    Ok(())
}

fn print_address(module: &Module, function: &Function, address: Address, out: &mut String) -> fmt::Result {
    match address.base {
        AddressBase::Reg(reg) => function.regs.print(reg, out),
        AddressBase::Symbol(symbol) => out.push_str(symbol_name(module, Some(function), symbol)),
        AddressBase::Absolute => return write!(out, "{}", address.offset),
    }
    if address.offset != 0 { write!(out, "+{}", address.offset) } else { Ok(()) }
}

fn label_name(function: &Function, index: usize) -> &str {
    function.labels.get(index).map_or("invalid_label", String::as_str)
}

/// The name of a symbol; ids from elsewhere, which the verifier refuses, print as `invalid_symbol`.
pub(crate) fn symbol_name<'a>(module: &'a Module, function: Option<&'a Function>, symbol: Symbol) -> &'a str {
    let of = |variables: &'a [Variable], id: VarId| variables.get(id.index()).map(|variable| variable.name.as_str());
    let name = match (symbol, function) {
        (Symbol::Global(id), _) => of(&module.variables, id),
        (Symbol::Param(id), Some(function)) => of(&function.params, id),
        (Symbol::Return(id), Some(function)) => of(&function.returns, id),
        (Symbol::Local(id), Some(function)) => of(&function.variables, id),
        (Symbol::Function(id), _) => module.functions.get(id.index()).map(|function| function.name.as_str()),
        _ => None,
    };
    name.unwrap_or("invalid_symbol")
}
