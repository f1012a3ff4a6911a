//! Bounds of values against what they are, on many paths at small sizes.

use super::*;
use crate::proof::{Launch, Verdict, watch_paths};
use crate::source::TokenBuffer;

/// Several axes of the grid, in turn and at once; quotients by sizes; limits of regions; layouts; what roles and
/// clusters add.
const KERNELS: [&str; 9] = [
    "kernel A(x: f32[M, N]) -> (y: f32[N, M]) { y[j, i] = x[i, j];
        schedule y { split i by 32 -> b, u; split j by 8 -> c, v; bind c, b: grid; bind u: thread; } }",
    "kernel B(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = if i < 3 { x[i, j] + 1.0 } else { x[i, j] }; launch threads(64), persistent;
        schedule y { merge i, j -> p; split p by 64 -> b, t; bind b: grid; bind t: thread; } }",
    "kernel C(x: f32[M + 1, 4]) -> (y: f32[M, 4]) { t[i in 0..M + 1] = prod(|j in 0..4| x[i, j]); y[i, j] = t[i]; launch threads(96);
        schedule y { split i by 2 -> b, u; bind b: grid; bind j: thread; unroll u; }
        schedule t in shared at y.u { split i by 32 -> k, l; bind l: thread; split k by 3 -> m, n; bind n: warp; unroll j; layout [n, l, m] swizzle 32; } }",
    "kernel D(c: f32[M + N + 4], inout y: f32[M, N]) where N <= 16 { t[i in 0..M + N + 1, j in 0..M + N + 1] = c[i + 1]; y[i, j] = t[j, i + j];
        launch threads(128);
        schedule y { split i into 4 -> w, r; split j by 32 -> b, t; bind w: warp; bind t: thread; reorder w, b, r, t; }
        schedule t in shared per warp at y.r { split j by 32 -> k, l; bind l: thread; } }",
    "kernel E(x: f32[M, N]) -> (y: f32[M, N]) where M >= 1 { y[i, j] = x[(i + 3) % M, N - 1 - j] + (x[i - 2, j + 1] or 0.0);
        schedule y { resize i by (3, 2) -> z; split z by 5 -> b, u; split j by 4 -> c, v; bind b, c: grid raster(b: 3); bind v: thread; unroll u; } }",
    "kernel F(x: f32[M, N]) -> (y: f32[M]) { t[i, j in 0..N] = x[i, j] * 2.0; y[i] = sum(|j in 0..N| t[i, j]);
        launch threads(64), cluster(2);
        schedule y { split j by 64 -> k, l; bind l: thread; split k into 2 -> c, d; bind c: cta; bind i: grid; reorder c, i, d, l; reduce l; reduce c by cluster; }
        schedule t in shared at y.d { split j by 64 -> k, l; bind l: thread; } }",
    "kernel G(x: f32[M, N], v: f32[M], p: i32[M]) -> (y: f32[M, N]) { y[i, j] = x[i, j] + (v[p[i]] or 0.0) + (i as f32);
        launch roles { load: warp, math: 2 warp };
        schedule y by math { split j by 32 -> b, l; split i by 2 -> g, w; bind w: warp; bind l: thread; bind g: grid; reorder g, b, w, l; }
        stage xa[i, j] = x in shared at y.b ring(2) by load { split j by 32 -> k, l; bind l: thread; } }",
    "kernel H(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 { t[i, j in 0..N] = x[i, j] - 1.0; y[i, j] = t[i, j] + t[M - 1 - i, j];
        launch threads(32), persistent;
        schedule y { split i by 2 -> b, u; split j by 8 -> c, v; bind b, c: grid; bind v: thread; }
        schedule t in shared at y.u { merge i, j -> p; split p by 32 -> k, l; bind l: thread; layout [l, k]; } }",
    "kernel I(x: f32[M]) -> (y: f32[M]) { y[i] = (x[(i - 5) / 4] or 0.0) + (x[(2 - 3 * i) / 7 + i] or 1.0);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; } }",
];

/// Sizes of each dimension.
const SIZES: [i64; 7] = [1, 2, 3, 4, 7, 16, 45];

#[test]
fn values_lie_within_their_bounds() {
    let mut compared = 0;
    for source in KERNELS {
        let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
        let outcome = crate::compile(&tokens);
        let compiled = &outcome.kernels[0];
        let found = outcome.diagnostics.found();
        let info = compiled.info.as_ref().unwrap_or_else(|| panic!("{found:?}\n{source}"));
        let blocks = Expr::from_size(&info.launch.blocks);
        for entry in compiled.entries.iter().filter(|e| !e.kernel.signature.name.ends_with("_64")) {
            let bounds = looked_at(&entry.kernel, &blocks);
            for m in SIZES {
                for n in SIZES {
                    let of = |d: &tilewright_kernel::info::Dim| if &*d.name == "M" { m } else { n };
                    let dims: Vec<i64> = info.dims.iter().map(of).collect();
                    let holds = info.facts.iter().chain(info.requirements.iter()).all(|c| c.holds(&dims) == Ok(true));
                    let Ok(launch) = Launch::new(info, &dims) else { continue };
                    if !holds || launch.blocks == 0 {
                        continue;
                    }
                    let mut ranges: SortedMap<ValueId, (i64, i64)> = SortedMap::new();
                    let found = watch_paths(&entry.kernel, &launch, 1, 60, &mut |value, at| {
                        let range = ranges.entry(value).or_insert((at, at));
                        *range = (range.0.min(at), range.1.max(at));
                    });
                    assert_eq!(found, Verdict::Holds);
                    let sizes: Vec<i128> = dims.iter().map(|n| i128::from(*n)).collect();
                    for (value, Ends { below, above }, _) in &bounds {
                        let Some((least, most)) = ranges.get(value).copied() else { continue };
                        compared += 1;
                        let (below, above) = (below.eval(&sizes), above.eval(&sizes));
                        let is_within = below.is_none_or(|below| -below <= least.into())
                            && above.is_none_or(|above| i128::from(most) <= above);
                        assert!(
                            is_within,
                            "v{} is from {least} to {most}, and not from -{below:?} to {above:?}, at {dims:?}\n{source}\n{}",
                            value.index(),
                            entry.kernel
                        );
                    }
                }
            }
        }
    }
    assert!(compared > 5_000, "{compared} values");
}

/// Conditions have a value at sizes where the inner of two merged axes is empty, and divides.
#[test]
fn there_is_an_entry_point_where_nothing_divides() {
    for (name, dims) in [("bound_divided_by_nothing", [0, 3]), ("length_divided_by_nothing", [3, 1])] {
        let path = format!("{}/../campaign/found/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(path).expect("a kernel that was found");
        let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
        let kernel = crate::compile(&tokens).kernels.remove(0);
        let mut launched = kernel.entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(&dims) == Ok(true)));
        assert!(launched.next().is_some(), "{name}");
    }
}

/// Indices that leave 64 bits have no entry point; a transpose has one for every size.
#[test]
fn indices_stay_within_64_bits() {
    let conditions = |source: &str| {
        let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
        let kernel = crate::compile(&tokens).kernels.remove(0);
        kernel.entries.into_iter().map(|entry| entry.conditions).collect::<Vec<_>>()
    };
    let cubes = conditions(
        "kernel K(x: f32[N], w: f32[N]) -> (y: f32[K]) {
            y[i] = (x[i * N * N * N + 1] or 7.0) + w[N - 1];
            schedule y { bind i: grid; }
        }",
    );
    let has_entry = |dims: &[i64]| cubes.iter().any(|entry| entry.iter().all(|c| c.holds(dims) == Ok(true)));
    // 2 · 2⁶⁶ is beyond 64 bits, and 2 · 2⁶⁰ is not.
    assert!(has_entry(&[1 << 20, 2]) && !has_entry(&[1 << 22, 2]));
    assert_eq!(conditions(KERNELS[0]).last(), Some(&Vec::new()));
    let never = "kernel K(x: f32[N]) -> (y: f32[K]) {
        y[i] = if i * 4611686018427387904 < 9 { 1.0 } else { x[0] };
        schedule y { split i by 32 -> a, b; bind a: grid; bind b: thread; }
    }";
    assert!(conditions(never).is_empty());
    // Too many terms to bound: A + B + C + D = 2048 would bring the product back to 0.
    let long = format!(
        "kernel K(x: f32[A], b: f32[B], c: f32[C], d: f32[D]) -> (y: f32[K]) {{
            y[i] = if i{} < 9 {{ x[0] }} else {{ b[0] + c[0] + d[0] }};
            schedule y {{ split i by 32 -> a, b; bind a: grid; bind b: thread; }}
        }}",
        " * (A + B + C + D)".repeat(6)
    );
    assert!(conditions(&long).is_empty());
}
