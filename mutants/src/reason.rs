//! Mistakes in protocols that change nothing, and why.

use tilewright_compiler::kernel_ir::{Kernel, MbarrierId, Region, Statement, StatementKind};

use crate::protocol::acts;

/// Why a mistake that nobody notices is none, if that is known.
pub fn reason(kernel: &Kernel, (region, at): (usize, usize)) -> Option<&'static str> {
    let (mut looped, mut alone) = (Vec::new(), Vec::new());
    // A region, whether it is in a loop, and whether a role of one warp runs it.
    let mut open = vec![(Kernel::BODY, false, false)];
    while let Some((own, inside, of_warp)) = open.pop() {
        looped.extend(inside.then_some(own.index()));
        alone.extend(of_warp.then_some(own.index()));
        for statement in &kernel.region(own).statements {
            match &statement.kind {
                StatementKind::Loop(l) => open.push((l.body, true, of_warp)),
                StatementKind::If(branch) => {
                    open.extend([branch.then].into_iter().chain(branch.otherwise).map(|part| (part, inside, of_warp)));
                }
                StatementKind::Elect(part) => open.push((*part, inside, of_warp)),
                StatementKind::Roles(roles) => {
                    open.extend(roles.iter().map(|role| (role.body, inside, role.warps.len() == 1)));
                }
                _ => {}
            }
        }
    }
    let is_looped = looped.contains(&region);
    let statements = &kernel.regions[region].statements;
    match statements[at].kind {
        StatementKind::MbarrierArrive { .. } if !is_looped => {
            Some("the block takes no other tile, and nobody fills the slot again")
        }
        StatementKind::BarWarpSync if alone.contains(&region) => {
            let next = statements[at + 1..].iter().find(|s| acts(&s.kind));
            let is_elected = next.is_some_and(|s| matches!(s.kind, StatementKind::Elect(_)));
            is_elected.then_some("who is elected in a role of one warp waits for its lanes first")
        }
        StatementKind::BulkWaitGroupRead { .. } | StatementKind::BulkCommitGroup if stored_once(kernel, &looped) => {
            Some("each slot is stored once, and a later wait is for all of them")
        }
        StatementKind::FenceProxyAsync if is_published_later(kernel, &statements[at + 1..]) => {
            Some("the same threads publish it again, and who waits for it waits for that as well")
        }
        _ => None,
    }
}

/// Whether the threads that published something, before these statements, publish again and arrive then at a barrier
/// for which everybody waits, who waits for one of those at which they arrive before that.
fn is_published_later(kernel: &Kernel, after: &[Statement]) -> bool {
    let is_fence = |s: &Statement| matches!(s.kind, StatementKind::FenceProxyAsync);
    let arrivals = |part: &[Statement]| -> Vec<MbarrierId> {
        let barrier = |s: &Statement| match s.kind {
            StatementKind::MbarrierArrive { barrier, .. } => Some(barrier),
            _ => None,
        };
        part.iter().filter_map(barrier).collect()
    };
    let Some(fence) = after.iter().position(is_fence) else { return false };
    let (first, second) = (arrivals(&after[..fence]), arrivals(&after[fence..]));
    let awaited = |s: &Statement| match s.kind {
        StatementKind::MbarrierWait { barrier, .. } => Some(barrier),
        _ => None,
    };
    // Of each wait for this barrier, whether waits for the later one follow, with nothing done between.
    let is_followed = |barrier: MbarrierId| {
        let of_region = |region: &'_ Region| {
            let waits = (0..region.statements.len()).filter(|at| awaited(&region.statements[*at]) == Some(barrier));
            let next = |at: usize| region.statements[at + 1..].iter().filter(|s| acts(&s.kind)).map_while(awaited);
            waits.map(|at| next(at).any(|later| second.first() == Some(&later))).collect::<Vec<bool>>()
        };
        let waits: Vec<bool> = kernel.regions.iter().flat_map(of_region).collect();
        !waits.is_empty() && waits.iter().all(|is_followed| *is_followed)
    };
    !first.is_empty() && first.into_iter().all(is_followed)
}

/// Whether no place in shared memory is stored twice by the accelerator.
fn stored_once(kernel: &Kernel, looped: &[usize]) -> bool {
    let mut places = Vec::new();
    for (n, region) in kernel.regions.iter().enumerate() {
        for statement in &region.statements {
            let StatementKind::BulkCopy(copy) = &statement.kind else { continue };
            if copy.barrier.is_some() {
                continue;
            }
            let place = (copy.buffer, copy.slot, copy.offset);
            if looped.contains(&n) || places.contains(&place) {
                return false;
            }
            places.push(place);
        }
    }
    true
}
