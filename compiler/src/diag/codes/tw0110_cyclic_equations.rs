//! TW0110: equations that need each other.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Equations have no order, and none may need itself through the others. A recurrence along an axis is a `fold`.
    /// Its result is the last state: all states of a scan are a `fold` for each, which begins anew.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Cycle(x: f32[N]) -> (y: f32[N]) {
    ///     t[i] = y[i] + x[i];
    ///     y[i] = 0.5 * t[i];
    /// }
    /// ```
    ///
    /// The message lists the equations in the order in which they read each other.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Cycle(x: f32[N]) -> (y: f32[N]) {
    ///     t[i] = x[i] + x[i];
    ///     y[i] = 0.5 * t[i];
    /// }
    /// ```
    TW0110 "cyclic-equations" Error "equations that need each other"
}

/// TW0110: equations that need each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CyclicEquations {
    /// Each reads the next, the last one the first.
    pub names: Vec<String>,
    /// Their left-hand sides.
    pub spans: Vec<Span>,
    /// Of the only one: the read of one of its tensors by the value of another one, with their names.
    pub of_tuple: Option<(String, String, Span)>,
}

impl IntoDiagnostic for CyclicEquations {
    fn into_diagnostic(self) -> Diagnostic {
        let span = self.spans.first().copied().unwrap_or(Span::UNKNOWN);
        let quoted = |name: &String| format!("`{name}`");
        let first = self.names.first().map(quoted).unwrap_or_default();
        if let Some((reader, read, span_of_read)) = self.of_tuple {
            return Diagnostic::new(Code::TW0110, span_of_read, format!("`{reader}` reads `{read}` of its own equation"))
                .label(span, "defines both")
                .note("the values of a tuple are found at one time, and none reads another one")
                .help(format!("give `{read}` an equation of its own, or write its value in the place of the read"));
        }
        if self.names.len() == 1 {
            return Diagnostic::new(Code::TW0110, span, format!("{first} is defined by itself"))
                .note("equations have no order and no loop, and there is no scan yet")
                .help("a recurrence is a `fold`; over `|j in 0..=i|` it begins anew for each element");
        }
        const SHOWN: usize = 6;
        let mut chain: Vec<String> = self.names.iter().take(SHOWN).map(quoted).collect();
        if self.names.len() > SHOWN {
            chain.push("…".to_owned());
        }
        chain.push(first);
        let title = format!("equations need each other: {}", chain.join(" reads "));
        let mut diagnostic = Diagnostic::new(Code::TW0110, span, title);
        for (n, &place) in self.spans.iter().enumerate().skip(1).take(SHOWN - 1) {
            let next = &self.names[(n + 1) % self.names.len()];
            diagnostic = diagnostic.label(place, format!("reads `{next}`"));
        }
        diagnostic
    }
}
