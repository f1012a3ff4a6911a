//! What one `cp.async` of a stage moves.
//!
//! **Property.** The elements that are moved at once are neighbours in the tensor and in the buffer, start at a
//! multiple of their length in both, and are 4, 8 or 16 bytes (PTX manual, `cp.async`). **Formula.** The lanes of a
//! vector, if both places are known to be such vectors; else each element by itself. Longer vectors are moved 16 bytes
//! at a time.

use crate::diag::Diagnostics;
use crate::diag::codes::{FetchProblem, NotFetched};
use crate::domain::{Binding, Symbolic};
use crate::schedule::vector::written;
use crate::schedule::{BufferLayout, Stage};
use crate::schedule::{
    accesses::Access,
    vector::{Class, Vector},
};
use crate::target::FETCHED_BYTES;

/// The longest copy.
const MOST_BYTES: u32 = 16;

/// Elements that are moved at once; those and their bytes if nothing moves so many.
///
/// # Errors
/// See above.
pub fn unit(stage: &Stage, vector: Option<&Vector>, symbolic: &Symbolic, read: &Access) -> Result<u32, (u32, u32)> {
    unit_in(stage, &stage.layout, vector, symbolic, read)
}

/// The same with another layout of the buffer.
///
/// # Errors
/// See above.
pub fn unit_in(
    stage: &Stage,
    layout: &BufferLayout,
    vector: Option<&Vector>,
    symbolic: &Symbolic,
    read: &Access,
) -> Result<u32, (u32, u32)> {
    let element = stage.program.parameters[usize::from(read.parameter)].element;
    let whole = vector.filter(|v| is_whole(stage, layout, v, symbolic, read));
    let lanes = whole.and_then(|v| u32::try_from(v.lanes).ok()).unwrap_or(1);
    let lanes = lanes.min(MOST_BYTES / element.bytes());
    let bytes = lanes * element.bytes();
    if FETCHED_BYTES.contains(&bytes) { Ok(lanes) } else { Err((lanes, bytes)) }
}

/// Whether the lanes of a vector are neighbours on both sides.
fn is_whole(stage: &Stage, layout: &BufferLayout, vector: &Vector, symbolic: &Symbolic, read: &Access) -> bool {
    let bytes = stage.program.parameters[usize::from(read.parameter)].element.bytes();
    let lanes = i128::from(written(stage, layout, vector, symbolic, bytes));
    // Longer vectors are moved in parts, as chunks change places.
    let whole = lanes == vector.lanes || lanes * i128::from(bytes) == i128::from(MOST_BYTES);
    vector.classify(&read.offset, symbolic, &stage.facts) == Class::Vector && whole
}

/// Says what a stage that threads fetch cannot be.
pub fn check(
    stage: &Stage,
    vector: Option<&Vector>,
    symbolic: &Symbolic,
    accesses: &[Access],
    diags: &mut Diagnostics,
) {
    let Some(read) = accesses.iter().find(|a| !a.is_write) else { return };
    let Err((_, bytes)) = unit(stage, vector, symbolic, read) else { return };
    let axes = &stage.domain.axes;
    let inner = stage.domain.leaves.iter().rfind(|leaf| axes[**leaf].binding != Binding::Vector);
    let problem = FetchProblem::Bytes {
        element: stage.program.parameters[usize::from(read.parameter)].element.to_string(),
        bytes,
        vector: vector.map(|v| (axes[v.axis].name.clone(), v.lanes)),
        whole: vector.is_some_and(|v| is_whole(stage, &stage.layout, v, symbolic, read)),
        inner: inner.map(|leaf| axes[*leaf].name.clone()),
    };
    let span = vector.map_or(stage.span, |v| v.span);
    diags.report(NotFetched { stage: stage.name.clone(), problem, span });
}
