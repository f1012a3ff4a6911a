//! Mistakes in protocols that change nothing, and why.

use tilewright_compiler::kernel_ir::{
    BufferId, Factor, IndexOp, Kernel, MbarrierId, Op, Region, Statement, StatementKind, ValueId,
};

use crate::protocol::acts;

/// Why a mistake that nobody notices is none, if that is known: what was at a place is not there, or only later.
pub fn reason(kernel: &Kernel, (region, at): (usize, usize), is_later: bool) -> Option<&'static str> {
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
        StatementKind::WgmmaWaitGroup { pending } => {
            let next = statements[at + 1..].iter().find(|s| acts(&s.kind)).map(|s| &s.kind);
            let is_same = matches!(next, Some(StatementKind::WgmmaWaitGroup { pending: next }) if *next <= pending);
            let mut after = statements[at + 1..].iter().filter(|s| acts(&s.kind));
            let is_arrival = |s: &Statement| matches!(s.kind, StatementKind::MbarrierArrive { .. });
            if is_later && !is_looped && after.all(is_arrival) {
                return Some("only slots that nobody fills again are handed back before it");
            }
            if is_later && is_looped && are_written_later(kernel, statements, at) {
                return Some("threads write the slots that it is about again after a barrier of the next iteration");
            }
            is_same.then_some("one for as many products follows")
        }
        StatementKind::WgmmaFence if is_fenced_before(kernel, (region, at)) => {
            Some("no register has changed since the fence of other products")
        }
        StatementKind::MbarrierWait { .. } if !is_looped && is_for_nobody(kernel, &statements[at].kind) => {
            Some("nobody has used the slot before")
        }
        StatementKind::BarSync if !is_looped && at > 0 => {
            let mut before = statements[..at].iter().filter(|s| acts(&s.kind));
            let is_first = before.all(|s| is_for_nobody(kernel, &s.kind));
            is_first.then_some("nothing comes before it but waits for slots that nobody has used")
        }
        StatementKind::FenceProxyAsync if is_published_later(kernel, &statements[at + 1..]) => {
            Some("the same threads publish it again, and who waits for it waits for that as well")
        }
        _ => None,
    }
}

/// Whether a statement waits for a slot to be empty that has not been full before: for the phase before the first one.
fn is_for_nobody(kernel: &Kernel, kind: &StatementKind) -> bool {
    let StatementKind::MbarrierWait { parity, .. } = kind else { return false };
    let is_one = |value: &ValueId| matches!(kernel.value(*value).op, Op::Literal(1));
    match &kernel.value(*parity).op {
        Op::Literal(1) => true,
        Op::Index(IndexOp::Xor, a, b) => is_one(a) || is_one(b),
        _ => false,
    }
}

/// Whether the products before a wait in a loop read buffers with several slots that threads write, for which they meet
/// in each iteration.
fn are_written_later(kernel: &Kernel, statements: &[Statement], at: usize) -> bool {
    let meets = statements.iter().any(|s| matches!(s.kind, StatementKind::BarSync));
    let products = statements[..at].iter().rev();
    let products = products.take_while(|s| !matches!(s.kind, StatementKind::WgmmaWaitGroup { .. }));
    let read = |s: &Statement| match &s.kind {
        StatementKind::Wgmma(product) => {
            let left = if let Factor::Shared(matrix) = &product.a { Some(matrix.buffer) } else { None };
            left.into_iter().chain([product.b.buffer]).collect::<Vec<BufferId>>()
        }
        _ => Vec::new(),
    };
    let is_written = |buffer: BufferId| {
        let mut all = kernel.regions.iter().flat_map(|region| &region.statements);
        let is_copied = |s: &Statement| match &s.kind {
            StatementKind::BulkCopy(copy) => copy.buffer == buffer,
            StatementKind::CpAsync(copy) => copy.buffer == buffer,
            _ => false,
        };
        kernel.buffers[buffer.index()].slots > 1 && !all.any(is_copied)
    };
    meets && products.flat_map(read).all(is_written)
}

/// Whether a fence of products comes before the one at a place, with nothing between but values and products: in its
/// region, or before the statement that has the region.
fn is_fenced_before(kernel: &Kernel, (region, at): (usize, usize)) -> bool {
    for statement in kernel.regions[region].statements[..at].iter().rev() {
        match &statement.kind {
            StatementKind::WgmmaFence => return true,
            StatementKind::Let(_) | StatementKind::Wgmma(_) | StatementKind::WgmmaCommitGroup => {}
            _ => return false,
        }
    }
    let is_around = |s: &Statement| match &s.kind {
        StatementKind::If(branch) => branch.then.index() == region,
        _ => false,
    };
    let mut places = kernel.regions.iter().enumerate();
    let around = places.find_map(|(n, own)| Some((n, own.statements.iter().position(is_around)?)));
    around.is_some_and(|around| is_fenced_before(kernel, around))
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
