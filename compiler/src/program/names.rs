//! Names: tensors are always followed by brackets and form one name space; sizes, strides, scalars, axes and the
//! variables of a `fold` form the other. A local name never hides another one.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::AxisId;
use tilewright_sorted::SortedMap;

use crate::source::{Span, ast};

/// What a global name of the second name space means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    Dim(u16),
    Scalar(u16),
    /// A name that is defined twice.
    Poison,
}

/// What a local name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    Axis(AxisId),
    Variable(u32, ElementType),
    /// A name whose declaration was wrong.
    Poison,
}

/// Local names, innermost last.
#[derive(Debug, Default)]
pub(super) struct Scope {
    names: Vec<(String, Local, Span)>,
}

impl Scope {
    pub fn get(&self, name: &str) -> Option<(Local, Span)> {
        self.names.iter().rev().find(|(known, ..)| known == name).map(|&(_, local, span)| (local, span))
    }

    pub fn push(&mut self, name: &str, local: Local, span: Span) {
        self.names.push((name.to_owned(), local, span));
    }

    /// How many names there are; give it back to [`Scope::pop_to`] to leave the scope.
    pub fn depth(&self) -> usize {
        self.names.len()
    }

    pub fn pop_to(&mut self, depth: usize) {
        self.names.truncate(depth);
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(name, ..)| name.as_str())
    }
}

/// The name as the user thinks of it: a raw identifier without its prefix.
pub(super) fn plain(name: &ast::Name) -> &str {
    name.text.strip_prefix("r#").unwrap_or(&name.text)
}

/// Whether a name is spelled like a size: a capital first, no lower-case letter.
pub(super) fn is_size_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && !name.contains(char::is_lowercase)
}

/// Global names of the second name space, by spelling.
pub(super) type Globals = SortedMap<String, Global>;
