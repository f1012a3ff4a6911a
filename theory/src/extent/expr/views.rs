//! What expressions are turned into: other variables, values, sizes of the public algorithm, text.

use std::sync::Arc;

use tilewright_kernel::size::{Size, SizeOp};
use tilewright_sorted::SortedMap;

use super::{Atom, Expr, Map, Replaced, Term, Var};

impl Expr {
    /// Every variable replaced by `map` of it (`None` keeps it), renormalised.
    #[must_use]
    pub fn substitute(&self, map: Map<'_>) -> Self {
        if self.is_unknown() {
            return Self::unknown();
        }
        self.replaced(map, &mut SortedMap::new()).unwrap_or_else(|| self.clone())
    }

    /// Every variable times a factor that is not 0, as far as only sums of products are there: then the terms are the
    /// same ones.
    pub(in crate::extent) fn with_factors(&self, factor: &dyn Fn(Var) -> i128) -> Option<Self> {
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in self.terms() {
            let mut coefficient = term.coefficient;
            for atom in &term.atoms {
                let Atom::Var(v) = atom else { return None };
                coefficient = coefficient.checked_mul(factor(*v))?;
            }
            terms.push(Term { atoms: term.atoms.clone(), coefficient });
        }
        (!self.is_unknown()).then(|| Self::of_ordered(terms))
    }

    /// The same, or nothing where nothing is replaced.
    pub(super) fn replaced(&self, map: Map<'_>, done: &mut Replaced) -> Option<Self> {
        // Most expressions that are looked at have nothing to replace. Loops: a debug build calls what iterators do.
        let mut stays = true;
        for term in self.terms() {
            for atom in &term.atoms {
                stays = stays && matches!(atom, Atom::Var(v) if map(*v).is_none());
            }
        }
        if stays {
            return None;
        }
        let mut is_new = false;
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in self.terms() {
            let mut kept: Vec<Atom> = Vec::new();
            let mut product: Option<Self> = None;
            for atom in &term.atoms {
                match replacement(atom, map, done) {
                    None => kept.push(atom.clone()),
                    Some(new) => product = Some(product.map_or_else(|| new.clone(), |p| p.mul(&new))),
                }
            }
            match product {
                None => terms.push(term.clone()),
                Some(product) => {
                    is_new = true;
                    let product = Self::of_one(kept.into(), term.coefficient).mul(&product);
                    if product.is_unknown() {
                        return Some(product);
                    }
                    terms.extend_from_slice(&product.terms);
                }
            }
        }
        is_new.then(|| Self::from_terms(terms))
    }

    /// The value when variable `v` is `values[v]`; none on overflow, division by a non-positive number, or a lost term.
    pub fn eval(&self, values: &[i128]) -> Option<i128> {
        self.value(&|v| values.get(v as usize).copied())
    }

    /// The same with the value of each variable, if it has one.
    pub fn value(&self, of: &dyn Fn(Var) -> Option<i128>) -> Option<i128> {
        if self.is_unknown() {
            return None;
        }
        let mut sum = 0_i128;
        for term in self.terms() {
            let mut product = term.coefficient;
            for atom in &term.atoms {
                let factor = match atom {
                    Atom::Var(v) => of(*v)?,
                    Atom::Quotient { of: dividend, by } => {
                        let by = by.value(of)?;
                        if by <= 0 {
                            return None;
                        }
                        let dividend = dividend.value(of)?;
                        // Small ones are divided by one instruction.
                        match (i64::try_from(dividend), i64::try_from(by)) {
                            (Ok(dividend), Ok(by)) => dividend.div_euclid(by).into(),
                            _ => dividend.div_euclid(by),
                        }
                    }
                    Atom::Positive { of: value } => value.value(of)?.max(0),
                };
                product = product.checked_mul(factor)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// The variables it mentions, ascending, each once.
    pub fn vars(&self) -> Vec<Var> {
        let mut vars = Vec::new();
        self.collect_vars(&mut vars);
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    /// Whether it mentions such a variable.
    pub fn mentions(&self, such: &dyn Fn(Var) -> bool) -> bool {
        self.terms.iter().flat_map(|t| &t.atoms).any(|atom| match atom {
            Atom::Var(v) => such(*v),
            Atom::Quotient { of, by } => of.mentions(such) || by.mentions(such),
            Atom::Positive { of } => of.mentions(such),
        })
    }

    pub(super) fn collect_vars(&self, vars: &mut Vec<Var>) {
        for term in self.terms() {
            for atom in &term.atoms[..] {
                match atom {
                    Atom::Var(v) => vars.push(*v),
                    Atom::Quotient { of, by } => {
                        of.collect_vars(vars);
                        by.collect_vars(vars);
                    }
                    Atom::Positive { of } => of.collect_vars(vars),
                }
            }
        }
    }

    /// The expression for a kernel's size; [`Expr::unknown`] for one with `min` or `max`, or a divisor that is not
    /// positive.
    pub fn from_size(size: &Size) -> Self {
        let mut stack: Vec<Self> = Vec::new();
        for op in size.ops.iter() {
            let value = match *op {
                SizeOp::Const(c) => Self::constant(i128::from(c)),
                SizeOp::Dim(d) => Self::var(Var::from(d)),
                _ => {
                    let (Some(b), Some(a)) = (stack.pop(), stack.pop()) else { return Self::unknown() };
                    match op {
                        SizeOp::Add => a.add(&b),
                        SizeOp::Sub => a.sub(&b),
                        SizeOp::Mul => a.mul(&b),
                        SizeOp::Div => a.floor_div(&b),
                        SizeOp::CeilDiv => a.ceil_div(&b),
                        SizeOp::Mod => a.modulo(&b),
                        _ => Self::unknown(),
                    }
                }
            };
            stack.push(value);
        }
        match stack.pop() {
            Some(value) if stack.is_empty() => value,
            _ => Self::unknown(),
        }
    }

    /// The expression as a kernel's size; none if something was lost, a literal exceeds 64 bits, or a variable is not
    /// one of the first `dims`.
    pub fn to_size(&self, dims: usize) -> Option<Size> {
        if self.is_unknown() {
            return None;
        }
        let mut sum: Option<Size> = None;
        // The constant last: `N + 3`, not `3 + N`.
        let constant = self.terms.iter().filter(|t| t.atoms.is_empty());
        for term in self.terms.iter().filter(|t| !t.atoms.is_empty()).chain(constant) {
            let subtract = term.coefficient < 0 && sum.is_some();
            let coefficient =
                i64::try_from(if subtract { term.coefficient.checked_neg()? } else { term.coefficient }).ok()?;
            let mut product: Option<Size> =
                (coefficient != 1 || term.atoms.is_empty()).then(|| Size::constant(coefficient));
            for atom in &term.atoms {
                let factor = match atom {
                    Atom::Var(v) if (*v as usize) < dims => Size::dim(u16::try_from(*v).ok()?),
                    Atom::Var(_) => return None,
                    Atom::Quotient { of, by } => {
                        // ⌊(e + d − 1) / d⌋ reads better as ⌈e / d⌉.
                        let up = of.sub(by).add(&Self::constant(1));
                        let rounds_up = by.as_constant().is_some_and(|d| of.constant_term() == d - 1 && d > 1)
                            || (by.as_constant().is_none() && up.terms.len() < of.terms.len());
                        let (op, of) = if rounds_up { (SizeOp::CeilDiv, up) } else { (SizeOp::Div, (**of).clone()) };
                        Size::binary(op, &of.to_size(dims)?, &by.to_size(dims)?)
                    }
                    Atom::Positive { of } => Size::binary(SizeOp::Max, &of.to_size(dims)?, &Size::constant(0)),
                };
                product = Some(match product {
                    None => factor,
                    Some(p) => Size::binary(SizeOp::Mul, &p, &factor),
                });
            }
            let product = product?;
            sum = Some(match sum {
                None => product,
                Some(s) => Size::binary(if subtract { SizeOp::Sub } else { SizeOp::Add }, &s, &product),
            });
        }
        Some(sum.unwrap_or_else(|| Size::constant(0)))
    }

    /// The expression as text; `names(v)` names variable `v`.
    pub fn show(&self, names: &dyn Fn(Var) -> String) -> String {
        let vars = self.vars();
        let texts: Vec<String> = vars.iter().map(|v| names(*v)).collect();
        // Renumber so that any variable can be shown as a dimension of a size.
        let map = |v: Var| vars.binary_search(&v).ok().map(|i| Self::var(i as Var));
        match self.substitute(&map).to_size(vars.len()) {
            Some(size) => size.display(&|d| texts.get(usize::from(d)).map_or("?", |s| s)).to_string(),
            None => "?".to_owned(),
        }
    }
}

/// What takes the place of an atom, if anything does. `done` has the quotients and maxima so far: they occur again and
/// again, since a remainder holds its dividend twice.
fn replacement(atom: &Atom, map: Map<'_>, done: &mut Replaced) -> Option<Expr> {
    let (of, by) = match atom {
        Atom::Var(v) => return map(*v),
        Atom::Quotient { of, by } => (of, Some(by)),
        Atom::Positive { of } => (of, None),
    };
    let key = (Arc::as_ptr(of), by.map(Arc::as_ptr));
    if let Some(known) = done.get(&key) {
        return known.clone();
    }
    let new = (of.replaced(map, done), by.and_then(|by| by.replaced(map, done)));
    let new = match (new, by) {
        ((None, None), _) => None,
        ((of_new, by_new), Some(by)) => Some(of_new.as_ref().unwrap_or(of).floor_div(by_new.as_ref().unwrap_or(by))),
        ((of_new, _), None) => of_new.map(|of| of.positive()),
    };
    done.insert(key, new.clone());
    new
}
