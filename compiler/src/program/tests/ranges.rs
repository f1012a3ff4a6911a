//! Inferred ranges against enumeration: what the readers really demand, for all small sizes.

use proptest::prelude::*;
use tilewright_kernel::algorithm::{AxisId, Index, IndexId};

use super::super::Program;
use super::{accepted, kernel, run};

/// The value of an index for given dimensions; its axes take the values given.
fn eval(program: &Program, id: IndexId, dims: &[i64], axis: &dyn Fn(AxisId) -> i64) -> i64 {
    let of = |id| eval(program, id, dims, axis);
    match program.algorithm.indices[id as usize] {
        Index::Literal(c) => c,
        Index::Dim(d) => dims[usize::from(d)],
        Index::Axis(a) => axis(a),
        Index::Value(_) => unreachable!("no gathers here"),
        Index::Add(a, b) => of(a) + of(b),
        Index::Sub(a, b) => of(a) - of(b),
        Index::Mul(a, b) => of(a) * of(b),
        Index::Div(a, b) => of(a).div_euclid(of(b)),
        Index::Mod(a, b) => of(a).rem_euclid(of(b)),
        Index::Min(a, b) => of(a).min(of(b)),
        Index::Max(a, b) => of(a).max(of(b)),
    }
}

/// Range of the only axis of the equation that defines `name`.
fn range(program: &Program, name: &str, dims: &[i64]) -> (i64, i64) {
    let (equation, _) = program.equation(name).expect("it is defined");
    let axes = program.algorithm.equations[usize::from(equation)].axes;
    let axis = &program.algorithm.axes[program.algorithm.axis_lists[axes.range()][0] as usize];
    let bound = |id| eval(program, id, dims, &|_| unreachable!("bounds of equations have no axes"));
    (bound(axis.lower), bound(axis.upper))
}

/// Σ of a few terms: coefficients of i and j, a constant, and a multiple of N.
#[derive(Clone, Copy, Debug)]
struct Affine {
    i: i64,
    j: i64,
    n: i64,
    c: i64,
}

impl Affine {
    fn text(self) -> String {
        format!("({} * i + {} * j + {} * N + {})", self.i, self.j, self.n, self.c)
    }

    fn at(self, i: i64, j: i64, n: i64) -> i64 {
        self.i * i + self.j * j + self.n * n + self.c
    }
}

/// What is done with it.
#[derive(Clone, Copy, Debug)]
enum Wrap {
    Nothing,
    Div(i64),
    Mod(i64),
    ThenScaled(i64, i64),
}

/// The condition around the read.
#[derive(Clone, Copy, Debug)]
enum Guard {
    None,
    AtLeast(i64),
    BelowEnd(i64),
    Triangle,
    Not(i64),
}

fn affine() -> impl Strategy<Value = Affine> {
    (-3..4_i64, -3..4_i64, -1..2_i64, -5..6_i64).prop_map(|(i, j, n, c)| Affine { i, j, n, c })
}

fn wrap() -> impl Strategy<Value = Wrap> {
    prop_oneof![
        Just(Wrap::Nothing),
        (1..5_i64).prop_map(Wrap::Div),
        (1..5_i64).prop_map(Wrap::Mod),
        (1..5_i64, -3..4_i64).prop_map(|(d, s)| Wrap::ThenScaled(d, s)),
    ]
}

fn guard() -> impl Strategy<Value = Guard> {
    prop_oneof![
        Just(Guard::None),
        (0..3_i64).prop_map(Guard::AtLeast),
        (0..3_i64).prop_map(Guard::BelowEnd),
        Just(Guard::Triangle),
        (0..3_i64).prop_map(Guard::Not),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn demanded_ranges_cover_what_is_read(form in affine(), wrap in wrap(), guard in guard()) {
        let read = match wrap {
            Wrap::Nothing => form.text(),
            Wrap::Div(d) => format!("{} / {d}", form.text()),
            Wrap::Mod(d) => format!("{} % {d}", form.text()),
            Wrap::ThenScaled(d, s) => format!("{} / {d} * {s} + i", form.text()),
        };
        let condition = match guard {
            Guard::None => "true".to_owned(),
            Guard::AtLeast(c) => format!("i >= {c}"),
            Guard::BelowEnd(c) => format!("j < M - {c}"),
            Guard::Triangle => "j <= i && i < N".to_owned(),
            Guard::Not(c) => format!("!(i < {c} || j > 3)"),
        };
        let source = kernel(
            "() -> (y: f32[N, M]) where N >= 1, M >= 1",
            &format!("b[k] = 1.0f32; y[i, j] = if {condition} {{ b[{read}] }} else {{ 0.0 }};"),
        );
        let (program, findings) = run(&source);
        let Some(program) = program else {
            // Only ranges that depend on more than the sign of a size's coefficient may be refused.
            prop_assert!(findings.contains("TW0113"), "{findings}");
            prop_assert!(!matches!((wrap, guard), (Wrap::Nothing, Guard::None)), "{findings}");
            return Ok(());
        };
        for n in 1..7 {
            for m in 1..7 {
                let (lower, upper) = range(&program, "b", &[n, m]);
                let mut demanded: Option<(i64, i64)> = None;
                for i in 0..n {
                    for j in 0..m {
                        let holds = match guard {
                            Guard::None => true,
                            Guard::AtLeast(c) => i >= c,
                            Guard::BelowEnd(c) => j < m - c,
                            Guard::Triangle => j <= i && i < n,
                            Guard::Not(c) => !(i < c || j > 3),
                        };
                        if !holds {
                            continue;
                        }
                        let at = form.at(i, j, n);
                        let at = match wrap {
                            Wrap::Nothing => at,
                            Wrap::Div(d) => at.div_euclid(d),
                            Wrap::Mod(d) => at.rem_euclid(d),
                            Wrap::ThenScaled(d, s) => at.div_euclid(d) * s + i,
                        };
                        demanded = Some(demanded.map_or((at, at), |(a, b)| (a.min(at), b.max(at))));
                    }
                }
                let Some((least, greatest)) = demanded else { continue };
                prop_assert!(lower <= least && greatest < upper, "{source}: {lower}..{upper} at N = {n}, M = {m}");
                if matches!((wrap, guard), (Wrap::Nothing | Wrap::Div(_), Guard::None)) {
                    prop_assert_eq!((lower, upper), (least, greatest + 1), "{} at N = {}, M = {}", source, n, m);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A fact more never makes a range harder to infer, and never moves one that shows in a result.
    #[test]
    fn facts_only_help(
        reads in prop::collection::vec((-3..4_i64, -1..2_i64, guard()), 1..4),
        observed in prop::bool::ANY,
        facts in prop::collection::vec(0..7_usize, 0..3),
        more in 0..7_usize,
    ) {
        const FACTS: [&str; 7] = ["N % 4 == 0", "M >= 3", "N >= 5", "M <= N", "N == 8", "M % 3 == 0", "N <= 40"];
        let terms: Vec<String> = (reads.iter())
            .map(|(c, n, guard)| {
                let read = format!("b[i + {n} * N + {c}]");
                let condition = match guard {
                    Guard::None => return read,
                    Guard::AtLeast(c) => format!("i >= {c}"),
                    Guard::BelowEnd(c) => format!("i < N - {c}"),
                    Guard::Triangle => "i <= M - 1".to_owned(),
                    Guard::Not(c) => format!("!(i < N - {c})"),
                };
                format!("(if {condition} {{ {read} }} else {{ 0.0 }})")
            })
            .collect();
        let value = terms.join(" + ") + if observed { " + (b[2 * i] or 1.0)" } else { "" };
        let with = |facts: &[usize]| {
            let list: Vec<&str> = facts.iter().map(|f| FACTS[*f]).collect();
            let list = if list.is_empty() { String::new() } else { format!("where {}", list.join(", ")) };
            let rest = format!("b[k] = 1.0f32; y[i] = {value}; w[j] = 1.0;");
            run(&kernel(&format!("() -> (y: f32[N], w: f32[M]) {list}"), &rest))
        };
        let (before, _) = with(&facts);
        let mut all = facts.clone();
        all.push(more);
        let (after, findings) = with(&all);
        let Some(before) = before else { return Ok(()) };
        let Some(after) = after else {
            prop_assert!(!findings.contains("TW0113"), "{} with {:?} and {}: {findings}", value, facts, FACTS[more]);
            return Ok(());
        };
        for n in 1..12 {
            for m in 1..12 {
                let dims = [n, m];
                let holds = |f: &usize| match f {
                    0 => n % 4 == 0,
                    1 => m >= 3,
                    2 => n >= 5,
                    3 => m <= n,
                    4 => n == 8,
                    5 => m % 3 == 0,
                    _ => n <= 40,
                };
                if observed && all.iter().all(holds) {
                    prop_assert_eq!(range(&before, "b", &dims), range(&after, "b", &dims), "{}", value);
                }
            }
        }
    }
}

#[test]
fn several_readers_are_joined() {
    let program = accepted(&kernel(
        "(x: f32[N]) -> (y: f32[N], z: f32[N]) where N >= 2",
        "b[k] = x[k] or 0.0; y[i] = b[i - 2] + b[2 * i]; z[i] = b[N - i] + b[i / 2 - 1];",
    ));
    // Which of 2·N − 1 and N + 1 is larger is known from N = 2 on.
    assert_eq!(range(&program, "b", &[5, 0]), (-2, 9));
}
