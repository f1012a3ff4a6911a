//! Kernels as text that the assembler takes, and on the emulator. Tests of what makes kernels, in other crates, include
//! this file.

use tilewright_emulator::{Arg, Extent, Launch, Memory, Options, Program, Report};
use tilewright_kernel::ElementType;
use tilewright_kernel::info::Argument;
use tilewright_kernel::tensor_map::TensorMap;

use crate::emit::emit;
use crate::kernel_ir::{Kernel, Parameter, ParameterKind};
use crate::proof::Tiles;

pub(crate) fn tensor(name: &str, element: ElementType, written: bool) -> Parameter {
    Parameter { name: name.to_owned(), element, kind: ParameterKind::Tensor { written } }
}

/// Emits, prints, parses again, and has the assembler read it if there is one.
pub(crate) fn text(kernel: &Kernel) -> String {
    let text = printed(kernel);
    assemble(&text);
    text
}

/// Emits, prints, and parses again.
pub(crate) fn printed(kernel: &Kernel) -> String {
    let module = emit(&[kernel], "kernel").unwrap_or_else(|error| panic!("{error}\n{kernel}"));
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

/// Runs a kernel, whose text is known, over these bytes of each tensor and scalar, under a seed of the emulator: what
/// the emulator finds, and the bytes of all of them afterwards. See [`launch_mapped`].
pub(crate) fn launch(
    kernel: &Kernel,
    text: &str,
    n: i64,
    blocks: u32,
    buffers: &[Vec<u8>],
    fresh: bool,
    seed: u64,
) -> (Report, Vec<Vec<u8>>) {
    launch_mapped(kernel, text, (n, blocks), buffers, (fresh, seed), &[])
}

/// The same with tensor maps, whose addresses are those of their tensors. The bytes of tensors that the kernel writes
/// count as uninitialised where `fresh`.
pub(crate) fn launch_mapped(
    kernel: &Kernel,
    text: &str,
    (n, blocks): (i64, u32),
    buffers: &[Vec<u8>],
    (fresh, seed): (bool, u64),
    maps: &[Tiles],
) -> (Report, Vec<Vec<u8>>) {
    let program = Program::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let memory = Memory::new(1 << 26);
    let mut launch = Launch {
        entry: kernel.signature.name.clone(),
        grid: [blocks, 1, 1],
        block: [kernel.signature.threads, 1, 1],
        ..Launch::default()
    };
    let mut bases = Vec::new();
    for (parameter, buffer) in kernel.signature.parameters.iter().zip(buffers) {
        let base = memory.alloc(buffer.len() as u64, &parameter.name).expect("it fits");
        let written = parameter.kind == ParameterKind::Tensor { written: true };
        if !(fresh && written) {
            memory.write(base, buffer).expect("just allocated");
        }
        launch.extents.push(Extent {
            base,
            bytes: buffer.len() as u64,
            label: parameter.name.clone(),
            element: parameter.element.bytes(),
            read_only: !written,
        });
        bases.push(base);
    }
    for argument in &kernel.signature.arguments {
        launch.args.push(match argument {
            Argument::Address(p) => bases[usize::from(*p)].into(),
            Argument::Scalar(p) => Arg(buffers[usize::from(*p)].clone()),
            Argument::Dim(_) => n.into(),
            Argument::Workspace(_) => panic!("these kernels share nothing"),
            Argument::Map(n) => {
                let Tiles { parameter, map } = &maps[usize::from(*n)];
                let map = TensorMap { address: bases[usize::from(*parameter)], ..map.clone() };
                Arg(map.encode().expect("a map that can be encoded").to_vec())
            }
        });
    }
    let options = Options { seed, ..Options::default() };
    let report = program.launch(&launch, &memory, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let found = (bases.iter().zip(buffers))
        .map(|(base, buffer)| {
            let mut bytes = buffer.clone();
            memory.read(*base, &mut bytes).expect("just written");
            bytes
        })
        .collect();
    (report, found)
}

/// The elements as bytes.
pub(crate) fn to_bytes(element: ElementType, values: &[u64]) -> Vec<u8> {
    let size = element.bytes() as usize;
    values.iter().flat_map(|value| value.to_le_bytes()[..size].to_vec()).collect()
}

/// The bytes as elements.
pub(crate) fn from_bytes(element: ElementType, bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    bytes.chunks(element.bytes() as usize).map(word).collect()
}
