//! The order of modifiers: words that follow the name of an instruction come in any order, as the assembler takes them.

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{instances, module_of, module_text};
use tilewright_ptx::{parse, verify};

/// Words of an instruction, and what follows them.
fn split(text: &str) -> (Vec<&str>, &str) {
    let end = text.find([' ', ';']).unwrap_or(text.len());
    (text[..end].split('.').collect(), &text[end..])
}

/// For each form and each number of modifiers one instance, with its words in other orders: neighbours changed, all
/// reversed, the first one last and the last one first.
fn reordered() -> Vec<(String, String)> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for instance in instances().into_iter().filter(|instance| instance.alone) {
        let module = parse(&module_text("9.0", "sm_90a", &instance.text)).unwrap();
        let mut forms = Vec::new();
        let body = module.functions.last().unwrap();
        body.for_each_inst(&mut |inst| forms.push((inst.op, inst.form, inst.modifiers.len())));
        if !seen.insert(forms[0]) {
            continue;
        }
        let (words, rest) = split(&instance.text);
        let swaps = (1..words.len() - 1).map(|at| {
            let mut words = words.clone();
            words.swap(at, at + 1);
            words
        });
        let (mut back, mut left, mut right) = (words.clone(), words.clone(), words.clone());
        back[1..].reverse();
        if words.len() > 1 {
            left[1..].rotate_left(1);
            right[1..].rotate_right(1);
        }
        let orders: BTreeSet<String> =
            swaps.chain([back, left, right]).map(|words| format!("{}{rest}", words.join("."))).collect();
        found
            .extend(orders.into_iter().filter(|text| *text != instance.text).map(|text| (text, instance.text.clone())));
    }
    found
}

/// What the parser and the verifier make of a line: its text in the order of the table, if they take it.
fn taken(line: &str) -> Option<String> {
    let module = parse(&module_text("9.0", "sm_90a", line)).ok()?;
    verify(&module).ok()?;
    let text = module.to_string();
    let (printed, label) = text.split_once("\ntable:").and_then(|(_, rest)| rest.split_once('\n'))?;
    assert!(printed.contains(".branchtargets"), "{text}");
    label.lines().next().map(|line| line.trim().to_owned())
}

#[test]
fn words_may_come_in_any_order() {
    for (other, usual) in [
        ("ldmatrix.sync.aligned.x4.m8n8.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
        ("fma.rn.f16x2.relu", "fma.rn.relu.f16x2"),
        ("add.f32.ftz.rn", "add.rn.ftz.f32"),
        (
            "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32.satfinite",
            "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.u8.s32",
        ),
        ("cvt.satfinite.rn.e4m3x2.f32", "cvt.rn.satfinite.e4m3x2.f32"),
        ("cp.async.shared.cg.global", "cp.async.cg.shared.global"),
        ("shfl.bfly.sync.b32", "shfl.sync.bfly.b32"),
    ] {
        let all = instances();
        let instance = all.iter().find(|instance| split(&instance.text).0.join(".") == usual);
        let instance = instance.unwrap_or_else(|| panic!("no instance of {usual}"));
        let (_, rest) = split(&instance.text);
        assert_eq!(taken(&format!("{other}{rest}")).as_ref(), Some(&instance.text));
    }
}

/// Words whose order says which is which, kind by kind: types, spaces, layouts.
fn places(text: &str) -> [Vec<&str>; 3] {
    let is_type = |word: &str| word.starts_with(['s', 'u', 'f', 'b', 'e', 't']) && word.ends_with(char::is_numeric);
    let is_space = |word: &str| word == "global" || word.starts_with("shared");
    let words = &split(text).0[1..];
    let of = |kind: &dyn Fn(&str) -> bool| words.iter().copied().filter(|word| kind(word)).collect();
    [of(&is_type), of(&is_space), of(&|word| matches!(word, "row" | "col"))]
}

/// What is taken in another order has the same words, and those that tell operands apart in the order in which they
/// were written.
#[test]
fn another_order_is_the_same_instruction() {
    let lines = reordered();
    let mut count = 0;
    for (other, _) in &lines {
        let Some(text) = taken(other) else { continue };
        count += 1;
        let sorted = |text| {
            let mut words = split(text).0;
            words.sort_unstable();
            words.join(".")
        };
        assert_eq!(sorted(&text), sorted(other));
        assert_eq!(places(&text), places(other), "{other}: {text}");
        assert_eq!(taken(&text).as_ref(), Some(&text));
    }
    assert!(count > 2000, "{count} of {}", lines.len());
}

/// What the assembler takes in other orders and we do not: nobody writes it.
const LEFT_OUT: [&str; 3] = ["tensormap.replace.", "fence.proxy.", "wmma.mma."];

#[test]
fn assembler_takes_the_same_orders() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        println!("skipped: set PTXAS to the path of ptxas");
        return;
    };
    let folder = std::env::temp_dir().join(format!("tilewright-order-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // With a mistake at the end, so that the assembler reads all of it and compiles nothing.
    let refused = |lines: &[&str]| -> BTreeSet<usize> {
        let mut lines = lines.to_vec();
        lines.push("nonsense;");
        let (text, first) = module_of("9.0", "sm_90a", &lines);
        let path = folder.join("order.ptx");
        std::fs::write(&path, text).unwrap();
        let mut run = Command::new(&ptxas);
        run.args(["-arch", "sm_90a", "-o"]).arg(path.with_extension("cubin")).arg(&path);
        let run = run.output().unwrap();
        let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
        let number = |line: &str| line.split_once("line ")?.1.split(';').next()?.trim().parse::<usize>().ok();
        let errors = stderr.lines().filter(|line| line.contains("error   :"));
        let found: BTreeSet<usize> = errors.filter_map(|line| number(line)?.checked_sub(first)).collect();
        assert!(found.contains(&(lines.len() - 1)), "{stderr}");
        found
    };
    let (mut both, mut differences) = (0, Vec::new());
    for chunk in reordered().chunks(1000) {
        let usual = refused(&chunk.iter().map(|(_, usual)| usual.as_str()).collect::<Vec<_>>());
        let other = refused(&chunk.iter().map(|(other, _)| other.as_str()).collect::<Vec<_>>());
        for (at, (text, _)) in chunk.iter().enumerate() {
            // Older than this version of PTX.
            if usual.contains(&at) {
                continue;
            }
            match (taken(text).is_some(), !other.contains(&at)) {
                (true, true) => both += 1,
                (false, true) if LEFT_OUT.iter().any(|start| text.starts_with(start)) => {}
                (true, false) => differences.push(format!("only we take {text}")),
                (false, true) => differences.push(format!("only the assembler takes {text}")),
                (false, false) => {}
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(differences.is_empty(), "{both} alike; {}", differences.join("\n"));
    assert!(both > 2000, "{both}");
}
