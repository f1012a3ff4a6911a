//! The definitions once more, over plain lists: a unit is its extents and boxes, a set is its members, and everything
//! is searched for.

use std::collections::{BTreeMap, BTreeSet};

/// A unit in a launch: extents and boxes, the product of the extents being all threads; a box of 0 is any.
#[derive(Clone, Debug)]
pub struct Plain {
    pub extents: Vec<u64>,
    pub boxes: Vec<u64>,
}

/// A loop: the unit, the range, and the iterations.
#[derive(Clone, Debug)]
pub struct Loop {
    pub unit: Plain,
    pub low: u64,
    pub high: u64,
    pub tiles: u64,
}

/// The threads of one iteration, ascending.
pub type Members = Vec<u64>;

/// The digits of a number, by division with remainder from the left.
fn digits(thread: u64, extents: &[u64]) -> Vec<u64> {
    let mut weight: u64 = extents.iter().product();
    let mut rest = thread;
    let mut found = Vec::new();
    for extent in extents {
        weight /= extent;
        found.push(rest / weight);
        rest %= weight;
    }
    found
}

/// Puts a unit over all threads; `free` says whether groups beside it take part. None if some number does not fit.
pub fn over(domain: &[u64], boxes: &[u64], threads: u64, free: bool) -> Option<Plain> {
    let product: u64 = domain.iter().product();
    if product == 0 || !threads.is_multiple_of(product) {
        return None;
    }
    for (d, b) in domain.iter().zip(boxes) {
        if b > d {
            return None;
        }
    }
    let mut plain = Plain { extents: vec![threads / product], boxes: vec![if free { 0 } else { 1 }] };
    plain.extents.extend(domain);
    plain.boxes.extend(boxes);
    Some(plain)
}

/// The same unit with every box cut into (1, all); none if one does not divide its extent.
fn fine(unit: &Plain) -> Option<Plain> {
    let mut fine = Plain { extents: Vec::new(), boxes: Vec::new() };
    for (d, b) in unit.extents.iter().zip(&unit.boxes) {
        if *b == 0 || *b == 1 || b == d {
            fine.extents.push(*d);
            fine.boxes.push(*b);
        } else if d % b == 0 {
            fine.extents.extend([d / b, *b]);
            fine.boxes.extend([1, *b]);
        } else {
            return None;
        }
    }
    Some(fine)
}

/// The coordinates that occur along each dimension, if the members are all threads with such coordinates, and there is
/// one.
fn sides(extents: &[u64], set: &Members) -> Option<Vec<BTreeSet<u64>>> {
    let mut allowed: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); extents.len()];
    for t in set {
        for (a, c) in allowed.iter_mut().zip(digits(*t, extents)) {
            a.insert(c);
        }
    }
    let volume: u64 = allowed.iter().map(|a| a.len() as u64).product();
    (!set.is_empty() && volume == set.len() as u64).then_some(allowed)
}

/// Whether the threads are a product of coordinates with the demanded numbers.
pub fn is_unit(unit: &Plain, set: &Members) -> bool {
    let Some(fine) = fine(unit) else { return false };
    let Some(allowed) = sides(&fine.extents, set) else { return false };
    allowed.iter().zip(&fine.boxes).all(|(a, b)| *b == 0 || a.len() as u64 == *b)
}

/// Every set that is such a unit, by enumeration: each thread has the number of the one that it is in. None if amounts
/// are free, or no set is one.
pub fn units(unit: &Plain) -> Option<Vec<u64>> {
    let fine = fine(unit).filter(|fine| !fine.boxes.contains(&0))?;
    let threads: u64 = fine.extents.iter().product();
    let mut keys: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
    let mut of = Vec::new();
    for t in 0..threads {
        // Units differ in the coordinates of which each has one.
        let one = digits(t, &fine.extents).into_iter().zip(&fine.boxes).filter(|(_, b)| **b == 1);
        let next = keys.len() as u64;
        of.push(*keys.entry(one.map(|k| k.0).collect()).or_insert(next));
    }
    Some(of)
}

/// Whether a set is one of the enumerated units.
pub fn is_one_of(units: &[u64], set: &Members) -> bool {
    let Some(first) = set.first() else { return false };
    let own = units[*first as usize];
    set.iter().all(|t| units[*t as usize] == own) && units.iter().filter(|u| **u == own).count() == set.len()
}

/// Of a list of units, whether a set is made of whole ones, and whether it lies in one.
pub fn whole_and_single(unit: &Plain, units: &[u64], set: &Members) -> (bool, bool) {
    let is_box = fine(unit).is_some_and(|fine| sides(&fine.extents, set).is_some());
    let own: BTreeSet<u64> = set.iter().map(|t| units[*t as usize]).collect();
    let of_own = units.iter().filter(|u| own.contains(u)).count();
    (is_box && of_own == set.len(), is_box && own.len() == 1)
}

/// Threads between neighbours of each dimension, those of extent 1 left out.
fn weights(extents: &[u64]) -> Vec<u64> {
    (0..extents.len()).filter(|m| extents[*m] > 1).map(|m| extents[m + 1..].iter().product()).collect()
}

/// A place inside loops: the weights that are known, and the members of every iteration.
#[derive(Clone, Debug)]
pub struct State {
    threads: u64,
    known: Vec<u64>,
    pub sets: Vec<(Vec<u64>, Members)>,
}

impl State {
    pub fn top(cluster: u64, block: u64) -> Self {
        let threads = cluster * block;
        Self { threads, known: weights(&[cluster, block]), sets: vec![(Vec::new(), (0..threads).collect())] }
    }

    /// The place inside one more loop; none if that is refused.
    pub fn inside(&self, Loop { unit, low, high, tiles }: &Loop) -> Option<Self> {
        if low >= high || (high - low) % tiles != 0 {
            return None;
        }
        let threads = self.threads;
        // A common domain exists where all weights divide each other in turn.
        let mut known = self.known.clone();
        known.extend(weights(&unit.extents));
        known.sort_unstable();
        known.dedup();
        if (1..known.len()).any(|n| !known[n].is_multiple_of(known[n - 1])) {
            return None;
        }
        let above = |n: usize| if n + 1 < known.len() { known[n + 1] } else { threads };
        let extents: Vec<u64> = (0..known.len()).rev().map(|n| above(n) / known[n]).collect();
        // The boxes there: what of the unit's own box lies in each dimension.
        let mut boxes = Vec::new();
        let mut weight: u64 = unit.extents.iter().product();
        for (d, b) in unit.extents.iter().zip(&unit.boxes) {
            let end = weight;
            weight /= d;
            for n in (0..known.len()).rev().filter(|n| known[*n] >= weight && known[*n] < end) {
                let (w, length) = (known[n], b * weight);
                boxes.push(if *b == 0 {
                    0
                } else if length >= w && !length.is_multiple_of(w) {
                    return None;
                } else {
                    (length / w).clamp(1, above(n) / w)
                });
            }
        }
        let mut seen: Option<Vec<u64>> = None;
        let mut starts = Vec::new();
        for (_, set) in &self.sets {
            let mut ends: Vec<(u64, u64)> = vec![(u64::MAX, 0); extents.len()];
            for t in set {
                for (end, c) in ends.iter_mut().zip(digits(*t, &extents)) {
                    *end = (end.0.min(c), end.1.max(c));
                }
            }
            let lengths: Vec<u64> = ends.iter().map(|(a, b)| b - a + 1).collect();
            // A box holds as many threads as its sides say.
            if set.len() as u64 != lengths.iter().product::<u64>() || seen.as_ref().is_some_and(|s| *s != lengths) {
                return None;
            }
            starts.push(ends.iter().map(|e| e.0).collect::<Vec<_>>());
            seen = Some(lengths);
        }
        let lengths = seen?;
        let cut: Vec<usize> = (0..extents.len())
            .filter(|m| boxes[*m] != 0 && boxes[*m] != lengths[*m] && boxes[*m] != extents[*m])
            .collect();
        let mut sets = Vec::new();
        match cut[..] {
            [] if (*low, *high, *tiles) == (0, 1, 1) => {
                sets.extend(self.sets.iter().map(|(values, set)| ([&values[..], &[0]].concat(), set.clone())));
            }
            [m] => {
                if high * boxes[m] > lengths[m] {
                    return None;
                }
                let side = boxes[m] * (high - low) / tiles;
                for ((values, set), start) in self.sets.iter().zip(&starts) {
                    let along: Vec<u64> = set.iter().map(|t| digits(*t, &extents)[m]).collect();
                    for value in 0..*tiles {
                        let from = start[m] + low * boxes[m] + value * side;
                        let inside = set.iter().zip(&along).filter(|(_, c)| (from..from + side).contains(c));
                        sets.push(([&values[..], &[value]].concat(), inside.map(|(t, _)| *t).collect()));
                    }
                }
            }
            _ => return None,
        }
        Some(Self { threads, known, sets })
    }
}
