//! TW0805: a product that not all warpgroups take part in.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::domain::{Unit, WARP};
use crate::source::Span;

row! {
    /// A product is started by whole warpgroups: four warps, the first one with a number that four divides. Every
    /// warpgroup of the block, or of the role, takes part in it. `mma` binds the warps and lanes of a warpgroup itself;
    /// what gives warpgroups different tiles is `bind … : warpgroup` of an axis outside.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
    ///     acc[m, n] = dot(|k| a[m, k] * b[n, k]);
    ///     c[m, n] = acc[m, n];
    ///     launch roles { load: warp, math: 4 warp };
    ///     schedule c by math {
    ///         split m by 64 -> mt, mi;
    ///         split n by 64 -> nt, ni;
    ///         bind mt, nt: grid;
    ///         fragment (mi, ni) by wgmma;
    ///         unroll ni_p;
    ///     }
    ///     schedule acc in registers at c.nt by math {
    ///         split k by 64 -> ko, ki;
    ///         mma (m, n, ki) by wgmma;
    ///     }
    ///     stage sa[m, k] = a in shared at acc.ko ring(2) via tma by load { layout [m, k] swizzle 128; }
    ///     stage sb[n, k] = b in shared at acc.ko ring(2) via tma by load { layout [n, k] swizzle 128; }
    /// }
    /// ```
    ///
    /// The message names the role and its first warp.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
    ///     acc[m, n] = dot(|k| a[m, k] * b[n, k]);
    ///     c[m, n] = acc[m, n];
    ///     launch roles { math: 4 warp, load: warp };
    ///     schedule c by math {
    ///         split m by 64 -> mt, mi;
    ///         split n by 64 -> nt, ni;
    ///         bind mt, nt: grid;
    ///         fragment (mi, ni) by wgmma;
    ///         unroll ni_p;
    ///     }
    ///     schedule acc in registers at c.nt by math {
    ///         split k by 64 -> ko, ki;
    ///         mma (m, n, ki) by wgmma;
    ///     }
    ///     stage sa[m, k] = a in shared at acc.ko ring(2) via tma by load { layout [m, k] swizzle 128; }
    ///     stage sb[n, k] = b in shared at acc.ko ring(2) via tma by load { layout [n, k] swizzle 128; }
    /// }
    /// ```
    TW0805 "product-threads" Error "a product that not all warpgroups take part in"
}

/// TW0805: a product that not all warpgroups take part in.
#[derive(Clone, Debug)]
pub struct ProductThreads {
    /// The stage.
    pub stage: String,
    /// Threads of the block, or of the role.
    pub threads: u32,
    /// The role.
    pub role: Option<String>,
    /// Threads that have tiles.
    pub busy: i128,
    /// The first warp of the role.
    pub first: u32,
    /// The unit that has a tile.
    pub unit: Unit,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for ProductThreads {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, threads, role, busy, first, unit, span } = self;
        let of = role.as_ref().map_or_else(|| "the block".to_owned(), |role| format!("role `{role}`"));
        let size = unit.threads().unwrap_or(1);
        let unit = unit.name();
        let note = format!("a product is started by whole {unit}s of {size} threads, each of which has a tile of its own");
        if size > WARP && !first.is_multiple_of(4) {
            let what = format!("{of} begins at warp {first}, inside a warpgroup, and computes the product of `{stage}`");
            return Diagnostic::new(Code::TW0805, span, what)
                .note(note)
                .help("name roles that have products before others, or let roles before them have whole warpgroups");
        }
        let what = format!("{threads} threads of {of} come to the product of `{stage}`, and {busy} have a part in it");
        let found = Diagnostic::new(Code::TW0805, span, what).note(note);
        match role {
            None => found.change(Change::Threads(busy), format!("let the block have {busy} threads")),
            Some(_) => found.help(format!("bind an axis of {} iterations to {unit}s around the `mma`", i128::from(threads) / size)),
        }
    }
}
