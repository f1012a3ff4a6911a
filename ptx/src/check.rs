//! Operands against the positions of a form: the one place that says whether an operand may stand where it stands. Used
//! by the builder and the parser to choose between forms, and by the verifier.

use crate::isa::{Count, Form, ImmRule, OperandKind, OperandSpec, forms_of};
use crate::modifier::{FlagView as _, Modifier, TensorRank};
use crate::module::RegTable;
use crate::operand::{AddressBase, Immediate, Operand, RegId};
use crate::types::{ScalarType, TypeClass};

/// Why an operand may not stand where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperandFault {
    /// Another kind of operand is needed.
    Kind {
        /// What is needed, in words.
        expected: &'static str,
    },
    /// A register of another type.
    RegisterType {
        /// The register.
        reg: RegId,
        /// Its type.
        found: ScalarType,
        /// The type at this position.
        expected: ScalarType,
    },
    /// A register that is not declared in this function.
    UnknownRegister(RegId),
    /// A constant that does not fit the type.
    ImmediateType {
        /// The constant.
        value: Immediate,
        /// The type at this position.
        expected: ScalarType,
    },
    /// A constant outside what the instruction allows.
    ImmediateValue {
        /// The constant.
        value: Immediate,
        /// What is allowed.
        allowed: ImmRule,
    },
    /// A vector of another length.
    Length {
        /// Elements at this position.
        expected: usize,
        /// Elements found.
        found: usize,
    },
}

impl std::fmt::Display for OperandFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OperandFault::Kind { expected } => write!(f, "expected {expected}"),
            OperandFault::RegisterType { found, expected, .. } => {
                write!(f, "a .{found} register where the instruction takes .{expected}")
            }
            OperandFault::UnknownRegister(reg) => {
                write!(f, "register {} is not declared in this function", reg.0)
            }
            OperandFault::ImmediateType { value, expected } => {
                write!(f, "{value} is no .{expected} constant")
            }
            OperandFault::ImmediateValue { value, allowed } => match allowed {
                ImmRule::Any => write!(f, "{value} is not allowed"),
                ImmRule::Range(lo, hi) => write!(f, "{value} is not in {lo}..{hi}"),
                ImmRule::Multiple(lo, hi, step) => {
                    write!(f, "{value} is not a multiple of {step} in {lo}..{hi}")
                }
                ImmRule::OneOf(values) => {
                    let values: Vec<String> = values.iter().map(i64::to_string).collect();
                    write!(f, "{value} is not one of {}", values.join(", "))
                }
            },
            OperandFault::Length { expected, found } => {
                write!(f, "{found} elements where {expected} are needed")
            }
        }
    }
}

/// Why no form takes the modifiers and operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SelectFault {
    /// The table has no such mnemonic.
    Mnemonic,
    /// No form has these modifiers.
    Modifiers,
    /// The forms with these modifiers have other numbers of operands.
    OperandCount {
        /// Operands found.
        found: usize,
        /// The table's line of the first such form.
        syntax: &'static str,
    },
    /// An operand does not fit.
    Operand {
        /// Its position from 0.
        index: usize,
        /// Why.
        fault: OperandFault,
        /// The form with these modifiers that fits best.
        form: &'static Form,
    },
}

/// A form with the modifiers in its order.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The form.
    pub form: &'static Form,
    /// The modifiers in the order of its slots.
    pub modifiers: Vec<Modifier>,
}

/// No form fits.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// Why.
    pub fault: SelectFault,
    /// The form with these modifiers that fits best, if any has them.
    pub nearest: Option<Selected>,
}

/// Chooses the form of `mnemonic` that takes these modifiers and operands; returns it with the modifiers in its order.
/// Types of registers are compared when `regs` is given.
pub fn select(
    mnemonic: &str,
    modifiers: &[Modifier],
    operands: &[Operand],
    regs: Option<&RegTable>,
) -> Result<Selected, Rejected> {
    let mut fault = SelectFault::Mnemonic;
    let mut best: Option<(usize, &'static Form, Vec<Modifier>)> = None;
    for any_order in [false, true] {
        for form in forms_of(mnemonic) {
            if fault == SelectFault::Mnemonic {
                fault = SelectFault::Modifiers;
            }
            let Some(arranged) = form.arrange(modifiers, any_order) else {
                continue;
            };
            match check_operands(form, &arranged, operands, regs) {
                Ok(()) => {
                    return Ok(Selected { form, modifiers: arranged });
                }
                Err(None) => {
                    if fault == SelectFault::Modifiers {
                        fault = SelectFault::OperandCount { found: operands.len(), syntax: form.syntax };
                    }
                }
                Err(Some((index, operand_fault))) => {
                    if best.as_ref().is_none_or(|(depth, ..)| index > *depth) {
                        best = Some((index, form, arranged));
                        fault = SelectFault::Operand { index, fault: operand_fault, form };
                    }
                }
            }
        }
        if best.is_some() {
            break;
        }
    }
    Err(Rejected { fault, nearest: best.map(|(_, form, modifiers)| Selected { form, modifiers }) })
}

/// Checks all operands of a form: `Err(None)` when their number is wrong, otherwise position and fault of the first bad
/// one.
pub fn check_operands(
    form: &Form,
    modifiers: &[Modifier],
    operands: &[Operand],
    regs: Option<&RegTable>,
) -> Result<(), Option<(usize, OperandFault)>> {
    let mut specs = form.bind(modifiers, operands.len()).ok_or(None)?;
    for (index, operand) in operands.iter().enumerate() {
        let Some(spec) = specs.next() else { break };
        if let Err(fault) = check_operand(form, spec, modifiers, operand, regs) {
            return Err(Some((index, fault)));
        }
    }
    Ok(())
}

fn check_operand(
    form: &Form,
    spec: &OperandSpec,
    modifiers: &[Modifier],
    operand: &Operand,
    regs: Option<&RegTable>,
) -> Result<(), OperandFault> {
    let wrong = |expected| Err(OperandFault::Kind { expected });
    let ty = form.operand_type(spec, modifiers);
    let sinks = spec.written && spec.count == Count::Vector;
    if let Some(expected) = form.operand_count(spec, modifiers) {
        return match operand {
            Operand::Vector(elements) if elements.len() == expected => {
                elements.iter().try_for_each(|element| match element {
                    Operand::Sink if sinks => Ok(()),
                    _ => check_scalar(spec, ty, element, regs),
                })
            }
            Operand::Vector(elements) => Err(OperandFault::Length { expected, found: elements.len() }),
            _ if expected == 1 => check_scalar(spec, ty, operand, regs),
            _ => wrong("a vector in braces"),
        };
    }
    match &spec.kind {
        OperandKind::Imm(rule) => match operand {
            Operand::Imm(value) => match value.int_value() {
                Some(number) if rule.allows(number) => Ok(()),
                _ => Err(OperandFault::ImmediateValue { value: *value, allowed: rule.clone() }),
            },
            _ => wrong("a constant"),
        },
        OperandKind::Sink => match operand {
            Operand::Sink => Ok(()),
            _ => wrong("the sink `_`"),
        },
        OperandKind::Address(_) => match operand {
            Operand::Address(address) => check_base(address.base, regs),
            _ => wrong("an address in brackets"),
        },
        OperandKind::Tensor => {
            let rank = modifiers.iter().find_map(|modifier| match modifier {
                Modifier::Flag(flag) => TensorRank::from_flag(*flag).map(TensorRank::dimensions),
                _ => None,
            });
            match operand {
                Operand::Tensor(address, coords) => {
                    check_base(address.base, regs)?;
                    if let Some(expected) = rank
                        && coords.len() != expected
                    {
                        return Err(OperandFault::Length { expected, found: coords.len() });
                    }
                    coords.iter().try_for_each(|coord| check_scalar(spec, Some(ScalarType::S32), coord, regs))
                }
                _ => wrong("a tensor map and coordinates in brackets"),
            }
        }
        OperandKind::Label => match operand {
            Operand::Label(_) => Ok(()),
            _ => wrong("a label"),
        },
        OperandKind::Table => match operand {
            Operand::Label(_) => Ok(()),
            _ => wrong("the name of a table or prototype"),
        },
        OperandKind::Callee => match operand {
            Operand::Symbol(crate::operand::Symbol::Function(_), 0) | Operand::Reg(_) => Ok(()),
            _ => wrong("a function"),
        },
        OperandKind::List => match operand {
            Operand::List(_) => Ok(()),
            _ => wrong("a list in parentheses"),
        },
        OperandKind::Pair { optional } => match operand {
            Operand::Pair(first, second) => {
                check_scalar(spec, ty, first, regs)?;
                check_scalar(spec, Some(ScalarType::Pred), second, regs)
            }
            _ if *optional => check_scalar(spec, ty, operand, regs),
            _ => wrong("two results: `d|p`"),
        },
        OperandKind::Pack | OperandKind::AnyPack => match operand {
            Operand::Vector(elements) => check_pack(ty, elements, spec.written, regs),
            _ => check_scalar(spec, ty, operand, regs),
        },
        OperandKind::Reg | OperandKind::Source | OperandKind::Any | OperandKind::Pred => {
            check_scalar(spec, ty, operand, regs)
        }
    }
}

fn check_base(base: AddressBase, regs: Option<&RegTable>) -> Result<(), OperandFault> {
    let (AddressBase::Reg(reg), Some(regs)) = (base, regs) else {
        return Ok(());
    };
    match regs.ty(reg) {
        None => Err(OperandFault::UnknownRegister(reg)),
        Some(found) if matches!(found.bits(), 32 | 64) && !found.is_float() => Ok(()),
        Some(found) => Err(OperandFault::RegisterType { reg, found, expected: ScalarType::U64 }),
    }
}

/// A vector of equal parts that together have the size of `ty` (9.7.9.4).
fn check_pack(
    ty: Option<ScalarType>,
    elements: &[Operand],
    written: bool,
    regs: Option<&RegTable>,
) -> Result<(), OperandFault> {
    let Some(ty) = ty else { return Ok(()) };
    let part = match (ty.bits(), elements.len()) {
        (16, 2) => ScalarType::B8,
        (32, 2) => ScalarType::B16,
        (32, 4) => ScalarType::B8,
        (64, 2) => ScalarType::B32,
        (64, 4) => ScalarType::B16,
        (128, 2) => ScalarType::B64,
        (128, 4) => ScalarType::B32,
        (_, found) => return Err(OperandFault::Length { expected: 2, found }),
    };
    for element in elements {
        match element {
            Operand::Sink if written => {}
            Operand::Reg(reg) => check_reg(*reg, part, false, regs)?,
            Operand::Imm(value) if !written => check_imm(*value, part)?,
            _ => {
                return Err(OperandFault::Kind { expected: "a register" });
            }
        }
    }
    Ok(())
}

/// A single value: register, constant and so on, as the position allows.
fn check_scalar(
    spec: &OperandSpec,
    ty: Option<ScalarType>,
    operand: &Operand,
    regs: Option<&RegTable>,
) -> Result<(), OperandFault> {
    let wrong = |expected| Err(OperandFault::Kind { expected });
    let any = matches!(spec.kind, OperandKind::Any | OperandKind::AnyPack);
    match operand {
        Operand::Reg(reg) => match ty {
            Some(ty) => check_reg(*reg, ty, spec.widening, regs),
            None => Ok(()),
        },
        Operand::NotReg(reg) if spec.kind == OperandKind::Pred => check_reg(*reg, ScalarType::Pred, false, regs),
        Operand::Sink if spec.sink || (spec.written && !matches!(spec.kind, OperandKind::Reg)) => Ok(()),
        Operand::Imm(value) => {
            let allowed = !spec.written
                && (any || matches!(spec.kind, OperandKind::Source | OperandKind::Pred | OperandKind::Tensor));
            match ty {
                _ if !allowed => wrong("a register"),
                Some(ty) => match (&spec.range, value.int_value()) {
                    (Some(rule), Some(number)) if !rule.allows(number) => {
                        Err(OperandFault::ImmediateValue { value: *value, allowed: rule.clone() })
                    }
                    _ => check_imm(*value, ty),
                },
                None => Ok(()),
            }
        }
        Operand::Special(special) if any => match ty {
            // Reading fewer bits than a special register has is how old code reads `%tid.x` into 16 bits.
            Some(ScalarType::Pred) if special.ty() != ScalarType::Pred => wrong("a predicate"),
            Some(ty) if ty.is_float() => wrong("an integer type to read a special register"),
            Some(ty) if ty.bits() > special.ty().bits() => wrong("a type no wider than the special register"),
            _ => Ok(()),
        },
        Operand::Symbol(..) if any => match ty {
            Some(ty) if matches!(ty.bits(), 32 | 64) && !ty.is_float() => Ok(()),
            _ => wrong("a 32- or 64-bit integer type to hold an address"),
        },
        _ => wrong(if spec.written { "a register" } else { "a register or constant" }),
    }
}

fn check_reg(reg: RegId, ty: ScalarType, widening: bool, regs: Option<&RegTable>) -> Result<(), OperandFault> {
    let Some(regs) = regs else { return Ok(()) };
    let Some(found) = regs.ty(reg) else {
        return Err(OperandFault::UnknownRegister(reg));
    };
    // Wider registers: untyped on either side, or integers on both (9.4.1).
    let pair = (found.class(), ty.class());
    let may_widen =
        matches!(pair, (TypeClass::Bits, _) | (_, TypeClass::Bits) | (TypeClass::Integer, TypeClass::Integer));
    let wider = widening && found.bits() > ty.bits() && may_widen && found != ScalarType::Pred;
    if found.agrees_with(ty) || wider {
        return Ok(());
    }
    Err(OperandFault::RegisterType { reg, found, expected: ty })
}

fn check_imm(value: Immediate, ty: ScalarType) -> Result<(), OperandFault> {
    let fits = match (value, ty.class()) {
        (Immediate::F32(_), TypeClass::Float) => matches!(ty, ScalarType::F32 | ScalarType::F64),
        (Immediate::F64(_), TypeClass::Float) => matches!(ty, ScalarType::F32 | ScalarType::F64),
        (Immediate::F32(_), TypeClass::Bits) => ty.bits() == 32,
        (Immediate::F64(_), TypeClass::Bits) => ty.bits() == 64,
        (Immediate::F32(_) | Immediate::F64(_), _) => false,
        (_, TypeClass::Float) => false,
        // Compilers write `mov.pred %p1, -1;`: zero is false, everything else is true.
        (_, TypeClass::Predicate) => true,
        (_, TypeClass::Bits | TypeClass::Integer | TypeClass::Packed) => {
            let bits = ty.bits().min(64);
            let range = -(1i128 << (bits - 1))..(1i128 << bits);
            // Triton writes `mov.u32 %r1, 0xffffffffffffffff;`: constants have 64 bits, and this one is -1 (4.5.1).
            let signed = value.int_bits().map(|bits| i128::from(bits as i64));
            value.int_value().is_some_and(|number| range.contains(&number))
                || signed.is_some_and(|n| range.contains(&n))
        }
    };
    if fits { Ok(()) } else { Err(OperandFault::ImmediateType { value, expected: ty }) }
}
