//! What is known at a place of the algorithm: axes in scope with their ranges, conditions, and proofs from them.

use kernel::algorithm::{AxisId, Binary, Compare, Index, IndexId, Unary, Value, ValueId};
use tilewright_kernel as kernel;

use super::interval::{Interval, Scene};
use super::witness::{Limit, Step};
use crate::extent::{Atom, Atoms, Expr, Facts, System, Var};
use crate::program::{Program, expressions};

/// Alternatives of one condition at most; one with more is forgotten.
const ALTERNATIVES: usize = 8;

/// Systems that one proof by cases solves at most.
const CASES: usize = 64;

/// A conjunction of expressions that are at least 0.
type Rows = Vec<Expr>;

/// An axis in scope.
#[derive(Clone, Debug)]
struct Bound {
    lower: Expr,
    upper: Expr,
    /// A literal that it never goes below.
    floor: Option<i128>,
}

/// What is known at a place.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The number of dimensions: axis `n` in scope is variable `dims + n`.
    dims: usize,
    bounds: Vec<Bound>,
    rows: Rows,
    /// Conditions that leave several possibilities.
    cases: Vec<Vec<Rows>>,
    /// What each axis in scope stands for.
    values: Vec<(AxisId, Expr)>,
    /// The way here.
    pub path: Vec<Step>,
    /// A number of what is known here: places with the same number know the same.
    pub scope: u64,
    scopes: u64,
}

/// A point to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    bounds: usize,
    rows: usize,
    cases: usize,
    values: usize,
    path: usize,
    scope: u64,
}

impl Context {
    pub fn new(program: &Program) -> Context {
        Context {
            dims: program.dims.len(),
            bounds: Vec::new(),
            rows: Vec::new(),
            cases: Vec::new(),
            values: Vec::new(),
            path: Vec::new(),
            scope: 0,
            scopes: 0,
        }
    }

    pub fn mark(&self) -> Mark {
        let Context { bounds, rows, cases, values, path, scope, .. } = self;
        let values = values.len();
        Mark { bounds: bounds.len(), rows: rows.len(), cases: cases.len(), values, path: path.len(), scope: *scope }
    }

    /// Forgets everything learned since.
    pub fn reset(&mut self, mark: Mark) {
        self.bounds.truncate(mark.bounds);
        self.rows.truncate(mark.rows);
        self.cases.truncate(mark.cases);
        self.values.truncate(mark.values);
        self.path.truncate(mark.path);
        self.scope = mark.scope;
    }

    fn new_scope(&mut self) {
        self.scopes += 1;
        self.scope = self.scopes;
    }

    /// The expression of an index here.
    pub fn index(&self, program: &Program, id: IndexId) -> Expr {
        match program.algorithm.indices.get(id as usize).copied() {
            None => Expr::unknown(),
            Some(Index::Literal(c)) => Expr::constant(i128::from(c)),
            Some(Index::Dim(d)) => Expr::var(Var::from(d)),
            Some(Index::Axis(a)) => {
                let value = self.values.iter().rfind(|(axis, _)| *axis == a);
                value.map_or_else(Expr::unknown, |(_, e)| e.clone())
            }
            Some(node) => node.sides().map_or_else(Expr::unknown, |sides| {
                let [a, b] = sides.map(|side| self.index(program, side));
                expressions::of_sides(node, &a, &b)
            }),
        }
    }

    /// First index inside a dimension and first one outside.
    pub fn limit(&self, program: &Program, limit: &Limit) -> (Expr, Expr) {
        match limit {
            Limit::Size(size) => (Expr::constant(0), Expr::from_size(size)),
            Limit::Domain(axis) => self.range(program, *axis),
        }
    }

    /// The range of an axis; where memory decides it, one that holds it.
    pub fn range(&self, program: &Program, axis: AxisId) -> (Expr, Expr) {
        let of = |axis: AxisId| {
            let value = self.values.iter().rfind(|(known, _)| *known == axis);
            value.map_or_else(Expr::unknown, |(_, e)| e.clone())
        };
        match program.algorithm.axes.get(axis as usize) {
            Some(axis) => expressions::hull(&program.algorithm, axis, &of),
            None => (Expr::unknown(), Expr::unknown()),
        }
    }

    /// What must be at least 0 where the first of the best along an axis is searched: there is one, and its index is a
    /// `u32`.
    pub fn search(&self, program: &Program, axis: AxisId) -> [Expr; 2] {
        let (lower, upper) = self.range(program, axis);
        [upper.sub(&lower).sub(&Expr::constant(1)), lower]
    }

    /// The axis takes every value of its range from here on.
    pub fn enter_axis(&mut self, program: &Program, axis: AxisId) {
        let (lower, upper) = self.range(program, axis);
        let var = Expr::var((self.dims + self.bounds.len()) as Var);
        let floor = self.floor(&lower);
        self.rows.push(var.sub(&lower));
        self.rows.push(upper.sub(&var).sub(&Expr::constant(1)));
        self.bounds.push(Bound { lower, upper, floor });
        self.values.push((axis, var));
        self.path.push(Step::Axis(axis));
        self.new_scope();
    }

    /// An axis of an equation that a guarded read enters is what memory holds: any value of its range that the index
    /// can have.
    pub fn enter_gathered(&mut self, program: &Program, axis: AxisId, index: IndexId) {
        let var = Expr::var((self.dims + self.bounds.len()) as Var);
        self.enter_axis(program, axis);
        self.path.pop();
        self.path.push(Step::Gathered { axis, index });
        let range = Scene::new(&program.algorithm, Vec::new()).index(index);
        if range.low > Interval::ANYTHING.low {
            self.rows.push(var.sub(&Expr::constant(range.low)));
        }
        if range.high < Interval::ANYTHING.high {
            self.rows.push(Expr::constant(range.high).sub(&var));
        }
    }

    /// The axis of an entered equation is `value`, the index `index`.
    pub fn assign(&mut self, program: &Program, axis: AxisId, index: IndexId, value: Expr, guarded: bool) {
        if guarded {
            let (lower, upper) = self.range(program, axis);
            self.rows.push(value.sub(&lower));
            self.rows.push(upper.sub(&value).sub(&Expr::constant(1)));
            self.new_scope();
        }
        self.values.push((axis, value));
        self.path.push(Step::Assign { axis, index, guarded });
    }

    /// A condition holds, or fails, from here on.
    pub fn assume(&mut self, program: &Program, value: ValueId, holds: bool) {
        match program.algorithm.values.get(value as usize) {
            Some(Value::Unary(Unary::Not, a)) => return self.assume(program, *a, !holds),
            Some(Value::Binary(op, a, b)) if matches!((op, holds), (Binary::And, true) | (Binary::Or, false)) => {
                self.assume(program, *a, holds);
                return self.assume(program, *b, holds);
            }
            _ => {}
        }
        self.path.push(Step::Condition { value, holds });
        self.new_scope();
        match self.alternatives(program, value, holds) {
            None => {}
            Some(mut alternatives) => match alternatives.len() {
                1 => self.rows.append(&mut alternatives[0]),
                _ => self.cases.push(alternatives),
            },
        }
    }

    /// The possibilities that a condition leaves; none if it says nothing about indices.
    fn alternatives(&self, program: &Program, value: ValueId, holds: bool) -> Option<Vec<Rows>> {
        let one = Expr::constant(1);
        match program.algorithm.values.get(value as usize).copied()? {
            Value::Literal(bits) => ((bits != 0) != holds).then(Vec::new),
            Value::Unary(Unary::Not, a) => self.alternatives(program, a, !holds),
            Value::Binary(op @ (Binary::And | Binary::Or), a, b) => {
                let (a, b) = (self.alternatives(program, a, holds), self.alternatives(program, b, holds));
                if (op == Binary::And) == holds {
                    let (Some(a), Some(b)) = (&a, &b) else { return a.or(b) };
                    let both = a.iter().flat_map(|x| b.iter().map(|y| x.iter().chain(y).cloned().collect()));
                    Some(both.collect()).filter(|c: &Vec<Rows>| c.len() <= ALTERNATIVES)
                } else {
                    let either: Vec<Rows> = a?.into_iter().chain(b?).collect();
                    Some(either).filter(|c| c.len() <= ALTERNATIVES)
                }
            }
            Value::CompareIndex(op, a, b) => {
                let (a, b) = (self.index(program, a), self.index(program, b));
                let (more, less) = (a.sub(&b), b.sub(&a));
                if more.is_unknown() {
                    return None;
                }
                let op = if holds { op } else { negated(op) };
                Some(match op {
                    Compare::Eq => vec![vec![more, less]],
                    Compare::Ne => vec![vec![more.sub(&one)], vec![less.sub(&one)]],
                    Compare::Lt => vec![vec![less.sub(&one)]],
                    Compare::Le => vec![vec![less]],
                    Compare::Gt => vec![vec![more.sub(&one)]],
                    Compare::Ge => vec![vec![more]],
                })
            }
            _ => None,
        }
    }

    /// A literal that `e` never goes below, from the floors of axes and sizes at least 0.
    fn floor(&self, e: &Expr) -> Option<i128> {
        if e.is_unknown() {
            return None;
        }
        let mut sum = 0_i128;
        for term in e.terms() {
            let mut product = term.coefficient;
            if product < 0 && !term.atoms.is_empty() {
                return None;
            }
            for atom in &term.atoms {
                product = product.checked_mul(self.atom_floor(atom).filter(|f| *f >= 0)?)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    fn atom_floor(&self, atom: &Atom) -> Option<i128> {
        match atom {
            Atom::Var(v) => match (*v as usize).checked_sub(self.dims) {
                None => Some(0),
                Some(axis) => self.bounds.get(axis)?.floor,
            },
            Atom::Quotient { of, by } => {
                let floor = self.floor(of)?;
                match by.as_constant() {
                    Some(d) if d > 0 => Some(floor.div_euclid(d)),
                    _ => (floor >= 0).then_some(0),
                }
            }
            Atom::Positive { of } => Some(self.floor(of).unwrap_or(0).max(0)),
        }
    }

    /// Whether `e ≥ 0` provably holds here for every admissible size.
    pub fn proves(&self, facts: &Facts, e: &Expr) -> bool {
        let normal = |e: &Expr| facts.with_residues(&facts.normal(e));
        let e = normal(e);
        if e.is_unknown() {
            return false;
        }
        if self.floor(&e).is_some_and(|f| f >= 0) {
            return true;
        }
        let mut rows: Rows = self.rows.iter().map(normal).filter(|r| !r.is_unknown()).collect();
        let goal = e.scale(-1).sub(&Expr::constant(1));
        // An axis that ends where the dimension does.
        if rows.contains(&e) {
            return true;
        }
        rows.push(goal);
        self.add_quotient_signs(&mut rows);
        let system = |rows: &[Expr]| {
            let mut system = facts.residue_system();
            for (var, bound) in (self.dims..).zip(&self.bounds) {
                if let Some(floor) = bound.floor {
                    system.at_least(var as Var, floor);
                }
            }
            rows.iter().for_each(|r| system.require(r));
            system
        };
        let plain = system(&rows);
        if plain.is_infeasible() {
            return true;
        }
        let products = self.products(&rows);
        let mut refined = plain;
        if !products.is_empty() {
            products.iter().for_each(|r| refined.require(r));
            if refined.is_infeasible() {
                return true;
            }
        }
        let mut cases: Vec<Vec<Rows>> =
            self.cases.iter().map(|c| c.iter().map(|rows| rows.iter().map(normal).collect()).collect()).collect();
        // A maximum is one of its sides. The rows have residues, and so have these: with residues written once more
        // they would be about other sizes.
        for atom in &bends(&rows) {
            if let Atom::Positive { of } = atom {
                let none = Expr::from_atoms(std::slice::from_ref(atom)).scale(-1);
                let all = of.add(&none);
                cases.push(vec![vec![none], vec![all]]);
            }
        }
        let mut left = CASES;
        !cases.is_empty() && every_case_infeasible(&refined, &cases, &mut left)
    }

    /// Quotients of what is known not to be negative are not negative: a cut that elimination finds in some orders
    /// only.
    fn add_quotient_signs(&self, rows: &mut Rows) {
        for atom in &bends(rows) {
            if let Atom::Quotient { of, .. } = atom
                && (self.floor(of).is_some_and(|f| f >= 0) || rows.contains(of))
            {
                rows.push(Expr::from_atoms(std::slice::from_ref(atom)));
            }
        }
    }

    /// Consequences of the rows that are linear in the products that occur: a row times a factor that is not negative.
    fn products(&self, rows: &[Expr]) -> Rows {
        let mut known: Vec<Atoms> = Vec::new();
        for row in rows {
            self.collect_products(row, &mut known);
        }
        known.sort();
        known.dedup();
        let mut factors: Vec<Vec<Atom>> = Vec::new();
        for product in &known {
            for at in 0..product.len() {
                let mut rest = product.to_vec();
                rest.remove(at);
                if rest.iter().all(|a| self.atom_floor(a).is_some_and(|f| f >= 0)) {
                    factors.push(rest);
                }
            }
        }
        factors.sort();
        factors.dedup();
        let mut out = Rows::new();
        for factor in factors.iter().take(8) {
            let factor = Expr::from_atoms(factor);
            for row in rows {
                let product = row.mul(&factor);
                let meets = product.terms().iter().any(|t| t.atoms.len() > 1 && known.binary_search(&t.atoms).is_ok());
                if meets && !product.is_unknown() && out.len() < 48 {
                    out.push(product);
                }
            }
        }
        out
    }

    fn collect_products(&self, e: &Expr, known: &mut Vec<Atoms>) {
        for term in e.terms() {
            if term.atoms.len() > 1 {
                known.push(term.atoms.clone());
            }
            for atom in &term.atoms {
                if let Atom::Quotient { of, by } = atom {
                    self.collect_products(of, known);
                    if by.as_constant().is_none() {
                        // Its definition holds by · quotient.
                        let whole = Expr::from_atoms(std::slice::from_ref(atom)).mul(by);
                        known.extend(whole.terms().iter().filter(|t| t.atoms.len() > 1).map(|t| t.atoms.clone()));
                    }
                }
            }
        }
    }

    /// The largest value of `e` over the axes here, or the smallest: an expression of sizes that it does not exceed.
    pub fn extreme(&self, e: &Expr, greatest: bool) -> Option<Expr> {
        self.extreme_within(e, greatest, 12)
    }

    fn extreme_within(&self, e: &Expr, greatest: bool, depth: usize) -> Option<Expr> {
        if e.is_unknown() || depth == 0 {
            return None;
        }
        let Some(last) = e.vars().into_iter().rfind(|v| *v as usize >= self.dims) else { return Some(e.clone()) };
        // The innermost axis, where it stands alone in a product, takes an end of its range.
        let bound = self.bounds.get(last as usize - self.dims)?;
        let mut sum = Expr::constant(0);
        for term in e.terms() {
            let up = greatest == (term.coefficient > 0);
            let mut product = Expr::constant(term.coefficient);
            let mut varying = 0;
            for atom in &term.atoms {
                let varies = Expr::from_atoms(std::slice::from_ref(atom)).vars().contains(&last);
                varying += usize::from(varies);
                let factor = match atom {
                    Atom::Var(v) if *v == last && up => bound.upper.sub(&Expr::constant(1)),
                    Atom::Var(v) if *v == last => bound.lower.clone(),
                    Atom::Quotient { of, by } if varies => self.extreme_within(of, up, depth - 1)?.floor_div(by),
                    Atom::Positive { of } if varies => self.extreme_within(of, up, depth - 1)?.positive(),
                    _ => Expr::from_atoms(std::slice::from_ref(atom)),
                };
                product = product.mul(&factor);
            }
            // The other factors must not change sign.
            let monotone =
                term.atoms.len() == 1 || term.atoms.iter().all(|a| self.atom_floor(a).is_some_and(|f| f >= 0));
            if varying > 1 || (varying == 1 && !monotone) {
                return None;
            }
            sum = sum.add(&product);
        }
        self.extreme_within(&sum, greatest, depth - 1)
    }
}

/// Whether every choice of one alternative a condition contradicts the system.
fn every_case_infeasible(system: &System, cases: &[Vec<Rows>], left: &mut usize) -> bool {
    let Some((first, rest)) = cases.split_first() else { return false };
    first.iter().all(|rows| {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let mut narrowed = system.clone();
        rows.iter().for_each(|r| narrowed.require(r));
        narrowed.is_infeasible() || every_case_infeasible(&narrowed, rest, left)
    }) || every_case_infeasible(system, rest, left)
}

/// Quotients and maxima in expressions, each once.
fn bends(rows: &[Expr]) -> Vec<Atom> {
    let mut found = Vec::new();
    rows.iter().for_each(|row| collect_bends(row, &mut found));
    found.sort();
    found.dedup();
    found
}

fn collect_bends(e: &Expr, out: &mut Vec<Atom>) {
    for atom in e.terms().iter().flat_map(|t| &t.atoms) {
        if let Atom::Quotient { of, .. } | Atom::Positive { of } = atom {
            collect_bends(of, out);
            out.push(atom.clone());
        }
    }
}

/// The comparison that holds where this one fails.
pub(super) fn negated(op: Compare) -> Compare {
    match op {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Ge => Compare::Lt,
        Compare::Gt => Compare::Le,
        Compare::Le => Compare::Gt,
    }
}
