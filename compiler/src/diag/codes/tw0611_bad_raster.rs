//! TW0611: a raster of an axis whose blocks have no other order.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Blocks take the iterations of the grid row after row. `bind i, j: grid raster(i: 8)` takes them in groups of 8
    /// along `i`: for each group all iterations of the axes after `i`, and for each of these the 8 iterations of `i`.
    /// So the op must give `i` to the grid, another axis of the grid must be after it, and a stage has groups along one
    /// axis. `raster(j: descending)` takes an axis from its last iteration on, which any axis of the grid can be.
    /// Stages that run in the blocks of another one, as outputs beside outputs do, leave the order to that one.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
    ///     z[i, j] = x[i, j] + y[i, j];
    ///     schedule z { split j by 64 -> b, t; bind i, b: grid raster(b: 8); bind t: thread; }
    /// }
    /// ```
    ///
    /// The message names the axis and says why its blocks have no other order.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
    ///     z[i, j] = x[i, j] + y[i, j];
    ///     schedule z { split j by 64 -> b, t; bind i, b: grid raster(i: 8); bind t: thread; }
    /// }
    /// ```
    TW0611 "bad-raster" Error "a raster of an axis whose blocks have no other order"
}

/// What is wrong with a raster.
#[derive(Clone, Debug)]
pub enum RasterProblem {
    /// The op binds to another unit.
    NotOfGrid,
    /// The op does not bind the axis.
    OtherOp,
    /// The stage has one already.
    Second {
        /// The other one.
        first: Span,
    },
    /// No axis of the grid is after it.
    Last {
        /// The axis before it, if there is one.
        before: Option<String>,
    },
    /// The stage runs in blocks that another one has.
    Shared {
        /// Whose.
        host: Option<String>,
    },
}

/// TW0611: a raster of something that blocks do not take in another order.
#[derive(Clone, Debug)]
pub struct BadRaster {
    /// The stage.
    pub stage: String,
    /// The axis.
    pub axis: String,
    /// Why not.
    pub problem: RasterProblem,
    /// Whether it is about the axis in descending order, and not in groups.
    pub is_descending: bool,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for BadRaster {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, problem, is_descending, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0611, span, title);
        let (rule, order) = match is_descending {
            true => ("`descending` takes an axis of the grid from its last iteration on", "descending"),
            false => (
                "a raster takes the blocks of the grid in groups along one of its axes, for all iterations of the axes after it",
                "8",
            ),
        };
        match problem {
            RasterProblem::NotOfGrid => new(format!("`{axis}` is not given to the grid here"))
                .note(rule)
                .help(format!("write it where blocks are bound: `bind {axis}: grid raster({axis}: {order});`")),
            RasterProblem::OtherOp => new(format!("this op does not bind `{axis}`"))
                .note("a raster names an axis that its own op gives to the grid")
                .help(format!("write it where `{axis}` is bound: `bind {axis}: grid raster({axis}: {order});`")),
            RasterProblem::Second { first } if is_descending => new(format!("`{axis}` is descending already"))
                .label(first, "here")
                .note(rule)
                .help("keep one of the two"),
            RasterProblem::Second { first } => new(format!("the blocks of `{stage}` have a raster already"))
                .label(first, "here")
                .note(rule)
                .help("keep one of the two"),
            RasterProblem::Last { before: Some(before) } => new(format!("no axis of the grid is after `{axis}`"))
                .note(rule)
                .note(format!("groups along `{axis}` alone change no order"))
                .help(format!("take groups along `{before}`, or `reorder` the two")),
            RasterProblem::Last { before: None } => new(format!("`{axis}` is the only axis of the grid"))
                .note(rule)
                .note(format!("groups along `{axis}` alone change no order"))
                .help(format!("remove the raster, or give the grid an axis after `{axis}`")),
            RasterProblem::Shared { host } => {
                let host = host.unwrap_or_default();
                new(format!("`{stage}` has no blocks of its own"))
                    .note(format!("it runs in the blocks of `{host}`, which say in which order they are taken"))
                    .help(format!("write the raster in the schedule of `{host}`"))
            }
        }
    }
}
