//! What was written: tokens, places in them, and the syntax tree, which every later room points into.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `tokens`, `position` | the stream as one vector; places in it, and the map back to files and lines |
//! | `ast`; `print` | the tree; its text, for tests: what is printed parses to the same tree |

pub mod ast;
mod position;
#[cfg(test)]
pub mod print;
mod tokens;

pub use position::{Position, SourceMap};
pub use tilewright_theory::span::{Span, SpanId};
pub use tokens::locate;
pub use tokens::{Delimiter, TokenBuffer, TokenKind, TokenMap};
