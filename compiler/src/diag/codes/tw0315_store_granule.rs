//! TW0315: a staged output whose rows are not known to be multiples of 16 bytes.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// Along its innermost axis the accelerator writes 16 bytes at a time, also where the tensor ends inside them. What
    /// lies after the end of a row would be overwritten.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i];
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     stage ys[i] = y in shared at y.b via tma { box i by 128 -> c, e; }
    /// }
    /// ```
    ///
    /// The message shows the smallest size for which bytes after a row are written, and the fact that mends it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
    ///     y[i] = x[i];
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     stage ys[i] = y in shared at y.b via tma { box i by 128 -> c, e; }
    /// }
    /// ```
    TW0315 "store-granule" Error "a staged output whose rows are not known to be multiples of 16 bytes"
}

/// TW0315: rows of an output that end inside the 16 bytes that the accelerator writes at once.
#[derive(Clone, Debug)]
pub struct StoreGranule {
    /// The output.
    pub tensor: String,
    /// The innermost axis.
    pub axis: String,
    /// Its size.
    pub size: String,
    /// What it must be a multiple of, in elements.
    pub multiple: i128,
    /// The smallest failing sizes, and the bytes of a row.
    pub witness: Option<(Assignment, i128)>,
    /// A fact that makes it right.
    pub fact: Option<String>,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for StoreGranule {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, axis, size, multiple, witness, fact, span } = self;
        let title = match witness {
            Some(_) => format!(
                "a copy to `{tensor}` would write past its rows: {size} is not known to be a multiple of {multiple}"
            ),
            None => format!(
                "could not prove that {size} is a multiple of {multiple}, without which a copy to `{tensor}` writes past its rows"
            ),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0315, span, title).note(format!(
            "along `{axis}` the accelerator writes 16 bytes at a time, also where the tensor ends inside them"
        ));
        if let Some((dims, bytes)) = witness {
            let behind = 16 - bytes.rem_euclid(16);
            diagnostic = diagnostic
                .counterexample(format!("{}a row is {bytes} bytes: {behind} after it are overwritten", prefix(&dims)));
        }
        match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
        .help("or let each thread store its elements: without `stage`")
    }
}
