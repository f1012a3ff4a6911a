//! Kernels: attributes, the header, and the sequence of kernels in one invocation.

use super::cursor::{Parse, Parser, Reported};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    BadFact, BadLiteral, EmptyInvocation, Expected, Foreign, ForeignSyntax, LiteralProblem, Named, UnknownWord, WordSet,
};
use crate::source::ast::{Attribute, Dim, Expr, ExprKind, Fact, Kernel, Name, Param, Program, Shape, Type, Verbatim};
use crate::source::{Delimiter, TokenBuffer};

/// Parses everything inside one `schedule! { … }`.
///
/// The program holds what could be read even when there are errors: kernels whose name is known are in it, with the
/// parameters and statements that parse, so that the macro can still declare the struct.
#[must_use]
pub fn parse(tokens: &TokenBuffer) -> (Program, Diagnostics) {
    let mut parser = Parser::new(tokens);
    let mut program = Program::default();
    while !parser.at_end() {
        if let Some(kernel) = parser.kernel() {
            program.kernels.push(kernel);
        }
    }
    if program.kernels.is_empty() && parser.diagnostics.is_empty() {
        parser.diagnostics.report(EmptyInvocation);
    }
    (program, parser.diagnostics)
}

/// The parts of a header, filled in as they are parsed.
#[derive(Default)]
struct Header {
    name: Option<Name>,
    inputs: Vec<Param>,
    outputs: Vec<Param>,
    facts: Vec<Fact>,
}

impl Parser<'_> {
    /// One kernel. Always takes at least one token.
    fn kernel(&mut self) -> Option<Kernel> {
        let attributes = self.attributes();
        let start = self.here();
        let visibility = self.visibility();
        let mut header = Header::default();
        let result = self.header(&mut header);
        let span = self.since(start);
        let mut items = Vec::new();
        if result.is_ok() || self.skip_to_body() {
            // The error of a missing body has been reported inside.
            if let Ok(body) = self.group(Delimiter::Brace, |p| Ok(p.items())) {
                items = body;
            } else {
                self.skip_tree();
            }
        }
        let Header { name, inputs, outputs, facts } = header;
        Some(Kernel {
            attributes,
            visibility,
            name: name?,
            inputs,
            outputs,
            facts,
            items,
            header: span,
            span: self.since(start),
        })
    }

    /// After an error in a header: to its body, if there is one before the next kernel.
    fn skip_to_body(&mut self) -> bool {
        let mut first = true;
        while !self.at_end() {
            if self.is_open(Delimiter::Brace) {
                return true;
            }
            if !first && (self.is_word("kernel") || self.is_word("pub")) {
                return false;
            }
            first = false;
            self.skip_tree();
        }
        false
    }

    /// `pub`, `pub(crate)`, …
    fn visibility(&mut self) -> Option<Verbatim> {
        let start = self.eat_word("pub")?;
        if self.is_open(Delimiter::Paren) {
            self.skip_tree();
        }
        let span = self.since(start);
        Some(Verbatim { text: self.tokens.span_text(span), span })
    }

    fn header(&mut self, header: &mut Header) -> Parse<()> {
        if !self.is_word("kernel") {
            let Some(word) = self.word() else { return Err(self.unexpected(Expected::Kernel)) };
            if self.word_at(1).is_none() {
                return Err(self.unexpected(Expected::Kernel));
            }
            let (word, span) = (word.to_owned(), self.here());
            self.diagnostics.report(UnknownWord { set: WordSet::TopLevel, word, span, known: &["kernel"] });
            // `fn Name(…)`: the rest may still be right.
            if !self.is_open_at(2, Delimiter::Paren) {
                return Err(Reported);
            }
        }
        self.bump();
        header.name = Some(self.rust_name(Named::Kernel)?);
        if self.is_operator("<") {
            let span = self.here();
            self.diagnostics.report(ForeignSyntax { construct: Foreign::Generics, span });
            return Err(Reported);
        }
        self.params(&mut header.inputs)?;
        if self.eat_operator("->").is_some() {
            self.params(&mut header.outputs)?;
            for param in header.outputs.iter().filter(|param| param.inout.is_some()) {
                let construct = Foreign::InoutOutput(param.name.text.clone());
                self.diagnostics.report(ForeignSyntax { construct, span: param.span });
            }
        }
        if self.eat_word("where").is_some() {
            loop {
                if self.is_open(Delimiter::Brace) || self.at_end() {
                    break;
                }
                match self.fact() {
                    Ok(fact) => header.facts.push(fact),
                    Err(Reported) => self.skip_to_comma(),
                }
                if self.eat_operator(",").is_none() {
                    break;
                }
            }
        }
        if !self.is_open(Delimiter::Brace) {
            let (facts, outputs) = (!header.facts.is_empty(), !header.outputs.is_empty());
            return Err(self.unexpected(Expected::Body { facts, outputs }));
        }
        Ok(())
    }

    /// `#[…] #[…]`; doc comments are attributes.
    fn attributes(&mut self) -> Vec<Attribute> {
        let mut attributes = Vec::new();
        while self.is_operator("#") && self.is_open_at(1, Delimiter::Bracket) {
            let start = self.bump();
            if let Ok((name, doc, words)) = self.group(Delimiter::Bracket, Self::attribute) {
                let span = self.since(start);
                attributes.push(Attribute { name, text: self.tokens.span_text(span), doc, words, span });
            }
        }
        attributes
    }

    /// What stands between the brackets of an attribute. Its further meaning is Rust's.
    fn attribute(&mut self) -> Parse<(Name, Option<String>, Vec<Name>)> {
        let name = self.name(Named::Item)?;
        let mut doc = None;
        if name.text == "doc" && self.eat_operator("=").is_some() {
            // `include_str!("k.svg")`: Rust has the text. What is no string is reported, and the rest may be right.
            if !(self.word().is_some() && self.is_operator_at(1, "!")) {
                match (self.literal(), self.string()) {
                    (_, Ok(text)) => doc = Some(text),
                    (Some(_), Err(Reported)) => {}
                    (None, Err(Reported)) => return Err(Reported),
                }
            }
        }
        let mut words = Vec::new();
        if self.is_open(Delimiter::Paren) {
            words = self.group(Delimiter::Paren, |p| {
                let mut words = Vec::new();
                while !p.at_end() {
                    match p.word().map(str::to_owned) {
                        Some(text) => words.push(Name { text, span: p.bump() }),
                        None => p.skip_tree(),
                    }
                }
                Ok(words)
            })?;
        }
        while !self.at_end() {
            self.skip_tree();
        }
        Ok((name, doc, words))
    }

    /// The text of the string here, which is not taken.
    pub(super) fn string(&mut self) -> Parse<String> {
        let Some(text) = self.literal() else { return Err(self.unexpected(Expected::String)) };
        syn::parse_str::<syn::LitStr>(text).map(|literal| literal.value()).map_err(|_| {
            let (text, span) = (text.to_owned(), self.here());
            self.diagnostics.report(BadLiteral { text, problem: LiteralProblem::NotAString, span });
            Reported
        })
    }

    /// `(name: type, …)`. One that does not parse is reported and left out: callers of the kernel should not have to
    /// hear that the others do not exist.
    fn params(&mut self, params: &mut Vec<Param>) -> Parse<()> {
        self.group(Delimiter::Paren, |p| {
            while !p.at_end() {
                match p.param() {
                    Ok(param) => params.push(param),
                    Err(Reported) => p.skip_to_comma(),
                }
                if p.eat_operator(",").is_none() && !p.at_end() {
                    p.unexpected(Expected::Token(","));
                    // A brace in these parentheses is no body: nothing else would step over it.
                    if p.is_open(Delimiter::Brace) {
                        p.skip_tree();
                    }
                    p.skip_to_comma();
                    p.eat_operator(",");
                }
            }
            Ok(())
        })
    }

    /// Skips to the next comma of this group, or to a brace.
    fn skip_to_comma(&mut self) {
        while !self.at_end() && !self.is_operator(",") && !self.is_open(Delimiter::Brace) {
            self.skip_tree();
        }
    }

    fn param(&mut self) -> Parse<Param> {
        let attributes = self.attributes();
        let start = self.here();
        // A parameter may be called `inout`: then a colon follows.
        let inout = if self.word_at(1).is_some() { self.eat_word("inout") } else { None };
        let name = self.rust_name(Named::Parameter)?;
        self.expect_operator(":")?;
        let of_type = self.here();
        if self.word_at(1).is_some() && self.eat_word("inout").is_some() {
            let construct = Foreign::InoutType(name.text.clone());
            self.diagnostics.report(ForeignSyntax { construct, span: of_type });
        }
        let ty = self.ty()?;
        Ok(Param { attributes, inout, name, ty, span: self.since(start) })
    }

    fn ty(&mut self) -> Parse<Type> {
        let element = self.element_type()?;
        let shape = if self.is_open(Delimiter::Bracket) { Some(self.shape()?) } else { None };
        Ok(Type { element, shape, span: self.since(element.span) })
    }

    /// `[M, N; ld, 1]`
    fn shape(&mut self) -> Parse<Shape> {
        let start = self.here();
        let (dims, strides) = self.group(Delimiter::Bracket, |p| {
            let dims = p.list(
                |p| p.is_operator(";"),
                |p| {
                    let size = p.expr()?;
                    Ok(Dim { size, broadcast: p.eat_operator("?") })
                },
            )?;
            let strides = match p.eat_operator(";") {
                Some(_) => Some(p.list(|_| false, Self::expr)?),
                None => None,
            };
            Ok((dims, strides))
        })?;
        Ok(Shape { dims, strides, span: self.since(start) })
    }

    fn fact(&mut self) -> Parse<Fact> {
        let Expr { kind, span } = self.expr()?;
        match kind {
            ExprKind::Binary(lhs, op, rhs) if op.value.is_comparison() => Ok(Fact { lhs: *lhs, op, rhs: *rhs, span }),
            _ => {
                let operator = ["=", "=>"].into_iter().find(|o| self.is_operator(o));
                let operator = operator.and_then(|o| Some((o, self.eat_operator(o)?)));
                self.diagnostics.report(BadFact { span, text: self.tokens.span_text(span), operator });
                Err(Reported)
            }
        }
    }
}
