//! A form of an instruction as data, and how modifiers and operands are matched against it. The notation of the table's
//! lines is in `notation`.

use std::ops::Deref;
use std::sync::OnceLock;

use super::notation;
use crate::isa::Op;
use crate::modifier::{Flag, FlagView as _, MatrixCount, MatrixOrder, Modifier, TensorRank, VectorWidth};
use crate::operand::Operand;
use crate::types::{ScalarType, StateSpace};
use crate::version::{PtxVersion, Requirement};

/// One spelling of an instruction: a line of the table, and what it says, which is read when it is first asked for. A
/// macro starts anew in each build, and to read the whole table takes as long as the rest of a small kernel.
#[derive(Debug)]
pub struct Form {
    /// The instruction.
    pub op: Op,
    /// Index among the instruction's forms.
    pub index: u16,
    /// The line of the table.
    pub syntax: &'static str,
    said: OnceLock<Said>,
}

/// What a line of the table says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// The word before the first dot.
    pub mnemonic: &'static str,
    /// Modifier positions in order.
    pub slots: Vec<Slot>,
    /// Operand positions in order.
    pub operands: Vec<OperandSpec>,
    /// What the form needs whatever its modifiers.
    pub requirement: Requirement,
    /// Modifiers that may not stand together: none of the first with any of the second.
    pub exclusions: Vec<(Vec<Modifier>, Vec<Modifier>)>,
    /// Whether no modifier and no operand position needs more than the form does.
    pub(crate) is_plain: bool,
}

impl Form {
    pub(super) const fn new(op: Op, index: u16, syntax: &'static str) -> Self {
        Self { op, index, syntax, said: OnceLock::new() }
    }
}

impl Deref for Form {
    type Target = Said;

    fn deref(&self) -> &Said {
        // The table is part of this crate and every line is read by a test, so a mistake cannot reach a user.
        let read = || {
            Said::read(self.syntax).unwrap_or_else(|error| {
                panic!("instruction table, {}: `{}`: {error}", self.op.desc().name, self.syntax)
            })
        };
        self.said.get_or_init(read)
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        (self.op, self.index) == (other.op, other.index)
    }
}

impl Eq for Form {}

/// A position for one modifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// What may stand here, with what each needs.
    pub alternatives: Vec<(Modifier, Requirement)>,
    /// Whether it may be left out.
    pub optional: bool,
}

impl Slot {
    /// Whether its words, standing first, complete the mnemonic: `cp.async`, `mbarrier.arrive`, `mul.wide`.
    fn names(&self) -> bool {
        let completes = |word: &Modifier| matches!(word, Modifier::Flag(flag) if flag.completes_mnemonic());
        self.alternatives.iter().all(|(word, _)| completes(word))
    }

    fn need(&self, modifier: Modifier) -> Option<Requirement> {
        self.alternatives.iter().find(|(candidate, _)| *candidate == modifier).map(|(_, need)| *need)
    }
}

/// A position for one operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandSpec {
    /// Name in the manual's syntax line.
    pub name: &'static str,
    /// Whether it is written.
    pub written: bool,
    /// What may stand here.
    pub kind: OperandKind,
    /// Its type.
    pub ty: TypeRule,
    /// How many elements.
    pub count: Count,
    /// What a constant at a position of kind [`OperandKind::Source`] may be, beyond fitting the type.
    pub range: Option<ImmRule>,
    /// Whether a register may be wider than the type (`ld`, `st`, `cvt`; 9.4.1).
    pub widening: bool,
    /// Whether `_` may stand here.
    pub sink: bool,
    /// When it is there.
    pub presence: Presence,
    /// What its presence needs.
    pub requirement: Requirement,
}

/// What may stand at an operand position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// A register.
    Reg,
    /// A register or an immediate.
    Source,
    /// A register, an immediate, a special register or the address of a symbol.
    Any,
    /// `_` and nothing else.
    Sink,
    /// A register or a vector of equal parts of it.
    Pack,
    /// As `Any`, or a vector of equal parts.
    AnyPack,
    /// A predicate register, perhaps negated, or an immediate.
    Pred,
    /// A result and a predicate; the second may be left out when `optional`.
    Pair {
        /// Whether a single register will do.
        optional: bool,
    },
    /// An immediate.
    Imm(ImmRule),
    /// A memory operand.
    Address(Option<StateSpace>),
    /// `[map, {coordinates}]`.
    Tensor,
    /// A label.
    Label,
    /// A table of labels.
    Table,
    /// A function, or a register that holds its address.
    Callee,
    /// `(a, b)`.
    List,
}

/// Which immediates are allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImmRule {
    /// Any integer.
    Any,
    /// An inclusive range.
    Range(i64, i64),
    /// An inclusive range, multiples of the third number only.
    Multiple(i64, i64, i64),
    /// One of these.
    OneOf(Vec<i64>),
}

impl ImmRule {
    /// Whether the rule allows the value.
    pub fn allows(&self, value: i128) -> bool {
        match self {
            ImmRule::Any => true,
            ImmRule::Range(lo, hi) => (i128::from(*lo)..=i128::from(*hi)).contains(&value),
            ImmRule::Multiple(lo, hi, step) => {
                (i128::from(*lo)..=i128::from(*hi)).contains(&value) && value % i128::from(*step) == 0
            }
            ImmRule::OneOf(values) => values.iter().any(|allowed| i128::from(*allowed) == value),
        }
    }

    /// A value that the rule allows.
    pub fn example(&self) -> i64 {
        match self {
            ImmRule::Any => 1,
            ImmRule::Range(lo, _) => *lo,
            ImmRule::Multiple(lo, _, step) => (lo + step - 1) / step * step,
            ImmRule::OneOf(values) => values.first().copied().unwrap_or(0),
        }
    }
}

/// The type of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeRule {
    /// The type modifier of this number.
    Slot(u8),
    /// Twice as wide as the first type modifier.
    Wide,
    /// This type.
    Fixed(ScalarType),
    /// Has none: labels, functions.
    Untyped,
}

/// The number of elements of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// A single one, not in braces.
    Scalar,
    /// A vector of this many.
    Fixed(u16),
    /// By `.v2 .v4 .v8`; scalar without.
    Vector,
    /// By `.x1 .x2 .x4`.
    Matrices,
    /// `m·n/128` by the shape.
    Accumulators,
    /// `m·n/256` by the shape.
    PackedAccumulators,
    /// Tensor rank less two.
    Offsets,
}

/// When an operand is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Always.
    Always,
    /// It may be left out.
    Optional,
    /// Exactly when one of these modifiers is there.
    WithAny(Vec<Modifier>),
}

impl Form {
    /// Puts modifiers into the order of the slots; `None` when they are not this form's. With `any_order`, words that
    /// follow the name may come in any order, as the assembler takes them: the words of one kind keep theirs.
    pub fn arrange(&self, modifiers: &[Modifier], any_order: bool) -> Option<Vec<Modifier>> {
        if !notation::may_have(self.syntax, modifiers) || modifiers.len() > self.slots.len() {
            return None;
        }
        let has = |any: &[Modifier]| any.iter().any(|modifier| modifiers.contains(modifier));
        if self.exclusions.iter().any(|(first, second)| has(first) && has(second)) {
            return None;
        }
        if !any_order {
            return in_order(&self.slots, modifiers).then(|| modifiers.to_vec());
        }
        let (mut filled, mut rest) = (vec![None; self.slots.len()], modifiers);
        for (slot, filled) in self.slots.iter().zip(&mut filled).take_while(|(slot, _)| slot.names()) {
            match rest.split_first() {
                Some((word, others)) if slot.need(*word).is_some() => (*filled, rest) = (Some(*word), others),
                _ if slot.optional => {}
                _ => return None,
            }
        }
        // What the name leaves out has no other place.
        let named = self.slots.iter().take_while(|slot| slot.names()).count();
        fill(&self.slots[named..], rest, &mut filled[named..]).then(|| filled.into_iter().flatten().collect())
    }

    /// The operand positions that `count` operands fill, given the modifiers; `None` when the number is wrong.
    pub fn bind<'a>(&'a self, modifiers: &'a [Modifier], count: usize) -> Option<Bound<'a>> {
        let (mut required, mut optional) = (0, 0);
        for spec in &self.operands {
            match &spec.presence {
                Presence::Always => required += 1,
                Presence::Optional => optional += 1,
                Presence::WithAny(any) => required += usize::from(has_any(modifiers, any)),
            }
        }
        let given = count.checked_sub(required)?;
        (given <= optional).then_some(Bound { specs: &self.operands, modifiers, optional: given })
    }

    /// What the form needs with these modifiers and operands.
    pub fn requirement(&self, modifiers: &[Modifier], operands: &[Operand]) -> Requirement {
        let mut need = self.requirement;
        if !self.is_plain {
            let mut slots = self.slots.iter();
            for modifier in modifiers {
                if let Some(of_modifier) = slots.by_ref().find_map(|slot| slot.need(*modifier)) {
                    need = need.and(of_modifier);
                }
            }
            for spec in self.bind(modifiers, operands.len()).into_iter().flatten() {
                need = need.and(spec.requirement);
            }
        }
        for operand in operands {
            match operand {
                Operand::Special(special) => need = need.and(special.requirement()),
                // `_` at the place of an operand.
                Operand::Sink => {
                    need = need.and(Requirement { version: PtxVersion::new(7, 1), ..Requirement::ANCIENT });
                }
                _ => {}
            }
        }
        need
    }

    /// The type of an operand under these modifiers.
    pub fn operand_type(&self, spec: &OperandSpec, modifiers: &[Modifier]) -> Option<ScalarType> {
        let type_number = |number: usize| {
            let mut types = modifiers.iter().filter_map(|modifier| match modifier {
                Modifier::Type(ty) => Some(*ty),
                _ => None,
            });
            types.nth(number)
        };
        match spec.ty {
            TypeRule::Slot(number) => type_number(usize::from(number)),
            TypeRule::Wide => type_number(0).and_then(ScalarType::widened),
            TypeRule::Fixed(ty) => Some(ty),
            TypeRule::Untyped => None,
        }
    }

    /// The number of elements of an operand under these modifiers: `None` for a scalar without braces.
    pub fn operand_count(&self, spec: &OperandSpec, modifiers: &[Modifier]) -> Option<usize> {
        let flags = || {
            modifiers.iter().filter_map(|modifier| match modifier {
                Modifier::Flag(flag) => Some(*flag),
                _ => None,
            })
        };
        let accumulators = || {
            modifiers.iter().find_map(|modifier| match modifier {
                Modifier::Shape(shape) => Some(usize::from(shape.m) * usize::from(shape.n) / 128),
                _ => None,
            })
        };
        match spec.count {
            Count::Scalar => None,
            Count::Fixed(count) => Some(usize::from(count)),
            Count::Vector => flags().find_map(VectorWidth::from_flag).map(VectorWidth::elements),
            Count::Matrices => flags().find_map(MatrixCount::from_flag).map(MatrixCount::matrices),
            Count::Accumulators => accumulators(),
            Count::PackedAccumulators => accumulators().map(|count| count / 2),
            Count::Offsets => flags().find_map(TensorRank::from_flag).map(|rank| rank.dimensions().saturating_sub(2)),
        }
    }
}

/// Words of which a form may have several, so that their order says which is which: the types of results and operands,
/// the spaces that a copy goes to and comes from, the layouts of two matrices, priorities of two parts, and the steps
/// of a product of bits. Any other word is of a kind of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Type,
    Space,
    Layout,
    Priority,
    Operation,
    Single(Modifier),
}

impl Kind {
    fn of(word: Modifier) -> Kind {
        match word {
            Modifier::Type(_) => Kind::Type,
            Modifier::Space(_) => Kind::Space,
            Modifier::Flag(flag) if MatrixOrder::from_flag(flag).is_some() => Kind::Layout,
            Modifier::Flag(Flag::L2EvictFirst | Flag::L2EvictLast | Flag::L2EvictNormal | Flag::L2EvictUnchanged) => {
                Kind::Priority
            }
            Modifier::Flag(Flag::And | Flag::Or | Flag::Xor | Flag::Popc) => Kind::Operation,
            Modifier::Shape(_) | Modifier::Flag(_) => Kind::Single(word),
        }
    }
}

/// The operand positions that operands fill, in order.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    specs: &'a [OperandSpec],
    modifiers: &'a [Modifier],
    /// How many positions that may be left out are filled still.
    optional: usize,
}

impl<'a> Iterator for Bound<'a> {
    type Item = &'a OperandSpec;

    fn next(&mut self) -> Option<&'a OperandSpec> {
        loop {
            let (spec, rest) = self.specs.split_first()?;
            self.specs = rest;
            match &spec.presence {
                Presence::Always => return Some(spec),
                Presence::Optional if self.optional > 0 => {
                    self.optional -= 1;
                    return Some(spec);
                }
                Presence::WithAny(any) if has_any(self.modifiers, any) => return Some(spec),
                Presence::Optional | Presence::WithAny(_) => {}
            }
        }
    }
}

fn has_any(modifiers: &[Modifier], any: &[Modifier]) -> bool {
    any.iter().any(|modifier| modifiers.contains(modifier))
}

/// Whether the modifiers fill the slots in order.
fn in_order(slots: &[Slot], modifiers: &[Modifier]) -> bool {
    let Some((slot, rest)) = slots.split_first() else {
        return modifiers.is_empty();
    };
    if let Some((first, others)) = modifiers.split_first()
        && slot.need(*first).is_some()
        && in_order(rest, others)
    {
        return true;
    }
    slot.optional && in_order(rest, modifiers)
}

/// Puts words, each into a free slot that takes it and, if words of its kind came before, after theirs, so that no slot
/// that must be filled stays free.
fn fill(slots: &[Slot], words: &[Modifier], filled: &mut [Option<Modifier>]) -> bool {
    let Some((word, rest)) = words.split_first() else {
        return slots.iter().zip(filled).all(|(slot, filled)| slot.optional || filled.is_some());
    };
    let of_kind = |other: &Option<Modifier>| other.is_some_and(|other| Kind::of(other) == Kind::of(*word));
    let after = filled.iter().rposition(of_kind).map_or(0, |slot| slot + 1);
    for slot in after..slots.len() {
        if filled[slot].is_none() && slots[slot].need(*word).is_some() {
            filled[slot] = Some(*word);
            if fill(slots, rest, filled) {
                return true;
            }
            filled[slot] = None;
        }
    }
    false
}
