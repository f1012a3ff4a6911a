//! Names and what they stand for, scope by scope. Functions have a scope of their own inside the module's, braces open
//! another.

use tilewright_sorted::SortedMap;

use crate::operand::{FuncId, LabelId, RegId, Symbol, VarId};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Name {
    Reg(RegId),
    Symbol(Symbol),
    Label(LabelId),
}

#[derive(Default)]
struct Scope<'a> {
    names: SortedMap<&'a str, Name>,
    /// `%r<10>`: first register and count, by prefix.
    ranges: SortedMap<&'a str, (RegId, u32)>,
}

/// The module's scope and, inside a function, those of its body.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    global: Scope<'a>,
    inner: Vec<Scope<'a>>,
}

impl<'a> Scopes<'a> {
    pub(super) fn global_function(&self, name: &str) -> Option<FuncId> {
        match self.global.names.get(name) {
            Some(Name::Symbol(Symbol::Function(id))) => Some(*id),
            _ => None,
        }
    }

    pub(super) fn declare_global_function(&mut self, name: &'a str, id: FuncId) -> bool {
        declare(&mut self.global, name, Name::Symbol(Symbol::Function(id)))
    }

    pub(super) fn declare_global_variable(&mut self, name: &'a str, id: VarId) -> bool {
        declare(&mut self.global, name, Name::Symbol(Symbol::Global(id)))
    }

    pub(super) fn enter(&mut self) {
        self.inner.push(Scope::default());
    }

    pub(super) fn leave(&mut self) {
        self.inner.pop();
    }

    /// Leaves the function.
    pub(super) fn leave_all(&mut self) {
        self.inner.clear();
    }

    pub(super) fn depth(&self) -> usize {
        self.inner.len()
    }

    /// Declares a name in the innermost scope; false when it is taken there.
    pub(super) fn declare(&mut self, name: &'a str, value: Name) -> bool {
        self.inner.last_mut().is_some_and(|scope| declare(scope, name, value))
    }

    /// Declares a range of registers in the innermost scope; false when one of its names is taken there.
    pub(super) fn declare_range(&mut self, prefix: &'a str, first: RegId, count: u32) -> bool {
        let Some(scope) = self.inner.last_mut() else { return false };
        let taken = scope
            .names
            .range(prefix..)
            .take_while(|(name, _)| name.starts_with(prefix))
            .any(|(name, _)| number(&name[prefix.len()..]).is_some_and(|number| number < count));
        !taken && scope.ranges.insert(prefix, (first, count)).is_none()
    }

    /// What a name stands for, innermost scope first.
    pub(super) fn find(&self, name: &str) -> Option<Name> {
        self.inner.iter().rev().chain([&self.global]).find_map(|scope| find(scope, name))
    }
}

fn declare<'a>(scope: &mut Scope<'a>, name: &'a str, value: Name) -> bool {
    find(scope, name).is_none() && scope.names.insert(name, value).is_none()
}

fn find(scope: &Scope<'_>, name: &str) -> Option<Name> {
    if let Some(found) = scope.names.get(name) {
        return Some(*found);
    }
    // `%r12` is number 12 of `%r` or number 2 of `%r1`: the shortest number is tried first, at most ten digits.
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(10);
    (1..=digits).find_map(|length| {
        let (prefix, tail) = name.split_at(name.len() - length);
        let (first, count) = scope.ranges.get(prefix)?;
        let number = number(tail).filter(|number| number < count)?;
        Some(Name::Reg(RegId(first.0 + number)))
    })
}

/// A number without leading zeros.
fn number(text: &str) -> Option<u32> {
    let plain = !text.is_empty()
        && text.len() <= 10
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}
