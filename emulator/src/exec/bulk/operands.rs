//! Copies from their operands: tensor maps, boxes, lines and data, with the rules of each (PTX manual 9.7.9.25). Where
//! they go, and who may be in their way, is not looked at here.

use tilewright_kernel::tensor_map::{ENCODED_BYTES, GRANULE, TensorMap};

use super::{Issue, stop};
use crate::bulk::flight::{Cargo, Issuer};
use crate::bulk::tile::{self, Span};
use crate::decode::op::{BulkFn, Space};
use crate::exec::access::{small_location, space_of, window};
use crate::exec::env::{Env, Facts, Halt};
use crate::exec::global::global_location;
use crate::report::Kind;

/// Alignment of a tile in shared memory (CUDA programming guide, alignment of multi-dimensional bulk copies).
const TILE_ALIGNMENT: u64 = 128;

/// The tensor map at a generic address.
pub(super) fn tensor_map(env: &mut Env<'_>, issuer: Issuer, address: u64) -> Result<TensorMap, Halt> {
    let space = space_of(address);
    let at = address.wrapping_sub(window(space));
    let cx = env.cx;
    if !at.is_multiple_of(64) {
        return stop(
            env,
            issuer,
            Kind::Misaligned,
            format!("the tensor map at {address:#x} must be at a multiple of 64"),
        );
    }
    let mut bytes = [0; ENCODED_BYTES];
    let words = match space {
        Space::Param => Some((&cx.params, u64::from(cx.kernel.param_bytes))),
        Space::Const => Some((&cx.constants, cx.constants.len() as u64 * 4)),
        _ => None,
    };
    let found = match space {
        Space::Global => cx.regions.find(at, ENCODED_BYTES as u64, false, usize::MAX).ok(),
        _ => None,
    };
    match (found, words) {
        (_, Some((words, size))) if at.checked_add(ENCODED_BYTES as u64).is_some_and(|end| end <= size) => {
            for (chunk, word) in bytes.chunks_exact_mut(4).zip(&words[at as usize / 4..]) {
                chunk.copy_from_slice(&word.to_le_bytes());
            }
        }
        (Some(index), _) => {
            let allocation = &cx.regions.get(index).allocation;
            let offset = at - allocation.base;
            if allocation.first_uninitialised(offset, ENCODED_BYTES as u64).is_some() {
                let detail = "the tensor map".to_owned();
                let location = Some(global_location(env, at, ENCODED_BYTES as u64));
                let facts = Facts { lane: issuer.lane, location, detail, fatal: true, ..Facts::default() };
                env.report(Kind::UninitialisedRead, issuer.pc, facts);
                return Err(Halt);
            }
            allocation.copy_to(offset, &mut bytes);
        }
        _ => {
            let detail = format!(
                "there are no {ENCODED_BYTES} bytes of a tensor map at {address:#x}, in parameters, constants or global memory"
            );
            return stop(env, issuer, Kind::CopyMisuse, detail);
        }
    }
    match TensorMap::decode(&bytes) {
        Ok(map) => Ok(map),
        Err(why) => stop(env, issuer, Kind::CopyMisuse, format!("the tensor map at {address:#x}: {why}")),
    }
}

/// A copy of a box, checked against its map.
pub(super) fn tiled(
    env: &mut Env<'_>,
    issuer: Issuer,
    f: BulkFn,
    map: &TensorMap,
    (shared, start, mbarrier): (u64, &[i32], u64),
) -> Result<Issue, Halt> {
    let rank = map.dimensions.len();
    if rank != start.len() {
        let detail = format!("{} coordinates for a tensor map of {rank} dimensions", start.len());
        return stop(env, issuer, Kind::CopyMisuse, detail);
    }
    let store = f == BulkFn::StoreTile;
    if let Some((dimension, at)) = start.iter().enumerate().find(|(_, at)| store && **at < 0) {
        let detail = format!("a store must not start at a negative coordinate: {at} in dimension {dimension}");
        return stop(env, issuer, Kind::CopyMisuse, detail);
    }
    let inner = i64::from(start[0]) * i64::from(map.format.bytes());
    if inner.rem_euclid(GRANULE as i64) != 0 {
        // PTX manual 5.5.3.1: the address of a box is a multiple of 16 bytes; Hopper stops with an illegal instruction.
        let detail = format!(
            "the box starts {inner} bytes into a row (coordinate {} of dimension 0), not at a multiple of {GRANULE}",
            start[0]
        );
        env.report(Kind::Misaligned, issuer.pc, Facts { lane: issuer.lane, detail, ..Facts::default() });
    }
    if f != BulkFn::PrefetchTile {
        aligned(env, issuer, Space::Shared, shared, TILE_ALIGNMENT)?;
    }
    Ok(Issue {
        issuer,
        f,
        cargo: Cargo {
            tile: shared as u32,
            swizzle: map.swizzle,
            image: tile::filled(map),
            spans: tile::spans(map, start, store),
            source: 0,
        },
        bytes: map.tile_bytes(),
        needed: if store { tile::spans(map, start, false) } else { Vec::new() },
        mbarrier,
        owner: 0,
        first: true,
    })
}

/// A copy of consecutive bytes.
pub(super) fn line(
    env: &mut Env<'_>,
    issuer: Issuer,
    f: BulkFn,
    (shared, global, bytes, mbarrier): (u64, u64, u64, u64),
) -> Result<Issue, Halt> {
    if !bytes.is_multiple_of(GRANULE) {
        return stop(env, issuer, Kind::CopyMisuse, format!("the size is {bytes} bytes, not a multiple of {GRANULE}"));
    }
    aligned(env, issuer, Space::Shared, shared, GRANULE)?;
    aligned(env, issuer, Space::Global, global, GRANULE)?;
    let spans = vec![Span { offset: 0, address: global, bytes: bytes as u32 }];
    fits(env, issuer, shared, bytes)?;
    let cargo = Cargo { tile: shared as u32, image: vec![0; bytes as usize], spans: spans.clone(), ..Cargo::default() };
    Ok(Issue { issuer, f, cargo, bytes, needed: spans, mbarrier, owner: 0, first: true })
}

/// Refuses more bytes than a block has shared memory.
fn fits(env: &mut Env<'_>, issuer: Issuer, shared: u64, bytes: u64) -> Result<(), Halt> {
    if bytes <= u64::from(env.cx.shared_bytes) {
        return Ok(());
    }
    let location = Some(small_location(env, Space::Shared, shared, bytes));
    let facts = Facts { lane: issuer.lane, location, fatal: true, ..Facts::default() };
    env.report(Kind::OutOfBounds, issuer.pc, facts);
    Err(Halt)
}

/// A copy of consecutive bytes of shared memory to that of another CTA.
pub(super) fn across(
    env: &mut Env<'_>,
    issuer: Issuer,
    (place, source, bytes, mbarrier): (u64, u64, u64, u64),
) -> Result<Issue, Halt> {
    if !bytes.is_multiple_of(GRANULE) {
        return stop(env, issuer, Kind::CopyMisuse, format!("the size is {bytes} bytes, not a multiple of {GRANULE}"));
    }
    aligned(env, issuer, Space::Shared, place, GRANULE)?;
    aligned(env, issuer, Space::Shared, source, GRANULE)?;
    fits(env, issuer, place, bytes)?;
    let cargo = Cargo { tile: place as u32, image: vec![0; bytes as usize], source: source as u32, ..Cargo::default() };
    // The source is looked at as that of a store is.
    let needed = vec![Span { offset: 0, address: 0, bytes: bytes as u32 }];
    Ok(Issue { issuer, f: BulkFn::Across, cargo, bytes, needed, mbarrier, owner: 0, first: true })
}

/// Data of a thread to another CTA.
pub(super) fn put(
    env: &mut Env<'_>,
    issuer: Issuer,
    f: BulkFn,
    (place, image, mbarrier): (u64, Vec<u8>, u64),
) -> Result<Issue, Halt> {
    let bytes = image.len() as u64;
    aligned(env, issuer, Space::Shared, place, bytes)?;
    let cargo = Cargo { tile: place as u32, image, ..Cargo::default() };
    Ok(Issue { issuer, f, cargo, bytes, needed: Vec::new(), mbarrier, owner: 0, first: true })
}

/// The rank of the CTA whose shared memory an address is in.
pub(super) fn target(env: &mut Env<'_>, issuer: Issuer, address: u64, own: bool) -> Result<usize, Halt> {
    let (rank, offset) = env.rank_of(address);
    let ctas = env.cx.ctas() as u64;
    let refusal = if rank >= ctas {
        format!("the address {address:#x} is of rank {rank}, and the cluster has {ctas} blocks")
    } else if own && rank != env.rank as u64 {
        format!("the address {offset:#x} is of rank {rank}; it must be the block's own, of rank {}", env.rank)
    } else {
        return Ok(rank as usize);
    };
    stop(env, issuer, Kind::OutOfBounds, refusal)
}

/// Refuses an address that is no multiple of `align`.
fn aligned(env: &mut Env<'_>, issuer: Issuer, space: Space, address: u64, align: u64) -> Result<(), Halt> {
    if address.is_multiple_of(align) {
        return Ok(());
    }
    let location = match space {
        Space::Shared => small_location(env, space, address, 1),
        _ => global_location(env, address, 1),
    };
    let detail = format!("the address must be a multiple of {align}");
    let facts = Facts { lane: issuer.lane, location: Some(location), detail, fatal: true, ..Facts::default() };
    env.report(Kind::Misaligned, issuer.pc, facts);
    Err(Halt)
}
