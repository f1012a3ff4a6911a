//! Section: what a block reads and writes of each tensor, and the box that one copy of the accelerator moves.
//!
//! A tensor is drawn by its last two dimensions, to scale as far as it can be seen; of others the first block's indices
//! are named.

use super::canvas::{Anchor, Bounds, Canvas};
use super::theme::{NOTE, PART, TICK};
use super::{LEFT, Scene};
use crate::inspect::boxes::{BoxView, Span};

/// Most room for a tensor, and the least that is seen of anything.
const WIDE: f64 = 300.0;
const HIGH: f64 = 170.0;
const LEAST: f64 = 3.0;
/// The least width of a tensor, and the least height.
const FEWEST: f64 = 60.0;
const STRIP: f64 = 24.0;
/// Width of a panel, and between panels.
const PANEL: f64 = 328.0;
const GAP: f64 = 28.0;
/// Most lines between blocks.
const LINES: i128 = 64;
/// Pixels between them, at least.
const CLOSEST: f64 = 6.0;

/// Accesses of a tensor with the same boxes.
struct Panel<'a> {
    boxes: &'a BoxView,
    who: Vec<String>,
}

/// What the section shows.
pub fn draw(scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for boxes in &scene.boxes {
        let who = match &boxes.copy {
            Some(copy) => format!("{} by way of {copy}", boxes.stage),
            None => boxes.stage.clone(),
        };
        let look = |b: &BoxView| (b.tensor.clone(), b.write, b.first.clone(), b.last.clone(), b.tile.clone());
        match panels.iter_mut().find(|panel| look(panel.boxes) == look(boxes)) {
            Some(panel) => panel.who.push(who),
            None => panels.push(Panel { boxes, who: vec![who] }),
        }
    }
    // Scalars and empty tensors have no picture.
    panels.retain(|panel| !panel.boxes.shape.is_empty() && panel.boxes.shape.iter().all(|extent| *extent > 0));
    if panels.is_empty() {
        return top;
    }
    let what = "filled: the first block; dashed: the last one, red past the ends; framed: a box of a copy";
    let mut y = super::heading(canvas, top, "Boxes over tensors", what);
    let each = ((canvas.width() - 2.0 * LEFT + GAP) / (PANEL + GAP)).floor().max(1.0) as usize;
    for row in panels.chunks(each) {
        let ends = row.iter().enumerate().map(|(n, panel)| panel.draw(canvas, (LEFT + n as f64 * (PANEL + GAP), y)));
        y = ends.fold(y, f64::max);
    }
    y
}

/// Pixels of an element along the last dimension and the one before it: to scale, unless that leaves too little of one
/// to be seen. A tensor of one dimension is a strip.
fn pixels(boxes: &BoxView) -> [f64; 2] {
    let rank = boxes.shape.len();
    let reach = |dim: usize| boxes.shape[dim].max(boxes.last[dim].0 + boxes.last[dim].1).max(1) as f64;
    let columns = reach(rank - 1);
    let Some(rows) = rank.checked_sub(2).map(reach) else { return [WIDE / columns, STRIP] };
    let even = (WIDE / columns).min(HIGH / rows);
    [even.max(FEWEST / columns), even.max(STRIP / rows)]
}

impl Panel<'_> {
    fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64)) -> f64 {
        let Self { boxes, who } = self;
        let shape: Vec<String> = boxes.shape.iter().map(i128::to_string).collect();
        let title = format!("{}[{}]", boxes.tensor, shape.join(", "));
        canvas.text((left, top + 12.0), PANEL, Anchor::Start, PART, &title);
        let rank = boxes.shape.len();
        let verb = if boxes.write { "written" } else { "read" };
        let mut y = canvas.paragraph((left, top + 27.0), PANEL, NOTE, &format!("{verb} by {}", who.join("; ")));
        let range = |(start, length): &Span| format!("{start}..{}", start + length);
        let ranges = |spans: &[Span]| spans.iter().map(range).collect::<Vec<_>>().join(", ");
        y = canvas.paragraph((left, y), PANEL, NOTE, &format!("first block [{}]", ranges(&boxes.first)));
        if let Some(tile) = &boxes.tile {
            let sizes: Vec<String> = tile.iter().map(|span| span.1.to_string()).collect();
            y = canvas.paragraph((left, y), PANEL, NOTE, &format!("box of a copy: {}", sizes.join(" × ")));
        }
        y -= 6.0;
        let [across, down] = pixels(boxes);
        let rectangle = |spans: &[Span]| {
            let (column, columns) = spans[rank - 1];
            let (row, rows) = rank.checked_sub(2).map_or((0, 1), |dim| spans[dim]);
            let (width, height) = (columns as f64 * across, rows as f64 * down);
            let (x, y) = (left + column as f64 * across, y + row as f64 * down);
            Bounds { x, y, width: width.max(LEAST), height: height.max(LEAST) }
        };
        let whole: Vec<Span> = boxes.shape.iter().map(|extent| (0, *extent)).collect();
        let tensor = rectangle(&whole);
        canvas.rect(tensor, 0.0, "idle", Some(&title));
        self.lines(canvas, tensor, &rectangle);
        let tooltip = |what: &str, spans: &[Span]| format!("{what}: [{}]", ranges(spans));
        if boxes.last != boxes.first {
            let (last, tooltip) = (rectangle(&boxes.last), tooltip("last block", &boxes.last));
            let past = boxes.last.iter().zip(&boxes.shape).any(|((start, length), extent)| start + length > *extent);
            canvas.rect(last, 0.0, if past { "hole free" } else { "box free" }, Some(&tooltip));
        }
        canvas.rect(
            rectangle(&boxes.first),
            0.0,
            if boxes.write { "vector" } else { "box" },
            Some(&tooltip("first block", &boxes.first)),
        );
        if let Some(tile) = &boxes.tile {
            canvas.rect(rectangle(tile), 0.0, "touched", Some(&tooltip("box of a copy", tile)));
        }
        canvas.rect(tensor, 0.0, "frame", None);
        let reach = |spans: &[Span]| rectangle(spans).y + rectangle(spans).height;
        let bottom = reach(&whole).max(reach(&boxes.last)).max(reach(&boxes.first));
        if across != down && rank > 1 {
            canvas.text((left, bottom + 11.0), PANEL, Anchor::Start, TICK, "not to scale");
        }
        bottom + 30.0
    }

    /// Lines between blocks, where these follow each other without a gap.
    fn lines(&self, canvas: &mut Canvas, tensor: Bounds, rectangle: &dyn Fn(&[Span]) -> Bounds) {
        let BoxView { shape, first, .. } = self.boxes;
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
