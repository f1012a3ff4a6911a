//! Promises about the data of a launch: that no two terms of a scatter by `only` belong to one element.
//!
//! **Property.** The elements that terms belong to are those that the algorithm says, for the data as it is now; what
//! the terms are is not asked. **Approximation.** Where an index depends on a value that the host does not know
//! exactly, such as the place of the largest `approx::exp`, nothing is said.

use std::collections::BTreeSet;

use tilewright_kernel::algorithm::{Algorithm, IndexId, Source, Value, ValueId};
use tilewright_kernel::{KernelInfo, workers};

use super::{DEEPEST, STACK, chains, decoded, evaluator, scope};
use crate::error::Result;
use crate::launch::Given;

/// A kernel with promises, and the arguments of a launch.
#[derive(Debug)]
pub(crate) struct Promise {
    kernel: KernelInfo,
    given: Vec<Given>,
    dims: Vec<i64>,
}

impl Promise {
    /// What a launch with these arguments promises; none if that is nothing.
    pub(crate) fn of(kernel: &KernelInfo, given: &[Given], dims: &[i64]) -> Option<Self> {
        let promises = |value: &Value| matches!(value, Value::Scatter { op: None, .. });
        let any = kernel.algorithm.values.iter().any(promises);
        any.then(|| Self { kernel: kernel.clone(), given: given.to_vec(), dims: dims.to_vec() })
    }

    /// How the data that the arguments hold now breaks a promise, if it does and the host can tell.
    ///
    /// # Errors
    /// The arguments cannot be read.
    pub(crate) fn broken(&self) -> Result<Option<String>> {
        let (algorithm, chains) = chains(&self.kernel.algorithm);
        let mut algorithm = algorithm.into_owned();
        let scatters: Vec<usize> = (0..algorithm.equations.len()).filter(|at| is_promise(&algorithm, *at)).collect();
        for at in &scatters {
            forget_terms(&mut algorithm, *at);
        }
        let needed = Needed::by(&algorithm, &scatters);
        let arguments = decoded(&self.kernel, &self.given, &|parameter| needed.parameters.contains(&parameter))?;
        if scope::depth(&algorithm) > DEEPEST {
            return Ok(None);
        }
        let mut evaluator = evaluator(&self.kernel, (&algorithm, chains), &self.dims, arguments, u64::MAX);
        let run = || {
            for (at, equation) in algorithm.equations.iter().enumerate() {
                let results = match needed.equations.contains(&at) {
                    // What cannot be evaluated says nothing, nor does what depends on it.
                    true => evaluator.equation(equation).unwrap_or_default(),
                    false => Vec::new(),
                };
                evaluator.equations.push(results);
            }
            evaluator.broken.into_inner()
        };
        Ok(workers::with_stack(STACK, run).unwrap_or_default())
    }
}

/// Whether an equation is a scatter by `only`.
fn is_promise(algorithm: &Algorithm, equation: usize) -> bool {
    let components = &algorithm.components[algorithm.equations[equation].components.range()];
    components.iter().any(|c| matches!(algorithm.values[c.value as usize], Value::Scatter { op: None, .. }))
}

/// Makes the terms of a scatter 0: which elements have one is left.
fn forget_terms(algorithm: &mut Algorithm, equation: usize) {
    for at in algorithm.equations[equation].components.range() {
        let (value, zero) = (algorithm.components[at].value as usize, algorithm.values.len() as ValueId);
        let ty = algorithm.types[value];
        if let Value::Scatter { term, .. } = &mut algorithm.values.to_mut()[value] {
            *term = zero;
        }
        algorithm.values.to_mut().push(Value::Literal(0));
        algorithm.types.to_mut().push(ty);
    }
}

/// What some equations are made of.
struct Needed {
    equations: BTreeSet<usize>,
    parameters: BTreeSet<u16>,
}

impl Needed {
    fn by(algorithm: &Algorithm, equations: &[usize]) -> Self {
        let mut needed = Self { equations: BTreeSet::new(), parameters: BTreeSet::new() };
        let mut open: Vec<usize> = equations.to_vec();
        while let Some(at) = open.pop() {
            if !needed.equations.insert(at) {
                continue;
            }
            let equation = &algorithm.equations[at];
            let components = &algorithm.components[equation.components.range()];
            let mut values: Vec<ValueId> = components.iter().map(|component| component.value).collect();
            for axis in &algorithm.axis_lists[equation.axes.range()] {
                let axis = &algorithm.axes[*axis as usize];
                let ends: [IndexId; 2] = [axis.lower, axis.upper];
                ends.into_iter().for_each(|index| algorithm.index_values(index, &mut values));
            }
            let mut seen = BTreeSet::new();
            while let Some(value) = values.pop() {
                if !seen.insert(value) {
                    continue;
                }
                match algorithm.values[value as usize] {
                    Value::Read { source: Source::Parameter(parameter), .. } => {
                        needed.parameters.insert(parameter);
                    }
                    Value::Read { source: Source::Equation { equation, .. }, .. } => open.push(usize::from(equation)),
                    // What it holds before takes part in nothing, but it has to be there.
                    Value::Scatter { .. } => needed.parameters.extend(components.iter().filter_map(|c| c.parameter)),
                    _ => {}
                }
                values.extend(algorithm.operands(value));
            }
        }
        needed
    }
}
