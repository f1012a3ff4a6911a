//! Random schedules: mostly sensible ones, with noise.

use crate::ast::{Equation, Fact, Index, Kernel, Op, Role, Size};
use crate::interpret::reductions;
use crate::rng::Rng;

/// A leaf of the iteration domain.
#[derive(Clone, Debug)]
struct Leaf {
    name: String,
    /// Its extent, if it is a literal.
    extent: Option<i64>,
    /// An axis of the result rather than of the reduction.
    data: bool,
    bound: bool,
}

struct Builder<'r> {
    rng: &'r mut Rng,
    leaves: Vec<Leaf>,
    ops: Vec<Op>,
    fresh: usize,
    /// Product of the literal extents bound to threads, to warps and to warpgroups.
    threads: i64,
    warps: i64,
    warpgroups: i64,
    /// Dimensions that facts fix.
    fixed: &'r [(String, i64)],
}

/// Gives every output a schedule, or most of them.
pub(super) fn attach(rng: &mut Rng, kernel: &mut Kernel) {
    let mut needed: i64 = 1;
    let fixed: Vec<(String, i64)> = kernel
        .facts
        .iter()
        .filter_map(|f| if let Fact::Equal(d, v) = f { Some((d.clone(), *v)) } else { None })
        .collect();
    for equation in kernel.equations.clone() {
        let is_output = kernel.parameter(&equation.targets[0]).is_some_and(|p| p.role != Role::Input);
        if !is_output || rng.chance(4) {
            continue;
        }
        let leaves = leaves(&equation, &fixed);
        let mut builder = Builder {
            rng,
            leaves,
            ops: Vec::new(),
            fresh: 100 * kernel.schedules.len(),
            threads: 1,
            warps: 0,
            warpgroups: 0,
            fixed: &fixed,
        };
        builder.build();
        let here = match (builder.warpgroups, builder.warps) {
            (0, 0) => builder.threads,
            (0, warps) => warps.saturating_mul(32),
            (groups, _) => groups.saturating_mul(128),
        };
        needed = needed.max(here);
        kernel.schedules.push((equation.targets[0].clone(), builder.ops));
    }
    kernel.threads = match rng.below(10) {
        0..5 => Some(needed.clamp(1, 1024)),
        5 => Some((needed + 31) / 32 * 32),
        6 if rng.chance(50) => Some(*rng.pick(&[1, 3, 32, 64, 100])),
        _ => None,
    };
}

fn leaves(equation: &Equation, fixed: &[(String, i64)]) -> Vec<Leaf> {
    let dims = fixed.iter().cloned().collect();
    let extent = |size: &Size| size.names().all(|d| fixed.iter().any(|(name, _)| name == d)).then(|| size.value(&dims));
    let mut list: Vec<Leaf> = (equation.axes.iter())
        .map(|(name, size)| Leaf { name: name.clone(), extent: extent(size), data: true, bound: false })
        .collect();
    for bound in reductions(&equation.value).into_iter().flatten() {
        let literal = match (&bound.lower, &bound.upper) {
            (Index::Literal(a), Index::Literal(b)) => Some(b - a),
            _ => None,
        };
        list.push(Leaf { name: bound.axis.clone(), extent: literal, data: false, bound: false });
    }
    list
}

impl Builder<'_> {
    fn name(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    fn free(&self, data: bool) -> Vec<usize> {
        (0..self.leaves.len()).filter(|k| self.leaves[*k].data == data && !self.leaves[*k].bound).collect()
    }

    fn split(&mut self, at: usize, factor: i64, into: bool) {
        let names = [self.name("o"), self.name("v")];
        let leaf = self.leaves[at].clone();
        let other = leaf.extent.map(|e| (e + factor - 1).div_euclid(factor));
        let extents = if into { [Some(factor), other] } else { [other, Some(factor)] };
        let new = |k: usize| Leaf { name: names[k].clone(), extent: extents[k], data: leaf.data, bound: false };
        self.leaves.splice(at..=at, [new(0), new(1)]);
        let named = self.fixed.iter().find(|(_, v)| *v == factor).map(|(d, _)| d.clone());
        self.ops.push(Op::Split { input: leaf.name, into, factor, named, outputs: names });
    }

    fn merge(&mut self, from: usize, to: usize) {
        let name = self.name("m");
        let inputs: Vec<Leaf> = self.leaves[from..=to].to_vec();
        let extent = inputs.iter().map(|l| l.extent).try_fold(1_i64, |p, e| e.and_then(|e| p.checked_mul(e)));
        self.leaves.splice(from..=to, [Leaf { name: name.clone(), extent, data: inputs[0].data, bound: false }]);
        self.ops.push(Op::Merge(inputs.into_iter().map(|l| l.name).collect(), name));
    }

    /// Any two axes of a kind, in any order.
    fn merge_apart(&mut self, first: usize, second: usize) {
        let name = self.name("m");
        let inputs = [self.leaves[first].clone(), self.leaves[second].clone()];
        let extent = inputs[0].extent.zip(inputs[1].extent).and_then(|(a, b)| a.checked_mul(b));
        self.leaves[first] = Leaf { name: name.clone(), extent, ..inputs[0].clone() };
        self.leaves.remove(second);
        self.ops.push(Op::Merge(inputs.into_iter().map(|l| l.name).collect(), name));
    }

    fn noise(&mut self) {
        let data = self.rng.chance(75) || self.free(false).is_empty();
        let free = self.free(data);
        if free.is_empty() {
            return;
        }
        let at = *self.rng.pick(&free);
        match self.rng.below(12) {
            0..4 => {
                let factor = *self.rng.pick(&[1, 2, 3, 4, 4, 5, 6, 8, 16, 24]);
                let into = self.rng.chance(25);
                self.split(at, factor, into);
            }
            4..6 => {
                let (l, r) = (self.rng.range(0, 3), self.rng.range(0, 3));
                let (l, r) = if self.rng.chance(10) { (l - 2, r - 1) } else { (l, r) };
                let name = self.name("p");
                let leaf = self.leaves[at].clone();
                self.leaves[at] = Leaf { name: name.clone(), extent: leaf.extent.map(|e| e + l + r), ..leaf.clone() };
                self.ops.push(Op::Resize(leaf.name, l, r, name));
            }
            6..8 if free.len() >= 2 => {
                let k = self.rng.below(free.len() - 1);
                let other = self.rng.below(free.len());
                if self.rng.chance(30) && other != k {
                    self.merge_apart(free[k], free[other]);
                } else if free[k + 1] == free[k] + 1 {
                    self.merge(free[k], free[k + 1]);
                }
            }
            8 if free.len() >= 2 => self.swizzle(&free),
            _ => {
                let mut order: Vec<usize> = free.clone();
                let k = self.rng.below(order.len());
                let other = self.rng.below(order.len());
                order.swap(k, other);
                let names: Vec<String> = order.iter().map(|i| self.leaves[*i].name.clone()).collect();
                let new: Vec<Leaf> = order.iter().map(|i| self.leaves[*i].clone()).collect();
                for (slot, leaf) in free.iter().zip(new) {
                    self.leaves[*slot] = leaf;
                }
                self.ops.push(Op::Reorder(names));
            }
        }
    }

    fn swizzle(&mut self, free: &[usize]) {
        let side = *self.rng.pick(&[2, 4, 8]);
        let (a, b) = (free[0], free[free.len() - 1]);
        // Later first, so that positions stay valid.
        self.split(b, side, false);
        self.split(a, side, false);
        let (x, y) = (a + 1, b + 2);
        let names = [self.leaves[x].name.clone(), self.leaves[y].name.clone()];
        let new = [self.name("x"), self.name("y")];
        self.leaves[x].name.clone_from(&new[0]);
        self.leaves[y].name.clone_from(&new[1]);
        self.ops.push(Op::Swizzle(names, new));
    }

    fn bind(&mut self, at: usize, unit: &'static str) {
        self.leaves[at].bound = true;
        self.ops.push(Op::Bind(vec![self.leaves[at].name.clone()], unit));
    }

    fn build(&mut self) {
        // Swizzles and merges before, threads and vectors after.
        let data = self.free(true);
        if data.len() >= 2 && self.rng.chance(45) {
            let from = self.rng.below(data.len() - 1);
            self.merge(data[from], data[data.len() - 1]);
        }
        for _ in 0..*self.rng.pick(&[0, 0, 0, 1, 1, 2, 3]) {
            self.noise();
        }
        let mut vector = None;
        let terms = self.free(false);
        if self.rng.chance(45)
            && let Some(last) = if self.rng.chance(8) { terms.last().copied() } else { self.free(true).last().copied() }
        {
            let lanes = *self.rng.pick(&[2, 4, 4, 4, 8, 8, 16, 1, 3]);
            if self.leaves[last].extent.is_none_or(|e| e > 1) {
                self.split(last, lanes, false);
                vector = Some(self.leaves[last + 1].name.clone());
            }
        }
        let is_vector = |l: &Leaf, v: &Option<String>| v.as_ref() == Some(&l.name);
        let candidates: Vec<usize> =
            self.free(true).into_iter().filter(|k| !is_vector(&self.leaves[*k], &vector)).collect();
        if !candidates.is_empty() && self.rng.chance(85) {
            let at = if self.rng.chance(60) { candidates[candidates.len() - 1] } else { *self.rng.pick(&candidates) };
            self.threads_of(at);
        }
        let mut together: Vec<String> = Vec::new();
        for at in self.free(true) {
            if !is_vector(&self.leaves[at], &vector) && self.rng.chance(65) {
                if self.rng.chance(15) {
                    self.leaves[at].bound = true;
                    together.push(self.leaves[at].name.clone());
                } else {
                    self.bind(at, "grid");
                }
            }
        }
        if !together.is_empty() {
            self.ops.push(Op::Bind(together, "grid"));
        }
        if let Some(vector) = vector {
            self.ops.push(Op::Vectorize(vector.clone()));
            if let Some(leaf) = self.leaves.iter_mut().find(|l| l.name == vector) {
                leaf.bound = true;
            }
        }
        let rest: Vec<usize> = (0..self.leaves.len()).filter(|k| !self.leaves[*k].bound).collect();
        for at in rest {
            let name = self.leaves[at].name.clone();
            if self.leaves[at].extent.is_some_and(|e| e <= 24) && self.rng.chance(30) {
                self.ops.push(Op::Unroll(name, None));
            } else if self.rng.chance(8) {
                self.ops.push(Op::Unroll(name, Some(self.rng.range(1, 5))));
            }
        }
        if self.rng.chance(55) {
            self.nest();
        }
    }

    fn threads_of(&mut self, at: usize) {
        if self.rng.chance(15) {
            // Warps with lanes inside, of the block or of its warpgroups; or warpgroups with threads inside.
            let groups = self.rng.chance(40).then(|| *self.rng.pick(&[1, 2, 3]));
            if let Some(groups) = groups.filter(|_| self.rng.chance(40)) {
                let threads = *self.rng.pick(&[33, 64, 128]);
                self.split(at, threads, false);
                self.split(at, groups, false);
                self.bind(at + 1, "warpgroup");
                self.bind(at + 2, "thread");
                self.warpgroups = groups;
                return;
            }
            self.split(at, 32, false);
            let warps = *self.rng.pick(&[1, 2, 3, 4]);
            self.split(at, warps, false);
            self.bind(at + 1, "warp");
            self.bind(at + 2, "thread");
            self.warps = warps;
            if let Some(groups) = groups {
                self.split(at, groups, false);
                self.bind(at + 1, "warpgroup");
                self.warpgroups = groups;
            }
            return;
        }
        let count = *self.rng.pick(&[1, 2, 3, 4, 8, 16, 32, 33, 64, 128]);
        let direct = self.leaves[at].extent.is_some_and(|e| e <= 128) && self.rng.chance(40);
        if direct {
            self.threads = self.leaves[at].extent.unwrap_or(1);
            self.bind(at, "thread");
        } else {
            self.split(at, count, false);
            self.threads = count;
            self.bind(at + 1, "thread");
        }
        if self.rng.chance(10) && at > 0 && !self.leaves[at - 1].bound && self.leaves[at - 1].data {
            let second = self.rng.range(2, 4);
            self.split(at - 1, second, false);
            self.threads *= second;
            self.leaves[at].bound = true;
            let name = self.leaves[at].name.clone();
            // Several axes in one op, in the order of the loops.
            let bind = self.ops.iter().rposition(|o| matches!(o, Op::Bind(..))).filter(|_| self.rng.chance(50));
            let mut names = vec![name];
            if let Some(Op::Bind(others, _)) = bind.map(|at| self.ops.remove(at)) {
                names.extend(others);
            }
            self.ops.push(Op::Bind(names, "thread"));
        }
    }

    /// Bound axes outside, data loops, reduction loops, the vector innermost.
    fn nest(&mut self) {
        let vector: Vec<String> =
            self.ops.iter().filter_map(|o| if let Op::Vectorize(v) = o { Some(v.clone()) } else { None }).collect();
        let class = |l: &Leaf| match (vector.contains(&l.name), l.bound, l.data) {
            (true, ..) => 3,
            (_, true, _) => 0,
            (_, _, true) => 1,
            _ => 2,
        };
        let mut sorted = self.leaves.clone();
        sorted.sort_by_key(class);
        if sorted.len() > 1 {
            self.ops.push(Op::Reorder(sorted.iter().map(|l| l.name.clone()).collect()));
            self.leaves = sorted;
        }
    }
}
