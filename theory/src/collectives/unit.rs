//! Units: what the threads of a loop or of an operation are counted in, for a launch of any shape.

use std::borrow::Cow;

use super::Shape;
use super::types::{CollectiveType, TypeDim};

/// Powers of the blocks of a cluster and of the threads of a block, also in divisors, times a rational number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    factor: u64,
    divisor: u64,
    clusters: i32,
    blocks: i32,
}

impl Size {
    /// Blocks of a cluster.
    pub const CLUSTER: Self = Self { factor: 1, divisor: 1, clusters: 1, blocks: 0 };
    /// Threads of a block.
    pub const BLOCK: Self = Self { factor: 1, divisor: 1, clusters: 0, blocks: 1 };

    /// A number.
    pub const fn of(number: u64) -> Self {
        Self { factor: number, divisor: 1, clusters: 0, blocks: 0 }
    }

    /// Divided by a number; none by 0, or if numbers get too large.
    #[must_use]
    pub const fn over(self, number: u64) -> Option<Self> {
        match self.divisor.checked_mul(number) {
            Some(divisor) if divisor > 0 => Some(Self { divisor, ..self }),
            _ => None,
        }
    }

    /// The product; none if numbers get too large.
    #[must_use]
    pub fn times(self, other: Self) -> Option<Self> {
        Some(Self {
            factor: self.factor.checked_mul(other.factor)?,
            divisor: self.divisor.checked_mul(other.divisor)?,
            clusters: self.clusters.checked_add(other.clusters)?,
            blocks: self.blocks.checked_add(other.blocks)?,
        })
    }

    /// The quotient; none by 0, or if numbers get too large.
    #[must_use]
    pub fn by(self, other: Self) -> Option<Self> {
        let (factor, divisor) = (other.divisor, other.factor);
        let inverse =
            Self { factor, divisor, clusters: other.clusters.checked_neg()?, blocks: other.blocks.checked_neg()? };
        self.times(inverse).filter(|quotient| quotient.divisor > 0)
    }

    /// Its value; none if it is not whole.
    fn at(self, shape: Shape) -> Option<u64> {
        let (mut product, mut divisor) = (self.factor, self.divisor);
        for (size, power) in [(shape.cluster(), self.clusters), (shape.block(), self.blocks)] {
            let factor = size.checked_pow(power.unsigned_abs())?;
            let side = if power < 0 { &mut divisor } else { &mut product };
            *side = side.checked_mul(factor)?;
        }
        (divisor > 0 && product % divisor == 0).then(|| product / divisor)
    }
}

/// Whether blocks that a unit says nothing of are one or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// One of them: what an operation needs.
    Unitary,
    /// Each of those that are there: what a loop narrows.
    Agnostic,
}

/// A collective unit: extents of a domain, and how much of each a unit has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    name: Cow<'static, str>,
    scale: u64,
    /// The extents, outermost first, with how much of each there is: any amount if that is not said.
    dims: Vec<(Size, Option<Size>)>,
    /// The dimension of which a scaled unit has more.
    scalable: Option<usize>,
}

/// Why a unit is none of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFault {
    /// The unit.
    pub unit: String,
    /// Its dimension, counted from 0, where the reason lies in one.
    pub dimension: Option<usize>,
    /// The reason.
    pub problem: UnitProblem,
}

/// The reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitProblem {
    /// A scale that the unit does not have, or 0.
    Scale {
        /// The scale.
        scale: u64,
    },
    /// Extents and boxes are not as many.
    Lengths {
        /// Extents.
        domain: usize,
        /// Boxes.
        boxes: usize,
    },
    /// An extent or a box that is no whole number.
    NotWhole,
    /// A box that is 0 or larger than the extent.
    Box {
        /// The box.
        size: u64,
        /// The extent.
        extent: u64,
    },
    /// Extents whose product does not divide the threads of the cluster.
    Product {
        /// The product.
        product: u64,
        /// The threads.
        threads: u64,
    },
    /// A box that does not divide its extent: no set of threads is such a unit.
    NotAligned {
        /// The box.
        size: u64,
        /// The extent.
        extent: u64,
    },
}

const fn part(of: Size, by: u64) -> Size {
    Size { divisor: of.divisor * by, ..of }
}

impl Unit {
    fn named(name: impl Into<Cow<'static, str>>, dims: Vec<(Size, Option<Size>)>, scalable: Option<usize>) -> Self {
        Self { name: name.into(), scale: 1, dims, scalable }
    }

    /// One thread of the launch.
    pub fn standalone_thread() -> Self {
        Self::named("standalone thread", vec![(Size::of(1), Some(Size::of(1)))], Some(0))
    }

    /// A thread of a block.
    pub fn thread() -> Self {
        Self::of_block("thread", 1)
    }

    /// 32 threads of a block, aligned.
    pub fn warp() -> Self {
        Self::of_block("warp", super::WARP)
    }

    /// 128 threads of a block, aligned.
    pub fn warpgroup() -> Self {
        Self::of_block("warpgroup", super::WARPGROUP)
    }

    fn of_block(name: &'static str, threads: u64) -> Self {
        Self::named(name, vec![(Size::BLOCK, Some(Size::of(threads)))], Some(0))
    }

    /// Two groups of four threads, sixteen apart.
    pub fn quadpair() -> Self {
        let (four, two) = (Some(Size::of(4)), Some(Size::of(2)));
        Self::named("quadpair", vec![(part(Size::BLOCK, 16), two), (Size::of(16), four)], None)
    }

    /// `count` neighbours in each run of `stride` threads; scaled, so many of these runs. None if the stride is 0.
    pub fn threads_strided(count: u64, stride: u64) -> Option<Self> {
        let dims = vec![(Size::BLOCK.over(stride)?, Some(Size::of(1))), (Size::of(stride), Some(Size::of(count)))];
        Some(Self::named(format!("threads_strided({count}, {stride})"), dims, Some(0)))
    }

    /// A block.
    pub fn cta() -> Self {
        let both = Size { clusters: 1, ..Size::BLOCK };
        Self::named("cta", vec![(both, Some(Size::BLOCK))], Some(0))
    }

    /// All blocks of a cluster.
    pub fn cluster() -> Self {
        let both = Size { clusters: 1, ..Size::BLOCK };
        Self::named("cluster", vec![(both, Some(both))], None)
    }

    /// A block of each run of `stride` blocks; scaled, so many of these runs. None if the stride is 0.
    pub fn cta_strided(stride: u64) -> Option<Self> {
        Self::strided(format!("cta_strided({stride})"), stride, Size::BLOCK)
    }

    /// A warp with the same number in one block of each run of `stride` blocks; scaled, in so many. None if the stride
    /// is 0.
    pub fn warp_strided(stride: u64) -> Option<Self> {
        Self::strided(format!("warp_strided({stride})"), stride, Size::of(super::WARP))
    }

    fn strided(name: String, stride: u64, of_block: Size) -> Option<Self> {
        let one = Some(Size::of(1));
        let dims = vec![(Size::CLUSTER.over(stride)?, one), (Size::of(stride), one), (Size::BLOCK, Some(of_block))];
        Some(Self::named(name, dims, Some(0)))
    }

    /// A warp of one block; scaled, that of so many blocks side by side.
    pub fn warp_in_cluster() -> Self {
        let dims = vec![(Size::CLUSTER, Some(Size::of(1))), (Size::BLOCK, Some(Size::of(super::WARP)))];
        Self::named("warp_in_cluster", dims, Some(0))
    }

    /// Any threads of one block.
    pub fn agnostic_sub_cta() -> Self {
        Self::named("agnostic_sub_cta", vec![(Size::CLUSTER, Some(Size::of(1))), (Size::BLOCK, None)], None)
    }

    /// Whole warps of one block, any of them.
    pub fn agnostic_warps() -> Self {
        let warp = Size::of(super::WARP);
        let dims = vec![(Size::CLUSTER, Some(Size::of(1))), (part(Size::BLOCK, super::WARP), None), (warp, Some(warp))];
        Self::named("agnostic_warps", dims, None)
    }

    /// Whole blocks, of any number.
    pub fn agnostic_intact_cta() -> Self {
        Self::named("agnostic_intact_cta", vec![(Size::CLUSTER, None), (Size::BLOCK, Some(Size::BLOCK))], None)
    }

    /// A unit of one's own: extents, outermost first, and how much of each it has, any amount if that is not said.
    ///
    /// # Errors
    /// Lists of different lengths.
    pub fn raw(name: &str, domain: &[Size], boxes: &[Option<Size>]) -> Result<Self, UnitFault> {
        if domain.len() != boxes.len() {
            let problem = UnitProblem::Lengths { domain: domain.len(), boxes: boxes.len() };
            return Err(UnitFault { unit: name.to_owned(), dimension: None, problem });
        }
        Ok(Self::named(name.to_owned(), domain.iter().copied().zip(boxes.iter().copied()).collect(), None))
    }

    /// So many units side by side, as one.
    ///
    /// # Errors
    /// A scale of 0, and units that cannot be scaled.
    pub fn scaled(&self, scale: u64) -> Result<Self, UnitFault> {
        let fault = || UnitFault { unit: self.name(), dimension: None, problem: UnitProblem::Scale { scale } };
        if scale == 1 {
            return Ok(self.clone());
        }
        let mut unit = self.clone();
        let entry = self.scalable.filter(|_| scale > 0).and_then(|at| unit.dims[at].1.as_mut()).ok_or_else(fault)?;
        *entry = entry.times(Size::of(scale)).ok_or_else(fault)?;
        unit.scale = unit.scale.checked_mul(scale).ok_or_else(fault)?;
        Ok(unit)
    }

    /// What it is called: `warp`, `8 thread`.
    pub fn name(&self) -> String {
        if self.scale == 1 { self.name.to_string() } else { format!("{} {}", self.scale, self.name) }
    }

    /// Its type in a launch (docs/theory.md, Collectives): extents whose product is the threads of the cluster.
    ///
    /// # Errors
    /// A division that is not exact, or a box beyond its extent.
    pub fn typed(&self, shape: Shape, typing: Typing) -> Result<CollectiveType, UnitFault> {
        let fault = |dimension, problem| UnitFault { unit: self.name(), dimension, problem };
        let mut dims = Vec::new();
        let mut product: u64 = 1;
        let threads = shape.threads();
        for (at, (extent, part)) in self.dims.iter().enumerate() {
            let whole = |size: &Size| size.at(shape).ok_or_else(|| fault(Some(at), UnitProblem::NotWhole));
            let extent = whole(extent)?;
            let part = part.as_ref().map(whole).transpose()?;
            if let Some(size) = part.filter(|size| !(1..=extent).contains(size)) {
                return Err(fault(Some(at), UnitProblem::Box { size, extent }));
            }
            product = product.saturating_mul(extent);
            if extent != 1 {
                dims.push(TypeDim { extent, part });
            }
        }
        if product == 0 || !threads.is_multiple_of(product) {
            return Err(fault(None, UnitProblem::Product { product, threads }));
        }
        if threads > product {
            let part = (typing == Typing::Unitary).then_some(1);
            dims.insert(0, TypeDim { extent: threads / product, part });
        }
        Ok(CollectiveType { dims })
    }

    /// The aligned type of what an operation needs: sets of threads that match it are equal or disjoint, unless amounts
    /// are free.
    ///
    /// # Errors
    /// As [`Unit::typed`]; a box that does not divide its extent.
    pub fn needed(&self, shape: Shape) -> Result<CollectiveType, UnitFault> {
        self.typed(shape, Typing::Unitary)?.aligned().map_err(|dim| UnitFault {
            unit: self.name(),
            dimension: None,
            problem: UnitProblem::NotAligned { size: dim.part.unwrap_or(0), extent: dim.extent },
        })
    }
}
