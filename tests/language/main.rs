//! The language and its messages, from source text to result.

mod contract;
mod corners;
mod dependent;
mod edits;
mod end_to_end;
mod pages;
mod speed;
#[path = "../support/mod.rs"]
mod support;
