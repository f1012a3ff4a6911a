//! What PTX costs, as far as it can be read off: barriers, and what NVIDIA's assembler makes of it.

use std::path::Path;

use tilewright_cli::assembler::{assembled, usage};

use crate::{Failure, assemble, root};

/// Mnemonics at which threads wait for each other or for memory.
const SYNCHRONISATION: [&str; 6] =
    ["bar.", "barrier.", "fence.", "mbarrier.try_wait", "cp.async.wait_group", "cp.async.bulk.wait_group"];

/// What kernels cost before or after, in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Statements of PTX that synchronise.
    pub barriers: u64,
    /// Instructions of the machine, over all entry points.
    pub instructions: u64,
    /// Registers of a thread, over all entry points.
    pub registers: u64,
}

impl std::ops::AddAssign for Costs {
    fn add_assign(&mut self, other: Self) {
        self.barriers += other.barriers;
        self.instructions += other.instructions;
        self.registers += other.registers;
    }
}

/// The statements of PTX at which threads wait.
pub fn barriers(ptx: &str) -> u64 {
    let mnemonic = |line: &str| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        if first.starts_with('@') { words.next().map(str::to_owned) } else { Some(first.to_owned()) }
    };
    let counts = |word: &String| SYNCHRONISATION.iter().any(|start| word.starts_with(start));
    ptx.lines().filter_map(mnemonic).filter(counts).count() as u64
}

/// The costs of a kernel; without an assembler its barriers only.
///
/// # Errors
/// It does not assemble, or a tool cannot be started.
pub fn of(name: &str, ptx: &str, assembler: Option<&Path>) -> Result<Costs, Failure> {
    let mut costs = Costs { barriers: barriers(ptx), ..Costs::default() };
    let Some(assembler) = assembler else { return Ok(costs) };
    let target = ptx.lines().find_map(|line| line.strip_prefix(".target "));
    let target = target.ok_or_else(|| format!("{name}: PTX without target"))?;
    let folder = root().join("target/replay");
    let failed = |what: &Path, e: std::io::Error| format!("{}: {e}", what.display());
    std::fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let (file, code) = (folder.join(format!("{plain}.ptx")), folder.join(format!("{plain}.cubin")));
    std::fs::write(&file, ptx).map_err(|e| failed(&file, e))?;
    let log = assembled(assembler, target.trim(), &file, &code).map_err(|log| format!("{name}: {log}"))?;
    costs.registers = usage(&log).iter().flatten().map(|of| u64::from(of.registers)).sum();
    costs.instructions = assemble::disassembled(assembler, &code)?.map_or(0, |listing| instructions(&listing));
    for file in [file, code] {
        std::fs::remove_file(&file).map_err(|e| failed(&file, e))?;
    }
    Ok(costs)
}

/// The instructions in a listing, without those that fill up the end of a function.
fn instructions(listing: &str) -> u64 {
    let text = |line: &str| {
        line.trim_start()
            .strip_prefix("/*")
            .and_then(|rest| rest.split_once("*/"))
            .map(|(_, text)| text.trim().to_owned())
    };
    listing.lines().filter_map(text).filter(|text| text.ends_with(';') && !text.starts_with("NOP")).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_are_counted() {
        let ptx = "  bar.sync 0;\n @%p1 bar.sync 1, 64;\n barriers:\n mbarrier.init.shared.b64 [x], 1;\n @!%p2 bra L;\n \
            mbarrier.try_wait.parity.shared.b64 %p1, [x], 0;\n fence.proxy.async.shared::cta;\n // bar.sync\n";
        assert_eq!(barriers(ptx), 4);
    }

    #[test]
    fn instructions_are_counted() {
        let listing = ".text.K:\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n        /*0010*/              @!P0 EXIT ;\n        /*0020*/                   NOP;\n";
        assert_eq!(instructions(listing), 2);
    }
}
