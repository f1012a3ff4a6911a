//! What is said of a staged copy that is refused.

use super::allocation::Elsewhere;
use super::check::One;
use super::cover::Gap;
use super::layout::NotWritten;
use super::rules::{NotOne, Refused};
use super::view::Refusal;
use crate::diag::codes::{
    AttachProblem, BadFactor, BadLayout, BadSwizzle, GapProblem, HiddenAxis, InnerStart, InnerStride, MapLimit,
    NameTaken, NoTile, NotASwizzle, NotWhole, Pitch, StagedForNobody, StoreGranule, StoreHoles, SwizzleProblem,
    UnboundedBuffer, UnknownAxis, UnknownStore, UnknownStoreProblem, UnwrittenLayout, ViewMerge, ViewSplit, WrongRank,
};
use crate::extent::{Budget, Expr, Facts, Family, Search, Var};
use crate::memory::multiples;
use crate::plan::Analysed;
use crate::plan::product::factors;
use crate::plan::staged::Staged;
use crate::program::expressions;
use crate::region::NotATile;
use crate::schedule::MOST_SLOTS;
use crate::source::Span;
use tilewright_kernel::algorithm::{Source, Value};
use tilewright_kernel::tensor_map::{Fault, Swizzle};

/// Steps that a search for sizes may take.
const STEPS: u64 = 20_000;

impl One<'_> {
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

    /// Whether tensor cores multiply what a stage reads of a tensor.
    fn is_factor(&self, reader: &Analysed, parameter: u16) -> bool {
        let algorithm = &reader.stage.program.algorithm;
        let factors = reader.stage.product.as_ref().and_then(|_| factors(algorithm, reader.stage.reduction?).ok());
        factors.into_iter().flatten().any(|read| {
            matches!(algorithm.values[read as usize], Value::Read { source, .. } if source == Source::Parameter(parameter))
        })
    }

    /// Where the copy stands, as it is written.
    fn place(&self) -> Option<String> {
        let at = self.copy.ast.clauses.at.as_ref()?;
        Some(format!("{}.{}", at.stage.text, at.axis.text))
    }

    #[expect(clippy::too_many_lines, reason = "one arm a refusal")]
    pub(super) fn refuse(&mut self, refused: Refused, reader: &Analysed, parameter: u16) {
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
                let tensor_is = expressions::tensor(self.program, parameter);
                let written = tensor_is.is_some_and(|t| t.role.is_written());
                self.diags.report(StagedForNobody { copy, tensor, stage, written, span });
            }
            Refused::RingWithoutLoop(span) => self.attach(AttachProblem::RingWithoutLoop, Some(reader), span),
            Refused::Ring(value, span) => {
                self.diags.report(BadFactor {
                    what: "the number of buffers of a ring",
                    value,
                    least: 1,
                    most: MOST_SLOTS,
                    span,
                });
            }
            Refused::InsideReduction(span) => {
                let axis = ast.clauses.at.as_ref().map(|at| at.axis.text.clone()).unwrap_or_default();
                self.attach(AttachProblem::InsideReduction(axis), Some(reader), span);
            }
            Refused::Gap(gap) => {
                let problem = match gap {
                    Gap::Varying { axis, extent } => {
                        let extent = self.show(&extent);
                        GapProblem::Varying { axis, extent }
                    }
                    Gap::Guarded { axis, next_row } => GapProblem::Guarded { axis, next_row },
                    Gap::Missing(offsets) => GapProblem::Missing(offsets),
                    Gap::Unknown(axis) => GapProblem::Unknown(axis),
                };
                self.diags.report(NotWhole { copy, tensor, problem, span: head });
            }
            Refused::StoreHoles(staged) => self.store_holes(&staged, reader),
            Refused::StridedStore(axis, span) => {
                let problem = UnknownStoreProblem::Strided(axis);
                self.diags.report(UnknownStore { copy, problem, span });
            }
            Refused::NegativeStart { axis, start } => {
                let start = self.with_loops(&start, reader);
                self.diags.report(UnknownStore {
                    copy,
                    problem: UnknownStoreProblem::Negative { axis, start },
                    span: head,
                });
            }
            Refused::Granule { axis, size, multiple } => {
                let bytes = i128::from(self.program.parameters[usize::from(parameter)].element.bytes());
                let witness = self.remainder(&size, multiple).map(|(dims, value)| (dims, value * bytes));
                let fact = self.multiple(&size, multiple);
                let size = self.show(&size);
                self.diags.report(StoreGranule { tensor, axis, size, multiple, witness, fact, span: head });
            }
            Refused::Axes(found, expected) => {
                let declared = self.program.parameter_spans.get(usize::from(parameter)).copied();
                self.diags.report(WrongRank { name: tensor, expected, found, declared, is_copy: true, span: head });
            }
            Refused::Multicast(refusal) => self.refuse_multicast(*refusal, reader),
            Refused::NotYet(construct, span) => self.not_yet(construct, span, None),
            Refused::NotATile { axis, why, read } => {
                let why = match why {
                    NotATile::Unknown => "the index is read from memory".to_owned(),
                    NotATile::SymbolicStep(_) => {
                        "a loop inside moves it by steps that are known at launch only".to_owned()
                    }
                    NotATile::Apart(starts) => {
                        let [a, b] = starts.each_ref().map(|start| self.with_loops(start, reader));
                        format!("two reads start at {a} and {b}")
                    }
                    NotATile::TooLong => "it is too long to count".to_owned(),
                    NotATile::Unlisted(_) => "the index is not one of its loops".to_owned(),
                    NotATile::NotFlat => "its elements are not in a row".to_owned(),
                };
                self.diags.report(NoTile { copy, axis, why, read, span: head });
            }
            Refused::FromMemory { axis, why, read } => {
                let why = match why {
                    NotOne::Several { parameter } => {
                        let name = &self.program.parameters[usize::from(parameter)].name;
                        format!("where it lies, `{name}` says for each part of an instance")
                    }
                    NotOne::Many { parameter, count, most } => {
                        let name = &self.program.parameters[usize::from(parameter)].name;
                        format!("`{name}` lists {count} places for an instance, and {most} is the most")
                    }
                    NotOne::Sliced => "memory lists the places of boxes that blocks divide among each other".to_owned(),
                    NotOne::Computed => "what memory says is not just added to where it starts".to_owned(),
                };
                self.diags.report(NoTile { copy, axis, why, read, span: head });
            }
            Refused::Unbounded { axis, extent } => {
                let one = extent.as_var().filter(|v| (*v as usize) < self.facts.dims());
                let fact = one.map(|v| format!("{} <= 64", self.show(&Expr::var(v))));
                let extent = self.show(&extent);
                let at = self.copy.ast.clauses.at.as_ref().filter(|at| at.stage.text == reader.stage.name);
                let place = at.and_then(|at| reader.stage.domain.leaf(&at.axis.text));
                let inside = place.and_then(|place| reader.stage.loop_without_bound(place));
                self.diags.report(UnboundedBuffer {
                    copy,
                    axis,
                    extent,
                    fact,
                    inside,
                    place: crate::source::ast::Place::Shared,
                    global: false,
                    span: head,
                });
            }
            Refused::InnerStride { axis, stride } => {
                let stride = self.show(&stride);
                self.diags.report(InnerStride { tensor, axis, stride, span: head });
            }
            Refused::Pitch { axis, stride, multiple } => {
                let bytes = i128::from(self.program.parameters[usize::from(parameter)].element.bytes());
                let open = Some(&stride).filter(|stride| stride.as_constant() != Some(0));
                let witness = open.and_then(|stride| self.remainder(stride, multiple));
                let witness = witness.map(|(dims, value)| (dims, value * bytes));
                let fact = open.and_then(|stride| self.multiple(stride, multiple));
                let stride = self.show(&stride);
                let factor_at = self.is_factor(reader, parameter).then(|| self.place()).flatten();
                self.diags.report(Pitch { tensor, axis, stride, multiple, witness, fact, factor_at, span: head });
            }
            Refused::InnerStart { axis, start, multiple } => {
                let start = self.with_loops(&start, reader);
                self.diags.report(InnerStart { copy, axis, start, multiple, span: head });
            }
            Refused::Limit(fault, axis, rows) => {
                let (axis, span) = axis.map_or((None, head), |(axis, span)| (Some(axis), span));
                let help = match fault {
                    Fault::Rank(_) => "merge axes of the view that are contiguous to each other, or give them one box",
                    Fault::Box { .. } => "box the axis by at most 256: several boxes make an instance",
                    Fault::InnerBoxGranule { .. } => "box by a multiple of 16 bytes",
                    Fault::InnerBoxSpan { bytes, .. } if bytes <= Swizzle::B128.span() => {
                        "box by less, or use a wider swizzle"
                    }
                    Fault::InnerBoxSpan { .. } => {
                        "box by at most 128 bytes, the widest span of a swizzle; several boxes make an instance"
                    }
                    Fault::ElementStride { .. } => "tile by at most 8",
                    Fault::InnerElementStride(_) => "tile another axis: this one is copied without gaps",
                    _ => "box by less",
                };
                let (fault, help) = (fault.to_string(), help.to_owned());
                self.diags.report(MapLimit { copy, axis, fault, help, rows, span });
            }
            Refused::Beyond { axis, value, most, is_stride } => {
                let value = self.show(&value);
                let (fault, help) = if is_stride {
                    (
                        format!("neighbours are {value} elements apart, and a tensor map has no distance above {most}"),
                        "read the tensor without a copy",
                    )
                } else {
                    (
                        format!("there are {value} elements, and coordinates reach no more than {most}"),
                        "split the axis in the view of the copy, so that each part is shorter",
                    )
                };
                self.diags.report(MapLimit {
                    copy,
                    axis: Some(axis),
                    fault,
                    help: help.to_owned(),
                    rows: Vec::new(),
                    span: head,
                });
            }
            Refused::Promotion(span) => {
                let fault = "the L2 cache fetches 64, 128 or 256 bytes together".to_owned();
                let help = "`l2 promote(128)`, for instance".to_owned();
                self.diags.report(MapLimit { copy, axis: None, fault, help, rows: Vec::new(), span });
            }
            Refused::TwoSwizzles(sugar, op) => {
                self.swizzle(SwizzleProblem::Twice(op), parameter, String::new(), sugar);
            }
            Refused::NotASwizzle(axes, span) => {
                let [x, y] = axes.map(|(name, extent)| (name, extent.to_string()));
                self.diags.report(NotASwizzle { x, y, span });
            }
            Refused::Elsewhere(found) => {
                let NotWritten { elsewhere, sugar, ops, other, replace, span } = *found;
                let element = i128::from(self.program.parameters[usize::from(parameter)].element.bytes());
                let other = other.map(|(axis, bytes)| (axis, bytes, [32, 64, 128].map(|span| span / element)));
                let Elsewhere { slot, written, modes } = elsewhere;
                let modes = modes.into_iter().map(|(mode, offset)| (mode.span(), offset)).collect();
                self.diags.report(UnwrittenLayout { copy, slot, written, modes, sugar, ops, other, replace, span });
            }
            Refused::TooLong(span) => {
                let instead = Some("write the swizzle by its span: `layout [..] swizzle 128`, for instance");
                self.not_yet("a layout of so many ops", span, instead);
            }
            Refused::Swizzle(span) => self.swizzle(SwizzleProblem::Span, parameter, String::new(), span),
            Refused::NarrowSwizzle { bytes, span: whole, inner, at } => {
                self.swizzle(SwizzleProblem::Narrow { bytes, span: whole }, parameter, inner, at.unwrap_or(head));
            }
            Refused::Layout(problem, natural, span) => self.diags.report(BadLayout { copy, problem, natural, span }),
        }
    }

    fn store_holes(&mut self, staged: &Staged, reader: &Analysed) {
        let witness = self.filled_hole(staged, reader);
        let axis = witness.as_ref().and_then(|w| staged.axes.iter().find(|a| a.name == w.axis));
        let head = self.copy.ast.head;
        let cause = axis.map_or(head, |a| a.boxed.span);
        let boxed = axis.map(|a| (a.name.clone(), a.boxed.box_size, a.region.extent));
        self.diags.report(StoreHoles { copy: staged.name.clone(), boxed, witness, span: cause, head });
    }

    fn swizzle(&mut self, problem: SwizzleProblem, parameter: u16, inner: String, span: Span) {
        let element = self.program.parameters[usize::from(parameter)].element.bytes();
        let copy = self.copy.ast.name.text.clone();
        self.diags.report(BadSwizzle { copy, problem, element, inner, span });
    }

    /// An expression over dimensions and loops, in the user's names.
    pub(super) fn with_loops(&self, e: &Expr, reader: &Analysed) -> String {
        let stage = &reader.stage;
        let of_memory = |v: Var| self.memory.get(Family::MEMORY.number(v)?).map(|read| read.display(stage));
        e.show(&|v| of_memory(v).or_else(|| stage.name_of(v)).unwrap_or_else(|| "?".to_owned()))
    }

    fn refuse_view(&mut self, refusal: Refusal) {
        let stage = self.copy.ast.name.text.clone();
        let tensor = self.copy.ast.source.text.clone();
        match refusal {
            Refusal::NoAxis { name: axis, span, known: leaves, consumed } => {
                // It is in the tile, and the op takes boxes.
                let hidden = (leaves.contains(&axis) && consumed.is_none()).then_some(HiddenAxis::NoBox);
                self.diags.report(UnknownAxis { axis, span, stage, leaves, named: Vec::new(), consumed, hidden });
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
                self.diags.report(MapLimit { copy: stage, axis: None, fault, help, rows: Vec::new(), span });
            }
            Refusal::Twice { name, span } => {
                let fault = "an axis has one box and one tile".to_owned();
                let help = "split the axis first, and box its parts".to_owned();
                self.diags.report(MapLimit { copy: stage, axis: Some(name), fault, help, rows: Vec::new(), span });
            }
            Refusal::NotYet { construct, span, instead } => {
                self.not_yet(&format!("{construct} in the view of a copy"), span, instead);
            }
        }
    }
}
