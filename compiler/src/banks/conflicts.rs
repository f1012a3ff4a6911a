//! Who accesses each buffer of shared memory, how long that takes, and what would take less: for `explain`, and as
//! warnings.
//!
//! **Property.** A layout is proposed only if the cycles of all accesses of its buffer were counted with it
//! ([`super::count`]), with the vectors that there are. Whether it also fits is checked with all buffers at one time.

use std::cell::RefCell;

use tilewright_kernel::ElementType;
use tilewright_kernel::banks;
use tilewright_kernel::tensor_map::Swizzle;

use super::count::{POINTS, Shape, Walk, Where};
use crate::diag::Diagnostics;
use crate::diag::codes::{BankConflicts, Left, Remedy};
use crate::domain::{Numbers, Xor};
use crate::extent::{Expr, Facts, Var};
use crate::layout::XorSwizzle;
use crate::memory::fetch;
use crate::plan::Analysed;
use crate::plan::cycles::{Cycles, Degree, Use};
use crate::plan::roles::readers;
use crate::plan::staged::{Staged, Way};
use crate::program::Program;
use crate::schedule::accesses::{Access, StageRead};
use crate::schedule::vector::Vector;
use crate::schedule::{self, BufferLayout, Stage, accesses, vector};
use crate::source::Span;
use crate::source::ast::Place;
use crate::target::SHARED_BYTES;

/// Most accesses of a warp that are looked at for each layout that is tried.
const TRIED_POINTS: usize = 32;
/// Bytes of padding up to which layouts are tried: all banks once.
const PADDING: i128 = 128;

/// Counts the cycles of every access of the buffers in the loops of a stage, and of its own, each with the stage that
/// makes it; and warns of those that take at least twice as long as they would without conflicts.
pub fn find(
    program: &Program,
    facts: &Facts,
    (analysed, at): (&[Analysed], usize),
    diags: &mut Diagnostics,
) -> Vec<(usize, Use)> {
    let kernel = Around { program, dims: facts.dims(), stages: analysed };
    let host = &analysed[at];
    let mut found: Vec<(usize, Use)> =
        host.staged.iter().flat_map(|staged| kernel.of_copy(at, staged, diags)).collect();
    if host.stage.place == Place::Shared {
        found.extend(kernel.of_stage(at, diags));
    }
    found
}

/// The kernel.
struct Around<'a> {
    program: &'a Program,
    dims: usize,
    stages: &'a [Analysed],
}

/// How long an access takes, and how many lanes of a vector go together; none where that depends on sizes.
type Counted = Option<(Degree, u32)>;

/// An access of the buffer of a stage.
#[derive(Clone, Copy)]
struct Accessing<'a> {
    /// The stage that accesses it.
    by: usize,
    /// The read; none for what the stage writes itself.
    read: Option<&'a StageRead>,
    element: ElementType,
    span: Span,
}

impl<'a> Around<'a> {
    /// The accesses of the buffer of a copy in a loop of the stage with a position, each with the stage that makes it.
    fn of_copy(&self, at: usize, staged: &Staged, diags: &mut Diagnostics) -> Vec<(usize, Use)> {
        let copy = self.program.stages.iter().find(|s| s.ast.name.text == staged.name);
        let by = match (staged.way, copy) {
            (Way::Load, Some(copy)) => readers(self.stages, at, copy).into_iter().map(|(reader, _)| reader).collect(),
            _ => vec![at],
        };
        let own = |a: &&Access| match staged.way {
            Way::Load => !a.is_write && staged.is_for(a.parameter, a.value),
            Way::Store => a.is_write && a.parameter == staged.parameter,
        };
        let mut uses = Vec::new();
        for by in by {
            // Tensor cores read whole tiles, in layouts that have no conflicts.
            let product = self.stages[by].product.as_ref();
            let by_threads = |a: &&Access| !product.is_some_and(|p| a.value.is_some_and(|read| p.reads(read)));
            for access in self.stages[by].accesses.iter().filter(own).filter(by_threads) {
                let count = |swizzle: Swizzle| self.copied(staged, by, access, swizzle);
                let degree = count(staged.swizzle);
                if let Some(slow) = degree.as_ref().filter(|d| d.is_slow()) {
                    let row =
                        staged.axes.last().map_or(0, |axis| axis.boxed.box_size * i128::from(staged.element.bytes()));
                    let other = u32::try_from(row).ok().and_then(Swizzle::with_span).filter(|s| *s != staged.swizzle);
                    let better = other.and_then(|swizzle| Some((swizzle, count(swizzle)?)));
                    let better = better.filter(|(_, degree)| degree.sum.taken < slow.sum.taken);
                    let remedy = better.map_or(Remedy::None, |(swizzle, degree)| {
                        Remedy::Swizzle(swizzle.span(), shown(&degree).taken)
                    });
                    let span = copy.map_or(access.span, |copy| copy.ast.head);
                    diags.report(self.warning(by, &staged.name, (access.is_write, access.span), slow, remedy, span));
                }
                let buffer = staged.name.clone();
                uses.push((by, Use { buffer, is_write: access.is_write, span: access.span, degree }));
            }
        }
        uses
    }

    /// How long an access of a copy takes with a swizzle.
    fn copied(&self, staged: &Staged, by: usize, access: &Access, swizzle: Swizzle) -> Option<Degree> {
        let Analysed { stage, symbolic, vector, .. } = &self.stages[by];
        let walk = Walk::new(self.stages, by, self.dims)?;
        let vector = vector.as_ref().filter(|vector| vector.has_one_guard(access, symbolic, &stage.facts));
        let run = vector.map_or(1, |v| staged.neighbours(&access.indices, v, symbolic, &stage.facts));
        let offsets: Vec<Expr> =
            staged.places(&access.indices).into_iter().map(|(_, offset)| stage.facts.normal(&offset)).collect();
        if !offsets.iter().all(|e| walk.is_known(e)) {
            return None;
        }
        // What an offset along an axis adds to the place, and 1, once a lane has asked: iterations have the same few.
        let layout = staged.layout(Swizzle::None);
        let extents = staged.axes.iter().map(|axis| vec![0; usize::try_from(axis.region.extent).unwrap_or(0)]);
        let along: RefCell<Vec<Vec<i128>>> = RefCell::new(extents.collect());
        let swizzle = XorSwizzle::new(swizzle, staged.element.bytes());
        let byte = |offsets: &[Option<i128>], _: &[i128], _: i128| {
            let along = &mut along.borrow_mut()[..];
            let (mut element, mut axis) = (0, 0);
            while axis < along.len() {
                let (Some(number), added) = (offsets[axis], &mut along[axis][..]) else { return None };
                if number < 0 || number >= added.len() as i128 {
                    return None;
                }
                let added = &mut added[number as usize];
                if *added == 0 {
                    let of = |other: usize| if other == axis { number } else { 0 };
                    *added = 1 + layout.place(&mut Numbers(&[]), (), &of);
                }
                element += *added - 1;
                axis += 1;
            }
            let element = swizzle.of(&mut Numbers(&[]), &element);
            Some(u64::try_from(element).ok()? * u64::from(staged.element.bytes()))
        };
        let variables = offsets.iter().flat_map(Expr::vars).collect();
        let (is_write, bytes) = (access.is_write, staged.element.bytes());
        let shape = Shape { inner: &access.inner, in_terms: access.in_terms, is_write, run, bytes };
        walk.degree(
            shape,
            &Where { variables, conditions: Vec::new(), sums: offsets, by_values: false, period: None, byte: &byte },
            POINTS,
        )
    }

    /// The accesses of the buffers of the stage with a position, each with the stage that makes it.
    fn of_stage(&self, held: usize, diags: &mut Diagnostics) -> Vec<(usize, Use)> {
        let stage = &self.stages[held].stage;
        let algorithm = &stage.program.algorithm;
        let components = algorithm.equations[stage.equation].components.range();
        let own = components.clone().map(|c| Accessing {
            by: held,
            read: None,
            element: algorithm.types[algorithm.components[c].value as usize],
            span: stage.program.component_spans.get(c).copied().filter(|_| stage.copy.is_none()).unwrap_or(stage.span),
        });
        let mut all: Vec<Accessing<'_>> = own.collect();
        let at = |n: usize| self.stages.get(n).map(|a| &a.stage);
        for (by, reader) in self.stages.iter().enumerate() {
            // Tensor cores read whole tiles, in layouts that have no conflicts.
            let by_threads = |r: &&StageRead| !reader.product.as_ref().is_some_and(|p| p.reads(r.value));
            let taken = |r: &&StageRead| {
                by_threads(r) && schedule::taken(&at, by, (r.source, r.value), r.in_terms) == Some(held)
            };
            all.extend(reader.reads.iter().filter(taken).map(|read| Accessing {
                by,
                read: Some(read),
                element: reader.stage.program.algorithm.types[read.value as usize],
                span: read.span,
            }));
        }
        let count = |layout: &BufferLayout, points: usize| -> Vec<Counted> {
            all.iter().map(|access| self.accessed(held, layout, *access, points)).collect()
        };
        let found = count(&stage.layout, POINTS);
        let is_slow = |d: &Counted| d.as_ref().is_some_and(|d| d.0.is_slow());
        if found.iter().any(is_slow) {
            let remedy = self.remedy(held, &found, &count);
            for (access, degree) in all.iter().zip(&found) {
                let Some((degree, _)) = degree.as_ref().filter(|d| d.0.is_slow()) else { continue };
                let what = (access.read.is_none(), access.span);
                diags.report(self.warning(access.by, &stage.name, what, degree, remedy.clone(), stage.span));
            }
        }
        let use_of = |(access, degree): (&Accessing<'_>, Counted)| {
            let (buffer, is_write) = (stage.name.clone(), access.read.is_none());
            (access.by, Use { buffer, is_write, span: access.span, degree: degree.map(|d| d.0) })
        };
        all.iter().zip(found).map(use_of).collect()
    }

    /// How long an access of the buffer of a stage takes in a layout, and how many lanes of a vector go together.
    fn accessed(&self, held: usize, layout: &BufferLayout, access: Accessing<'_>, points: usize) -> Counted {
        let walk = Walk::new(self.stages, access.by, self.dims)?;
        let Analysed { stage, symbolic, vector, .. } = &self.stages[access.by];
        let (holds, facts, bytes) = (&self.stages[held].stage, &stage.facts, access.element.bytes());
        let run = self.run(holds, layout, access, vector.as_ref());
        // Variables of exclusive ors get numbers after all others.
        let (offset, opaque) = match access.read {
            None => (accesses::of_roots(&stage.place_in(layout), stage, symbolic), Vec::new()),
            Some(read) => {
                let spot = holds.spot_in(layout, &read.indices);
                (spot.offset, spot.opaque)
            }
        };
        let offset = facts.normal(&offset);
        let coordinates: Vec<Expr> = match access.read {
            None => Vec::new(),
            Some(read) => holds.coordinates.iter().map(|c| facts.normal(&c.at(&read.indices))).collect(),
        };
        let stand_in = |v: &Var| opaque.iter().any(|o| o.0 == *v);
        let operands = opaque.iter().flat_map(|(_, a, b)| [a, b]);
        let named = operands.chain([&offset]).chain(&coordinates);
        let variables: Vec<Var> = named.flat_map(Expr::vars).filter(|v| !stand_in(v)).collect();
        let known = |e: &Expr| !e.is_unknown();
        if !(variables.iter().all(|v| *v as usize >= self.dims) && known(&offset) && coordinates.iter().all(known)) {
            return None;
        }
        let (columns, swizzle) = (layout.columns, XorSwizzle::new(layout.swizzle, bytes));
        let offset = columns.map_or_else(|| offset.clone(), |columns| columns.spread(&offset));
        let mut conditions = Vec::with_capacity(2 * coordinates.len());
        for (coordinate, along) in coordinates.into_iter().zip(&holds.coordinates) {
            let last = Expr::constant(along.most.as_constant()? - 1);
            conditions.extend([last.sub(&coordinate), coordinate]);
        }
        // What has exclusive ors is no sum of what the walk knows.
        let by_values = !opaque.is_empty();
        let sums: Vec<Expr> = (!by_values).then(|| offset.clone()).into_iter().collect();
        let byte = |sums: &[Option<i128>], values: &[i128], thread: i128| {
            let offset = if by_values { evaluate(&offset, &opaque, values) } else { sums[0] };
            let at = offset? + columns.map_or(0, |columns| columns.start(thread));
            let at = swizzle.of(&mut Numbers(&[]), &at);
            u64::try_from(at * i128::from(bytes)).ok()
        };
        // Swizzles repeat themselves after eight rows of banks.
        let period = (!by_values).then(|| i128::from(8 * banks::ROW / bytes));
        let (inner, in_terms) = access.read.map_or((&[][..], false), |r| (&r.inner, r.in_terms));
        let shape = Shape { inner, in_terms, is_write: access.read.is_none(), run, bytes };
        let mut place = Where { variables, conditions, sums, by_values, period, byte: &byte };
        let degree = walk.degree(shape, &place, points);
        // Without a period every iteration is walked through.
        place.period = None;
        debug_assert!(!cfg!(test) || degree == walk.degree(shape, &place, points));
        Some((degree?, run))
    }

    /// Lanes of a vector that an access takes together.
    fn run(&self, holds: &Stage, layout: &BufferLayout, access: Accessing<'_>, vector: Option<&Vector>) -> u32 {
        let Analysed { stage, symbolic, accesses, .. } = &self.stages[access.by];
        let bytes = access.element.bytes();
        let Some(vector) = vector else { return 1 };
        match access.read {
            None if stage.fetches => {
                let read = accesses.iter().find(|a| !a.is_write);
                read.and_then(|read| fetch::unit_in(stage, layout, Some(vector), symbolic, read).ok()).unwrap_or(1)
            }
            None => vector::written(stage, layout, vector, symbolic, bytes),
            Some(read) if read.is_guarded => 1,
            Some(read) => vector::read((holds, layout), &read.indices, (vector, symbolic, &stage.facts), bytes),
        }
    }

    /// A layout of a stage's buffer with which its accesses take fewer cycles than they do, with the same vectors: the
    /// first one with which none waits; else the first one with which none is slow; else that of the fewest cycles.
    fn remedy(&self, held: usize, now: &[Counted], count: &dyn Fn(&BufferLayout, usize) -> Vec<Counted>) -> Remedy {
        let stage = &self.stages[held].stage;
        let runs = |found: &[Counted]| found.iter().map(|d| d.as_ref().map(|d| d.1)).collect::<Vec<_>>();
        let cycles = |found: &[Counted]| found.iter().flatten().map(|d| d.0.sum.taken).sum::<u64>();
        let least = |found: &[Counted]| found.iter().flatten().map(|d| d.0.sum.least).sum::<u64>();
        let is_slow = |found: &[Counted]| found.iter().flatten().any(|d| d.0.is_slow());
        // What is read as several boxes has several buffers with one layout.
        let named = |a: &schedule::LaidOut| {
            let name = &stage.domain.axes[a.axis].name;
            let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_word && stage.domain.named(name) == Some(a.axis)
        };
        if stage.layout.columns.is_some() || stage.reads.is_some() || !stage.layout.axes.iter().all(named) {
            return Remedy::None;
        }
        let before = cycles(&count(&stage.layout, TRIED_POINTS));
        let mut best: Option<(Left, BufferLayout)> = None;
        for layout in self.candidates(stage, now) {
            let found = count(&layout, TRIED_POINTS);
            if runs(&found) != runs(now) || cycles(&found) >= before {
                continue;
            }
            // Few points may look better than all.
            let all = count(&layout, POINTS);
            let left = Left { taken: cycles(&all), now: cycles(now), is_slow: is_slow(&all) };
            if left.taken == least(&all) {
                return propose(stage, &layout, None);
            }
            // Of those with which none is slow, the first one stays.
            let is_better =
                |(other, _): &(Left, BufferLayout)| other.is_slow && (!left.is_slow || left.taken < other.taken);
            if left.taken < left.now && best.as_ref().is_none_or(is_better) {
                best = Some((left, layout));
            }
        }
        best.map_or(Remedy::None, |(left, layout)| propose(stage, &layout, Some(left)))
    }

    /// Layouts to try: more padding after one axis, the least first; then swizzles; then padding where the last two
    /// axes have changed places.
    fn candidates(&self, stage: &Stage, now: &[Counted]) -> Vec<BufferLayout> {
        let algorithm = &stage.program.algorithm;
        let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
        let bytes = components.iter().map(|c| algorithm.types[c.value as usize].bytes()).max().unwrap_or(4);
        let step = now.iter().flatten().map(|d| i128::from(d.1)).max().unwrap_or(1).max(i128::from(4 / bytes.min(4)));
        let paddings = |layout: &BufferLayout| -> Vec<BufferLayout> {
            let steps = (1..).map(|n| n * step).take_while(|more| more * i128::from(bytes) <= PADDING);
            steps.flat_map(|more| (1..layout.axes.len()).rev().map(move |at| layout.padded(at, more))).collect()
        };
        // Padding in the place of a swizzle, or beside none.
        let mut found = paddings(&BufferLayout { swizzle: Swizzle::None, ..stage.layout.clone() });
        let spans = [Swizzle::B128, Swizzle::B64, Swizzle::B32].into_iter().filter(|s| *s != stage.layout.swizzle);
        found.extend(spans.map(|swizzle| BufferLayout { swizzle, ..stage.layout.clone() }));
        if let Some(turned) = stage.layout.turned() {
            found.extend(paddings(&turned));
        }
        found.retain(|layout| self.fits(stage, layout));
        found
    }

    /// Whether all buffers together fit with another layout of one stage, as if none shared its memory.
    fn fits(&self, changed: &Stage, layout: &BufferLayout) -> bool {
        let of_stage = |stage: &Stage| {
            let algorithm = &stage.program.algorithm;
            let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
            let layout = if std::ptr::eq(stage, changed) { layout } else { &stage.layout };
            let instances = stage.instances();
            let slots =
                components.iter().map(|c| layout.slot_bytes(algorithm.types[c.value as usize].bytes(), instances));
            slots.sum::<i128>().saturating_mul(i128::from(stage.ring))
        };
        let stages = self.stages.iter().map(|a| &a.stage).filter(|s| s.place == Place::Shared);
        let copies = self.stages.iter().flat_map(|a| &a.staged).map(Staged::buffer_bytes);
        stages.map(of_stage).chain(copies).fold(0, i128::saturating_add) <= i128::from(SHARED_BYTES)
    }

    fn warning(
        &self,
        by: usize,
        buffer: &str,
        (is_write, access): (bool, Span),
        degree: &Degree,
        remedy: Remedy,
        span: Span,
    ) -> BankConflicts {
        let Cycles { taken, least } = shown(degree);
        BankConflicts {
            buffer: buffer.to_owned(),
            by: self.stages[by].stage.name.clone(),
            cycles: taken,
            least,
            worst: (degree.worst.taken > taken).then_some(degree.worst.taken),
            lanes: degree.lanes.clone(),
            is_write,
            remedy,
            access,
            span,
        }
    }
}

fn propose(stage: &Stage, layout: &BufferLayout, left: Option<Left>) -> Remedy {
    Remedy::Layout { text: layout.display(&stage.domain), replace: stage.layout.written, left }
}

/// The cycles that are shown of a slow access: the first, unless only others are slow.
fn shown(degree: &Degree) -> Cycles {
    if degree.first.is_slow() { degree.first } else { degree.worst }
}

/// The value of an expression with exclusive ors.
fn evaluate(e: &Expr, opaque: &[Xor], values: &[i128]) -> Option<i128> {
    let mut known: Vec<(Var, i128)> = Vec::with_capacity(opaque.len());
    let value = |e: &Expr, known: &[(Var, i128)]| {
        let of = |v: Var| known.iter().find(|k| k.0 == v).map(|k| Expr::constant(k.1));
        e.substitute(&of).eval(values)
    };
    for (variable, a, b) in opaque {
        let both = value(a, &known)? ^ value(b, &known)?;
        known.push((*variable, both));
    }
    value(e, &known)
}
