//! What the findings of all launches, under all seeds, come to: those that are alike are one, and so are those of
//! several instructions that one line of the source became; then what the rules make of each.

use tilewright_emulator::{Finding, HeapBlock, Kind, Place};

use super::rules::{Rules, Severity, Verdict};

/// A finding, told once.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The first of those that are alike, with the number of all.
    pub finding: Finding,
    /// Lines of the PTX text at which it was found.
    pub lines: Vec<u32>,
    /// Launches that it was found in, as pairs of a seed and a number.
    pub launches: Vec<(u64, usize)>,
    /// What the rules make of it.
    pub verdict: Verdict,
}

impl Judged {
    /// Whether the command fails by it.
    pub fn fails(&self) -> bool {
        self.verdict == Verdict::Counts(Severity::Error)
    }

    /// The seeds that it was found under.
    pub fn seeds(&self) -> Vec<u64> {
        let mut seeds: Vec<u64> = self.launches.iter().map(|(seed, _)| *seed).collect();
        seeds.dedup();
        seeds
    }
}

/// The findings so far.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    all: Vec<Judged>,
}

impl Judge {
    /// Adds what a launch has found.
    pub fn add(&mut self, findings: &[Finding], launch: (u64, usize), rules: &Rules) {
        for finding in findings {
            let place = finding.place.line;
            let verdict = rules.judge(finding);
            let alike = |known: &&mut Judged| known.verdict == verdict && is_same(&known.finding, finding);
            let Some(known) = self.all.iter_mut().find(alike) else {
                let (finding, lines, launches) = (finding.clone(), vec![place], vec![launch]);
                self.all.push(Judged { finding, lines, launches, verdict });
                continue;
            };
            known.finding.count += finding.count;
            known.finding.fatal |= finding.fatal;
            if !known.lines.contains(&place) {
                known.lines.push(place);
            }
            if !known.launches.contains(&launch) {
                known.launches.push(launch);
            }
        }
    }

    /// All findings, in the order in which they were met.
    pub fn finish(self) -> Vec<Judged> {
        self.all
    }
}

/// Whether two findings are of one kind, at one line of the source and the same calls around it; without one, at one
/// instruction.
fn is_same(a: &Finding, b: &Finding) -> bool {
    let place = |a: &Place, b: &Place| {
        if a.source.is_none() || b.source.is_none() {
            return a == b;
        }
        let lines = |place: &Place| place.stack().map(|(file, line, _)| (file.clone(), *line)).collect::<Vec<_>>();
        lines(a) == lines(b)
    };
    let other = match (&a.other, &b.other) {
        (None, None) => true,
        (Some(a), Some(b)) => a.access == b.access && place(&a.place, &b.place),
        _ => false,
    };
    a.kind == b.kind && a.kernel == b.kernel && place(&a.place, &b.place) && other
}

/// The position that is told first where there is one place for it: the innermost in the file that the outermost one is
/// in, so that what happens in a library is told where the library was called.
pub fn own_place(place: &Place) -> Option<&(String, u32, u32)> {
    let outermost = place.stack().last()?;
    place.stack().find(|position| position.0 == outermost.0)
}

/// Blocks of the device's heap that no kernel has freed, as findings: one for each place that allocates.
pub fn leaks(blocks: &[HeapBlock]) -> Vec<Finding> {
    let mut findings: Vec<(Finding, u64)> = Vec::new();
    for block in blocks {
        if let Some((finding, bytes)) =
            findings.iter_mut().find(|(f, _)| f.place == block.place && f.kernel == block.kernel)
        {
            finding.count += 1;
            *bytes += block.bytes;
            continue;
        }
        let finding = Finding {
            kind: Kind::Leak,
            kernel: block.kernel.clone(),
            place: block.place.clone(),
            thread: block.thread,
            location: None,
            other: None,
            detail: String::new(),
            fatal: false,
            count: 1,
        };
        findings.push((finding, block.bytes));
    }
    let told = |(finding, bytes): (Finding, u64)| Finding { detail: format!("{bytes} bytes in all"), ..finding };
    findings.into_iter().map(told).collect()
}
