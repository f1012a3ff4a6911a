//! What the equations of a kernel have.

use std::collections::BTreeSet;

use crate::compose::ast::{Cond, Equation, Expr, Extent, Index, Kernel, Reduce, Reduction, Stride, Type};

type Found = BTreeSet<&'static str>;

fn add(found: &mut Found, is: bool, feature: &'static str) {
    if is {
        found.insert(feature);
    }
}

pub(super) fn equations(kernel: &Kernel, found: &mut Found) {
    for input in &kernel.inputs {
        add(found, input.by_value, "by-value");
        add(found, !input.by_value && input.shape.is_empty(), "one-element");
        add(found, input.indices && input.ty.name() != "i32", "gather-other-type");
        add(found, !input.indices && input.ty != kernel.ty, "other-input-type");
        add(found, input.ty.is_storage(), "stored-type");
        add(found, input.ty == Type::Bool, "bool-input");
        let is_zero = |s: &Stride| matches!(s, Stride::Extent(e) if *e == Extent::literal(0));
        add(found, input.strides.iter().any(is_zero), "zero-stride");
        strided(&input.strides, ["input-strides", "input-permuted"], found);
    }
    let pitches: Vec<Stride> =
        kernel.declared().into_iter().flat_map(|d| d.3).filter(|s| matches!(s, Stride::Pitch(_))).collect();
    add(found, (1..pitches.len()).any(|n| pitches[..n].contains(&pitches[n])), "shared-pitch");
    for equation in &kernel.equations {
        let readers: Vec<&Equation> = kernel.equations.iter().filter(|e| e.reads(equation)).collect();
        add(found, readers.len() > 1, "diamond");
        let reads_stage = |e: &Expr| e.tensors().iter().any(|t| kernel.equation(t).is_some());
        add(found, !equation.output && reads_stage(&equation.value), "chain");
        add(found, equation.output && readers.iter().any(|e| e.name != equation.name), "output-read");
        add(found, equation.value.tensors().is_empty(), "no-reads");
        let other = if equation.output { "other-output-type" } else { "other-stage-type" };
        add(found, equation.ty != kernel.ty, other);
        add(found, equation.ty == Type::Bool, if equation.output { "bool-output" } else { "bool-stage" });
        strided(&equation.strides, ["output-strides", "output-permuted"], found);
        let reductions = equation.value.reductions().len();
        add(found, (0..equation.axes.len()).any(|n| equation.first(n) != 0), "lower-bound");
        add(found, equation.in_place && equation.scatter.is_none(), "in-place");
        add(found, equation.in_place && equation.scatter.is_none() && reductions > 0, "in-place-reduction");
        if let Some(scatter) = &equation.scatter {
            found.insert("scatter");
            add(found, matches!(scatter.by, Some(Reduction::Max | Reduction::Min)), "scatter-extreme");
            add(found, scatter.by.is_none(), "scatter-only");
            add(found, !equation.in_place, "scatter-output");
            add(found, scatter.bound < equation.axes.len(), "scatter-own-axes");
            let computed = |index: &Index| matches!(index, Index::Affine(..) | Index::Over(..));
            add(found, scatter.places.iter().any(computed), "scatter-arithmetic");
            let of_table = |i: &Index| matches!(i, Index::Gather(_, inner, _) if inner.iter().any(Index::gathers));
            add(found, scatter.places.iter().any(|place| place.has(&of_table)), "scatter-table");
        }
        if let Expr::Tuple(parts) = &equation.value {
            found.insert("tuple");
            add(found, parts.iter().any(|part| !part.reductions().is_empty()), "tuple-reduction");
            add(found, equation.in_place, "tuple-in-place");
            add(found, !equation.output, "tuple-stage");
            add(found, equation.also.iter().any(|also| also.1 != equation.ty), "tuple-mixed-types");
        }
        add(found, reductions > 1, "two-reductions");
        equation.value.walk(&mut |e| expression(kernel, equation, e, found));
    }
}

fn strided(strides: &[Stride], [dense, permuted]: [&'static str; 2], found: &mut Found) {
    let is_one = |s: &Stride| matches!(s, Stride::Extent(e) if e.times == [0; 3] && e.plus != 0);
    add(found, !strides.is_empty(), dense);
    add(found, strides.last().is_some_and(|s| !is_one(s)) && strides.iter().any(is_one), permuted);
}

fn reduction(equation: &Equation, r: &Reduce, found: &mut Found) {
    add(found, true, if equation.output { "output-reduction" } else { "stage-reduction" });
    let by = match r.by {
        Reduction::Sum => "sum",
        Reduction::UnorderedSum => "unordered",
        Reduction::OnlineSum => "online-sum",
        Reduction::OrderedSum => "ordered",
        Reduction::Prod => "prod",
        Reduction::Dot => "dot",
        Reduction::Max => "max",
        Reduction::Min => "min",
        Reduction::Argmax => "argmax",
        Reduction::Argmin => "argmin",
        Reduction::Fold => "fold",
        Reduction::Last => "fold-ordered",
        Reduction::Any => "any",
        Reduction::All => "all",
        Reduction::States(states) if states.is_ordered() => "fold-states-ordered",
        Reduction::States(_) => "fold-states",
    };
    found.insert(by);
    if let Reduction::States(states) = r.by {
        add(found, states.has_second(), "fold-payload");
        let types = states.types(r.of);
        add(found, types.iter().any(|t| *t != r.of), "fold-mixed-types");
        add(found, equation.output, "states-output");
    }
    add(found, r.by == Reduction::Dot && r.of != equation.ty, "dot-narrow");
    add(found, r.axes.len() > 1, "reduce-two-axes");
    add(found, r.inferred, "range-inferred");
    for (from, to) in r.ranges.iter().flatten() {
        let kind = match (&from.axis, &to.axis) {
            (None, None) => "range-literal",
            (None, _) => "range-prefix",
            (_, None) => "range-suffix",
            _ => "range-window",
        };
        found.insert(kind);
        let ends = || [from, to].into_iter().filter_map(|end| end.axis.as_ref());
        add(found, ends().any(|a| a.1 != 1), "range-scaled");
        add(found, ends().any(|a| r.axes.iter().any(|own| own.0 == a.0)), "range-nested");
        add(found, from.plus.times == [0; 3] && from.plus.plus < 0, "range-below");
        add(found, from.memory.is_some(), "range-from-memory");
        add(found, to.memory.is_some(), "range-to-memory");
    }
    let mut nested = false;
    r.term.walk(&mut |e| nested |= matches!(e, Expr::Reduce(_)));
    add(found, nested, "argument-reduced");
}

fn condition(c: &Cond, found: &mut Found) {
    match c {
        Cond::And(a, b) => {
            add(found, true, "condition-and");
            condition(a, found);
            condition(b, found);
        }
        Cond::Or(a, b) => {
            add(found, true, "condition-or");
            condition(a, found);
            condition(b, found);
        }
        Cond::Not(a) => condition(a, found),
        Cond::Flag(_) => add(found, true, "flag"),
        Cond::Indices(..) => add(found, true, "condition-indices"),
        Cond::Axis(..) | Cond::Value(..) | Cond::Alike(..) => {}
    }
}

/// Whether a condition bounds an axis that a read inside has an offset to.
fn guards(c: &Cond, values: &[&Expr]) -> bool {
    match c {
        Cond::Axis(axis, ..) => values.iter().any(|value| {
            let mut shifted = false;
            value.walk(&mut |e| {
                if let Expr::Read(_, indices, None) = e {
                    shifted |= indices.iter().any(|i| matches!(i, Index::Axis(a, _, plus) if a == axis && *plus != 0));
                }
            });
            shifted
        }),
        Cond::And(a, b) | Cond::Or(a, b) => {
            let mut right = values.to_vec();
            if let Cond::Value(_, value, ..) = b.as_ref() {
                right.push(value);
            }
            guards(a, &right) || guards(b, values)
        }
        Cond::Not(a) => guards(a, values),
        Cond::Value(..) | Cond::Alike(..) | Cond::Flag(_) | Cond::Indices(..) => false,
    }
}

fn expression(kernel: &Kernel, equation: &Equation, e: &Expr, found: &mut Found) {
    match e {
        Expr::If(c, a, b) => {
            found.insert("condition");
            condition(c, found);
            add(found, guards(c, &[a, b]), "guarded-read");
        }
        Expr::Reduce(r) => reduction(equation, r, found),
        Expr::Test(c) => condition(c, found),
        Expr::Size(_) => add(found, true, "size-as-value"),
        Expr::Cast(_, inner) => {
            found.insert("cast");
            add(found, matches!(inner.as_ref(), Expr::Read(..)), "cast-of-read");
        }
        Expr::Unary(op, _) => {
            let feature = match *op {
                "-" => "negation",
                "abs" => "abs",
                "exp" => "exp",
                _ => "floor",
            };
            found.insert(feature);
        }
        Expr::Fma(_) => add(found, true, "fma"),
        Expr::Binary(op, ..) => {
            add(found, op.ends_with("_num"), "max_num");
            add(found, matches!(*op, "/" | "%"), "quotient-of-values");
            add(found, matches!(*op, "&" | "|" | "^" | "<<" | ">>"), "bits");
        }
        Expr::Read(tensor, indices, or) => {
            add(found, or.as_ref().is_some_and(|or| !matches!(**or, Expr::Literal(_))), "or-value");
            read(kernel, tensor, indices, or.is_some(), found);
        }
        Expr::Literal(_) | Expr::Axis(_) | Expr::Scalar(_) | Expr::Tuple(_) => {}
    }
}

fn read(kernel: &Kernel, tensor: &str, indices: &[Index], or: bool, found: &mut Found) {
    add(found, or, "or");
    let halo = |i: &&Index| matches!(i, Index::Axis(_, _, plus) if *plus != 0);
    let halos = indices.iter().filter(halo).count();
    add(found, halos > 0, "halo");
    add(found, halos > 1, "halo-2d");
    add(found, halos > 0 && kernel.equation(tensor).is_some(), "halo-of-stage");
    let axes: Vec<&String> =
        indices.iter().filter_map(|i| if let Index::Axis(axis, ..) = i { Some(axis) } else { None }).collect();
    add(found, axes.windows(2).any(|w| w[0] > w[1]), "transposed");
    let mut of_memory: Vec<&str> = indices.iter().flat_map(Index::tensors).collect();
    of_memory.sort_unstable();
    add(found, of_memory.windows(2).any(|w| w[0] == w[1]), "gather-twice");
    for (n, index) in indices.iter().enumerate() {
        let is_sum = |i: &Index| matches!(i, Index::Both(parts) if parts.iter().all(Index::gathers));
        add(found, index.has(&is_sum), "gather-sum");
        add(found, matches!(index, Index::Axis(_, 2.., _)), "strided");
        add(found, matches!(index, Index::Mirrored(..)), "mirrored");
        add(found, matches!(index, Index::Pair(..)), "pair");
        add(found, index.has(&|i| matches!(i, Index::Both(..))), "sum-of-indices");
        let is_gather = |i: &Index| matches!(i, Index::Gather(..));
        let gathers = index.gathers();
        let of_axis =
            matches!(index, Index::Over(of, by, _) if by.times == [0; 3] && matches!(**of, Index::Axis(_, 1, 0)));
        let whole = matches!(index, Index::Affine(..) | Index::Over(..));
        add(found, of_axis, "quotient");
        add(found, gathers && whole, "gather-arithmetic");
        add(found, !gathers && whole && !of_axis, "quotient-of-index");
        add(found, index.has(&|i| matches!(i, Index::Over(_, by, _) if by.times != [0; 3])), "quotient-by-size");
        add(found, gathers, "gather");
        add(found, gathers && n > 0 && n + 1 == indices.len(), "gather-innermost");
        let within = |i: &Index, is: &dyn Fn(&[Index]) -> bool| matches!(i, Index::Gather(_, inner, _) if is(inner));
        let quotient = |inner: &[Index]| inner.iter().any(|i| matches!(i, Index::Over(_, _, false)));
        add(found, index.has(&|i| within(i, &quotient)), "gather-quotient");
        add(found, index.has(&|i| within(i, &|inner| inner.len() > 1)), "gather-2d");
        add(found, index.has(&|i| within(i, &|inner| inner.iter().any(is_gather))), "gather-of-gather");
    }
}
