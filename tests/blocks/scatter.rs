//! Terms whose places memory gives: each is taken into the element that its indices name, once, wherever the schedule
//! computes it, and one without an element goes nowhere. Indices at the limits of their types, duplicates, and no terms
//! at all.

use super::data_ranges::integers;
use crate::support::{by_entry, finished, is_wrong, runs};
use tilewright::__private::{Arg, DynamicTensor, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::{Device, EmulatorOptions};
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Kernel, Op, StatementKind, Store};
use tilewright_compiler::proof::{Kind, Launch, Verdict, check, check_values};

fn compiled(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

fn right(source: &str, sizes: &[&[i64]], seeds: u64) {
    runs(source, &compiled(source), sizes, seeds);
}

/// Rows of `x` that are added to rows of `y`; sizes are R, D, N.
fn rows(items: &str, schedule: &str) -> String {
    format!(
        "kernel Rows(inout y: f32[R, D], p: i32[N], x: f32[N, D]) {{
            y[p[i], d] += unordered sum(|i| x[i, d]);
            {items}
            {schedule}
        }}"
    )
}

const SIZES: &[&[i64]] = &[&[1, 1, 1], &[3, 33, 70], &[70, 9, 5], &[2, 64, 129], &[5, 7, 0], &[0, 7, 5], &[4, 0, 5]];

#[test]
fn any_schedule_takes_each_term_in_once() {
    for (items, schedule) in [
        ("", "schedule y { merge d, i -> e; split e by 64 -> b, t; bind b: grid; bind t: thread; }"),
        (
            "",
            "schedule y { split i by 2 -> b, w; split d by 32 -> q, l; reorder b, w, l, q; bind b: grid; bind w: warp; bind l: thread; }",
        ),
        ("", "schedule y { reorder i, d; bind i: grid; bind d: 8 thread; split d by 8 -> d1, d2; }"),
        (
            "launch threads(96);",
            "schedule y { split i by 5 -> b, u; split d by 64 -> q, t; reorder b, q, u, t; bind b, q: grid; bind t: thread; unroll u; }",
        ),
        (
            "launch persistent, threads(64);",
            "schedule y { split i by 4 -> b, w; split d by 16 -> q, l; reorder b, q, w, l; bind b, q: grid; bind w, l: thread; }",
        ),
        (
            "launch cluster(2), threads(64);",
            "schedule y { split i by 2 -> b, c; split d by 64 -> q, t; reorder b, c, q, t; bind b: grid; bind c: cta; bind t: thread; }",
        ),
        (
            "",
            "schedule y { split i by 8 -> b, w; resize d by (3, 2) -> e; split e by 16 -> q, l; reorder b, q, w, l; bind b, q: grid raster(b: 3); bind w, l: thread; }",
        ),
    ] {
        let source = rows(items, schedule);
        let Ok(kernel) = finished(&source) else {
            // Axes of unknown extent are not for threads.
            assert!(schedule.contains("bind d: 8 thread"), "{source}");
            continue;
        };
        runs(&source, &kernel, SIZES, 2);
    }
}

#[test]
fn terms_are_made_of_stages_copies_and_reductions() {
    // Rows and places come ahead of the threads.
    let copies =
        "schedule y { split i by 8 -> b, u; split d by 64 -> q, t; reorder b, q, u, t; bind b: grid; bind t: thread; }
        stage xs[i, d] = x in shared at y.q ring(2) via tma { box i by 8 -> ic, ib; box d by 64 -> dc, db; }
        stage ps[i] = p in shared at y.b { bind i: thread; }";
    let source = rows("launch threads(64);", copies).replace(") {\n", ") where D % 4 == 0 {\n");
    right(&source, &[&[3, 64, 9], &[1, 4, 1], &[9, 132, 33], &[2, 8, 0]], 2);
    // A role that loads, one that adds.
    let roles = copies.replace("schedule y {", "schedule y by add {").replace("via tma {", "via tma by load {");
    let roles = roles.replace("at y.b {", "at y.b by add {");
    let source = rows("launch roles { load: warp, add: 2 warp };", &roles).replace(") {\n", ") where D % 4 == 0 {\n");
    right(&source, &[&[3, 64, 9], &[1, 4, 1], &[9, 132, 33]], 2);
    // A term and a place that threads reduce together: one of them adds.
    let reduced = "kernel Reduced(inout y: f32[R], x: f32[N, K], q: f32[N, K]) where K >= 1 {
            s[i] = sum(|k| x[i, k]);
            y[argmax(|k| q[i, k])] += unordered sum(|i| s[i]);
            launch threads(64);
            schedule y { bind i: grid; }
            schedule s in registers at y.i { split k by 64 -> ko, t; bind t: thread; reduce t; }
        }";
    assert!(finished(reduced).is_err(), "64 threads would each add");
    let own = "kernel Own(inout y: i64[R], p: u32[N], x: i32[N, K]) {
            y[p[i]] += sum(|i| sum(|k| x[i, k] as i64));
            launch threads(64);
            schedule y { split i by 2 -> b, w; split k by 32 -> ko, l; reorder b, w, l, ko; bind b: grid; bind w: warp; bind l: thread; reduce l; }
        }";
    right(own, &[&[3, 9, 70], &[1, 1, 1], &[7, 5, 0], &[7, 0, 3]], 2);
    // Lanes of vectors of places and terms.
    let vectors = "kernel Vectors(inout y: f64[R], p: i64[N], x: f64[N]) where N % 4 == 0 {
            y[p[i] / 2] += unordered sum(|i| x[i]);
            schedule y { split i by 4 -> g, v; split g by 64 -> b, t; bind b: grid; bind t: thread; vectorize v; }
        }";
    right(vectors, &[&[3, 4], &[9, 260], &[5, 0]], 2);
    assert!(finished(&vectors.replace(" where N % 4 == 0", "")).is_err());
}

/// Rows of a product that are added to rows of a table, as those of experts are.
#[test]
fn products_are_scattered() {
    let source = "kernel Experts(inout y: f32[R, N], token: i32[M], a: bf16[M, K], b: bf16[N, K]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        y[token[m], n] += unordered sum(|m| acc[m, n]);
        schedule y {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni; reorder mt, nt, mi, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at y.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    }";
    right(source, &[&[5, 72, 70, 64], &[1, 8, 1, 8], &[200, 64, 64, 128]], 2);
}

/// What a place is for each kind of value that memory may hold.
fn places(element: ElementType, rows: i128) -> Vec<i128> {
    let bits = 8 * element.bytes();
    let (least, most) = match element.is_signed_integer() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let mut all = vec![0, 0, 0, rows - 1, rows - 1, rows, -1, least, least + 1, most, most - 1, 1, 2, 2];
    // What is 0 or 1 again in fewer bits, and once it is doubled.
    all.extend([1 << 8, 1 << 16, (1 << 16) + 1, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 63, -(1 << 32), -(1 << 31)]);
    all.retain(|v| (least..=most).contains(v));
    all
}

#[test]
fn indices_at_the_limits_of_their_types_name_no_element() {
    use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};
    const ROWS: i128 = 5;
    type Index = fn(i128) -> i128;
    let forms: [(&str, Index); 6] = [
        ("p[i]", |p| p),
        ("p[i] - 1", |p| p - 1),
        ("2 * p[i] + 1", |p| 2 * p + 1),
        ("p[i] / 3", |p| p.div_euclid(3)),
        ("p[i] % 7", |p| p.rem_euclid(7)),
        ("min(p[i], 2)", |p| p.min(2)),
    ];
    for ty in [U8, I8, U16, I16, U32, I32, U64, I64] {
        for (form, index) in forms {
            let source = format!(
                "kernel Places(inout y: i32[R], p: {ty}[N]) {{
                    y[{form}] += sum(|i| 3 * (i as i32) + 1);
                    schedule y {{ split i by 32 -> b, t; bind b: grid; bind t: thread; }}
                }}",
                ty = ty.name()
            );
            // What could leave 64 bits is no index.
            if ty.bytes() == 8 && form.contains(['-', '+', '*']) {
                assert!(
                    finished(&source).is_err_and(|(codes, _)| codes.iter().all(|code| *code == Code::TW0005)),
                    "{source}"
                );
                continue;
            }
            let kernel = compiled(&source);
            let values = places(ty, ROWS);
            let mut expected: Vec<i32> = (0..ROWS as i32).map(|r| 1000 * r).collect();
            for (i, value) in (0..).zip(&values) {
                // Beyond 63 bits memory says no number that an index could be: the largest one stands for it.
                let value = (*value).min(i64::MAX.into());
                if let Some(element) = usize::try_from(index(value)).ok().and_then(|at| expected.get_mut(at)) {
                    *element += 3 * i + 1;
                }
            }
            let device = Device::emulator(EmulatorOptions::default());
            for info in by_entry(kernel.info.as_ref().expect("no error"), &[ROWS as i64, values.len() as i64]) {
                let before: Vec<i128> = (0..ROWS).map(|r| 1000 * r).collect();
                let (y, p) = (integers(&device, I32, &before), integers(&device, ty, &values));
                let arguments = [(&y, true), (&p, false)].map(|(tensor, written)| Arg::dynamic(tensor, written));
                let admissible = reference(&info, &arguments).unwrap_or_else(|e| panic!("{source}{e}"));
                launch(&info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{source}\n{e}"));
                let found = y.read().expect("written");
                let output = admissible.outputs().next().expect("one");
                output.check_raw(&found).unwrap_or_else(|e| panic!("{source}\n{e}"));
                let found: Vec<i32> = found.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
                assert_eq!(found, expected, "{source}\n{values:?}");
            }
        }
    }
}

/// Extremes and sums of every type that memory has an instruction for, at the limits of the type.
#[test]
fn updates_are_those_of_their_types() {
    use ElementType::{I32, I64, U32, U64};
    for ty in [I32, U32, I64, U64] {
        for (sign, reduction) in [("+=", "sum"), ("max=", "max"), ("min=", "min")] {
            let source = format!(
                "kernel Updates(inout y: {ty}[R], p: u8[N], x: {ty}[N]) {{
                    y[p[i]] {sign} {reduction}(|i| x[i]);
                    schedule y {{ split i by 32 -> b, t; bind b: grid; bind t: thread; }}
                }}",
                ty = ty.name()
            );
            let kernel = compiled(&source);
            let x: Vec<i128> = places(ty, 9);
            let p: Vec<i128> = (0..x.len() as i128).map(|i| i * i % 4).collect();
            let device = Device::emulator(EmulatorOptions::default());
            for info in by_entry(kernel.info.as_ref().expect("no error"), &[4, x.len() as i64]) {
                let y = integers(&device, ty, &[7, 0, 100, 1]);
                let given: [DynamicTensor; 2] = [integers(&device, ElementType::U8, &p), integers(&device, ty, &x)];
                let arguments = [(&y, true), (&given[0], false), (&given[1], false)];
                let arguments = arguments.map(|(tensor, written)| Arg::dynamic(tensor, written));
                let admissible = reference(&info, &arguments).unwrap_or_else(|e| panic!("{source}{e}"));
                launch(&info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{source}\n{e}"));
                let output = admissible.outputs().next().expect("one");
                output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{source}\n{e}"));
            }
        }
    }
}

/// Zeros of either sign, subnormal numbers, infinities and NaN: what the reference admits is what memory does.
#[test]
fn float_sums_are_admissible() {
    let source = "kernel Floats(inout y: f32[R], p: u8[N], x: f32[N]) {
        y[p[i]] += unordered sum(|i| x[i]);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }";
    let kernel = compiled(source);
    let device = Device::emulator(EmulatorOptions::default());
    let floats = |values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        DynamicTensor::new(&device, ElementType::F32, (&[values.len()], &[1]), &bytes, 0).expect("it fits")
    };
    let tiny = f32::from_bits(5);
    let (infinity, nan) = (f32::INFINITY, f32::NAN);
    // What an element was, and its terms.
    let cases: [(f32, &[f32]); 9] = [
        (-0.0, &[]),
        (-0.0, &[-0.0, -0.0]),
        (-0.0, &[0.0]),
        (tiny, &[]),
        (tiny, &[tiny, -tiny]),
        (1.0, &[infinity]),
        (1.0, &[infinity, -infinity]),
        (nan, &[2.0]),
        (f32::MAX, &[f32::MAX, 1.0]),
    ];
    let before: Vec<f32> = cases.iter().map(|case| case.0).collect();
    let terms: Vec<(i128, f32)> =
        (0..).zip(&cases).flat_map(|(at, case)| case.1.iter().map(move |x| (at, *x))).collect();
    let (p, x): (Vec<i128>, Vec<f32>) = terms.into_iter().unzip();
    let (y, p, x) = (floats(&before), integers(&device, ElementType::U8, &p), floats(&x));
    let arguments = [(&y, true), (&p, false), (&x, false)].map(|(tensor, written)| Arg::dynamic(tensor, written));
    let info = kernel.info.as_ref().expect("no error");
    let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
    launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let found = y.read().expect("written");
    admissible.outputs().next().expect("one").check_raw(&found).unwrap_or_else(|e| panic!("{e}"));
    let found: Vec<u32> = found.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
    // Without terms nothing changes.
    assert_eq!([found[0], found[1], found[2], found[3]], [1 << 31, 1 << 31, 0, 5]);
}

/// Changes a statement of a kernel: true if it was one that can be changed.
type Plant = fn(&mut Kernel, &mut StatementKind) -> bool;

/// What goes wrong is noticed: by the checker on data, or by its rules; and by the emulator.
#[test]
fn planted_mistakes_are_noticed() {
    let source = rows("", "schedule y { merge d, i -> e; split e by 64 -> b, t; bind b: grid; bind t: thread; }");
    let kernel = compiled(&source);
    let (info, entry) = (kernel.info.as_ref().expect("no error"), &kernel.entries[0].kernel);
    let dims = [3, 5, 7];
    let launch = Launch::new(info, &dims).expect("a launch");
    let verdict = |kernel: &Kernel| check_values(kernel, &launch, &info.algorithm, 1, 1_000_000);
    assert_eq!(verdict(entry), Verdict::Holds, "{entry}");
    // What each does, and as what it is noticed, if that is known.
    let plants: [(&str, Plant, &[Kind]); 4] = [
        (
            "nothing is added",
            |_, kind| {
                let StatementKind::AtomicUpdate(update) = kind else { return false };
                *kind = StatementKind::Let(update.offset);
                true
            },
            &[Kind::NotWritten],
        ),
        (
            "it is a store",
            |_, kind| {
                let StatementKind::AtomicUpdate(update) = kind.clone() else { return false };
                let (memory, offset, values) = (update.memory, update.offset, vec![update.value]);
                *kind = StatementKind::Store(Store { memory, offset, values });
                true
            },
            &[Kind::WrittenTwice, Kind::NotWritten],
        ),
        (
            "the tail is not guarded",
            |kernel, kind| {
                let StatementKind::If(branch) = kind else { return false };
                kernel.values[branch.condition.index()].op = Op::Literal(1);
                true
            },
            &[],
        ),
        (
            "all go to one element",
            |kernel, kind| {
                let StatementKind::AtomicUpdate(update) = kind else { return false };
                kernel.values[update.offset.index()].op = Op::Literal(0);
                true
            },
            &[],
        ),
    ];
    for (what, plant, kinds) in plants {
        let mut tried = 0;
        for region in 0..entry.regions.len() {
            for at in 0..entry.regions[region].statements.len() {
                let mut mutant = entry.clone();
                let mut kind = mutant.regions[region].statements[at].kind.clone();
                if !plant(&mut mutant, &mut kind) {
                    continue;
                }
                mutant.regions[region].statements[at].kind = kind;
                tried += 1;
                match verdict(&mutant) {
                    Verdict::Violated(found) => {
                        assert!(kinds.is_empty() || kinds.contains(&found.kind), "{what}: {found}");
                    }
                    other => panic!("{what}: {other:?}\n{mutant}"),
                }
            }
        }
        assert!(tried > 0, "{what}");
    }
    // A store beside an update, whichever comes first, and a read of what is updated.
    let update = |kernel: &Kernel| {
        let all =
            (0..kernel.regions.len()).flat_map(|r| (0..kernel.regions[r].statements.len()).map(move |at| (r, at)));
        let mut all =
            all.filter(|(r, at)| matches!(kernel.regions[*r].statements[*at].kind, StatementKind::AtomicUpdate(_)));
        all.next().expect("an update")
    };
    let (region, at) = update(entry);
    let StatementKind::AtomicUpdate(own) = entry.regions[region].statements[at].kind.clone() else { return };
    for place in [at, at + 1] {
        let mut mutant = entry.clone();
        let mut statement = mutant.regions[region].statements[at].clone();
        let store = Store { memory: own.memory, offset: own.offset, values: vec![own.value] };
        statement.kind = StatementKind::Store(store);
        mutant.regions[region].statements.insert(place, statement);
        let found = verdict(&mutant);
        assert!(matches!(&found, Verdict::Violated(found) if found.kind == Kind::Race), "{found:?}");
    }
    // Without data the checker leaves places open, and finds nothing wrong.
    assert!(matches!(check(entry, &launch, 1_000_000), Verdict::Undecided(_)));
    // In the text: another instruction, no guard of the tail, none of the place.
    let text = &info.ptx.text;
    let red = "red.relaxed.gpu.global.add.f32";
    assert!(is_wrong(info, &dims, text.replace(red, "st.global.f32")), "a store in place of an update");
    let guards: Vec<&str> = text.lines().filter(|line| line.contains("@!") && line.contains("bra")).collect();
    assert!(guards.len() >= 4, "{text}");
    for guard in guards.iter().take(guards.len() / 2) {
        assert!(is_wrong(info, &dims, text.replacen(guard, "", 1)), "without {guard}");
    }
}

/// What cannot be kept is refused by a message of its own.
#[test]
fn other_forms_are_refused() {
    let refused = |equations: &str| {
        let source = format!(
            "kernel Refused(inout y: f32[R], inout h: f16[R], p: u32[N], x: f32[N], z: f16[N]) -> (w: f32[R]) {{
                {equations}
            }}"
        );
        finished(&source).err().unwrap_or_else(|| panic!("{source}")).0
    };
    let rest = "h[r] = 0.0; w[r] = 0.0;";
    for (equations, code) in [
        (format!("y[p[i]] = x[i]; {rest}"), Code::TW0133),
        (format!("y[p[i]] += x[i]; {rest}"), Code::TW0133),
        (format!("y[p[i]] = sum(|i| x[i]); {rest}"), Code::TW0133),
        (format!("y[p[i]] += prod(|i| x[i]); {rest}"), Code::TW0133),
        (format!("y[p[i]] += ordered sum(|i| x[i]); {rest}"), Code::TW0133),
        (format!("y[p[i]] max= sum(|i| x[i]); {rest}"), Code::TW0133),
        (format!("y[p[i]] max= max(|i| x[i]); {rest}"), Code::TW0133),
        (format!("y[p[i]] += sum(|i| x[i]); {rest}"), Code::TW1009),
        (format!("y[p[i]] += unordered sum(|i| x[i] + y[i]); {rest}"), Code::TW0133),
        ("y[p[i]] += unordered sum(|i| x[i]); h[r] = 0.0; w[r] = y[r];".to_owned(), Code::TW0133),
        ("y[r] = 0.0; h[p[i]] += unordered sum(|i| z[i]); w[r] = 0.0;".to_owned(), Code::TW0133),
        ("y[r] = 0.0; h[r] = 0.0; w[p[i]] += unordered sum(|i| x[i]);".to_owned(), Code::TW0133),
        ("y[r] = t[r]; h[r] = 0.0; w[r] = 0.0; t[p[i]] += unordered sum(|i| x[i]);".to_owned(), Code::TW0133),
        (format!("y[p[i]] -= sum(|i| x[i]); {rest}"), Code::TW0009),
        (format!("y[2 * i] = x[i]; {rest}"), Code::TW0009),
        (format!("y[p[j]] += unordered sum(|i| x[i]); {rest}"), Code::TW0101),
        (format!("y[p[i], i] += unordered sum(|i| x[i]); {rest}"), Code::TW0106),
        (format!("y[p[i]] += unordered sum(|i| z[i]); {rest}"), Code::TW0119),
    ] {
        assert!(refused(&equations).contains(&code), "{equations}: {:?}", refused(&equations));
    }
}
