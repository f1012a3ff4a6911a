//! Findings as tokens: an error is one `compile_error!`; a warning is the use of a deprecated constant, which is the
//! only way to warn on stable Rust.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use tilewright_compiler::diag::{Diagnostics, Level, Message, Renderer};
use tilewright_compiler::source::{SourceMap, Span};

/// Every finding, errors first.
pub fn messages(diagnostics: &Diagnostics, map: &dyn SourceMap, spans: &[proc_macro2::Span]) -> TokenStream {
    let report = diagnostics.clone().finish();
    Renderer::new(map).messages(&report).iter().map(|m| message(m, spans)).collect()
}

fn message(message: &Message, spans: &[proc_macro2::Span]) -> TokenStream {
    let text = &message.text;
    let (first, last) = ends(message.span, spans);
    match message.level {
        // rustc underlines from the first token of the path to the last of the call.
        Level::Error => {
            let path = quote_spanned!(first=> ::core::compile_error);
            let call = quote_spanned!(last=> { #text });
            quote!(#path ! #call)
        }
        Level::Warning => {
            let name: Ident = match message.code {
                Some(code) => {
                    let row = code.row();
                    format_ident!("{}_{}", row.code, row.name.replace('-', "_"), span = first)
                }
                None => format_ident!("more_warnings", span = first),
            };
            // The use sits at the user's token, the declaration does not.
            let declared = Ident::new(&name.to_string(), proc_macro2::Span::call_site());
            quote! {
                const _: () = {
                    #[deprecated(note = #text)]
                    #[allow(non_upper_case_globals)]
                    const #declared: () = ();
                    #name
                };
            }
        }
    }
}

/// First and last token of a span; the whole call for an unknown one.
fn ends(span: Span, spans: &[proc_macro2::Span]) -> (proc_macro2::Span, proc_macro2::Span) {
    let at = |id: u32| spans.get(id as usize).copied().unwrap_or_else(proc_macro2::Span::call_site);
    (at(span.first.0), at(span.last.0))
}
