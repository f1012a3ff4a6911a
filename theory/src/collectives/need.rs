//! What an operation needs against who runs it, with the loop that made it so and one way out.

use super::nest::{Bind, LoopFault, Nest};
use super::unit::{Unit, UnitFault};
use super::{Shape, ThreadSet};

/// How the threads differ from what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// More or fewer of them.
    Count,
    /// As many and arranged alike, but they start in between.
    Alignment,
    /// As many, arranged in another way.
    Arrangement,
}

/// An edit of a nest after which a check passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Leave a loop out.
    Remove {
        /// Its position.
        step: usize,
    },
    /// Put another loop in its place.
    Replace {
        /// Its position.
        step: usize,
        /// The other one.
        bind: Bind,
    },
    /// Put loops before one, or inside all of them.
    Insert {
        /// The position of the first one.
        step: usize,
        /// The loops.
        binds: Vec<Bind>,
    },
}

impl Fix {
    /// The loops after it.
    pub fn applied(&self, binds: &[Bind]) -> Vec<Bind> {
        let mut binds = binds.to_vec();
        match self {
            Self::Remove { step } => {
                binds.remove(*step);
            }
            Self::Replace { step, bind } => binds[*step] = bind.clone(),
            Self::Insert { step, binds: more } => {
                binds.splice(step..step, more.iter().cloned());
            }
        }
        binds
    }

    /// The loop that it takes away or changes.
    const fn culprit(&self) -> Option<usize> {
        match self {
            Self::Remove { step } | Self::Replace { step, .. } => Some(*step),
            Self::Insert { .. } => None,
        }
    }
}

/// An operation where other threads run it than it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The unit that is needed.
    pub needed: Unit,
    /// Threads of one such unit, if they are a fixed number.
    pub wanted: Option<u64>,
    /// The iterators of the first instance that differs.
    pub values: Vec<u64>,
    /// Who runs it then.
    pub threads: ThreadSet,
    /// In what it differs.
    pub difference: Difference,
    /// The innermost loop without which, or with another one in its place, it would not differ.
    pub narrowed_by: Option<usize>,
    /// A way out, if one edit is enough.
    pub fix: Option<Fix>,
}

/// A loop that cannot stand where it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopRefusal {
    /// Its position.
    pub step: usize,
    /// Why.
    pub fault: LoopFault,
    /// Who runs what is around it, the first time.
    pub threads: ThreadSet,
    /// The innermost loop around without which it could stand there.
    pub narrowed_by: Option<usize>,
    /// A way out, if one edit is enough.
    pub fix: Option<Fix>,
}

/// Why an operation cannot stand where it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The unit that it needs is none of this launch.
    Unit(UnitFault),
    /// Other threads run it than it needs.
    Mismatch(Box<Mismatch>),
}

/// The place inside of loops.
///
/// # Errors
/// The first loop that cannot stand where it does.
pub fn place(shape: Shape, binds: &[Bind]) -> Result<Nest, Box<LoopRefusal>> {
    let (step, fault) = match Nest::of(shape, binds) {
        Ok(nest) => return Ok(nest),
        Err(refused) => refused,
    };
    let around = Nest::of(shape, &binds[..step]);
    let threads = around.map(|nest| nest.first().clone()).unwrap_or_default();
    let stands = |binds: &[Bind]| Nest::of(shape, binds).is_ok();
    let upto = &binds[..=step];
    let without = |n: &usize| stands(&Fix::Remove { step: *n }.applied(upto));
    let narrowed_by = (0..step).rev().find(without);
    let own = &binds[step];
    let mut fixes = Vec::new();
    if let LoopFault::TooMany { most, .. } = fault
        && most > 0
    {
        let width = own.high - own.low;
        let bind = if own.low == 0 {
            Bind { high: most, tiles: if own.tiles == own.high { most } else { 1 }, ..own.clone() }
        } else {
            let low = most.saturating_sub(width);
            let tiles = if own.tiles == width { most - low } else { 1 };
            Bind { low, high: most, tiles, ..own.clone() }
        };
        fixes.push(Fix::Replace { step, bind });
    }
    if matches!(fault, LoopFault::Ambiguous { .. } | LoopFault::NotABox { .. }) {
        for unit in [Unit::warpgroup(), Unit::warp()] {
            let binds = most_of(shape, &binds[..step], &unit).into_iter().collect();
            fixes.push(Fix::Insert { step, binds });
        }
    }
    fixes.push(Fix::Remove { step });
    fixes.extend(narrowed_by.map(|step| Fix::Remove { step }));
    let works = |fix: &Fix| fix.applied(upto) != upto && stands(&fix.applied(upto));
    let fix = fixes.into_iter().find(works);
    Err(Box::new(LoopRefusal { step, fault, threads, narrowed_by, fix }))
}

/// A loop over as many of these units as there are inside of some loops; none if none fits.
pub fn most_of(shape: Shape, around: &[Bind], unit: &Unit) -> Option<Bind> {
    let nest = Nest::of(shape, around).ok()?;
    let most = match nest.inside(&Bind::each(u64::MAX, unit.clone())) {
        Err(LoopFault::TooMany { most, .. }) => most,
        _ => return None,
    };
    (most > 0).then(|| Bind::each(most, unit.clone()))
}

/// Whether the threads that run a place are what an operation there needs, in every iteration.
///
/// # Errors
/// The unit is none of this launch; the first iteration that other threads run.
pub fn check(nest: &Nest, needed: &Unit) -> Result<(), Refusal> {
    let shape = nest.shape();
    let wanted = needed.needed(shape).map_err(Refusal::Unit)?;
    let Some(instance) = nest.instances().iter().find(|i| !wanted.matches(&i.threads)) else {
        return Ok(());
    };
    let threads = instance.threads.clone();
    let difference = match (wanted.threads(), wanted.first()) {
        (Some(count), _) if count != threads.count() => Difference::Count,
        (_, Some(first)) if first == threads.at_origin() => Difference::Alignment,
        _ => Difference::Arrangement,
    };
    let binds: Vec<Bind> = nest.steps().iter().map(|s| s.bind.clone()).collect();
    let works = |fix: &Fix| {
        let fixed = fix.applied(&binds);
        fixed != binds && Nest::of(shape, &fixed).is_ok_and(|n| n.matches(needed) == Ok(true))
    };
    let more = wanted.threads().is_none_or(|count| threads.count() > count);
    // Nobody loops over any amount of something.
    let unit = wanted.threads().map(|_| needed);
    let (outer, inner) = (changes(shape, &binds, unit), additions(shape, &binds, unit));
    let fixes = if more { inner.into_iter().chain(outer) } else { outer.into_iter().chain(inner) };
    let fixes: Vec<Fix> = fixes.filter(works).collect();
    let narrowed_by = fixes.iter().filter_map(Fix::culprit).max();
    let fix = fixes.into_iter().next();
    let (values, wanted) = (instance.values.clone(), wanted.threads());
    let needed = needed.clone();
    let mismatch = Mismatch { needed, wanted, values, threads, difference, narrowed_by, fix };
    Err(Refusal::Mismatch(Box::new(mismatch)))
}

/// What else could stand in place of each loop, the innermost one first: the same range elsewhere, nothing, or the unit
/// that is needed.
fn changes(shape: Shape, binds: &[Bind], needed: Option<&Unit>) -> Vec<Fix> {
    let mut fixes = Vec::new();
    for (step, bind) in binds.iter().enumerate().rev() {
        if bind.tiles == 1 {
            let width = bind.high - bind.low;
            let mut lows: Vec<u64> = (0..bind.low + width).filter(|low| *low != bind.low).collect();
            lows.sort_by_key(|low| (low.abs_diff(bind.low), *low));
            let moved = |low| Bind { low, high: low + width, ..bind.clone() };
            fixes.extend(lows.into_iter().map(|low| Fix::Replace { step, bind: moved(low) }));
        }
        fixes.push(Fix::Remove { step });
        fixes.extend(
            needed.and_then(|unit| most_of(shape, &binds[..step], unit)).map(|bind| Fix::Replace { step, bind }),
        );
        fixes.extend(several_blocks(shape, &binds[..step]).map(|bind| Fix::Replace { step, bind }));
    }
    fixes
}

/// Loops over several blocks, side by side or apart from each other.
fn several_blocks(shape: Shape, around: &[Bind]) -> impl Iterator<Item = Bind> {
    let powers = move || (1..).map(|n| 1 << n).take_while(move |n| *n < shape.cluster());
    let units = [1].into_iter().chain(powers()).flat_map(move |stride| {
        let unit = if stride == 1 { Some(Unit::cta()) } else { Unit::cta_strided(stride) };
        powers().filter_map(move |n| unit.as_ref()?.scaled(n).ok())
    });
    units.filter_map(move |unit| most_of(shape, around, &unit))
}

/// Loops inside of all others: over blocks, over the unit that is needed, or both.
fn additions(shape: Shape, binds: &[Bind], needed: Option<&Unit>) -> Vec<Fix> {
    let step = binds.len();
    let blocks = (shape.cluster() > 1).then(|| Bind::each(shape.cluster(), Unit::cta()));
    let mut fixes = Vec::new();
    for first in [None, blocks] {
        let own = binds.iter().chain(&first).cloned().collect::<Vec<_>>();
        let last = needed.and_then(|unit| most_of(shape, &own, unit));
        for more in [first.clone().into_iter().collect(), first.into_iter().chain(last).collect::<Vec<_>>()] {
            fixes.push(Fix::Insert { step, binds: more });
        }
    }
    fixes
}
