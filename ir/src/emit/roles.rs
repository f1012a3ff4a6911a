//! Roles: warps of a block that run regions of their own, and what they tell each other.
//!
//! A role is entered by a branch on the number of the warp, which all its lanes take. Its barrier is one of the sixteen
//! that a block has, by a constant number, so that the assembler reserves no others. What the elected thread does
//! stands in a branch on the result of `elect.sync`: there the assembler knows that one lane runs, and makes no loop
//! over lanes of copies by the accelerator, whose operands it keeps in uniform registers. With predicates in place of
//! the branch it does where predicates are scarce. Arrivals have the scope that the instruction has by default: they
//! say that reads are over, and hand over what was written in the own block (PTX manual, mbarrier.arrive).

use std::ops::Range;

use tilewright_kernel::target::{BLOCK_LIMIT, WARP, WARPGROUP, register_limit};
use tilewright_ptx::{Address, Operand, RegId, ScalarType, SpecialReg};

use super::entry::Entry;
use crate::kernel_ir::{MbarrierId, Receivers, RegionId, Role, StatementKind, ValueId};

/// Barriers of roles are numbered from here on, after those of the block and of up to eight warpgroups.
const FIRST_BARRIER: u32 = 1 + BLOCK_LIMIT / WARPGROUP;

/// The role that is emitted.
#[derive(Clone, Debug)]
pub(super) struct InRole {
    number: u32,
    warps: Range<u32>,
    /// The barrier where its blocks meet, and the register with the parity of the phase that ends there next.
    meets: Option<(MbarrierId, RegId)>,
}

impl Entry<'_> {
    /// The barrier of the block, or of the role, with how many threads meet there.
    pub(super) fn meeting(&self) -> Vec<Operand> {
        match &self.role {
            None => vec![0.into()],
            Some(InRole { number, warps, .. }) => {
                vec![(FIRST_BARRIER + number).into(), (warps.len() as u32 * WARP).into()]
            }
        }
    }

    /// All threads of the block, or of the role, wait for each other.
    pub(super) fn sync(&mut self) {
        let meeting = self.meeting();
        self.emit("bar.sync", meeting);
    }

    /// The first thread of the block, or of the role.
    pub(super) fn first_thread(&self) -> u32 {
        self.role.as_ref().map_or(0, |role| role.warps.start * WARP)
    }

    pub(super) fn roles(&mut self, roles: &[Role]) {
        let thread = self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]);
        let warp = self.result("shr.u32", ScalarType::B32, [thread.into(), WARP.trailing_zeros().into()]);
        let usual = register_limit(self.kernel.signature.threads);
        // Behind a role the assembler counts with as few registers as that left: one that keeps those of the launch is
        // not to be there. Others say how many they have.
        let keeps = roles.iter().rposition(|role| role.registers.is_none());
        let leaves = |n: usize, role: &Role| role.registers.is_some() && keeps.is_some_and(|last| n < last);
        let over = (roles.iter().enumerate().any(|(n, role)| leaves(n, role))).then(|| self.f.label("roles"));
        for (number, role) in (0..).zip(roles) {
            let end = self.f.label("role");
            let from = self.result("sub.s32", ScalarType::B32, [warp.into(), role.warps.start.into()]);
            let comes = self.result("setp.lt.u32", ScalarType::Pred, [from.into(), (role.warps.len() as u32).into()]);
            // Not `bra.uni`: only the threads of a warp agree.
            self.jump(comes, true, "bra", end);
            if let Some(registers) = role.registers {
                let way = if registers > usual { "inc" } else { "dec" };
                self.emit(&format!("setmaxnreg.{way}.sync.aligned.u32"), [registers.into()]);
            }
            // The parity of the phase that ends where its blocks meet next.
            let meets = role.cluster_mbarrier.map(|barrier| (barrier, self.moved(ScalarType::B32, 0.into())));
            self.role = Some(InRole { number, warps: role.warps.clone(), meets });
            let outer = std::mem::replace(&mut self.converged, false);
            self.region(role.body);
            (self.role, self.converged) = (None, outer);
            if let Some(over) = over.filter(|_| leaves(number as usize, role)) {
                self.emit("bra", [over.into()]);
            }
            self.block.label(end);
        }
        over.into_iter().for_each(|over| self.block.label(over));
        self.sync();
    }

    /// The elected thread of a role: a lane of its first warp.
    pub(super) fn elect_in_role(&mut self, part: RegionId) {
        let Some(InRole { warps, .. }) = self.role.clone() else { return };
        let end = self.f.label("end");
        let several = warps.len() > 1;
        if several {
            let thread = self.result("mov.u32", ScalarType::B32, [SpecialReg::TidX.into()]);
            let warp = self.result("shr.u32", ScalarType::B32, [thread.into(), WARP.trailing_zeros().into()]);
            let first = self.result("setp.eq.u32", ScalarType::Pred, [warp.into(), warps.start.into()]);
            self.jump(first, true, "bra", end);
        } else {
            // What its lanes waited for is after them.
            self.emit("bar.warp.sync", [u32::MAX.into()]);
        }
        let chosen = self.one_lane();
        let other = self.f.label("end");
        self.jump(chosen, true, "bra", other);
        self.region(part);
        self.block.label(other);
        self.block.label(end);
    }

    /// A predicate that holds for one lane of the warp.
    fn one_lane(&mut self) -> RegId {
        let chosen = self.f.reg(ScalarType::Pred);
        let results = Operand::pair(Operand::Sink, chosen);
        self.emit("elect.sync", [results, u32::MAX.into()]);
        chosen
    }

    /// Finds out who arrives where, if warps arrive in all blocks of the cluster: each of the first lanes in one. A
    /// block takes one instruction of a warp, and all of them no more.
    pub(super) fn prepare_arrivals(&mut self) {
        let mut statements = self.kernel.regions.iter().flat_map(|region| &region.statements);
        let arrives = statements.any(|statement| match &statement.kind {
            StatementKind::MbarrierArrive { to: Receivers::All, .. } => true,
            StatementKind::Roles(roles) => roles.iter().any(|role| role.cluster_mbarrier.is_some()),
            _ => false,
        });
        if arrives {
            self.arrives = Some(self.lanes_of_blocks());
        }
    }

    /// The block that a lane of a warp arrives in, and whether it does.
    fn lanes_of_blocks(&mut self) -> (RegId, RegId) {
        let blocks = self.kernel.signature.cluster;
        let lane = self.result("mov.u32", ScalarType::B32, [SpecialReg::Laneid.into()]);
        // Other lanes have a block, too, and do not arrive.
        let rank = self.result("rem.u32", ScalarType::B32, [lane.into(), blocks.into()]);
        (rank, self.result("setp.lt.u32", ScalarType::Pred, [lane.into(), blocks.into()]))
    }

    /// Each warp arrives at a barrier, after all its lanes.
    pub(super) fn release(&mut self, barrier: MbarrierId, slot: ValueId, to: Receivers) {
        let own = self.barrier(barrier, slot);
        self.emit("bar.warp.sync", [u32::MAX.into()]);
        let (rank, comes) = match to {
            Receivers::Own => {
                let chosen = self.one_lane();
                return self.arrive_if(chosen, "mbarrier.arrive.shared.b64", own);
            }
            Receivers::One(rank) => (self.operand(rank), self.one_lane()),
            Receivers::All => self.each_block(),
        };
        let there = self.in_block(own, rank);
        self.arrive_if(comes, "mbarrier.arrive.shared::cluster.b64", there);
    }

    /// The threads of the role in all blocks of the cluster wait for each other. What each wrote is handed over:
    /// arrivals release, and the wait acquires, at the scope of the cluster (PTX manual, mbarrier.arrive and
    /// mbarrier.try_wait); what the lanes of a warp wrote comes before its arrivals. Each of its first lanes arrives in
    /// one block: a release of this scope waits for memory, and so does it once.
    pub(super) fn meet_in_role(&mut self) {
        let Some(InRole { meets: Some((barrier, parity)), .. }) = self.role.clone() else { return };
        let own = self.first_barrier(barrier);
        self.emit("bar.warp.sync", [u32::MAX.into()]);
        let (rank, comes) = self.each_block();
        let there = self.in_block(own, rank);
        self.arrive_if(comes, "mbarrier.arrive.release.cluster.shared::cluster.b64", there);
        self.wait("mbarrier.try_wait.parity.acquire.cluster.shared.b64", own, parity.into());
        // Lanes that saw it at different times go on together: what they load next is one access.
        self.emit("bar.warp.sync", [u32::MAX.into()]);
        self.emit("xor.b32", [parity.into(), parity.into(), 1.into()]);
    }

    /// The same, computed once where it was known that it is needed.
    fn each_block(&mut self) -> (Operand, RegId) {
        let (rank, comes) = self.arrives.unwrap_or_else(|| self.lanes_of_blocks());
        (rank.into(), comes)
    }

    /// Where the barrier at an address lies in another block of the cluster.
    fn in_block(&mut self, own: Address, rank: Operand) -> Address {
        let (base, bytes) = self.split(own);
        let there = self.result("mapa.shared::cluster.u32", ScalarType::B32, [base.into(), rank]);
        Address::reg(there).offset(bytes)
    }

    /// The lanes for which a predicate holds arrive at a barrier, subject to the guard of a predicated branch.
    fn arrive_if(&mut self, comes: RegId, mnemonic: &str, barrier: Address) {
        let outer = self.guard;
        self.guard = Some(match outer {
            Some(guard) => self.result("and.pred", ScalarType::Pred, [comes.into(), guard.into()]),
            None => comes,
        });
        self.effect(mnemonic, [Operand::Sink, barrier.into()]);
        self.guard = outer;
    }
}
