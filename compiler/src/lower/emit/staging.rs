//! Shared memory, barriers of copies, and copies by the accelerator.
//!
//! Each barrier is an mbarrier that one arrival and the bytes of its copies complete. The elected thread arrives with the bytes
//! that it expects and then starts the copies; every thread waits for the phase. A wait is an acquire, so that what the copies
//! wrote is seen without a fence (PTX manual, mbarrier and asynchronous proxy); buffers are filled again only behind a `bar.sync` that
//! all their readers have passed.

use tilewright_kernel::info::Argument;
use tilewright_ptx::{Address, FunctionBuilder, Operand, RegId, ScalarType, SpecialReg, Symbol};

use super::entry::{Entry, memory_type};
use crate::kernel_ir::{BarrierId, BufferId, Kernel, RegionId, Transfer, Type, ValueId};

/// Bytes of an mbarrier.
const BARRIER_BYTES: i64 = 8;

/// Declares the buffers and barriers of a kernel.
pub(super) fn declare(f: &mut FunctionBuilder, kernel: &Kernel) -> (Vec<Symbol>, Option<Symbol>) {
    let ascii = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let buffers = kernel.buffers.iter().enumerate().map(|(n, buffer)| {
        let name = format!("buffer{n}_{}", ascii(&buffer.name));
        f.shared(name, memory_type(buffer.element), u64::from(buffer.elements), buffer.alignment)
    });
    let buffers = buffers.collect();
    let barriers = (kernel.barriers > 0)
        .then(|| f.shared("barriers", ScalarType::B64, u64::from(kernel.barriers), BARRIER_BYTES as u32));
    (buffers, barriers)
}

impl Entry<'_> {
    /// Makes the barriers ready, before anything else.
    pub(super) fn prepare_barriers(&mut self) {
        if self.barriers.is_none() {
            return;
        }
        let thread = self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]);
        let first = self.result("setp.eq.u32", ScalarType::Pred, [thread.into(), 0.into()]);
        let done = self.f.label("ready");
        self.jump(first, true, "bra", done);
        for barrier in 0..self.kernel.barriers {
            let address = self.barrier(BarrierId(barrier));
            self.emit("mbarrier.init.shared.b64", [address.into(), 1.into()]);
        }
        // The accelerator sees the barriers, too.
        self.emit("fence.proxy.async.shared::cta", []);
        self.block.label(done);
        self.emit("bar.sync", [0.into()]);
    }

    fn barrier(&mut self, barrier: BarrierId) -> Address {
        match self.barriers {
            Some(symbol) => Address::symbol(symbol).offset(i64::from(barrier.0) * BARRIER_BYTES),
            // The verifier has seen that there are barriers.
            None => Address::reg(self.f.reg(ScalarType::B32)),
        }
    }

    /// base + x · bytes in shared memory.
    pub(super) fn shared_address(&mut self, buffer: BufferId, x: Operand, ty: Type, bytes: u32) -> RegId {
        let base = self.shared_base(buffer);
        let x = match ty {
            Type::I64 => self.result("cvt.u32.u64", ScalarType::B32, [x]).into(),
            _ => x,
        };
        self.result("mad.lo.s32", ScalarType::B32, [x, bytes.into(), base.into()])
    }

    fn shared_base(&mut self, buffer: BufferId) -> RegId {
        match self.buffers.get(buffer.index()) {
            Some(symbol) => self.result("mov.u32", ScalarType::B32, [(*symbol).into()]),
            None => self.f.reg(ScalarType::B32),
        }
    }

    /// The elected thread: one lane of the first warp, chosen so that the assembler knows it to be one.
    pub(super) fn elect(&mut self, part: RegionId) {
        let end = self.f.label("end");
        let thread = self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]);
        if self.kernel.signature.threads < 32 {
            let first = self.result("setp.eq.u32", ScalarType::Pred, [thread.into(), 0.into()]);
            self.jump(first, true, "bra", end);
        } else {
            if self.kernel.signature.threads > 32 {
                let warp = self.result("setp.lt.u32", ScalarType::Pred, [thread.into(), 32.into()]);
                self.jump(warp, true, "bra", end);
            }
            let chosen = self.f.reg(ScalarType::Pred);
            let results = Operand::pair(Operand::Sink, chosen);
            self.emit("elect.sync", [results, (u32::MAX).into()]);
            self.jump(chosen, true, "bra", end);
        }
        let outer = std::mem::replace(&mut self.converged, false);
        self.region(part);
        self.converged = outer;
        self.block.label(end);
    }

    pub(super) fn expect(&mut self, barrier: BarrierId, bytes: u32) {
        let address = self.barrier(barrier);
        self.emit("mbarrier.arrive.expect_tx.shared.b64", [Operand::Sink, address.into(), bytes.into()]);
    }

    pub(super) fn transfer(&mut self, transfer: &Transfer) {
        let rank = transfer.start.len();
        let map = self.map(transfer.map);
        let start: Vec<Operand> = transfer.start.iter().map(|value| self.register(*value).into()).collect();
        let bytes = self.kernel.buffers.get(transfer.buffer.index()).map_or(1, |b| b.element.bytes());
        let base = self.shared_base(transfer.buffer);
        let to = Address::reg(base).offset(i64::from(transfer.offset) * i64::from(bytes));
        let barrier = self.barrier(transfer.barrier);
        let mnemonic = format!("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes");
        self.emit(&mnemonic, [to.into(), Operand::Tensor(Address::reg(map), start), barrier.into()]);
    }

    /// The generic address of a tensor map.
    fn map(&mut self, map: u16) -> RegId {
        let position = self.kernel.signature.arguments.iter().position(|a| *a == Argument::Map(map));
        let symbol = position.and_then(|position| self.symbols.get(position).copied());
        match symbol {
            Some(symbol) => {
                let address = self.result("mov.b64", ScalarType::B64, [symbol.into()]);
                self.result("cvta.param.u64", ScalarType::B64, [address.into()])
            }
            None => self.f.reg(ScalarType::B64),
        }
    }

    pub(super) fn await_phase(&mut self, barrier: BarrierId, parity: ValueId) {
        let parity = self.operand(parity);
        let address = self.barrier(barrier);
        let again = self.f.label("wait");
        self.block.label(again);
        let ended = self.f.reg(ScalarType::Pred);
        self.emit("mbarrier.try_wait.parity.shared.b64", [ended.into(), address.into(), parity]);
        self.jump(ended, true, "bra", again);
    }
}
