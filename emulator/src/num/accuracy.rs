//! Approximate functions against exact values: integers of any length, series whose rests are below the last bit,
//! nothing of the code under test.

use num_bigint::BigInt;
use tilewright_kernel::math::{Host, double};

use super::approx::{Approx, approx};
use super::elementary;
use super::exact;
use super::float::{FloatMode, FloatType};
use super::format::{F64, Format, Round};

/// Fraction bits of the numbers that series are summed in.
const BITS: u32 = 200;

/// m · 2^e.
struct Exact {
    m: BigInt,
    e: i64,
}

fn one() -> BigInt {
    BigInt::from(1) << BITS
}

fn mul(a: &BigInt, b: &BigInt) -> BigInt {
    (a * b) >> BITS
}

/// A finite number that is not 0.
fn parts(x: f64) -> (BigInt, i64) {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
    let (m, e) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    (if x < 0.0 { -BigInt::from(m) } else { BigInt::from(m) }, e)
}

fn shifted(m: BigInt, by: i64) -> BigInt {
    if by >= 0 { m << by as u64 } else { m >> (-by) as u64 }
}

/// Constants: ln 2 = Σ 1/(k·2^k), π by Machin's formula.
struct Constants {
    ln2: BigInt,
    pi: BigInt,
}

impl Constants {
    fn new() -> Self {
        let ln2 = (1..=u64::from(BITS)).map(|k| one() / (BigInt::from(k) << k)).sum();
        let arctangent = |of: u32| {
            let (mut power, mut sum, mut k) = (one() / of, BigInt::from(0), 0u32);
            while power != BigInt::from(0) {
                let term = &power / (2 * k + 1);
                sum += if k.is_multiple_of(2) { term } else { -term };
                power /= of * of;
                k += 1;
            }
            sum
        };
        Constants { ln2, pi: arctangent(5) * 16 - arctangent(239) * 4 }
    }

    /// e^r by its series, |r| ≤ 1.
    fn exp(r: &BigInt) -> BigInt {
        let (mut term, mut sum, mut k) = (one(), BigInt::from(0), 1u32);
        while term != BigInt::from(0) && term != BigInt::from(-1) {
            sum += &term;
            term = mul(&term, r) / k;
            k += 1;
        }
        sum
    }

    /// e^(y·2^-BITS) = m · 2^e.
    fn exp_of(&self, y: &BigInt) -> (BigInt, i64) {
        let mut n: i64 = (y / &self.ln2).try_into().unwrap();
        if y < &BigInt::from(0) {
            n -= 1;
        }
        (Self::exp(&(y - &self.ln2 * n)), n - i64::from(BITS))
    }

    /// The function at a finite number other than 0, where it is finite and not 0.
    fn function(&self, op: Approx, x: f64) -> Exact {
        let (m, e) = parts(x);
        let bits = i64::from(BITS);
        let fixed = |m: BigInt| shifted(m, e + bits);
        match op {
            // Far more digits than are asked for, in the place of the quotient's and the root's rests.
            Approx::Rcp => Exact { m: (BigInt::from(1) << 400) / m, e: -400 - e },
            Approx::Sqrt | Approx::Rsqrt => {
                let odd = e.rem_euclid(2);
                let root = (m << (300 + odd)).sqrt();
                let e = (e - odd - 300) / 2;
                if op == Approx::Sqrt {
                    Exact { m: root, e }
                } else {
                    Exact { m: (BigInt::from(1) << 500) / root, e: -500 - e }
                }
            }
            Approx::Ex2 => {
                let y = fixed(m);
                let n: i64 = (&y >> BITS).try_into().unwrap();
                let r = mul(&(y - (BigInt::from(n) << BITS)), &self.ln2);
                Exact { m: Self::exp(&r), e: n - bits }
            }
            Approx::Lg2 => {
                // ln m = 2·artanh((m − 1)/(m + 1)) for 1 ≤ m < 2.
                let top = m.bits() as i64 - 1;
                let m = shifted(m, bits - top);
                let t = ((&m - one()) << BITS) / (&m + one());
                let square = mul(&t, &t);
                let (mut power, mut sum, mut k) = (t, BigInt::from(0), 0u32);
                while power != BigInt::from(0) {
                    sum += &power / (2 * k + 1);
                    power = mul(&power, &square);
                    k += 1;
                }
                let ln = sum * 2;
                Exact { m: ((ln << BITS) / &self.ln2) + (BigInt::from(e + top) << BITS), e: -bits }
            }
            Approx::Sin | Approx::Cos => {
                let y = fixed(m);
                let half: BigInt = &self.pi / 2;
                let n = &y / &half;
                let r = y - &n * &half;
                let n: i64 = n.try_into().unwrap();
                // Sine and cosine of the rest: the series of e^(ir).
                let (mut terms, mut term, mut k) = ([BigInt::from(0), BigInt::from(0)], one(), 0u32);
                while term != BigInt::from(0) && term != BigInt::from(-1) {
                    let sign = if k / 2 % 2 == 0 { 1 } else { -1 };
                    terms[k as usize % 2] += &term * sign;
                    k += 1;
                    term = mul(&term, &r) / k;
                }
                let quadrant = (n + i64::from(op == Approx::Cos)).rem_euclid(4);
                let [cosine, sine] = terms;
                let m = if quadrant % 2 == 0 { sine } else { cosine };
                Exact { m: if quadrant < 2 { m } else { -m }, e: -bits }
            }
            Approx::Tanh => {
                let y: BigInt = fixed(m) * 2;
                let (p, e) = self.exp_of(&y);
                let p = shifted(p, e + bits);
                Exact { m: ((&p - one()) << BITS) / (p + one()), e: -bits }
            }
        }
    }
}

impl Exact {
    /// Distance of a number in units of a format's last place at the exact value, to a thousandth of a millionth.
    fn distance(&self, format: Format, got: f64) -> f64 {
        let top = self.e + self.m.bits() as i64 - 1;
        let least = 2 - (1i64 << (format.exponent - 1));
        let unit = top.max(least) - i64::from(format.fraction);
        let scale = |m: BigInt, e: i64| shifted(m, e - unit + 60);
        let own = if got == 0.0 { BigInt::from(0) } else { scale(parts(got).0, parts(got).1) };
        let difference: i128 = (own - scale(self.m.clone(), self.e)).try_into().unwrap_or(i128::MAX);
        (difference as f64 * (-60f64).exp2()).abs()
    }

    fn to_f64(&self) -> f64 {
        let keep = 80;
        let cut = self.m.bits() as i64 - keep;
        let m: i128 = shifted(self.m.clone(), -cut).try_into().unwrap();
        m as f64 * ((self.e + cut) as f64).exp2()
    }
}

fn value(format: Format, bits: u64) -> f64 {
    f64::from_bits(exact::convert(format, F64, Round::Nearest, bits))
}

/// Where a function is finite, not 0, and no power of 2 by accident.
fn is_interesting(op: Approx, x: f64) -> bool {
    let positive = matches!(op, Approx::Sqrt | Approx::Rsqrt | Approx::Lg2);
    let limit = match op {
        Approx::Ex2 => 1000.0,
        Approx::Sin | Approx::Cos => 2f64.powi(60),
        Approx::Tanh => 40.0,
        _ => f64::MAX,
    };
    // Smaller numbers have fewer digits in the sums.
    let tiny = matches!(op, Approx::Ex2 | Approx::Sin | Approx::Cos | Approx::Tanh) && x.abs() < 2f64.powi(-60);
    x.is_finite() && x != 0.0 && x.abs() <= limit && !tiny && !(positive && x < 0.0) && !(op == Approx::Lg2 && x == 1.0)
}

const ALL: [Approx; 8] =
    [Approx::Rcp, Approx::Sqrt, Approx::Rsqrt, Approx::Ex2, Approx::Lg2, Approx::Sin, Approx::Cos, Approx::Tanh];

/// Arguments of f32: every one `step` apart, and both sides of 1, of its powers of two and of multiples of π/2.
fn arguments(step: usize) -> Vec<f64> {
    let mut all: Vec<f64> = (0..=u32::MAX).step_by(step).map(|bits| f64::from(f32::from_bits(bits))).collect();
    for delta in 0..200u32 {
        let near =
            [0x3f80_0000, 0x3f00_0000, 0x4000_0000, 0x3f35_04f3, 0x3fc9_0fdb, 0x4049_0fdb, 0x40c9_0fdb, 0x3dcc_cccd];
        all.extend(
            near.into_iter()
                .flat_map(|centre| [centre + delta, centre - delta])
                .map(|bits| f64::from(f32::from_bits(bits))),
        );
    }
    all
}

/// The functions of f64 that results are rounded from.
#[test]
fn functions_are_good_to_a_few_units_of_f64() {
    let constants = Constants::new();
    type Function = fn(f64) -> f64;
    let functions: [(Approx, Function, f64); 5] = [
        (Approx::Ex2, elementary::exp2, 5.0),
        (Approx::Lg2, elementary::log2, 4.0),
        (Approx::Sin, |x| double::sin(&mut Host::<f64>::default(), x), 1.0),
        (Approx::Cos, |x| double::cos(&mut Host::<f64>::default(), x), 1.0),
        (Approx::Tanh, |x| double::tanh(&mut Host::<f64>::default(), x), 2.0),
    ];
    for (op, function, bound) in functions {
        let (mut worst, mut at) = (0.0, 0.0);
        for x in arguments(1_000_003).into_iter().filter(|x| is_interesting(op, *x)) {
            let error = constants.function(op, x).distance(F64, function(x));
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        println!("{op:?}: {worst:.3} ulp of f64 at {at:e}");
        assert!(worst <= bound, "{op:?}({at:e}): {worst} ulp of f64");
    }
}

/// The manual's bound (9.7.3 and 9.7.4, tables of errors): relative or absolute.
fn manual(op: Approx, ty: FloatType, exact: f64) -> f64 {
    let size = exact.abs();
    match (op, ty) {
        (Approx::Ex2, FloatType::F16) => size * (-9.9f64).exp2(),
        (Approx::Ex2, FloatType::Bf16) => size * (-7f64).exp2(),
        (Approx::Tanh, FloatType::F16) => (-10.987f64).exp2(),
        (Approx::Tanh, FloatType::Bf16) => (-8f64).exp2(),
        (Approx::Tanh, _) => size * (-11f64).exp2(),
        (Approx::Rcp | Approx::Sqrt, _) => size * (-23f64).exp2(),
        (Approx::Rsqrt, _) => size * (-22.9f64).exp2(),
        (Approx::Ex2, _) => size * (-22f64).exp2(),
        (Approx::Lg2, _) => (-22f64).exp2().max(size * (-22f64).exp2()),
        (Approx::Sin | Approx::Cos, _) => (-20.5f64).exp2(),
    }
}

/// One function in one type over some arguments: rounded once, and when perturbed within the manual's bound. Gives the
/// largest errors: in units of the type, and as a part of the bound.
fn check(constants: &Constants, op: Approx, ty: FloatType, arguments: impl Iterator<Item = u64>) -> (f64, f64) {
    let (mode, format) = (FloatMode::plain(ty), ty.format());
    let (mut worst, mut moved) = (0.0f64, 0.0f64);
    for bits in arguments {
        let x = value(format, bits);
        if !is_interesting(op, x) {
            continue;
        }
        let exact = constants.function(op, x);
        let got = value(format, approx(op, mode, bits, None));
        let near = exact.to_f64();
        if got.is_infinite() || near.abs() < 2f64.powi(-1000) {
            continue;
        }
        let error = exact.distance(format, got);
        assert!(error <= 0.500_001, "{op:?} of {ty:?} at {x:e}: {got:e} is {error} units from {near:e}");
        worst = worst.max(error);
        // The last place of subnormal results is greater than the bound.
        let unit = exact.unit(format);
        for seed in [1, 5] {
            let other = value(format, approx(op, mode, bits, Some(seed)));
            let part = (other - near).abs() / manual(op, ty, near).max(unit);
            assert!(
                part <= 1.0,
                "{op:?} of {ty:?} at {x:e}, perturbed: {other:e} for {near:e}, {part} times the bound"
            );
            moved = moved.max(part);
        }
    }
    (worst, moved)
}

impl Exact {
    /// The last place of a format at the value.
    fn unit(&self, format: Format) -> f64 {
        let top = self.e + self.m.bits() as i64 - 1;
        let least = 2 - (1i64 << (format.exponent - 1));
        ((top.max(least) - i64::from(format.fraction)) as f64).exp2()
    }
}

#[test]
fn approximate_functions_are_rounded_once_and_move_within_the_bounds() {
    let constants = Constants::new();
    for op in ALL {
        let f32s = arguments(400_009).into_iter().map(|x| u64::from((x as f32).to_bits()));
        let (worst, moved) = check(&constants, op, FloatType::F32, f32s);
        println!("{op:?} of f32: {worst:.6} ulp, perturbed {moved:.3} of the bound");
        assert!(moved > 0.5, "{op:?} is hardly perturbed");
    }
    for op in [Approx::Ex2, Approx::Tanh] {
        for ty in [FloatType::F16, FloatType::Bf16] {
            let (worst, moved) = check(&constants, op, ty, 0..0x1_0000);
            println!("{op:?} of {ty:?}, all arguments: {worst:.6} ulp, perturbed {moved:.3} of the bound");
        }
    }
}
