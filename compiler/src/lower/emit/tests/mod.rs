//! Tests of emission: texts, and results on the emulator against a scalar oracle.

mod cluster;
mod control;
mod differential;
mod functions;
pub(in crate::lower) mod machine;
mod memory;
mod oracle;
mod roles;
mod shuffle;

use tilewright_kernel::ElementType;
use tilewright_kernel::info::Argument;

use super::emit;
use crate::kernel_ir::{Builder, Dimension, Kernel, Parameter, ParameterKind, Range, Signature, Type, ValueId};

/// Threads of a block in these tests.
const THREADS: u32 = 128;

pub(in crate::lower) fn tensor(name: &str, element: ElementType, written: bool) -> Parameter {
    Parameter { name: name.to_owned(), element, kind: ParameterKind::Tensor { written } }
}

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

/// Emits, prints, parses again, and has the assembler read it if there is one.
pub(in crate::lower) fn text(kernel: &Kernel) -> String {
    let text = printed(kernel);
    assemble(&text);
    text
}

/// Emits, prints, and parses again.
pub(in crate::lower) fn printed(kernel: &Kernel) -> String {
    let module = emit(std::slice::from_ref(kernel), "kernel").unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    let text = module.to_string();
    let again = tilewright_ptx::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.to_string(), text, "printing is not a fixed point");
    text
}

/// Runs the assembler that the variable `PTXAS` names, if it is set.
fn assemble(text: &str) {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let Some(ptxas) = std::env::var_os("PTXAS") else { return };
    let mut child = Command::new(ptxas)
        .args([if text.contains(".target sm_90a") { "-arch=sm_90a" } else { "-arch=sm_90" }, "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the assembler starts");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("the assembler reads");
    let output = child.wait_with_output().expect("the assembler ends");
    let said = String::from_utf8_lossy(&output.stderr);
    // What it ignores is an instruction without an effect.
    assert!(output.status.success() && !said.contains("ignored"), "{said}\n{text}");
}

/// block · threads + thread
fn global_index(b: &mut Builder) -> ValueId {
    let (block, thread, size) = (b.block_index(), b.thread_index(), b.index_literal(Type::I32, i64::from(THREADS)));
    let base = b.index_mul(block, size);
    b.index_add(base, thread)
}
