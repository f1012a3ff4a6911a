//! Runs variants as PTX text: each is a kernel whose threads load operands, execute the instruction in several
//! settings, and store what they got.

use std::fmt::Write as _;

use tilewright_emulator::{Launch, Memory, Options, Program, Sanitizers};
use tilewright_ptx::ScalarType;

use super::inputs::{self, Random};
use super::meaning::{Meaning, Want};
use super::real::{F64, Format};
use super::table::{Source, Variant};

/// A setting in which the instruction is executed.
#[derive(Clone, Debug, PartialEq)]
enum Setting {
    /// Fresh registers.
    Plain,
    /// Every predicate operand negated.
    Negated,
    /// Some lanes do not take part: they keep what the results held.
    Guarded,
    /// The result is written over this operand.
    Over(usize),
    /// A constant in the place of this operand.
    Constant(usize, u64),
    /// All threads of a block have the operands of its first one.
    Uniform,
}

/// What results hold before, where it matters.
const BEFORE: u64 = 0x5a5a_c3c3_1234_8765;
/// Threads of a block.
const BLOCK: usize = 32;
/// Variants of a module.
const CHUNK: usize = 32;
/// Mistakes that are told.
const TOLD: usize = 60;

/// Lanes that take part under [`Setting::Guarded`].
fn takes_part(thread: usize) -> bool {
    thread & 5 != 0
}

/// The settings of a variant; of many variants, each has a few.
fn settings(variant: &Variant, few: bool, random: &mut Random) -> Vec<Setting> {
    let mut all = vec![Setting::Plain, Setting::Guarded, Setting::Uniform];
    if variant.sources[..operands(variant)].iter().any(negatable) {
        all.push(Setting::Negated);
    }
    for (at, source) in variant.sources.iter().enumerate() {
        if source.fixed.is_some() || source.ty == ScalarType::Pred {
            continue;
        }
        let result = variant.results[0];
        if result.register == source.register && result.ty != ScalarType::Pred {
            all.push(Setting::Over(at));
        }
        if source.constant {
            let edges = inputs::edges(variant, at);
            all.extend((0..2).map(|_| Setting::Constant(at, edges[random.below(edges.len())])));
        }
    }
    while few && all.len() > 3 {
        all.remove(1 + random.below(all.len() - 1));
    }
    all
}

/// Sources that stand in the text: not the carry.
fn operands(variant: &Variant) -> usize {
    variant.sources.len() - usize::from(variant.carry_in)
}

fn negatable(source: &Source) -> bool {
    source.ty == ScalarType::Pred && !source.constant
}

/// A variant, its operands, and the settings it is executed in.
struct Case<'a> {
    variant: &'a Variant,
    meaning: &'a Meaning,
    rows: Vec<Vec<u64>>,
    settings: Vec<Setting>,
}

/// Runs variants with this many rows of operands and compares every result; gives what is wrong.
pub fn check(variants: &[(Variant, Meaning)], rows: usize, seed: u64) -> Vec<String> {
    let mut mistakes = Vec::new();
    let few = variants.len() > 600 && !super::is_campaign();
    for (number, chunk) in variants.chunks(CHUNK).enumerate() {
        let mut random = Random(seed ^ (number as u64) << 32);
        let case = |(variant, meaning)| Case {
            variant,
            meaning,
            rows: inputs::rows(variant, rows, random.next()),
            settings: settings(variant, few, &mut random),
        };
        let cases: Vec<Case<'_>> = chunk.iter().map(|(variant, meaning)| (variant, meaning)).map(case).collect();
        run(&cases, Some(number), &mut mistakes);
        if mistakes.len() > TOLD {
            mistakes.push("and perhaps more".to_owned());
            break;
        }
    }
    mistakes
}

/// Runs a variant on these rows, plainly.
pub fn check_rows(variant: &Variant, meaning: &Meaning, rows: Vec<Vec<u64>>) -> Vec<String> {
    let mut mistakes = Vec::new();
    run(&[Case { variant, meaning, rows, settings: vec![Setting::Plain] }], None, &mut mistakes);
    mistakes
}

/// Runs kernels of one module; `number` spreads the options over the modules.
fn run(cases: &[Case<'_>], number: Option<usize>, mistakes: &mut Vec<String>) {
    let mut text = ".version 8.8\n.target sm_90a\n.address_size 64\n".to_owned();
    for (at, case) in cases.iter().enumerate() {
        kernel(&mut text, &format!("k{at}"), case);
    }
    let program = match Program::parse(&text) {
        Ok(program) => program,
        Err(error) => return mistakes.push(error.to_string()),
    };
    for (at, case) in cases.iter().enumerate() {
        // Every other one runs the code for hosts without vector instructions.
        let baseline = (number.unwrap_or(0) + at) % 2 == 1;
        // A sample of the exact instructions shows that they are not moved.
        let moved = case.variant.has("approx") || case.variant.has("full") || at % 4 == 0;
        let perturbed = number.filter(|_| moved).map(|number| Some(number as u64));
        for perturb in std::iter::once(None).chain(perturbed) {
            let options =
                Options { threads: Some(1), sanitizers: Sanitizers::NONE, perturb, baseline, ..Options::default() };
            if let Err(mistake) = launch(&program, &format!("k{at}"), case, &options) {
                mistakes.push(format!(
                    "{}{}: {mistake}",
                    case.variant.name(),
                    if perturb.is_some() { ", perturbed" } else { "" }
                ));
            }
        }
    }
}

/// Launches one kernel and judges what it stored.
fn launch(program: &Program, entry: &str, case: &Case<'_>, options: &Options) -> Result<(), String> {
    let slots = slots(case);
    let memory = Memory::new(1 << 28);
    let told = |error: tilewright_emulator::Error| error.to_string();
    let words: Vec<u8> = case.rows.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let input = memory.alloc((words.len() as u64).max(8), "input").map_err(told)?;
    memory.write(input, &words).map_err(told)?;
    let bytes = (case.rows.len() * slots * 8) as u64;
    let output = memory.alloc(bytes, "output").map_err(told)?;
    memory.fill(output, bytes, 0).map_err(told)?;
    let launch = Launch {
        entry: entry.to_owned(),
        grid: [case.rows.len().div_ceil(BLOCK) as u32, 1, 1],
        block: [BLOCK as u32, 1, 1],
        args: vec![input.into(), output.into(), (case.rows.len() as u32).into()],
        ..Launch::default()
    };
    let report = program.launch(&launch, &memory, options).map_err(told)?;
    if !report.findings.is_empty() {
        return Err(report.to_string());
    }
    let mut stored = vec![0; bytes as usize];
    memory.read(output, &mut stored).map_err(told)?;
    let stored: Vec<u64> = stored.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes)).collect();
    for (row, got) in stored.chunks_exact(slots).enumerate() {
        for (at, setting) in case.settings.iter().enumerate() {
            let operands = operands_under(case, setting, row);
            let want = if *setting == Setting::Guarded && !takes_part(row) {
                case.variant.results.iter().map(|result| Want::Bits(BEFORE & ones(result.register))).collect()
            } else {
                meant(case.variant, case.meaning, &operands)
            };
            for (result, want) in want.iter().enumerate() {
                let got = got[at * case.variant.results.len() + result];
                if !agrees(*want, got, options.perturb.is_some()) {
                    let operands: Vec<String> = operands.iter().map(|value| format!("{value:#x}")).collect();
                    return Err(format!(
                        "{setting:?}: ({}) result {result} is {got:#x}, wanted {}",
                        operands.join(", "),
                        told_want(*want)
                    ));
                }
            }
        }
    }
    Ok(())
}

fn told_want(want: Want) -> String {
    match want {
        Want::Bits(bits) => format!("{bits:#x}"),
        Want::Near { format, value, bound } => {
            let rounded = format.encode(&F64.decode(value.to_bits()), super::real::Round::Even);
            format!("{value:e} ({rounded:#x}) ± {bound:e}")
        }
        other => format!("{other:?}"),
    }
}

fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn slots(case: &Case<'_>) -> usize {
    case.settings.len() * case.variant.results.len()
}

/// The operands that the instruction reads in a setting.
fn operands_under(case: &Case<'_>, setting: &Setting, row: usize) -> Vec<u64> {
    let mut operands = match setting {
        Setting::Uniform => case.rows[row / BLOCK * BLOCK].clone(),
        _ => case.rows[row].clone(),
    };
    match setting {
        Setting::Constant(at, value) => operands[*at] = *value,
        Setting::Negated => {
            for (value, source) in operands.iter_mut().zip(&case.variant.sources[..self::operands(case.variant)]) {
                *value ^= u64::from(negatable(source));
            }
        }
        _ => {}
    }
    operands
}

/// What the results must be: of halves each by itself, predicates belong to both.
pub fn meant(variant: &Variant, meaning: &Meaning, operands: &[u64]) -> Vec<Want> {
    let results = variant.results.len();
    if !meaning.halves {
        return (meaning.function)(operands)[..results].to_vec();
    }
    let half = |shift: u32| -> Want {
        let cut = |(value, source): (&u64, &Source)| match source.ty {
            ScalarType::Pred => *value,
            _ => value >> shift & 0xffff,
        };
        let parts: Vec<u64> = operands.iter().zip(&variant.sources).map(cut).collect();
        (meaning.function)(&parts)[0]
    };
    vec![Want::Halves(half(0).half(), half(16).half())]
}

/// Whether a result is what it must be.
pub fn agrees(want: Want, got: u64, perturbed: bool) -> bool {
    match want {
        Want::Bits(bits) => got == bits,
        Want::Nan(format) => format.is_nan(got),
        Want::Open => true,
        Want::Halves(lower, upper) => {
            got >> 32 == 0
                && agrees(lower.want(), got & 0xffff, perturbed)
                && agrees(upper.want(), got >> 16, perturbed)
        }
        Want::Near { format, value, bound } => is_near(format, got, value, bound, perturbed),
        Want::NearOrFlushed { format, value, bound } => {
            let least = format.to_f64(1 << format.fraction);
            // Before or after rounding: the manual does not say.
            let off = if perturbed { bound } else { 0.501 * super::float::unit(format, value) };
            let flushed = format.to_f64(got) == 0.0 && value.abs() - off < least;
            let sign = got & format.sign() != 0;
            is_near(format, got, value, bound, perturbed) && !format.is_subnormal(got)
                || flushed && sign == value.is_sign_negative()
        }
        Want::Upper { value, bound } => got & 0xffff_ffff == 0 && (f64::from_bits(got) - value).abs() <= bound,
    }
}

/// Within the bound when moved, else the rounded value: the function of f64 may itself be off by a little.
pub fn is_near(format: Format, got: u64, value: f64, bound: f64, perturbed: bool) -> bool {
    let slack = if format == F64 { 1.0 } else { 0.501 };
    let unmoved = slack * super::float::unit(format, value);
    let number = format.to_f64(got);
    // An infinity stands for what follows the greatest number.
    let overflow = f64::from(1 << (format.exponent - 1)).exp2().copysign(number);
    let got = if number.is_infinite() { overflow } else { number };
    (got - value).abs() <= if perturbed { bound.max(unmoved) } else { unmoved }
}

pub fn register(bits: u32, name: &str) -> String {
    let prefix = match bits {
        1 => "%p",
        16 => "%h",
        32 => "%r",
        _ => "%rd",
    };
    format!("{prefix}_{name}")
}

pub fn declaration(bits: u32, name: &str) -> String {
    let ty = if bits == 1 { "pred".to_owned() } else { format!("b{bits}") };
    format!(".reg .{ty} {};\n", register(bits, name))
}

/// A constant of a type, as PTX spells it.
fn constant(ty: ScalarType, value: u64) -> String {
    match ty {
        ScalarType::F32 => format!("0f{value:08X}"),
        ScalarType::F64 => format!("0d{value:016X}"),
        ty if ty.is_signed() && ty.bits() <= 64 && !matches!(ty, ScalarType::S16x2) => {
            super::integer::number(ty.bits(), true, value).to_string()
        }
        _ => format!("{value:#x}"),
    }
}

/// Loads a value of a register's size, or a predicate.
pub fn load(text: &mut String, bits: u32, name: &str, base: &str, offset: usize) {
    text.push_str(&declaration(bits, name));
    let register = register(bits, name);
    if bits == 1 {
        let _ = writeln!(text, "ld.global.u32 %w, [{base}+{offset}]; setp.ne.u32 {register}, %w, 0;");
    } else {
        let _ = writeln!(text, "ld.global.b{bits} {register}, [{base}+{offset}];");
    }
}

fn kernel(text: &mut String, entry: &str, case: &Case<'_>) {
    let variant = case.variant;
    let (arity, slots) = (variant.sources.len(), slots(case));
    let _ = write!(
        text,
        ".visible .entry {entry}(.param .u64 in, .param .u64 out, .param .u32 count) {{\n\
         .reg .b64 %in, %same, %out; .reg .b32 %i, %c, %w, %n; .reg .pred %g;\n\
         ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [count];\n\
         mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mul.lo.u32 %c, %c, {BLOCK}; add.u32 %i, %i, %c;\n\
         setp.ge.u32 %g, %i, %n; @%g ret;\n\
         mad.wide.u32 %same, %c, {row}, %in; mad.wide.u32 %in, %i, {row}, %in; mad.wide.u32 %out, %i, {results}, %out;\n\
         and.b32 %w, %i, 5; setp.ne.u32 %g, %w, 0;\n",
        row = arity * 8,
        results = slots * 8,
    );
    for (at, setting) in case.settings.iter().enumerate() {
        block(text, variant, setting, at);
    }
    text.push_str("ret;\n}\n");
}

/// One execution in a setting.
fn block(text: &mut String, variant: &Variant, setting: &Setting, at: usize) {
    text.push_str("{\n");
    let base = if *setting == Setting::Uniform { "%same" } else { "%in" };
    let mut sources = Vec::new();
    for (number, source) in variant.sources.iter().enumerate() {
        let name = format!("s{number}");
        match (source.fixed, setting) {
            (Some(value), _) => sources.push(value.to_string()),
            (None, Setting::Constant(place, value)) if *place == number => sources.push(constant(source.ty, *value)),
            (None, setting) => {
                load(text, source.register, &name, base, number * 8);
                let negated = *setting == Setting::Negated && negatable(source);
                sources.push(format!("{}{}", if negated { "!" } else { "" }, register(source.register, &name)));
            }
        }
    }
    let mut results = Vec::new();
    for (number, result) in variant.results.iter().enumerate() {
        let name = format!("d{number}");
        if let (Setting::Over(place), 0) = (setting, number) {
            results.push(register(result.register, &format!("s{place}")));
            continue;
        }
        text.push_str(&declaration(result.register, &name));
        let place = register(result.register, &name);
        if *setting == Setting::Guarded {
            let before = BEFORE & ones(result.register);
            let _ = match result.register {
                1 => writeln!(text, "setp.eq.u32 {place}, {before}, 1;"),
                bits => writeln!(text, "mov.b{bits} {place}, {before:#x};"),
            };
        }
        results.push(place);
    }
    let guard = if *setting == Setting::Guarded { "@%g " } else { "" };
    instruction(text, variant, sources, &results, guard);
    store(text, variant, &results, ("%out", at * results.len() * 8));
    text.push_str("}\n");
}

/// The instruction on operands and results that stand for themselves, the carry among them.
pub fn instruction(text: &mut String, variant: &Variant, mut sources: Vec<String>, results: &[String], guard: &str) {
    let subtracts = variant.form.mnemonic.starts_with("sub");
    if variant.carry_in {
        // Subtracting the carry from 0 borrows if it is set; adding all ones to it carries.
        let carry = sources.pop().unwrap_or_default();
        let _ = match subtracts {
            true => writeln!(text, "selp.u32 %w, 1, 0, {carry}; sub.cc.u32 %w, 0, %w;"),
            false => writeln!(text, "selp.u32 %w, 1, 0, {carry}; add.cc.u32 %w, %w, 0xffffffff;"),
        };
    }
    let written = if variant.carry_out { results[0].clone() } else { results.join("|") };
    let list: Vec<String> = std::iter::once(written).chain(sources).collect();
    let _ = writeln!(text, "{guard}{} {};", variant.head(), list.join(", "));
    if variant.carry_out {
        let _ = match subtracts {
            true => writeln!(text, "subc.u32 %w, 0, 0; neg.s32 %w, %w; {guard}setp.eq.u32 {}, %w, 1;", results[1]),
            false => writeln!(text, "addc.u32 %w, 0, 0; {guard}setp.eq.u32 {}, %w, 1;", results[1]),
        };
    }
}

/// Stores results to places of 8 bytes, from this one on.
pub fn store(text: &mut String, variant: &Variant, results: &[String], (base, first): (&str, usize)) {
    for (number, (place, result)) in results.iter().zip(&variant.results).enumerate() {
        let offset = first + number * 8;
        let _ = match result.register {
            1 => writeln!(text, "selp.u32 %w, 1, 0, {place}; st.global.u32 [{base}+{offset}], %w;"),
            bits => writeln!(text, "st.global.b{bits} [{base}+{offset}], {place};"),
        };
    }
}
