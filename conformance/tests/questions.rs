//! The experiments on the emulator, on machines that do something else, and before the assembler.

use tilewright_conformance::machine::{Emulator, Machine, Run};
use tilewright_conformance::questions::{LOAD, QUESTIONS, REDUCE, STORE};

/// The emulator does what is assumed, or refuses.
#[test]
fn the_emulator_answers_as_documented() {
    for (at, question) in QUESTIONS.iter().enumerate() {
        assert_eq!(question.number as usize, at + 1);
        let answer = question.ask(&mut Emulator::default());
        let text = answer.text(question);
        assert_eq!(answer.found.name, question.expected, "{text}");
        assert_eq!(answer.decides.len(), question.places.len());
        println!("{text}{}\n", answer.row());
    }
}

/// What a machine would do otherwise is another answer: each experiment sees what it is made to see.
#[test]
fn other_machines_give_other_answers() {
    /// Changes what the emulator leaves.
    struct Changed(fn(&Run<'_>, &mut Vec<u8>));
    impl Machine for Changed {
        fn run(&mut self, run: &Run<'_>) -> Result<Vec<u8>, String> {
            let mut y = Emulator::default().run(run)?;
            (self.0)(run, &mut y);
            Ok(y)
        }
    }
    /// A question, the name of its answer, and the change.
    type Case = (u32, &'static str, fn(&Run<'_>, &mut Vec<u8>));
    let cases: [Case; 8] = [
        // The fourth row does not come.
        (1, "other", |run, y| {
            if run.entry == "load" {
                y[16 + 48..16 + 64].fill(0xa5)
            }
        }),
        (1, "ceil, loads only", |run, y| {
            if run.entry == "store" {
                y[16..32].fill(0)
            }
        }),
        (2, "other", |_, y| y[16..32].fill(0)),
        (3, "wrong", |run, y| {
            if y.len() > 64 && run.x.len() == 288 * 4 {
                y[20] ^= 1
            }
        }),
        (4, "differs", |run, y| {
            if !run.edits.is_empty() {
                y[16] ^= 1
            }
        }),
        (5, "kept", |_, y| {
            for row in 0..4 {
                y[32 * row + 20..32 * row + 32].fill(0xa5)
            }
        }),
        (6, "another", |_, y| y[16] ^= 1),
        (8, "used", |run, y| {
            if !run.edits.is_empty() {
                y[16] ^= 1
            }
        }),
    ];
    for (number, name, change) in cases {
        let question = &QUESTIONS[number as usize - 1];
        let answer = question.ask(&mut Changed(change));
        assert_eq!(answer.found.name, name, "{}", answer.text(question));
    }
}

/// Reductions, which the emulator refuses, done by hand: exact sums, and sums of flushed numbers.
#[test]
fn sums_of_subnormal_numbers_are_told_apart() {
    struct Sums(bool);
    impl Machine for Sums {
        fn run(&mut self, run: &Run<'_>) -> Result<Vec<u8>, String> {
            let read = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let flush = |x: f32| if self.0 && x.is_subnormal() { 0.0_f32.copysign(x) } else { x };
            let pairs = run.y.chunks(4).zip(run.x.chunks(4)).map(|(a, b)| flush(flush(read(a)) + flush(read(b))));
            Ok(pairs.flat_map(f32::to_le_bytes).collect())
        }
    }
    for (flushes, name) in [(false, "kept"), (true, "flushed")] {
        let answer = QUESTIONS[6].ask(&mut Sums(flushes));
        assert_eq!(answer.found.name, name);
        assert!(answer.decides[0].contains("may execute"), "{:?}", answer.decides);
    }
    let refused = QUESTIONS[6].ask(&mut Emulator::default());
    assert!(refused.found.words.contains("cp.reduce.async.bulk.tensor"), "{}", refused.found.words);
    assert!(refused.decides[0].contains("stays"), "{:?}", refused.decides);
}

/// Every machine may refuse everything; that is an answer, too, and never a panic.
#[test]
fn refusals_are_answers() {
    struct Refusing(u32);
    impl Machine for Refusing {
        fn run(&mut self, run: &Run<'_>) -> Result<Vec<u8>, String> {
            self.0 = self.0.saturating_sub(1);
            if self.0 == 0 { Err("no\nand more".to_owned()) } else { Emulator::default().run(run) }
        }
    }
    for question in QUESTIONS {
        for runs in 1..16 {
            let answer = question.ask(&mut Refusing(runs));
            assert!(!answer.found.words.contains('\n'), "{}", answer.found.words);
        }
        let first = question.ask(&mut Refusing(1)).found;
        assert!(first.name == "refused" && first.words.contains("no"), "{first:?}");
    }
}

/// What is named is there.
#[test]
fn places_are_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    for question in QUESTIONS {
        assert!(!question.places.is_empty());
        for place in question.places {
            let text = std::fs::read_to_string(root.join(place.file)).unwrap_or_else(|e| panic!("{}: {e}", place.file));
            assert!(
                text.contains(place.symbol),
                "question {}: no `{}` in {}",
                question.number,
                place.symbol,
                place.file
            );
            assert!(page.contains(place.file), "docs/conformance.md has no {}", place.file);
            assert!(!place.when.contains(&question.expected) || place.file.contains("compiler"), "{}", question.number);
        }
    }
}

#[test]
fn the_programs_assemble() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        println!("skipped: set PTXAS to the path of ptxas");
        return;
    };
    for (name, text) in [("load", LOAD), ("store", STORE), ("reduce", REDUCE)] {
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.ptx"));
        std::fs::write(&file, text).unwrap();
        let command =
            std::process::Command::new(&ptxas).args(["--gpu-name=sm_90", "-o", "/dev/null"]).arg(file).output();
        let output = command.expect("the assembler starts");
        assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
