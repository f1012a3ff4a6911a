//! NVIDIA's assembler `ptxas`, where there is one: what it makes of PTX, and what its log tells.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The assembler: what `$PTXAS` names, else the first `ptxas` of the folders of `$PATH`.
pub fn assembler() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PTXAS").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("ptxas")).find(|path| path.is_file())
}

/// Assembles a file for an architecture such as `sm_90a`; the assembler's log.
///
/// # Errors
/// The assembler cannot be run, or its log if it refuses the file.
pub fn assembled(ptxas: &Path, architecture: &str, file: &Path, code: &Path) -> Result<String, String> {
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch={architecture}")).args(["-v", "-o"]).arg(code).arg(file);
    let output = command.output().map_err(|e| format!("{}: {e}", ptxas.display()))?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if output.status.success() { Ok(log) } else { Err(log) }
}

/// What the assembler says of one entry point.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Its name.
    pub entry: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread that are stored to local memory since there is no register for them.
    pub spill_stores: u64,
    /// Bytes of a thread that are loaded from there.
    pub spill_loads: u64,
}

/// Reads the assembler's log: of each entry point the lines `Compiling entry function '…'`, `… bytes spill stores, …
/// bytes spill loads` and `Used … registers`. None if one of the last two is missing, or there is no entry point.
pub fn usage(log: &str) -> Option<Vec<Usage>> {
    let mut all: Vec<(Usage, [bool; 3])> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let entry = rest.split('\'').next()?.to_owned();
            all.push((Usage { entry, ..Usage::default() }, [false; 3]));
            continue;
        }
        let Some((usage, found)) = all.last_mut() else { continue };
        let words: Vec<&str> = line.split_whitespace().map(|w| w.trim_end_matches(',')).collect();
        for window in words.windows(4) {
            let (n, bytes, at) = match window {
                [n, "bytes", "spill", "stores"] => (n, &mut usage.spill_stores, 0),
                [n, "bytes", "spill", "loads"] => (n, &mut usage.spill_loads, 1),
                _ => continue,
            };
            *bytes += n.parse::<u64>().ok()?;
            found[at] = true;
        }
        if let Some(registers) = registers(line) {
            usage.registers = registers;
            found[2] = true;
        }
    }
    let complete = !all.is_empty() && all.iter().all(|(_, found)| *found == [true; 3]);
    complete.then(|| all.into_iter().map(|(usage, _)| usage).collect())
}

/// The registers of a thread of one entry point, in the assembler's line `Used … registers, …`.
fn registers(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("Used ")?;
    rest.split_once(" registers")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_read() {
        let log = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'A' for 'sm_80'\n\
            ptxas info    : Function properties for A\n    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n\
            ptxas info    : Used 30 registers, used 0 barriers, 380 bytes cmem[0]\n\
            ptxas info    : Compiling entry function 'A_64' for 'sm_80'\n\
            ptxas info    : Function properties for A_64\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 14 registers, 380 bytes cmem[0]\n";
        let a = Usage { entry: "A".to_owned(), registers: 30, spill_stores: 4, spill_loads: 12 };
        let b = Usage { entry: "A_64".to_owned(), registers: 14, ..Usage::default() };
        assert_eq!(usage(log), Some(vec![a, b]));
        assert_eq!(usage("nothing"), None);
        let cut = log.rfind("ptxas info    : Used").map(|at| &log[..at]);
        assert_eq!(cut.map(usage), Some(None), "the registers of the last one are missing");
    }
}
