//! Copies that the accelerator makes.

use super::access::{GRANULE, TILE_ALIGNMENT, sees};
use super::agent::Active;
use super::barriers::Phase;
use super::global::{Access, Actor, Sees};
use super::launch::Tiles;
use super::run::{Outcome, Run};
use super::violation::Kind;
use crate::kernel_ir::{BufferId, BulkCopy, MbarrierId, TensorPart, ValueId};

impl Run<'_> {
    /// A barrier of a block of the cluster.
    pub(super) fn phase(
        &mut self,
        rank: u8,
        barrier: MbarrierId,
        slot: ValueId,
        active: &Active,
    ) -> Outcome<&mut Phase> {
        let slot = self.agreed(slot, active)?;
        if !self.me.ready {
            return self
                .violation(Kind::NotReady, "a barrier is used before all threads know that it is ready".to_owned());
        }
        self.reach(rank)?;
        let slots = self.phases[usize::from(rank)][barrier.index()].len();
        if slot < 0 || slot >= slots as i64 {
            return self.violation(Kind::Outside, format!("slot {slot} has none of {slots} barriers"));
        }
        Ok(&mut self.phases[usize::from(rank)][barrier.index()][slot as usize])
    }

    pub(super) fn transfer(&mut self, transfer: &BulkCopy, active: &Active) -> Outcome {
        let BulkCopy { part, buffer, barrier, .. } = transfer;
        let (slot, offset) = (self.agreed(transfer.slot, active)?, self.agreed(transfer.offset, active)?);
        let of = &self.kernel.buffers[buffer.index()];
        let bytes = u64::from(of.element.bytes());
        let pieces = self.pieces(part, bytes, active)?;
        let (elements, slots) = (i64::from(of.elements), i64::from(of.slots));
        if slot < 0 || slot >= slots || offset < 0 || offset + pieces.offsets.len() as i64 > elements {
            let what =
                format!("{} elements at {offset} of slot {slot} are outside `{}`", pieces.offsets.len(), of.name);
            return self.violation(Kind::Outside, what);
        }
        self.spend(pieces.offsets.len() as u64)?;
        let own = self.me.id.rank;
        let ranks = match transfer.multicast {
            None => vec![own],
            Some(mask) => {
                let mask = self.agreed(mask, active)?;
                let cluster = self.kernel.signature.cluster;
                if mask <= 0 || mask >> cluster != 0 {
                    let what = format!("a copy goes to blocks {mask:#b} of a cluster of {cluster}");
                    return self.violation(Kind::Outside, what);
                }
                (0..cluster as u8).filter(|rank| mask >> rank & 1 == 1).collect()
            }
        };
        let within = (slot * elements + offset).unsigned_abs() * bytes;
        if !(self.shared.place(own, *buffer) + within).is_multiple_of(pieces.alignment) {
            let what = format!("a copy of `{}` is not at a multiple of {} bytes", of.name, pieces.alignment);
            return self.violation(Kind::Misaligned, what);
        }
        let copy = self.shared.issue();
        let size = pieces.offsets.len() as u64 * bytes;
        match barrier {
            Some(barrier) => {
                let clock = self.me.released(self.threads == 1);
                for &rank in &ranks {
                    let issued = self.phase(rank, *barrier, transfer.slot, active)?.issue(copy, size, &clock);
                    issued.or_else(|(kind, what)| self.violation(kind, what))?;
                }
            }
            None => self.me.groups.issue(copy),
        }
        let access = Access { block: self.me.block, by: self.me.id, actor: Actor::Copy(copy), time: self.me.order.now };
        for (n, offset) in pieces.offsets.iter().enumerate() {
            let view = self.me.view();
            let shared = &mut self.shared;
            let mut result = Ok(());
            for &rank in &ranks {
                let address = (pieces.place)(shared.place(rank, *buffer) + within + n as u64 * bytes);
                result = result.and(match (barrier, offset) {
                    (Some(_), _) => shared.fill(*buffer, address, bytes, copy, view),
                    (None, Some(_)) => shared.take(*buffer, address, bytes, copy, view),
                    (None, None) => Ok(()),
                });
            }
            if let (Some(at), Some(elements)) = (offset, &mut self.tensors[usize::from(pieces.parameter)]) {
                let others = (&self.workspaces, i64::from(self.kernel.signature.cluster));
                let sees: Sees<'_> = &|other| sees(others, view, access, other);
                let other = match barrier {
                    Some(_) => elements.read(*at, access, view, sees),
                    None => elements.write(*at, access, view, |copy| shared.is_over(copy, view), sees),
                };
                let tensor = &self.kernel.signature.parameters[usize::from(pieces.parameter)].name;
                result =
                    result.and(other.map_err(|(kind, what)| (kind, format!("element {at} of `{tensor}`: {what}"))));
            }
            self.moved(&pieces, offset, &ranks, (own, *buffer), (within + n as u64 * bytes, barrier.is_some()));
            if let Err((kind, what)) = result {
                let name = &self.kernel.buffers[buffer.index()].name;
                return self.violation(kind, format!("a copy of slot {slot} of `{name}`, element {n}: {what}"));
            }
        }
        Ok(())
    }

    /// An element of a copy has another place; in a run with data. What lies outside the tensor is zero.
    fn moved(
        &mut self,
        pieces: &Pieces,
        offset: &Option<i64>,
        ranks: &[u8],
        (own, buffer): (u8, BufferId),
        (within, is_load): (u64, bool),
    ) {
        let Some(data) = &mut self.data else { return };
        let address = |rank: u8| (pieces.place)(self.shared.place(rank, buffer) + within);
        let ty = self.kernel.buffers[buffer.index()].element;
        match (is_load, offset) {
            (true, _) => {
                let known = offset.map_or(Some(0), |at| data.tensor(pieces.parameter, at, ty));
                ranks.iter().for_each(|rank| data.set_shared(address(*rank), known));
            }
            (false, Some(at)) => {
                let known = data.shared(address(own));
                data.set_tensor(pieces.parameter, *at, known);
            }
            (false, None) => {}
        }
    }

    /// What a copy moves.
    fn pieces(&mut self, part: &TensorPart, bytes: u64, active: &Active) -> Outcome<Pieces> {
        match part {
            TensorPart::Run { parameter, offset, bytes: run } => {
                let first = self.agreed(*offset, active)?;
                let aligned = self.tensors[usize::from(*parameter)].as_ref().is_some_and(|t| t.alignment >= GRANULE);
                if !aligned || !(first.unsigned_abs() * bytes).is_multiple_of(GRANULE) {
                    let what =
                        format!("a run starts at element {first}, which is not at a multiple of {GRANULE} bytes");
                    return self.violation(Kind::Misaligned, what);
                }
                let offsets = (0..(u64::from(*run) / bytes) as i64).map(|n| Some(first + n)).collect();
                Ok(Pieces { parameter: *parameter, offsets, place: Box::new(|at| at), alignment: GRANULE })
            }
            TensorPart::Tile { map, start } => {
                let launch = self.launch;
                let Some(Tiles { parameter, map }) = launch.maps.get(usize::from(*map)) else {
                    return self.violation(Kind::Outside, "the launch has no such tensor map".to_owned());
                };
                // Elements that nobody writes may be any of the tensor's, and what lies outside is zero.
                let is_fixed = launch.tensors[usize::from(*parameter)].as_ref().is_some_and(|tensor| !tensor.written);
                let mut corner = Vec::with_capacity(start.len());
                for value in start {
                    let at = if is_fixed {
                        self.agreed_if_known(*value, active)?
                    } else {
                        Some(self.agreed(*value, active)?)
                    };
                    // Coordinates have 32 bits, and wrap.
                    corner.extend(at.map(|at| i64::from(at as i32)));
                }
                let is_known = corner.len() == start.len();
                let counts: Vec<u64> = map.dimensions.iter().map(|d| u64::from(d.tile())).collect();
                self.spend(counts.iter().product())?;
                let offset = |mut n: u64| {
                    if !is_known {
                        return None;
                    }
                    let mut offset = 0i64;
                    for ((d, count), corner) in map.dimensions.iter().zip(&counts).zip(&corner) {
                        let at = corner + (n % count) as i64 * i64::from(d.element_stride);
                        n /= count;
                        if at < 0 || at as u64 >= d.size {
                            return None;
                        }
                        offset += at * (d.stride / bytes) as i64;
                    }
                    Some(offset)
                };
                let offsets = (0..counts.iter().product()).map(offset).collect();
                let swizzle = map.swizzle;
                let place = Box::new(move |at: u64| u64::from(swizzle.apply(at as u32)));
                Ok(Pieces { parameter: *parameter, offsets, place, alignment: TILE_ALIGNMENT })
            }
        }
    }
}

/// What a copy moves, in the order of shared memory.
struct Pieces {
    parameter: u16,
    /// Where each element is in the tensor; none outside, or where data decides that.
    offsets: Vec<Option<i64>>,
    /// Where the byte is that lies at an address without swizzle.
    place: Box<dyn Fn(u64) -> u64>,
    alignment: u64,
}
