//! How tensors of attention come to shared memory.

use super::{Attention, Heads};
use crate::compose::products::Engine;

impl Attention {
    /// The copy of queries (0), keys or values: its axes, its clauses and its ops.
    pub(super) fn copy(&self, n: usize) -> String {
        let copied = self.copies[n];
        let mut names = [["sq", "i", "d"], ["sk", "j", "d"], ["sv", "j", "e"]][n];
        if n == 2 && self.is_eight() {
            names.swap(1, 2);
        }
        let [name, rows, columns] = names;
        let batch = match (self.heads, n) {
            (Heads::One, _) => "",
            (Heads::Grouped(_), 1 | 2) => "g, ",
            _ => "h, ",
        }
        .to_owned();
        let pages = self.pages_of(n);
        // Boxes of several pages are counted outside of all else; one page is a part of the tile.
        let counted = if pages.is_some_and(|pages| pages.terms < self.block) { "r, " } else { "" };
        let own_batch = batch.as_str();
        let dimensions = if pages.is_some() { format!("{own_batch}r, ") } else { batch.clone() };
        let batch = if counted.is_empty() { &dimensions } else { own_batch };
        let place = if n == 0 { "y.it".to_owned() } else { format!("m.{}", self.loop_of_blocks()) };
        let ring = copied.ring.map_or(String::new(), |ring| format!(" ring({ring})"));
        // Warpgroups read what threads write before they go on.
        let via = match (copied.tma, self.engine) {
            (true, _) => " via tma",
            (false, Engine::Wgmma) => "",
            (false, Engine::MmaSync) => " via cp_async",
        };
        let by = if self.roles.is_some() { " by load" } else { "" };
        let size = if n == 2 && self.is_eight() { self.block } else { self.sizes[usize::from(n == 2)] };
        let own = if n == 0 { self.tile()[1] } else { self.block };
        let ops = match copied.tma {
            true if self.is_eight() => {
                let terms = pages.map_or(self.block, |pages| pages.terms.min(self.block));
                let size = if n == 2 { terms } else { size };
                boxes_of_eight(copied.swizzle, (counted, batch, rows, columns), size, (n == 1).then_some(terms))
            }
            true => boxes(copied.swizzle, (counted, batch, rows, columns), size),
            false => self.chunks(copied.swizzle, (rows, columns), [own, size]),
        };
        let tensor = self.tensors()[n];
        format!(
            "stage {name}[{dimensions}{rows}, {columns}] = {tensor} in shared at {place}{ring}{via}{by} {{ {ops} }}"
        )
    }

    /// Chunks of 16 bytes that threads fetch: rows by all threads, with runs of a swizzle's length.
    fn chunks(&self, swizzle: i64, (rows, columns): (&str, &str), [_, size]: [i64; 2]) -> String {
        let threads = self.roles.map_or(self.threads(), |roles| 32 * roles.load);
        let run = swizzle.max(16) / 2;
        let mut ops = Vec::new();
        let (mut along, mut runs) = (columns, None);
        if size > run {
            ops.push(format!("split {columns} by {run} -> wr, wx"));
            (along, runs) = ("wx", Some("wr"));
        }
        ops.push(format!("split {along} by 8 -> wc, wv"));
        let all: Vec<&str> = [rows].into_iter().chain(runs).chain(["wc"]).collect();
        ops.push(format!("merge {} -> p", all.join(", ")));
        ops.push(format!("split p by {threads} -> pr, t; bind t: thread; vectorize wv"));
        let end = if swizzle > 0 { format!("] swizzle {swizzle}") } else { "]".to_owned() };
        let order: Vec<&str> = runs.into_iter().chain([rows, "wc", "wv"]).collect();
        ops.push(format!("layout [{}{end};", order.join(", ")));
        ops.join("; ")
    }
}

/// What counts pages, the axes of a batch, rows and columns.
type Names<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The same of elements of 8 bits, with the even rows of a block of so many before the odd ones.
fn boxes_of_eight(swizzle: i64, (pages, batch, rows, columns): Names<'_>, size: i64, halves: Option<i64>) -> String {
    let (cut, outer, run) = match size > swizzle {
        true => (format!("box {columns} by {swizzle} -> cx, cb; "), "cx, ", "cb"),
        false => (String::new(), "", columns),
    };
    let (tiles, outer, rows) = match halves {
        Some(block) => {
            (format!("box {rows} by {block} -> rx, ry; tile ry by 2 -> rt, rs; "), format!("{outer}rx, rs, "), "rt")
        }
        None => (String::new(), outer.to_owned(), rows),
    };
    format!("{cut}{tiles}layout [{outer}{pages}{batch}{rows}, {run}] swizzle {swizzle};")
}

/// Boxes of the accelerator, and their layout.
fn boxes(swizzle: i64, (pages, batch, rows, columns): Names<'_>, size: i64) -> String {
    let run = swizzle.max(16) / 2;
    let end = if swizzle > 0 { format!("swizzle {swizzle}") } else { String::new() };
    match size > run {
        true => format!("box {columns} by {run} -> cx, cb; layout [cx, {pages}{batch}{rows}, cb] {end};"),
        false => format!("layout [{pages}{batch}{rows}, {columns}] {end};"),
    }
}
