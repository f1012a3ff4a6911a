//! Which elements of its tensors a block reads and writes, for sizes that are known: for the first block, and for the
//! last one, which may reach past the ends.
//!
//! **Property.** A box has every index that an access of the block has, holes of the schedule included. **Formula.**
//! Along each dimension the least and the greatest value of the index over the loops and threads of the block, and of
//! the stages around. **Approximation.** They are those of each dimension alone, so that a box may have elements that
//! are not accessed; an index over more than [`POINTS`] combinations is bounded term by term.

use tilewright_compiler::extent::{Expr, Var, interval};
use tilewright_compiler::plan::Analysed;
use tilewright_compiler::plan::staged::{Staged, Way};
use tilewright_compiler::schedule::accesses::{Access, Inner};
use tilewright_kernel::KernelInfo;
use tilewright_kernel::info::ParameterKind;

/// Most combinations of loops and threads that are looked at for an index.
const POINTS: i128 = 1 << 14;

/// Start and length along a dimension of a tensor.
pub type Span = (i128, i128);

/// The boxes of an access, or of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxView {
    pub tensor: String,
    /// Elements along each dimension of the tensor.
    pub shape: Vec<i128>,
    /// Whether it is written.
    pub write: bool,
    /// The stage that accesses it.
    pub stage: String,
    /// The copy that it goes through.
    pub copy: Option<String>,
    /// What the first block accesses, along each dimension, and what the last one does.
    pub first: Vec<Span>,
    pub last: Vec<Span>,
    /// What one instruction of a copy moves first.
    pub tile: Option<Vec<Span>>,
}

/// Those of a kernel, whose dimensions have these values; an access whose indices come from memory has none. `is_there`
/// says whether a copy is made: an access that would go through another one reads or writes the tensor itself.
pub fn view(info: &KernelInfo, stages: &[Analysed], sizes: &[i128], is_there: &dyn Fn(&str) -> bool) -> Vec<BoxView> {
    let mut found: Vec<BoxView> = Vec::new();
    for (at, own) in stages.iter().enumerate() {
        let blocks = [Block::First, Block::Last].map(|block| Loops::of(stages, at, sizes, block));
        let [Some(first), Some(last)] = blocks else { continue };
        for access in &own.accesses {
            let copy = copy_of(stages, at, access).filter(|(copy, _)| is_there(&copy.name));
            let spans = |loops: &Loops<'_>| -> Option<Vec<Span>> {
                let loops = loops.within(&access.inner);
                access.indices.iter().map(|index| loops.span(index)).collect()
            };
            let Some(shape) = shape(info, access.parameter, sizes) else { continue };
            let (Some(first), Some(last)) = (spans(&first), spans(&last)) else { continue };
            let view = BoxView {
                tensor: info.parameters[usize::from(access.parameter)].name.to_string(),
                shape,
                write: access.is_write,
                stage: own.stage.name.clone(),
                copy: copy.map(|(copy, _)| copy.name.clone()),
                first,
                last,
                tile: copy.and_then(|(copy, host)| tile(copy, stages, host, sizes, access.indices.len())),
            };
            if !found.contains(&view) {
                found.push(view);
            }
        }
    }
    found
}

fn shape(info: &KernelInfo, parameter: u16, sizes: &[i128]) -> Option<Vec<i128>> {
    let ParameterKind::Tensor(tensor) = &info.parameters.get(usize::from(parameter))?.kind else { return None };
    let sizes: Option<Vec<i64>> = sizes.iter().map(|size| i64::try_from(*size).ok()).collect();
    let sizes = sizes?;
    tensor.shape.iter().map(|extent| extent.eval(&sizes).ok()).collect()
}

/// The copy that an access goes through, and the stage in whose loops it stands.
fn copy_of<'a>(stages: &'a [Analysed], at: usize, access: &Access) -> Option<(&'a Staged, usize)> {
    let takes = |copy: &&Staged| match copy.way {
        Way::Load => !access.is_write && copy.is_for(access.parameter, access.value),
        Way::Store => access.is_write && copy.parameter == access.parameter,
    };
    around(stages, at).find_map(|host| Some((stages[host].staged.iter().find(takes)?, host)))
}

/// A stage and those in whose loops it stands, from the inside out.
fn around(stages: &[Analysed], at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(at), |at| stages[*at].stage.attach.as_ref().map(|attach| attach.stage))
}

/// The first box that a copy moves in the first block, if each axis of the copy is one dimension of the tensor.
fn tile(copy: &Staged, stages: &[Analysed], host: usize, sizes: &[i128], rank: usize) -> Option<Vec<Span>> {
    let loops = Loops::of(stages, host, sizes, Block::First)?;
    let mut spans = vec![(0, 1); rank];
    for axis in &copy.axes {
        let [dim] = axis.dims[..] else { return None };
        let start = loops.span(&axis.region.start)?.0;
        *spans.get_mut(dim)? = (start, axis.boxed.box_size);
    }
    Some(spans)
}

/// A block: the one with the first iteration of every axis of blocks, or with the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    First,
    Last,
}

/// The ranges of the variables of a stage in a block: of the loops around it, and of its own.
#[derive(Clone)]
struct Loops<'a> {
    sizes: &'a [i128],
    /// The least and the greatest value of each variable after the dimensions.
    ranges: Vec<Option<(i128, i128)>>,
}

impl<'a> Loops<'a> {
    fn of(stages: &[Analysed], at: usize, sizes: &'a [i128], block: Block) -> Option<Self> {
        let mut chain: Vec<usize> = around(stages, at).collect();
        chain.reverse();
        let mut loops = Self { sizes, ranges: Vec::new() };
        for at in chain {
            let Analysed { stage, symbolic, .. } = &stages[at];
            if stage.facts.dims() != sizes.len() + loops.ranges.len() {
                return None;
            }
            for (leaf, variable) in stage.domain.leaves.iter().zip(&symbolic.variables) {
                let last = loops.most(&variable.extent).map(|extent| (extent - 1).max(0));
                let range = |last| match (stage.domain.axes[*leaf].binding.is_of_blocks(), block) {
                    (false, _) => (0, last),
                    (true, Block::First) => (0, 0),
                    (true, Block::Last) => (last, last),
                };
                loops.ranges.push(last.map(range));
            }
            for (_, a, b) in &symbolic.opaque {
                // Of numbers below a power of two, which the exclusive or has for its bound, too.
                let most = loops.most(a).zip(loops.most(b)).and_then(|(a, b)| u64::try_from(a.max(b) + 1).ok());
                loops.ranges.push(most.map(|most| (0, i128::from(most.next_power_of_two()) - 1)));
            }
        }
        Some(loops)
    }

    /// With the variables of reductions inside.
    fn within(&self, inner: &[Inner]) -> Self {
        let mut loops = self.clone();
        for axis in inner {
            let at = (axis.var as usize).saturating_sub(self.sizes.len());
            let range = loops.span(&axis.lower).zip(loops.most(&axis.upper));
            let range = range.map(|((low, _), upper)| (low, (upper - 1).max(low)));
            loops.ranges.resize(loops.ranges.len().max(at + 1), None);
            loops.ranges[at] = range;
        }
        loops
    }

    fn range(&self, var: Var) -> Option<(i128, i128)> {
        let var = var as usize;
        match self.sizes.get(var) {
            Some(size) => Some((*size, *size)),
            None => *self.ranges.get(var - self.sizes.len())?,
        }
    }

    /// The greatest value of an expression.
    fn most(&self, e: &Expr) -> Option<i128> {
        self.span(e).map(|(start, length)| start + length - 1)
    }

    /// The values of an expression.
    fn span(&self, e: &Expr) -> Option<Span> {
        let vars = e.vars();
        let ranges: Vec<(i128, i128)> = vars.iter().map(|var| self.range(*var)).collect::<Option<_>>()?;
        let points = ranges.iter().try_fold(1_i128, |n, (low, high)| n.checked_mul(high - low + 1));
        if points.is_none_or(|points| points > POINTS) {
            let (low, high) = interval(e, &|var| self.range(var))?;
            return Some((low, high - low + 1));
        }
        let mut values: Vec<i128> = ranges.iter().map(|r| r.0).collect();
        let mut found: Option<(i128, i128)> = None;
        loop {
            let value = e.value(&|var| vars.iter().position(|v| *v == var).map(|n| values[n]))?;
            found = Some(found.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
            let Some(next) = (0..values.len()).rev().find(|n| values[*n] < ranges[*n].1) else { break };
            values[next] += 1;
            for n in next + 1..values.len() {
                values[n] = ranges[n].0;
            }
        }
        found.map(|(low, high)| (low, high - low + 1))
    }
}
