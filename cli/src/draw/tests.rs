//! What is drawn of all examples and of some kernels, against the facts counted otherwise.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use tilewright_emulator::trace::{SharedPlace, Step};

use super::replay::Times;
use super::*;
use crate::inspect::boxes::BoxView;

fn example(name: &str) -> SourceFile {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{name}.rs"));
    SourceFile::read(&path.to_string_lossy()).expect("an example")
}

fn examples() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).expect("examples").flatten().map(|e| e.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "rs"));
    paths.sort();
    paths
}

/// Elements of all tensors of a kernel that is drawn, if there are sizes with so few.
const MOST_ELEMENTS: u64 = 1 << 20;

/// Looks at a scene of each kernel of the examples, at sizes that its facts admit and without sizes; all that was
/// counted.
fn each_scene(look: impl Fn(&str, &Scene<'_>) -> usize + Sync) -> usize {
    let of_file = |path: &PathBuf| {
        let (mut scenes, mut counted) = (0, 0);
        let example = path.file_stem().unwrap_or_default().to_string_lossy();
        for found in SourceFile::read(&path.to_string_lossy()).expect("an example").kernels() {
            let info = found.kernel.info.as_ref().expect("a finished kernel");
            // Small ones, if the facts admit them.
            let pools: [&[i64]; 3] = [&[1, 4, 8, 64, 100, 128, 200, 256], &[8, 512, 1024, 4096], &[1 << 14]];
            // Five drawn sizes are soon tensors of a hundred million elements, which show no more than small ones.
            let is_small = |given: &sizes::Given| {
                let dims = sizes::complete(info, given).expect("all sizes");
                let layouts = sizes::layouts(info, &dims).expect("layouts");
                layouts.iter().flatten().map(|layout| layout.elements).sum::<u64>() < MOST_ELEMENTS
            };
            let drawn = |pool| (7..40).filter_map(move |seed| sizes::choose(info, pool, seed));
            let given = pools.into_iter().find_map(|pool| drawn(pool).find(is_small).or(drawn(pool).next()));
            let given = given.unwrap_or_else(|| panic!("sizes of {}", info.name));
            let dims: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let name = format!("{example}.{} at {dims:?}", info.name);
            for dims in [&dims[..], &[]] {
                let scene = scene(found, dims).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(scene.untraced, None, "{name}");
                counted += look(&name, &scene);
                scenes += 1;
            }
        }
        (scenes, counted)
    };
    let of_all: Vec<(usize, usize)> = examples().par_iter().map(of_file).collect();
    let scenes: usize = of_all.iter().map(|of| of.0).sum();
    assert!(scenes > 80, "{scenes} scenes");
    of_all.iter().map(|of| of.1).sum()
}

fn file(text: &str) -> SourceFile {
    let file = SourceFile::parse("k.rs", &format!("tilewright::schedule! {{ {text} }}")).expect("Rust");
    let findings = file.findings();
    assert_eq!(findings.errors, 0, "{}", findings.text);
    file
}

fn first<'a>(file: &'a SourceFile, dims: &str) -> Scene<'a> {
    let dims: Vec<String> = dims.split(',').filter(|d| !d.is_empty()).map(str::to_owned).collect();
    scene(file.kernels().next().expect("a kernel"), &dims).expect("a scene")
}

/// All that is drawn of the examples is well-formed, has no text over another one or past the page, and is the same
/// twice. What is said of buffers, requests and holes is what counting gives.
#[test]
fn every_example_is_drawn() {
    let [framed, lines] = [0, 0].map(AtomicUsize::new);
    let swizzled = each_scene(|name, scene| {
        let canvas = page(scene, &[]).0;
        let width = canvas.width();
        for (n, (bounds, text)) in canvas.texts().iter().enumerate() {
            assert!(bounds.x >= 0.0 && bounds.x + bounds.width <= width + 0.01, "{name}: `{text}` at {bounds:?}");
            assert!(!text.ends_with('…'), "{name}: `{text}` is cut at {bounds:?}");
            let below = canvas.texts()[n + 1..].iter().find(|(other, _)| other.overlaps(bounds));
            assert!(below.is_none(), "{name}: `{text}` at {bounds:?} and {below:?}");
        }
        let text = canvas.finish(LEFT);
        let tree = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        // So that it can stand in Markdown, and styles nothing beside itself there.
        assert!(!text.contains("\n\n"), "{name}: an empty line");
        let sheet = tree.descendants().find(|n| n.has_tag_name("style")).and_then(|n| n.text()).expect("a sheet");
        let [scope, whole] = [format!(".{} ", theme::PICTURE), format!("svg.{}{{", theme::PICTURE)];
        let is_own = |l: &str| l.starts_with(&scope) || l.starts_with(&whole) || l.starts_with(['@', '}']);
        let beside = sheet.lines().find(|l| !l.is_empty() && !is_own(l));
        assert_eq!(beside, None, "{name}");
        let outside = tree.descendants().filter(|n| n.has_tag_name("script") || n.attribute("href").is_some());
        assert_eq!(outside.count(), 0, "{name}");
        framed.fetch_add(frames_are_behind_numbers(name, &tree), Ordering::Relaxed);
        lines.fetch_add(lines_are_beside_axes(name, &tree), Ordering::Relaxed);
        barriers_have_names(name, scene);
        assert_eq!(text, page(scene, &[]).0.finish(LEFT), "{name}");
        buffers_are_apart(name, scene);
        requests_take_what_is_said(name, scene);
        holes_are_those_of_enumeration(name, scene);
        scene.stages.iter().flat_map(|s| &s.copies).filter(|c| c.swizzle.is_some()).count()
    });
    assert!(swizzled > 20, "{swizzled} copies with a swizzle");
    let framed = framed.into_inner();
    assert!(framed > 100, "{framed} cells that an access touches");
    let lines = lines.into_inner();
    assert!(lines > 1000, "{lines} lines between axes");
}

/// A number among the attributes of an element.
fn number(node: &roxmltree::Node<'_, '_>, key: &str) -> Option<f64> {
    node.attribute(key).and_then(|n| n.parse().ok())
}

/// Each mbarrier of a trace is one of those that the map of shared memory has, and each copy is one of a buffer.
fn barriers_have_names(name: &str, scene: &Scene<'_>) {
    let memory = &scene.memory;
    let is_barrier = |at: &SharedPlace| {
        memory.barriers.iter().any(|b| (b.offset..b.offset + u64::from(b.slots) * 8).contains(&at.offset))
    };
    let is_buffer = |start: u64, end: u64| {
        memory.buffers.iter().any(|b| b.offset <= start && start < end && end <= b.offset + b.bytes)
    };
    for event in scene.trace.iter().flat_map(|trace| &trace.events) {
        match &event.step {
            Step::Arrive { at, .. } | Step::Wait { at, .. } | Step::PhaseEnd { at, .. } => {
                assert!(is_barrier(at), "{name}: {at:?}");
            }
            Step::Issue { bytes, .. } => assert!(is_buffer(bytes.start, bytes.end), "{name}: {bytes:?}"),
            _ => {}
        }
    }
}

/// No line between axes passes through the box of one: it ends at their sides. How many lines there are.
fn lines_are_beside_axes(name: &str, tree: &roxmltree::Document<'_>) -> usize {
    let rounded = tree.descendants().filter(|n| n.has_tag_name("rect") && n.attribute("rx") == Some("4"));
    let boxes: Vec<[f64; 4]> = rounded
        .filter_map(|n| Some([number(&n, "x")?, number(&n, "y")?, number(&n, "width")?, number(&n, "height")?]))
        .collect();
    let lines: Vec<&str> = (tree.descendants().filter(|n| n.has_tag_name("path")))
        .filter_map(|n| n.attribute("d").filter(|d| d.contains('C')))
        .collect();
    for line in &lines {
        let numbers: Vec<f64> = line.split(['M', 'C', ' ']).filter_map(|n| n.parse().ok()).collect();
        let points: Vec<[f64; 2]> = numbers.chunks_exact(2).map(|p| [p[0], p[1]]).collect();
        for at in 0..(points.len() - 1) / 3 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|n| points[3 * at + n]);
            for step in 0..=32 {
                let t = f64::from(step) / 32.0;
                let of = |n: usize| {
                    let u = 1.0 - t;
                    u * u * u * a[n] + 3.0 * u * u * t * b[n] + 3.0 * u * t * t * c[n] + t * t * t * d[n]
                };
                let (px, py) = (of(0), of(1));
                let over = boxes.iter().find(|[x, y, width, height]| {
                    (x + 0.5..x + width - 0.5).contains(&px) && (y + 0.5..y + height - 0.5).contains(&py)
                });
                assert_eq!(over, None, "{name}: {line} at {px}, {py}");
            }
        }
    }
    lines.len()
}

/// No frame of an access is drawn over the number of a bank: it comes before the texts inside it. How many there are.
fn frames_are_behind_numbers(name: &str, tree: &roxmltree::Document<'_>) -> usize {
    let (mut texts, mut frames) = (Vec::new(), 0);
    for node in tree.descendants() {
        if node.has_tag_name("text") {
            texts.extend(number(&node, "x").zip(number(&node, "y")));
        } else if node.attribute("class") == Some("touched") {
            let [x, y, width, height] = ["x", "y", "width", "height"].map(|key| number(&node, key).expect(key));
            let over = texts.iter().find(|(tx, ty)| (x..=x + width).contains(tx) && (y..=y + height).contains(ty));
            assert_eq!(over, None, "{name}: a frame at {x}, {y}");
            frames += 1;
        }
    }
    frames
}

/// Buffers lie inside the shared memory, and those with bytes in common are used at other times.
fn buffers_are_apart(name: &str, scene: &Scene<'_>) {
    let memory = &scene.memory;
    assert_eq!(memory.bytes, scene.entry.shared_map().bytes, "{name}");
    for (n, a) in memory.buffers.iter().enumerate() {
        assert!(a.offset + a.bytes <= memory.bytes && a.first <= a.last && a.last < memory.phases.len(), "{name}");
        for b in &memory.buffers[n + 1..] {
            let meet = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
            assert!(!meet || a.last < b.first || b.last < a.first, "{name}: {} and {}", a.name, b.name);
        }
    }
    let barriers: u32 = memory.barriers.iter().map(|b| b.slots).sum();
    assert_eq!(barriers, scene.entry.barriers.iter().map(|b| b.slots).sum::<u32>(), "{name}");
    for barrier in &memory.barriers {
        assert!(barrier.offset + u64::from(barrier.slots) * 8 <= memory.bytes, "{name}");
        assert!(!barrier.name.starts_with(' '), "{name}: {}", barrier.name);
    }
}

/// What is framed takes as many cycles as is said.
fn requests_take_what_is_said(name: &str, scene: &Scene<'_>) {
    for found in scene.stages.iter().flat_map(|stage| &stage.shared) {
        let Some(request) = &found.request else { continue };
        let (taken, least) = tilewright_kernel::banks::request(&request.lanes, request.bytes);
        assert_eq!(found.cycles.map(|c| (c[0], c[1])), Some((taken, least)), "{name}: {}", found.buffer);
        assert!(request.lanes.iter().any(Option::is_some), "{name}: {}", found.buffer);
    }
}

/// Positions of the results of a split that are none of what it splits, counted one by one.
fn holes_are_those_of_enumeration(name: &str, scene: &Scene<'_>) {
    for stage in &scene.stages {
        let extent = |axis: usize| stage.axes[axis].extent.parse::<i64>().ok();
        for op in stage.ops.iter().filter(|op| op.op == "split") {
            let extents = (extent(op.from[0]), extent(op.to[0]), extent(op.to[1]));
            let (Some(all), Some(outer), Some(inner)) = extents else { continue };
            let positions = (0..outer.max(0)).flat_map(|o| (0..inner).map(move |i| o * inner + i));
            let holes = positions.filter(|position| *position >= all).count();
            assert_eq!(op.holes.as_deref(), Some(&*holes.to_string()), "{name}: {:?} of {}", op.inputs, stage.name);
            assert!(op.divisible != Some(true) || holes == 0, "{name}: {:?}", op.inputs);
        }
    }
}

#[test]
fn threads_are_those_with_iterations() {
    // 40 threads of 64 have an iteration; two warps have one each, and the third one none.
    let file = file(
        "kernel K(x: f32[40, N]) -> (y: f32[40, N]) { y[i, j] = x[i, j]; launch threads(64);
            schedule y { bind j: grid; reorder j, i; bind i: thread; } }
         kernel W(x: f32[2, N]) -> (y: f32[2, N]) { y[i, j] = x[i, j]; launch threads(96);
            schedule y { split j by 32 -> b, t; reorder b, i, t; bind b: grid; bind i: warp; bind t: thread; } }",
    );
    let runs: Vec<_> = (file.kernels())
        .map(|found| scene(found, &[]).expect("a scene").stages[0].threads.clone().expect("threads"))
        .collect();
    assert_eq!(runs, [vec![(0, 40)], vec![(0, 64)]]);
    let roles = example("role_pointwise");
    let scene = first(&roles, "");
    let names: Vec<_> = scene.entry.roles().iter().map(|r| (r.name.as_str(), r.threads())).collect();
    assert_eq!(names, [("math", 0..256), ("load", 256..288), ("store", 288..320)]);
    assert_eq!(scene.stages[0].threads, Some(vec![(0, 256)]));
    let elected: Vec<_> = scene.stages[0].copies.iter().map(|c| (c.name.as_str(), c.elected)).collect();
    assert_eq!(elected, [("xs", (256, 1)), ("zs", (288, 1))]);
}

#[test]
fn boxes_have_what_blocks_access() {
    let of = |scene: &Scene<'_>, tensor: &str| -> BoxView {
        scene.boxes.iter().find(|b| b.tensor == tensor).cloned().unwrap_or_else(|| panic!("boxes of {tensor}"))
    };
    let stencil = file(
        "kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = (x[i - 1] or 0.0) + (x[i + 2] or 0.0);
            schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; } }",
    );
    let scene = first(&stencil, "N=200");
    let reads: Vec<_> = scene.boxes.iter().filter(|b| !b.write).map(|b| (b.first.clone(), b.last.clone())).collect();
    assert_eq!(reads, [(vec![(-1, 64)], vec![(191, 64)]), (vec![(2, 64)], vec![(194, 64)])]);
    assert_eq!(of(&scene, "y").shape, [200]);
    // Axes that are merged: rows of 10 and a part of a row, over all of a block's threads.
    let merged = file(
        "kernel K(x: f32[M, 10]) -> (y: f32[M, 10]) { y[i, j] = x[i, j];
            schedule y { merge i, j -> p; split p by 64 -> b, t; bind b: grid; bind t: thread; } }",
    );
    let found = of(&first(&merged, "M=13"), "x");
    assert_eq!((found.first, found.last), (vec![(0, 7), (0, 10)], vec![(12, 8), (0, 10)]));
    let gemm = example("gemm");
    let gemm = gemm.kernels().next().expect("a kernel");
    let scene = super::scene(gemm, &["M=300", "N=512", "K=200"].map(str::to_owned)).expect("a scene");
    let a = of(&scene, "a");
    // All terms of 128 rows, by boxes of 64 terms; the last block of the cluster has rows past the end.
    assert_eq!(
        (a.copy.as_deref(), &a.first[..], &a.last[..]),
        (Some("sa"), &[(0, 128), (0, 256)][..], &[(384, 128), (0, 256)][..])
    );
    assert_eq!(a.tile, Some(vec![(0, 128), (0, 64)]));
    assert_eq!(of(&scene, "c").copy.as_deref(), Some("cs"));
}

/// Rows of 32 words by a transposed read: with a swizzle the cells of a column are in all banks.
#[test]
fn cells_are_those_of_the_request() {
    let transpose = example("tiled_transpose");
    let scene = first(&transpose, "M=100,N=72");
    let buffer = &scene.memory.buffers[0];
    let rows = banks::framed(&scene, &buffer.name);
    assert_eq!(rows.iter().map(|c| (c.0, c.1)).collect::<Vec<_>>(), (0..8).map(|row| (row, 0)).collect::<Vec<_>>());
    let banks: BTreeSet<usize> = rows.iter().map(|c| c.2).collect();
    assert_eq!(banks.into_iter().collect::<Vec<_>>(), (0..8).map(|n| 4 * n).collect::<Vec<_>>());
}

/// Phases that copies end do not end before these, and whoever has waited for one goes on after that.
fn ends_are_waited_for(name: &str, times: &Times) {
    let copied: BTreeSet<u64> = times.copies.iter().filter(|copy| !copy.store).map(|copy| copy.end).collect();
    // Those that several copies end, the last one does.
    assert!(times.phases.values().flatten().any(|end| Some(end) == copied.last()), "{name}: {copied:?}");
    // Others are over before the first wait, such as that a slot is free.
    let is_of_copies =
        |at: &SharedPlace| times.phases.get(at).is_some_and(|ends| ends.iter().all(|e| copied.contains(e)));
    let mut waits = 0;
    for (number, warp) in times.warps.iter().enumerate() {
        let mut seen = Vec::new();
        let mut before = None;
        for stretch in warp.stretches.iter().filter(|s| s.waits.is_none()) {
            let after = stretch.after.filter(|_| stretch.after != before);
            before = stretch.after;
            let Some(at) = after.filter(is_of_copies) else { continue };
            waits += 1;
            let phase = seen.iter().filter(|place| **place == at).count();
            seen.push(at);
            let end = times.phases[&at][phase];
            assert!(stretch.start >= end, "{name}: warp {number} goes on at {} after {at:?} at {end}", stretch.start);
        }
    }
    let phases: usize = times.phases.iter().filter(|p| is_of_copies(p.0)).map(|p| p.1.len()).sum();
    assert!(phases > 1 && waits >= phases, "{name}: {waits} waits for {phases} phases");
}

/// Whatever order the emulator takes, the times are the same.
#[test]
fn times_do_not_depend_on_the_order() {
    for (name, dims) in
        [("role_pointwise", [300, 512].to_vec()), ("tma_pointwise", vec![5000]), ("gemm", vec![300, 264, 200])]
    {
        let file = example(name);
        let found = file.kernels().next().expect("a kernel");
        let info = found.kernel.info.as_ref().expect("a finished kernel");
        let times = |seed: u64| {
            let device = Device::emulator(EmulatorOptions::default().seed(seed).trace(TRACED));
            let trial = Trial::with(info, &dims, (0, Floats::Integers(1)), &device).expect("a trial");
            trial.launch(&device).expect("a launch");
            let report = device.emulator_report().expect("a report");
            let trace = report.trace.expect("a trace");
            assert!(trace.complete);
            // What the emulator does beside is not counted.
            assert_eq!(trace.ran.iter().sum::<u64>(), report.counters.warp_instructions, "{name}");
            let mut times = Times::of(&trace);
            times.copies.sort_by_key(|copy| (copy.start, copy.to, copy.warp));
            times
        };
        let expected = times(0);
        assert!(expected.copies.len() > 1 && expected.phases.values().any(|ends| ends.len() > 1), "{name}");
        ends_are_waited_for(name, &expected);
        for seed in 1..8 {
            assert_eq!(times(seed), expected, "{name}, seed {seed}");
        }
    }
}
