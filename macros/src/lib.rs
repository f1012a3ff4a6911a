//! `schedule!`: tokens in, tokens out. The compiler decides; this crate resolves spans, renders findings and expands
//! kernels.
//!
//! Users reach the macro through the crate `tilewright`, whose `schedule!` puts `($crate)` before the tokens, so
//! that the expansion names that crate whatever it is called in the user's manifest.
//!
//! **Not for use on its own.** This crate is published because `tilewright` is made of it. Any version may change
//! anything here, and all crates of one version belong together.
#![forbid(unsafe_code)]

mod constant;
mod expand;
mod report;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use tilewright_compiler::compile_to;
use tilewright_compiler::diag::Code;
use tilewright_compiler::source::{Position, TokenBuffer, TokenMap};
use tilewright_compiler::trial::Depth;

/// Compiles the kernels inside. Call it as `tilewright::schedule!`.
#[doc(hidden)]
#[proc_macro]
pub fn __schedule(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let (krate, body) = split_crate(input.into());
    // The compiler has no state that a panic could leave broken: its input is only read.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| schedule(&krate, body)));
    result.unwrap_or_else(|payload| panicked(&*payload)).into()
}

/// The pages of the diagnostic codes, for `tilewright::errors`: a module of documentation for each code, and `PAGES`.
#[doc(hidden)]
#[proc_macro]
pub fn __error_pages(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let pages = Code::ALL.iter().map(|code| (code.row().code, code.row().page()));
    let (codes, pages): (Vec<&str>, Vec<String>) = pages.unzip();
    let modules = codes.iter().map(|code| format_ident!("{}", code.to_lowercase()));
    quote! {
        #(#[doc = #pages] pub mod #modules {})*

        /// Every code and its page, in order.
        const PAGES: &[(&str, &str)] = &[#((#codes, #pages)),*];
    }
    .into()
}

/// The path of the crate `tilewright` in front, and the rest.
fn split_crate(input: TokenStream) -> (TokenStream, TokenStream) {
    let mut tokens = input.into_iter();
    match tokens.next() {
        Some(TokenTree::Group(group)) => (group.stream(), tokens.collect()),
        first => (quote!(::tilewright), first.into_iter().chain(tokens).collect()),
    }
}

fn schedule(krate: &TokenStream, body: TokenStream) -> TokenStream {
    let (tokens, spans) = TokenBuffer::new(body);
    let outcome = compile_to(&tokens, Depth::Bounded);
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    let mut output = report::messages(&outcome.diagnostics, &map, &spans);
    for kernel in &outcome.kernels {
        output.extend(expand::kernel(krate, kernel, &tokens, &spans));
    }
    output
}

/// The place of a token, as rustc knows it.
fn locate(span: Span) -> Option<Position> {
    let span = span.unwrap();
    let (start, end) = (span.start(), span.end());
    Some(Position {
        file: span.file(),
        line: start.line(),
        column: start.column(),
        end_line: end.line(),
        end_column: end.column(),
    })
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> TokenStream {
    let what = (payload.downcast_ref::<&str>().copied())
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let text = format!(
        "[TW9001] the compiler panicked: {what}\n= note: this is a defect of the compiler, not of your kernel\n= help: please \
         report it with the kernel; tilewright {}",
        env!("CARGO_PKG_VERSION")
    );
    quote_spanned!(Span::call_site()=> ::core::compile_error! { #text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_words() {
        for payload in [std::panic::catch_unwind(|| panic!("no {}", 3)), std::panic::catch_unwind(|| panic!("no 3"))] {
            let payload = payload.expect_err("it panics");
            assert!(panicked(&*payload).to_string().contains("the compiler panicked: no 3"));
        }
    }
}
