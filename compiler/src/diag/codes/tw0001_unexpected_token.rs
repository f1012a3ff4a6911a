//! TW0001: a token that the grammar does not allow here.

use std::fmt;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::suggest::closest;
use crate::diag::words::{TYPES, shorten};
use crate::source::Span;

row! {
    /// The text has to follow the grammar of `docs/language.md`. After such an error the parser goes on at the next `;`
    /// or block, so one run may show several.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i]
    ///     launch threads(1);
    /// }
    /// ```
    ///
    /// The message names what the grammar allows and what stands there instead. A missing `;` or `,` is shown after the
    /// token that it should follow, wherever the next token is.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(1);
    /// }
    /// ```
    TW0001 "unexpected-token" Error "a token that the grammar does not allow here"
}

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
    /// Text between quotes.
    String,
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
    /// A constant of `tune`, a pass.
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
            Expected::String => f.write_str("a string"),
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
        if (expected, &found) == (Expected::Word(WordSet::Clause), &Found::Token(",".to_owned())) {
            diagnostic = diagnostic
                .note("each stage has a schedule of its own, also where several are computed at one place")
                .help("write one `schedule` for each: `schedule a at y.i { … } schedule b at y.i { … }`");
        }
        if expected == Expected::Name(Named::Unit) {
            diagnostic = diagnostic.help("say of what: `2 warpgroup`, `4 warp`, `8 thread`; one of them has no number, `warp`");
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
    pub(super) fn with_article(self) -> String {
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

/// TW0001: a split that makes more or fewer axes than its factors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongSplit {
    /// How many factors.
    pub factors: usize,
    /// How many names.
    pub names: usize,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for WrongSplit {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongSplit { factors, names, span } = self;
        let made = factors + 1;
        Diagnostic::new(Code::TW0001, span, format!("a split by {factors} factors makes {made} axes, and {names} are named"))
            .note("each factor is the size of the rest that the next one splits: `split m by 64, 8 -> tile, row, column`")
    }
}
