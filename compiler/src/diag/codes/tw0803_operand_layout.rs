//! TW0803: a layout that no descriptor of tensor cores describes.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A descriptor tells tensor cores how a tile lies in shared memory. Of a tile with neighbours along the terms
    /// these are runs of 32, 64 or 128 bytes of terms, in rows that follow each other, with the swizzle of that length.
    /// Of 16-bit types rows or columns may be neighbours instead: runs of 16, 32 or 64 of them, row after row of terms,
    /// with the swizzle of that length. Without a swizzle, groups of 8 rows of 16 bytes are each in one piece.
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
    ///     stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k]; }
    /// }
    /// ```
    ///
    /// The message gives the layout that works.
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
    TW0803 "operand-layout" Error "a layout that no descriptor of tensor cores describes"
}

/// TW0803: a layout that no descriptor of tensor cores describes.
#[derive(Clone, Debug)]
pub struct OperandLayout {
    /// The copy.
    pub copy: String,
    /// What works instead, if something simple does.
    pub instead: Option<String>,
    /// The bytes of a run of terms, of rows or columns.
    pub run: i128,
    /// The layout, if one is written.
    pub written: Option<Span>,
    /// The op.
    pub op: Span,
    /// The op that makes runs shorter.
    pub part: &'static str,
    /// Whether runs have the swizzle of their length: then it is their order that is another.
    pub has_swizzle: bool,
    /// The bits of an element, if rows or columns are neighbours, and tensor cores read terms of such a type only as
    /// neighbours.
    pub crosswise: Option<i128>,
    /// If what follow each other in the product are every so-many-th row of a copy: how many that is.
    pub every: Option<i128>,
}

impl IntoDiagnostic for OperandLayout {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, instead, run, written, op, part, has_swizzle, crosswise, every } = self;
        let span = written.unwrap_or(op);
        let found = Diagnostic::new(Code::TW0803, span, format!("tensor cores cannot read `{copy}` in this layout"))
            .label(op, "read here");
        if let Some(bits) = crosswise {
            return found
                .note(format!("its neighbours are rows or columns; of {bits}-bit types tensor cores read neighbouring terms"))
                .help(format!("let terms be the last axis of the tensor of `{copy}`"))
                .help("or convert the factor to a 16-bit type, of which they read both");
        }
        if has_swizzle {
            let found = found
                .note(format!("its runs of {run} bytes have their swizzle, but rows of a tile do not follow each other, 8 by 8 alike"));
            let found = match every {
                Some(n) => found.help(format!("let the copy bring one row of every {n} together: `tile` with {n} of a box of the rows, its phases before its rows in `layout`")),
                None => found,
            };
            return found
                .help("let rows and columns of the product be neighbouring rows of the tensor, and `layout` keep their order")
                .help("or let threads write the factor to shared memory in that order, by an equation of its own");
        }
        let found = found.note(format!(
            "a run of {run} bytes needs a swizzle of as many; without one, groups of 8 rows of 16 bytes are in one piece"
        ));
        match instead {
            Some(instead) => {
                let help = format!("write `{instead};`");
                match written {
                    Some(written) => found.change(Change::Replace(written, instead), help),
                    None => found.help(format!("{help} for `{copy}`")),
                }
            }
            None => found.help(format!(
                "let the runs of a tile have 32, 64 or 128 bytes, by a `{part}`, with the swizzle of that length"
            )),
        }
    }
}
