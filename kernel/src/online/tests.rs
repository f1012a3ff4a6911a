//! Corrections against brute force, in exact rationals: exp(x) is modelled as 2ˣ for integers x, which is a
//! homomorphism as well, the power of two as 3ˣ, and the logarithm as that to the base 2, of powers of two.

use super::{Coefficient, Correction, Scale, Shift, Why, correction};
use crate::algorithm::{Algorithm, Axis, Binary, Compare, Index, Order, Reduction, Run, Source, Unary, Value, ValueId};
use crate::element::ElementType;

/// An exact number; none where it is too large, or divided by 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rational {
    above: i128,
    below: i128,
}

const LIMIT: i128 = 1 << 60;

impl Rational {
    fn new(above: i128, below: i128) -> Option<Self> {
        let (mut a, mut b) = (above.unsigned_abs(), below.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let by = if below < 0 { -(a as i128) } else { a as i128 };
        let found = (below != 0).then(|| Self { above: above / by, below: below / by })?;
        (found.above.abs() < LIMIT && found.below < LIMIT).then_some(found)
    }

    pub fn of(n: i128) -> Self {
        Self { above: n, below: 1 }
    }

    pub fn add(self, other: Self) -> Option<Self> {
        Self::new(self.above * other.below + other.above * self.below, self.below * other.below)
    }

    pub fn mul(self, other: Self) -> Option<Self> {
        Self::new(self.above * other.above, self.below * other.below)
    }

    pub fn div(self, other: Self) -> Option<Self> {
        Self::new(self.above * other.below, self.below * other.above)
    }

    pub fn neg(self) -> Self {
        Self { above: -self.above, ..self }
    }

    fn below(self, other: Self) -> bool {
        self.above * other.below < other.above * self.below
    }

    /// 2ˣ
    fn exp(self) -> Option<Self> {
        (self.below == 1 && self.above.abs() < 40).then(|| match self.above {
            n if n < 0 => Self { above: 1, below: 1 << -n },
            n => Self::of(1 << n),
        })
    }

    /// The number whose power of two it is.
    fn log(self) -> Option<Self> {
        let exponent = |n: i128| (n > 0 && n & (n - 1) == 0).then(|| i128::from(n.trailing_zeros()));
        Some(Self::of(exponent(self.above)? - exponent(self.below)?))
    }

    fn abs(self) -> Self {
        Self { above: self.above.abs(), ..self }
    }

    pub fn power(self, power: i32) -> Option<Self> {
        let whole = (0..power.abs()).try_fold(Self::of(1), |product, _| product.mul(self))?;
        if power < 0 { Self::of(1).div(whole) } else { Some(whole) }
    }
}

/// An algorithm under construction: terms over the axis 0 of two tensors, two scalars, and the variable 0.
pub(super) struct Terms {
    pub algorithm: Algorithm,
}

pub(super) const X: u16 = 0;
const Y: u16 = 1;
const A: u16 = 2;
const B: u16 = 3;

impl Terms {
    pub fn new() -> Self {
        let axis = Axis { name: "j".into(), lower: 0, upper: 1 };
        let algorithm = Algorithm {
            indices: vec![Index::Literal(0), Index::Dim(0), Index::Axis(0)].into(),
            values: Vec::new().into(),
            types: Vec::new().into(),
            axes: vec![axis].into(),
            index_lists: vec![2].into(),
            axis_lists: vec![0].into(),
            folds: Vec::new().into(),
            components: Vec::new().into(),
            equations: Vec::new().into(),
        };
        Self { algorithm }
    }

    pub fn push(&mut self, value: Value) -> ValueId {
        super::push(&mut self.algorithm, value, ElementType::F32)
    }

    pub fn literal(&mut self, x: f32) -> ValueId {
        self.push(Value::Literal(x.to_bits().into()))
    }

    pub fn read(&mut self, parameter: u16) -> ValueId {
        self.push(Value::Read { source: Source::Parameter(parameter), indices: Run { start: 0, len: 1 }, or: None })
    }

    pub fn m(&mut self) -> ValueId {
        self.push(Value::Variable(0))
    }

    pub fn scalar(&mut self, parameter: u16) -> ValueId {
        self.push(Value::Scalar(parameter))
    }

    pub fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.push(Value::Binary(op, a, b))
    }

    fn unary(&mut self, op: Unary, a: ValueId) -> ValueId {
        self.push(Value::Unary(op, a))
    }

    fn exp(&mut self, a: ValueId) -> ValueId {
        self.unary(Unary::Exp, a)
    }

    fn find(&self, op: Reduction, term: ValueId) -> Result<Correction, Why> {
        correction(&self.algorithm, op, term, 0, &[0]).map_err(|obstacle| obstacle.why)
    }

    /// A random term.
    fn draw(&mut self, random: &mut Random, depth: u32) -> ValueId {
        if depth == 0 || random.below(5) == 0 {
            return match random.below(8) {
                0 | 1 => self.m(),
                2 | 3 => self.read(X),
                4 => self.read(Y),
                5 => self.scalar(A),
                6 => self.scalar(B),
                _ => {
                    let number = [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0][random.below(7) as usize];
                    self.literal(number)
                }
            };
        }
        let a = self.draw(random, depth - 1);
        match random.below(17) {
            0..=3 => self.exp(a),
            4 => self.unary(Unary::Neg, a),
            14 => self.unary(Unary::Abs, a),
            15 => self.unary(Unary::Log, a),
            16 => self.unary(Unary::ApproxExp2, a),
            5 => {
                let (b, c) = (self.draw(random, depth - 1), self.draw(random, depth - 1));
                if random.below(2) == 0 {
                    return self.push(Value::Fma(a, b, c));
                }
                let x = self.read(X);
                let condition = self.push(Value::Compare(Compare::Lt, x, b));
                self.push(Value::Select(condition, a, c))
            }
            n => {
                let op = [
                    Binary::Sub,
                    Binary::Sub,
                    Binary::Mul,
                    Binary::Mul,
                    Binary::Mul,
                    Binary::Add,
                    Binary::Div,
                    Binary::Max,
                ][n as usize - 6];
                let b = self.draw(random, depth - 1);
                self.binary(op, a, b)
            }
        }
    }

    /// A term's value.
    pub fn value(&self, id: ValueId, at: &Point) -> Option<Rational> {
        let of = |v: ValueId| self.value(v, at);
        Some(match self.algorithm.values[id as usize] {
            Value::Literal(bits) => {
                let twice = f32::from_bits(bits as u32) * 2.0;
                Rational::new(twice as i128, 2)?
            }
            Value::Variable(_) => at.m,
            Value::Scalar(A) => at.scalars[0],
            Value::Scalar(_) => at.scalars[1],
            Value::Read { source: Source::Parameter(X), .. } => at.term[0],
            Value::Read { .. } => at.term[1],
            Value::Unary(Unary::Neg, a) => of(a)?.neg(),
            Value::Unary(Unary::Abs, a) => of(a)?.abs(),
            Value::Unary(Unary::Log, a) => of(a)?.log()?,
            Value::Unary(Unary::ApproxExp2, a) => {
                let exponent = of(a)?;
                let whole = i32::try_from(exponent.above).ok().filter(|n| exponent.below == 1 && n.abs() < 24)?;
                Rational::of(3).power(whole)?
            }
            Value::Unary(_, a) => of(a)?.exp()?,
            Value::Binary(Binary::Add, a, b) => of(a)?.add(of(b)?)?,
            Value::Binary(Binary::Sub, a, b) => of(a)?.add(of(b)?.neg())?,
            Value::Binary(Binary::Mul, a, b) => of(a)?.mul(of(b)?)?,
            Value::Binary(Binary::Div, a, b) => of(a)?.div(of(b)?)?,
            Value::Binary(_, a, b) => {
                let (a, b) = (of(a)?, of(b)?);
                if a.below(b) { b } else { a }
            }
            Value::Fma(a, b, c) => of(a)?.mul(of(b)?)?.add(of(c)?)?,
            Value::Select(condition, a, b) => match self.algorithm.values[condition as usize] {
                Value::Compare(_, x, y) if of(x)?.below(of(y)?) => of(a)?,
                _ => of(b)?,
            },
            _ => return None,
        })
    }

    pub fn coefficient(&self, k: &Coefficient, at: &Point) -> Option<Rational> {
        k.0.iter().try_fold(Rational::of(0), |sum, (literal, factors)| {
            // Literals are small, with few bits behind the point.
            let literal = Rational::new((literal * 4096.0) as i128, 4096)?;
            let product = factors.iter().try_fold(literal, |product, factor| {
                let value = self.value(factor.value, at)?;
                if factor.inverse { product.div(value) } else { product.mul(value) }
            })?;
            sum.add(product)
        })
    }

    fn scale(&self, scale: &Scale, at: &Point) -> Option<Rational> {
        let exponent = self.coefficient(&scale.exponent, at)?.mul(at.m)?;
        let binary = self.coefficient(&scale.binary, at)?.mul(at.m)?;
        let binary = i32::try_from(binary.above).ok().filter(|_| binary.below == 1)?;
        let all = exponent.exp()?.mul(Rational::of(3).power(binary)?)?.mul(at.m.abs().power(scale.power)?)?;
        Some(if scale.signed && at.m.above < 0 { all.neg() } else { all })
    }

    /// A(m).
    fn shift(&self, shift: &Shift, at: &Point) -> Option<Rational> {
        let linear = self.coefficient(&shift.linear, at)?.mul(at.m)?;
        if shift.logarithm.is_zero() {
            return Some(linear);
        }
        linear.add(self.coefficient(&shift.logarithm, at)?.mul(at.m.abs().log()?)?)
    }

    /// A result of `count` terms, corrected; `at` has the variable as it was.
    fn corrected(&self, how: &Correction, result: Rational, count: usize, at: &Point, m: Rational) -> Option<Rational> {
        let later = Point { m, ..at.clone() };
        let factor = |scale: &Scale| self.scale(scale, &later)?.div(self.scale(scale, at)?);
        let moved = |shift: &Shift| self.shift(shift, &later)?.add(self.shift(shift, at)?.neg());
        match how {
            Correction::Keep => Some(result),
            Correction::Multiply(scale) => result.mul(factor(scale)?),
            Correction::MultiplyEach(scale) => result.mul(factor(scale)?.power(count as i32)?),
            Correction::Add(shift) => result.add(moved(shift)?),
            Correction::AddEach(shift) => result.add(moved(shift)?.mul(Rational::of(count as i128))?),
        }
    }
}

/// What a term is evaluated at.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub m: Rational,
    pub term: [Rational; 2],
    pub scalars: [Rational; 2],
}

pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    pub fn number(&mut self) -> Rational {
        Rational::of(i128::from(self.below(7)) - 3)
    }

    /// One that can be divided by.
    pub fn other(&mut self) -> Rational {
        Rational::of([-2, -1, 1, 2, 4][self.below(5) as usize])
    }
}

fn combined(op: Reduction, a: Option<Rational>, b: Rational) -> Option<Rational> {
    let Some(a) = a else { return Some(b) };
    match op {
        Reduction::Sum => a.add(b),
        Reduction::Prod => a.mul(b),
        Reduction::Max => Some(if a.below(b) { b } else { a }),
        _ => Some(if b.below(a) { b } else { a }),
    }
}

/// The result of terms with one value of the variable.
fn direct(
    terms: &Terms,
    op: Reduction,
    id: ValueId,
    m: Rational,
    scalars: [Rational; 2],
    of: &[[Rational; 2]],
) -> Option<Rational> {
    let mut result = None;
    for &term in of {
        result = Some(combined(op, result, terms.value(id, &Point { m, term, scalars })?)?);
    }
    result
}

/// Of random terms, those that have a correction are computed in one pass with it, and in two passes without; of the
/// others it is searched whether equal results have different ones later, so that no correction can exist.
#[test]
fn corrections_are_right_and_refusals_have_witnesses() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut tried, mut kept, mut corrected, mut logarithms) = (0, 0, [0_u32; 4], 0);
    let (mut refused, mut witnessed) = (0_u32, 0_u32);
    for round in 0..60_000 {
        let mut terms = Terms::new();
        let depth = 1 + random.below(4) as u32;
        let id = terms.draw(&mut random, depth);
        let op =
            [Reduction::Sum, Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Prod][random.below(5) as usize];
        let found = terms.find(op, id);
        let mut compared = 0;
        let mut witness = false;
        for _ in 0..if found.is_ok() { 6 } else { 60 } {
            let scalars = [random.other(), random.other()];
            let count = 1 + random.below(4) as usize;
            let data: Vec<[Rational; 2]> = (0..count).map(|_| [random.number(), random.number()]).collect();
            let steps: Vec<Rational> = (0..count).map(|_| random.other()).collect();
            let last = steps[count - 1];
            match &found {
                Ok(how) => {
                    // One pass: the variable changes before every term.
                    let one_pass = || -> Option<Option<Rational>> {
                        let mut result: Option<Rational> = None;
                        for (n, &term) in data.iter().enumerate() {
                            if let Some(before) = result {
                                let at = Point { m: steps[n - 1], term, scalars };
                                result = Some(terms.corrected(how, before, n, &at, steps[n])?);
                            }
                            let value = terms.value(id, &Point { m: steps[n], term, scalars })?;
                            result = Some(combined(op, result, value)?);
                        }
                        Some(result)
                    };
                    let (Some(Some(one)), Some(two)) = (one_pass(), direct(&terms, op, id, last, scalars, &data))
                    else {
                        continue;
                    };
                    assert_eq!(one, two, "round {round}: {how:?} of {:?}", terms.algorithm.values);
                    compared += 1;
                }
                Err(_) => {
                    // Equal results so far, of other terms or of another number of them, that differ later.
                    let others: Vec<[Rational; 2]> =
                        (0..1 + random.below(4)).map(|_| [random.number(), random.number()]).collect();
                    let result = |m, of: &[[Rational; 2]]| direct(&terms, op, id, m, scalars, of);
                    let (first, later) = (steps[0], random.other());
                    if let (Some(a), Some(b), Some(c), Some(d)) =
                        (result(first, &data), result(first, &others), result(later, &data), result(later, &others))
                    {
                        witness |= a == b && c != d;
                    }
                }
            }
        }
        tried += 1;
        match found {
            Ok(_) if compared == 0 => {}
            Ok(Correction::Keep) => kept += 1,
            Ok(Correction::Multiply(_)) => corrected[0] += 1,
            Ok(Correction::Add(_)) => corrected[1] += 1,
            Ok(Correction::AddEach(shift)) => {
                corrected[2] += 1;
                logarithms += u32::from(!shift.logarithm.is_zero());
            }
            Ok(Correction::MultiplyEach(_)) => corrected[3] += 1,
            Err(_) => {
                refused += 1;
                witnessed += u32::from(witness);
            }
        }
    }
    println!(
        "{tried} terms: {kept} without it, {corrected:?} corrected, {logarithms} logarithms, {refused} refused, \
        {witnessed} with a witness"
    );
    assert!(corrected.iter().all(|n| *n > 300) && logarithms > 40, "{corrected:?} {logarithms}");
    assert!(witnessed > 1000, "{witnessed} of {refused}");
}

#[test]
fn what_stands_in_the_way() {
    let mut t = Terms::new();
    let (x, y, m, a) = (t.read(X), t.read(Y), t.m(), t.scalar(A));
    let (two, zero) = (t.literal(2.0), t.literal(0.0));
    let apart = t.binary(Binary::Sub, x, m);
    let p = t.exp(apart);
    let k = |literal: f64| Coefficient(vec![(literal, Vec::new())]);
    let shift = |literal: f64| Shift { linear: k(literal), ..Shift::default() };
    let multiply = |literal, power| Ok(Correction::Multiply(Scale { exponent: k(literal), power, ..Scale::default() }));
    // exp(x − m), and with a factor; halves of it.
    assert_eq!(t.find(Reduction::Sum, p), multiply(-1.0, 0));
    let py = t.binary(Binary::Mul, p, y);
    assert_eq!(t.find(Reduction::Sum, py), multiply(-1.0, 0));
    assert_eq!(t.find(Reduction::Max, py), multiply(-1.0, 0));
    let square = t.binary(Binary::Mul, p, p);
    assert_eq!(t.find(Reduction::Sum, square), multiply(-2.0, 0));
    // exp(2·x − 2·m)
    let (xx, mm) = (t.binary(Binary::Mul, two, x), t.binary(Binary::Mul, m, two));
    let scaled = t.binary(Binary::Sub, xx, mm);
    let scaled = t.exp(scaled);
    assert_eq!(t.find(Reduction::Sum, scaled), multiply(-2.0, 0));
    let both = t.binary(Binary::Add, scaled, square);
    assert_eq!(t.find(Reduction::Sum, both), multiply(-2.0, 0));
    // (x/m)²
    let ratio = t.binary(Binary::Div, x, m);
    let norm = t.binary(Binary::Mul, ratio, ratio);
    let of_norm = Ok(Correction::Multiply(Scale { power: -2, ..Scale::default() }));
    assert_eq!(t.find(Reduction::Sum, norm), of_norm);
    assert_eq!(t.find(Reduction::Max, norm), of_norm);
    assert_eq!(t.find(Reduction::Max, ratio), Err(Why::Combined), "its sign is not known");
    let size = t.unary(Unary::Abs, ratio);
    let cube = t.binary(Binary::Mul, size, norm);
    let of_cube = Scale { power: -3, ..Scale::default() };
    assert_eq!(t.find(Reduction::Sum, cube), Ok(Correction::Multiply(of_cube.clone())));
    assert_eq!(t.find(Reduction::Max, cube), Ok(Correction::Multiply(of_cube.clone())), "|x/m|³ is positive");
    // Products, and logarithms.
    assert_eq!(t.find(Reduction::Prod, cube), Ok(Correction::MultiplyEach(of_cube)));
    let log = t.unary(Unary::Log, cube);
    let of_log = Shift { logarithm: k(-3.0), ..Shift::default() };
    assert_eq!(t.find(Reduction::Sum, log), Ok(Correction::AddEach(of_log.clone())));
    assert_eq!(t.find(Reduction::Max, log), Ok(Correction::Add(of_log)));
    assert_eq!(t.find(Reduction::Prod, log), Err(Why::Combined));
    let back = t.exp(log);
    assert_eq!(t.find(Reduction::Sum, back), Ok(Correction::Multiply(Scale { power: -3, ..Scale::default() })));
    let to_two = t.unary(Unary::ApproxExp2, log);
    assert_eq!(t.find(Reduction::Sum, to_two), Err(Why::Exponent), "the logarithm is to the base e");
    let of_two = t.unary(Unary::ApproxExp2, apart);
    let binary = Scale { binary: k(-1.0), ..Scale::default() };
    assert_eq!(t.find(Reduction::Sum, of_two), Ok(Correction::Multiply(binary)));
    let mixed = t.binary(Binary::Add, of_two, p);
    assert_eq!(t.find(Reduction::Sum, mixed), Err(Why::Sum), "they have two bases");
    let varying = t.binary(Binary::Mul, y, log);
    assert_eq!(t.find(Reduction::Sum, varying), Err(Why::Varies));
    // Shifted sums and extremes.
    assert_eq!(t.find(Reduction::Sum, apart), Ok(Correction::AddEach(shift(-1.0))));
    assert_eq!(t.find(Reduction::Min, apart), Ok(Correction::Add(shift(-1.0))));
    let weighted = t.binary(Binary::Mul, y, apart);
    assert_eq!(t.find(Reduction::Sum, weighted), Err(Why::Varies));
    // A mask.
    let condition = t.push(Value::Compare(Compare::Lt, x, a));
    let masked = t.push(Value::Select(condition, p, zero));
    assert_eq!(t.find(Reduction::Sum, masked), multiply(-1.0, 0));
    let other = t.push(Value::Select(condition, p, two));
    assert_eq!(t.find(Reduction::Sum, other), Err(Why::Sum));
    let decided = t.push(Value::Compare(Compare::Lt, x, m));
    let decided = t.push(Value::Select(decided, p, zero));
    assert_eq!(t.find(Reduction::Sum, decided), Err(Why::Decides));
    // The rest.
    let log = t.push(Value::Unary(Unary::Log, apart));
    assert_eq!(t.find(Reduction::Sum, log), Err(Why::Function));
    let tower = t.exp(p);
    assert_eq!(t.find(Reduction::Sum, tower), Err(Why::Exponent));
    let shifted = t.binary(Binary::Add, p, two);
    assert_eq!(t.find(Reduction::Sum, shifted), Err(Why::Sum));
    let square = t.binary(Binary::Mul, apart, apart);
    assert_eq!(t.find(Reduction::Sum, square), Err(Why::Product), "a variance needs the mean as well");
    let each = Scale { exponent: k(-1.0), ..Scale::default() };
    assert_eq!(t.find(Reduction::Prod, p), Ok(Correction::MultiplyEach(each)));
    assert_eq!(t.find(Reduction::Prod, apart), Err(Why::Combined));
    let floor = t.push(Value::Unary(Unary::Floor, apart));
    assert_eq!(t.find(Reduction::Sum, floor), Err(Why::Function));
    let varying = t.binary(Binary::Mul, x, m);
    let varying = t.exp(varying);
    assert_eq!(t.find(Reduction::Sum, varying), Err(Why::Exponent), "exp(x·m)");
    let nested =
        t.push(Value::Reduce { op: Reduction::Sum, order: Order::Free, axes: Run { start: 0, len: 1 }, body: py });
    assert_eq!(t.find(Reduction::Sum, nested), multiply(-1.0, 0), "a sum of them is one");
}
