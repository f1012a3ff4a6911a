//! Left-hand indices that are computed, `y[N - 1 - i] = x[i]`, where an equation has axes alone: what to write.
//!
//! **Property.** Where an element is meant by one iteration at most, and each index has one axis of its own,
//! [`instead`] tells the iteration of an element, so that the equation says where an element comes from. Otherwise the
//! two iterations that it names mean the same element, whatever the sizes are. **Formula.** An index e = c·i + r, with
//! sizes and numbers alone in r and c ≠ 0, is met by one i at most, and indices with axes of their own by one
//! iteration. It is i = (e − r) / c, if c divides that: ±(e − r) is a multiple of |c|. Two iterations at which the
//! axes' parts of all indices are equal have equal indices, since r is the same in both. **Approximation.** They are
//! looked for at small coordinates; that both are iterations is not asked.

use super::names::plain;
use crate::diag::codes::ComputedPlace;
use crate::extent::{Atom, Expr, Var};
use crate::source::{Span, ast};

/// Coordinates along an axis at which iterations with the same element are looked for, and most axes.
const SIDE: i64 = 4;
const AXES: usize = 4;

/// The names of some indices: the number of each is its variable.
struct Names(Vec<String>);

impl Names {
    /// Those in the order in which they are written.
    fn of(indices: &[ast::Expr]) -> Self {
        let mut all = Vec::new();
        for index in indices {
            index.visit(&mut |part| {
                if let ast::ExprKind::Name(name) = &part.kind
                    && all.iter().all(|known| known != plain(name))
                {
                    all.push(plain(name).to_owned());
                }
            });
        }
        Self(all)
    }

    fn name(&self, var: Var) -> &str {
        self.0.get(var as usize).map_or("?", String::as_str)
    }

    /// An index where some names have values; unknown if it is no sum, product, quotient or remainder.
    fn index(&self, index: &ast::Expr, of: &dyn Fn(&str) -> Option<i128>) -> Expr {
        match &index.kind {
            ast::ExprKind::Int(literal) => Expr::constant(literal.value.into()),
            ast::ExprKind::Name(name) => {
                let var = || self.0.iter().position(|known| known == plain(name)).map(|at| Expr::var(at as Var));
                of(plain(name)).map(Expr::constant).or_else(var).unwrap_or_else(Expr::unknown)
            }
            ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => self.index(inner, of).scale(-1),
            ast::ExprKind::Binary(left, op, right) => {
                let (left, right) = (self.index(left, of), self.index(right, of));
                match op.value {
                    ast::BinaryOp::Add => left.add(&right),
                    ast::BinaryOp::Sub => left.sub(&right),
                    ast::BinaryOp::Mul => left.mul(&right),
                    ast::BinaryOp::Div => left.floor_div(&right),
                    ast::BinaryOp::Rem => left.modulo(&right),
                    _ => Expr::unknown(),
                }
            }
            _ => Expr::unknown(),
        }
    }

    fn show(&self, e: &Expr) -> String {
        e.show(&|var| self.name(var).to_owned())
    }
}

/// The iteration of an axis for an element: i = `value` / `divisor`, if that has no rest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inverse {
    axis: String,
    /// Of the index, which has the variable of the axis.
    value: Expr,
    divisor: i128,
}

impl Inverse {
    /// That of an index with one axis.
    fn of(index: &Expr, names: &Names, is_axis: &dyn Fn(&str) -> bool) -> Option<Self> {
        let mut axis = None;
        for term in index.terms() {
            match term.atoms[..] {
                [] => {}
                [Atom::Var(var)] if !is_axis(names.name(var)) => {}
                [Atom::Var(var)] if axis.is_none() => axis = Some((var, term.coefficient)),
                _ => return None,
            }
        }
        let (var, factor) = axis.filter(|_| !index.is_unknown())?;
        let element = Expr::var(var);
        let value = element.sub(&index.sub(&element.scale(factor))).scale(factor.signum());
        let found = Self { axis: names.name(var).to_owned(), value, divisor: factor.checked_abs()? };
        (!found.value.is_unknown()).then_some(found)
    }

    fn text(&self, names: &Names) -> String {
        match self.divisor {
            1 => names.show(&self.value),
            divisor => format!("({}) / {divisor}", names.show(&self.value)),
        }
    }

    /// Whether an element has an iteration.
    fn condition(&self, names: &Names) -> String {
        let (value, divisor) = (names.show(&self.value), self.divisor);
        match self.value.as_var() {
            Some(_) => format!("{value} % {divisor} == 0"),
            None => format!("({value}) % {divisor} == 0"),
        }
    }
}

/// What to write in the place of an equation with such indices.
pub(super) fn instead(ast: &ast::Equation, indices: &[ast::Expr], is_axis: &dyn Fn(&str) -> bool) -> ComputedPlace {
    let names = Names::of(indices);
    let inverse = |index: &ast::Expr| Inverse::of(&names.index(index, &|_| None), &names, is_axis);
    let inverses: Option<Vec<Inverse>> = indices.iter().map(inverse).collect();
    let is_own = |all: &[Inverse], n: usize| all[..n].iter().all(|earlier| earlier.axis != all[n].axis);
    if let Some(inverses) = inverses.filter(|all| (0..all.len()).all(|n| is_own(all, n))) {
        return by_element(ast, indices, (&names, &inverses));
    }
    twice(indices, &names, is_axis)
        .map_or(ComputedPlace::Unknown, |[first, second]| ComputedPlace::Twice { first, second })
}

/// The equation by elements: as an edit if all of them have an iteration, apart from the ends of the axes.
fn by_element(ast: &ast::Equation, indices: &[ast::Expr], (names, inverses): (&Names, &[Inverse])) -> ComputedPlace {
    let target = ast.targets.first().map_or("y", |target| plain(target));
    let axes: Vec<&str> = inverses.iter().map(|inverse| inverse.axis.as_str()).collect();
    let element = format!("{target}[{}]", axes.join(", "));
    let places: Vec<(String, String)> = (inverses.iter().map(|inverse| (inverse.axis.clone(), inverse.text(names))))
        .filter(|(axis, text)| axis != text)
        .collect();
    let strided: Vec<String> =
        inverses.iter().filter(|inverse| inverse.divisor > 1).map(|inverse| inverse.condition(names)).collect();
    if !strided.is_empty() {
        return ComputedPlace::Strided { element, condition: strided.join(" && "), places };
    }
    let mut edits: Vec<(Span, String)> =
        indices.iter().zip(&axes).map(|(index, axis)| (index.span, (*axis).to_owned())).collect();
    ast.value.visit(&mut |part| {
        let whole: Vec<Span> = match &part.kind {
            ast::ExprKind::Read(read) => read.indices.iter().map(|index| index.span).collect(),
            _ => Vec::new(),
        };
        let names = match &part.kind {
            ast::ExprKind::Read(read) => read.indices.iter().collect(),
            ast::ExprKind::Name(_) => vec![part],
            _ => Vec::new(),
        };
        for name in names {
            let ast::ExprKind::Name(text) = &name.kind else { continue };
            let Some((_, place)) = places.iter().find(|(axis, _)| axis == plain(text)) else { continue };
            let place = if whole.contains(&name.span) { place.clone() } else { format!("({place})") };
            if edits.iter().all(|(span, _)| *span != name.span) {
                edits.push((name.span, place));
            }
        }
    });
    edits.sort_by_key(|(span, _)| span.first);
    ComputedPlace::Moved { element, edits, places }
}

/// Two iterations with the same element, as the values of the axes; none where none are found.
fn twice(indices: &[ast::Expr], names: &Names, is_axis: &dyn Fn(&str) -> bool) -> Option<[Vec<(String, i64)>; 2]> {
    let axes: Vec<&String> = names.0.iter().filter(|name| is_axis(name)).collect();
    if axes.is_empty() || axes.len() > AXES {
        return None;
    }
    let mut seen: Vec<(Vec<Expr>, Vec<i64>)> = Vec::new();
    for number in 0..SIDE.pow(axes.len() as u32) {
        let point: Vec<i64> = (0..axes.len()).map(|n| number / SIDE.pow(n as u32) % SIDE).collect();
        let of = |name: &str| axes.iter().position(|axis| *axis == name).map(|n| i128::from(point[n]));
        let place: Vec<Expr> = indices.iter().map(|index| names.index(index, &of)).collect();
        if place.iter().any(Expr::is_unknown) {
            return None;
        }
        let named = |point: &[i64]| axes.iter().map(|axis| (*axis).clone()).zip(point.iter().copied()).collect();
        if let Some((_, earlier)) = seen.iter().find(|(other, _)| *other == place) {
            return Some([named(earlier), named(&point)]);
        }
        seen.push((place, point));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: i128 = 37;

    fn is_axis(name: &str) -> bool {
        name != "N"
    }

    /// Of all indices c·i + s·N + r with small numbers, the iteration of an element is the one that counting finds, and
    /// there is none where none is found.
    #[test]
    fn inverses_are_those_of_enumeration() {
        let mut counted = [0, 0];
        for (factor, of_size, number) in
            (-4..=4).flat_map(|c| (-2..=2).flat_map(move |s| (-5..=5).map(move |r| (c, s, r))))
        {
            let names = Names(vec!["i".to_owned(), "N".to_owned()]);
            let [i, size] = [0, 1].map(Expr::var);
            let index = i.scale(factor).add(&size.scale(of_size)).add(&Expr::constant(number));
            let Some(inverse) = Inverse::of(&index, &names, &is_axis) else {
                assert_eq!(factor, 0);
                continue;
            };
            let value = |of: &Expr, i: i128| of.eval(&[i, SIZE]).expect("a number");
            let places: Vec<(i128, i128)> = (-40..40).map(|i| (value(&index, i), i)).collect();
            for element in -30..30 {
                let all: Vec<i128> = places.iter().filter(|place| place.0 == element).map(|place| place.1).collect();
                let told = value(&inverse.value, element);
                let told = (told.rem_euclid(inverse.divisor) == 0).then(|| told.div_euclid(inverse.divisor));
                let told: Vec<i128> = told.into_iter().filter(|i| (-40..40).contains(i)).collect();
                assert_eq!(told, all, "element {element} of {}", names.show(&index));
                counted[all.len()] += 1;
            }
        }
        assert!(counted.iter().all(|count| *count > 1000), "{counted:?}");
    }
}
