//! Tests of emission: texts, and results on the emulator against a scalar oracle.

mod cluster;
mod control;
mod differential;
mod functions;
mod launched;
mod machine;
mod memory;
mod oracle;
mod roles;
mod shuffle;

use tilewright_kernel::ElementType;
use tilewright_kernel::info::Argument;

use crate::kernel_ir::{Builder, Dimension, Kernel, Parameter, ParameterKind, Range, Signature, Type, ValueId};
use launched::{printed, tensor, text};

/// Threads of a block in these tests.
const THREADS: u32 = 128;

fn scalar(name: &str, element: ElementType) -> Parameter {
    Parameter { name: name.to_owned(), element, kind: ParameterKind::Scalar }
}

/// A kernel of these parameters and one dimension N, all passed in order.
fn build(parameters: Vec<Parameter>, body: impl FnOnce(&mut Builder)) -> Kernel {
    let arguments = (0..).zip(&parameters).map(|(n, p)| match p.kind {
        ParameterKind::Scalar => Argument::Scalar(n),
        ParameterKind::Tensor { .. } => Argument::Address(n),
    });
    let arguments = arguments.chain([Argument::Dim(0)]).collect();
    let dims = vec![Dimension { name: "N".to_owned(), range: Range::new(0, i64::from(i32::MAX)) }];
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters,
        dims,
        maps: Vec::new(),
        arguments,
        threads: THREADS,
        cluster: 1,
    });
    body(&mut b);
    b.finish().expect("balanced")
}

/// block · threads + thread
fn global_index(b: &mut Builder) -> ValueId {
    let (block, thread, size) = (b.block_index(), b.thread_index(), b.index_literal(Type::I32, i64::from(THREADS)));
    let base = b.index_mul(block, size);
    b.index_add(base, thread)
}
