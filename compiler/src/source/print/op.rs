//! Printing schedule ops.

use super::super::ast::{BlockOrder, Expr, L2Hint, Name, Op, OpKind, SplitSide};
use super::{OPERAND, Printer};

impl Printer {
    pub(super) fn ops(&mut self, ops: &[Op]) {
        if ops.is_empty() {
            self.text(";\n");
            return;
        }
        self.text(" {\n");
        self.indent += 1;
        let mut left = ops;
        while let [op, rest @ ..] = left {
            self.start();
            left = if let OpKind::Split { inner, .. } = &op.kind
                && inner.is_rest()
            {
                self.splits(left)
            } else {
                self.op(op);
                rest
            };
        }
        self.indent -= 1;
        self.line("}");
    }

    /// A split by several factors, which is the first ops of these; what follows them.
    fn splits<'a>(&mut self, ops: &'a [Op]) -> &'a [Op] {
        let (mut factors, mut names, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(OpKind::Split { axis, side, factor, outer, inner }) = ops.get(at).map(|op| &op.kind) {
            if at == 0 {
                let by = if *side == SplitSide::Inner { "by" } else { "into" };
                self.text(&format!("split {} {by} ", axis.text));
            }
            factors.push(factor);
            names.push(outer);
            at += 1;
            if !inner.is_rest() {
                names.push(inner);
                break;
            }
        }
        self.list(&factors, |p, factor| p.expr(factor, 0));
        self.text(" -> ");
        self.list(&names, |p, name| p.text(&name.text));
        self.text(";\n");
        &ops[at..]
    }

    /// `word axis by factor -> a, b`
    pub(super) fn splitting(&mut self, word: &str, axis: &Name, by: &str, factor: &Expr, into: [&Name; 2]) {
        self.text(word);
        self.text(" ");
        self.text(&axis.text);
        self.text(by);
        self.expr(factor, 0);
        self.text(" -> ");
        self.list(&into, |p, name| p.text(&name.text));
    }

    #[expect(clippy::too_many_lines, reason = "one arm an op")]
    pub(super) fn op(&mut self, op: &Op) {
        match &op.kind {
            OpKind::Split { axis, side, factor, outer, inner } => {
                let by = match side {
                    SplitSide::Inner => " by ",
                    SplitSide::Outer => " into ",
                };
                self.splitting("split", axis, by, factor, [outer, inner]);
            }
            OpKind::Merge { axes, into } => {
                self.text("merge ");
                self.names(axes);
                self.text(" -> ");
                self.text(&into.text);
            }
            OpKind::Reorder { axes } => {
                self.text("reorder ");
                self.names(axes);
            }
            OpKind::Resize { axis, left, right, into } => {
                self.text("resize ");
                self.text(&axis.text);
                self.text(" by (");
                self.expr(left, 0);
                self.text(", ");
                self.expr(right, 0);
                self.text(") -> ");
                self.text(&into.text);
            }
            OpKind::Swizzle { x, y, function, x_into, y_into } => {
                self.text("swizzle ");
                self.list(&[x, y], |p, name| p.text(&name.text));
                self.text(" by ");
                self.text(function.value.as_str());
                self.text(" -> ");
                self.list(&[x_into, y_into], |p, name| p.text(&name.text));
            }
            OpKind::Bind { axes, scale, unit, range, raster } => {
                self.text("bind ");
                self.names(axes);
                self.text(": ");
                if let Some(scale) = scale {
                    self.expr(scale, OPERAND);
                    self.text(" ");
                }
                self.text(&unit.text);
                if let Some(range) = range {
                    self.text(" ");
                    self.range(range);
                }
                if !raster.is_empty() {
                    self.text(" raster(");
                    self.list(raster, |p, (axis, order)| {
                        p.text(&axis.text);
                        p.text(": ");
                        match order {
                            BlockOrder::Groups(size) => p.expr(size, 0),
                            BlockOrder::Descending => p.text("descending"),
                        }
                    });
                    self.text(")");
                }
            }
            OpKind::Vectorize { axis } => {
                self.text("vectorize ");
                self.text(&axis.text);
            }
            OpKind::Unroll { axis, by } => {
                self.text("unroll ");
                self.text(&axis.text);
                if let Some(by) = by {
                    self.text(" by ");
                    self.expr(by, 0);
                }
            }
            OpKind::Reduce { axes, by } => {
                self.text("reduce ");
                self.names(axes);
                if let Some(by) = by {
                    self.text(" by ");
                    self.text(by.value.as_str());
                }
            }
            OpKind::Like { stage, operand } => {
                self.text("like ");
                self.text(&stage.text);
                if let Some(operand) = operand {
                    self.text(".");
                    self.text(&operand.text);
                }
            }
            OpKind::Box { axis, factor, coordinate, inner } => {
                self.splitting("box", axis, " by ", factor, [coordinate, inner]);
            }
            OpKind::BoxRun { coordinates, boxed } => {
                self.text("box (");
                self.names(coordinates);
                self.text("; ");
                self.names(boxed);
                self.text(")");
            }
            OpKind::Tile { axis, factor, tile, stride } => self.splitting("tile", axis, " by ", factor, [tile, stride]),
            OpKind::Layout { axes, swizzle } => {
                self.text("layout [");
                self.list(axes, |p, axis| {
                    p.text(&axis.name.text);
                    if let Some(pad) = &axis.pad {
                        p.text(" pad ");
                        p.expr(pad, 0);
                    }
                });
                self.text("]");
                if let Some(bytes) = swizzle {
                    self.text(" swizzle ");
                    self.expr(bytes, 0);
                }
            }
            OpKind::Multicast { axis, by } => {
                self.text("multicast ");
                self.text(&axis.stage.text);
                self.text(".");
                self.text(&axis.axis.text);
                if let Some(by) = by {
                    self.text(" by ");
                    self.text(&by.text);
                }
            }
            OpKind::Mma { m, n, k, engine, inflight } => {
                self.text("mma (");
                self.list(&[m, n, k], |p, name| p.text(&name.text));
                self.text(") by ");
                self.text(engine.value.as_str());
                if let Some(inflight) = inflight {
                    self.text(" ");
                    self.argument("inflight", inflight);
                }
            }
            OpKind::Fragment { m, n, engine } => {
                self.text("fragment (");
                let axes: Vec<&Name> = std::iter::once(m).chain(n).collect();
                self.list(&axes, |p, name| p.text(&name.text));
                self.text(") by ");
                self.text(engine.value.as_str());
            }
            OpKind::Region { kind, into } => {
                self.text("region ");
                self.text(kind.value.as_str());
                if let Some(into) = into {
                    self.text(" -> ");
                    self.text(&into.text);
                }
            }
            OpKind::Fill { model } => {
                self.text("fill ");
                self.text(model.value.as_str());
            }
            OpKind::L2 { hint } => match hint {
                L2Hint::Promote(bytes) => {
                    self.text("l2 ");
                    self.argument("promote", bytes);
                }
                L2Hint::EvictFirst => self.text("l2 evict_first"),
                L2Hint::EvictLast => self.text("l2 evict_last"),
            },
            OpKind::Online { source, targets, axis } => {
                self.text("online ");
                self.text(&source.text);
                self.text(" -> ");
                self.names(targets);
                self.text(" over ");
                self.text(&axis.text);
            }
        }
        self.text(";\n");
    }
}
