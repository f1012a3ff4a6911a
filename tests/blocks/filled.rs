//! Outputs whose terms have places that memory gives: each launch fills them first, so that nothing is left of what was
//! there; and terms of which one at most belongs to an element, by a promise about the data that is checked.

use super::data_ranges::integers;
use crate::support::{by_entry, finished, runs};
use tilewright::__private::{Arg, DynamicTensor, launch, prepare, reference};
use tilewright::kernel::{ElementType, KernelInfo};
use tilewright::{Device, EmulatorOptions, Error};
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{AtomicOp, Kernel, Op, StatementKind};
use tilewright_compiler::proof::{Launch, Verdict, check_values};

fn compiled(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

fn right(source: &str, sizes: &[&[i64]], seeds: u64) {
    runs(source, &compiled(source), sizes, seeds);
}

fn device() -> Device {
    Device::emulator(EmulatorOptions::default())
}

/// The integers of a tensor.
fn numbers(tensor: &DynamicTensor, element: ElementType) -> Vec<i128> {
    let bytes = tensor.read().expect("it is there");
    let size = element.bytes() as usize;
    let number = |chunk: &[u8]| {
        let mut all = [if element.is_signed_integer() && chunk[size - 1] >= 0x80 { 0xff } else { 0 }; 16];
        all[..size].copy_from_slice(chunk);
        i128::from_le_bytes(all)
    };
    bytes.chunks(size).map(number).collect()
}

/// The least and the greatest number of an integer type.
fn ends(element: ElementType) -> (i128, i128) {
    let bits = 8 * element.bytes();
    if element.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

#[test]
fn outputs_begin_as_the_reduction_of_no_terms() {
    use ElementType::{I32, I64, U8, U32, U64};
    type Combine = fn(i128, i128) -> i128;
    for element in [I32, U32, I64, U64] {
        let (least, greatest) = ends(element);
        let forms: [(&str, i128, Combine); 4] = [
            ("sum", 0, |a, b| a + b),
            ("max", least, i128::max),
            ("min", greatest, i128::min),
            // In these data one term at most.
            ("only", 0, |_, b| b),
        ];
        for (kind, empty, combine) in forms {
            let source = format!(
                "kernel Filled(p: u8[N], x: {ty}[N]) -> (y: {ty}[R]) {{
                    y[p[i]] = {kind}(|i| x[i]);
                    schedule y {{ split i by 32 -> b, t; bind b: grid; bind t: thread; }}
                }}",
                ty = element.name()
            );
            let kernel = compiled(&source);
            let info = kernel.info.as_ref().expect("no error");
            let bits = info.fill(2).expect("it takes terms in");
            assert_eq!(bits, (empty as u64) & (u64::MAX >> (64 - 8 * element.bytes())), "{source}");
            assert_eq!([info.fill(0), info.fill(1)], [None, None]);
            // The last one lies outside.
            for places in [&[3, 1, 9][..], &[3, 3, 3, 1, 9], &[]] {
                if kind == "only" && places.len() > 3 {
                    continue;
                }
                let terms: Vec<i128> = (0..places.len() as i128).map(|i| 5 + 3 * i).collect();
                let mut expected = vec![empty; 5];
                for (place, term) in places.iter().zip(&terms) {
                    if let Some(at) = expected.get_mut(*place as usize) {
                        *at = combine(*at, *term);
                    }
                }
                let device = device();
                for info in by_entry(info, &[5, places.len() as i64]) {
                    let y = integers(&device, element, &[77; 5]);
                    let (p, x) = (integers(&device, U8, places), integers(&device, element, &terms));
                    let arguments =
                        || [(&p, false), (&x, false), (&y, true)].map(|(t, written)| Arg::dynamic(t, written));
                    let prepared = prepare(&info, &arguments(), device.as_ref()).expect("it is a launch");
                    // Nothing of an earlier launch is left.
                    for _ in 0..2 {
                        let admissible = reference(&info, &arguments()).unwrap_or_else(|e| panic!("{source}{e}"));
                        launch(&info, &arguments(), device.as_ref()).unwrap_or_else(|e| panic!("{source}{e}"));
                        assert_eq!(numbers(&y, element), expected, "{source}\n{places:?}");
                        let output = admissible.outputs().next().expect("one");
                        output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{source}{e}"));
                        prepared.run().unwrap_or_else(|e| panic!("{source}{e}"));
                        assert_eq!(numbers(&y, element), expected, "{source}\n{places:?}");
                    }
                }
            }
        }
    }
}

/// A sum of floats begins as +0, whatever was there: −0 and NaN are nothing to it.
#[test]
fn sums_of_floats_begin_as_zero() {
    let source = "kernel Floats(p: u8[N], x: f64[N]) -> (y: f64[R]) {
        y[p[i]] = unordered sum(|i| x[i]);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }";
    let kernel = compiled(source);
    let (info, device) = (kernel.info.as_ref().expect("no error"), device());
    let floats = |values: &[f64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        DynamicTensor::new(&device, ElementType::F64, (&[values.len()], &[1]), &bytes, 0).expect("it fits")
    };
    let (p, x) = (integers(&device, ElementType::U8, &[1, 1, 2]), floats(&[-0.0, -0.0, 1.5]));
    let y = floats(&[f64::NAN, f64::INFINITY, -0.0, -0.0]);
    let arguments = [(&p, false), (&x, false), (&y, true)].map(|(tensor, written)| Arg::dynamic(tensor, written));
    let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
    launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let found = y.read().expect("written");
    admissible.outputs().next().expect("one").check_raw(&found).unwrap_or_else(|e| panic!("{e}"));
    let found: Vec<u64> = found.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
    assert_eq!(found, [0, 0, 1.5_f64.to_bits(), 0]);
}

const SIZES: &[&[i64]] = &[&[1, 1, 1], &[70, 33, 3], &[5, 9, 70], &[129, 64, 2], &[0, 7, 5], &[5, 7, 0], &[5, 0, 4]];

/// Rows of `x` that go to rows of `y`; sizes are N, D, R.
fn rows(element: &str, output: &str, equation: &str, items: &str) -> String {
    format!("kernel Rows(p: i32[N], x: {element}[N, D]{output} {{ {equation} {items} }}")
}

#[test]
fn one_term_goes_to_its_place_by_any_schedule() {
    let equation = "y[p[i], d] = only(|i| x[i, d]);";
    let schedules = [
        "schedule y { merge d, i -> e; split e by 64 -> b, t; bind b: grid; bind t: thread; }",
        "launch threads(96); schedule y { split i by 5 -> b, u; split d by 64 -> q, t; reorder b, q, u, t; \
         bind b, q: grid; bind t: thread; unroll u; }",
        "launch persistent, threads(64); schedule y { split i by 4 -> b, w; split d by 16 -> q, l; \
         reorder b, q, w, l; bind b, q: grid; bind w, l: thread; }",
    ];
    for schedule in schedules {
        for element in ["f32", "f16", "bf16", "f64", "bool", "u8", "e4m3", "i64"] {
            for (output, y) in [(format!(") -> (y: {element}[R, D])"), ""), (")".to_owned(), "inout y: ")] {
                let source = match y {
                    "" => rows(element, &output, equation, schedule),
                    _ => rows(element, &output, equation, schedule)
                        .replace("Rows(", &format!("Rows(inout y: {element}[R, D], ")),
                };
                // In the order in which sizes are met.
                let swapped: Vec<Vec<i64>> = SIZES.iter().map(|s| vec![s[2], s[1], s[0]]).collect();
                let swapped: Vec<&[i64]> = swapped.iter().map(Vec::as_slice).collect();
                right(&source, if y.is_empty() { SIZES } else { &swapped }, 1);
            }
        }
    }
    // Each lane of a vector has a place of its own; gaps between rows stay what they are.
    let vectors = "kernel Vectors(p: i64[N], x: f32[N]) -> (y: f32[R, 2; ld, 1]) where N % 4 == 0, ld >= 2 {
        y[p[i], c] = only(|i| x[i] + c as f32);
        schedule y { split i by 4 -> g, v; split g by 64 -> b, t; reorder b, t, c, v; bind b: grid; bind t: thread; vectorize v; }
    }";
    right(vectors, &[&[4, 3, 2], &[260, 300, 5], &[0, 5, 3]], 2);
}

/// The kernel of a few tests, with its inputs and an output: how a launch ends, and the reference.
fn with_places(info: &KernelInfo, places: &[i128]) -> (Result<(), Error>, Result<(), Error>) {
    let device = device();
    let p = integers(&device, ElementType::I32, places);
    let x = integers(&device, ElementType::I32, &(0..2 * places.len() as i128).collect::<Vec<_>>());
    let x = DynamicTensor::new(&device, ElementType::I32, (&[places.len(), 2], &[2, 1]), &x.read().expect("it is"), 0);
    let y = DynamicTensor::new(&device, ElementType::I32, (&[9, 2], &[2, 1]), &[7; 72], 0).expect("it fits");
    let x = x.expect("it fits");
    let arguments = [(&p, false), (&x, false), (&y, true)].map(|(tensor, written)| Arg::dynamic(tensor, written));
    let admissible = reference(info, &arguments);
    let launched = launch(info, &arguments, device.as_ref());
    if let (Ok(admissible), Ok(())) = (&admissible, &launched) {
        let output = admissible.outputs().next().expect("one");
        output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{e}"));
    }
    (launched, admissible.map(|_| ()))
}

#[test]
fn broken_promises_are_told_with_both_iterations() {
    let source = rows(
        "i32",
        ") -> (y: i32[R, D])",
        "y[p[i] + 1, d] = only(|i| x[i, d]);",
        "schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }",
    );
    let kernel = compiled(&source);
    let info = kernel.info.as_ref().expect("no error");
    let (launched, admissible) = with_places(info, &[4, 0, 7, 2, 0]);
    let why = "y[1, 0] has two terms, those of d = 0, i = 1 and of d = 0, i = 4: `only` promises one";
    let told = admissible.expect_err("two terms").to_string();
    assert!(told.contains(why), "{told}");
    match launched.expect_err("two terms") {
        Error::Emulation(fault) => assert_eq!((&*fault.kind, &*fault.message), ("BrokenPromise", why)),
        other => panic!("{other}"),
    }
    // What lies outside belongs to no element, as often as it likes.
    for places in [&[-2, 3, -2, 8, 8, 1000, 1000, 5][..], &[], &[8, 8], &[-1], &[0, 1, 2, 3, 4, 5, 6, 7, -1]] {
        let (launched, admissible) = with_places(info, places);
        assert_eq!((launched, admissible), (Ok(()), Ok(())), "{places:?}");
    }
}

/// A prepared launch looks at the data of each run; an index that the host cannot know is not looked at.
#[test]
fn promises_are_about_the_data_of_a_run() {
    let device = device();
    let kernel = compiled(
        "kernel Slots(inout y: u32[R], p: u32[N]) {
            q[i] = p[i] / 2;
            y[2 * q[i]] = only(|i| i as u32 + 1);
            schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        }",
    );
    let info = kernel.info.as_ref().expect("no error");
    let y = integers(&device, ElementType::U32, &[50; 6]);
    let good = integers(&device, ElementType::U32, &[5, 1, 2]);
    let bad = integers(&device, ElementType::U32, &[4, 1, 5]);
    let run = |p: &DynamicTensor| launch(info, &[Arg::dynamic(&y, true), Arg::dynamic(p, false)], device.as_ref());
    run(&good).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(numbers(&y, ElementType::U32), [2, 50, 3, 50, 1, 50]);
    let error = run(&bad).expect_err("4 / 2 is 5 / 2").to_string();
    assert!(error.contains("y[4] has two terms, those of i = 0 and of i = 2"), "{error}");
    // Nothing ran.
    assert_eq!(numbers(&y, ElementType::U32), [2, 50, 3, 50, 1, 50]);

    let unknown = compiled(
        "kernel Unknown(x: f32[N, 3]) -> (y: u32[R]) {
            best[i] = argmax(|j| approx::exp(x[i, j]));
            y[best[i]] = only(|i| i as u32);
            schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
            inline best;
        }",
    );
    let info = unknown.info.as_ref().expect("no error");
    let close: Vec<u8> =
        [1.0_f32, 1.000_000_1, 0.999_999_9, 1.0, 1.000_000_1, 0.5].iter().flat_map(|x| x.to_le_bytes()).collect();
    let x = DynamicTensor::new(&device, ElementType::F32, (&[2, 3], &[3, 1]), &close, 0).expect("it fits");
    let y = integers(&device, ElementType::U32, &[0; 4]);
    let arguments = || [Arg::dynamic(&x, false), Arg::dynamic(&y, true)];
    assert!(reference(info, &arguments()).is_err());
    launch(info, &arguments(), device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
}

/// What goes wrong with a term that goes to its place is noticed by the checker on data.
#[test]
fn planted_mistakes_are_noticed() {
    let source = rows(
        "f32",
        ") -> (y: f32[R, D])",
        "y[p[i], d] = only(|i| x[i, d]);",
        "schedule y { merge d, i -> e; split e by 64 -> b, t; bind b: grid; bind t: thread; }",
    );
    let kernel = compiled(&source);
    let (info, entry) = (kernel.info.as_ref().expect("no error"), &kernel.entries[0].kernel);
    assert!(info.ptx.text.contains("st.relaxed.gpu.global.f32"), "{}", info.ptx.text);
    let launch = Launch::new(info, &[7, 5, 9]).expect("a launch");
    let verdicts =
        |kernel: &Kernel| (1..9).map(|seed| check_values(kernel, &launch, &info.algorithm, seed, 1_000_000)).collect();
    let whole: Vec<Verdict> = verdicts(entry);
    // The places that are drawn are distinct, so that all of it is decided.
    assert!(whole.iter().all(|verdict| *verdict == Verdict::Holds), "{whole:?}");
    let mut planted = 0;
    for region in 0..entry.regions.len() {
        for at in 0..entry.regions[region].statements.len() {
            let StatementKind::AtomicUpdate(update) = entry.regions[region].statements[at].kind.clone() else {
                continue;
            };
            assert_eq!(update.op, AtomicOp::Set);
            let mut nothing = entry.clone();
            nothing.regions[region].statements[at].kind = StatementKind::Let(update.offset);
            // The other factor: a multiple of the row that another thread has.
            let mut elsewhere = entry.clone();
            let Op::Index(op, a, _) = entry.values[update.offset.index()].op else { panic!("{entry}") };
            elsewhere.values[update.offset.index()].op = Op::Index(op, a, a);
            let mut added = entry.clone();
            if let StatementKind::AtomicUpdate(update) = &mut added.regions[region].statements[at].kind {
                update.op = AtomicOp::Add;
            }
            for mutant in [nothing, elsewhere, added] {
                let found: Vec<Verdict> = verdicts(&mutant);
                assert!(found.iter().any(|verdict| matches!(verdict, Verdict::Violated(_))), "{found:?}\n{mutant}");
                planted += 1;
            }
        }
    }
    assert!(planted >= 3);
}

/// What cannot be kept is refused by a message of its own.
#[test]
fn other_forms_are_refused() {
    let refused = |equations: &str| {
        let source = format!(
            "kernel Refused(p: u32[N], x: f32[N], inout z: f32[R], h: f16[N]) -> (y: f32[R], w: f16[R]) {{ {equations} }}"
        );
        finished(&source).err().unwrap_or_else(|| panic!("{source}")).0
    };
    for (equations, code) in [
        ("y[p[i]] = x[i]; z[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("y[p[i]] += unordered sum(|i| x[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("y[p[i]] = sum(|i| x[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW1009),
        ("y[p[i]] += only(|i| x[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("z[p[i]] += only(|i| x[i]); y[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("z[p[i]] = unordered sum(|i| x[i]); y[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("y[p[i]] = max(|i| x[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("w[p[i]] = unordered sum(|i| h[i]); y[r] = 0.0; z[r] = 0.0;", Code::TW0133),
        ("y[r] = only(|i| x[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("y[p[i]] = 2.0 * only(|i| x[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW0133),
        ("y[p[i]] = ordered only(|i| x[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW1006),
        ("y[p[i]] = only(|i| x[i], promote 4); z[r] = 0.0; w[r] = 0.0;", Code::TW1007),
        ("y[p[i]] = only(|i| h[i]); z[r] = 0.0; w[r] = 0.0;", Code::TW0119),
        ("y[p[i]] = only(|i| x[i]); z[r] = y[r]; w[r] = 0.0;", Code::TW0133),
    ] {
        assert!(refused(equations).contains(&code), "{equations}: {:?}", refused(equations));
    }
    // The same with half floats: `only` takes any type, from a type of its own.
    right(
        "kernel Halves(p: u32[N], h: f16[N]) -> (w: f16[R]) { w[p[i]] = only(|i| h[i]); schedule w { split i by 32 -> b, t; bind b: grid; bind t: thread; } }",
        &[&[5, 9], &[40, 33]],
        1,
    );
}
