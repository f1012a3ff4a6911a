//! One kernel as Rust: a struct with the documented fields, thin methods, and one static of data.
//!
//! After an error the same public items are emitted with an empty kernel, so that callers do not cascade and editors
//! keep their completion.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use tilewright_compiler::Compiled;
use tilewright_compiler::source::{TokenBuffer, ast};
use tilewright_compiler::syntax::is_rust_name;
use tilewright_kernel::algorithm::Algorithm;
use tilewright_kernel::info::{KernelInfo, Launch, Ptx};
use tilewright_kernel::{ElementType, Size};

use crate::constant;

/// The items of one kernel; `krate` is the path of the crate `tilewright`.
pub fn kernel(krate: &TokenStream, kernel: &Compiled, tokens: &TokenBuffer, spans: &[Span]) -> TokenStream {
    let ast = &kernel.ast;
    let at = |span: tilewright_compiler::source::Span| {
        spans.get(span.first.0 as usize).copied().unwrap_or_else(Span::call_site)
    };
    let ident = |name: &ast::Name| match name.text.strip_prefix("r#") {
        Some(raw) => Ident::new_raw(raw, at(name.span)),
        // Refused already: the skeleton stays Rust, so that nothing more is said about it.
        None if !is_rust_name(&name.text) => Ident::new(&format!("{}_", name.text), at(name.span)),
        None => Ident::new(&name.text, at(name.span)),
    };
    let name = ident(&ast.name);
    // rustc shows the struct from its first token on.
    let keyword = Ident::new("struct", Span::call_site().located_at(at(ast.span)));
    let visibility = ast.visibility.as_ref().map(|v| tokens.to_stream(v.span, spans)).unwrap_or_default();
    let attributes = |list: &[ast::Attribute]| -> TokenStream {
        let kept = |a: &ast::Attribute| {
            let stream = tokens.to_stream(a.span, spans);
            if a.name.text == "allow" { without_codes(stream) } else { stream }
        };
        list.iter().map(kept).collect()
    };
    let docs = attributes(&ast.attributes);
    let facts = facts(ast, tokens);
    let mut fields = TokenStream::new();
    let mut arguments = TokenStream::new();
    let count = ast.inputs.len() + ast.outputs.len();
    let both = ast.inputs.iter().map(|p| (p, p.inout.is_some())).chain(ast.outputs.iter().map(|p| (p, true)));
    for (parameter, written) in both {
        let field = ident(&parameter.name);
        let docs = attributes(&parameter.attributes);
        let element = element(krate, parameter.ty.element.value);
        let (ty, argument) = match &parameter.ty.shape {
            None => (element, quote!(#krate::__private::Arg::scalar(&self.#field))),
            Some(shape) => {
                let rank = shape.dims.len();
                if written {
                    (
                        quote!(&'a mut (dyn #krate::Output<#element, #rank> + 'm)),
                        quote!(#krate::__private::Arg::output(self.#field)),
                    )
                } else {
                    (
                        quote!(&'a (dyn #krate::Input<#element, #rank> + 'm)),
                        quote!(#krate::__private::Arg::input(self.#field)),
                    )
                }
            }
        };
        let documented = documented(parameter, tokens);
        let docs = if docs.is_empty() { quote!(#[doc = #documented]) } else { docs };
        fields.extend(quote!(#docs #visibility #field: #ty,));
        arguments.extend(quote!(#argument,));
    }
    let failed = kernel.info.is_none();
    let info = kernel.info.clone().unwrap_or_else(|| empty(&ast.name.text));
    let constant = constant::kernel_info(krate, &info);
    let phantom = quote!(::core::marker::PhantomData<(&'a (), &'m ())>);
    // Lifetimes that no field uses, which only a kernel refused for having no outputs can have.
    let uses_lifetimes = ast.inputs.iter().chain(&ast.outputs).any(|p| p.ty.shape.is_some());
    let extra = if uses_lifetimes { quote!() } else { quote!(#[doc(hidden)] pub __lifetimes: #phantom,) };
    let arguments = if failed { quote!(loop {}) } else { quote!([#arguments]) };
    let allow = if failed {
        quote!(#[allow(unused_variables, unreachable_code, dead_code)])
    } else {
        quote!(#[allow(dead_code)])
    };
    quote! {
        #docs
        #facts
        #allow
        #visibility #keyword #name<'a, 'm> {
            #fields
            #extra
        }

        #allow
        impl<'m> #name<'_, 'm> {
            /// The compiled kernel: PTX, entry points, launch shape, facts, explanation.
            pub const KERNEL: &'static #krate::kernel::KernelInfo = #constant;

            /// Checks the arguments and launches; nothing is launched if a check fails.
            ///
            /// # Errors
            /// The first check that fails, with the values.
            pub fn launch(self, on: impl ::core::convert::AsRef<#krate::Stream>) -> #krate::Result<()> {
                #krate::__private::launch(Self::KERNEL, &self.arguments(), on.as_ref())
            }

            /// Checks the arguments once, for many launches.
            ///
            /// # Errors
            /// The first check that fails, with the values.
            pub fn prepare(self, on: impl ::core::convert::AsRef<#krate::Stream>) -> #krate::Result<#krate::Prepared<'m>> {
                #krate::__private::prepare(Self::KERNEL, &self.arguments(), on.as_ref())
            }

            /// Evaluates the algorithm on the host, without the schedule: the values that any admissible output takes.
            ///
            /// # Errors
            /// As [`launch`](Self::launch).
            pub fn reference(self) -> #krate::Result<#krate::Reference> {
                #krate::__private::reference(Self::KERNEL, &self.arguments())
            }

            fn arguments(self) -> [#krate::__private::Arg<'m>; #count] {
                #arguments
            }
        }

        #allow
        impl<'m> #krate::Kernel<'m> for #name<'_, 'm> {
            const INFO: &'static #krate::kernel::KernelInfo = Self::KERNEL;

            fn into_arguments(self) -> ::std::vec::Vec<#krate::__private::Arg<'m>> {
                ::std::vec::Vec::from(self.arguments())
            }
        }
    }
}

/// `#[allow(TW0690, dead_code)]` without the codes that the compiler has read; nothing if nothing is left for Rust.
fn without_codes(attribute: TokenStream) -> TokenStream {
    let mut trees: Vec<TokenTree> = attribute.into_iter().collect();
    let Some(TokenTree::Group(brackets)) = trees.pop() else { return trees.into_iter().collect() };
    let mut inside: Vec<TokenTree> = brackets.stream().into_iter().collect();
    let Some(TokenTree::Group(list)) = inside.pop() else { return quote!(#(#trees)* #brackets) };
    let is_comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
    let all: Vec<TokenTree> = list.stream().into_iter().collect();
    let entries = all.split(is_comma).filter(|e| !e.is_empty());
    let is_code =
        |e: &&[TokenTree]| matches!(e, [TokenTree::Ident(i)] if tilewright_compiler::allow::is_code(&i.to_string()));
    let kept: Vec<&[TokenTree]> = entries.filter(|e| !is_code(e)).collect();
    // A reason alone is no list of lints.
    if !kept.iter().any(|e| e.len() == 1 || matches!(e, [_, TokenTree::Punct(p), ..] if p.as_char() == ':')) {
        return TokenStream::new();
    }
    let kept = kept.iter().map(|e| e.iter().cloned().collect::<TokenStream>());
    quote!(#(#trees)* [#(#inside)* (#(#kept),*)])
}

/// The host type of an element.
fn element(krate: &TokenStream, element: ElementType) -> TokenStream {
    match element {
        // Rust has no such types; those of the runtime have the names of the language.
        ElementType::F16 | ElementType::Bf16 | ElementType::Tf32 | ElementType::E4m3 | ElementType::E5m2 => {
            let name = Ident::new(element.name(), Span::call_site());
            quote!(#krate::#name)
        }
        other => {
            let name = Ident::new(other.name(), Span::call_site());
            quote!(::core::primitive::#name)
        }
    }
}

/// What the documentation of a field without a doc comment says: its declaration.
fn documented(parameter: &ast::Param, tokens: &TokenBuffer) -> String {
    format!("`{}`", tokens.span_text(parameter.span))
}

/// The facts of a kernel as documentation: what callers must keep.
fn facts(kernel: &ast::Kernel, tokens: &TokenBuffer) -> TokenStream {
    if kernel.facts.is_empty() {
        return TokenStream::new();
    }
    let list: Vec<String> = kernel.facts.iter().map(|fact| format!("`{}`", tokens.span_text(fact.span))).collect();
    let text = format!("\n\nLaunches need {}.", list.join(", "));
    quote!(#[doc = #text])
}

/// A kernel that does nothing, for the skeleton after an error.
fn empty(name: &str) -> KernelInfo {
    KernelInfo {
        name: name.to_owned().into(),
        dims: Vec::new().into(),
        parameters: Vec::new().into(),
        solved: Vec::new().into(),
        facts: Vec::new().into(),
        requirements: Vec::new().into(),
        entries: Vec::new().into(),
        maps: Vec::new().into(),
        workspace: Vec::new().into(),
        arguments: Vec::new().into(),
        launch: Launch { blocks: Size::constant(0), threads: 1, cluster: 1, persistent: false, dependent: false },
        ptx: Ptx {
            text: String::new().into(),
            version: (7, 0),
            target: "sm_80".into(),
            capability: (8, 0),
            exact_capability: false,
            driver: (11, 0),
        },
        algorithm: Algorithm {
            indices: Vec::new().into(),
            values: Vec::new().into(),
            types: Vec::new().into(),
            axes: Vec::new().into(),
            index_lists: Vec::new().into(),
            axis_lists: Vec::new().into(),
            folds: Vec::new().into(),
            components: Vec::new().into(),
            equations: Vec::new().into(),
        },
        statements: Vec::new().into(),
        additions: Vec::new().into(),
        explanation: String::new().into(),
    }
}
