//! The pretty printer: a syntax tree as source text that parses to the same tree.

use super::ast::{
    Attribute, AxisDecl, BinaryOp, Clauses, Constant, Equation, Expr, ExprKind, Fact, Fold, Item, Kernel, L2Hint,
    Launch, LaunchItem, LaunchItemKind, Name, Op, OpKind, Param, Pattern, Program, Range, Reduction, Role, Schedule,
    Shape, SplitSide, StagedCopy, Type, UnaryOp, Unit,
};

/// Binding strength of the forms around the infix operators, on the scale of [`BinaryOp::precedence`].
const CAST: u8 = 6;
const UNARY: u8 = 7;
const OPERAND: u8 = 8;

/// All kernels of an invocation.
#[must_use]
pub fn print_program(program: &Program) -> String {
    let mut p = Printer::default();
    for (index, kernel) in program.kernels.iter().enumerate() {
        if index > 0 {
            p.line("");
        }
        p.kernel(kernel);
    }
    p.out
}

/// One kernel.
#[must_use]
pub fn print_kernel(kernel: &Kernel) -> String {
    let mut p = Printer::default();
    p.kernel(kernel);
    p.out
}

/// One statement of a kernel's body, not indented.
#[must_use]
pub fn print_item(item: &Item) -> String {
    let mut p = Printer::default();
    p.item(item);
    p.out
}

/// One schedule op with its semicolon: what a help message proposes to paste.
#[must_use]
pub fn print_op(op: &Op) -> String {
    let mut p = Printer::default();
    p.op(op);
    p.out.truncate(p.out.trim_end().len());
    p.out
}

/// One expression.
#[must_use]
pub fn print_expr(expr: &Expr) -> String {
    let mut p = Printer::default();
    p.expr(expr, 0);
    p.out
}

/// One fact of a `where` clause.
#[must_use]
pub fn print_fact(fact: &Fact) -> String {
    let mut p = Printer::default();
    p.fact(fact);
    p.out
}

#[derive(Default)]
struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn start(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
    }

    fn line(&mut self, text: &str) {
        if !text.is_empty() {
            self.start();
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (index, part) in items.iter().enumerate() {
            if index > 0 {
                self.text(", ");
            }
            item(self, part);
        }
    }

    fn names(&mut self, names: &[Name]) {
        self.list(names, |p, name| p.text(&name.text));
    }

    // ---- kernels

    fn attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            match &attribute.doc {
                Some(doc) if !doc.contains('\n') && !doc.starts_with('/') => self.line(&format!("///{doc}")),
                _ => self.line(&attribute.text),
            }
        }
    }

    fn kernel(&mut self, kernel: &Kernel) {
        self.attributes(&kernel.attributes);
        self.start();
        if let Some(visibility) = &kernel.visibility {
            self.text(&visibility.text);
            self.text(" ");
        }
        self.text("kernel ");
        self.text(&kernel.name.text);
        self.params(&kernel.inputs);
        if !kernel.outputs.is_empty() {
            self.text(" -> ");
            self.params(&kernel.outputs);
        }
        self.text("\n");
        if !kernel.facts.is_empty() {
            self.start();
            self.text("where ");
            self.list(&kernel.facts, Self::fact);
            self.text("\n");
        }
        self.line("{");
        self.indent += 1;
        self.items(&kernel.items);
        self.indent -= 1;
        self.line("}");
    }

    fn params(&mut self, params: &[Param]) {
        self.text("(");
        if params.iter().any(|param| !param.attributes.is_empty()) {
            self.text("\n");
            self.indent += 1;
            for param in params {
                self.attributes(&param.attributes);
                self.start();
                self.param(param);
                self.text(",\n");
            }
            self.indent -= 1;
            self.start();
        } else {
            self.list(params, Self::param);
        }
        self.text(")");
    }

    fn param(&mut self, param: &Param) {
        if param.inout.is_some() {
            self.text("inout ");
        }
        self.text(&param.name.text);
        self.text(": ");
        self.ty(&param.ty);
    }

    fn ty(&mut self, ty: &Type) {
        self.text(ty.element.value.as_str());
        if let Some(shape) = &ty.shape {
            self.shape(shape);
        }
    }

    fn shape(&mut self, shape: &Shape) {
        self.text("[");
        self.list(&shape.dims, |p, dim| {
            p.expr(&dim.size, 0);
            if dim.broadcast.is_some() {
                p.text("?");
            }
        });
        if let Some(strides) = &shape.strides {
            self.text("; ");
            self.exprs(strides);
        }
        self.text("]");
    }

    fn fact(&mut self, fact: &Fact) {
        let precedence = fact.op.value.precedence();
        self.expr(&fact.lhs, precedence + 1);
        self.text(" ");
        self.text(fact.op.value.as_str());
        self.text(" ");
        self.expr(&fact.rhs, precedence + 1);
    }

    // ---- statements

    fn items(&mut self, items: &[Item]) {
        for (index, item) in items.iter().enumerate() {
            // The algorithm, then the schedule.
            if index > 0 && matches!(items[index - 1], Item::Equation(_)) && !matches!(item, Item::Equation(_)) {
                self.line("");
            }
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        self.start();
        match item {
            Item::Equation(equation) => self.equation(equation),
            Item::Launch(launch) => self.launch(launch),
            Item::Schedule(schedule) => self.schedule(schedule),
            Item::Stage(stage) => self.staged_copy(stage),
            Item::Inline(inline) => {
                self.text("inline ");
                self.text(&inline.stage.text);
                self.text(";\n");
            }
            Item::Unit(unit) => self.unit(unit),
            Item::Tune(tune) => {
                self.text("tune ");
                self.text(&tune.name.text);
                self.text(" in [");
                self.exprs(&tune.values);
                self.text("];\n");
            }
            Item::Pass(pass) => {
                self.text("pass ");
                self.text(&pass.name.text);
                self.text(" {\n");
                self.indent += 1;
                self.items(&pass.items);
                self.indent -= 1;
                self.line("}");
            }
        }
    }

    fn equation(&mut self, equation: &Equation) {
        match equation.targets.as_slice() {
            [only] => self.text(&only.text),
            several => {
                self.text("(");
                self.names(several);
                self.text(")");
            }
        }
        self.text("[");
        self.axis_decls(&equation.axes);
        self.text("] = ");
        self.expr(&equation.value, 0);
        self.text(";\n");
    }

    fn axis_decls(&mut self, axes: &[AxisDecl]) {
        self.list(axes, |p, axis| {
            p.text(&axis.name.text);
            if let Some(range) = &axis.range {
                p.text(" in ");
                p.range(range);
            }
        });
    }

    fn range(&mut self, range: &Range) {
        self.expr(&range.start, 0);
        self.text(if range.inclusive { "..=" } else { ".." });
        self.expr(&range.end, 0);
    }

    fn launch(&mut self, launch: &Launch) {
        self.text("launch ");
        self.list(&launch.items, Self::launch_item);
        self.text(";\n");
    }

    fn launch_item(&mut self, item: &LaunchItem) {
        match &item.kind {
            LaunchItemKind::Cluster(size) => self.argument("cluster", size),
            LaunchItemKind::Threads(count) => self.argument("threads", count),
            LaunchItemKind::Persistent => self.text("persistent"),
            LaunchItemKind::Dependent => self.text("dependent"),
            LaunchItemKind::Roles(roles) => {
                self.text("roles { ");
                self.list(roles, Self::role);
                self.text(" }");
            }
        }
    }

    fn argument(&mut self, word: &str, value: &Expr) {
        self.text(word);
        self.text("(");
        self.expr(value, 0);
        self.text(")");
    }

    fn role(&mut self, role: &Role) {
        self.text(&role.name.text);
        self.text(": ");
        if let Some(count) = &role.count {
            self.expr(count, OPERAND);
            self.text(" ");
        }
        self.text(&role.unit.text);
        if let Some(registers) = &role.registers {
            self.text(" ");
            self.argument("regs", registers);
        }
    }

    fn schedule(&mut self, schedule: &Schedule) {
        self.text("schedule ");
        self.text(&schedule.stage.text);
        self.clauses(&schedule.clauses);
        self.ops(&schedule.ops);
    }

    fn staged_copy(&mut self, stage: &StagedCopy) {
        self.text("stage ");
        self.text(&stage.name.text);
        self.text("[");
        self.names(&stage.axes);
        self.text("] = ");
        self.text(&stage.source.text);
        self.clauses(&stage.clauses);
        self.ops(&stage.ops);
    }

    fn clauses(&mut self, clauses: &Clauses) {
        let Clauses { place, per, at, ring, via, by } = clauses;
        if let Some(place) = place {
            self.text(" in ");
            self.text(place.value.as_str());
        }
        if let Some(unit) = per {
            self.text(" per ");
            self.text(&unit.text);
        }
        if let Some(axis) = at {
            self.text(" at ");
            self.text(&axis.stage.text);
            self.text(".");
            self.text(&axis.axis.text);
        }
        if let Some(ring) = ring {
            self.text(" ");
            self.argument("ring", &ring.value);
        }
        if let Some(engine) = via {
            self.text(" via ");
            self.text(engine.value.as_str());
        }
        if let Some(role) = by {
            self.text(" by ");
            self.text(&role.text);
        }
    }

    fn unit(&mut self, unit: &Unit) {
        self.text("unit ");
        self.text(&unit.name.text);
        self.text(" { domain: [");
        self.exprs(&unit.domain);
        self.text("], box: [");
        self.exprs(&unit.shape);
        self.text("] }\n");
    }

    // ---- ops

    fn ops(&mut self, ops: &[Op]) {
        if ops.is_empty() {
            self.text(";\n");
            return;
        }
        self.text(" {\n");
        self.indent += 1;
        for op in ops {
            self.start();
            self.op(op);
        }
        self.indent -= 1;
        self.line("}");
    }

    /// `word axis by factor -> a, b`
    fn splitting(&mut self, word: &str, axis: &Name, by: &str, factor: &Expr, into: [&Name; 2]) {
        self.text(word);
        self.text(" ");
        self.text(&axis.text);
        self.text(by);
        self.expr(factor, 0);
        self.text(" -> ");
        self.list(&into, |p, name| p.text(&name.text));
    }

    fn op(&mut self, op: &Op) {
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
            OpKind::Bind { axes, scale, unit, range, raster, alternate } => {
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
                    self.list(raster, |p, (axis, size)| {
                        p.text(&axis.text);
                        p.text(": ");
                        p.expr(size, 0);
                    });
                    self.text(")");
                }
                if alternate.is_some() {
                    self.text(" alternate");
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

    // ---- expressions

    fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, |p, expr| p.expr(expr, 0));
    }

    /// Prints an expression where only forms at least as tight as `least` may stand without parentheses.
    fn expr(&mut self, expr: &Expr, least: u8) {
        let tightness = match &expr.kind {
            ExprKind::Binary(_, op, _) => op.value.precedence(),
            ExprKind::Cast(..) => CAST,
            ExprKind::Unary(..) => UNARY,
            // `or` ends with an operand of its own, so nothing can follow it but a looser form.
            ExprKind::Read(read) if read.otherwise.is_some() => UNARY,
            _ => OPERAND,
        };
        if tightness < least {
            self.text("(");
            self.expr(expr, 0);
            self.text(")");
            return;
        }
        match &expr.kind {
            ExprKind::Int(literal) => {
                self.text(&literal.value.to_string());
                if let Some(suffix) = literal.suffix {
                    self.text(suffix.as_str());
                }
            }
            ExprKind::Float(literal) => {
                self.text(&literal.digits);
                if let Some(suffix) = literal.suffix {
                    // Rust would read `0bf16` as binary digits and `2.f32` as a field.
                    let digits = literal.digits.as_str();
                    if digits.ends_with('.') {
                        self.text("0");
                    } else if !digits.contains(['.', 'e', 'E']) {
                        self.text(".0");
                    }
                    self.text(suffix.as_str());
                }
            }
            ExprKind::Bool(value) => self.text(if *value { "true" } else { "false" }),
            ExprKind::Constant(Constant::Infinity) => self.text("inf"),
            ExprKind::Constant(Constant::Nan) => self.text("nan"),
            ExprKind::Name(name) => self.text(&name.text),
            ExprKind::Read(read) => {
                self.text(&read.tensor.text);
                self.text("[");
                self.exprs(&read.indices);
                self.text("]");
                if let Some(otherwise) = &read.otherwise {
                    self.text(" or ");
                    self.expr(otherwise, UNARY);
                }
            }
            ExprKind::Unary(op, operand) => {
                self.text(match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                });
                self.expr(operand, UNARY);
            }
            ExprKind::Binary(lhs, op, rhs) => {
                let precedence = op.value.precedence();
                let chained = BinaryOp::is_comparison(op.value);
                self.expr(lhs, precedence + u8::from(chained));
                self.text(" ");
                self.text(op.value.as_str());
                self.text(" ");
                self.expr(rhs, precedence + 1);
            }
            ExprKind::Cast(value, ty) => {
                self.expr(value, CAST);
                self.text(" as ");
                self.text(ty.value.as_str());
            }
            ExprKind::If(parts) => {
                self.text("if ");
                self.expr(&parts.condition, 0);
                self.text(" { ");
                self.expr(&parts.then, 0);
                self.text(" } else ");
                if matches!(parts.otherwise.kind, ExprKind::If(_)) {
                    self.expr(&parts.otherwise, 0);
                } else {
                    self.text("{ ");
                    self.expr(&parts.otherwise, 0);
                    self.text(" }");
                }
            }
            ExprKind::Call(call) => {
                if let Some(namespace) = &call.namespace {
                    self.text(&namespace.text);
                    self.text("::");
                }
                self.text(&call.function.text);
                self.text("(");
                self.exprs(&call.args);
                self.text(")");
            }
            ExprKind::Reduction(reduction) => self.reduction(reduction),
            ExprKind::Fold(fold) => self.fold(fold),
            ExprKind::Tuple(parts) => {
                self.text("(");
                self.exprs(parts);
                self.text(if parts.len() == 1 { ",)" } else { ")" });
            }
        }
    }

    fn reduction(&mut self, reduction: &Reduction) {
        if let Some(order) = reduction.order {
            self.text(order.value.as_str());
            self.text(" ");
        }
        self.text(reduction.kind.value.as_str());
        self.text("(|");
        self.axis_decls(&reduction.axes);
        self.text("| ");
        self.expr(&reduction.body, 0);
        if let Some(interval) = &reduction.promote {
            self.text(", promote ");
            self.expr(interval, 0);
        }
        self.text(")");
    }

    fn fold(&mut self, fold: &Fold) {
        self.text("fold(|");
        self.axis_decls(&fold.axes);
        self.text("| init ");
        self.expr(&fold.init, 0);
        self.text(", step ");
        self.pattern(&fold.step_state);
        self.text(" => ");
        self.expr(&fold.step, 0);
        if let Some(merge) = &fold.merge {
            self.text(", merge (");
            self.pattern(&merge.left);
            self.text(", ");
            self.pattern(&merge.right);
            self.text(") => ");
            self.expr(&merge.value, 0);
        }
        self.text(")");
    }

    fn pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Name(name) => self.text(&name.text),
            Pattern::Tuple(parts, _) => {
                self.text("(");
                self.list(parts, Self::pattern);
                self.text(")");
            }
        }
    }
}
