//! Mistakes of protocols, planted in the loop program of a kernel: each function gives the kernels with one such
//! mistake.

use tilewright::kernel::algorithm::Compare;
use tilewright_compiler::kernel_ir::{
    Facts, If, IndexOp, Kernel, Loop, Op, Range, Receivers, Region, RegionId, Statement, StatementKind, Type, Value,
    ValueId,
};
use tilewright_compiler::target::WARP;

/// Kernels with one mistake each.
pub type Plant = fn(&Kernel) -> Vec<Kernel>;

/// All statements: region and position.
fn places(kernel: &Kernel) -> impl Iterator<Item = (usize, usize)> + use<'_> {
    (0..kernel.regions.len()).flat_map(|r| (0..kernel.regions[r].statements.len()).map(move |at| (r, at)))
}

/// A value that a region binds before a statement.
fn bind(kernel: &mut Kernel, (region, at): (usize, usize), op: Op, ty: Type, facts: Facts) -> ValueId {
    let id = ValueId(kernel.values.len() as u32);
    let literal = matches!(op, Op::Literal(_));
    let of = if literal { Kernel::BODY } else { RegionId(region as u32) };
    kernel.values.push(Value { op, ty, region: of, facts });
    if !literal {
        let line = kernel.regions[region].statements.get(at).map_or(0, |s| s.line);
        kernel.regions[region].statements.insert(at, Statement { line, kind: StatementKind::Let(id) });
    }
    id
}

fn literal(kernel: &mut Kernel, bits: u64, ty: Type) -> ValueId {
    let like = |v: &&Value| matches!(v.op, Op::Literal(_));
    let facts = kernel.values.iter().find(like).map_or(Facts::NONE, |v| v.facts);
    let facts = Facts { range: Facts::NONE.range, uniform: true, cluster: facts.cluster };
    bind(kernel, (0, 0), Op::Literal(bits), ty, facts)
}

/// A wait asks for the other parity.
pub fn other_parity(kernel: &Kernel) -> Vec<Kernel> {
    let plant = |(region, at): (usize, usize)| {
        let StatementKind::MbarrierWait { barrier, slot, parity } = kernel.regions[region].statements[at].kind else {
            return None;
        };
        let mut mutant = kernel.clone();
        let facts = kernel.values[parity.index()].facts;
        let one = literal(&mut mutant, 1, Type::I32);
        let op = Op::Index(IndexOp::Xor, parity, one);
        let other = bind(&mut mutant, (region, at), op, Type::I32, Facts { uniform: true, ..facts });
        mutant.regions[region].statements[at + 1].kind = StatementKind::MbarrierWait { barrier, slot, parity: other };
        Some(mutant)
    };
    places(kernel).filter_map(plant).collect()
}

/// What a role counts from tile to tile begins anew in each.
pub fn reset_per_tile(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for role in kernel.roles() {
        let statements = &kernel.region(role.body).statements;
        let tiles = statements.iter().find_map(|s| match &s.kind {
            StatementKind::Loop(l) => Some(l.body),
            _ => None,
        });
        let Some(tiles) = tiles else { continue };
        for statement in statements {
            let StatementKind::Declare(variable, value) = statement.kind else { continue };
            let mut mutant = kernel.clone();
            let again = Statement { line: statement.line, kind: StatementKind::Set(variable, value) };
            mutant.regions[tiles.index()].statements.insert(0, again);
            mutants.push(mutant);
        }
    }
    mutants
}

/// A slot is handed back right after the wait for what it holds.
pub fn early_release(kernel: &Kernel) -> Vec<Kernel> {
    let plant = |(region, at): (usize, usize)| {
        let statements = &kernel.regions[region].statements;
        let StatementKind::MbarrierArrive { barrier, to, .. } = statements[at].kind else { return None };
        let awaited = statements[..at].iter().position(|s| matches!(s.kind, StatementKind::MbarrierWait { .. }))?;
        let StatementKind::MbarrierWait { slot, .. } = statements[awaited].kind else { return None };
        let mut mutant = kernel.clone();
        let mut moved = mutant.regions[region].statements.remove(at);
        moved.kind = StatementKind::MbarrierArrive { barrier, slot, to };
        mutant.regions[region].statements.insert(awaited + 1, moved);
        Some(mutant)
    };
    places(kernel).filter_map(plant).collect()
}

/// What threads fetch is handed over by nobody, before it is on its way, or before it is there.
pub fn early_fetches(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for (region, at) in places(kernel) {
        let statements = &kernel.regions[region].statements;
        let StatementKind::CpAsyncMbarrierArrive { barrier, .. } = statements[at].kind else { continue };
        let awaited = statements[..at].iter().rposition(|s| matches!(s.kind, StatementKind::MbarrierWait { .. }));
        let StatementKind::MbarrierWait { slot, .. } = statements[awaited.expect("a wait")].kind else {
            unreachable!()
        };
        let mut never = kernel.clone();
        never.regions[region].statements.remove(at);
        let mut ahead = kernel.clone();
        ahead.regions[region].statements.remove(at);
        let release =
            Statement { line: statements[at].line, kind: StatementKind::CpAsyncMbarrierArrive { barrier, slot } };
        ahead.regions[region].statements.insert(awaited.expect("a wait") + 1, release);
        // Arrivals of warps, and as many as there are.
        let mut at_once = kernel.clone();
        at_once.barriers[barrier.index()].arrivals /= WARP;
        at_once.regions[region].statements[at].kind =
            StatementKind::MbarrierArrive { barrier, slot, to: Receivers::Own };
        mutants.extend([never, ahead, at_once]);
    }
    mutants
}

/// The first block of the cluster alone expects what is copied to all; then nobody does.
pub fn unarmed(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for (region, at) in places(kernel) {
        if !matches!(kernel.regions[region].statements[at].kind, StatementKind::MbarrierExpectTx { .. }) {
            continue;
        }
        let mut nobody = kernel.clone();
        let expect = nobody.regions[region].statements.remove(at);
        if kernel.signature.cluster > 1 {
            let mut first = nobody.clone();
            let inner = RegionId(first.regions.len() as u32);
            let depth = first.regions[region].depth + 1;
            let line = expect.line;
            first.regions.push(Region { depth, statements: vec![expect] });
            let facts = Facts { uniform: true, ..Facts::NONE };
            let rank = bind(&mut first, (region, at), Op::ClusterRank, Type::I32, facts);
            let zero = literal(&mut first, 0, Type::I32);
            let op = Op::CompareIndex(Compare::Eq, rank, zero);
            let condition = bind(&mut first, (region, at + 1), op, Type::PRED, facts);
            let kind = StatementKind::If(If { condition, then: inner, otherwise: None });
            first.regions[region].statements.insert(at + 2, Statement { line, kind });
            mutants.push(first);
        }
        mutants.push(nobody);
    }
    mutants
}

/// A barrier of the cluster is left out, or is one of each block.
pub fn no_cluster_barrier(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for (region, at) in places(kernel) {
        if kernel.regions[region].statements[at].kind == StatementKind::BarrierCluster {
            let (mut without, mut weaker) = (kernel.clone(), kernel.clone());
            without.regions[region].statements.remove(at);
            weaker.regions[region].statements[at].kind = StatementKind::BarSync;
            mutants.extend([without, weaker]);
        }
    }
    mutants
}

/// Whether a region starts a copy to shared memory, in whatever it has inside.
fn fills(kernel: &Kernel, region: RegionId) -> bool {
    kernel.region(region).statements.iter().any(|s| match &s.kind {
        StatementKind::MbarrierExpectTx { .. } | StatementKind::CpAsync(_) => true,
        StatementKind::Elect(part) => fills(kernel, *part),
        StatementKind::If(branch) => {
            fills(kernel, branch.then) || branch.otherwise.is_some_and(|other| fills(kernel, other))
        }
        _ => false,
    })
}

/// A copy that runs ahead of a loop is made whether there is a trip for it or not: the n-th of them.
pub fn unguarded(kernel: &Kernel, n: usize) -> Vec<Kernel> {
    // Those ahead of the loop are written first.
    let guarded = |(region, at): &(usize, usize)| matches!(&kernel.regions[*region].statements[*at].kind, StatementKind::If(branch) if fills(kernel, branch.then));
    let mut mutant = kernel.clone();
    let Some((region, at)) = places(kernel).filter(guarded).nth(n) else { return Vec::new() };
    let always = literal(&mut mutant, 1, Type::PRED);
    if let StatementKind::If(branch) = &mut mutant.regions[region].statements[at].kind {
        branch.condition = always;
    }
    vec![mutant]
}

// Mistakes that are none where a loop has trips.

/// The statements of a region, and of parts of it that run as often.
fn says(kernel: &Kernel, region: RegionId, said: &dyn Fn(&StatementKind) -> bool) -> bool {
    kernel.region(region).statements.iter().any(|s| match &s.kind {
        StatementKind::Elect(part) => says(kernel, *part, said),
        StatementKind::If(branch) => {
            says(kernel, branch.then, said) || branch.otherwise.is_some_and(|other| says(kernel, other, said))
        }
        kind => said(kind),
    })
}

/// The loops in which something is said, whatever their own loops say: where they stand.
fn loops<'a>(
    kernel: &'a Kernel,
    said: &'a dyn Fn(&StatementKind) -> bool,
) -> impl Iterator<Item = ((usize, usize), Loop)> + 'a {
    places(kernel).filter_map(|(region, at)| match &kernel.regions[region].statements[at].kind {
        StatementKind::Loop(l) if says(kernel, l.body, said) => Some(((region, at), l.clone())),
        _ => None,
    })
}

fn is_protocol(kind: &StatementKind) -> bool {
    use StatementKind::{CpAsync, CpAsyncWaitGroup, MbarrierArrive, MbarrierExpectTx, MbarrierWait};
    matches!(
        kind,
        MbarrierWait { .. } | CpAsyncWaitGroup { .. } | MbarrierExpectTx { .. } | CpAsync(_) | MbarrierArrive { .. }
    )
}

const fn uniform(low: i64, high: i64) -> Facts {
    Facts { range: Range { low, high }, uniform: true, ..Facts::NONE }
}

/// A loop around parts of a protocol asks after its body whether there is another trip, not before it.
pub fn once(kernel: &Kernel) -> Vec<Kernel> {
    let plant = |((region, at), l): ((usize, usize), Loop)| {
        let mut mutant = kernel.clone();
        let Value { ty, facts, .. } = kernel.values[l.count.index()];
        let one = literal(&mut mutant, 1, ty);
        let count = bind(&mut mutant, (region, at), Op::Index(IndexOp::Max, l.count, one), ty, facts);
        let Facts { range, .. } = facts;
        let range = Range { low: range.low.max(1), high: range.high.max(1) };
        mutant.values[count.index()].facts.range = range;
        // A literal does not move what stands there.
        mutant.regions[region].statements[at + 1].kind = StatementKind::Loop(Loop { count, ..l });
        mutant
    };
    loops(kernel, &is_protocol).map(plant).collect()
}

/// A copy of a variable's value, at another place; of anything else that is known everywhere, itself.
fn again(kernel: &mut Kernel, place: (usize, usize), value: ValueId) -> Option<ValueId> {
    let Value { op, ty, facts, .. } = kernel.values[value.index()];
    match op {
        Op::Get(_) => Some(bind(kernel, place, op, ty, facts)),
        Op::Literal(_) => Some(value),
        _ => None,
    }
}

/// Readers wait for the first instance of a loop before it, too.
pub fn awaited_ahead(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for ((region, at), l) in loops(kernel, &is_protocol) {
        for statement in &kernel.region(l.body).statements {
            let StatementKind::MbarrierWait { barrier, slot, parity } = statement.kind else { continue };
            // A maker waits for the phase before: of that there is always one.
            if !matches!(kernel.value(parity).op, Op::Get(_)) {
                continue;
            }
            let mut mutant = kernel.clone();
            let Some(parity) = again(&mut mutant, (region, at), parity) else { continue };
            let Some(slot) = again(&mut mutant, (region, at), slot) else { continue };
            let behind = mutant.regions[region].statements.len() - kernel.regions[region].statements.len();
            let kind = StatementKind::MbarrierWait { barrier, slot, parity };
            mutant.regions[region].statements.insert(at + behind, Statement { line: statement.line, kind });
            mutants.push(mutant);
        }
    }
    mutants
}

/// Makers wait after a loop until its last instance has been read: the first one, if there is none.
pub fn drained(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for ((region, at), l) in loops(kernel, &is_protocol) {
        for statement in &kernel.region(l.body).statements {
            let StatementKind::MbarrierWait { barrier, parity, .. } = statement.kind else { continue };
            if matches!(kernel.value(parity).op, Op::Get(_)) {
                continue;
            }
            let mut mutant = kernel.clone();
            let slots = kernel.barriers[barrier.index()].slots;
            let place = |mutant: &Kernel| {
                let more = mutant.regions[region].statements.len() - kernel.regions[region].statements.len();
                (region, at + 1 + more)
            };
            let (none, one, two) = (
                literal(&mut mutant, 0, Type::I32),
                literal(&mut mutant, 1, Type::I32),
                literal(&mut mutant, 2, Type::I32),
            );
            let slots_value = literal(&mut mutant, slots.into(), Type::I32);
            let most = i64::from(i32::MAX);
            let mut index = |op: IndexOp, a: ValueId, b: ValueId, low: i64, high: i64| {
                let place = place(&mutant);
                bind(&mut mutant, place, Op::Index(op, a, b), Type::I32, uniform(low, high))
            };
            let last = index(IndexOp::Sub, l.count, one, -1, most);
            let last = index(IndexOp::Max, last, none, 0, most);
            let slot = index(IndexOp::Mod, last, slots_value, 0, i64::from(slots) - 1);
            let round = index(IndexOp::Div, last, slots_value, 0, most);
            let parity = index(IndexOp::Mod, round, two, 0, 1);
            let (region, at) = place(&mutant);
            let kind = StatementKind::MbarrierWait { barrier, slot, parity };
            mutant.regions[region].statements.insert(at, Statement { line: statement.line, kind });
            mutants.push(mutant);
        }
    }
    mutants
}

/// The last instance of a loop is handed back after the loop.
pub fn released_behind(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for ((region, at), l) in loops(kernel, &is_protocol) {
        let body = l.body.index();
        for (n, statement) in kernel.regions[body].statements.iter().enumerate() {
            let StatementKind::MbarrierArrive { barrier, slot, to } = statement.kind else { continue };
            let Value { op: of_slot @ Op::Get(_), facts, .. } = *kernel.value(slot) else { continue };
            let (mut mutant, line) = (kernel.clone(), statement.line);
            // In the loop, if another trip follows.
            let ty = kernel.value(l.count).ty;
            let one = literal(&mut mutant, 1, ty);
            let next = bind(
                &mut mutant,
                (body, n),
                Op::Index(IndexOp::Add, l.index, one),
                ty,
                uniform(0, i64::from(i32::MAX)),
            );
            let follows = Op::CompareIndex(Compare::Lt, next, l.count);
            let condition = bind(&mut mutant, (body, n + 1), follows, Type::PRED, uniform(0, 1));
            let then = RegionId(mutant.regions.len() as u32);
            let release = mutant.regions[body].statements.remove(n + 2);
            mutant.regions.push(Region { depth: kernel.regions[body].depth + 1, statements: vec![release] });
            let kind = StatementKind::If(If { condition, then, otherwise: None });
            mutant.regions[body].statements.insert(n + 2, Statement { line, kind });
            // After it, that of the slot before the next one.
            let slots = i64::from(kernel.barriers[barrier.index()].slots);
            let before = literal(&mut mutant, slots.cast_unsigned() - 1, Type::I32);
            let all = literal(&mut mutant, slots.cast_unsigned(), Type::I32);
            let next = bind(&mut mutant, (region, at + 1), of_slot, Type::I32, facts);
            let last = Op::Index(IndexOp::Add, next, before);
            let last = bind(&mut mutant, (region, at + 2), last, Type::I32, uniform(0, 2 * slots));
            let last = Op::Index(IndexOp::Mod, last, all);
            let slot = bind(&mut mutant, (region, at + 3), last, Type::I32, uniform(0, slots - 1));
            let kind = StatementKind::MbarrierArrive { barrier, slot, to };
            mutant.regions[region].statements.insert(at + 4, Statement { line, kind });
            mutants.push(mutant);
        }
    }
    mutants
}
