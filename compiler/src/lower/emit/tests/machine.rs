//! Runs kernels on the emulator.

use tilewright_emulator::{Arg, Extent, Launch, Memory, Options, Program, Report};
use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;
use tilewright_kernel::info::Argument;
use tilewright_kernel::tensor_map::TensorMap;

use super::{THREADS, build, global_index, tensor, text};
use crate::kernel_ir::Memory::Parameter;
use crate::kernel_ir::{Builder, Kernel, ParameterKind, Type, ValueId};
use crate::proof::Tiles;

/// Runs a kernel over these bytes of each tensor (and of each scalar), and returns the bytes of all of them afterwards.
/// The bytes of tensors that it writes count as uninitialised where `fresh`. The launch must have no findings.
pub(super) fn execute(kernel: &Kernel, n: i64, blocks: u32, buffers: &[Vec<u8>], fresh: bool) -> Vec<Vec<u8>> {
    let text = text(kernel);
    let (report, found) = launch(kernel, &text, n, blocks, buffers, fresh, 0);
    assert!(report.is_clean(), "{report:?}\n{kernel}\n{text}");
    found
}

/// The same of a kernel whose text is known, under a seed of the emulator, and with what the emulator finds.
pub(in crate::lower) fn launch(
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

/// The same with tensor maps, whose addresses are those of their tensors.
pub(super) fn launch_mapped(
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
pub(in crate::lower) fn to_bytes(element: ElementType, values: &[u64]) -> Vec<u8> {
    let size = element.bytes() as usize;
    values.iter().flat_map(|value| value.to_le_bytes()[..size].to_vec()).collect()
}

/// The bytes as elements.
pub(in crate::lower) fn from_bytes(element: ElementType, bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    bytes.chunks(element.bytes() as usize).map(word).collect()
}

/// Each row of the input columns through a kernel that `body` makes of one value a column; the columns of its results.
pub(super) fn run(
    inputs: &[(ElementType, &[u64])],
    results: &[ElementType],
    body: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
) -> Vec<Vec<u64>> {
    let parameters = (inputs.iter().map(|(element, _)| tensor("x", *element, false)))
        .chain(results.iter().map(|element| tensor("y", *element, true)))
        .collect();
    let kernel = build(parameters, |b| {
        let (i, n) = (global_index(b), b.dim(0, Type::I32));
        let inside = b.index_compare(Compare::Lt, i, n);
        b.begin_if(inside);
        let values: Vec<_> = (0..inputs.len() as u16).map(|p| b.load(Parameter(p), i, 1, None)[0]).collect();
        let found = body(b, &values);
        assert_eq!(found.len(), results.len());
        for (p, value) in (inputs.len() as u16..).zip(found) {
            b.store(Parameter(p), i, &[value]);
        }
        b.end_if();
    });
    let rows = inputs.first().map_or(0, |(_, column)| column.len());
    let buffers: Vec<_> = (inputs.iter().map(|(element, column)| to_bytes(*element, column)))
        .chain(results.iter().map(|element| vec![0; rows * element.bytes() as usize]))
        .collect();
    let blocks = (rows as u32).div_ceil(THREADS);
    let bytes = execute(&kernel, rows as i64, blocks, &buffers, true);
    results.iter().zip(&bytes[inputs.len()..]).map(|(element, bytes)| from_bytes(*element, bytes)).collect()
}
