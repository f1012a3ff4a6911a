//! Declarations: variables, parameters, initial values, registers, directives of functions.

use super::scope::Name;
use super::{MAX_DEPTH, MAX_REGISTERS, ParseErrorKind, Parser, Result};
use crate::lex::Token;
use crate::module::{Directive, Initializer, Linkage, PtrAttribute, RegDecl, RegEntry, RegTable, Register, Variable};
use crate::operand::{RegId, Symbol, VarId};
use crate::types::{ScalarType, StateSpace};

/// Most dimensions of an array.
const MAX_DIMS: usize = 16;

impl<'a> Parser<'a> {
    pub(super) fn declare_global_variable(&mut self, declared: (&'a str, Variable)) -> Result<VarId> {
        let (name, variable) = declared;
        let id = VarId(self.module.variables.len() as u32);
        if !self.scopes.declare_global_variable(name, id) {
            // `.extern` declarations may be repeated, and followed by the definition.
            let old = match self.scopes.find(name) {
                Some(Name::Symbol(Symbol::Global(old))) => old,
                _ => return self.fail(ParseErrorKind::DuplicateName(name.to_owned())),
            };
            let same = self.module.variables.get(old.index()).is_some_and(|old| old.linkage == Linkage::Extern);
            if !same {
                return self.fail(ParseErrorKind::DuplicateName(name.to_owned()));
            }
            if variable.linkage != Linkage::Extern {
                self.module.variables[old.index()] = variable;
            }
            return Ok(old);
        }
        self.module.variables.push(variable);
        Ok(id)
    }

    /// `.space .align n .type a[n] = init, b;` after its linkage.
    pub(super) fn variables(&mut self, linkage: Linkage) -> Result<Vec<(&'a str, Variable)>> {
        let base = self.variable_head(linkage)?;
        let mut variables = Vec::new();
        loop {
            let mut variable = base.clone();
            let name = self.declarator(&mut variable)?;
            if self.eat('=') {
                variable.init = Some(self.initializer(0)?);
            }
            variables.push((name, variable));
            if !self.eat(',') {
                break;
            }
        }
        self.semicolon()?;
        Ok(variables)
    }

    /// State space, alignment, vector and type.
    fn variable_head(&mut self, linkage: Linkage) -> Result<Variable> {
        let line = self.pos().line;
        let space = self.space()?;
        let mut align = None;
        let mut vector = 1;
        let mut managed = false;
        let ty = loop {
            match self.peek() {
                Token::Dot("align") => {
                    self.at += 1;
                    align = Some(self.alignment()?);
                }
                Token::Dot("v2") => {
                    self.at += 1;
                    vector = 2;
                }
                Token::Dot("v4") => {
                    self.at += 1;
                    vector = 4;
                }
                Token::Dot("attribute") => {
                    self.at += 1;
                    self.expect('(', "`(`")?;
                    if !self.eat_dot("managed") {
                        return self.fail(ParseErrorKind::Unsupported("attributes of variables other than `.managed`"));
                    }
                    managed = true;
                    self.expect(')', "`)`")?;
                }
                Token::Dot("texref" | "samplerref" | "surfref") => {
                    return self.fail(ParseErrorKind::Unsupported("textures, samplers and surfaces"));
                }
                _ => break self.declared_type()?,
            }
        };
        let mut variable = Variable::scalar("", space, ty);
        variable.align = align.unwrap_or(ty.bytes() * u32::from(vector));
        variable.vector = vector;
        variable.linkage = linkage;
        variable.managed = managed;
        variable.line = line;
        if self.eat_dot("ptr") {
            let mut ptr = PtrAttribute { space: None, align: None };
            while let Token::Dot(word) = self.peek() {
                if word == "align" {
                    self.at += 1;
                    ptr.align = Some(self.alignment()?);
                } else {
                    ptr.space = Some(self.space()?);
                }
            }
            variable.ptr = Some(ptr);
        }
        Ok(variable)
    }

    fn alignment(&mut self) -> Result<u32> {
        let align = self.number_u32("alignment")?;
        if align.is_power_of_two() {
            return Ok(align);
        }
        self.at -= 1;
        self.expected("a power of two")
    }

    /// A type that a variable or register may have.
    fn declared_type(&mut self) -> Result<ScalarType> {
        let ty = match self.peek() {
            Token::Dot(word) => ScalarType::from_text(word).filter(|ty| ty.is_fundamental()),
            _ => None,
        };
        match ty {
            Some(ty) => {
                self.at += 1;
                Ok(ty)
            }
            None => self.expected("a type"),
        }
    }

    /// Name and dimensions.
    fn declarator(&mut self, variable: &mut Variable) -> Result<&'a str> {
        let name = self.ident("a name")?;
        variable.name = name.to_owned();
        while self.eat('[') {
            if variable.dims.len() == MAX_DIMS {
                return self.fail(ParseErrorKind::TooMany { what: "dimensions", limit: MAX_DIMS as u64 });
            }
            let unsized_dim = variable.dims.is_empty() && self.peek() == Token::Punct(']');
            variable.dims.push(if unsized_dim { 0 } else { self.number("array size", i64::MAX as u64)? });
            self.expect(']', "`]`")?;
        }
        Ok(name)
    }

    fn initializer(&mut self, depth: usize) -> Result<Initializer> {
        if depth > MAX_DEPTH {
            return self.fail(ParseErrorKind::TooMany { what: "nested braces", limit: MAX_DEPTH as u64 });
        }
        match self.peek() {
            Token::Punct('{') => {
                self.at += 1;
                let mut values = Vec::new();
                if self.eat('}') {
                    return Ok(Initializer::List(values));
                }
                loop {
                    values.push(self.initializer(depth + 1)?);
                    if !self.eat(',') {
                        break;
                    }
                }
                self.expect('}', "`}`")?;
                Ok(Initializer::List(values))
            }
            Token::Ident(name) if name != "WARP_SZ" => {
                let generic = name == "generic" && self.ahead(1) == Token::Punct('(');
                if generic {
                    self.at += 2;
                }
                let Token::Ident(name) = self.peek() else { return self.expected("the name of a variable") };
                let symbol = match self.scopes.find(name) {
                    Some(Name::Symbol(symbol @ (Symbol::Global(_) | Symbol::Function(_)))) => symbol,
                    _ => return self.fail(ParseErrorKind::UnknownName(name.to_owned())),
                };
                self.at += 1;
                if generic {
                    self.expect(')', "`)`")?;
                }
                let offset = self.offset()?;
                Ok(Initializer::Symbol { symbol, offset, generic })
            }
            _ => Ok(Initializer::Imm(self.constant()?)),
        }
    }

    /// `( .param .u64 a, … )`.
    pub(super) fn params(&mut self) -> Result<Vec<Variable>> {
        self.expect('(', "`(`")?;
        let mut params = Vec::new();
        if self.eat(')') {
            return Ok(params);
        }
        loop {
            let mut param = self.variable_head(Linkage::Internal)?;
            if !matches!(param.space, StateSpace::Param | StateSpace::Reg) {
                self.at -= 1;
                return self.expected("a parameter in `.param` or `.reg`");
            }
            self.declarator(&mut param)?;
            params.push(param);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')', "`)`")?;
        Ok(params)
    }

    /// Launch and performance directives.
    pub(super) fn directives(&mut self) -> Result<Vec<Directive>> {
        let mut directives = Vec::new();
        loop {
            let Token::Dot(word) = self.peek() else { return Ok(directives) };
            let at = self.at;
            self.at += 1;
            directives.push(match word {
                "maxntid" => Directive::Maxntid(self.triple()?),
                "reqntid" => Directive::Reqntid(self.triple()?),
                "reqnctapercluster" => Directive::Reqnctapercluster(self.triple()?),
                "minnctapersm" => Directive::Minnctapersm(self.number_u32("CTAs")?),
                "maxnctapersm" => Directive::Maxnctapersm(self.number_u32("CTAs")?),
                "maxnreg" => Directive::Maxnreg(self.number_u32("registers")?),
                "maxclusterrank" => Directive::Maxclusterrank(self.number_u32("CTAs")?),
                "explicitcluster" => Directive::Explicitcluster,
                "noreturn" => Directive::Noreturn,
                "pragma" => {
                    self.at -= 1;
                    Directive::Pragma(self.pragma()?)
                }
                _ => {
                    self.at = at;
                    return self.fail(ParseErrorKind::Directive(word.to_owned()));
                }
            });
        }
    }

    /// One to three numbers.
    fn triple(&mut self) -> Result<Vec<u32>> {
        let mut values = vec![self.number_u32("extent")?];
        while values.len() < 3 && self.eat(',') {
            values.push(self.number_u32("extent")?);
        }
        Ok(values)
    }

    /// `.reg .b32 %r<10>, x;`
    pub(super) fn reg_decl(&mut self, regs: &mut RegTable) -> Result<RegDecl> {
        self.at += 1;
        if let Token::Dot("v2" | "v4") = self.peek() {
            return self.fail(ParseErrorKind::Unsupported("vector registers"));
        }
        let ty = self.declared_type()?;
        let mut entries = Vec::new();
        loop {
            let name = self.ident("the name of a register")?;
            if self.eat('<') {
                let count = self.number("number of registers", u64::from(u32::MAX))? as u32;
                self.reserve_registers(count as usize)?;
                self.expect('>', "`>`")?;
                let index = regs.add_name(name);
                let ids: Vec<RegId> =
                    (0..count).map(|number| regs.add(Register { ty, name: index, number: Some(number) })).collect();
                let first = ids.first().copied().unwrap_or(RegId(regs.len() as u32));
                if !self.scopes.declare_range(name, first, count) {
                    return self.fail(ParseErrorKind::DuplicateName(format!("{name}<{count}>")));
                }
                entries.push(RegEntry::Range { prefix: name.to_owned(), regs: ids });
            } else {
                let reg = self.declare_reg(name, ty, regs)?;
                entries.push(RegEntry::Single(reg));
            }
            if !self.eat(',') {
                break;
            }
        }
        self.semicolon()?;
        Ok(RegDecl { ty, entries })
    }

    fn reserve_registers(&mut self, count: usize) -> Result<()> {
        match self.registers.checked_add(count) {
            Some(total) if total <= MAX_REGISTERS => {
                self.registers = total;
                Ok(())
            }
            _ => self.fail(ParseErrorKind::TooMany { what: "registers", limit: MAX_REGISTERS as u64 }),
        }
    }

    /// One register with a name of its own.
    pub(super) fn declare_reg(&mut self, name: &'a str, ty: ScalarType, regs: &mut RegTable) -> Result<RegId> {
        self.reserve_registers(1)?;
        let index = regs.add_name(name);
        let reg = regs.add(Register { ty, name: index, number: None });
        if !self.scopes.declare(name, Name::Reg(reg)) {
            self.at -= 1;
            return self.fail(ParseErrorKind::DuplicateName(name.to_owned()));
        }
        Ok(reg)
    }
}
