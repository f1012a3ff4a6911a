//! Sizes and indices in a normal form: a sum of products with integer coefficients, so that `N + N` equals `2 * N`.
//!
//! Dimensions that a fact `D == …` gives in terms of others are replaced by those, and the bounds that facts give single
//! dimensions decide signs. Arithmetic is exact; a form that grows too long, or a coefficient beyond 128 bits, becomes an
//! opaque atom that equals only itself, which makes less comparable and nothing wrong.

use tilewright_kernel::algorithm::{AxisId, Index, IndexId};
use tilewright_kernel::info::DimKind;
use tilewright_kernel::{Relation, Size, SizeOp};

use super::nodes::Nodes;
use super::signature::Signature;
use crate::syntax::Span;

/// Terms of a form at most, and factors of a term.
const LONGEST: usize = 32;

/// What a form is a polynomial over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Atom {
    Dim(u16),
    Axis(AxisId),
    /// ⌊a / b⌋
    Div(Box<Form>, Box<Form>),
    /// a − b·⌊a / b⌋
    Mod(Box<Form>, Box<Form>),
    /// An index that has no form: a value, or one too long.
    Opaque(IndexId),
    /// A size that has no form: too long, or an operation that indices lack.
    OpaqueSize(Vec<(u8, i64)>),
}

/// Σ coefficient · Π atoms; sorted, no coefficient 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    pub terms: Vec<(Vec<Atom>, i128)>,
}

impl Form {
    pub fn constant(value: i128) -> Form {
        Form { terms: if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] } }
    }

    pub fn atom(atom: Atom) -> Form {
        Form { terms: vec![(vec![atom], 1)] }
    }

    pub fn as_constant(&self) -> Option<i128> {
        match &self.terms[..] {
            [] => Some(0),
            [(atoms, value)] if atoms.is_empty() => Some(*value),
            _ => None,
        }
    }

    pub fn add(&self, other: &Form) -> Option<Form> {
        self.combine(other, 1)
    }

    pub fn sub(&self, other: &Form) -> Option<Form> {
        self.combine(other, -1)
    }

    /// self + factor · other
    fn combine(&self, other: &Form, factor: i128) -> Option<Form> {
        let mut terms = self.terms.clone();
        for (atoms, coefficient) in &other.terms {
            let coefficient = coefficient.checked_mul(factor)?;
            match terms.binary_search_by(|(known, _)| known.cmp(atoms)) {
                Ok(at) => {
                    terms[at].1 = terms[at].1.checked_add(coefficient)?;
                    if terms[at].1 == 0 {
                        terms.remove(at);
                    }
                }
                Err(at) => terms.insert(at, (atoms.clone(), coefficient)),
            }
        }
        (terms.len() <= LONGEST).then_some(Form { terms })
    }

    pub fn mul(&self, other: &Form) -> Option<Form> {
        let mut product = Form::constant(0);
        for (a, x) in &self.terms {
            for (b, y) in &other.terms {
                let mut atoms = [a.clone(), b.clone()].concat();
                if atoms.len() > LONGEST {
                    return None;
                }
                atoms.sort();
                product = product.add(&Form { terms: vec![(atoms, x.checked_mul(*y)?)] })?;
            }
        }
        Some(product)
    }

    /// ⌊self / by⌋ for by > 0
    pub fn div(&self, by: &Form) -> Form {
        if let Some(divisor) = by.as_constant()
            && divisor > 0
        {
            if let Some(value) = self.as_constant() {
                return Form::constant(value.div_euclid(divisor));
            }
            if self.terms.iter().all(|(_, c)| c % divisor == 0) {
                return Form { terms: self.terms.iter().map(|(atoms, c)| (atoms.clone(), c / divisor)).collect() };
            }
        }
        Form::atom(Atom::Div(Box::new(self.clone()), Box::new(by.clone())))
    }

    /// self mod by for by > 0
    pub fn rem(&self, by: &Form) -> Form {
        if let Some(divisor) = by.as_constant()
            && divisor > 0
        {
            if let Some(value) = self.as_constant() {
                return Form::constant(value.rem_euclid(divisor));
            }
            if self.terms.iter().all(|(_, c)| c % divisor == 0) {
                return Form::constant(0);
            }
        }
        Form::atom(Atom::Mod(Box::new(self.clone()), Box::new(by.clone())))
    }

    /// Whether an axis or an opaque index occurs anywhere.
    pub fn varies(&self) -> bool {
        self.terms.iter().any(|(atoms, _)| atoms.iter().any(Atom::varies))
    }

    /// The largest axis that occurs anywhere.
    pub fn innermost(&self) -> Option<AxisId> {
        self.terms.iter().flat_map(|(atoms, _)| atoms).filter_map(Atom::innermost).max()
    }
}

impl Atom {
    pub fn varies(&self) -> bool {
        match self {
            Atom::Dim(_) | Atom::OpaqueSize(_) => false,
            Atom::Axis(_) | Atom::Opaque(_) => true,
            Atom::Div(a, b) | Atom::Mod(a, b) => a.varies() || b.varies(),
        }
    }

    pub fn innermost(&self) -> Option<AxisId> {
        match self {
            Atom::Dim(_) | Atom::Opaque(_) | Atom::OpaqueSize(_) => None,
            Atom::Axis(axis) => Some(*axis),
            Atom::Div(a, b) | Atom::Mod(a, b) => a.innermost().max(b.innermost()),
        }
    }
}

/// What the facts say about single dimensions.
#[derive(Debug)]
pub(super) struct Sizes {
    /// What a dimension is equal to.
    equal: Vec<Option<Form>>,
    least: Vec<Option<i128>>,
    greatest: Vec<Option<i128>>,
}

impl Sizes {
    pub fn new(signature: &Signature) -> Sizes {
        let count = signature.dims.len();
        let least = signature.dims.iter().map(|d| (d.kind == DimKind::Size).then_some(0)).collect();
        let mut sizes = Sizes { equal: vec![None; count], least, greatest: vec![None; count] };
        let facts = signature.facts.iter().map(|f| &f.constraint);
        for fact in facts.clone().filter(|f| f.relation == Relation::Eq) {
            let sides = [(&fact.lhs, &fact.rhs), (&fact.rhs, &fact.lhs)];
            for (side, other) in sides {
                let Some(dim) = side.as_dim() else { continue };
                let form = sizes.size(other);
                // Later facts may use this dimension; earlier ones must not lead back to it.
                let free = sizes.equal[usize::from(dim)].is_none() && !mentions(&form, dim);
                let used = sizes.equal.iter().flatten().any(|f| mentions(f, dim));
                if free && !used {
                    sizes.equal[usize::from(dim)] = Some(form);
                    break;
                }
            }
        }
        for fact in facts {
            sizes.bound(&fact.lhs, fact.relation, &fact.rhs);
            let mirrored = match fact.relation {
                Relation::Le => Relation::Ge,
                Relation::Lt => Relation::Gt,
                Relation::Ge => Relation::Le,
                Relation::Gt => Relation::Lt,
                same => same,
            };
            sizes.bound(&fact.rhs, mirrored, &fact.lhs);
        }
        sizes
    }

    fn bound(&mut self, side: &Size, relation: Relation, other: &Size) {
        let (Some(dim), Some(c)) = (side.as_dim(), other.as_constant()) else { return };
        let (dim, c) = (usize::from(dim), i128::from(c));
        let (least, greatest) = match relation {
            Relation::Eq => (Some(c), Some(c)),
            Relation::Ge => (Some(c), None),
            Relation::Gt => (Some(c + 1), None),
            Relation::Le => (None, Some(c)),
            Relation::Lt => (None, Some(c - 1)),
            Relation::Ne => (None, None),
        };
        self.least[dim] = self.least[dim].max(least);
        self.greatest[dim] = match (self.greatest[dim], greatest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    fn dim(&self, dim: u16) -> Form {
        match self.equal.get(usize::from(dim)) {
            Some(Some(form)) => form.clone(),
            _ => Form::atom(Atom::Dim(dim)),
        }
    }

    /// The normal form of a size.
    pub fn size(&self, size: &Size) -> Form {
        let mut stack: Vec<Form> = Vec::new();
        let opaque = || Form::atom(Atom::OpaqueSize(size.ops.iter().map(op_key).collect()));
        for op in size.ops.iter() {
            let form = match *op {
                SizeOp::Const(c) => Some(Form::constant(i128::from(c))),
                SizeOp::Dim(d) => Some(self.dim(d)),
                _ => {
                    let (Some(b), Some(a)) = (stack.pop(), stack.pop()) else { return opaque() };
                    match op {
                        SizeOp::Add => a.add(&b),
                        SizeOp::Sub => a.sub(&b),
                        SizeOp::Mul => a.mul(&b),
                        SizeOp::Div => Some(a.div(&b)),
                        SizeOp::Mod => Some(a.rem(&b)),
                        _ => None,
                    }
                }
            };
            let Some(form) = form else { return opaque() };
            stack.push(form);
        }
        match <[Form; 1]>::try_from(stack) {
            Ok([form]) => form,
            Err(_) => opaque(),
        }
    }

    /// The normal form of an index.
    pub fn index(&self, nodes: &Nodes, id: IndexId) -> Form {
        let opaque = || Form::atom(Atom::Opaque(id));
        let pair = |a, b| (self.index(nodes, a), self.index(nodes, b));
        match nodes.indices[id as usize] {
            Index::Literal(c) => Form::constant(i128::from(c)),
            Index::Dim(d) => self.dim(d),
            Index::Axis(a) => Form::atom(Atom::Axis(a)),
            Index::Value(_) => opaque(),
            Index::Add(a, b) => {
                let (a, b) = pair(a, b);
                a.add(&b).unwrap_or_else(opaque)
            }
            Index::Sub(a, b) => {
                let (a, b) = pair(a, b);
                a.sub(&b).unwrap_or_else(opaque)
            }
            Index::Mul(a, b) => {
                let (a, b) = pair(a, b);
                a.mul(&b).unwrap_or_else(opaque)
            }
            Index::Div(a, b) => {
                let (a, b) = pair(a, b);
                a.div(&b)
            }
            Index::Mod(a, b) => {
                let (a, b) = pair(a, b);
                a.rem(&b)
            }
        }
    }

    /// Least and greatest value that a form without axes can have, as far as the facts on single dimensions say.
    pub fn bounds(&self, form: &Form) -> (Option<i128>, Option<i128>) {
        let (mut low, mut high) = (Some(0_i128), Some(0_i128));
        for (atoms, coefficient) in &form.terms {
            // A product of non-negative numbers lies between the products of their bounds.
            let (mut least, mut greatest) = (Some(1_i128), Some(1_i128));
            for atom in atoms {
                let (a, b) = self.atom_bounds(atom);
                least = least.zip(a.filter(|a| *a >= 0)).and_then(|(x, y)| x.checked_mul(y));
                greatest = greatest.zip(b).and_then(|(x, y)| x.checked_mul(y)).filter(|_| least.is_some());
            }
            let (down, up) = if *coefficient >= 0 { (least, greatest) } else { (greatest, least) };
            let add = |sum: Option<i128>, bound: Option<i128>| {
                sum?.checked_add(bound?.checked_mul(*coefficient)?)
            };
            (low, high) = (add(low, down), add(high, up));
        }
        (low, high)
    }

    fn atom_bounds(&self, atom: &Atom) -> (Option<i128>, Option<i128>) {
        match atom {
            Atom::Dim(d) => (self.least[usize::from(*d)], self.greatest[usize::from(*d)]),
            Atom::Div(a, b) => match b.as_constant() {
                Some(by) if by > 0 => {
                    let (low, high) = self.bounds(a);
                    (low.map(|v| v.div_euclid(by)), high.map(|v| v.div_euclid(by)))
                }
                _ => (None, None),
            },
            Atom::Mod(_, b) => match b.as_constant() {
                Some(by) if by > 0 => (Some(0), Some(by - 1)),
                _ => (Some(0), None),
            },
            Atom::Axis(_) | Atom::Opaque(_) | Atom::OpaqueSize(_) => (None, None),
        }
    }
}

fn mentions(form: &Form, dim: u16) -> bool {
    let within = |atom: &Atom| match atom {
        Atom::Dim(d) => *d == dim,
        Atom::Div(a, b) | Atom::Mod(a, b) => mentions(a, dim) || mentions(b, dim),
        Atom::OpaqueSize(ops) => ops.contains(&(1, i64::from(dim))),
        Atom::Axis(_) | Atom::Opaque(_) => false,
    };
    form.terms.iter().any(|(atoms, _)| atoms.iter().any(within))
}

/// A step of a size as something with an order.
fn op_key(op: &SizeOp) -> (u8, i64) {
    match *op {
        SizeOp::Const(c) => (0, c),
        SizeOp::Dim(d) => (1, i64::from(d)),
        SizeOp::Add => (2, 0),
        SizeOp::Sub => (3, 0),
        SizeOp::Mul => (4, 0),
        SizeOp::Div => (5, 0),
        SizeOp::CeilDiv => (6, 0),
        SizeOp::Mod => (7, 0),
        SizeOp::Min => (8, 0),
        SizeOp::Max => (9, 0),
    }
}

impl Nodes {
    /// An index with the value of `form`; `None` if it has none (an opaque size, a coefficient beyond 64 bits).
    pub fn index_of_form(&mut self, form: &Form, span: Span) -> Option<IndexId> {
        // Positive terms first and constants last, as people write them.
        let mut terms: Vec<&(Vec<Atom>, i128)> = form.terms.iter().collect();
        terms.sort_by_key(|(atoms, coefficient)| (atoms.is_empty(), *coefficient < 0));
        let mut sum: Option<IndexId> = None;
        for (atoms, coefficient) in terms {
            let magnitude = i64::try_from(coefficient.checked_abs()?).ok()?;
            let mut product: Option<IndexId> = None;
            if magnitude != 1 || atoms.is_empty() {
                product = Some(self.index(Index::Literal(magnitude), span));
            }
            for atom in atoms {
                let factor = self.index_of_atom(atom, span)?;
                product = Some(match product {
                    Some(product) => self.index(Index::Mul(product, factor), span),
                    None => factor,
                });
            }
            let product = product?;
            sum = Some(match (sum, *coefficient < 0) {
                (None, false) => product,
                (None, true) if atoms.is_empty() => self.index(Index::Literal(-magnitude), span),
                (None, true) => {
                    let zero = self.index(Index::Literal(0), span);
                    self.index(Index::Sub(zero, product), span)
                }
                (Some(sum), false) => self.index(Index::Add(sum, product), span),
                (Some(sum), true) => self.index(Index::Sub(sum, product), span),
            });
        }
        Some(match sum {
            Some(sum) => sum,
            None => self.index(Index::Literal(0), span),
        })
    }

    fn index_of_atom(&mut self, atom: &Atom, span: Span) -> Option<IndexId> {
        match atom {
            Atom::Dim(d) => Some(self.index(Index::Dim(*d), span)),
            Atom::Axis(a) => Some(self.index(Index::Axis(*a), span)),
            Atom::Div(a, b) | Atom::Mod(a, b) => {
                let (x, y) = (self.index_of_form(a, span)?, self.index_of_form(b, span)?);
                let node = if matches!(atom, Atom::Div(..)) { Index::Div(x, y) } else { Index::Mod(x, y) };
                Some(self.index(node, span))
            }
            Atom::Opaque(_) | Atom::OpaqueSize(_) => None,
        }
    }
}
