//! The value of every dimension of a kernel: from what the user gives, from the facts, and contiguous strides for the
//! rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tilewright_kernel::info::{DimKind, ParameterKind};
use tilewright_kernel::rules::{elements, row_major_strides};
use tilewright_kernel::size::{Relation, SizeOp};
use tilewright_kernel::{KernelInfo, Size};

use crate::listed;

/// Values by name.
pub type Given = BTreeMap<String, i64>;

/// Why the dimensions have no values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizesError {
    /// Not of the form `N=1000`.
    Malformed {
        /// What was written.
        text: String,
    },
    /// Written twice.
    Repeated {
        /// The dimension.
        name: String,
    },
    /// The kernel has no such dimension.
    Unknown {
        /// What was written.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Needed and not given.
    Missing {
        /// The dimensions.
        names: Vec<String>,
    },
    /// Below 0.
    Negative {
        /// A dimension, or an extent of a tensor.
        what: String,
        /// Its value.
        value: i128,
    },
    /// Given, and determined otherwise by a fact.
    Determined {
        /// The dimension.
        name: String,
        /// Value given.
        given: i64,
        /// Value by the fact.
        value: i128,
    },
    /// A fact that no value of the last unknown dimension satisfies.
    NoSolution {
        /// The dimension.
        name: String,
        /// The fact.
        fact: String,
        /// The values that it depends on.
        given: String,
    },
    /// An extent or stride without a value.
    NoValue {
        /// Which.
        what: String,
        /// Why.
        why: String,
    },
}

impl fmt::Display for SizesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { text } => {
                write!(f, "`{}` is no size: write --dims N=1000,M=7", text.escape_debug())
            }
            Self::Repeated { name } => write!(f, "{name} is given twice"),
            Self::Unknown { name, known } => {
                write!(f, "the kernel has no dimension `{}`; it has {}", name.escape_debug(), listed(known, "none"))
            }
            Self::Missing { names } => {
                write!(f, "no value for {}: add --dims {}=…", listed(names, ""), names.join("=…,"))
            }
            Self::Negative { what, value } => write!(f, "{what} = {value} is negative"),
            Self::Determined { name, given, value } => {
                write!(f, "{name} = {given} is given, but a fact makes it {value}")
            }
            Self::NoSolution { name, fact, given } => {
                write!(f, "no {name} satisfies the fact `{fact}` for {given}")
            }
            Self::NoValue { what, why } => write!(f, "{what} has no value: {why}"),
        }
    }
}

impl std::error::Error for SizesError {}

/// Reads `N=1000` items.
///
/// # Errors
/// [`SizesError::Malformed`], [`SizesError::Repeated`].
pub fn parse(items: &[String]) -> Result<Given, SizesError> {
    let mut given = Given::new();
    for item in items.iter().filter(|i| !i.trim().is_empty()) {
        let malformed = || SizesError::Malformed { text: item.clone() };
        let (name, value) = item.split_once('=').ok_or_else(malformed)?;
        let value = value.trim().replace('_', "").parse().map_err(|_| malformed())?;
        let name = name.trim().to_owned();
        if given.insert(name.clone(), value).is_some() {
            return Err(SizesError::Repeated { name });
        }
    }
    Ok(given)
}

/// The value of every dimension, in the kernel's order. A dimension that a fact determines may be left out, and so may
/// a stride, which is then the one of a contiguous tensor. Facts are not checked: the launch does that.
///
/// # Errors
/// As the variants of [`SizesError`] say.
pub fn complete(kernel: &KernelInfo, given: &Given) -> Result<Vec<i64>, SizesError> {
    let mut values: Vec<Option<i64>> = vec![None; kernel.dims.len()];
    for (name, &value) in given {
        let Some(at) = kernel.dims.iter().position(|d| d.name == name.as_str()) else {
            let known = kernel.dims.iter().map(|d| d.name.to_string()).collect();
            return Err(SizesError::Unknown { name: name.clone(), known });
        };
        if value < 0 {
            return Err(SizesError::Negative { what: name.clone(), value: value.into() });
        }
        values[at] = Some(value);
    }
    // Each round finds at least one value or is the last.
    while solve(kernel, &mut values)? || equate(kernel, &mut values)? || contiguous(kernel, &mut values)? {}
    let missing = |(dim, value): (&tilewright_kernel::info::Dim, &Option<i64>)| {
        (value.is_none()).then(|| (dim.kind == DimKind::Stride, dim.name.to_string()))
    };
    let mut missing: Vec<_> = kernel.dims.iter().zip(&values).filter_map(missing).collect();
    if !missing.is_empty() {
        // Strides follow from the sizes.
        if missing.iter().any(|(stride, _)| !stride) {
            missing.retain(|(stride, _)| !stride);
        }
        return Err(SizesError::Missing { names: missing.into_iter().map(|(_, name)| name).collect() });
    }
    Ok(values.into_iter().flatten().collect())
}

/// A value that is determined now; an error if it contradicts a given one.
fn solve(kernel: &KernelInfo, values: &mut [Option<i64>]) -> Result<bool, SizesError> {
    let mut progress = false;
    for solved in kernel.solved.iter() {
        let Some(value) = eval(kernel, &solved.value, values, || kernel.dim_name(solved.dim).to_owned())? else {
            continue;
        };
        let name = || kernel.dim_name(solved.dim).to_owned();
        let slot = &mut values[usize::from(solved.dim)];
        match *slot {
            Some(given) if i128::from(given) != value => {
                return Err(SizesError::Determined { name: name(), given, value });
            }
            Some(_) => {}
            None if value < 0 => return Err(SizesError::Negative { what: name(), value }),
            None => {
                let why = || "it does not fit 64 bits".to_owned();
                *slot = Some(i64::try_from(value).map_err(|_| SizesError::NoValue { what: name(), why: why() })?);
                progress = true;
            }
        }
    }
    Ok(progress)
}

/// The value of a dimension that is the only unknown one of a fact `a == b`, where both sides are linear in it.
fn equate(kernel: &KernelInfo, values: &mut [Option<i64>]) -> Result<bool, SizesError> {
    for fact in kernel.facts.iter().filter(|f| f.relation == Relation::Eq) {
        let dims = fact.dims();
        let unknown: BTreeSet<u16> = dims.iter().copied().filter(|d| values[usize::from(*d)].is_none()).collect();
        let Some(&dim) = unknown.first().filter(|_| unknown.len() == 1) else { continue };
        // How far the left side is above the right one, for a value of the unknown.
        let mut all: Vec<i64> = values.iter().map(|v| v.unwrap_or(0)).collect();
        let mut above = |value: i64| {
            all[usize::from(dim)] = value;
            fact.lhs.eval(&all).ok()?.checked_sub(fact.rhs.eval(&all).ok()?)
        };
        let (Some(at_0), Some(at_1), Some(at_2)) = (above(0), above(1), above(2)) else { continue };
        let slope = at_1 - at_0;
        if slope == 0 || at_2 - at_1 != slope || is_stepped(&fact.lhs) || is_stepped(&fact.rhs) {
            continue;
        }
        let value = (at_0 % slope == 0).then(|| i64::try_from(-(at_0 / slope)).ok()).flatten();
        let Some(value) = value.filter(|v| *v >= 0 && above(*v) == Some(0)) else {
            let known = dims.iter().filter_map(|d| Some((kernel.dim_name(*d), values[usize::from(*d)]?)));
            let known: BTreeSet<String> = known.map(|(name, value)| format!("{name} = {value}")).collect();
            let given = known.into_iter().collect::<Vec<_>>().join(", ");
            let name = kernel.dim_name(dim).to_owned();
            return Err(SizesError::NoSolution { name, fact: fact.text.to_string(), given });
        };
        values[usize::from(dim)] = Some(value);
        return Ok(true);
    }
    Ok(false)
}

/// Whether a size divides, or takes the smaller or larger of two: then it is not linear.
fn is_stepped(size: &Size) -> bool {
    let linear =
        |op: &SizeOp| matches!(op, SizeOp::Const(_) | SizeOp::Dim(_) | SizeOp::Add | SizeOp::Sub | SizeOp::Mul);
    !size.ops.iter().all(linear)
}

/// Contiguous strides for those that nothing tells, innermost first; one a call, because a stride may determine others.
fn contiguous(kernel: &KernelInfo, values: &mut [Option<i64>]) -> Result<bool, SizesError> {
    for parameter in kernel.parameters.iter() {
        let ParameterKind::Tensor(tensor) = &parameter.kind else { continue };
        let Some(strides) = &tensor.strides else { continue };
        // Beyond what neighbours along axes with known strides take, which need not be the inner ones.
        let mut next = Some(1_i64);
        let mut open = None;
        for (axis, (stride, extent)) in strides.iter().zip(tensor.shape.iter()).enumerate().rev() {
            let what = || format!("{}.strides[{axis}]", parameter.name);
            let dim = stride.as_dim().map(usize::from).filter(|dim| kernel.dims[*dim].kind == DimKind::Stride);
            if let Some(dim) = dim.filter(|dim| values[*dim].is_none()) {
                open = open.or(Some(dim));
                continue;
            }
            let stride = eval(kernel, stride, values, what)?.and_then(|v| i64::try_from(v).ok());
            let extent = eval(kernel, extent, values, what)?.and_then(|v| i64::try_from(v).ok());
            let taken = stride.zip(extent).and_then(|(s, e)| s.checked_mul(e.max(1)));
            next = next.zip(taken).map(|(next, taken)| next.max(taken));
        }
        if let (Some(dim), Some(_)) = (open, next) {
            values[dim] = next;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The value of a size; none while a dimension in it is unknown.
fn eval(
    kernel: &KernelInfo,
    size: &Size,
    values: &[Option<i64>],
    what: impl Fn() -> String,
) -> Result<Option<i128>, SizesError> {
    if size.dims().any(|d| values.get(usize::from(d)).is_none_or(Option::is_none)) {
        return Ok(None);
    }
    let all: Vec<i64> = values.iter().map(|v| v.unwrap_or(0)).collect();
    let why = |error| format!("{} is {error}", size.display(&|d| kernel.dim_name(d)));
    size.eval(&all).map(Some).map_err(|error| SizesError::NoValue { what: what(), why: why(error) })
}

/// Shape and strides of a tensor, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Extent of each axis.
    pub shape: Vec<usize>,
    /// Distance between neighbours along each axis.
    pub strides: Vec<usize>,
    /// Number of elements.
    pub elements: u64,
}

/// The layout of every tensor parameter; none for scalars.
///
/// # Errors
/// [`SizesError::NoValue`] and [`SizesError::Negative`] for extents and strides that cannot be.
pub fn layouts(kernel: &KernelInfo, dims: &[i64]) -> Result<Vec<Option<Layout>>, SizesError> {
    let known: Vec<Option<i64>> = dims.iter().copied().map(Some).collect();
    let mut all = Vec::new();
    for parameter in kernel.parameters.iter() {
        let ParameterKind::Tensor(tensor) = &parameter.kind else {
            all.push(None);
            continue;
        };
        let list = |sizes: &[Size], which: &str| -> Result<Vec<i64>, SizesError> {
            let one = |(axis, size): (usize, &Size)| {
                let what = || format!("{}.{which}[{axis}]", parameter.name);
                let value = eval(kernel, size, &known, what)?.unwrap_or(0);
                if value < 0 {
                    return Err(SizesError::Negative { what: what(), value });
                }
                let why = || "it does not fit 64 bits".to_owned();
                i64::try_from(value).map_err(|_| SizesError::NoValue { what: what(), why: why() })
            };
            sizes.iter().enumerate().map(one).collect()
        };
        let too_large = |_| SizesError::NoValue { what: parameter.name.to_string(), why: "it is too large".to_owned() };
        let shape = list(&tensor.shape, "shape")?;
        let strides = match &tensor.strides {
            Some(strides) => list(strides, "strides")?,
            None => row_major_strides(&shape).ok_or(()).map_err(too_large)?,
        };
        let elements = elements(&shape).ok().and_then(|n| u64::try_from(n).ok()).ok_or(()).map_err(too_large)?;
        let unsigned = |v: Vec<i64>| v.into_iter().map(|x| x.unsigned_abs() as usize).collect();
        all.push(Some(Layout { shape: unsigned(shape), strides: unsigned(strides), elements }));
    }
    Ok(all)
}

/// Largest search for sizes, in candidates tried.
const SEARCH: u64 = 20_000;

/// Sizes that satisfy every fact, chosen from `pool` by `seed`; none if some tens of thousands of tries find none.
pub fn choose(kernel: &KernelInfo, pool: &[i64], seed: u64) -> Option<Given> {
    let solved = |d: usize| kernel.solved.iter().any(|s| usize::from(s.dim) == d);
    let free: Vec<&str> = (kernel.dims.iter().enumerate())
        .filter(|(d, dim)| dim.kind == DimKind::Size && !solved(*d))
        .map(|(_, dim)| &*dim.name)
        .collect();
    let mut random = crate::inputs::Random::new(seed);
    for _ in 0..SEARCH {
        let pick = |_: &&str| pool[random.below(pool.len() as u64) as usize];
        let picked: Vec<i64> = free.iter().map(pick).collect();
        let given: Given = free.iter().map(|n| (*n).to_owned()).zip(picked).collect();
        if admitted(kernel, &given).is_some() {
            return Some(given);
        }
    }
    None
}

/// The value of every dimension, if a kernel may be launched with these.
pub fn admitted(kernel: &KernelInfo, given: &Given) -> Option<Vec<i64>> {
    let dims = complete(kernel, given).ok()?;
    let holds = kernel.facts.iter().chain(kernel.requirements.iter()).all(|c| c.holds(&dims) == Ok(true));
    (holds && layouts(kernel, &dims).is_ok()).then_some(dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceFile;

    fn kernel(header: &str) -> KernelInfo {
        let text = format!("tilewright::schedule! {{ kernel {header} }}");
        let file = SourceFile::parse("k.rs", &text).unwrap();
        let findings = file.findings();
        assert_eq!(findings.errors, 0, "{}", findings.text);
        file.kernels().next().unwrap().kernel.info.clone().unwrap()
    }

    fn strided() -> KernelInfo {
        kernel(
            "K(x: f32[M, N; ld, 1]) -> (y: f32[N, M; s, t]) where M % 4 == 0 {
                y[j, i] = x[i, j]; schedule y { split i by 32 -> b, u; bind j, b: grid; bind u: thread; } }",
        )
    }

    fn given(text: &str) -> Result<Given, SizesError> {
        parse(&text.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn strides_default_to_contiguous() {
        let kernel = strided();
        let named = |dims: Vec<i64>| kernel.dims.iter().map(|d| d.name.to_string()).zip(dims).collect::<Given>();
        let dims = complete(&kernel, &given("M=8,N=1_000").unwrap()).unwrap();
        assert_eq!(named(dims.clone()), given("M=8,N=1000,ld=1000,s=8,t=1").unwrap());
        let all = layouts(&kernel, &dims).unwrap();
        assert_eq!(all[0].as_ref().map(|l| (&*l.shape, &*l.strides)), Some((&[8, 1000][..], &[1000, 1][..])));
        let dims = complete(&kernel, &given("M=8,N=5,ld=7,t=2").unwrap()).unwrap();
        assert_eq!(named(dims), given("M=8,N=5,ld=7,s=16,t=2").unwrap());
    }

    /// An axis whose neighbours lie side by side is not always the inner one.
    #[test]
    fn strides_default_to_what_known_ones_leave() {
        let kernel = kernel(
            "K(x: f32[M, N; 1, ld]) -> (y: f32[M, N]) {
                y[i, j] = x[i, j]; schedule y { split j by 32 -> b, u; bind i, b: grid; bind u: thread; } }",
        );
        let named = |dims: Vec<i64>| kernel.dims.iter().map(|d| d.name.to_string()).zip(dims).collect::<Given>();
        let dims = complete(&kernel, &given("M=5,N=3").unwrap()).unwrap();
        assert_eq!(named(dims), given("M=5,N=3,ld=5").unwrap());
    }

    #[test]
    fn equations_are_solved_for_any_of_their_sizes() {
        let kernel = kernel(
            "K(x: f32[P], z: f32[Q]) -> (y: f32[Q]) where P == 3 * Q + 2, R == P - 2 * Q, R <= P {
                y[i] = x[3 * i + 4] + z[i] + sum(|r in 0..R| x[r]); schedule y { bind i: grid; } }",
        );
        let solved = |text: &str| given(text).and_then(|g| complete(&kernel, &g)).map_err(|e| e.to_string());
        assert_eq!(kernel.dims.iter().map(|d| &*d.name).collect::<Vec<_>>(), ["P", "Q", "R"]);
        assert_eq!(solved("Q=5"), Ok(vec![17, 5, 7]));
        assert_eq!(solved("P=17"), Ok(vec![17, 5, 7]));
        assert_eq!(solved("P=16"), Err("no Q satisfies the fact `P == 3 * Q + 2` for P = 16".to_owned()));
        assert_eq!(solved("P=1"), Err("no Q satisfies the fact `P == 3 * Q + 2` for P = 1".to_owned()));
        // Both are given: whether they agree is for the launch to say.
        assert!(solved("P=17,Q=4").is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let kernel = strided();
        let error = |text: &str| given(text).and_then(|g| complete(&kernel, &g)).unwrap_err().to_string();
        assert_eq!(error("M=8"), "no value for N: add --dims N=…");
        assert_eq!(error("M=8,Q=3,N=1"), "the kernel has no dimension `Q`; it has M, N, ld, s, t");
        assert_eq!(error("M=8,N=-3"), "N = -3 is negative");
        assert_eq!(error("M=8,N=3,N=4"), "N is given twice");
        assert!(error("M").starts_with("`M` is no size"));
        assert!(error("M=99999999999999999999").contains("is no size"));
    }

    #[test]
    fn sizes_are_found_that_satisfy_the_facts() {
        let kernel = strided();
        let found = choose(&kernel, &[1, 2, 3, 4, 5, 8, 100], 7).unwrap();
        assert_eq!(found["M"] % 4, 0);
        assert_eq!(choose(&kernel, &[1, 2, 3], 7), None);
    }
}
