//! Regions against enumeration.

mod chain;
mod conformance;
mod fused;
mod limits;
mod nest;
mod random;
mod same;
mod text;
