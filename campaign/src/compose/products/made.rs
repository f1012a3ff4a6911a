//! Random decisions about factors that have an equation of their own: lanes hold them, or threads write them to shared
//! memory.

use super::{Engine, Held, Made, Product, Via, Writer, Written};
use crate::compose::ast::Type;
use crate::rng::Rng;

/// A factor in registers, of which no group stays under way.
pub(super) fn held(product: &mut Product, n: usize, rng: &mut Rng) {
    let (engine, ty) = (product.tiles.engine, product.factors[n].ty);
    let others: &[Type] = match ty {
        Type::Bf16 => &[Type::Bf16, Type::F16, Type::I8, Type::E4m3, Type::F32],
        Type::F16 => &[Type::F16, Type::Bf16, Type::U8, Type::E5m2],
        Type::Tf32 => &[Type::Tf32, Type::F32, Type::F16],
        Type::E4m3 => &[Type::E4m3, Type::F16, Type::E5m2],
        Type::E5m2 => &[Type::E5m2, Type::Bf16],
        Type::I8 => &[Type::I8, Type::I32],
        _ => &[Type::U8],
    };
    let of_lanes = engine == Engine::MmaSync;
    // As it is, mostly: that is what is loaded by matrices.
    let from = if of_lanes && rng.chance(65) { ty } else { *rng.pick(others) };
    let copied = from.bytes() == ty.bytes() && rng.chance(if of_lanes { 75 } else { 60 });
    let each = 4 / ty.bytes();
    let pairs = each == 2 && product.tiles.unit()[n] % 16 == 0;
    let [single, alone] = [product.tiles.units[1 - n] == 1, product.tiles.units == [1, 1]];
    let tiles = &mut product.tiles;
    product.held[n] = Some(Held {
        from,
        copied,
        made: match rng.below(10) {
            0 => Made::Scaled,
            1 => Made::Relu,
            _ => Made::Nothing,
        },
        by_hand: !pairs || rng.chance(20),
        vector: each > 1 && rng.chance(15),
        outside: tiles.inner == 1 || tiles.unrolled && rng.chance(15),
        of_block: alone && rng.chance(98) || single && rng.chance(30) || rng.chance(1),
        written: None,
    });
    product.inflight = if rng.chance(3) { product.inflight } else { 0 };
    if !of_lanes {
        product.tiles.units[1] = if rng.chance(10) { product.tiles.units[1] } else { 1 };
        product.tiles.rows = if rng.chance(10) { product.tiles.rows } else { 1 };
    }
    if !copied {
        product.factors[n].whole = false;
    }
    if from.bytes() != ty.bytes() || copied {
        return;
    }
    // What no copy holds lies anywhere.
    product.factors[n].across |= rng.chance(20);
}

/// A left factor that is a product itself.
pub(super) fn chain(product: &mut Product, rng: &mut Rng) {
    let factor = &mut product.factors[0];
    // What a product leaves lanes with are what they multiply where two share a register.
    if factor.ty.bytes() != 2 && rng.chance(97) {
        return;
    }
    (factor.across, factor.pitched, factor.plus, factor.whole) = (false, false, [0, 0], false);
    product.cluster = product.cluster.filter(|_| rng.chance(10));
    if let Some(held) = &mut product.held[0] {
        held.made = Made::Product(*rng.pick(&[1, 2, 4]));
        (held.from, held.copied, held.by_hand, held.vector) = (factor.ty, false, false, false);
    }
}

/// A factor that threads make and write to shared memory.
pub(super) fn written(product: &mut Product, n: usize, rng: &mut Rng) {
    let (units, rows, inflight) = (product.tiles.units, product.tiles.rows, product.inflight);
    let whole = product.factors[n].whole;
    held(product, n, rng);
    (product.tiles.units, product.tiles.rows, product.inflight) = (units, rows, inflight);
    product.factors[n].whole = whole;
    let ty = product.factors[n].ty;
    let bytes = ty.bytes() as i64;
    let turned = ty.bytes() == 2 && rng.chance(25);
    let Some(held) = &mut product.held[n] else { return };
    (held.by_hand, held.vector, held.outside, held.of_block) = (false, false, false, false);
    let chunk = if rng.chance(15) { bytes } else { *rng.pick(&[16, 16, 8, 4]) };
    held.written = Some(Written { chunk: chunk.max(bytes), turned, unrolled: rng.chance(20) });
    // What a copy holds comes by the accelerator.
    product.factors[n].via = Via::Tma;
}

/// Who writes the factors that threads write: the role that multiplies leaves no group under way while it does.
pub(super) fn hand_over(product: &mut Product, rng: &mut Rng) {
    if !(0..2).any(|n| product.is_written(n)) {
        return;
    }
    let Some(roles) = &mut product.roles else {
        product.inflight = if rng.chance(3) { product.inflight } else { 0 };
        return;
    };
    roles.writes = match rng.below(10) {
        0..3 => Writer::Load,
        3..6 => Writer::Math,
        _ => Writer::Make(if roles.registers.is_some() { 4 } else { *rng.pick(&[1, 2, 4, 4]) }),
    };
    if roles.writes == Writer::Math && rng.chance(97) {
        product.inflight = 0;
    }
}
