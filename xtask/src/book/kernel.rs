//! One kernel of a file: its text as pages show it, and what the compiler says of it after an edit.

use tilewright_cli::source::SourceFile;
use tilewright_compiler::Compiled;

use crate::{Failure, book};

/// A kernel of a file, all of which but its `schedule!` is blanked, so that places stay.
pub struct KernelText {
    /// The file, from the root.
    pub file: String,
    /// The kernel.
    pub name: String,
    /// The file's text, with empty lines in the place of what is not this kernel's `schedule!`.
    pub text: String,
}

impl KernelText {
    /// Reads it.
    ///
    /// # Errors
    /// The file cannot be read, or has no such kernel in a `schedule!` that begins and ends a line.
    pub fn read(file: &str, name: &str) -> Result<Self, Failure> {
        let all = book::read(file)?;
        let lines: Vec<&str> = all.lines().collect();
        let of = |n: &usize| lines[*n].trim_start().starts_with(&format!("pub kernel {name}("));
        let missing = || format!("{file} has no kernel `{name}` in a `schedule!` of its own lines");
        let at = (0..lines.len()).find(of).ok_or_else(missing)?;
        let from = (0..at).rfind(|n| lines[*n] == "schedule! {").ok_or_else(missing)?;
        let to = (at..lines.len()).find(|n| lines[*n] == "}").ok_or_else(missing)?;
        let kept = (0..=to).map(|n| if n < from { "" } else { lines[n] });
        let text = kept.map(|line| format!("{line}\n")).collect();
        Ok(Self { file: file.to_owned(), name: name.to_owned(), text })
    }

    /// The lines of the kernel, without their indentation, documentation and allowed warnings; of several in one
    /// `schedule!` this one.
    pub fn lines(&self) -> Vec<&str> {
        let is_it = |line: &&str| !line.trim_start().starts_with(&format!("pub kernel {}(", self.name));
        let lines = self.text.lines().skip_while(is_it).map(|line| line.strip_prefix("    ").unwrap_or(line));
        let mut kept = Vec::new();
        for line in lines {
            kept.push(line);
            if line == "}" {
                break;
            }
        }
        kept
    }

    /// The file with another text.
    ///
    /// # Errors
    /// That is no Rust.
    pub fn parsed(&self, text: &str) -> Result<SourceFile, Failure> {
        SourceFile::parse(&self.file, text).map_err(|error| error.to_string())
    }

    /// The kernel, compiled.
    ///
    /// # Errors
    /// Something is said of it, or it is not there.
    pub fn compiled(&self) -> Result<Compiled, Failure> {
        let file = self.parsed(&self.text)?;
        let findings = file.findings();
        if (findings.errors, findings.warnings) != (0, 0) {
            return Err(findings.text);
        }
        let found = file.kernels().find(|found| found.kernel.info.as_ref().is_some_and(|info| info.name == self.name));
        found.map(|found| found.kernel.clone()).ok_or_else(|| format!("{} has no {}", self.file, self.name))
    }

    /// What the compiler says after an edit, which has lines with `-` in the place of which come those with `+`: line
    /// for line, and the last one for all that are left.
    ///
    /// # Errors
    /// The kernel has no such line, or nothing is said.
    pub fn refusal(&self, edit: &str) -> Result<String, Failure> {
        let of = |sign: char| edit.lines().filter_map(move |line| line.strip_prefix(sign)).map(str::trim);
        let (old, mut new) = (of('-'), of('+').peekable());
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        let mut old = old.peekable();
        while let Some(removed) = old.next() {
            let is_it = |line: &String| line.split("//").next().unwrap_or_default().trim() == removed;
            let at = lines.iter().position(is_it).ok_or_else(|| format!("`{removed}` is no line of {}", self.name))?;
            let indentation = " ".repeat(lines[at].len() - lines[at].trim_start().len());
            let mut put: Vec<&str> = new.next().into_iter().collect();
            if old.peek().is_none() {
                put.extend(new.by_ref());
            }
            lines[at] = put.iter().map(|line| format!("{indentation}{line}")).collect::<Vec<_>>().join("\n");
        }
        let text = self.parsed(&lines.join("\n"))?.findings().text;
        if text.is_empty() {
            return Err(format!("{}: nothing is said of {} after:\n{edit}", self.file, self.name));
        }
        Ok(text.trim_end().to_owned() + "\n")
    }
}
