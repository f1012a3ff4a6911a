//! The examples: what they compile to, print, read, write and become.

mod costs;
mod counters;
mod golden;
mod ladder;
mod machine_code;
mod results;
#[path = "../support/mod.rs"]
mod support;
