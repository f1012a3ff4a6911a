//! How tensor cores read the factors of a product: the descriptor or the registers of each, or why there are none.
//!
//! **Property.** For every tile that a warpgroup has, the place of each element of a factor in its copy is the one that
//! the descriptor says, counted from the place of the tile's first element. **Formula.** Along each axis of the copy
//! the offset of an element depends on rows (columns) or on terms, not on both; so its place is a sum f(x) + g(k). The
//! steps of a descriptor are read off f and g, and then compared with them for all x, k and tiles
//! ([`Descriptor::offset`]). Swizzles act on addresses, on both sides. **Approximation.** None: tiles are enumerated.
//! That threads hold a left factor in the registers that an instruction reads it from, `schedule::held_reads` has seen.
//!
//! [`Descriptor::offset`]: tilewright_kernel::descriptor::Descriptor::offset
//!
//! An instruction has all elements of its tile, so nothing can be predicated: holes along rows and columns make
//! elements that nobody reads, and holes along terms must be zero (`tma::demand`). Every warpgroup of the block or role
//! comes.

mod behind;
mod fragment;
mod matrices;
mod operand;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{IndexId, Value, ValueId};

use crate::diag::codes::{
    ManyProducts, NoSuchProduct, OperandPlace, OperandProblem, ProductHoles, ProductProblem, ProductThreads, Ring,
};
use crate::diag::{Code, Diagnostics};
use crate::domain::{AxisId, AxisKind, Unit};
use crate::extent::{Expr, Var};
use crate::kernel_ir::{MmaSync, Wgmma};
use crate::plan::product::{Factor, Held, Operand, Product, Signs, factors};
use crate::plan::staged::Way;
use crate::plan::{Analysed, Demand, Waiver};
use crate::program::expressions;
use crate::schedule::{self, Mma, Role, Stage, is_of_terms, role_name};
use crate::source::Span;
use crate::source::ast::Place;
use crate::target::{WARP, WARPGROUP};
use operand::Tiles;

/// Plans every product, or refuses it.
pub fn check(roles: &[Role], analysed: &mut [Analysed], diags: &mut Diagnostics) {
    let copies = analysed.iter().flat_map(|a| &a.staged).filter(|staged| staged.way == Way::Load);
    let copied: Vec<u16> = copies.map(|staged| staged.parameter).collect();
    for at in 0..analysed.len() {
        let Some(mma) = analysed[at].stage.product.clone() else { continue };
        if let Some((found, waived)) = product((analysed, at), &mma, (roles, &copied), diags) {
            let own = &mut analysed[at];
            own.product = Some(found);
            own.waived.extend(waived);
            own.waived.sort_by_key(|w| w.predicate);
        }
    }
    for at in 0..analysed.len() {
        let own = &analysed[at];
        let found = own.product.as_ref().zip(own.stage.product.as_ref());
        let Some((product, mma)) = found.filter(|(p, mma)| mma.inflight > 0 && p.held().next().is_some()) else {
            continue;
        };
        match behind::plan(analysed, at, mma, product) {
            Ok(found) => analysed[at].behind = Some(found),
            Err(problem) => {
                let (stage, span) = (own.stage.name.clone(), mma.span);
                diags.report(NoSuchProduct { stage, axis: None, problem, span });
            }
        }
    }
    let products: Vec<Product> = analysed.iter().filter_map(|a| a.product.clone()).collect();
    for (is_right, factor) in products.iter().flat_map(|product| [false, true].into_iter().zip(&product.factors)) {
        if let Factor::Held(factor) = factor {
            analysed[factor.stage].fragment = fragment::of(analysed, factor, is_right);
        }
    }
    products.iter().flat_map(Product::written).for_each(|at| analysed[at].multiplied = true);
    for at in 0..analysed.len() {
        let held: Vec<Held> = analysed[at].product.iter().flat_map(Product::held).cloned().collect();
        for factor in held {
            let along = along_terms(&analysed[at].stage, &factor, &analysed[factor.stage].stage);
            analysed[factor.stage].zero_along.extend(along);
        }
    }
    let held = |is_async: bool| {
        let is_such = |a: &&Analysed| a.stage.product.as_ref().is_some_and(|mma| mma.is_async() == is_async);
        let own = analysed.iter().filter(is_such).filter_map(|a| a.product.as_ref());
        own.flat_map(Product::held).map(|held| held.stage).collect::<Vec<usize>>()
    };
    let [of_groups, of_warps] = [true, false].map(held);
    let of_groups: Vec<usize> =
        of_groups.into_iter().filter(|at| !of_warps.contains(at)).chain(follows(analysed)).collect();
    for at in of_groups {
        analysed[at].is_of_groups = true;
    }
}

/// The roots of a stage that holds a factor which number the terms of a product; all of them, if that reads zeros
/// outside of it.
fn along_terms(product: &Stage, factor: &Held, holder: &Stage) -> Vec<Var> {
    let algorithm = &product.program.algorithm;
    let Value::Read { indices, or, .. } = algorithm.values[factor.read as usize] else { return Vec::new() };
    let of: expressions::Scope = product.indices.iter().map(|(axis, e)| (*axis, e.clone())).collect();
    let list = &algorithm.index_lists[indices.range()];
    let is_along = |index: IndexId| is_of_terms(&expressions::index(&product.program, index, &of), &product.domain);
    let axes = &algorithm.axis_lists[algorithm.equations[holder.equation].axes.range()];
    let along: Vec<_> =
        axes.iter().zip(list).filter(|(_, index)| or.is_some() || is_along(**index)).map(|(axis, _)| *axis).collect();
    let own = holder.indices.iter().filter(|(axis, _)| along.contains(axis));
    own.flat_map(|(_, e)| e.vars()).collect()
}

/// The stages of passes over blocks of terms whose products warpgroups compute: without these, readers compute what the
/// pass would hold.
fn follows(analysed: &[Analysed]) -> Vec<usize> {
    let is_async = |equation: u16| {
        let is_it = |a: &&Analysed| a.stage.equation == usize::from(equation);
        analysed.iter().filter(is_it).any(|a| a.stage.product.as_ref().is_some_and(Mma::is_async))
    };
    let is_pass = |at: usize| {
        let stage = &analysed[at].stage;
        let mut passes = stage.program.online.iter().filter(|online| usize::from(online.equation) == stage.equation);
        passes.any(|online| online.blocks.as_ref().is_some_and(|blocks| is_async(blocks.product)))
    };
    let around = |at: usize| std::iter::successors(Some(at), |at| Some(analysed[*at].stage.attach.as_ref()?.stage));
    (0..analysed.len()).filter(|at| around(*at).any(is_pass)).collect()
}

/// Plans how tiles are written that copies store; after what they need not test is known.
pub fn stores(analysed: &mut [Analysed]) {
    for at in 0..analysed.len() {
        analysed[at].stored = matrices::stored(analysed, at);
    }
}

/// The product of the stage with a position, where these tensors have copies, and the predicates that are waived for
/// it.
fn product(
    (all, at): (&[Analysed], usize),
    mma: &Mma,
    (roles, copied): (&[Role], &[u16]),
    diags: &mut Diagnostics,
) -> Option<(Product, Vec<Waiver>)> {
    let analysed = &all[at];
    let stage = &analysed.stage;
    let name = || stage.name.clone();
    let serial = mma.serial();
    let is_innermost = stage.domain.leaves.ends_with(&serial);
    let only_holds = {
        let algorithm = &stage.program.algorithm;
        let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
        stage.reduction.is_some() && components.iter().all(|c| Some(c.value) == stage.reduction)
    };
    let problem = match (is_innermost, only_holds && stage.place == Place::Registers) {
        (false, _) => Some(ProductProblem::Moved),
        (_, false) => Some(ProductProblem::Apart),
        _ => None,
    };
    if let Some(problem) = problem {
        diags.report(NoSuchProduct { stage: name(), axis: None, problem, span: mma.span });
        return None;
    }
    threads(analysed, mma, roles, diags)?;
    let factors = match factors(&stage.program.algorithm, stage.reduction?) {
        Ok(factors) => factors,
        Err(signs) => {
            // The least integer has no negative of its own type.
            let problem = match signs.filter(|_| mma.operands.iter().all(|ty| ty.is_float())) {
                Some(Signs { is_odd, .. }) => OperandProblem::Negated { is_odd },
                None => OperandProblem::NotAnElement,
            };
            let factor = signs.map_or(stage.reduction?, |signs| signs.first);
            let factor = stage.program.value_spans[factor as usize];
            diags.report(OperandPlace { stage: name(), tensor: None, problem, at: None, span: mma.span, factor });
            return None;
        }
    };
    // Boxes of the copy may be narrower than what one instruction could take: then it takes fewer columns.
    let mut refused: Option<Diagnostics> = None;
    let mut found = None;
    for columns in columns(all_columns(analysed, mma), mma) {
        let mut problems = Diagnostics::default();
        found = operands(&Tiles { all, at, mma, columns, copied }, factors, &mut problems)
            .map(|operands| (columns, operands));
        let is_layout = problems.found().iter().any(|problem| problem.code == Code::TW0803);
        if found.is_some() {
            break;
        }
        refused.get_or_insert(problems);
        if !is_layout {
            break;
        }
    }
    let Some((columns, factors)) = found else {
        diags.append(refused.unwrap_or_default());
        return None;
    };
    let waived = holes(analysed, mma, diags)?;
    many(analysed, mma, diags);
    let (factors, types) = factors;
    let product = Product { factors, types, columns };
    // One that reads registers may be a block behind, which is found when all are known.
    if mma.inflight > 0 && product.held().next().is_none() {
        let ahead: Vec<Ahead> = product.operands().map(|operand| ahead((all, at), mma, operand)).collect();
        let short = |ahead: &Ahead| if let Ahead::Short(ring) = ahead { Some(ring.clone()) } else { None };
        let mut short: Vec<Ring> = ahead.iter().filter_map(short).collect();
        // Edits are in the order of the source.
        short.sort_by_key(|ring| ring.slots);
        let uneven = ahead.iter().find_map(|ahead| if let Ahead::Uneven(leaf) = ahead { Some(*leaf) } else { None });
        let problem = if ahead.contains(&Ahead::Not) || ahead.iter().all(|ahead| *ahead == Ahead::Stays) {
            Some(ProductProblem::Alone(mma.inflight))
        } else if let Some(leaf) = uneven {
            Some(ProductProblem::Uneven(stage.domain.axes[leaf].name.clone()))
        } else {
            (!short.is_empty()).then_some(ProductProblem::Short(mma.inflight, short))
        };
        if let Some(problem) = problem {
            diags.report(NoSuchProduct { stage: name(), axis: None, problem, span: mma.span });
            return None;
        }
    }
    Some((product, waived))
}

/// Both factors with their types, the one with the rows first.
fn operands(
    tiles: &Tiles<'_>,
    factors: [ValueId; 2],
    diags: &mut Diagnostics,
) -> Option<([Factor; 2], [ElementType; 2])> {
    let mut found: [Option<(Factor, ElementType)>; 2] = [None, None];
    for (factor, ty) in factors.into_iter().zip(tiles.mma.operands) {
        let (has_columns, operand) = tiles.operand(factor, diags)?;
        if found[usize::from(has_columns)].replace((operand, ty)).is_some() {
            tiles.refuse(factor, OperandProblem::Axes, diags);
            return None;
        }
    }
    let [Some((left, of_left)), Some((right, of_right))] = found else { return None };
    Some(([left, right], [of_left, of_right]))
}

/// Whether slots of a factor are filled while groups of products that read others are under way.
#[derive(PartialEq)]
enum Ahead {
    /// Its copy stands around all loops of the stage, and stays till their end.
    Stays,
    /// No other role fills them, or not at a loop around the products.
    Not,
    /// One does, at this loop, whose iterations do not all start as many groups.
    Uneven(AxisId),
    /// One would, but for slots that the groups read.
    Short(Ring),
    /// One does.
    Filled,
}

fn ahead((all, at): (&[Analysed], usize), mma: &Mma, operand: &Operand) -> Ahead {
    let Analysed { stage, staged, .. } = &all[at];
    let (role, ring, leaf, clauses) = match operand.stage {
        Some(written) => {
            let Stage { role, ring, attach, .. } = &all[written].stage;
            let Some(attach) = attach.as_ref().filter(|attach| attach.stage == at) else { return Ahead::Stays };
            (*role, *ring, attach.leaf, schedule::clauses(&stage.program, &all[written].stage))
        }
        None => {
            let Some(staged) = staged.iter().find(|staged| operand.is_in(staged)) else { return Ahead::Stays };
            let copy = stage.program.stages.iter().find(|copy| copy.ast.name.text == staged.name);
            (staged.role, staged.ring, staged.attach.leaf, copy.map(|copy| &copy.ast.clauses))
        }
    };
    if role.is_none() || role == stage.role || !stage.is_rolled(leaf) {
        return Ahead::Not;
    }
    let behind = mma.iterations_under_way(stage, leaf).filter(|_| is_whole(&all[at], mma, leaf));
    let Some(behind) = behind else { return Ahead::Uneven(leaf) };
    if ring > behind {
        return Ahead::Filled;
    }
    let slots = clauses.and_then(|clauses| Some(clauses.ring.as_ref()?.value.span));
    Ahead::Short(Ring { of: operand.copy.clone(), has: ring, least: behind + 1, slots })
}

/// Whether each iteration of a loop around a product has all iterations of the loops between: no predicate and no limit
/// leaves one out.
fn is_whole(analysed: &Analysed, mma: &Mma, leaf: AxisId) -> bool {
    let Analysed { stage, holes, waived, .. } = analysed;
    let domain = &stage.domain;
    let (serial, loops) = (mma.serial(), stage.sequence().into_iter().skip_while(|other| *other != leaf));
    let between: Vec<AxisId> = loops.skip(1).take_while(|leaf| !serial.contains(leaf)).collect();
    let depends = |axis: AxisId| between.iter().any(|leaf| domain.depends_on(axis, *leaf));
    // Those of elements are waived for a product (`holes`).
    let tested = holes.kept.iter().enumerate().filter(|(n, _)| waived.iter().all(|w| w.predicate != *n));
    let mut terms = tested.map(|(_, p)| p.axis).filter(|axis| domain.axes[*axis].kind == AxisKind::Reduction);
    let mut limits = stage.limits.iter().flat_map(Expr::vars).filter_map(|v| domain.axis_of(v));
    !terms.any(depends) && !limits.any(depends)
}

/// The columns of a tile.
fn all_columns(analysed: &Analysed, mma: &Mma) -> u32 {
    let eights = analysed.stage.domain.axes[mma.columns.eights].extent.as_constant().unwrap_or(1);
    u32::try_from(eights * 8).unwrap_or(8)
}

/// How many columns an instruction may have, the most first: those that divide the `all` of a tile.
fn columns(all: u32, mma: &Mma) -> impl Iterator<Item = u32> + use<> {
    let [operand, _] = mma.operands;
    let is_async = mma.is_async();
    let most = (1..=Wgmma::MOST_COLUMNS / 8).rev().map(|n| 8 * n);
    let has = move |n: u32| if is_async { Wgmma::has_columns(operand, n) } else { n == MmaSync::COLUMNS };
    most.filter(move |n| all.is_multiple_of(*n) && has(*n))
}

/// Says so where a tile takes more than twice the instructions that so many columns need: no large number divides them.
/// Warps have one number of columns and no choice.
fn many(analysed: &Analysed, mma: &Mma, diags: &mut Diagnostics) {
    let all = all_columns(analysed, mma);
    let most = Wgmma::MOST_COLUMNS;
    let count = |all: u32| columns(all, mma).next().map(|each| all / each);
    let Some(each) = columns(all, mma).next().filter(|each| mma.is_async() && all / each > 2 * all.div_ceil(most))
    else {
        return;
    };
    let is_few = |all: &u32| count(*all) == Some(all.div_ceil(most));
    let below = (8..all).rev().filter(|n| n % 8 == 0).find(is_few);
    let above = (all + 1..=all.next_multiple_of(most)).filter(|n| n % 8 == 0).find(is_few);
    diags.report(ManyProducts {
        stage: analysed.stage.name.clone(),
        columns: (all, each),
        most,
        nearest: below.into_iter().chain(above).map(|all| (all, all.div_ceil(most))).collect(),
        span: mma.span,
    });
}

/// Whether the threads of each warpgroup have the digits of a fragment, and all warpgroups have tiles.
fn threads(analysed: &Analysed, mma: &Mma, roles: &[Role], diags: &mut Diagnostics) -> Option<()> {
    let stage = &analysed.stage;
    let digits = schedule::digits(stage);
    let (warp, row, quad) = (mma.rows.warp, mma.rows.row, mma.columns.quad);
    let is_own = |leaf: AxisId| mma.threads().any(|own| own == leaf);
    let at = |leaf: AxisId| digits.iter().find(|d| d.leaf == leaf).map(|d| (d.stride, d.low));
    let warps = i128::from(WARP);
    let in_place =
        warp.is_none_or(|warp| at(warp) == Some((warps, 0))) && at(row) == Some((4, 0)) && at(quad) == Some((1, 0));
    let (unit, threads) = if mma.is_async() { (Unit::Warpgroup, WARPGROUP) } else { (Unit::Warp, WARP) };
    let group = i128::from(threads);
    let outer = digits.iter().filter(|d| !is_own(d.leaf));
    let whole = outer.clone().all(|d| d.stride % group == 0 && d.low % group == 0);
    let busy = outer.fold(group, |busy, d| busy * d.extent);
    let block = stage.distribution.block;
    let first = stage.role.and_then(|role| roles.get(role)).map_or(0, |role| role.first);
    let aligned = first.is_multiple_of(threads / WARP);
    let own = stage.owner.threads().unwrap_or(block.into());
    let partial = digits.iter().any(|d| d.is_partial) || busy != own;
    if in_place && whole && aligned && !partial && stage.owner <= unit {
        return Some(());
    }
    let role = role_name(&stage.program, stage.role).map(str::to_owned);
    diags.report(ProductThreads {
        stage: stage.name.clone(),
        threads: block,
        role,
        busy: busy * i128::from(block) / own.max(1),
        first,
        unit,
        span: mma.span,
    });
    None
}

/// The predicates that are waived because what a tile has beside the elements that are asked for does no harm; none
/// after a report that it does.
fn holes(analysed: &Analysed, mma: &Mma, diags: &mut Diagnostics) -> Option<Vec<Waiver>> {
    let stage = &analysed.stage;
    let names = |v: Var| stage.program.dim_name(v as u16).to_owned();
    let refuse = |condition: Option<String>, diags: &mut Diagnostics| {
        let (stage, span) = (stage.name.clone(), mma.span);
        diags.report(ProductHoles { stage, condition, span });
    };
    // Memory may say something else for each element.
    let algorithm = &stage.program.algorithm;
    let of_memory = stage.indices.iter().any(|(axis, _)| algorithm.is_of_memory(*axis));
    if of_memory || stage.limits.iter().any(|limit| is_of_terms(limit, &stage.domain)) {
        refuse(None, diags);
        return None;
    }
    let mut waived = Vec::new();
    for (n, predicate) in analysed.holes.kept.iter().enumerate() {
        if analysed.waived.iter().any(|w| w.predicate == n) {
            continue;
        }
        let axis = &stage.domain.axes[predicate.axis];
        if axis.kind == AxisKind::Data {
            // Its elements are in what the copies hold (`operand`), and nobody reads what is made of them.
            waived.push(Waiver { predicate: n, demand: Demand::Anything });
            continue;
        }
        let depends = |leaf: &AxisId| stage.domain.depends_on(predicate.axis, *leaf);
        if mma.serial().iter().any(depends) || mma.threads().any(|leaf| depends(&leaf)) {
            let extent = axis.extent.show(&names);
            refuse(Some(format!("{} < {extent}", axis.name)), diags);
            return None;
        }
    }
    Some(waived)
}

/// The span of a read.
fn span_of(analysed: &Analysed, read: ValueId) -> Span {
    analysed.stage.program.value_spans[read as usize]
}

/// The name of the tensor that a read is of, if it is of one.
fn tensor_of(analysed: &Analysed, parameter: u16) -> Option<String> {
    expressions::tensor(&analysed.stage.program, parameter)?;
    analysed.stage.program.parameters.get(usize::from(parameter)).map(|p| p.name.to_string())
}
