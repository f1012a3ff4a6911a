//! Time that `schedule!` adds to a build: one call of `compile_to` for each kernel of the examples, and its phases.
//!
//! `cargo bench --bench expansion --profile test` measures a build in which macros are optimised a little (the compiler
//! at opt-level 1), `--profile dev` one without.

use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;

use divan::{Bencher, black_box};
use proc_macro2::TokenStream;
use tilewright_compiler::compile_to;
use tilewright_compiler::source::TokenBuffer;
use tilewright_compiler::syntax;
use tilewright_compiler::trial::Depth;

/// A `schedule!` of an example: the example's name and the text inside the braces.
static INVOCATIONS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut found = Vec::new();
    let entries = std::fs::read_dir(&folder).expect("examples");
    for path in entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "rs")) {
        let text = std::fs::read_to_string(&path).expect("an example");
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = syn_free::invocations(&text);
        found.extend(file.into_iter().map(|body| (name.clone(), body)));
    }
    found.sort();
    found
});

/// Finds the invocations without a parser of Rust: the examples are ours.
mod syn_free {
    use super::*;
    use proc_macro2::TokenTree;

    pub fn invocations(text: &str) -> Vec<String> {
        let tokens: Vec<TokenTree> = TokenStream::from_str(text).expect("Rust").into_iter().collect();
        let calls = tokens.windows(3).filter_map(|w| match w {
            [TokenTree::Ident(name), TokenTree::Punct(bang), TokenTree::Group(body)]
                if name == "schedule" && bang.as_char() == '!' =>
            {
                Some(body.stream().to_string())
            }
            _ => None,
        });
        calls.collect()
    }
}

fn names() -> Vec<&'static str> {
    INVOCATIONS.iter().map(|(name, _)| name.as_str()).collect()
}

fn tokens(name: &str) -> TokenStream {
    let (_, text) = INVOCATIONS.iter().find(|(n, _)| n == name).expect("an example");
    TokenStream::from_str(text).expect("tokens")
}

/// From tokens to PTX.
#[divan::bench(args = names())]
fn compile_kernel(bencher: Bencher<'_, '_>, name: &str) {
    let stream = tokens(name);
    bencher.bench_local(|| {
        let (tokens, _) = TokenBuffer::new(black_box(stream.clone()));
        let outcome = compile_to(&tokens, Depth::Bounded);
        assert!(outcome.kernels.iter().all(|k| k.info.is_some()));
        outcome
    });
}

/// Tokens and syntax alone.
#[divan::bench(args = names())]
fn parse_kernel(bencher: Bencher<'_, '_>, name: &str) {
    let stream = tokens(name);
    bencher.bench_local(|| {
        let (tokens, _) = TokenBuffer::new(black_box(stream.clone()));
        syntax::parse(&tokens)
    });
}

fn main() {
    divan::main();
}
