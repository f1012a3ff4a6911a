//! The JSON of `tilewright inspect --cost`, documented in `docs/inspect-json.md`.

use serde_json::{Value, json};
use tilewright_emulator::{Arithmetic, Bulk, Factor, Traffic};

use super::bounds::Bound;
use super::occupancy::Limit;
use super::{Cost, architecture};

/// Version of the format; it grows when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// The document about a launch.
pub fn document(cost: &Cost<'_>) -> String {
    let Cost { path, line, kernel, dims, gpu, .. } = cost;
    let dims: serde_json::Map<String, Value> =
        kernel.dims.iter().zip(*dims).map(|(d, value)| (d.name.to_string(), json!(value))).collect();
    let document = json!({
        "format": FORMAT,
        "file": path,
        "line": line,
        "kernel": kernel.name,
        "dims": dims,
        "gpu": {
            "name": gpu.name, "title": gpu.title, "capability": gpu.capability_text(),
            "multiprocessors": gpu.multiprocessors, "clock_mhz": gpu.clock, "memory_gb_per_second": gpu.memory,
            "source": gpu.sheet,
        },
        "launch": launch(cost),
        "exact": cost.counts.is_exact(),
        "estimated_because": cost.doubts(),
        "assumed": cost.assumptions(),
        "sample": cost.counts.sampled.as_ref().map(|sample| json!({
            "ran": sample.ran, "of": sample.of,
            "sectors": [sample.sectors.0, sample.sectors.1],
            "operations": [sample.operations.0, sample.operations.1],
        })),
        "depends_on_data": cost.counts.depends_on_data,
        "global": global(cost),
        "shared": traffic(&cost.counts.all.shared),
        "local": traffic(&cost.counts.all.local),
        "operations": operations(cost),
        "bounds": bounds(cost),
    });
    format!("{document:#}\n")
}

fn launch(cost: &Cost<'_>) -> Value {
    let Cost { kernel, entry, waves, occupancy, grid, shared: [fixed, dynamic], .. } = cost;
    let cluster = kernel.launch.cluster.max(1);
    let usage = cost.registers.as_ref().ok();
    let allows: Vec<Value> =
        occupancy.allows.iter().map(|(limit, blocks)| json!({ "limit": limit.name(), "blocks": blocks })).collect();
    json!({
        "entry": entry,
        "blocks": cost.counts.blocks,
        "threads": kernel.launch.threads,
        "cluster": cluster,
        "persistent": kernel.launch.persistent,
        "tiles": kernel.launch.persistent.then(|| grid / cluster),
        "registers": usage.map(|usage| usage.registers),
        "spill_stores": usage.map(|usage| usage.spill_stores),
        "spill_loads": usage.map(|usage| usage.spill_loads),
        "assembled_for": usage.map(|_| architecture(kernel, cost.gpu)),
        "not_assembled_because": cost.registers.as_ref().err(),
        "static_shared_bytes": fixed,
        "dynamic_shared_bytes": dynamic,
        "occupancy": {
            "blocks": occupancy.blocks, "warps": occupancy.warps, "most_warps": occupancy.most_warps,
            "limited_by": occupancy.limits().map(Limit::name).collect::<Vec<_>>(),
            "allows": allows,
        },
        "at_once": waves.at_once,
        "waves": waves.waves,
        "last_wave": waves.last,
        "busy_multiprocessors": cost.bounds.busy,
    })
}

fn traffic(traffic: &Traffic) -> Value {
    json!({
        "load_requests": traffic.load_requests, "store_requests": traffic.store_requests,
        "bytes_loaded": traffic.bytes_loaded, "bytes_stored": traffic.bytes_stored,
        "transactions": traffic.transactions, "ideal_transactions": traffic.ideal_transactions,
    })
}

fn global(cost: &Cost<'_>) -> Value {
    let all = &cost.counts.all;
    let bulk = |bulk: &Bulk| {
        json!({
            "copies": bulk.copies, "whole_bytes": bulk.whole_bytes, "bytes": bulk.bytes, "shared_bytes": bulk.shared_bytes,
        })
    };
    json!({
        "least": { "bytes_read": cost.least[0], "bytes_written": cost.least[1] },
        "filled_bytes": cost.filled,
        "asked": traffic(&all.global),
        "cp_async_bytes": all.fetched_bytes,
        "bulk_loads": bulk(&all.bulk_loads),
        "bulk_stores": bulk(&all.bulk_stores),
    })
}

fn operations(cost: &Cost<'_>) -> Value {
    let work = &cost.counts.all.work;
    let unit = |unit: &Arithmetic| json!({ "operations": unit.operations, "instructions": unit.instructions });
    let tensor: serde_json::Map<String, Value> =
        Factor::ALL.into_iter().map(|factor| (factor.name().to_owned(), json!(work.of(factor)))).collect();
    json!({
        "all": work.operations(),
        "f32": unit(&work.f32), "half": unit(&work.half), "f64": unit(&work.f64), "special": work.special,
        "tensor": tensor,
        "for_each_byte": {
            "least": cost.intensity(cost.least.iter().sum()),
            "asked": cost.intensity(cost.sector_bytes()),
        },
    })
}

fn bounds(cost: &Cost<'_>) -> Value {
    let bounds = &cost.bounds;
    let one = |bound: &Bound| json!({ "name": bound.name, "microseconds": bound.microseconds });
    // How much of each unit's peak is used at most.
    let limited = |memory: &Bound| {
        let limit = bounds.limit(memory);
        let share = |bound: &Bound| {
            let share = bound.microseconds.zip(limit.microseconds).map(|(time, all)| time / all);
            json!({ "name": bound.name, "share": share })
        };
        let shares: Vec<Value> = std::iter::once(memory).chain(&bounds.units).map(share).collect();
        json!({ "limit": limit.name, "microseconds": limit.microseconds, "shares": shares })
    };
    json!({
        "memory": { "least": one(&bounds.least), "asked": one(&bounds.asked) },
        "units": bounds.units.iter().map(one).collect::<Vec<_>>(),
        "least": limited(&bounds.least),
        "asked": limited(&bounds.asked),
    })
}
