//! Runs PTX text on a CPU, with sanitizers and counters.
//!
//! The emulator is a device for machines without a GPU and a checker for those with one. It takes the same text that a
//! driver would, runs every thread of every block, and says what hardware does not say: which instruction of which
//! thread read past a tensor, raced with which other one, read memory that nobody wrote, or waits for ever, and why.
//!
//! # Use
//!
//! ```
//! use tilewright_emulator::{Kind, Launch, Memory, Options, Program};
//!
//! // Every thread stores one word; the last thread of this launch stores past the end.
//! let program = Program::parse(
//!     ".version 7.0\n.target sm_80\n.address_size 64\n\
//!      .visible .entry store(.param .u64 p) {\n\
//!        .reg .b64 %a; .reg .b32 %i;\n\
//!        ld.param.u64 %a, [p];\n\
//!        mov.u32 %i, %tid.x;\n\
//!        mad.wide.u32 %a, %i, 4, %a;\n\
//!        st.global.u32 [%a], %i;\n\
//!        ret;\n\
//!      }",
//! )?;
//! let memory = Memory::new(1 << 20);
//! let p = memory.alloc(31 * 4, "p")?;
//! let launch = Launch { entry: "store".into(), grid: [1, 1, 1], block: [32, 1, 1], args: vec![p.into()], ..Launch::default() };
//! let report = program.launch(&launch, &memory, &Options::default())?;
//! let trap = report.trap().expect("the store is out of bounds");
//! assert_eq!((trap.kind, trap.place.line, trap.thread.lane), (Kind::OutOfBounds, 9, 31));
//! # Ok::<(), tilewright_emulator::Error>(())
//! ```
//!
//! - [`Memory`] is the device's address space: allocate, write, launch, read.
//! - [`Program`] is decoded text; it can be kept and launched from several threads. Variables of its module belong to
//!   the device: see [`Program::write_symbol`].
//! - [`Launch`] names the kernel, its shape and its arguments, and may list the [`Extent`]s that it may access, so that
//!   views are checked as views.
//! - [`Options`] hold the seed, the checks, a test mode that moves approximate results within their documented bounds,
//!   the [`MatrixModel`] of tensor cores, and a budget.
//! - [`Report`] has the findings and the [`Counters`]. [`Error`] is for what cannot start at all.
//!
//! # What it promises
//!
//! The same text, memory, launch and seed give the same memory, findings and counters, whatever the number of host
//! threads. Arithmetic is exact in every rounding; NaN results are canonical; approximate functions are the
//! double-precision function rounded once. Reads of uninitialised memory see NaN. Bounds and alignment are always
//! checked.
//!
//! # Rooms
//!
//! `decode` turns text into decoded instructions; `lanes` and `num` are what instructions compute; `exec` runs warps;
//! `memory` is device memory; `shadow` detects races; `sync` has barriers, `mbarrier` those in shared memory; `bulk`
//! has tiles and the copies that are under way; `matrix` is what tensor cores compute; `cluster` is what CTAs of a
//! cluster share, `registers` what their warpgroups hand to each other, `warpgroup` their products that are under way;
//! `schedule` decides what runs when; `trace` is what a cluster did, for pictures; `report` and `counters` are what is
//! told.

#![deny(unsafe_code)]

mod bulk;
mod cluster;
mod counters;
mod decode;
mod error;
mod exec;
mod lanes;
mod launch;
mod matrix;
mod mbarrier;
mod memory;
mod num;
mod program;
mod registers;
mod report;
mod schedule;
mod shadow;
mod sync;
pub mod trace;
mod warpgroup;

pub use counters::{Arithmetic, Bulk, Class, Counters, Factor, Traffic, Work};
pub use error::Error;
pub use launch::{Arg, Extent, Launch, MatrixModel, Options, Sanitizers};
pub use memory::device::Memory;
pub use memory::heap::HeapBlock;
pub use program::Program;
pub use report::{Finding, Inlined, Kind, Location, Near, Other, Place, Report, Thread};
