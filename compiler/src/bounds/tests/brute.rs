//! Verdicts against enumeration: random kernels, with an oracle that evaluates the generator's own expressions.

use std::fmt::Write as _;

use super::super::walk::{Given, walk};
use super::super::{admitting_empty, report};
use crate::diag::Diagnostics;
use crate::extent::{Facts, Verdict};
use crate::program::build;
use crate::source::TokenBuffer;
use crate::syntax::parse;

/// Sizes up to this sum are enumerated.
const SUM: i128 = 14;

/// A small generator; the same cases on every run.
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub fn between(&mut self, low: i128, high: i128) -> i128 {
        low + i128::from(self.below(u64::try_from(high - low + 1).expect("low <= high")))
    }
}

/// N, M, i, k
type Env = [i128; 4];

/// A fact as text and as a test.
type Fact = (&'static str, fn(&Env) -> bool);

#[derive(Clone, Debug)]
enum E {
    Lit(i128),
    Var(usize),
    Add(Box<E>, Box<E>),
    Sub(Box<E>, Box<E>),
    Mul(i128, Box<E>),
    Div(Box<E>, i128),
    Mod(Box<E>, i128),
    Min(Box<E>, Box<E>),
    Max(Box<E>, Box<E>),
}

impl E {
    fn eval(&self, env: &Env) -> i128 {
        match self {
            E::Lit(c) => *c,
            E::Var(v) => env[*v],
            E::Add(a, b) => a.eval(env) + b.eval(env),
            E::Sub(a, b) => a.eval(env) - b.eval(env),
            E::Mul(c, a) => c * a.eval(env),
            E::Div(a, d) => a.eval(env).div_euclid(*d),
            E::Mod(a, d) => a.eval(env).rem_euclid(*d),
            E::Min(a, b) => a.eval(env).min(b.eval(env)),
            E::Max(a, b) => a.eval(env).max(b.eval(env)),
        }
    }

    fn text(&self) -> String {
        match self {
            E::Lit(c) => c.to_string(),
            E::Var(v) => ["N", "M", "i", "k"][*v].to_owned(),
            E::Add(a, b) => format!("({} + {})", a.text(), b.text()),
            E::Sub(a, b) => format!("({} - {})", a.text(), b.text()),
            E::Mul(c, a) => format!("{c} * {}", a.text()),
            E::Div(a, d) => format!("({} / {d})", a.text()),
            E::Mod(a, d) => format!("({} % {d})", a.text()),
            E::Min(a, b) => format!("min({}, {})", a.text(), b.text()),
            E::Max(a, b) => format!("max({}, {})", a.text(), b.text()),
        }
    }

    /// A sum over these variables, with a quotient now and then.
    fn random(random: &mut Random, vars: &[usize]) -> E {
        let mut sum = match random.below(4) {
            0 => E::Lit(random.between(0, 3)),
            _ => E::Var(vars[random.below(vars.len() as u64) as usize]),
        };
        for _ in 0..random.below(3) {
            let v = E::Var(vars[random.below(vars.len() as u64) as usize]);
            sum = match random.below(9) {
                0 => E::Add(Box::new(sum), Box::new(E::Mul(random.between(1, 3), Box::new(v)))),
                1 => E::Sub(Box::new(sum), Box::new(v)),
                2 => E::Add(Box::new(sum), Box::new(E::Lit(random.between(0, 2)))),
                3 => E::Sub(Box::new(sum), Box::new(E::Lit(random.between(0, 2)))),
                4 => E::Div(Box::new(sum), random.between(2, 4)),
                5 => E::Min(Box::new(sum), Box::new(v)),
                6 => E::Max(Box::new(sum), Box::new(E::Lit(random.between(0, 3)))),
                7 => E::Min(Box::new(E::Sub(Box::new(v), Box::new(E::Lit(1)))), Box::new(sum)),
                _ => E::Mod(Box::new(sum), random.between(2, 4)),
            };
        }
        sum
    }
}

#[derive(Clone, Debug)]
enum Cond {
    Cmp(E, usize, E),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
}

impl Cond {
    fn eval(&self, env: &Env) -> bool {
        match self {
            Cond::Cmp(a, op, b) => {
                let (a, b) = (a.eval(env), b.eval(env));
                [a < b, a <= b, a > b, a >= b, a == b, a != b][*op]
            }
            Cond::And(a, b) => a.eval(env) && b.eval(env),
            Cond::Or(a, b) => a.eval(env) || b.eval(env),
            Cond::Not(a) => !a.eval(env),
        }
    }

    fn text(&self) -> String {
        match self {
            Cond::Cmp(a, op, b) => format!("{} {} {}", a.text(), ["<", "<=", ">", ">=", "==", "!="][*op], b.text()),
            Cond::And(a, b) => format!("({} && {})", a.text(), b.text()),
            Cond::Or(a, b) => format!("({} || {})", a.text(), b.text()),
            Cond::Not(a) => format!("!({})", a.text()),
        }
    }

    fn random(random: &mut Random, vars: &[usize], depth: u64) -> Cond {
        match random.below(4 + depth) {
            4 => Cond::And(Box::new(Cond::random(random, vars, 0)), Box::new(Cond::random(random, vars, 0))),
            5 => Cond::Or(Box::new(Cond::random(random, vars, 0)), Box::new(Cond::random(random, vars, 0))),
            6 => Cond::Not(Box::new(Cond::random(random, vars, 2))),
            _ => {
                // A comparison of indices mentions an axis.
                let axis = E::Var(vars[vars.len() - 1]);
                let a = if random.below(3) == 0 { E::Mod(Box::new(axis), random.between(2, 4)) } else { axis };
                Cond::Cmp(a, random.below(6) as usize, E::random(random, &[0, 1, vars[0]]))
            }
        }
    }
}

/// A kernel with one read of `x`, at `index`, and everything around it.
#[derive(Debug)]
struct Case {
    facts: Vec<Fact>,
    size: E,
    extent: E,
    /// The range of `k`, which may depend on `i`.
    range: Option<(E, E)>,
    condition: Option<Cond>,
    /// The index of `x`, over `i` and `k`; through an intermediate, over its axis, which is called `i` too.
    index: E,
    /// An intermediate, read at this index: with this extent and `or 0.0`, or with an inferred domain.
    through: Option<(Option<E>, E)>,
}

const FACTS: [Fact; 6] = [
    ("M <= N", |e| e[1] <= e[0]),
    ("N % 2 == 0", |e| e[0] % 2 == 0),
    ("N >= 3", |e| e[0] >= 3),
    ("N <= 5", |e| e[0] <= 5),
    ("N == 2 * M", |e| e[0] == 2 * e[1]),
    ("M % 3 == 1", |e| e[1] % 3 == 1),
];

impl Case {
    fn random(random: &mut Random) -> Case {
        let size = |random: &mut Random| {
            let base = E::Var(random.below(2) as usize);
            match random.below(7) {
                0 => E::Lit(random.between(1, 6)),
                1 => E::Add(Box::new(base), Box::new(E::Lit(random.between(1, 3)))),
                2 => E::Mul(2, Box::new(base)),
                3 => E::Add(Box::new(E::Div(Box::new(base), 2)), Box::new(E::Lit(1))),
                4 => E::Add(Box::new(E::Var(0)), Box::new(E::Var(1))),
                _ => base,
            }
        };
        let mut facts = Vec::new();
        for fact in FACTS {
            if random.below(5) == 0 {
                facts.push(fact);
            }
        }
        let through = (random.below(3) == 0).then(|| {
            let extent = (random.below(2) == 0).then(|| size(random));
            (extent, E::random(random, &[2]))
        });
        let range = (through.is_none() && random.below(2) == 0).then(|| {
            let low = if random.below(3) == 0 { E::Var(2) } else { E::Lit(random.between(0, 1)) };
            let high = if random.below(3) == 0 {
                E::Add(Box::new(E::Var(2)), Box::new(E::Lit(random.between(1, 2))))
            } else {
                size(random)
            };
            (low, high)
        });
        let vars: &[usize] = if range.is_some() { &[2, 3] } else { &[2] };
        let condition = (random.below(2) == 0).then(|| Cond::random(random, vars, 3));
        let index = E::random(random, vars);
        Case { facts, size: size(random), extent: size(random), range, condition, index, through }
    }

    fn text(&self) -> String {
        let mut out =
            format!("kernel K(n: f32[N], m: f32[M], x: f32[{}]) -> (y: f32[{}])", self.size.text(), self.extent.text());
        let facts: Vec<&str> = self.facts.iter().map(|f| f.0).collect();
        if !facts.is_empty() {
            write!(out, " where {}", facts.join(", ")).expect("strings take everything");
        }
        let mut read = format!("x[{}]", self.index.text());
        out += " { ";
        if let Some((extent, index)) = &self.through {
            let domain = extent.as_ref().map_or(String::new(), |e| format!(" in 0..{}", e.text()));
            write!(out, "t[i{domain}] = {read}; ").expect("strings take everything");
            let or = if extent.is_some() { " or 0.0" } else { "" };
            read = format!("t[{}]{or}", index.text());
        }
        if let Some(condition) = &self.condition {
            read = format!("if {} {{ {read} }} else {{ 0.0 }}", condition.text());
        }
        if let Some((low, high)) = &self.range {
            read = format!("sum(|k in {}..{}| {read})", low.text(), high.text());
        }
        out + &format!("y[i] = {read}; }}")
    }

    /// The first axes for which `x` is read outside, for these sizes.
    fn fails(&self, n: i128, m: i128) -> Option<Vec<i128>> {
        for i in 0..self.extent.eval(&[n, m, 0, 0]) {
            let (low, high) = match &self.range {
                Some((low, high)) => (low.eval(&[n, m, i, 0]), high.eval(&[n, m, i, 0])),
                None => (0, 1),
            };
            for k in low..high {
                let env = [n, m, i, k];
                if self.condition.as_ref().is_some_and(|c| !c.eval(&env)) {
                    continue;
                }
                let index = match &self.through {
                    Some((extent, index)) => {
                        let t = index.eval(&env);
                        if extent.as_ref().is_some_and(|e| !(0..e.eval(&env)).contains(&t)) {
                            continue;
                        }
                        self.index.eval(&[n, m, t, 0])
                    }
                    None => self.index.eval(&env),
                };
                if !(0..self.size.eval(&env)).contains(&index) {
                    return Some(if self.range.is_some() { vec![i, k] } else { vec![i] });
                }
            }
        }
        None
    }

    /// The smallest failing sizes and axes within the sum.
    fn oracle(&self) -> Option<(Vec<i64>, Vec<i128>)> {
        for sum in 2..=SUM {
            for n in 1..sum {
                let m = sum - n;
                if self.facts.iter().any(|f| !(f.1)(&[n, m, 0, 0])) {
                    continue;
                }
                if let Some(axes) = self.fails(n, m) {
                    return Some((vec![n as i64, m as i64], axes));
                }
            }
        }
        None
    }
}

#[test]
fn verdicts_agree_with_enumeration() {
    let mut random = Random(1);
    let (mut proved, mut refuted, mut undecided_right, mut undecided_wrong) = (0, 0, 0, 0);
    for _ in 0..4500 {
        let case = Case::random(&mut random);
        let source = case.text();
        let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
        let (parsed, mut diags) = parse(&tokens);
        assert!(diags.is_empty(), "{source}");
        let Some(program) = build(&parsed.kernels[0], &mut diags) else { continue };
        let constraints: Vec<_> = program.facts.iter().map(|f| f.constraint.clone()).collect();
        let Ok(facts) = Facts::new(&program.dims, &constraints) else { continue };
        let with_empty = admitting_empty(&program, &[]).expect("more sizes are admitted");
        let given = Given { facts: &facts, with_empty: &with_empty };
        let found = walk(&program, given);
        // Reads of an intermediate are never outside an inferred domain: what is left is the read of `x`.
        let verdicts = found.failures.values().map(|places| report::decide(&program, given, places, 20_000));
        let verdict = verdicts.into_iter().find(|v| !v.is_proved()).unwrap_or(Verdict::Proved);
        match (verdict, case.oracle()) {
            (Verdict::Proved, None) => proved += 1,
            (Verdict::Proved, Some(failure)) => panic!("accepted {source}, which fails at {failure:?}"),
            (Verdict::Refuted((_, witness)), oracle) => {
                let axes: Vec<i128> = witness.axes.iter().map(|a| a.1).collect();
                match oracle {
                    Some(oracle) => assert_eq!((witness.dims, axes), oracle, "{source}"),
                    None => {
                        let (n, m) = (i128::from(witness.dims[0]), i128::from(witness.dims[1]));
                        assert!(n + m > SUM, "{source}: {witness:?} is not a failure");
                        assert_eq!(case.fails(n, m), Some(axes), "{source}");
                    }
                }
                refuted += 1;
                // The words must come out too.
                let mut words = Diagnostics::new();
                report::report(&program, given, &found.failures, &mut words);
                assert!(words.has_errors(), "{source}");
            }
            (Verdict::Undecided, None) => {
                undecided_right += 1;
                println!("undecided, no failure in range: {source}");
            }
            (Verdict::Undecided, Some(_)) => {
                undecided_wrong += 1;
                println!("undecided, although it fails: {source}");
            }
        }
    }
    println!("{proved} proved, {refuted} refuted, {undecided_right} undecided, {undecided_wrong} failures not found");
    assert!(proved > 1500 && refuted > 1500, "{proved} proved, {refuted} refuted");
    assert_eq!(undecided_wrong, 0, "a failure within a sum of {SUM} is always found");
    assert!(undecided_right <= 12, "{undecided_right} undecided: this number may only fall");
}
