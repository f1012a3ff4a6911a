//! Section: what a block reads and writes of each tensor, and the box that one copy of the accelerator moves.
//!
//! A tensor is drawn by its last two dimensions, to scale as far as it can be seen; of others the first block's indices
//! are named. What lies past its ends is red, whichever block has it there. Accesses of one stage whose boxes are as
//! large and touch each other, such as those of a stencil, are one panel with the box around all of them.

use super::Scene;
use super::canvas::{Anchor, Bounds, Canvas, measured};
use super::theme::{NOTE, PART, TICK};
use crate::inspect::boxes::{BoxView, Span};

/// Most room for a tensor, and the least that is seen of anything.
const WIDE: f64 = 300.0;
const HIGH: f64 = 170.0;
const LEAST: f64 = 3.0;
/// The least width of a tensor, and the least height.
const FEWEST: f64 = 60.0;
const STRIP: f64 = 24.0;
/// Width of a panel, at least and at most, and between panels.
const PANEL: [f64; 2] = [238.0, 328.0];
const GAP: f64 = 28.0;
/// Most lines between blocks.
const LINES: i128 = 64;
/// Pixels between them, at least.
const CLOSEST: f64 = 6.0;

/// Accesses of a tensor that are drawn as one.
struct Panel {
    /// The box around theirs.
    boxes: BoxView,
    /// Stages, and how many accesses of each there are.
    who: Vec<(String, usize)>,
}

/// What the section shows.
pub fn draw(scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
    // Scalars and empty tensors have no picture.
    let is_seen = |b: &&BoxView| !b.shape.is_empty() && b.shape.iter().all(|extent| *extent > 0);
    let panels = panels(scene.boxes.iter().filter(is_seen));
    if panels.is_empty() {
        return top;
    }
    let what = "filled: the first block, blue what it reads, pink what it writes; dashed: the last block; red: past the \
                ends; framed: a box of a copy";
    let y = super::heading(canvas, top, "Boxes over tensors", what);
    super::flow(canvas, y, GAP, &panels, Panel::width, Panel::draw)
}

/// The panels of boxes: the same ones of several stages together, and then those of one stage beside each other.
fn panels<'a>(all: impl Iterator<Item = &'a BoxView>) -> Vec<Panel> {
    let mut panels: Vec<(Panel, Vec<&BoxView>)> = Vec::new();
    for boxes in all {
        let is_near = |other: &BoxView| {
            (&other.stage, &other.copy, &other.tile) == (&boxes.stage, &boxes.copy, &boxes.tile)
                && is_beside(&other.first, &boxes.first)
                && is_beside(&other.last, &boxes.last)
        };
        let of_tensor = |other: &BoxView| other.tensor == boxes.tensor && other.write == boxes.write;
        match panels.iter_mut().find(|(_, others)| others.iter().any(|o| of_tensor(o) && is_near(o))) {
            Some((panel, others)) => {
                panel.boxes.first = around(&panel.boxes.first, &boxes.first);
                panel.boxes.last = around(&panel.boxes.last, &boxes.last);
                panel.who[0].1 += 1;
                others.push(boxes);
            }
            None => panels.push((Panel { boxes: boxes.clone(), who: vec![(who(boxes), 1)] }, vec![boxes])),
        }
    }
    let mut merged: Vec<Panel> = Vec::new();
    for (panel, _) in panels {
        let look = |b: &BoxView| (b.tensor.clone(), b.write, b.first.clone(), b.last.clone(), b.tile.clone());
        match merged.iter_mut().find(|other| look(&other.boxes) == look(&panel.boxes)) {
            Some(other) => other.who.extend(panel.who),
            None => merged.push(panel),
        }
    }
    merged
}

/// The stage of an access, and the copy that it goes through.
fn who(boxes: &BoxView) -> String {
    let stage = super::named(&boxes.stage);
    boxes.copy.as_ref().map_or_else(|| stage.clone(), |copy| format!("{stage} by way of {copy}"))
}

/// Whether two boxes are as large, and overlap or touch each other.
fn is_beside(a: &[Span], b: &[Span]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.1 == b.1 && (a.0 - b.0).abs() <= a.1)
}

/// The least box with both.
fn around(a: &[Span], b: &[Span]) -> Vec<Span> {
    let both = |(a, b): (&Span, &Span)| {
        let start = a.0.min(b.0);
        (start, (a.0 + a.1).max(b.0 + b.1) - start)
    };
    a.iter().zip(b).map(both).collect()
}

/// The part of a box inside its tensor, if there is one.
fn inside(spans: &[Span], shape: &[i128]) -> Option<Vec<Span>> {
    let part = |((start, length), extent): (&Span, &i128)| {
        let (first, end) = ((*start).max(0), (start + length).min(*extent));
        (first < end).then_some((first, end - first))
    };
    spans.iter().zip(shape).map(part).collect()
}

fn ranges(spans: &[Span]) -> String {
    let each = spans.iter().map(|(start, length)| format!("{start}..{}", start + length));
    each.collect::<Vec<_>>().join(", ")
}

/// Pixels of an element along the last dimension and the one before it: to scale, unless that leaves too little of one
/// to be seen. A tensor of one dimension is a strip.
fn pixels(boxes: &BoxView) -> [f64; 2] {
    let rank = boxes.shape.len();
    let reach = |dim: usize| {
        let ends = [boxes.shape[dim], boxes.last[dim].0 + boxes.last[dim].1, boxes.first[dim].0 + boxes.first[dim].1];
        (ends.into_iter().max().unwrap_or(1) + (-boxes.first[dim].0).max(0)).max(1) as f64
    };
    let columns = reach(rank - 1);
    let Some(rows) = rank.checked_sub(2).map(reach) else { return [WIDE / columns, STRIP] };
    let even = (WIDE / columns).min(HIGH / rows);
    [even.max(FEWEST / columns), even.max(STRIP / rows)]
}

impl Panel {
    /// The name of the tensor, and what is said of it.
    fn said(&self) -> (String, Vec<String>) {
        let Self { boxes, who } = self;
        let shape: Vec<String> = boxes.shape.iter().map(i128::to_string).collect();
        let title = format!("{}[{}]", boxes.tensor, shape.join(", "));
        let verb = if boxes.write { "written" } else { "read" };
        let who = who.iter().map(|(stage, count)| match count {
            1 => stage.clone(),
            n => format!("{stage} at {n} places"),
        });
        let mut said = vec![format!("{verb} by {}", who.collect::<Vec<_>>().join("; "))];
        said.push(format!("first block [{}]", ranges(&boxes.first)));
        if let Some(tile) = &boxes.tile {
            let sizes: Vec<String> = tile.iter().map(|span| span.1.to_string()).collect();
            said.push(format!("box of a copy: {}", sizes.join(" × ")));
        }
        (title, said)
    }

    fn width(&self) -> f64 {
        let (title, said) = self.said();
        let said = said.iter().map(|text| measured(text, NOTE.size)).fold(measured(&title, PART.size), f64::max);
        let reach = self.place((0.0, 0.0), &self.boxes.last).x + self.place((0.0, 0.0), &self.boxes.last).width;
        said.clamp(PANEL[0], PANEL[1]).max(reach.min(PANEL[1]))
    }

    /// Where a box is on the page, of a tensor with this upper left corner.
    fn place(&self, (left, top): (f64, f64), spans: &[Span]) -> Bounds {
        let rank = spans.len();
        let [across, down] = pixels(&self.boxes);
        let (column, columns) = spans[rank - 1];
        let (row, rows) = rank.checked_sub(2).map_or((0, 1), |dim| spans[dim]);
        let (width, height) = (columns as f64 * across, rows as f64 * down);
        let (x, y) = (left + column as f64 * across, top + row as f64 * down);
        Bounds { x, y, width: width.max(LEAST), height: height.max(LEAST) }
    }

    fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64), room: f64) -> f64 {
        let Self { boxes, .. } = self;
        let (title, said) = self.said();
        canvas.text((left, top + 12.0), room, Anchor::Start, PART, &title);
        let y = said.iter().fold(top + 27.0, |y, text| canvas.paragraph((left, y), room, NOTE, text)) - 6.0;
        let whole: Vec<Span> = boxes.shape.iter().map(|extent| (0, *extent)).collect();
        // Indices before the first element have room too.
        let [across, down] = pixels(boxes);
        let before = |spans: &[Span], dim: Option<usize>| dim.map_or(0, |dim| (-spans[dim].0).max(0)) as f64;
        let rank = boxes.shape.len();
        let first = [before(&boxes.first, rank.checked_sub(1)), before(&boxes.first, rank.checked_sub(2))];
        let corner = (left + first[0] * across, y + first[1] * down);
        let rectangle = |spans: &[Span]| self.place(corner, spans);
        let tensor = rectangle(&whole);
        let tooltip = |what: &str, spans: &[Span]| format!("{what}: [{}]", ranges(spans));
        // The tensor lies over what is past its ends.
        let blocks = [("last block", &boxes.last), ("first block", &boxes.first)];
        for (what, spans) in blocks {
            if inside(spans, &boxes.shape).as_ref() != Some(spans) {
                canvas.rect(rectangle(spans), 0.0, "hole free", Some(&tooltip(what, spans)));
            }
        }
        canvas.rect(tensor, 0.0, "idle", Some(&title));
        self.lines(canvas, tensor, &rectangle);
        let class = if boxes.write { "vector" } else { "box" };
        for (what, spans) in blocks.iter().skip(usize::from(boxes.last == boxes.first)) {
            let class = if *what == "first block" { class.to_owned() } else { format!("{class} free") };
            if let Some(part) = inside(spans, &boxes.shape) {
                canvas.rect(rectangle(&part), 0.0, &class, Some(&tooltip(what, spans)));
            }
        }
        if let Some(tile) = &boxes.tile {
            canvas.rect(rectangle(tile), 0.0, "touched", Some(&tooltip("box of a copy", tile)));
        }
        canvas.rect(tensor, 0.0, "frame", None);
        let reach = |spans: &[Span]| rectangle(spans).y + rectangle(spans).height;
        let bottom = reach(&whole).max(reach(&boxes.last)).max(reach(&boxes.first));
        if across != down && rank > 1 {
            canvas.text((left, bottom + 11.0), room, Anchor::Start, TICK, "not to scale");
        }
        bottom + 30.0
    }

    /// Lines between blocks, where these follow each other without a gap.
    fn lines(&self, canvas: &mut Canvas, tensor: Bounds, rectangle: &dyn Fn(&[Span]) -> Bounds) {
        let BoxView { shape, first, .. } = &self.boxes;
        let rank = shape.len();
        for dim in rank.saturating_sub(2)..rank {
            let (start, length) = first[dim];
            let last = self.boxes.last[dim];
            if start != 0 || length <= 0 || last.0 % length != 0 || last.0 == 0 || shape[dim] / length > LINES {
                continue;
            }
            let own = rectangle(first);
            if (if dim + 1 == rank { own.width } else { own.height }) < CLOSEST {
                continue;
            }
            let mut at = first.clone();
            for n in 1..=(shape[dim] - 1) / length {
                at[dim].0 = n * length;
                let place = rectangle(&at);
                let (from, to) = match dim + 1 == rank {
                    true => ((place.x, tensor.y), (place.x, tensor.y + tensor.height)),
                    false => ((tensor.x, place.y), (tensor.x + tensor.width, place.y)),
                };
                canvas.line(from, to, "order");
            }
        }
    }
}
