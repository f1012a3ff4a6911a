//! The collector: findings go in as they are met and come out deduplicated, in source order, and not too many.

use super::{Code, Diagnostic, IntoDiagnostic, Level};
use crate::source::ast::{Kernel, Op};
use crate::source::{Span, TokenBuffer};

/// Findings shown at once, per level; the rest is counted.
const SHOWN: usize = 8;

/// Findings kept at all, so that a hostile input cannot make the list grow without bound.
const KEPT: usize = 1000;

/// A collector of findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    dropped_errors: usize,
    dropped_warnings: usize,
}

/// What is shown of the findings of a [`Diagnostics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Errors in source order, at most eight.
    pub errors: Vec<Diagnostic>,
    /// How many more errors there are.
    pub more_errors: usize,
    /// Warnings in source order, at most eight.
    pub warnings: Vec<Diagnostic>,
    /// How many more warnings there are.
    pub more_warnings: usize,
}

impl Diagnostics {
    /// An empty collector.
    #[must_use]
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds a finding.
    pub fn report(&mut self, payload: impl IntoDiagnostic) {
        self.add(payload.into_diagnostic());
    }

    /// Apart from [`Self::report`], which is compiled once a payload.
    fn add(&mut self, diagnostic: Diagnostic) {
        if self.found.len() < KEPT {
            self.found.push(diagnostic);
            return;
        }
        match diagnostic.level {
            Level::Error => self.dropped_errors += 1,
            Level::Warning => self.dropped_warnings += 1,
        }
    }

    /// Adds all findings of another collector.
    pub fn append(&mut self, other: Diagnostics) {
        for diagnostic in other.found {
            self.report(diagnostic);
        }
        self.dropped_errors += other.dropped_errors;
        self.dropped_warnings += other.dropped_warnings;
    }

    /// Keeps one error of each code where a stage is wrong and others are `like` it: the one in the ops that they
    /// repeat. Another fault of the same code in such a stage is told once that one is gone.
    pub fn said_once(&mut self, kernel: &Kernel) {
        let scheduled = || kernel.items.iter().filter_map(|item| Some((item.span(), item.scheduled()?)));
        // Each `like` clause, with the statements whose ops it repeats, through others that are `like` their own.
        let mut repeated: Vec<(Span, Vec<Span>)> = Vec::new();
        for op in scheduled().flat_map(|(_, (_, ops))| ops) {
            let (mut model, mut statements) = (op.model(), Vec::new());
            while let Some(name) = model {
                let of = scheduled().find(|(_, (stage, _))| stage.text == name.text);
                let Some((statement, (_, ops))) = of.filter(|(statement, _)| !statements.contains(statement)) else {
                    break;
                };
                statements.push(statement);
                model = ops.iter().find_map(Op::model);
            }
            if op.model().is_some() {
                repeated.push((op.span, statements));
            }
        }
        let at_clause = |found: &Diagnostic| repeated.iter().find(|(clause, _)| *clause == found.primary);
        let is_original = |found: &&Diagnostic| found.level == Level::Error && at_clause(found).is_none();
        let said: Vec<(Code, Span)> = self.found.iter().filter(is_original).map(|f| (f.code, f.primary)).collect();
        let is_said = |code: Code, of: &Span| said.iter().any(|(other, place)| *other == code && of.contains(*place));
        self.found.retain(|found| {
            let statements = at_clause(found).filter(|_| found.level == Level::Error);
            !statements.is_some_and(|(_, statements)| statements.iter().any(|of| is_said(found.code, of)))
        });
    }

    /// Puts another finding in the place of each.
    pub fn rewrite(&mut self, each: impl FnMut(Diagnostic) -> Diagnostic) {
        self.found = std::mem::take(&mut self.found).into_iter().map(each).collect();
    }

    /// Turns the proposed changes into edits of these kernels' tokens.
    pub fn resolve(&mut self, kernels: &[&Kernel], source: &TokenBuffer) {
        for found in &mut self.found {
            for help in &mut found.help {
                help.edit = help.change.as_ref().and_then(|change| change.on(found.primary, kernels, source));
            }
        }
    }

    /// Whether a finding stops the compilation.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.dropped_errors > 0 || self.found.iter().any(|found| found.level == Level::Error)
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All findings kept, in the order reported.
    #[must_use]
    pub fn found(&self) -> &[Diagnostic] {
        &self.found
    }

    /// Drops the warnings with this code: what `#[allow(TW0690)]` asks for. Errors stay. Whether there was one.
    pub fn silence(&mut self, code: Code) -> bool {
        let before = self.found.len();
        self.found.retain(|found| found.level == Level::Error || found.code != code);
        self.found.len() < before
    }

    /// What to show: sorted by place, duplicates (same code, same place) removed, capped.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.found.sort_by_key(|found| (found.primary, found.code));
        self.found.dedup_by_key(|found| (found.primary, found.code));
        let (mut errors, mut warnings): (Vec<_>, Vec<_>) =
            self.found.into_iter().partition(|found| found.level == Level::Error);
        let more_errors = self.dropped_errors + errors.len().saturating_sub(SHOWN);
        let more_warnings = self.dropped_warnings + warnings.len().saturating_sub(SHOWN);
        errors.truncate(SHOWN);
        warnings.truncate(SHOWN);
        Report { errors, more_errors, warnings, more_warnings }
    }
}
