//! The command line.

use clap::{Parser, Subcommand};

use crate::{Output, check, emulate, explain, inspect, run};

/// Work that `run` does before it says that there is too much of it: some seconds.
const BUDGET: u64 = 1 << 28;

/// Checks, inspects, runs and explains the kernels of `schedule!`, without a GPU.
#[derive(Clone, Debug, Parser)]
#[command(name = "tilewright", version)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Compiles all kernels of Rust files and prints what rustc would say.
    ///
    /// Exit code 0: no errors; 1: errors; 2: a file cannot be read.
    Check {
        /// Rust source files.
        #[arg(required = true)]
        files: Vec<String>,
        /// Print JSON, with the proposed edits; the format is described in docs/inspect-json.md.
        #[arg(long)]
        json: bool,
    },
    /// Shows what kernels were compiled to: axes, predicates, accesses, launch shape, PTX.
    Inspect {
        /// A Rust source file.
        file: String,
        /// Only the kernel with this name.
        #[arg(long)]
        kernel: Option<String>,
        /// Print JSON; the format is described in docs/inspect-json.md.
        #[arg(long)]
        json: bool,
    },
    /// Runs a kernel on the emulator with random inputs and compares it with the reference.
    ///
    /// Twice, if it reads floats: first these are small integers, for which sums need no rounding, so that results are
    /// compared bit by bit, and 1 and -1 where that leaves less room; then real numbers. Where several values are
    /// admissible, it says for how many elements, how wide the widest interval is, and how far from its middle an
    /// element lies; and how many elements are NaN or infinite.
    ///
    /// Exit code 0: all outputs are admissible and nothing was found; 1: a mismatch, a finding or a refusal; 2: wrong
    /// usage.
    Run {
        /// A Rust source file.
        file: String,
        /// The kernel to run; may be left out if the file has one.
        #[arg(long)]
        kernel: Option<String>,
        /// Sizes and strides, such as N=1000,M=7. A size that follows from the facts may be left out; a stride that is
        /// left out is the contiguous one.
        #[arg(long, value_delimiter = ',')]
        dims: Vec<String>,
        /// Seed of the inputs and of the emulator's order of execution.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Move the results of approximate instructions within their documented bounds, as the seed decides.
        #[arg(long)]
        perturb: bool,
        /// Warp instructions that a launch may execute; the reference may evaluate eight times as many elements and
        /// terms of reductions.
        #[arg(long, default_value_t = BUDGET)]
        budget: u64,
        /// Print JSON; the format is described in docs/inspect-json.md.
        #[arg(long)]
        json: bool,
    },
    /// Runs a kernel of a PTX file on the emulator, on data from files. The PTX may come from any compiler.
    ///
    /// Arguments, in the order of the parameters: `f32:2.5`, `s32:-1`, `u64:0x10` are numbers; `bytes:00ff` the bytes
    /// of a struct; `null` a null pointer; `in:FILE` a read-only buffer; `inout:FILE[=OUT]` a buffer written to a file
    /// afterwards; `out:f32[100,16][=OUT]` one that nobody has written yet; `zero:f32[100][=OUT]` one of zeros;
    /// `map:8x32:BUFFER` a tensor map of any of these with this box. Files are raw bytes, or NumPy's if their names end
    /// in .npy.
    ///
    /// Exit code 0: nothing was found; 1: findings; 2: wrong usage, or a program that cannot be run. See
    /// docs/emulate.md.
    Emulate(emulate::Request),
    /// Prints the page of a diagnostic, or lists all of them.
    Explain {
        /// A code such as TW0201, or its name such as not-divisible.
        code: Option<String>,
    },
}

impl Args {
    /// Does what was asked for.
    pub fn execute(self) -> Output {
        match self.command {
            Command::Check { files, json } => check::check(&files, json),
            Command::Inspect { file, kernel, json } => inspect::inspect(&file, kernel.as_deref(), json),
            Command::Run { file, kernel, dims, seed, perturb, budget, json } => {
                run::run(&file, kernel.as_deref(), &dims, run::Options { seed, perturb, budget }, json)
            }
            Command::Emulate(request) => emulate::emulate(&request),
            Command::Explain { code } => explain::explain(code.as_deref()),
        }
    }
}
