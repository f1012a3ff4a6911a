//! What blocks do together: updates of an element that all of them may make, and counters at which they arrive.
//!
//! A block arrives by one `atom` of its first thread, or of the first one of the role that has the reduction, which
//! releases what the block did and acquires what those did that arrived before (PTX manual 8.9, release and acquire
//! patterns; causality order takes in what the barriers before and after order). `atom.inc` wraps at the number of
//! blocks, so that the counter is zero again for the next launch. Where other threads must know, `bar.red` tells them.

use tilewright_kernel::ElementType;
use tilewright_ptx::{Address, Guard, Operand, ScalarType};

use super::entry::{Entry, register_type};
use crate::kernel_ir::{AtomicOp, AtomicUpdate, Memory, Store, Type, ValueId};

impl Entry<'_> {
    /// Arrives at a counter.
    pub(super) fn arrive(
        &mut self,
        (counters, at): (u16, ValueId),
        blocks: ValueId,
        last: ValueId,
        (releases, acquires): (bool, bool),
    ) {
        let address: Address = self.address(Memory::Workspace(counters), at);
        let count = self.operand(blocks);
        let most = self.result("sub.s32", ScalarType::B32, [count.clone(), 1.into()]);
        let thread = self.result("mov.u32", ScalarType::B32, [tilewright_ptx::SpecialReg::TidX.into()]);
        let number = self.first_thread();
        let first = self.result("setp.eq.u32", ScalarType::Pred, [thread.into(), number.into()]);
        // No counter has this value: the other threads do not say that they are last.
        let before = self.moved(ScalarType::B32, count);
        let order = match (releases, acquires) {
            (true, true) => "acq_rel",
            (true, false) => "release",
            (false, true) => "acquire",
            (false, false) => "relaxed",
        };
        let operands: Vec<Operand> = vec![before.into(), address.into(), most.into()];
        let mnemonic = format!("atom.{order}.gpu.global.inc.u32");
        self.add(&mnemonic, operands, Some(Guard { reg: first, negated: false }));
        let mine = self.result("setp.eq.u32", ScalarType::Pred, [before.into(), most.into()]);
        self.bind(last, mine);
    }

    /// Tells all threads whether a predicate holds for any of them.
    pub(super) fn agree(&mut self, predicate: ValueId, result: ValueId) {
        let own = self.register(predicate);
        let mut operands = self.meeting();
        operands.push(own.into());
        let all = self.f.reg(ScalarType::Pred);
        self.emit("bar.red.or.pred", std::iter::once(all.into()).chain(operands));
        self.bind(result, all);
    }

    /// Combines an element in device memory with a value.
    pub(super) fn update(&mut self, update: &AtomicUpdate) {
        let address = self.address(update.memory, update.offset);
        if update.op == AtomicOp::Set {
            // Whole, whoever else stores there: of weak stores nothing is promised.
            let (memory, offset, values) = (update.memory, update.offset, vec![update.value]);
            return self.store_to("st.relaxed.gpu.global", &[address], &Store { memory, offset, values });
        }
        let ty = self.ty(update.value);
        let bits = register_type(ty).text();
        let width = bits.trim_start_matches('b');
        let sign = if ty.element().is_some_and(ElementType::is_signed_integer) { 's' } else { 'u' };
        let mnemonic = match (update.op, ty) {
            (AtomicOp::Add, Type::Element(element)) if element.is_float() => format!("add.{bits}"),
            // Of either sign: there is no other one of 64 bits.
            (AtomicOp::Add, _) => format!("add.u{width}"),
            (AtomicOp::Max, _) => format!("max.{sign}{width}"),
            (AtomicOp::Min, _) => format!("min.{sign}{width}"),
            (AtomicOp::Or | AtomicOp::Set, _) => format!("or.{bits}"),
        };
        let value = self.register(update.value);
        self.effect(&format!("red.relaxed.gpu.global.{mnemonic}"), [address.into(), value.into()]);
    }
}
