//! Source text to an outcome; a panic of the compiler is an outcome too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_compiler::diag::{Diagnostic, Level, Renderer};
use tilewright_compiler::lower::Entry;
use tilewright_compiler::source::{TokenBuffer, TokenMap};
use tilewright_kernel::KernelInfo;

/// What became of a source text with one kernel.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Compiled: the kernel, and its entry points as loop programs.
    Accepted(Box<KernelInfo>, Vec<Entry>),
    /// Refused, with the errors and the rendered report.
    Refused(Vec<Error>, String),
    /// The compiler panicked.
    Panicked(String),
    /// The text is not even Rust tokens.
    NotTokens,
}

/// An error, and the places that it names as they were written, without spaces: the deciding one first.
#[derive(Clone, Debug)]
pub struct Error {
    /// The finding.
    pub found: Diagnostic,
    /// The source at its places.
    pub places: Vec<String>,
    /// The kernel after each proposed edit, with what is proposed.
    pub edited: Vec<(String, String)>,
}

/// The message of a caught panic.
pub fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no message)").to_owned()
}

/// Compiles a text.
pub fn compile(source: &str) -> Outcome {
    let Ok(stream) = source.parse() else { return Outcome::NotTokens };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let (tokens, spans) = TokenBuffer::new(stream);
        let mut outcome = tilewright_compiler::compile(&tokens);
        let map = TokenMap { tokens: &tokens, spans: &spans, locate: |_| None };
        let report = Renderer::new(&map).report(&outcome.diagnostics.clone().finish());
        if outcome.diagnostics.has_errors() {
            let text = |span| tokens.span_text(span).replace(' ', "");
            let error = |d: &Diagnostic| {
                let places = std::iter::once(d.primary).chain(d.labels.iter().map(|l| l.0)).map(text).collect();
                let edits = d.help.iter().filter_map(|h| Some((h.text.clone(), h.edit.as_ref()?.apply(&tokens))));
                Error { found: d.clone(), places, edited: edits.collect() }
            };
            let errors = outcome.diagnostics.found().iter().filter(|d| d.level == Level::Error).map(error).collect();
            return Outcome::Refused(errors, report);
        }
        match outcome.kernels.pop().and_then(|k| Some((k.info?, k.entries))) {
            Some((info, entries)) => Outcome::Accepted(Box::new(info), entries),
            None => Outcome::Panicked("no error and no kernel".to_owned()),
        }
    }));
    result.unwrap_or_else(|payload| Outcome::Panicked(message(&*payload)))
}
