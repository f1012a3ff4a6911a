//! Products by tensor cores: a `dot` with `mma`, all that may stand around it, and sizes beside its tiles.
//!
//! A product is drawn as a list of decisions, and these are written as a kernel. So what is found becomes small: each
//! decision is taken back as long as the finding stays, and what is left is shrunk as a kernel.
//!
//! | room | holds |
//! | --- | --- |
//! | `draw`, `made` | random decisions; those about factors with equations of their own |
//! | `write` | the kernel that they say |
//! | `factor` | copies of the factors, those that lanes hold, and those that threads write |
//! | `epilogue` | what is made of the sums |
//! | [`case`] | the product of a case |
//! | [`features`] | what a product has, to be counted |
//! | `shrink` | decisions, taken back |

pub mod case;
mod draw;
mod epilogue;
mod factor;
pub mod features;
mod made;
mod shrink;
mod write;

use super::ast::{Reduction, Type};

pub use draw::product;
pub use shrink::shrink;

/// Which instructions multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Those of warpgroups.
    Wgmma,
    /// Those of warps.
    MmaSync,
}

impl Engine {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Wgmma => "wgmma",
            Self::MmaSync => "mma_sync",
        }
    }

    /// Rows of an instruction.
    pub fn rows(self) -> i64 {
        match self {
            Self::Wgmma => 64,
            Self::MmaSync => 16,
        }
    }

    /// The unit that has a tile.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Wgmma => "warpgroup",
            Self::MmaSync => "warp",
        }
    }

    /// Warps of that unit.
    pub fn warps(self) -> i64 {
        match self {
            Self::Wgmma => 4,
            Self::MmaSync => 1,
        }
    }
}

/// A factor: `a` has the rows of the product, `b` its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Its type.
    pub ty: Type,
    /// Whether rows or columns are neighbours in memory, and not terms.
    pub across: bool,
    /// Bytes of a swizzle; none is 0.
    pub swizzle: i64,
    /// Rows or columns of a box, if that is said.
    pub rows: Option<i64>,
    /// Whether boxes along rows or columns stand outside of those along terms.
    pub rows_outside: bool,
    /// Whether the layout is left out.
    pub bare: bool,
    /// Slots of the ring, if there is one.
    pub ring: Option<i64>,
    /// How it comes to shared memory.
    pub via: Via,
    /// A hint for the second-level cache.
    pub hint: Option<&'static str>,
    /// Whether it has strides that are told at launch.
    pub pitched: bool,
    /// What is added to its index of rows or columns, and to that of terms.
    pub plus: [i64; 2],
    /// Whether its copy is taken once, for all terms.
    pub whole: bool,
}

/// How a factor comes to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By the accelerator.
    Tma,
    /// By threads.
    Threads(Threads),
}

/// A copy by threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Whether they go on beside it: `cp.async`.
    pub ahead: bool,
    /// Whether each warp has a copy of its own.
    pub of_warp: bool,
    /// Bytes that go at once.
    pub chunk: i64,
    /// Whether rows lie a chunk further apart.
    pub padded: bool,
    /// Whether the chunks of a row are outside of rows.
    pub chunks_outside: bool,
}

/// The factor of which memory says which one of a batch is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The factor.
    pub of: usize,
    /// Whether it says so for so many rows (0), columns (1) or terms (2) each; for all of a product, if not.
    pub each: Option<(usize, i64)>,
}

/// Tiles of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tiles {
    /// What multiplies them.
    pub engine: Engine,
    /// Warpgroups, or warps, below each other and beside each other.
    pub units: [i64; 2],
    /// Rows of one of them, in those of an instruction.
    pub rows: i64,
    /// Columns of one of them.
    pub columns: i64,
    /// Instructions along the terms of an iteration.
    pub steps: i64,
    /// Iterations inside of one around which copies stand.
    pub inner: i64,
    /// Whether these are written out.
    pub unrolled: bool,
}

/// Blocks that share a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// How many.
    pub blocks: i64,
    /// Whether they have columns beside each other.
    pub beside: bool,
    /// Whether the factor that all read comes to all at once.
    pub multicast: bool,
    /// Whether each of them fetches a part of it.
    pub parts: bool,
}

/// Blocks that share the terms of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// As many as it takes, with so many iterations each.
    By(i64),
    /// So many.
    Into(i64),
}

/// A factor with an equation of its own: lanes hold it, or threads write it to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its type in memory: threads convert it.
    pub from: Type,
    /// Whether it comes through shared memory.
    pub copied: bool,
    /// What else threads make of it.
    pub made: Made,
    /// Whether the splits of a fragment are written out.
    pub by_hand: bool,
    /// Whether neighbours in a register are one access.
    pub vector: bool,
    /// Whether it is held for all terms of a copy.
    pub outside: bool,
    /// Whether the block has it, and not each warp.
    pub of_block: bool,
    /// How it is written to shared memory, if that is where it lies.
    pub written: Option<Written>,
}

/// A factor that threads write to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes that go at once; those of an element are no vector.
    pub chunk: i64,
    /// Whether other elements are neighbours than in memory.
    pub turned: bool,
    /// Whether what a thread writes is written out.
    pub unrolled: bool,
}

/// What threads make of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Nothing.
    Nothing,
    /// Each row is multiplied by a number of its own.
    Scaled,
    /// What is below zero is zero.
    Relu,
    /// It is a product itself, of so many instructions along its terms.
    Product(i64),
}

/// How warps are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roles {
    /// Warps of the role that fetches.
    pub load: i64,
    /// Registers of both, where that is said.
    pub registers: Option<[i64; 2]>,
    /// Whether the role that multiplies comes first.
    pub math_first: bool,
    /// Whether a role of its own stores.
    pub save: bool,
    /// Which role writes factors to shared memory.
    pub writes: Writer,
    /// Units of the role that multiplies that take tiles in turn; one has all of them.
    pub turns: i64,
}

/// A role that writes factors to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The one that fetches.
    Load,
    /// The one that multiplies.
    Math,
    /// One of its own, of so many warps.
    Make(i64),
}

impl Writer {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Math => "math",
            Self::Make(_) => "make",
        }
    }
}

/// Which loops are those of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// Tiles of rows, then of columns.
    Both,
    /// Tiles of columns first.
    Swapped,
    /// In groups of so many.
    Raster(i64),
    /// In groups of two, and columns from the last one on.
    Descending,
    /// Both as one axis.
    Merged,
    /// A block has a row of tiles.
    Serial,
}

/// What is done with a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A bias for each column is added.
    Bias,
    /// It is multiplied by a number that is passed by value.
    Scale,
    /// It is multiplied by a number for each row.
    RowScale,
    /// What is below zero is zero.
    Relu,
    /// An element of a tensor of this type is added.
    Residual(Type),
    /// Its opposite.
    Negative,
    /// Zero above the diagonal.
    Triangle,
    /// A reduction of the row of sums is taken away from it.
    Row(Reduction),
}

/// Where what is made of the sums is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// In the output itself.
    Output,
    /// In an equation of its own, which is part of the output all the same.
    Equation,
    /// In a stage.
    Stage,
}

/// How the output is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Two neighbours at once.
    Vector,
    /// One element after the other.
    Single,
    /// Neighbours in a loop: registers are then picked at run time.
    Loop,
    /// Without a fragment.
    Foreign,
    /// From shared memory by the accelerator, with a swizzle of so many bytes.
    Shared(i64),
}

/// A product and all that is around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// The factors.
    pub factors: [Factor; 2],
    /// Whether the second one is written first.
    pub exchanged: bool,
    /// Whether lanes hold them.
    pub held: [Option<Held>; 2],
    /// Products of a batch, if it is one.
    pub batch: Option<i64>,
    /// The factor of which memory says which one of the batch is multiplied, if it does.
    pub placed: Option<Placed>,
    /// Tiles.
    pub tiles: Tiles,
    /// Rows, columns and terms that are numbers and no sizes.
    pub literal: [Option<i64>; 3],
    /// Whether a fact says that tiles divide rows, columns and terms.
    pub even: [bool; 3],
    /// Whether the facts that copies and vectors need are left out.
    pub unproved: bool,
    /// Whether the terms are all but the last eight.
    pub fewer: bool,
    /// The cluster, if there is one.
    pub cluster: Option<Cluster>,
    /// The roles, if there are some.
    pub roles: Option<Roles>,
    /// Further items of the launch.
    pub launch: Vec<&'static str>,
    /// Groups under way.
    pub inflight: i64,
    /// Blocks that share the terms, if several do.
    pub split: Option<Split>,
    /// Whether these combine what they have by atomic operations.
    pub atomic: bool,
    /// Blocks.
    pub grid: Grid,
    /// What is made of the sums.
    pub steps: Vec<Step>,
    /// Where.
    pub between: Between,
    /// The type of the output.
    pub output: Type,
    /// Whether columns come first in it.
    pub transposed: bool,
    /// How it is stored.
    pub store: Store,
    /// Columns of a part of the tile that is stored at one time, if that is said.
    pub part: Option<i64>,
    /// Slots of the buffer from which it is stored, if that is said.
    pub slots: Option<i64>,
    /// Whether the sums themselves are an output, too.
    pub also: Option<Also>,
}

/// How a second output stands beside the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Also {
    /// With an equation and a schedule of its own.
    Equation,
    /// As the second part of a tuple.
    Tuple,
}

impl Tiles {
    /// Rows and columns of one unit.
    pub fn unit(self) -> [i64; 2] {
        [self.engine.rows() * self.rows, self.columns]
    }

    /// Rows and columns of a block.
    pub fn all(self) -> [i64; 2] {
        let [rows, columns] = self.unit();
        [rows * self.units[0], columns * self.units[1]]
    }

    /// Warps that multiply.
    pub fn warps(self) -> i64 {
        self.units[0] * self.units[1] * self.engine.warps()
    }
}

impl Product {
    /// Terms of an instruction.
    pub fn depth(&self) -> i64 {
        32 / self.factors[0].ty.bytes() as i64
    }

    /// Terms of an iteration around which copies stand.
    pub fn terms(&self) -> i64 {
        self.tiles.inner * self.tiles.steps * self.depth()
    }

    /// Rows, columns and terms of a block.
    pub fn block(&self) -> [i64; 3] {
        let [rows, columns] = self.tiles.all();
        [rows, columns, self.terms()]
    }

    /// The type of the sums.
    pub fn sum(&self) -> Type {
        self.factors[0].ty.accumulator().unwrap_or(Type::F32)
    }

    /// Whether there is a copy of a factor in shared memory.
    pub fn is_copied(&self, n: usize) -> bool {
        self.held[n].is_none_or(|held| held.copied) && self.chain(n).is_none()
    }

    /// How threads write a factor to shared memory, if they do.
    pub fn written(&self, n: usize) -> Option<Written> {
        self.held[n]?.written
    }

    /// Whether threads write a factor to shared memory, from where tensor cores read it.
    pub fn is_written(&self, n: usize) -> bool {
        let copied = self.held[n].is_none() && matches!(self.factors[n].via, Via::Threads(_));
        self.written(n).is_some() || self.tiles.engine == Engine::Wgmma && copied
    }

    /// Threads of the role that writes factors, or of the block.
    pub fn writers(&self) -> i64 {
        let own = 32 * self.tiles.warps();
        let Some(roles) = self.roles else { return own };
        match roles.writes {
            Writer::Load => 32 * roles.load,
            Writer::Math => own,
            Writer::Make(warps) => 32 * warps,
        }
    }

    /// The steps of the product that a factor is, if it is one.
    pub fn chain(&self, n: usize) -> Option<i64> {
        match self.held[n]?.made {
            Made::Product(steps) => Some(steps),
            _ => None,
        }
    }
}
