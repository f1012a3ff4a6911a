//! TW0490: accesses of shared memory that wait for each other.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, but lanes of a warp access different words of one bank of shared memory, one
    /// after the other. There are 32 banks of 4 bytes, and each delivers one word in a cycle. Counted are the accesses
    /// of every warp in the first iterations; the message gives the first one, and the slowest if that is slower.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Sums(x: f32[M, 64]) -> (y: f32[M]) {
    ///     y[i] = sum(|k| x[i, k]);
    ///     schedule y { split i by 32 -> io, t; split k by 4 -> ko, v; bind io: grid; bind t: thread; vectorize v; }
    ///     stage xs[i, k] = x in shared at y.io via tma {
    ///         box i by 32 -> ic, ib;
    ///         box k by 32 -> kc, kb;
    ///     }
    /// }
    /// ```
    ///
    /// Each thread reads a row, and all rows of 128 bytes start in the same bank. A swizzle moves them apart.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Sums(x: f32[M, 64]) -> (y: f32[M]) {
    ///     y[i] = sum(|k| x[i, k]);
    ///     schedule y { split i by 32 -> io, t; split k by 4 -> ko, v; bind io: grid; bind t: thread; vectorize v; }
    ///     stage xs[i, k] = x in shared at y.io via tma {
    ///         box i by 32 -> ic, ib;
    ///         box k by 32 -> kc, kb;
    ///         layout [kc, ib, kb] swizzle 128;
    ///     }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - A stage that threads compute or copy takes padding: `layout [i, j pad 1]` leaves one element free after each
    ///   row, which moves the next one to other banks. The message proposes the least padding with which no access
    ///   waits.
    /// - `layout [i, j] swizzle 128` needs no more memory, nor does an exclusive or of axes:
    ///   `swizzle i, j by xor -> i2, j2; layout [i2, j2];`, for squares whose side is a power of two.
    /// - Let neighbouring threads access neighbouring elements of a row.
    /// - Keep it and write `#[allow(TW0490)]` before the kernel.
    TW0490 "bank-conflicts" Warning "accesses of shared memory that wait for each other"
}

/// What makes accesses of a buffer take fewer cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing that was tried.
    None,
    /// A swizzle of a staged copy: its bytes, and the cycles of the access with it.
    Swizzle(u32, u64),
    /// A layout of a stage.
    Layout {
        /// The op.
        text: String,
        /// The one that it replaces.
        replace: Option<Span>,
        /// What is left, if some accesses still wait.
        left: Option<Left>,
    },
}

/// What accesses of a buffer take with another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Cycles of all accesses that were counted.
    pub taken: u64,
    /// As they are now.
    pub now: u64,
    /// Whether one still takes twice as long as it would without conflicts.
    pub is_slow: bool,
}

/// TW0490: accesses of a buffer in shared memory that wait for each other.
#[derive(Clone, Debug)]
pub struct BankConflicts {
    /// The stage or the copy with the buffer.
    pub buffer: String,
    /// The stage that accesses it.
    pub by: String,
    /// Cycles of a warp's access.
    pub cycles: u64,
    /// As many without conflicts.
    pub least: u64,
    /// Those of the slowest access, if others take longer.
    pub worst: Option<u64>,
    /// Lanes that wait for each other.
    pub lanes: Vec<u32>,
    /// Whether it writes.
    pub is_write: bool,
    /// What takes fewer cycles.
    pub remedy: Remedy,
    /// The read, or the left-hand side.
    pub access: Span,
    /// The stage or the copy.
    pub span: Span,
}

impl IntoDiagnostic for BankConflicts {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { buffer, by, cycles, least, worst, lanes, is_write, remedy, access, span } = self;
        let (what, done) = if is_write { ("to write", "written") } else { ("to read", "read") };
        let title = match by == buffer {
            true => format!("a warp takes {cycles} cycles {what} `{buffer}` where {least} would do"),
            false => format!("a warp of `{by}` takes {cycles} cycles {what} `{buffer}` where {least} would do"),
        };
        let mut shown: Vec<String> = lanes.iter().take(3).map(u32::to_string).collect();
        match lanes.get(3..) {
            Some([last]) => shown.push(last.to_string()),
            Some(rest) if !rest.is_empty() => shown.push(format!("{} others", rest.len())),
            _ => {}
        }
        let last = shown.pop().unwrap_or_default();
        let worst = worst.map_or_else(String::new, |n| format!("; in some iterations it is {n}"));
        let mut diagnostic = Diagnostic::new(Code::TW0490, span, title);
        // A stage that is a copy is written where it stands.
        if access != span {
            diagnostic = diagnostic.label(access, format!("{done} here"));
        }
        let diagnostic = diagnostic
            .note(format!(
                "lanes {} and {last} access different words of one bank, one after the other{worst}",
                shown.join(", ")
            ))
            .note("shared memory has 32 banks of 4 bytes; each delivers one word in a cycle");
        match remedy {
            Remedy::Swizzle(bytes, fewer) => {
                diagnostic.help(format!("with `swizzle {bytes}` in its `layout` it is {fewer}"))
            }
            Remedy::Layout { text, replace, left } => {
                let text_of = |text: &str| match left {
                    None => format!("write `{text}`: then no access of `{buffer}` waits so"),
                    Some(Left { taken, now, .. }) => {
                        format!("with `{text}` the accesses of `{buffer}` that were counted take {taken} cycles instead of {now}")
                    }
                };
                let change = match replace {
                    Some(span) => Change::Replace(span, text.clone()),
                    None => Change::AppendOp(text.clone()),
                };
                match left {
                    Some(left) if left.is_slow => diagnostic.help(text_of(&text)),
                    _ => diagnostic.change(change, text_of(&text)),
                }
            }
            Remedy::None => diagnostic.help(
                "let neighbouring threads access neighbouring elements of a row, or each thread 16 bytes of a row",
            ),
        }
    }
}
