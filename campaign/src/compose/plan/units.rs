//! How loops are given to the threads of a block, or of a part of it.

use super::Plan;
use super::nest::{Given, Loop, Nest, Own, Units};

impl Plan<'_> {
    /// Decides how the block is divided.
    pub(super) fn units(&mut self) {
        let roles = ["roles", "roles-three", "role-chain", "role-stores", "ring-grid"];
        let kinds: &[(usize, &[&str])] = &[
            (21, &["own-unit"]),
            (
                16,
                &["warpgroup", "registers-warpgroup", "shared-warpgroup", "global-warpgroup", "role-regs", "alternate"],
            ),
            (12, &["warp", "registers-warp", "shared-warp", "global-warp", "reduce-by-warp"]),
            (12, &["warp-range", "warp-range-later"]),
            (18, &["parts", "parts-warp", "parts-range"]),
        ];
        let wanted: Vec<usize> = kinds.iter().filter(|k| self.wants(k.1)).map(|k| k.0).collect();
        // What several ways divide has several warps, and a warpgroup.
        let alternate = self.wants(&["alternate"]);
        let several =
            wanted.windows(2).any(|w| w[0] != w[1]) || !wanted.is_empty() && self.wants(&["role-regs", "alternate"]);
        let kind = match wanted.is_empty() {
            false => *self.rng.pick(&wanted),
            true if self.wants(&roles) => *self.rng.pick(&[4, 12, 12, 16]),
            true if self.wants(&["thread", "reduce-threads", "many-threads"]) => 4 + self.rng.below(19),
            true => self.rng.below(23),
        };
        let many = several || self.wants(&["warp-range-later"]);
        self.units = match kind {
            0..4 => Units::One,
            4..12 if self.wants(&roles) => Units::Threads(*self.rng.pick(&[32, 64, 128])),
            4..12 if self.wants(&["many-threads"]) => Units::Threads(*self.rng.pick(&[192, 256, 512, 1024])),
            4..12 => {
                let all = [2, 4, 8, 8, 16, 32, 32, 33, 64, 64, 128];
                let many = self.rng.chance(4);
                Units::Threads(*if many { self.rng.pick(&[192, 256, 512, 1024]) } else { self.rng.pick(&all) })
            }
            12..16 if several => Units::Warps(4),
            12..16 if many => Units::Warps(*self.rng.pick(&[2, 3, 4])),
            12..16 => Units::Warps(*self.rng.pick(&[1, 2, 2, 3, 4])),
            16..18 if alternate => Units::Groups(1),
            16..18 => Units::Groups(*self.rng.pick(&[1, 2])),
            18..21 if several => *self.rng.pick(&[Units::Parts(2, 64), Units::Parts(4, 32), Units::Parts(16, 8)]),
            18..21 => {
                let warps = self.chance(30, &["parts-warp"]);
                let of = if warps { *self.rng.pick(&[32, 64]) } else { *self.rng.pick(&[4, 8]) };
                Units::Parts(if warps { *self.rng.pick(&[2, 3, 4]) } else { *self.rng.pick(&[2, 3, 4, 8]) }, of)
            }
            _ => self.own(if several { &[4] } else { &[1, 2, 2, 4] }),
        };
    }

    fn own(&mut self, warps: &[i64]) -> Units {
        Units::Own(*self.rng.pick(&[Own::Column, Own::Column, Own::Half, Own::Pair]), *self.rng.pick(warps))
    }

    /// The same threads, divided as they are or in another way: stages of one kernel need not agree.
    pub(super) fn other_units(&mut self, units: Units) -> Units {
        let unit =
            ["own-unit", "warpgroup", "warp", "warp-range", "warp-range-later", "parts", "parts-warp", "parts-range"];
        let threads = units.threads();
        if threads == 1 || !self.chance(25, &unit) {
            return units;
        }
        let mut ways = vec![Units::Threads(threads)];
        if threads % 32 == 0 {
            ways.extend([Units::Warps(threads / 32), Units::Warps(threads / 32), self.own(&[threads / 32])]);
        }
        if threads % 128 == 0 {
            ways.push(Units::Groups(threads / 128));
        }
        let parts = [4, 8, 32, 64].into_iter().filter(|of| threads % of == 0 && threads > *of);
        ways.extend(parts.map(|of| Units::Parts(threads / of, of)));
        *self.rng.pick(&ways)
    }

    /// Splits that nobody needs, sizes that change nothing.
    pub(super) fn odd(&mut self, nest: &mut Nest, percent: u32) {
        if nest.loops.is_empty() || !self.chance(percent, &["resize", "resize-0", "split-by-1", "split-into"]) {
            return;
        }
        let at = self.rng.below(nest.loops.len());
        match self.rng.below(5) {
            0 => nest.split(at, 1, false),
            1 => nest.split(at, 1, true),
            2 | 3 => {
                let (l, r) = *self.rng.pick(&[(0, 0), (0, 0), (1, 0), (0, 2), (2, 1)]);
                let name = nest.name("r");
                nest.ops.push(format!("resize {} by ({l}, {r}) -> {name}", nest.loops[at].name));
                nest.loops[at].name = name;
                nest.loops[at].most = nest.loops[at].most.map(|m| m + l + r);
            }
            _ => nest.split(at, *self.rng.pick(&[2, 3, 5]), true),
        }
    }

    /// A loop that units can take, from the inside mostly.
    fn free(&mut self, nest: &Nest, may_reduce: bool) -> Option<usize> {
        let fit: Vec<usize> = (0..nest.loops.len())
            .filter(|n| nest.loops[*n].given == Given::Serial && (may_reduce || !nest.loops[*n].reduced))
            .filter(|n| !nest.loops[*n].inner || self.rng.chance(40))
            .collect();
        if self.rng.chance(75) { fit.last().copied() } else { (!fit.is_empty()).then(|| *self.rng.pick(&fit)) }
    }

    /// Gives loops to the threads of the block, or of what an instance belongs to.
    pub(super) fn give_threads(&mut self, nest: &mut Nest, units: Units, may_reduce: bool) {
        let may_reduce = may_reduce && (!nest.ordered || self.rng.chance(8));
        match units {
            Units::One => {}
            Units::Threads(n) => {
                let Some(at) = self.free(nest, may_reduce) else { return };
                let second = (0..at).rev().find(|a| nest.loops[*a].given == Given::Serial && !nest.loops[*a].reduced);
                match (self.rng.below(10), second) {
                    (0 | 1, Some(other)) if n % 4 == 0 => {
                        let rows = *self.rng.pick(&[2, 4]);
                        nest.split(at, n / rows, false);
                        nest.give(at + 1, Given::Thread, "thread");
                        nest.split(other, rows, false);
                        nest.give(other + 1, Given::Thread, "thread");
                    }
                    (2, _) if nest.loops[at].most.is_some_and(|m| m <= n) => nest.give(at, Given::Thread, "thread"),
                    (3, _) => {
                        nest.split(at, n, true);
                        nest.give(at, Given::Thread, "thread");
                    }
                    _ => {
                        nest.split(at, n, false);
                        nest.give(at + 1, Given::Thread, "thread");
                    }
                }
            }
            Units::Warps(n) => {
                let (range, count) = self.range("warp", n, &["warp-range", "warp-range-later"]);
                self.give_two(nest, (count, Given::Warp, &range), (32, Given::Thread, "thread"), may_reduce);
            }
            Units::Groups(n) => {
                self.give_two(nest, (n, Given::Group, "warpgroup"), (128, Given::Thread, "thread"), may_reduce);
            }
            Units::Parts(n, of) => {
                let unit = if of % 32 == 0 { format!("{} warp", of / 32) } else { format!("{of} thread") };
                let (range, count) = self.range(&unit, n, &["parts-range"]);
                self.give_two(nest, (count, Given::Group, &range), (of, Given::Thread, "thread"), may_reduce);
            }
            Units::Own(own, warps) => {
                let (threads, text) = (32 * warps, own.text());
                if !self.kernel.units.iter().any(|u| u == text) {
                    self.kernel.units.push(text.to_owned());
                }
                let name = own.name();
                match own {
                    Own::Column => {
                        // What is bound first is around: the columns.
                        self.give_two(nest, (32, Given::Group, name), (warps, Given::Warp, "warp"), may_reduce);
                    }
                    Own::Half => {
                        self.give_two(
                            nest,
                            (2, Given::Group, name),
                            (threads / 2, Given::Thread, "thread"),
                            may_reduce,
                        );
                    }
                    Own::Pair => {
                        self.give_two(
                            nest,
                            (threads / 2, Given::Group, name),
                            (2, Given::Thread, "thread"),
                            may_reduce,
                        );
                    }
                }
            }
        }
    }

    /// All of so many units, or some of them.
    fn range(&mut self, unit: &str, n: i64, features: &[&str]) -> (String, i64) {
        if !self.chance(15, features) {
            return (unit.to_owned(), n);
        }
        let first = if self.rng.chance(65) { self.rng.range(0, n - 1) } else { 0 };
        let end = self.rng.range(first + 1, n);
        (format!("{unit} {first}..{end}"), end - first)
    }

    /// Gives one loop to units, and one to units inside of these.
    fn give_two(
        &mut self,
        nest: &mut Nest,
        (n, given, unit): (i64, Given, &str),
        (inner, inside, part): (i64, Given, &str),
        may_reduce: bool,
    ) {
        let Some(at) = self.free(nest, may_reduce) else { return };
        nest.split(at, inner, false);
        nest.give(at + 1, inside, part);
        let other = (0..=at).filter(|a| nest.loops[*a].given == Given::Serial);
        let others: Vec<usize> = other.filter(|a| may_reduce || !nest.loops[*a].reduced).collect();
        if others.is_empty() {
            return;
        }
        let other = *self.rng.pick(&others);
        if self.rng.chance(25) {
            nest.split(other, n, true);
            nest.give(other, given, unit);
        } else {
            nest.split(other, n, false);
            nest.give(other + 1, given, unit);
        }
    }

    /// `reduce` for what of a reduction is given to units.
    pub(super) fn reduce(&mut self, nest: &mut Nest) {
        let of = |nest: &Nest, given: &[Given]| -> Vec<String> {
            let fit = nest.loops.iter().filter(|l| l.reduced && given.contains(&l.given));
            fit.map(|l: &Loop| l.name.clone()).collect()
        };
        let threads = of(nest, &[Given::Thread, Given::Warp, Given::Group]);
        if !threads.is_empty() && !self.rng.chance(2) {
            // Lanes of one warp, or all of a block.
            let lanes =
                nest.loops.iter().any(|l| l.reduced && l.given == Given::Thread && l.most.is_some_and(|m| m <= 32));
            let by = match self.rng.below(10) {
                _ if lanes && threads.len() == 1 && self.chance(25, &["reduce-by-warp"]) => " by warp",
                0 => " by warp",
                1 | 2 => " by cta",
                _ => "",
            };
            nest.ops.push(format!("reduce {}{by}", threads.join(", ")));
        }
        let blocks = of(nest, &[Given::Cta]);
        if !blocks.is_empty() {
            nest.ops.push(format!("reduce {} by cluster", blocks.join(", ")));
        }
        let grid = of(nest, &[Given::Grid]);
        if !grid.is_empty() {
            let atomic = if self.wants(&["reduce-grid"]) { 0 } else { 33 };
            let by = if self.chance(atomic, &["reduce-atomic"]) { "atomic" } else { "grid" };
            nest.ops.push(format!("reduce {} by {by}", grid.join(", ")));
        }
    }
}
