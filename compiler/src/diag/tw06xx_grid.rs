//! TW0611 and TW0612: the order in which blocks take the iterations of the grid, and blocks that take several.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

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
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for BadRaster {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, problem, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0611, span, title);
        let rule = "a raster takes the blocks of the grid in groups along one of its axes, for all iterations of the axes after it";
        match problem {
            RasterProblem::NotOfGrid => new(format!("`{axis}` is not given to the grid here"))
                .note(rule)
                .help(format!("write it where blocks are bound: `bind {axis}: grid raster({axis}: 8);`")),
            RasterProblem::OtherOp => new(format!("this op does not bind `{axis}`"))
                .note("a raster names an axis that its own op gives to the grid")
                .help(format!("write it where `{axis}` is bound: `bind {axis}: grid raster({axis}: 8);`")),
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

/// TW0612: a persistent launch that has one tile.
#[derive(Clone, Debug)]
pub struct OneTile {
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for OneTile {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0612, self.span, "no axis is given to the grid, so there is one tile".to_owned())
            .note("blocks of a persistent launch take the iterations of the grid in turn")
            .help("bind an axis: `bind …: grid;`")
            .help("or remove `persistent`")
    }
}
