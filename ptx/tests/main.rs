//! The tests of the public interface in one program, since each program is linked by itself. `cargo test -p
//! tilewright-ptx --test ptx table::` runs one file.

mod common;
mod fuzz;
mod order;
mod parse;
mod table;
mod verify;
