//! Every check before a launch, over plain values: no device is needed to run or to test them.
//!
//! The compiler's proof holds for arguments that pass: shapes and strides as declared, all facts and requirements true,
//! bases aligned, outputs that overlap neither themselves nor anything else.

use tilewright_kernel::cluster::{ClusterFault, check_cluster};
use tilewright_kernel::info::{Argument, MOST_SIZE, MapError, ParameterKind, Role, TensorParameter};
use tilewright_kernel::rules::{self, View};
use tilewright_kernel::tensor_map::TensorMap;
use tilewright_kernel::{Constraint, KernelInfo, Size, SizeError};

use super::argument::{Given, GivenTensor};
use super::workspace::Layout;
use crate::error::Reason;

/// Largest number of blocks of a one-dimensional grid.
pub(crate) const GRID_LIMIT: i128 = (1 << 31) - 1;

/// A launch that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Value of each dimension.
    pub(crate) dims: Vec<i64>,
    /// There is nothing to compute: all outputs are empty.
    pub(crate) empty: bool,
    /// Position of the entry point to launch.
    pub(crate) entry: usize,
    /// Blocks of the grid; 0 only if `empty`.
    pub(crate) blocks: u32,
    /// What each `.param` of the entry point receives.
    pub(crate) parameters: Vec<Passed>,
    /// Where the memory of the launch itself lies.
    pub(crate) workspace: Layout,
}

/// What a `.param` receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A value, little-endian in the low bytes, and its width in bytes.
    Word(u64, u32),
    /// The address of a workspace, which is a word once the launch has one.
    Workspace(u16),
    /// A tensor map, to be encoded for the device.
    Map(Box<TensorMap>),
}

/// Runs all checks.
pub(crate) fn check(kernel: &KernelInfo, given: &[Given]) -> Result<Plan, Reason> {
    check_kinds(kernel, given)?;
    let dims = bind(kernel, given)?;
    let checker = Checker { kernel, dims: &dims };
    for (name, parameter, tensor) in tensors(kernel, given) {
        checker.shape(name, parameter, tensor)?;
        checker.strides(name, parameter, tensor)?;
    }
    for fact in kernel.facts.iter() {
        if !checker.holds("a fact", fact)? {
            return Err(Reason::Fact { fact: fact.text.to_string(), values: checker.values(fact) });
        }
    }
    let empty = kernel.computes_nothing(&dims);
    if let Some(dim) = dims.iter().position(|value| *value > MOST_SIZE).filter(|_| !empty) {
        let dimension = kernel.dims[dim].name.to_string();
        return Err(Reason::TooLarge { dimension, value: dims[dim], limit: MOST_SIZE });
    }
    // Requirements are about what the kernel does, and it does nothing for empty outputs.
    for requirement in kernel.requirements.iter().filter(|_| !empty) {
        if !checker.holds("a requirement", requirement)? {
            let requirement_text = requirement.text.to_string();
            return Err(Reason::Requirement { requirement: requirement_text, values: checker.values(requirement) });
        }
    }
    for (name, parameter, tensor) in tensors(kernel, given) {
        check_address(name, parameter, tensor)?;
    }
    check_aliasing(kernel, given)?;
    let blocks = if empty { 0 } else { checker.blocks()? };
    let entry = if empty { 0 } else { checker.entry()? };
    // Nothing is launched for empty outputs, and a tensor without elements has no map.
    let parameters = if empty { Vec::new() } else { parameters(kernel, given, &dims, entry)? };
    let workspace = if empty { Layout::default() } else { Layout::new(kernel, &dims, || checker.all_dims())? };
    Ok(Plan { dims, empty, entry, blocks, parameters, workspace })
}

/// The tensor parameters with their arguments.
fn tensors<'a>(
    kernel: &'a KernelInfo,
    given: &'a [Given],
) -> impl Iterator<Item = (&'a str, &'a TensorParameter, &'a GivenTensor)> {
    kernel.parameters.iter().zip(given).filter_map(|(parameter, given)| match (&parameter.kind, given) {
        (ParameterKind::Tensor(declared), Given::Tensor(tensor)) => Some((&*parameter.name, declared, tensor)),
        _ => None,
    })
}

/// Numbers, kinds, element types and ranks. The generated struct makes these hold; the command line may not.
fn check_kinds(kernel: &KernelInfo, given: &[Given]) -> Result<(), Reason> {
    if given.len() != kernel.parameters.len() {
        return Err(Reason::ArgumentCount { expected: kernel.parameters.len(), found: given.len() });
    }
    for (parameter, given) in kernel.parameters.iter().zip(given) {
        let name = || parameter.name.to_string();
        let kind = |expected, found| Err(Reason::ArgumentKind { parameter: name(), expected, found });
        let found = match (&parameter.kind, given) {
            (ParameterKind::Scalar, Given::Scalar { element, .. }) => *element,
            (ParameterKind::Scalar, Given::Tensor(_)) => return kind("a scalar", "a tensor"),
            (ParameterKind::Tensor(_), Given::Scalar { .. }) => return kind("a tensor", "a scalar"),
            (ParameterKind::Tensor(declared), Given::Tensor(tensor)) => {
                if declared.role.is_written() && !tensor.writable {
                    return kind("an output", "a tensor that may only be read");
                }
                let (expected, found) = (declared.shape.len(), tensor.shape.len());
                if expected != found || tensor.strides.len() != found {
                    return Err(Reason::Rank { parameter: name(), expected, found });
                }
                tensor.element
            }
        };
        let expected = parameter.element;
        if found != expected {
            return Err(Reason::ArgumentType { parameter: name(), expected, found });
        }
    }
    Ok(())
}

/// The value of every dimension.
fn bind(kernel: &KernelInfo, given: &[Given]) -> Result<Vec<i64>, Reason> {
    let views: Vec<Option<View<'_>>> = (given.iter())
        .map(|given| match given {
            Given::Tensor(t) => Some(View { shape: &t.shape, strides: &t.strides }),
            Given::Scalar { .. } => None,
        })
        .collect();
    let bound = rules::bind_dims(kernel, &views).map_err(|conflict| {
        let place = |(_, parameter, axis, what): (i64, usize, usize, rules::Origin)| {
            let name = kernel.parameters.get(parameter).map_or("?", |p| &*p.name);
            format!("{name}.{what}[{axis}]")
        };
        Reason::DimensionConflict {
            dimension: kernel.dim_name(conflict.dim).to_owned(),
            first: conflict.first.0,
            first_at: place(conflict.first),
            second: conflict.second.0,
            second_at: place(conflict.second),
        }
    })?;
    let unknown = |d: usize| Reason::DimensionUnknown { dimension: kernel.dims[d].name.to_string() };
    let mut values: Vec<i64> = bound.iter().map(|v| v.unwrap_or(0)).collect();
    let mut known: Vec<bool> = bound.iter().map(Option::is_some).collect();
    for solved in kernel.solved.iter() {
        let dim = usize::from(solved.dim);
        if known.get(dim).copied().unwrap_or(true) {
            continue;
        }
        if let Some(open) = solved.value.dims().find(|&d| !known.get(usize::from(d)).copied().unwrap_or(false)) {
            return Err(unknown(usize::from(open).min(dim)));
        }
        let checker = Checker { kernel, dims: &values };
        let value = checker.eval(|| format!("dimension {}", kernel.dim_name(solved.dim)), &solved.value)?;
        values[dim] = i64::try_from(value).map_err(|_| checker.no_value(solved.dim, SizeError::Overflow))?;
        known[dim] = true;
    }
    match known.iter().position(|known| !known) {
        Some(dim) => Err(unknown(dim)),
        None => Ok(values),
    }
}

/// Checks against the values of the dimensions.
struct Checker<'a> {
    kernel: &'a KernelInfo,
    dims: &'a [i64],
}

impl Checker<'_> {
    fn eval(&self, what: impl FnOnce() -> String, size: &Size) -> Result<i128, Reason> {
        size.eval(self.dims).map_err(|error| Reason::Size { what: what(), error, dims: self.all_dims() })
    }

    fn no_value(&self, dim: u16, error: SizeError) -> Reason {
        Reason::Size { what: format!("dimension {}", self.kernel.dim_name(dim)), error, dims: self.all_dims() }
    }

    fn all_dims(&self) -> String {
        let all: Vec<u16> = (0..self.dims.len()).filter_map(|d| u16::try_from(d).ok()).collect();
        self.named(&all)
    }

    /// `N = 8, M = 3`
    fn named(&self, dims: &[u16]) -> String {
        let value = |d: u16| self.dims.get(usize::from(d)).map_or_else(|| "?".to_owned(), i64::to_string);
        let each: Vec<String> = dims.iter().map(|&d| format!("{} = {}", self.kernel.dim_name(d), value(d))).collect();
        each.join(", ")
    }

    fn mentioned(&self, size: &Size) -> String {
        let mut dims: Vec<u16> = size.dims().collect();
        dims.sort_unstable();
        dims.dedup();
        self.named(&dims)
    }

    fn holds(&self, what: &str, constraint: &Constraint) -> Result<bool, Reason> {
        let lhs = self.eval(|| format!("{what}, `{}`,", constraint.text), &constraint.lhs)?;
        let rhs = self.eval(|| format!("{what}, `{}`,", constraint.text), &constraint.rhs)?;
        Ok(constraint.relation.holds(lhs, rhs))
    }

    /// The values behind a constraint: `N = 10, where N % 4 = 2`.
    fn values(&self, constraint: &Constraint) -> String {
        let names = |d: u16| self.kernel.dim_name(d);
        let mut text = self.named(&constraint.dims());
        for side in [&constraint.lhs, &constraint.rhs] {
            if side.as_dim().is_none()
                && side.as_constant().is_none()
                && let Ok(value) = side.eval(self.dims)
            {
                let joint = if text.contains("where") { " and" } else { ", where" };
                text.push_str(&format!("{joint} {} = {value}", side.display(&names)));
            }
        }
        text
    }

    /// Every extent is the declared one.
    fn shape(&self, name: &str, declared: &TensorParameter, tensor: &GivenTensor) -> Result<(), Reason> {
        for (axis, (size, &found)) in declared.shape.iter().zip(&tensor.shape).enumerate() {
            self.extent(|| format!("{name}.shape[{axis}]"), size, found)?;
        }
        Ok(())
    }

    fn extent(&self, at: impl Fn() -> String, size: &Size, found: i64) -> Result<(), Reason> {
        let expected = self.eval(&at, size)?;
        if expected == i128::from(found) {
            return Ok(());
        }
        let names = |d: u16| self.kernel.dim_name(d);
        let (declared, dims) = (size.display(&names).to_string(), self.mentioned(size));
        Err(Reason::Extent { at: at(), declared, expected, found, dims })
    }

    /// Strides are as declared, or row-major; no output overlaps itself. A stride along an extent of at most 1 is never
    /// used.
    fn strides(&self, name: &str, declared: &TensorParameter, tensor: &GivenTensor) -> Result<(), Reason> {
        if tensor.is_empty() {
            return Ok(());
        }
        let (shape, strides) = (&tensor.shape, &tensor.strides);
        match &declared.strides {
            None if !rules::is_row_major(shape, strides) => {
                return Err(Reason::NotContiguous {
                    parameter: name.to_owned(),
                    shape: shape.clone(),
                    strides: strides.clone(),
                });
            }
            None => {}
            Some(sizes) => {
                for (axis, (size, &found)) in sizes.iter().zip(strides).enumerate() {
                    if shape[axis] > 1 {
                        self.extent(|| format!("{name}.strides[{axis}]"), size, found)?;
                    }
                }
            }
        }
        if declared.role.is_written() && !rules::is_injective(shape, strides) {
            return Err(Reason::SelfOverlap {
                parameter: name.to_owned(),
                shape: shape.clone(),
                strides: strides.clone(),
            });
        }
        Ok(())
    }

    /// Number of blocks, within what a launch can have.
    fn blocks(&self) -> Result<u32, Reason> {
        let launch = &self.kernel.launch;
        let blocks = self.eval(|| "the number of blocks".to_owned(), &launch.blocks)?;
        let fits = u32::try_from(blocks).ok().filter(|_| (1..=GRID_LIMIT).contains(&blocks));
        let Some(count) = fits else {
            return Err(Reason::Grid { blocks, limit: GRID_LIMIT, dims: self.mentioned(&launch.blocks) });
        };
        match check_cluster([count, 1, 1], [launch.cluster.max(1), 1, 1]) {
            Ok(()) => Ok(count),
            Err(ClusterFault::Indivisible { .. }) => Err(Reason::Cluster { blocks, cluster: launch.cluster }),
            Err(fault) => Err(Reason::ClusterSize { fault }),
        }
    }

    fn entry(&self) -> Result<usize, Reason> {
        self.kernel.entry_for(self.dims).ok_or_else(|| Reason::NoEntry { dims: self.all_dims() })
    }
}

/// The base is aligned, and the last byte has an address.
fn check_address(name: &str, declared: &TensorParameter, tensor: &GivenTensor) -> Result<(), Reason> {
    if tensor.is_empty() {
        return Ok(());
    }
    let size = tensor.element.bytes();
    let alignment = declared.alignment.max(size);
    if !tensor.address.is_multiple_of(u64::from(alignment)) {
        return Err(Reason::Alignment { parameter: name.to_owned(), address: tensor.address, alignment });
    }
    match byte_range(tensor) {
        Some(_) => Ok(()),
        None => Err(Reason::AddressOverflow { parameter: name.to_owned() }),
    }
}

/// First address and one past the last; none beyond the (signed) address space.
pub(crate) fn byte_range(tensor: &GivenTensor) -> Option<(u64, u64)> {
    let Some((_, last)) = rules::offset_range(&tensor.shape, &tensor.strides) else {
        return Some((tensor.address, tensor.address));
    };
    let end = last
        .checked_add(1)?
        .checked_mul(i128::from(tensor.element.bytes()))?
        .checked_add(i128::from(tensor.address))?;
    let end = i64::try_from(end).ok()?;
    Some((tensor.address, end as u64))
}

/// No output shares a byte with another argument.
fn check_aliasing(kernel: &KernelInfo, given: &[Given]) -> Result<(), Reason> {
    let all: Vec<_> = tensors(kernel, given).filter(|(_, _, t)| !t.is_empty()).collect();
    for (i, (output, declared, tensor)) in all.iter().enumerate() {
        if !declared.role.is_written() {
            continue;
        }
        for (j, (other, other_declared, other_tensor)) in all.iter().enumerate() {
            // Each pair of outputs once.
            let seen = other_declared.role != Role::Input && j < i;
            if i == j || seen || rules::are_disjoint(&placed(tensor), &placed(other_tensor)) {
                continue;
            }
            return Err(Reason::Aliasing {
                output: (*output).to_owned(),
                output_range: byte_range(tensor).unwrap_or((tensor.address, u64::MAX)),
                other: (*other).to_owned(),
                other_range: byte_range(other_tensor).unwrap_or((other_tensor.address, u64::MAX)),
            });
        }
    }
    Ok(())
}

fn placed(tensor: &GivenTensor) -> rules::Placed<'_> {
    rules::Placed {
        address: tensor.address,
        view: View { shape: &tensor.shape, strides: &tensor.strides },
        element_bytes: tensor.element.bytes(),
    }
}

/// What each `.param` of an entry point receives.
fn parameters(kernel: &KernelInfo, given: &[Given], dims: &[i64], entry: usize) -> Result<Vec<Passed>, Reason> {
    let address = |p: u16| match given.get(usize::from(p)) {
        Some(Given::Tensor(tensor)) => tensor.address,
        _ => 0,
    };
    let mut passed = Vec::with_capacity(kernel.arguments.len());
    let arguments = kernel.entries.get(entry).map(|entry| kernel.arguments_of(entry));
    for argument in arguments.into_iter().flatten() {
        passed.push(match argument {
            Argument::Address(p) => Passed::Word(address(p), 8),
            Argument::Scalar(p) => match given.get(usize::from(p)) {
                Some(Given::Scalar { element, bits }) => Passed::Word(*bits, element.bytes()),
                _ => Passed::Word(0, 8),
            },
            Argument::Dim(d) => Passed::Word(dims.get(usize::from(d)).copied().unwrap_or(0).cast_unsigned(), 8),
            Argument::Workspace(w) => Passed::Workspace(w),
            Argument::Map(m) => {
                let Some(map) = kernel.maps.get(usize::from(m)) else { continue };
                let refuse = |error: MapError| Reason::TensorMap {
                    stage: map.name.to_string(),
                    parameter: kernel.parameters.get(usize::from(map.parameter)).map_or("?", |p| &*p.name).to_owned(),
                    why: error.to_string(),
                };
                Passed::Map(Box::new(map.at(address(map.parameter), dims).map_err(refuse)?))
            }
        });
    }
    Ok(passed)
}
