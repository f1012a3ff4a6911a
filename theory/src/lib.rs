//! What schedules are judged by: theories about sizes, regions, index maps, layouts and sets of threads, each tested
//! against enumeration over small sizes.
//!
//! Nothing here knows a program or a message. What each room asks and gives stands in `ARCHITECTURE.md`; the rules are
//! those of the page on the theory.
//!
//! **Not for use on its own.** This crate is published because `tilewright` is made of it. Any version may change
//! anything here, and all crates of one version belong together.
#![forbid(unsafe_code)]

pub mod collectives;
pub mod domain;
pub mod extent;
pub mod layout;
#[doc(hidden)]
pub mod random;
pub mod region;
#[doc(hidden)]
pub mod side_by_side;
pub mod span;
#[doc(hidden)]
pub mod work;
