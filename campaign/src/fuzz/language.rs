//! Broken kernels: tokens, syntax, names and types. What is said of them has places in the text, and its edits give
//! text again. Nothing is scheduled or lowered.

use proc_macro2::TokenStream;
use tilewright_compiler::diag::{Code, Diagnostics, Renderer};
use tilewright_compiler::source::{TokenBuffer, TokenMap, ast};
use tilewright_compiler::{program, syntax};

use super::{Answer, Original, Wrong, text};
use crate::rng::Rng;
use crate::{compose, generate, mutate};

/// What else stands in kernels.
const OF_STAGES: &[&str] = &[
    "unroll",
    "parallel",
    "tune",
    "in [64, 128]",
    "online",
    "ordered",
    "max",
    "argmax",
    "stage",
    "role",
    "let",
    "inline",
    "inout",
    "assert",
    "persistent",
    "alternate",
    "raster",
    "unsplit",
    "#[allow(TW0690)]",
    "as f16",
    "f32[M, N]",
    "..=",
    "&&",
    "!",
    "0x7f",
    "1e400",
    "-0.0",
    "'a",
    "\"s\"",
    "b'x'",
    "r#in",
    "_",
];

/// A kernel.
pub struct Source {
    text: String,
    words: Vec<&'static str>,
}

/// A kernel of one equation, a composition, a product or attention.
pub fn draw(rng: &mut Rng) -> Source {
    let text = match rng.below(4) {
        0 => generate::kernel(rng).to_string(),
        1 => compose::case(rng.bits(), 0).0.to_string(),
        2 => compose::products::product(rng).kernel().to_string(),
        _ => compose::attention::attention(rng.bits(), 0, None).0.to_string(),
    };
    Source { text, words: [mutate::WORDS, mutate::WORDS_OF_PRODUCTS, OF_STAGES].concat() }
}

impl Original for Source {
    fn input(&self, rng: &mut Rng) -> String {
        text::broken(&self.text, &self.words, rng)
    }

    fn judge(&self, input: &str) -> Result<Answer, Wrong> {
        let answer = read(input);
        // The library keeps every text that it has read, for its places.
        proc_macro2::extra::invalidate_current_thread_spans();
        answer
    }
}

fn read(input: &str) -> Result<Answer, Wrong> {
    let Ok(stream) = input.parse::<TokenStream>() else { return Ok("no tokens") };
    let (tokens, spans) = TokenBuffer::new(stream);
    let (parsed, mut diagnostics) = syntax::parse(&tokens);
    let is_parsed = !diagnostics.has_errors();
    for kernel in parsed.kernels.iter().filter(|_| is_parsed) {
        let mut found = Diagnostics::new();
        let is_built = program::build(kernel, &mut found).is_some();
        if is_built == found.has_errors() {
            return Err(("silent", format!("built: {is_built}, errors: {}", found.has_errors())));
        }
        diagnostics.append(found);
    }
    let kernels: Vec<&ast::Kernel> = parsed.kernels.iter().collect();
    diagnostics.resolve(&kernels, &tokens);
    let map = TokenMap { tokens: &tokens, spans: &spans, locate: |_| None };
    let report = Renderer::new(&map).report(&diagnostics.clone().finish());
    for finding in diagnostics.found() {
        if finding.code == Code::TW9001 {
            return Err(("internal", report));
        }
        for edit in finding.help.iter().filter_map(|help| help.edit.as_ref()) {
            let edited = edit.apply(&tokens);
            if edited.parse::<TokenStream>().is_err() {
                return Err(("edit-gives-no-tokens", format!("{report}\n{edited}")));
            }
        }
    }
    Ok(match (is_parsed, diagnostics.has_errors(), parsed.kernels.is_empty()) {
        (false, ..) => "refused by the syntax",
        (true, true, _) => "refused by names and types",
        (true, false, true) => "no kernel",
        (true, false, false) => "names and types are right",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an edit leaves alone is written as tokens that are tokens again: a lifetime is one word.
    #[test]
    fn edits_keep_lifetimes() {
        let text = "([][]'a[])([]){[]((([]))[])[]([](([[]])[])){()}schedulep}";
        assert_eq!(read(text), Ok("refused by the syntax"));
    }
}
