//! The files: run on the emulator, wrong results noticed, assembled, complete.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_conformance::file::{Family, Param};
use tilewright_conformance::folder;
use tilewright_conformance::machine::{Emulator, Machine, Outcome, Run, Table};
use tilewright_ptx::isa::{Form, Op, all_forms};

fn families() -> Vec<Family> {
    let all = Family::all(&folder()).unwrap_or_else(|error| panic!("{error}"));
    assert!(all.len() > 30, "{} families", all.len());
    all
}

#[test]
fn the_emulator_conforms() {
    let mut table = Table::default();
    for family in families() {
        // In two orders of warps; results of approximate instructions as they are and moved within their bounds.
        for (seed, perturb) in [(0, None), (1, Some(1))] {
            family.try_on(&mut Emulator::new(seed, perturb), &mut table);
        }
    }
    assert_eq!(table.failures(), 0, "{}", table.text());
    println!("{}", table.text());
}

/// A result that is nearly right is told with its place, whatever the family.
#[test]
fn wrong_results_are_noticed() {
    for family in families() {
        let (mut planted, mut emulator) = (0, Emulator::default());
        for case in &family.cases {
            let run = case.launch(&family.ptx).unwrap();
            let right = emulator.run(&run).unwrap();
            assert_eq!(case.judge(&right), Ok(vec![]), "{} {}", family.family, case.entry);
            // A step that has no factor in common with most rows, so that columns are met in turn.
            for (at, y) in case.misses(&right, 19).unwrap() {
                let found = case.judge(&y).unwrap();
                let places: Vec<usize> =
                    found.iter().map(|mistake| mistake.place.0 * case.y + mistake.place.1).collect();
                assert_eq!(places, [at], "{} {}", family.family, case.entry);
                planted += 1;
            }
        }
        assert!(planted > 10, "{}: {planted} planted", family.family);
    }
}

/// A machine that computes something else, and one that refuses, are told of as such.
#[test]
fn wrong_machines_are_noticed() {
    struct Constant;
    impl Machine for Constant {
        fn run(&mut self, run: &Run<'_>) -> Result<Vec<u8>, String> {
            if run.entry.ends_with("_0") { Err("refused".to_owned()) } else { Ok(vec![0x11; run.y.len()]) }
        }
    }
    let mut table = Table::default();
    for family in families() {
        for case in &family.cases {
            let outcome = case.try_on(&family.ptx, &mut Constant);
            match &outcome {
                Outcome::Failed(why) => assert!(case.entry.ends_with("_0") && why == "refused", "{why}"),
                Outcome::Wrong(first, count) => assert!(!first.is_empty() && *count >= first.len()),
                Outcome::Right(_) => panic!("{} {}: any result is right", family.family, case.entry),
            }
            table.add(&family.family, &case.entry, &outcome);
        }
    }
    let json = table.json();
    assert_eq!(json["mistakes"].as_array().unwrap().len(), table.failures());
}

/// With the assembler of `PTXAS`, for the target that each file names.
#[test]
fn every_file_assembles() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        println!("skipped: set PTXAS to the path of ptxas");
        return;
    };
    for family in families() {
        let word = |name: &str| family.ptx.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        let output = std::process::Command::new(&ptxas)
            .arg(format!("--gpu-name={}", word(".target")))
            .args(["--output-file", "/dev/null"])
            .arg(folder().join(format!("{}.ptx", family.family)))
            .output()
            .expect("the assembler starts");
        assert!(output.status.success(), "{}:\n{}", family.family, String::from_utf8_lossy(&output.stderr));
    }
}

/// Rows of the table that no file has, each with its reason.
const ABSENT: [(&str, &str); 9] = [
    ("cp.reduce.async.bulk", "the emulator refuses it; question 7 has the one that is asked of the hardware"),
    ("cp.async.bulk.tensor.<3d|4d|5d>.shared::cluster.global.im2col", "the emulator refuses this mode of maps"),
    ("cp.async.bulk.tensor.<3d|4d|5d>.shared::cta.global.im2col", "as above"),
    ("cp.async.bulk.tensor.<3d|4d|5d>.global.shared::cta.im2col_no_offs", "as above"),
    ("cp.async.bulk.prefetch.tensor.<3d|4d|5d>.L2.global.im2col", "as above"),
    ("tensormap.", "the emulator refuses maps that a kernel changes"),
    ("activemask", "the manual does not say which lanes of a branch run together"),
    ("trap", "it ends the program, and with it the context of a GPU"),
    ("brkpt", "it stops the program if no debugger is there"),
];

/// Who adds a row adds a program to the tests that the files are made of, or says here why there is none.
#[test]
fn every_row_is_in_a_file() {
    let mut found: BTreeSet<(Op, u16)> = BTreeSet::new();
    for family in families() {
        let module = tilewright_ptx::parse(&family.ptx).unwrap();
        for function in &module.functions {
            function.for_each_inst(&mut |inst| {
                found.insert((inst.op, inst.form));
            });
        }
    }
    let why = |form: &Form| ABSENT.iter().find(|(row, _)| form.syntax.starts_with(row));
    let mut missing = Vec::new();
    let mut used = BTreeSet::new();
    for form in all_forms() {
        let is_there = found.contains(&(form.op, form.index));
        match (is_there, why(form)) {
            (false, None) => missing.push(form.syntax),
            (false, Some((row, _))) => {
                used.insert(*row);
            }
            (true, _) => {}
        }
    }
    assert!(missing.is_empty(), "no file has {} rows:\n{}", missing.len(), missing.join("\n"));
    let idle: Vec<&str> = ABSENT.iter().map(|(row, _)| *row).filter(|row| !used.contains(row)).collect();
    assert!(idle.is_empty(), "these rows are in files now: {idle:?}");
}

/// Operands have the values that programs trip over.
#[test]
fn edges_are_asked_for() {
    let mut rows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for family in families() {
        for case in &family.cases {
            for (given, _) in &case.rows {
                rows.entry(family.family.clone()).or_default().extend(given.split(' ').map(str::to_owned));
            }
        }
    }
    let has = |family: &str, all: &[&str]| {
        for value in all {
            assert!(rows[family].contains(*value), "{family} has no operand {value}");
        }
    };
    // Zeros, the least and the greatest subnormal, the greatest number, infinities, quiet and signalling NaN.
    let f32 = ["0", "80000000", "1", "807fffff", "7f7fffff", "7f800000", "ff800000", "7fffffff", "ff800001"];
    for family in ["f32", "set", "setp", "approximate", "roots", "convert_to_integers", "convert_floats"] {
        has(family, &f32);
    }
    has("f64", &["8000000000000000", "1", "7ff0000000000000", "fff0000000000001", "7fefffffffffffff"]);
    has("half", &["7c00", "fc01", "7fff", "7f80", "ff81", "8000"]);
    has("integer", &["0", "80000000", "7fffffff", "ffffffff", "8000000000000000", "8000"]);
    has("bits", &["1f", "20", "21", "3f", "40", "ff", "100", "ffffffff"]);
}

/// Every way in which a file can be broken is told, with its place.
#[test]
fn broken_files_are_refused() {
    let good = Family::read(&folder(), "roots").unwrap();
    let broken = |change: &dyn Fn(&mut Family)| {
        let mut family = good.clone();
        change(&mut family);
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("roots.json"), family.to_json()).unwrap();
        std::fs::write(folder.join("roots.ptx"), &family.ptx).unwrap();
        Family::read(&folder, "roots").unwrap_err()
    };
    /// What breaks a file, and what is said of it.
    type Broken<'a> = (&'a dyn Fn(&mut Family), &'a str);
    let cases: [Broken<'_>; 9] = [
        (&|f| f.family = "sums".to_owned(), "it calls itself `sums`"),
        (&|f| f.cases[0].slot = 3, "a slot has 4 or 8 bytes, not 3"),
        (&|f| f.cases[0].threads = 2000, "1 blocks of 2000 threads"),
        (&|f| f.cases[0].rows.clear(), "no rows"),
        (&|f| f.cases[0].x += 1, "operands each"),
        (&|f| f.cases[0].y = 1, "formats for 1 results"),
        (&|f| f.cases[0].rows[1].1 = "zz".to_owned(), "`zz` is no hexadecimal number"),
        (&|f| f.cases[0].rows[1].0 = "nan".to_owned(), "`nan` is no operand"),
        (&|f| f.cases[0].params.push(Param::Bytes("abc".to_owned())), "are no bytes"),
    ];
    for (change, told) in cases {
        let message = broken(change);
        assert!(message.contains(told) && message.contains("roots.json"), "{message}, not {told}");
    }
    assert!(Family::read(&folder(), "nothing").unwrap_err().contains("nothing.ptx"));
}
