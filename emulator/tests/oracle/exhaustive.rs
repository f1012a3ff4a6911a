//! Instructions of one small float over all inputs; conversions to small formats over all their values, the midpoints
//! between these, and the neighbours of both in the wider format.

use tilewright_ptx::ScalarType;
use tilewright_ptx::isa::{Arith, Convert, Math, Op};

use super::meaning::{self, Source};
use super::real::{E4M3, E5M2, Format, Round, TF32};
use super::table::{self, Variant};
use super::{harness, inputs, is_campaign};

/// Runs variants on inputs; of two operands, the second is another input.
fn run(ops: impl IntoIterator<Item = Op>, inputs: impl Fn(usize, &Variant) -> Vec<u64>) {
    let (mut count, mut mistakes) = (0, Vec::new());
    for variant in ops.into_iter().flat_map(table::variants).filter(is_narrow) {
        let (Source::Oracle(meaning), inputs) = (meaning::source(&variant), inputs(count, &variant)) else { continue };
        if inputs.is_empty() {
            continue;
        }
        let partner = |at: usize| inputs[(at * 40_503 + 12_345) % inputs.len()];
        let row = |(at, input): (usize, &u64)| [*input, partner(at)][..variant.sources.len()].to_vec();
        let rows = inputs.iter().enumerate().map(row).collect();
        mistakes.extend(harness::check_rows(&variant, &meaning, rows));
        count += 1;
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(count > 0, "there are such variants");
    println!("{count} variants");
}

/// Registers are no wider than their types, and one operand is enough.
fn is_narrow(variant: &Variant) -> bool {
    let fits = |ty: ScalarType, register: u32| register == ty.bits().max(16);
    variant.results.iter().all(|place| fits(place.ty, place.register))
        && variant.sources.iter().all(|source| fits(source.ty, source.register))
}

/// One in so many, others for each variant; all in a campaign.
fn sample(of: impl Iterator<Item = u64>, variant: usize, one_in: usize) -> Vec<u64> {
    let step = if is_campaign() { 1 } else { one_in };
    of.skip(variant % step).step_by(step).collect()
}

#[test]
fn every_input_of_16_bits() {
    run([Op::Convert(Convert::Cvt)], |number, variant| match (variant.ty(1), variant.ty(1).is_float()) {
        (ty, _) if ty.bits() > 16 => Vec::new(),
        (_, true) => (0..0x1_0000).collect(),
        (_, false) => sample(0..0x1_0000, number, 31),
    });
    let unary = [Op::Arith(Arith::Abs), Op::Arith(Arith::Neg), Op::Math(Math::Ex2), Op::Math(Math::Tanh)];
    run(unary, |_, variant| {
        if inputs::format(variant.ty(0)).is_some_and(|(format, _)| format.bits() == 16) {
            // Of pairs, the upper half runs through all inputs too.
            let upper = if variant.ty(0).bits() == 32 { 0x9e37 } else { 0 };
            (0..0x1_0000u64).map(|low| low | ((low * upper) & 0xffff) << 16).collect()
        } else {
            Vec::new()
        }
    });
}

/// Every value of a format, what lies between it and the next, and their neighbours, as bits of a wider format.
fn boundaries(to: Format, from: Format) -> impl Iterator<Item = u64> {
    let bits = move |code: u64| from.encode(&to.decode(code), Round::Even);
    (0..=to.greatest()).flat_map(move |code| {
        let here = bits(code);
        // From the greatest, as far as from the one before it. Codes are linear between neighbours.
        let next = if code < to.greatest() { bits(code + 1) } else { 2 * here - bits(code - 1) };
        let middle = here / 2 + next / 2 + (here & next & 1);
        [here, here + 1, here.wrapping_sub(1), middle, middle + 1, middle - 1, here | from.sign(), middle | from.sign()]
            .map(|bits| bits & (from.sign() | from.nan()))
            .into_iter()
            .chain([middle + 1, middle - 1].map(|bits| bits | from.sign()))
    })
}

#[test]
fn every_boundary_of_a_small_format() {
    run([Op::Convert(Convert::Cvt)], |number, variant| {
        let (to, from) = (inputs::format(variant.ty(0)), inputs::format(variant.ty(1)));
        let to = if variant.ty(0) == ScalarType::Tf32 { Some((TF32, 1)) } else { to };
        let (Some((to, _)), Some((from, parts))) = (to, from) else { return Vec::new() };
        if from.fraction <= to.fraction || from.exponent < to.exponent || to.bits() > 19 {
            return Vec::new();
        }
        let one_in = match to {
            E4M3 | E5M2 => 1,
            TF32 => 1009,
            _ => 101,
        };
        let values = sample(boundaries(to, from), number, one_in);
        if parts == 1 {
            values
        } else {
            values.iter().map(|bits| bits | bits.rotate_left(5) << 16 & 0xffff_0000).collect()
        }
    });
}
