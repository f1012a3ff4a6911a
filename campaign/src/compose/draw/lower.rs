//! Intermediates whose axes do not begin at 0.

use crate::compose::ast::{Cond, Expr, Index, Kernel};
use crate::rng::Rng;

/// Gives axes of some intermediates another first value, in their equations and wherever they are read.
pub(super) fn bounds(kernel: &mut Kernel, rng: &mut Rng) {
    for n in 0..kernel.equations.len() {
        let equation = &mut kernel.equations[n];
        if equation.output || equation.axes.is_empty() || !rng.chance(9) {
            continue;
        }
        equation.lower = equation.axes.iter().map(|_| *rng.pick(&[0, 1, 1, 2, 3, -1, -2])).collect();
        let (axes, lower) = (equation.axes.clone(), equation.lower.clone());
        for ((axis, _), by) in axes.iter().zip(&lower).filter(|(_, by)| **by != 0) {
            shift(&mut equation.value, axis, *by);
        }
        let names: Vec<String> = equation.targets().into_iter().map(|t| t.0.to_owned()).collect();
        for reader in &mut kernel.equations {
            reader.value.walk_mut(&mut |e| {
                if let Expr::Read(tensor, indices, _) = e
                    && names.contains(tensor)
                {
                    let moved = indices.drain(..).zip(&lower).map(|(index, by)| index.plus(*by)).collect();
                    *indices = moved;
                }
            });
        }
    }
}

/// `axis - by` for an axis, everywhere in a value.
fn shift(value: &mut Expr, axis: &str, by: i64) {
    match value {
        Expr::Axis(a) if a == axis => {
            let op = if by < 0 { "+" } else { "-" };
            *value = Expr::Binary(op, Box::new(value.clone()), Box::new(Expr::Literal(by.abs())));
            return;
        }
        Expr::Read(_, indices, _) => {
            let moved: Vec<Index> = indices.drain(..).map(|index| index.shifted(axis, by)).collect();
            *indices = moved;
        }
        Expr::If(c, ..) | Expr::Test(c) => shift_in(c, axis, by),
        Expr::Reduce(r) => {
            let ends = r.ranges.iter_mut().flatten().flat_map(|(from, to)| [from, to]);
            for end in ends {
                end.memory = end.memory.take().map(|index| index.shifted(axis, by));
                if let Some((_, times)) = end.axis.as_ref().filter(|a| a.0 == axis) {
                    end.plus.plus -= by * times;
                }
            }
        }
        _ => {}
    }
    value.parts_mut().into_iter().for_each(|part| shift(part, axis, by));
}

/// The same in a condition; the values in it are parts of what it belongs to.
fn shift_in(condition: &mut Cond, axis: &str, by: i64) {
    match condition {
        Cond::Axis(a, _, extent) if a == axis => extent.plus += by,
        Cond::Indices(a, _, b) => [a, b].into_iter().for_each(|i| *i = i.clone().shifted(axis, by)),
        Cond::And(a, b) | Cond::Or(a, b) => {
            shift_in(a, axis, by);
            shift_in(b, axis, by);
        }
        Cond::Not(a) => shift_in(a, axis, by),
        Cond::Axis(..) | Cond::Value(..) | Cond::Alike(..) | Cond::Flag(_) => {}
    }
}
