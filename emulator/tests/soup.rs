//! Random and broken programs: whatever the text, the emulator answers with an error or a report, in bounded time and
//! memory.

use crate::common::{Bench, module};
use proptest::prelude::*;
use tilewright_emulator::{Launch, Program};

const TEMPLATES: &[&str] = &[
    "add.u32 R, R, R;",
    "sub.s32 R, R, I;",
    "mul.lo.u32 R, R, R;",
    "mul.hi.s32 R, R, R;",
    "mad.lo.u32 R, R, R, R;",
    "div.u32 R, R, R;",
    "rem.s32 R, R, R;",
    "and.b32 R, R, R;",
    "not.b32 R, R;",
    "shl.b32 R, R, R;",
    "shr.s32 R, R, R;",
    "shf.l.wrap.b32 R, R, R, R;",
    "lop3.b32 R, R, R, R, 0x1b;",
    "prmt.b32 R, R, R, R;",
    "bfe.s32 R, R, R, R;",
    "bfi.b32 R, R, R, R, R;",
    "popc.b32 R, R;",
    "clz.b32 R, R;",
    "setp.lt.u32 P, R, R;",
    "setp.ne.and.s32 P, R, R, P;",
    "selp.b32 R, R, R, P;",
    "and.pred P, P, P;",
    "not.pred P, P;",
    "add.rn.f32 F, F, F;",
    "mul.rz.f32 F, F, F;",
    "fma.rp.ftz.f32 F, F, F, F;",
    "div.rn.f32 F, F, F;",
    "sqrt.rn.f32 F, F;",
    "ex2.approx.f32 F, F;",
    "rcp.approx.ftz.f32 F, F;",
    "min.f32 F, F, F;",
    "max.NaN.f32 F, F, F;",
    "setp.gtu.f32 P, F, F;",
    "cvt.rn.f32.u32 F, R;",
    "cvt.rzi.s32.f32 R, F;",
    "cvt.rn.f16.f32 H, F;",
    "cvt.f32.f16 F, H;",
    "cvt.rn.bf16x2.f32 R, F, F;",
    "fma.rn.bf16x2 R, R, R, R;",
    "add.f16x2 R, R, R;",
    "cvt.u64.u32 D, R;",
    "cvt.u32.u64 R, D;",
    "add.u64 D, D, D;",
    "mul.wide.u32 D, R, R;",
    "mov.b32 R, {H, H};",
    "mov.b64 {R, R}, D;",
    "mov.u32 R, %tid.x;",
    "mov.u32 R, %laneid;",
    "mov.u32 R, I;",
    "mov.u32 R, %ctaid.x;",
    "cvt.rn.f32.s32 F, R;",
    "sin.approx.f32 F, F;",
    "dp4a.u32.u32 R, R, R, R;",
    "mul.lo.u64 D, D, D;",
    "div.u64 D, D, D;",
    "add.cc.u32 R, R, R;",
    "addc.u32 R, R, R;",
    "and.b32 R, R, 0x1fc;",
    "st.shared.u32 [R], R;",
    "ld.shared.u32 R, [R];",
    "atom.shared.add.u32 R, [R], R;",
    "ld.shared.v2.u32 {R, R}, [R];",
    "st.shared.u8 [R], R;",
    "ld.global.u32 R, [D];",
    "st.global.u32 [D], R;",
    "ld.global.u32 R, [X];",
    "st.global.v2.u32 [X], {R, R};",
    "red.global.add.u32 [X], R;",
    "ld.u32 R, [D];",
    "ld.local.u32 R, [R];",
    "bar.sync 0;",
    "bar.sync 1, 32;",
    "bar.arrive 1, 64;",
    "bar.red.popc.u32 R, 0, P;",
    "bar.warp.sync 0xffffffff;",
    "bar.warp.sync R;",
    "shfl.sync.bfly.b32 R, R, R, 31, 0xffffffff;",
    "vote.sync.ballot.b32 R, P, 0xffffffff;",
    "match.any.sync.b32 R, R, 0xffffffff;",
    "redux.sync.add.u32 R, R, R;",
    "activemask.b32 R;",
    "bra L;",
    "@P bra L;",
    "@!P bra L;",
    "@P bra L;",
    "@P exit;",
    "@P ret;",
    "@P trap;",
    "membar.gl;",
    "nanosleep.u32 20;",
    "@P add.u32 R, R, 1;",
    "@P st.shared.u32 [R], R;",
    "@!P bar.sync 0;",
];

/// A program from templates: the letters become random registers and labels.
fn program(picks: &[(usize, u64)]) -> String {
    let mut body =
        String::from(".shared .align 16 .b8 buf[512];\n.local .align 4 .b8 loc[64];\nld.param.u64 %rd0, [x];\n");
    for (line, (pick, bits)) in picks.iter().enumerate() {
        let mut bits = *bits;
        let mut number = |n: u64| {
            let value = bits % n;
            bits = (bits / n).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bits >> 7;
            value
        };
        body.push_str(&format!("L{line}: "));
        let mut word = String::new();
        let mut flush = |word: &mut String, body: &mut String| {
            let text = match word.as_str() {
                "R" => format!("%r{}", number(6)),
                "F" => format!("%f{}", number(4)),
                "D" => format!("%rd{}", number(3)),
                "H" => format!("%h{}", number(3)),
                "P" => format!("%p{}", number(3)),
                "I" => format!("{}", number(300)),
                "L" => format!("L{}", number(picks.len() as u64)),
                "X" => "%rd0".to_owned(),
                other => other.to_owned(),
            };
            body.push_str(&text);
            word.clear();
        };
        for c in TEMPLATES[pick % TEMPLATES.len()].chars() {
            if c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '%' {
                word.push(c);
            } else {
                flush(&mut word, &mut body);
                body.push(c);
            }
        }
        flush(&mut word, &mut body);
        body.push('\n');
    }
    module(".param .u64 x", &format!("{body}ret;"))
}

fn bench(threads: usize) -> Bench {
    let mut bench = Bench::new(5, 48);
    bench.buffer("x", &[1; 64]);
    bench.options.budget = 20_000;
    bench.options.threads = Some(threads);
    bench
}

/// Otherwise the tests below would test the parser only.
#[test]
fn every_template_runs() {
    for pick in 0..TEMPLATES.len() {
        let text = program(&[(pick, 12345)]);
        assert!(bench(1).try_run(&text).is_ok(), "{:?}\n{text}", bench(1).try_run(&text));
    }
}

/// Cases of each test; `TILEWRIGHT_FUZZ=FIRST,COUNT` asks for a campaign of so many.
fn cases() -> u32 {
    let count = std::env::var("TILEWRIGHT_FUZZ").ok();
    count.and_then(|text| text.split_once(',')?.1.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Memory, findings and counters depend neither on the number of host threads, nor on the host's instructions, nor
    /// on what is executed once for a warp.
    #[test]
    fn random_programs_end_alike(
        picks in prop::collection::vec((0usize..1000, any::<u64>()), 1..40),
        seed in 0u64..4,
        threads in 2usize..9,
    ) {
        let text = program(&picks);
        let run = |threads: usize, baseline: bool| {
            let mut bench = bench(threads);
            (bench.options.seed, bench.options.baseline) = (seed, baseline);
            let Launch { args, .. } = bench.launch();
            let base = u64::from_le_bytes(args[0].0[..].try_into().unwrap());
            (bench.try_run(&text), bench.words(base, 64))
        };
        let one = run(1, false);
        prop_assert_eq!(&one, &run(threads, false), "{} threads\n{}", threads, text);
        prop_assert_eq!(&one, &run(1, true), "plainly\n{}", text);
    }

    #[test]
    fn mutated_text_is_answered(
        picks in prop::collection::vec((0usize..1000, any::<u64>()), 1..12),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>()), 1..6),
    ) {
        let mut bytes = program(&picks).into_bytes();
        for (at, kind, value) in edits {
            let index = at.index(bytes.len());
            match kind {
                0 => { bytes.remove(index); }
                1 => bytes[index] = 32 + value % 95,
                2 => bytes.insert(index, 32 + value % 95),
                _ => { let other = usize::from(value) % bytes.len(); bytes.swap(index, other); }
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        let _an_error_or_a_report = bench(1).try_run(&text);
    }

    #[test]
    fn any_launch_is_answered(grid in any::<[u32; 3]>(), block in any::<[u32; 3]>(), shared in any::<u32>(), args in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..3)) {
        let program = Program::parse(&module(".param .u64 x", "trap;")).unwrap();
        let bench = bench(1);
        let args = args.into_iter().map(tilewright_emulator::Arg).collect();
        let launch = Launch { entry: "k".into(), grid, block, dynamic_shared: shared, args, ..Launch::default() };
        let _an_error_or_a_report = program.launch(&launch, &bench.memory, &bench.options);
    }
}
