//! Arrays whose elements threads hold: which one is held by whom.

use tilewright_sorted::SortedMap;

use super::ThreadSet;
use super::nest::{Instance, Nest};
use super::types::coordinates;
use super::unit::{Unit, UnitFault};

/// An array where it is declared.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// The place of the declaration.
    pub declared: &'a Nest,
    /// The unit that holds an element: a thread for registers, a block for shared memory, a warp for fragments.
    pub native: &'a Unit,
    /// Its extents.
    pub extents: &'a [u64],
}

/// Which threads hold which element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Who holds the element whose distributed indices are 0, of the first instance.
    pub first: ThreadSet,
    /// From there to the next one along each distributed index; these are the first indices of the array.
    pub pitches: Vec<u64>,
}

/// A use of an array that nobody around holds as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldingFault {
    /// The native unit is none of this launch.
    Unit(UnitFault),
    /// The place of use is not inside the place of the declaration.
    Elsewhere,
    /// Where it is declared, a part of the native unit is missing.
    MissingThreads {
        /// Who runs the declaration.
        threads: ThreadSet,
    },
    /// Where it is used, several native units are left.
    MissingSubdivision {
        /// Who runs the use.
        threads: ThreadSet,
    },
    /// The iterators of the loops that take units apart are not the first indices, once each and in order.
    Indices {
        /// The loops.
        loops: Vec<usize>,
        /// The indices, as positions of loops; none for what is no plain iterator.
        indices: Vec<Option<usize>>,
    },
    /// A loop of another length than the array.
    Extent {
        /// Position of the loop.
        step: usize,
        /// Its iterations.
        tiles: u64,
        /// The extent of the array.
        extent: u64,
    },
    /// Native units that are not as far apart as the iterations that take them: an iteration has a part of one, and
    /// another one the rest.
    Uneven {
        /// The iterators of such an iteration.
        values: Vec<u64>,
        /// Who runs it.
        threads: ThreadSet,
    },
    /// Two uses for which other threads hold an element.
    Differs {
        /// The holding of the first use.
        first: Box<Holding>,
        /// That of the other one.
        other: Box<Holding>,
    },
}

impl Array<'_> {
    /// Who holds its elements, as one use has it: `indices` are the positions of loops in the nest, where they are
    /// plain iterators.
    ///
    /// # Errors
    /// What is missing.
    pub fn used(&self, place: &Nest, indices: &[Option<usize>]) -> Result<Holding, HoldingFault> {
        let declared = self.declared.steps();
        if !place.steps().starts_with(declared) || place.shape() != self.declared.shape() {
            return Err(HoldingFault::Elsewhere);
        }
        let native = self.native.needed(place.shape()).map_err(HoldingFault::Unit)?;
        let extents: Vec<u64> = native.dims.iter().map(|d| d.extent).collect();
        let along = |threads: &ThreadSet| coordinates(&extents, threads);
        let intact = |found: Vec<Vec<u64>>| {
            native.dims.iter().zip(found).all(|(d, f)| d.part != Some(d.extent) || f.len() as u64 == d.extent)
        };
        let broken = |threads: &ThreadSet| !along(threads).is_some_and(intact);
        if let Some(instance) = self.declared.instances().iter().find(|i| broken(&i.threads)) {
            return Err(HoldingFault::MissingThreads { threads: instance.threads.clone() });
        }
        let single =
            |found: Vec<Vec<u64>>| native.dims.iter().zip(found).all(|(d, f)| d.part != Some(1) || f.len() == 1);
        if let Some(several) = place.instances().iter().find(|i| !along(&i.threads).is_some_and(single)) {
            return Err(HoldingFault::MissingSubdivision { threads: several.threads.clone() });
        }
        // A loop takes units apart if some of its iterations differ in them, whatever the others are.
        let first_of = |threads: &ThreadSet| threads.first().map_or(0, |t| native.unit_of(t));
        let of: SortedMap<&[u64], u64> =
            place.instances().iter().map(|i| (i.values.as_slice(), first_of(&i.threads))).collect();
        let at_first = |values: &[u64], steps: &dyn Fn(usize) -> bool| -> Option<u64> {
            let moved: Vec<u64> =
                values.iter().enumerate().map(|(step, value)| if steps(step) { 0 } else { *value }).collect();
            of.get(&moved[..]).copied()
        };
        let inner = declared.len()..place.steps().len();
        let takes = |step: &usize| of.iter().any(|(values, unit)| at_first(values, &|n| n == *step) != Some(*unit));
        let loops: Vec<usize> = inner.filter(takes).collect();
        let leading: Vec<Option<usize>> = indices.iter().copied().take(loops.len()).collect();
        let rest = indices.iter().skip(loops.len()).flatten();
        let wanted: Vec<Option<usize>> = loops.iter().copied().map(Some).collect();
        if leading != wanted || self.extents.len() < loops.len() || rest.clone().any(|n| loops.contains(n)) {
            return Err(HoldingFault::Indices { loops, indices: indices.to_vec() });
        }
        for (step, extent) in loops.iter().zip(self.extents) {
            let tiles = place.steps()[*step].bind.tiles;
            if tiles != *extent {
                return Err(HoldingFault::Extent { step: *step, tiles, extent: *extent });
            }
        }
        let pitches: Vec<u64> = loops.iter().map(|step| place.steps()[*step].pitch).collect();
        for Instance { values, threads } in place.instances() {
            let moved: u64 = loops.iter().zip(&pitches).map(|(step, pitch)| values[*step] * pitch).sum();
            let around = at_first(values, &|n| loops.contains(&n));
            if around.map(|unit| unit + moved) != Some(first_of(threads)) {
                return Err(HoldingFault::Uneven { values: values.clone(), threads: threads.clone() });
            }
        }
        // Of a unit of several threads all of them hold it together.
        let one = native.first().unwrap_or_default();
        let unit = first_of(place.first());
        let held = one.iter().map(|t| unit + t);
        Ok(Holding { first: ThreadSet::ascending(held), pitches })
    }

    /// Who holds its elements, as all uses have it.
    ///
    /// # Errors
    /// What is missing at one use, or two uses that differ.
    pub fn holding(&self, uses: &[(&Nest, &[Option<usize>])]) -> Result<Option<Holding>, HoldingFault> {
        let mut found: Option<Holding> = None;
        for (place, indices) in uses {
            let other = self.used(place, indices)?;
            match &found {
                Some(first) if *first != other => {
                    return Err(HoldingFault::Differs { first: Box::new(first.clone()), other: Box::new(other) });
                }
                _ => found = Some(other),
            }
        }
        Ok(found)
    }
}
