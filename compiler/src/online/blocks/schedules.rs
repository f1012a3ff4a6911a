//! Schedules of the equations of blocks, from what is written of the extreme and of the product.

use super::{Cut, axes_of, reduction};
use crate::source::ast::{self, OpKind};

/// How terms are cut into blocks, and what becomes of these.
pub(super) struct OfBlocks {
    /// The axis of the terms, the size of a block, the blocks, the terms of one.
    pub of: ast::Name,
    pub size: ast::Expr,
    pub blocks: ast::Name,
    pub inner: ast::Name,
    /// What the number of blocks is made a multiple of, by splits of these.
    pub multiple: i64,
    /// The ops on them after the first split, and the axes that these leave, outermost first.
    ops: Vec<ast::Op>,
    leaves: Vec<ast::Name>,
}

impl OfBlocks {
    /// What the ops of an extreme make of its terms, if one of them splits these and `over` is what comes of its outer
    /// axis.
    pub fn find(ops: &[ast::Op], over: &ast::Name, terms: &str) -> Option<Self> {
        let (at, (of, size, blocks, inner)) = ops.iter().enumerate().find_map(|(at, op)| match &op.kind {
            OpKind::Split { axis, side: ast::SplitSide::Inner, factor, outer, inner } if *axis.text == *terms => {
                Some((at, (axis, factor, outer, inner)))
            }
            _ => None,
        })?;
        let (mut leaves, mut own, mut multiple) = (vec![blocks.clone()], Vec::new(), 1);
        for op in &ops[at + 1..] {
            let is_own = |name: &ast::Name| leaves.iter().any(|leaf| leaf.text == name.text);
            match &op.kind {
                OpKind::Split { axis, factor, outer, inner, .. } if is_own(axis) => {
                    multiple = literal(factor).and_then(|factor| factor.checked_mul(multiple))?;
                    let place = leaves.iter().position(|leaf| leaf.text == axis.text)?;
                    leaves.splice(place..=place, [outer.clone(), inner.clone()]);
                }
                OpKind::Bind { axes, .. } | OpKind::Reduce { axes, .. } if axes.iter().all(is_own) => {}
                OpKind::Unroll { axis, .. } if is_own(axis) => {}
                _ => continue,
            }
            own.push(op.clone());
        }
        let of = Self {
            of: of.clone(),
            size: size.clone(),
            blocks: blocks.clone(),
            inner: inner.clone(),
            multiple,
            ops: own,
            leaves,
        };
        of.leaves.iter().any(|leaf| leaf.text == over.text).then_some(of)
    }

    /// Whether an op is about blocks as a whole: of what is in one there is no such axis.
    fn has(&self, op: &ast::Op) -> bool {
        let is_first = matches!(&op.kind, OpKind::Split { outer, .. } if outer.text == self.blocks.text);
        is_first || self.ops.contains(op)
    }
}

/// A literal above 0.
pub(super) fn literal(factor: &ast::Expr) -> Option<i64> {
    match &factor.kind {
        ast::ExprKind::Int(literal) => i64::try_from(literal.value).ok().filter(|n| *n > 0),
        _ => None,
    }
}

impl Cut<'_> {
    /// The schedules of all of them.
    pub(super) fn scheduled(&mut self, folded: u16, of_blocks: &[u16], number: usize) {
        let [of_extreme, of_product] = self.schedules;
        let product = self.program.schedules[of_product].clone();
        let all = self.program.schedules[of_extreme].clone();
        // Like the extreme: its ops inside of the loop.
        let is_inside = |op: &ast::Op| !self.of.has(op) && !matches!(op.kind, OpKind::Online { .. });
        let mut inside: Vec<ast::Op> = all.ast.ops.iter().filter(|op| is_inside(op)).cloned().collect();
        for op in &mut inside {
            if let OpKind::Reorder { axes } = &mut op.kind {
                axes.retain(|axis| !self.of.leaves.iter().any(|leaf| leaf.text == axis.text));
            }
        }
        let rows = std::iter::once(self.of_block);
        let sums = of_blocks.iter().enumerate().filter(|(n, _)| *n != number).map(|(_, of_block)| *of_block);
        for equation in rows.chain(sums).collect::<Vec<_>>() {
            let mut own = all.clone();
            own.equation = equation;
            own.ast.stage.text = crate::online::name(self.program, equation);
            own.ast.clauses = product.ast.clauses.clone();
            own.ast.ops.clone_from(&inside);
            self.program.schedules.push(own);
        }
        // The fold: its loop around the elements of the product.
        let mut axes = self.of.leaves.clone();
        let of_blocks_alone = self.of.ops.clone();
        let own = axes_of(&self.program.algorithm, folded).to_vec();
        axes.extend(own.into_iter().map(|axis| {
            let text = self.program.algorithm.axes[axis as usize].name.to_string();
            ast::Name { text, span: all.ast.head }
        }));
        let first = ast::Op { kind: OpKind::Reorder { axes }, keyword: all.ast.head, span: all.ast.head };
        // Ops on terms are those of the product alone.
        let of_terms = {
            let (terms, _) = reduction(&self.program.algorithm, of_blocks[number]);
            self.program.algorithm.axes[terms as usize].name.to_string()
        };
        let mut terms = vec![of_terms];
        let mut like = |op: &ast::Op| {
            let mut op = op.clone();
            match &mut op.kind {
                OpKind::Mma { m, n, engine, .. } => {
                    op.kind = OpKind::Fragment { m: m.clone(), n: Some(n.clone()), engine: *engine };
                }
                OpKind::Split { axis, outer, inner, .. } if terms.contains(&axis.text) => {
                    terms.extend([outer.text.clone(), inner.text.clone()]);
                    return None;
                }
                OpKind::Unroll { axis, .. } if terms.contains(&axis.text) => return None,
                OpKind::Reorder { axes } => axes.retain(|axis| !terms.contains(&axis.text)),
                _ => {}
            }
            Some(op)
        };
        let schedule = &mut self.program.schedules[of_extreme];
        schedule.equation = folded;
        let online = all.ast.ops.iter().filter(|op| matches!(op.kind, OpKind::Online { .. })).cloned();
        let dealt = product.ast.ops.iter().filter_map(&mut like);
        schedule.ast.ops = of_blocks_alone.into_iter().chain([first]).chain(dealt).chain(online).collect();
        self.program.schedules[of_product].equation = of_blocks[number];
        for schedule in &mut self.program.schedules {
            if let Some((_, copy)) = self.between.iter().find(|(written, _)| *written == schedule.equation) {
                schedule.equation = *copy;
            }
        }
    }
}
