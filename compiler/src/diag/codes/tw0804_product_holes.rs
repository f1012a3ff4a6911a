//! TW0804: terms that a product of tensor cores cannot leave out.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An instruction computes all terms of its tile. What lies past the end of a tensor must change nothing: both
    /// factors are zero there, as copies by the accelerator leave it where they end with the tensor. Where a hole may
    /// hold an element, or a term depends on a condition, no predicate can keep it out.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0, K >= 16 {
    ///     acc[m, n] = dot(|k in 0..K - 8| a[m, k] * b[n, k]);
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
    ///
    /// The message names the condition that would be needed.
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
    TW0804 "product-holes" Error "terms that a product of tensor cores cannot leave out"
}

/// TW0804: terms that a product of tensor cores cannot leave out.
#[derive(Clone, Debug)]
pub struct ProductHoles {
    /// The stage.
    pub stage: String,
    /// The condition that would keep them out; none if the range of the reduction says which they are.
    pub condition: Option<String>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for ProductHoles {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, condition, span } = self;
        let what = match condition {
            Some(condition) => format!("`{stage}` adds terms for which `{condition}` does not hold, and they may not be zero"),
            None => format!("not all elements of `{stage}` are sums of the same terms"),
        };
        Diagnostic::new(Code::TW0804, span, what)
            .note("an instruction computes all terms of its tile: a hole counts unless both of its factors are zero")
            .help("let the terms be all that the copies hold of the tensors, or leave `mma` out")
    }
}
