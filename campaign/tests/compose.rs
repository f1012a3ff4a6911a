//! Some hundreds of random compositions; `campaign --compose` runs many more. And the kernels that such runs have
//! found.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use tilewright_campaign::compile::{Outcome, compile};
use tilewright_campaign::compose;
use tilewright_campaign::compose::ast::{Dims, Equation, Expr, Extent, Index, Kernel, Number, Reduction, States, Type};
use tilewright_campaign::compose::evaluate::{Fault, Tensor, evaluate};
use tilewright_cli::prove;

/// Cases of the test.
const CASES: u64 = 600;

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

/// Work of the separate checker for one entry point at one size, and terms of the reference for one launch.
const WORK: u64 = 300_000;

/// The kernels of a folder, each with its path.
fn kernels(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).expect("a folder of kernels").map(|entry| entry.expect("a file").path());
    files.map(|path| (path.clone(), std::fs::read_to_string(&path).expect("text"))).collect()
}

/// What was found once is accepted and right, or refused for a reason. What is accepted runs: most of these were once
/// accepted and wrong. Those whose defect is open still are marked so.
#[test]
fn what_was_found() {
    are_right("found");
}

/// Kernels for pairs of features that never met in 450,000 drawn ones. That a text has its pair is its author's word:
/// features are found in what is drawn, not in texts.
#[test]
fn what_is_seldom_drawn() {
    for (path, text) in kernels("written") {
        let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("// ")).collect();
        let comment = comment.join(" ");
        let pairs = comment.strip_prefix("Pairs: ").unwrap_or_else(|| panic!("{}: which pairs?", path.display()));
        for name in pairs.split(['×', ',', ';']).map(str::trim) {
            assert!(compose::features::FEATURES.contains(&name), "{}: `{name}` is no feature", path.display());
        }
    }
    are_right("written");
}

fn are_right(folder: &str) {
    let kernels = kernels(folder);
    assert!(!kernels.is_empty(), "no kernels in `{folder}`");
    let wrong: Vec<String> = kernels.par_iter().filter_map(|(path, text)| wrong(path, text)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with a kernel, unless that is marked as open.
fn wrong(path: &Path, text: &str) -> Option<String> {
    let outcome = compile(text);
    let refused = matches!(outcome, Outcome::Refused(..));
    let is_defect = match outcome {
        Outcome::Accepted(info, entries) => {
            let proved = prove::at_all_sizes(&info, &entries, WORK).map_err(|wrong| wrong.to_string());
            let launched = prove::on_emulator(&info, WORK).map_err(|fault| format!("{fault:?}"));
            if let (Ok(tally), Ok(launches)) = (&proved, &launched) {
                assert!(tally.held > 0 && *launches > 0, "{}: nothing was compared", path.display());
            }
            proved.err().or(launched.err())
        }
        Outcome::Refused(errors, report) => {
            let codes: Vec<String> = errors.iter().map(|e| e.found.code.to_string()).collect();
            let asked = text.strip_prefix("// Refused, ").and_then(|rest| rest.split(':').next());
            let is_other = asked.is_some_and(|code| codes.iter().all(|found| found != code));
            (is_other || codes.iter().any(|code| code == "TW9001")).then_some(report)
        }
        other => Some(format!("{other:?}")),
    };
    let is_open = text.starts_with("// open");
    assert!(!text.starts_with("// Refused, ") || refused, "{}: it is accepted", path.display());
    if is_open && is_defect.is_none() {
        eprintln!("{} is mended: it needs no mark any more", path.display());
    }
    is_defect.filter(|_| !is_open).map(|report| format!("{}: {report}", path.display()))
}

fn kernel(ty: Type, equations: Vec<Equation>) -> Kernel {
    Kernel {
        ty,
        inputs: Vec::new(),
        pitches: Vec::new(),
        most: [None; 3],
        divides: [1; 3],
        least: [0; 3],
        relation: None,
        equations,
        launch: Vec::new(),
        units: Vec::new(),
        schedules: Vec::new(),
        tuned: Vec::new(),
        inlined: Vec::new(),
        tile: None,
    }
}

/// The evaluator is judged by hand.
#[test]
fn values() {
    let read = |axis: &str, factor, plus, or: Option<i64>| {
        Expr::Read(
            "x".to_owned(),
            vec![Index::Axis(axis.to_owned(), factor, plus)],
            or.map(|n| Box::new(Expr::Literal(n))),
        )
    };
    let equation = |value: Expr, axes: &[&str]| {
        let axes = axes.iter().map(|a| ((*a).to_owned(), Extent::literal(3))).collect();
        kernel(Type::F16, vec![Equation::new("y", Type::F16, axes, value, true)])
    };
    let x = |data: &[f64]| {
        let data: Vec<Number> = data.iter().map(|x| Number::Float(*x)).collect();
        [("x".to_owned(), Tensor { first: Vec::new(), shape: vec![data.len() as i64], data })].into()
    };
    let run = |kernel: &Kernel, data: &[f64]| {
        let all = evaluate(kernel, &Dims::new(), x(data));
        all.map(|t| t["y"].data.iter().map(|n| n.float()).collect::<Vec<f64>>())
    };
    let halo = equation(read("i", 1, -1, Some(7)), &["i"]);
    assert_eq!(run(&halo, &[1.0, 2.0, 3.0]), Ok(vec![7.0, 1.0, 2.0]));
    assert_eq!(run(&equation(read("i", 2, 0, None), &["i"]), &[1.0, 2.0, 3.0]), Err(Fault::Outside));
    let reduce = |by| {
        let axes = vec![("i".to_owned(), Extent::literal(3))];
        equation(Expr::reduce(by, axes, Type::F16, read("i", 1, 0, None)), &[])
    };
    for (by, value) in [
        (Reduction::Sum, 3.0),
        (Reduction::Max, 2.0),
        (Reduction::Min, -1.0),
        (Reduction::Argmax, 0.0),
        (Reduction::Argmin, 1.0),
        (Reduction::Last, 2.0),
        (Reduction::Any, 1.0),
        (Reduction::All, 0.0),
        (Reduction::Prod, -4.0),
    ] {
        assert_eq!(run(&reduce(by), &[2.0, -1.0, 2.0]), Ok(vec![value]), "{by:?}");
    }
    // 2048 is the last integer that f16 has with all below it.
    assert_eq!(run(&reduce(Reduction::Sum), &[2000.0, -40.0, -20.0]), Err(Fault::Inexact));
}

/// Integers wrap, casts saturate, and folds with several states keep them apart.
#[test]
fn values_of_types() {
    let x = |data: &[i128]| -> std::collections::BTreeMap<String, Tensor> {
        let data: Vec<Number> = data.iter().map(|n| Number::Int(*n)).collect();
        [("x".to_owned(), Tensor { first: Vec::new(), shape: vec![data.len() as i64], data })].into()
    };
    let run = |value: Expr, ty: Type, also: &[Type], data: &[i128]| {
        let mut equation = Equation::new("y", ty, Vec::new(), value, true);
        let names = also.iter().enumerate();
        equation.also = names.map(|(n, ty)| (format!("y_{}", n + 1), *ty)).collect();
        let all = evaluate(&kernel(ty, vec![equation]), &Dims::new(), x(data)).expect("values");
        all.iter().filter(|(name, _)| name.starts_with('y')).map(|(_, t)| t.data[0]).collect::<Vec<_>>()
    };
    let read = || Expr::Read("x".to_owned(), vec![Index::Axis("j".to_owned(), 1, 0)], None);
    let axes = |n| vec![("j".to_owned(), Extent::literal(n))];
    let reduce = |by, of, n| Expr::reduce(by, axes(n), of, read());
    let int = |n: i128| vec![Number::Int(n)];
    assert_eq!(run(reduce(Reduction::Sum, Type::U8, 2), Type::U8, &[], &[200, 100]), int(44));
    assert_eq!(run(reduce(Reduction::Prod, Type::I8, 2), Type::I8, &[], &[-128, -1]), int(-128));
    assert_eq!(run(reduce(Reduction::Max, Type::I64, 0), Type::I64, &[], &[]), int(i64::MIN.into()));
    assert_eq!(run(reduce(Reduction::Min, Type::U32, 0), Type::U32, &[], &[]), int(u32::MAX.into()));
    let product = Expr::Binary("*", Box::new(read()), Box::new(read()));
    let dot = Expr::reduce(Reduction::Dot, axes(2), Type::U8, product);
    assert_eq!(run(dot, Type::I32, &[], &[200, 100]), int(50_000));
    let cast = |from, n| Expr::Cast(from, Box::new(Expr::Literal(n)));
    assert_eq!(run(cast(Type::F32, -3), Type::U8, &[], &[]), int(0));
    assert_eq!(run(cast(Type::I32, -3), Type::U8, &[], &[]), int(253));
    let divided = Expr::Binary("/", Box::new(Expr::Literal(-7)), Box::new(Expr::Literal(2)));
    assert_eq!(run(divided, Type::I16, &[], &[]), int(-3));
    let states = |by, data: &[i128]| {
        let of = Type::I32;
        let mut value = reduce(Reduction::States(by), of, data.len() as i64);
        if let Expr::Reduce(r) = &mut value {
            r.second = by.has_second().then(|| Expr::Axis("j".to_owned()));
        }
        let types = by.types(of);
        run(value, types[0], &types[1..], data).iter().map(|n| n.int()).collect::<Vec<_>>()
    };
    assert_eq!(states(States::SumMax, &[3, -5, 1]), [-1, 3]);
    assert_eq!(states(States::SumMax, &[-9, -5]), [-14, -4]);
    assert_eq!(states(States::CountSum, &[3, -5, 1]), [2, -1]);
    assert_eq!(states(States::Best, &[1, 3, 2, 3]), [3, 1]);
    assert_eq!(states(States::Three, &[4, 5, 2]), [2, 3, 3]);
    assert_eq!(states(States::Rises, &[1, 3, 2, 3]), [3, 3]);
    assert_eq!(states(States::Alternate, &[1, 10, 100, 1000]), [101, 1010]);
}
