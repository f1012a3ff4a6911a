//! `campaign --seed 1 --count 10000`: random cases; prints what was counted and every failure, shrunk.

use clap::Parser;
use tilewright_campaign::compose::Family;
use tilewright_campaign::{campaign, compose, fuzz, generate, mutate, ratchet::Ratchet, rng::Rng, timing::Times};

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
    /// Print how long the macro takes for the cases instead of running them.
    #[arg(long)]
    time: bool,
    /// Print every case that is counted under this name, such as `TW0401 undecided`, with its messages.
    #[arg(long)]
    list: Option<String>,
    /// Broken source text and broken PTX instead.
    #[arg(long)]
    mutate: bool,
    /// Broken inputs of a kind instead, so many as are counted: each is read and no more, which takes a fraction of a
    /// millisecond.
    #[arg(long, value_enum, value_name = "KIND", conflicts_with_all = ["mutate", "compose", "products", "attention"])]
    fuzz: Option<fuzz::Kind>,
    /// Kernels of several equations with stages in all places instead, and a product for each sixteen of them.
    #[arg(long)]
    compose: bool,
    /// Products by tensor cores instead; with `--mutate`, broken text of these.
    #[arg(long)]
    products: bool,
    /// Attention instead: products that follow an extreme.
    #[arg(long)]
    attention: bool,
    /// With `--compose`, `--products` or `--attention`: print how often each two features met in kernels that ran, or
    /// that none did.
    #[arg(long)]
    matrix: bool,
    /// With one of these three: draw for these two features, `tma,ring`, as failures say it.
    #[arg(long)]
    want: Option<String>,
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    if let Some(kind) = options.fuzz {
        return broken_inputs(kind, (options.seed, options.first, options.count), options.show);
    }
    let Options {
        seed,
        first,
        count,
        show,
        time,
        list,
        mutate,
        compose: composed,
        products,
        attention,
        matrix,
        want,
        ..
    } = options;
    if attention {
        let known = compose::attention::features::FEATURES;
        let Ok(wanted) = want.as_deref().map(|text| pair(text, known)).transpose() else {
            eprintln!("features are {}", known.join(" "));
            return std::process::ExitCode::FAILURE;
        };
        return of_attention((seed, first, count), wanted, (show, time, matrix), list.as_deref());
    }
    if (composed || products) && !mutate {
        let known = if products { compose::products::features::FEATURES } else { compose::features::FEATURES };
        let Ok(wanted) = want.as_deref().map(|text| pair(text, known)).transpose() else {
            eprintln!("features are {}", known.join(" "));
            return std::process::ExitCode::FAILURE;
        };
        let family = if products { Family::Product(wanted) } else { Family::Composition(wanted) };
        if time {
            let of = |index| (index, family.case(seed, index).0.to_string());
            print!("{}", Times::of((first..first + count).map(of)));
            return std::process::ExitCode::SUCCESS;
        }
        return compositions((seed, first, count), family, (show, matrix), list.as_deref());
    }
    if show {
        for index in first..first + count {
            println!("{}", generate::kernel(&mut Rng::of_case(seed, index)));
        }
        return std::process::ExitCode::SUCCESS;
    }
    if time {
        let of = |index| (index, generate::kernel(&mut Rng::of_case(seed, index)).to_string());
        print!("{}", Times::of((first..first + count).map(of)));
        return std::process::ExitCode::SUCCESS;
    }
    if let Some(class) = list {
        campaign::list(seed, first, count, &class);
        return std::process::ExitCode::SUCCESS;
    }
    // A panic of the compiler is caught, counted and shown; its default message would only interleave.
    std::panic::set_hook(Box::new(|_| {}));
    let summary = match (mutate, products) {
        (false, _) => campaign::run(seed, first, count),
        (true, false) => mutate::run(seed, first, count),
        (true, true) => mutate::products(seed, first, count),
    };
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

/// Inputs that are read and no more.
fn broken_inputs(kind: fuzz::Kind, (seed, first, count): (u64, u64, u64), show: bool) -> std::process::ExitCode {
    if show {
        (first..first + count).for_each(|index| println!("{}", fuzz::input(kind, seed, index)));
        return std::process::ExitCode::SUCCESS;
    }
    std::panic::set_hook(Box::new(|_| {}));
    let summary = fuzz::run(kind, (seed, first, count));
    println!("{summary}");
    if summary.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// So many compositions go with one product where both are run: it takes as long as some of them.
const COMPOSITIONS_FOR_A_PRODUCT: u64 = 16;

/// Two of some features by their names, or one.
fn pair(text: &str, known: &[&'static str]) -> Result<compose::matrix::Pair, ()> {
    let find = |name: &str| known.iter().find(|f| **f == name).copied().ok_or(());
    let (a, b) = text.split_once(',').unwrap_or((text, text));
    Ok((find(a)?, find(b)?))
}

/// The campaign of attention.
fn of_attention(
    (seed, first, count): (u64, u64, u64),
    wanted: Option<compose::matrix::Pair>,
    (show, time, matrix): (bool, bool, bool),
    list: Option<&str>,
) -> std::process::ExitCode {
    let cases = || (first..first + count).map(|n| (n, compose::attention::attention(seed, n, wanted).0.to_string()));
    if show {
        cases().for_each(|case| println!("{}", case.1));
        return std::process::ExitCode::SUCCESS;
    }
    if time {
        print!("{}", Times::of(cases()));
        return std::process::ExitCode::SUCCESS;
    }
    if let Some(code) = list {
        let found = (first..first + count).filter_map(|n| compose::attention::refused(seed, n, wanted, code));
        found.for_each(|text| println!("{text}"));
        return std::process::ExitCode::SUCCESS;
    }
    std::panic::set_hook(Box::new(|_| {}));
    let summary = compose::attention::campaign(seed, first, count, wanted);
    println!("{summary}");
    if matrix {
        println!("{}", summary.matrix.report());
    }
    if summary.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// The second campaign, and that of products.
fn compositions(
    (seed, first, count): (u64, u64, u64),
    family: Family,
    (show, matrix): (bool, bool),
    list: Option<&str>,
) -> std::process::ExitCode {
    if show {
        (first..first + count).for_each(|index| println!("{}", family.case(seed, index).0));
        return std::process::ExitCode::SUCCESS;
    }
    if let Some(code) = list {
        (first..first + count)
            .filter_map(|index| compose::refused(seed, index, family, code))
            .for_each(|text| println!("{text}"));
        return std::process::ExitCode::SUCCESS;
    }
    std::panic::set_hook(Box::new(|_| {}));
    let products = |first: u64, count: u64, wanted| compose::campaign_of_products(seed, first, count, wanted);
    let summaries = match family {
        Family::Composition(None) => {
            let more = count / COMPOSITIONS_FOR_A_PRODUCT;
            let own = compose::campaign(seed, first, count, None);
            vec![own, products(first / COMPOSITIONS_FOR_A_PRODUCT, more, None)]
        }
        Family::Composition(wanted) => vec![compose::campaign(seed, first, count, wanted)],
        Family::Product(wanted) => vec![products(first, count, wanted)],
    };
    for summary in summaries.iter().filter(|summary| summary.cases > 0) {
        println!("{summary}");
        if matrix {
            println!("{}", summary.matrix.report());
        }
    }
    let is_right = summaries.iter().all(|summary| summary.failures.is_empty());
    if is_right { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
