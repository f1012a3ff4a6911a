//! How a term depends on a variable.
//!
//! Of every expression it is found which of these it is, m the variable, and f something that does not depend on it:
//!
//! | form | is | made of |
//! | --- | --- | --- |
//! | free | f | what does not read m |
//! | shifted | f + A(m), A(m) = k·m + l·log ∣m∣, where k and l are the same for all terms | m; log of scaled; sums of shifted ones; products with a k |
//! | scaled | f·G(m), G(m) = ±∣m∣ᵖ·exp(k·m)·2^(l·m) | exp of shifted; products, quotients, magnitudes; sums with one G |
//!
//! k·m alone is scaled, too. Logarithms are of positive numbers. Literals are the reals that they are: arithmetic on
//! them that f64 rounds is refused.

use super::coefficient::{Coefficient, Factor};
use super::key::{literal, varies};
use crate::algorithm::{Algorithm, AxisId, Binary, Reduction, Unary, Value, ValueId};

/// G(m) = ∣m∣ᵖ·exp(k·m)·2^(l·m), with the sign of m or without it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// k
    pub exponent: Coefficient,
    /// l
    pub binary: Coefficient,
    /// p
    pub power: i32,
    /// Whether it has the sign of m.
    pub signed: bool,
}

/// A(m) = k·m + l·log ∣m∣.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shift {
    /// k
    pub linear: Coefficient,
    /// l
    pub logarithm: Coefficient,
}

/// What becomes of a partial result a when the variable changes from m to m'.
#[derive(Clone, Debug, PartialEq)]
pub enum Correction {
    /// Nothing: the term does not depend on it.
    Keep,
    /// a · G(m') / G(m)
    Multiply(Scale),
    /// a · (G(m') / G(m))ⁿ, n the number of its terms.
    MultiplyEach(Scale),
    /// a + A(m') − A(m)
    Add(Shift),
    /// a + n·(A(m') − A(m)), n the number of its terms.
    AddEach(Shift),
}

/// What stands in the way of a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The part of the term.
    pub value: ValueId,
    /// What is wrong with it.
    pub why: Why,
}

/// Why a part of a term has no correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A function that is no homomorphism.
    Function,
    /// The exponential of what is not linear.
    Exponent,
    /// A sum, or a choice, of parts that change differently.
    Sum,
    /// A product or quotient with a part that is a sum.
    Product,
    /// The variable is multiplied by what differs from term to term.
    Varies,
    /// The variable decides.
    Decides,
    /// It is rounded to an integer.
    Integer,
    /// An inner reduction.
    Nested,
    /// The reduction combines terms in a way that the correction does not go through.
    Combined,
    /// Literals whose product or sum is rounded.
    Literal,
    /// Of a mean: a polynomial of the term and the mean, and not of their difference alone.
    Shift,
    /// Of a mean: what differs from term to term, beside the terms that it is the mean of.
    Beside,
    /// Of a mean: a function that is no polynomial.
    Curved,
    /// Of a weighted mean: a term that does not have the weight once.
    Weight,
}

impl Why {
    /// In words, after the part of the term.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Function => "is neither linear nor an exponential in it",
            Self::Exponent => "is the exponential of what is not linear in it",
            Self::Sum => "adds parts that change by different factors",
            Self::Product => "multiplies or divides by a sum with it",
            Self::Varies => "multiplies it by what differs from term to term",
            Self::Decides => "is decided by it",
            Self::Integer => "rounds to an integer",
            Self::Nested => "is a reduction of its own",
            Self::Combined => "is combined by an operation that a factor does not go through",
            Self::Literal => "has literals whose product or sum is rounded",
            Self::Shift => "is no polynomial of the difference",
            Self::Beside => "differs from term to term, and is not what it is the mean of",
            Self::Curved => "is no polynomial in it",
            Self::Weight => "is not multiplied by the weight of the mean, once",
        }
    }
}

type Found<T> = Result<T, Obstacle>;

impl Shift {
    fn is_zero(&self) -> bool {
        self.linear.is_zero() && self.logarithm.is_zero()
    }

    /// What is done with both coefficients.
    fn each(self, of: impl Fn(Coefficient) -> Option<Coefficient>) -> Option<Self> {
        Some(Self { linear: of(self.linear)?, logarithm: of(self.logarithm)? })
    }

    fn negated(self) -> Self {
        Self { linear: self.linear.negated(), logarithm: self.logarithm.negated() }
    }

    fn add(self, other: &Self, sign: f64) -> Option<Self> {
        let linear = self.linear.add(&other.linear, sign)?;
        Some(Self { linear, logarithm: self.logarithm.add(&other.logarithm, sign)? })
    }
}

/// How an expression depends on the variable.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// It is 0.
    Zero,
    /// Not at all.
    Free,
    /// f + A(m); `alone` if f is 0.
    Shifted { by: Shift, alone: bool },
    /// f·G(m)
    Scaled(Scale),
}

impl Form {
    /// As f·G(m).
    fn scale(&self) -> Option<Scale> {
        match self {
            Self::Scaled(scale) => Some(scale.clone()),
            Self::Shifted { by, alone: true } if by.logarithm.is_zero() => {
                Some(Scale { power: 1, signed: true, ..Scale::default() })
            }
            Self::Free => Some(Scale::default()),
            Self::Zero | Self::Shifted { .. } => None,
        }
    }

    /// f·G(m), where G may be 1.
    fn scaled(scale: Scale) -> Self {
        if scale == Scale::default() { Self::Free } else { Self::Scaled(scale) }
    }

    /// The logarithm of f·G(m), where that is positive: log f + A(m).
    fn logarithm(&self) -> Option<Self> {
        let Scale { exponent, binary, power, .. } = self.scale()?;
        if !binary.is_zero() {
            return None;
        }
        let by = Shift { linear: exponent, logarithm: Coefficient::one().times(power.into())? };
        Some(if by.is_zero() { Self::Free } else { Self::Shifted { by, alone: false } })
    }

    /// The exponential of f + A(m), to the base e, or 2.
    fn exponential(self, is_binary: bool) -> Option<Self> {
        let Self::Shifted { by: Shift { linear, logarithm }, .. } = self else { return None };
        let power = logarithm.literal().filter(|power| power.fract() == 0.0 && power.abs() < 64.0)?;
        if is_binary && power != 0.0 {
            return None;
        }
        let none = Coefficient::default();
        let (exponent, binary) = if is_binary { (none, linear) } else { (linear, none) };
        Some(Self::scaled(Scale { exponent, binary, power: power as i32, signed: false }))
    }
}

/// The correction of a reduction `op` of `term` when the fold variable with the number `of` changes, or what stands in
/// its way. `axes` tell terms apart. What is read of other equations does not depend on the variable.
///
/// # Errors
/// The part of the term that has no correction.
pub fn correction(
    algorithm: &Algorithm,
    op: Reduction,
    term: ValueId,
    of: u32,
    axes: &[AxisId],
) -> Result<Correction, Obstacle> {
    let form = Terms { algorithm, of, axes: axes.to_vec() }.form(term)?;
    let combined = Err(Obstacle { value: term, why: Why::Combined });
    match (op, form) {
        (_, Form::Free | Form::Zero) => Ok(Correction::Keep),
        (Reduction::Sum, form) => match (form.scale(), form) {
            (Some(scale), _) => Ok(Correction::Multiply(scale)),
            (None, Form::Shifted { by, .. }) => Ok(Correction::AddEach(by)),
            _ => combined,
        },
        (Reduction::Prod, form) => form.scale().map_or(combined, |scale| Ok(Correction::MultiplyEach(scale))),
        (Reduction::Max | Reduction::Min, Form::Shifted { by, .. }) => Ok(Correction::Add(by)),
        // A positive factor leaves the order of terms as it is.
        (Reduction::Max | Reduction::Min, Form::Scaled(scale)) if !scale.signed => Ok(Correction::Multiply(scale)),
        _ => combined,
    }
}

/// Terms of a reduction.
struct Terms<'a> {
    algorithm: &'a Algorithm,
    of: u32,
    axes: Vec<AxisId>,
}

impl Terms<'_> {
    fn depends(&self, value: ValueId) -> bool {
        match self.algorithm.values[value as usize] {
            Value::Variable(v) => v == self.of,
            _ => self.algorithm.operands(value).into_iter().any(|v| self.depends(v)),
        }
    }

    /// Whether it may differ from term to term.
    fn varies(&self, value: ValueId) -> bool {
        varies(self.algorithm, value, &self.axes)
    }

    fn form(&self, value: ValueId) -> Found<Form> {
        let refuse = |why| Err(Obstacle { value, why });
        let node = self.algorithm.values[value as usize];
        if node == Value::Variable(self.of) {
            let by = Shift { linear: Coefficient::one(), ..Shift::default() };
            return Ok(Form::Shifted { by, alone: true });
        }
        if !self.depends(value) {
            return Ok(if literal(self.algorithm, value) == Some(0.0) { Form::Zero } else { Form::Free });
        }
        match node {
            Value::Unary(Unary::Neg, a) => Ok(match self.form(a)? {
                Form::Shifted { by, alone } => Form::Shifted { by: by.negated(), alone },
                other => other,
            }),
            Value::Unary(Unary::Abs, a) => match self.form(a)? {
                form @ (Form::Zero | Form::Free) => Ok(form),
                form => form
                    .scale()
                    .map_or_else(|| refuse(Why::Function), |scale| Ok(Form::scaled(Scale { signed: false, ..scale }))),
            },
            Value::Unary(Unary::Log | Unary::ApproxLog, a) => {
                self.form(a)?.logarithm().map_or_else(|| refuse(Why::Function), Ok)
            }
            Value::Unary(function, a) if super::is_exponential(function) => {
                let found = self.form(a)?.exponential(function == Unary::ApproxExp2);
                found.map_or_else(|| refuse(Why::Exponent), Ok)
            }
            Value::Cast(a) if self.is_float(value) && self.is_float(a) => self.form(a),
            Value::Cast(_) => refuse(Why::Integer),
            Value::Binary(Binary::Add, a, b) => self.sum(value, self.form(a)?, self.form(b)?, 1.0),
            Value::Binary(Binary::Sub, a, b) => self.sum(value, self.form(a)?, self.form(b)?, -1.0),
            Value::Binary(Binary::Mul, a, b) => self.product(value, a, b),
            Value::Binary(Binary::Div, a, b) => self.quotient(value, a, b),
            Value::Fma(a, b, c) => {
                let product = self.product(value, a, b)?;
                self.sum(value, product, self.form(c)?, 1.0)
            }
            Value::Select(condition, ..) if self.depends(condition) => {
                Err(Obstacle { value: condition, why: Why::Decides })
            }
            Value::Select(_, a, b) => self.either(value, self.form(a)?, self.form(b)?),
            Value::Binary(Binary::Max | Binary::Min | Binary::MaxNum | Binary::MinNum, a, b) => {
                match (self.form(a)?, self.form(b)?) {
                    (Form::Shifted { by, alone }, Form::Shifted { by: other, alone: too }) if by == other => {
                        Ok(Form::Shifted { by, alone: alone && too })
                    }
                    _ => refuse(Why::Function),
                }
            }
            Value::Reduce { op: Reduction::Sum, axes, body, .. } => {
                let inner = self.algorithm.axis_lists[axes.range()].iter();
                let all = [&self.axes[..], &inner.copied().collect::<Vec<_>>()].concat();
                match (Terms { axes: all, ..*self }).form(body)? {
                    Form::Scaled(scale) => Ok(Form::Scaled(scale)),
                    _ => refuse(Why::Nested),
                }
            }
            Value::Reduce { .. } | Value::Fold { .. } | Value::Component { .. } => refuse(Why::Nested),
            Value::Compare(..) | Value::CompareIndex(..) | Value::Read { .. } | Value::FromIndex(_) => {
                refuse(Why::Decides)
            }
            _ => refuse(Why::Function),
        }
    }

    fn is_float(&self, value: ValueId) -> bool {
        self.algorithm.types[value as usize].is_float()
    }

    /// a + sign·b
    fn sum(&self, value: ValueId, a: Form, b: Form, sign: f64) -> Found<Form> {
        let why = |why| Obstacle { value, why };
        match (a, b) {
            (Form::Shifted { by, alone }, Form::Shifted { by: other, alone: too }) => {
                let by = by.add(&other, sign).ok_or(why(Why::Literal))?;
                let alone = alone && too;
                Ok(match by.is_zero() {
                    true if alone => Form::Zero,
                    true => Form::Free,
                    false => Form::Shifted { by, alone },
                })
            }
            (Form::Shifted { by, alone }, Form::Zero) => Ok(Form::Shifted { by, alone }),
            (Form::Shifted { by, .. }, Form::Free) => Ok(Form::Shifted { by, alone: false }),
            (other @ (Form::Zero | Form::Free), Form::Shifted { by, alone }) => {
                let by = if sign < 0.0 { by.negated() } else { by };
                Ok(Form::Shifted { by, alone: alone && other == Form::Zero })
            }
            (a, b) => self.either(value, a, b),
        }
    }

    /// What is either of two, or the sum of them.
    fn either(&self, value: ValueId, a: Form, b: Form) -> Found<Form> {
        match (a, b) {
            (Form::Zero, other) | (other, Form::Zero) => match other.scale() {
                Some(scale) => Ok(Form::Scaled(scale)),
                None if other == Form::Zero => Ok(Form::Zero),
                None => Err(Obstacle { value, why: Why::Sum }),
            },
            (Form::Free, Form::Free) => Ok(Form::Free),
            (Form::Shifted { by, alone }, Form::Shifted { by: other, alone: too }) if by == other => {
                Ok(Form::Shifted { by, alone: alone && too })
            }
            (a, b) => match (a.scale(), b.scale()) {
                (Some(a), Some(b)) if a == b => Ok(Form::Scaled(a)),
                _ => Err(Obstacle { value, why: Why::Sum }),
            },
        }
    }

    fn product(&self, value: ValueId, a: ValueId, b: ValueId) -> Found<Form> {
        let (x, y) = (self.form(a)?, self.form(b)?);
        match (&x, &y) {
            (Form::Zero, _) | (_, Form::Zero) => Ok(Form::Zero),
            (Form::Free, Form::Free) => Ok(Form::Free),
            (Form::Free, Form::Shifted { by, alone }) => self.times(value, (by, *alone), a, false),
            (Form::Shifted { by, alone }, Form::Free) => self.times(value, (by, *alone), b, false),
            _ => self.scaled(value, &x, &y, 1),
        }
    }

    fn quotient(&self, value: ValueId, a: ValueId, b: ValueId) -> Found<Form> {
        let (x, y) = (self.form(a)?, self.form(b)?);
        match (&x, &y) {
            (Form::Zero, _) => Ok(Form::Zero),
            (Form::Free, Form::Free) => Ok(Form::Free),
            (Form::Shifted { by, alone }, Form::Free) => self.times(value, (by, *alone), b, true),
            _ => self.scaled(value, &x, &y, -1),
        }
    }

    /// x·y, or x/y.
    fn scaled(&self, value: ValueId, x: &Form, y: &Form, sign: i32) -> Found<Form> {
        let (Some(x), Some(y)) = (x.scale(), y.scale()) else {
            return Err(Obstacle { value, why: Why::Product });
        };
        let literal = || Obstacle { value, why: Why::Literal };
        let sum = |a: Coefficient, b: &Coefficient| a.add(b, f64::from(sign)).ok_or_else(literal);
        let (exponent, binary) = (sum(x.exponent, &y.exponent)?, sum(x.binary, &y.binary)?);
        let power = x.power + sign * y.power;
        Ok(Form::scaled(Scale { exponent, binary, power, signed: x.signed != y.signed }))
    }

    /// (f + A(m))·factor, or divided by it.
    fn times(&self, value: ValueId, (by, alone): (&Shift, bool), factor: ValueId, inverse: bool) -> Found<Form> {
        if self.varies(factor) {
            let scale = Form::Shifted { by: by.clone(), alone }.scale();
            return scale.map(Form::Scaled).ok_or(Obstacle { value, why: Why::Varies });
        }
        let number = literal(self.algorithm, factor);
        let is_power = |by: f64| by.is_normal() && by.log2().fract() == 0.0 && by > 0.0;
        let scaled = by.clone().each(|k| match number {
            // Of quotients by literals, those by powers of two are literals.
            Some(number) if !inverse => k.times(number),
            Some(number) if is_power(number) => k.times(1.0 / number),
            _ => Some(k.with(&Factor::new(self.algorithm, factor, inverse))),
        });
        Ok(Form::Shifted { by: scaled.ok_or(Obstacle { value, why: Why::Literal })?, alone })
    }
}
