//! Kernels that Triton compiled for the tensor memory accelerator (`tiles/generate.py`) run unmodified, at every time
//! at which a copy may happen, and with one mistake in each they do not.

use tilewright_emulator::{Arg, Kind, Launch, Memory, Options, Program, Report};
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

/// Rows and columns.
type Shape = [u64; 2];

/// A tensor of floats as Triton passes it: map, sizes, strides.
fn descriptor(address: u64, [rows, columns]: Shape) -> Vec<Arg> {
    let map = TensorMap {
        format: Format::F32,
        address,
        dimensions: vec![
            Dimension { size: columns, stride: 4, box_size: 32, element_stride: 1 },
            Dimension { size: rows, stride: 4 * columns, box_size: 16, element_stride: 1 },
        ],
        swizzle: Swizzle::B128,
        fill: Fill::Zero,
        promotion: Promotion::B128,
    };
    let [rows32, columns32] = [rows as i32, columns as i32];
    vec![Arg(map.encode().unwrap().to_vec()), rows32.into(), columns32.into(), (columns as i64).into(), 1i64.into()]
}

struct Run {
    report: Report,
    y: Vec<f32>,
}

fn run(text: &str, x: Shape, y: Shape, grid: [u32; 3], tiles: Option<u32>, seed: u64) -> Run {
    let memory = Memory::new(1 << 24);
    let buffer = |shape: Shape, value: &dyn Fn(u64) -> f32| {
        let count = shape[0] * shape[1];
        let address = memory.alloc(4 * count, "tensor").unwrap();
        let bytes: Vec<u8> = (0..count).flat_map(|at| value(at).to_le_bytes()).collect();
        memory.write(address, &bytes).unwrap();
        address
    };
    let from = buffer(x, &|at| at as f32);
    let to = buffer(y, &|_| -1.0);
    let mut args = [descriptor(from, x), descriptor(to, y)].concat();
    args.extend(tiles.map(Arg::from));
    args.extend([0u64.into(), 0u64.into()]);
    let launch = Launch {
        entry: if tiles.is_some() { "total" } else { "turn" }.into(),
        grid,
        block: [128, 1, 1],
        dynamic_shared: 16384,
        args,
        ..Launch::default()
    };
    let options = Options { seed, budget: 1 << 24, ..Options::default() };
    let report = Program::parse(text).unwrap().launch(&launch, &memory, &options).unwrap();
    let mut bytes = vec![0; 4 * (y[0] * y[1]) as usize];
    memory.read(to, &mut bytes).unwrap();
    let y = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    Run { report, y }
}

/// Triton has all threads execute the proxy fence after the barrier, and not before it.
fn good(report: &Report) -> bool {
    report.is_clean() && report.findings.iter().all(|finding| finding.kind == Kind::LateProxyFence)
}

const TURN: &str = include_str!("tiles/turn.ptx");
const TOTAL: &str = include_str!("tiles/total.ptx");

#[test]
fn tiles_there_and_back() {
    // Neither tensor is a whole number of tiles.
    let shape = [37, 76];
    for seed in 0..6 {
        let run = run(TURN, shape, shape, [3, 3, 1], None, seed);
        assert!(good(&run.report), "seed {seed}: {}", run.report);
        assert!(run.y.iter().enumerate().all(|(at, y)| *y == 2.0 * at as f32), "seed {seed}");
    }
}

#[test]
fn loads_ahead_of_their_use() {
    for tiles in [1, 2, 3, 8] {
        // The last tile is outside in part.
        let columns = 32 * tiles - 4;
        for seed in 0..6 {
            let run = run(TOTAL, [32, columns], [32, 32], [2, 1, 1], Some(tiles as u32), seed);
            assert!(good(&run.report), "{tiles} tiles, seed {seed}: {}", run.report);
            for (at, y) in run.y.iter().enumerate() {
                let (row, column) = (at as u64 / 32, at as u64 % 32);
                let inside = (column..columns).step_by(32);
                assert_eq!(*y, inside.map(|column| (row * columns + column) as f32).sum::<f32>(), "{tiles} tiles");
            }
        }
    }
}

#[test]
fn mistakes_in_what_triton_wrote() {
    let mutants: [(&str, &str, &[Kind]); 5] = [
        (
            "mbarrier.try_wait.parity.shared.b64 complete, [%r22], %r46;",
            "setp.eq.u32 complete, 0, 0;",
            &[Kind::InFlight, Kind::Race],
        ),
        ("fence.proxy.async", "// fence.proxy.async", &[Kind::MissingProxyFence]),
        ("[%r6], 2048;", "[%r6], 1024;", &[Kind::Deadlock]),
        ("cp.async.bulk.wait_group.read", "// cp.async.bulk.wait_group.read", &[Kind::UnfinishedCopy]),
        ("mbarrier.init.shared::cta.b64 [%r7]", "mbarrier.init.shared::cta.b64 [%r6+512]", &[Kind::BarrierMisuse]),
    ];
    for (old, new, kinds) in mutants {
        assert!(TOTAL.contains(old), "{old}");
        let text = TOTAL.replace(old, new);
        for seed in 0..6 {
            let run = run(&text, [32, 256], [32, 32], [2, 1, 1], Some(8), seed);
            let found: Vec<Kind> = run.report.findings.iter().map(|finding| finding.kind).collect();
            let expected = !run.report.is_clean() && found.iter().any(|kind| kinds.contains(kind));
            assert!(expected, "`{old}`, seed {seed}: {}", run.report);
        }
    }
}
