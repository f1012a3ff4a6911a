//! See the package description.
#![forbid(unsafe_code)]
mod lanes;
mod num;
