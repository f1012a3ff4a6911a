//! Evaluation of expressions at blocks of points.
//!
//! An equation is evaluated along its innermost axis, a block of points at a time; each node of an expression is
//! visited once a block. A reduction inside runs over its axes one step at a time with all points side by side, or,
//! where there is one point only, over blocks of its own innermost axis. What does not depend on a reduction's axes is
//! evaluated outside it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tilewright_kernel::algorithm::{Binary, Index, IndexId, Run, Source, Value, ValueId};
use tilewright_kernel::online::Chain;
use tilewright_kernel::{Algorithm, ElementType, KernelInfo};

use super::arith::{self, Undefined, Widen};
use super::column::{Column, joint, pick};
use super::scope::{Free, Place, Scope};
use super::tensor::{Values, scalar};

/// Points of a block.
pub(super) const BLOCK: usize = 256;
/// What is wrong, with values.
pub(super) type Fail = String;
pub(super) type Eval<T> = Result<T, Fail>;

/// Everything that expressions refer to.
pub(super) struct Evaluator<'a> {
    pub(super) kernel: &'a KernelInfo,
    pub(super) algorithm: &'a Algorithm,
    /// Online sums with the extremes that they follow.
    pub(super) chains: BTreeMap<ValueId, Chain>,
    /// Online products that may be NaN, whatever their terms are: see [`super::multiplies_beside`].
    pub(super) loose: BTreeSet<ValueId>,
    pub(super) free: Free,
    pub(super) dims: &'a [i64],
    /// Through how many additions a term of a float sum goes at most, where that is known.
    pub(super) additions: BTreeMap<ValueId, u64>,
    /// Value of each scalar parameter, one entry.
    pub(super) scalars: Vec<Option<Column>>,
    /// Elements of each tensor parameter that may be read.
    pub(super) parameters: Vec<Option<Values>>,
    /// Components of the equations evaluated so far.
    pub(super) equations: Vec<Vec<Values>>,
    /// How the data breaks a promise of the kernel's, if it does.
    pub(super) broken: OnceLock<String>,
    /// What may still be evaluated.
    pub(super) work: Work,
}

/// Elements and terms of reductions that may be evaluated, for callers that would rather have an error than wait.
pub(super) struct Work {
    most: u64,
    left: AtomicU64,
}

impl Work {
    pub(super) fn new(most: u64) -> Self {
        Self { most, left: AtomicU64::new(most) }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Takes so much; an error that names the limit if there is less.
    pub(super) fn take(&self, count: u64) -> Eval<()> {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(count));
        taken.map(|_| ()).map_err(|_| {
            // Nothing goes on that another thread would do in vain.
            self.left.store(0, Ordering::Relaxed);
            format!("at most {} elements and terms are evaluated", self.most)
        })
    }
}

/// An index at each point.
pub(super) enum Places {
    Uniform(i64),
    /// First value and step.
    Affine(i64, i64),
    Each(Vec<i64>),
}

impl Places {
    pub(super) fn at(&self, point: usize) -> i64 {
        match self {
            Self::Uniform(v) => *v,
            Self::Affine(start, step) => start + step * point as i64,
            Self::Each(v) => pick(v, point),
        }
    }
}

impl Evaluator<'_> {
    /// The values of an expression at a scope's points, where `active` says so.
    pub(super) fn value(&self, id: ValueId, scope: &Scope<'_>, active: Option<&[bool]>) -> Eval<Rc<[Column]>> {
        if active.is_some() {
            // Known only at some points: evaluated afresh. What is known everywhere may be used.
            return match scope.known(id) {
                Some(known) => Ok(known),
                None => self.compute(id, scope, active),
            };
        }
        let mut scope = scope;
        while let Some(parent) = scope.parent
            && self.free.value(id) & scope.bound == 0
            && (scope.widen, scope.loose) == (parent.widen, parent.loose)
        {
            scope = parent;
        }
        if let Some(known) = scope.known(id) {
            return Ok(known);
        }
        let value = self.compute(id, scope, None)?;
        scope.learn(id, Rc::clone(&value));
        Ok(value)
    }

    pub(super) fn one(&self, id: ValueId, scope: &Scope<'_>, active: Option<&[bool]>) -> Eval<Single> {
        self.value(id, scope, active).map(Single)
    }

    pub(super) fn element(&self, id: ValueId) -> ElementType {
        self.algorithm.types.get(id as usize).copied().unwrap_or(ElementType::Bool)
    }

    fn compute(&self, id: ValueId, scope: &Scope<'_>, active: Option<&[bool]>) -> Eval<Rc<[Column]>> {
        let element = self.element(id);
        let widen = match self.free.value(id) & scope.widen != 0 {
            false => Widen::No,
            true if scope.loose => Widen::Loose,
            true => Widen::Rounded,
        };
        let node = self.algorithm.values.get(id as usize).ok_or_else(|| format!("there is no expression {id}"))?;
        let defined = |result: Result<Column, Undefined>| {
            result.map_err(|undefined| match undefined {
                Undefined::Unsupported(what) => format!("the host cannot evaluate: {what}"),
                Undefined::DivisionByZero => "an integer division by zero".to_owned(),
            })
        };
        let column = match *node {
            Value::Literal(bits) => scalar(element, bits),
            Value::Scalar(p) => {
                self.scalars.get(usize::from(p)).cloned().flatten().ok_or("no such scalar parameter")?
            }
            Value::FromIndex(i) => {
                let wide = match self.index(i, scope, active)? {
                    Places::Uniform(v) => Column::Int(vec![v.into()]),
                    places => Column::Int((0..scope.points).map(|p| places.at(p).into()).collect()),
                };
                defined(arith::cast(ElementType::I64, element, &wide, Widen::No))?
            }
            Value::CompareIndex(op, a, b) => {
                let (a, b) = (self.index(a, scope, active)?, self.index(b, scope, active)?);
                let uniform = matches!((&a, &b), (Places::Uniform(_), Places::Uniform(_)));
                let points = if uniform { 1 } else { scope.points };
                let side = |p: &Places| Column::Int((0..points).map(|i| p.at(i).into()).collect());
                arith::compare(op, &side(&a), &side(&b))
            }
            Value::Unary(op, a) => defined(arith::unary(op, element, &*self.one(a, scope, active)?, widen))?,
            Value::Binary(Binary::Mul, a, b) if a == b => {
                defined(arith::square(element, &*self.one(a, scope, active)?, widen))?
            }
            Value::Binary(op @ (Binary::And | Binary::Or), a, b) if element == ElementType::Bool => {
                self.connective(op, a, b, scope, active)?
            }
            Value::Binary(op, a, b) => {
                let (a, b) = (self.one(a, scope, active)?, self.one(b, scope, active)?);
                match active {
                    // Where nobody looks a divisor may be anything.
                    Some(active) if matches!(op, Binary::Div | Binary::Rem) && !element.is_float() => {
                        let b = b.choose(&Column::Int(vec![1]), scope.points, |i| Some(active[i]));
                        defined(arith::binary(op, element, &a, &b, widen))?
                    }
                    _ => defined(arith::binary(op, element, &a, &b, widen))?,
                }
            }
            Value::Compare(op, a, b) => {
                arith::compare(op, &*self.one(a, scope, active)?, &*self.one(b, scope, active)?)
            }
            Value::Fma(a, b, c) => {
                let (a, b, c) = (self.one(a, scope, active)?, self.one(b, scope, active)?, self.one(c, scope, active)?);
                defined(arith::fma(element, &a, &b, &c, widen))?
            }
            Value::Select(condition, yes, no) => self.select(condition, yes, no, scope, active)?,
            Value::Cast(a) => {
                let from = self.element(a);
                defined(arith::cast(from, element, &*self.one(a, scope, active)?, widen))?
            }
            Value::Read { source, indices, or } => self.read(source, indices, or, scope, active)?,
            Value::Reduce { op, order, axes, body } => self.reduce(id, (op, order), axes, body, scope, active)?,
            Value::Fold { axes, states } => return self.fold(axes, states, scope, active),
            Value::Component { fold, component } => {
                let all = self.value(fold, scope, active)?;
                all.get(usize::from(component)).cloned().ok_or("a fold has no such component")?
            }
            Value::Scatter { .. } => return Err("a scatter that is no equation of its own".to_owned()),
            Value::Variable(number) => {
                let variable = scope.variables.get(number as usize).cloned().flatten();
                (*variable.ok_or("a fold variable outside its fold")?).clone()
            }
        };
        Ok(Rc::from([column]))
    }

    /// `a && b` or `a || b`: `b` has a value only where `a` does not decide.
    fn connective(
        &self,
        op: Binary,
        a: ValueId,
        b: ValueId,
        scope: &Scope<'_>,
        active: Option<&[bool]>,
    ) -> Eval<Column> {
        let a = self.one(a, scope, active)?;
        let decides = |i: usize| a.range(i).single().is_some_and(|a| (a != 0) == (op == Binary::Or));
        let is_active = |i: usize| active.is_none_or(|a| a[i]);
        let both = |b: &Column| {
            arith::binary(op, ElementType::Bool, &a, b, Widen::No)
                .map_err(|_| format!("the host cannot evaluate: {op:?}"))
        };
        let points = a.len();
        let asked: Vec<bool> = (0..points).filter(|&i| points == 1 || is_active(i)).map(decides).collect();
        if asked.iter().all(|decided| *decided) {
            return Ok((*a).clone());
        }
        if asked.iter().all(|decided| !decided) {
            return both(&*self.one(b, scope, active)?);
        }
        let open: Vec<bool> = (0..scope.points).map(|i| is_active(i) && !decides(i)).collect();
        let result = both(&*self.one(b, scope, Some(&open))?)?;
        Ok(result.choose(&a, scope.points, |i| Some(!decides(i))))
    }

    fn select(
        &self,
        condition: ValueId,
        yes: ValueId,
        no: ValueId,
        scope: &Scope<'_>,
        active: Option<&[bool]>,
    ) -> Eval<Column> {
        let condition = self.one(condition, scope, active)?;
        let answer = |i: usize| condition.range(i).single().map(|c| c != 0);
        let is_active = |i: usize| active.is_none_or(|a| a[i]);
        let points = condition.len();
        let mut asked = (0..points).filter(|&i| points == 1 || is_active(i)).map(answer);
        let first = asked.next().flatten();
        if let Some(first) = first
            && asked.all(|a| a == Some(first))
        {
            return Ok((*self.one(if first { yes } else { no }, scope, active)?).clone());
        }
        if points == 1 {
            let (yes, no) = (self.one(yes, scope, active)?, self.one(no, scope, active)?);
            return Ok(yes.choose(&no, joint(&[yes.len(), no.len()]), |_| None));
        }
        let side = |wanted: bool| -> Vec<bool> {
            (0..scope.points).map(|i| is_active(i) && answer(i).is_none_or(|a| a == wanted)).collect()
        };
        let (mask_yes, mask_no) = (side(true), side(false));
        let (yes, no) = (self.one(yes, scope, Some(&mask_yes))?, self.one(no, scope, Some(&mask_no))?);
        Ok(yes.choose(&no, scope.points, answer))
    }

    /// The values of an index expression.
    pub(super) fn index(&self, id: IndexId, scope: &Scope<'_>, active: Option<&[bool]>) -> Eval<Places> {
        let node =
            self.algorithm.indices.get(id as usize).ok_or_else(|| format!("there is no index expression {id}"))?;
        let combine = |a: IndexId, b: IndexId, f: &dyn Fn(i64, i64) -> Option<i64>| -> Eval<Places> {
            let (a, b) = (self.index(a, scope, active)?, self.index(b, scope, active)?);
            let one =
                |x: i64, y: i64| f(x, y).ok_or_else(|| format!("an index is out of range: {node:?} of {x} and {y}"));
            match (&a, &b) {
                (&Places::Uniform(x), &Places::Uniform(y)) => one(x, y).map(Places::Uniform),
                _ => (0..scope.points).map(|p| one(a.at(p), b.at(p))).collect::<Eval<Vec<_>>>().map(Places::Each),
            }
        };
        // Sums and multiples of affine indices stay affine; the largest index of a block is checked with the smallest.
        let affine = |start: Option<i64>, step: Option<i64>| {
            let last = |start: i64, step: i64| step.checked_mul(scope.points as i64)?.checked_add(start);
            let (start, step) = start.zip(step)?;
            last(start, step).map(|_| Places::Affine(start, step))
        };
        let split = |p: &Places| match *p {
            Places::Uniform(v) => Some((v, 0)),
            Places::Affine(start, step) => Some((start, step)),
            Places::Each(_) => None,
        };
        match *node {
            Index::Literal(v) => Ok(Places::Uniform(v)),
            Index::Dim(d) => {
                let value = self.dims.get(usize::from(d)).copied();
                value.map(Places::Uniform).ok_or_else(|| format!("there is no dimension {d}"))
            }
            Index::Axis(axis) => match scope.axes.get(axis as usize) {
                Some(Place::At(v)) => Ok(Places::Uniform(*v)),
                Some(Place::From(start)) => Ok(Places::Affine(*start, 1)),
                Some(Place::Unbound) | None => Err(format!("axis {axis} is not in scope")),
            },
            Index::Add(a, b) | Index::Sub(a, b) => {
                let minus = matches!(node, Index::Sub(..));
                let (x, y) = (self.index(a, scope, active)?, self.index(b, scope, active)?);
                let apply = |p: i64, q: i64| if minus { p.checked_sub(q) } else { p.checked_add(q) };
                if let (Some((p, s)), Some((q, t))) = (split(&x), split(&y)) {
                    if s == 0 && t == 0 {
                        return apply(p, q)
                            .map(Places::Uniform)
                            .ok_or_else(|| format!("an index is out of range: {p}, {q}"));
                    }
                    if let Some(places) = affine(apply(p, q), apply(s, t)) {
                        return Ok(places);
                    }
                }
                combine(a, b, &apply)
            }
            Index::Mul(a, b) => {
                let (x, y) = (self.index(a, scope, active)?, self.index(b, scope, active)?);
                let scaled = match (split(&x), split(&y)) {
                    (Some((p, s)), Some((q, 0))) | (Some((q, 0)), Some((p, s))) => Some((p, s, q)),
                    _ => None,
                };
                if let Some((p, s, q)) = scaled {
                    if s == 0 {
                        let out = || format!("an index is out of range: {p} * {q}");
                        return p.checked_mul(q).map(Places::Uniform).ok_or_else(out);
                    }
                    if let Some(places) = affine(p.checked_mul(q), s.checked_mul(q)) {
                        return Ok(places);
                    }
                }
                combine(a, b, &i64::checked_mul)
            }
            Index::Div(a, b) | Index::Mod(a, b) | Index::Min(a, b) | Index::Max(a, b) => {
                combine(a, b, &|x, y| node.value(x, y))
            }
            Index::Value(value) => {
                let column = self.one(value, scope, active)?;
                // Beyond 64 bits nothing is inside a tensor: the end of the range stands for all of it.
                let narrow = |v: i128| v.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                match &*column {
                    Column::Int(v) if v.len() == 1 => Ok(Places::Uniform(narrow(v[0]))),
                    Column::Int(v) => Ok(Places::Each(v.iter().map(|&v| narrow(v)).collect())),
                    _ => Err("an index depends on a value that is not exactly determined".to_owned()),
                }
            }
        }
    }

    fn tensor(&self, source: Source) -> Eval<&Values> {
        match source {
            Source::Parameter(p) => self.parameters.get(usize::from(p)).and_then(Option::as_ref),
            Source::Equation { equation, component } => {
                self.equations.get(usize::from(equation)).and_then(|e| e.get(usize::from(component)))
            }
        }
        .ok_or_else(|| format!("{source:?} is read before it is defined"))
    }

    fn read(
        &self,
        source: Source,
        indices: Run,
        or: Option<ValueId>,
        scope: &Scope<'_>,
        active: Option<&[bool]>,
    ) -> Eval<Column> {
        let tensor = self.tensor(source)?;
        let list = self.algorithm.index_lists.get(indices.range()).ok_or("a malformed read")?;
        let places: Vec<Places> = list.iter().map(|&i| self.index(i, scope, active)).collect::<Eval<_>>()?;
        if places.len() != tensor.shape.len() {
            return Err(format!("a read with {} indices of a tensor of rank {}", places.len(), tensor.shape.len()));
        }
        let points = if places.iter().all(|p| matches!(p, Places::Uniform(_))) { 1 } else { scope.points };
        // Usually all points are inside and evenly spaced.
        if let Some((start, step)) = tensor.evenly(&places, points) {
            return Ok(tensor.strided(start, step, points));
        }
        let mut offsets: Vec<Option<usize>> = Vec::with_capacity(points);
        for point in 0..points {
            let asked = active.is_none_or(|a| if points == 1 { a.contains(&true) } else { a[point] });
            let offset = if asked { tensor.offset(places.iter().map(|p| p.at(point))) } else { None };
            if asked && offset.is_none() && or.is_none() {
                let index: Vec<i64> = places.iter().map(|p| p.at(point)).collect();
                let (lower, shape) = (&tensor.lower, &tensor.shape);
                let name = self.source_name(source);
                return Err(format!("{name}{index:?} is outside the tensor of shape {shape:?} (from {lower:?})"));
            }
            if let (Some(offset), Some(missing)) = (offset, &tensor.missing)
                && missing.at[offset]
            {
                let index: Vec<i64> = places.iter().map(|p| p.at(point)).collect();
                return Err(format!("{}{index:?} has no value: {}", self.source_name(source), missing.why));
            }
            offsets.push(offset);
        }
        let inside = tensor.gather(&offsets);
        let Some(or) = or else { return Ok(inside) };
        if offsets.iter().all(Option::is_some) {
            return Ok(inside);
        }
        let is_active = |i: usize| active.is_none_or(|a| a[i]);
        let outside: Vec<bool> = (0..scope.points).map(|i| is_active(i) && pick(&offsets, i).is_none()).collect();
        if !outside.contains(&true) {
            return Ok(inside);
        }
        // An alternative for all points at once can be used by others; one for some points cannot.
        let alternative = self.one(or, scope, if outside.contains(&false) { Some(&outside) } else { active })?;
        Ok(inside.choose(&alternative, joint(&[points, alternative.len()]), |i| Some(pick(&offsets, i).is_some())))
    }

    fn source_name(&self, source: Source) -> String {
        match source {
            Source::Parameter(p) => self.kernel.parameters.get(usize::from(p)).map(|p| p.name.to_string()),
            Source::Equation { equation, component } => {
                let equation = self.algorithm.equations.get(usize::from(equation));
                let at = equation.map(|e| e.components.start as usize + usize::from(component));
                at.and_then(|at| self.algorithm.components.get(at)).map(|c| c.name.to_string())
            }
        }
        .unwrap_or_else(|| "?".to_owned())
    }

    /// `M = 3, N = 5`.
    pub(super) fn sizes(&self) -> String {
        let named = self.kernel.dims.iter().zip(self.dims).map(|(dim, value)| format!("{} = {value}", dim.name));
        let all: Vec<String> = named.collect();
        if all.is_empty() { "no sizes".to_owned() } else { all.join(", ") }
    }

    /// The one value of an index that does not depend on the point.
    pub(super) fn uniform(&self, id: IndexId, scope: &Scope<'_>) -> Eval<i64> {
        match self.index(id, scope, None)? {
            Places::Uniform(v) => Ok(v),
            other if scope.points == 1 => Ok(other.at(0)),
            _ => Err("the range of an axis depends on another axis in a way that is not supported".to_owned()),
        }
    }
}

/// A value that has one component.
pub(super) struct Single(Rc<[Column]>);

impl std::ops::Deref for Single {
    type Target = Column;

    fn deref(&self) -> &Column {
        &self.0[0]
    }
}
