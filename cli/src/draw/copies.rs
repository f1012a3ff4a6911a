//! Staged copies, in the section of iteration domains: for each axis of a tensor its size, what an instance has of it,
//! and the boxes that it is copied by.

use super::axes::{GAP, NARROW, NODE, ROW, SAID};
use super::canvas::{Anchor, Bounds, Canvas, measured};
use super::theme::{LABEL, NOTE, PART};
use crate::inspect::copied::CopyView;
use crate::inspect::view::StageView;

/// A staged copy: from the axes of its tensor to boxes, and what is known of its holes.
pub struct Copied {
    title: String,
    /// For each axis of the tensor: its size, what an instance has of it, and by which boxes.
    rows: Vec<[String; 3]>,
    note: String,
}

impl Copied {
    /// That of a stage.
    pub fn new(stage: &StageView, copy: &CopyView) -> Self {
        let way = if copy.way == "load" { "of" } else { "to" };
        let stage = super::named(&stage.name);
        let at = copy.at.as_ref().map_or_else(|| stage.clone(), |axis| format!("{stage}.{axis}"));
        let role = copy.role.as_ref().map_or_else(String::new, |role| format!(" by {role}"));
        let form = if copy.form == "tiles" { "via tma" } else { "via tma, by runs of memory" };
        let ring = if copy.ring > 1 { format!(", ring of {}", copy.ring) } else { String::new() };
        let swizzle = copy.swizzle.map_or_else(String::new, |span| format!(", swizzle {span}"));
        let title = format!("{} {way} {} in shared at {at} {form}{role}{ring}{swizzle}", copy.name, copy.tensor);
        let rows = copy.axes.iter().map(|axis| {
            let strided = match axis.element_stride {
                1 => String::new(),
                stride => format!(", one element in {stride}"),
            };
            [
                format!("{} {}", axis.name, axis.size),
                format!("{} from {}", axis.extent, axis.start),
                format!("{} × box of {}{strided}", axis.boxes, axis.box_size),
            ]
        });
        let zeros = match &copy.zeros_for[..] {
            [] => String::new(),
            list => format!("; in place of tests of {}", list.join(", ")),
        };
        Self { title, rows: rows.collect(), note: format!("it {}{zeros}", copy.holes) }
    }

    /// Widths of what is said of an axis, in a room for all of it.
    fn widths(&self, room: f64) -> [f64; 3] {
        let widths = [0, 1, 2].map(|n| {
            let widths = self.rows.iter().map(|row| measured(&row[n], LABEL.size) + 12.0);
            widths.fold(NARROW, f64::max)
        });
        let free = ((room - 2.0 * GAP) / widths.iter().sum::<f64>()).min(1.0);
        widths.map(|width| width * free)
    }

    /// The width of the rows, or of what is said of them, as far as that may be wider.
    pub fn width(&self) -> f64 {
        let rows = self.widths(f64::INFINITY).iter().sum::<f64>() + 2.0 * GAP;
        let said = measured(&self.title, PART.size).max(measured(&self.note, NOTE.size));
        rows.max(said.clamp(SAID[0], SAID[1]))
    }

    /// Draws it in a room, and tells where it has ended.
    pub fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64), room: f64) -> f64 {
        let mut y = canvas.paragraph((left, top + 12.0), room, PART, &self.title) - 9.0;
        let widths = self.widths(room);
        for row in &self.rows {
            let mut x = left;
            for (n, (text, width)) in row.iter().zip(widths).enumerate() {
                if n > 0 {
                    canvas.line((x - GAP, y + NODE / 2.0), (x, y + NODE / 2.0), "split");
                }
                canvas.rect(Bounds { x, y, width, height: NODE }, 4.0, if n == 2 { "box" } else { "axis" }, None);
                canvas.text((x + 6.0, y + 13.5), width - 11.0, Anchor::Start, LABEL, text);
                x += width + GAP;
            }
            y += ROW - 1.0;
        }
        canvas.paragraph((left, y + 10.0), room, NOTE, &self.note) + 6.0
    }
}
