//! The instruction table, form by form: text round trips, and the assembler's agreement when there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{CHUNK, Instance, instances, module_of};
use tilewright_ptx::isa::{Op, all_forms, forms_of};
use tilewright_ptx::{Flag, PtxVersion, Requirement, ScalarType, StateSpace, Target, parse, verify};

/// Oldest version and target that current assemblers take.
const OLDEST: Requirement = Requirement { version: PtxVersion::new(6, 3), target: Target::sm(75) };

/// Instances by the oldest header that will do.
fn by_header() -> BTreeMap<(PtxVersion, Target), Vec<Instance>> {
    let mut groups: BTreeMap<(PtxVersion, Target), Vec<Instance>> = BTreeMap::new();
    for instance in instances().into_iter().filter(|instance| instance.alone) {
        let need = instance.need.and(OLDEST);
        let version = need.version.max(need.target.introduced());
        groups.entry((version, need.target)).or_default().push(instance);
    }
    groups
}

/// The forms of an instruction are those of its lines, and its mnemonics lead to them: lines are parsed when they are
/// asked for, and their mnemonics read without.
#[test]
fn every_form_is_found() {
    let mut count = 0;
    for op in Op::all() {
        assert_eq!(op.forms().iter().map(|form| form.syntax).collect::<Vec<_>>(), op.desc().syntax);
        for form in op.forms() {
            assert_eq!(
                forms_of(form.mnemonic).filter(|found| std::ptr::eq(*found, form)).count(),
                1,
                "{}",
                form.syntax
            );
            count += 1;
        }
    }
    assert_eq!(all_forms().count(), count);
}

/// Spellings are looked up in the order of their bytes, whatever the order of the variants.
#[test]
fn every_spelling_is_found() {
    assert!(Flag::ALL.iter().all(|flag| Flag::from_text(flag.text()) == Some(*flag)));
    assert!(ScalarType::ALL.iter().all(|ty| ScalarType::from_text(ty.text()) == Some(*ty)));
    assert!(StateSpace::ALL.iter().all(|space| StateSpace::from_text(space.text()) == Some(*space)));
    for none in ["", "a ", "zz", "F32", "f3", "f322"] {
        assert_eq!((Flag::from_text(none), ScalarType::from_text(none)), (None, None), "{none}");
    }
}

#[test]
fn every_form_round_trips() {
    for chunk in instances().chunks(CHUNK) {
        let lines: Vec<&str> = chunk.iter().map(|instance| instance.text.as_str()).collect();
        let (text, _) = module_of("9.0", "sm_90a", &lines);
        let printed = parse(&text).unwrap().to_string();
        let body: Vec<&str> = printed.lines().map(str::trim_start).collect();
        let first = body.iter().position(|line| *line == lines[0]).unwrap();
        assert_eq!(&body[first..first + lines.len()], &lines[..]);
        assert_eq!(parse(&printed).unwrap().to_string(), printed);
    }
}

#[test]
fn every_form_verifies_where_its_needs_are_met_and_nowhere_below() {
    for ((version, target), group) in by_header() {
        for chunk in group.chunks(CHUNK) {
            let lines: Vec<&str> = chunk.iter().map(|instance| instance.text.as_str()).collect();
            // Lines with a mistake under this header.
            let refused = |version: PtxVersion, target: Target| -> BTreeSet<usize> {
                let (text, first) = module_of(&version.to_string(), &target.to_string(), &lines);
                let errors = verify(&parse(&text).unwrap()).err().unwrap_or_default();
                errors.iter().filter_map(|error| (error.line as usize).checked_sub(first)).collect()
            };
            let wrong = refused(version, target);
            assert!(
                wrong.is_empty(),
                "refused at {version} {target}: {:?}",
                wrong.iter().map(|at| lines[*at]).collect::<Vec<_>>()
            );
            let older = refused(PtxVersion::new(6, 2), target);
            let smaller = refused(version, Target::sm(74));
            for (at, instance) in chunk.iter().enumerate() {
                assert_eq!(older.contains(&at), instance.need.version > PtxVersion::new(6, 2), "{}", instance.text);
                assert_eq!(smaller.contains(&at), instance.need.target > Target::sm(74), "{}", instance.text);
            }
        }
    }
}

/// Whether a message of the assembler is about the text. C7600 is not: an allocator that cannot hold the accumulators
/// of many unrelated products at once has read them all.
fn is_refusal(message: &str) -> bool {
    let about_text = message.contains("error   :") || message.contains("fatal");
    about_text && !message.contains("aborted due to errors") && !message.contains("(C7600)")
}

/// Assembles every instance at exactly the version and target that the table gives, with the ptxas named by `PTXAS`.
#[test]
fn assembler_accepts_every_form() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        println!("skipped: set PTXAS to the path of ptxas");
        return;
    };
    let folder = std::env::temp_dir().join(format!("tilewright-ptx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let groups = by_header();
    // Few at a time: the back end takes more than linear time for many matrix products.
    let chunks: Vec<_> =
        groups.iter().flat_map(|(header, group)| group.chunks(100).map(move |chunk| (header, chunk))).collect();
    let next = AtomicUsize::new(0);
    let assemble = || {
        let mut refused = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(((version, target), chunk)) = chunks.get(number) else { return refused };
            let lines: Vec<&str> = chunk.iter().map(|instance| instance.text.as_str()).collect();
            let (text, first) = module_of(&version.to_string(), &target.to_string(), &lines);
            let path = folder.join(format!("{number}.ptx"));
            std::fs::write(&path, text).unwrap();
            let run = Command::new(&ptxas)
                .args(["-O0", "--opt-level", "0", "-arch", &target.to_string(), "-o"])
                .arg(path.with_extension("cubin"))
                .arg(&path)
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
            for message in stderr.lines().filter(|line| is_refusal(line)) {
                let line = message
                    .split_once("line ")
                    .and_then(|(_, rest)| rest.split(';').next())
                    .and_then(|number| number.trim().parse::<usize>().ok());
                let text = line.and_then(|line| lines.get(line.wrapping_sub(first)));
                match text {
                    Some(text) => refused.push(format!("{version} {target}: `{text}`: {message}")),
                    None => refused.push(format!("{version} {target}: {message}")),
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let refused: Vec<String> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(assemble)).collect();
        started.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
}
