//! `mutants --sample 1000`: changes the compiler and tells what notices it.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tilewright_mutants::report::{Explained, report};
use tilewright_mutants::tree::{Mutant, Sources};
use tilewright_mutants::worker::{self, Plan};
use tilewright_mutants::{Failure, chosen, corpus, protocol};

/// Changes the compiler, one rule at a time, and tells what notices it.
#[derive(Parser)]
struct Options {
    /// Rooms of the compiler that are changed.
    #[arg(long, value_delimiter = ',', default_value = "lower,kernel_ir,domain,region")]
    rooms: Vec<String>,
    /// Mutants to try, drawn from all; 0 tries all.
    #[arg(long, default_value_t = 1000)]
    sample: usize,
    /// Decides which ones.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these numbers.
    #[arg(long, value_delimiter = ',')]
    only: Vec<u32>,
    /// Compositions of the campaign to try them on, beside the kernels of the repository.
    #[arg(long, default_value_t = 1000)]
    compositions: u64,
    /// Seed of these.
    #[arg(long, default_value_t = 7)]
    drawn: u64,
    /// Cases for one mutant; for one that nobody noticed five times as many.
    #[arg(long, default_value_t = 40)]
    cases: usize,
    /// Processes at one time.
    #[arg(long)]
    jobs: Option<usize>,
    /// Print the mutants instead of trying them.
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    task: Option<Task>,
}

/// What runs in the changed copy, for the process that started it.
#[derive(Subcommand)]
enum Task {
    /// Compiles a case and prints its mark.
    #[command(hide = true)]
    Baseline { case: String },
    /// Plants mistakes in the protocols of products: those of the examples, and some of the campaign.
    Protocols {
        /// Seed of the products that are drawn.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The first one.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// How many.
        #[arg(long, default_value_t = 20)]
        count: u64,
        /// Leave the examples out.
        #[arg(long)]
        drawn: bool,
        /// Draw products that follow an extreme.
        #[arg(long)]
        attention: bool,
        /// Only examples with this name.
        #[arg(long)]
        example: Option<String>,
        /// Print the programs of kernels in which nobody notices something.
        #[arg(long)]
        show: bool,
    },
    /// Tries the mutant that is on with the cases of a file.
    #[command(hide = true)]
    Judge { cases: PathBuf, silent: usize },
}

fn main() -> ExitCode {
    match tried(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(open) => {
            eprintln!("error: nobody noticed {open} of them, and nothing explains why");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn tried(options: &Options) -> Result<usize, Failure> {
    let root = xtask::root();
    match &options.task {
        Some(Task::Baseline { case }) => return worker::baseline(case, &root).map(|()| 0),
        Some(Task::Judge { cases, silent }) => return worker::judge(cases, *silent, &root).map(|()| 0),
        Some(Task::Protocols { seed, first, count, drawn, attention, example, show }) => {
            let draw = if *attention { chosen::drawn_attention } else { chosen::drawn };
            let of = |index: u64| draw(*seed, index);
            let mut examples = if *drawn { Vec::new() } else { chosen::of_examples(&root)? };
            examples.retain(|(name, ..)| example.as_ref().is_none_or(|only| name.contains(only.as_str())));
            let mut tally = protocol::Tally { shows: *show, ..protocol::Tally::default() };
            for (name, compiled, dims) in examples.into_iter().chain((*first..first + count).filter_map(of)) {
                let Some(subject) = protocol::Subject::new(&compiled, &dims) else { continue };
                tally.try_all(&name, &subject)?;
            }
            print!("{tally}");
            return Ok(tally.unnoticed.len());
        }
        None => {}
    }
    let sources = Sources::read(&root, &options.rooms)?;
    let mutants = sources.mutants();
    let chosen: BTreeSet<u32> = match &options.only[..] {
        [] => {
            let keys: Vec<String> = mutants.iter().map(Mutant::change).collect();
            worker::sample(&keys, options.sample, options.seed)
        }
        only => only.iter().copied().filter(|n| (*n as usize) < mutants.len()).collect(),
    };
    eprintln!("{} mutants of {}", chosen.len(), mutants.len());
    if options.list {
        for mutant in mutants.iter().filter(|m| chosen.contains(&m.number)) {
            println!("{:>6} {:<10} line {:>4} {}", mutant.number, mutant.operator, mutant.line, mutant.key());
        }
        return Ok(0);
    }
    let at = root.join("target/mutants");
    let mut kept = chosen;
    let program = sources.build(&at, &mut kept)?;
    let mut cases = corpus::of_folders(&root, &["examples", "tests"])?;
    for folder in ["campaign/found", "campaign/written", "mutants/kernels"] {
        cases.extend(corpus::of_texts(&root, Path::new(folder))?);
    }
    cases.extend(corpus::operations(&at.join("operations"))?);
    cases.extend((0..options.compositions).map(|index| corpus::Case::Composition { seed: options.drawn, index }));
    let plan = Plan { program, at: at.clone(), cases: options.cases };
    let jobs = options.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(|e| e.to_string())?;
    let judged = pool.install(|| plan.all(&cases, mutants.into_iter().filter(|m| kept.contains(&m.number))))?;
    let explained = std::fs::read_to_string(root.join("mutants/explained.txt")).unwrap_or_default();
    let (text, open) = report(&judged, &Explained::parse(&explained));
    println!("{text}");
    let path = at.join("report.txt");
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(open)
}
