//! Memory layout: where the variables of each state space are, and the initial values of constants.

use tilewright_ptx::Variable;

use super::Named;
use crate::error::Error;

/// Most bytes of local memory a thread can have (PTX manual, compute capabilities).
pub(super) const MOST_LOCAL: u64 = 512 * 1024;
/// Most bytes of constants in a module.
pub(super) const MOST_CONSTANTS: u64 = 64 * 1024;
/// Most bytes of parameters.
pub(super) const MOST_PARAMS: u64 = 32_764;
/// Most bytes of shared memory that a CTA of any target can have; the launch checks the sum with dynamic memory.
pub(crate) const MOST_SHARED: u64 = 227 * 1024;

/// Whether the variable's size is given by the launch.
pub(super) fn is_dynamic(variable: &Variable) -> bool {
    variable.dims.first() == Some(&0)
}

pub(super) fn unsupported(line: u32, what: impl Into<String>, section: &'static str, why: impl Into<String>) -> Error {
    Error::Unsupported { line, what: what.into(), section, why: why.into() }
}

/// Variables of one state space, one after the other.
#[derive(Clone, Default)]
pub(super) struct Layout {
    pub(super) next: u64,
    pub(super) limit: u64,
    pub(super) named: Vec<Named>,
}

impl Layout {
    pub(super) fn new(limit: u64) -> Self {
        Layout { limit, ..Layout::default() }
    }

    /// Takes the first bytes for something that no text declares.
    pub(super) fn reserve(&mut self, name: &str, bytes: u64) {
        self.named.push(Named { name: name.to_owned(), offset: self.next, bytes, element: 0 });
        self.next += bytes;
    }

    pub(super) fn add(&mut self, variable: &Variable) -> Result<u64, Error> {
        self.add_aligned(variable, 1)
    }

    /// Adds a variable at a multiple of `least` bytes or more.
    pub(super) fn add_aligned(&mut self, variable: &Variable, least: u32) -> Result<u64, Error> {
        let too_large = || {
            unsupported(
                variable.line,
                format!("variable `{}`", variable.name),
                "",
                format!("its state space has {} bytes", self.limit),
            )
        };
        let bytes = variable.bytes().ok_or_else(too_large)?;
        let align = u64::from(variable.align.max(least));
        let offset = self.next.checked_next_multiple_of(align).ok_or_else(too_large)?;
        let end = offset.checked_add(bytes).filter(|end| *end <= self.limit).ok_or_else(too_large)?;
        self.next = end;
        self.named.push(Named { name: variable.name.clone(), offset, bytes, element: variable.ty.bytes() });
        Ok(offset)
    }
}
