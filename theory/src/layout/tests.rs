//! Layouts against their definition, by enumeration.

use tilewright_kernel::tensor_map::Swizzle;

use super::{Digit, Layout, XorSwizzle};
use crate::domain::Numbers;
use crate::extent::Expr;
use crate::random::Random;

/// All values of digits with these extents, outermost first.
fn combinations(extents: &[i128]) -> Vec<Vec<i128>> {
    extents.iter().fold(vec![Vec::new()], |all, extent| {
        all.iter().flat_map(|values| (0..*extent).map(move |v| [&values[..], &[v]].concat())).collect()
    })
}

/// Digits with gaps before, between and after their values: of each number, its digits are the values of which it is at
/// most the innermost stride away, or some digit says that there are none.
#[test]
fn paths_find_the_values_of_every_number() {
    let mut random = Random(1);
    let (mut partial, mut whole) = (0, 0);
    for _ in 0..400 {
        let mut next = |least: i128, most: usize| least + random.below(most) as i128;
        let innermost = next(1, 3);
        let (mut stride, mut digits) = (innermost, Vec::new());
        for source in 0..next(1, 3) {
            let (extent, low) = (next(1, 4), (next(0, 3) - 1).max(0));
            digits.push(Digit { source: Some(source), unit: 1, extent, target: (), stride, low });
            stride = low + extent * stride + (next(0, 3) - 1).max(0);
        }
        let size = stride;
        let values: Vec<i128> = digits.iter().map(|d| d.extent).collect();
        // The order of digits is of no account.
        let turn = random.below(digits.len());
        digits.rotate_left(turn);
        let layout = Layout::new(digits, vec![((), size)]);
        assert!(layout.is_one_to_one(), "{layout:?}");
        let places: Vec<(i128, Vec<i128>)> = combinations(&values)
            .into_iter()
            .map(|values| (layout.place(&mut Numbers(&[]), (), &|source: i128| values[source as usize]), values))
            .collect();
        let normal = layout.normal();
        let mut outside = vec![false; layout.digits().len()];
        for number in 0..size {
            let own = places.iter().find(|(place, _)| (*place..*place + innermost).contains(&number));
            let found: Vec<i128> = (0..outside.len()).map(|n| layout.path(n).at(number)).collect();
            let is_inside = |n: usize| (0..layout.digits()[n].extent).contains(&found[n]);
            match own {
                Some((place, values)) => {
                    for (n, digit) in layout.digits().iter().enumerate() {
                        let value = values[digit.source.expect("a source") as usize];
                        assert_eq!(found[n], value, "{layout:?}: {number}");
                        let expression = layout.path(n).expression(&Expr::var(0));
                        assert_eq!(expression.eval(&[number]), Some(value), "{layout:?}: {number}");
                    }
                    assert_eq!(layout.left(()).at(number), number - place, "{layout:?}: {number}");
                }
                None => assert!(!(0..outside.len()).all(is_inside), "{layout:?}: {number} has {found:?}"),
            }
            // With fewer digits no other numbers have values.
            let is_normal = |n: usize| (0..normal.digits()[n].extent).contains(&normal.path(n).at(number));
            assert_eq!((0..normal.digits().len()).all(is_normal), own.is_some(), "{normal:?}: {number}");
            (0..outside.len()).for_each(|n| outside[n] |= !is_inside(n));
        }
        for (n, outside) in outside.into_iter().enumerate() {
            assert_eq!(layout.is_partial(n), outside, "{layout:?}: digit {n}");
            if outside { partial += 1 } else { whole += 1 }
        }
    }
    assert!(partial > 100 && whole > 100, "{partial} of {whole}");
}

/// Sources that are taken apart, by units that need not divide each other, and put together in another order.
#[test]
fn sources_are_taken_apart_by_their_units() {
    let mut random = Random(2);
    let mut fewer = 0;
    for _ in 0..300 {
        let mut digits: Vec<Digit<usize, ()>> = Vec::new();
        let mut sizes = Vec::new();
        for source in 0..1 + random.below(2) {
            let mut unit = 1;
            for _ in 0..1 + random.below(3) {
                let extent = 1 + random.below(4) as i128;
                digits.push(Digit { source: Some(source), unit, extent, target: (), stride: 0, low: 0 });
                // The last one inside may be cut.
                unit = (unit * extent - random.below(2) as i128).max(unit + i128::from(extent > 1));
            }
            sizes.push(digits.last().map_or(1, |d| d.unit * d.extent));
        }
        let mut order: Vec<usize> = (0..digits.len()).collect();
        order.sort_by_key(|_| random.below(100));
        let mut stride = 1;
        for n in order {
            digits[n].stride = stride;
            stride *= digits[n].extent;
        }
        let layout = Layout::new(digits.clone(), Vec::new());
        let normal = layout.normal();
        fewer += layout.digits().len() - normal.digits().len();
        let mut seen = Vec::new();
        for values in combinations(&sizes) {
            // Digit by digit, the largest unit of each source first.
            let mut rests = values.clone();
            let place: i128 = (0..digits.len())
                .rev()
                .map(|n| {
                    let Digit { source, unit, extent, stride, .. } = digits[n];
                    if extent == 1 {
                        return 0;
                    }
                    let rest = &mut rests[source.expect("a source")];
                    let value = *rest / unit;
                    *rest %= unit;
                    value * stride
                })
                .sum();
            let found = layout.place(&mut Numbers(&[]), (), &|source: usize| values[source]);
            assert_eq!(found, place, "{layout:?}: {values:?}");
            let expression = layout.expression((), &|source: usize| Expr::constant(values[source]));
            assert_eq!(expression.as_constant(), Some(place), "{layout:?}: {values:?}");
            assert!(!seen.contains(&place), "{layout:?}: {values:?} is where another one is");
            seen.push(place);
            let found = normal.place(&mut Numbers(&[]), (), &|source: usize| values[source]);
            assert_eq!(found, place, "{normal:?}: {values:?}");
        }
    }
    assert!(fewer > 100, "{fewer} digits fewer");
}

/// The accumulators of `wgmma.mma_async` with N columns, of which thread t holds d_i: the matrix fragment D in section
/// "Register Fragments for wgmma.mma_async.m64nNk16" of the PTX manual.
#[test]
fn fragments_of_tensor_cores_are_layouts() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Holder {
        Thread,
        Register,
    }
    use Holder::{Register, Thread};
    for columns in (8..=256).step_by(8) {
        let digit = |source: char, unit, extent, target, stride| Digit {
            source: Some(source),
            unit,
            extent,
            target,
            stride,
            low: 0,
        };
        let layout = Layout::new(
            vec![
                digit('m', 16, 4, Thread, 32),
                digit('m', 8, 2, Register, 2),
                digit('m', 1, 8, Thread, 4),
                digit('n', 8, columns / 8, Register, 4),
                digit('n', 2, 4, Thread, 1),
                digit('n', 1, 2, Register, 1),
            ],
            vec![(Thread, 128), (Register, columns / 2)],
        );
        assert!(layout.is_one_to_one());
        for (thread, register) in (0..128).flat_map(|t| (0..columns / 2).map(move |d| (t, d))) {
            let row = thread / 32 * 16 + thread % 32 / 4 + register / 2 % 2 * 8;
            let column = thread % 4 * 2 + register / 4 * 8 + register % 2;
            let element = |source| if source == 'm' { row } else { column };
            let held = [Thread, Register].map(|holder| layout.place(&mut Numbers(&[]), holder, &element));
            assert_eq!(held, [thread, register], "N = {columns}");
            // And back.
            let of = |source| -> i128 {
                let digits = layout.digits().iter().enumerate().filter(|(_, d)| d.source == Some(source));
                let number = |holder| if holder == Thread { thread } else { register };
                digits.map(|(n, d)| layout.path(n).at(number(d.target)) * d.unit).sum()
            };
            assert_eq!((of('m'), of('n')), (row, column), "N = {columns}");
        }
    }
}

#[test]
fn exchanges_are_those_of_the_accelerator() {
    for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        for bytes in [1, 2, 4, 8] {
            for place in 0..4096 / bytes {
                let at = i128::from(place);
                let found = XorSwizzle::new(swizzle, bytes).of(&mut Numbers(&[]), &at);
                assert_eq!(found * i128::from(bytes), i128::from(swizzle.apply(place * bytes)), "{swizzle:?}: {place}");
            }
        }
    }
}
