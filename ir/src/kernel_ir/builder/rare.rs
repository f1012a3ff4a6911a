//! Branches that are seldom taken. What nothing else needs is computed in them, although [`Builder::pure`] binds it as
//! early as it can: elsewhere it would take instructions, and registers, of everybody.

use super::Builder;
use crate::kernel_ir::{Kernel, Op, RegionId, Statement, StatementKind, ValueId};

/// Who needs a value: what is in the branch, what is not.
#[derive(Clone, Copy, Debug, Default)]
struct Needed {
    inside: bool,
    outside: bool,
}

impl Builder {
    /// The same as [`Builder::begin_if`], for what is seldom done.
    pub fn begin_rare_if(&mut self, condition: ValueId) {
        let known = self.kernel.regions.len();
        self.begin_if(condition);
        // None is opened for a condition that is known.
        if self.kernel.regions.len() > known && self.kernel.pred_literal(condition).is_none() {
            self.rare.push(self.region());
        }
    }

    /// Moves to each branch that is seldom taken what that alone needs.
    pub(super) fn move_to_rare(&mut self) {
        // An inner one first: what moves there is no need of the outer one's.
        for branch in std::mem::take(&mut self.rare).into_iter().rev() {
            move_to(&mut self.kernel, branch);
        }
    }
}

fn move_to(kernel: &mut Kernel, branch: RegionId) {
    let mut is_inside = vec![false; kernel.regions.len()];
    let mut open = vec![branch];
    while let Some(region) = open.pop() {
        is_inside[region.index()] = true;
        let statements = &kernel.region(region).statements;
        open.extend(statements.iter().flat_map(|s| s.kind.effects().inside.regions()));
    }
    let mut needed = vec![Needed::default(); kernel.values.len()];
    let mut bound_by = vec![None; kernel.values.len()];
    let need = |needed: &mut Needed, inside: bool| match inside {
        true => needed.inside = true,
        false => needed.outside = true,
    };
    for (n, region) in kernel.regions.iter().enumerate() {
        for statement in &region.statements {
            match statement.kind {
                StatementKind::Let(value) => bound_by[value.index()] = Some(n),
                ref kind => kind.effects().operands().for_each(|v| need(&mut needed[v.index()], is_inside[n])),
            }
        }
    }
    kernel.tiles.iter().for_each(|value| needed[value.index()].outside = true);
    let mut moves = vec![false; kernel.values.len()];
    // Operands are older than what they are operands of.
    for (n, value) in kernel.values.iter_mut().enumerate().rev() {
        let (Some(region), Needed { inside, outside }) = (bound_by[n], needed[n]) else { continue };
        moves[n] = inside && !outside && !is_inside[region] && only_computes(value.op);
        if moves[n] {
            value.region = branch;
        }
        let inside = moves[n] || is_inside[region];
        value.op.operands().for_each(|operand| need(&mut needed[operand.index()], inside));
    }
    let mut moved: Vec<(ValueId, Statement)> = Vec::new();
    for region in &mut kernel.regions {
        region.statements.retain(|statement| match statement.kind {
            StatementKind::Let(value) if moves[value.index()] => {
                moved.push((value, statement.clone()));
                false
            }
            _ => true,
        });
    }
    moved.sort_unstable_by_key(|(value, _)| *value);
    kernel.regions[branch.index()].statements.splice(0..0, moved.into_iter().map(|(_, statement)| statement));
}

/// Whether an operation is the same wherever its operands are bound.
fn only_computes(op: Op) -> bool {
    match op {
        Op::Index(..)
        | Op::CompareIndex(..)
        | Op::InRange(..)
        | Op::ConvertIndex(_)
        | Op::Select(..)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::MulHigh(..)
        | Op::Shift(..)
        | Op::Compare(..)
        | Op::Fma(..)
        | Op::Cast(_)
        | Op::Bits(_)
        | Op::FromIndex(_)
        | Op::ToIndex(_) => true,
        Op::Literal(_)
        | Op::BlockIndex
        | Op::ThreadIndex
        | Op::Dim(_)
        | Op::Scalar(_)
        | Op::LoopIndex
        | Op::Loaded
        | Op::Get(_)
        | Op::Shuffled
        | Op::Arrived
        | Op::Agreed
        | Op::ClusterRank
        | Op::BlockCount
        | Op::OfWarp(_) => false,
    }
}
