//! Stages inside the loops of others: where they stand, who runs them, how they lie in memory.

mod asynchronous;
mod layouts;
mod nests;
mod parts;
mod places;
mod random;
mod raster;
#[path = "../support/mod.rs"]
mod support;
mod units;
mod unrolled;
mod written;
