//! From an obligation that was not proved to a finding: refuted with the smallest witness, or undecided.

use tilewright_sorted::SortedMap;

use kernel::algorithm::{Algorithm, AxisId, Index, IndexId, Reduction, Source, Value, ValueId};
use kernel::{ElementType, Size};
use tilewright_kernel as kernel;

use super::interval::{Interval, Scene, range_of};
use super::remedy;
use super::walk::{Failure, Given, holds};
use super::witness::{self, Goal, Limit, Step, Witness, equation_axes};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    EmptyArgmax, IndexDivisor, Internal, OutOfBounds, PlaceOutside, Witness as Told, ZeroDivisor,
};
use crate::extent::{Atom, Budget, Expr, Facts, Search, Verdict};
use crate::program::Program;
use crate::source::Span;

/// Steps of the search for a witness of one obligation.
const SEARCH: u64 = 60_000;

/// Obligations that get them; later ones, of which messages are rarely shown, get fewer.
const SEARCHES: usize = 6;

/// Obligations that are reported at most.
const REPORTED: usize = 64;

/// Reports what is wrong, or undecided, about the obligations that were not proved.
pub(super) fn report(
    program: &Program,
    given: Given<'_>,
    failures: &SortedMap<ValueId, Vec<Failure>>,
    diags: &mut Diagnostics,
) {
    let mut reported = 0;
    let mut reads: Vec<OutOfBounds> = Vec::new();
    for places in failures.values() {
        let steps = if reported < SEARCHES { SEARCH } else { SEARCH / 20 };
        let verdict = decide(program, given, places, steps);
        if verdict.is_proved() {
            continue;
        }
        reported += 1;
        if reported > REPORTED {
            break;
        }
        let Some(first) = places.first() else { continue };
        let found = match &verdict {
            Verdict::Refuted((place, witness)) => Some((&places[*place], witness)),
            _ => None,
        };
        let facts = match first.goal {
            Goal::Search { .. } => remedy::find(program, given.with_empty, places),
            _ => remedy::find(program, given.facts, places),
        };
        let told = found.map(|(place, witness)| tell(program, place, witness));
        match &first.goal {
            Goal::Inside { read, dimensions } => {
                let place = found.map_or(first, |f| f.0);
                let out = outside(program, given, *read, dimensions, place, found.map(|f| f.1));
                let Some(mut out) = out else {
                    let what = format!("the read `{}` has no shape", program.printed().value_text(*read));
                    diags.report(Internal { room: "bounds", what, span: program.value_spans[*read as usize] });
                    continue;
                };
                out.facts = facts;
                out.permuted = permuted(program, given, places, &out.tensor);
                out.witness =
                    found.zip(told).map(|((_, witness), told)| (told, element(&out.tensor, &witness.indices)));
                // One missing fact is one fault, however many reads need it.
                let same = |o: &&mut OutOfBounds| {
                    !o.facts.is_empty() && o.facts == out.facts && o.witness.is_some() == out.witness.is_some()
                };
                match reads.iter_mut().find(same) {
                    Some(known) => known.also.push((out.read, out.span)),
                    None => reads.push(out),
                }
            }
            Goal::Search { value, axis } => {
                let (reduction, range) = searched(program, *value, *axis);
                let span = program.value_spans[*value as usize];
                let is_below = match found {
                    Some((_, witness)) => witness.dimension == 1,
                    None => first.context.proves(given.with_empty, &first.context.search(program, *axis)[0]),
                };
                if is_below {
                    diags.report(PlaceOutside { reduction, span, range, is_below, witness: told, facts });
                } else {
                    diags.report(EmptyArgmax { reduction, span, range, witness: told, facts });
                }
            }
            Goal::NonZero { value, divisor } => {
                let scene = Scene::new(&program.algorithm, Vec::new());
                let is_data = |value: &Value| matches!(value, Value::Read { .. } | Value::Scalar(_));
                diags.report(ZeroDivisor {
                    divisor: program.printed().value_text(*divisor),
                    quotient: program.printed().value_text(*value),
                    span: program.value_spans[*value as usize],
                    witness: told,
                    depends_on_data: scene.depends_on_data(*divisor),
                    has_reduction: has_reduction(&program.algorithm, *value),
                    is_data: is_data(&program.algorithm.values[*divisor as usize]),
                    facts,
                });
            }
        }
    }
    for read in reads {
        diags.report(read);
    }
}

/// Which place fails, and its witness: the smallest of all places.
pub(super) fn decide(program: &Program, given: Given<'_>, places: &[Failure], steps: u64) -> Verdict<(usize, Witness)> {
    let mut best: Option<(usize, Witness)> = None;
    let mut undecided = false;
    for (at, place) in places.iter().enumerate() {
        let facts = if matches!(place.goal, Goal::Search { .. }) { given.with_empty } else { given.facts };
        match search(program, facts, place, steps) {
            Search::Found(witness) => {
                let smaller = best.as_ref().is_none_or(|(_, known)| order(&witness) < order(known));
                if smaller {
                    best = Some((at, witness));
                }
            }
            Search::None => {}
            Search::GaveUp => undecided = true,
        }
    }
    match best {
        Some(best) => Verdict::Refuted(best),
        None if undecided => Verdict::Undecided,
        None => Verdict::Proved,
    }
}

/// Sizes by their sum, then lexicographically, then axes.
fn order(witness: &Witness) -> (i128, &[i64], &[(AxisId, i128)]) {
    (witness.dims.iter().map(|d| i128::from(*d)).sum(), &witness.dims, &witness.axes)
}

fn search(program: &Program, facts: &Facts, place: &Failure, steps: u64) -> Search<Witness> {
    let mut budget = Budget::new(steps);
    if let Goal::NonZero { divisor, .. } = place.goal {
        if Scene::new(&program.algorithm, Vec::new()).depends_on_data(divisor) {
            return Search::GaveUp;
        }
        // A size that wraps to 0 is too large to be reached by counting.
        if let Some(dims) = wrapping_size(program, facts, divisor) {
            let found = witness::search_at(program, &place.context.path, &place.goal, &dims, &mut budget);
            if let Some(found) = found {
                return Search::Found(found);
            }
        }
    }
    witness::search(program, facts, &place.context.path, &place.goal, &mut budget)
}

/// The least admissible sizes of which the divisor's wraps to 0, for a divisor that is one size.
fn wrapping_size(program: &Program, facts: &Facts, divisor: ValueId) -> Option<Vec<i64>> {
    let algorithm = &program.algorithm;
    let Some(Value::FromIndex(index)) = algorithm.values.get(divisor as usize) else { return None };
    let Some(Index::Dim(dim)) = algorithm.indices.get(*index as usize) else { return None };
    let range = range_of(*algorithm.types.get(divisor as usize)?)?;
    let period = i64::try_from(range.high - range.low + 1).ok()?;
    let mut budget = Budget::new(SEARCH);
    let Search::Found(mut dims) = facts.smallest(&[u32::from(*dim)], &mut budget, |d, _| Some(d.to_vec())) else {
        return None;
    };
    *dims.get_mut(usize::from(*dim))? = period;
    // Narrow types wrap within reach of the ordinary search.
    (period > 1 << 20 && facts.admits(&dims)).then_some(dims)
}

/// A witness in the user's names.
fn tell(program: &Program, place: &Failure, witness: &Witness) -> Told {
    let algorithm = &program.algorithm;
    let value = |axis: &AxisId| {
        let all = witness.axes.iter().chain(&witness.assigned);
        all.clone().find(|(a, _)| a == axis).map(|(_, v)| *v)
    };
    let elements = |equation: u16, component: u16| {
        let components = algorithm.equations[usize::from(equation)].components.range();
        let name = algorithm.components[components].get(usize::from(component)).map_or("?", |c| &c.name);
        element(name, &equation_axes(program, equation).iter().map(value).collect::<Vec<_>>())
    };
    let mut told = Told { element: elements(place.root, 0), ..Told::default() };
    let mut inner: Vec<AxisId> = equation_axes(program, place.root).to_vec();
    for step in &place.context.path {
        match step {
            Step::Enter(read) => {
                if let Some(Value::Read { source: Source::Equation { equation, component }, .. }) =
                    algorithm.values.get(*read as usize)
                {
                    told.through.push(elements(*equation, *component));
                    inner.extend(equation_axes(program, *equation));
                }
            }
            Step::Axis(axis) if !inner.contains(axis) => {
                let name = algorithm.axes[*axis as usize].name.to_string();
                told.axes.extend(value(axis).map(|v| (name, v)));
            }
            _ => {}
        }
    }
    for cell in &witness.memory {
        let name = program.parameters.get(usize::from(cell.parameter)).map_or("?", |p| &p.name);
        let indices: Vec<Option<i128>> = cell.indices.iter().copied().map(Some).collect();
        let name = if indices.is_empty() { name.to_owned() } else { element(name, &indices) };
        told.axes.push((name, cell.value));
    }
    let size = |d: &u32| {
        let dim = u16::try_from(*d).ok()?;
        Some((program.dim_name(dim).to_owned(), *witness.dims.get(usize::from(dim))?))
    };
    told.sizes = witness.relevant.iter().filter_map(size).collect();
    let condition = |(value, holds): &(ValueId, bool)| {
        let text = program.printed().value_text(*value);
        if *holds { text } else { format!("!({text})") }
    };
    told.conditions = witness.data.iter().map(condition).collect();
    told
}

fn element(name: &str, indices: &[Option<i128>]) -> String {
    let indices: Vec<String> = indices.iter().map(|i| i.map_or("_".to_owned(), |i| i.to_string())).collect();
    format!("{name}[{}]", indices.join(", "))
}

/// The finding about a read, without witness and facts.
fn outside(
    program: &Program,
    given: Given<'_>,
    read: ValueId,
    dimensions: &[(IndexId, Limit)],
    place: &Failure,
    witness: Option<&Witness>,
) -> Option<OutOfBounds> {
    let algorithm = &program.algorithm;
    let Some(&Value::Read { source, .. }) = algorithm.values.get(read as usize) else { return None };
    let context = &place.context;
    let dimension = match witness {
        Some(witness) => witness.dimension,
        None => dimensions
            .iter()
            .position(|d| {
                let goal = Goal::Inside { read, dimensions: vec![d.clone()] };
                !holds(program, context, given, &goal)
            })
            .unwrap_or(0),
    };
    let (index, limit) = dimensions.get(dimension)?;
    let tensor = program.printed().source(source).to_owned();
    let (declared, is_intermediate) = declared(program, source, dimension)?;
    // The extreme is exact where nothing narrows the axes and the index is linear.
    let plain = context.path.iter().all(|s| !matches!(s, Step::Condition { .. } | Step::Assign { guarded: true, .. }));
    let past = |witness: &Witness| {
        let (lower, upper) = context.limit(program, limit);
        let dims: Vec<i128> = witness.dims.iter().map(|d| i128::from(*d)).collect();
        let value = witness.indices.get(dimension).copied().flatten()?;
        match limit {
            Limit::Size(_) => Some(value >= 0),
            Limit::Domain(_) => Some(value >= lower.eval(&dims)? && value >= upper.eval(&dims)?),
        }
    };
    let reach = witness.filter(|_| plain).and_then(|witness| {
        let e = context.index(program, *index);
        let up = past(witness)?;
        let linear = e.terms().iter().all(|t| t.atoms.iter().all(|a| matches!(a, Atom::Var(_))));
        let extreme = context.extreme(&e, up).filter(|_| linear)?;
        let names = |v: u32| u16::try_from(v).map_or("?".to_owned(), |d| program.dim_name(d).to_owned());
        Some((extreme.show(&names), up))
    });
    // What is read through other equations has names that its own condition does not have.
    let own = context.path.iter().all(|s| !matches!(s, Step::Assign { .. }));
    let past = witness.filter(|_| own && !plain).and_then(past);
    let element_type = algorithm.types.get(read as usize).copied().unwrap_or(ElementType::F32);
    Some(OutOfBounds {
        read: program.printed().value_text(read),
        tensor,
        span: program.value_spans[read as usize],
        declared,
        is_intermediate,
        dimension,
        index: program.printed().index_text(*index),
        extent: extent(program, limit),
        reach,
        past,
        witness: None,
        facts: Vec::new(),
        permuted: None,
        zero: match element_type {
            ElementType::Bool => "false",
            t if t.is_float() => "0.0",
            _ => "0",
        },
        also: Vec::new(),
    })
}

/// Most dimensions of a read whose indices are tried in other orders.
const PERMUTED: usize = 4;

/// The read with its indices in another order, if it is right so at all of these places: axes were swapped.
fn permuted(program: &Program, given: Given<'_>, places: &[Failure], tensor: &str) -> Option<String> {
    let Goal::Inside { dimensions: first, read } = &places.first()?.goal else { return None };
    let rank = first.len();
    if !(2..=PERMUTED).contains(&rank) {
        return None;
    }
    let fits = |order: &[usize]| {
        places.iter().all(|place| {
            let Goal::Inside { dimensions, .. } = &place.goal else { return false };
            let limits = dimensions.iter().map(|(_, limit)| limit.clone());
            let dimensions = order.iter().filter_map(|from| dimensions.get(*from).map(|d| d.0)).zip(limits).collect();
            holds(program, &place.context, given, &Goal::Inside { read: *read, dimensions })
        })
    };
    // All orders, as numbers whose digits are the places of the indices, in base `rank`.
    let orders = (0..rank.pow(rank as u32))
        .map(|number| -> Vec<usize> { (0..rank).rev().map(|digit| number / rank.pow(digit as u32) % rank).collect() });
    let is_order = |order: &Vec<usize>| (0..rank).all(|n| order.contains(&n));
    let order = orders.filter(is_order).find(|order| fits(order))?;
    let indices: Vec<String> = order.iter().map(|from| program.printed().index_text(first[*from].0)).collect();
    Some(format!("{tensor}[{}]", indices.join(", ")))
}

/// Where something that is read gets the extent of a dimension, and whether it is an intermediate.
pub(super) fn declared(program: &Program, source: Source, dimension: usize) -> Option<(Span, bool)> {
    let algorithm = &program.algorithm;
    match source {
        Source::Parameter(p) => Some((program.parameter_spans[usize::from(p)], false)),
        Source::Equation { equation, component } => {
            let run = algorithm.equations[usize::from(equation)].components.range();
            let axis = equation_axes(program, equation).get(dimension)?;
            Some(match algorithm.components[run][usize::from(component)].parameter {
                Some(p) => (program.parameter_spans[usize::from(p)], false),
                None => (program.axis_spans[*axis as usize], true),
            })
        }
    }
}

/// Whether a value is made of a reduction, other than through equations.
fn has_reduction(algorithm: &Algorithm, value: ValueId) -> bool {
    let is_one = |value: ValueId| {
        matches!(algorithm.values.get(value as usize), Some(Value::Reduce { .. } | Value::Fold { .. }))
    };
    is_one(value) || algorithm.operands(value).into_iter().any(|operand| has_reduction(algorithm, operand))
}

/// First index inside and first one outside, as text.
pub(super) fn extent(program: &Program, limit: &Limit) -> (String, String) {
    match limit {
        Limit::Size(size) => ("0".to_owned(), show(program, size)),
        Limit::Domain(axis) => {
            let text = |id| program.printed().index_text(id);
            program.algorithm.axes.get(*axis as usize).map_or_else(Default::default, |a| (text(a.lower), text(a.upper)))
        }
    }
}

/// The name and the range of an `argmax` or `argmin`.
fn searched(program: &Program, value: ValueId, axis: AxisId) -> (&'static str, String) {
    let op = program.algorithm.values.get(value as usize);
    let is_max = matches!(op, Some(Value::Reduce { op: Reduction::ArgMax, .. }));
    let (lower, upper) = extent(program, &Limit::Domain(axis));
    (if is_max { "argmax" } else { "argmin" }, format!("{lower}..{upper}"))
}

/// Reports a search that may go on where an index needs more than 32 bits.
pub(super) fn far(program: &Program, value: ValueId, axis: AxisId, diags: &mut Diagnostics) {
    let (reduction, range) = searched(program, value, axis);
    let span = program.value_spans[value as usize];
    diags.report(PlaceOutside { reduction, span, range, is_below: false, witness: None, facts: Vec::new() });
}

fn show(program: &Program, size: &Size) -> String {
    size.display(&|d| program.dim_name(d)).to_string()
}

/// Checks that the divisor of an index is positive; whether it is.
pub(super) fn index_divisor(program: &Program, facts: &Facts, quotient: IndexId, diags: &mut Diagnostics) -> bool {
    let algorithm = &program.algorithm;
    let Some(&(Index::Div(_, divisor) | Index::Mod(_, divisor))) = algorithm.indices.get(quotient as usize) else {
        return true;
    };
    let context = super::context::Context::new(program);
    let e = context.index(program, divisor).sub(&Expr::constant(1));
    if facts.proves_nonnegative(&e) {
        return true;
    }
    let relevant = e.vars();
    let mut budget = Budget::new(SEARCH);
    let found = facts.smallest(&relevant, &mut budget, |dims, budget| {
        let point = |d: &i64| Interval::point(i128::from(*d));
        let scene = Scene::new(algorithm, dims.iter().map(point).collect());
        match scene.index(divisor).as_point() {
            Some(value) => (value < 1).then(|| (dims.to_vec(), value)),
            None => {
                budget.take(u64::MAX);
                None
            }
        }
    });
    let witness = match found {
        Search::Found((dims, value)) => {
            let size = |d: &u32| {
                let dim = u16::try_from(*d).ok()?;
                Some((program.dim_name(dim).to_owned(), *dims.get(usize::from(dim))?))
            };
            Some((relevant.iter().filter_map(size).collect(), value))
        }
        Search::None => return true,
        Search::GaveUp => None,
    };
    let text = program.printed().index_text(divisor);
    let span = program.index_spans[quotient as usize];
    let facts = remedy::positive(program, &e);
    diags.report(IndexDivisor { divisor: text, span, witness, facts });
    false
}
