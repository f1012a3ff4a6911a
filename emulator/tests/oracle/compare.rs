//! Comparison and selection (9.7.5 to 9.7.7).

use std::cmp::Ordering;

use tilewright_ptx::ScalarType;
use tilewright_ptx::isa::Compare;

use super::inputs;
use super::integer::number;
use super::meaning::{Function, Meaning, Want, one, two, wanted};
use super::real::{self, BF16, F16, F32, Format};
use super::table::Variant;

/// Whether a comparison holds, by how the operands are ordered; `None` with a NaN.
fn holds(word: &str, order: Option<Ordering>) -> bool {
    let Some(order) = order else { return matches!(word, "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" | "nan") };
    match word {
        "eq" | "equ" => order.is_eq(),
        "ne" | "neu" => order.is_ne(),
        "lt" | "lo" | "ltu" => order.is_lt(),
        "le" | "ls" | "leu" => order.is_le(),
        "gt" | "hi" | "gtu" => order.is_gt(),
        "ge" | "hs" | "geu" => order.is_ge(),
        "num" => true,
        _ => false,
    }
}

/// How operands of a type are ordered.
fn order(ty: ScalarType, ftz: bool, a: u64, b: u64) -> Option<Ordering> {
    match inputs::format(ty) {
        Some((format, _)) => {
            let read = |bits: u64| format.decode(if ftz { format.flushed(bits) } else { bits });
            real::order(&read(a), &read(b))
        }
        None => Some(number(ty.bits(), ty.is_signed(), a).cmp(&number(ty.bits(), ty.is_signed(), b))),
    }
}

fn combined(word: Option<&str>, test: bool, c: Option<&u64>) -> bool {
    let c = c.is_some_and(|c| *c == 1);
    match word {
        Some("and") => test && c,
        Some("or") => test || c,
        Some("xor") => test != c,
        _ => test,
    }
}

pub fn meaning(variant: &Variant, compare: Compare) -> Option<Meaning> {
    let ftz = variant.has("ftz");
    let word = variant.words.first().cloned().unwrap_or_default();
    let logic = variant.words.get(1).filter(|word| matches!(word.as_str(), "and" | "or" | "xor")).cloned();
    match compare {
        Compare::Setp => {
            let ty = variant.ty(0);
            let pair = inputs::format(ty).is_some_and(|(_, parts)| parts == 2);
            let function: Function = Box::new(move |x: &[u64]| {
                let holds = |a, b| holds(&word, order(ty, ftz, a, b));
                let combined = |test| Want::Bits(u64::from(combined(logic.as_deref(), test, x.get(2))));
                if pair {
                    // d for the lower halves, p for the upper.
                    return [combined(holds(x[0] & 0xffff, x[1] & 0xffff)), combined(holds(x[0] >> 16, x[1] >> 16))];
                }
                let test = holds(x[0], x[1]);
                [combined(test), combined(!test)]
            });
            Some(Meaning { halves: false, function })
        }
        Compare::Set => {
            let (to, ty) = (variant.ty(0), variant.ty(1));
            let pair = inputs::format(ty).is_some_and(|(_, parts)| parts == 2);
            let yes = match (inputs::format(to), pair) {
                (Some((format, _)), _) => format.one(),
                (None, true) => 0xffff,
                (None, false) => u64::MAX >> (64 - to.bits()),
            };
            let meaning = wanted(move |x| {
                let test = holds(&word, order(ty, ftz, x[0], x[1]));
                Want::Bits(if combined(logic.as_deref(), test, x.get(2)) { yes } else { 0 })
            });
            meaning.map(|meaning| Meaning { halves: pair, ..meaning })
        }
        Compare::Selp => one(|x| if x[2] == 1 { x[0] } else { x[1] }),
        Compare::Slct => {
            let by = variant.ty(1);
            one(move |x| {
                let first = match by {
                    // A NaN is not at least zero; −0 is.
                    ScalarType::F32 => order(by, ftz, x[2], 0).is_some_and(Ordering::is_ge),
                    _ => number(32, true, x[2]) >= 0,
                };
                if first { x[0] } else { x[1] }
            })
        }
        Compare::Testp => {
            let (format, _) = inputs::format(variant.ty(0))?;
            two(move |x| [Want::Bits(u64::from(is_of_class(&word, format, x[0]))), Want::Open])
        }
    }
}

/// 9.7.3.1: zeros count as normal.
fn is_of_class(class: &str, format: Format, bits: u64) -> bool {
    let magnitude = bits & format.nan();
    let least_normal = 1 << format.fraction;
    match class {
        "finite" => magnitude < format.infinity(),
        "infinite" => magnitude == format.infinity(),
        "number" => magnitude <= format.infinity(),
        "notanumber" => magnitude > format.infinity(),
        "normal" => magnitude == 0 || magnitude >= least_normal && magnitude < format.infinity(),
        "subnormal" => magnitude > 0 && magnitude < least_normal,
        _ => false,
    }
}

#[test]
fn one_is_one() {
    assert_eq!([F16.one(), BF16.one(), F32.one()], [0x3c00, 0x3f80, 0x3f80_0000]);
}
