//! The instruction table: one entry an instruction, one line a form.
//!
//! Printer, parser, verifier and builder read the table; a new instruction is a new line here and nothing else in this
//! crate. The notation of a line is defined in [`notation`]; what an instruction *means* is the emulator's business,
//! which matches on the enums of this module without a wildcard, so that a new instruction fails to compile there until
//! it has a meaning.
//!
//! Versions and targets in the table were checked against ptxas 13.0 where that assembler can tell (it starts at
//! `sm_75`), and follow the manual where the assembler is laxer.

mod absent;
mod form;
pub mod notation;

use std::sync::OnceLock;

use tilewright_sorted::SortedMap;

pub(crate) use absent::absent;
pub use form::{Count, Form, ImmRule, OperandKind, OperandSpec, Presence, Slot, TypeRule};

/// What an instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Effect {
    /// Nothing: registers in, registers out.
    None,
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Reads and writes in one step: atomics, reductions.
    ReadWrite,
    /// Starts work that touches memory later.
    Async,
    /// Orders memory operations or threads.
    Sync,
    /// Changes the flow of control.
    Control,
}

/// Which threads must execute an instruction together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Convergence {
    /// No requirement.
    None,
    /// The threads of the member mask operand (or of the warp) meet at it; they may come by different paths.
    Mask,
    /// All threads of the warp execute it at the same time; divergence is undefined behaviour.
    Aligned,
}

/// One instruction of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpDesc {
    /// Name of the enum variant.
    pub name: &'static str,
    /// Section of the PTX manual (numbering of PTX ISA 9.0).
    pub section: &'static str,
    /// What it does to memory.
    pub effect: Effect,
    /// Which threads execute it together; forms with `.aligned` are aligned in any case, see
    /// [`crate::Inst::convergence`].
    pub convergence: Convergence,
    /// Its forms in the notation of [`notation`].
    pub syntax: &'static [&'static str],
}

/// Declares one family: an enum with a variant an instruction, and its descriptions.
macro_rules! family {
    ($(#[$meta:meta])* $family:ident {
        $($(#[$vmeta:meta])* $op:ident: $section:literal, $effect:ident, $convergence:ident, [$($syntax:expr),* $(,)?];)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum $family { $($(#[$vmeta])* $op,)* }
        impl $family {
            /// Every instruction of the family.
            pub const ALL: &'static [$family] = &[$($family::$op,)*];
            pub(crate) const DESCS: &'static [crate::isa::OpDesc] = &[$(crate::isa::OpDesc {
                name: stringify!($op),
                section: $section,
                effect: crate::isa::Effect::$effect,
                convergence: crate::isa::Convergence::$convergence,
                syntax: &[$($syntax),*],
            },)*];
        }
        impl From<$family> for crate::isa::Op {
            fn from(op: $family) -> Self { crate::isa::Op::$family(op) }
        }
    };
}

macro_rules! families {
    ($($module:ident :: $family:ident,)*) => {
        $(mod $module; pub use $module::$family;)*

        /// An instruction of the table, by family.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum Op { $(#[doc = concat!("See [`", stringify!($family), "`].")] $family($family),)* }

        impl Op {
            /// Its entry in the table.
            pub fn desc(self) -> &'static OpDesc {
                match self { $(Op::$family(op) => &$family::DESCS[op as usize],)* }
            }

            /// Its place in the order of the table.
            fn number(self) -> usize {
                let before = 0;
                $(
                    if let Op::$family(op) = self {
                        return before + op as usize;
                    }
                    let before = before + $family::DESCS.len();
                )*
                before
            }

            /// Every instruction, in the order of the table.
            pub fn all() -> impl Iterator<Item = Op> {
                let mut ops = Vec::new();
                $(ops.extend($family::ALL.iter().map(|op| Op::$family(*op)));)*
                ops.into_iter()
            }
        }
    };
}

families! {
    arith::Arith,
    logic::Logic,
    compare::Compare,
    convert::Convert,
    math::Math,
    memory::Memory,
    atomic::Atomic,
    sync::Synchronization,
    copy::AsyncCopy,
    warp::Warp,
    matrix::Matrix,
    control::Control,
    stack::Stack,
    video::Video,
}

impl Op {
    /// Its forms.
    pub fn forms(self) -> &'static [Form] {
        &table().rows[self.number()]
    }
}

/// The table: its rows in the order of [`Op`], and for each mnemonic the row and index of its forms.
struct Table {
    rows: Vec<Vec<Form>>,
    by_mnemonic: SortedMap<&'static str, Vec<(u16, u16)>>,
}

/// All forms whose mnemonic (the word before the first dot) is this one.
pub fn forms_of(mnemonic: &str) -> impl Iterator<Item = &'static Form> {
    let table = table();
    let entries = table.by_mnemonic.get(mnemonic).map_or(&[][..], Vec::as_slice);
    entries.iter().map(|(row, index)| &table.rows[usize::from(*row)][usize::from(*index)])
}

/// Every form of the table.
pub fn all_forms() -> impl Iterator<Item = &'static Form> {
    table().rows.iter().flatten()
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table { rows: Vec::new(), by_mnemonic: SortedMap::new() };
        for (row, op) in (0..).zip(Op::all()) {
            for (index, syntax) in (0..).zip(op.desc().syntax) {
                table.by_mnemonic.entry(notation::mnemonic(syntax).0).or_default().push((row, index));
            }
            let forms = (0..).zip(op.desc().syntax).map(|(index, syntax)| Form::new(op, index, syntax));
            table.rows.push(forms.collect());
        }
        table
    })
}
