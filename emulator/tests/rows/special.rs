//! What a thread knows of itself, and what many threads do to one place: results that no order of threads changes.

use super::demo::{Demo, ROW};

/// Stores what special registers hold, one a word.
fn registers(names: &[&str]) -> String {
    let line = |(at, name): (usize, &&str)| format!("mov.u32 %r20, %{name};\nst.global.b32 [%rd3+{}], %r20;\n", 4 * at);
    names.iter().enumerate().map(line).collect()
}

fn of_a_thread() -> Vec<Demo> {
    let names = [
        "tid.x",
        "tid.y",
        "tid.z",
        "ntid.x",
        "ntid.y",
        "ntid.z",
        "ctaid.x",
        "ctaid.y",
        "nctaid.x",
        "nctaid.z",
        "laneid",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
    ];
    let alone = Demo::new(registers(&names), |thread, _| {
        let (lane, own) = (thread as u32 % 32, 1_u32 << (thread % 32));
        let below = own - 1;
        vec![thread as u32, 0, 0, 64, 1, 1, 0, 0, 1, 1, lane, own, below | own, below, !below, !(below | own)]
    });
    let names = [
        "tid.x",
        "ctaid.x",
        "nctaid.x",
        "cluster_ctaid.x",
        "cluster_ctaid.y",
        "cluster_nctaid.x",
        "cluster_nctaid.z",
        "cluster_ctarank",
        "cluster_nctarank",
        "clusterid.x",
        "nclusterid.x",
        "dynamic_smem_size",
    ];
    let explicit = "mov.pred %p1, %is_explicit_cluster;\nselp.u32 %r20, 1, 0, %p1;\nst.global.b32 [%rd3+48], %r20;\n";
    let cluster = Demo::new(registers(&names) + explicit, |thread, _| {
        let (block, thread) = (thread as u32 / 32, thread as u32 % 32);
        vec![thread, block, 4, block, 0, 4, 1, block, 4, 0, 1, 0, 1]
    });
    // Time goes on.
    let mut time = String::new();
    for (at, clock) in ["clock64", "globaltimer"].iter().enumerate() {
        time += &format!(
            "mov.u64 %rd10, %{clock};\nbar.sync 0;\nmov.u64 %rd11, %{clock};\nsub.u64 %rd12, %rd11, %rd10;\n\
             setp.ge.s64 %p1, %rd12, 0;\nselp.u32 %r20, 1, 0, %p1;\nst.global.b32 [%rd3+{}], %r20;\n",
            4 * at
        );
    }
    vec![alone.of(64), cluster.of(128).across(4), Demo::new(time, |_, _| vec![1, 1])]
}

const MEET: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
/// Threads that meet at one place.
const THREADS: usize = 128;

/// All threads of a cluster of two do something to the first word of y, which begins as `start`; the first thread
/// then has what is left there.
fn crowd(start: u32, line: &str, left: impl Fn(&[u32]) -> u32 + 'static) -> Demo {
    let body = format!(
        "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.global.b32 [%rd1], {start};\n{MEET}ld.global.b32 %r20, [%rd2];\n{line}{MEET}"
    );
    Demo::new(body, move |thread, x| {
        let all: Vec<u32> = (0..THREADS).map(|thread| x[thread * ROW]).collect();
        if thread == 0 { vec![left(&all)] } else { vec![] }
    })
    .of(THREADS)
    .across(2)
}

fn of_many() -> Vec<Demo> {
    let sum = |all: &[u32]| all.iter().fold(0_u32, |sum, x| sum.wrapping_add(*x));
    vec![
        crowd(0, "red.global.add.u32 [%rd1], %r20;\n", sum),
        crowd(0, "atom.global.add.u32 %r21, [%rd1], %r20;\n", sum),
        crowd(0, "red.relaxed.cluster.global.add.u32 [%rd1], %r20;\n", sum),
        crowd(i32::MAX as u32, "red.global.min.s32 [%rd1], %r20;\n", |all| {
            all.iter().map(|x| *x as i32).min().unwrap_or(0) as u32
        }),
        crowd(0, "red.global.max.u32 [%rd1], %r20;\n", |all| all.iter().copied().max().unwrap_or(0)),
        crowd(u32::MAX, "or.b32 %r20, %r20, 255;\nred.global.and.b32 [%rd1], %r20;\n", |all| {
            all.iter().fold(u32::MAX, |bits, x| bits & (x | 255))
        }),
        crowd(0, "and.b32 %r20, %r20, 65535;\nred.global.or.b32 [%rd1], %r20;\n", |all| {
            all.iter().fold(0, |bits, x| bits | x & 0xffff)
        }),
        crowd(0, "red.global.xor.b32 [%rd1], %r20;\n", |all| all.iter().fold(0, |bits, x| bits ^ x)),
        // 128 steps of a counter to 100, whose 101 values come one after the other.
        crowd(0, "red.global.inc.u32 [%rd1], 100;\n", |_| 128 % 101),
        crowd(50, "red.global.dec.u32 [%rd1], 100;\n", |_| (50 + 2 * 101 - 128) % 101),
        // Small integers, of which every sum is exact.
        crowd(0, "and.b32 %r20, %r20, 255;\ncvt.rn.f32.u32 %f10, %r20;\nred.global.add.f32 [%rd1], %f10;\n", |all| {
            (all.iter().map(|x| x & 255).sum::<u32>() as f32).to_bits()
        }),
        // Whoever is first gets the place; all others see that.
        crowd(7, "atom.global.cas.b32 %r21, [%rd1], 7, 9;\n", |_| 9),
        // By trying again.
        crowd(
            0,
            "ld.relaxed.gpu.global.b32 %r21, [%rd1];\nAGAIN:\nmov.b32 %r22, %r21;\nadd.u32 %r23, %r22, %r20;\n\
             atom.global.cas.b32 %r21, [%rd1], %r22, %r23;\nsetp.ne.u32 %p2, %r21, %r22;\n@%p2 bra AGAIN;\n",
            sum,
        ),
    ]
}

pub fn demos() -> Vec<Demo> {
    [of_a_thread(), of_many()].concat()
}

/// For the conformance files.
pub fn parts() -> [Vec<Demo>; 2] {
    [of_a_thread(), of_many()]
}
