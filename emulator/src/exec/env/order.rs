//! What orders accesses: fences, strong accesses, and the accesses to global memory that other CTAs may meet.

use std::sync::PoisonError;

use super::Env;
use crate::decode::op::{Fence, Space, Strength};
use crate::exec::access::{space_of, window};
use crate::exec::global::report_outside;
use crate::exec::request::{Shape, Touch};
use crate::lanes::{Mask, Wide, lanes};
use crate::shadow::cell::{AccessKind, Who};
use crate::shadow::grid::{GridConflict, Point};
use crate::shadow::line::Run;

impl Env<'_> {
    /// A fence by the lanes `run` of the warp that runs, to which those of `mask` came. Where all that live come to it
    /// together, it orders them too: nothing promises that, but programs of whole warps (Triton's) are written so, and
    /// no machine does otherwise. For other CTAs all of them must execute it, inside the CTA a guarded one will do.
    #[inline(never)]
    pub fn fence(&mut self, pc: u32, fence: Fence, (run, mask, live): (Mask, Mask, Mask)) {
        if !self.cx.options.sanitizers.races {
            return;
        }
        if let (true, Some(grid)) = (fence.wide, &self.cx.grid_order) {
            let mut grid = grid.lock().unwrap_or_else(PoisonError::into_inner);
            grid.fence(&mut self.view, &self.clocks, fence, (self.warp as usize, run, run == live), pc);
        }
        self.order.fence(&mut self.clocks, self.warp as usize, fence, mask == live);
    }

    /// Strong accesses of some lanes. What one reads orders something for other CTAs only if the program gets it
    /// (`returns`): else nothing can depend on what came before, and another run may have another order.
    #[inline(never)]
    pub(in crate::exec) fn order(&mut self, shape: &Shape, space: Space, addresses: &Wide, run: Mask, returns: bool) {
        if !self.cx.options.sanitizers.races {
            return;
        }
        let warp = self.warp as usize;
        let outside = self.cx.grid_order.as_ref().filter(|_| shape.strength == Strength::Strong { wide: true });
        let mut outside = outside.map(|grid| grid.lock().unwrap_or_else(PoisonError::into_inner));
        for lane in lanes(run) {
            let address = self.named(addresses[lane].wrapping_add(window(space)));
            match shape.touch {
                Touch::Load => self.order.read(warp, address),
                Touch::Store => self.order.write(warp, address),
                Touch::Atomic | Touch::Exchange => self.order.update(warp, address),
            }
            let Some(grid) = outside.as_mut().filter(|_| space_of(address) == Space::Global) else { continue };
            let bytes = (address, shape.total());
            let point = Point { warp: self.warp, lane: lane as u32, pc: shape.pc };
            grid.strong(&mut self.view, bytes, point, self.clocks.epoch(warp), returns);
            if shape.touch != Touch::Store {
                grid.read(&mut self.view, bytes, point);
            }
            if shape.touch != Touch::Load {
                grid.write(&self.view, self.number, bytes, point, shape.touch != Touch::Store);
            }
        }
    }

    /// Records an access to global memory for other CTAs, if anything may order them.
    #[inline(always)]
    pub(in crate::exec) fn outside(&mut self, run: Run, kind: AccessKind, who: Who) -> Option<GridConflict> {
        self.cx.grid_order.as_ref().and_then(|_| self.order_outside(run, kind, who))
    }

    /// The same of a copy.
    pub(in crate::exec) fn copy_outside(&mut self, (address, bytes): (u64, u64), writes: bool, who: Who) {
        let Some(grid) = &self.cx.grid_order else { return };
        let regions = &self.cx.regions;
        let constant = |index| regions.get(index).constant;
        if !writes && regions.find(address, bytes, false, usize::MAX).is_ok_and(constant) {
            return;
        }
        let kind = if writes { AccessKind::Write } else { AccessKind::Read };
        let mut grid = grid.lock().unwrap_or_else(PoisonError::into_inner);
        let found = grid.copy(&self.view, &self.clocks, self.number, (address, bytes), kind, who);
        drop(grid);
        if let Some(conflict) = found {
            report_outside(self, who.pc, (kind, 1), conflict, false);
        }
    }

    #[inline(never)]
    fn order_outside(&mut self, run: Run, kind: AccessKind, who: Who) -> Option<GridConflict> {
        let grid = self.cx.grid_order.as_ref()?;
        let mut grid = grid.lock().unwrap_or_else(PoisonError::into_inner);
        grid.access(&self.view, &self.clocks, self.number, run, kind, who)
    }
}
