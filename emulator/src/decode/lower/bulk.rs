//! Bulk and tensor copies.

use tilewright_ptx::isa::AsyncCopy;
use tilewright_ptx::{Address, AddressBase, Flag, Inst as Source, Operand, ScalarType, StateSpace, VectorWidth};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{Address as Place, BULK_OPERANDS, Bulk, BulkFn, Op, Slot};
use crate::memory::region::{CONST_WINDOW, PARAM_WINDOW};

impl Lowering<'_> {
    pub(super) fn bulk(&mut self, copy: AsyncCopy, inst: &Source) -> Lowered<()> {
        if [Flag::Im2col, Flag::Im2colNoOffs].iter().any(|flag| inst.has(*flag)) {
            return refuse("only tiled copies are supported, not `.im2col`");
        }
        match copy {
            AsyncCopy::CpAsyncBulkCommitGroup => {
                self.emit(Op::CommitBulk);
                Ok(())
            }
            AsyncCopy::CpAsyncBulkWaitGroup => {
                let Operand::Imm(count) = self.operand(inst, 0)? else { return refuse("a constant is expected") };
                let keep = count.int_bits().map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX));
                self.emit(Op::WaitBulk { keep, read: inst.has(Flag::Read) });
                Ok(())
            }
            AsyncCopy::CpAsyncBulkTensor if inst.space() == Some(StateSpace::Global) => {
                self.tiled(inst, BulkFn::StoreTile, 0, Some(1), None)
            }
            AsyncCopy::CpAsyncBulkTensor => self.tiled(inst, BulkFn::LoadTile, 1, Some(0), Some(2)),
            AsyncCopy::CpAsyncBulkPrefetchTensor => self.tiled(inst, BulkFn::PrefetchTile, 0, None, None),
            AsyncCopy::CpAsyncBulkPrefetch => {
                self.emit(Op::Nop);
                Ok(())
            }
            AsyncCopy::CpAsyncBulk => {
                let spaces: Vec<StateSpace> = inst.spaces().map(StateSpace::base).collect();
                let store = spaces.first() == Some(&StateSpace::Global);
                let across = !store && spaces.get(1) != Some(&StateSpace::Global);
                let (shared, global) = if store { (1, 0) } else { (0, 1) };
                let shared = self.address(self.operand(inst, shared)?)?;
                let global = self.address(self.operand(inst, global)?)?;
                let mbarrier = if store { None } else { Some(self.address(self.operand(inst, 3)?)?) };
                let size = self.narrow(self.operand(inst, 2)?, ScalarType::U32)?;
                let f = match (store, across) {
                    (true, _) => BulkFn::Store,
                    (_, true) => BulkFn::Across,
                    _ => BulkFn::Load,
                };
                let mask = self.multicast(inst, 4)?;
                let sizes = [Some(Slot::Narrow(size)), mask];
                self.emit_bulk(inst, f, [Some(shared), Some(global), mbarrier], sizes, Vec::new())
            }
            AsyncCopy::CpReduceAsyncBulk | AsyncCopy::CpReduceAsyncBulkTensor => {
                refuse("bulk reductions are not supported yet")
            }
            _ => refuse("tensor maps cannot be edited yet"),
        }
    }

    /// A tiled copy with its tensor and addresses at these operands.
    fn tiled(
        &mut self,
        inst: &Source,
        f: BulkFn,
        tensor: usize,
        shared: Option<usize>,
        mbarrier: Option<usize>,
    ) -> Lowered<()> {
        let Operand::Tensor(map, coordinates) = self.operand(inst, tensor)? else {
            return refuse("a tensor is expected");
        };
        let map = self.map_address(map)?;
        let mut at = |operand: Option<usize>| match operand {
            Some(index) => self.operand(inst, index).and_then(|operand| self.address(operand)).map(Some),
            None => Ok(None),
        };
        let (shared, mbarrier) = (at(shared)?, at(mbarrier)?);
        let mut start = Vec::new();
        for coordinate in coordinates {
            start.push(Some(Slot::Narrow(self.narrow(coordinate, ScalarType::S32)?)));
        }
        let mask = self.multicast(inst, 3)?;
        self.emit_bulk(inst, f, [shared, Some(map), mbarrier], [None, mask], start)
    }

    /// The generic address of a tensor map; a variable that is named is in a space of its own.
    fn map_address(&mut self, map: &Address) -> Lowered<Place> {
        let mut place = self.address(&Operand::Address(*map))?;
        if let AddressBase::Symbol(symbol) = map.base {
            let window = match self.space_of(symbol) {
                Some(StateSpace::Param | StateSpace::ParamEntry) => PARAM_WINDOW,
                Some(StateSpace::Const) => CONST_WINDOW,
                Some(StateSpace::Global) => 0,
                _ => return refuse("a tensor map is a parameter, or in constant or global memory"),
            };
            place.offset = place.offset.wrapping_add(window as i64);
        }
        Ok(place)
    }

    /// The mask of destinations, operand `at` where there is one.
    fn multicast(&mut self, inst: &Source, at: usize) -> Lowered<Option<Slot>> {
        if !inst.has(Flag::MulticastCluster) {
            return Ok(None);
        }
        self.value(self.operand(inst, at)?, ScalarType::B16).map(Some)
    }

    /// `st.async`, `red.async`.
    pub(super) fn put(&mut self, copy: AsyncCopy, inst: &Source) -> Lowered<()> {
        let ty = self.ty(inst, 0)?;
        let bytes = ty.bytes() as u8;
        let count = inst.find::<VectorWidth>().map_or(1, VectorWidth::elements);
        let to = self.address(self.operand(inst, 0)?)?;
        let data = self.data(self.operand(inst, 1)?, ty, count)?;
        let mbarrier = self.address(self.operand(inst, 2)?)?;
        let f = match copy {
            AsyncCopy::RedAsync => BulkFn::Reduce(super::memory::atomic_fn(inst, ty)?, bytes),
            _ => BulkFn::Put(bytes),
        };
        self.emit_bulk(inst, f, [Some(to), None, Some(mbarrier)], [None, None], data)
    }

    /// A copy with its addresses, its size and mask, and its coordinates or data.
    fn emit_bulk(
        &mut self,
        inst: &Source,
        f: BulkFn,
        addresses: [Option<Place>; 3],
        sizes: [Option<Slot>; 2],
        start: Vec<Option<Slot>>,
    ) -> Lowered<()> {
        let store = matches!(f, BulkFn::Store | BulkFn::StoreTile);
        let own = store || inst.spaces().next() == Some(StateSpace::SharedCta);
        let mut slots = Vec::with_capacity(BULK_OPERANDS + start.len());
        for address in &addresses {
            slots.push(match address {
                None => None,
                Some(Place { base: Some(base), .. }) => Some(*base),
                // What stands for nothing is 0, to which the offset is added.
                Some(Place { base: None, .. }) => self.slots.constant(64, 0),
            });
        }
        slots.extend(sizes);
        slots.extend(start);
        let count = slots.len() as u8;
        let data = self.push(slots);
        let site = self.kernel.bulks.len() as u32;
        let offsets = addresses.map(|address| address.map_or(0, |address| address.offset));
        self.kernel.bulks.push(Bulk { f, offsets, own });
        self.emit(Op::Bulk { site, data, count });
        Ok(())
    }
}
