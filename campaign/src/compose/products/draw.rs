//! Random decisions. Most of what is drawn should be accepted: what is refused by rule is drawn now and then.

use super::made::{chain, hand_over, held, written};
use super::{
    Also, Between, Cluster, Engine, Factor, Grid, Placed, Product, Roles, Split, Step, Store, Threads, Tiles, Via,
    Writer,
};
use crate::compose::ast::{Reduction, Type};
use crate::rng::Rng;

/// Types of factors, as often as they are drawn.
const TYPES: [Type; 12] = [
    Type::Bf16,
    Type::Bf16,
    Type::Bf16,
    Type::F16,
    Type::F16,
    Type::F16,
    Type::Tf32,
    Type::E4m3,
    Type::E5m2,
    Type::I8,
    Type::U8,
    Type::I8,
];

/// Registers that the sums of a thread may have, beside what else it needs.
const SUMS: i64 = 160;
/// Bytes of shared memory that slots of factors may take.
const SHARED: i64 = 200 << 10;

/// A random product.
pub fn product(rng: &mut Rng) -> Product {
    let engine = if rng.chance(50) { Engine::MmaSync } else { Engine::Wgmma };
    let ty = *rng.pick(&TYPES);
    // The other one of two that are multiplied with each other.
    let other = match ty {
        Type::E4m3 => Type::E5m2,
        Type::E5m2 => Type::E4m3,
        Type::I8 => Type::U8,
        Type::U8 => Type::I8,
        _ => ty,
    };
    let right = if rng.chance(30) { other } else { ty };
    let tiles = tiles(engine, ty, rng);
    let roles = rng.chance(if engine == Engine::Wgmma { 50 } else { 25 }).then(|| roles(engine, rng));
    let cluster = rng.chance(if engine == Engine::Wgmma { 25 } else { 4 }).then(|| Cluster {
        blocks: *rng.pick(&[2, 2, 2, 2, 4]),
        beside: rng.chance(40),
        multicast: rng.chance(70),
        parts: rng.chance(60),
    });
    let mut product = Product {
        factors: [factor(engine, ty, rng), factor(engine, right, rng)],
        exchanged: rng.chance(20),
        held: [None; 2],
        batch: rng.chance(15).then(|| rng.range(1, 3)),
        placed: None,
        tiles,
        literal: [None; 3],
        even: [rng.chance(12), rng.chance(12), rng.chance(12)],
        unproved: rng.chance(3),
        fewer: rng.chance(2),
        cluster,
        roles,
        launch: Vec::new(),
        inflight: 0,
        split: None,
        atomic: false,
        grid: *rng.pick(&[
            Grid::Both,
            Grid::Both,
            Grid::Both,
            Grid::Swapped,
            Grid::Raster(2),
            Grid::Raster(8),
            Grid::Descending,
            Grid::Merged,
            Grid::Serial,
        ]),
        steps: Vec::new(),
        between: *rng.pick(&[Between::Output, Between::Output, Between::Equation, Between::Stage]),
        output: Type::F32,
        transposed: rng.chance(5),
        store: Store::Single,
        part: None,
        slots: None,
        also: rng.chance(8).then(|| *rng.pick(&[Also::Equation, Also::Tuple])),
    };
    for n in 0..2 {
        swizzle(&mut product, n, rng);
        threads(&mut product, n, rng);
    }
    rings(&mut product, rng);
    for n in 0..3 {
        let block = product.block()[n];
        product.literal[n] = rng.chance(8).then(|| *rng.pick(&[block, block, 2 * block, block + 16]));
    }
    if rng.chance(4) {
        // All terms in one iteration; or a number of them in several.
        product.literal[2] = Some(product.terms() * *rng.pick(&[1, 1, 2]));
        let whole = rng.chance(30);
        for factor in &mut product.factors {
            factor.whole = whole;
            factor.ring = factor.ring.filter(|_| !whole);
        }
    }
    if rng.chance(1) {
        product.literal[rng.below(2)] = Some(32);
    }
    let copied = (0..2).filter(|n| product.factors[*n].via == Via::Tma).collect::<Vec<_>>();
    if product.batch.is_some() && !copied.is_empty() && rng.chance(50) {
        let along = rng.below(3);
        // A tile of a block, a few of them, or a part of one.
        let tile = product.block()[along];
        let parts = [1, 1, 2, 2, 4].into_iter().filter(|n| tile % (8 * n) == 0).map(|n| tile / n);
        let each = *rng.pick(&parts.chain([2 * tile]).collect::<Vec<_>>());
        product.placed = Some(Placed { of: *rng.pick(&copied), each: rng.chance(60).then_some((along, each)) });
    }
    launch(&mut product, rng);
    output(&mut product, rng);
    split(&mut product, rng);
    if rng.chance(1) {
        // Types that nothing multiplies with each other.
        product.factors[1].ty = if ty == Type::F16 { Type::Bf16 } else { Type::F16 };
    }
    own_equations(&mut product, rng);
    if let Some(Placed { of, each: Some((along, _)) }) = &mut product.placed
        && product.held[*of].is_some()
        && *along == 1 - *of
    {
        // The equation of a factor knows its own axes.
        *along = *of;
    }
    hand_over(&mut product, rng);
    turns(&mut product, rng);
    product
}

/// Factors that lanes hold, or that threads write to shared memory.
fn own_equations(product: &mut Product, rng: &mut Rng) {
    match product.tiles.engine {
        Engine::Wgmma => match rng.below(100) {
            0..25 => {
                held(product, 0, rng);
                if rng.chance(25) {
                    chain(product, rng);
                }
                if rng.chance(10) {
                    written(product, 1, rng);
                }
            }
            25..55 => {
                let both = rng.chance(25);
                let one = rng.below(2);
                (0..2).filter(|n| both || *n == one).for_each(|n| written(product, n, rng));
            }
            _ => {}
        },
        Engine::MmaSync => {
            (0..2).for_each(|n| held(product, n, rng));
            if rng.chance(12) {
                chain(product, rng);
            }
        }
    }
}

/// Warpgroups, or warps, that take tiles in turn: each one is all of the role for its own.
fn turns(product: &mut Product, rng: &mut Rng) {
    let alone = product.tiles.units == [1, 1] || rng.chance(1);
    let Some(roles) = product.roles.as_mut().filter(|_| alone && rng.chance(45)) else { return };
    roles.turns = *rng.pick(&[2, 2, 2, 3]);
    if roles.turns == 3 && roles.registers.is_some() {
        roles.registers = Some([40, 152]);
    }
    if !product.launch.contains(&"persistent") && rng.chance(97) {
        product.launch.push("persistent");
    }
}

/// Blocks that share the terms: then one role has all that comes after.
fn split(product: &mut Product, rng: &mut Rng) {
    if !rng.chance(25) {
        return;
    }
    let split = match rng.chance(50) {
        true => Split::By(*rng.pick(&[1, 2, 2, 3])),
        false => Split::Into(*rng.pick(&[2, 2, 3, 4])),
    };
    product.split = Some(split);
    product.atomic = product.sum() == Type::I32 && rng.chance(40) || rng.chance(1);
    if let Some(roles) = &mut product.roles {
        roles.save &= rng.chance(10);
    }
}

fn tiles(engine: Engine, ty: Type, rng: &mut Rng) -> Tiles {
    if engine == Engine::MmaSync {
        return tiles_of_warps(ty, rng);
    }
    let step = if ty.is_integer() { 16 } else { 8 };
    let groups = *rng.pick(&[1, 1, 1, 2, 2]);
    let mut rows = *rng.pick(&[1, 1, 1, 1, 2, 2, 3]);
    let mut columns = match rng.below(10) {
        0..6 => *rng.pick(&[8, 16, 24, 32, 64, 64, 64, 96, 128, 128, 256]),
        6..9 => step * rng.range(1, 32),
        _ => *rng.pick(&[8, 40, 320, 512]),
    };
    // One of a hundred may have more than a thread can hold, or columns that no instruction has.
    if !rng.chance(1) {
        // Products of integers have 8 and 24 columns, too.
        if !(ty.is_integer() && [8, 24].contains(&columns)) {
            columns = (columns + step - 1) / step * step;
        }
        while rows > 1 && rows * columns / 2 > SUMS {
            rows -= 1;
        }
        while columns / 2 > SUMS {
            columns = columns / 2 / step * step;
        }
    }
    let units = if rng.chance(30) { [1, groups] } else { [groups, 1] };
    let inner = if rng.chance(12) { rng.range(2, 3) } else { 1 };
    let unrolled = inner > 1 && rng.chance(50);
    Tiles { engine, units, rows, columns, steps: *rng.pick(&[1, 2, 2, 4, 4, 4, 3, 8]), inner, unrolled }
}

fn tiles_of_warps(ty: Type, rng: &mut Rng) -> Tiles {
    let units =
        *rng.pick(&[[1, 1], [1, 1], [2, 1], [1, 2], [2, 2], [2, 2], [4, 2], [2, 4], [4, 1], [1, 4], [3, 1], [1, 3]]);
    let rows = *rng.pick(&[1, 1, 1, 2, 2, 3, 4]);
    let columns = 8 * *rng.pick(&[1, 2, 2, 2, 3, 4, 4, 5, 6, 8]);
    let steps = *rng.pick(&[1, 1, 1, 2, 2, 3]);
    let inner = *rng.pick(&[1, 1, 2, 2, 2, 3, 4]);
    // Integers have long terms, and halves short ones: tiles are as wide for all.
    let inner = if ty.bytes() == 4 { 2 * inner } else { inner };
    Tiles { engine: Engine::MmaSync, units, rows, columns, steps, inner, unrolled: inner > 1 && rng.chance(50) }
}

fn roles(engine: Engine, rng: &mut Rng) -> Roles {
    if engine == Engine::MmaSync {
        let (load, math_first) = (*rng.pick(&[1, 1, 2, 4, 3]), rng.chance(40));
        let save = rng.chance(10);
        return Roles { load, registers: None, math_first, save, writes: Writer::Load, turns: 1 };
    }
    let whole = rng.chance(50);
    let registers = whole && rng.chance(70);
    Roles {
        load: match whole {
            true => 4,
            false if rng.chance(33) => 2,
            false => 1,
        },
        registers: registers.then(|| *rng.pick(&[[40, 232], [24, 240], [32, 200]])),
        // What multiplies begins with a whole warpgroup.
        math_first: if whole { rng.chance(30) } else { rng.chance(97) },
        save: rng.chance(if registers { 1 } else { 12 }),
        writes: Writer::Load,
        turns: 1,
    }
}

fn factor(engine: Engine, ty: Type, rng: &mut Rng) -> Factor {
    let across = rng.chance(if ty.bytes() == 2 || engine == Engine::MmaSync { 40 } else { 1 });
    Factor {
        ty,
        across,
        swizzle: 0,
        rows: None,
        rows_outside: rng.chance(40),
        bare: rng.chance(1),
        ring: None,
        via: match (engine, rng.below(200)) {
            (Engine::Wgmma, 0) | (Engine::MmaSync, 0..150) => Via::Threads(by_threads(true, rng)),
            (Engine::Wgmma, 1..24) | (Engine::MmaSync, 150..170) => Via::Threads(by_threads(false, rng)),
            _ => Via::Tma,
        },
        hint: rng.chance(8).then(|| *rng.pick(&["l2 evict_first", "l2 evict_last", "l2 promote(128)"])),
        pitched: rng.chance(10),
        plus: if rng.chance(4) { [rng.range(0, 8), *rng.pick(&[0, 0, 8, 1])] } else { [0, 0] },
        whole: false,
    }
}

fn by_threads(ahead: bool, rng: &mut Rng) -> Threads {
    Threads {
        ahead,
        of_warp: rng.chance(12),
        chunk: *rng.pick(&[16, 16, 16, 16, 8, 4]),
        padded: false,
        chunks_outside: rng.chance(25),
    }
}

/// Chunks that divide what threads fetch, and padding where there is no swizzle.
fn threads(product: &mut Product, n: usize, rng: &mut Rng) {
    let (block, terms, of_warp) = (product.block()[n], product.terms(), product.tiles.unit()[n]);
    let factor = &mut product.factors[n];
    let Via::Threads(threads) = &mut factor.via else { return };
    if product.tiles.engine == Engine::Wgmma {
        // What descriptors describe is laid out as for the accelerator, and belongs to the block.
        (threads.of_warp, threads.padded) = (threads.of_warp && rng.chance(10), rng.chance(2));
        return;
    }
    let bytes = factor.ty.bytes() as i64;
    let own = if threads.of_warp { of_warp } else { block };
    let along = bytes * if factor.across { own } else { terms };
    while along % threads.chunk != 0 && threads.chunk > 4 {
        threads.chunk /= 2;
    }
    let is_span = factor.swizzle > 0 && along % factor.swizzle == 0 && threads.chunk == 16;
    if !is_span {
        factor.swizzle = if rng.chance(2) { factor.swizzle } else { 0 };
    }
    threads.padded = factor.swizzle == 0 && rng.chance(40);
    // One of two warps beside each other would have the same.
    factor.rows = None;
}

/// A swizzle that tiles have room for, and boxes of rows or columns.
fn swizzle(product: &mut Product, n: usize, rng: &mut Rng) {
    let (block, terms) = (product.block()[n], product.terms());
    let factor = &mut product.factors[n];
    let bytes = factor.ty.bytes() as i64;
    let along = bytes * if factor.across { block } else { terms };
    let fits: Vec<i64> = [0, 32, 64, 128].into_iter().filter(|s| along % (*s).max(16) == 0).collect();
    factor.swizzle = match fits.last() {
        _ if rng.chance(1) => *rng.pick(&[0, 32, 64, 128]),
        // Mostly the widest one.
        Some(widest) if rng.chance(60) => *widest,
        Some(_) => *rng.pick(&fits),
        None => 0,
    };
    let shared = product.cluster.is_some_and(|c| c.multicast && c.parts && c.beside == (n == 0));
    let is_part = |part: &i64| block % part == 0 && block > *part && block / part <= 16;
    let halves: Vec<i64> = (1..=32).map(|eights| 8 * eights).filter(is_part).collect();
    if !factor.across && (block > 256 || shared || rng.chance(20)) && !halves.is_empty() {
        factor.rows = Some(*rng.pick(&halves));
        if shared && let Some(cluster) = product.cluster {
            factor.rows = Some(block / cluster.blocks);
        }
    }
}

/// Rings that shared memory has room for; those of a role are mostly longer than one.
fn rings(product: &mut Product, rng: &mut Rng) {
    let [rows, columns, terms] = product.block();
    let slot: i64 = [rows, columns].iter().zip(&product.factors).map(|(x, f)| x * terms * f.ty.bytes() as i64).sum();
    let most = (SHARED / slot.max(1)).clamp(1, 4);
    let roles = product.roles.is_some();
    let one = |rng: &mut Rng| {
        let is_ring = if roles { rng.chance(95) } else { rng.chance(60) };
        is_ring.then(|| if roles { rng.range(most.min(2), most) } else { rng.range(1, most) })
    };
    let ring = one(rng);
    product.factors[0].ring = ring;
    product.factors[1].ring = if rng.chance(80) { ring } else { one(rng) };
    let two = product.factors.iter().all(|f| f.ring.is_some_and(|n| n > 1));
    let shortest = product.factors.iter().map(|f| f.ring.unwrap_or(1)).min().unwrap_or(1);
    // A slot is beside those of the groups, but for one of a hundred that has none.
    let most = if rng.chance(1) { shortest + 1 } else { (shortest - 1).max(1) };
    product.inflight = match roles && two {
        true if rng.chance(60) => rng.range(1, most),
        false if rng.chance(2) => 1,
        _ => 0,
    };
}

fn launch(product: &mut Product, rng: &mut Rng) {
    for (item, percent) in [("persistent", 25), ("dependent", 4)] {
        if rng.chance(percent) {
            product.launch.push(item);
        }
    }
}

/// What is made of the sums, and how it is stored.
fn output(product: &mut Product, rng: &mut Rng) {
    let sum = product.sum();
    let others: &[Type] = match sum {
        Type::F32 => &[Type::F32, Type::F16, Type::Bf16, Type::F16, Type::Bf16, Type::I32],
        _ => &[Type::I32, Type::I32, Type::I8, Type::F32, Type::U8],
    };
    product.output = *rng.pick(others);
    let count = *rng.pick(&[0, 0, 0, 1, 1, 2, 3]);
    for _ in 0..count {
        let step = match rng.below(8) {
            0 | 1 => Step::Bias,
            2 => Step::Scale,
            3 => Step::RowScale,
            4 => Step::Relu,
            5 => Step::Residual(*rng.pick(others)),
            6 => Step::Negative,
            _ if rng.chance(50) => Step::Row(*rng.pick(&[Reduction::Max, Reduction::Sum, Reduction::Min])),
            _ => Step::Triangle,
        };
        product.steps.push(step);
    }
    if product.steps.iter().any(|step| matches!(step, Step::Row(_))) {
        // A row is in one block.
        product.tiles.units[1] = if rng.chance(30) { product.tiles.units[1] } else { 1 };
        product.literal[1] = Some(product.tiles.all()[1]);
    }
    let columns = product.tiles.columns;
    let bytes = product.output.bytes() as i64;
    product.store = match rng.below(100) {
        0..40 => Store::Vector,
        40..62 => Store::Single,
        62 => Store::Loop,
        63 => Store::Foreign,
        _ => Store::Shared(0),
    };
    if columns * bytes % 16 != 0 && matches!(product.store, Store::Shared(_)) && rng.chance(95) {
        product.store = Store::Vector;
    }
    let shared = matches!(product.store, Store::Shared(_));
    let is_part = |part: &i64| columns % part == 0 && columns > *part && (!shared || part * bytes % 16 == 0);
    let mut halves: Vec<i64> = [8, 16, 32, 64, 128].into_iter().filter(is_part).collect();
    if shared && product.tiles.units[1] > 1 && rng.chance(95) {
        // Parts of several warpgroups are no box.
        halves.clear();
    }
    if shared && product.grid == Grid::Merged && rng.chance(90) {
        product.grid = Grid::Both;
    }
    if let Some(roles) = &mut product.roles
        && roles.save
    {
        roles.save = shared || rng.chance(10);
    }
    if product.transposed && product.store == Store::Vector && rng.chance(90) {
        product.store = Store::Single;
    }
    let wide = shared && product.tiles.all()[1] > 256;
    if wide && halves.is_empty() {
        product.store = Store::Vector;
    }
    let shared = shared && product.store != Store::Vector;
    if !halves.is_empty() && (wide || rng.chance(if shared { 50 } else { 15 })) {
        product.part = Some(*rng.pick(&halves));
    }
    if shared {
        let tile = product.block();
        let run = if product.transposed { tile[0] } else { product.part.unwrap_or(tile[1]) } * bytes;
        let fits = [32, 64, 128].into_iter().find(|s| *s == run).unwrap_or(0);
        product.store = Store::Shared(if rng.chance(75) { fits } else { 0 });
        if rng.chance(if product.part.is_some() { 60 } else { 10 }) {
            product.slots = Some(rng.range(2, 4));
        }
    }
}
