//! What nothing reads is not written: a stage may have several components of which readers take some.

use crate::kernel_ir::{InRoles, Kernel, Memory, StatementKind};

/// The kernel without stores to buffers that no thread and no copy reads. The buffers stay, and so does what roles hand
/// to each other: that is said of whole stages.
pub(super) fn without_unread(mut kernel: Kernel) -> Kernel {
    let roles = InRoles::of(&kernel);
    let is_read = |kind: &StatementKind| match kind {
        StatementKind::Store(store) | StatementKind::Spread(store) => match store.memory {
            Memory::Buffer(buffer) => !roles.users(buffer)[1].is_empty(),
            Memory::Parameter(_) | Memory::Workspace(_) => true,
        },
        _ => true,
    };
    for region in &mut kernel.regions {
        region.statements.retain(|statement| is_read(&statement.kind));
    }
    kernel
}
