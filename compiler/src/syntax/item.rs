//! Statements of a kernel's body: equations, `launch`, `schedule`, `stage`, `inline`, `unit`, `tune`, `pass`.

use super::cursor::{Parse, Parser, Reported};
use crate::diag::{
    codes::{Expected, Foreign, ForeignSyntax, Named, RepeatedClause, UnknownWord, WordSet},
    suggest::closest,
};
use crate::source::ast::{
    AxisDecl, Candidates, Clauses, Engine, Equation, Expr, ExprKind, Inline, Item, Launch, LaunchItem, LaunchItemKind,
    Name, Pass, Place, Role, STATEMENTS, Scatter, Schedule, Spanned, StagedCopy, Tune, TuneRecord, Unit, Update,
};
use crate::source::{Delimiter, Span, TokenKind};

const CLAUSES: &[&str] = &["in", "per", "at", "ring", "via", "by"];
const LAUNCH_ITEMS: &[&str] = &["cluster", "threads", "persistent", "dependent", "roles"];
const UNIT_FIELDS: &[&str] = &["domain", "box"];

/// Words with which people start a statement in Rust.
const RUST_STATEMENTS: &[&str] =
    &["let", "for", "while", "loop", "fn", "return", "if", "match", "struct", "use", "const", "static", "mod", "impl"];

/// What stands between the brackets of an equation's left side.
#[derive(Default)]
struct Left {
    /// What is a name, maybe with its domain.
    axes: Vec<AxisDecl>,
    /// All indices, if one of them is no name.
    indices: Vec<Expr>,
}

/// Operators that assign in Rust.
const ASSIGNMENTS: &[&str] = &["+=", "-=", "*=", "/=", "%=", "^="];

impl Parser<'_> {
    /// Statements up to the end of the group. One that does not parse is reported and left out.
    pub(super) fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.at_end() {
            if self.eat_operator(";").is_some() {
                continue;
            }
            match self.item() {
                Ok(item) => items.push(item),
                Err(Reported) => self.skip_statement(),
            }
        }
        items
    }

    /// Whether a statement can start here: a keyword that is used as one, or `name[`.
    fn starts_item(&self) -> bool {
        let Some(word) = self.word() else { return false };
        self.is_open_at(1, Delimiter::Bracket) || (STATEMENTS.contains(&word) && self.word_at(1).is_some())
    }

    fn item(&mut self) -> Parse<Item> {
        let start = self.here();
        if self.is_open(Delimiter::Paren) && self.is_open_after_group(Delimiter::Bracket) {
            return self.equation().map(Item::Equation);
        }
        let Some(word) = self.word() else { return Err(self.unexpected(Expected::Statement)) };
        // A tensor may be called `stage` or `launch`: `stage[i] = …` is its equation.
        if self.is_open_at(1, Delimiter::Bracket) {
            return self.equation().map(Item::Equation);
        }
        if self.is_operator_at(1, "=") {
            let construct = Foreign::EquationWithoutAxes(word.to_owned());
            self.diagnostics.report(ForeignSyntax { construct, span: start });
            return Err(Reported);
        }
        match word {
            "launch" => self.launch().map(Item::Launch),
            "schedule" => self.schedule().map(Item::Schedule),
            "stage" => self.staged_copy().map(Item::Stage),
            "inline" => self.inline().map(Item::Inline),
            "unit" => self.unit().map(Item::Unit),
            "tune" => self.tune().map(Item::Tune),
            "pass" => self.pass().map(Item::Pass),
            _ if RUST_STATEMENTS.contains(&word) => {
                let construct = Foreign::Statement(word.to_owned());
                self.diagnostics.report(ForeignSyntax { construct, span: start });
                Err(Reported)
            }
            _ => {
                let meant = closest(word, STATEMENTS.iter().copied());
                let word = word.to_owned();
                self.diagnostics.report(UnknownWord { set: WordSet::Statement, word, span: start, known: STATEMENTS });
                self.bump();
                if matches!(meant, Some("schedule" | "stage")) {
                    self.block_after_error();
                }
                Err(Reported)
            }
        }
    }

    fn equation(&mut self) -> Parse<Equation> {
        let start = self.here();
        let targets = if self.is_open(Delimiter::Paren) {
            self.group_list(Delimiter::Paren, |p| p.name(Named::Tensor))?
        } else {
            vec![self.name(Named::Tensor)?]
        };
        let mut left = Left::default();
        self.group_list(Delimiter::Bracket, |p| p.left_index(&mut left))?;
        let head = self.since(start);
        let Left { axes, indices } = left;
        if indices.iter().any(|index| !matches!(index.kind, ExprKind::Name(_))) {
            let update = self.update()?;
            let scatter = Some(Scatter { indices, update });
            let value = self.expr()?;
            self.end_statement(Self::starts_item);
            return Ok(Equation { targets, axes, scatter, value, head, span: self.since(start) });
        }
        if let Some(&op) = ASSIGNMENTS.iter().find(|op| self.is_operator(op)) {
            let place = self.eat_operator(op).unwrap_or(head);
            return self.foreign(Foreign::CompoundAssignment(op), place);
        }
        self.expect_operator("=")?;
        let value = self.expr()?;
        self.end_statement(Self::starts_item);
        Ok(Equation { targets, axes, scatter: None, value, head, span: self.since(start) })
    }

    /// `+=`, `max=`, `min=`, or `=`.
    fn update(&mut self) -> Parse<Spanned<Update>> {
        let start = self.here();
        let value = match self.word().filter(|_| self.is_operator_at(1, "=")) {
            Some("max") => Update::Max,
            Some("min") => Update::Min,
            _ if self.eat_operator("+=").is_some() => return Ok(Spanned { value: Update::Add, span: start }),
            _ => {
                if let Some(&op) = ASSIGNMENTS.iter().find(|op| self.is_operator(op)) {
                    return self.foreign(Foreign::ScatterAssignment(op), start);
                }
                self.expect_operator("=")?;
                return Ok(Spanned { value: Update::Assign, span: start });
            }
        };
        self.bump();
        self.expect_operator("=")?;
        Ok(Spanned { value, span: self.since(start) })
    }

    /// An index on the left of `=`: an axis, maybe with its domain, or the place that an expression gives.
    fn left_index(&mut self, left: &mut Left) -> Parse<()> {
        let index = |axis: &AxisDecl| Expr { kind: ExprKind::Name(axis.name.clone()), span: axis.name.span };
        let is_axis =
            self.word().is_some_and(|_| self.is_last() || self.is_operator_at(1, ",") || self.word_at(1) == Some("in"));
        if is_axis || self.is_operator(",") {
            let axis = self.axis_decl(Named::Axis)?;
            if !left.indices.is_empty() {
                left.indices.push(index(&axis));
            }
            left.axes.push(axis);
            return Ok(());
        }
        let place = self.expr()?;
        if left.indices.is_empty() {
            left.indices.extend(left.axes.iter().map(index));
        }
        left.indices.push(place);
        Ok(())
    }

    fn launch(&mut self) -> Parse<Launch> {
        let start = self.bump();
        let mut items: Vec<LaunchItem> = Vec::new();
        loop {
            let item = self.launch_item()?;
            let kind = std::mem::discriminant(&item.kind);
            match items.iter().find(|earlier| std::mem::discriminant(&earlier.kind) == kind) {
                Some(earlier) => {
                    let (clause, first) = (item.kind.keyword(), Some(earlier.span));
                    self.diagnostics.report(RepeatedClause { clause, span: item.span, first });
                }
                None => items.push(item),
            }
            if self.eat_operator(",").is_none() || self.is_operator(";") {
                break;
            }
        }
        self.end_statement(Self::starts_item);
        Ok(Launch { items, span: self.since(start) })
    }

    fn launch_item(&mut self) -> Parse<LaunchItem> {
        let index = |word: &str| LAUNCH_ITEMS.iter().position(|&known| known == word);
        let word = self.one_of(WordSet::LaunchItem, LAUNCH_ITEMS, index)?;
        let kind = match word.value {
            0 => LaunchItemKind::Cluster(self.group(Delimiter::Paren, |p| p.size_of_a_row("cluster"))?),
            1 => LaunchItemKind::Threads(self.group(Delimiter::Paren, |p| p.size_of_a_row("threads"))?),
            2 => LaunchItemKind::Persistent,
            3 => LaunchItemKind::Dependent,
            _ => LaunchItemKind::Roles(self.group_list(Delimiter::Brace, Self::role)?),
        };
        Ok(LaunchItem { kind, span: self.since(word.span) })
    }

    /// `math: 2 warpgroup alternate regs(232)`
    /// One number: what CUDA has several of.
    fn size_of_a_row(&mut self, item: &'static str) -> Parse<Expr> {
        let first = self.expr()?;
        if !self.is_operator(",") {
            return Ok(first);
        }
        let mut numbers = vec![number(&first)];
        while self.eat_operator(",").is_some() && !self.at_end() {
            numbers.push(number(&self.expr()?));
        }
        let product = numbers.into_iter().try_fold(1_u64, |product, number| product.checked_mul(number?));
        let (construct, span) = (Foreign::BlockDimensions(item, product), self.since(first.span));
        self.diagnostics.report(ForeignSyntax { construct, span });
        Err(Reported)
    }

    fn role(&mut self) -> Parse<Role> {
        let name = self.name(Named::Role)?;
        self.expect_operator(":")?;
        let counted = self.literal().is_some()
            || self.is_open(Delimiter::Paren)
            || self.word_at(1).is_some_and(|next| !["alternate", "regs"].contains(&next));
        let count = if counted { Some(self.expr()?) } else { None };
        let unit = self.name(Named::Unit)?;
        let alternate = self.eat_word("alternate");
        let registers = match self.eat_word("regs") {
            Some(_) => Some(self.group(Delimiter::Paren, Self::expr)?),
            None => None,
        };
        let span = self.since(name.span);
        Ok(Role { name, count, unit, alternate, registers, span })
    }

    /// The clauses of a stage, up to its `;` or block. After an error the ops are parsed all the same, so that what is
    /// wrong with them is said too.
    fn clauses(&mut self) -> Parse<Clauses> {
        let result = self.clauses_strictly();
        if result.is_err() {
            self.block_after_error();
        }
        result
    }

    /// After an error before a block of ops: says what is wrong with the ops, too.
    fn block_after_error(&mut self) {
        if self.skip_to_block() {
            // An error in there has been reported, and there is no statement to put the ops into.
            let _ops = self.ops();
            self.recovered = true;
        }
    }

    fn clauses_strictly(&mut self) -> Parse<Clauses> {
        let mut clauses = Clauses::default();
        let mut places = [None; 6];
        while !self.is_operator(";") && !self.is_open(Delimiter::Brace) && !self.at_end() {
            let span = self.here();
            let clause =
                self.one_of(WordSet::Clause, CLAUSES, |word| CLAUSES.iter().position(|&known| known == word))?;
            let at = &mut places[clause.value];
            match clause.value {
                0 => {
                    let place = self.one_of(WordSet::Place, Place::WORDS, Place::from_word)?;
                    self.once(&mut clauses.place, at, "in", span, place);
                }
                1 => {
                    let unit = self.name(Named::Unit)?;
                    self.once(&mut clauses.per, at, "per", span, unit);
                }
                2 => {
                    let axis = self.axis_ref()?;
                    self.once(&mut clauses.at, at, "at", span, axis);
                }
                3 => {
                    let value = Box::new(self.group(Delimiter::Paren, Self::expr)?);
                    let ring = Spanned { value, span: self.since(span) };
                    self.once(&mut clauses.ring, at, "ring", span, ring);
                }
                4 => {
                    let engine = self.one_of(WordSet::Engine, Engine::WORDS, Engine::from_word)?;
                    self.once(&mut clauses.via, at, "via", span, engine);
                }
                _ => {
                    let role = self.name(Named::Role)?;
                    self.once(&mut clauses.by, at, "by", span, role);
                }
            }
        }
        Ok(clauses)
    }

    fn schedule(&mut self) -> Parse<Schedule> {
        let start = self.bump();
        let stage = self.name(Named::Stage)?;
        let clauses = self.clauses()?;
        let head = self.since(start);
        let ops = self.ops()?;
        Ok(Schedule { stage, clauses, ops, head, span: self.since(start) })
    }

    fn staged_copy(&mut self) -> Parse<StagedCopy> {
        let start = self.bump();
        let header = self.staged_copy_header();
        let Ok((name, axes, source)) = header else {
            self.block_after_error();
            return Err(Reported);
        };
        let clauses = self.clauses()?;
        let head = self.since(start);
        let ops = self.ops()?;
        Ok(StagedCopy { name, axes, source, clauses, ops, head, span: self.since(start) })
    }

    /// `NAME[axes] = TENSOR`
    fn staged_copy_header(&mut self) -> Parse<(Name, Vec<Name>, Name)> {
        let name = self.name(Named::Stage)?;
        let axes = self.group_list(Delimiter::Bracket, |p| p.name(Named::Axis))?;
        self.expect_operator("=")?;
        Ok((name, axes, self.name(Named::Tensor)?))
    }

    fn inline(&mut self) -> Parse<Inline> {
        let start = self.bump();
        let stage = self.name(Named::Stage)?;
        self.end_statement(Self::starts_item);
        Ok(Inline { stage, span: self.since(start) })
    }

    /// `unit NAME { domain: […], box: […] }`
    fn unit(&mut self) -> Parse<Unit> {
        let start = self.bump();
        let name = self.name(Named::Unit)?;
        let (mut domain, mut shape) = (None, None);
        let mut places: [Option<Span>; 2] = [None; 2];
        let fields = self.group_list(Delimiter::Brace, |p| {
            let index = |word: &str| UNIT_FIELDS.iter().position(|&known| known == word);
            let field = p.one_of(WordSet::UnitField, UNIT_FIELDS, index)?;
            p.expect_operator(":")?;
            let sizes = p.group_list(Delimiter::Bracket, Self::expr)?;
            if field.value == 0 {
                p.once(&mut domain, &mut places[0], "domain", field.span, sizes);
            } else {
                p.once(&mut shape, &mut places[1], "box", field.span, sizes);
            }
            Ok(())
        });
        let span = self.since(start);
        self.recovered = self.tokens.kind(span.last.0 as usize) == Some(TokenKind::Close(Delimiter::Brace));
        fields?;
        let Some(domain) = domain else { return self.missing("domain", name.span) };
        let Some(shape) = shape else { return self.missing("box", name.span) };
        self.recovered = false;
        Ok(Unit { name, domain, shape, span })
    }

    fn tune(&mut self) -> Parse<Tune> {
        let start = self.bump();
        let mut constants = vec![self.candidates()?];
        while self.eat_operator(",").is_some() {
            constants.push(self.candidates()?);
        }
        let record = if self.is_operator("=") { Some(self.tune_record()?) } else { None };
        self.end_statement(Self::starts_item);
        Ok(Tune { constants, record, span: self.since(start) })
    }

    /// `NAME in [64, 128]`
    fn candidates(&mut self) -> Parse<Candidates> {
        let name = self.name(Named::Item)?;
        self.expect_word("in")?;
        let values = self.group_list(Delimiter::Bracket, Self::expr)?;
        let span = self.since(name.span);
        Ok(Candidates { name, values, span })
    }

    /// `= (64, 3) by "…"`
    fn tune_record(&mut self) -> Parse<TuneRecord> {
        let start = self.expect_operator("=")?;
        let values = self.group_list(Delimiter::Paren, Self::expr)?;
        self.expect_word("by")?;
        let value = self.string()?;
        let by = Spanned { value, span: self.bump() };
        Ok(TuneRecord { values, by, span: self.since(start) })
    }

    fn pass(&mut self) -> Parse<Pass> {
        let start = self.bump();
        let name = self.name(Named::Item)?;
        let items = self.group(Delimiter::Brace, |p| Ok(p.items()))?;
        Ok(Pass { name, items, span: self.since(start) })
    }
}

/// The value of a literal.
const fn number(e: &Expr) -> Option<u64> {
    match &e.kind {
        ExprKind::Int(literal) => Some(literal.value),
        _ => None,
    }
}
