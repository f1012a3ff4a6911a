//! An interpreter of (algorithm, schedule) for concrete sizes that shares no code with the compiler: it applies every
//! op by its definition, enumerates all points, and finds holes, owners, vectors and reads. Slow and plain on purpose.

mod domain;
mod reads;
mod verdict;

pub use domain::{Domain, constant, reductions};
pub use reads::{Read, visit as visit_reads};
pub use verdict::{Access, Case, TooLarge, complete, fails, find, smallest};

use crate::ast::{Dims, Kernel, Role};

/// Points that one question may visit.
pub const BUDGET: u64 = 400_000;

/// The iteration domains of all outputs; none if an op does not apply to these sizes.
pub fn domains(kernel: &Kernel, dims: &Dims) -> Option<Vec<Domain>> {
    let outputs =
        kernel.equations.iter().filter(|e| kernel.parameter(&e.targets[0]).is_some_and(|p| p.role != Role::Input));
    outputs.map(|e| Domain::new(kernel, e, dims)).collect()
}

/// Whether every element, and every term of its reduction, is computed exactly once, all terms of an element by one
/// thread.
///
/// # Errors
/// What is wrong.
pub fn exactly_once(kernel: &Kernel, dims: &Dims) -> Result<(), String> {
    let Some(domains) = domains(kernel, dims) else { return Ok(()) };
    for domain in domains {
        // Without terms there are still the elements.
        let empty = domain.is_empty_reduction();
        let terms: i64 = domain.roots.iter().map(|r| domain.axes[*r].extent).product();
        if terms > BUDGET as i64 || domain.points() > BUDGET as i64 {
            continue;
        }
        let elements: i64 =
            domain.roots.iter().filter(|r| domain.axes[**r].data).map(|r| domain.axes[*r].extent).product();
        let mut times = vec![0_u32; if empty { elements } else { terms }.max(0) as usize];
        let mut owners: Vec<Option<(i64, i64)>> = vec![None; elements.max(0) as usize];
        let mut problem = None;
        let mut each = |leaves: &[i64], roots: Option<Vec<i64>>| {
            let Some(roots) = roots else { return true };
            times[domain.linear(&roots, empty)] += 1;
            let (element, owner) = (domain.linear(&roots, true), domain.owner(leaves));
            if owners[element].is_some_and(|before| before != owner) {
                problem = Some(format!("{}{roots:?} is computed by two threads", domain.stage));
            }
            owners[element] = Some(owner);
            problem.is_none()
        };
        if empty {
            domain.visit_elements(|leaves| each(leaves, domain.element_at(leaves)));
        } else {
            domain.visit(|leaves| each(leaves, domain.roots_at(leaves)));
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        if let Some(at) = times.iter().position(|n| *n != 1) {
            return Err(format!("term {at} of {} is computed {} times", domain.stage, times[at]));
        }
    }
    Ok(())
}
