//! Values from other lanes: every type, blocks whose last warp is not whole.

use tilewright_kernel::ElementType::{self, Bool, I32};
use tilewright_kernel::info::Argument;

use super::launched::{from_bytes, to_bytes};
use super::machine::execute;
use super::{oracle, tensor, text};
use crate::kernel_ir::Memory::Parameter;
use crate::kernel_ir::{Builder, Kernel, Signature, Type, ValueId};

/// y[thread] = what a chain of exchanges makes of x[thread].
fn exchanging(threads: u32, element: ElementType, body: impl FnOnce(&mut Builder, ValueId) -> ValueId) -> Kernel {
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters: vec![tensor("x", element, false), tensor("y", element, true)],
        dims: Vec::new(),
        maps: Vec::new(),
        arguments: vec![Argument::Address(0), Argument::Address(1)],
        threads,
        cluster: 1,
    });
    let thread = b.thread_index();
    let x = b.load(Parameter(0), thread, 1, None)[0];
    let y = body(&mut b, x);
    b.store(Parameter(1), thread, &[y]);
    b.finish().expect("balanced")
}

/// The thread whose value a thread gets.
fn partner(thread: usize, mask: u32, threads: u32) -> usize {
    let other = thread / 32 * 32 + ((thread % 32) ^ mask as usize);
    if other < threads as usize { other } else { thread }
}

#[test]
fn every_type_is_exchanged_whole() {
    for element in ElementType::ALL {
        for (threads, masks) in [(1, [1, 16]), (7, [2, 5]), (32, [16, 31]), (45, [1, 8]), (96, [4, 3]), (1024, [16, 2])]
        {
            let kernel = exchanging(threads, element, |b, x| masks.iter().fold(x, |x, mask| b.shuffle(x, *mask)));
            let bits = |n: u64| if element == Bool { n % 3 % 2 } else { n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 3 };
            // Whether NaNs keep their bits is not asked here.
            let finite = if element.is_float() { !(1 << (8 * element.bytes() - 2)) } else { u64::MAX };
            let x: Vec<u64> = (0..u64::from(threads)).map(|n| bits(n) & oracle::mask(element) & finite).collect();
            let buffers = [to_bytes(element, &x), vec![0; x.len() * element.bytes() as usize]];
            let found = from_bytes(element, &execute(&kernel, 0, 1, &buffers, true)[1]);
            let from = |thread| masks.iter().rev().fold(thread, |thread, mask| partner(thread, *mask, threads));
            let expected: Vec<u64> = (0..x.len()).map(|thread| x[from(thread)]).collect();
            assert_eq!(found, expected, "{element} in {threads} threads");
        }
    }
}

#[test]
fn indices_are_exchanged() {
    for index in [Type::I32, Type::I64] {
        let kernel = exchanging(40, I32, |b, x| {
            let thread = b.thread_index();
            let wide = b.index_convert(thread, index);
            let other = b.shuffle(wide, 1);
            let other = b.from_index(other, I32);
            b.binary(tilewright_kernel::algorithm::Binary::Add, x, other)
        });
        let found = execute(&kernel, 0, 1, &[vec![0; 160], vec![0; 160]], true);
        assert_eq!(from_bytes(I32, &found[1]), (0..40).map(|n| n ^ 1).collect::<Vec<u64>>());
    }
}

/// The member mask names the lanes of the warp, and costs nothing where all warps are whole.
#[test]
fn only_lanes_that_exist_are_members() {
    let of = |threads| text(&exchanging(threads, I32, |b, x| b.shuffle(x, 8)));
    assert!(of(64).contains("8, 31, 4294967295;") && !of(64).contains("selp"), "{}", of(64));
    assert!(of(20).contains("8, 19, 1048575;"), "{}", of(20));
    let parts = of(70);
    assert!(parts.contains("64;") && parts.contains("31, 5,") && parts.contains("4294967295, 63,"), "{parts}");
}
