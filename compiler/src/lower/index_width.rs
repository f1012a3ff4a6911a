//! When 32-bit index arithmetic is enough.
//!
//! Every kernel has an entry point with 32-bit indices, which are several times cheaper to divide, and, unless the
//! facts make it needless, one with 64-bit indices. The launcher takes the first whose conditions hold, so that offsets
//! beyond 32 bits are computed, never truncated. The conditions bound, by 2³¹ − 1: every size; every axis's largest
//! index, holes included; the dividends inside extents; every index expression; every element offset of a tensor, as
//! far as it is computed: the accelerator takes coordinates; every number that a schedule or a layout writes down; and
//! what the finished kernel needs beside ([`width`](super::width)). A condition that no admissible size keeps means
//! that there is no narrow entry point at all: its literals would not fit. Then staged copies belong to the wide one,
//! under conditions of their own ([`reachable`]).
//!
//! With 64 bits only what a kernel multiplies may be too large, such as `x[i * 4611686018427387904] or 0.0`: sizes are
//! at most [`MOST_SIZE`], which launches check, and elements of tensors have addresses. What is left becomes a
//! condition of the wide entry point ([`wide`]), and a launch that does not keep it has none. What is too long to bound
//! has no entry point at all.

use tilewright_kernel::Algorithm;
use tilewright_kernel::algorithm::{AxisId, Index, IndexId};
use tilewright_kernel::info::{DimKind, MOST_SIZE, ParameterKind};
use tilewright_kernel::size::{Constraint, Relation, Size};
use tilewright_sorted::SortedSet;

use crate::domain::{Domain, Op};
use crate::extent::{Atom, Expr, Facts, Family, Var, absolute, grows};
use crate::kernel_ir::{Access, Kernel, Memory, StatementKind, TensorPart};
use crate::plan::staged::MOST_ELEMENTS;
use crate::program::{Program, expressions};

use super::grid_reduce::{GridPartials, most_blocks};
use super::workspace;
use crate::plan::Analysed;

/// An element of a tensor is nearer to its first one than this: no address is larger.
const MOST_APART: i128 = 1 << 47;

/// Largest absolute value of an index that is read from memory, where it is computed with.
const MOST_READ: i128 = 1 << 32;

/// Largest value of a 32-bit index.
pub const LIMIT: i64 = i32::MAX as i64;

/// What must fit 32 bits before anything is lowered, but for [`offsets`]; what lowering makes of it is looked at after
/// it ([`width`](super::width)).
pub fn bounds(program: &Program, facts: &Facts, stages: &[Analysed]) -> Vec<Expr> {
    // Values read from memory are computed with in 64 bits and compared there.
    bounds_with(program, facts, stages, &Expr::constant(0))
}

/// What must fit 32 bits where a kernel computes offsets of elements of a parameter: with each parameter the offset of
/// its last element, and its strides that are numbers. The accelerator takes coordinates.
pub fn offsets(program: &Program, facts: &Facts) -> Vec<(u16, Vec<Expr>)> {
    let of = |(parameter, (last, strides)): (u16, (Expr, Vec<Expr>))| {
        let numbers = strides.into_iter().filter(|stride| stride.as_constant().is_some());
        (parameter, std::iter::once(last).chain(numbers).collect())
    };
    last_offsets(program, facts).map(of).collect()
}

/// The parameters of whose elements a kernel computes offsets.
pub fn addressed(kernel: &Kernel) -> SortedSet<u16> {
    let statements = kernel.regions.iter().flat_map(|region| &region.statements);
    let by_offset = statements.filter(|statement| match &statement.kind {
        StatementKind::BulkCopy(copy) => matches!(copy.part, TensorPart::Run { .. }),
        _ => true,
    });
    let accesses = by_offset.flat_map(|statement| statement.kind.effects().accesses());
    let parameter = |access: Access| match access.memory {
        Memory::Parameter(parameter) => Some(parameter),
        Memory::Buffer(_) | Memory::Workspace(_) => None,
    };
    accesses.filter_map(parameter).collect()
}

/// The same where what is read from memory is at most this.
fn bounds_with(program: &Program, facts: &Facts, stages: &[Analysed], read: &Expr) -> Vec<Expr> {
    let mut bounded: Vec<Expr> = Vec::new();
    for dim in 0..program.dims.len() {
        bounded.push(Expr::var(dim as u32));
    }
    let axes = axes_of_indices(&program.algorithm);
    // Index expressions whose bound without a stage's axes is there.
    let mut is_bounded = vec![false; axes.len()];
    for (at, analysed) in stages.iter().enumerate() {
        bounded.extend(workspace::bounds(stages, at, facts));
        let domain = &analysed.stage.domain;
        let padded = padded(domain);
        bounded.extend(padded.iter().cloned());
        for axis in &domain.axes {
            quotients(&facts.normal(&axis.extent), &mut bounded);
        }
        for (op, _) in &domain.ops {
            match op {
                Op::Split { factor, .. } => bounded.push(factor.clone()),
                Op::Resize { left, right, .. } => bounded.extend([left, right].map(|c| Expr::constant(c.abs()))),
                Op::Merge { .. } | Op::Swizzle { .. } => {}
            }
        }
        bounded.push(most_blocks(&analysed.stage, facts));
        bounded.extend(GridPartials::of(&analysed.stage, 1).map(|layout| layout.bound(&analysed.stage, facts)));
        // Index expressions are bounded by the extents of the axes that they are made of.
        for (id, axes) in axes.iter().enumerate() {
            let is_own = analysed.stage.indices.iter().any(|(own, _)| axes.contains(own));
            if is_own || !is_bounded[id] {
                bounded.push(magnitude(program, analysed, (&padded, read), id as IndexId));
                is_bounded[id] |= !is_own;
            }
        }
    }
    // To a stage inside others loops are dimensions: they stay below their extents.
    let outer = loops_as_extents(facts, stages);
    let around = |v: Var| outer.iter().find(|(w, _)| *w == v).map(|(_, extent)| extent.clone());
    let of_dims = |e: Expr| match e.vars().into_iter().any(|v| around(v).is_some()) {
        true => absolute(&e, &around),
        false => e,
    };
    // Stages have much in common.
    let mut known = SortedSet::new();
    bounded.into_iter().map(of_dims).filter(|e| known.insert(e.clone())).collect()
}

/// For each index expression the axes that it is made of, those that decide where these begin and end among them.
fn axes_of_indices(algorithm: &Algorithm) -> Vec<SortedSet<AxisId>> {
    fn collect(algorithm: &Algorithm, id: IndexId, found: &mut SortedSet<AxisId>) {
        let index = algorithm.indices[id as usize];
        if let Index::Axis(axis) = index
            && found.insert(axis)
        {
            let declared = &algorithm.axes[axis as usize];
            [declared.lower, declared.upper].into_iter().for_each(|end| collect(algorithm, end, found));
        }
        index.operands().for_each(|operand| collect(algorithm, operand, found));
    }
    let of = |id: usize| {
        let mut found = SortedSet::new();
        collect(algorithm, id as IndexId, &mut found);
        found
    };
    (0..algorithm.indices.len()).map(of).collect()
}

/// Offset of the last element of each tensor, and its strides.
fn last_offsets(program: &Program, facts: &Facts) -> impl Iterator<Item = (u16, (Expr, Vec<Expr>))> {
    (0..program.parameters.len()).filter_map(|parameter| {
        let parameter = parameter as u16;
        let tensor = expressions::tensor(program, parameter)?;
        let one = Expr::constant(1);
        let strides = expressions::strides(tensor, facts);
        let offset = tensor.shape.iter().zip(&strides).fold(Expr::constant(0), |sum, (size, stride)| {
            sum.add(&facts.normal(&Expr::from_size(size)).sub(&one).mul(stride))
        });
        Some((parameter, (offset, strides)))
    })
}

/// That index arithmetic stays within 64 bits, as far as that is not so for all sizes and all tensors that there are;
/// none if it never does.
pub fn wide(program: &Program, facts: &Facts, stages: &[Analysed]) -> Option<Vec<Constraint>> {
    let tensors = elements(program, facts);
    let (mut needed, most): (Vec<Expr>, _) = (Vec::new(), i128::from(i64::MAX));
    // A launch has fewer than 2³¹ blocks.
    let blocks = stages.iter().map(|analysed| most_blocks(&analysed.stage, facts));
    // What is addressed has an address.
    let known: Vec<Expr> = blocks.chain(last_offsets(program, facts).map(|(_, (last, _))| last)).collect();
    let offsets = offsets(program, facts).into_iter().flat_map(|(_, offsets)| offsets);
    let mut bounded = bounds_with(program, facts, stages, &Expr::constant(MOST_READ));
    for offset in offsets {
        if !bounded.contains(&offset) {
            bounded.push(offset);
        }
    }
    for e in bounded {
        if !e.is_unknown() && known.contains(&e) {
            continue;
        }
        let e = facts.normal(&e);
        if e.is_unknown() {
            return None; // too long to bound
        }
        let larger = without_quotients(&without_quotients(&e));
        if !larger.is_unknown() && largest(&larger, facts, &tensors) <= most {
            continue;
        }
        if facts.lower_bound(&e).is_some_and(|least| least > most) {
            return None;
        }
        if !needed.iter().any(|other| dominates(other, &e)) {
            needed.retain(|other| !dominates(&e, other));
            needed.push(e);
        }
    }
    needed.iter().map(|e| at_most(program, facts, e, i64::MAX)).collect()
}

/// Of each tensor whose elements have addresses of their own, products of dimensions that are no more than these.
fn elements(program: &Program, facts: &Facts) -> Vec<Vec<Atom>> {
    let tensors = program.parameters.iter().filter_map(|parameter| match &parameter.kind {
        // No two elements of an output share an address.
        ParameterKind::Tensor(tensor) if tensor.role.is_written() || tensor.strides.is_none() => Some(&tensor.shape),
        _ => None,
    });
    let all = tensors.map(|shape| {
        shape.iter().fold(Expr::constant(1), |all, extent| all.mul(&facts.normal(&Expr::from_size(extent))))
    });
    all.filter(grows).flat_map(|e| e.terms().iter().map(|term| term.atoms.to_vec()).collect::<Vec<_>>()).collect()
}

/// A bound of an expression for all sizes and strides up to [`MOST_SIZE`], and all tensors that there are.
fn largest(e: &Expr, facts: &Facts, tensors: &[Vec<Atom>]) -> i128 {
    let atom = |atom: &Atom| match atom {
        Atom::Var(v) => facts.upper_bound(&Expr::var(*v)).unwrap_or(i128::MAX).min(MOST_SIZE.into()),
        Atom::Quotient { of, .. } | Atom::Positive { of } => largest(of, facts, tensors),
    };
    // Part of a product of which no factor is 0.
    let is_part = |of: &[Atom], whole: &[Atom]| {
        let mut rest = whole.to_vec();
        let mut taken = of.iter().map(|a| rest.iter().position(|b| a == b).map(|at| rest.swap_remove(at)));
        let is_inside = taken.all(|found| found.is_some());
        is_inside && rest.iter().all(|a| facts.lower_bound(&Expr::from_atoms(std::slice::from_ref(a))) >= Some(1))
    };
    e.terms().iter().filter(|term| term.coefficient > 0).fold(0, |sum: i128, term| {
        let all = term.atoms.iter().map(atom).fold(1, i128::saturating_mul);
        let is_inside = tensors.iter().any(|whole| is_part(&term.atoms, whole));
        let product = if is_inside { all.min(MOST_APART) } else { all };
        sum.saturating_add(product.saturating_mul(term.coefficient))
    })
}

/// What must be at most 2³¹ − 1 beside what was `needed` before, as far as it is not already known; none if not all can
/// be.
pub fn needed(facts: &Facts, mut needed: Vec<Expr>, bounded: &[Expr]) -> Option<Vec<Expr>> {
    for e in bounded {
        let e = facts.normal(e);
        if e.is_unknown() {
            return None; // too large to bound: only the wide entry point
        }
        if facts.lower_bound(&e).is_some_and(|bound| bound > i128::from(LIMIT)) {
            return None;
        }
        let known = facts.upper_bound(&e).is_some_and(|bound| bound <= i128::from(LIMIT));
        let larger = without_quotients(&e);
        if known || needed.iter().any(|other| dominates(other, &e) || dominates(other, &larger)) {
            continue;
        }
        needed.retain(|other| !dominates(&e, other));
        needed.push(e);
    }
    Some(needed)
}

/// That what is needed is so; none if it cannot be written down.
pub fn conditions(program: &Program, facts: &Facts, needed: &[Expr]) -> Option<Vec<Constraint>> {
    needed.iter().map(|e| at_most(program, facts, e, LIMIT)).collect()
}

/// The loops that stages inside others see as dimensions, each with a bound over dimensions alone.
fn loops_as_extents(facts: &Facts, stages: &[Analysed]) -> Vec<(Var, Expr)> {
    // Two stages in different nests may number their loops alike: the largest of what a number stands for is a bound of
    // each.
    let mut outer: Vec<(Var, Expr)> = Vec::new();
    let parents = stages.iter().filter_map(|s| s.stage.attach.as_ref()).map(|attach| attach.stage);
    let parents: SortedSet<usize> = parents.collect();
    for analysed in parents.into_iter().filter_map(|p| stages.get(p)) {
        for (n, leaf) in analysed.symbolic.variables.iter().enumerate() {
            let var = (analysed.stage.facts.dims() + n) as Var;
            let extent = facts.normal(&leaf.extent);
            let extent = absolute(&extent, &|v| outer.iter().find(|(w, _)| *w == v).map(|(_, e)| e.clone()));
            match outer.iter_mut().find(|(w, _)| *w == var) {
                Some((_, known)) => *known = known.add(&extent),
                None => outer.push((var, extent)),
            }
        }
    }
    outer
}

/// That every dimension has elements, and every dimension of every staged copy's tensor: a tensor map has no other, and
/// what was proved of copies (runs inside their tensors, predicates that are waived, elements that stores leave alone)
/// was proved for such sizes. A start of a tile that wraps in 32 bits lies far outside the tensor either way.
pub fn filled(program: &Program, facts: &Facts, stages: &[Analysed]) -> Vec<Constraint> {
    let copies = || stages.iter().flat_map(|s| &s.staged);
    let mut sizes: Vec<Expr> = copies().flat_map(|staged| &staged.axes).map(|axis| axis.size.clone()).collect();
    let all = program.dims.iter().enumerate().filter(|(_, dim)| dim.kind == DimKind::Size);
    sizes.extend(all.map(|(d, _)| Expr::var(d as Var)));
    // Facts speak of sizes of at least 1; a launch may have others, unless a fact that is stated says so.
    let stated: Vec<Constraint> = program.facts.iter().map(|f| f.constraint.clone()).collect();
    let every: Vec<u16> = (0..program.dims.len()).filter_map(|d| u16::try_from(d).ok()).collect();
    let stated = Facts::with_zeros(&program.dims, &stated, &every).ok();
    let mut conditions: Vec<Constraint> = Vec::new();
    for size in sizes {
        let size = facts.normal(&size);
        if stated.as_ref().and_then(|stated| stated.lower_bound(&size)).is_some_and(|n| n >= 1) {
            continue;
        }
        let Some(lhs) = size.to_size(facts.dims()) else { continue };
        let text = format!("{} >= 1", size.show(&|v| program.dim_name(v as u16).to_owned()));
        let condition = Constraint { lhs, relation: Relation::Ge, rhs: Size::constant(1), text: text.into() };
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    conditions
}

/// That tensor maps exist and coordinates reach every element, where offsets of elements may need 64 bits: sizes and
/// strides of tensors that tiles are copied from or to, as far as what is `needed` to be at most 2³¹ − 1 does not say
/// that. Runs need nothing of the kind. None if one of them cannot be written down.
pub fn reachable(program: &Program, facts: &Facts, stages: &[Analysed], needed: &[Expr]) -> Option<Vec<Constraint>> {
    // The least bound of each expression.
    let mut bounded: Vec<(Expr, i64)> = Vec::new();
    for staged in stages.iter().flat_map(|s| &s.staged).filter(|s| s.has_map()) {
        let most_apart = i64::try_from(staged.most_apart()).unwrap_or(i64::MAX);
        let sizes = staged.axes.iter().map(|axis| (&axis.size, MOST_ELEMENTS));
        let strides = staged.axes.iter().map(|axis| (&axis.stride, most_apart));
        for (e, most) in sizes.chain(strides) {
            let e = facts.normal(e);
            let is_small = most >= LIMIT && needed.iter().any(|other| dominates(other, &e));
            if is_small || facts.upper_bound(&e).is_some_and(|bound| bound <= i128::from(most)) {
                continue;
            }
            match bounded.iter_mut().find(|(other, _)| *other == e) {
                Some((_, bound)) => *bound = most.min(*bound),
                None => bounded.push((e, most)),
            }
        }
    }
    let condition = |(e, most): &(Expr, i64)| at_most(program, facts, e, *most);
    bounded.iter().map(condition).collect()
}

/// e ≤ `most` as a condition, also where an axis without elements divides; none if it cannot be written down.
fn at_most(program: &Program, facts: &Facts, e: &Expr, most: i64) -> Option<Constraint> {
    let text = format!("{} <= {most}", e.show(&|v| program.dim_name(v as u16).to_owned()));
    let (lhs, rhs) = (workspace::with_divisors(&e.to_size(facts.dims())?), Size::constant(most));
    Some(Constraint { lhs, relation: Relation::Le, rhs, text: text.into() })
}

/// An expression that is not smaller: ⌊a / b⌋ ≤ a, and d·⌊a / d⌋ ≤ a, where nothing is negative.
fn without_quotients(e: &Expr) -> Expr {
    if e.is_unknown() {
        return Expr::unknown();
    }
    e.terms().iter().fold(Expr::constant(0), |sum, term| {
        let mut coefficient = term.coefficient;
        let product = term.atoms.iter().fold(Expr::constant(1), |product, atom| match atom {
            Atom::Quotient { of, by } if coefficient > 0 && grows(of) && grows(by) => {
                let divisor = by.as_constant().filter(|d| coefficient % d == 0);
                coefficient /= divisor.unwrap_or(1);
                product.mul(of)
            }
            atom => product.mul(&Expr::from_atoms(std::slice::from_ref(atom))),
        });
        sum.add(&product.scale(coefficient))
    })
}

/// Whether a ≥ b for all sizes, by comparing coefficients: sizes and strides are never negative.
fn dominates(a: &Expr, b: &Expr) -> bool {
    let difference = a.sub(b);
    !difference.is_unknown() && grows(&difference)
}

/// The dividends and divisors of quotients in an expression, and what it clips.
fn quotients(e: &Expr, list: &mut Vec<Expr>) {
    for atom in e.terms().iter().flat_map(|t| &t.atoms) {
        let parts = match atom {
            Atom::Var(_) => continue,
            Atom::Quotient { of, by } => vec![of, by],
            Atom::Positive { of } => vec![of],
        };
        for part in parts {
            list.push((**part).clone());
            quotients(part, list);
        }
    }
}

/// For each axis, a bound that its index stays below at every leaf point, holes included.
fn padded(domain: &Domain) -> Vec<Expr> {
    let mut padded: Vec<Expr> = domain.axes.iter().map(|a| a.extent.clone()).collect();
    for (op, _) in domain.ops.iter().rev() {
        match op {
            Op::Split { input, outer, inner, factor, .. } => {
                padded[*input] = padded[*outer].mul(factor).add(&padded[*inner]);
            }
            Op::Merge { outer, inner, output } => {
                // ⌊c / B⌋ ≤ c; tighter bounds need the structure of c. An axis that never has an element divides
                // nothing: its loop has no iteration.
                let (merged, by) = (&padded[*output], &domain.axes[*inner].extent);
                let quotient = if by.as_constant() == Some(0) { merged.clone() } else { merged.floor_div(by) };
                padded[*outer] = quotient.add(&Expr::constant(1));
            }
            Op::Resize { input, left, output, .. } => {
                padded[*input] = padded[*output].add(&Expr::constant(left.abs()));
            }
            Op::Swizzle { x, y, x_output, y_output } => {
                padded[*x] = padded[*x_output].clone();
                padded[*y] = padded[*y_output].clone();
            }
        }
    }
    padded
}

/// A bound of the absolute value of an index expression, for the axes that this stage gives values; others are bounded
/// by their own range.
fn magnitude(program: &Program, analysed: &Analysed, (padded, read): (&[Expr], &Expr), id: IndexId) -> Expr {
    let go = |i| magnitude(program, analysed, (padded, read), i);
    match program.algorithm.indices[id as usize] {
        Index::Literal(c) => Expr::constant(i128::from(c).abs()),
        Index::Dim(d) => Expr::var(u32::from(d)),
        Index::Axis(axis) => of_axis(program, analysed, (padded, read), axis),
        Index::Value(_) => read.clone(),
        Index::Add(a, b) | Index::Sub(a, b) | Index::Min(a, b) | Index::Max(a, b) => go(a).add(&go(b)),
        Index::Mul(a, b) => go(a).mul(&go(b)),
        Index::Div(a, _) => go(a),
        Index::Mod(_, b) => go(b),
    }
}

/// The same of an axis.
fn of_axis(program: &Program, analysed: &Analysed, (padded, read): (&[Expr], &Expr), axis: AxisId) -> Expr {
    let go = |i| magnitude(program, analysed, (padded, read), i);
    let own = analysed.stage.indices.iter().find(|(a, _)| *a == axis);
    match own {
        Some((_, e)) => absolute(e, &|v| {
            let root = Family::ROOT.number(v)?;
            analysed.stage.domain.roots.get(root).map(|root| padded[*root].clone())
        }),
        None => {
            // An axis of an inner reduction or of an inlined intermediate.
            let declared = &program.algorithm.axes[axis as usize];
            if !program.algorithm.is_of_memory(axis) {
                return go(declared.lower).add(&go(declared.upper));
            }
            // Where memory decides, of a range that holds this one, over variables for the axes around.
            let dims = program.dims.len() as Var;
            let (lower, upper) = expressions::hull(&program.algorithm, declared, &|of| Expr::var(dims + of));
            let around = |v: Var| {
                let axis = v.checked_sub(dims)?;
                Some(of_axis(program, analysed, (padded, read), axis))
            };
            absolute(&lower, &around).add(&absolute(&upper, &around))
        }
    }
}
