//! Schedules of the equations of blocks, from what is written of the extreme and of the product.

use super::{Cut, axes_of, reduction};
use crate::source::ast::{self, OpKind};

impl Cut<'_> {
    /// The schedules of all of them.
    pub(super) fn scheduled(&mut self, folded: u16, of_blocks: &[u16], number: usize) {
        let [of_extreme, of_product] = self.schedules;
        let [outer, _] = self.names.clone();
        let product = self.program.schedules[of_product].clone();
        let all = self.program.schedules[of_extreme].clone();
        // Like the extreme: its ops inside of the loop.
        let is_inside = |op: &ast::Op| match &op.kind {
            OpKind::Split { outer: name, .. } => name.text != outer.text,
            OpKind::Online { .. } => false,
            _ => true,
        };
        let mut inside: Vec<ast::Op> = all.ast.ops.iter().filter(|op| is_inside(op)).cloned().collect();
        for op in &mut inside {
            if let OpKind::Reorder { axes } = &mut op.kind {
                axes.retain(|axis| axis.text != outer.text);
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
        let mut axes = vec![outer];
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
                    op.kind = OpKind::Fragment { m: m.clone(), n: n.clone(), engine: *engine };
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
        schedule.ast.ops =
            std::iter::once(first).chain(product.ast.ops.iter().filter_map(&mut like)).chain(online).collect();
        self.program.schedules[of_product].equation = of_blocks[number];
        for schedule in &mut self.program.schedules {
            if let Some((_, copy)) = self.between.iter().find(|(written, _)| *written == schedule.equation) {
                schedule.equation = *copy;
            }
        }
    }
}
