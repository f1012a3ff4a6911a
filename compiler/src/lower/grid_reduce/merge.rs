//! The code of a reduction across blocks: what a block hands over, and what the last one of a group makes of it.

use tilewright_kernel::algorithm::{Compare, ValueId as AlgorithmValue};

use super::{Count, GridPartials, Which, clusters, counts};
use crate::domain::AxisId;
use crate::extent::Expr;
use crate::kernel_ir::{Guard, Memory, Type, ValueId, VariableId};
use crate::lower::atomic::Word;
use crate::lower::stage::{Nest, Point};
use crate::source::ast::Place;

/// The workspace of a component of the states; the first workspace of a stage has the counters.
fn component_of(first: u16, component: usize) -> Memory {
    Memory::Workspace(first + 1 + component as u16)
}

/// What a thread contributes to the result of its group.
struct Contribution {
    site: Site,
    /// The number of its block's partial.
    number: ValueId,
    /// Its number among the threads that share its result.
    rank: ValueId,
    /// The index 0.
    zero: ValueId,
    /// Whether the thread has a result.
    live: ValueId,
    /// Whether it writes it for those that share it.
    writes: ValueId,
    /// Whether that is the first thread of the block, or of the role.
    by_first: bool,
    /// The variables of each accumulator.
    accumulators: Vec<Vec<VariableId>>,
    /// Their values.
    states: Vec<Vec<ValueId>>,
}

impl Contribution {
    /// Whether a component of some of these accumulators is in a variable that none before them has.
    fn is_new(&self, first: usize, count: usize, component: usize) -> bool {
        let before = &self.accumulators[..first];
        self.accumulators[first..first + count]
            .iter()
            .any(|own| !before.iter().any(|other| other[component] == own[component]))
    }
}

/// Where the states of a group lie.
#[derive(Clone, Copy)]
struct Site {
    /// The group.
    group: ValueId,
    /// Number of its partials.
    partials: ValueId,
    /// The thread's slot.
    slot: ValueId,
}

impl Nest<'_, '_> {
    fn count(&mut self, count: &Count) -> ValueId {
        count.value(self.b, self.index)
    }

    /// Iterations of an axis bound to the grid.
    pub(in crate::lower) fn along(&mut self, axis: AxisId) -> ValueId {
        self.count(&Count::along(self.stage, axis, self.facts))
    }

    fn product(&mut self, counts: &[Count]) -> ValueId {
        let one = self.b.index_literal(self.index, 1);
        counts.iter().fold(one, |product, count| {
            let count = self.count(count);
            self.b.index_mul(product, count)
        })
    }

    /// Number of blocks of the stage, or of clusters.
    pub(in crate::lower) fn blocks(&mut self) -> ValueId {
        clusters(self.b, self.stage, self.facts, self.index)
    }

    /// The number of the block among those that the stage's own axes tell apart: those of a group of a stage in its
    /// loops are one; of such a stage itself, the number in the group. Clusters count as blocks do.
    pub(in crate::lower) fn own_block(&mut self) -> ValueId {
        let block = self.cluster();
        if self.stage.arrives() {
            let own: Vec<Count> = self.partials().into_iter().map(|(_, count)| count).collect();
            let parts = self.product(&own);
            return self.b.index_mod(block, parts);
        }
        let (_, parts) = counts(self.stage, self.facts);
        if parts.is_empty() {
            return block;
        }
        let parts = self.product(&parts);
        self.b.index_div(block, parts)
    }

    /// The number of the block among those that share a stage in the loops of this output.
    pub(in crate::lower) fn number_in_group(&mut self) -> ValueId {
        let (block, (_, parts)) = (self.cluster(), counts(self.stage, self.facts));
        let parts = self.product(&parts);
        self.b.index_mod(block, parts)
    }

    fn partials(&self) -> Vec<(AxisId, Count)> {
        self.stage.across_blocks().map(|axis| (axis, Count::along(self.stage, axis, self.facts))).collect()
    }

    /// The number of a point along several axes, the last one fastest.
    fn number(&mut self, point: &Point, axes: impl Iterator<Item = (AxisId, ValueId)>) -> ValueId {
        let known: Vec<(ValueId, ValueId)> = axes.filter_map(|(a, count)| Some((point.values[a]?, count))).collect();
        self.linear(known)
    }

    /// Values below counts as one number, the last one fastest.
    fn linear(&mut self, values: Vec<(ValueId, ValueId)>) -> ValueId {
        let mut number = self.b.index_literal(self.index, 0);
        for (value, count) in values {
            number = self.b.index_mul(number, count);
            number = self.b.index_add(number, value);
        }
        number
    }

    /// The number of the group at a point.
    fn group(&mut self, layout: &GridPartials, point: &Point) -> ValueId {
        let mut values = Vec::with_capacity(layout.groups.len());
        for (which, count) in &layout.groups {
            let value = match which {
                Which::Own(axis) => point.values[*axis],
                Which::Around(v) => Some(self.size(&Expr::var(*v))),
                Which::Rank => {
                    let rank = self.b.cluster_rank();
                    Some(self.b.index_convert(rank, self.index))
                }
            };
            let Some(value) = value else { continue };
            values.push((value, self.count(count)));
        }
        self.linear(values)
    }

    fn literals(&mut self, axes: &[(AxisId, i128)]) -> Vec<(AxisId, ValueId)> {
        axes.iter().map(|(axis, n)| (*axis, self.b.index_literal(self.index, *n as i64))).collect()
    }

    /// Where the state of an accumulator lies in the partial with a number, and those of its lanes after it.
    fn partial(&mut self, layout: &GridPartials, place: Site, accumulator: usize, number: ValueId) -> ValueId {
        let literal = |this: &mut Self, n: i128| this.b.index_literal(this.index, n as i64);
        let slots = layout.slots();
        let (each, lanes) = (literal(self, layout.accumulators * slots), literal(self, i128::from(layout.lanes)));
        let first = self.b.index_mul(place.group, place.partials);
        let at = self.b.index_add(first, number);
        let at = self.b.index_mul(at, each);
        let slot = self.b.index_mul(place.slot, lanes);
        let at = self.b.index_add(at, slot);
        // Last, so that all accumulators have one address.
        let before = literal(self, accumulator as i128 * slots);
        self.b.index_add(at, before)
    }

    /// Hands the states of this block to the last one of its group, and opens the branch in which that block has the
    /// states of all. `starts` are the states without terms. In registers every thread that shares a result has it.
    pub(in crate::lower) fn across_blocks(
        &mut self,
        layout: &GridPartials,
        first: u16,
        reduction: AlgorithmValue,
        point: &Point,
        starts: &[Vec<ValueId>],
    ) {
        let own = self.contribution(layout, point);
        match layout.word {
            Some(word) => {
                self.combine_words(layout, word, first, &own, starts);
                if self.passes_on(layout) {
                    self.combine(reduction, layout.alike);
                }
            }
            None => {
                self.write_partials(layout, first, &own);
                self.merge_partials(layout, first, reduction, &own, starts);
                if layout.sharing() > 1 {
                    self.combine(reduction, layout.alike);
                }
            }
        }
    }

    /// Whether one of the threads that share a result takes the word of all blocks, and tells the others.
    fn passes_on(&self, layout: &GridPartials) -> bool {
        self.stage.place == Place::Registers && layout.sharing() > 1
    }

    fn contribution(&mut self, layout: &GridPartials, point: &Point) -> Contribution {
        let ty = self.index;
        let yes = self.b.bool_literal(true);
        let live = point.pending.iter().fold(yes, |all, c| self.b.and(all, c.holds()));
        let partials: Vec<(AxisId, ValueId)> = layout.partials.iter().map(|a| (*a, self.along(*a))).collect();
        let (slots, ranks) = (self.literals(&layout.slots), self.literals(&layout.ranks));
        let one = self.b.index_literal(ty, 1);
        let count = partials.iter().fold(one, |product, (_, n)| self.b.index_mul(product, *n));
        let group = self.group(layout, point);
        let number = self.number(point, partials.into_iter());
        let slot = self.number(point, slots.into_iter());
        let mut rank = self.number(point, ranks.into_iter());
        if layout.alike > 1 {
            let thread = self.b.thread_in_role();
            let thread = self.b.index_convert(thread, ty);
            let alike = self.b.index_literal(ty, layout.alike as i64);
            let within = self.b.index_mod(thread, alike);
            rank = self.b.index_mul(rank, alike);
            rank = self.b.index_add(rank, within);
        }
        // One of those that share the result; of a block with one result the thread that arrives, so that nobody needs
        // to wait for it.
        let zero = self.b.index_literal(ty, 0);
        let by_first = layout.slots() == 1 && !self.stage.distribution.has_range();
        let is_first = if by_first {
            let (thread, zero) = (self.b.thread_in_role(), self.b.index_literal(Type::I32, 0));
            self.b.index_compare(Compare::Eq, thread, zero)
        } else {
            self.b.index_compare(Compare::Eq, rank, zero)
        };
        let writes = self.b.and(live, is_first);
        let accumulators = self.accumulators();
        let get = |this: &mut Self, variables: &[VariableId]| variables.iter().map(|v| this.b.get(*v)).collect();
        let states = accumulators.iter().map(|variables| get(self, variables)).collect();
        let site = Site { group, partials: count, slot };
        Contribution { site, number, rank, zero, live, writes, by_first, accumulators, states }
    }

    /// `by atomic`: blocks combine their states in one word, which the last of them takes.
    fn combine_words(
        &mut self,
        layout: &GridPartials,
        word: Word,
        first: u16,
        own: &Contribution,
        starts: &[Vec<ValueId>],
    ) {
        let memory = Memory::Workspace(first + 1);
        let one = self.b.index_literal(self.index, 1);
        let site = Site { partials: one, ..own.site };
        let words: Vec<ValueId> = own.states.iter().map(|states| word.encode(self.b, states)).collect();
        self.b.begin_if(own.writes);
        for (a, word_of) in words.iter().enumerate() {
            let at = self.partial(layout, site, a, own.zero);
            self.b.atomic_update(Memory::Workspace(first + 1), at, word.update(), *word_of);
        }
        self.b.end_if();
        let blocks = self.b.index_convert(own.site.partials, Type::I32);
        // Of one result the first thread alone takes what is combined, and stores what comes of it.
        let last = match own.by_first && !self.stage.arrives() {
            true => self.b.last_block_ticket_untold(first, own.site.group, blocks),
            false => self.b.last_block_ticket(first, own.site.group, blocks),
        };
        self.b.begin_if(last);
        let passes_on = self.passes_on(layout);
        for (a, variables) in own.accumulators.iter().enumerate() {
            let at = self.partial(layout, site, a, own.zero);
            let nothing = self.b.literal(word.word, 0);
            let guard = Guard { predicate: own.writes, otherwise: &[nothing] };
            let all = self.b.load(memory, at, 1, Some(guard))[0];
            self.b.begin_if(own.writes);
            self.b.store(memory, at, &[nothing]);
            self.b.end_if();
            let states = word.decode(self.b, all);
            for ((variable, state), start) in variables.iter().zip(states).zip(&starts[a]) {
                // A word of zero is for blocks: as states it may be anything.
                let state = if passes_on { self.b.select(own.writes, state, *start) } else { state };
                self.b.set(*variable, state);
            }
        }
    }

    /// Each block writes its states, and the last of the group goes on.
    fn write_partials(&mut self, layout: &GridPartials, first: u16, own: &Contribution) {
        self.b.begin_if(own.writes);
        let lanes = layout.lanes as usize;
        for (n, states) in own.states.chunks(lanes).enumerate() {
            let at = self.partial(layout, own.site, n * lanes, own.number);
            for component in (0..layout.states.len()).filter(|c| own.is_new(n * lanes, lanes, *c)) {
                let values: Vec<ValueId> = states.iter().map(|states| states[component]).collect();
                self.b.store(component_of(first, component), at, &values);
            }
        }
        self.b.end_if();
        let blocks = self.b.index_convert(own.site.partials, Type::I32);
        let last = self.b.last_block_ticket(first, own.site.group, blocks);
        self.b.begin_if(last);
    }

    /// The last block merges the partials: each of the threads that share a result takes a run of them.
    fn merge_partials(
        &mut self,
        layout: &GridPartials,
        first: u16,
        reduction: AlgorithmValue,
        own: &Contribution,
        starts: &[Vec<ValueId>],
    ) {
        let (ty, count) = (self.index, own.site.partials);
        for (variables, states) in own.accumulators.iter().zip(starts) {
            variables.iter().zip(states).for_each(|(variable, state)| self.b.set(*variable, *state));
        }
        let (sharing, lanes) = (layout.sharing(), layout.lanes as usize);
        let vectors = own.accumulators.len() / lanes;
        let chunk = (layout.loads() / vectors.max(1)).max(1);
        let ceil_div = |this: &mut Self, n: ValueId, by: i128| {
            let (less, by) = (this.b.index_literal(ty, by as i64 - 1), this.b.index_literal(ty, by as i64));
            let n = this.b.index_add(n, less);
            this.b.index_div(n, by)
        };
        let run = ceil_div(self, count, sharing);
        let begin = self.b.index_mul(own.rank, run);
        let trips = ceil_div(self, run, chunk as i128);
        let trip = self.b.begin_rolled_loop(trips);
        let yes = self.b.bool_literal(true);
        let mut parts = Vec::with_capacity(chunk * vectors);
        for n in 0..chunk {
            let (each, n) = (self.b.index_literal(ty, chunk as i64), self.b.index_literal(ty, n as i64));
            let within = self.b.index_mul(trip, each);
            let within = self.b.index_add(within, n);
            let number = self.b.index_add(begin, within);
            // A trip for each partial of a run has no more, and what one thread takes alone is all of them.
            let mine = if chunk == 1 { yes } else { self.b.index_compare(Compare::Lt, within, run) };
            let exists = if sharing == 1 { yes } else { self.b.index_compare(Compare::Lt, number, count) };
            let holds = self.b.and(mine, exists);
            let holds = self.b.and(holds, own.live);
            parts.extend((0..vectors).map(|vector| (number, holds, vector * lanes)));
        }
        // Of variables that accumulators share: what they are before the partial at hand, and what it has.
        let mut shared: Vec<(VariableId, [ValueId; 2])> = Vec::new();
        for parts in parts.chunks(layout.loads()) {
            let mut loaded = Vec::with_capacity(parts.len());
            for (number, predicate, a) in parts {
                let at = self.partial(layout, own.site, *a, *number);
                let one = |this: &mut Self, component: usize| {
                    let otherwise: Vec<ValueId> = starts[*a..*a + lanes].iter().map(|start| start[component]).collect();
                    let guard = Guard { predicate: *predicate, otherwise: &otherwise };
                    this.b.load(component_of(first, component), at, layout.lanes, Some(guard))
                };
                let is_new = |component: &usize| own.is_new(*a, lanes, *component);
                let components = 0..layout.states.len();
                loaded.push(components.map(|c| if is_new(&c) { one(self, c) } else { Vec::new() }).collect::<Vec<_>>());
            }
            for ((_, holds, a), components) in parts.iter().zip(loaded) {
                if *a == 0 {
                    shared.clear();
                }
                for (lane, variables) in own.accumulators[*a..*a + lanes].iter().enumerate() {
                    let mut sides = Vec::with_capacity(variables.len());
                    for (variable, lanes) in variables.iter().zip(&components) {
                        let known = shared.iter().find(|known| known.0 == *variable).map(|known| known.1);
                        sides.push((known.is_none(), known.unwrap_or_else(|| [self.b.get(*variable), lanes[lane]])));
                    }
                    let [left, right] = [0, 1].map(|side| sides.iter().map(|own| own.1[side]).collect::<Vec<_>>());
                    let merged = self.values.merge(self.b, reduction, &left, &right);
                    for ((variable, (is_new, own)), merged) in variables.iter().zip(sides).zip(merged) {
                        if is_new {
                            let next = self.b.select(*holds, merged, own[0]);
                            self.b.set(*variable, next);
                            shared.push((*variable, own));
                        }
                    }
                }
            }
        }
        self.b.end_loop();
    }
}
