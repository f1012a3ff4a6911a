//! Some hundred random cases; the binary runs many more.

use tilewright_campaign::compile::{Outcome, compile};
use tilewright_campaign::fuzz::{self, Kind};
use tilewright_campaign::ratchet::Ratchet;
use tilewright_campaign::{campaign, mutate};

/// Cases of the test. The ratchet file has a column for exactly these.
const CASES: u64 = 400;

#[test]
fn random_kernels_keep_every_promise() {
    let summary = campaign::run(1, 0, CASES);
    assert!(summary.failures.is_empty(), "{summary}");
    assert!(summary.accepted * 100 >= summary.cases * 40, "too few kernels are accepted to test much\n{summary}");
    let ratchet = Ratchet::committed();
    assert_eq!(ratchet.worse("test", &summary), Vec::<String>::new(), "\n{summary}");
}

#[test]
fn broken_text_gives_errors() {
    let summary = mutate::run(1, 0, 600);
    assert!(summary.failures.is_empty(), "{summary}");
}

/// Each kind, some thousands of inputs; `campaign --fuzz` runs millions.
#[test]
fn broken_inputs_are_answered() {
    for (kind, count) in [(Kind::Language, 1500), (Kind::Ptx, 1000), (Kind::Files, 4000), (Kind::Maps, 4000)] {
        let summary = fuzz::run(kind, (1, 0, count));
        assert!(summary.failures.is_empty(), "{kind:?} {summary}");
        assert_eq!(summary.counts.values().sum::<u64>(), count, "{kind:?} {summary}");
        assert!(summary.counts.len() > 3, "all inputs of {kind:?} end alike\n{summary}");
        assert_eq!(fuzz::input(kind, 1, 77), fuzz::input(kind, 1, 77));
    }
}

/// An axis that never has an element divides no size: indices were taken to be beyond 64 bits.
#[test]
fn merged_with_an_axis_without_elements() {
    let text = "kernel K() -> (z: i64[64, M]) { z[i, j] = prod(|k in 0..3, l in 0..3 / 4| 1i64); \
                schedule z { merge k, l -> kl; } }";
    assert!(matches!(compile(text), Outcome::Accepted(..)), "{:?}", compile(text));
}

/// What a fact solves counts in the sum of sizes that is to be small.
#[test]
fn counterexamples_with_solved_sizes_are_the_smallest() {
    let text = "kernel K(inout z: f32[M, K, N]) where M == 4 * N { z[i, j, k] = ordered sum(|r in 1..4| 1.0f32); \
                schedule z { merge j, k -> m1; split m1 by 2 -> o2, v3; split i by 2 -> o4, v5; \
                swizzle v5, v3 by xor -> x6, y7; vectorize y7; reorder r, y7; } }";
    let Outcome::Refused(errors, report) = compile(text) else { panic!("a refusal is expected") };
    let told = errors[0].found.counterexample.as_deref().unwrap_or_default();
    assert!(told.starts_with("M = 4, K = 2, N = 1: "), "{report}");
}

/// Inside a condition no schedule names the axes of a reduction: there is no such edit.
#[test]
fn a_divided_sum_is_not_moved_into_a_condition() {
    let text = "kernel K() -> (z: i32[N]) { z[i] = sum(|k in 0..3| 1i32) % (N as i32); schedule z { unroll k; } }";
    let Outcome::Refused(errors, report) = compile(text) else { panic!("a refusal is expected") };
    assert!(report.contains("give the reduction an equation of its own"), "{report}");
    assert!(errors[0].edited.iter().all(|(_, edited)| !edited.contains("if N")), "{report}");
}

/// The interpreter must see what it is there to see.
mod interpreter {
    use tilewright_campaign::ast::{Dims, Equation, Index, Kernel, Node, Op, Parameter, Role, Size, Value};
    use tilewright_campaign::interpret::{self, Access, Case};
    use tilewright_kernel::ElementType;

    fn parameter(name: &str, role: Role) -> Parameter {
        let shape = Some(vec![Size::named("M"), Size::named("N")]);
        Parameter { name: name.to_owned(), ty: ElementType::F32, shape, strides: None, role }
    }

    /// `z[i, j] = x[i, j + shift]` with these ops.
    fn kernel(shift: i64, ops: Vec<Op>) -> Kernel {
        let j = Index::Add(Box::new(Index::Axis("j".into())), Box::new(Index::Literal(shift)));
        let read = Node::Read { tensor: "x".into(), indices: vec![Index::Axis("i".into()), j], or: None };
        let equation = Equation {
            targets: vec!["z".into()],
            axes: vec![("i".into(), Size::named("M")), ("j".into(), Size::named("N"))],
            lower: vec![0, 0],
            domain_written: false,
            inclusive: false,
            value: Value { ty: ElementType::F32, node: read },
            inline: false,
        };
        Kernel {
            parameters: vec![parameter("x", Role::Input), parameter("z", Role::Output)],
            facts: vec![],
            equations: vec![equation],
            threads: None,
            schedules: vec![("z".into(), ops)],
            allow: None,
        }
    }

    fn sizes(m: i64, n: i64) -> Dims {
        [("M".to_owned(), m), ("N".to_owned(), n)].into()
    }

    fn vector(by: i64) -> Vec<Op> {
        vec![
            Op::Merge(vec!["i".into(), "j".into()], "ij".into()),
            Op::Split { input: "ij".into(), into: false, factor: by, named: None, outputs: ["o".into(), "v".into()] },
            Op::Vectorize("v".into()),
        ]
    }

    #[test]
    fn cut_vectors() {
        let kernel = kernel(0, vector(4));
        let case = Case::CutVector("v".into());
        for (m, n) in [(1, 4), (2, 2), (3, 4), (2, 6)] {
            assert_eq!(interpret::fails(&kernel, &case, &sizes(m, n)), Ok(None));
        }
        for (m, n) in [(1, 1), (3, 2), (5, 5)] {
            assert!(matches!(interpret::fails(&kernel, &case, &sizes(m, n)), Ok(Some(_))));
        }
        let names = ["M".to_owned(), "N".to_owned()];
        assert_eq!(interpret::smallest(&kernel, &case, &names, 20, 400_000).map(|(d, _)| d), Some(sizes(1, 1)));
    }

    #[test]
    fn shifted_vectors_and_reads_outside() {
        let kernel = kernel(1, vector(2));
        let access = || Access { tensor: "x".into(), text: Some("x[i,(j+1)]".into()) };
        assert!(matches!(
            interpret::fails(&kernel, &Case::Misaligned("v".into(), access()), &sizes(1, 2)),
            Ok(Some(_))
        ));
        assert!(matches!(interpret::fails(&kernel, &Case::OutOfBounds(access()), &sizes(1, 1)), Ok(Some(_))));
        let write = Access { tensor: "z".into(), text: None };
        assert_eq!(interpret::fails(&kernel, &Case::Misaligned("v".into(), write), &sizes(1, 2)), Ok(None));
    }

    #[test]
    fn cut_elements_and_elements_written_once() {
        let cut = kernel(0, vec![Op::Resize("j".into(), 0, -1, "p".into())]);
        assert!(matches!(interpret::fails(&cut, &Case::Uncovered("z".into()), &sizes(1, 2)), Ok(Some(_))));
        assert!(interpret::exactly_once(&cut, &sizes(2, 3)).is_err());
        let padded = kernel(0, vec![Op::Resize("j".into(), 2, 1, "p".into())]);
        assert_eq!(interpret::exactly_once(&padded, &sizes(2, 3)), Ok(()));
        let split = kernel(0, vector(4));
        assert_eq!(interpret::exactly_once(&split, &sizes(3, 5)), Ok(()));
    }
}
