//! PTX that others wrote: kernels compiled by nvcc and Triton run unmodified and agree with NumPy within derived
//! bounds.
//!
//! `corpus/generate.py` makes the PTX, the inputs and the expected results; see there and in `corpus/cases.py`. A case
//! is also run with other seeds, in perturbing mode and with the bit models of the tensor cores: the bounds hold in all
//! of them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tilewright_emulator::{Arg, Finding, Kind, Launch, MatrixModel, Memory, Options, Program};
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

/// One array of `cases.bin`.
struct Array<'a> {
    ty: &'a str,
    bytes: &'a [u8],
}

impl Array<'_> {
    fn size(&self) -> usize {
        match self.ty {
            "int8" | "uint8" => 1,
            "int16" | "uint16" | "float16" => 2,
            "int32" | "uint32" | "float32" => 4,
            _ => 8,
        }
    }

    /// Element `at` as a number. Integers of 64 bits are compared by their bits instead.
    fn number(&self, at: usize) -> f64 {
        number(self.ty, &self.bytes[at * self.size()..][..self.size()])
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.size()
    }
}

fn number(ty: &str, bytes: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match ty {
        "f16" | "float16" => half::f16::from_bits(bits as u16).to_f64(),
        "bf16" => half::bf16::from_bits(bits as u16).to_f64(),
        "f32" | "float32" => f64::from(f32::from_bits(bits as u32)),
        "float64" => f64::from_bits(bits),
        "int8" => f64::from(bits as i8),
        "int16" => f64::from(bits as i16),
        "int32" => f64::from(bits as i32),
        "uint8" | "uint16" | "uint32" => bits as f64,
        _ => panic!("no number: {ty}"),
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn triple(value: &Value) -> [u32; 3] {
    [0, 1, 2].map(|i| value[i].as_u64().unwrap() as u32)
}

/// The map of a matrix.
fn tensor_map(map: &Value, address: u64) -> TensorMap {
    let number = |value: &Value| value.as_u64().unwrap();
    let (rows, columns) = (number(&map["rows"]), number(&map["columns"]));
    let format = match map["kind"].as_str().unwrap() {
        "bf16" => Format::Bf16,
        "f16" => Format::F16,
        _ => Format::U8,
    };
    let bytes = u64::from(format.bytes());
    let [box_rows, box_columns] = [0, 1].map(|at| number(&map["box"][at]) as u32);
    TensorMap {
        format,
        address,
        dimensions: vec![
            Dimension { size: columns, stride: bytes, box_size: box_columns, element_stride: 1 },
            Dimension { size: rows, stride: bytes * columns, box_size: box_rows, element_stride: 1 },
        ],
        swizzle: Swizzle::with_span(bytes as u32 * box_columns).unwrap(),
        fill: Fill::Zero,
        promotion: Promotion::None,
    }
}

/// Runs a case; what is wrong with it.
fn run(case: &Value, program: &Program, data: &[u8], options: &Options) -> Result<(), String> {
    let array = |index: &Value| {
        let place = &case["arrays"][index.as_u64().unwrap() as usize];
        let (ty, at) = (place["type"].as_str().unwrap(), place["at"].as_u64().unwrap() as usize);
        let empty = Array { ty, bytes: &[] };
        let bytes = place["count"].as_u64().unwrap() as usize * empty.size();
        Array { ty, bytes: &data[at..][..bytes] }
    };
    let memory = Memory::new(1 << 24);
    let mut args = Vec::new();
    let mut checks = Vec::new();
    for (index, arg) in case["args"].as_array().unwrap().iter().enumerate() {
        if let Some(value) = arg["value"].as_str() {
            args.push(Arg(unhex(value)));
            continue;
        }
        let initial = (!arg["initial"].is_null()).then(|| array(&arg["initial"]));
        let want = (!arg["want"].is_null()).then(|| array(&arg["want"]));
        // What is compared as f16 or f32 is wanted in f64.
        let kind = arg["kind"].as_str().unwrap_or("uint8");
        let size = match kind {
            "f16" | "bf16" => 2,
            "f32" => 4,
            _ => want.as_ref().map_or(1, Array::size),
        };
        let wanted = want.as_ref().map(|want| want.len() * size);
        let bytes = initial.as_ref().map(|a| a.bytes.len()).or(wanted).unwrap_or(4096);
        let base = memory.alloc(bytes as u64, &format!("arg{index}")).unwrap();
        if let Some(initial) = &initial {
            memory.write(base, initial.bytes).unwrap();
        }
        args.push(match arg.get("map") {
            Some(map) => Arg(tensor_map(map, base).encode().unwrap().to_vec()),
            None => base.into(),
        });
        if let Some(want) = want {
            let bounds = (!arg["bounds"].is_null()).then(|| array(&arg["bounds"]));
            checks.push((index, base, size, kind.to_owned(), want, bounds, arg["bound"].as_f64().unwrap_or(0.0)));
        }
    }
    let launch = Launch {
        entry: case["entry"].as_str().unwrap().into(),
        grid: triple(&case["grid"]),
        block: triple(&case["block"]),
        dynamic_shared: case["shared"].as_u64().unwrap() as u32,
        args,
        ..Launch::default()
    };
    let report = program.launch(&launch, &memory, options).map_err(|error| error.to_string())?;
    if let Some(expected) = case.get("finding") {
        // One mistake may be found in several ways, all of them at its lines.
        let found: Vec<(String, String, u64)> = report
            .findings
            .iter()
            .filter_map(|f| {
                let (file, line, _) = f.place.source.clone()?;
                Some((format!("{:?}", f.kind), file, u64::from(line)))
            })
            .collect();
        let want = (
            expected["kind"].as_str().unwrap().to_owned(),
            expected["file"].as_str().unwrap().to_owned(),
            expected["line"].as_u64().unwrap(),
        );
        return if found.contains(&want) { Ok(()) } else { Err(format!("{found:?}, not {want:?}:\n{report}")) };
    }
    // Operations of `.cta` scope by several blocks race, and give what is wanted all the same.
    let races = case.get("races").and_then(Value::as_str);
    let expected = |finding: &Finding| {
        finding.kind == Kind::Race && races.is_some_and(|start| finding.place.instruction.starts_with(start))
    };
    let wrong = report.findings.iter().any(|finding| finding.kind.is_failure() && !expected(finding));
    if wrong || report.dropped > 0 || races.is_some() && !report.findings.iter().any(expected) {
        return Err(report.to_string());
    }
    if let Some(text) = case.get("prints").and_then(Value::as_str)
        && report.printed != text
    {
        return Err(format!("prints {:?}, not {text:?}", report.printed));
    }
    for (index, base, size, kind, want, bounds, bound) in checks {
        let mut got = vec![0; want.len() * size];
        memory.read(base, &mut got).unwrap();
        for at in 0..want.len() {
            let mine = &got[at * size..][..size];
            let bound = bounds.as_ref().map_or(bound, |bounds| bounds.number(at));
            if mine == &want.bytes[at * want.size()..][..want.size().min(size)] && want.size() == size {
                continue;
            }
            if kind.ends_with("int64") {
                return Err(format!("argument {index}, element {at}: {mine:x?}"));
            }
            let (mine, wanted) = (number(&kind, mine), want.number(at));
            let close = (mine - wanted).abs() <= bound;
            if !close {
                return Err(format!("argument {index}, element {at}: {mine:e}, not {wanted:e} ± {bound:e}"));
            }
        }
    }
    Ok(())
}

/// All cases with their decoded programs, run with some options.
fn run_all(options: &Options, skip_faults: bool) {
    let data = std::fs::read(folder().join("cases.bin")).unwrap();
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(folder().join("cases.json")).unwrap()).unwrap();
    let mut programs = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        if skip_faults && case.get("finding").is_some() {
            continue;
        }
        let path = case["ptx"].as_str().unwrap();
        let program = programs.entry(path).or_insert_with(|| {
            let text = std::fs::read_to_string(folder().join(path)).unwrap();
            Program::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
        });
        if let Err(why) = run(case, program, &data, options) {
            wrong.push(format!("{}: {why}", case["name"].as_str().unwrap()));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

fn options() -> Options {
    Options { budget: 1 << 24, ..Options::default() }
}

#[test]
fn kernels_agree_with_numpy() {
    run_all(&options(), false);
}

#[test]
fn kernels_agree_in_other_orders() {
    for seed in [1, 2, 3] {
        run_all(&Options { seed, threads: Some(1), ..options() }, true);
    }
}

#[test]
fn bounds_hold_for_perturbed_results_and_bit_models() {
    for (perturb, matrix) in [(5, MatrixModel::Ampere), (9, MatrixModel::Hopper)] {
        run_all(&Options { perturb: Some(perturb), matrix, ..options() }, true);
    }
}

/// What stands between the asynchronous parts of a kernel. Triton has more `bar.sync` than its kernels need.
const BETWEEN: [&str; 8] = [
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "fence.proxy.async",
    "fence.mbarrier_init",
    "cp.async.wait_group",
    "cp.async.bulk.wait_group",
    "mbarrier.arrive",
];

/// How many of these a kernel could do without, and why.
const WITHOUT: [(&str, usize, &str); 4] = [
    ("triton_hopper_persistent", 4, "a wait when nothing is pending; three in the loop for products without terms"),
    ("cutlass_bf16_product", 3, "the fence for other blocks of a cluster; what stands before the second step"),
    ("cutlass_f16_product", 3, "the same"),
    ("cutlass_s8_product", 3, "the same"),
];

/// Every such instruction of the kernels with products of warpgroups is taken out, one at a time: that is noticed, by a
/// finding or in the result.
#[test]
fn what_stands_between_products_is_needed() {
    let data = std::fs::read(folder().join("cases.bin")).unwrap();
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(folder().join("cases.json")).unwrap()).unwrap();
    let mut taken_out = 0;
    for case in cases.as_array().unwrap() {
        let (name, path) = (case["name"].as_str().unwrap(), case["ptx"].as_str().unwrap());
        if !name.starts_with("triton_hopper") && !name.starts_with("cutlass") {
            continue;
        }
        let text = std::fs::read_to_string(folder().join(path)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let entry = format!(".entry {}(", case["entry"].as_str().unwrap());
        let start = lines.iter().position(|line| line.contains(&entry)).unwrap();
        let end =
            lines[start + 1..].iter().position(|line| line.contains(".entry ")).map_or(lines.len(), |at| start + at);
        let mut left = Vec::new();
        for at in start..end {
            let line = lines[at].trim_start();
            if line.starts_with("//") || !BETWEEN.iter().any(|what| line.contains(what)) {
                continue;
            }
            taken_out += 1;
            let mut mutant = lines.clone();
            mutant[at] = "";
            let program = Program::parse(&mutant.join("\n")).unwrap();
            let options = |seed| Options { seed, threads: Some(1), ..options() };
            if (0..4).all(|seed| run(case, &program, &data, &options(seed)).is_ok()) {
                left.push(format!("line {}: {line}", at + 1));
            }
        }
        let without = WITHOUT.iter().find(|(of, ..)| *of == name).map_or(0, |(_, count, _)| *count);
        assert_eq!(left.len(), without, "{name}:\n{}", left.join("\n"));
    }
    assert!(taken_out > 100, "{taken_out}");
}
