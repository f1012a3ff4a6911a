//! What readers of staged copies demand of holes: which predicates are waived, which model and level `explain` gives,
//! and that results are those of `reference()` with data that holds NaN and infinities.

use crate::support::{compiled, data};
use tilewright::{Device, EmulatorOptions, Tensor, schedule};
use tilewright_cli::trial::Trial;

/// A reduction over `k` in tiles of 16, of rows of `x`, which is staged; `more` stages others.
fn kernel(facts: &str, term: &str, element: &str, more: &str) -> String {
    format!(
        "kernel K(x: {element}[M, K], w: {element}[M, K], v: {element}[L]) -> (y: {element}[M])
         where K % 4 == 0, {facts}
         {{
             y[i] = {term};
             launch threads(32);
             schedule y {{ split i by 32 -> io, ii; split k by 16 -> ko, ki; reorder io, ii, ko, ki; bind io: grid; bind ii: thread; }}
             stage xs[i, k] = x in shared at y.ko via tma {{ box i by 32 -> ic, ib; box k by 16 -> kc, kb; }}
             {more}
         }}"
    )
}

const STAGE_W: &str = "stage ws[i, k] = w in shared at y.ko via tma { box i by 32 -> ic, ib; box k by 16 -> kc, kb; }";

/// Compiles, checks the lines of the explanation that start with `predicate` or `copy … has`, and runs sizes with and
/// without holes.
fn check(source: &str, expected: &[&str]) {
    check_at(source, expected, |dims| dims);
}

fn check_at(source: &str, expected: &[&str], round: impl Fn([i64; 3]) -> [i64; 3]) {
    let info = compiled(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let lines: Vec<&str> = (info.explanation.lines().map(str::trim_start))
        .filter(|line| line.starts_with("predicate ") || line.starts_with("copy ") && line.contains(" has "))
        .collect();
    assert_eq!(lines, expected, "{source}");
    for (seed, dims) in [(1, [33, 20, 36]), (2, [5, 16, 32]), (3, [64, 52, 68]), (4, [1, 4, 20])] {
        let dims = round(dims);
        let dims: Vec<i64> = info.dims.iter().map(|d| dims["MKL".find(&*d.name).unwrap_or(0)]).collect();
        let device = Device::emulator(EmulatorOptions::default().seed(seed));
        let trial = Trial::new(&info, &dims, seed, &device).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
        let outcome = trial.run(&device);
        assert!(outcome.is_good(), "{source}\nat {dims:?}: {outcome:#?}");
    }
}

const ROWS: &str = "predicate i < M, not around the terms: what they make of holes is not stored";

const STRONG: &str =
    "copy xs has strong correctness, for its reader folds in its holes; level 1: every hole is zero (Theorem G)";
const WEAK: &str =
    "copy xs has weak correctness, for its reader is predicated; level 1: every hole is zero (Theorem G)";

#[test]
fn a_sum_takes_zeros_in() {
    let waived = [STRONG, ROWS, "predicate k < K, waived in the staged entry: zeros of xs change nothing"];
    check(&kernel("L >= 1", "sum(|k| x[i, k])", "f32", ""), &waived);
    check(&kernel("L >= 1", "sum(|k| abs(x[i, k]) * 0.5)", "f32", ""), &waived);
    check(&kernel("L >= 1", "fold(|k| init (0.0), step (s) => (s + x[i, k] * x[i, k]))", "f32", ""), &waived);
}

#[test]
fn other_terms_and_monoids_do_not() {
    let kept = [WEAK, ROWS, "predicate k < K"];
    check(&kernel("L >= 1", "sum(|k| x[i, k] + 1.0)", "f32", ""), &kept);
    check(&kernel("L >= 1", "max(|k| x[i, k])", "f32", ""), &kept);
    check(&kernel("L >= 1", "sum(|k| x[i, k] / 3.0 + approx::exp(x[i, k]))", "f32", ""), &kept);
    // The author may say that holes hold anything.
    let any = kernel("L >= 1", "sum(|k| x[i, k])", "f32", "").replace("kc, kb; }", "kc, kb; fill any; }");
    check(&any, &kept);
}

#[test]
fn the_least_unsigned_number_is_zero() {
    let source = kernel("K % 16 == 0, L >= 1", "max(|k| x[i, k])", "u8", "").replace("k by 16", "k by 32");
    let waived = [STRONG, ROWS, "predicate k < K, waived in the staged entry: zeros of xs change nothing"];
    check_at(&source, &waived, |[m, k, l]| [m, (k + 15) / 16 * 16, l]);
}

#[test]
fn a_product_needs_both_zeros() {
    let both = kernel("L >= 1", "sum(|k| x[i, k] * w[i, k])", "f32", STAGE_W);
    check(
        &both,
        &[
            STRONG,
            &STRONG.replace("xs", "ws"),
            ROWS,
            "predicate k < K, waived in the staged entry: zeros of ws and xs change nothing",
        ],
    );
    // What is after the end of the other operand may be NaN.
    check(&kernel("L == K + 16", "sum(|k in 0..K| x[i, k] * v[k])", "f32", ""), &[WEAK, ROWS, "predicate k < L - 16"]);
    // An operand that is read from the tensor must not be read outside of it.
    check(&kernel("L >= 1", "sum(|k| x[i, k] + w[i, k])", "f32", ""), &[WEAK, "predicate i < M", "predicate k < K"]);
    // Integers have no NaN.
    let integers = kernel("L == K + 16", "sum(|k in 0..K| x[i, k] * v[k])", "i32", "");
    check(&integers, &[STRONG, ROWS, "predicate k < L - 16, waived in the staged entry: zeros of xs change nothing"]);
}

#[test]
fn what_is_outside_the_region_may_be_in_the_tensor() {
    // 16 iterations over 12 elements: the last four are the next tile's.
    let source = kernel("L >= 1", "sum(|k| x[i, k])", "f32", "")
        .replace("split k by 16 -> ko, ki;", "split k by 12 -> ko, kr; split kr by 8 -> ki, kv;")
        .replace("ko, ki;", "ko, ki, kv;");
    check(
        &source,
        &[
            "copy xs has strong correctness, for its reader folds in its holes; level 3: some copy holds elements that nobody asked for beside live ones",
            ROWS,
            "predicate k < K, waived in the staged entry: zeros of xs change nothing",
            "predicate kr < 12",
        ],
    );
}

#[test]
fn copies_of_nothing_live_are_sent_away() {
    // A tile an element: the last two phases of each box hold elements of the next region, and nothing else.
    let source = "kernel K(x: f32[K, M]) -> (y: f32[M])
        where M % 4 == 0
        {
            y[i] = sum(|k| x[k, i]);
            launch threads(32);
            schedule y {
                split i by 32 -> io, ii; split k by 6 -> ko, kr; split kr by 4 -> ki, kv; reorder io, ii, ko, ki, kv;
                bind io: grid; bind ii: thread;
            }
            stage xs[k, i] = x in shared at y.ko via tma { box k by 8 -> kc, kb; tile kb by 8 -> kt, ks; box i by 32 -> ic, ib; }
        }";
    check_at(
        source,
        &[
            "copy xs has strong correctness, for its reader folds in its holes; level 2: copies without a live slot go out of bounds, then every hole is zero",
            ROWS,
            "predicate k < K, waived in the staged entry: zeros of xs change nothing",
            "predicate kr < 6, waived in the staged entry: zeros of xs change nothing",
        ],
        |[m, k, l]| [(m + 3) / 4 * 4, k, l],
    );
}

#[test]
fn initial_values_are_read_where_there_is_an_element() {
    let term = "x[i, 0] + fold(|k| init (x[i, 0]), step (s) => (s * 0.5 + x[i, k])) + x[i, 0]";
    let copied = kernel("L >= 1", term, "f32", "");
    let kept = [WEAK, ROWS, "predicate k < K"];
    check(&copied, &kept);
    // With elements inside the terms, each has a condition of its own.
    let inside = copied.replace("split k", "split ii by 8 -> ia, ib; split k");
    let inside = inside.replace("reorder io, ii, ko, ki;", "reorder io, ia, ko, ki, ib;").replace("bind ii", "bind ia");
    check(&inside, &kept);
    // Around the terms the copy is there for initial values, too.
    let around = copied.replace("at y.ko", "at y.io").replace("K % 4 == 0", "K % 4 == 0, K <= 64");
    check(&around, &[WEAK, "predicate i < M", "predicate k < K"]);
    for source in [copied, inside] {
        let (first, last) = (source.find("stage xs").unwrap(), source.rfind('}').unwrap());
        check(&format!("{}{}", &source[..first], &source[last..]), &["predicate i < M", "predicate k < K"]);
    }
}

schedule! {
    /// `v` is longer than the sum: what is after its end must not meet the zeros of `x`.
    #[allow(TW0490)]
    pub kernel Longer(x: f32[M, K], v: f32[L]) -> (y: f32[M])
    where K % 4 == 0, L == K + 16
    {
        y[i] = sum(|k in 0..K| x[i, k] * v[k]);
        launch threads(32);
        schedule y { split i by 32 -> io, ii; split k by 16 -> ko, ki; reorder io, ii, ko, ki; bind io: grid; bind ii: thread; }
        stage xs[i, k] = x in shared at y.ko via tma { box i by 32 -> ic, ib; box k by 16 -> kc, kb; }
    }

    /// Both operands are staged, and both are zero in the holes.
    #[allow(TW0490)]
    pub kernel Product(x: f32[M, K], w: f32[M, K]) -> (y: f32[M])
    where K % 4 == 0
    {
        y[i] = sum(|k| x[i, k] * w[i, k]);
        launch threads(32);
        schedule y { split i by 32 -> io, ii; split k by 16 -> ko, ki; reorder io, ii, ko, ki; bind io: grid; bind ii: thread; }
        stage xs[i, k] = x in shared at y.ko via tma { box i by 32 -> ic, ib; box k by 16 -> kc, kb; }
        stage ws[i, k] = w in shared at y.ko via tma { box i by 32 -> ic, ib; box k by 16 -> kc, kb; }
    }
}

#[test]
fn nan_behind_the_end_stays_there() {
    for device in crate::support::devices() {
        for (m, k) in [(1, 4), (33, 20), (5, 44)] {
            let x = data(&device, [m, k], |n| (n % 7) as f32);
            let v = data(&device, [k + 16], |n| if n < k { n as f32 } else { f32::NAN });
            let w = data(&device, [m, k], |n| (n % 5) as f32 - 2.0);
            let mut y = Tensor::zeros(&device, [m]).unwrap();
            Longer { x: &x, v: &v, y: &mut y }.launch(&device).unwrap();
            y.to_vec().unwrap().iter().for_each(|y| assert!(y.is_finite(), "{m} {k}"));
            Product { x: &x, w: &w, y: &mut y }.launch(&device).unwrap();
            let expected = |i: usize| (0..k).map(|n| ((i * k + n) % 7) as f32 * (((i * k + n) % 5) as f32 - 2.0)).sum();
            assert_eq!(y.to_vec().unwrap(), (0..m).map(expected).collect::<Vec<f32>>());
        }
    }
}

/// What is proved of waived predicates is proved for sizes of at least 1: with no terms, the padding alone would read
/// `v` outside.
#[test]
fn launches_without_terms_read_nothing() {
    let source = "kernel K(x: i32[M, K], v: i32[P]) -> (y: i32[M])
        where K == N + 4, N % 4 == 0, P >= 8 * N
        {
            y[i] = sum(|k in 0..N| x[i, k + 4] * v[k]);
            launch threads(32);
            schedule y {
                split i by 32 -> io, ii; resize k by (0, 3) -> kr; split kr by 16 -> ko, ki; reorder io, ii, ko, ki;
                bind io: grid; bind ii: thread;
            }
            stage xs[i, k] = x in shared at y.ko via tma { box i by 32 -> ic, ib; box k by 16 -> kc, kb; }
        }";
    let info = compiled(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    assert!(info.explanation.contains("predicate k < N, waived in the staged entry: zeros of xs change nothing"));
    for (k, n, p) in [(4, 0, 0), (8, 4, 32)] {
        let size =
            |name: &str| [("M", 3), ("K", k), ("N", n), ("P", p)].iter().find(|s| s.0 == name).map_or(0, |s| s.1);
        let dims: Vec<i64> = info.dims.iter().map(|d| size(&d.name)).collect();
        let device = Device::emulator(EmulatorOptions::default());
        let outcome = Trial::new(&info, &dims, 1, &device).unwrap().run(&device);
        assert!(outcome.is_good(), "{dims:?}: {outcome:#?}");
    }
}

#[test]
fn rows_up_to_a_bound_are_stored_whole() {
    let source = "kernel K(x: f32[M, K]) -> (y: f32[M, K])
        where K <= 100, K % 4 == 0
        {
            y[i, k] = x[i, k] + x[i, k];
            launch threads(64);
            schedule y {
                split i by 4 -> io, ii; split k by 24 -> ko, kr; split kr by 16 -> kp, kq; reorder io, ko, kp, ii, kq;
                bind io: grid; merge ii, kq -> t; bind t: thread;
            }
            stage ys[i, k] = y in shared at y.io via tma { box i by 4 -> ic, ib; box k by 20 -> kc, kb; }
        }";
    check(source, &["predicate i < M", "predicate k < K", "predicate kr < 24"]);
}

#[test]
fn each_read_takes_its_copy() {
    let source = "kernel K(x: f32[M, K]) -> (y: f32[M, M])
        where K % 4 == 0
        {
            y[i, j] = sum(|k| x[i, k] * x[j, k]);
            launch threads(32);
            schedule y {
                split i by 4 -> io, ii; split j by 32 -> jo, ji; split k by 16 -> ko, ki; reorder io, jo, ji, ko, ki, ii;
                bind io, jo: grid; bind ji: thread;
            }
            stage xi[i, k] = x in shared at y.ko ring(2) via tma { box i by 4 -> ic, ib; box k by 16 -> kc, kb; }
            stage xj[j, k] = x in shared at y.ko via tma { box j by 32 -> jc, jb; box k by 16 -> kc, kb; }
        }";
    let rows =
        |axis: &str| format!("predicate {axis} < M, not around the terms: what they make of holes is not stored");
    check(
        source,
        &[
            &STRONG.replace("xs", "xi"),
            &STRONG.replace("xs", "xj"),
            &rows("i"),
            &rows("j"),
            "predicate k < K, waived in the staged entry: zeros of xi and xj change nothing",
        ],
    );
}

/// A row that is there once is copied once, whatever counts it together with the columns: readers of all rows read it,
/// and no copy has zeros in the places of others.
#[test]
fn a_row_that_is_there_once_is_read_for_all() {
    for (shape, read, copy) in [
        ("1, N", "x[0, j]", "xs[r, j] = x in shared at y.jo via tma { merge r, j -> m; box m by 32 -> mc, mb; }"),
        ("1, N", "x[0, j]", "xs[r, j] = x in shared at y.jo via tma { box r by 1 -> rc, rb; box j by 32 -> jc, jb; }"),
        ("N", "x[j]", "xs[j] = x in shared at y.jo via tma { box j by 32 -> jc, jb; }"),
    ] {
        let source = format!(
            "kernel K(x: f32[{shape}], v: f32[M]) -> (y: f32[M, N]) where N % 4 == 0 {{
                y[i, j] = v[i] * {read};
                launch threads(32);
                schedule y {{
                    split i by 8 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
                    bind ji: thread;
                }}
                stage {copy}
            }}"
        );
        let info = compiled(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        for [m, n] in [[20, 36], [1, 4], [9, 64]] {
            let dims: Vec<i64> = info.dims.iter().map(|d| if &*d.name == "M" { m } else { n }).collect();
            let device = Device::emulator(EmulatorOptions::default());
            let outcome = Trial::new(&info, &dims, 1, &device).expect("a trial").run(&device);
            assert!(outcome.is_good(), "{source}\nat {dims:?}: {outcome:#?}");
        }
    }
}
