//! TW07: dependences, ownership, synchronisation.

use super::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0702: a reduction that nobody scheduled and that its readers would repeat.
#[derive(Clone, Debug)]
pub struct UnscheduledReduction {
    /// The intermediate.
    pub name: String,
    /// The reduction.
    pub span: Span,
    /// The left-hand side.
    pub head: Span,
}

impl IntoDiagnostic for UnscheduledReduction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, span, head } = self;
        Diagnostic::new(Code::TW0702, span, format!("the reduction of `{name}` has no schedule"))
            .label(head, format!("`{name}` is not an output"))
            .note(format!("an intermediate without a schedule is computed at every read, and `{name}` would be reduced again for each"))
            .change(
                Change::AppendStatement(format!("inline {name};")),
                format!("write `inline {name};` if that is what you want, or make `{name}` an output"),
            )
    }
}

/// TW0703: terms of a reduction given to different threads.
#[derive(Clone, Debug)]
pub struct BoundReduction {
    /// The reduction axis.
    pub axis: String,
    /// The `bind`.
    pub span: Span,
}

impl IntoDiagnostic for BoundReduction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, span } = self;
        Diagnostic::new(
            Code::TW0703,
            span,
            format!("`{axis}` is reduced over, and each thread would hold only a part of the result"),
        )
        .note("combining parts of different threads is `reduce`, which is not supported yet")
        .change(
            Change::RemoveOp(span),
            format!("leave `{axis}` unbound: each thread then reduces its own elements one after the other"),
        )
    }
}

/// TW0790: an output that another equation reads, and that is a reduction.
#[derive(Clone, Debug)]
pub struct ReducedAgain {
    /// The output.
    pub name: String,
    /// The stage that reads it.
    pub reader: String,
    /// The reduction.
    pub span: Span,
    /// The left-hand side of the reader.
    pub head: Span,
}

impl IntoDiagnostic for ReducedAgain {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, reader, span, head } = self;
        Diagnostic::new(
            Code::TW0790,
            span,
            format!("`{reader}` reduces the output `{name}` again for each of its elements"),
        )
        .label(head, format!("`{reader}` reads `{name}`"))
        .note("stages hand on no values yet: a tensor is computed where it is read, an output as well")
        .help("compute both in kernels of their own, where the second one reads the tensor that the first one wrote")
        .help("if repeating it is what you want, write `#[allow(TW0790)]` in front of the kernel")
    }
}
