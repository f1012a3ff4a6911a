//! Counts, and what nothing noticed.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::judge::{NETS, Net};
use crate::tree::{Mutant, squeezed};

/// What was found out about one mutant.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The mutant.
    pub mutant: Mutant,
    /// Who noticed it first.
    pub net: Net,
    /// The case that was looked at last, and what was said.
    pub detail: String,
}

/// Why mutants that are other code are as right as the compiler: `FILE | BEFORE => AFTER | why`, a line each.
#[derive(Clone, Debug, Default)]
pub struct Explained(BTreeMap<String, String>);

/// Longest texts in keys.
const KEY: usize = 90;

fn cut(text: &str) -> String {
    let text: String = squeezed(text).replace(" | ", " or ");
    if text.chars().count() > KEY { text.chars().take(KEY).collect::<String>() + "…" } else { text }
}

impl Mutant {
    /// What it changes, independently of its number and line.
    pub fn change(&self) -> String {
        let after = if self.after.is_empty() { "nothing".to_owned() } else { cut(&self.after) };
        format!("{} | {} => {after}", self.file, cut(&self.before))
    }

    /// What names it: the same with the line, where that is needed to say which one it is.
    pub fn key(&self) -> String {
        let context = if self.context.is_empty() { String::new() } else { format!(" in {}", cut(&self.context)) };
        format!("{}{context}", self.change())
    }
}

impl Explained {
    /// From the text of a file; lines that begin with `//` say nothing.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with("//"));
        let rows = lines.filter_map(|line| line.rsplit_once(" | ")).map(|(key, why)| (key.to_owned(), why.to_owned()));
        Self(rows.collect())
    }

    /// The reason for a mutant.
    pub fn of(&self, mutant: &Mutant) -> Option<&str> {
        self.0.get(&mutant.key()).map(String::as_str)
    }
}

/// Counts by a property.
fn table(judged: &[Judged], of: impl Fn(&Judged) -> String) -> String {
    let mut rows: BTreeMap<String, BTreeMap<Net, u64>> = BTreeMap::new();
    for one in judged {
        *rows.entry(of(one)).or_default().entry(one.net).or_default() += 1;
        *rows.entry("~ all".to_owned()).or_default().entry(one.net).or_default() += 1;
    }
    let mut text = format!("{:<28}", "");
    for (_, name) in NETS {
        let _ = write!(text, " {name:>8}");
    }
    text.push('\n');
    for (name, counts) in rows {
        let _ = write!(text, "{:<28}", name.trim_start_matches("~ "));
        for (net, _) in NETS {
            let _ = write!(text, " {:>8}", counts.get(&net).copied().unwrap_or(0));
        }
        text.push('\n');
    }
    text
}

/// The whole report, and how many silent mutants have no explanation.
pub fn report(judged: &[Judged], explained: &Explained) -> (String, usize) {
    let mut text = table(judged, |j| j.mutant.operator.to_owned());
    text.push('\n');
    text.push_str(&table(judged, |j| j.mutant.file.clone()));
    let with = |net| judged.iter().filter(|j| j.net == net).count();
    let silent: Vec<&Judged> = judged.iter().filter(|j| j.net == Net::Silent).collect();
    let (other, known) = (judged.len() - with(Net::Same), silent.iter().filter(|j| explained.of(&j.mutant).is_some()));
    let (noticed, known) = (other - silent.len(), known.count());
    let percent = |n: usize| if other == 0 { 100.0 } else { 100.0 * n as f64 / other as f64 };
    let _ = writeln!(
        text,
        "\n{} mutants: {} of them give other code; {noticed} ({:.1} %) of these are noticed, {known} more are explained ({:.1} %)",
        judged.len(),
        other,
        percent(noticed),
        percent(noticed + known),
    );
    let _ = writeln!(text, "\nnoticed on the emulator only, and not by the separate checker:");
    for one in judged.iter().filter(|j| matches!(j.net, Net::Emulator | Net::Result)) {
        let _ = writeln!(text, "{}", line(one));
    }
    let _ = writeln!(text, "\nother code, and nobody noticed anything:");
    for one in silent.iter().filter(|j| explained.of(&j.mutant).is_none()) {
        let _ = writeln!(text, "{}", line(one));
    }
    (text, silent.len() - known)
}

fn line(judged: &Judged) -> String {
    let Judged { mutant, detail, .. } = judged;
    let detail: String = squeezed(detail).chars().take(240).collect();
    format!("{} (line {}, mutant {}, {})\n    {detail}", mutant.key(), mutant.line, mutant.number, mutant.operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(number: u32, net: Net) -> Judged {
        let text = |t: &str| t.to_owned();
        let (before, after) = (format!("a{number}  +\n b"), text("a | b"));
        let (file, operator, context) = (text("lower/x.rs"), "arithmetic", String::new());
        let mutant = Mutant { number, file, line: 3, operator, before, after, context };
        Judged { mutant, net, detail: text("composition 1 2: right") }
    }

    #[test]
    fn what_is_silent_is_explained_or_told() {
        let all = [judged(1, Net::Silent), judged(2, Net::Silent), judged(3, Net::Values), judged(4, Net::Same)];
        let explained = Explained::parse("// why\nlower/x.rs | a1 + b => a or b | a cheaper way to say it\n");
        assert_eq!(explained.of(&all[0].mutant), Some("a cheaper way to say it"));
        let (text, open) = report(&all, &explained);
        assert_eq!(open, 1);
        assert!(text.contains("4 mutants: 3 of them give other code; 1 (33.3 %)"), "{text}");
        assert!(text.contains("1 more are explained (66.7 %)"), "{text}");
        assert!(text.contains("lower/x.rs | a2 + b => a or b (line 3, mutant 2, arithmetic)"), "{text}");
        assert!(!text.contains("a1 + b => a or b (line"), "{text}");
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert!(report(&[], &Explained::default()).0.contains("0 mutants"));
    }
}
