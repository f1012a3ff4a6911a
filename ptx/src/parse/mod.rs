//! PTX text to a [`Module`]. Names are resolved here: an undeclared or doubly declared name is an error with its line.
//! The first mistake ends the parse. Whether operands have the right types is for the verifier.
//!
//! Bounded on any input: memory is linear in the text, nesting and registers are limited by the constants below.
//!
//! Read and dropped: comments, `.section` blocks but for the names in `.debug_str`, options of `.target`.

mod body;
mod decl;
mod error;
mod operands;
mod scope;

use tilewright_sorted::SortedSet;

pub use error::{ParseError, ParseErrorKind};

use crate::lex::{Pos, Token, lex};
use crate::module::{File, Function, FunctionKind, Item, Linkage, Module};
use crate::operand::{FuncId, Immediate};
use crate::types::StateSpace;
use crate::version::{PtxVersion, Target};
use scope::Scopes;

/// Largest text in bytes.
pub const MAX_TEXT: usize = 256 << 20;
/// Most registers in a module.
pub const MAX_REGISTERS: usize = 1 << 20;
/// Deepest nesting of scopes and initialisers.
pub const MAX_DEPTH: usize = 64;

/// Parses a module.
///
/// ```
/// let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }";
/// let module = tilewright_ptx::parse(text).unwrap();
/// assert_eq!(module.functions[0].name, "k");
/// let error = tilewright_ptx::parse(&text.replace("ret", "return")).unwrap_err();
/// assert_eq!(error.to_string(), "line 4, column 23: `return`: no such instruction");
/// ```
pub fn parse(text: &str) -> Result<Module, ParseError> {
    let (module, refused) = parse_functions(text)?;
    match refused.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(module),
    }
}

/// Parses a module, and leaves the body of a function empty that has a mistake: those functions come with their first
/// mistakes, in the order of the text. A mistake elsewhere, or one after which the end of its function is not found, is
/// one of the whole text.
pub fn parse_functions(text: &str) -> Result<(Module, Vec<(FuncId, ParseError)>), ParseError> {
    if text.len() > MAX_TEXT {
        let kind = ParseErrorKind::TooMany { what: "bytes of text", limit: MAX_TEXT as u64 };
        return Err(ParseError::new(Pos { line: 1, column: 1 }, kind));
    }
    let tokens = lex(text)?;
    let module = Module::new(PtxVersion::new(0, 0), Target::sm(0));
    let mut parser = Parser {
        tokens,
        at: 0,
        module,
        scopes: Scopes::default(),
        registers: 0,
        defined: SortedSet::new(),
        refused: Vec::new(),
    };
    match (parser.module(), parser.refused.first()) {
        (Ok(()), _) => Ok((parser.module, parser.refused)),
        // The first mistake may be why there is another.
        (Err(_), Some((_, first))) => Err(first.clone()),
        (Err(error), None) => Err(error),
    }
}

pub(crate) struct Parser<'a> {
    tokens: Vec<(Token<'a>, Pos)>,
    at: usize,
    module: Module,
    scopes: Scopes<'a>,
    registers: usize,
    /// Functions whose body has been read.
    defined: SortedSet<FuncId>,
    /// Functions whose body has a mistake.
    refused: Vec<(FuncId, ParseError)>,
}

/// What every step of the parser returns.
type Result<T, E = ParseError> = std::result::Result<T, E>;

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> Token<'a> {
        self.tokens.get(self.at + count).map_or(Token::End, |(token, _)| *token)
    }

    fn pos(&self) -> Pos {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(Pos::default(), |(_, pos)| *pos)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn fail<T>(&self, kind: ParseErrorKind) -> Result<T> {
        Err(ParseError::new(self.pos(), kind))
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T> {
        let found = match self.peek() {
            Token::Ident(text) | Token::Number(text, _) => format!("`{text}`"),
            Token::Dot(text) => format!("`.{text}`"),
            Token::Str(text) => format!("\"{text}\""),
            Token::Punct(found) => format!("`{found}`"),
            Token::End => "the end".to_owned(),
        };
        self.fail(ParseErrorKind::Expected { expected, found })
    }

    fn eat(&mut self, punct: char) -> bool {
        let there = self.peek() == Token::Punct(punct);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, punct: char, name: &'static str) -> Result<()> {
        if self.eat(punct) { Ok(()) } else { self.expected(name) }
    }

    fn semicolon(&mut self) -> Result<()> {
        self.expect(';', "`;`")
    }

    fn eat_dot(&mut self, word: &str) -> bool {
        let there = self.peek() == Token::Dot(word);
        self.at += usize::from(there);
        there
    }

    fn ident(&mut self, expected: &'static str) -> Result<&'a str> {
        match self.peek() {
            Token::Ident(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => self.expected(expected),
        }
    }

    fn string(&mut self) -> Result<&'a str> {
        match self.peek() {
            Token::Str(text) => {
                self.at += 1;
                Ok(text)
            }
            _ => self.expected("a string"),
        }
    }

    /// A non-negative integer of at most `limit`.
    fn number(&mut self, what: &'static str, limit: u64) -> Result<u64> {
        match self.peek() {
            Token::Number(_, value) => match value.int_value() {
                Some(number) if (0..=i128::from(limit)).contains(&number) => {
                    self.at += 1;
                    Ok(number as u64)
                }
                Some(value) => self.fail(ParseErrorKind::Range { what, value, limit }),
                None => self.expected("an integer"),
            },
            _ => self.expected("an integer"),
        }
    }

    fn number_u32(&mut self, what: &'static str) -> Result<u32> {
        self.number(what, u64::from(u32::MAX)).map(|number| number as u32)
    }

    /// A constant with an optional sign.
    fn constant(&mut self) -> Result<Immediate> {
        let negative = self.eat('-');
        if self.peek() == Token::Ident("WARP_SZ") && !negative {
            self.at += 1;
            return Ok(Immediate::WarpSize);
        }
        let Token::Number(text, value) = self.peek() else { return self.expected("a constant") };
        if !negative {
            self.at += 1;
            return Ok(value);
        }
        let negated = match value {
            Immediate::Int(value) => Immediate::Int(-value),
            Immediate::UInt(value) if value == 1 << 63 => Immediate::Int(i64::MIN),
            Immediate::F32(bits) => Immediate::F32(bits ^ (1 << 31)),
            Immediate::F64(bits) => Immediate::F64(bits ^ (1 << 63)),
            Immediate::UInt(_) | Immediate::WarpSize => {
                return self.fail(ParseErrorKind::Number(format!("-{text}")));
            }
        };
        self.at += 1;
        Ok(negated)
    }

    /// A byte offset: `+4`, `+-4`, or nothing. There is no `-4` in PTX.
    fn offset(&mut self) -> Result<i64> {
        if !self.eat('+') {
            return Ok(0);
        }
        match self.constant()? {
            Immediate::Int(value) => Ok(value),
            // Offsets wrap like addresses: 0xffffffffffffffff is -1.
            Immediate::UInt(value) => Ok(value as i64),
            _ => {
                self.at -= 1;
                self.expected("an integer offset")
            }
        }
    }

    fn module(&mut self) -> Result<()> {
        self.header()?;
        loop {
            match self.peek() {
                Token::End => return Ok(()),
                Token::Dot("file") => {
                    let file = self.file()?;
                    self.module.items.push(Item::File(file));
                }
                Token::Dot("section") => self.section()?,
                Token::Dot("pragma") => {
                    let text = self.pragma()?;
                    self.module.items.push(Item::Pragma(text));
                }
                Token::Dot(_) => self.item()?,
                _ => return self.expected("a directive"),
            }
        }
    }

    fn header(&mut self) -> Result<()> {
        if !self.eat_dot("version") {
            return self.expected("`.version`");
        }
        let Token::Number(text, _) = self.peek() else { return self.expected("a PTX version") };
        let Some(version) = PtxVersion::from_text(text) else { return self.expected("a PTX version") };
        self.module.version = version;
        self.at += 1;
        if !self.eat_dot("target") {
            return self.expected("`.target`");
        }
        let Some(target) = Target::from_text(self.ident("a target")?) else {
            self.at -= 1;
            return self.expected("a target such as `sm_90a`");
        };
        self.module.target = target;
        while self.eat(',') {
            match self.ident("an option of `.target`")? {
                "debug" | "texmode_unified" | "texmode_independent" => {}
                _ => {
                    self.at -= 1;
                    return self.expected("`debug` or a texture mode");
                }
            }
        }
        // The default of the manual (11.1.3) is 32 bits.
        self.module.address_size = 32;
        if self.eat_dot("address_size") {
            match self.number("address size", 64)? {
                size @ (32 | 64) => self.module.address_size = size as u8,
                _ => {
                    self.at -= 1;
                    return self.expected("32 or 64");
                }
            }
        }
        Ok(())
    }

    fn file(&mut self) -> Result<File> {
        self.at += 1;
        let index = self.number_u32("file number")?;
        let name = self.string()?.to_owned();
        let stamp = if self.eat(',') {
            let time = self.number("time stamp", u64::MAX)?;
            let size = if self.eat(',') { self.number("file size", u64::MAX)? } else { 0 };
            Some((time, size))
        } else {
            None
        };
        Ok(File { index, name, stamp })
    }

    fn pragma(&mut self) -> Result<String> {
        self.at += 1;
        let text = self.string()?.to_owned();
        self.semicolon()?;
        Ok(text)
    }

    /// `.section .debug_str { … }`: its strings are kept, other sections are skipped.
    fn section(&mut self) -> Result<()> {
        self.at += 1;
        let strings = match self.next() {
            Token::Dot(name) | Token::Ident(name) => name == "debug_str",
            _ => {
                self.at -= 1;
                return self.expected("the name of a section");
            }
        };
        self.expect('{', "`{`")?;
        let mut bytes = false;
        loop {
            match self.next() {
                Token::Punct('}') => return Ok(()),
                Token::End => {
                    self.at -= 1;
                    return self.expected("`}`");
                }
                Token::Ident(label) if strings && self.peek() == Token::Punct(':') => {
                    let end = self.module.strings.bytes.len();
                    self.module.strings.labels.push((label.to_owned(), end));
                }
                Token::Dot(ty) => bytes = strings && ty == "b8",
                Token::Number(_, value) if bytes => {
                    let byte = value.int_value().and_then(|value| u8::try_from(value).ok());
                    self.module.strings.bytes.extend(byte);
                }
                _ => {}
            }
        }
    }

    fn linkage(&mut self) -> Linkage {
        let linkage = match self.peek() {
            Token::Dot("visible") => Linkage::Visible,
            Token::Dot("extern") => Linkage::Extern,
            Token::Dot("weak") => Linkage::Weak,
            Token::Dot("common") => Linkage::Common,
            _ => return Linkage::Internal,
        };
        self.at += 1;
        linkage
    }

    /// A variable or a function.
    fn item(&mut self) -> Result<()> {
        let linkage = self.linkage();
        match self.peek() {
            Token::Dot("entry") => self.function(linkage, FunctionKind::Entry),
            Token::Dot("func") => self.function(linkage, FunctionKind::Func),
            Token::Dot("global" | "const" | "shared" | "local") => {
                for variable in self.variables(linkage)? {
                    let id = self.declare_global_variable(variable)?;
                    self.module.items.push(Item::Variable(id));
                }
                Ok(())
            }
            Token::Dot(name) => self.fail(ParseErrorKind::Directive(name.to_owned())),
            _ => self.expected("a variable or a function"),
        }
    }

    fn function(&mut self, linkage: Linkage, kind: FunctionKind) -> Result<()> {
        self.at += 1;
        let line = self.pos().line;
        let returns =
            if kind == FunctionKind::Func && self.peek() == Token::Punct('(') { self.params()? } else { Vec::new() };
        let name_at = self.at;
        let name = self.ident("the name of a function")?;
        let mut function = Function::new(kind, name);
        function.linkage = linkage;
        function.line = line;
        function.returns = returns;
        function.params = if self.peek() == Token::Punct('(') { self.params()? } else { Vec::new() };
        function.directives = self.directives()?;
        let prototype = self.eat(';');
        let id = match self.scopes.global_function(name) {
            // A prototype that follows the definition adds nothing.
            Some(id) if prototype && self.defined.contains(&id) => return Ok(()),
            Some(id) if !self.defined.contains(&id) => {
                self.module.functions[id.index()] = function;
                id
            }
            _ => {
                let id = FuncId(self.module.functions.len() as u32);
                if !self.scopes.declare_global_function(name, id) {
                    self.at = name_at;
                    return self.fail(ParseErrorKind::DuplicateName(name.to_owned()));
                }
                self.module.functions.push(function);
                id
            }
        };
        if prototype {
            self.module.items.push(Item::Prototype(id));
            return Ok(());
        }
        self.defined.insert(id);
        self.module.items.push(Item::Function(id));
        let start = self.at;
        let Err(error) = self.function_body(id) else { return Ok(()) };
        if !self.skip_body(start) {
            return Err(error);
        }
        self.scopes.leave_all();
        self.refused.push((id, error));
        Ok(())
    }

    /// Goes on behind the closing brace of the body that starts here; false if there is none.
    fn skip_body(&mut self, start: usize) -> bool {
        self.at = start;
        let mut depth = 0usize;
        loop {
            match self.next() {
                Token::Punct('{') => depth += 1,
                Token::Punct('}') if depth == 1 => return true,
                Token::Punct('}') => depth = depth.saturating_sub(1),
                // The start of another function is in no body.
                Token::Dot("entry" | "func" | "visible") | Token::End => return false,
                _ => {}
            }
        }
    }

    /// The state space of a declaration.
    fn space(&mut self) -> Result<StateSpace> {
        let space = match self.peek() {
            Token::Dot(word) => StateSpace::from_text(word),
            _ => None,
        };
        match space {
            Some(space) if space == space.base() => {
                self.at += 1;
                Ok(space)
            }
            _ => self.expected("a state space"),
        }
    }
}
