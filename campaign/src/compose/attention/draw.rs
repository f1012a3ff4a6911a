//! Random decisions.

use super::{Attention, Copied, Heads, Memory, Of, Pages, Range, Reader, Roles, Scores, Sum, features};
use crate::compose::ast::Type;
use crate::compose::matrix::Pair;
use crate::compose::products::Engine;
use crate::rng::Rng;

/// What makes the numbers of attention other ones than those of products.
const ATTENTION: u64 = 0x6174_746e;

/// Kernels that are drawn for a pair of features.
const DRAWS: usize = 2000;

/// The kernel of a case, drawn for two features if some are wanted, and what decides its sizes and data.
pub fn attention(seed: u64, index: u64, wanted: Option<Pair>) -> (Attention, u64) {
    let mut rng = Rng::of_case(seed ^ ATTENTION, index);
    let has = |attention: &Attention, (a, b): Pair| {
        let found = features::of(attention);
        [a, b].iter().all(|feature| found.contains(feature) || features::OF_RUNS.contains(feature))
    };
    let mut drawn = draw(&mut rng);
    for _ in 0..DRAWS {
        if wanted.is_none_or(|pair| has(&drawn, pair)) {
            break;
        }
        drawn = draw(&mut rng);
    }
    (drawn, rng.bits())
}

fn range(rng: &mut Rng) -> Range {
    match rng.below(100) {
        0..40 => Range::All,
        40..62 => Range::Causal,
        62..64 => Range::Before,
        64..72 => Range::Aligned,
        72..82 => Range::Late(rng.range(1, 5)),
        82..88 => Range::LateCausal(rng.range(1, 5)),
        88..96 => Range::Window(rng.range(0, 70)),
        _ => Range::Around(rng.range(0, 40)),
    }
}

fn memory(rng: &mut Rng) -> Memory {
    let of = *rng.pick(&[Of::Head, Of::Head, Of::Tile, Of::Tile, Of::Row]);
    let ends = rng.below(3);
    Memory { of, from: ends != 1, to: ends > 0 }
}

/// Types of tables of pages.
const TABLES: [Type; 8] = [Type::I32, Type::I32, Type::I32, Type::U32, Type::I64, Type::U64, Type::U8, Type::I16];

/// Pages as large as a block or parts of one; a few that are refused, of two blocks or in tables of tables.
fn pages(attention: &Attention, rng: &mut Rng) -> Pages {
    let block = attention.block;
    // Tensor cores read runs of 32 bytes of terms of 8 bits, which are those of one page.
    let least = if attention.is_eight() { 32 } else { 8 };
    let parts = [1, 2, 2, 4, 4, 8].into_iter();
    let fits: Vec<i64> = parts.filter(|n| *n == 1 || block % (least * n) == 0).map(|n| block / n).collect();
    let terms = if rng.chance(3) { 2 * block } else { *rng.pick(&fits) };
    let ty = *rng.pick(&TABLES);
    let of = *rng.pick(&[[true, true], [true, true], [true, true], [true, false], [false, true]]);
    Pages {
        terms,
        of,
        own: attention.heads != Heads::One && rng.chance(60),
        of_tables: rng.chance(2),
        ty,
        plus: if ty.bytes() < 8 && rng.chance(25) { rng.range(-2, 2) } else { 0 },
    }
}

/// The same with pages, which the accelerator copies, mostly.
fn paged(mut attention: Attention, rng: &mut Rng) -> Attention {
    let mut pages = pages(&attention, rng);
    pages.of[0] |= attention.same;
    attention.pages = Some(pages);
    for n in [1, 2] {
        let Some(pages) = attention.pages_of(n) else { continue };
        attention.copies[n].tma |= rng.chance(95);
        if attention.is_eight() && n == 2 {
            // Runs of terms are those of a page.
            let fits: Vec<i64> = [32, 64, 128].into_iter().filter(|s| pages.terms % s == 0).collect();
            attention.copies[n].swizzle = fits.last().copied().unwrap_or(32);
        }
    }
    attention.literal = attention.literal.map(|n| (n + pages.terms - 1) / pages.terms * pages.terms);
    // Values of a block that may lack terms are no factor where memory tells their place.
    if attention.pages_of(2).is_some() && rng.chance(90) {
        attention.divides = true;
        let block = attention.block * attention.again.unwrap_or(1);
        attention.literal = attention.literal.map(|n| (n + block - 1) / block * block);
    }
    attention
}

fn scores(rng: &mut Rng) -> Scores {
    match rng.below(100) {
        0..40 => Scores::Plain,
        40..55 => Scores::Scaled,
        55..60 => Scores::Inline,
        60..82 => Scores::Biased,
        82..92 => Scores::OfTerms,
        _ => Scores::Masked,
    }
}

fn roles(engine: Engine, rng: &mut Rng) -> Roles {
    let registers = engine == Engine::Wgmma && rng.chance(30);
    Roles {
        load: if registers { 4 } else { *rng.pick(&[1, 1, 2, 4]) },
        // A warpgroup starts at a multiple of four warps.
        first: (engine == Engine::MmaSync || registers) && rng.chance(50),
        registers,
        alternate: engine == Engine::Wgmma && rng.chance(20),
    }
}

fn draw(rng: &mut Rng) -> Attention {
    let engine = if rng.chance(65) { Engine::Wgmma } else { Engine::MmaSync };
    let head = *rng.pick(&[16, 16, 16, 32, 32, 64, 96, 128]);
    let width = if rng.chance(40) { head } else { *rng.pick(&[8, 16, 16, 24, 32, 64, 128]) };
    let block = *rng.pick(&[16, 16, 32, 32, 48, 64, 80, 128]);
    let min = rng.chance(20);
    let roles = rng.chance(35).then(|| roles(engine, rng));
    let is_alternate = roles.is_some_and(|roles| roles.alternate);
    let units = match engine {
        _ if is_alternate => 1,
        Engine::Wgmma => *rng.pick(&[1, 1, 1, 2]),
        Engine::MmaSync => *rng.pick(&[1, 2, 4, 4]),
    };
    let (range, scores) = (range(rng), scores(rng));
    let mut sums: Vec<Sum> = Vec::new();
    if rng.chance(93) {
        sums.push(Sum::Plain);
    }
    for (sum, chance) in [(Sum::Rounded, 5), (Sum::Twice, 15), (Sum::Weighted, 10), (Sum::Scored, 6)] {
        if rng.chance(chance) {
            sums.insert(rng.below(sums.len() + 1), sum);
        }
    }
    let again = rng.chance(6).then_some(2);
    let all = block * again.unwrap_or(1);
    let same = rng.chance(10);
    let heads = match rng.below(100) {
        0..65 => Heads::One,
        65..88 => Heads::Own,
        _ => Heads::Grouped(rng.range(2, 3)),
    };
    // Warps multiply 16 columns at least, as they load them.
    let width = if engine == Engine::MmaSync { (width + 15) / 16 * 16 } else { width };
    let sizes = [head, if same { head } else { width }];
    let copied = |n: usize, rng: &mut Rng| {
        let bytes = 2 * sizes[usize::from(n == 2)];
        let swizzles: Vec<i64> = [128, 64, 32, 0].into_iter().filter(|s| *s == 0 || bytes % s == 0).collect();
        let swizzle = if rng.chance(70) { swizzles[0] } else { *rng.pick(&swizzles) };
        let ring = (n > 0 && rng.chance(75)).then(|| *rng.pick(&[1, 2, 2, 2, 3, 4]));
        Copied { tma: rng.chance(if engine == Engine::Wgmma { 85 } else { 30 }), swizzle, ring }
    };
    let copies = [copied(0, rng), copied(1, rng), copied(2, rng)];
    let literal = rng.chance(8).then(|| match rng.below(3) {
        0 => all * rng.range(1, 3),
        1 => all + 8,
        _ => rng.range(5, 2 * all),
    });
    let is_inner = matches!(range, Range::Causal | Range::Before | Range::LateCausal(_) | Range::Window(_));
    let statistics = rng.chance(20);
    let reader = match rng.below(100) {
        0..60 => Reader::Quotient,
        60..80 => Reader::All,
        80..90 => Reader::Alone,
        _ => Reader::Extreme,
    };
    if !statistics && matches!(reader, Reader::Alone | Reader::Extreme) {
        sums.clear();
    }
    let before = rng.below(sums.len() + 1);
    let memory = rng.chance(25).then(|| memory(rng));
    let attention = Attention {
        engine,
        ty: if rng.chance(60) { Type::Bf16 } else { Type::F16 },
        multiple: None,
        min,
        sizes,
        block,
        divides: rng.chance(45),
        literal,
        again,
        rows: if rng.chance(10) { 2 } else { 1 },
        units,
        range,
        memory,
        square: rng.chance(if is_inner { 97 } else { 15 }),
        scores,
        held: [rng.chance(60), rng.chance(60), rng.chance(95)],
        function: ["exp", "approx::exp", "approx::exp2", "approx::exp2"][rng.below(4)],
        factor: rng.chance(60).then(|| *rng.pick(&["0.125", "0.18", "1.5", "2.0"])),
        fused: rng.chance(50),
        behind: rng.chance(60),
        sums,
        before,
        heads,
        same,
        pages: None,
        copies,
        roles,
        persistent: is_alternate || rng.chance(20),
        descending: rng.chance(15),
        reader,
        narrow: rng.chance(30),
        statistics,
    };
    let is_eight = attention.engine == Engine::Wgmma && rng.chance(15);
    let attention = if is_eight { eight(attention, rng) } else { attention };
    if rng.chance(25) { paged(attention, rng) } else { attention }
}

/// The same with factors of 8 bits, which the accelerator copies: values with the terms as the last axis.
fn eight(attention: Attention, rng: &mut Rng) -> Attention {
    let (ty, multiples) = match rng.chance(70) {
        true => (Type::E4m3, ["256.0", "-0.5"]),
        false => (Type::E5m2, ["16384.0", "-3.0"]),
    };
    let (head, block) = (attention.sizes[0].max(32), (attention.block + 31) / 32 * 32);
    let copied = |n: usize, rng: &mut Rng| {
        let bytes = if n == 2 { block } else { head };
        let swizzles: Vec<i64> = [128, 64, 32].into_iter().filter(|s| bytes % s == 0).collect();
        Copied { tma: true, swizzle: *rng.pick(&swizzles), ..attention.copies[n] }
    };
    Attention {
        ty,
        multiple: rng.chance(60).then(|| *rng.pick(&multiples)),
        sizes: [head, attention.sizes[1]],
        block,
        literal: attention.literal.map(|terms| (terms + 15) / 16 * 16),
        same: false,
        narrow: false,
        copies: [copied(0, rng), copied(1, rng), copied(2, rng)],
        ..attention
    }
}
