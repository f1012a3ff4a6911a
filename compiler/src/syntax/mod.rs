//! From tokens to a syntax tree; the only room that knows token streams.

pub mod ast;
mod span;

pub use span::{Position, SourceMap, Span, SpanId};
