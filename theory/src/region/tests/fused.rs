//! Splits of fused axes: covers, totals and static extents in tables, which enumeration gave outside this project, and
//! closed forms.

use super::nest::{Nest, Unit, check, show, tightest};
use tilewright_kernel::info::{Dim, DimKind};

use crate::extent::{Expr, Facts, gcd};
use crate::region::{Fit, Loops, NotATile, Realisation, Request, of};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A reader of `x[a, b, …]` over this shape: all axes fused, split by `factor`, the region wanted at the outer loop.
fn fused(shape: &[i128], factor: i128) -> Nest {
    let list = |f: &dyn Fn(usize) -> String| (0..shape.len()).map(f).collect::<Vec<_>>().join(", ");
    let roots = list(&|d| format!("{} {}", NAMES[d], shape[d]));
    let mut ops = String::from("merge a b f0");
    for (d, name) in NAMES[..shape.len()].iter().enumerate().skip(2) {
        ops += &format!("; merge f{} {name} f{}", d - 2, d - 1);
    }
    ops += &format!("; split f{} {factor} o q", shape.len() - 2);
    Nest::new("", &list(&|d| shape[d].to_string()), &roots, &ops, &list(&|d| NAMES[d].to_owned()), "o", Unit::Cta)
}

/// One row of a table of totals.
struct Totals {
    factor: i128,
    trips: i128,
    needed: i128,
    covers: i128,
    extents: &'static [i128],
}

const fn row(factor: i128, trips: i128, needed: i128, covers: i128, extents: &'static [i128]) -> Totals {
    Totals { factor, trips, needed, covers, extents }
}

const FOUR_BY_FOUR: &[Totals] = &[
    row(1, 16, 16, 16, &[1, 1]),
    row(2, 8, 16, 16, &[1, 2]),
    row(3, 6, 16, 26, &[2, 4]),
    row(4, 4, 16, 16, &[1, 4]),
    row(5, 4, 16, 25, &[2, 4]),
    row(6, 3, 16, 20, &[2, 4]),
    row(7, 3, 16, 22, &[3, 4]),
    row(8, 2, 16, 16, &[2, 4]),
    row(10, 2, 16, 20, &[3, 4]),
    row(12, 2, 16, 16, &[3, 4]),
    row(16, 1, 16, 16, &[4, 4]),
];

const TWELVE_BY_SIX: &[Totals] = &[
    row(3, 24, 72, 72, &[1, 3]),
    row(4, 18, 72, 120, &[2, 6]),
    row(6, 12, 72, 72, &[1, 6]),
    row(9, 8, 72, 96, &[2, 6]),
    row(10, 8, 72, 98, &[3, 6]),
    row(12, 6, 72, 72, &[2, 6]),
];

const TWO_BY_THREE_BY_FOUR: &[Totals] = &[
    row(2, 12, 24, 24, &[1, 1, 2]),
    row(3, 8, 24, 44, &[1, 2, 4]),
    row(4, 6, 24, 24, &[1, 1, 4]),
    row(5, 5, 24, 52, &[2, 3, 4]),
    row(6, 4, 24, 32, &[1, 2, 4]),
    row(8, 3, 24, 40, &[2, 3, 4]),
    row(12, 2, 24, 24, &[1, 3, 4]),
];

const GPU_SIZED: &[Totals] = &[row(64, 96, 6144, 10240, &[2, 96]), row(32, 192, 6144, 6144, &[1, 32])];

#[test]
fn totals_and_static_extents() {
    let tables: [(&[i128], &[Totals]); 4] = [
        (&[4, 4], FOUR_BY_FOUR),
        (&[12, 6], TWELVE_BY_SIX),
        (&[2, 3, 4], TWO_BY_THREE_BY_FOUR),
        (&[64, 96], GPU_SIZED),
    ];
    for (shape, table) in tables {
        for Totals { factor, trips, needed, covers, extents } in table {
            let what = format!("{shape:?} by {factor}");
            let nest = fused(shape, *factor);
            assert_eq!(nest.oracle(&[]).len() as i128, *trips, "{what}");
            let cover = nest.region(Realisation::Cover).unwrap();
            let [group] = &cover.groups[..] else { panic!("{what}: {}", show(&cover)) };
            assert!(group.fit >= Fit::Minimal && group.is_known, "{what}: {}", show(&cover));
            assert_eq!(group.fit == Fit::Exact, needed == covers, "{what}: {}", show(&cover));
            let figures = check(&nest, &cover, &[], &what);
            assert_eq!((figures.asked, figures.area), (*needed, *covers), "{what}");
            assert_eq!(figures.bounds, [extents.to_vec()], "{what}");
            assert_eq!(figures.bounds, tightest(&nest, &cover, &[]), "{what}");
            assert_eq!(group.needed, Some(Expr::constant(*factor)), "{what}");
            // A flat buffer wastes nothing, whatever the factor.
            let flat = nest.region(Realisation::Flat).unwrap();
            let figures = check(&nest, &flat, &[], &what);
            assert_eq!(flat.groups[0].fit, Fit::Exact, "{what}: {}", show(&flat));
            assert_eq!((figures.asked, figures.area, figures.bound), (*needed, *needed, *factor), "{what}");
            // The default is the smaller one, of equal ones the box.
            let chosen = nest.region(Realisation::Smallest).unwrap();
            let static_box = extents.iter().product::<i128>();
            assert_eq!(chosen, if static_box == *factor { cover } else { flat }, "{what}");
        }
    }
}

/// First and last index along each dimension, for each iteration.
type Covers = &'static [&'static [(i128, i128)]];

const BY_ITERATION: &[(&[i128], i128, Covers)] = &[
    (&[4, 4], 4, &[&[(0, 0), (0, 3)], &[(1, 1), (0, 3)], &[(2, 2), (0, 3)], &[(3, 3), (0, 3)]]),
    (&[4, 4], 8, &[&[(0, 1), (0, 3)], &[(2, 3), (0, 3)]]),
    (
        &[4, 4],
        3,
        &[
            &[(0, 0), (0, 2)],
            &[(0, 1), (0, 3)],
            &[(1, 2), (0, 3)],
            &[(2, 2), (1, 3)],
            &[(3, 3), (0, 2)],
            &[(3, 3), (3, 3)],
        ],
    ),
    (&[4, 4], 5, &[&[(0, 1), (0, 3)], &[(1, 2), (0, 3)], &[(2, 3), (0, 3)], &[(3, 3), (3, 3)]]),
    (&[4, 4], 6, &[&[(0, 1), (0, 3)], &[(1, 2), (0, 3)], &[(3, 3), (0, 3)]]),
    (&[4, 4], 7, &[&[(0, 1), (0, 3)], &[(1, 3), (0, 3)], &[(3, 3), (2, 3)]]),
    (&[4, 4], 10, &[&[(0, 2), (0, 3)], &[(2, 3), (0, 3)]]),
    (&[4, 4], 12, &[&[(0, 2), (0, 3)], &[(3, 3), (0, 3)]]),
    (
        &[12, 6],
        10,
        &[
            &[(0, 1), (0, 5)],
            &[(1, 3), (0, 5)],
            &[(3, 4), (0, 5)],
            &[(5, 6), (0, 5)],
            &[(6, 8), (0, 5)],
            &[(8, 9), (0, 5)],
            &[(10, 11), (0, 5)],
            &[(11, 11), (4, 5)],
        ],
    ),
    (
        &[2, 3, 4],
        3,
        &[
            &[(0, 0), (0, 0), (0, 2)],
            &[(0, 0), (0, 1), (0, 3)],
            &[(0, 0), (1, 2), (0, 3)],
            &[(0, 0), (2, 2), (1, 3)],
            &[(1, 1), (0, 0), (0, 2)],
            &[(1, 1), (0, 1), (0, 3)],
            &[(1, 1), (1, 2), (0, 3)],
            &[(1, 1), (2, 2), (1, 3)],
        ],
    ),
    (
        &[2, 3, 4],
        5,
        &[
            &[(0, 0), (0, 1), (0, 3)],
            &[(0, 0), (1, 2), (0, 3)],
            &[(0, 1), (0, 2), (0, 3)],
            &[(1, 1), (0, 1), (0, 3)],
            &[(1, 1), (2, 2), (0, 3)],
        ],
    ),
    (
        &[2, 3, 4],
        6,
        &[&[(0, 0), (0, 1), (0, 3)], &[(0, 0), (1, 2), (0, 3)], &[(1, 1), (0, 1), (0, 3)], &[(1, 1), (1, 2), (0, 3)]],
    ),
    (&[2, 3, 4], 8, &[&[(0, 0), (0, 1), (0, 3)], &[(0, 1), (0, 2), (0, 3)], &[(1, 1), (1, 2), (0, 3)]]),
];

#[test]
fn covers_of_every_iteration() {
    for (shape, factor, covers) in BY_ITERATION {
        let nest = fused(shape, *factor);
        let region = nest.region(Realisation::Cover).unwrap();
        for (o, cover) in covers.iter().enumerate() {
            let values = nest.point(&[], &[o as i128]);
            let found: Vec<(i128, i128)> = region.groups[0]
                .axes
                .iter()
                .map(|axis| {
                    let start = axis.start.eval(&values).unwrap();
                    (start, start + axis.extent.eval(&values).unwrap() - 1)
                })
                .collect();
            assert_eq!(found, cover.to_vec(), "{shape:?} by {factor}, iteration {o}");
        }
        assert_eq!(nest.oracle(&[]).len(), covers.len());
    }
}

/// All small shapes and factors: covers are minimal, bounds are attained, exactness is claimed where the closed form
/// says so, and rows stay below theirs.
#[test]
fn closed_forms() {
    let mut shapes: Vec<Vec<i128>> = Vec::new();
    for n in 1..=5 {
        for m in 1..=6 {
            shapes.push(vec![n, m]);
            if n <= 3 && m <= 4 {
                shapes.extend((1..=4).map(|k| vec![n, m, k]));
            }
        }
    }
    shapes.extend([vec![2, 2, 3, 2], vec![2, 3, 1, 4], vec![1, 3, 2, 3], vec![3, 2, 2, 2]]);
    for shape in shapes {
        let total: i128 = shape.iter().product();
        for factor in (1..=total.min(13)).chain([total + 1]) {
            let what = format!("{shape:?} by {factor}");
            let nest = fused(&shape, factor);
            let region = nest.region(Realisation::Cover).unwrap();
            let figures = check(&nest, &region, &[], &what);
            assert!(region.groups[0].fit >= Fit::Minimal && region.groups[0].is_known, "{what}: {}", show(&region));
            assert_eq!(figures.bounds, tightest(&nest, &region, &[]), "{what}");
            // F = g·S with g | N, or S that of the outermost axis: every region is a box.
            let axes: Vec<i128> = shape.iter().copied().filter(|n| *n > 1).collect();
            let behind = |d: usize| axes[d + 1..].iter().product::<i128>();
            let is_box = |d: usize| factor % behind(d) == 0 && (d == 0 || axes[d] % (factor / behind(d)) == 0);
            if factor < total {
                assert_eq!(figures.area == figures.asked, (0..axes.len()).any(is_box), "{what}");
                assert_eq!(
                    figures.area == figures.asked,
                    region.groups[0].fit == Fit::Exact,
                    "{what}: {}",
                    show(&region)
                );
            }
            if let [n, m] = shape[..] {
                let most = 1 + (factor - gcd(factor, m) + m - 1).div_euclid(m);
                assert!(figures.bounds[0][0] <= n.min(most), "{what}");
            }
            let flat = nest.region(Realisation::Flat);
            if shape.iter().filter(|n| **n > 1).count() > 1 && factor > 1 {
                let figures = check(&nest, &flat.unwrap(), &[], &what);
                assert_eq!((figures.area, figures.bound), (total, factor.min(total)), "{what}");
            } else {
                assert!(flat.is_ok() || flat == Err(NotATile::NotFlat), "{what}");
            }
        }
    }
}

/// Rows of symbolic length: as many rows as the factor has, or a piece of one.
#[test]
fn symbolic_rows() {
    let dims = [Dim { name: "m".into(), kind: DimKind::Size }, Dim { name: "l".into(), kind: DimKind::Size }];
    let facts = Facts::new(&dims, &[]).unwrap();
    let (m, l) = (Expr::var(0), Expr::var(1));
    let (o, q) = (Expr::var(2), Expr::var(3));
    let number = Expr::constant;
    // Row length, factor, and the extents: 1 × l, 2 × l, 1 × 8.
    let cases = [
        (l.clone(), l.clone(), [number(1), l.clone()]),
        (l.clone(), l.scale(2), [number(2), l.clone()]),
        (l.scale(8), number(8), [number(1), number(8)]),
    ];
    for (row, factor, extents) in cases {
        let total = m.mul(&row);
        let f = o.mul(&factor).add(&q);
        let axes = vec![(f.clone(), total.clone())];
        let loops = Loops {
            inside: vec![(3, factor.clone())],
            outside: vec![(2, total.ceil_div(&factor))],
            ..Loops::default()
        };
        let request =
            Request { indices: vec![f.floor_div(&row), f.modulo(&row)], conditions: Vec::new(), axes: axes.clone() };
        let domain = [(number(0), m.clone()), (number(0), row.clone())];
        let found = of(&[request], &loops, &domain, &facts).unwrap();
        let [group] = &found.groups[..] else { panic!("{}", show(&found)) };
        let bounds: Vec<Expr> = group.axes.iter().map(|a| a.bound.clone()).collect();
        assert_eq!(bounds, extents, "{}", show(&found));
        if factor != l.scale(2) {
            // An odd number of rows leaves one for the last iteration.
            assert!(group.axes.iter().all(|a| a.extent == a.bound), "{}", show(&found));
            assert_eq!(group.fit, Fit::Exact, "{}", show(&found));
        }
        for sizes in (1..6).flat_map(|m| (1..5).map(move |l| [m, l])) {
            let at = |e: &Expr, o: i128| e.eval(&[sizes[0], sizes[1], o]).unwrap();
            let (total, row, factor) = (at(&m.mul(&row), 0), at(&row, 0), at(&factor, 0));
            for o in 0..(total + factor - 1) / factor {
                let last = total.min((o + 1) * factor) - 1;
                let rows = (o * factor / row, last / row);
                let start = at(&group.axes[0].start, o);
                assert_eq!((start, start + at(&group.axes[0].extent, o) - 1), rows, "{sizes:?} {}", show(&found));
                let columns = if rows.0 == rows.1 { (o * factor % row, last % row) } else { (0, row - 1) };
                let start = at(&group.axes[1].start, o);
                assert_eq!((start, start + at(&group.axes[1].extent, o) - 1), columns, "{sizes:?} {}", show(&found));
            }
        }
    }
}
