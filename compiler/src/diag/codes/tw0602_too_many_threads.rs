//! TW0602: more bound iterations than units.

use crate::collectives::ThreadSet;
use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::{amount, whole};
use crate::source::Span;

row! {
    /// Each bound iteration has a thread (or lane, warp or warpgroup) of its own, so the product of the extents bound
    /// to a unit is at most the number of units: those of the block, the 32 lanes of a warp, or the 4 warps or 128
    /// threads of a warpgroup, if one is bound outside.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(128);
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message shows both numbers, and the product.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(128);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0602 "too-many-threads" Error "more bound iterations than units"
}

fn product(axes: &[(String, i128)]) -> String {
    axes.iter().map(|(name, n)| format!("`{name}` {n}")).collect::<Vec<_>>().join(" × ")
}

/// Who is around a unit that has no place there.
#[derive(Clone, Debug)]
pub struct Around {
    /// The threads that run what is around it, the first time.
    pub threads: ThreadSet,
    /// The loop that left only these: its axis, what that is bound to, and the `bind`.
    pub narrowed_by: Option<(String, String, Span)>,
}

impl Around {
    /// Says who would run it, and points at the loop.
    pub(super) fn say(around: Option<Self>, diagnostic: Diagnostic) -> Diagnostic {
        let Some(Self { threads, narrowed_by }) = around else { return diagnostic };
        let who = match threads.count() {
            1 => format!("thread {threads} alone runs"),
            count => format!("{count} threads run"),
        };
        let set = if threads.count() == 1 { String::new() } else { format!(": {threads}") };
        let diagnostic = diagnostic.note(format!("{who} the first iteration around it{set}"));
        match narrowed_by {
            Some((axis, unit, span)) => diagnostic.label(span, format!("`{axis}` leaves these: one `{unit}` of all")),
            None => diagnostic,
        }
    }
}

/// TW0602: more iterations than units.
#[derive(Clone, Debug)]
pub struct TooManyThreads {
    /// What iterations are given to.
    pub unit: String,
    /// Its threads, if they are as many in every block.
    pub size: Option<i128>,
    /// Whose parts these are; those of the block if none.
    pub of: Option<String>,
    /// Who is around, if loops are.
    pub around: Option<Around>,
    /// The bound axes with their extents.
    pub axes: Assignment,
    /// Product of the extents, or the end of a range that has room for them.
    pub count: i128,
    /// Of such a range, how many units it has, and of what, as it is written.
    pub range: Option<(i128, String)>,
    /// Units there are.
    pub room: i128,
    /// Threads of the block.
    pub threads: i128,
    /// Most threads of any block.
    pub limit: i128,
    /// The last `bind`.
    pub span: Span,
    /// The `launch` item.
    pub launch: Option<Span>,
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
}

impl IntoDiagnostic for TooManyThreads {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { unit, size, of, around, axes, count, range, room, threads, limit, span, launch, role } = self;
        let whole = whole(role.as_ref());
        let is_word = matches!(unit.as_str(), "lane" | "thread" | "warp" | "warpgroup");
        let (needed, bound) = match is_word {
            _ if range.is_some() => (format!("`{unit}` ends at {}", amount(count)), format!("`{unit}`")),
            true => (format!("{} {unit}s are needed", amount(count)), format!("{unit}s")),
            false => (format!("{} of `{unit}` are needed", amount(count)), format!("`{unit}`")),
        };
        let title = match (&of, launch) {
            (Some(of), _) => format!("{needed}, and a {of} has {room}"),
            (None, Some(_)) => format!("{needed}, and {whole} has {room}"),
            (None, None) => format!("{needed}, and a block has at most {room}"),
        };
        let mut diagnostic =
            Diagnostic::new(Code::TW0602, span, title).note(format!("bound to {bound}: {}", product(&axes)));
        diagnostic = Around::say(around, diagnostic);
        if let Some(launch) = launch {
            diagnostic = diagnostic.label(launch, format!("{whole} has {threads} threads"));
        }
        if let Some((length, of)) = range.filter(|_| room > 0) {
            return diagnostic.help(match room - length {
                first @ 0.. => format!("the last {length} that there are: `{of} {first}..{room}`"),
                _ => format!("split the axis by {room} at most and bind the inner part to `{of}`"),
            });
        }
        match size.and_then(|size| size.checked_mul(count)) {
            _ if room == 0 => diagnostic.help(format!("bind the axis to smaller units than {bound}")),
            _ if of.is_some() || !is_word => {
                diagnostic.help(format!("split the axis by {room} and bind the inner part"))
            }
            _ if role.is_some() => {
                diagnostic.help(format!("give {whole} more warps, or split the axis by at most {room}"))
            }
            Some(threads) if threads <= limit => {
                let text = format!("write `launch threads({threads});`, or split by at most {room}");
                diagnostic.change(Change::Threads(threads), text)
            }
            _ => diagnostic.help(format!("split the axis so that at most {room} iterations are bound")),
        }
    }
}
