//! Which requests ask for the same, against enumeration.

use std::collections::BTreeSet;

use super::random::Random;
use crate::extent::{Expr, Facts, Var};
use crate::region::known::Known;
use crate::region::same::is_same;
use crate::region::{Loops, Request};

/// The loop outside, and loops inside: those of one request, then those of the other, with as many iterations each.
const OUTSIDE: (Var, i128) = (0, 3);
const INSIDE: [(Var, i128); 3] = [(1, 2), (2, 3), (3, 3)];
const OTHERS: Var = 3;

/// A sum of loops, or a quotient of one.
fn drawn(random: &mut Random) -> Expr {
    let mut sum = Expr::constant(random.between(-1, 2).into());
    for v in std::iter::once(OUTSIDE.0).chain(INSIDE.map(|l| l.0)) {
        if random.below(2) == 0 {
            sum = sum.add(&Expr::var(v).scale(random.between(-2, 3).into()));
        }
    }
    if random.below(4) == 0 { sum.floor_div(&Expr::constant(random.between(2, 3).into())) } else { sum }
}

fn request(random: &mut Random) -> Request {
    let indices = (0..2).map(|_| drawn(random)).collect();
    let conditions = (0..random.below(3)).map(|_| drawn(random)).collect();
    let axes = (0..random.below(4)).map(|_| (drawn(random), Expr::constant(random.between(1, 4).into()))).collect();
    Request { indices, conditions, axes }
}

/// With other loops inside, and in another order; now and then with something else in it.
fn renamed(random: &mut Random, request: &Request) -> Request {
    let other = |e: &Expr| e.substitute(&|v| (v != OUTSIDE.0).then(|| Expr::var(v + OTHERS)));
    let mut indices: Vec<Expr> = request.indices.iter().map(other).collect();
    let mut conditions: Vec<Expr> = request.conditions.iter().map(other).collect();
    let mut axes: Vec<(Expr, Expr)> =
        request.axes.iter().map(|(value, extent)| (other(value), extent.clone())).collect();
    conditions.reverse();
    axes.reverse();
    if random.below(3) == 0 {
        // What always holds.
        axes.push((Expr::constant(0), Expr::constant(1)));
        axes.insert(0, (Expr::var(OUTSIDE.0), Expr::constant(OUTSIDE.1)));
    }
    match random.below(8) {
        0 => indices.swap(0, 1),
        1 => drop(conditions.pop()),
        2 => drop(axes.pop()),
        // Loops of other lengths trade places.
        3 => {
            let traded = [(OTHERS + 1, OTHERS + 2), (OTHERS + 2, OTHERS + 1)];
            let other = |v: Var| traded.iter().find(|pair| pair.0 == v).map(|pair| Expr::var(pair.1));
            let swap = |e: &Expr| e.substitute(&other);
            indices = indices.iter().map(swap).collect();
        }
        4 => indices[0] = indices[0].add(&Expr::constant(1)),
        5 => axes.push((Expr::var(OTHERS + 1), Expr::constant(1))),
        _ => {}
    }
    Request { indices, conditions, axes }
}

/// The indices that are asked for at each value of the loop outside.
fn asked(request: &Request, first: Var) -> Vec<BTreeSet<Vec<i128>>> {
    let mut all = Vec::new();
    for outer in 0..OUTSIDE.1 {
        let mut found = BTreeSet::new();
        for number in 0..INSIDE.iter().map(|l| l.1).product() {
            let mut values = vec![0; 1 + 2 * INSIDE.len()];
            values[0] = outer;
            let mut rest = number;
            for (n, (_, extent)) in INSIDE.iter().enumerate() {
                values[first as usize + n] = rest % extent;
                rest /= extent;
            }
            let at = |e: &Expr| e.eval(&values).expect("small numbers");
            let is_asked = request.conditions.iter().all(|e| at(e) >= 0)
                && request.axes.iter().all(|(value, extent)| (0..at(extent)).contains(&at(value)));
            if is_asked {
                found.insert(request.indices.iter().map(at).collect());
            }
        }
        all.push(found);
    }
    all
}

#[test]
fn requests_that_are_the_same_ask_for_the_same() {
    let facts = Facts::new(&[], &[]).expect("no facts");
    let number = |(v, n): (Var, i128)| (v, Expr::constant(n));
    let others = INSIDE.map(|(v, n)| (v + OTHERS, n));
    let inside = INSIDE.into_iter().chain(others).map(number).collect();
    let loops = Loops { inside, outside: vec![number(OUTSIDE)], reached: Vec::new() };
    let known = Known::new(&loops, &facts);
    let mut random = Random::seeded(35);
    let (mut same, mut other) = (0, 0);
    for _ in 0..4_000 {
        let a = request(&mut random);
        let b = renamed(&mut random, &a);
        match is_same(&a, &b, &known) {
            true => assert_eq!(asked(&a, 1), asked(&b, 1 + OTHERS), "{a:?}\n{b:?}"),
            false => other += 1,
        }
        same += usize::from(is_same(&a, &b, &known) && is_same(&b, &a, &known));
    }
    assert!(same > 1_500 && other > 500, "{same} are the same, {other} are not");
    // What is not known is like nothing else, but for the request itself.
    let unknown = |condition: i128| {
        let indices = vec![Expr::unknown()];
        Request { indices, conditions: vec![Expr::constant(condition)], axes: Vec::new() }
    };
    assert!(is_same(&unknown(0), &unknown(0), &known) && !is_same(&unknown(0), &unknown(1), &known));
}
