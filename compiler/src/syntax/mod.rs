//! From tokens to a syntax tree; the only room that knows token streams.

pub mod ast;
mod cursor;
mod expr;
mod item;
mod kernel;
mod literal;
mod op;
pub mod print;
mod span;
#[cfg(test)]
mod tests;
mod tokens;

pub use kernel::parse;
pub use span::{Position, SourceMap, Span, SpanId};
#[cfg(any(test, feature = "span-locations"))]
pub use tokens::locate;
pub use tokens::{Delimiter, TokenBuffer, TokenKind, TokenMap};
