//! Which features have met in kernels that were accepted and run, and which have not although they could.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::apart::apart;
use super::features::FEATURES;
use super::{attention, products};

/// Two features that a case is drawn for; one alone is there twice.
pub type Pair = (&'static str, &'static str);

/// How often each two features met.
#[derive(Clone, Debug)]
pub struct Matrix {
    features: &'static [&'static str],
    /// Why two of them never meet, if they do not.
    apart: fn(&str, &str) -> Option<&'static str>,
    counts: Vec<u64>,
}

impl Default for Matrix {
    fn default() -> Self {
        Self { features: FEATURES, apart, counts: vec![0; FEATURES.len() * FEATURES.len()] }
    }
}

impl Matrix {
    /// That of products by tensor cores.
    pub fn of_products() -> Self {
        let features = products::features::FEATURES;
        Self { features, apart: products::features::apart, counts: vec![0; features.len() * features.len()] }
    }

    /// That of attention.
    pub fn of_attention() -> Self {
        let features = attention::features::FEATURES;
        Self { features, apart: attention::features::apart, counts: vec![0; features.len() * features.len()] }
    }

    /// A kernel with these features was accepted and run.
    pub fn count(&mut self, features: &BTreeSet<&'static str>) {
        let numbers: Vec<usize> = (0..self.features.len()).filter(|n| features.contains(self.features[*n])).collect();
        for a in &numbers {
            for b in &numbers {
                self.counts[a * self.features.len() + b] += 1;
            }
        }
    }

    /// How often two features met, by their numbers.
    pub fn at(&self, a: usize, b: usize) -> u64 {
        self.counts[a * self.features.len() + b]
    }

    /// Pairs that never met although the language does not exclude it; a feature that never came is a pair with itself.
    pub fn missing(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (a, row) in self.features.iter().enumerate() {
            for (b, column) in self.features.iter().enumerate().take(a + 1) {
                if self.at(a, b) == 0 && (self.apart)(column, row).is_none() {
                    pairs.push((*column, *row));
                }
            }
        }
        pairs
    }

    /// Pairs that met although they are listed as those that cannot.
    pub fn surprises(&self) -> Vec<Pair> {
        let all =
            self.features.iter().enumerate().flat_map(|(a, row)| (0..a).map(move |b| (a, b, self.features[b], *row)));
        all.filter(|(a, b, column, row)| self.at(*a, *b) > 0 && (self.apart)(column, row).is_some())
            .map(|(_, _, column, row)| (column, row))
            .collect()
    }

    /// The matrix as rows of text, and its empty cells.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (a, feature) in self.features.iter().enumerate() {
            let _ = write!(text, "{feature:22} {:6} |", self.at(a, a));
            for (b, other) in self.features.iter().enumerate().take(a) {
                // A digit for the size of the count: how many digits it has; else whether it can be none.
                let digits = self.at(a, b).checked_ilog10().map(|n| char::from(b'1' + n.min(8) as u8));
                text.push(digits.unwrap_or(if (self.apart)(other, feature).is_some() { ' ' } else { '.' }));
            }
            text.push('\n');
        }
        let missing = self.missing();
        let never: Vec<&str> = missing.iter().filter(|p| p.0 == p.1).map(|p| p.0).collect();
        let pairs: Vec<&Pair> = missing.iter().filter(|p| !never.contains(&p.0) && !never.contains(&p.1)).collect();
        let _ = writeln!(text, "never: {}", never.join(", "));
        for (a, b) in self.surprises() {
            let _ = writeln!(text, "met, and listed as apart: {a} {b}");
        }
        let _ = writeln!(text, "{} pairs never met although they could:", pairs.len());
        for feature in self.features {
            let other = |(a, b): &&Pair| match feature {
                _ if a == feature => Some(*b),
                _ if b == feature => Some(*a),
                _ => None,
            };
            let with: Vec<&str> = pairs.iter().copied().filter_map(|p| other(&p)).collect();
            if !with.is_empty() {
                let _ = writeln!(text, "  {feature}: {}", with.join(" "));
            }
        }
        text
    }
}
