//! The definitions once more, over plain sets: a unit is its extents and boxes, a set is a list of flags, and everything is searched for.

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

/// The threads of one iteration, as flags.
pub type Flags = Vec<bool>;

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

/// Whether the threads are a product of coordinates with the demanded numbers; every box is cut into (1, all) first.
pub fn is_unit(unit: &Plain, set: &Flags) -> bool {
    let mut fine = Plain { extents: Vec::new(), boxes: Vec::new() };
    for (d, b) in unit.extents.iter().zip(&unit.boxes) {
        if *b == 0 || *b == 1 || b == d {
            fine.extents.push(*d);
            fine.boxes.push(*b);
        } else if d % b == 0 {
            fine.extents.extend([d / b, *b]);
            fine.boxes.extend([1, *b]);
        } else {
            return false;
        }
    }
    let members: Vec<Vec<u64>> = (0..set.len()).filter(|t| set[*t]).map(|t| digits(t as u64, &fine.extents)).collect();
    if members.is_empty() {
        return false;
    }
    let allowed: Vec<Vec<u64>> = (0..fine.extents.len())
        .map(|m| (0..fine.extents[m]).filter(|c| members.iter().any(|v| v[m] == *c)).collect())
        .collect();
    let fits = (0..fine.extents.len()).all(|m| match fine.boxes[m] {
        0 => true,
        1 => allowed[m].len() == 1,
        b => allowed[m].len() as u64 == b,
    });
    // Each thread whose coordinates all occur must be a member.
    fits && (0..set.len()).all(|t| {
        let v = digits(t as u64, &fine.extents);
        set[t] == v.iter().zip(&allowed).all(|(c, a)| a.contains(c))
    })
}

/// Threads between neighbours of each dimension, those of extent 1 left out.
fn weights(extents: &[u64]) -> Vec<u64> {
    (0..extents.len()).filter(|m| extents[*m] > 1).map(|m| extents[m + 1..].iter().product()).collect()
}

/// The sets of all iterations; none if a loop is refused.
pub fn nest(cluster: u64, block: u64, loops: &[Loop]) -> Option<Vec<(Vec<u64>, Flags)>> {
    let threads = cluster * block;
    let mut known = weights(&[cluster, block]);
    let mut sets = vec![(Vec::new(), vec![true; threads as usize])];
    for Loop { unit, low, high, tiles } in loops {
        if low >= high || (high - low) % tiles != 0 {
            return None;
        }
        // A common domain exists where all weights divide each other in turn.
        known.extend(weights(&unit.extents));
        known.sort_unstable();
        known.dedup();
        if (1..known.len()).any(|n| !known[n].is_multiple_of(known[n - 1])) {
            return None;
        }
        let mut extents: Vec<u64> = Vec::new();
        for n in (0..known.len()).rev() {
            let end = if n + 1 < known.len() { known[n + 1] } else { threads };
            extents.push(end / known[n]);
        }
        // The boxes there: what of the unit's own box lies in each dimension.
        let mut boxes = Vec::new();
        let mut weight: u64 = unit.extents.iter().product();
        for (d, b) in unit.extents.iter().zip(&unit.boxes) {
            let end = weight;
            weight /= d;
            for n in (0..known.len()).rev().filter(|n| known[*n] >= weight && known[*n] < end) {
                let (w, above) = (known[n], if n + 1 < known.len() { known[n + 1] } else { threads });
                let length = b * weight;
                boxes.push(if *b == 0 {
                    0
                } else if length >= w && !length.is_multiple_of(w) {
                    return None;
                } else {
                    (length / w).clamp(1, above / w)
                });
            }
        }
        let mut seen: Option<Vec<(u64, u64)>> = None;
        let mut starts = Vec::new();
        for (_, set) in &sets {
            let mut ends: Vec<(u64, u64)> = vec![(u64::MAX, 0); extents.len()];
            let mut count = 0;
            for t in (0..threads).filter(|t| set[*t as usize]) {
                count += 1;
                for (end, c) in ends.iter_mut().zip(digits(t, &extents)) {
                    *end = (end.0.min(c), end.1.max(c));
                }
            }
            let lengths: Vec<(u64, u64)> = ends.iter().map(|(a, b)| (b - a + 1, 0)).collect();
            // A box holds as many threads as its sides say.
            if count != lengths.iter().map(|l| l.0).product::<u64>() || seen.as_ref().is_some_and(|s| *s != lengths) {
                return None;
            }
            starts.push(ends.iter().map(|e| e.0).collect::<Vec<_>>());
            seen = Some(lengths);
        }
        let lengths = seen?;
        let cut: Vec<usize> = (0..extents.len())
            .filter(|m| boxes[*m] != 0 && boxes[*m] != lengths[*m].0 && boxes[*m] != extents[*m])
            .collect();
        match cut[..] {
            [] if (*low, *high, *tiles) == (0, 1, 1) => {
                sets.iter_mut().for_each(|(values, _)| values.push(0));
            }
            [m] => {
                if high * boxes[m] > lengths[m].0 {
                    return None;
                }
                let side = boxes[m] * (high - low) / tiles;
                let mut next = Vec::new();
                for ((values, set), start) in sets.iter().zip(&starts) {
                    for value in 0..*tiles {
                        let from = start[m] + low * boxes[m] + value * side;
                        let inside = |t: usize| {
                            let c = digits(t as u64, &extents)[m];
                            set[t] && c >= from && c < from + side
                        };
                        let values = [&values[..], &[value]].concat();
                        next.push((values, (0..threads as usize).map(inside).collect()));
                    }
                }
                sets = next;
            }
            _ => return None,
        }
    }
    Some(sets)
}
