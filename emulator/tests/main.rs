//! The emulator's tests in one program, since each program is linked by itself; the oracle and the rows of the
//! instruction table, with much code of their own, are two others. `cargo test --test machine findings::` runs one
//! file.

mod asynchronous;
mod blocks;
mod bulk;
mod bulk_planted;
mod clusters;
mod common;
mod corpus;
mod costs;
mod dependent;
mod determinism;
mod divergence;
mod findings;
mod foreign;
mod functions;
mod fuzz;
mod instructions;
mod kernels;
mod library;
mod matrix;
mod order;
mod planted;
mod soup;
mod tensors;
mod tiles;
mod trace;
mod wgmma;
