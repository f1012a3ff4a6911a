//! TW0119: two types that must be one.

use tilewright_kernel::ElementType;

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Nothing is converted without `as`: both operands of an operator, the branches of an `if`, and both sides of an
    /// equation have one type. Of the factors of a `dot`, one may be `e4m3` and the other `e5m2`, or `i8` and `u8`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Add(x: f32[N], z: f16[N]) -> (y: f32[N]) {
    ///     y[i] = x[i] + z[i];
    /// }
    /// ```
    ///
    /// The message shows both operands with their types, and which one to convert.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Add(x: f32[N], z: f16[N]) -> (y: f32[N]) {
    ///     y[i] = x[i] + (z[i] as f32);
    /// }
    /// ```
    TW0119 "type-mismatch" Error "two types that must be one"
}

/// Where two types meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeMismatchAt {
    /// The right-hand side and the output of this name.
    Output(String),
    /// The two operands.
    Operands {
        /// The operator.
        op: &'static str,
        /// The left operand.
        left: Span,
        /// The right operand.
        right: Span,
    },
    /// The branches of an `if`.
    Branches {
        /// The first branch.
        then: Span,
    },
    /// An argument and the one that fixes the type.
    Argument {
        /// The function.
        function: &'static str,
        /// The argument that fixes the type.
        first: Span,
    },
    /// A tensor of this name and its `or`.
    Or(String),
    /// A state variable of a `fold` and its next value.
    State,
}

/// TW0119: two types that must be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// Where they meet.
    pub place: TypeMismatchAt,
    /// The type needed (of the left operand).
    pub expected: ElementType,
    /// The type found (of the right operand).
    pub found: ElementType,
    /// What has the type found.
    pub span: Span,
    /// A literal whose suffix is what makes them two, and the literal without it.
    pub literal: Option<(Span, String)>,
}

impl IntoDiagnostic for TypeMismatch {
    fn into_diagnostic(self) -> Diagnostic {
        let TypeMismatch { place, expected, found, span, literal } = self;
        let new = |title: String| {
            let diagnostic = Diagnostic::new(Code::TW0119, span, title).note("nothing is converted without `as`");
            match &literal {
                Some((suffixed, bare)) => {
                    let text = format!("write `{bare}`: without a suffix, a literal has the type of what it stands beside");
                    diagnostic.replace(*suffixed, bare.clone(), text)
                }
                None => diagnostic,
            }
        };
        let convert = |d: Diagnostic, what: &str, from: ElementType, to: ElementType, span: Span| {
            if to == ElementType::Bool {
                return d.help(format!("compare {what}: `… != 0`"));
            }
            if from == ElementType::Bool && !to.is_integer() {
                return d.help(format!("choose by {what}: `if … {{ 1.0 }} else {{ 0.0 }}`"));
            }
            d.change(Change::Convert(span, to), format!("convert {what}: `… as {to}`"))
        };
        match place {
            TypeMismatchAt::Output(name) => {
                let d = new(format!("`{name}` is `{expected}` and its definition is `{found}`"));
                convert(d, "it", found, expected, span)
            }
            TypeMismatchAt::Operands { op, left, right } => {
                let d = new(format!("the operands of `{op}` are `{expected}` and `{found}`"))
                    .label(left, format!("this is `{expected}`"))
                    .label(right, format!("this is `{found}`"));
                if holds_more(found, expected) {
                    convert(d, "the left one", expected, found, left)
                } else {
                    convert(d, "the right one", found, expected, right)
                }
            }
            TypeMismatchAt::Branches { then } => {
                let d = new(format!("the branches of `if` are `{expected}` and `{found}`"))
                    .label(then, format!("this is `{expected}`"));
                convert(d, "it", found, expected, span)
            }
            TypeMismatchAt::Argument { function, first } => {
                let d = new(format!("the arguments of `{function}` are `{expected}` and `{found}`"))
                    .label(first, format!("this is `{expected}`"));
                convert(d, "it", found, expected, span)
            }
            TypeMismatchAt::Or(tensor) => {
                let d = new(format!("`{tensor}` is `{expected}` and its value outside is `{found}`"));
                convert(d, "it", found, expected, span)
            }
            TypeMismatchAt::State => convert(
                new(format!("a state that starts as `{expected}` becomes `{found}`")),
                "it",
                found,
                expected,
                span,
            ),
        }
    }
}

/// Whether a conversion from `b` to `a` loses less than one from `a` to `b`: truth values are numbers, integers become
/// floats, and the wider of two floats or integers holds more.
fn holds_more(a: ElementType, b: ElementType) -> bool {
    let rank = |e: ElementType| (e != ElementType::Bool, !e.is_integer(), e.bytes());
    rank(a) > rank(b)
}
