//! The committed count of refusals that could not be decided, per code: it may only fall.

use std::collections::BTreeMap;

use crate::campaign::Summary;

/// The file `undecided.txt`: one row a code, one column a set of cases.
#[derive(Clone, Debug, Default)]
pub struct Ratchet {
    columns: Vec<String>,
    rows: BTreeMap<String, Vec<u64>>,
}

/// The verdicts that count.
const COUNTED: [&str; 2] = ["undecided", "witness-missed"];

impl Ratchet {
    /// The file as committed.
    pub fn committed() -> Self {
        Self::parse(include_str!("../undecided.txt"))
    }

    /// A file: comments, the line `code column …`, and a row for each code and verdict.
    pub fn parse(text: &str) -> Self {
        let mut ratchet = Self::default();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
            let mut words = line.split_whitespace().map(str::to_owned);
            let (Some(code), Some(verdict)) = (words.next(), words.next()) else { continue };
            let rest: Vec<String> = words.collect();
            if code == "code" {
                ratchet.columns = rest;
            } else {
                ratchet.rows.insert(format!("{code} {verdict}"), rest.iter().filter_map(|w| w.parse().ok()).collect());
            }
        }
        ratchet
    }

    /// The codes that were undecided more often than the column allows.
    pub fn worse(&self, column: &str, summary: &Summary) -> Vec<String> {
        let at = self.columns.iter().position(|c| c == column);
        let allowed = |what: &String| at.and_then(|at| self.rows.get(what)?.get(at).copied()).unwrap_or(0);
        (summary.counts.iter())
            .filter(|(what, n)| is_counted(what) && **n > allowed(what))
            .map(|(what, n)| format!("{what}: {n}, and {} allowed", allowed(what)))
            .collect()
    }

    /// The rows that a summary would give.
    pub fn rows(summary: &Summary) -> String {
        let counted = summary.counts.iter().filter(|(what, _)| is_counted(what));
        counted.map(|(what, n)| format!("{what} {n}\n")).collect()
    }
}

fn is_counted(what: &str) -> bool {
    what.split_whitespace().nth(1).is_some_and(|verdict| COUNTED.contains(&verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_allowed_is_worse() {
        let ratchet = Ratchet::parse("# c\ncode verdict test campaign\nTW0401 undecided 2 30\n");
        let mut summary = Summary::default();
        summary.counts.insert("TW0401 undecided".to_owned(), 2);
        summary.counts.insert("TW0401 confirmed".to_owned(), 99);
        assert!(ratchet.worse("test", &summary).is_empty());
        summary.counts.insert("TW0402 witness-missed".to_owned(), 1);
        summary.counts.insert("TW0401 undecided".to_owned(), 3);
        assert_eq!(
            ratchet.worse("test", &summary),
            ["TW0401 undecided: 3, and 2 allowed", "TW0402 witness-missed: 1, and 0 allowed"]
        );
    }
}
