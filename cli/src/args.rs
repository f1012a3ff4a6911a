//! The command line.

use clap::{Parser, Subcommand};

use tilewright_emulator::MatrixModel;

use crate::{Output, check, emulate, explain, inspect, run};

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
    /// Exit code 0: all outputs are admissible and nothing was found; 1: a mismatch, a finding or a refusal; 2: wrong usage.
    Run {
        /// A Rust source file.
        file: String,
        /// The kernel to run.
        #[arg(long)]
        kernel: String,
        /// Sizes and strides, such as N=1000,M=7. A stride that is left out is the contiguous one.
        #[arg(long, value_delimiter = ',')]
        dims: Vec<String>,
        /// Seed of the inputs and of the emulator's order of execution.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Move the results of approximate instructions within their documented bounds, as the seed decides.
        #[arg(long)]
        perturb: bool,
        /// Print JSON; the format is described in docs/inspect-json.md.
        #[arg(long)]
        json: bool,
    },
    /// Runs a kernel of a PTX file on the emulator, on data from files. The PTX may come from any compiler.
    ///
    /// Arguments, in the order of the parameters: `f32:2.5`, `s32:-1`, `u64:0x10` are numbers; `bytes:00ff` the bytes of a struct; `null` a null
    /// pointer; `in:FILE` a read-only buffer; `inout:FILE[=OUT]` a buffer written to a file afterwards; `out:f32[100,16][=OUT]` one that nobody has
    /// written yet; `zero:f32[100][=OUT]` one of zeros. Files are raw bytes, or NumPy's if their names end in .npy.
    ///
    /// Exit code 0: nothing was found; 1: findings; 2: wrong usage, or a program that cannot be run. See docs/emulate.md.
    Emulate {
        /// A PTX file.
        file: String,
        /// The kernel; may be left out if there is only one.
        #[arg(long)]
        entry: Option<String>,
        /// Blocks: X, X,Y or X,Y,Z.
        #[arg(long, value_parser = emulate::triple, default_value = "1")]
        grid: [u32; 3],
        /// Threads of a block: X, X,Y or X,Y,Z.
        #[arg(long, value_parser = emulate::triple)]
        block: [u32; 3],
        /// An argument; once for every parameter.
        #[arg(long = "arg", allow_hyphen_values = true)]
        args: Vec<String>,
        /// Contents of a variable in global or constant memory: NAME=FILE.
        #[arg(long = "symbol")]
        symbols: Vec<String>,
        /// Bytes of dynamic shared memory.
        #[arg(long, default_value_t = 0)]
        shared: u32,
        /// Decides the order of execution.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Move approximate results within the bounds that the manual gives, by the seed.
        #[arg(long)]
        perturb: bool,
        /// What tensor cores compute: fast, ampere or hopper.
        #[arg(long, default_value = "fast", value_parser = matrix_model)]
        matrix: MatrixModel,
        /// Warp instructions that the launch may execute.
        #[arg(long)]
        budget: Option<u64>,
        /// Print JSON; the format is described in docs/emulate.md.
        #[arg(long)]
        json: bool,
    },
    /// Prints the page of a diagnostic, or lists all of them.
    Explain {
        /// A code such as TW0201, or its name such as not-divisible.
        code: Option<String>,
    },
}

fn matrix_model(text: &str) -> Result<MatrixModel, String> {
    match text {
        "fast" => Ok(MatrixModel::Fast),
        "ampere" => Ok(MatrixModel::Ampere),
        "hopper" => Ok(MatrixModel::Hopper),
        _ => Err("it is fast, ampere or hopper".to_owned()),
    }
}

impl Args {
    /// Does what was asked for.
    pub fn execute(self) -> Output {
        match self.command {
            Command::Check { files } => check::check(&files),
            Command::Inspect { file, kernel, json } => inspect::inspect(&file, kernel.as_deref(), json),
            Command::Run { file, kernel, dims, seed, perturb, json } => {
                run::run(&file, &kernel, &dims, (seed, perturb), json)
            }
            Command::Emulate {
                file,
                entry,
                grid,
                block,
                args,
                symbols,
                shared,
                seed,
                perturb,
                matrix,
                budget,
                json,
            } => emulate::emulate(&emulate::Request {
                file,
                entry,
                grid,
                block,
                args,
                symbols,
                shared,
                seed,
                perturb,
                matrix,
                budget,
                json,
            }),
            Command::Explain { code } => explain::explain(code.as_deref()),
        }
    }
}
