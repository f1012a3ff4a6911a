//! Products by tensor cores: which instructions multiply which tiles, and how they read their factors.

use serde_json::{Value, json};
use tilewright_compiler::domain::AxisId;
use tilewright_compiler::kernel_ir::Wgmma;
use tilewright_compiler::plan::Analysed;
use tilewright_compiler::plan::product::{Factor, Matrices};
use tilewright_compiler::schedule::rows_of;
use tilewright_kernel::tensor_map::Swizzle;

/// The product that a stage is; null if it is none.
pub fn product(analysed: &Analysed) -> Value {
    let (Some(mma), Some(product)) = (&analysed.stage.product, &analysed.product) else { return Value::Null };
    let domain = &analysed.stage.domain;
    let count = |axis: Option<AxisId>| axis.and_then(|axis| domain.axes[axis].extent.as_constant()).unwrap_or(1) as i64;
    let [rows, columns] = [rows_of(mma.engine), product.columns].map(i64::from);
    let (depth, steps) = (i64::from(Wgmma::depth(mma.bytes())), count(mma.steps));
    let factors = product.factors.iter().zip(product.types).zip(["m", "n"]);
    let factors = factors.map(|((factor, element), across)| match factor {
        Factor::Shared(operand) => json!({
            "name": operand.copy,
            "element": element.to_string(),
            "place": "shared",
            "descriptor": {
                "along": if operand.across { across } else { "k" },
                "leading": operand.leading,
                "stride": operand.stride,
                "swizzle": (operand.swizzle != Swizzle::None).then(|| operand.swizzle.span()),
            },
        }),
        Factor::Held(held) => json!({
            "name": held.name, "element": element.to_string(), "place": "registers", "descriptor": null,
        }),
    });
    json!({
        "engine": mma.engine.to_string(),
        "instruction": { "m": rows, "n": columns, "k": depth },
        "tile": { "m": rows * count(mma.rows.tiles), "n": 8 * count(Some(mma.columns.eights)), "k": depth * steps },
        "steps": steps,
        "inflight": mma.inflight,
        "factors": factors.collect::<Vec<_>>(),
    })
}

/// How the lanes of a warp load a factor in registers from shared memory, or store a sum there: as matrices; null if
/// each lane does so by itself.
pub fn matrices(found: Option<&Matrices>) -> Value {
    found.map_or(Value::Null, |matrices| json!({ "count": matrices.count, "transposed": matrices.transposed }))
}
