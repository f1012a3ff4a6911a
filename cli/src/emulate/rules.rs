//! The file of `--suppressions`: how grave each kind of finding is, and findings that are known. TOML:
//!
//! ```toml
//! [severity]                     # error, note or ignore, by kind
//! SameValueRace = "error"
//!
//! [[suppress]]                   # a finding for which everything holds that is given
//! kind = "Race"
//! kernel = "app::reduce*"        # `*` stands for any text; as it is, or as it was written in C++
//! file = "*/detail/scan.cuh"     # a position in the source, or a call around it
//! line = 120                     # its line
//! function = "*warp_scan*"       # a function that was inlined there
//! instruction = "ld.global*"     # the instruction of PTX
//! reason = "the scan reads one element ahead and drops it"
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use tilewright_emulator::{Finding, Kind};

use super::names::demangled;

/// How grave a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The command fails.
    Error,
    /// It is told.
    Note,
    /// It is as if it were suppressed.
    Ignore,
}

/// A finding that is known.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppression {
    kind: Option<String>,
    kernel: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    function: Option<String>,
    instruction: Option<String>,
    /// Why it is none.
    pub reason: String,
}

/// The whole file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    severity: BTreeMap<String, Severity>,
    suppress: Vec<Suppression>,
}

/// What the rules make of a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It counts.
    Counts(Severity),
    /// It does not; the number of the suppression, if it was one, and its reason.
    Suppressed(Option<usize>, String),
}

impl Rules {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, as text.
    pub fn read(path: &str) -> Result<Rules, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        Rules::parse(&text).map_err(|error| format!("{path}: {error}"))
    }

    /// The rules that a file says.
    ///
    /// # Errors
    /// What is wrong, as text.
    pub fn parse(text: &str) -> Result<Rules, String> {
        let rules: Rules = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let kinds = rules.severity.keys().chain(rules.suppress.iter().filter_map(|rule| rule.kind.as_ref()));
        for kind in kinds {
            if !Kind::ALL.iter().any(|known| format!("{known:?}") == *kind) {
                let known: Vec<String> = Kind::ALL.iter().map(|kind| format!("{kind:?}")).collect();
                return Err(format!("there is no kind of finding `{kind}`; there are {}", known.join(", ")));
            }
        }
        for (at, rule) in rules.suppress.iter().enumerate() {
            let Suppression { kind, kernel, file, line, function, instruction, reason } = rule;
            let all = [kind, kernel, file, function, instruction];
            if all.iter().all(|condition| condition.is_none()) && line.is_none() {
                return Err(format!("suppression {} says of no finding that it is known", at + 1));
            }
            if reason.trim().is_empty() {
                return Err(format!("suppression {} has no reason", at + 1));
            }
        }
        Ok(rules)
    }

    /// What the rules make of a finding.
    pub fn judge(&self, finding: &Finding) -> Verdict {
        if let Some((at, rule)) = self.suppress.iter().enumerate().find(|(_, rule)| rule.covers(finding)) {
            return Verdict::Suppressed(Some(at), rule.reason.clone());
        }
        let usual = if finding.kind.is_failure() { Severity::Error } else { Severity::Note };
        match self.severity.get(&format!("{:?}", finding.kind)).copied().unwrap_or(usual) {
            Severity::Ignore => Verdict::Suppressed(None, "its kind is ignored".to_owned()),
            severity => Verdict::Counts(severity),
        }
    }

    /// Suppressions, in the order of the file.
    pub fn suppressions(&self) -> &[Suppression] {
        &self.suppress
    }
}

impl Suppression {
    fn covers(&self, finding: &Finding) -> bool {
        let matches = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|p| like(p, text));
        let named = |pattern: &Option<String>, name: &str| matches(pattern, name) || matches(pattern, &demangled(name));
        let place = &finding.place;
        let somewhere = self.file.is_none() && self.line.is_none()
            || place
                .stack()
                .any(|(file, line, _)| matches(&self.file, file) && self.line.is_none_or(|wanted| wanted == *line));
        let mut functions = place.inlined.iter();
        self.kind.as_ref().is_none_or(|kind| format!("{:?}", finding.kind) == *kind)
            && named(&self.kernel, &finding.kernel)
            && somewhere
            && (self.function.is_none() || functions.any(|inlined| named(&self.function, &inlined.function)))
            && matches(&self.instruction, &place.instruction)
    }
}

impl std::fmt::Display for Suppression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = self.line.map(|line| line.to_string());
        let all = [
            ("kind", &self.kind),
            ("kernel", &self.kernel),
            ("file", &self.file),
            ("line", &line),
            ("function", &self.function),
            ("instruction", &self.instruction),
        ];
        let given = all.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        f.write_str(&given.collect::<Vec<_>>().join(", "))
    }
}

/// Whether a text is as a pattern says, in which `*` stands for any text.
fn like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            let Some(at) = rest.find(middle) else { return false };
            rest = &rest[at + middle.len()..];
        }
    }
    match last {
        None => rest.is_empty(),
        Some(end) => rest.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, wanted) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("*b", "abc", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("**", "x", true),
        ] {
            assert_eq!(like(pattern, text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn mistakes_have_reasons() {
        assert_eq!(Rules::parse(""), Ok(Rules::default()));
        for (text, why) in [
            ("[severity]\nRice = \"note\"", "no kind of finding `Rice`; there are OutOfBounds"),
            ("[severity]\nRace = \"bad\"", "unknown variant `bad`"),
            ("[[suppress]]\nkind = \"Race\"", "missing field `reason`"),
            ("[[suppress]]\nreason = \"x\"", "suppression 1 says of no finding"),
            ("[[suppress]]\nkind = \"Race\"\nreason = \" \"", "suppression 1 has no reason"),
            ("[[suppress]]\nkernels = \"x\"\nreason = \"x\"", "unknown field `kernels`"),
        ] {
            assert!(Rules::parse(text).is_err_and(|error| error.contains(why)), "{text}: {:?}", Rules::parse(text));
        }
    }
}
