//! Operations of a warp, each over all lanes and over some.

use super::demo::Demo;

/// The value of lane `lane`: what the programs load first.
fn value(x: &[u32], lane: usize) -> u32 {
    x[lane * super::demo::ROW]
}

/// Lanes of the two halves of a warp that take part by turns.
const SOME: u32 = 0x0ff0_a5c3;

fn members(lane: usize) -> u32 {
    if SOME >> lane & 1 == 1 { SOME } else { !SOME }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// An instruction whose member mask is a register: the lanes of two groups execute it together.
fn grouped(lines: &str, want: impl Fn(usize, u32, &[u32]) -> u32 + 'static) -> Demo {
    let body = format!(
        "ld.global.b32 %r20, [%rd2];\nshr.u32 %r21, {SOME:#x}, %r0;\nand.b32 %r21, %r21, 1;\nsetp.ne.u32 %p1, %r21, 0;\n\
         selp.b32 %r21, {SOME:#x}, {:#x}, %p1;\nand.b32 %r22, %r20, 1;\nsetp.ne.u32 %p2, %r22, 0;\nand.b32 %r23, %r20, 3;\n\
         cvt.u64.u32 %rd20, %r23;\nshl.b64 %rd20, %rd20, 40;\n{lines}st.global.b32 [%rd3], %r24;\n",
        !SOME
    );
    Demo::new(body, move |lane, x| vec![want(lane, members(lane), x)])
}

fn odd(mask: u32, x: &[u32]) -> u32 {
    lanes(mask).filter(|lane| value(x, *lane) & 1 == 1).fold(0, |mask, lane| mask | 1 << lane)
}

fn alike(lane: usize, mask: u32, x: &[u32]) -> u32 {
    lanes(mask).filter(|other| (value(x, *other) ^ value(x, lane)) & 3 == 0).fold(0, |mask, lane| mask | 1 << lane)
}

pub fn demos() -> Vec<Demo> {
    let mut all = Vec::new();
    let flag = "selp.u32 %r24, 1, 0, %p3;\n";
    for (mode, source) in [
        ("up", (|lane, _| if lane >= 3 { lane - 3 } else { lane }) as fn(usize, u32) -> usize),
        ("down", |lane, _| if lane + 3 < 32 { lane + 3 } else { lane }),
        ("bfly", |lane, _| lane ^ 3),
        ("idx", |_, _| 3),
    ] {
        let control = if mode == "up" { 0 } else { 31 };
        let body = format!(
            "ld.global.b32 %r20, [%rd2];\nshfl.sync.{mode}.b32 %r24|%p1, %r20, 3, {control}, 0xffffffff;\nselp.u32 %r25, 1, 0, %p1;\n\
             st.global.v2.b32 [%rd3], {{%r24, %r25}};\n"
        );
        let inside = move |lane: usize| match mode {
            "up" => lane >= 3,
            "down" => lane + 3 < 32,
            _ => true,
        };
        all.push(Demo::new(body, move |lane, x| vec![value(x, source(lane, 0)), u32::from(inside(lane))]));
    }
    all.push(grouped("vote.sync.ballot.b32 %r24, %p2, %r21;\n", |_, mask, x| odd(mask, x)));
    all.push(grouped("vote.ballot.sync.b32 %r24, !%p2, %r21;\n", |_, mask, x| mask & !odd(mask, x)));
    for (mode, function) in [
        ("all", (|mask, odd| odd == mask) as fn(u32, u32) -> bool),
        ("any", |_, odd| odd != 0),
        ("uni", |mask, odd| odd == 0 || odd == mask),
    ] {
        // Of the predicate, of whether the lane is in the first group, and of nothing.
        for (source, number) in [("%p2", 0), ("%p1", 1), ("!%p1", 2)] {
            let line = format!("vote.sync.{mode}.pred %p3, {source}, %r21;\n{flag}");
            all.push(grouped(&line, move |lane, mask, x| {
                let first = mask == members(SOME.trailing_zeros() as usize);
                let set = match number {
                    0 => odd(mask, x),
                    1 => {
                        if first {
                            mask
                        } else {
                            0
                        }
                    }
                    _ => {
                        if first {
                            0
                        } else {
                            mask
                        }
                    }
                };
                assert!(mask >> lane & 1 == 1);
                u32::from(function(mask, set))
            }));
        }
    }
    for (ty, register) in [("b32", "%r23"), ("b64", "%rd20")] {
        all.push(grouped(&format!("match.any.sync.{ty} %r24, {register}, %r21;\n"), alike));
        let line = format!("match.all.sync.{ty} %r24|%p3, {register}, %r21;\n{flag}");
        all.push(grouped(&line, |lane, mask, x| u32::from(alike(lane, mask, x) == mask)));
        // The same for all: the group's number.
        let (mov, ty) = (if ty == "b32" { "mov.b32 %r23, %r21" } else { "cvt.u64.u32 %rd20, %r21" }, ty);
        let line = format!("{mov};\nmatch.all.sync.{ty} %r24, {register}, %r21;\n");
        all.push(grouped(&line, |_, mask, _| mask));
    }
    let reduce = |word: &'static str| -> fn(u32, u32) -> u32 {
        match word {
            "add.u32" | "add.s32" => u32::wrapping_add,
            "min.u32" => u32::min,
            "max.u32" => u32::max,
            "min.s32" => |a, b| (a as i32).min(b as i32) as u32,
            "max.s32" => |a, b| (a as i32).max(b as i32) as u32,
            "and.b32" => |a, b| a & b,
            "or.b32" => |a, b| a | b,
            _ => |a, b| a ^ b,
        }
    };
    for word in ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"] {
        let function = reduce(word);
        let line = format!("redux.sync.{word} %r24, %r20, %r21;\n");
        all.push(grouped(&line, move |_, mask, x| {
            lanes(mask).map(|lane| value(x, lane)).reduce(function).unwrap_or(0)
        }));
    }
    // The manual does not say which lane is elected, only that it is one of the members: here the lowest, as on
    // hardware so far.
    all.push(grouped(
        &format!("elect.sync %r25|%p3, %r21;\n{flag}shl.b32 %r25, %r25, 1;\nor.b32 %r24, %r24, %r25;\n"),
        |lane, mask, _| {
            let leader = mask.trailing_zeros();
            leader << 1 | u32::from(leader == lane as u32)
        },
    ));
    all.push(grouped(&format!("elect.sync _|%p3, %r21;\n{flag}"), |lane, mask, _| {
        u32::from(mask.trailing_zeros() == lane as u32)
    }));
    // Of the lanes of each side of a branch; they meet again after it.
    all.push(grouped("@%p1 bra A;\nactivemask.b32 %r24;\nbra B;\nA:\nactivemask.b32 %r24;\nB:\n", |_, mask, _| mask));
    all
}
