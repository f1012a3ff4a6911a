//! Thread instructions per second, with and without sanitizers, on one host thread.
//! `cargo bench -p tilewright-emulator`; a dev build is measured with `cargo bench --profile dev`, or, with the
//! emulator optimised as the advice of `README.md` has it, with `--profile test`.

use divan::counter::ItemsCount;
use tilewright_emulator::{Arg, Launch, MatrixModel, Memory, Options, Program, Report, Sanitizers};
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

fn main() {
    divan::main();
}

const HEAD: &str = ".version 7.0\n.target sm_80\n.address_size 64\n";

const SAXPY: &str = ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .pred %p; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
ld.param.u32 %r0, [n];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
setp.ge.u32 %p, %r4, %r0;
@%p bra DONE;
mul.wide.u32 %rd2, %r4, 4;
add.u64 %rd3, %rd0, %rd2;
add.u64 %rd4, %rd1, %rd2;
ld.global.f32 %f1, [%rd3];
ld.global.f32 %f2, [%rd4];
fma.rn.f32 %f2, %f1, 0f40000000, %f2;
st.global.f32 [%rd4], %f2;
DONE:
ret;
}";

const INTEGER_LOOP: &str = ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd0, [x];
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
mov.u32 %r3, %r1;
L:
mad.lo.u32 %r3, %r3, 1664525, 1013904223;
xor.b32 %r3, %r3, %r2;
shr.u32 %r4, %r3, 3;
add.u32 %r3, %r3, %r4;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p, %r2, 256;
@%p bra L;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd0, %rd2;
st.global.u32 [%rd3], %r3;
ret;
}";

const FMA_LOOP: &str = ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .pred %p; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd0, [x];
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
cvt.rn.f32.u32 %f0, %r1;
mov.f32 %f1, 0f3F800000;
mov.f32 %f2, 0f3F800000;
L:
fma.rn.f32 %f1, %f1, 0f3F000000, %f0;
fma.rn.f32 %f2, %f2, 0f3F000000, %f1;
fma.rn.f32 %f1, %f1, 0f3F000000, %f2;
fma.rn.f32 %f2, %f2, 0f3F000000, %f0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p, %r2, 256;
@%p bra L;
add.f32 %f1, %f1, %f2;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd0, %rd2;
st.global.f32 [%rd3], %f1;
ret;
}";

const REDUCTION: &str = ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .pred %p; .reg .b32 %r<12>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
.shared .align 4 .b8 buf[1024];
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
mov.u32 %r1, %tid.x;
mov.u32 %r5, %ctaid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, buf;
add.u32 %r2, %r2, %r3;
mad.lo.u32 %r6, %r5, 256, %r1;
mul.wide.u32 %rd2, %r6, 4;
add.u64 %rd2, %rd0, %rd2;
ld.global.f32 %f1, [%rd2];
st.shared.f32 [%r2], %f1;
mov.u32 %r4, 128;
L:
bar.sync 0;
setp.ge.u32 %p, %r1, %r4;
@%p bra SKIP;
shl.b32 %r7, %r4, 2;
add.u32 %r7, %r7, %r2;
ld.shared.f32 %f1, [%r2];
ld.shared.f32 %f2, [%r7];
add.f32 %f1, %f1, %f2;
st.shared.f32 [%r2], %f1;
SKIP:
shr.u32 %r4, %r4, 1;
setp.ne.u32 %p, %r4, 0;
@%p bra L;
setp.ne.u32 %p, %r1, 0;
@%p bra DONE;
mul.wide.u32 %rd3, %r5, 4;
add.u64 %rd3, %rd1, %rd3;
st.global.f32 [%rd3], %f1;
DONE:
ret;
}";

/// Each thread stores; the first one of each block arrives at a counter after a barrier; the threads of the last block
/// read all.
const ARRIVALS: &str = ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
ld.param.u32 %r6, [n];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %nctaid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, 256, %r3;
mul.wide.u32 %rd2, %r4, 4;
add.u64 %rd3, %rd0, %rd2;
st.global.u32 [%rd3], %r4;
setp.eq.u32 %p1, %r3, 0;
sub.u32 %r5, %r2, 1;
mov.u32 %r7, %r2;
bar.sync 0;
@%p1 atom.acq_rel.gpu.global.inc.u32 %r7, [%rd1], %r5;
setp.eq.u32 %p2, %r7, %r5;
bar.red.or.pred %p2, 0, %p2;
@!%p2 bra DONE;
mov.u32 %r8, %r3;
mov.u32 %r9, 0;
L:
mul.wide.u32 %rd2, %r8, 4;
add.u64 %rd3, %rd0, %rd2;
ld.global.u32 %r10, [%rd3];
add.u32 %r9, %r9, %r10;
add.u32 %r8, %r8, 256;
setp.lt.u32 %p0, %r8, %r6;
@%p0 bra L;
mad.wide.u32 %rd3, %r3, 4, %rd1;
st.global.u32 [%rd3+128], %r9;
DONE:
ret;
}";

fn run(bencher: divan::Bencher<'_, '_>, kernel: &str, grid: u32, options: Options) {
    let program = Program::parse(&format!("{HEAD}{kernel}")).expect("the kernels of this file are well formed");
    let memory = Memory::new(1 << 28);
    let words = u64::from(grid) * 256;
    let x = memory.alloc(words * 4, "x").expect("the capacity suffices");
    let y = memory.alloc(words * 4, "y").expect("the capacity suffices");
    memory.fill(x, words * 4, 0).expect("the range is allocated");
    memory.fill(y, words * 4, 0).expect("the range is allocated");
    let launch = Launch {
        entry: "k".into(),
        grid: [grid, 1, 1],
        block: [256, 1, 1],
        args: vec![x.into(), y.into(), ((words) as u32).into()],
        ..Launch::default()
    };
    // Every block of the loops stores the same words: races that these measurements do not mind.
    measure(bencher, &program, &memory, &launch, &options, |report| report.trap().is_none());
}

/// Measures launches, after one that must be fine.
fn measure(
    bencher: divan::Bencher<'_, '_>,
    program: &Program,
    memory: &Memory,
    launch: &Launch,
    options: &Options,
    is_fine: impl Fn(&Report) -> bool,
) {
    let report = program.launch(launch, memory, options).expect("the launch is valid");
    assert!(is_fine(&report), "{report}");
    bencher.counter(ItemsCount::new(report.counters.total())).bench_local(|| program.launch(launch, memory, options));
}

/// What nvcc made, and memory for it.
fn corpus(text: &str) -> (Program, Memory) {
    (Program::parse(text).expect("the kernels of the corpus are well formed"), Memory::new(1 << 28))
}

/// With and without checks; on the host's best instructions and on those of every host of its architecture.
const MODES: [&str; 4] = ["plain", "sanitised", "plain, baseline", "sanitised, baseline"];

fn options(name: &str) -> Options {
    let sanitizers = if name.starts_with("plain") { Sanitizers::NONE } else { Sanitizers::ALL };
    Options { sanitizers, threads: Some(1), baseline: name.ends_with("baseline"), ..Options::default() }
}

#[divan::bench(args = MODES)]
fn saxpy(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, SAXPY, 1024, options(name));
}

#[divan::bench(args = MODES)]
fn integer_loop(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, INTEGER_LOOP, 1, options(name));
}

#[divan::bench(args = MODES)]
fn fma_loop(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, FMA_LOOP, 1, options(name));
}

#[divan::bench(args = MODES)]
fn reduction(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, REDUCTION, 256, options(name));
}

/// Blocks that communicate: they run in turns, and each access of one is compared with those of the others.
#[divan::bench(args = MODES)]
fn arrivals(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, ARRIVALS, 1024, options(name));
}

/// nvcc's row softmax of 4096 × 4096 f32, the whole launch.
#[divan::bench(args = MODES, sample_count = 5)]
fn softmax(bencher: divan::Bencher<'_, '_>, name: &str) {
    rows(bencher, &options(name));
}

/// The same with sanitizers, on so many host threads.
#[divan::bench(args = [1, 2, 4], sample_count = 5)]
fn softmax_by_host_threads(bencher: divan::Bencher<'_, '_>, threads: usize) {
    rows(bencher, &Options { threads: Some(threads), ..options("sanitised") });
}

fn rows(bencher: divan::Bencher<'_, '_>, options: &Options) {
    const SIDE: u64 = 4096;
    let (program, memory) = corpus(include_str!("../tests/corpus/nvcc/rows.ptx"));
    let [x, z] = ["x", "z"].map(|label| memory.alloc(SIDE * SIDE * 4, label).expect("the capacity suffices"));
    let row: Vec<u8> = (0..SIDE).flat_map(|i| ((i % 257) as f32 * 0.03).to_le_bytes()).collect();
    for at in 0..SIDE {
        memory.write(x + at * SIDE * 4, &row).expect("the range is allocated");
    }
    let launch = Launch {
        entry: "softmax".into(),
        grid: [SIDE as u32, 1, 1],
        block: [256, 1, 1],
        args: vec![(SIDE as u32).into(), x.into(), z.into()],
        ..Launch::default()
    };
    measure(bencher, &program, &memory, &launch, options, Report::is_clean);
}

/// A product of 512 × 512 × 512 in bf16, the whole launch; with sanitizers also by the model of Hopper's tensor cores.
const SIDE: u64 = 512;

/// Two matrices of values of bf16 between 1 and 2, and one of f32.
fn matrices(memory: &Memory) -> [u64; 3] {
    let [a, b] = ["a", "b"].map(|label| memory.alloc(SIDE * SIDE * 2, label).expect("the capacity suffices"));
    let c = memory.alloc(SIDE * SIDE * 4, "c").expect("the capacity suffices");
    let factor: Vec<u8> = (0..SIDE * SIDE).flat_map(|i| (0x3f80 + (i * 37 % 128) as u16).to_le_bytes()).collect();
    for at in [a, b] {
        memory.write(at, &factor).expect("the range is allocated");
    }
    [a, b, c]
}

fn of_matrices(name: &str) -> Options {
    let matrix = if name.ends_with("Hopper") { MatrixModel::Hopper } else { MatrixModel::Fast };
    Options { matrix, ..options(name) }
}

/// nvcc's by `mma.sync`, `ldmatrix` and `cp.async`.
#[divan::bench(args = ["plain", "sanitised", "sanitised, Hopper", "plain, baseline"], sample_count = 5)]
fn product(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (program, memory) = corpus(include_str!("../tests/corpus/nvcc/tensor.ptx"));
    let [a, b, c] = matrices(&memory);
    let side = SIDE as u32;
    let launch = Launch {
        entry: "gemm_bf16".into(),
        grid: [side / 64, side / 64, 1],
        block: [128, 1, 1],
        args: vec![side.into(), side.into(), side.into(), a.into(), b.into(), c.into()],
        ..Launch::default()
    };
    measure(bencher, &program, &memory, &launch, &of_matrices(name), Report::is_clean);
}

/// One on CUTLASS's pipeline, by `wgmma` of 64 × 128 × 16, tensor copies and a pipeline of two warpgroups and one.
#[divan::bench(args = ["plain", "sanitised", "sanitised, Hopper", "plain, baseline"], sample_count = 5)]
fn warpgroup_product(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (program, memory) = corpus(include_str!("../tests/corpus/nvcc/warpgroups.ptx"));
    let [a, b, c] = matrices(&memory);
    let side = SIDE as u32;
    let map = |address| {
        let map = TensorMap {
            format: Format::Bf16,
            address,
            dimensions: vec![
                Dimension { size: SIDE, stride: 2, box_size: 64, element_stride: 1 },
                Dimension { size: SIDE, stride: 2 * SIDE, box_size: 128, element_stride: 1 },
            ],
            swizzle: Swizzle::B128,
            fill: Fill::Zero,
            promotion: Promotion::None,
        };
        Arg(map.encode().expect("the map is right").to_vec())
    };
    let launch = Launch {
        entry: "bf16_product".into(),
        grid: [side / 128, side / 128, 1],
        block: [384, 1, 1],
        dynamic_shared: 3 * 256 * 128 + 1024,
        args: vec![map(a), map(b), c.into(), side.into(), side.into(), side.into()],
        ..Launch::default()
    };
    measure(bencher, &program, &memory, &launch, &of_matrices(name), Report::is_clean);
}
