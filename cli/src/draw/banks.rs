//! Section: how a tile lies in the banks of shared memory, and what one access of a warp touches there.
//!
//! A grid shows a slot in the order of its layout: a row is the innermost axis, or as many of the inner ones as it
//! takes to have some banks. The colour of a cell is the bank in which it really is, after swizzle and padding, so that
//! a column of one colour is a conflict for who reads it.

use super::canvas::{Anchor, Bounds, Canvas};
use super::theme::{self, NOTE, PART, SMALL, TICK};
use super::{LEFT, Scene};
use crate::inspect::memory::BufferView;
use crate::inspect::view::{SharedView, StageView};
use tilewright_compiler::plan::cycles::Request;
use tilewright_kernel::banks::{COUNT, WORD as BANK};
use tilewright_kernel::tensor_map::{GRANULE, Swizzle};

/// Bytes that a bank has next to each other.
const BANK_BYTES: u64 = BANK as u64;
/// Bytes after which banks repeat.
const PERIOD: u64 = BANK_BYTES * COUNT as u64;
/// The least bytes of a row; the most chunks and words of one; the rows of a grid, at least where these differ and
/// where they are alike, and at most.
const ROW_BYTES: u64 = 64;
const CELLS: [u64; 2] = [40, 66];
const ROWS: [u64; 2] = [8, 3];
const MOST_ROWS: u64 = 32;
/// Width of a cell by its bytes, and height.
const CHUNK: f64 = 24.0;
const WORD: f64 = 15.0;
const HEIGHT: f64 = 13.0;
/// The least room for what is said of a grid.
const SAID: f64 = 328.0;
/// Most grids of a buffer.
const MOST: usize = 2;
/// Room for the numbers of rows.
const NUMBERS: f64 = 34.0;

/// How a slot lies.
struct Tile<'a> {
    buffer: &'a BufferView,
    /// What is counted, outermost first: name, how many, elements between neighbours.
    places: Vec<(String, [i128; 2])>,
    swizzle: Swizzle,
}

/// A grid: a tile, cut into rows and cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// Bytes of a row, of a row without what is left free after it, and of a cell.
    row: u64,
    used: u64,
    cell: u64,
    /// How many of the outer counts a row does not have.
    outer: usize,
    /// Whether rows are just as many bytes as all banks have, and no axis.
    is_linear: bool,
}

/// What the section shows.
pub fn draw(scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
    let tiles: Vec<Tile<'_>> = scene.memory.buffers.iter().filter_map(|buffer| tile(scene, buffer)).collect();
    let grids: Vec<Grid<'_>> = tiles.iter().flat_map(|tile| grids(scene, tile)).collect();
    if grids.is_empty() {
        return top;
    }
    let what = "rows of a slot in the order of its layout; colour: the bank where a cell is; framed: what a warp's first \
                access touches";
    let mut y = super::heading(canvas, top, "Banks of shared memory", what);
    y = legend(canvas, y);
    super::flow(canvas, y, 28.0, &grids, Grid::width, Grid::draw)
}

/// The grids of a tile: one for each part that the first access of some stage touches, and one of a tile with a swizzle
/// that no thread accesses.
fn grids<'a>(scene: &'a Scene<'_>, tile: &'a Tile<'a>) -> Vec<Grid<'a>> {
    let uses = scene.stages.iter().flat_map(|stage| stage.shared.iter().map(move |found| (stage, found)));
    let uses = uses.filter(|(_, found)| found.buffer == tile.buffer.name);
    let mut all: Vec<Grid<'_>> = Vec::new();
    for (stage, found) in uses {
        let Some(request) = &found.request else { continue };
        let cut = tile.cut(Some(request.bytes));
        let (touched, said) = (touched(tile, cut, request), said(stage, found));
        match all.iter_mut().find(|grid| grid.cut == cut && cells(&grid.touched) == cells(&touched)) {
            Some(grid) if grid.said.contains(&said) => {}
            Some(grid) => grid.said.push(said),
            None => all.push(Grid { tile, cut, touched, said: vec![said], waste: waste(found) }),
        }
    }
    if all.is_empty() && tile.swizzle != Swizzle::None {
        let said = vec!["no thread accesses it: the accelerator and tensor cores do".to_owned()];
        all.push(Grid { tile, cut: tile.cut(None), touched: Vec::new(), said, waste: 0 });
    }
    // The slowest ones, if there are many.
    let count = all.len();
    all.sort_by_key(|grid| std::cmp::Reverse(grid.waste));
    all.truncate(MOST);
    if count > MOST {
        all.iter_mut().for_each(|grid| grid.said.push(format!("{MOST} of {count} accesses are shown")));
    }
    all
}

/// Cells of a tile in the order of its layout, each with the lanes that touch it.
type Touched = Vec<(u64, Vec<u32>)>;

fn cells(touched: &Touched) -> Vec<u64> {
    touched.iter().map(|cell| cell.0).collect()
}

/// The cells that an access touches, ascending.
fn touched(tile: &Tile<'_>, cut: Cut, request: &Request) -> Touched {
    let mut all: Touched = Vec::new();
    for (lane, start) in (0..).zip(&request.lanes) {
        let Some(start) = start else { continue };
        let mut own: Vec<u64> =
            (*start..start + u64::from(request.bytes)).map(|byte| tile.moved(byte) / cut.cell).collect();
        own.dedup();
        for cell in own {
            match all.iter_mut().find(|c| c.0 == cell) {
                Some((_, lanes)) if lanes.contains(&lane) => {}
                Some((_, lanes)) => lanes.push(lane),
                None => all.push((cell, vec![lane])),
            }
        }
    }
    all.sort();
    all
}

/// Cycles that conflicts cost the first access.
fn waste(found: &SharedView) -> u64 {
    found.cycles.map_or(0, |[taken, least, ..]| taken.saturating_sub(least))
}

/// Who accesses a buffer, and how long the first access takes.
fn said(stage: &StageView, found: &SharedView) -> String {
    let what = if found.write { "written" } else { "read" };
    let plural = |n: u64| if n == 1 { "1 cycle".to_owned() } else { format!("{n} cycles") };
    let cycles = match found.cycles {
        Some([taken, least, ..]) if taken == least => format!(": {}, no conflicts", plural(taken)),
        Some([taken, least, ..]) => format!(": {} in place of {least}", plural(taken)),
        None => String::new(),
    };
    format!("{what} by {}{cycles}", super::named(&stage.name))
}

/// The order of a buffer, if it is one of a stage or of a copy.
fn tile<'a>(scene: &Scene<'_>, buffer: &'a BufferView) -> Option<Tile<'a>> {
    let swizzle = |span: Option<u32>| span.and_then(Swizzle::with_span).unwrap_or(Swizzle::None);
    let copies = || scene.stages.iter().flat_map(|stage| &stage.copies);
    if let Some(copy) = copies().find(|copy| copy.name == buffer.name) {
        return Some(Tile { buffer, places: copy.places.clone(), swizzle: swizzle(copy.swizzle) });
    }
    let stage = scene.stages.iter().find(|stage| stage.name == buffer.name)?;
    let layout = stage.layout.as_ref()?;
    let mut places: Vec<(String, [i128; 2])> =
        layout.axes.iter().map(|(name, [extent, _, stride])| (name.clone(), [*extent, *stride])).collect();
    // Instances of threads lie side by side, element by element.
    if stage.owner == "thread" {
        places.clear();
    }
    Some(Tile { buffer, places, swizzle: swizzle(layout.swizzle) })
}

impl Tile<'_> {
    fn slot(&self) -> u64 {
        self.buffer.bytes / u64::from(self.buffer.slots)
    }

    /// How it is cut where lanes access so many bytes.
    fn cut(&self, bytes: Option<u32>) -> Cut {
        let element = u64::from(self.buffer.element.bytes());
        let positive = |n: i128| u64::try_from(n).unwrap_or(0) * element;
        // A row has inner counts until it is long enough.
        let mut found = None;
        for outer in (0..self.places.len()).rev() {
            let [count, stride] = self.places[outer].1;
            let used = positive(count * stride);
            let row = outer.checked_sub(1).map_or(used, |n| positive(self.places[n].1[1]));
            found = Some((row, used.min(row), outer));
            if row >= ROW_BYTES {
                break;
            }
        }
        let is_chunked = self.swizzle != Swizzle::None || bytes.is_some_and(|bytes| u64::from(bytes) == GRANULE);
        let linear = |cell: u64| Cut { row: PERIOD, used: PERIOD, cell, outer: 0, is_linear: true };
        let (cell, most) = if is_chunked { (GRANULE, CELLS[0]) } else { (BANK_BYTES, CELLS[1]) };
        match found {
            Some((row, used, outer)) if row > 0 && row % cell == 0 && row / cell <= most => {
                Cut { row, used, cell, outer, is_linear: false }
            }
            Some((row, used, outer)) if row > 0 && row % GRANULE == 0 && row / GRANULE <= CELLS[0] => {
                Cut { row, used, cell: GRANULE, outer, is_linear: false }
            }
            _ => linear(cell),
        }
    }

    /// The byte of the slot at which the byte with a number in the order of the layout really is; and back, which is
    /// the same.
    fn moved(&self, byte: u64) -> u64 {
        u32::try_from(byte).map_or(byte, |byte| self.swizzle.apply(byte).into())
    }
}

/// The bank of a byte.
fn bank(byte: u64) -> usize {
    (byte / BANK_BYTES) as usize % COUNT
}

struct Grid<'a> {
    tile: &'a Tile<'a>,
    cut: Cut,
    touched: Touched,
    said: Vec<String>,
    /// Cycles that conflicts cost.
    waste: u64,
}

impl Grid<'_> {
    fn width(&self) -> f64 {
        (NUMBERS + (self.cut.row / self.cut.cell) as f64 * self.cell_width()).max(SAID)
    }

    fn cell_width(&self) -> f64 {
        if self.cut.cell == GRANULE { CHUNK } else { WORD }
    }

    fn least_rows(&self) -> u64 {
        let alike = self.tile.swizzle == Swizzle::None && self.cut.row.is_multiple_of(PERIOD);
        ROWS[usize::from(alike)]
    }

    /// What rows and cells are.
    fn shape(&self, rows: u64, all: u64) -> String {
        let Cut { row, cell, outer, .. } = self.cut;
        let places = &self.tile.places;
        let names = |places: &[(String, [i128; 2])]| {
            let each = places.iter().map(|(name, [count, _])| format!("{name} {count}"));
            each.collect::<Vec<_>>().join(" · ")
        };
        let bytes = u64::from(self.tile.buffer.element.bytes()).max(1);
        let cells = match cell / bytes {
            0 => format!("cells of {cell} bytes"),
            1 => "cells of an element".to_owned(),
            n => format!("cells of {n} elements"),
        };
        let across = if self.cut.is_linear { format!("{row} bytes") } else { names(&places[outer..]) };
        let down = if self.cut.is_linear || outer == 0 {
            String::new()
        } else {
            format!("; down: {}", names(&places[..outer]))
        };
        let more = if rows < all { format!("; {rows} of {all} rows") } else { String::new() };
        format!("across: {across}, {cells}{down}{more}")
    }

    fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64), room: f64) -> f64 {
        let Cut { row, used, cell, .. } = self.cut;
        let width = self.cell_width();
        let all = self.tile.slot().div_ceil(row);
        let last = self.touched.iter().map(|(n, _)| n * cell / row + 1).max().unwrap_or(0);
        let rows = last.clamp(self.least_rows(), MOST_ROWS).min(all);
        let swizzle = match self.tile.swizzle {
            Swizzle::None => String::new(),
            swizzle => format!(", swizzle {}", swizzle.span()),
        };
        let title = format!("{}{swizzle}", super::named(&self.tile.buffer.name));
        canvas.text((left, top + 12.0), room, Anchor::Start, PART, &title);
        let mut top = canvas.paragraph((left, top + 27.0), room, NOTE, &self.said.join("; "));
        top = canvas.paragraph((left, top), room, NOTE, &self.shape(rows, all)) - 58.0;
        let y = |n: u64| top + 50.0 + HEIGHT * n as f64;
        let x = |column: u64| left + NUMBERS + width * column as f64;
        // After the frames, which would cover parts of them in narrow cells.
        let mut numbers: Vec<(f64, f64, String)> = Vec::new();
        for n in 0..rows {
            canvas.text((left, y(n) + 10.0), NUMBERS - 6.0, Anchor::End, TICK, &n.to_string());
            for column in 0..row / cell {
                let at = n * row + column * cell;
                if at >= self.tile.slot() {
                    continue;
                }
                let place = Bounds { x: x(column), y: y(n), width: width - 1.0, height: HEIGHT - 1.0 };
                let is_free = column * cell >= used;
                let first = bank(self.tile.moved(at));
                let class = if is_free { "idle".to_owned() } else { theme::bank(first) };
                canvas.rect(place, 0.0, &class, None);
                if !is_free && (n == 0 || column == 0 || self.tile.swizzle != Swizzle::None) {
                    numbers.push((x(column), y(n) + 9.5, first.to_string()));
                }
            }
        }
        for (number, lanes) in &self.touched {
            let (n, column) = (number * cell / row, number * cell % row / cell);
            if n < rows {
                let place = Bounds { x: x(column) + 0.5, y: y(n) + 0.5, width: width - 2.0, height: HEIGHT - 2.0 };
                let list: Vec<String> = lanes.iter().map(u32::to_string).collect();
                canvas.rect(place, 0.0, "touched", Some(&format!("lanes {}", list.join(", "))));
            }
        }
        for (x, y, number) in numbers {
            canvas.text((x, y), width - 1.0, Anchor::Middle, SMALL, &number);
        }
        y(rows) + 22.0
    }
}

/// The colour of each bank.
fn legend(canvas: &mut Canvas, top: f64) -> f64 {
    canvas.text((LEFT, top + 11.0), 60.0, Anchor::Start, NOTE, "banks");
    for n in 0..COUNT {
        let at = Bounds { x: LEFT + 60.0 + 20.0 * n as f64, y: top, width: 19.0, height: 14.0 };
        canvas.rect(at, 0.0, &theme::bank(n), None);
        canvas.text((at.x, top + 10.5), at.width, Anchor::Middle, SMALL, &n.to_string());
    }
    top + 28.0
}

/// The cells that are framed of a buffer, in its first grid: row, column, and the bank where each really is.
#[cfg(test)]
pub fn framed(scene: &Scene<'_>, name: &str) -> Vec<(u64, u64, usize)> {
    let buffer = scene.memory.buffers.iter().find(|buffer| buffer.name == name);
    let Some(tile) = buffer.and_then(|buffer| tile(scene, buffer)) else { return Vec::new() };
    let Some(grid) = grids(scene, &tile).into_iter().next() else { return Vec::new() };
    let Cut { row, cell, .. } = grid.cut;
    let place = |(number, _): &(u64, Vec<u32>)| {
        let at = number * cell;
        (at / row, at % row / cell, bank(grid.tile.moved(at)))
    };
    grid.touched.iter().map(place).collect()
}
