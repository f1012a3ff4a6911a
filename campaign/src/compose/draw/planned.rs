//! Which tensors there are, of which types, and who reads whom.

use crate::compose::ast::{States, Type};
use crate::rng::Rng;

/// The tensors that are not inputs, as they are decided before their equations are drawn.
pub(super) struct Planned {
    pub name: &'static str,
    /// The type of what is computed.
    pub ty: Type,
    /// Its axes, by letters.
    pub axes: Vec<&'static str>,
    pub output: bool,
    /// Whether it is updated in place.
    pub in_place: bool,
    /// The axes that its equation reduces over.
    pub reduces: Vec<&'static str>,
    /// Its states, if that is a fold with several.
    pub states: Option<States>,
    /// The types of what its equation defines beside it, as a tuple.
    pub beside: Vec<Type>,
    /// Numbers of tensors that it reads.
    pub reads: Vec<usize>,
}

impl Planned {
    /// The type that its terms are computed in, where most is computed in `own`: a `bool` is a comparison at the end.
    pub fn of_terms(&self, own: Type) -> Type {
        if self.ty == Type::Bool { own } else { self.ty }
    }

    /// What it defines: a name of its own, and further ones behind an underscore.
    pub fn targets(&self) -> Vec<(String, Type)> {
        let types = self.states.map_or_else(|| [vec![self.ty], self.beside.clone()].concat(), |s| s.types(self.ty));
        let name = |n: usize| match n {
            0 => self.name.to_owned(),
            _ => format!("{}_{n}", self.name),
        };
        types.into_iter().enumerate().map(|(n, ty)| (name(n), ty)).collect()
    }
}

/// Types of equations beside those of the kernel's own type.
const OTHERS: [Type; 12] = [
    Type::F32,
    Type::F32,
    Type::F64,
    Type::F64,
    Type::I32,
    Type::I32,
    Type::I64,
    Type::F16,
    Type::Bf16,
    Type::U32,
    Type::I16,
    Type::U8,
];

/// Takes axes away from a tensor, for its equation to reduce over.
fn taken(rng: &mut Rng, own: &mut Vec<&'static str>) -> Vec<&'static str> {
    let one = |rng: &mut Rng, own: &mut Vec<&'static str>| {
        if rng.chance(80) { own.pop() } else { Some(own.remove(0)) }
    };
    let mut axes: Vec<&'static str> = one(rng, own).into_iter().collect();
    if !own.is_empty() && rng.chance(if own.len() > 1 { 14 } else { 5 }) {
        axes.extend(one(rng, own));
        axes.sort_unstable();
    }
    axes
}

fn kind(rng: &mut Rng, ty: Type) -> (Type, Option<States>) {
    if rng.chance(5) {
        return (Type::Bool, None);
    }
    let ty = if rng.chance(10) { *rng.pick(&OTHERS) } else { ty };
    (ty, rng.chance(14).then(|| *rng.pick(&States::ALL)))
}

/// What an equation defines beside a tensor: mostly nothing, but what is updated in place often is beside another.
fn beside(rng: &mut Rng, ty: Type, states: Option<States>, in_place: bool) -> Vec<Type> {
    if states.is_some() || ty == Type::Bool || !rng.chance(if in_place { 50 } else { 12 }) {
        return Vec::new();
    }
    (0..*rng.pick(&[1, 1, 2])).map(|_| if rng.chance(25) { *rng.pick(&OTHERS) } else { ty }).collect()
}

/// Which tensors there are, and who reads whom: each intermediate is read by one or two of those before it.
pub(super) fn planned(rng: &mut Rng, axes: &[&'static str], ty: Type) -> Vec<Planned> {
    let mut list: Vec<Planned> = Vec::new();
    let outputs = if rng.chance(28) { 2 } else { 1 };
    for name in &["y", "z"][..outputs] {
        let mut own = axes.to_vec();
        let mut reduces = Vec::new();
        if own.len() > 1 && rng.chance(if *name == "y" { 22 } else { 35 }) {
            reduces = taken(rng, &mut own);
        }
        let (ty, states) = kind(rng, ty);
        let states = states.filter(|_| !reduces.is_empty());
        let in_place = states.is_none() && ty != Type::Bool && rng.chance(8);
        let beside = beside(rng, ty, states, in_place);
        list.push(Planned { name, ty, axes: own, output: true, in_place, reduces, states, beside, reads: Vec::new() });
    }
    // An output that another one reads is computed there once more.
    if outputs > 1 && !list[1].in_place && rng.chance(20) {
        list[0].reads.push(1);
    }
    let count = *rng.pick(&[0, 1, 1, 1, 2, 2, 2, 3]);
    for name in &["t", "u", "s"][..count] {
        let mut own = axes.to_vec();
        let mut reduces = Vec::new();
        if rng.chance(35) {
            if own.len() > 1 {
                reduces = taken(rng, &mut own);
            } else {
                reduces.push("j");
            }
        }
        let (ty, states) = kind(rng, ty);
        let states = states.filter(|_| !reduces.is_empty());
        let at = list.len();
        let (in_place, beside) = (false, beside(rng, ty, states, false));
        list.push(Planned { name, ty, axes: own, output: false, in_place, reduces, states, beside, reads: Vec::new() });
        let reader = if rng.chance(60) { at - 1 } else { rng.below(at) };
        list[reader].reads.push(at);
        if rng.chance(35) {
            let other = rng.below(at);
            if !list[other].reads.contains(&at) {
                list[other].reads.push(at);
            }
        }
    }
    list
}
