//! Section: what each role does over time, from a trace of the first block: see `replay` for what time is.
//!
//! A row is one warp of a role: bars of work in the colour of the slot that it has waited for last, bars of waits,
//! marks where it arrives at an mbarrier. Under it are the copies that it starts, each slot of a buffer in a line of
//! its own.

use tilewright_emulator::trace::SharedPlace;

use super::canvas::{Anchor, Bounds, Canvas, measured};
use super::replay::{Awaited, COPY, Copied, Stretch, Times};
use super::theme::{self, LABEL, NOTE, TICK};
use super::{LEFT, Scene};
use crate::inspect::memory::MemoryView;

/// Room for names.
const NAMES: f64 = 130.0;
/// Height of a bar, and of a line of copies.
const BAR: f64 = 18.0;
const COPIES: f64 = 7.0;
/// Room above a bar for marks, and between rows.
const MARKS: f64 = 9.0;
const BETWEEN: f64 = 12.0;
/// Times between which there is a number, at least, in pixels.
const TICKS: f64 = 90.0;

/// What the section shows.
pub fn draw(scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
    let Some(trace) = scene.trace.as_ref().filter(|trace| !trace.events.is_empty()) else { return top };
    let times = Times::of(trace);
    let view = View::new(scene, &times, canvas.width());
    let all = times.end();
    let shown = if view.end < all {
        format!("the first {} of {all} instructions", view.end)
    } else {
        format!("{all} instructions")
    };
    let stopped = if trace.complete { "" } else { ", where the trace ends" };
    let y = super::heading(
        canvas,
        top,
        "Roles over time",
        "the first block on the emulator; a mark: it arrives at an mbarrier",
    );
    let what = format!(
        "time counts instructions of a warp, {shown}{stopped}; a copy is drawn to take {COPY}; waits last until what they \
         are for; colours: the slot that a warp has waited for last, and the slot of a copy"
    );
    let mut y = canvas.paragraph((LEFT, y + 6.0), canvas.width() - 2.0 * LEFT, NOTE, &what);
    y = view.legend(canvas, y - 4.0);
    let rows = rows(scene);
    let bottom = rows.iter().fold(y + 14.0, |y, row| y + view.height(row.1));
    view.ticks(canvas, y, bottom);
    y += 14.0;
    for (name, warp) in rows {
        y = view.row(canvas, y, &name, warp);
    }
    y + 14.0
}

/// A name and the warp that stands for it: the first one of each role.
fn rows(scene: &Scene<'_>) -> Vec<(String, u32)> {
    let roles = scene.entry.roles();
    if roles.is_empty() {
        return vec![("warp 0".to_owned(), 0)];
    }
    roles.iter().map(|role| (format!("{} (warp {})", role.name, role.warps.start), role.warps.start)).collect()
}

struct View<'a> {
    memory: &'a MemoryView,
    times: &'a Times,
    /// Where time is on the page.
    left: f64,
    scale: f64,
    /// The last time that is shown.
    end: u64,
}

impl<'a> View<'a> {
    fn new(scene: &'a Scene<'_>, times: &'a Times, width: f64) -> Self {
        let room = width - 2.0 * LEFT - NAMES;
        let memory = &scene.memory;
        let end = window(memory, times).max(1);
        Self { memory, times, left: LEFT + NAMES, scale: room / end as f64, end }
    }

    fn x(&self, time: u64) -> f64 {
        self.left + self.scale * time.min(self.end) as f64
    }

    /// The colours of slots, as many as rings have.
    fn legend(&self, canvas: &mut Canvas, y: f64) -> f64 {
        let slots = self.memory.buffers.iter().map(|b| b.slots);
        let mut entries: Vec<(String, String)> = theme::slots(slots.max().unwrap_or(1)).collect();
        let copied = self.times.copies.iter().filter_map(|copy| self.slot_of(copy));
        if copied.map(|(buffer, _)| self.memory.buffers[buffer].slots).any(|slots| slots == 1) {
            entries.push((theme::slot(0, 1), "a copy of a buffer without slots".to_owned()));
        }
        entries.push(("work".to_owned(), "other work".to_owned()));
        entries.push(("wait".to_owned(), "waits".to_owned()));
        super::legend(canvas, y, &entries)
    }

    fn ticks(&self, canvas: &mut Canvas, top: f64, bottom: f64) {
        let step = nice(TICKS / self.scale);
        for time in (0..=self.end).step_by(step as usize) {
            let x = self.x(time);
            canvas.line((x, top + 10.0), (x, bottom), "tick");
            let room = (canvas.width() - x).min(60.0);
            canvas.text((x, top + 7.0), room, Anchor::Start, TICK, &time.to_string());
        }
    }

    /// The copies of a warp, each with its line.
    fn copies(&self, warp: u32) -> Vec<(&Copied, usize)> {
        let own = self.times.copies.iter().filter(|copy| copy.warp == warp && copy.start < self.end);
        let mut lines: Vec<(usize, usize)> = own.clone().filter_map(|copy| self.slot_of(copy)).collect();
        lines.sort_unstable();
        lines.dedup();
        let line = |copy: &Copied| self.slot_of(copy).and_then(|slot| lines.binary_search(&slot).ok());
        own.filter_map(|copy| Some((copy, line(copy)?))).collect()
    }

    fn height(&self, warp: u32) -> f64 {
        let lines = self.copies(warp).iter().map(|copy| copy.1 + 1).max().unwrap_or(0);
        MARKS + BAR + COPIES * lines as f64 + BETWEEN
    }

    /// The buffer and the slot of a copy.
    fn slot_of(&self, copy: &Copied) -> Option<(usize, usize)> {
        let holds = |b: &crate::inspect::memory::BufferView| (b.offset..b.offset + b.bytes).contains(&copy.to.offset);
        let at = self.memory.buffers.iter().position(holds)?;
        let buffer = &self.memory.buffers[at];
        let slot = (copy.to.offset - buffer.offset) / (buffer.bytes / u64::from(buffer.slots)).max(1);
        Some((at, slot as usize))
    }

    /// What an mbarrier tells, and its slot if there are several.
    fn barrier(&self, at: SharedPlace) -> (String, Option<usize>) {
        let bytes = |b: &crate::inspect::memory::BarrierView| u64::from(b.slots) * 8;
        let found = self.memory.barriers.iter().find(|b| (b.offset..b.offset + bytes(b)).contains(&at.offset));
        let Some(found) = found else { return (format!("mbarrier at {}", at.offset), None) };
        let slot = (at.offset - found.offset) as usize / 8;
        let of = if at.rank == 0 { String::new() } else { format!(" of block {}", at.rank) };
        match found.slots {
            1 => (format!("{}{of}", found.name), None),
            _ => (format!("{}, slot {slot}{of}", found.name), Some(slot)),
        }
    }

    fn row(&self, canvas: &mut Canvas, top: f64, name: &str, warp: u32) -> f64 {
        let y = top + MARKS;
        canvas.text((LEFT, y + 12.5), NAMES - 10.0, Anchor::Start, LABEL, name);
        let Some(times) = self.times.warps.get(warp as usize) else { return top + self.height(warp) };
        for stretch in times.stretches.iter().filter(|s| s.start < self.end) {
            let Stretch { start, end, waits, after } = stretch;
            let (class, tooltip) = match waits {
                None => {
                    let after = after.map(|at| self.barrier(at));
                    let class = after.as_ref().and_then(|a| a.1).map_or_else(|| "work".to_owned(), theme::hue);
                    let after = after.map_or_else(String::new, |a| format!(", after it has waited for: {}", a.0));
                    (class, format!("{start}..{end}: works{after}"))
                }
                Some(what) => {
                    let what = match what {
                        Awaited::Mbarrier(at) => self.barrier(*at).0,
                        Awaited::Copies => "its own copies".to_owned(),
                        Awaited::Block => "all warps of a barrier".to_owned(),
                        Awaited::Cluster => "the blocks of the cluster".to_owned(),
                    };
                    ("wait".to_owned(), format!("{start}..{end}: waits for: {what}"))
                }
            };
            let (left, right) = (self.x(*start), self.x(*end));
            canvas.rect(Bounds { x: left, y, width: right - left, height: BAR }, 0.0, &class, Some(&tooltip));
            if waits.is_some() {
                let text = if let Some(Awaited::Mbarrier(at)) = waits { self.barrier(*at).0 } else { String::new() };
                let room = right - left - 6.0;
                // The tooltip says it where there is no room.
                if measured(&text, TICK.size) <= room {
                    canvas.text((left + 3.0, y + 12.0), room, Anchor::Start, TICK, &text);
                }
            }
        }
        for (time, at) in times.arrivals.iter().filter(|arrival| arrival.0 < self.end) {
            let tooltip = format!("{time}: arrives at: {}", self.barrier(*at).0);
            canvas.mark((self.x(*time), y - 1.0), 7.0, "hole", &tooltip);
        }
        for (copy, line) in self.copies(warp) {
            let Some((buffer, slot)) = self.slot_of(copy) else { continue };
            let (left, right) = (self.x(copy.start), self.x(copy.end));
            let at =
                Bounds { x: left, y: y + BAR + 2.0 + COPIES * line as f64, width: right - left, height: COPIES - 2.0 };
            let way = if copy.store { "from" } else { "to" };
            let name = super::named(&self.memory.buffers[buffer].name);
            let tooltip = format!("{}..{}: copy {way} {name}, slot {slot}", copy.start, copy.end);
            canvas.rect(at, 0.0, &theme::slot(slot, self.memory.buffers[buffer].slots), Some(&tooltip));
        }
        top + self.height(warp)
    }
}

/// The last time that is worth showing: when the slots of each ring have been used twice and some more, or all of it.
fn window(memory: &MemoryView, times: &Times) -> u64 {
    let all = times.end();
    let mut end = 0;
    for barrier in &memory.barriers {
        let own = |at: &SharedPlace| {
            at.rank == 0 && (barrier.offset..barrier.offset + u64::from(barrier.slots) * 8).contains(&at.offset)
        };
        let mut ends: Vec<u64> = times.phases.iter().filter(|p| own(p.0)).flat_map(|p| p.1.iter().copied()).collect();
        ends.sort_unstable();
        let uses = 2 * barrier.slots as usize + 2;
        // One that is used no more than that, such as of a tile for all of the block, does not need more time.
        end = end.max(ends.get(uses).copied().unwrap_or(0));
    }
    if end == 0 || end + end / 4 > all { all } else { end }
}

/// The least number of the form 1, 2 or 5 times a power of ten that is not below another one.
fn nice(least: f64) -> u64 {
    let steps = (0..18).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    steps.into_iter().find(|step| *step as f64 >= least).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::nice;

    #[test]
    fn ticks_are_at_round_numbers() {
        assert_eq!([0.1, 1.0, 1.5, 3.0, 50.0, 51.0, 7000.0].map(nice), [1, 1, 2, 5, 50, 100, 10_000]);
    }
}
