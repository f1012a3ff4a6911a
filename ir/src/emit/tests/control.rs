//! Loops, branches, variables; and texts that show what emission chooses.

use expect_test::{Expect, expect};
use tilewright_kernel::ElementType::{self, Bf16, Bool, F16, F32, I32, U8, U32};
use tilewright_kernel::algorithm::{Binary, Compare};

use super::launched::{from_bytes, to_bytes};
use super::machine::{execute, run};
use super::{THREADS, build, global_index, scalar, tensor, text};
use crate::emit::{EmitError, emit};
use crate::kernel_ir::Memory::Parameter;
use crate::kernel_ir::{Builder, Guard, Type};

/// Nested loops of 0 to 6 iterations, a branch with two sides, and variables that live across both.
#[test]
fn nested_loops_and_branches() {
    let host = |x: u32, y: u32| {
        let (mut sum, mut last) = (0_u32, 77_u32);
        for i in 0..x % 7 {
            for j in 0..(i + y) % 4 {
                if (i + j) % 3 == y % 3 {
                    sum = sum.wrapping_add(i * 10 + j);
                } else {
                    last = last.wrapping_mul(3).wrapping_add(sum);
                }
            }
            if i == 2 {
                last ^= 5;
            }
        }
        sum.wrapping_mul(31).wrapping_add(last)
    };
    for index in [Type::I32, Type::I64] {
        let x: Vec<u64> = (0..300).map(|n| n % 17).collect();
        let y: Vec<u64> = (0..300).map(|n| n / 17 + n % 5).collect();
        let found = run(&[(U32, &x), (U32, &y)], &[U32], |b, v| {
            let [x, y] = [v[0], v[1]].map(|v| {
                let wide = b.to_index(v, Type::I64);
                b.index_convert(wide, index)
            });
            let (seed, zero) = (b.literal(U32, 77), b.literal(U32, 0));
            let (sum, last) = (b.variable(zero), b.variable(seed));
            let [two, three, four, seven, ten] = [2, 3, 4, 7, 10].map(|v| b.index_literal(index, v));
            let outer = b.index_mod(x, seven);
            let i = b.begin_loop(outer);
            let iy = b.index_add(i, y);
            let inner = b.index_mod(iy, four);
            let j = b.begin_loop(inner);
            let (ij, y3) = (b.index_add(i, j), b.index_mod(y, three));
            let ij3 = b.index_mod(ij, three);
            let same = b.index_compare(Compare::Eq, ij3, y3);
            b.begin_if(same);
            let tens = b.index_mul(i, ten);
            let term = b.index_add(tens, j);
            let term = b.from_index(term, U32);
            let old = b.get(sum);
            let new = b.binary(Binary::Add, old, term);
            b.set(sum, new);
            b.begin_else();
            let (s, l) = (b.get(sum), b.get(last));
            let factor = b.literal(U32, 3);
            let new = b.fma(l, factor, s);
            b.set(last, new);
            b.end_if();
            b.end_loop();
            let is_two = b.index_compare(Compare::Eq, i, two);
            b.begin_if(is_two);
            let (l, five) = (b.get(last), b.literal(U32, 5));
            let new = b.binary(Binary::Xor, l, five);
            b.set(last, new);
            b.end_if();
            b.end_loop();
            let (s, l, factor) = (b.get(sum), b.get(last), b.literal(U32, 31));
            vec![b.fma(s, factor, l)]
        });
        for n in 0..x.len() {
            assert_eq!(found[0][n], u64::from(host(x[n] as u32, y[n] as u32)), "{index}: {}, {}", x[n], y[n]);
        }
    }
}

/// A loop is the same however it is cut: at a constant, at sizes in any order, before its start and past its end; with
/// branches that ask for a part, for none, and for what no part decides. What only a rare branch needs is in it.
#[test]
fn cut_loops_are_the_same_loops() {
    let host = |count: i64, cuts: [i64; 3]| {
        let mut sum = 0_i64;
        for i in 0..count {
            sum = sum.wrapping_mul(3) + i;
            for (n, cut) in cuts.into_iter().enumerate() {
                if i >= cut || n == 1 && i < 1 {
                    sum ^= (i + 5 * n as i64) * 7;
                } else if n == 2 {
                    sum += 11;
                }
            }
            sum &= 0xFFFF_FFFF;
        }
        sum as u32
    };
    let [a, b, c]: [Vec<u64>; 3] = [
        (0..512).map(|n| n % 8).collect(),
        (0..512).map(|n| n / 8 % 8).collect(),
        (0..512).map(|n| n / 64 % 8).collect(),
    ];
    for index in [Type::I32, Type::I64] {
        let found = run(&[(U32, &a), (U32, &b), (U32, &c)], &[U32], |b, v| {
            let [count, second, third] = [v[0], v[1], v[2]].map(|v| {
                let wide = b.to_index(v, Type::I64);
                b.index_convert(wide, index)
            });
            // From −2 to 5.
            let two = b.index_literal(index, 2);
            let second = b.index_sub(second, two);
            let [one, seven] = [1, 7].map(|n| b.index_literal(index, n));
            let zero = b.literal(U32, 0);
            let sum = b.variable(zero);
            let i = b.begin_loop(count);
            let add = |b: &mut Builder, op: Binary, value| {
                let (value, old) = (b.from_index(value, U32), b.get(sum));
                let new = b.binary(op, old, value);
                b.set(sum, new);
            };
            let (three, old) = (b.literal(U32, 3), b.get(sum));
            let tripled = b.binary(Binary::Mul, old, three);
            b.set(sum, tripled);
            add(b, Binary::Add, i);
            let first = b.cut_loop(i, one);
            for (n, cut) in [one, second, third].into_iter().enumerate() {
                let mut holds = b.cut_loop(i, cut);
                if n == 1 {
                    let not = b.not(first);
                    holds = b.binary(Binary::Or, holds, not);
                }
                if n == 0 {
                    b.begin_rare_if(holds);
                } else {
                    b.begin_if(holds);
                }
                let more = b.index_literal(index, 5 * n as i64);
                let more = b.index_add(i, more);
                let more = b.index_mul(more, seven);
                add(b, Binary::Xor, more);
                if n == 2 {
                    b.begin_else();
                    let eleven = b.index_literal(index, 11);
                    add(b, Binary::Add, eleven);
                }
                b.end_if();
            }
            b.end_loop();
            vec![b.get(sum)]
        });
        for n in 0..a.len() {
            let cuts = [1, b[n] as i64 - 2, c[n] as i64];
            assert_eq!(found[0][n], u64::from(host(a[n] as i64, cuts)), "{index}: {} cut at {cuts:?}", a[n]);
        }
    }
}

/// Of two parts of a loop the first has no branch and nothing of what it needs, and the other has no test of it.
#[test]
fn parts_of_a_loop_have_their_own_code() {
    let kernel = build(vec![tensor("y", I32, true)], |b| {
        let (count, cut) = (b.dim(0, Type::I32), b.index_literal(Type::I32, 8));
        let i = b.begin_loop(count);
        let [seven, nine] = [7, 9].map(|n| b.index_literal(Type::I32, n));
        let ragged = b.cut_loop(i, cut);
        let own = b.index_mul(i, seven);
        let (shared, value) = (b.index_mul(i, nine), b.literal(I32, 1));
        b.begin_rare_if(ragged);
        let at = b.index_add(own, shared);
        b.store(Parameter(0), at, &[value]);
        b.end_if();
        b.store(Parameter(0), shared, &[value]);
        b.end_loop();
    });
    let text = text(&kernel);
    let loops: Vec<&str> =
        text.split("_loop:").skip(1).map(|part| part.split("_loop;").next().unwrap_or(part)).collect();
    let stores = loops.iter().map(|part| part.matches("st.global").count()).collect::<Vec<_>>();
    let multiplied = loops.iter().map(|part| part.matches(", 7").count()).collect::<Vec<_>>();
    assert_eq!((stores, multiplied), (vec![1, 2], vec![0, 1]), "{text}");
    assert!(loops.iter().all(|part| !part.contains("@!")), "{text}");
}

/// A store of 1 is visible to no thread whose condition does not hold, predicated or jumped over.
#[test]
fn short_and_long_branches() {
    for length in [1, 12] {
        let kernel = build(vec![tensor("y", I32, true)], |b| {
            let (i, three, zero) = (global_index(b), b.index_literal(Type::I32, 3), b.index_literal(Type::I32, 0));
            let rest = b.index_mod(i, three);
            let p = b.index_compare(Compare::Eq, rest, zero);
            let width = b.index_literal(Type::I32, length);
            b.begin_if(p);
            for n in 0..length {
                let (offset, one) = (b.index_literal(Type::I32, n), b.literal(I32, 1));
                let row = b.index_mul(i, width);
                let at = b.index_add(row, offset);
                b.store(Parameter(0), at, &[one]);
            }
            b.end_if();
        });
        let text = text(&kernel);
        assert_eq!(text.contains("bra"), length > 4, "{text}");
        let zeros = vec![0; (THREADS as i64 * length) as usize];
        let found = from_bytes(I32, &execute(&kernel, 0, 1, &[to_bytes(I32, &zeros)], false)[0]);
        let expected: Vec<u64> = (0..zeros.len()).map(|n| u64::from(n as i64 / length % 3 == 0)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn every_scalar_arrives() {
    for element in ElementType::ALL {
        let bits = if element == Bool { 1 } else { 0xA5A5_A5A5_A5A5_25A5 & super::oracle::mask(element) };
        let kernel = build(vec![scalar("a", U8), scalar("s", element), tensor("y", element, true)], |b| {
            let (i, s) = (b.thread_index(), b.scalar(1));
            b.store(Parameter(2), i, &[s]);
        });
        let zeros = to_bytes(element, &vec![0; THREADS as usize]);
        let found = execute(&kernel, 0, 1, &[vec![1], to_bytes(element, &[bits]), zeros], true);
        assert_eq!(from_bytes(element, &found[2]), vec![bits; THREADS as usize], "{element}");
    }
}

fn check(kernel: &crate::kernel_ir::Kernel, expected: Expect) {
    expected.assert_eq(&text(kernel));
}

/// Four elements a thread, guarded loads, a branch that is predicated, the line table.
#[test]
fn text_of_a_vector_kernel() {
    let kernel = build(vec![scalar("a", F32), tensor("x", F32, false), tensor("y", F32, true)], |b| {
        let (i, n, a) = (global_index(b), b.dim(0, Type::I32), b.scalar(0));
        let four = b.index_literal(Type::I32, 4);
        let first = b.index_mul(i, four);
        let p = b.index_compare(Compare::Lt, first, n);
        let zero = b.f32_literal(0.0);
        b.line(1);
        let x = b.load(Parameter(1), first, 4, Some(Guard { predicate: p, otherwise: &[zero; 4] }));
        b.line(2);
        let products: Vec<_> = x.into_iter().map(|x| b.binary(Binary::Mul, a, x)).collect();
        b.begin_if(p);
        b.store(Parameter(2), first, &products);
        b.end_if();
    });
    check(
        &kernel,
        expect![[r#"
        .version 7.0
        .target sm_80
        .address_size 64
        .file 1 "kernel"

        .visible .entry k(
            .param .f32 arg0_a,
            .param .u64 arg1_x,
            .param .u64 arg2_y,
            .param .s64 arg3_N
        )
        .reqntid 128, 1, 1
        .minnctapersm 1
        {
            .reg .pred %p<1>;
            .reg .b32 %r<6>;
            .reg .b64 %rd<7>;
            .reg .f32 %f<9>;
            ld.param.u64 %rd0, [arg1_x];
            cvta.to.global.u64 %rd1, %rd0;
            ld.param.u64 %rd2, [arg2_y];
            cvta.to.global.u64 %rd3, %rd2;
            mov.u32 %r0, %ctaid.x;
            mov.u32 %r1, %tid.x;
            mul.lo.s32 %r2, %r0, 128;
            add.s32 %r3, %r1, %r2;
            ld.param.s64 %rd4, [arg3_N];
            cvt.u32.u64 %r4, %rd4;
            ld.param.f32 %f0, [arg0_a];
            mul.lo.s32 %r5, %r3, 4;
            mad.wide.s32 %rd5, %r5, 4, %rd1;
            mad.wide.s32 %rd6, %r5, 4, %rd3;
            setp.lt.s32 %p0, %r5, %r4;
            .loc 1 1 0
            mov.f32 %f1, 0f00000000;
            mov.f32 %f2, 0f00000000;
            mov.f32 %f3, 0f00000000;
            mov.f32 %f4, 0f00000000;
            @%p0 ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd5];
            .loc 1 2 0
            mul.rn.f32 %f5, %f0, %f1;
            mul.rn.f32 %f6, %f0, %f2;
            mul.rn.f32 %f7, %f0, %f3;
            mul.rn.f32 %f8, %f0, %f4;
            @%p0 st.global.v4.f32 [%rd6], {%f5, %f6, %f7, %f8};
            ret;
        }
    "#]],
    );
}

/// A uniform loop, packed lanes, an address that leaves the loop, a cast with two roundings avoided.
#[test]
fn text_of_a_reduction() {
    let kernel = build(vec![tensor("x", Bf16, false), tensor("z", F16, true)], |b| {
        let (i, n, zero) = (global_index(b), b.dim(0, Type::I64), b.f32_literal(0.0));
        let row = b.index_convert(i, Type::I64);
        let row = b.index_mul(row, n);
        let sum = b.variable(zero);
        let two = b.index_literal(Type::I64, 2);
        let count = b.index_div(n, two);
        let k = b.begin_loop(count);
        let column = b.index_mul(k, two);
        let at = b.index_add(row, column);
        for x in b.load(Parameter(0), at, 2, None) {
            let (x, old) = (b.cast(x, F32), b.get(sum));
            let new = b.binary(Binary::Add, old, x);
            b.set(sum, new);
        }
        b.end_loop();
        let total = b.get(sum);
        let half = b.cast(total, F16);
        b.store(Parameter(1), i, &[half]);
    });
    check(
        &kernel,
        expect![[r#"
        .version 7.0
        .target sm_80
        .address_size 64
        .file 1 "kernel"

        .visible .entry k(
            .param .u64 arg0_x,
            .param .u64 arg1_z,
            .param .s64 arg2_N
        )
        .reqntid 128, 1, 1
        .minnctapersm 1
        {
            .reg .pred %p<2>;
            .reg .b16 %h<5>;
            .reg .b32 %r<5>;
            .reg .b64 %rd<13>;
            .reg .f32 %f<8>;
            ld.param.u64 %rd0, [arg0_x];
            cvta.to.global.u64 %rd1, %rd0;
            ld.param.u64 %rd2, [arg1_z];
            cvta.to.global.u64 %rd3, %rd2;
            mov.u32 %r0, %ctaid.x;
            mov.u32 %r1, %tid.x;
            mul.lo.s32 %r2, %r0, 128;
            add.s32 %r3, %r1, %r2;
            mad.wide.s32 %rd4, %r3, 2, %rd3;
            ld.param.s64 %rd5, [arg2_N];
            cvt.s64.s32 %rd6, %r3;
            mul.lo.s64 %rd7, %rd5, %rd6;
            mov.f32 %f0, 0f00000000;
            shr.u64 %rd8, %rd5, 1;
            mov.b64 %rd9, 0;
            setp.le.s64 %p0, %rd8, 0;
            @%p0 bra.uni $L1_end;
        $L0_loop:
            mul.lo.s64 %rd10, %rd9, 2;
            add.s64 %rd11, %rd7, %rd10;
            mad.lo.s64 %rd12, %rd11, 2, %rd1;
            ld.global.nc.b32 %r4, [%rd12];
            mov.b32 {%h0, %h1}, %r4;
            mov.b16 %h2, 0;
            mov.b32 %f1, {%h2, %h0};
            mov.f32 %f2, %f0;
            add.rn.f32 %f3, %f2, %f1;
            mov.f32 %f0, %f3;
            mov.b16 %h3, 0;
            mov.b32 %f4, {%h3, %h1};
            mov.f32 %f5, %f0;
            add.rn.f32 %f6, %f5, %f4;
            mov.f32 %f0, %f6;
            add.s64 %rd9, %rd9, 1;
            setp.lt.s64 %p1, %rd9, %rd8;
            @%p1 bra.uni $L0_loop;
        $L1_end:
            mov.f32 %f7, %f0;
            cvt.rn.f16.f32 %h4, %f7;
            st.global.b16 [%rd4], %h4;
            ret;
        }
    "#]],
    );
}

/// Lanes that have gone apart may be in different iterations of what comes after, until they wait for each other.
#[test]
fn a_loop_is_uniform_where_lanes_are_together() {
    let kernel = build(vec![tensor("x", F32, false), tensor("y", F32, true)], |b| {
        let (thread, n) = (b.thread_index(), b.dim(0, Type::I32));
        let uniform = |b: &mut Builder| {
            b.begin_loop(n);
            let one = b.f32_literal(1.0);
            b.store(Parameter(1), thread, &[one]);
            b.end_loop();
        };
        let x = b.load(Parameter(0), thread, 1, None)[0];
        let parting = |b: &mut Builder| {
            b.begin_loop(thread);
            b.store(Parameter(1), thread, &[x]);
            b.end_loop();
        };
        uniform(b);
        parting(b);
        uniform(b);
        b.bar_sync();
        uniform(b);
        // Lanes part in the body, and meet at its end.
        b.begin_loop(n);
        uniform(b);
        parting(b);
        uniform(b);
        b.bar_sync();
        b.end_loop();
    });
    let text = emit(&[&kernel], "kernel").expect("it emits").to_string();
    let branches: Vec<&str> = (text.lines().filter(|line| line.contains("bra") && line.contains("_loop")))
        .map(|line| if line.contains("bra.uni") { "uni" } else { "bra" })
        .collect();
    // The last one belongs to the loop around the three before it.
    assert_eq!(branches, ["uni", "bra", "bra", "uni", "uni", "bra", "bra", "uni"]);
}

#[test]
fn entries_share_a_module() {
    let entry = |name: &str, index: Type| {
        let mut kernel = build(vec![tensor("y", F32, true)], |b| {
            let (i, one) = (b.thread_index(), b.f32_literal(1.0));
            let i = b.index_convert(i, index);
            b.store(Parameter(0), i, &[one]);
        });
        name.clone_into(&mut kernel.signature.name);
        kernel
    };
    let module = emit(&[&entry("fill", Type::I32), &entry("fill_wide", Type::I64)], "fill").expect("it emits");
    let names: Vec<_> = module.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["fill", "fill_wide"]);
    tilewright_ptx::load(&module.to_string()).expect("it parses");
}

#[test]
fn what_cannot_be_emitted_is_refused() {
    let mut kernel = build(vec![tensor("x", F32, false), tensor("y", Bool, true)], |b| {
        let i = b.thread_index();
        let value = b.load(Parameter(0), i, 1, None)[0];
        b.line(3);
        let value = b.cast(value, Bool);
        b.store(Parameter(1), i, &[value]);
    });
    let refused = emit(&[&kernel], "k");
    assert!(matches!(refused, Err(EmitError::Invalid { entry: 0, .. })));
    kernel.signature.threads = 0;
    assert!(matches!(emit(&[&kernel], "k"), Err(EmitError::Invalid { entry: 0, .. })));
    let mut kernel = build(vec![], |_| {});
    "no name".clone_into(&mut kernel.signature.name);
    assert!(matches!(emit(&[&kernel], "k"), Err(EmitError::Build(_))));
}
