//! Whether a refusal is right for given sizes, and the smallest sizes for which it is.

use std::collections::BTreeMap;

use super::domain::Domain;
use super::reads::{Read, Scope, Step, visit};
use super::{BUDGET, domains};
use crate::ast::{Dims, Kernel, Role};

/// What a refusal claims, without sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    /// A vector along this axis has lanes inside and lanes outside.
    CutVector(String),
    /// A vector along this axis starts at a multiple of no vector in this tensor.
    Misaligned(String, Access),
    /// Neighbouring lanes along this axis are no neighbours in this tensor.
    Straddles(String, Access),
    /// An element of this stage is never computed.
    Uncovered(String),
    /// A read of this tensor is outside it.
    OutOfBounds(Access),
}

/// One access of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The tensor.
    pub tensor: String,
    /// The read as written, without spaces; none for the write.
    pub text: Option<String>,
}

impl Access {
    fn is(&self, read: &Read<'_>) -> bool {
        let plain = |text: &str| text.replace([' ', '(', ')'], "");
        let same = |text: &String| plain(&read.value.to_string()).starts_with(&plain(text));
        read.tensor == self.tensor && self.text.as_ref().is_some_and(same)
    }
}

/// The budget does not reach, or an op does not apply to these sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// A concrete failure, in the words of the messages: the part of a counterexample after the sizes, up to what only the
/// compiler names.
pub type Witness = String;

/// The first failure for these sizes.
///
/// # Errors
/// [`TooLarge`] if that cannot be told.
pub fn fails(kernel: &Kernel, case: &Case, dims: &Dims) -> Result<Option<Witness>, TooLarge> {
    // Two lanes with one element may be a read that is no vector at all.
    look(kernel, case, dims, &|text| !is_repeated(text), false)
}

/// Whether a witness speaks of one element twice.
fn is_repeated(text: &Witness) -> bool {
    let pair = text.strip_prefix("one vector holds ").and_then(|rest| rest.split_once(" and "));
    pair.is_some_and(|(a, b)| a == b)
}

/// The first failure for these sizes that `wanted` accepts, be it told of an element of an intermediate.
///
/// # Errors
/// [`TooLarge`] if that cannot be told.
pub fn find(
    kernel: &Kernel,
    case: &Case,
    dims: &Dims,
    wanted: &dyn Fn(&Witness) -> bool,
) -> Result<Option<Witness>, TooLarge> {
    look(kernel, case, dims, wanted, true)
}

/// The same; of intermediates only what outputs read, unless `all`.
fn look(
    kernel: &Kernel,
    case: &Case,
    dims: &Dims,
    wanted: &dyn Fn(&Witness) -> bool,
    all: bool,
) -> Result<Option<Witness>, TooLarge> {
    let domains = domains(kernel, dims).ok_or(TooLarge)?;
    if let Case::OutOfBounds(access) = case {
        return out_of_bounds(kernel, access, dims, wanted, all);
    }
    for domain in &domains {
        let concerned = match case {
            Case::CutVector(axis) | Case::Misaligned(axis, _) | Case::Straddles(axis, _) => {
                domain.vector.is_some_and(|v| domain.axes[v].name == *axis)
            }
            Case::Uncovered(stage) => domain.stage == *stage,
            Case::OutOfBounds(_) => false,
        };
        if !concerned {
            continue;
        }
        if domain.points() > BUDGET as i64 {
            return Err(TooLarge);
        }
        let found = match case {
            Case::CutVector(_) => cut(domain, wanted),
            Case::Misaligned(_, access) => lanes(kernel, domain, access, dims, true, wanted)?,
            Case::Straddles(_, access) => lanes(kernel, domain, access, dims, false, wanted)?,
            Case::Uncovered(_) => uncovered(domain, wanted),
            Case::OutOfBounds(_) => None,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Calls `f` with the points of every vector, lane by lane. If the lanes are elements, a reduction without terms has
/// vectors too: what they hold is written.
fn vectors(domain: &Domain, elements: bool, mut f: impl FnMut(&[Vec<i64>]) -> bool) {
    let Some(at) = domain.vector.and_then(|v| domain.leaves.iter().position(|l| *l == v)) else { return };
    let count = domain.axes[domain.leaves[at]].extent;
    let mut each = |leaves: &[i64]| {
        if leaves[at] != 0 {
            return true;
        }
        let lanes: Vec<Vec<i64>> = (0..count)
            .map(|v| {
                let mut point = leaves.to_vec();
                point[at] = v;
                point
            })
            .collect();
        f(&lanes)
    };
    if elements { domain.visit_elements(&mut each) } else { domain.visit(&mut each) }
}

fn cut(domain: &Domain, wanted: &dyn Fn(&Witness) -> bool) -> Option<Witness> {
    let elements = domain.vector.is_some_and(|v| domain.axes[v].data);
    let mut found = None;
    vectors(domain, elements, |lanes| {
        let is_inside = |l: &Vec<i64>| {
            if elements { domain.element_at(l).is_some() } else { domain.roots_at(l).is_some() }
        };
        let inside = lanes.iter().filter(|l| is_inside(l)).count();
        if inside > 0 && inside < lanes.len() {
            let at: Vec<String> = (domain.leaves.iter().zip(&lanes[0]))
                .filter(|(l, _)| domain.vector != Some(**l))
                .map(|(l, v)| format!("{} = {v}", domain.axes[*l].name))
                .collect();
            let at = if at.is_empty() { String::new() } else { format!("at {} ", at.join(", ")) };
            let text = format!("{at}the vector has {inside} of {} lanes inside", lanes.len());
            found = wanted(&text).then_some(text);
        }
        found.is_none()
    });
    found
}

/// An element that is accessed: its indices and its offset.
type Element = Option<(Vec<i64>, i64)>;

/// The elements that a point accesses, each by the way to its read.
type Elements = BTreeMap<Vec<Step>, Element>;

/// The elements that a point accesses in a tensor; the write by no way. Without terms, only what is accessed outside
/// the reduction. `left` is how many reads may be visited.
fn elements(
    kernel: &Kernel,
    domain: &Domain,
    roots: &[i64],
    access: &Access,
    dims: &Dims,
    (terms, left): (bool, &mut u64),
) -> Elements {
    let Some(equation) = kernel.equation(&domain.stage) else { return Elements::new() };
    let scope: Scope = (domain.roots.iter().zip(roots).zip(&domain.lower))
        .filter(|((r, _), _)| terms || domain.axes[**r].data)
        .map(|((r, v), lower)| (domain.axes[*r].name.clone(), v + lower))
        .collect();
    let Some(parameter) = kernel.parameter(&access.tensor) else { return Elements::new() };
    let pitch = parameter.pitch(dims);
    let element = |indices: &[Option<i64>]| {
        let indices: Vec<i64> = indices.iter().copied().collect::<Option<_>>()?;
        let offset = indices.iter().zip(&pitch).map(|(i, s)| i * s).sum();
        Some((indices, offset))
    };
    let mut list = Elements::new();
    visit(kernel, &equation.value, &scope, dims, &mut |read| {
        *left = left.saturating_sub(1);
        if access.is(read) && !read.guarded && !read.conditional {
            let mut way = read.way.clone();
            way.push(Step::Read(std::ptr::from_ref(read.value) as usize));
            list.insert(way, element(&read.indices));
        }
        *left > 0
    });
    if access.text.is_none() && equation.targets.contains(&access.tensor) {
        let own: Vec<Option<i64>> = equation.axes.iter().map(|(a, _)| scope.get(a).copied()).collect();
        list.insert(Vec::new(), element(&own));
    }
    list
}

fn lanes(
    kernel: &Kernel,
    domain: &Domain,
    access: &Access,
    dims: &Dims,
    alignment: bool,
    wanted: &dyn Fn(&Witness) -> bool,
) -> Result<Option<Witness>, TooLarge> {
    let show = |indices: &[i64]| {
        let list: Vec<String> = indices.iter().map(i64::to_string).collect();
        format!("{}[{}]", access.tensor, list.join(", "))
    };
    let terms = !(domain.is_empty_reduction() && domain.vector.is_some_and(|v| domain.axes[v].data));
    let mut found = None;
    let mut left = BUDGET;
    vectors(domain, !terms, |lanes| {
        let mut at = |k: usize| {
            let roots = if terms { domain.roots_at(&lanes[k]) } else { domain.element_at(&lanes[k]) };
            roots.map(|r| elements(kernel, domain, &r, access, dims, (terms, &mut left)))
        };
        let count = lanes.len() as i64;
        if alignment {
            let next = at(1).unwrap_or_default();
            for (way, element) in at(0).into_iter().flatten() {
                let Some((indices, offset)) = &element else { continue };
                // Lanes that all access one element are no vector, nor are those that do not access neighbours.
                if next.get(&way).is_some_and(|next| next.as_ref().is_some_and(|next| next.1 != offset + 1)) {
                    continue;
                }
                let text = format!(
                    "a vector starts at {}, which is element {offset}, not a multiple of {count}",
                    show(indices)
                );
                if offset.rem_euclid(count) != 0 && found.is_none() && wanted(&text) {
                    found = Some(text);
                }
            }
            return found.is_none() && left > 0;
        }
        for k in 1..lanes.len() {
            let (Some(a), Some(b)) = (at(k - 1), at(k)) else { continue };
            // The same read, in the same terms.
            for (way, x) in &a {
                let (Some(x), Some(Some(y))) = (x, b.get(way)) else { continue };
                let text =
                    format!("one vector holds {} at element {} and {} at element {}", show(&x.0), x.1, show(&y.0), y.1);
                if y.1 != x.1 + 1 && found.is_none() && wanted(&text) {
                    found = Some(text);
                }
            }
        }
        found.is_none() && left > 0
    });
    // What was read in part at last may not be what is found.
    if left == 0 { Err(TooLarge) } else { Ok(found) }
}

fn uncovered(domain: &Domain, wanted: &dyn Fn(&Witness) -> bool) -> Option<Witness> {
    // A reduction without terms has elements: each is looked at once.
    let elements = domain.is_empty_reduction();
    let roots: Vec<usize> = domain.roots.iter().copied().filter(|r| !elements || domain.axes[*r].data).collect();
    let terms: i64 = roots.iter().map(|r| domain.axes[*r].extent).product();
    let mut seen = vec![false; usize::try_from(terms).ok()?.min(BUDGET as usize)];
    let mut see = |leaves: &[i64]| {
        let point = if elements { domain.element_at(leaves) } else { domain.roots_at(leaves) };
        if let Some(point) = point
            && let Some(slot) = seen.get_mut(domain.linear(&point, elements))
        {
            *slot = true;
        }
        true
    };
    if elements {
        domain.visit_elements(&mut see);
    } else {
        domain.visit(&mut see);
    }
    let text = |mut at: usize| {
        let (mut indices, mut terms): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for root in roots.iter().rev() {
            let axis = &domain.axes[*root];
            let value = at as i64 % axis.extent;
            at /= axis.extent.max(1) as usize;
            if axis.data {
                indices.insert(0, value.to_string());
            } else {
                terms.insert(0, format!("{} = {value}", axis.name));
            }
        }
        let with = if terms.is_empty() { String::new() } else { format!(" with {}", terms.join(", ")) };
        format!("`{}[{}]`{with} is outside the extent of", domain.stage, indices.join(", "))
    };
    seen.iter().enumerate().filter(|(_, s)| !**s).map(|(at, _)| text(at)).find(|w| wanted(w))
}

/// Whether indices are outside a parameter, or an intermediate's domain; those that memory decides are not.
fn is_outside(kernel: &Kernel, tensor: &str, indices: &[Option<i64>], dims: &Dims) -> bool {
    match (kernel.parameter(tensor), kernel.equation(tensor)) {
        (Some(parameter), _) => {
            let sizes = parameter.sizes(dims);
            indices.iter().zip(&sizes).any(|(i, s)| i.is_some_and(|i| i < 0 || i >= *s))
        }
        (None, Some(equation)) => (0..).zip(indices).any(|(a, i)| i.is_some_and(|i| !equation.contains(a, i, dims))),
        (None, None) => false,
    }
}

fn out_of_bounds(
    kernel: &Kernel,
    access: &Access,
    dims: &Dims,
    wanted: &dyn Fn(&Witness) -> bool,
    all: bool,
) -> Result<Option<Witness>, TooLarge> {
    let mut left = BUDGET;
    for equation in &kernel.equations {
        if kernel.parameter(&equation.targets[0]).is_none() && !all {
            continue; // visited where it is read
        }
        let extents: Vec<i64> = equation.axes.iter().map(|(_, s)| s.value(dims).max(0)).collect();
        for point in 0..extents.iter().product::<i64>() {
            let mut rest = point;
            let mut scope = Scope::new();
            for (((axis, _), lower), extent) in equation.axes.iter().zip(&equation.lower).zip(&extents).rev() {
                scope.insert(axis.clone(), lower + rest % extent);
                rest /= extent;
            }
            let mut found = None;
            let point: Vec<String> = equation.axes.iter().map(|(a, _)| scope[a].to_string()).collect();
            visit(kernel, &equation.value, &scope, dims, &mut |read| {
                left = left.saturating_sub(1);
                let outside = is_outside(kernel, read.tensor, &read.indices, dims);
                if access.is(read) && !read.guarded && outside {
                    let index = |i: &Option<i64>| i.map_or("?".to_owned(), |i| i.to_string());
                    let indices: Vec<String> = read.indices.iter().map(index).collect();
                    let element = format!("{}[{}]", equation.targets[0], point.join(", "));
                    let text = format!("{element} reads {}[{}]", read.tensor, indices.join(", "));
                    found = wanted(&text).then_some(text);
                }
                found.is_none() && left > 0
            });
            if found.is_some() {
                return Ok(found);
            }
            if left == 0 {
                return Err(TooLarge);
            }
        }
    }
    Ok(None)
}

/// What looking at one choice of sizes costs: most break a fact.
const LOOK: i64 = 20;
/// What trying an admissible choice of sizes costs beside its points.
const SIZES: i64 = 1_000;

/// What sizes cost of which it cannot be told.
const TOO_LARGE: i64 = BUDGET as i64 / 4;

/// Strides of an output that are tried for each choice of sizes.
const LAYOUTS: usize = 2;

/// The admissible sizes below a sum for which a refusal is right, smallest sum first. `most` bounds the sum of `names`;
/// the other dimensions take their smallest admissible values. Gives up after so many points.
pub fn smallest(kernel: &Kernel, case: &Case, names: &[String], most: i64, points: i64) -> Option<(Dims, Witness)> {
    let mut left = points;
    for total in names.len() as i64..=most {
        let mut parts = vec![1_i64; names.len()];
        if let Some(found) = spread(kernel, case, names, &mut parts, 0, total, &mut left) {
            return Some(found);
        }
        if left <= 0 {
            return None;
        }
    }
    None
}

fn spread(
    kernel: &Kernel,
    case: &Case,
    names: &[String],
    parts: &mut Vec<i64>,
    at: usize,
    total: i64,
    left: &mut i64,
) -> Option<(Dims, Witness)> {
    if *left <= 0 {
        return None;
    }
    let rest = (names.len() - at.min(names.len())) as i64;
    if at + 1 >= names.len() {
        if let Some(last) = parts.last_mut() {
            *last = total;
        } else if total > 0 {
            return None;
        }
        let dims: Dims = names.iter().cloned().zip(parts.iter().copied()).collect();
        *left -= LOOK;
        return completions(kernel, &dims, LAYOUTS).into_iter().find_map(|dims| {
            let all = domains(kernel, &dims);
            let points: i64 = all.iter().flatten().map(|d| d.points().min(BUDGET as i64)).sum();
            *left -= SIZES + points;
            match fails(kernel, case, &dims) {
                Ok(found) => found.map(|w| (dims, w)),
                Err(TooLarge) => {
                    *left -= if all.is_some() { TOO_LARGE } else { 0 };
                    None
                }
            }
        });
    }
    for value in 1..=total - (rest - 1) {
        parts[at] = value;
        let found = spread(kernel, case, names, parts, at + 1, total - value, left);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Smallest admissible values for the dimensions that are open; none if the given ones break a fact, or let elements of
/// an output share a place.
pub fn complete(kernel: &Kernel, dims: &mut Dims) -> Option<()> {
    *dims = completions(kernel, dims, 1).into_iter().next()?;
    Some(())
}

/// Values for the dimensions that are open: the smallest admissible ones, but strides of outputs from the inside out,
/// each one of the first `layouts` that step over what is inside.
fn completions(kernel: &Kernel, given: &Dims, layouts: usize) -> Vec<Dims> {
    let strides = kernel.output_strides();
    let names = kernel.dims();
    let is_open = |d: &&String| !given.contains_key(*d);
    let (last, first): (Vec<&String>, Vec<&String>) = names.iter().filter(is_open).partition(|d| strides.contains(*d));
    let admissible = |name: &String, from: i64, dims: &Dims| -> Vec<i64> {
        let ok = |v: &i64| {
            let mut trial: BTreeMap<String, i64> = dims.clone();
            trial.insert(name.clone(), *v);
            kernel.facts.iter().filter(|f| f.dims().contains(&&**name)).all(|f| f.holds(&trial))
        };
        (from..=from + 256).filter(ok).take(layouts).collect()
    };
    let mut dims = given.clone();
    for name in first {
        let Some(value) = admissible(name, 1, &dims).first().copied() else { return Vec::new() };
        dims.insert(name.clone(), value);
    }
    let mut list = vec![dims];
    for p in kernel.parameters.iter().filter(|p| p.role != Role::Input) {
        let Some(strides) = &p.strides else { continue };
        for at in (0..strides.len()).rev() {
            let Some(name) = strides[at].dim.as_ref().filter(|d| last.contains(d)) else { continue };
            let mut next = Vec::new();
            for dims in list {
                if dims.contains_key(name) {
                    next.push(dims);
                    continue;
                }
                let (sizes, pitch) = (p.sizes(&dims), p.pitch(&dims));
                let inside: i64 = (at + 1..strides.len()).map(|d| pitch[d] * (sizes[d] - 1).max(0)).sum();
                for value in admissible(name, if sizes[at] > 1 { inside + 1 } else { 1 }, &dims) {
                    let mut dims = dims.clone();
                    dims.insert(name.clone(), value);
                    next.push(dims);
                }
            }
            list = next;
        }
    }
    list.retain(|dims| kernel.admits(dims) && !kernel.overlaps(dims));
    list
}
