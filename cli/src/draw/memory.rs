//! Section: the shared memory of a block over time. From left to right the program, statement by statement; from the
//! top to the bottom the bytes, each stretch between two ends of buffers at least as high as its label.

use super::canvas::{Anchor, Bounds, Canvas, measured};
use super::theme::{self, LABEL, NOTE, TICK};
use super::{LEFT, Scene};
use crate::inspect::memory::{BufferView, MemoryView};

/// Room for offsets.
const OFFSETS: f64 = 64.0;
/// Height that all bytes share, and the least height of a stretch.
const HEIGHT: f64 = 240.0;
const LEAST: f64 = 18.0;
/// Of a map with few stretches, the height of each in the mean.
const EACH: f64 = 60.0;

/// What the section shows.
pub fn draw(scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
    let memory = &scene.memory;
    if memory.bytes == 0 || memory.phases.is_empty() {
        return top;
    }
    let aliases = memory.buffers.iter().filter(|b| b.in_place_of.is_some()).count();
    let aliases = match aliases {
        0 => String::new(),
        1 => "; 1 buffer lies in the place of another one".to_owned(),
        n => format!("; {n} buffers lie in the place of others"),
    };
    let what =
        format!("{} bytes; from left to right the program, downwards the bytes, not to scale{aliases}", memory.bytes);
    let mut y = super::heading(canvas, top, "Shared memory over time", &what);
    y = legend(canvas, memory, y);
    let room = canvas.width() - 2.0 * LEFT - OFFSETS;
    let scale = Scale::of(memory);
    let each = room / memory.phases.len() as f64;
    let x = |phase: usize| LEFT + OFFSETS + each * phase as f64;
    let under = y + 16.0;
    for (n, phase) in memory.phases.iter().enumerate() {
        canvas.text((x(n), y + 9.0), each - 2.0, Anchor::Middle, TICK, &format!("{}", n + 1));
        canvas.rect(
            Bounds { x: x(n), y: under, width: each, height: scale.height },
            0.0,
            "idle",
            Some(phase.statement.as_deref().unwrap_or("no statement")),
        );
    }
    for (offset, at) in scale.ends.iter().zip(&scale.places) {
        canvas.text((LEFT, under + at + 9.0), OFFSETS - 8.0, Anchor::End, TICK, &offset.to_string());
    }
    for buffer in &memory.buffers {
        let (left, right) = (x(buffer.first), x(buffer.last + 1));
        draw_buffer(canvas, buffer, &scale, (left + 1.0, under, right - left - 2.0));
    }
    if let (Some(first), true) = (memory.barriers.first(), memory.bytes > 0) {
        let at = scale.at(first.offset);
        let place = Bounds { x: LEFT + OFFSETS, y: under + at, width: room, height: scale.at(memory.bytes) - at };
        let count: u32 = memory.barriers.iter().map(|b| b.slots).sum();
        canvas.rect(place, 0.0, "wait", None);
        canvas.text((place.x + 5.0, place.y + 12.5), room - 10.0, Anchor::Start, LABEL, &format!("mbarriers: {count}"));
    }
    notes(canvas, memory, under + scale.height + 14.0)
}

/// The colours of slots, and what is dashed, if there is more than one colour.
fn legend(canvas: &mut Canvas, memory: &MemoryView, y: f64) -> f64 {
    let slots = memory.buffers.iter().map(|b| b.slots).max().unwrap_or(1);
    let is_shared = memory.buffers.iter().any(|b| b.in_place_of.is_some());
    if slots == 1 && !is_shared {
        return y;
    }
    let mut entries: Vec<(String, String)> = theme::slots(slots).collect();
    if memory.buffers.iter().any(|b| b.slots == 1) {
        entries.push((theme::slot(0, 1), "a buffer without slots".to_owned()));
    }
    if is_shared {
        entries.push((format!("{} free", theme::slot(0, 1)), "in the place of another one".to_owned()));
    }
    super::legend(canvas, y, &entries)
}

/// What the numbers of phases are, and what barriers tell.
fn notes(canvas: &mut Canvas, memory: &MemoryView, top: f64) -> f64 {
    let room = canvas.width() - 2.0 * LEFT;
    let mut y = top + 16.0;
    let mut first = 0;
    for alike in memory.phases.chunk_by(|a, b| a == b) {
        let phase = &alike[0];
        let role = phase.role.as_ref().map_or_else(String::new, |role| format!("{role}: "));
        let statement = phase.statement.as_deref().unwrap_or("of no statement");
        let numbers = if alike.len() == 1 {
            format!("{}", first + 1)
        } else {
            format!("{}–{}", first + 1, first + alike.len())
        };
        y = canvas.paragraph((LEFT, y), room, NOTE, &format!("{numbers} {role}{statement}")) + 0.6;
        first += alike.len();
    }
    if !memory.barriers.is_empty() {
        let each = memory.barriers.iter().map(|b| match b.slots {
            1 => b.name.clone(),
            slots => format!("{} ({slots} slots)", b.name),
        });
        y = canvas.paragraph((LEFT, y), room, NOTE, &format!("mbarriers: {}", each.collect::<Vec<_>>().join("; ")));
    }
    y + 10.0
}

fn draw_buffer(canvas: &mut Canvas, buffer: &BufferView, scale: &Scale, (x, y, width): (f64, f64, f64)) {
    let BufferView { name, offset, bytes, slots, in_place_of, element, .. } = buffer;
    let (first, end) = (scale.at(*offset), scale.at(offset + bytes));
    let slot = (end - first) / f64::from(*slots);
    let name = super::named(name);
    let other = in_place_of.as_ref().map(|other| super::named(other)).map_or_else(String::new, |other| {
        if other == name { ", in the place of the one before".to_owned() } else { format!(", in the place of {other}") }
    });
    let all = if *slots == 1 { String::new() } else { format!(", {slots} slots") };
    let what = format!("{name}: {bytes} bytes of {element} at {offset}{all}{other}");
    for n in 0..*slots {
        let at = Bounds { x, y: y + first + slot * f64::from(n), width, height: slot };
        let class = theme::slot(n as usize, *slots);
        let class = if in_place_of.is_some() { format!("{class} free") } else { class };
        let tooltip = if *slots == 1 { what.clone() } else { format!("slot {n} of {what}") };
        // Lines between statements are not seen through it.
        canvas.rect(at, 0.0, "paper", None);
        canvas.rect(at, 0.0, &class, Some(&tooltip));
    }
    // As much as there is room for, the whole as a tooltip of the buffer.
    let shorter = [what.clone(), format!("{name}: {bytes} bytes"), name.clone()];
    let fits = |text: &&String| measured(text, LABEL.size) <= width - 10.0;
    let label = shorter.iter().find(fits).unwrap_or(&name);
    canvas.text((x + 5.0, y + first + 12.5), width - 10.0, Anchor::Start, LABEL, label);
}

/// Where bytes are on the page.
struct Scale {
    /// Where something begins or ends, ascending.
    ends: Vec<u64>,
    /// How far down each of them is.
    places: Vec<f64>,
    height: f64,
}

impl Scale {
    fn of(memory: &MemoryView) -> Self {
        let own = memory.buffers.iter().flat_map(|b| [b.offset, b.offset + b.bytes]);
        let barriers = memory.barriers.first().map(|b| b.offset);
        let mut ends: Vec<u64> = own.chain(barriers).chain([0, memory.bytes]).collect();
        ends.sort_unstable();
        ends.dedup();
        let (mut places, mut at) = (vec![0.0], 0.0);
        let height = HEIGHT.min(EACH * (ends.len() - 1) as f64);
        for pair in ends.windows(2) {
            at += (height * (pair[1] - pair[0]) as f64 / memory.bytes as f64).max(LEAST);
            places.push(at);
        }
        Self { ends, places, height: at }
    }

    /// How far down a byte is.
    fn at(&self, byte: u64) -> f64 {
        let next = self.ends.partition_point(|end| *end < byte).min(self.ends.len() - 1);
        if self.ends[next] == byte || next == 0 {
            return self.places[next];
        }
        let (from, to) = (self.ends[next - 1], self.ends[next]);
        let part = (byte - from) as f64 / (to - from) as f64;
        self.places[next - 1] + part * (self.places[next] - self.places[next - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_their_order_and_labels_have_room() {
        let buffer = |name: &str, offset: u64, bytes: u64| BufferView {
            name: name.to_owned(),
            element: tilewright_kernel::ElementType::F32,
            offset,
            bytes,
            slots: 1,
            in_place_of: None,
            first: 0,
            last: 0,
        };
        let buffers = vec![buffer("a", 0, 64), buffer("b", 64, 99_936)];
        let memory = MemoryView { bytes: 100_000, buffers, barriers: Vec::new(), phases: Vec::new() };
        let scale = Scale::of(&memory);
        assert_eq!(scale.ends, [0, 64, 100_000]);
        assert!(scale.at(64) >= LEAST && scale.at(100_000) == scale.height);
        let all: Vec<f64> = [0, 1, 63, 64, 65, 99_999, 100_000].map(|byte| scale.at(byte)).to_vec();
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    }
}
