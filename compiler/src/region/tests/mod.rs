//! Regions against enumeration.

mod conformance;
mod fused;
mod nest;
mod text;
