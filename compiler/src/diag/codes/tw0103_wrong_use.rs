//! TW0103: a name used as something that it is not.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::count;
use crate::source::Span;

row! {
    /// A tensor is read with indices; an axis or a size is an integer for indices and becomes a value by a conversion.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Ramp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i] * i;
    /// }
    /// ```
    ///
    /// The message says what the name is, and how to write what may be meant.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Ramp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i] * (i as f32);
    /// }
    /// ```
    TW0103 "wrong-use" Error "a name used as something that it is not"
}

/// How a name is used that means something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// A tensor of this rank without brackets.
    TensorWithoutIndices(usize),
    /// Something that is no tensor, with brackets.
    Indexed,
    /// An axis where a value of this type may be meant.
    AxisAsValue(ElementType),
    /// A size where a value of this type may be meant.
    SizeAsValue(ElementType),
    /// An index cast to `bool`.
    IndexCast,
}

/// TW0103: a name used as something that it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongUse {
    /// How it is used.
    pub used: NameUse,
    /// The name.
    pub name: String,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for WrongUse {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongUse { used, name, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0103, span, title);
        match used {
            NameUse::TensorWithoutIndices(0) => new(format!("`{name}` is a tensor and is read with brackets")).replace(
                span,
                format!("{name}[]"),
                format!("write `{name}[]`"),
            ),
            NameUse::TensorWithoutIndices(rank) => new(format!("`{name}` is a tensor and is read with brackets"))
                .help(format!("give {}: `{name}[…]`", count(rank, "index", "indices"))),
            NameUse::Indexed => new(format!("`{name}` is not a tensor and takes no indices")),
            NameUse::AxisAsValue(element) => new(format!("the axis `{name}` is an index, not a value with a type"))
                .help(format!("convert it: `{name} as {element}`")),
            NameUse::SizeAsValue(element) => new(format!("the size `{name}` is not a value with a type"))
                .help(format!("convert it: `{name} as {element}`")),
            NameUse::IndexCast => new("an index cannot be converted to `bool`".to_owned()).help("compare it: `i != 0`"),
        }
    }
}
