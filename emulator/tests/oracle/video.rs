//! SIMD video instructions (9.7.18.2) over `i64`.

use super::integer::{clamp, cut, number};
use super::meaning::{Meaning, one};
use super::table::Variant;

pub fn meaning(variant: &Variant) -> Option<Meaning> {
    let mnemonic = variant.form.mnemonic;
    let (operation, bits) = match mnemonic.strip_suffix('4') {
        Some(operation) => (operation, 8),
        None => (mnemonic.strip_suffix('2')?, 16),
    };
    let operation: fn(i128, i128) -> i128 = match operation {
        "vadd" => |a, b| a + b,
        "vsub" => |a, b| a - b,
        // One is added to a sum that is not negative, and the shift rounds down.
        "vavrg" => |a, b| (a + b + i128::from(a + b >= 0)).div_euclid(2),
        "vabsdiff" => |a, b| (a - b).abs(),
        "vmin" => i128::min,
        "vmax" => i128::max,
        _ => return None,
    };
    let signed: Vec<bool> = (0..3).map(|number| variant.ty(number).is_signed()).collect();
    let (sat, accumulate) = (variant.has("sat"), variant.has("add"));
    one(move |x| {
        let part = |raw: u64, at: u32, signed| number(bits, signed, raw >> at);
        let results = (0..32)
            .step_by(bits as usize)
            .map(|at| (at, operation(part(x[0], at, signed[1]), part(x[1], at, signed[2]))));
        if accumulate {
            return cut(32, results.map(|(_, value)| value).sum::<i128>() + i128::from(x[2]));
        }
        results.map(|(at, value)| cut(bits, if sat { clamp(bits, signed[0], value) } else { value }) << at).sum()
    })
}
