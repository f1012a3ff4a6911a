//! The command line.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::{Output, Status, check, cost, draw, emulate, explain, inspect, run, template, tune};

/// Work that `run` does before it says that there is too much of it: some seconds.
const BUDGET: u64 = 1 << 28;
/// Work that `inspect --cost` does before it draws blocks: some seconds, more for large products.
const COUNTED: u64 = 1 << 26;

/// Checks, inspects, runs and explains the kernels of `schedule!`, without a GPU.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "tilewright",
    version,
    after_help = "\
Examples:
  tilewright new my-kernels                       a crate with a kernel and a test
  tilewright check src/lib.rs                     what rustc would say of its kernels
  tilewright run src/lib.rs --dims N=1000         one kernel on the emulator, against the reference
  tilewright inspect src/lib.rs --cost --dims N=8 what it costs on a GPU that is not there
  tilewright tune src/lib.rs --dims N=1000        which candidates of its constants are best
  tilewright explain TW0201                       the page of a diagnostic"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Compiles all kernels of Rust files and prints what rustc would say.
    ///
    /// Exit code 0: no errors; 1: errors; 2: a file cannot be read.
    #[command(after_help = "\
Examples:
  tilewright check src/lib.rs examples/*.rs
  tilewright check --diff src/lib.rs              what --fix would change
  tilewright check --fix src/lib.rs               slips of the pen and ops without effect
  tilewright check --json src/lib.rs              for editors, with all proposed edits")]
    Check {
        /// Rust source files.
        #[arg(required = true)]
        files: Vec<String>,
        /// Do the edits that leave no choice, such as a misspelt name or an op without effect: show them as a diff,
        /// and write them to the files. Each is kept only if its finding is then gone.
        #[arg(long)]
        fix: bool,
        /// Show the diff of `--fix`, and write nothing.
        #[arg(long, conflicts_with = "fix")]
        diff: bool,
        /// Print JSON, with the proposed edits; the format is described in docs/inspect-json.md.
        #[arg(long)]
        json: bool,
    },
    /// Shows what kernels were compiled to: axes, predicates, accesses, launch shape, PTX. With --cost, what a launch
    /// asks of a GPU.
    #[command(after_help = "\
Examples:
  tilewright inspect src/lib.rs
  tilewright inspect src/lib.rs --kernel Saxpy --json
  tilewright inspect src/lib.rs --kernel Saxpy --ptx > saxpy.ptx
  tilewright inspect src/lib.rs --kernel Saxpy --cost --dims N=1000000 --gpu a100")]
    Inspect {
        /// A Rust source file.
        file: String,
        /// Only the kernel with this name.
        #[arg(long)]
        kernel: Option<String>,
        /// Show what a launch of one kernel costs: bytes, operations, conflicts, occupancy, and the time that it takes
        /// at least. No GPU is needed; see docs/cost.md.
        #[arg(long)]
        cost: bool,
        /// The GPU of --cost: a100, h100, h200, l40s, rtx4090.
        #[arg(long, default_value = "h200", requires = "cost")]
        gpu: String,
        /// Sizes and strides of --cost, such as N=1000,M=7. A size that follows from the facts may be left out; a
        /// stride that is left out is the contiguous one.
        #[arg(long, value_delimiter = ',', requires = "cost")]
        dims: Vec<String>,
        /// A scalar of --cost, such as eps=1e-5; may be given several times. Others are drawn.
        #[arg(long = "arg", value_name = "NAME=VALUE", requires = "cost")]
        args: Vec<String>,
        /// Warp instructions that --cost may execute to count. Where all blocks are more work, some are drawn, and
        /// counts are estimates.
        #[arg(long, default_value_t = COUNTED, requires = "cost")]
        budget: u64,
        /// Print the PTX of one kernel and nothing else, for `ptxas` and other tools.
        #[arg(long, conflicts_with_all = ["cost", "json"])]
        ptx: bool,
        /// Print JSON; the format is described in docs/inspect-json.md.
        #[arg(long)]
        json: bool,
    },
    /// Draws one kernel as SVG: its axes, its threads, its boxes and layouts, its shared memory over time, and how its
    /// roles hand buffers to each other.
    ///
    /// With sizes, extents are numbers. Without any, the picture is true for all sizes, and what depends on them is
    /// left out.
    ///
    /// Exit code 0: drawn; 1: the compiler refuses the kernel; 2: wrong usage, or a file that cannot be written.
    #[command(after_help = "\
Examples:
  tilewright draw src/lib.rs --kernel Saxpy -o saxpy.svg
  tilewright draw src/lib.rs --kernel Gemm --dims M=512,N=512,K=256 -o gemm.svg
  tilewright draw src/lib.rs --kernel Gemm --only domains,banks -o gemm.svg
  tilewright draw src/lib.rs -o - > kernel.svg")]
    Draw {
        /// A Rust source file.
        file: String,
        /// The kernel to draw; may be left out if the file has one.
        #[arg(long)]
        kernel: Option<String>,
        /// Sizes and strides, as `run` takes them.
        #[arg(long, value_delimiter = ',')]
        dims: Vec<String>,
        /// Only these sections, such as boxes,banks.
        #[arg(long, value_delimiter = ',', value_name = "SECTION")]
        only: Vec<draw::Section>,
        /// The file to write; `-` is standard output.
        #[arg(short, long, value_name = "FILE")]
        output: String,
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
    #[command(after_help = "\
Examples:
  tilewright run src/lib.rs --kernel Saxpy --dims N=1000
  tilewright run src/lib.rs --kernel LayerNorm --dims M=16,N=1024 --arg eps=1e-5 --seed 3 --perturb
  tilewright run src/lib.rs --kernel Embedding --dims T=64,V=1000,D=128 --data ids=0..1000 --data table=normal:0.02")]
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
        /// A scalar, such as eps=1e-5; may be given several times. Others are drawn: where what is drawn would give
        /// NaN or infinities, they are not negative.
        #[arg(long = "arg", value_name = "NAME=VALUE")]
        args: Vec<String>,
        /// Numbers of a tensor, such as ids=0..1000 (without 1000), x=-1..1, x=normal, x=normal:0.02 with a deviation,
        /// or p=distinct, each integer from 0 on once; may be given several times. Other integers are from -8 to 8.
        #[arg(long, value_name = "NAME=NUMBERS")]
        data: Vec<String>,
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
    /// Ranks the candidates of a kernel's `tune`, and writes the best ones into the source.
    ///
    /// Every combination is compiled; those that are legal are ranked by an estimate of their time on a GPU that need
    /// not be there, or with --device by times on one that is. What is best is shown as a diff of the file: a record
    /// behind the candidates, with a digest of the kernel. See docs/tune.md.
    ///
    /// Exit code 0: there is a best one; 1: no combination can be taken, or the kernel is wrong; 2: wrong usage.
    #[command(after_help = "\
Examples:
  tilewright tune src/lib.rs --kernel Gemm --dims M=4096,N=4096,K=4096 --gpu h200
  tilewright tune src/lib.rs --kernel Gemm --dims M=4096,N=4096,K=4096 --device --write
  tilewright tune src/lib.rs --write              the only kernel with `tune`, as its record says")]
    Tune {
        /// A Rust source file.
        file: String,
        /// The kernel; may be left out if the file has one with `tune`.
        #[arg(long)]
        kernel: Option<String>,
        /// Sizes and strides, as `run` takes them; those of the record, if there is one and none are given.
        #[arg(long, value_delimiter = ',')]
        dims: Vec<String>,
        /// A scalar, such as eps=1e-5; may be given several times. Others are drawn.
        #[arg(long = "arg", value_name = "NAME=VALUE")]
        args: Vec<String>,
        /// The GPU: a100, h100, h200, l40s, rtx4090; that of the record, if there is one, else h200.
        #[arg(long)]
        gpu: Option<String>,
        /// Warp instructions that may be executed to count one combination.
        #[arg(long, default_value_t = COUNTED)]
        budget: u64,
        /// Time launches on the first CUDA device of this machine, instead of estimating.
        #[arg(long, conflicts_with = "gpu")]
        device: bool,
        /// Launches of each combination that are timed.
        #[arg(long, default_value_t = 20, requires = "device", value_parser = clap::value_parser!(u32).range(1..=10000))]
        launches: u32,
        /// Write the record to the file.
        #[arg(long)]
        write: bool,
        /// Print JSON; the format is described in docs/inspect-json.md.
        #[arg(long)]
        json: bool,
    },
    /// Runs a kernel of a PTX file on the emulator, on data from files. The PTX may come from any compiler.
    ///
    /// Arguments, in the order of the parameters: `f32:2.5`, `s32:-1`, `u64:0x10` are numbers; `bytes:00ff` the bytes
    /// of a struct; `null` a null pointer; `in:FILE` a read-only buffer; `inout:FILE[=OUT]` a buffer written to a file
    /// afterwards; `out:f32[100,16][=OUT]` one that nobody has written yet; `zero:f32[100][=OUT]` one of zeros;
    /// `expect:FILE[,RTOL[,ATOL]][:BUFFER]` any of these, compared with a file afterwards; `buffer:NAME` one that a
    /// script names; `map:8x32:BUFFER` a tensor map of any of these with this box; `struct:u64:5,ptr(BUFFER),f32:1` a
    /// struct by value. Files are raw bytes, or NumPy's if their names end in .npy.
    ///
    /// Exit code 0: nothing was found that counts; 1: findings, or a buffer that is not as expected; 2: wrong usage, or
    /// a program that cannot be run. See docs/emulate.md.
    Emulate(emulate::Request),
    /// Prints the page of a diagnostic, or lists all of them.
    #[command(after_help = "\
Examples:
  tilewright explain
  tilewright explain TW0201
  tilewright explain not-divisible")]
    Explain {
        /// A code such as TW0201, or its name such as not-divisible.
        code: Option<String>,
    },
    /// Makes a crate with a kernel, a test, and the profiles that make it quick to work with.
    #[command(after_help = "\
Examples:
  tilewright new my-kernels
  tilewright new my-kernels --tilewright ../tilewright/runtime")]
    New {
        /// The folder, whose name is that of the crate; it must not be there yet.
        folder: String,
        /// Depend on the crate `tilewright` in this folder, or in a clone of its repository, instead of the one of the
        /// registry. Relative to the new crate, or to the present folder, or absolute.
        #[arg(long, value_name = "FOLDER")]
        tilewright: Option<String>,
    },
    /// Prints completions for a shell.
    #[command(after_help = "\
Examples:
  tilewright completions bash > ~/.local/share/bash-completion/completions/tilewright
  tilewright completions fish > ~/.config/fish/completions/tilewright.fish
  tilewright completions zsh > ~/.zfunc/_tilewright")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

impl Args {
    /// Does what was asked for.
    pub fn execute(self) -> Output {
        match self.command {
            Command::Check { files, fix: false, diff: false, json } => check::check(&files, json),
            Command::Check { files, fix, json, .. } => check::fixed(&files, fix, json),
            Command::Inspect { file, kernel, ptx: true, .. } => inspect::ptx(&file, kernel.as_deref()),
            Command::Inspect { file, kernel, cost: true, gpu, dims, args, budget, json, .. } => {
                let kernel = kernel.as_deref();
                let request = cost::Request { kernel, dims: &dims, scalars: &args, gpu: &gpu, budget };
                cost::cost(&file, &request, json)
            }
            Command::Inspect { file, kernel, json, .. } => inspect::inspect(&file, kernel.as_deref(), json),
            Command::Draw { file, kernel, dims, only, output } => {
                draw::draw(&file, kernel.as_deref(), &dims, &only, &output)
            }
            Command::Run { file, kernel, dims, args, data, seed, perturb, budget, json } => {
                let options = run::Options { seed, perturb, budget };
                run::run(&file, kernel.as_deref(), (&dims, &args, &data), options, json)
            }
            Command::Tune { file, kernel, dims, args, gpu, budget, device, launches, write, json } => {
                let (kernel, gpu) = (kernel.as_deref(), gpu.as_deref());
                let request =
                    tune::Request { kernel, dims: &dims, scalars: &args, gpu, budget, device, launches, write };
                tune::tune(&file, &request, json)
            }
            Command::Emulate(request) => emulate::emulate(&request),
            Command::Explain { code } => explain::explain(code.as_deref()),
            Command::New { folder, tilewright } => template::new(&folder, tilewright.as_deref()),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Args::command(), "tilewright", &mut script);
                let text = String::from_utf8_lossy(&script).into_owned();
                Output { text, errors: String::new(), status: Status::Good }
            }
        }
    }
}
