//! The `schedule!` macro.
