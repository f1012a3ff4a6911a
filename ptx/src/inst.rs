//! One instruction: guard, instruction of the table, modifiers, operands.

use std::sync::Arc;

use crate::isa::{Convergence, Effect, Form, Op};
use crate::modifier::{Flag, FlagView, Modifier};
use crate::operand::{Operand, RegId};
use crate::types::{ScalarType, Shape, StateSpace};
use crate::version::Requirement;

/// `@p` or `@!p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Guard {
    /// A predicate register.
    pub reg: RegId,
    /// Whether the instruction runs where the predicate is false.
    pub negated: bool,
}

/// An instruction.
///
/// `form` is an index into [`Op::forms`] of `op`: the spelling, out of the several that the table lists for one
/// instruction, that `modifiers` fill. Modifiers are kept in the order of that form's slots, absent optional ones left
/// out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inst {
    /// The guard, if any.
    pub guard: Option<Guard>,
    /// What it does.
    pub op: Op,
    /// Which of the instruction's forms it is.
    pub form: u16,
    /// Modifiers in the order of the form, which instructions of one form share.
    pub modifiers: Arc<[Modifier]>,
    /// Operands in the order of the form, absent optional ones left out.
    pub operands: Vec<Operand>,
    /// Line of the PTX text it was parsed from, from 1; 0 when it was built.
    pub line: u32,
}

impl Inst {
    /// The table's form.
    pub fn form(&self) -> &'static Form {
        &self.op.forms()[usize::from(self.form)]
    }

    /// The same instruction under a guard.
    pub fn guarded(mut self, reg: RegId, negated: bool) -> Inst {
        self.guard = Some(Guard { reg, negated });
        self
    }

    /// The type modifier number `index`, counted from 0 in the order of the form.
    pub fn ty(&self, index: usize) -> Option<ScalarType> {
        self.types().nth(index)
    }

    /// All type modifiers in order.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> + '_ {
        self.modifiers.iter().filter_map(|modifier| match modifier {
            Modifier::Type(ty) => Some(*ty),
            _ => None,
        })
    }

    /// The first state space; `None` means the generic address space for memory instructions.
    pub fn space(&self) -> Option<StateSpace> {
        self.spaces().next()
    }

    /// All state spaces in order (copies have two).
    pub fn spaces(&self) -> impl Iterator<Item = StateSpace> + '_ {
        self.modifiers.iter().filter_map(|modifier| match modifier {
            Modifier::Space(space) => Some(*space),
            _ => None,
        })
    }

    /// The matrix shape.
    pub fn shape(&self) -> Option<Shape> {
        self.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Shape(shape) => Some(*shape),
            _ => None,
        })
    }

    /// Whether a flag is among the modifiers.
    pub fn has(&self, flag: Flag) -> bool {
        self.modifiers.contains(&Modifier::Flag(flag))
    }

    /// The first modifier that means something in this view: `inst.find::<Rounding>()`.
    pub fn find<V: FlagView>(&self) -> Option<V> {
        self.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Flag(flag) => V::from_flag(*flag),
            _ => None,
        })
    }

    /// Mnemonic with modifiers, for messages: `add.rn.f32`.
    pub fn mnemonic(&self) -> String {
        let mut text = self.form().mnemonic.to_owned();
        for modifier in self.modifiers.iter() {
            text.push('.');
            text.push_str(&modifier.to_string());
        }
        text
    }

    /// What it does to memory.
    pub fn effect(&self) -> Effect {
        self.op.desc().effect
    }

    /// Which threads must execute it together.
    pub fn convergence(&self) -> Convergence {
        match self.op.desc().convergence {
            Convergence::None if self.has(Flag::Aligned) => Convergence::Aligned,
            other => other,
        }
    }

    /// Lowest PTX version and target for this instruction with these modifiers and operands.
    pub fn requirement(&self) -> Requirement {
        self.form().requirement(&self.modifiers, &self.operands)
    }
}
