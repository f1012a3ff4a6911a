//! `bind w: warpgroup alternate`: warpgroups that take turns at the main loop of a stage (ping-pong).
//!
//! While one of them is in the loop, the others do what is around it: one multiplies while another one finishes and
//! stores. A stage keeps who takes turns, next to what its axes are given to. A turn is the outermost loop inside the
//! axis, and goes from the first warpgroup to the last and back.
//!
//! **What must hold.** Each warpgroup has instances of its own of all that its loop reads. If they shared the slots of
//! a ring, one that waits for its turn would release none, and the one whose turn it is would wait for a slot: for
//! ever, once the loop has more iterations than the ring has slots. Slots of one warpgroup that another role fills come
//! with tensor cores; until then turns are refused here, and no room after this one sees any.

use super::Stage;
use crate::diag::Diagnostics;
use crate::diag::codes::NotSupportedYet;
use crate::domain::{AxisId, Unit};
use crate::source::Span;

/// Units that take turns.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// The axis whose iterations are given to them.
    pub axis: AxisId,
    /// Where it is said.
    pub span: Span,
}

/// Refuses turns: those that mean nothing, and as yet all others.
pub(super) fn check(stages: &[Stage], diags: &mut Diagnostics) {
    for stage in stages {
        let Some(Turns { axis, span }) = stage.turns else { continue };
        let own = &stage.domain.axes[axis];
        let is_of_warpgroups = Unit::of(own.binding) == Some(Unit::Warpgroup);
        let most = stage.facts.upper_bound(&stage.facts.normal(&own.extent));
        let sequence = stage.sequence();
        let has_loop = sequence.iter().any(|leaf| stage.is_rolled(*leaf));
        let instead = if !is_of_warpgroups {
            "only warpgroups take turns; leave it out"
        } else if most.is_some_and(|n| n < 2) {
            "one warpgroup has nobody to take turns with; leave it out"
        } else if !has_loop {
            "there is no loop to take turns at; leave it out"
        } else {
            "it changes no result; leave it out"
        };
        let construct = "alternate".to_owned();
        diags.report(NotSupportedYet { construct, span, instead: Some(instead.to_owned()) });
    }
}
