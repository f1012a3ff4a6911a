//! Links of pages, the anchors of headings, and the table of contents.

use std::collections::BTreeMap;

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its line, from 1.
    pub line: usize,
    /// Where it leads, as it is written.
    pub target: String,
}

/// The lines of a page that are not code, with their numbers, and without what stands in backticks.
fn prose(page: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.push((number, line.split('`').step_by(2).collect::<Vec<_>>().join("`")));
        }
    }
    found
}

/// The links and pictures of a page. A link may break between its text and its target only inside the text.
pub fn links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in prose(page) {
        for after in text.split("](").skip(1) {
            if let Some((target, _)) = after.split_once(')') {
                found.push(Link { line, target: target.to_owned() });
            }
        }
    }
    found
}

/// The anchors of a page: its headings in lower case without punctuation, blanks as hyphens; of equal ones the second
/// ends with `-1`. Code hosts and mdBook agree on this.
pub fn anchors(page: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_code = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        let Some(title) = title.strip_prefix(' ').filter(|_| !is_code && (1..=6).contains(&level)) else { continue };
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect();
        let times = seen.entry(slug.clone()).or_default();
        found.push(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    found
}

/// What a link of a page refers to: a path from the root, and an anchor. Nothing for a link out of the repository.
///
/// # Errors
/// The path leaves the repository.
pub fn resolved(page: &str, target: &str) -> Result<Option<(String, Option<String>)>, String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(None);
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (target, None),
    };
    if path.is_empty() {
        return Ok(Some((page.to_owned(), anchor)));
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or_else(|| format!("{page}: `{target}` leaves the repository"))?),
            part => parts.push(part),
        }
    }
    Ok(Some((parts.join("/"), anchor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_prose_are_found() {
        let page = "a [b](c.md) and ![d](e/f.svg)\n```text\n[no](link)\n```\n`[no](link)` [g\nh](#i)\n";
        let found: Vec<(usize, String)> = links(page).into_iter().map(|link| (link.line, link.target)).collect();
        let of = |line, target: &str| (line, target.to_owned());
        assert_eq!(found, [of(1, "c.md"), of(1, "e/f.svg"), of(6, "#i")]);
    }

    #[test]
    fn anchors_are_those_of_code_hosts() {
        let page = "# `schedule!` in use\n## 1. A, b\n```sh\n# no\n```\n### A_b - c\n## 1. A, b\n#no\n";
        assert_eq!(anchors(page), ["schedule-in-use", "1-a-b", "a_b---c", "1-a-b-1"]);
    }

    #[test]
    fn paths_start_at_the_page() {
        let of = |page, target| {
            resolved(page, target).map(|found| found.map(|(path, anchor)| (path, anchor.unwrap_or_default())))
        };
        let to = |path: &str, anchor: &str| Ok(Some((path.to_owned(), anchor.to_owned())));
        assert_eq!(of("docs/a/b.md", "../c.md#d"), to("docs/c.md", "d"));
        assert_eq!(of("docs/a.md", "#d"), to("docs/a.md", "d"));
        assert_eq!(of("README.md", "./examples"), to("examples", ""));
        assert_eq!(of("README.md", "https://example.org/a#b"), Ok(None));
        assert!(of("README.md", "../a").is_err());
    }
}
