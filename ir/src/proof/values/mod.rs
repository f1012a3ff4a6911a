//! Data of a run: what memory holds, and whether what is stored at the end is what the algorithm says.
//!
//! **Property.** Every element of every output is equal, in the [`algebra`], to the algorithm's term for it ([`spec`]).
//! That is translation validation of a finished kernel for one launch and drawn data: it finds a wrong operand, a
//! register that is read too early, a missing conversion, a lost iteration, whatever the addresses look like.
//! **Approximation.** The algebra's: what it takes for equal, see there.

mod algebra;
mod cast;
mod distinct;
mod exponential;
mod field;
mod math;
mod spec;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Algorithm, Binary};

pub(super) use algebra::{Algebra, Freedom};
pub(super) use field::mix;

use super::Stop;
use super::launch::Launch;
use super::row::Known;
use super::violation::{Kind, Violation};
use crate::kernel_ir::{AtomicOp, Kernel, Memory};

/// What memory holds.
#[derive(Debug)]
pub(super) struct Data<'a> {
    algorithm: &'a Algorithm,
    pub algebra: Algebra,
    /// What was written to tensors.
    tensors: BTreeMap<(u16, i64), Known>,
    workspaces: BTreeMap<(u16, i64), Known>,
    /// By the address of an element's first byte, of all blocks of a cluster: pages, from address 0 on, of what was
    /// written. A tree would take most of a trial's time.
    shared: Vec<Option<Box<Page>>>,
}

/// Addresses of a page.
const PAGE: usize = 256;
type Page = [Known; PAGE];

impl<'a> Data<'a> {
    pub fn new(algorithm: &'a Algorithm, launch: &Launch, seed: u64) -> Self {
        let extents = launch.tensors.iter().flatten().flat_map(|tensor| &tensor.shape);
        let reach = extents.copied().max().unwrap_or(1);
        // What is promised of the data is so.
        let count = |parameter: u16| {
            let (first, last) = launch.tensors.get(usize::from(parameter))?.as_ref()?.reach()?;
            Some((parameter, last.checked_sub(first)?.checked_add(1)?))
        };
        let distinct = algorithm.promised().into_iter().filter_map(count).collect();
        let algebra = Algebra::new(Freedom::of(algorithm), seed, reach).with_distinct(distinct);
        let (tensors, workspaces, shared) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { algorithm, algebra, tensors, workspaces, shared }
    }

    /// Another cluster runs.
    pub fn reset(&mut self) {
        self.shared.clear();
    }

    /// An element of a tensor, at an offset.
    pub fn tensor(&self, parameter: u16, at: i64, ty: ElementType) -> Known {
        let written = self.tensors.get(&(parameter, at)).copied();
        written.unwrap_or_else(|| Some(self.algebra.element(parameter, at, ty)))
    }

    pub fn set_tensor(&mut self, parameter: u16, at: i64, value: Known) {
        self.tensors.insert((parameter, at), value);
    }

    /// An element of a workspace.
    pub fn workspace(&self, workspace: u16, at: i64, zeroed: bool) -> Known {
        self.workspaces.get(&(workspace, at)).copied().unwrap_or(zeroed.then_some(0))
    }

    pub fn set_workspace(&mut self, workspace: u16, at: i64, value: Known) {
        self.workspaces.insert((workspace, at), value);
    }

    /// An element in device memory is combined with a value.
    pub fn update(&mut self, kernel: &Kernel, (memory, at): (Memory, i64), op: AtomicOp, with: Known) {
        let Some(element) = kernel.element(memory) else { return };
        let op = match op {
            AtomicOp::Add => Some(Binary::Add),
            AtomicOp::Max => Some(Binary::Max),
            AtomicOp::Min => Some(Binary::Min),
            AtomicOp::Or => Some(Binary::Or),
            AtomicOp::Set => None,
        };
        let before = match memory {
            Memory::Workspace(w) => self.workspace(w, at, kernel.workspaces[usize::from(w)].zeroed),
            Memory::Parameter(p) => self.tensor(p, at, element),
            Memory::Buffer(_) => None,
        };
        let after = match op {
            Some(op) => before.zip(with).and_then(|(a, b)| self.algebra.binary(op, element, a, b)),
            None => with,
        };
        match memory {
            Memory::Workspace(workspace) => self.set_workspace(workspace, at, after),
            Memory::Parameter(parameter) => self.set_tensor(parameter, at, after),
            Memory::Buffer(_) => {}
        }
    }

    /// An element in shared memory, at an address.
    pub fn shared(&self, address: u64) -> Known {
        let address = address as usize;
        self.shared.get(address / PAGE)?.as_ref()?[address % PAGE]
    }

    pub fn set_shared(&mut self, address: u64, value: Known) {
        let address = address as usize;
        if self.shared.len() <= address / PAGE {
            self.shared.resize(address / PAGE + 1, None);
        }
        self.shared[address / PAGE].get_or_insert_with(|| Box::new([None; PAGE]))[address % PAGE] = value;
    }

    /// Compares every output with the algorithm; what is not known, if nothing is wrong.
    pub fn compare(&self, kernel: &Kernel, launch: &Launch, budget: u64) -> Result<Option<Violation>, Stop> {
        let mut spec = spec::Spec::new(self.algorithm, &self.algebra, launch, budget);
        // What merges change, the author has said to be nothing: whether the algebra knows that, tells another way to
        // merge.
        let freedom = self.algebra.freedom();
        let mut merged = spec::Spec::new(self.algorithm, &self.algebra, launch, budget).with_merges();
        let mut unknown = None;
        for (equation, definition) in self.algorithm.equations.iter().enumerate() {
            for (n, component) in self.algorithm.components[definition.components.range()].iter().enumerate() {
                let Some(parameter) = component.parameter else { continue };
                let Some(tensor) = launch.tensors.get(usize::from(parameter)).and_then(Option::as_ref) else {
                    continue;
                };
                let ty = kernel.signature.parameters[usize::from(parameter)].element;
                let mut at = vec![0; tensor.shape.len()];
                if tensor.shape.contains(&0) {
                    continue;
                }
                loop {
                    let offset = at.iter().zip(&tensor.strides).map(|(at, stride)| at * stride).sum();
                    let stored = self.tensor(parameter, offset, ty);
                    let meant = spec.output((equation as u16, n as u16), &at)?;
                    let name = &kernel.signature.parameters[usize::from(parameter)].name;
                    let violation = |kind, what: &str| {
                        let what = format!("`{name}{at:?}` {what}");
                        Violation { kind, line: 0, block: None, what }
                    };
                    match (stored, meant) {
                        (Some(stored), Some(meant)) if stored == meant => {}
                        (Some(_), Some(meant))
                            if freedom.merge && merged.output((equation as u16, n as u16), &at)? != Some(meant) =>
                        {
                            let found = || violation(Kind::Data, "depends on how a fold is merged");
                            unknown.get_or_insert_with(found);
                        }
                        (Some(_), Some(_)) => {
                            return Err(Stop::Violated(violation(Kind::Wrong, "is not what the algorithm says")));
                        }
                        // On drawn data all is known but registers that nobody has set.
                        (None, Some(_)) => {
                            return Err(Stop::Violated(violation(
                                Kind::Wrong,
                                "comes from a register that nothing was put in",
                            )));
                        }
                        (_, None) => {
                            unknown.get_or_insert_with(|| violation(Kind::Data, "is not known"));
                        }
                    }
                    let Some(axis) = (0..at.len()).rev().find(|axis| at[*axis] + 1 < tensor.shape[*axis]) else {
                        break;
                    };
                    at[axis] += 1;
                    at[axis + 1..].fill(0);
                }
            }
        }
        Ok(unknown)
    }
}
