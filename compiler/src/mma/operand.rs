//! One factor of a product: its copy, and the descriptor of its tiles.

use tilewright_kernel::algorithm::ValueId;
use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::tensor_map::{GRANULE, Swizzle};

use super::{span_of, tensor_of};
use crate::diag::Diagnostics;
use crate::diag::codes::{OperandLayout, OperandPlace, OperandProblem};
use crate::domain::{AxisId, Numbers};
use crate::extent::{Expr, Var};
use crate::kernel_ir::Wgmma;
use crate::plan::Analysed;
use crate::plan::product::Operand;
use crate::plan::staged::{Part, Staged};
use crate::schedule::Mma;

/// Combinations of loops around a tile that are looked at.
const MOST_TILES: i128 = 4096;

/// The tiles of a product.
pub(super) struct Tiles<'a> {
    pub analysed: &'a Analysed,
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
    /// The factor that a read is: whether it has the columns, and how its tiles lie.
    pub fn operand(&self, read: ValueId, diags: &mut Diagnostics) -> Option<(usize, Operand)> {
        let Self { analysed, mma, .. } = self;
        let stage = &analysed.stage;
        let access = analysed.accesses.iter().find(|a| a.value == Some(read) && a.in_terms && !a.is_write);
        let tensor = access.and_then(|access| tensor_of(analysed, access.parameter));
        let refuse = |problem: OperandProblem, diags: &mut Diagnostics| {
            diags.report(OperandPlace {
                stage: stage.name.clone(),
                tensor: tensor.clone(),
                problem,
                at: self.loop_of_terms(),
                span: mma.span,
                factor: span_of(analysed, read),
            });
        };
        let Some(access) = access else {
            refuse(OperandProblem::NoCopy, diags);
            return None;
        };
        let Some(staged) = analysed.staged.iter().find(|s| s.is_for(access.parameter, Some(read))) else {
            let is_elsewhere = self.copied.contains(&access.parameter);
            refuse(if is_elsewhere { OperandProblem::Elsewhere } else { OperandProblem::NoCopy }, diags);
            return None;
        };
        let offsets: Vec<Expr> =
            staged.places(&access.indices).iter().map(|(_, offset)| stage.facts.normal(offset)).collect();
        let depends = |leaves: &[Digit]| {
            let vars: Vec<Var> = leaves.iter().filter_map(|(leaf, _)| self.var(*leaf)).collect();
            offsets.iter().any(|e| e.vars().iter().any(|v| vars.contains(v)))
        };
        let (rows, columns, terms) = (self.rows(), self.columns(), self.terms());
        let (at, own) = match (depends(&rows), depends(&columns), depends(&terms)) {
            (true, false, true) => (0, rows),
            (false, true, true) => (1, columns),
            _ => {
                refuse(OperandProblem::Axes, diags);
                return None;
            }
        };
        let bytes = i128::from(staged.element.bytes());
        let counts = [[Wgmma::ROWS, self.columns][at], Wgmma::depth(staged.element.bytes())];
        let along = self.along(staged, &offsets, [(&own, counts[0]), (&terms, counts[1])]);
        let [x, k] = match along {
            Ok(found) => found,
            Err(problem) => {
                refuse(problem, diags);
                return None;
            }
        };
        let found = [false, true].into_iter().find_map(|across| fit(staged.swizzle, across, bytes, [&x, &k]));
        let Some(Descriptor { leading, stride, swizzle, .. }) = found.map(|found| found.0) else {
            diags.report(self.unreadable(staged, [&x, &k], bytes));
            return None;
        };
        let across = found.is_some_and(|found| found.1);
        let copy = staged.name.clone();
        let parameter = access.parameter;
        Some((at, Operand { parameter, read, copy, across, leading, stride, swizzle }))
    }

    /// The digits of a row in its tile, and the tiles.
    fn rows(&self) -> Vec<Digit> {
        let rows = self.mma.rows;
        let tiles = rows.tiles.map(|tiles| (tiles, i128::from(Wgmma::ROWS)));
        tiles.into_iter().chain([(rows.warp, 16), (rows.half, 8), (rows.row, 1)]).collect()
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
        let at = self.analysed.stage.domain.leaves.iter().position(|l| *l == leaf)?;
        self.analysed.symbolic.variables.get(at).map(|leaf| leaf.var)
    }

    /// The loop over terms around the product, as a place for copies.
    fn loop_of_terms(&self) -> Option<String> {
        let stage = &self.analysed.stage;
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
        let variables = &self.analysed.symbolic.variables;
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
        let extent = |leaf: AxisId| self.analysed.stage.domain.axes[leaf].extent.as_constant().unwrap_or(1);
        let all: i128 = digits.iter().map(|(leaf, _)| extent(*leaf)).product();
        let tiles = all / i128::from(count);
        let several: i128 = around.iter().map(|a| a.1).product::<i128>() * tiles;
        if several > MOST_TILES {
            return Err(OperandProblem::Unknown);
        }
        let layout = staged.layout(Swizzle::None);
        let bytes = i128::from(staged.element.bytes());
        let place = |outer: i128, index: i128| -> Result<i128, OperandProblem> {
            let mut rest = outer;
            let mut values: Vec<(Var, i128)> = Vec::with_capacity(around.len() + digits.len());
            for (v, extent) in &around {
                values.push((*v, rest % extent));
                rest /= extent;
            }
            for (leaf, unit) in digits {
                values.extend(self.var(*leaf).map(|v| (v, index / unit % extent(*leaf))));
            }
            let value = |v: Var| values.iter().find(|known| known.0 == v).map(|known| Expr::constant(known.1));
            let mut at = vec![0; offsets.len()];
            for (n, e) in offsets.iter().enumerate().filter(|(n, _)| own[*n]) {
                let offset = e.substitute(&value).as_constant().ok_or(OperandProblem::Unknown)?;
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
