//! `wgmma`: the checks when a product is issued, and the product when it happens. What a warp knows of its products is
//! in `warpgroup`, where their matrices are in `kernel::descriptor`.
//!
//! Every warp of a warpgroup computes its 16 rows when it comes to them. Like a bulk copy, a product happens at once,
//! when it is waited for, or in between, as the seed decides; what can be wrong with it is looked at when it is issued,
//! and what reads and writes its registers before it is waited for, at that access.

use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::tensor_map::GRANULE;

use super::Warp;
use super::access::small_location;
use super::bulk::{Timing, at_once, timing};
use super::env::{Env, Facts, Halt};
use crate::bulk::flight::{Cargo, Flight, Issuer, NOTHING, Progress, Token, Way};
use crate::decode::op::{Inst, Op, Slot, Space, Wgmma};
use crate::lanes::{LANES, Mask};
use crate::launch::MatrixModel;
use crate::matrix::{Product, model};
use crate::registers::WARPGROUP;
use crate::report::Kind;
use crate::shadow::cell::Who;
use crate::shadow::clock::Proxied;
use crate::warpgroup::{Flaw, Misuse, Pending, Step};

/// Bytes of a chunk that no swizzle takes apart.
const CHUNK: u32 = GRANULE as u32;

impl Warp {
    /// One of the instructions of products, by all lanes of a warp.
    #[inline(never)]
    pub(super) fn warpgroup(&mut self, env: &mut Env<'_>, inst: &Inst, pc: u32) -> Result<(), Halt> {
        if let Op::Wgmma { site, data, .. } = inst.op {
            return self.product(env, pc, (site, data));
        }
        meet(env, Step { pc, descriptors: [0; 2], add: false })?;
        match inst.op {
            Op::WgmmaFence => self.under_way.fence(),
            Op::WgmmaCommit => {
                self.under_way.commit();
                if timing(env) == Timing::Drawn && env.draw() & 1 == 0 {
                    self.perform(env, u32::MAX);
                }
            }
            Op::WgmmaWait { keep } => {
                let (group, number) = self.under_way.wait(keep);
                self.perform(env, number);
                self.under_way.settle(number);
                if let Some(agent) = env.product_agents[env.warp as usize] {
                    env.clocks.learn(env.warp as usize, agent, group);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `wgmma.mma_async`.
    fn product(&mut self, env: &mut Env<'_>, pc: u32, (site, data): (u32, u32)) -> Result<(), Halt> {
        let kernel = env.cx.kernel;
        let wgmma = &kernel.wgmmas[site as usize];
        let [sums, factors] = wgmma.counts.map(usize::from);
        let mut operands = kernel.data[data as usize + sums + factors..].iter().copied();
        let mut next = |env: &mut Env<'_>, warp: &Warp| warp.alike(env, pc, operands.next().flatten());
        let a = if factors == 0 { Some(next(env, self)?) } else { None };
        let b = next(env, self)?;
        let add = (next(env, self)? != 0) != wgmma.add_negated;
        meet(env, Step { pc, descriptors: [a.unwrap_or(0), b], add })?;

        let mut descriptors = [None; 2];
        for (at, bits) in [a, Some(b)].into_iter().enumerate() {
            let Some(bits) = bits else { continue };
            descriptors[at] = Descriptor::decode(bits);
            if descriptors[at].is_none() {
                let name = ["A", "B"][at];
                let detail = format!("the descriptor of {name} is {bits:#018x}, and has bits set that must be zero");
                return env.stop(Kind::ProductMisuse, (pc, 0), detail);
            }
        }
        let registers = &kernel.flows[wgmma.registers as usize..][..sums + factors];
        let (d, a) = registers.split_at(sums);
        if env.cx.options.sanitizers.races
            && let Some((register, flaw)) = self.under_way.check(&wgmma.product, add, [d, a])
        {
            register_flaw(env, pc, register, flaw);
        }
        let (number, group) = self.under_way.next();
        let chunks = find_operands(env, pc, wgmma, &descriptors)?;
        check_operands(env, pc, &chunks, group);
        let mut held = Vec::new();
        if factors > 0 {
            let places = &kernel.places[wgmma.places as usize];
            held.resize(wgmma.product.m * wgmma.product.k, 0);
            self.gather(&kernel.data[data as usize + sums..][..factors], &places.a, wgmma.product.a.bits(), &mut held);
        }
        let product = wgmma.product;
        self.under_way.issue(Pending { number, group, pc, product, site, data, a: held, chunks, add }, [d, a]);
        if at_once(env) {
            self.perform(env, number);
        }
        Ok(())
    }

    /// A value that all lanes of the warp must have alike.
    fn alike(&self, env: &mut Env<'_>, pc: u32, slot: Option<Slot>) -> Result<u64, Halt> {
        let Some(slot) = slot else { return Ok(0) };
        if let Slot::Pred(slot) = slot {
            return match self.preds[slot as usize] {
                0 => Ok(0),
                Mask::MAX => Ok(1),
                mask => {
                    let detail = format!("lanes {mask:#010x} add to D, the others do not");
                    env.stop(Kind::ProductMisuse, (pc, 0), detail)
                }
            };
        }
        let row = self.row(slot);
        match (0..LANES).find(|lane| row[*lane] != row[0]) {
            None => Ok(row[0]),
            Some(lane) => {
                let detail = format!(
                    "the lanes have different descriptors: {:#018x} in lane 0, {:#018x} in lane {lane}",
                    row[0], row[lane]
                );
                env.stop(Kind::ProductMisuse, (pc, 0), detail)
            }
        }
    }

    /// Products up to this one happen, in their order.
    fn perform(&mut self, env: &Env<'_>, last: u32) {
        let list = std::mem::take(&mut self.under_way.list);
        for pending in list.iter().filter(|pending| pending.number <= last) {
            if pending.number > self.under_way.done {
                (env.cx.host.warpgroup_product)(self, env, pending);
                self.under_way.done = pending.number;
            }
        }
        self.under_way.list = list;
    }

    /// What a warp computes of a product.
    #[inline(always)]
    pub(super) fn multiply(&mut self, env: &Env<'_>, pending: &Pending) {
        if env.cx.options.matrix == MatrixModel::Nothing && pending.add {
            return;
        }
        let kernel = env.cx.kernel;
        let wgmma = &kernel.wgmmas[pending.site as usize];
        let (product, places) = (&wgmma.product, &kernel.places[wgmma.places as usize]);
        let d = &kernel.data[pending.data as usize..][..usize::from(wgmma.counts[0])];
        let mut scratch = std::mem::take(&mut self.products);
        let all = scratch.narrow.fit(product);
        let [m, n, k] = [product.m, product.n, product.k];
        let [chunks_a, chunks_b] = &pending.chunks;
        if pending.a.is_empty() {
            fetch(&env.shared, (product.a.bits(), wgmma.across[0]), chunks_a, [m, k], [k, 1], &mut all.a);
        } else {
            all.a.copy_from_slice(&pending.a);
        }
        fetch(&env.shared, (product.b.bits(), wgmma.across[1]), chunks_b, [n, k], [1, n], &mut all.b);
        for (matrix, (negate, element)) in
            [&mut all.a, &mut all.b].into_iter().zip(wgmma.negate.into_iter().zip([product.a, product.b]))
        {
            if negate {
                matrix.iter_mut().for_each(|bits| *bits ^= 1 << (element.bits() - 1));
            }
        }
        if pending.add {
            self.gather(d, &places.c, product.c.bits(), &mut all.c);
        } else {
            all.c.fill(0);
        }
        model::multiply(product, env.cx.options.matrix, all, &mut scratch.floats);
        self.scatter(d, &places.d, product.d.bits(), &all.d);
        self.products = scratch;
    }

    /// The instruction after this one reads or writes matrix registers, or moves them.
    pub(super) fn touch_matrix(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        (first, reads, writes): (u32, u16, u16),
        renames: bool,
    ) {
        let registers = &env.cx.kernel.flows[first as usize..][..usize::from(reads) + usize::from(writes)];
        let (read, written) = registers.split_at(usize::from(reads));
        if renames && !read.is_empty() {
            let (number, flaw) = self.under_way.rename(written, read);
            // What is moved is there.
            if number > self.under_way.done {
                self.perform(env, number);
            }
            if let Some((register, flaw)) = flaw {
                register_flaw(env, pc, register, flaw);
            }
            return;
        }
        for (list, writes) in [(read, false), (written, true)] {
            for register in list {
                if let Some(flaw) = self.under_way.touch(*register, writes) {
                    register_flaw(env, pc, *register, flaw);
                }
            }
        }
    }
}

/// The chunks of the matrices in shared memory that the warp that runs reads: 16 rows of A, all of B.
fn find_operands(
    env: &mut Env<'_>,
    pc: u32,
    wgmma: &Wgmma,
    descriptors: &[Option<Descriptor>; 2],
) -> Result<[Vec<u32>; 2], Halt> {
    let (base, size) = (env.base_of(env.rank), env.cx.shared_bytes);
    let Product { m, n, k, a, b, .. } = wgmma.product;
    let own = env.split(env.warp).1 % WARPGROUP as u32;
    let first = own * m as u32;
    let mut all = [Vec::new(), Vec::new()];
    for (at, (rows, element)) in [(first..first + m as u32, a), (0..n as u32, b)].into_iter().enumerate() {
        let (Some(descriptor), chunks) = (&descriptors[at], &mut all[at]) else { continue };
        descriptor.chunks(wgmma.across[at], element.bits() / 8, rows, k as u32, chunks);
        let in_gap = |chunk: u64| {
            env.cx.kernel.shared_gaps.iter().any(|gap| chunk < gap.end && gap.start < chunk + u64::from(CHUNK))
        };
        if let Some(outside) = chunks.iter().find(|chunk| **chunk + CHUNK > size || in_gap(u64::from(**chunk))) {
            let location = Some(small_location(env, Space::Shared, base + u64::from(*outside), CHUNK.into()));
            let detail = format!("the descriptor of {}: {}", ["A", "B"][at], described(descriptor));
            env.report(Kind::OutOfBounds, pc, Facts { location, detail, fatal: true, ..Facts::default() });
            return Err(Halt);
        }
        chunks.iter_mut().for_each(|chunk| *chunk += base as u32);
        check_swizzle(env, pc, ["A", "B"][at], descriptor, chunks);
        // B is read once for the warpgroup.
        if at == 0 || own == 0 {
            let (shared, bytes) = (&mut env.counters.shared, chunks.len() as u64 * u64::from(CHUNK));
            shared.load_requests += 1;
            shared.bytes_loaded += bytes;
            shared.transactions += bytes.div_ceil(128);
            shared.ideal_transactions += bytes.div_ceil(128);
        }
    }
    Ok(all)
}

/// Checks the bytes of shared memory that a product reads, and notes that they are read until its group is over.
fn check_operands(env: &mut Env<'_>, pc: u32, chunks: &[Vec<u32>; 2], group: u32) {
    let sanitizers = env.cx.options.sanitizers;
    if !sanitizers.initialisation && !sanitizers.races {
        return;
    }
    let mut chunks = chunks.concat();
    chunks.sort_unstable();
    check_initialised(env, pc, &chunks);
    if sanitizers.races {
        check_order(env, pc, &chunks);
        note(env, pc, chunks, group);
    }
}

/// Reads a matrix of `rows` × `depth` elements of `bits` bits from its chunks; in `out` neighbours along these are
/// `steps` apart.
#[inline(always)]
fn fetch(
    shared: &[u32],
    (bits, across): (u32, bool),
    chunks: &[u32],
    [rows, depth]: [usize; 2],
    [step_x, step_k]: [usize; 2],
    out: &mut [u32],
) {
    let each = (128 / bits) as usize;
    let (of_row, step) = if across { (depth, step_x) } else { (depth / each, step_k) };
    let [next_row, next] = if across { [each * step_x, step_k] } else { [step_x, each * step_k] };
    debug_assert_eq!(chunks.len() * each, rows * depth);
    for (row, chunks) in chunks.chunks_exact(of_row).enumerate() {
        for (at, chunk) in chunks.iter().enumerate() {
            let words: &[u32; 4] = shared[*chunk as usize / 4..].first_chunk().expect("a chunk is in memory");
            let to = &mut out[row * next_row + at * next..];
            match bits {
                32 => parts::<32>(words, step, to),
                16 => parts::<16>(words, step, to),
                _ => parts::<8>(words, step, to),
            }
        }
    }
}

/// The elements of a chunk, `step` apart.
#[inline(always)]
fn parts<const BITS: usize>(words: &[u32; 4], step: usize, out: &mut [u32]) {
    for (at, word) in words.iter().enumerate() {
        for part in 0..32 / BITS {
            out[(at * (32 / BITS) + part) * step] = word >> (part * BITS) & (u32::MAX >> (32 - BITS));
        }
    }
}

/// The warp takes a step with its warpgroup.
fn meet(env: &mut Env<'_>, step: Step) -> Result<(), Halt> {
    let (rank, warp) = env.split(env.warp);
    let Err(why) = env.warpgroups[rank].step(warp as usize, step) else { return Ok(()) };
    let detail = match why {
        Misuse::Partial(warps) => format!("a warpgroup has four warps; the last one of this block has {warps}"),
        Misuse::Differs(other, theirs) if theirs.pc == step.pc => format!(
            "warp {other} of the same warpgroup has descriptors {:#x} and {:#x} here{}, this one {:#x} and {:#x}{}",
            theirs.descriptors[0],
            theirs.descriptors[1],
            if theirs.add { " and adds to D" } else { "" },
            step.descriptors[0],
            step.descriptors[1],
            if step.add { " and adds to D" } else { "" },
        ),
        Misuse::Differs(other, theirs) => {
            format!("warp {other} of the same warpgroup executes another instruction: {}", env.place_of(theirs.pc))
        }
    };
    env.stop(Kind::ProductMisuse, (step.pc, 0), detail)
}

/// A descriptor for messages.
fn described(descriptor: &Descriptor) -> String {
    let Descriptor { start, leading, stride, swizzle, .. } = descriptor;
    let swizzle = match swizzle.span() {
        CHUNK => "no swizzle".to_owned(),
        span => format!("swizzle of {span} bytes"),
    };
    format!("it starts at {start:#x}, with leading offset {leading}, stride offset {stride}, {swizzle}")
}

/// Reports bytes that a copy has put there with another swizzle, unless threads have written there since.
fn check_swizzle(env: &mut Env<'_>, pc: u32, name: &str, descriptor: &Descriptor, chunks: &[u32]) {
    let other = chunks.iter().copied().find(|chunk| {
        let copied = env.swizzles.get((chunk / CHUNK) as usize).copied().flatten();
        copied.is_some_and(|copied| copied != descriptor.swizzle) && !env.cells.is_written(*chunk as usize / 4)
    });
    let Some(at) = other else { return };
    let copied = env.swizzles[(at / CHUNK) as usize].map_or(0, |swizzle| swizzle.span());
    let detail = format!(
        "a copy has put these bytes there with a swizzle of {copied} bytes; the descriptor of {name}: {}",
        described(descriptor)
    );
    let location = Some(small_location(env, Space::Shared, at.into(), CHUNK.into()));
    env.report(Kind::ProductMisuse, pc, Facts { location, detail, ..Facts::default() });
}

/// Reports bytes that nobody has written.
fn check_initialised(env: &mut Env<'_>, pc: u32, chunks: &[u32]) {
    if !env.cx.options.sanitizers.initialisation {
        return;
    }
    let whole = |chunk: &u32| env.shared_initialised[*chunk as usize / 4..][..4] == [0xf; 4];
    if let Some(chunk) = chunks.iter().find(|chunk| !whole(chunk)) {
        let missing = |at: &u32| env.shared_initialised[*at as usize / 4] >> (at % 4) & 1 == 0;
        let at = (*chunk..chunk + CHUNK).find(missing).unwrap_or(*chunk);
        let location = Some(small_location(env, Space::Shared, at.into(), 1));
        env.report(Kind::UninitialisedRead, pc, Facts { location, ..Facts::default() });
    }
}

/// Reports copies and ordinary accesses that the product is not ordered after, or cannot see.
fn check_order(env: &mut Env<'_>, pc: u32, chunks: &[u32]) {
    env.bulk.sweep(&env.clocks);
    let warp = env.warp as usize;
    let met = env.bulk.list().iter().find_map(|flight| {
        let Token { agent, number } = flight.finished;
        if flight.way == Way::Product || env.clocks.knows(warp, agent, number) {
            return None;
        }
        let met = |at: &&u32| flight.meets(&(u64::from(**at)..u64::from(**at + CHUNK)), false).is_some();
        chunks.iter().find(met).map(|at| (flight.issuer, u64::from(*at)))
    });
    if let Some((other, at)) = met {
        let location = Some(small_location(env, Space::Shared, at, CHUNK.into()));
        let thread = env.thread_of(other.warp, other.lane);
        let other = Some(("copy that was not waited for", thread, other.pc));
        env.report(Kind::InFlight, pc, Facts { location, other, ..Facts::default() });
    }
    let who = Who { warp: env.warp, lane: 0, epoch: env.clocks.epoch(warp), pc };
    // What `cp.async` has written is told apart: it must not hide a mistake.
    let mut found = [None; 2];
    let words = chunks.iter().flat_map(|chunk| *chunk as usize / 4..(*chunk + CHUNK) as usize / 4);
    for word in words.filter(|word| env.cells.is_written(*word)) {
        let flaw = env.cells.probe(&env.clocks, (word, 0xf), (Proxied::Shared, false), who);
        let Some(flaw) = flaw else { continue };
        let copied = matches!(env.cx.kernel.code[flaw.conflict.pc as usize].op, Op::ThreadCopy(_));
        let of = &mut found[usize::from(copied)];
        *of = crate::shadow::cell::worse(*of, Some((word, flaw)));
    }
    for (word, flaw) in found.into_iter().flatten() {
        let location = small_location(env, Space::Shared, word as u64 * 4, 4);
        super::bulk::report_flaw(env, Issuer { pc, warp: env.warp, lane: 0 }, location, flaw);
    }
}

/// Until the group is over, nobody may write what the product reads.
fn note(env: &mut Env<'_>, pc: u32, chunks: Vec<u32>, group: u32) {
    let [Some(first), Some(last)] = [chunks.first(), chunks.last()] else { return };
    let reads = u64::from(*first)..u64::from(last + CHUNK);
    let agent = *env.product_agents[env.warp as usize].get_or_insert_with(|| env.clocks.new_agent());
    let token = Token { agent, number: group };
    env.bulk.push(Flight {
        issuer: Issuer { pc, warp: env.warp, lane: 0 },
        way: Way::Product,
        writes: NOTHING,
        reads,
        chunks,
        owners: [env.rank as u32; 2],
        global: NOTHING,
        cargo: Cargo::default(),
        mbarrier: 0,
        group,
        released: token,
        finished: token,
        progress: Progress::Done,
        number: 0,
    });
}

/// Reports a wrong use of a register.
#[cold]
fn register_flaw(env: &mut Env<'_>, pc: u32, register: u32, flaw: Flaw) {
    if !env.cx.options.sanitizers.races {
        return;
    }
    let name = env.cx.kernel.matrix_registers[register as usize].name.clone();
    let (kind, of, detail) = match flaw {
        Flaw::Unwritten => (Kind::UninitialisedRegister, None, format!("register {name}")),
        Flaw::Unfenced => {
            let detail = format!("no `wgmma.fence` stands between the last access to register {name} and the product");
            (Kind::MissingProductFence, None, detail)
        }
        Flaw::InFlight(of) => {
            (Kind::RegisterInFlight, Some(of), format!("register {name}: no `wgmma.wait_group` has waited for it"))
        }
        Flaw::Shape(of) => {
            let detail = format!("register {name}: that one has another shape, and must be waited for before");
            (Kind::RegisterInFlight, Some(of), detail)
        }
    };
    let other = of.map(|of| ("product", env.thread(0), of));
    env.report(kind, pc, Facts { other, detail, ..Facts::default() });
}

/// The block has ended: reports what only some warps of a warpgroup have executed.
pub(super) fn finish(env: &mut Env<'_>) {
    for rank in 0..env.warpgroups.len() {
        let Some((warp, step)) = env.warpgroups[rank].left_out() else { continue };
        let thread = env.thread_of((rank * env.cx.warps() + warp) as u32, 0);
        let detail =
            format!("warp {warp} has ended without it: all four warps of a warpgroup execute the same products");
        env.report_thread(Kind::ProductMisuse, step.pc, thread, Facts { detail, ..Facts::default() });
    }
}
