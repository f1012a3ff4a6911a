//! `campaign --seed 1 --count 10000`: random cases; prints what was counted and every failure, shrunk.

use clap::Parser;
use tilewright_campaign::{campaign, compose, generate, mutate, ratchet::Ratchet, rng::Rng};

/// Random kernels and schedules against an independent interpreter, the emulator and the reference.
#[derive(Parser)]
struct Options {
    /// Decides all cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first case.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Number of cases.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Print the source of the cases instead of running them.
    #[arg(long)]
    show: bool,
    /// Print every case that is counted under this name, such as `TW0401 undecided`, with its messages.
    #[arg(long)]
    list: Option<String>,
    /// Broken source text and broken PTX instead.
    #[arg(long)]
    mutate: bool,
    /// Kernels of several equations with stages in all places instead.
    #[arg(long)]
    compose: bool,
    /// With `--compose`: print how often each two features met in kernels that ran, and which never did.
    #[arg(long)]
    matrix: bool,
}

fn main() -> std::process::ExitCode {
    let Options { seed, first, count, show, list, mutate, compose: composed, matrix } = Options::parse();
    if composed {
        return compositions(seed, first, count, (show, matrix), list.as_deref());
    }
    if show {
        for index in first..first + count {
            println!("{}", generate::kernel(&mut Rng::of_case(seed, index)));
        }
        return std::process::ExitCode::SUCCESS;
    }
    if let Some(class) = list {
        campaign::list(seed, first, count, &class);
        return std::process::ExitCode::SUCCESS;
    }
    // A panic of the compiler is caught, counted and shown; its default message would only interleave.
    std::panic::set_hook(Box::new(|_| {}));
    let summary = if mutate { mutate::run(seed, first, count) } else { campaign::run(seed, first, count) };
    println!("{summary}\nundecided:\n{}", Ratchet::rows(&summary));
    let canonical = (seed, first, count, mutate) == (1, 0, 10_000, false);
    let worse = if canonical { Ratchet::committed().worse("campaign", &summary) } else { Vec::new() };
    for line in &worse {
        println!("WORSE {line}");
    }
    if !worse.is_empty() {
        return std::process::ExitCode::FAILURE;
    }
    if summary.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// The second campaign.
fn compositions(
    seed: u64,
    first: u64,
    count: u64,
    (show, matrix): (bool, bool),
    list: Option<&str>,
) -> std::process::ExitCode {
    if show {
        (first..first + count).for_each(|index| println!("{}", compose::case(seed, index).0));
        return std::process::ExitCode::SUCCESS;
    }
    if let Some(code) = list {
        (first..first + count)
            .filter_map(|index| compose::refused(seed, index, code))
            .for_each(|text| println!("{text}"));
        return std::process::ExitCode::SUCCESS;
    }
    std::panic::set_hook(Box::new(|_| {}));
    let summary = compose::campaign(seed, first, count);
    println!("{summary}");
    if matrix {
        println!("{}", summary.matrix.report());
    }
    if summary.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
