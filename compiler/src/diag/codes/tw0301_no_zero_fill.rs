//! TW0301: holes that a copy cannot fill with zeros.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// The accelerator writes zeros for positions outside the tensor, and for no others. A tile with an element stride
    /// that does not divide its box has slots outside the box; where these lie inside the tensor, they hold its
    /// elements. `fill zero` demands that every slot outside the region of an instance is zero.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel StridedColumns(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
    ///     y[m] = sum(|k| x[k, m]);
    ///     schedule y {
    ///         split m by 32 -> mo, mi;
    ///         split k by 15 -> ko, ki;
    ///         reorder mo, ko, mi, ki;
    ///         bind mo: grid;
    ///         bind mi: thread;
    ///     }
    ///     stage xs[k, m] = x in shared at y.ko via tma {
    ///         box k by 15 -> kc, kb;
    ///         tile kb by 4 -> kt, ks;
    ///         box m by 32 -> mc, mb;
    ///         fill zero;
    ///     }
    /// }
    /// ```
    ///
    /// The message shows the smallest sizes for which a slot holds an element outside the region.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel StridedColumns(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
    ///     y[m] = sum(|k| x[k, m]);
    ///     schedule y {
    ///         split m by 32 -> mo, mi;
    ///         split k by 15 -> ko, ki;
    ///         reorder mo, ko, mi, ki;
    ///         bind mo: grid;
    ///         bind mi: thread;
    ///     }
    ///     stage xs[k, m] = x in shared at y.ko via tma {
    ///         box k by 15 -> kc, kb;
    ///         tile kb by 3 -> kt, ks;
    ///         box m by 32 -> mc, mb;
    ///         fill zero;
    ///     }
    /// }
    /// ```
    TW0301 "no-zero-fill" Error "holes that a copy cannot fill with zeros"
}

/// An element that a hole of a buffer holds: sizes, and where it stands.
#[derive(Clone, Debug)]
pub struct FilledHole {
    /// Sizes.
    pub dims: Assignment,
    /// The axis that makes it a hole.
    pub axis: String,
    /// Where the box starts along it.
    pub start: i128,
    /// The phase of the copy.
    pub phase: i128,
    /// The slot of its tile.
    pub slot: i128,
    /// The position that the slot holds.
    pub position: i128,
    /// The axis's extent.
    pub extent: i128,
    /// One past the last position of the box that was asked for.
    pub end: i128,
}

/// TW0301: `fill zero` where the accelerator loads elements into holes.
#[derive(Clone, Debug)]
pub struct NoZeroFill {
    /// The copy.
    pub copy: String,
    /// An axis whose element stride does not divide its box: its name, the stride and the box.
    pub strided: Option<(String, i128, i128)>,
    /// The smallest case.
    pub witness: Option<FilledHole>,
    /// The `fill` op.
    pub span: Span,
    /// The box or tile that makes the holes.
    pub cause: Span,
}

impl IntoDiagnostic for NoZeroFill {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, strided, witness, span, cause } = self;
        let why = match &strided {
            Some((axis, stride, size)) => {
                format!("the element stride {stride} of `{axis}` does not divide its box of {size}")
            }
            None => "a box may hold elements beside those that are read".to_owned(),
        };
        let title = match witness {
            Some(_) => format!("the holes of `{copy}` cannot all be zero: {why}"),
            None => format!("could not prove that the holes of `{copy}` are zero: {why}"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0301, span, title)
            .label(cause, "this makes slots that nothing reads")
            .note("the accelerator writes zeros only for positions outside the tensor, not for those outside a box");
        if let Some(FilledHole { dims, axis, start, phase, slot, position, extent, end }) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}the box of `{axis}` at {start}, phase {phase}, slot {slot} is position {position}: outside the region, \
                 which ends at {end}, but inside the tensor, which ends at {extent}",
                prefix(&dims)
            ));
        }
        let without = "remove `fill zero`: readers never look into holes";
        match &strided {
            Some((axis, _, _)) => diagnostic
                .help(format!("tile `{axis}` by a stride that divides its box, or box it by a multiple of its stride"))
                .change(Change::RemoveOp(span), format!("or {without}")),
            None => diagnostic.change(Change::RemoveOp(span), without),
        }
    }
}
