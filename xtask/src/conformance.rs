//! The conformance files on a device, as `device-check` runs them; and the command that writes the files.
//!
//! A kernel that faults takes the driver's context with it, and one that never ends takes the process. So a GPU gets
//! its cases in processes of their own ([`part`]), which tell the end of each case in a line; if one falls silent or
//! dies, its case is wrong and another process goes on after it.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tilewright::__private::{TextLaunch, TextParameter, run_text};
use tilewright::{Device, Error};
use tilewright_conformance::file::{Family, Param, Passed};
use tilewright_conformance::machine::{Emulator, Machine, Outcome, Run, Table};
use tilewright_conformance::questions::QUESTIONS;
use tilewright_ptx::{Target, parse};

use crate::{Failure, cargo, run};

/// The family that stands for the questions.
const ASKED: &str = "questions";

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the files.
    pub folder: PathBuf,
    /// Seconds after which a process that says nothing is ended.
    pub patience: u64,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Survey {
    /// For a reader: the table, what is wrong, what was not tried, the answers.
    pub text: String,
    /// The same for programs.
    pub json: Value,
    /// Cases that are wrong.
    pub failures: usize,
}

/// Writes the files: the tests that compare them do.
///
/// # Errors
/// They cannot be built, or a file cannot be written.
pub fn write() -> Result<(), Failure> {
    let tests = ["test", "--quiet", "-p", "tilewright-emulator-tests", "--test", "oracle", "--test", "rows"];
    run(cargo().args(tests).arg("conformance_files_are_current").env("TILEWRIGHT_BLESS", "1"))
}

/// A GPU, through the runtime.
struct Gpu(Device);

impl Machine for Gpu {
    fn run(&mut self, run: &Run<'_>) -> Result<Vec<u8>, String> {
        let mut buffers = [run.x.clone(), run.y.clone()];
        let launch = TextLaunch {
            ptx: run.ptx,
            entry: run.entry,
            blocks: run.blocks,
            threads: run.threads,
            cluster: if run.blocks > 1 { run.blocks } else { 1 },
        };
        let passed = |addresses: &[u64]| {
            let one = |param: &Param| match param.passed(addresses[0], addresses[1])? {
                Passed::Bytes(bytes) => Ok(TextParameter::Bytes(bytes)),
                Passed::Map(map) => Ok(TextParameter::Map(map, run.edits.to_vec())),
            };
            run.params.iter().map(one).collect()
        };
        run_text(&self.0, launch, &mut buffers, passed).map_err(|error| error.to_string())?;
        let [_, y] = buffers;
        Ok(y)
    }
}

/// The GPU of this machine; none if there is none.
fn gpu() -> Result<Option<Device>, Failure> {
    match Device::cuda(0) {
        Ok(device) => Ok(Some(device)),
        Err(Error::NoCuda { .. } | Error::NoDevice { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Why a device of this compute capability does not run a text.
fn too_new(ptx: &str, (major, minor): (u8, u8)) -> Option<String> {
    let target: Target = parse(ptx).ok()?.target;
    let sm = u16::from(major) * 10 + u16::from(minor);
    (!target.runs_on(sm)).then(|| format!("it is for {target}, and the GPU is of compute capability {major}.{minor}"))
}

/// Runs all files and asks all questions: on the GPU, or on the emulator if there is none.
///
/// # Errors
/// The files cannot be read, or processes not be started.
pub fn survey(options: &Options) -> Result<Survey, Failure> {
    let families = Family::all(&options.folder)?;
    if families.is_empty() {
        return Err(format!("{}: there are no conformance files", options.folder.display()));
    }
    let device = gpu()?;
    let (mut table, mut not_tried, mut answers) = (Table::default(), Vec::new(), Vec::new());
    let name = device.as_ref().map_or_else(|| "emulator".to_owned(), Device::name);
    let capability = device.as_ref().and_then(Device::capability);
    for family in &families {
        match capability.map(|capability| too_new(&family.ptx, capability)) {
            None => family.try_on(&mut Emulator::default(), &mut table),
            Some(Some(why)) => not_tried.push(format!("{}: {why}", family.family)),
            Some(None) => {
                let names: Vec<&str> = family.cases.iter().map(|case| case.entry.as_str()).collect();
                for (entry, end) in names.iter().zip(in_parts(options, &family.family, names.len())?) {
                    let outcome = end.and_then(|line| serde_json::from_value(line).map_err(|e| e.to_string()));
                    table.add(&family.family, entry, &outcome.unwrap_or_else(Outcome::Failed));
                }
            }
        }
    }
    let too_new = capability.and_then(|capability| too_new(tilewright_conformance::questions::LOAD, capability));
    match (capability, too_new) {
        (_, Some(why)) => not_tried.push(format!("{ASKED}: {why}")),
        (None, _) => {
            answers.extend(QUESTIONS.iter().map(|question| told(question.ask(&mut Emulator::default()), question)))
        }
        (Some(_), None) => {
            for (question, end) in QUESTIONS.iter().zip(in_parts(options, ASKED, QUESTIONS.len())?) {
                answers.push(end.unwrap_or_else(|why| {
                    json!({ "text": format!("question {}: {}\n    no answer: {why}\n", question.number, question.asks),
                        "row": { "question": question.number, "answer": "none", "seen": why } })
                }));
            }
        }
    }
    let rows: Vec<&Value> = answers.iter().map(|answer| &answer["row"]).collect();
    let mut text = format!("conformance on {name}\n{}", table.text());
    for line in &not_tried {
        text += &format!("not tried  {line}\n");
    }
    for answer in &answers {
        text += &format!("{}    row: {}\n", answer["text"].as_str().unwrap_or_default(), answer["row"]);
    }
    let json = json!({ "device": name, "table": table.json(), "not_tried": not_tried, "answers": rows });
    Ok(Survey { text, json, failures: table.failures() })
}

fn told(
    answer: tilewright_conformance::questions::Answer,
    question: &tilewright_conformance::questions::Question,
) -> Value {
    json!({ "text": answer.text(question), "row": answer.row() })
}

/// What a process that runs cases says of each: its number and a value, in a line.
const SAYS: &str = "case ";

/// Runs cases of a family, or questions, in processes of their own; for each its value, or why there is none.
fn in_parts(options: &Options, family: &str, count: usize) -> Result<Vec<Result<Value, String>>, Failure> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut all: Vec<Result<Value, String>> = Vec::with_capacity(count);
    while all.len() < count {
        let before = all.len();
        let mut child = Command::new(&program)
            .args(["--conformance-part", family, &all.len().to_string()])
            .arg(&options.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (tell, told) = mpsc::channel();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let reader = std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(|line| line.ok()))
            {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let last_words = std::thread::spawn(move || {
            errors.map_or_else(String::new, |errors| std::io::read_to_string(errors).unwrap_or_default())
        });
        let end = loop {
            match told.recv_timeout(Duration::from_secs(options.patience)) {
                Ok(line) => all.extend(
                    line.strip_prefix(SAYS).map(|value| serde_json::from_str(value).map_err(|e| e.to_string())),
                ),
                Err(mpsc::RecvTimeoutError::Disconnected) => break None,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    break Some(format!("it did not end in {} s", options.patience));
                }
            }
        };
        // A process that has ended is none to be ended: that is no error here.
        let _ = child.kill();
        let status = child.wait().map_err(|error| format!("{}: {error}", program.display()))?;
        drop(told);
        let _ = reader.join();
        let words = last_words.join().unwrap_or_default();
        // It ended by itself, after a fault that it has told of, or at the end.
        if end.is_none() && status.success() && all.len() > before {
            continue;
        }
        if all.len() < count {
            let words = words.trim();
            all.push(Err(end.unwrap_or_else(|| format!("the process ended with {status}: {words}"))));
        }
    }
    all.truncate(count);
    Ok(all)
}

/// Runs the cases of a family from a number on and tells the end of each; stops when the device takes no more work.
///
/// # Errors
/// There is no such family or no GPU.
pub fn part(folder: &Path, family: &str, first: usize) -> Result<(), Failure> {
    let device = gpu()?.ok_or("there is no GPU")?;
    let mut gpu = Gpu(device.clone());
    let say = |value: &Value| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{SAYS}{value}").and_then(|()| out.flush()).map_err(|error| error.to_string())
    };
    if family == ASKED {
        for question in QUESTIONS.iter().skip(first) {
            say(&told(question.ask(&mut gpu), question))?;
            if device.synchronize().is_err() {
                return Ok(());
            }
        }
        return Ok(());
    }
    let family = Family::read(folder, family)?;
    for case in family.cases.iter().skip(first) {
        let outcome = case.try_on(&family.ptx, &mut gpu);
        say(&serde_json::to_value(&outcome).map_err(|error| error.to_string())?)?;
        if matches!(outcome, Outcome::Failed(_)) && device.synchronize().is_err() {
            return Ok(());
        }
    }
    Ok(())
}
