//! TW0502: more shared memory than a block has.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// All staged copies of a kernel have their buffers at the same time, a ring each of its. A block can have 227 KiB
    /// of shared memory, barriers included; what passes 48 KiB is asked for at launch.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Column(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
    ///     y[m] = sum(|k| x[k, m]);
    ///     schedule y {
    ///         split m by 32 -> mo, mi;
    ///         split k by 2048 -> ko, ki; reorder mo, ko, mi, ki;
    ///         bind mo: grid;
    ///         bind mi: thread;
    ///     }
    ///     stage xs[k, m] = x in shared at y.ko via tma { box k by 64 -> kc, kb; box m by 32 -> mc, mb; }
    /// }
    /// ```
    ///
    /// The message lists the buffers with their bytes.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Column(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
    ///     y[m] = sum(|k| x[k, m]);
    ///     schedule y {
    ///         split m by 32 -> mo, mi;
    ///         split k by 256 -> ko, ki; reorder mo, ko, mi, ki;
    ///         bind mo: grid;
    ///         bind mi: thread;
    ///     }
    ///     stage xs[k, m] = x in shared at y.ko via tma { box k by 64 -> kc, kb; box m by 32 -> mc, mb; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Keep a stage that threads compute `in global`: its instances have any size there.
    TW0502 "shared-budget" Error "more shared memory than a block has"
}

/// TW0502: more shared memory than a block has.
#[derive(Clone, Debug)]
pub struct SharedBudget {
    /// Name, bytes and number of the buffers of each copy or stage, and how many elements an instance has along each
    /// axis, as far as that is known.
    pub buffers: Vec<(String, u64, u32, Vec<i128>)>,
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
        let sizes = |sizes: &[i128]| match sizes {
            [] => String::new(),
            sizes => {
                let sizes: Vec<String> = sizes.iter().map(i128::to_string).collect();
                format!(" ({} elements)", sizes.join(" × "))
            }
        };
        let list = buffers.iter().map(|(name, bytes, ring, of)| match ring {
            1 => format!("`{name}` {bytes}{}", sizes(of)),
            _ => format!("`{name}` {bytes} in {ring} buffers{}", sizes(of)),
        });
        let list = list.collect::<Vec<_>>().join(", ");
        let rest = bytes.saturating_sub(buffers.iter().map(|b| b.1).sum());
        let rest = if rest > 0 { format!("; barriers and alignment take {rest}") } else { String::new() };
        let found = Diagnostic::new(
            Code::TW0502,
            span,
            format!("a block needs {bytes} bytes of shared memory, and can have {limit}"),
        )
        .note(format!("in bytes: {list}{rest}"))
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
