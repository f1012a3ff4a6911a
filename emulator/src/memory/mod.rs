//! Device memory: allocations with their initialised bytes (`device`), what a launch may touch of it (`region`), and how a launch that
//! went wrong in parallel is taken back (`undo`).

pub mod device;
pub mod region;
pub mod undo;
