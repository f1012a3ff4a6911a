//! What kernels compute, against the definition: means and moments in exact rationals, choices by enumeration of short
//! lists and of all ways to take them in, and roundings of sums of squares and of exponentials in random orders.

use super::tests::{Point, Random, Rational, Terms, X};
use super::{
    At, Chain, Exponential, Narrowed, NoChain, Outside, Rule, Why, chain, loss, moments, squares_loss, weighted_loss,
};
use crate::algorithm::{
    Algorithm, Binary, Compare, Component, Equation, Order, Reduction, Run, Source, Unary, Value, ValueId,
};
use crate::element::ElementType::{Bool, E4m3, E5m2, F16, F32, U32};
use crate::format::Format;

/// A polynomial's value, from sums of powers of the differences: Σₖ cₖ·Σᵢ C(k, i)·Mᵢ·eᵏ⁻ⁱ.
fn moved(coefficients: &[Rational], sums: &[Rational], e: Rational) -> Option<Rational> {
    let mut all = Rational::of(0);
    for (k, coefficient) in coefficients.iter().enumerate() {
        let mut binomial = 1;
        for (i, sum) in sums.iter().enumerate().take(k + 1) {
            let part = coefficient.mul(Rational::of(binomial))?.mul(*sum)?.mul(e.power((k - i) as i32)?)?;
            all = all.add(part)?;
            binomial = binomial * (k - i) as i128 / (i + 1) as i128;
        }
    }
    Some(all)
}

/// The mean of terms with weights.
fn mean(terms: &[[Rational; 2]]) -> Option<Rational> {
    let sum = terms.iter().try_fold(Rational::of(0), |sum, [x, w]| sum.add(x.mul(*w)?))?;
    sum.div(terms.iter().try_fold(Rational::of(0), |sum, [_, w]| sum.add(*w))?)
}

/// Random terms: mostly polynomials of the difference, now and then something else.
fn draw(t: &mut Terms, random: &mut Random, depth: u32) -> ValueId {
    if depth == 0 || random.below(6) == 0 {
        let (x, m) = (t.read(X), t.m());
        return match random.below(10) {
            0 => x,
            1 => m,
            2 => t.read(1),
            3 => t.scalar(2),
            4 => t.literal(2.0),
            5 => t.binary(Binary::Sub, m, x),
            _ => t.binary(Binary::Sub, x, m),
        };
    }
    let (a, b) = (draw(t, random, depth - 1), draw(t, random, depth - 1));
    match random.below(8) {
        0 => t.binary(Binary::Add, a, b),
        1 => t.binary(Binary::Sub, a, b),
        2 => {
            let two = t.literal(2.0);
            t.binary(Binary::Div, a, two)
        }
        3 => t.push(Value::Unary(Unary::Neg, a)),
        4 => t.push(Value::Fma(a, b, a)),
        _ => t.binary(Binary::Mul, a, b),
    }
}

#[test]
fn polynomials_of_the_difference_follow_a_mean() {
    polynomials(false);
}

/// The second tensor has the weights of the mean: any that do not add up to 0 on the way.
#[test]
fn polynomials_of_the_difference_follow_a_weighted_mean() {
    polynomials(true);
}

/// With the coefficients that are found, one pass with running means gives what two passes do; of what is refused for
/// want of a correction there are two lists that only their terms tell apart.
fn polynomials(weighted: bool) {
    let mut random = Random(0x5DEE_CE66_D1CE_4E5B);
    let (mut compared, mut degrees) = (0, [0_u32; 5]);
    let (mut refused, mut witnessed) = (0_u32, 0_u32);
    for round in 0..20_000 {
        let mut terms = Terms::new();
        let depth = 1 + random.below(4) as u32;
        let mut id = draw(&mut terms, &mut random, depth);
        let (x, w) = (terms.read(X), terms.read(1));
        if weighted && random.below(4) > 0 {
            id = terms.binary(Binary::Mul, w, id);
        }
        let [u, weight] = [x, w].map(|value| super::key::key(&terms.algorithm, value, &[]));
        let once = Rational::of(1);
        let scalars = [random.other(), random.other()];
        let value = |x: Rational, y: Rational, m: Rational| terms.value(id, &Point { m, term: [x, y], scalars });
        match moments(&terms.algorithm, id, (&u, weighted.then_some(&*weight)), 0, &[0]) {
            Ok(found) => {
                let at = Point { m: Rational::of(0), term: [Rational::of(0); 2], scalars };
                let coefficients: Option<Vec<Rational>> = found.iter().map(|c| terms.coefficient(c, &at)).collect();
                let Some(coefficients) = coefficients else { continue };
                for _ in 0..4 {
                    let count = 1 + random.below(4) as usize;
                    let mut number = |_| [random.number(), if weighted { random.number() } else { once }];
                    let data: Vec<[Rational; 2]> = (0..count).map(&mut number).collect();
                    // One pass, with the sums of all powers, the mean moving with each term.
                    let one_pass = || -> Option<Rational> {
                        let mut sums = vec![Rational::of(0); found.len().max(2)];
                        let mut result = Rational::of(0);
                        for n in 0..count {
                            let now = mean(&data[..=n])?;
                            if n > 0 {
                                let e = mean(&data[..n])?.add(now.neg())?;
                                // The first power's sum is 0 about a mean.
                                assert_eq!(sums[1], Rational::of(0));
                                result = moved(&coefficients, &sums, e)?;
                                let power = |k: usize| {
                                    let mut only = vec![Rational::of(0); k + 1];
                                    only[k] = Rational::of(1);
                                    moved(&only, &sums, e)
                                };
                                sums = (0..sums.len()).map(power).collect::<Option<_>>()?;
                            }
                            let [x, w] = data[n];
                            result = result.add(value(x, w, now)?)?;
                            let z = x.add(now.neg())?;
                            for (k, sum) in sums.iter_mut().enumerate() {
                                *sum = sum.add(w.mul(z.power(k as i32)?)?)?;
                            }
                        }
                        Some(result)
                    };
                    let two_passes = || -> Option<Rational> {
                        let m = mean(&data)?;
                        data.iter().try_fold(Rational::of(0), |sum, [x, w]| sum.add(value(*x, *w, m)?))
                    };
                    let (Some(one), Some(two)) = (one_pass(), two_passes()) else { continue };
                    assert_eq!(one, two, "round {round}: {found:?} of {:?}", terms.algorithm.values);
                    compared += 1;
                    degrees[(found.len() - 1).min(4)] += 1;
                }
            }
            Err(obstacle) if matches!(obstacle.why, Why::Shift | Why::Beside | Why::Weight) => {
                refused += 1;
                // Two terms with one sum of u, and one result: then, with another mean, two results.
                let mut found = false;
                for _ in 0..400 {
                    let mut number = || random.number();
                    let (a, b, c) = (number(), number(), number());
                    let mut ys = [number(), number(), number(), number()];
                    let mut ws = [once; 4];
                    if weighted {
                        // As many weights, and the same sum of them.
                        (ys[2], ys[3]) = (ys[1], ys[0]);
                        ws = ys;
                    }
                    // The fourth one makes both sums alike.
                    let sums = || {
                        let rest = a.mul(ws[0])?.add(b.mul(ws[1])?)?.add(c.mul(ws[2])?.neg())?;
                        Some((rest.div(ws[3])?, mean(&[[a, ws[0]], [b, ws[1]]])?))
                    };
                    let later = number();
                    let (d, m) = sums().unzip();
                    let (Some(d), Some(m)) = (d, m) else { continue };
                    let sum = |x: [Rational; 2], y: [Rational; 2], m: Rational| {
                        value(x[0], y[0], m)?.add(value(x[1], y[1], m)?)
                    };
                    let all = |m| Some((sum([a, b], [ys[0], ys[1]], m)?, sum([c, d], [ys[2], ys[3]], m)?));
                    if let (Some(now), Some(then)) = (all(m), all(later))
                        && now.0 == now.1
                        && then.0 != then.1
                    {
                        found = true;
                        break;
                    }
                }
                witnessed += u32::from(found);
            }
            Err(_) => {}
        }
    }
    assert!(compared > 4000 && degrees[2] > 500 && degrees[3] > 50 && degrees[4] > 50, "{compared} {degrees:?}");
    println!("{compared} compared, degrees {degrees:?}, {witnessed} of {refused} refusals with a witness");
    assert!(refused > 500 && witnessed * 4 > refused, "{witnessed} of {refused}");
}

/// Two equations over one axis each: `m = op(|j| x[j])`, or that over the number of terms, and `l = later(|j| term)`.
struct Two {
    algorithm: Algorithm,
}

impl Two {
    /// The same where m is a weighted mean: `sum(|j| of) / sum(|j| weight)`.
    fn weighted(
        [of, weight]: [&dyn Fn(&mut Terms) -> ValueId; 2],
        term: &dyn Fn(&mut Terms, ValueId) -> ValueId,
    ) -> Result<Rule, NoChain> {
        let mut two = Self::new(Reduction::Sum, false, (Reduction::Sum, Order::Online), term);
        let mut t = Terms { algorithm: two.algorithm };
        let (of, weight) = (of(&mut t), weight(&mut t));
        let axes = Run { start: 0, len: 1 };
        let [sum, by] =
            [of, weight].map(|body| t.push(Value::Reduce { op: Reduction::Sum, order: Order::Free, axes, body }));
        t.algorithm.components.to_mut()[0].value = t.binary(Binary::Div, sum, by);
        two.algorithm = t.algorithm;
        two.chain().1.map(|chain| chain.rule)
    }

    /// `term` is made over a read of m; `divided` by that many terms.
    fn new(
        op: Reduction,
        divided: bool,
        (later, order): (Reduction, Order),
        term: &dyn Fn(&mut Terms, ValueId) -> ValueId,
    ) -> Self {
        let mut t = Terms::new();
        let x = t.read(X);
        let all = Run { start: 0, len: 1 };
        let mut first = t.push(Value::Reduce { op, order: Order::Free, axes: all, body: x });
        if divided {
            let count = t.push(Value::FromIndex(1));
            first = t.binary(Binary::Div, first, count);
        }
        let none = Run { start: 0, len: 0 };
        let source = Source::Equation { equation: 0, component: 0 };
        let m = t.push(Value::Read { source, indices: none, or: None });
        let term = term(&mut t, m);
        let ty = if matches!(later, Reduction::ArgMax | Reduction::ArgMin) { U32 } else { F32 };
        let second = super::push(&mut t.algorithm, Value::Reduce { op: later, order, axes: all, body: term }, ty);
        let mut algorithm = t.algorithm;
        let component = |name: &str, value| Component { name: name.to_owned().into(), value, parameter: None };
        algorithm.components = vec![component("m", first), component("l", second)].into();
        let equation = |start| Equation { axes: none, components: Run { start, len: 1 } };
        algorithm.equations = vec![equation(0), equation(1)].into();
        Self { algorithm }
    }

    fn chain(&self) -> (Algorithm, Result<Chain, NoChain>) {
        let mut algorithm = self.algorithm.clone();
        let found = chain(&mut algorithm, 0, 1, At::Earlier);
        (algorithm, found)
    }
}

/// A value in `f64`: `x` and `y` of the term with a number, and m as it was and as it is; 1 and 0 for what is true or
/// not.
fn number(
    algorithm: &Algorithm,
    id: ValueId,
    (at, x, y): (usize, f64, f64),
    (was, is): ((u32, f64), (u32, f64)),
) -> f64 {
    let of = |v: ValueId| number(algorithm, v, (at, x, y), (was, is));
    let truth = |is: bool| f64::from(u8::from(is));
    match algorithm.values[id as usize] {
        Value::Literal(bits) if algorithm.types[id as usize] == U32 => bits as f64,
        Value::Literal(bits) => f64::from(f32::from_bits(bits as u32)),
        Value::Variable(v) if v == was.0 => was.1,
        Value::Variable(v) if v == is.0 => is.1,
        Value::Read { source: Source::Parameter(X), .. } => x,
        Value::Read { .. } => y,
        Value::FromIndex(_) => at as f64,
        Value::Unary(Unary::Abs, a) => of(a).abs(),
        Value::Unary(_, a) => -of(a),
        Value::Binary(Binary::Sub, a, b) => of(a) - of(b),
        Value::Binary(Binary::Mul, a, b) => of(a) * of(b),
        Value::Binary(Binary::Div, a, b) => of(a) / of(b),
        Value::Binary(Binary::And, a, b) => of(a) * of(b),
        Value::Binary(Binary::Or, a, b) => of(a).max(of(b)),
        Value::Compare(op, a, b) => {
            let (a, b) = (of(a), of(b));
            truth(match op {
                Compare::Eq => a == b,
                Compare::Ne => a != b,
                Compare::Lt => a < b,
                Compare::Le => a <= b,
                Compare::Gt => a > b,
                Compare::Ge => a >= b,
            })
        }
        Value::Select(condition, a, b) => {
            if of(condition) != 0.0 {
                of(a)
            } else {
                of(b)
            }
        }
        ref other => panic!("{other:?}"),
    }
}

fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// All lists of up to four numbers, NaN and infinities among them, taken in one by one from each side of every cut and
/// merged, are what the definition says.
#[test]
fn choices_begin_anew_where_the_extreme_changes() {
    let weights = [5.0, -3.0, 2.0, 7.0];
    let numbers = [0.0, 1.0, -0.0, f64::NEG_INFINITY, f64::NAN, f64::INFINITY];
    let equal = |identity: f32| {
        move |t: &mut Terms, m: ValueId| {
            let (x, y) = (t.read(X), t.read(1));
            let other = t.literal(identity);
            let condition = super::push(&mut t.algorithm, Value::Compare(Compare::Eq, m, x), Bool);
            t.push(Value::Select(condition, y, other))
        }
    };
    let search = |t: &mut Terms, _: ValueId| t.read(X);
    type Term<'a> = &'a dyn Fn(&mut Terms, ValueId) -> ValueId;
    let (sum, product, most) = (equal(0.0), equal(1.0), equal(f32::NEG_INFINITY));
    let cases: [(Reduction, Term<'_>, f64); 4] = [
        (Reduction::Sum, &sum, 0.0),
        (Reduction::Prod, &product, 1.0),
        (Reduction::Max, &most, f64::NEG_INFINITY),
        (Reduction::ArgMax, &search, f64::from(u32::MAX)),
    ];
    for (op, term, first) in cases {
        let two = Two::new(Reduction::Max, false, (op, Order::Free), term);
        let (algorithm, found) = two.chain();
        let found = found.unwrap_or_else(|why| panic!("{op:?}: {why:?}"));
        let Rule::Choice { op: taken_by, .. } = found.rule else { panic!("{:?}", found.rule) };
        let combined = |a: f64, b: f64| match taken_by {
            Reduction::Sum => a + b,
            Reduction::Prod => a * b,
            Reduction::Max => a.max(b),
            _ => a.min(b),
        };
        let corrected = |own: f64, was: f64, is: f64| {
            let with = ((found.before, was), (found.now, is));
            if number(&algorithm, found.correction, (0, 0.0, 0.0), with) != 0.0 { own } else { first }
        };
        let take = |list: &[f64], from: usize, to: usize| {
            let (mut m, mut own) = (f64::NEG_INFINITY, first);
            for at in from..to {
                let next = larger(m, list[at]);
                own = corrected(own, m, next);
                let with = ((found.before, m), (found.now, next));
                own = combined(own, number(&algorithm, found.term, (at, list[at], weights[at]), with));
                m = next;
            }
            (m, own)
        };
        for length in 1..=4_u32 {
            for mut n in 0..numbers.len().pow(length) {
                let list: Vec<f64> = (0..length)
                    .map(|_| {
                        let number = numbers[n % numbers.len()];
                        n /= numbers.len();
                        number
                    })
                    .collect();
                let m = list.iter().copied().fold(f64::NEG_INFINITY, larger);
                let direct = if op == Reduction::ArgMax {
                    let is_it = |x: &f64| if m.is_nan() { x.is_nan() } else { *x == m };
                    list.iter().position(is_it).expect("one") as f64
                } else {
                    let all = list.iter().zip(weights).filter(|(x, _)| **x == m);
                    all.fold(first, |own, (_, y)| combined(own, y))
                };
                for cut in 0..=list.len() {
                    let (left, right) = (take(&list, 0, cut), take(&list, cut, list.len()));
                    let m = larger(left.0, right.0);
                    let merged = combined(corrected(left.1, left.0, m), corrected(right.1, right.0, m));
                    assert_eq!(merged, direct, "{op:?} of {list:?}, cut at {cut}");
                }
            }
        }
    }
}

/// What is no choice, no square of a difference from a mean, and no sum of quotients.
#[test]
#[expect(clippy::too_many_lines, reason = "a list")]
fn what_has_no_rule_is_refused() {
    let found = |op, divided, later, term: &dyn Fn(&mut Terms, ValueId) -> ValueId| {
        Two::new(op, divided, later, term).chain().1.map(|chain| chain.rule)
    };
    let (free, online) = (Order::Free, Order::Online);
    let choice = |compare: Compare, identity: f32| {
        move |t: &mut Terms, m: ValueId| {
            let (x, y, other) = (t.read(X), t.read(1), t.literal(identity));
            let condition = super::push(&mut t.algorithm, Value::Compare(compare, x, m), Bool);
            t.push(Value::Select(condition, y, other))
        }
    };
    let is = |rule: Result<Rule, NoChain>| matches!(rule, Ok(Rule::Choice { .. }));
    assert!(is(found(Reduction::Max, false, (Reduction::Sum, free), &choice(Compare::Eq, 0.0))));
    assert!(is(found(Reduction::Max, false, (Reduction::Sum, free), &choice(Compare::Ge, 0.0))));
    assert!(is(found(Reduction::Min, false, (Reduction::Sum, free), &choice(Compare::Le, 0.0))));
    assert!(!is(found(Reduction::Min, false, (Reduction::Sum, free), &choice(Compare::Ge, 0.0))));
    assert!(!is(found(Reduction::Max, false, (Reduction::Sum, free), &choice(Compare::Lt, 0.0))));
    assert!(!is(found(Reduction::Max, false, (Reduction::Sum, free), &choice(Compare::Eq, 1.0))), "other terms count");
    assert!(!is(found(Reduction::Max, false, (Reduction::Sum, free), &choice(Compare::Eq, -0.0))), "-0 + -0 is -0");
    assert!(!is(found(Reduction::Sum, false, (Reduction::Sum, free), &choice(Compare::Eq, 0.0))), "no extreme");
    let search = |t: &mut Terms, _: ValueId| t.read(X);
    let other = |t: &mut Terms, _: ValueId| t.read(1);
    assert!(matches!(found(Reduction::Max, false, (Reduction::ArgMin, free), &search), Err(NoChain::Search(_))));
    assert!(matches!(found(Reduction::Max, false, (Reduction::ArgMax, free), &other), Err(NoChain::Search(_))));
    // Squares.
    let power = |count: u32| {
        move |t: &mut Terms, m: ValueId| {
            let x = t.read(X);
            let d = t.binary(Binary::Sub, x, m);
            (1..count).fold(d, |all, _| t.binary(Binary::Mul, all, d))
        }
    };
    let of_mean =
        |term: &dyn Fn(&mut Terms, ValueId) -> ValueId| found(Reduction::Sum, true, (Reduction::Sum, online), term);
    assert_eq!(of_mean(&power(2)), Ok(Rule::Squares { weights: None }));
    assert!(matches!(of_mean(&power(3)), Err(NoChain::Square(_))), "it needs the sum of squares");
    assert!(matches!(of_mean(&power(1)), Err(NoChain::Outside(_, Outside::Sum))), "it is 0");
    assert!(
        matches!(found(Reduction::Sum, false, (Reduction::Sum, online), &power(2)), Err(NoChain::Square(_))),
        "the sum is no mean"
    );
    assert!(matches!(found(Reduction::Sum, true, (Reduction::Sum, free), &power(2)), Err(NoChain::NotOnline(_))));
    let weighted = |t: &mut Terms, m: ValueId| {
        let (x, y) = (t.read(X), t.read(1));
        let d = t.binary(Binary::Sub, x, m);
        let square = t.binary(Binary::Mul, d, d);
        t.binary(Binary::Mul, y, square)
    };
    let refused = of_mean(&weighted);
    assert!(matches!(refused, Err(NoChain::Obstacle(o)) if o.why == Why::Beside), "{refused:?}");
    // With weights.
    let size = |t: &mut Terms| {
        let y = t.read(1);
        t.push(Value::Unary(Unary::Abs, y))
    };
    let sized = |t: &mut Terms| {
        let (w, x) = (size(t), t.read(X));
        t.binary(Binary::Mul, w, x)
    };
    let square = |t: &mut Terms, m: ValueId| {
        let (w, d) = (size(t), power(2)(t, m));
        t.binary(Binary::Mul, w, d)
    };
    let has_weights = |rule: &Result<Rule, NoChain>| matches!(rule, Ok(Rule::Squares { weights: Some(_) }));
    assert!(has_weights(&Two::weighted([&sized, &size], &square)));
    let chained = |t: &mut Terms, m: ValueId| {
        let (w, x) = (size(t), t.read(X));
        let d = t.binary(Binary::Sub, m, x);
        let once = t.binary(Binary::Mul, d, w);
        t.binary(Binary::Mul, once, d)
    };
    assert!(has_weights(&Two::weighted([&sized, &size], &chained)));
    let plain = |t: &mut Terms| t.read(1);
    let weighted_by = |t: &mut Terms| {
        let (w, x) = (t.read(1), t.read(X));
        t.binary(Binary::Mul, x, w)
    };
    let refused = Two::weighted([&weighted_by, &plain], &weighted);
    assert!(matches!(refused, Err(NoChain::Negative(_))), "{refused:?}");
    let refused = Two::weighted([&sized, &size], &power(2));
    assert!(matches!(refused, Err(NoChain::Obstacle(o)) if o.why == Why::Weight), "{refused:?}");
    let twice = |t: &mut Terms, m: ValueId| {
        let (w, term) = (size(t), square(t, m));
        t.binary(Binary::Mul, w, term)
    };
    let refused = Two::weighted([&sized, &size], &twice);
    assert!(matches!(refused, Err(NoChain::Obstacle(o)) if o.why == Why::Weight), "{refused:?}");
    let cube = |t: &mut Terms, m: ValueId| {
        let (w, d) = (size(t), power(3)(t, m));
        t.binary(Binary::Mul, w, d)
    };
    assert!(matches!(Two::weighted([&sized, &size], &cube), Err(NoChain::Square(_))), "it needs the sum of squares");
    let other = |t: &mut Terms| t.read(X);
    assert!(matches!(Two::weighted([&other, &size], &square), Err(NoChain::NotExtreme)), "the sum has no weights");
    // Quotients.
    let quotient = |absolute: bool, count: u32| {
        move |t: &mut Terms, m: ValueId| {
            let mut x = t.read(X);
            if absolute {
                x = t.push(Value::Unary(Unary::Abs, x));
            }
            let q = t.binary(Binary::Div, x, m);
            (1..count).fold(q, |all, _| t.binary(Binary::Mul, all, q))
        }
    };
    // m is the largest x here, and no magnitude.
    assert!(matches!(
        found(Reduction::Max, false, (Reduction::Sum, online), &quotient(false, 2)),
        Err(NoChain::Shape(_))
    ));
}

/// A sum of squares in `f32` as kernels compute it.
#[derive(Clone, Copy)]
struct Part {
    sum: f32,
    count: u32,
    squares: f32,
}

impl Part {
    fn mean(self) -> f32 {
        self.sum / self.count as f32
    }

    fn corrected(self, to: f32) -> f32 {
        if self.count == 0 {
            return self.squares + 0.0;
        }
        let d = self.mean() - to;
        self.squares + self.count as f32 * (d * d)
    }
}

impl Partial for Part {
    type Term = f32;
    const NOTHING: Self = Self { sum: 0.0, count: 0, squares: 0.0 };

    fn take(self, block: &[f32]) -> Self {
        let sum = block.iter().fold(self.sum, |sum, x| sum + x);
        let next = Self { sum, count: self.count + block.len() as u32, squares: 0.0 };
        let mean = next.mean();
        let squares = block.iter().fold(self.corrected(mean), |all, x| all + (x - mean) * (x - mean));
        Self { squares, ..next }
    }

    fn merge(self, other: Self) -> Self {
        let next = Self { sum: self.sum + other.sum, count: self.count + other.count, squares: 0.0 };
        if next.count == 0 {
            return next;
        }
        let mean = next.mean();
        Self { squares: self.corrected(mean) + other.corrected(mean), ..next }
    }
}

/// A part of a reduction: of some terms, as a kernel combines them.
trait Partial: Copy {
    type Term;
    const NOTHING: Self;
    /// With a block of terms.
    fn take(self, block: &[Self::Term]) -> Self;
    fn merge(self, other: Self) -> Self;

    /// A random order: blocks of terms, one after the other, and merges of such parts.
    fn reduced(data: &[Self::Term], random: &mut Random) -> Self {
        if data.len() < 4 || random.below(3) == 0 {
            let (mut part, mut rest) = (Self::NOTHING, data);
            while !rest.is_empty() {
                let count = 1 + random.below(rest.len().min(9) as u64) as usize;
                part = part.take(&rest[..count]);
                rest = &rest[count..];
            }
            return part;
        }
        let cut = random.below(data.len() as u64 + 1) as usize;
        Self::reduced(&data[..cut], random).merge(Self::reduced(&data[cut..], random))
    }
}

/// Sums of weighted squares in `f32` as kernels compute them: the sum, that of the weights, the squares.
#[derive(Clone, Copy)]
struct Weighted([f32; 3]);

impl Weighted {
    fn mean(self) -> f32 {
        let Self([sum, weights, _]) = self;
        if weights == 0.0 { 0.0 } else { sum / weights }
    }

    fn corrected(self, to: f32) -> f32 {
        let Self([_, weights, squares]) = self;
        let d = self.mean() - to;
        squares + if weights == 0.0 { 0.0 } else { weights * (d * d) }
    }
}

impl Partial for Weighted {
    type Term = [f32; 2];
    const NOTHING: Self = Self([0.0; 3]);

    fn take(self, block: &[[f32; 2]]) -> Self {
        let Self([sum, weights, _]) = self;
        let sum = block.iter().fold(sum, |sum, [x, w]| sum + w * x);
        let weights = block.iter().fold(weights, |weights, [_, w]| weights + w);
        let mean = Self([sum, weights, 0.0]).mean();
        let square = |all: f32, [x, w]: &[f32; 2]| all + w * ((x - mean) * (x - mean));
        Self([sum, weights, block.iter().fold(self.corrected(mean), square)])
    }

    fn merge(self, other: Self) -> Self {
        let (Self(a), Self(b)) = (self, other);
        let mut next = Self([a[0] + b[0], a[1] + b[1], 0.0]);
        next.0[2] = self.corrected(next.mean()) + other.corrected(next.mean());
        next
    }
}

/// The same with weights, which may be 0, tiny, or far apart.
#[test]
fn roundings_of_weighted_squares_are_bounded() {
    let mut random = Random(0x00C0_FFEE_0DDB_A115);
    let (mut closest, mut unpromised): (f64, u32) = (0.0, 0);
    for round in 0..8000 {
        let n = 1 + random.below([3, 20, 300][round % 3]) as usize;
        let shift = [0.0, 1.0, 100.0, 1.0e4, 1.0e6][random.below(5) as usize];
        let (spread, scale) = (random.below(5), [1.0, 1.0, 1.0e-20, 1.0e15][random.below(4) as usize]);
        let mut unit = || random.below(1 << 20) as f32 / (1 << 20) as f32;
        let mut draw = || {
            let weight = match spread {
                0 => 1.0,
                1 => unit(),
                2 => {
                    if unit() < 0.5 {
                        0.0
                    } else {
                        1.0
                    }
                }
                3 => (unit() * 60.0 - 30.0).exp2(),
                _ => f32::from_bits((unit() * 9.0) as u32),
            };
            [(shift + unit() - 0.5) * scale, weight]
        };
        let data: Vec<[f32; 2]> = (0..n).map(|_| draw()).collect();
        let part = Weighted::reduced(&data, &mut random);
        let mean = f64::from(part.mean());
        let wide = |[x, w]: &[f32; 2]| [f64::from(*x), f64::from(*w)];
        let squares: f64 = data.iter().map(wide).map(|[x, w]| w * (x - mean) * (x - mean)).sum();
        let weights: f64 = data.iter().map(wide).map(|[_, w]| w).sum();
        let most = data.iter().map(wide).map(|[x, _]| x.abs()).fold(0.0, f64::max);
        // What is infinite in the end is looked at where sums are: `tilewright::reference`.
        let promised = weighted_loss(F32, n as u64, [weights, most, squares]);
        let Some(bound) = promised.filter(|_| squares < f64::from(f32::MAX) / 2.0) else {
            unpromised += 1;
            continue;
        };
        let off = (f64::from(part.0[2]) - squares).abs();
        assert!(off <= bound, "{off} > {bound}: {squares} of {data:?}");
        if squares > 1.0e-30 {
            closest = closest.max(off / bound);
        }
    }
    println!("the closest one has {closest} of the bound; of {unpromised} nothing is promised");
    assert!(closest > 0.005 && unpromised < 1000, "{closest} {unpromised}");
}

/// No order of terms is off by more than the bound, and some come near enough that it is worth something.
#[test]
fn roundings_of_squares_are_bounded() {
    let mut random = Random(0x0DDB_1A5E_5BAD_5EED);
    let mut closest: f64 = 0.0;
    for round in 0..6000 {
        let n = 1 + random.below([3, 20, 300][round % 3]) as usize;
        let (shift, size) = ([0.0, 1.0, 100.0, 1.0e4, 1.0e6][random.below(5) as usize], random.below(4));
        let mut draw = || {
            let unit = random.below(1 << 20) as f32 / (1 << 20) as f32 - 0.5;
            match size {
                0 => shift + unit,
                1 => shift * unit,
                2 => shift + if unit > 0.45 { 1000.0 } else { 0.0 },
                _ => (shift + unit) * 1.0e-21,
            }
        };
        let data: Vec<f32> = (0..n).map(|_| draw()).collect();
        let part = Part::reduced(&data, &mut random);
        let mean = f64::from(part.mean());
        let exact: f64 = data.iter().map(|x| (f64::from(*x) - mean) * (f64::from(*x) - mean)).sum();
        let magnitude: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
        let bound = squares_loss(F32, n as u64, magnitude, exact).expect("a type");
        let off = (f64::from(part.squares) - exact).abs();
        assert!(off <= bound, "{off} > {bound}: {exact} of {data:?}");
        if exact > 1.0e-30 {
            closest = closest.max(off / bound);
        }
    }
    assert!(closest > 0.02, "{closest}");
}

/// One pass over multiples of exponentials that are rounded to a narrower type, by random blocks, against the sums of
/// these multiples with the last extreme. What is promised is needed: nothing less than the part of underflow would do.
#[test]
fn roundings_of_narrowed_multiples_are_bounded() {
    let mut random = Random(11);
    for (to, scale) in [(E4m3, 1.0), (E4m3, 256.0), (E4m3, 0.015625), (E5m2, 1.0), (E5m2, 20480.0), (F16, 32768.0)] {
        let format = Format::of(to).expect("a format");
        let rounded = |x: f32| format.value(format.from_f64(x.into())) as f32;
        let casts = vec![Narrowed { to, scale }];
        let of = Exponential { function: Unary::Exp, steps: 3, scales: 1, fused: None, casts };
        let (mut most, mut beyond) = (0.0_f64, 0_u32);
        for _ in 0..500 {
            let n = 1 + random.below(40) as usize;
            let spread = [1.0, 8.0, 30.0][random.below(3) as usize];
            let mut draw = || (random.below(2001) as f32 / 1000.0 - 1.0) * spread;
            // Terms whose score is far below that of the others have the weight.
            let mut terms: Vec<(f32, f32)> =
                (0..n).map(|_| draw()).map(|u| (u, if u < 0.0 { 512.0 } else { 0.5 })).collect();
            // One of them that is about to vanish, which no other one makes up for.
            if random.below(4) == 0 {
                terms = vec![(0.0, 0.5), (-(random.below(8000) as f32) / 1000.0, 512.0)];
            }
            let (mut m, mut sum) = (f32::NEG_INFINITY, 0.0_f32);
            let mut rest = &terms[..];
            while !rest.is_empty() {
                let (block, after) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
                let last = block.iter().fold(m, |m, term| m.max(term.0));
                sum *= if m == f32::NEG_INFINITY { 1.0 } else { (m - last).exp() };
                sum += block.iter().map(|(u, y)| rounded(scale as f32 * (u - last).exp()) * y).sum::<f32>();
                (m, rest) = (last, after);
            }
            let exact = |(u, y): &(f32, f32)| scale * (f64::from(*u) - f64::from(m)).exp() * f64::from(*y);
            let size: f64 = terms.iter().map(exact).sum();
            let weights: f64 = terms.iter().map(|term| scale * f64::from(term.1)).sum();
            let loss = loss(&of, F32, n as u64).expect("a type");
            let off = (f64::from(sum) - size).abs();
            let bound = loss.relative * size + loss.underflow * weights;
            assert!(off <= bound, "{to} {scale}: {off} of {bound} for {terms:?}");
            most = most.max(off / bound);
            beyond += u32::from(off > loss.relative * size);
        }
        assert!(most > 0.01, "{to} {scale}: {most}");
        assert!(beyond > 0 || to != E4m3 || scale > 1.0, "{to} {scale}: underflow is never needed");
    }
}
