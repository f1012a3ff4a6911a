//! Device memory: allocations with their initialised bytes (`device`), what a launch may touch of it (`region`), the
//! variables of modules (`module`), the heap of device code (`heap`), and how a launch that went wrong in parallel is
//! taken back (`undo`).

pub mod device;
pub mod heap;
pub mod module;
pub mod region;
pub mod undo;
