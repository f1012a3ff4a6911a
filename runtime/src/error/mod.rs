//! Everything that can go wrong, with its values. Why a launch is refused is in `refusal`.

mod refusal;

use std::fmt;

pub use refusal::{Reason, Refusal};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There is no usable CUDA driver on this machine (or this build has none of its support).
    NoCuda {
        /// What was looked for and not found.
        reason: String,
    },
    /// The device ordinal does not exist.
    NoDevice {
        /// The ordinal asked for.
        ordinal: usize,
        /// Number of devices there are.
        count: usize,
    },
    /// A call of the CUDA driver failed.
    Cuda {
        /// The driver function.
        call: &'static str,
        /// The driver's code, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
        code: String,
        /// The driver's description.
        message: String,
    },
    /// The driver refused the PTX of a kernel.
    Load {
        /// The kernel.
        kernel: String,
        /// The driver's code.
        code: String,
        /// The assembler's log.
        log: String,
    },
    /// Memory could not be allocated.
    OutOfMemory {
        /// Size of the request in bytes.
        bytes: u64,
        /// Where: the name of a device, or "host".
        device: String,
    },
    /// A shape has more elements than memory can hold.
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
        /// Bytes of one element.
        element_bytes: usize,
    },
    /// A slice has the wrong number of elements for a shape.
    Length {
        /// The shape.
        shape: Vec<usize>,
        /// Elements that the shape has.
        expected: usize,
        /// Elements of the slice.
        found: usize,
    },
    /// A tensor of another rank than the one asked for.
    Rank {
        /// Its shape.
        shape: Vec<usize>,
        /// The rank asked for.
        expected: usize,
        /// The rank it has.
        found: usize,
    },
    /// An axis that the tensor does not have.
    Axis {
        /// The axis asked for.
        axis: usize,
        /// Number of axes.
        rank: usize,
    },
    /// A range that does not lie in its axis.
    Range {
        /// The axis.
        axis: usize,
        /// Extent of the axis.
        extent: usize,
        /// Start of the range.
        start: usize,
        /// End of the range.
        end: usize,
    },
    /// Not a permutation of the axes.
    Permutation {
        /// What was given.
        axes: Vec<usize>,
    },
    /// A layout that the operation does not support.
    Layout {
        /// What was asked for.
        operation: &'static str,
        /// What stands in the way.
        reason: String,
    },
    /// A launch was refused; nothing ran.
    Refused(Box<Refusal>),
    /// The emulator found a fault, or could not run the kernel.
    Emulation(Box<Fault>),
    /// The reference evaluator cannot evaluate the kernel for these arguments.
    Reference(Box<ReferenceError>),
    /// A tensor is not admissible: [`Reference::check`](crate::Reference::check).
    Mismatch(Box<Mismatch>),
}

/// What the emulator found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The kernel.
    pub kernel: String,
    /// Kind of fault, such as "out of bounds".
    pub kind: String,
    /// The whole finding in one sentence.
    pub message: String,
    /// The statement of the schedule that the faulty instruction came from.
    pub statement: Option<String>,
    /// Block and thread that did it.
    pub thread: Option<(u32, u32)>,
    /// The global address concerned.
    pub address: Option<u64>,
    /// The tensor element at that address, such as `x[3, 5]`, or how far it lies from the nearest tensor.
    pub element: Option<String>,
}

/// Why the reference evaluator gave up.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceError {
    /// The kernel.
    pub kernel: String,
    /// The equation or expression concerned.
    pub place: String,
    /// What is wrong, with values.
    pub message: String,
    /// Whether it is more work than was allowed.
    pub limited: bool,
}

/// An output that the algorithm does not admit.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The kernel.
    pub kernel: String,
    /// The output.
    pub output: String,
    /// Index of the first element that is not admissible.
    pub index: Vec<usize>,
    /// The value found.
    pub found: String,
    /// The values that are admissible.
    pub admissible: String,
    /// Number of elements that are not admissible.
    pub wrong: usize,
    /// Number of elements.
    pub elements: usize,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCuda { reason } => write!(f, "no usable CUDA driver: {reason}"),
            Self::NoDevice { ordinal, count } => write!(f, "no CUDA device {ordinal}: there are {count}"),
            Self::Cuda { call, code, message } => write!(f, "{call}: {code} ({message})"),
            Self::Load { kernel, code, log } => {
                write!(f, "the driver refused the PTX of kernel {kernel}: {code}")?;
                if log.is_empty() { Ok(()) } else { write!(f, "\n{log}") }
            }
            Self::OutOfMemory { bytes, device } => write!(f, "{bytes} bytes cannot be allocated on {device}"),
            Self::TooLarge { shape, element_bytes } => {
                write!(f, "a tensor of shape {shape:?} with {element_bytes} bytes an element does not fit in memory")
            }
            Self::Length { shape, expected, found } => {
                write!(f, "shape {shape:?} has {expected} elements, the slice has {found}")
            }
            Self::Rank { shape, expected, found } => {
                write!(f, "a tensor of shape {shape:?} has rank {found}, not {expected}")
            }
            Self::Axis { axis, rank } => write!(f, "axis {axis} of a tensor of rank {rank}"),
            Self::Range { axis, extent, start, end } => {
                write!(f, "{start}..{end} is not a range in axis {axis} of extent {extent}")
            }
            Self::Permutation { axes } => write!(f, "{axes:?} does not name each axis once"),
            Self::Layout { operation, reason } => write!(f, "{operation}: {reason}"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Emulation(fault) => fault.fmt(f),
            Self::Reference(error) => error.fmt(f),
            Self::Mismatch(mismatch) => mismatch.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "emulating kernel {}: {}", self.kernel, self.message)?;
        if let Some((block, thread)) = self.thread {
            write!(f, "\n  in block {block}, thread {thread}")?;
        }
        if let Some(element) = &self.element {
            write!(f, "\n  at {element}")?;
        }
        if let Some(statement) = &self.statement {
            write!(f, "\n  from `{statement}`")?;
        }
        Ok(())
    }
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reference of kernel {}: {}: {}", self.kernel, self.place, self.message)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, output, index, found, admissible, wrong, elements } = self;
        write!(
            f,
            "kernel {kernel}: {output}{index:?} is {found}, admissible is {admissible} \
             ({wrong} of {elements} elements are not admissible)"
        )
    }
}
