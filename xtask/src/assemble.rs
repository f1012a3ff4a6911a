//! `cargo xtask assemble`: what we emit is accepted by NVIDIA's assembler, for every architecture it claims, without
//! spills or other losses of speed, with no fewer registers than a thread is said to hold, and becomes the copies of
//! the tensor memory accelerator that it asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;
use tilewright::kernel::assembler::losses;
use tilewright_cli::assembler::{Usage, assembled, assembler, usage};

use crate::kernels::{self, Kernel};
use crate::{Failure, root};

/// Architectures that a kernel for its own or a later one is assembled for.
const ARCHITECTURES: [(u8, u8); 2] = [(8, 0), (9, 0)];

/// One run of the assembler.
struct Job<'a> {
    kernel: &'a Kernel,
    file: PathBuf,
    architecture: String,
}

/// Assembles every kernel of the repository.
///
/// # Errors
/// A kernel that does not compile, does not assemble, spills, or of which the assembler says that speed was lost.
pub fn assemble() -> Result<(), Failure> {
    let Some(ptxas) = assembler() else {
        println!("assemble: skipped: neither PTXAS nor PATH has NVIDIA's assembler");
        return Ok(());
    };
    let folder = root().join("target/assemble");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let kernels = kernels::all()?;
    let mut jobs = Vec::new();
    for (number, kernel) in kernels.iter().enumerate() {
        let file = folder.join(format!("{number:03}_{}_{}.ptx", kernel.source, kernel.info.name));
        std::fs::write(&file, kernel.info.ptx.text.as_bytes()).map_err(|e| format!("{}: {e}", file.display()))?;
        for architecture in architectures(kernel) {
            jobs.push(Job { kernel, file: file.clone(), architecture });
        }
    }
    let results: Vec<Result<Vec<Usage>, String>> = jobs.par_iter().map(|job| one(Path::new(&ptxas), job)).collect();
    let (mut failures, mut registers) = (Vec::new(), 0);
    for (job, result) in jobs.iter().zip(results) {
        let place = || format!("{} of {} for {}", job.kernel.info.name, job.kernel.source, job.architecture);
        match result {
            Ok(usage) => {
                let used = usage.iter().map(|of| u64::from(of.registers)).max().unwrap_or_default();
                registers = registers.max(used);
                let least = least(job.kernel);
                if used < least {
                    failures.push(format!("{}: {used} registers, and the explanation has at least {least}", place()));
                }
                let spills: u64 = usage.iter().map(|of| of.spill_stores + of.spill_loads).sum();
                if spills > 0 {
                    failures.push(format!("{}: spills {spills} bytes ({})", place(), job.file.display()));
                }
            }
            Err(log) => failures.push(format!("{}: {}\n{log}", place(), job.file.display())),
        }
    }
    println!(
        "assemble: {} kernels, {} runs of the assembler, at most {registers} registers a thread, {} failures",
        kernels.len(),
        jobs.len(),
        failures.len()
    );
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// The registers that a thread holds at least, as the explanation has it.
fn least(kernel: &Kernel) -> u64 {
    let said = |line: &str| line.strip_prefix("registers: a thread holds at least ")?.split(' ').next()?.parse().ok();
    kernel.info.explanation.lines().find_map(said).unwrap_or(0)
}

/// The architectures to assemble a kernel for.
fn architectures(kernel: &Kernel) -> Vec<String> {
    let ptx = &kernel.info.ptx;
    if ptx.exact_capability {
        return vec![ptx.target.to_string()];
    }
    let later = ARCHITECTURES.iter().filter(|a| **a >= ptx.capability);
    later.map(|(major, minor)| format!("sm_{major}{minor}")).collect()
}

/// Copies in PTX, and the machine's instruction that each must become.
const COPIES: [(&str, &str); 4] = [
    ("tile.mbarrier::complete_tx::bytes", "UTMALDG"),
    ("global.shared::cta.tile.bulk_group", "UTMASTG"),
    ("global.mbarrier::complete_tx::bytes", "UBLKCP"),
    ("global.shared::cta.bulk_group", "UBLKCP"),
];

/// Whether the copies by the accelerator are in the machine code; nothing is said without the disassembler beside the
/// assembler.
fn copies(ptxas: &Path, job: &Job<'_>, code: &Path) -> Result<(), String> {
    let text = &job.kernel.info.ptx.text;
    let expected: Vec<&str> =
        COPIES.iter().filter(|(ptx, _)| text.contains(ptx)).map(|(_, machine)| *machine).collect();
    if expected.is_empty() {
        return Ok(());
    }
    let Some(listing) = disassembled(ptxas, code)? else { return Ok(()) };
    // Who starts copies in a role does so for itself.
    if text.contains("_role:") && listing.contains("BRA.U.ANY") {
        return Err("a copy stands in a loop over lanes".to_owned());
    }
    match expected.iter().find(|machine| !listing.contains(**machine)) {
        Some(missing) => Err(format!("{missing} is not in the machine code")),
        None => Ok(()),
    }
}

/// The machine's instructions; none without the disassembler beside the assembler.
pub(crate) fn disassembled(ptxas: &Path, code: &Path) -> Result<Option<String>, String> {
    let disassembler = ptxas.with_file_name("nvdisasm");
    if !disassembler.exists() {
        return Ok(None);
    }
    let output = Command::new(&disassembler).arg("-c").arg(code).output();
    let output = output.map_err(|e| format!("{}: {e}", disassembler.display()))?;
    if output.status.success() {
        Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Runs the assembler; its log if it fails, or what is missing in what it made.
fn one(ptxas: &Path, job: &Job<'_>) -> Result<Vec<Usage>, String> {
    let code = job.file.with_extension(format!("{}.cubin", job.architecture));
    let log = assembled(ptxas, &job.architecture, &job.file, &code)?;
    let lost: Vec<&str> = losses(&log).collect();
    if !lost.is_empty() {
        return Err(lost.join("\n"));
    }
    let found = copies(ptxas, job, &code);
    // Only the failures are worth keeping, and those are made again in a moment.
    std::fs::remove_file(&code).map_err(|e| format!("{}: {e}", code.display()))?;
    found?;
    usage(&log).ok_or_else(|| format!("the log tells no registers and spills:\n{log}"))
}
