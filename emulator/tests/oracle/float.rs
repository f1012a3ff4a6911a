//! Floating-point arithmetic: the exact value, rounded once, with what the modifiers say before and after (9.7.3,
//! 9.7.4).

use tilewright_ptx::isa::Arith;

use super::inputs;
use super::meaning::{Meaning, Want, wanted};
use super::real::{self, F32, F64, Format, Round, Value};
use super::table::Variant;

/// What happens before and after every operation.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    pub format: Format,
    pub round: Round,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
}

impl Mode {
    pub fn of(variant: &Variant, format: Format) -> Mode {
        let flag = |word: &str| variant.has(word);
        Mode { format, round: round(variant), ftz: flag("ftz"), sat: flag("sat"), relu: flag("relu") }
    }

    /// An operand as its bits, flushed.
    pub fn operand(self, bits: u64) -> u64 {
        if self.ftz { self.format.flushed(bits) } else { bits }
    }

    pub fn read(self, bits: u64) -> Value {
        self.format.decode(self.operand(bits))
    }

    /// A result of bits: flushed, clamped.
    pub fn result(self, bits: u64) -> Want {
        let format = self.format;
        let bits = if self.ftz { format.flushed(bits) } else { bits };
        if format.is_nan(bits) {
            return match (self.sat, format) {
                (true, _) => Want::Bits(0),
                // Of f64 the manual says that payloads are kept, and not whose.
                (false, F64) => Want::Nan(F64),
                (false, _) => Want::Bits(format.nan()),
            };
        }
        let negative = bits & format.sign() != 0;
        Want::Bits(match (self.sat, self.relu) {
            (true, _) if negative => 0,
            (true, _) => bits.min(format.one()),
            (_, true) if negative => 0,
            _ => bits,
        })
    }

    pub fn write(self, value: &Value) -> Want {
        self.result(self.format.encode(value, self.round))
    }
}

/// The rounding of an instruction: to nearest even if nothing is said.
pub fn round(variant: &Variant) -> Round {
    let rounds = [
        ("rna", Round::Away),
        ("rz", Round::Zero),
        ("rm", Round::Down),
        ("rp", Round::Up),
        ("rzi", Round::Zero),
        ("rmi", Round::Down),
        ("rpi", Round::Up),
    ];
    rounds.into_iter().find(|(word, _)| variant.has(word)).map_or(Round::Even, |(_, round)| round)
}

pub fn meaning(variant: &Variant, arith: Arith) -> Option<Meaning> {
    let (format, parts) = inputs::format(variant.ty(0))?;
    let mode = Mode::of(variant, format);
    let (sign, nan) = (format.sign(), variant.has("NaN"));
    let meaning = match arith {
        Arith::Add => wanted(move |x| mode.write(&real::add(mode.read(x[0]), mode.read(x[1]), mode.round))),
        Arith::Sub => {
            wanted(move |x| mode.write(&real::add(mode.read(x[0]), real::negated(mode.read(x[1])), mode.round)))
        }
        Arith::Mul => wanted(move |x| mode.write(&real::mul(mode.read(x[0]), mode.read(x[1])))),
        Arith::Mad | Arith::Fma => {
            // An operand of all ones stands for data that is not there: the result is zero.
            let oob = variant.has("oob");
            wanted(move |x| {
                if oob && (x[0] == 0xffff || x[1] == 0xffff) {
                    return Want::Bits(0);
                }
                let product = real::mul(mode.read(x[0]), mode.read(x[1]));
                mode.write(&real::add(product, mode.read(x[2]), mode.round))
            })
        }
        Arith::Div if variant.has("approx") || variant.has("full") => {
            let full = variant.has("full");
            wanted(move |x| approximate_quotient(mode, full, mode.operand(x[0]), mode.operand(x[1])))
        }
        Arith::Div => wanted(move |x| mode.write(&real::div(mode.read(x[0]), mode.read(x[1])))),
        // Which NaN is open, but for `abs.f64`, which passes it through.
        Arith::Abs | Arith::Neg => wanted(move |x| {
            let bits = mode.operand(x[0]);
            if format.is_nan(bits) {
                return Want::Nan(format);
            }
            Want::Bits(if arith == Arith::Abs { bits & !sign } else { bits ^ sign })
        }),
        Arith::Min | Arith::Max => {
            let (xorsign, max) = (variant.has("xorsign"), arith == Arith::Max);
            wanted(move |x| {
                let (a, b) = (mode.operand(x[0]), mode.operand(x[1]));
                let strip = |bits: u64| if xorsign { bits & !sign } else { bits };
                let (u, v) = (strip(a), strip(b));
                let chosen = match (format.is_nan(u), format.is_nan(v)) {
                    (true, true) => return nan_of(format),
                    (true, _) | (_, true) if nan => return nan_of(format),
                    (true, false) => v,
                    (false, true) => u,
                    (false, false) => {
                        // −0 counts as below +0.
                        let order = real::order(&format.decode(u), &format.decode(v));
                        let less = order.is_some_and(|order| order.is_lt() || order.is_eq() && u & sign != 0);
                        if less == max { v } else { u }
                    }
                };
                Want::Bits(if xorsign { chosen | (a ^ b) & sign } else { chosen })
            })
        }
        Arith::Copysign => wanted(move |x| Want::Bits(x[1] & !sign | x[0] & sign)),
        _ => None,
    };
    meaning.map(|meaning| Meaning { halves: parts == 2, ..meaning })
}

fn nan_of(format: Format) -> Want {
    if format == F64 { Want::Nan(F64) } else { Want::Bits(format.nan()) }
}

/// `div.approx` and `div.full` (9.7.3.8): two units in the last place; `div.approx` only for divisors from 2^-126 to
/// 2^126, and above that zero, or NaN for an infinite dividend.
fn approximate_quotient(mode: Mode, full: bool, a: u64, b: u64) -> Want {
    let (x, y) = (F32.to_f64(a), F32.to_f64(b));
    let magnitude = y.abs();
    if !full && magnitude > 126f64.exp2() && magnitude.is_finite() {
        return match (x.is_nan() || x.is_infinite(), x.is_sign_negative() != y.is_sign_negative()) {
            (true, _) => Want::Bits(F32.nan()),
            (false, false) => Want::Bits(0),
            (false, true) => Want::Bits(F32.sign()),
        };
    }
    let quotient = x / y;
    // Exact cases are those of a quotient; at the edges of overflow and underflow the bound decides.
    match mode.write(&real::div(F32.decode(a), F32.decode(b))) {
        Want::Bits(bits) if quotient == 0.0 || F32.is_nan(bits) => Want::Bits(bits),
        Want::Bits(bits) if bits & F32.nan() == F32.infinity() && quotient.abs() > 128f64.exp2() * 1.000_001 => {
            Want::Bits(bits)
        }
        _ if mode.ftz => Want::NearOrFlushed { format: F32, value: quotient, bound: 2.0 * unit(F32, quotient) },
        _ => Want::Near { format: F32, value: quotient, bound: 2.0 * unit(F32, quotient) },
    }
}

/// The unit in the last place of a format at a value.
pub fn unit(format: Format, value: f64) -> f64 {
    let exponent = (value.abs().log2().floor() as i32).max(2 - (1 << (format.exponent - 1)));
    f64::from(exponent - format.fraction as i32).exp2()
}
