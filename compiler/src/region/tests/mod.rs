//! Regions against enumeration.

mod conformance;
mod fused;
mod limits;
mod nest;
mod random;
mod text;
