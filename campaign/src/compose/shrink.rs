//! The smallest kernel that still fails.

use super::ast::{Cond, Equation, Expr, Index, Kernel, Reduction, Type};
use super::tuned;

/// Makes a kernel smaller as long as `fails` says that it still does; tries at most so many.
pub fn shrink(kernel: &Kernel, mut tries: u32, fails: &dyn Fn(&Kernel) -> bool) -> Kernel {
    let mut small = kernel.clone();
    loop {
        let mut changed = false;
        for mut candidate in candidates(&small) {
            candidate.tidy();
            if candidate == small || candidate.equations.is_empty() {
                continue;
            }
            if tries == 0 {
                return small;
            }
            tries -= 1;
            if fails(&candidate) {
                small = candidate;
                changed = true;
                break;
            }
        }
        if !changed {
            return small;
        }
    }
}

/// Kernels without constants, and with fewer candidates.
fn constants(kernel: &Kernel) -> Vec<Kernel> {
    if kernel.tuned.is_empty() {
        return Vec::new();
    }
    let first: Vec<i64> = kernel.tuned.iter().map(|(_, candidates)| candidates[0]).collect();
    let mut list = Vec::new();
    for (n, (_, candidates)) in kernel.tuned.iter().enumerate() {
        for candidate in candidates {
            let mut values = first.clone();
            values[n] = *candidate;
            list.push(tuned::written_out(kernel, &values));
        }
    }
    for (n, (_, candidates)) in kernel.tuned.iter().enumerate().filter(|(_, c)| c.1.len() > 1) {
        for at in 0..candidates.len() {
            let mut candidate = kernel.clone();
            candidate.tuned[n].1.remove(at);
            list.push(candidate);
        }
    }
    list
}

/// Kernels that are a little smaller, those that lose most first.
fn candidates(kernel: &Kernel) -> Vec<Kernel> {
    let mut list = constants(kernel);
    let mut with = |change: &dyn Fn(&mut Kernel)| {
        let mut candidate = kernel.clone();
        change(&mut candidate);
        list.push(candidate);
    };
    // Ranges that are written stay what they are when something else is left out.
    with(&|k| {
        for equation in &mut k.equations {
            equation.value.walk_mut(&mut |e| {
                if let Expr::Reduce(r) = e {
                    r.inferred = false;
                }
            });
        }
    });
    with(&|k| retype(k, Type::F32));
    with(&|k| retype(k, Type::I32));
    for n in 0..kernel.equations.len() {
        if kernel.equations.iter().filter(|e| e.output).count() > 1 && kernel.equations[n].output {
            with(&|k| {
                let gone = k.equations.remove(n);
                k.schedules.retain(|s| s.name != gone.name);
            });
        }
        for part in (1..=kernel.equations[n].also.len()).rev() {
            with(&|k| without(&mut k.equations[n], part));
        }
        for at in 0..count(&kernel.equations[n].value) {
            for part in 0..3 {
                with(&|k| replace(&mut k.equations[n].value, at, part));
            }
        }
    }
    for n in 0..kernel.schedules.len() {
        if !kernel.schedules[n].place.is_empty() {
            with(&|k| drop(k.schedules.remove(n)));
        }
    }
    for n in 0..kernel.launch.len() {
        with(&|k| drop(k.launch.remove(n)));
    }
    for n in 0..kernel.schedules.len() {
        for op in (0..kernel.schedules[n].ops.len()).rev() {
            with(&|k| drop(k.schedules[n].ops.remove(op)));
        }
        for clause in 0..kernel.schedules[n].clauses.len() {
            with(&|k| drop(k.schedules[n].clauses.remove(clause)));
        }
    }
    for n in 0..kernel.inputs.len() {
        with(&|k| k.inputs[n].strides.clear());
    }
    for n in 0..kernel.equations.len() {
        with(&|k| k.equations[n].strides.clear());
        with(&|k| k.equations[n].lower.clear());
    }
    with(&|k| k.relation = None);
    for n in 0..3 {
        with(&|k| k.most[n] = None);
        with(&|k| k.divides[n] = 1);
        with(&|k| k.least[n] = 0);
    }
    for n in 0..kernel.equations.len() {
        for at in 0..count(&kernel.equations[n].value) {
            for kind in 0..6 {
                with(&|k| simplify(&mut k.equations[n].value, at, kind));
            }
        }
    }
    for n in (0..kernel.inputs.len()).filter(|n| kernel.inputs[*n].name.starts_with("size")) {
        with(&|k| drop(k.inputs.remove(n)));
    }
    list
}

/// Everything of one type, without casts.
fn retype(kernel: &mut Kernel, ty: Type) {
    kernel.ty = ty;
    kernel.inputs.iter_mut().filter(|i| !i.indices && i.ty != Type::Bool).for_each(|i| i.ty = ty);
    for equation in &mut kernel.equations {
        if equation.ty != Type::Bool {
            equation.ty = ty;
        }
        equation.value.walk_mut(&mut |e| match e {
            Expr::Cast(of, inner) if *of != Type::Bool => *e = inner.as_ref().clone(),
            Expr::Reduce(r) => r.of = ty,
            Expr::If(c, ..) => of_type(c, ty),
            _ => {}
        });
        if let Expr::Reduce(r) = &equation.value
            && let Reduction::States(states) = r.by
        {
            let types = states.types(ty);
            equation.ty = types.first().copied().unwrap_or(ty);
            equation.also.iter_mut().zip(&types[1..]).for_each(|(a, t)| a.1 = *t);
        }
        if let Expr::Tuple(_) = &equation.value {
            equation.also.iter_mut().for_each(|also| also.1 = ty);
        }
    }
}

/// Without one of the tensors that it defines by a tuple, but for the first one, after which schedules are named.
fn without(equation: &mut Equation, part: usize) {
    let Expr::Tuple(parts) = &mut equation.value else { return };
    parts.remove(part);
    equation.also.remove(part - 1);
    if let [only] = &parts[..] {
        equation.value = only.clone();
    }
}

fn of_type(condition: &mut Cond, ty: Type) {
    match condition {
        Cond::Value(of, ..) | Cond::Alike(of, ..) => *of = ty,
        Cond::And(a, b) | Cond::Or(a, b) => {
            of_type(a, ty);
            of_type(b, ty);
        }
        Cond::Not(a) => of_type(a, ty),
        Cond::Axis(..) | Cond::Indices(..) | Cond::Flag(_) => {}
    }
}

fn count(value: &Expr) -> usize {
    1 + value.parts().into_iter().map(count).sum::<usize>()
}

fn find<'a>(value: &'a mut Expr, at: &mut usize) -> Option<&'a mut Expr> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    value.parts_mut().into_iter().find_map(|part| find(part, at))
}

/// A part in the place of the whole. (What a reduction reduces has an axis too many; that is refused, and not taken.)
fn replace(value: &mut Expr, mut at: usize, part: usize) {
    if let Some(found) = find(value, &mut at)
        && let Some(part) = found.parts().get(part).map(|p| (*p).clone())
    {
        *found = part;
    }
}

fn simplify(value: &mut Expr, mut at: usize, kind: usize) {
    match (find(value, &mut at), kind) {
        (Some(Expr::Read(_, _, or)), 0) => *or = None,
        (Some(Expr::Read(_, indices, _)), 1) => {
            for index in indices {
                match index {
                    Index::Axis(_, factor, plus) => (*factor, *plus) = (1, 0),
                    _ => {
                        if let Some(first) = index.parts().first().cloned() {
                            *index = first;
                        }
                    }
                }
            }
        }
        (Some(Expr::Binary(op, ..)), 0) => *op = "+",
        (Some(Expr::Reduce(r)), 0) if !matches!(r.by, Reduction::States(_)) => r.by = Reduction::Sum,
        (Some(Expr::Reduce(r)), 1) => r.ranges.clear(),
        (Some(Expr::Reduce(r)), 4) => r.ranges.iter_mut().flatten().for_each(|(from, _)| from.memory = None),
        (Some(Expr::Reduce(r)), 5) => r.ranges.iter_mut().flatten().for_each(|(_, to)| to.memory = None),
        (Some(Expr::Reduce(r)), 2) if r.axes.len() > 1 => {
            r.axes.pop();
            r.ranges.truncate(r.axes.len());
        }
        (Some(Expr::Reduce(r)), 3) if r.axes.len() > 1 => {
            r.axes.remove(0);
            if !r.ranges.is_empty() {
                r.ranges.remove(0);
            }
        }
        (Some(Expr::If(c, ..)), n) => match (c.as_ref().clone(), n) {
            (Cond::And(a, _) | Cond::Or(a, _) | Cond::Not(a), 0) => *c = a,
            (Cond::And(_, b) | Cond::Or(_, b), 1) => *c = b,
            _ => {}
        },
        _ => {}
    }
}
