//! A page with all that programs tell in it.

use std::collections::BTreeMap;

use clap::Parser as _;
use tilewright_cli::args::Args;
use tilewright_cli::{Output, Status, assembler};

use super::kernel::KernelText;
use crate::Failure;

/// Commands whose output pages have; others are for the reader alone.
const COMMANDS: [&str; 6] = ["check", "draw", "explain", "inspect", "run", "tune"];

/// A page as it should be.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its path from the root.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The pictures that its commands draw, by path from the root.
    pub pictures: BTreeMap<String, String>,
}

/// What the next `text` block is.
enum Next {
    /// As it stands.
    Written,
    /// This.
    Told(String),
}

/// What follows a word in a comment of its own line.
fn comment<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.strip_prefix(word)?.strip_prefix(' ')
}

impl Page {
    /// Brings a page up to date. Commands take paths from the current folder.
    ///
    /// # Errors
    /// A command is wrong, a kernel is not there, or nothing is said of an edit.
    pub fn new(name: &str, old: &str) -> Result<Self, Failure> {
        let mut page = Self { name: name.to_owned(), text: String::new(), pictures: BTreeMap::new() };
        let (mut kernel, mut shown, mut next) = (None, None, Next::Written);
        let mut lines = old.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let at = |failure: Failure| format!("{name}:{number}: {failure}");
            page.text += &format!("{line}\n");
            if let Some(named) = comment(line, "kernel") {
                let (file, of) =
                    named.split_once(' ').ok_or_else(|| at("a file and a kernel are wanted".to_owned()))?;
                kernel = Some(KernelText::read(file, of).map_err(at)?);
                shown = kernel.as_ref().map(|kernel| kernel.lines().join("\n") + "\n");
                continue;
            }
            if let Some(file) = comment(line, "tests") {
                let text = super::read(file).map_err(at)?;
                let from = text.find("#[cfg(test)]").ok_or_else(|| at(format!("{file} has no tests")))?;
                shown = Some(text[from..].to_owned());
                continue;
            }
            let Some(language) = line.strip_prefix("```") else { continue };
            let body = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```");
            let body: String = body.map(|line| format!("{line}\n")).collect();
            let body = match (language, std::mem::replace(&mut next, Next::Written)) {
                ("text", Next::Told(told)) => told,
                ("sh", _) => {
                    next = page.told(&body).map_err(at)?;
                    body
                }
                ("rust,ignore", _) => shown.take().unwrap_or(body),
                ("diff wrong", _) => {
                    let kernel = kernel.as_ref().ok_or_else(|| at("no kernel is named before this edit".to_owned()))?;
                    next = Next::Told(kernel.refusal(&body).map_err(at)?);
                    body
                }
                _ => body,
            };
            page.text += &body;
            page.text += "```\n";
        }
        Ok(page)
    }

    /// What the commands of a block print, other than pictures, if all are such that pages have.
    fn told(&mut self, body: &str) -> Result<Next, Failure> {
        let body = body.replace("\\\n", " ");
        let commands: Vec<Vec<&str>> = body.lines().map(|line| line.split_whitespace().collect()).collect();
        let is_shown = |words: &Vec<&str>| {
            words.first() == Some(&"tilewright") && words.get(1).is_some_and(|w| COMMANDS.contains(w))
        };
        // Files of the reader's own crate are not here, and a page changes no file.
        let is_here = |words: &Vec<&str>| !words.iter().any(|word| word.starts_with("src/") || *word == "--write");
        if !commands.iter().all(|words| is_shown(words) && is_here(words)) {
            return Ok(Next::Written);
        }
        if commands.iter().flatten().any(|word| matches!(*word, "--cost" | "tune")) && assembler::assembler().is_none()
        {
            return Ok(Next::Written);
        }
        let mut told = Vec::new();
        for words in commands {
            told.extend(self.run(words)?);
        }
        Ok(if told.is_empty() { Next::Written } else { Next::Told(told.concat()) })
    }

    /// What one command prints; nothing of one that draws, whose picture is kept and not yet written to its file.
    fn run(&mut self, mut words: Vec<&str>) -> Result<Option<String>, Failure> {
        let shown = words.join(" ");
        let to = words.iter().position(|word| *word == "-o").map(|at| at + 1).filter(|at| *at < words.len());
        let picture = to.map(|at| std::mem::replace(&mut words[at], "-").to_owned());
        let args = Args::try_parse_from(words).map_err(|error| format!("`{shown}`: {error}"))?;
        let Output { text, errors, status } = args.execute();
        // A finding is what a page may show; a picture of a kernel that is refused is none.
        if status == Status::Usage || (picture.is_some() && status != Status::Good) {
            return Err(format!("`{shown}`: {errors}"));
        }
        let Some(picture) = picture else { return Ok(Some(errors + &text)) };
        self.pictures.insert(picture, text);
        Ok(None)
    }
}
