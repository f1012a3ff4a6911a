//! Outputs: loops of their own, or those of another output.

use super::nest::{Given, Loop, Nest, outer_first, reduces_alike, steps};
use super::{Plan, alike, plain};
use crate::compose::ast::{Equation, Type};
use crate::rng::Rng;

impl Plan<'_> {
    pub(super) fn output(&mut self, output: &Equation, number: usize) {
        let role = self.roles.as_ref().map(|_| "by math".to_owned());
        // Beside the first one, in its loops.
        let first_alike = number > 0 && alike(self.kernel, &self.nests[0].0, &plain(self.kernel, &output.name));
        if number > 0
            && self.chance(
                if first_alike { 75 } else { 6 },
                if first_alike { &["beside", "stage-of-beside", "beside-role"] } else { &[] },
            )
            && self.beside(output)
        {
            return;
        }
        let mut nest = self.nest_of(output);
        self.odd(&mut nest, 10);
        // A vector is the last part of the last axis.
        let vector = self.chance(20, &["vectorize"]) && nest.loops.last().is_some_and(|l| !l.reduced);
        let by = *self.rng.pick(&[2, 4, if self.kernel.ty == Type::F16 { 8 } else { 4 }]);
        let last = output.axes.last().map_or(1, |a| match a.1.as_size() {
            Some(size) => self.kernel.divides[size],
            None => a.1.plus,
        });
        let resized = nest.ops.iter().any(|op| op.starts_with("resize"));
        if vector && (last % by == 0 && !resized || self.rng.chance(6)) {
            let at = nest.loops.len() - 1;
            nest.split(at, by, false);
            nest.loops[at + 1].given = Given::Vector;
        }
        // Two that become one before anything else: parts of it go to blocks and threads.
        if self.chance(8, &["merge"]) {
            let alike = |n: &usize| {
                let (a, b) = (&nest.loops[*n], &nest.loops[n + 1]);
                a.given == Given::Serial && b.given == Given::Serial && a.reduced == b.reduced
            };
            let pair = (0..nest.loops.len().saturating_sub(1)).find(alike);
            pair.into_iter().for_each(|at| nest.merge(at));
        }
        for _ in 0..*self.rng.pick(&[0, 1, 1, 2]) {
            let at = self.rng.below(nest.loops.len());
            if nest.loops.get(at).is_some_and(|l| l.given == Given::Serial) {
                let (by, into) = (*self.rng.pick(&[1, 2, 2, 3, 4, 4, 8, 8, 16]), self.rng.chance(15));
                nest.split(at, by, into);
            }
        }
        if let Some(blocks) = self.cluster {
            let fit: Vec<usize> = (0..nest.loops.len())
                .filter(|n| nest.loops[*n].given == Given::Serial && !nest.loops[*n].inner)
                .filter(|n| !nest.ordered || !nest.loops[*n].reduced)
                .collect();
            if let Some(at) = fit.last() {
                let at = if self.rng.chance(60) { *at } else { *self.rng.pick(&fit) };
                let into = self.rng.chance(65);
                nest.split(at, blocks, into);
                nest.give(if into { at } else { at + 1 }, Given::Cta, "cta");
            }
        }
        self.give_threads(&mut nest, self.units, true);
        // An order: what is large outside, with some noise; then pairs that become one.
        let key = |l: &Loop, rng: &mut Rng| -> i64 {
            let key = match l.given {
                Given::Cta => 25,
                Given::Warp | Given::Group => 40,
                Given::Thread => 50,
                Given::Vector => 90,
                _ if l.inner && rng.chance(50) => 60,
                _ if l.inner => 30,
                _ if l.reduced => 35,
                _ => 10,
            };
            key + if l.given != Given::Vector && rng.chance(12) { rng.range(-30, 30) } else { 0 }
        };
        if self.rng.chance(85) {
            let keys: Vec<i64> = nest.loops.iter().map(|l| key(l, self.rng)).collect();
            let mut order: Vec<usize> = (0..nest.loops.len()).collect();
            order.sort_by_key(|n| keys[*n]);
            if self.rng.chance(88) {
                outer_first(nest.loops.as_slice(), &mut order);
            }
            nest.order(&order);
        }
        let pair = (0..nest.loops.len().saturating_sub(1)).find(|n| {
            let (a, b) = (&nest.loops[*n], &nest.loops[n + 1]);
            a.given == Given::Serial && b.given == Given::Serial && a.reduced == b.reduced && a.inner == b.inner
        });
        if let Some(at) = pair.filter(|_| self.chance(12, &["merge"])) {
            nest.merge(at);
        }
        self.swizzle(&mut nest);
        self.grid(&mut nest);
        self.unroll(&mut nest);
        self.reduce(&mut nest);
        self.push(output.name.clone(), String::new(), None, role.into_iter().collect(), nest.ops.clone(), &nest);
        self.nests.push((output.name.clone(), nest));
        self.around.push((output.name.clone(), Vec::new()));
    }

    /// An output in the loops of the first one; whether there are such.
    fn beside(&mut self, output: &Equation) -> bool {
        let (first, nest) = self.nests[0].clone();
        let outer: Vec<usize> = (0..nest.loops.len())
            .take_while(|n| matches!(nest.loops[*n].given, Given::Grid | Given::Serial | Given::Cta))
            .filter(|n| nest.loops[*n].given != Given::Cta)
            .collect();
        if outer.is_empty() {
            return false;
        }
        let place = *self.rng.pick(&outer);
        let own = self.nest_of(output);
        let mut ops = vec![format!("like {first}")];
        let reduced: Vec<&Loop> = own.loops.iter().filter(|l| l.reduced).collect();
        ops.extend(reduces_alike(&nest, &reduced));
        let same = self.kernel.equation(&first).is_some_and(|e| e.axes == output.axes) && reduced.is_empty();
        if same && !nest.loops.iter().any(|l| l.reduced) && self.rng.chance(50) {
            ops = nest.ops.clone();
        }
        let around = steps(&first, &nest, place);
        // What it is not like is its own: loops inside the place.
        let mut nest = nest;
        let inside = nest.loops.len() > place + 1;
        if inside && ops.len() > 1 && self.chance(20, &["stage-of-beside"]) {
            let fit = (place + 1..nest.loops.len()).find(|n| nest.loops[*n].given == Given::Serial);
            if let Some(at) = fit {
                nest.fresh += 20;
                let known = nest.ops.len();
                nest.split(at, *self.rng.pick(&[2, 3, 4]), false);
                ops.extend(nest.ops.drain(known..));
            }
        }
        let at = Some((first.clone(), nest.loops[place].name.clone()));
        let role = self.beside_role().map(|role| format!("by {role}"));
        self.push(output.name.clone(), String::new(), at, role.into_iter().collect(), ops, &nest);
        self.nests.push((output.name.clone(), nest));
        self.around.push((output.name.clone(), around));
        true
    }

    /// Elements of a small square change places.
    fn swizzle(&mut self, nest: &mut Nest) {
        if self.chance(15, &["swizzle"]) {
            let square = |l: &Loop| {
                l.given == Given::Serial
                    && l.inner
                    && l.roots.len() == 1
                    && l.most.is_some_and(|m| [2, 4, 8].contains(&m))
            };
            let fit: Vec<usize> = (0..nest.loops.len()).filter(|n| square(&nest.loops[*n])).collect();
            let other = |a: usize| fit.iter().copied().find(|b| *b != a && nest.loops[*b].most == nest.loops[a].most);
            if let Some((a, b)) = fit.iter().find_map(|a| other(*a).map(|b| (*a, b))) {
                let (x, y) = (nest.name("x"), nest.name("x"));
                let names = (nest.loops[a].name.clone(), nest.loops[b].name.clone());
                nest.ops.push(format!("swizzle {}, {} by xor -> {x}, {y}", names.0, names.1));
                let roots = nest.loops[a].roots.clone();
                nest.loops[a].name = x;
                nest.loops[b].name = y;
                nest.loops[b].roots.extend(roots);
            }
        }
    }

    /// The outermost loops go to blocks.
    fn grid(&mut self, nest: &mut Nest) {
        let raster = self.wants(&["raster"]);
        let most = match self.chance(82, &["grid", "raster", "persistent", "ring-grid", "reduce-grid", "reduce-atomic"])
        {
            true if raster => 2,
            true => *self.rng.pick(&[1, 1, 2]),
            false => 0,
        };
        let grid: Vec<usize> = (0..nest.loops.len())
            .take_while(|n| nest.loops[*n].given == Given::Serial)
            .filter(|n| !nest.loops[*n].inner)
            .filter(|n| !nest.loops[*n].reduced || !nest.ordered)
            .take(most)
            .collect();
        if !grid.is_empty() {
            let names: Vec<&str> = grid.iter().map(|n| nest.loops[*n].name.as_str()).collect();
            let mut orders = Vec::new();
            if grid.len() == 2 && self.chance(25, &["raster"]) {
                orders.push(format!("{}: {}", names[0], self.rng.pick(&[1, 2, 3, 8])));
            }
            if self.chance(15, &["descending"]) {
                let first = *self.rng.pick(&[0, grid.len() - 1]);
                orders.extend(names[first..].iter().map(|name| format!("{name}: descending")));
            }
            let raster = if orders.is_empty() { String::new() } else { format!(" raster({})", orders.join(", ")) };
            nest.ops.push(format!("bind {}: grid{raster}", names.join(", ")));
            grid.iter().for_each(|n| nest.loops[*n].given = Given::Grid);
        }
    }

    /// Vectors, and loops that are written out.
    fn unroll(&mut self, nest: &mut Nest) {
        let short = if self.wants(&["unroll"]) { 60 } else { 25 };
        let long = if self.wants(&["unroll-by"]) { 50 } else { 4 };
        for l in &mut nest.loops {
            match l.given {
                Given::Vector => nest.ops.push(format!("vectorize {}", l.name)),
                Given::Serial if l.most.is_some_and(|m| m <= 4) && self.rng.chance(short) => {
                    nest.ops.push(format!("unroll {}", l.name));
                    l.given = Given::Unrolled;
                }
                Given::Serial if self.rng.chance(long) => {
                    nest.ops.push(format!("unroll {} by {}", l.name, self.rng.pick(&[2, 3])));
                }
                _ => {}
            }
        }
    }
}
