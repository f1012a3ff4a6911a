//! The pretty printer: a syntax tree as source text that parses to the same tree. Tests of the parser rest on it.

mod expr;
mod op;

use super::ast::{
    Attribute, AxisDecl, BinaryOp, Clauses, Equation, Expr, Fact, Item, Kernel, Launch, LaunchItem, LaunchItemKind,
    Name, Param, Program, Range, Role, Scatter, Schedule, Shape, StagedCopy, Type, Unit,
};

/// Binding strength of the forms around the infix operators, on the scale of [`super::ast::BinaryOp::precedence`].
const CAST: u8 = 10;
const UNARY: u8 = 11;
const OPERAND: u8 = 12;

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

/// One expression.
#[must_use]
pub fn print_expr(expr: &Expr) -> String {
    let mut p = Printer::default();
    p.expr(expr, 0);
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
        self.text(ty.element.value.name());
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
                self.list(&tune.constants, |p, constant| {
                    p.text(&constant.name.text);
                    p.text(" in [");
                    p.exprs(&constant.values);
                    p.text("]");
                });
                if let Some(record) = &tune.record {
                    self.text(" = (");
                    self.exprs(&record.values);
                    self.text(&format!(") by {:?}", record.by.value));
                }
                self.text(";\n");
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
        match &equation.scatter {
            Some(scatter) => self.places(scatter, &equation.axes),
            None => self.axis_decls(&equation.axes),
        }
        self.text("] ");
        self.text(equation.scatter.as_ref().map_or("=", |scatter| scatter.update.value.as_str()));
        self.text(" ");
        self.expr(&equation.value, 0);
        self.text(";\n");
    }

    fn axis_decls(&mut self, axes: &[AxisDecl]) {
        self.list(axes, Self::axis_decl);
    }

    fn axis_decl(&mut self, axis: &AxisDecl) {
        self.text(&axis.name.text);
        if let Some(range) = &axis.range {
            self.text(" in ");
            self.range(range);
        }
    }

    /// What stands on the left of a scatter: axes as they were declared.
    fn places(&mut self, scatter: &Scatter, axes: &[AxisDecl]) {
        self.list(&scatter.indices, |p, index| {
            let declared = axes.iter().find(|axis| axis.name.span == index.span);
            match declared {
                Some(axis) => p.axis_decl(axis),
                None => p.expr(index, 0),
            }
        });
    }

    fn range(&mut self, range: &Range) {
        // `|` ends the axes of a reduction.
        let least = BinaryOp::BitOr.precedence() + 1;
        self.expr(&range.start, least);
        self.text(if range.inclusive { "..=" } else { ".." });
        self.expr(&range.end, least);
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
        if role.alternate.is_some() {
            self.text(" alternate");
        }
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
}
