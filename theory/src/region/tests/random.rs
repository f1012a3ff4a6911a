//! Random readers against enumeration: whatever is asked for is there, and every claim holds.

use super::nest::{Nest, Unit, check, show, tightest};
use super::text::Text;
use crate::region::{Fit, Realisation};

/// A small generator; the same cases on every run.
pub(super) struct Random(u64);

impl Random {
    /// The seed of a test, or another one from the environment.
    pub fn seeded(seed: u64) -> Self {
        Self(std::env::var("REGION_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(seed))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }
}

/// A reader of one to three axes with up to four ops, and indices that move by at most one axis each, or fused ones.
pub(super) fn reader(random: &mut Random) -> Option<(Nest, String)> {
    let rank = random.between(1, 3) as usize;
    let extents: Vec<String> =
        (0..rank).map(|_| random.between(1, if rank == 1 { 16 } else { 7 }).to_string()).collect();
    read_by(random, "", &extents)
}

/// The same for axes of these extents, over dimensions.
fn read_by(random: &mut Random, dims: &str, extents: &[String]) -> Option<(Nest, String)> {
    let rank = extents.len();
    let names = ["a", "b", "c"];
    let roots: Vec<String> = (0..rank).map(|d| format!("{} {}", names[d], extents[d])).collect();
    let mut leaves: Vec<String> = names[..rank].iter().map(|n| (*n).to_owned()).collect();
    let mut ops: Vec<String> = Vec::new();
    for op in 0..random.between(0, 4) {
        let at = random.below(leaves.len() as u64) as usize;
        match random.below(5) {
            0 | 1 => {
                let (o, i) = (format!("o{op}"), format!("i{op}"));
                let word = if random.below(4) == 0 { "into" } else { "split" };
                ops.push(format!("{word} {} {} {o} {i}", leaves[at], random.between(1, 6)));
                leaves.splice(at..=at, [o, i]);
            }
            2 | 3 if leaves.len() > 1 => {
                let other = random.below(leaves.len() as u64) as usize;
                if other == at {
                    continue;
                }
                let name = format!("m{op}");
                ops.push(format!("merge {} {} {name}", leaves[at], leaves[other]));
                leaves[at] = name;
                leaves.remove(other);
            }
            _ => {
                // A rotation of the loops.
                leaves.rotate_left(at);
                ops.push(format!("reorder {}", leaves.join(" ")));
            }
        }
    }
    let at = [String::new()].iter().chain(&leaves).nth(random.below(leaves.len() as u64 + 1) as usize)?.clone();
    let tensor_rank = random.between(1, 3) as usize;
    let mut shape: Vec<String> = vec!["1".to_owned(); tensor_rank];
    let mut reads: Vec<String> = Vec::new();
    let forms: Vec<(usize, i64, u64, usize)> = (0..tensor_rank)
        .map(|d| {
            let axis = if random.below(4) == 0 { random.below(rank as u64) as usize } else { d % rank };
            (axis, random.between(1, 3), random.below(7), random.below(rank as u64) as usize)
        })
        .collect();
    for _ in 0..[1, 1, 1, 2, 3][random.below(5) as usize] {
        let mut indices = Vec::new();
        for (d, (axis, factor, kind, other)) in forms.iter().enumerate() {
            let (name, last) = (names[*axis], format!("({} - 1)", extents[*axis]));
            let shift = random.between(0, 2);
            // The index, and the largest one, which gives the shape.
            let (text, most) = match kind {
                0 => (format!("{last} - {name} + {shift}"), format!("{last} + 2")),
                1 => (format!("{name} * {factor} + {shift}"), format!("{last} * {factor} + 2")),
                2 => (
                    format!("{name} * {factor} + {} + {shift}", names[*other]),
                    format!("{last} * {factor} + {} + 1", extents[*other]),
                ),
                3 => (format!("({name} + {shift}) / {}", factor + 1), format!("({last} + 2) / {}", factor + 1)),
                4 => (format!("({name} + {shift}) % {}", factor + 1), factor.to_string()),
                _ => (format!("{name} + {shift}"), format!("{last} + 2")),
            };
            shape[d] = format!("{most} + 1");
            indices.push(text);
        }
        let mut read = indices.join(", ");
        if random.below(4) == 0 {
            let name = names[random.below(rank as u64) as usize];
            let bound = random.between(0, 4);
            read +=
                &if random.below(2) == 0 { format!(" if {name} - {bound}") } else { format!(" if {bound} - {name}") };
        }
        reads.push(read);
    }
    let (shape, roots, ops, reads) = (shape.join(", "), roots.join(", "), ops.join("; "), reads.join("; "));
    let mut nest = Nest::new(dims, &shape, &roots, &ops, &reads, &at, Unit::Cta);
    let outside = nest.outside();
    let mut reached = String::new();
    if !outside.is_empty() && random.below(4) == 0 {
        let (name, bound) = (outside[random.below(outside.len() as u64) as usize], random.between(0, 3));
        reached = if random.below(2) == 0 { format!("{name} - {bound}") } else { format!("{bound} - {name}") };
        nest.reached = vec![Text::new(&reached)];
    }
    let what = format!("{dims}[{shape}] read by {roots}: {ops}; {reads} at `{at}`, reached if {reached}");
    Some((nest, what))
}

#[test]
fn regions_hold_all_that_is_read() {
    let mut random = Random::seeded(5);
    let (mut exact, mut minimal, mut sound, mut flat, mut several, mut all, mut tight) = (0, 0, 0, 0, 0, 0, 0);
    let cases = std::env::var("REGION_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1500);
    for case in 0..cases {
        let Some((nest, what)) = reader(&mut random) else { continue };
        let way = if case % 3 == 0 { Realisation::Cover } else { Realisation::Smallest };
        let region = nest.region(way).unwrap_or_else(|why| panic!("{what}: {why:?}"));
        let figures = check(&nest, &region, &[], &format!("{case}: {what}"));
        several += u32::from(region.groups.len() > 1);
        flat += u32::from(region.groups.iter().any(|g| g.axes.iter().any(|a| a.dims.len() > 1)));
        let weakest = region.groups.iter().map(|g| g.fit).min().unwrap_or(Fit::Exact);
        match weakest {
            Fit::Exact => exact += 1,
            Fit::Minimal => minimal += 1,
            Fit::Sound => sound += 1,
        }
        // Conditions on loops outside may leave out the iteration that attains a bound.
        if weakest >= Fit::Minimal && nest.reached.is_empty() {
            all += 1;
            tight += u32::from(figures.bounds == tightest(&nest, &region, &[]));
        }
        if std::env::var("REGION_SHOW").is_ok()
            && weakest >= Fit::Minimal
            && figures.bounds != tightest(&nest, &region, &[])
        {
            println!("{case}: {what}: {}", show(&region));
        }
    }
    println!("exact {exact}, minimal {minimal}, sound {sound}; flat {flat}, several {several}, tight {tight} of {all}");
    // All kinds of regions are met, few claim nothing, and few bounds are not attained.
    assert!(exact > 0 && minimal > 0 && flat > 0 && several > 0);
    assert!(sound * 6 < exact + minimal && tight * 100 > all * 96);
}

/// Axes whose lengths are known at launch only: one region for all of them.
#[test]
fn regions_of_symbolic_axes_hold_all_that_is_read() {
    let mut random = Random::seeded(31);
    let cases = std::env::var("REGION_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let (mut exact, mut minimal, mut sound) = (0, 0, 0);
    for case in 0..cases {
        let rank = random.between(1, 3) as usize;
        let extents: Vec<String> = (0..rank)
            .map(|_| match random.below(4) {
                0 | 1 => "N".to_owned(),
                2 => "M".to_owned(),
                _ => random.between(1, 6).to_string(),
            })
            .collect();
        let Some((nest, what)) = read_by(&mut random, "N M", &extents) else { continue };
        let way = if case % 3 == 0 { Realisation::Cover } else { Realisation::Smallest };
        let region = nest.region(way).unwrap_or_else(|why| panic!("{what}: {why:?}"));
        for sizes in [[1, 1], [2, 3], [3, 1], [5, 4], [6, 7], [8, 2]] {
            check(&nest, &region, &sizes, &format!("{case}: {what}, {sizes:?}"));
        }
        match region.groups.iter().map(|g| g.fit).min() {
            Some(Fit::Exact) | None => exact += 1,
            Some(Fit::Minimal) => minimal += 1,
            Some(Fit::Sound) => sound += 1,
        }
    }
    println!("exact {exact}, minimal {minimal}, sound {sound}");
    assert!(exact > 0 && minimal > 0 && sound < exact);
}

/// A bound over one period of a loop holds for all of its iterations, of which those of the first period may do
/// nothing.
#[test]
fn a_condition_on_a_loop_says_nothing_of_one_period() {
    for bound in 0..4 {
        let mut nest = Nest::new("N", "N", "a N, b 2", "resize a 2 1 r", "(a + b) / 2", "r", Unit::Cta);
        nest.reached = vec![Text::new(&format!("r - {bound}"))];
        let region = nest.region(Realisation::Smallest).expect("a run");
        assert_eq!(region.groups[0].axes[0].bound.as_constant(), Some(2), "from {bound}");
        for size in 2..7 {
            check(&nest, &region, &[size], &format!("from {bound}, {size}"));
        }
    }
}
