//! Every barrier, fence, wait, commit and byte count that staged copies and rings derive is needed: without any one of
//! them, or with a wrong one, the emulator reports a finding, does not end, or gives another result, under some seed.
//! None is redundant, none would be missed.

use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions, schedule};
use tilewright_cli::trial::Trial;

schedule! {
    /// Loads that run ahead and a store that lags behind.
    pub kernel Fused(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N])
    where N % 4 == 0
    {
        z[i, j] = x[i, j] + y[i, j];
        launch threads(64);
        schedule z {
            split i by 4 -> io, ii;
            split j by 32 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io: grid;
            split ii by 2 -> ir, iw;
            merge iw, ji -> t;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at z.jo ring(3) via tma { box i by 4 -> ic, ib; box j by 32 -> jc, jb; }
        stage ys[i, j] = y in shared at z.jo via tma { box i by 4 -> ic, ib; box j by 32 -> jc, jb; }
        stage zs[i, j] = z in shared at z.jo ring(2) via tma { box i by 4 -> ic, ib; box j by 32 -> jc, jb; }
    }

    /// A ring that is entered again.
    pub kernel Columns(x: f32[K, M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[m] = sum(|k| x[k, m]);
        launch threads(64);
        schedule y {
            split m by 64 -> mo, mi;
            split mo by 4 -> mg, ms;
            split k by 2 -> ko, ki;
            reorder mg, ms, ko, mi, ki;
            bind mg: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko ring(2) via tma { box k by 2 -> kc, kb; box m by 64 -> mc, mb; }
    }

    /// A store with one buffer, in a loop.
    pub kernel Stored(x: f32[M, 64]) -> (y: f32[M, 64])
    {
        y[i, j] = x[i, j] + 1.0;
        launch threads(64);
        schedule y { split i by 8 -> io, ii; split ii by 2 -> ir, iq; reorder io, ir, iq, j; bind io: grid; bind j: thread; }
        stage ys[i, j] = y in shared at y.ir via tma { box i by 2 -> ic, ib; box j by 32 -> jc, jb; }
    }

    /// Loads without a ring, in a loop and before it.
    pub kernel Plain(x: f32[M, 64], w: f32[64]) -> (y: f32[M, 64])
    {
        y[i, j] = x[i, j] * w[63 - j];
        launch threads(64);
        schedule y { split i by 8 -> io, ii; split ii by 2 -> ir, iq; reorder io, ir, iq, j; bind io: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ir via tma { box i by 2 -> ic, ib; box j by 64 -> jc, jb; }
    }
}

schedule! {
    /// Copies by runs, which take no map: a ring, a copy before it, and a store that lags behind.
    pub kernel Runs(x: f32[M, 64], w: f32[64]) -> (y: f32[M, 64])
    where M % 8 == 0
    {
        y[i, j] = x[i, j] * w[63 - j];
        launch threads(64);
        schedule y { split i by 8 -> io, ir; reorder io, ir, j; bind io: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ir ring(3) via tma { }
        stage ws[j] = w in shared at y.io via tma { }
        stage ys[i, j] = y in shared at y.ir ring(2) via tma { }
    }

    /// So many tiles that loops start them.
    pub kernel Looped(x: f32[K, M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y { split m by 32 -> mo, mi; split k by 24 -> ko, ki; reorder mo, ko, mi, ki; bind mo: grid; bind mi: thread; }
        stage xs[k, m] = x in shared at y.ko via tma { box k by 1 -> kc, kb; box m by 32 -> mc, mb; }
    }
}

schedule! {
    /// A ring that a stage in the loop reads, halo included, and a result that it holds for the next barrier.
    pub kernel Halo(x: f32[H, W]) -> (y: f32[H - 2, W])
    where W % 4 == 0, H >= 3
    {
        b[i, j] = x[i, j] + x[i + 1, j];
        y[i, j] = b[i, j] * b[i + 1, j];
        launch threads(64);
        schedule y {
            split i by 4 -> io, ii;
            split j by 32 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io: grid;
            split ii by 2 -> ir, iw;
            merge iw, ji -> t;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at y.jo ring(2) via tma { box j by 32 -> jc, jb; }
        schedule b in shared at y.jo { merge i, j -> p; split p by 64 -> pr, t; bind t: thread; }
    }

    /// A copy in a loop of a stage that stands in a loop.
    pub kernel Terms(x: f32[M, K]) -> (y: f32[M, 32])
    where K % 4 == 0
    {
        s[i] = sum(|k| x[i, k]);
        y[i, j] = s[i] * (j as f32);
        launch threads(32);
        schedule y { split i by 8 -> io, ii; split ii by 2 -> ir, is; bind io: grid; bind j: thread; unroll is; }
        schedule s in registers at y.ir { split k by 32 -> ko, t; reorder ko, i, t; bind t: thread; reduce t; }
        stage xs[i, k] = x in shared at s.ko via tma { box k by 32 -> kc, kb; }
    }
}

schedule! {
    /// Copies by threads that run ahead, two of them in step.
    pub kernel Fetched(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N])
    {
        z[i, j] = x[i, N - 1 - j] * y[i, N - 1 - j];
        launch threads(64);
        schedule z {
            split i by 8 -> io, ik;
            split j by 64 -> jo, ji;
            reorder io, jo, ik, ji;
            bind io, jo: grid;
            bind ji: thread;
        }
        stage xs[i, j] = x in shared at z.ik ring(3) via cp_async { bind j: thread; }
        stage ys[i, j] = y in shared at z.ik ring(3) via cp_async { bind j: thread; }
    }

    /// A copy by threads without a ring, and stages that take buffers in turn, with and without a copy before
    /// them.
    pub kernel Turns(x: f32[M, N], w: f32[N]) -> (z: f32[M, N - 1])
    where N >= 2
    {
        p[i, j] = x[i, j] * 2.0;
        z[i, j] = p[i, j] + p[i, j + 1] * w[N - 1 - j];
        launch threads(64);
        schedule z {
            split j by 64 -> jo, ji;
            bind i: grid;
            bind ji: thread;
        }
        stage ws[j] = w in shared at z.jo via cp_async { split j by 64 -> r, t; bind t: thread; }
        schedule p in shared at z.jo ring(2) { split j by 64 -> r, t; bind t: thread; }
    }
}

/// What is done to a line, and its name.
type Change = (&'static str, fn(&str) -> Option<String>);

/// Mistakes in one line.
const MISTAKES: &[Change] = &[
    ("no barrier", |line| (line.contains("bar.sync") || line.contains("bar.warp.sync")).then(String::new)),
    ("a barrier of the warp", |line| line.contains("bar.sync 0").then(|| "bar.warp.sync 0xffffffff;".to_owned())),
    ("no proxy fence", |line| line.contains("fence.proxy.async").then(String::new)),
    ("no wait for reads", |line| line.contains("wait_group.read").then(String::new)),
    ("no commit", |line| line.contains("commit_group").then(String::new)),
    ("one group too many pending", |line| pending(line, "wait_group.read")),
    ("no wait for fetches", |line| line.contains("cp.async.wait_group").then(String::new)),
    ("one more fetch pending", |line| pending(line, "cp.async.wait_group")),
    ("no fetch", |line| line.contains(".shared.global [").then(String::new)),
    ("no wait for bytes", |line| {
        // What is waited for has come already: another phase.
        let (before, parity) = line.contains("try_wait").then(|| line.rsplit_once(", "))??;
        parity
            .contains('%')
            .then(|| format!("{before}, 1;"))
            .or_else(|| parity.starts_with('0').then(|| format!("{before}, 1;")))
    }),
    ("the other phase", |line| {
        let (before, parity) = line.contains("try_wait").then(|| line.rsplit_once(", "))??;
        let parity = parity.trim_end_matches(';');
        let flipped = format!("xor.b32 %flipped, {parity}, 1;");
        Some(format!("{{ .reg .b32 %flipped; {flipped} {before}, %flipped; }}"))
    }),
    ("a wait that acquires nothing", |line| {
        line.contains("try_wait.parity").then(|| line.replace("try_wait.parity", "try_wait.parity.relaxed.cta"))
    }),
    ("too many bytes", |line| bytes(line, 16)),
    ("too few bytes", |line| bytes(line, -16)),
    ("no arrival", |line| line.contains("expect_tx").then(String::new)),
    ("no copy", |line| is_copy(line).then(String::new)),
    ("a longer run", |line| run(line, 16)),
    ("a shorter run", |line| run(line, -16)),
];

/// The line with a wait of that kind for one group less.
fn pending(line: &str, kind: &str) -> Option<String> {
    let (before, pending) = line.contains(kind).then(|| line.rsplit_once(' '))??;
    let pending: u32 = pending.trim_end_matches(';').parse().ok()?;
    Some(format!("{before} {};", pending + 1))
}

/// Whether a line starts a copy, by a map or by addresses.
fn is_copy(line: &str) -> bool {
    ["tensor.", "shared::", "global."].iter().any(|kind| line.contains(&format!("cp.async.bulk.{kind}")))
}

/// The line with another number of bytes of a run: the third operand.
fn run(line: &str, more: i64) -> Option<String> {
    let operands = line.split(", ").collect::<Vec<_>>();
    let count: i64 = is_copy(line).then(|| operands.get(2)?.trim_end_matches(';').parse().ok())??;
    let end = if operands.len() == 3 { ";".to_owned() } else { format!(", {}", operands[3..].join(", ")) };
    Some(format!("{}, {}{end}", operands[..2].join(", "), count + more))
}

/// The line with another number of expected bytes.
fn bytes(line: &str, more: i64) -> Option<String> {
    let (before, count) = line.contains("expect_tx").then(|| line.rsplit_once(", "))??;
    let count: i64 = count.trim_end_matches(';').parse().ok()?;
    Some(format!("{before}, {};", count + more))
}

/// Whether a launch on some seed goes wrong.
fn noticed(info: &KernelInfo, dims: &[i64], seeds: u64) -> bool {
    (0..seeds).any(|seed| {
        let options = EmulatorOptions::default().seed(seed).budget(2_000_000);
        let device = Device::emulator(options);
        let trial = Trial::new(info, dims, 7, &device).expect("the sizes are right");
        !trial.run(&device).is_good()
    })
}

/// Every mistake in every line of the entry point with tensor maps is noticed; how many there were.
fn all_noticed(info: &KernelInfo, dims: &[i64]) -> usize {
    assert!(!noticed(info, dims, 8), "{} is right", info.name);
    let text = info.ptx.text.to_string();
    let lines: Vec<&str> = text.lines().collect();
    // The entry point with copies comes first.
    let is_entry = |line: &&str| line.contains(".entry");
    let second = lines.iter().enumerate().filter(|(_, line)| is_entry(line)).nth(1);
    let end = second.map_or(lines.len(), |(at, _)| at);
    let mut tried = 0;
    let mut first_fence = true;
    for (at, line) in lines[..end].iter().enumerate() {
        // A barrier is made ready under this one; that it must be is known of other architectures only.
        if line.contains("fence.proxy.async") && std::mem::replace(&mut first_fence, false) {
            continue;
        }
        for (name, change) in MISTAKES {
            let Some(changed) = change(line) else { continue };
            let mut mutant = lines.clone();
            mutant[at] = &changed;
            let mut info = info.clone();
            let mut text_of = mutant.join("\n");
            if changed.contains(".relaxed") {
                // That is newer.
                text_of = text_of.replacen(".version 8.0", ".version 8.6", 1);
            }
            // Nothing is noticed of it that any text has.
            let module = tilewright_ptx::parse(&text_of).unwrap_or_else(|e| panic!("{name}: {e}: {changed}"));
            tilewright_ptx::verify(&module).unwrap_or_else(|e| panic!("{name}: {e:?}: {changed}"));
            info.ptx.text = text_of.into();
            assert!(noticed(&info, dims, 16), "{}, line {}: {name}: {line}\n{text}", info.name, at + 1);
            tried += 1;
        }
    }
    tried
}

#[test]
fn nothing_is_redundant_around_rings() {
    assert!(all_noticed(Fused::KERNEL, &[4, 224]) >= 20);
}

#[test]
fn nothing_is_redundant_in_nested_loops() {
    assert!(all_noticed(Columns::KERNEL, &[8, 512]) >= 15);
}

#[test]
fn nothing_is_redundant_around_runs() {
    assert!(Runs::KERNEL.maps.is_empty());
    assert!(all_noticed(Runs::KERNEL, &[16, 64]) >= 40);
}

#[test]
fn nothing_is_redundant_where_loops_count_tiles() {
    assert!(all_noticed(Looped::KERNEL, &[48, 64]) >= 6);
}

#[test]
fn nothing_is_redundant_where_threads_copy() {
    assert!(all_noticed(Fetched::KERNEL, &[16, 64]) >= 12);
    assert!(all_noticed(Turns::KERNEL, &[2, 322]) >= 6);
}

#[test]
fn nothing_is_redundant_where_inner_stages_read() {
    assert!(all_noticed(Halo::KERNEL, &[6, 96]) >= 10);
    assert!(all_noticed(Terms::KERNEL, &[8, 64]) >= 6);
}

#[test]
fn nothing_is_redundant_around_single_buffers() {
    assert!(all_noticed(Plain::KERNEL, &[8]) >= 6);
    assert!(all_noticed(Stored::KERNEL, &[16]) >= 6);
}
