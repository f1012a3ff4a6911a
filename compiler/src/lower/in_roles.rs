//! Which role runs what in a finished kernel, and what several of them use.

use std::ops::Range;

use crate::kernel_ir::{Kernel, Memory, RegionId, StatementKind};

/// Who runs each region, and who uses each buffer and barrier.
pub(super) struct InRoles {
    /// The threads that run each region.
    threads: Vec<Range<u32>>,
    /// Buffers that several roles use.
    pub buffers: Vec<bool>,
    /// Barriers that several roles use.
    pub barriers: Vec<bool>,
    /// The first role that uses each buffer, as its first thread.
    pub of_buffers: Vec<Option<u32>>,
}

impl InRoles {
    /// Those of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let mut found = Self {
            threads: vec![0..kernel.signature.threads; kernel.regions.len()],
            buffers: vec![false; kernel.buffers.len()],
            barriers: vec![false; kernel.barriers.len()],
            of_buffers: vec![None; kernel.buffers.len()],
        };
        let mut of_barriers = vec![None; kernel.barriers.len()];
        found.region(kernel, Kernel::BODY, 0..kernel.signature.threads, &mut of_barriers);
        found
    }

    /// The threads that run a region.
    pub fn threads(&self, region: RegionId) -> Range<u32> {
        self.threads[region.index()].clone()
    }

    fn region(&mut self, kernel: &Kernel, region: RegionId, threads: Range<u32>, of_barriers: &mut [Option<u32>]) {
        self.threads[region.index()] = threads.clone();
        let meets = |of: &mut Option<u32>, several: &mut bool| {
            let first = *of.get_or_insert(threads.start);
            *several |= first != threads.start;
        };
        for statement in &kernel.region(region).statements {
            let (mut buffer, mut barrier) = (None, None);
            let mut inner = Vec::new();
            match &statement.kind {
                StatementKind::Loop(l) => inner.push((l.body, threads.clone())),
                StatementKind::If(branch) => {
                    inner.extend(std::iter::once(branch.then).chain(branch.otherwise).map(|r| (r, threads.clone())));
                }
                StatementKind::Elect(part) => inner.push((*part, threads.clone())),
                StatementKind::Roles(roles) => inner.extend(roles.iter().map(|role| (role.body, role.threads()))),
                StatementKind::Load(load) | StatementKind::LoadPeer { load, .. } => buffer = Some(load.memory),
                StatementKind::Store(store) | StatementKind::Spread(store) => buffer = Some(store.memory),
                StatementKind::Fetch(fetch) => buffer = Some(Memory::Buffer(fetch.buffer)),
                StatementKind::Transfer(transfer) => {
                    (buffer, barrier) = (Some(Memory::Buffer(transfer.buffer)), transfer.barrier);
                }
                StatementKind::Expect { barrier: of, .. }
                | StatementKind::Await { barrier: of, .. }
                | StatementKind::Release { barrier: of, .. } => barrier = Some(*of),
                _ => {}
            }
            if let Some(Memory::Buffer(of)) = buffer {
                meets(&mut self.of_buffers[of.index()], &mut self.buffers[of.index()]);
            }
            if let Some(of) = barrier {
                meets(&mut of_barriers[of.index()], &mut self.barriers[of.index()]);
            }
            for (region, threads) in inner {
                self.region(kernel, region, threads, of_barriers);
            }
        }
    }
}
