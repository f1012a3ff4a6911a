//! The language and its messages, from source text to result.

mod arguments;
mod contract;
mod corners;
mod dependent;
mod edits;
mod end_to_end;
mod guarded;
mod helps;
mod hour;
#[path = "../support/invocations.rs"]
mod invocations;
mod launches;
mod pages;
mod speed;
#[path = "../support/mod.rs"]
mod support;
mod tune;
mod tuples;
