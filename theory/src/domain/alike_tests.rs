//! Axes that are said to be alike against every point of random pairs of domains.

use tilewright_kernel::info::{Dim, DimKind};

use super::alike;
use crate::domain::{AxisKind, Concrete, Domain, NewAxis, Op, Symbolic};
use crate::extent::{Expr, Facts};
use crate::random::Random;
use crate::span::Span;

fn name() -> NewAxis {
    NewAxis { name: "a".to_owned(), span: Span::UNKNOWN }
}

fn random_op(random: &mut Random, domain: &mut Domain, facts: &Facts) {
    let leaf = domain.leaves[random.below(domain.leaves.len())];
    let factor = random.below(4) as i128 + 1;
    match random.below(6) {
        0 | 1 => domain.split_by(leaf, factor, facts, [name(), name()], Span::UNKNOWN),
        2 => domain.split_into(leaf, factor, facts, [name(), name()], Span::UNKNOWN),
        3 | 4 if domain.leaves.len() > 1 => {
            let (a, b) = (random.below(domain.leaves.len()), random.below(domain.leaves.len()));
            if a != b {
                let (a, b) = (domain.leaves[a], domain.leaves[b]);
                domain.merge(a, b, facts, name(), Span::UNKNOWN);
            }
        }
        _ => {
            let (left, right) = (random.below(3) as i128 - 1, random.below(3) as i128);
            domain.resize(leaf, left, right, facts, name(), Span::UNKNOWN);
        }
    }
}

/// The ops of one domain on the axes of another one that `map` has, some of them in another way, and some more.
fn like(random: &mut Random, model: &Domain, map: &mut [Option<usize>], domain: &mut Domain, facts: &Facts) {
    for (op, _) in &model.ops {
        let inputs: Option<Vec<usize>> = op.inputs().into_iter().map(|a| map[a]).collect();
        let Some(inputs) = inputs.filter(|inputs| inputs.iter().all(|a| domain.leaves.contains(a))) else { continue };
        let before = domain.axes.len();
        match (op, random.below(8)) {
            (_, 0) => {
                random_op(random, domain, facts);
                continue;
            }
            (Op::Split { factor, outer, .. }, other) => {
                let count = model.axes[*outer].extent.as_constant();
                match (factor.as_constant(), count) {
                    (Some(by), _) => {
                        // A near miss now and then.
                        let by = if other == 1 { by + 1 } else { by };
                        domain.split_by(inputs[0], by, facts, [name(), name()], Span::UNKNOWN);
                    }
                    (None, Some(count)) => {
                        domain.split_into(inputs[0], count, facts, [name(), name()], Span::UNKNOWN);
                    }
                    _ => continue,
                }
            }
            (Op::Merge { .. }, 1) => {
                domain.merge(inputs[1], inputs[0], facts, name(), Span::UNKNOWN);
            }
            (Op::Merge { .. }, _) => {
                domain.merge(inputs[0], inputs[1], facts, name(), Span::UNKNOWN);
            }
            (Op::Resize { left, right, .. }, _) => {
                domain.resize(inputs[0], *left, *right, facts, name(), Span::UNKNOWN);
            }
            (Op::Swizzle { .. }, _) => continue,
        }
        for (output, own) in op.outputs().into_iter().zip(before..) {
            map[output] = Some(own);
        }
    }
    for _ in 0..random.below(3) {
        random_op(random, domain, facts);
    }
}

#[test]
fn axes_that_are_alike_have_one_value_at_every_live_point() {
    let dims: Vec<Dim> = ["M", "N"].map(|name| Dim { name: name.into(), kind: DimKind::Size }).into();
    let facts = Facts::new(&dims, &[]).unwrap();
    let mut random = Random(3);
    // Axes beyond the roots that are alike, those among them whose split is by a factor known at launch, and points.
    let (mut found, mut at_launch, mut points) = (0, 0, 0_u64);
    for _ in 0..4000 {
        let extent = |random: &mut Random| match random.below(4) {
            0 => Expr::constant(random.below(8) as i128 + 1),
            1 => Expr::var(0).add(&Expr::constant(random.below(3) as i128)),
            n => Expr::var(n as u32 - 2),
        };
        let roots: Vec<Expr> = (0..1 + random.below(2)).map(|_| extent(&mut random)).collect();
        let mut reader = Domain::new(roots.iter().map(|e| (name(), e.clone(), AxisKind::Data)));
        for _ in 0..random.below(5) {
            random_op(&mut random, &mut reader, &facts);
        }
        let symbolic = Symbolic::new(&reader, &facts);
        // What is held has roots where the reader has axes, or beside one.
        let mut map = vec![None; reader.axes.len()];
        let (mut at, mut own) = (Vec::new(), Vec::new());
        for n in 0..1 + random.below(2) {
            let axis = if random.below(3) > 0 { n % reader.roots.len() } else { random.below(reader.axes.len()) };
            let shift = Expr::constant(if random.below(5) == 0 { 1 } else { 0 });
            map[axis] = (shift == Expr::constant(0)).then_some(n).or(map[axis]);
            at.push(symbolic.values[axis].add(&shift));
            own.push(if random.below(4) == 0 { extent(&mut random) } else { reader.axes[axis].extent.clone() });
        }
        let mut held = Domain::new(own.iter().map(|e| (name(), e.clone(), AxisKind::Data)));
        like(&mut random, &reader, &mut map, &mut held, &facts);
        let alike = alike(&held, &at, &reader, &symbolic, &facts);
        let inner = |axis: &usize| !held.roots.contains(axis) && alike[*axis].is_some();
        found += (0..alike.len()).filter(inner).count();
        let is_at_launch = |op: &Op| match op {
            Op::Split { factor, outer, .. } => factor.as_constant().is_none() && alike[*outer].is_some(),
            _ => false,
        };
        at_launch += held.ops.iter().filter(|(op, _)| is_at_launch(op)).count();
        for dims in [[1, 1], [2, 3], [5, 4], [6, 7], [1, 9]] {
            let (Some(here), Some(there)) = (Concrete::new(&reader, &dims), Concrete::new(&held, &dims)) else {
                continue;
            };
            if here.points() > 3000 {
                continue;
            }
            let all: Vec<usize> = (0..reader.leaves.len()).collect();
            here.visit::<()>(&all, |leaves| {
                let values = here.from_leaves(leaves);
                if (0..values.len()).all(|axis| here.in_bounds(&values, axis)) {
                    let variables = symbolic.assign(&dims, leaves);
                    let roots: Option<Vec<i128>> = at.iter().map(|e| e.eval(&variables)).collect();
                    let theirs = there.from_roots(&roots.expect("indices have values"));
                    for (axis, of) in alike.iter().enumerate() {
                        let Some(of) = of else { continue };
                        assert_eq!(
                            theirs[axis], values[*of],
                            "{axis} as {of} at {leaves:?} of {dims:?}\n{reader:?}\n{held:?}\n{at:?}"
                        );
                        points += 1;
                    }
                }
                std::ops::ControlFlow::Continue(())
            });
        }
    }
    assert!(found > 2000 && at_launch > 50 && points > 100_000, "{found} {at_launch} {points}");
}
