//! Shadow state for the race detector: who accessed what, and what was ordered before what.
//!
//! Two accesses race when they touch a byte, come from different threads, one of them is a plain write or both are not reads and one is
//! plain, and neither is ordered before the other. Order comes from program order, CTA barriers and `bar.warp.sync`; shuffles and votes
//! move registers and order no memory. Clocks are kept per warp: lanes are told apart only inside an *epoch*, which a barrier ends.
//!
//! `clock` keeps the order, `cell` the accesses to a word, `line` those to global memory inside one CTA (a summary per 128 bytes, words
//! only where needed), `cross` those of different CTAs, which a kernel without communication through global memory never orders.
//!
//! Approximations, all towards silence: what one lane of a warp releases to other warps or acquires from them, the whole warp does, and CTAs that
//! both use fences or acquire/release operations of a scope beyond the CTA are taken to be ordered by them.

pub mod cell;
pub mod clock;
pub mod cross;
pub mod line;
pub mod order;
