//! The conformance files of arithmetic: what the oracle says of chosen operands, as data.
//!
//! Instructions that take the same operands are columns of one kernel. Of a form with many modifiers those variants are
//! chosen in which two modifiers meet for the first time. Expected results are what the manual admits: of an
//! approximation all that its bound admits, and not what the emulator computes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tilewright_conformance::file::{Case, Family, Param};
use tilewright_conformance::want::Want as Told;
use tilewright_ptx::ScalarType;
use tilewright_ptx::isa::{Arith, Compare, Convert, Logic, Math, Op};

use super::harness::{declaration, is_near, load, register};
use super::inputs::{self, Random};
use super::meaning::{self, Half, Meaning, Want};
use super::real::{F16, F32, F64, Format, Round};
use super::table::{self, Variant};
use super::{atomics, harness};

/// Rows of a case, one a thread.
const ROWS: usize = 32;
/// Instructions of a case.
const COLUMNS: usize = 8;

/// The family of a variant with an oracle, and what it asks.
fn family(variant: &Variant) -> Option<(&'static str, &'static str)> {
    let float = |number: usize| variant.types.get(number).is_some_and(|ty| inputs::format(*ty).is_some());
    let small = |ty: &ScalarType| {
        matches!(ty, ScalarType::E4m3 | ScalarType::E5m2 | ScalarType::E4m3x2 | ScalarType::E5m2x2 | ScalarType::Tf32)
    };
    Some(match variant.form.op {
        Op::Arith(Arith::AddCc | Arith::Addc | Arith::SubCc | Arith::Subc | Arith::MadCc | Arith::Madc) => {
            ("carry", "additions, subtractions and products with carry, in and out")
        }
        Op::Arith(arith) if !float(0) => match arith {
            Arith::Mul | Arith::Mad | Arith::Mul24 | Arith::Mad24 | Arith::Dp4a | Arith::Dp2a => {
                ("multiply", "products of integers: low, high, wide, of 24 bits, sums of four and of two")
            }
            _ => ("integer", "integers: sums, differences, extremes, signs, quotients, at the ends of each type"),
        },
        Op::Arith(_) => match variant.ty(0) {
            ScalarType::F32 => ("f32", "arithmetic of f32, in each rounding, with flushed subnormals and saturation"),
            ScalarType::F64 => ("f64", "arithmetic of f64, in each rounding"),
            _ => ("half", "arithmetic of f16 and bf16, alone and in pairs"),
        },
        Op::Logic(logic) => match logic {
            Logic::And | Logic::Or | Logic::Xor | Logic::Not | Logic::Cnot | Logic::Lop3 | Logic::Prmt => {
                ("logic", "logic, tables of three operands, permutations of bytes")
            }
            _ => ("bits", "shifts and fields at and beyond the width, counts and positions of bits"),
        },
        Op::Compare(Compare::Setp) => ("setp", "comparisons into predicates, also of NaN, also combined"),
        Op::Compare(Compare::Set) => ("set", "comparisons into registers, also of NaN, also combined"),
        Op::Compare(_) => ("select", "choices, classes of floats"),
        Op::Math(_) if variant.has("approx") => {
            ("approximate", "approximations, within the bounds that the manual gives")
        }
        Op::Math(_) => ("roots", "reciprocals and roots in each rounding"),
        Op::Convert(Convert::Mov) => ("moves", "moves, packed and unpacked"),
        Op::Convert(_) if variant.types.iter().any(small) => {
            ("convert_small", "conversions to and from floats of 8 bits and tf32, with saturation")
        }
        Op::Convert(_) => match (float(0), float(1)) {
            (false, false) => ("convert_integers", "conversions of integers, with and without saturation"),
            (false, true) => ("convert_to_integers", "floats to integers: each rounding, ends of the types, NaN"),
            (true, false) => ("convert_to_floats", "integers to floats: each rounding"),
            (true, true) => ("convert_floats", "floats to floats: each rounding, saturation, NaN, subnormals"),
        },
        Op::Video(_) => ("video", "four bytes and two halves at a time"),
        _ => return None,
    })
}

/// Values of a float that programs trip over.
fn notable(format: Format) -> Vec<u64> {
    let (one, sign, least) = (format.one(), format.sign(), 1_u64 << format.fraction);
    let half = |value: f64| format.encode(&F64.decode(value.to_bits()), Round::Even);
    vec![
        0,
        sign,
        1,
        sign | (least - 1),
        least,
        one,
        one | sign,
        one + 1,
        format.greatest(),
        format.greatest() | sign,
        format.infinity(),
        format.infinity() | sign,
        format.nan(),
        format.infinity() | 1 | sign,
        format.infinity() | least >> 1,
        half(0.5),
        half(1.5),
        half(-2.5),
        half(3.5),
        half(-127.5),
    ]
}

/// The same of an operand of an instruction.
fn values(variant: &Variant, source: usize) -> Vec<u64> {
    let ty = variant.sources[source].ty;
    match inputs::format(ty) {
        Some((format, 1)) => notable(format),
        Some((format, _)) => {
            let single = notable(format);
            let other = |at: usize| single[(at * 7 + 3) % single.len()];
            single.iter().enumerate().map(|(at, low)| low | other(at) << format.bits()).collect()
        }
        None if inputs::is_amount(variant, source) || ty == ScalarType::Pred => inputs::edges(variant, source),
        None => {
            let ones = u64::MAX >> (64 - ty.bits().min(64));
            let high = ones ^ ones >> 1;
            let mixed = [0x0123_4567_89ab_cdef & ones, 0xfedc_ba98_7654_3210 & ones];
            [vec![0, 1, ones, high, ones >> 1, 2, ones - 1, high + 1, 7], mixed.to_vec()].concat()
        }
    }
}

/// Operands: first pairs of notable values, those that follow from one another among them, then edges and random ones.
fn rows(variant: &Variant, seed: u64) -> Vec<Vec<u64>> {
    let lists: Vec<Vec<u64>> = (0..variant.sources.len()).map(|source| values(variant, source)).collect();
    let count = if lists.len() == 1 { lists[0].len().min(ROWS - 8) } else { ROWS - 10 };
    let mut all: Vec<Vec<u64>> = Vec::with_capacity(ROWS);
    for row in 0..count {
        let pick = |(number, list): (usize, &Vec<u64>)| {
            let at = match number {
                0 => row,
                // The same, the next one, and others.
                1 => [row, row + 1, row * 3 + 5][row % 3],
                other => row * (2 * other + 1) + other,
            };
            list[at % list.len()]
        };
        all.push(lists.iter().enumerate().map(pick).collect());
    }
    all.extend(inputs::rows(variant, ROWS - count, seed));
    for row in &mut all {
        for (value, source) in row.iter_mut().zip(&variant.sources) {
            *value = source.fixed.map_or(*value, |_| 0);
        }
    }
    all
}

/// Variants of an instruction: registers no wider than the type, tables of `lop3` of which all others are sums, and of
/// forms with many modifiers the variants in which two of them meet first.
fn chosen(op: Op) -> Vec<Variant> {
    let narrow = |variant: &Variant| {
        let results = variant.results.iter().map(|place| (place.ty, place.register));
        let mut all = results.chain(variant.sources.iter().map(|source| (source.ty, source.register)));
        all.all(|(ty, bits)| ty == ScalarType::Pred || bits == ty.bits().max(16))
    };
    let table = |variant: &Variant| {
        let mut constants = variant.sources.iter().filter_map(|source| source.fixed);
        constants.all(|value| value.count_ones() <= 1 || [0x96, 0xe8, 0xca, 0xff].contains(&value) || value < 8)
    };
    let all: Vec<Variant> = table::variants(op).into_iter().filter(|v| narrow(v) && table(v)).collect();
    let many = all.len() > 1000;
    let mut met = BTreeSet::new();
    let is_new = |variant: &Variant| {
        let words = &variant.words;
        let pairs =
            words.iter().enumerate().flat_map(|(at, a)| words[at..].iter().map(move |b| (a.clone(), b.clone())));
        pairs.fold(false, |new, (a, b)| met.insert((variant.form.index, a, b)) | new)
    };
    if many { all.into_iter().filter(is_new).collect() } else { all }
}

/// What a text of the files says for what the oracle wants.
pub fn told(want: Want) -> Told {
    match want {
        Want::Bits(bits) => Told::Bits(bits),
        Want::Nan(_) => Told::Nan,
        Want::Open => Told::Any,
        Want::Near { format, value, bound } => {
            let (least, greatest) = reach(format, value, |bits| is_near(format, bits, value, bound, true));
            Told::Range(bits_of(format, least), bits_of(format, greatest))
        }
        Want::NearOrFlushed { format, value, bound } => flushed(format, value, bound),
        Want::Upper { value, bound } => {
            let (least, greatest) = reach(F64, value, |bits| (f64::from_bits(bits) - value).abs() <= bound);
            Told::Range(bits_of(F64, least), bits_of(F64, greatest))
        }
        Want::Halves(Half::Bits(lower), Half::Bits(upper)) => Told::Bits(lower | upper << 16),
        Want::Halves(lower, upper) => Told::Halves(Box::new(told(lower.want())), Box::new(told(upper.want()))),
    }
}

/// The bits of the number that is so many numbers from 0.
fn bits_of(format: Format, order: i64) -> u64 {
    order.unsigned_abs() | if order < 0 { format.sign() } else { 0 }
}

/// The numbers around a value that are admitted, the least and the greatest, counted from 0.
fn reach(format: Format, value: f64, admits: impl Fn(u64) -> bool) -> (i64, i64) {
    let bits = format.encode(&F64.decode(value.to_bits()), Round::Even);
    let magnitude = (bits & !format.sign()) as i64;
    let centre = if bits & format.sign() == 0 { magnitude } else { -magnitude };
    let end = format.infinity() as i64;
    let far = |up: bool| {
        // The last one that is admitted lies in good..bad: distances, which of f64 are no i64.
        let (mut good, mut bad) = (0_u64, end.abs_diff(if up { centre } else { -centre }) + 1);
        while good + 1 < bad {
            let middle = good + (bad - good) / 2;
            let at = if up { centre.wrapping_add_unsigned(middle) } else { centre.wrapping_sub_unsigned(middle) };
            *(if admits(bits_of(format, at)) { &mut good } else { &mut bad }) = middle;
        }
        good
    };
    (centre.wrapping_sub_unsigned(far(false)), centre.wrapping_add_unsigned(far(true)))
}

/// Near a value, but no subnormal number; a zero in the place of those.
fn flushed(format: Format, value: f64, bound: f64) -> Told {
    let (least, greatest) = reach(format, value, |bits| is_near(format, bits, value, bound, true));
    let normal = 1_i64 << format.fraction;
    let mut all = Vec::new();
    let parts = [(least, greatest.min(-normal)), (least.max(normal), greatest), (least.max(0), greatest.min(0))];
    for (from, to) in parts.into_iter().filter(|(from, to)| from <= to) {
        all.push(Told::Range(bits_of(format, from), bits_of(format, to)));
    }
    if value.abs() - bound < format.to_f64(1 << format.fraction) {
        all.push(Told::Bits(if value.is_sign_negative() { format.sign() } else { 0 }));
    }
    if all.len() == 1 { all.remove(0) } else { Told::Either(all) }
}

/// What results must be by the manual's bound, which for sines and cosines depends on the operand (9.7.3.18, 9.7.3.19).
fn bounded(variant: &Variant, operands: &[u64], want: Want) -> Want {
    let angle = F32.to_f64(operands[0]).abs();
    let of_angle = matches!(variant.form.op, Op::Math(Math::Sin | Math::Cos));
    let full = std::f64::consts::TAU;
    match want {
        Want::Near { .. } | Want::NearOrFlushed { .. } if of_angle && angle > 50.0 * full => Want::Open,
        Want::Near { format, value, .. } if of_angle && angle > full => {
            Want::Near { format, value, bound: (-14.7_f64).exp2() }
        }
        Want::NearOrFlushed { format, value, .. } if of_angle && angle > full => {
            Want::NearOrFlushed { format, value, bound: (-14.7_f64).exp2() }
        }
        want => want,
    }
}

/// The name of a result's format.
fn format_name(variant: &Variant, ty: ScalarType) -> String {
    let upper = matches!(variant.form.op, Op::Math(_)) && variant.has("approx") && variant.has("ftz");
    match ty {
        ScalarType::F64 if upper => "f64.upper".to_owned(),
        ty => ty.to_string(),
    }
}

/// Instructions that take the same operands.
type Group = Vec<(Variant, Meaning)>;

/// Groups by family, in the order of the table.
fn groups() -> BTreeMap<(&'static str, &'static str), Vec<Group>> {
    let mut families: BTreeMap<_, Vec<Group>> = BTreeMap::new();
    for op in Op::all().filter(|op| meaning::room(*op).is_ok()) {
        for variant in chosen(op) {
            let (Some(family), Some(meaning)) = (family(&variant), meaning::meaning(&variant)) else { continue };
            let same = |other: &Variant| {
                let place = |variant: &Variant| -> Vec<_> {
                    let sources = variant.sources.iter().map(|s| (s.ty, s.register, s.fixed.is_some()));
                    let results = variant.results.iter().map(|r| (r.ty, r.register, true));
                    sources.chain(results).collect()
                };
                other.form.mnemonic == variant.form.mnemonic && place(other) == place(&variant)
            };
            let groups = families.entry(family).or_default();
            match groups.iter_mut().rfind(|group| group.len() < COLUMNS && same(&group[0].0)) {
                Some(group) => group.push((variant, meaning)),
                None => groups.push(vec![(variant, meaning)]),
            }
        }
    }
    families
}

fn columns(group: &Group, entry: String, seed: u64, ptx: &mut String) -> Case {
    let (first, _) = &group[0];
    let rows = rows(first, seed);
    let (x, y) = (first.sources.len(), group.len() * first.results.len());
    let _ = write!(
        ptx,
        "\n.visible .entry {entry}(.param .u64 x, .param .u64 y) {{\n\
         .reg .b64 %x, %y; .reg .b32 %i, %w;\nmov.u32 %i, %tid.x;\n\
         ld.param.u64 %x, [x]; mad.wide.u32 %x, %i, {}, %x;\nld.param.u64 %y, [y]; mad.wide.u32 %y, %i, {}, %y;\n",
        8 * x,
        8 * y
    );
    for (number, source) in first.sources.iter().enumerate().filter(|(_, source)| source.fixed.is_none()) {
        load(ptx, source.register, &format!("s{number}"), "%x", 8 * number);
    }
    for (number, result) in first.results.iter().enumerate() {
        ptx.push_str(&declaration(result.register, &format!("d{number}")));
    }
    for (at, (variant, _)) in group.iter().enumerate() {
        let source = |(number, source): (usize, &table::Source)| match source.fixed {
            Some(value) => value.to_string(),
            None => register(source.register, &format!("s{number}")),
        };
        let sources = variant.sources.iter().enumerate().map(source).collect();
        let results: Vec<_> =
            variant.results.iter().enumerate().map(|(n, r)| register(r.register, &format!("d{n}"))).collect();
        harness::instruction(ptx, variant, sources, &results, "");
        harness::store(ptx, variant, &results, ("%y", 8 * at * results.len()));
    }
    ptx.push_str("ret;\n}\n");
    let formats = group.iter().flat_map(|(variant, _)| variant.results.iter().map(|r| format_name(variant, r.ty)));
    let row = |operands: &Vec<u64>| {
        let given: Vec<String> = operands.iter().map(|value| format!("{value:x}")).collect();
        let mut wanted = Vec::new();
        for (variant, meaning) in group {
            let own = operands.iter().zip(&variant.sources);
            let own: Vec<u64> = own.map(|(value, source)| source.fixed.map_or(*value, |fixed| fixed as u64)).collect();
            for want in harness::meant(variant, meaning, &own) {
                wanted.push(told(bounded(variant, &own, want)).to_string());
            }
        }
        (given.join(" "), wanted.join(" "))
    };
    Case {
        entry,
        instructions: group.iter().map(|(variant, _)| shown(variant)).collect(),
        formats: formats.collect(),
        blocks: 1,
        threads: ROWS as u32,
        params: vec![Param::X, Param::Y],
        slot: 8,
        x,
        y,
        before: 0,
        mixed: false,
        rows: rows.iter().map(row).collect(),
    }
}

/// An instruction as people read it: with the constants that stand in it.
fn shown(variant: &Variant) -> String {
    let constants = variant.sources.iter().filter_map(|source| source.fixed).map(|value| format!(" #{value}"));
    std::iter::once(variant.head()).chain(constants).collect()
}

/// The families of this oracle.
fn families() -> Vec<Family> {
    let mut all: Vec<Family> = groups()
        .into_iter()
        .map(|((name, about), groups)| {
            let mut ptx = String::new();
            let case = |(number, group): (usize, &Group)| {
                let entry = format!("{}_{number}", group[0].0.form.mnemonic.replace('.', "_"));
                columns(group, entry, number as u64, &mut ptx)
            };
            let cases = groups.iter().enumerate().map(case).collect();
            finished(name, about, cases, &ptx)
        })
        .collect();
    let (cases, ptx) = atomics::conformance();
    all.push(finished(
        "atomics",
        "atomic operations and reductions on a place of each thread: what is left and returned",
        cases,
        &ptx,
    ));
    all
}

fn finished(name: &str, about: &str, cases: Vec<Case>, ptx: &str) -> Family {
    let expected = "exact integers, and exact numbers that are rounded once (emulator/tests/oracle); of approximations, \
                    the manual's bound around the host's function of f64";
    Family {
        family: name.to_owned(),
        about: about.to_owned(),
        expected: expected.to_owned(),
        cases,
        ptx: tilewright_conformance::with_header(ptx, "7.0", "sm_80"),
    }
}

/// `cargo xtask conformance` writes them.
#[test]
fn conformance_files_are_current() {
    let write = std::env::var_os("TILEWRIGHT_BLESS").is_some();
    let mut stale = Vec::new();
    for family in families() {
        stale.extend(family.keep(&tilewright_conformance::folder(), write).err());
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

/// A range of the files admits what the oracle admits when results are moved, and nothing else.
#[test]
fn ranges_are_those_of_the_oracle() {
    let cases = [(F32, 1.0, 1e-6), (F32, -3.0e38, 1e34), (F32, 1.2e-38, 3e-45), (F32, 1e-9, 6e-7), (F16, 0.1, 5e-4)];
    for (format, value, bound) in cases {
        let name = tilewright_conformance::want::Format::named(if format == F32 { "f32" } else { "f16" });
        let mut random = Random(9);
        for want in [Want::Near { format, value, bound }, Want::NearOrFlushed { format, value, bound }] {
            let text = told(want);
            let (least, greatest) = reach(format, value, |bits| is_near(format, bits, value, bound, true));
            let edges =
                [least, greatest].into_iter().flat_map(|edge| (edge - 3..=edge + 3).map(|at| bits_of(format, at)));
            let more = (0..2000).map(|_| random.float(format));
            let zeros = [0, 1, format.sign(), format.sign() | 1, 1 << format.fraction, (1 << format.fraction) - 1];
            for bits in edges.chain(more).chain(zeros) {
                let by_oracle = harness::agrees(want, bits, true);
                assert_eq!(text.admits(name, bits), by_oracle, "{bits:x} of {text}, {value:e} ± {bound:e}");
            }
        }
    }
}
