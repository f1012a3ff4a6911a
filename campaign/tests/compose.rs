//! Some hundred random compositions; `campaign --compose` runs many more. And the kernels that such runs have found.

use std::path::Path;

use tilewright_campaign::compile::{Outcome, compile};
use tilewright_campaign::compose;
use tilewright_campaign::compose::ast::{Dims, Equation, Expr, Extent, Index, Kernel, Reduction, Type};
use tilewright_campaign::compose::evaluate::{Fault, Tensor, evaluate};

/// Cases of the test.
const CASES: u64 = 300;

#[test]
fn compositions_are_right() {
    let summary = compose::campaign(1, 0, CASES, None);
    assert!(summary.failures.is_empty(), "{summary}");
    assert!(summary.accepted * 100 >= summary.cases * 25, "too few kernels are accepted to test much\n{summary}");
    assert!(summary.run * 100 >= summary.accepted * 90, "too few of the accepted kernels are run\n{summary}");
    // Each of these has met an entry point with 64-bit indices, and one with 32 bits.
    let number = |name: &str| compose::features::FEATURES.iter().position(|f| *f == name).expect("a feature");
    for feature in
        ["registers", "registers-thread", "shared", "global", "ring", "halo", "like", "tma", "unrolled-around-stage"]
    {
        for entry in ["wide-entry", "narrow-entry"] {
            assert!(summary.matrix.at(number(feature), number(entry)) > 0, "{feature} with {entry}\n{summary}");
        }
    }
}

/// What was found once is accepted and right, or refused for a reason. (What is wrong is a defect to the compiler's own
/// trial as well; whose defect is open still is marked so.)
#[test]
fn what_was_found() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    let mut count = 0;
    for entry in std::fs::read_dir(found).expect("a folder of kernels") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("text");
        count += 1;
        let is_defect = match compile(&text) {
            Outcome::Accepted(..) => None,
            Outcome::Refused(errors, report) => {
                errors.iter().any(|e| e.found.code.to_string() == "TW9001").then_some(report)
            }
            other => Some(format!("{other:?}")),
        };
        let is_open = text.starts_with("// open");
        match is_defect {
            Some(report) if !is_open => panic!("{}: {report}", path.display()),
            None if is_open => eprintln!("{} is mended: it needs no mark any more", path.display()),
            _ => {}
        }
    }
    assert!(count > 0, "nothing was found");
}

/// The evaluator is judged by hand.
#[test]
fn values() {
    let read =
        |axis: &str, factor, plus, or| Expr::Read("x".to_owned(), vec![Index::Axis(axis.to_owned(), factor, plus)], or);
    let equation = |value: Expr, axes: &[&str]| Kernel {
        ty: Type::F16,
        inputs: Vec::new(),
        most: [None; 3],
        divides: [1; 3],
        least: [0; 3],
        equations: vec![Equation {
            name: "y".to_owned(),
            axes: axes.iter().map(|a| ((*a).to_owned(), Extent::literal(3))).collect(),
            value,
            output: true,
        }],
        launch: Vec::new(),
        units: Vec::new(),
        schedules: Vec::new(),
        inlined: Vec::new(),
    };
    let x = |data: &[f64]| [("x".to_owned(), Tensor { shape: vec![data.len() as i64], data: data.to_vec() })].into();
    let run = |kernel: &Kernel, data: &[f64]| evaluate(kernel, &Dims::new(), x(data)).map(|t| t["y"].data.clone());
    let halo = equation(read("i", 1, -1, Some(7)), &["i"]);
    assert_eq!(run(&halo, &[1.0, 2.0, 3.0]), Ok(vec![7.0, 1.0, 2.0]));
    assert_eq!(run(&equation(read("i", 2, 0, None), &["i"]), &[1.0, 2.0, 3.0]), Err(Fault::Outside));
    let reduce = |by| {
        equation(Expr::Reduce(by, vec![("i".to_owned(), Extent::literal(3))], Box::new(read("i", 1, 0, None))), &[])
    };
    for (by, value) in [
        (Reduction::Sum, 3.0),
        (Reduction::Max, 2.0),
        (Reduction::Min, -1.0),
        (Reduction::Argmax, 0.0),
        (Reduction::Argmin, 1.0),
        (Reduction::Last, 2.0),
        (Reduction::Any, 1.0),
    ] {
        assert_eq!(run(&reduce(by), &[2.0, -1.0, 2.0]), Ok(vec![value]), "{by:?}");
    }
    // 2048 is the last integer that f16 has with all below it.
    assert_eq!(run(&reduce(Reduction::Sum), &[2000.0, -40.0, -20.0]), Err(Fault::Inexact));
}
