//! Compile-fail cases of `schedule!`: see `ui.rs`.
