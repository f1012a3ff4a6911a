//! Random kernels with random schedules.
//!
//! The aim is that about half are accepted: shapes, types and reads mostly fit, schedules are mostly sensible, and each part
//! has a chance to be just wrong.

mod schedule;
mod value;

use tilewright_kernel::ElementType;

use crate::ast::{Equation, Fact, Index, Kernel, Node, Parameter, Role, Size, Value};
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
    /// Percentage of reads that may be out of bounds without a guard.
    careless: u32,
}

/// Sizes that literals take.
const LITERALS: [i64; 12] = [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 64];

fn element(rng: &mut Rng) -> ElementType {
    use ElementType::{Bf16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32};
    match rng.below(100) {
        0..55 => F32,
        55..63 => F16,
        63..71 => Bf16,
        71..77 => F64,
        77..84 => I32,
        84..87 => I64,
        87..90 => U8,
        90..93 => I8,
        93..95 => I16,
        95..97 => U16,
        97..98 => U32,
        _ => Bool,
    }
}

/// The kernel of a seed.
pub fn kernel(rng: &mut Rng) -> Kernel {
    let dims: Vec<String> = ["N", "M", "K"].iter().take(1 + rng.below(3)).map(|d| (*d).to_owned()).collect();
    let mut facts = Vec::new();
    for d in &dims {
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
    for d in &dims {
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
    // The outputs decide which sizes matter.
    let rank = *rng.pick(&[1, 1, 1, 2, 2, 2, 2, 3, 0]);
    let shape: Vec<Size> = (0..rank).map(|_| size(rng, &dims)).collect();
    let mut context = Context { rng, tensors: Vec::new(), fresh: 0, dims: dims.clone(), careless: 0 };
    if context.rng.chance(12) {
        context.careless = 25;
    }
    let mut parameters = Vec::new();
    for i in 0..1 + context.rng.below(3) {
        let mut wanted: Vec<Size> = shape.clone();
        match context.rng.below(6) {
            0 => wanted.reverse(),
            1 if !wanted.is_empty() => drop(wanted.remove(context.rng.below(rank))),
            2 if wanted.len() < 3 => wanted.push(size(context.rng, &dims)),
            3 if !wanted.is_empty() => {
                let at = context.rng.below(rank);
                wanted[at] = size(context.rng, &dims);
            }
            _ => {}
        }
        let (ty, name) = (element(context.rng), ["x", "y", "w"][i].to_owned());
        let strides = strides(context.rng, &name, &wanted, &mut facts);
        parameters.push(Parameter { name, ty, shape: Some(wanted), strides, role: Role::Input });
    }
    if context.rng.chance(25) {
        let ty = element(context.rng);
        parameters.push(Parameter { name: "a".to_owned(), ty, shape: None, strides: None, role: Role::Input });
    }
    context.tensors.clone_from(&parameters);
    let mut equations = Vec::new();
    for name in ["t", "u"].into_iter().take(*context.rng.pick(&[0, 0, 0, 0, 0, 0, 1, 1, 2])) {
        let equation = context.equation(&[name.to_owned()], &shape, element);
        let ty = equation.value.ty;
        let tensor =
            Parameter { name: name.to_owned(), ty, shape: Some(shape.clone()), strides: None, role: Role::Input };
        context.tensors.push(tensor);
        equations.push(Equation { domain_written: context.rng.chance(60), inline: context.rng.chance(70), ..equation });
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
            context.in_place(&name, &wanted, &mut parameters, &mut equations);
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
            parameters.push(Parameter { name: target.clone(), ty, shape, strides, role: Role::Output });
        }
        equations.push(equation);
    }
    let mut kernel = Kernel { parameters, facts, equations, threads: None, schedules: Vec::new() };
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
}

fn size(rng: &mut Rng, dims: &[String]) -> Size {
    match rng.below(100) {
        0..68 => Size::named(rng.pick::<String>(dims)),
        68..92 => Size::literal(*rng.pick(&LITERALS)),
        92..96 => Size { mul: 2, ..Size::named(rng.pick::<String>(dims)) },
        96..98 => Size { add: 2, ..Size::named(rng.pick::<String>(dims)) },
        _ => Size { add: -1, ..Size::named(rng.pick::<String>(dims)) },
    }
}

/// Strides for some tensors: padded rows, or a distance between the elements.
fn strides(rng: &mut Rng, name: &str, shape: &[Size], facts: &mut Vec<Fact>) -> Option<Vec<Size>> {
    if shape.is_empty() || !rng.chance(20) {
        return None;
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
    fn name(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    /// `targets[axes] = value`, with the value's type from `pick`.
    fn equation(&mut self, targets: &[String], shape: &[Size], pick: fn(&mut Rng) -> ElementType) -> Equation {
        let names = ["i", "j", "k"];
        let prefix = if targets[0].starts_with('z') { "" } else { &targets[0] };
        let axes: Vec<Axis> =
            shape.iter().enumerate().map(|(d, s)| (format!("{prefix}{}", names[d % 3]), s.clone())).collect();
        let ty = pick(self.rng);
        let value = if targets.len() > 1 {
            self.fold(&axes, targets.len())
        } else {
            let reduce = self.rng.chance(35);
            let depth = 1 + self.rng.below(3) as u32;
            if reduce { self.reduced(ty, &axes, depth) } else { self.value(ty, &axes, depth) }
        };
        Equation { targets: targets.to_vec(), axes, domain_written: self.rng.chance(10), value, inline: false }
    }

    /// An update in place: every element from itself and other tensors.
    fn in_place(&mut self, name: &str, shape: &[Size], parameters: &mut Vec<Parameter>, equations: &mut Vec<Equation>) {
        let equation = self.equation(&[name.to_owned()], shape, |_| ElementType::F32);
        let ty = equation.value.ty;
        let indices = equation.axes.iter().map(|(a, _)| Index::Axis(a.clone())).collect();
        let own = Value { ty, node: Node::Read { tensor: name.to_owned(), indices, or: None } };
        let sum = Node::Infix("+", Box::new(own), Box::new(equation.value));
        equations.push(Equation { value: Value { ty, node: sum }, ..equation });
        let first_output = parameters.iter().position(|p| p.role == Role::Output).unwrap_or(parameters.len());
        let parameter =
            Parameter { name: name.to_owned(), ty, shape: Some(shape.to_vec()), strides: None, role: Role::InOut };
        parameters.insert(first_output, parameter);
    }
}
