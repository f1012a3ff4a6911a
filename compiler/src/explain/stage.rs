//! What was derived of a stage.

use std::fmt::Write as _;

use tilewright_kernel::algorithm::{Reduction, Value};
use tilewright_kernel::info::{KernelInfo, ParameterKind};
use tilewright_kernel::tensor_map::Swizzle;

use super::copies::{self, Holes};
use super::served;
use crate::domain::{Binding, Op, Unit};
use crate::extent::Expr;
use crate::holes::{Predicate, Reason, Side};
use crate::kernel_ir::Wgmma;
use crate::memory::fetch;
use crate::plan::cycles::Degree;
use crate::plan::product::{Factor, Matrices, Operand};
use crate::plan::roles::ProducerConsumers;
use crate::plan::staged::{Staged, Way};
use crate::plan::{Analysed, Demand};
use crate::region::Fit;
use crate::schedule::accesses::Listed;
use crate::schedule::vector::Class;
use crate::schedule::{self, Along, Mma, Stage, computed_at_reads, rows_of};
use crate::source::ast::Place;

/// What an instance of a stage holds.
fn region(stage: &Stage) -> String {
    let (program, facts) = (&stage.program, &stage.facts);
    let algorithm = &program.algorithm;
    let show = |e: &Expr| facts.normal(e).show(&|v| program.dim_name(v as u16).to_owned());
    let equation = &algorithm.equations[stage.equation];
    let first = &algorithm.components[equation.components.range().start];
    let elements = stage.elements();
    let bytes = show(&elements.scale(i128::from(algorithm.types[first.value as usize].bytes())));
    let axes = &algorithm.axis_lists[equation.axes.range()];
    let along = |c: &Along| {
        let names = c.dims.iter().map(|d| algorithm.axes[axes[*d] as usize].name.to_string());
        let step = if c.step == 1 { String::new() } else { format!(", every {}", c.step) };
        format!("{} = {}{step}", names.collect::<Vec<_>>().join("·"), show(&c.start))
    };
    let extents: Vec<String> = stage.coordinates.iter().map(|c| show(&c.most)).collect();
    let extents = if extents.is_empty() { "1".to_owned() } else { extents.join(" x ") };
    let starts: Vec<String> = stage.coordinates.iter().map(along).collect();
    let starts =
        if starts.is_empty() { String::new() } else { format!("    region starts at {}\n", starts.join(", ")) };
    let claim = match stage.fit {
        Fit::Exact => "all of it is asked for",
        Fit::Minimal => "no smaller box holds what is asked for",
        Fit::Sound => "it holds what is asked for",
    };
    let needed = stage.needed.as_ref().filter(|_| stage.fit != Fit::Exact).map(show);
    let needed = needed.map_or_else(String::new, |n| format!(": at most {n} of {}", show(&elements)));
    format!("    region {extents}, {bytes} bytes: {claim}{needed}\n{starts}")
}

/// How many buffers a stage in shared memory has, and how they are filled, if not each in its turn by ordinary stores.
fn buffers(out: &mut String, analysed: &Analysed, is_handed: bool) {
    let Analysed { stage, vector, symbolic, accesses, .. } = analysed;
    let show = |e: &Expr| e.show(&|v| stage.program.dim_name(v as u16).to_owned());
    if stage.ring > 1 {
        let _ = writeln!(out, "    ring of {} buffers", stage.ring);
    }
    if stage.layout.written.is_some() {
        let _ = writeln!(
            out,
            "    {}: room for {} elements",
            stage.layout.display(&stage.domain),
            show(&stage.layout.places())
        );
    }
    let Some(read) = accesses.iter().find(|a| !a.is_write).filter(|_| stage.fetches) else { return };
    let Ok(lanes) = fetch::unit(stage, vector.as_ref(), symbolic, read) else { return };
    let bytes = lanes * stage.program.parameters[usize::from(read.parameter)].element.bytes();
    let ahead = match stage.ring {
        _ if is_handed => "ahead of the roles that read them".to_owned(),
        1 => "awaited where it stands".to_owned(),
        ring => format!("{} ahead", copies::counted(i128::from(ring) - 1, "iteration")),
    };
    let _ = writeln!(out, "    fetched by cp.async, {bytes} bytes at a time, {ahead}");
}

/// How long an access of a warp takes.
fn cycles(degree: &Degree) -> String {
    let Degree { first, worst, .. } = degree;
    let taken = copies::counted(i128::from(first.taken), "cycle");
    let least = if first.taken == first.least {
        "no bank conflicts".to_owned()
    } else {
        format!("{} without bank conflicts", first.least)
    };
    let worse = worst.taken * first.least > first.taken * worst.least;
    let worst = if worse { format!("; at worst {} instead of {}", worst.taken, worst.least) } else { String::new() };
    format!("{taken} for a warp, {least}{worst}")
}

/// The memory of all blocks for what a stage keeps in global memory.
fn workspaces(out: &mut String, stage: &Stage, info: &KernelInfo) {
    let names = |d: u16| info.dim_name(d);
    let algorithm = &stage.program.algorithm;
    let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
    for component in components.iter().filter(|_| stage.is_in_workspace()) {
        for workspace in info.workspace.iter().filter(|w| w.name == component.name) {
            let (name, element) = (&workspace.name, workspace.element);
            let all = workspace.elements.display(&names);
            let _ = writeln!(out, "    workspace {name}: {all} of {element}, an equal part for each block");
        }
    }
}

/// Everything about a stage.
pub(super) fn stage(out: &mut String, stages: &[Analysed], analysed: &Analysed, info: &KernelInfo) {
    let about = Explained { stages, analysed, info };
    about.place(out);
    about.axes(out);
    about.product(out);
    about.across_blocks(out);
    about.computed_at_reads(out);
    for staged in &analysed.staged {
        about.copy(out, staged);
    }
    let threads = analysed.stage.distribution.block;
    let busy = analysed.stage.busy(threads.into());
    if busy < i128::from(threads) {
        let _ = writeln!(out, "    threads: {busy} of {threads} have work, the others are idle");
    }
    about.predicates(out);
    about.accesses(out);
}

struct Explained<'a> {
    stages: &'a [Analysed],
    analysed: &'a Analysed,
    info: &'a KernelInfo,
}

impl Explained<'_> {
    fn show(&self, e: &Expr) -> String {
        let stage = &self.analysed.stage;
        stage.facts.normal(e).show(&|v| stage.program.dim_name(v as u16).to_owned())
    }

    /// Where the stage stands, who runs it, and what an instance holds.
    fn place(&self, out: &mut String) {
        let stage = &self.analysed.stage;
        let place = match stage.place {
            Place::Global => "global memory",
            Place::Shared => "shared memory",
            Place::Registers => "registers",
        };
        let attach = stage.attach.as_ref().map(|a| (a.stage, a.leaf));
        let at = attach.or(stage.beside.as_ref().map(|b| (b.stage, b.leaf)));
        let at = at.and_then(|(of, leaf)| Some((&self.stages.get(of)?.stage, leaf)));
        let at = at.map_or_else(String::new, |(of, leaf)| format!(" at {}.{}", of.name, of.domain.axes[leaf].name));
        let per = match stage.owner {
            Unit::Thread => " per thread",
            Unit::Warpgroup => " per warpgroup",
            Unit::Warp => " per warp",
            Unit::Cluster => " per cluster",
            Unit::Cta | Unit::Grid => "",
        };
        let by = schedule::role_name(&stage.program, stage.role);
        let by = by.map_or_else(|| "all threads".to_owned(), |role| format!("role {role}"));
        let _ = writeln!(out, "stage {} in {place}{per}{at}, run by {by}", stage.name);
        if stage.attach.is_some() {
            out.push_str(&region(stage));
            let at = self.stages.iter().position(|s| std::ptr::eq(s, self.analysed));
            let is_handed = at.and_then(|at| ProducerConsumers::of_stage(self.stages, at)).is_some();
            buffers(out, self.analysed, is_handed);
            workspaces(out, stage, self.info);
        }
    }

    /// Its loops, and who is given their iterations.
    fn axes(&self, out: &mut String) {
        let stage = &self.analysed.stage;
        let of_product = stage.product.as_ref().map_or_else(Vec::new, Mma::serial);
        for leaf in &stage.domain.leaves {
            let axis = &stage.domain.axes[*leaf];
            let binding = match axis.binding {
                Binding::Serial if of_product.contains(leaf) => "in products".to_owned(),
                Binding::Serial => "loop".to_owned(),
                Binding::Unroll(None) => "unrolled".to_owned(),
                Binding::Unroll(Some(n)) => format!("loop, {n} at a time"),
                Binding::Vector => "vector".to_owned(),
                Binding::Grid => {
                    let groups = stage.raster.group_of(*leaf).map(|size| format!(", in groups of {size}"));
                    let order = if stage.raster.is_descending(*leaf) { ", descending" } else { "" };
                    format!("grid{}{order}", groups.unwrap_or_default())
                }
                Binding::Cta => "cta".to_owned(),
                units => schedule::unit_name(&stage.program, units),
            };
            let _ = writeln!(out, "    axis {}: {}, {binding}", axis.name, self.show(&axis.extent));
        }
    }

    /// How tensor cores compute it, how lanes load what these read, and how they store what these leave.
    fn product(&self, out: &mut String) {
        let loaded = self.analysed.fragment.as_ref().and_then(|fragment| fragment.matrices.as_ref());
        for (how, found) in [("loaded by ldmatrix", loaded), ("stored by stmatrix", self.analysed.stored.as_ref())] {
            let Some(Matrices { count, transposed, .. }) = found else { continue };
            let way = if *transposed { ", transposed" } else { "" };
            let matrices = if *count == 1 { "one matrix".to_owned() } else { format!("{count} matrices") };
            let _ = writeln!(out, "    {how}, {matrices} at a time{way}");
        }
        let (Some(mma), Some(product)) = (&self.analysed.stage.product, &self.analysed.product) else { return };
        let columns = product.columns;
        let depth = Wgmma::depth(mma.bytes());
        let types = match product.types {
            [left, right] if left == right => left.to_string(),
            [left, right] => format!("{left} and {right}"),
        };
        let pending = match mma.inflight {
            _ if !mma.is_async() => "at once".to_owned(),
            _ if self.analysed.behind.is_some() => "a block behind".to_owned(),
            0 => "each group awaited at once".to_owned(),
            n => format!("{} under way", copies::counted(n.into(), "group")),
        };
        let _ = writeln!(
            out,
            "    product by {}, m{}n{columns}k{depth} of {types}, {pending}",
            mma.engine,
            rows_of(mma.engine),
        );
        for (name, factor) in ["A", "B"].iter().zip(&product.factors) {
            let Operand { copy, across, leading, stride, swizzle, .. } = match factor {
                Factor::Shared(operand) => operand,
                Factor::Held(held) => {
                    let _ = writeln!(out, "    {name} is {}, in registers", held.name);
                    continue;
                }
            };
            let way = if *across { "across k" } else { "along k" };
            let span =
                if *swizzle == Swizzle::None { "no swizzle".to_owned() } else { format!("swizzle {}", swizzle.span()) };
            let _ = writeln!(out, "    {name} is {copy}, {way}: {span}, LBO {leading}, SBO {stride}");
        }
    }

    /// What blocks share of its results.
    fn across_blocks(&self, out: &mut String) {
        let stage = &self.analysed.stage;
        let shared: Vec<&str> = stage.across_blocks().map(|axis| stage.domain.axes[axis].name.as_str()).collect();
        if shared.is_empty() {
            return;
        }
        let names = |d: u16| self.info.dim_name(d);
        let _ = writeln!(
            out,
            "    blocks that differ in {} share results: {}",
            shared.join(", "),
            match stage.is_atomic() {
                true => "they combine them by atomic operations, and the last to arrive takes them",
                false => "the last to arrive merges their partials",
            }
        );
        if let Some(attach) = &stage.attach {
            let host = &self.stages[attach.stage].stage;
            let place = format!("{}.{}", host.name, host.domain.axes[attach.leaf].name);
            let _ = writeln!(
                out,
                "    after it, what stands in {place} is for that block alone; these blocks are neighbours"
            );
        }
        let own = format!("{}_", stage.name);
        for workspace in self.info.workspace.iter().filter(|w| w.name.starts_with(&own)) {
            let (name, element) = (&workspace.name, workspace.element);
            let zero = if workspace.zeroed { ", zero before and after" } else { "" };
            let _ = writeln!(out, "    workspace {name}: {} of {element}{zero}", workspace.elements.display(&names));
        }
    }

    fn computed_at_reads(&self, out: &mut String) {
        let stage = &self.analysed.stage;
        let algorithm = &stage.program.algorithm;
        for component in computed_at_reads(algorithm, stage.equation, &served(self.stages)) {
            let component = &algorithm.components[component];
            let _ = match component.parameter {
                Some(_) => {
                    writeln!(out, "    computes {} again where it reads it: an output is not read back", component.name)
                }
                None => writeln!(out, "    computes {} where it reads it", component.name),
            };
        }
    }

    /// A staged copy that stands in its loops.
    fn copy(&self, out: &mut String, staged: &Staged) {
        let stage = &self.analysed.stage;
        let place = staged.attach.innermost().map_or("the block", |leaf| &stage.domain.axes[leaf].name);
        let boxes = staged.axes.iter().map(|a| match a.boxed.element_stride {
            1 => format!("{} of {}", a.boxed.box_size, a.name),
            e => format!("{} of {} by {e}", a.boxed.box_size, a.name),
        });
        let _ = writeln!(
            out,
            "    copy {} {} {} at {place}: {}{} of {} bytes, boxes {}{}",
            staged.name,
            if staged.way == Way::Load { "of" } else { "to" },
            stage.program.parameters[usize::from(staged.parameter)].name,
            if staged.ring == 1 { String::new() } else { format!("ring of {}, ", staged.ring) },
            copies::counted(staged.copies(), if staged.has_map() { "tile" } else { "run" }),
            staged.copy_bytes(),
            boxes.collect::<Vec<_>>().join(" × "),
            match staged.swizzle {
                Swizzle::None => String::new(),
                swizzle => format!(", swizzle {}", swizzle.span()),
            },
        );
        if let Some(role) = schedule::role_name(&stage.program, staged.role) {
            let _ = writeln!(out, "    copy {} is made by role {role}", staged.name);
        }
        for (_, read) in &staged.memory {
            let (name, first) = (&staged.name, read.display(stage));
            let _ = match read.listed {
                Some(Listed { count, .. }) => {
                    writeln!(out, "    copy {name} lies where {first} and the next say, {count} in all")
                }
                None => writeln!(out, "    copy {name} lies where {first} says"),
            };
        }
        let _ = writeln!(out, "    copy {} {}", staged.name, copies::form(staged));
        if let Some(multicast) = &staged.multicast {
            let _ = writeln!(out, "    copy {} {}", staged.name, copies::multicast(multicast, staged));
        }
        let _ = writeln!(out, "    copy {} {}", staged.name, Holes::of(staged, self.analysed, &stage.facts));
    }

    /// What keeps its holes out.
    fn predicates(&self, out: &mut String) {
        let stage = &self.analysed.stage;
        for at in &self.analysed.holes.divisible {
            if let Op::Split { input, factor, .. } = &stage.domain.ops[*at].0 {
                let axis = &stage.domain.axes[*input];
                let _ = writeln!(
                    out,
                    "    no holes: {} divides {} of {}",
                    self.show(factor),
                    self.show(&axis.extent),
                    axis.name
                );
            }
        }
        let predicate = |p: &Predicate| {
            let axis = &stage.domain.axes[p.axis];
            match p.side {
                Side::Lower => format!("{} >= 0", axis.name),
                Side::Upper => format!("{} < {}", axis.name, self.show(&axis.extent)),
            }
        };
        for (at, p) in self.analysed.holes.kept.iter().enumerate() {
            let waiver = self.analysed.waived.iter().find(|w| w.predicate == at);
            let waiver = waiver.map_or_else(String::new, |w| match &w.demand {
                Demand::Anything => ", not around the terms: what they make of holes is not stored".to_owned(),
                Demand::Clipped => ", waived in the staged entry: such elements are not stored".to_owned(),
                Demand::Zero(copies) if copies.is_empty() => {
                    ", waived in the staged entry: such terms change nothing".to_owned()
                }
                Demand::Zero(copies) => {
                    format!(", waived in the staged entry: zeros of {} change nothing", copies.join(" and "))
                }
            });
            let _ = writeln!(out, "    predicate {}{waiver}", predicate(p));
        }
        for (p, reason) in &self.analysed.holes.dropped {
            let why = match reason {
                Reason::Theorem(0) => "it is checked already".to_owned(),
                Reason::Theorem(n) => format!("Theorem {n}"),
                Reason::Enumeration => "every point was visited".to_owned(),
                Reason::Arithmetic => "linear arithmetic".to_owned(),
            };
            let _ = writeln!(out, "    no predicate {}: {why}", predicate(p));
        }
    }

    /// Bank conflicts, vectors, and what atomic operations write.
    fn accesses(&self, out: &mut String) {
        let stage = &self.analysed.stage;
        let algorithm = &stage.program.algorithm;
        for component in &algorithm.components[algorithm.equations[stage.equation].components.range()] {
            let Value::Scatter { op, .. } = algorithm.values[component.value as usize] else { continue };
            let how = if op.is_some() { "by atomic operations" } else { "each to its place" };
            let _ = writeln!(out, "    terms go to {} one by one, {how}", component.name);
            if component.parameter.and_then(|parameter| self.info.fill(parameter)).is_some() {
                let what = match op {
                    Some(Reduction::Max) => "the least number of its type",
                    Some(Reduction::Min) => "the greatest number of its type",
                    _ => "0",
                };
                let _ = writeln!(out, "    a launch fills {} with {what} before", component.name);
            }
        }
        for found in &self.analysed.banks {
            let what = if found.is_write { "write" } else { "read" };
            let cycles = found.degree.as_ref().map_or_else(|| "cycles depend on sizes".to_owned(), cycles);
            let _ = writeln!(out, "    {what} of {} in shared memory: {cycles}", found.buffer);
        }
        if let Some(vector) = &self.analysed.vector {
            for access in &self.analysed.accesses {
                let tensor = &stage.program.parameters[usize::from(access.parameter)];
                if !matches!(tensor.kind, ParameterKind::Tensor(_)) {
                    continue;
                }
                let what = if access.is_write { "write" } else { "read" };
                let how = match vector.class(access, &self.analysed.symbolic, &stage.facts) {
                    Class::Uniform => "one element for all lanes".to_owned(),
                    Class::Vector => format!("vector of {} {}", vector.lanes, tensor.element),
                    Class::PerLane => "each lane its own element".to_owned(),
                };
                let _ = writeln!(out, "    {what} of {}: {how}", tensor.name);
            }
        }
    }
}
