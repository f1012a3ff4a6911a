//! Decisions, taken back one after the other.

use super::{Attention, Heads, Memory, Of, Pages, Range, Reader, Scores};
use crate::compose::ast::Type;
use crate::compose::products::Engine;

/// Takes decisions back as long as `fails` says that what is left still does.
pub(super) fn shrink(attention: &Attention, fails: &dyn Fn(&Attention) -> bool) -> Attention {
    let mut small = attention.clone();
    while let Some(next) = candidates(&small).into_iter().filter(|next| *next != small).find(fails) {
        small = next;
    }
    small
}

/// Kernels with one decision less; none of them leads back to what it came from.
fn candidates(attention: &Attention) -> Vec<Attention> {
    let mut list = Vec::new();
    let mut with = |change: &dyn Fn(&mut Attention)| {
        let mut candidate = attention.clone();
        change(&mut candidate);
        list.push(candidate);
    };
    with(&|a| (a.roles, a.persistent) = (None, false));
    with(&|a| a.roles = None);
    with(&|a| a.persistent = false);
    with(&|a| a.descending = false);
    with(&|a| a.statistics = false);
    with(&|a| a.narrow = false);
    with(&|a| a.heads = Heads::One);
    with(&|a| a.same = false);
    with(&|a| a.pages = None);
    with(&|a| a.pages = a.pages.map(|p| Pages { own: false, of_tables: false, plus: 0, ty: Type::I32, ..p }));
    with(&|a| a.pages = a.pages.map(|p| Pages { terms: a.block, ..p }));
    for n in 0..2 {
        with(&|a| a.pages = a.pages.map(|p| Pages { of: [p.of[0] && n == 0, p.of[1] && n == 1], ..p }));
    }
    with(&|a| a.memory = None);
    with(&|a| a.memory = a.memory.map(|m| Memory { of: Of::Head, ..m }));
    with(&|a| a.memory = a.memory.map(|m| Memory { from: false, to: true, ..m }));
    with(&|a| a.memory = a.memory.map(|m| Memory { from: true, to: false, ..m }));
    with(&|a| a.range = Range::All);
    with(&|a| a.range = if a.range == Range::All { a.range } else { Range::Causal });
    with(&|a| (a.scores, a.held[0]) = (Scores::Plain, false));
    with(&|a| a.scores = if a.scores == Scores::Plain { a.scores } else { Scores::Scaled });
    with(&|a| a.held = [false, false, true]);
    for n in 0..2 {
        with(&|a| a.held[n] = false);
    }
    with(&|a| a.sums.truncate(1));
    for n in 0..attention.sums.len() {
        with(&|a| _ = a.sums.remove(n));
    }
    with(&|a| a.before = a.before.min(a.sums.len()));
    with(&|a| a.before = 0);
    with(&|a| a.reader = Reader::Alone);
    with(&|a| a.again = None);
    with(&|a| a.literal = None);
    with(&|a| a.divides = false);
    with(&|a| a.square = false);
    with(&|a| a.min = false);
    with(&|a| a.factor = None);
    with(&|a| a.fused = false);
    with(&|a| a.behind = false);
    with(&|a| a.function = "exp");
    with(&|a| a.units = 1);
    with(&|a| a.rows = 1);
    with(&|a| a.multiple = None);
    with(&|a| a.ty = if a.is_eight() { Type::E4m3 } else { Type::Bf16 });
    with(&|a| {
        a.sizes = [if a.is_eight() { 32 } else { 16 }, 16];
        a.copies.iter_mut().for_each(|copy| copy.swizzle = copy.swizzle.min(32));
    });
    with(&|a| {
        a.block = if a.is_eight() { 32 } else { 16 };
        a.copies[2].swizzle = if a.is_eight() { 32 } else { a.copies[2].swizzle };
    });
    for n in 0..3 {
        with(&|a| a.copies[n].ring = None);
        with(&|a| a.copies[n].swizzle = a.copies[n].swizzle.min(32));
        with(&|a| a.copies[n].swizzle = if a.is_eight() { a.copies[n].swizzle } else { 0 });
        with(&|a| a.copies[n].tma = a.copies[n].tma || a.engine == Engine::Wgmma);
    }
    if let Some(roles) = attention.roles {
        with(&|a| a.roles = Some(super::Roles { registers: false, alternate: false, ..roles }));
        with(&|a| a.roles = Some(super::Roles { first: false, load: 1, ..roles }));
    }
    list
}
