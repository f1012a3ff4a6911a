//! `tilewright explain`: what a diagnostic means.

use tilewright_compiler::diag::suggest::closest;
use tilewright_compiler::diag::{Code, Level, Row};

use crate::{Output, Status};

/// Prints the page of a code, or the list of all codes.
pub fn explain(wanted: Option<&str>) -> Output {
    let good = |text| Output { text, errors: String::new(), status: Status::Good };
    let Some(wanted) = wanted else { return good(list()) };
    match find(wanted) {
        Some(code) => good(page(code.row())),
        None => {
            let mut message = format!("there is no diagnostic `{}`", wanted.escape_debug());
            let near = nearest(wanted);
            if !near.is_empty() {
                message.push_str(&format!("; there is {}", near.join(", ")));
            }
            message.push_str("\n`tilewright explain` lists all of them");
            Output::usage(message)
        }
    }
}

/// The code written so, in any case and with or without `TW`, or named so.
fn find(wanted: &str) -> Option<Code> {
    let upper = wanted.trim_matches(['[', ']']).to_ascii_uppercase();
    let digits = upper.strip_prefix("TW").unwrap_or(&upper);
    let named = || Code::ALL.iter().copied().find(|c| c.row().name.eq_ignore_ascii_case(wanted));
    Code::from_text(&format!("TW{digits}")).or_else(named)
}

/// The codes and names that may have been meant, at most four.
fn nearest(wanted: &str) -> Vec<&'static str> {
    // Longer words are close to nothing, and the distance takes quadratic time.
    if wanted.len() > 64 {
        return Vec::new();
    }
    let upper = wanted.to_ascii_uppercase();
    // Codes that differ in one digit, those with the same beginning first.
    let differing = |code: &str| code.chars().zip(upper.chars()).filter(|(a, b)| a != b).count();
    let rows = || Code::ALL.iter().map(|c| c.row());
    let mut codes: Vec<&Row> = rows().filter(|r| r.code.len() == upper.len() && differing(r.code) == 1).collect();
    codes.sort_by_key(|r| std::cmp::Reverse(r.code.chars().zip(upper.chars()).take_while(|(a, b)| a == b).count()));
    let mut found: Vec<&'static str> = codes.into_iter().take(3).map(|r| r.code).collect();
    let lower = wanted.to_ascii_lowercase();
    let names = || rows().map(|r| r.name);
    found.extend(closest(&upper, rows().map(|r| r.code)).filter(|_| found.is_empty()));
    found.extend(closest(&lower, names()));
    found.dedup();
    found
}

fn level(row: &Row) -> &'static str {
    match row.level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

fn list() -> String {
    let row = |row: &Row| format!("{} {:<7} {:<22} {}\n", row.code, level(row), row.name, row.summary);
    Code::ALL.iter().map(|c| row(c.row())).collect()
}

/// The page of a code; its line in the list until it has one.
fn page(row: &Row) -> String {
    let head = format!("# {}: {}\n", row.code, row.summary);
    let body = tilewright::errors::page(row.code).unwrap_or(&head);
    format!("{}\n\n{} `{}`\n", body.trim_end(), level(row), row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_however_they_are_written() {
        for written in ["TW0201", "tw0201", "0201", "[TW0201]", "not-divisible", "Not-Divisible"] {
            assert_eq!(find(written).map(|c| c.row().code), Some("TW0201"), "{written}");
        }
        assert_eq!(find("TW9999"), None);
        assert_eq!(nearest("TW0211"), ["TW0201", "TW0011", "TW0111"]);
        assert_eq!(nearest("not-divisble"), ["not-divisible"]);
        assert!(nearest(&"x".repeat(100_000)).is_empty());
    }

    #[test]
    fn every_code_has_a_page_and_a_row() {
        let all = list();
        for code in Code::ALL {
            let text = page(code.row());
            assert!(text.starts_with(&format!("# {}: ", code.row().code)), "{text}");
            assert!(tilewright::errors::page(code.row().code).is_some(), "{code} has no page");
            assert!(all.contains(code.row().code));
        }
        assert_eq!(all.lines().count(), Code::ALL.len());
    }
}
