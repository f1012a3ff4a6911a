//! A kernel for each corner of the language, through the public interface alone: launched on the emulator at several
//! sizes, 0 and 1 and odd ones among them, and compared with `reference()`.
#![allow(deprecated, reason = "warnings of what is slow: these kernels are small, and show what is right")]

use tilewright::{Device, Element, EmulatorOptions, Error, Tensor, bf16, f16, schedule};

schedule! {
    /// Casts: one narrow integer to everything.
    kernel Casts(x: i8[N]) -> (a: f16[N], b: bf16[N], c: f64[N], d: u32[N], e: i64[N], f: bool[N], g: u8[N], h: i16[N], k: u64[N], l: u16[N], m: f32[N])
    {
        a[i] = x[i] as f16;
        b[i] = x[i] as bf16 / 3.0;
        c[i] = x[i] as f64 / 3.0;
        d[i] = x[i] as u32;
        e[i] = x[i] as i64 * 5_000_000_000;
        f[i] = x[i] > 0 && x[i] % 2 != 0 || x[i] == -128;
        g[i] = x[i] as u8;
        h[i] = x[i] as i16 * 300;
        k[i] = x[i] as u64;
        l[i] = (x[i] as f32 * 1000.0) as u16;
        m[i] = (f[i]) as i32 as f32;
        launch threads(64);
        schedule a { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule b { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule c { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule d { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule e { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule f { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule g { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule h { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule k { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule l { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule m { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }

    /// Prefix sums, ordered, by a triangular range.
    kernel Prefix(x: f32[N]) -> (p: f32[N], q: f32[N])
    {
        p[i] = sum(|j in 0..=i| x[j]);
        q[i] = ordered sum(|j in i..N| x[j] * x[j]);
        schedule p { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        schedule q { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }

    /// Welford.
    kernel Welford(x: f32[M, N]) -> (mean: f32[M], m2: f32[M])
    {
        (mean, m2, n)[i] = fold(|j| init (0.0, 0.0, 0.0f32),
            step (mu, s, c) => (mu + (x[i, j] - mu) / (c + 1.0), s + (x[i, j] - mu) * (x[i, j] - (mu + (x[i, j] - mu) / (c + 1.0))), c + 1.0),
            merge ((a, b, c), (d, e, f)) => (
                if c + f == 0.0 { 0.0 } else { (a * c + d * f) / (c + f) },
                if c + f == 0.0 { 0.0 } else { b + e + (d - a) * (d - a) * c * f / (c + f) },
                c + f));
        launch threads(32);
        schedule mean { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }

    /// argmax/argmin with facts, on 3 axes tensor with merge.
    kernel Arg(x: f16[A, B, C]) -> (hi: u32[A, B], lo: u32[A, B], any_neg: bool[A, B], all_pos: bool[A, B], big: f16[A, B], sm: f16[A, B], pr: f32[A, B])
    where C >= 1
    {
        hi[a, b] = argmax(|c| x[a, b, c]);
        lo[a, b] = argmin(|c| x[a, b, c]);
        any_neg[a, b] = any(|c| x[a, b, c] < 0.0);
        all_pos[a, b] = all(|c| !(x[a, b, c] <= 0.0));
        big[a, b] = max(|c| x[a, b, c]);
        sm[a, b] = min(|c| x[a, b, c]);
        pr[a, b] = prod(|c| x[a, b, c] as f32 / 4.0);
        launch threads(64);
        schedule hi { merge a, b -> r; split r by 64 -> g, t; bind g: grid; bind t: thread; }
        schedule lo { merge a, b -> r; split r by 64 -> g, t; bind g: grid; bind t: thread; split c by 3 -> co, ci; unroll ci; }
        schedule any_neg { merge a, b -> r; split r by 64 -> g, t; bind g: grid; bind t: thread; }
        schedule all_pos { merge a, b -> r; split r by 64 -> g, t; bind g: grid; bind t: thread; }
        schedule big { merge a, b -> r; split r by 64 -> g, t; bind g: grid; bind t: thread; }
        schedule sm { merge a, b -> r; split r by 64 -> g, t; bind g: grid; bind t: thread; unroll c by 4; }
        schedule pr { merge a, b -> r; split r by 64 -> g, t; bind g: grid; bind t: thread; }
    }

    /// Embedding with a weight, several index types.
    kernel Embed(table: bf16[V, D], tok: i64[T], pos: u8[T], pt: f32[P, D]) -> (y: bf16[T, D])
    where D % 8 == 0
    {
        y[t, d] = ((table[tok[t], d] or 0.0) as f32 + (pt[pos[t], d] or 1.0)) as bf16;
        launch threads(128);
        schedule y {
            split d by 8 -> dd, v;
            merge t, dd -> r;
            split r by 128 -> g, th;
            bind g: grid; bind th: thread; vectorize v;
        }
    }

    /// Pixel shuffle, quasi-affine both ways
    kernel Shuffle(x: f32[C * 4, H, W], z: i32[4 * H]) -> (y: f32[C, 2 * H, 2 * W], w: i32[H])
    {
        y[c, i, j] = x[c * 4 + i % 2 * 2 + j % 2, i / 2, j / 2];
        w[h] = z[4 * h + 3] - z[h / 2 + h % 2];
        schedule y {
            split j by 16 -> jo, ji; split i by 8 -> io, ii;
            reorder c, io, jo, ii, ji; bind c, io, jo: grid; bind ii: warp; bind ji: thread;
        }
        schedule w { split h by 128 -> g, t; bind g: grid; bind t: thread; }
    }

    /// in place with a scalar in memory.
    kernel AddS(s: f32[], inout x: f32[M, N; ld, 1], k: i32) -> ()
    where ld >= N
    {
        x[i, j] = if j % 2 == 0 { x[i, j] + s[] } else if j > i { -x[i, j] * k as f32 } else { x[i, j] };
        launch threads(96);
        schedule x { split j by 96 -> jo, t; reorder i, jo, t; bind i, jo: grid; bind t: thread; }
    }

    /// Doubles, strided in and out, with a batch
    #[allow(TW0690)]
    kernel Dbl(x: f64[B, M, N; sb, sm, 1], w: f64[3]) -> (y: f64[B, M, N; tb, tm, 2], s: f64[B])
    where N >= 1, M <= 100
    {
        y[b, m, n] = w[0] * (x[b, m, n - 1] or 0.0) + w[1] * x[b, m, n] + w[2] * (x[b, m, n + 1] or 0.0);
        s[b] = sum(|m, n| sqrt(abs(x[b, m, n])));
        schedule y { split n by 32 -> no, t; reorder b, m, no, t; bind b: grid; bind no: grid; bind t: thread; }
        launch threads(96);
        schedule s { split b by 96 -> g, t; bind g: grid; bind t: thread; }
    }

    /// half dot, int dot
    kernel Dots(a: f16[M, K], b: f16[N, K], p: i8[M, K], q: i8[N, K], u: f64[M, K], v: f64[N, K]) -> (c: f32[M, N], d: i32[M, N], e: f64[M, N], h: f16[M, N])
    where K <= 1000, K % 2 == 0
    {
        c[m, n] = dot(|k| a[m, k] * b[n, k]);
        d[m, n] = dot(|k| p[m, k] * q[n, k]);
        e[m, n] = dot(|k| u[m, k] * v[n, k]);
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        h[m, n] = (acc[m, n] * 0.5) as f16;
        inline acc;
        launch threads(64);
        schedule c { split m by 2 -> mo, mi; split n by 8 -> no, ni; split mo by 8 -> mb, mt; split no by 8 -> nb, nt; reorder mb, nb, mt, nt, k, mi, ni; merge mt, nt -> t; bind mb, nb: grid; bind t: thread; unroll mi; unroll ni by 4; }
        schedule d { split m by 8 -> mb, mt; split n by 8 -> nb, nt; reorder mb, nb, mt, nt, k; bind mb, nb: grid; merge mt, nt -> t; bind t: thread; unroll k by 3; }
        schedule e { split m by 8 -> mb, mt; split n by 8 -> nb, nt; reorder mb, nb, mt, nt, k; bind mb, nb: grid; bind mt, nt: thread; }
        schedule h { split m by 8 -> mb, mt; split n into 2 -> nw, n2; split n2 by 8 -> nb, nt; reorder mb, nb, nw, mt, nt; bind mb, nb: grid; merge mt, nt -> t; bind t: thread; }
    }

    /// math on floats
    kernel Math(x: f32[N], h: f16[N], z: bf16[N], d: f64[N]) -> (a: f32[N], b: f16[N], c: bf16[N], e: f64[N], f: f32[N])
    {
        a[i] = exp(x[i] / 16.0) + log(abs(x[i]) + 1.0) + sqrt(abs(x[i])) + rsqrt(abs(x[i]) + 0.5) + tanh(x[i]) + erf(x[i]) + sin(x[i]) * cos(x[i]) + floor(x[i]);
        b[i] = min(tanh(h[i]), 0.5) + max_num(h[i], nan) * fma(h[i], 2.0, 1.0) - rsqrt(abs(h[i]));
        c[i] = if z[i] > 0.0 { approx::log(z[i]) } else if z[i] == 0.0 { -inf } else { approx::tanh(z[i]) };
        e[i] = fma(d[i], d[i], -1.0) / sqrt(abs(d[i]) + 1.0) + floor(d[i]) + max(d[i], 0.1) - rsqrt(abs(d[i]));
        f[i] = approx::exp(x[i]) + approx::sin(x[i]) + approx::cos(x[i]) + approx::rsqrt(abs(x[i])) + approx::sqrt(abs(x[i])) + min_num(x[i], inf);
        schedule a { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule b { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule c { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule e { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule f { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }

    /// resize, swizzle, into, unroll by, on static shapes
    #[allow(TW0690)]
    kernel Ops(x: u8[40, 64]) -> (y: u8[64, 40], z: u16[40, 64], w: i64[32, 32])
    {
        y[j, i] = x[i, j] * 3 + 7;
        z[i, j] = (x[i, j] as u16) * 260 / 7 % 1000;
        w[i, j] = x[i, (j + i) % 64] as i64 * -1 - (i as i64 - j as i64);
        launch threads(64);
        schedule y { split j into 3 -> a, b; resize i by (3, 5) -> p; split p into 5 -> pa, pb; bind a: grid; bind pb: thread; unroll pa by 2; reorder a, b, pa, pb; }
        schedule z { split i by 8 -> io, ii; split j by 8 -> jo, ji; swizzle ii, ji by xor -> is, js; reorder io, jo, js, is; bind io: grid; bind js, is: thread; unroll jo by 5; }
        schedule w { split i by 2 -> ig, iw; bind ig: grid; bind iw: warp
; bind j: thread; }
    }

    /// boolean input, mixed widths
    kernel Bools(m: bool[N], a: i16[N], b: u16[N], c: u64[N]) -> (x: bool[N], y: i16[N], z: u64[N], cnt: i32[1], first: u32[1])
    where N >= 2
    {
        x[i] = m[i] != (a[i] > b[i] as i16) || !m[i];
        y[i] = if m[i] { a[i] } else { abs(a[i]) };
        z[i] = c[i] % 1000 + max(c[i], 3) / 7 + b[i] as u64;
        cnt[o] = sum(|i| if m[i] && !x[i] { 1i32 } else { 0 });
        first[o] = argmax(|i| a[i]);
        schedule x { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule z { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule cnt { bind o: thread; }
        schedule first { bind o: thread; }
    }

    /// valid convolution with strides, output size by expression
    kernel Conv(x: f32[C, H, W], f: f32[O, C, 3, 3]) -> (y: f32[O, H - 2, W - 2])
    where H >= 3, W >= 3
    {
        y[o, h, w] = sum(|c, r, s| x[c, h + r, w + s] * f[o, c, r, s]);
        launch threads(128);
        schedule y { split w by 32 -> wo, t; split h by 4 -> ho, wp; reorder o, ho, wo, wp, t; bind o, ho, wo: grid; bind wp: warp; bind t: thread; }
    }

    /// dimension equations
    kernel Decimate(x: f32[P], w: f32[5]) -> (y: f32[Q])
    where P == 3 * Q + 2
    {
        y[i] = sum(|k| x[3 * i + k] * w[k]);
        schedule y { split i by 128 -> g, t; bind g: grid; bind t: thread; }
    }

    /// storage types
    kernel Store(c: f32[N], d: f32[N]) -> (x: f32[N], y: f16[N])
    where N != 3
    {
        x[i] = c[i] * (d[i] as f16 as f32);
        y[i] = c[i] as f16;
        schedule x { split i by 128 -> g, t; bind g: grid; bind t: thread; }
        schedule y { split i by 128 -> g, t; bind g: grid; bind t: thread; }
    }

    /// pairwise distance with nested reductions, softmax row in one thread via inlines
    #[allow(TW0790)]
    kernel Softmax(x: f32[M, N]) -> (y: f32[M, N], top: f32[M])
    {
        top[i] = max(|j| x[i, j]);
        e[i, j] = exp(x[i, j] - top[i]);
        s[i] = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i];
        inline s; inline e;
        schedule y { split i by 8 -> io, ii; split j by 8 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid; bind ii, ji: thread; }
        schedule top { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        launch threads(64);
    }

    /// iota and constants, no inputs but scalars; names that are words.
    kernel Iota(stage: f32, launch: bool) -> (split: f32[N], bind: bool[N, 4])
    {
        split[i] = stage * i as f32 + if launch { 1.0 } else { -inf } + N as f32;
        bind[i, j] = (launch && i % 4 == j) || (i * 2 >= N - j && j < 2);
        launch threads(32);
        schedule split { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        schedule bind { split i by 8 -> b, t; bind b: grid; merge t, j -> q; bind q: thread; }
    }

    /// Vectors of small and large types
    kernel Vec8(x: u8[N], h: f16[N], d: f64[N]) -> (y: u8[N], z: f16[N], w: f64[N])
    where N % 16 == 0, N >= 16
    {
        y[i] = 255 - x[i];
        z[i] = h[i] + h[N - 1 - i];
        w[i] = -d[i];
        schedule y { split i by 16 -> a, v; split a by 128 -> b, t; bind b: grid; bind t: thread; vectorize v; }
        schedule z { split i by 8 -> a, v; split a by 128 -> b, t; bind b: grid; bind t: thread; vectorize v; }
        schedule w { split i by 2 -> a, v; split a by 128 -> b, t; bind b: grid; bind t: thread; vectorize v; }
    }
}

/// Values with every special one among them.
fn wild(x: u64) -> f32 {
    match x % 37 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => -0.0,
        3 => 0.0,
        _ => tame(x),
    }
}

/// Multiples of 1/16 around 0.
fn tame(x: u64) -> f32 {
    ((x >> 8) % 2000) as f32 / 16.0 - 60.0
}

/// A tensor of what `of` makes of pseudo-random numbers.
fn data<T: Element, const R: usize>(device: &Device, shape: [usize; R], of: impl Fn(u64) -> T) -> Tensor<T, R> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        of(state >> 20)
    };
    let elements: Vec<T> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_slice(device, &elements, shape).expect("allocation")
}

/// Runs a kernel and compares every output.
macro_rules! agree {
    ($device:expr, $kernel:ident { $($name:ident: $value:expr),* } -> { $($out:ident: $ty:ty = $shape:expr),* }) => {{
        $(let mut $out = Tensor::<$ty, _>::uninit($device, $shape).expect("allocation");)*
        let expected = $kernel { $($name: $value,)* $($out: &mut $out),* }.reference().expect("a reference");
        $kernel { $($name: $value,)* $($out: &mut $out),* }.launch($device).expect("a launch");
        $(expected.check(stringify!($out), &$out).unwrap_or_else(|e| panic!("{e}"));)*
    }};
}

const SIZES: [usize; 7] = [0, 1, 2, 63, 64, 65, 300];

fn devices() -> [Device; 2] {
    [0, 7].map(|seed| Device::emulator(EmulatorOptions::default().seed(seed)))
}

#[test]
fn types_and_casts() {
    for (device, n) in devices().iter().flat_map(|d| SIZES.map(|n| (d, n))) {
        let x = data(device, [n], |x| x as i8);
        agree!(device, Casts { x: &x } -> {
            a: f16 = [n], b: bf16 = [n], c: f64 = [n], d: u32 = [n], e: i64 = [n], f: bool = [n], g: u8 = [n], h: i16 = [n],
            k: u64 = [n], l: u16 = [n], m: f32 = [n]
        });
        let (c, d) = (data(device, [n], wild), data(device, [n], wild));
        if n != 3 {
            agree!(device, Store { c: &c, d: &d } -> { x: f32 = [n], y: f16 = [n] });
        }
        if n >= 2 {
            let (m, a) = (data(device, [n], |x| x % 3 == 0), data(device, [n], |x| x as i16));
            let (b, c) = (data(device, [n], |x| x as u16), data(device, [n], |x| x << 20));
            agree!(device, Bools { m: &m, a: &a, b: &b, c: &c } -> {
                x: bool = [n], y: i16 = [n], z: u64 = [n], cnt: i32 = [1], first: u32 = [1]
            });
        }
        agree!(device, Iota { stage: 2.5, launch: n % 2 == 0 } -> { split: f32 = [n], bind: bool = [n, 4] });
    }
}

#[test]
fn functions() {
    for (device, n) in devices().iter().flat_map(|d| SIZES.map(|n| (d, n))) {
        let (x, h) = (data(device, [n], wild), data(device, [n], |x| f16::from_f32(wild(x))));
        let (z, d) = (data(device, [n], |x| bf16::from_f32(wild(x))), data(device, [n], |x| f64::from(wild(x)) / 3.0));
        agree!(device, Math { x: &x, h: &h, z: &z, d: &d } -> {
            a: f32 = [n], b: f16 = [n], c: bf16 = [n], e: f64 = [n], f: f32 = [n]
        });
    }
}

#[test]
fn reductions() {
    for (device, n) in devices().iter().flat_map(|d| SIZES.map(|n| (d, n))) {
        for values in [tame, wild] {
            let x = data(device, [n], values);
            agree!(device, Prefix { x: &x } -> { p: f32 = [n], q: f32 = [n] });
        }
        let x = data(device, [n, 5], tame);
        agree!(device, Welford { x: &x } -> { mean: f32 = [n], m2: f32 = [n] });
        let x = data(device, [3, n], wild);
        agree!(device, Welford { x: &x } -> { mean: f32 = [3], m2: f32 = [3] });
        let x = data(device, [n, 3, 4], |x| f16::from_f32(wild(x)));
        agree!(device, Arg { x: &x } -> {
            hi: u32 = [n, 3], lo: u32 = [n, 3], any_neg: bool = [n, 3], all_pos: bool = [n, 3], big: f16 = [n, 3],
            sm: f16 = [n, 3], pr: f32 = [n, 3]
        });
        for m in [0, 1, 7] {
            let x = data(device, [m, n.min(65)], tame);
            agree!(device, Softmax { x: &x } -> { y: f32 = [m, n.min(65)], top: f32 = [m] });
        }
        for (m, k) in [(0, 2), (1, 0), (5, 6), (33, 40)] {
            let n = n.min(65);
            let (a, b) =
                (data(device, [m, k], |x| f16::from_f32(tame(x))), data(device, [n, k], |x| f16::from_f32(tame(x))));
            let (p, q) = (data(device, [m, k], |x| x as i8), data(device, [n, k], |x| x as i8));
            let (u, v) = (data(device, [m, k], |x| f64::from(tame(x))), data(device, [n, k], |x| f64::from(tame(x))));
            agree!(device, Dots { a: &a, b: &b, p: &p, q: &q, u: &u, v: &v } -> {
                c: f32 = [m, n], d: i32 = [m, n], e: f64 = [m, n], h: f16 = [m, n]
            });
        }
    }
}

#[test]
fn reads() {
    for (device, n) in devices().iter().flat_map(|d| SIZES.map(|n| (d, n))) {
        for (v, d) in [(0, 8), (1, 0), (50, 24)] {
            let table = data(device, [v, d], |x| bf16::from_f32(wild(x)));
            let tok = data(device, [n], |x| if x % 9 == 0 { i64::MAX } else { (x % 60) as i64 - 5 });
            let (pos, pt) = (data(device, [n], |x| x as u8), data(device, [100, d], tame));
            agree!(device, Embed { table: &table, tok: &tok, pos: &pos, pt: &pt } -> { y: bf16 = [n, d] });
        }
        for (c, h) in [(0, 3), (1, 5), (2, 1), (3, 0)] {
            let (x, z) = (data(device, [c * 4, h, n], wild), data(device, [4 * h], |x| x as i32));
            agree!(device, Shuffle { x: &x, z: &z } -> { y: f32 = [c, 2 * h, 2 * n], w: i32 = [h] });
        }
        if n >= 3 {
            for (h, c) in [(3, 1), (4, 0), (9, 2)] {
                let (x, f) = (data(device, [c, h, n], tame), data(device, [2, c, 3, 3], tame));
                agree!(device, Conv { x: &x, f: &f } -> { y: f32 = [2, h - 2, n - 2] });
            }
        }
        let (x, w) = (data(device, [3 * n + 2], tame), data(device, [5], tame));
        agree!(device, Decimate { x: &x, w: &w } -> { y: f32 = [n] });
    }
}

#[test]
fn ops_and_vectors() {
    for device in &devices() {
        let x = data(device, [40, 64], |x| x as u8);
        agree!(device, Ops { x: &x } -> { y: u8 = [64, 40], z: u16 = [40, 64], w: i64 = [32, 32] });
        for n in [16, 48, 4096] {
            let (x, h) = (data(device, [n], |x| x as u8), data(device, [n], |x| f16::from_f32(wild(x))));
            let d = data(device, [n], |x| f64::from(wild(x)));
            agree!(device, Vec8 { x: &x, h: &h, d: &d } -> { y: u8 = [n], z: f16 = [n], w: f64 = [n] });
        }
    }
}

/// Rows with gaps, and every second element of them.
#[test]
fn strided_views() {
    for (device, n) in devices().iter().flat_map(|d| SIZES.map(|n| (d, n))) {
        for (m, ld) in [(0, n), (1, n), (3, n + 1), (5, n * 2)] {
            let s = Tensor::from_slice(device, &[2.5_f32], []).unwrap();
            let mut whole = data(device, [m, ld], wild);
            let before = whole.to_vec().unwrap();
            {
                let mut x = whole.view_mut().slice(1, 0..n).unwrap();
                let expected = AddS { s: &s, x: &mut x, k: -3 }.reference().unwrap();
                AddS { s: &s, x: &mut x, k: -3 }.launch(device).unwrap();
                expected.check("x", &x).unwrap();
            }
            let after = whole.to_vec().unwrap();
            let mut gaps = before.iter().zip(&after).enumerate().filter(|(i, _)| i % ld.max(1) >= n);
            assert!(gaps.all(|(_, (a, b))| a.to_bits() == b.to_bits()), "a gap changed");
        }
        for b in [0, 1, 3] {
            if n == 0 {
                continue;
            }
            let whole = data(device, [b, 4, n + 3], |x| f64::from(tame(x)));
            let x = whole.slice(2, 1..n + 1).unwrap();
            let w = data(device, [3], |x| f64::from(tame(x)));
            let mut target = data(device, [b, 4, 2 * n + 1], |x| f64::from(tame(x)));
            let before = target.to_vec().unwrap();
            let mut s = Tensor::<f64, 1>::uninit(device, [b]).unwrap();
            {
                let mut y = target.view_mut().step(2, 2).unwrap().slice(2, 0..n).unwrap();
                let expected = Dbl { x: &x, w: &w, y: &mut y, s: &mut s }.reference().unwrap();
                Dbl { x: &x, w: &w, y: &mut y, s: &mut s }.launch(device).unwrap();
                expected.check("y", &y).unwrap();
                expected.check("s", &s).unwrap();
            }
            let after = target.to_vec().unwrap();
            let mut odd = before.iter().zip(&after).enumerate().filter(|(i, _)| i % (2 * n + 1) % 2 == 1);
            assert!(odd.all(|(_, (a, b))| a.to_bits() == b.to_bits()), "an element between two others changed");
        }
    }
}

#[test]
fn tensors_of_another_device_are_told_apart() {
    let [one, other] = devices();
    let (x, mut y) = (data(&one, [3, 3], tame), Tensor::<f32, 2>::zeros(&one, [3, 3]).unwrap());
    let mut top = Tensor::<f32, 1>::zeros(&one, [3]).unwrap();
    let refused = Softmax { x: &x, y: &mut y, top: &mut top }.launch(&other).unwrap_err();
    assert!(matches!(&refused, Error::Refused(_)) && refused.to_string().contains("another emulator"), "{refused}");
}

schedule! {
    /// A range that starts below 0, indexed by what has no sign.
    kernel Unsigned(a: u64, inout z: f32[M])
    {
        t[i in -3..M - 3] = 1.0f32;
        inline t;
        z[i] = t[a] or 1.5;
        schedule z { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }
}

#[test]
fn an_unsigned_index_is_never_negative() {
    for device in &devices() {
        for (a, expected) in [(0, 1.0), (60, 1.0), (61, 1.5), (1 << 63, 1.5), (u64::MAX - 1, 1.5), (u64::MAX, 1.5)] {
            let mut z = Tensor::zeros(device, [64]).unwrap();
            Unsigned { a, z: &mut z }.launch(device).unwrap();
            assert_eq!(z.to_vec().unwrap(), vec![expected; 64], "a = {a}");
        }
    }
}

schedule! {
    /// Two outputs whose thread axes never have an element, beside one that has.
    kernel NoThreads(x: f32[N, N, N - 1], w: f32[M]) -> (a: f32[N, 4, N - 1], b: f32[M])
    where N == 1
    {
        a[i, j, k] = x[i, j, k] or 0.25;
        b[i] = 2.0 * w[i];
        schedule a { bind i: grid; bind j: thread; bind k: thread; }
        schedule b { split i by 4 -> o, t; bind o: grid; bind t: thread; }
    }
}

#[test]
fn an_axis_of_threads_may_have_no_elements() {
    for device in &devices() {
        let x = Tensor::<f32, 3>::zeros(device, [1, 1, 0]).unwrap();
        let w = Tensor::from_slice(device, &[1.0, 2.0, 3.0, 4.0, 5.0], [5]).unwrap();
        let mut a = Tensor::<f32, 3>::zeros(device, [1, 4, 0]).unwrap();
        let mut b = Tensor::zeros(device, [5]).unwrap();
        NoThreads { x: &x, w: &w, a: &mut a, b: &mut b }.launch(device).unwrap();
        assert_eq!(b.to_vec().unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0]);
    }
}
