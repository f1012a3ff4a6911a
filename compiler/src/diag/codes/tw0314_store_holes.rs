//! TW0314: a staged output whose boxes hold elements of other instances.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;
use super::FilledHole;

row! {
    /// A box of a staged output that ends after the part that its instance computes, but inside the tensor, would write
    /// what the buffer happens to hold over elements of another instance. The condition is Theorem G, as for holes that
    /// are loaded.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
    ///     y[i] = x[i];
    ///     schedule y { split i by 96 -> b, t; bind b: grid; bind t: thread; }
    ///     stage ys[i] = y in shared at y.b via tma { box i by 64 -> c, e; }
    /// }
    /// ```
    ///
    /// The message shows the smallest sizes for which a box reaches into the next instance's part.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
    ///     y[i] = x[i];
    ///     schedule y { split i by 96 -> b, t; bind b: grid; bind t: thread; }
    ///     stage ys[i] = y in shared at y.b via tma { box i by 48 -> c, e; }
    /// }
    /// ```
    TW0314 "store-holes" Error "a staged output whose boxes hold elements of other instances"
}

/// TW0314: boxes of a staged output that hold elements of other instances.
#[derive(Clone, Debug)]
pub struct StoreHoles {
    /// The copy.
    pub copy: String,
    /// The axis with its box, and what an instance holds of it.
    pub boxed: Option<(String, i128, i128)>,
    /// The smallest case.
    pub witness: Option<FilledHole>,
    /// The box.
    pub span: Span,
    /// The copy.
    pub head: Span,
}

impl IntoDiagnostic for StoreHoles {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, boxed, witness, span, head } = self;
        let title = match witness {
            Some(_) => format!("`{copy}` would overwrite elements that its instance does not compute"),
            None => format!("could not prove that `{copy}` writes only elements that its instance computes"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0314, span, title);
        if span != head {
            diagnostic = diagnostic.label(head, "the copy");
        }
        diagnostic = diagnostic
            .note("the accelerator copies whole boxes to the tensor, and leaves out only what lies outside the tensor");
        if let Some(FilledHole { dims, axis, start, position, extent, end, .. }) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}the box of `{axis}` at {start} holds position {position}: not the instance's, whose part ends at {end}, but \
                 inside the tensor, which ends at {extent}",
                prefix(&dims)
            ));
        }
        match boxed {
            Some((axis, size, region)) if region % size != 0 => {
                diagnostic.help(format!("box `{axis}` by a divisor of {region}, which is what an instance computes"))
            }
            _ => diagnostic.help("let each thread store its elements: without `stage`"),
        }
    }
}
