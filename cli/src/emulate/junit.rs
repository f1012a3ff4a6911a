//! A test case for each launch and each comparison, as the XML that JUnit has made usual.

use super::judge::Judged;
use super::names::demangled;
use super::report::{severity, words};
use super::{Done, Request};

/// Text as it may stand in XML 1.0, which has no place for most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

struct Case {
    name: String,
    /// What failed, in a line and in full.
    failures: Vec<(String, String)>,
    printed: String,
}

/// The whole document.
pub(super) fn document(request: &Request, done: &Done) -> String {
    let mut cases = Vec::new();
    for run in &done.runs {
        for (number, (entry, report)) in run.launches.iter().enumerate() {
            let here = |judged: &&Judged| judged.fails() && judged.launches.contains(&(run.seed, number));
            let failure = |judged: &Judged| {
                let text = format!("{}: {}", severity(judged).unwrap_or_default(), words(judged));
                (judged.finding.kind.title().to_owned(), text)
            };
            let mut failures: Vec<_> = done.judged.iter().filter(here).map(failure).collect();
            if report.dropped > 0 {
                failures.push(("more findings".to_owned(), format!("{} findings are not kept", report.dropped)));
            }
            let name = format!("{} launch {} seed {}", demangled(entry), number + 1, run.seed);
            cases.push(Case { name, failures, printed: report.printed.clone() });
        }
        for compared in &run.compared {
            let name = format!("{} as {} seed {}", compared.buffer, compared.file, run.seed);
            let wrong = (compared.wrong > 0).then(|| ("not as expected".to_owned(), compared.to_string()));
            cases.push(Case { name, failures: wrong.into_iter().collect(), printed: String::new() });
        }
    }
    let file = escaped(request.name());
    let failed = cases.iter().filter(|case| !case.failures.is_empty()).count();
    let counts = format!("tests=\"{}\" failures=\"{failed}\"", cases.len());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{file}\" {counts}>\n"
    );
    for Case { name, failures, printed } in cases {
        out.push_str(&format!("    <testcase classname=\"{file}\" name=\"{}\">\n", escaped(&name)));
        for (what, text) in failures {
            let (what, text) = (escaped(&what), escaped(&text));
            out.push_str(&format!("      <failure type=\"{what}\" message=\"{what}\">{text}</failure>\n"));
        }
        if !printed.is_empty() {
            out.push_str(&format!("      <system-out>{}</system-out>\n", escaped(&printed)));
        }
        out.push_str("    </testcase>\n");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}
