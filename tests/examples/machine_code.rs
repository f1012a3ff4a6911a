//! What the assembler makes of roles: registers are given to them, and who starts copies does so without loops over
//! lanes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::finished;

/// A program of the assembler's package; none if `PTXAS` does not say where that is.
pub fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("PTXAS").map(|ptxas| Path::new(&ptxas).with_file_name(name)).filter(|p| p.exists());
    if found.is_none() {
        println!("{name} is not there: not tested");
    }
    found
}

/// What a program prints; both streams.
pub fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text
}

/// Rows by roles with registers; many copies for each row, and predicates that live across all roles.
fn softmax(box_size: u32) -> String {
    format!(
        "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 1024 {{
            m[i] = max(|j| x[i, j]);
            l[i] = sum(|j| exp(x[i, j] - m[i]));
            y[i, j] = exp(x[i, j] - m[i]) / l[i];
            launch roles {{ load: warpgroup regs(40), math: warpgroup regs(200), store: warpgroup regs(40) }};
            schedule y by math {{ split i by 8 -> ib, ii; bind ib: grid; split j by 128 -> j1, jt; bind jt: thread; }}
            schedule m in registers at y.ii {{ split j by 128 -> j1, jt; bind jt: thread; reduce jt; }}
            schedule l in registers at y.ii {{ split j by 128 -> j1, jt; bind jt: thread; reduce jt; }}
            stage xs[i, j] = x in shared at y.ii ring(3) via tma by load {{ box j by {box_size} -> jc, jb; }}
            stage ys[i, j] = y in shared at y.ii ring(2) via tma by store {{ box j by {box_size} -> jc, jb; }}
        }}"
    )
}

#[test]
fn roles_that_start_copies_have_no_loops_over_lanes() {
    let (Some(ptxas), Some(disassembler)) = (tool("ptxas"), tool("nvdisasm")) else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machine_code_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (n, source) in [64, 128, 256].map(softmax).into_iter().enumerate() {
        let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
        let text = &kernel.info.as_ref().expect("no error").ptx.text;
        assert!(text.contains("setmaxnreg"), "{text}");
        let (ptx, code) = (folder.join(format!("{n}.ptx")), folder.join(format!("{n}.cubin")));
        std::fs::write(&ptx, text.as_bytes()).expect("it is written");
        let log = run(Command::new(&ptxas).args(["-v", "-arch=sm_90a", "-o"]).arg(&code).arg(&ptx));
        // C7508: registers of roles that the assembler does not honour.
        assert!(!log.contains("C7508") && !log.contains("setmaxnreg"), "{log}");
        assert!(
            !log.lines().any(|l| l.contains("spill") && !l.contains(" 0 bytes spill stores, 0 bytes spill")),
            "{log}"
        );
        let listing = run(Command::new(&disassembler).arg("-c").arg(&code));
        assert!(listing.contains("UTMALDG") && listing.contains("USETMAXREG"), "{listing}");
        let loops: Vec<&str> = listing.lines().filter(|line| line.contains("BRA.U.ANY")).collect();
        assert!(loops.is_empty(), "{loops:#?}\n{listing}");
    }
    std::fs::remove_dir_all(&folder).expect("it was there");
}

/// Threads of a role that fetch for others, with arrivals after their copies: it is assembled, and nothing is spilled.
#[test]
fn roles_that_fetch_are_assembled() {
    let Some(ptxas) = tool("ptxas") else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fetching_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = "kernel Product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) where N % 4 == 0, K % 4 == 0 {
        c[i, j] = sum(|k| a[i, k] * b[k, j]);
        launch persistent, roles { load: warpgroup regs(40), math: warpgroup regs(232) };
        schedule c by math {
            split i by 32 -> io, ii; split j by 64 -> jo, jj; split k by 16 -> ko, kk; split ii by 8 -> ig, il; split jj by 32 -> jg, jl;
            reorder io, jo, ko, il, ig, jg, jl, kk; bind io, jo: grid; bind ig, jl: thread;
        }
        stage at[i, k] = a in shared at c.ko ring(4) via cp_async by load {
            split k by 4 -> kq, v; merge i, kq -> p; split p by 128 -> r, t; bind t: thread; vectorize v;
        }
        stage bt[k, j] = b in shared at c.ko ring(4) via cp_async by load {
            split j by 4 -> jq, v; merge k, jq -> p; split p by 128 -> r, t; bind t: thread; vectorize v;
        }
    }";
    let kernel = finished(source).unwrap_or_else(|(_, report)| panic!("{report}"));
    let text = &kernel.info.as_ref().expect("no error").ptx.text;
    assert!(text.contains("cp.async.mbarrier.arrive.noinc.shared.b64"), "{text}");
    let (ptx, code) = (folder.join("fetching.ptx"), folder.join("fetching.cubin"));
    std::fs::write(&ptx, text.as_bytes()).expect("it is written");
    let log = run(Command::new(&ptxas).args(["-v", "-arch=sm_90a", "-o"]).arg(&code).arg(&ptx));
    assert!(!log.lines().any(|l| l.contains("spill") && !l.contains(" 0 bytes spill stores, 0 bytes spill")), "{log}");
    std::fs::remove_dir_all(&folder).expect("it is removed");
}

/// The instructions of the loop around the first product of a listing: from the label that a branch after the last one
/// goes back to.
fn main_loop(listing: &str) -> Vec<&str> {
    // Encodings stand between instructions.
    let lines: Vec<&str> = listing.lines().filter(|line| !line.trim_start().starts_with("/* 0x")).collect();
    let products: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].contains("HGMMA")).collect();
    let (first, last) = (products[0], products[products.len() - 1]);
    let label = |name: &str| lines.iter().position(|line| line.trim() == format!("{name}:"));
    let back = (last..lines.len()).find_map(|n| {
        let target = lines[n].split_once("`(")?.1.split_once(')')?.0;
        label(target).filter(|at| *at < first && lines[n].contains("BRA")).map(|at| (at, n))
    });
    let (from, to) = back.unwrap_or_else(|| panic!("no loop:\n{listing}"));
    lines[from..=to].iter().copied().filter(|line| line.contains("/*")).collect()
}

/// The product of the example: nothing is spilled, no product waits for another one, and its main loop has little
/// beside its four products. Descriptors are in registers that the lanes share; there is no arithmetic of predicates
/// and of addresses in 64 bits.
#[test]
fn products_follow_each_other() {
    let (Some(ptxas), Some(disassembler)) = (tool("ptxas"), tool("nvdisasm")) else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("products_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = xtask::root().join("examples/gemm.rs");
    let source = tilewright_cli::source::SourceFile::read(&path.to_string_lossy()).expect("an example");
    let gemm = source.kernels().next().expect("a kernel");
    let text = &gemm.kernel.info.as_ref().expect("no error").ptx.text;
    let (ptx, code) = (folder.join("gemm.ptx"), folder.join("gemm.cubin"));
    std::fs::write(&ptx, text.as_bytes()).expect("it is written");
    let log = run(Command::new(&ptxas).args(["-v", "-arch=sm_90a", "-o"]).arg(&code).arg(&ptx));
    // C75xx: products that wait for each other, and registers of roles that are not honoured.
    assert!(!["C75", "serialized", "injected", "setmaxnreg"].iter().any(|word| log.contains(word)), "{log}");
    assert!(!log.lines().any(|l| l.contains("spill") && !l.contains(" 0 bytes spill stores, 0 bytes spill")), "{log}");
    let listing = run(Command::new(&disassembler).arg("-c").arg(&code));
    assert!(listing.contains("UTMALDG.2D.MULTICAST") && listing.contains("UTMASTG"), "{listing}");
    let inside = main_loop(&listing);
    let count = |word: &str| inside.iter().filter(|line| line.contains(word)).count();
    assert_eq!((count("HGMMA.64x256x16.F32.BF16"), count("R2UR"), count("IMAD.WIDE")), (4, 0, 0), "{inside:#?}");
    assert!(inside.len() <= 39, "{} instructions: {inside:#?}", inside.len());
    std::fs::remove_dir_all(&folder).expect("it was there");
}
