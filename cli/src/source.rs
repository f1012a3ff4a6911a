//! Rust files: finding the `schedule!` invocations in one, compiling them, and reporting at the places in the file.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use tilewright_compiler::diag::Renderer;
use tilewright_compiler::source::{Position, Span, TokenBuffer, TokenMap, locate};
use tilewright_compiler::trial::Tally;
use tilewright_compiler::{Compiled, Outcome, compile};

use crate::prove;

/// Largest file that is read, in bytes.
pub const LARGEST_FILE: u64 = 8 << 20;
/// Deepest nesting of brackets; what is deeper would exhaust the stack of the Rust parser.
pub const DEEPEST: usize = 256;

/// A file and what its kernels became.
#[derive(Debug)]
pub struct SourceFile {
    /// As given.
    pub path: String,
    /// In source order.
    pub invocations: Vec<Invocation>,
}

/// One `schedule! { … }`.
pub struct Invocation {
    /// Line of the call, from 1.
    pub line: usize,
    /// Column of the call, from 1.
    pub column: usize,
    /// What it was compiled to.
    pub outcome: Outcome,
    tokens: TokenBuffer,
    /// The place of each token.
    pub(crate) spans: Vec<proc_macro2::Span>,
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schedule! at {}:{} with {} kernels", self.line, self.column, self.outcome.kernels.len())
    }
}

/// A kernel and where it is written.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Line of its `schedule!`, from 1.
    pub line: usize,
    /// The kernel.
    pub kernel: &'a Compiled,
}

/// What rustc would say about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The text, empty if there is nothing to say.
    pub text: String,
    /// Number of errors.
    pub errors: usize,
    /// Number of warnings.
    pub warnings: usize,
}

/// A file that could not be looked into.
#[derive(Debug)]
pub enum SourceError {
    /// It cannot be read.
    Read {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is larger than [`LARGEST_FILE`].
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// It is not Rust.
    Parse {
        /// The file.
        path: String,
        /// Line from 1.
        line: usize,
        /// Column from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, error } => write!(f, "{path}: {error}"),
            Self::TooLarge { path, bytes } => write!(f, "{path}: {bytes} bytes; files have at most {LARGEST_FILE}"),
            Self::Parse { path, line, column, message } => {
                write!(f, "{path}:{line}:{column}: not valid Rust: {message}")
            }
        }
    }
}

impl std::error::Error for SourceError {}

impl Invocation {
    /// The tokens between its braces.
    pub(crate) fn tokens(&self) -> &TokenBuffer {
        &self.tokens
    }
}

impl SourceFile {
    /// Reads a file and compiles its kernels.
    ///
    /// # Errors
    /// The file cannot be read or is not Rust. What is wrong with kernels is in [`SourceFile::findings`].
    pub fn read(path: &str) -> Result<Self, SourceError> {
        let failed = |error| SourceError::Read { path: path.to_owned(), error };
        let bytes = std::fs::metadata(Path::new(path)).map_err(failed)?.len();
        if bytes > LARGEST_FILE {
            return Err(SourceError::TooLarge { path: path.to_owned(), bytes });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Self::parse(path, &text)
    }

    /// Compiles the kernels in the text of a file.
    ///
    /// # Errors
    /// [`SourceError::Parse`].
    pub fn parse(path: &str, text: &str) -> Result<Self, SourceError> {
        let refuse = |error: &syn::Error| {
            let start = error.span().start();
            let message = error.to_string();
            SourceError::Parse { path: path.to_owned(), line: start.line, column: start.column + 1, message }
        };
        // The lexer keeps its own stack; the parser does not.
        let tokens = without_shebang(text);
        let tokens = TokenStream::from_str(&tokens).map_err(|error| {
            let message = "a bracket without its partner, a string without its end, or no token of Rust";
            refuse(&syn::Error::new(error.span(), message))
        })?;
        if let Some(place) = too_deep(tokens) {
            let message = format!("brackets are nested deeper than {DEEPEST}");
            return Err(refuse(&syn::Error::new(place, message)));
        }
        let file = syn::parse_file(text).map_err(|error| refuse(&error))?;
        let mut finder = Finder { found: Vec::new() };
        finder.visit_file(&file);
        Ok(Self { path: path.to_owned(), invocations: finder.found })
    }

    /// Shows every kernel to the separate checker at full strength; one that is wrong after all is an error of its
    /// `schedule!`.
    pub fn prove(&mut self) -> Tally {
        let mut tally = Tally::default();
        for invocation in &mut self.invocations {
            let outcome = &mut invocation.outcome;
            for at in 0..outcome.kernels.len() {
                let kernel = &outcome.kernels[at];
                let Some(info) = &kernel.info else { continue };
                match prove::at_all_sizes(info, &kernel.entries, prove::WORK) {
                    Ok(found) => tally += found,
                    Err(wrong) => outcome.take_back(at, &wrong),
                }
            }
        }
        tally
    }

    /// Every kernel that could be parsed, in source order.
    pub fn kernels(&self) -> impl Iterator<Item = Found<'_>> {
        self.invocations.iter().flat_map(|i| i.outcome.kernels.iter().map(|kernel| Found { line: i.line, kernel }))
    }

    /// What rustc would say about the kernels of the file.
    pub fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        for invocation in &self.invocations {
            let report = invocation.outcome.diagnostics.clone().finish();
            findings.errors += report.errors.len() + report.more_errors;
            findings.warnings += report.warnings.len() + report.more_warnings;
            let mut shown = report.errors.iter().chain(&report.warnings);
            if shown.any(|d| d.primary == Span::UNKNOWN) {
                let Invocation { line, column, .. } = invocation;
                findings.text.push_str(&format!("in `schedule!` at {}:{line}:{column}:\n", self.path));
            }
            let place = |span| locate(span).map(|p| Position { file: self.path.clone(), ..p });
            let map = TokenMap { tokens: &invocation.tokens, spans: &invocation.spans, locate: place };
            findings.text.push_str(&Renderer::new(&map).report(&report));
        }
        findings
    }
}

/// The text with byte order mark and `#!` line blanked, as rustc ignores them; places stay.
fn without_shebang(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with("#!") && !text[2..].trim_start().starts_with('[') {
        let line = text.find('\n').unwrap_or(text.len());
        return text[line..].to_owned();
    }
    text.to_owned()
}

/// The place of a bracket that is nested too deeply.
fn too_deep(stream: TokenStream) -> Option<proc_macro2::Span> {
    let mut open = vec![(stream.into_iter(), 1)];
    while let Some((tokens, depth)) = open.last_mut() {
        let depth = *depth;
        match tokens.next() {
            Some(TokenTree::Group(group)) if depth > DEEPEST => return Some(group.span_open()),
            Some(TokenTree::Group(group)) => open.push((group.stream().into_iter(), depth + 1)),
            Some(_) => {}
            None => {
                open.pop();
            }
        }
    }
    None
}

struct Finder {
    found: Vec<Invocation>,
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.segments.last().is_some_and(|s| s.ident == "schedule") {
            let start = call.path.span().start();
            let (tokens, spans) = TokenBuffer::new(call.tokens.clone());
            let outcome = compile(&tokens);
            self.found.push(Invocation { line: start.line, column: start.column + 1, outcome, tokens, spans });
        }
        visit::visit_macro(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invocations_are_found_wherever_they_stand() {
        let kernel = |name: &str| {
            format!("kernel {name}(x: f32[N]) -> (y: f32[N]) {{ y[i] = x[i]; schedule y {{ bind i: grid; }} }}")
        };
        let text = format!(
            "#!/usr/bin/env run\nuse tilewright::schedule;\nschedule! {{ {} }}\nmod a {{ tilewright::schedule! {{ {} }} }}\n\
             fn f() {{ t::schedule!({}); }}\nmacro_rules! schedule {{ () => {{ schedule! {{ }} }} }}\n",
            kernel("A"),
            kernel("B"),
            kernel("C")
        );
        let file = SourceFile::parse("f.rs", &text).unwrap();
        let found: Vec<_> = file.kernels().map(|f| (f.line, f.kernel.ast.name.text.to_string())).collect();
        assert_eq!(found, [(3, "A".to_owned()), (4, "B".to_owned()), (5, "C".to_owned())]);
    }

    #[test]
    fn what_is_not_rust_has_a_place() {
        let error = SourceFile::parse("f.rs", "fn f() {\n    let = 3;\n}").unwrap_err();
        assert!(matches!(error, SourceError::Parse { line: 2, column: 9, .. }), "{error}");
        let error = SourceFile::parse("f.rs", "fn f() {\n  \"open").unwrap_err();
        assert!(matches!(error, SourceError::Parse { .. }), "{error}");
        let deep = format!("const X: u8 = {}0{};", "(".repeat(100_000), ")".repeat(100_000));
        let error = SourceFile::parse("f.rs", &deep).unwrap_err();
        assert!(error.to_string().contains("nested deeper than 256"), "{error}");
    }
}
