//! What is told of launches, as text and as JSON. The JSON is described in docs/emulate.md.

use serde_json::{Value, json};
use tilewright_emulator::{Class, Counters, Finding, Inlined, Place, Thread, Traffic};

use super::expect::Compared;
use super::judge::Judged;
use super::names::demangled;
use super::rules::{Severity, Verdict};
use super::{Done, Request};

/// Version of the JSON format.
const FORMAT: u32 = 1;
/// Most numbers that a line of text lists.
const MOST_LISTED: usize = 8;

/// Numbers after each other; the others are counted.
fn numbers<T: ToString>(all: &[T]) -> String {
    let shown: Vec<String> = all.iter().take(MOST_LISTED).map(T::to_string).collect();
    match all.len().saturating_sub(MOST_LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A finding in words: without its severity, with names as they were written.
pub(super) fn words(judged: &Judged) -> String {
    let finding = Finding { kernel: demangled(&judged.finding.kernel), ..judged.finding.clone() };
    let mut out = finding.to_string();
    for Inlined { function, at: (file, line, _) } in finding.place.inlined.iter().filter(|i| !i.function.is_empty()) {
        out.push_str(&format!("\n  in {}, called at {file}:{line}", demangled(function)));
    }
    if judged.lines.len() > 1 {
        out.push_str(&format!("\n  at {} instructions: lines {}", judged.lines.len(), numbers(&judged.lines)));
    }
    out
}

/// How grave a finding is, in a word; none if it is suppressed.
pub(super) fn severity(judged: &Judged) -> Option<&'static str> {
    match &judged.verdict {
        Verdict::Counts(Severity::Error) => Some("error"),
        Verdict::Counts(_) => Some("note"),
        Verdict::Suppressed(..) => None,
    }
}

pub(super) fn text(done: &Done) -> String {
    let mut out = String::new();
    let Some(first) = done.runs.first() else { return out };
    for (_, report) in &first.launches {
        if !report.printed.is_empty() {
            out.push_str(&format!("printed:\n{}\n", report.printed.trim_end()));
        }
    }
    let mut suppressed = 0;
    for judged in &done.judged {
        let Some(severity) = severity(judged) else {
            suppressed += 1;
            continue;
        };
        out.push_str(&format!("{severity}: {}\n", words(judged)));
        if done.runs.len() > 1 {
            let seeds = judged.seeds();
            out.push_str(&format!("  under {} of {} seeds: {}\n", seeds.len(), done.runs.len(), numbers(&seeds)));
        }
    }
    if suppressed > 0 {
        out.push_str(&format!("{suppressed} suppressed\n"));
    }
    for rule in &done.unused {
        out.push_str(&format!("note: a suppression has covered nothing: {rule}\n"));
    }
    if done.dropped > 0 {
        out.push_str(&format!("and {} more findings\n", done.dropped));
    }
    if done.judged.is_empty() {
        out.push_str("no findings\n");
    }
    for run in &done.runs {
        for compared in &run.compared {
            if compared.wrong > 0 || done.runs.len() == 1 {
                let severity = if compared.wrong > 0 { "error: " } else { "" };
                let seed = if done.runs.len() > 1 { format!(" (seed {})", run.seed) } else { String::new() };
                out.push_str(&format!("{severity}{compared}{seed}\n"));
            }
        }
    }
    for (entry, report) in &first.launches {
        if first.launches.len() > 1 {
            out.push_str(&format!("{}:\n", demangled(entry)));
        }
        out.push_str(&report.counters.to_string());
    }
    for (path, bytes) in &done.written {
        out.push_str(&format!("{path}: {bytes} bytes\n"));
    }
    out
}

fn place(place: &Place) -> Value {
    let position = |(file, line, column): &(String, u32, u32)| json!({ "file": file, "line": line, "column": column });
    let inlined = |inlined: &Inlined| json!({ "function": demangled(&inlined.function), "at": position(&inlined.at) });
    json!({
        "line": place.line, "instruction": place.instruction,
        "source": place.source.as_ref().map(position),
        "inlined": place.inlined.iter().map(inlined).collect::<Vec<_>>(),
    })
}

fn thread(thread: &Thread) -> Value {
    json!({ "block": thread.cta, "warp": thread.warp, "lane": thread.lane })
}

/// Addresses have 64 bits, so that a distance may have one more.
fn offset(offset: i128) -> Value {
    match (i64::try_from(offset), u64::try_from(offset)) {
        (Ok(offset), _) => json!(offset),
        (_, Ok(offset)) => json!(offset),
        _ => Value::Null,
    }
}

fn finding(judged: &Judged) -> Value {
    let finding = &judged.finding;
    let suppressed = match &judged.verdict {
        Verdict::Suppressed(_, reason) => Some(reason),
        Verdict::Counts(_) => None,
    };
    json!({
        "kind": format!("{:?}", finding.kind),
        "failure": judged.fails(),
        "severity": severity(judged),
        "suppressed": suppressed,
        "kernel": finding.kernel,
        "fatal": finding.fatal,
        "count": finding.count,
        "lines": judged.lines,
        "seeds": judged.seeds(),
        "place": place(&finding.place),
        "thread": thread(&finding.thread),
        "location": finding.location.as_ref().map(|location| json!({
            "space": location.space, "address": location.address, "bytes": location.bytes,
            "near": location.near.as_ref().map(|near| json!({
                "name": near.label, "offset": offset(near.offset), "bytes": near.bytes,
            })),
        })),
        "other": finding.other.as_ref().map(|other| json!({
            "access": other.access, "thread": thread(&other.thread), "place": place(&other.place),
        })),
        "detail": finding.detail,
        "text": words(judged),
    })
}

fn traffic(t: &Traffic) -> Value {
    json!({
        "load_requests": t.load_requests, "store_requests": t.store_requests,
        "bytes_loaded": t.bytes_loaded, "bytes_stored": t.bytes_stored,
        "transactions": t.transactions, "ideal_transactions": t.ideal_transactions,
    })
}

fn counters(c: &Counters) -> Value {
    let classes: serde_json::Map<String, Value> =
        Class::ALL.iter().map(|class| (format!("{class:?}").to_lowercase(), json!(c.of(*class)))).collect();
    json!({
        "blocks": c.ctas, "warps": c.warps, "warp_instructions": c.warp_instructions,
        "thread_instructions": c.total(), "by_class": classes,
        "uniform_branches": c.uniform_branches, "divergent_branches": c.divergent_branches,
        "barriers": c.barriers, "atomics": c.atomics,
        "global": traffic(&c.global), "shared": traffic(&c.shared), "local": traffic(&c.local),
    })
}

fn compared(seed: u64, compared: &Compared) -> Value {
    let first = compared.first.as_ref().map(|(at, got, want)| json!({ "element": at, "got": got, "expected": want }));
    json!({
        "seed": seed, "file": compared.file, "buffer": compared.buffer, "good": compared.wrong == 0,
        "elements": compared.elements, "wrong": compared.wrong, "first": first,
    })
}

/// Why nothing was launched.
pub(super) fn refusal(request: &Request, error: &str) -> String {
    let document = json!({
        "format": FORMAT, "file": request.name(), "seed": request.seeds().start, "good": false, "error": error,
    });
    format!("{document:#}\n")
}

pub(super) fn json(request: &Request, done: &Done) -> String {
    let first = done.runs.first().map(|run| &run.launches[..]).unwrap_or_default();
    let launch = |(entry, report): &(String, tilewright_emulator::Report)| json!({ "entry": entry, "printed": report.printed, "counters": counters(&report.counters) });
    let expectations: Vec<Value> =
        done.runs.iter().flat_map(|run| run.compared.iter().map(|one| compared(run.seed, one))).collect();
    let document = json!({
        "format": FORMAT,
        "file": request.name(),
        "entry": first.first().map(|(entry, _)| entry),
        "seed": request.seeds().start,
        "seeds": done.runs.iter().map(|run| run.seed).collect::<Vec<_>>(),
        "good": done.is_good(),
        "findings": done.judged.iter().map(finding).collect::<Vec<_>>(),
        "findings_dropped": done.dropped,
        "unused_suppressions": done.unused,
        "expectations": expectations,
        "printed": first.first().map(|(_, report)| &report.printed),
        "counters": first.first().map(|(_, report)| counters(&report.counters)),
        "launches": first.iter().map(launch).collect::<Vec<_>>(),
        "outputs": done.written.iter().map(|(path, bytes)| json!({ "file": path, "bytes": bytes })).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}
