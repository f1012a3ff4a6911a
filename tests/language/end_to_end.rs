//! Kernels from source to result on the emulator: the constructs of the language against `reference()`, under several
//! seeds, with the 32-bit and with the 64-bit entry point, sanitizers on.
#![allow(deprecated, reason = "warnings of what is slow: these kernels are small, and show what is right")]

use tilewright::__private::{Arg, launch, reference};
use tilewright::kernel::KernelInfo;
use tilewright::{Device, Element, EmulatorOptions, Tensor, bf16, f16, schedule};
use tilewright_cli::source::SourceFile;

/// Devices that run the same kernels in different orders.
fn devices() -> Vec<Device> {
    let with_seed = |seed| {
        let mut options = EmulatorOptions::default();
        options.seed = seed;
        Device::emulator(options)
    };
    vec![with_seed(0), with_seed(1), with_seed(99)]
}

/// The kernel as it is, and with only its last entry point, which works for every size.
fn variants(kernel: &KernelInfo) -> Vec<KernelInfo> {
    let mut wide = kernel.clone();
    let last = kernel.entries.last().cloned().expect("a kernel has an entry point");
    wide.entries = vec![last].into();
    vec![kernel.clone(), wide]
}

/// Deterministic numbers between −limit and limit, as multiples of 1/8.
fn numbers(n: usize, seed: u64, limit: i32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 33) as i32 % (8 * limit)) as f32 / 8.0
    };
    (0..n).map(|_| next()).collect()
}

fn tensor<T: Element, const R: usize>(
    device: &Device,
    shape: [usize; R],
    seed: u64,
    from: impl Fn(f32) -> T,
) -> Tensor<T, R> {
    let data: Vec<T> = numbers(shape.iter().product(), seed, 50).into_iter().map(from).collect();
    Tensor::from_slice(device, &data, shape).expect("allocation")
}

/// Launches every variant and compares every output.
macro_rules! check {
    ($device:ident: $kernel:ident($($value:expr),*) -> $($out:ident: $ty:ty = $shape:expr),*) => {
        for info in variants($kernel::KERNEL) {
            $(let mut $out = Tensor::<$ty, _>::uninit(&$device, $shape).expect("allocation");)*
            let arguments = [$(Arg::input(&$value),)* $(Arg::output(&mut $out)),*];
            let expected = reference(&info, &arguments).unwrap_or_else(|e| panic!("{}: {e}", info.name));
            launch(&info, &arguments, $device.as_ref()).unwrap_or_else(|e| panic!("{}: {e}\n{}", info.name, info.ptx.text));
            drop(arguments);
            $(if let Err(e) = expected.check(stringify!($out), &$out) {
                panic!("{}: {e}\n{}\n{}", info.name, info.explanation, info.ptx.text);
            })*
        }
    };
}

schedule! {
    /// Register tiles: 4 × 4 accumulators a thread, vectors along the columns.
    kernel Product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])
    where N % 4 == 0
    {
        c[i, j] = sum(|k| a[i, k] * b[k, j]);
        schedule c {
            split i by 4 -> io, ii;
            split j by 4 -> jo, v;
            split io by 8 -> ib, it;
            split jo by 8 -> jb, jt;
            reorder ib, jb, it, jt, k, ii, v;
            bind ib, jb: grid;
            merge it, jt -> t;
            bind t: thread;
            vectorize v;
        }
    }

    /// The generic reduction with a state, and a tuple of outputs.
    kernel Welford(x: f32[M, N]) -> (mean: f32[M], m2: f32[M])
    where N >= 1
    {
        (mean, m2)[i] = fold(|j| init (0.0f32, 0.0f32),
            step (m, s) => (m + x[i, j], s + x[i, j] * x[i, j]),
            merge ((ma, sa), (mb, sb)) => (ma + mb, sa + sb));
        schedule mean { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }

    /// Narrow floats: each operation rounds once.
    kernel Halves(x: f16[N], y: bf16[N]) -> (p: f16[N], q: bf16[N], r: f32[N])
    {
        p[i] = x[i] * x[i] + 0.5 - x[i] / 3.0;
        q[i] = (y[i] * y[i]) + (x[i] as f32 as bf16);
        r[i] = exp(x[i] as f32 / 64.0) + sqrt(abs(y[i] as f32));
        schedule p { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule q { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule r { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }

    /// Integers wrap; division truncates; small types too.
    kernel Integers(x: i32[N], y: i8[N], z: u16[N]) -> (a: i32[N], b: i8[N], c: u16[N], d: i64[N])
    {
        a[i] = x[i] * x[i] * 65537 - x[i] / 7 + x[i] % 7;
        b[i] = y[i] * y[i] + y[i];
        c[i] = z[i] * z[i] - 3;
        d[i] = (x[i] as i64) * (x[i] as i64) * 1000003 + i as i64 * N as i64;
        launch threads(96);
        schedule a { split i by 96 -> g, t; bind g: grid; bind t: thread; }
        schedule b { split i by 96 -> g, t; bind g: grid; bind t: thread; }
        schedule c { split i by 96 -> g, t; bind g: grid; bind t: thread; }
        schedule d { split i by 96 -> g, t; bind g: grid; bind t: thread; }
    }

    /// A gather, an affine condition, digits of an index, an intermediate that is inlined.
    kernel Gather(table: f32[R, D], pos: i32[T], w: f32[4, 4]) -> (y: f32[T, D])
    where D <= 16
    {
        twice[t, d] = 2.0 * (table[pos[t], d] or -1.0);
        y[t, d] = twice[t, d] + (if d >= 1 && t < T - 1 { twice[t + 1, d - 1] } else { 0.25 }) + w[d / 4, d % 4];
        schedule y { split t by 8 -> tb, tt; reorder tb, tt, d; bind tb: grid; bind tt: thread; unroll d; }
    }

    /// In place, with a swizzle and a resize in the nest.
    kernel InPlace(inout x: f32[32, 32], s: f32) -> (n: f32[4])
    {
        x[i, j] = x[i, j] * s + 1.0;
        n[i] = s * 2.0 + i as f32;
        schedule x {
            split i by 8 -> io, ii;
            split j by 8 -> jo, ji;
            swizzle ii, ji by xor -> is, js;
            reorder io, jo, is, js;
            resize jo by (1, 2) -> jp;
            bind io: grid;
            bind jp: thread;
            unroll js by 3;
        }
        schedule n { bind i: thread; }
    }

    /// Argmax and friends, ordered sums, conditions over data, a triangular range.
    kernel Reduce(x: f32[M, N]) -> (top: u32[M], low: u32[M], big: bool[M], total: f32[M], part: f32[M, N])
    where N >= 1
    {
        top[i] = argmax(|j| x[i, j]);
        low[i] = argmin(|j| x[i, j]);
        big[i] = any(|j| x[i, j] > 45.0);
        total[i] = ordered sum(|j| x[i, j] / 3.0);
        part[i, j] = sum(|k in 0..=j| x[i, k]);
        schedule top { split i by 32 -> b, t; bind b: grid; bind t: thread; split j by 3 -> jo, ji; reorder ji, jo; }
        schedule low { split i by 32 -> b, t; bind b: grid; bind t: thread; unroll j by 4; }
        schedule big { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        schedule total { split i by 32 -> b, t; bind b: grid; bind t: thread; split j by 5 -> jo, ji; unroll ji; }
        schedule part { bind i: grid; split j by 32 -> jo, t; bind t: thread; }
    }

    /// Reads and reductions that are only safe on one side of a condition, next to a vector.
    kernel Guarded(x: f32[N], w: f32[5], z: f32[3, K]) -> (y: f32[N], s: f32[N])
    where N % 4 == 0
    {
        y[i] = (if i < 5 && 2 * i < N { w[i] } else { 1.0 }) + x[i] * (if x[i] > 0.0 { x[i] } else { -1.0 });
        s[i] = if i < 3 { sum(|k| z[i, k]) } else { x[i] };
        launch threads(32);
        schedule y { split i by 4 -> io, v; split io by 32 -> b, t; bind b: grid; bind t: thread; vectorize v; }
        schedule s { split i by 4 -> io, v; split io by 32 -> b, t; bind b: grid; bind t: thread; vectorize v; }
    }

    /// A fold whose first state depends on the element, with data loops inside the reduction.
    kernel FoldTile(x: f32[M, K], first: f32[M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[i] = fold(|k| init first[i] + i as f32, step s => s * 0.5 + x[i, k], merge (a, b) => a + b);
        schedule y { split i by 4 -> io, ii; split io by 16 -> b, t; reorder b, t, k, ii; bind b: grid; bind t: thread; }
    }

    /// Reads a tensor that may be empty for an output that is not.
    kernel First(w: f32[M], x: f32[N]) -> (y: f32[N])
    {
        y[i] = w[0] + x[i];
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }

    /// A comparison with a number from memory that may be read on one side only.
    kernel Lengths(x: f32[N], len: i32[3]) -> (y: f32[N])
    {
        y[i] = if i < 3 && 2 * i < N { if i < len[i] { x[i] } else { -1.0 } } else { 2.0 };
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }

    /// Intermediates that exist only where their readers' conditions hold, in shapes that are no boxes.
    kernel Narrowed(x: f32[N], m: f32[N, N]) -> (y: f32[N, N], b: bool[N], c: f32[N])
    {
        t[p, q] = x[p + q];
        y[i, j] = if i + j < N { t[i, j] } else { 0.5 };
        u[p, q] = m[q, p];
        b[i] = i >= 1 && x[i - 1] > 0.0 || i + 1 < N && x[i + 1] > x[i];
        c[i] = sum(|r in 0..=i| if i < 7 { u[i, r] } else { 1.0 });
        schedule y { bind i: grid; }
        schedule b { bind i: grid; }
        schedule c { bind i: grid; }
    }

    /// Facts that fix a size only because it is not 0.
    kernel Fixed(x: f32[M, N]) -> (y: f32[M])
    where N % 4 == 0, N <= 7
    {
        y[i] = sum(|j| x[i, j]);
    }

    /// A size that only a fact tells, and one that is another's double.
    kernel Told(x: f32[Q, K]) -> (y: f32[P])
    where P == 2 * Q, K == 6
    {
        y[p] = max(|k| x[p / 2, k]) + p as f32;
        schedule y { split p into 4 -> b, t; bind b: grid; split t by 16 -> r, u; bind u: thread; }
    }
}

#[test]
fn products_in_register_tiles() {
    for device in devices() {
        for (m, n, k) in [(1, 4, 1), (7, 12, 5), (33, 40, 9), (64, 64, 16)] {
            let (a, b) = (tensor(&device, [m, k], 1, |v| v), tensor(&device, [k, n], 2, |v| v));
            check!(device: Product(a, b) -> c: f32 = [m, n]);
        }
    }
}

#[test]
fn folds_with_a_tuple_of_results() {
    for device in devices() {
        for (m, n) in [(1, 1), (5, 7), (40, 33)] {
            let x = tensor(&device, [m, n], 3, |v| v);
            check!(device: Welford(x) -> mean: f32 = [m], m2: f32 = [m]);
        }
    }
}

#[test]
fn narrow_floats_round_once() {
    for device in devices() {
        for n in [1, 63, 200] {
            let (x, y) = (tensor(&device, [n], 4, f16::from_f32), tensor(&device, [n], 5, bf16::from_f32));
            check!(device: Halves(x, y) -> p: f16 = [n], q: bf16 = [n], r: f32 = [n]);
        }
    }
}

#[test]
fn integers_wrap() {
    for device in devices() {
        for n in [1, 95, 96, 97, 300] {
            let x = tensor(&device, [n], 6, |v| (v * 1e6) as i32);
            let y = tensor(&device, [n], 7, |v| (v * 8.0) as i32 as i8);
            let z = tensor(&device, [n], 8, |v| (v * 900.0) as i32 as u16);
            check!(device: Integers(x, y, z) -> a: i32 = [n], b: i8 = [n], c: u16 = [n], d: i64 = [n]);
        }
    }
}

#[test]
fn gathers_conditions_and_digits() {
    for device in devices() {
        for (r, d, t) in [(1, 1, 1), (5, 16, 9), (9, 3, 30)] {
            let table = tensor(&device, [r, d], 9, |v| v);
            let pos = tensor(&device, [t], 10, |v| (v / 4.0) as i32);
            let w = tensor(&device, [4, 4], 11, |v| v);
            check!(device: Gather(table, pos, w) -> y: f32 = [t, d]);
        }
    }
}

#[test]
fn reductions_keep_their_order() {
    for device in devices() {
        for (m, n) in [(1, 1), (3, 10), (40, 31)] {
            let x = tensor(&device, [m, n], 12, |v| v);
            check!(device: Reduce(x)
                -> top: u32 = [m], low: u32 = [m], big: bool = [m], total: f32 = [m], part: f32 = [m, n]);
        }
    }
}

#[test]
fn what_is_read_under_a_condition_stays_there() {
    for device in devices() {
        for (n, k) in [(4, 1), (8, 3), (200, 7)] {
            let (x, w) = (tensor(&device, [n], 17, |v| v), tensor(&device, [5], 18, |v| v));
            let z = tensor(&device, [3, k], 19, |v| v);
            check!(device: Guarded(x, w, z) -> y: f32 = [n], s: f32 = [n]);
        }
    }
}

#[test]
fn intermediates_exist_where_they_are_read() {
    for device in devices() {
        for n in [1, 2, 5, 9] {
            let (x, m) = (tensor(&device, [n], 31, |v| v), tensor(&device, [n, n], 32, |v| v));
            check!(device: Narrowed(x, m) -> y: f32 = [n, n], b: bool = [n], c: f32 = [n]);
        }
    }
}

#[test]
fn comparisons_with_memory_stay_where_they_are_safe() {
    for device in devices() {
        for n in [1, 3, 40] {
            let x = tensor(&device, [n], 25, |v| v);
            let len = Tensor::from_slice(&device, &[1, 0, 3], [3]).expect("allocation");
            check!(device: Lengths(x, len) -> y: f32 = [n]);
        }
    }
}

#[test]
fn folds_start_where_their_element_says() {
    for device in devices() {
        for (m, k) in [(4, 1), (12, 5), (100, 3)] {
            let (x, first) = (tensor(&device, [m, k], 20, |v| v), tensor(&device, [m], 21, |v| v));
            for info in variants(FoldTile::KERNEL) {
                let mut y = Tensor::<f32, 1>::uninit(&device, [m]).expect("allocation");
                launch(&info, &[Arg::input(&x), Arg::input(&first), Arg::output(&mut y)], device.as_ref())
                    .unwrap_or_else(|e| panic!("{e}\n{}", info.ptx.text));
                // This merge is not associative with the steps; what the kernel computes is the sequential order.
                let (xs, firsts) = (x.to_vec().expect("read"), first.to_vec().expect("read"));
                let right: Vec<f32> =
                    (0..m).map(|i| (0..k).fold(firsts[i] + i as f32, |s, j| s * 0.5 + xs[i * k + j])).collect();
                assert_eq!(y.to_vec().expect("read"), right);
            }
        }
    }
}

#[test]
fn sizes_that_facts_tell() {
    for device in devices() {
        for q in [1, 3, 20] {
            let x = tensor(&device, [q, 6], 13, |v| v);
            check!(device: Told(x) -> y: f32 = [2 * q]);
        }
    }
}

#[test]
fn in_place_updates_read_before_they_write() {
    for device in devices() {
        for info in variants(InPlace::KERNEL) {
            let old = numbers(1024, 14, 50);
            let mut x = Tensor::from_slice(&device, &old, [32, 32]).expect("allocation");
            let mut n = Tensor::<f32, 1>::zeros(&device, [4]).expect("allocation");
            let arguments = [Arg::output(&mut x), Arg::scalar(&3.0_f32), Arg::output(&mut n)];
            let expected = reference(&info, &arguments).expect("reference");
            launch(&info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}\n{}", info.ptx.text));
            drop(arguments);
            let right: Vec<f32> = old.iter().map(|v| v * 3.0 + 1.0).collect();
            assert_eq!(x.to_vec().expect("read"), right);
            expected.check("n", &n).expect("n");
        }
    }
}

#[test]
fn empty_tensors_launch_nothing_and_empty_reductions_write_their_identity() {
    for device in devices() {
        for (m, k) in [(3, 0), (0, 5)] {
            let (a, b) = (tensor(&device, [m, k], 15, |v| v), tensor(&device, [k, 8], 16, |v| v));
            check!(device: Product(a, b) -> c: f32 = [m, 8]);
        }
    }
}

#[test]
fn an_empty_input_of_a_full_output_is_refused_where_it_is_read() {
    for device in devices() {
        let (four, none) = (tensor(&device, [3, 4], 24, |v| v), tensor(&device, [3, 0], 24, |v| v));
        // N is 4, or 0.
        check!(device: Fixed(four) -> y: f32 = [3]);
        check!(device: Fixed(none) -> y: f32 = [3]);
        let (none, one) = (tensor(&device, [0], 22, |v| v), tensor(&device, [1], 22, |v| v));
        let x = tensor(&device, [40], 23, |v| v);
        check!(device: First(one, x) -> y: f32 = [40]);
        let mut y = Tensor::<f32, 1>::uninit(&device, [40]).expect("allocation");
        let refusal = First { w: &none, x: &x, y: &mut y }.launch(&device).expect_err("w[0] does not exist");
        assert!(refusal.to_string().contains("M >= 1"), "{refusal}");
        // Nothing is read for an empty output.
        let (x, mut y) = (tensor(&device, [0], 23, |v| v), tensor(&device, [0], 23, |v| v));
        First { w: &none, x: &x, y: &mut y }.launch(&device).expect("nothing to do");
    }
}

/// A split by several factors is what it stands for, to the last instruction.
#[test]
fn several_factors_are_several_splits() {
    let compiled = |ops: &str, facts: &str| {
        let text = format!(
            "tilewright::schedule! {{ kernel Levels(x: f32[M]) -> (y: f32[M]) {facts} {{ y[i] = 2.0 * x[i];
                launch threads(32); schedule y {{ {ops} bind a: grid; bind c: thread; }} }} }}"
        );
        let source = SourceFile::parse("levels.rs", &text).expect("Rust");
        assert_eq!(source.findings().errors, 0, "{}\n{text}", source.findings().text);
        source.kernels().next().and_then(|found| found.kernel.info.clone()).expect("a kernel").ptx.text.to_string()
    };
    // With holes at one level, at several, and without.
    for facts in ["", "where M % 96 == 0"] {
        for (several, single) in [
            (
                "split i by 96, 32, 4 -> a, b, c, d;",
                "split i by 96 -> a, r; split r by 32 -> b, s; split s by 4 -> c, d;",
            ),
            (
                "split i by 100, 30, 7 -> a, b, c, d;",
                "split i by 100 -> a, r; split r by 30 -> b, s; split s by 7 -> c, d;",
            ),
            ("split i into 3, 8 -> b, c, a;", "split i into 3 -> b, r; split r into 8 -> c, a;"),
        ] {
            assert_eq!(compiled(several, facts), compiled(single, facts), "{several} {facts}");
        }
    }
}
