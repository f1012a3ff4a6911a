//! Runs kernels on the emulator and on the GPU of this machine, compares, and times: the program of the device bundle.
//!
//! `device-check [--json FILE] [--seed S] [--no-ops] [--no-times]
//! PATH…`, where a path is a Rust file or a folder of them. `device-check --row KERNEL M=8192,N=4096 PATH…` times one
//! kernel and prints JSON; with `--serve` it takes a sample for each line that it reads. `--cache BYTES` says how large
//! the second-level cache is that no input may stay in. `device-check --conformance FOLDER [--json FILE] [--patience
//! SECONDS]` runs the conformance files of a folder and asks the open questions; it starts itself for parts of them
//! (`--conformance-part`).
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use tilewright::Device;
use xtask::conformance;
use xtask::survey::{Options, survey};
use xtask::timing::{self, Row};

const USAGE: &str = "device-check [--json FILE] [--seed S] [--no-ops] [--no-times] PATH…\n\
                     device-check --row KERNEL SIZES [--serve] [--cache BYTES] [--seed S] PATH…\n\
                     device-check --conformance FOLDER [--json FILE] [--patience SECONDS]";

/// Seconds that a process of conformance cases may say nothing: far more than assembling a file takes.
const PATIENCE: u64 = 120;

fn main() -> ExitCode {
    let (mut options, mut json) = (Options { ops: true, times: true, ..Options::default() }, None);
    let (mut timed, mut serve, mut cache) = (None, false, timing::CACHE_BYTES);
    let (mut files, mut patience) = (None, PATIENCE);
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
            "--serve" => serve = true,
            "--cache" => match arguments.next().and_then(|s| s.parse().ok()) {
                Some(bytes) => cache = bytes,
                None => return usage("--cache needs a number of bytes"),
            },
            "--conformance" => match arguments.next() {
                Some(folder) => files = Some(PathBuf::from(folder)),
                None => return usage("--conformance needs a folder"),
            },
            "--patience" => match arguments.next().and_then(|s| s.parse().ok()) {
                Some(seconds) => patience = seconds,
                None => return usage("--patience needs a number of seconds"),
            },
            "--conformance-part" => match (arguments.next(), arguments.next(), arguments.next()) {
                (Some(family), Some(first), Some(folder)) => {
                    let Ok(first) = first.parse() else { return usage("a part begins at a number") };
                    return match conformance::part(&PathBuf::from(folder), &family, first) {
                        Ok(()) => ExitCode::SUCCESS,
                        Err(failure) => failed(&failure),
                    };
                }
                _ => return usage("--conformance-part needs a family, a number and a folder"),
            },
            "--no-ops" => options.ops = false,
            "--no-times" => options.times = false,
            flag if flag.starts_with('-') => return usage(&format!("there is no option `{flag}`")),
            path => options.paths.push(PathBuf::from(path)),
        }
    }
    if let Some((kernel, sizes)) = timed {
        let row = Row { paths: options.paths, kernel, sizes, seed: options.seed, cache };
        return match time(&row, serve) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failed(&failure),
        };
    }
    if serve {
        return usage("--serve needs --row");
    }
    let (text, found, failures) = if let Some(folder) = files {
        match conformance::survey(&conformance::Options { folder, patience }) {
            Ok(result) => (result.text, result.json, result.failures),
            Err(failure) => return failed(&failure),
        }
    } else if options.paths.is_empty() && !options.ops {
        return usage("there is nothing to check");
    } else {
        match survey(&options) {
            Ok(result) => (result.text, result.json, result.failures),
            Err(failure) => return failed(&failure),
        }
    };
    print!("{text}");
    if let Some(file) = json
        && let Err(error) = std::fs::write(&file, format!("{found:#}\n"))
    {
        return failed(&format!("{}: {error}", file.display()));
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Times one row once, or whenever a line is read.
fn time(row: &Row, serve: bool) -> Result<(), String> {
    let gpu = Device::cuda(0).map_err(|e| e.to_string())?;
    if serve {
        return timing::serve(row, &gpu, std::io::stdin().lock(), &mut std::io::stdout().lock());
    }
    println!("{}", timing::time(row, &gpu)?);
    Ok(())
}

fn failed(failure: &str) -> ExitCode {
    eprintln!("error: {failure}");
    ExitCode::FAILURE
}

fn usage(message: &str) -> ExitCode {
    eprintln!("error: {message}\n{USAGE}");
    ExitCode::from(2)
}
