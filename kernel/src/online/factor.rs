//! How a term depends on a variable.
//!
//! Of every expression it is found which of these it is, m the variable, and f something that does not depend on it:
//!
//! | form | is | made of |
//! | --- | --- | --- |
//! | free | f | what does not read m |
//! | linear | f + k·m, where k is the same for all terms | m; sums of linear ones; products with a k |
//! | scaled | f·G(m), G(m) = mᵖ·exp(k·m) | exp of linear; products, quotients; sums with one G |
//!
//! k·m alone is scaled, too. Literals are the reals that they are: arithmetic on them that f64 rounds is refused.

use super::key::{key, literal, varies};
use crate::algorithm::{Algorithm, AxisId, Binary, Reduction, Unary, Value, ValueId};

/// Σ literal · Π factors, all of them the same for every term: sorted, no literal 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coefficient(pub Vec<(f64, Vec<Factor>)>);

/// A factor of a coefficient.
#[derive(Clone, Debug)]
pub struct Factor {
    /// A value of the algorithm.
    pub value: ValueId,
    /// Whether it is divided by.
    pub inverse: bool,
    /// What tells values apart.
    key: String,
}

impl Factor {
    pub(super) fn new(algorithm: &Algorithm, value: ValueId, inverse: bool) -> Self {
        Self { value, inverse, key: key(algorithm, value, &[]) }
    }
}

impl PartialEq for Factor {
    fn eq(&self, other: &Self) -> bool {
        self.inverse == other.inverse && self.key == other.key
    }
}

/// G(m) = mᵖ·exp(k·m).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// k
    pub exponent: Coefficient,
    /// p
    pub power: i32,
}

/// What becomes of a partial result a when the variable changes from m to m'.
#[derive(Clone, Debug, PartialEq)]
pub enum Correction {
    /// Nothing: the term does not depend on it.
    Keep,
    /// a · G(m') / G(m)
    Multiply(Scale),
    /// a + k·(m' − m)
    Add(Coefficient),
    /// a + n·k·(m' − m), n the number of its terms.
    AddEach(Coefficient),
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
        }
    }
}

type Found<T> = Result<T, Obstacle>;

impl Coefficient {
    /// 1
    fn one() -> Self {
        Self(vec![(1.0, Vec::new())])
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that it is; none if it has factors.
    pub fn literal(&self) -> Option<f64> {
        match &self.0[..] {
            [] => Some(0.0),
            [(literal, factors)] if factors.is_empty() => Some(*literal),
            _ => None,
        }
    }

    pub(super) fn add(mut self, other: &Self, sign: f64) -> Option<Self> {
        for (literal, factors) in &other.0 {
            let literal = literal * sign;
            match self.0.iter().position(|(_, own)| own == factors) {
                Some(at) => {
                    let (a, b) = (self.0[at].0, literal);
                    let sum = a + b;
                    // What the rounding of each operand lost (Knuth's two-sum).
                    let from_b = sum - a;
                    if (a - (sum - from_b)) + (b - from_b) != 0.0 || !sum.is_finite() {
                        return None;
                    }
                    self.0[at].0 = sum;
                    if sum == 0.0 {
                        self.0.remove(at);
                    }
                }
                None => self.0.push((literal, factors.clone())),
            }
        }
        self.0.sort_by(|a, b| {
            let keys = |of: &[Factor]| of.iter().map(|f| (f.key.clone(), f.inverse)).collect::<Vec<_>>();
            keys(&a.1).cmp(&keys(&b.1))
        });
        Some(self)
    }

    fn negated(mut self) -> Self {
        self.0.iter_mut().for_each(|part| part.0 = -part.0);
        self
    }

    pub(super) fn times(mut self, by: f64) -> Option<Self> {
        if by == 0.0 {
            return Some(Self::default());
        }
        for part in &mut self.0 {
            let product = part.0 * by;
            if part.0.mul_add(by, -product) != 0.0 || !product.is_normal() {
                return None;
            }
            part.0 = product;
        }
        Some(self)
    }

    /// The product of two; none where literals are rounded.
    pub(super) fn multiply(&self, other: &Self) -> Option<Self> {
        let mut all = Self::default();
        for (literal, factors) in &other.0 {
            let product = factors.iter().fold(self.clone(), |product, factor| product.with(factor));
            all = all.add(&product.times(*literal)?, 1.0)?;
        }
        Some(all)
    }

    pub(super) fn with(mut self, factor: &Factor) -> Self {
        let against = Factor { inverse: !factor.inverse, ..factor.clone() };
        for (_, factors) in &mut self.0 {
            match factors.iter().position(|f| *f == against) {
                Some(at) => {
                    factors.remove(at);
                }
                None => {
                    factors.push(factor.clone());
                    factors.sort_by(|a, b| (&a.key, a.inverse).cmp(&(&b.key, b.inverse)));
                }
            }
        }
        self
    }
}

/// How an expression depends on the variable.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// It is 0.
    Zero,
    /// Not at all.
    Free,
    /// f + k·m; `alone` if f is 0.
    Linear { k: Coefficient, alone: bool },
    /// f·G(m)
    Scaled(Scale),
}

impl Form {
    /// As f·G(m).
    fn scale(&self) -> Option<Scale> {
        match self {
            Self::Scaled(scale) => Some(scale.clone()),
            Self::Linear { alone: true, .. } => Some(Scale { power: 1, ..Scale::default() }),
            Self::Free => Some(Scale::default()),
            Self::Zero | Self::Linear { .. } => None,
        }
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
        (Reduction::Sum, Form::Linear { k, alone: false }) => Ok(Correction::AddEach(k)),
        (Reduction::Sum, form) => form.scale().map_or(combined, |scale| Ok(Correction::Multiply(scale))),
        (Reduction::Max | Reduction::Min, Form::Linear { k, .. }) => Ok(Correction::Add(k)),
        // A positive factor leaves the order of terms as it is.
        (Reduction::Max | Reduction::Min, Form::Scaled(scale)) if scale.power % 2 == 0 => {
            Ok(Correction::Multiply(scale))
        }
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
            return Ok(Form::Linear { k: Coefficient::one(), alone: true });
        }
        if !self.depends(value) {
            return Ok(if literal(self.algorithm, value) == Some(0.0) { Form::Zero } else { Form::Free });
        }
        match node {
            Value::Unary(Unary::Neg, a) => Ok(match self.form(a)? {
                Form::Linear { k, alone } => Form::Linear { k: k.negated(), alone },
                other => other,
            }),
            Value::Unary(function, a) if super::is_exponential(function) => match self.form(a)? {
                Form::Linear { k, .. } => Ok(Form::Scaled(Scale { exponent: k, power: 0 })),
                _ => refuse(Why::Exponent),
            },
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
                    (Form::Linear { k, alone }, Form::Linear { k: l, alone: too }) if k == l => {
                        Ok(Form::Linear { k, alone: alone && too })
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
            (Form::Linear { k, alone }, Form::Linear { k: l, alone: too }) => {
                let k = k.add(&l, sign).ok_or(why(Why::Literal))?;
                let alone = alone && too;
                Ok(match k.is_zero() {
                    true if alone => Form::Zero,
                    true => Form::Free,
                    false => Form::Linear { k, alone },
                })
            }
            (Form::Linear { k, alone }, Form::Zero) => Ok(Form::Linear { k, alone }),
            (Form::Linear { k, .. }, Form::Free) => Ok(Form::Linear { k, alone: false }),
            (other @ (Form::Zero | Form::Free), Form::Linear { k, alone }) => {
                let k = if sign < 0.0 { k.negated() } else { k };
                Ok(Form::Linear { k, alone: alone && other == Form::Zero })
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
            (Form::Linear { k, alone }, Form::Linear { k: l, alone: too }) if k == l => {
                Ok(Form::Linear { k, alone: alone && too })
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
            (Form::Free, Form::Linear { k, alone }) => self.times(value, (k, *alone), a, false),
            (Form::Linear { k, alone }, Form::Free) => self.times(value, (k, *alone), b, false),
            _ => self.scaled(value, &x, &y, 1),
        }
    }

    fn quotient(&self, value: ValueId, a: ValueId, b: ValueId) -> Found<Form> {
        let (x, y) = (self.form(a)?, self.form(b)?);
        match (&x, &y) {
            (Form::Zero, _) => Ok(Form::Zero),
            (Form::Free, Form::Free) => Ok(Form::Free),
            (Form::Linear { k, alone }, Form::Free) => self.times(value, (k, *alone), b, true),
            _ => self.scaled(value, &x, &y, -1),
        }
    }

    /// x·y, or x/y.
    fn scaled(&self, value: ValueId, x: &Form, y: &Form, sign: i32) -> Found<Form> {
        let (Some(x), Some(y)) = (x.scale(), y.scale()) else {
            return Err(Obstacle { value, why: Why::Product });
        };
        let exponent = x.exponent.add(&y.exponent, f64::from(sign)).ok_or(Obstacle { value, why: Why::Literal })?;
        let scale = Scale { exponent, power: x.power + sign * y.power };
        Ok(if scale == Scale::default() { Form::Free } else { Form::Scaled(scale) })
    }

    /// (f + k·m)·factor, or divided by it.
    fn times(&self, value: ValueId, (k, alone): (&Coefficient, bool), factor: ValueId, inverse: bool) -> Found<Form> {
        if self.varies(factor) {
            return match alone {
                true => Ok(Form::Scaled(Scale { power: 1, ..Scale::default() })),
                false => Err(Obstacle { value, why: Why::Varies }),
            };
        }
        let k = match literal(self.algorithm, factor) {
            // Of quotients by literals, those by powers of two are literals.
            Some(by) if !inverse => k.clone().times(by).ok_or(Obstacle { value, why: Why::Literal })?,
            Some(by) if by.is_normal() && by.log2().fract() == 0.0 && by > 0.0 => {
                k.clone().times(1.0 / by).ok_or(Obstacle { value, why: Why::Literal })?
            }
            _ => k.clone().with(&Factor::new(self.algorithm, factor, inverse)),
        };
        Ok(Form::Linear { k, alone })
    }
}
