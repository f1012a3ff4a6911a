//! What blocks of a cluster do together: their barrier, and accesses of each other's shared memory.
//!
//! `mapa` gives the address that an element of the block's own shared memory has in another block (PTX manual
//! 9.7.9.23); buffers lie at the same place in all of them. The barrier's arrival releases and its wait acquires at the
//! scope of the cluster (9.7.13.3).

use tilewright_ptx::{Address, AddressBase, RegId, ScalarType};

use super::entry::Entry;
use crate::kernel_ir::{Load, Store, ValueId};

impl Entry<'_> {
    /// All threads of the cluster wait for each other, or those of the role.
    pub(super) fn sync_cluster(&mut self) {
        if self.role.is_some() {
            return self.meet_in_role();
        }
        self.emit("barrier.cluster.arrive.release.aligned", []);
        self.emit("barrier.cluster.wait.acquire.aligned", []);
    }

    /// Stores to every block of the cluster.
    pub(super) fn spread(&mut self, store: &Store) {
        let own = self.address(store.memory, store.offset);
        let (base, bytes) = self.split(own);
        let cluster = self.kernel.signature.cluster;
        let addresses: Vec<Address> = (0..cluster)
            .map(|rank| {
                let there = self.result("mapa.shared::cluster.u32", ScalarType::B32, [base.into(), rank.into()]);
                Address::reg(there).offset(bytes)
            })
            .collect();
        self.store_to("st.shared::cluster", &addresses, store);
    }

    /// Loads from a block of the cluster.
    pub(super) fn load_peer(&mut self, rank: ValueId, load: &Load) {
        let own = self.address(load.memory, load.offset);
        let (base, bytes) = self.split(own);
        let rank = self.operand(rank);
        let there = self.result("mapa.shared::cluster.u32", ScalarType::B32, [base.into(), rank]);
        self.load_from("ld.shared::cluster", Address::reg(there).offset(bytes), load);
    }

    /// An address in shared memory as a register, and bytes after it.
    pub(super) fn split(&mut self, address: Address) -> (RegId, i64) {
        match address.base {
            AddressBase::Reg(register) => (register, address.offset),
            AddressBase::Symbol(symbol) => (self.start_of(symbol), address.offset),
            AddressBase::Absolute => (self.moved(ScalarType::B32, address.offset.into()), 0),
        }
    }
}
