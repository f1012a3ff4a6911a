//! What the algorithm says that an element is: its equations evaluated as they are written, in the algebra. It knows
//! nothing of schedules, and shares no code with lowering.

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{
    Algorithm, AxisId, Binary, Compare, FoldState, Index, IndexId, Reduction, Run, Source, Unary, Value, ValueId,
};

use super::{Algebra, math};
use crate::kernel_ir::{UnaryOp, arithmetic_type};
use crate::proof::Stop;
use crate::proof::launch::Launch;
use crate::proof::row::Known;

type Outcome<T> = Result<T, Stop>;

/// The element of a component of an equation at some indices.
type Element = (u16, u16, Vec<i64>);

/// The algorithm at the sizes of a launch.
pub(super) struct Spec<'a> {
    algorithm: &'a Algorithm,
    algebra: &'a Algebra,
    launch: &'a Launch,
    /// Elements of intermediates that were computed.
    known: BTreeMap<Element, Known>,
    /// Of scatters, by equation: the elements that have terms, with what those come to; none if it is not known which.
    scattered: BTreeMap<u16, Option<BTreeMap<Vec<i64>, Known>>>,
    /// Whether folds are known only where merging changes nothing.
    merges: bool,
    /// Values that may be computed still.
    budget: u64,
}

/// What axes and variables are, and what was computed with them.
#[derive(Clone, Debug, Default)]
struct Scope {
    axes: BTreeMap<AxisId, i64>,
    variables: BTreeMap<u32, Known>,
    known: BTreeMap<ValueId, Vec<Known>>,
}

impl Scope {
    /// The same axes and variables, with nothing computed.
    fn inside(&self) -> Self {
        Self { known: BTreeMap::new(), axes: self.axes.clone(), variables: self.variables.clone() }
    }
}

impl<'a> Spec<'a> {
    pub fn new(algorithm: &'a Algorithm, algebra: &'a Algebra, launch: &'a Launch, budget: u64) -> Self {
        Self { algorithm, algebra, launch, known: BTreeMap::new(), scattered: BTreeMap::new(), merges: false, budget }
    }

    /// The same, where the terms of every fold are dealt to several states as well, which are merged: what depends on a
    /// fold is known if the algebra knows that this changes nothing.
    pub fn with_merges(self) -> Self {
        Self { known: BTreeMap::new(), scattered: BTreeMap::new(), merges: true, ..self }
    }

    /// The element that a tensor has to have at the end.
    pub fn output(&mut self, (equation, component): (u16, u16), at: &[i64]) -> Outcome<Known> {
        self.element(equation, component, at)
    }

    fn spend(&mut self) -> Outcome<()> {
        self.budget = self.budget.checked_sub(1).ok_or(Stop::Exhausted)?;
        Ok(())
    }

    fn element(&mut self, equation: u16, component: u16, at: &[i64]) -> Outcome<Known> {
        let key = (equation, component, at.to_vec());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let definition = &self.algorithm.equations[usize::from(equation)];
        let axes = &self.algorithm.axis_lists[definition.axes.range()];
        let component = &self.algorithm.components[definition.components.range()][usize::from(component)];
        let value = component.value;
        if let (Value::Scatter { .. }, Some(parameter)) = (self.algorithm.values[value as usize], component.parameter) {
            let found = self.scattered_to((equation, parameter), value, at)?;
            self.known.insert(key, found);
            return Ok(found);
        }
        let mut scope = Scope { axes: axes.iter().copied().zip(at.iter().copied()).collect(), ..Scope::default() };
        let found = self.value(value, &mut scope)?;
        self.known.insert(key, found);
        Ok(found)
    }

    /// An element of a tensor after all terms of a scatter that belong to it.
    fn scattered_to(&mut self, (equation, parameter): (u16, u16), value: ValueId, at: &[i64]) -> Outcome<Known> {
        if !self.scattered.contains_key(&equation) {
            let found = self.scattered(equation, parameter, value)?;
            self.scattered.insert(equation, found);
        }
        let Some(Some(tensor)) = self.launch.tensors.get(usize::from(parameter)) else { return Ok(None) };
        let offset = at.iter().zip(&tensor.strides).map(|(at, stride)| at * stride).sum();
        let before = self.algebra.element(parameter, offset, self.algorithm.types[value as usize]);
        let all = self.scattered.get(&equation).and_then(Option::as_ref);
        Ok(all.and_then(|all| all.get(at).copied().unwrap_or(Some(before))))
    }

    /// The elements that terms of a scatter belong to, with what they are at the end.
    fn scattered(
        &mut self,
        equation: u16,
        parameter: u16,
        value: ValueId,
    ) -> Outcome<Option<BTreeMap<Vec<i64>, Known>>> {
        let (algorithm, algebra) = (self.algorithm, self.algebra);
        let Value::Scatter { op, indices, term } = algorithm.values[value as usize] else { return Ok(None) };
        let Some(Some(tensor)) = self.launch.tensors.get(usize::from(parameter)) else { return Ok(None) };
        let ty = algorithm.types[value as usize];
        let axes = &algorithm.axis_lists[algorithm.equations[usize::from(equation)].axes.range()];
        let mut all: BTreeMap<Vec<i64>, Known> = BTreeMap::new();
        let complete = self.points(axes, &Scope::default(), &mut |this, inner| {
            let mut at = Vec::with_capacity(indices.len as usize);
            for index in &algorithm.index_lists[indices.range()] {
                let Some(index) = this.index(*index, inner)? else { return Ok(false) };
                at.push(index);
            }
            if !at.iter().zip(&tensor.shape).all(|(at, size)| (0..*size).contains(at)) {
                return Ok(true);
            }
            let term = this.value(term, inner)?;
            let Some(op) = op else {
                // Of two terms, where one was promised, either may be there at the end.
                all.entry(at).and_modify(|known| *known = None).or_insert(term);
                return Ok(true);
            };
            let offset = at.iter().zip(&tensor.strides).map(|(at, stride)| at * stride).sum();
            let sum = all.entry(at).or_insert_with(|| Some(algebra.element(parameter, offset, ty)));
            let op = combine(op);
            *sum = sum.zip(term).zip(op).and_then(|((sum, term), op)| binary(algebra, op, ty, sum, term));
            Ok(true)
        })?;
        Ok(complete.then_some(all))
    }

    /// An index; none if it is not known.
    fn index(&mut self, id: IndexId, scope: &mut Scope) -> Outcome<Known> {
        let node = self.algorithm.indices[id as usize];
        match node {
            Index::Literal(c) => return Ok(Some(c)),
            Index::Dim(d) => return Ok(self.launch.dims.get(usize::from(d)).copied()),
            Index::Axis(a) => return Ok(scope.axes.get(&a).copied()),
            Index::Value(v) => {
                let known = self.value(v, scope)?;
                // What does not fit 63 bits lies outside everything.
                let is_large = self.algorithm.types[v as usize] == ElementType::U64;
                return Ok(known.map(|v| if is_large && v < 0 { i64::MAX } else { v }));
            }
            _ => {}
        }
        let Some([x, y]) = node.sides() else { return Ok(None) };
        let (Some(a), Some(b)) = (self.index(x, scope)?, self.index(y, scope)?) else { return Ok(None) };
        Ok(node.value(a, b))
    }

    fn value(&mut self, id: ValueId, scope: &mut Scope) -> Outcome<Known> {
        Ok(self.values(id, scope)?.first().copied().flatten())
    }

    /// A value: of a fold, each of its states.
    fn values(&mut self, id: ValueId, scope: &mut Scope) -> Outcome<Vec<Known>> {
        if let Some(known) = scope.known.get(&id) {
            return Ok(known.clone());
        }
        self.spend()?;
        let found = match self.algorithm.values[id as usize] {
            Value::Fold { .. } => self.fold(id, scope)?,
            _ => vec![self.one(id, scope)?],
        };
        scope.known.insert(id, found.clone());
        Ok(found)
    }

    fn one(&mut self, id: ValueId, scope: &mut Scope) -> Outcome<Known> {
        let ty = self.algorithm.types[id as usize];
        let type_of = |v: ValueId| self.algorithm.types[v as usize];
        let algebra = self.algebra;
        Ok(match self.algorithm.values[id as usize] {
            Value::Literal(bits) if ty.is_float() => algebra.of_bits(ty, bits),
            Value::Literal(bits) => algebra.cast(ElementType::I64, ty, bits as i64),
            Value::Scalar(p) => Some(algebra.scalar(p, ty)),
            Value::Variable(v) => scope.variables.get(&v).copied().flatten(),
            Value::FromIndex(i) => self.index(i, scope)?.and_then(|i| algebra.cast(ElementType::I64, ty, i)),
            Value::CompareIndex(op, x, y) => {
                let (x, y) = (self.index(x, scope)?, self.index(y, scope)?);
                x.zip(y).map(|(x, y)| algebra.compare(op, ElementType::I64, x, y).into())
            }
            Value::Unary(op, x) => self.value(x, scope)?.and_then(|x| unary(algebra, op, ty, x)),
            Value::Binary(op, x, y) => {
                let first = self.value(x, scope)?;
                match (op, ty, first) {
                    (Binary::And, ElementType::Bool, Some(0)) | (Binary::Or, ElementType::Bool, Some(1)) => first,
                    _ => first.zip(self.value(y, scope)?).and_then(|(x, y)| binary(algebra, op, ty, x, y)),
                }
            }
            Value::Compare(op, x, y) => {
                let (from, wide) = (type_of(x), arithmetic_type(type_of(x)));
                let widened = |v: Known| v.and_then(|v| algebra.cast(from, wide, v));
                let (x, y) = (widened(self.value(x, scope)?), widened(self.value(y, scope)?));
                x.zip(y).map(|(x, y)| algebra.compare(op, wide, x, y).into())
            }
            Value::Fma(x, y, z) => {
                let wide = arithmetic_type(ty);
                let mut operands = [None; 3];
                for (known, v) in operands.iter_mut().zip([x, y, z]) {
                    *known = self.value(v, scope)?.and_then(|v| algebra.cast(ty, wide, v));
                }
                let [Some(x), Some(y), Some(z)] = operands else { return Ok(None) };
                algebra.fma(wide, x, y, z).and_then(|r| algebra.cast(wide, ty, r))
            }
            Value::Select(c, x, y) => match self.value(c, scope)? {
                Some(0) => self.value(y, scope)?,
                Some(_) => self.value(x, scope)?,
                None => None,
            },
            Value::Cast(x) => {
                let from = type_of(x);
                self.value(x, scope)?.and_then(|x| algebra.cast(from, ty, x))
            }
            Value::Read { source, indices, or } => self.read(source, indices, or, ty, scope)?,
            Value::Reduce { op, axes, body, .. } => self.reduce(op, axes, body, ty, scope)?,
            Value::Component { fold, component } => {
                self.values(fold, scope)?.get(usize::from(component)).copied().flatten()
            }
            // Handled by the callers.
            Value::Fold { .. } | Value::Scatter { .. } => None,
        })
    }

    fn read(
        &mut self,
        source: Source,
        indices: Run,
        or: Option<ValueId>,
        ty: ElementType,
        scope: &mut Scope,
    ) -> Outcome<Known> {
        let mut at = Vec::with_capacity(indices.len as usize);
        for index in &self.algorithm.index_lists[indices.range()] {
            let Some(index) = self.index(*index, scope)? else { return Ok(None) };
            at.push(index);
        }
        let mut inside = true;
        match source {
            Source::Parameter(p) => {
                let Some(tensor) = &self.launch.tensors[usize::from(p)] else {
                    return Ok(Some(self.algebra.scalar(p, ty)));
                };
                inside &= at.iter().zip(&tensor.shape).all(|(at, size)| (0..*size).contains(at));
                if inside {
                    let offset = at.iter().zip(&tensor.strides).map(|(at, stride)| at * stride).sum();
                    return Ok(Some(self.algebra.element(p, offset, ty)));
                }
            }
            Source::Equation { equation, component } => {
                let definition = &self.algorithm.equations[usize::from(equation)];
                let mut own = Scope::default();
                for (axis, at) in self.algorithm.axis_lists[definition.axes.range()].iter().zip(&at) {
                    let declared = &self.algorithm.axes[*axis as usize];
                    let (low, high) = (self.index(declared.lower, &mut own)?, self.index(declared.upper, &mut own)?);
                    let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
                    inside &= (low..high).contains(at);
                    own.axes.insert(*axis, *at);
                }
                if inside {
                    return self.element(equation, component, &at);
                }
            }
        }
        match or {
            Some(or) => self.value(or, scope),
            None => Ok(None),
        }
    }

    /// Every point of some axes, in order.
    fn points(
        &mut self,
        axes: &'a [AxisId],
        scope: &Scope,
        visit: &mut dyn FnMut(&mut Self, &mut Scope) -> Outcome<bool>,
    ) -> Outcome<bool> {
        let mut inner = scope.inside();
        let Some((axis, rest)) = axes.split_first() else { return visit(self, &mut inner) };
        let declared = &self.algorithm.axes[*axis as usize];
        let (low, high) = (self.index(declared.lower, &mut inner)?, self.index(declared.upper, &mut inner)?);
        let (Some(low), Some(high)) = (low, high) else { return Ok(false) };
        for at in low..high {
            self.spend()?;
            inner.axes.insert(*axis, at);
            if !self.points(rest, &inner, visit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn reduce(
        &mut self,
        op: Reduction,
        axes: Run,
        body: ValueId,
        ty: ElementType,
        scope: &mut Scope,
    ) -> Outcome<Known> {
        let algorithm = self.algorithm;
        let (list, of, algebra) = (&algorithm.axis_lists[axes.range()], algorithm.types[body as usize], self.algebra);
        let mut result = identity(algebra, op, ty);
        let mut best: Option<(i64, i64)> = None;
        let complete = self.points(list, scope, &mut |this, inner| {
            let Some(term) = this.value(body, inner)? else { return Ok(false) };
            if let Some(combine) = combine(op) {
                result = result.and_then(|sum| binary(algebra, combine, ty, sum, term));
                return Ok(result.is_some());
            }
            // Ties go to the first one, the first NaN wins, and terms come in order.
            let wide = arithmetic_type(of);
            let at = list.first().and_then(|axis| inner.axes.get(axis)).copied().unwrap_or(0);
            let better = match best {
                None => true,
                Some((value, _)) => {
                    let compare = match op {
                        Reduction::ArgMin => Compare::Lt,
                        _ => Compare::Gt,
                    };
                    let (Some(x), Some(y)) = (algebra.cast(of, wide, term), algebra.cast(of, wide, value)) else {
                        return Ok(false);
                    };
                    let is_nan = |v: i64| algebra.compare(Compare::Ne, wide, v, v);
                    !is_nan(y) && (is_nan(x) || algebra.compare(compare, wide, x, y))
                }
            };
            if better {
                best = Some((term, at));
            }
            Ok(true)
        })?;
        if !complete {
            return Ok(None);
        }
        Ok(match combine(op) {
            Some(_) => result,
            None => Some(best.map_or(0, |(_, at)| at)),
        })
    }

    fn fold(&mut self, id: ValueId, scope: &mut Scope) -> Outcome<Vec<Known>> {
        let algorithm = self.algorithm;
        let Value::Fold { axes, states } = algorithm.values[id as usize] else { return Ok(Vec::new()) };
        let states = &algorithm.folds[states.range()];
        let mut init = Vec::with_capacity(states.len());
        for state in states {
            init.push(self.value(state.init, scope)?);
        }
        let is_dealt = self.merges && states.iter().all(|s| s.merge.is_some());
        let (mut whole, mut parts, mut singles) = (init.clone(), [init.clone(), init.clone()], Vec::new());
        let complete = self.points(&algorithm.axis_lists[axes.range()], scope, &mut |this, inner| {
            this.step(states, &mut whole, inner)?;
            if is_dealt {
                let turn = singles.len() % 2;
                this.step(states, &mut parts[turn], inner)?;
                let mut single = init.clone();
                this.step(states, &mut single, inner)?;
                singles.push(single);
            }
            Ok(true)
        })?;
        if !complete {
            return Ok(vec![None; states.len()]);
        }
        if !is_dealt {
            return Ok(whole);
        }
        // In turn to two states; to one state each, beside one without terms, merged from the left and from the right.
        let [left, right] = &parts;
        let in_turn = self.merge(states, left, right, scope)?;
        let (mut from_left, mut from_right) = (init.clone(), init);
        for at in 0..singles.len() {
            from_left = self.merge(states, &from_left, &singles[at], scope)?;
            from_right = self.merge(states, &singles[singles.len() - 1 - at], &from_right, scope)?;
        }
        // What functions make of it afterwards may be the same by chance.
        let is_same = [in_turn, from_left, from_right].iter().all(|merged| *merged == whole);
        Ok(if is_same { whole } else { vec![None; states.len()] })
    }

    /// Steps states by one term.
    fn step(&mut self, states: &[FoldState], now: &mut Vec<Known>, scope: &mut Scope) -> Outcome<()> {
        let mut inner = scope.inside();
        for (state, value) in states.iter().zip(now.iter()) {
            inner.variables.insert(state.variable, *value);
        }
        *now = states.iter().map(|state| self.value(state.step, &mut inner)).collect::<Outcome<_>>()?;
        Ok(())
    }

    /// States of earlier terms, merged with those of later ones.
    fn merge(
        &mut self,
        states: &[FoldState],
        left: &[Known],
        right: &[Known],
        scope: &mut Scope,
    ) -> Outcome<Vec<Known>> {
        let mut inner = scope.inside();
        for (state, (left, right)) in states.iter().zip(left.iter().zip(right)) {
            inner.variables.insert(state.left, *left);
            inner.variables.insert(state.right, *right);
        }
        states.iter().filter_map(|state| state.merge).map(|merge| self.value(merge, &mut inner)).collect()
    }
}

/// Before the first term.
fn identity(algebra: &Algebra, op: Reduction, ty: ElementType) -> Known {
    let integer = |signed: fn(u32) -> i64, unsigned: fn(u32) -> i64| {
        let bits = 8 * ty.bytes();
        Some(if ty.is_signed_integer() { signed(bits) } else { unsigned(bits) })
    };
    match op {
        Reduction::Prod if ty.is_float() => algebra.cast(ElementType::I64, ty, 1),
        Reduction::Prod | Reduction::All => Some(1),
        Reduction::Max if ty.is_float() => algebra.extreme(ty, -1.0),
        Reduction::Min if ty.is_float() => algebra.extreme(ty, 1.0),
        Reduction::Max if ty != ElementType::Bool => integer(|bits| i64::MIN >> (64 - bits), |_| 0),
        Reduction::Min if ty != ElementType::Bool => {
            integer(|bits| i64::MAX >> (64 - bits), |bits| (u64::MAX >> (64 - bits)) as i64)
        }
        Reduction::Min => Some(1),
        _ => Some(0),
    }
}

/// How two terms become one; none of extremes with their places.
fn combine(op: Reduction) -> Option<Binary> {
    Some(match op {
        Reduction::Sum => Binary::Add,
        Reduction::Prod => Binary::Mul,
        Reduction::Max => Binary::Max,
        Reduction::Min => Binary::Min,
        Reduction::All => Binary::And,
        Reduction::Any => Binary::Or,
        Reduction::ArgMax | Reduction::ArgMin => return None,
    })
}

/// An operation on types without arithmetic is that of the wider type, rounded or wrapped once.
fn binary(algebra: &Algebra, op: Binary, ty: ElementType, x: i64, y: i64) -> Known {
    let wide = arithmetic_type(ty);
    let (x, y) = (algebra.cast(ty, wide, x)?, algebra.cast(ty, wide, y)?);
    algebra.cast(wide, ty, algebra.binary(op, wide, x, y)?)
}

fn unary(algebra: &Algebra, op: Unary, ty: ElementType, x: i64) -> Known {
    let wide = arithmetic_type(ty);
    let core = match op {
        Unary::Neg => Some(UnaryOp::Neg),
        Unary::Not => Some(UnaryOp::Not),
        Unary::Abs => Some(UnaryOp::Abs),
        Unary::Floor => Some(UnaryOp::Floor),
        Unary::Ceil => Some(UnaryOp::Ceil),
        Unary::Trunc => Some(UnaryOp::Trunc),
        Unary::Round => Some(UnaryOp::RoundEven),
        Unary::Sqrt => Some(UnaryOp::Sqrt),
        _ => None,
    };
    let x = algebra.cast(ty, wide, x)?;
    let found = match core {
        Some(core) => algebra.unary(core, wide, x)?,
        None => math::apply(algebra, op, wide, x)?,
    };
    algebra.cast(wide, ty, found)
}
