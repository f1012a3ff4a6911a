//! TW0801: a product that tensor cores do not compute.

use tilewright_kernel::ElementType;

use crate::diag::words::count;
use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::kernel_ir::Wgmma;
use crate::source::Span;

row! {
    /// Tensor cores compute a `dot` in products of fixed shapes. `mma (m, n, k) by wgmma` gives them two axes of
    /// elements and one of terms, with literal numbers of iterations: rows in multiples of 64, columns in multiples of
    /// 8 (integers: 8, 24, and multiples of 16), and terms in multiples of 32 bytes of the factors: 16 of `f16` and
    /// `bf16`, 8 of `tf32`, 32 of 8-bit types. The factors have one of these types, or one is `e4m3` and the other
    /// `e5m2`, or `i8` and `u8`; products of `f32` and `f64` have no tensor core here. By `mma_sync` rows come in
    /// multiples of 16 and columns of 8.
    ///
    /// `inflight(n)` leaves n groups of products of `wgmma` under way, at most 7. Another role copies the factors
    /// meanwhile, at a loop around the products, in rings of n + 1 slots or more (fewer, if several groups read one); a
    /// product that is a block behind in attention has one group.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
    ///     acc[m, n] = dot(|k| a[m, k] * b[n, k]);
    ///     c[m, n] = acc[m, n];
    ///     schedule c {
    ///         split m by 48 -> mt, mi;
    ///         split n by 64 -> nt, ni;
    ///         bind mt, nt: grid;
    ///         fragment (mi, ni) by wgmma;
    ///         unroll ni_p;
    ///     }
    ///     schedule acc in registers at c.nt {
    ///         split k by 64 -> ko, ki;
    ///         mma (m, n, ki) by wgmma;
    ///     }
    ///     stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
    ///     stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    /// }
    /// ```
    ///
    /// The message names the axis and what it may have.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
    ///     acc[m, n] = dot(|k| a[m, k] * b[n, k]);
    ///     c[m, n] = acc[m, n];
    ///     schedule c {
    ///         split m by 64 -> mt, mi;
    ///         split n by 64 -> nt, ni;
    ///         bind mt, nt: grid;
    ///         fragment (mi, ni) by wgmma;
    ///         unroll ni_p;
    ///     }
    ///     schedule acc in registers at c.nt {
    ///         split k by 64 -> ko, ki;
    ///         mma (m, n, ki) by wgmma;
    ///     }
    ///     stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
    ///     stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    /// }
    /// ```
    TW0801 "no-such-product" Error "a product that tensor cores do not compute"
}

/// TW0801: a product that tensor cores do not compute.
#[derive(Clone, Debug)]
pub struct NoSuchProduct {
    /// The stage.
    pub stage: String,
    /// The axis: what it is to the product, and its name.
    pub axis: Option<(&'static str, String)>,
    /// Why not.
    pub problem: ProductProblem,
    /// The op, or the axis.
    pub span: Span,
}

/// Why tensor cores do not compute a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProductProblem {
    /// The stage is no `dot`, or has other reductions.
    NoDot,
    /// No tensor core multiplies this type.
    Type(ElementType),
    /// So many terms may be added in a short accumulator.
    Promoted(u32),
    /// The stage has one already.
    Second,
    /// The axis is bound.
    Bound,
    /// The axis is not of terms, and should be; or is and should not be.
    Kind {
        /// Whether it should be.
        of_terms: bool,
    },
    /// The axis has so many iterations, if that is a number, and should have a multiple of so many.
    Extent {
        /// Iterations.
        extent: Option<i128>,
        /// Their multiple.
        step: i128,
    },
    /// Groups are to stay under way of products that are over at once.
    Synchronous,
    /// So many groups cannot be under way: at most so many.
    Inflight(u32, u32),
    /// So many groups are to stay under way where nothing is done meanwhile.
    Alone(u32),
    /// Groups are to stay under way, and iterations of this loop, around which the slots are, start more or fewer.
    Uneven(String),
    /// So many groups are to stay under way, and these rings have no other slot.
    Short(u32, Vec<Ring>),
    /// So many groups are to be a block behind.
    Blocks(u32),
    /// A group is to stay under way while the registers of this factor are given other values.
    Rewritten(String),
    /// A group is to be a block behind, and no other product is started in the loop before its factor is computed.
    NoScores,
    /// A group is to be a block behind, and no other role copies this factor in the loop, for it alone.
    NotHanded(String),
    /// What an op after it did to its axes.
    Moved,
    /// What else the stage does with the reduction.
    Apart,
}

/// A ring that has a slot for each group under way, and none beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// What is in it.
    pub of: String,
    /// Its slots.
    pub has: u32,
    /// How many it needs.
    pub least: u32,
    /// Where their number is written, if it is.
    pub slots: Option<Span>,
}

/// So many groups of products of a stage are to stay under way, and rings have no slot beside theirs.
fn short(found: impl Fn(String) -> Diagnostic, stage: &str, n: u32, rings: &[Ring]) -> Diagnostic {
    let least = rings.iter().map(|ring| ring.least).max().unwrap_or(1);
    let all: Vec<String> = rings.iter().map(|ring| format!("`{}` has {}", ring.of, count(ring.has as usize, "slot", "slots"))).collect();
    let groups = count(n as usize, "group", "groups");
    let found = found(format!("{groups} of products of `{stage}` cannot stay under way: {}", all.join(", ")))
        .note("a group reads its slot until it is over, and the role that copies fills another one meanwhile");
    let names: Vec<String> = rings.iter().map(|ring| format!("`{}`", ring.of)).collect();
    let help = format!("give {} `ring({least})` or more, or let fewer groups stay under way", names.join(" and "));
    let written: Option<Vec<_>> = rings.iter().map(|ring| Some((ring.slots?, least.to_string()))).collect();
    match written {
        Some(edits) => found.change(Change::Rewrite(edits), help),
        None => found.help(help),
    }
}

impl IntoDiagnostic for NoSuchProduct {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, problem, span } = self;
        let (role, name) = axis.unwrap_or(("", String::new()));
        let found = |what: String| Diagnostic::new(Code::TW0801, span, what);
        match problem {
            ProductProblem::NoDot => found(format!("`{stage}` is not a single `dot`"))
                .note("tensor cores add products in an order of their own: only `dot` admits that")
                .help("write `dot(|k| …)` for the sum, and what is done with it in another equation"),
            ProductProblem::Type(element) => found(format!("tensor cores do not multiply `{element}`"))
                .note("they multiply `f16`, `bf16`, `tf32`, `e4m3`, `e5m2`, `i8` and `u8`")
                .help("use one of these types for the factors, or leave `mma` out: threads compute any `dot`"),
            ProductProblem::Promoted(terms) => found(format!("`{stage}` asks for `promote {terms}`"))
                .note("tensor cores add all terms of a tile in accumulators of their own, with the errors of these")
                .help("leave `promote` out, whose error bound then counts all terms, or leave `mma` out"),
            ProductProblem::Second => found(format!("`{stage}` has an `mma` already"))
                .note("an op gives all terms of a stage to tensor cores")
                .help("remove this one"),
            ProductProblem::Bound => found(format!("`{name}` is bound: it is no axis of a product"))
                .note("an instruction has all iterations of its axes")
                .help(format!("split `{name}` first, and bind the outer part")),
            ProductProblem::Kind { of_terms: true } => found(format!("`{name}` is an axis of elements, and `k` is one of terms"))
                .note("`mma (m, n, k)`: rows, columns, terms")
                .help("name an axis of the reduction last"),
            ProductProblem::Kind { of_terms: false } => {
                found(format!("`{name}` is an axis of terms, and `{role}` is one of elements"))
                    .note("`mma (m, n, k)`: rows, columns, terms")
                    .help("name axes of the result first")
            }
            ProductProblem::Extent { extent, step } => {
                let has = extent.map_or("an unknown number of".to_owned(), |n| n.to_string());
                let what = match role {
                    "m" => "rows",
                    "n" => "columns",
                    _ => "terms",
                };
                let mut found =
                    found(format!("`{name}` has {has} iterations, and instructions take {what} in multiples of {step}"));
                if (what, step) == ("columns", 16) {
                    // Few columns of integers have a finer step.
                    let all = (1..=Wgmma::MOST_COLUMNS).filter(|n| Wgmma::has_columns(ElementType::I8, *n));
                    let few: Vec<String> = all.filter(|n| !n.is_multiple_of(16)).map(|n| n.to_string()).collect();
                    found = found.note(format!("of integers they take {}, too", few.join(" and ")));
                }
                match extent {
                    // The next one; of nothing, the first.
                    Some(n) => {
                        let next = n.max(1).saturating_add(step - 1) / step * step;
                        let help = format!("let it have {next}, by the `split` that makes it, or the size of its axis");
                        found.change(Change::Refactor(name, next), help)
                    }
                    None => found.help(format!("split it, and name the inner part: `split {name} by {}`", 64.max(step))),
                }
            }
            ProductProblem::Synchronous => found("products by `mma_sync` do not stay under way".to_owned())
                .note("a warp goes on when its product is over")
                .help("leave `inflight` out"),
            ProductProblem::Inflight(n, most) => found(format!("{n} groups of products cannot be under way"))
                .note(format!("a warpgroup waits until at most {most} groups are"))
                .help(format!("write `inflight({most})`, or less: one is enough to start the next one before it ends")),
            ProductProblem::Alone(n) => found(format!("no group of products of `{stage}` can stay under way"))
                .note("a slot is handed back when its group is over, in a later iteration: another role fills others meanwhile")
                .help(format!("let another role copy both factors, in rings of {} or more at a loop around the products, or leave `inflight` out", u64::from(n) + 1)),
            ProductProblem::Uneven(leaf) => found(format!("how many groups of products of `{stage}` read one slot is not the same in each iteration of `{leaf}`"))
                .note("a slot is handed back when so many groups were started after those that read it")
                .help(format!("let the loops inside `{leaf}` have all of their iterations, by a factor that divides; or leave `inflight` out")),
            ProductProblem::Short(n, rings) => short(found, &stage, n, &rings),
            ProductProblem::Blocks(n) => found(format!("{n} groups of products of `{stage}` cannot be under way"))
                .note("it is a block behind: before its factor is computed again, its group is awaited")
                .help("write `inflight(1)`, or leave it out"),
            ProductProblem::Rewritten(factor) => found(format!("`{factor}` is computed anew while a group of products reads it"))
                .note("tensor cores read the registers of a factor until the group is over")
                .help(format!("leave `inflight` out: each group is awaited before the next `{factor}`")),
            ProductProblem::NoScores => found(format!("`{stage}` has no product to be under way with"))
                .note("it is a block behind, started after the first group of products of `wgmma` in the loop")
                .help("compute the scores of a block by `wgmma` in one group, or leave `inflight` out"),
            ProductProblem::NotHanded(copy) => found(format!("`{copy}` is not copied by another role for `{stage}` alone"))
                .note("the product is a block behind: its slot is handed back later than those of the loop")
                .help("let another role copy it at the loop over blocks, for no other reader, or leave `inflight` out"),
            ProductProblem::Moved => found(format!("the axes of the `mma` of `{stage}` are no longer its innermost ones"))
                .note("an instruction has all iterations of its axes, and the loops around them are loops over instructions")
                .help("write `mma` after the ops that make and order the loops"),
            ProductProblem::Apart => found(format!("`{stage}` does more than to hold its `dot`"))
                .note("what tensor cores add to stays where they put it")
                .help("compute what is made of it in another equation"),
        }
    }
}
