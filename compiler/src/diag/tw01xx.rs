//! TW01: names and types. What the room `program` (and others, about names) reports, and how it is said.

use tilewright_kernel::ElementType;
use tilewright_kernel::info::DimKind;

use super::edit::Change;
use super::suggest::closest;
use super::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

/// `1 index`, `2 indices`
fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// `did you mean` with the edit.
fn meant(diagnostic: Diagnostic, span: Span, suggestion: Option<String>) -> Diagnostic {
    match suggestion {
        Some(name) => {
            let text = format!("did you mean `{name}`?");
            diagnostic.replace(span, name, text)
        }
        None => diagnostic,
    }
}

/// TW0101: a name that nothing defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What it should name: `tensor`, `axis of y`, `role`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Where it is used.
    pub span: Span,
    /// The names that are valid there, in the order of their definition.
    pub known: Vec<String>,
}

impl IntoDiagnostic for UnknownName {
    fn into_diagnostic(self) -> Diagnostic {
        const SHOWN: usize = 12;
        let UnknownName { kind, name, span, known } = self;
        let mut diagnostic = Diagnostic::new(Code::TW0101, span, format!("there is no {kind} `{name}`"));
        if !known.is_empty() {
            let mut list: Vec<String> = known.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
            if known.len() > SHOWN {
                list.push(format!("{} more", known.len() - SHOWN));
            }
            diagnostic = diagnostic.note(format!("known here: {}", list.join(", ")));
        }
        let closest = closest(&name, known.iter().map(String::as_str));
        let foreign = match name.as_str() {
            "block" | "blocks" | "blockIdx" | "program" => Some("grid"),
            "lane" | "lanes" | "threadIdx" => Some("thread"),
            _ => None,
        };
        let suggestion = closest.or(foreign.filter(|word| known.iter().any(|k| k == word)));
        meant(diagnostic, span, suggestion.map(str::to_owned))
    }
}

/// TW0101: a role in a launch that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoles {
    /// The name after `by`.
    pub name: String,
    /// Where it is used.
    pub span: Span,
}

impl IntoDiagnostic for NoRoles {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, span } = self;
        Diagnostic::new(Code::TW0101, span, format!("there is no role `{name}`: the launch has none"))
            .note("roles are ranges of the warps of a block, which run different stages at one time")
            .help(format!("write `launch roles {{ {name}: n warp, … }};`, or leave `by {name}` out"))
    }
}

/// TW0101: a function that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFunction {
    /// The name as written.
    pub name: String,
    /// A known function that is close.
    pub suggestion: Option<String>,
    /// Whether it is the name of a reduction, which names its axes.
    pub reduction: bool,
    /// The name's tokens.
    pub span: Span,
}

impl IntoDiagnostic for UnknownFunction {
    fn into_diagnostic(self) -> Diagnostic {
        if self.reduction {
            let name = self.name;
            return Diagnostic::new(Code::TW0101, self.span, format!("`{name}` is a reduction, not a function"))
                .help(format!("name the axes that it runs over: `{name}(|k| …)`"));
        }
        let diagnostic = Diagnostic::new(Code::TW0101, self.span, format!("there is no function `{}`", self.name));
        meant(diagnostic, self.span, self.suggestion)
    }
}

/// TW0102: a name defined twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateName {
    /// The name.
    pub name: String,
    /// Where it is taken.
    pub first: Span,
    /// Where it is defined again.
    pub second: Span,
}

impl IntoDiagnostic for DuplicateName {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0102, self.second, format!("the name `{}` is taken", self.name))
            .label(self.first, format!("`{}` is defined here", self.name))
            .note("no name hides another one: what a name means never depends on the line it is read on")
            .help("choose another name")
    }
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

/// TW0104: a dimension that nothing tells at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTold {
    /// The dimension.
    pub name: String,
    /// Size or stride.
    pub kind: DimKind,
    /// The first size or stride that mentions it.
    pub within: Option<String>,
    /// Where it appears first.
    pub span: Span,
}

impl IntoDiagnostic for NotTold {
    fn into_diagnostic(self) -> Diagnostic {
        let NotTold { name, kind, within, span } = self;
        let what = if kind == DimKind::Size { "size" } else { "stride" };
        let title = format!("no argument tells the {what} `{name}`");
        let note = match &within {
            Some(size) => format!("it occurs in `{size}` only, and a launch does not solve equations"),
            None => "it occurs in no shape".to_owned(),
        };
        Diagnostic::new(Code::TW0104, span, title)
            .note(note)
            .help(format!("give a tensor a dimension of size `{name}`, or fix it by a fact: `where {name} == 128`"))
    }
}

/// What is wrong with a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeProblem {
    /// Beyond 63 bits.
    TooLarge(u64),
    /// A literal with a type.
    Suffix(i64),
    /// Not made of literals, sizes and `+ - * / %`.
    NotASize,
    /// A divisor that is not positive.
    Divisor(i64),
    /// A name that is not spelled like a size.
    LowerCase(String),
    /// A scalar parameter.
    Scalar(String),
}

/// TW0105: something that is no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSize {
    /// What is wrong.
    pub problem: SizeProblem,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for BadSize {
    fn into_diagnostic(self) -> Diagnostic {
        let new = |title: String| Diagnostic::new(Code::TW0105, self.span, title);
        match self.problem {
            SizeProblem::TooLarge(value) => new(format!("the size {value} is larger than 2^63 - 1")),
            SizeProblem::Suffix(value) => new("a size has no element type".to_owned()).replace(
                self.span,
                value.to_string(),
                format!("write `{value}`"),
            ),
            SizeProblem::NotASize => {
                new("this is not a size".to_owned()).note("sizes are made of literals, UPPERCASE names and `+ - * / %`")
            }
            SizeProblem::Divisor(value) => new(format!("a size is divided by {value}"))
                .note("`/` and `%` of sizes round down and need a positive divisor"),
            SizeProblem::LowerCase(name) => {
                let upper = name.to_uppercase();
                new(format!("`{name}` is not a size"))
                    .note("sizes are UPPERCASE; a lower-case name is a stride, after `;`")
                    .replace(self.span, upper.clone(), format!("write `{upper}`"))
            }
            SizeProblem::Scalar(name) => new(format!("the scalar parameter `{name}` is not a size"))
                .note("sizes are read off the shapes of the arguments and are integers"),
        }
    }
}

/// TW0105: strides that do not match the sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrideCount {
    /// Number of sizes.
    pub sizes: usize,
    /// Number of strides.
    pub strides: usize,
    /// The strides.
    pub span: Span,
}

impl IntoDiagnostic for StrideCount {
    fn into_diagnostic(self) -> Diagnostic {
        let (sizes, strides) = (count(self.sizes, "size", "sizes"), count(self.strides, "stride", "strides"));
        Diagnostic::new(Code::TW0105, self.span, format!("{strides} for {sizes}"))
            .note("a tensor has one stride for each size, outermost first, in elements")
    }
}

/// TW0106: a wrong number of indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongRank {
    /// The tensor.
    pub name: String,
    /// Its rank.
    pub expected: usize,
    /// Number of indices.
    pub found: usize,
    /// Where it is declared.
    pub declared: Option<Span>,
    /// The read, or the left-hand side.
    pub span: Span,
}

impl IntoDiagnostic for WrongRank {
    fn into_diagnostic(self) -> Diagnostic {
        let (has, takes) = (count(self.found, "index", "indices"), count(self.expected, "dimension", "dimensions"));
        let diagnostic =
            Diagnostic::new(Code::TW0106, self.span, format!("`{}` has {takes} and is given {has}", self.name));
        match self.declared {
            Some(span) => diagnostic.label(span, "declared here"),
            None => diagnostic,
        }
    }
}

/// TW0107: an output without an equation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverDefined {
    /// The output.
    pub name: String,
    /// Its rank.
    pub rank: usize,
    /// Its declaration.
    pub span: Span,
}

impl IntoDiagnostic for NeverDefined {
    fn into_diagnostic(self) -> Diagnostic {
        let axes = ["i", "j", "k", "l"].get(..self.rank).map_or("…".to_owned(), |axes| axes.join(", "));
        Diagnostic::new(Code::TW0107, self.span, format!("no equation defines the output `{}`", self.name))
            .help(format!("add `{}[{axes}] = …;`", self.name))
    }
}

/// TW0108: two equations for one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinedTwice {
    /// The tensor.
    pub name: String,
    /// The first equation's target.
    pub first: Span,
    /// The second one's.
    pub second: Span,
}

impl IntoDiagnostic for DefinedTwice {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0108, self.second, format!("`{}` is defined twice", self.name))
            .label(self.first, format!("`{}` is defined here", self.name))
            .note("an equation is a definition, not an assignment: it says what every element is, once")
            .help("give the second one another name, or join both with `if … { … } else { … }`")
    }
}

/// TW0109: an equation for an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedInput {
    /// The input.
    pub name: String,
    /// Its declaration.
    pub declared: Span,
    /// The target.
    pub span: Span,
}

impl IntoDiagnostic for AssignedInput {
    fn into_diagnostic(self) -> Diagnostic {
        let name = &self.name;
        Diagnostic::new(Code::TW0109, self.span, format!("`{name}` is an input and cannot be defined"))
            .label(self.declared, format!("`{name}` is declared as an input"))
            .help(format!("to update it in place, declare it `inout {name}: …`"))
    }
}

/// TW0110: equations that need each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CyclicEquations {
    /// Each reads the next, the last one the first.
    pub names: Vec<String>,
    /// Their left-hand sides.
    pub spans: Vec<Span>,
}

impl IntoDiagnostic for CyclicEquations {
    fn into_diagnostic(self) -> Diagnostic {
        let span = self.spans.first().copied().unwrap_or(Span::UNKNOWN);
        let quoted = |name: &String| format!("`{name}`");
        let first = self.names.first().map(quoted).unwrap_or_default();
        if self.names.len() == 1 {
            return Diagnostic::new(Code::TW0110, span, format!("{first} is defined by itself"))
                .note("equations have no order and no loop: recurrences need `fold`");
        }
        const SHOWN: usize = 6;
        let mut chain: Vec<String> = self.names.iter().take(SHOWN).map(quoted).collect();
        if self.names.len() > SHOWN {
            chain.push("…".to_owned());
        }
        chain.push(first);
        let title = format!("equations need each other: {}", chain.join(" reads "));
        let mut diagnostic = Diagnostic::new(Code::TW0110, span, title);
        for (n, &place) in self.spans.iter().enumerate().skip(1).take(SHOWN - 1) {
            let next = &self.names[(n + 1) % self.names.len()];
            diagnostic = diagnostic.label(place, format!("reads `{next}`"));
        }
        diagnostic
    }
}

/// TW0111: an intermediate that nothing reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverRead {
    /// The intermediate.
    pub name: String,
    /// The target.
    pub span: Span,
}

impl IntoDiagnostic for NeverRead {
    fn into_diagnostic(self) -> Diagnostic {
        let name = &self.name;
        Diagnostic::new(Code::TW0111, self.span, format!("`{name}` is no output and nothing reads it"))
            .help(format!("remove the equation, or declare `{name}` as an output"))
    }
}

/// TW0112: an input that nothing reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedInput {
    /// The input.
    pub name: String,
    /// Its declaration.
    pub span: Span,
}

impl IntoDiagnostic for UnusedInput {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0112, self.span, format!("nothing reads the input `{}`", self.name))
            .help("remove the parameter: every caller has to give it a value")
    }
}

/// Why a range is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeReason {
    /// Its readers do not fix it, and neither does its own right-hand side.
    Intermediate,
    /// No dimension is indexed by the bare reduction axis.
    NeverBare,
    /// Every dimension that the bare reduction axis indexes takes its range from this axis.
    Circular,
    /// This read demands something that is no simple range.
    NotSimple(Span),
    /// Two reads demand ranges that cannot be compared.
    NotComparable {
        /// A read and the range that it demands, with those before it.
        first: (Span, String),
        /// Another one.
        second: (Span, String),
    },
    /// The bounds are too long.
    TooLong,
}

/// TW0113: the range of an axis cannot be inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRange {
    /// The axis.
    pub axis: String,
    /// Why.
    pub reason: RangeReason,
    /// Its declaration.
    pub span: Span,
}

impl IntoDiagnostic for UnknownRange {
    fn into_diagnostic(self) -> Diagnostic {
        let UnknownRange { axis, reason, span } = self;
        let diagnostic = Diagnostic::new(Code::TW0113, span, format!("the range of `{axis}` cannot be inferred"));
        let diagnostic = match reason {
            RangeReason::Intermediate => {
                diagnostic.note("no read of the tensor, and no bare index on the right, fixes it")
            }
            RangeReason::NeverBare => {
                diagnostic.note(format!("no tensor is indexed by `{axis}` alone, so no shape tells its range"))
            }
            RangeReason::Circular => {
                diagnostic.note(format!("what `{axis}` indexes takes its own range from this reduction"))
            }
            RangeReason::NotSimple(read) => diagnostic.label(read, "the indices read here form no simple range"),
            RangeReason::NotComparable { first, second } => diagnostic
                .label(first.0, format!("demands {}", first.1))
                .label(second.0, format!("demands {}", second.1))
                .note("which bound is larger depends on sizes that no fact compares"),
            RangeReason::TooLong => diagnostic.note("its bounds are longer expressions than are handled"),
        };
        diagnostic.help(format!("write it: `{axis} in 0..N`"))
    }
}

/// TW0114: two dimensions give one axis different ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeConflict {
    /// The axis.
    pub axis: String,
    /// A read and the range that it gives.
    pub first: (Span, String),
    /// Another read and its range.
    pub second: (Span, String),
    /// The declaration of the axis.
    pub span: Span,
}

impl IntoDiagnostic for RangeConflict {
    fn into_diagnostic(self) -> Diagnostic {
        let RangeConflict { axis, first, second, span } = self;
        let title = format!("`{axis}` would range over {} and over {}", first.1, second.1);
        let (a, b) = (upper(&first.1), upper(&second.1));
        let fact = match (a, b) {
            (Some(a), Some(b)) => format!("if they are the same size, say so: `where {a} == {b}`; else "),
            _ => String::new(),
        };
        Diagnostic::new(Code::TW0114, span, title)
            .label(first.0, format!("`{axis}` indexes a dimension of {}", first.1))
            .label(second.0, format!("`{axis}` indexes a dimension of {}", second.1))
            .help(format!("{fact}write the range: `{axis} in {}`", first.1))
    }
}

/// The size of a range that starts at 0.
fn upper(range: &str) -> Option<&str> {
    range.strip_prefix("0..")
}

/// TW0115: an output's written domain is not its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDomain {
    /// The axis.
    pub axis: String,
    /// The output.
    pub output: String,
    /// The range written, or given by another output of the same equation.
    pub written: String,
    /// The range that the shape gives.
    pub shape: String,
    /// The declaration of the output.
    pub declared: Span,
    /// The axis.
    pub span: Span,
}

impl IntoDiagnostic for OutputDomain {
    fn into_diagnostic(self) -> Diagnostic {
        let OutputDomain { axis, output, written, shape, declared, span } = self;
        Diagnostic::new(Code::TW0115, span, format!("`{axis}` ranges over {written}, but `{output}` has {shape} there"))
            .label(declared, format!("the shape of `{output}`"))
            .note("an output is defined at every element of its shape, and nowhere else")
            .help(format!("leave the range out, or write `{axis} in {shape}`"))
    }
}

/// TW0116: an index that is not quasi-affine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAffine {
    /// A product; else a quotient or remainder.
    pub product: bool,
    /// The first operand.
    pub first: Span,
    /// The second one.
    pub second: Span,
    /// The whole.
    pub span: Span,
}

impl IntoDiagnostic for NotAffine {
    fn into_diagnostic(self) -> Diagnostic {
        let title = if self.product {
            "an index multiplies two things that vary"
        } else {
            "an index is divided by something that varies"
        };
        let mut diagnostic = Diagnostic::new(Code::TW0116, self.span, title);
        if self.product {
            diagnostic = diagnostic.label(self.first, "this varies");
        }
        diagnostic
            .label(self.second, "this varies")
            .note("indices are quasi-affine: one factor of a product, and every divisor, is made of literals and sizes")
    }
}

/// TW0117: a gather without `or`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnguardedGather {
    /// The tensor.
    pub tensor: String,
    /// The index that is a value.
    pub index: Span,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for UnguardedGather {
    fn into_diagnostic(self) -> Diagnostic {
        let title = format!("`{}` is read at an index that only the data knows", self.tensor);
        Diagnostic::new(Code::TW0117, self.span, title)
            .label(self.index, "this value may lie outside the tensor")
            .help(format!("say what it is outside: `{}[…] or 0.0`", self.tensor))
    }
}

/// What is wrong with an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexProblem {
    /// No integer by its form.
    NotAnInteger,
    /// A value of this type.
    NotAnIntegerValue(ElementType),
    /// A literal with a type.
    Suffix(u64),
    /// Beyond 63 bits.
    TooLarge(u64),
    /// A divisor that is not positive.
    Divisor(i64),
    /// A bound of a range that is read from memory.
    GatheredBound,
}

/// TW0118: something that is no index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// What is wrong.
    pub problem: IndexProblem,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for BadIndex {
    fn into_diagnostic(self) -> Diagnostic {
        let new = |title: String| Diagnostic::new(Code::TW0118, self.span, title);
        match self.problem {
            IndexProblem::NotAnInteger => new("an index is an integer".to_owned())
                .note("indices are made of axes, sizes, literals, `+ - * / %`, and integer values"),
            IndexProblem::NotAnIntegerValue(element) => {
                new(format!("an index is an integer, and this is `{element}`")).help("convert it: `(…) as i32`")
            }
            IndexProblem::Suffix(value) => new("an index has no element type".to_owned()).replace(
                self.span,
                value.to_string(),
                format!("write `{value}`"),
            ),
            IndexProblem::TooLarge(value) => new(format!("the index {value} is larger than 2^63 - 1")),
            IndexProblem::Divisor(value) => new(format!("an index is divided by {value}"))
                .note("`/` and `%` of indices round down and need a positive divisor"),
            IndexProblem::GatheredBound => new("the bound of a range is read from memory".to_owned())
                .help("range over the whole dimension and select: `if k < len[i] { … } else { 0.0 }`"),
        }
    }
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
}

impl IntoDiagnostic for TypeMismatch {
    fn into_diagnostic(self) -> Diagnostic {
        let TypeMismatch { place, expected, found, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0119, span, title).note("nothing is converted without `as`");
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

/// TW0120: a literal whose type nothing fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntypedLiteral {
    /// An integer; else a float.
    pub is_integer: bool,
    /// As it is written.
    pub text: String,
    /// The literal.
    pub span: Span,
}

impl IntoDiagnostic for UntypedLiteral {
    fn into_diagnostic(self) -> Diagnostic {
        let (text, element) = (self.text, if self.is_integer { "i32" } else { "f32" });
        // `inf` and `nan` are words, which take no suffix.
        let example = if text.ends_with(char::is_alphabetic) {
            format!("`{text} as {element}`")
        } else {
            format!("`{text}{element}` or `{text} as {element}`")
        };
        Diagnostic::new(Code::TW0120, self.span, "nothing here says which type this literal has")
            .help(format!("give it one: {example}"))
    }
}

/// TW0121: an operation that a type does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongOperand {
    /// The operation.
    pub op: String,
    /// The type of its operand.
    pub found: ElementType,
    /// What it needs.
    pub needs: &'static str,
    /// The operand or the operation.
    pub span: Span,
}

impl IntoDiagnostic for WrongOperand {
    fn into_diagnostic(self) -> Diagnostic {
        let title = format!("`{}` needs {}, and this is `{}`", self.op, self.needs, self.found);
        let diagnostic = Diagnostic::new(Code::TW0121, self.span, title);
        if self.needs == "a float" && self.found.is_integer() {
            return diagnostic.help("convert the operand: `… as f32`");
        }
        diagnostic
    }
}

/// TW0121: a conversion that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongCast {
    /// The type of the operand.
    pub from: ElementType,
    /// The type asked for.
    pub to: ElementType,
    /// The cast.
    pub span: Span,
}

impl IntoDiagnostic for WrongCast {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongCast { from, to, span } = self;
        let diagnostic = Diagnostic::new(Code::TW0121, span, format!("`{from}` is not converted to `{to}`"));
        if to == ElementType::Bool {
            diagnostic.help("compare it: `… != 0`")
        } else {
            diagnostic.help("choose a number for each: `if … { 1.0 } else { 0.0 }`")
        }
    }
}

/// What is wrong with a literal for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralProblem {
    /// Outside the type's range.
    OutOfRange {
        /// The least value.
        least: i128,
        /// The greatest value.
        greatest: i128,
    },
    /// Rounds to infinity.
    Overflow,
    /// An integer literal for a floating type.
    IntegerForFloat,
    /// A literal of another kind.
    NotThatKind,
    /// A type for storage only that does not have this value.
    NotExact,
    /// The type has no infinity.
    NoInfinity,
}

/// TW0122: a literal that its type does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongLiteral {
    /// The literal.
    pub text: String,
    /// The type that its place needs.
    pub element: ElementType,
    /// What is wrong.
    pub problem: LiteralProblem,
    /// The literal's tokens.
    pub span: Span,
}

impl IntoDiagnostic for WrongLiteral {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongLiteral { text, element, problem, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0122, span, title);
        match problem {
            LiteralProblem::OutOfRange { least, greatest } => {
                new(format!("{text} is no `{element}`")).note(format!("`{element}` holds {least} to {greatest}"))
            }
            LiteralProblem::Overflow => new(format!("{text} is larger than every finite `{element}`")),
            LiteralProblem::IntegerForFloat => new(format!("{text} is an integer, and its place needs `{element}`"))
                .replace(span, format!("{text}.0"), format!("write `{text}.0`")),
            LiteralProblem::NotThatKind => new(format!("{text} is no `{element}`, which its place needs")),
            LiteralProblem::NotExact => new(format!("`{element}` does not have the value {text}"))
                .note(format!("`{element}` is a type for storage: its literals must be exact"))
                .help(format!("convert it, which rounds: `{text}f32 as {element}`")),
            LiteralProblem::NoInfinity => new(format!("`{element}` has no infinity")),
        }
    }
}

/// TW0123: a wrong number of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongArgumentCount {
    /// The function.
    pub function: String,
    /// How many it takes.
    pub expected: usize,
    /// How many there are.
    pub found: usize,
    /// The call.
    pub span: Span,
}

impl IntoDiagnostic for WrongArgumentCount {
    fn into_diagnostic(self) -> Diagnostic {
        let takes = count(self.expected, "argument", "arguments");
        Diagnostic::new(
            Code::TW0123,
            self.span,
            format!("`{}` takes {takes} and is given {}", self.function, self.found),
        )
    }
}

/// Who reads an in-place tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InPlaceReader {
    /// An equation that does not define it.
    OtherEquation {
        /// The equation that does.
        writer: Span,
    },
    /// Its own equation, at another element than the one it writes.
    OtherElement {
        /// The axes of the equation.
        axes: Vec<String>,
        /// A point and the element read there.
        witness: Option<(Vec<i64>, Vec<i64>)>,
        /// The left-hand side.
        writer: Span,
    },
}

/// TW0124: an element updated in place that somebody else reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlaceRead {
    /// The tensor.
    pub tensor: String,
    /// Who reads it.
    pub reader: InPlaceReader,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for InPlaceRead {
    fn into_diagnostic(self) -> Diagnostic {
        let InPlaceRead { tensor, reader, span } = self;
        let title = format!("`{tensor}` is updated in place, and this read may see the new value");
        let diagnostic = Diagnostic::new(Code::TW0124, span, title)
            .note("an element that is updated in place is read by its own definition only, before it is written");
        let help = format!("write to another tensor: `-> (out: …)` instead of `inout {tensor}`");
        match reader {
            InPlaceReader::OtherEquation { writer } => {
                diagnostic.label(writer, format!("`{tensor}` is written here")).help(help)
            }
            InPlaceReader::OtherElement { axes, witness, writer } => {
                let diagnostic = diagnostic.label(writer, format!("`{tensor}` is written here"));
                let own = format!("`{tensor}[{}]`", axes.join(", "));
                let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                let diagnostic = match witness {
                    Some((point, read)) => {
                        let at: Vec<String> =
                            axes.iter().zip(&point).map(|(axis, v)| format!("{axis} = {v}")).collect();
                        let writers: Vec<String> =
                            axes.iter().zip(&read).map(|(axis, v)| format!("{axis} = {v}")).collect();
                        diagnostic.counterexample(format!(
                            "{} reads {tensor}[{}], which {} writes",
                            at.join(", "),
                            list(&read),
                            writers.join(", ")
                        ))
                    }
                    None => diagnostic,
                };
                diagnostic.help(format!("read {own} only, or {help}"))
            }
        }
    }
}

/// Where a tuple has the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TupleUse {
    /// The targets of an equation and its value.
    Targets,
    /// A tuple where one value is needed.
    Value,
    /// The names of a state.
    Pattern,
    /// The next state.
    State,
}

/// TW0125: a tuple of the wrong length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongTuple {
    /// Where.
    pub what: TupleUse,
    /// The length needed.
    pub expected: usize,
    /// The length found.
    pub found: usize,
    /// The tuple.
    pub span: Span,
}

impl IntoDiagnostic for WrongTuple {
    fn into_diagnostic(self) -> Diagnostic {
        let (expected, found) = (self.expected, self.found);
        let new = |title: String| Diagnostic::new(Code::TW0125, self.span, title);
        let states = |n: usize| count(n, "value", "values");
        match self.what {
            TupleUse::Targets => new(format!(
                "the left-hand side names {}, and the right-hand side has {found}",
                count(expected, "tensor", "tensors")
            ))
            .help("only `fold` has several values: `(a, b)[i] = fold(…)`"),
            TupleUse::Value => new(format!("{} where one is needed", states(found)))
                .help("give a `fold` with several states an equation of its own: `(a, b)[i] = fold(…);`"),
            TupleUse::Pattern => new(format!(
                "the state has {}, and {} named",
                states(expected),
                if found == 1 { "1 is".to_owned() } else { format!("{found} are") }
            )),
            TupleUse::State => new(format!("the state has {}, and the next one has {found}", states(expected))),
        }
    }
}

/// TW0126: a `dot` that is not a sum of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotShape {
    /// The body.
    pub span: Span,
}

impl IntoDiagnostic for DotShape {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0126, self.span, "the body of `dot` is a product of two factors")
            .note("tensor cores compute `dot(|k| a[m, k] * b[n, k])`")
            .help("move everything else out of the `dot`, or use `sum`")
    }
}

/// TW0127: a search over several axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeveralAxes {
    /// `argmax` or `argmin`.
    pub reduction: &'static str,
    /// How many axes.
    pub found: usize,
    /// The second axis.
    pub span: Span,
}

impl IntoDiagnostic for SeveralAxes {
    fn into_diagnostic(self) -> Diagnostic {
        let title = format!("`{}` searches one axis, and this has {}", self.reduction, self.found);
        Diagnostic::new(Code::TW0127, self.span, title).note("its result is one index, a `u32`")
    }
}

/// TW0128: a schedule for an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledInput {
    /// The input.
    pub name: String,
    /// The name in the schedule.
    pub span: Span,
}

impl IntoDiagnostic for ScheduledInput {
    fn into_diagnostic(self) -> Diagnostic {
        let name = &self.name;
        Diagnostic::new(Code::TW0128, self.span, format!("`{name}` is an input: nothing computes it"))
            .help("schedule the equation that reads it")
    }
}

/// TW0128: an output that is asked to be inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedOutput {
    /// The output.
    pub name: String,
    /// The statement.
    pub span: Span,
}

impl IntoDiagnostic for InlinedOutput {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0128, self.span, format!("`{}` is an output and must be written", self.name))
            .note("only an intermediate can be computed where it is read")
    }
}

/// TW0129: a statement that may stand once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedStage {
    /// The keyword of the second statement.
    pub statement: &'static str,
    /// What it is about, if not the kernel.
    pub name: Option<String>,
    /// The first one.
    pub first: Span,
    /// The second one.
    pub second: Span,
}

impl IntoDiagnostic for RepeatedStage {
    fn into_diagnostic(self) -> Diagnostic {
        let title = match &self.name {
            Some(name) => format!("there is a second statement on how `{name}` is computed"),
            None => format!("a second `{}`", self.statement),
        };
        Diagnostic::new(Code::TW0129, self.second, title)
            .label(self.first, "the first one is here")
            .help("join them into one")
    }
}

/// TW0130: an output passed by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarOutput {
    /// The output.
    pub name: String,
    /// Its type.
    pub element: ElementType,
    /// The type.
    pub span: Span,
}

impl IntoDiagnostic for ScalarOutput {
    fn into_diagnostic(self) -> Diagnostic {
        let element = self.element;
        Diagnostic::new(Code::TW0130, self.span, format!("`{}` is written and is passed by value", self.name)).replace(
            self.span,
            format!("{element}[]"),
            format!("a single element in memory is `{element}[]`"),
        )
    }
}

/// TW0131: more of something than is handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// What.
    pub what: &'static str,
    /// The most that is handled.
    pub limit: usize,
    /// The first one beyond.
    pub span: Span,
}

impl IntoDiagnostic for TooMany {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0131, self.span, format!("a kernel has at most {} {}", self.limit, self.what))
    }
}

/// TW0132: a kernel that writes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOutput {
    /// The kernel.
    pub name: String,
    /// The first tensor that an equation defines, if there is one, and its number of indices.
    pub defines: Option<(String, usize)>,
    /// The kernel's name.
    pub span: Span,
}

impl IntoDiagnostic for NoOutput {
    fn into_diagnostic(self) -> Diagnostic {
        let (tensor, rank) = self.defines.unwrap_or_else(|| ("y".to_owned(), 1));
        let sizes = ["M", "N", "K"].get(..rank).map_or_else(|| "…".to_owned(), |names| names.join(", "));
        Diagnostic::new(Code::TW0132, self.span, format!("`{}` writes nothing", self.name))
            .help(format!("declare what it computes, after its inputs: `-> ({tensor}: f32[{sizes}])`"))
    }
}
