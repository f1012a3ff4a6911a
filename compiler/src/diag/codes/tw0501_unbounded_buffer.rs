//! TW0501: a buffer whose size is not known at compile time.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::source::ast::Place;

row! {
    /// Shared memory is reserved when a block starts. What an instance of a staged copy holds is known at compile time:
    /// the loops inside its attach point have literal extents, or bounds that follow from facts. Memory `in global` is
    /// provided by the launch: there a size may depend on the sizes of tensors, but not on loops around the instance.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Column(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
    ///     y[m] = sum(|k| x[k, m]);
    ///     schedule y {
    ///         split m by 32 -> mo, mi;
    ///         reorder mo, mi, k;
    ///         bind mo: grid;
    ///         bind mi: thread;
    ///     }
    ///     stage xs[k, m] = x in shared at y.mo via tma { box k by 16 -> kc, kb; box m by 32 -> mc, mb; }
    /// }
    /// ```
    ///
    /// The message names the loop, and a fact that would bound it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Column(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
    ///     y[m] = sum(|k| x[k, m]);
    ///     schedule y {
    ///         split m by 32 -> mo, mi;
    ///         split k by 64 -> ko, ki; reorder mo, ko, mi, ki;
    ///         bind mo: grid;
    ///         bind mi: thread;
    ///     }
    ///     stage xs[k, m] = x in shared at y.ko via tma { box k by 16 -> kc, kb; box m by 32 -> mc, mb; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Bound the size with a fact, such as `where K <= 512`.
    /// - Keep a stage that threads compute `in global`, for any size.
    TW0501 "unbounded-buffer" Error "a buffer whose size is not known at compile time"
}

/// TW0501: a buffer whose size is not known at compile time.
#[derive(Clone, Debug)]
pub struct UnboundedBuffer {
    /// The copy.
    pub copy: String,
    /// The loop that an instance goes around, and its extent.
    pub axis: String,
    /// Its extent.
    pub extent: String,
    /// A fact that bounds it, of a size that is usual.
    pub fact: Option<String>,
    /// A loop of the reader, inside of the place, each iteration of which asks for a part.
    pub inside: Option<String>,
    /// Where it is.
    pub place: Place,
    /// Whether global memory has a place for it.
    pub global: bool,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for UnboundedBuffer {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, extent, fact, inside, place, global, span } = self;
        let diagnostic = Diagnostic::new(
            Code::TW0501,
            span,
            match place {
                Place::Registers => {
                    format!("`{copy}` would need an unknown number of registers: `{axis}` has {extent} iterations")
                }
                Place::Shared | Place::Global => {
                    format!("`{copy}` would need a buffer of unknown size: `{axis}` has {extent} iterations")
                }
            },
        )
        .note(match place {
            Place::Registers => "registers have no addresses: each has a name in the program",
            Place::Shared => "shared memory is reserved when a block starts, in a size that is fixed at compile time",
            Place::Global => "the launch provides memory whose size follows from the sizes of tensors alone",
        })
        .help(match &inside {
            Some(inside) => format!("attach `{copy}` further inside, `at {inside}`: an iteration of that asks for a part"),
            None => format!("split the reader's `{axis}` by a literal, and attach `{copy}` at the outer loop"),
        });
        let diagnostic = match global {
            true => diagnostic.help("or keep it `in global`: the launch provides as much as the sizes ask for"),
            false => diagnostic,
        };
        // A part is what is wanted, and a whole of thousands of elements fits nowhere.
        match fact.filter(|_| inside.is_none()) {
            Some(fact) => {
                let text = format!("or bound it with a fact, such as `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
    }
}
