//! Section: which threads of a block run each stage, and which start its copies.

use super::canvas::{Anchor, Bounds, Canvas};
use super::theme::{LABEL, NOTE, SMALL, TICK};
use super::{LEFT, Scene};

/// Room for names, and for what is said after the strip.
const NAMES: f64 = 190.0;
const COUNTS: f64 = 190.0;
/// Height of a strip, and of a row.
const STRIP: f64 = 14.0;
const ROW: f64 = 20.0;

/// Which threads do what, in the block: a name, who, and runs of threads; none where that is not known.
type Row = (String, String, Option<Vec<(u32, u32)>>);

/// What the section shows.
pub fn draw(scene: &Scene<'_>, canvas: &mut Canvas, top: f64) -> f64 {
    let rows = rows(scene);
    if rows.is_empty() {
        return top;
    }
    let threads = scene.info.launch.threads;
    let warps = threads.div_ceil(WARP);
    let what = format!("the {threads} threads of a block; a cell is a warp, and what is filled runs the stage");
    let mut y = super::heading(canvas, top, "Threads of each stage", &what);
    let room = canvas.width() - 2.0 * LEFT - NAMES - COUNTS;
    let each = room / f64::from(warps);
    let x = |thread: u32| LEFT + NAMES + each * f64::from(thread) / f64::from(WARP);
    let roles = scene.entry.roles();
    for role in roles {
        let at = Bounds {
            x: x(role.threads().start),
            y,
            width: x(role.threads().end) - x(role.threads().start),
            height: STRIP,
        };
        canvas.rect(
            at,
            2.0,
            "warp",
            Some(&format!("role {}: warps {}..{}", role.name, role.warps.start, role.warps.end)),
        );
        canvas.text((at.x + 2.0, y + 10.5), at.width - 4.0, Anchor::Middle, SMALL, &role.name);
    }
    y += if roles.is_empty() { 0.0 } else { ROW };
    for (name, who, runs) in rows {
        canvas.text((LEFT, y + 11.0), NAMES - 8.0, Anchor::Start, LABEL, &name);
        for warp in 0..warps {
            let (first, end) = (x(warp * WARP), x(threads.min((warp + 1) * WARP)));
            let tooltip = format!("warp {warp}");
            canvas.rect(Bounds { x: first, y, width: end - first - 1.0, height: STRIP }, 0.0, "idle", Some(&tooltip));
        }
        let busy = runs.as_deref().unwrap_or(&[]);
        for (first, count) in split(busy) {
            // A single lane is seen as well.
            let width = (x(first + count) - x(first) - if (first + count) % WARP == 0 { 1.0 } else { 0.0 }).max(3.0);
            let tooltip = format!("threads {first}..{}", first + count);
            canvas.rect(Bounds { x: x(first), y, width, height: STRIP }, 0.0, "busy", Some(&tooltip));
        }
        canvas.text((LEFT + NAMES + room + 8.0, y + 11.0), COUNTS - 8.0, Anchor::Start, NOTE, &who);
        y += ROW;
    }
    for warp in (0..warps).filter(|warp| warps <= 16 || warp % 4 == 0) {
        let at = x(warp * WARP);
        canvas.text((at, y + 9.0), (each - 2.0).max(16.0), Anchor::Start, TICK, &warp.to_string());
    }
    y + 30.0
}

const WARP: u32 = tilewright_kernel::target::WARP;

/// Runs, cut where warps end.
fn split(runs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut parts = Vec::new();
    for (first, count) in runs {
        let (mut at, end) = (*first, first + count);
        while at < end {
            let next = (at / WARP + 1) * WARP;
            parts.push((at, end.min(next) - at));
            at = next;
        }
    }
    parts
}

/// One row for each stage, and for each copy that the accelerator makes.
fn rows(scene: &Scene<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for stage in &scene.stages {
        let all: Option<u32> = stage.threads.as_ref().map(|runs| runs.iter().map(|run| run.1).sum());
        let who = match all {
            Some(1) => "1 thread".to_owned(),
            Some(count) => format!("{count} threads"),
            None => "not known".to_owned(),
        };
        let how = if stage.fetched { ", by cp.async" } else { "" };
        rows.push((super::named(&stage.name), format!("{who}{how}"), stage.threads.clone()));
        for copy in &stage.copies {
            rows.push((format!("{} (copy)", copy.name), "1 elected thread".to_owned(), Some(vec![copy.elected])));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs_end_with_their_warps() {
        assert_eq!(super::split(&[(0, 40), (62, 3)]), [(0, 32), (32, 8), (62, 2), (64, 1)]);
    }
}
