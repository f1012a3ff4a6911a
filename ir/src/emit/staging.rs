//! Shared memory, barriers of copies, and copies by the accelerator: tiles of tensor maps, and runs of memory.
//!
//! Each barrier is an mbarrier that one arrival and the bytes of its copies complete. The elected thread arrives with
//! the bytes that it expects and then starts the copies; every thread waits for the phase. A wait is an acquire, so
//! that what the copies wrote is seen without a fence (PTX manual, mbarrier and asynchronous proxy); buffers are filled
//! again only after a `bar.sync` that all their readers have passed.
//!
//! A copy to a tensor reads what threads wrote to shared memory: each of them executes a proxy fence after its writes,
//! and a `bar.sync` stands between the fences and the copy. Its groups are those of the thread that committed them: the
//! elected thread, which is always the same one (PTX manual, `elect.sync`).

use tilewright_kernel::info::Argument;
use tilewright_ptx::{Address, FunctionBuilder, Operand, RegId, ScalarType, SpecialReg, Symbol};

use super::entry::{Entry, memory_type};
use crate::kernel_ir::{
    BARRIER_BYTES, BufferId, BulkCopy, Evict, Kernel, MbarrierId, Memory, RegionId, TensorPart, Type, ValueId,
};

/// Where a buffer or the barriers start: a variable and bytes from its start.
pub(super) type Place = (Symbol, u64);

/// Declares the buffers and barriers of a kernel: variables of their own, or parts of what the launch provides,
/// `dynamic`.
pub(super) fn declare(
    f: &mut FunctionBuilder,
    kernel: &Kernel,
    dynamic: Option<Symbol>,
) -> (Vec<Option<Place>>, Option<Place>) {
    let map = kernel.shared_map();
    let count: u64 = kernel.barriers.iter().map(|b| u64::from(b.slots)).sum();
    if let Some(symbol) = dynamic.filter(|_| map.dynamic_bytes().is_some()) {
        let places = map.buffers.iter().zip(&kernel.parts);
        let buffers = places.map(|(at, part)| part.is_none().then_some((symbol, *at))).collect();
        return (buffers, (count > 0).then_some((symbol, map.barriers)));
    }
    let ascii = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let mut declared: Vec<Option<Symbol>> = vec![None; kernel.buffers.len()];
    let is_declared = |n: &usize| kernel.alias_of[*n].index() == *n && kernel.parts[*n].is_none();
    for (n, buffer) in kernel.buffers.iter().enumerate().filter(|(n, _)| is_declared(n)) {
        let name = format!("buffer{n}_{}", ascii(&buffer.name));
        let elements = u64::from(buffer.elements) * u64::from(buffer.slots);
        declared[n] = Some(f.shared(name, memory_type(buffer.element), elements, buffer.alignment));
    }
    let buffers = kernel.alias_of.iter().map(|b| declared[b.index()].map(|symbol| (symbol, 0))).collect();
    let barriers = (count > 0).then(|| (f.shared("barriers", ScalarType::B64, count, BARRIER_BYTES as u32), 0));
    (buffers, barriers)
}

impl Entry<'_> {
    /// Makes the barriers ready, before anything else. The kernel has a `BarSync` before it uses one.
    pub(super) fn prepare_barriers(&mut self) {
        let Some((symbol, at)) = self.barriers else { return };
        let thread = self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]);
        let first = self.result("setp.eq.u32", ScalarType::Pred, [thread.into(), 0.into()]);
        let done = self.f.label("ready");
        self.jump(first, true, "bra", done);
        let arrivals = self.kernel.barriers.iter().flat_map(|b| (0..b.slots).map(|_| b.arrivals));
        for (barrier, arrivals) in (0..).zip(arrivals) {
            let address = Address::symbol(symbol).offset((at + barrier * BARRIER_BYTES) as i64);
            self.emit("mbarrier.init.shared.b64", [address.into(), arrivals.into()]);
        }
        // The accelerator sees the barriers, too.
        self.emit("fence.proxy.async.shared::cta", []);
        if self.kernel.signature.cluster > 1 {
            // So do the other blocks of the cluster, after its barrier.
            self.emit("fence.mbarrier_init.release.cluster", []);
        }
        self.block.label(done);
    }

    /// The barrier of a slot.
    pub(super) fn barrier(&mut self, barrier: MbarrierId, slot: ValueId) -> Address {
        let first = self.first_barrier(barrier);
        if let Some(slot) = self.kernel.index_literal(slot) {
            return first.offset(first.offset + slot * BARRIER_BYTES as i64);
        }
        let (base, bytes) = self.split(first);
        let slot = self.operand(slot);
        let own = self.result("mad.lo.s32", ScalarType::B32, [slot, (BARRIER_BYTES as i64).into(), base.into()]);
        Address::reg(own).offset(bytes)
    }

    /// The barrier of the first slot.
    pub(super) fn first_barrier(&mut self, barrier: MbarrierId) -> Address {
        // The verifier has seen that there are barriers.
        let Some((symbol, at)) = self.barriers else { return Address::reg(self.f.reg(ScalarType::B32)) };
        let before: u64 = self.kernel.barriers.iter().take(barrier.index()).map(|b| u64::from(b.slots)).sum();
        Address::symbol(symbol).offset((at + before * BARRIER_BYTES) as i64)
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
        let Some((symbol, at)) = self.buffers.get(buffer.index()).copied().flatten() else {
            return self.f.reg(ScalarType::B32);
        };
        let base = self.start_of(symbol);
        match at {
            0 => base,
            _ => self.result("add.s32", ScalarType::B32, [base.into(), (at as i64).into()]),
        }
    }

    /// The elected thread: one lane of the first warp, chosen so that the assembler knows it to be one.
    pub(super) fn elect(&mut self, part: RegionId) {
        if self.role.is_some() {
            return self.elect_in_role(part);
        }
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

    pub(super) fn expect(&mut self, barrier: MbarrierId, slot: ValueId, bytes: u32) {
        let address = self.barrier(barrier, slot);
        self.effect("mbarrier.arrive.expect_tx.shared.b64", [Operand::Sink, address.into(), bytes.into()]);
    }

    pub(super) fn transfer(&mut self, transfer: &BulkCopy) {
        let (kind, tile, part, bytes) = match &transfer.part {
            TensorPart::Tile { map, start } => {
                let map = self.map(*map);
                let kind = format!(".tensor.{}d", start.len());
                let start: Vec<Operand> = start.iter().map(|value| self.register(*value).into()).collect();
                (kind, ".tile", Operand::Tensor(Address::reg(map), start), None)
            }
            TensorPart::Run { parameter, offset, bytes } => {
                let address = self.address(Memory::Parameter(*parameter), *offset);
                (String::new(), "", address.into(), Some(*bytes))
            }
        };
        let place = self.place_in_buffer(transfer);
        let (way, mut operands) = match transfer.barrier {
            Some(barrier) => {
                let barrier = self.barrier(barrier, transfer.slot);
                let way = format!("shared::cluster.global{tile}.mbarrier::complete_tx::bytes");
                let bytes = bytes.map(Operand::from);
                (way, [place.into(), part].into_iter().chain(bytes).chain([barrier.into()]).collect::<Vec<_>>())
            }
            None => {
                let way = format!("global.shared::cta{tile}.bulk_group");
                (way, [part, place.into()].into_iter().chain(bytes.map(Operand::from)).collect())
            }
        };
        if let Some(mask) = transfer.multicast {
            let mask = self.register(mask);
            let mask = self.result("cvt.u16.u32", ScalarType::B16, [mask.into()]);
            operands.push(mask.into());
        }
        let to = if transfer.multicast.is_some() { ".multicast::cluster" } else { "" };
        let mut hint = "";
        if let Some(evict) = transfer.evict {
            hint = ".L2::cache_hint";
            operands.push(self.policy(evict).into());
        }
        self.effect(&format!("cp.async.bulk{kind}.{way}{to}{hint}"), operands);
    }

    /// The policy of the L2 cache for what is copied.
    fn policy(&mut self, evict: Evict) -> RegId {
        let priority = match evict {
            Evict::First => "evict_first",
            Evict::Last => "evict_last",
        };
        self.result(&format!("createpolicy.fractional.L2::{priority}.b64"), ScalarType::B64, [])
    }

    /// Where a copy reads or writes shared memory.
    fn place_in_buffer(&mut self, transfer: &BulkCopy) -> Address {
        let (elements, bytes) = match self.kernel.buffers.get(transfer.buffer.index()) {
            Some(buffer) => (i64::from(buffer.elements), i64::from(buffer.element.bytes())),
            None => (1, 1),
        };
        let mut base = self.shared_base(transfer.buffer);
        let within = match self.kernel.index_literal(transfer.offset) {
            Some(offset) => offset * bytes,
            None => {
                let offset = self.operand(transfer.offset);
                base = self.result("mad.lo.s32", ScalarType::B32, [offset, bytes.into(), base.into()]);
                0
            }
        };
        if let Some(slot) = self.kernel.index_literal(transfer.slot) {
            return Address::reg(base).offset(slot * elements * bytes + within);
        }
        let slot = self.operand(transfer.slot);
        let own = self.result("mad.lo.s32", ScalarType::B32, [slot, (elements * bytes).into(), base.into()]);
        Address::reg(own).offset(within)
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

    pub(super) fn await_phase(&mut self, barrier: MbarrierId, slot: ValueId, parity: ValueId) {
        let parity = self.operand(parity);
        let address = self.barrier(barrier, slot);
        self.wait("mbarrier.try_wait.parity.shared.b64", address, parity);
    }

    /// Waits for a phase by an instruction that says whether it has ended.
    pub(super) fn wait(&mut self, mnemonic: &str, address: Address, parity: Operand) {
        let again = self.f.label("wait");
        self.block.label(again);
        let ended = self.f.reg(ScalarType::Pred);
        self.emit(mnemonic, [ended.into(), address.into(), parity]);
        self.jump(ended, true, "bra", again);
    }
}
