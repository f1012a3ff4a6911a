//! The JSON of `tilewright inspect`, documented in `docs/inspect-json.md`.

use serde_json::{Value, json};
use tilewright_compiler::kernel_ir::{self, HeldIn};
use tilewright_kernel::info::{Argument, Dim, DimKind, Entry, Parameter, ParameterKind, Role};
use tilewright_kernel::{Constraint, KernelInfo, Size};

use super::copied::{CopyAxisView, CopyView};
use super::memory::{self, BarrierView, BufferView, MemoryView, PhaseView};
use super::view::{self, AccessView, AlongView, AxisView, LayoutView, OpView, PredicateView, SharedView, StageView};
use crate::source::Found;

/// Version of the format; it grows when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// The document about some kernels of a file, and what was found in the file. Keys are sorted; the same input gives the
/// same text.
pub fn document(path: &str, kernels: &[Found<'_>], findings: &[Value]) -> Value {
    let kernels: Vec<Value> = kernels.iter().filter_map(kernel).collect();
    json!({ "format": FORMAT, "file": path, "kernels": kernels, "findings": findings })
}

fn kernel(found: &Found<'_>) -> Option<Value> {
    let info = found.kernel.info.as_ref()?;
    let size = |size: &Size| size.display(&|d| info.dim_name(d)).to_string();
    let texts = |list: &[Constraint]| -> Vec<String> { list.iter().map(|c| c.text.to_string()).collect() };
    let solved: Vec<Value> =
        info.solved.iter().map(|s| json!({ "dim": info.dim_name(s.dim), "value": size(&s.value) })).collect();
    let entries: Vec<Value> = info
        .entries
        .iter()
        .map(|e| {
            let Entry { name, conditions, takes_maps, shared_bytes } = e;
            json!({
                "name": name,
                "conditions": texts(conditions),
                "takes_maps": takes_maps,
                "shared_bytes": shared_bytes,
            })
        })
        .collect();
    let workspace: Vec<Value> = info
        .workspace
        .iter()
        .map(|w| json!({ "name": w.name, "element": w.element.name(), "elements": size(&w.elements), "zeroed": w.zeroed }))
        .collect();
    let first = &found.kernel.entries.first()?.kernel;
    let stages = view::stages(info, first, &found.kernel.stages, &[]);
    let all = kernel_ir::held(first).into_iter();
    // In which role a thread holds the largest share of what it has: one of few may hold nothing.
    let shares = |a: &HeldIn<'_>, b: &HeldIn<'_>| {
        let [a, b] = [(a, b), (b, a)].map(|(own, other)| u64::from(own.held.words) * u64::from(other.limit));
        a.cmp(&b)
    };
    let HeldIn { held, limit, role } = all.max_by(shares)?;
    let parts: Vec<Value> = held.parts.iter().map(|(stage, words)| json!({ "stage": stage, "words": words })).collect();
    Some(json!({
        "name": info.name,
        "line": found.line,
        "dims": info.dims.iter().map(dim).collect::<Vec<_>>(),
        "parameters": (0..).zip(info.parameters.iter()).map(|(n, p)| parameter(p, info.fill(n), &size)).collect::<Vec<_>>(),
        "facts": texts(&info.facts),
        "requirements": texts(&info.requirements),
        "solved": solved,
        "launch": {
            "blocks": size(&info.launch.blocks),
            "threads": info.launch.threads,
            "cluster": info.launch.cluster,
            "roles": first.roles().iter().map(role_of).collect::<Vec<_>>(),
            "shared_bytes": info.entries.iter().map(|e| e.shared_bytes).max(),
            "persistent": info.launch.persistent,
            "dependent": info.launch.dependent,
        },
        "registers": {
            "least": held.words,
            "limit": limit,
            "role": role.map(|role| &role.name),
            "parts": parts,
        },
        "workspace": workspace,
        "shared": shared(&memory::view(info, first)),
        "entries": entries,
        "arguments": info.arguments.iter().map(|a| argument(info, *a)).collect::<Vec<_>>(),
        "stages": stages.iter().map(stage).collect::<Vec<_>>(),
        "statements": info.statements.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "explanation": info.explanation,
        "ptx": {
            "version": pair(info.ptx.version),
            "target": info.ptx.target,
            "capability": pair(info.ptx.capability),
            "exact_capability": info.ptx.exact_capability,
            "driver": pair(info.ptx.driver),
            "text": info.ptx.text,
        },
    }))
}

fn pair((major, minor): (u8, u8)) -> String {
    format!("{major}.{minor}")
}

fn dim(dim: &Dim) -> Value {
    let kind = match dim.kind {
        DimKind::Size => "size",
        DimKind::Stride => "stride",
    };
    json!({ "name": dim.name, "kind": kind })
}

fn parameter(parameter: &Parameter, fill: Option<u64>, size: &dyn Fn(&Size) -> String) -> Value {
    let list = |sizes: &[Size]| sizes.iter().map(size).collect::<Vec<_>>();
    let (name, element) = (&parameter.name, parameter.element.name());
    match &parameter.kind {
        ParameterKind::Scalar => json!({ "name": name, "element": element, "kind": "scalar" }),
        ParameterKind::Tensor(tensor) => {
            let kind = match tensor.role {
                Role::Input => "input",
                Role::Output => "output",
                Role::InOut => "inout",
            };
            json!({
                "name": name,
                "element": element,
                "kind": kind,
                "shape": list(&tensor.shape),
                "strides": tensor.strides.as_ref().map(|s| list(s)),
                "alignment": tensor.alignment,
                // Bits of an element: beyond what a number of JSON holds.
                "fill": fill.map(|bits| format!("{bits:#x}")),
            })
        }
    }
}

fn argument(info: &KernelInfo, argument: Argument) -> Value {
    let parameter = |p: u16| info.parameters.get(usize::from(p)).map_or("?", |p| &*p.name);
    let (kind, of) = match argument {
        Argument::Address(p) => ("address", parameter(p)),
        Argument::Scalar(p) => ("scalar", parameter(p)),
        Argument::Dim(d) => ("dim", info.dim_name(d)),
        Argument::Workspace(w) => ("workspace", info.workspace.get(usize::from(w)).map_or("?", |w| &*w.name)),
        Argument::Map(m) => ("map", info.maps.get(usize::from(m)).map_or("?", |m| &*m.name)),
    };
    json!({ "kind": kind, "of": of })
}

fn stage(stage: &StageView) -> Value {
    let axis = |AxisView { name, extent, kind, binding, unroll, raster, descending, index }: &AxisView| {
        let unroll = unroll.map(|n| n.to_string());
        let raster = raster.map(|n| n.to_string());
        json!({
            "name": name, "extent": extent, "kind": kind, "binding": binding, "unroll": unroll, "raster": raster,
            "descending": descending, "index": index
        })
    };
    let op = |OpView { op, inputs, outputs, from, to, holes, divisible }: &OpView| {
        json!({
            "op": op, "inputs": inputs, "outputs": outputs, "input_axes": from, "output_axes": to, "holes": holes,
            "divisible": divisible,
        })
    };
    let runs = |(first, count): &(u32, u32)| json!({ "first": first, "count": count });
    let predicate = |PredicateView { condition, axis, removed, waived }: &PredicateView| {
        let by = removed.as_ref().map(|r| r.by);
        let theorem = removed.as_ref().and_then(|r| r.theorem);
        let waived = waived.as_ref().map(|w| json!({ "because": w.because, "zeros_of": w.zeros_of }));
        json!({
            "condition": condition, "axis": axis, "emitted": removed.is_none(), "removed_by": by, "theorem": theorem,
            "waived": waived,
        })
    };
    let access = |AccessView { tensor, write, guarded, indices, offset, class }: &AccessView| {
        json!({
            "tensor": tensor, "write": write, "guarded": guarded, "indices": indices, "offset": offset, "class": class,
        })
    };
    let vector = stage.vector.as_ref().map(|(axis, lanes)| json!({ "axis": axis, "lanes": *lanes as i64 }));
    let at = stage.at.as_ref().map(|(stage, axis)| json!({ "stage": stage, "axis": axis }));
    let number = |text: &String| text.parse::<i64>().map_or_else(|_| json!(text), |n| json!(n));
    let along = |AlongView { axes, start, step, most }: &AlongView| json!({ "axes": axes, "start": start, "step": *step as i64, "most": number(most) });
    let layout = stage.layout.as_ref().map(|LayoutView { axes, swizzle, places, written }| {
        let axis = |(name, [extent, pad, stride]): &(String, [i128; 3])| json!({ "name": name, "extent": *extent as i64, "pad": *pad as i64, "stride": *stride as i64 });
        let axes: Vec<Value> = axes.iter().map(axis).collect();
        json!({ "axes": axes, "swizzle": swizzle, "places": *places as i64, "written": written })
    });
    let shared = |SharedView { buffer, write, cycles, request }: &SharedView| {
        let part = |n: usize| cycles.map(|c| c[n]);
        let request = request.as_ref().map(|request| json!({ "bytes": request.bytes, "lanes": request.lanes }));
        json!({
            "buffer": buffer, "write": write, "cycles": part(0), "least": part(1), "worst_cycles": part(2), "worst_least": part(3),
            "request": request,
        })
    };
    json!({
        "name": stage.name,
        "place": stage.place,
        "owner": stage.owner,
        "role": stage.role,
        "at": at,
        "ring": stage.ring,
        "fetched": stage.fetched,
        "region": stage.region.iter().map(along).collect::<Vec<_>>(),
        "layout": layout,
        "shared": stage.shared.iter().map(shared).collect::<Vec<_>>(),
        "fit": stage.fit,
        "axes": stage.axes.iter().map(axis).collect::<Vec<_>>(),
        "loops": stage.loops,
        "threads": stage.threads.as_ref().map(|all| all.iter().map(runs).collect::<Vec<_>>()),
        "ops": stage.ops.iter().map(op).collect::<Vec<_>>(),
        "predicates": stage.predicates.iter().map(predicate).collect::<Vec<_>>(),
        "vector": vector,
        "product": stage.product,
        "ldmatrix": stage.matrices[0],
        "stmatrix": stage.matrices[1],
        "copies": stage.copies.iter().map(copy).collect::<Vec<_>>(),
        "computed": stage.computed.iter().map(|(name, output)| json!({ "name": name, "output": output })).collect::<Vec<_>>(),
        "accesses": stage.accesses.iter().map(access).collect::<Vec<_>>(),
    })
}

fn shared(memory: &MemoryView) -> Value {
    let buffer = |b: &BufferView| {
        json!({
            "name": b.name, "element": b.element.name(), "offset": b.offset, "bytes": b.bytes, "slots": b.slots,
            "in_place_of": b.in_place_of, "first": b.first, "last": b.last,
        })
    };
    let barrier =
        |b: &BarrierView| json!({ "name": b.name, "offset": b.offset, "slots": b.slots, "arrivals": b.arrivals });
    let phase = |p: &PhaseView| json!({ "statement": p.statement, "role": p.role });
    json!({
        "bytes": memory.bytes,
        "buffers": memory.buffers.iter().map(buffer).collect::<Vec<_>>(),
        "barriers": memory.barriers.iter().map(barrier).collect::<Vec<_>>(),
        "phases": memory.phases.iter().map(phase).collect::<Vec<_>>(),
    })
}

fn role_of(role: &kernel_ir::Role) -> Value {
    json!({ "name": role.name, "first": role.warps.start, "warps": role.warps.len(), "registers": role.registers })
}

fn copy(copy: &CopyView) -> Value {
    let axis = |axis: &CopyAxisView| {
        json!({
            "name": axis.name, "size": axis.size, "stride": axis.stride, "start": axis.start, "extent": axis.extent as i64,
            "box": axis.box_size as i64, "element_stride": axis.element_stride as i64, "boxes": axis.boxes as i64,
        })
    };
    json!({
        "name": copy.name,
        "tensor": copy.tensor,
        "way": copy.way,
        "role": copy.role,
        "at": copy.at,
        "ring": copy.ring,
        "elected": copy.elected.0,
        "form": copy.form,
        "form_reason": copy.reason,
        "copies": copy.copies as i64,
        "copy_bytes": copy.copy_bytes as i64,
        "axes": copy.axes.iter().map(axis).collect::<Vec<_>>(),
        "places": copy.places.iter().map(|(name, [count, stride])| {
            json!({ "name": name, "count": *count as i64, "stride": *stride as i64 })
        }).collect::<Vec<_>>(),
        "swizzle": copy.swizzle,
        "buffer_bytes": copy.buffer_bytes as i64,
        "multicast": copy.multicast.as_ref().map(|multicast| json!({
            "along": multicast.along, "blocks": multicast.blocks, "stride": multicast.stride, "by": multicast.by,
        })),
        "level": copy.level,
        "model": copy.model,
        "holes": copy.holes,
        "zeros_for": copy.zeros_for,
    })
}
