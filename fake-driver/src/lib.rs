//! A CUDA driver library that has no GPU after it: the functions that Tilewright calls, over the emulator, in the
//! order that the driver promises and no other.
//!
//! A test puts it into a folder as `libcuda.so.1`, sets `LD_LIBRARY_PATH`, and runs the runtime's GPU half on any
//! machine.
//!
//! **What it shows.** Streams are queues that nothing drains until somebody waits (or in an order drawn from a seed),
//! host copies read and write host memory when they are *executed*, stream-ordered memory exists from the execution of
//! its allocation to that of its release, and a kernel runs under the emulator's sanitizers. So a missing wait between
//! streams, a copy whose host buffer is gone, memory that is freed too early, or a parameter block that does not fit
//! the entry point becomes a wrong result, a sticky error or an abort. What a real driver leaves undefined (a handle of
//! the wrong kind, a destroyed stream) aborts with a sentence.
//!
//! **What it does not show.** That a real driver accepts the PTX, the options or the flags; timing; anything that the
//! manual does not say. It was written from the manual of the driver API, not from a driver.
//!
//! | variable | is |
//! | --- | --- |
//! | `FAKE_CUDA_ORDER` | `late` (default): nothing runs before somebody waits for it; `early`: at once; a number: by this seed |
//! | `FAKE_CUDA_DEVICES` | number of devices; 1 |
//! | `FAKE_CUDA_CAPABILITY` | compute capability; 90 |
//! | `FAKE_CUDA_VERSION` | CUDA version of the driver; 12080 |
//! | `FAKE_CUDA_POOLS` | whether memory pools are supported, `0` or `1`; 1 |
//! | `FAKE_CUDA_MEMORY` | bytes of memory; 1 GiB |
//! | `FAKE_CUDA_CLUSTERS` | clusters that run at one time; 2 |
//! | `FAKE_CUDA_LOCAL` | bytes of local memory of a thread, of every kernel; 0 |
//! | `FAKE_CUDA_LOG` | what the assembler says of PTX that it takes; nothing |

mod api;
mod machine;
