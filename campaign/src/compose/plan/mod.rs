//! Random schedules: all ops, stages in every place, and what they do to each other.
//!
//! The draw follows the loops that ops make, so that it can keep the obvious rules; it does not always do so. It can be
//! given features to draw for ([`directed`]): what is rare otherwise is then drawn mostly.

mod copy;
mod nest;
mod output;
mod place;
mod roles;
mod stage;
mod tile;
mod units;

use super::ast::{Equation, Expr, Extent, Index, Kernel, Schedule};
use super::draw::online;
use crate::rng::Rng;
use nest::{Given, Loop, Nest, Step, Units};
use roles::Roles;

struct Plan<'a> {
    rng: &'a mut Rng,
    kernel: &'a mut Kernel,
    units: Units,
    cluster: Option<i64>,
    persistent: bool,
    roles: Option<Roles>,
    /// Scheduled stages with their loops.
    nests: Vec<(String, Nest)>,
    /// Whether what is being placed is read at indices that no loop bounds.
    wild: bool,
    /// Where each scheduled stage stands: the loops around it.
    around: Vec<(String, Vec<Step>)>,
    /// Features to draw for.
    wanted: &'a [&'static str],
}

/// Gives a kernel a schedule.
pub fn schedule(kernel: &mut Kernel, rng: &mut Rng) {
    directed(kernel, rng, &[]);
}

/// Gives a kernel a schedule that has some features, if it comes to that.
pub fn directed(kernel: &mut Kernel, rng: &mut Rng, wanted: &[&'static str]) {
    let mut plan = Plan {
        rng,
        kernel,
        units: Units::One,
        cluster: None,
        persistent: false,
        roles: None,
        nests: Vec::new(),
        wild: false,
        around: Vec::new(),
        wanted,
    };
    plan.units();
    plan.cluster = plan.chance(14, &["cluster"]).then(|| *plan.rng.pick(&[1, 2, 2, 2, 2, 2, 4, 4, 4, 8]));
    plan.persistent = plan.chance(14, &["persistent"]);
    plan.roles();
    plan.all();
}

/// Which dimensions of which tensors an equation's axes index by themselves.
fn plain(kernel: &Kernel, stage: &str) -> Vec<(String, usize)> {
    let Some(equation) = kernel.equation(stage) else { return Vec::new() };
    let mut found: Vec<(String, usize)> = (0..equation.axes.len()).map(|n| (stage.to_owned(), n)).collect();
    equation.value.walk(&mut |e| {
        if let Expr::Read(tensor, indices, _) = e {
            let alone = |n: &usize| matches!(indices[*n], Index::Axis(_, 1, 0));
            found.extend((0..indices.len()).filter(alone).map(|n| (tensor.clone(), n)));
        }
    });
    found
}

/// Whether `like` finds anything.
fn alike(kernel: &Kernel, a: &str, b: &[(String, usize)]) -> bool {
    plain(kernel, a).iter().any(|p| b.contains(p))
}

fn bound(kernel: &Kernel, extent: Extent) -> Option<i64> {
    (0..3).try_fold(extent.plus, |sum, n| match extent.times[n] {
        0 => Some(sum),
        times => Some(sum + times * kernel.most[n]?),
    })
}

impl Plan<'_> {
    /// True in so many of 100 cases, and mostly if one of these features is wanted.
    fn chance(&mut self, percent: u32, features: &[&str]) -> bool {
        let wanted = self.wants(features);
        self.rng.chance(if wanted { percent.max(75) } else { percent })
    }

    fn wants(&self, features: &[&str]) -> bool {
        features.iter().any(|f| self.wanted.contains(f))
    }

    fn all(&mut self) {
        let outputs: Vec<Equation> = self.kernel.equations.iter().filter(|e| e.output).cloned().collect();
        for (n, output) in outputs.iter().enumerate() {
            self.output(output, n);
        }
        let rest: Vec<Equation> = self.kernel.equations.iter().filter(|e| !e.output).cloned().collect();
        for equation in &rest {
            // A sum that follows an extreme in one pass has no schedule: that of the extreme comes next.
            let follows = online::is_sum(equation);
            if follows
                && self.chance(
                    85,
                    &[
                        "online",
                        "online-several",
                        "online-min",
                        "online-squares",
                        "online-weights",
                        "online-choice",
                        "online-place",
                    ],
                )
            {
                let around = self.common(&equation.name);
                self.around.push((equation.name.clone(), around));
                continue;
            }
            let reduces = !equation.value.reductions().is_empty();
            let percent = if self.wants(&["inline"]) { 40 } else { 96 };
            let readers: Vec<String> = (self.kernel.equations.iter())
                .filter(|e| !e.output && e.value.tensors().contains(&&*equation.name))
                .map(|e| e.name.clone())
                .collect();
            let lost = readers.iter().any(|r| self.several(r)) && self.rng.chance(85);
            if !lost && self.rng.chance(if reduces { percent } else { 85 }) {
                self.stage(equation);
                self.follow(equation);
            } else {
                if reduces {
                    self.kernel.inlined.push(equation.name.clone());
                }
                let around = self.common(&equation.name);
                self.around.push((equation.name.clone(), around));
            }
        }
        // What follows nothing is computed at each read.
        for equation in rest.iter().filter(|equation| online::is_sum(equation)) {
            let (own, schedules) = (&equation.name, &self.kernel.schedules);
            let names = |op: &String| op.starts_with("online ") && op.contains(&format!("> {own}"));
            let several = |op: &String| op.starts_with("online ") && op.contains(&format!(", {own} "));
            let is_followed = schedules.iter().any(|s| {
                // Weights are added up with what they are weights of.
                let of_mean = self.kernel.equation(&s.name).is_some_and(online::is_weighted) && *own == online::SUMS[1];
                s.ops.iter().any(|op| names(op) || several(op) || of_mean && op.starts_with("online "))
            });
            if !is_followed && !schedules.iter().any(|s| s.name == *own) && !self.kernel.inlined.contains(own) {
                self.kernel.inlined.push(own.clone());
            }
        }
        let copies = ["copy", "copy-of-stage", "tma", "cp_async", "both-ways", "copies-of-one", "copy-in-stage"];
        for n in 0..3 {
            if self.chance([45, 22, 8][n], if n == 0 { &copies } else { &["copies-of-one"] }) {
                self.copy(n);
            }
        }
        if self.chance(9, &["store", "both-ways", "role-stores"]) {
            self.store();
        }
        self.unroll_around();
        self.launch();
    }

    /// Sums that follow the extreme of a stage, over one of its loops over terms.
    fn follow(&mut self, equation: &Equation) {
        let sums: Vec<String> = online::sums(self.kernel, &equation.name)
            .into_iter()
            .filter(|sum| {
                !self.kernel.schedules.iter().any(|s| s.name == *sum)
                    && !self.kernel.inlined.contains(&(*sum).to_owned())
            })
            .map(str::to_owned)
            .collect();
        if sums.is_empty() {
            return;
        }
        let Some((_, nest)) = self.nests.iter().find(|n| n.0 == equation.name) else { return };
        let terms = |l: &&Loop| l.reduced && matches!(l.given, Given::Serial | Given::Unrolled);
        let loops: Vec<String> = nest.loops.iter().filter(terms).map(|l| l.name.clone()).collect();
        // Mostly the outermost one: others run twice.
        let over = match loops.first() {
            None => return,
            Some(first) if self.rng.chance(75) => first.clone(),
            Some(_) => self.rng.pick(&loops).clone(),
        };
        let op = format!("online {} -> {} over {over}", equation.name, sums.join(", "));
        if let Some(schedule) = self.kernel.schedules.iter_mut().find(|s| s.name == equation.name) {
            schedule.ops.push(op);
        }
    }

    fn launch(&mut self) {
        let total = self.units.threads();
        let mut items = Vec::new();
        if let Some(n) = self.cluster
            && self.chance(60, &["cluster"])
        {
            items.push(format!("cluster({n})"));
        }
        if let Some(roles) = &self.roles {
            items.push(roles.item(&self.kernel.schedules));
        } else if total > 1 && self.rng.chance(75) {
            items.push(format!("threads({total})"));
        }
        let tiles = self.nests.iter().any(|n| n.1.loops.iter().any(|l| l.given == Given::Grid));
        if self.persistent && (tiles || self.rng.chance(8)) {
            items.push("persistent".to_owned());
        }
        if self.chance(6, &["dependent"]) {
            items.push("dependent".to_owned());
        }
        self.kernel.launch = items;
    }

    fn nest_of(&self, equation: &Equation) -> Nest {
        let mut loops: Vec<Loop> = Vec::new();
        let mut push = |name: &str, extent: Extent, reduced: bool| {
            loops.push(Loop {
                name: name.to_owned(),
                roots: vec![name.to_owned()],
                reduced,
                most: bound(self.kernel, extent),
                inner: false,
                step: Some(1),
                given: Given::Serial,
            });
        };
        equation.axes.iter().for_each(|(a, e)| push(a, *e, false));
        if let [(_, axes)] = equation.value.reductions()[..] {
            axes.iter().for_each(|(a, e)| push(a, *e, true));
        }
        let by = equation.value.reductions();
        let ordered = by.iter().any(|r| r.0.is_ordered());
        Nest { loops, ordered, ..Nest::default() }
    }

    fn push(
        &mut self,
        name: String,
        place: String,
        at: Option<(String, String)>,
        clauses: Vec<String>,
        ops: Vec<String>,
        nest: &Nest,
    ) {
        let loops = nest.loops.iter().map(|l| l.name.clone()).collect();
        self.kernel.schedules.push(Schedule { name, copy: None, place, at, clauses, ops, loops });
    }
}
