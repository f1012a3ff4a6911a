//! Operands: registers, immediates, addresses, vectors and the rest of what may follow a mnemonic.

use crate::special::SpecialReg;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub struct $name(pub u32);
        impl $name {
            /// The id as an index into its table.
            pub const fn index(self) -> usize { self.0 as usize }
        }
    };
}

id! {
    /// A register of one function: an index into [`crate::RegTable`].
    RegId
}
id! {
    /// A label of one function: an index into [`crate::Function::labels`].
    LabelId
}
id! {
    /// A variable of a module or of a function, depending on the [`Symbol`] around it.
    VarId
}
id! {
    /// A function of a module: an index into [`crate::Module::functions`].
    FuncId
}

/// A name that stands for an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Symbol {
    /// [`crate::Module::variables`].
    Global(VarId),
    /// [`crate::Function::params`] of the function the instruction is in.
    Param(VarId),
    /// [`crate::Function::returns`] of the function the instruction is in.
    Return(VarId),
    /// [`crate::Function::variables`] of the function the instruction is in.
    Local(VarId),
    /// [`crate::Module::functions`].
    Function(FuncId),
}

/// A constant operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Immediate {
    /// An integer that fits 64 signed bits.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Bits of a single-precision value (`0f3F800000`).
    F32(u32),
    /// Bits of a double-precision value (`0d3FF0000000000000`, or a decimal such as `1.0`).
    F64(u64),
    /// `WARP_SZ`, which is 32.
    WarpSize,
}

impl Immediate {
    /// The exact single-precision constant.
    pub fn f32(value: f32) -> Immediate {
        Immediate::F32(value.to_bits())
    }

    /// The exact double-precision constant.
    pub fn f64(value: f64) -> Immediate {
        Immediate::F64(value.to_bits())
    }

    /// The value as 64 integer bits (two's complement), or `None` for a floating-point constant.
    pub fn int_bits(self) -> Option<u64> {
        match self {
            Immediate::Int(value) => Some(value as u64),
            Immediate::UInt(value) => Some(value),
            Immediate::WarpSize => Some(32),
            Immediate::F32(_) | Immediate::F64(_) => None,
        }
    }

    /// The mathematical value of an integer constant.
    pub fn int_value(self) -> Option<i128> {
        match self {
            Immediate::Int(value) => Some(i128::from(value)),
            Immediate::UInt(value) => Some(i128::from(value)),
            Immediate::WarpSize => Some(32),
            Immediate::F32(_) | Immediate::F64(_) => None,
        }
    }
}

/// What an address starts from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum AddressBase {
    /// The value of a register.
    Reg(RegId),
    /// The address of a variable or parameter.
    Symbol(Symbol),
    /// Nothing: the offset is the address.
    Absolute,
}

/// `[base + offset]`, or an array element `x[i]` with the byte offset computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Address {
    /// What it starts from.
    pub base: AddressBase,
    /// Bytes to add.
    pub offset: i64,
}

impl Address {
    /// `[reg]`.
    pub const fn reg(reg: RegId) -> Self {
        Address { base: AddressBase::Reg(reg), offset: 0 }
    }

    /// `[symbol]`.
    pub const fn symbol(symbol: Symbol) -> Self {
        Address { base: AddressBase::Symbol(symbol), offset: 0 }
    }

    /// The same base with this offset in bytes.
    pub const fn offset(self, offset: i64) -> Self {
        Address { base: self.base, offset }
    }
}

/// An operand of an instruction.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// A negated predicate register: `!%p1`.
    NotReg(RegId),
    /// A result that is dropped: `_`.
    Sink,
    /// A constant.
    Imm(Immediate),
    /// A special register such as `%tid.x`.
    Special(SpecialReg),
    /// The address of a variable, or a function, as a value: `mov.u64 %rd1, x+4;`.
    Symbol(Symbol, i64),
    /// A memory operand in brackets.
    Address(Address),
    /// The operand of a tensor copy: `[map, {c0, c1}]`.
    Tensor(Address, Vec<Operand>),
    /// Two results: `d|p`. Either may be a sink.
    Pair(Box<Operand>, Box<Operand>),
    /// A vector: `{a, b}`.
    Vector(Vec<Operand>),
    /// A label.
    Label(LabelId),
    /// Arguments or results of a call: `(a, b)`.
    List(Vec<Operand>),
}

impl Operand {
    /// A vector of operands.
    pub fn vector<T: Into<Operand>>(elements: impl IntoIterator<Item = T>) -> Operand {
        Operand::Vector(elements.into_iter().map(Into::into).collect())
    }

    /// `d|p`.
    pub fn pair(first: impl Into<Operand>, second: impl Into<Operand>) -> Operand {
        Operand::Pair(Box::new(first.into()), Box::new(second.into()))
    }

    /// Calls `visit` with every register in the operand, addresses and vectors included.
    pub fn for_each_reg(&self, visit: &mut impl FnMut(RegId)) {
        let address = |address: &Address, visit: &mut dyn FnMut(RegId)| {
            if let AddressBase::Reg(reg) = address.base {
                visit(reg);
            }
        };
        match self {
            Operand::Reg(reg) | Operand::NotReg(reg) => visit(*reg),
            Operand::Address(a) => address(a, visit),
            Operand::Tensor(a, coords) => {
                address(a, visit);
                for coord in coords {
                    coord.for_each_reg(visit);
                }
            }
            Operand::Pair(first, second) => {
                first.for_each_reg(visit);
                second.for_each_reg(visit);
            }
            Operand::Vector(elements) | Operand::List(elements) => {
                for element in elements {
                    element.for_each_reg(visit);
                }
            }
            Operand::Sink | Operand::Imm(_) | Operand::Special(_) | Operand::Symbol(..) | Operand::Label(_) => {}
        }
    }
}

macro_rules! from {
    ($($ty:ty => |$value:ident| $operand:expr;)*) => {
        $(impl From<$ty> for Operand { fn from($value: $ty) -> Operand { $operand } })*
    };
}
from! {
    RegId => |reg| Operand::Reg(reg);
    Immediate => |value| Operand::Imm(value);
    i32 => |value| Operand::Imm(Immediate::Int(i64::from(value)));
    i64 => |value| Operand::Imm(Immediate::Int(value));
    u32 => |value| Operand::Imm(Immediate::Int(i64::from(value)));
    u64 => |value| Operand::Imm(i64::try_from(value).map_or(Immediate::UInt(value), Immediate::Int));
    f32 => |value| Operand::Imm(Immediate::f32(value));
    f64 => |value| Operand::Imm(Immediate::f64(value));
    SpecialReg => |special| Operand::Special(special);
    Symbol => |symbol| Operand::Symbol(symbol, 0);
    Address => |address| Operand::Address(address);
    LabelId => |label| Operand::Label(label);
    &RegId => |reg| Operand::Reg(*reg);
    &Operand => |operand| operand.clone();
}
