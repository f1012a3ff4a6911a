//! Decisions, taken back one after the other.

use super::{Between, Engine, Grid, Held, Made, Placed, Product, Split, Store, Threads, Via, Writer, Written};

/// Takes decisions back as long as `fails` says that what is left still does; tries at most so many.
pub fn shrink(product: &Product, tries: &mut u32, fails: &dyn Fn(&Product) -> bool) -> Product {
    let mut small = product.clone();
    loop {
        let mut next = candidates(&small).into_iter().filter(|candidate| *candidate != small);
        let found = next.find(|candidate| {
            let more = *tries > 0;
            *tries = tries.saturating_sub(1);
            more && fails(candidate)
        });
        match found {
            Some(candidate) => small = candidate,
            None => return small,
        }
    }
}

/// Products with one decision less; none of them leads back to what it came from.
fn candidates(product: &Product) -> Vec<Product> {
    let mut list = Vec::new();
    let mut with = |change: &dyn Fn(&mut Product)| {
        let mut candidate = product.clone();
        change(&mut candidate);
        list.push(candidate);
    };
    with(&|p| p.steps.clear());
    with(&|p| (p.roles, p.inflight) = (None, 0));
    with(&|p| p.cluster = None);
    with(&|p| p.split = None);
    with(&|p| p.split = p.split.map(|_| Split::Into(2)));
    with(&|p| p.atomic = false);
    with(&|p| p.launch.clear());
    with(&|p| (p.batch, p.placed) = (None, None));
    with(&|p| p.placed = None);
    with(&|p| p.placed = p.placed.map(|placed| Placed { each: None, ..placed }));
    with(&|p| p.also = None);
    with(&|p| p.between = Between::Output);
    of_stores(&mut with);
    with(&|p| p.grid = Grid::Both);
    with(&|p| p.transposed = false);
    with(&|p| p.exchanged = false);
    with(&|p| p.output = p.sum());
    of_tiles(&mut with);
    with(&|p| p.inflight = 0);
    with(&|p| p.unproved = false);
    with(&|p| p.fewer = false);
    for n in 0..3 {
        with(&|p| p.literal[n] = None);
        with(&|p| p.even[n] = false);
    }
    for n in 0..product.steps.len() {
        with(&|p| p.steps.retain(|step| *step != product.steps[n]));
    }
    for n in 0..product.launch.len() {
        with(&|p| p.launch.retain(|item| *item != product.launch[n]));
    }
    with(&|p| {
        if let Some(roles) = &mut p.roles {
            (roles.registers, roles.save) = (None, false);
        }
    });
    with(&|p| p.roles.iter_mut().for_each(|roles| roles.turns = 1));
    with(&|p| p.roles.iter_mut().for_each(|roles| roles.turns = roles.turns.min(2)));
    with(&|p| p.roles.iter_mut().for_each(|roles| roles.writes = Writer::Load));
    with(&|p| {
        if let Some(cluster) = &mut p.cluster {
            (cluster.multicast, cluster.blocks) = (false, 2);
        }
    });
    for n in 0..2 {
        if product.tiles.engine == Engine::Wgmma {
            with(&|p| p.held[n] = None);
        }
        let mut held = |change: &dyn Fn(&mut Held)| with(&|p| p.held[n].iter_mut().for_each(change));
        held(&|held| held.made = Made::Nothing);
        held(&|held| held.copied = false);
        held(&|held| held.vector = false);
        held(&|held| held.outside = false);
        held(&|held| held.of_block = false);
        held(&|held| {
            let simple = |_| Written { chunk: 16, turned: false, unrolled: false };
            held.written = held.written.map(simple);
        });
        with(&|p| {
            let ty = p.factors[n].ty;
            if let Some(held) = &mut p.held[n] {
                (held.from, held.by_hand) = (ty, held.by_hand && ty.bytes() != 2);
            }
        });
        with(&|p| {
            if let Via::Threads(threads) = &mut p.factors[n].via {
                *threads = Threads { ahead: true, of_warp: false, chunk: 16, padded: false, chunks_outside: false };
            }
        });
        with(&|p| p.factors[n].across = false);
        with(&|p| p.factors[n].ring = None);
        with(&|p| p.factors[n].ring = p.factors[n].ring.map(|ring| ring.min(2)));
        with(&|p| p.factors[n].rows = None);
        with(&|p| p.factors[n].rows_outside = false);
        with(&|p| p.factors[n].swizzle = p.factors[n].swizzle.min(32));
        with(&|p| p.factors[n].swizzle = 0);
        with(&|p| p.factors[n].hint = None);
        with(&|p| p.factors[n].pitched = false);
        with(&|p| p.factors[n].plus = [0, 0]);
        with(&|p| p.factors[n].whole = false);
        with(&|p| p.factors[n].bare = false);
        with(&|p| p.factors[n].via = if p.tiles.engine == Engine::Wgmma { Via::Tma } else { p.factors[n].via });
    }
    with(&|p| p.factors[1].ty = p.factors[0].ty);
    with(&|p| p.factors.iter_mut().for_each(|f| f.across = false));
    with(&|p| {
        if p.tiles.steps > 1 {
            p.tiles.steps = 1;
            p.factors.iter_mut().for_each(|f| f.swizzle = 32);
        }
    });
    list
}

/// What takes a decision back.
type Change<'a> = &'a dyn Fn(&mut Product);

/// How results are stored, and whether stages of warps are shared.
fn of_stores(with: &mut dyn FnMut(Change<'_>)) {
    with(&|p| p.store = Store::Single);
    with(&|p| p.store = if matches!(p.store, Store::Shared(_)) { Store::Shared(0) } else { p.store });
    with(&|p| p.slots = None);
    with(&|p| p.part = None);
}

/// The same with smaller tiles.
fn of_tiles(with: &mut dyn FnMut(Change<'_>)) {
    with(&|p| p.tiles.units = [1, 1]);
    with(&|p| p.tiles.units[0] = 1);
    with(&|p| p.tiles.units[1] = 1);
    with(&|p| p.tiles.inner = 1);
    with(&|p| p.tiles.unrolled = false);
    with(&|p| p.tiles.rows = 1);
    with(&|p| p.tiles.columns = p.tiles.columns.min(16));
    with(&|p| p.tiles.columns = p.tiles.columns.min((p.tiles.columns / 2 / 16 * 16).max(16)));
    with(&|p| p.tiles.steps = 1);
    with(&|p| p.tiles.steps = p.tiles.steps.min(2));
}
