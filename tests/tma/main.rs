//! Staged copies by the tensor memory accelerator.

mod banks;
mod conformance;
mod copies;
mod demands;
mod far;
mod layouts;
mod pipeline;
mod random;
mod runs;
#[path = "../support/mod.rs"]
mod support;
