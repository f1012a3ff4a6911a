//! TW0302: a split of a tensor map's view that leaves a remainder.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// The ops before the boxes say how the tensor is looked at: each axis of that view has one size and one stride,
    /// which is all that a tensor map can say. A split of such an axis therefore leaves no remainder. Boxes need not
    /// divide anything.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Rows(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 1024 -> o, n;
    ///         bind o: grid;
    ///         bind n: thread;
    ///     }
    ///     stage xs[i] = x in shared at y.o via tma {
    ///         split i by 32 -> a, b;
    ///         box a by 32 -> ac, ab;
    ///         box b by 32 -> bc, bb;
    ///     }
    /// }
    /// ```
    ///
    /// The message names the smallest size that leaves a remainder.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Rows(x: f32[N]) -> (y: f32[N]) where N % 1024 == 0 {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 1024 -> o, n;
    ///         bind o: grid;
    ///         bind n: thread;
    ///     }
    ///     stage xs[i] = x in shared at y.o via tma {
    ///         split i by 32 -> a, b;
    ///         box a by 32 -> ac, ab;
    ///         box b by 32 -> bc, bb;
    ///     }
    /// }
    /// ```
    TW0302 "view-split" Error "a split of a tensor map's view that leaves a remainder"
}

/// TW0302: a split of the view of a tensor that leaves a remainder.
#[derive(Clone, Debug)]
pub struct ViewSplit {
    /// The tensor.
    pub tensor: String,
    /// The axis's extent.
    pub extent: String,
    /// The factor.
    pub factor: i128,
    /// The smallest failing sizes, and the extent there.
    pub witness: Option<(Assignment, i128)>,
    /// A fact that makes it right.
    pub fact: Option<String>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for ViewSplit {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, extent, factor, witness, fact, span } = self;
        let title = match (&witness, extent.bytes().all(|b| b.is_ascii_digit())) {
            (Some(_), true) => {
                format!("this view of `{tensor}` has no one size: {extent} is not a multiple of {factor}")
            }
            (Some(_), false) => {
                format!("this view of `{tensor}` has no one size: {extent} is not known to be a multiple of {factor}")
            }
            (None, _) => format!("could not prove that {extent} is a multiple of {factor}, which this view needs"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0302, span, title)
            .note("a tensor map has one size and one stride for each axis: a split before a box leaves no remainder");
        if let Some((dims, value)) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}{value} elements make {} rows of {factor} and one of {}",
                prefix(&dims),
                value.div_euclid(factor),
                value.rem_euclid(factor)
            ));
        }
        match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
        .help(format!("use `box … by {factor}` for a part of an axis: boxes need not divide anything"))
    }
}
