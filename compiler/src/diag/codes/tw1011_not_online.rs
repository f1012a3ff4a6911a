//! TW1011: an `online sum` without a correction.

use tilewright_kernel::algorithm::Reduction;
use tilewright_kernel::online::{Outside, Why};

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An `online sum` may be added up before that is known which its terms depend on: partial sums are corrected where
    /// it changes. That is right for these terms:
    ///
    /// - after `m[i] = max(|j| u)`, where `u` is any expression: `l[i] = online sum(|j| exp(u - m[i]) * y)`, with the
    ///   same `u`, over the same range, where `y` does not depend on `m`. Partial sums are multiplied by one factor,
    ///   which is at most 1, so that none overflows. The argument may be scaled by a positive literal, and with `min`
    ///   it is `exp(m[i] - u)`. `approx::exp` is an exponential, too;
    /// - after `m[i] = max(|j| abs(x))`: `online sum(|j| (x / m[i]) * (x / m[i]) * y)`, with any number of quotients,
    ///   or of their magnitudes, as in `pow(abs(x / m[i]), 3)`;
    /// - after `mu[i] = sum(|j| u) / N as f32`, where `N` is the number of terms: `online sum(|j| (u - mu[i]) * (u -
    ///   mu[i]))`;
    /// - after `mu[i] = sum(|j| w * x) / sum(|j| w)`: `online sum(|j| w * ((x - mu[i]) * (x - mu[i])))`, where `w` is
    ///   not negative, as one sees: `abs(…)`, `max(…, 0.0)`, a square, an exponential, what is unsigned;
    /// - both of `f32` or both of `f64`. A sum of exponentials may have more axes.
    ///
    /// `online dot` is the same for a product: one factor is such an exponential, or one that is rounded to the type of
    /// a factor, itself or multiplied by a literal before.
    ///
    /// What the term is made of may stand in equations of its own.
    ///
    /// Terms that separate have a correction as well, which is not computed, since what depends on `m` can stand
    /// outside of the reduction: `sum(|j| x - m[i])`, `sum(|j| log(x / m[i]))`, and products.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Spread(x: f32[M, N]) -> (y: f32[M]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i] = online sum(|j| (x[i, j] - m[i]) * (x[i, j] - m[i]));
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule m in registers per thread at y.t { split j by 4 -> jo, ji; unroll ji; }
    /// }
    /// ```
    ///
    /// The message names the part of the term that stands in the way, and has two terms that no factor corrects, or two
    /// lists of terms that nothing tells apart, in numbers, where such are found.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel LogSumExp(x: f32[M, N]) -> (y: f32[M]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     l[i] = online sum(|j| exp(x[i, j] - m[i]));
    ///     y[i] = m[i] + log(l[i]);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule m in registers per thread at y.t {
    ///         split j by 4 -> jo, ji; unroll ji;
    ///         online m -> l over jo;
    ///     }
    /// }
    /// ```
    TW1011 "not-online" Error "an `online sum` whose terms have no correction"
}

/// Why two reductions are no chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainProblem {
    /// The first one is nothing that others follow.
    NotExtreme,
    /// The second one is nothing that follows another.
    NotSum,
    /// The first one is an `ordered sum`.
    Fixed,
    /// A search for something else than the extreme.
    Search,
    /// More axes than the first one, and no exponentials.
    More,
    /// Other types, or two of them.
    Type,
    /// Several axes, or not the same range.
    Range,
    /// Not the same elements.
    Elements,
    /// The term does not read the extreme.
    Unread,
    /// A reduction in the term reads it.
    Nested,
    /// A part of the term has no correction: why, and terms that no factor corrects.
    Obstacle(Why, Option<Box<Apart>>),
    /// There is a correction, but the term is no product with one exponential.
    Shape,
    /// It stands beside a sum with more axes, and is no sum of exponentials.
    Beside,
    /// There is a correction, but the term is no square of the difference from the mean.
    Square,
    /// There is a correction if no weight is negative.
    Negative,
    /// It follows a mean with other weights than the sums beside it.
    Divided,
    /// There is a correction, and what depends on the earlier one can be taken out.
    Outside(Outside),
    /// The exponential's argument is not that of the extreme.
    Other,
    /// The exponential may be larger than 1.
    Grows(Reduction),
    /// What is rounded to a narrower type is no multiple of the exponential by a number of that type.
    Narrow,
    /// The term is too large.
    TooLarge,
}

/// Two terms, or lists of terms, that nothing corrects where what they follow changes, as texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// What each reads: `x[i, j] = 1`.
    pub given: [String; 2],
    /// The extreme or mean of both, and a later one.
    pub of: [String; 2],
    /// Each term, or sum of a list, with the one and with the other.
    pub values: [[String; 2]; 2],
    /// Whether they are lists.
    pub is_list: bool,
}

impl ChainProblem {
    /// Says it, with what it is about: the later reduction, and the earlier one.
    pub(super) fn explain(self, diagnostic: Diagnostic, later: &str, earlier: Option<&str>) -> Diagnostic {
        let m = earlier.map_or_else(|| "the extreme".to_owned(), |m| format!("`{m}`"));
        let form = "write the term as `exp(u - m[i])`, or that times what does not depend on `m`; `u` is the term of `m`";
        let square = "write the term as `(u - mean) * (u - mean)`, where `mean` is the sum of `u` over the number of its terms; factors stand outside of the sum";
        match self {
            Self::NotExtreme => diagnostic.note(format!(
                "{m} is not a `max`, `min` or `sum` alone, nor a sum divided by the number of its terms or by the sum of their weights"
            )),
            Self::NotSum => diagnostic
                .note(format!("`{later}` is not a sum alone, nor what is taken where {m} is"))
                .help(format!(
                    "give a sum an equation of its own; what is taken where {m} is, is `argmax(|j| u)` or `sum(|j| if u == m[i] {{ y }} else {{ 0.0 }})`, with other operations and what they begin with, too"
                )),
            Self::Fixed => diagnostic
                .note("the terms of an `ordered sum` come one after the other, and those of one pass in parts")
                .help("write `sum`"),
            Self::Search => diagnostic
                .note(format!("`{later}` searches another extreme than {m}"))
                .help("an `argmax` follows a `max`, an `argmin` a `min`, of the same terms"),
            Self::More => diagnostic
                .note(format!("`{later}` has an axis that {m} has not"))
                .help("a sum with more axes follows an extreme if its terms are exponentials, as an `online dot`"),
            Self::Type => diagnostic.note("both are of `f32`, or both of `f64`"),
            Self::Range => diagnostic.note(format!("{m} and `{later}` are reductions over one axis each, of the same range")),
            Self::Elements => diagnostic
                .note(format!("each element of `{later}` depends on one of {m}, with the same axes: `m[i]` for `l[i]`")),
            Self::Unread => diagnostic
                .note(format!("the term of `{later}` reads no `max` or `min` that is not known before it"))
                .help("write `sum`"),
            Self::Nested => diagnostic
                .note(format!("a reduction stands in the term, or reads {m} for it"))
                .help(format!("give a reduction that does not read {m} an equation of its own")),
            Self::TooLarge => diagnostic.note("the term is too large, with all that it inlines"),
            Self::Obstacle(why, apart) => {
                let of_mean = matches!(why, Why::Shift | Why::Beside | Why::Curved | Why::Weight);
                let text = match of_mean {
                    true => format!(
                        "where {m} changes, what the sum becomes must follow from it and the number of its terms; this part {}",
                        why.text()
                    ),
                    false => format!("where {m} changes, the terms so far must change by one factor; this part {}", why.text()),
                };
                let found = diagnostic.note(text);
                let found = match apart.as_deref() {
                    Some(Apart { given: [a, b], of: [first, later], values: [[a1, a2], [b1, b2]], is_list: false }) => {
                        let before = format!("with {a} in one term and {b} in another, {m} is {first}, and they are {a1} and {b1}");
                        let after = format!("a further term makes {m} {later}, and they are {a2} and {b2}");
                        found.counterexample(format!("{before}; {after}"))
                    }
                    Some(Apart { given: [a, b], of: [first, later], values: [[a1, a2], [_, b2]], is_list: true }) => {
                        let before = format!("the terms {a}, and the terms {b}: of both, {m} is {first}, and the sum {a1}");
                        let after = format!("a further term makes {m} {later}, and these sums are {a2} and {b2}");
                        found.counterexample(format!("{before}; {after}"))
                    }
                    None => found,
                };
                found.help(if of_mean { square } else { form })
            }
            Self::Shape => diagnostic
                .note("there is a correction, but not of a kind that is computed: the term is no product with one exponential of its type")
                .help(form),
            Self::Square => diagnostic
                .note(format!("there is a correction where {m} changes, but not of a kind that is computed"))
                .help(square),
            Self::Negative => diagnostic
                .note("this weight may be negative: weights that add up to 0 on the way, as those of 1, -1 and 2 do, have no mean there")
                .help("write a weight that is not: `abs(w)`, `max(w, 0.0)`, `if mask { 1.0 } else { 0.0 }`"),
            Self::Divided => diagnostic
                .note(format!("it follows {m} divided by another sum, or number of terms, than what is named before it"))
                .help("give each mean a sum of its own"),
            Self::Outside(Outside::Sum) => diagnostic
                .note(format!("where {m} changes, each term changes by the same number, so that nothing is gained by one pass"))
                .help(format!("take what depends on {m} alone out of the sum, and add it after that, times the number of terms: `sum(|j| u) - m[i] * N as f32` for `online sum(|j| u - m[i])`")),
            Self::Outside(Outside::Logarithm) => diagnostic
                .note(format!("where {m} changes, each term changes by the same number; but what {m} is at first may have no logarithm, and NaN or infinity plus a number is no other one"))
                .help(format!("take the logarithm of {m} out of the sum: `sum(|j| log(u)) - log(m[i]) * N as f32` for `online sum(|j| log(u / m[i]))`")),
            Self::Outside(Outside::Product) => diagnostic
                .note(format!("where {m} changes, a product of n terms changes by the n-th power of a factor: its error grows with n for each change, and it may be infinite or 0 where the product is neither"))
                .help(format!("take what depends on {m} out of the product: `prod(|j| u)`, and the power after that")),
            Self::Beside => diagnostic
                .note("it stands beside a sum with more axes, which follows block by block: there, only sums of exponentials do")
                .help("give it a pass of its own"),
            Self::Other => diagnostic
                .note(format!("this is not `u - m[i]` with the `u` that {m} is the extreme of, scaled by literals"))
                .note(format!("with another one, the exponential could be infinite with what {m} is at first"))
                .help(form),
            Self::Narrow => diagnostic
                .note("of what is rounded to a narrower type, the exponential is a factor, and the others are literals: together a number of that type that is exact there, and at most the largest one over 1.75")
                .help("multiply by a power of two before, such as `(256.0 * p[i, j]) as e4m3`, and by the rest after the sum"),
            Self::Grows(op) => {
                let (right, extreme) = match op {
                    Reduction::Min => ("exp(m[i] - u)", "smallest"),
                    _ => ("exp(u - m[i])", "largest"),
                };
                diagnostic
                    .note(format!("{m} is the {extreme}, so that this exponential is 1 or more, and may overflow before {m} is known"))
                    .help(format!("write `{right}`"))
            }
        }
    }
}

/// TW1011: an `online sum` that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOnline {
    /// The equation, if it has one alone.
    pub name: String,
    /// The extreme, if there is one.
    pub earlier: Option<String>,
    /// Why not.
    pub problem: ChainProblem,
    /// The part of the term, or the sum.
    pub span: Span,
    /// The sum.
    pub sum: Span,
}

impl IntoDiagnostic for NotOnline {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, earlier, problem, span, sum } = self;
        let diagnostic = Diagnostic::new(Code::TW1011, span, format!("`{name}` cannot be an `online sum`"));
        let diagnostic = if span == sum { diagnostic } else { diagnostic.label(sum, "this sum") };
        problem.explain(diagnostic, &name, earlier.as_deref())
    }
}
