//! `tune`: numbers of a schedule that are constants with candidates.
//!
//! **Property.** A kernel with constants is the one with numbers in their place, of the first combination that gives a
//! kernel; none, if none of them does. **Formula.** Combinations go in the order written, the last constant fastest,
//! and each is written out with numbers and compiled by itself. **Approximation.** Numbers are those of splits, loops
//! that are written out, and rings; what a combination is refused for is not compared.

use super::ast::Kernel;
use crate::compile::{Outcome, compile};
use crate::rng::Rng;

/// A constant with its candidates.
pub type Constant = (String, Vec<i64>);

/// Other candidates beside the number that was drawn.
const OTHERS: [i64; 11] = [1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 7];

/// Where a number of a schedule stands: the schedule, and its op, or its clause.
type Place = (usize, bool, usize);

/// The number after the first of these words in a text, as bytes from where to where.
fn number(text: &str) -> Option<(usize, usize)> {
    let lead = [" by ", " into ", "ring("].into_iter().find_map(|lead| Some(text.find(lead)? + lead.len()))?;
    let is_op = ["split ", "unroll ", "ring("].into_iter().any(|word| text.starts_with(word));
    let end = lead + text[lead..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - lead);
    // Several numbers are the levels of one split.
    (is_op && end > lead && !text[end..].starts_with(',')).then_some((lead, end))
}

fn texts(kernel: &mut Kernel, (schedule, is_op, at): Place) -> &mut String {
    let schedule = &mut kernel.schedules[schedule];
    if is_op { &mut schedule.ops[at] } else { &mut schedule.clauses[at] }
}

/// Gives one or two numbers of a kernel's schedules names and candidates.
pub fn tune(kernel: &mut Kernel, rng: &mut Rng) {
    let mut places: Vec<Place> = Vec::new();
    for (n, schedule) in kernel.schedules.iter().enumerate() {
        let all = [(true, &schedule.ops), (false, &schedule.clauses)];
        let found = |(is_op, list): (bool, &Vec<String>)| -> Vec<Place> {
            (0..list.len()).filter(|at| number(&list[*at]).is_some()).map(|at| (n, is_op, at)).collect()
        };
        places.extend(all.into_iter().flat_map(found));
    }
    for n in 0..rng.range(1, 2) {
        if places.is_empty() {
            return;
        }
        let place = places.remove(rng.below(places.len()));
        let name = format!("TUNED{n}");
        let text = texts(kernel, place);
        let Some((from, to)) = number(text) else { return };
        let Ok(drawn) = text[from..to].parse::<i64>() else { return };
        text.replace_range(from..to, &name);
        let mut candidates = vec![drawn];
        for _ in 0..rng.range(1, 3) {
            let other = *rng.pick(&OTHERS);
            if !candidates.contains(&other) {
                candidates.insert(rng.below(candidates.len() + 1), other);
            }
        }
        kernel.tuned.push((name, candidates));
    }
}

/// The kernel with numbers in the place of its constants.
pub fn written_out(kernel: &Kernel, values: &[i64]) -> Kernel {
    let mut kernel = kernel.clone();
    for ((name, _), value) in std::mem::take(&mut kernel.tuned).iter().zip(values) {
        for schedule in &mut kernel.schedules {
            let all = schedule.ops.iter_mut().chain(&mut schedule.clauses);
            all.for_each(|text| *text = text.replace(name, &value.to_string()));
        }
    }
    kernel
}

/// All combinations in their order.
fn combinations(tuned: &[Constant]) -> Vec<Vec<i64>> {
    tuned.iter().fold(vec![Vec::new()], |all, (_, candidates)| {
        let with = |values: &Vec<i64>| -> Vec<Vec<i64>> {
            candidates.iter().map(|value| values.iter().copied().chain([*value]).collect()).collect()
        };
        all.iter().flat_map(with).collect()
    })
}

/// Whether what the compiler made of a kernel with constants is what it makes of the first combination that it takes.
///
/// # Errors
/// It is not, with both.
pub fn is_the_first(kernel: &Kernel, outcome: &Outcome) -> Result<(), String> {
    let made = match outcome {
        Outcome::Accepted(info, _) => Some(&info.ptx.text),
        Outcome::Refused(..) => None,
        Outcome::Panicked(_) | Outcome::NotTokens => return Ok(()), // told by itself
    };
    let first = combinations(&kernel.tuned).into_iter().find_map(|values| {
        match compile(&written_out(kernel, &values).to_string()) {
            Outcome::Accepted(info, _) => Some((values, info.ptx.text)),
            _ => None,
        }
    });
    match (made, first) {
        (None, None) => Ok(()),
        (Some(made), Some((_, text))) if *made == text => Ok(()),
        (Some(_), Some((values, _))) => Err(format!("other code than with {values:?}")),
        (Some(_), None) => Err("accepted, and no combination is".to_owned()),
        (None, Some((values, _))) => Err(format!("refused, and {values:?} is accepted")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ops_are_found() {
        let of = |text: &'static str| number(text).map(|(from, to)| &text[from..to]);
        assert_eq!(of("split i by 16 -> a, b"), Some("16"));
        assert_eq!(of("split i into 4 -> a, b"), Some("4"));
        assert_eq!(of("unroll a by 3"), Some("3"));
        assert_eq!(of("ring(2)"), Some("2"));
        assert_eq!(of("split i by 16, 4 -> a, b, c"), None);
        assert_eq!(of("resize a by (1, 2) -> b"), None);
        assert_eq!(of("reduce a by warp"), None);
    }

    #[test]
    fn the_last_constant_changes_fastest() {
        let tuned = [("A".to_owned(), vec![1, 2]), ("B".to_owned(), vec![3, 4])];
        assert_eq!(combinations(&tuned), [[1, 3], [1, 4], [2, 3], [2, 4]]);
        assert_eq!(combinations(&[]), [Vec::<i64>::new()]);
    }
}
