//! The root axes of a stage: what its equation names, and of a reduction what a schedule may name.

use tilewright_kernel::algorithm::{AxisId as AlgorithmAxis, Binary, Value, ValueId};
use tilewright_kernel::{Algorithm, ElementType};

use super::range::{self, Hull};
use super::{BufferLayout, Distribution, Stage, apply, index_of_dims};
use crate::diag::Diagnostics;
use crate::diag::codes::HiddenAxis;
use crate::domain::{AxisId, AxisKind, Domain, NewAxis, Unit};
use crate::extent::{Expr, Facts, Family, Var};
use crate::kernel_ir::Sharing;
use crate::program::{Program, expressions};
use crate::region::Fit;
use crate::source::Span;
use crate::source::ast::{self, Place};

/// The root axes of a domain under construction.
#[derive(Clone, Default)]
pub(super) struct Roots {
    pub axes: Vec<(NewAxis, Expr, AxisKind)>,
    pub indices: Vec<(AlgorithmAxis, Expr)>,
    /// What must be at least 0 where the range of a root depends on others.
    pub limits: Vec<Expr>,
}

/// A stage whose ops are still to be applied.
pub(super) struct Unscheduled<'a> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    pub equation: usize,
    pub name: String,
    pub span: Span,
    pub ops: &'a [ast::Op],
    pub others: &'a [Stage],
    /// The output that it is to stand beside.
    pub beside: Option<&'a str>,
    pub owner: Unit,
}

impl Roots {
    /// The variable of the next root.
    pub fn next(&self) -> Expr {
        Family::ROOT.expr(self.axes.len())
    }

    /// A whole axis of the algorithm as a root.
    pub fn add(&mut self, program: &Program, facts: &Facts, axis: AlgorithmAxis, kind: AxisKind) -> Option<()> {
        let algorithm = &program.algorithm;
        let declared = &algorithm.axes[axis as usize];
        let of = |axis: AlgorithmAxis| {
            self.indices.iter().find(|(a, _)| *a == axis).map_or_else(Expr::unknown, |(_, e)| e.clone())
        };
        // What memory decides is asked for each term.
        let (lower, upper) = expressions::hull(algorithm, declared, &of);
        let end = |end: Expr| {
            // A root of one iteration is 0.
            let only = |v: Var| {
                let extent = &self.axes.get(Family::ROOT.number(v)?)?.1;
                (extent.as_constant() == Some(1)).then(|| Expr::constant(0))
            };
            (!end.is_unknown()).then(|| facts.normal(&end.substitute(&only)))
        };
        let extents: Vec<&Expr> = self.axes.iter().map(|(_, extent, _)| extent).collect();
        let index = |lower: &Expr| self.next().add(lower);
        let Hull { lower, upper, limits } = range::hull(&end(lower)?, &end(upper)?, index, &extents)?;
        let (lower, upper) = (facts.normal(&lower), facts.normal(&upper));
        self.limits.extend(limits.iter().map(|e| facts.normal(e)));
        let new = NewAxis { name: declared.name.to_string(), span: program.axis_spans[axis as usize] };
        self.indices.push((axis, self.next().add(&lower)));
        self.axes.push((new, upper.sub(&lower), kind));
        Some(())
    }

    /// Adds the axes of the reduction that a schedule may name, and applies the ops.
    pub fn finish(mut self, given: Unscheduled<'_>, diags: &mut Diagnostics) -> Option<Stage> {
        let (reduction, hidden) = self.reduction(&given);
        let Unscheduled { program, facts, equation, name, span, ops, others, beside, owner } = given;
        let statement = program.statements.iter().position(|s| *s == span || *s == program.equation_spans[equation]);
        let mut domain = Domain::new(self.axes);
        let roots: Vec<(AlgorithmAxis, AxisId)> =
            self.indices.iter().filter_map(|(a, e)| Some((*a, whole_root(e, &domain)?))).collect();
        let given = apply::Given {
            program,
            facts,
            stage: &name,
            equation,
            roots: &roots,
            hidden,
            others,
            beside,
            owner,
            head: span,
        };
        let apply::Applied { reduced, raster, online, product } = apply::ops(given, &mut domain, ops, diags);
        Some(Stage {
            equation,
            name,
            program: program.clone(),
            facts: facts.clone(),
            attach: None,
            beside: None,
            copy: None,
            serves: Vec::new(),
            sees: Vec::new(),
            domain,
            indices: self.indices,
            limits: self.limits,
            members: Vec::new(),
            reads: None,
            coordinates: Vec::new(),
            fit: Fit::Exact,
            needed: None,
            reduction,
            reduced,
            raster,
            online,
            product,
            is_tile: false,
            place: Place::Global,
            ring: 1,
            layout: BufferLayout::new([]),
            fetches: false,
            owner: Unit::Grid,
            role: None,
            sharing: Sharing::Block,
            distribution: Distribution::default(),
            span,
            statement: statement.unwrap_or(0),
        })
    }

    /// Adds the axes of the only outermost reduction, if no other axis decides their bounds; gives that reduction, and
    /// otherwise the axes of reductions that ops cannot name, each with the reason.
    fn reduction(&mut self, given: &Unscheduled<'_>) -> (Option<ValueId>, Vec<(String, HiddenAxis)>) {
        let Unscheduled { program, facts, equation, ops, .. } = given;
        let algorithm = &program.algorithm;
        let components = &algorithm.components[algorithm.equations[*equation].components.range()];
        let mut reductions = Vec::new();
        for component in components {
            outermost_reductions(algorithm, component.value, &mut reductions);
        }
        let unconditional =
            |value: ValueId| !components.iter().any(|c| is_conditional(algorithm, c.value, value, false));
        let mut reduction = None;
        if let [only] = reductions[..]
            && unconditional(only)
        {
            let list = run_of(algorithm, only);
            let of_dims = |a: &AlgorithmAxis| {
                let axis = &algorithm.axes[*a as usize];
                index_of_dims(algorithm, axis.lower).is_some() && index_of_dims(algorithm, axis.upper).is_some()
            };
            // Nobody says how terms whose range depends on the element are distributed: then a loop takes just these.
            let is_named = |a: &AlgorithmAxis| range::is_named(ops, &algorithm.axes[*a as usize].name);
            let mut roots = self.clone();
            let before = roots.limits.len();
            let added = (list.iter().all(of_dims) || list.iter().any(is_named))
                && list.iter().all(|axis| roots.add(program, facts, *axis, AxisKind::Reduction).is_some());
            if added {
                // Blocks past the end of an element's range have no term of it; past that of all there is nothing.
                let own = program.online.iter().find(|online| online.fold == only);
                if let Some(blocks) = own.and_then(|online| online.blocks.as_ref())
                    && let Some(count) = index_of_dims(algorithm, blocks.count)
                    && let Some((_, index)) = roots.indices.last()
                    && let Some((_, extent, _)) = roots.axes.last_mut()
                {
                    roots.limits.truncate(before);
                    let first = index.sub(&Family::ROOT.expr(roots.indices.len() - 1));
                    let left = facts.normal(&count.sub(&first));
                    if facts.lower_bound(&left.sub(extent)).is_none_or(|left| left < 0) {
                        *extent = extent.minimum(&left);
                    }
                }
                *self = roots;
                reduction = Some(only);
            }
        }
        let why = match reductions[..] {
            [only] if reduction.is_none() && !unconditional(only) => HiddenAxis::Conditional,
            [_] => HiddenAxis::Range,
            _ => HiddenAxis::Several,
        };
        let hidden = reductions.iter().filter(|_| reduction.is_none()).flat_map(|value| run_of(algorithm, *value));
        let hidden = hidden.map(|a| (algorithm.axes[*a as usize].name.to_string(), why.clone())).collect();
        (reduction, hidden)
    }
}

/// The axes that a reduction runs over.
fn run_of(algorithm: &Algorithm, value: ValueId) -> &[AlgorithmAxis] {
    match algorithm.values[value as usize] {
        Value::Reduce { axes, .. } | Value::Fold { axes, .. } => &algorithm.axis_lists[axes.range()],
        _ => &[],
    }
}

/// The root that an index runs along, one element a step.
pub(super) fn whole_root(e: &Expr, domain: &Domain) -> Option<AxisId> {
    let vars = e.vars();
    let mut own = vars.iter().filter_map(|v| Family::ROOT.number(*v));
    let (root, None) = (own.next()?, own.next()) else { return None };
    let rest = e.sub(&Family::ROOT.expr(root));
    (!rest.vars().contains(&Family::ROOT.var(root))).then(|| domain.roots.get(root).copied()).flatten()
}

/// The reductions in a value that are not inside another one.
pub(super) fn outermost_reductions(algorithm: &Algorithm, value: ValueId, found: &mut Vec<ValueId>) {
    if matches!(algorithm.values[value as usize], Value::Reduce { .. } | Value::Fold { .. }) {
        if !found.contains(&value) {
            found.push(value);
        }
        return;
    }
    for operand in algorithm.operands(value) {
        outermost_reductions(algorithm, operand, found);
    }
}

/// Whether `sought` is computed only on one side of an `if`, or of `&&` and `||`, within `value`: then its reads are
/// proved in bounds only there, and its loops must stay there.
fn is_conditional(algorithm: &Algorithm, value: ValueId, sought: ValueId, inside: bool) -> bool {
    if value == sought {
        return inside;
    }
    match algorithm.values[value as usize] {
        Value::Select(condition, then, otherwise) => {
            is_conditional(algorithm, condition, sought, inside)
                || is_conditional(algorithm, then, sought, true)
                || is_conditional(algorithm, otherwise, sought, true)
        }
        Value::Binary(Binary::And | Binary::Or, first, second)
            if algorithm.types[value as usize] == ElementType::Bool =>
        {
            is_conditional(algorithm, first, sought, inside) || is_conditional(algorithm, second, sought, true)
        }
        _ => algorithm.operands(value).into_iter().any(|v| is_conditional(algorithm, v, sought, inside)),
    }
}
