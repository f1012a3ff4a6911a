//! Bank conflicts that the compiler counts are those that the emulator counts.

use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::compile;
use tilewright_compiler::diag::Code;
use tilewright_compiler::source::TokenBuffer;

/// A tile of 32 rows, written by columns: each lane writes `run` neighbours of its own row. Only these writes are to
/// shared memory. (Lanes that wait for a copy may go on one by one, so that reads are counted apart.)
fn kernel(element: &str, width: usize, run: usize, layout: &str) -> String {
    let vector = if run > 1 { "vectorize jv;" } else { "" };
    format!(
        "kernel K(x: {element}[M, N]) -> (y: {element}[M, N])
         where M % 32 == 0, N % {width} == 0
         {{
             y[i, j] = x[i, j] + x[i, j];
             launch threads(32);
             schedule y {{
                 split i by 32 -> io, ii; split j by {width} -> jo, jr; split jr by {run} -> ji, jv;
                 reorder io, jo, ii, ji, jv; bind io, jo: grid; bind ii: thread; {vector}
             }}
             stage ys[i, j] = y in shared at y.jo via tma {{ box i by 32 -> ic, ib; box j by {width} -> jc, jb; {layout} }}
         }}"
    )
}

/// The cycles of an access that is warned of, and those without conflicts.
fn warned(source: &str) -> Option<(u64, u64)> {
    let (tokens, _) = TokenBuffer::new(source.parse().unwrap());
    let outcome = compile(&tokens);
    let found = outcome.diagnostics.found().iter().find(|d| d.code == Code::TW0490)?;
    let numbers: Vec<u64> = found.title.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Some((numbers[0], numbers[1]))
}

#[test]
fn cycles_are_those_of_the_emulator() {
    let mut different = std::collections::BTreeSet::new();
    for (element, bytes) in [("u8", 1), ("f16", 2), ("f32", 4), ("f64", 8)] {
        for row in [16, 32, 64, 128] {
            for run in [1, 2, 4, 16 / bytes] {
                let width = row / bytes;
                if width % run != 0 || run * bytes > 16 {
                    continue;
                }
                let swizzle = if row > 16 { format!("layout [ib, jb] swizzle {row};") } else { String::new() };
                for layout in ["", &swizzle] {
                    let source = kernel(element, width, run, layout);
                    let info =
                        crate::support::compiled(&source).unwrap_or_else(|(_, report)| panic!("{source}\n{report}"));
                    let device = Device::emulator(EmulatorOptions::default());
                    let dims: Vec<i64> =
                        info.dims.iter().map(|d| if &*d.name == "M" { 64 } else { 2 * width as i64 }).collect();
                    let outcome = Trial::new(&info, &dims, 1, &device).unwrap().run(&device);
                    assert!(outcome.is_good(), "{source}\n{outcome:#?}");
                    let shared = outcome.report.unwrap().counters.shared;
                    // The copies themselves read 128 bytes in a cycle.
                    let copied = dims.iter().product::<i64>() as u64 * bytes as u64 / 128;
                    let (taken, ideal) = (shared.transactions - copied, shared.ideal_transactions - copied);
                    match warned(&source) {
                        Some((cycles, least)) => {
                            assert_eq!(taken * least, ideal * cycles, "{source}");
                            different.insert((cycles, least));
                        }
                        None => assert!(taken < 2 * ideal, "{source}\n{shared:?}"),
                    }
                }
            }
        }
    }
    assert!(different.len() > 6, "{different:?}");
}
