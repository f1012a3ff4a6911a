//! TW0802: a factor of a product that tensor cores do not find.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Tensor cores read the factors of a product by `wgmma` in shared memory: each is an element of a tensor that a
    /// staged copy holds there, around the product, or of a stage of the block whose elements threads compute there one
    /// by one, without a reduction or `cp_async`. The one with the rows may be what a stage holds in registers; by
    /// `mma_sync` both must be. One factor has the axis of rows in its indices, the other one that of columns, and both
    /// have that of terms. A factor may be read past the ends of its tensor, with `or 0`: an accelerator's copy has
    /// zeros there.
    ///
    /// ## Wrong
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
    /// }
    /// ```
    ///
    /// The message names the factor.
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
    TW0802 "operand-place" Error "a factor of a product that tensor cores do not find"
}

/// TW0802: a factor of a product that tensor cores do not find.
#[derive(Clone, Debug)]
pub struct OperandPlace {
    /// The stage.
    pub stage: String,
    /// The factor: a tensor, if it is an element of one.
    pub tensor: Option<String>,
    /// What is wrong with it.
    pub problem: OperandProblem,
    /// The loop at which a copy could stand.
    pub at: Option<String>,
    /// The op.
    pub span: Span,
    /// The factor.
    pub factor: Span,
}

/// Why tensor cores do not find a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandProblem {
    /// It is no element of a tensor, or one with `or` and another value than 0.
    NotAnElement,
    /// It would be an element of a tensor without the sign before it.
    Negated {
        /// Whether the product has the other sign without it.
        is_odd: bool,
    },
    /// No copy of the tensor is in shared memory there.
    NoCopy,
    /// A copy of the tensor stands in loops that are not around the product.
    Elsewhere,
    /// No stage holds it in registers, and products of warps read nothing else.
    NotHeld {
        /// Whether an equation computes it.
        is_computed: bool,
    },
    /// Another stage keeps it in memory where products do not read it, or makes it otherwise than element by element.
    Stored,
    /// It has the columns, and registers hold it.
    Right,
    /// Neither, or both, of rows and columns are in its indices, or not the terms.
    Axes,
    /// Where it lies depends on more than the axes of the product and numbers of units.
    Unknown,
    /// Some elements of a tile may lie outside of what the copy holds.
    Outside,
    /// A tile begins in this row of the pattern of a swizzle, not in its first one.
    Inside(i128),
    /// It is read with `or 0`, and the copy may hold something else there.
    Beside,
}

impl IntoDiagnostic for OperandPlace {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, tensor, problem, at, span, factor } = self;
        let name = tensor.clone().unwrap_or_else(|| "a factor".to_owned());
        let what = match problem {
            OperandProblem::NotAnElement => "a factor of the product is no element of a tensor".to_owned(),
            OperandProblem::Negated { .. } => "a factor of the product is negated".to_owned(),
            OperandProblem::NoCopy => format!("`{name}` is not in shared memory, where tensor cores read"),
            OperandProblem::Elsewhere => {
                format!("the copy of `{name}` is not around the product of `{stage}`, which reads it in shared memory")
            }
            OperandProblem::NotHeld { .. } => format!("no registers hold `{name}`, where products by `mma_sync` read"),
            OperandProblem::Stored => format!("`{name}` is in memory where tensor cores do not find it"),
            OperandProblem::Right => format!("registers hold `{name}`, the factor with the columns"),
            OperandProblem::Axes => format!("`{name}` is no matrix of the product of `{stage}`"),
            OperandProblem::Unknown => format!("where tiles of `{name}` lie in shared memory is not known"),
            OperandProblem::Outside => format!("tiles of `{name}` reach beyond what its copy holds"),
            OperandProblem::Inside(row) => {
                format!("a tile of `{name}` begins in row {row} of the 8 that a swizzle exchanges chunks in")
            }
            OperandProblem::Beside => {
                format!("the copy of `{name}` may hold more than zeros where the product reads `or 0`")
            }
        };
        let found = Diagnostic::new(Code::TW0802, span, what).label(factor, "read here");
        match problem {
            OperandProblem::NotAnElement => found
                .note("the factors are read as they are in memory: nothing is computed of them, and nothing guards them")
                .help("write each factor as a read, without `or` or with `or 0`"),
            OperandProblem::Negated { is_odd } => found
                .note("the factors are read as they are in memory: nothing is computed of them")
                .help(match is_odd {
                    true => format!("leave the sign out, and negate the sum where it is read: `-{stage}[…]`"),
                    false => "leave both signs out: the product is the same".to_owned(),
                }),
            OperandProblem::NoCopy => {
                let (first, at) = tiles_of_terms(&stage, at);
                let copy = format!("stage s_{name}[…] = {name} in shared at {at} via tma {{ … }}");
                found.help(format!("{first}stage a copy of it: `{copy}`"))
            }
            OperandProblem::Elsewhere => {
                let (first, at) = tiles_of_terms(&stage, at);
                let copy = format!("stage s_{name}[…] = {name} in shared at {at} via tma {{ … }}");
                found
                    .note("a copy holds a tensor for the stages in whose loops it stands")
                    .help(format!("{first}stage another copy there: `{copy}`"))
            }
            OperandProblem::NotHeld { is_computed } => {
                let at = at.unwrap_or_else(|| format!("{stage}.ko"));
                let held = |name: &str| format!("`schedule {name} in registers at {at} {{ fragment (…) by mma_sync; }}`");
                let help = match is_computed {
                    true => format!("let lanes hold it: {}", held(&name)),
                    false => {
                        let own = format!("f{name}");
                        format!("read an equation of its own, `{own}[…] = {name}[…];`, that lanes hold: {}", held(&own))
                    }
                };
                found.note("a warp multiplies what its lanes hold").help(help)
            }
            OperandProblem::Stored => {
                let at = at.unwrap_or_else(|| format!("{stage}.ko"));
                let held = format!("schedule {name} in registers at {at} {{ fragment (m, k) by wgmma; }}");
                found
                    .note("in shared memory they read copies by the accelerator, and stages of the block whose elements")
                    .note("threads compute one by one: no reductions, no `cp_async`, no stages in their loops")
                    .help(format!("let threads keep it, if it is the factor with the rows: `{held}`"))
            }
            OperandProblem::Right => found
                .note("the factor with the rows may be in registers; tensor cores read the other one in shared memory")
                .help("let it have the rows: swap the first two axes of `mma`, in the stage and in the one that reads it"),
            OperandProblem::Axes => found
                .note("one factor has the axis of rows in its indices, the other one that of columns, and both that of terms")
                .help("name in `mma` the axes that the factors have"),
            OperandProblem::Unknown => found
                .note("a descriptor has the place of a tile, and steps that are the same for all tiles")
                .help("let the copy stand at a loop around the whole tile"),
            OperandProblem::Outside => {
                found.help("let tiles divide what the copy holds, or let it hold more: `split` by a multiple of the tile")
            }
            OperandProblem::Inside(_) => found
                .note("what tensor cores read of a tile that does not begin in the first one is not confirmed on hardware")
                .help(match at {
                    Some(at) => format!("let each copy hold one tile: `at {at}`"),
                    None => "let each copy hold one tile, at the loop around the product".to_owned(),
                }),
            OperandProblem::Beside => found
                .note("the accelerator fills what lies outside of the whole tensor; nothing tests elements one by one")
                .help("let an equation read it with `or 0`, and threads hold that or write it to shared memory"),
        }
    }
}

/// The loop over tiles of terms, and how it is made if there is none.
fn tiles_of_terms(stage: &str, at: Option<String>) -> (&'static str, String) {
    match at {
        Some(at) => ("", at),
        None => ("split the terms, `split k by 64 -> ko, ki`, and ", format!("{stage}.ko")),
    }
}
