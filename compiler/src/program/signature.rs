//! The head of a kernel: dimensions, parameters, shapes, facts, and which dimension is told by what.
//!
//! A size is an expression of literals and UPPERCASE names with `+ - * / %`; a stride may also be a lower-case name. A
//! dimension must be told at launch: it is one whole size or stride of a tensor parameter, or a fact `==` determines it
//! from dimensions that are told (`K == 4096`, `P == 2 * Q` for either side). [`Signature::solved`] lists the latter.

use tilewright_kernel::info::{Dim, DimKind, Parameter, ParameterKind, Role, TensorParameter};
use tilewright_kernel::{Constraint, ElementType, Relation, Size, SizeOp};
use tilewright_sorted::SortedMap;

use super::names::{Global, Globals, is_size_name, plain};
use super::{Fact, Solved};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    BadSize, DuplicateName, NotSupportedYet, NotTold, ScalarOutput, SizeProblem, StrideCount, TooMany, UnknownName,
};
use crate::source::{Span, ast};

/// Most parameters, sizes, equations, and axes of one left-hand side or reduction. All are numbered with 16 bits, and
/// analyses that compare them in pairs must stay fast.
pub(super) const LIMIT: usize = 1024;

/// The head of a kernel.
#[derive(Debug, Default)]
pub(super) struct Signature {
    pub dims: Vec<Dim>,
    pub dim_spans: Vec<Span>,
    pub parameters: Vec<Parameter>,
    pub parameter_spans: Vec<Span>,
    pub facts: Vec<Fact>,
    pub solved: Vec<Solved>,
    /// Dimensions and scalars by name.
    pub globals: Globals,
    /// Tensor parameters by name.
    pub tensors: SortedMap<String, u16>,
    /// Parameters whose shape was wrong: reads of them are not checked.
    pub broken: Vec<bool>,
}

impl Signature {
    pub fn tensor(&self, parameter: u16) -> Option<&TensorParameter> {
        match &self.parameters.get(usize::from(parameter))?.kind {
            ParameterKind::Tensor(tensor) => Some(tensor),
            ParameterKind::Scalar => None,
        }
    }

    pub fn dim_name(&self, dim: u16) -> &str {
        self.dims.get(usize::from(dim)).map_or("?", |d| &d.name)
    }

    /// Whether this is a scalar that is passed in (one that is declared as an output was reported).
    pub fn is_scalar_input(&self, name: &str) -> bool {
        let mut named = self.parameters.iter().zip(&self.broken).filter(|(p, _)| p.name == name);
        named.any(|(p, broken)| p.kind == ParameterKind::Scalar && !broken)
    }

    /// A size as text.
    pub fn show(&self, size: &Size) -> String {
        size.display(&|d| self.dim_name(d)).to_string()
    }
}

/// Where a size stands, which decides the names that it may introduce.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Size,
    Stride,
    Fact,
}

struct Builder<'a> {
    out: Signature,
    diags: &'a mut Diagnostics,
}

pub(super) fn build(kernel: &ast::Kernel, diags: &mut Diagnostics) -> Signature {
    let mut builder = Builder { out: Signature::default(), diags };
    builder.parameters(kernel);
    builder.facts(&kernel.facts);
    builder.solve();
    builder.out
}

impl Builder<'_> {
    fn parameters(&mut self, kernel: &ast::Kernel) {
        let all = kernel.inputs.iter().map(|p| (p, false)).chain(kernel.outputs.iter().map(|p| (p, true)));
        let mut seen: SortedMap<&str, Span> = SortedMap::new();
        for (param, is_output) in all {
            let name = plain(&param.name);
            if let Some(&first) = seen.get(name) {
                self.diags.report(DuplicateName { name: name.to_owned(), first, second: param.name.span });
                continue;
            }
            if self.out.parameters.len() == LIMIT {
                self.diags.report(TooMany { what: "parameters", limit: LIMIT, span: param.span });
                return;
            }
            seen.insert(name, param.name.span);
            let position = u16::try_from(self.out.parameters.len()).expect("checked against the limit");
            let element = param.ty.element.value;
            let written = is_output || param.inout.is_some();
            let (kind, broken) = match &param.ty.shape {
                None => {
                    if written {
                        self.diags.report(ScalarOutput { name: name.to_owned(), element, span: param.ty.span });
                    }
                    (ParameterKind::Scalar, written)
                }
                Some(shape) => {
                    let role = match (is_output, param.inout) {
                        (_, Some(_)) => Role::InOut,
                        (true, None) => Role::Output,
                        (false, None) => Role::Input,
                    };
                    let tensor = self.tensor(shape, role, element);
                    self.out.tensors.insert(name.to_owned(), position);
                    let broken = tensor.is_none();
                    let empty =
                        || TensorParameter { role, shape: vec![].into(), strides: None, alignment: element.bytes() };
                    (ParameterKind::Tensor(tensor.unwrap_or_else(empty)), broken)
                }
            };
            self.out.parameters.push(Parameter { name: name.to_owned().into(), element, kind });
            self.out.parameter_spans.push(param.name.span);
            self.out.broken.push(broken);
        }
        // Scalars enter the name space of sizes after all shapes, so that a clash is reported at the scalar.
        for position in 0..self.out.parameters.len() {
            let parameter = &self.out.parameters[position];
            if parameter.kind != ParameterKind::Scalar {
                continue;
            }
            let name = parameter.name.to_string();
            let second = self.out.parameter_spans[position];
            if let Some(Global::Dim(dim)) = self.out.globals.get(&name) {
                let first = self.out.dim_spans[usize::from(*dim)];
                self.diags.report(DuplicateName { name: name.clone(), first, second });
                self.out.globals.insert(name, Global::Poison);
                continue;
            }
            let position = u16::try_from(position).expect("checked against the limit");
            self.out.globals.insert(name, Global::Scalar(position));
        }
    }

    fn tensor(&mut self, shape: &ast::Shape, role: Role, element: ElementType) -> Option<TensorParameter> {
        let mut sizes = Vec::new();
        for dim in &shape.dims {
            if let Some(span) = dim.broadcast {
                self.diags.report(NotSupportedYet { construct: "?".to_owned(), span, instead: None });
            }
            sizes.push(self.size(&dim.size, Place::Size));
        }
        let strides = shape.strides.as_ref().map(|list| {
            let strides: Vec<Option<Size>> = list.iter().map(|e| self.size(e, Place::Stride)).collect();
            if list.len() != shape.dims.len() {
                let span = list.iter().map(|e| e.span).reduce(Span::to).unwrap_or(shape.span);
                self.diags.report(StrideCount { sizes: shape.dims.len(), strides: list.len(), span });
                return None;
            }
            strides.into_iter().collect::<Option<Vec<Size>>>()
        });
        let sizes = sizes.into_iter().collect::<Option<Vec<Size>>>()?;
        let strides = match strides {
            Some(strides) => Some(strides?.into()),
            None => None,
        };
        Some(TensorParameter { role, shape: sizes.into(), strides, alignment: element.bytes() })
    }

    /// A size of literals and names.
    fn size(&mut self, expr: &ast::Expr, place: Place) -> Option<Size> {
        match &expr.kind {
            ast::ExprKind::Int(literal) => {
                let Ok(value) = i64::try_from(literal.value) else {
                    return self.bad(SizeProblem::TooLarge(literal.value), expr.span);
                };
                if literal.suffix.is_some() {
                    return self.bad(SizeProblem::Suffix(value), expr.span);
                }
                Some(Size::constant(value))
            }
            ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => {
                let inner = self.size(inner, place)?;
                Some(match inner.as_constant() {
                    Some(value) => Size::constant(-value),
                    None => Size::binary(SizeOp::Sub, &Size::constant(0), &inner),
                })
            }
            ast::ExprKind::Name(name) => self.dim(name, place).map(Size::dim),
            ast::ExprKind::Binary(a, op, b) => {
                let step = match op.value {
                    ast::BinaryOp::Add => SizeOp::Add,
                    ast::BinaryOp::Sub => SizeOp::Sub,
                    ast::BinaryOp::Mul => SizeOp::Mul,
                    ast::BinaryOp::Div => SizeOp::Div,
                    ast::BinaryOp::Rem => SizeOp::Mod,
                    _ => return self.bad(SizeProblem::NotASize, expr.span),
                };
                let (a, divisor) = (self.size(a, place), self.size(b, place));
                let (a, b_size) = (a?, divisor?);
                if matches!(step, SizeOp::Div | SizeOp::Mod)
                    && let Some(value) = b_size.as_constant()
                    && value <= 0
                {
                    return self.bad(SizeProblem::Divisor(value), b.span);
                }
                Some(Size::binary(step, &a, &b_size))
            }
            _ => self.bad(SizeProblem::NotASize, expr.span),
        }
    }

    fn bad(&mut self, problem: SizeProblem, span: Span) -> Option<Size> {
        self.diags.report(BadSize { problem, span });
        None
    }

    /// The dimension with this name, entered if it is new and the place may introduce it.
    fn dim(&mut self, name: &ast::Name, place: Place) -> Option<u16> {
        let text = plain(name);
        match self.out.globals.get(text) {
            Some(&Global::Dim(dim)) => {
                let is_stride = self.out.dims[usize::from(dim)].kind == DimKind::Stride;
                if place == Place::Size && is_stride {
                    self.diags.report(BadSize { problem: SizeProblem::LowerCase(text.to_owned()), span: name.span });
                    return None;
                }
                return Some(dim);
            }
            Some(Global::Scalar(_)) => {
                self.diags.report(BadSize { problem: SizeProblem::Scalar(text.to_owned()), span: name.span });
                return None;
            }
            Some(Global::Poison) => return None,
            None => {}
        }
        let kind = match (is_size_name(text), place) {
            (true, _) => DimKind::Size,
            (false, Place::Stride) => DimKind::Stride,
            (false, Place::Size) => {
                self.diags.report(BadSize { problem: SizeProblem::LowerCase(text.to_owned()), span: name.span });
                return None;
            }
            (false, Place::Fact) => {
                let known = self.out.dims.iter().map(|d| d.name.to_string()).collect();
                let kind = "size or stride".to_owned();
                self.diags.report(UnknownName { kind, name: text.to_owned(), known, span: name.span });
                return None;
            }
        };
        if self.out.dims.len() == LIMIT {
            self.diags.report(TooMany { what: "sizes", limit: LIMIT, span: name.span });
            return None;
        }
        let dim = u16::try_from(self.out.dims.len()).expect("checked against the limit");
        self.out.dims.push(Dim { name: text.to_owned().into(), kind });
        self.out.dim_spans.push(name.span);
        self.out.globals.insert(text.to_owned(), Global::Dim(dim));
        Some(dim)
    }

    fn facts(&mut self, facts: &[ast::Fact]) {
        for fact in facts {
            let (lhs, rhs) = (self.size(&fact.lhs, Place::Fact), self.size(&fact.rhs, Place::Fact));
            let (Some(lhs), Some(rhs)) = (lhs, rhs) else { continue };
            let relation = match fact.op.value {
                ast::BinaryOp::Eq => Relation::Eq,
                ast::BinaryOp::Ne => Relation::Ne,
                ast::BinaryOp::Lt => Relation::Lt,
                ast::BinaryOp::Le => Relation::Le,
                ast::BinaryOp::Gt => Relation::Gt,
                ast::BinaryOp::Ge => Relation::Ge,
                _ => {
                    self.bad(SizeProblem::NotASize, fact.span);
                    continue;
                }
            };
            let text = format!("{} {} {}", self.out.show(&lhs), relation.symbol(), self.out.show(&rhs));
            let constraint = Constraint { lhs, relation, rhs, text: text.into() };
            self.out.facts.push(Fact { constraint, span: fact.span });
        }
    }

    /// Finds out what tells each dimension; reports those that nothing tells.
    fn solve(&mut self) {
        let mut told = vec![false; self.out.dims.len()];
        for parameter in &self.out.parameters {
            let ParameterKind::Tensor(tensor) = &parameter.kind else { continue };
            let strides = tensor.strides.iter().flat_map(|s| s.iter());
            for dim in tensor.shape.iter().chain(strides).filter_map(Size::as_dim) {
                told[usize::from(dim)] = true;
            }
        }
        // Each round tells at least one dimension more, so there are at most as many rounds as dimensions.
        loop {
            let before = self.out.solved.len();
            for fact in &self.out.facts {
                if let Some(solved) = solve_fact(&fact.constraint, &told) {
                    told[usize::from(solved.dim)] = true;
                    self.out.solved.push(solved);
                }
            }
            if self.out.solved.len() == before {
                break;
            }
        }
        let broken = self.out.broken.iter().any(|&b| b);
        for (dim, _) in told.iter().enumerate().filter(|(_, told)| !**told) {
            // A shape that was refused may have been the one that tells it.
            if broken {
                continue;
            }
            let name = self.out.dims[dim].name.to_string();
            let within = self.first_size_with(u16::try_from(dim).expect("checked against the limit"));
            let kind = self.out.dims[dim].kind;
            self.diags.report(NotTold { name, kind, within, span: self.out.dim_spans[dim] });
        }
    }

    /// The first size or stride of a parameter that mentions `dim`.
    fn first_size_with(&self, dim: u16) -> Option<String> {
        let tensors = self.out.parameters.iter().filter_map(|p| match &p.kind {
            ParameterKind::Tensor(tensor) => Some(tensor),
            ParameterKind::Scalar => None,
        });
        let mut sizes = tensors.flat_map(|t| t.shape.iter().chain(t.strides.iter().flat_map(|s| s.iter())));
        sizes.find(|s| s.ops.contains(&SizeOp::Dim(dim))).map(|s| self.out.show(s))
    }
}

/// The one untold dimension of an equality, if the rest is told and it can be isolated.
fn solve_fact(fact: &Constraint, told: &[bool]) -> Option<Solved> {
    if fact.relation != Relation::Eq {
        return None;
    }
    let untold = |size: &Size| -> Vec<u16> {
        let dims = size.ops.iter().filter_map(|op| if let SizeOp::Dim(d) = op { Some(*d) } else { None });
        dims.filter(|&d| !told[usize::from(d)]).collect()
    };
    for (side, other) in [(&fact.lhs, &fact.rhs), (&fact.rhs, &fact.lhs)] {
        let &[dim] = &untold(side)[..] else { continue };
        if !untold(other).is_empty() {
            continue;
        }
        let value = match &*side.ops {
            [SizeOp::Dim(_)] => other.clone(),
            [SizeOp::Const(c), SizeOp::Dim(_), SizeOp::Mul] | [SizeOp::Dim(_), SizeOp::Const(c), SizeOp::Mul]
                if *c > 0 =>
            {
                Size::binary(SizeOp::Div, other, &Size::constant(*c))
            }
            [SizeOp::Dim(_), SizeOp::Const(c), SizeOp::Add] | [SizeOp::Const(c), SizeOp::Dim(_), SizeOp::Add] => {
                Size::binary(SizeOp::Sub, other, &Size::constant(*c))
            }
            [SizeOp::Dim(_), SizeOp::Const(c), SizeOp::Sub] => Size::binary(SizeOp::Add, other, &Size::constant(*c)),
            _ => continue,
        };
        return Some(Solved { dim, value });
    }
    None
}
