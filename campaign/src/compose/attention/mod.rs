//! Attention: products that follow an extreme block by block of terms, and all that may stand around them.
//!
//! Exponentials round, so that no integers tell what is right: each launch on the emulator is compared with
//! `reference()`, and each entry point goes through the separate checker.
//!
//! | room | holds |
//! | --- | --- |
//! | `draw` | random decisions |
//! | `write` | the kernel that they say |
//! | `copies` | how its tensors come to shared memory |
//! | [`features`] | what it has, to be counted |
//! | `run` | sizes, data, launches |
//! | `shrink` | decisions, taken back |

mod copies;
mod draw;
pub mod features;
mod run;
mod shrink;
mod write;

use std::sync::Mutex;

pub use draw::attention;

use super::ast::Type;
use super::matrix::{Matrix, Pair};
use super::products::Engine;
use super::{CASE_TIME, Drawn, Summary, judged};
use crate::cases::each;

/// Which terms the extreme and the sums of a row have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// All.
    All,
    /// Those up to the row.
    Causal,
    /// Those before the row: the first one has none.
    Before,
    /// Those up to the row, if rows are the last ones of the terms.
    Aligned,
    /// All but the first ones.
    Late(i64),
    /// Those up to the row but for the first ones.
    LateCausal(i64),
    /// Those up to the row, so many at most beside its own.
    Window(i64),
    /// So many on both sides of the row.
    Around(i64),
}

/// Whose terms memory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Those of a head, or of all rows.
    Head,
    /// Those of the rows of a block.
    Tile,
    /// Those of a row.
    Row,
}

/// Where memory says that the terms of a range begin, and where they end: either or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Whose.
    pub of: Of,
    /// Where they begin.
    pub from: bool,
    /// Where they end.
    pub to: bool,
}

/// What the extreme is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// Products.
    Plain,
    /// Half of them, in an equation.
    Scaled,
    /// Twice of them, where they are read.
    Inline,
    /// With an element of a tensor.
    Biased,
    /// With a number for each term.
    OfTerms,
    /// None beside a band.
    Masked,
}

/// A sum beside the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Of exponentials.
    Plain,
    /// Of those that were rounded.
    Rounded,
    /// Of twice of them.
    Twice,
    /// With a weight for each term.
    Weighted,
    /// With the score as the weight.
    Scored,
}

/// Products of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// One.
    One,
    /// Each with tensors of its own.
    Own,
    /// So many rows have the same keys and values.
    Grouped(i64),
}

/// Keys, values or both lie in pages that a table lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Terms of a page.
    pub terms: i64,
    /// Which of keys and values.
    pub of: [bool; 2],
    /// Whether each product of a batch has a table of its own.
    pub own: bool,
    /// Whether memory says which table that is: no copy takes such places.
    pub of_tables: bool,
    /// The type of the table.
    pub ty: Type,
    /// What is added to what it says.
    pub plus: i64,
}

/// How a tensor comes to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Whether the accelerator brings it, and not threads.
    pub tma: bool,
    /// Bytes of its swizzle; none is 0.
    pub swizzle: i64,
    /// Slots of its ring, if there is one.
    pub ring: Option<i64>,
}

/// How warps are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Warps that fetch.
    pub load: i64,
    /// Whether these come first.
    pub first: bool,
    /// Whether registers are divided.
    pub registers: bool,
    /// Whether two units take tiles in turn.
    pub alternate: bool,
}

/// What the output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The product by the first sum.
    Quotient,
    /// Everything added up.
    All,
    /// The product.
    Alone,
    /// The product with the extreme.
    Extreme,
}

/// A kernel that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// What multiplies.
    pub engine: Engine,
    /// The type of the factors. Of 8 bits, columns of the scores are the even terms of a block, and then the odd ones.
    pub ty: Type,
    /// The multiple of the exponentials that is rounded to it, if it is one.
    pub multiple: Option<&'static str>,
    /// Whether the extreme is the smallest score.
    pub min: bool,
    /// Terms of a score, and columns of the output.
    pub sizes: [i64; 2],
    /// Terms of a block.
    pub block: i64,
    /// Whether a fact says that blocks divide the terms.
    pub divides: bool,
    /// How many terms there are, if that is written.
    pub literal: Option<i64>,
    /// The number that blocks are split by once more, if they are.
    pub again: Option<i64>,
    /// Instructions along the rows of a unit, and units.
    pub rows: i64,
    /// Warpgroups, or warps.
    pub units: i64,
    /// Which terms a row has.
    pub range: Range,
    /// What memory says of them.
    pub memory: Option<Memory>,
    /// Whether rows are as many as terms.
    pub square: bool,
    /// What the extreme is of.
    pub scores: Scores,
    /// Whether scores with an equation of their own, exponentials, and those that are rounded are held.
    pub held: [bool; 3],
    /// The exponential.
    pub function: &'static str,
    /// What its argument is multiplied by.
    pub factor: Option<&'static str>,
    /// Whether it is multiplied in one step with the difference.
    pub fused: bool,
    /// Whether the product is a block behind, where it can be.
    pub behind: bool,
    /// Sums beside the product, in the order of the op.
    pub sums: Vec<Sum>,
    /// How many of them come before the product there.
    pub before: usize,
    /// Products of a batch.
    pub heads: Heads,
    /// Whether keys and values are one tensor, with one copy.
    pub same: bool,
    /// The pages, if there are some.
    pub pages: Option<Pages>,
    /// Copies of queries, keys and values.
    pub copies: [Copied; 3],
    /// Roles, if there are some.
    pub roles: Option<Roles>,
    /// Whether blocks take tiles in turn.
    pub persistent: bool,
    /// Whether blocks take the tiles from the last one on, two heads at a time where there are heads.
    pub descending: bool,
    /// What the output is.
    pub reader: Reader,
    /// Whether it has the type of the factors.
    pub narrow: bool,
    /// Whether rows have an output of their own.
    pub statistics: bool,
}

impl Attention {
    /// Whether factors have 8 bits.
    pub fn is_eight(&self) -> bool {
        matches!(self.ty, Type::E4m3 | Type::E5m2)
    }

    /// Rows of a unit, and of a block.
    pub fn tile(&self) -> [i64; 2] {
        let rows = self.engine.rows() * self.rows;
        [rows, rows * self.units]
    }

    /// Threads that multiply.
    pub fn threads(&self) -> i64 {
        32 * self.engine.warps() * self.units
    }

    /// Whether memory says what the rows of a block have.
    pub fn is_of_tiles(&self) -> bool {
        self.memory.is_some_and(|memory| memory.of == Of::Tile)
    }

    /// Whether the range of terms depends on the row.
    pub fn is_triangle(&self) -> bool {
        !matches!(self.range, Range::All | Range::Late(_))
    }

    /// The pages of keys (1) or values (2), if they lie in such; a tensor that is both does if keys do.
    pub fn pages_of(&self, n: usize) -> Option<Pages> {
        self.pages.filter(|pages| n > 0 && pages.of[if self.same { 0 } else { n - 1 }])
    }

    /// The number of terms that a kernel needs at least.
    pub fn least(&self) -> i64 {
        match self.range {
            Range::Late(n) | Range::LateCausal(n) => n,
            _ => 0,
        }
    }
}

/// Runs cases `first..first + count` of a seed, all of them for two features if some are wanted.
pub fn campaign(seed: u64, first: u64, count: u64, wanted: Option<Pair>) -> Summary {
    let summary = Mutex::new(Summary { matrix: Matrix::of_attention(), ..Summary::default() });
    let shown = |index| attention(seed, index, wanted).0.to_string();
    let one = |index| {
        let (attention, data) = attention(seed, index, wanted);
        let option = wanted.map_or(String::new(), |(a, b)| format!(" --want {a},{b}"));
        judged(
            &summary,
            &Drawn {
                place: format!("seed {seed}, case {index}, --attention{option}"),
                features: &|| features::of(&attention),
                check: &|attention| run::check(attention, data),
                shrink: &|fails| shrink::shrink(&attention, fails),
                case: attention.clone(),
            },
        );
    };
    each(seed, (first, count), CASE_TIME, &shown, &one);
    summary.into_inner().unwrap_or_default()
}

/// The kernel of a case with its messages, if it is refused by a code first.
pub fn refused(seed: u64, index: u64, wanted: Option<Pair>, code: &str) -> Option<String> {
    super::refusal(&format!("seed {seed}, case {index}"), &attention(seed, index, wanted).0.to_string(), code)
}
