//! Recognised ⇔ some mode of the accelerator gives every slot the offset that was written; by enumeration, with index
//! maps of its own.

use super::*;
use crate::plan::staged::{Boxed, TileAxis};
use crate::region::Interval;

/// A repeatable stream of choices.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

fn axis(parts: &[i128], first: usize) -> Axis {
    let tile =
        parts.iter().zip(first..).map(|(extent, n)| TileAxis { name: format!("t{n}"), extent: *extent }).collect();
    let boxed = Boxed {
        box_size: parts.iter().product(),
        element_stride: 1,
        coordinates: Vec::new(),
        tile,
        phase: None,
        striding: None,
        span: Span::UNKNOWN,
    };
    let region = Interval { start: Expr::constant(0), extent: boxed.box_size };
    let (size, stride, position) = (Expr::constant(1 << 20), Expr::constant(1), Expr::unknown());
    Axis { name: format!("a{first}"), size, stride, position, region, boxed, dims: Vec::new(), aliased: Vec::new() }
}

/// Axes of a tile and what was written of them.
struct Case {
    axes: Vec<Axis>,
    bytes: u32,
    ops: Vec<TileOp>,
    layout: Vec<String>,
    sugar: Swizzle,
    copies: i128,
}

/// The axes that ops make, with the coordinate of every slot along them; slots in the order of the TMA axes.
struct Slots {
    leaves: Vec<(String, i128, Vec<i128>)>,
}

impl Slots {
    fn new(axes: &[Axis]) -> Self {
        let parts: Vec<&TileAxis> = axes.iter().flat_map(|a| &a.boxed.tile).collect();
        let count: i128 = parts.iter().map(|p| p.extent).product();
        let mut below = count;
        let leaves = parts.iter().map(|part| {
            below /= part.extent;
            (part.name.clone(), part.extent, (0..count).map(|slot| slot / below % part.extent).collect())
        });
        Self { leaves: leaves.collect() }
    }

    fn take(&mut self, name: &str) -> (i128, Vec<i128>) {
        let at = self.leaves.iter().position(|l| l.0 == name).expect("it is a leaf");
        let (_, extent, values) = self.leaves.remove(at);
        (extent, values)
    }

    fn apply(&mut self, op: &TileOp) {
        let name = |n: usize| op.outputs[n].0.clone();
        match op.kind {
            TileOpKind::Split(side, factor) => {
                let (extent, values) = self.take(&op.inputs[0]);
                let other = (extent + factor - 1) / factor;
                let (outer, inner) = if side == SplitSide::Inner { (other, factor) } else { (factor, other) };
                self.leaves.push((name(0), outer, values.iter().map(|v| v / inner).collect()));
                self.leaves.push((name(1), inner, values.iter().map(|v| v % inner).collect()));
            }
            TileOpKind::Merge => {
                let (mut extent, mut values) = self.take(&op.inputs[0]);
                for next in &op.inputs[1..] {
                    let (size, digit) = self.take(next);
                    extent *= size;
                    values = values.iter().zip(&digit).map(|(v, d)| v * size + d).collect();
                }
                self.leaves.push((name(0), extent, values));
            }
            TileOpKind::Swizzle => {
                let ((extent, x), (_, y)) = (self.take(&op.inputs[0]), self.take(&op.inputs[1]));
                let moved = x.iter().zip(&y).map(|(x, y)| x ^ y).collect();
                self.leaves.push((name(0), extent, x));
                self.leaves.push((name(1), extent, moved));
            }
        }
    }

    /// The offset of every slot, and the elements of the whole layout.
    fn offsets(&self, layout: &[String]) -> (Vec<i128>, i128) {
        let mut offsets = vec![0; self.leaves[0].2.len()];
        let mut stride = 1;
        for name in layout.iter().rev() {
            let (_, extent, values) = self.leaves.iter().find(|l| l.0 == *name).expect("it is a leaf");
            offsets.iter_mut().zip(values).for_each(|(o, v)| *o += v * stride);
            stride *= extent;
        }
        (offsets, stride)
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let of = |rest: Vec<usize>| (0..=rest.len()).map(move |at| [&rest[..at], &[n - 1], &rest[at..]].concat());
    permutations(n - 1).into_iter().flat_map(of).collect()
}

impl Case {
    fn op(&mut self, kind: TileOpKind, inputs: &[&str], outputs: &[&str]) {
        let outputs = outputs.iter().map(|n| ((*n).to_owned(), Span::UNKNOWN)).collect();
        let inputs = inputs.iter().map(|n| (*n).to_owned()).collect();
        self.ops.push(TileOp { kind, inputs, outputs, span: Span::UNKNOWN });
    }

    /// Where the accelerator puts each slot, by the order of the map and the mode; slots in the order of the TMA axes.
    fn hardware(&self, order: &[usize], mode: Swizzle) -> Vec<i128> {
        let slots = Slots::new(&self.axes);
        let names: Vec<String> =
            order.iter().flat_map(|a| self.axes[*a].boxed.tile.iter().map(|t| t.name.clone())).collect();
        let moved = |offset: i128| i128::from(mode.apply(offset as u32 * self.bytes) / self.bytes);
        slots.offsets(&names).0.into_iter().map(moved).collect()
    }

    /// What was recognised, compared with enumeration.
    fn check(&self) -> Result<Recognised, Unrecognised> {
        let mut slots = Slots::new(&self.axes);
        self.ops.iter().for_each(|op| slots.apply(op));
        let (written, whole) = slots.offsets(&self.layout);
        let moved = |offset: i128| {
            let address = offset * i128::from(self.bytes);
            (address - address % 1024 + i128::from(self.sugar.apply((address % 1024) as u32))) / i128::from(self.bytes)
        };
        let written: Vec<i128> = written.into_iter().map(moved).collect();
        let pitch = |n: i128, mode: Swizzle| {
            (n * i128::from(self.bytes) + i128::from(mode.alignment()) - 1) / i128::from(mode.alignment())
        };
        let count = written.len() as i128;
        let last = self.axes.len() - 1;
        // The modes that rows of this length can have, and the one that was named.
        let row = self.axes[last].boxed.box_size * i128::from(self.bytes);
        let possible = |mode: Swizzle| mode == Swizzle::None || mode == self.sugar || i128::from(mode.span()) == row;
        let orders: Vec<Vec<usize>> =
            permutations(last).into_iter().map(|order| [order, vec![last]].concat()).collect();
        let agrees = |order: &[usize], mode: Swizzle| self.hardware(order, mode) == written;
        let fits: Vec<(Vec<usize>, Swizzle)> = orders
            .iter()
            .flat_map(|order| Swizzle::ALL.map(|mode| (order.clone(), mode)))
            .filter(|(order, mode)| agrees(order, *mode))
            .collect();
        let facts = Facts::new(&[], &[]).expect("there are none");
        let allocation = Allocation::new(&self.axes, &[], &self.ops, self.bytes, &facts).expect("the ops apply");
        let layout: Vec<&str> = self.layout.iter().map(String::as_str).collect();
        let found = allocation.recognise(&self.axes, &layout, self.sugar, self.copies);
        let shown = || {
            format!(
                "{:?} {:?} {:?} {:?}\n{:?}",
                self.axes.iter().map(|a| &a.boxed.tile).collect::<Vec<_>>(),
                self.bytes,
                self.ops,
                self.layout,
                found
            )
        };
        match &found {
            Ok(Recognised { order, swizzle }) => {
                assert!(agrees(order, *swizzle), "{}", shown());
                let follows = self.copies == 1 || pitch(whole, *swizzle) == pitch(count, *swizzle);
                assert!(follows || !possible(*swizzle), "{}", shown());
            }
            Err(Unrecognised::Gaps(splits)) => {
                let follows = |mode| self.copies == 1 || pitch(whole, mode) == pitch(count, mode);
                let whole_fits = |(_, mode): &(_, Swizzle)| possible(*mode) && follows(*mode);
                assert!(!splits.is_empty() && !fits.iter().any(whole_fits), "{}", shown());
            }
            Err(Unrecognised::Elsewhere(elsewhere, order)) => {
                assert!(fits.is_empty(), "{} but {fits:?}", shown());
                // Slots in the order of the map.
                let parts: Vec<&TileAxis> = order.iter().flat_map(|a| &self.axes[*a].boxed.tile).collect();
                let own = Slots::new(&self.axes);
                let key = |slot: usize| -> Vec<i128> {
                    let along =
                        |part: &&TileAxis| own.leaves.iter().find(|l| l.0 == part.name).map_or(0, |l| l.2[slot]);
                    parts.iter().map(along).collect()
                };
                let first = |mode: Swizzle| {
                    let hardware = self.hardware(order, mode);
                    let differing = (0..written.len()).filter(|s| hardware[*s] != written[*s]);
                    differing.min_by_key(|s| key(*s)).expect("no mode fits")
                };
                let nearest = elsewhere.modes[0].0;
                let slot = first(nearest);
                let named: Vec<(String, i128)> = parts.iter().map(|p| p.name.clone()).zip(key(slot)).collect();
                assert_eq!((elsewhere.slot.clone(), elsewhere.written), (named, written[slot]), "{}", shown());
                for (mode, offset) in &elsewhere.modes {
                    assert_eq!(*offset, self.hardware(order, *mode)[slot], "{}", shown());
                    assert!(key(first(*mode)) <= key(slot), "{}", shown());
                }
            }
            Err(other) => panic!("{other:?}: {}", shown()),
        }
        found
    }
}

/// A tile, and ops that are mostly those of a mode.
#[expect(clippy::too_many_lines, reason = "one draw after the other")]
fn case(draw: &mut Draw) -> Case {
    let bytes = draw.pick(&[1_u32, 2, 4, 8]);
    let chunk = i128::from(16 / bytes);
    let chunks: i128 = draw.pick(&[1, 2, 2, 3, 4, 4, 8, 8, 16]);
    let mut axes = Vec::new();
    let mut first = 0;
    for _ in 0..draw.below(4) {
        let mut parts = vec![draw.pick(&[1_i128, 2, 3, 4, 5, 6, 8, 8, 12, 16])];
        if draw.chance(25) {
            parts.push(draw.pick(&[2, 3, 4]));
        }
        let so_far: i128 = axes.iter().map(|a: &Axis| a.boxed.box_size).product();
        if so_far * parts.iter().product::<i128>() > 64 {
            break;
        }
        axes.push(axis(&parts, first));
        first += parts.len();
    }
    let inner = if draw.chance(20) && chunks % 2 == 0 { vec![2, chunks / 2 * chunk] } else { vec![chunks * chunk] };
    axes.push(axis(&inner, first));
    let mut case = Case { axes, bytes, ops: Vec::new(), layout: Vec::new(), sugar: Swizzle::None, copies: 1 };
    case.copies = draw.pick(&[1, 1, 3]);
    let mut leaves: Vec<(String, i128)> =
        case.axes.iter().flat_map(|a| a.boxed.tile.iter().map(|t| (t.name.clone(), t.extent))).collect();
    if draw.chance(20) {
        // Rows of the map in another order.
        let rows = case.axes.len() - 1;
        let order = draw.pick(&permutations(rows));
        let inner = case.axes[rows].boxed.tile.clone();
        let parts = order.iter().flat_map(|a| case.axes[*a].boxed.tile.clone()).chain(inner);
        leaves = parts.map(|t| (t.name, t.extent)).collect();
    }
    let mut made = 0;
    let mut name = || {
        made += 1;
        format!("m{made}")
    };
    let inner_parts = case.axes.last().map_or(1, |a| a.boxed.tile.len());
    if draw.chance(65) && leaves.len() > inner_parts {
        // As a mode is written, with mistakes.
        let rows: Vec<(String, i128)> = leaves.drain(..leaves.len() - inner_parts).collect();
        let row = match &rows[..] {
            [only] => only.0.clone(),
            _ => {
                let into = name();
                case.op(TileOpKind::Merge, &rows.iter().map(|r| r.0.as_str()).collect::<Vec<_>>(), &[&into]);
                into
            }
        };
        let column = match &leaves[..] {
            [only] => only.0.clone(),
            [a, b] => {
                let into = name();
                case.op(TileOpKind::Merge, &[&a.0, &b.0], &[&into]);
                into
            }
            _ => unreachable!("one or two parts"),
        };
        let side = if draw.chance(85) && [2, 4, 8].contains(&chunks) { chunks } else { draw.pick(&[2, 4, 8]) };
        let period = if draw.chance(85) { 8 } else { draw.pick(&[2, 4, 16]) };
        let (periods, eight) = (name(), name());
        case.op(TileOpKind::Split(SplitSide::Inner, period), &[&row], &[&periods, &eight]);
        let (x, same) = (name(), name());
        let kind = if draw.chance(50) {
            TileOpKind::Split(SplitSide::Outer, side)
        } else {
            TileOpKind::Split(SplitSide::Inner, (8 / side).max(1))
        };
        case.op(kind, &[&eight], &[&x, &same]);
        let x_extent = if kind == TileOpKind::Split(SplitSide::Outer, side) {
            side
        } else {
            (period + (8 / side).max(1) - 1) / (8 / side).max(1)
        };
        let (c, lane) = (name(), name());
        let unit = if draw.chance(90) { chunk } else { draw.pick(&[1, 2, 4]) };
        case.op(TileOpKind::Split(SplitSide::Inner, unit), &[&column], &[&c, &lane]);
        let c_extent = (chunks * chunk + unit - 1) / unit;
        let mut order = vec![periods, x.clone(), same, c.clone(), lane];
        if x_extent == c_extent && x_extent & (x_extent - 1) == 0 {
            let (x2, c2) = (name(), name());
            let (inputs, outputs) = if draw.chance(90) { ([&x, &c], [&x2, &c2]) } else { ([&c, &x], [&c2, &x2]) };
            case.op(TileOpKind::Swizzle, &inputs.map(String::as_str), &outputs.map(String::as_str));
            (order[1], order[3]) = (x2, c2);
            if draw.chance(10) {
                let (x3, c3) = (name(), name());
                case.op(TileOpKind::Swizzle, &[&order[1].clone(), &order[3].clone()], &[&x3, &c3]);
                (order[1], order[3]) = (x3, c3);
            }
        }
        if draw.chance(20) {
            let (a, b) = (draw.below(5), draw.below(5));
            order.swap(a, b);
        }
        if draw.chance(20) {
            let into = name();
            case.op(TileOpKind::Merge, &[&order[0].clone(), &order[1].clone()], &[&into]);
            order.splice(0..2, [into]);
        }
        case.layout = order;
        return case;
    }
    for _ in 0..draw.below(5) {
        let at = draw.below(leaves.len());
        match draw.below(3) {
            0 => {
                let (of, extent) = leaves[at].clone();
                let divisors: Vec<i128> = (1..=extent).filter(|f| extent % f == 0).collect();
                let factor = if draw.chance(85) { draw.pick(&divisors) } else { 1 + draw.below(9) as i128 };
                let (a, b) = (name(), name());
                let outer = (extent + factor - 1) / factor;
                case.op(TileOpKind::Split(SplitSide::Inner, factor), &[&of], &[&a, &b]);
                leaves.splice(at..=at, [(a, outer), (b, factor)]);
            }
            1 if at + 1 < leaves.len() => {
                let ((a, m), (b, n)) = (leaves[at].clone(), leaves[at + 1].clone());
                let into = name();
                case.op(TileOpKind::Merge, &[&a, &b], &[&into]);
                leaves.splice(at..=at + 1, [(into, m * n)]);
            }
            _ => {
                let other = draw.below(leaves.len());
                let ((a, m), (b, n)) = (leaves[at].clone(), leaves[other].clone());
                if at != other && m == n && m & (m - 1) == 0 {
                    let (x, y) = (name(), name());
                    case.op(TileOpKind::Swizzle, &[&a, &b], &[&x, &y]);
                    leaves[at].0 = x;
                    leaves[other].0 = y;
                }
            }
        }
    }
    if draw.chance(25) && !case.ops.iter().any(|op| op.kind == TileOpKind::Swizzle) {
        case.sugar = draw.pick(&Swizzle::ALL);
    }
    if draw.chance(50) {
        let (a, b) = (draw.below(leaves.len()), draw.below(leaves.len()));
        leaves.swap(a, b);
    }
    case.layout = leaves.into_iter().map(|l| l.0).collect();
    case
}

#[test]
fn what_is_recognised_is_what_the_accelerator_does() {
    let mut draw = Draw(5);
    let (mut modes, mut gaps, mut elsewhere) = ([0; 4], 0, 0);
    for _ in 0..4000 {
        match case(&mut draw).check() {
            Ok(found) => modes[Swizzle::ALL.iter().position(|m| *m == found.swizzle).expect("it is one of them")] += 1,
            Err(Unrecognised::Gaps(_)) => gaps += 1,
            Err(_) => elsewhere += 1,
        }
    }
    println!("{modes:?} gaps {gaps} elsewhere {elsewhere}");
    assert!(modes.iter().all(|n| *n > 200) && gaps > 200 && elsewhere > 400, "{modes:?} {gaps} {elsewhere}");
}

/// A tile that takes too long to compare is refused, at once.
#[test]
fn what_takes_too_long_is_not_compared() {
    let several = |parts: usize| {
        let mut axes = vec![axis(&vec![1; parts], 0), axis(&[256], parts), axis(&[256], parts + 1)];
        axes[0].boxed.tile[0].extent = 3;
        axes[0].boxed.box_size = 3;
        let mut case = Case { axes, bytes: 1, ops: Vec::new(), layout: Vec::new(), sugar: Swizzle::None, copies: 1 };
        let names: Vec<String> = (0..parts + 2).map(|n| format!("t{n}")).collect();
        case.op(TileOpKind::Merge, &names.iter().map(String::as_str).collect::<Vec<_>>(), &["all"]);
        let facts = Facts::new(&[], &[]).expect("there are none");
        let allocation = Allocation::new(&case.axes, &[], &case.ops, 1, &facts).expect("the ops apply");
        allocation.recognise(&case.axes, &["all"], Swizzle::None, 1)
    };
    assert_eq!(several(2), Ok(Recognised { order: vec![0, 1, 2], swizzle: Swizzle::None }));
    assert_eq!(several(400), Err(Unrecognised::TooLong));
}

/// Rows in groups of 16 that have room for 18: the first group is as it should be, and none after it.
#[test]
fn a_period_is_one_of_the_splits_too() {
    let mut case = Case {
        axes: vec![axis(&[40], 0), axis(&[32], 1)],
        bytes: 4,
        ops: Vec::new(),
        layout: ["groups", "threes", "one", "t1"].map(str::to_owned).to_vec(),
        sugar: Swizzle::None,
        copies: 1,
    };
    case.op(TileOpKind::Split(SplitSide::Inner, 16), &["t0"], &["groups", "group"]);
    case.op(TileOpKind::Split(SplitSide::Inner, 3), &["group"], &["threes", "one"]);
    assert!(matches!(case.check(), Err(Unrecognised::Gaps(splits)) if splits.len() == 2));
}
