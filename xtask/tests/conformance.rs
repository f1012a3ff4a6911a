//! `device-check --conformance` over a CUDA driver library without a GPU (`fake-driver`), and without any.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tilewright_conformance::file::Family;
use tilewright_conformance::questions::QUESTIONS;

/// A folder in which the fake driver is called as the real one.
fn driver() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.parent().expect("in a folder").join("libtilewright_fake_driver.so");
    assert!(library.exists(), "{} was not built", library.display());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance-driver");
    std::fs::create_dir_all(&folder).expect("a folder");
    let link = folder.join("libcuda.so.1");
    if !link.exists() {
        // Another test may have made it meanwhile.
        let _ = std::os::unix::fs::symlink(library, &link);
    }
    folder
}

fn check(folder: &Path, driver: Option<&Path>, more: &[(&str, &str)]) -> (Output, String, Value) {
    let json = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "conformance-{}-{}.json",
        folder.file_name().unwrap_or_default().to_string_lossy(),
        driver.is_some()
    ));
    let _ = std::fs::remove_file(&json);
    let mut command = Command::new(env!("CARGO_BIN_EXE_device-check"));
    command.arg("--conformance").arg(folder).arg("--json").arg(&json).args(["--patience", "20"]);
    command.env("LD_LIBRARY_PATH", driver.unwrap_or(Path::new("/nowhere"))).envs(more.iter().copied());
    let output = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let value =
        std::fs::read_to_string(json).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    (output, text, value)
}

fn answers(value: &Value) -> Vec<(u64, &str)> {
    let rows = value["answers"].as_array().expect("a list");
    rows.iter().map(|row| (row["question"].as_u64().unwrap_or(0), row["answer"].as_str().unwrap_or(""))).collect()
}

fn expected() -> Vec<(u64, &'static str)> {
    QUESTIONS.iter().map(|question| (question.number.into(), question.expected)).collect()
}

/// All files and all questions, through the driver's functions.
#[test]
fn every_file_runs_through_the_driver() {
    let (output, text, value) = check(&tilewright_conformance::folder(), Some(&driver()), &[]);
    assert!(output.status.success(), "{text}");
    let families = Family::all(&tilewright_conformance::folder()).unwrap();
    let rows = value["table"]["families"].as_array().unwrap();
    assert_eq!(rows.len(), families.len(), "{text}");
    for (row, family) in rows.iter().zip(&families) {
        assert_eq!(row["family"], family.family);
        assert_eq!(row["cases"].as_u64(), Some(family.cases.len() as u64), "{row}");
    }
    assert!(value["device"].as_str().unwrap().contains("Fake GPU"), "{text}");
    assert_eq!(answers(&value), expected(), "{text}");
    assert!(text.contains("question 8") && text.contains("    row: {"), "{text}");
}

/// The files of a small folder: one family, whose case number 1 is `broken`.
fn small(name: &str, broken: impl Fn(&mut Family)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("conformance-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut family = Family::read(&tilewright_conformance::folder(), "roots").unwrap();
    assert!(family.cases.len() >= 3);
    broken(&mut family);
    family.keep(&folder, true).unwrap();
    folder
}

/// One case is told as wrong, and the ones after it are right.
fn one_is_wrong(folder: &Path, driver: Option<&Path>, told: &str) {
    let (output, text, value) = check(folder, driver, &[]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let row = &value["table"]["families"][0];
    let wrong = row["wrong"].as_u64().unwrap() + row["failed"].as_u64().unwrap();
    assert_eq!((row["cases"].as_u64(), wrong), (Some(4), 1), "{text}");
    assert!(text.contains(told), "{text}, not {told}");
    assert_eq!(answers(&value), expected(), "{text}");
}

#[test]
fn wrong_results_are_told() {
    let folder =
        small("wrong", |family| family.cases[1].rows[3].1 = family.cases[1].rows[3].1.replacen(['0', '7'], "1", 1));
    for driver in [Some(driver()), None] {
        one_is_wrong(&folder, driver.as_deref(), "row 3");
    }
}

/// A kernel that reads where nothing is takes the context with it; the cases after it have another one.
#[test]
fn faults_cost_one_case() {
    let folder = small("fault", |family| {
        let entry = family.cases[1].entry.clone();
        let (before, after) = family.ptx.split_once(&format!("{entry}(")).unwrap();
        family.ptx =
            format!("{before}{entry}({}", after.replacen("ret;", "ld.global.b32 %w, [%x+268435456];\nret;", 1));
    });
    one_is_wrong(&folder, Some(&driver()), "ILLEGAL_ADDRESS");
    one_is_wrong(&folder, None, "out of bounds");
}

/// A kernel that never ends costs its own case, after some patience.
#[test]
fn endless_kernels_cost_one_case() {
    let folder = small("endless", |family| {
        let entry = family.cases[1].entry.clone();
        let (before, after) = family.ptx.split_once(&format!("{entry}(")).unwrap();
        family.ptx = format!("{before}{entry}({}", after.replacen("ret;", "AGAIN:\nbra AGAIN;\nret;", 1));
    });
    let (output, text, value) = check(&folder, Some(&driver()), &[]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(value["table"]["families"][0]["failed"].as_u64(), Some(1), "{text}");
    assert!(text.contains("it did not end in 20 s"), "{text}");
    assert_eq!(answers(&value), expected(), "{text}");
}

/// A GPU that is older than a file is no failure.
#[test]
fn older_devices_are_told() {
    let folder = small("older", |_| {});
    std::fs::copy(tilewright_conformance::folder().join("mbarriers.ptx"), folder.join("mbarriers.ptx")).unwrap();
    std::fs::copy(tilewright_conformance::folder().join("mbarriers.json"), folder.join("mbarriers.json")).unwrap();
    let (output, text, value) = check(&folder, Some(&driver()), &[("FAKE_CUDA_CAPABILITY", "80")]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("not tried  mbarriers: it is for sm_90, and the GPU is of compute capability 8.0"), "{text}");
    assert!(text.contains("not tried  questions:") && answers(&value).is_empty(), "{text}");
}

#[test]
fn bad_arguments_are_told() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_device-check")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run(&["--conformance", "/nowhere"]);
    assert!(code == Some(1) && text.contains("/nowhere"), "{text}");
    let (code, text) = run(&["--conformance"]);
    assert!(code == Some(2) && text.contains("--conformance needs a folder"), "{text}");
    let (code, text) = run(&["--patience", "x"]);
    assert!(code == Some(2) && text.contains("--patience needs a number"), "{text}");
    let (code, text) = run(&["--conformance-part", "roots", "0", "x"]);
    assert!(code == Some(1) && text.contains("there is no GPU"), "{text}");
}
