//! Buffers of stages in global memory: every block has an equal part of a workspace, which no other block touches.
//!
//! **Property.** An element of a block's instance lies in the part of the block. **Formula.** A part has the slots of a
//! ring, a slot the instances of a block's units; blocks of the launch follow each other. Nothing waits for other
//! blocks, and barriers of the block order its accesses as they order those of shared memory (PTX manual, `bar.sync`:
//! memory of any kind).
//!
//! To the other rooms such a buffer is one like those in shared memory: the same loops, lifetimes and barriers.
//! Extents of its layout are expressions over sizes, where those in shared memory are numbers.

use tilewright_kernel::info::Workspace;
use tilewright_kernel::{ElementType, Size, SizeOp};

use super::grid_reduce::most_blocks;
use super::nested_stage::components;
use crate::extent::{Expr, Facts};
use crate::plan::Analysed;
use crate::schedule::Stage;

/// Elements of the part of a block, for components of so many bytes.
fn part(stage: &Stage, element: ElementType) -> Expr {
    stage.layout.slot(element.bytes(), stage.instances()).scale(i128::from(stage.ring))
}

/// The workspaces of all stages in global memory, in order; none if a size cannot be written down.
pub(super) fn workspaces(stages: &[Analysed], facts: &Facts) -> Option<Vec<Workspace>> {
    let blocks = super::launch_blocks(stages, facts)?;
    let mut found = Vec::new();
    for Analysed { stage, .. } in stages.iter().filter(|s| s.stage.is_in_workspace()) {
        for (name, element) in components(stage) {
            let part = with_divisors(&part(stage, element).to_size(facts.dims())?);
            // Where sizes are zero, a length can be less.
            let part =
                if part.as_constant().is_some() { part } else { Size::binary(SizeOp::Max, &part, &Size::constant(0)) };
            let elements = Size::binary(SizeOp::Mul, &blocks, &part);
            found.push(Workspace { name: name.to_owned().into(), element, elements, zeroed: false });
        }
    }
    Some(found)
}

/// A size that has a value where an extent of 0 divides: the loops that would come to what it is of have no iteration
/// there.
pub(super) fn with_divisors(size: &Size) -> Size {
    let mut ops: Vec<SizeOp> = Vec::with_capacity(size.ops.len());
    for op in size.ops.iter() {
        // The divisor is what was pushed last.
        let divides = matches!(op, SizeOp::Div | SizeOp::CeilDiv | SizeOp::Mod);
        if divides && !matches!(ops.last(), Some(SizeOp::Const(1..))) {
            ops.extend([SizeOp::Const(1), SizeOp::Max]);
        }
        ops.push(*op);
    }
    Size { ops: ops.into() }
}

/// Bounds of the offsets in these workspaces of the stage with a position, and of what they are computed from.
pub(super) fn bounds(stages: &[Analysed], at: usize, facts: &Facts) -> Vec<Expr> {
    let mut root = at;
    while let Some(attach) = &stages[root].stage.attach {
        root = attach.stage;
    }
    let (stage, root) = (&stages[at].stage, &stages[root].stage);
    let blocks = most_blocks(root, facts);
    let of_component = |(_, element): (&str, ElementType)| {
        let part = part(stage, element);
        [blocks.mul(&part), part.add(&Expr::constant(16))]
    };
    let all = components(stage).into_iter().flat_map(of_component);
    if stage.is_in_workspace() { all.collect() } else { Vec::new() }
}
