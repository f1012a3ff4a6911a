//! What a launch refuses: sizes and strides that a schedule does not allow, and that only the arguments tell. Each
//! kernel here compiles since a fact says what it needs; the launch compares the fact with what it is given.

use crate::support::compiled;
use tilewright::kernel::KernelInfo;
use tilewright::{Device, EmulatorOptions, Error};
use tilewright_cli::trial::Trial;

fn kernel(source: &str) -> KernelInfo {
    *compiled(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

/// A launch at the first sizes runs and is right; at each of the others it is refused with these words, and nothing
/// runs.
fn refuses(source: &str, fits: &[i64], others: &[(&[i64], &str)]) {
    let info = kernel(source);
    let device = Device::emulator(EmulatorOptions::default());
    let trial = |dims: &[i64]| Trial::new(&info, dims, 1, &device).unwrap_or_else(|e| panic!("{dims:?}: {e}"));
    assert!(trial(fits).run(&device).is_good(), "{source}\nat {fits:?}");
    for (dims, words) in others {
        match trial(dims).launch(&device) {
            Err(Error::Refused(refusal)) => assert!(refusal.to_string().contains(words), "{dims:?}: {refusal}"),
            other => panic!("{source}\nat {dims:?}: {other:?}"),
        }
    }
}

/// Elements of rows by vectors of four.
fn vectors(shape: &str, facts: &str) -> String {
    format!(
        "kernel Twice(x: f32[{shape}]) -> (y: f32[M, N]) where {facts} {{
            y[i, j] = 2.0 * x[i, j];
            launch threads(32);
            schedule y {{
                split j by 4 -> q, v; split q by 32 -> b, t; reorder i, b, t, v; bind i, b: grid; bind t: thread;
                vectorize v;
            }}
        }}"
    )
}

/// Rows by tiles of 8 × 32 that the accelerator loads.
fn tiles(shape: &str, facts: &str, copy: &str) -> String {
    format!(
        "kernel Tiles(x: f32[{shape}]) -> (y: f32[M, N]) where {facts} {{
            y[i, j] = 2.0 * x[i, j];
            launch threads(32);
            schedule y {{
                split i by 8 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
                bind ji: thread;
            }}
            stage xs[i, j] = x in shared at y.jo via tma {{ {copy} }}
        }}"
    )
}

const BOX: &str = "box i by 8 -> ic, ib; box j by 32 -> jc, jb;";

#[test]
fn a_vector_that_passes_the_end_of_a_row() {
    refuses(&vectors("M, N", "N % 4 == 0"), &[3, 256], &[(&[3, 250], "`N % 4 == 0` does not hold with N = 250")]);
}

#[test]
fn a_vector_that_begins_between_its_multiples() {
    let source = vectors("M, N; s, 1", "N % 4 == 0, s % 4 == 0");
    refuses(&source, &[3, 8, 12], &[(&[3, 8, 9], "`s % 4 == 0` does not hold with s = 9")]);
}

#[test]
fn a_view_of_rows_that_do_not_divide() {
    let source = "kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 32 == 0 {
        y[i] = x[i];
        launch threads(32);
        schedule y { split i by 32 -> a, b; bind a: grid; bind b: thread; }
        stage xs[i] = x in shared at y.a via tma { split i by 32 -> r, c; box r by 1 -> rc, rb; box c by 32 -> cc, cb; }
    }";
    refuses(source, &[96], &[(&[100], "`N % 32 == 0` does not hold with N = 100")]);
}

#[test]
fn rows_that_do_not_follow_each_other() {
    let source = "kernel Rows(x: f32[M, 32; ld, 1]) -> (y: f32[M, 32]) where ld == 32 {
        y[i, j] = x[i, j];
        launch threads(32);
        schedule y { split i by 4 -> io, ii; bind io: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.io via tma { merge i, j -> m; box m by 128 -> mc, mb; }
    }";
    refuses(source, &[9, 32], &[(&[9, 36], "`ld == 32` does not hold with ld = 36")]);
}

#[test]
fn rows_apart_by_no_multiple_of_16_bytes() {
    refuses(&tiles("M, N", "N % 4 == 0", BOX), &[9, 1000], &[(&[9, 1001], "does not hold with N = 1001")]);
}

/// A row that is there once and is to be read as many: the map would have a stride of 0.
#[test]
fn rows_that_are_all_one() {
    let source = tiles("M, N; ld, 1", "ld % 4 == 0", BOX);
    let why = "`x` cannot be copied by `xs`: the stride of dimension 1 is 0, and it has 9 elements";
    refuses(&source, &[9, 32, 32], &[(&[9, 32, 0], why)]);
    // Of one row there is no next one.
    refuses(&source, &[1, 32, 0], &[]);
}

/// No memory is as large as that, so the map alone is asked, by what the launch asks it with.
#[test]
fn what_is_beyond_a_map() {
    let info = kernel(&tiles("M, N; ld, 1", "ld % 4 == 0", BOX));
    let [map] = &*info.maps else { panic!("one copy") };
    let at = |dims: [i64; 3]| map.at(1 << 20, &dims).map(drop).map_err(|e| e.to_string());
    assert_eq!(at([1 << 32, 64, (1 << 38) - 4]), Ok(()));
    assert!(at([(1 << 32) + 1, 64, 64]).is_err_and(|e| e.contains("dimension 1 has 4294967297 elements")));
    assert!(at([64, (1 << 32) + 1, 64]).is_err_and(|e| e.contains("dimension 0 has 4294967297 elements")));
    assert!(at([64, 64, 1 << 38]).is_err_and(|e| e.contains("the stride of dimension 1 is 1099511627776 bytes")));
}

#[test]
fn a_store_that_writes_past_its_rows() {
    let source = "kernel Rows(x: f32[M, N]) -> (y: f32[M, N; ld, 1]) where N % 4 == 0, ld % 4 == 0 {
        y[i, j] = 2.0 * x[i, j];
        launch threads(32);
        schedule y {
            split i by 8 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid; bind ji: thread;
        }
        stage ys[i, j] = y in shared at y.jo via tma { box i by 8 -> ic, ib; box j by 32 -> jc, jb; }
    }";
    refuses(source, &[9, 472, 480], &[(&[9, 470, 480], "`N % 4 == 0` does not hold with N = 470")]);
}

#[test]
fn a_run_of_no_multiple_of_16_bytes() {
    let source = "kernel Rows(x: f32[M, 64; ld, 1]) -> (y: f32[M, 64]) where M % 4 == 0, ld % 4 == 0 {
        y[i, j] = x[i, 63 - j];
        launch threads(64);
        schedule y { split i by 4 -> io, ii; bind io: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.io via tma { box i by 1 -> ic, ib; }
    }";
    assert!(kernel(source).maps.is_empty(), "a row is a run of memory");
    refuses(source, &[8, 68], &[(&[8, 66], "`ld % 4 == 0` does not hold with ld = 66")]);
}

#[test]
fn tiles_whose_holes_are_elements() {
    let source = "kernel Columns(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0, K <= 15 {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y {
            split m by 32 -> mo, mi; split k by 15 -> ko, ki; reorder mo, ko, mi, ki; bind mo: grid; bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko via tma {
            box k by 15 -> kc, kb; tile kb by 4 -> kt, ks; box m by 32 -> mc, mb; fill zero;
        }
    }";
    refuses(source, &[15, 36], &[(&[16, 36], "`K <= 15` does not hold with K = 16")]);
}
