//! Iterations that are taken for alike are: [`conflicts`](super::conflicts) compares what is found with a walk over all
//! of them, by an assertion. Here is a kernel whose iterations differ by a row.

use crate::compile;
use crate::source::TokenBuffer;

/// A warp reads two rows of 64 bytes at a time. Their chunks of 16 bytes are exchanged by the number of the 128 bytes
/// that they lie in. Rows 7 and 8 have the same banks, rows before them do not.
#[test]
fn rows_apart_are_not_alike() {
    let source = "kernel Rows(x: f32[64, 32]) -> (y: f32[56, 16]) {
        e[i, j] = x[i, j] * 2.0;
        y[i, j] = sum(|r in 0..8| e[i + r, j]) + e[i, j + 16];
        schedule y { split i by 2 -> io, ii; bind io: grid; bind ii, j: thread; }
        schedule e in shared at y.io { split j by 32 -> jo, t; bind t: thread; layout [i, j] swizzle 128; }
    }";
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
    let compiled = compile(&tokens);
    assert!(!compiled.diagnostics.has_errors(), "{:?}", compiled.diagnostics.found());
    let uses = compiled.kernels[0].stages.iter().flat_map(|stage| &stage.banks);
    let degrees: Vec<_> = uses.filter(|u| u.buffer == "e" && !u.is_write).filter_map(|u| u.degree.as_ref()).collect();
    let read = degrees.iter().max_by_key(|degree| degree.sum.least).expect("the reduction reads it");
    assert_eq!((read.sum.taken, read.sum.least), (9, 8), "{degrees:?}");
}
