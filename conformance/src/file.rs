//! A family: its programs, and for each what it reads and what it must leave.

use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tilewright_kernel::tensor_map::{Dimension, Fill, Format as Element, Promotion, Swizzle, TensorMap};

use crate::want::{Format, Want};

/// Most bytes of a buffer.
const MAX_BYTES: usize = 1 << 24;

/// A family of instructions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its name, which is that of its files.
    pub family: String,
    /// What it asks, for people.
    pub about: String,
    /// Where the expected results come from, for people.
    pub expected: String,
    /// The programs.
    pub cases: Vec<Case>,
    /// The text of the programs, which is a file of its own.
    #[serde(skip)]
    pub ptx: String,
}

/// A kernel, and one launch of it. Buffers are rows of slots; a slot is `slot` bytes, little-endian.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The kernel.
    pub entry: String,
    /// What it shows.
    pub instructions: Vec<String>,
    /// The format of each result of a row; of none, all are bits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    /// Blocks of the grid, which are one cluster if they are several.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// What is passed, in order.
    pub params: Vec<Param>,
    /// Bytes of a slot: 4 or 8.
    pub slot: usize,
    /// Slots of a row of x.
    pub x: usize,
    /// Slots of a row of y.
    pub y: usize,
    /// Every byte of y before the launch.
    pub before: u8,
    /// Whether x has words by a rule ([`mixed`]) and not by rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Of each row what is read and what must be there afterwards: slots, separated by blanks, as [`Want`] spells them.
    /// What is left out at the end of a row is what it was before.
    pub rows: Vec<(String, String)>,
}

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Param {
    /// The address of x, of 8 bytes.
    X,
    /// That of y.
    Y,
    /// A word of 4 bytes.
    Word(u32),
    /// Bytes, in hexadecimal, in the order of their addresses.
    Bytes(String),
    /// A tensor map over a buffer.
    Map(Map),
}

/// A tensor map: what the driver encodes of a buffer. Dimensions begin with the innermost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// `x` or `y`.
    pub of: String,
    /// Bytes from the buffer's first to the tensor's.
    pub offset: u64,
    /// Type of an element: `u8 u16 u32 i32 u64 i64 f16 f32 f64 bf16`.
    pub element: String,
    /// Elements.
    pub sizes: Vec<u64>,
    /// Bytes from an element to its neighbour.
    pub strides: Vec<u64>,
    /// Elements that a box spans.
    pub boxes: Vec<u32>,
    /// Every so manieth element of a box is copied.
    pub steps: Vec<u32>,
    /// Span of the swizzle in bytes, 16 without one.
    pub swizzle: u32,
    /// Whether elements outside of the tensor are NaN and not 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nan: bool,
}

/// A parameter whose addresses are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Passed {
    /// The bytes of the parameter.
    Bytes(Vec<u8>),
    /// A map, to be encoded by whoever runs it.
    Map(TensorMap),
}

impl Param {
    /// The parameter, for buffers at these addresses.
    ///
    /// # Errors
    /// Bytes that are no hexadecimal numbers, and maps that no driver takes.
    pub fn passed(&self, x: u64, y: u64) -> Result<Passed, String> {
        Ok(match self {
            Param::X => Passed::Bytes(x.to_le_bytes().to_vec()),
            Param::Y => Passed::Bytes(y.to_le_bytes().to_vec()),
            Param::Word(word) => Passed::Bytes(word.to_le_bytes().to_vec()),
            Param::Bytes(text) => Passed::Bytes(bytes(text)?),
            Param::Map(map) => Passed::Map(map.over(x, y)?),
        })
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let whole = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let all = whole.then(|| text.as_bytes().chunks(2).map(pair).collect::<Option<Vec<u8>>>()).flatten();
    all.ok_or_else(|| format!("`{text}` are no bytes in hexadecimal"))
}

/// The name of an element's type.
fn name(element: Element) -> String {
    format!("{element:?}").to_lowercase()
}

impl Map {
    /// The description of a map whose address is so many bytes into a buffer.
    pub fn of(map: &TensorMap, buffer: &str, offset: u64) -> Map {
        let of = |pick: &dyn Fn(&Dimension) -> u32| map.dimensions.iter().map(pick).collect::<Vec<_>>();
        Map {
            of: buffer.to_owned(),
            offset,
            element: name(map.format),
            sizes: map.dimensions.iter().map(|d| d.size).collect(),
            strides: map.dimensions.iter().map(|d| d.stride).collect(),
            boxes: of(&|d| d.box_size),
            steps: of(&|d| d.element_stride),
            swizzle: map.swizzle.span(),
            nan: map.fill == Fill::Nan,
        }
    }

    fn over(&self, x: u64, y: u64) -> Result<TensorMap, String> {
        let base = match self.of.as_str() {
            "x" => x,
            "y" => y,
            other => return Err(format!("a map is of `x` or `y`, not of `{other}`")),
        };
        let element = Element::ALL.into_iter().find(|element| name(*element) == self.element);
        let element = element.ok_or_else(|| format!("there is no type `{}` of a map's elements", self.element))?;
        let rank = self.sizes.len();
        if [self.strides.len(), self.boxes.len(), self.steps.len()] != [rank; 3] {
            return Err(format!("a map has {rank} sizes and another number of strides, boxes or steps"));
        }
        let dimension = |at: usize| Dimension {
            size: self.sizes[at],
            stride: self.strides[at],
            box_size: self.boxes[at],
            element_stride: self.steps[at],
        };
        let swizzle = Swizzle::with_span(self.swizzle);
        let map = TensorMap {
            format: element,
            address: base.wrapping_add(self.offset),
            dimensions: (0..rank).map(dimension).collect(),
            swizzle: swizzle.ok_or_else(|| format!("a swizzle spans 16, 32, 64 or 128 bytes, not {}", self.swizzle))?,
            fill: if self.nan { Fill::Nan } else { Fill::Zero },
            promotion: Promotion::None,
        };
        map.check().map_err(|fault| fault.to_string())?;
        Ok(map)
    }
}

/// Word number n of an x that is mixed: what `0x9e3779b9·n + 77` becomes by two rounds of a mixing of its bits, so that
/// words look random and anybody can make them.
pub fn mixed(n: u32) -> u32 {
    let mix = |n: u32| (n ^ n >> 15).wrapping_mul(0x2c1b_3c6d);
    mix(mix(n.wrapping_mul(0x9e37_79b9).wrapping_add(77)))
}

/// A result that is not what it must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Row and slot of y.
    pub place: (usize, usize),
    /// The instruction, if the row has its results in columns.
    pub instruction: String,
    /// What it was given, in hexadecimal; empty if x is mixed.
    pub operands: String,
    /// What must be there, as files spell it.
    pub want: String,
    /// What is.
    pub got: u64,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Mistake { place: (row, slot), instruction, operands, want, got } = self;
        let of = if operands.is_empty() { String::new() } else { format!(" of {operands}") };
        write!(f, "`{instruction}`{of}: row {row}, slot {slot} is {got:x}, not {want}")
    }
}

impl Case {
    /// The bytes of x.
    ///
    /// # Errors
    /// A word that is no hexadecimal number.
    pub fn input(&self) -> Result<Vec<u8>, String> {
        if self.mixed {
            let words = self.rows.len() * self.x * self.slot / 4;
            return Ok((0..words as u32).flat_map(|n| mixed(n).to_le_bytes()).collect());
        }
        let mut all = Vec::with_capacity(self.rows.len() * self.x * self.slot);
        for (row, _) in &self.rows {
            for word in row.split_whitespace() {
                let Want::Bits(bits) = Want::parse(word)? else { return Err(format!("`{word}` is no operand")) };
                all.extend_from_slice(&bits.to_le_bytes()[..self.slot]);
            }
        }
        Ok(all)
    }

    /// Bytes of y.
    pub fn output_bytes(&self) -> usize {
        self.rows.len() * self.y * self.slot
    }

    /// What the slots of y must be, row by row.
    fn wanted(&self) -> Result<Vec<Want>, String> {
        let before = Want::Bits(u64::from_le_bytes([self.before; 8]) >> (64 - 8 * self.slot));
        let mut all = Vec::with_capacity(self.rows.len() * self.y);
        for (_, row) in &self.rows {
            let first = all.len();
            for word in row.split_whitespace() {
                all.push(Want::parse(word)?);
            }
            if all.len() - first > self.y {
                return Err(format!("`{row}` has more than {} results", self.y));
            }
            all.resize(first + self.y, before.clone());
        }
        Ok(all)
    }

    fn format(&self, slot: usize) -> Format {
        self.formats.get(slot).map_or(Format::Bits, |name| Format::named(name))
    }

    /// The instruction that a slot of y shows.
    fn instruction(&self, slot: usize) -> String {
        let each = self.y / self.instructions.len().max(1);
        match self.formats.is_empty() {
            false => self.instructions.get(slot / each.max(1)).cloned().unwrap_or_default(),
            true => self.instructions.join("; "),
        }
    }

    /// Everything that is wrong with y.
    ///
    /// # Errors
    /// A case that [`check`](Self::check) refuses, or y of another size.
    pub fn judge(&self, y: &[u8]) -> Result<Vec<Mistake>, String> {
        let wanted = self.wanted()?;
        if y.len() != wanted.len() * self.slot {
            return Err(format!("y has {} bytes, not {}", y.len(), wanted.len() * self.slot));
        }
        let read = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let all = y.chunks_exact(self.slot).map(read).zip(&wanted).enumerate();
        let wrong = all.filter(|(at, (got, want))| !want.admits(self.format(at % self.y), *got));
        let mistake = |(at, (got, want)): (usize, (u64, &Want))| Mistake {
            place: (at / self.y, at % self.y),
            instruction: self.instruction(at % self.y),
            operands: self.rows[at / self.y].0.clone(),
            want: want.to_string(),
            got,
        };
        Ok(wrong.map(mistake).collect())
    }

    /// For some slots, evenly spread: y as it is given but for that slot, which is next to what is admitted there. For
    /// tests of a judge.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn misses(&self, right: &[u8], some: usize) -> Result<Vec<(usize, Vec<u8>)>, String> {
        let mut all = Vec::new();
        let wanted = self.wanted()?;
        for (at, want) in wanted.iter().enumerate().step_by(wanted.len().div_ceil(some.max(1)).max(1)) {
            let Some(miss) = want.near_misses(self.format(at % self.y)).first().copied() else { continue };
            let mut y = right.to_vec();
            let Some(place) = y.get_mut(at * self.slot..(at + 1) * self.slot) else { continue };
            place.copy_from_slice(&miss.to_le_bytes()[..self.slot]);
            all.push((at, y));
        }
        Ok(all)
    }

    /// Whether the case means something.
    ///
    /// # Errors
    /// What it lacks, in words.
    pub fn check(&self) -> Result<(), String> {
        let told = |what: String| Err(format!("`{}`: {what}", self.entry));
        if ![4, 8].contains(&self.slot) {
            return told(format!("a slot has 4 or 8 bytes, not {}", self.slot));
        }
        if !(1..=1024).contains(&self.threads) || !(1..=16).contains(&self.blocks) {
            return told(format!("{} blocks of {} threads; at most 16 of 1024", self.blocks, self.threads));
        }
        if self.rows.is_empty() || self.y == 0 || self.instructions.is_empty() {
            return told("it has no rows, no results or no instruction".to_owned());
        }
        let bytes = self.rows.len().saturating_mul(self.x.max(self.y)).saturating_mul(self.slot);
        if bytes > MAX_BYTES {
            return told(format!("a buffer has {bytes} bytes; at most {MAX_BYTES}"));
        }
        if !self.formats.is_empty() && self.formats.len() != self.y {
            return told(format!("{} formats for {} results", self.formats.len(), self.y));
        }
        let input = self.input().or_else(told_string(&self.entry))?;
        if input.len() != self.rows.len() * self.x * self.slot {
            return told(format!("rows do not have {} operands each", self.x));
        }
        self.wanted().or_else(told_string(&self.entry))?;
        // Any addresses that a driver might give.
        for param in &self.params {
            param.passed(1 << 20, 1 << 24).or_else(told_string(&self.entry))?;
        }
        Ok(())
    }
}

/// A message with the kernel's name before it.
fn told_string<T>(entry: &str) -> impl Fn(String) -> Result<T, String> {
    move |what| Err(format!("`{entry}`: {what}"))
}

impl Family {
    /// The family whose files have this name in a folder.
    ///
    /// # Errors
    /// Files that are not there, or that are none of a family; the message names the file and the place.
    pub fn read(folder: &Path, name: &str) -> Result<Family, String> {
        let text = |extension: &str| {
            let path = folder.join(format!("{name}.{extension}"));
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let ptx = text("ptx")?;
        let failed = |what: String| format!("{}: {what}", folder.join(format!("{name}.json")).display());
        let family = serde_json::from_str::<Family>(&text("json")?).map_err(|error| failed(error.to_string()))?;
        if family.family != name {
            return Err(failed(format!("it calls itself `{}`", family.family)));
        }
        family.cases.iter().try_for_each(Case::check).map_err(failed)?;
        Ok(Family { ptx, ..family })
    }

    /// Every family of a folder, by name.
    ///
    /// # Errors
    /// The first that cannot be read.
    pub fn all(folder: &Path) -> Result<Vec<Family>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
        }
        names.sort_unstable();
        names.iter().map(|name| Family::read(folder, name)).collect()
    }

    /// The text of the second file: one row a line.
    pub fn to_json(&self) -> String {
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let mut out = format!(
            "{{\n\"family\": {},\n\"about\": {},\n\"expected\": {},\n\"cases\": [\n",
            text(&self.family),
            text(&self.about),
            text(&self.expected)
        );
        for (number, case) in self.cases.iter().enumerate() {
            let head = Case { rows: Vec::new(), ..case.clone() };
            // The rows come last, one a line.
            let head = serde_json::to_string(&head).unwrap_or_default();
            let head = head.strip_suffix("\"rows\":[]}").unwrap_or(&head);
            let _ = writeln!(out, "{head}\n \"rows\": [");
            for (row, (x, y)) in case.rows.iter().enumerate() {
                let comma = if row + 1 == case.rows.len() { "" } else { "," };
                let _ = writeln!(out, "  [{}, {}]{comma}", text(x), text(y));
            }
            let comma = if number + 1 == self.cases.len() { "" } else { "," };
            let _ = writeln!(out, " ]}}{comma}");
        }
        out.push_str("]\n}\n");
        out
    }

    /// Compares the files of a folder with this family, or writes them: what tests that make a family do.
    ///
    /// # Errors
    /// The files are others and are not to be written; a file cannot be written.
    pub fn keep(&self, folder: &Path, write: bool) -> Result<(), String> {
        self.cases.iter().try_for_each(Case::check)?;
        for (extension, text) in [("ptx", self.ptx.clone()), ("json", self.to_json())] {
            let path = folder.join(format!("{}.{extension}", self.family));
            if write {
                std::fs::write(&path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
            } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
                return Err(format!("{} is not current: `cargo xtask conformance` writes it", path.display()));
            }
        }
        Ok(())
    }
}
