//! Sectors of global memory: how many each access of a warp touches, and what would touch fewer.
//!
//! **Property.** The sectors counted are those that the emulator counts, for the warps and iterations looked at.
//! **Formula.** The definition: the address of each lane's element, and the rule of sectors ([`sectors`]).
//! **Approximation.** Tensors start at a multiple of a sector. Sizes are large ones that the facts admit
//! ([`large`]): all alike, so that nothing is said of rows that start inside a sector. An index that is read from
//! memory is taken to be the same for all threads, if elements are neighbours along another one; else nothing is said.
//! The first warps stand for all of a block.

use std::borrow::Cow;
use std::cell::Cell;

use tilewright_kernel::info::{DimKind, ParameterKind};
use tilewright_kernel::sectors;

use super::count::{Shape, Walk, Where};
use crate::diag::Diagnostics;
use crate::diag::codes::{Gather, ScatteredAccess};
use crate::domain::{AxisId, AxisKind, Binding, Domain, Op, WARP};
use crate::extent::{Expr, Facts, Var};
use crate::memory::fetch;
use crate::plan::Analysed;
use crate::plan::roles::copies_around;
use crate::plan::staged::Way;
use crate::program::{Program, expressions};
use crate::schedule::accesses::{Access, Inner};
use crate::schedule::neighbours::{along, innermost, reorders, stems_from, written_ops};
use crate::schedule::vector::Class;
use crate::source::{Span, ast};

/// The size that dimensions have if nothing is known of them.
const SIZE: i128 = 4096;
/// Most accesses of warps that are looked at, for each access of the program.
const POINTS: usize = 4;
/// How many times the sectors that it needs an access touches before something is said of it. Every second element is
/// let pass: what one access leaves, another one takes most often.
const TIMES: u64 = 3;
/// Sectors that an access touches needlessly before something is said of it.
const NEEDLESS: u64 = 4;

/// Axes of inner reductions around an access that the first look at it knows, and variables that it has room for.
const INNER: usize = 4;
const VALUES: usize = 128;

/// Warns of accesses that touch a multiple of the sectors that they need.
pub fn find(program: &Program, facts: &Facts, analysed: &[Analysed], diags: &mut Diagnostics) {
    let Some(sizes) = large(program, facts) else { return };
    for at in 0..analysed.len() {
        let stage = Around { program, facts, sizes: &sizes, analysed, at };
        // What an instruction of tensor cores gives to each lane is not for the schedule to say.
        if stage.is_fragment() {
            continue;
        }
        let Some(walk) = Walk::with(analysed, at, facts.dims(), sizes.clone(), sectors::request) else { continue };
        let warp = walk.first_warp(INNER);
        // Most kernels have none, and that is seen soon.
        if !stage.accesses().any(|access| stage.may_be_slow(access, &warp)) {
            continue;
        }
        let found: Vec<Found<'_>> = stage.accesses().filter_map(|access| stage.count(&walk, access)).collect();
        let (slow, others): (Vec<Found<'_>>, Vec<Found<'_>>) = found.into_iter().partition(Found::is_slow);
        let Some((first, rest)) = slow.split_first() else { continue };
        let tensor = |access: &Access| program.parameters[usize::from(access.parameter)].name.to_string();
        // What is written once may be read in several places of the loops: it is told once.
        let mut also: Vec<(Span, String, u64)> = Vec::new();
        for f in rest.iter().filter(|f| f.access.span != first.access.span) {
            if also.iter().all(|(span, ..)| *span != f.access.span) {
                also.push((f.access.span, tensor(f.access), f.touched));
            }
        }
        diags.report(ScatteredAccess {
            stage: analysed[at].stage.name.clone(),
            tensor: tensor(first.access),
            is_write: first.access.is_write,
            sectors: (first.touched, first.least),
            apart: first.apart,
            by_data: first.access.offset.is_unknown(),
            sizes: (program.dims.iter().zip(&sizes))
                .filter(|(dim, _)| dim.kind == DimKind::Size)
                .map(|(dim, size)| (dim.name.to_string(), *size))
                .collect(),
            remedy: stage.remedy(&slow, &others),
            span: first.access.span,
            also,
        });
    }
}

/// Sizes that the facts admit, as large as `SIZE` where they can be; strides are those of tensors without gaps. None
/// if none were found.
pub fn large(program: &Program, facts: &Facts) -> Option<Vec<i128>> {
    let mut least = SIZE;
    while least > 0 {
        if let Some(sizes) = sized(program, facts, least)
            && let Ok(dims) = sizes.iter().map(|size| i64::try_from(*size)).collect::<Result<Vec<i64>, _>>()
            && facts.admits(&dims)
        {
            return Some(sizes);
        }
        least /= 2;
    }
    None
}

fn sized(program: &Program, facts: &Facts, least: i128) -> Option<Vec<i128>> {
    let mut sizes: Vec<Option<i128>> = Vec::new();
    for (v, dim) in program.dims.iter().enumerate() {
        let v = v as Var;
        let most = facts.upper_bound(&Expr::var(v)).unwrap_or(least);
        let size = match dim.kind {
            DimKind::Size => facts.from(v, least.min(most)).map_or(least.min(most), |found| found.0),
            DimKind::Stride => 0,
        };
        sizes.push((facts.solution(v as usize).is_none()).then_some(size));
    }
    let known: Vec<i128> = sizes.iter().map(|size| size.unwrap_or(0)).collect();
    for (v, size) in sizes.iter_mut().enumerate().filter(|(_, size)| size.is_none()) {
        *size = facts.solution(v).and_then(|e| e.eval(&known));
    }
    let mut sizes: Vec<i128> = sizes.into_iter().collect::<Option<_>>()?;
    for parameter in program.parameters.iter() {
        let ParameterKind::Tensor(tensor) = &parameter.kind else { continue };
        let Some(strides) = tensor.strides.as_deref() else { continue };
        let mut inside = 1_i128;
        for (stride, size) in strides.iter().zip(tensor.shape.iter()).rev() {
            let stride = Expr::from_size(stride);
            if let Some(v) = stride.as_var().filter(|v| program.dims[*v as usize].kind == DimKind::Stride) {
                sizes[v as usize] = facts.from(v, inside)?.0;
            }
            inside = inside.max(stride.eval(&sizes)?.checked_mul(Expr::from_size(size).eval(&sizes)?)?);
        }
    }
    Some(sizes)
}

/// A stage.
struct Around<'a> {
    program: &'a Program,
    facts: &'a Facts,
    sizes: &'a [i128],
    analysed: &'a [Analysed],
    at: usize,
}

/// An access with the sectors that it touches.
struct Found<'a> {
    access: &'a Access,
    touched: u64,
    least: u64,
    apart: Option<u64>,
    /// The axis of the algorithm along which elements are neighbours, as an axis of the stage's domain.
    along: Option<AxisId>,
}

impl Found<'_> {
    fn is_slow(&self) -> bool {
        is_slow(self.touched, self.least)
    }
}

fn is_slow(touched: u64, least: u64) -> bool {
    touched >= TIMES * least && touched - least >= NEEDLESS
}

impl<'a> Around<'a> {
    fn own(&self) -> &'a Analysed {
        &self.analysed[self.at]
    }

    /// The accesses that threads make themselves.
    fn accesses(&self) -> impl Iterator<Item = &'a Access> {
        let own = self.own();
        let copies = if own.stage.fetches { Vec::new() } else { copies_around(self.analysed, self.at) };
        own.accesses.iter().filter(move |access| match access.is_write {
            true => !own.staged.iter().any(|s| s.way == Way::Store && s.parameter == access.parameter),
            false => !copies.iter().any(|copy| copy.is_for(access.parameter, access.value)),
        })
    }

    /// Whether the lanes of the first warp, in the first iteration, touch more sectors than they need, as if each
    /// accessed one element: what does not is looked at no further.
    fn may_be_slow(&self, access: &Access, (warp, each): &(Vec<i128>, usize)) -> bool {
        let bytes = self.program.parameters[usize::from(access.parameter)].element.bytes();
        let variables = each - INNER;
        let is_known = |axis: &Inner| (variables..*each).contains(&(axis.var as usize));
        if !access.inner.iter().all(is_known) {
            return true;
        }
        let Some(place) = self.place(access) else { return false };
        let (mut starts, mut count) = ([0; WARP as usize], 0);
        let mut values = [0; VALUES];
        for lane in warp.chunks_exact(*each) {
            let Some(values) = values.get_mut(..*each) else { return true };
            values.copy_from_slice(lane);
            for axis in &access.inner {
                values[axis.var as usize] = axis.lower.eval(values).unwrap_or(0);
            }
            let Some(offset) = place.0.eval(values) else { return !place.0.is_unknown() };
            if let Ok(start) = u64::try_from(offset * i128::from(bytes)) {
                starts[count] = start;
                count += 1;
            }
        }
        let seems_slow = |starts: &[u64], bytes: u32| {
            let (touched, least) = sectors::scattered(starts, bytes.into());
            is_slow(touched, least)
        };
        // Lanes of a vector go together, where they do.
        seems_slow(&starts[..count], bytes)
            && self.run(access).is_none_or(|run| run == 1 || seems_slow(&starts[..count], run * bytes))
    }

    /// The offset and the indices of an access, with 0 for those that are read from memory; none if one of them is the
    /// last.
    fn place<'b>(&self, access: &'b Access) -> Option<(Cow<'b, Expr>, Cow<'b, [Expr]>)> {
        if !access.offset.is_unknown() {
            return Some((Cow::Borrowed(&access.offset), Cow::Borrowed(&access.indices)));
        }
        access.indices.last().filter(|last| !last.is_unknown())?;
        let known = |e: &Expr| if e.is_unknown() { Expr::constant(0) } else { e.clone() };
        let indices: Vec<Expr> = access.indices.iter().map(known).collect();
        let tensor = expressions::tensor(self.program, access.parameter)?;
        Some((Cow::Owned(expressions::offset(tensor, &indices, &self.own().stage.facts)), Cow::Owned(indices)))
    }

    /// Lanes of the stage's vector that an access takes together.
    fn run(&self, access: &Access) -> Option<u32> {
        let Analysed { stage, symbolic, vector, .. } = self.own();
        Some(match vector {
            Some(vector) if stage.fetches => {
                fetch::unit_in(stage, &stage.layout, Some(vector), symbolic, access).unwrap_or(1)
            }
            Some(vector) if vector.class(access, symbolic, &stage.facts) == Class::Vector => {
                u32::try_from(vector.lanes).ok()?
            }
            _ => 1,
        })
    }

    /// The sectors of an access; none where they depend on data.
    fn count(&self, walk: &Walk<'_>, access: &'a Access) -> Option<Found<'a>> {
        let Analysed { stage, .. } = self.own();
        let dims = self.facts.dims();
        let parameter = &self.program.parameters[usize::from(access.parameter)];
        let ParameterKind::Tensor(tensor) = &parameter.kind else { return None };
        let run = self.run(access)?;
        let inner: Vec<Inner> = (access.inner.iter())
            .map(|axis| Inner { lower: walk.sized(&axis.lower), upper: walk.sized(&axis.upper), ..axis.clone() })
            .collect();
        let (offset, indices) = self.place(access)?;
        let mut sums = vec![walk.sized(&stage.facts.normal(&offset))];
        let sides = indices.iter().zip(tensor.shape.iter());
        let most: Vec<i128> =
            tensor.shape.iter().map(|size| Expr::from_size(size).eval(self.sizes)).collect::<Option<_>>()?;
        sums.extend(sides.map(|(index, _)| walk.sized(&stage.facts.normal(index))));
        let own_inner = |v: Var| inner.iter().any(|axis| axis.var == v);
        if sums.iter().any(|e| e.is_unknown() || e.vars().iter().any(|v| (*v as usize) < dims && !own_inner(*v))) {
            return None;
        }
        let bytes = parameter.element.bytes();
        // The addresses of the first two threads, in the first iteration in which both access an element.
        let first = [const { Cell::new(None) }; 2];
        let byte = |sums: &[Option<i128>], _: &[i128], thread: i128| {
            let is_inside = |(index, most): (&Option<i128>, &i128)| index.is_some_and(|i| (0..*most).contains(&i));
            let inside = sums[1..].iter().zip(&most).all(is_inside);
            let at = sums[0].filter(|_| inside).and_then(|offset| u64::try_from(offset * i128::from(bytes)).ok());
            if let Some(of) = usize::try_from(thread).ok().and_then(|thread| first.get(thread))
                && first.iter().any(|first| first.get().is_none())
            {
                of.set(at);
            }
            at
        };
        let variables = sums.iter().flat_map(Expr::vars).collect();
        let shape = Shape { inner: &inner, in_terms: access.in_terms, is_write: access.is_write, run, bytes };
        let degree = walk.degree(
            shape,
            &Where { variables, conditions: Vec::new(), sums, by_values: false, period: None, byte: &byte },
            POINTS,
        )?;
        let [a, b] = first.map(|first: Cell<Option<u64>>| first.get());
        let apart = a.zip(b).map(|(a, b)| b.abs_diff(a));
        let (touched, least) = (degree.first.taken, degree.first.least);
        Some(Found { access, touched, least, apart, along: along(&self.own().stage, &self.own().symbolic, access) })
    }

    fn is_fragment(&self) -> bool {
        let is = |op: &ast::Op| matches!(op.kind, ast::OpKind::Fragment { .. } | ast::OpKind::Mma { .. });
        written_ops(self.program, &self.own().stage).iter().any(is)
    }

    /// What makes all slow accesses touch fewer sectors.
    fn remedy(&self, slow: &[Found<'_>], others: &[Found<'_>]) -> Gather {
        let Analysed { stage, vector, .. } = self.own();
        let domain = &stage.domain;
        let threads = domain.leaves.iter().rev().copied().find(|leaf| domain.axes[*leaf].binding == Binding::Thread);
        let Some(along) = slow.first().and_then(|f| f.along).filter(|a| slow.iter().all(|f| f.along == Some(*a)))
        else {
            return Gather::None;
        };
        if let Some(vector) = vector.as_ref().filter(|vector| stems_from(domain, vector.axis, along)) {
            return Gather::ByLane(domain.axes[vector.axis].name.clone());
        }
        // What is fast and moves along another axis would be slow. Of a sum, what its terms read counts.
        let in_terms = slow.iter().any(|f| f.access.in_terms);
        let counts = |f: &&Found<'_>| f.apart != Some(0) && f.access.in_terms == in_terms;
        if others.iter().filter(counts).any(|f| f.along.is_some_and(|other| other != along)) {
            return Gather::Tile;
        }
        let ops = written_ops(self.program, stage);
        if let Some(threads) = threads {
            if let Some(splits) = innermost(domain, ops, threads, Some(along)) {
                return Gather::Innermost { splits, threads: domain.axes[threads].name.clone() };
            }
            if let Some((span, text)) = merged(domain, ops, threads, along) {
                return Gather::Merge(span, text);
            }
        }
        let (axis, of_terms) = (domain.axes[along].name.clone(), domain.axes[along].kind == AxisKind::Reduction);
        let few = domain.axes[along].extent.as_constant().filter(|extent| *extent < WARP && !of_terms);
        match (threads.is_some_and(|threads| stems_from(domain, threads, along)), few) {
            (true, _) => Gather::None,
            (false, Some(extent)) => Gather::Few { axis, extent },
            (false, None) if of_terms && !reorders(stage) => Gather::Tile,
            (false, None) => Gather::Along { axis, of_terms },
        }
    }
}

/// The merge that threads are made of with another last axis: the one along which elements are neighbours.
fn merged(domain: &Domain, ops: &[ast::Op], threads: AxisId, along: AxisId) -> Option<(Span, String)> {
    let made = |axis: AxisId| {
        domain.ops.iter().find_map(|(op, span)| match op {
            // Threads are the inner part: the fastest axis of what is split.
            Op::Split { input, inner, .. } if *inner == axis => Some((*input, None)),
            Op::Merge { inner, output, .. } if *output == axis => Some((*inner, Some(*span))),
            _ => None,
        })
    };
    let mut axis = threads;
    let span = loop {
        match made(axis)? {
            (_, Some(span)) => break span,
            (input, None) => axis = input,
        }
    };
    let ast::OpKind::Merge { axes, into } = &ops.iter().find(|op| op.span == span)?.kind else { return None };
    let name = &domain.axes[along].name;
    if axes.last().is_none_or(|last| last.text == *name) {
        return None;
    }
    let last = axes.iter().find(|axis| axis.text == *name)?;
    let others = axes.iter().filter(|axis| axis.text != *name).map(|axis| axis.text.as_str());
    let order: Vec<&str> = others.chain([last.text.as_str()]).collect();
    Some((span, format!("merge {} -> {}", order.join(", "), into.text)))
}
