//! Arrays that threads hold, conditions, notation, units.

use super::super::{
    Array, HoldingFault, NoClosedForm, NotUniform, Operation, Size, ThreadSet, Tiling, Typing, Unit, UnitProblem,
    check, uniform,
};
use super::super::{Nest, Shape};
use super::{binds, nest, unit};

#[test]
fn sets_are_written_as_runs() {
    let set =
        |runs: &[(u64, u64)]| ThreadSet::union(&runs.iter().map(|r| ThreadSet::run(r.0, r.1)).collect::<Vec<_>>());
    assert_eq!(set(&[]).to_string(), "none");
    assert_eq!(set(&[(7, 1)]).to_string(), "7");
    assert_eq!(set(&[(0, 32), (32, 32)]).to_string(), "0-63");
    assert_eq!(set(&[(0, 32), (64, 32)]).to_string(), "0-31,64-95");
    assert_eq!(set(&[(0, 32), (128, 32), (256, 32)]).to_string(), "3x[0-31] step 128");
    let uneven = (0..10).map(|n| (n * n * 3, 1)).collect::<Vec<_>>();
    assert_eq!(set(&uneven).to_string(), "0,3,12,27,48,75,108,147, and 2 more");
    assert_eq!(nest(2, 384, "2 x cta > 3 x warpgroup").show(&["c", "g"]), "384c+128g+[0,128)");
    assert_eq!(nest(1, 256, "256 x thread").show(&["t"]), "t");
    assert_eq!(nest(1, 256, "W 1..5 > 4 x warp").show(&["x", "w"]), "32w+[32,64)");
    assert_eq!(nest(4, 128, "4 x warp").show(&["j"]), "32j+[0,32)+128k, k<4");
    assert_eq!(nest(4, 128, "2 x 2 cta_strided(2)").show(&["e"]), "128e+[0,128) and 128e+[256,384)");
    assert_eq!(nest(1, 256, "W 2..5").show(&["x"]), "64-159");
}

#[test]
fn units_that_a_launch_does_not_have() {
    let shape = |c, b| Shape::new(c, b).unwrap();
    let problem = |unit: &Unit, shape: Shape| unit.typed(shape, Typing::Agnostic).unwrap_err().problem;
    assert_eq!(problem(&Unit::quadpair(), shape(1, 40)), UnitProblem::NotWhole);
    assert_eq!(problem(&Unit::warpgroup(), shape(1, 64)), UnitProblem::Box { size: 128, extent: 64 });
    assert_eq!(problem(&unit("mod3"), shape(1, 32)), UnitProblem::Product { product: 3, threads: 32 });
    assert_eq!(
        Unit::warp().needed(shape(1, 100)).unwrap_err().problem,
        UnitProblem::NotAligned { size: 32, extent: 100 }
    );
    // Scales that no unit has, and numbers beyond all bounds.
    assert!(Unit::warp().scaled(0).is_err());
    assert!(Unit::quadpair().scaled(2).is_err());
    assert!(Unit::agnostic_sub_cta().scaled(2).is_err());
    assert!(Unit::warp().scaled(u64::MAX).is_err());
    assert_eq!(Unit::threads_strided(1, 0), None);
    assert_eq!(Size::BLOCK.over(0), None);
    assert!(Unit::raw("odd", &[Size::BLOCK], &[]).is_err());
    let large = Unit::raw("large", &[Size::of(u64::MAX), Size::of(u64::MAX)], &[None, None]).unwrap();
    assert!(matches!(problem(&large, shape(1, 32)), UnitProblem::Product { .. }));
}

#[test]
fn operations_need_their_units() {
    let at = |nest: &Nest, operation: Operation| check(nest, &operation.demand().unit.unwrap()).is_ok();
    let (warp, group) = (nest(1, 256, "8 x warp"), nest(1, 256, "2 x warpgroup"));
    assert!(at(&warp, Operation::Mma) && at(&warp, Operation::Shuffle) && at(&warp, Operation::LoadTile));
    assert!(!at(&group, Operation::Mma) && at(&group, Operation::Wgmma) && at(&group, Operation::SetRegisters));
    assert!(!at(&nest(1, 256, "W 1..5"), Operation::Wgmma));
    assert!(at(&nest(1, 256, "200 x thread"), Operation::Store));
    assert!(at(&warp, Operation::WaitBarrier) && !at(&nest(2, 128, ""), Operation::WaitBarrier));
    // One lane of each half of a warp exchange; a thread alone does not.
    let pairs = nest(1, 256, "8 x warp > 16 x 2 threads_strided(1, 16)");
    assert!(at(&pairs, Operation::ShuffleXor { distance: 16 }) && !at(&pairs, Operation::ShuffleXor { distance: 8 }));
    assert!(!at(&nest(1, 32, "32 x thread"), Operation::ShuffleXor { distance: 16 }));
    // The same warp of blocks 0 and 2, and of 1 and 3.
    let multicast = Operation::LoadTileMulticast { blocks: 2, stride: 2 };
    assert!(at(&nest(4, 128, "2 x 2 cta_strided(2) > 4 x warp"), multicast));
    assert!(!at(&nest(4, 128, "2 x 2 cta > 4 x warp"), multicast));
    assert_eq!(Operation::ShuffleXor { distance: 0 }.demand().unit, None);
}

#[test]
fn threads_hold_the_elements_that_their_loops_index() {
    let top = nest(1, 256, "");
    let thread = Unit::thread();
    let array = |extents| Array { declared: &top, native: &thread, extents };
    let lanes = nest(1, 256, "8 x warp > 32 x thread");
    let held = array(&[8, 32, 4]).used(&lanes, &[Some(0), Some(1), None]).unwrap();
    assert_eq!((held.first.to_string(), held.pitches), ("0".to_owned(), vec![32, 1]));
    // Indices in another order, twice, missing, or after others.
    for indices in [&[Some(1), Some(0)][..], &[Some(0)], &[None, Some(0), Some(1)], &[Some(0), Some(1), Some(1)]] {
        let fault = array(&[8, 32, 4]).used(&lanes, indices).unwrap_err();
        assert!(matches!(fault, HoldingFault::Indices { .. }), "{fault:?}");
    }
    let fault = array(&[8, 16]).used(&lanes, &[Some(0), Some(1)]).unwrap_err();
    assert_eq!(fault, HoldingFault::Extent { step: 1, tiles: 32, extent: 16 });
    // A use by a whole warp, and one of a place that is not inside the declaration.
    let warps = nest(1, 256, "8 x warp");
    let fault = array(&[8]).used(&warps, &[Some(0)]).unwrap_err();
    assert!(matches!(fault, HoldingFault::MissingSubdivision { threads } if threads.count() == 32));
    let inner = Array { declared: &warps, ..array(&[32]) };
    assert_eq!(inner.used(&nest(1, 256, "256 x thread"), &[Some(0)]), Err(HoldingFault::Elsewhere));
    assert!(inner.used(&lanes, &[Some(1)]).is_ok());
    // Two uses with the same pitches, of which one starts elsewhere; a loop that takes no unit apart needs no index.
    let shifted = nest(1, 256, "W 1..5 > 4 x warp > 32 x thread");
    let plain = nest(1, 256, "W 0..4 > 4 x warp > 32 x thread");
    let uses: [(&Nest, &[Option<usize>]); 2] = [(&plain, &[Some(1), Some(2)]), (&shifted, &[Some(1), Some(2)])];
    let fault = array(&[4, 32]).holding(&uses).unwrap_err();
    assert!(matches!(fault, HoldingFault::Differs { .. }));
    assert!(array(&[4, 32]).holding(&uses[..1]).unwrap().is_some());
}

#[test]
fn blocks_and_warps_hold_elements_as_wholes() {
    let (cta, warp) = (Unit::cta(), Unit::warp());
    let blocks = nest(4, 128, "4 x cta");
    let shared = Array { declared: &blocks, native: &cta, extents: &[16] };
    // Threads that use shared memory need no index of their own.
    let held = shared.used(&nest(4, 128, "4 x cta > 128 x thread"), &[None]).unwrap();
    assert_eq!((held.first.to_string(), held.pitches), ("0-127".to_owned(), vec![]));
    // Declared outside of the loop over blocks, each block has a part of it.
    let top = nest(4, 128, "");
    let array = Array { declared: &top, native: &cta, extents: &[4] };
    assert_eq!(array.used(&blocks, &[Some(0)]).unwrap().pitches, [128]);
    assert!(matches!(array.used(&top, &[None]), Err(HoldingFault::MissingSubdivision { .. })));
    // A fragment that is declared where a warp is already taken apart.
    let lanes = nest(1, 64, "2 x warp > 32 x thread");
    let fragment = Array { declared: &lanes, native: &warp, extents: &[1] };
    assert!(matches!(fragment.used(&lanes, &[None]), Err(HoldingFault::MissingThreads { .. })));
}

#[test]
fn conditions_inside_a_warp_keep_it_apart() {
    let lanes = nest(1, 64, "2 x warp > 32 x thread");
    // N23: a condition on the warp's own iterator is the same for all of its lanes.
    assert_eq!(uniform(&lanes, 1, &|values| values[0] == 0), Ok(()));
    let apart = NotUniform { values: vec![0], reaches: 0, stays_away: 31 };
    assert_eq!(uniform(&lanes, 1, &|values| values[1] < 31), Err(apart));
    // Idle lanes do not come to what stands inside the loop over lanes.
    let some = nest(1, 64, "2 x warp > 20 x thread");
    let idle = NotUniform { values: vec![0], reaches: 0, stays_away: 20 };
    assert_eq!(uniform(&some, 1, &|_| true), Err(idle));
}

#[test]
fn the_rule_of_splits_says_where_it_is_too_weak() {
    // As published it has the whole of 32 blocks of 8 where one is.
    let shape = Shape::new(1, 256).unwrap();
    let nest = Nest::of(shape, &binds("2 x 3 thread > 3 x mod8")).unwrap();
    assert_eq!(nest.instances()[5].threads.to_string(), "5");
    assert_eq!(Tiling::of(&nest), Err(NoClosedForm::Inexact(0, 1)));
}
