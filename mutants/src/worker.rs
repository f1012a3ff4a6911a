//! One process for each mutant, so that what ends or hangs it, or takes all memory, ends nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use tilewright_campaign::rng::Rng;

use crate::Failure;
use crate::corpus::{Case, Made, mark};
use crate::judge::{self, Net};
use crate::report::Judged;
use crate::tree::{Mutant, squeezed};

/// Longest time for one mutant.
const TIME: Duration = Duration::from_secs(150);
/// Cases take no longer than this to compile.
const COMPILE: Duration = Duration::from_millis(400);
/// Address space of one process, in KiB.
const MEMORY: u32 = 6 << 20;
/// Cases with other code of which nobody notices anything, until a mutant counts as silent.
const SILENT: usize = 8;
/// How many times as much is tried of one that nobody noticed at first.
const AGAIN: usize = 5;

/// The numbers of a sample of mutants, chosen by what they are: a change of the compiler elsewhere leaves it as it is.
/// `count` 0 takes all of them.
pub fn sample(keys: &[String], count: usize, seed: u64) -> BTreeSet<u32> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    let mut drawn: Vec<(u64, u32)> = Vec::with_capacity(keys.len());
    for (number, key) in keys.iter().enumerate() {
        let again = times.entry(key).or_default();
        // FNV-1a (Fowler, Noll, Vo), mixed once more: the hash of the standard library may differ in its next release,
        // and with it what has explanations.
        let hash =
            key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        drawn.push((Rng::of_case(seed ^ hash, *again).bits(), number as u32));
        *again += 1;
    }
    drawn.sort_unstable();
    let count = if count == 0 { keys.len() } else { count };
    drawn.into_iter().take(count).map(|(_, number)| number).collect()
}

/// In the changed copy, with nothing on: prints the mark of a case that is accepted, and the microseconds that it took.
///
/// # Errors
/// It is no case.
pub fn baseline(case: &str, root: &Path) -> Result<(), Failure> {
    let case: Case = case.parse()?;
    let start = Instant::now();
    if let Made::Kernels(kernels) = case.made(root)? {
        println!("{} {}", mark(&kernels), start.elapsed().as_micros());
    }
    Ok(())
}

/// In the changed copy, with a mutant on: prints what is noticed first in the cases of a file, which holds marks and
/// cases, a line each; `silent` cases with other code are looked at.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn judge(path: &Path, silent: usize, root: &Path) -> Result<(), Failure> {
    std::panic::set_hook(Box::new(|_| {}));
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let told = |net: Net, detail: &str| println!("{net} {}", squeezed(detail).chars().take(400).collect::<String>());
    let mut other = Vec::new();
    for line in text.lines() {
        let (expected, case) = line.split_once(' ').ok_or_else(|| format!("no case: {line}"))?;
        let (expected, case): (u64, Case) = (expected.parse().map_err(|_| format!("no mark: {line}"))?, case.parse()?);
        println!("at {case}");
        match judge::compiled(&case, root, expected) {
            Ok(None) => {}
            Ok(Some(kernels)) => other.push((case, kernels)),
            Err((net, detail)) => {
                told(net, &detail);
                return Ok(());
            }
        }
    }
    for (case, kernels) in other.iter().take(silent) {
        println!("at {case}");
        if let Some((net, detail)) = judge::looked(case, kernels) {
            told(net, &detail);
            return Ok(());
        }
    }
    let cases: Vec<String> = other.iter().map(|o| o.0.to_string()).collect();
    told(if other.is_empty() { Net::Same } else { Net::Silent }, &cases.join(", "));
    Ok(())
}

/// An accepted case of the unchanged compiler.
#[derive(Clone, Debug)]
struct Known {
    case: Case,
    mark: u64,
    took: Duration,
    /// Mutants that its compilation comes to.
    reached: BTreeSet<u32>,
}

/// How mutants are tried.
#[derive(Clone, Debug)]
pub struct Plan {
    /// This program, of the changed copy.
    pub program: PathBuf,
    /// Where files go.
    pub at: PathBuf,
    /// Cases for one mutant.
    pub cases: usize,
}

impl Plan {
    /// Tries all mutants.
    ///
    /// # Errors
    /// A process cannot be started, or what it says is not understood.
    pub fn all(&self, cases: &[Case], mutants: impl Iterator<Item = Mutant>) -> Result<Vec<Judged>, Failure> {
        let known: Vec<Option<Known>> =
            cases.par_iter().enumerate().map(|(n, case)| self.known(n, case)).collect::<Result<_, _>>()?;
        let mut known: Vec<Known> = known.into_iter().flatten().filter(|k| k.took < COMPILE).collect();
        known.sort_by_key(|k| k.took);
        eprintln!("{} of {} cases are accepted, and quickly", known.len(), cases.len());
        if known.is_empty() {
            return Err("nothing to try mutants on".to_owned());
        }
        let (done, sound) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let mutants: Vec<Mutant> = mutants.collect();
        let judged = mutants.par_iter().map(|mutant| {
            let judged = self.one(&known, mutant, &sound, 1).and_then(|judged| match judged.net {
                Net::Silent | Net::Same => self.one(&known, mutant, &sound, AGAIN),
                _ => Ok(judged),
            });
            // A long run tells what it has when it is ended early.
            if let Ok(judged) = &judged {
                eprintln!("{} {}", judged.net, judged.mutant.key());
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(50) {
                eprintln!("{done} of {}", mutants.len());
            }
            judged
        });
        judged.collect()
    }

    fn process(&self, mutant: Option<u32>, task: &str, argument: &str) -> Command {
        let mut process = Command::new("sh");
        let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
        process.args(["-c", &limited]).arg(&self.program).args([task, argument]).env("RAYON_NUM_THREADS", "1");
        process.stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(number) = mutant {
            process.env("TILEWRIGHT_MUTANT", number.to_string());
        }
        process
    }

    fn known(&self, n: usize, case: &Case) -> Result<Option<Known>, Failure> {
        let path = self.at.join(format!("reached-{n}.txt"));
        // One of an earlier run would be taken for that of this one.
        let _ = std::fs::remove_file(&path);
        let mut process = self.process(None, "baseline", &case.to_string());
        process.env("TILEWRIGHT_REACHED", &path);
        let (text, _) = ended(&mut process)?;
        let Some((mark, took)) = text.trim().split_once(' ') else { return Ok(None) };
        let wrong = || format!("{case}: not understood: {text}");
        // A compilation that comes to none of the mutants writes no file.
        let reached = match std::fs::read_to_string(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|e| format!("{}: {e}", path.display()))?,
        };
        let took = Duration::from_micros(took.parse().map_err(|_| wrong())?);
        let mark = mark.parse().map_err(|_| wrong())?;
        Ok(Some(Known { case: case.clone(), mark, took, reached: reached.lines().flat_map(str::parse).collect() }))
    }

    /// The judgement of one process: the net, what it said, and the case that it was at.
    fn judgement(
        &self,
        name: &str,
        mutant: Option<u32>,
        cases: &[(u64, &Case)],
        silent: usize,
    ) -> Result<(Net, String, String), Failure> {
        let path = self.at.join(format!("cases-{name}.txt"));
        let mut file = std::fs::File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        for (mark, case) in cases {
            writeln!(file, "{mark} {case}").map_err(|e| format!("{}: {e}", path.display()))?;
        }
        drop(file);
        let mut process = self.process(mutant, "judge", &path.to_string_lossy());
        let (text, how) = ended(process.arg(silent.to_string()))?;
        let _ = std::fs::remove_file(&path);
        let at = text.lines().rev().find_map(|line| line.strip_prefix("at ")).unwrap_or_default().to_owned();
        let last = text.lines().last().and_then(|line| line.split_once(' '));
        match last.and_then(|(net, detail)| Some((net.parse().ok()?, detail))) {
            Some((net, detail)) => Ok((net, detail.to_owned(), at)),
            None => Ok((Net::Crash, how, at)),
        }
    }

    fn one(
        &self,
        known: &[Known],
        mutant: &Mutant,
        sound: &Mutex<BTreeMap<Case, bool>>,
        times: usize,
    ) -> Result<Judged, Failure> {
        let reached: Vec<&Known> = known.iter().filter(|k| k.reached.contains(&mutant.number)).collect();
        // The cheapest ones, and others from all over.
        let most = times * self.cases;
        let (cheap, rest) = reached.split_at(reached.len().min(most / 2));
        let step = (rest.len() / (most - most / 2).max(1)).max(1);
        let mut chosen: Vec<&Known> = cheap.iter().chain(rest.iter().step_by(step)).copied().collect();
        chosen.truncate(most);
        loop {
            let cases: Vec<(u64, &Case)> = chosen.iter().map(|k| (k.mark, &k.case)).collect();
            let (net, detail, at) =
                self.judgement(&mutant.number.to_string(), Some(mutant.number), &cases, times * SILENT)?;
            let judged = |detail: String| Judged { mutant: mutant.clone(), net, detail };
            if !matches!(net, Net::Crash | Net::Values | Net::Indices | Net::Paths | Net::Emulator | Net::Result) {
                return Ok(judged(format!("{at}: {detail}")));
            }
            // Of what the unchanged compiler makes, nobody may say the same.
            let Some(case) = chosen.iter().map(|k| &k.case).find(|case| case.to_string() == at) else {
                return Ok(judged(detail));
            };
            let lock = || sound.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let is_sound = lock().get(case).copied();
            let is_sound = match is_sound {
                Some(is_sound) => is_sound,
                None => {
                    let (net, detail, _) =
                        self.judgement(&format!("{}-sound", mutant.number), None, &[(0, case)], 1)?;
                    if net != Net::Silent {
                        eprintln!("{case} is left out: {net} {detail}");
                    }
                    lock().insert(case.clone(), net == Net::Silent);
                    net == Net::Silent
                }
            };
            if is_sound {
                return Ok(judged(format!("{at}: {detail}")));
            }
            let case = case.clone();
            chosen.retain(|k| k.case != case);
        }
    }
}

/// What a process says until it ends, and how it ended; after [`TIME`] it is ended.
fn ended(process: &mut Command) -> Result<(String, String), Failure> {
    let mut child = process.spawn().map_err(|e| format!("{process:?}: {e}"))?;
    let mut output = child.stdout.take().ok_or("no output")?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let start = Instant::now();
    let how = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.to_string(),
            Ok(None) if start.elapsed() > TIME => {
                let _ = child.kill();
                let _ = child.wait();
                break format!("does not end within {} s", TIME.as_secs());
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.to_string()),
        }
    };
    Ok((reader.join().unwrap_or_default(), how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_what_mutants_are() {
        let keys: Vec<String> = (0..100).map(|n| format!("lower/x.rs | a{} => b", n % 90)).collect();
        let of = |keys: &[String], seed: u64| -> BTreeSet<String> {
            sample(keys, 40, seed).into_iter().map(|n| keys[n as usize].clone()).collect()
        };
        assert_eq!(sample(&keys, 0, 1).len(), 100);
        assert_eq!(sample(&keys, 40, 1).len(), 40);
        assert_ne!(of(&keys, 1), of(&keys, 2));
        let moved: Vec<String> = keys.iter().rev().cloned().collect();
        assert_eq!(of(&keys, 1), of(&moved, 1));
    }

    #[test]
    fn what_a_process_says_is_read_to_its_end() {
        let run = |text: &str| {
            let mut process = Command::new("sh");
            process.args(["-c", text]).stdout(Stdio::piped());
            ended(&mut process).expect("it starts")
        };
        assert_eq!(run("echo one; echo two").0, "one\ntwo\n");
        assert!(run("echo one; kill -ABRT $$").1.contains("signal"));
    }
}
