//! Left-hand indices that are computed, `y[N - 1 - i] = x[i]`, where an equation has axes alone: what to write.
//!
//! **Property.** Where an element is meant by one iteration at most, and each index has one axis of its own,
//! [`instead`] tells the iteration of an element, so that the equation says where an element comes from. Otherwise the
//! two iterations that it names mean the same element, whatever the sizes are. **Formula.** An index e = c·i + r, with
//! sizes and numbers alone in r and c ≠ 0, is met by one i at most, and indices with axes of their own by one
//! iteration. It is i = (e − r) / c, if c divides that: ±(e − r) is a multiple of |c|. Two iterations at which the
//! linear parts of all indices are equal have equal indices, since r is the same in both. **Approximation.** They are
//! looked for at small coordinates, of indices that are linear or have an axis divided by a number; that both are
//! iterations is not asked.

use std::fmt::Write as _;

use tilewright_sorted::SortedMap;

use super::names::plain;
use crate::diag::codes::ComputedPlace;
use crate::source::{Span, ast};

/// Coordinates along an axis at which iterations with the same element are looked for, and most axes.
const SIDE: i64 = 4;
const AXES: usize = 4;

/// A sum of numbers times names, and a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Linear {
    /// Factors of names, none of which is 0.
    of: SortedMap<String, i64>,
    number: i64,
}

impl Linear {
    fn times(&self, factor: i64) -> Option<Self> {
        let mut product = Self { of: SortedMap::default(), number: self.number.checked_mul(factor)? };
        for (name, own) in self.of.iter().filter(|_| factor != 0) {
            product.of.insert(name.clone(), own.checked_mul(factor)?);
        }
        Some(product)
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = Self { of: self.of.clone(), number: self.number.checked_add(other.number)? };
        for (name, factor) in other.of.iter() {
            let all = sum.of.get(name).copied().unwrap_or(0).checked_add(*factor)?;
            if all == 0 {
                sum.of.remove(name);
            } else {
                sum.of.insert(name.clone(), all);
            }
        }
        Some(sum)
    }

    /// As it is written in the source, what is added first.
    fn text(&self) -> String {
        let number = (self.number != 0).then_some((None, self.number));
        let mut terms: Vec<(Option<&str>, i64)> = self.of.iter().map(|(n, f)| (Some(n.as_str()), *f)).collect();
        terms.extend(number);
        terms.sort_by_key(|term| term.1 < 0);
        let mut text = String::new();
        for (name, factor) in terms {
            match (factor < 0, text.is_empty()) {
                (true, true) => text.push('-'),
                (true, false) => text.push_str(" - "),
                (false, false) => text.push_str(" + "),
                (false, true) => {}
            }
            let _ = match (name, factor.unsigned_abs()) {
                (Some(name), 1) => write!(text, "{name}"),
                (Some(name), many) => write!(text, "{many} * {name}"),
                (None, number) => write!(text, "{number}"),
            };
        }
        if text.is_empty() { "0".to_owned() } else { text }
    }
}

/// The iteration of an axis for an element: i = `value` / `divisor`, if that has no rest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inverse {
    axis: String,
    /// Of the index, which has the name of the axis.
    value: Linear,
    divisor: i64,
}

impl Inverse {
    /// That of an index with one axis.
    fn of(index: &Linear, is_axis: &dyn Fn(&str) -> bool) -> Option<Self> {
        let mut axes = index.of.iter().filter(|(name, _)| is_axis(name));
        let (axis, factor) = axes.next()?;
        if axes.next().is_some() {
            return None;
        }
        let mut rest = index.clone();
        rest.of.remove(axis);
        let mut element = Linear::default();
        element.of.insert(axis.clone(), 1);
        let value = element.plus(&rest.times(-1)?)?.times(factor.signum())?;
        Some(Self { axis: axis.clone(), value, divisor: factor.checked_abs()? })
    }

    fn text(&self) -> String {
        match self.divisor {
            1 => self.value.text(),
            divisor => format!("({}) / {divisor}", self.value.text()),
        }
    }
}

/// What to write in the place of an equation with such indices.
pub(super) fn instead(ast: &ast::Equation, indices: &[ast::Expr], is_axis: &dyn Fn(&str) -> bool) -> ComputedPlace {
    let linear: Option<Vec<Linear>> = indices.iter().map(linear).collect();
    let inverses = linear.as_ref().and_then(|all| {
        let inverses = all.iter().map(|index| Inverse::of(index, is_axis)).collect::<Option<Vec<_>>>()?;
        let is_own = |n: usize| inverses[..n].iter().all(|earlier| earlier.axis != inverses[n].axis);
        (0..inverses.len()).all(is_own).then_some(inverses)
    });
    if let Some(inverses) = inverses {
        return by_element(ast, indices, &inverses);
    }
    twice(indices, is_axis).map_or(ComputedPlace::Unknown, |[first, second]| ComputedPlace::Twice { first, second })
}

/// The equation by elements: as an edit if all of them have an iteration, apart from the ends of the axes.
fn by_element(ast: &ast::Equation, indices: &[ast::Expr], inverses: &[Inverse]) -> ComputedPlace {
    let target = ast.targets.first().map_or("y", |target| plain(target));
    let axes: Vec<&str> = inverses.iter().map(|inverse| inverse.axis.as_str()).collect();
    let element = format!("{target}[{}]", axes.join(", "));
    let moved = inverses.iter().filter(|inverse| inverse.text() != inverse.axis);
    let places: Vec<(String, String)> = moved.map(|inverse| (inverse.axis.clone(), inverse.text())).collect();
    let strided: Vec<String> = (inverses.iter().filter(|inverse| inverse.divisor > 1))
        .map(|inverse| match inverse.value.of.iter().len() == 1 && inverse.value.number == 0 {
            true => format!("{} % {} == 0", inverse.value.text(), inverse.divisor),
            false => format!("({}) % {} == 0", inverse.value.text(), inverse.divisor),
        })
        .collect();
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
fn twice(indices: &[ast::Expr], is_axis: &dyn Fn(&str) -> bool) -> Option<[Vec<(String, i64)>; 2]> {
    let mut axes: Vec<String> = Vec::new();
    for index in indices {
        index.visit(&mut |part| {
            if let ast::ExprKind::Name(name) = &part.kind
                && is_axis(plain(name))
                && axes.iter().all(|known| known != plain(name))
            {
                axes.push(plain(name).to_owned());
            }
        });
    }
    if axes.is_empty() || axes.len() > AXES {
        return None;
    }
    let mut seen: Vec<(Vec<Linear>, Vec<i64>)> = Vec::new();
    for number in 0..SIDE.pow(axes.len() as u32) {
        let point: Vec<i64> = (0..axes.len()).map(|n| number / SIDE.pow(n as u32) % SIDE).collect();
        let of = |name: &str| axes.iter().position(|axis| axis == name).map(|n| point[n]);
        let place: Option<Vec<Linear>> = indices.iter().map(|index| at(index, &of)).collect();
        let place = place?;
        let named = |point: &[i64]| axes.iter().cloned().zip(point.iter().copied()).collect();
        if let Some((_, earlier)) = seen.iter().find(|(other, _)| *other == place) {
            return Some([named(earlier), named(&point)]);
        }
        seen.push((place, point));
    }
    None
}

/// An index as a linear expression of axes and sizes.
fn linear(index: &ast::Expr) -> Option<Linear> {
    at(index, &|_| None)
}

/// An index where some names have values: a linear expression of the others.
fn at(index: &ast::Expr, of: &dyn Fn(&str) -> Option<i64>) -> Option<Linear> {
    let number = |number: i64| Some(Linear { of: SortedMap::default(), number });
    match &index.kind {
        ast::ExprKind::Int(literal) => number(i64::try_from(literal.value).ok()?),
        ast::ExprKind::Name(name) => match of(plain(name)) {
            Some(value) => number(value),
            None => {
                let mut one = Linear::default();
                one.of.insert(plain(name).to_owned(), 1);
                Some(one)
            }
        },
        ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => at(inner, of)?.times(-1),
        ast::ExprKind::Binary(left, op, right) => {
            let (left, right) = (at(left, of)?, at(right, of)?);
            let is_number = |side: &Linear| side.of.is_empty();
            match op.value {
                ast::BinaryOp::Add => left.plus(&right),
                ast::BinaryOp::Sub => left.plus(&right.times(-1)?),
                ast::BinaryOp::Mul if is_number(&left) => right.times(left.number),
                ast::BinaryOp::Mul if is_number(&right) => left.times(right.number),
                ast::BinaryOp::Div if is_number(&left) && is_number(&right) && right.number > 0 => {
                    number(left.number.div_euclid(right.number))
                }
                ast::BinaryOp::Rem if is_number(&left) && is_number(&right) && right.number > 0 => {
                    number(left.number.rem_euclid(right.number))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: i64 = 37;

    fn is_axis(name: &str) -> bool {
        name != "N"
    }

    fn value(of: &Linear, names: &[(&str, i64)]) -> i64 {
        let term = |(name, factor): &(String, i64)| {
            let found = names.iter().find(|known| known.0 == name.as_str());
            factor * found.expect("a value").1
        };
        of.number + of.of.iter().map(term).sum::<i64>()
    }

    /// Of all indices c·i + s·N + r with small numbers, the iteration of an element is the one that counting finds, and
    /// there is none where none is found.
    #[test]
    fn inverses_are_those_of_enumeration() {
        let mut counted = [0, 0];
        for (factor, of_size, number) in
            (-4..=4).flat_map(|c| (-2..=2).flat_map(move |s| (-5..=5).map(move |r| (c, s, r))))
        {
            let mut index = Linear { of: SortedMap::default(), number };
            for (name, factor) in [("i", factor), ("N", of_size)] {
                if factor != 0 {
                    index.of.insert(name.to_owned(), factor);
                }
            }
            let Some(inverse) = Inverse::of(&index, &is_axis) else {
                assert_eq!(factor, 0);
                continue;
            };
            let places: Vec<(i64, i64)> = (-40..40).map(|i| (value(&index, &[("i", i), ("N", SIZE)]), i)).collect();
            for element in -30..30 {
                let all: Vec<i64> = places.iter().filter(|place| place.0 == element).map(|place| place.1).collect();
                let told = value(&inverse.value, &[("i", element), ("N", SIZE)]);
                let told = (told.rem_euclid(inverse.divisor) == 0).then(|| told.div_euclid(inverse.divisor));
                let told: Vec<i64> = told.into_iter().filter(|i| (-40..40).contains(i)).collect();
                assert_eq!(told, all, "element {element} of {}", index.text());
                counted[all.len()] += 1;
            }
        }
        assert!(counted.iter().all(|count| *count > 1000), "{counted:?}");
    }

    #[test]
    fn sums_are_written_as_in_the_source() {
        let linear = |of: &[(&str, i64)], number| Linear {
            of: of.iter().map(|(name, factor)| ((*name).to_owned(), *factor)).collect(),
            number,
        };
        let rows = [
            (linear(&[("N", 1), ("i", -1)], -1), "N - i - 1"),
            (linear(&[("i", 2)], 1), "2 * i + 1"),
            (linear(&[("i", -1)], 0), "-i"),
            (linear(&[("i", -1)], 3), "3 - i"),
            (linear(&[], 0), "0"),
        ];
        for (sum, text) in rows {
            assert_eq!(sum.text(), text);
        }
    }
}
