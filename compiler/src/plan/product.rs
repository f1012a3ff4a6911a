//! A product that tensor cores compute: its factors in shared memory or in registers.

use tilewright_kernel::Algorithm;
use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Source, Unary, Value, ValueId};
use tilewright_kernel::tensor_map::Swizzle;

use crate::domain::AxisId;
use crate::extent::{Expr, Var};
use crate::plan::staged::Staged;

/// A `dot` as products of tiles: see [`Mma`](crate::schedule::Mma).
#[derive(Clone, Debug)]
pub struct Product {
    /// The factor with the rows, and the one with the columns.
    pub factors: [Factor; 2],
    /// Their types.
    pub types: [ElementType; 2],
    /// Columns of an instruction.
    pub columns: u32,
}

impl Product {
    /// Its factors in shared memory.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.factors.iter().filter_map(|factor| match factor {
            Factor::Shared(operand) => Some(operand),
            Factor::Held(_) => None,
        })
    }

    /// Those that registers hold.
    pub fn held(&self) -> impl Iterator<Item = &Held> {
        self.factors.iter().filter_map(|factor| match factor {
            Factor::Held(held) => Some(held),
            Factor::Shared(_) => None,
        })
    }

    /// Those of them that threads write: positions of stages.
    pub fn written(&self) -> impl Iterator<Item = usize> {
        self.operands().filter_map(|operand| operand.stage)
    }

    /// Whether a read is one of its factors in shared memory.
    pub fn reads(&self, read: ValueId) -> bool {
        self.operands().any(|operand| operand.read == read)
    }
}

/// A product that is a block behind in the pass whose sums it goes on with: its group is under way while the next block
/// is made ready. Positions of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The product after whose group it is started.
    pub first: usize,
    /// The stage that holds its left factor, before which it is ended.
    pub factor: usize,
}

/// A factor of a product.
#[derive(Clone, Debug)]
pub enum Factor {
    /// It is in shared memory.
    Shared(Operand),
    /// Registers hold it.
    Held(Held),
}

/// A factor in shared memory, and how its tiles lie in what holds them: a copy by the accelerator, or a stage.
#[derive(Clone, Debug)]
pub struct Operand {
    /// What is read.
    pub source: Source,
    /// The read.
    pub read: ValueId,
    /// The position of the stage whose threads write it; none of a copy.
    pub stage: Option<usize>,
    /// What holds it, for readers.
    pub copy: String,
    /// Whether neighbours in memory are rows or columns, not terms.
    pub across: bool,
    /// Leading dimension byte offset.
    pub leading: u32,
    /// Stride dimension byte offset.
    pub stride: u32,
    /// How chunks are exchanged.
    pub swizzle: Swizzle,
}

impl Operand {
    /// Whether a copy holds it.
    pub fn is_in(&self, staged: &Staged) -> bool {
        let Source::Parameter(parameter) = self.source else { return false };
        self.stage.is_none() && staged.is_for(parameter, Some(self.read))
    }
}

/// A factor that another stage holds in registers, of each thread what it has of the tile.
#[derive(Clone, Debug)]
pub struct Held {
    /// The position of that stage.
    pub stage: usize,
    /// Its name, for readers.
    pub name: String,
    /// What is read.
    pub source: Source,
    /// The read.
    pub read: ValueId,
    /// The leaves of that stage at the element that a thread has in a register: over the loops around the product, and
    /// these variables.
    pub leaves: Vec<Expr>,
    /// What numbers tiles of rows or columns, and steps along the terms, if there are several.
    pub tiles: [Option<Var>; 2],
    /// What numbers registers in a tile: terms in groups of 16 bytes, halves of a warp's rows, terms in a register of
    /// 32 bits.
    pub registers: [Option<Var>; 3],
}

/// How lanes load a factor from a tile in shared memory.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The read of the tile.
    pub read: ValueId,
    /// What is read.
    pub source: Source,
    /// The instruction that a warp loads it with, if it lies as that reads it; else each lane loads its own.
    pub matrices: Option<Matrices>,
}

/// How a warp loads or stores a fragment as matrices of eight rows of 16 bytes.
#[derive(Clone, Debug)]
pub struct Matrices {
    /// The leaf of the lanes in fours, and that of the lanes of four.
    pub lanes: [AxisId; 2],
    /// The leaf of elements that share a register, if there are several.
    pub term: Option<AxisId>,
    /// Elements that do.
    pub each: u32,
    /// The loops over matrices, outermost first, each with its iterations and the registers from one to the next: in
    /// the order in which products read what is loaded.
    pub loops: Vec<(AxisId, i128, i128)>,
    /// Matrices of an instruction.
    pub count: u32,
    /// Whether rows of the matrices in memory are along the lanes in fours.
    pub transposed: bool,
}

/// The signs before the factors of a `dot` that would be two reads without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    /// Whether they negate the product.
    pub is_odd: bool,
    /// The first factor with a sign.
    pub first: ValueId,
}

/// The two reads of a `dot`, conversions aside; outside of what is read there may be zeros.
///
/// # Errors
/// If a factor is no such read: the signs, if it is for these alone.
pub fn factors(algorithm: &Algorithm, reduction: ValueId) -> Result<[ValueId; 2], Option<Signs>> {
    let Value::Reduce { body, .. } = algorithm.values[reduction as usize] else { return Err(None) };
    let Value::Binary(_, a, b) = algorithm.values[body as usize] else { return Err(None) };
    // The read, and how many signs are before it.
    let bare = |mut value: ValueId| {
        let mut signs = 0;
        loop {
            match algorithm.values[value as usize] {
                Value::Cast(of) => value = of,
                Value::Unary(Unary::Neg, of) => (value, signs) = (of, signs + 1),
                _ => break,
            }
        }
        let is_zero = |or: ValueId| algorithm.values[or as usize] == Value::Literal(0);
        let is_read = matches!(algorithm.values[value as usize], Value::Read { or, .. } if or.is_none_or(is_zero));
        is_read.then_some((value, signs))
    };
    match (bare(a).ok_or(None)?, bare(b).ok_or(None)?) {
        ((left, 0), (right, 0)) => Ok([left, right]),
        ((_, left), (_, right)) => {
            Err(Some(Signs { is_odd: (left + right) % 2 == 1, first: if left > 0 { a } else { b } }))
        }
    }
}
