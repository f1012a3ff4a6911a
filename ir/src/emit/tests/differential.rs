//! Every element operation on every type, and index arithmetic, against the oracle.

use tilewright_kernel::ElementType::{self, Bf16, Bool, E4m3, E5m2, F16, F32, F64, I32, I64, Tf32, U32, U64};
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::format::Format;

use super::machine::run;
use super::oracle;
use crate::kernel_ir::{Builder, IndexOp, Op, Shift, Type, UnaryOp, ValueId};

/// The types that have arithmetic, by themselves or through another.
fn computed() -> impl Iterator<Item = ElementType> {
    ElementType::ALL.into_iter().filter(|element| !matches!(element, Tf32 | E4m3 | E5m2))
}

/// Results as they are, and for integers also extended to 64 bits: a register that was not wrapped would show there.
fn extended(builder: &mut Builder, results: Vec<ValueId>) -> Vec<ValueId> {
    let integer = |v: &ValueId| builder.ty(*v).element().is_some_and(|element| element.is_integer() && element != I64);
    let narrow: Vec<_> = results.iter().copied().filter(integer).collect();
    results.into_iter().chain(narrow.into_iter().map(|v| builder.cast(v, I64))).collect()
}

/// The types of what [`extended`] gives for `count` results.
fn extended_types(element: ElementType, count: usize) -> Vec<ElementType> {
    let narrow = if element.is_integer() && element != I64 { count } else { 0 };
    [vec![element; count], vec![I64; narrow]].concat()
}

/// All pairs of two lists.
fn pairs(a: &[u64], b: &[u64]) -> (Vec<u64>, Vec<u64>) {
    a.iter().flat_map(|x| b.iter().map(move |y| (*x, *y))).unzip()
}

/// Compares one column of results with the oracle.
fn check(what: &str, element: ElementType, operands: &[&[u64]], found: &[u64], oracle: impl Fn(usize) -> Option<u64>) {
    for (n, found) in found.iter().enumerate() {
        let Some(expected) = oracle(n) else { continue };
        let operands: Vec<_> = operands.iter().map(|column| format!("{:#x}", column[n])).collect();
        let operands = operands.join(", ");
        assert!(
            oracle::same(element, *found, expected),
            "{what}({operands}): {found:#x}, not {expected:#x} ({element})"
        );
    }
}

#[test]
fn unary_operations() {
    let ops = [
        UnaryOp::Neg,
        UnaryOp::Not,
        UnaryOp::Abs,
        UnaryOp::Floor,
        UnaryOp::RoundEven,
        UnaryOp::Sqrt,
        UnaryOp::Recip,
        UnaryOp::Ceil,
        UnaryOp::Trunc,
    ];
    for element in computed() {
        let a = oracle::edges(element);
        let ops: Vec<_> = ops.into_iter().filter(|op| oracle::unary(*op, element, a[0]).is_some()).collect();
        let results = extended_types(element, ops.len());
        let found = run(&[(element, &a)], &results, |b, v| {
            let found = ops.iter().map(|op| b.unary(*op, v[0])).collect();
            extended(b, found)
        });
        for (n, found) in found.iter().enumerate() {
            let (op, ty) = (ops[n % ops.len()], results[n]);
            check(&format!("{op:?}"), ty, &[&a], found, |n| {
                oracle::unary(op, element, a[n])
                    .map(|bits| if ty == element { bits } else { oracle::cast(element, ty, bits) })
            });
        }
    }
}

#[test]
fn binary_operations() {
    use Binary::{Add, And, Div, Max, MaxNum, Min, MinNum, Mul, Or, Rem, Shl, Shr, Sub, Xor};
    for element in computed() {
        let edges = oracle::edges(element);
        let (a, b) = pairs(&edges, &edges);
        let one = if element == Bool { 0 } else { 1 };
        let ops: Vec<_> = [Add, Sub, Mul, Div, Rem, Max, Min, MaxNum, MinNum, And, Or, Xor, Shl, Shr]
            .into_iter()
            .filter(|op| oracle::binary(*op, element, one, one).is_some())
            .collect();
        let results = extended_types(element, ops.len());
        let inputs = [(element, a.as_slice()), (element, b.as_slice())];
        let found = run(&inputs, &results, |builder, v| {
            let found = ops.iter().map(|op| builder.binary(*op, v[0], v[1])).collect();
            extended(builder, found)
        });
        for (n, found) in found.iter().enumerate() {
            let (op, ty) = (ops[n % ops.len()], results[n]);
            check(&format!("{op:?}"), ty, &[&a, &b], found, |n| {
                let bits = oracle::binary(op, element, a[n], b[n]);
                bits.map(|bits| if ty == element { bits } else { oracle::cast(element, ty, bits) })
            });
        }
    }
}

#[test]
fn comparisons_and_selections() {
    use Compare::{Eq, Ge, Gt, Le, Lt, Ne};
    let ops = [Eq, Ne, Lt, Le, Gt, Ge];
    for element in computed() {
        let edges = oracle::edges(element);
        let (a, b) = pairs(&edges, &edges);
        let results: Vec<_> = [Bool; 6].into_iter().chain([element]).collect();
        let inputs = [(element, a.as_slice()), (element, b.as_slice())];
        let found = run(&inputs, &results, |builder, v| {
            let mut all: Vec<_> = ops.iter().map(|op| builder.compare(*op, v[0], v[1])).collect();
            let less = all[2];
            all.push(builder.select(less, v[0], v[1]));
            all
        });
        let less = |n: usize| oracle::compare(Lt, element, a[n], b[n]);
        for (op, found) in ops.iter().zip(&found) {
            let name = format!("{element} {op:?}");
            check(&name, Bool, &[&a, &b], found, |n| Some(u64::from(oracle::compare(*op, element, a[n], b[n]))));
        }
        check("select", element, &[&a, &b], &found[6], |n| Some(if less(n) { a[n] } else { b[n] }));
    }
}

#[test]
fn fused_multiplication() {
    for element in computed().filter(|element| *element != Bool) {
        let edges = oracle::edges(element);
        let few: Vec<_> = edges.iter().copied().step_by(5).collect();
        let (pair, c) = pairs(&(0..(edges.len() * few.len()) as u64).collect::<Vec<_>>(), &few);
        let a: Vec<_> = pair.iter().map(|n| edges[*n as usize % edges.len()]).collect();
        let b: Vec<_> = pair.iter().map(|n| few[*n as usize / edges.len()]).collect();
        let inputs = [(element, a.as_slice()), (element, b.as_slice()), (element, c.as_slice())];
        let found = run(&inputs, &[element], |builder, v| vec![builder.fma(v[0], v[1], v[2])]);
        check("fma", element, &[&a, &b, &c], &found[0], |n| Some(oracle::fma(element, a[n], b[n], c[n])));
    }
}

/// Every type as every other, `bool` as an operand only: there is no cast to it.
#[test]
fn casts() {
    for from in ElementType::ALL {
        let mut a = oracle::edges(from);
        if from == Tf32 {
            a.iter_mut().for_each(|bits| *bits &= !0x1FFF);
        }
        let to: Vec<_> = ElementType::ALL.into_iter().filter(|to| *to != from && *to != Bool).collect();
        let found = run(&[(from, &a)], &to, |b, v| to.iter().map(|to| b.cast(v[0], *to)).collect());
        for (to, found) in to.iter().zip(found) {
            check(&format!("{from} as {to}"), *to, &[&a], &found, |n| Some(oracle::cast(from, *to, a[n])));
        }
    }
}

/// All numbers of 16 bits to the types for storage and back, and `f32` at every exponent with every pattern of the bits
/// that decide: those that stay, the half, and whether anything is below. Against the oracle and against the rule that
/// the host uses.
#[test]
fn storage_types_exhaustively() {
    let halves: Vec<u64> = (0..1 << 16).collect();
    let singles: Vec<u64> =
        (0..1 << 15).flat_map(|top| [0, 1, 0x7FFF, 0x8000, 0x8001].map(|low| top << 17 | low << 1)).collect();
    let storage = [Tf32, E4m3, E5m2];
    for (from, values) in [(F16, &halves), (Bf16, &halves), (F32, &singles)] {
        let found = run(&[(from, values)], &storage, |b, v| storage.map(|to| b.cast(v[0], to)).to_vec());
        for (to, found) in storage.iter().zip(found) {
            check(&format!("{from} as {to}"), *to, &[values], &found, |n| Some(oracle::cast(from, *to, values[n])));
            let (source, target) = (Format::of(from).expect("a float"), Format::of(*to).expect("a float"));
            check("host", *to, &[values], &found, |n| Some(target.from_f64(source.value(values[n]))));
        }
    }
    // tf32 drops 13 bits.
    let singles: Vec<u64> =
        (0..1 << 19).flat_map(|top| [0, 0xFFF, 0x1000, 0x1001, 0x1FFF].map(|low| top << 13 | low)).step_by(3).collect();
    let found = run(&[(F32, &singles)], &[Tf32], |b, v| vec![b.cast(v[0], Tf32)]);
    check("f32 as tf32", Tf32, &[&singles], &found[0], |n| Some(oracle::cast(F32, Tf32, singles[n])));
}

#[test]
fn bits_shifts_and_high_products() {
    for (a, b) in [(F32, I32), (F32, U32), (F64, I64), (F64, U64), (I32, U32), (F16, Bf16), (F16, ElementType::I16)] {
        for (from, to) in [(a, b), (b, a)] {
            let values = oracle::edges(from);
            let found = run(&[(from, &values)], &[to], |builder, v| vec![builder.bits(v[0], to)]);
            check(&format!("bits of {from} as {to}"), to, &[&values], &found[0], |n| Some(values[n]));
        }
    }
    for element in [I32, U32, I64, U64] {
        let width = 8 * element.bytes();
        let (a, amount) = pairs(&oracle::edges(element), &[0, 1, 5, 31, 32, 33, 63, 64, 200]);
        let inputs = [(element, a.as_slice()), (U32, amount.as_slice())];
        let found =
            run(&inputs, &[element; 2], |b, v| [Shift::Left, Shift::Right].map(|op| b.shift(op, v[0], v[1])).to_vec());
        let signed = |bits: u64| {
            if element == I32 {
                i128::from(bits as i32)
            } else if element == I64 {
                i128::from(bits as i64)
            } else {
                i128::from(bits)
            }
        };
        check("shl", element, &[&a, &amount], &found[0], |n| {
            Some(if amount[n] >= u64::from(width) { 0 } else { a[n] << amount[n] & oracle::mask(element) })
        });
        check("shr", element, &[&a, &amount], &found[1], |n| {
            Some((signed(a[n]) >> amount[n].min(100)) as u64 & oracle::mask(element))
        });
        let (a, b) = pairs(&oracle::edges(element), &oracle::edges(element));
        let inputs = [(element, a.as_slice()), (element, b.as_slice())];
        let found = run(&inputs, &[element], |builder, v| vec![builder.mul_high(v[0], v[1])]);
        check("mul_high", element, &[&a, &b], &found[0], |n| {
            let product = if element == U64 {
                ((u128::from(a[n]) * u128::from(b[n])) >> 64) as i128
            } else {
                (signed(a[n]) * signed(b[n])) >> width
            };
            Some(product as u64 & oracle::mask(element))
        });
    }
}

/// Index operations on run-time values, signed and not: division rounds down.
#[test]
fn index_arithmetic() {
    type Build = fn(&mut Builder, ValueId, ValueId) -> ValueId;
    type Host = fn(i64, i64) -> i64;
    let dividends: Vec<i64> = (-20..21).chain([-1000, 1000, 2047, 2048, -2048, -2049, 1 << 20]).collect();
    let divisors = [1_i64, 2, 3, 7, 8, 64, 1000];
    let (a, b): (Vec<_>, Vec<_>) =
        pairs(&dividends.iter().map(|v| *v as u64).collect::<Vec<_>>(), &divisors.map(|v| v as u64));
    let ops: [(Build, Host); 9] = [
        (Builder::index_add, |x, y| x + y),
        (Builder::index_sub, |x, y| x - y),
        (Builder::index_mul, |x, y| x * y),
        (Builder::index_div, i64::div_euclid),
        (Builder::index_mod, i64::rem_euclid),
        (Builder::index_min, i64::min),
        (Builder::index_max, i64::max),
        (Builder::index_and, |x, y| x & y),
        (Builder::index_xor, |x, y| x ^ y),
    ];
    for ty in [Type::I32, Type::I64] {
        let inputs = [(I64, a.as_slice()), (I64, b.as_slice())];
        let results: Vec<_> = [I64; 9].into_iter().chain([Bool; 4]).collect();
        let found = run(&inputs, &results, |builder, v| {
            let mut index = |v| {
                let wide = builder.to_index(v, Type::I64);
                builder.index_convert(wide, ty)
            };
            let (x, y) = (index(v[0]), index(v[1]));
            let mut all = Vec::new();
            for (build, _) in ops {
                let value = build(builder, x, y);
                let wide = builder.index_convert(value, Type::I64);
                all.push(builder.from_index(wide, I64));
            }
            all.push(builder.in_range(x, y));
            all.push(builder.index_compare(Compare::Lt, x, y));
            all.push(builder.index_compare(Compare::Ge, x, y));
            all.push(builder.index_compare(Compare::Eq, x, y));
            all
        });
        for ((_, oracle), found) in ops.iter().zip(&found) {
            check(&format!("{ty}"), I64, &[&a, &b], found, |n| Some(oracle(a[n] as i64, b[n] as i64) as u64));
        }
        let conditions: [fn(i64, i64) -> bool; 4] =
            [|x, y| (0..y).contains(&x), |x, y| x < y, |x, y| x >= y, |x, y| x == y];
        for (oracle, found) in conditions.iter().zip(&found[9..]) {
            check("compare", Bool, &[&a, &b], found, |n| Some(u64::from(oracle(a[n] as i64, b[n] as i64))));
        }
    }
    // Literal divisors, with and without a range that is known not to be negative.
    for divisor in [1_i64, 2, 3, 8, 100, 1 << 20] {
        for ty in [Type::I32, Type::I64] {
            for negative in [false, true] {
                let a: Vec<u64> = dividends.iter().filter(|v| negative || **v >= 0).map(|v| *v as u64).collect();
                let found = run(&[(I64, &a)], &[I64; 2], |builder, v| {
                    let wide = builder.to_index(v[0], Type::I64);
                    let x = builder.index_convert(wide, ty);
                    if !negative {
                        builder.assume(x, crate::kernel_ir::Range::NON_NEGATIVE);
                    }
                    let d = builder.index_literal(ty, divisor);
                    [builder.index_div(x, d), builder.index_mod(x, d)].map(|v| builder.from_index(v, I64)).to_vec()
                });
                check("div", I64, &[&a], &found[0], |n| Some((a[n] as i64).div_euclid(divisor) as u64));
                check("mod", I64, &[&a], &found[1], |n| Some((a[n] as i64).rem_euclid(divisor) as u64));
            }
        }
    }
}

/// The rewrites of the builder do not change what an expression computes: random expressions against plain evaluation.
#[test]
fn index_rewrites_keep_values() {
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let a: Vec<u64> = (0..60).map(|n| (n - 20) as u64).collect();
    for round in 0..40 {
        let ty = if round % 2 == 0 { Type::I32 } else { Type::I64 };
        // A program in postfix: operand kinds and operations.
        let program: Vec<(u64, u64, u64)> = (0..12).map(|_| (random(8), random(100), random(100))).collect();
        let literals: Vec<i64> = (0..4).map(|_| random(13) as i64 - 4).collect();
        let divisor = |literal: i64| literal.abs() + 1;
        let evaluate = |x: i64| {
            let mut values = vec![x, literals[0], literals[1], x + 20];
            for (op, p, q) in &program {
                let (p, q) = (values[*p as usize % values.len()], values[*q as usize % values.len()]);
                let literal = literals[*op as usize % 4];
                let value = match op {
                    0 => p + q,
                    1 => p - q,
                    2 => p * literal,
                    3 => p.div_euclid(divisor(literal)),
                    4 => p.rem_euclid(divisor(literal)),
                    5 => p + literal,
                    6 => p.min(q),
                    _ => p.max(q),
                };
                values.push(value.clamp(-100_000, 100_000));
            }
            values
        };
        let columns = program.len() + 4;
        let found = run(&[(I64, &a)], &vec![I64; columns], |b, v| {
            let wide = b.to_index(v[0], Type::I64);
            b.assume(wide, crate::kernel_ir::Range::new(-20, 39));
            let x = b.index_convert(wide, ty);
            let twenty = b.index_literal(ty, 20);
            let shifted = b.index_add(x, twenty);
            let (l0, l1) = (b.index_literal(ty, literals[0]), b.index_literal(ty, literals[1]));
            let mut values = vec![x, l0, l1, shifted];
            for (op, p, q) in &program {
                let (p, q) = (values[*p as usize % values.len()], values[*q as usize % values.len()]);
                let literal = literals[*op as usize % 4];
                let (l, d) = (b.index_literal(ty, literal), b.index_literal(ty, divisor(literal)));
                let value = match op {
                    0 => b.index_add(p, q),
                    1 => b.index_sub(p, q),
                    2 => b.index_mul(p, l),
                    3 => b.index_div(p, d),
                    4 => b.index_mod(p, d),
                    5 => b.index_add(p, l),
                    6 => b.index_min(p, q),
                    _ => b.index_max(p, q),
                };
                let (low, high) = (b.index_literal(ty, -100_000), b.index_literal(ty, 100_000));
                let value = b.index_max(value, low);
                values.push(b.index_min(value, high));
            }
            values.into_iter().map(|v| b.from_index(v, I64)).collect()
        });
        for (column, found) in found.iter().enumerate() {
            check(&format!("column {column} of {program:?} {literals:?} {ty}"), I64, &[&a], found, |n| {
                Some(evaluate(a[n] as i64)[column] as u64)
            });
        }
    }
}

/// Offsets in tiles whose chunks are exchanged, as swizzles have them, drawn: x = a·p + b·q + c and
/// x ⊕ ((x / u mod v)·w); and distances, sums without terms of their own.
#[test]
fn swizzled_offsets_keep_values() {
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i64
    };
    let a: Vec<u64> = (0..256).collect();
    let (mut exchanges, mut all) = (0, 0);
    for round in 0..120 {
        let ty = if round % 2 == 0 { Type::I32 } else { Type::I64 };
        let width = 1 << random(5);
        let [p, q, step] = [8 << random(5), 1 << random(4), 1 << random(5)];
        let (c, start) = (random(3) * step + random(2) * 8 * random(70), random(5) * 100);
        let (u, v, w) = (1 << random(7), 1 << random(4), 1 << random(5));
        let evaluate = |t: i64| {
            let (row, column) = (t / width, t % width);
            let x = row * p + column * q + c;
            let s = ((x / u) & (v - 1)) * w;
            [x, x ^ s, s ^ x, (start + row * p + (column * q + c)) - (row * p + start), (x + s) - (s + c)]
        };
        let found = run(&[(I64, &a)], &[I64; 5], |b, values| {
            let wide = b.to_index(values[0], Type::I64);
            b.assume(wide, crate::kernel_ir::Range::new(0, 255));
            let t = b.index_convert(wide, ty);
            let mut literal = |n: i64| b.index_literal(ty, n);
            let [width, p, q, c] = [width, p, q, c].map(&mut literal);
            let [start, u, mask, w] = [start, u, v - 1, w].map(literal);
            let (row, column) = (b.index_div(t, width), b.index_mod(t, width));
            let (row, column) = (b.index_mul(row, p), b.index_mul(column, q));
            let x = b.index_add(row, column);
            let x = b.index_add(x, c);
            let chosen = b.index_div(x, u);
            let chosen = b.index_and(chosen, mask);
            let s = b.index_mul(chosen, w);
            let exchanged = [b.index_xor(x, s), b.index_xor(s, x)];
            all += 1;
            let is_split = |v: &&ValueId| !matches!(b.kernel().value(**v).op, Op::Index(IndexOp::Xor, ..));
            exchanges += exchanged.iter().take(1).filter(is_split).count();
            let right = b.index_add(column, c);
            let left = b.index_add(start, row);
            let (left, common) = (b.index_add(left, right), b.index_add(row, start));
            let first = b.index_sub(left, common);
            let (left, right) = (b.index_add(x, s), b.index_add(s, c));
            let second = b.index_sub(left, right);
            let all = [x, exchanged[0], exchanged[1], first, second];
            all.into_iter().map(|v| b.from_index(v, I64)).collect()
        });
        for (column, found) in found.iter().enumerate() {
            let what = format!("column {column}: {width} {p} {q} {c} {start} {u} {v} {w} {ty}");
            check(&what, I64, &[&a], found, |n| Some(evaluate(a[n] as i64)[column] as u64));
        }
    }
    assert!(exchanges * 4 > all, "{exchanges} of {all} were split");
}

/// An index becomes each element type: wrapped, or rounded once.
#[test]
fn indices_as_elements() {
    let a = oracle::edges(I64);
    let types: Vec<_> = computed().filter(|element| *element != Bool).collect();
    let found = run(&[(I64, &a)], &types, |b, v| {
        let index = b.to_index(v[0], Type::I64);
        types.iter().map(|ty| b.from_index(index, *ty)).collect()
    });
    for (ty, found) in types.iter().zip(found) {
        check("from_index", *ty, &[&a], &found, |n| Some(oracle::cast(I64, *ty, a[n])));
    }
    for from in types.iter().filter(|element| element.is_integer()) {
        let a = oracle::edges(*from);
        let found = run(&[(*from, &a)], &[I64], |b, v| {
            let index = b.to_index(v[0], Type::I64);
            vec![b.from_index(index, I64)]
        });
        check(&format!("index of {from}"), I64, &[&a], &found[0], |n| Some(oracle::cast(*from, I64, a[n])));
    }
}
