//! Random programs whose threads go different ways: nested branches, switches, loops with `break` and `continue`, calls
//! of functions that others are in already or that call themselves, early returns and exits after which the others go
//! on meeting, barriers of the block and of the warp, votes, shuffles and reductions of parts of a warp, lanes that
//! wait for other lanes. What they compute is compared with an interpreter of the program's structure, for several
//! seeds and numbers of host threads, and nothing may be found in them.
//!
//! `TILEWRIGHT_DIVERGENCE=FIRST,COUNT cargo test --release --test machine divergence::`
//! runs a campaign.

mod emit;
mod generate;
mod interpret;

use crate::common::Bench;
use tilewright_emulator::Program;

/// Registers of a thread that programs compute with.
const REGISTERS: usize = 4;

/// Which threads a condition is true for.
#[derive(Clone, Copy, Debug)]
enum Condition {
    /// By the lane: a bit of a constant.
    Lane(u32),
    /// By the block: whether its number has this bit.
    Block(u32),
    /// By data: whether these bits of a register are not zero.
    Data(usize, u32),
}

/// How often a loop runs.
#[derive(Clone, Copy, Debug)]
enum Trips {
    Always(u32),
    /// These bits of a register, as they are when the loop starts.
    Data(usize, u32),
}

/// A warp operation by the lanes of a mask.
#[derive(Clone, Copy, Debug)]
enum Collective {
    Ballot,
    All,
    Any,
    Uniform,
    MatchAny,
    MatchAll,
    /// `redux.sync` with this word.
    Reduce(&'static str),
    /// From this lane.
    From(u32),
    Elect,
    /// `shfl.sync` with mode, amount and control: whole warps only.
    Shuffle(&'static str, u32, u32),
}

/// How a branch is laid out.
#[derive(Clone, Copy, Debug)]
enum Layout {
    ThenFirst,
    ElseFirst,
    /// The first arm stands after the end of the kernel.
    OutOfLine,
}

#[derive(Clone, Debug)]
enum Statement {
    /// `d = a op b` or a constant.
    Compute(&'static str, usize, usize, Result<usize, u32>),
    If(Condition, Vec<Statement>, Vec<Statement>, Layout),
    /// By the two lowest bits of a register.
    Switch(usize, [Vec<Statement>; 4]),
    Loop(Trips, Vec<Statement>),
    Break(Condition),
    Continue(Condition),
    Exit(Condition),
    /// Early return of the function.
    Return(Condition),
    /// Calls the function of this number, which calls itself as often again as the two lowest bits of the register say,
    /// if one is given.
    Call(usize, Option<usize>),
    /// Adds one: whether this lane is active, and none but these.
    Active(usize, u32),
    /// By the lanes of the masks, which are disjoint and together are here: destination, source.
    Collective(Collective, usize, usize, [u32; 2]),
    WarpBarrier(u32),
    /// These lanes wait until one of the others has written the word of this number.
    Wait(u32, u32),
    /// With the number of threads, whole warps counted, or without: as long as nobody has exited.
    Barrier(bool),
    /// `bar.red.popc` of a register's lowest bit.
    Count(usize, usize, bool),
    /// A register of the thread whose number differs in these bits, through shared memory.
    Exchange(usize, usize, u32),
}

/// A device function: what it does before it calls itself, and after.
#[derive(Clone, Debug, Default)]
struct Function {
    before: Vec<Statement>,
    after: Vec<Statement>,
}

/// A program and its launch.
#[derive(Clone, Debug)]
struct Case {
    body: Vec<Statement>,
    functions: Vec<Function>,
    grid: u32,
    block: u32,
}

/// Runs the program of a number; of one that fails, tells of the shortest start that fails.
fn check(number: u64) -> Result<(), String> {
    let whole = generate::case(number);
    let Err(mistake) = compare(&whole, number) else { return Ok(()) };
    let starts = (1..whole.body.len()).map(|length| Case { body: whole.body[..length].to_vec(), ..whole.clone() });
    Err(starts.filter_map(|case| compare(&case, number).err()).next().unwrap_or(mistake))
}

fn compare(case: &Case, number: u64) -> Result<(), String> {
    let text = emit::module(case);
    let expected = interpret::run(case);
    let program = Program::parse(&text).map_err(|error| format!("{error}\n{text}"))?;
    let mut first = None;
    for (seed, threads, baseline) in [(0, 1, false), (0, 3, true), (1, 2, false), (number, 1, true)] {
        let mut bench = Bench::new(case.grid, case.block);
        let out = bench.empty("out", expected.len());
        (bench.options.seed, bench.options.threads, bench.options.baseline) = (seed, Some(threads), baseline);
        let report = program
            .launch(&bench.launch(), &bench.memory, &bench.options)
            .map_err(|error| format!("{error}\n{text}"))?;
        if !report.findings.is_empty() {
            return Err(format!("seed {seed}, {threads} threads: {report}\n{text}"));
        }
        let got = bench.words(out, expected.len());
        if let Some(at) = (0..got.len()).find(|at| got[*at] != expected[*at]) {
            let (thread, register) = (at / REGISTERS, at % REGISTERS);
            return Err(format!(
                "seed {seed}, {threads} threads: register {register} of thread {thread} is {:#x}, the interpreter has {:#x}\n{text}",
                got[at], expected[at]
            ));
        }
        if seed == 0 {
            let counters = format!("{:?}", report.counters);
            if *first.get_or_insert(counters.clone()) != counters {
                return Err(format!("the counters depend on the number of host threads\n{text}"));
            }
        }
    }
    Ok(())
}

#[test]
fn random_ways_through_programs() {
    let (first, count) = match std::env::var("TILEWRIGHT_DIVERGENCE") {
        Ok(text) => {
            let (first, count) = text.split_once(',').expect("FIRST,COUNT");
            (first.parse().expect("a number"), count.parse().expect("a number"))
        }
        Err(_) => (0, 300u64),
    };
    for number in first..first + count {
        if let Err(mistake) = check(number) {
            panic!("program {number}: {mistake}");
        }
    }
}

/// Otherwise the test could pass without the constructs it is about.
#[test]
fn programs_have_everything() {
    let all: String = (0..300).map(|number| emit::module(&generate::case(number))).collect();
    let words = [
        "brx.idx",
        "bar.warp.sync",
        "bar.sync",
        "bar.red.popc",
        "vote.sync.ballot",
        "vote.sync.uni",
        "match.any.sync",
        "match.all.sync",
        "redux.sync.add",
        "redux.sync.max.s32",
        "shfl.sync.up",
        "shfl.sync.down",
        "shfl.sync.bfly",
        "shfl.sync.idx",
        "ld.volatile.shared",
        "exit;",
        "elect.sync",
        "activemask",
        "call (",
        ".callprototype",
        "bar.sync 0, ",
        "bar.red.popc.u32 %r0, 0, 64",
    ];
    for word in words {
        assert!(all.contains(word), "no program has `{word}`");
    }
}
