//! The command `tilewright`; everything it does is in the library beside it.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tilewright_cli::args::Args;
use tilewright_cli::{Output, Status};

/// The parser of Rust recurses; deep expressions get room.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    let args = Args::parse();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || args.execute());
    let output = match worker.map(|worker| worker.join()) {
        Ok(Ok(output)) => output,
        Ok(Err(_)) => Output {
            text: String::new(),
            errors: "error: this is a defect of tilewright; please report it with the file\n".to_owned(),
            status: Status::Bad,
        },
        Err(error) => Output::usage(format!("no thread could be started: {error}")),
    };
    // A reader that stops early, such as `head`, is no error.
    let _ = std::io::stdout().write_all(output.text.as_bytes());
    let _ = std::io::stderr().write_all(output.errors.as_bytes());
    ExitCode::from(output.status.code())
}
