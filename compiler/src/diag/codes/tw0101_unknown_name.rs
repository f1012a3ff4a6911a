//! TW0101: a name that nothing defines.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::suggest::closest;
use crate::source::Span;

row! {
    /// A tensor, scalar, axis or function has to be defined where it is used. Tensors are parameters or the left-hand
    /// side of an equation; axes are named by the left-hand side and by reductions; sizes are the UPPERCASE names of
    /// the shapes.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(xs: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    ///
    /// The message lists the names that are valid there, and the closest one.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(xs: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * xs[i];
    /// }
    /// ```
    TW0101 "unknown-name" Error "a name that nothing defines"
}

/// `did you mean` with the edit.
fn meant(diagnostic: Diagnostic, span: Span, suggestion: Option<String>) -> Diagnostic {
    match suggestion {
        Some(name) => {
            let text = format!("did you mean `{name}`?");
            diagnostic.replace(span, name, text)
        }
        None => diagnostic,
    }
}

/// TW0101: a name that nothing defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What it should name: `tensor`, `axis of y`, `role`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Where it is used.
    pub span: Span,
    /// The names that are valid there, in the order of their definition.
    pub known: Vec<String>,
}

impl IntoDiagnostic for UnknownName {
    fn into_diagnostic(self) -> Diagnostic {
        const SHOWN: usize = 12;
        let UnknownName { kind, name, span, known } = self;
        let mut diagnostic = Diagnostic::new(Code::TW0101, span, format!("there is no {kind} `{name}`"));
        if !known.is_empty() {
            let mut list: Vec<String> = known.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
            if known.len() > SHOWN {
                list.push(format!("{} more", known.len() - SHOWN));
            }
            diagnostic = diagnostic.note(format!("known here: {}", list.join(", ")));
        }
        let closest = closest(&name, known.iter().map(String::as_str));
        let foreign = match name.as_str() {
            "block" | "blocks" | "blockIdx" | "program" => Some("grid"),
            "lane" | "lanes" | "threadIdx" => Some("thread"),
            _ => None,
        };
        let suggestion = closest.or(foreign.filter(|word| known.iter().any(|k| k == word)));
        meant(diagnostic, span, suggestion.map(str::to_owned))
    }
}

/// TW0101: a role in a launch that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoles {
    /// The name after `by`.
    pub name: String,
    /// Where it is used.
    pub span: Span,
}

impl IntoDiagnostic for NoRoles {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, span } = self;
        Diagnostic::new(Code::TW0101, span, format!("there is no role `{name}`: the launch has none"))
            .note("roles are ranges of the warps of a block, which run different stages at one time")
            .help(format!("write `launch roles {{ {name}: n warp, … }};`, or leave `by {name}` out"))
    }
}

/// TW0101: a function that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFunction {
    /// The name as written.
    pub name: String,
    /// A known function that is close.
    pub suggestion: Option<String>,
    /// Whether it is the name of a reduction, which names its axes.
    pub reduction: bool,
    /// All functions.
    pub known: Vec<&'static str>,
    /// The name's tokens.
    pub span: Span,
}

impl IntoDiagnostic for UnknownFunction {
    fn into_diagnostic(self) -> Diagnostic {
        if self.reduction {
            let name = self.name;
            return Diagnostic::new(Code::TW0101, self.span, format!("`{name}` is a reduction, not a function"))
                .help(format!("name the axes that it runs over: `{name}(|k| …)`"));
        }
        let diagnostic = Diagnostic::new(Code::TW0101, self.span, format!("there is no function `{}`", self.name))
            .note(format!("functions: {}", self.known.join(", ")));
        meant(diagnostic, self.span, self.suggestion)
    }
}
