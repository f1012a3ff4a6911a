//! Readers as loop nests, and the oracle: what they read, by enumeration.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_kernel::info::{Dim, DimKind};

use super::text::Text;
use crate::domain::{AxisKind, Binding, Concrete, Domain, NewAxis, Symbolic};
use crate::extent::{Expr, Facts, Family, Var};
use crate::region::{Fit, Loops, NotATile, Realisation, Region, Request, of_as};
use crate::span::Span;

/// One instance of a stage for each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Grid,
    Cta,
    Warp,
    Thread,
}

/// A reader, or several of the same nest.
#[derive(Clone, Debug)]
pub struct Nest {
    pub facts: Facts,
    pub dims: Vec<String>,
    pub domain: Domain,
    /// For each read its indices and the conditions `e ≥ 0` around it.
    pub reads: Vec<(Vec<Text>, Vec<Text>)>,
    /// Extents of the tensor that is read.
    pub shape: Vec<Text>,
    /// Positions of the leaves inside the attach point.
    pub inside: Vec<usize>,
    /// At least 0 wherever the place is reached, over loops outside: elsewhere nothing is looked at.
    pub reached: Vec<Text>,
}

/// Elements, for each value of the loops outside: all that is asked for by each read.
pub type Asked = BTreeMap<Vec<i128>, Vec<BTreeSet<Vec<i128>>>>;

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty()).collect()
}

fn texts(list: &str) -> Vec<Text> {
    // Commas separate, except those in parentheses.
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in list.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    parts.push(part);
    parts.iter().filter(|p| !p.trim().is_empty()).map(|p| Text::new(p)).collect()
}

impl Nest {
    /// `roots`: `i 4, j 4`; `ops`: `merge i j f; split f 3 o q; into f 2 a b; reorder o q; bind o grid`; `reads`:
    /// `i, j; i + 1, j if i - 1, 7 - i`; `at`: the leaf of the attach point, or nothing.
    pub fn new(dims: &str, shape: &str, roots: &str, ops: &str, reads: &str, at: &str, unit: Unit) -> Self {
        let dims: Vec<String> = words(dims).iter().map(|d| (*d).to_owned()).collect();
        let known: Vec<Dim> = dims.iter().map(|d| Dim { name: d.clone().into(), kind: DimKind::Size }).collect();
        let facts = Facts::new(&known, &[]).expect("no facts");
        let dim = |name: &str| {
            let at = dims.iter().position(|d| d == name);
            Expr::var(at.unwrap_or_else(|| panic!("{name} is no dimension")) as Var)
        };
        let span = Span::UNKNOWN;
        let new = |name: &str| NewAxis { name: name.to_owned(), span };
        let roots = roots.split(',').map(|root| {
            let (name, extent) = root.trim().split_once(' ').expect("name and extent");
            let kind = if name.starts_with('k') { AxisKind::Reduction } else { AxisKind::Data };
            (new(name), Text::new(extent).expr(&dim), kind)
        });
        let mut domain = Domain::new(roots);
        for op in ops.split(';').map(words).filter(|op| !op.is_empty()) {
            let leaf = |name: &str| domain.leaf(name).unwrap_or_else(|| panic!("{name} is no leaf"));
            let number = |text: &str| text.parse::<i128>().expect("a number");
            match op[..] {
                ["split", input, factor, outer, inner] => {
                    domain.split_by(leaf(input), number(factor), &facts, [new(outer), new(inner)], span);
                }
                ["into", input, count, outer, inner] => {
                    domain.split_into(leaf(input), number(count), &facts, [new(outer), new(inner)], span);
                }
                ["merge", outer, inner, name] => {
                    domain.merge(leaf(outer), leaf(inner), &facts, new(name), span);
                }
                ["resize", input, left, right, name] => {
                    domain.resize(leaf(input), number(left), number(right), &facts, new(name), span);
                }
                ["bind", name, to] => {
                    let leaf = leaf(name);
                    domain.axes[leaf].binding = match to {
                        "grid" => Binding::Grid,
                        "warp" => Binding::Warp,
                        _ => Binding::Thread,
                    };
                }
                ["reorder", ..] => {
                    let order: Vec<usize> = op[1..].iter().map(|name| leaf(name)).collect();
                    let mut places: Vec<usize> =
                        order.iter().map(|a| domain.leaves.iter().position(|l| l == a).expect("a leaf")).collect();
                    places.sort_unstable();
                    for (place, axis) in places.into_iter().zip(order) {
                        domain.leaves[place] = axis;
                    }
                }
                _ => panic!("unknown op {op:?}"),
            }
        }
        let attach = domain.leaf(at).and_then(|a| domain.leaves.iter().position(|l| *l == a));
        assert!(at.is_empty() || attach.is_some(), "{at} is no leaf");
        let is_inside = |position: &usize| match domain.axes[domain.leaves[*position]].binding {
            Binding::Grid => unit == Unit::Grid,
            Binding::Warp => unit <= Unit::Cta,
            Binding::Thread => unit <= Unit::Warp,
            _ => attach.is_none_or(|at| *position > at),
        };
        let inside = (0..domain.leaves.len()).filter(is_inside).collect();
        let read = |text: &str| {
            let (indices, conditions) = text.split_once(" if ").unwrap_or((text, ""));
            (texts(indices), texts(conditions))
        };
        let reads = reads.split(';').map(read).collect();
        Self { facts, dims, domain, reads, shape: texts(shape), inside, reached: Vec::new() }
    }

    /// The names of the loops outside.
    pub fn outside(&self) -> Vec<&str> {
        let positions = (0..self.domain.leaves.len()).filter(|l| !self.inside.contains(l));
        positions.map(|l| &*self.domain.axes[self.domain.leaves[l]].name).collect()
    }

    fn dim(&self, name: &str) -> Option<Var> {
        self.dims.iter().position(|d| d == name).map(|d| d as Var)
    }

    /// The region, by the analysis.
    pub fn region(&self, way: Realisation) -> Result<Region, NotATile> {
        let symbolic = Symbolic::new(&self.domain, &self.facts);
        let name = |name: &str| match self.dim(name) {
            Some(dim) => Expr::var(dim),
            None => symbolic.values[self.domain.named(name).unwrap_or_else(|| panic!("{name} is no axis"))].clone(),
        };
        let list = |texts: &[Text]| texts.iter().map(|t| t.expr(&name)).collect::<Vec<Expr>>();
        let axes = symbolic.values.iter().zip(&self.domain.axes).map(|(v, a)| (v.clone(), a.extent.clone()));
        let axes: Vec<(Expr, Expr)> = axes.collect();
        let requests: Vec<Request> = self
            .reads
            .iter()
            .map(|(indices, conditions)| Request {
                indices: list(indices),
                conditions: list(conditions),
                axes: axes.clone(),
            })
            .collect();
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (position, leaf) in symbolic.variables.iter().enumerate() {
            let of = if self.inside.contains(&position) { &mut inside } else { &mut outside };
            of.push((leaf.var, leaf.extent.clone()));
        }
        let domain: Vec<(Expr, Expr)> =
            list(&self.shape).into_iter().map(|extent| (Expr::constant(0), extent)).collect();
        let reached = list(&self.reached);
        of_as(&requests, &Loops { inside, outside, reached }, &domain, &self.facts, way)
    }

    /// What each read asks for, for each value of the loops outside, in the order of leaves.
    pub fn oracle(&self, dims: &[i64]) -> Asked {
        let concrete = Concrete::new(&self.domain, dims).expect("sizes");
        let mut asked = Asked::new();
        let leaves: Vec<usize> = (0..self.domain.leaves.len()).collect();
        let outside: Vec<usize> = leaves.iter().copied().filter(|l| !self.inside.contains(l)).collect();
        concrete.visit(&leaves, |point| {
            let values = concrete.from_leaves(point);
            let key: Vec<i128> = outside.iter().map(|l| point[*l]).collect();
            if !self.is_reached(dims, &values) {
                return std::ops::ControlFlow::<()>::Continue(());
            }
            let sets = asked.entry(key).or_insert_with(|| vec![BTreeSet::new(); self.reads.len()]);
            if (0..self.domain.axes.len()).all(|axis| concrete.in_bounds(&values, axis)) {
                let name = |name: &str| self.value(name, dims, &values);
                for ((indices, conditions), set) in self.reads.iter().zip(sets) {
                    if conditions.iter().all(|c| c.number(&name) >= 0) {
                        set.insert(indices.iter().map(|i| i.number(&name)).collect());
                    }
                }
            }
            std::ops::ControlFlow::<()>::Continue(())
        });
        asked
    }

    /// Whether the place is reached, where axes have these values.
    pub fn is_reached(&self, dims: &[i64], axes: &[i128]) -> bool {
        self.reached.iter().all(|c| c.number(&|name| self.value(name, dims, axes)) >= 0)
    }

    fn value(&self, name: &str, dims: &[i64], axes: &[i128]) -> i128 {
        match self.dim(name) {
            Some(dim) => i128::from(dims[dim as usize]),
            None => axes[self.domain.named(name).unwrap_or_else(|| panic!("{name} is no axis"))],
        }
    }

    /// Names of dimensions and loops outside, with their values at one iteration.
    pub fn names(&self, dims: &[i64], key: &[i128]) -> BTreeMap<String, i128> {
        let outside = (0..self.domain.leaves.len()).filter(|l| !self.inside.contains(l));
        let leaves = outside.zip(key).map(|(l, v)| (self.domain.axes[self.domain.leaves[l]].name.clone(), *v));
        self.dims.iter().cloned().zip(dims.iter().map(|d| i128::from(*d))).chain(leaves).collect()
    }

    /// The values of all variables at one iteration of the loops outside; those inside are 0.
    pub fn point(&self, dims: &[i64], key: &[i128]) -> Vec<i128> {
        let mut values: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
        let mut key = key.iter();
        for position in 0..self.domain.leaves.len() {
            values.push(if self.inside.contains(&position) { 0 } else { *key.next().expect("one each") });
        }
        values
    }
}

/// What was found of a region at some sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Elements asked for, summed over iterations; what several groups or reads share counts once.
    pub asked: i128,
    /// Elements of coordinates, summed over iterations and groups.
    pub area: i128,
    /// Products of bounds, summed over groups.
    pub bound: i128,
    /// For each group, the bounds of its extents.
    pub bounds: Vec<Vec<i128>>,
    /// Iterations in which a claim is weaker than exact, minimal.
    pub weak: (usize, usize),
}

/// What is asked for, and where: what a region is compared with.
pub struct Case<'a> {
    pub asked: &'a Asked,
    /// How many reads there are.
    pub reads: usize,
    /// Of the tensor.
    pub shape: Vec<i128>,
    pub dims: &'a [i64],
    /// The values of all variables at one iteration of the loops outside.
    pub point: &'a dyn Fn(&[i128]) -> Vec<i128>,
}

/// Asserts the property of regions at some sizes, for every iteration, and all that the region claims.
pub fn check(nest: &Nest, region: &Region, dims: &[i64], what: &str) -> Figures {
    let size = |t: &Text| t.number(&|name| i128::from(dims[nest.dim(name).expect("a dimension") as usize]));
    let case = Case {
        asked: &nest.oracle(dims),
        reads: nest.reads.len(),
        shape: nest.shape.iter().map(size).collect(),
        dims,
        point: &|key| nest.point(dims, key),
    };
    check_case(&case, region, what)
}

/// As [`check`], for anything that asks.
pub fn check_case(case: &Case<'_>, region: &Region, what: &str) -> Figures {
    let Case { asked, shape, dims, point, .. } = case;
    let mut figures = Figures::default();
    let only_dims: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
    let mut largest: Vec<Vec<i128>> = Vec::new();
    for group in &region.groups {
        let bounds: Vec<i128> = group.axes.iter().map(|a| a.bound.eval(&only_dims).expect("a bound")).collect();
        figures.bound += bounds.iter().product::<i128>();
        largest.push(vec![0; bounds.len()]);
        figures.bounds.push(bounds);
    }
    let served: Vec<usize> = region.groups.iter().flat_map(|g| g.requests.iter().copied()).collect();
    assert!((0..case.reads).all(|r| served.contains(&r)), "{what}: a read is not served");
    for (key, sets) in *asked {
        let values = point(key);
        let at = |e: &Expr| e.eval(&values).unwrap_or_else(|| panic!("{what}: no value at {key:?}: {e:?}"));
        figures.asked += sets.iter().flatten().collect::<BTreeSet<_>>().len() as i128;
        for (number, group) in region.groups.iter().enumerate() {
            let here = || format!("{what}, iteration {key:?}, group {number}:{}", show(region));
            let wanted: BTreeSet<Vec<i128>> = group.requests.iter().flat_map(|r| sets[*r].iter().cloned()).collect();
            let extents: Vec<i128> = group.axes.iter().map(|a| at(&a.extent)).collect();
            let starts: Vec<i128> = group.axes.iter().map(|a| at(&a.start)).collect();
            let condition = |e: &Expr, c: &[i128]| {
                let e = e.substitute(&|v| Some(Expr::constant(*c.get(Family::COORDINATE.number(v)?)?)));
                at(&e) >= 0
            };
            each(&figures.bounds[number], |c| {
                let is_there = c.iter().zip(&extents).all(|(c, n)| c < n) && extents.iter().all(|n| *n > 0);
                let limited = group.limits.iter().all(|e| condition(e, c));
                assert_eq!(is_there, limited, "limits {:?} at {c:?}: {}", group.limits, here());
            });
            if wanted.is_empty() {
                let empty = extents.iter().any(|e| *e <= 0) || group.fit == Fit::Sound || group.axes.is_empty();
                assert!(empty || group.requests.len() > 1, "nothing is asked for: {}", here());
                if extents.iter().all(|e| *e > 0) {
                    each(&extents, |c| assert!(inside(&place(group, &starts, c, shape), shape), "outside: {}", here()));
                }
                continue;
            }
            if let Some(needed) = &group.needed {
                assert!(wanted.len() as i128 <= needed.eval(&only_dims).expect("a number"), "needed: {}", here());
            }
            for (k, extent) in extents.iter().enumerate() {
                assert!(*extent <= figures.bounds[number][k], "extent {extent} beyond its bound: {}", here());
                largest[number][k] = largest[number][k].max(*extent);
            }
            let mut members = BTreeSet::new();
            let mut whole: BTreeSet<Vec<i128>> = BTreeSet::new();
            let mut ends: Vec<(i128, i128)> = vec![(i128::MAX, i128::MIN); extents.len()];
            each(&extents, |c| {
                let element = place(group, &starts, c, shape);
                assert!(inside(&element, shape), "{element:?} is outside the tensor: {}", here());
                if group.members.is_empty() || group.members.iter().any(|all| all.iter().all(|e| condition(e, c))) {
                    members.insert(element.clone());
                }
                if wanted.contains(&element) {
                    for (end, c) in ends.iter_mut().zip(c) {
                        *end = (end.0.min(*c), end.1.max(*c));
                    }
                }
                whole.insert(element);
            });
            figures.area += whole.len() as i128;
            assert!(wanted.is_subset(&whole), "asked for and not there: {:?}, {}", wanted.difference(&whole), here());
            assert!(wanted.is_subset(&members), "no member: {:?}, {}", wanted.difference(&members), here());
            if group.is_known {
                assert_eq!(members, wanted, "members: {}", here());
            }
            let is_minimal = ends.iter().zip(&extents).all(|(end, extent)| *end == (0, extent - 1));
            match group.fit {
                Fit::Exact => assert_eq!(whole, wanted, "not exact: {}", here()),
                Fit::Minimal => assert!(is_minimal, "not minimal: {ends:?} {}", here()),
                Fit::Sound => {}
            }
            figures.weak.0 += usize::from(group.fit != Fit::Exact && whole == wanted);
            figures.weak.1 += usize::from(group.fit == Fit::Sound);
        }
    }
    figures
}

/// The smallest bounds that the extents of a region allow.
pub fn tightest(nest: &Nest, region: &Region, dims: &[i64]) -> Vec<Vec<i128>> {
    let mut largest: Vec<Vec<i128>> = region.groups.iter().map(|g| vec![0; g.axes.len()]).collect();
    for (key, sets) in nest.oracle(dims) {
        let values = nest.point(dims, &key);
        for (group, largest) in region.groups.iter().zip(&mut largest) {
            if group.requests.iter().all(|r| sets[*r].is_empty()) {
                continue;
            }
            for (axis, most) in group.axes.iter().zip(largest) {
                *most = (*most).max(axis.extent.eval(&values).expect("an extent"));
            }
        }
    }
    largest
}

fn inside(element: &[i128], shape: &[i128]) -> bool {
    element.iter().zip(shape).all(|(e, s)| (0..*s).contains(e))
}

/// The element at some coordinates.
fn place(group: &crate::region::Group, starts: &[i128], c: &[i128], shape: &[i128]) -> Vec<i128> {
    let mut element = vec![0; shape.len()];
    for ((axis, start), c) in group.axes.iter().zip(starts).zip(c) {
        let mut number = start + axis.step * c;
        for d in axis.dims[1..].iter().rev() {
            element[*d] = number.rem_euclid(shape[*d]);
            number = number.div_euclid(shape[*d]);
        }
        element[axis.dims[0]] = number;
    }
    element
}

/// Visits every coordinate.
fn each(extents: &[i128], mut visit: impl FnMut(&[i128])) {
    if extents.iter().any(|e| *e <= 0) {
        return;
    }
    let mut c = vec![0; extents.len()];
    loop {
        visit(&c);
        let Some(at) = (0..c.len()).find(|k| c[*k] + 1 < extents[*k]) else { return };
        c[at] += 1;
        c[..at].fill(0);
    }
}

/// A region in one line for each coordinate; the loops outside by their numbers.
pub fn show(region: &Region) -> String {
    let e = |e: &Expr| e.show(&|v| format!("v{v}"));
    let mut text = String::new();
    for group in &region.groups {
        text += &format!(
            "\n{:?} {:?} known {}, members {:?}",
            group.requests,
            group.fit,
            group.is_known,
            group.members.len()
        );
        for a in &group.axes {
            text += &format!(
                "\n  {:?}: {} step {} extent {} <= {}",
                a.dims,
                e(&a.start),
                a.step,
                e(&a.extent),
                e(&a.bound)
            );
        }
    }
    text
}
