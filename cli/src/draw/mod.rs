//! `tilewright draw`: one picture of one kernel, as SVG that needs nothing beside itself.
//!
//! What is drawn are the facts of `tilewright inspect` (`inspect::view` and the rooms beside it), with a value for each
//! dimension if the user gives them, and the trace of one block on the emulator. Sections stand one below the other; a
//! section that has nothing to show is left out.
//!
//! | file | what it draws |
//! | --- | --- |
//! | `canvas` | shapes and texts: nothing wider than its room |
//! | `theme` | colours, light and dark |
//! | `axes` | iteration domains |
//! | `copies` | staged copies, beside these |
//! | `boxes` | what a block accesses of each tensor |
//! | `threads` | which threads run what |
//! | `replay` | the times of a trace, as if all warps ran at once |
//! | `timeline` | what roles do over time |
//! | `memory` | shared memory over time |
//! | `banks` | how tiles lie in the banks of shared memory |

mod axes;
mod banks;
mod boxes;
pub mod canvas;
mod copies;
mod memory;
mod replay;
#[cfg(test)]
mod tests;
mod theme;
mod threads;
mod timeline;

use std::io::Write as _;

use canvas::{Anchor, Bounds, Canvas};
use clap::ValueEnum;
use theme::{HEADING, NOTE};
use tilewright::{Device, EmulatorOptions};
use tilewright_compiler::kernel_ir::Kernel;
use tilewright_compiler::online::OF_BLOCK;
use tilewright_emulator::trace::Trace;
use tilewright_kernel::KernelInfo;

use crate::inputs::Floats;
use crate::inspect::boxes::{self as accessed, BoxView};
use crate::inspect::memory::{self as shared, MemoryView};
use crate::inspect::view::{self, StageView};
use crate::source::{Found, SourceFile};
use crate::trial::Trial;
use crate::{Output, Status, inspect, sizes};

/// The least width of a page, and its margins, in pixels.
const WIDTH: f64 = 1080.0;
const LEFT: f64 = 20.0;

/// What is drawn.
pub struct Scene<'a> {
    /// The kernel.
    pub info: &'a KernelInfo,
    /// Its entry point: the one that a launch takes at these sizes, or the first one.
    pub entry: &'a Kernel,
    /// Its stages.
    pub stages: Vec<StageView>,
    /// What blocks access of its tensors; nothing without sizes.
    pub boxes: Vec<BoxView>,
    /// Its shared memory.
    pub memory: MemoryView,
    /// What the first block does on the emulator; none without sizes, and of a kernel without barriers in shared
    /// memory.
    pub trace: Option<Trace>,
    /// Why there is no trace, if one was tried.
    pub untraced: Option<String>,
    /// The value of each dimension; empty if none are given.
    pub sizes: Vec<i64>,
}

/// Most warp instructions that are traced.
const TRACED: u64 = 1 << 20;

/// A section of a page, from the top to the bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Iteration domains.
    Domains,
    /// Boxes over tensors.
    Boxes,
    /// Banks of shared memory.
    Banks,
    /// Shared memory over time.
    Memory,
    /// Threads of each stage.
    Threads,
    /// Roles over time.
    Roles,
}

impl Section {
    /// Draws it from a height on, and tells where it has ended: there, if the kernel has nothing for it.
    fn draw(self, scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
        let draw = match self {
            Self::Domains => axes::draw,
            Self::Boxes => boxes::draw,
            Self::Banks => banks::draw,
            Self::Memory => memory::draw,
            Self::Threads => threads::draw,
            Self::Roles => timeline::draw,
        };
        draw(scene, canvas, top)
    }

    /// Its name on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Draws a kernel to a file, or to standard output if that is `-`: these sections, or all if none are named.
pub fn draw(path: &str, name: Option<&str>, dims: &[String], only: &[Section], to: &str) -> Output {
    let file = match SourceFile::read(path) {
        Ok(file) => file,
        Err(error) => return Output::usage(error),
    };
    let found = match inspect::one(&file, name) {
        Ok(found) => found,
        Err(output) => return output,
    };
    let scene = match scene(found, dims) {
        Ok(scene) => scene,
        Err(error) => return Output::usage(error),
    };
    let (canvas, empty) = page(&scene, only);
    if let Some(section) = empty.iter().find(|section| only.contains(section)) {
        let sized =
            if scene.sizes.is_empty() && !scene.info.dims.is_empty() { "; sizes may bring it: add --dims" } else { "" };
        return Output::usage(format!("{} has nothing for the section `{}`{sized}", scene.info.name, section.name()));
    }
    let text = canvas.finish(LEFT);
    let untraced = scene.untraced.map(|why| format!("note: roles over time are not all there: {why}\n"));
    let errors = untraced.unwrap_or_default();
    if to == "-" {
        return Output { text, errors, status: Status::Good };
    }
    let written = std::fs::File::create(to).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Output { text: format!("{to}: {} bytes\n", text.len()), errors, status: Status::Good },
        Err(error) => Output::usage(format!("{to} cannot be written: {error}")),
    }
}

/// What is to be drawn of a finished kernel, where dimensions have these values; none are given for a picture that is
/// true for all sizes.
///
/// # Errors
/// Sizes that are none of this kernel, that are missing, or for which a fact does not hold.
pub fn scene<'a>(found: Found<'a>, dims: &[String]) -> Result<Scene<'a>, String> {
    let info = found.kernel.info.as_ref().ok_or("the kernel is not finished")?;
    let given = sizes::parse(dims).map_err(|error| error.to_string())?;
    let values = match given.is_empty() && !info.dims.is_empty() {
        true => Vec::new(),
        false => sizes::complete(info, &given).map_err(|error| error.to_string())?,
    };
    if !values.is_empty()
        && let Some(fact) = info.facts.iter().chain(info.requirements.iter()).find(|c| c.holds(&values) != Ok(true))
    {
        let named = info.dims.iter().zip(&values).map(|(d, v)| format!("{} = {v}", d.name));
        let sizes = named.collect::<Vec<_>>().join(", ");
        return Err(format!("`{}` does not hold for {sizes}", fact.text));
    }
    let holds = |n: &usize| info.entries[*n].conditions.iter().all(|c| c.holds(&values) == Ok(true));
    let entry = if values.is_empty() { 0 } else { (0..info.entries.len()).find(holds).unwrap_or(0) };
    let entry = found.kernel.entries.get(entry).map(|e| &e.kernel).ok_or("the kernel has no entry point")?;
    let numbers: Vec<i128> = values.iter().map(|v| i128::from(*v)).collect();
    let memory = shared::view(info, entry);
    // An entry point without copies tests what another one does not.
    let is_there = |copy: &str| memory.buffers.iter().any(|buffer| buffer.name == copy);
    let mut stages = view::stages(info, entry, &found.kernel.stages, &numbers);
    let is_staged = stages.iter().flat_map(|stage| &stage.copies).all(|copy| is_there(&copy.name));
    for stage in stages.iter_mut().filter(|_| !is_staged) {
        stage.copies.retain(|copy| is_there(&copy.name));
        stage.predicates.iter_mut().for_each(|predicate| predicate.waived = None);
    }
    let is_known = values.len() == info.dims.len();
    let boxes = if is_known { accessed::view(info, &found.kernel.stages, &numbers, &is_there) } else { Vec::new() };
    let (trace, untraced) = match is_known && !memory.barriers.is_empty() {
        true => traced(info, &values),
        false => (None, None),
    };
    Ok(Scene { info, entry, stages, boxes, memory, trace, untraced, sizes: values })
}

/// A trace of the first block, or why there is none.
fn traced(info: &KernelInfo, sizes: &[i64]) -> (Option<Trace>, Option<String>) {
    let device = Device::emulator(EmulatorOptions::default().trace(TRACED));
    let launched = Trial::with(info, sizes, (0, Floats::Integers(1)), &device)
        .map_err(|error| error.to_string())
        .and_then(|trial| trial.launch(&device).map_err(|error| error.to_string()));
    (device.emulator_report().and_then(|report| report.trace), launched.err())
}

/// The page with these sections, or with all if none are named; and the sections for which there is nothing.
pub fn page(scene: &Scene<'_>, only: &[Section]) -> (Canvas, Vec<Section>) {
    let title = format!("kernel {}", scene.info.name);
    let is_drawn = |section: &Section| only.is_empty() || only.contains(section);
    let wanted = if is_drawn(&Section::Domains) { axes::width(scene) } else { 0.0 };
    let mut canvas = Canvas::new(WIDTH.max(wanted), (theme::PICTURE, &theme::sheet()), &title);
    let (mut y, mut empty) = (head(scene, &mut canvas, &title), Vec::new());
    for section in Section::value_variants().iter().copied().filter(is_drawn) {
        let end = section.draw(scene, &mut canvas, y);
        if end <= y {
            empty.push(section);
        }
        y = end;
    }
    (canvas, empty)
}

/// Name, sizes, launch.
fn head(scene: &Scene<'_>, canvas: &mut Canvas, title: &str) -> f64 {
    let Scene { info, entry, sizes, .. } = scene;
    let room = canvas.width() - 2.0 * LEFT;
    canvas.text((LEFT, 28.0), room, Anchor::Start, HEADING, title);
    let named: Vec<String> = info.dims.iter().zip(sizes).map(|(d, v)| format!("{} = {v}", d.name)).collect();
    let named = if named.is_empty() { "for all sizes".to_owned() } else { format!("for {}", named.join(", ")) };
    let blocks = match info.launch.blocks.eval(sizes) {
        Ok(blocks) if !sizes.is_empty() || info.dims.is_empty() => blocks.to_string(),
        _ => info.launch.blocks.display(&|d| info.dim_name(d)).to_string(),
    };
    let what = match (info.launch.persistent, blocks.as_str()) {
        (true, _) => "tiles, by blocks",
        (false, "1") => "block",
        (false, _) => "blocks",
    };
    let cluster =
        if info.launch.cluster > 1 { format!(", in clusters of {}", info.launch.cluster) } else { String::new() };
    let shared = entry.shared_map().bytes;
    let shared = if shared > 0 { format!("; {shared} bytes of shared memory") } else { String::new() };
    let (name, threads) = (&entry.signature.name, info.launch.threads);
    let line = format!("entry {name}, {named}: {blocks} {what} of {threads} threads{cluster}{shared}");
    canvas.text((LEFT, 46.0), room, Anchor::Start, NOTE, &line);
    60.0
}

/// What colours mean: a class and a text for each.
fn legend(canvas: &mut Canvas, y: f64, entries: &[(String, String)]) -> f64 {
    let mut x = LEFT;
    for (class, text) in entries {
        let room = canvas::measured(text, NOTE.size);
        canvas.rect(Bounds { x, y, width: 22.0, height: 11.0 }, 0.0, class, None);
        canvas.text((x + 28.0, y + 9.5), room, Anchor::Start, NOTE, text);
        x += 28.0 + room + 16.0;
    }
    y + 24.0
}

/// Draws panels from left to right, each as wide as it is or as the page, in as many rows as that takes. `draw` has a
/// place and a room, and tells where the panel has ended.
fn flow<T>(
    canvas: &mut Canvas,
    top: f64,
    gap: f64,
    panels: &[T],
    width: impl Fn(&T) -> f64,
    draw: impl Fn(&T, &mut Canvas, (f64, f64), f64) -> f64,
) -> f64 {
    let right = canvas.width() - LEFT;
    let (mut x, mut y, mut bottom) = (LEFT, top, top);
    for panel in panels {
        let room = width(panel).min(right - LEFT);
        if x > LEFT && x + room > right {
            (x, y) = (LEFT, bottom);
        }
        bottom = bottom.max(draw(panel, canvas, (x, y), room));
        x += room + gap;
    }
    bottom
}

/// A name as readers know it. With a sign that no name of the source has, the compiler names what it adds for
/// reductions in one pass: what one block of terms comes to, and the sums that are carried beside an extreme.
fn named(name: &str) -> String {
    match name.strip_suffix(OF_BLOCK) {
        Some(of) => format!("{of} of a block"),
        None => name.replace('$', " beside "),
    }
}

/// The name of a section, and what it shows: beside it, or below if that takes more room.
fn heading(canvas: &mut Canvas, top: f64, name: &str, what: &str) -> f64 {
    let room = canvas.width() - 2.0 * LEFT;
    canvas.line((LEFT, top + 4.0), (canvas.width() - LEFT, top + 4.0), "tick");
    let width = canvas::measured(name, HEADING.size);
    canvas.text((LEFT, top + 26.0), room, Anchor::Start, HEADING, name);
    let beside = room - width - 14.0;
    if canvas::measured(what, NOTE.size) <= beside {
        canvas.text((LEFT + width + 14.0, top + 26.0), beside, Anchor::Start, NOTE, what);
        return top + 40.0;
    }
    canvas.paragraph((LEFT, top + 46.0), room, NOTE, what) - 6.0
}
