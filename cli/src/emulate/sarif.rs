//! The findings as SARIF 2.1.0 (OASIS, 2020), which code hosts show beside the lines.

use serde_json::{Value, json};
use tilewright_emulator::{Kind, Place};

use super::judge::{Judged, own_place};
use super::names::demangled;
use super::report::{severity, words};
use super::rules::Verdict;
use super::{Done, Request};

/// Where something is: in the source, or else in the PTX file.
fn physical(ptx: &str, line: u32, position: Option<&(String, u32, u32)>) -> Value {
    let (file, line, column) = match position {
        Some((file, line, column)) => (file.as_str(), *line, *column),
        None => (ptx, line, 0),
    };
    // Lines and columns count from 1.
    let mut region = json!({ "startLine": line.max(1) });
    if column > 0 {
        region["startColumn"] = json!(column);
    }
    json!({ "artifactLocation": { "uri": file.replace('\\', "/") }, "region": region })
}

/// The positions around a place, other than the one that is told first.
fn related(ptx: &str, place: &Place, what: &str) -> Vec<Value> {
    let one = |(at, position): (usize, &(String, u32, u32))| {
        let text = match place.inlined.get(at.wrapping_sub(1)) {
            Some(inlined) if !inlined.function.is_empty() => format!("call of {}", demangled(&inlined.function)),
            Some(_) => "call".to_owned(),
            None => what.to_owned(),
        };
        json!({ "physicalLocation": physical(ptx, place.line, Some(position)), "message": { "text": text } })
    };
    place.stack().enumerate().map(one).collect()
}

fn result(ptx: &str, judged: &Judged) -> Value {
    let finding = &judged.finding;
    let mut around = related(ptx, &finding.place, "the instruction");
    if let Some(other) = &finding.other {
        let what = format!("the other access: {}", other.access);
        around.extend(related(ptx, &other.place, &what));
    }
    let mut result = json!({
        "ruleId": format!("{:?}", finding.kind),
        "level": severity(judged).unwrap_or("none"),
        "message": { "text": words(judged) },
        "locations": [{
            "physicalLocation": physical(ptx, finding.place.line, own_place(&finding.place)),
            "logicalLocations": [{ "fullyQualifiedName": demangled(&finding.kernel), "kind": "function" }],
        }],
        "relatedLocations": around,
        "occurrenceCount": finding.count,
        "properties": { "seeds": judged.seeds(), "ptxLines": judged.lines },
    });
    if let Verdict::Suppressed(_, reason) = &judged.verdict {
        result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    result
}

/// The whole document.
pub(super) fn document(request: &Request, done: &Done) -> String {
    let ptx = request.name();
    let mut kinds: Vec<Kind> = done.judged.iter().map(|judged| judged.finding.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let rule = |kind: &Kind| json!({ "id": format!("{kind:?}"), "shortDescription": { "text": kind.title() } });
    let wrong = done.runs.iter().flat_map(|run| run.compared.iter().map(move |compared| (run.seed, compared)));
    let mismatches = wrong.filter(|(_, compared)| compared.wrong > 0).map(|(seed, compared)| {
        json!({
            "ruleId": "Expectation", "level": "error", "message": { "text": compared.to_string() },
            "locations": [{ "physicalLocation": physical(ptx, 1, None) }], "properties": { "seeds": [seed] },
        })
    });
    let results: Vec<Value> = done.judged.iter().map(|judged| result(ptx, judged)).chain(mismatches).collect();
    let mut rules: Vec<Value> = kinds.iter().map(rule).collect();
    if results.len() > done.judged.len() {
        rules.push(json!({ "id": "Expectation", "shortDescription": { "text": "a buffer is not as expected" } }));
    }
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tilewright emulate", "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"), "rules": rules,
            } },
            "results": results,
        }],
    });
    format!("{document:#}\n")
}
