//! Mistakes in protocols that change nothing, and why.

use tilewright_compiler::kernel_ir::{Kernel, Statement, StatementKind};

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
/// for which everybody waits, who waits for the one that they arrive at first.
fn is_published_later(kernel: &Kernel, after: &[Statement]) -> bool {
    let is_fence = |s: &Statement| matches!(s.kind, StatementKind::FenceProxyAsync);
    let arrival = |part: &[Statement]| {
        part.iter().find_map(|s| match s.kind {
            StatementKind::MbarrierArrive { barrier, .. } => Some(barrier),
            _ => None,
        })
    };
    let Some(fence) = after.iter().position(is_fence) else { return false };
    let (Some(first), Some(second)) = (arrival(&after[..fence]), arrival(&after[fence..])) else { return false };
    let awaited = |s: &Statement| match s.kind {
        StatementKind::MbarrierWait { barrier, .. } => Some(barrier),
        _ => None,
    };
    kernel.regions.iter().all(|region| {
        let statements = &region.statements;
        (0..statements.len()).filter(|at| awaited(&statements[*at]) == Some(first)).all(|at| {
            let mut next = statements[at + 1..].iter().filter(|s| acts(&s.kind)).map_while(awaited);
            next.any(|barrier| barrier == second)
        })
    })
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
