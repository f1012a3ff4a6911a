//! TW0890: a product in many instructions where few would do.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, and its product takes many more instructions than its columns need. An
    /// instruction of `wgmma` has at most 256 columns, a multiple of 8, and all instructions of a tile have the same
    /// number. So 320 columns are two instructions of 160 each, while 328 are 41 of 8 each: 41 is prime. An instruction
    /// of few columns reads the factor with the rows as often as one of many, and tensor cores wait for it.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
    ///     acc[m, n] = dot(|k| a[m, k] * b[n, k]);
    ///     c[m, n] = acc[m, n];
    ///     schedule c {
    ///         split m by 64 -> mt, mi;
    ///         split n by 328 -> nt, ni;
    ///         bind mt, nt: grid;
    ///         fragment (mi, ni) by wgmma;
    ///         unroll ni_p;
    ///     }
    ///     schedule acc in registers at c.nt {
    ///         split k by 32 -> ko, ki;
    ///         mma (m, n, ki) by wgmma;
    ///     }
    ///     stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 64; }
    ///     stage sb[n, k] = b in shared at acc.ko ring(2) via tma { box n by 8 -> nc, nb; layout [nc, nb, k] swizzle 64; }
    /// }
    /// ```
    ///
    /// The message names the number of instructions, and the nearest numbers of columns that need the fewest.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
    ///     acc[m, n] = dot(|k| a[m, k] * b[n, k]);
    ///     c[m, n] = acc[m, n];
    ///     schedule c {
    ///         split m by 64 -> mt, mi;
    ///         split n by 320 -> nt, ni;
    ///         bind mt, nt: grid;
    ///         fragment (mi, ni) by wgmma;
    ///         unroll ni_p;
    ///     }
    ///     schedule acc in registers at c.nt {
    ///         split k by 32 -> ko, ki;
    ///         mma (m, n, ki) by wgmma;
    ///     }
    ///     stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 64; }
    ///     stage sb[n, k] = b in shared at acc.ko ring(2) via tma { box n by 160 -> nc, nb; layout [nc, nb, k] swizzle 64; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Keep it and write `#[allow(TW0890)]` before the kernel.
    TW0890 "many-products" Warning "a product in many instructions where few would do"
}

/// TW0890: a product in many instructions where few would do.
#[derive(Clone, Debug)]
pub struct ManyProducts {
    /// The stage.
    pub stage: String,
    /// Columns of a tile, and of an instruction.
    pub columns: (u32, u32),
    /// The most columns of an instruction.
    pub most: u32,
    /// The nearest numbers of columns with the fewest instructions, below and above, each with that number.
    pub nearest: Vec<(u32, u32)>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for ManyProducts {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, columns: (all, each), most, nearest, span } = self;
        let count = all / each.max(1);
        let title = format!("{all} columns of `{stage}` take {count} instructions of {each} columns each");
        let choices: Vec<String> = nearest.iter().map(|(all, count)| format!("{all} columns ({count} of {})", all / count)).collect();
        Diagnostic::new(Code::TW0890, span, title)
            .note(format!("all of a tile have the same number of columns, at most {most}: a multiple of 8 that divides {all}"))
            .help(format!(
                "let the tile have {}: by the `split` that makes it, or the size of its axis",
                choices.join(" or ")
            ))
            .help("or silence this with `#[allow(TW0890)]` before the kernel")
    }
}
