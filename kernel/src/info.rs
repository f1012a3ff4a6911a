//! The kernel as a whole: what the macro emits as one `static`, and what the launcher needs.

use crate::algorithm::{Value, ValueId};
use crate::tensor_map::{self, Dimension, Fault, Fill, Format, Promotion, Swizzle, TensorMap};
use crate::{Algorithm, Constraint, ElementType, List, Size, SizeError, Text};

/// A kernel, compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelInfo {
    /// Name in the source.
    pub name: Text,
    /// Dimensions and stride names, in order of first appearance.
    pub dims: List<Dim>,
    /// Inputs, then outputs, in the order of the signature.
    pub parameters: List<Parameter>,
    /// Dimensions that no argument tells and a fact determines, in an order in which they can be computed.
    pub solved: List<Solved>,
    /// The `where` clause; the launcher checks each.
    pub facts: List<Constraint>,
    /// Further conditions that the compiler left to the launcher.
    pub requirements: List<Constraint>,
    /// Entry points, narrowest first; the launcher takes the first one whose conditions hold. The last has none, unless
    /// index arithmetic could leave 64 bits.
    pub entries: List<Entry>,
    /// Tensor maps that the launcher encodes.
    pub maps: List<MapInfo>,
    /// Memory of the launch itself, beside its tensors.
    pub workspace: List<Workspace>,
    /// What each `.param` of every entry point receives, in order. Tensor maps come last, and only to entry points that
    /// take them.
    pub arguments: List<Argument>,
    /// Launch shape.
    pub launch: Launch,
    /// The device code.
    pub ptx: Ptx,
    /// What the kernel computes, for the reference evaluator.
    pub algorithm: Algorithm,
    /// Of float sums that a schedule distributes: through how many additions a term goes at most.
    pub additions: List<Additions>,
    /// Source statements; line `n` of the PTX line table is `statements[n - 1]`.
    pub statements: List<Text>,
    /// What was derived and proved, for a reader.
    pub explanation: Text,
}

/// Through how many additions a term of a sum goes at most, as the schedule distributes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Additions {
    /// The sum: a [`Value::Reduce`].
    pub sum: ValueId,
    /// How many, over dimensions.
    pub most: Size,
}

/// A name whose value is known at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Name in the source.
    pub name: Text,
    /// Whether it is a size or a stride.
    pub kind: DimKind,
}

/// What a [`Dim`] measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimKind {
    /// A number of elements along a dimension; never negative.
    Size,
    /// A distance between neighbours along a dimension, in elements.
    Stride,
}

/// A dimension that a fact determines, such as `P` by `P == 2 * Q`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    /// The dimension.
    pub dim: u16,
    /// Its value, over dimensions that arguments tell or that come earlier in the list. The fact itself, which the
    /// launcher checks too, says whether a division was exact.
    pub value: Size,
}

/// A parameter of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the source.
    pub name: Text,
    /// Element type.
    pub element: ElementType,
    /// Scalar or tensor.
    pub kind: ParameterKind,
}

/// How a parameter is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// By value.
    Scalar,
    /// By address.
    Tensor(TensorParameter),
}

/// A tensor parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorParameter {
    /// What the kernel does with it.
    pub role: Role,
    /// Size of each dimension, outermost first.
    pub shape: List<Size>,
    /// Stride of each dimension in elements, outermost first; none means row-major and contiguous.
    pub strides: Option<List<Size>>,
    /// What the base address must be a multiple of, in bytes.
    pub alignment: u32,
}

/// What a kernel does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Only reads it.
    Input,
    /// Writes every element, reads none. Where memory says which elements terms belong to, all of them begin as
    /// [`KernelInfo::fill`] says.
    Output,
    /// Updates it in place.
    InOut,
}

impl Role {
    /// Whether the kernel writes the tensor.
    pub const fn is_written(self) -> bool {
        matches!(self, Self::Output | Self::InOut)
    }
}

/// Largest size, and largest stride in elements, that a launch may have: more than any memory holds. Index arithmetic
/// of 64 bits is right up to here.
pub const MOST_SIZE: i64 = 1 << 40;

/// One entry point of the PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Symbol in the PTX.
    pub name: Text,
    /// Conditions under which it is correct, such as 32-bit indices that suffice.
    pub conditions: List<Constraint>,
    /// Whether it takes the tensor maps.
    pub takes_maps: bool,
    /// Dynamic shared memory of a block, in bytes; 0 where what a block has is of fixed size.
    pub shared_bytes: u32,
}

/// A tensor map, over sizes that are known at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapInfo {
    /// Name of the staged copy in the source.
    pub name: Text,
    /// The tensor.
    pub parameter: u16,
    /// Type of its elements.
    pub format: Format,
    /// Its dimensions, innermost first.
    pub dimensions: List<MapDimension>,
    /// The swizzle of tiles in shared memory.
    pub swizzle: Swizzle,
    /// What a miss fetches into the second-level cache.
    pub promotion: Promotion,
}

/// A dimension of a [`MapInfo`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDimension {
    /// Elements of the tensor along it.
    pub size: Size,
    /// Distance of neighbours, in elements.
    pub stride: Size,
    /// Elements that a box spans.
    pub box_size: u32,
    /// Every so manieth element of a box is copied.
    pub element_stride: u32,
}

/// Why a tensor map cannot be encoded for some arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapError {
    /// A size or stride has no value, or one beyond 64 bits.
    Size(SizeError),
    /// A rule of tensor maps is broken.
    Rule(Fault),
}

impl std::fmt::Display for MapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Size(error) => error.fmt(f),
            Self::Rule(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for MapError {}

impl MapInfo {
    /// The map for a tensor at `address`, with these dimensions of the kernel. Every rule of tensor maps holds for it.
    ///
    /// # Errors
    /// See [`MapError`].
    pub fn at(&self, address: u64, dims: &[i64]) -> Result<TensorMap, MapError> {
        let value = |size: &Size| {
            let value = size.eval(dims).map_err(MapError::Size)?;
            u64::try_from(value).map_err(|_| MapError::Size(SizeError::Overflow))
        };
        let bytes = u64::from(self.format.bytes());
        let mut dimensions = Vec::with_capacity(self.dimensions.len());
        for (at, d) in self.dimensions.iter().enumerate() {
            let size = value(&d.size)?;
            let stride = value(&d.stride)?.checked_mul(bytes).ok_or(MapError::Size(SizeError::Overflow))?;
            // Of a dimension of one element the stride is never used, and a launch may leave it open.
            let stride = if at > 0 && size == 1 { tensor_map::GRANULE } else { stride };
            dimensions.push(Dimension { size, stride, box_size: d.box_size, element_stride: d.element_stride });
        }
        let map = TensorMap {
            format: self.format,
            address,
            dimensions,
            swizzle: self.swizzle,
            fill: Fill::Zero,
            promotion: self.promotion,
        };
        map.check().map_err(MapError::Rule)?;
        Ok(map)
    }
}

/// Device memory that blocks of a launch share, and nobody else: where they hand parts of a result to each other.
/// Launches that may overlap have memory of their own each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Name, for messages.
    pub name: Text,
    /// Element type.
    pub element: ElementType,
    /// Number of elements.
    pub elements: Size,
    /// Whether all its bytes are zero when a launch begins; the launch leaves them zero for the next one. What other
    /// memory holds, a launch does not ask.
    pub zeroed: bool,
}

/// What one `.param` receives. Addresses and dimensions are 64-bit, scalars have their element's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Base address of a tensor parameter.
    Address(u16),
    /// Value of a scalar parameter.
    Scalar(u16),
    /// Value of a dimension or stride, as a signed 64-bit integer.
    Dim(u16),
    /// Base address of a [`Workspace`].
    Workspace(u16),
    /// A tensor map, 128 bytes by value.
    Map(u16),
}

/// Most threads of a block (CUDA programming guide, table of compute capabilities).
pub const BLOCK_LIMIT: u32 = 1024;

/// Launch shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Number of blocks; the grid is one-dimensional. Of a persistent launch it is the number of tiles, times the
    /// blocks of a cluster.
    pub blocks: Size,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of a cluster; 1 without clusters.
    pub cluster: u32,
    /// Whether blocks take tiles in turn: then any number of whole clusters computes everything, and the launcher
    /// chooses as many as run at one time, at most [`Self::blocks`].
    pub persistent: bool,
    /// Whether the launch may begin before the one before it in its stream has ended: every thread of the kernel
    /// waits for that (`griddepcontrol.wait`) before it touches memory.
    pub dependent: bool,
}

/// The device code and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    /// PTX text.
    pub text: Text,
    /// PTX ISA version, such as (7, 0).
    pub version: (u8, u8),
    /// Target, such as `sm_80`.
    pub target: Text,
    /// Lowest compute capability, such as (8, 0).
    pub capability: (u8, u8),
    /// Whether it runs on that compute capability only (targets with the suffix `a`).
    pub exact_capability: bool,
    /// Lowest CUDA version of the driver, such as (11, 0).
    pub driver: (u8, u8),
}

impl Ptx {
    /// Whether it runs on a device of this compute capability.
    pub fn runs_on(&self, capability: (u8, u8)) -> bool {
        if self.exact_capability { capability == self.capability } else { capability >= self.capability }
    }
}

impl KernelInfo {
    /// What each `.param` of an entry point receives, in order.
    pub fn arguments_of(&self, entry: &Entry) -> impl Iterator<Item = Argument> {
        let takes_maps = entry.takes_maps;
        self.arguments.iter().copied().filter(move |a| takes_maps || !matches!(a, Argument::Map(_)))
    }

    /// The number of the entry point to launch for these dimensions: the first one whose conditions hold. A condition
    /// that has no value does not hold.
    pub fn entry_for(&self, dims: &[i64]) -> Option<usize> {
        let holds = |c: &Constraint| c.holds(dims).unwrap_or(false);
        self.entries.iter().position(|entry| entry.conditions.iter().all(holds))
    }

    /// The bits that every element of a parameter has to have when a launch begins: of an output that takes terms in
    /// where memory says, and that begins as nothing else. The launcher fills it, in the order of the stream. None for
    /// other parameters.
    pub fn fill(&self, parameter: u16) -> Option<u64> {
        let ParameterKind::Tensor(tensor) = &self.parameters.get(usize::from(parameter))?.kind else { return None };
        let scatter = self.algorithm.scatter_of(parameter).filter(|_| tensor.role == Role::Output)?;
        match *self.algorithm.values.get(scatter as usize)? {
            Value::Scatter { op: Some(op), .. } => op.empty(self.parameters[usize::from(parameter)].element),
            // 0 of any type: `false` of `bool`.
            _ => Some(0),
        }
    }

    /// Whether there is nothing to compute for these dimensions, since all outputs are empty, or have no term that
    /// could be scattered into them: no launch is needed, so no requirement matters. What begins as [`Self::fill`]
    /// says has to be filled even so.
    pub fn computes_nothing(&self, dims: &[i64]) -> bool {
        let outputs = (0..).zip(self.parameters.iter()).filter_map(|(at, parameter)| match &parameter.kind {
            ParameterKind::Tensor(tensor) if tensor.role.is_written() => Some((at, &tensor.shape)),
            _ => None,
        });
        let mut outputs = outputs.peekable();
        let has_no_terms = |at| self.launch.blocks.eval(dims) == Ok(0) && self.algorithm.is_scattered(at);
        let is_empty = |shape: &List<Size>| shape.iter().any(|extent| extent.eval(dims) == Ok(0));
        outputs.peek().is_some() && outputs.all(|(at, shape)| is_empty(shape) || has_no_terms(at))
    }

    /// The name of dimension `dim`, for messages.
    pub fn dim_name(&self, dim: u16) -> &str {
        self.dims.get(usize::from(dim)).map_or("?", |d| &d.name)
    }
}
