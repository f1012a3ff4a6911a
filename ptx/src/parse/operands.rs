//! Operands of instructions.

use super::scope::Name;
use super::{ParseErrorKind, Parser, Result};
use crate::lex::Token;
use crate::operand::{Address, AddressBase, Immediate, Operand};
use crate::special::SpecialReg;

impl Parser<'_> {
    pub(super) fn operand(&mut self, depth: usize) -> Result<Operand> {
        match self.peek() {
            Token::Punct('{') if depth == 0 => {
                self.at += 1;
                Ok(Operand::Vector(self.operand_list('}')?))
            }
            Token::Punct('(') if depth == 0 => {
                self.at += 1;
                Ok(Operand::List(self.operand_list(')')?))
            }
            Token::Punct('[') if depth == 0 => self.memory_operand(),
            Token::Punct('!') => {
                self.at += 1;
                let name = self.ident("a predicate")?;
                match self.scopes.find(name) {
                    Some(Name::Reg(reg)) => Ok(Operand::NotReg(reg)),
                    _ => {
                        self.at -= 1;
                        self.fail(ParseErrorKind::UnknownName(name.to_owned()))
                    }
                }
            }
            Token::Number(..) | Token::Punct('-') => Ok(Operand::Imm(self.constant()?)),
            Token::Ident(_) => {
                let first = self.named()?;
                if depth == 0 && self.eat('|') {
                    let second = self.named()?;
                    return Ok(Operand::Pair(Box::new(first), Box::new(second)));
                }
                Ok(first)
            }
            _ => self.expected("an operand"),
        }
    }

    /// Operands separated by commas up to and with the closing character.
    fn operand_list(&mut self, close: char) -> Result<Vec<Operand>> {
        let mut operands = Vec::new();
        if self.eat(close) {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand(1)?);
            if self.eat(close) {
                return Ok(operands);
            }
            if !self.eat(',') {
                return self.expected("`,` or the end of the list");
            }
        }
    }

    /// A register, special register, symbol with offset, label, sink or `WARP_SZ`.
    fn named(&mut self) -> Result<Operand> {
        let Token::Ident(name) = self.peek() else { return self.expected("a name") };
        match name {
            "_" => {
                self.at += 1;
                return Ok(Operand::Sink);
            }
            "WARP_SZ" => {
                self.at += 1;
                return Ok(Operand::Imm(Immediate::WarpSize));
            }
            _ => {}
        }
        let found = self.scopes.find(name);
        if found.is_none()
            && let Some(special) = self.special(name)
        {
            return Ok(Operand::Special(special));
        }
        let Some(found) = found else { return self.fail(ParseErrorKind::UnknownName(name.to_owned())) };
        self.at += 1;
        if let Token::Dot(_) = self.peek() {
            return self.fail(ParseErrorKind::Unsupported("parts of vector registers"));
        }
        Ok(match found {
            Name::Reg(reg) => Operand::Reg(reg),
            Name::Label(label) => Operand::Label(label),
            Name::Symbol(symbol) => Operand::Symbol(symbol, self.offset()?),
        })
    }

    /// `%tid.x` and its kin; passes its tokens.
    fn special(&mut self, name: &str) -> Option<SpecialReg> {
        if let Token::Dot(part @ ("x" | "y" | "z")) = self.ahead(1)
            && let Some(special) = SpecialReg::from_text(&format!("{name}.{part}"))
        {
            self.at += 2;
            return Some(special);
        }
        let special = SpecialReg::from_text(name)?;
        self.at += 1;
        Some(special)
    }

    /// `[base+offset]` or `[map, {coordinates}]`.
    fn memory_operand(&mut self) -> Result<Operand> {
        self.at += 1;
        let address = match self.peek() {
            Token::Ident(name) => {
                let base = match self.scopes.find(name) {
                    Some(Name::Reg(reg)) => AddressBase::Reg(reg),
                    Some(Name::Symbol(symbol)) => AddressBase::Symbol(symbol),
                    Some(Name::Label(_)) | None => {
                        return self.fail(ParseErrorKind::UnknownName(name.to_owned()));
                    }
                };
                self.at += 1;
                Address { base, offset: self.offset()? }
            }
            _ => {
                let offset = match self.constant()? {
                    Immediate::Int(value) => value,
                    Immediate::UInt(value) => value as i64,
                    _ => {
                        self.at -= 1;
                        return self.expected("an integer address");
                    }
                };
                Address { base: AddressBase::Absolute, offset }
            }
        };
        if self.eat(',') {
            self.expect('{', "the coordinates of a tensor in braces")?;
            let coords = self.operand_list('}')?;
            self.expect(']', "`]`")?;
            return Ok(Operand::Tensor(address, coords));
        }
        self.expect(']', "`]`")?;
        Ok(Operand::Address(address))
    }
}
