//! Runs kernels on the emulator and on the GPU of this machine, compares, and times: the program of the device bundle.
//!
//! `device-check [--json FILE] [--seed S] [--no-ops] [--no-times]
//! PATH…`, where a path is a Rust file or a folder of them. `device-check --row KERNEL M=8192,N=4096 PATH…` times one
//! kernel and prints JSON.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use xtask::survey::{Options, row, survey};

const USAGE: &str = "device-check [--json FILE] [--seed S] [--no-ops] [--no-times] PATH…\n\
                     device-check --row KERNEL SIZES [--seed S] PATH…";

fn main() -> ExitCode {
    let (mut options, mut json) = (Options { ops: true, times: true, ..Options::default() }, None);
    let mut timed = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => match arguments.next() {
                Some(file) => json = Some(PathBuf::from(file)),
                None => return usage("--json needs a file"),
            },
            "--seed" => match arguments.next().and_then(|s| s.parse().ok()) {
                Some(seed) => options.seed = seed,
                None => return usage("--seed needs a number"),
            },
            "--row" => match (arguments.next(), arguments.next()) {
                (Some(kernel), Some(sizes)) => timed = Some((kernel, sizes)),
                _ => return usage("--row needs a kernel and its sizes"),
            },
            "--no-ops" => options.ops = false,
            "--no-times" => options.times = false,
            flag if flag.starts_with('-') => return usage(&format!("there is no option `{flag}`")),
            path => options.paths.push(PathBuf::from(path)),
        }
    }
    if let Some((kernel, sizes)) = timed {
        return match row(&options.paths, &kernel, &sizes, options.seed) {
            Ok(found) => {
                println!("{found}");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("error: {failure}");
                ExitCode::FAILURE
            }
        };
    }
    if options.paths.is_empty() && !options.ops {
        return usage("there is nothing to check");
    }
    let result = match survey(&options) {
        Ok(result) => result,
        Err(failure) => {
            eprintln!("error: {failure}");
            return ExitCode::FAILURE;
        }
    };
    print!("{}", result.text);
    if let Some(file) = json
        && let Err(error) = std::fs::write(&file, format!("{:#}\n", result.json))
    {
        eprintln!("error: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    if result.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(message: &str) -> ExitCode {
    eprintln!("error: {message}\n{USAGE}");
    ExitCode::from(2)
}
