//! TW0011: an `allow` that silences nothing.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `#[allow(TW…)]` before a kernel silences warnings of that kernel, by their codes. A code that does not exist,
    /// one of an error, or one of a warning that the kernel does not have silences nothing.
    ///
    /// A warning: the attribute says something about the kernel that is not so.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// #[allow(TW0690)]
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// No thread of this kernel is idle.
    ///
    /// ## Right
    ///
    /// ```text
    /// #[allow(TW0690)]
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(256);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Notes
    ///
    /// - Several codes, and lints of Rust, may stand in one list: `#[allow(TW0690, TW0112, non_snake_case)]`. What is
    ///   not a code goes to the generated struct.
    /// - Errors cannot be allowed.
    TW0011 "useless-allow" Warning "an `allow` that silences nothing"
}

/// Why an `allow` silences nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UselessReason {
    /// There is no such code.
    Unknown {
        /// A warning's code that is close.
        suggestion: Option<String>,
    },
    /// The code is an error's.
    Error,
    /// The kernel has no such warning.
    Absent,
}

/// TW0011: `#[allow(TW…)]` without an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UselessAllow {
    /// The code.
    pub code: String,
    /// Why.
    pub reason: UselessReason,
    /// Its token.
    pub span: Span,
}

impl IntoDiagnostic for UselessAllow {
    fn into_diagnostic(self) -> Diagnostic {
        let UselessAllow { code, reason, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0011, span, title);
        match reason {
            UselessReason::Unknown { suggestion: Some(meant) } => {
                let text = format!("did you mean `{meant}`?");
                new(format!("there is no diagnostic `{code}` to allow")).replace(span, meant, text)
            }
            UselessReason::Unknown { suggestion: None } => {
                new(format!("there is no diagnostic `{code}` to allow")).help("`tilewright explain` lists all of them")
            }
            UselessReason::Error => new(format!("`{code}` is an error, and errors cannot be allowed"))
                .help(format!("`tilewright explain {code}` shows what to change")),
            UselessReason::Absent => {
                new(format!("this kernel has no warning `{code}` to allow")).help(format!("remove `{code}`"))
            }
        }
    }
}
