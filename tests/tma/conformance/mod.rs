//! A published suite of tests of scheduling for the tensor memory accelerator, nvFuser's (`tests/cpp` of NVIDIA/Fuser,
//! and the figures of its documents on the subject), said in our language: the verdict, the dimensions that are
//! inferred, and the data, on the emulator.
//!
//! Each case names the test that it comes from; [`names`] lists all of them, and why some are not said here.

mod figures;
mod indexing;
mod names;
mod others;
mod schedulers;
mod simple;
use std::collections::BTreeSet;

use crate::support::{analysed, compiled};
use tilewright::kernel::info::MapInfo;
use tilewright::{Device, EmulatorOptions, Tensor, schedule};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;
use tilewright_compiler::plan::staged::Staged;

/// A kernel and what is expected of it.
struct Case {
    /// The test that it comes from.
    test: &'static str,
    /// Which of its parameters, or what is special here.
    variant: String,
    source: String,
    want: Want,
}

enum Want {
    /// It is compiled.
    Accepted(Accepted),
    /// Each of these codes is reported, and no other.
    Refused(Code),
}

#[derive(Default)]
struct Accepted {
    /// Sizes at which the dimensions are compared.
    at: Vec<i64>,
    /// Of each copy the dimensions, innermost first: ⟨size, bytes between neighbours, box, element stride⟩.
    maps: Vec<String>,
    /// Bytes of one tile of each copy.
    tiles: Vec<u64>,
    /// Copies that take a tensor map, where that is looked at; the others are runs of memory.
    by_map: Option<usize>,
    /// Whether addresses are computed with exclusive or, where that is looked at.
    xor: Option<bool>,
    /// Sizes to run at.
    runs: Vec<Vec<i64>>,
    /// Sizes that the launcher refuses.
    refused: Vec<Vec<i64>>,
}

impl Case {
    fn accepted(test: &'static str, variant: &str, source: String, maps: &[&str], tiles: &[u64]) -> Self {
        let maps = maps.iter().map(|m| (*m).to_owned()).collect();
        let want = Want::Accepted(Accepted { maps, tiles: tiles.to_vec(), ..Accepted::default() });
        Self { test, variant: variant.to_owned(), source, want }
    }

    fn refused(test: &'static str, variant: &str, source: String, code: Code) -> Self {
        Self { test, variant: variant.to_owned(), source, want: Want::Refused(code) }
    }

    fn with(mut self, change: impl FnOnce(&mut Accepted)) -> Self {
        if let Want::Accepted(accepted) = &mut self.want {
            change(accepted);
        }
        self
    }

    /// The sizes at which the dimensions are compared; needed if there are symbolic ones.
    fn at(self, at: &[i64]) -> Self {
        self.with(|a| a.at = at.to_vec())
    }

    /// Sizes to run at.
    fn runs<const N: usize>(self, runs: &[[i64; N]]) -> Self {
        self.with(|a| a.runs = runs.iter().map(|r| r.to_vec()).collect())
    }

    /// A run at the sizes that the source has.
    fn runs_unchanged(self) -> Self {
        self.runs(&[[]])
    }

    /// Sizes that the launcher refuses.
    fn launch_refuses<const N: usize>(self, runs: &[[i64; N]]) -> Self {
        self.with(|a| a.refused = runs.iter().map(|r| r.to_vec()).collect())
    }

    /// How many copies take a tensor map.
    fn by_map(self, copies: usize) -> Self {
        self.with(|a| a.by_map = Some(copies))
    }

    /// Whether addresses are computed with exclusive or.
    fn xor(self, xor: bool) -> Self {
        self.with(|a| a.xor = Some(xor))
    }
}

/// A kernel with the equation `y[axes] = x[axes]`.
fn copy(input: &str, output: &str, facts: &str, axes: &str, schedule: &str, copies: &str) -> String {
    computed(&format!("x: {input}"), output, facts, &format!("y[{axes}] = x[{axes}];"), schedule, copies)
}

/// A kernel with one output, `y`.
fn computed(inputs: &str, output: &str, facts: &str, equation: &str, schedule: &str, copies: &str) -> String {
    let facts = if facts.is_empty() { String::new() } else { format!("where {facts}") };
    format!("kernel K({inputs}) -> (y: {output}) {facts} {{\n{equation}\nschedule y {{ {schedule} }}\n{copies}\n}}")
}

/// The dimensions of a map at these sizes, innermost first.
fn dimensions(map: &MapInfo, at: &[i64]) -> String {
    let shown = map.dimensions.iter().map(|d| {
        let [size, stride] = [&d.size, &d.stride].map(|s| s.eval(at).expect("the sizes are small"));
        format!("⟨{size}, {}, {}, {}⟩", stride * i128::from(map.format.bytes()), d.box_size, d.element_stride)
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The same of a copy, whether it takes a map or not.
fn copied(staged: &Staged, at: &[i64]) -> String {
    let at: Vec<i128> = at.iter().map(|n| i128::from(*n)).collect();
    let shown = staged.axes.iter().rev().map(|axis| {
        let [size, stride] = [&axis.size, &axis.stride].map(|e| e.eval(&at).expect("the sizes are small"));
        let bytes = stride * i128::from(staged.element.bytes());
        format!("⟨{size}, {bytes}, {}, {}⟩", axis.boxed.box_size, axis.boxed.element_stride)
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// What is wrong with a case.
fn check(case: &Case) -> Result<(), String> {
    let found = analysed(&case.source);
    let (accepted, (info, stages)) = match (&case.want, found) {
        (Want::Refused(code), Err((codes, _))) if codes.iter().all(|c| c == code) => return Ok(()),
        (Want::Refused(code), Ok(_)) => return Err(format!("accepted instead of {code}")),
        (_, Err((_, report))) => return Err(report),
        (Want::Accepted(accepted), Ok(info)) => (accepted, info),
    };
    let copies: Vec<&Staged> = stages.iter().flat_map(|stage| &stage.staged).collect();
    let maps: Vec<String> = copies.iter().map(|staged| copied(staged, &accepted.at)).collect();
    if maps != accepted.maps {
        return Err(format!("the dimensions are {maps:#?}, not {:#?}", accepted.maps));
    }
    let mapped: Vec<String> = info.maps.iter().map(|m| dimensions(m, &accepted.at)).collect();
    let wanted: Vec<&String> = copies.iter().zip(&maps).filter(|(s, _)| s.has_map()).map(|(_, m)| m).collect();
    if mapped.iter().ne(wanted) || accepted.by_map.is_some_and(|n| n != mapped.len()) {
        return Err(format!("the tensor maps are {mapped:#?}:\n{}", info.explanation));
    }
    let tile = |m: &MapInfo| m.at(0, &accepted.at).map(|m| m.tile_bytes()).map_err(|e| e.to_string());
    let of_maps = info.maps.iter().map(tile).collect::<Result<Vec<u64>, _>>()?;
    let tiles: Vec<u64> = copies.iter().map(|staged| staged.tile_bytes()).collect();
    let same = copies.iter().zip(&tiles).filter(|(s, _)| s.has_map()).map(|(_, bytes)| bytes).eq(&of_maps);
    if tiles != accepted.tiles || !same {
        return Err(format!("the bytes of tiles are {tiles:?}, not {:?}; of maps {of_maps:?}", accepted.tiles));
    }
    let text = &info.ptx.text;
    // One thread issues every copy: an elected one of the first warp, or the first one of a block that has no whole
    // warp.
    let by_map = text.contains("cp.async.bulk.tensor.");
    let by_address = text.contains("cp.async.bulk.shared") || text.contains("cp.async.bulk.global");
    let elected = text.contains("elect.sync");
    let any = !copies.is_empty() && info.launch.threads >= 32;
    if by_map == mapped.is_empty() || by_address == copies.iter().all(|s| s.has_map()) || elected != any {
        return Err(format!("copied: {by_map} {by_address}, elected: {elected}:\n{text}"));
    }
    if let Some(xor) = accepted.xor.filter(|xor| *xor != text.contains("xor.b32")) {
        return Err(format!("exclusive or: {xor} expected:\n{text}"));
    }
    for seed in 0..4 {
        for dims in &accepted.runs {
            let device = Device::emulator(EmulatorOptions::default().seed(seed));
            let trial = Trial::new(&info, dims, seed, &device).map_err(|e| format!("{dims:?}: {e}"))?;
            let outcome = trial.run(&device);
            if !outcome.is_good() || outcome.verdicts.is_empty() {
                return Err(format!("seed {seed} at {dims:?}: {outcome:#?}"));
            }
        }
    }
    for dims in &accepted.refused {
        let device = Device::emulator(EmulatorOptions::default());
        let trial = Trial::new(&info, dims, 0, &device).map_err(|e| format!("{dims:?}: {e}"))?;
        if trial.launch(&device).is_ok() {
            return Err(format!("launched at {dims:?}"));
        }
    }
    Ok(())
}

/// Checks all cases of a section and reports all that is wrong.
fn check_all(cases: &[Case]) {
    let wrong = cases.iter().filter_map(|case| {
        let Case { test, variant, source, .. } = case;
        check(case).err().map(|what| format!("{test} {variant}:\n{source}\n{what}\n"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_rank_type_and_swizzle() {
    let cases = simple::every_rank_type_and_swizzle();
    assert_eq!(cases.len(), 120);
    check_all(&cases);
}

#[test]
fn dimensions_of_one_element() {
    let cases = simple::dimensions_of_one_element();
    assert_eq!(cases.len(), 60);
    check_all(&cases);
}

/// A swizzle as ops is the one of the span: the same instructions, which the other tests run.
#[test]
fn swizzles_as_ops() {
    let cases = simple::swizzles_as_ops();
    assert_eq!(cases.len(), 135);
    for [ops, span] in cases {
        let [ops, span] = [ops, span].map(|case| {
            let Case { test, variant, source, .. } = case;
            let info = compiled(&source).unwrap_or_else(|(_, report)| panic!("{test} {variant}:\n{source}\n{report}"));
            (source, info.ptx.text.to_string(), format!("{:?}", info.maps))
        });
        assert_eq!((&ops.1, &ops.2), (&span.1, &span.2), "{}", ops.0);
    }
}

#[test]
fn indexing_and_refusals() {
    check_all(&indexing::cases());
}

#[test]
fn figures() {
    check_all(&figures::cases());
}

#[test]
fn other_tests() {
    check_all(&others::cases());
}

#[test]
fn schedulers() {
    check_all(&schedulers::cases());
}

/// Nothing of the suite is left out silently.
#[test]
fn every_test_is_said_or_has_a_reason() {
    let lists = [
        simple::every_rank_type_and_swizzle(),
        simple::dimensions_of_one_element(),
        indexing::cases(),
        figures::cases(),
        others::cases(),
        schedulers::cases(),
    ];
    let mut said: BTreeSet<&str> = lists.iter().flatten().map(|c| c.test).collect();
    said.extend(names::TESTED_ELSEWHERE_HERE);
    let missing: BTreeSet<&str> = names::NOT_SAID.iter().map(|(name, _)| *name).collect();
    let both: Vec<_> = said.intersection(&missing).collect();
    assert!(both.is_empty(), "said, and with a reason why not: {both:?}");
    let all: BTreeSet<&str> = names::ALL.iter().copied().collect();
    assert_eq!(all.len(), names::ALL.len(), "a name is listed twice");
    assert_eq!(&said | &missing, all);
}

schedule! {
    /// A copy by boxes of 128.
    pub kernel Line(x: f32[N]) -> (y: f32[N])
    {
        y[i] = x[i];
        schedule y { split i by 128 -> c, b; bind c: grid; bind b: thread; }
        stage xs[i] = x in shared at y.c via tma { box i by 128 -> k, z; }
    }
}

/// `TMARuntimeInvalidTest.MisalignedGlobalAddress`: a tensor starts at a multiple of 16 bytes, which is known at
/// launch.
#[test]
fn misaligned_addresses() {
    let device = Device::emulator(EmulatorOptions::default());
    let values: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let whole = Tensor::from_slice(&device, &values, [256]).expect("256 elements");
    for (offset, fits) in [(0, true), (4, true), (2, false), (1, false)] {
        let mut y = Tensor::zeros(&device, [128]).expect("128 elements");
        let x = whole.slice(0, offset..offset + 128).expect("it is inside");
        let result = Line { x: &x, y: &mut y }.launch(&device);
        assert_eq!(result.is_ok(), fits, "{offset}: {result:?}");
        if fits {
            assert_eq!(y.to_vec().expect("read back"), values[offset..offset + 128]);
        }
    }
    let map = dimensions(&Line::KERNEL.maps[0], &[128]);
    assert_eq!(map, "⟨128, 4, 128, 1⟩");
}
