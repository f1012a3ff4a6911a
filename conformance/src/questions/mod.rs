//! What no public text says of Hopper's tensor memory accelerator: experiments, and what their answers decide.
//!
//! Each question has what is assumed until it is answered, and the places of this repository that rest on that or
//! refuse because of it. An experiment launches one of three small programs (`questions/*.ptx`) with maps that a
//! GPU's own driver encodes, and compares what came out with each thing that the hardware might do. The answer is one
//! of a few names, so that programs can go by it, and a sentence.
//!
//! On the emulator an experiment shows what the emulator assumes, or that it refuses; `tests/questions.rs` holds both.

mod experiments;

use serde_json::{Value, json};

use crate::file::{Map, Param};
use crate::machine::{Machine, Run};

/// The program that loads a tile.
pub const LOAD: &str = include_str!("../../questions/load.ptx");
/// The program that stores one.
pub const STORE: &str = include_str!("../../questions/store.ptx");
/// The program that adds one to what is there.
pub const REDUCE: &str = include_str!("../../questions/reduce.ptx");

/// Bytes of shared memory that the programs show or fill.
pub const TILE: usize = 4096;
/// What every byte of shared memory, and of a tensor that is written, was before.
const BEFORE: u8 = 0xa5;

/// A place that rests on what is assumed, or refuses because nothing is known.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The file, from the root of the repository.
    pub file: &'static str,
    /// What stands there, literally.
    pub symbol: &'static str,
    /// Answers with which it may change, by name; with all others it stays.
    pub when: &'static [&'static str],
    /// What changes then.
    pub change: &'static str,
}

/// A question.
#[derive(Clone, Copy)]
pub struct Question {
    /// Its number, from 1.
    pub number: u32,
    /// What is asked.
    pub asks: &'static str,
    /// What is assumed until it is answered.
    pub assumed: &'static str,
    /// The name of the answer that this would be.
    pub expected: &'static str,
    /// What the answer decides.
    pub places: &'static [Place],
    /// The experiment.
    experiment: fn(&mut Lab<'_>) -> Found,
}

/// What an experiment found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// One of a few names.
    pub name: &'static str,
    /// A sentence or two.
    pub words: String,
    /// What was seen, for programs.
    pub seen: Value,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The number of the question.
    pub number: u32,
    /// What was found.
    pub found: Found,
    /// What may change with it, as a sentence for each place; or that it stays.
    pub decides: Vec<String>,
}

/// The questions, in order.
pub const QUESTIONS: [Question; 8] = experiments::QUESTIONS;

impl Question {
    /// Runs the experiment.
    pub fn ask(&self, machine: &mut dyn Machine) -> Answer {
        let found = (self.experiment)(&mut Lab { machine, failure: None });
        let decides = self.places.iter().map(|place| {
            let Place { file, symbol, when, change } = place;
            match when.contains(&found.name) {
                true => format!("`{symbol}` in {file}: {change}"),
                false => format!("`{symbol}` in {file} stays; with {} it would change: {change}", when.join(" or ")),
            }
        });
        Answer { number: self.number, decides: decides.collect(), found }
    }
}

impl Answer {
    /// For a reader.
    pub fn text(&self, question: &Question) -> String {
        let mut text = format!(
            "question {}: {}\n    assumed: {}\n    answer: {}: {}\n",
            self.number, question.asks, question.assumed, self.found.name, self.found.words
        );
        for line in &self.decides {
            text += &format!("    {line}\n");
        }
        text
    }

    /// One row for programs.
    pub fn row(&self) -> Value {
        json!({ "question": self.number, "answer": self.found.name, "seen": self.found.seen })
    }
}

/// A machine, and what it said last when it refused.
struct Lab<'a> {
    machine: &'a mut dyn Machine,
    failure: Option<String>,
}

/// What a load left.
struct Loaded {
    /// Whether as many bytes came as were expected.
    complete: bool,
    /// Shared memory from the tile on.
    tile: Vec<u8>,
}

impl Loaded {
    /// The word of 32 bits at a place of the tile.
    fn word(&self, at: usize) -> u32 {
        word(&self.tile, at)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(4 * at..4 * at + 4).and_then(|four| four.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default())
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

impl Lab<'_> {
    fn run(&mut self, run: &Run<'_>) -> Option<Vec<u8>> {
        match self.machine.run(run) {
            Ok(y) => Some(y),
            Err(why) => {
                self.failure = Some(why);
                None
            }
        }
    }

    /// The first line of what the machine said when it refused.
    fn said(&self) -> String {
        self.failure.as_deref().and_then(|text| text.lines().next()).unwrap_or("nothing").to_owned()
    }

    /// Loads the box at some coordinates, expects so many bytes; none if the machine refuses.
    fn load(&mut self, map: &Map, x: Vec<u8>, (column, row): (i32, i32), bytes: u32) -> Option<Loaded> {
        self.load_edited(map, x, (column, row), bytes, &[])
    }

    fn load_edited(
        &mut self,
        map: &Map,
        x: Vec<u8>,
        (column, row): (i32, i32),
        bytes: u32,
        edits: &[(usize, u32)],
    ) -> Option<Loaded> {
        let words = [column as u32, row as u32, bytes].map(Param::Word);
        let params = [vec![Param::X, Param::Y, Param::Map(map.clone())], words.to_vec()].concat();
        let (ptx, entry) = (LOAD, "load");
        let run = Run { ptx, entry, blocks: 1, threads: 32, params: &params, edits, x, y: vec![0; 16 + TILE] };
        let y = self.run(&run)?;
        Some(Loaded { complete: word(&y, 0) == 1, tile: y.get(16..)?.to_vec() })
    }

    /// Runs one of the programs that write the tensor `y` from a tile; what the tensor is then.
    fn write(&mut self, ptx: &str, map: &Map, tile: Vec<u8>, y: Vec<u8>, (column, row): (i32, i32)) -> Option<Vec<u8>> {
        let words = [column as u32, row as u32].map(Param::Word);
        let params = [vec![Param::X, Param::Y, Param::Map(map.clone())], words.to_vec()].concat();
        let entry = if ptx == STORE { "store" } else { "reduce" };
        let x = {
            let mut tile = tile;
            tile.resize(TILE, BEFORE);
            tile
        };
        self.run(&Run { ptx, entry, blocks: 1, threads: 32, params: &params, edits: &[], x, y })
    }
}
