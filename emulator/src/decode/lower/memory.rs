//! Loads, stores, atomics.

use tilewright_ptx::isa::{Atomic, Memory};
use tilewright_ptx::{
    AddressBase, AtomicOp, Inst as Source, Operand, ScalarType, Scope, Semantics, StateSpace, VectorWidth,
};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{self, Access, Address, AtomicFn, Fence, Op, Slot, Space, Strength};
use crate::num::float::{FloatMode, FloatType};

impl Lowering<'_> {
    /// The state space of a memory instruction.
    pub(super) fn space(&self, inst: &Source, operand: &Operand) -> Lowered<Space> {
        let named = match operand {
            Operand::Address(tilewright_ptx::Address { base: AddressBase::Symbol(symbol), .. }) => Some(*symbol),
            _ => None,
        };
        let symbol = named.and_then(|symbol| self.space_of(symbol));
        let space = match inst.space() {
            Some(StateSpace::SharedCluster) if symbol.is_none_or(|symbol| symbol == StateSpace::Shared) => {
                return Ok(Space::Cluster);
            }
            Some(space) => Some(space.base()),
            // A variable's address in generic space would need its window; the assembler takes the variable's own
            // space.
            None => symbol,
        };
        if let (Some(symbol), Some(space)) = (symbol, space)
            && symbol != space
        {
            return refuse(format!("the variable is in .{}, the access in .{}", symbol.text(), space.text()));
        }
        match space {
            None => Ok(Space::Generic),
            Some(StateSpace::Global) => Ok(Space::Global),
            Some(StateSpace::Shared) => Ok(Space::Shared),
            Some(StateSpace::Local) => Ok(Space::Local),
            Some(StateSpace::Const) => Ok(Space::Const),
            // Parameters of device functions and of calls are in the frame.
            Some(StateSpace::Param) if inst.space() != Some(StateSpace::ParamEntry) && self.is_in_frame(named) => {
                Ok(Space::Local)
            }
            Some(StateSpace::Param) => Ok(Space::Param),
            Some(other) => refuse(format!("state space .{} is not supported here", other.text())),
        }
    }

    pub(super) fn address(&mut self, operand: &Operand) -> Lowered<Address> {
        let Operand::Address(address) = operand else { return refuse("an address is expected") };
        Ok(match address.base {
            AddressBase::Reg(reg) => Address { base: Some(self.reg(reg)?), offset: address.offset },
            AddressBase::Symbol(symbol) => {
                let base = self.frame_base(symbol).map(Slot::Wide);
                Address { base, offset: (self.place(symbol)? as i64).wrapping_add(address.offset) }
            }
            AddressBase::Absolute => Address { base: None, offset: address.offset },
        })
    }

    /// Data operands into the list: one for a scalar, the elements of a vector.
    pub(super) fn data(&mut self, operand: &Operand, ty: ScalarType, count: usize) -> Lowered<Vec<Option<Slot>>> {
        let one = std::slice::from_ref(operand);
        let elements = match operand {
            Operand::Vector(elements) => elements.as_slice(),
            Operand::Sink => return Ok(vec![None; count]),
            _ => one,
        };
        if elements.len() != count {
            return refuse(format!("{} values for {count} elements", elements.len()));
        }
        elements.iter().map(|e| if *e == Operand::Sink { Ok(None) } else { self.value(e, ty).map(Some) }).collect()
    }

    /// Elements of a load or store: bytes of each, how many, and where their values are. 128 bits are two elements.
    fn elements(&mut self, inst: &Source, operand: &Operand, ty: ScalarType) -> Lowered<(u8, u8, Vec<Option<Slot>>)> {
        if ty.bits() == 128 {
            let slots = match operand {
                Operand::Sink => vec![None; 2],
                operand => self.pair(operand)?.map(Some).to_vec(),
            };
            return Ok((8, 2, slots));
        }
        let count = inst.find::<VectorWidth>().map_or(1, VectorWidth::elements);
        Ok((ty.bytes() as u8, count as u8, self.data(operand, ty, count)?))
    }

    pub(super) fn push(&mut self, slots: impl IntoIterator<Item = Option<Slot>>) -> u32 {
        let first = self.kernel.data.len() as u32;
        self.kernel.data.extend(slots);
        first
    }

    pub(super) fn memory(&mut self, memory: Memory, inst: &Source) -> Lowered<()> {
        match memory {
            Memory::Ld | Memory::LdNc | Memory::Ldu => self.load(memory, inst),
            Memory::St => {
                let ty = self.ty(inst, 0)?;
                let space = self.space(inst, self.operand(inst, 0)?)?;
                if space == Space::Param {
                    return refuse("a kernel's parameters cannot be written");
                }
                let address = self.address(self.operand(inst, 0)?)?;
                let (bytes, count, slots) = self.elements(inst, self.operand(inst, 1)?, ty)?;
                let data = self.push(slots);
                let strength = self.strength(inst, space);
                self.implied_fence(inst, Semantics::Release);
                self.emit(Op::Store(Access { space, address, bytes, count, signed: false, strength, data }));
                Ok(())
            }
            // Hints: they change when data moves, never what it is.
            Memory::Prefetch | Memory::PrefetchTensormap | Memory::Applypriority | Memory::Discard => {
                self.emit(Op::Nop);
                Ok(())
            }
            Memory::Createpolicy => {
                let Slot::Wide(d) = self.value(self.operand(inst, 0)?, ScalarType::B64)? else {
                    return refuse("a 64-bit register is expected");
                };
                let Some(Slot::Wide(a)) = self.slots.constant(64, 0) else { return refuse("no room for a constant") };
                self.emit(Op::MovWide { d, a });
                Ok(())
            }
        }
    }

    /// How strong the access is. Strong accesses beyond the CTA make the kernel's CTAs communicate.
    fn strength(&mut self, inst: &Source, space: Space) -> Strength {
        if matches!(inst.find::<Semantics>(), None | Some(Semantics::Weak)) && !self.guess {
            return Strength::Weak;
        }
        if matches!(space, Space::Global | Space::Generic) {
            self.kernel.communicates = true;
            self.kernel.confined |= !is_wide(inst);
        }
        Strength::Strong { wide: is_wide(inst) }
    }

    /// The fence that a release has before its access, or an acquire after it (PTX manual 8.7).
    fn implied_fence(&mut self, inst: &Source, which: Semantics) {
        let semantics = inst.find::<Semantics>();
        if semantics == Some(which) || semantics == Some(Semantics::AcqRel) {
            let (acquires, releases) = (which == Semantics::Acquire, which == Semantics::Release);
            self.fence(Fence { wide: is_wide(inst), implied: true, acquires, releases, sequential: false });
        }
    }

    /// A fence that is an instruction; `membar` is sequential (9.7.13.4).
    pub(super) fn own_fence(&mut self, inst: &Source, membar: bool) {
        let semantics = inst.find::<Semantics>();
        self.fence(Fence {
            wide: is_wide(inst),
            implied: false,
            acquires: semantics != Some(Semantics::Release),
            releases: semantics != Some(Semantics::Acquire),
            sequential: membar || semantics == Some(Semantics::Sc),
        });
    }

    fn fence(&mut self, fence: Fence) {
        self.kernel.fences |= fence.wide;
        self.emit(Op::Fence(fence));
    }

    fn load(&mut self, memory: Memory, inst: &Source) -> Lowered<()> {
        let ty = self.ty(inst, 0)?;
        let space = self.space(inst, self.operand(inst, 1)?)?;
        let address = self.address(self.operand(inst, 1)?)?;
        let (bytes, count, slots) = self.elements(inst, self.operand(inst, 0)?, ty)?;
        let strength = if memory == Memory::LdNc { Strength::Constant } else { self.strength(inst, space) };
        // A value is sign-extended when its register is wider. A 16-bit register takes 16 bits of the extended value.
        let mut narrow = Vec::new();
        if ty.is_signed() {
            let one = std::slice::from_ref(self.operand(inst, 0)?);
            let elements = match self.operand(inst, 0)? {
                Operand::Vector(elements) => elements.as_slice(),
                _ => one,
            };
            for element in elements {
                if let Operand::Reg(reg) = element
                    && self.slots.bits(*reg) == 16
                {
                    narrow.push(self.reg(*reg)?);
                }
            }
        }
        // A parameter at a fixed address is a constant of the launch.
        if let (Space::Param, None, [Some(d)], Ok(offset)) =
            (space, address.base, &slots[..], u32::try_from(address.offset))
        {
            let bytes = ty.bytes();
            let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.kernel.param_bytes);
            if fits && offset % bytes == 0 {
                match (*d, self.slots.param(offset, bytes as u8, ty.is_signed(), *d)) {
                    (Slot::Narrow(d), Some(Slot::Narrow(a))) => self.emit(Op::Mov { d, a }),
                    (Slot::Wide(d), Some(Slot::Wide(a))) => self.emit(Op::MovWide { d, a }),
                    _ => return refuse("no room for a register"),
                }
                self.trim(&narrow);
                return Ok(());
            }
        }
        let data = self.push(slots);
        self.emit(Op::Load(Access { space, address, bytes, count, signed: ty.is_signed(), strength, data }));
        self.implied_fence(inst, Semantics::Acquire);
        self.trim(&narrow);
        Ok(())
    }

    /// Cuts sign-extended values down to their 16-bit registers.
    fn trim(&mut self, slots: &[Slot]) {
        for slot in slots {
            let (Slot::Narrow(d), Some(Slot::Narrow(b))) = (*slot, self.slots.constant(32, 0xffff)) else { continue };
            self.emit(Op::Int2 { op: crate::lanes::int::Int2::And, width: crate::lanes::int::Width::W32, d, a: d, b });
        }
    }

    pub(super) fn atomic(&mut self, atomic: Atomic, inst: &Source) -> Lowered<()> {
        let returns = atomic == Atomic::Atom;
        let ty = self.ty(inst, 0)?;
        if ty.bits() > 64 {
            return refuse("atomics of 128 bits are not supported");
        }
        let count = inst.find::<VectorWidth>().map_or(1, VectorWidth::elements);
        let at = usize::from(returns);
        let space = self.space(inst, self.operand(inst, at)?)?;
        let address = self.address(self.operand(inst, at)?)?;
        let op = atomic_fn(inst, ty)?;
        let mut slots = Vec::new();
        if returns {
            slots.extend(self.data(self.operand(inst, 0)?, ty, count)?);
        }
        slots.extend(self.data(self.operand(inst, at + 1)?, ty, count)?);
        if op == AtomicFn::Cas {
            slots.extend(self.data(self.operand(inst, at + 2)?, ty, count)?);
        }
        let data = self.push(slots);
        if matches!(space, Space::Global | Space::Generic) {
            self.kernel.communicates = true;
            self.kernel.confined |= !is_wide(inst);
        }
        // Relaxed is the default (9.7.13.5).
        self.implied_fence(inst, Semantics::Release);
        self.emit(Op::Atomic(op::Atomic {
            space,
            wide: is_wide(inst),
            address,
            bytes: ty.bytes() as u8,
            count: count as u8,
            op,
            returns,
            data,
        }));
        self.implied_fence(inst, Semantics::Acquire);
        Ok(())
    }
}

/// The operation of an atomic instruction on a type.
pub(super) fn atomic_fn(inst: &Source, ty: ScalarType) -> Lowered<AtomicFn> {
    let float = |ty| FloatMode::plain(ty);
    let signed = ty.is_signed();
    use ScalarType::*;
    Ok(match (inst.find::<AtomicOp>(), ty) {
        (Some(AtomicOp::Add), F16) => AtomicFn::AddFloat(float(FloatType::F16)),
        (Some(AtomicOp::Add), Bf16) => AtomicFn::AddFloat(float(FloatType::Bf16)),
        (Some(AtomicOp::Add), F32) => AtomicFn::AddFloat(float(FloatType::F32)),
        (Some(AtomicOp::Add), F64) => AtomicFn::AddFloat(float(FloatType::F64)),
        (Some(AtomicOp::Add), F16x2) => AtomicFn::AddPacked(float(FloatType::F16)),
        (Some(AtomicOp::Add), Bf16x2) => AtomicFn::AddPacked(float(FloatType::Bf16)),
        (Some(which @ (AtomicOp::Min | AtomicOp::Max)), F16 | F16x2) => {
            AtomicFn::ExtremumPacked(float(FloatType::F16), which == AtomicOp::Max)
        }
        (Some(which @ (AtomicOp::Min | AtomicOp::Max)), Bf16 | Bf16x2) => {
            AtomicFn::ExtremumPacked(float(FloatType::Bf16), which == AtomicOp::Max)
        }
        (Some(AtomicOp::Add), _) => AtomicFn::Add,
        (Some(AtomicOp::Min), _) => AtomicFn::Min { signed },
        (Some(AtomicOp::Max), _) => AtomicFn::Max { signed },
        (Some(AtomicOp::And), _) => AtomicFn::And,
        (Some(AtomicOp::Or), _) => AtomicFn::Or,
        (Some(AtomicOp::Xor), _) => AtomicFn::Xor,
        (Some(AtomicOp::Inc), _) => AtomicFn::Inc,
        (Some(AtomicOp::Dec), _) => AtomicFn::Dec,
        (Some(AtomicOp::Exch), _) => AtomicFn::Exch,
        (Some(AtomicOp::Cas), _) => AtomicFn::Cas,
        (None, _) => return refuse("the operation is missing"),
    })
}

/// Whether the scope of an instruction is beyond the CTA, as it is where none is named.
fn is_wide(inst: &Source) -> bool {
    !matches!(inst.find::<Scope>(), Some(Scope::Cta))
}
