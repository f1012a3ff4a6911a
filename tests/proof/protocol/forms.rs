//! Forms of kernels in which rings go around and roles hand things over, each for a number of slots and a number of
//! trips, from none on.
//!
//! No tensor map describes a tensor without elements, so an entry point with copies by the accelerator is taken for
//! sizes of at least 1 only. What has no trips there is the loop over a part of a size (`0..T - 1`), the loop of an
//! instance whose range others decide (`0..i`), and what stands in tiles that one of two outputs does not have. Copies
//! by threads have no such condition: there `T` itself is zero.

/// A kernel for each number of slots.
pub struct Form {
    pub name: &'static str,
    pub source: fn(u32) -> String,
    /// Sizes with which loops around a ring have so many trips; or, in the last of their instances, so many.
    pub dims: fn(i64) -> Vec<i64>,
    /// Blocks that run at one time.
    pub residents: &'static [u32],
}

pub const TWO: &str = "roles { load: warp, math: warp }";
pub const THREE: &str = "persistent, roles { load: warp, sums: warp, math: warp }";
const ONE: &str = "roles { math: warp }";
const ALL: &[u32] = &[3];
/// Several tiles for a block, which are four to six for all.
const FEW: &[u32] = &[1, 2];

/// Sums of rows of `x`: a loop over a part `of` the second dimension around a copy to a ring of shared memory.
pub fn rows(ring: u32, launch: &str, of: &str, [math, copy, ops]: [&str; 3]) -> String {
    format!(
        "kernel Rows(x: f32[M, T, 32]) -> (y: f32[M, 32]) {{
            y[i, j] = sum(|t in 0..{of}| x[i, t, j]);
            launch {launch};
            schedule y {math} {{ bind i: grid; bind j: thread; reorder i, j, t; }}
            stage xs[i, t, j] = x in shared at y.t ring({ring}) {copy} {{ {ops} }}
        }}"
    )
}

pub const BY_ROLES: [&str; 3] = ["by math", "via tma by load", ""];

/// Products of blocks of a cluster that share tiles of `b`.
pub fn product(ring: u32, launch: &str, [math, load]: [&str; 2], ops: &str) -> String {
    format!(
        "kernel Product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) where N % 4 == 0, K % 4 == 0 {{
            c[i, j] = sum(|k in 0..K - 4| a[i, k] * b[k, j]);
            launch cluster(2), {launch};
            schedule c {math} {{
                split i by 8 -> io, i1; split i1 by 4 -> ic, ii; split j by 8 -> jo, jj; split k by 4 -> ko, kk;
                reorder io, jo, ic, ko, ii, jj, kk; bind io, jo: grid; bind ic: cta; bind ii, jj: thread;
            }}
            stage at[i, k] = a in shared at c.ko ring({ring}) via tma {load} {{ }}
            stage bt[k, j] = b in shared at c.ko ring({ring}) via tma {load} {{ {ops} }}
        }}"
    )
}

pub const SLICES: &str = "box k by 2 -> kb, kr; multicast c.ic by kb;";
const WHOLE: &str = "multicast c.ic;";

/// Sums of as many terms as the number of the row says: of the first one there are none, if its own is not among them.
pub fn triangle(ring: u32, launch: &str, terms: &str, [math, sums, copy, ops]: [&str; 4]) -> String {
    format!(
        "kernel Triangle(x: f32[M, 32]) -> (y: f32[M, 32]) {{
            s[i, j] = sum(|k in {terms}| x[k, j]);
            y[i, j] = s[i, j] + x[i, j];
            launch {launch};
            schedule y {math} {{ bind i: grid; bind j: thread; }}
            schedule s in shared at y.i {sums} {{ bind j: thread; reorder i, j, k; }}
            stage xs[k, j] = x in shared at s.k ring({ring}) {copy} {{ {ops} }}
        }}"
    )
}

/// What one role computes for another one, in a loop of so many trips.
fn computed(ring: u32, launch: &str) -> String {
    format!(
        "kernel Computed(x: f32[M, T, 32]) -> (y: f32[M, 32]) {{
            s[i, t] = max(|k| x[i, t, k]);
            y[i, j] = sum(|t| s[i, t] * (j as f32));
            launch {launch} roles {{ maxima: warp, math: warp }};
            schedule y by math {{ bind i: grid; bind j: thread; reorder i, j, t; }}
            schedule s in shared at y.t ring({ring}) by maxima {{ bind k: thread; reduce k; }}
        }}"
    )
}

/// Two outputs, of which one has tiles that the other one does not have: there are no instances of the ring there.
fn beside(ring: u32, roles: bool) -> String {
    let [launch, math, load, store] = match roles {
        true => ["roles { load: warp, math: warp, store: warp }", "by math", "by load", "by store"],
        false => ["threads(32)", "", "", ""],
    };
    // A ring of another role may stand at the grid.
    let (at, loops) = if roles { ("y.i", "bind i: grid;") } else { ("y.q", "split i by 1 -> p, q; bind p: grid;") };
    format!(
        "kernel Beside(x: f32[T, 32], w: f32[M, 32]) -> (y: f32[T, 32], z: f32[M, 32]) {{
            y[i, j] = x[i, j] * 2.0;
            z[i, j] = w[i, j] + 1.0;
            launch persistent, {launch};
            schedule y {math} {{ {loops} bind j: thread; }}
            schedule z {math} {{ bind i: grid; bind j: thread; }}
            stage xs[i, j] = x in shared at {at} ring({ring}) via tma {load} {{ }}
            stage ys[i, j] = y in shared at {at} ring({ring}) via tma {store} {{ }}
        }}"
    )
}

/// A row that is handed to the role that stores it, from a loop that may have no trips.
fn stored(ring: u32) -> String {
    format!(
        "kernel Stored(x: f32[M, T, 32]) -> (y: f32[M, 32]) {{
            y[i, j] = sum(|t in 0..T - 1| x[i, t, j]);
            launch persistent, roles {{ load: warp, math: warp, store: warp }};
            schedule y by math {{ bind i: grid; bind j: thread; reorder i, j, t; }}
            stage xs[i, t, j] = x in shared at y.t ring({ring}) via tma by load {{ }}
            stage ys[i, j] = y in shared at y.i ring({ring}) via tma by store {{ }}
        }}"
    )
}

const THREADS: &str = "bind j: thread;";
const MAP: &str = "l2 promote(128);";
const PART: &str = "T - 1";
const OWN: &str = "threads(32)";

fn part(trips: i64) -> Vec<i64> {
    vec![5, trips + 1]
}

fn whole(trips: i64) -> Vec<i64> {
    vec![5, trips]
}

fn terms(trips: i64) -> Vec<i64> {
    vec![11, 4 * trips + 4, 20]
}

pub fn forms() -> Vec<Form> {
    let form =
        |name, source: fn(u32) -> String, dims: fn(i64) -> Vec<i64>, residents| Form { name, source, dims, residents };
    vec![
        form("runs, roles", |n| rows(n, TWO, PART, BY_ROLES), part, ALL),
        form("runs, roles, persistent", |n| rows(n, &format!("persistent, {TWO}"), PART, BY_ROLES), part, FEW),
        form("tiles, roles", |n| rows(n, TWO, PART, ["by math", "via tma by load", MAP]), part, ALL),
        form("runs", |n| rows(n, OWN, PART, ["", "via tma", ""]), part, ALL),
        form("tiles", |n| rows(n, OWN, PART, ["", "via tma", MAP]), part, ALL),
        form("runs, persistent", |n| rows(n, &format!("persistent, {OWN}"), PART, ["", "via tma", ""]), part, FEW),
        form("runs, one role", |n| rows(n, ONE, PART, ["", "via tma", ""]), part, ALL),
        form("loads, roles", |n| rows(n, TWO, "T", ["by math", "by load", THREADS]), whole, ALL),
        form(
            "loads, roles, persistent",
            |n| rows(n, &format!("persistent, {TWO}"), "T", ["by math", "by load", THREADS]),
            whole,
            FEW,
        ),
        form("loads", |n| rows(n, OWN, "T", ["", "", THREADS]), whole, ALL),
        form("fetches", |n| rows(n, OWN, "T", ["", "via cp_async", THREADS]), whole, ALL),
        form(
            "fetches, persistent",
            |n| rows(n, &format!("persistent, {OWN}"), "T", ["", "via cp_async", THREADS]),
            whole,
            FEW,
        ),
        form(
            "fetches, one role, persistent",
            |n| rows(n, &format!("persistent, {ONE}"), "T", ["", "via cp_async", THREADS]),
            whole,
            FEW,
        ),
        form("fetches, roles", |n| rows(n, TWO, "T", ["by math", "via cp_async by load", THREADS]), whole, ALL),
        form(
            "fetches, roles, persistent",
            |n| rows(n, &format!("persistent, {TWO}"), "T", ["by math", "via cp_async by load", THREADS]),
            whole,
            FEW,
        ),
        form(
            "triangle, fetches, roles",
            |n| triangle(n, THREE, "0..i", ["by math", "by sums", "via cp_async by load", THREADS]),
            |t| vec![t + 1],
            FEW,
        ),
        form("computed, roles", |n| computed(n, ""), whole, ALL),
        form("computed, roles, persistent", |n| computed(n, "persistent,"), whole, FEW),
        form("multicast", |n| product(n, "threads(32)", ["", ""], SLICES), terms, ALL),
        form(
            "multicast of whole tiles, persistent",
            |n| product(n, "persistent, threads(32)", ["", ""], WHOLE),
            terms,
            &[2, 4],
        ),
        form("multicast, roles", |n| product(n, TWO, ["by math", "by load"], SLICES), terms, ALL),
        form(
            "multicast, roles, persistent",
            |n| product(n, &format!("persistent, {TWO}"), ["by math", "by load"], SLICES),
            terms,
            &[2, 4],
        ),
        form(
            "multicast of whole tiles, roles, persistent",
            |n| product(n, &format!("persistent, {TWO}"), ["by math", "by load"], WHOLE),
            terms,
            &[2, 4],
        ),
        form(
            "triangle",
            |n| triangle(n, "persistent, threads(32)", "0..i", ["", "", "via tma", ""]),
            |t| vec![t + 1],
            FEW,
        ),
        form(
            "triangle, fetches",
            |n| triangle(n, "persistent, threads(32)", "0..i", ["", "", "via cp_async", THREADS]),
            |t| vec![t + 1],
            FEW,
        ),
        form(
            "triangle, roles",
            |n| triangle(n, THREE, "0..i", ["by math", "by sums", "via tma by load", ""]),
            |t| vec![t + 1],
            FEW,
        ),
        form(
            "triangle, loads, roles",
            |n| triangle(n, THREE, "0..i", ["by math", "by sums", "by load", THREADS]),
            |t| vec![t + 1],
            FEW,
        ),
        form("tiles of one output", |n| beside(n, false), |t| vec![5, t + 1], FEW),
        form("tiles of one output, roles", |n| beside(n, true), |t| vec![5, t + 1], FEW),
        form("stored, roles", stored, part, FEW),
    ]
}
