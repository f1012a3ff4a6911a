//! What can be wrong.

use crate::kernel_ir::{Memory, RegionId, ValueId, VariableId};

/// A violated property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Source statement that the offending one serves; 0 for none.
    pub line: u32,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An id refers to nothing.
    NoSuchId,
    /// A region belongs to two statements.
    RegionUsedTwice(RegionId),
    /// A value is used where it is not bound.
    NotInScope(ValueId),
    /// A value is bound twice, or bound by a statement of the wrong kind.
    BadBinding(ValueId),
    /// A variable is used where it is not declared, or declared twice.
    VariableNotInScope(VariableId),
    /// The operation of this value does not take operands of these types, or does not have this type.
    BadTypes(ValueId),
    /// A literal does not fit its type.
    BadLiteral(ValueId),
    /// A load or store of something other than a tensor parameter with an address argument.
    NotATensor(u16),
    /// A store to a parameter that the kernel does not write.
    ReadOnly(u16),
    /// The number of lanes is no power of two or too large.
    BadLanes(u32),
    /// An offset, count, condition, lane, alternative or variable's value has the wrong type.
    BadOperand(ValueId),
    /// The number of alternatives is not that of the lanes.
    BadAlternatives(u32),
    /// No argument passes this scalar.
    ScalarNotPassed(u16),
    /// No argument passes this dimension.
    DimNotPassed(u16),
    /// A buffer in shared memory that does not exist.
    NotABuffer(u32),
    /// A barrier that does not exist.
    NotABarrier(u32),
    /// A slot that is not known to be one of a buffer, or to have a barrier.
    NotASlot(ValueId),
    /// A tensor map that does not exist or is not passed, or a start with another number of dimensions.
    NotAMap(u16),
    /// A place that is not known to be in a slot of the buffer, with all that is copied there.
    OutsideBuffer(ValueId),
    /// A run cannot have so many bytes.
    BadRun(u32),
    /// No fetch moves so many elements of this type, or it moves them to another type.
    BadFetch(u32),
    /// A fetch from a tensor that the kernel writes.
    NotConstant(u16),
    /// No two lanes differ by this mask.
    BadMask(u32),
    /// A barrier of warps or warpgroups in a block of so many threads, which has a part of one.
    PartOfUnit(u32),
    /// A workspace that does not exist, is not passed, or is no counter where one is needed.
    NotAWorkspace(u16),
    /// An update that elements of this type do not have, or one of a buffer.
    BadUpdate(Memory),
    /// A product of matrices that no tensor core computes: types, columns, layouts.
    BadProduct(VariableId),
    /// A statement for all threads where some do not come, or one for the elected thread elsewhere.
    NotCollective,
    /// A block cannot have so many threads.
    BadThreads(u32),
    /// Roles that cannot be these: their warps, registers, or place.
    BadRoles,
    /// A barrier cannot have so many arrivals.
    BadArrivals(u32),
    /// A cluster cannot have so many blocks, or not for this statement.
    BadCluster(u32),
}
