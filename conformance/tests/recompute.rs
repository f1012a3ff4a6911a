//! Results of the files, computed once more by a script with Python's integers and NumPy's floats. Wants `python3` with
//! NumPy, or another one in `$TILEWRIGHT_PYTHON`; without it a line is printed and nothing tried.

use std::path::Path;
use std::process::Command;

use tilewright_conformance::file::Family;
use tilewright_conformance::folder;

#[test]
fn numpy_says_the_same() {
    let python = std::env::var("TILEWRIGHT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success());
    if !has_numpy {
        println!("not tried: {python} has no NumPy");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    let said_of = |folder: &Path| {
        let output = Command::new(&python).arg(&script).arg(folder).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    let (code, said) = said_of(&folder());
    assert_eq!(code, Some(0), "{said}");
    let count: u32 = said.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(count > 1500, "{said}");

    // A wrong word of each family that it knows is told.
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recompute");
    std::fs::create_dir_all(&copy).unwrap();
    for name in ["f32", "f64", "integer", "multiply", "convert_floats", "approximate"] {
        let mut family = Family::read(&folder(), name).unwrap();
        let is_known = |instruction: &String| {
            ["add.f32", "add.f64", "add.u32", "mul.lo.u32", "cvt.rn.f32.f64", "rcp.approx.f32"]
                .contains(&instruction.as_str())
        };
        let case = family.cases.iter_mut().find(|case| case.instructions.iter().any(is_known)).unwrap();
        let column = case.instructions.iter().position(is_known).unwrap();
        // Of the first row, whose operands are zeros, as the first operands of all are.
        let mut words: Vec<String> = case.rows[0].1.split(' ').map(str::to_owned).collect();
        words[column] = "12345".to_owned();
        case.rows[0].1 = words.join(" ");
        family.keep(&copy, true).unwrap();
    }
    let (code, said) = said_of(&copy);
    assert!(code == Some(1) && said.contains(", 6 differ"), "{said}");
}
