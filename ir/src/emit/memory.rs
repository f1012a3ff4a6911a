//! Addresses, loads, stores, and the packing of lanes narrower than a register.
//!
//! An address is `base + offset · bytes` in 64 bits. It is computed once, where its offset is bound, so that it leaves
//! loops with it; constants that are added to an offset become part of the instruction. A vector of more than 16 bytes
//! becomes several instructions; lanes of 8 and 16 bits travel in 32-bit words.

use tilewright_kernel::ElementType;
use tilewright_kernel::info::Argument;
use tilewright_ptx::{Address, Guard, Immediate, Operand, RegId, ScalarType};

use super::entry::{Entry, memory_type, register_type};
use crate::kernel_ir::{
    BulkCopy, CpAsync, IndexOp, Load, LoadMatrix, Matrices, Memory, Op, ParameterKind, Product, Region, StatementKind,
    Store, StoreMatrix, TensorPart, Type, Value, ValueId,
};

/// Most bytes that one instruction moves (9.7.9.8, without the 256-bit forms of newer targets).
const VECTOR_BYTES: u32 = 16;

impl Entry<'_> {
    /// Finds out which addresses will be needed.
    pub(super) fn plan_addresses(&mut self) {
        let accesses = self.kernel.regions.iter().flat_map(|Region { statements, .. }| statements);
        let mut addresses = Vec::new();
        for statement in accesses {
            if statement.kind.only_computes() {
                continue;
            }
            let accesses = statement.kind.effects().accesses();
            let mut places: Vec<(Memory, ValueId)> =
                accesses.filter_map(|a| Some((self.kernel.home(a.memory), a.elements?.offset))).collect();
            if let StatementKind::BulkCopy(BulkCopy { part: TensorPart::Run { parameter, offset, .. }, .. }) =
                statement.kind
            {
                places.push((Memory::Parameter(parameter), offset));
            }
            if let StatementKind::Wgmma(product) = &statement.kind {
                places.extend(
                    Product::Wgmma(product).matrices().map(|matrix| (Memory::Buffer(matrix.buffer), matrix.offset)),
                );
            }
            for (memory, offset) in places {
                let (rest, _) = self.peel(memory, offset);
                addresses.push((rest, memory, None));
            }
        }
        addresses.sort_unstable_by_key(|(offset, memory, _)| (*offset, *memory));
        addresses.dedup_by_key(|(offset, memory, _)| (*offset, *memory));
        self.addresses = addresses;
    }

    /// Reads the base address of every tensor and workspace that is accessed.
    pub(super) fn load_bases(&mut self) {
        for parameter in 0..self.bases.len() {
            let number = parameter as u16;
            if !self.addresses.iter().any(|(_, memory, _)| *memory == Memory::Parameter(number)) {
                continue;
            }
            let generic = self.param(Argument::Address(number), "ld.param.u64", ScalarType::B64);
            let base = self.result("cvta.to.global.u64", ScalarType::B64, [generic.into()]);
            self.bases[parameter] = Some(base);
        }
        for workspace in 0..self.workspaces.len() {
            let number = workspace as u16;
            if self.addresses.iter().any(|(_, memory, _)| *memory == Memory::Workspace(number)) {
                let generic = self.param(Argument::Workspace(number), "ld.param.u64", ScalarType::B64);
                self.workspaces[workspace] = Some(self.result("cvta.to.global.u64", ScalarType::B64, [generic.into()]));
            }
        }
    }

    /// Computes the addresses that start from this offset.
    pub(super) fn addresses_from(&mut self, offset: ValueId) {
        let start = self.addresses.partition_point(|(value, ..)| *value < offset);
        let mut position = start;
        while let Some((value, memory, _)) = self.addresses.get(position).copied()
            && value == offset
        {
            let address = self.compute_address(memory, offset);
            self.addresses[position].2 = Some(address);
            position += 1;
        }
    }

    fn bytes(&self, memory: Memory) -> u32 {
        self.kernel.element(memory).map_or(1, ElementType::bytes)
    }

    fn compute_address(&mut self, memory: Memory, offset: ValueId) -> RegId {
        let bytes = self.bytes(memory);
        let x = self.operand(offset);
        let base = match memory {
            Memory::Parameter(parameter) => self.bases[usize::from(parameter)],
            Memory::Workspace(workspace) => self.workspaces[usize::from(workspace)],
            Memory::Buffer(buffer) => return self.shared_address(buffer, x, self.ty(offset), bytes),
        };
        let base = base.unwrap_or_else(|| self.f.reg(ScalarType::B64));
        match self.ty(offset) {
            Type::I64 if bytes == 1 => self.result("add.s64", ScalarType::B64, [x, base.into()]),
            Type::I64 => self.result("mad.lo.s64", ScalarType::B64, [x, bytes.into(), base.into()]),
            _ => self.result("mad.wide.s32", ScalarType::B64, [x, bytes.into(), base.into()]),
        }
    }

    /// An offset without the constant that is added to it, and that constant in bytes.
    ///
    /// The rest is used on its own, and the register that holds its address must be an address, too. Those of device
    /// memory have 64 bits and lie far from both ends of them. A 32-bit rest must itself fit its width; so must the
    /// rest of an address in shared memory, which has 32 bits whatever the offset has: registers are zero-extended
    /// before the constant is added (PTX manual, addresses as operands), so that a negative one lies 4 GiB after its
    /// place. Both are known where neither part is negative: the rest is then at most the offset.
    fn peel(&self, memory: Memory, offset: ValueId) -> (ValueId, i64) {
        let Value { op: Op::Index(IndexOp::Add, rest, constant), ty, .. } = *self.kernel.value(offset) else {
            return (offset, 0);
        };
        let Some(constant) = self.kernel.index_literal(constant) else { return (offset, 0) };
        let is_shared = matches!(memory, Memory::Buffer(_));
        let exact =
            ty == Type::I64 && !is_shared || constant >= 0 && self.kernel.value(rest).facts.range.is_non_negative();
        match constant.checked_mul(i64::from(self.bytes(memory))) {
            // Room for the offsets of a vector's parts.
            Some(bytes) if exact && bytes.abs() < 1 << 30 => (rest, bytes),
            _ => (offset, 0),
        }
    }

    /// The address of an access.
    pub(super) fn address(&mut self, memory: Memory, offset: ValueId) -> Address {
        self.known_address(memory, offset).unwrap_or_else(|| {
            // A constant too large for an instruction.
            let (rest, bytes) = self.peel(memory, offset);
            Address::reg(self.compute_address(memory, rest)).offset(bytes)
        })
    }

    /// The address of an access, where nothing needs to be computed for it.
    pub(super) fn known_address(&self, memory: Memory, offset: ValueId) -> Option<Address> {
        let (rest, bytes) = self.peel(memory, offset);
        if let Some(constant) = self.kernel.index_literal(rest)
            && let Some(bytes) = constant.checked_mul(i64::from(self.bytes(memory))).and_then(|b| b.checked_add(bytes))
            && bytes.abs() < 1 << 30
            && let Some(base) = self.base(memory)
        {
            return Some(base.offset(base.offset + bytes));
        }
        let found = self.addresses.binary_search_by_key(&(rest, memory), |(offset, memory, _)| (*offset, *memory));
        Some(Address::reg(self.addresses[found.ok()?].2?).offset(bytes))
    }

    /// The address of the first element, where it is known without computing.
    fn base(&self, memory: Memory) -> Option<Address> {
        match memory {
            Memory::Parameter(parameter) => self.bases[usize::from(parameter)].map(Address::reg),
            Memory::Workspace(workspace) => self.workspaces[usize::from(workspace)].map(Address::reg),
            Memory::Buffer(buffer) => self
                .buffers
                .get(buffer.index())
                .copied()
                .flatten()
                .map(|(symbol, at)| Address::symbol(symbol).offset(at as i64)),
        }
    }

    pub(super) fn load(&mut self, load: &Load) {
        // The verifier has seen that the memory exists.
        let memory = self.kernel.home(load.memory);
        let space = match memory {
            Memory::Buffer(_) => "ld.shared",
            Memory::Workspace(_) => "ld.global",
            Memory::Parameter(p) => match self.kernel.signature.parameters[usize::from(p)].kind {
                ParameterKind::Tensor { written: false } => "ld.global.nc",
                _ => "ld.global",
            },
        };
        let address = self.address(memory, load.offset);
        self.load_from(space, address, load);
    }

    /// A load of matrices by a warp: words, each with the elements that a lane has of one.
    pub(super) fn load_matrix(&mut self, load: &LoadMatrix) {
        let (element, address, form) = self.matrices(&load.from);
        let results: Vec<ValueId> = load.results().collect();
        let registers: Vec<RegId> = (0..load.from.count).map(|_| self.f.reg(ScalarType::B32)).collect();
        let mnemonic = format!("ldmatrix.{form}");
        self.add(&mnemonic, vec![Operand::vector(registers.iter().copied()), address.into()], None);
        let each = results.len() / registers.len();
        for (word, lanes) in registers.into_iter().zip(results.chunks(each)) {
            let ty = register_type(Type::Element(element));
            match lanes {
                [lane] if ty != ScalarType::B32 => {
                    let register = self.result("mov.b32", ty, [word.into()]);
                    self.bind(*lane, register);
                }
                _ => {
                    let parts = Parts { count: 1, memory: ScalarType::B32, register: ScalarType::B32 };
                    self.unpack(element, &parts, &[word], lanes);
                }
            }
        }
    }

    /// A store of matrices by a warp: words, each with the elements that a lane has of one.
    pub(super) fn store_matrix(&mut self, store: &StoreMatrix) {
        let (element, address, form) = self.matrices(&store.to);
        let parts = Parts { count: store.to.count as usize, memory: ScalarType::B32, register: ScalarType::B32 };
        let words = self.packed(element, &parts, &store.values);
        let mut sources = Vec::with_capacity(words.len());
        for (ty, word) in words {
            sources.push(self.in_register(ty, word));
        }
        self.effect(&format!("stmatrix.{form}"), [address.into(), Operand::vector(sources)]);
    }

    /// The elements of matrices, where a lane says a row is, and what follows the name of the instruction.
    fn matrices(&mut self, matrices: &Matrices) -> (ElementType, Address, String) {
        let memory = Memory::Buffer(matrices.buffer);
        let element = self.kernel.element(memory).unwrap_or(ElementType::F16);
        let way = if matrices.transposed { ".trans" } else { "" };
        let form = format!("sync.aligned.m8n8.x{}{way}.shared.b16", matrices.count);
        (element, self.address(memory, matrices.offset), form)
    }

    /// The lanes of a load from an address in a space.
    pub(super) fn load_from(&mut self, space: &str, address: Address, load: &Load) {
        let element = self.kernel.element(load.memory).unwrap_or(ElementType::F32);
        let predicate = load.predicate.map(|predicate| self.register(predicate));
        let results: Vec<_> = load.results().collect();
        let per_chunk = (VECTOR_BYTES / element.bytes()).min(load.lanes) as usize;
        for (n, lanes) in results.chunks(per_chunk).enumerate() {
            let otherwise = load.otherwise.get(n * per_chunk..).and_then(|rest| rest.get(..lanes.len()));
            let parts = parts(element, lanes.len());
            let registers: Vec<RegId> = match otherwise {
                Some(otherwise) => {
                    self.packed(element, &parts, otherwise).into_iter().map(|(ty, x)| self.moved(ty, x)).collect()
                }
                None => (0..parts.count).map(|_| self.f.reg(parts.register)).collect(),
            };
            let from = address.offset(address.offset + i64::from(VECTOR_BYTES) * n as i64);
            let mnemonic = format!("{space}{}.{}", vector(parts.count), parts.memory);
            let operands = [group(registers.iter().map(Operand::from)), from.into()];
            let guard = predicate.map(|reg| Guard { reg, negated: false });
            self.add(&mnemonic, operands.into(), guard);
            self.unpack(element, &parts, &registers, lanes);
        }
    }

    pub(super) fn store(&mut self, store: &Store) {
        let memory = self.kernel.home(store.memory);
        let space = if let Memory::Buffer(_) = memory { "st.shared" } else { "st.global" };
        let address = self.address(memory, store.offset);
        self.store_to(space, &[address], store);
    }

    /// The lanes of a store to each of some addresses in a space.
    pub(super) fn store_to(&mut self, space: &str, addresses: &[Address], store: &Store) {
        let element = self.kernel.element(store.memory).unwrap_or(ElementType::F32);
        let per_chunk = (VECTOR_BYTES / element.bytes()) as usize;
        for (n, lanes) in store.values.chunks(per_chunk).enumerate() {
            let parts = parts(element, lanes.len());
            let mut sources = Vec::with_capacity(parts.count);
            for (ty, source) in self.packed(element, &parts, lanes) {
                sources.push(self.in_register(ty, source));
            }
            let mnemonic = format!("{space}{}.{}", vector(parts.count), parts.memory);
            for address in addresses {
                let to = address.offset(address.offset + i64::from(VECTOR_BYTES) * n as i64);
                self.effect(&mnemonic, [to.into(), group(sources.iter().cloned())]);
            }
        }
    }

    /// What is stored, as an element of a vector: the assembler takes constants, but not there.
    fn in_register(&mut self, ty: ScalarType, source: Operand) -> Operand {
        if matches!(source, Operand::Reg(_)) { source } else { self.moved(ty, source).into() }
    }

    /// A copy by the thread. What it does not read becomes zero: the operand `src-size` says how much it reads.
    pub(super) fn fetch(&mut self, fetch: &CpAsync) {
        let bytes = self.bytes(Memory::Parameter(fetch.parameter)) * fetch.lanes;
        let to = self.address(Memory::Buffer(fetch.buffer), fetch.to);
        let from = self.address(Memory::Parameter(fetch.parameter), fetch.from);
        let mut operands: Vec<Operand> = vec![to.into(), from.into(), bytes.into()];
        if let Some(predicate) = fetch.predicate {
            let predicate = self.register(predicate);
            let read = self.result("selp.b32", ScalarType::B32, [bytes.into(), 0.into(), predicate.into()]);
            operands.push(read.into());
        }
        // Only copies of 16 bytes may pass by the first cache.
        let cache = if bytes == VECTOR_BYTES { "cg" } else { "ca" };
        self.effect(&format!("cp.async.{cache}.shared.global"), operands);
    }

    /// Lanes as what an instruction moves: themselves, or words of several.
    fn packed(&mut self, element: ElementType, parts: &Parts, lanes: &[ValueId]) -> Vec<(ScalarType, Operand)> {
        let per_part = lanes.len() / parts.count;
        let mut packed = Vec::with_capacity(parts.count);
        for lanes in lanes.chunks(per_part) {
            let source = match self.packed_literals(element, lanes) {
                Some(word) if per_part > 1 => i64::from(word).into(),
                _ => {
                    let lanes = lanes.iter().map(|lane| self.lane(element, *lane)).collect();
                    self.pack(element, lanes)
                }
            };
            packed.push((parts.register, source));
        }
        packed
    }

    /// The word of several constant lanes.
    fn packed_literals(&self, element: ElementType, lanes: &[ValueId]) -> Option<u32> {
        let mut word = 0;
        for (n, lane) in lanes.iter().enumerate() {
            let Op::Literal(bits) = self.kernel.value(*lane).op else { return None };
            word |= bits.checked_shl(8 * element.bytes() * n as u32)?;
        }
        Some(word as u32)
    }

    /// A lane as a number.
    fn lane(&mut self, element: ElementType, lane: ValueId) -> Operand {
        if element != ElementType::Bool {
            return self.operand(lane);
        }
        let predicate = self.register(lane);
        self.result("selp.b32", ScalarType::B32, [1.into(), 0.into(), predicate.into()]).into()
    }

    /// One lane, or the word of two 16-bit or two or four 8-bit lanes.
    pub(super) fn pack(&mut self, element: ElementType, words: Vec<Operand>) -> Operand {
        if let (2, ScalarType::B16) = (words.len(), register_type(Type::Element(element))) {
            return self.result("mov.b32", ScalarType::B32, [Operand::vector(words)]).into();
        }
        // `prmt` picks bytes of two words: 0 to 3 of the first, 4 to 7 of the second; the first digit is the highest
        // byte.
        let mut join = |a: &Operand, b: &Operand, selector: i64| -> Operand {
            self.result("prmt.b32", ScalarType::B32, [a.clone(), b.clone(), selector.into()]).into()
        };
        match words.as_slice() {
            [a, b] if element.bytes() == 2 => join(a, b, 0x5410),
            [a, b] => join(a, b, 0x0040),
            [a, b, c, d] => {
                let (low, high) = (join(a, b, 0x0040), join(c, d, 0x0040));
                join(&low, &high, 0x5410)
            }
            [one, ..] => one.clone(),
            [] => Immediate::Int(0).into(),
        }
    }

    /// Binds the lanes of what was loaded.
    fn unpack(&mut self, element: ElementType, parts: &Parts, registers: &[RegId], lanes: &[ValueId]) {
        let per_part = lanes.len() / parts.count;
        for (word, lanes) in registers.iter().copied().zip(lanes.chunks(per_part)) {
            if let ([low, high], ScalarType::B16) = (lanes, register_type(Type::Element(element))) {
                let halves = [self.f.reg(ScalarType::B16), self.f.reg(ScalarType::B16)];
                self.emit("mov.b32", [Operand::vector(halves), word.into()]);
                self.bind(*low, halves[0]);
                self.bind(*high, halves[1]);
                continue;
            }
            for (n, lane) in lanes.iter().enumerate() {
                let mut register = word;
                if per_part > 1 {
                    let sign = if element.is_signed_integer() { "s" } else { "u" };
                    let bits = 8 * element.bytes();
                    let position = bits * n as u32;
                    let sources = [word.into(), position.into(), bits.into()];
                    register = self.result(&format!("bfe.{sign}32"), ScalarType::B32, sources);
                }
                if element == ElementType::Bool {
                    register = self.result("setp.ne.u32", ScalarType::Pred, [register.into(), 0.into()]);
                }
                self.bind(*lane, register);
            }
        }
    }
}

/// What one instruction moves: `count` registers.
struct Parts {
    count: usize,
    memory: ScalarType,
    register: ScalarType,
}

/// How `lanes` lanes of at most [`VECTOR_BYTES`] together are moved.
fn parts(element: ElementType, lanes: usize) -> Parts {
    let memory = memory_type(element);
    let bytes = element.bytes() as usize * lanes;
    match (element.bytes(), bytes) {
        (1 | 2, 4..) => Parts { count: bytes / 4, memory: ScalarType::B32, register: ScalarType::B32 },
        (1, 2) => Parts { count: 1, memory: ScalarType::U16, register: ScalarType::B32 },
        _ => {
            let register = register_type(Type::Element(element));
            let register = if register == ScalarType::Pred { ScalarType::B32 } else { register };
            Parts { count: lanes, memory, register }
        }
    }
}

const fn vector(count: usize) -> &'static str {
    match count {
        2 => ".v2",
        4 => ".v4",
        _ => "",
    }
}

/// One operand, or a vector of several.
fn group(mut operands: impl ExactSizeIterator<Item = Operand>) -> Operand {
    if operands.len() == 1 {
        return operands.next().unwrap_or(Operand::Sink);
    }
    Operand::vector(operands)
}
