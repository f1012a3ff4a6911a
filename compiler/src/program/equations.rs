//! One equation at a time, in dependency order: its axes, its value, its components; and the context that the rooms of
//! index and value expressions share.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{AxisId, Component, Equation, IndexId, Source, Value, ValueId};
use tilewright_kernel::info::ParameterKind;

use super::names::{Global, Local, Scope, plain};
use super::nodes::{Nodes, UNKNOWN};
use super::order::Plan;
use super::scatter::Scattered;
use super::signature::{LIMIT, Signature};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    DuplicateName, NameUse, TooMany, TupleUse, TypeMismatch, TypeMismatchAt, UnknownName, WrongRank, WrongTuple,
    WrongUse,
};
use crate::source::{Span, ast};

/// A read of a tensor, and what is known to hold where it is evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadSite {
    /// The [`Value::Read`].
    pub value: ValueId,
    /// The equation that it belongs to.
    pub equation: u16,
    /// The innermost condition around it: a position in [`Sites::guards`].
    pub guard: Option<u32>,
}

/// The condition of an `if` around one of its branches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    /// The next condition further out.
    pub outer: Option<u32>,
    pub condition: ValueId,
    /// Whether it holds or fails there.
    pub holds: bool,
}

/// Where tensors are read.
#[derive(Debug, Default)]
pub(super) struct Sites {
    pub reads: Vec<ReadSite>,
    pub guards: Vec<Guard>,
    /// For each equation: its axes; of a scatter those that are indices of its tensor.
    pub axes: Vec<Vec<AxisId>>,
}

/// What axes are of, which decides where their ranges may begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxesOf {
    /// An equation.
    Equation,
    /// The terms of a sum, another reduction with a result without terms, or a fold.
    Terms,
    /// What an `argmax` or `argmin` looks at: something.
    Search,
}

/// What a literal may be taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// Nothing fixes it.
    None,
    /// The context needs this type.
    Of(ElementType),
    /// The context is wrong already: anything goes.
    Poison,
}

impl Hint {
    /// The type of a sibling that was built, or was wrong.
    pub fn from(sibling: Option<ElementType>) -> Hint {
        sibling.map_or(Hint::Poison, Hint::Of)
    }
}

/// What the equations are built with.
pub(super) struct Context<'a> {
    pub signature: &'a Signature,
    pub plan: &'a Plan<'a>,
    pub diags: &'a mut Diagnostics,
    pub nodes: Nodes,
    pub scope: Scope,
    pub sites: Sites,
    /// The equation being built.
    pub equation: u16,
    /// The innermost condition around the expression being built.
    pub guard: Option<u32>,
    /// Element types of the components of the equations built; `None` where the equation is wrong.
    component_types: Vec<Vec<Option<ElementType>>>,
}

/// What the equations became.
pub(super) struct Built {
    pub nodes: Nodes,
    pub sites: Sites,
}

impl<'a> Context<'a> {
    pub fn new(signature: &'a Signature, plan: &'a Plan<'a>, diags: &'a mut Diagnostics) -> Self {
        Self {
            signature,
            plan,
            diags,
            nodes: Nodes::default(),
            scope: Scope::default(),
            sites: Sites::default(),
            equation: 0,
            guard: None,
            component_types: Vec::new(),
        }
    }

    pub fn finish(self) -> Built {
        Built { nodes: self.nodes, sites: self.sites }
    }

    /// Builds the equation at `position` of the plan.
    pub fn equation(&mut self, position: usize) {
        let planned = &self.plan.equations[position];
        self.equation = u16::try_from(position).expect("the plan has at most as many equations as fit");
        self.check_target_ranks(position);
        let declared: Vec<Option<ElementType>> = planned.parameters.iter().map(|p| self.parameter_type(*p)).collect();
        let (axes, values) = match &planned.ast.scatter {
            Some(scatter) => {
                let Scattered { own, all, value } = self.scatter(planned.ast, scatter, &declared);
                self.sites.axes.push(own);
                (all, vec![value])
            }
            None => {
                // A left-hand side is written outermost first, but a range may mention sizes only.
                let axes = self.axes(&planned.ast.axes, AxesOf::Equation);
                self.sites.axes.push(axes.clone());
                (axes, self.right_hand_side(planned.ast, &declared))
            }
        };
        self.scope.pop_to(0);

        let mut components = Vec::new();
        let mut types = Vec::new();
        for (n, target) in planned.ast.targets.iter().enumerate() {
            let value = values.get(n).copied().flatten();
            let found = value.map(|v| self.nodes.element(v));
            if let (Some(Some(expected)), Some(found)) = (declared.get(n), found)
                && *expected != found
            {
                let place = TypeMismatchAt::Output(plain(target).to_owned());
                let of_target = match &planned.ast.value.kind {
                    ast::ExprKind::Tuple(parts) => parts.get(n),
                    _ => None,
                };
                let span = of_target.unwrap_or(&planned.ast.value).span;
                self.diags.report(TypeMismatch { place, expected: *expected, found, span, literal: None });
            }
            types.push(declared[n].or(found));
            let parameter = planned.parameters[n];
            let name = plain(target).to_owned().into();
            components.push((Component { name, value: value.unwrap_or(0), parameter }, target.span));
        }
        self.component_types.push(types);
        let components = self.nodes.component_list(components);
        let axes = self.nodes.axis_list(axes);
        self.nodes.equations.push(Equation { components, axes });
    }

    fn parameter_type(&self, parameter: Option<u16>) -> Option<ElementType> {
        let parameter = self.signature.parameters.get(usize::from(parameter?))?;
        Some(parameter.element)
    }

    /// The value of each component.
    fn right_hand_side(&mut self, ast: &ast::Equation, declared: &[Option<ElementType>]) -> Vec<Option<ValueId>> {
        let hints: Vec<Hint> = declared.iter().map(|d| d.map_or(Hint::None, Hint::Of)).collect();
        if let ast::ExprKind::Fold(fold) = &ast.value.kind {
            let Some((id, types)) = self.fold(fold, &hints, ast.value.span) else { return Vec::new() };
            if types.len() != ast.targets.len() {
                let (expected, found) = (ast.targets.len(), types.len());
                self.diags.report(WrongTuple { what: TupleUse::Targets, expected, found, span: ast.value.span });
                return Vec::new();
            }
            let component = |(n, &ty)| {
                let node = Value::Component { fold: id, component: n };
                Some(self.nodes.value(node, ty, ast.value.span))
            };
            return (0..).zip(&types).map(component).collect();
        }
        let parts = match &ast.value.kind {
            ast::ExprKind::Tuple(parts) => &parts[..],
            _ => std::slice::from_ref(&ast.value),
        };
        let (expected, found) = (ast.targets.len(), parts.len());
        if expected != found {
            self.diags.report(WrongTuple { what: TupleUse::Targets, expected, found, span: ast.value.span });
            return Vec::new();
        }
        parts.iter().zip(hints).map(|(part, hint)| self.value(part, hint)).collect()
    }

    fn check_target_ranks(&mut self, position: usize) {
        let planned = &self.plan.equations[position];
        for (target, parameter) in planned.ast.targets.iter().zip(&planned.parameters) {
            let Some(parameter) = *parameter else { continue };
            let Some(tensor) = self.signature.tensor(parameter) else { continue };
            let (expected, found) = (tensor.shape.len(), planned.ast.rank());
            if expected != found && !self.signature.broken[usize::from(parameter)] {
                let declared = self.signature.parameter_spans[usize::from(parameter)];
                let name = plain(target).to_owned();
                self.diags.report(WrongRank {
                    name,
                    expected,
                    found,
                    declared: Some(declared),
                    is_copy: false,
                    span: planned.ast.head,
                });
            }
        }
    }

    /// Declares axes: each is visible to what follows, to the ranges of later axes too unless they are an equation's.
    pub fn axes(&mut self, axes: &[ast::AxisDecl], of: AxesOf) -> Vec<AxisId> {
        if let Some(extra) = axes.get(LIMIT) {
            self.diags.report(TooMany { what: "axes", limit: LIMIT, span: extra.span });
        }
        let mut ids = Vec::new();
        let mut names = Vec::new();
        for axis in axes.iter().take(LIMIT) {
            let (lower, upper) = match &axis.range {
                None => (UNKNOWN, UNKNOWN),
                Some(range) => {
                    let (start, end) = (self.bound(&range.start), self.bound(&range.end));
                    for (bound, is_end) in [(start, false), (end, true)] {
                        if let Some(bound) = bound {
                            self.check_bound(&axis.name.text, bound, is_end, of);
                        }
                    }
                    let end = end.map(|end| if range.inclusive { self.plus_one(end, range.end.span) } else { end });
                    (start.unwrap_or(UNKNOWN), end.unwrap_or(UNKNOWN))
                }
            };
            let name = plain(&axis.name);
            let id = self.nodes.axis(name.to_owned(), lower, upper, axis.name.span);
            ids.push(id);
            // The axes of an equation do not see each other in their ranges.
            if of == AxesOf::Equation {
                names.push((name, id, axis.name.span));
            } else {
                self.declare(name, Local::Axis(id), axis.name.span);
            }
        }
        for (name, id, span) in names {
            self.declare(name, Local::Axis(id), span);
        }
        ids
    }

    /// Enters a local name; one that is taken already is an error and means nothing.
    pub fn declare(&mut self, name: &str, local: Local, span: Span) {
        let global = self.signature.globals.get(name).and_then(|&global| match global {
            Global::Dim(dim) => Some(self.signature.dim_spans[usize::from(dim)]),
            Global::Scalar(parameter) => Some(self.signature.parameter_spans[usize::from(parameter)]),
            Global::Poison => None,
        });
        let first = global.or(self.scope.get(name).map(|(_, span)| span));
        if let Some(first) = first {
            self.diags.report(DuplicateName { name: name.to_owned(), first, second: span });
            self.scope.push(name, Local::Poison, span);
            return;
        }
        self.scope.push(name, local, span);
    }

    /// Reports a name that stands where a size, axis, scalar or variable is expected, and is none.
    pub fn unknown_name(&mut self, name: &ast::Name) {
        let text = plain(name);
        let rank = self.rank(text);
        if let Some(rank) = rank {
            self.diags.report(WrongUse {
                used: NameUse::TensorWithoutIndices(rank),
                name: text.to_owned(),
                span: name.span,
            });
            return;
        }
        let globals = self.signature.globals.keys().map(String::as_str);
        let mut known: Vec<String> = Vec::new();
        for name in self.scope.all().chain(globals) {
            // An axis named twice is one name, and reported elsewhere.
            if !known.iter().any(|k| k == name) {
                known.push(name.to_owned());
            }
        }
        let kind = "size, axis or scalar".to_owned();
        self.diags.report(UnknownName { kind, name: text.to_owned(), known, span: name.span });
    }

    /// The rank of the tensor with this name.
    pub(super) fn rank(&self, name: &str) -> Option<usize> {
        if let Some(&parameter) = self.signature.tensors.get(name) {
            return self.signature.tensor(parameter).map(|t| t.shape.len());
        }
        let (equation, _) = self.plan.targets.get(name)?;
        Some(self.plan.equations[usize::from(*equation)].ast.rank())
    }

    /// A read of a tensor; the value `or` included.
    pub fn read(&mut self, read: &ast::Read, span: Span) -> Option<ValueId> {
        let name = plain(&read.tensor);
        let source = self.source(&read.tensor);
        let indices: Vec<Option<IndexId>> = read.indices.iter().map(|e| self.index(e)).collect();
        let element = source.and_then(|(_, element)| element);
        let or = read.otherwise.as_ref().map(|e| self.value_of_type(e, element, TypeMismatchAt::Or(name.to_owned())));
        let (source, _) = source?;
        let rank = self.rank(name)?;
        let broken = matches!(source, Source::Parameter(p) if self.signature.broken[usize::from(p)]);
        if rank != indices.len() && !broken {
            let declared = match source {
                Source::Parameter(p) => Some(self.signature.parameter_spans[usize::from(p)]),
                Source::Equation { equation, .. } => Some(self.plan.equations[usize::from(equation)].ast.head),
            };
            self.diags.report(WrongRank {
                name: name.to_owned(),
                expected: rank,
                found: indices.len(),
                declared,
                is_copy: false,
                span,
            });
            return None;
        }
        let indices = indices.into_iter().collect::<Option<Vec<IndexId>>>()?;
        if or.is_none() {
            self.check_gathers(name, &indices, span);
        }
        let or = match or {
            Some(or) => Some(or?),
            None => None,
        };
        let indices = self.nodes.index_list(indices);
        let value = self.nodes.value(Value::Read { source, indices, or }, element?, span);
        self.sites.reads.push(ReadSite { value, equation: self.equation, guard: self.guard });
        Some(value)
    }

    /// What a read of `tensor` refers to, and its element type if that is known.
    fn source(&mut self, tensor: &ast::Name) -> Option<(Source, Option<ElementType>)> {
        let name = plain(tensor);
        let parameter = self.signature.tensors.get(name).copied();
        // An input, or what an in-place tensor held before; an output is read through its equation.
        let is_input =
            |p: u16| self.signature.tensor(p).is_some_and(|t| t.role != tilewright_kernel::info::Role::Output);
        if let Some(parameter) = parameter
            && is_input(parameter)
        {
            return Some((Source::Parameter(parameter), self.parameter_type(Some(parameter))));
        }
        if let Some(&(equation, component)) = self.plan.targets.get(name) {
            let types = self.component_types.get(usize::from(equation));
            let element = types.and_then(|t| t.get(usize::from(component))).copied().flatten();
            return Some((Source::Equation { equation, component }, element));
        }
        if parameter.is_some() {
            // An output without an equation: reported where it is declared.
            return None;
        }
        let local = self.scope.get(name).is_some();
        let scalar = self.signature.globals.get(name);
        if local || scalar.is_some() {
            self.diags.report(WrongUse { used: NameUse::Indexed, name: name.to_owned(), span: tensor.span });
            return None;
        }
        let parameters = self.signature.parameters.iter().filter(|p| p.kind != ParameterKind::Scalar).map(|p| &*p.name);
        let intermediates = self.plan.targets.keys().filter(|t| !self.signature.tensors.contains_key(**t));
        let known = parameters.chain(intermediates.copied()).map(str::to_owned).collect();
        let kind = "tensor".to_owned();
        self.diags.report(UnknownName { kind, name: name.to_owned(), known, span: tensor.span });
        None
    }
}
