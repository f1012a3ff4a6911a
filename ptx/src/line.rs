//! The line of an instruction that is short, with registers and constants. Most of a module's text are such lines, and
//! where code is not optimised it takes long to put many pieces of text behind each other. Others are printed by
//! [`crate::print`], which says how all are printed.

use crate::inst::Inst;
use crate::module::Function;
use crate::operand::{Address, AddressBase, Immediate, Operand, RegId};

/// The digits of small numbers, of which most registers have one, and how many these are.
static DECIMALS: [([u8; 3], usize); 1000] = decimals();

const fn decimals() -> [([u8; 3], usize); 1000] {
    let (mut all, mut number) = ([([0; 3], 0); 1000], 0);
    while number < all.len() {
        let digits = [(number / 100) as u8, (number / 10 % 10) as u8, (number % 10) as u8];
        let length = 1 + (number >= 10) as usize + (number >= 100) as usize;
        let mut at = 0;
        while at < length {
            all[number].0[at] = b'0' + digits[3 - length + at];
            at += 1;
        }
        all[number].1 = length;
        number += 1;
    }
    all
}

/// A line of text.
pub(crate) struct Line {
    bytes: [u8; Self::LENGTH],
    length: usize,
}

impl Line {
    const LENGTH: usize = 128;

    /// Nothing.
    pub const fn new() -> Self {
        Self { bytes: [0; Self::LENGTH], length: 0 }
    }

    /// What it says.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// Adds what is short enough.
    fn add(&mut self, text: &str) -> Option<()> {
        let end = self.length + text.len();
        if end > Self::LENGTH {
            return None;
        }
        self.bytes[self.length..end].copy_from_slice(text.as_bytes());
        self.length = end;
        Some(())
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        if self.length == Self::LENGTH {
            return None;
        }
        self.bytes[self.length] = byte;
        self.length += 1;
        Some(())
    }

    fn number(&mut self, mut number: u64) -> Option<()> {
        if number < DECIMALS.len() as u64 {
            let (digits, length) = &DECIMALS[number as usize];
            let end = self.length + length;
            if end > Self::LENGTH {
                return None;
            }
            self.bytes[self.length..end].copy_from_slice(&digits[..*length]);
            self.length = end;
            return Some(());
        }
        let (mut digits, mut at) = ([0_u8; 20], 20);
        while at == 20 || number > 0 {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        while at < 20 {
            self.byte(digits[at])?;
            at += 1;
        }
        Some(())
    }

    /// Eight digits.
    fn hexadecimal(&mut self, bits: u32) -> Option<()> {
        let mut shift = 32;
        while shift > 0 {
            shift -= 4;
            let digit = (bits >> shift & 15) as u8;
            self.byte(if digit < 10 { b'0' + digit } else { b'A' - 10 + digit })?;
        }
        Some(())
    }

    fn signed(&mut self, number: i64) -> Option<()> {
        if number < 0 {
            self.byte(b'-')?;
        }
        self.number(number.unsigned_abs())
    }

    fn reg(&mut self, function: &Function, reg: RegId) -> Option<()> {
        let (name, number) = function.regs.parts(reg)?;
        self.add(name)?;
        self.number(number?.into())
    }

    fn operands(&mut self, function: &Function, operands: &[Operand]) -> Option<()> {
        let mut at = 0;
        while at < operands.len() {
            if at > 0 {
                self.add(", ")?;
            }
            match &operands[at] {
                Operand::Reg(reg) => self.reg(function, *reg)?,
                Operand::Imm(Immediate::Int(value)) => self.signed(*value)?,
                Operand::Imm(Immediate::F32(bits)) => {
                    self.add("0f")?;
                    self.hexadecimal(*bits)?;
                }
                Operand::Address(Address { base: AddressBase::Reg(reg), offset }) => {
                    self.byte(b'[')?;
                    self.reg(function, *reg)?;
                    if *offset != 0 {
                        self.byte(b'+')?;
                        self.signed(*offset)?;
                    }
                    self.byte(b']')?;
                }
                Operand::Vector(elements) => {
                    self.byte(b'{')?;
                    self.operands(function, elements)?;
                    self.byte(b'}')?;
                }
                Operand::Label(label) => self.add(function.labels.get(label.index())?)?,
                _ => return None,
            }
            at += 1;
        }
        Some(())
    }

    /// The instruction with the end of the line; none if it has something else.
    pub fn inst(&mut self, indent: &str, function: &Function, inst: &Inst) -> Option<()> {
        self.add(indent)?;
        if let Some(guard) = inst.guard {
            self.add(if guard.negated { "@!" } else { "@" })?;
            self.reg(function, guard.reg)?;
            self.byte(b' ')?;
        }
        self.add(inst.form().mnemonic)?;
        for modifier in inst.modifiers.iter() {
            self.byte(b'.')?;
            self.add(modifier.text()?)?;
        }
        self.add(" ")?;
        self.operands(function, &inst.operands)?;
        self.add(";\n")
    }
}
