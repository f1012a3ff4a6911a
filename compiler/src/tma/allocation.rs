//! The allocation domain of a tile: splits, merges and swizzles of its axes, recognised as what the accelerator does.
//!
//! The ops and the layout say at which offset each slot of the tile lies. The accelerator writes a tile row by row, and
//! can exchange chunks of 16 bytes by one of three patterns ([`Swizzle::apply`]). What was written is one of these, or
//! it is refused with the first slot that lies elsewhere (seed "Introduction to TMA Support", step 4; nvFuser takes the
//! mode from one axis of the first swizzle, and checks nothing else).
//!
//! **Property.** Accepted ⇔ one mode gives every slot of the tile the offset that was written, and tiles follow each
//! other as written.
//!
//! **Formula.** The index maps of [`domain`](crate::domain), evaluated for the slots of the tile, of which there are at
//! most 227 KiB. Not all are needed: both offsets of a slot grow by a constant where its coordinate along an axis grows
//! by a period, that of the pattern (1024 bytes of the tile) and of the splits of that axis together, as long as what
//! counts these periods is an axis of the layout by itself. So the first period and the step to the second decide, and
//! hold the smallest slot that differs.
//!
//! **The order of the map.** The slot at 1 along one axis lies at the stride s of that axis in the tile, moved inside
//! its 128-byte row. The strides of two axes are equal to a factor of at least 2, so that these slots are in different
//! rows, or in the first one, where nothing is exchanged: in the order of the offsets, the axes have the only order
//! that can be right.
//!
//! **Approximation.** None.

use tilewright_kernel::tensor_map::Swizzle;

use crate::diag::codes::Remainder;
use crate::domain::{Arithmetic, AxisId, AxisKind, Domain, NewAxis, Op};
use crate::extent::{Expr, Facts, gcd, lcm};
use crate::plan::staged::{Axis, TileAxis};
use crate::source::{Span, ast::SplitSide};

/// Bytes after which every pattern repeats.
const PERIOD: i128 = 1024;
/// Slots that are evaluated together.
const TOGETHER: i128 = 4096;
/// Most values of axes that are computed to compare two layouts.
const VALUES: i128 = 1 << 26;

/// What an op on axes of the tile does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileOpKind {
    /// Splits one axis, by a factor of this side.
    Split(SplitSide, i128),
    /// Merges axes, outermost first.
    Merge,
    /// Exchanges positions along the second axis, by exclusive or with the first.
    Swizzle,
}

/// An op on axes of the tile, as it was written.
#[derive(Clone, Debug)]
pub struct TileOp {
    /// What it does.
    pub kind: TileOpKind,
    /// The axes that it replaces.
    pub inputs: Vec<String>,
    /// Those that it makes, and where they are named.
    pub outputs: Vec<(String, Span)>,
    /// The op.
    pub span: Span,
}

/// The first slot of a tile that does not lie where the accelerator puts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its coordinates, along the axes of the tile.
    pub slot: Vec<(String, i128)>,
    /// Where it lies as written, in elements from the start of the tile.
    pub written: i128,
    /// Where it lies in each mode that rows of this length can have, the nearest one first: the one that agrees
    /// longest.
    pub modes: Vec<(Swizzle, i128)>,
}

/// The axes of a tile and what the ops make of them.
pub struct Allocation {
    domain: Domain,
    /// Of each root, which axis of the TMA domain it is part of; none of what has gone with axes of one element.
    owners: Vec<Option<usize>>,
    /// Extents of all axes of the domain.
    extents: Vec<i128>,
    /// The splits that leave a remainder.
    remainders: Vec<Remainder>,
    /// Bytes of an element.
    bytes: i128,
}

/// How the accelerator writes a tile as a layout says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The axes of the TMA domain, outermost first.
    pub order: Vec<usize>,
    /// What happens to the chunks of the tile.
    pub swizzle: Swizzle,
}

/// Why a layout is none that the accelerator writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unrecognised {
    /// Places without a slot, inside the tile or between tiles: the splits that leave remainders.
    Gaps(Vec<Remainder>),
    /// A slot lies elsewhere. The order of the axes is the one that is right if any is.
    Elsewhere(Elsewhere, Vec<usize>),
    /// A swizzle of two axes, with their extents, that are no square whose side is a power of two.
    NotASwizzle([(String, i128); 2], Span),
    /// More values than are compared.
    TooLong,
}

impl Allocation {
    /// Applies the ops to the axes of a tile. `gone` are axes of one element, which no map has.
    ///
    /// # Errors
    /// [`Unrecognised::NotASwizzle`], and [`Unrecognised::Gaps`] where they are too many to count.
    pub fn new(
        axes: &[Axis],
        gone: &[String],
        ops: &[TileOp],
        bytes: u32,
        facts: &Facts,
    ) -> Result<Self, Unrecognised> {
        let new = |name: &str, span: Span| NewAxis { name: name.to_owned(), span };
        let of_axes = axes.iter().enumerate().flat_map(|(n, axis)| {
            let part = move |t: &TileAxis| (Some(n), new(&t.name, axis.boxed.span), t.extent);
            axis.boxed.tile.iter().map(part)
        });
        let unknown = |name: &String| (None, new(name, Span::UNKNOWN), 1);
        let roots: Vec<(Option<usize>, NewAxis, i128)> = gone.iter().map(unknown).chain(of_axes).collect();
        let owners = roots.iter().map(|r| r.0).collect();
        let root = |(_, name, extent): (_, NewAxis, i128)| (name, Expr::constant(extent), AxisKind::Data);
        let mut domain = Domain::new(roots.into_iter().map(root));
        let mut remainders = Vec::new();
        let size = |domain: &Domain, axis: AxisId| domain.axes[axis].extent.as_constant();
        for op in ops {
            let inputs: Option<Vec<AxisId>> = op.inputs.iter().map(|name| domain.leaf(name)).collect();
            let Some(inputs) = inputs.filter(|i| !i.is_empty()) else { continue };
            let mut names = op.outputs.iter().map(|(name, span)| new(name, *span));
            match op.kind {
                TileOpKind::Split(side, factor) => {
                    let extent = size(&domain, inputs[0]).unwrap_or(1);
                    if extent % factor != 0 {
                        remainders.push(Remainder { axis: op.inputs[0].clone(), extent, factor, span: op.span });
                    }
                    let (Some(outer), Some(inner)) = (names.next(), names.next()) else { continue };
                    match side {
                        SplitSide::Inner => domain.split_by(inputs[0], factor, facts, [outer, inner], op.span),
                        SplitSide::Outer => domain.split_into(inputs[0], factor, facts, [outer, inner], op.span),
                    }
                }
                TileOpKind::Merge => {
                    let Some(name) = names.next() else { continue };
                    let mut merged = inputs[0];
                    for (at, next) in inputs.iter().enumerate().skip(1) {
                        let name = if at + 1 == inputs.len() { name.clone() } else { new("", op.span) };
                        merged = domain.merge(merged, *next, facts, name, op.span);
                    }
                    if inputs.len() == 1 {
                        domain.resize(merged, 0, 0, facts, name, op.span);
                    }
                }
                TileOpKind::Swizzle => {
                    let (Some(a), Some(b), &[x, y]) = (names.next(), names.next(), &inputs[..]) else { continue };
                    let shown = [x, y].map(|axis| (domain.axes[axis].name.clone(), size(&domain, axis).unwrap_or(0)));
                    if shown[0].1 != shown[1].1 || shown[0].1 < 1 || shown[0].1 & (shown[0].1 - 1) != 0 {
                        return Err(Unrecognised::NotASwizzle(shown, op.span));
                    }
                    domain.swizzle(x, y, [a, b], op.span);
                }
            }
        }
        let extents: Option<Vec<i128>> = (0..domain.axes.len()).map(|axis| size(&domain, axis)).collect();
        // Only places without a slot can be too many to count: there are as many slots as fit into shared memory.
        let Some(extents) = extents else { return Err(Unrecognised::Gaps(remainders)) };
        Ok(Self { domain, owners, extents, remainders, bytes: bytes.into() })
    }

    /// The axes to lay out, outermost first, with their extents.
    pub fn leaves(&self) -> impl Iterator<Item = (&str, i128)> {
        self.domain.leaves.iter().map(|a| (self.domain.axes[*a].name.as_str(), self.extents[*a]))
    }

    /// Elements from one step along each of these axes to the next, and the product of their extents; it saturates.
    fn strides(&self, layout: &[AxisId]) -> (Vec<(AxisId, i128)>, i128) {
        let mut stride = 1_i128;
        let mut strides = Vec::with_capacity(layout.len());
        for axis in layout.iter().rev() {
            strides.push((*axis, stride));
            stride = stride.saturating_mul(self.extents[*axis]);
        }
        (strides, stride)
    }

    /// Offsets of slots as written. `columns` are their coordinates, one column for each root.
    fn offsets(&self, strides: &[(AxisId, i128)], columns: Vec<Vec<i128>>) -> Vec<i128> {
        let slots = columns.first().map_or(1, Vec::len);
        let mut values = vec![None; self.domain.axes.len()];
        for (root, column) in self.domain.roots.iter().zip(columns) {
            values[*root] = Some(column);
        }
        self.domain.toward_leaves(&mut Columns(slots), &mut values);
        let mut offsets = vec![0_i128; slots];
        for (axis, stride) in strides {
            for (offset, value) in offsets.iter_mut().zip(values[*axis].iter().flatten()) {
                *offset = offset.saturating_add(value.saturating_mul(*stride));
            }
        }
        offsets
    }

    /// After how many steps along a root the offset of a slot as written has grown by the same amount wherever they
    /// started; none where that is not known.
    fn period(&self, root: AxisId) -> Option<i128> {
        let (mut axis, mut steps) = (root, 1_i128);
        while let Some((op, _)) = self.domain.consumer(axis) {
            let Op::Split { outer, inner, .. } = op else { return None };
            steps = steps.checked_mul(self.extents[*inner])?;
            axis = *outer;
        }
        Some(steps)
    }

    /// What the accelerator does to write a tile as `layout` says: names of all axes that count more than one,
    /// outermost first, and `sugar`, a swizzle of what they say. The buffer has `copies` tiles.
    ///
    /// # Errors
    /// See [`Unrecognised`].
    pub fn recognise(
        &self,
        axes: &[Axis],
        layout: &[&str],
        sugar: Swizzle,
        copies: i128,
    ) -> Result<Recognised, Unrecognised> {
        let layout: Vec<AxisId> = layout.iter().filter_map(|name| self.domain.leaf(name)).collect();
        let (strides, whole) = self.strides(&layout);
        let order = self.order(axes, &strides);
        // Roots in the order of the map, with the distance of neighbours in the tile.
        let parts = |axis: usize| (0..self.owners.len()).filter(move |r| self.owners[*r] == Some(axis));
        let roots: Vec<usize> = order.iter().flat_map(|axis| parts(*axis)).collect();
        let mut slots = 1;
        let mut dense = vec![0; self.owners.len()];
        for root in roots.iter().rev() {
            dense[*root] = slots;
            slots *= self.extents[self.domain.roots[*root]];
        }
        let has_swizzle = self.domain.ops.iter().any(|(op, _)| matches!(op, Op::Swizzle { .. }));
        let row = axes.last().map_or(0, |inner| inner.tile() * self.bytes);
        let own = u32::try_from(row).ok().and_then(Swizzle::with_span).unwrap_or(Swizzle::None);
        // Where several fit, because the tile is too small for a difference: what was written, then what needs least.
        let possible = |mode: &Swizzle| [Swizzle::None, own, sugar].contains(mode);
        let first = match sugar {
            Swizzle::None if has_swizzle => own,
            sugar => sugar,
        };
        let mut candidates: Vec<Swizzle> = Swizzle::ALL.to_vec();
        candidates.sort_by_key(|mode| (!possible(mode), *mode != first));
        let bounds = |root: &usize| {
            let (axis, extent) = (self.domain.roots[*root], self.extents[self.domain.roots[*root]]);
            let pattern = PERIOD / gcd(PERIOD, dense[*root] * self.bytes);
            let period = self.period(axis).and_then(|p| lcm(p, pattern));
            period.map_or(extent, |p| extent.min(p.saturating_add(1)))
        };
        let bounds: Vec<i128> = roots.iter().map(bounds).collect();
        let mut differences: Vec<Option<(Vec<i128>, i128)>> = vec![None; candidates.len()];
        self.visit(&roots, &bounds, &strides, |points, offsets| {
            for (slot, written) in offsets.iter().enumerate() {
                let place = |root: &usize| points[*root][slot] * dense[*root];
                let tile = roots.iter().map(place).sum();
                let written = self.moved(sugar, *written);
                for (mode, difference) in candidates.iter().zip(&mut differences) {
                    if difference.is_none() && self.moved(*mode, tile) != written {
                        *difference = Some((roots.iter().map(|r| points[*r][slot]).collect(), written));
                    }
                }
            }
            differences.iter().all(Option::is_some)
        })?;
        let fits: Vec<Swizzle> = candidates.iter().zip(&differences).filter(|c| c.1.is_none()).map(|c| *c.0).collect();
        if let Some(best) = fits.first() {
            // Places after the last slot belong to the tile as far as the next tile starts after them.
            let pitch = |n: i128, mode: Swizzle| {
                let alignment = i128::from(mode.alignment()) / self.bytes;
                n.saturating_add(alignment - 1) / alignment
            };
            let follows = |mode: &&Swizzle| copies == 1 || pitch(whole, **mode) == pitch(slots, **mode);
            return match fits.iter().filter(|mode| possible(mode)).find(follows) {
                Some(swizzle) => Ok(Recognised { order, swizzle: *swizzle }),
                None if possible(best) => Err(Unrecognised::Gaps(self.remainders.clone())),
                // Which rows of this length cannot have.
                None => Ok(Recognised { order, swizzle: *best }),
            };
        }
        if !self.remainders.is_empty() {
            let all: Vec<i128> = roots.iter().map(|r| self.extents[self.domain.roots[*r]]).collect();
            let mut greatest = 0;
            self.visit(&roots, &all, &strides, |_, offsets| {
                greatest = offsets.iter().copied().fold(greatest, i128::max);
                false
            })?;
            if greatest >= slots {
                return Err(Unrecognised::Gaps(self.remainders.clone()));
            }
        }
        // What rows of this length can have, the latest difference first.
        let mut found: Vec<(Swizzle, (Vec<i128>, i128))> =
            candidates.into_iter().zip(differences.into_iter().flatten()).collect();
        found.retain(|(mode, _)| possible(mode));
        found.sort_by(|a, b| b.1.0.cmp(&a.1.0));
        let Some((point, written)) = found.first().map(|f| f.1.clone()) else { return Err(Unrecognised::TooLong) };
        let tile = roots.iter().zip(&point).map(|(r, x)| x * dense[*r]).sum();
        let name = |root: &usize| self.domain.axes[self.domain.roots[*root]].name.clone();
        let elsewhere = Elsewhere {
            slot: roots.iter().map(name).zip(point).collect(),
            written,
            modes: found.iter().map(|(mode, _)| (*mode, self.moved(*mode, tile))).collect(),
        };
        Err(Unrecognised::Elsewhere(elsewhere, order))
    }

    /// Where a mode puts the element at an offset of the tile.
    fn moved(&self, mode: Swizzle, offset: i128) -> i128 {
        let address = offset.saturating_mul(self.bytes);
        // Less than the period.
        let within = address.rem_euclid(PERIOD) as u32;
        (address - i128::from(within) + i128::from(mode.apply(within))) / self.bytes
    }

    /// The order of the map: see the head of this file. Axes of one slot stay where they are, and so does the innermost
    /// one.
    fn order(&self, axes: &[Axis], strides: &[(AxisId, i128)]) -> Vec<usize> {
        let units = axes.len();
        let columns = (0..self.owners.len()).map(|root| {
            let counts = |r: usize| self.extents[self.domain.roots[r]] > 1;
            let inner =
                |r: usize| self.owners[r + 1..].iter().zip(r + 1..).all(|(o, s)| *o != self.owners[r] || !counts(s));
            let is_unit = |n: usize| self.owners[root] == Some(n) && counts(root) && inner(root);
            (0..units).map(|n| i128::from(is_unit(n))).collect()
        });
        let offsets = self.offsets(strides, columns.collect());
        let sorted: Vec<usize> = (0..units.saturating_sub(1)).filter(|n| axes[*n].tile() > 1).collect();
        let mut next = sorted.clone();
        next.sort_by_key(|n| std::cmp::Reverse(offsets[*n]));
        let mut order: Vec<usize> = (0..units).collect();
        for (place, axis) in sorted.into_iter().zip(next) {
            order[place] = axis;
        }
        order
    }

    /// Visits the slots below `bounds` along these roots, in lexicographic order and many at a time, with their
    /// coordinates along all roots and their offsets as written, until `visit` says that it is enough.
    fn visit(
        &self,
        roots: &[usize],
        bounds: &[i128],
        strides: &[(AxisId, i128)],
        mut visit: impl FnMut(&[Vec<i128>], &[i128]) -> bool,
    ) -> Result<(), Unrecognised> {
        let slots = bounds.iter().fold(1_i128, |n, b| n.saturating_mul(*b));
        if slots.saturating_mul(self.domain.axes.len() as i128) > VALUES {
            return Err(Unrecognised::TooLong);
        }
        let mut first = 0;
        while first < slots {
            let here = first..slots.min(first + TOGETHER);
            let mut points = vec![vec![0; (here.end - here.start) as usize]; self.owners.len()];
            let mut below = 1;
            for (root, bound) in roots.iter().zip(bounds).rev() {
                points[*root] = here.clone().map(|slot| slot / below % bound).collect();
                below *= bound;
            }
            let offsets = self.offsets(strides, points.clone());
            if visit(&points, &offsets) {
                break;
            }
            first = here.end;
        }
        Ok(())
    }
}

/// Index values of several slots.
struct Columns(usize);

impl Columns {
    fn each(a: &[i128], b: &[i128], f: impl Fn(i128, i128) -> i128) -> Vec<i128> {
        a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
    }
}

impl Arithmetic for Columns {
    type Value = Vec<i128>;

    fn size(&mut self, e: &Expr) -> Vec<i128> {
        // All extents are numbers; otherwise there are no columns.
        vec![e.as_constant().unwrap_or(1); self.0]
    }
    fn add(&mut self, a: &Vec<i128>, b: &Vec<i128>) -> Vec<i128> {
        Self::each(a, b, i128::saturating_add)
    }
    fn mul(&mut self, a: &Vec<i128>, b: &Vec<i128>) -> Vec<i128> {
        Self::each(a, b, i128::saturating_mul)
    }
    fn div(&mut self, a: &Vec<i128>, b: &Vec<i128>) -> Vec<i128> {
        Self::each(a, b, |a, b| a.div_euclid(b.max(1)))
    }
    fn modulo(&mut self, a: &Vec<i128>, b: &Vec<i128>) -> Vec<i128> {
        Self::each(a, b, |a, b| a.rem_euclid(b.max(1)))
    }
    fn xor(&mut self, a: &Vec<i128>, b: &Vec<i128>, _bound: &Expr) -> Vec<i128> {
        Self::each(a, b, |a, b| a ^ b)
    }
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
mod tests;
