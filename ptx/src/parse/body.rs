//! Function bodies: statements, labels, instructions.

use super::scope::Name;
use super::{MAX_DEPTH, ParseErrorKind, Parser, Result};
use crate::builder::from_form;
use crate::check::select;
use crate::inst::{Guard, Inst};
use crate::lex::Token;
use crate::modifier::Modifier;
use crate::module::{Function, FunctionKind, Inlining, Linkage, Loc, Statement};
use crate::operand::{FuncId, LabelId, Operand, Symbol, VarId};
use crate::types::StateSpace;

/// Most modifiers of an instruction: more than any form has.
const MAX_MODIFIERS: usize = 32;

impl<'a> Parser<'a> {
    /// The body of a function whose signature is known.
    pub(super) fn function_body(&mut self, id: FuncId) -> Result<()> {
        // The body is built on a copy of the signature and put in its place at the end.
        let mut function = self.module.functions[id.index()].clone();
        self.scopes.enter();
        self.signature_names(&mut function)?;
        self.expect('{', "`{` or `;`")?;
        function.body = self.statements(&mut function)?;
        self.scopes.leave();
        self.module.functions[id.index()] = function;
        Ok(())
    }

    /// Declares parameters in the scope of the function. Their names are read again from the text, which outlives the
    /// module.
    fn signature_names(&mut self, function: &mut Function) -> Result<()> {
        let here = self.at;
        // Walk back to the start of the signature: the directive that opens it.
        while !matches!(self.peek(), Token::Dot("entry" | "func")) && self.at > 0 {
            self.at -= 1;
        }
        self.at += 1;
        let returns = function.kind == FunctionKind::Func && self.peek() == Token::Punct('(');
        if returns {
            self.param_names(function, true)?;
        }
        self.at += 1;
        if self.peek() == Token::Punct('(') {
            self.param_names(function, false)?;
        }
        self.at = here;
        Ok(())
    }

    fn param_names(&mut self, function: &mut Function, returns: bool) -> Result<()> {
        let mut index = 0;
        while self.peek() != Token::Punct(')') {
            if let Token::Ident(name) = self.peek() {
                self.at += 1;
                let params = if returns { &function.returns } else { &function.params };
                let Some(param) = params.get(index) else { break };
                if param.space == StateSpace::Reg {
                    let ty = param.ty;
                    self.declare_reg(name, ty, &mut function.regs)?;
                } else {
                    let id = VarId(index as u32);
                    let symbol = if returns { Symbol::Return(id) } else { Symbol::Param(id) };
                    if !self.scopes.declare(name, Name::Symbol(symbol)) {
                        self.at -= 1;
                        return self.fail(ParseErrorKind::DuplicateName(name.to_owned()));
                    }
                }
                index += 1;
            } else {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Statements up to and with the closing brace.
    fn statements(&mut self, function: &mut Function) -> Result<Vec<Statement>> {
        if self.scopes.depth() > MAX_DEPTH {
            return self.fail(ParseErrorKind::TooMany { what: "nested scopes", limit: MAX_DEPTH as u64 });
        }
        self.declare_labels(function)?;
        let mut statements = Vec::new();
        loop {
            match self.peek() {
                Token::Punct('}') => {
                    self.at += 1;
                    return Ok(statements);
                }
                Token::Punct('{') => {
                    self.at += 1;
                    self.scopes.enter();
                    let inner = self.statements(function)?;
                    self.scopes.leave();
                    statements.push(Statement::Scope(inner));
                }
                Token::Punct(';') => self.at += 1,
                Token::Dot("reg") => statements.push(Statement::Regs(self.reg_decl(&mut function.regs)?)),
                Token::Dot("shared" | "local" | "param" | "global" | "const" | "extern") => {
                    let linkage = if self.eat_dot("extern") { Linkage::Extern } else { Linkage::Internal };
                    for (name, variable) in self.variables(linkage)? {
                        let id = VarId(function.variables.len() as u32);
                        if !self.scopes.declare(name, Name::Symbol(Symbol::Local(id))) {
                            return self.fail(ParseErrorKind::DuplicateName(name.to_owned()));
                        }
                        function.variables.push(variable);
                        statements.push(Statement::Variable(id));
                    }
                }
                Token::Dot("loc") => statements.push(Statement::Loc(self.loc()?)),
                Token::Dot("pragma") => statements.push(Statement::Pragma(self.pragma()?)),
                Token::Dot(name) => return self.fail(ParseErrorKind::Directive(name.to_owned())),
                Token::Ident(name) if self.ahead(1) == Token::Punct(':') => {
                    self.at += 2;
                    let label = match self.scopes.find(name) {
                        Some(Name::Label(label)) => label,
                        _ => return self.fail(ParseErrorKind::UnknownName(name.to_owned())),
                    };
                    statements.push(self.labelled(label)?);
                }
                Token::Ident(_) | Token::Punct('@') => statements.push(Statement::Inst(self.instruction(function)?)),
                _ => return self.expected("a statement or `}`"),
            }
        }
    }

    /// Declares the labels of the scope that starts here: branches may go forwards.
    fn declare_labels(&mut self, function: &mut Function) -> Result<()> {
        let here = self.at;
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Token::Punct('{') => depth += 1,
                Token::Punct('}') if depth == 0 => break,
                Token::Punct('}') => depth -= 1,
                Token::End => break,
                Token::Ident(name) if depth == 0 && self.ahead(1) == Token::Punct(':') => {
                    let label = LabelId(function.labels.len() as u32);
                    if !self.scopes.declare(name, Name::Label(label)) {
                        return self.fail(ParseErrorKind::DuplicateName(name.to_owned()));
                    }
                    function.labels.push(name.to_owned());
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = here;
        Ok(())
    }

    /// What follows `name:`: a table, a prototype, or nothing special.
    fn labelled(&mut self, label: LabelId) -> Result<Statement> {
        if self.eat_dot("branchtargets") {
            let mut targets = Vec::new();
            loop {
                let name = self.ident("a label")?;
                match self.scopes.find(name) {
                    Some(Name::Label(target)) => targets.push(target),
                    _ => {
                        self.at -= 1;
                        return self.fail(ParseErrorKind::UnknownName(name.to_owned()));
                    }
                }
                if !self.eat(',') {
                    break;
                }
            }
            self.semicolon()?;
            return Ok(Statement::BranchTargets { label, targets });
        }
        if self.eat_dot("callprototype") {
            let returns = if self.peek() == Token::Punct('(') { self.params()? } else { Vec::new() };
            self.ident("`_`")?;
            let params = if self.peek() == Token::Punct('(') { self.params()? } else { Vec::new() };
            self.semicolon()?;
            return Ok(Statement::CallPrototype { label, returns, params });
        }
        if self.peek() == Token::Dot("calltargets") {
            return self.fail(ParseErrorKind::Unsupported("`.calltargets`"));
        }
        Ok(Statement::Label(label))
    }

    /// `.loc file line column, function_name label+n, inlined_at file line column`.
    fn loc(&mut self) -> Result<Loc> {
        self.at += 1;
        let mut triple = || -> Result<(u32, u32, u32)> {
            Ok((self.number_u32("file number")?, self.number_u32("line")?, self.number_u32("column")?))
        };
        let (file, line, column) = triple()?;
        let (mut function, mut inlined_at) = (None, None);
        while self.eat(',') {
            match self.ident("`function_name` or `inlined_at`")? {
                "function_name" => {
                    let label = self.ident("a label")?.to_owned();
                    function = Some((label, self.offset()?));
                }
                "inlined_at" => {
                    let inlined =
                        (self.number_u32("file number")?, self.number_u32("line")?, self.number_u32("column")?);
                    inlined_at = Some(inlined);
                }
                _ => {
                    self.at -= 1;
                    return self.expected("`function_name` or `inlined_at`");
                }
            }
        }
        Ok(Loc { file, line, column, inlined: inlined_at.map(|at| Box::new(Inlining { at, function })) })
    }

    fn instruction(&mut self, function: &Function) -> Result<Inst> {
        let guard = if self.eat('@') {
            let negated = self.eat('!');
            let name = self.ident("a predicate")?;
            match self.scopes.find(name) {
                Some(Name::Reg(reg)) => Some(Guard { reg, negated }),
                _ => {
                    self.at -= 1;
                    return self.fail(ParseErrorKind::UnknownName(name.to_owned()));
                }
            }
        } else {
            None
        };
        let start = self.at;
        let pos = self.pos();
        let mnemonic = self.ident("an instruction")?;
        let mut words = Vec::new();
        while let Token::Dot(word) = self.peek() {
            if words.len() == MAX_MODIFIERS {
                return self.fail(ParseErrorKind::TooMany { what: "modifiers", limit: MAX_MODIFIERS as u64 });
            }
            words.push(word);
            self.at += 1;
        }
        let full = || words.iter().fold(mnemonic.to_owned(), |text, word| text + "." + word);
        let mut modifiers = Vec::with_capacity(words.len());
        for word in &words {
            match Modifier::from_text(word) {
                Some(modifier) => modifiers.push(modifier),
                None => {
                    self.at = start;
                    // An unknown mnemonic is the better message.
                    let kind = if crate::isa::forms_of(mnemonic).next().is_none() {
                        ParseErrorKind::Instruction { mnemonic: full(), fault: crate::check::SelectFault::Mnemonic }
                    } else {
                        ParseErrorKind::UnknownModifier { mnemonic: full(), modifier: (*word).to_owned() }
                    };
                    return self.fail(kind);
                }
            }
        }
        // A mnemonic that does not exist is a better message than its operands.
        if crate::isa::forms_of(mnemonic).next().is_none() {
            self.at = start;
            let kind = ParseErrorKind::Instruction { mnemonic: full(), fault: crate::check::SelectFault::Mnemonic };
            return self.fail(kind);
        }
        let mut operands: Vec<Operand> = Vec::new();
        if self.peek() != Token::Punct(';') {
            loop {
                operands.push(self.operand(0)?);
                if !self.eat(',') {
                    break;
                }
            }
        }
        self.semicolon()?;
        // Triton writes scalars of memory instructions in braces: `ld.global.b32 {%r1}, [%rd1];`.
        if matches!(mnemonic, "ld" | "ldu" | "st" | "atom" | "red" | "mov") {
            for operand in &mut operands {
                if let Operand::Vector(elements) = operand
                    && let [single] = &elements[..]
                {
                    *operand = single.clone();
                }
            }
        }
        let selected = match select(mnemonic, &modifiers, &operands, Some(&function.regs)) {
            Ok(selected) => selected,
            Err(rejected) => match rejected.nearest {
                // The verifier says what is wrong with the operands.
                Some(nearest) => nearest,
                None => {
                    self.at = start;
                    return self.fail(ParseErrorKind::Instruction { mnemonic: full(), fault: rejected.fault });
                }
            },
        };
        Ok(Inst { guard, line: pos.line, ..from_form(selected, operands) })
    }
}
