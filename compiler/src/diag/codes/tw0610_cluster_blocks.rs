//! TW0610: a cluster that has other blocks than its axes.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::amount;
use crate::source::Span;

row! {
    /// `launch cluster(4)` makes clusters of four neighbouring blocks, which run at one time. Axes of the grid then
    /// count clusters, and axes with `bind c: cta` count the blocks of one. In every output, and in every stage that
    /// has such axes, these have as many iterations as a cluster has blocks: with fewer, blocks would have nothing to
    /// do; without any, all blocks of a cluster would write the same elements. A cluster has 1, 2, 4 or 8 blocks.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
    ///     z[i, j] = x[i, j] + y[i, j];
    ///     launch cluster(4), threads(64);
    ///     schedule z { bind i: grid; split j into 2 -> c, r; bind c: cta; split r by 64 -> q, t; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message gives the iterations of each axis and the blocks of a cluster.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
    ///     z[i, j] = x[i, j] + y[i, j];
    ///     launch cluster(4), threads(64);
    ///     schedule z { bind i: grid; split j into 4 -> c, r; bind c: cta; split r by 64 -> q, t; bind t: thread; }
    /// }
    /// ```
    TW0610 "cluster-blocks" Error "a cluster that has other blocks than its axes"
}

/// TW0610: a cluster that has other blocks than the axes that are given to them.
#[derive(Clone, Debug)]
pub struct ClusterBlocks {
    /// The stage.
    pub stage: String,
    /// Its axes that are given to blocks of a cluster, with their extents.
    pub axes: Vec<(String, i128)>,
    /// Their iterations.
    pub blocks: i128,
    /// Blocks of a cluster.
    pub cluster: i128,
    /// Whether clusters have so many, and as many as there are iterations.
    pub exists: (bool, bool),
    /// The last `bind`, or the stage.
    pub span: Span,
    /// The item of `launch`, if there is one.
    pub launch: Option<Span>,
}

impl IntoDiagnostic for ClusterBlocks {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axes, blocks, cluster, exists: (exists, fits), span, launch } = self;
        let of: Vec<String> = axes.iter().map(|(axis, extent)| format!("`{axis}` {extent}")).collect();
        let title = match (axes.len(), exists) {
            (_, false) => format!("a cluster has 1, 2, 4 or 8 blocks, and {} are needed", amount(cluster)),
            (0, _) => format!("the {cluster} blocks of a cluster would each write the same elements of `{stage}`"),
            _ => format!("a cluster has {cluster} blocks, and `{stage}` gives iterations to {}", amount(blocks)),
        };
        let diagnostic = Diagnostic::new(Code::TW0610, span, title);
        let diagnostic = match launch {
            Some(launch) => diagnostic.label(launch, format!("clusters of {cluster}")),
            None => diagnostic,
        };
        let diagnostic = match of.is_empty() {
            true => diagnostic.note("no axis of it is given to them"),
            false => diagnostic.note(format!("iterations: {}", of.join(", "))),
        };
        match axes.is_empty() {
            true if !exists => diagnostic.help("write `launch cluster(…);` with one of these"),
            true => diagnostic.help(format!(
                "give them an axis of {cluster} iterations: `split … into {cluster} -> c, …; bind c: cta;`"
            )),
            false => diagnostic.help(match launch {
                Some(_) if fits => format!("write `launch cluster({blocks});`, or split the axis into {cluster}"),
                _ => "split the axis into as many as a cluster has blocks".to_owned(),
            }),
        }
    }
}
