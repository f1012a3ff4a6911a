//! Scores beside the range of an element, which are those of no term: replaced where they are computed, in the blocks
//! that have some. Loops around are cut there.

use tilewright_kernel::algorithm::{Binary, Compare, IndexId, Value, ValueId as AlgorithmValue};

use super::{Around, Goal, Nest, Point};
use crate::extent::{Expr, Family, Var};
use crate::kernel_ir::{Builder, Type, ValueId};
use crate::lower::product;
use crate::plan::Analysed;
use crate::program::{Masked, Program, expressions};
use crate::schedule::extreme;

/// Where a comparison i < n of indices fails for some element of an instance.
enum Past {
    /// From an iteration of a loop on.
    From(ValueId, ValueId),
    /// Before one.
    Before(ValueId, ValueId),
    /// Where this holds.
    Where(ValueId),
}

/// Which scores are masked by the stage that computes them, a product in this entry point.
fn masked<'a>(program: &'a Program, stages: &'a [Analysed], staged: bool) -> impl Iterator<Item = Masked> + 'a {
    let all = program.online.iter().filter_map(|online| online.blocks.as_ref()?.masked);
    all.filter(move |masked| {
        let mut own = stages.iter().filter(|s| s.stage.equation == usize::from(masked.scores)).peekable();
        own.peek().is_some() && own.all(|s| s.stage.product.is_some() && product::is_computed(s, staged))
    })
}

/// Conditions that hold where scores are read: they were masked.
pub(super) fn known(program: &Program, stages: &[Analysed], staged: bool) -> Vec<AlgorithmValue> {
    masked(program, stages, staged).map(|masked| masked.of_readers).collect()
}

impl Nest<'_, '_> {
    /// Scores of no term are replaced, in blocks that have some.
    pub(super) fn mask_scores(&mut self, point: &Point, k: usize) {
        let Around { stages, staged, .. } = self.around;
        let own = masked(self.program, stages, staged).find(|m| usize::from(m.scores) == self.stage.equation);
        let Some(own) = own else { return };
        let is_ragged = self.is_beside_some(point, own.of_scores);
        let opened = is_ragged.map(|ragged| {
            // A first block that is written out on its own is masked in any case: there the branch costs more, since
            // the assembler keeps nothing in registers of a warp behind it.
            let apart = self.around.behind.and_then(|group| group.later_than_first(self.own));
            let ragged = match apart {
                Some(later) => {
                    let is_first = self.b.not(later);
                    self.b.binary(Binary::Or, ragged, is_first)
                }
                None => ragged,
            };
            self.b.begin_rare_if(ragged);
        });
        self.masking = Some((own.of_scores, own.none));
        self.descend(point, k, Goal::Store);
        self.masking = None;
        if opened.is_some() {
            self.b.end_if();
        }
    }

    /// Whether a score of an instance may be of no term; none if that is not known to be at the ends of loops.
    fn is_beside_some(&mut self, point: &Point, inside: AlgorithmValue) -> Option<ValueId> {
        match self.program.algorithm.values[inside as usize] {
            // The start of a range comes first: the loop is cut there before it is cut at the end.
            Value::Binary(Binary::And, start, end) => {
                let (start, end) = (self.is_past_some(point, start)?, self.is_past_some(point, end)?);
                Some(self.b.binary(Binary::Or, start, end))
            }
            _ => self.is_past_some(point, inside),
        }
    }

    /// Whether a comparison i < n of indices fails for some element of an instance; none if that is not known to be at
    /// the ends of loops. Where iterations of a loop around differ in i or n by a constant, that loop is cut where the
    /// first comes in which it fails, or does not.
    fn is_past_some(&mut self, point: &Point, condition: AlgorithmValue) -> Option<ValueId> {
        let Value::CompareIndex(_, index, end) = self.program.algorithm.values[condition as usize] else { return None };
        // It fails where it fails for some part of either side.
        let (indices, ends) = (self.end_parts(index, false), self.end_parts(end, true));
        let pairs = indices.iter().flat_map(|index| ends.iter().map(|end| (*index, *end)));
        let mut found: Vec<Past> = Vec::new();
        for (index, end) in pairs.collect::<Vec<_>>() {
            let past = self.past(point, index, end)?;
            // Of two cuts of one loop the first counts, or the last of those before which it fails.
            let joined = found.iter_mut().find_map(|other| match (other, &past) {
                (Past::From(at, cut), Past::From(own, other)) if at == own => Some((cut, *other, true)),
                (Past::Before(at, cut), Past::Before(own, other)) if at == own => Some((cut, *other, false)),
                _ => None,
            });
            match joined {
                Some((cut, other, true)) => *cut = self.b.index_min(*cut, other),
                Some((cut, other, false)) => *cut = self.b.index_max(*cut, other),
                None => found.push(past),
            }
        }
        let all = found.into_iter().map(|past| match past {
            Past::From(at, cut) => self.b.cut_loop(at, cut),
            Past::Before(at, cut) => {
                let is_behind = self.b.cut_loop(at, cut);
                self.b.not(is_behind)
            }
            Past::Where(holds) => holds,
        });
        let all: Vec<ValueId> = all.collect();
        all.into_iter().reduce(|a, b| self.b.binary(Binary::Or, a, b))
    }

    /// Where i < n fails for some element of an instance.
    fn past(&mut self, point: &Point, index: IndexId, end: IndexId) -> Option<Past> {
        let of = self.scope_of_leaves();
        let extents = self.leaf_extents();
        let extent = |v: Var| extents.get((v as usize).checked_sub(self.facts.dims())?);
        let side = |this: &Self, id: IndexId, greatest: bool| {
            let e = expressions::index(this.program, id, &of);
            let e = this.facts.normal(&extreme(&e, greatest, &extent)?);
            (!e.is_unknown()).then_some(e)
        };
        let ty = self.index;
        match [index, end].map(|side| self.program.algorithm.is_read(side)) {
            [false, false] => {
                let (greatest, least) = (side(self, index, true)?, side(self, end, false)?);
                let of_least = |this: &mut Self| this.size(&least);
                if let Some((at, cut)) = self.first_at_least(&greatest, &least.vars(), of_least) {
                    return Some(Past::From(at, cut));
                }
                let more = greatest.add(&Expr::constant(1));
                let of_more = |this: &mut Self| this.size(&more);
                if let Some((at, cut)) = self.first_at_least(&least, &more.vars(), of_more) {
                    return Some(Past::Before(at, cut));
                }
                let (greatest, least) = (self.size(&greatest), self.size(&least));
                Some(Past::Where(self.b.index_compare(Compare::Ge, greatest, least)))
            }
            // What is compared with what memory says is at least 0, and at most the largest index less 1.
            [false, true] => {
                let greatest = side(self, index, true)?;
                let end = self.read_here(point, end).filter(|here| here.is_alike)?.value;
                let zero = self.b.index_literal(ty, 0);
                let end = self.b.index_max(end, zero);
                let (at, cut) = self.first_at_least(&greatest, &[], |_| end)?;
                Some(Past::From(at, cut))
            }
            [true, false] => {
                let least = side(self, end, false)?;
                let start = self.read_here(point, index).filter(|here| here.is_alike)?.value;
                let (zero, one) = (self.b.index_literal(ty, 0), self.b.index_literal(ty, 1));
                let most = if ty == Type::I32 { i64::from(i32::MAX) } else { i64::MAX };
                let most = self.b.index_literal(ty, most - 1);
                let start = self.b.index_max(start, zero);
                let start = self.b.index_min(start, most);
                let more = self.b.index_add(start, one);
                let (at, cut) = self.first_at_least(&least, &[], |_| more)?;
                Some(Past::Before(at, cut))
            }
            [true, true] => None,
        }
    }

    /// The index i of a loop around and its first iteration in which `e` is at least `least`, which has these
    /// variables: if `e` is step·i + first, with first ≥ 0, so that nothing that is computed here is above `least`.
    fn first_at_least(
        &mut self,
        e: &Expr,
        vars: &[Var],
        least: impl FnOnce(&mut Self) -> ValueId,
    ) -> Option<(ValueId, ValueId)> {
        let ty = self.index;
        // The loops around are dimensions here.
        let of_loop = |b: &mut Builder, v: Var| {
            let value = Family::is_size(v).then(|| b.dim(v as u16, ty))?;
            b.is_loop_index(value).then_some((v, value))
        };
        let (var, at) = e.vars().into_iter().find_map(|v| of_loop(self.b, v))?;
        let own = Expr::var(var);
        let own = own.terms().first()?;
        let step = e.terms().iter().find(|term| term.atoms == own.atoms)?.coefficient;
        let first = self.facts.normal(&e.sub(&Expr::var(var).scale(step)));
        if step < 1 || first.vars().contains(&var) || vars.contains(&var) {
            return None;
        }
        // step·i + first ≥ least just if i ≥ (least − first) / step, rounded up: by a first that is larger where there
        // is room for it, and else without the sum that may be above `least`.
        let less = self.facts.normal(&first.sub(&Expr::constant(step - 1)));
        let has_room = |e: &Expr| self.facts.lower_bound(e).is_some_and(|low| low >= 0);
        let is_rounded = has_room(&less);
        if !is_rounded && !has_room(&first) {
            return None;
        }
        let step = self.b.index_literal(ty, i64::try_from(step).ok()?);
        let zero = self.b.index_literal(ty, 0);
        let (least, first) = (least(self), self.size(if is_rounded { &less } else { &first }));
        let room = self.b.index_sub(least, first);
        let room = self.b.index_max(room, zero);
        if is_rounded {
            return Some((at, self.b.index_div(room, step)));
        }
        Some((at, self.rounded_up(room, step)))
    }

    /// ⌈room / step⌉ of a room of at least 0, without a sum that could pass what an index can be.
    pub(super) fn rounded_up(&mut self, room: ValueId, step: ValueId) -> ValueId {
        let one = self.b.index_literal(self.index, 1);
        let (some, more) = (self.b.index_max(room, one), self.b.index_min(room, one));
        let whole = self.b.index_sub(some, one);
        let whole = self.b.index_div(whole, step);
        self.b.index_add(whole, more)
    }
}
