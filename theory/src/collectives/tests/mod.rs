//! Tests of the room: the published table, and verdicts against an oracle of plain sets.

mod brute;
mod conformance;
mod further;
mod launches;
mod oracle;
mod others;
mod random_roles;

use super::{Bind, Nest, Shape, Size, Tiling, Unit};
use crate::layout::Path;

/// What threads run by the layout of a nest.
struct Selected(Vec<Digit>);

/// The digit of a loop.
struct Digit {
    step: usize,
    path: Path,
    /// How many values it has, if some threads have none of them.
    extent: Option<i128>,
}

impl Selected {
    fn new(tiling: &Tiling) -> Self {
        let layout = tiling.layout();
        assert!(layout.is_one_to_one(), "{tiling:?}");
        let digits = layout.digits().iter().enumerate();
        let own = digits.filter_map(|(n, digit)| {
            let extent = layout.is_partial(n).then_some(digit.extent);
            digit.source.map(|step| Digit { step, path: layout.path(n), extent })
        });
        Self(own.collect())
    }

    /// The iterators of the loops for a thread, as guards compute them; none if they keep it out.
    fn by(&self, thread: u64) -> Option<Vec<u64>> {
        let mut values = vec![0; self.0.len()];
        for Digit { step, path, extent } in &self.0 {
            let value = path.at(thread.into());
            if extent.is_some_and(|extent| value >= extent) {
                return None;
            }
            values[*step] = u64::try_from(value).unwrap();
        }
        Some(values)
    }
}

/// A unit from text: `warp`, `8 thread`, `2 threads_strided(1, 16)`.
fn unit(text: &str) -> Unit {
    let (scale, name) = match text.split_once(' ') {
        Some((scale, name)) if scale.parse::<u64>().is_ok() => (scale.parse().unwrap(), name),
        _ => (1, text),
    };
    let (name, arguments) = name.split_once('(').unwrap_or((name, ""));
    let arguments: Vec<u64> =
        arguments.trim_end_matches(')').split(',').filter_map(|a| a.trim().parse().ok()).collect();
    let number = |n| Some(Size::of(n));
    let raw = |domain: &[Size], boxes: &[Option<Size>]| Unit::raw(name, domain, boxes).unwrap();
    let unit = match name {
        "standalone" => Unit::standalone_thread(),
        "thread" => Unit::thread(),
        "warp" => Unit::warp(),
        "warpgroup" => Unit::warpgroup(),
        "quadpair" => Unit::quadpair(),
        "threads_strided" => Unit::threads_strided(arguments[0], arguments[1]).unwrap(),
        "cta" => Unit::cta(),
        "cluster" => Unit::cluster(),
        "cta_strided" => Unit::cta_strided(arguments[0]).unwrap(),
        "warp_strided" => Unit::warp_strided(arguments[0]).unwrap(),
        "warp_in_cluster" => Unit::warp_in_cluster(),
        "agnostic_sub_cta" => Unit::agnostic_sub_cta(),
        "agnostic_warps" => Unit::agnostic_warps(),
        "agnostic_intact_cta" => Unit::agnostic_intact_cta(),
        "mod2" => raw(&[Size::of(2)], &[number(1)]),
        "mod3" => raw(&[Size::of(3)], &[number(1)]),
        "mod8" => raw(&[Size::of(8)], &[number(1)]),
        "half64" => raw(&[Size::of(64)], &[number(32)]),
        "oct" => raw(&[Size::BLOCK.over(8).unwrap(), Size::of(8)], &[number(1), number(8)]),
        _ => panic!("no unit `{text}`"),
    };
    unit.scaled(scale).unwrap()
}

/// A nest from text: `2 x warpgroup > W 0..3 > 4 x 8 thread`, where `W` is a range of warps that run one iteration;
/// `2 of 1..5 warp` are two iterations that a range of units shares.
fn binds(text: &str) -> Vec<Bind> {
    let bind = |part: &str| {
        if let Some((low, high)) = part.strip_prefix("W ").and_then(|range| range.split_once("..")) {
            return Bind::range(low.parse().unwrap(), high.parse().unwrap(), Unit::warp());
        }
        if let Some((tiles, rest)) = part.split_once(" of ") {
            let (range, name) = rest.split_once(' ').unwrap();
            let (low, high) = range.split_once("..").unwrap();
            let [tiles, low, high] = [tiles, low, high].map(|n| n.parse().unwrap());
            return Bind { unit: unit(name), low, high, tiles };
        }
        let (tiles, name) = part.split_once(" x ").unwrap();
        Bind::each(tiles.parse().unwrap(), unit(name))
    };
    text.split(" > ").filter(|part| !part.is_empty()).map(bind).collect()
}

fn nest(cluster: u64, block: u64, text: &str) -> Nest {
    Nest::of(Shape::new(cluster, block).unwrap(), &binds(text)).unwrap_or_else(|f| panic!("{text}: {f:?}"))
}
