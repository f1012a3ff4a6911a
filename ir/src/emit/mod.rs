//! From the scheduled loop program to instructions: one module with an entry point for each [`Kernel`].
//!
//! Emission decides nothing about the program: each operation of `kernel_ir` becomes the instructions that compute it
//! to the letter of the numeric contract, in the order given. What it chooses is representation:
//!
//! | value | register |
//! | --- | --- |
//! | integers: `index32`, `i32 u32`, and 8- and 16-bit integers, extended by their sign | 32 bits |
//! | wide integers: `index64`, `i64 u64` | 64 bits |
//! | float: `f32 tf32`, `f64` | a float register |
//! | narrow float: `f16 bf16` | 16 bits |
//! | condition: `bool` | a predicate; one byte in memory, any bit of which makes it true |
//!
//! | room | holds |
//! | --- | --- |
//! | `entry` | registers, regions, control flow, the line table |
//! | `memory` | addresses, loads, stores, packing of narrow lanes |
//! | `index` | index arithmetic |
//! | `element` | element arithmetic, comparison, selection |
//! | `cast` | conversions |
//! | `shuffle` | values from other lanes |
//! | `blocks` | what blocks do together: updates and counters |
//! | `cluster` | what blocks of a cluster do: their barrier, accesses of each other's buffers |
//! | `roles` | warps that run regions of their own, arrivals for each other |
//! | `staging` | shared memory, barriers of copies, copies by the accelerator |
//! | `products` | products of matrices, by tensor cores |
//! | `storage` | conversions to and from the types for storage |
//! | `functions` | math functions, over the builder: before emission |
//!
//! No float operation is contracted or flushes subnormals, and every one names its rounding. Registers are numbered in
//! the order of the program, so that the same kernel always gives the same text.

mod blocks;
mod cast;
mod cluster;
mod element;
mod entry;
pub mod functions;
mod index;
mod memory;
mod products;
mod roles;
mod shuffle;
mod staging;
mod storage;

#[cfg(test)]
pub(super) mod tests;

use tilewright_ptx::{
    BuildError, Function, Module, ModuleBuilder, PtxVersion, Requirement, Symbol, Target, VerifyError,
};

use crate::kernel_ir::{Fault, Kernel, Problem, StatementKind, verify};

/// The least that every module asks for: what NaN-propagating `max` and conversion to `bf16` need anyway.
pub const FLOOR: Requirement = Requirement { version: PtxVersion::new(7, 0), target: Target::sm(80) };

/// The same of modules that copy to several blocks of a cluster at once, which other targets do at substantially
/// reduced performance (PTX manual, `cp.async.bulk.tensor`, "Target ISA Notes"), and of those with `wgmma`, which
/// others do not have.
const HOPPER: Requirement = Requirement { version: PtxVersion::new(8, 0), target: Target::sm_a(90) };

/// Why there is no module: a mistake of the compiler itself.
#[derive(Clone, Debug, PartialEq)]
pub enum EmitError {
    /// Entry point `entry` violates what the verifier of `kernel_ir` demands.
    Invalid {
        /// Position among the kernels.
        entry: usize,
        /// The violations.
        faults: Vec<Fault>,
    },
    /// An instruction that the table of the `ptx` crate does not take, or a name that is no PTX identifier.
    Build(BuildError),
    /// The finished module is not well formed.
    Verify(Vec<VerifyError>),
}

impl EmitError {
    /// Whether all that is wrong is that not all threads come to a place where they meet.
    pub fn is_of_meeting(&self) -> bool {
        matches!(self, Self::Invalid { faults, .. } if faults.iter().all(|f| f.problem == Problem::NotCollective))
    }
}

impl std::fmt::Display for EmitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid { entry, faults } => write!(f, "entry {entry} is malformed: {faults:?}"),
            Self::Build(error) => error.fmt(f),
            Self::Verify(errors) => {
                for error in errors {
                    writeln!(f, "{error}")?;
                }
                Ok(())
            }
        }
    }
}

/// One module with all entry points of a kernel; `source` is the name in the line table, whose line `n` is source
/// statement `n`. The verifier of PTX has accepted it.
///
/// # Errors
/// See [`EmitError`].
pub fn emit(kernels: &[&Kernel], source: &str) -> Result<Module, EmitError> {
    let emission = Emission::new(kernels.to_vec(), source);
    let entries = (0..kernels.len()).map(|entry| emission.entry(entry)).collect::<Result<_, EmitError>>()?;
    emission.finish(entries)
}

/// A module whose entry points are made apart, in any order or at the same time.
pub struct Emission<'a> {
    kernels: Vec<&'a Kernel>,
    module: ModuleBuilder,
    /// The source in the line table.
    file: u32,
    /// The shared memory that launches provide.
    dynamic: Option<Symbol>,
}

/// An entry point of an [`Emission`].
pub struct EntryPoint(Function, Requirement);

impl<'a> Emission<'a> {
    /// What all entry points have in common.
    pub fn new(kernels: Vec<&'a Kernel>, source: &str) -> Self {
        let is_of_hopper = |kernel: &Kernel| {
            let mut statements = kernel.regions.iter().flat_map(|region| &region.statements);
            statements.any(|s| match &s.kind {
                StatementKind::BulkCopy(transfer) => transfer.multicast.is_some(),
                kind => matches!(kind, StatementKind::Wgmma(_)),
            })
        };
        let floor = if kernels.iter().copied().any(is_of_hopper) { HOPPER } else { FLOOR };
        let mut module = ModuleBuilder::new(floor);
        let file = module.file(source);
        let maps = kernels.iter().map(|kernel| kernel.shared_map()).filter(|map| map.dynamic_bytes().is_some());
        let alignment = maps.map(|map| map.alignment).max();
        let dynamic = alignment.map(|most| module.dynamic_shared("shared_memory", u32::try_from(most).unwrap_or(1024)));
        Self { kernels, module, file, dynamic }
    }

    /// The entry point at a position among the kernels.
    ///
    /// # Errors
    /// See [`EmitError`].
    ///
    /// # Panics
    /// If there is none.
    pub fn entry(&self, entry: usize) -> Result<EntryPoint, EmitError> {
        let kernel = self.kernels[entry];
        verify(kernel).map_err(|faults| EmitError::Invalid { entry, faults })?;
        let (function, need) = entry::emit_entry(kernel, self.file, self.dynamic)?;
        Ok(EntryPoint(function, need))
    }

    /// The module of these entry points. The verifier of PTX has accepted it.
    ///
    /// # Errors
    /// See [`EmitError`].
    pub fn finish(self, entries: Vec<EntryPoint>) -> Result<Module, EmitError> {
        self.with(entries).finish().map_err(EmitError::Verify)
    }

    /// The same without the verifier, which finds nothing but mistakes of emission.
    pub fn finish_unverified(self, entries: Vec<EntryPoint>) -> Module {
        self.with(entries).finish_as_said()
    }

    fn with(self, entries: Vec<EntryPoint>) -> ModuleBuilder {
        let mut module = self.module;
        for EntryPoint(function, need) in entries {
            module.function(function);
            module.need(need);
        }
        module
    }
}
