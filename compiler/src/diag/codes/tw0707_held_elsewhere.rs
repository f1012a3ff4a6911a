//! TW0707: a register read by a thread that does not hold it.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::source::ast::MmaEngine;

row! {
    /// A thread reads its own registers only. So the readers of a stage in registers must give each element to the
    /// thread that holds it, in every iteration. `like` makes two stages agree.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) where N % 8 == 0, N <= 4096 {
    ///     e[i, j] = exp(x[i, j]);
    ///     s[i] = sum(|j| e[i, j]);
    ///     y[i, j] = e[i, j] / s[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 4 -> jo, v; split jo by 128 -> r, t; bind t: thread; vectorize v; unroll r; }
    ///     schedule e in registers at y.i { split j by 8 -> jo, v; split jo by 128 -> r, t; bind t: thread; }
    ///     schedule s in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// The message shows an element, the thread that reads it and the one that holds it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) where N % 8 == 0, N <= 4096 {
    ///     e[i, j] = exp(x[i, j]);
    ///     s[i] = sum(|j| e[i, j]);
    ///     y[i, j] = e[i, j] / s[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 4 -> jo, v; split jo by 128 -> r, t; bind t: thread; vectorize v; unroll r; }
    ///     schedule e in registers at y.i { like y; }
    ///     schedule s in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Keep the stage `in shared`: every thread of the block can read it there.
    TW0707 "held-elsewhere" Error "a register read by a thread that does not hold it"
}

/// A thread that reads what another one holds.
#[derive(Clone, Debug)]
pub struct ThreadWitness {
    /// The sizes, and the loops around.
    pub dims: Vec<(String, i128)>,
    /// Indices of the element.
    pub element: Vec<i128>,
    /// The thread that reads it, by its number in the cluster.
    pub reads: i128,
    /// A thread that holds it.
    pub holds: i128,
    /// Threads of a block, if a cluster has several.
    pub block: Option<i128>,
}

/// TW0707: a register read by a thread that does not hold it.
#[derive(Clone, Debug)]
pub struct HeldElsewhere {
    /// The stage in registers.
    pub stage: String,
    /// Its reader.
    pub reader: String,
    /// The smallest case; none if it could not be decided.
    pub witness: Option<ThreadWitness>,
    /// Of a factor of a product, how it must be dealt out.
    pub factor: Option<FactorLanes>,
    /// Of a sum that tensor cores leave, the op with which a reader takes it as it lies.
    pub fragment: Option<String>,
    /// The read.
    pub read: Span,
    /// The head of the stage.
    pub span: Span,
}

/// How lanes have a factor of a product in registers.
#[derive(Clone, Debug)]
pub struct FactorLanes {
    /// The axis of its rows, and that of its terms.
    pub axes: [String; 2],
    /// Terms that share a register.
    pub each: i128,
    /// The instructions.
    pub engine: MmaEngine,
}

impl FactorLanes {
    /// The ops that deal it out so.
    fn ops(&self) -> String {
        let Self { axes: [m, k], each, engine } = self;
        match each {
            2 => format!("`fragment ({m}, {k}) by {engine}`"),
            // Two neighbours of a sum's columns and two of those half a block further are four neighbours, if columns
            // are first the even terms, and then the odd ones.
            4 => format!("`split {k} by 2 -> {k}_c, {k}_b; fragment ({m}, {k}_c) by {engine}`"),
            _ => format!(
                "`split {k} by {} -> {k}_g, {k}_r; split {k}_r by {each} -> {k}_q, {k}_p`, with `{k}_q` in the place of \
                 the quads of `fragment`, and rows as `fragment` has them",
                4 * each
            ),
        }
    }
}

impl IntoDiagnostic for HeldElsewhere {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, witness, factor, fragment, read, span } = self;
        let title = match &witness {
            Some(_) => format!("`{reader}` reads registers of `{stage}` that other threads hold"),
            None => format!("could not prove that the threads of `{reader}` hold what they read of `{stage}`"),
        };
        let diagnostic = Diagnostic::new(Code::TW0707, span, title).label(read, "read here");
        let diagnostic = match witness {
            Some(ThreadWitness { dims, element, reads, holds, block }) => {
                let thread = |n: i128| match block {
                    Some(threads) => format!("thread {} of block {}", n % threads, n / threads),
                    None => format!("thread {n}"),
                };
                let dims: Vec<String> = dims.iter().map(|(name, v)| format!("{name} = {v}")).collect();
                let element: Vec<String> = element.iter().map(i128::to_string).collect();
                let case = if dims.is_empty() { String::new() } else { format!("{}: ", dims.join(", ")) };
                diagnostic.note(format!(
                    "counterexample: {case}{} reads {stage}[{}], which {} holds",
                    thread(reads),
                    element.join(", "),
                    thread(holds)
                ))
            }
            None => diagnostic,
        };
        if let Some(factor) = factor {
            let each = if factor.each == 1 { "one term".to_owned() } else { format!("{} terms", factor.each) };
            return diagnostic
                .note(format!("tensor cores read {each} of a row from each register, and neighbours from the lanes of four"))
                .help(format!("deal `{stage}` out as they read it: {}", factor.ops()));
        }
        if let Some(fragment) = fragment {
            return diagnostic
                .note("tensor cores leave a sum where their instruction says, and nothing else decides who has it")
                .help(format!("deal `{reader}` out as they do: `{fragment}` in its schedule, in the place of ops on these axes"))
                .help(format!(
                    "or let an equation of its own, `t[…] = {stage}[…]`, put it where every thread can read it: \
                     `schedule t in shared`, with a `fragment` of its axes"
                ));
        }
        // What is computed of a block of terms has no name of its own.
        let alike = match reader.split_once('$') {
            Some((sum, _)) => format!("with the ops that the schedule with `online` has for the terms of `{sum}`"),
            None => format!("`like {reader}` in the schedule of `{stage}`"),
        };
        diagnostic
            .help(format!("distribute both alike: {alike}"))
            .help(format!("or keep `{stage}` where every thread of the block can read it: `in shared`"))
    }
}
