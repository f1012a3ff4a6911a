//! The parser: from tokens to a syntax tree.
//!
//! [`TokenBuffer`](crate::source::TokenBuffer) flattens the stream, and [`parse`] reads it into an
//! [`ast::Program`](crate::source::ast::Program).
//! Findings are reported as payloads of [`crate::diag::codes`]. The parser takes the whole language, constructs of
//! later versions included; whether they can be built is decided by later rooms. After an error it goes on at the next
//! `;` or block, so that one run shows several.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `cursor` | lookahead, groups, recovery after an error |
//! | `kernel`, `item`, `op`, `expr`, `literal` | the parser, from kernels down to numbers |
//!
//! # Grammar
//!
//! `[x]` is optional, `{x}` repeated, `list(x)` is `[x {"," x} [","]]`, `some(x)` is `x {"," x}`. NAME, INT, FLOAT and
//! STRING are Rust's tokens; the words `true false inf nan if else as in or _` are not names, all other words of the
//! language are.
//!
//! ```text
//! program    = kernel {kernel}
//! kernel     = {attribute} [visibility] "kernel" NAME "(" list(param) ")" ["->" "(" list(param) ")"]
//!              ["where" list(fact)] "{" {item} "}"
//! attribute  = "#" "[" NAME … "]"                  a doc comment is one; passed through to Rust
//! visibility = "pub" ["(" … ")"]
//! param      = {attribute} ["inout"] NAME ":" type     "inout" before the arrow only; a Rust identifier
//! type       = ELEMENT ["[" list(dim) [";" list(expr)] "]"]         sizes; strides in elements
//! dim        = expr ["?"]
//! fact       = expr comparison expr
//!
//! item       = equation | launch | schedule | stage | inline | unit | tune | pass
//! equation   = target "[" list(axis) "]" "=" expr ";"
//!            | NAME "[" list(axis | expr) "]" update expr ";"           a scatter, if a tensor is read in an index
//! update     = "=" | "+=" | "max" "=" | "min" "="
//! target     = NAME | "(" list(NAME) ")"
//! axis       = NAME ["in" range]
//! range      = expr (".." | "..=") expr           operators tighter than "|" alone
//! launch     = "launch" list(launching) ";"
//! launching  = "cluster" "(" expr ")" | "threads" "(" expr ")" | "persistent" | "dependent"
//!            | "roles" "{" list(role) "}"
//! role       = NAME ":" [expr] NAME ["alternate"] ["regs" "(" expr ")"]
//! schedule   = "schedule" NAME {clause} ops
//! stage      = "stage" NAME "[" list(NAME) "]" "=" NAME {clause} ops
//! clause     = "in" PLACE | "per" NAME | "at" NAME "." NAME | "ring" "(" expr ")" | "via" ENGINE | "by" NAME
//!                                                  each at most once, in any order
//! inline     = "inline" NAME ";"
//! unit       = "unit" NAME "{" "domain" ":" "[" list(expr) "]" "," "box" ":" "[" list(expr) "]" [","] "}"
//! tune       = "tune" some(NAME "in" "[" list(expr) "]") ["=" "(" list(expr) ")" "by" STRING] ";"
//! pass       = "pass" NAME "{" {item} "}"
//!
//! ops        = ";" | "{" {op ";"} "}"
//! op         = "split" NAME ("by" | "into") some(expr) "->" some(NAME)      a name more than factors
//!            | "merge" some(NAME) "->" NAME
//!            | "reorder" some(NAME)
//!            | "resize" NAME "by" "(" expr "," expr ")" "->" NAME
//!            | "swizzle" NAME "," NAME "by" "xor" "->" NAME "," NAME
//!            | "bind" some(NAME) ":" [expr] NAME [range] ["raster" "(" list(NAME ":" (expr | "descending")) ")"]
//!            | "vectorize" NAME
//!            | "unroll" NAME ["by" expr]
//!            | "reduce" some(NAME) ["by" ("warp" | "cta" | "cluster" | "grid" | "atomic")]
//!            | "like" NAME ["." NAME]
//!            | "box" NAME "by" expr "->" NAME "," NAME
//!            | "box" "(" list(NAME) ";" list(NAME) ")"
//!            | "tile" NAME "by" expr "->" NAME "," NAME
//!            | "layout" "[" list(NAME ["pad" expr]) "]" ["swizzle" expr]
//!            | "multicast" NAME "." NAME ["by" NAME]
//!            | "mma" "(" NAME "," NAME "," NAME ")" "by" ("wgmma" | "mma_sync") ["inflight" "(" expr ")"]
//!            | "fragment" "(" NAME "," NAME ")" "by" ("wgmma" | "mma_sync")
//!            | "region" ("cover" | "exact" | "flat" ["->" NAME])
//!            | "fill" ("zero" | "any")
//!            | "l2" ("promote" "(" expr ")" | "evict_first" | "evict_last")
//!            | "online" NAME "->" some(NAME) "over" NAME
//! PLACE      = "global" | "shared" | "registers"
//! ENGINE     = "tma" | "cp_async"
//!
//! expr       = binary operators over cast: "*" "/" "%", then "+" "-", then "<<" ">>", then "&", then "^", then "|",
//!              then comparisons, then "&&", then "||"; left associative, but comparisons do not chain
//! cast       = unary {"as" ELEMENT}
//! unary      = ("-" | "!") unary | operand
//! operand    = INT | FLOAT | "true" | "false" | "inf" | "nan" | NAME | "(" expr ")" | "(" list(expr) ")"
//!            | NAME "[" list(expr) "]" ["or" unary]
//!            | [NAME "::"] NAME "(" list(expr) ")"
//!            | "if" expr "{" expr "}" "else" (if | "{" expr "}")
//!            | ["ordered" | "unordered" | "online"] REDUCTION "(" axes expr ["," "promote" expr] [","] ")"
//!            | "fold" "(" axes list(folding) ")"
//! axes       = "|" list(axis) "|"                  at least one
//! folding    = "init" expr | "step" pattern "=>" expr | "merge" "(" pattern "," pattern ")" "=>" expr
//!                                                  init and step once each, merge at most once
//! pattern    = NAME | "(" list(pattern) ")"
//! REDUCTION  = "sum" | "prod" | "max" | "min" | "all" | "any" | "argmax" | "argmin" | "dot" | "scan"
//!            | "only"                             on the right of a scatter
//! ELEMENT    = "f64" | "f32" | "tf32" | "f16" | "bf16" | "e4m3" | "e5m2" | "i64" | … | "u8" | "bool"
//! ```
//!
//! Where two readings are possible:
//!
//! - `max(|j| …)` is a reduction, `max(a, b)` a function; `name[` at the start of a statement is an equation, so that a
//!   tensor may be called `stage` or `launch`.
//! - `-x as f32` is `(-x) as f32`, as in Rust. `or` is tightest: `2 * x[i] or 0.0 + 1.0` is
//!   `(2 * (x[i] or 0.0)) + 1.0`.
//! - `inf` and `nan` are typed by context, as literals are: `inf as f32` fixes the type.
//! - A suffix fixes the type of a literal: `0.5bf16`, `1u32`, and `0.5e4m3`, which is not an exponent. Rust has no
//!   token `0bf16`: write `0.0bf16`.
//! - What `$e:expr` of a user's macro matched binds like a parenthesised expression.

mod cursor;
mod expr;
mod item;
mod kernel;
mod literal;
mod op;
#[cfg(test)]
mod tests;

pub use cursor::is_rust_name;
pub use kernel::parse;
