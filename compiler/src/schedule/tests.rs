//! What schedules are made of, against their definitions: which thread runs an iteration, where an element lies, which
//! copy a read takes, what `like` repeats, and that threads hold what they read.

use std::collections::{BTreeMap, BTreeSet};

use super::{Plan, Stage, build, digits};
use crate::diag::Renderer;
use crate::domain::{AxisId, Binding, Concrete, Symbolic};
use crate::extent::{Expr, Facts};
use crate::program;
use crate::source::{TokenBuffer, TokenMap, locate};
use crate::syntax::parse;

/// The plan of the only kernel of a text.
pub(crate) fn plan(source: &str) -> Plan {
    let stream = source.parse().expect("the text has balanced brackets and Rust's tokens");
    let (tokens, spans) = TokenBuffer::new(stream);
    let (parsed, mut found) = parse(&tokens);
    let written = program::build(&parsed.kernels[0], &mut found).expect("the kernel builds");
    let constraints: Vec<_> = written.facts.iter().map(|f| f.constraint.clone()).collect();
    let facts = Facts::new(&written.dims, &constraints).expect("facts that sizes satisfy");
    let plan = build(&program::scheduled(&written), &facts, &mut found);
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    let errors: Vec<String> = found.found().iter().map(|d| Renderer::new(&map).text(d)).collect();
    assert!(!found.has_errors(), "{source}\n{}", errors.join("\n"));
    plan.expect("a plan without errors")
}

fn stage<'a>(plan: &'a Plan, name: &str) -> &'a Stage {
    plan.stages.iter().find(|s| s.name == name).expect("a stage of that name")
}

/// The iterations of the axes given to units of the block that a thread runs; none if it is idle.
fn iteration(stage: &Stage, thread: i128) -> Option<Vec<(AxisId, i128)>> {
    let own = digits(stage).into_iter().map(|d| (d.leaf, d.path.at(thread), d.extent));
    own.map(|(leaf, value, extent)| (0..extent).contains(&value).then_some((leaf, value))).collect()
}

/// Ops that give the 12 × 40 iterations of `i` and `j` to a block, and the thread of each by its definition.
type Given = (&'static str, u32, fn(i: i128, j: i128) -> i128);

#[test]
fn each_iteration_has_the_thread_of_its_definition() {
    let given: [Given; 7] = [
        // Axes bound to one unit linearise in loop order.
        ("bind i, j: thread;", 480, |i, j| i * 40 + j),
        ("reorder j, i; bind j, i: thread;", 480, |i, j| j * 12 + i),
        // Warps and their lanes; loops are nobody's.
        ("split j by 32 -> jo, l; bind i: warp; bind l: thread;", 384, |i, j| i * 32 + j % 32),
        (
            "split i by 4 -> g, w; split j by 32 -> jo, l; bind g: warpgroup; bind w: warp; bind l: thread;",
            384,
            |i, j| i / 4 * 128 + i % 4 * 32 + j % 32,
        ),
        // A warpgroup has 128 threads, of which 120 have work.
        ("split i by 3 -> g, r; reorder g, r, j; bind g: warpgroup; bind r, j: thread;", 512, |i, j| {
            i / 3 * 128 + i % 3 * 40 + j
        }),
        // A range of the warps begins later.
        ("split i by 3 -> io, w; split j by 32 -> jo, l; bind w: warp 2..5; bind l: thread;", 160, |i, j| {
            (2 + i % 3) * 32 + j % 32
        }),
        ("merge i, j -> p; split p by 96 -> r, t; bind t: thread;", 96, |i, j| (i * 40 + j) % 96),
    ];
    for (ops, threads, thread) in given {
        let source = format!(
            "#[allow(TW0690)] kernel K(x: f32[M, 12, 40]) -> (y: f32[M, 12, 40]) {{
                y[b, i, j] = x[b, i, j];
                launch threads({threads});
                schedule y {{ bind b: grid; {ops} }}
            }}"
        );
        let plan = plan(&source);
        let y = stage(&plan, "y");
        let concrete = Concrete::new(&y.domain, &[1]).expect("sizes of the kernel");
        let mut ran: BTreeMap<(i128, i128), Vec<i128>> = BTreeMap::new();
        for number in 0..i128::from(threads) {
            let Some(own) = iteration(y, number) else { continue };
            let is_own = |at: &usize| own.iter().any(|(leaf, _)| *leaf == y.domain.leaves[*at]);
            let loops: Vec<usize> = (0..y.domain.leaves.len()).filter(|at| !is_own(at)).collect();
            concrete.visit::<()>(&loops, |point| {
                let mut point = point.to_vec();
                for (leaf, value) in &own {
                    point[y.domain.leaves.iter().position(|l| l == leaf).expect("a leaf")] = *value;
                }
                let values = concrete.from_leaves(&point);
                let roots: Vec<i128> = y.domain.roots.iter().map(|root| values[*root]).collect();
                // Holes belong to nobody.
                if (0..values.len()).all(|axis| concrete.in_bounds(&values, axis)) {
                    ran.entry((roots[1], roots[2])).or_default().push(number);
                }
                std::ops::ControlFlow::Continue(())
            });
        }
        for (i, j) in (0..12).flat_map(|i| (0..40).map(move |j| (i, j))) {
            assert_eq!(ran.get(&(i, j)), Some(&vec![thread(i, j)]), "iteration ({i}, {j}) of `{ops}`");
        }
    }
}

#[test]
fn elements_of_an_instance_lie_apart() {
    for (place, ops) in [
        ("shared", "bind j: thread;"),
        ("shared", "bind j: thread; layout [j, i];"),
        ("shared", "bind j: thread; layout [i, j pad 1];"),
        ("shared", "bind j: thread; layout [j pad 3, i pad 2];"),
        ("global", "bind j: thread;"),
    ] {
        let source = format!(
            "#[allow(TW0490)] kernel K(x: f32[M, 8, 32]) -> (y: f32[M, 8, 32]) {{
                t[b, i in 0..8, j in 0..32] = x[b, i, j];
                y[b, i, j] = t[b, 7 - i, j] + t[b, i, 31 - j];
                launch threads(32);
                schedule y {{ bind b: grid; bind j: thread; }}
                schedule t in {place} at y.b {{ {ops} }}
            }}"
        );
        let plan = plan(&source);
        let t = stage(&plan, "t");
        let places = t.layout.places().as_constant().expect("an instance of a known size");
        let extents: Vec<i128> = t.coordinates.iter().map(|c| c.most.as_constant().expect("a number")).collect();
        let mut taken = BTreeSet::new();
        let mut points = vec![Vec::new()];
        for extent in &extents {
            points = points.iter().flat_map(|p| (0..*extent).map(|n| [&p[..], &[n]].concat())).collect();
        }
        for point in &points {
            let spot = t.spot_of(&t.layout, point.iter().map(|n| Expr::constant(*n)).collect());
            let offset = spot.offset.as_constant().expect("the place of an element");
            assert!((0..places).contains(&offset), "{point:?} at {offset} of {places}: `{ops}`");
            assert!(taken.insert(offset), "{point:?} at {offset}, where another one lies: `{ops}`");
        }
        assert_eq!(taken.len(), 8 * 32, "`{ops}`");
    }
}

#[test]
fn a_read_takes_the_innermost_copy() {
    let plan = plan(
        "#[allow(TW0490)] kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N <= 1024 {
            m[i] = max(|j| x[i, j]);
            c[i, j] = x[i, j] * 2.0;
            y[i, j] = x[i, j] - m[i] * c[i, j];
            launch threads(64);
            schedule y {
                split i by 4 -> io, ii; split j by 64 -> r, t; reorder io, ii, r, t;
                bind io: grid; bind t: thread; unroll r;
            }
            stage xs[i, j] = x in shared at y.io { split j by 64 -> q, p; bind p: thread; }
            stage xr[i, j] = x in registers at y.ii { like y; }
            schedule c in shared at y.io { split j by 64 -> q, p; bind p: thread; }
            schedule m in registers at y.ii { like y; reduce t; }
        }",
    );
    let taken = |reader: &str| {
        let at = plan.stages.iter().position(|s| s.name == reader).expect("a stage");
        let symbolic = Symbolic::new(&plan.stages[at].domain, &plan.stages[at].facts);
        let accesses = plan.accesses(at, &symbolic).expect("a small kernel");
        let names = accesses.stages.iter().map(|read| plan.taken(at, read).expect("a stage").name.clone());
        (names.collect::<Vec<_>>(), accesses.tensors.iter().filter(|a| !a.is_write).count())
    };
    let expected = |names: &[&str], tensors| (names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(), tensors);
    assert_eq!(taken("y"), expected(&["xr", "m", "c"], 0));
    assert_eq!(taken("m"), expected(&["xr"], 0));
    assert_eq!(taken("c"), expected(&["xs"], 0));
    // Copies of one tensor do not take it from each other.
    assert_eq!(taken("xr"), expected(&[], 1));
    assert_eq!(taken("xs"), expected(&[], 1));
}

#[test]
fn like_repeats_what_is_no_block() {
    let plan = plan(
        "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 4096 {
            e[i, j] = exp(x[i, j]);
            s[i] = sum(|j| e[i, j]);
            y[i, j] = e[i, j] / s[i];
            launch threads(128);
            schedule y { bind i: grid; split j by 4 -> q, v; split q by 128 -> r, t; bind t: thread; vectorize v; unroll r; }
            schedule e in registers at y.i { like y; }
            schedule s in registers at y.i { like y; reduce t; }
        }",
    );
    let leaves = |name: &str| {
        let Stage { domain, facts, program, .. } = stage(&plan, name);
        let show = |e: &Expr| facts.normal(e).show(&|v| program.dim_name(v as u16).to_owned());
        let leaves = domain.leaves.iter().map(|leaf| &domain.axes[*leaf]).filter(|a| a.binding != Binding::Grid);
        leaves.map(|a| (a.name.clone(), show(&a.extent), a.binding)).collect::<Vec<_>>()
    };
    let model: Vec<_> = leaves("y");
    assert_eq!(model.iter().map(|l| l.0.as_str()).collect::<Vec<_>>(), ["r", "t", "v"]);
    for name in ["e", "s"] {
        let own = leaves(name);
        let common: Vec<_> = own.iter().filter(|l| model.iter().any(|m| m.0 == l.0)).cloned().collect();
        assert_eq!(common, model, "`{name}` is like `y`");
    }
}

/// What each thread computes of a stage, of an instance at a place: the elements, by their last index.
fn computed(plan: &Plan, name: &str, n: i64) -> BTreeMap<i128, BTreeSet<i128>> {
    let own = stage(plan, name);
    // Loops around a stage are dimensions to it: they stand at 0.
    let dims = vec![n; 1].into_iter().chain(std::iter::repeat_n(0, own.facts.dims() - 1)).collect::<Vec<i64>>();
    let concrete = Concrete::new(&own.domain, &dims).expect("sizes of the kernel");
    let mut found: BTreeMap<i128, BTreeSet<i128>> = BTreeMap::new();
    for thread in 0..i128::from(plan.threads) {
        let Some(given) = iteration(own, thread) else { continue };
        let leaves = &own.domain.leaves;
        let is_given = |at: &usize| given.iter().any(|(leaf, _)| *leaf == leaves[*at]);
        let loops: Vec<usize> = (0..leaves.len()).filter(|at| !is_given(at)).collect();
        concrete.visit::<()>(&loops, |point| {
            let mut point = point.to_vec();
            for (leaf, value) in &given {
                point[leaves.iter().position(|l| l == leaf).expect("a leaf")] = *value;
            }
            let values = concrete.from_leaves(&point);
            if (0..values.len()).all(|axis| concrete.in_bounds(&values, axis)) {
                let last = own.domain.roots.last().expect("a root");
                found.entry(thread).or_default().insert(values[*last]);
            }
            std::ops::ControlFlow::Continue(())
        });
    }
    found
}

#[test]
fn threads_hold_what_they_read_from_registers() {
    for (of_y, of_e) in [
        ("split j by 32 -> r, t; bind t: thread; unroll r;", "like y;"),
        ("split j by 4 -> q, v; split q by 32 -> r, t; bind t: thread; vectorize v; unroll r;", "like y;"),
        // The same threads by other ops.
        (
            "split j by 32 -> r, t; bind t: thread; unroll r;",
            "split j by 16 -> q, p; split q by 2 -> r, h; merge h, p -> t; bind t: thread; unroll r;",
        ),
    ] {
        let source = format!(
            "kernel K(x: f32[N]) -> (y: f32[1, N]) where N % 64 == 0, N <= 256 {{
                e[i in 0..1, j in 0..N] = exp(x[j]);
                y[i, j] = e[i, j];
                launch threads(32);
                schedule y {{ bind i: grid; {of_y} }}
                schedule e in registers at y.i {{ {of_e} }}
            }}"
        );
        let plan = plan(&source);
        for n in [64, 128, 256] {
            let (read, held) = (computed(&plan, "y", n), computed(&plan, "e", n));
            assert_eq!(read.values().map(BTreeSet::len).sum::<usize>(), n as usize, "`{of_y}` covers its elements");
            for (thread, elements) in read {
                let own = held.get(&thread).cloned().unwrap_or_default();
                let missing: Vec<&i128> = elements.difference(&own).collect();
                assert!(missing.is_empty(), "N = {n}: thread {thread} reads {missing:?}, `{of_y}` and `{of_e}`");
            }
        }
    }
}

#[test]
fn roles_have_warps_of_their_own() {
    let plan = plan(
        "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N % 32 == 0 {
            t[i, j] = x[i, j] + 1.0;
            y[i, j] = t[i, j] * 2.0;
            launch roles { math: 2 warp, load: 3 warp };
            schedule y by math { bind i: grid; split j by 64 -> jo, l; bind l: thread; }
            schedule t in shared at y.jo by load { split j by 32 -> w, l; bind l: thread; }
        }",
    );
    assert_eq!(plan.threads, 160);
    let mut next = 0;
    for role in &plan.roles {
        assert_eq!(role.range(0).start, next, "`{}` begins where the one before it ends", role.name);
        next = role.range(role.turns - 1).end;
    }
    assert_eq!(next, 5);
    let block = |name: &str| stage(&plan, name).distribution.block;
    assert_eq!((block("y"), block("t")), (64, 96));
}
