//! What the assembler makes of roles: registers are given to them, and who starts copies does so without loops over
//! lanes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::prelude::*;
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;

use crate::examples;
use crate::support::finished;

/// A program of the assembler's package; none if `PTXAS` does not say where that is.
fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("PTXAS").map(|ptxas| Path::new(&ptxas).with_file_name(name)).filter(|p| p.exists());
    if found.is_none() {
        println!("{name} is not there: not tested");
    }
    found
}

/// What a program prints; both streams.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text
}

/// What the assembler made of a text.
pub struct MachineCode {
    /// What it says.
    pub log: String,
    /// The instructions.
    pub listing: String,
}

/// The machine code of a kernel of the repository, of the entry point that launches with tensor cores take. All entry
/// points of such kernels are what `cargo xtask assemble` is for: the assembler takes half a minute for one of them.
pub fn first_entry(info: &KernelInfo) -> Option<&'static MachineCode> {
    assembled(&info.ptx.text, Some(&info.entries[0].name))
}

/// The machine code of a text.
fn machine_code(text: &str) -> Option<&'static MachineCode> {
    assembled(text, None)
}

/// The machine code of a text, or of one of its entry points: nothing is spilled, no product waits for another one, and
/// registers of roles are as asked for; none without the assembler. Each is assembled once for all tests here.
fn assembled(text: &str, entry: Option<&str>) -> Option<&'static MachineCode> {
    /// The code of each, whoever asks for it first.
    type Known = BTreeMap<(String, Option<String>), &'static OnceLock<MachineCode>>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let (ptxas, disassembler) = (tool("ptxas")?, tool("nvdisasm")?);
    let (number, known) = {
        // A test that failed leaves what it held as it was.
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.len();
        (number, *all.entry((text.to_owned(), entry.map(str::to_owned))).or_insert_with(|| Box::leak(Box::default())))
    };
    Some(known.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("code_{}_{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (ptx, code) = (folder.join("kernel.ptx"), folder.join("kernel.cubin"));
        std::fs::write(&ptx, text.as_bytes()).expect("it is written");
        let mut command = Command::new(&ptxas);
        command.args(["-v", "-arch=sm_90a", "-o"]).arg(&code).arg(&ptx);
        command.args(entry.map(|entry| format!("--entry={entry}")));
        let log = run(&mut command);
        // C75xx: products that wait for each other, and registers of roles that are not honoured.
        assert!(!["C75", "serialized", "injected", "setmaxnreg"].iter().any(|word| log.contains(word)), "{log}");
        let is_spill = |line: &str| line.contains("spill") && !line.contains(" 0 bytes spill stores, 0 bytes spill");
        assert!(!log.lines().any(is_spill), "{log}");
        // Labels of branches are there without the analysis of what goes where, which takes a fifth of its time.
        let listing = run(Command::new(&disassembler).args(["-c", "-ndf"]).arg(&code));
        std::fs::remove_dir_all(&folder).expect("it was there");
        MachineCode { log, listing }
    }))
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
    for source in [64, 128, 256].map(softmax) {
        let text = ptx(&source);
        assert!(text.contains("setmaxnreg"), "{text}");
        let Some(MachineCode { listing, .. }) = machine_code(&text) else { return };
        assert!(listing.contains("UTMALDG") && listing.contains("USETMAXREG"), "{listing}");
        let loops: Vec<&str> = listing.lines().filter(|line| line.contains("BRA.U.ANY")).collect();
        assert!(loops.is_empty(), "{loops:#?}\n{listing}");
    }
}

/// Threads of a role that fetch for others, with arrivals after their copies: it is assembled, and nothing is spilled.
#[test]
fn roles_that_fetch_are_assembled() {
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
    let text = ptx(source);
    assert!(text.contains("cp.async.mbarrier.arrive.noinc.shared.b64"), "{text}");
    machine_code(&text);
}

/// The instructions of the smallest loop of a listing that has products, of warpgroups or of warps: from the label that
/// a branch goes back to.
fn main_loop(listing: &str) -> Vec<&str> {
    // Encodings stand between instructions.
    let lines: Vec<&str> = listing.lines().filter(|line| !line.trim_start().starts_with("/* 0x")).collect();
    let label = |name: &str| lines.iter().position(|line| line.trim() == format!("{name}:"));
    let loops = (0..lines.len()).filter(|n| lines[*n].contains("BRA")).filter_map(|n| {
        let target = lines[n].split_once("`(")?.1.split_once(')')?.0;
        label(target).filter(|at| *at < n).map(|at| &lines[at..=n])
    });
    let own = loops.filter(|inside| inside.iter().any(|line| line.contains("MMA."))).min_by_key(|inside| inside.len());
    let own = own.unwrap_or_else(|| panic!("no loop:\n{listing}"));
    own.iter().copied().filter(|line| line.contains("/*")).collect()
}

/// One role gives registers away, and the next one has as many as at the launch: what the first one left is no limit
/// for it.
#[test]
fn registers_of_a_role_are_not_those_of_the_next_one() {
    let source = "kernel Few(x: bf16[M, K], w: bf16[N, K]) -> (y: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {
        acc[n, m] = dot(|k| w[n, k] * x[m, k]);
        y[m, n] = acc[n, m] as bf16;
        launch roles { load: warpgroup regs(40), math: warpgroup };
        schedule y by math {
            split n by 64 -> nt, n2; split m by 16 -> mt, m2; reorder nt, mt, n2, m2; bind nt, mt: grid;
            fragment (n2, m2) by wgmma; unroll m2_p;
        }
        schedule acc in registers at y.mt by math {
            split k by 128 -> kt, ki; split kt into 4 -> ks, ko; bind ks: grid; reorder ks, ko, n, m, ki;
            mma (n, m, ki) by wgmma inflight(1); reduce ks by grid;
        }
        stage sw[n, k] = w in shared at acc.ko ring(4) via tma by load {
            box k by 64 -> kh, kb; layout [kh, n, kb] swizzle 128;
        }
        stage sx[m, k] = x in shared at acc.ko ring(4) via tma by load {
            box k by 64 -> kh, kb; layout [kh, m, kb] swizzle 128;
        }
    }";
    machine_code(&ptx(source));
}

fn read_example(file: &str) -> String {
    std::fs::read_to_string(xtask::root().join("examples").join(file)).expect("an example")
}

/// The instructions of a kernel of an example.
fn of_example(file: &str, name: &str) -> Option<&'static str> {
    let info = crate::example(file).iter().find(|info| info.name == name).expect("the kernel");
    Some(&first_entry(info)?.listing)
}

/// The text of a kernel of an example.
fn kernel_of(text: &str, name: &str) -> String {
    let from = text.find(&format!("kernel {name}(")).expect("a kernel");
    // A kernel ends at the brace in its own column.
    let length = text[from..].find("\n    }\n").expect("its end");
    text[from..from + length + "\n    }".len()].to_owned()
}

fn ptx(source: &str) -> String {
    let kernel = finished(source).unwrap_or_else(|(_, report)| panic!("{report}"));
    kernel.info.as_ref().expect("no error").ptx.text.to_string()
}

/// The main loop of the product of the example has little beside its four products. Descriptors are in registers that
/// the lanes share; there is no arithmetic of predicates and of addresses in 64 bits.
#[test]
fn products_follow_each_other() {
    let Some(listing) = of_example("gemm", "Gemm") else { return };
    assert!(listing.contains("UTMALDG.2D.MULTICAST") && listing.contains("UTMASTG"), "{listing}");
    let inside = main_loop(listing);
    let count = |word: &str| inside.iter().filter(|line| line.contains(word)).count();
    assert_eq!((count("HGMMA.64x256x16.F32.BF16"), count("R2UR"), count("IMAD.WIDE")), (4, 0, 0), "{inside:#?}");
    assert!(inside.len() <= 37, "{} instructions: {inside:#?}", inside.len());
}

/// What the parts of a split reduction begin with is no part of their addresses, and a part of the terms by their
/// number is never empty: the loop is that of the whole product, and both descriptors as values of the warp.
#[test]
fn parts_of_products_follow_each_other() {
    let into = kernel_of(&read_example("gemm_variants.rs"), "SplitK");
    let parts = "split k by 64 -> kt, ki;\n            split kt into 4 -> ks, ko;";
    assert!(into.contains(parts), "{into}");
    let by = into.replace(parts, "split k by 1024, 64 -> ks, ko, ki;");
    for (name, source, most) in [("into", into, 40), ("by", by, 39)] {
        let Some(MachineCode { listing, .. }) = machine_code(&ptx(&source)) else { return };
        let inside = main_loop(listing);
        let count = |word: &str| inside.iter().filter(|line| line.contains(word)).count();
        assert_eq!((count("HGMMA.64x256x16.F32.BF16"), count("R2UR"), count("REDUX")), (4, 0, 2), "{inside:#?}");
        assert!(inside.len() <= most, "{name}: {} instructions: {inside:#?}", inside.len());
    }
}

/// The main loop of every product of the examples: at most so many instructions, comparisons, other instructions that
/// make predicates, and instructions of 64-bit addresses.
///
/// Where another role copies, there is the test of the loop, and in clusters that of the lanes that tell other blocks.
/// The others have a reason.
const MAIN_LOOPS: [(&str, [usize; 4]); 23] = [
    ("Gemm", [37, 2, 0, 0]),
    ("Residual", [38, 2, 0, 0]),
    ("Scaled", [38, 2, 0, 0]),
    ("Int8", [35, 2, 0, 0]),
    ("Batched", [36, 1, 0, 0]),
    ("SplitK", [40, 2, 0, 0]),
    ("PingPong", [39, 1, 0, 0]),
    // Two groups of products, one for each factor that is multiplied by the same rows.
    ("Gated", [47, 2, 0, 0]),
    ("Experts", [39, 2, 0, 0]),
    // Terms run over three loops in each other, the first iteration of which is told by a comparison.
    ("Convolve", [35, 2, 1, 0]),
    // The warpgroup that multiplies copies as well, into two rings of three slots: each comes around by a comparison,
    // one thread of the first warp copies, as long as there is something left, and each copy names its map by an
    // address. The first products are asked whether they are.
    ("Linear", [73, 8, 0, 3]),
    ("Tuned", [73, 8, 0, 3]),
    // Extremes that are infinite, where rows have no terms yet; descriptors of the second product are added to in 64
    // bits, by two instructions.
    ("Attention", [498, 5, 0, 7]),
    ("Causal", [498, 5, 0, 7]),
    ("Window", [601, 5, 0, 7]),
    // Scores past the length of a sequence are masked: one comparison for two of them.
    ("Paged", [714, 37, 0, 7]),
    // Scores are multiplied by the scale and tested in every block, exponentials by 256; four bytes are put together.
    ("Attention8", [800, 40, 3, 7]),
    // As these, and copies by the warpgroup itself.
    ("Decode", [344, 10, 1, 3]),
    // Each column of a lane may be past the end of the vocabulary; and copies by the warpgroup itself.
    ("CrossEntropy", [576, 94, 3, 2]),
    // As these; and each score is compared with the largest so far, for its place.
    ("TopOne", [843, 231, 3, 2]),
    // Threads read the factor from memory, and test what they read.
    ("Weights", [284, 17, 0, 0]),
    // Threads fetch by `cp.async` to addresses of 64 bits, and test what they fetch.
    ("Warps", [199, 28, 0, 4]),
    ("ByWarps", [303, 15, 0, 6]),
];

#[test]
fn main_loops_have_no_predicates() {
    if tool("ptxas").and(tool("nvdisasm")).is_none() {
        return;
    }
    let of_products =
        |info: &&KernelInfo| ["wgmma.mma_async", "mma.sync"].iter().any(|product| info.ptx.text.contains(product));
    let kernels: Vec<&KernelInfo> = examples().values().flatten().filter(of_products).collect();
    let wrong = kernels.par_iter().filter_map(|info| {
        let name = &*info.name;
        let row = MAIN_LOOPS.iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("{name} has no row"));
        let MachineCode { listing, .. } = first_entry(info)?;
        let inside = main_loop(listing);
        let count = |words: &[&str]| inside.iter().filter(|line| words.iter().any(|word| line.contains(word))).count();
        let comparisons = count(&["SETP"]);
        let others = count(&["PLOP3", "P2R", "R2P", "VOTE"]);
        let found = [inside.len(), comparisons, others, count(&["IMAD.WIDE", ".X "])];
        let is_more = found.iter().zip(row.1).any(|(found, most)| *found > most);
        is_more.then(|| format!("{name}: {found:?}, at most {:?}: {inside:#?}", row.1))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(kernels.len(), MAIN_LOOPS.len());
}

/// In the main loops of attention both products of a block are under way at one time, and of 64 scores a thread has
/// each takes an extreme, a multiplication with the difference, an exponential, a sum, half of a conversion, and one
/// correction of the output: 352 instructions of at most 500. None is for masks.
#[test]
fn attention_has_little_beside_its_products() {
    for (file, name) in [("attention", "Attention"), ("attention_variants", "Causal")] {
        let Some(listing) = of_example(file, name) else { return };
        let inside = main_loop(listing);
        let count = |word: &str| inside.iter().filter(|line| line.contains(word)).count();
        assert_eq!((count("HGMMA.64x128x16.F32.BF16"), count("MUFU.EX2"), count("F2FP")), (16, 66, 32), "{inside:#?}");
        assert!(count("R2UR") <= 4 && count("ISETP") <= 2, "{inside:#?}");
        assert!(inside.len() <= 500, "{} instructions: {inside:#?}", inside.len());
        // The scores are awaited while the other product goes on.
        let waits = |pending: &str| inside.iter().filter(|l| l.contains("DEPBAR.LE") && l.contains(pending)).count();
        assert_eq!((waits("gsb0, 0x1"), waits("gsb0, 0x0")), (1, 1), "{inside:#?}");
    }
}

/// The kernel of the example for heads of other sizes: with blocks of so many keys, and boxes of so many elements.
fn attention_of(head: u32, keys: u32, width: u32) -> String {
    let text = read_example("attention.rs");
    let (from, to) =
        (text.find("kernel Attention").expect("it is there"), text.find("\n}\n\nfn main").expect("its end"));
    text[from..to]
        .replace("S, 128]", &format!("S, {head}]"))
        .replace("T, 128]", &format!("T, {head}]"))
        .replace("split j by 128", &format!("split j by {keys}"))
        .replace("box d by 64", &format!("box d by {width}"))
        .replace("box e by 64", &format!("box e by {width}"))
        .replace("swizzle 128", &format!("swizzle {}", 2 * width))
}

/// Heads of all sizes: products, exponentials and instructions of the main loop.
#[test]
fn heads_of_all_sizes() {
    for (of, [products, exponentials, most]) in
        [((64, 128, 64), [12, 66, 445]), ((96, 128, 32), [14, 66, 475]), ((256, 64, 64), [20, 34, 445])]
    {
        let (head, keys, width) = of;
        let source = attention_of(head, keys, width);
        let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
        let info = kernel.info.as_ref().expect("no error");
        // H, S, T.
        for (seed, dims) in (1..).zip([[1, 130, 300], [2, 1, 40]]) {
            let device = Device::emulator(EmulatorOptions::default().seed(seed));
            let outcome = Trial::new(info, &dims, seed, &device).expect("a trial").run(&device);
            assert!(outcome.is_good(), "{head} at {dims:?}: {outcome:#?}");
        }
        let Some(MachineCode { listing, .. }) = machine_code(&info.ptx.text) else { continue };
        let inside = main_loop(listing);
        let count = |word: &str| inside.iter().filter(|line| line.contains(word)).count();
        assert_eq!((count("HGMMA"), count("MUFU.EX2")), (products, exponentials), "{head}: {inside:#?}");
        assert!(inside.len() <= most, "{head}: {} instructions: {inside:#?}", inside.len());
    }
}
