//! Builds a fold of what is followed and of what follows it.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Algorithm, Binary, Compare, FoldState, IndexId, Reduction, Run, Value, ValueId};
use tilewright_kernel::online::{Chain, Rule, push, replaced};

use crate::program::{Corrected, Follower};

/// Builds values over those of a chain.
pub(super) struct Build<'a> {
    pub algorithm: &'a mut Algorithm,
    /// The type of what is followed.
    pub ty: ElementType,
    op: Reduction,
    /// The weight of a term, if what is followed is a sum with weights.
    weight: Option<ValueId>,
    /// Before the first term.
    pub identity: ValueId,
    zero: ValueId,
    one: ValueId,
    /// Variables of the states that are followed: before they change, and as they are now.
    pub before: Vec<u32>,
    pub now: Vec<u32>,
    /// What terms take for them. The variables of states follow.
    pub taken: u32,
}

/// A fold of what is followed and of what follows it.
pub(super) struct Fold {
    pub fold: ValueId,
    /// What terms take, over the states that are followed: 0 in the place of an infinite extreme; a mean.
    pub safe: ValueId,
}

impl<'a> Build<'a> {
    pub fn new(algorithm: &'a mut Algorithm, ty: ElementType, op: Reduction, weight: Option<ValueId>) -> Self {
        let of_values = algorithm.values.iter().filter_map(|v| match v {
            Value::Variable(number) => Some(number + 1),
            _ => None,
        });
        let of_folds = algorithm.folds.iter().flat_map(|s| [s.variable, s.left, s.right]).map(|v| v + 1);
        let start = of_folds.chain(of_values).max().unwrap_or(0);
        // A sum is followed with the number of its terms, or the sum of their weights.
        let count = if op == Reduction::Sum { 2 } else { 1 };
        let (before, now) = ((start..start + count).collect(), (start + count..start + 2 * count).collect());
        let taken = start + 2 * count;
        let mut b = Self { algorithm, ty, op, weight, identity: 0, zero: 0, one: 0, before, now, taken };
        let first = match op {
            Reduction::Min => f64::INFINITY,
            Reduction::Sum => 0.0,
            _ => f64::NEG_INFINITY,
        };
        (b.identity, b.zero, b.one) = (b.float(first), b.float(0.0), b.float(1.0));
        b
    }

    pub fn value(&mut self, value: Value) -> ValueId {
        push(self.algorithm, value, self.ty)
    }

    fn float(&mut self, x: f64) -> ValueId {
        let bits = if self.ty == ElementType::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) };
        self.value(Value::Literal(bits))
    }

    /// A count of terms.
    fn whole(&mut self, n: u64) -> ValueId {
        push(self.algorithm, Value::Literal(n), ElementType::U64)
    }

    fn test(&mut self, op: Compare, a: ValueId, b: ValueId) -> ValueId {
        push(self.algorithm, Value::Compare(op, a, b), ElementType::Bool)
    }

    /// Whether a value is the identity: no term, or none but infinite ones.
    fn is_nothing(&mut self, value: ValueId) -> ValueId {
        self.test(Compare::Eq, value, self.identity)
    }

    /// What terms take: of an extreme 0 while it is infinite, where each exponential is 0 with any later one; of a sum
    /// the mean, or 0 while all weights are 0, where each term is.
    pub fn safe(&mut self, of: &[ValueId]) -> ValueId {
        match *of {
            [sum, weights] if self.weight.is_some() => {
                let (nothing, mean) = (self.is_zero(weights), self.binary(Binary::Div, sum, weights));
                self.value(Value::Select(nothing, self.zero, mean))
            }
            [sum, count] => {
                let count = self.value(Value::Cast(count));
                self.binary(Binary::Div, sum, count)
            }
            _ => {
                let value = of[0];
                let nothing = self.is_nothing(value);
                self.value(Value::Select(nothing, self.zero, value))
            }
        }
    }

    fn is_zero(&mut self, value: ValueId) -> ValueId {
        self.test(Compare::Eq, value, self.zero)
    }

    /// What terms divide by: 1 in the place of an extreme that is 0.
    fn quotient(&mut self, extreme: ValueId) -> ValueId {
        let nothing = self.test(Compare::Le, extreme, self.zero);
        self.value(Value::Select(nothing, self.one, extreme))
    }

    fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.value(Value::Binary(op, a, b))
    }

    fn variable(&mut self, number: u32, ty: ElementType) -> ValueId {
        push(self.algorithm, Value::Variable(number), ty)
    }

    /// The type of the number of terms, or of the sum of their weights.
    pub const fn count_type(&self) -> ElementType {
        if self.weight.is_some() { self.ty } else { ElementType::U64 }
    }

    /// The variables of the states that are followed.
    fn variables(&mut self, numbers: [u32; 2]) -> Vec<ValueId> {
        let of_sum = self.op == Reduction::Sum;
        let types = [self.ty, self.count_type()];
        let all: Vec<(u32, ElementType)> = numbers.into_iter().zip(types).take(1 + usize::from(of_sum)).collect();
        all.into_iter().map(|(number, ty)| self.variable(number, ty)).collect()
    }

    /// The parts of a reduction that follows: over the states that are followed, before they change and as they are
    /// now, and what terms take for them.
    pub fn follower(&mut self, chain: &Chain) -> Follower {
        let as_safe = self.variable(self.taken, self.ty);
        let last = |all: &[u32]| [all[0], all[all.len() - 1]];
        let (before, now) = (last(&self.before), last(&self.now));
        let (of_before, of_now) = (self.variables(before), self.variables(now));
        let with = |b: &mut Self, value: ValueId, was: ValueId, is: ValueId| {
            replaced(b.algorithm, value, &[(chain.before, was), (chain.now, is)])
        };
        match chain.rule {
            Rule::Exponential(_) => {
                let is_first = self.is_nothing(of_before[0]);
                let changed = with(self, chain.correction, of_before[0], as_safe);
                let correction = self.value(Value::Select(is_first, self.one, changed));
                let term = with(self, chain.term, of_before[0], as_safe);
                Follower { corrected: Corrected::Times, correction, term, op: Binary::Add }
            }
            Rule::Scaled(_) => {
                // Quotients by nothing are of zeros, and taken as 0.
                let is = self.quotient(of_now[0]);
                let is_first = self.test(Compare::Le, of_before[0], self.zero);
                let changed = with(self, chain.correction, of_before[0], is);
                let correction = self.value(Value::Select(is_first, self.one, changed));
                let term = with(self, chain.term, of_before[0], is);
                Follower { corrected: Corrected::Times, correction, term, op: Binary::Add }
            }
            Rule::Squares { .. } => {
                let was = self.safe(&of_before);
                let moved = with(self, chain.correction, was, as_safe);
                let (is_first, count) = match self.weight {
                    Some(_) => (self.is_zero(of_before[1]), of_before[1]),
                    None => {
                        let none = self.whole(0);
                        (self.test(Compare::Eq, of_before[1], none), self.value(Value::Cast(of_before[1])))
                    }
                };
                let all = self.binary(Binary::Mul, count, moved);
                let correction = self.value(Value::Select(is_first, self.zero, all));
                let term = with(self, chain.term, was, as_safe);
                Follower { corrected: Corrected::Plus, correction, term, op: Binary::Add }
            }
            Rule::Choice { op, identity } => {
                let correction = with(self, chain.correction, of_before[0], of_now[0]);
                let term = with(self, chain.term, of_before[0], of_now[0]);
                Follower { corrected: Corrected::Restarted(identity), correction, term, op: combination(op) }
            }
        }
    }

    /// A result that is corrected where what it follows changes.
    pub fn corrected(&mut self, follower: &Follower, own: ValueId, from: &[ValueId], to: &Followed) -> ValueId {
        let mut with: Vec<(u32, ValueId)> = self.before.iter().copied().zip(from.iter().copied()).collect();
        with.extend(self.now.iter().copied().zip(to.states.iter().copied()));
        with.push((self.taken, to.safe));
        let by = replaced(self.algorithm, follower.correction, &with);
        let ty = self.algorithm.types[own as usize];
        let node = match follower.corrected {
            Corrected::Times => Value::Binary(Binary::Mul, own, by),
            Corrected::Plus => Value::Binary(Binary::Add, own, by),
            Corrected::Restarted(identity) => Value::Select(by, own, identity),
        };
        push(self.algorithm, node, ty)
    }

    /// The state of what is followed, after `axes` took in a term: its initial value, step and merge.
    fn followed(&mut self, term: ValueId, [variable, left, right]: [u32; 3]) -> FoldState {
        let take = match self.op {
            Reduction::Min => Binary::Min,
            Reduction::Sum => Binary::Add,
            _ => Binary::Max,
        };
        let of = [variable, left, right].map(|v| self.variable(v, self.ty));
        let step = self.binary(take, of[0], term);
        let merge = self.binary(take, of[1], of[2]);
        FoldState { init: self.identity, variable, step, left, right, merge: Some(merge) }
    }

    /// The state that counts terms, or adds up their weights.
    fn counted(&mut self, [variable, left, right]: [u32; 3]) -> FoldState {
        let (zero, one) = match self.weight {
            Some(weight) => (self.zero, weight),
            None => (self.whole(0), self.whole(1)),
        };
        let ty = self.count_type();
        let of = [variable, left, right].map(|v| self.variable(v, ty));
        let mut add = |a, b| push(self.algorithm, Value::Binary(Binary::Add, a, b), ty);
        let (step, merge) = (add(of[0], one), add(of[1], of[2]));
        FoldState { init: zero, variable, step, left, right, merge: Some(merge) }
    }

    /// The fold over `axes` that takes in a term of what is followed, and then that of each follower, corrected.
    pub fn fold(&mut self, (axes, term): (Run, ValueId), followers: &[Follower]) -> Fold {
        let first = self.taken + 1;
        let numbers = |n: usize| -> [u32; 3] { std::array::from_fn(|k| first + 3 * n as u32 + k as u32) };
        let of_now: Vec<ValueId> = {
            let last = [self.now[0], self.now[self.now.len() - 1]];
            self.variables(last)
        };
        let as_safe = self.safe(&of_now);
        let mut states = vec![self.followed(term, numbers(0))];
        if self.op == Reduction::Sum {
            states.push(self.counted(numbers(1)));
        }
        let count = states.len();
        let of = |b: &mut Self, pick: &dyn Fn(&FoldState) -> u32| -> Vec<ValueId> {
            let all: Vec<(u32, ValueId)> = states.iter().map(|s| (pick(s), s.step)).collect();
            all.into_iter().map(|(v, like)| b.variable(v, b.algorithm.types[like as usize])).collect()
        };
        let (own, left, right) = (of(self, &|s| s.variable), of(self, &|s| s.left), of(self, &|s| s.right));
        let (steps, merges): (Vec<ValueId>, Vec<ValueId>) =
            states.iter().map(|s| (s.step, s.merge.unwrap_or(s.step))).unzip();
        let (stepped, merged) = (self.safe(&steps), self.safe(&merges));
        let (stepped, merged) = (Followed { states: steps, safe: stepped }, Followed { states: merges, safe: merged });
        for (n, follower) in followers.iter().enumerate() {
            let [variable, at_left, at_right] = numbers(count + n);
            let ty = self.algorithm.types[follower.term as usize];
            let [a, b, c] = [variable, at_left, at_right].map(|v| self.variable(v, ty));
            let kept = self.corrected(follower, a, &own, &stepped);
            let one = self.corrected(follower, b, &left, &merged);
            let other = self.corrected(follower, c, &right, &merged);
            let mut with: Vec<(u32, ValueId)> = self.now.iter().copied().zip(stepped.states.iter().copied()).collect();
            with.push((self.taken, stepped.safe));
            let term = replaced(self.algorithm, follower.term, &with);
            let step = push(self.algorithm, Value::Binary(follower.op, kept, term), ty);
            let merge = Some(push(self.algorithm, Value::Binary(follower.op, one, other), ty));
            let init = match follower.corrected {
                Corrected::Restarted(identity) => identity,
                Corrected::Times | Corrected::Plus => self.zero,
            };
            states.push(FoldState { init, variable, step, left: at_left, right: at_right, merge });
        }
        let all = Run { start: self.algorithm.folds.len() as u32, len: states.len() as u32 };
        self.algorithm.folds.to_mut().extend(states);
        Fold { fold: self.value(Value::Fold { axes, states: all }), safe: as_safe }
    }

    /// What is made of the state of a sum: with an infinite extreme, every exponential of a range that has terms is
    /// that of ∞ − ∞; with an extreme of 0, every quotient is 0/0, and with weights of 0 the mean.
    pub fn result(
        &mut self,
        rule: &Rule,
        (first, sum): (ValueId, ValueId),
        (lower, upper): (IndexId, IndexId),
    ) -> ValueId {
        let nothing = match rule {
            Rule::Exponential(_) => self.is_nothing(first),
            Rule::Scaled(_) => self.test(Compare::Le, first, self.zero),
            Rule::Squares { weights: Some(_) } => self.is_zero(first),
            Rule::Squares { weights: None } | Rule::Choice { .. } => return sum,
        };
        let has_terms = push(self.algorithm, Value::CompareIndex(Compare::Lt, lower, upper), ElementType::Bool);
        let infinite = push(self.algorithm, Value::Binary(Binary::And, nothing, has_terms), ElementType::Bool);
        let nan = self.float(f64::NAN);
        self.value(Value::Select(infinite, nan, sum))
    }
}

/// States that are followed, and what terms take for them.
pub(super) struct Followed {
    pub states: Vec<ValueId>,
    pub safe: ValueId,
}

/// The operation of a reduction on two results.
const fn combination(op: Reduction) -> Binary {
    match op {
        Reduction::Prod => Binary::Mul,
        Reduction::Max => Binary::Max,
        Reduction::Min => Binary::Min,
        Reduction::All => Binary::And,
        Reduction::Any => Binary::Or,
        Reduction::Sum | Reduction::ArgMax | Reduction::ArgMin => Binary::Add,
    }
}
