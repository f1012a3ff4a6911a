//! Fragments: which thread of a warpgroup, or of a warp, holds which element of a sum of products, in which register.
//!
//! **Property.** `fragment (m, n) by wgmma` splits m and n and binds what comes of them, so that the stage's layout
//! from elements to threads and registers is that of the accumulator of `wgmma` (PTX manual 9.7.15.5.1.1.2), tile after
//! tile of 64 rows. **Formula.** With o, w, h, r the digits of m by 64, 16, 8, 1 and j, q, p those of n by 8, 2, 1:
//! warp w of the warpgroup, its lane 4·r + q, and of each o the register 4·j + 2·h + p. `by mma_sync` it is that of
//! `mma.sync` (9.7.14.5.8), whose tiles have 16 rows: the same without w.
//!
//! `mma (m, n, k)` is the same for the elements of a `dot`, and marks it as one that tensor cores compute: k
//! is split by what an instruction takes of it. Everything else that is known of fragments (who holds what, what `like`
//! repeats, how lanes of a row, or lanes and warps of a column, combine what they have) is known of any axes with these
//! binds.
//!
//! A factor in registers has a layout of its own (PTX manual 9.7.15.5.1.1.1 and 9.7.14.5.8): with as many terms in a
//! register of 32 bits as fit, the lanes of a row have neighbours of these, and there are two such rows of terms in an
//! instruction. Who reads a left factor so is a stage like this one whose lanes of four have terms in the place of
//! columns; of a right one, the other lanes have columns in the place of rows ([`Mma::reader_of_factor`]).

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Order, Value};

use super::Stage;
use super::accesses::StageRead;
use super::apply::Apply;
use super::roots::outermost_reductions;
use super::stage::Reduced;
use crate::diag::codes::{FactorLanes, NoSuchProduct, ProductProblem};
use crate::domain::{AxisId, AxisKind, Binding, NewAxis};
use crate::extent::{Expr, Var};
use crate::kernel_ir::{MmaSync, Wgmma};
use crate::source::Span;
use crate::source::ast::{self, MmaEngine, Spanned};

/// Rows of an instruction.
pub const fn rows_of(engine: MmaEngine) -> u32 {
    match engine {
        MmaEngine::Wgmma => Wgmma::ROWS,
        MmaEngine::MmaSync => MmaSync::ROWS,
    }
}

/// A `dot` that tensor cores compute, and the leaves of its atoms.
#[derive(Clone, Debug)]
pub struct Mma {
    /// Which instructions.
    pub engine: MmaEngine,
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
    /// The types of the factors, in the order in which they are written: as wide as each other.
    pub operands: [ElementType; 2],
    /// The op.
    pub span: Span,
}

/// Who reads a factor in registers.
pub struct FactorReader {
    /// The stage: its lanes of four have terms.
    pub stage: Stage,
    /// What is at the place of a variable of the stage with the product, in the variables of this one: first, of the
    /// terms of an instruction.
    places: Vec<(Var, Expr)>,
    /// Terms that share a register.
    each: i128,
    engine: MmaEngine,
    /// The variables that number tiles of rows or columns, and steps along the terms, if there are several.
    pub tiles: [Option<Var>; 2],
    /// Those that tell the registers of an instruction apart, outermost first: terms in groups of 16 bytes, halves of a
    /// warp's rows, terms that share a register.
    pub registers: [Option<Var>; 3],
    /// A variable that all rows, or columns, in reach of a lane differ in.
    across: Var,
}

impl FactorReader {
    /// How a stage must be dealt out that the stage with the product reads there; none if its axes are not those of
    /// rows and terms.
    pub fn lanes(&self, held: &Stage, indices: &[Expr]) -> Option<FactorLanes> {
        let of = |v: Var| indices.iter().position(|e| e.vars().contains(&v));
        let (rows, terms) = (of(self.across)?, of(self.places[0].0)?);
        let name = |at: usize| Some(held.domain.axes[*held.domain.roots.get(at)?].name.clone());
        Some(FactorLanes { axes: [name(rows)?, name(terms)?], each: self.each, engine: self.engine })
    }

    /// What the stage with the product reads, as this one does.
    pub fn read(&self, read: &StageRead) -> StageRead {
        let own = |e: &Expr| e.substitute(&|v| self.places.iter().find(|own| own.0 == v).map(|own| own.1.clone()));
        StageRead { indices: read.indices.iter().map(own).collect(), ..read.clone() }
    }
}

/// The digits of the rows of a sum.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Tiles of the rows of an instruction, if there are several.
    pub tiles: Option<AxisId>,
    /// The warps of a warpgroup.
    pub warp: Option<AxisId>,
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
    /// Those of eight, which are split once more.
    pub eight: AxisId,
    /// Lanes of four.
    pub quad: AxisId,
    /// Neighbours of a lane.
    pub pair: AxisId,
}

impl Mma {
    /// The leaves that an instruction has together, beside those of threads: innermost, in this order. Terms come
    /// first, so that the sums of all tiles are there at once.
    pub fn serial(&self) -> Vec<AxisId> {
        let inner = [self.columns.eights, self.rows.half, self.columns.pair];
        self.steps.into_iter().chain([self.depth]).chain(self.rows.tiles).chain(inner).collect()
    }

    /// In how many iterations of a loop around it, at most, groups of products stay under way after those of the
    /// present one were started; none if the loops between do not tell how many groups an iteration starts.
    ///
    /// Each iteration of the loops around [`serial`](Self::serial) starts a group. If one of the loop has u of them,
    /// the latest n are from the latest ⌈n / u⌉ iterations.
    pub fn iterations_under_way(&self, stage: &Stage, leaf: AxisId) -> Option<u32> {
        let serial = self.serial();
        let loops = stage.sequence().into_iter().skip_while(|other| *other != leaf);
        let mut groups = 1u32;
        for inner in loops.skip(1).take_while(|leaf| !serial.contains(leaf)) {
            let extent = stage.domain.axes[inner].extent.as_constant()?.max(1);
            groups = groups.saturating_mul(u32::try_from(extent).unwrap_or(u32::MAX));
        }
        Some(self.inflight.div_ceil(groups))
    }

    /// The leaves that threads are told apart by.
    pub fn threads(&self) -> impl Iterator<Item = AxisId> + use<> {
        self.rows.warp.into_iter().chain([self.rows.row, self.columns.quad])
    }

    /// Whether what is read at these indices, or lies at these places, has the columns of the product; none if it has
    /// neither these nor the rows alone, or not the terms.
    pub fn has_columns(&self, stage: &Stage, indices: &[Expr]) -> Option<bool> {
        let depends = |leaves: &[Option<AxisId>]| {
            let is_one = |v: &Var| {
                let leaf = (*v as usize).checked_sub(stage.facts.dims()).and_then(|n| stage.domain.leaves.get(n));
                leaf.is_some_and(|leaf| leaves.contains(&Some(*leaf)))
            };
            indices.iter().any(|e| e.vars().iter().any(is_one))
        };
        let Rows { tiles, warp, half, row } = self.rows;
        let Columns { eights, quad, pair, .. } = self.columns;
        let rows = depends(&[tiles, warp, Some(half), Some(row)]);
        let columns = depends(&[Some(eights), Some(quad), Some(pair)]);
        match (rows, columns, depends(&[self.steps, Some(self.depth)])) {
            (true, false, true) => Some(false),
            (false, true, true) => Some(true),
            _ => None,
        }
    }

    /// Bytes of an element of a factor.
    pub const fn bytes(&self) -> u32 {
        self.operands[0].bytes()
    }

    /// Whether products are started by a warpgroup, which goes on beside them.
    pub fn is_async(&self) -> bool {
        self.engine == MmaEngine::Wgmma
    }

    /// The stage with this product as the reader of a factor in registers: the one with the columns, or the one with
    /// the rows. The leaves around the terms of an instruction are in the same places.
    pub fn reader_of_factor(&self, stage: &Stage, has_columns: bool) -> FactorReader {
        let mut reader = stage.clone();
        let Stage { domain, facts, distribution, .. } = &mut reader;
        let mut leaves = domain.leaves.clone();
        let each = i128::from(Wgmma::FACTOR_REGISTER / self.bytes());
        let mut split = |axis: AxisId, by: i128, endings: [&str; 2]| {
            let of = &domain.axes[self.depth].name;
            let names = endings.map(|ending| NewAxis { name: format!("{of}_{ending}"), span: self.span });
            let first = domain.axes.len();
            domain.split_by(axis, by, facts, names, self.span);
            [first, first + 1]
        };
        let [group, rest] = split(self.depth, 4 * each, ["g", "r"]);
        let [quad, term] = split(rest, each, ["q", "p"]);
        let mut put = |leaf: AxisId, before: AxisId| match leaves.iter().position(|l| *l == before) {
            Some(at) => leaves[at] = leaf,
            None => leaves.push(leaf),
        };
        put(group, self.depth);
        let Columns { eight, quad: of_eight, pair, .. } = self.columns;
        let mut dealt = vec![(of_eight, quad)];
        if has_columns {
            // Lanes have all columns of eight, and the split of these is undone.
            domain.ops.retain(|(op, _)| !op.inputs().contains(&eight));
            put(eight, of_eight);
            put(quad, pair);
            dealt.push((self.rows.row, eight));
        } else {
            put(quad, quad);
        }
        put(term, term);
        domain.leaves = leaves;
        let serial = self.serial().into_iter().chain([group, term]);
        for leaf in serial.chain(dealt.iter().map(|(before, _)| *before)) {
            domain.axes[leaf].binding = Binding::Unroll(None);
        }
        for (before, now) in dealt {
            domain.axes[now].binding = Binding::Thread;
            let all = distribution.levels.iter_mut().flat_map(|level| &mut level.leaves);
            all.filter(|(leaf, _)| *leaf == before).for_each(|(leaf, _)| *leaf = now);
        }
        let var = |leaf: AxisId| {
            let at = reader.domain.leaves.iter().position(|l| *l == leaf).unwrap_or(0);
            (reader.facts.dims() + at) as Var
        };
        let sum = |sum: Expr, (leaf, step): (AxisId, i128)| sum.add(&Expr::var(var(leaf)).scale(step));
        let terms = [(group, 4 * each), (quad, each), (term, 1)].into_iter().fold(Expr::constant(0), sum);
        let mut places = vec![(var(group), terms)];
        if has_columns {
            let (column, two) = (Expr::var(var(eight)), Expr::constant(2));
            places.extend([(var(eight), column.floor_div(&two)), (var(quad), column.modulo(&two))]);
        }
        let tiles = if has_columns { Some(self.columns.eights) } else { self.rows.tiles };
        let tiles = [tiles, self.steps].map(|leaf| leaf.map(var));
        let half = (!has_columns).then_some(self.rows.half);
        let registers = [Some(group), half, Some(term)].map(|leaf| leaf.map(var));
        let across = var(if has_columns { eight } else { self.rows.row });
        FactorReader { places, each, engine: self.engine, tiles, registers, across, stage: reader }
    }
}

impl Apply<'_> {
    /// Applies `fragment`. Of terms in the place of columns, lanes of a row combine what they have; in the place of
    /// rows, lanes and warps of a column.
    pub(super) fn fragment(&mut self, m: &ast::Name, n: &ast::Name, engine: &Spanned<MmaEngine>, span: Span) {
        let kinds = [self.kind_of(m), self.kind_of(n)];
        let axes = [(m, kinds[0], rows_of(engine.value).into(), "m"), (n, kinds[1], 8, "n")];
        let Some([m, n]) = self.axes_of_atom(axes) else { return self.give_up_on(span) };
        let (rows, columns) = (self.rows(m, engine.value, span), self.columns(n, span));
        let [rows_are_terms, columns_are_terms] = kinds.map(|kind| kind == AxisKind::Reduction);
        self.bind(rows.row, Binding::Thread, span, span);
        // The terms of an element follow each other.
        let serial: Vec<AxisId> = match rows_are_terms {
            true => [columns.eights, columns.pair].into_iter().chain(rows.tiles).chain([rows.half]).collect(),
            false => rows.tiles.into_iter().chain([columns.eights, rows.half, columns.pair]).collect(),
        };
        let threads: Vec<AxisId> = rows.warp.into_iter().chain([rows.row, columns.quad]).collect();
        self.innermost(&threads, &serial);
        for leaf in rows.tiles.into_iter().chain([columns.eights, rows.half]) {
            self.bind(leaf, Binding::Unroll(None), span, span);
        }
        if columns_are_terms {
            self.bind(columns.pair, Binding::Unroll(None), span, span);
        }
        let of_column = rows.warp.into_iter().chain([rows.row]).filter(|_| rows_are_terms);
        let of_row = Some(columns.quad).filter(|_| columns_are_terms);
        let reduced = |axis| Reduced { axis, by: ast::ReduceBy::Cta, span, word: None };
        self.reduced.extend(of_column.chain(of_row).map(reduced));
    }

    /// Applies `fragment` to rows alone: the first lane of a row has what the row has. Of rows that are terms, lanes
    /// and warps combine what they have.
    pub(super) fn fragment_of_rows(&mut self, m: &ast::Name, engine: &Spanned<MmaEngine>, span: Span) {
        let kind = self.kind_of(m);
        let Some([m]) = self.axes_of_atom([(m, kind, rows_of(engine.value).into(), "m")]) else {
            return self.give_up_on(span);
        };
        let rows = self.rows(m, engine.value, span);
        // One element in the place of the columns of four lanes.
        let [row, one] = self.split(rows.row, 1, ["r1", "1"], m, span);
        let [rest, quad] = self.split(one, 4, ["j", "q"], m, span);
        for leaf in [row, quad] {
            self.bind(leaf, Binding::Thread, span, span);
        }
        let serial: Vec<AxisId> = rows.tiles.into_iter().chain([rest, rows.half]).collect();
        let threads: Vec<AxisId> = rows.warp.into_iter().chain([row, quad]).collect();
        self.innermost(&threads, &serial);
        for leaf in serial {
            self.bind(leaf, Binding::Unroll(None), span, span);
        }
        let of_terms = threads.into_iter().filter(|_| kind == AxisKind::Reduction);
        self.reduced.extend(of_terms.map(|axis| Reduced { axis, by: ast::ReduceBy::Cta, span, word: None }));
    }

    /// What an axis that an op names has: elements, unless it is one of terms.
    fn kind_of(&self, name: &ast::Name) -> AxisKind {
        self.domain.leaf(&name.text).map_or(AxisKind::Data, |n| self.domain.axes[n].kind)
    }

    /// Applies `mma`.
    pub(super) fn mma(
        &mut self,
        names: [&ast::Name; 3],
        engine: &Spanned<MmaEngine>,
        inflight: Option<&ast::Expr>,
        span: Span,
    ) {
        let is_async = engine.value == MmaEngine::Wgmma;
        if self.product.is_some() {
            return self.no_product(ProductProblem::Second, span);
        }
        let operands @ [operand, _] = match self.operands() {
            Ok(operands) => operands,
            Err(problem) => return self.no_product(problem, span),
        };
        let inflight = match inflight {
            None => 0,
            Some(e) => match self.factor(e, 0, "the number of groups under way") {
                Some(n) => u32::try_from(n).unwrap_or(u32::MAX),
                None => return self.give_up_on(span),
            },
        };
        match (inflight, is_async) {
            (0, _) | (..=Wgmma::MOST_PENDING, true) => {}
            (_, true) => return self.no_product(ProductProblem::Inflight(inflight, Wgmma::MOST_PENDING), span),
            (_, false) => return self.no_product(ProductProblem::Synchronous, span),
        }
        let depth = i128::from(Wgmma::depth(operand.bytes()));
        let [m, n, k] = names;
        let columns = self.domain.leaf(&n.text).map_or(0, |n| self.count(n));
        let step = match is_async {
            true => Wgmma::column_step(operand, u32::try_from(columns).unwrap_or(u32::MAX)),
            false => MmaSync::COLUMNS,
        };
        let axes = [
            (m, AxisKind::Data, rows_of(engine.value).into(), "m"),
            (n, AxisKind::Data, step.into(), "n"),
            (k, AxisKind::Reduction, depth, "k"),
        ];
        // One after the other: the first that is wrong may stand in the place of another one.
        let Some([m, n, k]) = self.axes_of_atom(axes) else { return self.give_up_on(span) };
        let (rows, columns) = (self.rows(m, engine.value, span), self.columns(n, span));
        let (steps, depth) = match self.count(k) == depth {
            true => (None, k),
            false => {
                let [outer, inner] = self.split(k, depth, ["o", "i"], k, span);
                (Some(outer), inner)
            }
        };
        self.bind(rows.row, Binding::Thread, span, span);
        let product = Mma { engine: engine.value, rows, columns, steps, depth, inflight, operands, span };
        let threads: Vec<AxisId> = product.threads().collect();
        self.innermost(&threads, &product.serial());
        self.product = Some(product);
    }

    /// The types of the factors of the stage's only `dot`, as they are written.
    fn operands(&self) -> Result<[ElementType; 2], ProductProblem> {
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
            Value::Reduce { order: Order::Dot { operands: operands @ [left, right], .. }, .. } => {
                Wgmma::sum(left, right).map(|_| operands).ok_or(ProductProblem::Type(left))
            }
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

    fn rows(&mut self, m: AxisId, engine: MmaEngine, span: Span) -> Rows {
        let (all, is_async) = (i128::from(rows_of(engine)), engine == MmaEngine::Wgmma);
        let several = self.count(m) > all;
        let (tiles, tile) = match several {
            true => {
                let [tiles, tile] = self.split(m, all, ["o", if is_async { "64" } else { "16" }], m, span);
                (Some(tiles), tile)
            }
            false => (None, m),
        };
        let (warp, rows) = match is_async {
            true => {
                let [warp, rows] = self.split(tile, 16, ["w", "16"], m, span);
                self.bind(warp, Binding::Warp, span, span);
                (Some(warp), rows)
            }
            false => (None, tile),
        };
        let [half, row] = self.split(rows, 8, ["h", "r"], m, span);
        Rows { tiles, warp, half, row }
    }

    fn columns(&mut self, n: AxisId, span: Span) -> Columns {
        let [eights, eight] = self.split(n, 8, ["j", "8"], n, span);
        let [quad, pair] = self.split(eight, 2, ["q", "p"], n, span);
        self.bind(quad, Binding::Thread, span, span);
        Columns { eights, eight, quad, pair }
    }

    /// Moves leaves to the end: those of threads, then the others.
    fn innermost(&mut self, threads: &[AxisId], serial: &[AxisId]) {
        self.domain.leaves.retain(|leaf| !threads.contains(leaf) && !serial.contains(leaf));
        self.domain.leaves.extend(threads.iter().chain(serial));
    }
}
