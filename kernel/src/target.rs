//! The machine's limits, for every room that must know one: those of compute capability 9.0 where capabilities differ
//! (CUDA programming guide, technical specifications). What a device has that is smaller, the launcher asks it.

/// Threads of a warp.
pub const WARP: u32 = 32;
/// Threads of a warpgroup: four warps, the first of which has a number that four divides (PTX manual, `wgmma`).
pub const WARPGROUP: u32 = 4 * WARP;
/// Most threads of a block.
pub const BLOCK_LIMIT: u32 = crate::info::BLOCK_LIMIT;
/// Most blocks of a cluster that every device with clusters takes.
pub const CLUSTER_LIMIT: u32 = crate::cluster::PORTABLE_CLUSTER;
/// Most roles of a block: each has a barrier of its own, beside those of the block and of its warpgroups, and there are
/// sixteen (PTX manual, `bar`).
pub const ROLE_LIMIT: usize = 7;

/// Most bytes of the parameters of a kernel (PTX manual, "Kernel Function Parameters").
pub const PARAMETER_BYTES: u64 = 32_764;
/// Most shared memory of a block, in bytes.
pub const SHARED_BYTES: u64 = 227 * 1024;
/// Most shared memory of variables of fixed size, in bytes: more is asked for at launch.
pub const STATIC_SHARED_BYTES: u64 = 48 * 1024;
/// Shared memory for each thread, in bytes, with which a multiprocessor of 228 KiB still holds the 2048 threads that it
/// can, rounded down.
pub const SHARED_BYTES_OF_THREAD: u64 = 96;

/// Most registers of a thread, of 32 bits each (PTX manual, `.maxnreg`).
pub const REGISTER_LIMIT: u32 = 255;
/// Registers of a multiprocessor, which all threads of a block share.
pub const REGISTER_FILE: u64 = 65_536;
/// Threads get registers in multiples of so many, and `setmaxnreg` counts in the same steps.
pub const REGISTER_STEP: u64 = 8;
/// Least and most registers that a role can have (PTX manual, `setmaxnreg`).
pub const ROLE_REGISTERS: (u64, u64) = (24, 240);

/// Bytes that one `cp.async` can move (PTX manual, `cp.async`, operand `cp-size`).
pub const FETCHED_BYTES: [u32; 3] = [4, 8, 16];
/// Most arrivals of a phase, and most bytes that one expects (PTX manual, "Contents of the mbarrier object").
pub const ARRIVAL_LIMIT: u32 = (1 << 20) - 1;
/// See [`ARRIVAL_LIMIT`].
pub const EXPECTED_BYTES: u32 = ARRIVAL_LIMIT;

/// Registers that each thread of a block holds at the launch, where the assembler is told how many threads and blocks
/// there are: an equal part of the file, in whole steps (as the assembler was seen to give them: 168 for 384 threads; a
/// thread can name one less than 256).
pub const fn registers_at_launch(threads: u64, blocks: u64) -> u64 {
    let warps = if threads == 0 { 1 } else { threads.div_ceil(WARP as u64) };
    let part = REGISTER_FILE / (warps * WARP as u64 * blocks) / REGISTER_STEP * REGISTER_STEP;
    let most = REGISTER_LIMIT as u64 + 1;
    if part > most { most } else { part }
}

/// Registers that a thread of a block with so many threads can name.
pub const fn register_limit(threads: u32) -> u32 {
    let held = registers_at_launch(threads as u64, 1);
    if held > REGISTER_LIMIT as u64 { REGISTER_LIMIT } else { held as u32 }
}
