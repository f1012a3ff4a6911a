//! Integer linear inequalities: a sound, incomplete test that a system has no solution.
//!
//! First a solution is looked for in a few steps (`point`), which most systems have. Then comes Fourier–Motzkin
//! elimination over the rationals. Every inequality is divided by the gcd of its coefficients and its constant rounded
//! down, which keeps all integer solutions. "Infeasible" is a proof; "unknown" says nothing. The work is bounded, so
//! that no kernel makes the macro slow.

mod point;

use std::cmp::Ordering;

use super::expr::{Atom, Expr, Var, gcd};
use crate::work::{self, Step};

/// Most inequalities the elimination may hold at a time.
const INEQUALITY_LIMIT: usize = 220;

/// Σ coefficient · unknown + constant ≥ 0, unknowns ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inequality {
    coefficients: Vec<(usize, i128)>,
    constant: i128,
}

impl Inequality {
    /// The first of its unknowns.
    fn first(&self) -> Option<usize> {
        match &self.coefficients[..] {
            [(u, _), ..] => Some(*u),
            [] => None,
        }
    }

    /// The order of rows, by their coefficients. One loop: most of a search is comparing rows.
    fn order(&self, other: &Self) -> Ordering {
        let (own, others) = (&self.coefficients[..], &other.coefficients[..]);
        let mut at = 0;
        while at < own.len() && at < others.len() {
            let ((u, c), (v, d)) = (own[at], others[at]);
            if u != v {
                return u.cmp(&v);
            }
            if c != d {
                return c.cmp(&d);
            }
            at += 1;
        }
        own.len().cmp(&others.len())
    }
}

/// A conjunction of inequalities `e ≥ 0` over expressions. Products and quotients are unknowns of their own, tied to
/// their parts by the inequalities that define them.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// The products of atoms that stand as unknowns.
    unknowns: Vec<Vec<Atom>>,
    inequalities: Vec<Inequality>,
    /// Variables known to be at least this, for products.
    floors: Vec<(Var, i128)>,
    /// Whether an expression could not be represented; it is left out, which only weakens the system.
    weakened: bool,
}

impl System {
    /// No inequalities: everything is a solution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `var ≥ floor`.
    pub fn at_least(&mut self, var: Var, floor: i128) {
        self.floors.push((var, floor));
        self.require(&Expr::var(var).sub(&Expr::constant(floor)));
    }

    /// Adds `e ≥ 0`.
    pub fn require(&mut self, e: &Expr) {
        if e.is_unknown() {
            self.weakened = true;
            return;
        }
        let mut coefficients: Vec<(usize, i128)> = Vec::with_capacity(e.terms().len());
        for term in e.terms().iter().filter(|t| !t.atoms.is_empty()) {
            coefficients.push((self.unknown(&term.atoms), term.coefficient));
        }
        coefficients.sort_unstable();
        self.inequalities.push(Inequality { coefficients, constant: e.constant_term() });
    }

    /// Adds `e = 0`.
    pub fn require_zero(&mut self, e: &Expr) {
        self.require(e);
        self.require(&e.scale(-1));
    }

    /// The number of the unknown that stands for a product, with its defining inequalities on first use.
    fn unknown(&mut self, atoms: &[Atom]) -> usize {
        if let Some(at) = self.unknowns.iter().position(|u| u == atoms) {
            return at;
        }
        self.unknowns.push(atoms.to_vec());
        let number = self.unknowns.len() - 1;
        if self.unknowns.len() > 64 {
            self.weakened = true;
            return number;
        }
        match atoms {
            [Atom::Quotient { of, by }] => {
                // by·q ≤ of ≤ by·q + by − 1
                let q = Expr::from_atoms(atoms);
                let rest = of.sub(&q.mul(by));
                self.require(&rest);
                self.require(&by.sub(&rest).sub(&Expr::constant(1)));
                // By an unknown number that is no linear inequality of q; where it ends is one.
                if by.as_constant().is_none()
                    && let [atom] = atoms
                    && let Some(floor) = self.floor(atom)
                {
                    self.require(&q.sub(&Expr::constant(floor)));
                }
            }
            // p ≥ 0, p ≥ of; that it is one of them is no linear inequality.
            [Atom::Positive { of }] => {
                let p = Expr::from_atoms(atoms);
                self.require(&p.sub(of));
                self.require(&p);
            }
            [Atom::Var(_)] | [] => {}
            _ => {
                // With a ≥ 1 and the other factors' product p ≥ 0: a·p ≥ p, so a·p ≥ 0 too.
                for (at, atom) in atoms.iter().enumerate() {
                    let mut others = atoms.to_vec();
                    others.remove(at);
                    let nonnegative = others.iter().all(|a| self.floor(a).is_some_and(|f| f >= 0));
                    if nonnegative && self.floor(atom).is_some_and(|f| f >= 1) {
                        self.require(&Expr::from_atoms(atoms).sub(&Expr::from_atoms(&others)));
                    }
                }
            }
        }
        number
    }

    /// A lower bound of an expression whose coefficients are not negative, as far as the floors tell.
    fn floor_of(&self, e: &Expr) -> Option<i128> {
        let mut sum = e.constant_term();
        for term in e.terms().iter().filter(|t| !t.atoms.is_empty()) {
            if term.coefficient < 0 {
                return None;
            }
            let mut product = term.coefficient;
            for atom in &term.atoms {
                product = product.checked_mul(self.floor(atom).filter(|f| *f >= 0)?)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// A lower bound of an atom, as far as the floors tell.
    fn floor(&self, atom: &Atom) -> Option<i128> {
        match atom {
            Atom::Var(v) => self.floors.iter().filter(|(w, _)| w == v).map(|(_, f)| *f).max(),
            Atom::Positive { of } => Some(self.floor_of(of).unwrap_or(0).max(0)),
            Atom::Quotient { of, by } => {
                let sum = self.floor_of(of)?;
                match by.as_constant() {
                    Some(d) if d > 0 => Some(sum.div_euclid(d)),
                    _ if sum >= 0 => Some(0),
                    _ => None,
                }
            }
        }
    }

    /// Whether there is provably no integer solution.
    pub fn is_infeasible(&self) -> bool {
        // Of most systems with solutions one is found in less time than elimination takes.
        let has_point = point::is_met(&self.inequalities, self.unknowns.len());
        debug_assert!(!cfg!(test) || has_point.is_none_or(|has_point| self.is_eliminated() != has_point));
        !has_point.unwrap_or_else(|| !self.is_eliminated())
    }

    /// The same by elimination.
    fn is_eliminated(&self) -> bool {
        work::count(Step::Elimination, 1);
        let mut rows: Vec<Inequality> = Vec::new();
        for row in &self.inequalities {
            match tighten(row.clone()) {
                Row::Never => return true,
                Row::Always => {}
                Row::Inequality(row) => insert(&mut rows, row),
            }
        }
        if !substitute_equalities(&mut rows) {
            return true;
        }
        loop {
            // Eliminate the unknown that makes the fewest new rows; before that one whose elimination loses no integer
            // points, as it does where one of each two coefficients is 1 (W. Pugh, The Omega test, 1991, section
            // 2.3.1).
            let costs = costs(&rows, self.unknowns.len());
            // An unknown that only grows, or only shrinks, meets every row that it stands in.
            let before = rows.len();
            rows.retain(|row| !is_met(row, &costs));
            if rows.len() < before {
                continue;
            }
            // The first one of those of the same cost.
            let mut least: Option<(usize, (bool, usize))> = None;
            let mut u = 0;
            while u < costs.len() {
                if costs[u].up > 0 {
                    let cost = costs[u].of_elimination();
                    if least.is_none_or(|(_, known)| cost < known) {
                        least = Some((u, cost));
                    }
                }
                u += 1;
            }
            let Some((u, _)) = least else { return false };
            let (mut up, mut down, mut next) = (Vec::new(), Vec::new(), Vec::new());
            for row in rows {
                match coefficient(&row, u) {
                    0 => next.push(row),
                    1.. => up.push(row),
                    _ => down.push(row),
                }
            }
            for a in &up {
                for b in &down {
                    let Some(row) = combine(a, b, u) else { continue }; // a lost row only weakens the system
                    match tighten(row) {
                        Row::Never => return true,
                        Row::Always => {}
                        // What is left of rows in order is in order.
                        Row::Inequality(row) => insert(&mut next, row),
                    }
                }
            }
            if next.len() > INEQUALITY_LIMIT {
                return false;
            }
            rows = next;
        }
    }
}

/// In how many rows each unknown stands, and how. Loops, as in what follows: a debug build calls what iterators do.
fn costs(rows: &[Inequality], unknowns: usize) -> Vec<Cost> {
    let mut found = vec![Cost::default(); unknowns];
    let (costs, mut at) = (&mut found[..], 0);
    while at < rows.len() {
        let (coefficients, mut n) = (&rows[at].coefficients[..], 0);
        while n < coefficients.len() {
            let (u, c) = coefficients[n];
            costs[u].count(c);
            n += 1;
        }
        at += 1;
    }
    found
}

/// Whether an unknown of a row has coefficients of one sign alone.
fn is_met(row: &Inequality, costs: &[Cost]) -> bool {
    let (coefficients, mut n) = (&row.coefficients[..], 0);
    while n < coefficients.len() {
        let cost = &costs[coefficients[n].0];
        if cost.up == 0 || cost.down == 0 {
            return true;
        }
        n += 1;
    }
    false
}

/// In how many rows an unknown has a positive and a negative coefficient, and whether one of them is not ±1.
#[derive(Clone, Copy, Default)]
struct Cost {
    up: usize,
    down: usize,
    steep: (bool, bool),
}

impl Cost {
    fn count(&mut self, coefficient: i128) {
        if coefficient > 0 {
            (self.up, self.steep.0) = (self.up + 1, self.steep.0 || coefficient > 1);
        } else {
            (self.down, self.steep.1) = (self.down + 1, self.steep.1 || coefficient < -1);
        }
    }

    /// Whether integer points may be lost, and how many rows there are more.
    fn of_elimination(self) -> (bool, usize) {
        (self.steep == (true, true), (self.up * self.down).saturating_sub(self.up + self.down))
    }
}

enum Row {
    Always,
    Never,
    Inequality(Inequality),
}

/// Divides by the gcd of the coefficients and rounds the constant down.
fn tighten(mut row: Inequality) -> Row {
    let mut g = 0;
    for (_, c) in &row.coefficients {
        g = gcd(g, *c);
        // Most rows have a coefficient of 1.
        if g == 1 {
            return Row::Inequality(row);
        }
    }
    if g == 0 {
        return if row.constant < 0 { Row::Never } else { Row::Always };
    }
    for c in &mut row.coefficients {
        c.1 /= g;
    }
    row.constant = row.constant.div_euclid(g);
    Row::Inequality(row)
}

/// Solves pairs of rows that together are an equality with an unknown of coefficient ±1, which keeps all integer
/// solutions and loses none of their divisibility; false if there is no solution.
fn substitute_equalities(rows: &mut Vec<Inequality>) -> bool {
    loop {
        let Some((a, b, u, c)) = equality(rows) else { return true };
        let (up, down) = if c > 0 { (rows[a].clone(), rows[b].clone()) } else { (rows[b].clone(), rows[a].clone()) };
        let mut next: Vec<Inequality> = Vec::with_capacity(rows.len());
        for (at, row) in rows.drain(..).enumerate() {
            if at == a || at == b {
                continue;
            }
            let row = match coefficient(&row, u) {
                0 => Some(row),
                c if c > 0 => combine(&row, &down, u),
                _ => combine(&up, &row, u),
            };
            match row.map(tighten) {
                Some(Row::Never) => return false,
                Some(Row::Inequality(row)) => insert(&mut next, row),
                Some(Row::Always) | None => {}
            }
        }
        *rows = next;
    }
}

/// The first two rows, which are in order, that together are an equality, with the unknown of which one has a
/// coefficient of ±1.
fn equality(rows: &[Inequality]) -> Option<(usize, usize, usize, i128)> {
    // Loops: most rows have no such, and a debug build calls what iterators do.
    let mut a = 0;
    while a < rows.len() {
        let own = &rows[a];
        let mut b = a + 1;
        // What has the same unknowns stands near.
        while b < rows.len() && rows[b].first() == own.first() {
            if rows[b].constant == -own.constant
                && is_opposite(&own.coefficients, &rows[b].coefficients)
                && let Some((u, c)) = unit(own)
            {
                return Some((a, b, u, c));
            }
            b += 1;
        }
        a += 1;
    }
    None
}

/// The first unknown that has a coefficient of ±1.
fn unit(row: &Inequality) -> Option<(usize, i128)> {
    row.coefficients.iter().find(|c| c.1.abs() == 1).copied()
}

/// Whether sums of unknowns are opposite to each other.
fn is_opposite(a: &[(usize, i128)], b: &[(usize, i128)]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    for (at, (u, c)) in a.iter().enumerate() {
        if b[at].0 != *u || b[at].1 != -c {
            return false;
        }
    }
    true
}

/// Puts a row among others that are in order and have different coefficients; of equal ones the stronger one stays.
fn insert(rows: &mut Vec<Inequality>, row: Inequality) {
    let (mut low, mut high) = (0, rows.len());
    while low < high {
        let middle = (low + high) / 2;
        match rows[middle].order(&row) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => {
                let known = &mut rows[middle].constant;
                *known = row.constant.min(*known);
                return;
            }
        }
    }
    rows.insert(low, row);
}

fn coefficient(row: &Inequality, unknown: usize) -> i128 {
    let (coefficients, mut n) = (&row.coefficients[..], 0);
    while n < coefficients.len() {
        if coefficients[n].0 == unknown {
            return coefficients[n].1;
        }
        n += 1;
    }
    0
}

/// The consequence of `a` (positive in `u`) and `b` (negative in `u`) without `u`; none on overflow.
fn combine(a: &Inequality, b: &Inequality, u: usize) -> Option<Inequality> {
    let (p, n) = (coefficient(a, u), coefficient(b, u).checked_neg()?);
    let g = gcd(p, n);
    let (fa, fb) = (n / g, p / g);
    let mut coefficients: Vec<(usize, i128)> = Vec::with_capacity(a.coefficients.len() + b.coefficients.len());
    // Both are in order.
    let (left, right) = (&a.coefficients[..], &b.coefficients[..]);
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        let own = if i < left.len() { left[i].0 } else { usize::MAX };
        let other = if j < right.len() { right[j].0 } else { usize::MAX };
        let v = if own < other { own } else { other };
        let mut sum = 0_i128;
        if own == v {
            sum = left[i].1.checked_mul(fa)?;
            i += 1;
        }
        if other == v {
            sum = sum.checked_add(right[j].1.checked_mul(fb)?)?;
            j += 1;
        }
        if sum != 0 {
            coefficients.push((v, sum));
        }
    }
    let constant = a.constant.checked_mul(fa)?.checked_add(b.constant.checked_mul(fb)?)?;
    Some(Inequality { coefficients, constant })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(i: Var) -> Expr {
        Expr::var(i)
    }

    #[test]
    fn a_stencil_stays_inside() {
        // 0 <= i < H - 2 and i + 2 >= H has no solution; i + 3 >= H has.
        let mut system = System::new();
        system.at_least(1, 0);
        system.require(&v(0).sub(&Expr::constant(3)).sub(&v(1)));
        let mut outside = system.clone();
        system.require(&v(1).add(&Expr::constant(2)).sub(&v(0)));
        assert!(system.is_infeasible());
        outside.require(&v(1).add(&Expr::constant(3)).sub(&v(0)));
        assert!(!outside.is_infeasible());
    }

    #[test]
    fn quotients_and_products_carry_their_definitions() {
        // i < ceil(N / 4), N = 4q: 4i + 3 >= N is impossible.
        let mut system = System::new();
        let (i, q) = (v(1), v(2));
        system.at_least(2, 1);
        system.at_least(1, 0);
        let n = q.scale(4);
        system.require(&n.ceil_div(&Expr::constant(4)).sub(&i).sub(&Expr::constant(1)));
        system.require(&i.scale(4).add(&Expr::constant(3)).sub(&n));
        assert!(system.is_infeasible());
        // N·M < N with both at least 1.
        let mut system = System::new();
        system.at_least(0, 1);
        system.at_least(1, 1);
        system.require(&v(0).sub(&v(0).mul(&v(1))).sub(&Expr::constant(1)));
        assert!(system.is_infeasible());
    }

    #[test]
    fn equalities_keep_divisibility() {
        // i = 2·⌊i / 2⌋, i < 2·n, i + 1 >= 2·n.
        let mut system = System::new();
        let (i, n) = (v(0), v(1));
        system.require_zero(&i.modulo(&Expr::constant(2)));
        system.require(&n.scale(2).sub(&i).sub(&Expr::constant(1)));
        system.require(&i.add(&Expr::constant(1)).sub(&n.scale(2)));
        assert!(system.is_infeasible());
    }

    /// No system with an integer solution in a small box is called infeasible.
    #[test]
    fn infeasible_is_never_wrong() {
        let mut state = 7_u64;
        let mut random = move |bound: i128| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i128::from((state >> 33) as u32) % bound
        };
        let mut infeasible = 0;
        for _ in 0..1500 {
            let rows: Vec<[i128; 4]> =
                (0..5).map(|_| [random(7) - 3, random(7) - 3, random(7) - 3, random(13) - 6]).collect();
            let solution = (0..343_i128).any(|p| {
                let x = [p % 7 - 3, p / 7 % 7 - 3, p / 49 - 3];
                rows.iter().all(|r| r[0] * x[0] + r[1] * x[1] + r[2] * (x[2] + x[0].div_euclid(3)) + r[3] >= 0)
            });
            let mut system = System::new();
            for r in &rows {
                let last = v(2).add(&v(0).floor_div(&Expr::constant(3)));
                system.require(
                    &v(0).scale(r[0]).add(&v(1).scale(r[1])).add(&last.scale(r[2])).add(&Expr::constant(r[3])),
                );
            }
            if system.is_infeasible() {
                assert!(!solution, "{rows:?}");
                infeasible += 1;
            }
        }
        assert!(infeasible > 50, "the test must meet infeasible systems, met {infeasible}");
    }
}
