//! What a staged copy is: which way it goes, and what an instance holds along each axis of its view.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::ValueId;
use tilewright_kernel::tensor_map::{Format, Promotion, STRIDE_LIMIT, Swizzle};

use crate::extent::{Expr, Var};
use crate::kernel_ir::Evict;
use crate::layout::{self, Path};
use crate::region::Interval;
use crate::schedule::Attach;
use crate::schedule::accesses::FromMemory;
use crate::source::Span;

/// Most elements along an axis of a tensor that tiles are copied from or to: coordinates of the accelerator are signed,
/// with 32 bits (PTX manual, `cp.async.bulk.tensor`, operand `tensorCoords`).
pub const MOST_ELEMENTS: i64 = i32::MAX as i64;

/// Which way a staged copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a tensor to shared memory, for the stage that reads it.
    Load,
    /// From shared memory, where the stage wrote it, to a tensor.
    Store,
}

/// A staged copy of a tensor for the one stage that reads it, or that writes it.
#[derive(Clone, Debug)]
pub struct Staged {
    /// Its name.
    pub name: String,
    /// Which way it goes.
    pub way: Way,
    /// Buffers that its instances take in turn.
    pub ring: u32,
    /// Whether copies without a live slot are sent out of bounds, so that every hole is zero.
    pub redirect: bool,
    /// Whether its author wants holes to hold anything: then no reader relies on zeros.
    pub any: bool,
    /// The role that makes it: a position in [`Plan::roles`](crate::schedule::Plan::roles); none in a launch without
    /// roles.
    pub role: Option<usize>,
    /// The tensor.
    pub parameter: u16,
    /// The reads that take it, if its stage has several copies of the tensor; none if all do.
    pub serves: Option<Vec<ValueId>>,
    /// Type of its elements.
    pub element: ElementType,
    /// The same, as the accelerator knows it.
    pub format: Format,
    /// The blocks of a cluster that take it together; none if each block has its own.
    pub multicast: Option<Multicast>,
    /// Where an instance stands: in a sequential loop, or in the block as a whole.
    pub attach: Attach,
    /// The axes of the TMA domain, outermost first.
    pub axes: Vec<Axis>,
    /// What is read from memory for the start of an instance, by the variables of
    /// [`Family::MEMORY`](crate::extent::Family::MEMORY) that stand for it there.
    pub memory: Vec<(Var, FromMemory)>,
    /// Which instructions copy an instance.
    pub form: Form,
    /// The swizzle of its layout.
    pub swizzle: Swizzle,
    /// What counts tiles in the buffer, outermost first: boxes and phases of axes.
    pub outer: Vec<(usize, Part)>,
    /// The op that gave the layout.
    pub layout: Option<Span>,
    /// What the L2 cache fetches around what is copied.
    pub promotion: Promotion,
    /// How long it should keep that.
    pub evict: Option<Evict>,
}

/// Stands between the names of a composite in [`Axis::name`].
pub const BETWEEN_NAMES: char = '·';

/// An axis of the TMA domain with what an instance copies along it.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name, or the names of a composite.
    pub name: String,
    /// Elements of the tensor along it.
    pub size: Expr,
    /// Distance of neighbours, in elements.
    pub stride: Expr,
    /// Where an element of the tensor lies along the axis: over dimensions and
    /// [`Family::PLACEHOLDER`](crate::extent::Family::PLACEHOLDER).
    pub position: Expr,
    /// What one instance holds, over dimensions and the loops around the instance.
    pub region: Interval,
    /// The box and its tile.
    pub boxed: Boxed,
    /// Dimensions of the tensor that it is made of.
    pub dims: Vec<usize>,
    /// Those in which an index past the end would be another element of the axis.
    pub aliased: Vec<usize>,
}

impl Staged {
    /// Whether a read of a tensor takes this copy.
    pub fn is_for(&self, parameter: u16, read: Option<ValueId>) -> bool {
        let served = |served: &Vec<ValueId>| read.is_some_and(|read| served.contains(&read));
        self.way == Way::Load && self.parameter == parameter && self.serves.as_ref().is_none_or(served)
    }

    /// The axis whose boxes have places that memory lists, if there is one, and what lists them.
    pub fn listed(&self) -> Option<(usize, &(Var, FromMemory))> {
        let listed = self.memory.iter().find(|(_, read)| read.listed.is_some())?;
        Some((self.axes.iter().position(|axis| axis.region.start.vars().contains(&listed.0))?, listed))
    }

    /// The longest distance of neighbours that a tensor map has, in elements.
    pub fn most_apart(&self) -> i128 {
        i128::from(STRIDE_LIMIT - 1) / i128::from(self.element.bytes())
    }
}

impl Axis {
    /// Boxes of one instance along the axis.
    pub fn boxes(&self) -> i128 {
        (self.region.extent + self.boxed.box_size - 1).div_euclid(self.boxed.box_size)
    }

    /// Slots of a tile along the axis.
    pub fn tile(&self) -> i128 {
        (self.boxed.box_size + self.boxed.element_stride - 1).div_euclid(self.boxed.element_stride)
    }

    /// Tiles of one instance along the axis: one for every phase of every box.
    pub fn tiles(&self) -> i128 {
        self.boxes() * self.boxed.element_stride
    }

    /// What a part of the axis counts up to.
    pub(crate) fn count(&self, part: Part) -> i128 {
        match part {
            Part::Box => self.boxes(),
            Part::Phase => self.boxed.element_stride,
            Part::Slot => self.tile(),
        }
    }

    /// How many elements of the axis one step of a part takes.
    pub(crate) fn step(&self, part: Part) -> i128 {
        match part {
            Part::Box => self.boxed.box_size,
            Part::Phase => 1,
            Part::Slot => self.boxed.element_stride,
        }
    }
}

/// What an index in the buffer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Boxes of the region.
    Box,
    /// Phases of a box.
    Phase,
    /// Slots of a tile.
    Slot,
}

/// A part of a position in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Position in [`Staged::axes`].
    pub axis: usize,
    /// What is counted along it.
    pub part: Part,
    /// Elements that one step takes.
    pub stride: i128,
}

/// Which instructions copy an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Tiles of a tensor map: `cp.async.bulk.tensor`.
    Tiles(NotRuns),
    /// Contiguous runs of so many elements, by their addresses: `cp.async.bulk`.
    Runs(i128),
}

/// Why a copy goes by tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRuns {
    /// Only the accelerator's tiles are swizzled.
    Swizzled,
    /// What the L2 cache fetches together is a property of a tensor map.
    Promoted,
    /// Boxes of this axis have holes: an element stride, or a last box that is cut.
    Holes(String),
    /// Boxes of this axis are not known to lie inside the tensor.
    Ends(String),
    /// So many runs of so many elements, more than tiles.
    Short(i128, i128),
    /// Runs are not known to start and end at multiples of 16 bytes.
    Granule,
    /// More than an instance can have.
    TooLong,
}

/// Blocks of a cluster that take each instance of a copy together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multicast {
    /// How many they are.
    pub blocks: u32,
    /// From one of them to the next, in numbers of blocks.
    pub stride: u32,
    /// Blocks of the cluster.
    pub cluster: u32,
    /// The axis whose boxes they divide among each other, one each: a position in
    /// [`Staged::axes`]. The first of them copies all, if none.
    pub by: Option<usize>,
    /// The axis of the cluster, for readers.
    pub along: String,
}

impl Multicast {
    /// How it follows from the number of a block in the cluster which of them it is.
    pub fn path(&self) -> Path {
        let outside = i128::from(self.stride) * i128::from(self.blocks);
        Path::default().with(layout::Step::Mod(outside)).with(layout::Step::Div(self.stride.into()))
    }

    /// Which of them a block of the cluster is.
    pub fn digit(&self, rank: u32) -> u32 {
        self.path().at(rank.into()) as u32
    }

    /// The block that is the first of those that a block takes copies with.
    pub fn first(&self, rank: u32) -> u32 {
        rank - self.digit(rank) * self.stride
    }

    /// The blocks that read what this block copies, and fill their slots again only once all of them have: one bit for
    /// each number in the cluster.
    pub fn readers(&self, rank: u32) -> u32 {
        (0..self.blocks).fold(0, |mask, n| mask | 1 << (self.first(rank) + n * self.stride))
    }
}

/// A boxing split, and the striding split of its box.
#[derive(Clone, Debug)]
pub struct Boxed {
    /// Elements that the box spans.
    pub box_size: i128,
    /// Distance of two slots; 1 for a dense tile.
    pub element_stride: i128,
    /// Axes that count boxes, outermost first; none if the axis is one box.
    pub coordinates: Vec<String>,
    /// Axes of the tile, outermost first; none for a box of one element.
    pub tile: Vec<TileAxis>,
    /// The axis that counts phases, if there is a striding split.
    pub phase: Option<String>,
    /// The op.
    pub span: Span,
    /// The striding split, if there is one.
    pub striding: Option<Span>,
}

/// An axis of the tile, and its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileAxis {
    /// Its name.
    pub name: String,
    /// Slots along it.
    pub extent: i128,
}

#[cfg(test)]
mod tests {
    use super::Multicast;

    /// All ways to divide up to 8 blocks among three axes: the blocks that differ along one axis alone, by the
    /// definition.
    #[test]
    fn readers_differ_along_the_axis_alone() {
        for [a, b, c] in (1..=8).flat_map(|a| (1..=8).flat_map(move |b| (1..=8).map(move |c| [a, b, c]))) {
            let cluster: u32 = a * b * c;
            if cluster > 8 {
                continue;
            }
            let digits = |rank: u32| [rank / (b * c), rank / c % b, rank % c];
            for (axis, (blocks, stride)) in [(a, b * c), (b, c), (c, 1)].into_iter().enumerate() {
                let along = String::new();
                let multicast = Multicast { blocks, stride, cluster, by: None, along };
                for rank in 0..cluster {
                    let same = |other: u32| (0..3).all(|n| n == axis || digits(rank)[n] == digits(other)[n]);
                    let readers = (0..cluster).filter(|other| same(*other)).fold(0, |mask, other| mask | 1 << other);
                    assert_eq!(multicast.readers(rank), readers, "{rank} of {a} x {b} x {c} along {axis}");
                    assert_eq!(multicast.digit(rank), digits(rank)[axis]);
                }
            }
        }
    }
}
