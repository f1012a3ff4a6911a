//! Placeholder until the first kernel runs.
fn main() {}
