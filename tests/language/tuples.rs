//! One equation for several tensors: values of each type, old elements of all that it updates, and one schedule.

use tilewright::{Device, EmulatorOptions, Tensor, bf16, schedule};

schedule! {
    /// Two tensors change places, by vectors.
    kernel Swap(inout x: f32[N], inout y: f32[N]) where N % 4 == 0 {
        (x, y)[i] = (y[i], x[i]);
        schedule y { split i by 4 -> io, v; split io by 32 -> b, t; bind b: grid; bind t: thread; vectorize v; }
    }
}

schedule! {
    /// The same, but for one more, by tiles that the accelerator stores, several in flight.
    kernel SwapTiles(inout x: f32[N], inout y: f32[N]) where N % 4 == 0 {
        (x, y)[i] = (y[i], x[i] + 1.0);
        launch threads(64);
        schedule x {
            split i by 1024, 256 -> b, s, ti;
            split ti by 4 -> t, v;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
        stage xs[i] = x in shared at x.s ring(2) via tma { }
        stage ys[i] = y in shared at x.s ring(2) via tma { }
    }
}

schedule! {
    #[allow(TW0491)]
    /// A row's sum, its extreme, and what does not depend on it, over one grid.
    kernel Statistics(x: f32[M, N]) -> (total: f32[M], most: i32[M], index: i64[M]) where N >= 1 {
        (total, most, index)[i] = (sum(|j| x[i, j]), argmax(|k| x[i, k]) as i32, i as i64 * 3i64);
        schedule total { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }
}

schedule! {
    /// An intermediate of two tensors, in shared memory, which others read at their neighbours.
    kernel Neighbours(x: f32[N], inout z: f32[N]) -> (y: bf16[N]) {
        (s, d)[i] = (x[i] + (x[i + 1] or 0.0), x[i] - (x[i + 1] or 0.0));
        (y, z)[i] = ((s[i] + (d[i - 1] or 0.0)) as bf16, z[i] * d[i]);
        launch threads(64);
        schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule d in shared at y.b { split i by 64 -> o, t; bind t: thread; }
    }
}

fn device() -> Device {
    Device::emulator(EmulatorOptions::default())
}

fn numbers(n: usize, first: i32) -> Vec<f32> {
    (0..n as i32).map(|i| ((i * 7 + first) % 23 - 11) as f32).collect()
}

#[test]
fn tensors_change_places() {
    let device = device();
    for n in [0, 4, 132, 2052] {
        let (x, y) = (numbers(n, 1), numbers(n, 5));
        let [mut a, mut b] = [&x, &y].map(|from| Tensor::from_slice(&device, from, [n]).unwrap());
        let expected = Swap { x: &mut a, y: &mut b }.reference().unwrap();
        Swap { x: &mut a, y: &mut b }.launch(&device).unwrap();
        expected.check("x", &a).unwrap();
        expected.check("y", &b).unwrap();
        assert_eq!((a.to_vec().unwrap(), b.to_vec().unwrap()), (y.clone(), x.clone()));
        SwapTiles { x: &mut a, y: &mut b }.launch(&device).unwrap();
        let more: Vec<f32> = y.iter().map(|y| y + 1.0).collect();
        assert_eq!((a.to_vec().unwrap(), b.to_vec().unwrap()), (x, more));
    }
}

#[test]
fn parts_have_types_and_reductions_of_their_own() {
    let device = device();
    for (m, n) in [(0, 3), (1, 1), (33, 17)] {
        let x = numbers(m * n, 2);
        let xt = Tensor::from_slice(&device, &x, [m, n]).unwrap();
        let mut total = Tensor::zeros(&device, [m]).unwrap();
        let (mut most, mut index) = (Tensor::zeros(&device, [m]).unwrap(), Tensor::zeros(&device, [m]).unwrap());
        Statistics { x: &xt, total: &mut total, most: &mut most, index: &mut index }.launch(&device).unwrap();
        let rows: Vec<&[f32]> = x.chunks(n).collect();
        let largest = |row: &&[f32]| (0..n).rev().max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as i32;
        assert_eq!(total.to_vec().unwrap(), rows.iter().map(|row| row.iter().sum()).collect::<Vec<f32>>());
        assert_eq!(most.to_vec().unwrap(), rows.iter().map(largest).collect::<Vec<_>>());
        assert_eq!(index.to_vec().unwrap(), (0..m as i64).map(|i| 3 * i).collect::<Vec<_>>());
    }
}

#[test]
fn intermediates_of_one_equation_are_read_elsewhere() {
    let device = device();
    for n in [0, 1, 64, 200] {
        let (x, z) = (numbers(n, 3), numbers(n, 4));
        let (xt, mut zt) =
            (Tensor::from_slice(&device, &x, [n]).unwrap(), Tensor::from_slice(&device, &z, [n]).unwrap());
        let mut y = Tensor::zeros(&device, [n]).unwrap();
        Neighbours { x: &xt, z: &mut zt, y: &mut y }.launch(&device).unwrap();
        let next = |i: usize| x.get(i + 1).copied().unwrap_or(0.0);
        let difference = |i: usize| x[i] - next(i);
        let sum = |i: usize| bf16::from_f32(x[i] + next(i) + if i > 0 { difference(i - 1) } else { 0.0 });
        assert_eq!(y.to_vec().unwrap(), (0..n).map(sum).collect::<Vec<_>>());
        assert_eq!(zt.to_vec().unwrap(), (0..n).map(|i| z[i] * difference(i)).collect::<Vec<_>>());
    }
}
