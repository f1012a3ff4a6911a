//! Sizes, data, and launches on the emulator against `reference()`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright::__private::{Arg, DynamicTensor, launch, reference};
use tilewright::{Device, EmulatorOptions, Error};
use tilewright_cli::prove::by_entry;
use tilewright_cli::sizes::layouts;
use tilewright_compiler::diag::Code;
use tilewright_compiler::lower::Entry;
use tilewright_kernel::format::Format;
use tilewright_kernel::info::ParameterKind;
use tilewright_kernel::{ElementType, KernelInfo};

use super::{Attention, Heads};
use crate::cases::timed;
use crate::compile::{Outcome, compile, message};
use crate::compose::ast::Dims;
use crate::compose::execute::Failure;
use crate::compose::{COMPILE_TIME, Report, SHAPES, gist};
use crate::proved::{WORK, proved, proved_large, values_of};
use crate::rng::Rng;

/// What outputs hold before a launch: an element that is never written is seen.
const FILLER: u8 = 0xa5;
/// Scores of a launch, times the terms of each and the columns that it is multiplied with.
const TERMS: i64 = 1 << 21;

/// Work of the checker for one launch.
const PROOF: u64 = 6 * WORK;
/// Instructions of a launch without tensor cores.
const SCALAR: i64 = 1 << 24;

/// What tensors hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    /// Small numbers.
    Small,
    /// Scores that are far apart.
    Large,
    /// Infinities and NaN among them.
    Infinite,
    /// Rows of which all scores, or all but a few, are infinite.
    NoScores,
}

/// Compiles a kernel and runs it; `seed` decides sizes and data.
pub(super) fn check(attention: &Attention, seed: u64) -> Report {
    let mut report = Report::default();
    let (outcome, used) = timed(|| compile(&attention.to_string()));
    if used > COMPILE_TIME {
        report.failure = Some(("slow".to_owned(), format!("{used:?}")));
    }
    match outcome {
        Outcome::NotTokens => report.failure = Some(("not-tokens".to_owned(), String::new())),
        Outcome::Panicked(message) => report.failure = Some(("panic".to_owned(), message)),
        Outcome::Refused(errors, text) => {
            if errors.iter().any(|e| e.found.code == Code::TW9001) {
                report.failure = Some((gist(&text), text));
            } else if let Some(first) = errors.first() {
                report.counts.push(first.found.code.to_string());
            }
        }
        Outcome::Accepted(info, entries) => {
            report.accepted = true;
            match catch_unwind(AssertUnwindSafe(|| run(attention, &info, &entries, seed, &mut report))) {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => report.failure = Some(failure),
                Err(payload) => report.failure = Some(("panic while running".to_owned(), message(&*payload))),
            }
        }
    }
    report
}

/// Some sizes that the facts allow: the least ones first, then those beside blocks and tiles.
fn sizes(attention: &Attention, turn: usize, rng: &mut Rng) -> Dims {
    let [_, tile] = attention.tile();
    let block = attention.block * attention.again.unwrap_or(1);
    let mut rows = match turn {
        0 => *rng.pick(&[1, 1, 2, 0]),
        1 => *rng.pick(&[tile, tile - 1, tile + 1, 1 + tile / 2]),
        _ => *rng.pick(&[1, tile + 3, 2 * tile, tile - 9, 2 * tile + 1]),
    };
    let terms = match turn {
        0 => *rng.pick(&[1, 1, block - 1, 2, 0]),
        1 => *rng.pick(&[block + 1, block - 1, block, 2 * block + 5]),
        _ => *rng.pick(&[3 * block, 2 * block - 1, 3 * block + 7, block + 8, rng.clone().range(1, 4 * block)]),
    };
    let heads = if attention.heads == Heads::One { 1 } else { rng.range(1, 3) };
    let most = TERMS / (attention.sizes[0] + attention.sizes[1]) / heads;
    // A page of several blocks is a multiple of them.
    let multiple = match (attention.divides, attention.pages, attention.is_eight()) {
        (true, Some(pages), _) => block * if pages.terms > attention.block { pages.terms / attention.block } else { 1 },
        (true, None, _) => block,
        (false, Some(pages), _) => pages.terms,
        (false, None, true) => 16,
        (false, None, false) => 1,
    };
    let up = |terms: i64| (terms + multiple - 1) / multiple * multiple;
    // Terms of at least one block and of a part of another one; rows as many as may be.
    let most_terms = if attention.square { most.isqrt() } else { most / rows.clamp(1, tile) };
    let mut terms = up(terms.min(most_terms.max(block + 8)).max(attention.least()));
    if attention.is_triangle() && !attention.square {
        terms = up(terms.max(rows.min(most / terms.max(1))));
    }
    if let Some(literal) = attention.literal {
        terms = literal;
    }
    rows = rows.min((most / terms.max(1)).max(1));
    if attention.is_triangle() {
        rows = rows.min(terms);
    }
    if attention.square {
        rows = terms;
    }
    let mut dims: Dims = [("M", rows), ("N", terms), ("H", heads)].into();
    if let Some(pages) = attention.pages {
        dims.extend([("L", terms / pages.terms), ("P", rng.range(0, 4).max(rng.range(0, 4))), ("S", rng.range(1, 3))]);
    }
    if let Heads::Grouped(n) = attention.heads {
        dims.insert("G", (heads + n - 1) / n);
    }
    if attention.is_of_tiles() {
        dims.insert("T", (rows + tile - 1) / tile + rng.range(0, 1));
    }
    dims
}

/// Instructions of warps without tensor cores: each element takes the scores of its terms, and for each of them those
/// of a block.
fn scalar_work(attention: &Attention, dims: &Dims, terms: i64) -> i64 {
    let [own, tile] = attention.tile();
    let tiles = (dims["M"] + tile - 1) / tile * tile / own * dims["H"];
    let [head, width] = attention.sizes;
    let terms = (terms + attention.block - 1) / attention.block * attention.block;
    tiles * own * width / 32 * terms * attention.block * head * 4
}

/// A number at a place of a tensor.
fn number(name: &str, data: Data, min: bool, [row, column]: [usize; 2], rng: &mut Rng) -> f64 {
    let small = rng.range(-16, 16) as f64 / 8.0;
    match (data, name) {
        (Data::Small, _) => small,
        (Data::Large, "b") => rng.range(-400, 400) as f64,
        (Data::Large, "q" | "k") => small * 8.0,
        (Data::Large, _) => small,
        (Data::Infinite, _) => match rng.below(60) {
            0 => *rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-40, 3e38, 65504.0, -7e4]),
            _ => small,
        },
        (Data::NoScores, "b") => {
            let none = if min { f64::INFINITY } else { f64::NEG_INFINITY };
            match row % 7 {
                0 => none,
                1 => {
                    if column % 19 == 18 {
                        1.0
                    } else {
                        none
                    }
                }
                2 => -none,
                3 => {
                    if column % 19 == 18 {
                        -none
                    } else {
                        none
                    }
                }
                4 => column as f64,
                5 => -(column as f64),
                _ => {
                    if column % 23 == 22 {
                        f64::NAN
                    } else {
                        small
                    }
                }
            }
        }
        // The first product of a score is infinite, of one sign or of both.
        (Data::NoScores, "q") if column == 0 && row % 4 < 2 => {
            if row % 4 == 0 {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            }
        }
        (Data::NoScores, "k") if column == 0 => {
            if row % 29 == 28 {
                -1.0
            } else {
                1.0
            }
        }
        (Data::NoScores, _) => small,
    }
}

fn run(
    attention: &Attention,
    info: &KernelInfo,
    entries: &[Entry],
    seed: u64,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut rng = Rng::new(seed);
    for turn in 0..SHAPES {
        let dims = sizes(attention, turn, &mut rng);
        let values = values_of(info, |name| dims.get(name));
        if !info.requirements.iter().all(|c| c.holds(&values).unwrap_or(false)) {
            report.counts.push("skipped: sizes that facts exclude".to_owned());
            continue;
        }
        let at = |(net, detail): Failure| (net, format!("{detail}\nsizes: {dims:?}"));
        report.counts.extend(proved(info, entries, &values, PROOF).map_err(at)?);
        if turn == 0 {
            report.counts.extend(proved_large(info, entries, &values).map_err(at)?);
        }
        let all = by_entry(info, &values);
        let awkward = *rng.pick(&[Data::Large, Data::Infinite, Data::NoScores]);
        let kinds = [Data::Small, awkward];
        let terms = attention.literal.unwrap_or(dims["N"]);
        for (n, entry) in all.iter().enumerate() {
            let is_whole = entries.iter().any(|e| e.staged && e.kernel.signature.name == entry.entries[0].name);
            if !is_whole && scalar_work(attention, &dims, terms) > SCALAR {
                report.counts.push("skipped: too slow without tensor cores".to_owned());
                continue;
            }
            for data in kinds {
                // The smallest sizes with both kinds of data.
                if (n > 0 || turn > 0) && data != kinds[(turn + n) % 2] {
                    continue;
                }
                let what = format!("entry {}, {data:?}", entry.entries[0].name);
                let compared = one(attention, entry, (&values, terms), data, &mut rng);
                let compared = compared.map_err(|(class, detail)| at((class, format!("{what}: {detail}"))))?;
                if !compared {
                    report.counts.push("skipped: the reference is not determined".to_owned());
                    continue;
                }
                report.runs += 1;
                let found = [
                    (terms % attention.block > 0, "ragged"),
                    (terms == 1, "one-term"),
                    (terms == 0, "no-terms"),
                    (data == Data::Infinite, "infinite"),
                    (data == Data::NoScores, "no-scores"),
                    (data == Data::Large, "large"),
                    (n == 0 && info.entries.len() > 1, "narrow-entry"),
                    (n > 0 && is_whole, "wide-entry"),
                    (!is_whole, "scalar-entry"),
                ];
                report.entries.extend(found.iter().filter(|f| f.0).map(|f| f.1));
            }
        }
    }
    Ok(())
}

/// Where terms begin or end, as memory says it: mostly among the terms, at ends of blocks and beside them.
fn place_of_term(attention: &Attention, terms: i64, rng: &mut Rng) -> i32 {
    let block = attention.block * rng.range(0, 3);
    let place = match rng.below(20) {
        0 => *rng.pick(&[i64::from(i32::MIN), i64::from(i32::MAX), -1, terms + 1]),
        1..6 => block + rng.range(-1, 1),
        6..9 => terms - rng.range(0, 2),
        9..12 => rng.range(-2, 2),
        _ => rng.range(0, terms.max(1)),
    };
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// What a table of pages says: mostly one of so many, sometimes none beside them, sometimes a number that its type can
/// just hold.
fn page(element: ElementType, pages: i64, rng: &mut Rng) -> i128 {
    let bits = 8 * element.bytes();
    let (least, most) = match element.is_signed_integer() {
        true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        false => (0, (1_i128 << bits) - 1),
    };
    match rng.below(12) {
        0 => *rng.pick(&[least, most, least + 1, most - 1, 1 << (bits / 2)]),
        1 | 2 => i128::from(rng.range(-2, pages + 2)).clamp(least, most),
        _ => i128::from(rng.range(0, (pages - 1).max(0))),
    }
}

/// One launch for sizes and a number of terms; whether there is something that it was compared with.
fn one(
    attention: &Attention,
    info: &KernelInfo,
    (values, terms): (&[i64], i64),
    data: Data,
    rng: &mut Rng,
) -> Result<bool, Failure> {
    let failed = |class: &str| {
        let class = class.to_owned();
        move |e: Error| (class, e.to_string())
    };
    let device = Device::emulator(EmulatorOptions::default().seed(rng.bits()));
    let layouts = layouts(info, values).map_err(|e| ("sizes".to_owned(), e.to_string()))?;
    let (mut tensors, mut arguments) = (Vec::new(), Vec::new());
    let pages = info.dims.iter().position(|dim| dim.name == "P").and_then(|n| values.get(n).copied()).unwrap_or(0);
    for (parameter, layout) in info.parameters.iter().zip(&layouts) {
        let (ParameterKind::Tensor(tensor), Some(layout)) = (&parameter.kind, layout) else { continue };
        let bytes = parameter.element.bytes() as usize;
        let mut contents = vec![FILLER; layout.elements as usize * bytes];
        let is_output = tensor.role.is_written();
        if let Some(format) = Format::of(parameter.element).filter(|_| !is_output) {
            let columns = layout.shape.last().copied().unwrap_or(1).max(1);
            for (n, element) in contents.chunks_mut(bytes).enumerate() {
                let at = [n / columns, n % columns];
                let number = number(&parameter.name, data, attention.min, at, rng);
                element.copy_from_slice(&format.from_f64(number).to_le_bytes()[..bytes]);
            }
        }
        if ["from", "to"].contains(&&*parameter.name) {
            for element in contents.chunks_mut(bytes) {
                element.copy_from_slice(&place_of_term(attention, terms, rng).to_le_bytes());
            }
        }
        if ["page", "of"].contains(&&*parameter.name) {
            for element in contents.chunks_mut(bytes) {
                element.copy_from_slice(&page(parameter.element, pages, rng).to_le_bytes()[..bytes]);
            }
        }
        let place = (&*layout.shape, &*layout.strides);
        let tensor = DynamicTensor::new(&device, parameter.element, place, &contents, FILLER);
        let tensor = tensor.map_err(failed("memory"))?;
        arguments.push(Arg::dynamic(&tensor, is_output));
        tensors.push((parameter.name.to_string(), tensor));
    }
    let expected = match reference(info, &arguments) {
        Ok(expected) => expected,
        Err(e) if e.to_string().ends_with("not exactly determined") => return Ok(false),
        Err(e) => return Err(failed("reference")(e)),
    };
    launch(info, &arguments, device.as_ref()).and_then(|()| device.synchronize()).map_err(failed("emulator"))?;
    if let Some(report) = device.emulator_report().filter(|r| !r.faults.is_empty() || !r.warnings.is_empty()) {
        return Err(("finding".to_owned(), format!("{:?} {:?}", report.faults, report.warnings)));
    }
    for output in expected.outputs() {
        let Some((_, tensor)) = tensors.iter().find(|(name, _)| name == output.name()) else { continue };
        let bytes = tensor.read().map_err(failed("memory"))?;
        output.check_raw(&bytes).map_err(failed("mismatch"))?;
    }
    Ok(true)
}
