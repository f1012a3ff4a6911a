//! Staged copies that need no tensor map, and those of so many tiles that loops count them: launched on the emulator,
//! and compared with `reference()`.
#![allow(deprecated, reason = "warnings of what is slow: these kernels are small, and show what is right")]

use crate::support::{data, devices};
use tilewright::kernel::info::{Argument, KernelInfo};
use tilewright::{Tensor, schedule};

schedule! {
    /// One run each way for a block, longer than a box of a tensor map can be.
    pub kernel Line(x: f32[N]) -> (y: f32[N])
    where N % 1024 == 0
    {
        y[i] = x[i] + 1.0;
        launch threads(128);
        schedule y { split i by 1024 -> o, r; split r by 128 -> q, t; bind o: grid; bind t: thread; }
        stage xs[i] = x in shared at y.o via tma { l2 evict_first; }
        stage ys[i] = y in shared at y.o via tma { box i by 64 -> c, b; l2 evict_last; }
    }

    /// Rings of runs: loads ahead, stores after, and whole rows as one run.
    pub kernel Rings(x: f32[M, 64], w: f32[64]) -> (y: f32[M, 64])
    where M % 8 == 0
    {
        y[i, j] = x[i, j] * w[63 - j];
        launch threads(64);
        schedule y {
            split i by 2 -> ip, ii;
            split ip by 4 -> io, ir;
            reorder io, ir, ii, j;
            bind io: grid;
            bind j: thread;
        }
        stage xs[i, j] = x in shared at y.ir ring(3) via tma { }
        stage ws[j] = w in shared at y.io via tma { }
        stage ys[i, j] = y in shared at y.ir ring(2) via tma { }
    }

    #[allow(TW0690)]
    /// Rows of a tensor with gaps between them, one run each, and as many that they are counted by a loop.
    #[allow(TW0490)]
    pub kernel Rows(x: f16[M, 640; ld, 1], z: f16[N, K]) -> (y: f32[M], s: f16[N])
    where M % 4 == 0, ld % 8 == 0, K % 32 == 0, N % 32 == 0
    {
        y[i] = sum(|j| x[i, j] as f32);
        s[n] = sum(|k| z[n, k]);
        launch threads(32);
        schedule y { split i by 4 -> io, ii; bind io: grid; bind ii: thread; }
        schedule s { split n by 32 -> no, ni; split k by 32 -> ko, ki; reorder no, ko, ni, ki; bind no: grid; bind ni: thread; }
        stage xs[i, j] = x in shared at y.io via tma { box i by 1 -> ic, ib; }
        stage zs[n, k] = z in shared at s.ko ring(2) via tma { box n by 1 -> nc, nb; }
    }

    /// A run of each iteration of a loop that is written out, of bytes.
    pub kernel Bytes(x: u8[A, B, 64]) -> (y: u8[A, B, 64])
    where B % 2 == 0
    {
        y[a, b, c] = x[a, b, c] * 3;
        launch threads(64);
        schedule y { split b by 2 -> bo, bi; unroll bi; bind a, bo: grid; bind c: thread; }
        stage xs[a, b, c] = x in shared at y.bi via tma { }
        stage ys[a, b, c] = y in shared at y.bo via tma { }
    }

    /// More tiles than are written out: rows of a cut column.
    #[allow(TW0490)]
    pub kernel Column(x: f32[K, M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y {
            split m by 32 -> mo, mi;
            split k by 300 -> ko, ki;
            reorder mo, ko, mi, ki;
            bind mo: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko ring(2) via tma { box k by 1 -> kc, kb; box m by 16 -> mc, mb; layout [mc, kc, mb]; }
    }

    /// Strided tiles of which some hold nothing that is asked for: these are sent out of bounds in loops.
    pub kernel Phases(x: f32[K, M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y {
            split m by 32 -> mo, mi;
            split k by 87 -> ko, ki;
            reorder mo, ko, mi, ki;
            bind mo: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko via tma {
            box k by 3 -> kc, kb;
            tile kb by 8 -> kt, ks;
            box m by 32 -> mc, mb;
            layout [ks, kc, kt, mb];
            fill zero;
        }
    }

    /// A store of more tiles than are written out.
    #[allow(TW0490)]
    pub kernel Scatter(x: f32[M, N]) -> (y: f32[N, M])
    where M % 4 == 0
    {
        y[j, i] = x[i, j] - 2.0;
        launch threads(64);
        schedule y {
            split j by 34 -> jo, ji;
            split i by 64 -> io, ii;
            reorder jo, io, ji, ii;
            bind jo, io: grid;
            bind ii: thread;
        }
        stage ys[j, i] = y in shared at y.io via tma { box j by 1 -> jc, jb; box i by 16 -> ic, ib; }
    }
}

/// Launches on every device at these sizes, and compares each output.
macro_rules! agrees {
    ($kernel:ident { $($input:ident: $value:expr),* } -> { $($output:ident: $zeros:expr),* } on $device:expr) => {{
        let device = $device;
        $(let $input = &$value;)*
        $(let mut $output = $zeros;)*
        let expected = $kernel { $($input,)* $($output: &mut $output),* }.reference().unwrap();
        $kernel { $($input,)* $($output: &mut $output),* }.launch(device).unwrap();
        $(expected.check(stringify!($output), &$output).unwrap();)*
    }};
}

#[test]
fn runs_of_lines() {
    for device in &devices() {
        for n in [0, 1024, 5 * 1024] {
            agrees!(Line { x: data(device, [n], |i| i as f32) } -> { y: Tensor::zeros(device, [n]).unwrap() } on device);
        }
    }
}

#[test]
fn runs_in_rings() {
    for device in &devices() {
        for m in [0, 8, 24] {
            agrees!(Rings { x: data(device, [m, 64], |i| i as f32), w: data(device, [64], |i| i as f32) }
                -> { y: Tensor::zeros(device, [m, 64]).unwrap() } on device);
        }
    }
}

#[test]
fn runs_of_rows() {
    for device in &devices() {
        for (m, n, k) in [(4, 32, 32), (8, 64, 96), (0, 32, 64), (4, 0, 32), (4, 32, 0)] {
            let wide = data(device, [m, 656], |i| tilewright::f16::from_f32((i % 5) as f32));
            let z = data(device, [n, k], |i| tilewright::f16::from_f32((i % 3) as f32));
            agrees!(Rows { x: wide.slice(1, 8..648).unwrap(), z: z }
                -> { y: Tensor::zeros(device, [m]).unwrap(), s: Tensor::zeros(device, [n]).unwrap() } on device);
        }
    }
}

#[test]
fn runs_of_bytes() {
    for device in &devices() {
        for (a, b) in [(1, 2), (3, 4), (0, 2)] {
            agrees!(Bytes { x: data(device, [a, b, 64], |i| i as u8) }
                -> { y: Tensor::zeros(device, [a, b, 64]).unwrap() } on device);
        }
    }
}

#[test]
fn many_tiles() {
    for device in &devices() {
        for (k, m) in [(300, 32), (1, 4), (700, 36), (0, 8)] {
            let x = data(device, [k, m], |i| (i % 7) as f32 - 2.5);
            agrees!(Column { x: x } -> { y: Tensor::zeros(device, [m]).unwrap() } on device);
            agrees!(Phases { x: x } -> { y: Tensor::zeros(device, [m]).unwrap() } on device);
        }
        for (m, n) in [(64, 34), (4, 1), (68, 70), (100, 35)] {
            let x = data(device, [m, n], |i| i as f32);
            agrees!(Scatter { x: x } -> { y: Tensor::zeros(device, [n, m]).unwrap() } on device);
        }
    }
}

/// Copies in the text: by a map, and by addresses.
fn forms(info: &KernelInfo) -> [usize; 2] {
    let text = &info.ptx.text;
    ["cp.async.bulk.tensor.", "cp.async.bulk.global", "cp.async.bulk.shared"]
        .map(|form| text.matches(form).count())
        .iter()
        .enumerate()
        .fold([0, 0], |[maps, runs], (n, count)| if n == 0 { [maps + count, runs] } else { [maps, runs + count] })
}

#[test]
fn what_takes_a_map() {
    for info in [Line::KERNEL, Rings::KERNEL, Rows::KERNEL, Bytes::KERNEL] {
        assert!(info.maps.is_empty() && info.entries.iter().all(|entry| !entry.takes_maps), "{}", info.name);
        assert!(!info.arguments.iter().any(|a| matches!(a, Argument::Map(_))), "{}", info.name);
        assert_eq!(info.ptx.capability, (9, 0), "{}", info.name);
        assert_eq!(forms(info)[0], 0, "{}", info.explanation);
    }
    // One run each way, however many boxes there are; loops count what is more than 16 copies.
    assert_eq!(forms(Line::KERNEL), [0, 2]);
    assert!(
        Line::KERNEL.explanation.contains("copy xs of x at the block: 1 run of 4096 bytes"),
        "{}",
        Line::KERNEL.explanation
    );
    assert_eq!(forms(Rings::KERNEL), [0, 6]);
    let rolled = |info: &KernelInfo| info.ptx.text.matches(".pragma \"nounroll\";").count();
    assert_eq!([Line::KERNEL, Rings::KERNEL].map(rolled), [0, 0]);
    // Four rows of one tensor; of the other a loop before the loop, for each buffer, and one after.
    assert_eq!(forms(Rows::KERNEL), [0, 4 + 3]);
    for (info, copies) in [(Column::KERNEL, 3), (Phases::KERNEL, 1), (Scatter::KERNEL, 4)] {
        assert_eq!(forms(info), [copies, 0], "{}", info.ptx.text);
        assert!(rolled(info) > 0, "{}", info.ptx.text);
        assert!(info.explanation.contains("goes by a tensor map"), "{}", info.explanation);
    }
}

/// Addresses are multiples of 16 bytes, which is known at launch.
#[test]
fn misaligned_addresses_are_refused() {
    for device in devices().iter().take(1) {
        let whole = data(device, [2048], |i| i as f32);
        for (offset, fits) in [(0, true), (4, true), (2, false), (1, false)] {
            let mut y = Tensor::zeros(device, [1024]).unwrap();
            let x = whole.slice(0, offset..offset + 1024).unwrap();
            assert_eq!(Line { x: &x, y: &mut y }.launch(device).is_ok(), fits, "{offset}");
        }
    }
}
