//! TW05: memory and resource budgets.

use super::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::source::ast::Place;

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
    /// Where it is.
    pub place: Place,
    /// Whether global memory has a place for it.
    pub global: bool,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for UnboundedBuffer {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, extent, fact, place, global, span } = self;
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
        .help(format!("split the reader's `{axis}` by a literal, and attach `{copy}` at the outer loop"));
        let diagnostic = match global {
            true => diagnostic.help("or keep it `in global`: the launch provides as much as the sizes ask for"),
            false => diagnostic,
        };
        match fact {
            Some(fact) => {
                let text = format!("or bound it with a fact, such as `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
    }
}

/// TW0502: more shared memory than a block has.
#[derive(Clone, Debug)]
pub struct SharedBudget {
    /// Name, bytes and number of the buffers of each copy.
    pub buffers: Vec<(String, u64, u32)>,
    /// Bytes in all, barriers and gaps for alignment included.
    pub bytes: u64,
    /// Bytes there are.
    pub limit: u64,
    /// Whether global memory has a place for the largest one.
    pub global: bool,
    /// The largest one.
    pub span: Span,
}

impl IntoDiagnostic for SharedBudget {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { buffers, bytes, limit, global, span } = self;
        let rings = buffers.iter().any(|b| b.2 > 1);
        let list = buffers.iter().map(|(name, bytes, ring)| match ring {
            1 => format!("`{name}` {bytes}"),
            _ => format!("`{name}` {bytes} in {ring} buffers"),
        });
        let list = list.collect::<Vec<_>>().join(", ");
        let found = Diagnostic::new(
            Code::TW0502,
            span,
            format!("a block needs {bytes} bytes of shared memory, and can have {limit}"),
        )
        .note(format!("in bytes: {list}; each buffer loaded `via tma` has a barrier of 8"))
        .help(match rings {
            true => "take smaller boxes or a shorter ring, or attach it at a loop further inside",
            false => "attach it at a loop further inside, or make what is read there smaller",
        });
        match global {
            true => found.help("or keep it `in global`: the launch provides memory for each block"),
            false => found,
        }
    }
}

/// TW0504: more registers than a thread has.
#[derive(Clone, Debug)]
pub struct RegisterBudget {
    /// The stage.
    pub stage: String,
    /// How many each thread would need; none if there is no bound.
    pub count: Option<i128>,
    /// The loop without a bound.
    pub axis: Option<String>,
    /// How many there are.
    pub limit: i128,
    /// The head of the stage.
    pub span: Span,
}

impl IntoDiagnostic for RegisterBudget {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, count, axis, limit, span } = self;
        let title = match count {
            Some(count) => format!("`{stage}` needs {count} registers of each thread, and a thread has {limit}"),
            None => format!("`{stage}` needs an unknown number of registers of each thread"),
        };
        let diagnostic = Diagnostic::new(Code::TW0504, span, title);
        let diagnostic = match axis {
            Some(axis) => {
                diagnostic.note(format!("`{axis}` has no bound: each of its iterations has a register of its own"))
            }
            None => diagnostic,
        };
        diagnostic.help("give the stage more threads, bound the size with a fact, or keep it `in shared`")
    }
}

/// TW0505: more to hold at one time than a thread has registers.
#[derive(Clone, Debug)]
pub struct RegisterPressure {
    /// Registers of 32 bits that a thread must hold at one time.
    pub words: u32,
    /// How many it has.
    pub limit: u32,
    /// Threads of the block, if these are why it has no more.
    pub threads: Option<u32>,
    /// Its role, if it has one.
    pub role: Option<String>,
    /// Registers of each stage, the largest first.
    pub parts: Vec<(String, u32)>,
    /// The stage with most of them.
    pub span: Span,
}

impl IntoDiagnostic for RegisterPressure {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { words, limit, threads, role, parts, span } = self;
        let title = format!("each thread must hold {words} registers at one time, and has {limit}");
        let list = parts.iter().map(|(name, words)| format!("`{name}` {words}")).collect::<Vec<_>>().join(", ");
        let diagnostic = Diagnostic::new(Code::TW0505, span, title).note(format!("of 32 bits: {list}"));
        let first = parts.first().map_or("one of them", |part| part.0.as_str());
        if let Some(role) = role {
            return diagnostic
                .note(format!("it runs in role `{role}`, each of whose threads has {limit} registers"))
                .help(format!(
                    "keep `{first}` `in shared`, or give `{role}` more warps, or more registers: `regs(…)`"
                ));
        }
        match threads {
            Some(threads) => diagnostic
                .note(format!("a block of {threads} threads shares the 65536 registers of a multiprocessor"))
                .help(format!(
                    "keep `{first}` `in shared`, or take a smaller block: its threads have up to 255 registers each"
                )),
            None => diagnostic
                .help(format!("keep `{first}` `in shared`, or give the stages more threads, which hold less each")),
        }
    }
}
