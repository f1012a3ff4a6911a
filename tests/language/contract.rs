//! The numeric contract, type by type: tables over all types and edge values, from source text to the emulator and the
//! reference, against the host's own arithmetic.

use tilewright::__private::{Arg, DynamicTensor, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::kernel::format::Format;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::source::SourceFile;

use ElementType::{Bool, F32, F64};

/// A result of a kernel: name, type, the expression over `a[i]` and `b[i]`.
type Row = (String, ElementType, String);

/// The text of a kernel that computes these rows, each by itself.
fn text(inputs: &[(&str, ElementType)], rows: &[Row]) -> String {
    let inputs: Vec<String> = inputs.iter().map(|(name, ty)| format!("{name}: {ty}[N]")).collect();
    let outputs: Vec<String> = rows.iter().map(|(name, ty, _)| format!("{name}: {ty}[N]")).collect();
    let equations: String = rows.iter().map(|(name, _, value)| format!("{name}[i] = {value};\n")).collect();
    let schedule = "{ split i by 128 -> g, t; bind g: grid; bind t: thread; }";
    let schedules: String = rows.iter().map(|(name, ..)| format!("schedule {name} {schedule}\n")).collect();
    let (inputs, outputs) = (inputs.join(", "), outputs.join(", "));
    format!(
        "tilewright::schedule! {{ kernel Table({inputs}) -> ({outputs}) {{\n{equations}launch threads(128);\n{schedules}}} }}"
    )
}

/// Runs the rows on the emulator, has the reference check every element, and returns the bits of every row.
fn run(inputs: &[(&str, ElementType)], columns: &[&[u64]], rows: &[Row]) -> Vec<Vec<u64>> {
    let text = text(inputs, rows);
    let source = SourceFile::parse("table.rs", &text).expect("Rust");
    assert_eq!(source.findings().errors, 0, "{}\n{text}", source.findings().text);
    let kernel = source.kernels().next().and_then(|found| found.kernel.info.clone()).expect("a kernel");
    let device = Device::emulator(EmulatorOptions::default());
    let n = columns[0].len();
    let tensor = |ty: ElementType, bits: &[u64]| {
        let bytes: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes()[..ty.bytes() as usize].to_vec()).collect();
        DynamicTensor::new(&device, ty, (&[n], &[1]), &bytes, 0).expect("it fits")
    };
    let given = inputs.iter().zip(columns).map(|((_, ty), bits)| (tensor(*ty, bits), false));
    let tensors: Vec<_> = given.chain(rows.iter().map(|(_, ty, _)| (tensor(*ty, &vec![0; n]), true))).collect();
    let arguments: Vec<Arg<'_>> = tensors.iter().map(|(tensor, written)| Arg::dynamic(tensor, *written)).collect();
    let admissible = reference(&kernel, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}"));
    launch(&kernel, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut results = Vec::new();
    for (((name, ty, value), output), (tensor, _)) in
        rows.iter().zip(admissible.outputs()).zip(&tensors[inputs.len()..])
    {
        let bytes = tensor.read().expect("written");
        let agreement = output.check_raw(&bytes).unwrap_or_else(|e| panic!("{name}, {value}: {e}"));
        assert_eq!(agreement.exact, n, "{name}: every element is determined");
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        results.push(bytes.chunks(ty.bytes() as usize).map(word).collect());
    }
    results
}

/// A value of any type: integers and `bool` exactly, floats in `f64`, which holds all of them.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i128),
    Float(f64),
}

fn range(ty: ElementType) -> (i128, i128) {
    let bits = 8 * ty.bytes();
    if ty.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn mask(ty: ElementType, value: i128) -> u64 {
    value as u64 & u64::MAX >> (64 - 8 * ty.bytes())
}

fn number(ty: ElementType, bits: u64) -> Number {
    if let Some(format) = Format::of(ty) {
        return Number::Float(format.value(bits));
    }
    let unused = 64 - 8 * ty.bytes();
    Number::Integer(match ty.is_signed_integer() {
        true => i128::from((bits << unused) as i64 >> unused),
        false => i128::from(bits),
    })
}

/// `as`, by the host's own conversions where it has them.
fn cast(value: Number, to: ElementType) -> u64 {
    match (value, to, Format::of(to)) {
        (Number::Integer(x), F64, _) => (x as f64).to_bits(),
        (Number::Integer(x), F32, _) => u64::from((x as f32).to_bits()),
        (Number::Float(x), F64, _) => x.to_bits(),
        (Number::Float(x), F32, _) => u64::from((x as f32).to_bits()),
        (Number::Integer(x), _, Some(format)) => format.from_integer(x),
        (Number::Float(x), _, Some(format)) => format.from_f64(x),
        (Number::Integer(x), _, None) => mask(to, x),
        // i128's own conversion saturates and takes NaN to 0.
        (Number::Float(x), _, None) => mask(to, (x as i128).clamp(range(to).0, range(to).1)),
    }
}

fn same(ty: ElementType, a: u64, b: u64) -> bool {
    a == b || Format::of(ty).is_some_and(|f| f.value(a).is_nan() && f.value(b).is_nan())
}

/// Values at which something happens in some conversion or operation.
fn edges(ty: ElementType) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    if ty == Bool {
        return vec![0, 1];
    }
    if ty.bytes() == 1 {
        return (0..256).collect();
    }
    if let Some(format) = Format::of(ty) {
        // Powers of two, which are the limits of all types, ties of all formats, and neighbours.
        for n in [
            -1074, -150, -149, -126, -25, -24, -17, -16, -14, -10, -9, -6, -2, -1, 0, 1, 2, 3, 6, 7, 8, 14, 15, 16, 30,
            31, 32, 53, 62, 63, 64, 127, 128, 1023,
        ] {
            for factor in [
                1.0,
                1.0 + 1.0 / 8.0,
                1.0 + 1.0 / 16.0,
                1.0 + 3.0 / 256.0,
                1.0 + 5.0 / 2048.0,
                1.5,
                1.75,
                1.0 + 2_f64.powi(-24),
            ] {
                let x = format.from_f64(factor * 2_f64.powi(n));
                let unit = 1 << format.unused;
                all.extend([x.saturating_sub(unit), x, (x + unit).min(format.largest())]);
            }
        }
        all.extend([0, format.largest(), format.nan()]);
        all.extend(format.infinity());
        let negative: Vec<u64> = all.iter().map(|bits| bits | format.sign()).collect();
        all.extend(negative);
    } else {
        for n in 0..8 * ty.bytes() {
            for low in [0, 1, 3, 1 << (n / 2), (1 << (n / 2)) + 1] {
                let x = (1_i128 << n) + low;
                all.extend([x - 1, x, -x, -x - 1].map(|x| mask(ty, x)));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn every_type_converts_to_every_other() {
    for from in ElementType::ALL {
        let to: Vec<ElementType> = (ElementType::ALL.into_iter())
            .filter(|to| *to != from && *to != Bool && (from != Bool || to.is_integer()))
            .collect();
        let rows: Vec<Row> = to.iter().map(|to| (format!("to_{to}"), *to, format!("a[i] as {to}"))).collect();
        let a = edges(from);
        for (to, found) in to.iter().zip(run(&[("a", from)], &[&a], &rows)) {
            for (bits, found) in a.iter().zip(found) {
                let expected = cast(number(from, *bits), *to);
                assert!(same(*to, found, expected), "{from} {bits:#x} as {to}: {found:#x}, not {expected:#x}");
            }
        }
    }
}

/// As in Rust: a truth value is no float, and a number becomes a truth value by comparison.
#[test]
fn no_other_conversion_compiles() {
    for (from, to) in ElementType::ALL.into_iter().flat_map(|from| ElementType::ALL.map(|to| (from, to))) {
        let text = text(&[("a", from)], &[("y".to_owned(), to, format!("a[i] as {to}"))]);
        let findings = SourceFile::parse("table.rs", &text).expect("Rust").findings();
        let refused = from != to && (to == Bool || from == Bool && to.is_float());
        assert_eq!(findings.text.contains("TW0121"), refused, "{from} as {to}: {}", findings.text);
        assert_eq!(findings.errors, usize::from(refused), "{}", findings.text);
    }
}

/// All pairs of two lists.
fn pairs(a: &[u64]) -> (Vec<u64>, Vec<u64>) {
    a.iter().flat_map(|x| a.iter().map(move |y| (*x, *y))).unzip()
}

#[test]
fn integers_wrap_and_division_truncates() {
    for ty in ElementType::ALL.into_iter().filter(|ty| ty.is_integer()) {
        let (least, greatest) = range(ty);
        let few: Vec<u64> = [
            0,
            1,
            2,
            3,
            7,
            100,
            least,
            least + 1,
            greatest,
            greatest - 1,
            greatest / 2,
            -1,
            -2,
            -7,
            1 << 15,
            (1 << 31) - 1,
        ]
        .map(|x| mask(ty, x))
        .to_vec();
        let (a, b) = pairs(&few);
        type Host = fn(i128, i128) -> i128;
        let mut table: Vec<(&str, &str, Host)> = vec![
            ("sum", "a[i] + b[i]", |x, y| x + y),
            ("difference", "a[i] - b[i]", |x, y| x - y),
            ("product", "a[i] * b[i]", i128::wrapping_mul),
            ("quotient", "if b[i] != 0 { a[i] / b[i] } else { a[i] }", |x, y| x.checked_div(y).unwrap_or(x)),
            ("remainder", "if b[i] != 0 { a[i] % b[i] } else { a[i] }", |x, y| x.checked_rem(y).unwrap_or(x)),
            ("least", "min(a[i], b[i])", Ord::min),
            ("greatest", "max(a[i], b[i])", Ord::max),
            ("middle", "clamp(a[i], b[i], 5)", |x, y| x.max(y).min(5)),
            ("fifth", "pow(a[i], 5)", |x, _| (0..5).fold(1, |power: i128, _| power.wrapping_mul(x))),
            ("none", "pow(a[i], 0)", |_, _| 1),
        ];
        if ty.is_signed_integer() {
            table.push(("magnitude", "abs(a[i])", |x, _| x.abs()));
            table.push(("negative", "-a[i]", |x, _| -x));
        }
        let rows: Vec<Row> =
            table.iter().map(|(name, value, _)| ((*name).to_owned(), ty, (*value).to_owned())).collect();
        let found = run(&[("a", ty), ("b", ty)], &[&a, &b], &rows);
        for ((name, _, host), found) in table.iter().zip(found) {
            for n in 0..a.len() {
                let (Number::Integer(x), Number::Integer(y)) = (number(ty, a[n]), number(ty, b[n])) else {
                    unreachable!()
                };
                assert_eq!(found[n], mask(ty, host(x, y)), "{ty}: {name} of {x} and {y}");
            }
        }
    }
}

#[test]
fn minima_and_maxima_know_nan_and_the_sign_of_zero() {
    let order = |x: f64, y: f64| if x.total_cmp(&y).is_le() { (x, y) } else { (y, x) };
    for ty in [F64, F32, ElementType::F16, ElementType::Bf16] {
        let format = Format::of(ty).expect("a float");
        let few =
            [0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(|x| format.from_f64(x));
        let (a, b) = pairs(&few);
        let rows: Vec<Row> = ["min", "max", "min_num", "max_num"]
            .map(|name| (format!("y_{name}"), ty, format!("{name}(a[i], b[i])")))
            .to_vec();
        let found = run(&[("a", ty), ("b", ty)], &[&a, &b], &rows);
        for n in 0..a.len() {
            let (x, y) = (format.value(a[n]), format.value(b[n]));
            let (least, greatest) = order(x, y);
            let number = |both: f64| match (x.is_nan(), y.is_nan()) {
                (true, _) => y,
                (_, true) => x,
                _ => both,
            };
            let nan = |both: f64| if x.is_nan() || y.is_nan() { f64::NAN } else { both };
            let expected = [nan(least), nan(greatest), number(least), number(greatest)];
            for ((expected, found), (name, ..)) in expected.into_iter().zip(&found).zip(&rows) {
                let expected = format.from_f64(expected);
                assert!(same(ty, found[n], expected), "{ty}: {name}({x}, {y}) is {:#x}, not {expected:#x}", found[n]);
            }
        }
    }
}

/// Nothing is left out that holds of real numbers only: NaN, infinities and the sign of zero come through.
#[test]
fn no_algebra_of_real_numbers_is_used() {
    for ty in [F64, F32] {
        let format = Format::of(ty).expect("a float");
        let values = [0.0, -0.0, 1.0, -2.5, 1e-30, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let a: Vec<u64> = values.iter().map(|x| format.from_f64(*x)).collect();
        type Host = fn(f64) -> f64;
        let table: [(&str, Host); 8] = [
            ("a[i] * 0.0", |x| x * 0.0),
            ("a[i] - a[i]", |x| x - x),
            ("a[i] / a[i]", |x| x / x),
            ("a[i] + 0.0", |x| x + 0.0),
            ("0.0 - a[i]", |x| 0.0 - x),
            ("-a[i]", |x| -x),
            ("max(a[i], 1.0) * 0.0", |x| if x.is_nan() { x } else { x.max(1.0) * 0.0 }),
            ("max(1.0, a[i]) * 0.0", |x| if x.is_nan() { x } else { x.max(1.0) * 0.0 }),
        ];
        let rows: Vec<Row> =
            table.iter().enumerate().map(|(n, (value, _))| (format!("y{n}"), ty, (*value).to_owned())).collect();
        for ((value, host), found) in table.iter().zip(run(&[("a", ty)], &[&a], &rows)) {
            for (bits, found) in a.iter().zip(found) {
                let x = format.value(*bits);
                let expected = format.from_f64(host(x));
                assert!(same(ty, found, expected), "{ty}: {value} of {x} is {found:#x}, not {expected:#x}");
            }
        }
    }
}

/// Shifted by one place at a time: what is left of the low bits of the type.
fn shifted(ty: ElementType, x: i128, by: i128, left: bool) -> i128 {
    let width = i128::from(8 * ty.bytes());
    let places = if (0..width).contains(&by) { by } else { width };
    (0..places).fold(x, |x, _| if left { number_of(ty, mask(ty, x + x)) } else { x.div_euclid(2) })
}

fn number_of(ty: ElementType, bits: u64) -> i128 {
    match number(ty, bits) {
        Number::Integer(x) => x,
        Number::Float(_) => unreachable!("of integers"),
    }
}

#[test]
fn bits_and_shifts_are_those_of_the_type() {
    for ty in ElementType::ALL.into_iter().filter(|ty| ty.is_integer()) {
        let width = i128::from(8 * ty.bytes());
        // All pairs of bytes; of wider types each edge with each amount at which something happens.
        let (a, b) = if ty.bytes() == 1 {
            pairs(&edges(ty))
        } else {
            let (least, greatest) = range(ty);
            let amounts = [0, 1, 5, width - 1, width, width + 1, 31, 32, 33, 63, 64, 65, 256, 1 << 32, -1, -32];
            let amounts: Vec<u64> = (amounts.into_iter().filter(|n| (least..=greatest).contains(n)))
                .chain([least, greatest, greatest / 3])
                .map(|n| mask(ty, n))
                .collect();
            let values = edges(ty);
            values.iter().flat_map(|x| amounts.iter().map(move |y| (*x, *y))).unzip()
        };
        type Host = Box<dyn Fn(i128, i128) -> i128>;
        let mut table: Vec<(String, Host)> = vec![
            ("a[i] & b[i]".into(), Box::new(|x, y| x & y)),
            ("a[i] | b[i]".into(), Box::new(|x, y| x | y)),
            ("a[i] ^ b[i]".into(), Box::new(|x, y| x ^ y)),
            ("!a[i]".into(), Box::new(|x, _| -1 - x)),
            ("a[i] << b[i]".into(), Box::new(move |x, y| shifted(ty, x, y, true))),
            ("a[i] >> b[i]".into(), Box::new(move |x, y| shifted(ty, x, y, false))),
            // As in Rust: `*`, `+`, `<<`, `&`, `^`, `|`, each looser than the one before.
            (
                "a[i] | b[i] ^ a[i] & b[i] + a[i] << 1".into(),
                Box::new(move |x, y| x | (y ^ (x & shifted(ty, number_of(ty, mask(ty, y + x)), 1, true)))),
            ),
        ];
        let most = if ty.is_signed_integer() { (1 << (width - 1)) - 1 } else { (1 << width) - 1 };
        for by in [0, 1, width - 1, width, 32, 64].into_iter().filter(|by| *by <= most) {
            table.push((format!("a[i] << {by}"), Box::new(move |x, _| shifted(ty, x, by, true))));
            table.push((format!("a[i] >> {by}"), Box::new(move |x, _| shifted(ty, x, by, false))));
            table.push((
                format!("({by} << 1) & a[i] >> {by}"),
                Box::new(move |x, _| shifted(ty, by, 1, true) & shifted(ty, x, by, false)),
            ));
        }
        let rows: Vec<Row> =
            table.iter().enumerate().map(|(n, (value, _))| (format!("y{n}"), ty, value.clone())).collect();
        let found = run(&[("a", ty), ("b", ty)], &[&a, &b], &rows);
        for ((value, host), found) in table.iter().zip(found) {
            for n in 0..a.len() {
                let (x, y) = (number_of(ty, a[n]), number_of(ty, b[n]));
                assert_eq!(found[n], mask(ty, host(x, y)), "{ty}: {value} of {x} and {y}");
            }
        }
    }
}

#[test]
fn bits_of_truth_values() {
    let table = ["a[i] & b[i]", "a[i] | b[i]", "a[i] ^ b[i]", "(a[i] == b[i]) ^ true"];
    let rows: Vec<Row> = table.iter().enumerate().map(|(n, value)| (format!("y{n}"), Bool, (*value).into())).collect();
    let found = run(&[("a", Bool), ("b", Bool)], &[&[0, 0, 1, 1], &[0, 1, 0, 1]], &rows);
    assert_eq!(found, [[0, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 0], [0, 1, 1, 0]]);
}

/// The integer that a number of halves is rounded to, by integers alone: the sign is that of the number.
fn to_integer(x: f64, name: &str) -> f64 {
    if x.is_nan() || x.abs() >= 2_f64.powi(52) {
        return x;
    }
    let (whole, negative) = (x.abs() as u64, x.is_sign_negative());
    let rest = x.abs() - whole as f64;
    let up = match name {
        "floor" => negative && rest > 0.0,
        "ceil" => !negative && rest > 0.0,
        "round" => rest > 0.5 || rest == 0.5 && whole % 2 == 1,
        _ => false,
    };
    let size = (whole + u64::from(up)) as f64;
    if negative { -size } else { size }
}

#[test]
fn floats_become_integers() {
    for ty in [F64, F32, ElementType::F16, ElementType::Bf16] {
        let format = Format::of(ty).expect("a float");
        // Every value of the short types.
        let a: Vec<u64> = if ty.bytes() == 2 {
            (0..1 << 16).collect()
        } else {
            let halves = (-9..=9).map(|n| format.from_f64(f64::from(n) / 2.0));
            edges(ty).into_iter().chain(halves).collect()
        };
        let names = ["floor", "ceil", "trunc", "round"];
        let rows: Vec<Row> = names.map(|name| (format!("y_{name}"), ty, format!("{name}(a[i])"))).to_vec();
        for (name, found) in names.iter().zip(run(&[("a", ty)], &[&a], &rows)) {
            for (bits, found) in a.iter().zip(found) {
                let x = format.value(*bits);
                let expected = format.from_f64(to_integer(x, name));
                assert!(same(ty, found, expected), "{ty}: {name}({x}) is {found:#x}, not {expected:#x}");
            }
        }
    }
}

/// x² of what x is, rounded as often as the text says.
#[test]
fn powers_are_products_by_squaring() {
    for ty in [F64, F32, ElementType::F16, ElementType::Bf16] {
        let format = Format::of(ty).expect("a float");
        let a: Vec<u64> = if ty.bytes() == 2 { (0..1 << 16).collect() } else { edges(ty) };
        let times = |x: u64, y: u64| match ty {
            F64 => (format.value(x) * format.value(y)).to_bits(),
            _ => format.from_f64(f64::from(format.value(x) as f32 * format.value(y) as f32)),
        };
        let over = |x: u64| match ty {
            F64 => (1.0 / format.value(x)).to_bits(),
            _ => format.from_f64(f64::from(1.0 / format.value(x) as f32)),
        };
        type Host<'a> = Box<dyn Fn(u64) -> u64 + 'a>;
        let squared = move |x| times(x, x);
        let table: Vec<(i32, Host<'_>)> = vec![
            (0, Box::new(|_| format.from_f64(1.0))),
            (1, Box::new(|x| x)),
            (2, Box::new(squared)),
            (3, Box::new(|x| times(x, squared(x)))),
            (6, Box::new(|x| times(squared(x), squared(squared(x))))),
            (
                13,
                Box::new(|x| {
                    let fourth = squared(squared(x));
                    times(times(x, fourth), squared(fourth))
                }),
            ),
            (64, Box::new(|x| (0..6).fold(x, |x, _| squared(x)))),
            (-1, Box::new(over)),
            (-3, Box::new(|x| over(times(x, squared(x))))),
        ];
        let rows: Vec<Row> =
            table.iter().enumerate().map(|(n, (by, _))| (format!("y{n}"), ty, format!("pow(a[i], {by})"))).collect();
        for ((by, host), found) in table.iter().zip(run(&[("a", ty)], &[&a], &rows)) {
            for (bits, found) in a.iter().zip(found) {
                let expected = host(*bits);
                assert!(same(ty, found, expected), "{ty}: pow({bits:#x}, {by}) is {found:#x}, not {expected:#x}");
            }
        }
    }
}

/// The greatest bound has the last word where the bounds cross, and NaN is passed on from each of the three.
#[test]
fn clamping_knows_nan_and_crossed_bounds() {
    for ty in [F64, F32, ElementType::F16, ElementType::Bf16] {
        let format = Format::of(ty).expect("a float");
        let few = [0.0, -0.0, 1.0, -1.0, 2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(|x| format.from_f64(x));
        let mut columns: [Vec<u64>; 3] = Default::default();
        for at in 0..few.len().pow(3) {
            let places = [at / 64, at / 8 % 8, at % 8];
            columns.iter_mut().zip(places).for_each(|(column, place)| column.push(few[place]));
        }
        let rows = [("y".to_owned(), ty, "clamp(a[i], b[i], c[i])".to_owned())];
        let [a, b, c] = &columns;
        let found = run(&[("a", ty), ("b", ty), ("c", ty)], &[a, b, c], &rows);
        for n in 0..a.len() {
            let [x, low, high] = [a[n], b[n], c[n]].map(|bits| format.value(bits));
            let greater = if low.total_cmp(&x).is_gt() { low } else { x };
            let inside = if high.total_cmp(&greater).is_lt() { high } else { greater };
            let is_nan = x.is_nan() || low.is_nan() || high.is_nan();
            let expected = format.from_f64(if is_nan { f64::NAN } else { inside });
            assert!(same(ty, found[0][n], expected), "{ty}: clamp({x}, {low}, {high})");
        }
    }
}
