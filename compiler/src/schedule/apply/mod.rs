//! The ops of one schedule, applied to its domain in order.

mod ops;

use tilewright_kernel::algorithm::AxisId as AlgorithmAxis;
use tilewright_kernel::info::DimKind;

use crate::diag::Diagnostics;
use crate::diag::codes::{
    BadFactor, BadOnline, BadRaster, CutsElements, HiddenAxis, NameTaken, NoSuchRegion, NotSupportedYet, OnlineProblem,
    RasterProblem, TooLarge, UnknownAxis, UnknownName,
};
use crate::domain::{AxisId, AxisKind, Binding, Domain, NewAxis, Part, PartOf, Unit};
use crate::extent::{Expr, Facts, Search, TERM_LIMIT};
use crate::holes;
use crate::program::Program;
use crate::source::{Span, ast};

use super::Mma;
use super::raster::{Groups, Raster};
use super::{BLOCK_LIMIT, Reduced, Stage};

/// Largest factor, and most iterations that are written out.
const FACTOR_LIMIT: i128 = 1 << 31;
/// Most copies of a body that `unroll` and `vectorize` make.
const UNROLL_LIMIT: i128 = 1024;
/// Units of the machine; a kernel may define others.
pub(super) const UNITS: [&str; 5] = ["grid", "cta", "warpgroup", "warp", "thread"];

pub(super) struct Apply<'a> {
    pub(super) program: &'a Program,
    pub(super) facts: &'a Facts,
    pub(super) stage: &'a str,
    pub(super) equation: usize,
    /// The axes of the algorithm that are roots of the domain.
    pub(super) roots: &'a [(AlgorithmAxis, AxisId)],
    /// The stages that may be taken as a model.
    pub(super) others: &'a [Stage],
    /// The output whose blocks the stage shares.
    pub(super) beside: Option<&'a str>,
    /// Who owns an instance.
    pub(super) owner: Unit,
    pub(super) hidden: Vec<(String, HiddenAxis)>,
    pub(super) domain: &'a mut Domain,
    pub(super) diags: &'a mut Diagnostics,
    pub(super) reduced: Vec<Reduced>,
    raster: Raster,
    online: Option<AxisId>,
    pub(super) product: Option<Mma>,
}

/// What the ops of one schedule are applied to.
#[derive(Clone)]
pub(super) struct Given<'a> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    /// The stage and its equation.
    pub stage: &'a str,
    pub equation: usize,
    /// The axes of the algorithm that are roots of the domain.
    pub roots: &'a [(AlgorithmAxis, AxisId)],
    /// The stages so far.
    pub others: &'a [Stage],
    /// The output whose blocks the stage shares.
    pub beside: Option<&'a str>,
    /// Who owns an instance.
    pub owner: Unit,
    /// The axes of reductions that are none of the stage, and why.
    pub hidden: Vec<(String, HiddenAxis)>,
    /// The head of the schedule.
    pub head: Span,
}

/// What ops say beside what they make of axes.
#[derive(Clone, Debug, Default)]
pub(super) struct Applied {
    /// What is combined across units.
    pub reduced: Vec<Reduced>,
    /// In which order blocks take the iterations.
    pub raster: Raster,
    /// The loop in which sums follow an extreme.
    pub online: Option<AxisId>,
    /// What tensor cores compute.
    pub product: Option<Mma>,
}

/// Applies every op of a schedule; a refused one leaves poisoned axes.
pub(super) fn ops(given: Given<'_>, domain: &mut Domain, ops: &[ast::Op], diags: &mut Diagnostics) -> Applied {
    let Given { program, facts, stage, equation, roots, others, beside, owner, hidden, head } = given;
    let mut apply = Apply {
        program,
        facts,
        stage,
        equation,
        roots,
        others,
        beside,
        owner,
        hidden,
        domain,
        diags,
        reduced: Vec::new(),
        raster: Raster::default(),
        online: None,
        product: None,
    };
    for op in ops {
        apply.op(op);
    }
    let mut applied = Applied {
        reduced: std::mem::take(&mut apply.reduced),
        raster: std::mem::take(&mut apply.raster),
        online: apply.online,
        product: apply.product.take(),
    };
    if apply.domain.is_poisoned() {
        return applied;
    }
    apply.discarded(ops, &mut applied.reduced);
    for axis in &apply.domain.axes {
        if axis.extent.is_unknown() {
            apply.diags.report(TooLarge { axis: axis.name.clone(), terms: TERM_LIMIT, span: axis.span });
            return applied;
        }
    }
    match holes::uncovered(apply.domain, facts) {
        Search::None => {}
        found => {
            let names = |v: u32| program.dim_name(v as u16).to_owned();
            let (span, witness) = match found {
                Search::Found(u) => {
                    // Strides say nothing about iterations.
                    let sizes = (0..u.dims.len()).filter(|d| program.dims[*d].kind == DimKind::Size);
                    let dims = sizes.map(|d| (names(d as u32), i128::from(u.dims[d]))).collect();
                    let values = |kind: AxisKind| {
                        let roots = apply.domain.roots.iter().map(|a| &apply.domain.axes[*a]).zip(&u.roots);
                        roots.filter(|(a, _)| a.kind == kind).map(|(a, v)| (a.name.clone(), *v)).collect::<Vec<_>>()
                    };
                    let term = if u.has_terms { values(AxisKind::Reduction) } else { Vec::new() };
                    let axis = apply.domain.axes[u.axis].name.clone();
                    (u.span, Some((dims, [values(AxisKind::Data), term], axis)))
                }
                _ => (head, None),
            };
            apply.diags.report(CutsElements { stage: stage.to_owned(), span, witness });
        }
    }
    applied
}

/// A literal, after facts such as `K == 4096`.
pub(crate) fn literal(program: &Program, facts: &Facts, e: &ast::Expr) -> Option<i128> {
    facts.normal(&size(program, e)?).as_constant()
}

/// Arithmetic on literals and dimensions.
fn size(program: &Program, e: &ast::Expr) -> Option<Expr> {
    use ast::{BinaryOp, ExprKind, UnaryOp};
    Some(match &e.kind {
        ExprKind::Int(literal) if literal.suffix.is_none() => Expr::constant(i128::from(literal.value)),
        ExprKind::Name(name) => {
            let dim = program.dims.iter().position(|d| d.name == name.text)?;
            Expr::var(dim as u32)
        }
        ExprKind::Unary(UnaryOp::Neg, a) => size(program, a)?.scale(-1),
        ExprKind::Binary(a, op, b) => {
            let (a, b) = (size(program, a)?, size(program, b)?);
            match op.value {
                BinaryOp::Add => a.add(&b),
                BinaryOp::Sub => a.sub(&b),
                BinaryOp::Mul => a.mul(&b),
                BinaryOp::Div => a.floor_div(&b),
                BinaryOp::Rem => a.modulo(&b),
                _ => return None,
            }
        }
        _ => return None,
    })
}

impl Apply<'_> {
    /// The leaf called `name`, or a report of why there is none; `among` are the axes that the op names.
    pub(super) fn leaf(&mut self, name: &ast::Name, among: &[&ast::Name]) -> Option<AxisId> {
        if let Some(axis) = self.domain.leaf(&name.text) {
            return Some(axis);
        }
        if self.domain.named(&name.text).is_some_and(|a| self.domain.axes[a].poisoned) {
            return None;
        }
        let consumed = self.domain.named(&name.text).and_then(|a| self.domain.consumer(a)).map(|(_, span)| *span);
        // Names that a refused op would have made may be missing; say nothing about them.
        if self.domain.is_poisoned() && consumed.is_none() {
            return None;
        }
        self.diags.report(UnknownAxis {
            axis: name.text.clone(),
            span: name.span,
            stage: self.stage.to_owned(),
            leaves: self.domain.leaves.iter().map(|a| self.domain.axes[*a].name.clone()).collect(),
            named: among.iter().map(|n| n.text.clone()).collect(),
            consumed,
            hidden: self.hidden.iter().find(|(axis, _)| *axis == name.text).map(|(_, why)| why.clone()),
        });
        None
    }

    /// A new axis name, unless the stage has it already.
    fn new_axis(&mut self, name: &ast::Name, taken: &[&ast::Name]) -> Option<NewAxis> {
        let twice = taken.iter().find(|t| t.text == name.text).map(|t| t.span);
        let before = self.domain.named(&name.text).map(|a| self.domain.axes[a].span);
        if let Some(first) = twice.or(before) {
            self.diags.report(NameTaken {
                axis: name.text.clone(),
                span: name.span,
                first,
                stage: self.stage.to_owned(),
            });
            return None;
        }
        Some(NewAxis { name: name.text.clone(), span: name.span })
    }

    /// A factor: a literal between `least` and the limit.
    pub(super) fn factor(&mut self, e: &ast::Expr, least: i128, what: &'static str) -> Option<i128> {
        let value = literal(self.program, self.facts, e);
        if let Some(value) = value.filter(|v| (least..=FACTOR_LIMIT).contains(v)) {
            return Some(value);
        }
        self.diags.report(BadFactor { what, value, least, most: FACTOR_LIMIT, span: e.span });
        None
    }

    #[expect(clippy::too_many_lines, reason = "one arm an op")]
    fn op(&mut self, op: &ast::Op) {
        use ast::OpKind;
        match &op.kind {
            OpKind::Split { axis, side, factor, outer, inner } => {
                let input = self.leaf(axis, &[]);
                let value = self.factor(factor, 1, "a split factor");
                let names = [self.new_axis(outer, &[]), self.new_axis(inner, &[outer])];
                match (input, value, names) {
                    (Some(input), Some(value), [Some(a), Some(b)]) if !self.domain.axes[input].poisoned => match side {
                        ast::SplitSide::Inner => self.domain.split_by(input, value, self.facts, [a, b], op.span),
                        ast::SplitSide::Outer => self.domain.split_into(input, value, self.facts, [a, b], op.span),
                    },
                    (input, _, _) => self.poison(input.as_slice(), &[outer, inner]),
                }
            }
            OpKind::Merge { axes, into } => self.merge(axes, into, op.span),
            OpKind::Reorder { axes } => self.reorder(axes),
            OpKind::Resize { axis, left, right, into } => {
                let input = self.leaf(axis, &[]);
                let least = -FACTOR_LIMIT;
                let (l, r) = (self.factor(left, least, "an amount"), self.factor(right, least, "an amount"));
                match (input, l, r, self.new_axis(into, &[])) {
                    (Some(input), Some(l), Some(r), Some(name)) if !self.domain.axes[input].poisoned => {
                        self.domain.resize(input, l, r, self.facts, name, op.span);
                    }
                    (input, ..) => self.poison(input.as_slice(), &[into]),
                }
            }
            OpKind::Swizzle { x, y, x_into, y_into, .. } => self.swizzle(op, [x, y], [x_into, y_into]),
            OpKind::Bind { axes, scale, unit, range, raster } => {
                let mut extra: Option<(&str, Span)> = None;
                let of_blocks = ["grid", "cta"].contains(&unit.text.as_str());
                if let Some(e) = scale.as_ref().filter(|_| of_blocks) {
                    extra = Some(("several blocks as one", e.span));
                }
                if let Some(r) = range.as_ref().filter(|_| of_blocks) {
                    extra = Some(("a range of blocks", r.span));
                }
                let named = self.program.units.iter().position(|u| u.name.text == unit.text);
                if let Some(e) = scale.as_ref().filter(|_| named.is_some()) {
                    extra = Some(("a scaled unit of the kernel's own", e.span));
                }
                if let Some((construct, span)) = extra {
                    self.unsupported(construct, span, None);
                    return;
                }
                let of = match unit.text.as_str() {
                    "grid" | "cta" => None,
                    "warpgroup" => Some(PartOf::Warpgroup),
                    "warp" => Some(PartOf::Warp),
                    "thread" => Some(PartOf::Thread),
                    _ if named.is_some() => named.map(|at| PartOf::Named(at as u16)),
                    other => {
                        let units = self.program.units.iter().map(|u| u.name.text.as_str());
                        let known = UNITS.into_iter().chain(units).map(str::to_owned).collect();
                        let (kind, name) = ("unit".to_owned(), other.to_owned());
                        self.diags.report(UnknownName { kind, name, known, span: unit.span });
                        return;
                    }
                };
                let binding = match of {
                    None if unit.text == "cta" => Binding::Cta,
                    None => Binding::Grid,
                    Some(of) => match self.part(of, scale.as_ref(), range.as_ref()) {
                        Some(binding) => binding,
                        // Said; the axes are given to nobody.
                        None => return self.domain.poison(&[], [NewAxis { name: String::new(), span: op.span }]),
                    },
                };
                let all: Vec<&ast::Name> = axes.iter().collect();
                for name in axes {
                    if let Some(axis) = self.leaf(name, &all) {
                        self.bind(axis, binding, name.span, op.span);
                    }
                }
                self.raster(raster, axes, binding);
            }
            OpKind::Vectorize { axis } => {
                if let Some(leaf) = self.leaf(axis, &[]) {
                    self.bind_static(leaf, Binding::Vector, axis.span, op.span);
                }
            }
            OpKind::Unroll { axis, by } => {
                let Some(leaf) = self.leaf(axis, &[]) else { return };
                let by = match by {
                    Some(by) => {
                        let Some(value) = self.factor(by, 1, "an unroll factor") else { return };
                        Some(value)
                    }
                    None => None,
                };
                if let Some(by) = by.filter(|by| *by > UNROLL_LIMIT) {
                    let span = op.span;
                    self.diags.report(BadFactor {
                        what: "an unroll factor",
                        value: Some(by),
                        least: 1,
                        most: UNROLL_LIMIT,
                        span,
                    });
                    return;
                }
                self.bind_static(leaf, Binding::Unroll(by), axis.span, op.span);
            }
            OpKind::Reduce { axes, by } => self.reduce(axes, by.as_ref(), op.span),
            OpKind::Like { stage, operand: None } => self.like(stage, op.span),
            OpKind::Like { .. } => self.unsupported("like an operand", op.keyword, None),
            OpKind::Box { .. } | OpKind::BoxRun { .. } => self.unsupported("box", op.keyword, None),
            OpKind::Tile { .. } => self.unsupported("tile", op.keyword, None),
            // See `layout`.
            OpKind::Layout { .. } => {}
            OpKind::Multicast { .. } => {
                self.unsupported("multicast", op.keyword, Some("copies by the accelerator have it: `via tma`"))
            }
            OpKind::Mma { m, n, k, engine, inflight } => self.mma([m, n, k], engine, inflight.as_ref(), op.span),
            OpKind::Fragment { m, n: Some(n), engine } => self.fragment(m, n, engine, op.span),
            OpKind::Fragment { m, n: None, engine } => self.fragment_of_rows(m, engine, op.span),
            OpKind::Region { .. } => {
                let (stage, problem) = (self.stage.to_owned(), NoSuchRegion::NOT_FIRST);
                self.diags.report(NoSuchRegion { stage, problem, help: None, span: op.span });
            }
            OpKind::Fill { .. } => self.unsupported("fill", op.keyword, None),
            OpKind::L2 { .. } => self.unsupported("l2", op.keyword, None),
            OpKind::Online { source, axis, .. } => self.online(source, axis),
        }
    }

    /// The loop over blocks of terms; what becomes of the equations, `online` knows.
    fn online(&mut self, source: &ast::Name, axis: &ast::Name) {
        let Some(leaf) = self.leaf(axis, &[axis]).filter(|leaf| !self.domain.axes[*leaf].poisoned) else { return };
        self.online = Some(leaf);
        let of_terms = |leaf: &AxisId| {
            let axis = &self.domain.axes[*leaf];
            axis.kind == AxisKind::Reduction && matches!(axis.binding, Binding::Serial | Binding::Unroll(_))
        };
        if of_terms(&leaf) {
            return;
        }
        let why = match self.domain.axes[leaf].kind {
            AxisKind::Data => "it tells elements apart",
            AxisKind::Reduction => "its iterations are taken side by side",
        };
        let known = self.domain.leaves.iter().filter(|leaf| of_terms(leaf));
        let known = known.map(|leaf| self.domain.axes[*leaf].name.clone()).collect();
        let problem = OnlineProblem::Axis { axis: axis.text.clone(), why, known };
        self.diags.report(BadOnline { source: source.text.clone(), problem, span: axis.span });
    }

    /// In which order blocks take the iterations of axes that the op binds.
    fn raster(&mut self, orders: &[(ast::Name, ast::BlockOrder)], bound: &[ast::Name], binding: Binding) {
        for (name, order) in orders {
            let Some(axis) = self.leaf(name, &[name]) else { continue };
            if self.domain.axes[axis].poisoned {
                continue;
            }
            let is_descending = *order == ast::BlockOrder::Descending;
            let first = match is_descending {
                true => self.raster.descending.iter().find(|(own, _)| *own == axis).map(|(_, span)| *span),
                false => self.raster.groups.map(|groups| groups.span),
            };
            let problem = match first {
                _ if binding != Binding::Grid => Some(RasterProblem::NotOfGrid),
                _ if bound.iter().all(|own| own.text != name.text) => Some(RasterProblem::OtherOp),
                Some(first) => Some(RasterProblem::Second { first }),
                None => None,
            };
            let (stage, span) = (self.stage.to_owned(), name.span);
            if let Some(problem) = problem {
                let axis = name.text.clone();
                self.diags.report(BadRaster { stage, axis, problem, is_descending, span });
                continue;
            }
            match order {
                ast::BlockOrder::Descending => self.raster.descending.push((axis, span)),
                ast::BlockOrder::Groups(size) => {
                    let size = self.factor(size, 1, "the group of a raster");
                    self.raster.groups = size.map(|size| Groups { axis, size, span });
                }
            }
        }
    }

    /// What units of a block are, with their scale and range; none if one of these is no number.
    fn part(&mut self, of: PartOf, scale: Option<&ast::Expr>, range: Option<&ast::Range>) -> Option<Binding> {
        let mut number = |e: &ast::Expr, least: i128, what: &'static str| {
            let value = literal(self.program, self.facts, e);
            let most = BLOCK_LIMIT;
            let found = value.filter(|v| (least..=most).contains(v)).and_then(|v| u64::try_from(v).ok());
            if found.is_none() {
                self.diags.report(BadFactor { what, value, least, most, span: e.span });
            }
            found
        };
        let scale = scale.map_or(Some(1), |e| number(e, 1, "the number of units that are one"))?;
        let range = match range {
            None => None,
            Some(range) => {
                let low = number(&range.start, 0, "the first unit of a range")?;
                // A range has a unit.
                let least = if range.inclusive { i128::from(low) } else { i128::from(low) + 1 };
                let high = number(&range.end, least, "the end of a range of units")?;
                Some((low, high + u64::from(range.inclusive)))
            }
        };
        Some(match (of, scale, range) {
            (PartOf::Warpgroup, 1, None) => Binding::Warpgroup,
            (PartOf::Warp, 1, None) => Binding::Warp,
            (PartOf::Thread, 1, None) => Binding::Thread,
            _ => Binding::Part(Part { of, scale, range }),
        })
    }

    fn reduce(&mut self, axes: &[ast::Name], by: Option<&ast::Spanned<ast::ReduceBy>>, span: Span) {
        for name in axes {
            if let Some(axis) = self.leaf(name, &[]) {
                let word = by.map(|by| by.span);
                let by = by.map_or(ast::ReduceBy::Cta, |by| by.value);
                self.reduced.push(Reduced { axis, by, span, word });
            }
        }
    }

    pub(super) fn unsupported(&mut self, construct: &str, span: Span, instead: Option<&str>) {
        let instead = instead.map(str::to_owned);
        self.diags.report(NotSupportedYet { construct: construct.to_owned(), span, instead });
        // Axes that the op would have made are missing from here on.
        self.domain.poison(&[], [NewAxis { name: String::new(), span }]);
    }

    fn poison(&mut self, inputs: &[AxisId], names: &[&ast::Name]) {
        let names = names.iter().map(|n| NewAxis { name: n.text.clone(), span: n.span });
        self.domain.poison(inputs, names);
    }
}
