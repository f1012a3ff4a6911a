//! TW0409: a layout that the accelerator does not write.

use crate::diag::{assignment, Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Ops on the axes of a tile, and the `layout` after them, say at which element of the buffer each slot of the tile
    /// lies. The accelerator writes a tile row by row. In rows of 32, 64 or 128 bytes it can exchange chunks of 16
    /// bytes: chunk `c` goes to the place of chunk `c xor r`, where `r` counts 128 bytes each, modulo the chunks of a
    /// row. What is written must be one of these; it is compared slot by slot.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma {
    ///         box i by 32 -> ic, ib;
    ///         box j by 32 -> jc, jb;
    ///         split ib by 8 -> eights, row;
    ///         split jb by 4 -> chunk, lane;
    ///         swizzle chunk, row by xor -> chunk2, row2;
    ///         layout [eights, row2, chunk2, lane];
    ///     }
    /// }
    /// ```
    ///
    /// Here `row` is exchanged by `chunk`, and not `chunk` by `row`. The message names the first slot that would lie
    /// elsewhere, and where the accelerator puts it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma {
    ///         box i by 32 -> ic, ib;
    ///         box j by 32 -> jc, jb;
    ///         split ib by 8 -> eights, row;
    ///         split jb by 4 -> chunk, lane;
    ///         swizzle row, chunk by xor -> row2, chunk2;
    ///         layout [eights, row2, chunk2, lane];
    ///     }
    /// }
    /// ```
    ///
    /// `layout [ib, jb] swizzle 128;` after the boxes is short for the same.
    TW0409 "unwritten-layout" Error "a layout that the accelerator does not write"
}

/// TW0409: ops on axes of a tile that make no layout that the accelerator writes.
#[derive(Clone, Debug)]
pub struct UnwrittenLayout {
    /// The copy.
    pub copy: String,
    /// The first slot that lies elsewhere, along the axes of the tile.
    pub slot: Assignment,
    /// Where it lies as written, in elements of the tile.
    pub written: i128,
    /// Where it lies with each span that there is for these rows, the nearest first; 16 stands for no swizzle.
    pub modes: Vec<(u32, i128)>,
    /// The nearest layout, with its swizzle by name.
    pub sugar: String,
    /// The same as ops.
    pub ops: Option<String>,
    /// The innermost axis, the bytes of a row and the boxes that have a swizzle, if a swizzle is written and rows of
    /// that length have none.
    pub other: Option<(String, i128, [i128; 3])>,
    /// What is written of the layout, if it is one piece.
    pub replace: Option<Span>,
    /// The layout.
    pub span: Span,
}

impl IntoDiagnostic for UnwrittenLayout {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, slot, written, modes, sugar, ops, other, replace, span } = self;
        let how = |(span, _): &(u32, i128)| match span {
            16 => "without a swizzle".to_owned(),
            _ => format!("with `swizzle {span}`"),
        };
        // Modes that put it at the same place are named together.
        let mut places: Vec<String> = Vec::new();
        for (at, mode) in modes.iter().enumerate() {
            if modes[..at].iter().all(|m| m.1 != mode.1) {
                let same: Vec<String> = modes[at..].iter().filter(|m| m.1 == mode.1).map(how).collect();
                places.push(format!("at {} {}", mode.1, same.join(" and ")));
            }
        }
        let places = places.join(", ");
        let title = format!("the accelerator does not write a tile of `{copy}` as this layout says");
        let mut diagnostic = Diagnostic::new(Code::TW0409, span, title)
            .note("it writes a tile row by row, and can exchange the 16-byte chunks of a row of 32, 64 or 128 bytes: chunk c goes to c xor r, where r counts 128 bytes each")
            .counterexample(format!("the slot {} is element {written} of the tile as written; the accelerator puts it {places}", assignment(&slot)));
        let text = format!("write `{sugar}` without ops on axes of the tile");
        diagnostic = match replace {
            Some(span) => diagnostic.change(Change::Replace(span, sugar), text),
            None => diagnostic.help(text),
        };
        if let Some((axis, bytes, [a, b, c])) = other {
            diagnostic = diagnostic
                .note(format!("rows of {bytes} bytes have no swizzle"))
                .help(format!("or box `{axis}` by {a}, {b} or {c}: rows of 32, 64 or 128 bytes have one"));
        }
        match ops {
            Some(ops) => diagnostic.help(format!("or, which is the same: `{ops};`")),
            None => diagnostic,
        }
    }
}
