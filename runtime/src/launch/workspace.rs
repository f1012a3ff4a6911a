//! Memory of launches themselves: what the blocks of one share, beside its tensors.
//!
//! **Rule.** Two launches that may overlap never share it. A prepared launch holds memory of its own for as long as it
//! exists, and so does each launch of a graph; they are accesses like those of tensors, so that runs of one launch come
//! one after the other. When a launch is dropped, its memory goes back to the stream that it was made for, where the
//! next launch takes it, in the order of that stream.
//!
//! **Zeros.** Memory that must be zero is kept apart from the rest. It is zeroed once, when it is allocated: a launch
//! leaves it as it found it. Only a launch that failed may not, and then it is zeroed again.

use std::sync::{Arc, Mutex, PoisonError};

use tilewright_kernel::KernelInfo;

use super::Access;
use crate::device::StreamInner;
use crate::error::{Reason, Result};
use crate::memory::Allocation;

/// What every workspace starts at a multiple of, in bytes.
const ALIGNMENT: u64 = 256;
/// Allocations that a stream keeps for later.
const KEPT: usize = 16;
/// Most bytes of one kind: addresses and sizes are signed.
const LIMIT: i128 = 1 << 47;

/// Whether memory must be zero: the position of its kind.
const KINDS: [bool; 2] = [false, true];

/// Where the workspaces of a launch lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes of each kind: arbitrary, zero.
    bytes: [u64; 2],
    /// Of each workspace, whether it is zero, where it starts, and its length in bytes.
    parts: Vec<(bool, u64, u64)>,
}

impl Layout {
    /// The layout for these values of the kernel's dimensions; `show` says them for a message.
    pub(crate) fn new(kernel: &KernelInfo, dims: &[i64], show: impl Fn() -> String) -> Result<Self, Reason> {
        let mut layout = Self::default();
        for workspace in kernel.workspace.iter() {
            let what = || format!("the size of the workspace `{}`", workspace.name);
            let elements =
                workspace.elements.eval(dims).map_err(|error| Reason::Size { what: what(), error, dims: show() })?;
            let total = &mut layout.bytes[usize::from(workspace.zeroed)];
            let bytes = elements.checked_mul(i128::from(workspace.element.bytes())).filter(|b| (0..LIMIT).contains(b));
            let next = bytes.map(|bytes| bytes as u64).filter(|bytes| i128::from(*total + bytes) < LIMIT);
            let Some(bytes) = next else {
                let name = workspace.name.to_string();
                return Err(Reason::Workspace { name, elements, limit: LIMIT, dims: show() });
            };
            layout.parts.push((workspace.zeroed, *total, bytes));
            *total = (*total + bytes).next_multiple_of(ALIGNMENT);
        }
        Ok(layout)
    }
}

/// Memory that no launch holds, of one stream.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    kinds: [Mutex<Vec<Arc<Allocation>>>; 2],
}

/// The memory of one launch.
pub(crate) struct Workspace {
    stream: Arc<StreamInner>,
    held: [Option<Arc<Allocation>>; 2],
    layout: Layout,
}

impl Workspace {
    /// Memory for a launch on a stream: some that the stream has, or more.
    pub(crate) fn new(layout: Layout, stream: &Arc<StreamInner>) -> Result<Self> {
        let mut this = Self { stream: Arc::clone(stream), held: [None, None], layout };
        for zeroed in KINDS {
            let kind = usize::from(zeroed);
            let bytes = this.layout.bytes[kind];
            if bytes == 0 {
                continue;
            }
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let mut free = stream.workspaces.kinds[kind].lock().unwrap_or_else(PoisonError::into_inner);
            let fits = free.iter().enumerate().filter(|(_, a)| a.bytes() >= bytes);
            let allocation = match fits.min_by_key(|(_, a)| a.bytes()).map(|(n, _)| n) {
                Some(n) => free.swap_remove(n),
                None => {
                    let allocation = Allocation::new(&stream.device, bytes)?;
                    if zeroed {
                        allocation.zero()?;
                    }
                    Arc::new(allocation)
                }
            };
            this.held[kind] = Some(allocation);
        }
        Ok(this)
    }

    /// What a launch accesses.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = Access> {
        let held = self.held.iter().flatten();
        held.map(|allocation| Access { allocation: Arc::clone(allocation), write: true })
    }

    /// Address and bytes of a workspace.
    pub(crate) fn at(&self, workspace: u16) -> Option<(u64, u64)> {
        let (zeroed, offset, bytes) = *self.layout.parts.get(usize::from(workspace))?;
        let base = self.held[usize::from(zeroed)].as_ref().map_or(0, |allocation| allocation.address());
        Some((base + offset, bytes))
    }

    /// The range that must be zero, for a launch that failed.
    #[cfg(feature = "emulator")]
    pub(crate) fn zeros(&self) -> Option<(u64, u64)> {
        let allocation = self.held[1].as_ref()?;
        Some((allocation.address(), allocation.bytes() as u64))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        for (held, free) in self.held.iter_mut().zip(&self.stream.workspaces.kinds) {
            let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(allocation) = held.take().filter(|_| free.len() < KEPT) {
                free.push(allocation);
            }
        }
    }
}
