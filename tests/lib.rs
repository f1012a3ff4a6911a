//! The programs of README and of the book, as documentation tests: each block of Rust is compiled and run.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/testing.md")]
struct Testing;

#[cfg(doctest)]
#[doc = include_str!("../docs/interop.md")]
struct Interop;
