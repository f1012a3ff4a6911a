//! Bulk copies: which bytes a tiled copy moves where (`tile`), and the copies that are under way or not yet known to
//! everybody to be over (`flight`). The instructions are in `exec::bulk`.
//!
//! The engine that moves the bytes is an agent of its own, in the asynchronous proxy. What a copy reads and writes is
//! ordered after what its issuer knew when it issued the copy, provided that ordinary writes were made visible by a
//! proxy fence of those who wrote, and before what those do who have waited for it: by a phase of its mbarrier, or by
//! its bulk group. When the bytes move is the seed's choice; a program that is right cannot tell.

pub mod flight;
pub mod tile;
