//! TW0009: a construct of Rust that the language does not have.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The text inside `schedule!` looks like Rust and is not: it has equations instead of statements, functions
    /// instead of methods, and no mutable state. This code stands for the constructs of Rust that a reader may expect.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Dot(x: f32[N], z: f32[N]) -> (y: f32[]) {
    ///     y[] += x[k] * z[k];
    /// }
    /// ```
    ///
    /// The message names the construct and what the language has instead.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Dot(x: f32[N], z: f32[N]) -> (y: f32[]) {
    ///     y[] = sum(|k| x[k] * z[k]);
    /// }
    /// ```
    TW0009 "foreign-syntax" Error "a construct of Rust that the language does not have"
}

/// A construct of Rust that the language does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// `x.exp()`, `x.0`
    Dot,
    /// `thread.x`, `blockIdx.x`: the unit, if it is one of the language.
    UnitDimension(Option<&'static str>),
    /// `threads(32, 8)`: the item, and the product of its numbers if these are literals.
    BlockDimensions(&'static str, Option<u64>),
    /// `+=` and its like.
    CompoundAssignment(&'static str),
    /// `-=` and its like where memory says which element is meant.
    ScatterAssignment(&'static str),
    /// `y = …`
    EquationWithoutAxes(String),
    /// `&x`
    Reference,
    /// `~x`
    Tilde,
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
    /// Anything but an axis on the left of an equation, where memory is not asked either.
    LeftExpression(ComputedPlace),
    /// `inout` after the arrow.
    InoutOutput(String),
    /// `c: inout f32[N]`: the name.
    InoutType(String),
}

/// What an equation with computed indices on the left could say instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComputedPlace {
    /// Every element has an iteration: which one.
    Moved {
        /// The left side without them.
        element: String,
        /// The whole edit.
        edits: Vec<(Span, String)>,
        /// What stands in the place of each axis on the right.
        places: Vec<(String, String)>,
    },
    /// Some elements have one: which one, and when.
    Strided {
        /// The left side without them.
        element: String,
        /// Whether an element has an iteration.
        condition: String,
        /// What stands in the place of each axis on the right.
        places: Vec<(String, String)>,
    },
    /// Two iterations mean the same element: values of the axes in each.
    Twice {
        /// One of them.
        first: Vec<(String, i64)>,
        /// The other one.
        second: Vec<(String, i64)>,
    },
    /// Nothing is known.
    Unknown,
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
            Foreign::UnitDimension(unit) => {
                let diagnostic = new("units have no dimensions: blocks are a row, and so are the threads of a block")
                    .note("several axes bound to one kind of unit count together, the last one fastest");
                match unit {
                    Some(unit) => diagnostic.replace(self.span, unit, format!("write `{unit}`")),
                    None => diagnostic.help("bind an axis to `grid`, `cta`, `warpgroup`, `warp` or `thread`"),
                }
            }
            Foreign::BlockDimensions(item, product) => {
                let diagnostic = new(&format!("blocks have no dimensions: `{item}` takes one number"))
                    .note("several axes bound to one kind of unit count together, the last one fastest");
                match product {
                    Some(product) => {
                        diagnostic.replace(self.span, product.to_string(), format!("write `{item}({product})`"))
                    }
                    None => diagnostic.help(format!("write the product: `{item}(…)`")),
                }
            }
            Foreign::CompoundAssignment(op) => new(&format!("an equation is not an assignment: there is no `{op}`"))
                .help("a sum over an axis is written as one: `y[i] = sum(|k| a[i, k])`")
                .help("to update a tensor in place, take it as `inout y: …` and write `y[i] = y[i] + …`"),
            Foreign::ScatterAssignment(op) => new(&format!("terms that come in any order are not taken in by `{op}`"))
                .help("`+=` takes sums, `max=` and `min=` extremes; negate the terms of a difference"),
            Foreign::EquationWithoutAxes(name) => new(&format!("the equation of `{name}` does not name its axes"))
                .help(format!("write `{name}[i] = …`, or `{name}[] = …` for a single value")),
            Foreign::Reference => new("there are no references: a value is written as it is"),
            Foreign::Tilde => {
                new("the complement is `!`, as in Rust").replace(self.span, "!", "write `!`")
            }
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
            Foreign::LeftExpression(place) => {
                place.said(new("the indices on the left of an equation are distinct axes"))
            }
            Foreign::InoutOutput(name) => new(&format!("`inout {name}` belongs before the arrow"))
                .note("an `inout` parameter is read as well as written"),
            Foreign::InoutType(name) => new("`inout` belongs to a parameter, not to its type")
                .help(format!("write `inout {name}: …` before the arrow: it is read as well as written")),
        }
    }
}

impl ComputedPlace {
    fn said(self, diagnostic: Diagnostic) -> Diagnostic {
        let put = |places: Vec<(String, String)>| {
            let each = places.into_iter().map(|(axis, place)| format!("`{place}` in the place of `{axis}`"));
            each.collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Moved { element, edits, places } => diagnostic.change(
                Change::Rewrite(edits),
                format!("say of each element where it comes from: `{element} = …`, with {}", put(places)),
            ),
            Self::Strided { element, condition, places } => diagnostic
                .note("an element is that of one iteration at most, and there are elements of none")
                .help(format!(
                    "say of each element where it comes from: `{element} = if {condition} {{ … }} else {{ {element} }}`, \
                     with {}; `or {element}` where there are no more terms; and take the tensor as `inout`",
                    put(places)
                )),
            Self::Twice { first, second } => {
                let named = |point: Vec<(String, i64)>| {
                    let each = point.into_iter().map(|(axis, value)| format!("{axis} = {value}"));
                    each.collect::<Vec<_>>().join(", ")
                };
                diagnostic
                    .counterexample(format!("{} and {} are the same element", named(first), named(second)))
                    .help("say of each element what it is: where several terms belong to it, a reduction over them, as in \
                           `y[i] = sum(|k in 0..2| x[2 * i + k])`")
            }
            Self::Unknown => diagnostic
                .help("shift the reads instead: `y[i] = x[i - 1] or 0.0`; or name the domain: `y[i in 1..N] = x[i]`"),
        }
    }
}
