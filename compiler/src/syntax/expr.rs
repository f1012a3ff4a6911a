//! Expressions: a Pratt parser on the cursor.
//!
//! From tight to loose, as in Rust: a read with its `or`; prefix `-` and `!`; `as`; `* / %`; `+ -`; `<< >>`; `&`; `^`;
//! `|`; comparisons, which do not chain; `&&`; `||`. The tree's height is bounded by the cursor, chains of operators
//! included.

use super::cursor::{Parse, Parser, Reported};
use super::literal::parse_number;
use crate::diag::codes::{BadLiteral, Expected, Foreign, ForeignSyntax, Named, RepeatedClause, UnknownWord, WordSet};
use crate::source::ast::{
    AxisDecl, BinaryOp, Call, Constant, ElementType, Expr, ExprKind, Fold, FoldMerge, IfExpr, IntLiteral, Name,
    Pattern, Range, Read, Reduction, ReductionKind, ReductionOrder, Spanned, UnaryOp,
};
use crate::source::{Delimiter, Span};

/// An expression with the height of its tree.
struct Built {
    expr: Expr,
    height: u32,
}

impl Built {
    fn leaf(kind: ExprKind, span: Span) -> Built {
        Built { expr: Expr { kind, span }, height: 1 }
    }
}

/// The greatest height of some subtrees, and the list of them.
#[derive(Default)]
struct Parts {
    exprs: Vec<Expr>,
    height: u32,
}

impl Parts {
    fn push(&mut self, built: Built) {
        self.height = self.height.max(built.height);
        self.exprs.push(built.expr);
    }
}

const FOLD_CLAUSES: &[&str] = &["init", "step", "merge"];

impl Parser<'_> {
    /// Parses an expression.
    pub(super) fn expr(&mut self) -> Parse<Expr> {
        self.binary(1).map(|built| built.expr)
    }

    /// `start..end` or `start..=end`.
    pub(super) fn range(&mut self) -> Parse<Range> {
        // `|` ends the axes of a reduction.
        let least = BinaryOp::BitOr.precedence() + 1;
        let start = self.binary(least)?.expr;
        let inclusive = match self.operator() {
            Some("..=") => true,
            Some("..") => false,
            _ => return Err(self.unexpected(Expected::Token(".."))),
        };
        self.eat_operator(if inclusive { "..=" } else { ".." });
        let end = self.binary(least)?.expr;
        let span = start.span.to(end.span);
        Ok(Range { start, end, inclusive, span })
    }

    /// `i` or `i in 0..H`.
    pub(super) fn axis_decl(&mut self, named: Named) -> Parse<AxisDecl> {
        let name = self.name(named)?;
        let range = match self.eat_word("in") {
            Some(_) => Some(self.range()?),
            None => None,
        };
        let span = self.since(name.span);
        Ok(AxisDecl { name, range, span })
    }

    /// `|k, l in 0..3|`
    fn closure_axes(&mut self) -> Parse<Vec<AxisDecl>> {
        self.expect_operator("|")?;
        let axes = self.list(|p| p.is_operator("|"), |p| p.axis_decl(Named::Axis))?;
        if axes.is_empty() {
            return Err(self.unexpected(Expected::Name(Named::Axis)));
        }
        self.expect_operator("|")?;
        Ok(axes)
    }

    pub(super) fn foreign<T>(&mut self, construct: Foreign, span: Span) -> Parse<T> {
        self.diagnostics.report(ForeignSyntax { construct, span });
        Err(Reported)
    }

    /// The same for the operator here.
    fn foreign_operator<T>(&mut self, operator: &'static str, construct: Foreign) -> Parse<T> {
        let span = self.eat_operator(operator).unwrap_or_else(|| self.here());
        self.foreign(construct, span)
    }

    /// The infix operator here, if the language has it.
    fn binary_operator(&mut self) -> Parse<Option<BinaryOp>> {
        let Some(operator) = self.operator() else { return Ok(None) };
        // What ends an expression most often, before eighteen comparisons of text.
        if matches!(operator.as_bytes(), [b',' | b';' | b'.' | b':', ..]) {
            return Ok(None);
        }
        let op = match operator {
            "+" => BinaryOp::Add,
            "-" => BinaryOp::Sub,
            "*" => BinaryOp::Mul,
            "/" => BinaryOp::Div,
            "%" => BinaryOp::Rem,
            "==" => BinaryOp::Eq,
            "!=" => BinaryOp::Ne,
            "<" => BinaryOp::Lt,
            "<=" => BinaryOp::Le,
            ">" => BinaryOp::Gt,
            ">=" => BinaryOp::Ge,
            "&&" => BinaryOp::And,
            "||" => BinaryOp::Or,
            "&" => BinaryOp::BitAnd,
            "|" => BinaryOp::BitOr,
            "^" => BinaryOp::BitXor,
            "<<" => BinaryOp::Shl,
            ">>" => BinaryOp::Shr,
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    /// Operators of at least this precedence.
    fn binary(&mut self, least: u8) -> Parse<Built> {
        let mut left = self.cast()?;
        loop {
            let Some(op) = self.binary_operator()? else { return Ok(left) };
            let precedence = op.precedence();
            if precedence < least {
                return Ok(left);
            }
            let first = self.bump();
            let span = if op.as_str().len() > 1 { first.to(self.bump()) } else { first };
            let right = self.nested(|p| p.binary(precedence + 1))?;
            let height = left.height.max(right.height) + 1;
            let whole = left.expr.span.to(right.expr.span);
            self.check_height(height, span)?;
            if op.is_comparison()
                && let Some(next) = self.binary_operator()?
                && next.is_comparison()
            {
                return self.foreign(Foreign::ChainedComparison, self.here());
            }
            let op = Spanned { value: op, span };
            let kind = ExprKind::Binary(Box::new(left.expr), op, Box::new(right.expr));
            left = Built { expr: Expr { kind, span: whole }, height };
        }
    }

    /// `unary as type as type …`
    fn cast(&mut self) -> Parse<Built> {
        let mut built = self.unary()?;
        while self.eat_word("as").is_some() {
            let ty = self.element_type()?;
            let span = built.expr.span.to(ty.span);
            let height = built.height + 1;
            self.check_height(height, ty.span)?;
            built = Built { expr: Expr { kind: ExprKind::Cast(Box::new(built.expr), ty), span }, height };
        }
        Ok(built)
    }

    /// The name of an element type.
    pub(super) fn element_type(&mut self) -> Parse<Spanned<ElementType>> {
        self.one_of(WordSet::ElementType, &ElementType::NAMES, ElementType::from_name)
    }

    /// One word of a set.
    pub(super) fn one_of<T>(
        &mut self,
        set: WordSet,
        known: &'static [&'static str],
        from_word: impl FnOnce(&str) -> Option<T>,
    ) -> Parse<Spanned<T>> {
        let span = self.here();
        let Some(word) = self.word() else {
            return Err(self.unexpected(match known {
                [only] => Expected::Token(only),
                _ => Expected::Word(set),
            }));
        };
        match from_word(word) {
            Some(value) => {
                self.bump();
                Ok(Spanned { value, span })
            }
            None => {
                self.diagnostics.report(UnknownWord { set, word: word.to_owned(), span, known });
                Err(Reported)
            }
        }
    }

    fn unary(&mut self) -> Parse<Built> {
        // What `$e:expr` of a user's macro matched binds like parentheses.
        if let Some(result) = self.invisible_group(|p| p.binary(1)) {
            let built = result?;
            return self.postfix(built);
        }
        let op = match self.operator() {
            Some("-") => UnaryOp::Neg,
            Some("!") => UnaryOp::Not,
            _ => return self.primary(),
        };
        let first = self.bump();
        let operand = self.nested(Self::unary)?;
        let span = first.to(operand.expr.span);
        let height = operand.height + 1;
        self.check_height(height, first)?;
        Ok(Built { expr: Expr { kind: ExprKind::Unary(op, Box::new(operand.expr)), span }, height })
    }

    fn primary(&mut self) -> Parse<Built> {
        let built = self.operand()?;
        self.postfix(built)
    }

    /// What may follow an operand: `or`, and what Rust has and the language does not.
    fn postfix(&mut self, built: Built) -> Parse<Built> {
        if self.is_word("or") {
            let place = self.bump();
            let ExprKind::Read(mut read) = built.expr.kind else {
                return self.foreign(Foreign::OrAfterNonRead, place);
            };
            if read.otherwise.is_some() {
                return self.foreign(Foreign::OrAfterNonRead, place);
            }
            let otherwise = self.nested(Self::unary)?;
            let span = built.expr.span.to(otherwise.expr.span);
            let height = built.height.max(otherwise.height) + 1;
            self.check_height(height, place)?;
            read.otherwise = Some(Box::new(otherwise.expr));
            return Ok(Built { expr: Expr { kind: ExprKind::Read(read), span }, height });
        }
        if self.is_operator(".") {
            return self.foreign(Foreign::Dot, self.here());
        }
        if self.is_open(Delimiter::Bracket) {
            let construct = match &built.expr.kind {
                ExprKind::Read(read) => Foreign::IndexedRead(read.tensor.text.clone()),
                _ => Foreign::IndexedExpression,
            };
            return self.foreign(construct, built.expr.span);
        }
        Ok(built)
    }

    fn operand(&mut self) -> Parse<Built> {
        let start = self.here();
        if let Some(text) = self.literal() {
            return match parse_number(text) {
                Ok(kind) => Ok(Built::leaf(kind, self.bump())),
                Err(problem) => {
                    self.diagnostics.report(BadLiteral { text: text.to_owned(), problem, span: start });
                    // It stands for a number: whatever else is wrong in this statement can still be found.
                    self.bump();
                    let zero = ExprKind::Int(IntLiteral { value: 0, suffix: None });
                    Ok(Built::leaf(zero, start))
                }
            };
        }
        if self.is_open(Delimiter::Paren) {
            return self.parenthesised(start);
        }
        let Some(word) = self.word() else {
            return match self.operator() {
                Some("|" | "||") => self.foreign(Foreign::Closure, start),
                Some("&" | "&&") => self.foreign(Foreign::Reference, start),
                Some("~") => self.foreign(Foreign::Tilde, start),
                _ if self.is_open(Delimiter::Brace) => self.foreign(Foreign::Block, start),
                _ => Err(self.unexpected(Expected::Expression)),
            };
        };
        match word {
            "true" | "false" => return Ok(Built::leaf(ExprKind::Bool(word == "true"), self.bump())),
            "inf" => return Ok(Built::leaf(ExprKind::Constant(Constant::Infinity), self.bump())),
            "nan" => return Ok(Built::leaf(ExprKind::Constant(Constant::Nan), self.bump())),
            "if" => return self.if_expr(),
            _ => {}
        }
        if let (Some(order), Some(_)) = (ReductionOrder::from_word(word), self.word_at(1)) {
            let order = Spanned { value: order, span: self.bump() };
            return self.reduction(Some(order));
        }
        // `max(a, b)` is a function, `max(|j| …)` a reduction.
        if self.is_open_at(1, Delimiter::Paren) && (self.is_operator_at(2, "|") || self.is_operator_at(2, "||")) {
            return if word == "fold" { self.fold() } else { self.reduction(None) };
        }
        let name = self.name(Named::Function)?;
        if self.eat_operator("::").is_some() {
            let function = self.name(Named::Function)?;
            if !self.is_open(Delimiter::Paren) {
                return self.foreign(Foreign::Path, name.span.to(function.span));
            }
            return self.call(Some(name), function);
        }
        if self.is_open(Delimiter::Paren) {
            return self.call(None, name);
        }
        if self.is_open(Delimiter::Bracket) {
            return self.read(name);
        }
        if self.is_operator("!") {
            return self.foreign(Foreign::MacroCall, self.here());
        }
        let span = name.span;
        Ok(Built::leaf(ExprKind::Name(name), span))
    }

    /// Expressions between commas that fill a group.
    fn exprs(&mut self, delimiter: Delimiter) -> Parse<Parts> {
        let mut parts = Parts::default();
        self.group_list(delimiter, |p| {
            let built = p.binary(1)?;
            if let Some(range) = ["..", "..="].into_iter().find(|range| p.is_operator(range)) {
                return p.foreign_operator(range, Foreign::RangeValue);
            }
            parts.push(built);
            Ok(())
        })?;
        Ok(parts)
    }

    /// The parts of a list as children of one node.
    fn node(&mut self, height: u32, kind: ExprKind, span: Span) -> Parse<Built> {
        let height = height + 1;
        self.check_height(height, span)?;
        Ok(Built { expr: Expr { kind, span }, height })
    }

    fn parenthesised(&mut self, start: Span) -> Parse<Built> {
        let mut comma = false;
        let mut parts = Parts::default();
        self.group(Delimiter::Paren, |p| {
            loop {
                parts.push(p.binary(1)?);
                match p.eat_operator(",") {
                    Some(_) => comma = true,
                    None => return Ok(()),
                }
                if p.at_end() {
                    return Ok(());
                }
            }
        })?;
        let span = self.since(start);
        if !comma && let Some(mut expr) = parts.exprs.pop() {
            expr.span = span;
            return Ok(Built { expr, height: parts.height });
        }
        self.node(parts.height, ExprKind::Tuple(parts.exprs), span)
    }

    fn call(&mut self, namespace: Option<Name>, function: Name) -> Parse<Built> {
        let start = namespace.as_ref().map_or(function.span, |name| name.span);
        let args = self.exprs(Delimiter::Paren)?;
        let span = self.since(start);
        self.node(args.height, ExprKind::Call(Call { namespace, function, args: args.exprs }), span)
    }

    fn read(&mut self, tensor: Name) -> Parse<Built> {
        let indices = self.exprs(Delimiter::Bracket)?;
        let span = self.since(tensor.span);
        self.node(indices.height, ExprKind::Read(Read { tensor, indices: indices.exprs, otherwise: None }), span)
    }

    fn if_expr(&mut self) -> Parse<Built> {
        let start = self.bump();
        let condition = self.nested(|p| p.binary(1))?;
        let then = self.group(Delimiter::Brace, |p| p.binary(1))?;
        if self.eat_word("else").is_none() {
            return self.foreign(Foreign::IfWithoutElse, start);
        }
        let otherwise = if self.is_word("if") {
            self.nested(Self::if_expr)?
        } else {
            self.group(Delimiter::Brace, |p| p.binary(1))?
        };
        let span = self.since(start);
        let height = condition.height.max(then.height).max(otherwise.height);
        let parts = IfExpr { condition: condition.expr, then: then.expr, otherwise: otherwise.expr };
        self.node(height, ExprKind::If(Box::new(parts)), span)
    }

    fn reduction(&mut self, order: Option<Spanned<ReductionOrder>>) -> Parse<Built> {
        let kind = self.one_of(WordSet::Reduction, ReductionKind::WORDS, ReductionKind::from_word)?;
        let (axes, body, promote) = self.group(Delimiter::Paren, |p| {
            let axes = p.closure_axes()?;
            let body = p.binary(1)?;
            let mut promote = None;
            if p.eat_operator(",").is_some() && !p.at_end() {
                p.one_of(WordSet::FoldClause, &["promote"], |word| (word == "promote").then_some(()))?;
                promote = Some(p.binary(1)?);
                p.eat_operator(",");
            }
            Ok((axes, body, promote))
        })?;
        let span = self.since(order.map_or(kind.span, |order| order.span));
        let height = body.height.max(promote.as_ref().map_or(0, |built| built.height));
        let promote = promote.map(|built| built.expr);
        let reduction = Reduction { kind, order, axes, body: body.expr, promote };
        self.node(height, ExprKind::Reduction(Box::new(reduction)), span)
    }

    fn fold(&mut self) -> Parse<Built> {
        let start = self.bump();
        let (fold, height) = self.group(Delimiter::Paren, |p| p.fold_clauses(start))?;
        let span = self.since(start);
        self.node(height, ExprKind::Fold(Box::new(fold)), span)
    }

    /// `|j| init …, step … => …, merge (…, …) => …`, the clauses in any order.
    fn fold_clauses(&mut self, keyword: Span) -> Parse<(Fold, u32)> {
        let axes = self.closure_axes()?;
        let (mut init, mut step, mut merge) = (None, None, None);
        let mut places = [None; 3];
        let mut height = 0;
        while !self.at_end() {
            let span = self.here();
            let clause = self.one_of(WordSet::FoldClause, FOLD_CLAUSES, |word| {
                FOLD_CLAUSES.iter().position(|&known| known == word)
            })?;
            match clause.value {
                0 => {
                    let value = self.binary(1)?;
                    height = height.max(value.height);
                    self.once(&mut init, &mut places[0], "init", span, value.expr);
                }
                1 => {
                    let state = self.pattern()?;
                    self.expect_operator("=>")?;
                    let value = self.binary(1)?;
                    height = height.max(value.height);
                    self.once(&mut step, &mut places[1], "step", span, (state, value.expr));
                }
                _ => {
                    let mut sides = self.group_list(Delimiter::Paren, Self::pattern)?;
                    let (Some(right), Some(left), true) = (sides.pop(), sides.pop(), sides.is_empty()) else {
                        self.diagnostics.report(RepeatedClause { clause: "merge (p, q)", span, first: None });
                        return Err(Reported);
                    };
                    self.expect_operator("=>")?;
                    let value = self.binary(1)?;
                    height = height.max(value.height);
                    self.once(&mut merge, &mut places[2], "merge", span, FoldMerge { left, right, value: value.expr });
                }
            }
            if self.eat_operator(",").is_none() && !self.at_end() {
                return Err(self.unexpected(Expected::Token(",")));
            }
        }
        let Some(init) = init else { return self.missing("init", keyword) };
        let Some((step_state, step)) = step else { return self.missing("step", keyword) };
        Ok((Fold { axes, init, step_state, step, merge }, height))
    }

    /// Reports a clause that must be there.
    pub(super) fn missing<T>(&mut self, clause: &'static str, span: Span) -> Parse<T> {
        self.diagnostics.report(RepeatedClause { clause, span, first: None });
        Err(Reported)
    }

    /// `m` or `(m, s)`.
    fn pattern(&mut self) -> Parse<Pattern> {
        if self.is_open(Delimiter::Paren) {
            let start = self.here();
            let parts = self.group_list(Delimiter::Paren, Self::pattern)?;
            return Ok(Pattern::Tuple(parts, self.since(start)));
        }
        if self.word().is_none() {
            return Err(self.unexpected(Expected::Pattern));
        }
        self.name(Named::Item).map(Pattern::Name)
    }
}
