//! Tests of emission: texts, and results on the emulator against a scalar oracle.

mod differential;
mod machine;
mod oracle;

use tilewright_kernel::ElementType::{self, Bf16, Bool, F16, F32, I8};
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::info::Argument;

use super::emit;
use crate::kernel_ir::{Builder, Dimension, Guard, Kernel, Parameter, ParameterKind, Range, Signature, Type, ValueId};

fn tensor(name: &str, element: ElementType, written: bool) -> Parameter {
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
    let mut b = Builder::new(Signature { name: "k".to_owned(), parameters, dims, arguments, threads: 128 });
    body(&mut b);
    b.finish().expect("balanced")
}

/// Emits, prints, parses again, and has the assembler read it if there is one.
fn text(kernel: &Kernel) -> String {
    let module = emit(std::slice::from_ref(kernel), "kernel").unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    let text = module.to_string();
    let again = tilewright_ptx::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.to_string(), text, "printing is not a fixed point");
    assemble(&text);
    text
}

/// Runs the assembler that the variable `PTXAS` names, if it is set.
fn assemble(text: &str) {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let Some(ptxas) = std::env::var_os("PTXAS") else { return };
    let mut child = Command::new(ptxas)
        .args(["-arch=sm_90", "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the assembler starts");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("the assembler reads");
    let output = child.wait_with_output().expect("the assembler ends");
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
}

/// block · 128 + thread
fn global_index(b: &mut Builder) -> ValueId {
    let (block, thread, size) = (b.block_index(), b.thread_index(), b.index_literal(Type::I32, 128));
    let base = b.index_mul(block, size);
    b.index_add(base, thread)
}

#[test]
fn small_programs_assemble() {
    let kernel = build(vec![scalar("a", F32), tensor("x", F32, false), tensor("y", F32, true)], |b| {
        let (i, n, a) = (global_index(b), b.dim(0, Type::I32), b.scalar(0));
        let four = b.index_literal(Type::I32, 4);
        let first = b.index_mul(i, four);
        let p = b.index_compare(Compare::Lt, first, n);
        let zero = b.f32_literal(0.0);
        b.line(1);
        let x = b.load(1, first, 8, Some(Guard { predicate: p, otherwise: &[zero; 8] }));
        b.begin_if(p);
        let y = b.load(2, first, 8, None);
        let mut out = Vec::new();
        for (x, y) in x.into_iter().zip(y) {
            let product = b.binary(Binary::Mul, a, x);
            out.push(b.binary(Binary::Add, product, y));
        }
        b.store(2, first, &out);
        b.end_if();
    });
    text(&kernel);
    let kernel = build(
        vec![tensor("x", Bf16, false), tensor("y", I8, true), tensor("z", Bool, true), tensor("w", F16, true)],
        |b| {
            let (i, n) = (global_index(b), b.dim(0, Type::I32));
            let zero = b.f32_literal(0.0);
            let sum = b.variable(zero);
            let k = b.begin_loop(n);
            let row = b.index_mul(i, n);
            let eight = b.index_literal(Type::I32, 8);
            let at = b.index_add(row, k);
            let at = b.index_mul(at, eight);
            for x in b.load(0, at, 8, None) {
                let old = b.get(sum);
                let x = b.cast(x, F32);
                let new = b.binary(Binary::Add, old, x);
                b.set(sum, new);
            }
            b.end_loop();
            let total = b.get(sum);
            let byte = b.cast(total, I8);
            b.store(1, i, &[byte, byte, byte, byte]);
            let p = b.compare(Compare::Lt, total, zero);
            let q = b.not(p);
            b.store(2, i, &[p, q]);
            b.begin_if(p);
            let half = b.cast(total, F16);
            b.store(3, i, &[half]);
            b.end_if();
        },
    );
    text(&kernel);
}

#[test]
fn zz_perf() {
    let t0 = std::time::Instant::now();
    let kernel = build(vec![tensor("x", F32, false), tensor("y", F32, true)], |b| {
        let i = global_index(b);
        let x = b.load(0, i, 4, None);
        let mut v = x[0];
        for n in 0..5000 {
            let a = b.binary(Binary::Mul, v, x[n % 4]);
            let c = b.f32_literal(n as f32);
            v = b.binary(Binary::Add, a, c);
            let k = b.index_literal(Type::I32, 4 * n as i64);
            let at = b.index_add(i, k);
            b.store(1, at, &[v]);
        }
    });
    let t1 = std::time::Instant::now();
    crate::kernel_ir::verify(&kernel).unwrap();
    let t2 = std::time::Instant::now();
    let module = emit(std::slice::from_ref(&kernel), "kernel").unwrap();
    let t3 = std::time::Instant::now();
    let s = module.to_string();
    println!("build {:?} verify {:?} emit {:?} print {:?} {}", t1 - t0, t2 - t1, t3 - t2, t3.elapsed(), s.len());
}
