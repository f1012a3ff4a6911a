//! What `tilewright tune` prints.

use serde_json::json;

use super::{Ranked, Refused, Score, Subject};
use crate::cost::estimate::Estimate;

/// Version of the JSON format; it grows when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// A time with four digits that count.
fn time(microseconds: f64) -> String {
    let (value, unit) = if microseconds < 1000.0 { (microseconds, "µs") } else { (microseconds / 1e3, "ms") };
    let digits = if value == 0.0 { 1 } else { (3 - value.log10().floor() as i32).clamp(0, 6) as usize };
    format!("{value:.digits$} {unit}")
}

/// The page for a reader.
pub fn page(ranked: &Ranked<'_>) -> String {
    let Ranked { subject, ranking, machine, scored, refused, diff, written } = ranked;
    let Subject { path, invocation, kernel, tuned } = subject;
    let name = &kernel.ast.name.text;
    let names: Vec<&str> = tuned.constants.iter().map(|constant| constant.name.as_str()).collect();
    let sizes = if ranking.sizes.is_empty() { String::new() } else { format!(", {}", ranking.sizes) };
    let mut out = format!("== {name} ({path}:{}) on {machine}{sizes}\n", invocation.line);
    let count = scored.len() + refused.len();
    let how = if ranking.measured { "measured" } else { "estimated, nothing is measured" };
    out.push_str(&format!("{count} combinations of {}, {how}\n", names.join(", ")));
    out.push_str(&table(&names, scored));
    if !refused.is_empty() {
        out.push_str("refused\n");
        for Refused { values, code, reason } in refused {
            let code = code.as_ref().map_or_else(String::new, |code| format!("[{code}] "));
            out.push_str(&format!("    {}: {code}{reason}\n", tuned.named(values)));
        }
    }
    for doubt in doubts(scored) {
        out.push_str(&format!("note: {doubt}\n"));
    }
    out.push_str(diff);
    out.push_str(match (scored.is_empty(), diff.is_empty(), written) {
        (true, ..) => "no combination can be taken\n",
        (_, true, _) => "the record says so already\n",
        (_, _, true) => "written\n",
        _ => "not written: add --write\n",
    });
    out
}

/// A combination a line, the best first.
fn table(names: &[&str], scored: &[(Vec<u64>, Score, tilewright_kernel::KernelInfo)]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let head = match scored.first() {
        None => return String::new(),
        Some((_, Score::Estimated(_), _)) => ["time", "limit", "warps", ""],
        Some((_, Score::Measured(_), _)) => ["median", "least", "most", ""],
    };
    rows.push(names.iter().map(|name| (*name).to_owned()).chain(head.map(str::to_owned)).collect());
    for (values, score, _) in scored {
        let cells = match score {
            Score::Estimated(Estimate { microseconds, limit, spills, warps, .. }) => {
                let spills = if *spills == Some(true) { "spills registers" } else { "" };
                [time(*microseconds), limit.clone(), format!("{} of {}", warps.0, warps.1), spills.to_owned()]
            }
            Score::Measured(of) => {
                let time = |duration: std::time::Duration| time(duration.as_secs_f64() * 1e6);
                [time(of.median), time(of.least), time(of.most), String::new()]
            }
        };
        rows.push(values.iter().map(u64::to_string).chain(cells).collect());
    }
    let columns = names.len() + head.len();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(at, text): (usize, &String)| {
            let pad = " ".repeat(widths[at] - text.chars().count());
            // Numbers end at one column, words begin there.
            if at <= names.len() { format!("{pad}{text}") } else { format!("{text}{pad}") }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        format!("    {}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// What makes estimates less certain, each once.
fn doubts(scored: &[(Vec<u64>, Score, tilewright_kernel::KernelInfo)]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let estimates = scored.iter().filter_map(|(_, score, _)| match score {
        Score::Estimated(estimate) => Some(estimate),
        Score::Measured(_) => None,
    });
    let (mut sampled, mut unknown) = (0, false);
    for estimate in estimates {
        sampled += usize::from(!estimate.doubts.is_empty());
        unknown |= estimate.spills.is_none();
    }
    if sampled > 0 {
        all.push(format!("the counts of {sampled} are estimates themselves: see `tilewright inspect --cost`"));
    }
    if unknown {
        all.push("without NVIDIA's assembler (`$PTXAS`), registers limit nothing".to_owned());
    }
    all
}

/// The document, as `docs/inspect-json.md` describes it.
pub fn document(ranked: &Ranked<'_>) -> String {
    let Ranked { subject, ranking, machine, scored, refused, diff, written } = ranked;
    let Subject { path, invocation, kernel, tuned } = subject;
    let one = |(values, score, _): &(Vec<u64>, Score, tilewright_kernel::KernelInfo)| match score {
        Score::Estimated(of) => json!({
            "values": values, "microseconds": of.microseconds, "limit": of.limit, "spills": of.spills,
            "warps": of.warps.0, "most_warps": of.warps.1, "shared_bytes": of.shared, "warp_instructions": of.instructions,
            "estimated_because": of.doubts,
        }),
        Score::Measured(of) => {
            let micros = |duration: std::time::Duration| duration.as_secs_f64() * 1e6;
            json!({
                "values": values, "microseconds": micros(of.median), "least_microseconds": micros(of.least),
                "most_microseconds": micros(of.most),
            })
        }
    };
    let refusals = refused
        .iter()
        .map(|Refused { values, code, reason }| json!({ "values": values, "code": code, "reason": reason }));
    let document = json!({
        "format": FORMAT,
        "file": path,
        "line": invocation.line,
        "kernel": kernel.ast.name.text,
        "constants": tuned.constants.iter().map(|constant| &constant.name).collect::<Vec<_>>(),
        "machine": machine,
        "measured": ranking.measured,
        "sizes": ranking.sizes,
        "ranked": scored.iter().map(one).collect::<Vec<_>>(),
        "refused": refusals.collect::<Vec<_>>(),
        "record": ranked.record(),
        "current": diff.is_empty() && !scored.is_empty(),
        "written": written,
    });
    format!("{document:#}\n")
}
