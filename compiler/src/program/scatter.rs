//! Scatters: `y[p[i], j] += unordered sum(|i| x[i, j])`, where memory says which element a term belongs to.
//!
//! The axes on the left that the reduction does not bind are indices of the tensor, as in every equation; those that it
//! binds have a term each. The equation that is built has all of them, and one term for each of their values: what
//! another equation does once for each element, this one does once for each term. So terms meet in no order. Nothing
//! reads the tensor. If it is `inout`, it begins as what it was, and an output begins as the reduction of no terms
//! ([`tilewright_kernel::KernelInfo::fill`]): the sign between the sides says which of both is meant. That no two terms
//! belong to one element, which `only` says, is not proved, and never relied on: an element has one of its terms.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{AxisId, IndexId, Reduction, Value, ValueId};
use tilewright_kernel::info::Role;

use super::equations::{AxesOf, Context, Hint};
use super::names::plain;
use super::order::Plan;
use crate::diag::Diagnostics;
use crate::diag::codes::{
    BadScatter, Foreign, ForeignSyntax, OrderedByNobody, Promotion, PromotionProblem, ScatterProblem, TupleUse,
    TypeMismatch, TypeMismatchAt, WrongTuple,
};
use crate::kernel_ir::AtomicOp;
use crate::source::{Span, ast};

/// What an equation became whose places memory gives.
pub(super) struct Scattered {
    /// The axes that are indices of the tensor.
    pub own: Vec<AxisId>,
    /// These, and those that the reduction binds.
    pub all: Vec<AxisId>,
    /// The [`Value::Scatter`].
    pub value: Option<ValueId>,
}

impl Context<'_> {
    /// Builds the two sides of a scatter.
    pub fn scatter(
        &mut self,
        ast: &ast::Equation,
        scatter: &ast::Scatter,
        declared: &[Option<ElementType>],
    ) -> Scattered {
        if !scatter.is_placed_by_memory() {
            let is_axis = |name: &str| !self.signature.globals.contains_key(name);
            let place = super::computed::instead(ast, &scatter.indices, &is_axis);
            let is_axis = |index: &&ast::Expr| matches!(index.kind, ast::ExprKind::Name(_));
            let span = scatter.indices.iter().find(|index| !is_axis(index)).map_or(ast.head, |index| index.span);
            self.diags.report(ForeignSyntax { construct: Foreign::LeftExpression(place), span });
            return Scattered { own: Vec::new(), all: Vec::new(), value: None };
        }
        let Some(reduction) = self.reduction_of(ast, scatter) else {
            return Scattered { own: Vec::new(), all: Vec::new(), value: None };
        };
        let is_bound = |name: &ast::Name| reduction.axes.iter().any(|axis| plain(&axis.name) == plain(name));
        let own: Vec<ast::AxisDecl> = ast.axes.iter().filter(|axis| !is_bound(&axis.name)).cloned().collect();
        let decls: Vec<ast::AxisDecl> = own.iter().chain(&reduction.axes).cloned().collect();
        let all = self.axes(&decls, AxesOf::Equation);
        let own = all[..own.len().min(all.len())].to_vec();
        let value = self.scattered(reduction, ast, scatter, declared.first().copied().flatten());
        Scattered { own, all, value }
    }

    /// The reduction on the right, if the equation has the form of a scatter.
    fn reduction_of<'e>(&mut self, ast: &'e ast::Equation, scatter: &ast::Scatter) -> Option<&'e ast::Reduction> {
        let target = ast.targets.first()?;
        if ast.targets.len() != 1 {
            let (expected, found) = (ast.targets.len(), 1);
            self.diags.report(WrongTuple { what: TupleUse::Scatter, expected, found, span: ast.head });
            return None;
        }
        let name = plain(target).to_owned();
        let problem = |problem| BadScatter { name: name.clone(), problem, span: ast.head };
        let parameter = self.signature.tensors.get(&*name).copied();
        let role = parameter.and_then(|parameter| self.signature.tensor(parameter)).map(|tensor| tensor.role);
        let Some((parameter, role @ (Role::InOut | Role::Output))) = parameter.zip(role) else {
            self.diags.report(problem(ScatterProblem::NoTensor));
            return None;
        };
        let is_inout = role == Role::InOut;
        let ast::ExprKind::Reduction(reduction) = &ast.value.kind else {
            if let Some(at) = only_in(&ast.value) {
                self.diags.report(problem(ScatterProblem::OnlyElsewhere { at }));
                return None;
            }
            let (axes, value) = (self.unbound(scatter), ast.value.span);
            let from = scatter.update.span.to(value);
            let element = self.signature.parameters[usize::from(parameter)].element;
            self.diags.report(problem(ScatterProblem::NoReduction { axes, from, value, element, is_inout }));
            return None;
        };
        let update = match reduction.kind.value {
            ast::ReductionKind::Sum => ast::Update::Add,
            ast::ReductionKind::Max => ast::Update::Max,
            ast::ReductionKind::Min => ast::Update::Min,
            ast::ReductionKind::Only => ast::Update::Assign,
            kind => {
                let kind = kind.as_str();
                self.diags.report(problem(ScatterProblem::OtherReduction { kind, at: reduction.kind.span }));
                return None;
            }
        };
        if let Some(order) = reduction.order.as_ref().filter(|order| order.value != ast::ReductionOrder::Unordered)
            && reduction.kind.value == ast::ReductionKind::Sum
        {
            let (word, at) = (order.value.as_str(), order.span);
            self.diags.report(problem(ScatterProblem::Ordered { word, at }));
            return None;
        }
        // An output is what its terms come to, and nothing else.
        let update = if is_inout { update } else { ast::Update::Assign };
        if scatter.update.value != update {
            let (kind, found) = (reduction.kind.value.as_str(), scatter.update.value.as_str());
            let (instead, at) = (update.as_str(), scatter.update.span);
            let declared = self.declared(parameter);
            let beginning = (reduction.kind.value, is_inout);
            self.diags.report(problem(ScatterProblem::OtherUpdate { kind, found, instead, declared, beginning, at }));
            return None;
        }
        Some(reduction)
    }

    /// A parameter as it is declared, without strides.
    fn declared(&self, parameter: u16) -> String {
        let of = &self.signature.parameters[usize::from(parameter)];
        let sizes = self.signature.tensor(parameter).map_or(&[][..], |tensor| &tensor.shape);
        let sizes: Vec<String> = sizes.iter().map(|size| self.signature.show(size)).collect();
        format!("{}: {}[{}]", of.name, of.element, sizes.join(", "))
    }

    /// Names in the left-hand indices that nothing defines: the axes that a reduction would bind.
    fn unbound(&self, scatter: &ast::Scatter) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for index in &scatter.indices {
            index.visit(&mut |part| {
                let ast::ExprKind::Name(name) = &part.kind else { return };
                let name = plain(name);
                let is_left = scatter.indices.iter().any(|index| std::ptr::eq(index, part));
                let is_known = self.signature.globals.contains_key(name) || names.iter().any(|known| known == name);
                if !is_left && !is_known {
                    names.push(name.to_owned());
                }
            });
        }
        names
    }

    /// The term and its place.
    fn scattered(
        &mut self,
        reduction: &ast::Reduction,
        ast: &ast::Equation,
        scatter: &ast::Scatter,
        declared: Option<ElementType>,
    ) -> Option<ValueId> {
        let kind = reduction.kind.value;
        self.order(reduction)?;
        if let Some(promote) = &reduction.promote {
            let problem = PromotionProblem::NotADot(kind.as_str());
            self.diags.report(Promotion { problem, span: promote.span });
        }
        let indices: Vec<Option<IndexId>> = scatter.indices.iter().map(|index| self.index(index)).collect();
        let term = match kind {
            ast::ReductionKind::Only => self.value(&reduction.body, Hint::from(declared))?,
            _ => self.term(kind, &reduction.body, Hint::from(declared))?,
        };
        let indices = indices.into_iter().collect::<Option<Vec<IndexId>>>()?;
        let (expected, found) = (declared?, self.nodes.element(term));
        if expected != found {
            let place = TypeMismatchAt::Output(plain(ast.targets.first()?).to_owned());
            self.diags.report(TypeMismatch { place, expected, found, span: reduction.body.span, literal: None });
            return None;
        }
        let op = match kind {
            ast::ReductionKind::Max => Some(Reduction::Max),
            ast::ReductionKind::Min => Some(Reduction::Min),
            ast::ReductionKind::Only => None,
            _ => Some(Reduction::Sum),
        };
        if !update_of(op).is_some_and(|update| update.takes(found)) {
            let (name, kind) = (plain(ast.targets.first()?).to_owned(), kind.as_str());
            let problem = ScatterProblem::NoInstruction { kind, element: found };
            self.diags.report(BadScatter { name, problem, span: ast.head });
            return None;
        }
        let is_unordered = reduction.order.as_ref().is_some_and(|o| o.value == ast::ReductionOrder::Unordered);
        if op == Some(Reduction::Sum) && found.is_float() && !is_unordered {
            let (element, span) = (found, reduction.kind.span);
            self.diags.report(OrderedByNobody { element, span, reduction: None });
            return None;
        }
        let indices = self.nodes.index_list(indices);
        Some(self.nodes.value(Value::Scatter { op, indices, term }, found, ast.value.span))
    }
}

/// The word `only` in a part of an expression.
fn only_in(value: &ast::Expr) -> Option<Span> {
    let mut found = None;
    value.visit(&mut |part| {
        if let ast::ExprKind::Reduction(reduction) = &part.kind
            && reduction.kind.value == ast::ReductionKind::Only
        {
            found.get_or_insert(reduction.kind.span);
        }
    });
    found
}

/// The operation on memory that takes in the terms of a scatter; none if there is none.
pub fn update_of(op: Option<Reduction>) -> Option<AtomicOp> {
    match op {
        None => Some(AtomicOp::Set),
        Some(Reduction::Sum) => Some(AtomicOp::Add),
        Some(Reduction::Max) => Some(AtomicOp::Max),
        Some(Reduction::Min) => Some(AtomicOp::Min),
        Some(_) => None,
    }
}

/// Refuses reads of what a scatter writes, some terms of which are there and others are not, and copies of it.
pub(super) fn check_reads(kernel: &ast::Kernel, plan: &Plan<'_>, diags: &mut Diagnostics) {
    let is_scatter = |ast: &ast::Equation| ast.scatter.as_ref().is_some_and(ast::Scatter::is_placed_by_memory);
    for scatter in plan.equations.iter().filter(|planned| is_scatter(planned.ast)) {
        for target in &scatter.ast.targets {
            for item in &kernel.items {
                if let ast::Item::Stage(copy) = item
                    && plain(&copy.source) == plain(target)
                {
                    let (name, problem) = (plain(target).to_owned(), ScatterProblem::Copied { at: copy.source.span });
                    diags.report(BadScatter { name, problem, span: scatter.ast.head });
                }
            }
            for part in plan.equations.iter().flat_map(|reader| reader.ast.parts()) {
                part.visit(&mut |read| {
                    if let ast::ExprKind::Read(of) = &read.kind
                        && plain(&of.tensor) == plain(target)
                    {
                        let name = plain(target).to_owned();
                        let problem = ScatterProblem::Read { scatter: scatter.ast.head };
                        diags.report(BadScatter { name, problem, span: read.span });
                    }
                });
            }
        }
    }
}
