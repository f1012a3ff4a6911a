//! What the tests share: a kernel from a body, buffers of words, a launch.
#![allow(dead_code, reason = "each test program uses a part of it")]

use tilewright_emulator::{Arg, Error, Finding, Kind, Launch, Memory, Options, Program, Report};

/// Registers that every test body may use.
const REGISTERS: &str =
    ".reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .b64 %rd<16>; .reg .f64 %d<8>;";

/// A module with one kernel `k`. Line 5 of the text is the first line of `body`.
pub fn module(params: &str, body: &str) -> String {
    format!(".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k({params}) {{ {REGISTERS}\n{body}\n}}\n")
}

/// One device and some buffers of words.
pub struct Bench {
    pub memory: Memory,
    pub options: Options,
    pub args: Vec<Arg>,
    pub grid: u32,
    pub block: u32,
    pub dynamic_shared: u32,
    pub cluster: Option<[u32; 3]>,
}

impl Bench {
    pub fn new(grid: u32, block: u32) -> Self {
        let options = Options { threads: Some(1), budget: 1 << 22, ..Options::default() };
        Bench { memory: Memory::new(1 << 28), options, args: Vec::new(), grid, block, dynamic_shared: 0, cluster: None }
    }

    /// Adds a buffer argument with these words.
    pub fn buffer(&mut self, label: &str, words: &[u32]) -> u64 {
        let base = self.memory.alloc(words.len() as u64 * 4, label).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.memory.write(base, &bytes).unwrap();
        self.args.push(base.into());
        base
    }

    /// Adds an uninitialised buffer argument of this many words.
    pub fn empty(&mut self, label: &str, words: usize) -> u64 {
        let base = self.memory.alloc(words as u64 * 4, label).unwrap();
        self.args.push(base.into());
        base
    }

    pub fn launch(&self) -> Launch {
        Launch {
            entry: "k".into(),
            grid: [self.grid, 1, 1],
            block: [self.block, 1, 1],
            dynamic_shared: self.dynamic_shared,
            cluster: self.cluster,
            dependent: false,
            args: self.args.clone(),
            extents: Vec::new(),
        }
    }

    pub fn try_run(&self, text: &str) -> Result<Report, Error> {
        Program::parse(text)?.launch(&self.launch(), &self.memory, &self.options)
    }

    pub fn run(&self, text: &str) -> Report {
        self.try_run(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Runs and expects no findings.
    pub fn clean(&self, text: &str) -> Report {
        let report = self.run(text);
        assert!(report.findings.is_empty(), "{report}\n{text}");
        report
    }

    pub fn words(&self, base: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count * 4];
        self.memory.read(base, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
    }
}

/// The only finding, which must be of this kind and at this line.
pub fn only(report: &Report, kind: Kind, line: u32) -> &Finding {
    let [finding] = &report.findings[..] else { panic!("one finding expected:\n{report}") };
    assert_eq!((finding.kind, finding.place.line), (kind, line), "{report}");
    finding
}

/// A text with another in place of one that is there once.
pub fn replaced(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "`{old}` in\n{text}");
    text.replace(old, new)
}

/// The line at which something stands that is there once.
pub fn line_of(text: &str, what: &str) -> u32 {
    assert_eq!(text.matches(what).count(), 1, "`{what}` in\n{text}");
    text[..text.find(what).unwrap()].matches('\n').count() as u32 + 1
}
