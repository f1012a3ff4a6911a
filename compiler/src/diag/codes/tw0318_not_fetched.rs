//! TW0318: a stage that `cp.async` does not copy.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `via cp_async` lets threads copy elements of an input from device memory to shared memory while they go on. The
    /// instruction moves 4, 8 or 16 bytes as they are, between addresses that are multiples of that. What is computed,
    /// what is not in device memory, what the kernel writes itself, and elements that do not come to so many bytes are
    /// refused.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Rows(x: bf16[M, N]) -> (y: bf16[M, N]) where N % 8 == 0 {
    ///     y[i, j] = x[i, j];
    ///     launch threads(32);
    ///     schedule y {
    ///         split i by 4 -> io, is;
    ///         split j by 256 -> jo, jj;
    ///         split jj by 32 -> jr, t;
    ///         reorder io, jo, is, jr, t;
    ///         bind io, jo: grid;
    ///         bind t: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.is ring(3) via cp_async { split j by 32 -> jr, t; bind t: thread; }
    /// }
    /// ```
    ///
    /// An element of type `bf16` is 2 bytes. Vectors of 8 of them are 16.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Rows(x: bf16[M, N]) -> (y: bf16[M, N]) where N % 8 == 0 {
    ///     y[i, j] = x[i, j];
    ///     launch threads(32);
    ///     schedule y {
    ///         split i by 4 -> io, is;
    ///         split j by 256 -> jo, jj;
    ///         split jj by 32 -> jr, t;
    ///         reorder io, jo, is, jr, t;
    ///         bind io, jo: grid;
    ///         bind t: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.is ring(3) via cp_async { split j by 8 -> t, v; bind t: thread; vectorize v; }
    /// }
    /// ```
    ///
    /// Computed stages are written by the threads that compute them: remove `via cp_async`. They may have a `ring`,
    /// too.
    TW0318 "not-fetched" Error "a stage that `cp.async` does not copy"
}

/// Why threads cannot fetch what a stage holds.
#[derive(Clone, Debug)]
pub enum FetchProblem {
    /// It is computed.
    Computed,
    /// It copies this intermediate.
    Intermediate(String),
    /// It copies this tensor, which the kernel writes.
    Written(String),
    /// It is not in shared memory.
    Place,
    /// A thread would move so many bytes at once.
    Bytes {
        /// The element type.
        element: String,
        /// Bytes of what is moved at once.
        bytes: u32,
        /// The vectorised axis, if there is one, with its lanes.
        vector: Option<(String, i128)>,
        /// Whether its lanes are neighbours in the tensor and in the buffer, at a multiple of their length.
        whole: bool,
        /// The innermost axis.
        inner: Option<String>,
    },
}

/// TW0318: what `cp.async` does not copy.
#[derive(Clone, Debug)]
pub struct NotFetched {
    /// The stage.
    pub stage: String,
    /// What is wrong.
    pub problem: FetchProblem,
    /// The clause, or the vectorised axis.
    pub span: Span,
}

impl IntoDiagnostic for NotFetched {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, problem, span } = self;
        let moves = "`cp.async` moves 4, 8 or 16 bytes from device memory to shared memory, as they are";
        let diagnostic = |title: String| Diagnostic::new(Code::TW0318, span, title).note(moves);
        match problem {
            FetchProblem::Computed => diagnostic(format!("`{stage}` is computed, not copied"))
                .help("remove `via cp_async`; an input can be staged: `stage xs[..] = x in shared at .. via cp_async`"),
            FetchProblem::Intermediate(tensor) => {
                diagnostic(format!("`{stage}` copies `{tensor}`, which is not in device memory"))
                    .help("remove `via cp_async`: threads copy it")
            }
            FetchProblem::Written(tensor) => {
                diagnostic(format!("`{stage}` copies `{tensor}`, which the kernel writes"))
                    .note("a copy runs ahead of the threads, and may take what is not written yet")
                    .help("remove `via cp_async`: threads copy it when they come to it")
            }
            FetchProblem::Place => diagnostic(format!("`{stage}` is not in shared memory"))
                .help("put it `in shared`, or remove `via cp_async`: threads load it"),
            FetchProblem::Bytes { element, bytes, vector, whole, inner } => {
                let title =
                    format!("`{stage}` cannot be copied by {bytes} byte{} at once", if bytes == 1 { "" } else { "s" });
                let found = diagnostic(title);
                match (vector, whole) {
                    (Some((axis, lanes)), false) => found
                        .note(format!(
                            "the {lanes} lanes of `{axis}` are not known to be neighbours at a multiple of their length, in \
                             the tensor and in the buffer: each {element} would be a copy of its own"
                        ))
                        .help("vectorise the innermost axis of the copy, and state the fact that its rows are whole vectors"),
                    (Some((axis, lanes)), true) => found
                        .note(format!("{lanes} lanes of `{axis}` of {element} each are {bytes} bytes"))
                        .help(format!("let `{axis}` have a multiple of {} lanes", 4 * lanes / i128::from(bytes.max(1)))),
                    (None, _) => {
                        let (lanes, inner) = (4 / bytes.max(1), inner.unwrap_or_else(|| "j".to_owned()));
                        found.note(format!("each {element} is a copy of its own")).help(format!(
                            "vectorise: `split {inner} by {lanes} -> {inner}o, v; vectorize v;`, with as many lanes as come to 4, 8 or 16 bytes"
                        ))
                    }
                }
            }
        }
    }
}
