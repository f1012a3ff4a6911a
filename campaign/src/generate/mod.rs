//! Random kernels with random schedules.
//!
//! The aim is that about half are accepted: shapes, types and reads mostly fit, schedules are mostly sensible, and each
//! part has a chance to be just wrong.

mod read;
mod reduction;
mod schedule;
mod value;

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;

use crate::ast::{Equation, Fact, Index, Kernel, Node, Op, Parameter, Role, Size, Value};
use crate::rng::Rng;

/// An axis in scope with its extent.
type Axis = (String, Size);

/// What expressions are made of.
struct Context<'r> {
    rng: &'r mut Rng,
    /// Everything that may be read: inputs and intermediates.
    tensors: Vec<Parameter>,
    /// Counter of fresh names.
    fresh: usize,
    /// The dimensions.
    dims: Vec<String>,
    /// First values of the axes of intermediates whose domains do not begin at 0, by tensor and by axis.
    lower: BTreeMap<String, Vec<i64>>,
    offsets: BTreeMap<String, i64>,
    /// Percentage of reads that may be out of bounds without a guard.
    careless: u32,
}

/// Names of the axes of an equation.
const AXES: [&str; 3] = ["i", "j", "k"];

/// Sizes that literals take.
const LITERALS: [i64; 12] = [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 64];

fn element(rng: &mut Rng) -> ElementType {
    use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};
    match rng.below(100) {
        0..48 => F32,
        48..56 => F16,
        56..63 => Bf16,
        63..70 => F64,
        70..76 => I32,
        76..79 => I64,
        79..82 => U8,
        82..85 => I8,
        85..87 => I16,
        87..89 => U16,
        89..90 => U32,
        90..91 => U64,
        91..93 => E4m3,
        93..95 => E5m2,
        95..97 => Tf32,
        _ => Bool,
    }
}

/// Whether a type is stored and converted, and nothing else.
fn is_storage(ty: ElementType) -> bool {
    matches!(ty, ElementType::Tf32 | ElementType::E4m3 | ElementType::E5m2)
}

/// A type that is computed with, not `bool`.
fn number(rng: &mut Rng) -> ElementType {
    match element(rng) {
        ElementType::Bool => ElementType::F32,
        ty if is_storage(ty) => ElementType::F32,
        ty => ty,
    }
}

/// Facts about dimensions.
fn facts(rng: &mut Rng, dims: &[String]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for d in dims {
        if rng.chance(35) {
            facts.push(Fact::Multiple(d.clone(), *rng.pick(&[2, 4, 8, 16, 3, 12])));
        }
        if rng.chance(12) {
            facts.push(Fact::AtMost(d.clone(), *rng.pick(&[4, 7, 16, 33, 64])));
        }
        if rng.chance(5) {
            facts.push(Fact::Equal(d.clone(), *rng.pick(&[1, 4, 12, 16])));
        }
        if rng.chance(5) {
            facts.push(Fact::AtLeast(d.clone(), *rng.pick(&[1, 2, 5])));
        }
    }
    for d in dims {
        if rng.chance(4) {
            let by = *rng.pick(&[2, 3, 4, 8]);
            facts.push(Fact::Residue(d.clone(), by, rng.range(1, by - 1)));
        }
        if rng.chance(4) {
            facts.push(Fact::NotEqual(d.clone(), rng.range(0, 6)));
        }
    }
    if dims.len() > 1 && rng.chance(7) {
        facts.push(Fact::NotMore(dims[1].clone(), dims[0].clone()));
    }
    if dims.len() > 1 && rng.chance(5) {
        facts.push(Fact::Times(dims[1].clone(), *rng.pick(&[2, 4]), dims[0].clone()));
    }
    facts
}

/// The kernel of a seed.
pub fn kernel(rng: &mut Rng) -> Kernel {
    let dims: Vec<String> = ["N", "M", "K"].iter().take(1 + rng.below(3)).map(|d| (*d).to_owned()).collect();
    let mut facts = facts(rng, &dims);
    // The outputs decide which sizes matter.
    let rank = *rng.pick(&[1, 1, 1, 2, 2, 2, 2, 3, 0]);
    let shape: Vec<Size> = (0..rank).map(|_| size(rng, &dims)).collect();
    let mut context = Context {
        rng,
        tensors: Vec::new(),
        fresh: 0,
        dims: dims.clone(),
        lower: BTreeMap::new(),
        offsets: BTreeMap::new(),
        careless: 0,
    };
    if context.rng.chance(12) {
        context.careless = 25;
    }
    let mut parameters = context.inputs(&shape, &mut facts);
    context.tensors.clone_from(&parameters);
    let mut equations = Vec::new();
    for name in ["t", "u"].into_iter().take(*context.rng.pick(&[0, 0, 0, 0, 0, 0, 1, 1, 2])) {
        let shifted = context.rng.chance(25);
        let lower: Vec<i64> = shape.iter().map(|_| if shifted { context.rng.range(-3, 3) } else { 0 }).collect();
        for (at, first) in lower.iter().enumerate() {
            context.offsets.insert(format!("{name}{}", AXES[at % 3]), *first);
        }
        let equation = context.equation(&[name.to_owned()], &shape, element);
        context.lower.insert(name.to_owned(), lower.clone());
        let ty = equation.value.ty;
        let tensor =
            Parameter { name: name.to_owned(), ty, shape: Some(shape.clone()), strides: None, role: Role::Input };
        context.tensors.push(tensor);
        let domain_written = context.rng.chance(if shifted { 90 } else { 60 });
        equations.push(Equation { lower, domain_written, inline: context.rng.chance(70), ..equation });
    }
    let outputs = *context.rng.pick(&[1, 1, 1, 1, 1, 2, 3]);
    for o in 0..outputs {
        let name = format!("z{o}");
        let wanted = if o == 0 || context.rng.chance(60) {
            shape.clone()
        } else {
            (0..context.rng.below(3)).map(|_| size(context.rng, &dims)).collect()
        };
        if context.rng.chance(7) {
            context.in_place(&name, &wanted, &mut parameters, &mut equations, &mut facts);
            continue;
        }
        let targets: Vec<String> =
            if context.rng.chance(5) { vec![name.clone(), format!("{name}b")] } else { vec![name.clone()] };
        let equation = context.equation(&targets, &wanted, element);
        for (at, target) in targets.iter().enumerate() {
            let strides = strides(context.rng, target, &wanted, &mut facts);
            let ty = match &equation.value.node {
                Node::Fold { states, .. } => states[at].init.ty,
                _ => equation.value.ty,
            };
            let shape = Some(wanted.clone());
            let output = Parameter { name: target.clone(), ty, shape, strides, role: Role::Output };
            if context.rng.chance(20) {
                context.tensors.push(output.clone());
            }
            parameters.push(output);
        }
        equations.push(equation);
    }
    if context.rng.chance(20) {
        equations.reverse();
    }
    let allow = context.rng.chance(5).then(|| *context.rng.pick(&["TW0690", "TW0790", "TW0112"]));
    let mut kernel = Kernel { parameters, facts, equations, threads: None, schedules: Vec::new(), allow };
    drop_unused(&mut kernel);
    // A dimension that no argument tells becomes a number.
    for dim in &dims {
        let tells = |p: &Parameter| p.shape.iter().flatten().any(|s| *s == Size::named(dim));
        if !kernel.parameters.iter().any(tells) && rng.chance(97) {
            kernel.fix(dim, *rng.pick(&[1, 3, 4, 8, 12]));
        }
    }
    schedule::attach(rng, &mut kernel);
    kernel
}

/// Removes intermediates and inputs that nothing reads, and facts about names that are gone.
pub(crate) fn drop_unused(kernel: &mut Kernel) {
    let text: String = kernel.equations.iter().map(|e| format!("{}\n", e.value)).collect();
    let reads = |name: &str| text.contains(&format!("{name}["));
    let is_output = |name: &str, k: &[Parameter]| k.iter().any(|p| p.name == name && p.role != Role::Input);
    let parameters = kernel.parameters.clone();
    kernel.equations.retain(|e| reads(&e.targets[0]) || is_output(&e.targets[0], &parameters));
    let text: String = kernel.equations.iter().map(|e| format!(" {} ", e.value)).collect();
    let word = |name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name);
    kernel.parameters.retain(|p| p.role != Role::Input || word(&p.name));
    let dims = kernel.dims();
    kernel.facts.retain(|f| f.dims().into_iter().all(|d| dims.iter().any(|o| o == d)));
    let facts = kernel.facts.clone();
    for op in kernel.schedules.iter_mut().flat_map(|(_, ops)| ops) {
        if let Op::Split { factor, named, .. } = op
            && named.as_ref().is_some_and(|d| !facts.contains(&Fact::Equal(d.clone(), *factor)))
        {
            *named = None;
        }
    }
}

fn size(rng: &mut Rng, dims: &[String]) -> Size {
    let dim = Size::named(rng.pick::<String>(dims));
    match rng.below(100) {
        0..66 => dim,
        66..88 => Size::literal(*rng.pick(&LITERALS)),
        88..92 => Size { mul: 2, ..dim },
        92..94 => Size { add: 2, ..dim },
        94..96 => Size { add: -1, ..dim },
        96..98 => Size { times: Some(rng.pick::<String>(dims).clone()), ..dim },
        _ => Size { div: rng.range(2, 4), ..dim },
    }
}

/// Strides for some tensors: padded rows, or a distance between the elements.
fn strides(rng: &mut Rng, name: &str, shape: &[Size], facts: &mut Vec<Fact>) -> Option<Vec<Size>> {
    if shape.is_empty() || !rng.chance(20) {
        return None;
    }
    let literals: Option<Vec<i64>> = shape[1..].iter().map(Size::as_literal).collect();
    if let Some(inner) = literals.filter(|_| rng.chance(40)) {
        // Padded by a literal amount, or with a literal distance.
        let mut pitch = *rng.pick(&[1, 1, 1, 2, 4]);
        let mut list = vec![Size::literal(pitch)];
        for extent in inner.iter().rev() {
            pitch = pitch * extent + *rng.pick(&[0, 1, 4]);
            list.insert(0, Size::literal(pitch));
        }
        return Some(list);
    }
    let mut list: Vec<Size> = Vec::new();
    for d in 0..shape.len() {
        let stride = format!("s{name}{d}");
        if d + 1 == shape.len() && rng.chance(85) {
            list.push(Size::literal(1));
            continue;
        }
        if rng.chance(50) {
            facts.push(Fact::Multiple(stride.clone(), *rng.pick(&[2, 4, 8, 16])));
        }
        list.push(Size::named(&stride));
    }
    if list.iter().all(|s| s.dim.is_none()) { None } else { Some(list) }
}

impl Context<'_> {
    /// Inputs, whose shapes are mostly that of the outputs, or nearly so, and scalars.
    fn inputs(&mut self, shape: &[Size], facts: &mut Vec<Fact>) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for i in 0..1 + self.rng.below(3) {
            let mut wanted: Vec<Size> = shape.to_vec();
            match self.rng.below(8) {
                6 if shape.len() == 2
                    && wanted.iter().all(|s| *s == Size { mul: 1, times: None, div: 1, add: 0, ..s.clone() }) =>
                {
                    // Both axes in one.
                    let times = wanted[1].dim.clone();
                    wanted = vec![Size { times, ..wanted[0].clone() }];
                }
                7 if self.rng.chance(40) => wanted.clear(),
                0 => wanted.reverse(),
                1 if !wanted.is_empty() => drop(wanted.remove(self.rng.below(shape.len()))),
                2 if wanted.len() < 3 => wanted.push(size(self.rng, &self.dims)),
                3 if !wanted.is_empty() => {
                    let at = self.rng.below(shape.len());
                    wanted[at] = size(self.rng, &self.dims);
                }
                _ => {}
            }
            let (ty, name) = (element(self.rng), ["x", "y", "w"][i].to_owned());
            let strides = strides(self.rng, &name, &wanted, facts);
            parameters.push(Parameter { name, ty, shape: Some(wanted), strides, role: Role::Input });
        }
        if self.rng.chance(25) {
            let ty = element(self.rng);
            parameters.push(Parameter { name: "a".to_owned(), ty, shape: None, strides: None, role: Role::Input });
        }
        parameters
    }

    fn name(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    /// `targets[axes] = value`, with the value's type from `pick`.
    fn equation(&mut self, targets: &[String], shape: &[Size], pick: fn(&mut Rng) -> ElementType) -> Equation {
        let prefix = if targets[0].starts_with('z') { "" } else { &targets[0] };
        let axes: Vec<Axis> =
            shape.iter().enumerate().map(|(d, s)| (format!("{prefix}{}", AXES[d % 3]), s.clone())).collect();
        let ty = pick(self.rng);
        let value = if targets.len() > 1 {
            self.fold(&axes, targets.len())
        } else {
            let reduce = self.rng.chance(35);
            let depth = 1 + self.rng.below(3) as u32;
            if reduce { self.reduced(ty, &axes, depth) } else { self.value(ty, &axes, depth) }
        };
        let (domain_written, inclusive) = (self.rng.chance(10), self.rng.chance(25));
        let lower = vec![0; axes.len()];
        Equation { targets: targets.to_vec(), axes, lower, domain_written, inclusive, value, inline: false }
    }

    /// An update in place: every element from itself and other tensors.
    fn in_place(
        &mut self,
        name: &str,
        shape: &[Size],
        parameters: &mut Vec<Parameter>,
        equations: &mut Vec<Equation>,
        facts: &mut Vec<Fact>,
    ) {
        let equation = self.equation(&[name.to_owned()], shape, number);
        let ty = equation.value.ty;
        let indices = equation.axes.iter().map(|(a, _)| Index::Axis(a.clone())).collect();
        let own = Value { ty, node: Node::Read { tensor: name.to_owned(), indices, or: None } };
        let sum = if ty == ElementType::Bool {
            Node::Infix("&&", Box::new(own), Box::new(equation.value))
        } else {
            Node::Infix("+", Box::new(own), Box::new(equation.value))
        };
        equations.push(Equation { value: Value { ty, node: sum }, ..equation });
        let first_output = parameters.iter().position(|p| p.role == Role::Output).unwrap_or(parameters.len());
        let strides = strides(self.rng, name, shape, facts);
        let parameter =
            Parameter { name: name.to_owned(), ty, shape: Some(shape.to_vec()), strides, role: Role::InOut };
        parameters.insert(first_output, parameter);
    }
}
