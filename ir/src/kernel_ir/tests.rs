//! Tests of builder, printer and verifier.

use expect_test::{Expect, expect};
use tilewright_kernel::ElementType::{self, Bool, F16, F32, I8, I32, U64};
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::info::Argument;
use tilewright_kernel::target::CLUSTER_LIMIT;

use super::*;

/// x: f32, read; z: f32, written; a scalar a: f16; a dimension N in 0..2^31.
fn signature() -> Signature {
    let tensor = |name: &str, written| Parameter {
        name: name.to_owned(),
        element: F32,
        kind: ParameterKind::Tensor { written },
    };
    let scalar = Parameter { name: "a".to_owned(), element: F16, kind: ParameterKind::Scalar };
    Signature {
        name: "k".to_owned(),
        parameters: vec![tensor("x", false), tensor("z", true), scalar],
        dims: vec![Dimension { name: "N".to_owned(), range: Range::new(0, i64::from(i32::MAX)) }],
        maps: vec![Map { name: "m".to_owned(), rank: 2 }],
        arguments: vec![
            Argument::Address(0),
            Argument::Address(1),
            Argument::Scalar(2),
            Argument::Dim(0),
            Argument::Map(0),
        ],
        threads: 256,
        cluster: 1,
    }
}

fn check(build: impl FnOnce(&mut Builder), expected: Expect) {
    let mut b = Builder::new(signature());
    build(&mut b);
    let kernel = b.finish().expect("balanced");
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    expected.assert_eq(&kernel.to_string());
}

fn tile() -> Buffer {
    Buffer { name: "s".to_owned(), element: F32, elements: 64, alignment: 128, slots: 1, sharing: Sharing::Block }
}

/// A run from this place of a buffer to the start of a tensor.
fn copy_run(b: &mut Builder, parameter: u16, at: ValueId, bytes: u32) {
    let (buffer, zero) = (b.buffer(tile()), b.index_literal(Type::I32, 0));
    let part = TensorPart::Run { parameter, offset: zero, bytes };
    b.begin_elect();
    b.bulk_copy(BulkCopy { part, buffer, slot: zero, offset: at, barrier: None, evict: None, multicast: None });
    b.end_elect();
}

#[test]
fn runs_are_copied_in_loops() {
    check(
        |b| {
            let (zero, barrier) = (b.index_literal(Type::I32, 0), b.mbarrier(1));
            let (buffer, four) = (b.buffer(tile()), b.index_literal(Type::I32, 4));
            let (wide, block) = (b.dim(0, Type::I64), b.block_index());
            b.bar_sync();
            b.begin_elect();
            b.mbarrier_expect_tx(barrier, zero, 256);
            let n = b.begin_loop(four);
            let sixteen = b.index_literal(Type::I32, 16);
            let offset = b.index_mul(n, sixteen);
            let n = b.index_convert(n, Type::I64);
            let from = b.index_mul(n, wide);
            let part = TensorPart::Run { parameter: 0, offset: from, bytes: 64 };
            b.bulk_copy(BulkCopy {
                part,
                buffer,
                slot: zero,
                offset,
                barrier: Some(barrier),
                evict: None,
                multicast: None,
            });
            let part = TensorPart::Run { parameter: 1, offset: block, bytes: 64 };
            let evict = Some(Evict::First);
            b.bulk_copy(BulkCopy { part, buffer, slot: zero, offset, barrier: None, evict, multicast: None });
            b.end_loop();
            b.end_elect();
        },
        expect![[r#"
            kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 {
                shared s: f32[64] aligned 128
                %0: index64 = N
                %1: index32 = block
                sync
                elect {
                    barrier0 expects 256 bytes
                    for %2 in 0..4 {
                        %3: index32 = %2 * 16
                        %4: index64 = %2 from index32
                        %5: index64 = %0 * %4
                        copy 64 bytes of x[%5] to s[%3], barrier0
                        copy s[%3] to 64 bytes of z[%1], evict first
                    }
                }
            }
        "#]],
    );
}

#[test]
fn lanes_exchange_values() {
    check(
        |b| {
            let (n, thread) = (b.dim(0, Type::I32), b.thread_index());
            let buffer = b.buffer(tile());
            let at = b.begin_loop(n);
            let index = b.shuffle(thread, 16);
            // The same operands again are another exchange; what nobody uses is none.
            let again = b.shuffle(thread, 16);
            assert!(again != index && !b.facts(index).uniform && b.facts(index).range == Range::ALL);
            let agreed = b.shuffle(at, 1);
            assert!(b.facts(agreed).uniform);
            let unused = b.shuffle(again, 2);
            b.shuffle(unused, 4);
            let sum = b.index_add(index, agreed);
            let value = b.from_index(sum, F32);
            let value = b.shuffle(value, 31);
            b.bar_sync();
            let first = b.index_literal(Type::I32, 0);
            b.lifetime_start(buffer, first);
            b.store(Memory::Buffer(buffer), thread, &[value]);
            b.end_loop();
        },
        expect![[r#"
            kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 {
                shared s: f32[64] aligned 128
                %0: index32 = N
                %1: index32 = thread
                for %2 in 0..%0 {
                    %3: index32 = %1 of lane ^ 16
                    %4: index32 = %2 of lane ^ 1
                    %5: index32 = %3 + %4
                    %6: f32 = %5 from index32
                    %7: f32 = %6 of lane ^ 31
                    sync
                    renew s
                    s[%1] = %7
                }
            }
        "#]],
    );
}

#[test]
fn copies_stand_where_every_thread_comes() {
    check(
        |b| {
            let (n, thread, zero) = (b.dim(0, Type::I32), b.thread_index(), b.index_literal(Type::I32, 0));
            let (buffer, barrier) = (b.buffer(tile()), b.mbarrier(1));
            let parity = b.variable(zero);
            let at = b.begin_loop(n);
            b.bar_sync();
            b.begin_elect();
            b.mbarrier_expect_tx(barrier, zero, 256);
            b.bulk_copy(BulkCopy {
                part: TensorPart::Tile { map: 0, start: vec![zero, at] },
                buffer,
                slot: zero,
                offset: zero,
                barrier: Some(barrier),
                evict: None,
                multicast: None,
            });
            b.end_elect();
            let phase = b.get(parity);
            b.mbarrier_wait(barrier, zero, phase);
            let one = b.index_literal(Type::I32, 1);
            let next = b.index_xor(phase, one);
            b.set(parity, next);
            // Only after all have waited do they part.
            let few = b.index_literal(Type::I32, 64);
            let some = b.index_compare(Compare::Lt, thread, few);
            b.begin_if(some);
            let value = b.load(Memory::Buffer(buffer), thread, 1, None);
            // (thread + at) − at is thread again.
            let there = b.index_add(thread, at);
            let here = b.index_sub(there, at);
            b.store(Memory::Parameter(1), here, &value);
            b.end_if();
            b.end_loop();
        },
        expect![[r#"
            kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 {
                shared s: f32[64] aligned 128
                %0: index32 = N
                %1: index32 = thread
                var v0: index32 = 0
                %2: bool = %1 < 64
                for %3 in 0..%0 {
                    sync
                    elect {
                        barrier0 expects 256 bytes
                        copy map m at (0, %3) to s[0], barrier0
                    }
                    %4: index32 = v0
                    await barrier0 phase %4
                    %5: index32 = %4 ^ 1
                    v0 = %5
                    if %2 {
                        %6: f32 = s[%1]
                        z[%1] = %6
                    }
                }
            }
        "#]],
    );
}

#[test]
fn a_loop_computes_only_what_depends_on_it() {
    check(
        |b| {
            let (block, thread, n) = (b.block_index(), b.thread_index(), b.dim(0, Type::I32));
            let threads = b.index_literal(Type::I32, 256);
            let base = b.index_mul(block, threads);
            let i = b.index_add(base, thread);
            let p = b.index_compare(Compare::Lt, i, n);
            b.line(1);
            b.begin_if(p);
            let zero = b.f32_literal(0.0);
            let sum = b.variable(zero);
            let k = b.begin_loop(n);
            let row = b.index_mul(i, n);
            let at = b.index_add(row, k);
            let four = b.index_literal(Type::I32, 4);
            let shifted = b.index_add(at, four);
            let inside = b.in_range(shifted, n);
            let guard = Guard { predicate: inside, otherwise: &[zero] };
            let x = b.load(Memory::Parameter(0), at, 1, None)[0];
            let y = b.load(Memory::Parameter(0), shifted, 1, Some(guard))[0];
            let again = b.load(Memory::Parameter(0), at, 1, None)[0];
            assert_eq!(x, again);
            b.line(2);
            let product = b.binary(Binary::Mul, x, y);
            let old = b.get(sum);
            let new = b.binary(Binary::Add, old, product);
            b.set(sum, new);
            b.end_loop();
            let total = b.get(sum);
            b.store(Memory::Parameter(1), i, &[total]);
            b.end_if();
        },
        expect![[r#"
            kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 {
                %0: index32 = block
                %1: index32 = thread
                %2: index32 = N
                %3: index32 = %0 * 256
                %4: index32 = %1 + %3
                %5: bool = %4 < %2
                // statement 1
                %6: index32 = %2 * %4
                if %5 {
                    var v0: f32 = 0.0f32
                    for %7 in 0..%2 {
                        %8: index32 = %7 + %6
                        %9: index32 = %8 + 4
                        %10: bool = %9 < %2
                        %11: f32 = x[%8]
                        %12: f32 = x[%9] if %10 else 0.0f32
                        // statement 2
                        %13: f32 = %11 * %12
                        %14: f32 = v0
                        %15: f32 = %14 + %13
                        v0 = %15
                    }
                    %16: f32 = v0
                    z[%4] = %16
                }
            }
        "#]],
    );
}

#[test]
fn narrow_elements_are_computed_wide_and_cast_back() {
    check(
        |b| {
            let a = b.scalar(2);
            let one = b.literal(F16, 0x3C00);
            let sum = b.binary(Binary::Add, a, one);
            let root = b.unary(UnaryOp::Sqrt, sum);
            let result = b.cast(root, F32);
            let zero = b.index_literal(Type::I64, 0);
            b.store(Memory::Parameter(1), zero, &[result]);
            let n = b.dim(0, Type::I64);
            let byte = b.from_index(n, I8);
            let minus = b.unary(UnaryOp::Neg, byte);
            let less = b.compare(Compare::Ge, minus, byte);
            let literal = b.literal(I8, 0xFF);
            let wide = b.cast(literal, U64);
            let index = b.to_index(wide, Type::I64);
            b.begin_if(less);
            b.store(Memory::Parameter(1), index, &[result]);
            b.begin_else();
            let seven = b.index_literal(Type::I64, 7);
            b.store(Memory::Parameter(1), seven, &[result]);
            b.end_if();
        },
        expect![[r#"
            kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 {
                %0: f16 = a
                %1: f32 = %0 from f16
                %2: f32 = %1 + 1.0f32
                %3: f16 = %2 from f32
                %4: f32 = %3 from f16
                %5: f32 = sqrt(%4)
                %6: f16 = %5 from f32
                %7: f32 = %6 from f16
                z[0] = %7
                %8: index64 = N
                %9: i8 = %8 from index64
                %10: i32 = %9 from i8
                %11: i32 = -%10
                %12: i8 = %11 from i32
                %13: i32 = %12 from i8
                %14: bool = %10 <= %13
                if %14 {
                    z[-1] = %7
                } else {
                    z[7] = %7
                }
            }
        "#]],
    );
}

/// Index expressions, with the range of the thread index (0..256) known.
fn check_index(build: impl FnOnce(&mut Builder, ValueId, ValueId) -> ValueId, expected: &str) {
    let mut b = Builder::new(signature());
    let (n, t) = (b.dim(0, Type::I32), b.thread_index());
    let value = build(&mut b, n, t);
    let zero = b.f32_literal(0.0);
    b.store(Memory::Parameter(1), value, &[zero]);
    let kernel = b.finish().expect("balanced");
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    let text = kernel.to_string();
    let lines: Vec<_> = text.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines[..lines.len() - 1].join("; "), expected);
}

#[test]
fn index_arithmetic_folds() {
    let lit = |b: &mut Builder, v| b.index_literal(Type::I32, v);
    // Constants move outwards and meet.
    check_index(
        |b, n, t| {
            let (three, four) = (lit(b, 3), lit(b, 4));
            let a = b.index_add(t, three);
            let scaled = b.index_mul(a, four);
            let sum = b.index_add(scaled, n);
            b.index_add(sum, four)
        },
        "%0: index32 = N; %1: index32 = thread; %2: index32 = %1 * 4; %3: index32 = %0 + %2; %4: index32 = %3 + 16; z[%4] = 0.0f32",
    );
    // A thread of 256 is in the first block of 256, and is its own remainder.
    check_index(
        |b, _, t| {
            let size = lit(b, 256);
            let (block, within) = (b.index_div(t, size), b.index_mod(t, size));
            let sum = b.index_mul(block, size);
            b.index_add(sum, within)
        },
        "%0: index32 = thread; z[%0] = 0.0f32",
    );
    // Splitting undoes merging.
    check_index(
        |b, n, t| {
            let size = lit(b, 256);
            let merged = b.index_mul(n, size);
            let merged = b.index_add(merged, t);
            let (q, r) = (b.index_div(merged, size), b.index_mod(merged, size));
            assert_eq!((q, r), (n, t));
            q
        },
        "%0: index32 = N; z[%0] = 0.0f32",
    );
    check_index(
        |b, n, t| {
            let (zero, one) = (lit(b, 0), lit(b, 1));
            assert_eq!(b.index_mul(n, one), n);
            assert_eq!(b.index_add(zero, n), n);
            assert_eq!(b.index_sub(n, zero), n);
            assert_eq!(b.index_div(n, one), n);
            assert_eq!(b.index_mod(n, one), zero);
            assert_eq!(b.index_mul(t, zero), zero);
            assert_eq!(b.index_sub(t, t), zero);
            assert_eq!(b.index_xor(t, t), zero);
            let size = lit(b, 256);
            let inside = b.in_range(t, size);
            assert_eq!(b.kernel().pred_literal(inside), Some(true));
            let below = b.index_compare(Compare::Gt, zero, n);
            assert_eq!(b.kernel().pred_literal(below), Some(false));
            let sum = b.index_add(n, t);
            assert_eq!(b.index_add(t, n), sum);
            assert_eq!(b.index_max(t, zero), t);
            b.index_min(t, size)
        },
        "%0: index32 = thread; z[%0] = 0.0f32",
    );
}

/// A difference that is folded to a number is that number whatever the operands are; a multiple of a sum is as far from
/// its terms as it is.
#[test]
fn distances_are_numbers_where_nothing_else_is_left() {
    let mut b = Builder::new(signature());
    let wide = |b: &mut Builder, v| b.index_convert(v, Type::I64);
    let (n, t, block) = (b.dim(0, Type::I64), b.thread_index(), b.block_index());
    let leaves = [n, wide(&mut b, t), wide(&mut b, block)];
    let values = [[5, 3, 7], [1000, 0, 1], [0, 255, 2], [17, 40, 1 << 20]];
    let mut state = 1_u64;
    let mut random = move |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    // Values with what they are for each of `values`.
    let mut known: Vec<(ValueId, Vec<i64>)> =
        leaves.iter().enumerate().map(|(at, leaf)| (*leaf, values.iter().map(|v| v[at]).collect())).collect();
    let (mut folded, mut kept) = (0, 0);
    for _ in 0..4000 {
        let pick = |random: &mut dyn FnMut(u64) -> u64| known[random(known.len().min(8) as u64) as usize].clone();
        let [x, y, z] = [pick(&mut random), pick(&mut random), pick(&mut random)];
        let number = random(9) as i64 - 2;
        let literal = b.index_literal(Type::I64, number);
        // (x ± y)·z + c, and x·z ± y·z in another order, sometimes of something else, or with the other sign.
        let plus = random(2) == 0;
        let sum = if plus { b.index_add(x.0, y.0) } else { b.index_sub(x.0, y.0) };
        let factored = b.index_mul(z.0, sum);
        let factored = b.index_add(factored, literal);
        let other = if random(4) == 0 { pick(&mut random) } else { z.clone() };
        let (left, right) = (b.index_mul(x.0, z.0), b.index_mul(other.0, y.0));
        let adds = if random(4) == 0 { !plus } else { plus };
        let multiplied = if adds { b.index_add(left, right) } else { b.index_sub(left, right) };
        let difference = b.index_sub(factored, multiplied);
        let exact = |at: usize| {
            let (x, y, z, other) = (x.1[at], y.1[at], z.1[at], other.1[at]);
            let [plus, adds] = [plus, adds].map(|plus| if plus { 1 } else { -1 });
            let factored = y.checked_mul(plus)?.checked_add(x)?.checked_mul(z)?.checked_add(number)?;
            let multiplied = x.checked_mul(z)?.checked_add(other.checked_mul(y)?.checked_mul(adds)?)?;
            Some((factored, factored.checked_sub(multiplied)?))
        };
        let all: Option<Vec<(i64, i64)>> = (0..values.len()).map(exact).collect();
        match b.kernel().index_literal(difference) {
            Some(found) => {
                assert!(all.iter().flatten().all(|(_, exact)| *exact == found), "{found}: {all:?}");
                folded += 1;
            }
            None => kept += 1,
        }
        if let Some(all) = all.filter(|all| known.len() < 200 && all.iter().all(|(f, _)| f.unsigned_abs() < 1 << 40)) {
            known.push((factored, all.into_iter().map(|(factored, _)| factored).collect()));
        }
    }
    assert!(folded > 1000 && kept > 1000, "{folded} folded, {kept} kept");
}

/// Negative dividends round down when folded, as they do when computed.
#[test]
fn folded_division_rounds_down() {
    let mut b = Builder::new(signature());
    for a in -9..10 {
        for d in 1..5 {
            let (x, y) = (b.index_literal(Type::I64, a), b.index_literal(Type::I64, d));
            let (q, r) = (b.index_div(x, y), b.index_mod(x, y));
            let k = b.kernel();
            assert_eq!((k.index_literal(q), k.index_literal(r)), (Some(a.div_euclid(d)), Some(a.rem_euclid(d))));
        }
    }
}

/// Long sums are rewritten within bounds, of time and of the stack.
#[test]
fn long_sums_end() {
    let mut b = Builder::new(signature());
    let (t, eight) = (b.thread_index(), b.index_literal(Type::I64, 8));
    let mut sum = b.index_convert(t, Type::I64);
    for n in 1..20_000 {
        let factor = b.index_literal(Type::I64, 8 * n);
        let wide = b.index_convert(t, Type::I64);
        let term = b.index_mul(wide, factor);
        let term = b.index_xor(term, factor);
        let term = b.index_mul(term, eight);
        sum = b.index_add(sum, term);
    }
    let (q, r) = (b.index_div(sum, eight), b.index_mod(sum, eight));
    b.variable(q);
    b.variable(r);
    let kernel = b.finish().expect("balanced");
    assert_eq!(verify(&kernel), Ok(()));
}

/// A rewrite must not read a part that may leave its type: −1·2³⁰·4 + r does not fit 32 bits on its own.
#[test]
fn parts_of_signed_sums_are_not_read_alone() {
    let mut b = Builder::new(signature());
    let n = b.dim(0, Type::I32);
    let thousand = b.index_literal(Type::I32, -1000);
    let signed = b.index_add(n, thousand);
    let four = b.index_literal(Type::I32, 4);
    let scaled = b.index_mul(signed, four);
    let q = b.index_div(scaled, four);
    assert!(matches!(b.kernel().value(q).op, Op::Index(IndexOp::Div, ..)));
}

#[test]
fn known_conditions_and_single_iterations_leave_no_control_flow() {
    check(
        |b| {
            let (one, yes, no) = (b.index_literal(Type::I32, 1), b.bool_literal(true), b.bool_literal(false));
            let value = b.f32_literal(1.5);
            let i = b.begin_loop(one);
            b.begin_if(yes);
            b.store(Memory::Parameter(1), i, &[value]);
            b.begin_else();
            b.store(Memory::Parameter(1), one, &[value]);
            b.end_if();
            b.begin_if(no);
            b.store(Memory::Parameter(1), one, &[value]);
            b.end_if();
            b.begin_if(no);
            b.store(Memory::Parameter(1), one, &[value]);
            b.begin_else();
            let two = b.index_literal(Type::I32, 2);
            b.store(Memory::Parameter(1), two, &[value]);
            b.end_if();
            b.end_loop();
            let thread = b.thread_index();
            let p = b.index_compare(Compare::Lt, thread, one);
            b.begin_if(p);
            b.end_if();
            let guard = Guard { predicate: no, otherwise: &[value, value] };
            assert_eq!(b.load(Memory::Parameter(0), i, 2, Some(guard)), [value, value]);
        },
        expect![[r#"
            kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 {
                z[0] = 1.5f32
                z[2] = 1.5f32
            }
        "#]],
    );
}

#[test]
fn predicates_fold() {
    let mut b = Builder::new(signature());
    let (t, five) = (b.thread_index(), b.index_literal(Type::I32, 5));
    let p = b.index_compare(Compare::Lt, t, five);
    let (yes, no) = (b.bool_literal(true), b.bool_literal(false));
    assert_eq!([b.and(p, yes), b.and(yes, p), b.or(p, no), b.and(p, p)], [p; 4]);
    assert_eq!([b.and(p, no), b.or(p, yes)], [no, yes]);
    let not = b.not(p);
    assert_eq!(b.not(not), p);
    assert_eq!(b.select(yes, t, five), t);
    assert_eq!(b.select(not, t, five), b.select(p, five, t));
}

#[test]
fn half_constants_widen_exactly() {
    let mut b = Builder::new(signature());
    for (half, single) in
        [(0x0001, 2_f32.powi(-24)), (0x8000, -0.0), (0x3C00, 1.0), (0xFBFF, -65504.0), (0x7C00, f32::INFINITY)]
    {
        let half = b.literal(F16, half);
        let wide = b.cast(half, F32);
        assert_eq!(b.kernel().value(wide).op, Op::Literal(u64::from(single.to_bits())));
    }
}

#[test]
fn unbalanced_ends_are_refused() {
    let ends: [fn(&mut Builder); 6] = [
        |b| b.end_loop(),
        |b| b.end_if(),
        |b| b.begin_else(),
        |b| {
            let n = b.dim(0, Type::I64);
            b.begin_loop(n);
        },
        |b| {
            let n = b.dim(0, Type::I64);
            b.begin_loop(n);
            b.end_if();
        },
        |b| {
            let n = b.dim(0, Type::I64);
            b.begin_loop(n);
            b.begin_else();
            b.end_loop();
        },
    ];
    for end in ends {
        let mut b = Builder::new(signature());
        end(&mut b);
        assert_eq!(b.finish(), Err(Unbalanced));
    }
}

/// The first fault of a kernel.
fn fault(build: impl FnOnce(&mut Builder) -> Problem) {
    let mut b = Builder::new(signature());
    let expected = build(&mut b);
    if let Problem::BadTypes(value) = expected {
        b.variable(value); // Unused values are dropped.
    }
    let kernel = b.finish().expect("balanced");
    let faults = verify(&kernel).expect_err(&kernel.to_string());
    assert!(faults.iter().any(|f| f.problem == expected), "wanted {expected:?}, found {faults:?}\n{kernel}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one kernel a fault")]
fn the_verifier_finds_each_fault() {
    let zero = |b: &mut Builder| b.index_literal(Type::I32, 0);
    let one = |b: &mut Builder| b.f32_literal(1.0);
    // Scope: the index, a load and a variable of a loop that has ended.
    fault(|b| {
        let n = b.dim(0, Type::I32);
        let i = b.begin_loop(n);
        let v = b.load(Memory::Parameter(0), i, 1, None)[0];
        b.store(Memory::Parameter(1), i, &[v]);
        b.end_loop();
        b.store(Memory::Parameter(1), i, &[v]);
        Problem::NotInScope(i)
    });
    fault(|b| {
        let (n, v) = (b.dim(0, Type::I32), one(b));
        b.begin_loop(n);
        let variable = b.variable(v);
        b.set(variable, v);
        b.end_loop();
        b.set(variable, v);
        Problem::VariableNotInScope(variable)
    });
    fault(|b| {
        let (z, v) = (zero(b), one(b));
        b.store(Memory::Parameter(0), z, &[v]);
        Problem::ReadOnly(0)
    });
    fault(|b| {
        let z = zero(b);
        b.load(Memory::Parameter(2), z, 1, None);
        Problem::NotATensor(2)
    });
    fault(|b| {
        let z = zero(b);
        b.load(Memory::Parameter(7), z, 1, None);
        Problem::NotATensor(7)
    });
    fault(|b| {
        let z = zero(b);
        b.load(Memory::Parameter(0), z, 3, None);
        Problem::BadLanes(3)
    });
    fault(|b| {
        let z = zero(b);
        b.load(Memory::Parameter(0), z, 2 * MAX_LANES, None);
        Problem::BadLanes(2 * MAX_LANES)
    });
    fault(|b| {
        let z = zero(b);
        b.store(Memory::Parameter(1), z, &[]);
        Problem::BadLanes(0)
    });
    fault(|b| {
        let (z, v) = (zero(b), b.literal(I32, 1));
        b.store(Memory::Parameter(1), z, &[v]);
        Problem::BadOperand(v)
    });
    fault(|b| {
        let v = one(b);
        b.store(Memory::Parameter(1), v, &[v]);
        Problem::BadOperand(v)
    });
    fault(|b| {
        let (z, v, t) = (zero(b), one(b), b.thread_index());
        let predicate = b.index_compare(Compare::Lt, z, t);
        b.load(Memory::Parameter(0), z, 2, Some(Guard { predicate, otherwise: &[v] }));
        Problem::BadAlternatives(1)
    });
    fault(|b| {
        let z = zero(b);
        b.load(Memory::Buffer(BufferId(0)), z, 1, None);
        Problem::NotABuffer(0)
    });
    // Threads disagree on the branch, and on the number of iterations.
    fault(|b| {
        let (z, t) = (zero(b), b.thread_index());
        let first = b.index_compare(Compare::Eq, t, z);
        b.begin_if(first);
        b.bar_sync();
        b.end_if();
        Problem::NotCollective
    });
    fault(|b| {
        let t = b.thread_index();
        b.begin_loop(t);
        b.bar_sync();
        b.end_loop();
        Problem::NotCollective
    });
    // Lanes that do not come give nothing, and have nothing of a buffer's new instance.
    fault(|b| {
        let (z, t) = (zero(b), b.thread_index());
        let first = b.index_compare(Compare::Eq, t, z);
        b.begin_if(first);
        let v = b.shuffle(t, 1);
        b.variable(v);
        b.end_if();
        Problem::NotCollective
    });
    fault(|b| {
        let (t, buffer, z) = (b.thread_index(), b.buffer(tile()), zero(b));
        let value = b.f32_literal(1.0);
        b.store(Memory::Buffer(buffer), z, &[value]);
        b.begin_loop(t);
        b.lifetime_start(buffer, z);
        b.end_loop();
        Problem::NotCollective
    });
    fault(|b| {
        let z = zero(b);
        b.lifetime_start(BufferId(0), z);
        Problem::NotABuffer(0)
    });
    fault(|b| {
        let (buffer, one) = (b.buffer(tile()), b.index_literal(Type::I32, 1));
        let (value, z) = (b.f32_literal(1.0), zero(b));
        b.store(Memory::Buffer(buffer), z, &[value]);
        b.lifetime_start(buffer, one);
        Problem::NotASlot(one)
    });
    // Copies by threads.
    let fetch = |b: &mut Builder, lanes: u32| {
        let (buffer, z) = (b.buffer(tile()), zero(b));
        b.cp_async(CpAsync { parameter: 0, from: z, buffer, to: z, lanes, predicate: None });
    };
    fault(|b| {
        fetch(b, 8);
        Problem::BadFetch(8)
    });
    fault(|b| {
        let (buffer, z) = (b.buffer(tile()), zero(b));
        b.cp_async(CpAsync { parameter: 1, from: z, buffer, to: z, lanes: 4, predicate: None });
        Problem::NotConstant(1)
    });
    fault(|b| {
        b.begin_elect();
        fetch(b, 4);
        b.end_elect();
        Problem::NotCollective
    });
    fault(|b| {
        let t = b.thread_index();
        b.begin_loop(t);
        b.cp_async_wait_group(0);
        b.end_loop();
        Problem::NotCollective
    });
    for mask in [0, 32] {
        fault(|b| {
            let v = one(b);
            let v = b.shuffle(v, mask);
            b.variable(v);
            Problem::BadMask(mask)
        });
    }
    fault(|b| {
        let n = b.dim(0, Type::I32);
        b.begin_loop(n);
        let v = one(b);
        let v = b.shuffle(v, 1);
        b.variable(v);
        b.end_loop();
        b.variable(v);
        Problem::NotInScope(v)
    });
    fault(|b| {
        let (z, barrier) = (zero(b), b.mbarrier(1));
        b.begin_elect();
        b.mbarrier_wait(barrier, z, z);
        b.end_elect();
        Problem::NotCollective
    });
    fault(|b| {
        let (z, barrier) = (zero(b), b.mbarrier(1));
        b.mbarrier_expect_tx(barrier, z, 16);
        Problem::NotCollective
    });
    fault(|b| {
        let z = zero(b);
        b.begin_elect();
        b.mbarrier_expect_tx(MbarrierId(3), z, 16);
        b.end_elect();
        Problem::NotABarrier(3)
    });
    for (map, rank) in [(0, 1), (1, 2)] {
        fault(|b| {
            let (z, barrier) = (zero(b), b.mbarrier(1));
            let buffer = b.buffer(tile());
            b.begin_elect();
            b.bulk_copy(BulkCopy {
                part: TensorPart::Tile { map, start: vec![z; rank] },
                buffer,
                slot: z,
                offset: z,
                barrier: Some(barrier),
                evict: None,
                multicast: None,
            });
            b.end_elect();
            Problem::NotAMap(map)
        });
    }
    fault(|b| {
        let (z, barrier) = (zero(b), b.mbarrier(1));
        let (buffer, behind) = (b.buffer(tile()), b.index_literal(Type::I32, 64));
        b.begin_elect();
        b.bulk_copy(BulkCopy {
            part: TensorPart::Tile { map: 0, start: vec![z, z] },
            buffer,
            slot: z,
            offset: behind,
            barrier: Some(barrier),
            evict: None,
            multicast: None,
        });
        b.end_elect();
        Problem::OutsideBuffer(behind)
    });
    // Runs: to a tensor that is only read, of a length that no copy has, and past the end of the buffer.
    for (parameter, at, bytes, problem) in [
        (0, 0, 16, Problem::ReadOnly(0)),
        (2, 0, 16, Problem::NotATensor(2)),
        (1, 0, 24, Problem::BadRun(24)),
        (1, 0, 0, Problem::BadRun(0)),
    ] {
        fault(|b| {
            let at = b.index_literal(Type::I32, at);
            copy_run(b, parameter, at, bytes);
            problem
        });
    }
    fault(|b| {
        let at = b.index_literal(Type::I32, 61);
        copy_run(b, 1, at, 16);
        Problem::OutsideBuffer(at)
    });
    fault(|b| {
        let n = b.dim(0, Type::I32);
        copy_run(b, 1, n, 16);
        Problem::OutsideBuffer(n)
    });
    // A slot that the ring does not have, and one of which nothing is known.
    fault(|b| {
        let (z, two, barrier) = (zero(b), b.index_literal(Type::I32, 2), b.mbarrier(2));
        b.mbarrier_wait(barrier, two, z);
        Problem::NotASlot(two)
    });
    fault(|b| {
        let (z, barrier) = (zero(b), b.mbarrier(4));
        let slot = b.variable(z);
        let slot = b.get(slot);
        b.mbarrier_wait(barrier, slot, z);
        Problem::NotASlot(slot)
    });
    fault(|b| {
        let buffer = b.buffer(Buffer { slots: 2, ..tile() });
        let (z, barrier) = (zero(b), b.mbarrier(1));
        let one = b.index_literal(Type::I32, 1);
        b.begin_elect();
        b.bulk_copy(BulkCopy {
            part: TensorPart::Tile { map: 0, start: vec![z, z] },
            buffer,
            slot: one,
            offset: z,
            barrier: Some(barrier),
            evict: None,
            multicast: None,
        });
        b.end_elect();
        Problem::NotASlot(one)
    });
    fault(|b| {
        b.bulk_commit_group();
        Problem::NotCollective
    });
    fault(|b| {
        b.begin_elect();
        b.fence_proxy_async();
        b.end_elect();
        Problem::NotCollective
    });
    fault(|b| {
        b.bulk_wait_group_read(0);
        Problem::NotCollective
    });
    fault(|b| {
        let big = b.index_literal(Type::I32, 1 << 31);
        b.load(Memory::Parameter(0), big, 1, None);
        Problem::BadLiteral(big)
    });
    fault(|b| {
        let v = one(b);
        b.begin_loop(v);
        b.end_loop();
        Problem::BadOperand(v)
    });
    fault(|b| {
        let (t, v) = (b.thread_index(), one(b));
        b.begin_if(t);
        let z = zero(b);
        b.store(Memory::Parameter(1), z, &[v]);
        b.end_if();
        Problem::BadOperand(t)
    });
    fault(|b| {
        let (v, w) = (one(b), b.literal(I32, 1));
        let variable = b.variable(v);
        b.set(variable, w);
        Problem::BadOperand(w)
    });
    fault(|b| {
        let (n, t) = (b.dim(0, Type::I64), b.thread_index());
        Problem::BadTypes(b.index_add(n, t))
    });
    fault(|b| {
        let (v, w) = (one(b), b.literal(I32, 1));
        Problem::BadTypes(b.binary(Binary::Add, v, w))
    });
    fault(|b| {
        let v = one(b);
        Problem::BadTypes(b.binary(Binary::Rem, v, v))
    });
    fault(|b| {
        let v = one(b);
        Problem::BadTypes(b.cast(v, Bool))
    });
    fault(|b| Problem::BadTypes(b.scalar(0)));
    fault(|b| {
        let dim = b.dim(1, Type::I64);
        b.variable(dim);
        Problem::DimNotPassed(1)
    });
}

#[test]
fn broken_trees_are_found_without_looping() {
    let mut b = Builder::new(signature());
    let n = b.dim(0, Type::I32);
    b.begin_loop(n);
    let t = b.variable(n);
    b.set(t, n);
    b.end_loop();
    let kernel = b.finish().expect("balanced");
    let mut cyclic = kernel.clone();
    for statement in cyclic.regions.iter_mut().flat_map(|r| &mut r.statements) {
        if let StatementKind::Loop(l) = &mut statement.kind {
            l.body = Kernel::BODY;
        }
    }
    assert!(verify(&cyclic).is_err());
    let mut dangling = kernel.clone();
    dangling.regions.truncate(1);
    assert!(verify(&dangling).is_err());
    let mut crowded = kernel;
    crowded.signature.threads = 1025;
    assert_eq!(verify(&crowded), Err(vec![Fault { line: 0, problem: Problem::BadThreads(1025) }]));
}

#[test]
fn every_literal_prints() {
    let mut b = Builder::new(signature());
    for element in ElementType::ALL {
        let value = b.literal(element, u64::MAX);
        let variable = b.variable(value);
        b.set(variable, value);
    }
    let text = b.finish().expect("balanced").to_string();
    expect![[r#"
        kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 {
            var v0: f64 = NaNf64
            v0 = NaNf64
            var v1: f32 = NaNf32
            v1 = NaNf32
            var v2: tf32 = NaNtf32
            v2 = NaNtf32
            var v3: f16 = 0xfffff16
            v3 = 0xfffff16
            var v4: bf16 = 0xffffbf16
            v4 = 0xffffbf16
            var v5: e4m3 = 0xffe4m3
            v5 = 0xffe4m3
            var v6: e5m2 = 0xffe5m2
            v6 = 0xffe5m2
            var v7: i64 = -1i64
            v7 = -1i64
            var v8: i32 = -1i32
            v8 = -1i32
            var v9: i16 = -1i16
            v9 = -1i16
            var v10: i8 = -1i8
            v10 = -1i8
            var v11: u64 = 18446744073709551615u64
            v11 = 18446744073709551615u64
            var v12: u32 = 4294967295u32
            v12 = 4294967295u32
            var v13: u16 = 65535u16
            v13 = 65535u16
            var v14: u8 = 255u8
            v14 = 255u8
            var v15: bool = true
            v15 = true
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_barrier_of_units_needs_whole_ones() {
    let with = |sync: fn(&mut Builder), threads: u32| {
        let mut b = Builder::new(Signature { threads, ..signature() });
        sync(&mut b);
        verify(&b.finish().expect("balanced")).err()
    };
    for (sync, whole, part) in [
        (Builder::bar_warp_sync as fn(&mut Builder), 64, 65),
        (Builder::bar_sync_warpgroup as fn(&mut Builder), 256, 224),
    ] {
        assert_eq!(with(sync, whole), None);
        let found = with(sync, part).expect("a part of a unit");
        assert!(found.iter().any(|f| f.problem == Problem::PartOfUnit(part)), "{found:?}");
    }
}

#[test]
fn buffers_that_nothing_uses_are_dropped() {
    let mut b = Builder::new(signature());
    let buffers = [(); 3].map(|()| b.buffer(tile()));
    let zero = b.index_literal(Type::I32, 0);
    buffers.iter().for_each(|buffer| b.lifetime_start(*buffer, zero));
    let value = b.f32_literal(1.0);
    b.store(Memory::Buffer(buffers[1]), zero, &[value]);
    let kernel = b.finish().expect("balanced");
    assert_eq!(kernel.buffers.len(), 1, "{kernel}");
    assert_eq!(verify(&kernel), Ok(()));
}

/// A kernel with clusters of so many blocks.
fn clustered(cluster: u32, build: impl FnOnce(&mut Builder, BufferId)) -> Result<Kernel, Vec<Fault>> {
    let mut b = Builder::new(Signature { cluster, ..signature() });
    let buffer = b.buffer(tile());
    build(&mut b, buffer);
    let kernel = b.finish().expect("balanced");
    verify(&kernel).map(|()| kernel)
}

#[test]
fn clusters_are_printed() {
    let kernel = clustered(4, |b, buffer| {
        let (rank, block, four) = (b.cluster_rank(), b.block_index(), b.index_literal(Type::I32, 4));
        let cluster = b.index_div(block, four);
        let one = b.literal(F32, 0x3F80_0000);
        b.store_dsmem_all(buffer, rank, &[one]);
        let c = b.begin_loop(cluster);
        b.barrier_cluster();
        b.end_loop();
        let got = b.load_dsmem(rank, buffer, four, 1);
        b.barrier_cluster();
        b.store(Memory::Parameter(1), c, &got);
    });
    // The index is not in scope after its loop.
    assert!(matches!(kernel.as_ref().map_err(|f| f[0].problem), Err(Problem::NotInScope(_))), "{kernel:?}");
    let kernel = clustered(4, |b, buffer| {
        let (rank, block, four) = (b.cluster_rank(), b.block_index(), b.index_literal(Type::I32, 4));
        let cluster = b.index_div(block, four);
        let one = b.literal(F32, 0x3F80_0000);
        b.store_dsmem_all(buffer, rank, &[one]);
        b.begin_loop(cluster);
        b.barrier_cluster();
        b.end_loop();
        let got = b.load_dsmem(rank, buffer, four, 1);
        b.barrier_cluster();
        b.store(Memory::Parameter(1), block, &got);
    });
    let expected = expect![[r#"
        kernel k(x: f32[], mut z: f32[], a: f16; N) threads 256 clusters of 4 {
            shared s: f32[64] aligned 128
            %0: index32 = rank
            %1: index32 = block
            %2: index32 = %1 / 4
            s[%0] of all blocks of the cluster = 1.0f32
            for %3 in 0..%2 {
                sync cluster
            }
            %4: f32 = s[4] of block %0 of the cluster
            sync cluster
            z[%1] = %4
        }
    "#]];
    expected.assert_eq(&kernel.expect("verified").to_string());
}

/// Where the blocks of a cluster may part, they do not meet; threads are no different.
#[test]
fn clusters_meet_where_all_their_blocks_come() {
    type Count = fn(&mut Builder) -> ValueId;
    let counts: [(Count, Option<Problem>); 5] = [
        (|b| b.dim(0, Type::I32), None),
        (|b| b.block_index(), Some(Problem::NotCollective)),
        (|b| b.cluster_rank(), Some(Problem::NotCollective)),
        (
            |b| {
                let (block, two) = (b.block_index(), b.index_literal(Type::I32, 2));
                b.index_div(block, two)
            },
            Some(Problem::NotCollective),
        ),
        (
            |b| {
                let (block, eight) = (b.block_index(), b.index_literal(Type::I32, 8));
                b.index_div(block, eight)
            },
            None,
        ),
    ];
    for (n, (count, wrong)) in counts.into_iter().enumerate() {
        let found = clustered(4, |b, _| {
            let count = count(b);
            b.begin_loop(count);
            b.bar_sync();
            b.barrier_cluster();
            b.end_loop();
        });
        assert_eq!(found.err().map(|f| f[0].problem), wrong, "count {n}");
    }
    let alone = clustered(1, |b, _| b.barrier_cluster());
    assert_eq!(alone.err().map(|f| f[0].problem), Some(Problem::BadCluster(1)));
    let many = clustered(CLUSTER_LIMIT + 1, |_, _| {});
    assert_eq!(many.err().map(|f| f[0].problem), Some(Problem::BadCluster(CLUSTER_LIMIT + 1)));
}
