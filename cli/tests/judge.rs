//! `tilewright emulate` as a judge in continuous integration: seeds, scripts, expectations, suppressions, and reports
//! for other programs.

#[path = "common/emulate.rs"]
mod run;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tilewright_cli::emulate::npy::{self, Npy};

use run::emulate;

/// `double`: y = 2·x. `total<float>`: each thread adds its element to a word, `.cta` or not by its second parameter.
/// `late`: reads a neighbour without a barrier, in a function that was inlined twice, and unrolled.
/// `members`: a struct with a pointer. `keeps`: a block of the heap that nobody frees.
const KERNELS: &str = "\
.version 8.0
.target sm_90
.address_size 64
.file 1 \"k.cu\"
.file 2 \"lib/scan.cuh\"
.extern .func (.param .b64 r) malloc(.param .b64 n);
.visible .entry _Z6doublePKfPf(.param .u64 x, .param .u64 y) {
    .reg .b32 %r; .reg .f32 %f; .reg .b64 %d<5>;
    ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];
    mov.u32 %r, %tid.x; mad.wide.u32 %d2, %r, 4, %d0; mad.wide.u32 %d3, %r, 4, %d1;
    ld.global.f32 %f, [%d2]; add.f32 %f, %f, %f; st.global.f32 [%d3], %f;
    ret;
}
.visible .entry _ZN3app5totalIfEEvPKfPf(.param .u64 x, .param .u64 y) {
    .reg .b32 %r; .reg .f32 %f; .reg .b64 %d<5>;
    ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];
    mov.u32 %r, %tid.x; mad.wide.u32 %d2, %r, 4, %d0;
    ld.global.f32 %f, [%d2]; red.global.add.f32 [%d1], %f;
    ret;
}
.visible .entry late(.param .u64 y) {
    .reg .b32 %r<4>; .reg .b64 %d<4>;
    .shared .align 4 .b32 s[128];
    ld.param.u64 %d0, [y];
    mov.u32 %r0, %tid.x; mov.u32 %r3, s; mad.lo.u32 %r1, %r0, 4, %r3; st.shared.u32 [%r1], 0;
    st.shared.u32 [%r1+256], 0;
    bar.sync 0;
    .loc 1 19 5
    st.shared.u32 [%r1], %r0;
    st.shared.u32 [%r1+256], %r0;
    xor.b32 %r2, %r0, 32; mad.lo.u32 %r2, %r2, 4, %r3; mad.wide.u32 %d1, %r0, 4, %d0;
    .loc 1 20 5
    .loc 2 7 9, function_name $L__info_string0, inlined_at 1 20 5
    ld.shared.u32 %r1, [%r2];
    .loc 2 7 12, function_name $L__info_string0, inlined_at 1 20 5
    ld.shared.u32 %r2, [%r2+256];
    .loc 1 21 5
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%d1], %r1;
    ret;
}
.visible .entry members(.param .align 8 .b8 s[24]) {
    .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [s+8]; ld.param.u32 %r, [s+16]; st.global.u32 [%d], %r;
    ret;
}
.visible .entry keeps() {
    .param .b64 n; .param .b64 r;
    st.param.b64 [n], 24; call (r), malloc, (n);
    ret;
}
.section .debug_str
{
$L__info_string0:
.b8 95
.b8 90
.b8 52
.b8 112
.b8 101
.b8 101
.b8 107
.b8 80
.b8 105
.b8 0
}
";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("judge_{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("k.ptx"), KERNELS).unwrap();
    for (name, values) in [("x.npy", [1.0f32, 2.0, 3.0, 4.0]), ("doubled.npy", [2.0, 4.0, 6.0, 8.5])] {
        std::fs::write(folder.join(name), array(&values)).unwrap();
    }
    std::fs::write(folder.join("sum.npy"), array(&[20.0])).unwrap();
    folder
}

fn array(values: &[f32]) -> Vec<u8> {
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy::write(&Npy { dtype: "f4".into(), shape: vec![values.len() as u64], data })
}

fn json(folder: &Path, arguments: &str) -> (i32, Value) {
    let (code, out, err) = emulate(folder, &format!("{arguments} --json"));
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}")))
}

#[test]
fn buffers_are_compared_with_what_is_expected() {
    let folder = folder("expect");
    let arguments = "k.ptx --entry double --block 4 --arg in:x.npy --arg";
    let (code, out, _) = emulate(&folder, &format!("{arguments} expect:doubled.npy,0.1"));
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("`y` is as in doubled.npy: 4 elements"), "{out}");
    let (code, out, _) = emulate(&folder, &format!("{arguments} expect:doubled.npy,1e-3,0.1:zero:f32[4]"));
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("1 of 4 elements differ, the first at 3: 8, expected 8.5"), "{out}");
    let (code, document) = json(&folder, &format!("{arguments} expect:doubled.npy --seeds 3..5"));
    assert_eq!((code, &document["good"], &document["seeds"]), (1, &false.into(), &serde_json::json!([3, 4])));
    let one = &document["expectations"][1];
    assert_eq!((&one["seed"], &one["wrong"], &one["first"]["element"]), (&4.into(), &1.into(), &3.into()));
    for (argument, why) in [
        ("expect:doubled.npy,x", "`x` is no relative tolerance"),
        ("expect:doubled.npy,0.1,0.1,0.1", "follows the two tolerances"),
        ("expect:doubled.npy:zero:f32[5]", "the buffer has 20 bytes, and doubled.npy has 16 to compare with"),
        ("expect:k.ptx,0.1", "a tolerance needs a file of NumPy's"),
    ] {
        let (code, _, err) = emulate(&folder, &format!("{arguments} {argument}"));
        assert!(code == 2 && err.contains(why), "{argument}: {err}");
    }
}

#[test]
fn a_script_launches_on_one_memory() {
    let folder = folder("script");
    let script = "ptx = \"k.ptx\"\n[buffers]\nx = \"in:x.npy\"\ny = \"out:f32[4]=y.npy\"\n\
        [[launch]]\nentry = \"double\"\nblock = [4]\nargs = [\"buffer:x\", \"buffer:y\"]\n\
        [[launch]]\nentry = \"app::total<float>\"\nblock = [4]\nargs = [\"buffer:y\", \"expect:sum.npy:zero:f32[1]\"]\n";
    std::fs::write(folder.join("s.toml"), script).unwrap();
    let (code, out, err) = emulate(&folder, "--script s.toml --threads 2");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("double(float const*, float*):\n") && out.contains("void app::total<float>("), "{out}");
    assert_eq!(npy::read(&std::fs::read(folder.join("y.npy")).unwrap()).unwrap().shape, [4]);
    let (_, document) = json(&folder, "--script s.toml");
    assert_eq!(document["launches"].as_array().unwrap().len(), 2);
    assert_eq!(document["launches"][1]["counters"]["atomics"], 4);
    for (from, to, why) in [
        ("buffer:x", "buffer:z", "argument 1 (`buffer:z`): no script names a buffer `z`"),
        ("in:x.npy", "u32:5", "buffer `x` (`u32:5`): it is no buffer"),
        ("entry = \"double\"", "entry = \"triple\"", "there is no kernel `triple`"),
        ("block = [4]", "blok = [4]", "unknown field `blok`"),
    ] {
        std::fs::write(folder.join("bad.toml"), script.replacen(from, to, 1)).unwrap();
        let (code, _, err) = emulate(&folder, "--script bad.toml");
        assert!(code == 2 && err.contains(why), "{to}: {err}");
    }
    let (code, _, err) = emulate(&folder, "--script s.toml --block 3");
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
}

#[test]
fn pointers_inside_structs() {
    let folder = folder("struct");
    let (code, out, err) =
        emulate(&folder, "k.ptx --entry members --block 1 --arg struct:u8:1,ptr(out:u32[1]=z.bin),u32:77");
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(std::fs::read(folder.join("z.bin")).unwrap(), [77, 0, 0, 0]);
    let (code, _, err) = emulate(&folder, "k.ptx --entry members --block 1 --arg struct:ptr(out:u32[1]),u32:77");
    assert!(code == 2 && err.contains("parameter `s` has 24 bytes, and its argument has 16"), "{err}");
}

/// The race of `late`: two instructions of one line.
#[test]
fn findings_of_one_line_are_one() {
    let folder = folder("lines");
    let (code, out, _) = emulate(&folder, "k.ptx --entry late --block 64 --arg out:u32[64] --seeds 0..6");
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("error: data race in kernel `late`"), "{out}");
    assert!(out.contains("lib/scan.cuh:7:9, inlined at k.cu:20:5"), "{out}");
    assert!(out.contains("\n  in peek(int*), called at k.cu:20\n"), "{out}");
    assert!(out.contains("seeds: "), "{out}");
    let (_, document) = json(&folder, "k.ptx --entry late --block 64 --arg out:u32[64] --seeds 0..6");
    let findings = document["findings"].as_array().unwrap();
    let reads: Vec<&Value> = findings.iter().filter(|f| f["place"]["source"]["line"] == 7).collect();
    // Whatever warp was first under a seed, each of the two lines has one finding.
    assert!(reads.len() == 1 && findings.len() == 2, "{document:#}");
    for read in reads {
        let inlined = &read["place"]["inlined"][0];
        assert_eq!((&inlined["function"], &inlined["at"]["line"]), (&"peek(int*)".into(), &20.into()));
    }
    assert!(findings.iter().all(|finding| finding["lines"].as_array().unwrap().len() == 2), "{document:#}");
    assert!(out.contains("at 2 instructions: lines "), "{out}");
}

#[test]
fn suppressions_and_severities() {
    let folder = folder("rules");
    let arguments = "k.ptx --entry late --block 64 --arg out:u32[64] --seeds 0..4 --suppressions";
    let write = |text: &str| std::fs::write(folder.join("rules.toml"), text).unwrap();
    write(
        "[[suppress]]\nkind = \"Race\"\nkernel = \"la*\"\nreason = \"known\"\n[[suppress]]\nfile = \"*/none.cuh\"\nreason = \"old\"\n",
    );
    let (code, out, _) = emulate(&folder, &format!("{arguments} rules.toml"));
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(" suppressed\n") && !out.contains("data race"), "{out}");
    assert!(out.contains("note: a suppression has covered nothing: file */none.cuh\n"), "{out}");
    let (_, document) = json(&folder, &format!("{arguments} rules.toml"));
    assert_eq!((&document["good"], &document["findings"][0]["suppressed"]), (&true.into(), &"known".into()));
    for (rule, code) in [
        ("[severity]\nRace = \"note\"\n", 0),
        ("[severity]\nRace = \"ignore\"\n", 0),
        ("[severity]\nSameValueRace = \"ignore\"\n", 1),
        ("[[suppress]]\nkind = \"OutOfBounds\"\nkernel = \"late\"\nreason = \"no\"\n", 1),
        ("[[suppress]]\ninstruction = \"*.shared.u32\"\nreason = \"yes\"\n", 0),
        ("[[suppress]]\nkernel = \"late\"\nfunction = \"poke*\"\nreason = \"no\"\n", 1),
    ] {
        write(rule);
        assert_eq!(emulate(&folder, &format!("{arguments} rules.toml")).0, code, "{rule}");
    }
    write("[severity]\nRaces = \"note\"\n");
    let (code, _, err) = emulate(&folder, &format!("{arguments} rules.toml"));
    assert!(code == 2 && err.contains("rules.toml: there is no kind of finding `Races`"), "{err}");
    // What is only told may be made to count.
    let leak = "k.ptx --entry keeps --block 1";
    let (code, out, _) = emulate(&folder, leak);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("note: block of the heap that was never freed in kernel `keeps`"), "{out}");
    assert!(out.contains("24 bytes in all"), "{out}");
    write("[severity]\nLeak = \"error\"\n");
    assert_eq!(emulate(&folder, &format!("{leak} --suppressions rules.toml")).0, 1);
}

#[test]
fn reports_for_other_programs() {
    let folder = folder("reports");
    let arguments = "k.ptx --entry late --block 64 --arg out:u32[64] --seeds 0..4 --sarif r.sarif --junit r.xml";
    let (code, out, err) = emulate(&folder, arguments);
    assert_eq!(code, 1, "{out}{err}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let sarif: Value = serde_json::from_str(&read("r.sarif")).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!((&sarif["version"], &run["tool"]["driver"]["rules"][0]["id"]), (&"2.1.0".into(), &"Race".into()));
    let results = run["results"].as_array().unwrap();
    // What was found in the library is shown where it was called.
    for result in results {
        assert_eq!((&result["ruleId"], &result["level"]), (&"Race".into(), &"error".into()));
        let location = &result["locations"][0]["physicalLocation"];
        let file = location["artifactLocation"]["uri"].as_str().unwrap();
        assert!(file == "k.cu" && [19, 20].iter().any(|line| location["region"]["startLine"] == *line), "{result:#}");
        let text = result["relatedLocations"].to_string();
        assert!(text.contains("lib/scan.cuh") && text.contains("call of peek(int*)"), "{result:#}");
    }
    let xml = read("r.xml");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testcase")).collect();
    assert_eq!(cases.len(), 4);
    assert_eq!(cases[2].attribute("name"), Some("late launch 1 seed 2"));
    let failure = cases[0].children().find(|node| node.has_tag_name("failure")).unwrap();
    assert!(failure.text().unwrap().contains("data race in kernel `late`"), "{xml}");
    assert_eq!(document.root_element().attribute("failures"), Some("4"));
    // Nothing found: no failures, and text that XML cannot hold is replaced.
    let (code, _, _) = emulate(
        &folder,
        "k.ptx --entry double --block 4 --arg in:x.npy --arg expect:doubled.npy --sarif r.sarif --junit r.xml",
    );
    assert_eq!(code, 1);
    let sarif: Value = serde_json::from_str(&read("r.sarif")).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "Expectation");
    let xml = read("r.xml");
    let document = roxmltree::Document::parse(&xml).unwrap();
    assert_eq!(document.root_element().attribute("failures"), Some("1"), "{xml}");
    let (code, _, err) = emulate(&folder, "k.ptx --entry keeps --block 1 --sarif none/r.sarif");
    assert!(code == 2 && err.contains("none/r.sarif cannot be written: there is no folder none"), "{err}");
}
