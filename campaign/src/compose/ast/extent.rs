//! Lengths of axes, strides and facts, over the sizes of a kernel.

use std::fmt;

use super::{Dims, PITCHES, SIZES};

/// An extent: multiples of the sizes, and a constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How often each of [`SIZES`].
    pub times: [i64; 3],
    /// What is added.
    pub plus: i64,
}

impl Extent {
    /// A constant.
    pub fn literal(plus: i64) -> Self {
        Self { plus, ..Self::default() }
    }

    /// One of [`SIZES`].
    pub fn size(which: usize) -> Self {
        let mut times = [0; 3];
        times[which] = 1;
        Self { times, plus: 0 }
    }

    /// The smallest form that is known to be no less than either.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let times = std::array::from_fn(|n| self.times[n].max(other.times[n]));
        Self { times, plus: self.plus.max(other.plus) }
    }

    /// What an index `factor · axis + plus` needs, where the axis has this extent.
    #[must_use]
    pub fn reach(self, factor: i64, plus: i64) -> Self {
        Self { times: self.times.map(|t| t * factor), plus: self.plus * factor + plus }
    }

    /// The size that this is, if it is one.
    pub fn as_size(self) -> Option<usize> {
        (0..3).find(|n| self == Self::size(*n))
    }

    /// Its value.
    pub fn at(self, dims: &Dims) -> i64 {
        self.plus + (0..3).map(|n| self.times[n] * dims.get(SIZES[n]).copied().unwrap_or(0)).sum::<i64>()
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        for (name, times) in SIZES.iter().zip(self.times) {
            match times {
                0 => {}
                1 => parts.push((*name).to_owned()),
                _ => parts.push(format!("{times} * {name}")),
            }
        }
        if parts.is_empty() {
            return self.plus.fmt(f);
        }
        f.write_str(&parts.join(" + "))?;
        match self.plus {
            0 => Ok(()),
            1.. => write!(f, " + {}", self.plus),
            _ => write!(f, " - {}", -self.plus),
        }
    }
}

/// A stride of a tensor, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// A size, or a number.
    Extent(Extent),
    /// One of [`PITCHES`].
    Pitch(usize),
}

impl fmt::Display for Stride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extent(extent) => extent.fmt(f),
            Self::Pitch(n) => f.write_str(PITCHES[*n]),
        }
    }
}

/// A stride that is told at launch: it holds so much that elements do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pitch {
    /// The pitch that it counts in, if not elements.
    pub of: Option<usize>,
    /// How many of these it must hold.
    pub least: Extent,
    /// What divides it; 1 is nothing.
    pub divides: i64,
    /// Whether a fact says how much it holds.
    pub told: bool,
}

/// How two sizes are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Related {
    /// One is the other, times something plus something.
    Equal,
    /// One is at least that.
    AtLeast,
    /// One plus a multiple of the other is at most the constant.
    Together,
}

/// What a fact says of two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// How.
    pub how: Related,
    /// One size.
    pub of: usize,
    /// A multiple of the other one, and a constant.
    pub to: Extent,
}

impl Relation {
    /// Changes sizes so that it holds, in whole steps of what divides them.
    pub fn settle(self, sizes: &mut [i64; 3], divides: [i64; 3]) {
        let Self { how, of, to } = self;
        let others = |sizes: &[i64; 3]| (0..3).map(|n| to.times[n] * sizes[n]).sum::<i64>();
        match how {
            Related::Equal => sizes[of] = others(sizes) + to.plus,
            Related::AtLeast => sizes[of] = sizes[of].max(others(sizes) + to.plus),
            Related::Together => {
                for n in (0..3).filter(|n| to.times[*n] > 0) {
                    sizes[n] = sizes[n].min(to.plus / to.times[n]) / divides[n] * divides[n];
                }
                sizes[of] = sizes[of].min(to.plus - others(sizes));
            }
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, to) = (SIZES[self.of], self.to);
        match self.how {
            Related::Equal => write!(f, "{of} == {to}"),
            Related::AtLeast => write!(f, "{of} >= {to}"),
            Related::Together => write!(f, "{of} + {} <= {}", Extent { plus: 0, ..to }, to.plus),
        }
    }
}
