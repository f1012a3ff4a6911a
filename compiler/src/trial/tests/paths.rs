//! What paths find in kernels that are right up to some size, beyond it; and in kernels that are made wrong.

use super::*;
use crate::kernel_ir::StatementKind;

const PATHS: u64 = 200;

/// A launch with these sizes.
fn launch(compiled: &Compiled, dims: &[i64]) -> Launch {
    Launch::without_maps(compiled.info.as_ref().expect("compiled"), dims).expect("a launch")
}

/// What paths of the first entry point, which has 32-bit indices, say of a launch.
fn kind(compiled: &Compiled, launch: &Launch) -> Option<Kind> {
    match check_paths(&compiled.entries[0].kernel, launch, 1, PATHS) {
        Verdict::Holds => None,
        Verdict::Violated(violation) => Some(violation.kind),
        other => panic!("{other:?}"),
    }
}

const PLAIN: &str = "kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1.0;
    schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; } }";
const ROWS: &str = "kernel K(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i, j] + 1.0;
    schedule y { merge i, j -> p; split p by 64 -> b, t; bind b: grid; bind t: thread; } }";

#[test]
fn indices_of_32_bits_are_not_enough_beyond_the_conditions() {
    for (source, base) in [(PLAIN, vec![40]), (ROWS, vec![3, 7])] {
        let kernel = compiled(source);
        let info = kernel.info.as_ref().expect("compiled");
        let found = large(info, &kernel.entries[0].conditions, &base);
        assert!(!found.is_empty());
        for dims in &found {
            assert!(dims.iter().product::<i64>() > i64::from(i32::MAX) / 2, "{dims:?} are not large");
            assert_eq!(kind(&kernel, &launch(&kernel, dims)), None, "{dims:?}\n{source}");
            for at in 0..dims.len() {
                let mut more = dims.clone();
                more[at] *= 3;
                let found = kind(&kernel, &launch(&kernel, &more));
                assert!(matches!(found, Some(Kind::Beyond | Kind::Wide)), "{found:?} at {more:?}\n{source}");
            }
        }
    }
}

/// Without a test of the last block, elements after the tensor are accessed; the same kernel with it is right.
#[test]
fn elements_that_are_not_there_are_outside() {
    let mut kernel = compiled(PLAIN);
    let large = [(1 << 31) - 75];
    assert_eq!(kind(&kernel, &launch(&kernel, &large)), None);
    for region in &mut kernel.entries[0].kernel.regions {
        for statement in &mut region.statements {
            // Both sides do the same.
            if let StatementKind::If(branch) = &mut statement.kind {
                let empty = branch.otherwise.replace(branch.then);
                assert_eq!(empty, None);
            }
        }
    }
    assert_eq!(kind(&kernel, &launch(&kernel, &large)), Some(Kind::Outside));
}

#[test]
fn the_last_iteration_is_met() {
    let source =
        "kernel K(x: f32[M, N]) -> (y: f32[M]) { y[i] = sum(|j in 0..N| x[i, j]); schedule y { bind i: grid; } }";
    let kernel = compiled(source);
    let right = launch(&kernel, &[3, 1 << 29]);
    assert_eq!(kind(&kernel, &right), None);
    // One iteration more than the tensor has columns.
    let dims = vec![3, (1 << 29) + 1];
    assert_eq!(kind(&kernel, &Launch { dims, ..right }), Some(Kind::Outside));
}

/// Indices that memory holds are drawn: near the end of what they are for, and elsewhere.
#[test]
fn indices_from_memory_are_met_where_they_are_none() {
    for ty in ["i32", "i64", "u64"] {
        let source = format!(
            "kernel K(x: f32[N], p: {ty}[M]) -> (y: f32[M]) {{ y[i] = x[p[i]] or 0.5;
                schedule y {{ split i by 32 -> b, t; bind b: grid; bind t: thread; }} }}"
        );
        let mut kernel = compiled(&source);
        let large = [(1 << 30) + 7, (1 << 31) - 75];
        assert_eq!(kind(&kernel, &launch(&kernel, &large)), None);
        for region in &mut kernel.entries[0].kernel.regions {
            for statement in &mut region.statements {
                if let StatementKind::Load(load) = &mut statement.kind {
                    load.predicate = None;
                }
            }
        }
        assert_eq!(kind(&kernel, &launch(&kernel, &large)), Some(Kind::Outside), "{ty}");
    }
}
