//! Which equation reads which: dependency order, cycles, and tensors that are defined never, twice, or for nobody.

use tilewright_sorted::{SortedMap, SortedSet};

use super::names::plain;
use super::signature::{LIMIT, Signature};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    AssignedInput, CyclicEquations, DefinedTwice, DuplicateName, NeverDefined, NeverRead, NoOutput, TooMany,
    UnusedInput,
};
use crate::source::{Span, ast};
use tilewright_kernel::info::{ParameterKind, Role};

/// An equation with its place in dependency order (its position in [`Plan::equations`]).
#[derive(Debug)]
pub(super) struct Planned<'a> {
    pub ast: &'a ast::Equation,
    pub span: Span,
    /// For each target: the parameter that receives it.
    pub parameters: Vec<Option<u16>>,
}

/// The equations in dependency order.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub equations: Vec<Planned<'a>>,
    /// Equation and component that define a tensor.
    pub targets: SortedMap<&'a str, (u16, u16)>,
}

/// Orders the equations; `None` if they are cyclic, so that nothing after makes sense.
pub(super) fn plan<'a>(kernel: &'a ast::Kernel, signature: &Signature, diags: &mut Diagnostics) -> Option<Plan<'a>> {
    let written: Vec<&ast::Equation> =
        kernel.items.iter().filter_map(|item| if let ast::Item::Equation(e) = item { Some(e) } else { None }).collect();
    if let Some(extra) = written.get(LIMIT) {
        diags.report(TooMany { what: "equations", limit: LIMIT, span: extra.head });
        return None;
    }
    let mut definer: SortedMap<&str, (usize, Span)> = SortedMap::new();
    for (position, equation) in written.iter().enumerate() {
        for target in &equation.targets {
            let name = plain(target);
            let role = signature.tensors.get(name).and_then(|&p| signature.tensor(p)).map(|t| t.role);
            if role == Some(Role::Input) {
                let position = usize::from(signature.tensors[name]);
                let declared = signature.parameter_spans[position];
                diags.report(AssignedInput { name: name.to_owned(), declared, span: target.span });
            } else if signature.is_scalar_input(name) {
                let position = signature.parameters.iter().position(|p| p.name == name).unwrap_or(0);
                let first = signature.parameter_spans[position];
                diags.report(DuplicateName { name: name.to_owned(), first, second: target.span });
            } else if let Some(&(_, first)) = definer.get(name) {
                diags.report(DefinedTwice { name: name.to_owned(), first, second: target.span });
            } else {
                definer.insert(name, (position, target.span));
            }
        }
    }
    let reads: Vec<SortedSet<&str>> = written.iter().map(|e| tensors_read(e)).collect();
    if kernel.outputs.is_empty() && kernel.inputs.iter().all(|p| p.inout.is_none()) {
        let first = written.first().and_then(|e| e.targets.first().map(|t| (plain(t).to_owned(), e.axes.len())));
        diags.report(NoOutput { name: plain(&kernel.name).to_owned(), defines: first, span: kernel.name.span });
        return None;
    }
    report_unused(signature, &written, &definer, &reads, diags);
    let order = sort(&written, signature, &definer, &reads, diags)?;

    let mut targets = SortedMap::new();
    let mut equations = Vec::with_capacity(order.len());
    for (place, &position) in (0..).zip(&order) {
        let ast = written[position];
        let parameters = ast.targets.iter().map(|t| signature.tensors.get(plain(t)).copied()).collect();
        for (component, target) in (0..).zip(&ast.targets) {
            targets.entry(plain(target)).or_insert((place, component));
        }
        equations.push(Planned { ast, span: ast.span, parameters });
    }
    Some(Plan { equations, targets })
}

/// Warns of inputs that nothing reads; for kernels that are right otherwise.
pub(super) fn warn_unused(kernel: &ast::Kernel, diags: &mut Diagnostics) {
    for param in &kernel.inputs {
        let (name, is_scalar) = (plain(&param.name), param.ty.shape.is_none());
        let equations =
            kernel.items.iter().filter_map(|item| if let ast::Item::Equation(e) = item { Some(e) } else { None });
        let mut used = param.inout.is_some();
        for equation in equations {
            used = used || if is_scalar { mentions(equation, name) } else { tensors_read(equation).contains(name) };
        }
        if !used {
            diags.report(UnusedInput { name: name.to_owned(), span: param.name.span });
        }
    }
}

/// Reports outputs without an equation, and equations for nobody.
fn report_unused(
    signature: &Signature,
    written: &[&ast::Equation],
    definer: &SortedMap<&str, (usize, Span)>,
    reads: &[SortedSet<&str>],
    diags: &mut Diagnostics,
) {
    for (position, parameter) in signature.parameters.iter().enumerate() {
        let name: &str = &parameter.name;
        let span = signature.parameter_spans[position];
        let ParameterKind::Tensor(tensor) = &parameter.kind else { continue };
        if tensor.role.is_written() && !definer.contains_key(name) {
            diags.report(NeverDefined { name: name.to_owned(), rank: tensor.shape.len(), span });
        }
    }
    // A read of a tensor that does not exist may mean any of them; it is reported where it is read.
    let exists = |name: &&str| definer.contains_key(name) || signature.tensors.contains_key(*name);
    if !reads.iter().flatten().all(exists) {
        return;
    }
    for (name, (position, span)) in definer {
        let siblings = &written[*position].targets;
        // A component of a fold may be there only for the others' sake.
        let needed = |t: &ast::Name| {
            signature.parameters.iter().any(|p| p.name == plain(t)) || reads.iter().any(|r| r.contains(plain(t)))
        };
        if !siblings.iter().any(needed) {
            diags.report(NeverRead { name: (*name).to_owned(), span: *span });
        }
    }
}

/// Positions in dependency order, the earliest written first among those that are ready.
fn sort(
    written: &[&ast::Equation],
    signature: &Signature,
    definer: &SortedMap<&str, (usize, Span)>,
    reads: &[SortedSet<&str>],
    diags: &mut Diagnostics,
) -> Option<Vec<usize>> {
    let is_in_place = |name: &str| {
        let tensor = signature.tensors.get(name).and_then(|&p| signature.tensor(p));
        tensor.is_some_and(|t| t.role == Role::InOut)
    };
    // What is read of an in-place tensor is what was there before: no dependence.
    let needs: Vec<SortedSet<usize>> = reads
        .iter()
        .map(|names| {
            let computed = names.iter().filter(|name| !is_in_place(name));
            computed.filter_map(|name| definer.get(name)).map(|&(position, _)| position).collect()
        })
        .collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); written.len()];
    for (reader, needed) in needs.iter().enumerate() {
        for &position in needed {
            readers[position].push(reader);
        }
    }
    let mut missing: Vec<usize> = needs.iter().map(SortedSet::len).collect();
    let mut ready: SortedSet<usize> = (0..written.len()).filter(|&e| missing[e] == 0).collect();
    let mut order = Vec::with_capacity(written.len());
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for &reader in &readers[next] {
            missing[reader] -= 1;
            if missing[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    if order.len() == written.len() {
        return Some(order);
    }
    let cycle = find_cycle(&needs, &missing);
    let names = cycle.iter().map(|&e| written[e].targets.first().map_or("", plain).to_owned()).collect();
    let spans = cycle.iter().map(|&e| written[e].head).collect();
    let of_tuple = if let [only] = cycle[..] { read_within(written[only], &is_in_place) } else { None };
    diags.report(CyclicEquations { names, spans, of_tuple });
    None
}

/// The first read of a tensor that is not updated in place by the value of another one that the equation defines.
fn read_within(equation: &ast::Equation, is_in_place: &dyn Fn(&str) -> bool) -> Option<(String, String, Span)> {
    let ast::ExprKind::Tuple(parts) = &equation.value.kind else { return None };
    let mut found = None;
    for (target, part) in equation.targets.iter().zip(parts) {
        let others = || equation.targets.iter().map(plain).filter(|name| *name != plain(target));
        part.visit(&mut |e| {
            if let ast::ExprKind::Read(read) = &e.kind
                && let Some(other) = others().find(|name| *name == plain(&read.tensor) && !is_in_place(name))
            {
                found.get_or_insert_with(|| (plain(target).to_owned(), other.to_owned(), e.span));
            }
        });
    }
    found
}

/// A cycle among the equations that still miss something, each needing the next, starting at the earliest written.
fn find_cycle(needs: &[SortedSet<usize>], missing: &[usize]) -> Vec<usize> {
    let stuck = |e: &usize| missing[*e] > 0;
    let mut path: Vec<usize> = Vec::new();
    let mut seen = vec![false; needs.len()];
    let mut at = (0..needs.len()).find(stuck).expect("an equation is missing from the order");
    // Every stuck equation needs a stuck one, so the walk runs into itself.
    while !seen[at] {
        seen[at] = true;
        path.push(at);
        at = needs[at].iter().copied().find(stuck).expect("a stuck equation needs a stuck one");
    }
    let start = path.iter().position(|&e| e == at).expect("the walk met its own path");
    let mut cycle = path.split_off(start);
    let earliest = cycle.iter().enumerate().min_by_key(|(_, e)| **e).map_or(0, |(i, _)| i);
    cycle.rotate_left(earliest);
    cycle
}

/// Names of the tensors that an equation reads.
fn tensors_read(equation: &ast::Equation) -> SortedSet<&str> {
    let mut names = SortedSet::new();
    for part in equation.parts() {
        part.visit(&mut |e| {
            if let ast::ExprKind::Read(read) = &e.kind {
                names.insert(plain(&read.tensor));
            }
        });
    }
    names
}

fn mentions(equation: &ast::Equation, name: &str) -> bool {
    let mut found = false;
    for part in equation.parts() {
        part.visit(&mut |e| found |= matches!(&e.kind, ast::ExprKind::Name(n) if plain(n) == name));
    }
    found
}
