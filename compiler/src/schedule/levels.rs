//! Levels: what one kind of unit is given, and the digits of a thread's number that this makes.
//!
//! Which threads run which iteration is decided by the sets of `collectives`; here is the closed form of those nests,
//! as a [`layout`](crate::layout).

use std::rc::Rc;

use super::ownership::Holder;
use crate::collectives::{
    self, Bind, LoopFault, Nest, NoClosedForm, Shape, Size, ThreadSet, Tiling, UnitFault, UnitProblem,
};
use crate::domain::{AxisId, Binding, Part, PartOf, Unit, WARP, WARPGROUP};
use crate::layout::Digit;
use crate::program::Program;
use crate::source::ast;

/// What one kind of unit is given.
#[derive(Clone, Debug)]
pub struct Level {
    /// What its leaves are bound to.
    pub binding: Binding,
    /// The unit that runs an iteration, or of which a part does.
    pub unit: Unit,
    /// What the units are called.
    pub name: String,
    /// Its leaves, outermost first, each with its extent or a bound of it.
    pub leaves: Vec<(AxisId, i128)>,
    /// The number of the unit that runs the first iteration.
    pub low: i128,
    /// Threads from one iteration to the next; 0 if there is one iteration, which every thread around runs.
    pub stride: i128,
}

impl Level {
    /// A level without leaves.
    pub fn new(program: &Program, binding: Binding, unit: Unit) -> Self {
        let part = part(binding);
        let size = match part.of {
            PartOf::Warpgroup => WARPGROUP,
            PartOf::Warp => WARP,
            PartOf::Thread | PartOf::Named(_) => 1,
        };
        let stride = size.saturating_mul(i128::from(part.scale));
        let low = part.range.map_or(0, |range| i128::from(range.0));
        let name = unit_name(program, binding);
        Self { binding, unit, name, leaves: Vec::new(), low, stride }
    }

    /// Units that have iterations.
    pub fn count(&self) -> i128 {
        self.leaves.iter().fold(1, |count: i128, leaf| count.saturating_mul(leaf.1))
    }

    /// Threads of a block that it needs, if they are known without the block.
    pub fn needed(&self) -> i128 {
        let range = part(self.binding).range.map_or(0, |range| i128::from(range.1));
        self.low.saturating_add(self.count()).max(range).saturating_mul(self.stride)
    }

    /// The threads of which the block must have whole groups.
    pub fn whole(&self) -> i128 {
        match part(self.binding).of {
            PartOf::Warpgroup => WARPGROUP,
            PartOf::Warp => WARP,
            PartOf::Thread | PartOf::Named(_) => 1,
        }
    }

    /// Whether it is one of the three kinds, all of them from the first one on.
    pub const fn is_plain(&self) -> bool {
        !matches!(self.binding, Binding::Part(_))
    }

    /// Whether it is given units of the kernel's own.
    pub const fn is_named(&self) -> bool {
        matches!(self.binding, Binding::Part(Part { of: PartOf::Named(_), .. }))
    }

    /// The loop of the model, of the units that have iterations: of a range, `all` of it.
    fn bind(&self, program: &Program, all: bool) -> Option<Bind> {
        let unit = collective(program, self.binding)?;
        let count = u64::try_from(self.count()).unwrap_or(u64::MAX).max(1);
        Some(match part(self.binding).range {
            Some((low, high)) if all => Bind::each_of(low, high, unit),
            Some((low, _)) => Bind::each_of(low, low.saturating_add(count), unit),
            None => Bind::each(count, unit),
        })
    }
}

/// The unit of a binding, as a part.
fn part(binding: Binding) -> Part {
    let of = match binding {
        Binding::Part(part) => return part,
        Binding::Warpgroup => PartOf::Warpgroup,
        Binding::Warp => PartOf::Warp,
        _ => PartOf::Thread,
    };
    Part { of, scale: 1, range: None }
}

/// What the units are called that a binding gives iterations to: `warp`, `8 thread`, `warp 2..5`.
pub fn unit_name(program: &Program, binding: Binding) -> String {
    let Part { of, scale, range } = part(binding);
    let of = match of {
        PartOf::Warpgroup => "warpgroup",
        PartOf::Warp => "warp",
        PartOf::Thread => "thread",
        PartOf::Named(at) => program.units.get(usize::from(at)).map_or("", |unit| &unit.name.text),
    };
    let scale = if scale == 1 { String::new() } else { format!("{scale} ") };
    let range = range.map_or_else(String::new, |(low, high)| format!(" {low}..{high}"));
    format!("{scale}{of}{range}")
}

/// Of a range of units, how many they are, and what of, as it is written.
pub(super) fn range(program: &Program, binding: Binding) -> Option<(i128, String)> {
    let Part { of, scale, range } = part(binding);
    let (low, high) = range?;
    Some((i128::from(high) - i128::from(low), unit_name(program, Binding::Part(Part { of, scale, range: None }))))
}

/// The unit of the model.
fn collective(program: &Program, binding: Binding) -> Option<collectives::Unit> {
    let Part { of, scale, .. } = part(binding);
    let unit = match of {
        PartOf::Warpgroup => collectives::Unit::warpgroup(),
        PartOf::Warp => collectives::Unit::warp(),
        PartOf::Thread => collectives::Unit::thread(),
        PartOf::Named(at) => defined(program.units.get(usize::from(at))?)?,
    };
    unit.scaled(scale).ok()
}

/// A unit that a kernel defines; none if an entry is not made of numbers, `block` and `cluster`, or the lists differ in
/// length.
pub(super) fn defined(unit: &ast::Unit) -> Option<collectives::Unit> {
    let domain: Option<Vec<Size>> = unit.domain.iter().map(entry).collect();
    let shape: Option<Vec<Option<Size>>> = unit.shape.iter().map(|e| entry(e).map(Some)).collect();
    collectives::Unit::raw(&unit.name.text, &domain?, &shape?).ok()
}

/// A launch that has a unit, as near to one with clusters of so many blocks as there is: other threads, else other
/// clusters too; none if no launch has it.
pub(super) fn launch_with(program: &Program, binding: Binding, threads: i128, cluster: u32) -> Option<(u64, u64)> {
    let unit = collective(program, binding)?;
    let has = |(cluster, threads): &(u64, u64)| {
        Shape::new(*cluster, *threads).is_ok_and(|shape| unit.typed(shape, collectives::Typing::Agnostic).is_ok())
    };
    let clusters = (0..=collectives::CLUSTER_LIMIT.ilog2()).map(|n| 1 << n);
    let warps = 1..=collectives::BLOCK_LIMIT / collectives::WARP;
    let all = clusters.flat_map(|c| warps.clone().map(move |w| (c, w * collectives::WARP)));
    let mut found: Vec<(u64, u64)> = all.filter(has).collect();
    let far = |a: u64, b: i128| i128::from(a).abs_diff(b);
    found.sort_by_key(|(c, t)| (far(*c, cluster.into()), far(*t, threads), *t));
    found.first().copied()
}

/// An entry of a unit: products and quotients.
fn entry(e: &ast::Expr) -> Option<Size> {
    match &e.kind {
        ast::ExprKind::Int(literal) if literal.suffix.is_none() => Some(Size::of(literal.value)),
        ast::ExprKind::Name(name) if name.text == "block" => Some(Size::BLOCK),
        ast::ExprKind::Name(name) if name.text == "cluster" => Some(Size::CLUSTER),
        ast::ExprKind::Binary(a, op, b) => match op.value {
            ast::BinaryOp::Mul => entry(a)?.times(entry(b)?),
            ast::BinaryOp::Div => entry(a)?.by(entry(b)?),
            _ => None,
        },
        _ => None,
    }
}

/// A level that has no place in a block.
#[derive(Clone, Debug)]
pub(super) struct Misplaced {
    /// Its position.
    pub level: usize,
    /// Why not.
    pub misfit: Misfit,
    /// Who runs what is around it, the first time.
    pub around: ThreadSet,
    /// The innermost level around without which it would have a place.
    pub narrowed_by: Option<usize>,
}

/// Why a level has no place in a block.
#[derive(Clone, Debug)]
pub(super) enum Misfit {
    /// It takes more units than there are.
    TooMany { count: i128, room: i128 },
    /// It cannot be taken from the threads around.
    Loop(LoopFault),
    /// Its threads are known, and no arithmetic of ours tells them apart.
    NoForm,
}

/// Who runs the innermost iterations.
pub(super) struct Finest {
    /// Threads of one of them.
    pub threads: i128,
    /// Whether these are neighbours.
    pub is_run: bool,
}

/// The places inside loops that were looked at: most stages of a kernel have the same ones around them.
#[derive(Default)]
pub(super) struct Nests(Vec<(Shape, Vec<Bind>, Rc<Nest>)>);

impl Nests {
    /// That of a loop inside of others.
    fn get(&self, shape: Shape, around: &[Bind], own: &Bind) -> Option<Rc<Nest>> {
        let is_it = |known: &&(Shape, Vec<Bind>, Rc<Nest>)| {
            known.0 == shape && known.1.split_last().is_some_and(|(last, outer)| last == own && outer == around)
        };
        self.0.iter().find(is_it).map(|known| known.2.clone())
    }
}

/// Gives levels their numbers in a block, or in the unit of so many threads that owns the instance; the launch has
/// clusters of so many blocks.
pub(super) fn place(
    program: &Program,
    levels: &mut [Level],
    (threads, cluster): (i128, u32),
    nests: &mut Nests,
) -> Result<Finest, Box<Misplaced>> {
    // Units of the kernel's own may be made of blocks: each block runs its own iterations of the loop around all
    // levels. Of others, every block has the same.
    let has_own = levels.iter().any(Level::is_named);
    let blocks = if has_own { u64::from(cluster) } else { 1 };
    let shape = u64::try_from(threads).ok().and_then(|threads| Shape::new(blocks, threads).ok());
    let Some(shape) = shape else { return Ok(Finest { threads, is_run: true }) };
    let mut binds: Vec<Bind> = Vec::new();
    if blocks > 1 {
        binds.push(Bind::each(blocks, collectives::Unit::cta()));
    }
    let outside = binds.len();
    let mut nest = Rc::new(Nest::of(shape, &binds).unwrap_or_else(|_| Nest::top(shape)));
    for (at, level) in levels.iter().enumerate() {
        let misplaced = |misfit, around, narrowed_by: Option<usize>| {
            let narrowed_by = narrowed_by.and_then(|step| step.checked_sub(outside));
            Box::new(Misplaced { level: at, misfit, around, narrowed_by })
        };
        let around = || nest.first().clone();
        let (Some(own), Some(all)) = (level.bind(program, false), level.bind(program, true)) else {
            return Err(misplaced(Misfit::NoForm, around(), None));
        };
        let count = level.count();
        if let Some(room) = part(level.binding).range.map(|(low, high)| i128::from(high) - i128::from(low))
            && count > room
        {
            return Err(misplaced(Misfit::TooMany { count, room }, around(), None));
        }
        // What refuses it, all loops together tell.
        let inside = |bind: &Bind| {
            nest.inside(bind).or_else(|_| collectives::place(shape, &[&binds[..], std::slice::from_ref(bind)].concat()))
        };
        let found = match nests.get(shape, &binds, &own) {
            Some(known) if own == all => Ok(known),
            _ if own == all => inside(&own).map(Rc::new),
            _ => inside(&all).and_then(|_| inside(&own)).map(Rc::new),
        };
        nest = match found {
            Ok(nest) => nest,
            Err(refused) => {
                let misfit = match refused.fault {
                    LoopFault::TooMany { asked, most } => Misfit::TooMany { count: asked.into(), room: most.into() },
                    // One unit is around, and inside of it there is no other one.
                    LoopFault::Already { asked, .. } if !level.is_named() => {
                        Misfit::TooMany { count: asked.into(), room: 1 }
                    }
                    LoopFault::Unit(UnitFault { problem: UnitProblem::Box { .. }, .. }) if !level.is_named() => {
                        Misfit::TooMany { count, room: 0 }
                    }
                    fault => Misfit::Loop(fault),
                };
                return Err(misplaced(misfit, refused.threads, refused.narrowed_by));
            }
        };
        let is_new = nests.get(shape, &binds, &own).is_none();
        binds.push(own);
        if is_new {
            nests.0.push((shape, binds.clone(), nest.clone()));
        }
    }
    let finest = nest.first();
    let finest = Finest {
        threads: finest.count().into(),
        is_run: *finest == ThreadSet::run(finest.first().unwrap_or(0), finest.count()),
    };
    if has_own {
        number_own(levels, &nest, (shape, &binds), outside)?;
    }
    Ok(finest)
}

/// The digits of levels, outermost first.
pub(super) fn digits(levels: &[Level]) -> Vec<Digit<AxisId, Holder>> {
    let mut all = Vec::new();
    for level in levels {
        let mut stride = level.stride;
        let mut own: Vec<Digit<AxisId, Holder>> = Vec::new();
        for (leaf, extent) in level.leaves.iter().rev() {
            own.push(Digit { source: Some(*leaf), unit: 1, extent: *extent, target: Holder::Thread, stride, low: 0 });
            stride = stride.saturating_mul((*extent).max(1));
        }
        if let Some(outermost) = own.last_mut() {
            outermost.low = level.low.saturating_mul(level.stride);
        }
        all.extend(own.into_iter().rev());
    }
    all
}

/// Gives units their distances where some are the kernel's own, by the closed form of the nest. The first `outside`
/// loops of it are around all levels. Threads that these units leave alike are refused: each digit is one of a level.
fn number_own(
    levels: &mut [Level],
    nest: &Nest,
    (shape, binds): (Shape, &[Bind]),
    outside: usize,
) -> Result<(), Box<Misplaced>> {
    let tiling = Tiling::of(nest).map_err(|no| {
        let (step, misfit) = match no {
            NoClosedForm::Inexact(_, at) => (at, Misfit::NoForm),
            NoClosedForm::Loop(at, fault) => (at, Misfit::Loop(fault)),
        };
        let around = Nest::of(shape, &binds[..step]).map(|nest| nest.first().clone()).unwrap_or_default();
        Box::new(Misplaced { level: step.saturating_sub(outside), misfit, around, narrowed_by: None })
    })?;
    for digit in tiling.layout().digits() {
        // Which block it is follows from no number of a thread.
        let Some(at) = digit.source.and_then(|step| step.checked_sub(outside)) else { continue };
        let level = &mut levels[at];
        level.stride = digit.stride;
        if digit.stride == 0 {
            level.low = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Holder, Level, Nest, Nests, Shape, digits, place};
    use crate::diag::Diagnostics;
    use crate::domain::{AxisId, Binding, Numbers, Part, PartOf, Unit};
    use crate::layout::Layout;
    use crate::program::{Program, build};
    use crate::source::TokenBuffer;
    use crate::syntax::parse;

    /// The numbers of all levels for one thread, as they are emitted; none for an idle one.
    fn numbers(layout: &Layout<AxisId, Holder>, thread: i128) -> Option<Vec<u64>> {
        let told = layout.digits().iter().enumerate().filter(|(_, digit)| digit.source.is_some());
        told.map(|(n, digit)| {
            let value = layout.path(n).at(thread);
            let has_work = !layout.is_partial(n) || (0..digit.extent).contains(&value);
            has_work.then(|| u64::try_from(value).expect("a value"))
        })
        .collect()
    }

    fn program() -> Program {
        let units = "unit column { domain: [block / 32, 32], box: [block / 32, 1] }
            unit every { domain: [4], box: [1] } unit half { domain: [16], box: [16] }";
        let source = format!("kernel K(x: f32[N]) -> (y: f32[N]) {{ y[i] = x[i]; {units} }}");
        let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
        let mut found = Diagnostics::new();
        build(&parse(&tokens).0.kernels[0], &mut found).expect("a program")
    }

    #[test]
    fn arithmetic_has_the_sets_of_the_model() {
        let program = program();
        let part = |of, scale, range| Binding::Part(Part { of, scale, range });
        let (warps, threads) = (Binding::Warp, Binding::Thread);
        let five = part(PartOf::Thread, 5, None);
        let own = |at, range| part(PartOf::Named(at), 1, range);
        let range = |low, high| part(PartOf::Warp, 1, Some((low, high)));
        let cases: &[(i128, &[(Binding, i128)])] = &[
            (256, &[(Binding::Warpgroup, 2), (warps, 4), (threads, 32)]),
            (192, &[(Binding::Warpgroup, 1), (warps, 3), (threads, 20)]),
            (256, &[(warps, 5), (five, 6), (threads, 4)]),
            (96, &[(five, 19), (threads, 5)]),
            (256, &[(range(2, 5), 3), (threads, 32)]),
            (256, &[(range(2, 5), 2), (threads, 31)]),
            (256, &[(Binding::Warpgroup, 2), (range(1, 3), 2), (threads, 7)]),
            (256, &[(part(PartOf::Warp, 2, Some((1, 3))), 2), (warps, 2)]),
            (32, &[(warps, 1), (threads, 32)]),
            (256, &[(own(0, None), 32), (warps, 8)]),
            (256, &[(own(0, Some((3, 9))), 5), (range(1, 6), 5)]),
            (128, &[(own(1, None), 4), (part(PartOf::Thread, 4, None), 30)]),
            (128, &[(own(1, Some((1, 4))), 3), (warps, 4), (part(PartOf::Thread, 4, None), 8)]),
            (128, &[(own(2, None), 1), (part(PartOf::Thread, 16, None), 8), (threads, 16)]),
        ];
        for (block, list) in cases {
            let level = |(at, (binding, count)): (usize, &(Binding, i128))| {
                let mut level = Level::new(&program, *binding, Unit::Thread);
                level.leaves.push((at, *count));
                level
            };
            let mut levels: Vec<Level> = list.iter().enumerate().map(level).collect();
            let binds: Vec<_> = levels.iter().map(|l| l.bind(&program, false).expect("a unit")).collect();
            let finest = place(&program, &mut levels, (*block, 1), &mut Nests::default())
                .unwrap_or_else(|no| panic!("{list:?}: {no:?}"));
            let nest = Nest::of(Shape::new(1, *block as u64).expect("a block"), &binds).expect("a nest");
            assert_eq!(finest.threads, i128::from(nest.first().count()));
            let layout = Layout::new(digits(&levels), vec![(Holder::Thread, *block)]);
            assert!(layout.is_one_to_one(), "{list:?}");
            for thread in 0..*block {
                let runs = nest.instances().iter().find(|i| i.threads.contains(thread as u64));
                assert_eq!(numbers(&layout, thread), runs.map(|i| i.values.clone()), "{list:?}: thread {thread}");
            }
            // Iterations are as far apart as said.
            for instance in nest.instances() {
                let value = |leaf: AxisId| i128::from(instance.values[leaf]);
                let first = layout.place(&mut Numbers(&[]), Holder::Thread, &value);
                assert_eq!(instance.threads.first(), u64::try_from(first).ok(), "{list:?}: {:?}", instance.values);
            }
        }
    }
}
