//! How long the macro takes for drawn kernels. One after the other, so that they do not slow each other down.

use std::fmt;
use std::time::{Duration, Instant};

use tilewright_compiler::compile_to;
use tilewright_compiler::source::TokenBuffer;
use tilewright_compiler::trial::Depth;

/// What nothing should take that is drawn, in an optimised compiler.
const AIM: Duration = Duration::from_millis(100);
/// The slowest cases that are shown.
const SHOWN: usize = 10;

/// Times of cases with their numbers, ascending.
pub struct Times(Vec<(Duration, u64)>);

impl Times {
    /// Of cases with their sources, accepted or refused.
    pub fn of(cases: impl Iterator<Item = (u64, String)>) -> Self {
        let time = |(index, source): (u64, String)| {
            let (tokens, _) = TokenBuffer::new(source.parse().ok()?);
            let start = Instant::now();
            drop(compile_to(&tokens, Depth::Bounded));
            Some((start.elapsed(), index))
        };
        let mut all: Vec<_> = cases.filter_map(time).collect();
        all.sort_unstable();
        Self(all)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |percent: usize| self.0.get((self.0.len() * percent / 100).min(self.0.len().saturating_sub(1)));
        let shown = |percent: usize| at(percent).map_or(0.0, |(time, _)| time.as_secs_f64() * 1e3);
        let above = self.0.iter().filter(|(time, _)| *time > AIM).count();
        writeln!(
            f,
            "{} cases: median {:.1} ms, 90 % within {:.1} ms, 99 % within {:.1} ms, {above} above {} ms",
            self.0.len(),
            shown(50),
            shown(90),
            shown(99),
            AIM.as_millis()
        )?;
        for (time, index) in self.0.iter().rev().take(SHOWN) {
            writeln!(f, "case {index}: {:.1} ms", time.as_secs_f64() * 1e3)?;
        }
        Ok(())
    }
}
