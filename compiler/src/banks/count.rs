//! Bank conflicts: how many cycles the accesses of shared memory take that the schedule decides.
//!
//! **Property.** The cycles counted are those that the emulator counts, access by access, for every warp of a block and
//! every iteration looked at. **Formula.** The definition: the place of each lane's element in the layout, and the
//! banks' rule ([`banks`]). Neither the start of a buffer nor that of a slot matters, which are whole words.
//! **Approximation.** Loops are followed as far as [`POINTS`] goes, those first that move the place. Lanes that a
//! predicate keeps away are left out where sizes do not decide it; nothing is said of places that depend on sizes.
//!
//! This file is longer than 500 lines: one walk over threads and iterations counts banks, and with sizes sectors.

use tilewright_kernel::banks;

use crate::domain::{AxisKind, Binding, WARP};
use crate::extent::{Expr, Var};
use crate::holes::Side;
use crate::layout::Path;
use crate::plan::Analysed;
use crate::plan::cycles::{Cycles, Degree, Request};
use crate::schedule::accesses::Inner;
use crate::schedule::{self, Holder, accesses, digits, holders};

/// Most accesses of a warp that are looked at, for each access of the program.
pub const POINTS: usize = 256;
/// Bytes that one instruction moves for a lane.
const MOST_BYTES: u32 = 16;

/// What an access does, beside where.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// The axes of inner reductions around it.
    pub inner: &'a [Inner],
    /// Whether it is in the terms of the stage's reduction.
    pub in_terms: bool,
    /// Whether it writes.
    pub is_write: bool,
    /// Lanes of the stage's vector that go together.
    pub run: u32,
    /// Bytes of an element.
    pub bytes: u32,
}

/// The byte in the slot, given the values of sums, all variables and the thread; none where the lane has no element.
type Byte<'a> = dyn Fn(&[Option<i128>], &[i128], i128) -> Option<u64> + 'a;

/// Where a lane accesses a buffer.
pub struct Where<'a> {
    /// Variables that it depends on.
    pub variables: Vec<Var>,
    /// At least 0 where a lane has an element.
    pub conditions: Vec<Expr>,
    /// What it is computed from.
    pub sums: Vec<Expr>,
    /// Whether it is computed from the variables as well.
    pub by_values: bool,
    /// So much more of the only sum moves the bytes of all lanes by whole rows of banks, if that is known.
    pub period: Option<i128>,
    /// Which byte that is.
    pub byte: &'a Byte<'a>,
}

/// What a number changes with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changes {
    Thread,
    Loops,
    Both,
}

/// An expression by what its terms depend on: most depend on the thread alone, or on loops alone, and are evaluated
/// once a thread or once an iteration.
struct Sum {
    of_thread: Expr,
    /// Its value for each thread that is looked at.
    by_thread: Vec<Option<i128>>,
    /// The least of those that have a part in the access; none if one has no value.
    least: Option<i128>,
    of_loops: Expr,
    /// Its value in this iteration.
    now: Option<i128>,
    /// The rest, if there is any.
    others: Option<Expr>,
}

impl Sum {
    /// Takes in the value for the next thread, and whether that has a part in the access.
    fn push(&mut self, value: Option<i128>, has_part: bool) {
        self.by_thread.push(value);
        if has_part {
            self.least = self.least.zip(value).map(|(least, value)| least.min(value));
        }
    }

    /// Whether it is at least 0 for all threads in this iteration.
    fn always_holds(&self) -> bool {
        let least = self.least.zip(self.now).and_then(|(least, now)| least.checked_add(now));
        self.others.is_none() && least.is_some_and(|least| least >= 0)
    }

    /// Its value for a thread.
    fn value(&self, thread: usize, values: &[i128]) -> Option<i128> {
        let (Some(own), Some(now)) = (self.by_thread[thread], self.now) else { return None };
        match &self.others {
            None => own.checked_add(now),
            Some(others) => own.checked_add(now)?.checked_add(others.eval(values)?),
        }
    }
}

/// What iterations took, by the remainder that they add to the place: another one with the same takes as much.
#[derive(Default)]
struct Alike {
    seen: Vec<(i128, Cycles)>,
    /// What the present iteration adds, and what was taken before it.
    now: Option<i128>,
    before: Cycles,
}

impl Alike {
    /// Begins an iteration that adds so much to the place, which has a period. Where one like it was seen, adds what
    /// that took.
    fn is_seen(&mut self, place: Option<(i128, i128)>, found: Option<&mut Degree>) -> bool {
        self.now = place.map(|(now, period)| now.rem_euclid(period));
        self.before = Cycles::default();
        let Some(Degree { sum, .. }) = found else { return false };
        self.before = *sum;
        let earlier = self.seen.iter().find(|seen| Some(seen.0) == self.now);
        let Some((_, took)) = earlier else { return false };
        (sum.taken, sum.least) = (sum.taken + took.taken, sum.least + took.least);
        self.now = None;
        true
    }

    /// Ends an iteration; one that was not seen before is from now on.
    fn keep(&mut self, found: Option<&Degree>) {
        if let (Some(now), Some(Degree { sum, .. })) = (self.now, found) {
            let (taken, least) = (sum.taken - self.before.taken, sum.least - self.before.least);
            self.seen.push((now, Cycles { taken, least }));
        }
    }
}

/// Variables with their values.
type Numbers = Vec<(usize, i128)>;

/// What a variable is.
enum Value {
    /// A digit of the thread's number: a position in the list of digits.
    Thread(usize),
    /// A loop with so many iterations, as far as that is known.
    Loop(i128),
    /// The exclusive or of two expressions.
    Xor(Expr, Expr),
}

/// A digit of the thread's number; whether threads beyond it do nothing.
struct Digit {
    of: schedule::Digit,
    idles: bool,
}

/// The threads and loops of a stage that accesses shared memory.
pub struct Walk<'a> {
    analysed: &'a Analysed,
    /// Dimensions of the kernel.
    dims: usize,
    threads: i128,
    values: Vec<Value>,
    /// The exclusive ors among them.
    xors: Vec<usize>,
    digits: Vec<Digit>,
    /// The position of a thread among those that nothing tells apart.
    alike: Path,
    /// The first variable of the stage's own.
    own: usize,
    /// The size of each dimension, where sizes are known.
    sizes: Vec<i128>,
    /// What an access of a warp takes, and the least that it could take, by its lanes' addresses and bytes.
    request: fn(&[Option<u64>], u32) -> (u64, u64),
}

impl<'a> Walk<'a> {
    /// Those of the stage with a position, of a kernel with so many dimensions.
    pub fn new(stages: &'a [Analysed], at: usize, dims: usize) -> Option<Self> {
        Self::with(stages, at, dims, Vec::new(), banks::request)
    }

    /// The same for accesses of other memory, for these sizes.
    pub fn with(
        stages: &'a [Analysed],
        at: usize,
        dims: usize,
        sizes: Vec<i128>,
        request: fn(&[Option<u64>], u32) -> (u64, u64),
    ) -> Option<Self> {
        let mut chain = vec![at];
        while let Some(attach) = &stages[*chain.last()?].stage.attach {
            chain.push(attach.stage);
        }
        let mut walk = Self {
            analysed: &stages[at],
            dims,
            threads: stages[at].stage.distribution.block.into(),
            values: Vec::new(),
            xors: Vec::new(),
            digits: Vec::new(),
            alike: holders(&stages[at].stage).left(Holder::Thread),
            own: dims,
            sizes,
            request,
        };
        for (n, of) in chain.iter().enumerate().rev() {
            let Analysed { stage, symbolic, .. } = &stages[*of];
            walk.own = dims + walk.values.len();
            if stage.facts.dims() != walk.own {
                return None;
            }
            let inner = n.checked_sub(1).and_then(|n| stages[chain[n]].stage.attach.as_ref());
            let first = walk.digits.len();
            for digit in digits(stage) {
                let idles = inner.is_none_or(|attach| attach.around.contains(&digit.leaf));
                walk.digits.push(Digit { of: digit, idles });
            }
            for (leaf, variable) in stage.domain.leaves.iter().zip(&symbolic.variables) {
                let digit = walk.digits[first..].iter().position(|d| d.of.leaf == *leaf);
                walk.values.push(match digit {
                    Some(digit) => Value::Thread(first + digit),
                    None => Value::Loop(stage.facts.upper_bound(&walk.sized(&variable.extent)).unwrap_or(i128::MAX)),
                });
            }
            let xors = symbolic.opaque.iter().map(|(_, a, b)| Value::Xor(walk.sized(a), walk.sized(b)));
            let xors: Vec<Value> = xors.collect();
            walk.xors.extend((walk.values.len()..).take(xors.len()));
            walk.values.extend(xors);
        }
        Some(walk)
    }

    /// An expression with the sizes that are known.
    pub fn sized(&self, e: &Expr) -> Expr {
        if self.sizes.is_empty() {
            return e.clone();
        }
        e.substitute(&|v| self.sizes.get(v as usize).map(|size| Expr::constant(*size)))
    }

    /// Whether a thread, of the block or of the stage's role, has an iteration of the stage: no loop around it or of
    /// its own leaves it idle. What predicates exclude is no matter.
    pub fn has_work(&self, thread: u32) -> bool {
        let shape = Shape { inner: &[], in_terms: false, is_write: false, run: 1, bytes: MOST_BYTES };
        self.numbers(thread.into(), shape).is_some()
    }

    /// The values of all variables for each lane of the first warp, in the first iterations, one lane after the other,
    /// and how many a lane has: room for so many more, too. Lanes without an iteration are left out.
    pub fn first_warp(&self, more: usize) -> (Vec<i128>, usize) {
        let each = self.dims + self.values.len() + more;
        let mut all = Vec::with_capacity(WARP as usize * each);
        for thread in 0..WARP.min(self.threads) {
            let start = all.len();
            all.extend_from_slice(&self.sizes);
            all.resize(start + each, 0);
            let mut has_work = true;
            for (n, value) in self.values.iter().enumerate() {
                let at = start + self.dims + n;
                match value {
                    Value::Thread(digit) => {
                        let Digit { of, idles } = &self.digits[*digit];
                        all[at] = of.path.at(thread);
                        has_work &= !*idles || (0..of.extent).contains(&all[at]);
                    }
                    Value::Loop(_) => {}
                    Value::Xor(a, b) => {
                        let values = &all[start..];
                        let (a, b) = (a.eval(values), b.eval(values));
                        has_work &= a.is_some() && b.is_some();
                        all[at] = a.unwrap_or(0) ^ b.unwrap_or(0);
                    }
                }
            }
            if !has_work {
                all.truncate(start);
            }
        }
        (all, each)
    }

    /// Whether an expression is over threads and loops alone.
    pub fn is_known(&self, e: &Expr) -> bool {
        !e.is_unknown() && e.vars().iter().all(|v| *v as usize >= self.dims)
    }

    /// How long an access takes; none if no lane looked at has an element.
    pub fn degree(&self, shape: Shape<'_>, place: &Where<'_>, points: usize) -> Option<Degree> {
        let conditions = self.conditions(shape);
        let mut loops = self.loops(shape, place, &conditions)?;
        let changes = self.changes(shape);
        let conditions = conditions.iter().chain(&place.conditions);
        let mut conditions: Vec<Sum> = conditions.map(|e| self.sum(e, &changes)).collect();
        let mut sums: Vec<Sum> = place.sums.iter().map(|e| self.sum(e, &changes)).collect();
        let mut found_sums = vec![None; sums.len()];
        let warps = (self.threads + WARP - 1).div_euclid(WARP);
        let complete = shorten(&mut loops, (points as i128 / warps).max(1));
        let together = shape.run * shape.bytes;
        let bytes = together.min(MOST_BYTES);
        let mut found: Option<Degree> = None;
        let mut values = vec![0; self.variables(shape)];
        let mut inner = vec![0; shape.inner.len()];
        let mut counts = vec![0; loops.len()];
        let warps = warps.min(points as i128) as usize;
        let threads: Vec<Option<Numbers>> =
            (0..warps as i128 * WARP).map(|thread| self.numbers(thread, shape)).collect();
        for numbers in &threads {
            let known = numbers.as_ref().and_then(|numbers| {
                numbers.iter().for_each(|(var, number)| values[*var] = *number);
                self.follow(Changes::Thread, &changes, (shape, &inner), &mut values)
            });
            for sum in conditions.iter_mut().chain(&mut sums) {
                sum.push(known.and_then(|()| sum.of_thread.eval(&values)), numbers.is_some());
            }
        }
        let mut alike = Alike::default();
        let by_lane = place.by_values || conditions.iter().chain(&sums).any(|sum| sum.others.is_some());
        loop {
            for ((var, _, step, _), count) in loops.iter().zip(&counts) {
                match shape.inner.iter().position(|axis| axis.var as usize == *var) {
                    Some(axis) => inner[axis] = *count,
                    None => values[*var] = count * step,
                }
            }
            let known = self.follow(Changes::Loops, &changes, (shape, &inner), &mut values);
            for sum in conditions.iter_mut().chain(&mut sums) {
                sum.now = known.and_then(|()| sum.of_loops.eval(&values));
            }
            // Most conditions keep no thread away.
            let conditions: Vec<&Sum> = conditions.iter().filter(|sum| !sum.always_holds()).collect();
            let only =
                if let ([sum], false, true) = (&sums[..], by_lane, conditions.is_empty()) { sum.now } else { None };
            let is_seen = alike.is_seen(only.zip(place.period), found.as_mut());
            for warp in 0..if is_seen { 0 } else { warps } {
                let mut lane = |thread: usize| {
                    let numbers = threads[thread].as_ref()?;
                    if by_lane {
                        numbers.iter().for_each(|(var, number)| values[*var] = *number);
                        self.follow(Changes::Thread, &changes, (shape, &inner), &mut values)?;
                        self.follow(Changes::Both, &changes, (shape, &inner), &mut values)?;
                    }
                    // Loops, not iterators: a debug build calls each of their closures.
                    for condition in &conditions {
                        if !matches!(condition.value(thread, &values), Some(0..)) {
                            return None;
                        }
                    }
                    let (sums, found_sums) = (&sums[..], &mut found_sums[..]);
                    let mut n = 0;
                    while n < sums.len() {
                        found_sums[n] = sums[n].value(thread, &values);
                        n += 1;
                    }
                    (place.byte)(found_sums, &values, thread as i128)
                };
                let mut addresses = [None; WARP as usize];
                for (n, at) in addresses.iter_mut().enumerate() {
                    *at = lane(warp * WARP as usize + n);
                }
                for piece in (0..together).step_by(bytes as usize) {
                    if piece > 0 {
                        addresses.iter_mut().flatten().for_each(|at| *at += u64::from(bytes));
                    }
                    let (taken, least) = (self.request)(&addresses, bytes);
                    if least == 0 {
                        continue;
                    }
                    let now = Cycles { taken, least };
                    let degree = found.get_or_insert_with(|| Degree {
                        first: now,
                        request: Request { bytes, lanes: addresses.to_vec() },
                        worst: Cycles::default(),
                        sum: Cycles::default(),
                        complete,
                        lanes: Vec::new(),
                    });
                    degree.sum.taken += taken;
                    degree.sum.least += least;
                    if taken * degree.worst.least > degree.worst.taken * least || degree.worst.least == 0 {
                        degree.worst = now;
                        degree.lanes = banks::waiting(&addresses, bytes);
                    }
                }
            }
            alike.keep(found.as_ref());
            // The next iteration, the last loop fastest.
            let Some(next) = (0..loops.len()).rev().find(|n| counts[*n] + 1 < loops[*n].1) else { return found };
            counts[next] += 1;
            counts[next + 1..].fill(0);
        }
    }

    /// What must be at least 0 where a lane accesses something, as far as sizes do not decide it.
    fn conditions(&self, shape: Shape<'_>) -> Vec<Expr> {
        let Analysed { stage, symbolic, holes, waived, .. } = self.analysed;
        let mut conditions = Vec::new();
        for (n, predicate) in holes.kept.iter().enumerate() {
            let axis = &stage.domain.axes[predicate.axis];
            let of_terms = axis.kind == AxisKind::Reduction;
            if (of_terms && !shape.in_terms) || (shape.in_terms && waived.iter().any(|w| w.predicate == n)) {
                continue;
            }
            let value = &symbolic.values[predicate.axis];
            conditions.push(match predicate.side {
                Side::Lower => value.clone(),
                Side::Upper => axis.extent.sub(value).sub(&Expr::constant(1)),
            });
        }
        if !stage.fetches {
            let applies = |e: &&Expr| shape.in_terms || !schedule::is_of_terms(e, &stage.domain);
            let limits = stage.limits.iter().filter(applies);
            conditions.extend(limits.map(|e| accesses::of_roots(e, stage, symbolic)));
        }
        let conditions = conditions.into_iter().map(|e| self.sized(&stage.facts.normal(&e)));
        conditions.filter(|e| self.is_known(e)).collect()
    }

    /// The variables that are loops, each with its number of values, their distance, and whether it moves the place;
    /// inner reductions among them.
    fn loops(
        &self,
        shape: Shape<'_>,
        place: &Where<'_>,
        conditions: &[Expr],
    ) -> Option<Vec<(usize, i128, i128, bool)>> {
        let Analysed { stage, vector, .. } = self.analysed;
        let mut relevant: Vec<bool> = vec![false; self.variables(shape)];
        let named = conditions.iter().flat_map(Expr::vars).chain(place.variables.iter().copied());
        for v in named {
            *relevant.get_mut(v as usize)? = true;
        }
        // What an exclusive or depends on came before it.
        for (n, value) in self.values.iter().enumerate().rev() {
            if let (Value::Xor(a, b), true) = (value, relevant[self.dims + n]) {
                for v in a.vars().into_iter().chain(b.vars()) {
                    relevant[v as usize] = true;
                }
            }
        }
        let mut loops = Vec::new();
        for (n, value) in self.values.iter().enumerate() {
            let var = self.dims + n;
            let Value::Loop(count) = *value else { continue };
            let leaf = var.checked_sub(self.own).and_then(|own| stage.domain.leaves.get(own));
            let axis = leaf.map(|leaf| &stage.domain.axes[*leaf]);
            let runs = axis
                .is_some_and(|axis| axis.binding.is_sequential() && (axis.kind == AxisKind::Data || shape.in_terms));
            if !(runs || relevant[var]) {
                continue;
            }
            let is_vector = axis.is_some_and(|a| a.binding == Binding::Vector) && vector.is_some();
            let step = if is_vector { i128::from(shape.run) } else { 1 };
            loops.push((var, (count / step).max(1), step, relevant[var]));
        }
        for axis in shape.inner {
            let count = axis.upper.sub(&axis.lower).as_constant().unwrap_or(i128::MAX).max(1);
            loops.push((axis.var as usize, count, 1, relevant[axis.var as usize]));
        }
        Some(loops)
    }

    /// What each variable changes with. Dimensions do not change.
    fn changes(&self, shape: Shape<'_>) -> Vec<Changes> {
        let mut changes = vec![Changes::Loops; self.variables(shape)];
        let all = |changes: &[Changes], vars: &mut dyn Iterator<Item = Var>| {
            let together = |a: Changes, b: Changes| if a == b { a } else { Changes::Both };
            vars.map(|v| changes[v as usize]).reduce(together)
        };
        for (n, value) in self.values.iter().enumerate() {
            changes[self.dims + n] = match value {
                Value::Thread(_) => Changes::Thread,
                Value::Loop(_) => Changes::Loops,
                Value::Xor(a, b) => all(&changes, &mut a.vars().into_iter().chain(b.vars())).unwrap_or(Changes::Loops),
            };
        }
        for axis in shape.inner {
            let lower = all(&changes, &mut axis.lower.vars().into_iter());
            changes[axis.var as usize] =
                if lower.is_none_or(|of| of == Changes::Loops) { Changes::Loops } else { Changes::Both };
        }
        changes
    }

    /// The terms of an expression that is known.
    fn sum(&self, e: &Expr, changes: &[Changes]) -> Sum {
        let is = |v: Var, what: Changes| v as usize >= self.dims && changes.get(v as usize) == Some(&what);
        let [mut of_thread, mut of_loops, mut others] = [0; 3].map(Expr::constant);
        for term in e.terms() {
            let term = Expr::from_atoms(&term.atoms).scale(term.coefficient);
            let part = match [Changes::Thread, Changes::Loops].map(|what| !term.mentions(&|v| !is(v, what))) {
                [true, _] => &mut of_thread,
                [false, true] => &mut of_loops,
                [false, false] => &mut others,
            };
            *part = part.add(&term);
        }
        let others = (!others.terms().is_empty()).then_some(others);
        Sum { of_thread, by_thread: Vec::new(), least: Some(i128::MAX), of_loops, now: None, others }
    }

    /// The variables that tell threads apart, for one thread; none if it accesses nothing.
    fn numbers(&self, thread: i128, shape: Shape<'_>) -> Option<Numbers> {
        let stage = &self.analysed.stage;
        if thread >= self.threads || stage.beside.is_some() && self.alike.at(thread) != 0 {
            return None;
        }
        let mut numbers = Vec::new();
        for (n, value) in self.values.iter().enumerate() {
            let Value::Thread(digit) = value else { continue };
            let Digit { of, idles } = &self.digits[*digit];
            let number = of.path.at(thread);
            let own = self.dims + n >= self.own;
            let repeats = own && shape.is_write && of.reduced && number != 0;
            if (*idles && !(0..of.extent).contains(&number)) || repeats {
                return None;
            }
            numbers.push((self.dims + n, number));
        }
        Some(numbers)
    }

    /// Sets what follows from other variables and changes with these: exclusive ors, and axes of inner reductions,
    /// which are so far from their lower ends. None if one has no value.
    fn follow(
        &self,
        with: Changes,
        changes: &[Changes],
        (shape, inner): (Shape<'_>, &[i128]),
        values: &mut [i128],
    ) -> Option<()> {
        for n in &self.xors {
            if let Value::Xor(a, b) = &self.values[*n]
                && changes[self.dims + n] == with
            {
                values[self.dims + n] = a.eval(values)? ^ b.eval(values)?;
            }
        }
        if inner.is_empty() {
            return Some(());
        }
        for (axis, count) in shape.inner.iter().zip(inner) {
            if changes[axis.var as usize] == with {
                values[axis.var as usize] = axis.lower.eval(values)? + count;
            }
        }
        Some(())
    }

    /// Variables there are, those of inner reductions among them.
    fn variables(&self, shape: Shape<'_>) -> usize {
        let inner = shape.inner.iter().map(|axis| axis.var as usize + 1).max();
        inner.unwrap_or(0).max(self.dims + self.values.len())
    }
}

/// Shortens loops until they have so many iterations together, those first that do not move the place; whether they
/// were so short.
fn shorten(loops: &mut [(usize, i128, i128, bool)], most: i128) -> bool {
    let all = |loops: &[(usize, i128, i128, bool)]| loops.iter().fold(1_i128, |n, l| n.saturating_mul(l.1));
    let complete = all(loops) <= most;
    for moves in [false, true] {
        while all(loops) > most {
            let longest = loops.iter_mut().filter(|l| l.3 == moves && l.1 > 1).max_by_key(|l| l.1);
            let Some(longest) = longest else { break };
            longest.1 = if moves { (longest.1 / 2).max(1).min(most) } else { 1 };
        }
    }
    complete
}
