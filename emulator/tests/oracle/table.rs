//! The instruction table, variant by variant: every form with every combination of its modifiers, every immediate of a
//! short range, every width that a register may have, with and without the second result.

use tilewright_ptx::isa::{Form, ImmRule, Op, OperandKind, OperandSpec, Presence};
use tilewright_ptx::{Modifier, ScalarType};

/// One instruction without its operands.
#[derive(Clone, Debug)]
pub struct Variant {
    pub form: &'static Form,
    /// The modifiers' words, in order.
    pub words: Vec<String>,
    /// The type modifiers, in order.
    pub types: Vec<ScalarType>,
    /// What is written: one result, or a result and a predicate.
    pub results: Vec<Place>,
    pub sources: Vec<Source>,
    /// Whether the last source is the carry, which no operand names.
    pub carry_in: bool,
    /// Whether the last result is the carry.
    pub carry_out: bool,
}

/// A result.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub ty: ScalarType,
    /// Bits of the register.
    pub register: u32,
}

/// An operand that is read.
#[derive(Clone, Debug)]
pub struct Source {
    pub ty: ScalarType,
    pub register: u32,
    /// Whether a constant may stand here.
    pub constant: bool,
    /// The constant that stands here and nothing else.
    pub fixed: Option<i64>,
}

impl Variant {
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    pub fn ty(&self, number: usize) -> ScalarType {
        self.types[number]
    }

    /// Mnemonic and modifiers.
    pub fn head(&self) -> String {
        let words = self.words.iter().map(|word| format!(".{word}"));
        std::iter::once(self.form.mnemonic.to_owned()).chain(words).collect()
    }

    /// As [`Variant::head`], with the sizes of registers and constants.
    pub fn name(&self) -> String {
        let results: Vec<String> = self.results.iter().map(|place| place.register.to_string()).collect();
        let sources = self.sources.iter().map(|source| match source.fixed {
            Some(value) => format!("#{value}"),
            None => source.register.to_string(),
        });
        format!("{} {} <- {}", self.head(), results.join("|"), sources.collect::<Vec<_>>().join(", "))
    }
}

/// Every variant of an instruction.
pub fn variants(op: Op) -> Vec<Variant> {
    let mut all = Vec::new();
    for form in op.forms() {
        for modifiers in combinations(form) {
            expand(form, &modifiers, &mut all);
        }
    }
    all
}

/// Every choice of modifiers that the form allows.
fn combinations(form: &Form) -> Vec<Vec<Modifier>> {
    let mut chosen: Vec<Vec<Modifier>> = vec![Vec::new()];
    for slot in &form.slots {
        let mut longer = Vec::new();
        for choice in &chosen {
            if slot.optional {
                longer.push(choice.clone());
            }
            for (modifier, _) in &slot.alternatives {
                longer.push(choice.iter().copied().chain([*modifier]).collect());
            }
        }
        chosen = longer;
    }
    chosen.retain(|modifiers| form.arrange(modifiers, false).is_some());
    chosen
}

/// The registers that may hold a type.
fn registers(ty: ScalarType, widening: bool) -> Vec<u32> {
    if ty == ScalarType::Pred {
        return vec![1];
    }
    let least = ty.bits().max(16);
    [16, 32, 64, 128]
        .into_iter()
        .filter(|bits| if widening { *bits >= least && *bits <= 64 } else { *bits == least })
        .collect()
}

fn expand(form: &'static Form, modifiers: &[Modifier], all: &mut Vec<Variant>) {
    let words = modifiers.iter().map(Modifier::to_string).collect();
    let types = modifiers.iter().filter_map(|modifier| match modifier {
        Modifier::Type(ty) => Some(*ty),
        _ => None,
    });
    let mut chosen = vec![Variant {
        form,
        words,
        types: types.collect(),
        results: Vec::new(),
        sources: Vec::new(),
        carry_in: matches!(form.mnemonic, "addc" | "subc" | "madc"),
        carry_out: false,
    }];
    let present = |spec: &&OperandSpec| match &spec.presence {
        Presence::Always | Presence::Optional => true,
        Presence::WithAny(any) => any.iter().any(|modifier| modifiers.contains(modifier)),
    };
    for spec in form.operands.iter().filter(present) {
        let ty = if matches!(spec.kind, OperandKind::Pred) {
            ScalarType::Pred
        } else {
            form.operand_type(spec, modifiers).unwrap_or(ScalarType::S32)
        };
        let mut longer = Vec::new();
        for variant in chosen {
            for register in registers(ty, spec.widening) {
                let mut next = variant.clone();
                if !spec.written {
                    // No constant is a half.
                    let half = matches!(ty, ScalarType::F16 | ScalarType::Bf16);
                    let constant = !half && !matches!(spec.kind, OperandKind::Reg | OperandKind::Pred);
                    for fixed in constants(&spec.kind) {
                        let mut next = next.clone();
                        next.sources.push(Source { ty, register, constant, fixed });
                        longer.push(next);
                    }
                    continue;
                }
                next.results.push(Place { ty, register });
                if let OperandKind::Pair { optional } = spec.kind {
                    if optional {
                        longer.push(next.clone());
                    }
                    next.results.push(Place { ty: ScalarType::Pred, register: 1 });
                }
                longer.push(next);
            }
        }
        chosen = longer;
    }
    for variant in &mut chosen {
        variant.carry_out = variant.has("cc");
        if variant.carry_in {
            variant.sources.push(Source { ty: ScalarType::Pred, register: 1, constant: false, fixed: None });
        }
        if variant.carry_out {
            variant.results.push(Place { ty: ScalarType::Pred, register: 1 });
        }
    }
    all.extend(chosen);
}

/// The constants of a position that takes nothing else.
fn constants(kind: &OperandKind) -> Vec<Option<i64>> {
    match kind {
        OperandKind::Imm(ImmRule::Range(least, greatest)) if greatest - least < 256 => {
            (*least..=*greatest).map(Some).collect()
        }
        OperandKind::Imm(rule) => vec![Some(rule.example())],
        _ => vec![None],
    }
}
