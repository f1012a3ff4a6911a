//! What is told of a launch, as text and as JSON. The JSON is described in docs/emulate.md.

use serde_json::{Value, json};
use tilewright_emulator::{Class, Finding, Place, Thread, Traffic};

use super::{Done, Request};

/// Version of the JSON format.
const FORMAT: u32 = 1;

pub(super) fn text(done: &Done) -> String {
    let mut out = String::new();
    let report = &done.report;
    if !report.printed.is_empty() {
        out.push_str(&format!("printed:\n{}\n", report.printed.trim_end()));
    }
    for finding in &report.findings {
        out.push_str(&format!("{finding}\n"));
    }
    if report.dropped > 0 {
        out.push_str(&format!("and {} more findings\n", report.dropped));
    }
    if report.findings.is_empty() {
        out.push_str("no findings\n");
    }
    out.push_str(&report.counters.to_string());
    for (path, bytes) in &done.written {
        out.push_str(&format!("{path}: {bytes} bytes\n"));
    }
    out
}

fn place(place: &Place) -> Value {
    json!({
        "line": place.line, "instruction": place.instruction,
        "source": place.source.as_ref().map(|(file, line, column)| json!({ "file": file, "line": line, "column": column })),
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

fn finding(finding: &Finding) -> Value {
    json!({
        "kind": format!("{:?}", finding.kind),
        "failure": finding.kind.is_failure(),
        "fatal": finding.fatal,
        "count": finding.count,
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
        "text": finding.to_string(),
    })
}

fn traffic(t: &Traffic) -> Value {
    json!({
        "load_requests": t.load_requests, "store_requests": t.store_requests,
        "bytes_loaded": t.bytes_loaded, "bytes_stored": t.bytes_stored,
        "transactions": t.transactions, "ideal_transactions": t.ideal_transactions,
    })
}

/// Why nothing was launched.
pub(super) fn refusal(request: &Request, error: &str) -> String {
    let document =
        json!({ "format": FORMAT, "file": request.file, "seed": request.seed, "good": false, "error": error });
    format!("{document:#}\n")
}

pub(super) fn json(request: &Request, done: &Done) -> String {
    let report = &done.report;
    let c = &report.counters;
    let classes: serde_json::Map<String, Value> =
        Class::ALL.iter().map(|class| (format!("{class:?}").to_lowercase(), json!(c.of(*class)))).collect();
    let document = json!({
        "format": FORMAT,
        "file": request.file,
        "entry": done.entry,
        "seed": request.seed,
        "good": report.is_clean(),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "findings_dropped": report.dropped,
        "printed": report.printed,
        "counters": {
            "blocks": c.ctas, "warps": c.warps, "warp_instructions": c.warp_instructions,
            "thread_instructions": c.total(), "by_class": classes,
            "uniform_branches": c.uniform_branches, "divergent_branches": c.divergent_branches,
            "barriers": c.barriers, "atomics": c.atomics,
            "global": traffic(&c.global), "shared": traffic(&c.shared), "local": traffic(&c.local),
        },
        "outputs": done.written.iter().map(|(path, bytes)| json!({ "file": path, "bytes": bytes })).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}
