//! TW00: syntax. What the parser reports, and how it is said.

use std::fmt;

use super::suggest::closest;
use super::{Code, Diagnostic, IntoDiagnostic};
use crate::source::{
    Span,
    ast::{OPS, STATEMENTS},
};

/// What the grammar allows at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A word or a punctuation of the language.
    Token(&'static str),
    /// The name of something.
    Name(Named),
    /// The second result of an op that has two.
    SecondAxis,
    /// One word of a set.
    Word(WordSet),
    /// An expression.
    Expression,
    /// `;` or a block.
    Block,
    /// The end of the surrounding group, closed by this bracket.
    End(&'static str),
    /// What goes on after a header's parameters: the brace of the body at the latest. Whether there are facts already,
    /// and outputs.
    Body {
        /// A fact was read.
        facts: bool,
        /// The outputs were read.
        outputs: bool,
    },
    /// A statement of a kernel's body.
    Statement,
    /// A kernel.
    Kernel,
    /// A pattern of `fold`.
    Pattern,
}

/// What a name is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A kernel.
    Kernel,
    /// A parameter.
    Parameter,
    /// A tensor.
    Tensor,
    /// An axis.
    Axis,
    /// A stage.
    Stage,
    /// A role.
    Role,
    /// A unit.
    Unit,
    /// A function.
    Function,
    /// An alternative of `tune`, a pass.
    Item,
}

/// What stands there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// This token.
    Token(String),
    /// The end of the group closed by this bracket, or of the whole invocation.
    End(&'static str),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Token(text) => write!(f, "`{text}`"),
            Expected::Name(named) => named.fmt(f),
            Expected::SecondAxis => f.write_str("a second axis, as in `-> outer, inner`"),
            Expected::Word(set) => f.write_str(&set.with_article()),
            Expected::Expression => f.write_str("an expression"),
            Expected::Block => f.write_str("`;` or a block `{ … }`"),
            Expected::End("") => f.write_str("nothing more"),
            Expected::End(close) => write!(f, "the closing `{close}`"),
            Expected::Body { facts: true, .. } => f.write_str("`,` or `{`"),
            Expected::Body { outputs: true, .. } => f.write_str("`where` or `{`"),
            Expected::Body { .. } => f.write_str("`->`, `where` or `{`"),
            Expected::Statement => f.write_str("a statement"),
            Expected::Kernel => f.write_str("a kernel"),
            Expected::Pattern => f.write_str("a name or a tuple of names"),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Named::Kernel => "the name of the kernel",
            Named::Parameter => "the name of a parameter",
            Named::Tensor => "the name of a tensor",
            Named::Axis => "the name of an axis",
            Named::Stage => "the name of a stage",
            Named::Role => "the name of a role",
            Named::Unit => "the name of a unit",
            Named::Function => "the name of a function",
            Named::Item => "a name",
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Token(text) => write!(f, "`{}`", shorten(text)),
            Found::End("") => f.write_str("the end of `schedule!`"),
            Found::End(close) => write!(f, "the closing `{close}`"),
        }
    }
}

/// A token's text, cut if a message could not show it.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}

const TYPES: &str = "a tensor is written `f32[M, N]`, a scalar `f32`";

/// TW0001: a token that the grammar does not allow here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnexpectedToken {
    /// What is allowed.
    pub expected: Expected,
    /// What is there.
    pub found: Found,
    /// The token found, or the closing bracket.
    pub span: Span,
    /// The token before, after which something is missing.
    pub after: Option<(String, Span)>,
}

impl IntoDiagnostic for UnexpectedToken {
    fn into_diagnostic(self) -> Diagnostic {
        let UnexpectedToken { expected, found, span, after } = self;
        // A missing separator is missing after the last token, wherever the next one is.
        if let (Expected::Token(text @ (";" | ",")), Some((before, place))) = (expected, &after) {
            let (before, place) = (before.as_str(), *place);
            let title = format!("expected {expected} before {found}");
            let help = format!("write {expected} after `{}`", shorten(before));
            return Diagnostic::new(Code::TW0001, place, title).replace(place, format!("{before}{text}"), help);
        }
        let mut diagnostic = Diagnostic::new(Code::TW0001, span, format!("expected {expected}, found {found}"));
        if expected == Expected::Word(WordSet::ElementType) {
            diagnostic = diagnostic.help(TYPES);
        }
        if matches!((expected, &after), (Expected::Token("("), Some((before, _))) if before == "->" || before == ">") {
            diagnostic = diagnostic.help("parameters stand in parentheses: `kernel NAME(x: f32[N]) -> (y: f32[N])`");
        }
        if let Expected::End(_) = expected {
            diagnostic = diagnostic.note("an expression, clause or list ended before this token");
        }
        if let (Expected::Body { facts: false, outputs }, Found::Token(word)) = (expected, &found) {
            let instead = match word.as_str() {
                "=>" | ":" | "-" if !outputs => Some("->"),
                word => closest(word, ["where"]),
            };
            diagnostic = match instead {
                Some(meant) => diagnostic.replace(span, meant, format!("did you mean `{meant}`?")),
                None => diagnostic.help("a kernel is written `kernel NAME(inputs) -> (outputs) where facts { … }`"),
            };
        }
        diagnostic
    }
}

/// A set of words, of which one was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordSet {
    /// Statements of a kernel's body.
    Statement,
    /// Schedule ops.
    Op,
    /// Element types.
    ElementType,
    /// Places of a stage.
    Place,
    /// Copy engines.
    Engine,
    /// Items of `launch`.
    LaunchItem,
    /// Clauses of `schedule` and `stage`.
    Clause,
    /// Levels of `reduce`.
    ReduceLevel,
    /// Tensor-core instructions.
    MmaEngine,
    /// Correctness models.
    FillModel,
    /// What an instance of a stage holds.
    RegionKind,
    /// Cache hints.
    L2Hint,
    /// Swizzle functions.
    SwizzleFunction,
    /// Fields of `unit`.
    UnitField,
    /// Options of `bind`.
    BindOption,
    /// Clauses of `fold` and `dot`.
    FoldClause,
    /// Reductions.
    Reduction,
    /// What an invocation holds.
    TopLevel,
}

impl WordSet {
    /// `an element type`
    fn with_article(self) -> String {
        let set = self.to_string();
        let article = if set.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        format!("{article} {set}")
    }
}

impl fmt::Display for WordSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WordSet::Statement => "statement",
            WordSet::Op => "schedule op",
            WordSet::ElementType => "element type",
            WordSet::Place => "place",
            WordSet::Engine => "copy engine",
            WordSet::LaunchItem => "item of `launch`",
            WordSet::Clause => "clause of a stage",
            WordSet::ReduceLevel => "level of `reduce`",
            WordSet::MmaEngine => "tensor-core instruction",
            WordSet::FillModel => "correctness model",
            WordSet::RegionKind => "kind of region",
            WordSet::L2Hint => "cache hint",
            WordSet::SwizzleFunction => "swizzle function",
            WordSet::UnitField => "field of `unit`",
            WordSet::BindOption => "option of `bind`",
            WordSet::FoldClause => "clause of a reduction",
            WordSet::Reduction => "reduction",
            WordSet::TopLevel => "item of `schedule!`",
        })
    }
}

/// TW0002: a word that the grammar does not know here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// What it should be one of.
    pub set: WordSet,
    /// The word.
    pub word: String,
    /// Its token.
    pub span: Span,
    /// The words that are known.
    pub known: &'static [&'static str],
}

impl IntoDiagnostic for UnknownWord {
    fn into_diagnostic(self) -> Diagnostic {
        let UnknownWord { set, word, span, known } = self;
        let list: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
        let diagnostic =
            Diagnostic::new(Code::TW0002, span, format!("`{}` is not {}", shorten(&word), set.with_article()))
                .note(format!("known here: {}", list.join(", ")));
        match closest(&word, known.iter().copied()) {
            Some(meant) => diagnostic.replace(span, meant, format!("did you mean `{meant}`?")),
            None if set == WordSet::ElementType => diagnostic.help(TYPES),
            None if set == WordSet::Op && STATEMENTS.contains(&word.as_str()) => {
                diagnostic.help(format!("`{word}` is a statement of the kernel: write it outside the braces"))
            }
            None if set == WordSet::Statement && OPS.contains(&word.as_str()) => {
                diagnostic.help(format!("`{word}` is an op: write it inside `schedule … {{ … }}`"))
            }
            None if set == WordSet::Statement && word == "threads" => diagnostic.help("write `launch threads(256);`"),
            None => diagnostic,
        }
    }
}

/// TW0003: nested too deeply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooDeep {
    /// Where the limit is passed.
    pub span: Span,
    /// The limit, in levels.
    pub limit: u32,
}

impl IntoDiagnostic for TooDeep {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0003, self.span, format!("this is nested more than {} levels deep", self.limit))
            .note("operators in a row count as well: `a + b + c` has two levels")
            .help("give a part of the expression an equation of its own: an equation without a schedule is inlined")
    }
}

/// What is wrong with a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralProblem {
    /// A string, a character or bytes.
    NotANumber,
    /// Larger than 64 bits.
    TooLarge,
    /// Not a type after the digits.
    Suffix(String),
    /// A binary, octal or hexadecimal literal of a floating type, or digits that are not of its base.
    Digits,
    /// A fraction or exponent with the suffix of an integer type.
    Fraction(&'static str),
    /// Something else where a string belongs.
    NotAString,
}

/// TW0004: a literal that is not a number of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLiteral {
    /// The literal.
    pub text: String,
    /// What is wrong with it.
    pub problem: LiteralProblem,
    /// Its token.
    pub span: Span,
}

impl IntoDiagnostic for BadLiteral {
    fn into_diagnostic(self) -> Diagnostic {
        let text = shorten(&self.text);
        let new = |title: String| Diagnostic::new(Code::TW0004, self.span, title);
        match self.problem {
            LiteralProblem::NotANumber => new(format!("{text} is not a number")),
            LiteralProblem::TooLarge => {
                new(format!("`{text}` does not fit into 64 bits")).note("the largest integer is 18446744073709551615")
            }
            LiteralProblem::Suffix(suffix) => {
                let known = tilewright_kernel::ElementType::NAMES;
                let diagnostic = new(format!("`{}` is not an element type", shorten(&suffix)));
                match closest(&suffix, known.iter().copied()) {
                    Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
                    None => diagnostic.help("leave the suffix out: a literal takes its type from context"),
                }
            }
            LiteralProblem::Digits => new(format!("`{text}` has digits that its base does not have"))
                .help("a floating literal is decimal: `0.5f32`; `0.0bf16` or `0 as bf16` for zero"),
            LiteralProblem::Fraction(ty) => new(format!("`{text}` has a fraction, but {ty} is an integer type")),
            LiteralProblem::NotAString => new(format!("expected a string, found `{text}`")),
        }
    }
}

/// TW0005: planned and not built yet. Reported by the room that would have to build it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSupportedYet {
    /// The construct, as it is written in the language: `ring`, `bind … : grid`.
    pub construct: String,
    /// Where it is used.
    pub span: Span,
    /// What works today, if something does.
    pub instead: Option<String>,
}

impl IntoDiagnostic for NotSupportedYet {
    fn into_diagnostic(self) -> Diagnostic {
        let diagnostic = Diagnostic::new(Code::TW0005, self.span, format!("`{}` is not supported yet", self.construct))
            .note("it is part of the language, and this version of the compiler cannot build it");
        match self.instead {
            Some(instead) => diagnostic.help(instead),
            None => diagnostic,
        }
    }
}

/// TW0006: a reserved word used as a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedName {
    /// The word.
    pub word: String,
    /// Its token.
    pub span: Span,
    /// Whether Rust reserves it (for a field or a struct), rather than the language.
    pub by_rust: bool,
}

impl IntoDiagnostic for ReservedName {
    fn into_diagnostic(self) -> Diagnostic {
        let ReservedName { word, span, by_rust } = self;
        let diagnostic = Diagnostic::new(Code::TW0006, span, format!("`{word}` cannot be a name"));
        if by_rust {
            diagnostic
                .note("kernels and parameters become a Rust struct and its fields, and Rust reserves this word")
                .help(format!("call it `{word}_`, everywhere in the kernel"))
        } else {
            diagnostic.note(format!("`{word}` has a meaning of its own in expressions"))
        }
    }
}

/// TW0007: a clause written twice or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedClause {
    /// The clause.
    pub clause: &'static str,
    /// Where it is written again, or the construct that lacks it.
    pub span: Span,
    /// Where it was written first; `None` if it is missing.
    pub first: Option<Span>,
}

impl IntoDiagnostic for RepeatedClause {
    fn into_diagnostic(self) -> Diagnostic {
        let RepeatedClause { clause, span, first } = self;
        match first {
            Some(first) => Diagnostic::new(Code::TW0007, span, format!("`{clause}` is given twice"))
                .label(first, "first given here")
                .help("keep one of them"),
            None => Diagnostic::new(Code::TW0007, span, format!("`{clause}` is missing")),
        }
    }
}

/// TW0008: a fact that is not one comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFact {
    /// The fact.
    pub span: Span,
    /// Its text.
    pub text: String,
    /// What stands where the comparison should, and is none: `=`, `=>`.
    pub operator: Option<(&'static str, Span)>,
}

impl IntoDiagnostic for BadFact {
    fn into_diagnostic(self) -> Diagnostic {
        let BadFact { span, text, operator } = self;
        if let Some((operator, place)) = operator {
            let meant = if operator == "=" { "==" } else { ">=" };
            return Diagnostic::new(Code::TW0008, place, format!("`{operator}` compares nothing"))
                .note("a fact is a comparison: `==`, `!=`, `<`, `<=`, `>` or `>=`")
                .replace(place, meant, format!("write `{meant}`"));
        }
        Diagnostic::new(Code::TW0008, span, format!("the fact `{}` is not one comparison", shorten(&text)))
            .note("a fact compares two expressions over sizes: `N % 8 == 0`, `K <= 4096`")
            .help("separate several facts by commas")
    }
}

/// A construct of Rust that the language does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// `x.exp()`, `x.0`
    Dot,
    /// `+=` and its like.
    CompoundAssignment(&'static str),
    /// `y = …`
    EquationWithoutAxes(String),
    /// `&`, `|`, `^`, `<<`, `>>`
    Bitwise(&'static str),
    /// `a < b < c`
    ChainedComparison,
    /// `if` without `else`.
    IfWithoutElse,
    /// `let`, `for`, `while`, `fn`, `return` and their like as a statement.
    Statement(String),
    /// `kernel K<T>`
    Generics,
    /// An index after something that is not the name of a tensor.
    IndexedExpression,
    /// `a[m][k]`
    IndexedRead(String),
    /// `or` after something that is not a read.
    OrAfterNonRead,
    /// A closure outside a reduction.
    Closure,
    /// `a..b` as a value.
    RangeValue,
    /// A block `{ … }` as a value.
    Block,
    /// `a::b::c`, or a path that is not called.
    Path,
    /// A macro call.
    MacroCall,
    /// Anything but an axis on the left of an equation.
    LeftExpression,
    /// `inout` after the arrow.
    InoutOutput(String),
}

/// TW0009: a construct of Rust that the language does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignSyntax {
    /// The construct.
    pub construct: Foreign,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for ForeignSyntax {
    fn into_diagnostic(self) -> Diagnostic {
        let new = |title: &str| Diagnostic::new(Code::TW0009, self.span, title);
        match self.construct {
            Foreign::Dot => new("expressions have no methods and no fields")
                .help("functions are called by name, `exp(x[i])`; `fold` names the parts of a state: `merge ((m1, s1), (m2, s2)) => …`"),
            Foreign::CompoundAssignment(op) => new(&format!("an equation is not an assignment: there is no `{op}`"))
                .help("a sum over an axis is written as one: `y[i] = sum(|k| a[i, k])`")
                .help("to update a tensor in place, take it as `inout y: …` and write `y[i] = y[i] + …`"),
            Foreign::EquationWithoutAxes(name) => new(&format!("the equation of `{name}` does not name its axes"))
                .help(format!("write `{name}[i] = …`, or `{name}[] = …` for a single value")),
            Foreign::Bitwise(op) => new(&format!("the language has no operator `{op}`"))
                .help("logic is `&&`, `||` and `!`; integer arithmetic is `+ - * / %`"),
            Foreign::ChainedComparison => {
                new("comparisons do not chain").help("write `a < b && b < c`")
            }
            Foreign::IfWithoutElse => {
                new("an `if` is a value and needs its `else`").help("write `if c { a } else { b }`")
            }
            Foreign::Statement(word) => {
                let diagnostic = new(&format!("there is no statement `{word}`"))
                    .note("a kernel is a list of equations, `z[i] = …`, followed by its schedule");
                match word.as_str() {
                    "for" | "while" | "loop" => diagnostic.help("an equation holds for every value of its axes, and a sum over an axis is `sum(|k| …)`"),
                    "let" => diagnostic.help("give the value an equation of its own, `t[i] = …;`, and read `t[i]`"),
                    _ => diagnostic,
                }
            }
            Foreign::Generics => new("a kernel has no type parameters"),
            Foreign::IndexedExpression => {
                new("only a tensor can be indexed").help("give the expression an equation of its own and index that")
            }
            Foreign::IndexedRead(tensor) => new(&format!("`{tensor}[…][…]`: what is read from a tensor has no indices"))
                .help(format!("write all indices in one pair of brackets: `{tensor}[i, j]`")),
            Foreign::OrAfterNonRead => new("`or` follows a read of a tensor, as in `x[i - 1] or 0.0`")
                .help("the logical operator is `||`"),
            Foreign::Closure => new("`|…|` starts the axes of a reduction, as in `sum(|k| x[k])`"),
            Foreign::RangeValue => new("a range is not a value").help("write it where an axis is named: `sum(|k in 0..=i| x[k])`"),
            Foreign::Block => new("a block is not a value"),
            Foreign::Path => new("a path names a function and is called, as in `approx::exp(x[i])`"),
            Foreign::MacroCall => new("macros are not expanded inside `schedule!`"),
            Foreign::LeftExpression => new("the indices on the left of an equation are distinct axes")
                .help("shift the reads instead: `y[i] = x[i - 1] or 0.0`; or name the domain: `y[i in 1..N] = x[i]`"),
            Foreign::InoutOutput(name) => new(&format!("`inout {name}` belongs before the arrow"))
                .note("an `inout` parameter is read as well as written"),
        }
    }
}

/// TW0010: no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyInvocation;

impl IntoDiagnostic for EmptyInvocation {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0010, Span::UNKNOWN, "`schedule!` needs at least one kernel")
            .help("start with `pub kernel Scale(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; … }`")
    }
}

/// Why an `allow` silences nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UselessReason {
    /// There is no such code.
    Unknown {
        /// A warning's code that is close.
        suggestion: Option<String>,
    },
    /// The code is an error's.
    Error,
    /// The kernel has no such warning.
    Absent,
}

/// TW0011: `#[allow(TW…)]` without an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UselessAllow {
    /// The code.
    pub code: String,
    /// Why.
    pub reason: UselessReason,
    /// Its token.
    pub span: Span,
}

impl IntoDiagnostic for UselessAllow {
    fn into_diagnostic(self) -> Diagnostic {
        let UselessAllow { code, reason, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0011, span, title);
        match reason {
            UselessReason::Unknown { suggestion: Some(meant) } => {
                let text = format!("did you mean `{meant}`?");
                new(format!("there is no diagnostic `{code}` to allow")).replace(span, meant, text)
            }
            UselessReason::Unknown { suggestion: None } => {
                new(format!("there is no diagnostic `{code}` to allow")).help("`tilewright explain` lists all of them")
            }
            UselessReason::Error => new(format!("`{code}` is an error, and errors cannot be allowed"))
                .help(format!("`tilewright explain {code}` shows what to change")),
            UselessReason::Absent => {
                new(format!("this kernel has no warning `{code}` to allow")).help(format!("remove `{code}`"))
            }
        }
    }
}
