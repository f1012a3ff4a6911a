//! A solution of a system, where a few steps lead to one: then elimination does not show that there is none. And what
//! needs no elimination either: two inequalities that exclude each other.

use super::Inequality;

/// Times that all inequalities are looked at.
const SWEEPS: usize = 6;
/// Largest coefficients, constants and values, and most unknowns of an inequality: their sums fit into 64 bits.
const LARGEST: [i64; 2] = [1 << 20, 1 << 38];
const MOST_UNKNOWNS: usize = 16;

/// An inequality of several unknowns.
struct Row {
    coefficients: Vec<(usize, i64)>,
    constant: i64,
}

/// What an unknown has to lie between, by the inequalities of it alone.
#[derive(Clone, Copy)]
struct Ends {
    low: i64,
    high: i64,
}

/// Whether there are integers that meet every inequality: there are if a few steps lead to some, and are none if two of
/// the inequalities exclude each other; else that is not known. A step moves unknowns of one that is not met, as far as
/// the inequalities of one unknown let them: in turns those that others define, and those that define them.
pub(super) fn is_met(inequalities: &[Inequality], unknowns: usize) -> Option<bool> {
    if is_excluded(inequalities) {
        return Some(false);
    }
    let (rows, ends) = taken_apart(inequalities, unknowns)?;
    if ends.iter().any(|ends| ends.low > ends.high) {
        return Some(false);
    }
    let least = |ends: &Ends| if ends.low == -LARGEST[1] { ends.high.min(0) } else { ends.low };
    let mut values: Vec<i64> = ends.iter().map(least).collect();
    // Loops: a debug build calls what iterators do.
    let mut sweep = 0;
    while sweep < SWEEPS {
        let (mut at, mut holds) = (0, true);
        while at < rows.len() {
            let value = value(&rows[at], &values);
            if value < 0 {
                holds = false;
                step(&rows[at], -value, sweep % 2 == 1, &mut values, &ends);
            }
            at += 1;
        }
        if holds {
            return Some(true);
        }
        sweep += 1;
    }
    None
}

/// Whether the last inequality, which most often is what is asked about, and another one exclude each other: Σ + a ≥ 0
/// and −Σ + b ≥ 0 with a + b < 0.
fn is_excluded(inequalities: &[Inequality]) -> bool {
    let Some((last, others)) = inequalities.split_last() else { return false };
    let mut at = 0;
    while at < others.len() {
        let other = &others[at];
        let sum = last.constant.saturating_add(other.constant);
        if sum < 0 && other.coefficients.len() == last.coefficients.len() {
            let mut pairs = other.coefficients.iter().zip(&last.coefficients);
            if pairs.all(|(a, b)| a.0 == b.0 && a.1.checked_neg() == Some(b.1)) {
                return true;
            }
        }
        at += 1;
    }
    false
}

/// The inequalities of several unknowns, and what the others say; none if numbers are too large.
fn taken_apart(inequalities: &[Inequality], unknowns: usize) -> Option<(Vec<Row>, Vec<Ends>)> {
    let [largest, most] = LARGEST;
    let small = |number: i128| i64::try_from(number).ok().filter(|number| (-most..=most).contains(number));
    let mut ends = vec![Ends { low: -most, high: most }; unknowns];
    let mut rows: Vec<Row> = Vec::with_capacity(inequalities.len());
    for inequality in inequalities {
        let constant = small(inequality.constant)?;
        if let [(unknown, c)] = inequality.coefficients[..] {
            let (c, ends) = (small(c)?, &mut ends[unknown]);
            if c > 0 {
                // c·u + k ≥ 0: u ≥ ⌈−k / c⌉ = −⌊k / c⌋
                ends.low = ends.low.max(-constant.div_euclid(c));
            } else {
                ends.high = ends.high.min(constant.div_euclid(-c));
            }
            continue;
        }
        let mut coefficients = Vec::with_capacity(inequality.coefficients.len());
        for (unknown, c) in &inequality.coefficients {
            coefficients.push((*unknown, small(*c).filter(|c| (-largest..=largest).contains(c))?));
        }
        if coefficients.len() > MOST_UNKNOWNS {
            return None;
        }
        rows.push(Row { coefficients, constant });
    }
    Some((rows, ends))
}

fn value(row: &Row, values: &[i64]) -> i64 {
    let (coefficients, mut sum, mut at) = (&row.coefficients[..], row.constant, 0);
    while at < coefficients.len() {
        sum += coefficients[at].1 * values[coefficients[at].0];
        at += 1;
    }
    sum
}

/// Moves unknowns of an inequality until it has what it lacks, or as far as their ends let them: those that came last
/// first, which others define, or those that came first.
fn step(row: &Row, mut lacks: i64, from_first: bool, values: &mut [i64], ends: &[Ends]) {
    let (count, mut at) = (row.coefficients.len(), 0);
    while at < count && lacks > 0 {
        let (unknown, c) = row.coefficients[if from_first { at } else { count - 1 - at }];
        let (size, now) = (c.abs(), values[unknown]);
        let wanted = lacks / size + i64::from(lacks % size != 0);
        let step = wanted.min(if c > 0 { ends[unknown].high - now } else { now - ends[unknown].low });
        values[unknown] = if c > 0 { now + step } else { now - step };
        // At most one unit of the last step too much.
        lacks -= step * size;
        at += 1;
    }
}
