//! What runs a case: the interface, the emulator, and the table of what came out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tilewright_emulator::{Arg, Launch, MatrixModel, Memory, Options, Program};

use crate::file::{Case, Family, Param, Passed};

/// A launch of a kernel over two buffers.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Text of the module.
    pub ptx: &'a str,
    /// The kernel.
    pub entry: &'a str,
    /// Blocks, which are one cluster if they are several.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// What is passed.
    pub params: &'a [Param],
    /// Changes of the bytes of maps after they were encoded: which word of 32 bits, and what is combined with it by
    /// exclusive or.
    pub edits: &'a [(usize, u32)],
    /// Bytes of x.
    pub x: Vec<u8>,
    /// Bytes of y before.
    pub y: Vec<u8>,
}

/// Something that runs PTX.
pub trait Machine {
    /// The bytes of y afterwards.
    ///
    /// # Errors
    /// The module or the launch was refused, or went wrong, in the machine's words.
    fn run(&mut self, run: &Run<'_>) -> Result<Vec<u8>, String>;
}

/// The emulator, with all sanitizers: a finding is an error.
#[derive(Debug, Default)]
pub struct Emulator {
    /// Decides the order of warps.
    seed: u64,
    /// Moves results of approximate instructions within their bounds.
    perturb: Option<u64>,
    /// The module that ran last.
    loaded: Option<(String, Program)>,
}

impl Emulator {
    /// An emulator whose warps run in an order that `seed` decides, and that moves the results of approximate
    /// instructions within their bounds if there is a number for that.
    pub fn new(seed: u64, perturb: Option<u64>) -> Emulator {
        Emulator { seed, perturb, loaded: None }
    }

    fn program(&mut self, ptx: &str) -> Result<&Program, String> {
        if self.loaded.as_ref().is_none_or(|(text, _)| text != ptx) {
            let program = Program::parse(ptx).map_err(|error| error.to_string())?;
            self.loaded = Some((ptx.to_owned(), program));
        }
        self.loaded.as_ref().map(|(_, program)| program).ok_or_else(|| "no program".to_owned())
    }
}

impl Machine for Emulator {
    fn run(&mut self, run: &Run<'_>) -> Result<Vec<u8>, String> {
        let (seed, perturb) = (self.seed, self.perturb);
        let program = self.program(run.ptx)?;
        let told = |error: tilewright_emulator::Error| error.to_string();
        let memory = Memory::new(1 << 27);
        let place = |bytes: &[u8], label: &str| -> Result<u64, String> {
            let address = memory.alloc((bytes.len() as u64).max(16), label).map_err(told)?;
            memory.write(address, bytes).map_err(told)?;
            Ok(address)
        };
        let (x, y) = (place(&run.x, "x")?, place(&run.y, "y")?);
        let arg = |param: &Param| -> Result<Arg, String> {
            Ok(Arg(match param.passed(x, y)? {
                Passed::Bytes(bytes) => bytes,
                Passed::Map(map) => {
                    let mut bytes = map.encode().map_err(|fault| fault.to_string())?.to_vec();
                    edit(&mut bytes, run.edits);
                    bytes
                }
            }))
        };
        let launch = Launch {
            entry: run.entry.to_owned(),
            grid: [run.blocks, 1, 1],
            block: [run.threads, 1, 1],
            cluster: (run.blocks > 1).then_some([run.blocks, 1, 1]),
            args: run.params.iter().map(arg).collect::<Result<_, _>>()?,
            ..Launch::default()
        };
        let options = Options {
            seed,
            perturb,
            threads: Some(1),
            budget: 1 << 22,
            matrix: MatrixModel::Hopper,
            ..Options::default()
        };
        let report = program.launch(&launch, &memory, &options).map_err(told)?;
        if !report.is_clean() {
            return Err(report.to_string());
        }
        let mut bytes = vec![0; run.y.len()];
        memory.read(y, &mut bytes).map_err(told)?;
        Ok(bytes)
    }
}

/// Changes words of a map, as [`Run::edits`] says.
pub fn edit(bytes: &mut [u8], edits: &[(usize, u32)]) {
    for (word, bits) in edits {
        for (byte, change) in bytes.iter_mut().skip(4 * word).zip(bits.to_le_bytes()) {
            *byte ^= change;
        }
    }
}

/// How a case ended.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Outcome {
    /// All results are what they must be: so many of them.
    Right(usize),
    /// Some are not; the first ones in words, and how many.
    Wrong(Vec<String>, usize),
    /// It did not run to its end.
    Failed(String),
}

impl Case {
    /// The launch of the case, in a module.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn launch<'a>(&'a self, ptx: &'a str) -> Result<Run<'a>, String> {
        Ok(Run {
            ptx,
            entry: &self.entry,
            blocks: self.blocks,
            threads: self.threads,
            params: &self.params,
            edits: &[],
            x: self.input()?,
            y: vec![self.before; self.output_bytes()],
        })
    }

    /// Runs the case and judges it.
    pub fn try_on(&self, ptx: &str, machine: &mut dyn Machine) -> Outcome {
        let judged = self.launch(ptx).and_then(|run| machine.run(&run)).and_then(|y| self.judge(&y));
        match judged {
            Err(why) => Outcome::Failed(why),
            Ok(mistakes) if mistakes.is_empty() => Outcome::Right(self.rows.len() * self.y),
            Ok(mistakes) => Outcome::Wrong(mistakes.iter().take(3).map(ToString::to_string).collect(), mistakes.len()),
        }
    }
}

/// The table of families: how many cases and results were right, and what was not.
#[derive(Clone, Default, Debug)]
pub struct Table {
    rows: BTreeMap<String, [usize; 4]>,
    wrong: Vec<String>,
}

impl Table {
    /// Adds the end of a case of a family.
    pub fn add(&mut self, family: &str, entry: &str, outcome: &Outcome) {
        let [cases, results, wrong, failed] = self.rows.entry(family.to_owned()).or_default();
        *cases += 1;
        match outcome {
            Outcome::Right(count) => *results += count,
            Outcome::Wrong(first, count) => {
                *wrong += 1;
                self.wrong.push(format!("WRONG {family} {entry}: {count} results\n    {}", first.join("\n    ")));
            }
            Outcome::Failed(why) => {
                *failed += 1;
                self.wrong.push(format!("WRONG {family} {entry}: {}", why.trim_end().replace('\n', "\n    ")));
            }
        }
    }

    /// Cases that are wrong or failed.
    pub fn failures(&self) -> usize {
        self.rows.values().map(|[_, _, wrong, failed]| wrong + failed).sum()
    }

    /// The table, then what is wrong.
    pub fn text(&self) -> String {
        let mut out = format!("{:<18} {:>6} {:>8} {:>6} {:>7}\n", "family", "cases", "results", "wrong", "failed");
        for (family, [cases, results, wrong, failed]) in &self.rows {
            let _ = writeln!(out, "{family:<18} {cases:>6} {results:>8} {wrong:>6} {failed:>7}");
        }
        for line in &self.wrong {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// The same as data.
    pub fn json(&self) -> serde_json::Value {
        let row = |(family, [cases, results, wrong, failed]): (&String, &[usize; 4])| serde_json::json!({ "family": family, "cases": cases, "results": results, "wrong": wrong, "failed": failed });
        serde_json::json!({ "families": self.rows.iter().map(row).collect::<Vec<_>>(), "mistakes": self.wrong })
    }
}

impl Family {
    /// Runs every case on a machine.
    pub fn try_on(&self, machine: &mut dyn Machine, table: &mut Table) {
        for case in &self.cases {
            table.add(&self.family, &case.entry, &case.try_on(&self.ptx, machine));
        }
    }
}
