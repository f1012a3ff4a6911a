//! The loops of a stage under construction, and how blocks are divided.

use crate::compose::ast::LETTERS;

/// What a loop is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Serial,
    Unrolled,
    Grid,
    Cta,
    Group,
    Warp,
    Thread,
    Vector,
}

/// A loop.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub(super) name: String,
    /// Letters of the axes that it is made of.
    pub(super) roots: Vec<String>,
    pub(super) reduced: bool,
    /// Its extent, if a literal or a fact bounds it.
    pub(super) most: Option<i64>,
    /// Whether a split made it and it is the inner part.
    pub(super) inner: bool,
    /// By how many elements of its axis an iteration moves, if that is a number; 1 for axes that are merged.
    pub(super) step: Option<i64>,
    pub(super) given: Given,
}

/// The loops of a stage under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Nest {
    pub(super) loops: Vec<Loop>,
    pub(super) ops: Vec<String>,
    pub(super) fresh: usize,
    /// Whether its reduction goes in order, so that its terms stay with one thread.
    pub(super) ordered: bool,
}

/// How a block is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Units {
    One,
    Threads(i64),
    /// Warps with all their lanes.
    Warps(i64),
    /// Warpgroups by their threads.
    Groups(i64),
    /// So many parts of so many threads.
    Parts(i64, i64),
    /// Units of the kernel's own, in so many warps.
    Own(Own, i64),
}

/// A unit of a kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// One lane of each warp.
    Column,
    /// One half of the block.
    Half,
    /// Two threads, side by side.
    Pair,
}

impl Own {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Half => "half",
            Self::Pair => "pair",
        }
    }

    /// Its declaration.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Column => "unit column { domain: [block / 32, 32], box: [block / 32, 1] }",
            Self::Half => "unit half { domain: [2, block / 2], box: [1, block / 2] }",
            Self::Pair => "unit pair { domain: [block / 2, 2], box: [1, 2] }",
        }
    }
}

impl Units {
    pub(super) fn threads(self) -> i64 {
        match self {
            Self::One => 1,
            Self::Threads(n) => n,
            Self::Warps(n) => 32 * n,
            Self::Groups(n) => 128 * n,
            Self::Parts(n, of) => n * of,
            Self::Own(_, n) => 32 * n,
        }
    }
}

/// A step on the way to a stage: a loop of another one, outermost first.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) stage: String,
    pub(super) name: String,
    pub(super) given: Given,
}

impl Nest {
    pub(super) fn name(&mut self, of: &str) -> String {
        self.fresh += 1;
        format!("{}{}", of.chars().next().unwrap_or('q'), self.fresh)
    }

    pub(super) fn split(&mut self, at: usize, by: i64, into: bool) {
        let old = self.loops[at].clone();
        let (outer, inner) = (self.name(&old.name), self.name(&old.name));
        self.ops.push(format!("split {} {} {by} -> {outer}, {inner}", old.name, if into { "into" } else { "by" }));
        let ceil = |n: i64| (n + by - 1) / by;
        let (few, rest) = (Some(by), old.most.map(ceil));
        let (a, b) = if into { (few, rest) } else { (rest, few) };
        let step = if into { b.filter(|b| b * by == old.most.unwrap_or(0)) } else { b };
        let step = step.zip(old.step).map(|(a, b)| a * b);
        let made = |name: String, most: Option<i64>, inner: bool, step: Option<i64>| Loop {
            name,
            most,
            inner,
            step,
            ..old.clone()
        };
        self.loops.splice(at..=at, [made(outer, a, into, step), made(inner, b, !into, old.step)]);
    }

    pub(super) fn merge(&mut self, at: usize) {
        let (a, b) = (self.loops[at].clone(), self.loops[at + 1].clone());
        let name = self.name("p");
        self.ops.push(format!("merge {}, {} -> {name}", a.name, b.name));
        let roots = [a.roots, b.roots].concat();
        let most = a.most.zip(b.most).map(|(a, b)| a * b);
        self.loops.splice(at..=at + 1, [Loop { name, roots, most, inner: a.inner && b.inner, step: Some(1), ..b }]);
    }

    pub(super) fn give(&mut self, at: usize, given: Given, unit: &str) {
        self.ops.push(format!("bind {}: {unit}", self.loops[at].name));
        self.loops[at].given = given;
    }

    pub(super) fn order(&mut self, order: &[usize]) {
        if order.iter().enumerate().all(|(n, at)| n == *at) {
            return;
        }
        let loops: Vec<Loop> = order.iter().map(|at| self.loops[*at].clone()).collect();
        let names: Vec<&str> = loops.iter().map(|l| l.name.as_str()).collect();
        self.ops.push(format!("reorder {}", names.join(", ")));
        self.loops = loops;
    }
}

/// Parts of one axis stay in their order: what is inside a place is then a run of it.
pub(super) fn outer_first(loops: &[Loop], order: &mut [usize]) {
    for root in LETTERS {
        let of_root = |n: &usize| loops[*n].roots.iter().any(|r| r == root) && loops[*n].roots.len() == 1;
        let places: Vec<usize> = (0..order.len()).filter(|p| of_root(&order[*p])).collect();
        let mut own: Vec<usize> = places.iter().map(|p| order[*p]).collect();
        own.sort_unstable();
        places.iter().zip(own).for_each(|(p, n)| order[*p] = n);
    }
}

pub(super) fn steps(stage: &str, nest: &Nest, last: usize) -> Vec<Step> {
    let step = |l: &Loop| Step { stage: stage.to_owned(), name: l.name.clone(), given: l.given };
    nest.loops.iter().take(last + 1).map(step).collect()
}

/// The `reduce` ops that follow a `like`, where axes of the same letter correspond.
pub(super) fn reduces_alike(nest: &Nest, reduced: &[&Loop]) -> Vec<String> {
    let mut ops = Vec::new();
    for (given, by) in [(&[Given::Thread, Given::Warp, Given::Group][..], ""), (&[Given::Cta], " by cluster")] {
        let fit = nest.loops.iter().filter(|l| given.contains(&l.given));
        let names: Vec<&str> = fit
            .filter(|l| l.roots.iter().all(|r| reduced.iter().any(|o| o.name == *r)))
            .map(|l| l.name.as_str())
            .collect();
        if !names.is_empty() {
            ops.push(format!("reduce {}{by}", names.join(", ")));
        }
    }
    ops
}
