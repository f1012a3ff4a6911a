//! One factor of a product: its copy, and the descriptor of its tiles; or the registers that hold it.

use tilewright_kernel::algorithm::{Source, Value, ValueId};
use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::tensor_map::{GRANULE, Swizzle};

use super::{span_of, tensor_of};
use crate::diag::Diagnostics;
use crate::diag::codes::{OperandLayout, OperandPlace, OperandProblem};
use crate::domain::{AxisId, Numbers, Symbolic, Unit};
use crate::extent::{Expr, Var};
use crate::kernel_ir::Wgmma;
use crate::plan::Analysed;
use crate::plan::product::{Factor, Held, Operand};
use crate::plan::roles::copies_around;
use crate::plan::staged::{Part, Staged};
use crate::schedule::accesses::StageRead;
use crate::schedule::{self, Mma, Reads, Stage, leaves_at};
use crate::source::ast::Place;
use crate::tma::demand;

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

/// What holds tiles of a factor in shared memory.
struct Holder<'a> {
    name: &'a str,
    swizzle: Swizzle,
    bytes: i128,
    /// How many elements it has along each of its axes.
    extents: Vec<i128>,
    /// Where the element with these offsets along its axes lies, in elements, before chunks are exchanged.
    place: &'a dyn Fn(&[i128]) -> Option<i128>,
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
            Some(held) if self.mma.is_async() => match self.written(held, diags)? {
                Some(found) => found,
                None => self.held(held),
            },
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
            let is_async = self.mma.is_async();
            return Err(if is_async { OperandProblem::Stored } else { OperandProblem::NotHeld { is_computed: true } });
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
        if access.has_or && !demand::is_zero_outside(self.all, self.at, access) {
            return Some(Err(OperandProblem::Beside));
        }
        let facts = &analysed.stage.facts;
        let offsets: Vec<Expr> = staged.places(&access.indices).iter().map(|(_, e)| facts.normal(e)).collect();
        let layout = staged.layout(Swizzle::None);
        let holder = Holder {
            name: &staged.name,
            swizzle: staged.swizzle,
            bytes: staged.element.bytes().into(),
            extents: staged.axes.iter().map(|axis| axis.boxes() * axis.boxed.box_size).collect(),
            place: &|at| Some(layout.place(&mut Numbers(&[]), (), &|axis: usize| at[axis])),
        };
        let found = match self.described(&holder, &offsets) {
            Ok(Described::By(has_columns, descriptor, across)) => (has_columns, descriptor, across),
            Ok(Described::Not(along)) => {
                diags.report(self.unreadable(staged, [&along[0], &along[1]], holder.bytes));
                return None;
            }
            Err(problem) => return Some(Err(problem)),
        };
        let operand = operand((Source::Parameter(access.parameter), read), (None, &staged.name), found);
        Some(Ok((found.0, Factor::Shared(operand))))
    }

    /// The factor that the threads of another stage write to shared memory, where that is where it is; none after a
    /// report.
    fn written(
        &self,
        read: &StageRead,
        diags: &mut Diagnostics,
    ) -> Option<Option<Result<(bool, Factor), OperandProblem>>> {
        let analysed = self.analysed();
        let at = |n: usize| self.all.get(n).map(|a| &a.stage);
        let Some(taken) = schedule::taken(&at, self.at, (read.source, read.value), true) else { return Some(None) };
        let held = &self.all[taken].stage;
        if held.place != Place::Shared {
            return Some(None);
        }
        // What threads do for each other in its loops they would do where there is no element, too.
        let is_plain = held.reduction.is_none() && !self.all.iter().any(|a| stands_in(&a.stage, taken));
        let is_whole = held.owner == Unit::Cta && held.layout.columns.is_none() && held.is_tile && !held.fetches;
        if !is_plain || !is_whole || !self.all[taken].staged.is_empty() {
            return Some(Some(Err(OperandProblem::Stored)));
        }
        let Stage { facts, .. } = &analysed.stage;
        let offsets: Vec<Expr> = held.coordinates.iter().map(|c| facts.normal(&c.at(&read.indices))).collect();
        let bytes = analysed.stage.program.algorithm.types[read.value as usize].bytes();
        let extents = held.coordinates.iter().map(|c| c.most.as_constant().unwrap_or(0)).collect();
        let place = |at: &[i128]| {
            let mut values: Vec<Option<i128>> = vec![None; held.domain.axes.len()];
            for (root, value) in held.domain.roots.iter().zip(at) {
                values[*root] = Some(*value);
            }
            held.domain.toward_leaves(&mut Numbers(&[]), &mut values);
            held.layout.axes.iter().try_fold(0, |sum, a| Some(sum + values[a.axis]? * a.stride.as_constant()?))
        };
        let (name, swizzle) = (&held.name, held.layout.swizzle);
        let holder = Holder { name, swizzle, bytes: bytes.into(), extents, place: &place };
        let found = match self.described(&holder, &offsets) {
            Ok(Described::By(has_columns, descriptor, across)) => (has_columns, descriptor, across),
            Ok(Described::Not(along)) => {
                diags.report(self.unreadable_stage(held, &holder, [&along[0], &along[1]]));
                return None;
            }
            Err(problem) => return Some(Some(Err(problem))),
        };
        let operand = operand((read.source, read.value), (Some(taken), name), found);
        Some(Some(Ok((found.0, Factor::Shared(operand)))))
    }

    /// How an instruction reads the tiles of a factor at these offsets in what holds it.
    fn described(&self, holder: &Holder<'_>, offsets: &[Expr]) -> Result<Described, OperandProblem> {
        let has_columns = self.mma.has_columns(&self.analysed().stage, offsets).ok_or(OperandProblem::Axes)?;
        let (at, own) = if has_columns { (1, self.columns()) } else { (0, self.rows()) };
        let terms = self.terms();
        let counts = [[Wgmma::ROWS, self.columns][at], Wgmma::depth(holder.bytes as u32)];
        let [x, k] = self.along(holder, offsets, [(&own, counts[0]), (&terms, counts[1])])?;
        let found = [false, true].into_iter().find_map(|across| fit(holder.swizzle, across, holder.bytes, [&x, &k]));
        let inside = x.starts.iter().chain(&k.starts).map(|start| row_of_pattern(holder.swizzle, *start));
        if let Some(row) = inside.filter(|row| *row > 0).max().filter(|_| found.is_some()) {
            return Err(OperandProblem::Inside(row));
        }
        Ok(match found {
            Some((descriptor, across)) => Described::By(has_columns, descriptor, across),
            None => Described::Not([x, k]),
        })
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
        let depth = i128::from(Wgmma::depth(self.mma.bytes()));
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
        holder: &Holder<'_>,
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
            self.tiles(holder, offsets, x, &in_k.iter().map(|k| !k).collect::<Vec<bool>>())?,
            self.tiles(holder, offsets, k, &in_k)?,
        ])
    }

    /// The places of all tiles along some axes of the copy, whose offsets have these digits and those of loops around.
    fn tiles(
        &self,
        holder: &Holder<'_>,
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
                if offset < 0 || offset >= holder.extents[n] {
                    return Err(OperandProblem::Outside);
                }
                at[n] = offset;
            }
            Ok((holder.place)(&at).ok_or(OperandProblem::Unknown)? * holder.bytes)
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
        let has_swizzle = i128::from(staged.swizzle.span()) == run;
        let works = [32, 64, 128].contains(&run) && (along_k || along_x) && !has_swizzle;
        let parts = |part: Part| {
            let counts = staged.outer.iter().filter(move |outer| outer.1 == part);
            counts.filter_map(|(axis, _)| staged.axes.get(*axis)).filter(|axis| axis.boxes() > 1)
        };
        let boxes = parts(Part::Box).flat_map(|axis| axis.boxed.coordinates.clone());
        let tile = staged.axes.iter().flat_map(|axis| axis.boxed.tile.iter().map(|t| t.name.clone()));
        let names: Vec<String> = boxes.chain(tile).collect();
        let instead = works.then(|| format!("layout [{}] swizzle {run}", names.join(", ")));
        OperandLayout {
            copy: staged.name.clone(),
            instead,
            run,
            written: staged.layout,
            op: self.mma.span,
            part: "box",
            has_swizzle: has_swizzle && staged.swizzle != Swizzle::None,
            crosswise: crosswise([x, k], bytes),
            every: x.steps.get(1).map(|step| step / run.max(1)).filter(|n| *n > 1 && x.steps[1] == n * run),
        }
    }

    /// The same of tiles that the threads of a stage write.
    fn unreadable_stage(&self, held: &Stage, holder: &Holder<'_>, [x, k]: [&Along; 2]) -> OperandLayout {
        let Holder { name, swizzle, bytes, .. } = *holder;
        let axes = &held.layout.axes;
        let run = axes.last().and_then(|a| a.extent.as_constant()).map_or(0, |extent| extent * bytes);
        let is_run = k.steps.get(1) == Some(&bytes) || x.steps.get(1) == Some(&bytes) && bytes == 2;
        let has_swizzle = i128::from(swizzle.span()) == run;
        let works = [32, 64, 128].contains(&run) && is_run && !has_swizzle;
        let names: Vec<&str> = axes.iter().map(|a| &*held.domain.axes[a.axis].name).collect();
        let instead = works.then(|| format!("layout [{}] swizzle {run}", names.join(", ")));
        OperandLayout {
            copy: name.to_owned(),
            instead,
            run,
            written: held.layout.written,
            op: self.mma.span,
            part: "split",
            has_swizzle: has_swizzle && swizzle != Swizzle::None,
            crosswise: crosswise([x, k], bytes),
            every: None,
        }
    }
}

/// The bits of an element whose neighbours are rows or columns, where tensor cores read neighbouring terms only: they
/// transpose 16-bit types and no others.
fn crosswise([x, k]: [&Along; 2], bytes: i128) -> Option<i128> {
    let is_run = |along: &Along| along.steps.get(1) == Some(&bytes);
    (bytes != 2 && is_run(x) && !is_run(k)).then_some(8 * bytes)
}

/// How tiles of a factor are read.
enum Described {
    /// By this descriptor: whether it has the columns, and whether rows or columns are neighbours in memory.
    By(bool, Descriptor, bool),
    /// By none: where elements lie along rows or columns, and along terms.
    Not([Along; 2]),
}

/// A factor that is read so, of what has this name: the stage with a position, or a copy.
fn operand(
    (source, read): (Source, ValueId),
    (stage, name): (Option<usize>, &str),
    (_, descriptor, across): (bool, Descriptor, bool),
) -> Operand {
    let Descriptor { leading, stride, swizzle, .. } = descriptor;
    Operand { source, read, stage, copy: name.to_owned(), across, leading, stride, swizzle }
}

/// Whether a stage stands in loops of the one with a position.
fn stands_in(stage: &Stage, at: usize) -> bool {
    stage.attach.as_ref().is_some_and(|attach| attach.stage == at)
        || stage.beside.as_ref().is_some_and(|beside| beside.stage == at)
}

/// The row of the pattern of a swizzle, which has 8, that a place lies in. Terms that begin later in the first row are
/// what everybody's products read; of other rows the manual can be read in two ways (9.7.15.5.1.2.2), with another base
/// offset in the one and none in the other.
fn row_of_pattern(swizzle: Swizzle, place: i128) -> i128 {
    match swizzle {
        Swizzle::None => 0,
        _ => place / i128::from(swizzle.span()) % 8,
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
