//! What was found out about a stage, in words and expressions over the names of the source.

use super::copied::{CopyAxisView, CopyView, MulticastView, place};
use super::{product, threads};
use tilewright_compiler::domain::{AxisKind, Binding, Op};
use tilewright_compiler::explain::{copies, served};
use tilewright_compiler::extent::{Expr, Facts, Var};
use tilewright_compiler::holes::{Predicate, Reason, Side};
use tilewright_compiler::kernel_ir::Kernel;
use tilewright_compiler::plan::cycles::Request;
use tilewright_compiler::plan::staged::{self, Staged, Way};
use tilewright_compiler::plan::{Analysed, Demand, Waiver};
use tilewright_compiler::region::Fit;
use tilewright_compiler::schedule::vector::Class;
use tilewright_compiler::schedule::{Along, computed_at_reads, role_name, unit_name};
use tilewright_compiler::{domain::Unit, source::ast::Place};
use tilewright_kernel::KernelInfo;
use tilewright_kernel::algorithm::Source;
use tilewright_kernel::tensor_map::Swizzle;

/// An axis, leaf or not.
pub struct AxisView {
    pub name: String,
    pub extent: String,
    pub kind: &'static str,
    /// Who runs it; none for an axis that an op has consumed.
    pub binding: Option<String>,
    /// How many iterations a partly unrolled loop runs at a time.
    pub unroll: Option<i128>,
    /// Of an axis that blocks take in groups, the iterations of a group.
    pub raster: Option<i128>,
    /// Whether it is an axis of the grid that is taken from its last iteration on.
    pub descending: bool,
    /// Its value, over the leaves.
    pub index: String,
}

/// A transformation of axes.
pub struct OpView {
    pub op: &'static str,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// The same as positions in [`StageView::axes`].
    pub from: Vec<usize>,
    pub to: Vec<usize>,
    /// How many positions of a split are holes: those of its results that are no position of what it splits.
    pub holes: Option<String>,
    /// Whether a split leaves no holes; none for other ops.
    pub divisible: Option<bool>,
}

/// A comparison that holes may need.
pub struct PredicateView {
    pub condition: String,
    /// The axis whose ends it keeps: a position in [`StageView::axes`].
    pub axis: usize,
    /// Why it is not emitted; none if it is.
    pub removed: Option<Removed>,
    /// What makes it needless around the terms where copies are staged.
    pub waived: Option<Waived>,
}

/// Why a predicate need not be tested around the terms.
pub struct Waived {
    pub because: &'static str,
    /// Copies whose holes are zero.
    pub zeros_of: Vec<String>,
}

/// Why a predicate is not needed.
pub struct Removed {
    pub by: &'static str,
    pub theorem: Option<u8>,
}

/// An access of a tensor.
pub struct AccessView {
    pub tensor: String,
    pub write: bool,
    pub guarded: bool,
    pub indices: Vec<String>,
    pub offset: String,
    pub class: &'static str,
}

/// The order of a buffer.
pub struct LayoutView {
    /// Axis, most values, elements left free after it, elements between neighbours.
    pub axes: Vec<(String, [i128; 3])>,
    /// Bytes of the span; none without a swizzle.
    pub swizzle: Option<u32>,
    /// Elements that a slot has room for.
    pub places: i128,
    pub written: bool,
}

/// An access of shared memory, with the cycles of the first warp, of the slowest access, and what both would take
/// without bank conflicts.
pub struct SharedView {
    pub buffer: String,
    pub write: bool,
    pub cycles: Option<[u64; 4]>,
    /// What the first warp asks for first.
    pub request: Option<Request>,
}

/// What an instance of a stage inside others holds along a coordinate.
pub struct AlongView {
    /// The axes of the tensor: several, if it is a run through them in row-major order.
    pub axes: Vec<String>,
    pub start: String,
    pub step: i128,
    /// The most elements along it: a number, or an expression of sizes.
    pub most: String,
}

/// A stage.
pub struct StageView {
    pub name: String,
    pub place: &'static str,
    pub owner: &'static str,
    pub role: Option<String>,
    /// Where it stands: stage and axis.
    pub at: Option<(String, String)>,
    /// How many buffers it has.
    pub ring: u32,
    pub fetched: bool,
    pub region: Vec<AlongView>,
    /// Of a stage in shared memory.
    pub layout: Option<LayoutView>,
    pub shared: Vec<SharedView>,
    /// What the region holds beside what is asked for.
    pub fit: &'static str,
    pub axes: Vec<AxisView>,
    /// The loop nest, outermost first: positions in `axes`.
    pub loops: Vec<usize>,
    /// Runs of the block's threads that have iterations: first thread, how many. None where that is not known.
    pub threads: Option<Vec<(u32, u32)>>,
    pub ops: Vec<OpView>,
    pub predicates: Vec<PredicateView>,
    /// Axis and lanes.
    pub vector: Option<(String, i128)>,
    /// How tensor cores compute it; and how warps load it for them, and store what they leave.
    pub product: serde_json::Value,
    pub matrices: [serde_json::Value; 2],
    pub copies: Vec<CopyView>,
    pub accesses: Vec<AccessView>,
    /// Tensors that it computes where it reads them, and whether each is an output.
    pub computed: Vec<(String, bool)>,
}

/// The stages of a kernel, where `sizes` has the value of each dimension, or nothing: then expressions are over the
/// dimensions. `entry` is one of its entry points.
pub fn stages(info: &KernelInfo, entry: &Kernel, analysed: &[Analysed], sizes: &[i128]) -> Vec<StageView> {
    let served = served(analysed);
    let view = |(at, own): (usize, &Analysed)| {
        let threads = threads::of_stage(info, entry, analysed, at);
        let viewer =
            Viewer { info, entry, facts: &own.stage.facts, analysed: own, all: analysed, served: &served, sizes };
        StageView { threads, ..viewer.stage() }
    };
    analysed.iter().enumerate().map(view).collect()
}

impl Waived {
    fn of(waiver: &Waiver) -> Self {
        match &waiver.demand {
            Demand::Anything => Self { because: "not stored", zeros_of: Vec::new() },
            Demand::Zero(copies) => Self { because: "neutral", zeros_of: copies.clone() },
            Demand::Clipped => Self { because: "clipped", zeros_of: Vec::new() },
        }
    }
}

struct Viewer<'a> {
    info: &'a KernelInfo,
    entry: &'a Kernel,
    facts: &'a Facts,
    analysed: &'a Analysed,
    all: &'a [Analysed],
    /// What reads take from other stages.
    served: &'a [Source],
    /// The value of each dimension, if known.
    sizes: &'a [i128],
}

impl Viewer<'_> {
    /// The name of a variable: a dimension, a leaf, the result of a swizzle, or a term of a reduction inside.
    fn name(&self, var: Var) -> String {
        let at = var as usize;
        let dims = self.facts.dims();
        let Analysed { stage, symbolic, .. } = self.analysed;
        if at < dims {
            return stage.program.dim_name(var as u16).to_owned();
        }
        if let Some(leaf) = stage.domain.leaves.get(at - dims) {
            return stage.domain.axes[*leaf].name.clone();
        }
        if let Some(axis) = symbolic.values.iter().position(|v| v.as_var() == Some(var)) {
            return stage.domain.axes[axis].name.clone();
        }
        format!("_{}", at - dims - symbolic.variables.len().min(at - dims))
    }

    fn show(&self, e: &Expr) -> String {
        let known = e.substitute(&|v| self.sizes.get(v as usize).map(|size| Expr::constant(*size)));
        self.facts.normal(&known).show(&|v| self.name(v))
    }

    /// A number, or the larger expression less the other one.
    fn difference(&self, of: &Expr, less: &Expr) -> String {
        let all = self.show(&of.sub(less));
        if all.parse::<i128>().is_ok() {
            return all;
        }
        let less = self.show(less);
        format!("{} - {}", self.show(of), if less.contains(' ') { format!("({less})") } else { less })
    }

    fn condition(&self, p: &Predicate) -> String {
        let axis = &self.analysed.stage.domain.axes[p.axis];
        match p.side {
            Side::Lower => format!("{} >= 0", axis.name),
            Side::Upper => format!("{} < {}", axis.name, self.show(&axis.extent)),
        }
    }

    fn tensor(&self, parameter: u16) -> String {
        self.info.parameters.get(usize::from(parameter)).map_or("?", |p| &*p.name).to_owned()
    }

    fn copy(&self, staged: &Staged) -> CopyView {
        let Analysed { stage, holes, waived, .. } = self.analysed;
        let known = copies::Holes::of(staged, self.analysed, self.facts);
        let relying = waived.iter().filter(|w| copies::relies_on(w, staged));
        let axis = |axis: &staged::Axis| CopyAxisView {
            name: axis.name.clone(),
            size: self.show(&axis.size),
            stride: self.show(&axis.stride),
            start: self.show(&axis.region.start),
            extent: axis.region.extent,
            box_size: axis.boxed.box_size,
            element_stride: axis.boxed.element_stride,
            boxes: axis.boxes(),
        };
        CopyView {
            name: staged.name.clone(),
            tensor: self.tensor(staged.parameter),
            way: match staged.way {
                Way::Load => "load",
                Way::Store => "store",
            },
            at: staged.attach.innermost().map(|leaf| stage.domain.axes[leaf].name.clone()),
            role: role_name(&stage.program, staged.role).map(str::to_owned),
            ring: staged.ring,
            elected: threads::elected(self.entry, staged.role),
            form: if staged.has_map() { "tiles" } else { "runs" },
            reason: copies::form_reason(staged),
            copies: staged.copies(),
            copy_bytes: staged.copy_bytes(),
            axes: staged.axes.iter().map(axis).collect(),
            places: staged.strides().iter().rev().map(|step| place(&staged.axes[step.axis], step)).collect(),
            swizzle: (staged.swizzle != Swizzle::None).then(|| staged.swizzle.span()),
            buffer_bytes: staged.buffer_bytes(),
            multicast: staged.multicast.as_ref().map(|multicast| MulticastView {
                along: multicast.along.clone(),
                blocks: multicast.blocks,
                stride: multicast.stride,
                by: multicast.by.map(|axis| staged.axes[axis].name.clone()),
            }),
            level: known.level(),
            model: known.model(),
            holes: known.to_string(),
            zeros_for: relying.map(|w| self.condition(&holes.kept[w.predicate])).collect(),
        }
    }

    /// The stage and the axis where it stands.
    fn at(&self) -> Option<(String, String)> {
        let stage = &self.analysed.stage;
        let attach = stage.attach.as_ref().map(|a| (a.stage, a.leaf));
        let (of, leaf) = attach.or(stage.beside.as_ref().map(|b| (b.stage, b.leaf)))?;
        let host = &self.all.get(of)?.stage;
        Some((host.name.clone(), host.domain.axes[leaf].name.clone()))
    }

    fn along(&self, along: &Along) -> AlongView {
        let algorithm = &self.analysed.stage.program.algorithm;
        let axes = &algorithm.axis_lists[algorithm.equations[self.analysed.stage.equation].axes.range()];
        let names = along.dims.iter().map(|d| algorithm.axes[axes[*d] as usize].name.to_string());
        AlongView {
            axes: names.collect(),
            start: self.show(&along.start),
            step: along.step,
            most: self.show(&along.most),
        }
    }

    fn axis(&self, id: usize, axis: &tilewright_compiler::domain::Axis) -> AxisView {
        let Analysed { stage, symbolic, .. } = self.analysed;
        let is_leaf = stage.domain.leaves.contains(&id);
        AxisView {
            name: axis.name.clone(),
            extent: self.show(&axis.extent),
            kind: match axis.kind {
                AxisKind::Data => "data",
                AxisKind::Reduction => "reduction",
            },
            binding: is_leaf.then(|| match axis.binding {
                Binding::Serial => "loop".to_owned(),
                Binding::Unroll(_) => "unroll".to_owned(),
                Binding::Vector => "vector".to_owned(),
                Binding::Grid => "grid".to_owned(),
                Binding::Cta => "cta".to_owned(),
                units => unit_name(&stage.program, units),
            }),
            unroll: match axis.binding {
                Binding::Unroll(n) if is_leaf => n,
                _ => None,
            },
            raster: stage.raster.group_of(id),
            descending: stage.raster.is_descending(id),
            index: symbolic.values.get(id).map_or_else(|| "?".to_owned(), |e| self.show(e)),
        }
    }

    /// Predicates that are left, and those that were not needed.
    fn predicates(&self) -> Vec<PredicateView> {
        let holes = &self.analysed.holes;
        let kept = holes.kept.iter().enumerate().map(|(n, p)| {
            let waiver = self.analysed.waived.iter().find(|w| w.predicate == n);
            (p, None, waiver.map(Waived::of))
        });
        let dropped = holes.dropped.iter().map(|(p, reason)| {
            let removed = match reason {
                Reason::Theorem(0) => Removed { by: "checked already", theorem: None },
                Reason::Theorem(n) => Removed { by: "theorem", theorem: Some(*n) },
                Reason::Enumeration => Removed { by: "enumeration", theorem: None },
                Reason::Arithmetic => Removed { by: "arithmetic", theorem: None },
            };
            (p, Some(removed), None)
        });
        let predicate = |(p, removed, waived): (&Predicate, Option<Removed>, Option<Waived>)| PredicateView {
            condition: self.condition(p),
            axis: p.axis,
            removed,
            waived,
        };
        kept.chain(dropped).map(predicate).collect()
    }

    fn op(&self, op: &Op) -> OpView {
        let axes = &self.analysed.stage.domain.axes;
        let names = |of: &[usize]| of.iter().map(|axis| axes[*axis].name.clone()).collect();
        let (from, to) = (op.inputs(), op.outputs());
        let (op, holes, divisible) = match op {
            Op::Split { input, outer, inner, divisible, .. } => {
                let [input, outer, inner] = [input, outer, inner].map(|axis| &axes[*axis].extent);
                ("split", Some(self.difference(&outer.mul(inner), input)), Some(*divisible))
            }
            Op::Merge { .. } => ("merge", None, None),
            Op::Resize { .. } => ("resize", None, None),
            Op::Swizzle { .. } => ("swizzle", None, None),
        };
        OpView { op, inputs: names(&from), outputs: names(&to), from, to, holes, divisible }
    }

    fn stage(&self) -> StageView {
        let Analysed { stage, symbolic, vector, accesses, .. } = self.analysed;
        let domain = &stage.domain;
        let name = |axis: usize| domain.axes[axis].name.clone();
        // What lies in shared memory has known sizes.
        let number = |e: &Expr| e.as_constant().unwrap_or(0);
        let access = |access: &tilewright_compiler::schedule::accesses::Access| AccessView {
            tensor: self.tensor(access.parameter),
            write: access.is_write,
            guarded: access.is_guarded,
            indices: access.indices.iter().map(|e| self.show(e)).collect(),
            offset: self.show(&access.offset),
            class: match vector {
                Some(vector) if !access.is_guarded => match vector.classify(&access.offset, symbolic, self.facts) {
                    Class::Uniform => "uniform",
                    Class::Vector => "vector",
                    Class::PerLane => "per lane",
                },
                Some(_) => "per lane",
                None => "element",
            },
        };
        let shared = |found: &tilewright_compiler::plan::cycles::Use| SharedView {
            buffer: found.buffer.clone(),
            write: found.is_write,
            cycles: found.degree.as_ref().map(|d| [d.first.taken, d.first.least, d.worst.taken, d.worst.least]),
            request: found.degree.as_ref().map(|d| d.request.clone()),
        };
        let algorithm = &stage.program.algorithm;
        let computed = |component: usize| {
            let component = &algorithm.components[component];
            (component.name.to_string(), component.parameter.is_some())
        };
        StageView {
            computed: computed_at_reads(algorithm, stage.equation, self.served).into_iter().map(computed).collect(),
            name: stage.name.clone(),
            place: match stage.place {
                Place::Global => "global",
                Place::Shared => "shared",
                Place::Registers => "registers",
            },
            owner: match stage.owner {
                Unit::Grid => "grid",
                Unit::Cluster => "cluster",
                Unit::Cta => "cta",
                Unit::Warpgroup => "warpgroup",
                Unit::Warp => "warp",
                Unit::Thread => "thread",
            },
            role: role_name(&stage.program, stage.role).map(str::to_owned),
            at: self.at(),
            ring: stage.ring,
            fetched: stage.fetches,
            region: stage.coordinates.iter().map(|c| self.along(c)).collect(),
            layout: (stage.place == Place::Shared).then(|| LayoutView {
                axes: (stage.layout.axes.iter())
                    .map(|a| (name(a.axis), [number(&a.extent), a.pad, number(&a.stride)]))
                    .collect(),
                swizzle: stage.layout.is_swizzled().then(|| stage.layout.swizzle.span()),
                places: number(&stage.layout.places()),
                written: stage.layout.written.is_some(),
            }),
            shared: self.analysed.banks.iter().map(shared).collect(),
            fit: match stage.fit {
                Fit::Exact => "exact",
                Fit::Minimal => "minimal",
                Fit::Sound => "sound",
            },
            axes: domain.axes.iter().enumerate().map(|(id, axis)| self.axis(id, axis)).collect(),
            loops: domain.leaves.clone(),
            threads: None,
            ops: domain.ops.iter().map(|(op, _)| self.op(op)).collect(),
            predicates: self.predicates(),
            vector: vector.as_ref().map(|v| (name(v.axis), v.lanes)),
            product: product::product(self.analysed),
            matrices: [
                self.analysed.fragment.as_ref().and_then(|fragment| fragment.matrices.as_ref()),
                self.analysed.stored.as_ref(),
            ]
            .map(product::matrices),
            copies: self.analysed.staged.iter().map(|s| self.copy(s)).collect(),
            accesses: accesses.iter().map(access).collect(),
        }
    }
}
