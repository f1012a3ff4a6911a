//! What a launch is given: shape, arguments, extents, options.

use std::ops::Range;

/// An argument: the bytes of one parameter, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arg(pub Vec<u8>);

macro_rules! arg {
    ($($ty:ty)*) => { $(impl From<$ty> for Arg {
        fn from(value: $ty) -> Arg { Arg(value.to_le_bytes().to_vec()) }
    })* };
}
arg! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

impl From<half::f16> for Arg {
    fn from(value: half::f16) -> Arg {
        Arg(value.to_le_bytes().to_vec())
    }
}

impl From<half::bf16> for Arg {
    fn from(value: half::bf16) -> Arg {
        Arg(value.to_le_bytes().to_vec())
    }
}

/// A range of device memory that the kernel may access, such as the bytes that a view spans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// Name for reports, such as the tensor's.
    pub label: String,
    /// Bytes of an element, for reports; 0 if there are no elements.
    pub element: u32,
    /// Whether stores are an error.
    pub read_only: bool,
}

/// A launch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Launch {
    /// Name of the kernel.
    pub entry: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z; `None` if the launch names none: the kernel may, and otherwise every block is a
    /// cluster of its own.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// One argument for each parameter.
    pub args: Vec<Arg>,
    /// Whether it may begin while earlier launches run still (programmatic dependent launch). They have ended here, and
    /// yet each thread that accesses global memory must have waited for them (`griddepcontrol.wait`).
    pub dependent: bool,
    /// The memory that the kernel may access. Empty: every allocation, for reading and writing.
    pub extents: Vec<Extent>,
}

/// Which checks run. Bounds and alignment are always checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sanitizers {
    /// Reads of memory that nobody wrote. (Registers are checked always: most need no check at run time.)
    pub initialisation: bool,
    /// Races in shared and global memory.
    pub races: bool,
}

impl Sanitizers {
    /// Every check.
    pub const ALL: Sanitizers = Sanitizers { initialisation: true, races: true };
    /// None but bounds and alignment.
    pub const NONE: Sanitizers = Sanitizers { initialisation: false, races: false };
}

/// What tensor-core instructions compute where the manual leaves it open: order and intermediate rounding of
/// floating-point sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MatrixModel {
    /// f32 sums in the order of k: quick, for tests of structure.
    #[default]
    Fast,
    /// Ampere, bit by bit: blocks of 8 products, 24 bits below the greatest exponent, truncated.
    Ampere,
    /// Hopper, bit by bit: blocks of 16 products, 25 bits.
    Hopper,
    /// Nothing is multiplied: the sums stay what they were. For counting.
    Nothing,
}

/// How to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Decides the order in which warps run. The same seed gives the same result and the same report.
    pub seed: u64,
    /// Checks.
    pub sanitizers: Sanitizers,
    /// Move the results of approximate instructions within the bounds that the manual gives, depending on this number
    /// and the operands.
    pub perturb: Option<u64>,
    /// What tensor cores compute.
    pub matrix: MatrixModel,
    /// Warp instructions that the whole launch may execute. The default is some ten minutes of one core.
    pub budget: u64,
    /// Numbers of the clusters that run, or of the blocks without clusters; `None`: all of the grid. For counting: what
    /// the others would write is missing, and who waits for them waits for ever.
    pub clusters: Option<Range<u64>>,
    /// Host threads; `None` uses all that the process may use. The result does not depend on it.
    pub threads: Option<usize>,
    /// Use only instructions that every host of this architecture has, and execute every instruction in every lane: for
    /// measuring and comparing. The result does not depend on it.
    pub baseline: bool,
    /// Run the first cluster alone, and trace at most so many instructions of its warps: see [`crate::trace`].
    pub trace: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: 0,
            sanitizers: Sanitizers::ALL,
            perturb: None,
            matrix: MatrixModel::Fast,
            budget: 1 << 35,
            clusters: None,
            threads: None,
            baseline: false,
            trace: None,
        }
    }
}
