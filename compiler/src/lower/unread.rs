//! What nothing reads is not written: a stage may have several components of which readers take some.

use crate::kernel_ir::{Access, Engine, InRoles, Kernel};

/// The kernel without stores to buffers that no thread and no copy reads. The buffers stay, and so does what roles hand
/// to each other: that is said of whole stages.
pub(super) fn without_unread(mut kernel: Kernel) -> Kernel {
    let roles = InRoles::of(&kernel);
    let is_read = |access: Access| match access.buffer() {
        Some(buffer) => access.by != Engine::Thread || access.reads() || !roles.users(buffer)[1].is_empty(),
        None => true,
    };
    for region in &mut kernel.regions {
        region.statements.retain(|s| s.kind.only_computes() || s.kind.effects().accesses().all(is_read));
    }
    kernel
}
