//! Products of matrices by tensor cores: `wgmma`, and the descriptors of its operands.
//!
//! A descriptor is made of two words. The low one has the address in units of 16 bytes; the high one is a constant. Of
//! the matrices of a group, those that lie a constant apart have descriptors a constant apart: one addition, in
//! registers that the lanes of a warp share. What does not change in a loop is computed before it; the slot of a ring
//! is then one multiplication and addition, which takes both words at once.
//!
//! A left matrix in registers is words of several elements. They are packed before the fence that the products of a
//! group stand behind, since it is these words that the tensor cores read.

use tilewright_kernel::ElementType;
use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::tensor_map::GRANULE;
use tilewright_ptx::{Address, AddressBase, Operand, RegId, ScalarType, Symbol};

use super::entry::Entry;
use crate::kernel_ir::{
    Factor, Loop, Matrix, Memory, MmaSync, Product, RegionId, Statement, StatementKind, ValueId, VariableId, Wgmma,
};

/// A descriptor that others are a constant apart from.
#[derive(Clone, Copy)]
pub(super) struct Known {
    origin: Origin,
    /// Bytes that are added to the address.
    bytes: i64,
    /// Its words: the address is in the first one, which has room for all of shared memory.
    words: [RegId; 2],
    descriptor: RegId,
}

/// What descriptors have in common that are a constant apart.
#[derive(Clone, Copy, PartialEq)]
struct Origin {
    /// The address, without multiples of the granule that are added to it.
    base: AddressBase,
    rest: i64,
    /// The slot, if one is added that is not known.
    slot: Option<ValueId>,
    /// The other fields.
    bits: u64,
}

impl Entry<'_> {
    pub(super) fn product(&mut self, product: &Wgmma) {
        let (left, right) = (self.element_of(&product.a), self.element_in(&product.b));
        let sum = Wgmma::sum(left, right).unwrap_or(ElementType::F32);
        let Wgmma { columns, a, b, adds, .. } = product;
        let shape = format!("m64n{columns}k{}", Wgmma::depth(left.bytes()));
        let mnemonic =
            format!("wgmma.mma_async.sync.aligned.{shape}.{}.{}.{}", spelled(sum), spelled(left), spelled(right));
        let left_at = match a {
            Factor::Shared(matrix) => self.descriptor(matrix).into(),
            Factor::Registers(variables) => Operand::vector(self.words(left, variables)),
        };
        let right_at = self.descriptor(b);
        let sums: Vec<Operand> = product.all().filter_map(|v| self.variables[v.index()]).map(Operand::from).collect();
        let adds = match adds {
            Some(adds) => match self.of_part(*adds) {
                Some(adds) => i64::from(adds).into(),
                None => self.register(*adds).into(),
            },
            None => 1.into(),
        };
        let mut operands = vec![Operand::vector(sums.into_iter()), left_at, right_at.into(), adds];
        if !left.is_integer() {
            operands.extend([1.into(), 1.into()]);
        }
        if left.bytes() == 2 {
            operands.extend(Product::Wgmma(product).matrices().map(|matrix| Operand::from(i64::from(matrix.across))));
        }
        self.emit(&mnemonic, operands);
    }

    /// A product of the matrices that a warp holds.
    pub(super) fn product_of_warp(&mut self, product: &MmaSync) {
        let MmaSync { a, b, .. } = product;
        let (left, right) = (self.element_held(a), self.element_held(b));
        let sum = Wgmma::sum(left, right).unwrap_or(ElementType::F32);
        let depth = Wgmma::depth(left.bytes());
        let [sum, of_left, of_right] = [sum, left, right].map(spelled);
        let mnemonic = format!("mma.sync.aligned.m16n8k{depth}.row.col.{sum}.{of_left}.{of_right}.{sum}");
        let [a, b] = [(left, a), (right, b)].map(|(element, held)| Operand::vector(self.words(element, held)));
        let sums: Vec<Operand> = product.all().filter_map(|v| self.variables[v.index()]).map(Operand::from).collect();
        let sums = Operand::vector(sums);
        self.emit(&mnemonic, [sums.clone(), a, b, sums]);
    }

    fn element_in(&self, matrix: &Matrix) -> ElementType {
        self.kernel.element(Memory::Buffer(matrix.buffer)).unwrap_or(ElementType::F32)
    }

    fn element_of(&self, factor: &Factor) -> ElementType {
        match factor {
            Factor::Shared(matrix) => self.element_in(matrix),
            Factor::Registers(variables) => self.element_held(variables),
        }
    }

    /// The type of a matrix that variables hold.
    fn element_held(&self, variables: &[VariableId]) -> ElementType {
        let of = |v: &VariableId| self.kernel.variables.get(v.index())?.element();
        variables.first().and_then(of).unwrap_or(ElementType::F32)
    }

    /// Packs what the products of the group read from registers: those that come next, up to its end.
    pub(super) fn pack_factors(&mut self, next: &[Statement]) {
        for statement in next {
            match &statement.kind {
                StatementKind::Wgmma(product) => {
                    let element = self.element_of(&product.a);
                    if let Factor::Registers(variables) = &product.a {
                        self.words(element, variables);
                    }
                }
                StatementKind::WgmmaCommitGroup => return,
                _ => {}
            }
        }
    }

    /// The words that hold a matrix.
    fn words(&mut self, element: ElementType, variables: &[VariableId]) -> Vec<RegId> {
        if let Some((_, known)) = self.factors.iter().find(|known| known.0 == variables) {
            return known.clone();
        }
        let each = (Wgmma::FACTOR_REGISTER / element.bytes()) as usize;
        let registers: Vec<RegId> = variables.iter().filter_map(|v| self.variables[v.index()]).collect();
        let word = |lanes: &[RegId]| match self.pack(element, lanes.iter().map(|r| (*r).into()).collect()) {
            Operand::Reg(word) if lanes.len() > 1 => word,
            lane => self.moved(ScalarType::B32, lane),
        };
        let found: Vec<RegId> = registers.chunks(each).map(word).collect();
        self.factors.push((variables.to_vec(), found.clone()));
        found
    }

    /// Finds out what products add to. Kernels that have some take the address of shared memory once: their loops need
    /// it for every product.
    pub(super) fn prepare_products(&mut self, dynamic: Option<Symbol>) {
        let statements = self.kernel.regions.iter().flat_map(|region| &region.statements);
        let products = statements.filter_map(|s| match &s.kind {
            StatementKind::Wgmma(product) => Some(product),
            _ => None,
        });
        let mut sums: Vec<VariableId> = products.flat_map(Wgmma::all).collect();
        sums.sort_unstable();
        sums.dedup();
        self.sums = sums;
        let dynamic = dynamic.filter(|_| self.kernel.shared_map().dynamic_bytes().is_some());
        if let Some(symbol) = dynamic.filter(|_| !self.sums.is_empty()) {
            let base = self.result("mov.u32", ScalarType::B32, [symbol.into()]);
            self.shared_start = Some((symbol, base));
        }
    }

    /// Whether warpgroups multiply.
    pub(super) fn has_wgmma(&self) -> bool {
        !self.sums.is_empty()
    }

    /// Whether the first product that adds to a variable replaces what is in it.
    pub(super) fn is_unset_sum(&self, variable: VariableId) -> bool {
        self.sums.binary_search(&variable).is_ok() && self.kernel.is_unset(variable)
    }

    /// The address of a symbol in shared memory.
    pub(super) fn start_of(&mut self, symbol: Symbol) -> RegId {
        match self.shared_start {
            Some((known, base)) if known == symbol => base,
            _ => self.result("mov.u32", ScalarType::B32, [symbol.into()]),
        }
    }

    fn descriptor(&mut self, matrix: &Matrix) -> RegId {
        let slot = matrix.slot;
        let pitch = self.pitch(matrix);
        let first = self.address(Memory::Buffer(matrix.buffer), matrix.offset);
        let (origin, mut bytes) = Self::origin(matrix, first);
        let literal = self.kernel.index_literal(slot);
        bytes += literal.map_or(0, |slot| slot * pitch);
        let of_slot = Origin { slot: literal.is_none().then_some(slot), ..origin };
        if let Some(known) = self.apart(of_slot, bytes) {
            return known;
        }
        if literal.is_some() {
            return self.apart(origin, bytes).unwrap_or_else(|| self.first_descriptor(origin, bytes).descriptor);
        }
        let first = self.descriptors.iter().find(|known| known.origin == origin).copied();
        let first = first.unwrap_or_else(|| self.first_descriptor(origin, bytes));
        let (units, more) = (pitch / GRANULE as i64, (bytes - first.bytes) / GRANULE as i64);
        let (slot, [start, high]) = (self.operand(slot), first.words);
        let mut low = self.result("mad.lo.s32", ScalarType::B32, [slot, units.into(), start.into()]);
        if more != 0 {
            low = self.result("add.s32", ScalarType::B32, [low.into(), more.into()]);
        }
        if matrix.told {
            low = self.of_warp(low.into());
        }
        self.pair(of_slot, bytes, [low, high]).descriptor
    }

    /// What all lanes of a warp have: the same bits, and so does what they are together.
    pub(super) fn of_warp(&mut self, own: Operand) -> RegId {
        self.result("redux.sync.or.b32", ScalarType::B32, [own, u32::MAX.into()])
    }

    /// The descriptor that has two words, known from here on.
    fn pair(&mut self, origin: Origin, bytes: i64, words: [RegId; 2]) -> Known {
        let descriptor = self.result("mov.b64", ScalarType::B64, [Operand::vector(words)]);
        let known = Known { origin, bytes, words, descriptor };
        self.descriptors.push(known);
        known
    }

    /// Bytes from a slot of a matrix's buffer to the next one.
    fn pitch(&self, matrix: &Matrix) -> i64 {
        let buffer = self.kernel.buffers.get(matrix.buffer.index());
        buffer.map_or(0, |b| i64::from(b.elements) * i64::from(b.element.bytes()))
    }

    /// What the descriptor of a matrix at an address comes from, and bytes that are added to the address.
    fn origin(matrix: &Matrix, at: Address) -> (Origin, i64) {
        let Matrix { leading, stride, swizzle, .. } = *matrix;
        let bits = Descriptor { start: 0, leading, stride, base: 0, swizzle }.encode();
        let rest = at.offset.rem_euclid(GRANULE as i64);
        (Origin { base: at.base, rest, slot: None, bits }, at.offset - rest)
    }

    /// The descriptor that comes from the same as one that is known.
    fn apart(&mut self, origin: Origin, bytes: i64) -> Option<RegId> {
        let Known { bytes: known, descriptor, .. } = *self.descriptors.iter().find(|known| known.origin == origin)?;
        Some(match (bytes - known) / GRANULE as i64 {
            0 => descriptor,
            more => self.result("add.s64", ScalarType::B64, [descriptor.into(), more.into()]),
        })
    }

    fn first_descriptor(&mut self, origin: Origin, bytes: i64) -> Known {
        let Origin { base, rest, bits, .. } = origin;
        let [low, high] = [bits as u32, (bits >> 32) as u32].map(|word| i64::from(word.cast_signed()));
        let (mut start, _) = self.split(Address { base, offset: 0 });
        if rest != 0 {
            start = self.result("add.s32", ScalarType::B32, [start.into(), rest.into()]);
        }
        let shift = GRANULE.trailing_zeros();
        let units = self.result("shr.u32", ScalarType::B32, [start.into(), shift.into()]);
        let low = self.result("add.s32", ScalarType::B32, [units.into(), (low + (bytes >> shift)).into()]);
        let high = self.result("mov.b32", ScalarType::B32, [high.into()]);
        self.pair(origin, bytes, [low, high])
    }

    /// How many descriptors are known here, and how many of them were computed before a loop.
    pub(super) fn known_descriptors(&self) -> (usize, usize) {
        (self.descriptors.len(), self.kept_descriptors)
    }

    /// After a region that may not be executed: those that were known before it.
    pub(super) fn forget_descriptors(&mut self, known: (usize, usize)) {
        self.descriptors.truncate(known.0);
        self.kept_descriptors = known.1;
    }

    /// Computes the descriptors of a loop's products before it, as far as they do not change in it.
    pub(super) fn descriptors_before(&mut self, l: &Loop) {
        let mut matrices = Vec::new();
        if !self.sums.is_empty() {
            self.matrices_in(l.body, &mut matrices);
        }
        for matrix in matrices {
            let Some(first) = self.known_address(Memory::Buffer(matrix.buffer), matrix.offset) else { continue };
            let (origin, bytes) = Self::origin(&matrix, first);
            if !self.descriptors.iter().any(|known| known.origin == origin) {
                self.first_descriptor(origin, bytes);
            }
        }
        self.kept_descriptors = self.descriptors.len();
    }

    /// The matrices of the products in a region, with those of all regions in it.
    fn matrices_in(&self, region: RegionId, found: &mut Vec<Matrix>) {
        for statement in &self.kernel.region(region).statements {
            let effects = statement.kind.effects();
            found.extend(effects.adds.into_iter().flat_map(Product::matrices).copied());
            effects.inside.regions().for_each(|part| self.matrices_in(part, found));
        }
    }
}

/// How `wgmma` spells a type.
const fn spelled(element: ElementType) -> &'static str {
    match element {
        ElementType::I8 => "s8",
        ElementType::I32 => "s32",
        other => other.name(),
    }
}
