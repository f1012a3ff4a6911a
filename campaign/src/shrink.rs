//! Smaller kernels that still fail: fewer parts, simpler expressions, smaller numbers.

use tilewright_kernel::ElementType;

use crate::ast::{Kernel, Node, Op, Value};
use crate::generate::drop_unused;

/// The smallest kernel found for which `fails` still holds, with at most `tries` evaluations.
pub fn shrink(kernel: &Kernel, mut tries: u32, fails: &dyn Fn(&Kernel) -> bool) -> Kernel {
    let mut best = kernel.clone();
    loop {
        let mut progress = false;
        for mut candidate in candidates(&best) {
            drop_unused(&mut candidate);
            if candidate == best || tries == 0 {
                continue;
            }
            tries -= 1;
            if fails(&candidate) {
                best = candidate;
                progress = true;
                break;
            }
        }
        if !progress || tries == 0 {
            return best;
        }
    }
}

/// One step smaller, coarsest first.
fn candidates(kernel: &Kernel) -> Vec<Kernel> {
    let mut list = Vec::new();
    let mut with = |change: &dyn Fn(&mut Kernel)| {
        let mut smaller = kernel.clone();
        change(&mut smaller);
        list.push(smaller);
    };
    for e in 0..kernel.equations.len() {
        let targets = &kernel.equations[e].targets;
        with(&|k| {
            k.parameters.retain(|p| !targets.contains(&p.name));
            k.equations.remove(e);
            k.schedules.retain(|(s, _)| !targets.contains(s));
        });
    }
    for s in 0..kernel.schedules.len() {
        with(&|k| drop(k.schedules.remove(s)));
        for at in (0..kernel.schedules[s].1.len()).rev() {
            with(&|k| remove_op(&mut k.schedules[s].1, at));
        }
    }
    for e in 0..kernel.equations.len() {
        let count = nodes(&kernel.equations[e].value);
        for at in 0..count {
            for option in 0..4 {
                let mut smaller = kernel.clone();
                let mut position = at;
                if let Some(node) = find(&mut smaller.equations[e].value, &mut position)
                    && simplify(node, option)
                {
                    list.push(smaller);
                }
            }
        }
    }
    let mut with = |change: &dyn Fn(&mut Kernel)| {
        let mut smaller = kernel.clone();
        change(&mut smaller);
        list.push(smaller);
    };
    for f in 0..kernel.facts.len() {
        with(&|k| drop(k.facts.remove(f)));
    }
    with(&|k| k.threads = None);
    with(&|k| k.allow = None);
    for e in 0..kernel.equations.len() {
        with(&|k| k.equations[e].inclusive = false);
    }
    for p in 0..kernel.parameters.len() {
        with(&|k| k.parameters[p].strides = None);
    }
    for s in 0..kernel.schedules.len() {
        for at in 0..kernel.schedules[s].1.len() {
            with(&|k| match &mut k.schedules[s].1[at] {
                Op::Split { factor, named, .. } => (*factor, *named) = ((*factor / 2).max(1), None),
                Op::Resize(_, l, r, _) => (*l, *r) = (*l / 2, *r / 2),
                Op::Reorder(axes) if axes.len() > 2 => drop(axes.remove(0)),
                Op::Bind(axes, _) if axes.len() > 1 => drop(axes.pop()),
                _ => {}
            });
        }
    }
    list
}

/// Removes an op and lets later ops name its input where they named its output.
fn remove_op(ops: &mut Vec<Op>, at: usize) {
    let (old, new): (Vec<String>, Vec<String>) = match ops.remove(at) {
        Op::Split { input, outputs, .. } => (vec![outputs[1].clone(), outputs[0].clone()], vec![input, String::new()]),
        Op::Merge(inputs, output) => (vec![output], vec![inputs[inputs.len() - 1].clone()]),
        Op::Resize(input, _, _, output) => (vec![output], vec![input]),
        Op::Swizzle(inputs, outputs) => (outputs.to_vec(), inputs.to_vec()),
        Op::Reorder(_) | Op::Bind(..) | Op::Vectorize(_) | Op::Unroll(..) => return,
    };
    let rename = |name: &mut String| {
        if let Some(k) = old.iter().position(|o| o == name) {
            name.clone_from(&new[k]);
        }
    };
    for op in ops.iter_mut() {
        match op {
            Op::Split { input, .. } | Op::Resize(input, ..) | Op::Vectorize(input) | Op::Unroll(input, _) => {
                rename(input)
            }
            Op::Merge(list, _) | Op::Reorder(list) | Op::Bind(list, _) => {
                list.iter_mut().for_each(rename);
                list.retain(|n| !n.is_empty());
            }
            Op::Swizzle(inputs, _) => inputs.iter_mut().for_each(rename),
        }
    }
    ops.retain(|op| match op {
        Op::Split { input, .. } | Op::Resize(input, ..) | Op::Vectorize(input) | Op::Unroll(input, _) => {
            !input.is_empty()
        }
        Op::Merge(list, _) | Op::Reorder(list) | Op::Bind(list, _) => !list.is_empty(),
        Op::Swizzle(inputs, _) => inputs.iter().all(|i| !i.is_empty()),
    });
}

fn nodes(value: &Value) -> usize {
    1 + value.operands().into_iter().map(nodes).sum::<usize>()
}

fn find<'a>(value: &'a mut Value, position: &mut usize) -> Option<&'a mut Value> {
    if *position == 0 {
        return Some(value);
    }
    *position -= 1;
    for operand in value.operands_mut() {
        let count = nodes(operand);
        if *position < count {
            return find(operand, position);
        }
        *position -= count;
    }
    None
}

/// Replaces a node by something simpler; false if this option does not exist.
fn simplify(value: &mut Value, option: usize) -> bool {
    if option == 0 {
        if matches!(value.node, Node::Literal(_)) {
            return false;
        }
        let text = match value.ty {
            ElementType::Bool => "true".to_owned(),
            ty if ty.is_float() => format!("1.0{ty}"),
            ty => format!("1{ty}"),
        };
        value.node = Node::Literal(text);
        return true;
    }
    let ty = value.ty;
    let child = value.operands().into_iter().filter(|o| o.ty == ty).nth(option - 1).cloned();
    match child {
        Some(child) => {
            *value = child;
            true
        }
        None => false,
    }
}
