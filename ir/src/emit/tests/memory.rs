//! Loads, stores and scalars of every type and width, and addresses.

use tilewright_kernel::ElementType::{self, Bool, F32, I8, U8};
use tilewright_kernel::algorithm::Compare;

use super::launched::{from_bytes, to_bytes};
use super::machine::execute;
use super::{THREADS, build, global_index, oracle, scalar, tensor, text};
use crate::kernel_ir::Memory::Parameter;
use crate::kernel_ir::{Builder, Guard, Kernel, Type, ValueId};

/// `count` elements that are all different where the type allows it, and never NaN.
fn pattern(element: ElementType, count: usize) -> Vec<u64> {
    let bits = |n: usize| {
        if element == Bool { u64::from(n.is_multiple_of(3)) } else { (n as u64).wrapping_mul(0x0101_0101_0101_0163) }
    };
    // Clear an exponent bit of floats: whether NaN payloads survive is not asked here.
    let finite = if element.is_float() { !(1 << (8 * element.bytes() - 2)) } else { u64::MAX };
    (0..count).map(|n| bits(n) & oracle::mask(element) & finite).collect()
}

/// y[reversed lanes] = x where the thread is even, elsewhere the alternatives.
fn reversing(
    element: ElementType,
    lanes: u32,
    index: Type,
    alternatives: &dyn Fn(&mut Builder) -> Vec<ValueId>,
) -> Kernel {
    let parameters = vec![tensor("x", element, false), tensor("y", element, true), scalar("s", element)];
    build(parameters, |b| {
        let i = global_index(b);
        let i = b.index_convert(i, index);
        let (two, zero) = (b.index_literal(index, 2), b.index_literal(index, 0));
        let parity = b.index_mod(i, two);
        let predicate = b.index_compare(Compare::Eq, parity, zero);
        let width = b.index_literal(index, i64::from(lanes));
        let first = b.index_mul(i, width);
        // A constant that becomes part of the instruction.
        let shifted = b.index_add(first, width);
        let otherwise = alternatives(b);
        let guard = Guard { predicate, otherwise: &otherwise };
        let mut values = b.load(Parameter(0), shifted, lanes, Some(guard));
        values.reverse();
        b.store(Parameter(1), shifted, &values);
    })
}

#[test]
fn every_width_of_every_type() {
    for element in ElementType::ALL {
        for lanes in [1_u32, 2, 4, 8, 16, 32] {
            for index in [Type::I32, Type::I64] {
                let constants = pattern(element, 40)[3..3 + lanes as usize].to_vec();
                let spare = pattern(element, 60)[50];
                for constant in [true, false] {
                    let constants = constants.clone();
                    let kernel = reversing(element, lanes, index, &move |b: &mut Builder| {
                        let spare = b.scalar(2);
                        let mut all: Vec<_> = constants.iter().map(|bits| b.literal(element, *bits)).collect();
                        if !constant {
                            all[0] = spare;
                        }
                        all
                    });
                    let count = (lanes * (THREADS + 1)) as usize;
                    let (x, y) = (pattern(element, count), vec![0; count]);
                    let buffers = [to_bytes(element, &x), to_bytes(element, &y), to_bytes(element, &[spare])];
                    let found = from_bytes(element, &execute(&kernel, 0, 1, &buffers, false)[1]);
                    let mut otherwise = pattern(element, 40)[3..3 + lanes as usize].to_vec();
                    if !constant {
                        otherwise[0] = spare;
                    }
                    let vectors = x.chunks(lanes as usize).enumerate().map(|(n, vector)| match n {
                        0 => vec![0; lanes as usize],
                        n if n % 2 == 1 => vector.iter().rev().copied().collect(),
                        _ => otherwise.iter().rev().copied().collect(),
                    });
                    let expected: Vec<u64> = vectors.flatten().collect();
                    assert_eq!(found, expected, "{lanes} lanes of {element}, {index}\n{kernel}");
                }
            }
        }
    }
}

#[test]
fn a_byte_that_is_not_zero_is_true() {
    let kernel = build(vec![tensor("x", Bool, false), tensor("y", Bool, true)], |b| {
        let i = b.thread_index();
        let four = b.index_literal(Type::I32, 4);
        let at = b.index_mul(i, four);
        let values = b.load(Parameter(0), at, 4, None);
        b.store(Parameter(1), at, &values);
    });
    let bytes: Vec<u8> = (0..4 * THREADS).map(|n| (n % 7 * 43) as u8).collect();
    let found = execute(&kernel, 0, 1, &[bytes.clone(), bytes.clone()], true);
    let expected: Vec<u8> = bytes.iter().map(|byte| u8::from(*byte != 0)).collect();
    assert_eq!(found[1], expected);
}

/// x[i + c] for constants of both signs, in both widths, with an index that may be negative and one that may not.
#[test]
fn constants_in_addresses() {
    for index in [Type::I32, Type::I64] {
        for constant in [-7_i64, -1, 0, 5, 1000] {
            let kernel = build(vec![tensor("x", F32, false), tensor("y", F32, true)], |b| {
                let thread = b.thread_index();
                let i = b.index_convert(thread, index);
                let base = b.index_literal(index, 7);
                let n = b.dim(0, index);
                // n is 0: the sum may be negative as far as is known.
                let i = b.index_sub(i, n);
                let at = b.index_literal(index, constant + 7);
                let at = b.index_add(i, at);
                let value = b.load(Parameter(0), at, 1, None)[0];
                let to = b.index_add(i, base);
                b.store(Parameter(1), to, &[value]);
                let nine = b.index_literal(index, 3);
                let fixed = b.load(Parameter(0), nine, 1, None)[0];
                b.store(Parameter(1), nine, &[fixed]);
            });
            let x = pattern(F32, 1200);
            let zero = vec![0; THREADS as usize + 7];
            let found = execute(&kernel, 0, 1, &[to_bytes(F32, &x), to_bytes(F32, &zero)], false);
            let found = from_bytes(F32, &found[1]);
            let start = (constant + 7) as usize;
            assert_eq!(found[7..], x[start..start + THREADS as usize], "{constant} {index}");
            assert_eq!(found[3], x[3]);
        }
    }
}

/// A constant of more than an instruction holds is computed, not cut.
#[test]
fn large_constants_are_computed() {
    let kernel = build(vec![tensor("x", I8, false), tensor("y", U8, true)], |b| {
        let (i, far) = (b.thread_index(), b.index_literal(Type::I64, 1 << 40));
        let wide = b.index_convert(i, Type::I64);
        let at = b.index_add(wide, far);
        let (x, fixed) = (b.load(Parameter(0), at, 1, None)[0], b.load(Parameter(0), far, 1, None)[0]);
        let sum = b.binary(tilewright_kernel::algorithm::Binary::Add, x, fixed);
        let sum = b.cast(sum, U8);
        b.store(Parameter(1), wide, &[sum]);
    });
    let text = text(&kernel);
    assert_eq!(text.matches("1099511627776").count(), 2, "{text}");
    assert!(!text.contains("+1099511627776]"), "{text}");
}
