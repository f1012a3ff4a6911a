//! Sets of threads of a cluster, by their natural numbers.

use std::fmt;

/// A run of neighbours: the first one and how many there are.
type Run = (u64, u64);

/// A set of threads: runs of neighbours in order, with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadSet {
    runs: Vec<Run>,
}

impl ThreadSet {
    /// The threads from `first` on, so many.
    pub fn run(first: u64, count: u64) -> Self {
        let runs = if count == 0 { Vec::new() } else { vec![(first, count)] };
        Self { runs }
    }

    /// Threads in ascending order; what is not larger than its predecessor is left out.
    pub fn ascending(threads: impl IntoIterator<Item = u64>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for thread in threads {
            match runs.last_mut() {
                Some((first, count)) if thread < *first + *count => {}
                Some((first, count)) if thread == *first + *count => *count += 1,
                _ => runs.push((thread, 1)),
            }
        }
        Self { runs }
    }

    /// Its runs of neighbours, in order: the first thread of each, and how many.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().copied()
    }

    /// Adds threads from `first` on, so many, which come after all others.
    pub(super) fn push(&mut self, first: u64, more: u64) {
        match self.runs.last_mut() {
            Some((start, count)) if *start + *count == first => *count += more,
            _ => self.runs.push((first, more)),
        }
    }

    /// The union of sets.
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut runs: Vec<Run> = sets.into_iter().flat_map(|s| s.runs.iter().copied()).collect();
        runs.sort_unstable();
        let mut joined: Vec<Run> = Vec::new();
        for (first, count) in runs {
            match joined.last_mut() {
                Some((from, length)) if first <= *from + *length => *length = (*length).max(first + count - *from),
                _ => joined.push((first, count)),
            }
        }
        Self { runs: joined }
    }

    /// The threads that are in this set and not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        let mut others = other.runs.iter().copied().peekable();
        for (mut first, count) in self.runs() {
            let end = first + count;
            while first < end {
                match others.peek().copied() {
                    Some((start, count)) if start + count <= first => drop(others.next()),
                    Some((start, count)) if start < end => {
                        if first < start {
                            rest.push(first, start - first);
                        }
                        first = start + count;
                    }
                    _ => {
                        rest.push(first, end - first);
                        first = end;
                    }
                }
            }
        }
        rest
    }

    /// The threads, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().flat_map(|(first, count)| *first..first + count)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.1).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The first one.
    pub fn first(&self) -> Option<u64> {
        self.runs.first().map(|run| run.0)
    }

    /// Whether a thread is among them.
    pub fn contains(&self, thread: u64) -> bool {
        let at = self.runs.partition_point(|run| run.0 <= thread);
        at.checked_sub(1).is_some_and(|at| thread < self.runs[at].0 + self.runs[at].1)
    }

    /// The same threads, moved so that the first one is 0.
    #[must_use]
    pub fn at_origin(&self) -> Self {
        let origin = self.first().unwrap_or(0);
        Self { runs: self.runs.iter().map(|(first, count)| (first - origin, *count)).collect() }
    }

    /// The runs, if there are more than one, they are alike and equally far from each other: how many, and the
    /// distance.
    fn pattern(&self) -> Option<(u64, u64)> {
        let [first, second, ..] = self.runs[..] else { return None };
        let distance = second.0 - first.0;
        let alike = self.runs.iter().all(|run| run.1 == first.1);
        let even = self.runs.windows(2).all(|two| two[1].0 - two[0].0 == distance);
        (alike && even).then_some((self.runs.len() as u64, distance))
    }

    /// The set over the iterators of a place: their names and the distances between neighbours, of which this is the
    /// first iteration. `128g+32w+[0,32)`; `32w+128j+[0,32), j<4` for runs that lie apart.
    pub fn over(&self, iterators: &[(&str, u64)]) -> String {
        let mut moving = String::new();
        for (name, pitch) in iterators.iter().filter(|i| i.1 > 0) {
            let factor = if *pitch == 1 { String::new() } else { pitch.to_string() };
            moving.push_str(&format!("{factor}{name}+"));
        }
        let run = |(first, count): Run| match (first, count) {
            (0, 1) => moving.trim_end_matches('+').to_owned(),
            (_, 1) => format!("{moving}{first}"),
            _ => format!("{moving}[{first},{})", first + count),
        };
        match (&self.runs[..], self.pattern()) {
            _ if moving.is_empty() => self.to_string(),
            ([first, ..], Some((count, distance))) if count > 2 => {
                let taken = |name: &str| iterators.iter().any(|i| i.0 == name);
                let free = ["j", "k", "m", "n"].into_iter().find(|name| !taken(name)).unwrap_or("_");
                let runs = format!("{}+{distance}{free}", run(*first));
                format!("{}, {free}<{count}", runs.trim_start_matches('+'))
            }
            (runs, _) => runs.iter().map(|r| run(*r)).collect::<Vec<_>>().join(" and "),
        }
    }
}

/// `0-31`; `32-63,96-127`; `4x[0-31] step 128`, four runs of which this is the first one.
impl fmt::Display for ThreadSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |(first, count): Run| match count {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + count - 1),
        };
        match (&self.runs[..], self.pattern()) {
            ([], _) => f.write_str("none"),
            ([first, ..], Some((count, distance))) if count > 2 => {
                write!(f, "{count}x[{}] step {distance}", show(*first))
            }
            (runs, _) => {
                const MOST: usize = 8;
                let shown: Vec<String> = runs.iter().take(MOST).map(|r| show(*r)).collect();
                f.write_str(&shown.join(","))?;
                if runs.len() > MOST {
                    write!(f, ", and {} more", self.count() - runs[..MOST].iter().map(|r| r.1).sum::<u64>())
                } else {
                    Ok(())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadSet;

    /// Of every two sets of few threads.
    #[test]
    fn what_is_left_of_a_set_is_in_no_other() {
        let sets: Vec<ThreadSet> =
            (0..128_u64).map(|bits| ThreadSet::ascending((0..7).filter(|t| bits >> t & 1 == 1))).collect();
        for (a, of_a) in sets.iter().enumerate() {
            for (b, of_b) in sets.iter().enumerate() {
                assert_eq!(of_a.without(of_b), sets[a & !b], "{of_a} without {of_b}");
            }
        }
    }
}
