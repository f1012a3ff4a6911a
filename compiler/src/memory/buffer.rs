//! How many lanes of a vector a thread accesses together in the buffer of a stage in shared memory.
//!
//! **Property.** Lanes that go together are neighbours in the buffer, and start at a multiple of their number.
//! **Formula.** That of [`super::vector`], for the place of an element in the buffer; where chunks of 16 bytes change
//! places, lanes of one chunk. An exclusive or is the same for all lanes where both its operands are.

use super::access;
use super::vector::{Along, Class, Vector};
use crate::diag::Diagnostics;
use crate::diag::tw04xx_buffer::LaidOutVector;
use crate::domain::Symbolic;
use crate::extent::{Expr, Facts};
use crate::lower::Analysed;
use crate::schedule::{self, Layout, Spot, Stage};
use crate::source::ast::Place;

/// Bytes that change places together in a swizzle.
const CHUNK_BYTES: u32 = 16;

/// Of elements of so many bytes that the stage writes: the lanes that are written together; 1 where each lane goes by
/// itself.
pub fn written(stage: &Stage, layout: &Layout, vector: &Vector, symbolic: &Symbolic, bytes: u32) -> u32 {
    let place = access::of_roots(&stage.place_in(layout), stage, symbolic);
    together(vector.classify(&place, symbolic, &stage.facts), layout, vector, bytes)
}

/// Of elements of `held` that a stage with a vector reads at `indices`.
pub fn read(
    (held, layout): (&Stage, &Layout),
    indices: &[Expr],
    (vector, symbolic, facts): (&Vector, &Symbolic, &Facts),
    bytes: u32,
) -> u32 {
    let Spot { offset, opaque } = held.spot_in(layout, indices);
    let is_same = |e: &Expr| match vector.along(e, symbolic, facts) {
        Along::Affine { step, .. } => step.as_constant() == Some(0),
        Along::Straddles => false,
    };
    if !opaque.iter().all(|(_, a, b)| is_same(a) && is_same(b)) {
        return 1;
    }
    together(vector.classify(&offset, symbolic, facts), layout, vector, bytes)
}

fn together(class: Class, layout: &Layout, vector: &Vector, bytes: u32) -> u32 {
    let lanes = u32::try_from(vector.lanes).unwrap_or(1);
    let chunk = layout.columns.and_then(|columns| u32::try_from(columns.chunk).ok());
    match (class, chunk) {
        (Class::Vector, Some(chunk)) => return lanes.min(chunk),
        (_, Some(_)) => return 1,
        _ => {}
    }
    match class {
        Class::Vector if layout.is_swizzled() => lanes.min(CHUNK_BYTES / bytes.min(CHUNK_BYTES)),
        Class::Vector => lanes,
        Class::Uniform | Class::PerLane => 1,
    }
}

/// Whether a stage is written by vectors that the padding of its layout takes apart; says so.
pub fn check_written(stage: &Stage, vector: &Vector, symbolic: &Symbolic, diags: &mut Diagnostics) -> bool {
    let algorithm = &stage.program.algorithm;
    let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
    vector.is_data
        && components.iter().any(|c| {
            let bytes = algorithm.types[c.value as usize].bytes();
            take_apart(stage, None, vector, stage, &|layout| written(stage, layout, vector, symbolic, bytes), diags)
        })
}

/// The same of those that read it by vectors.
pub fn check_reads(stages: &[Analysed], diags: &mut Diagnostics) {
    let stage = |n: usize| stages.get(n).map(|a| &a.stage);
    for (at, reader) in stages.iter().enumerate() {
        let Analysed { stage: own, symbolic, vector: Some(vector), reads, .. } = reader else { continue };
        for found in reads.iter().filter(|r| !r.is_guarded) {
            let held = schedule::taken(&stage, at, (found.source, found.value), found.in_terms).and_then(stage);
            let Some(held) = held.filter(|s| s.place == Place::Shared) else { continue };
            let bytes = own.program.algorithm.types[found.value as usize].bytes();
            let run = |layout: &Layout| read((held, layout), &found.indices, (vector, symbolic, &own.facts), bytes);
            if take_apart(held, Some(&own.name), vector, own, &run, diags) {
                break;
            }
        }
    }
}

/// Whether the layout of `held` takes the vectors of `by` apart that it would leave whole without its padding; says so.
fn take_apart(
    held: &Stage,
    reader: Option<&str>,
    vector: &Vector,
    by: &Stage,
    run: &dyn Fn(&Layout) -> u32,
    diags: &mut Diagnostics,
) -> bool {
    let Some(span) = held.layout.written.filter(|_| held.place == Place::Shared && run(&held.layout) == 1) else {
        return false;
    };
    let with = |pad: &dyn Fn(i128) -> i128| Layout {
        swizzle: held.layout.swizzle,
        columns: held.layout.columns,
        written: Some(span),
        ..Layout::new(held.layout.axes.iter().map(|a| (a.axis, a.extent.clone(), pad(a.pad))))
    };
    if run(&with(&|_| 0)) == 1 {
        return false;
    }
    let whole = with(&|pad| (pad + vector.lanes - 1).div_euclid(vector.lanes) * vector.lanes);
    diags.report(LaidOutVector {
        stage: held.name.clone(),
        reader: reader.map(str::to_owned),
        axis: by.domain.axes[vector.axis].name.clone(),
        lanes: vector.lanes,
        alone: reader.is_some() || !held.fetches,
        padded: (run(&whole) > 1).then(|| whole.display(&held.domain)),
        vectorize: vector.span,
        span,
    });
    true
}
