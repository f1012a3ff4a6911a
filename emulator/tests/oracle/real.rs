//! Exact numbers, and one rounding into any format: `±m·2^e/d` with integers of any size. Rounding is a division with
//! remainder, as the definition says, and shares nothing with the emulator's.

use num_bigint::BigUint;

/// A binary format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent: u32,
    /// Bits of the fraction.
    pub fraction: u32,
    /// The top exponent holds numbers, and one NaN of all ones (e4m3).
    pub finite: bool,
}

pub const F16: Format = Format { exponent: 5, fraction: 10, finite: false };
pub const BF16: Format = Format { exponent: 8, fraction: 7, finite: false };
pub const TF32: Format = Format { exponent: 8, fraction: 10, finite: false };
pub const F32: Format = Format { exponent: 8, fraction: 23, finite: false };
pub const F64: Format = Format { exponent: 11, fraction: 52, finite: false };
pub const E4M3: Format = Format { exponent: 4, fraction: 3, finite: true };
pub const E5M2: Format = Format { exponent: 5, fraction: 2, finite: false };

/// A direction of rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    Even,
    Away,
    Zero,
    Down,
    Up,
}

/// What the bits of a format stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    Nan,
    Infinity(bool),
    Zero(bool),
    Number(Exact),
}

/// `±m·2^e/d`, not zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exact {
    pub negative: bool,
    pub m: BigUint,
    pub e: i64,
    pub d: BigUint,
}

impl Exact {
    /// `±m·2^e`.
    pub fn new(negative: bool, m: BigUint, e: i64) -> Exact {
        Exact { negative, m, e, d: BigUint::from(1u32) }
    }

    /// Quotient and remainder of the magnitude by 2^unit, and what the remainder is a part of.
    fn divided(&self, unit: i64) -> (BigUint, BigUint, BigUint) {
        let shift = self.e - unit;
        let (top, bottom) = if shift >= 0 {
            (&self.m << shift as usize, self.d.clone())
        } else {
            (self.m.clone(), &self.d << (-shift) as usize)
        };
        (&top / &bottom, &top % &bottom, bottom)
    }

    /// The magnitude in units of 2^unit, rounded to an integer.
    pub fn units(&self, unit: i64, round: Round) -> BigUint {
        let (quotient, rest, whole) = self.divided(unit);
        let exact = rest == BigUint::ZERO;
        let half = (rest << 1usize).cmp(&whole);
        let up = match round {
            Round::Even => half.is_gt() || half.is_eq() && quotient.bit(0),
            Round::Away => half.is_ge(),
            Round::Zero => false,
            Round::Down => self.negative && !exact,
            Round::Up => !self.negative && !exact,
        };
        if up { quotient + 1u32 } else { quotient }
    }

    /// The greatest k with 2^k not above the magnitude.
    fn scale(&self) -> i64 {
        let near = self.m.bits() as i64 + self.e - self.d.bits() as i64;
        if self.divided(near).0 == BigUint::ZERO { near - 1 } else { near }
    }
}

impl Format {
    pub fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }
    fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }
    pub fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }
    /// All magnitude bits: every such number is a NaN, and the one that instructions return in all formats but f64.
    pub fn nan(self) -> u64 {
        self.sign() - 1
    }
    /// The bits of infinity; without infinities, of the NaN.
    pub fn infinity(self) -> u64 {
        if self.finite { self.nan() } else { ((1 << self.exponent) - 1) << self.fraction }
    }
    pub fn greatest(self) -> u64 {
        self.infinity() - 1
    }
    pub fn one(self) -> u64 {
        (self.bias() as u64) << self.fraction
    }
    pub fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & self.nan();
        if self.finite { magnitude == self.nan() } else { magnitude > self.infinity() }
    }
    pub fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & self.nan();
        magnitude != 0 && magnitude < 1 << self.fraction
    }
    pub fn flushed(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign() } else { bits }
    }

    pub fn decode(self, bits: u64) -> Value {
        let negative = bits & self.sign() != 0;
        let magnitude = bits & self.nan();
        if self.is_nan(bits) {
            return Value::Nan;
        }
        if !self.finite && magnitude == self.infinity() {
            return Value::Infinity(negative);
        }
        if magnitude == 0 {
            return Value::Zero(negative);
        }
        let field = (magnitude >> self.fraction) as i64;
        let part = magnitude & ((1 << self.fraction) - 1);
        let unit = field.max(1) - self.bias() - i64::from(self.fraction);
        Value::Number(Exact::new(
            negative,
            BigUint::from(if field == 0 { part } else { part | 1 << self.fraction }),
            unit,
        ))
    }

    /// The bits of a value, rounded; NaN is all ones.
    pub fn encode(self, value: &Value, round: Round) -> u64 {
        let sign = |negative: bool| if negative { self.sign() } else { 0 };
        match value {
            Value::Nan => self.nan(),
            Value::Infinity(negative) => self.infinity() | sign(*negative),
            Value::Zero(negative) => sign(*negative),
            Value::Number(exact) => self.round(exact, round) | sign(exact.negative),
        }
    }

    fn round(self, exact: &Exact, round: Round) -> u64 {
        let scale = exact.scale().max(1 - self.bias());
        let units = exact.units(scale - i64::from(self.fraction), round);
        // Units of the binade: at least 2^fraction unless subnormal, 2^(fraction+1) if rounded up to the next binade,
        // which is the first of its field.
        let units = units.iter_u64_digits().next().unwrap_or(0);
        let magnitude = (((scale - 1 + self.bias()) as u128) << self.fraction) + u128::from(units);
        if magnitude < u128::from(self.infinity()) {
            return magnitude as u64;
        }
        let away = match round {
            Round::Even | Round::Away => true,
            Round::Zero => false,
            Round::Down => exact.negative,
            Round::Up => !exact.negative,
        };
        if away { self.infinity() } else { self.greatest() }
    }

    /// The exact value as f64: of every format here but of sums and products.
    pub fn to_f64(self, bits: u64) -> f64 {
        f64::from_bits(F64.encode(&self.decode(bits), Round::Even))
    }
}

pub fn integer(value: i128) -> Value {
    if value == 0 {
        return Value::Zero(false);
    }
    Value::Number(Exact::new(value < 0, BigUint::from(value.unsigned_abs()), 0))
}

pub fn negated(value: Value) -> Value {
    match value {
        Value::Nan => Value::Nan,
        Value::Infinity(negative) => Value::Infinity(!negative),
        Value::Zero(negative) => Value::Zero(!negative),
        Value::Number(exact) => Value::Number(Exact { negative: !exact.negative, ..exact }),
    }
}

/// IEEE 754: a sum that is zero is +0, but −0 when rounding down or when both are −0.
pub fn add(a: Value, b: Value, round: Round) -> Value {
    use Value::{Infinity, Nan, Number, Zero};
    let (a, b) = match (a, b) {
        (Nan, _) | (_, Nan) => return Nan,
        (Infinity(x), Infinity(y)) => return if x == y { Infinity(x) } else { Nan },
        (Infinity(x), _) | (_, Infinity(x)) => return Infinity(x),
        (Zero(x), Zero(y)) => return Zero(if x == y { x } else { round == Round::Down }),
        (Zero(_), other) | (other, Zero(_)) => return other,
        (Number(a), Number(b)) => (a, b),
    };
    let e = a.e.min(b.e);
    // Over the common denominator.
    let x = (a.m << (a.e - e) as usize) * &b.d;
    let y = (b.m << (b.e - e) as usize) * &a.d;
    let d = a.d * b.d;
    let (negative, m) = if a.negative == b.negative {
        (a.negative, x + y)
    } else {
        match x.cmp(&y) {
            std::cmp::Ordering::Equal => return Zero(round == Round::Down),
            std::cmp::Ordering::Greater => (a.negative, x - y),
            std::cmp::Ordering::Less => (b.negative, y - x),
        }
    };
    Number(Exact { negative, m, e, d })
}

pub fn mul(a: Value, b: Value) -> Value {
    use Value::{Infinity, Nan, Number, Zero};
    let sign = is_negative(&a) != is_negative(&b);
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinity(_), Zero(_)) | (Zero(_), Infinity(_)) => Nan,
        (Infinity(_), _) | (_, Infinity(_)) => Infinity(sign),
        (Zero(_), _) | (_, Zero(_)) => Zero(sign),
        (Number(a), Number(b)) => Number(Exact { negative: sign, m: a.m * b.m, e: a.e + b.e, d: a.d * b.d }),
    }
}

pub fn div(a: Value, b: Value) -> Value {
    use Value::{Infinity, Nan, Number, Zero};
    let sign = is_negative(&a) != is_negative(&b);
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinity(_), Infinity(_)) | (Zero(_), Zero(_)) => Nan,
        (Infinity(_), _) | (_, Zero(_)) => Infinity(sign),
        (_, Infinity(_)) | (Zero(_), _) => Zero(sign),
        (Number(a), Number(b)) => Number(Exact { negative: sign, m: a.m * b.d, e: a.e - b.e, d: a.d * b.m }),
    }
}

/// A root of numbers without denominator. One that is not exact is replaced by a number with more than enough digits on
/// the same side of every number and every midpoint.
pub fn sqrt(a: Value) -> Value {
    match a {
        Value::Nan | Value::Infinity(true) => Value::Nan,
        Value::Number(Exact { negative: true, .. }) => Value::Nan,
        Value::Number(exact) => {
            let odd = exact.e.rem_euclid(2);
            let m = exact.m << (odd + 160) as usize;
            let root = m.sqrt();
            let inexact = &root * &root != m;
            Value::Number(Exact::new(false, (root << 1usize) + u32::from(inexact), (exact.e - odd - 160) / 2 - 1))
        }
        zero_or_infinity => zero_or_infinity,
    }
}

pub fn is_negative(value: &Value) -> bool {
    match value {
        Value::Nan => false,
        Value::Infinity(negative) | Value::Zero(negative) => *negative,
        Value::Number(exact) => exact.negative,
    }
}

/// The order of numbers; `None` with a NaN. Zeros are equal.
pub fn order(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    if *a == Value::Nan || *b == Value::Nan {
        return None;
    }
    // Infinities differ only from others.
    if a == b {
        return Some(std::cmp::Ordering::Equal);
    }
    match add(a.clone(), negated(b.clone()), Round::Even) {
        Value::Zero(_) => Some(std::cmp::Ordering::Equal),
        other if is_negative(&other) => Some(std::cmp::Ordering::Less),
        _ => Some(std::cmp::Ordering::Greater),
    }
}

/// The integer nearest in the direction; `None` for NaN and infinities.
pub fn integral(value: &Value, round: Round) -> Option<BigUint> {
    match value {
        Value::Nan | Value::Infinity(_) => None,
        Value::Zero(_) => Some(BigUint::ZERO),
        Value::Number(exact) => Some(exact.units(0, round)),
    }
}

/// The host's own arithmetic agrees.
#[test]
fn rounds_as_the_host_does() {
    let mut random = super::inputs::Random(1);
    for _ in 0..20_000 {
        let (a, b, c) = (random.float(F64), random.float(F64), random.float(F64));
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let [u, v, w] = [a, b, c].map(|bits| F64.decode(bits));
        let check = |what: &str, host: f64, ours: &Value| {
            let ours = f64::from_bits(F64.encode(ours, Round::Even));
            assert!(host.to_bits() == ours.to_bits() || host.is_nan() && ours.is_nan(), "{what} {x:e} {y:e} {z:e}");
        };
        check("add", x + y, &add(u.clone(), v.clone(), Round::Even));
        check("mul", x * y, &mul(u.clone(), v.clone()));
        check("div", x / y, &div(u.clone(), v.clone()));
        check("sqrt", x.sqrt(), &sqrt(u.clone()));
        check("fma", x.mul_add(y, z), &add(mul(u.clone(), v.clone()), w, Round::Even));
        let narrow = F32.encode(&u, Round::Even) as u32;
        let host = x as f32;
        assert!(host.to_bits() == narrow || host.is_nan() && f32::from_bits(narrow).is_nan(), "{x:e}");
        assert_eq!(order(&u, &v), x.partial_cmp(&y), "{x:e} {y:e}");
    }
}
