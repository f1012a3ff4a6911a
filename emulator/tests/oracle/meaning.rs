//! What every variant of the table means: an oracle, or the place where it is tested instead. An instruction that is
//! new to the table fails to compile here or is reported by `every_variant_has_an_oracle`.

use tilewright_ptx::ScalarType;
use tilewright_ptx::isa::{Arith, Compare, Convert, Logic, Op};

use super::real::Format;
use super::table::Variant;
use super::{approximate, atomics, bits, compare, convert, float, integer, video};

/// What a result must be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Want {
    Bits(u64),
    /// Some NaN: the manual leaves open which.
    Nan(Format),
    /// The manual leaves it open.
    Open,
    /// The rounded value of a function, or one within the manual's bound of it when results are perturbed.
    Near {
        format: Format,
        value: f64,
        bound: f64,
    },
    /// As `Near`, with a zero for results below the least normal number (`.ftz`).
    NearOrFlushed {
        format: Format,
        value: f64,
        bound: f64,
    },
    /// As `Near`, of an f64 whose lower half is zero (`rcp.approx.ftz.f64`).
    Upper {
        value: f64,
        bound: f64,
    },
    /// Two halves, the lower first.
    Halves(Half, Half),
}

/// A half of a result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Half {
    Bits(u64),
    Nan(Format),
    Near { format: Format, value: f64, bound: f64 },
    Open,
}

impl Want {
    /// As the half of a result.
    pub fn half(self) -> Half {
        match self {
            Want::Bits(bits) => Half::Bits(bits),
            Want::Nan(format) => Half::Nan(format),
            Want::Near { format, value, bound } => Half::Near { format, value, bound },
            Want::Open | Want::NearOrFlushed { .. } | Want::Upper { .. } | Want::Halves(..) => Half::Open,
        }
    }
}

impl Half {
    pub fn want(self) -> Want {
        match self {
            Half::Bits(bits) => Want::Bits(bits),
            Half::Nan(format) => Want::Nan(format),
            Half::Near { format, value, bound } => Want::Near { format, value, bound },
            Half::Open => Want::Open,
        }
    }
}

/// From operands to results.
pub type Function = Box<dyn Fn(&[u64]) -> [Want; 2]>;

/// The meaning of a variant.
pub struct Meaning {
    /// Operands and result are two halves of 16 bits, computed each for itself.
    pub halves: bool,
    pub function: Function,
}

/// One result.
pub fn one(function: impl Fn(&[u64]) -> u64 + 'static) -> Option<Meaning> {
    wanted(move |x| Want::Bits(function(x)))
}

/// One result that need not be one pattern of bits.
pub fn wanted(function: impl Fn(&[u64]) -> Want + 'static) -> Option<Meaning> {
    two(move |x| [function(x), Want::Open])
}

/// Two results.
pub fn two(function: impl Fn(&[u64]) -> [Want; 2] + 'static) -> Option<Meaning> {
    Some(Meaning { halves: false, function: Box::new(function) })
}

/// Where a variant's meaning is to be found.
pub enum Source {
    Oracle(Meaning),
    /// In this test program of the emulator, for this reason.
    Elsewhere(&'static str, &'static str),
    /// Nowhere.
    Missing,
}

/// Whether an instruction is arithmetic, so that all its variants have oracles here; otherwise the part of `rows` that
/// executes it, and why.
pub fn room(op: Op) -> Result<(), (&'static str, &'static str)> {
    match op {
        Op::Arith(_) | Op::Logic(_) | Op::Compare(_) | Op::Math(_) | Op::Video(_) => Ok(()),
        Op::Atomic(_) => Ok(()),
        Op::Convert(Convert::Mov | Convert::Cvt | Convert::CvtPack) => Ok(()),
        Op::Convert(Convert::Cvta | Convert::Isspacep | Convert::Mapa | Convert::Getctarank) => {
            Err(("rows/memory.rs", "depends on where memory is"))
        }
        Op::Memory(_) => Err(("rows/memory.rs", "moves data")),
        Op::Synchronization(_) => Err(("rows/sync.rs", "orders threads")),
        Op::AsyncCopy(_) => Err(("rows/copies.rs", "moves data later")),
        Op::Warp(_) => Err(("rows/warp.rs", "acts on a warp")),
        Op::Matrix(_) => Err(("rows/matrix.rs", "acts on fragments of a warp")),
        Op::Control(_) => Err(("rows/control.rs", "directs control")),
        Op::Stack(_) => Err(("rows/control.rs", "allocates memory")),
    }
}

/// The meaning of a variant of an instruction for which [`room`] is here.
pub fn meaning(variant: &Variant) -> Option<Meaning> {
    match variant.form.op {
        Op::Arith(arith) => match arith {
            Arith::Dp4a | Arith::Dp2a | Arith::Sad | Arith::Mul24 | Arith::Mad24 | Arith::Rem => {
                integer::meaning(variant, arith)
            }
            Arith::AddCc | Arith::Addc | Arith::SubCc | Arith::Subc | Arith::MadCc | Arith::Madc => {
                integer::carry(variant, arith)
            }
            Arith::Add
            | Arith::Sub
            | Arith::Mul
            | Arith::Mad
            | Arith::Fma
            | Arith::Div
            | Arith::Abs
            | Arith::Neg
            | Arith::Min
            | Arith::Max
            | Arith::Copysign => {
                if variant.ty(0).is_float() {
                    float::meaning(variant, arith)
                } else {
                    integer::meaning(variant, arith)
                }
            }
        },
        Op::Logic(logic) => match logic {
            Logic::And
            | Logic::Or
            | Logic::Xor
            | Logic::Not
            | Logic::Cnot
            | Logic::Lop3
            | Logic::Shf
            | Logic::Shl
            | Logic::Shr
            | Logic::Popc
            | Logic::Clz
            | Logic::Bfind
            | Logic::Fns
            | Logic::Brev
            | Logic::Bfe
            | Logic::Bfi
            | Logic::Szext
            | Logic::Bmsk
            | Logic::Prmt => bits::meaning(variant, logic),
        },
        Op::Compare(compare) => match compare {
            Compare::Setp | Compare::Set | Compare::Selp | Compare::Slct | Compare::Testp => {
                compare::meaning(variant, compare)
            }
        },
        Op::Math(math) => approximate::meaning(variant, math),
        Op::Convert(Convert::Cvt) => convert::cvt(variant),
        Op::Convert(Convert::CvtPack) => convert::pack(variant),
        Op::Convert(Convert::Mov) => convert::mov(variant),
        Op::Video(_) => video::meaning(variant),
        _ => None,
    }
}

/// Where the meaning of a variant of an arithmetic instruction is tested.
pub fn source(variant: &Variant) -> Source {
    match meaning(variant) {
        Some(meaning) => Source::Oracle(meaning),
        None if atomics::has_oracle(variant) => Source::Elsewhere("oracle/atomics.rs", "acts on memory"),
        None => match (variant.form.op, variant.types.last()) {
            (Op::Convert(_), Some(ScalarType::B128)) => {
                Source::Elsewhere("oracle/moves.rs", "has registers of two parts")
            }
            (Op::Atomic(_), Some(ScalarType::B128)) => Source::Elsewhere("oracle/atomics.rs", "is refused"),
            _ => Source::Missing,
        },
    }
}
