//! Operations and reductions of sets against every choice of their members.

use tilewright_kernel::algorithm::{Binary, Compare, Order, Reduction, Unary};
use tilewright_kernel::{ElementType, dot};

use super::super::arith::{self, Widen};
use super::super::column::{Column, Range};
use super::super::interval::{Format, Interval};
use super::super::reduce::{Accumulator, Along, Terms};

/// xorshift64*: no test here needs more.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }

    /// A float of a format: ordinary, tiny, huge, integral, zero or special.
    fn float(&mut self, format: Format, special: bool) -> f64 {
        let sign = if self.below(2) == 0 { 1.0 } else { -1.0 };
        let fraction = self.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        let x = match self.below(if special { 10 } else { 7 }) {
            0..=3 => fraction,
            4 => (fraction * 16.0).floor(),
            5 => fraction * format.min_normal() * 4.0,
            6 => fraction * 1e3,
            7 => fraction * format.max(),
            8 => f64::INFINITY,
            _ => f64::NAN,
        };
        format.round(sign * x)
    }
}

const FORMATS: [(Format, ElementType); 4] = [
    (Format::F32, ElementType::F32),
    (Format::F16, ElementType::F16),
    (Format::Bf16, ElementType::Bf16),
    (Format::F64, ElementType::F64),
];

/// Every result of combining the terms in any order and bracketing.
fn all_orders(terms: &[f64], format: Format, product: bool) -> Vec<f64> {
    let identity = if product { 1.0 } else { 0.0 };
    let step = |a: f64, b: f64| {
        if product {
            format.operate(|| a * b, || a as f32 * b as f32)
        } else {
            format.operate(|| a + b, || a as f32 + b as f32)
        }
    };
    let mut results: Vec<Vec<f64>> = vec![Vec::new(); 1 << terms.len()];
    for set in 1..results.len() {
        let mut all =
            if set.count_ones() == 1 { vec![step(identity, terms[set.trailing_zeros() as usize])] } else { Vec::new() };
        let mut part = (set - 1) & set;
        while part > 0 {
            for &a in &results[part] {
                all.extend(results[set ^ part].iter().map(|&b| step(a, b)));
            }
            part = (part - 1) & set;
        }
        all.sort_by(f64::total_cmp);
        all.dedup_by_key(|x| x.to_bits());
        results[set] = all;
    }
    results.pop().unwrap()
}

/// Every sum of the terms by a tree in which none goes through more than so many additions.
fn all_trees(terms: &[f64], format: Format, height: u64) -> Vec<f64> {
    let add = |a: f64, b: f64| format.operate(|| a + b, || a as f32 + b as f32);
    let leaf = |set: usize| if set.count_ones() == 1 { vec![terms[set.trailing_zeros() as usize]] } else { Vec::new() };
    let mut results: Vec<Vec<f64>> = (0..1_usize << terms.len()).map(leaf).collect();
    for _ in 0..height {
        let mut higher = results.clone();
        for (set, all) in higher.iter_mut().enumerate() {
            let mut part = set.wrapping_sub(1) & set;
            while part > 0 && set > 0 {
                for &a in &results[part] {
                    all.extend(results[set ^ part].iter().map(|&b| add(a, b)));
                }
                part = (part - 1) & set;
            }
            all.sort_by(f64::total_cmp);
            all.dedup_by_key(|x| x.to_bits());
        }
        results = higher;
    }
    results.pop().unwrap()
}

/// What goes through few additions loses little, and no more than is admitted.
#[test]
fn every_tree_of_a_height_is_admissible() {
    let mut random = Random(0x5eed_0f7e_a5ed_0001);
    let (mut narrower, mut lost) = (0, 0);
    for round in 0..600 {
        let (format, element) = FORMATS[round % 4];
        let n = 3 + random.below(4) as usize;
        let special = random.below(6) == 0;
        let terms: Vec<f64> = (0..n).map(|_| random.float(format, special)).collect();
        let column = Column::Float(terms.clone());
        let free = accumulate(Reduction::Sum, Order::Free, element, &column).interval(0);
        for height in 2..n as u64 {
            let set = accumulate_through(Some(height), Reduction::Sum, Order::Free, element, &column).interval(0);
            let all = all_trees(&terms, format, height);
            for &result in &all {
                let fits = match set.single() {
                    Some(single) => single == result || single.is_nan() && result.is_nan(),
                    None => set.contains(result),
                };
                assert!(fits, "{terms:?} in {format:?} through {height}: {result:?} is not in {set}");
            }
            let width = |set: Interval| set.hi - set.lo;
            assert!(width(set) <= width(free) || width(set).is_nan(), "{set} {free}");
            narrower += usize::from(width(set) < 0.9 * width(free));
            lost += usize::from(all.len() > 1);
        }
    }
    assert!(narrower > 300 && lost > 300, "{narrower} {lost}");
}

fn accumulate(op: Reduction, order: Order, element: ElementType, terms: &Column) -> Column {
    accumulate_through(None, op, order, element, terms)
}

fn accumulate_through(
    additions: Option<u64>,
    op: Reduction,
    order: Order,
    element: ElementType,
    terms: &Column,
) -> Column {
    let mut accumulator = Accumulator::new(op, order, (None, additions), element, 1).unwrap();
    let all = Terms { column: terms, sizes: None, weights: None, spread: None };
    accumulator.take(all, Along::Terms, terms.len(), 0, None);
    accumulator.finish().unwrap()
}

#[test]
fn every_order_of_a_small_sum_or_product_is_admissible() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut exact, mut tight) = (0, 0);
    for round in 0..1500 {
        let (format, element) = FORMATS[round % 4];
        for product in [false, true] {
            let n = 1 + random.below(6) as usize;
            let special = random.below(3) == 0;
            let terms: Vec<f64> = (0..n).map(|_| random.float(format, special)).collect();
            let op = if product { Reduction::Prod } else { Reduction::Sum };
            let set = accumulate(op, Order::Free, element, &Column::Float(terms.clone())).interval(0);
            let all = all_orders(&terms, format, product);
            for &result in &all {
                let fits = match set.single() {
                    Some(single) => single == result || single.is_nan() && result.is_nan(),
                    None => set.contains(result),
                };
                assert!(fits, "{op:?} of {terms:?} in {format:?}: {result:?} is not in {set}");
            }
            exact += usize::from(set.single().is_some());
            // The set is not everything.
            tight += usize::from(set.hi - set.lo <= 64.0 * format.ulp(terms.iter().map(|x| x.abs()).sum()));
        }
    }
    assert!(exact > 500 && tight > 1500, "{exact} exact, {tight} tight");
}

#[test]
fn sums_of_sets_hold_the_sums_of_their_members() {
    let mut random = Random(77);
    for round in 0..3000 {
        let (format, element) = FORMATS[round % 4];
        let n = 1 + random.below(5) as usize;
        let special = random.below(4) == 0;
        let mut members = Vec::new();
        let sets = (0..n)
            .map(|_| {
                let (a, b) = (random.float(format, special), random.float(format, special));
                members.push(if random.below(2) == 0 { a } else { b });
                Interval::exact(a).hull(Interval::exact(b))
            })
            .collect();
        let terms = Column::FloatSets(sets);
        for (op, product) in [(Reduction::Sum, false), (Reduction::Prod, true)] {
            let set = accumulate(op, Order::Free, element, &terms).interval(0);
            for result in all_orders(&members, format, product) {
                assert!(set.contains(result), "{op:?} of {members:?} from {terms:?}: {result:?} is not in {set}");
            }
        }
        let ordered = accumulate(Reduction::Sum, Order::Ordered, element, &terms).interval(0);
        let sum = members.iter().fold(0.0, |a: f64, &x| format.operate(|| a + x, || a as f32 + x as f32));
        assert!(ordered.contains(sum), "{members:?} {terms:?}");
        for (op, f) in [(Reduction::Max, arith::max as fn(f64, f64) -> f64), (Reduction::Min, arith::min)] {
            let set = accumulate(op, Order::Free, element, &terms).interval(0);
            let one = members.iter().copied().reduce(f).unwrap();
            assert!(set.contains(one), "{op:?} of {members:?} from {terms:?}: {one:?} is not in {set}");
        }
    }
}

#[test]
fn sums_of_integral_floats_are_exact() {
    let terms = Column::Float((0..1000).map(|i| f64::from(i % 17) - 8.0).collect());
    let sum: f64 = (0..1000).map(|i| f64::from(i % 17) - 8.0).sum();
    assert_eq!(accumulate(Reduction::Sum, Order::Free, ElementType::F32, &terms), Column::Float(vec![sum]));
    // In bf16 partial sums beyond 256 may need rounding.
    let halves = Column::Float(vec![1.0; 600]);
    assert!(accumulate(Reduction::Sum, Order::Free, ElementType::Bf16, &halves).interval(0).single().is_none());
}

#[test]
fn operations_on_sets_hold_the_results_of_their_members() {
    let binaries =
        [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Max, Binary::Min, Binary::MaxNum, Binary::MinNum];
    let unaries = [Unary::Neg, Unary::Abs, Unary::Floor, Unary::Sqrt];
    let mut random = Random(5);
    for round in 0..20_000 {
        let (format, element) = FORMATS[round % 4];
        let set = |random: &mut Random| {
            let (mut x, mut y, nan) = (random.float(format, true), random.float(format, true), random.below(8) == 0);
            match random.below(12) {
                0 => (x, y) = (0.0, -0.0),
                1 => {
                    // Everything, and a number in it.
                    let member = random.float(format, false);
                    return (Interval::between(f64::NEG_INFINITY, f64::INFINITY).or_nan(nan), member);
                }
                _ => {}
            }
            let set = Interval::exact(x).hull(Interval::exact(y)).or_nan(nan);
            let member = match random.below(3) {
                0 => x,
                1 => y,
                _ if nan => f64::NAN,
                _ if x.is_nan() || y.is_nan() => x,
                _ => format.round(x / 2.0 + y / 2.0),
            };
            (set, member)
        };
        let ((a, x), (b, y), (c, z)) = (set(&mut random), set(&mut random), set(&mut random));
        if !a.contains(x) || !b.contains(y) || !c.contains(z) {
            continue; // the middle of subnormal ends may round outside
        }
        let sets = |s: Interval| Column::FloatSets(vec![s]);
        let exact = |x: f64| Column::Float(vec![x]);
        for widen in [Widen::No, Widen::Rounded, Widen::Loose] {
            for op in binaries {
                let Ok(many) = arith::binary(op, element, &sets(a), &sets(b), widen) else { panic!("{op:?}") };
                let Ok(one) = arith::binary(op, element, &exact(x), &exact(y), Widen::No) else { panic!("{op:?}") };
                let one = one.interval(0).single().unwrap();
                assert!(
                    many.interval(0).contains(one),
                    "{x:?} {op:?} {y:?} = {one:?}, not in {many:?} ({a} {op:?} {b})"
                );
            }
            for op in unaries {
                let Ok(many) = arith::unary(op, element, &sets(a), widen) else { panic!("{op:?}") };
                let Ok(one) = arith::unary(op, element, &exact(x), Widen::No) else { panic!("{op:?}") };
                let one = one.interval(0).single().unwrap();
                assert!(many.interval(0).contains(one), "{op:?} {x:?} = {one:?}, not in {many:?} ({a})");
            }
            let Ok(many) = arith::fma(element, &sets(a), &sets(b), &sets(c), widen) else { panic!() };
            let Ok(one) = arith::fma(element, &exact(x), &exact(y), &exact(z), Widen::No) else { panic!() };
            let one = one.interval(0).single().unwrap();
            assert!(
                many.interval(0).contains(one),
                "fma({x:?}, {y:?}, {z:?}) = {one:?}, not in {many:?} ({a} {b} {c})"
            );
            let Ok(many) = arith::square(element, &sets(a), widen) else { panic!() };
            let Ok(one) = arith::binary(Binary::Mul, element, &exact(x), &exact(x), Widen::No) else { panic!() };
            assert!(many.interval(0).contains(one.interval(0).single().unwrap()), "{x:?}² not in {many:?} ({a})");
        }
        for op in [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge] {
            let many = arith::compare(op, &sets(a), &sets(b)).range(0);
            let one = arith::compare(op, &exact(x), &exact(y)).range(0).single().unwrap();
            assert!(many.contains(one), "{x:?} {op:?} {y:?} = {one}, not in {many:?} ({a} {b})");
        }
        for to in [ElementType::F16, ElementType::F32, ElementType::I32, ElementType::U8, ElementType::I64] {
            let Ok(many) = arith::cast(element, to, &sets(a), Widen::No) else { panic!() };
            let Ok(one) = arith::cast(element, to, &exact(x), Widen::No) else { panic!() };
            let fits = match one {
                Column::Float(one) => many.interval(0).contains(one[0]),
                one => many.range(0).contains(one.range(0).lo),
            };
            assert!(fits, "{x:?} as {to}");
        }
    }
}

#[test]
fn conversions_agree_with_rust() {
    let one = |from, to, x: Column| arith::cast(from, to, &x, Widen::No).unwrap_or_else(|_| panic!());
    let mut random = Random(9);
    for _ in 0..2000 {
        let x = random.float(Format::F64, true) * 1e4;
        let float = |to| one(ElementType::F64, to, Column::Float(vec![x])).interval(0).single().unwrap();
        let int = |to| one(ElementType::F64, to, Column::Float(vec![x])).range(0).lo;
        let narrow = float(ElementType::F32);
        assert!(narrow.to_bits() == f64::from(x as f32).to_bits() || narrow.is_nan() && x.is_nan());
        assert_eq!(int(ElementType::I8), i128::from(x as i8));
        assert_eq!(int(ElementType::U64), i128::from(x as u64));
        let n = random.next() as i64;
        let from = |to| one(ElementType::I64, to, Column::Int(vec![n.into()]));
        assert_eq!(from(ElementType::F32), Column::Float(vec![f64::from(n as f32)]));
        assert_eq!(from(ElementType::U16), Column::Int(vec![i128::from(n as u16)]));
        assert_eq!(from(ElementType::I32), Column::Int(vec![i128::from(n as i32)]));
    }
    let wrapped = arith::binary(
        Binary::Mul,
        ElementType::I32,
        &Column::Int(vec![1 << 20]),
        &Column::Int(vec![1 << 13]),
        Widen::No,
    );
    assert_eq!(wrapped.ok(), Some(Column::Int(vec![i128::from((1_i32 << 20).wrapping_mul(1 << 13))])));
}

#[test]
fn argmax_admits_every_index_that_may_win() {
    let mut random = Random(31);
    for _ in 0..3000 {
        let n = 1 + random.below(5) as usize;
        let grid = |random: &mut Random| random.below(4) as f64;
        let sets: Vec<Interval> = (0..n)
            .map(|_| {
                let (x, y) = (grid(&mut random), grid(&mut random));
                let nan = random.below(6) == 0;
                if nan && random.below(2) == 0 {
                    Interval::NAN
                } else {
                    Interval::exact(x).hull(Interval::exact(y)).or_nan(nan)
                }
            })
            .collect();
        // Every choice of members on the grid.
        let mut possible = std::collections::BTreeSet::new();
        for choice in 0..5_usize.pow(n as u32) {
            let member = |i: usize| {
                let c = choice / 5_usize.pow(i as u32) % 5;
                let value = if c == 4 { f64::NAN } else { c as f64 };
                sets[i].contains(value).then_some(value)
            };
            let Some(values) = (0..n).map(member).collect::<Option<Vec<f64>>>() else { continue };
            let mut best = 0;
            for i in 1..n {
                if !values[best].is_nan() && (values[i].is_nan() || values[i] > values[best]) {
                    best = i;
                }
            }
            possible.insert(best as i128);
        }
        let result =
            accumulate(Reduction::ArgMax, Order::Free, ElementType::F32, &Column::FloatSets(sets.clone())).range(0);
        let found: Vec<i128> = (0..n as i128).filter(|&i| result.contains(i)).collect();
        assert_eq!(found, possible.into_iter().collect::<Vec<_>>(), "{sets:?} gave {result:?}");
    }
}

#[test]
fn hulls_of_integers_hold_what_lies_between() {
    assert!(Range::between(1, 3).hull(&Range::exact(7)).contains(5));
}

/// A `dot` of these factors, with the magnitudes that its contract has for them.
fn dot_of(operand: ElementType, promote: Option<u32>, factors: &[(f64, f64)]) -> Interval {
    dot_of_two([operand; 2], promote, factors)
}

/// The same of factors of two types.
fn dot_of_two(operands: [ElementType; 2], promote: Option<u32>, factors: &[(f64, f64)]) -> Interval {
    let least = dot::loss(operands, 1, promote).unwrap().least;
    let size = |n: usize, x: f64| if x == 0.0 { 0.0 } else { x.abs().max(least[n]) };
    let terms = Column::Float(factors.iter().map(|(x, y)| f64::from((x * y) as f32)).collect());
    let sizes: Vec<f64> = factors.iter().map(|(x, y)| size(0, *x) * size(1, *y)).collect();
    let order = Order::Dot { operands, promote, online: false };
    let mut accumulator = Accumulator::new(Reduction::Sum, order, (None, None), ElementType::F32, 1).unwrap();
    let terms = Terms { column: &terms, sizes: Some(&sizes), weights: None, spread: None };
    accumulator.take(terms, Along::Terms, sizes.len(), 0, None);
    accumulator.finish().unwrap().interval(0)
}

#[test]
fn dots_have_a_contract_of_their_own() {
    // Small integers are exact: to 24 bits, of 8-bit floats to 13.
    let ones = |count: usize, x: f64| vec![(x, x); count];
    assert_eq!(dot_of(ElementType::F16, None, &ones(5000, 3.0)), Interval::exact(45_000.0));
    assert_eq!(dot_of(ElementType::E4m3, None, &ones(900, 3.0)), Interval::exact(8100.0));
    let set = dot_of(ElementType::E4m3, None, &ones(1000, 3.0));
    assert!(set.contains(9000.0) && set.contains(8999.0) && set.single().is_none(), "{set}");
    // 1 and many products of 2^-24 each: Ampere loses some of them, f32 sums all.
    let mut factors = vec![(1.0, 1.0)];
    factors.extend(ones(64, 2.0_f64.powi(-12)));
    let set = dot_of(ElementType::Bf16, None, &factors);
    assert!(set.contains(1.0) && set.contains(1.0 + 64.0 * 2.0_f64.powi(-24)), "{set}");
    // A subnormal factor has the exponent of the least normal: what stands beside it may be cut off.
    let factors = [(2.0_f64.powi(-24), 1.0), (2.0_f64.powi(-14), 2.0_f64.powi(-24))];
    assert!(dot_of(ElementType::F16, None, &factors).contains(2.0_f64.powi(-24)));
    // Of two types each factor counts by its own: 2^-9 is less than the least normal number of `e4m3` alone.
    let mixed = |x: f64, y: f64| {
        let of = |operands| dot_of_two(operands, None, &[(x, y), (16.0, 1.0), (2.0_f64.powi(-6), 2.0_f64.powi(-6))]);
        let width = |set: Interval| set.hi - set.lo;
        [[ElementType::E4m3, ElementType::E5m2], [ElementType::E5m2, ElementType::E4m3]].map(|o| width(of(o)))
    };
    let [left, right] = mixed(2.0_f64.powi(-9), 256.0);
    assert!(left > right, "{left:e} {right:e}");
    // A new sum after some terms loses less.
    let width = |promote| {
        let set = dot_of(ElementType::E5m2, promote, &ones(4096, 0.3125));
        set.hi - set.lo
    };
    assert!(width(Some(128)) < 0.1 * width(None), "{} {}", width(Some(128)), width(None));
    // Products beyond f32 have none; infinities and NaNs are what they are.
    assert_eq!(dot_of(ElementType::Bf16, None, &[(1e30, 1e30), (-1e30, 1e30)]), Interval::ALL);
    assert_eq!(dot_of(ElementType::F16, None, &[(f64::INFINITY, 1.0), (1.0, 1.0)]), Interval::exact(f64::INFINITY));
    assert!(dot_of(ElementType::F16, None, &[(f64::INFINITY, 0.0)]).is_empty());
}
