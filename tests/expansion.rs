//! Time that `schedule!` adds to a build: one call of `compile_to` for each kernel of the examples, and its phases.
//!
//! `cargo bench --bench expansion --profile test` measures a build in which macros are optimised a little (the compiler
//! at opt-level 1), `--profile dev` one without.

use std::str::FromStr;
use std::sync::LazyLock;

use divan::{Bencher, black_box};
use proc_macro2::TokenStream;
use tilewright_compiler::compile_to;
use tilewright_compiler::source::TokenBuffer;
use tilewright_compiler::syntax;
use tilewright_compiler::trial::Depth;

#[path = "support/invocations.rs"]
mod invocations;

/// What is compiled, by example, and by kernel where an example has several `schedule!`.
static INVOCATIONS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let all = invocations::invocations();
    let named = |(example, text): &(String, String)| {
        let several = all.iter().filter(|(other, _)| other == example).count() > 1;
        let kernel = text.split("kernel ").nth(1).and_then(|after| after.split_whitespace().next());
        let kernel = kernel.filter(|_| several).map(|kernel| format!(".{kernel}"));
        (format!("{example}{}", kernel.unwrap_or_default()), text.clone())
    };
    all.iter().map(named).collect()
});

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
