//! What the schedules of a kernel have, found in the text of ops and clauses.

use crate::compose::ast::{Kernel, Reduction, Schedule};
use crate::compose::draw::online;

/// Calls `add` for features of schedules, with whether they are there.
pub fn of_schedules(kernel: &Kernel, add: &mut dyn FnMut(bool, &'static str)) {
    add(!kernel.units.is_empty(), "own-unit");
    for schedule in &kernel.schedules {
        ops(kernel, schedule, add);
        place(kernel, schedule, add);
    }
    roles(kernel, add);
    copies(kernel, add);
}

fn scheduled<'a>(kernel: &'a Kernel, name: &str) -> Option<&'a Schedule> {
    kernel.schedules.iter().find(|s| s.name == name)
}

fn like(schedule: &Schedule) -> Option<&str> {
    schedule.ops.iter().find_map(|op| op.strip_prefix("like "))
}

fn ops(kernel: &Kernel, schedule: &Schedule, add: &mut dyn FnMut(bool, &'static str)) {
    let tma = schedule.clauses.iter().any(|c| c == "via tma");
    for op in &schedule.ops {
        let has = |text: &str| op.contains(text);
        match op.split(' ').next().unwrap_or_default() {
            "bind" => {
                let unit = op.split(": ").nth(1).unwrap_or_default();
                let later = unit.contains("..") && !unit.contains(" 0..");
                add(unit.starts_with("warp ") && later, "warp-range-later");
                let counted = unit.starts_with(|c: char| c.is_ascii_digit());
                add(counted && unit.contains("warp"), "parts-warp");
                add(counted && unit.contains(".."), "parts-range");
            }
            "reduce" => add(op.ends_with(" by warp"), "reduce-by-warp"),
            "online" => {
                let by = kernel.equation(&schedule.name).map(|e| e.value.reductions());
                let is = |kind: Reduction| by.as_ref().is_some_and(|by| by.iter().any(|r| r.0 == kind));
                add(is(Reduction::Min), "online-min");
                add(is(Reduction::Sum), "online-squares");
                add(kernel.equation(&schedule.name).is_some_and(online::is_weighted), "online-weights");
                let followed = online::sums(kernel, &schedule.name);
                let followed: Vec<Reduction> =
                    followed.iter().filter_map(|name| kernel.equation(name).and_then(online::reduces)).collect();
                let any = |of: &[Reduction]| followed.iter().any(|r| of.contains(r));
                add(any(&[Reduction::Argmax, Reduction::Argmin]), "online-place");
                add(any(&[Reduction::Sum, Reduction::Prod]), "online-choice");
            }
            "tile" => add(true, "tile"),
            "resize" => add(tma, "resize-copy"),
            "l2" => {
                add(has("evict"), "l2");
                add(has("promote"), "l2-promote");
            }
            "fill" => add(true, if has("zero") { "fill-zero" } else { "fill-any" }),
            "multicast" => add(has(" by "), "multicast-by"),
            "box" => add(has("("), "box-composite"),
            "layout" => {
                add(tma && has("swizzle 128"), "swizzle-128");
                add(!tma && has("swizzle"), "layout-swizzle");
                add(!tma && has("pad"), "layout-pad");
            }
            "vectorize" => {
                let place = schedule.place.as_str();
                let memory = !place.is_empty() && !place.starts_with("registers");
                add(place.starts_with("registers"), "vectorized-registers");
                add(place.starts_with("shared"), "vectorized-shared");
                add(place.starts_with("global"), "vectorized-global");
                add(memory && place.ends_with("per thread"), "vectorized-columns");
            }
            _ => {}
        }
    }
    if tma {
        let boxes = schedule.ops.iter().position(|op| op.starts_with("box")).unwrap_or(schedule.ops.len());
        let (view, tile) = schedule.ops.split_at(boxes);
        let any = |ops: &[String], word: &str| ops.iter().any(|op| op.starts_with(word));
        add(any(view, "split"), "view-split");
        add(any(view, "merge"), "view-merge");
        add(any(tile, "split") || any(tile, "merge") || any(tile, "swizzle"), "tile-ops");
    }
    let chained = like(schedule).and_then(|of| scheduled(kernel, of)).is_some_and(|s| like(s).is_some());
    add(chained, "like-chain");
}

fn place(kernel: &Kernel, schedule: &Schedule, add: &mut dyn FnMut(bool, &'static str)) {
    let Some((stage, axis)) = &schedule.at else { return };
    let Some(around) = scheduled(kernel, stage) else { return };
    let is_ring = schedule.clauses.iter().any(|c| c.starts_with("ring"));
    let binds = |op: &&String| op.starts_with("bind") && op.contains(": grid");
    let at_grid = around.ops.iter().filter(binds).any(|op| op.split([' ', ',', ':']).any(|word| word == axis));
    add(is_ring && at_grid, "ring-grid");
    if schedule.place.is_empty() {
        return;
    }
    add(around.place.is_empty() && around.at.is_some(), "stage-of-beside");
    let outer = around.at.as_ref().and_then(|a| scheduled(kernel, &a.0));
    add(!around.place.is_empty() && outer.is_some_and(|o| !o.place.is_empty()), "nested-twice");
    let here = |s: &&Schedule| s.at == schedule.at && !s.place.is_empty();
    let kinds = |s: &Schedule| s.place.split(' ').next().map(str::to_owned);
    add(kernel.schedules.iter().filter(here).any(|s| kinds(s) != kinds(schedule)), "mixed-places");
    let reduces = |s: &&Schedule| {
        let equation = s.copy.is_none().then(|| kernel.equation(&s.name)).flatten();
        equation.is_some_and(|e| !e.value.reductions().is_empty())
    };
    add(kernel.schedules.iter().filter(here).filter(reduces).count() > 1, "reductions-in-loop");
    let unrolled = |l: &String| around.ops.iter().any(|op| op.starts_with(&format!("unroll {l} by ")));
    let outside = around.loops.iter().take_while(|l| l != &axis);
    add(outside.chain([axis]).any(unrolled), "unroll-by-around-stage");
}

fn roles(kernel: &Kernel, add: &mut dyn FnMut(bool, &'static str)) {
    if let Some(roles) = kernel.launch.iter().find(|item| item.starts_with("roles")) {
        add(roles.matches(": ").count() > 2, "roles-three");
        add(roles.contains("regs"), "role-regs");
        add(roles.contains("alternate"), "alternate");
    }
    let role = |s: &Schedule| s.clauses.iter().find(|c| c.starts_with("by ")).cloned().filter(|r| r != "by math");
    for schedule in &kernel.schedules {
        let host = schedule.at.as_ref().filter(|_| schedule.place.is_empty()).and_then(|at| scheduled(kernel, &at.0));
        add(host.is_some_and(|host| role(host) != role(schedule)), "beside-role");
        let Some(own) = role(schedule) else { continue };
        add(true, "other-role");
        let output = schedule.copy.as_ref().is_some_and(|c| kernel.equation(&c.1).is_some_and(|e| e.output));
        add(output, "role-stores");
        // What it reads is made by a role that is neither it nor the one of the outputs.
        let reads = match &schedule.copy {
            Some((_, of)) => vec![of.as_str()],
            None => kernel.equation(&schedule.name).map(|e| e.value.tensors()).unwrap_or_default(),
        };
        let made = |s: &&Schedule| {
            reads.contains(&s.name.as_str()) || s.copy.as_ref().is_some_and(|c| reads.contains(&c.1.as_str()))
        };
        let mut makers = kernel.schedules.iter().filter(|s| s.name != schedule.name).filter(made);
        add(!output && makers.any(|s| role(s).is_some_and(|r| r != own)), "role-chain");
    }
}

fn copies(kernel: &Kernel, add: &mut dyn FnMut(bool, &'static str)) {
    let output = |name: &str| kernel.equation(name).is_some_and(|e| e.output);
    let copies: Vec<(&Schedule, &str)> =
        kernel.schedules.iter().filter_map(|s| s.copy.as_ref().map(|c| (s, c.1.as_str()))).collect();
    let stores = copies.iter().any(|c| output(c.1));
    add(stores && copies.iter().any(|c| !output(c.1)), "both-ways");
    for (n, (schedule, of)) in copies.iter().enumerate() {
        add(copies[..n].iter().any(|c| c.1 == *of), "copies-of-one");
        let at = schedule.at.as_ref().and_then(|a| scheduled(kernel, &a.0));
        add(at.is_some_and(|s| !s.place.is_empty()), "copy-in-stage");
    }
}
