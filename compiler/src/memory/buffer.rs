//! Vectors that the padding of a layout takes apart.

use crate::diag::Diagnostics;
use crate::diag::codes::LaidOutVector;
use crate::domain::Symbolic;
use crate::plan::Analysed;
use crate::schedule::vector::{Vector, read, written};
use crate::schedule::{self, BufferLayout, Stage};
use crate::source::ast::Place;

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
            let run =
                |layout: &BufferLayout| read((held, layout), &found.indices, (vector, symbolic, &own.facts), bytes);
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
    run: &dyn Fn(&BufferLayout) -> u32,
    diags: &mut Diagnostics,
) -> bool {
    let Some(span) = held.layout.written.filter(|_| held.place == Place::Shared && run(&held.layout) == 1) else {
        return false;
    };
    let with = |pad: &dyn Fn(i128) -> i128| BufferLayout {
        swizzle: held.layout.swizzle,
        columns: held.layout.columns,
        written: Some(span),
        ..BufferLayout::new(held.layout.axes.iter().map(|a| (a.axis, a.extent.clone(), pad(a.pad))))
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
