//! Reductions: an accumulator takes the terms in ascending order and gives the set of admissible results.
//!
//! Float sums and products of free order have rooms of their own: `sum`, `prod`; `argmax` and `argmin` are in `winner`.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Order, Reduction};

use super::arith::{self, limits};
use super::column::{Column, Range};
use super::interval::Format;
use super::prod::Prod;
use super::sum::Sums;
use super::winner::Arg;

/// The running results of one reduction at a number of points.
pub(super) enum Accumulator {
    Sum(Sums),
    Prod(Vec<Prod>, Format),
    /// Terms one after the other.
    Ordered {
        product: bool,
        element: ElementType,
        value: Column,
    },
    /// Max, min, and every reduction of integers and booleans: exact in any order.
    Exact {
        op: Reduction,
        element: ElementType,
        value: Column,
    },
    Arg {
        points: Vec<Arg>,
        largest: bool,
    },
}

/// How the points of a column map to those of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// Entry i belongs to point i.
    Points,
    /// All entries are terms of the one point there is, in ascending order.
    Terms,
}

impl Accumulator {
    /// For `points` results; `None` if the type does not have the reduction.
    pub(super) fn new(op: Reduction, order: Order, element: ElementType, points: usize) -> Option<Self> {
        let format = Format::of(element);
        if element.is_float() && format.is_none() {
            return None;
        }
        Some(match (op, format) {
            (Reduction::ArgMax | Reduction::ArgMin, _) => {
                Self::Arg { points: vec![Arg::default(); points], largest: op == Reduction::ArgMax }
            }
            (Reduction::Sum | Reduction::Prod, Some(_)) if order == Order::Ordered => {
                let product = op == Reduction::Prod;
                Self::Ordered { product, element, value: Column::Float(vec![if product { 1.0 } else { 0.0 }; points]) }
            }
            (Reduction::Sum, Some(format)) => Self::Sum(Sums::new(points, format)),
            (Reduction::Prod, Some(format)) => Self::Prod(vec![Prod::default(); points], format),
            (Reduction::Max, Some(_)) => Self::exact(op, element, Column::Float(vec![f64::NEG_INFINITY; points])),
            (Reduction::Min, Some(_)) => Self::exact(op, element, Column::Float(vec![f64::INFINITY; points])),
            (Reduction::All | Reduction::Any, Some(_)) => return None,
            (_, None) => {
                let (least, greatest) = limits(element);
                let identity = match op {
                    Reduction::Sum | Reduction::Any => 0,
                    Reduction::Prod | Reduction::All => 1,
                    Reduction::Max => least,
                    _ => greatest,
                };
                Self::exact(op, element, Column::Int(vec![identity; points]))
            }
        })
    }

    fn exact(op: Reduction, element: ElementType, value: Column) -> Self {
        Self::Exact { op, element, value }
    }

    /// Takes one term a point (or all of a column's entries as terms of the one point), where `active` says so. `position` is
    /// the index of the term, of the first one if there are several.
    pub(super) fn take(&mut self, terms: &Column, along: Along, count: usize, position: i64, active: Option<&[bool]>) {
        let is_active = |i: usize| active.is_none_or(|a| a[i]);
        match self {
            Self::Sum(sums) => sums.take(terms, along, count, active),
            Self::Prod(products, format) => {
                for i in (0..count).filter(|&i| is_active(i)) {
                    products[if along == Along::Points { i } else { 0 }].take(terms.interval(i), *format);
                }
            }
            Self::Arg { points, largest } => {
                for i in (0..count).filter(|&i| is_active(i)) {
                    let (point, at) = if along == Along::Points { (i, position) } else { (0, position + i as i64) };
                    points[point].take(at, terms, i, *largest);
                }
            }
            Self::Ordered { .. } | Self::Exact { .. } => self.step(terms, along, count, active),
        }
    }

    /// One more term (or several) of a reduction that is evaluated from the left.
    fn step(&mut self, terms: &Column, along: Along, count: usize, active: Option<&[bool]>) {
        let op = self.operation();
        let (Self::Ordered { element, value, .. } | Self::Exact { element, value, .. }) = self else { return };
        let points = value.len();
        // These operations exist for every type that `new` accepted.
        let next = |value: &Column, term: &Column| {
            arith::binary(op, *element, value, term, false).unwrap_or_else(|_| value.clone())
        };
        match (along, active) {
            (Along::Points, None) => *value = next(value, terms),
            (Along::Points, Some(active)) => *value = next(value, terms).choose(value, points, |i| Some(active[i])),
            (Along::Terms, None) if terms.len() == count && terms.is_exact() && value.is_exact() => {
                if let Some(result) = arith::chain(op, *element, value, terms) {
                    *value = result;
                }
            }
            (Along::Terms, _) => {
                for i in (0..count).filter(|&i| active.is_none_or(|a| a[i])) {
                    *value = next(value, &terms.only(i));
                }
            }
        }
    }

    fn operation(&self) -> Binary {
        match self {
            Self::Ordered { product: true, .. } | Self::Exact { op: Reduction::Prod, .. } => Binary::Mul,
            Self::Exact { op: Reduction::Max, .. } => Binary::Max,
            Self::Exact { op: Reduction::Min, .. } => Binary::Min,
            Self::Exact { op: Reduction::All, .. } => Binary::And,
            Self::Exact { op: Reduction::Any, .. } => Binary::Or,
            _ => Binary::Add,
        }
    }

    /// The admissible results; an error message where there is none.
    pub(super) fn finish(self) -> Result<Column, String> {
        Ok(match self {
            Self::Sum(sums) => sums.finish(),
            Self::Prod(products, format) => Column::from_intervals(products.iter().map(|p| p.finish(format)).collect()),
            Self::Ordered { value, .. } | Self::Exact { value, .. } => value,
            Self::Arg { points, .. } => {
                let each: Option<Vec<Range>> = points.iter().map(Arg::finish).collect();
                Column::from_ranges(each.ok_or_else(|| "argmax or argmin of no elements".to_owned())?)
            }
        })
    }
}

/// Float sums at a number of points.
///
/// Once no sum can be exact any more, and while all terms are finite single values, two numbers a point are enough; they are
/// kept apart from the rest, so that the loop over the points is a vector loop.
pub(super) struct Sums {
    each: Vec<Sum>,
    format: Format,
    /// Sum of the terms, and of their magnitudes, that are not in `each` yet.
    sums: Vec<f64>,
    magnitudes: Vec<f64>,
    count: u64,
    /// Whether two numbers a point are enough.
    plain: bool,
    /// Columns taken.
    taken: u64,
}

impl Sums {
    fn new(points: usize, format: Format) -> Self {
        let zeros = vec![0.0; points];
        let each = vec![Sum::default(); points];
        Self { each, format, sums: zeros.clone(), magnitudes: zeros, count: 0, plain: false, taken: 0 }
    }

    fn take(&mut self, terms: &Column, along: Along, count: usize, active: Option<&[bool]>) {
        self.taken += 1;
        // Looked at now and then: the answer changes once.
        if !self.plain && along == Along::Points && self.taken % 8 == 0 {
            self.plain = self.format != Format::F64 && self.each.iter().all(|s| s.exact && s.quantum.is_none());
        }
        match (terms, along, active) {
            (Column::Float(values), Along::Points, None) if self.plain && values.iter().all(|x| x.is_finite()) => {
                self.count += 1;
                if let &[x] = &values[..] {
                    self.sums.iter_mut().for_each(|s| *s += x);
                    self.magnitudes.iter_mut().for_each(|m| *m += x.abs());
                    return;
                }
                for ((sum, magnitude), &x) in self.sums.iter_mut().zip(&mut self.magnitudes).zip(values) {
                    *sum += x;
                    *magnitude += x.abs();
                }
            }
            (Column::Float(values), Along::Points, None) if !self.plain => {
                for (i, sum) in self.each.iter_mut().enumerate() {
                    sum.take(pick(values, i), self.format);
                }
            }
            (Column::Float(values), Along::Terms, None) if values.len() == count => {
                self.each[0].take_all(values, self.format);
            }
            _ => {
                self.settle();
                for i in (0..count).filter(|&i| active.is_none_or(|a| a[i])) {
                    self.each[if along == Along::Points { i } else { 0 }].take_set(terms.interval(i), self.format);
                }
            }
        }
    }

    /// Moves everything into `each`.
    fn settle(&mut self) {
        for (i, sum) in self.each.iter_mut().enumerate() {
            sum.lo += self.sums[i];
            sum.hi += self.sums[i];
            sum.magnitude += self.magnitudes[i];
            sum.count += self.count;
        }
        self.sums.fill(0.0);
        self.magnitudes.fill(0.0);
        (self.count, self.plain) = (0, false);
    }

    fn finish(mut self) -> Column {
        self.settle();
        Column::from_intervals(self.each.iter().map(|s| s.finish(self.format)).collect())
    }
}

/// The terms of one float sum so far.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    count: u64,
    /// Sum of the lower and of the upper ends; with `rest`, the part that f64 lost.
    lo: f64,
    hi: f64,
    rest: f64,
    /// Sum of the largest magnitudes.
    magnitude: f64,
    /// Largest power of two that divides all terms, if it may still matter.
    quantum: Option<f64>,
    /// Every term was one value.
    exact: bool,
    /// What non-finite terms there may be, and whether some are certain.
    nan: bool,
    only_nan: bool,
    positive: bool,
    negative: bool,
    certain_positive: bool,
    certain_negative: bool,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            count: 0,
            lo: 0.0,
            hi: 0.0,
            rest: 0.0,
            magnitude: 0.0,
            quantum: Some(f64::INFINITY),
            exact: true,
            nan: false,
            only_nan: false,
            positive: false,
            negative: false,
            certain_positive: false,
            certain_negative: false,
        }
    }
}

impl Sum {
    /// Many terms at once: the loop that products spend their time in.
    fn take_all(&mut self, values: &[f64], format: Format) {
        let tracked = self.quantum.is_some() || format == Format::F64 || !self.exact;
        if tracked {
            return values.iter().for_each(|&x| self.take(x, format));
        }
        // Four partial sums, so that the additions need not wait for each other.
        let mut sums = [0.0_f64; 4];
        let mut magnitudes = [0.0_f64; 4];
        let (fours, rest) = values.as_chunks::<4>();
        for four in fours {
            for i in 0..4 {
                sums[i] += four[i];
                magnitudes[i] += four[i].abs();
            }
        }
        let magnitude = magnitudes.iter().sum::<f64>() + rest.iter().map(|x| x.abs()).sum::<f64>();
        if !magnitude.is_finite() {
            // Some term is not finite (finite f32 do not overflow here).
            return values.iter().for_each(|&x| self.take(x, format));
        }
        self.lo += sums.iter().chain(rest).sum::<f64>();
        self.magnitude += magnitude;
        self.count += values.len() as u64;
    }

    #[inline]
    fn take(&mut self, x: f64, format: Format) {
        if !x.is_finite() || !self.exact {
            return self.take_set(Interval::exact(x), format);
        }
        self.count += 1;
        self.magnitude += x.abs();
        if format == Format::F64 {
            let sum = self.lo + x;
            // Knuth's two-sum: the part that rounding lost.
            let virtual_x = sum - self.lo;
            self.rest += (self.lo - (sum - virtual_x)) + (x - virtual_x);
            self.lo = sum;
        } else {
            self.lo += x;
        }
        if let Some(quantum) = self.quantum
            && x != 0.0
        {
            let quantum = quantum.min(lowest_bit(x));
            // Beyond this some partial sum may not be representable, and more terms do not change that.
            let representable = self.magnitude <= quantum * power_of_two(format.precision());
            self.quantum = representable.then_some(quantum);
        }
    }

    fn take_set(&mut self, x: Interval, format: Format) {
        if self.exact && x.single().is_some_and(f64::is_finite) {
            return self.take(x.lo, format);
        }
        if self.exact {
            self.exact = false;
            self.hi = self.lo;
        }
        self.count += 1;
        self.quantum = None;
        self.nan |= x.nan;
        if x.is_empty() {
            self.only_nan = true;
            return;
        }
        self.positive |= x.hi == f64::INFINITY;
        self.negative |= x.lo == f64::NEG_INFINITY;
        self.certain_positive |= x.lo == f64::INFINITY;
        self.certain_negative |= x.hi == f64::NEG_INFINITY;
        // Infinite ends were noted; what is summed is finite.
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        self.lo += finite(x.lo);
        self.hi += finite(x.hi);
        self.magnitude += finite(x.lo).abs().max(finite(x.hi).abs());
    }

    fn finish(&self, format: Format) -> Interval {
        let hi = if self.exact { self.lo } else { self.hi };
        let nan = self.nan || self.positive && self.negative;
        if self.only_nan || self.certain_positive && self.certain_negative {
            return Interval::NAN;
        }
        if self.count == 0 {
            return Interval::exact(0.0);
        }
        let n = self.count as f64;
        let exactly = self.exact && (self.count <= 2 || self.quantum.is_some() && self.magnitude <= format.max());
        if exactly {
            // Two terms are rounded once; more of them were found to need no rounding. A sum of zeros is +0.
            let value = format.operate(|| self.lo, || self.lo as f32);
            return Interval::exact(if value == 0.0 { 0.0 } else { value });
        }
        let roundings = (n - 1.0) * format.unit_roundoff() * self.magnitude;
        // Our own error: each of the n additions in f64, those of the magnitudes included; for f64 that of the two-part sum.
        let ours = match format {
            Format::F64 if self.exact => 2.0 * f64::EPSILON * (self.lo.abs() + n * n * f64::EPSILON * self.magnitude),
            _ => 2.0 * n * f64::EPSILON * self.magnitude,
        };
        // The last summand covers an error that underflows while it is computed.
        let error = (roundings + ours) * (1.0 + 4.0 * n * f64::EPSILON) + f64::from_bits(1);
        let mut set = Interval { lo: self.lo + self.rest - error, hi: hi + self.rest + error, nan };
        // Partial sums reach at most the sum of the positive terms, and at least that of the negative ones.
        let threshold = format.max() / (1.0 + n * format.unit_roundoff());
        let over = (self.magnitude + hi + error) / 2.0 > threshold || self.magnitude.is_infinite();
        let under = (self.magnitude - self.lo + error) / 2.0 > threshold || self.magnitude.is_infinite();
        let (positive, negative) = (self.positive || over, self.negative || under);
        set.nan |= positive && negative;
        if self.certain_positive {
            set.lo = f64::INFINITY;
        }
        if self.certain_negative {
            set.hi = f64::NEG_INFINITY;
        }
        if positive && !self.certain_negative {
            set.hi = f64::INFINITY;
        }
        if negative && !self.certain_positive {
            set.lo = f64::NEG_INFINITY;
        }
        if set.lo.is_nan() || set.hi.is_nan() { Interval::ALL } else { set }
    }
}

/// The factors of a float product so far.
#[derive(Clone, Debug)]
pub(super) struct Prod {
    count: u64,
    /// Encloses the exact product.
    value: Interval,
    /// Bounds of the binary logarithm of any partial product.
    most: f64,
    least: f64,
    /// Bound of the significant bits of the exact product, while every factor was one value.
    bits: Option<i64>,
    /// The product of the first two factors, if each was one value.
    pair: Option<f64>,
    /// Whether a factor may be infinite. Otherwise the exact product is finite, however large.
    infinite: bool,
}

impl Default for Prod {
    fn default() -> Self {
        Self { count: 0, value: Interval::exact(1.0), most: 0.0, least: 0.0, bits: Some(0), pair: None, infinite: false }
    }
}

impl Prod {
    fn take(&mut self, x: Interval, format: Format) {
        self.count += 1;
        self.infinite |= x.has_infinity();
        self.bits = match (self.bits, x.single()) {
            (Some(bits), Some(x)) if x.is_finite() && x != 0.0 => {
                // A power of two adds no bits.
                let odd = x.abs() / lowest_bit(x);
                Some(if odd == 1.0 { bits } else { bits + odd.log2().floor() as i64 + 1 })
            }
            (Some(bits), Some(0.0)) => Some(bits),
            _ => None,
        };
        if self.count == 2 {
            self.pair = self.value.single().zip(x.single()).map(|(a, b)| a * b);
        }
        if self.count == 1 {
            self.value = x;
        } else {
            let product = arith::product(self.value, x);
            let outwards = |x: f64, down: bool| match (x.is_finite(), down) {
                (false, _) => x,
                (true, true) => x - Format::F64.ulp(x),
                (true, false) => x + Format::F64.ulp(x),
            };
            let is_zero = |x: Interval| x.single() == Some(0.0);
            let exact = is_zero(product) && (is_zero(self.value) || is_zero(x))
                || self.bits.is_some_and(|b| b <= 53) && product.single().is_some_and(|p| p.abs() > 1e-290);
            self.value = if product.is_empty() || exact {
                product
            } else {
                Interval { lo: outwards(product.lo, true), hi: outwards(product.hi, false), nan: product.nan }
            };
            // What overflows here is large and not infinite: a later factor may bring it back, or make it 0.
            if !self.infinite && !self.value.is_empty() {
                self.value.lo = self.value.lo.min(f64::MAX);
                self.value.hi = self.value.hi.max(-f64::MAX);
            }
        }
        if !x.is_empty() {
            let largest = x.lo.abs().max(x.hi.abs());
            let smallest = if x.has_zero() { 0.0 } else { x.lo.abs().min(x.hi.abs()) };
            self.most += largest.log2().max(0.0);
            // An exact zero makes the product zero; it underflows nothing.
            if x.single() != Some(0.0) {
                self.least += smallest.max(format.min_positive()).log2().min(0.0);
            }
        }
    }

    fn finish(&self, format: Format) -> Interval {
        if self.count <= 1 || self.value.is_empty() {
            return self.value;
        }
        if let (2, Some(product)) = (self.count, self.pair) {
            return Interval::exact(format.operate(|| product, || product as f32));
        }
        let n = self.count as f64;
        let slack = 1e-6 * (n + self.most - self.least);
        let (overflow, underflow) =
            (self.most + slack >= format.max().log2(), self.least - slack <= format.min_normal().log2());
        let representable = self.bits.is_some_and(|b| b <= i64::from(format.precision()));
        if representable && !overflow && !underflow {
            return self.value;
        }
        let k = (n - 1.0) * format.unit_roundoff();
        if overflow || k >= 0.5 {
            // An infinite partial product times a later zero, or an underflow to zero, is NaN.
            let zero_possible = underflow || self.value.has_zero();
            let signed = |set: Interval| match (self.value.lo >= 0.0, self.value.hi <= 0.0, set) {
                (true, false, s) => s.clamp(0.0, f64::INFINITY),
                (false, true, s) => s.clamp(f64::NEG_INFINITY, 0.0),
                (_, _, s) => s,
            };
            return signed(Interval::ALL).or_nan(self.value.nan || zero_possible && overflow);
        }
        let relative = k / (1.0 - k);
        // Each product that underflows is off by half the smallest number, and the later factors enlarge that.
        let absolute = if underflow { n * format.min_positive() * self.most.exp2() } else { 0.0 };
        let low = |x: f64| x - x.abs() * relative - absolute;
        let high = |x: f64| x + x.abs() * relative + absolute;
        Interval { lo: low(self.value.lo), hi: high(self.value.hi), nan: self.value.nan }
    }
}

/// The candidates of an `argmax` or `argmin` so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Arg {
    /// Index and term; only those that may still win, as far as that is cheap to see.
    candidates: Vec<(i64, Term)>,
    /// A NaN is certain here: nothing later wins.
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Term {
    Float(Interval),
    Int(i128, i128),
}

impl Arg {
    fn take(&mut self, index: i64, terms: &Column, at: usize, largest: bool) {
        if self.closed {
            return;
        }
        // Negated for `argmin`, so that the largest wins.
        let term = match terms {
            Column::Float(_) | Column::FloatSets(_) => {
                let x = terms.interval(at);
                Term::Float(if largest || x.is_empty() { x } else { Interval { lo: -x.hi, hi: -x.lo, nan: x.nan } })
            }
            _ => {
                let r = terms.range(at);
                if largest { Term::Int(r.lo, r.hi) } else { Term::Int(-r.hi, -r.lo) }
            }
        };
        if let Term::Float(x) = term
            && x.is_empty()
        {
            self.closed = true;
        } else if let [(_, best)] = self.candidates[..]
            && !may_be_nan(best)
            && !may_be_nan(term)
        {
            // The usual case, one certain leader: decide now where that is possible.
            if !exceeds(upper(term), lower(best)) {
                return;
            }
            if exceeds(lower(term), upper(best)) {
                self.candidates.clear();
            }
        }
        self.candidates.push((index, term));
    }

    /// The admissible indices; none if there was no term.
    fn finish(&self) -> Option<Range> {
        // A certain NaN wins over all numbers; an earlier term only if it may be NaN itself.
        let numbers_lose = self.closed;
        // `after[i]`: the largest of the least values of the candidates from i on.
        let larger = |a: Option<Term>, b: Option<Term>| match (a, b) {
            (Some(a), Some(b)) => Some(if exceeds(b, a) { b } else { a }),
            (a, b) => a.or(b),
        };
        let mut after = vec![None; self.candidates.len() + 1];
        for (i, &(_, term)) in self.candidates.iter().enumerate().rev() {
            after[i] = larger(after[i + 1], lowest_possible(term));
        }
        let mut before = None;
        let mut admissible = Vec::new();
        for (i, &(index, term)) in self.candidates.iter().enumerate() {
            // Earlier terms must be smaller, later ones may be equal.
            let beats_earlier = before.is_none_or(|b| exceeds(upper(term), b));
            let beats_later = after[i + 1].is_none_or(|a| !exceeds(a, upper(term)));
            if !numbers_lose && beats_earlier && beats_later || may_be_nan(term) {
                admissible.push(i128::from(index));
            }
            before = larger(before, lowest_possible(term));
        }
        let (first, last) = (*admissible.first()?, *admissible.last()?);
        let contiguous = (last - first) as usize + 1 == admissible.len();
        let only = (!contiguous).then(|| Arc::from(admissible));
        Some(Range { lo: wrap(ElementType::U32, first), hi: wrap(ElementType::U32, last), only })
    }
}

fn may_be_nan(term: Term) -> bool {
    matches!(term, Term::Float(x) if x.nan)
}

fn lower(term: Term) -> Term {
    match term {
        Term::Float(x) => Term::Float(Interval::between(x.lo, x.lo)),
        Term::Int(lo, _) => Term::Int(lo, lo),
    }
}

fn upper(term: Term) -> Term {
    match term {
        Term::Float(x) => Term::Float(Interval::between(x.hi, x.hi)),
        Term::Int(_, hi) => Term::Int(hi, hi),
    }
}

/// The least number that a term can be; none if it is NaN only.
fn lowest_possible(term: Term) -> Option<Term> {
    match term {
        Term::Float(x) if x.is_empty() => None,
        _ => Some(lower(term)),
    }
}

/// a > b, of single values.
fn exceeds(a: Term, b: Term) -> bool {
    match (a, b) {
        (Term::Float(a), Term::Float(b)) => a.lo > b.lo,
        (Term::Int(a, _), Term::Int(b, _)) => a > b,
        _ => false,
    }
}
