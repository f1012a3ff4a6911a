//! Rows beside those of the published table, each derived by hand from its rules: every kind of unit, of range and of
//! refusal at the places where a neighbouring rule would say otherwise.

use super::conformance::{Class, Expected, Refused, are_refused, set};

/// The row, cluster and block, nest, iterations, distances, first and last iteration, idle threads, units that are here
/// and that are not.
type Row = (
    &'static str,
    (u64, u64),
    &'static str,
    usize,
    &'static [u64],
    &'static str,
    &'static str,
    u64,
    &'static [&'static str],
    &'static [&'static str],
);

#[rustfmt::skip]
const ACCEPTED: &[Row] = &[
    ("every warp", (1, 256), "8 x warp", 8, &[32], "0-31", "224-255", 0, &["warp", "32 thread"], &["warpgroup", "16 thread", "quadpair", "2 warp"]),
    ("down to threads", (1, 256), "2 x warpgroup > 4 x warp > 32 x thread", 256, &[128, 32, 1], "0", "255", 0, &["thread"], &["warp"]),
    ("idle warps", (1, 256), "6 x warp", 6, &[32], "0-31", "160-191", 64, &["warp"], &["warpgroup"]),
    ("warps of a range", (1, 256), "W 2..5 > 3 x warp", 3, &[0, 32], "64-95", "128-159", 160, &["warp"], &["3 warp"]),
    ("an aligned range", (1, 256), "W 4..8", 1, &[0], "128-255", "128-255", 128, &["warpgroup", "4 warp"], &["cta", "warp"]),
    ("quad-pairs of warps", (1, 256), "8 x warp > 4 x quadpair", 32, &[32, 4], "0-3,16-19", "236-239,252-255", 0, &["quadpair"], &["8 thread", "warp"]),
    ("quad-pairs of a range", (1, 256), "W 0..1 > 1 x quadpair", 1, &[0, 0], "0-3,16-19", "0-3,16-19", 248, &["quadpair"], &["8 thread"]),
    ("blocks", (2, 384), "2 x cta", 2, &[384], "0-383", "384-767", 0, &["cta", "12 warp", "3 warpgroup", "agnostic_sub_cta"], &["warpgroup", "cluster"]),
    ("warps of both blocks", (2, 384), "12 x warp", 12, &[32], "0-31,384-415", "352-383,736-767", 0, &["2 warp_strided(1)", "2 warp_in_cluster"], &["warp", "2 warp", "agnostic_sub_cta"]),
    ("warpgroups of both blocks", (2, 384), "3 x warpgroup", 3, &[128], "0-127,384-511", "256-383,640-767", 0, &[], &["warpgroup", "2 warpgroup"]),
    ("threads of blocks", (2, 384), "2 x cta > 384 x thread", 768, &[384, 1], "0", "767", 0, &["thread", "standalone"], &["warp"]),
    ("a range of blocks", (2, 384), "2 x cta > W 4..12 > 2 x warpgroup", 4, &[384, 0, 128], "128-255", "640-767", 256, &["warpgroup"], &["cta"]),
    ("pairs of blocks", (4, 128), "2 x 2 cta", 2, &[256], "0-255", "256-511", 0, &["2 cta", "agnostic_intact_cta"], &["cta", "2 cta_strided(2)", "warpgroup"]),
    ("warps of pairs", (4, 128), "2 x 2 cta > 4 x warp", 8, &[256, 32], "0-31,128-159", "352-383,480-511", 0, &["2 warp_strided(1)", "2 warp_in_cluster"],
        &["warp", "2 warp_strided(2)", "2 warp"]),
    ("warps of strided blocks", (4, 128), "2 x 2 cta_strided(2) > 2 x cta > 4 x warp", 16, &[128, 256, 32], "0-31", "480-511", 0, &["warp"], &["2 warp_strided(2)"]),
    // Both blocks of a pair are taken apart, though they are no pair of neighbours: the loop is permissive.
    ("strided blocks taken apart", (4, 128), "2 x 2 cta_strided(2) > 2 x 2 cta", 4, &[128, 256], "0-127", "384-511", 0, &["cta"], &["2 cta"]),
    ("threads of strided blocks", (4, 128), "2 x 2 cta_strided(2) > 128 x thread", 256, &[128, 1], "0,256", "255,511", 0, &[], &["thread", "2 thread"]),
    ("every eighth", (4, 128), "8 x mod8", 8, &[1], "64x[0-0] step 8", "64x[7-7] step 8", 0, &[], &["mod8", "thread"]),
    ("octets of warpgroups", (1, 384), "3 x warpgroup > 16 x oct", 48, &[128, 8], "0-7", "376-383", 0, &["8 thread", "oct"], &["warp"]),
    ("three of a block with a part", (1, 416), "3 x warpgroup", 3, &[128], "0-127", "256-383", 32, &[], &["warpgroup", "cta", "warp"]),
    ("warps of a block with a part", (1, 416), "13 x warp", 13, &[32], "0-31", "384-415", 0, &["warp"], &["warpgroup"]),
    ("half of each warpgroup", (1, 512), "4 x warpgroup > W 2..4", 4, &[128, 0], "64-127", "448-511", 256, &["2 warp", "64 thread"], &["warp"]),
    ("the middle of each warpgroup", (1, 512), "4 x warpgroup > W 1..3", 4, &[128, 0], "32-95", "416-479", 256, &[], &["2 warp", "64 thread"]),
    ("lanes", (1, 1024), "32 x 32 threads_strided(1, 32)", 32, &[1], "32x[0-0] step 32", "32x[31-31] step 32", 0, &["32 threads_strided(1, 32)"], &["warp", "32 thread"]),
    ("eight of each warp", (1, 256), "4 x 8 threads_strided(8, 32)", 4, &[8], "8x[0-7] step 32", "8x[24-31] step 32", 0, &["8 threads_strided(8, 32)"], &["64 thread", "2 warp"]),
    // The unit is larger than what is around along an extent that it has all of.
    ("lanes of warpgroups", (1, 256), "2 x warpgroup > 32 x 8 threads_strided(1, 32)", 64, &[128, 1], "4x[0-0] step 32", "4x[159-159] step 32", 0, &["4 threads_strided(1, 32)"],
        &["8 threads_strided(1, 32)"]),
    ("one of two blocks", (2, 384), "1 x cta", 1, &[0], "0-383", "0-383", 384, &["cta"], &["2 cta"]),
    ("nothing narrowed", (2, 128), "1 x cluster", 1, &[0], "0-255", "0-255", 0, &["cluster", "2 cta"], &["cta"]),
    ("a cluster of blocks", (4, 128), "1 x cluster > 4 x cta", 4, &[0, 128], "0-127", "384-511", 0, &["cta"], &["cluster"]),
    ("a block inside a warp", (1, 256), "8 x warp > 1 x cta", 8, &[32, 0], "0-31", "224-255", 0, &["warp"], &["cta"]),
    ("a warp of a warp", (1, 256), "8 x warp > 1 x warp", 8, &[32, 0], "0-31", "224-255", 0, &["warp"], &["thread"]),
    ("a thread of a thread", (1, 256), "256 x thread > 1 x thread", 256, &[1, 0], "0", "255", 0, &["thread"], &["warp"]),
    ("warps of a hundred", (1, 100), "3 x warp", 3, &[32], "0-31", "64-95", 4, &[], &["warp", "32 thread"]),
    ("quarters of a hundred", (1, 100), "4 x 25 thread", 4, &[25], "0-24", "75-99", 0, &["25 thread"], &["warp"]),
    ("halves of eight blocks", (8, 128), "2 x 4 cta_strided(2)", 2, &[128], "4x[0-127] step 256", "4x[128-255] step 256", 0, &["4 cta_strided(2)"], &["4 cta"]),
    ("pairs four apart", (8, 128), "4 x 2 cta_strided(4)", 4, &[128], "0-127,512-639", "384-511,896-1023", 0, &["2 cta_strided(4)"], &["2 cta_strided(2)", "2 cta"]),
    ("pairs two apart of four", (8, 128), "2 x 4 cta > 2 x 2 cta_strided(2)", 4, &[512, 128], "0-127,256-383", "640-767,896-1023", 0, &["2 cta_strided(2)"], &["2 cta"]),
    ("a warp by two extents", (4, 128), "4 x cta > 4 x warp_in_cluster", 16, &[128, 32], "0-31", "480-511", 0, &["warp", "warp_in_cluster"], &["2 warp_in_cluster"]),
    ("a warp of all blocks", (4, 128), "4 x 4 warp_strided(1)", 4, &[32], "4x[0-31] step 128", "4x[96-127] step 128", 0, &["4 warp_strided(1)"], &["warp"]),
    ("two blocks inside a thread", (2, 64), "64 x thread > 1 x 2 cta", 64, &[1, 0], "0,64", "63,127", 0, &[], &["thread", "2 cta"]),
    ("one thread of the launch", (2, 384), "1 x standalone", 1, &[0], "0-767", "0-767", 0, &["cluster"], &["standalone", "thread"]),
    ("half of each 64", (1, 256), "2 x half64", 2, &[32], "4x[0-31] step 64", "4x[32-63] step 64", 0, &[], &["half64", "warp"]),
    ("half of one 64", (1, 256), "4 x 64 thread > 2 x half64", 8, &[64, 32], "0-31", "224-255", 0, &["half64", "warp"], &["64 thread"]),
    ("whole blocks narrow nothing", (2, 384), "1 x agnostic_intact_cta", 1, &[0], "0-767", "0-767", 0, &["agnostic_intact_cta"], &["agnostic_sub_cta"]),
    ("anything inside a block", (2, 384), "2 x agnostic_sub_cta", 2, &[384], "0-383", "384-767", 0, &["cta", "agnostic_sub_cta"], &["cluster"]),
    ("each of a range", (1, 256), "3 of 2..5 warp", 3, &[32], "64-95", "128-159", 160, &["warp"], &["3 warp"]),
    ("two shares of a range", (1, 256), "2 of 2..6 warp", 2, &[64], "64-127", "128-191", 128, &["2 warp", "64 thread"], &["warp", "warpgroup"]),
    ("two shares between pairs", (1, 256), "2 of 1..5 warp", 2, &[64], "32-95", "96-159", 128, &[], &["2 warp", "64 thread"]),
    ("groups after the first", (1, 384), "2 of 1..3 warpgroup", 2, &[128], "128-255", "256-383", 128, &["warpgroup"], &["cta"]),
    ("groups of a range together", (1, 384), "1 of 1..3 warpgroup", 1, &[0], "128-383", "128-383", 128, &[], &["2 warpgroup", "warpgroup", "cta"]),
    ("blocks of a range", (4, 128), "2 of 1..3 cta", 2, &[128], "128-255", "256-383", 256, &["cta"], &["2 cta"]),
    ("blocks of a range together", (4, 128), "1 of 1..3 cta", 1, &[0], "128-383", "128-383", 256, &[], &["2 cta", "cta"]),
    ("a range of eights", (1, 256), "8 x warp > 3 of 1..4 8 thread", 24, &[32, 8], "8-15", "248-255", 64, &["8 thread"], &["warp"]),
    ("a range of threes", (1, 64), "7 of 3..10 3 thread", 7, &[3], "9-11", "27-29", 43, &[], &["3 thread"]),
    ("warps of lanes", (1, 256), "32 x 8 threads_strided(1, 32) > 4 of 2..6 warp", 128, &[1, 32], "64", "191", 128, &["thread"], &["warp"]),
    ("a range of one warp", (1, 32), "W 0..1", 1, &[0], "0-31", "0-31", 0, &["warp", "cta"], &["thread"]),
    ("ranges of ranges", (1, 1024), "W 8..24 > W 4..12 > 2 x warpgroup", 2, &[0, 0, 128], "384-511", "512-639", 768, &["warpgroup"], &["cta"]),
    ("the largest cluster", (8, 1024), "8 x cta > 8 x warpgroup", 64, &[1024, 128], "0-127", "8064-8191", 0, &["warpgroup"], &["warp", "cta"]),
];

#[test]
fn further_nests_have_the_sets_that_follow_from_the_rules() {
    for (id, shape, nest, iterations, pitches, first, last, idle, here, not_here) in ACCEPTED {
        let (first, iterations, idle) = (set(first), *iterations, *idle);
        Expected { id, shape: *shape, nest, iterations, pitches, first, last, idle, here, not_here }.holds();
    }
}

#[rustfmt::skip]
const REFUSED: &[Refused] = &[
    ("more threads than a block", (1, 256), "257 x thread", "", Class::TooMany { most: 256 }, None),
    ("33 lanes", (1, 256), "8 x warp > 33 x thread", "", Class::TooMany { most: 32 }, Some(0)),
    ("a range past the end", (1, 256), "W 6..9", "", Class::TooMany { most: 8 }, None),
    ("a range after the end", (1, 256), "W 8..9", "", Class::TooMany { most: 8 }, None),
    ("a range backwards", (1, 256), "W 5..3", "", Class::Empty, None),
    ("no iterations", (1, 256), "0 x warp", "", Class::Empty, None),
    ("shares that are not equal", (1, 256), "2 of 1..4 warp", "", Class::Empty, None),
    ("eight quad-pairs of a warp", (1, 256), "8 x warp > 8 x quadpair", "", Class::TooMany { most: 4 }, None),
    ("quad-pairs of a block", (1, 256), "1 x quadpair", "", Class::Ambiguous, None),
    ("pairs two apart of eight", (8, 128), "2 x 2 cta_strided(2)", "", Class::Ambiguous, None),
    ("a warp of one block", (8, 128), "16 x warp_in_cluster", "", Class::Ambiguous, None),
    ("blocks of a block", (2, 384), "2 x cta > 2 x cta", "", Class::Already, Some(0)),
    ("three blocks of two", (4, 128), "2 x 2 cta > 3 x cta", "", Class::TooMany { most: 2 }, Some(0)),
    ("warps of one warp", (1, 32), "W 0..2", "", Class::Already, None),
    ("all threads one by one", (2, 384), "768 x standalone", "", Class::Already, None),
    ("eight of one thread", (1, 256), "1 x 8 standalone", "", Class::UnitBox, None),
    ("a warpgroup of 64", (1, 64), "1 x warpgroup", "", Class::UnitBox, None),
    ("nine warps as one", (1, 256), "1 x 9 warp", "", Class::UnitBox, None),
    ("a warp of 16", (1, 16), "1 x warp", "", Class::UnitBox, None),
    ("blocks two apart of one", (1, 128), "1 x cta_strided(2)", "", Class::NoUnit, None),
    ("threes of 256", (1, 256), "3 x mod3", "", Class::NoUnit, None),
    ("twos, then threes", (1, 384), "2 x mod2 > 3 x mod3", "", Class::Pitches, Some(0)),
    ("pairs taken apart", (1, 256), "2 x mod2 > 5 x 3 thread", "", Class::Pitches, Some(0)),
    ("64 of 96", (2, 96), "2 x cta > 2 x half64", "", Class::Pitches, None),
    ("fives over eights", (1, 256), "10 x 5 thread > 2 x mod8", "", Class::NotABox, Some(0)),
    ("a thread is no quad-pair", (1, 32), "8 x 4 thread", "quadpair", Class::Count { threads: 4, wanted: 8 }, Some(0)),
    ("one of two blocks", (4, 128), "4 x cta > W 0..1", "2 warp_strided(1)", Class::Count { threads: 32, wanted: 64 }, Some(0)),
    ("one lane of two", (1, 32), "32 x thread", "2 threads_strided(1, 1)", Class::Count { threads: 1, wanted: 2 }, Some(0)),
    ("half of a block", (1, 256), "2 x warpgroup", "cta", Class::Count { threads: 128, wanted: 256 }, Some(0)),
    ("all is no warp", (2, 384), "", "warp", Class::Count { threads: 768, wanted: 32 }, None),
    ("warps of both", (2, 384), "12 x warp", "warp", Class::Count { threads: 64, wanted: 32 }, None),
    ("warps 2 to 5", (1, 256), "W 2..6", "warpgroup", Class::Alignment, Some(0)),
    ("warps 3 and 4", (1, 256), "W 3..5", "2 warp", Class::Alignment, Some(0)),
    ("warps 1 to 3", (1, 384), "W 1..4", "3 warp", Class::Alignment, Some(0)),
    ("blocks 1 and 2", (4, 128), "1 of 1..3 cta", "2 cta", Class::Alignment, Some(0)),
    ("eights that lie apart", (1, 256), "4 x 8 threads_strided(8, 32)", "64 thread", Class::Arrangement, Some(0)),
    ("threes of warps", (1, 256), "", "3 warp", Class::NoUnit, None),
    ("a warpgroup of a block with a part", (1, 416), "3 x warpgroup", "warpgroup", Class::NoUnit, None),
    ("a warp of a hundred", (1, 100), "3 x warp", "warp", Class::NoUnit, None),
    ("sixteen of a warp", (1, 256), "8 x warp", "16 thread", Class::Count { threads: 32, wanted: 16 }, Some(0)),
    ("a wait of two blocks", (2, 384), "12 x warp", "agnostic_sub_cta", Class::Arrangement, None),
    ("warps of a block that is taken apart", (2, 384), "2 x cta > 12 x warp", "agnostic_intact_cta", Class::Arrangement, Some(1)),
    ("threads between warps", (1, 256), "2 x 48 thread", "agnostic_warps", Class::Arrangement, Some(0)),
];

#[test]
fn further_nests_are_refused_for_their_reason() {
    are_refused(REFUSED);
}
