//! Why a launch was refused before anything ran.

use std::fmt;

use tilewright_kernel::ElementType;

/// A launch that was refused before anything ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The kernel.
    pub kernel: String,
    /// Why.
    pub reason: Reason,
}

/// Which check refused a launch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The number of arguments differs from the signature.
    ArgumentCount {
        /// Parameters of the kernel.
        expected: usize,
        /// Arguments given.
        found: usize,
    },
    /// An argument is of another kind (scalar, input, output) than its parameter.
    ArgumentKind {
        /// The parameter.
        parameter: String,
        /// What the kernel declares.
        expected: &'static str,
        /// What was given.
        found: &'static str,
    },
    /// An argument has another element type than its parameter.
    ArgumentType {
        /// The parameter.
        parameter: String,
        /// What the kernel declares.
        expected: ElementType,
        /// What was given.
        found: ElementType,
    },
    /// An argument has another rank than its parameter.
    Rank {
        /// The parameter.
        parameter: String,
        /// Declared rank.
        expected: usize,
        /// Rank of the argument.
        found: usize,
    },
    /// Two arguments give one dimension different values.
    DimensionConflict {
        /// The dimension.
        dimension: String,
        /// Value found first.
        first: i64,
        /// Where, such as `x.shape[0]`.
        first_at: String,
        /// The other value.
        second: i64,
        /// Where.
        second_at: String,
    },
    /// No argument tells the value of a dimension.
    DimensionUnknown {
        /// The dimension.
        dimension: String,
    },
    /// A size or stride of an argument differs from the declaration.
    Extent {
        /// Where, such as `x.shape[0]`.
        at: String,
        /// The declaration, such as `N + 2`.
        declared: String,
        /// Its value.
        expected: i128,
        /// What the argument has.
        found: i64,
        /// Values of the dimensions.
        dims: String,
    },
    /// A fact of the `where` clause does not hold.
    Fact {
        /// The fact as written.
        fact: String,
        /// Values of its dimensions and of both sides.
        values: String,
    },
    /// A condition that the compiler left to the launcher does not hold.
    Requirement {
        /// The condition.
        requirement: String,
        /// Values of its dimensions and of both sides.
        values: String,
    },
    /// A size of the kernel has no value for these dimensions.
    Size {
        /// Which size.
        what: String,
        /// Why it has no value.
        error: tilewright_kernel::SizeError,
        /// Values of the dimensions.
        dims: String,
    },
    /// The base address of a tensor is not aligned.
    Alignment {
        /// The parameter.
        parameter: String,
        /// The address.
        address: u64,
        /// What it must be a multiple of, in bytes.
        alignment: u32,
    },
    /// A tensor must be row-major and contiguous and is not.
    NotContiguous {
        /// The parameter.
        parameter: String,
        /// Its shape.
        shape: Vec<i64>,
        /// Its strides, in elements.
        strides: Vec<i64>,
    },
    /// Two elements of an output share an address.
    SelfOverlap {
        /// The parameter.
        parameter: String,
        /// Its shape.
        shape: Vec<i64>,
        /// Its strides, in elements.
        strides: Vec<i64>,
    },
    /// An output shares memory with another argument.
    Aliasing {
        /// The output.
        output: String,
        /// Its address range.
        output_range: (u64, u64),
        /// The other parameter.
        other: String,
        /// Its address range.
        other_range: (u64, u64),
    },
    /// A tensor's last byte lies beyond the address space.
    AddressOverflow {
        /// The parameter.
        parameter: String,
    },
    /// More blocks than a launch can have.
    Grid {
        /// Number of blocks.
        blocks: i128,
        /// Largest number of blocks.
        limit: i128,
        /// Values of the dimensions.
        dims: String,
    },
    /// The memory that blocks share would be larger than any device's.
    Workspace {
        /// What it is called.
        name: String,
        /// Its number of elements.
        elements: i128,
        /// Most bytes.
        limit: i128,
        /// Values of the dimensions.
        dims: String,
    },
    /// The number of blocks is not a multiple of the cluster size.
    Cluster {
        /// Number of blocks.
        blocks: i128,
        /// Blocks of a cluster.
        cluster: u32,
    },
    /// More blocks than a cluster can have.
    ClusterSize {
        /// The rule that is broken.
        fault: tilewright_kernel::cluster::ClusterFault,
    },
    /// The blocks of one cluster never run at one time on this device: together they need more than it has in one
    /// place.
    NeverResident {
        /// Blocks of a cluster, 1 without clusters.
        cluster: u32,
        /// Threads of a block.
        threads: u32,
        /// Bytes of dynamic shared memory of a block.
        shared_bytes: u32,
    },
    /// More threads or shared memory than the device allows.
    Resources {
        /// Which resource.
        what: &'static str,
        /// What the kernel needs.
        needed: u64,
        /// What the device has.
        limit: u64,
    },
    /// A tensor that the kernel stages through the tensor memory accelerator has sizes or strides that no tensor map
    /// has.
    TensorMap {
        /// Name of the staged copy.
        stage: String,
        /// The tensor.
        parameter: String,
        /// The rule, with the values. Dimensions are counted from 0, the innermost.
        why: String,
    },
    /// A size or a stride is larger than any launch may have.
    TooLarge {
        /// The dimension.
        dimension: String,
        /// Its value.
        value: i64,
        /// The largest one.
        limit: i64,
    },
    /// No entry point of the kernel is correct for these dimensions.
    NoEntry {
        /// Values of the dimensions.
        dims: String,
    },
    /// The PTX does not contain an entry point that the kernel names: a fault of this project.
    MissingEntry {
        /// The symbol.
        entry: String,
    },
    /// A tensor lives on another device than the stream.
    OtherDevice {
        /// The parameter.
        parameter: String,
        /// Device of the tensor.
        tensor: String,
        /// Device of the stream.
        stream: String,
    },
    /// A foreign tensor lives where the stream's device cannot reach it.
    ForeignMemory {
        /// The parameter.
        parameter: String,
    },
    /// The device is too old for the kernel, or the kernel is for exactly one architecture and the device is another.
    Capability {
        /// The kernel's target, such as `sm_90a`.
        target: String,
        /// Whether only that capability will do.
        exact: bool,
        /// Compute capability that the kernel needs.
        needed: (u8, u8),
        /// Compute capability of the device.
        found: (u8, u8),
    },
    /// The driver is too old for the kernel's PTX.
    Driver {
        /// PTX version of the kernel.
        ptx: (u8, u8),
        /// CUDA version that the kernel needs.
        needed: (u8, u8),
        /// CUDA version of the driver.
        found: (u8, u8),
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} was not launched: {}", self.kernel, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArgumentCount { expected, found } => write!(f, "it has {expected} parameters, {found} were given"),
            Self::ArgumentKind { parameter, expected, found } => {
                write!(f, "`{parameter}` is {expected}, {found} was given")
            }
            Self::ArgumentType { parameter, expected, found } => {
                write!(f, "`{parameter}` has elements of type {expected}, the argument has {found}")
            }
            Self::Rank { parameter, expected, found } => {
                write!(f, "`{parameter}` has rank {expected}, the argument has rank {found}")
            }
            Self::DimensionConflict { dimension, first, first_at, second, second_at } => {
                write!(f, "{dimension} would be {first} ({first_at}) and {second} ({second_at})")
            }
            Self::DimensionUnknown { dimension } => write!(f, "no argument tells the value of {dimension}"),
            Self::Extent { at, declared, expected, found, dims } => {
                write!(f, "{at} is {found}, but is declared {declared} = {expected}{}", with(dims))
            }
            Self::Fact { fact, values } => write!(f, "the fact `{fact}` does not hold{}", with(values)),
            Self::Requirement { requirement, values } => {
                write!(f, "the kernel requires `{requirement}`, which does not hold{}", with(values))
            }
            Self::Size { what, error, dims } => write!(f, "{what} has no value: {error}{}", with(dims)),
            Self::Alignment { parameter, address, alignment } => write!(
                f,
                "`{parameter}` starts at address {address:#x}, which is not a multiple of {alignment} bytes \
                 (remainder {})",
                address % u64::from((*alignment).max(1))
            ),
            Self::NotContiguous { parameter, shape, strides } => write!(
                f,
                "`{parameter}` must be row-major and contiguous; it has shape {shape:?} and strides {strides:?} \
                 (declare strides in the kernel, or copy it)"
            ),
            Self::SelfOverlap { parameter, shape, strides } => write!(
                f,
                "two elements of the output `{parameter}` share an address: shape {shape:?}, strides {strides:?}"
            ),
            Self::Aliasing { output, output_range, other, other_range } => write!(
                f,
                "the output `{output}` (addresses {:#x}..{:#x}) shares memory with `{other}` ({:#x}..{:#x})",
                output_range.0, output_range.1, other_range.0, other_range.1
            ),
            Self::AddressOverflow { parameter } => write!(f, "`{parameter}` reaches beyond the address space"),
            Self::Grid { blocks, limit, dims } => {
                write!(f, "{blocks} blocks; a launch has 1 to {limit}{}", with(dims))
            }
            Self::Workspace { name, elements, limit, dims } => {
                write!(
                    f,
                    "the blocks would share {elements} elements of `{name}`; the limit is {limit} bytes{}",
                    with(dims)
                )
            }
            Self::Cluster { blocks, cluster } => {
                write!(f, "{blocks} blocks are not a multiple of the cluster of {cluster}")
            }
            Self::ClusterSize { fault } => fault.fmt(f),
            Self::NeverResident { cluster, threads, shared_bytes } => write!(
                f,
                "the device runs no cluster of {cluster} blocks with {threads} threads and {shared_bytes} bytes of \
                 dynamic shared memory each"
            ),
            Self::Resources { what, needed, limit } => write!(f, "it needs {needed} {what}, the device has {limit}"),
            Self::TensorMap { stage, parameter, why } => {
                write!(f, "`{parameter}` cannot be copied by `{stage}`: {why}")
            }
            Self::TooLarge { dimension, value, limit } => {
                write!(f, "{dimension} = {value}; a size or a stride is at most {limit}")
            }
            Self::NoEntry { dims } => write!(f, "no entry point is correct for these sizes{}", with(dims)),
            Self::MissingEntry { entry } => write!(f, "its PTX has no entry point `{entry}`"),
            Self::OtherDevice { parameter, tensor, stream } if tensor == stream => {
                write!(f, "`{parameter}` lives on another {tensor} than the one of the launch")
            }
            Self::OtherDevice { parameter, tensor, stream } => {
                write!(f, "`{parameter}` lives on {tensor}, the launch is on {stream}")
            }
            Self::ForeignMemory { parameter } => {
                write!(f, "`{parameter}` is foreign CUDA memory, the launch is on the emulator")
            }
            Self::Capability { target, exact: true, needed, found } => write!(
                f,
                "it is compiled for {target}, which runs on compute capability {}.{} only; the device has {}.{}",
                needed.0, needed.1, found.0, found.1
            ),
            Self::Capability { target, exact: false, needed, found } => write!(
                f,
                "it is compiled for {target} and needs compute capability {}.{} or higher; the device has {}.{}",
                needed.0, needed.1, found.0, found.1
            ),
            Self::Driver { ptx, needed, found } => write!(
                f,
                "its PTX is version {}.{} and needs a driver for CUDA {}.{} or newer; the driver is for CUDA {}.{}",
                ptx.0, ptx.1, needed.0, needed.1, found.0, found.1
            ),
        }
    }
}

/// ` with …`, or nothing.
fn with(values: &str) -> String {
    if values.is_empty() { String::new() } else { format!(" with {values}") }
}
