//! How far ends of ranges go, against enumeration of what memory may hold: see [`Farthest`].

use tilewright_kernel::algorithm::{Index, IndexId};

use super::super::expressions::Farthest;
use crate::extent::Expr;
use tilewright_theory::random::Random;

/// Two sizes, then an axis.
const SIZES: u32 = 2;

/// A random index; divisors are positive, and factors of what is read are constants or sizes.
fn draw(random: &mut Random, depth: usize, indices: &mut Vec<Index>) -> IndexId {
    let leaf = |random: &mut Random| match random.below(8) {
        0 | 1 => Index::Value(random.below(2) as u32),
        2 | 3 => Index::Dim(random.below(SIZES as usize) as u16),
        4 | 5 => Index::Axis(0),
        _ => Index::Literal(random.below(7) as i64 - 3),
    };
    let node = if depth == 0 || random.below(5) == 0 {
        leaf(random)
    } else {
        let kind = random.below(9);
        let a = draw(random, depth - 1, indices);
        let b = match kind {
            2 | 3 => {
                let positive =
                    if random.below(2) == 0 { Index::Dim(0) } else { Index::Literal(1 + random.below(3) as i64) };
                indices.push(positive);
                indices.len() as IndexId - 1
            }
            4 => {
                let factor =
                    if random.below(2) == 0 { Index::Dim(1) } else { Index::Literal(random.below(5) as i64 - 2) };
                indices.push(factor);
                indices.len() as IndexId - 1
            }
            _ => draw(random, depth - 1, indices),
        };
        match kind {
            0 => Index::Add(a, b),
            1 => Index::Sub(a, b),
            2 => Index::Div(a, b),
            3 => Index::Mod(a, b),
            4 if random.below(2) == 0 => Index::Mul(a, b),
            4 => Index::Mul(b, a),
            5 | 6 => Index::Min(a, b),
            _ => Index::Max(a, b),
        }
    };
    indices.push(node);
    indices.len() as IndexId - 1
}

fn value(indices: &[Index], id: IndexId, sizes: [i64; 2], axis: i64, memory: [i64; 2]) -> Option<i64> {
    let of = |id| value(indices, id, sizes, axis, memory);
    match indices[id as usize] {
        Index::Literal(c) => Some(c),
        Index::Dim(d) => Some(sizes[usize::from(d)]),
        Index::Axis(_) => Some(axis),
        Index::Value(v) => Some(memory[v as usize]),
        node => node.sides().and_then(|[a, b]| node.value(of(a)?, of(b)?)),
    }
}

#[test]
fn no_value_goes_farther_than_the_hull() {
    let mut random = Random(9);
    // How many ends are bounded though memory is part of them, and how often one is reached.
    let (mut bounded, mut reached) = (0, 0);
    for _ in 0..6000 {
        let mut indices = Vec::new();
        let id = draw(&mut random, 3, &mut indices);
        // The second value has a type without a sign.
        let (is_unsigned, of) = (|value| value == 1, |_| Expr::var(SIZES));
        let farthest = Farthest { indices: &indices, of: &of, is_unsigned: &is_unsigned };
        let ends = [false, true].map(|greatest| farthest.end(id, greatest));
        if ends.iter().all(Expr::is_unknown) {
            continue;
        }
        // What the index does not read is no part of its value: one number stands for all.
        let reads = |value| indices.iter().any(|index| matches!(index, Index::Value(v) if *v == value));
        let [first, second] = [if reads(0) { -9..10 } else { 0..1 }, if reads(1) { 0..10 } else { 0..1 }];
        let of_memory = reads(0) || reads(1);
        bounded += ends.iter().filter(|end| of_memory && !end.is_unknown()).count();
        for (n, m, axis) in (1..4).flat_map(|n| (0..4).flat_map(move |m| (-2..3).map(move |axis| (n, m, axis)))) {
            let all = first.clone().flat_map(|v| second.clone().map(move |w| [v, w]));
            let values = all.filter_map(|memory| value(&indices, id, [n, m], axis, memory)).map(i128::from);
            let (least, most) = values.fold((i128::MAX, i128::MIN), |(a, b), v| (a.min(v), b.max(v)));
            if least > most {
                continue;
            }
            for (end, greatest) in ends.iter().zip([false, true]).filter(|(end, _)| !end.is_unknown()) {
                let bound = end.eval(&[n.into(), m.into(), axis.into()]).expect("small numbers");
                let found = if greatest { most } else { least };
                assert!(
                    if greatest { found <= bound } else { found >= bound },
                    "{indices:?} {greatest} {n} {m} {axis}"
                );
                reached += usize::from(of_memory && found == bound);
            }
        }
    }
    assert!(bounded > 1500 && reached > 20 * bounded, "{bounded} bounds, {reached} reached");
}
