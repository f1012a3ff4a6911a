//! The analysis against brute force: every leaf point of random chains of ops over literal and symbolic sizes.

use tilewright_kernel::info::{Dim, DimKind};
use tilewright_theory::random::Random;

use super::*;
use crate::domain::{AxisKind, NewAxis};

fn name() -> NewAxis {
    NewAxis { name: "a".to_owned(), span: Span::UNKNOWN }
}

fn no_facts() -> Facts {
    Facts::new(&[], &[]).unwrap()
}

/// One or two root axes of the given extents, and up to five random ops.
fn random_domain(random: &mut Random, extents: &[Expr], facts: &Facts, cuts: bool) -> Domain {
    let mut domain = Domain::new(extents.iter().map(|e| (name(), e.clone(), AxisKind::Data)));
    for _ in 0..random.below(6) {
        let leaf = domain.leaves[random.below(domain.leaves.len())];
        let factor = random.below(6) as i128 + 1;
        match random.below(5) {
            0 | 1 => domain.split_by(leaf, factor, facts, [name(), name()], Span::UNKNOWN),
            2 => domain.split_into(leaf, factor, facts, [name(), name()], Span::UNKNOWN),
            3 if domain.leaves.len() > 1 => {
                let at = random.below(domain.leaves.len() - 1);
                let (a, b) = (domain.leaves[at], domain.leaves[at + 1]);
                domain.merge(a, b, facts, name(), Span::UNKNOWN);
            }
            _ => {
                let low = if cuts { 2 } else { 0 };
                let (l, r) = (random.below(5) as i128 - low, random.below(5) as i128 - low);
                domain.resize(leaf, l, r, facts, name(), Span::UNKNOWN);
            }
        }
    }
    domain
}

/// At every leaf point: the kept predicates hold exactly where all axes are in bounds; each one is needed somewhere.
fn check(domain: &Domain, facts: &Facts, sizes: &[Vec<i64>]) {
    let holes = analyse(domain, facts);
    let mut needed = vec![false; holes.kept.len()];
    for dims in sizes {
        let concrete = Concrete::new(domain, dims).unwrap();
        if concrete.points() > 20_000
            || domain.axes.iter().any(|a| a.extent.eval(&[dims.first().map_or(0, |d| i128::from(*d))]) < Some(1))
        {
            continue;
        }
        let all: Vec<usize> = (0..domain.leaves.len()).collect();
        let mut live = std::collections::BTreeMap::new();
        let mut failed = None;
        concrete.visit::<()>(&all, |leaves| {
            let values = concrete.from_leaves(leaves);
            let valid = (0..domain.axes.len()).all(|a| concrete.in_bounds(&values, a));
            let failing: Vec<usize> =
                (0..holes.kept.len()).filter(|k| !holds(&concrete, &values, &holes.kept[*k])).collect();
            if valid != failing.is_empty() {
                failed = Some((leaves.to_vec(), valid));
            }
            if let [only] = failing[..] {
                needed[only] = true;
            }
            if valid {
                let roots: Vec<i128> = domain.roots.iter().map(|r| values[*r]).collect();
                *live.entry(roots.clone()).or_insert(0) += 1;
                assert_eq!(concrete.from_roots(&roots), values, "the maps are inverse to each other");
            }
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(failed, None, "dims {dims:?} {domain:?} {holes:?}");
        assert!(live.values().all(|n| *n == 1), "an element has two points: {domain:?}");
        let covered = live.len() as i128 == domain.roots.iter().map(|r| concrete.extents[*r]).product::<i128>();
        if matches!(uncovered(domain, facts), Search::None) {
            assert!(covered, "dims {dims:?}: claimed to be covered {domain:?}");
        }
    }
    assert!(needed.iter().all(|n| *n), "redundant predicate: {needed:?} {holes:?} {domain:?}");
}

#[test]
fn literal_chains_have_exactly_the_needed_predicates() {
    let mut random = Random(11);
    let facts = no_facts();
    let mut checked = 0;
    for _ in 0..1500 {
        let extents: Vec<Expr> =
            (0..1 + random.below(2)).map(|_| Expr::constant(random.below(24) as i128 + 1)).collect();
        let domain = random_domain(&mut random, &extents, &facts, false);
        let concrete = Concrete::new(&domain, &[]).unwrap();
        if concrete.points() > 4000 {
            continue; // beyond the budget of the redundancy search
        }
        check(&domain, &facts, &[vec![]]);
        checked += 1;
    }
    assert!(checked > 800, "{checked}");
}

#[test]
fn symbolic_chains_are_guarded_at_every_size() {
    let dims = [Dim { name: "N".into(), kind: DimKind::Size }];
    let facts = Facts::new(&dims, &[]).unwrap();
    let mut random = Random(12);
    for _ in 0..120 {
        let domain = random_domain(&mut random, &[Expr::var(0)], &facts, false);
        let sizes: Vec<Vec<i64>> =
            (1..=24).chain([31, 37, 48, 61, 73, 85, 97, 121, 145, 151]).map(|n| vec![n]).collect();
        check(&domain, &facts, &sizes);
    }
}

#[test]
fn what_a_cut_removes_is_found() {
    let mut random = Random(13);
    let facts = no_facts();
    let (mut lost, mut kept) = (0, 0);
    for _ in 0..800 {
        let extents = [Expr::constant(random.below(12) as i128 + 1)];
        let domain = random_domain(&mut random, &extents, &facts, true);
        let concrete = Concrete::new(&domain, &[]).unwrap();
        if concrete.extents.iter().any(|e| *e < 1) {
            continue;
        }
        let missing = (0..concrete.extents[0]).find(|i| {
            let values = concrete.from_roots(&[*i]);
            (0..domain.axes.len()).any(|a| !concrete.in_bounds(&values, a))
        });
        match (uncovered(&domain, &facts), missing) {
            (Search::Found(u), Some(first)) => {
                assert_eq!(u.roots, [first]);
                lost += 1;
            }
            (Search::None, None) => kept += 1,
            (verdict, truth) => panic!("{verdict:?} but {truth:?}: {domain:?}"),
        }
    }
    assert!(lost > 50 && kept > 50, "{lost} {kept}");
}

/// The example of the document: 15 split by 6, then by 2 and 4: all three predicates are needed.
#[test]
fn the_documents_figure_one() {
    let facts = no_facts();
    let mut domain = Domain::new([(name(), Expr::constant(15), AxisKind::Data)]);
    let split = |domain: &mut Domain, leaf, by| domain.split_by(leaf, by, &facts, [name(), name()], Span::UNKNOWN);
    split(&mut domain, 0, 6);
    split(&mut domain, 1, 2);
    split(&mut domain, 2, 4);
    let holes = analyse(&domain, &facts);
    // I1 = 3 split by 2 is implied by I0 (Theorem 1) once I2 is in bounds.
    assert_eq!(holes.kept.iter().map(|p| p.axis).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(holes.dropped.len(), 1);
    assert_eq!(holes.dropped[0].1, Reason::Theorem(1));
}

/// An element is written even if its reduction is empty: `for i in 0..1 split by 2` needs its guard although no term
/// exists.
#[test]
fn an_empty_reduction_proves_nothing_about_elements() {
    let facts = no_facts();
    let roots = [(name(), Expr::constant(1), AxisKind::Data), (name(), Expr::constant(0), AxisKind::Reduction)];
    let mut domain = Domain::new(roots);
    domain.split_by(domain.leaves[0], 2, &facts, [name(), name()], Span::UNKNOWN);
    let holes = analyse(&domain, &facts);
    assert_eq!(holes.kept.iter().map(|p| (p.axis, p.side)).collect::<Vec<_>>(), [(0, Side::Upper)]);
}

/// A cut of the result loses elements even where there are no terms, and a cut of terms loses nothing there.
#[test]
fn cuts_beside_an_empty_reduction() {
    let facts = no_facts();
    let roots = |extent, terms| {
        [(name(), Expr::constant(extent), AxisKind::Data), (name(), Expr::constant(terms), AxisKind::Reduction)]
    };
    let mut lost = Domain::new(roots(3, 0));
    lost.resize(lost.leaves[0], 0, -1, &facts, name(), Span::UNKNOWN);
    assert!(matches!(uncovered(&lost, &facts), Search::Found(u) if u.roots == [2, 0]));
    let mut nothing = Domain::new(roots(3, -1));
    nothing.resize(nothing.leaves[1], -1, 0, &facts, name(), Span::UNKNOWN);
    assert_eq!(uncovered(&nothing, &facts), Search::None);
}

/// Only the axes that a cut reaches decide about it: here they are literal, and the other size is anything.
#[test]
fn a_cut_is_decided_by_its_own_axes() {
    let facts = Facts::new(&[Dim { name: "N".into(), kind: DimKind::Size }], &[]).unwrap();
    let roots = [(name(), Expr::constant(1), AxisKind::Data), (name(), Expr::var(0), AxisKind::Data)];
    let mut domain = Domain::new(roots);
    domain.split_by(domain.leaves[0], 6, &facts, [name(), name()], Span::UNKNOWN);
    domain.resize(domain.leaves[1], 1, -1, &facts, name(), Span::UNKNOWN);
    assert_eq!(uncovered(&domain, &facts), Search::None);
}

/// Rows of nothing: their numbers are quotients by 0, and what they say of the merged axis is nothing.
#[test]
fn a_merge_with_nothing_inside_implies_nothing() {
    let dims = [Dim { name: "N".into(), kind: DimKind::Size }];
    let facts = Facts::new(&dims, &[]).unwrap();
    let side = |shrinks: i128| Expr::var(0).sub(&Expr::constant(shrinks));
    for (shrinks, is_kept) in [(0, false), (1, true)] {
        let extents = [side(shrinks), side(shrinks)];
        let mut domain = Domain::new(extents.map(|e| (name(), e, AxisKind::Data)));
        domain.split_by(domain.leaves[0], 16, &facts, [name(), name()], Span::UNKNOWN);
        domain.merge(domain.leaves[0], domain.leaves[1], &facts, name(), Span::UNKNOWN);
        domain.merge(domain.leaves[0], domain.leaves[1], &facts, name(), Span::UNKNOWN);
        let merged = domain.leaves[0];
        domain.resize(merged, 3, 4, &facts, name(), Span::UNKNOWN);
        let kept = analyse(&domain, &facts).kept;
        let upper = |p: &Predicate| p.axis == merged && p.side == Side::Upper;
        assert_eq!(kept.iter().any(upper), is_kept, "N - {shrinks}: {kept:?}");
    }
}
