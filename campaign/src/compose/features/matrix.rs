//! Which features have met.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::FEATURES;

/// How often each two features met.
#[derive(Clone, Debug)]
pub struct Matrix {
    counts: Vec<u64>,
}

impl Default for Matrix {
    fn default() -> Self {
        Self { counts: vec![0; FEATURES.len() * FEATURES.len()] }
    }
}

impl Matrix {
    /// A kernel with these features was accepted and run.
    pub fn count(&mut self, features: &BTreeSet<&'static str>) {
        let numbers: Vec<usize> = (0..FEATURES.len()).filter(|n| features.contains(FEATURES[*n])).collect();
        for a in &numbers {
            for b in &numbers {
                self.counts[a * FEATURES.len() + b] += 1;
            }
        }
    }

    /// How often two features met, by their numbers.
    pub fn at(&self, a: usize, b: usize) -> u64 {
        self.counts[a * FEATURES.len() + b]
    }

    /// Pairs that never met, each once; features that never came at all are alone.
    pub fn empty(&self) -> (Vec<&'static str>, Vec<(&'static str, &'static str)>) {
        let never: Vec<usize> = (0..FEATURES.len()).filter(|n| self.at(*n, *n) == 0).collect();
        let mut pairs = Vec::new();
        for (a, row) in FEATURES.iter().enumerate() {
            for (b, column) in FEATURES.iter().enumerate().take(a) {
                if !never.contains(&a) && !never.contains(&b) && self.at(a, b) == 0 {
                    pairs.push((*column, *row));
                }
            }
        }
        (never.into_iter().map(|n| FEATURES[n]).collect(), pairs)
    }

    /// The matrix as rows of text, and its empty cells.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (a, feature) in FEATURES.iter().enumerate() {
            let _ = write!(text, "{feature:22} {:6} |", self.at(a, a));
            for b in 0..a {
                // A digit for the size of the count: `.` for none, else how many digits it has.
                let digits = self.at(a, b).checked_ilog10().map_or('.', |n| char::from(b'1' + n.min(8) as u8));
                text.push(digits);
            }
            text.push('\n');
        }
        let (never, pairs) = self.empty();
        let _ = writeln!(text, "never: {}", never.join(", "));
        let _ = writeln!(text, "{} pairs never met:", pairs.len());
        for feature in FEATURES {
            let with: Vec<&str> = (pairs.iter())
                .filter_map(|(a, b)| {
                    if a == feature {
                        Some(*b)
                    } else if b == feature {
                        Some(*a)
                    } else {
                        None
                    }
                })
                .collect();
            if !with.is_empty() {
                let _ = writeln!(text, "  {feature}: {}", with.join(" "));
            }
        }
        text
    }
}
