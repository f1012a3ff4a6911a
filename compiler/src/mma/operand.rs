//! One factor of a product: its copy, and the descriptor of its tiles; or the registers that hold it.

use tilewright_kernel::algorithm::{Source, Value, ValueId};
use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::tensor_map::{GRANULE, Swizzle};

use super::{span_of, tensor_of};
use crate::diag::Diagnostics;
use crate::diag::codes::{OperandLayout, OperandPlace, OperandProblem};
use crate::domain::{AxisId, Numbers, Symbolic};
use crate::extent::{Expr, Var};
use crate::kernel_ir::Wgmma;
use crate::plan::Analysed;
use crate::plan::product::{Factor, Held, Operand};
use crate::plan::roles::copies_around;
use crate::plan::staged::{Part, Staged};
use crate::schedule::accesses::StageRead;
use crate::schedule::{self, Mma, Reads, Stage, leaves_at};
use crate::source::ast::Place;

/// Combinations of loops around a tile that are looked at.
const MOST_TILES: i128 = 4096;

/// The tiles of a product.
pub(super) struct Tiles<'a> {
    /// All stages, and the position of the one with the product.
    pub all: &'a [Analysed],
    pub at: usize,
    pub mma: &'a Mma,
    /// Columns of an instruction.
    pub columns: u32,
    /// Tensors that have copies, anywhere.
    pub copied: &'a [u16],
}

/// Where elements of a tile lie, of one kind of index: for each tile, the place of its first element in bytes, and that
/// of each element after it.
struct Along {
    starts: Vec<i128>,
    steps: Vec<i128>,
}

/// A digit of an index in a tile: the leaf, and what one step of it takes.
type Digit = (AxisId, i128);

impl Tiles<'_> {
    fn analysed(&self) -> &Analysed {
        &self.all[self.at]
    }

    /// Says that a read is no factor that tensor cores find.
    pub fn refuse(&self, read: ValueId, problem: OperandProblem, diags: &mut Diagnostics) {
        let analysed = self.analysed();
        let tensor = match analysed.stage.program.algorithm.values[read as usize] {
            Value::Read { source: Source::Parameter(parameter), .. } => tensor_of(analysed, parameter),
            Value::Read { source: Source::Equation { equation, component }, .. } => {
                let algorithm = &analysed.stage.program.algorithm;
                let components = algorithm.equations[usize::from(equation)].components.range();
                Some(algorithm.components[components][usize::from(component)].name.to_string())
            }
            _ => None,
        };
        diags.report(OperandPlace {
            stage: analysed.stage.name.clone(),
            tensor,
            problem,
            at: self.loop_of_terms(),
            span: self.mma.span,
            factor: span_of(analysed, read),
        });
    }

    /// The factor that a read is, and whether it has the columns; none after a report.
    pub fn operand(&self, read: ValueId, diags: &mut Diagnostics) -> Option<(bool, Factor)> {
        let analysed = self.analysed();
        let held = analysed.reads.iter().find(|r| r.value == read && r.in_terms);
        let found = match held {
            Some(held) => self.held(held),
            None if !self.mma.is_async() => {
                let values = &analysed.stage.program.algorithm.values;
                let is_computed = matches!(values[read as usize], Value::Read { source: Source::Equation { .. }, .. });
                Err(OperandProblem::NotHeld { is_computed })
            }
            None => self.in_copy(read, diags)?,
        };
        found.map_err(|problem| self.refuse(read, problem, diags)).ok()
    }

    /// The factor that another stage holds.
    fn held(&self, read: &StageRead) -> Result<(bool, Factor), OperandProblem> {
        let analysed = self.analysed();
        let at = |n: usize| self.all.get(n).map(|a| &a.stage);
        let taken = schedule::taken(&at, self.at, (read.source, read.value), true).ok_or(OperandProblem::NoCopy)?;
        let held = &self.all[taken].stage;
        if held.place != Place::Registers {
            return Err(OperandProblem::Stored);
        }
        let has_columns = self.mma.has_columns(&analysed.stage, &read.indices).ok_or(OperandProblem::Axes)?;
        if has_columns && self.mma.is_async() {
            return Err(OperandProblem::Right);
        }
        let own = self.mma.reader_of_factor(&analysed.stage, has_columns);
        let Stage { domain, facts, .. } = &own.stage;
        let symbolic = Symbolic::new(domain, facts);
        let range = |v: Var| symbolic.range(facts, v);
        let reads = Reads { domain, symbolic: &symbolic, facts, range: &range };
        let held = Held {
            stage: taken,
            name: held.name.clone(),
            source: read.source,
            read: read.value,
            leaves: leaves_at(held, &own.read(read).indices, reads),
            tiles: own.tiles,
            registers: own.registers,
        };
        Ok((has_columns, Factor::Held(held)))
    }

    /// The factor that a copy in shared memory holds; none after a report.
    fn in_copy(&self, read: ValueId, diags: &mut Diagnostics) -> Option<Result<(bool, Factor), OperandProblem>> {
        let analysed = self.analysed();
        let access = analysed.accesses.iter().find(|a| a.value == Some(read) && a.in_terms && !a.is_write);
        let Some(access) = access else { return Some(Err(OperandProblem::NoCopy)) };
        let copies = copies_around(self.all, self.at);
        let Some(staged) = copies.into_iter().find(|s| s.is_for(access.parameter, Some(read))) else {
            let is_elsewhere = self.copied.contains(&access.parameter);
            return Some(Err(if is_elsewhere { OperandProblem::Elsewhere } else { OperandProblem::NoCopy }));
        };
        let facts = &analysed.stage.facts;
        let offsets: Vec<Expr> = staged.places(&access.indices).iter().map(|(_, e)| facts.normal(e)).collect();
        let Some(has_columns) = self.mma.has_columns(&analysed.stage, &offsets) else {
            return Some(Err(OperandProblem::Axes));
        };
        let (at, own) = if has_columns { (1, self.columns()) } else { (0, self.rows()) };
        let terms = self.terms();
        let bytes = i128::from(staged.element.bytes());
        let counts = [[Wgmma::ROWS, self.columns][at], Wgmma::depth(staged.element.bytes())];
        let along = self.along(staged, &offsets, [(&own, counts[0]), (&terms, counts[1])]);
        let [x, k] = match along {
            Ok(found) => found,
            Err(problem) => return Some(Err(problem)),
        };
        let found = [false, true].into_iter().find_map(|across| fit(staged.swizzle, across, bytes, [&x, &k]));
        let Some(Descriptor { leading, stride, swizzle, .. }) = found.map(|found| found.0) else {
            diags.report(self.unreadable(staged, [&x, &k], bytes));
            return None;
        };
        let across = found.is_some_and(|found| found.1);
        let copy = staged.name.clone();
        let parameter = access.parameter;
        let operand = Operand { parameter, read, copy, across, leading, stride, swizzle };
        Some(Ok((has_columns, Factor::Shared(operand))))
    }

    /// The digits of a row in its tile, and the tiles.
    fn rows(&self) -> Vec<Digit> {
        let rows = self.mma.rows;
        let tiles = rows.tiles.map(|tiles| (tiles, i128::from(Wgmma::ROWS)));
        let warp = rows.warp.map(|warp| (warp, 16));
        tiles.into_iter().chain(warp).chain([(rows.half, 8), (rows.row, 1)]).collect()
    }

    fn columns(&self) -> Vec<Digit> {
        let columns = self.mma.columns;
        vec![(columns.eights, 8), (columns.quad, 2), (columns.pair, 1)]
    }

    fn terms(&self) -> Vec<Digit> {
        let depth = i128::from(Wgmma::depth(self.mma.operand.bytes()));
        self.mma.steps.map(|steps| (steps, depth)).into_iter().chain([(self.mma.depth, 1)]).collect()
    }

    /// The variable of a leaf.
    fn var(&self, leaf: AxisId) -> Option<Var> {
        let at = self.analysed().stage.domain.leaves.iter().position(|l| *l == leaf)?;
        self.analysed().symbolic.variables.get(at).map(|leaf| leaf.var)
    }

    /// The loop over terms around the product, as a place for copies.
    fn loop_of_terms(&self) -> Option<String> {
        let stage = &self.analysed().stage;
        let first = stage.domain.leaves.iter().position(|leaf| self.mma.serial().contains(leaf))?;
        let outer = stage.domain.leaves[..first].iter().rev();
        let leaf = outer.copied().find(|leaf| stage.domain.axes[*leaf].binding.is_sequential())?;
        Some(format!("{}.{}", stage.name, stage.domain.axes[leaf].name))
    }

    /// Where elements lie along rows or columns, and along terms.
    fn along(
        &self,
        staged: &Staged,
        offsets: &[Expr],
        [x, k]: [(&[Digit], u32); 2],
    ) -> Result<[Along; 2], OperandProblem> {
        let of = |digits: &[Digit]| -> Vec<Var> { digits.iter().filter_map(|(leaf, _)| self.var(*leaf)).collect() };
        let (of_x, of_k) = (of(x.0), of(k.0));
        let mentions = |e: &Expr, vars: &[Var]| e.vars().iter().any(|v| vars.contains(v));
        // Along no axis of the copy both.
        if offsets.iter().any(|e| e.is_unknown() || mentions(e, &of_x) && mentions(e, &of_k)) {
            return Err(OperandProblem::Unknown);
        }
        let in_k: Vec<bool> = offsets.iter().map(|e| mentions(e, &of_k)).collect();
        Ok([
            self.tiles(staged, offsets, x, &in_k.iter().map(|k| !k).collect::<Vec<bool>>())?,
            self.tiles(staged, offsets, k, &in_k)?,
        ])
    }

    /// The places of all tiles along some axes of the copy, whose offsets have these digits and those of loops around.
    fn tiles(
        &self,
        staged: &Staged,
        offsets: &[Expr],
        (digits, count): (&[Digit], u32),
        own: &[bool],
    ) -> Result<Along, OperandProblem> {
        let variables = &self.analysed().symbolic.variables;
        let mut around: Vec<(Var, i128)> = Vec::new();
        for v in offsets.iter().zip(own).filter(|(_, own)| **own).flat_map(|(e, _)| e.vars()) {
            let known = variables.iter().find(|leaf| leaf.var == v).and_then(|leaf| leaf.extent.as_constant());
            let is_digit = digits.iter().any(|(leaf, _)| self.var(*leaf) == Some(v));
            match known {
                Some(_) if is_digit || around.iter().any(|a| a.0 == v) => {}
                Some(extent) => around.push((v, extent)),
                None => return Err(OperandProblem::Unknown),
            }
        }
        let extent = |leaf: AxisId| self.analysed().stage.domain.axes[leaf].extent.as_constant().unwrap_or(1);
        let all: i128 = digits.iter().map(|(leaf, _)| extent(*leaf)).product();
        let tiles = all / i128::from(count);
        let several: i128 = around.iter().map(|a| a.1).product::<i128>() * tiles;
        if several > MOST_TILES {
            return Err(OperandProblem::Unknown);
        }
        let layout = staged.layout(Swizzle::None);
        let bytes = i128::from(staged.element.bytes());
        let digits: Vec<(Var, i128, i128)> =
            digits.iter().filter_map(|(leaf, unit)| Some((self.var(*leaf)?, *unit, extent(*leaf)))).collect();
        // Every variable of the offsets is one of these.
        let named = digits.iter().map(|digit| digit.0).chain(around.iter().map(|a| a.0));
        let mut values = vec![0; named.max().map_or(0, |last| last as usize + 1)];
        let mut place = |outer: i128, index: i128| -> Result<i128, OperandProblem> {
            let mut rest = outer;
            for (v, extent) in &around {
                values[*v as usize] = rest % extent;
                rest /= extent;
            }
            for (v, unit, extent) in &digits {
                values[*v as usize] = index / unit % extent;
            }
            let mut at = vec![0; offsets.len()];
            for (n, e) in offsets.iter().enumerate().filter(|(n, _)| own[*n]) {
                let offset = e.eval(&values).ok_or(OperandProblem::Unknown)?;
                let axis = &staged.axes[n];
                if offset < 0 || offset >= axis.boxes() * axis.boxed.box_size {
                    return Err(OperandProblem::Outside);
                }
                at[n] = offset;
            }
            Ok(layout.place(&mut Numbers(&[]), (), &|axis: usize| at[axis]) * bytes)
        };
        let (mut starts, mut steps) = (Vec::new(), Vec::new());
        for outer in 0..several / tiles {
            for tile in 0..tiles {
                let first = tile * i128::from(count);
                let start = place(outer, first)?;
                for n in 0..count {
                    let step = place(outer, first + i128::from(n))? - start;
                    match steps.get(n as usize) {
                        None => steps.push(step),
                        Some(known) if *known == step => {}
                        // Tiles differ: no steps are those of all.
                        Some(_) => steps[n as usize] = -1,
                    }
                }
                starts.push(start);
            }
        }
        Ok(Along { starts, steps })
    }

    /// That no descriptor describes the tiles, and what would work.
    fn unreadable(&self, staged: &Staged, [x, k]: [&Along; 2], bytes: i128) -> OperandLayout {
        let innermost = staged.axes.last();
        let run = innermost.map_or(0, |axis| axis.tile() * bytes);
        let along_k = k.steps.get(1) == Some(&bytes);
        let along_x = x.steps.get(1) == Some(&bytes) && bytes == 2;
        // With it already, something else is in the way.
        let has_it = i128::from(staged.swizzle.span()) == run;
        let works = [32, 64, 128].contains(&run) && (along_k || along_x) && !has_it;
        let parts = |part: Part| {
            let counts = staged.outer.iter().filter(move |outer| outer.1 == part);
            counts.filter_map(|(axis, _)| staged.axes.get(*axis)).filter(|axis| axis.boxes() > 1)
        };
        let boxes = parts(Part::Box).flat_map(|axis| axis.boxed.coordinates.clone());
        let tile = staged.axes.iter().flat_map(|axis| axis.boxed.tile.iter().map(|t| t.name.clone()));
        let names: Vec<String> = boxes.chain(tile).collect();
        let instead = works.then(|| format!("layout [{}] swizzle {run}", names.join(", ")));
        OperandLayout { copy: staged.name.clone(), instead, run, written: staged.layout, op: self.mma.span }
    }
}

/// The descriptor of tiles whose elements lie so, if there is one, and whether rows or columns are neighbours in it.
fn fit(swizzle: Swizzle, across: bool, bytes: i128, [x, k]: [&Along; 2]) -> Option<(Descriptor, bool)> {
    if across && bytes != 2 {
        return None;
    }
    let granule = i128::from(GRANULE as u32);
    // Where the second group of rows, and of terms, begins: steps that no group needs are anything.
    let each = granule / bytes;
    let span = i128::from(swizzle.span());
    let step = |along: &Along, at: i128| along.steps.get(usize::try_from(at).ok()?).copied();
    let unused = granule;
    let (leading, stride) = match (swizzle, across) {
        (Swizzle::None, _) => (step(k, if across { 8 } else { each }), step(x, 8)),
        (_, false) => (Some(unused), step(x, 8)),
        (_, true) => (Some(step(x, span / 2).unwrap_or(unused)), step(k, 8)),
    };
    let number = |step: Option<i128>| u32::try_from(step.unwrap_or(unused)).ok();
    let (leading, stride) = (number(leading)?, number(stride)?);
    let found = Descriptor { start: 0, leading, stride, base: 0, swizzle };
    if !found.is_encodable() {
        return None;
    }
    let bytes = bytes as u32;
    let offset = |element: (u32, u32)| {
        let (chunk, rest) = Descriptor::chunk_of(across, bytes, element);
        i128::from(found.offset(across, bytes, chunk) + rest)
    };
    let fits_x = (0..).zip(&x.steps).all(|(n, step)| offset((n, 0)) == *step);
    let fits_k = (0..).zip(&k.steps).all(|(n, step)| offset((0, n)) == *step);
    let starts = x.starts.iter().chain(&k.starts).all(|start| start % granule == 0);
    (fits_x && fits_k && starts).then_some((found, across))
}
