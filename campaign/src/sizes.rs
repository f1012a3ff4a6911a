//! Random sizes that satisfy the facts: small, awkward, now and then empty.

use crate::ast::{Dims, Fact, Index, Kernel, Node, Role, Value};
use crate::interpret;
use crate::rng::Rng;

/// Most iterations of one launch, holes included.
const MOST_POINTS: i64 = 30_000;
/// Most operations of one launch.
const MOST_WORK: i64 = 3_000_000;
/// Most elements of one tensor.
const MOST_ELEMENTS: i64 = 20_000;

fn lcm(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}

/// What all facts `name % k == 0` say together.
fn multiple(kernel: &Kernel, name: &str) -> i64 {
    kernel.facts.iter().fold(1, |m, f| match f {
        Fact::Multiple(d, by) if d == name => lcm(m, *by),
        _ => m,
    })
}

fn size(kernel: &Kernel, name: &str, rng: &mut Rng, most: i64) -> i64 {
    let by = multiple(kernel, name);
    let awkward = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 23, 24, 31, 32, 33, 48, 64, 67];
    let mut value = *rng.pick(&awkward);
    if by > 1 {
        value = by * *rng.pick(&[1, 1, 2, 3, 5]);
    }
    value = value.min(most.max(by));
    for fact in &kernel.facts {
        match fact {
            Fact::Equal(d, v) if d == name => value = *v,
            Fact::AtMost(d, most) if d == name => value = value.min(*most / by * by),
            Fact::AtLeast(d, least) if d == name => value = value.max((*least + by - 1) / by * by),
            Fact::Residue(d, by, rest) if d == name => value = value / by * by + rest,
            _ => {}
        }
    }
    if rng.chance(2) { 0 } else { value }
}

/// Sizes and strides; none if no attempt satisfied the facts.
pub fn sample(kernel: &Kernel, rng: &mut Rng) -> Option<Dims> {
    let mut most = 80;
    for attempt in 0..60 {
        let mut dims = Dims::new();
        let mut strides: Vec<String> = Vec::new();
        for p in &kernel.parameters {
            strides.extend(p.strides.iter().flatten().filter_map(|s| s.dim.clone()));
        }
        for name in kernel.dims().iter().filter(|d| !strides.contains(d)) {
            dims.insert(name.clone(), size(kernel, name, rng, most));
        }
        for fact in &kernel.facts {
            if let Fact::Times(a, factor, b) = fact {
                let value = factor * dims.get(b).copied().unwrap_or(1);
                dims.insert(a.clone(), value);
            }
        }
        pitches(kernel, &mut dims, rng);
        if attempt % 8 == 7 {
            most = (most / 2).max(1);
        }
        let shapes_fit = kernel.parameters.iter().all(|p| p.sizes(&dims).iter().all(|s| *s >= 0));
        if kernel.admits(&dims) && shapes_fit && !kernel.overlaps(&dims) && is_small(kernel, &dims) {
            return Some(dims);
        }
    }
    None
}

/// Strides from the inside out, each at least as far as what is inside reaches.
fn pitches(kernel: &Kernel, dims: &mut Dims, rng: &mut Rng) {
    for p in &kernel.parameters {
        let Some(strides) = &p.strides else { continue };
        let sizes = p.sizes(dims);
        let mut reach = 1;
        for d in (0..sizes.len()).rev() {
            if let Some(name) = &strides[d].dim {
                let by = multiple(kernel, name);
                let least = reach + *rng.pick(&[0, 0, 1, 2, 5]);
                dims.insert(name.clone(), ((least + by - 1) / by * by).max(by));
            }
            reach = strides[d].value(dims) * sizes[d].max(1);
        }
    }
}

fn is_small(kernel: &Kernel, dims: &Dims) -> bool {
    let elements = |p: &crate::ast::Parameter| {
        p.sizes(dims).iter().zip(p.pitch(dims)).fold(1_i64, |n, (s, t)| n.saturating_add(s.saturating_mul(t)))
    };
    let points: Option<i64> =
        interpret::domains(kernel, dims).map(|list| list.iter().map(|d| d.points()).fold(0, i64::saturating_add));
    let outputs = kernel.equations.iter().filter(|e| kernel.parameter(&e.targets[0]).is_some());
    let work = outputs.fold(0_i64, |sum, e| {
        let elements = e.axes.iter().fold(1_i64, |n, (_, s)| n.saturating_mul(s.value(dims).max(1)));
        sum.saturating_add(elements.saturating_mul(work(kernel, &e.value, dims, 12)))
    });
    points.is_some_and(|p| p <= MOST_POINTS)
        && work <= MOST_WORK
        && kernel.parameters.iter().all(|p| elements(p) <= MOST_ELEMENTS)
}

/// Operations for one element, intermediates computed at every read, ranges that an axis bounds at their longest.
fn work(kernel: &Kernel, value: &Value, dims: &Dims, depth: u32) -> i64 {
    if depth == 0 {
        return i64::MAX;
    }
    let inside = value.operands().into_iter().fold(1_i64, |n, v| n.saturating_add(work(kernel, v, dims, depth - 1)));
    match &value.node {
        Node::Read { tensor, .. } => match kernel.computed(tensor) {
            Some(equation) => inside.saturating_add(work(kernel, &equation.value, dims, depth - 1)),
            None => inside,
        },
        Node::Reduce { axes, .. } | Node::Fold { axes, .. } => axes.iter().fold(inside, |n, bound| {
            let of = |i: &Index| interpret::constant(i, dims);
            let longest = dims.values().copied().max().unwrap_or(1).max(32);
            let terms = of(&bound.upper).zip(of(&bound.lower)).map_or(longest, |(u, l)| u - l);
            n.saturating_mul(terms.max(1))
        }),
        _ => inside,
    }
}

/// Whether every output is empty.
pub fn is_empty(kernel: &Kernel, dims: &Dims) -> bool {
    kernel.parameters.iter().filter(|p| p.role != Role::Input).all(|p| p.sizes(dims).contains(&0))
}
