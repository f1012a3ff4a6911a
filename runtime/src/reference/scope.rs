//! Scopes: the points at which expressions are being evaluated, and what is already known there.

use std::cell::RefCell;
use std::rc::Rc;

use tilewright_kernel::Algorithm;
use tilewright_kernel::algorithm::{AxisId, FoldState, Index, IndexId, Value, ValueId};

use super::column::Column;

/// A set of axes and fold variables. Variables beyond the last bit share it, which only makes sets larger.
pub(super) type Variables = u128;

/// Where an axis stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Not in scope.
    Unbound,
    /// At one value.
    At(i64),
    /// At consecutive values from this one, one a point.
    From(i64),
}

/// A block of points, inside the block of an enclosing reduction or equation.
pub(super) struct Scope<'s> {
    pub(super) parent: Option<&'s Scope<'s>>,
    /// What is bound here and not in the parent.
    pub(super) bound: Variables,
    /// Number of points.
    pub(super) points: usize,
    /// The axis that runs over the points.
    pub(super) lane: Option<AxisId>,
    pub(super) axes: Vec<Place>,
    pub(super) variables: Vec<Option<Rc<Column>>>,
    /// Operations on these variables are widened.
    pub(super) widen: Variables,
    /// Whether they are where nothing is rounded, too.
    pub(super) loose: bool,
    known: RefCell<Vec<Option<Rc<[Column]>>>>,
}

impl<'s> Scope<'s> {
    /// The outermost scope: nothing is bound, one point.
    pub(super) fn root(algorithm: &Algorithm, variables: usize) -> Self {
        Self {
            parent: None,
            bound: 0,
            points: 1,
            lane: None,
            axes: vec![Place::Unbound; algorithm.axes.len()],
            variables: vec![None; variables],
            widen: 0,
            loose: false,
            known: RefCell::new(vec![None; algorithm.values.len()]),
        }
    }

    /// A scope inside this one, with the same points.
    pub(super) fn inside(parent: &'s Scope<'s>, bound: Variables) -> Self {
        Self {
            parent: Some(parent),
            bound,
            points: parent.points,
            lane: parent.lane,
            axes: parent.axes.clone(),
            variables: parent.variables.clone(),
            widen: parent.widen,
            loose: parent.loose,
            known: RefCell::new(vec![None; parent.known.borrow().len()]),
        }
    }

    /// A scope inside this one at a single point of it.
    pub(super) fn at_point(parent: &'s Scope<'s>, point: usize, bound: Variables, free: &Free) -> Self {
        let mut scope = Self::inside(parent, bound);
        if let Some(lane) = scope.lane.take() {
            scope.bound |= free.axis(lane);
            if let Place::From(start) = scope.axes[lane as usize] {
                scope.axes[lane as usize] = Place::At(start + point as i64);
            }
        }
        for (number, variable) in scope.variables.iter_mut().enumerate() {
            if let Some(column) = variable
                && column.len() > 1
            {
                // What depends on it is no longer what it is in the parent.
                scope.bound |= free.variable(number as u32);
                *column = Rc::new(column.only(point));
            }
        }
        scope.points = 1;
        scope
    }

    /// Moves a scope made by [`at_point`](Self::at_point) to another point of its parent.
    pub(super) fn move_to(&mut self, point: usize) {
        let Some(parent) = self.parent else { return };
        if let Some(lane) = parent.lane
            && let Place::From(start) = parent.axes[lane as usize]
        {
            self.axes[lane as usize] = Place::At(start + point as i64);
        }
        for (variable, column) in self.variables.iter_mut().zip(&parent.variables) {
            if let Some(column) = column
                && column.len() > 1
            {
                *variable = Some(Rc::new(column.only(point)));
            }
        }
        self.forget();
    }

    /// Moves an axis; what was known here no longer is.
    pub(super) fn place(&mut self, axis: AxisId, place: Place) {
        self.axes[axis as usize] = place;
        self.forget();
    }

    /// Lets an axis run over the points.
    pub(super) fn run(&mut self, axis: AxisId, start: i64, points: usize) {
        self.points = points;
        self.lane = Some(axis);
        self.place(axis, Place::From(start));
    }

    /// Sets a fold variable; the caller forgets.
    pub(super) fn assign(&mut self, variable: u32, value: Rc<Column>) {
        if let Some(slot) = self.variables.get_mut(variable as usize) {
            *slot = Some(value);
        }
    }

    pub(super) fn forget(&mut self) {
        self.known.get_mut().fill(None);
    }

    pub(super) fn known(&self, id: ValueId) -> Option<Rc<[Column]>> {
        self.known.borrow().get(id as usize).cloned().flatten()
    }

    pub(super) fn learn(&self, id: ValueId, value: Rc<[Column]>) {
        if let Some(slot) = self.known.borrow_mut().get_mut(id as usize) {
            *slot = Some(value);
        }
    }
}

/// The free variables of every expression of an algorithm.
pub(super) struct Free {
    values: Vec<Variables>,
    indices: Vec<Variables>,
    /// Axes come first in the numbering of variables, then fold variables.
    axes: usize,
    /// Number of fold variables.
    pub(super) variables: usize,
}

impl Free {
    /// Analyses an algorithm.
    pub(super) fn of(algorithm: &Algorithm) -> Self {
        let variables =
            algorithm.folds.iter().map(|f| f.variable.max(f.left).max(f.right) as usize + 1).max().unwrap_or(0);
        let mut free = Self {
            values: vec![0; algorithm.values.len()],
            indices: vec![0; algorithm.indices.len()],
            axes: algorithm.axes.len(),
            variables,
        };
        // Sets only grow, and values and indices refer to each other without cycles: repeat until nothing changes.
        // Lists are in dependency order, so that two rounds do for all but nested gathers.
        loop {
            let before = (free.values.clone(), free.indices.clone());
            for (i, index) in algorithm.indices.iter().enumerate() {
                free.indices[i] = free.of_index(index);
            }
            for (i, value) in algorithm.values.iter().enumerate() {
                free.values[i] = free.of_value(algorithm, value);
            }
            if before == (free.values.clone(), free.indices.clone()) {
                return free;
            }
        }
    }

    pub(super) fn axis(&self, axis: AxisId) -> Variables {
        bit(axis as usize)
    }

    pub(super) fn axis_list(&self, axes: &[AxisId]) -> Variables {
        axes.iter().fold(0, |set, &a| set | self.axis(a))
    }

    /// The fold variable with this number.
    pub(super) fn variable(&self, number: u32) -> Variables {
        bit(self.axes + number as usize)
    }

    pub(super) fn value(&self, id: ValueId) -> Variables {
        self.values.get(id as usize).copied().unwrap_or(0)
    }

    pub(super) fn index(&self, id: IndexId) -> Variables {
        self.indices.get(id as usize).copied().unwrap_or(0)
    }

    fn of_index(&self, index: &Index) -> Variables {
        match *index {
            Index::Literal(_) | Index::Dim(_) => 0,
            Index::Axis(axis) => self.axis(axis),
            Index::Value(value) => self.value(value),
            _ => index.operands().fold(0, |all, operand| all | self.index(operand)),
        }
    }

    fn of_value(&self, algorithm: &Algorithm, value: &Value) -> Variables {
        let bounds = |axes: &[AxisId]| {
            axes.iter()
                .filter_map(|&a| algorithm.axes.get(a as usize))
                .fold(0, |set, axis| set | self.index(axis.lower) | self.index(axis.upper))
        };
        match *value {
            Value::Literal(_) | Value::Scalar(_) => 0,
            Value::FromIndex(i) => self.index(i),
            Value::CompareIndex(_, a, b) => self.index(a) | self.index(b),
            Value::Unary(_, a) | Value::Cast(a) => self.value(a),
            Value::Binary(_, a, b) | Value::Compare(_, a, b) => self.value(a) | self.value(b),
            Value::Fma(a, b, c) | Value::Select(a, b, c) => self.value(a) | self.value(b) | self.value(c),
            Value::Read { indices, or, .. } => {
                let list = algorithm.index_lists.get(indices.range()).unwrap_or_default();
                list.iter().fold(0, |set, &i| set | self.index(i)) | or.map_or(0, |o| self.value(o))
            }
            Value::Reduce { axes, body, .. } => {
                let list = algorithm.axis_lists.get(axes.range()).unwrap_or_default();
                (self.value(body) | bounds(list)) & !self.private(self.axis_list(list))
            }
            Value::Fold { axes, states } => {
                let list = algorithm.axis_lists.get(axes.range()).unwrap_or_default();
                let states: &[FoldState] = algorithm.folds.get(states.range()).unwrap_or_default();
                let mut own = self.axis_list(list);
                let mut set = bounds(list);
                for state in states {
                    own |= self.variable(state.variable) | self.variable(state.left) | self.variable(state.right);
                    set |= self.value(state.init) | self.value(state.step) | state.merge.map_or(0, |m| self.value(m));
                }
                set & !self.private(own)
            }
            Value::Component { fold, .. } => self.value(fold),
            Value::Variable(number) => self.variable(number),
            Value::Scatter { indices, term, .. } => {
                let list = algorithm.index_lists.get(indices.range()).unwrap_or_default();
                list.iter().fold(self.value(term), |set, &i| set | self.index(i))
            }
        }
    }

    /// Of a set, what is surely not shared with other variables.
    fn private(&self, set: Variables) -> Variables {
        if self.axes + self.variables > LAST { set & !(1 << LAST) } else { set }
    }
}

/// Length of the longest chain of expressions that contain each other: how deep evaluation recurses.
pub(super) fn depth(algorithm: &Algorithm) -> usize {
    let mut values = vec![1_usize; algorithm.values.len()];
    let mut indices = vec![1_usize; algorithm.indices.len()];
    let most = values.len() + indices.len();
    let at = |all: &[usize], id: u32| all.get(id as usize).copied().unwrap_or(0);
    // As in `Free::of`: one round, and one more for each gather inside a gather.
    loop {
        let mut changed = false;
        for i in 0..indices.len() {
            let inner = match algorithm.indices[i] {
                Index::Literal(_) | Index::Dim(_) | Index::Axis(_) => 0,
                Index::Value(value) => at(&values, value),
                index => index.operands().map(|operand| at(&indices, operand)).max().unwrap_or(0),
            };
            changed |= std::mem::replace(&mut indices[i], inner + 1) != inner + 1;
        }
        for i in 0..values.len() {
            let range = |axes: &[AxisId]| {
                let axes = axes.iter().filter_map(|&a| algorithm.axes.get(a as usize));
                axes.map(|a| at(&indices, a.lower).max(at(&indices, a.upper))).max().unwrap_or(0)
            };
            let list =
                |run: tilewright_kernel::algorithm::Run| algorithm.axis_lists.get(run.range()).unwrap_or_default();
            let inner = match algorithm.values[i] {
                Value::Literal(_) | Value::Scalar(_) | Value::Variable(_) => 0,
                Value::FromIndex(a) => at(&indices, a),
                Value::CompareIndex(_, a, b) => at(&indices, a).max(at(&indices, b)),
                Value::Unary(_, a) | Value::Cast(a) | Value::Component { fold: a, .. } => at(&values, a),
                Value::Binary(_, a, b) | Value::Compare(_, a, b) => at(&values, a).max(at(&values, b)),
                Value::Fma(a, b, c) | Value::Select(a, b, c) => at(&values, a).max(at(&values, b)).max(at(&values, c)),
                Value::Read { indices: run, or, .. } => {
                    let read = algorithm.index_lists.get(run.range()).unwrap_or_default();
                    let deepest = read.iter().map(|&i| at(&indices, i)).max().unwrap_or(0);
                    deepest.max(or.map_or(0, |o| at(&values, o)))
                }
                Value::Scatter { indices: run, term, .. } => {
                    let places = algorithm.index_lists.get(run.range()).unwrap_or_default();
                    let deepest = places.iter().map(|&i| at(&indices, i)).max().unwrap_or(0);
                    deepest.max(at(&values, term))
                }
                Value::Reduce { axes, body, .. } => at(&values, body).max(range(list(axes))),
                Value::Fold { axes, states } => {
                    let states = algorithm.folds.get(states.range()).unwrap_or_default();
                    let parts = states.iter().flat_map(|s| [Some(s.init), Some(s.step), s.merge]).flatten();
                    parts.map(|v| at(&values, v)).max().unwrap_or(0).max(range(list(axes)))
                }
            };
            changed |= std::mem::replace(&mut values[i], inner + 1) != inner + 1;
        }
        let deepest = values.iter().chain(&indices).copied().max().unwrap_or(0);
        // Deeper than there are nodes: they contain each other, which is malformed.
        if !changed || deepest > most {
            return deepest;
        }
    }
}

const LAST: usize = 127;

fn bit(number: usize) -> Variables {
    1 << number.min(LAST)
}
