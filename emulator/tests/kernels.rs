//! Whole kernels: what they compute, and that nothing is found in correct ones.

use crate::common::{Bench, module};

const SAXPY: &str = "\
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
ld.param.f32 %f0, [a];
ld.param.u32 %r0, [n];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
setp.ge.u32 %p0, %r4, %r0;
@%p0 bra DONE;
cvta.to.global.u64 %rd0, %rd0;
cvta.to.global.u64 %rd1, %rd1;
mul.wide.u32 %rd2, %r4, 4;
add.u64 %rd0, %rd0, %rd2;
add.u64 %rd1, %rd1, %rd2;
ld.global.f32 %f1, [%rd0];
ld.global.f32 %f2, [%rd1];
fma.rn.f32 %f2, %f0, %f1, %f2;
st.global.f32 [%rd1], %f2;
DONE:
ret;";

#[test]
fn saxpy() {
    for (n, grid, block) in [(1000u32, 4, 256), (77, 3, 45), (1, 1, 1), (4096, 64, 64)] {
        let mut bench = Bench::new(grid, block);
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let y: Vec<f32> = (0..n).map(|i| 1.0 - i as f32).collect();
        let bits = |v: &[f32]| v.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
        bench.buffer("x", &bits(&x));
        let base = bench.buffer("y", &bits(&y));
        bench.args.push(1.1f32.into());
        bench.args.push(n.into());
        let report = bench.clean(&module(".param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n", SAXPY));
        let expected: Vec<u32> = x.iter().zip(&y).map(|(x, y)| 1.1f32.mul_add(*x, *y).to_bits()).collect();
        let threads = (grid * block).min(n) as usize;
        assert_eq!(bench.words(base, n as usize)[..threads], expected[..threads]);
        assert_eq!(report.counters.global.bytes_stored, 4 * threads as u64);
        assert_eq!(report.counters.ctas, u64::from(grid));
    }
}
