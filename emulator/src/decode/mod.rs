//! PTX text to decoded programs: the parsed module is lowered once, instruction by instruction (`lower`), with
//! registers numbered by class, immediates and special registers given slots of their own (`slots`), variables placed
//! (`layout`), and reads that are not provably after writes marked (`written`), instructions that a warp can execute
//! once (`uniform`), and registers packed by their lives (`pack`, with `operands`).
//!
//! A kernel is decoded with the device functions that it reaches, callees first: the fragment with the lowest
//! instruction runs first, so that lanes that enter a function come back before the others go on. Variables in global
//! memory have addresses that the text decides, above all allocations, so that initial values may be addresses; their
//! contents belong to the device.

pub mod op;

mod guess;
mod layout;
mod lower;
mod module;
mod operands;
mod pack;
mod slots;
mod uniform;
mod work;
mod written;

use tilewright_ptx::SpecialReg;

use crate::counters::{Class, Work};
use crate::report::{Inlined, Place};
use op::{Inst, Slot};

/// A register whose reads are checked at run time.
#[derive(Clone, Debug)]
pub(crate) struct Tracked {
    pub name: String,
    pub slot: Slot,
    /// The bits that a value of its type may have.
    pub ones: u32,
}

/// A register of products by warpgroups: what other instructions do with it is followed at run time.
#[derive(Clone, Debug)]
pub(crate) struct MatrixRegister {
    pub name: String,
    pub slot: Slot,
}

/// A named piece of a small memory.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub name: String,
    pub offset: u64,
    pub bytes: u64,
    pub element: u32,
}

/// Where a decoded instruction comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub line: u32,
    pub mnemonic: u32,
    /// Index plus one of a source position, 0 for none.
    pub source: u32,
    pub class: Class,
    /// What a lane that executes it, or a warp that multiplies matrices, has of its units of arithmetic.
    pub work: Option<Box<Work>>,
}

/// A position in the source, and the calls that were inlined around it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SourcePlace {
    pub at: (String, u32, u32),
    pub inlined: Vec<Inlined>,
}

/// A decoded kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kernel {
    pub name: String,
    /// Number of the first instruction: the code of device functions comes before it.
    pub start: u32,
    pub code: Vec<Inst>,
    pub origins: Vec<Origin>,
    pub mnemonics: Vec<String>,
    pub sources: Vec<SourcePlace>,
    /// Data slots of loads, stores and atomics; `None` drops a value.
    pub data: Vec<Option<Slot>>,
    /// Where products have their elements, for each kind of product once.
    pub places: Vec<crate::matrix::places::Places>,
    /// Lists of tracked registers, and of matrix registers.
    pub flows: Vec<u32>,
    /// Whether it has instructions of products by warpgroups.
    pub warpgroups: bool,
    /// These products.
    pub wgmmas: Vec<op::Wgmma>,
    /// The registers of these, and all that moves connect with them.
    pub matrix_registers: Vec<MatrixRegister>,
    pub calls: Vec<op::CallSite>,
    pub bulks: Vec<op::Bulk>,
    pub functions: Vec<op::Callee>,
    /// Branch tables.
    pub targets: Vec<u32>,
    pub narrow: usize,
    pub wide: usize,
    pub preds: usize,
    pub constants: Vec<(Slot, u64)>,
    pub specials: Vec<(SpecialReg, u32)>,
    /// Slots that hold a parameter: its offset, bytes, and whether it is sign-extended.
    pub param_slots: Vec<(Slot, u32, u8, bool)>,
    pub tracked: Vec<Tracked>,
    pub param_variables: Vec<Named>,
    pub param_bytes: u32,
    pub shared_variables: Vec<Named>,
    pub static_shared: u32,
    /// Bytes of room between its variables, beside those, and where it is.
    pub shared_spread: u32,
    pub shared_gaps: Vec<std::ops::Range<u64>>,
    /// The places after each of them, ascending, and the bytes of all room before.
    pub shared_spreads: Vec<(u64, u64)>,
    pub local_variables: Vec<Named>,
    pub local_bytes: u32,
    pub constant_variables: Vec<Named>,
    /// Exact block shape, if the kernel demands one.
    pub required_block: Option<[u32; 3]>,
    /// Exact shape of a cluster (`.reqnctapercluster`), if the kernel demands one.
    pub required_cluster: Option<[u32; 3]>,
    /// Whether the launch must name a cluster (`.explicitcluster`).
    pub explicit_cluster: bool,
    /// Most CTAs of a cluster (`.maxclusterrank`).
    pub most_cluster: Option<u32>,
    /// Whether it has instructions that all CTAs of a cluster are asked for.
    pub clusters: bool,
    /// Whether its warpgroups change their numbers of registers.
    pub reallocates: bool,
    /// `.maxnreg`.
    pub maxnreg: Option<u32>,
    /// `.minnctapersm`.
    pub minnctapersm: Option<u32>,
    /// Most threads of a block, if the kernel limits them.
    pub most_threads: Option<u64>,
    /// Whether threads take room on their stacks when they run.
    pub stack: bool,
    /// Bytes at the start of shared memory that the system keeps for libraries, where the kernel asks for them.
    pub reserved_shared: u32,
    /// Whether it allocates from the device's heap.
    pub heap: bool,
    /// Whether it follows what is loaded from bytes of shared memory that nobody wrote, as from local memory, until the
    /// value is used. It takes time, so that a kernel is decoded so only for a launch that has met such a value.
    pub follows: bool,
    /// Whether it asks for the workspace of a cooperative launch.
    pub grid_workspace: bool,
    /// Whether CTAs communicate through global memory.
    pub communicates: bool,
    /// Whether it has strong accesses that may be to global memory and are not strong to other CTAs.
    pub confined: bool,
    /// Whether it has fences beyond the CTA.
    pub fences: bool,
}

impl Kernel {
    /// Bytes of constants.
    pub fn constant_bytes(&self) -> u64 {
        self.constant_variables.iter().map(|v| v.offset + v.bytes).max().unwrap_or(0)
    }

    /// Whether an instruction is a strong access, but not to other CTAs.
    pub fn is_narrow(&self, pc: u32) -> bool {
        let narrow = op::Strength::Strong { wide: false };
        match &self.code[pc as usize].op {
            op::Op::Load(access) | op::Op::Store(access) => access.strength == narrow,
            op::Op::Atomic(atomic) => !atomic.wide,
            _ => false,
        }
    }

    /// Bytes of an element that an instruction accesses, as far as one does; 1 for others.
    pub fn access_bytes(&self, pc: u32) -> u8 {
        match &self.code[pc as usize].op {
            op::Op::Load(access) | op::Op::Store(access) => access.bytes,
            op::Op::Atomic(atomic) => atomic.bytes,
            _ => 1,
        }
    }

    fn source(&self, origin: &Origin) -> Option<&SourcePlace> {
        self.sources.get(origin.source.checked_sub(1)? as usize)
    }

    /// Where an instruction comes from, for reports.
    pub fn place(&self, pc: u32) -> Place {
        let origin = &self.origins[pc as usize];
        Place {
            line: origin.line,
            instruction: self.mnemonics[origin.mnemonic as usize].clone(),
            source: self.source(origin).map(|source| source.at.clone()),
            inlined: self.source(origin).map(|source| source.inlined.clone()).unwrap_or_default(),
        }
    }
}

pub(crate) use layout::MOST_SHARED;
pub(crate) use lower::{Decoded, decode, decode_following};
pub(crate) use module::Global;
