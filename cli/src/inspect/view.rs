//! What was found out about a stage, in words and expressions over the names of the source.

use tilewright_compiler::domain::{AxisKind, Binding, Op};
use tilewright_compiler::extent::{Expr, Facts, Var};
use tilewright_compiler::holes::{Predicate, Reason, Side};
use tilewright_compiler::lower::Analysed;
use tilewright_compiler::memory::vector::Class;
use tilewright_compiler::schedule::computed_at_reads;
use tilewright_kernel::KernelInfo;

/// An axis, leaf or not.
pub struct AxisView {
    pub name: String,
    pub extent: String,
    pub kind: &'static str,
    /// Who runs it; none for an axis that an op has consumed.
    pub binding: Option<&'static str>,
    /// How many iterations a partly unrolled loop runs at a time.
    pub unroll: Option<i128>,
    /// Its value, over the leaves.
    pub index: String,
}

/// A transformation of axes.
pub struct OpView {
    pub op: &'static str,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// Whether a split leaves no holes; none for other ops.
    pub divisible: Option<bool>,
}

/// A comparison that holes may need.
pub struct PredicateView {
    pub condition: String,
    /// Why it is not emitted; none if it is.
    pub removed: Option<Removed>,
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

/// A stage.
pub struct StageView {
    pub name: String,
    pub axes: Vec<AxisView>,
    pub ops: Vec<OpView>,
    pub predicates: Vec<PredicateView>,
    /// Axis and lanes.
    pub vector: Option<(String, i128)>,
    pub accesses: Vec<AccessView>,
    /// Tensors that it computes where it reads them, and whether each is an output.
    pub computed: Vec<(String, bool)>,
}

/// The stages of a kernel; none if its facts cannot be rebuilt, which a finished kernel excludes.
pub fn stages(info: &KernelInfo, analysed: &[Analysed]) -> Option<Vec<StageView>> {
    let facts = Facts::new(&info.dims, &info.facts).ok()?;
    Some(analysed.iter().map(|a| Viewer { info, facts: &facts, analysed: a }.stage()).collect())
}

struct Viewer<'a> {
    info: &'a KernelInfo,
    facts: &'a Facts,
    analysed: &'a Analysed,
}

impl Viewer<'_> {
    /// The name of a variable: a dimension, a leaf, the result of a swizzle, or a term of a reduction inside.
    fn name(&self, var: Var) -> String {
        let at = var as usize;
        let dims = self.facts.dims();
        let Analysed { stage, symbolic, .. } = self.analysed;
        if at < dims {
            return self.info.dim_name(var as u16).to_owned();
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
        self.facts.normal(e).show(&|v| self.name(v))
    }

    fn stage(&self) -> StageView {
        let Analysed { stage, symbolic, holes, vector, accesses, .. } = self.analysed;
        let domain = &stage.domain;
        let name = |axis: usize| domain.axes[axis].name.clone();
        let axis = |(id, axis): (usize, &tilewright_compiler::domain::Axis)| {
            let is_leaf = domain.leaves.contains(&id);
            AxisView {
                name: axis.name.clone(),
                extent: self.show(&axis.extent),
                kind: match axis.kind {
                    AxisKind::Data => "data",
                    AxisKind::Reduction => "reduction",
                },
                binding: is_leaf.then_some(match axis.binding {
                    Binding::Serial => "loop",
                    Binding::Unroll(_) => "unroll",
                    Binding::Vector => "vector",
                    Binding::Grid => "grid",
                    Binding::Warp => "warp",
                    Binding::Thread => "thread",
                }),
                unroll: match axis.binding {
                    Binding::Unroll(n) if is_leaf => n,
                    _ => None,
                },
                index: symbolic.values.get(id).map_or_else(|| "?".to_owned(), |e| self.show(e)),
            }
        };
        let op = |(op, _): &(Op, _)| OpView {
            op: match op {
                Op::Split { .. } => "split",
                Op::Merge { .. } => "merge",
                Op::Resize { .. } => "resize",
                Op::Swizzle { .. } => "swizzle",
            },
            inputs: op.inputs().into_iter().map(name).collect(),
            outputs: op.outputs().into_iter().map(name).collect(),
            divisible: match op {
                Op::Split { divisible, .. } => Some(*divisible),
                _ => None,
            },
        };
        let kept = holes.kept.iter().map(|p| (p, None));
        let dropped = holes.dropped.iter().map(|(p, reason)| {
            let removed = match reason {
                Reason::Theorem(0) => Removed { by: "checked already", theorem: None },
                Reason::Theorem(n) => Removed { by: "theorem", theorem: Some(*n) },
                Reason::Enumeration => Removed { by: "enumeration", theorem: None },
                Reason::Arithmetic => Removed { by: "arithmetic", theorem: None },
            };
            (p, Some(removed))
        });
        let predicate = |(p, removed): (&Predicate, Option<Removed>)| {
            let axis = &domain.axes[p.axis];
            let condition = match p.side {
                Side::Lower => format!("{} >= 0", axis.name),
                Side::Upper => format!("{} < {}", axis.name, self.show(&axis.extent)),
            };
            PredicateView { condition, removed }
        };
        let access = |access: &tilewright_compiler::memory::vector::Access| AccessView {
            tensor: self.info.parameters.get(usize::from(access.parameter)).map_or("?", |p| &*p.name).to_owned(),
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
        let algorithm = &self.info.algorithm;
        let computed = |component: usize| {
            let component = &algorithm.components[component];
            (component.name.to_string(), component.parameter.is_some())
        };
        StageView {
            computed: computed_at_reads(algorithm, stage.equation).into_iter().map(computed).collect(),
            name: stage.name.clone(),
            axes: domain.axes.iter().enumerate().map(axis).collect(),
            ops: domain.ops.iter().map(op).collect(),
            predicates: kept.chain(dropped).map(predicate).collect(),
            vector: vector.as_ref().map(|v| (name(v.axis), v.lanes)),
            accesses: accesses.iter().map(access).collect(),
        }
    }
}
