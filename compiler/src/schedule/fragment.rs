//! Fragments: which thread of a warpgroup holds which element of a sum of products, in which register.
//!
//! **Property.** `fragment (m, n) by wgmma` splits m and n and binds what comes of them, so that the stage's layout
//! from elements to threads and registers is that of the accumulator of `wgmma` (PTX manual 9.7.15.5.1.1.2), tile after
//! tile of 64 rows. **Formula.** With o, w, h, r the digits of m by 64, 16, 8, 1 and j, q, p those of n by 8, 2, 1:
//! warp w of the warpgroup, its lane 4·r + q, and of each o the register 4·j + 2·h + p.
//!
//! `mma (m, n, k) by wgmma` is the same for the elements of a `dot`, and marks it as one that tensor cores compute: k
//! is split by what an instruction takes of it. Everything else that is known of fragments (who holds what, what `like`
//! repeats, how lanes of a row combine what they have) is known of any axes with these binds.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Order, Value};

use super::apply::Apply;
use super::roots::outermost_reductions;
use crate::diag::codes::{NoSuchProduct, ProductProblem};
use crate::domain::{AxisId, AxisKind, Binding, NewAxis};
use crate::kernel_ir::Wgmma;
use crate::source::Span;
use crate::source::ast::{self, MmaEngine, Spanned};

/// Rows of an instruction.
const ROWS: i128 = Wgmma::ROWS as i128;

/// A `dot` that tensor cores compute, and the leaves of its atoms.
#[derive(Clone, Debug)]
pub struct Mma {
    /// The digits of its rows.
    pub rows: Rows,
    /// The digits of its columns.
    pub columns: Columns,
    /// Steps of an instruction along k, if there are several.
    pub steps: Option<AxisId>,
    /// Terms of an instruction.
    pub depth: AxisId,
    /// Groups of products that stay under way.
    pub inflight: u32,
    /// The type of the factors.
    pub operand: ElementType,
    /// The op.
    pub span: Span,
}

/// The digits of the rows of a sum.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Tiles of 64 rows, if there are several.
    pub tiles: Option<AxisId>,
    /// Warps.
    pub warp: AxisId,
    /// The upper and the lower half of a warp's rows.
    pub half: AxisId,
    /// Lanes, in fours.
    pub row: AxisId,
}

/// The digits of its columns.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Columns in eights.
    pub eights: AxisId,
    /// Lanes of four.
    pub quad: AxisId,
    /// Neighbours of a lane.
    pub pair: AxisId,
}

impl Mma {
    /// The leaves that an instruction has together, beside those of threads: innermost, in this order.
    pub fn serial(&self) -> Vec<AxisId> {
        let inner = [self.depth, self.columns.eights, self.rows.half, self.columns.pair];
        self.steps.into_iter().chain(self.rows.tiles).chain(inner).collect()
    }

    /// The leaves that threads are told apart by.
    pub const fn threads(&self) -> [AxisId; 3] {
        [self.rows.warp, self.rows.row, self.columns.quad]
    }
}

impl Apply<'_> {
    /// Applies `fragment`.
    pub(super) fn fragment(&mut self, m: &ast::Name, n: &ast::Name, engine: &Spanned<MmaEngine>, span: Span) {
        if engine.value != MmaEngine::Wgmma {
            return self.unsupported("fragments of `mma_sync`", engine.span, Some("`wgmma`"));
        }
        let axes = [(m, AxisKind::Data, ROWS, "m"), (n, AxisKind::Data, 8, "n")];
        let Some([m, n]) = self.axes_of_atom(axes) else { return self.give_up_on(span) };
        let (rows, columns) = (self.rows(m, span), self.columns(n, span));
        let serial: Vec<AxisId> = rows.tiles.into_iter().chain([columns.eights, rows.half, columns.pair]).collect();
        self.innermost(&[rows.warp, rows.row, columns.quad], &serial);
        for leaf in rows.tiles.into_iter().chain([columns.eights, rows.half]) {
            self.bind(leaf, Binding::Unroll(None), span, span);
        }
    }

    /// Applies `mma`.
    pub(super) fn mma(
        &mut self,
        names: [&ast::Name; 3],
        engine: &Spanned<MmaEngine>,
        inflight: Option<&ast::Expr>,
        span: Span,
    ) {
        if engine.value != MmaEngine::Wgmma {
            return self.unsupported("`mma_sync`", engine.span, Some("`wgmma`, on compute capability 9.0"));
        }
        if self.product.is_some() {
            return self.no_product(ProductProblem::Second, span);
        }
        let operand = match self.operand() {
            Ok(operand) => operand,
            Err(problem) => return self.no_product(problem, span),
        };
        let inflight = match inflight {
            None => 0,
            Some(e) => match self.factor(e, 0, "the number of groups under way") {
                Some(n) => u32::try_from(n).unwrap_or(u32::MAX),
                None => return self.give_up_on(span),
            },
        };
        if inflight > 1 {
            return self.no_product(ProductProblem::Inflight(inflight), span);
        }
        let depth = i128::from(Wgmma::depth(operand.bytes()));
        let [m, n, k] = names;
        let axes = [
            (m, AxisKind::Data, ROWS, "m"),
            (n, AxisKind::Data, if operand.is_integer() { 16 } else { 8 }, "n"),
            (k, AxisKind::Reduction, depth, "k"),
        ];
        // One after the other: the first that is wrong may stand in the place of another one.
        let Some([m, n, k]) = self.axes_of_atom(axes) else { return self.give_up_on(span) };
        let (rows, columns) = (self.rows(m, span), self.columns(n, span));
        let (steps, depth) = match self.count(k) == depth {
            true => (None, k),
            false => {
                let [outer, inner] = self.split(k, depth, ["o", "i"], k, span);
                (Some(outer), inner)
            }
        };
        let product = Mma { rows, columns, steps, depth, inflight, operand, span };
        self.innermost(&product.threads(), &product.serial());
        self.product = Some(product);
    }

    /// The type of the factors of the stage's only `dot`.
    fn operand(&self) -> Result<ElementType, ProductProblem> {
        let algorithm = &self.program.algorithm;
        let components = &algorithm.components[algorithm.equations[self.equation].components.range()];
        let mut reductions = Vec::new();
        components.iter().for_each(|component| outermost_reductions(algorithm, component.value, &mut reductions));
        let [only] = reductions[..] else { return Err(ProductProblem::NoDot) };
        match algorithm.values[only as usize] {
            // The accumulators of tensor cores are the short ones that `promote` limits.
            Value::Reduce { order: Order::Dot { promote: Some(terms), .. }, .. } => {
                Err(ProductProblem::Promoted(terms))
            }
            Value::Reduce { order: Order::Dot { operand, .. }, .. } => match Wgmma::sum(operand, operand) {
                Some(_) => Ok(operand),
                None => Err(ProductProblem::Type(operand)),
            },
            _ => Err(ProductProblem::NoDot),
        }
    }

    /// Axes of an instruction; none after a report.
    fn axes_of_atom<const N: usize>(
        &mut self,
        axes: [(&ast::Name, AxisKind, i128, &'static str); N],
    ) -> Option<[AxisId; N]> {
        let mut found = [0; N];
        for (at, axis) in axes.into_iter().enumerate() {
            found[at] = self.axis_of_atom(axis)?;
        }
        Some(found)
    }

    /// An axis of which instructions take so many iterations at a time; none after a report.
    fn axis_of_atom(&mut self, (name, kind, step, role): (&ast::Name, AxisKind, i128, &'static str)) -> Option<AxisId> {
        let axis = self.leaf(name, &[])?;
        let own = &self.domain.axes[axis];
        if own.poisoned {
            return None;
        }
        let extent = self.facts.normal(&own.extent).as_constant();
        let problem = if own.binding != Binding::Serial {
            Some(ProductProblem::Bound)
        } else if own.kind != kind {
            Some(ProductProblem::Kind { of_terms: kind == AxisKind::Reduction })
        } else if extent.is_none_or(|n| n < step || n % step != 0) {
            Some(ProductProblem::Extent { extent, step })
        } else {
            None
        };
        let Some(problem) = problem else { return Some(axis) };
        let stage = self.stage.to_owned();
        let axis = Some((role, name.text.clone()));
        self.diags.report(NoSuchProduct { stage, axis, problem, span: name.span });
        None
    }

    fn no_product(&mut self, problem: ProductProblem, span: Span) {
        self.diags.report(NoSuchProduct { stage: self.stage.to_owned(), axis: None, problem, span });
        self.give_up_on(span);
    }

    /// Axes that the op would have made are missing from here on.
    fn give_up_on(&mut self, span: Span) {
        self.domain.poison(&[], [NewAxis { name: String::new(), span }]);
    }

    fn count(&self, axis: AxisId) -> i128 {
        self.facts.normal(&self.domain.axes[axis].extent).as_constant().unwrap_or(0)
    }

    /// Splits an axis by a number, into axes with the name of `of` and these endings.
    fn split(&mut self, axis: AxisId, by: i128, endings: [&str; 2], of: AxisId, span: Span) -> [AxisId; 2] {
        let of = self.domain.axes[of].name.clone();
        let first = self.domain.axes.len();
        let names = endings.map(|ending| NewAxis { name: format!("{of}_{ending}"), span });
        self.domain.split_by(axis, by, self.facts, names, span);
        [first, first + 1]
    }

    fn rows(&mut self, m: AxisId, span: Span) -> Rows {
        let several = self.count(m) > ROWS;
        let (tiles, tile) = match several {
            true => {
                let [tiles, tile] = self.split(m, ROWS, ["o", "64"], m, span);
                (Some(tiles), tile)
            }
            false => (None, m),
        };
        let [warp, rows] = self.split(tile, 16, ["w", "16"], m, span);
        let [half, row] = self.split(rows, 8, ["h", "r"], m, span);
        self.bind(warp, Binding::Warp, span, span);
        self.bind(row, Binding::Thread, span, span);
        Rows { tiles, warp, half, row }
    }

    fn columns(&mut self, n: AxisId, span: Span) -> Columns {
        let [eights, eight] = self.split(n, 8, ["j", "8"], n, span);
        let [quad, pair] = self.split(eight, 2, ["q", "p"], n, span);
        self.bind(quad, Binding::Thread, span, span);
        Columns { eights, quad, pair }
    }

    /// Moves leaves to the end: those of threads, then the others.
    fn innermost(&mut self, threads: &[AxisId], serial: &[AxisId]) {
        self.domain.leaves.retain(|leaf| !threads.contains(leaf) && !serial.contains(leaf));
        self.domain.leaves.extend(threads.iter().chain(serial));
    }
}
