//! Copies of the factors in shared memory.

use super::{Factor, Product};
use crate::compose::ast::{Equation, Expr, Extent, Index, Input, PITCHES, Pitch, Schedule, Stride, Type};

/// The names of a factor, of its copy, and of its axis that is not of terms.
const NAMES: [[&str; 3]; 2] = [["a", "sa", "m"], ["b", "sb", "n"]];

/// The name of a factor.
pub(super) fn name(n: usize) -> &'static str {
    NAMES[n][0]
}

/// The axis of rows, or of columns.
pub(super) fn axis(n: usize) -> &'static str {
    NAMES[n][2]
}

/// The type of a factor in memory.
fn in_memory(product: &Product, n: usize) -> Type {
    product.held.filter(|_| n == 0).map_or(product.factors[n].ty, |held| held.from)
}

/// An element of a factor in memory, at the axes of the product.
pub(super) fn element(product: &Product, n: usize) -> Expr {
    let factor = &product.factors[n];
    let own = [Index::Axis(axis(n).to_owned(), 1, factor.plus[0])];
    let terms = [Index::Axis("k".to_owned(), 1, factor.plus[1])];
    let batch = product.batch.map(|_| Index::Axis("z".to_owned(), 1, 0));
    let [first, second] = if factor.across { [terms, own] } else { [own, terms] };
    Expr::Read(name(n).to_owned(), batch.into_iter().chain(first).chain(second).collect(), None)
}

/// The equation of a factor that lanes hold.
pub(super) fn equation(product: &Product, lengths: [Extent; 3]) -> Option<Equation> {
    let from = product.held?.from;
    let ty = product.factors[0].ty;
    let batch = product.batch.map(|n| ("z", Extent::literal(n)));
    let axes = batch.into_iter().chain([("m", lengths[0]), ("k", lengths[2])]);
    let axes = axes.map(|(name, extent)| (name.to_owned(), extent)).collect();
    let element = element(product, 0);
    let value = if from == ty { element } else { Expr::Cast(from, Box::new(element)) };
    Some(Equation::new("fa", ty, axes, value, false))
}

/// The ops that deal it out as tensor cores read it: by `fragment`, or its splits for types of other sizes.
pub(super) fn dealt(product: &Product, rows: &str) -> Vec<String> {
    let each = 4 / product.factors[0].ty.bytes();
    if each == 2 {
        return vec![format!("fragment ({rows}, k) by wgmma")];
    }
    let tiles = product.tiles.rows > 1;
    let mut ops: Vec<String> = tiles.then(|| format!("split {rows} by 64 -> fo, f64")).into_iter().collect();
    ops.push(format!("split {} by 16 -> fw, f16", if tiles { "f64" } else { rows }));
    ops.push("split f16 by 8 -> fh, fr".to_owned());
    ops.push(format!("split k by {} -> fg, f4", 4 * each));
    ops.push(format!("split f4 by {each} -> fq, fp"));
    let outer = if tiles { "fo, " } else { "" };
    ops.push(format!("reorder fw, fr, fq, {outer}fg, fh, fp"));
    ops.push("bind fw: warp".to_owned());
    ops.push("bind fr, fq: thread".to_owned());
    ops
}

/// A factor as an input, with the strides that are told at launch.
pub(super) fn input(product: &Product, n: usize, lengths: [Extent; 3], pitches: &mut Vec<Pitch>) -> Input {
    let factor = &product.factors[n];
    let longer = |extent: Extent, plus: i64| Extent { plus: extent.plus + plus, ..extent };
    let own = [longer(lengths[n], factor.plus[0]), longer(lengths[2], factor.plus[1])];
    let own = if factor.across { [own[1], own[0]] } else { own };
    let shape: Vec<Extent> = product.batch.map(Extent::literal).into_iter().chain(own).collect();
    let mut input = Input::new(name(n), in_memory(product, n), shape);
    if factor.pitched && pitches.len() + 2 < PITCHES.len() {
        let mut pitch = |of: Option<usize>, least: Extent| {
            pitches.push(Pitch { of, least, divides: granule(factor), told: false });
            pitches.len() - 1
        };
        let row = pitch(None, own[1]);
        input.strides = vec![Stride::Pitch(row), Stride::Extent(Extent::literal(1))];
        if product.batch.is_some() {
            input.strides.insert(0, Stride::Pitch(pitch(Some(row), own[0])));
        }
    }
    input
}

/// Elements of 16 bytes.
pub(super) fn granule(factor: &Factor) -> i64 {
    16 / factor.ty.bytes() as i64
}

/// The copy of a factor.
pub(super) fn copy(product: &Product, n: usize, at: (String, String)) -> Schedule {
    let factor = &product.factors[n];
    let [of, name, x] = NAMES[n];
    let mut axes = if factor.across { vec!["k", x] } else { vec![x, "k"] };
    if product.batch.is_some() {
        axes.insert(0, "z");
    }
    let mut clauses: Vec<String> = Vec::new();
    clauses.extend(factor.ring.map(|ring| format!("ring({ring})")));
    clauses.extend((!factor.via.is_empty()).then(|| factor.via.to_owned()));
    clauses.extend(product.roles.map(|_| "by load".to_owned()));
    Schedule {
        name: name.to_owned(),
        copy: Some((axes.into_iter().map(str::to_owned).collect(), of.to_owned())),
        place: "shared".to_owned(),
        at: Some(at),
        clauses,
        ops: ops(product, n),
        loops: Vec::new(),
    }
}

/// Boxes, the layout of a tile, and who takes part in it.
fn ops(product: &Product, n: usize) -> Vec<String> {
    let factor = &product.factors[n];
    let (x, [block, terms]) = (axis(n), [product.block()[n], product.terms()]);
    let run = factor.swizzle.max(16) / factor.ty.bytes() as i64;
    let mut ops = Vec::new();
    let cut = |ops: &mut Vec<String>, axis: &str, by: Option<i64>| {
        let Some(by) = by else { return (None, axis.to_owned()) };
        ops.push(format!("box {axis} by {by} -> {axis}c, {axis}b"));
        (Some(format!("{axis}c")), format!("{axis}b"))
    };
    let longer = |length: i64, by: i64| (length > by).then_some(by);
    let (along, across) = match factor.across {
        true => (cut(&mut ops, "k", None), cut(&mut ops, x, longer(block, run))),
        false => {
            let rows = cut(&mut ops, x, factor.rows);
            (cut(&mut ops, "k", longer(terms, run)), rows)
        }
    };
    let outer = if factor.rows_outside { [&across.0, &along.0] } else { [&along.0, &across.0] };
    let inner = if factor.across { [&along.1, &across.1] } else { [&across.1, &along.1] };
    let order: Vec<&str> = outer.into_iter().flatten().chain(inner).map(String::as_str).collect();
    if !factor.bare {
        let swizzle = if factor.swizzle > 0 { format!(" swizzle {}", factor.swizzle) } else { String::new() };
        ops.push(format!("layout [{}]{swizzle}", order.join(", ")));
    }
    if let Some(cluster) = product.cluster
        && cluster.multicast
        && cluster.beside == (n == 0)
    {
        // Each block fetches one of as many slices.
        let slices = block / if factor.across { run } else { factor.rows.unwrap_or(block) };
        let parts = across
            .0
            .filter(|_| cluster.parts && slices == cluster.blocks)
            .map(|part| format!(" by {part}"))
            .unwrap_or_default();
        ops.push(format!("multicast c.{}{parts}", if cluster.beside { "nc" } else { "mc" }));
    }
    ops.extend(factor.hint.map(str::to_owned));
    ops
}
