//! Shadow state for the race detector: who accessed what, and what was ordered before what.
//!
//! Two accesses race when they touch a byte, come from different threads, one of them is a plain write or both are not
//! reads and one is plain, and neither is ordered before the other. Order comes from program order, CTA barriers and
//! `bar.warp.sync`; shuffles and votes move registers and order no memory. Clocks are kept per warp: lanes are told
//! apart only inside an *epoch*, which a barrier ends.
//!
//! `clock` keeps the order, `cell` the accesses to a word, `line` those to global memory inside one CTA (a summary per
//! 128 bytes, words only where needed). Accesses of different CTAs are in `cross` if the kernel has no fence beyond the
//! CTA, so that nothing ever orders them, and in `grid` if it has.
//!
//! CTAs of a cluster have one clock and one shadow: barriers of the cluster and mbarriers order their accesses, and
//! nothing asks whose shared memory it is. Warps are numbered through the cluster.
//!
//! Approximations, all towards silence: inside a cluster the scope of an operation counts as wide enough (arrivals at
//! mbarriers of other CTAs are mostly written without a scope, which is the CTA's); `fence.mbarrier_init` releases all
//! that came before it, not only the initialisation; what one lane of a warp releases to other warps of its CTA or
//! acquires from them, the whole warp does; further ones are named in `grid`.

pub mod cell;
pub mod clock;
pub mod cross;
pub mod grid;
pub mod line;
pub mod order;
