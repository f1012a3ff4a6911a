//! Whether a refusal is right for given sizes, and the smallest sizes for which it is.

use std::collections::BTreeMap;

use super::domain::Domain;
use super::reads::{Read, Scope, visit};
use super::{BUDGET, domains};
use crate::ast::{Dims, Kernel};

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

/// A concrete failure, as text for reports.
pub type Witness = String;

/// The first failure for these sizes.
///
/// # Errors
/// [`TooLarge`] if that cannot be told.
pub fn fails(kernel: &Kernel, case: &Case, dims: &Dims) -> Result<Option<Witness>, TooLarge> {
    let domains = domains(kernel, dims).ok_or(TooLarge)?;
    if let Case::OutOfBounds(access) = case {
        return out_of_bounds(kernel, access, dims);
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
            Case::CutVector(_) => cut(domain),
            Case::Misaligned(_, access) => lanes(kernel, domain, access, dims, true),
            Case::Straddles(_, access) => lanes(kernel, domain, access, dims, false),
            Case::Uncovered(_) => uncovered(domain),
            Case::OutOfBounds(_) => None,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Calls `f` with the points of every vector, lane by lane.
fn vectors(domain: &Domain, mut f: impl FnMut(&[Vec<i64>]) -> bool) {
    let Some(at) = domain.vector.and_then(|v| domain.leaves.iter().position(|l| *l == v)) else { return };
    let count = domain.axes[domain.leaves[at]].extent;
    domain.visit(|leaves| {
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
    });
}

fn cut(domain: &Domain) -> Option<Witness> {
    let mut found = None;
    vectors(domain, |lanes| {
        let inside = lanes.iter().filter(|l| domain.roots_at(l).is_some()).count();
        if inside > 0 && inside < lanes.len() {
            found = Some(format!("{:?}: {inside} of {} lanes inside", lanes[0], lanes.len()));
        }
        found.is_none()
    });
    found
}

/// The offsets that a point accesses in a tensor, in the order of the expression; the write last.
fn offsets(kernel: &Kernel, domain: &Domain, roots: &[i64], access: &Access, dims: &Dims) -> Vec<Option<i64>> {
    let Some(equation) = kernel.equation(&domain.stage) else { return Vec::new() };
    let scope: Scope = (domain.roots.iter().zip(roots).zip(&domain.lower))
        .map(|((r, v), lower)| (domain.axes[*r].name.clone(), v + lower))
        .collect();
    let Some(parameter) = kernel.parameter(&access.tensor) else { return Vec::new() };
    let pitch = parameter.pitch(dims);
    let offset =
        |indices: &[Option<i64>]| indices.iter().zip(&pitch).map(|(i, s)| Some((*i)? * s)).sum::<Option<i64>>();
    let mut list = Vec::new();
    visit(kernel, &equation.value, &scope, dims, &mut |read| {
        if access.is(read) && !read.guarded {
            list.push(offset(&read.indices));
        }
        true
    });
    if access.text.is_none() && equation.targets.contains(&access.tensor) {
        let own: Vec<Option<i64>> = equation.axes.iter().map(|(a, _)| scope.get(a).copied()).collect();
        list.push(offset(&own));
    }
    list
}

fn lanes(kernel: &Kernel, domain: &Domain, access: &Access, dims: &Dims, alignment: bool) -> Option<Witness> {
    let mut found = None;
    vectors(domain, |lanes| {
        let roots: Vec<Option<Vec<i64>>> = lanes.iter().map(|l| domain.roots_at(l)).collect();
        let at = |k: usize| roots[k].as_ref().map(|r| offsets(kernel, domain, r, access, dims));
        if alignment {
            let count = lanes.len() as i64;
            if let Some(bad) = at(0).and_then(|list| list.into_iter().flatten().find(|o| o.rem_euclid(count) != 0)) {
                found = Some(format!("{:?}: a vector starts at element {bad}", lanes[0]));
            }
        } else {
            for k in 1..lanes.len() {
                let (Some(a), Some(b)) = (at(k - 1), at(k)) else { continue };
                if let Some((Some(x), Some(y))) =
                    a.iter().zip(&b).find(|(x, y)| x.zip(**y).is_some_and(|(x, y)| y != x + 1))
                {
                    found = Some(format!("{:?}: neighbouring lanes at elements {x} and {y}", lanes[k - 1]));
                }
            }
        }
        found.is_none()
    });
    found
}

fn uncovered(domain: &Domain) -> Option<Witness> {
    let terms: i64 = domain.roots.iter().map(|r| domain.axes[*r].extent).product();
    let mut seen = vec![false; usize::try_from(terms).ok()?.min(BUDGET as usize)];
    domain.visit(|leaves| {
        if let Some(roots) = domain.roots_at(leaves)
            && let Some(slot) = seen.get_mut(domain.linear(&roots, false))
        {
            *slot = true;
        }
        true
    });
    seen.iter().position(|s| !s).map(|at| format!("element {at} of {}", domain.stage))
}

/// The extents of a parameter, or of an intermediate's domain.
fn sizes(kernel: &Kernel, tensor: &str, dims: &Dims) -> Vec<i64> {
    match (kernel.parameter(tensor), kernel.equation(tensor)) {
        (Some(parameter), _) => parameter.sizes(dims),
        (None, Some(equation)) => equation.axes.iter().map(|(_, s)| s.value(dims)).collect(),
        (None, None) => Vec::new(),
    }
}

fn out_of_bounds(kernel: &Kernel, access: &Access, dims: &Dims) -> Result<Option<Witness>, TooLarge> {
    let mut left = BUDGET;
    for equation in &kernel.equations {
        if kernel.parameter(&equation.targets[0]).is_none() {
            continue; // visited where it is read
        }
        let extents: Vec<i64> = equation.axes.iter().map(|(_, s)| s.value(dims).max(0)).collect();
        for point in 0..extents.iter().product::<i64>() {
            let mut rest = point;
            let mut scope = Scope::new();
            for ((axis, _), extent) in equation.axes.iter().zip(&extents).rev() {
                scope.insert(axis.clone(), rest % extent);
                rest /= extent;
            }
            let mut found = None;
            visit(kernel, &equation.value, &scope, dims, &mut |read| {
                left = left.saturating_sub(1);
                let sizes = sizes(kernel, read.tensor, dims);
                let outside = read.indices.iter().zip(&sizes).any(|(i, s)| i.is_some_and(|i| i < 0 || i >= *s));
                if access.is(read) && !read.guarded && outside {
                    found = Some(format!("{scope:?}: {}{:?}", read.tensor, read.indices));
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

/// The admissible sizes below a sum for which a refusal is right, smallest sum first. `most` bounds the sum of `names`; the
/// other dimensions take their smallest admissible values.
pub fn smallest(kernel: &Kernel, case: &Case, names: &[String], most: i64, tries: u32) -> Option<(Dims, Witness)> {
    let mut left = tries;
    for total in names.len() as i64..=most {
        let mut parts = vec![1_i64; names.len()];
        if let Some(found) = spread(kernel, case, names, &mut parts, 0, total, &mut left) {
            return Some(found);
        }
        if left == 0 {
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
    left: &mut u32,
) -> Option<(Dims, Witness)> {
    if *left == 0 {
        return None;
    }
    let rest = (names.len() - at.min(names.len())) as i64;
    if at + 1 >= names.len() {
        if let Some(last) = parts.last_mut() {
            *last = total;
        } else if total > 0 {
            return None;
        }
        let mut dims: Dims = names.iter().cloned().zip(parts.iter().copied()).collect();
        complete(kernel, &mut dims)?;
        *left -= 1;
        return fails(kernel, case, &dims).ok().flatten().map(|w| (dims, w));
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

/// Smallest admissible values for the dimensions that are open; none if the given ones break a fact.
pub fn complete(kernel: &Kernel, dims: &mut Dims) -> Option<()> {
    let open: Vec<String> = kernel.dims().into_iter().filter(|d| !dims.contains_key(d)).collect();
    for name in open {
        let ok = |v: i64, dims: &Dims| {
            let mut trial: BTreeMap<String, i64> = dims.clone();
            trial.insert(name.clone(), v);
            kernel.facts.iter().filter(|f| f.dims().contains(&&*name)).all(|f| f.holds(&trial))
        };
        let value = (1..=256).find(|v| ok(*v, dims))?;
        dims.insert(name, value);
    }
    kernel.admits(dims).then_some(())
}
