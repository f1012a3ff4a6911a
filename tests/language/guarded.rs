//! Reads with `or` as vectors: all lanes are inside of the tensor, or none is.

use tilewright::{Device, EmulatorOptions, Tensor, schedule};

schedule! {
    #[allow(TW0491)]
    /// The rows above and below, columns that begin a vector before and one element before, and what they have instead:
    /// numbers, and what depends on the element.
    kernel Around(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
        y[i, j] = (x[i - 1, j] or 0.5) + (x[i + 1, j] or (j as f32)) + (x[i, j - 4] or (i as f32))
            + (x[i, j - 1] or 2.0);
        launch threads(32);
        schedule y { split j by 128, 4 -> b, t, v; bind i, b: grid; bind t: thread; vectorize v; }
    }
}

schedule! {
    #[allow(TW0491)]
    /// Rows that memory names: for the element's row, for a vector, for each lane, and by what another row names.
    kernel Rows(x: f32[R, N], ids: i32[K]) -> (y: f32[M, N]) where N % 4 == 0 {
        own[i, j] = x[ids[i] or -1, j] or 0.0;
        y[i, j] = own[i, j] + (x[ids[j / 4] or 0, j] or 1.0) + 2.0 * (x[ids[j] or 0, j] or 3.0)
            + (x[ids[ids[i] or 0] or 1, j + 4] or (j as f32)) + (if i > 1 { x[i - 2, j] or 7.0 } else { own[i, j] });
        launch threads(32);
        schedule y { split j by 128, 4 -> b, t, v; bind i, b: grid; bind t: thread; vectorize v; }
    }
}

schedule! {
    #[allow(TW0491)]
    /// Rows lie at multiples of a vector, and end inside of one.
    kernel Ends(x: f32[M, 130; 132, 1]) -> (y: f32[M, 132]) {
        y[i, j] = x[i, j] or 0.5;
        launch threads(32);
        schedule y { split j by 128, 4 -> b, t, v; bind i, b: grid; bind t: thread; vectorize v; }
    }
}

/// Loads of four elements at once that a predicate decides, and loads of one.
fn loads(ptx: &str) -> [usize; 2] {
    let entry = ptx.split(".visible .entry").nth(1).expect("an entry point");
    let of = |kind: &str| entry.lines().filter(|l| l.trim().starts_with("@%p") && l.contains(kind)).count();
    [of("ld.global.nc.v4.f32"), of("ld.global.nc.f32")]
}

#[test]
fn what_all_lanes_share_is_read_at_once() {
    // The column before is another vector's.
    assert_eq!(loads(&Around::KERNEL.ptx.text), [3, 4]);
    // Lanes are inside, and the lanes behind them are not.
    assert_eq!(loads(&Ends::KERNEL.ptx.text), [0, 4]);
    // Each lane has its own row, and of a row that a named row names nothing is known.
    assert_eq!(loads(&Rows::KERNEL.ptx.text)[0], 2);
}

#[test]
fn what_lies_between_rows_is_not_read() {
    let device = Device::emulator(EmulatorOptions::default());
    let memory = Tensor::from_slice(&device, &vec![9.0_f32; 3 * 132], [3, 132]).unwrap();
    let mut y = Tensor::zeros(&device, [3, 132]).unwrap();
    Ends { x: &memory.slice(1, ..130).unwrap(), y: &mut y }.launch(&device).unwrap();
    let of = |at: usize| if at % 132 < 130 { 9.0 } else { 0.5 };
    assert_eq!(y.to_vec().unwrap(), (0..3 * 132).map(of).collect::<Vec<f32>>());
}

#[test]
fn elements_are_those_of_the_equations() {
    let device = Device::emulator(EmulatorOptions::default());
    for (m, n) in [(0, 4), (1, 4), (3, 132), (5, 260)] {
        let x: Vec<f32> = (0..m * n).map(|i| (i * 13 % 37) as f32).collect();
        let xt = Tensor::from_slice(&device, &x, [m, n]).unwrap();
        let mut y = Tensor::zeros(&device, [m, n]).unwrap();
        Around { x: &xt, y: &mut y }.launch(&device).unwrap();
        let at = |i: i64, j: i64, or: f32| {
            let inside = (0..m as i64).contains(&i) && (0..n as i64).contains(&j);
            if inside { x[i as usize * n + j as usize] } else { or }
        };
        let of = |(i, j): (i64, i64)| {
            at(i - 1, j, 0.5) + at(i + 1, j, j as f32) + at(i, j - 4, i as f32) + at(i, j - 1, 2.0)
        };
        let all: Vec<(i64, i64)> = (0..m as i64).flat_map(|i| (0..n as i64).map(move |j| (i, j))).collect();
        assert_eq!(y.to_vec().unwrap(), all.iter().copied().map(of).collect::<Vec<_>>());

        // Some rows are not there, below and above; so are places of the list.
        for ids in [vec![], vec![0, -1, 2, 7, 1], vec![i32::MIN, i32::MAX, 1, 0, 2, 4, 3, 1]] {
            let list = Tensor::from_slice(&device, &ids, [ids.len()]).unwrap();
            let id =
                |k: i64, or: i32| i64::from(usize::try_from(k).ok().and_then(|k| ids.get(k)).copied().unwrap_or(or));
            Rows { x: &xt, ids: &list, y: &mut y }.launch(&device).unwrap();
            let of = |(i, j): (i64, i64)| {
                let own = at(id(i, -1), j, 0.0);
                let named = at(id(id(i, 0), 1), j + 4, j as f32);
                let above = if i > 1 { at(i - 2, j, 7.0) } else { own };
                own + at(id(j / 4, 0), j, 1.0) + 2.0 * at(id(j, 0), j, 3.0) + named + above
            };
            assert_eq!(y.to_vec().unwrap(), all.iter().copied().map(of).collect::<Vec<_>>(), "{ids:?}");
        }
    }
}
