//! Staged copies of a kernel: each is planned for the stage that reads it, or refused with what is wrong.

use tilewright_kernel::algorithm::Value;
use tilewright_kernel::tensor_map::Fault;

use super::Level;
use super::plan::{Refused, Staged, plan};
use super::region::NotATile;
use super::view::Refusal;
use super::witness;
use crate::diag::Diagnostics;
use crate::diag::tw00xx::NotSupportedYet;
use crate::diag::tw01xx::WrongRank;
use crate::diag::tw01xx_schedule::{NameTaken, UnknownAxis};
use crate::diag::tw02xx::BadFactor;
use crate::diag::tw03xx::{
    AttachPoint, AttachProblem, FilledHole, InnerStart, InnerStride, MapLimit, NoTile, NoZeroFill, Pitch,
    StagedForNobody, ViewMerge, ViewSplit,
};
use crate::diag::tw04xx::{BadLayout, BadSwizzle, SwizzleProblem};
use crate::diag::tw05xx::{SharedBudget, TooManyTiles, UnboundedBuffer};
use crate::domain::Binding;
use crate::extent::{Budget, Expr, Facts, Search, Var};
use crate::lower::Analysed;
use crate::memory::{access, multiples};
use crate::program::{Program, Stage};
use crate::syntax::{Span, ast};

/// Most copies of one instance: each is an instruction of the elected thread.
const TILES: i128 = 128;
/// Bytes of shared memory that a block has without asking for more (CUDA programming guide, technical specifications).
const SHARED_BYTES: i128 = 48 * 1024;
/// Bytes of the barrier of a copy.
const BARRIER_BYTES: i128 = 8;
/// Steps that a search for sizes may take.
const STEPS: u64 = 20_000;

/// Plans every staged copy and hands it to the stage that reads it.
pub fn stage_copies(program: &Program, facts: &Facts, analysed: &mut [Analysed], diags: &mut Diagnostics) {
    for copy in &program.stages {
        let mut one = One { program, facts, copy, diags };
        let Some((reader, parameter)) = one.reader(analysed) else { continue };
        let Some(staged) = one.plan(&analysed[reader], parameter) else { continue };
        analysed[reader].staged.push(staged);
    }
    if diags.has_errors() {
        return;
    }
    // A buffer starts at a multiple of its alignment.
    let padded = |s: &Staged| {
        let alignment = i128::from(s.swizzle.alignment());
        (s.elements() * i128::from(s.element.bytes()) + alignment - 1).div_euclid(alignment) * alignment
    };
    let copies = analysed.iter().flat_map(|a| &a.staged);
    let buffers: Vec<(String, i128)> = copies.map(|s| (s.name.clone(), padded(s))).collect();
    let bytes: i128 = buffers.iter().map(|b| b.1 + BARRIER_BYTES).sum();
    let size = |copy: &&Stage| buffers.iter().find(|b| b.0 == copy.ast.name.text).map(|b| b.1);
    if bytes > SHARED_BYTES
        && let Some(largest) = program.stages.iter().max_by_key(size)
    {
        let span = largest.ast.head;
        diags.report(SharedBudget { buffers, bytes, limit: SHARED_BYTES, span });
    }
}

/// One copy.
struct One<'a> {
    program: &'a Program,
    facts: &'a Facts,
    copy: &'a Stage,
    diags: &'a mut Diagnostics,
}

impl One<'_> {
    fn show(&self, e: &Expr) -> String {
        e.show(&|v| u16::try_from(v).map_or("?".to_owned(), |d| self.program.dim_name(d).to_owned()))
    }

    fn assignment(&self, dims: &[i64]) -> Vec<(String, i128)> {
        (0u16..).zip(dims).map(|(d, v)| (self.program.dim_name(d).to_owned(), i128::from(*v))).collect()
    }

    fn not_yet(&mut self, construct: &str, span: Span, instead: Option<&str>) {
        let (construct, instead) = (construct.to_owned(), instead.map(str::to_owned));
        self.diags.report(NotSupportedYet { construct, span, instead });
    }

    /// The stage that reads the copy, as a position in `analysed`, and the tensor copied.
    fn reader(&mut self, analysed: &[Analysed]) -> Option<(usize, u16)> {
        let ast = &self.copy.ast;
        let clauses = &ast.clauses;
        let before = self.diags.found().len();
        let threads = Some("without it, each thread reads the tensor from device memory");
        match clauses.place {
            Some(place) if place.value == ast::Place::Shared => {}
            Some(place) => self.not_yet(&format!("stage in {}", place.value), place.span, Some("stage it `in shared`")),
            None => self.not_yet("stage without `in shared`", ast.head, Some("stage it `in shared`")),
        }
        match clauses.via {
            Some(via) if via.value == ast::Engine::Tma => {}
            Some(via) => self.not_yet(&format!("stage via {}", via.value), via.span, Some("copy it `via tma`")),
            None => self.not_yet("stage by ordinary loads", ast.head, Some("copy it `via tma`")),
        }
        if let Some(per) = clauses.per.as_ref().filter(|per| per.text != "cta") {
            self.not_yet("per", per.span, Some("one instance for each block: `per cta`"));
        }
        if let Some(ring) = &clauses.ring {
            self.not_yet("ring", ring.span, Some("without it, the copy waits for the readers of the last instance"));
        }
        if let Some(by) = &clauses.by {
            self.not_yet("by", by.span, None);
        }
        let source = self.program.parameters.iter().position(|p| p.name == ast.source.text);
        let parameter = source.and_then(|p| u16::try_from(p).ok());
        let tensor = parameter.and_then(|p| access::tensor(self.program, p));
        match tensor {
            Some(tensor) if !tensor.role.is_written() => {}
            Some(_) => self.not_yet("stage of an output", ast.source.span, threads),
            // Names that nothing defines have been reported.
            None => self.not_yet("stage of an intermediate", ast.source.span, threads),
        }
        if self.diags.found().len() > before {
            return None;
        }
        let Some(at) = &clauses.at else {
            self.attach(AttachProblem::Missing, analysed.first(), ast.head);
            return None;
        };
        let Some(reader) = analysed.iter().position(|a| a.stage.name == at.stage.text) else {
            self.attach(AttachProblem::NoStage(at.stage.text.clone()), analysed.first(), at.stage.span);
            return None;
        };
        Some((reader, parameter?))
    }

    fn attach(&mut self, problem: AttachProblem, reader: Option<&Analysed>, span: Span) {
        let possible = reader.map_or_else(Vec::new, |a| {
            let axes = a.stage.domain.leaves.iter().map(|l| &a.stage.domain.axes[*l]);
            let is_loop = |b: Binding| matches!(b, Binding::Grid | Binding::Serial | Binding::Unroll(_));
            axes.filter(|x| is_loop(x.binding)).map(|x| format!("{}.{}", a.stage.name, x.name)).collect()
        });
        self.diags.report(AttachPoint { copy: self.copy.ast.name.text.clone(), problem, possible, span });
    }

    fn plan(&mut self, reader: &Analysed, parameter: u16) -> Option<Staged> {
        let tensor = access::tensor(self.program, parameter)?;
        let ast = &self.copy.ast;
        if reader.staged.iter().any(|s| s.parameter == parameter) {
            let instead = Some("one copy for each tensor and each stage");
            self.not_yet("a second copy of a tensor for one stage", ast.head, instead);
            return None;
        }
        let found = plan(
            self.program,
            self.facts,
            (&reader.stage, &reader.symbolic, &reader.accesses),
            parameter,
            tensor,
            self.copy,
        );
        let staged = match found {
            Ok(staged) => staged,
            Err(refused) => {
                self.refuse(refused, reader, parameter);
                return None;
            }
        };
        let copy = ast.name.text.clone();
        if staged.copies() > TILES {
            let axes = staged.axes.iter().map(|a| (a.name.clone(), a.boxes(), a.boxed.element_stride)).collect();
            let tiles = staged.copies();
            self.diags.report(TooManyTiles { copy, axes, tiles, limit: TILES, span: ast.head });
            return None;
        }
        // The initial value of a fold is computed in front of the copy, by threads that may have nothing to do.
        if self.reads_in_front(reader) {
            let instead = Some("read it in the result of the fold, or stage nothing for this equation");
            self.not_yet("a fold whose initial value reads a tensor, with a staged copy", ast.head, instead);
            return None;
        }
        let fill = ast.ops.iter().find_map(|op| match &op.kind {
            ast::OpKind::Fill { model } => Some((model.value, op.span)),
            _ => None,
        });
        if let Some((ast::FillModel::Zero, span)) = fill {
            match staged.level(self.facts, &reader.symbolic) {
                Level::Free => {}
                Level::Redirect => {
                    let instead = Some("remove it: readers never look into holes");
                    self.not_yet("`fill zero` that sends copies out of bounds", span, instead);
                    return None;
                }
                Level::Impossible => {
                    self.no_zero_fill(&staged, reader, span);
                    return None;
                }
            }
        }
        Some(staged)
    }

    fn reads_in_front(&self, reader: &Analysed) -> bool {
        let algorithm = &self.program.algorithm;
        let Some(Value::Fold { states, .. }) = reader.stage.reduction.map(|r| algorithm.values[r as usize]) else {
            return false;
        };
        let mut left: Vec<_> = algorithm.folds[states.range()].iter().map(|s| s.init).collect();
        while let Some(value) = left.pop() {
            if matches!(algorithm.values[value as usize], Value::Read { .. }) {
                return true;
            }
            left.extend(algorithm.operands(value));
        }
        false
    }

    fn no_zero_fill(&mut self, staged: &Staged, reader: &Analysed, span: Span) {
        let found = witness::filled_hole(staged, self.facts, &reader.symbolic);
        let strided = |a: &&super::plan::Axis| a.boxed.box_size % a.boxed.element_stride != 0;
        let axis = match &found {
            Some(found) => staged.axes.get(found.axis).filter(strided),
            None => staged.axes.iter().find(strided),
        };
        let cause = found.as_ref().map(|f| f.axis).and_then(|a| staged.axes.get(a)).or(axis).map(|a| a.boxed.span);
        let strided = axis.map(|a| (a.name.clone(), a.boxed.element_stride, a.boxed.box_size));
        let witness = found.map(|found| {
            let along = &staged.axes[found.axis];
            FilledHole {
                dims: self.assignment(&found.dims),
                axis: along.name.clone(),
                start: found.start,
                phase: found.phase,
                slot: found.slot,
                position: found.start + found.phase + found.slot * along.boxed.element_stride,
                extent: found.ends.0,
                end: found.ends.1,
            }
        });
        let copy = staged.name.clone();
        self.diags.report(NoZeroFill { copy, strided, witness, span, cause: cause.unwrap_or(span) });
    }

    /// The smallest sizes for which `test` gives something; those of `vars` by name.
    fn smallest<W>(&self, vars: &[Var], test: impl Fn(&[i128]) -> Option<W>) -> Option<(Vec<(String, i128)>, W)> {
        let found = self.facts.smallest(vars, &mut Budget::new(STEPS), |dims, _| {
            let values: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
            Some((dims.to_vec(), test(&values)?))
        });
        let Search::Found((dims, what)) = found else { return None };
        // Only the sizes that it depends on.
        let named = self.assignment(&dims).into_iter().enumerate();
        Some((named.filter(|(d, _)| vars.contains(&(*d as Var))).map(|(_, pair)| pair).collect(), what))
    }

    /// The smallest sizes for which an expression is no multiple of `m`, and its value there.
    fn remainder(&self, e: &Expr, m: i128) -> Option<(Vec<(String, i128)>, i128)> {
        self.smallest(&e.vars(), |values| e.eval(values).filter(|value| value.rem_euclid(m) != 0))
    }

    /// A fact that makes an expression a multiple of `m`.
    fn multiple(&self, e: &Expr, m: i128) -> Option<String> {
        let parts = multiples::misaligned_terms(self.facts, e, m);
        let goal = |facts: &Facts| facts.proves_multiple(e, m);
        let found = multiples::proposals(self.program, &parts, m, &goal);
        (!found.is_empty()).then(|| found.join(", "))
    }

    fn refuse(&mut self, refused: Refused, reader: &Analysed, parameter: u16) {
        let ast = &self.copy.ast;
        let (copy, head) = (ast.name.text.clone(), ast.head);
        let tensor = ast.source.text.clone();
        match refused {
            Refused::View(refusal) => self.refuse_view(refusal),
            Refused::Attach(span) => {
                let (axis, stage) = match &ast.clauses.at {
                    Some(at) => (at.axis.text.clone(), at.stage.text.clone()),
                    None => return self.attach(AttachProblem::Missing, Some(reader), head),
                };
                self.attach(AttachProblem::NoLoop { axis, stage }, Some(reader), span);
            }
            Refused::AttachInsideBlock(span) => {
                let axis = ast.clauses.at.as_ref().map(|at| at.axis.text.clone()).unwrap_or_default();
                self.attach(AttachProblem::InsideBlock(axis), Some(reader), span);
            }
            Refused::NotRead(span) => {
                let stage = reader.stage.name.clone();
                self.diags.report(StagedForNobody { copy, tensor, stage, span });
            }
            Refused::Axes(found, expected) => {
                let declared = self.program.parameter_spans.get(usize::from(parameter)).copied();
                self.diags.report(WrongRank { name: tensor, expected, found, declared, span: head });
            }
            Refused::NotYet(construct, span) => self.not_yet(construct, span, None),
            Refused::NotATile { axis, why, read } => {
                let why = match why {
                    NotATile::Unknown => "the index is read from memory".to_owned(),
                    NotATile::SymbolicStep(_) => {
                        "a loop inside moves it by steps that are known at launch only".to_owned()
                    }
                    NotATile::Apart(a, b) => {
                        format!(
                            "two reads start at {} and {}",
                            self.with_loops(&a, reader),
                            self.with_loops(&b, reader)
                        )
                    }
                    NotATile::TooLong => "it is too long to count".to_owned(),
                };
                self.diags.report(NoTile { copy, axis, why, read, span: head });
            }
            Refused::Unbounded { axis, extent } => {
                let one = extent.as_var().filter(|v| (*v as usize) < self.facts.dims());
                let fact = one.map(|v| format!("{} <= 64", self.show(&Expr::var(v))));
                let extent = self.show(&extent);
                self.diags.report(UnboundedBuffer { copy, axis, extent, fact, span: head });
            }
            Refused::InnerStride { axis, stride } => {
                let stride = self.show(&stride);
                self.diags.report(InnerStride { tensor, axis, stride, span: head });
            }
            Refused::Pitch { axis, stride, multiple } => {
                let bytes = i128::from(self.program.parameters[usize::from(parameter)].element.bytes());
                let witness = self.remainder(&stride, multiple).map(|(dims, value)| (dims, value * bytes));
                let fact = self.multiple(&stride, multiple);
                let stride = self.show(&stride);
                self.diags.report(Pitch { tensor, axis, stride, multiple, witness, fact, span: head });
            }
            Refused::InnerStart { axis, start, multiple } => {
                let start = self.with_loops(&start, reader);
                self.diags.report(InnerStart { copy, axis, start, multiple, span: head });
            }
            Refused::Limit(fault, axis) => {
                let (axis, span) = axis.map_or((None, head), |(axis, span)| (Some(axis), span));
                let help = match fault {
                    Fault::Rank(_) => "merge axes of the view that are contiguous to each other, or give them one box",
                    Fault::Box { .. } => "box the axis by at most 256: several boxes make an instance",
                    Fault::InnerBoxGranule { .. } => "box by a multiple of 16 bytes",
                    Fault::InnerBoxSpan { .. } => "box by less, or use a wider swizzle",
                    Fault::ElementStride { .. } => "tile by at most 8",
                    Fault::InnerElementStride(_) => "tile another axis: this one is copied without gaps",
                    _ => "box by less",
                };
                let (fault, help) = (fault.to_string(), help.to_owned());
                self.diags.report(MapLimit { copy, axis, fault, help, span });
            }
            Refused::Swizzle(span) => self.swizzle(SwizzleProblem::Span, parameter, String::new(), span),
            Refused::NarrowSwizzle { bytes, span: whole, inner, at } => {
                self.swizzle(SwizzleProblem::Narrow { bytes, span: whole }, parameter, inner, at.unwrap_or(head));
            }
            Refused::Layout(problem, natural, span) => self.diags.report(BadLayout { copy, problem, natural, span }),
        }
    }

    fn swizzle(&mut self, problem: SwizzleProblem, parameter: u16, inner: String, span: Span) {
        let element = self.program.parameters[usize::from(parameter)].element.bytes();
        let copy = self.copy.ast.name.text.clone();
        self.diags.report(BadSwizzle { copy, problem, element, inner, span });
    }

    /// An expression over dimensions and loops, in the user's names.
    fn with_loops(&self, e: &Expr, reader: &Analysed) -> String {
        let stage = &reader.stage;
        e.show(&|v| match (v as usize).checked_sub(self.facts.dims()) {
            None => self.program.dim_name(v as u16).to_owned(),
            Some(n) => {
                stage.domain.leaves.get(n).map_or_else(|| "?".to_owned(), |l| stage.domain.axes[*l].name.clone())
            }
        })
    }

    fn refuse_view(&mut self, refusal: Refusal) {
        let stage = self.copy.ast.name.text.clone();
        let tensor = self.copy.ast.source.text.clone();
        match refusal {
            Refusal::NoAxis { name: axis, span, known: leaves } => {
                self.diags.report(UnknownAxis { axis, span, stage, leaves, named: Vec::new(), consumed: None });
            }
            Refusal::Taken { name: axis, span, first } => self.diags.report(NameTaken { axis, span, first, stage }),
            Refusal::Factor { value, span } => {
                let what = "the size of a box, a tile or a split";
                self.diags.report(BadFactor { what, value, least: 1, most: i128::from(i32::MAX), span });
            }
            Refusal::Indivisible { size, factor, span } => {
                let witness = self.remainder(&size, factor);
                let fact = self.multiple(&size, factor);
                let extent = self.show(&size);
                self.diags.report(ViewSplit { tensor, extent, factor, witness, fact, span });
            }
            Refusal::Discontiguous { outer, inner, measures, span } => {
                let [far, near, size] = *measures;
                let run = size.mul(&near);
                let vars = [far.vars(), run.vars()].concat();
                let found = self.smallest(&vars, |values| {
                    let (far, run) = (far.eval(values)?, run.eval(values)?);
                    (far != run).then_some((far, run))
                });
                let witness = found.map(|(dims, (far, run))| (dims, far, run));
                let strides = (self.show(&far), self.show(&near));
                let extent = self.show(&size);
                self.diags.report(ViewMerge { tensor, outer, inner, strides, extent, witness, span });
            }
            Refusal::SymbolicBox { size, span } => {
                let fault = format!("a box is a literal, and the axes of this one have {} elements", self.show(&size));
                let help = "box by partitioning: `box … by` a literal".to_owned();
                self.diags.report(MapLimit { copy: stage, axis: None, fault, help, span });
            }
            Refusal::Twice { name, span } => {
                let fault = "an axis has one box and one tile".to_owned();
                let help = "split the axis first, and box its parts".to_owned();
                self.diags.report(MapLimit { copy: stage, axis: Some(name), fault, help, span });
            }
            Refusal::NotYet { construct, span } => {
                self.not_yet(&format!("{construct} in the view of a copy"), span, None);
            }
        }
    }
}
