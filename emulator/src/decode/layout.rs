//! Memory layout: where the variables of each state space are, and the initial values of constants.

use std::ops::Range;

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

/// What the room between variables is a multiple of: they keep their banks.
const SPACING: u64 = 128;

/// Variables of one state space, one after the other.
#[derive(Clone, Default)]
pub(super) struct Layout {
    /// Bytes up to the end of the last variable.
    pub(super) next: u64,
    limit: u64,
    pub(super) named: Vec<Named>,
    /// Whether there is room between variables, in which accesses are found that run past the end of one.
    spaced: bool,
    /// That room, in bytes.
    pub(super) gaps: Vec<Range<u64>>,
    /// Bytes that it takes. Places without it are what the limit is about.
    pub(super) spread: u64,
    /// The places after each room, ascending, and the bytes of all room before.
    pub(super) spreads: Vec<(u64, u64)>,
}

impl Layout {
    pub(super) fn new(limit: u64) -> Self {
        Layout { limit, ..Layout::default() }
    }

    /// With room between variables.
    pub(super) fn spaced(limit: u64) -> Self {
        Layout { limit, spaced: true, ..Layout::default() }
    }

    /// Bytes up to the end of the last variable, without the room between variables.
    pub(super) fn dense(&self) -> u64 {
        self.next - self.spread
    }

    /// The place for something aligned, behind room if that is wanted.
    fn place(&mut self, align: u64) -> Option<u64> {
        let dense = self.dense().checked_next_multiple_of(align)?;
        if self.spaced && !self.named.is_empty() {
            self.spread = (self.spread + 1).next_multiple_of(align.max(SPACING));
            self.gaps.push(self.next..dense + self.spread);
            self.spreads.push((dense + self.spread, self.spread));
        }
        Some(dense + self.spread)
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
        let limit = self.limit;
        let too_large = || {
            unsupported(
                variable.line,
                format!("variable `{}`", variable.name),
                "",
                format!("its state space has {limit} bytes"),
            )
        };
        let bytes = variable.bytes().ok_or_else(too_large)?;
        let align = u64::from(variable.align.max(least));
        let offset = self.place(align).ok_or_else(too_large)?;
        let end = offset.checked_add(bytes).filter(|end| *end - self.spread <= self.limit).ok_or_else(too_large)?;
        self.next = end;
        self.named.push(Named { name: variable.name.clone(), offset, bytes, element: variable.ty.bytes() });
        Ok(offset)
    }

    /// Places the block whose size the launch gives, which has all of these names.
    pub(super) fn add_block(&mut self, variables: &[&Variable]) -> u64 {
        let align = variables.iter().map(|variable| u64::from(variable.align)).max().unwrap_or(1);
        let Some(offset) = self.place(align) else { return self.next };
        self.next = offset;
        let named = variables.iter().map(|variable| Named {
            name: variable.name.clone(),
            offset,
            bytes: 0,
            element: variable.ty.bytes(),
        });
        self.named.extend(named);
        offset
    }
}
