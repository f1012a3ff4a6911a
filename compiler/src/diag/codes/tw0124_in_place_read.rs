//! TW0124: an element updated in place that somebody else reads.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An `inout` tensor is overwritten while the kernel runs, in no particular order. So element `i` may be read only
    /// by the equation that defines it, at element `i`: then every read sees the value from before the launch.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Smooth(inout x: f32[N]) -> () {
    ///     x[i] = 0.5 * x[i] + 0.5 * (x[i + 1] or 0.0);
    /// }
    /// ```
    ///
    /// The counterexample names an element, the element that it reads, and who overwrites that one.
    ///
    /// An intermediate may read element `i` for it, if it has no schedule, and if that equation alone reads it, at
    /// element `i`: it is computed there. Several tensors that need each other's old elements are defined by one
    /// equation: `(p, m)[i] = (p[i] - 0.1 * m[i], 0.9 * m[i] + g[i]);`.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Smooth(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 0.5 * x[i] + 0.5 * (x[i + 1] or 0.0);
    /// }
    /// ```
    TW0124 "in-place-read" Error "an element updated in place that somebody else reads"
}

/// Who reads an in-place tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InPlaceReader {
    /// An equation that does not define it.
    OtherEquation {
        /// The equation that does.
        writer: Span,
        /// If that reads the element that it defines itself: the tensors of one equation that would define them all,
        /// and its axes.
        together: Option<(Vec<String>, Vec<String>)>,
    },
    /// Its own equation, at another element than the one it writes.
    OtherElement {
        /// The axes of the equation.
        axes: Vec<String>,
        /// A point and the element read there.
        witness: Option<(Vec<i64>, Vec<i64>)>,
        /// The left-hand side.
        writer: Span,
    },
}

/// TW0124: an element updated in place that somebody else reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlaceRead {
    /// The tensor.
    pub tensor: String,
    /// Who reads it.
    pub reader: InPlaceReader,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for InPlaceRead {
    fn into_diagnostic(self) -> Diagnostic {
        let InPlaceRead { tensor, reader, span } = self;
        let title = format!("`{tensor}` is updated in place, and this read may see the new value");
        let diagnostic = Diagnostic::new(Code::TW0124, span, title)
            .note(
                "an element that is updated in place is read by its own definition only, before it is written; \
                 or by an intermediate without a schedule that only this definition reads, at that element",
            );
        let help = format!("write to another tensor: `-> (out: …)` instead of `inout {tensor}`");
        match reader {
            InPlaceReader::OtherEquation { writer, together } => {
                let diagnostic = diagnostic.label(writer, format!("`{tensor}` is written here"));
                let help = match together {
                    Some((names, axes)) => format!(
                        "define them by one equation, whose values are found before any is written: \
                         `({})[{}] = ({});`; or {help}",
                        names.join(", "),
                        axes.join(", "),
                        vec!["…"; names.len()].join(", "),
                    ),
                    None => help,
                };
                diagnostic.help(help)
            }
            InPlaceReader::OtherElement { axes, witness, writer } => {
                let diagnostic = diagnostic.label(writer, format!("`{tensor}` is written here"));
                let own = format!("`{tensor}[{}]`", axes.join(", "));
                let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                let diagnostic = match witness {
                    Some((point, read)) => {
                        let at: Vec<String> =
                            axes.iter().zip(&point).map(|(axis, v)| format!("{axis} = {v}")).collect();
                        let writers: Vec<String> =
                            axes.iter().zip(&read).map(|(axis, v)| format!("{axis} = {v}")).collect();
                        diagnostic.counterexample(format!(
                            "{} reads {tensor}[{}], which {} writes",
                            at.join(", "),
                            list(&read),
                            writers.join(", ")
                        ))
                    }
                    None => diagnostic,
                };
                diagnostic.help(format!("read {own} only, or {help}"))
            }
        }
    }
}
