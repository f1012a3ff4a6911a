//! Vector clocks of a CTA's warps.

/// The epochs of each warp, and how far each warp knows the others.
#[derive(Debug, Default)]
pub struct Clocks {
    warps: usize,
    /// Current epoch of each warp, from 1.
    epoch: Vec<u32>,
    /// `known[w · warps + v]`: the last epoch of warp v whose accesses are ordered before what warp w does now.
    known: Vec<u32>,
}

impl Clocks {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, warps: usize) {
        self.warps = warps;
        self.epoch.clear();
        self.epoch.resize(warps, 1);
        self.known.clear();
        self.known.resize(warps * warps, 0);
    }

    /// The warp's current epoch.
    #[inline(always)]
    pub fn epoch(&self, warp: usize) -> u32 {
        self.epoch[warp]
    }

    /// Whether what `warp` did in `epoch` is ordered before what warp `me` does now; between lanes of one warp see [`Clocks::same`].
    #[inline(always)]
    pub fn ordered(&self, me: usize, warp: usize, epoch: u32) -> bool {
        if me == warp { epoch < self.epoch[me] } else { epoch <= self.known[me * self.warps + warp] }
    }

    /// Ends the warp's epoch: its earlier accesses are ordered before the later ones of all its lanes.
    pub fn next_epoch(&mut self, warp: usize) {
        self.epoch[warp] = self.epoch[warp].saturating_add(1);
    }

    /// Adds all that the warp knows and did to `clock`, and ends its epoch.
    pub fn release(&mut self, warp: usize, clock: &mut Vec<u32>) {
        clock.resize(self.warps, 0);
        let row = &self.known[warp * self.warps..][..self.warps];
        for (sum, known) in clock.iter_mut().zip(row) {
            *sum = (*sum).max(*known);
        }
        clock[warp] = clock[warp].max(self.epoch[warp]);
        self.next_epoch(warp);
    }

    /// Makes everything in `clock` ordered before what the warp does now.
    pub fn acquire(&mut self, warp: usize, clock: &[u32]) {
        let row = &mut self.known[warp * self.warps..][..self.warps];
        for (known, other) in row.iter_mut().zip(clock) {
            *known = (*known).max(*other);
        }
    }
}
