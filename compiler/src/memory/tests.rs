//! What is said of accesses, against their definitions at every point of small sizes.

use std::ops::ControlFlow;

use super::fetch;
use super::multiples::{misaligned_terms, proposals};
use crate::domain::{Concrete, Symbolic};
use crate::extent::{Expr, Facts};
use crate::schedule::Plan;
use crate::schedule::accesses::Access;
use crate::schedule::tests::plan;
use crate::schedule::vector::{Class, Vector};

/// The accesses of the output of a plan, each with its class, and the vector.
fn classes(plan: &Plan) -> (Vector, Symbolic, Vec<(Access, Class)>) {
    let at = plan.stages.iter().position(|s| s.name == "y").expect("the output");
    let stage = &plan.stages[at];
    let symbolic = Symbolic::new(&stage.domain, &stage.facts);
    let vector = Vector::of(stage, &stage.facts).expect("a vectorised axis");
    let accesses = plan.accesses(at, &symbolic).expect("a small kernel").tensors;
    let class = |a: Access| (vector.class(&a, &symbolic, &stage.facts), a);
    let found = accesses.into_iter().map(class).map(|(class, access)| (access, class)).collect();
    (vector, symbolic, found)
}

/// Sizes of `M` and `N` at which a kernel is looked at.
fn sizes(facts: &Facts) -> Vec<Vec<i64>> {
    let all = (1..=5).flat_map(|m| (1..=48).map(move |n| vec![m, n]));
    all.filter(|dims| facts.admits(dims)).collect()
}

#[test]
fn vectors_are_neighbours_and_aligned() {
    let (mut vectors, mut uniform, mut apart) = (0, 0, 0);
    for (fact, read, ops) in [
        ("N % 4 == 0", "x[i, j]", "split j by 4 -> jo, v; vectorize v;"),
        ("N % 4 == 0", "x[i, j] + w[i]", "split j by 4 -> jo, v; vectorize v;"),
        ("N % 4 == 0", "x[i, N - 1 - j]", "split j by 4 -> jo, v; vectorize v;"),
        ("N % 8 == 0", "x[i, j] * x[M - 1 - i, j]", "split j by 8 -> jo, v; vectorize v;"),
        // A row may end inside a vector of the merged axis, but for this fact.
        ("N % 4 == 0", "x[i, j] * v[j]", "merge i, j -> p; split p by 4 -> q, k; vectorize k;"),
        ("N % 4 == 0", "x[i, j] + x[i, j / 4]", "split j by 4 -> jo, v; vectorize v;"),
        // Neighbours that start in the middle of a vector.
        ("N % 4 == 0", "u[i, j + 1]", "split j by 4 -> jo, v; vectorize v;"),
        ("N % 4 == 0", "x[i, j / 2]", "split j by 2 -> jo, v; vectorize v;"),
        ("N % 4 == 0", "x[i, (j + 1) % N]", "split j by 4 -> jo, v; vectorize v;"),
        ("N % 4 == 0", "x[i, j / 4 * 4 + 3 - j % 4]", "split j by 4 -> jo, v; vectorize v;"),
    ] {
        let source = format!(
            "kernel K(x: f32[M, N], w: f32[M], v: f32[N], u: f32[M, N + 4]) -> (y: f32[M, N]) where {fact} {{
                y[i, j] = {read};
                schedule y {{ {ops} }}
            }}"
        );
        let plan = plan(&source);
        let (vector, symbolic, accesses) = classes(&plan);
        let stage = plan.stages.iter().find(|s| s.name == "y").expect("the output");
        let leaves = &stage.domain.leaves;
        let lane = leaves.iter().position(|leaf| *leaf == vector.axis).expect("a leaf");
        for dims in sizes(&stage.facts) {
            let concrete = Concrete::new(&stage.domain, &dims).expect("sizes of the kernel");
            let others: Vec<usize> = (0..leaves.len()).filter(|at| *at != lane).collect();
            concrete.visit::<()>(&others, |point| {
                // Offsets of the lanes that are inside.
                let offsets = |access: &Access| -> Vec<i128> {
                    let inside = |n: &i128| {
                        let mut point = point.to_vec();
                        point[lane] = *n;
                        let values = concrete.from_leaves(&point);
                        (0..values.len()).all(|axis| concrete.in_bounds(&values, axis)).then_some(point)
                    };
                    let points = (0..vector.lanes).filter_map(|n| inside(&n));
                    let value = |point: Vec<i128>| {
                        let dims = dims.iter().map(|d| i128::from(*d));
                        access.offset.eval(&dims.chain(point).collect::<Vec<_>>()).expect("an offset")
                    };
                    points.map(value).collect()
                };
                for (access, class) in &accesses {
                    let found = offsets(access);
                    let Some(first) = found.first().copied() else { continue };
                    match class {
                        Class::Vector => {
                            vectors += 1;
                            let neighbours: Vec<i128> = (first..first + vector.lanes).collect();
                            assert_eq!(found, neighbours, "{dims:?}, {point:?}: `{read}`, `{ops}`");
                            assert_eq!(first % vector.lanes, 0, "{dims:?}, {point:?}: `{read}`, `{ops}`");
                        }
                        Class::Uniform => {
                            uniform += 1;
                            assert!(found.iter().all(|o| *o == first), "{found:?} at {dims:?}: `{read}`, `{ops}`");
                        }
                        Class::PerLane => apart += 1,
                    }
                }
                ControlFlow::Continue(())
            });
        }
        // No variable of an offset stands for anything but a leaf.
        let known = stage.facts.dims() + symbolic.variables.len();
        assert!(accesses.iter().flat_map(|(a, _)| a.offset.vars()).all(|v| (v as usize) < known));
    }
    assert!(vectors > 1000 && uniform > 100 && apart > 1000, "{vectors} vectors, {uniform} uniform, {apart} apart");
}

#[test]
fn a_fetch_moves_four_to_sixteen_bytes() {
    for (element, ops, elements) in [
        ("f32", "split j by 4 -> q, v; bind q: thread; vectorize v;", Some(4)),
        ("f32", "split j by 2 -> q, v; bind q: thread; vectorize v;", Some(2)),
        ("f32", "split j by 8 -> q, v; bind q: thread; vectorize v;", Some(4)),
        ("f32", "bind j: thread;", Some(1)),
        ("f16", "split j by 8 -> q, v; bind q: thread; vectorize v;", Some(8)),
        ("f16", "split j by 2 -> q, v; bind q: thread; vectorize v;", Some(2)),
        ("f64", "split j by 2 -> q, v; bind q: thread; vectorize v;", Some(2)),
        // Fewer than 4 bytes.
        ("f16", "bind j: thread;", None),
    ] {
        let plan = plan(&format!(
            "#[allow(TW0690, TW0490)] kernel K(x: {element}[M, 64]) -> (y: {element}[M, 64]) {{
                y[i, j] = x[i, 63 - j];
                launch threads(64);
                schedule y {{ bind i: grid; bind j: thread; }}
                stage xs[i, j] = x in shared at y.i via cp_async {{ {ops} }}
            }}"
        ));
        let at = plan.stages.iter().position(|s| s.name == "xs").expect("the copy");
        let stage = &plan.stages[at];
        let symbolic = Symbolic::new(&stage.domain, &stage.facts);
        let accesses = plan.accesses(at, &symbolic).expect("a small kernel").tensors;
        let read = accesses.iter().find(|a| !a.is_write).expect("the read");
        let vector = Vector::of(stage, &stage.facts);
        assert_eq!(fetch::unit(stage, vector.as_ref(), &symbolic, read).ok(), elements, "{element}: `{ops}`");
    }
}

#[test]
fn proposed_facts_prove_what_they_are_for() {
    let plan = plan("kernel K(x: f32[M, N, K]) -> (y: f32[M, N, K]) { y[i, j, k] = x[i, j, k]; }");
    let (program, facts) = (&plan.stages[0].program, &plan.stages[0].facts);
    let [m, n, k] = [0, 1, 2].map(Expr::var);
    for (e, by, expected) in [
        (n.clone(), 4, "N % 4 == 0"),
        (n.mul(&k), 4, "K % 4 == 0"),
        // Less would do: `K % 4 == 0`. Coefficients are not looked at.
        (n.mul(&k).scale(2), 8, "K % 8 == 0"),
        (m.mul(&n).add(&k), 4, "N % 4 == 0, K % 4 == 0"),
    ] {
        let parts = misaligned_terms(facts, &e, by);
        let found = proposals(program, &parts, by, &|facts| facts.proves_multiple(&e, by));
        let text = found.join(", ");
        assert!(!found.is_empty(), "nothing makes {e:?} a multiple of {by}");
        let source =
            format!("kernel K(x: f32[M, N, K]) -> (y: f32[M, N, K]) where {text} {{ y[i, j, k] = x[i, j, k]; }}");
        let with = crate::schedule::tests::plan(&source);
        assert!(with.stages[0].facts.proves_multiple(&e, by), "`{text}` does not prove it");
        assert!(!facts.proves_multiple(&e, by), "it holds anyway");
        assert_eq!(text, expected);
    }
}
