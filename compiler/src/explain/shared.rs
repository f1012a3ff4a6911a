//! The shared memory of a block: each buffer with who writes and reads it, and what tells readers that it is complete.

use std::fmt::Write as _;

use tilewright_sorted::SortedSet;

use super::copies::counted;
use crate::kernel_ir::{AccessKind, BufferId, Engine, InRoles, Kernel, Sharing, StatementKind};

/// Who accesses a buffer.
#[derive(Clone, Debug, Default)]
struct Use {
    /// Threads by ordinary stores, threads by `cp.async`, the accelerator.
    stored: bool,
    fetched: bool,
    filled: bool,
    /// Threads, tensor cores, the accelerator.
    loaded: bool,
    multiplied: bool,
    taken: bool,
}

/// The map of the kernel's shared memory, and its barriers; nothing if it has neither.
pub fn text(kernel: &Kernel) -> String {
    let mut uses = vec![Use::default(); kernel.buffers.len()];
    let (mut clusters, mut blocks, mut warpgroups, mut warps) = (0, 0, 0, 0);
    let mut waited: SortedSet<u32> = SortedSet::new();
    for statement in kernel.regions.iter().flat_map(|r| &r.statements) {
        match &statement.kind {
            StatementKind::BarrierCluster => clusters += 1,
            StatementKind::BarSync => blocks += 1,
            StatementKind::BarSyncWarpgroup => warpgroups += 1,
            StatementKind::BarWarpSync => warps += 1,
            StatementKind::MbarrierWait { barrier, .. } => {
                waited.insert(barrier.0);
            }
            kind if kind.only_computes() => {}
            kind => {
                for access in kind.effects().accesses() {
                    let Some(found) = access.buffer().map(|buffer| &mut uses[buffer.index()]) else { continue };
                    match (access.by, access.kind) {
                        (Engine::Thread, AccessKind::Write) => found.stored = true,
                        (Engine::CpAsync, _) => found.fetched = true,
                        (Engine::Tma, AccessKind::Write) => found.filled = true,
                        (Engine::Thread, AccessKind::Read) => found.loaded = true,
                        (Engine::TensorCore, _) => found.multiplied = true,
                        (Engine::Tma, AccessKind::Read) => found.taken = true,
                    }
                }
            }
        }
    }
    let map = kernel.shared_map();
    let in_roles = InRoles::of(kernel);
    let mut out = String::new();
    if map.bytes > 0 {
        let _ = writeln!(out, "shared memory: {} bytes", map.bytes);
    }
    for (n, (buffer, found)) in kernel.buffers.iter().zip(&uses).enumerate() {
        let slots = if buffer.slots == 1 { String::new() } else { format!(" in {} buffers", buffer.slots) };
        let (start, all) = match kernel.parts[n] {
            Some(_) => ("global memory: ", "a part of the workspace for each block".to_owned()),
            None => ("    ", format!("{} bytes", buffer.bytes())),
        };
        let place = match kernel.alias_of[n] {
            _ if kernel.parts[n].is_some() => String::new(),
            BufferId(other) if other as usize == n => format!(" at {}", map.buffers[n]),
            other => format!(" in the memory of {}, which is not needed then", kernel.buffers[other.index()].name),
        };
        let list = |list: &[(bool, &'static str)]| {
            let found: Vec<&str> = list.iter().filter(|l| l.0).map(|l| l.1).collect();
            if found.is_empty() { "nobody".to_owned() } else { found.join(" and ") }
        };
        let roles = |reads: usize| {
            let users = in_roles.users(BufferId(n as u32))[reads];
            let own = kernel.roles().iter().enumerate().filter(|(role, _)| users.contains(Some(*role)));
            let mut names: Vec<&str> = own.map(|(_, role)| role.name.as_str()).collect();
            names.dedup();
            if names.is_empty() { String::new() } else { format!(" of role {}", names.join(" and ")) }
        };
        let writers =
            list(&[(found.stored, "threads"), (found.fetched, "cp.async"), (found.filled, "the accelerator")]);
        let readers =
            list(&[(found.loaded, "threads"), (found.multiplied, "tensor cores"), (found.taken, "the accelerator")]);
        let complete = match buffer.sharing {
            _ if in_roles.is_handed(BufferId(n as u32)) => {
                "complete when its mbarrier ends a phase, free when another does"
            }
            _ if found.filled => "complete when its mbarrier ends a phase",
            Sharing::Thread if found.fetched => "complete when a thread has waited for its copies",
            Sharing::Thread => "each element stays with one thread",
            Sharing::Warp => "complete after a barrier of warps",
            Sharing::Warpgroup => "complete after a barrier of warpgroups",
            Sharing::Block => "complete after a barrier of the block",
        };
        let _ = writeln!(
            out,
            "{start}{}: {all}{slots}{place}; written by {writers}{}, read by {readers}{}; {complete}",
            buffer.name,
            roles(0),
            roles(1),
        );
    }
    if clusters + blocks + warpgroups + warps + waited.len() > 0 {
        let cluster = if clusters == 0 { String::new() } else { format!("{clusters} of the cluster, ") };
        let groups = if warpgroups == 0 { String::new() } else { format!("{warpgroups} of warpgroups, ") };
        let _ = writeln!(
            out,
            "barriers: {cluster}{blocks} of the block, {groups}{warps} of warps, {}",
            counted(waited.len() as i128, "mbarrier"),
        );
    }
    out
}
