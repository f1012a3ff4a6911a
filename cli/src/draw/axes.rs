//! Section: the iteration domain of each stage, from the axes of its tensor through splits, merges and others to the
//! loop nest; its holes, and what keeps them from doing harm.
//!
//! Axes of the tensor are on the left, the loop nest on the right, outermost first: lines that cross there are a
//! `reorder`. What an op consumes stands in a column after what it was made of. A line that passes columns has a place
//! of its own in each, so that it is never behind an axis that it does not join: up to the last axis that the op
//! consumes it is the line of the axis that it comes from, and after that of the one that it leads to. Rows of a column
//! are those of what comes after it, in the mean, and moved apart.

use super::canvas::{Anchor, Bounds, Canvas, measured};
use super::copies::Copied;
use super::theme::{self, LABEL, NOTE, PART, SMALL};
use super::{LEFT, Scene};
use crate::inspect::view::{AxisView, OpView, PredicateView, StageView};

/// Height of a row.
pub(super) const ROW: f64 = 24.0;
/// Height of an axis.
pub(super) const NODE: f64 = 19.0;
/// Least and most room for an axis, and between columns.
pub(super) const NARROW: f64 = 62.0;
const WIDE: f64 = 170.0;
pub(super) const GAP: f64 = 34.0;
/// Most room for who runs an axis, and between it and the axis.
const BINDING: f64 = 134.0;
const BESIDE: f64 = 7.0;
/// Room for a title and for notes, at least and at most, where the graph is narrower.
pub(super) const SAID: [f64; 2] = [200.0, 508.0];
/// Room around the label of an axis.
const PADDING: f64 = 10.0;
/// Room for the number of a note.
const BADGE: f64 = 18.0;
/// Between panels side by side.
const BETWEEN: f64 = 24.0;
/// Rows that a line takes which passes a column.
const PASSING: f64 = 0.55;

/// What the section shows.
pub fn draw(scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
    if scene.stages.is_empty() {
        return top;
    }
    let mut y =
        super::heading(canvas, top, "Iteration domains", "from the axes of a tensor to the loop nest, outermost first");
    y = legend(scene, canvas, y);
    let room = canvas.width() - 2.0 * LEFT;
    let all: Vec<Panel<'_>> =
        grouped(&scene.stages).into_iter().map(|(names, stage)| Panel::new(names, stage, room)).collect();
    y = super::flow(canvas, y, BETWEEN, &all, Panel::width, Panel::draw);
    let copies = scene.stages.iter().flat_map(|stage| stage.copies.iter().map(move |copy| Copied::new(stage, copy)));
    let copies: Vec<Copied> = copies.collect();
    super::flow(canvas, y, BETWEEN, &copies, Copied::width, Copied::draw)
}

/// How wide the page must be.
pub fn width(scene: &Scene<'_>) -> f64 {
    let most = scene.stages.iter().map(|stage| Graph::of(stage).columns.len()).max().unwrap_or(0);
    2.0 * LEFT + most as f64 * (NARROW + GAP) + WIDE + BINDING
}

/// Stages whose domains look alike, together.
fn grouped(stages: &[StageView]) -> Vec<(Vec<String>, &StageView)> {
    let look = |stage: &StageView| {
        let axes = stage.axes.iter().map(|a| (label(a), binding(a), a.kind));
        (axes.collect::<Vec<_>>(), stage.loops.clone(), notes(stage))
    };
    let mut groups: Vec<(Vec<String>, &StageView)> = Vec::new();
    for stage in stages {
        let title = title(stage);
        match groups.iter_mut().find(|(_, other)| look(other) == look(stage)) {
            Some((names, _)) => names.push(title),
            None => groups.push((vec![title], stage)),
        }
    }
    groups
}

fn title(stage: &StageView) -> String {
    let place = match (&stage.at, stage.place) {
        (Some((of, axis)), place) => format!(" in {place} at {}.{axis}", super::named(of)),
        (None, _) => String::new(),
    };
    let role = stage.role.as_ref().map_or_else(String::new, |role| format!(" by {role}"));
    format!("{}{place}{role}", super::named(&stage.name))
}

/// What the kinds of lines mean, of those that there are.
fn legend(scene: &Scene<'_>, canvas: &mut Canvas, y: f64) -> f64 {
    let ops = || scene.stages.iter().flat_map(|stage| &stage.ops);
    let mut x = LEFT;
    for kind in ["split", "merge", "resize", "swizzle"] {
        if ops().any(|op| op.op == kind) {
            canvas.line((x, y + 8.0), (x + 26.0, y + 8.0), kind);
            canvas.text((x + 31.0, y + 12.0), 60.0, Anchor::Start, NOTE, kind);
            x += 100.0;
        }
    }
    if ops().any(|op| op.divisible == Some(false)) {
        canvas.rect(Bounds { x, y: y + 2.0, width: 14.0, height: 12.0 }, 3.0, "hole", None);
        canvas.text((x + 19.0, y + 12.0), 200.0, Anchor::Start, NOTE, "a split that leaves holes");
        x += 200.0;
    }
    if x > LEFT { y + 24.0 } else { y }
}

/// Name and iterations of an axis.
fn label(axis: &AxisView) -> String {
    format!("{} {}", axis.name, axis.extent)
}

/// What an axis shows: its name alone, if its iterations are said below the graph.
fn shown(axis: &AxisView) -> String {
    if is_long(axis) { format!("{}, see below", axis.name) } else { label(axis) }
}

/// Whether the iterations of an axis are an expression for which it has no room.
fn is_long(axis: &AxisView) -> bool {
    measured(&label(axis), LABEL.size) + PADDING + BADGE > WIDE
}

/// Who runs an axis, in words.
fn binding(axis: &AxisView) -> Option<String> {
    let words = axis.binding.as_ref()?;
    let number = match (axis.unroll, axis.raster) {
        (Some(n), _) => format!(" {n}"),
        (_, Some(n)) => format!(", by {n}"),
        _ => String::new(),
    };
    let order = if axis.descending { ", descending" } else { "" };
    let terms = if axis.kind == "reduction" { ", terms" } else { "" };
    Some(format!("{words}{number}{order}{terms}"))
}

/// The holes of each split that has some: the axis that is split, and a sentence.
fn notes(stage: &StageView) -> Vec<(usize, String)> {
    let splits = stage.ops.iter().filter(|op| op.divisible == Some(false));
    let note = |op: &OpView| {
        let axis = *op.from.first()?;
        let holes = op.holes.as_deref()?;
        let extents: Vec<Option<i128>> = op.to.iter().map(|a| stage.axes[*a].extent.parse().ok()).collect();
        let all: Option<i128> = extents.into_iter().try_fold(1_i128, |all, extent| all.checked_mul(extent?));
        let count = match all {
            Some(_) if holes == "0" => "no holes at these sizes".to_owned(),
            Some(all) => format!("{holes} of {all} positions are holes"),
            None => format!("{holes} positions are holes"),
        };
        let kept = protection(stage, axis);
        Some((axis, format!("split of {} into {}: {count}; {kept}", op.inputs.join(", "), op.outputs.join(", "))))
    };
    splits.filter_map(note).collect()
}

/// What keeps the holes of an axis from doing harm.
fn protection(stage: &StageView, axis: usize) -> String {
    let said = |p: &PredicateView| match (&p.removed, &p.waived) {
        (Some(removed), _) => match removed.theorem {
            Some(n) => format!("{} need not be tested: theorem {n} of Divisibility of Split", p.condition),
            None => format!("{} need not be tested: {}", p.condition, removed.by),
        },
        (None, None) => format!("tested: {}", p.condition),
        (None, Some(waived)) => match waived.because {
            "clipped" => format!("{} is not tested: the copy leaves such elements out", p.condition),
            "neutral" => format!(
                "{} is not tested around terms: zeros of {} change nothing",
                p.condition,
                waived.zeros_of.join(", ")
            ),
            _ => format!("{} is not tested: such elements are not stored", p.condition),
        },
    };
    // Where nothing is said of the axis itself: what is said of those that it was made of.
    let mut open = vec![axis];
    let mut seen = Vec::new();
    while let Some(axis) = open.pop() {
        let found: Vec<String> = stage.predicates.iter().filter(|p| p.axis == axis).map(said).collect();
        if !found.is_empty() {
            return found.join("; ");
        }
        if seen.contains(&axis) {
            continue;
        }
        seen.push(axis);
        open.extend(stage.ops.iter().filter(|op| op.to.contains(&axis)).flat_map(|op| &op.from));
    }
    "nothing has to be tested".to_owned()
}

/// An axis in a column, or a line that passes it.
struct Node {
    /// The axis; its line, if it passes.
    axis: usize,
    passes: bool,
    row: f64,
}

/// Where each axis stands.
struct Graph {
    /// From left to right; the loop nest is the last one.
    columns: Vec<Vec<Node>>,
    rows: f64,
}

impl Graph {
    fn of(stage: &StageView) -> Self {
        let mut depth = vec![0_usize; stage.axes.len()];
        for op in &stage.ops {
            let after = op.from.iter().map(|a| depth[*a]).max().unwrap_or(0) + 1;
            op.to.iter().for_each(|a| depth[*a] = after);
        }
        let last = depth.iter().copied().max().unwrap_or(0).max(1);
        let is_leaf = |axis: usize| stage.loops.contains(&axis);
        let nest = |(n, axis): (usize, &usize)| Node { axis: *axis, passes: false, row: n as f64 };
        let mut columns: Vec<Vec<Node>> = (0..last).map(|_| Vec::new()).collect();
        columns.push(stage.loops.iter().enumerate().map(nest).collect());
        for column in (0..last).rev() {
            let row_of = |axis: usize, from: usize| {
                let found = columns[from].iter().find(|node| node.axis == axis);
                found.map(|node| node.row)
            };
            let mut nodes: Vec<Node> = Vec::new();
            for axis in 0..stage.axes.len() {
                let own = if is_leaf(axis) { last } else { depth[axis] };
                let is_led_to = own > column && enters(stage, axis, &depth) < column as isize;
                let is_left = own < column && leaves(stage, axis, &depth) >= column;
                if own == column || is_left {
                    // Its own line in the next column, or what the op there makes of it.
                    let own = row_of(axis, column + 1).map(|row| vec![row]);
                    let rows = own
                        .unwrap_or_else(|| made(stage, axis).iter().filter_map(|a| row_of(*a, column + 1)).collect());
                    let row = rows.iter().sum::<f64>() / rows.len().max(1) as f64;
                    nodes.push(Node { axis, passes: is_left, row });
                } else if is_led_to {
                    nodes.push(Node { axis, passes: true, row: row_of(axis, column + 1).unwrap_or(0.0) });
                }
            }
            columns[column] = spread(nodes);
        }
        let rows = columns.iter().flatten().map(|node| node.row + 1.0).fold(1.0, f64::max);
        Self { columns, rows }
    }

    fn place(&self, axis: usize, column: usize) -> Option<&Node> {
        self.columns.get(column)?.iter().find(|node| node.axis == axis)
    }
}

/// The axes that an op makes of an axis.
fn made(stage: &StageView, axis: usize) -> Vec<usize> {
    stage.ops.iter().find(|op| op.from.contains(&axis)).map(|op| op.to.clone()).unwrap_or_default()
}

/// The last column of what an axis was made of; before the first one if it is an axis of the tensor.
fn enters(stage: &StageView, axis: usize, depth: &[usize]) -> isize {
    let op = stage.ops.iter().find(|op| op.to.contains(&axis));
    op.and_then(|op| op.from.iter().map(|a| depth[*a] as isize).max()).unwrap_or(-1)
}

/// The last column in which the line from an axis to the op that consumes it is its own: that of the last axis that the
/// op consumes.
fn leaves(stage: &StageView, axis: usize, depth: &[usize]) -> usize {
    let op = stage.ops.iter().find(|op| op.from.contains(&axis));
    op.and_then(|op| op.from.iter().map(|a| depth[*a]).max()).unwrap_or(0)
}

/// Moves nodes apart, in their order, as little as it takes.
fn spread(mut nodes: Vec<Node>) -> Vec<Node> {
    nodes.sort_by(|a, b| a.row.total_cmp(&b.row).then(a.axis.cmp(&b.axis)));
    let height = |node: &Node| if node.passes { PASSING } else { 1.0 };
    let mut free = 0.0_f64;
    for node in &mut nodes {
        // Rows are those of the middle of an axis.
        let half = height(node) / 2.0;
        node.row = node.row.max(free + half - 0.5);
        free = node.row + 0.5 + half;
    }
    nodes
}

/// A group of stages as it is drawn.
struct Panel<'a> {
    names: Vec<String>,
    stage: &'a StageView,
    graph: Graph,
    /// Width of each column.
    widths: Vec<f64>,
    /// Room after the last one for who runs an axis.
    beside: f64,
    notes: Vec<(usize, String)>,
    /// What is said of axes without room for it.
    long: Vec<String>,
}

impl<'a> Panel<'a> {
    /// One in a page that has so much room: columns are as wide as labels are, and no wider than the page has room for.
    fn new(names: Vec<String>, stage: &'a StageView, room: f64) -> Self {
        let graph = Graph::of(stage);
        let wanted = |column: &Vec<Node>| {
            let labels = column.iter().filter(|node| !node.passes).map(|node| shown(&stage.axes[node.axis]));
            let widest = labels.map(|text| measured(&text, LABEL.size)).fold(0.0, f64::max);
            (widest + PADDING + BADGE).clamp(NARROW, WIDE)
        };
        let mut widths: Vec<f64> = graph.columns.iter().map(wanted).collect();
        let words = stage.loops.iter().filter_map(|axis| binding(&stage.axes[*axis]));
        let beside = words.map(|words| measured(&words, NOTE.size) + BESIDE).fold(0.0, f64::max).min(BINDING);
        let free = room - beside - GAP * (widths.len() as f64 - 1.0);
        let sum: f64 = widths.iter().sum();
        if sum > free {
            widths.iter_mut().for_each(|w| *w *= free / sum);
        }
        let long = stage.axes.iter().filter(|axis| is_long(axis));
        let long = long.map(|axis| format!("{} has {} iterations", axis.name, axis.extent)).collect();
        Self { names, stage, graph, widths, beside, notes: notes(stage), long }
    }

    fn title(&self) -> String {
        self.names.join("; ")
    }

    /// The width of the graph, or of what is said of it, as far as that may be wider.
    fn width(&self) -> f64 {
        let graph = self.widths.iter().sum::<f64>() + GAP * (self.widths.len() as f64 - 1.0) + self.beside;
        let notes = self.notes.iter().map(|(_, note)| note).chain(&self.long);
        let notes = notes.map(|note| BADGE + 2.0 + measured(note, NOTE.size));
        let said = notes.fold(measured(&self.title(), PART.size), f64::max);
        graph.max(said.clamp(SAID[0], SAID[1]))
    }

    /// Left end of each column.
    fn columns(&self, left: f64) -> Vec<f64> {
        let next = |x: &mut f64, width: &f64| Some(std::mem::replace(x, *x + width + GAP));
        self.widths.iter().scan(left, next).collect()
    }

    /// Draws it in a room, and tells where it has ended.
    fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64), room: f64) -> f64 {
        let Self { stage, graph, widths, notes, long, .. } = self;
        let mut y = canvas.paragraph((left, top + 12.0), room, PART, &self.title()) - 9.0;
        let xs = self.columns(left);
        let middle = |node: &Node| y + (node.row + 0.5) * ROW;
        lines(canvas, stage, graph, (&xs, widths), &middle);
        for ((nodes, x), width) in graph.columns.iter().zip(&xs).zip(widths) {
            for node in nodes.iter().filter(|node| !node.passes) {
                let at = Bounds { x: *x, y: middle(node) - NODE / 2.0, width: *width, height: NODE };
                self.node(canvas, node.axis, at);
            }
        }
        y += graph.rows * ROW + 4.0;
        for (number, (_, note)) in notes.iter().enumerate() {
            badge(canvas, (left, y + 2.0), number, note);
            y = canvas.paragraph((left + BADGE + 2.0, y + 12.0), room - BADGE - 2.0, NOTE, note) - 10.0;
        }
        for note in long {
            y = canvas.paragraph((left, y + 12.0), room, NOTE, note) - 10.0;
        }
        y + 14.0
    }

    fn node(&self, canvas: &mut Canvas, axis: usize, at: Bounds) {
        let Bounds { x, y, width, .. } = at;
        let number = self.notes.iter().position(|note| note.0 == axis);
        let axis = &self.stage.axes[axis];
        let class = axis.binding.as_deref().map_or("axis", theme::binding);
        let AxisView { name, extent, kind, index, .. } = axis;
        canvas.rect(at, 4.0, class, Some(&format!("{name}: {extent} iterations, {kind}; value {index}")));
        let used = if number.is_some() { BADGE } else { 0.0 };
        canvas.text((x + 5.0, y + 13.5), width - 8.0 - used, Anchor::Start, LABEL, &shown(axis));
        if let Some(number) = number {
            badge(canvas, (x + width - BADGE, y + 3.5), number, &self.notes[number].1);
        }
        if let Some(words) = binding(axis) {
            canvas.text((x + width + BESIDE, y + 13.5), BINDING - BESIDE, Anchor::Start, NOTE, &words);
        }
    }
}

/// The number of a note.
fn badge(canvas: &mut Canvas, (x, y): (f64, f64), number: usize, note: &str) {
    let at = Bounds { x, y, width: BADGE - 4.0, height: 12.0 };
    canvas.rect(at, 3.0, "hole", Some(note));
    canvas.text((x, y + 9.5), at.width, Anchor::Middle, SMALL, &(number + 1).to_string());
}

/// The lines from each axis to what an op makes of it.
fn lines(
    canvas: &mut Canvas,
    stage: &StageView,
    graph: &Graph,
    (xs, widths): (&[f64], &[f64]),
    middle: &dyn Fn(&Node) -> f64,
) {
    let last = graph.columns.len() - 1;
    let column_of = |axis: usize| (0..=last).find(|c| graph.place(axis, *c).is_some_and(|node| !node.passes));
    for op in &stage.ops {
        for (from, to) in op.from.iter().flat_map(|from| op.to.iter().map(move |to| (*from, *to))) {
            let Some(start) = column_of(from) else { continue };
            curve(
                canvas,
                graph,
                (xs, widths),
                middle,
                (start, Some(from), to),
                (op.op, &format!("{} of {}", op.op, op.inputs.join(", "))),
            );
        }
    }
    // Axes of the tensor that nothing consumes.
    for axis in stage.loops.iter().filter(|axis| !stage.ops.iter().any(|op| op.to.contains(axis))) {
        curve(
            canvas,
            graph,
            (xs, widths),
            middle,
            (0, None, *axis),
            ("order", "an axis of the tensor that no op consumes"),
        );
    }
}

/// One line: from an axis in a column, or from the column's left end, to another axis in a later column.
fn curve(
    canvas: &mut Canvas,
    graph: &Graph,
    (xs, widths): (&[f64], &[f64]),
    middle: &dyn Fn(&Node) -> f64,
    (start, from, to): (usize, Option<usize>, usize),
    (class, tooltip): (&str, &str),
) {
    let mut points = Vec::new();
    if let Some(node) = from.and_then(|from| graph.place(from, start)) {
        points.push((xs[start] + widths[start], middle(node)));
    }
    let first = if from.is_some() { start + 1 } else { start };
    for column in first..graph.columns.len() {
        let own = from.and_then(|from| graph.place(from, column));
        let Some(node) = own.or_else(|| graph.place(to, column)) else { continue };
        points.push((xs[column], middle(node)));
        if !node.passes {
            break;
        }
        points.push((xs[column] + widths[column], middle(node)));
    }
    canvas.curve(&points, class, tooltip);
}
