//! Where readers look is where copies write, slot by slot; and what is sent out of bounds has no live slot.

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Binary;
use tilewright_kernel::tensor_map::{Format, Promotion, Swizzle};

use super::*;
use crate::domain::Unit;
use crate::extent::{Expr, Family};
use crate::kernel_ir::{IndexOp, Kernel, Op, RegionId, Signature, StatementKind};
use crate::plan::staged::{Boxed, NotRuns};
use crate::region::Interval;
use crate::schedule::Attach;

/// Which tile of an instance, along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    /// Number of its box.
    number: i128,
    /// Its phase.
    phase: i128,
}

/// The place of an instance that stands in the block.
fn block() -> Attach {
    Attach { stage: 0, leaf: 0, loops: 0, around: Vec::new(), iterations: Vec::new(), owner: Unit::Cta }
}

impl Tile {
    /// Where it starts, from the start of the region.
    fn offset(self, axis: &Axis) -> i128 {
        self.number * axis.boxed.box_size + self.phase
    }
}

/// The box and phase of each tile along each axis, in the order of the buffer.
fn tiles(staged: &Staged) -> Vec<Vec<Tile>> {
    let mut tiles: Vec<Vec<Tile>> = vec![vec![Tile { number: 0, phase: 0 }; staged.axes.len()]];
    for (axis, part) in &staged.outer {
        let moved = |tile: &Vec<Tile>, n: i128| {
            let mut tile = tile.clone();
            match part {
                Part::Box => tile[*axis].number = n,
                _ => tile[*axis].phase = n,
            }
            tile
        };
        let count = staged.axes[*axis].count(*part);
        tiles = tiles.iter().flat_map(|tile| (0..count).map(move |n| moved(tile, n))).collect();
    }
    tiles
}

fn axis(extent: i128, box_size: i128, element_stride: i128) -> Axis {
    let boxed = Boxed {
        box_size,
        element_stride,
        coordinates: Vec::new(),
        tile: Vec::new(),
        phase: None,
        striding: None,
        span: crate::source::Span::token(crate::source::SpanId(0)),
    };
    let region = Interval { start: Expr::constant(0), extent };
    let (dims, aliased) = (Vec::new(), Vec::new());
    let (size, stride) = (Expr::constant(1000), Expr::constant(1));
    Axis { name: String::new(), size, stride, position: Expr::unknown(), region, boxed, dims, aliased }
}

fn builder() -> Builder {
    Builder::new(Signature {
        name: "k".to_owned(),
        parameters: Vec::new(),
        dims: Vec::new(),
        maps: Vec::new(),
        arguments: Vec::new(),
        threads: 32,
        cluster: 1,
    })
}

/// Copies every tile slot by slot, as the accelerator does, and then looks for every element of the region where its
/// reader would.
fn check(staged: &Staged) {
    let bytes = staged.element.bytes();
    let mut buffer: BTreeMap<i128, Vec<i128>> = BTreeMap::new();
    let tiles = tiles(staged);
    assert_eq!(tiles.len() as i128, staged.tile_count());
    for (number, start) in tiles.iter().enumerate() {
        let slots: i128 = staged.axes.iter().map(Axis::tile).product();
        for slot in 0..slots {
            let mut rest = slot;
            let mut position: Vec<i128> = start.iter().zip(&staged.axes).map(|(at, axis)| at.offset(axis)).collect();
            for (d, axis) in staged.axes.iter().enumerate().rev() {
                position[d] += rest % axis.tile() * axis.boxed.element_stride;
                rest /= axis.tile();
            }
            let address = (number as i128 * staged.pitch() + slot) as u32 * bytes;
            let swizzled = staged.swizzle.apply(address) / bytes;
            assert!(buffer.insert(i128::from(swizzled), position).is_none());
            assert!(i128::from(swizzled) < staged.elements());
        }
    }
    let mut b = builder();
    let starts: Vec<ValueId> = (0..staged.axes.len()).map(|d| b.index_literal(Type::I32, 100 * d as i64 - 3)).collect();
    let slot = b.index_literal(Type::I32, 0);
    let held = Held { staged, buffer: BufferId(0), slot, base: None, starts };
    let region: i128 = staged.axes.iter().map(|a| a.region.extent).product();
    for n in 0..region {
        let (mut rest, mut wanted) = (n, vec![0; staged.axes.len()]);
        for (d, axis) in staged.axes.iter().enumerate().rev() {
            wanted[d] = rest % axis.region.extent;
            rest /= axis.region.extent;
        }
        let indices: Vec<ValueId> = (wanted.iter().enumerate())
            .map(|(d, at)| b.index_literal(Type::I32, *at as i64 + 100 * d as i64 - 3))
            .collect();
        let offset = held.offset(&mut b, &indices, Type::I32);
        let offset = b.kernel().index_literal(offset).expect("literals fold");
        assert_eq!(buffer.get(&i128::from(offset)), Some(&wanted), "{staged:?}");
    }
}

#[test]
fn readers_look_where_copies_write() {
    let mut state = 5u64;
    let mut next = |first: i128, last: i128| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        first + i128::from(state >> 33) % (last - first + 1)
    };
    for _ in 0..400 {
        let element = [ElementType::F16, ElementType::F32, ElementType::F64, ElementType::U8][next(0, 3) as usize];
        let swizzle = Swizzle::ALL[next(0, 3) as usize];
        let rank = next(1, 4);
        let mut axes: Vec<Axis> = (1..rank).map(|_| axis(next(1, 7), next(1, 5), next(1, 3))).collect();
        let widest = if swizzle == Swizzle::None { 4 } else { i128::from(swizzle.span()) / 16 };
        let inner = i128::from(16 / element.bytes()) * next(1, widest);
        axes.push(axis(next(1, 2 * inner), inner, 1));
        for (d, axis) in axes.iter_mut().enumerate() {
            axis.position = Family::PLACEHOLDER.expr(d);
        }
        // A swizzled row spans all chunks.
        if swizzle != Swizzle::None && inner * i128::from(element.bytes()) != i128::from(swizzle.span()) {
            continue;
        }
        let format = Format::of(element);
        let mut outer = Staged::natural(axes.len());
        let turn = next(0, outer.len() as i128 - 1) as usize;
        outer.rotate_left(turn);
        let (name, layout) = (String::new(), None);
        let (way, ring, redirect) = (Way::Load, 1, false);
        check(&Staged {
            name,
            way,
            ring,
            redirect,
            any: false,
            role: None,
            serves: None,
            parameter: 0,
            element,
            format,
            attach: block(),
            axes,
            form: Form::Tiles(NotRuns::Swizzled),
            swizzle,
            outer,
            layout,
            promotion: Promotion::None,
            evict: None,
            multicast: None,
            memory: Vec::new(),
        });
    }
}

/// The copies of an instance that starts at `start`: where each lies in the buffer, and where it starts in the tensor,
/// outermost first.
fn issued(staged: &Staged, start: &[i128]) -> Vec<(i128, Vec<i128>)> {
    let mut b = builder();
    let copy = Copy::new(&mut b, staged, 0, (None, &[], None), (Type::I32, staged.bytes()));
    let start: Vec<ValueId> = start.iter().map(|x| b.index_literal(Type::I32, *x as i64)).collect();
    let slot = b.index_literal(Type::I32, 0);
    copy.start(&mut b, &Corners { starts: start, listed: None }, slot);
    let mut found = Vec::new();
    run(b.kernel(), Kernel::BODY, &mut BTreeMap::new(), &mut found);
    found
}

/// Runs a region: where each of its tiles starts in the tensor, outermost first, after where it lies in the buffer.
fn run(kernel: &Kernel, region: RegionId, loops: &mut BTreeMap<ValueId, i128>, found: &mut Vec<(i128, Vec<i128>)>) {
    for statement in &kernel.region(region).statements {
        match &statement.kind {
            StatementKind::BulkCopy(BulkCopy { part: TensorPart::Tile { start, .. }, offset, .. }) => {
                let start = start.iter().rev().map(|v| value(kernel, *v, loops)).collect();
                found.push((value(kernel, *offset, loops), start));
            }
            StatementKind::Loop(l) => {
                for n in 0..value(kernel, l.count, loops) {
                    loops.insert(l.index, n);
                    run(kernel, l.body, loops, found);
                }
            }
            _ => {}
        }
    }
}

/// A value, given the indices of loops; predicates are 0 and 1.
fn value(kernel: &Kernel, id: ValueId, loops: &BTreeMap<ValueId, i128>) -> i128 {
    let of = |id: ValueId| value(kernel, id, loops);
    match kernel.value(id).op {
        Op::Literal(bits) => i128::from(bits as i64),
        Op::LoopIndex => loops[&id],
        Op::ConvertIndex(a) => of(a),
        Op::Index(op, a, b) => {
            let (a, b) = (of(a), of(b));
            match op {
                IndexOp::Add => a + b,
                IndexOp::Sub => a - b,
                IndexOp::Mul => a * b,
                IndexOp::Div => a.div_euclid(b),
                IndexOp::Mod => a.rem_euclid(b),
                IndexOp::Min => a.min(b),
                IndexOp::Max => a.max(b),
                IndexOp::And => a & b,
                IndexOp::Xor => a ^ b,
            }
        }
        Op::CompareIndex(Compare::Lt, a, b) => i128::from(of(a) < of(b)),
        Op::Binary(Binary::And, a, b) => of(a) & of(b),
        Op::Select(condition, a, b) => of(if of(condition) == 1 { a } else { b }),
        other => panic!("{other:?} is in no copy"),
    }
}

/// Theorem G's level 2, against the definition: after redirection no slot that was not asked for holds an element, and
/// every slot that was asked for and lies in the tensor holds its own, wherever a region starts and however many boxes
/// it has, in two dimensions.
#[test]
fn redirected_copies_have_no_live_slot() {
    let mut state = 17u64;
    let mut next = |first: i128, last: i128| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        first + i128::from(state >> 33) % (last - first + 1)
    };
    let (mut levels, mut moved, mut looped) = ([0; 3], 0, 0);
    for _ in 0..6000 {
        let mut axes = Vec::new();
        for d in 0..2 {
            let (box_size, e) = (next(1, 7), if d == 0 { next(1, 8) } else { next(1, 2) });
            let mut axis = axis(next(1, 9), box_size, e);
            axis.size = Expr::constant(next(1, 12));
            axis.position = Family::PLACEHOLDER.expr(d);
            axes.push(axis);
        }
        let start: Vec<i128> = axes.iter().map(|_| next(-9, 12)).collect();
        let staged = Staged {
            name: String::new(),
            way: Way::Load,
            ring: 1,
            redirect: true,
            any: false,
            role: None,
            serves: None,
            parameter: 0,
            element: ElementType::F32,
            format: Format::of(ElementType::F32),
            attach: block(),
            outer: Staged::natural(2),
            axes,
            form: Form::Tiles(NotRuns::Swizzled),
            swizzle: Swizzle::None,
            layout: None,
            promotion: Promotion::None,
            evict: None,
            multicast: None,
            memory: Vec::new(),
        };
        // The level by definition, for this one instance.
        let copies = |tile: &[Tile]| -> Vec<crate::tma::slots::Copy> {
            let axes = staged.axes.iter().zip(tile).zip(&start);
            axes.map(|((axis, at), x)| {
                let before = at.number * axis.boxed.box_size;
                crate::tma::slots::Copy {
                    size: axis.size.as_constant().expect("a literal"),
                    box_size: axis.boxed.box_size,
                    element_stride: axis.boxed.element_stride,
                    start: x + before,
                    live: (axis.region.extent - before).min(axis.boxed.box_size),
                }
            })
            .collect()
        };
        let tiles = tiles(&staged);
        let contents: Vec<_> = tiles
            .iter()
            .map(|tile| {
                let phases: Vec<i128> = tile.iter().map(|at| at.phase).collect();
                crate::tma::slots::content(&copies(tile), &phases)
            })
            .collect();
        let level =
            if contents.iter().any(|c| c.live && c.hole) { 2 } else { usize::from(contents.iter().any(|c| c.hole)) };
        levels[level] += 1;
        let issued = issued(&staged, &start);
        assert_eq!(issued.len(), tiles.len());
        looped += u32::from(tiles.len() as i128 > WRITTEN_OUT);
        for (number, (((offset, at), tile), content)) in issued.iter().zip(&tiles).zip(&contents).enumerate() {
            assert_eq!(*offset, number as i128 * staged.pitch());
            let own: Vec<i128> =
                staged.axes.iter().zip(tile).zip(&start).map(|((axis, t), x)| x + t.offset(axis)).collect();
            let stays = *at == own;
            moved += u32::from(!stays);
            assert!(stays || !content.live, "a live slot of {staged:?} at {start:?} is lost");
            // Every slot of what was issued, as the accelerator fills it.
            let holds = |x: i128, axis: &Axis| {
                (0..axis.tile()).any(|t| {
                    (0..axis.size.as_constant().expect("a literal")).contains(&(x + t * axis.boxed.element_stride))
                })
            };
            let something = at.iter().zip(&staged.axes).all(|(x, axis)| holds(*x, axis));
            assert!(!something || content.live, "a hole of {staged:?} at {start:?} holds an element");
        }
    }
    assert!(levels.iter().all(|n| *n > 300) && moved > 1000 && looped > 1000, "{levels:?} {moved} {looped}");
}
