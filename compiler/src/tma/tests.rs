//! The theorems against enumeration, and what would go wrong without each of their parts.

use super::reach::Integer;
use super::slots::{Content, Copy, Slot, content};
use super::{Level, Reach, level};
use crate::extent::{Expr, System};

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: i128) -> i128 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i128::from(self.0 >> 33) % bound
    }

    fn within(&mut self, first: i128, last: i128) -> i128 {
        first + self.below(last - first + 1)
    }
}

fn numbers(copy: &Copy) -> Reach<i128> {
    let Copy { size, box_size, element_stride, start, live } = *copy;
    Reach { size, box_size, element_stride, start, live }
}

fn symbols(copy: &Copy) -> Reach<Expr> {
    let Copy { size, box_size, element_stride, start, live } = *copy;
    let constant = <Expr as Integer>::constant;
    Reach { size: constant(size), box_size, element_stride, start: constant(start), live: constant(live) }
}

fn hold(conditions: &[i128]) -> bool {
    conditions.iter().all(|c| *c >= 0)
}

/// Every copy with S, B ≤ `most`, e ≤ 8, any live length, and every start from wholly before the tensor to wholly after
/// it.
fn each_copy(most: i128, mut visit: impl FnMut(Copy)) {
    for size in 1..=most {
        for box_size in 1..=most {
            for element_stride in 1..=8 {
                for start in -box_size - element_stride..=size {
                    for live in 1..=box_size {
                        visit(Copy { size, box_size, element_stride, start, live });
                    }
                }
            }
        }
    }
}

/// What the phases of a copy hold: (some phase is inside, has a live slot, has a hole with an element, has both).
fn by_definition(copy: &Copy) -> [bool; 4] {
    let mut found = [false; 4];
    for phase in 0..copy.element_stride {
        let Content { live, hole } = content(std::slice::from_ref(copy), &[phase]);
        found = [found[0] | live | hole, found[1] | live, found[2] | hole, found[3] | (live && hole)];
    }
    found
}

#[test]
fn theorem_g_and_its_parts_are_exact() {
    each_copy(24, |copy| {
        let reach = numbers(&copy);
        let formulas = [reach.inside(), reach.live(), reach.holes(), reach.mixed()];
        assert_eq!(formulas.map(|f| hold(&f)), by_definition(&copy), "{copy:?}");
    });
}

#[test]
fn no_condition_is_redundant() {
    // How often each formula is wrong without one of its conditions.
    let mut wrong: Vec<Vec<u32>> = vec![Vec::new(); 4];
    each_copy(12, |copy| {
        let reach = numbers(&copy);
        let truth = by_definition(&copy);
        for (of, conditions) in [reach.inside(), reach.live(), reach.holes(), reach.mixed()].iter().enumerate() {
            wrong[of].resize(conditions.len(), 0);
            for (dropped, count) in wrong[of].iter_mut().enumerate() {
                let rest = conditions.iter().enumerate().filter(|(i, _)| *i != dropped);
                let rest: Vec<i128> = rest.map(|(_, c)| *c).collect();
                *count += u32::from(hold(&rest) != truth[of]);
            }
        }
    });
    assert_eq!(wrong.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 3, 7]);
    assert!(wrong.iter().flatten().all(|w| *w > 0), "{wrong:?}");
}

/// The true level of some copies: enumerated over phases.
fn true_level(copies: &[Vec<Copy>]) -> Level {
    let mut worst = Level::Free;
    for dimensions in copies {
        let mut phases = vec![0; dimensions.len()];
        loop {
            worst = worst.max(match content(dimensions, &phases) {
                Content { live: true, hole: true } => Level::Impossible,
                Content { hole: true, .. } => Level::Redirect,
                Content { .. } => Level::Free,
            });
            let Some(at) = (0..phases.len()).rev().find(|i| phases[*i] + 1 < dimensions[*i].element_stride) else {
                break;
            };
            phases[at] += 1;
            phases[at + 1..].fill(0);
        }
    }
    worst
}

/// Boxes that start at multiples of the box size and are live throughout: Theorem 6 of the document.
#[test]
fn aligned_whole_boxes_obey_the_fundamental_theorem() {
    for size in 1..25 {
        for box_size in 1..25 {
            for element_stride in 1..9 {
                let copies: Vec<Vec<Copy>> = (0..(size + box_size - 1) / box_size)
                    .map(|c| vec![Copy { size, box_size, element_stride, start: c * box_size, live: box_size }])
                    .collect();
                let fttc = element_stride < box_size && box_size < size && box_size % element_stride != 0;
                let found = true_level(&copies);
                assert_eq!(found == Level::Impossible, fttc, "S {size}, B {box_size}, e {element_stride}");
                // Holes of level 2 need a stride beyond the box and a second box.
                let redirect = element_stride > box_size && box_size < size;
                assert_eq!(found == Level::Redirect, redirect, "S {size}, B {box_size}, e {element_stride}");
            }
        }
    }
}

/// The theorem for aligned boxes, applied to boxes that start elsewhere, is wrong both ways.
#[test]
fn the_fundamental_theorem_does_not_speak_of_other_boxes() {
    let fttc = |c: &Copy| c.element_stride < c.box_size && c.box_size < c.size && c.box_size % c.element_stride != 0;
    let accepted_falsely = Copy { size: 3, box_size: 3, element_stride: 2, start: -1, live: 3 };
    assert!(!fttc(&accepted_falsely) && by_definition(&accepted_falsely)[3]);
    let mut refused_falsely = 0;
    each_copy(8, |copy| refused_falsely += u32::from(fttc(&copy) && !by_definition(&copy)[3]));
    assert!(refused_falsely > 0);
}

fn random_copy(random: &mut Random, most: i128) -> Copy {
    let (size, box_size) = (random.within(1, most), random.within(1, most));
    let element_stride = random.within(1, 5);
    Copy {
        size,
        box_size,
        element_stride,
        start: random.within(-box_size - element_stride, size),
        live: random.within(1, box_size),
    }
}

#[test]
fn levels_of_several_dimensions_are_exact_for_numbers() {
    let mut random = Random(7);
    let mut seen = [0; 3];
    for _ in 0..20_000 {
        let rank = random.within(1, 3);
        let copies: Vec<Copy> = (0..rank).map(|_| random_copy(&mut random, 9)).collect();
        let symbolic: Vec<Reach<Expr>> = copies.iter().map(symbols).collect();
        let found = level(&System::new(), &symbolic);
        assert_eq!(found, true_level(std::slice::from_ref(&copies)), "{copies:?}");
        seen[found as usize] += 1;
    }
    assert!(seen.iter().all(|n| *n > 500), "{seen:?}");
}

/// A tensor of S elements, known to lie between two bounds, read in regions of R that start at multiples of a step,
/// some before the tensor; each region is cut into boxes. What is proved for all sizes holds for each of them.
#[test]
fn levels_of_symbolic_sizes_are_sound() {
    let (size_var, region_var, box_var) = (0, 1, 2);
    let mut random = Random(11);
    let (mut exact, mut coarse) = (0, 0);
    for _ in 0..1500 {
        let (box_size, element_stride) = (random.within(1, 8), random.within(1, 4));
        let (least, spread) = (random.within(1, 8), random.below(6));
        let (region, halo) = (random.within(1, 10), random.below(3));
        let step = random.within(1, region);
        let most = least + spread;
        let regions = random.within(1, 4);
        let boxes = (region + box_size - 1) / box_size;
        // x = region·step − halo + box·B, L = min(B, R − box·B).
        let origin = Expr::var(region_var).scale(step).sub(&Expr::constant(halo));
        let start = origin.add(&Expr::var(box_var).scale(box_size));
        let mut reachable = System::new();
        for (var, first, last) in [(size_var, least, most), (region_var, 0, regions - 1), (box_var, 0, boxes - 1)] {
            reachable.at_least(var, first);
            reachable.require(&Expr::constant(last).sub(&Expr::var(var)));
        }
        let rest = Expr::constant(region).sub(&Expr::var(box_var).scale(box_size));
        let whole = Expr::constant(box_size);
        // The minimum is one of its two operands; the worse of both cases counts.
        let proved = [(&whole, &rest), (&rest, &whole)].map(|(live, other)| {
            let mut reachable = reachable.clone();
            reachable.require(&other.sub(live));
            let size = Expr::var(size_var);
            level(&reachable, &[Reach { size, box_size, element_stride, start: start.clone(), live: live.clone() }])
        });
        let proved = proved[0].max(proved[1]);
        let mut copies = Vec::new();
        for size in least..=most {
            for r in 0..regions {
                for c in 0..boxes {
                    let start = r * step - halo + c * box_size;
                    let live = box_size.min(region - c * box_size);
                    copies.push(vec![Copy { size, box_size, element_stride, start, live }]);
                }
            }
        }
        let truth = true_level(&copies);
        assert!(proved >= truth, "proved {proved:?}, true {truth:?}: B {box_size} e {element_stride}");
        if proved == truth { exact += 1 } else { coarse += 1 }
    }
    assert!(coarse * 50 < exact, "{coarse} of {exact} could not be proved");
}

/// For a fixed start the conditions only get easier to meet as the tensor grows: the largest admissible size decides.
#[test]
fn the_largest_size_is_the_worst() {
    each_copy(10, |copy| {
        let larger = Copy { size: copy.size + 1, ..copy };
        let (now, then) = (by_definition(&copy), by_definition(&larger));
        for part in 0..4 {
            assert!(now[part] <= then[part], "{copy:?}");
        }
    });
}

/// A copy without a live slot is sent to −B, where every phase but one that is added again lies before the tensor.
#[test]
fn redirected_copies_hold_zeros_only() {
    let mut phase_matters = false;
    each_copy(9, |copy| {
        let redirected = Copy { start: -copy.box_size, ..copy };
        assert!(redirected.slots(0).all(|slot| slot == Slot::Outside), "{copy:?}");
        for phase in 1..copy.element_stride {
            phase_matters |= redirected.slots(phase).any(|slot| slot != Slot::Outside);
        }
    });
    assert!(phase_matters, "−B with the phase added would do as well");
}

/// Coordinates that move together: each dimension alone could mix, never while the other one is live.
#[test]
fn dimensions_are_judged_jointly() {
    let (i, size) = (0, <Expr as Integer>::constant(8));
    let mut reachable = System::new();
    reachable.at_least(i, 0);
    reachable.require(&Expr::constant(1).sub(&Expr::var(i)));
    // At i = 0 the first dimension mixes and the second lies outside; at i = 1 the first lies outside.
    let first = Reach {
        size: size.clone(),
        box_size: 4,
        element_stride: 3,
        start: Expr::var(i).scale(8),
        live: Expr::constant(4),
    };
    let second = Reach {
        size,
        box_size: 4,
        element_stride: 1,
        start: Expr::var(i).scale(8).sub(&Expr::constant(8)),
        live: Expr::constant(4),
    };
    assert_eq!(level(&reachable, std::slice::from_ref(&first)), Level::Impossible);
    assert_eq!(level(&reachable, &[first, second]), Level::Free);
}

/// The figures of "TMA Modeling in Depth": the positions that the slots of each copy hold.
#[test]
fn the_document_s_figures() {
    let copies = |size, box_size, element_stride| -> Vec<Vec<Copy>> {
        let boxes = 0..(size + box_size - 1) / box_size;
        boxes.map(|c| vec![Copy { size, box_size, element_stride, start: c * box_size, live: box_size }]).collect()
    };
    use Slot::{Hole, Live, Outside};
    // Figure 5 and 6: 8 rows in boxes of 4 with stride 3; rows 4 and 5 of the first box are holes with elements.
    let phases: Vec<Vec<Slot>> = (0..3).map(|phase| copies(8, 4, 3)[0][0].slots(phase).collect()).collect();
    assert_eq!(phases, [[Live, Live], [Live, Hole], [Live, Hole]]);
    assert_eq!(true_level(&copies(8, 4, 3)), Level::Impossible);
    // A tensor of 4 rows has no such rows, and stride 2 leaves none over.
    assert_eq!(true_level(&copies(4, 4, 3)), Level::Free);
    assert_eq!(true_level(&copies(8, 4, 2)), Level::Free);
    // Stride 5: the fifth phase of the first box is row 4, alone in its copy.
    let phases: Vec<Vec<Slot>> = (0..5).map(|phase| copies(8, 4, 5)[0][0].slots(phase).collect()).collect();
    assert_eq!(phases, [[Live], [Live], [Live], [Live], [Hole]]);
    let phases: Vec<Vec<Slot>> = (0..5).map(|phase| copies(8, 4, 5)[1][0].slots(phase).collect()).collect();
    assert_eq!(phases, [[Live], [Live], [Live], [Live], [Outside]]);
    assert_eq!(true_level(&copies(8, 4, 5)), Level::Redirect);
}
