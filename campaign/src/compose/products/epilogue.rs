//! What is made of the sums: equations, and the tensors that they read.

use super::{Also, Between, Product, Step};
use crate::compose::ast::{Cond, Equation, Expr, Extent, Index, Input, Reduction, Type};

/// The name of a tensor that a step reads, if it reads one.
fn tensor(step: Step, n: usize) -> String {
    let name = match step {
        Step::Bias => "bias",
        Step::Scale => "alpha",
        Step::RowScale => "scale",
        Step::Residual(_) => "r",
        _ => "row",
    };
    format!("{name}{n}")
}

fn index(axis: &str) -> Index {
    Index::Axis(axis.to_owned(), 1, 0)
}

/// An element of the result at the axes of the product.
pub(super) fn at(product: &Product, tensor: &str) -> Expr {
    let axes = product.batch.map(|_| "z").into_iter().chain(["m", "n"]);
    Expr::Read(tensor.to_owned(), axes.map(index).collect(), None)
}

/// Axes of the result with their extents.
pub(super) fn axes(product: &Product, lengths: [Extent; 3]) -> Vec<(String, Extent)> {
    let batch = product.batch.map(|n| ("z", Extent::literal(n)));
    let axes = batch.into_iter().chain([("m", lengths[0]), ("n", lengths[1])]);
    axes.map(|(name, extent)| (name.to_owned(), extent)).collect()
}

/// The tensors and scalars that the steps read.
pub(super) fn inputs(product: &Product, lengths: [Extent; 3]) -> Vec<Input> {
    let sum = product.sum();
    let of = |(n, step): (usize, &Step)| {
        let name = tensor(*step, n);
        match step {
            Step::Bias => Some(Input::new(&name, sum, vec![lengths[1]])),
            Step::RowScale => Some(Input::new(&name, sum, vec![lengths[0]])),
            Step::Scale => Some(Input { by_value: true, ..Input::new(&name, sum, Vec::new()) }),
            Step::Residual(ty) => {
                let shape = axes(product, lengths).into_iter().map(|axis| axis.1).collect();
                Some(Input::new(&name, *ty, shape))
            }
            _ => None,
        }
    };
    product.steps.iter().enumerate().filter_map(of).collect()
}

/// Reductions of rows that the steps read: their names, and how they reduce.
pub(super) fn rows(product: &Product) -> Vec<(String, Reduction)> {
    let of = |(n, step): (usize, &Step)| match step {
        Step::Row(by) => Some((tensor(*step, n), *by)),
        _ => None,
    };
    product.steps.iter().enumerate().filter_map(of).collect()
}

/// What the steps make of a value of the sums' type.
fn value(product: &Product, mut value: Expr) -> Expr {
    let sum = product.sum();
    let binary = |op, a: Expr, b: Expr| Expr::Binary(op, Box::new(a), Box::new(b));
    let read = |name: &str, axis: &str| Expr::Read(name.to_owned(), vec![index(axis)], None);
    for (n, step) in product.steps.iter().enumerate() {
        let name = tensor(*step, n);
        value = match step {
            Step::Bias => binary("+", value, read(&name, "n")),
            Step::Scale => binary("*", value, Expr::Scalar(name)),
            Step::RowScale => binary("*", value, read(&name, "m")),
            Step::Relu => binary("max", value, Expr::Literal(0)),
            Step::Residual(ty) => binary("+", value, cast(*ty, at(product, &name), sum)),
            Step::Negative => Expr::Unary("-", Box::new(value)),
            Step::Triangle => {
                let below = Cond::Indices(index("n"), "<=", index("m"));
                Expr::If(Box::new(below), Box::new(value), Box::new(Expr::Literal(0)))
            }
            Step::Row(_) => {
                let axes = product.batch.map(|_| "z").into_iter().chain(["m"]);
                binary("-", value, Expr::Read(name, axes.map(index).collect(), None))
            }
        };
    }
    value
}

fn cast(from: Type, value: Expr, to: Type) -> Expr {
    if from == to { value } else { Expr::Cast(from, Box::new(value)) }
}

/// All equations, those of readers first.
pub(super) fn equations(product: &Product, lengths: [Extent; 3], terms: Expr) -> Vec<Equation> {
    let sum = product.sum();
    let axes = axes(product, lengths);
    let sums = at(product, "acc");
    let made = value(product, sums.clone());
    let (last, between) = match product.between {
        Between::Output => (made, None),
        _ => (at(product, "x"), Some(Equation::new("x", sum, axes.clone(), made, false))),
    };
    let mut outer = axes.clone();
    if product.transposed {
        let last = outer.len() - 1;
        outer.swap(last - 1, last);
    }
    let mut all = vec![Equation::new("c", product.output, outer, cast(sum, last, product.output), true)];
    match product.also {
        Some(Also::Equation) => all.push(Equation::new("d", sum, axes.clone(), sums.clone(), true)),
        Some(Also::Tuple) => {
            all[0].value = Expr::Tuple(vec![all[0].value.clone(), sums.clone()]);
            all[0].also = vec![("d".to_owned(), sum)];
        }
        None => {}
    }
    all.extend(between);
    for (name, by) in rows(product) {
        let rest = axes[..axes.len() - 1].to_vec();
        let reduced = vec![("n".to_owned(), lengths[1])];
        all.push(Equation::new(&name, sum, rest, Expr::reduce(by, reduced, sum, sums.clone()), false));
    }
    all.push(Equation::new("acc", sum, axes, terms, false));
    all
}
