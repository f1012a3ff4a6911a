//! Mistakes that only values show, planted in finished kernels.

use tilewright_kernel::ElementType::F32;
use tilewright_kernel::algorithm::{Binary, Compare};

use super::*;
use crate::kernel_ir::{Facts, Kernel, Op, Range, Statement, StatementKind, Value, ValueId, VariableId};
use crate::source::TokenBuffer;

const PLAIN: &str = "kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1.0; }";

/// The two kernels of the report: held registers in an unrolled loop.
const HALO: &str = "kernel K(x: f32[N + 1, M]) -> (y: f32[N, M]) {
    t[i in 0..N + 1, j in 0..M] = x[i, j];
    y[i, j] = t[i + 1, j] - t[i, j];
    schedule y { split i by 2 -> io, ii; unroll ii; }
    schedule t in registers per thread at y.j { like y; }
}";

#[test]
fn a_wrong_register_is_noticed_by_what_is_stored() {
    let kernel = compiled(HALO);
    let info = kernel.info.as_ref().expect("compiled");
    let launch = Launch::new(info, &[5, 4]).expect("sizes");
    let entry = &kernel.entries[0].kernel;
    assert_eq!(check_values(entry, &launch, &info.algorithm, 1, 1_000_000), Verdict::Holds);
    let mut changed = 0;
    for n in 0..entry.values.len() {
        let op = match entry.values[n].op {
            Op::Get(variable) => Op::Get(VariableId(1 - variable.0 % 2)),
            Op::Binary(Binary::Sub, a, b) => Op::Binary(Binary::Sub, b, a),
            _ => continue,
        };
        let mut mutant = entry.clone();
        mutant.values[n].op = op;
        changed += 1;
        // Addresses, orders and coverage are as they were.
        assert_eq!(check(&mutant, &launch, 1_000_000), Verdict::Holds);
        let found = check_values(&mutant, &launch, &info.algorithm, 1, 1_000_000);
        let is_wrong = |v: &Violation| matches!(v.kind, Kind::Wrong | Kind::Data);
        assert!(matches!(&found, Verdict::Violated(v) | Verdict::Undecided(v) if is_wrong(v)), "{found:?}\n{mutant}");
    }
    assert!(changed >= 6, "{changed}\n{entry}");
}

#[test]
fn zeros_in_place_of_what_is_held_are_noticed() {
    let kernel = compiled(HALO);
    let info = kernel.info.as_ref().expect("compiled");
    let launch = Launch::new(info, &[4, 3]).expect("sizes");
    let mut mutant = kernel.entries[0].kernel.clone();
    let zero = mutant.values.iter().position(|v| v.op == Op::Literal(0) && v.ty.element() == Some(F32));
    let zero = ValueId(zero.expect("the initial value of registers") as u32);
    for region in &mut mutant.regions {
        for statement in &mut region.statements {
            if let StatementKind::Store(store) = &mut statement.kind {
                store.values = vec![zero];
            }
        }
    }
    assert_eq!(check(&mutant, &launch, 1_000_000), Verdict::Holds);
    let found = check_values(&mutant, &launch, &info.algorithm, 1, 1_000_000);
    assert!(matches!(&found, Verdict::Violated(v) if v.kind == Kind::Wrong), "{found:?}");
}

#[test]
fn merges_that_change_something_are_the_authors() {
    // The first is Welford's; the second says what is not true, and runs across threads.
    let mean = "(n1 + n2, if n1 + n2 == 0.0 { 0.0 } else { (m1 * n1 + m2 * n2) / (n1 + n2) })";
    for (merge, is_law) in [(mean, true), ("(n1 + n2, m1)", false)] {
        let source = format!(
            "kernel K(x: f32[N]) -> (c: f32[], y: f32[]) {{
                (c, y)[] = fold(|i in 0..N| init (0.0f32, 0.0f32),
                    step (n, m) => (n + 1.0, (m * n + x[i]) / (n + 1.0)), merge ((n1, m1), (n2, m2)) => {merge});
                launch threads(4);
                schedule c {{ split i by 4 -> io, t; bind t: thread; reduce t; }}
            }}"
        );
        let kernel = compiled(&source);
        let info = kernel.info.as_ref().expect("compiled");
        let launch = Launch::new(info, &[11]).expect("sizes");
        for entry in &kernel.entries {
            let verdict = check_values(&entry.kernel, &launch, &info.algorithm, 1, 1_000_000);
            assert_eq!(verdict == Verdict::Holds, is_law, "{verdict:?}");
            assert!(!matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
        }
    }
}

/// Where N is 0, the copy holds nothing, and what is read beside the terms is none of it. With zeros in registers most
/// data hides that.
#[test]
fn registers_hold_nothing_before_they_are_set() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../campaign/found/copy_for_no_terms.txt");
    let source = std::fs::read_to_string(path).expect("a kernel that was found");
    let source = source.split_once('\n').expect("a comment and a kernel").1;
    let kernel = compiled(source);
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
    let (info, _, entries) = crate::never_empty(&kernel.ast, &tokens).expect("compiled");
    let empty: Vec<i64> = info.dims.iter().map(|dim| if &*dim.name == "N" { 0 } else { 4 }).collect();
    let effort = Effort { nets: &[Net::Values], seed: 0, work: 1_000_000 };
    assert!(prove(&info, &entries, &empty, effort).map_or(true, |tally| tally.undecided > 0));
    // Planned for that size, too, it takes the element from elsewhere.
    let info = kernel.info.as_ref().expect("compiled");
    assert!(info.requirements.is_empty());
    assert!(prove(info, &kernel.entries, &empty, effort).is_ok_and(|tally| tally.held > 0 && tally.undecided == 0));
}

/// The logarithm of what merges change is the same for two ways to merge, by chance, and another one for a third. So is
/// a `merge` that is not the step's for some data.
#[test]
fn functions_of_what_merges_change_are_not_known() {
    let steps = [
        "(max(a, x[i, j]), b * exp(a - max(a, x[i, j])) + exp(x[i, j] - max(a, x[i, j])))",
        "(max(a, if x[i, j] > 2.0 { x[i, j] } else { 2.0 }), b * exp(a - max(a, x[i, j])) + exp(x[i, j] - max(a, x[i, j])))",
    ];
    for (step, sizes) in steps.into_iter().zip([[3, 33], [3, 3]]) {
        let kernel = compiled(&format!(
            "kernel K(x: f32[M, N]) -> (z: f32[M]) {{
                (m, s)[i] = fold(|j| init (-1.0e30f32, 0.0f32), step (a, b) => {step},
                    merge ((a, b), (c, d)) => (max(a, c), b * exp(a - max(a, c)) + d * exp(c - max(a, c))));
                z[i] = m[i] + log(s[i]);
                launch threads(32);
                schedule z {{ split i by 32 -> io, ii; bind io: grid; bind ii: thread; }}
                schedule m in shared at z.io {{ split j by 32 -> jo, c; bind c: thread; reduce c; }}
            }}"
        ));
        let info = kernel.info.as_ref().expect("compiled");
        for seed in 0..20 {
            let launch = Launch::new(info, &sizes).expect("sizes");
            let verdict = check_values(&kernel.entries[0].kernel, &launch, &info.algorithm, seed, 1_000_000);
            assert!(!matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
        }
    }
}

#[test]
fn sums_of_large_integers_round_anywhere() {
    let kernel = compiled("kernel K(y: i32[N]) -> (z: f32[]) { z[] = sum(|i| y[i] as f32); }");
    let info = kernel.info.as_ref().expect("compiled");
    for seed in 0..8 {
        let launch = Launch::new(info, &[40]).expect("sizes");
        let verdict = check_values(&kernel.entries[0].kernel, &launch, &info.algorithm, seed, 1_000_000);
        assert_eq!(verdict, Verdict::Holds);
    }
}

/// −2·∞ + ∞ is the term of −∞, whether or not another element is −∞ and was met before.
#[test]
fn constants_are_known_in_any_order() {
    let kernel = compiled(
        "kernel K(c: i32[N], x: i32[N]) -> (y: i32[]) {
            t[i in 0..N] = (c[i] as f16) * -2.0f16 + (x[i] as f16);
            y[] = fold(|j in 0..N| init (3i32), step (s) => (min(s, (t[j] as i32))), merge ((a), (b)) => (min(a, b)));
        }",
    );
    let info = kernel.info.as_ref().expect("compiled");
    let launch = Launch::new(info, &[5]).expect("sizes");
    for seed in 0..300 {
        let verdict = check_values(&kernel.entries[0].kernel, &launch, &info.algorithm, seed, 1_000_000);
        assert_eq!(verdict, Verdict::Holds, "seed {seed}");
    }
}

/// Instructions are chosen by ranges: an index outside of its own is as wrong as another index, if something depends on
/// it.
#[test]
fn what_is_said_of_indices_holds_where_it_matters() {
    let kernel = compiled(PLAIN);
    let info = kernel.info.as_ref().expect("compiled");
    let launch = Launch::new(info, &[40]).expect("a launch");
    let mut mutant = kernel.entries[0].kernel.clone();
    let store = mutant.regions.iter().flat_map(|r| &r.statements).find_map(|s| match &s.kind {
        StatementKind::Store(store) => Some(store.offset),
        _ => None,
    });
    let offset = store.expect("an output is stored");
    let said = mutant.values[offset.index()].facts.range;
    let with = |mutant: &mut Kernel, high: i64| {
        mutant.values[offset.index()].facts.range = Range::new(said.low, high);
        check_values(mutant, &launch, &info.algorithm, 1, 1_000_000)
    };
    assert_eq!(with(&mut mutant, 39), Verdict::Holds);
    let found = with(&mut mutant, 38);
    assert!(matches!(&found, Verdict::Violated(v) if v.kind == Kind::Beyond), "{found:?}\n{mutant}");
    // Nothing depends on a value that nobody uses.
    mutant.values[offset.index()].facts.range = said;
    let copy = ValueId(mutant.values.len() as u32);
    let unused = Value { facts: Facts { range: Range::point(-1), ..Facts::NONE }, ..mutant.values[offset.index()] };
    mutant.values.push(unused);
    let statement = Statement { line: 0, kind: StatementKind::Let(copy) };
    mutant.regions[unused.region.index()].statements.push(statement);
    assert_eq!(check_values(&mutant, &launch, &info.algorithm, 1, 1_000_000), Verdict::Holds);
}

#[test]
fn what_is_said_to_be_the_same_for_all_threads_is() {
    let kernel = compiled(
        "kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; schedule y { split i by 32 -> g, t; bind g: grid; bind t: thread; } }",
    );
    let info = kernel.info.as_ref().expect("compiled");
    let launch = Launch::new(info, &[64]).expect("a launch");
    let mut mutant = kernel.entries[0].kernel.clone();
    assert_eq!(check(&mutant, &launch, 1_000_000), Verdict::Holds);
    let thread = mutant.values.iter_mut().find(|value| value.op == Op::ThreadIndex).expect("threads are told apart");
    thread.facts.uniform = true;
    let found = check(&mutant, &launch, 1_000_000);
    assert!(matches!(&found, Verdict::Violated(v) if v.kind == Kind::Disagree), "{found:?}\n{mutant}");
}

/// Places of extremes: the first of equals, and the first NaN.
#[test]
fn elements_are_equal_or_nan_now_and_then() {
    let kernel = compiled(
        "kernel K(x: f32[N, M]) -> (y: u32[N], m: f32[N]) where M >= 1 {
            y[i] = argmax(|j in 0..M| x[i, j]);
            m[i] = max(|j in 0..M| x[i, j]);
            schedule y { bind i: grid; split j by 32 -> r, t; bind t: thread; reduce t; }
            schedule m { bind i: grid; split j by 32 -> r, t; bind t: thread; reduce t; }
        }",
    );
    let info = kernel.info.as_ref().expect("compiled");
    let launch = Launch::new(info, &[6, 70]).expect("a launch");
    let mut mutant = kernel.entries[0].kernel.clone();
    assert_eq!(check_values(&mutant, &launch, &info.algorithm, 1, 1_000_000), Verdict::Holds);
    // A comparison with itself tells NaN.
    let mut tells = 0;
    for n in 0..mutant.values.len() {
        if let Op::Compare(Compare::Ne, a, b) = mutant.values[n].op
            && a == b
        {
            mutant.values[n].op = Op::Compare(Compare::Lt, a, b);
            tells += 1;
        }
    }
    let found = check_values(&mutant, &launch, &info.algorithm, 1, 1_000_000);
    assert!(tells > 0 && matches!(&found, Verdict::Violated(v) if v.kind == Kind::Wrong), "{found:?}\n{mutant}");
}
