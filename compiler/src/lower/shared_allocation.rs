//! Which buffers lie in the same shared memory, at different times.
//!
//! **Property.** While elements of a buffer may still be read, nothing else is written where they lie. Of two buffers
//! that share memory neither is *live* (an element may be read before the buffer is renewed) where an instance of the
//! other one begins or is written; and a barrier of the block is between an access of one and a write to the other
//! (`barrier_placement`). **Formula.** Backward data flow over the structured program: a load makes its buffer live,
//! its renewal ends that; a loop's end sees what its start does.
//!
//! **Approximation.** What would take more work than there is to see is left apart. Roles run at one time: what lies in
//! the same memory is of one role. Buffers in workspaces share with nobody. Nor do buffers that the accelerator or
//! fetches write, and rings: what is under way has no place in the program.

use super::barrier_placement::Pass;
use crate::extent::Expr;
use crate::kernel_ir::{BufferId, Engine, InRoles, Inside, Kernel, RegionId, StatementKind};

/// Lets buffers share memory, the largest ones first, as far as the barriers of the kernel and those that were placed
/// allow it.
pub(super) fn share(pass: &mut Pass<'_>) {
    let mut found = Conflicts::of(pass.kernel, &pass.roles);
    let may_share = |n: &usize| found.may_share[*n];
    let all = || (0..found.apart.len()).filter(may_share);
    if !all().any(|own| all().any(|other| own != other && !found.apart[own][other])) {
        return;
    }
    let Some(apart) = pass.apart() else { return };
    apart.iter().for_each(|(own, other)| found.part(*own, *other));
    share_where(pass, &found, |_| true);
    debug_assert!(!cfg!(test) || pass.holds());
}

/// The same for a kernel that is still to get barriers, as many as that takes.
pub(super) fn share_with_barriers(mut kernel: Kernel, blocks: Option<&Expr>) -> Kernel {
    let mut pass = Pass::new(&kernel, blocks);
    let found = Conflicts::of(&kernel, &pass.roles);
    share_where(&mut pass, &found, |pass| !pass.is_spent() && pass.place_where_missing());
    kernel.alias_of = pass.alias_of;
    kernel
}

fn share_where(pass: &mut Pass<'_>, found: &Conflicts, is_ordered: impl Fn(&mut Pass<'_>) -> bool) {
    let kernel = pass.kernel;
    let mut order: Vec<usize> = (0..kernel.buffers.len()).filter(|b| found.may_share[*b]).collect();
    order.sort_by_key(|b| std::cmp::Reverse(kernel.buffers[*b].bytes()));
    let mut places: Vec<Vec<usize>> = Vec::new();
    for own in order {
        let fits = |place: &&mut Vec<usize>| place.iter().all(|other| !found.apart[own][*other]);
        let shared = places.iter_mut().filter(fits).find(|place| {
            let first = BufferId(place[0] as u32);
            let before = std::mem::replace(&mut pass.alias_of[own], first);
            let fits = kernel.buffers[own].alignment <= kernel.buffers[first.index()].alignment;
            let ordered = fits && is_ordered(pass);
            if !ordered {
                pass.alias_of[own] = before;
            }
            ordered
        });
        match shared {
            Some(place) => place.push(own),
            None => places.push(vec![own]),
        }
    }
}

/// Buffers that are needed at one time.
struct Conflicts {
    apart: Vec<Vec<bool>>,
    may_share: Vec<bool>,
}

impl Conflicts {
    fn of(kernel: &Kernel, roles: &InRoles) -> Self {
        let count = kernel.buffers.len();
        let mut renewed = vec![false; count];
        let mut foreign = vec![false; count];
        for statement in kernel.regions.iter().flat_map(|r| &r.statements) {
            if statement.kind.only_computes() {
                continue;
            }
            if let StatementKind::LifetimeStart { buffer, .. } = statement.kind {
                renewed[buffer.index()] = true;
            }
            let accesses = statement.kind.effects().accesses().filter(|access| access.by != Engine::Thread);
            accesses.filter_map(|access| access.buffer()).for_each(|buffer| foreign[buffer.index()] = true);
        }
        let is_plain =
            |b: usize| renewed[b] && !foreign[b] && kernel.buffers[b].slots == 1 && kernel.parts[b].is_none();
        let may_share = (0..count).map(|n| is_plain(n) && !roles.is_handed(BufferId(n as u32))).collect();
        // Roles run at one time.
        let users = |n: usize| {
            let [writers, readers] = roles.users(BufferId(n as u32));
            writers.union(readers)
        };
        let apart = |a: usize, b: usize| users(a) != users(b);
        let apart = (0..count).map(|a| (0..count).map(|b| apart(a, b)).collect()).collect();
        let mut found = Self { apart, may_share };
        found.region(kernel, Kernel::BODY, &mut vec![false; count]);
        found
    }

    /// An instance of a buffer begins, or is written.
    fn meets(&mut self, buffer: BufferId, live: &[bool]) {
        let own = buffer.index();
        (0..live.len()).filter(|other| live[*other] && *other != own).for_each(|other| self.part(own, other));
    }

    /// Two cannot share memory.
    fn part(&mut self, own: usize, other: usize) {
        self.apart[own][other] = true;
        self.apart[other][own] = true;
    }

    /// What is live before a region, from what is live after it.
    fn region(&mut self, kernel: &Kernel, region: RegionId, live: &mut Vec<bool>) {
        for statement in kernel.region(region).statements.iter().rev() {
            if statement.kind.only_computes() {
                continue;
            }
            let effects = statement.kind.effects();
            match effects.inside {
                Inside::Nothing => {
                    for access in effects.accesses() {
                        match access.buffer() {
                            Some(buffer) if access.reads() => live[buffer.index()] = true,
                            Some(buffer) => self.meets(buffer, live),
                            None => {}
                        }
                    }
                    if let StatementKind::LifetimeStart { buffer, .. } = statement.kind {
                        self.meets(buffer, live);
                        live[buffer.index()] = false;
                    }
                }
                Inside::Elect(part) => self.region(kernel, part, live),
                Inside::Roles(roles) => {
                    let behind = live.clone();
                    for role in roles {
                        let mut inside = behind.clone();
                        self.region(kernel, role.body, &mut inside);
                        live.iter_mut().zip(inside).for_each(|(a, b)| *a |= b);
                    }
                }
                Inside::If(branch) => {
                    let mut other = live.clone();
                    self.region(kernel, branch.then, live);
                    if let Some(otherwise) = branch.otherwise {
                        self.region(kernel, otherwise, &mut other);
                    }
                    live.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
                }
                Inside::Loop(l) => loop {
                    let before = live.clone();
                    let mut inside = live.clone();
                    self.region(kernel, l.body, &mut inside);
                    live.iter_mut().zip(inside).for_each(|(a, b)| *a |= b);
                    // Buffers only become live from turn to turn.
                    if *live == before {
                        break;
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::ElementType;

    use super::*;
    use crate::kernel_ir::{Buffer, Builder, Memory, Sharing, Signature, Type};

    /// A kernel of buffers `a`, `b`, … of so many elements each, written as steps: `a=` begins an instance and writes
    /// it, `a?` reads it, `|` is a barrier, `(` and `)` are a loop, `<` and `>` a branch. For each buffer the one that
    /// it lies in.
    fn shared(sizes: &[u32], steps: &str) -> String {
        let mut b = Builder::new(Signature {
            name: "k".to_owned(),
            parameters: Vec::new(),
            dims: Vec::new(),
            maps: Vec::new(),
            arguments: Vec::new(),
            threads: 64,
            cluster: 1,
        });
        let element = ElementType::F32;
        let buffers: Vec<BufferId> = sizes
            .iter()
            .map(|n| {
                let name = "s".to_owned();
                b.buffer(Buffer { name, element, elements: *n, alignment: 16, slots: 1, sharing: Sharing::Block })
            })
            .collect();
        let zero = b.index_literal(Type::I32, 0);
        let thread = b.thread_index();
        let count = b.index_literal(Type::I32, 4);
        let mut last = None;
        for step in steps.chars() {
            let named = step.is_ascii_lowercase().then(|| buffers[(step as u8 - b'a') as usize]);
            last = named.or(last);
            let buffer = last.unwrap_or(BufferId(0));
            match step {
                '=' => {
                    b.lifetime_start(buffer, zero);
                    let value = b.literal(element, 1);
                    b.store(Memory::Buffer(buffer), thread, &[value]);
                }
                '?' => {
                    let value = b.load(Memory::Buffer(buffer), zero, 1, None)[0];
                    let variable = b.variable(value);
                    b.set(variable, value);
                }
                '|' => b.bar_sync(),
                '(' => {
                    b.begin_loop(count);
                }
                ')' => b.end_loop(),
                '<' => {
                    let holds = b.index_compare(tilewright_kernel::algorithm::Compare::Lt, thread, count);
                    b.begin_if(holds);
                }
                '>' => b.end_if(),
                _ => {}
            }
        }
        let kernel = b.finish().unwrap();
        let mut pass = Pass::new(&kernel, None);
        share(&mut pass);
        pass.alias_of.iter().map(|b| char::from(b'a' + b.0 as u8)).collect()
    }

    #[test]
    fn buffers_share_what_the_other_one_does_not_need() {
        // One after the other, with a barrier in between; the larger one has the memory.
        assert_eq!(shared(&[64, 64], "a= | a? | b= | b?"), "aa");
        assert_eq!(shared(&[64, 96], "a= | a? | b= | b?"), "bb");
        // Still read.
        assert_eq!(shared(&[64, 64], "a= | a? | b= | b? a?"), "ab");
        assert_eq!(shared(&[64, 64], "a= | b= | a? b?"), "ab");
        // No barrier between a read and a write.
        assert_eq!(shared(&[64, 64], "a= | a? b= | b?"), "ab");
        // In a loop the first one comes again.
        assert_eq!(shared(&[64, 64], "( | a= | a? | b= | b? )"), "aa");
        assert_eq!(shared(&[64, 64], "( a= | a? | b= | b? )"), "ab");
        // What is read in a later iteration lives through the loop.
        assert_eq!(shared(&[64, 64], "a= | ( a? | b= | b? | )"), "ab");
        assert_eq!(shared(&[64, 64, 64], "( | a= | a? | b= | b? | c= | c? )"), "aaa");
        assert_eq!(shared(&[64, 64, 64], "( | a= | b= | a? b? | c= | c? b? )"), "aba");
        // A branch may or may not end an instance.
        assert_eq!(shared(&[64, 64], "a= | < b= > | a? b?"), "ab");
    }
}
