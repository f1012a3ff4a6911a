//! What was derived and proved, for a reader: `KERNEL.explanation`.

pub mod copies;
mod shared;
mod stage;

use std::fmt::Write as _;

use tilewright_kernel::algorithm::Source;
use tilewright_kernel::info::{KernelInfo, Launch};

use crate::kernel_ir::{HeldIn, Kernel};
use crate::plan::Analysed;
use crate::program::Program;

/// The explanation of a kernel. The same kernel always gives the same text.
/// `kernel` is its first entry point, and `held` what its threads must hold.
pub fn text(
    program: &Program,
    stages: &[Analysed],
    (kernel, held): (Option<&Kernel>, Vec<HeldIn<'_>>),
    info: &KernelInfo,
) -> String {
    let mut out = String::new();
    let names = |d: u16| program.dim_name(d);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "kernel {}", program.name.text);
    let printed = program.printed().to_string();
    for line in printed.lines() {
        let _ = writeln!(out, "    {line}");
    }
    let Launch { blocks, threads, cluster, persistent, dependent, .. } = &info.launch;
    let blocks = blocks.display(&names);
    let _ = writeln!(
        out,
        "launch: {blocks} {} of {threads} threads{}; {} PTX {}.{}",
        if *persistent { "tiles, by blocks" } else { "blocks" },
        if *cluster > 1 { format!(", in clusters of {cluster}") } else { String::new() },
        info.ptx.target,
        info.ptx.version.0,
        info.ptx.version.1
    );
    if *persistent {
        out.push_str("    persistent: as many blocks as run at one time take the tiles in turn\n");
    }
    if *dependent {
        out.push_str("    dependent: it may begin before the previous launch has ended, and waits for that before it accesses memory\n");
    }
    for units in kernel.map_or(&[][..], Kernel::roles).chunk_by(|a, b| a.name == b.name) {
        let registers = units[0].registers.map_or_else(String::new, |n| format!(", {n} registers for each thread"));
        let warps: Vec<String> = units.iter().map(|u| format!("{}..{}", u.warps.start, u.warps.end)).collect();
        let turns = if units.len() > 1 { ", which take tiles in turn" } else { "" };
        let _ = writeln!(out, "role {}: warps {}{turns}{registers}", units[0].name, warps.join(", "));
    }
    for entry in info.entries.iter() {
        let conditions: Vec<&str> = entry.conditions.iter().map(|c| &*c.text).collect();
        let when = if conditions.is_empty() { "always".to_owned() } else { conditions.join(", ") };
        let _ = writeln!(out, "entry {}: {when}", entry.name);
    }
    for requirement in info.requirements.iter() {
        let _ = writeln!(out, "required at launch: {}", requirement.text);
    }
    for analysed in stages {
        stage::stage(&mut out, stages, analysed, info);
    }
    if let Some(kernel) = kernel {
        out.push_str(&registers(held));
        out.push_str(&shared::text(kernel));
    }
    out
}

/// The least that a thread must hold at one time; nothing if that is nothing.
fn registers(mut all: Vec<HeldIn<'_>>) -> String {
    let mut out = String::new();
    // Units that take tiles in turn hold the same.
    all.dedup_by(|a, b| a.role.is_some() && a.role.map(|role| &role.name) == b.role.map(|role| &role.name));
    for HeldIn { held, limit, role } in all.into_iter().filter(|found| found.held.words > 0) {
        let parts: Vec<String> = held.parts.iter().map(|(name, words)| format!("{name} {words}")).collect();
        let role = role.map_or_else(String::new, |role| format!(" of role {}", role.name));
        let (words, parts) = (held.words, parts.join(", "));
        let _ = writeln!(out, "registers: a thread{role} holds at least {words} of {limit} at one time: {parts}");
    }
    out
}

/// What reads take from other stages.
pub fn served(stages: &[Analysed]) -> Vec<Source> {
    let inner = stages.iter().filter(|s| s.stage.attach.is_some() && s.stage.copy.is_none());
    inner.flat_map(|s| s.stage.serves.clone()).collect()
}
